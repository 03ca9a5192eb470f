"""Graphs of a program: what streams capture, or what is added node by node, made fit to launch and done again."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from gpu.program import errors
from gpu.program.errors import RefusedRoutineError

Step = Callable[[], object]
"""What a node does when its turn comes."""

_LEGACY = (0, 1)
"""The handles of the stream that waits for all blocking ones."""
_NON_BLOCKING = 1
_GLOBAL, _RELAXED = 0, 2
_CAPTURING, _INVALIDATED = 1, 2
_OF_ADDRESSES = ("malloc", "free")
"""Nodes of memory, whose addresses a graph would keep."""
_BEYOND_STREAMS = ("malloc", "malloc_pitch", "malloc_mapped", "free", "free_host", "host_register")
"""What waits for the device on a GPU, and is refused while a stream captures in another than the relaxed mode."""
_WAITS_FOR_ALL = ("synchronize", "reset")
_ON_LEGACY = ("memcpy", "memcpy_2d", "memset", "memset_2d", "to_symbol", "from_symbol")
"""Asked for without a stream, these are the legacy stream's."""


@dataclass
class GraphNode:
    """A node: what it does, and the nodes that come before it."""

    step: Step
    before: set[int]


Nodes = dict[int, GraphNode]
Held = TypeVar("Held")


@dataclass
class _Capture:
    """What a stream captures, and the streams that were led into it by events.

    Parameters
    ----------
    origin : int
        The stream that it began in.
    mode : int
    ends : dict of int to set of int
        Of each stream the nodes that its next one comes after.
    """

    origin: int
    mode: int
    ends: dict[int, set[int]]
    nodes: Nodes = field(default_factory=dict)
    invalid: bool = False


@dataclass
class ProgramGraphs:
    """The graphs of a program, and what its streams capture.

    Nodes run one after the other, each behind those that it depends on: an order that a GPU may take too.

    Parameters
    ----------
    step : callable
        Makes of a routine's name and words what does it later, with the arguments as they are now.
    """

    step: Callable[[str, Sequence[int]], Step]
    _captures: dict[int, _Capture] = field(default_factory=dict)
    _events: dict[int, tuple[_Capture, frozenset[int]]] = field(default_factory=dict)
    _non_blocking: set[int] = field(default_factory=set)
    _graphs: dict[int, Nodes] = field(default_factory=dict)
    _executables: dict[int, Nodes] = field(default_factory=dict)
    _handles: itertools.count[int] = field(default_factory=lambda: itertools.count(0x9000_0000, 0x10))

    # Streams

    def opened(self, stream: int, flags: int) -> None:
        """Take down how a stream was made."""
        if flags & _NON_BLOCKING:
            self._non_blocking.add(stream)

    def takes(self, stream: int, routine: str, words: Sequence[int]) -> bool:
        """Keep a routine for later where the stream captures; return whether it does.

        Raises
        ------
        RefusedRoutineError
            It is nothing that can be captured, or the legacy stream's while a blocking one captures.
        """
        capture = self._captures.get(stream)
        if capture is None:
            if stream in _LEGACY:
                self._refuse_legacy()
            return False
        if capture.invalid:
            raise RefusedRoutineError(errors.CAPTURE_INVALIDATED)
        if routine in _OF_ADDRESSES:
            raise RefusedRoutineError(errors.NOT_SUPPORTED)
        ends = capture.ends[stream]
        node = self._add(capture.nodes, routine, words, ends)
        capture.ends[stream] = {node}
        return True

    def allow(self, routine: str) -> None:
        """Refuse a routine without a stream that may not be asked for while one captures."""
        if not self._captures:
            return
        if routine in _ON_LEGACY:
            self._refuse_legacy()
        strict = [each for each in self._captures.values() if each.mode != _RELAXED]
        if routine in _WAITS_FOR_ALL:
            self._invalidate(self._captures.values(), errors.CAPTURE_UNSUPPORTED)
        if routine in _BEYOND_STREAMS and strict:
            self._invalidate(strict, errors.CAPTURE_UNSUPPORTED)

    def _refuse_legacy(self) -> None:
        blocking = [each for stream, each in self._captures.items() if stream not in self._non_blocking]
        if blocking:
            self._invalidate(blocking, errors.CAPTURE_IMPLICIT)

    def _invalidate(self, captures: Collection[_Capture], code: int) -> None:
        for each in captures:
            each.invalid = True
        raise RefusedRoutineError(code)

    def do_stream_synchronize(self, stream: int) -> None:
        if stream in self._captures:
            self._invalidate([self._captures[stream]], errors.CAPTURE_UNSUPPORTED)
        if stream in _LEGACY:
            self._refuse_legacy()

    def do_event_synchronize(self, event: int) -> None:
        if event in self._events:
            self._invalidate([self._events[event][0]], errors.CAPTURED_EVENT)

    def recorded(self, event: int, stream: int) -> bool:
        """Have an event stand for what a stream captured so far; return whether it captures."""
        capture = self._captures.get(stream)
        self._events.pop(event, None)
        if capture is None:
            return False
        self._events[event] = capture, frozenset(capture.ends[stream])
        return True

    def do_wait_event(self, stream: int, event: int) -> None:
        capture, ends = self._events.get(event, (None, frozenset()))
        own = self._captures.get(stream)
        if capture is None:
            if own is not None:
                self._invalidate([own], errors.CAPTURE_ISOLATION)
            return
        if own is not None and own is not capture:
            self._invalidate([own, capture], errors.CAPTURE_MERGE)
        if stream in _LEGACY:
            self._invalidate([capture], errors.CAPTURE_IMPLICIT)
        self._captures[stream] = capture
        capture.ends.setdefault(stream, set()).update(ends)

    # Captures

    def do_begin_capture(self, stream: int, mode: int) -> None:
        if stream in _LEGACY:
            raise RefusedRoutineError(errors.CAPTURE_UNSUPPORTED)
        if stream in self._captures:
            raise RefusedRoutineError(errors.ILLEGAL_STATE)
        self._captures[stream] = _Capture(stream, mode, {stream: set()})

    def do_end_capture(self, stream: int, target: int) -> None:
        capture = self._captures.get(stream)
        _put(target, 0)
        if capture is None:
            raise RefusedRoutineError(errors.ILLEGAL_STATE)
        if capture.origin != stream:
            self._invalidate([capture], errors.CAPTURE_UNMATCHED)
        for each in capture.ends:
            del self._captures[each]
        self._events = {event: kept for event, kept in self._events.items() if kept[0] is not capture}
        if capture.invalid:
            raise RefusedRoutineError(errors.CAPTURE_INVALIDATED)
        if not set().union(*capture.ends.values()) <= _all_before(capture.nodes, capture.ends[stream]):
            raise RefusedRoutineError(errors.CAPTURE_UNJOINED)
        _put(target, self._new(capture.nodes))

    def do_is_capturing(self, stream: int, target: int) -> None:
        capture = self._captures.get(stream)
        state = 0 if capture is None else _INVALIDATED if capture.invalid else _CAPTURING
        ctypes.c_int.from_address(target).value = state

    def do_captures(self, stream: int) -> int:
        return int(stream in self._captures)

    # Graphs

    def _new(self, nodes: Nodes) -> int:
        graph = next(self._handles)
        self._graphs[graph] = nodes
        return graph

    def _add(self, nodes: Nodes, routine: str, words: Sequence[int], before: Collection[int]) -> int:
        node = next(self._handles)
        nodes[node] = GraphNode(self.step(routine, words), set(before))
        return node

    def do_graph_create(self, target: int) -> None:
        _put(target, self._new({}))

    def do_graph_clone(self, target: int, graph: int) -> None:
        _put(target, self._new(_of(self._graphs, graph).copy()))

    def do_graph_destroy(self, graph: int) -> None:
        _of(self._graphs, graph)
        del self._graphs[graph]

    def do_graph_add(self, target: int, graph: int, before: int, count: int, routine: int, *words: int) -> None:
        nodes, first = _of(self._graphs, graph), _handles_at(before, count)
        if not nodes.keys() >= set(first):
            raise RefusedRoutineError(errors.INVALID_VALUE)
        _put(target, self._add(nodes, ctypes.string_at(routine).decode(), words, first))

    def do_graph_add_graph(self, target: int, graph: int, before: int, count: int, child: int) -> None:
        steps = [node.step for node in _in_order(_of(self._graphs, child))]
        self.do_graph_add(target, graph, before, count, ctypes.cast(_NOTHING, ctypes.c_void_p).value or 0)
        node = ctypes.c_longlong.from_address(target).value
        self._graphs[graph][node].step = lambda: [step() for step in steps]

    def do_graph_depend(self, graph: int, first: int, second: int, count: int) -> None:
        nodes = _of(self._graphs, graph)
        pairs = list(zip(_handles_at(first, count), _handles_at(second, count), strict=True))
        if not nodes.keys() >= {node for pair in pairs for node in pair}:
            raise RefusedRoutineError(errors.INVALID_VALUE)
        for before, after in pairs:
            nodes[after].before.add(before)

    def do_graph_nodes(self, graph: int, target: int, count: int) -> None:
        nodes: list[Any] = [*_of(self._graphs, graph).keys()]
        room = ctypes.c_size_t.from_address(count)
        if target:
            nodes = nodes[: room.value]
            (ctypes.c_longlong * len(nodes)).from_address(target)[:] = nodes
        room.value = len(nodes)

    # Graphs that are fit to launch

    def do_graph_instantiate(self, target: int, graph: int) -> None:
        nodes = _of(self._graphs, graph)
        _in_order(nodes)
        executable = next(self._handles)
        self._executables[executable] = {name: GraphNode(node.step, set(node.before)) for name, node in nodes.items()}
        _put(target, executable)

    def do_executable_destroy(self, executable: int) -> None:
        _of(self._executables, executable)
        del self._executables[executable]

    def do_executable_set(self, executable: int, node: int, routine: int, *words: int) -> None:
        nodes = _of(self._executables, executable)
        _of(nodes, node).step = self.step(ctypes.string_at(routine).decode(), words)

    def do_executable_update(self, executable: int, graph: int) -> None:
        """Have what an executable does done with the arguments of a graph of as many nodes."""
        nodes, new = _of(self._executables, executable), _of(self._graphs, graph)
        if len(nodes) != len(new):
            raise RefusedRoutineError(errors.UPDATE_FAILURE)
        for node, other in zip(_in_order(nodes), _in_order(new), strict=True):
            node.step = other.step

    def steps(self, executable: int) -> list[Step]:
        """Return what an executable does, in order."""
        return [node.step for node in _in_order(_of(self._executables, executable))]


_NOTHING = ctypes.c_char_p(b"nothing")


def _of(held: dict[int, Held], handle: int) -> Held:
    if handle not in held:
        raise RefusedRoutineError(errors.INVALID_VALUE)
    return held[handle]


def _all_before(nodes: Nodes, ends: Collection[int]) -> set[int]:
    """Return nodes, and all that come before them."""
    found: set[int] = set()
    ahead = list(ends)
    while ahead:
        node = ahead.pop()
        if node not in found:
            found.add(node)
            ahead += nodes[node].before
    return found


def _in_order(nodes: Nodes) -> list[GraphNode]:
    """Return nodes, each behind those that it depends on, and as they were added where that is open."""
    done: dict[int, GraphNode] = {}
    left = dict(nodes)
    while left:
        ready = 0
        for name, node in list(left.items()):
            if node.before <= done.keys():
                done[name] = left.pop(name)
                ready += 1
        if not ready:  # they wait for each other
            raise RefusedRoutineError(errors.INVALID_VALUE)
    return list(done.values())


def _handles_at(address: int, count: int) -> list[int]:
    return list((ctypes.c_longlong * count).from_address(address)) if count else []


def _put(target: int, value: int) -> None:
    ctypes.c_longlong.from_address(target).value = value
