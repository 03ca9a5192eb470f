"""What is taken down of a script's launches, and how they are to run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gpu.schedules import ROUND_ROBIN
from gpu.simulator.checkers.findings import Finding

Counts = Mapping[str, int | float]


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
        The folder that every launch is recorded in.
    fast : bool
        Whether launches run as machine code, which checks nothing, where they can.
    """

    checked: bool = False
    schedule: str = ROUND_ROBIN
    traces: Path | None = None
    fast: bool = False
    entries: list[LaunchEntry] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


_current = [Journal()]


def begin(journal: Journal) -> None:
    """Let launches from now on be taken down there."""
    _current[0] = journal


def journal() -> Journal:
    """Return what launches are taken down in."""
    return _current[0]
