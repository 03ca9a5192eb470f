"""Delayed execution of a program's streams: each operation runs as late as the program allows.

A GPU may run the operations of different streams in any order that streams, events and synchronization leave open. In
the simulator an operation normally runs when it is issued, which hides missing synchronization. Delayed, it runs when
the program waits for it, so that a program that does not wait sees the old contents of memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from gpu.hosts.program.routines.graphs import LEGACY_STREAMS

ASYNCHRONOUS_ROUTINES = ("launch", "memset", "memset_2d", "free", "host_function", "graph_launch")
"""Routines that return before their work is done, if they are called with a stream."""
UNORDERED_ROUTINES = frozenset(
    (
        *("begin_capture", "captures", "device_attribute", "device_count", "device_name", "end_capture", "error_name"),
        *(
            "error_text",
            "event_create",
            "event_destroy",
            "event_query",
            "event_record",
            "executable_destroy",
            "executable_set",
            "executable_update",
        ),
        *("get_device", "get_limit", "graph_add", "graph_add_graph", "graph_clone", "graph_create", "graph_depend"),
        *("graph_allocate", "check_graph_memory", "graph_memory_bytes", "graph_node_type", "stream_flags"),
        *("graph_destroy", "graph_instantiate", "graph_nodes", "handle", "host_device_pointer", "is_capturing"),
        *("is_symbol", "kernel_attributes", "last_error", "malloc", "malloc_pitch", "mem_info", "no_peer", "nothing"),
        *("occupancy", "on_stream", "pointer_attributes", "priorities", "set_device", "stream_create"),
        *("stream_destroy", "stream_query", "symbol_address", "symbol_size", "variable", "version", "wait_event"),
    )
)
"""Routines that do not wait for the device; all others do."""
_DEFAULT = 0


def _do_nothing() -> None:
    """Do nothing: the operation only waits."""


@dataclass(frozen=True)
class _DelayedOperation:
    """An operation of a stream, with the numbers of those that run before it."""

    stream: int
    run: Callable[[], object]
    predecessors: frozenset[int]


@dataclass
class DelayedStreams:
    """Operations of streams that have been issued but not executed.

    Parameters
    ----------
    order : {"late", "late-reversed", "late-interleaved", "late-first", "late-others"}
        What a wait for all streams runs: one stream after the other; later streams first; or an operation of each
        stream in turn. In the last two orders only the operations of the first stream are late, or only those of the
        others: those that need not wait for late ones run when they are issued.
    withheld : int
        Number of a stream whose operations never run, in the order in which streams other than the default stream get
        their first operations, from 1; 0 for none.
    """

    order: str = "late"
    withheld: int = 0
    _pending: dict[int, _DelayedOperation] = field(default_factory=dict)
    _last: dict[int, int] = field(default_factory=dict)
    _events: dict[int, int] = field(default_factory=dict)
    _non_blocking: set[int] = field(default_factory=set)
    _queried: set[int] = field(default_factory=set)
    _count: int = 0

    def add_stream(self, stream: int, *, is_non_blocking: bool) -> None:
        """Register a new stream; operations of the legacy default stream do not wait for a non-blocking one."""
        if is_non_blocking:
            self._non_blocking.add(stream)

    @property
    def used_count(self) -> int:
        """The number of streams, except the legacy default stream, that have had operations."""
        return len(self._last.keys() - {_DEFAULT})

    def submit(self, stream: int, run: Callable[[], object], after: Iterable[int] = ()) -> int:
        """Append an operation to a stream; return its number. It also runs after the operations of these numbers."""
        stream = _DEFAULT if stream in LEGACY_STREAMS else stream
        before = set(after)
        if stream == _DEFAULT:
            before |= {last for other, last in self._last.items() if other not in self._non_blocking}
        else:
            synchronized = (stream,) if stream in self._non_blocking else (stream, _DEFAULT)
            before |= {self._last[other] for other in synchronized if other in self._last}
        self._count += 1
        number = self._count
        self._last[stream] = number
        if stream == self._find_withheld_stream():
            run = _do_nothing
        self._run_or_delay(number, stream, run, before)
        return number

    def _run_or_delay(self, number: int, stream: int, run: Callable[[], object], before: set[int]) -> None:
        if self._is_late(stream) or before & self._pending.keys():
            self._pending[number] = _DelayedOperation(stream, run, frozenset(before))
        else:
            run()

    def _is_late(self, stream: int) -> bool:
        if self.order not in ("late-first", "late-others") or stream == _DEFAULT:
            return True
        first = next(other for other in self._last if other != _DEFAULT)
        return (stream == first) == (self.order == "late-first")

    def _find_withheld_stream(self) -> int | None:
        used = [stream for stream in self._last if stream != _DEFAULT]
        return used[self.withheld - 1] if 0 < self.withheld <= len(used) else None

    def record_event(self, event: int, stream: int, run: Callable[[], object]) -> None:
        """Append an event to a stream; `run` is called when it occurs."""
        self._events[event] = self.submit(stream, run)

    def wait_for_event(self, stream: int, event: int) -> None:
        """Make later operations of a stream wait for an event."""
        if event in self._events:
            self.submit(stream, _do_nothing, (self._events[event],))

    def query_stream(self, stream: int) -> bool:
        """Return whether all operations of a stream have run; the second query for an operation runs it."""
        return self._query(self._last.get(_DEFAULT if stream in LEGACY_STREAMS else stream, 0))

    def query_event(self, event: int) -> bool:
        """Return whether an event has occurred; the second query lets it occur."""
        return self._query(self._events.get(event, 0))

    def _query(self, number: int) -> bool:
        if number in self._pending and number in self._queried:
            self._finish((number,))
        self._queried.add(number)
        return number not in self._pending

    def finish_event(self, event: int) -> None:
        """Run all operations before an event."""
        if event in self._events:
            self._finish((self._events[event],))

    def finish_stream(self, stream: int) -> None:
        """Run all operations of a stream, and those that they wait for.

        For the legacy default stream these include all operations of blocking streams.
        """
        if stream in LEGACY_STREAMS:
            self._finish(last for other, last in sorted(self._last.items()) if other not in self._non_blocking)
        elif stream in self._last:
            self._finish((self._last[stream],))

    def finish_all(self) -> None:
        """Run all operations in the order of streams that `order` names."""
        if self.order != "late-interleaved":
            for _, last in sorted(self._last.items(), reverse=self.order == "late-reversed"):
                self._finish((last,))
        while self._pending:
            # Operations are pending in the order of their issue, so these are the first ones of their streams.
            firsts = {operation.stream: number for number, operation in reversed(self._pending.items())}
            for _, number in sorted(firsts.items()):
                self._finish((number,))

    def _finish(self, numbers: Iterable[int]) -> None:
        needed: set[int] = set()
        found = list(numbers)
        while found:
            number = found.pop()
            if number in self._pending and number not in needed:
                needed.add(number)
                found += self._pending[number].predecessors
        if self.order != "late-reversed":
            # In the order of their issue, in which each follows its predecessors.
            for number in sorted(needed):
                self._pending.pop(number).run()
            return
        queues: dict[int, deque[int]] = {}
        for number in sorted(needed):
            queues.setdefault(self._pending[number].stream, deque()).append(number)
        while needed:
            # Each stream's first operation follows the others of its stream.
            firsts = (queues[stream][0] for stream in sorted(queues, reverse=True) if queues[stream])
            number = next(each for each in firsts if not self._pending[each].predecessors & needed)
            needed.remove(number)
            operation = self._pending.pop(number)
            queues[operation.stream].popleft()
            operation.run()
