"""What is taken down of a script's launches, and how they are to run."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpu.schedules import ROUND_ROBIN
from gpu.simulator.checkers.findings import Finding

Counts = Mapping[str, int | float]

_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True)
class LaunchEntry:
    """One launch.

    Parameters
    ----------
    kernel : str
    text : int
        The number of the text that it is of, in `Journal.texts`.
    place : str
        The line of the script that launched it: "script.py:12".
    grid, block : tuple of int
    shared_bytes : int
        Of dynamic shared memory.
    simulated_ms : float
        What it took on this machine's processor: no GPU's time.
    findings : tuple of Finding
        What it did wrong; of an unchecked launch only what ended it.
    counts : mapping
        The counts of the whole launch, by name; of an unchecked one none.
    trace : Path or None
        Where it is recorded.
    modeled_us : float or None
        What it would take on the GPU that launches are modeled for; None where that is not known.
    """

    kernel: str
    text: int
    place: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared_bytes: int
    simulated_ms: float
    findings: tuple[Finding, ...] = ()
    counts: Counts = field(default_factory=dict)
    trace: Path | None = None
    modeled_us: float | None = None


def _every_launch(number: int, threads: int) -> bool:
    """Record all of them."""
    return True


def _nobody() -> None:
    """Tell nobody."""


def _not_modeled(*launch: Any) -> float | None:
    """Model no launch."""
    return None


def _nobody_of(kernel: str, place: str) -> None:
    """Tell nobody of a launch."""


@dataclass
class Journal:
    """All launches of a script.

    Parameters
    ----------
    checked : bool
        Whether checkers and counters watch.
    schedule : str
        One of `gpu.schedules.NAMES`.
    traces : Path or None
        The folder that launches are recorded in.
    fast : bool
        Whether launches run as machine code, which checks nothing, where they can.
    recorded : callable
        (a launch's number from 1, its threads) -> whether it is recorded, where there is a folder.
    max_lane_events : int or None
        How many statements of single lanes of a launch are recorded at most; None for as many as in any recording.
    modeled : callable
        (module, kernel, grid, block, bytes of shared memory, values of the arguments) -> `LaunchEntry.modeled_us` of a
        launch that is about to be made.
    begun : callable
        Called with a launch's kernel and place before it runs.
    entered : callable
        Called when a launch has been taken down.
    """

    checked: bool = False
    schedule: str = ROUND_ROBIN
    traces: Path | None = None
    fast: bool = False
    recorded: Callable[[int, int], bool] = _every_launch
    max_lane_events: int | None = None
    modeled: Callable[..., float | None] = _not_modeled
    begun: Callable[[str, str], None] = _nobody_of
    entered: Callable[[], None] = _nobody
    entries: list[LaunchEntry] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


_current = [Journal()]


def begin(journal: Journal) -> None:
    """Let launches from now on be taken down there."""
    _current[0] = journal


def journal() -> Journal:
    """Return what launches are taken down in."""
    return _current[0]


class JournalNews:
    """What is new in a journal, as bytes for another process, which may come to its end at any time.

    Parameters
    ----------
    journal : Journal
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._told = (0, 0)

    def packed(self, *, refused: bool = False) -> bytes:
        """Return what has been taken down since the last call; `refused` says that a kernel is none that runs."""
        entries, texts = self._journal.entries, self._journal.texts
        data = pickle.dumps((entries[self._told[0] :], texts[self._told[1] :], refused))
        self._told = len(entries), len(texts)
        return _LENGTH.pack(len(data)) + data


def take_down(journal: Journal, received: bytes) -> tuple[int, bool]:
    """Enter what a `JournalNews` packed, as far as it came.

    Returns
    -------
    tuple of (int, bool)
        How many of the bytes were entered, and whether a kernel was refused.
    """
    place, refused = 0, False
    while place + _LENGTH.size <= len(received):
        (size,) = _LENGTH.unpack_from(received, place)
        end = place + _LENGTH.size + size
        if end > len(received):
            break
        entries, texts, one_refused = pickle.loads(received[place + _LENGTH.size : end])
        journal.entries += entries
        journal.texts += texts
        refused = refused or one_refused
        place = end
    return place, refused
