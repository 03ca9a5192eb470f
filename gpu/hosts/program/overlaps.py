"""Races between operations of a program that no stream, event or dependency orders: launches, copies and fills.

Accesses of the host to managed and page-locked memory race with operations for which it has not waited.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from gpu.base.errors import SourcePosition
from gpu.base.findings import Finding
from gpu.hosts.driver.journal import Journal
from gpu.hosts.driver.page_watch import IS_SUPPORTED, PageWatch, WatchedRange, build_range, find_host_line
from gpu.hosts.program.mapped_memory import MappedMemories
from gpu.hosts.program.stream_order import OperationTime, OrderedStreams
from gpu.simulator.checkers.races.footprints import (
    HostFlag,
    LaunchFootprint,
    OverlapSide,
    Span,
    build_host_finding,
    build_overlap_finding,
    describe_span,
    find_span_races,
)
from gpu.simulator.executor.state.observer import Observer

_MAX_BYTES, _MAX_OPERATIONS = 1 << 28, 128
"""The most bytes of footprints that are kept, and the most operations: the oldest ones are dropped."""


@dataclass
class _PastOperation:
    """An operation that has run: a launch with its number in the journal, or copies and fills."""

    time: OperationTime
    launch: LaunchFootprint | None = None
    entry: int = 0
    spans: list[Span] = field(default_factory=list)
    unreleased_flag: HostFlag | None = None
    """A flag that the host has read, although no release orders what the operation wrote before."""

    @property
    def size(self) -> int:
        return self.launch.size if self.launch is not None else 0


class OverlapChecker:
    """Compares each operation with earlier ones that may run at the same time.

    Parameters
    ----------
    streams : OrderedStreams
        The order of operations.
    journal : Journal
        The launches; those with races get findings.
    """

    def __init__(self, streams: OrderedStreams, journal: Journal) -> None:
        self.streams = streams
        self._journal = journal
        self._past: list[_PastOperation] = []
        self._reported: set[tuple[str, str]] = set()
        self._mapped = MappedMemories()
        self._shared_object = ""
        self._on_finding: Callable[[], None] = lambda: None
        self._watch: PageWatch | None = None

    def begin_launch(self, call_site: str) -> Observer | None:
        """Return an observer for a launch; None if nothing else can run at the same time."""
        if self.streams.current is None:
            return None
        if self.streams.may_overlap:
            return LaunchFootprint(call_site)
        return LaunchFootprint(call_site, self._mapped.memories) if self._mapped.memories else None

    def end_launch(self, observer: Observer) -> list[Finding]:
        """Return the findings of an observed launch, which is the next one of the journal."""
        time = self.streams.current
        assert isinstance(observer, LaunchFootprint)
        if time is None:
            return []
        observer.finish()
        findings: list[Finding] = []
        for past in self._find_concurrent(time):
            races = list(observer.find_races(past.launch)) if past.launch is not None else []
            for span in past.spans:
                races += [(describe_span(span), side, place) for side, place in observer.find_races_with_span(span)]
            findings += self._build_new_findings(races, past.time, time)
        self._add(_PastOperation(time, observer, len(self._journal.entries)))
        return findings

    @property
    def has_host_memory(self) -> bool:
        return bool(self._mapped.memories)

    def find_host_wait(self, observer: Observer) -> str:
        assert isinstance(observer, LaunchFootprint)
        observer.finish()
        return observer.find_host_wait(self._mapped.memories)

    def add_span(self, span: Span) -> bool:
        """Compare a part of the current operation, a copy or fill, with earlier ones.

        Return whether there are findings. They belong to the launch that races, or to the program's last launch.
        """
        time = self.streams.current
        if time is None or not (self.streams.may_overlap or self._mapped.find_memory(span.address)):
            return False
        found = False
        for past in self._find_concurrent(time):
            races = list(find_span_races(past.spans, [span]))
            entry = len(self._journal.entries) - 1
            if past.launch is not None:
                entry = past.entry
                races += [(side, describe_span(span), place) for side, place in past.launch.find_races_with_span(span)]
            for finding in self._build_new_findings(races, past.time, time):
                if entry >= 0:
                    self._journal.add_finding(entry, finding)
                    found = True
        if self._past and self._past[-1].time == time and self._past[-1].launch is None:
            self._past[-1].spans.append(span)
        else:
            self._add(_PastOperation(time, spans=[span]))
        return found

    # Accesses of the host

    def watch_host(self, mapped: MappedMemories, shared_object: str, on_finding: Callable[[], None]) -> None:
        """Compare accesses of a program to memory that it shares with the device with operations.

        Parameters
        ----------
        mapped : MappedMemories
            The memory.
        shared_object : str
            The program's file.
        on_finding : callable
            Called after findings were added.
        """
        if IS_SUPPORTED:
            self._mapped, self._shared_object, self._on_finding = mapped, shared_object, on_finding
            self._watch = PageWatch(self._check_host_access)

    def begin_routine(self) -> None:
        """Let a routine access all memory."""
        if self._watch is not None:
            self._watch.pause()

    def end_routine(self) -> None:
        """Watch the memory that operations access for which the host has not waited."""
        if self._watch is None or not self._mapped.memories:
            return
        ranges: set[WatchedRange] = set()
        for past in self._find_pending():
            spans = list(past.launch.find_spans()) if past.launch is not None else []
            spans += [(span.address, span.size, span.writes) for span in past.spans]
            ranges.update(build_range(*span) for span in spans if self._mapped.find_memory(span[0]) is not None)
        # In pages of several ranges all accesses are watched if those of one of them are.
        self._watch.watch(sorted(ranges, key=lambda each: each.watches_reads))

    def _find_pending(self) -> list[_PastOperation]:
        return [past for past in self._past if not self.streams.has_ended(past.time)]

    def _check_host_access(self, address: int, writes: bool) -> None:
        """Report an access of the host that races with operations."""
        access = Span(address, 1, writes, "the host", np.empty(0, np.uint8))
        position: SourcePosition | None = None
        for past in self._find_pending():
            flag = past.launch.find_host_flag(address) if past.launch is not None else None
            if flag is not None:
                if not writes:
                    self._observe(past, flag)
                continue
            races = list(past.launch.find_races_with_span(access)) if past.launch is not None else []
            races += [(side, place) for side, _, place in find_span_races(past.spans, [access])]
            entry = past.entry if past.launch is not None else len(self._journal.entries) - 1
            if not races or entry < 0:
                continue
            position = position or find_host_line(self._shared_object)
            side, element = races[0]
            if (side.key, f"host {position}") not in self._reported:
                self._reported.add((side.key, f"host {position}"))
                finding = build_host_finding(side, element, position, writes=writes, flag=past.unreleased_flag)
                self._journal.add_finding(entry, finding)
                self._on_finding()

    def _observe(self, past: _PastOperation, flag: HostFlag) -> None:
        """Let the host wait for a launch whose flag it has read, and for what this launch follows."""
        if flag.is_released:
            self._past = [each for each in self._past if each is not past and not past.time.follows(each.time)]
        else:
            past.unreleased_flag = flag

    def _find_concurrent(self, time: OperationTime) -> Iterator[_PastOperation]:
        self._past = [past for past in self._past if not self.streams.has_ended(past.time)]
        for past in self._past:
            if past.time != time and not time.follows(past.time):
                yield past

    def _add(self, operation: _PastOperation) -> None:
        self._past.append(operation)
        while len(self._past) > _MAX_OPERATIONS or sum(past.size for past in self._past) > _MAX_BYTES:
            del self._past[0]

    def _build_new_findings(
        self, races: Iterable[tuple[OverlapSide, OverlapSide, str]], first: OperationTime, second: OperationTime
    ) -> Iterator[Finding]:
        """Yield the findings of races between two operations, once for each pair of lines and operations."""
        for one, other, element in races:
            if (one.key, other.key) not in self._reported:
                self._reported.add((one.key, other.key))
                yield build_overlap_finding(one, other, element, in_graph=first.number == second.number)
