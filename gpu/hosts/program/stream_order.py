"""Order of a program's operations on streams: which of them streams, events, graphs and the host keep in order.

Operations run when they are issued, one after the other. On a GPU those that are not ordered may run at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpu.hosts.program.delayed_streams import DelayedStreams
from gpu.hosts.program.routines.graphs import GraphStep

_Clock = Mapping[Hashable, int]


@dataclass(frozen=True)
class OperationTime:
    """The place of an operation in the order.

    Parameters
    ----------
    number : int
        The number of the operation; one that launches a graph has this number for all nodes.
    clock : mapping
        For each stream, the number of its last operation that this one follows.
    node : int
        The node of a graph; 0 for other operations.
    earlier_nodes : frozenset of int
        The nodes of this graph that this one follows, and itself.
    """

    stream: Hashable
    number: int
    clock: _Clock
    node: int = 0
    earlier_nodes: frozenset[int] = frozenset()

    def follows(self, other: OperationTime) -> bool:
        """Return whether an operation that was issued earlier has ended when this one begins."""
        if other.number == self.number:
            return other.node in self.earlier_nodes
        return self.clock.get(other.stream, 0) >= other.number


@dataclass
class OrderedStreams(DelayedStreams):
    """Streams whose operations run at once, and their order.

    Attributes
    ----------
    current : OperationTime or None
        The operation that runs; None between operations.
    """

    current: OperationTime | None = None
    _clocks: dict[int, _Clock] = field(default_factory=dict)
    _host_clock: _Clock = field(default_factory=dict)
    _stream_count: int = 0
    _has_graphs: bool = False

    def add_stream(self, stream: int, *, is_non_blocking: bool) -> None:
        super().add_stream(stream, is_non_blocking=is_non_blocking)
        self._stream_count += 1 + is_non_blocking

    @property
    def may_overlap(self) -> bool:
        """Whether there are streams or graphs whose operations may run at the same time."""
        return self._stream_count > 1 or self._has_graphs

    def _run_or_delay(self, number: int, stream: int, run: Callable[[], object], before: set[int]) -> None:
        clock = _merge([self._host_clock, *(self._clocks[each] for each in before if each in self._clocks)])
        self._clocks[number] = {**clock, stream: number}
        self._keep_recent_clocks()
        outer, self.current = self.current, OperationTime(stream, number, clock)
        try:
            run()
        finally:
            self.current = outer

    def _keep_recent_clocks(self) -> None:
        """Forget the clocks of operations that neither a stream nor an event refers to."""
        if len(self._clocks) > 2 * (len(self._last) + len(self._events)) + 64:
            needed = {*self._last.values(), *self._events.values()}
            self._clocks = {number: clock for number, clock in self._clocks.items() if number in needed}

    def run_graph(self, steps: Iterable[GraphStep]) -> None:
        """Run the operations of a graph within the current operation."""
        launch = self.current
        assert launch is not None
        self._has_graphs = True
        earlier: dict[int, frozenset[int]] = {}
        for run, node, predecessors in steps:
            before = [earlier[each] for each in (*predecessors, node) if each in earlier]
            earlier[node] = frozenset({node}).union(*before)
            self.current = OperationTime(launch.stream, launch.number, launch.clock, node, earlier[node])
            run()
        self.current = launch

    def query_stream(self, stream: int) -> bool:
        self.finish_stream(stream)
        return True

    def query_event(self, event: int) -> bool:
        self.finish_event(event)
        return True

    def has_ended(self, time: OperationTime) -> bool:
        """Return whether the host has waited for an operation."""
        return self._host_clock.get(time.stream, 0) >= time.number

    def finish_all(self) -> None:
        self._finish(self._last.values())

    def _finish(self, numbers: Iterable[int]) -> None:
        clocks = (self._clocks[number] for number in numbers if number in self._clocks)
        self._host_clock = _merge([self._host_clock, *clocks])


def _merge(clocks: Iterable[Mapping[Any, int]]) -> _Clock:
    merged: dict[Hashable, int] = {}
    for clock in clocks:
        for stream, number in clock.items():
            merged[stream] = max(number, merged.get(stream, 0))
    return merged
