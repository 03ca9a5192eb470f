"""Journal of a program's launches, and the settings with which they run."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from gpu.base.findings import Finding
from gpu.base.schedules import ROUND_ROBIN
from gpu.simulator.executor.state.observer import Observer

Counts = Mapping[str, int | float]

_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True)
class LaunchEntry:
    """Record of one launch.

    Parameters
    ----------
    text_index : int
        Index in `Journal.texts` of the text that contains the kernel.
    call_site : str
        The line that launched it: "script.py:12".
    shared_bytes : int
        Dynamic shared memory per block, in bytes.
    simulated_ms : float
        Duration of the simulation on this CPU; not a GPU time.
    findings : tuple of Finding
        Findings; for an unchecked launch only the one that ended it.
    counts : mapping
        Total counts by name; empty for an unchecked launch.
    trace : Path or None
        File of its recording.
    modeled_us : float or None
        Modeled time on the selected GPU; None if unknown.
    """

    kernel: str
    text_index: int
    call_site: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared_bytes: int
    simulated_ms: float
    findings: tuple[Finding, ...] = ()
    counts: Counts = field(default_factory=dict)
    trace: Path | None = None
    modeled_us: float | None = None


class LaunchWatcher(Protocol):
    """Compares checked launches with other operations of the program."""

    def begin_launch(self, call_site: str) -> Observer | None:
        """Return an observer for the next launch, by the line `call_site`; None if it needs none."""

    def end_launch(self, observer: Observer) -> list[Finding]:
        """Return the findings of a launch after it has run."""

    @property
    def has_host_memory(self) -> bool:
        """Whether the host and the device share memory."""

    def find_host_wait(self, observer: Observer) -> str:
        """Return the element for which a launch that has not ended may wait until the host writes it; or ""."""


@dataclass
class Journal:
    """Launches of a program, with the settings of further ones.

    Parameters
    ----------
    checked : bool
        Whether checkers and counters observe launches.
    schedule : str
        One of `gpu.base.schedules.NAMES`.
    trace_folder : Path or None
        Folder for recordings.
    fast : bool
        Whether launches run as machine code, without checks, where possible.
    should_record : callable
        Function (launch number from 1, number of threads) that selects launches to record.
    max_lane_events : int or None
        Limit of recorded lane statements per launch; None for the default.
    model_launch : callable
        Function (module, kernel, grid, block, shared memory in bytes, argument values) that returns
        `LaunchEntry.modeled_us` before a launch.
    should_execute : callable
        Function without arguments, called after `model_launch`, that returns whether the launch runs.
    on_begin : callable
        Called with the kernel's name and the call site before each launch.
    on_entry : callable
        Called after each launch was added.
    watcher : LaunchWatcher or None
        Watches checked launches.
    """

    checked: bool = False
    schedule: str = ROUND_ROBIN
    trace_folder: Path | None = None
    fast: bool = False
    should_record: Callable[[int, int], bool] = lambda number, threads: True
    max_lane_events: int | None = None
    model_launch: Callable[..., float | None] = lambda *launch: None
    should_execute: Callable[[], bool] = lambda: True
    on_begin: Callable[[str, str], None] = lambda kernel, call_site: None
    on_entry: Callable[[], None] = lambda: None
    entries: list[LaunchEntry] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    watcher: LaunchWatcher | None = None
    changed_entries: set[int] = field(default_factory=set)

    def add_finding(self, number: int, finding: Finding) -> None:
        """Add a finding to an entry that was added before."""
        self.entries[number] = replace(self.entries[number], findings=(*self.entries[number].findings, finding))
        self.changed_entries.add(number)


_current = [Journal()]


def set_current_journal(journal: Journal) -> None:
    """Add further launches to this journal."""
    _current[0] = journal


def current_journal() -> Journal:
    """Return the current journal."""
    return _current[0]


class JournalPacker:
    """Packer of a journal's new entries for another process, which tolerates a sudden end of this one."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._sent = (0, 0)

    def pack_new_entries(self, *, refused: bool = False) -> bytes:
        """Return new and changed entries since the last call.

        `refused` reports that the simulator does not support a kernel.
        """
        entries, texts = self._journal.entries, self._journal.texts
        changed = {number: entries[number] for number in self._journal.changed_entries if number < self._sent[0]}
        self._journal.changed_entries.clear()
        data = pickle.dumps((entries[self._sent[0] :], texts[self._sent[1] :], changed, refused))
        self._sent = len(entries), len(texts)
        return _LENGTH.pack(len(data)) + data


def append_received_entries(journal: Journal, received: bytes) -> tuple[int, bool]:
    """Add complete messages of a `JournalPacker` to a journal.

    Returns
    -------
    tuple of (int, bool)
        Number of bytes that were consumed, and whether a kernel was refused.
    """
    offset, refused = 0, False
    while offset + _LENGTH.size <= len(received):
        (size,) = _LENGTH.unpack_from(received, offset)
        end = offset + _LENGTH.size + size
        if end > len(received):
            break
        entries, texts, changed, one_refused = pickle.loads(received[offset + _LENGTH.size : end])
        journal.entries += entries
        for number, entry in changed.items():
            journal.entries[number] = entry
        journal.texts += texts
        refused = refused or one_refused
        offset = end
    return offset, refused
