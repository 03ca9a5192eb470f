"""CUDA graphs: captured from streams or built node by node, then instantiated and launched."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from gpu.hosts.program import errors
from gpu.hosts.program.errors import RefusedRoutineError
from gpu.hosts.program.mapped_memory import access_host, write_address, write_int

Operation = Callable[[], object]
"""Operation of a node."""

GraphStep = tuple[Operation, int, frozenset[int]]
"""An operation of a graph, the number of its node and those of the node's predecessors."""

LEGACY_STREAMS = (0, 1)
"""Handles of the legacy default stream, which synchronizes with all blocking streams."""
_DEFAULT_STREAMS = (*LEGACY_STREAMS, 2)
"""Handles of default streams, with that of each thread."""
NON_BLOCKING = 1
_RELAXED = 2
_CAPTURING, _INVALIDATED = 1, 2
_DEVICE_SYNCHRONIZING = ("malloc", "malloc_pitch", "malloc_mapped", "free", "free_host", "host_register")
"""Routines that synchronize with the device; refused during a capture unless its mode is relaxed."""
_NODE_TYPES = {
    "launch": 0,
    "memset": 2,
    "memset_2d": 2,
    "memset_elements": 2,
    "host_function": 3,
    "graph": 4,
    "graph_launch": 4,
    "nothing": 5,
    "condition": 13,
}
"""Number of the cudaGraphNodeType of a routine."""
_COPY = 1
_DEFAULTS = 0
"""The number of a node that assigns the default values of a graph's conditions, before all others."""
_SYNCHRONIZING_ROUTINES = ("synchronize", "reset")
LEGACY_ROUTINES = ("memcpy", "memcpy_2d", "memset", "memset_2d", "to_symbol", "from_symbol")
"""Routines that use the legacy stream if called without a stream."""


_WHILE, _SWITCH = 1, 2
"""Kinds of conditional nodes: cudaGraphConditionalNodeType."""


class _ConditionalNodeParams(ctypes.Structure):
    """CUDA's structure: the condition, its kind, and the number of the node's graphs, whose handles are written."""

    _fields_ = (
        ("handle", ctypes.c_ulonglong),
        ("type", ctypes.c_int),
        ("size", ctypes.c_uint),
        ("graphs", ctypes.c_void_p),
    )


@dataclass
class GraphNode:
    """A node with its operation, its predecessors and the name of its routine.

    Parameters
    ----------
    operation : callable
        For a node with graphs, a function that returns the index of the graph to execute, -1 for none.
    bodies : tuple of dict of int to GraphNode
        The nodes of a child graph, or of a conditional node's graphs.
    repeats : bool
        Whether the node executes graphs until `operation` returns -1.
    """

    operation: Callable[[], Any]
    predecessors: set[int]
    routine: str = "graph"
    bodies: tuple[Nodes, ...] = ()
    repeats: bool = False


Nodes = dict[int, GraphNode]
Stored = TypeVar("Stored")


@dataclass
class _Capture:
    """A capture, with the streams that joined it through events.

    Parameters
    ----------
    origin : int
        The stream in which it began.
    ends : dict of int to set of int
        For each stream, the nodes that its next node depends on.
    graph : int
        Handle of the graph to which the nodes are added; 0 if it has none yet.
    """

    origin: int
    mode: int
    ends: dict[int, set[int]]
    nodes: Nodes = field(default_factory=dict)
    graph: int = 0
    invalid: bool = False
    handles: Any = None  # what a program may still read of the last answer about the capture


@dataclass
class ProgramGraphs:
    """Graphs of a program, and captures in progress.

    Nodes run one after the other, in an order that respects their dependencies and that a GPU could choose too.

    Parameters
    ----------
    bind_operation : callable
        Function that binds a routine's name and its current arguments to an operation.
    """

    bind_operation: Callable[[str, Sequence[int]], Operation]
    _captures: dict[int, _Capture] = field(default_factory=dict)
    _events: dict[int, tuple[_Capture, frozenset[int]]] = field(default_factory=dict)
    _created_events: set[int] = field(default_factory=set)
    _streams: set[int] = field(default_factory=set)
    _non_blocking: set[int] = field(default_factory=set)
    _graphs: dict[int, Nodes] = field(default_factory=dict)
    _executables: dict[int, Nodes] = field(default_factory=dict)
    _memory: dict[int, int] = field(default_factory=dict)
    _conditions: dict[int, ctypes.c_uint] = field(default_factory=dict)
    _defaults: dict[int, list[Operation]] = field(default_factory=dict)
    _handles: itertools.count[int] = field(default_factory=lambda: itertools.count(0x9000_0000, 0x10))

    # Streams

    def register_stream(self, stream: int, flags: int) -> None:
        """Register a new stream."""
        self._streams.add(stream)
        if flags & NON_BLOCKING:
            self._non_blocking.add(stream)

    def do_stream_flags(self, stream: int, target: int) -> None:
        self._check_stream(stream)
        access_host(ctypes.c_uint, target).value = NON_BLOCKING if stream in self._non_blocking else 0

    def do_stream_destroy(self, stream: int) -> None:
        if stream not in self._streams:
            raise RefusedRoutineError(errors.INVALID_HANDLE)
        self._streams.remove(stream)
        self._non_blocking.discard(stream)
        capture = self._captures.pop(stream, None)
        if capture is not None and stream == capture.origin:  # the end of a capture checks that others have joined it
            capture.invalid = True

    def _check_stream(self, stream: int) -> None:
        if stream not in self._streams and stream not in _DEFAULT_STREAMS:
            raise RefusedRoutineError(errors.INVALID_HANDLE)

    def capture_routine(self, stream: int, routine: str, arguments: Sequence[int]) -> bool:
        """Capture a routine if the stream is capturing; return whether it is.

        Raises
        ------
        RefusedRoutineError
            If there is no such stream, or it was destroyed; if the routine cannot be captured, or uses the legacy
            stream while a blocking stream captures.
        """
        self._check_stream(stream)
        capture = self._captures.get(stream)
        if capture is None:
            if stream in LEGACY_STREAMS:
                self._refuse_legacy()
            return False
        if capture.invalid:
            raise RefusedRoutineError(errors.CAPTURE_INVALIDATED)
        if routine == "malloc":
            self.do_graph_allocate(*arguments)
        elif routine == "free":
            self.do_check_graph_memory(*arguments)
        if routine in ("malloc", "free"):
            routine, arguments = "nothing", ()
        ends = capture.ends[stream]
        node = self._add_node(capture.nodes, routine, arguments, ends)
        capture.ends[stream] = {node}
        return True

    def check_routine(self, routine: str) -> None:
        """Refuse a routine without a stream if a capture forbids it."""
        if not self._captures:
            return
        if routine in LEGACY_ROUTINES:
            self._refuse_legacy()
        strict = [capture for capture in self._captures.values() if capture.mode != _RELAXED]
        if routine in _SYNCHRONIZING_ROUTINES:
            self._invalidate(self._captures.values(), errors.CAPTURE_UNSUPPORTED)
        if routine in _DEVICE_SYNCHRONIZING and strict:
            self._invalidate(strict, errors.CAPTURE_UNSUPPORTED)

    def _refuse_legacy(self) -> None:
        blocking = [capture for stream, capture in self._captures.items() if stream not in self._non_blocking]
        if blocking:
            self._invalidate(blocking, errors.CAPTURE_IMPLICIT)

    def _invalidate(self, captures: Collection[_Capture], code: int) -> None:
        for capture in captures:
            capture.invalid = True
        raise RefusedRoutineError(code)

    def do_stream_synchronize(self, stream: int) -> None:
        self._check_stream(stream)
        if stream in self._captures:
            self._invalidate([self._captures[stream]], errors.CAPTURE_UNSUPPORTED)
        if stream in LEGACY_STREAMS:
            self._refuse_legacy()

    def do_event_create(self, target: int) -> None:
        event = next(self._handles)
        write_address(target, event)
        self._created_events.add(event)

    def do_event_destroy(self, event: int) -> None:
        self._check_event(event)
        self._created_events.remove(event)
        self._events.pop(event, None)

    def _check_event(self, event: int) -> None:
        if event not in self._created_events:
            raise RefusedRoutineError(errors.INVALID_HANDLE)

    def do_event_synchronize(self, event: int) -> None:
        self._check_event(event)
        if event in self._events:
            self._invalidate([self._events[event][0]], errors.CAPTURED_EVENT)

    def record_event(self, event: int, stream: int) -> bool:
        """Record an event in a capture; return whether the stream is capturing."""
        self._check_stream(stream)
        self._check_event(event)
        capture = self._captures.get(stream)
        self._events.pop(event, None)
        if capture is None:
            return False
        self._events[event] = capture, frozenset(capture.ends[stream])
        return True

    def do_wait_event(self, stream: int, event: int) -> None:
        self._check_stream(stream)
        self._check_event(event)
        capture, ends = self._events.get(event, (None, frozenset()))
        stream_capture = self._captures.get(stream)
        if capture is None:
            if stream_capture is not None:
                self._invalidate([stream_capture], errors.CAPTURE_ISOLATION)
            return
        if stream_capture is not None and stream_capture is not capture:
            self._invalidate([stream_capture, capture], errors.CAPTURE_MERGE)
        if stream in LEGACY_STREAMS:
            self._invalidate([capture], errors.CAPTURE_IMPLICIT)
        self._captures[stream] = capture
        capture.ends.setdefault(stream, set()).update(ends)

    # Captures

    def do_begin_capture(self, stream: int, mode: int) -> None:
        self._begin_capture(_Capture(stream, mode, {stream: set()}))

    def do_begin_capture_to_graph(self, stream: int, graph: int, before: int, count: int, mode: int) -> None:
        """Begin a capture that adds nodes to a graph; the first of them depend on `count` nodes at `before`."""
        nodes, first = _lookup(self._graphs, graph), set(_read_handles(before, count))
        if not nodes.keys() >= first:
            raise RefusedRoutineError(errors.INVALID_VALUE)
        self._begin_capture(_Capture(stream, mode, {stream: first}, nodes, graph))

    def _begin_capture(self, capture: _Capture) -> None:
        self._check_stream(capture.origin)
        if capture.origin in LEGACY_STREAMS:
            raise RefusedRoutineError(errors.CAPTURE_UNSUPPORTED)
        if capture.origin in self._captures:
            raise RefusedRoutineError(errors.ILLEGAL_STATE)
        self._captures[capture.origin] = capture

    def do_end_capture(self, stream: int, target: int) -> None:
        capture = self._captures.get(stream)
        if target:
            write_address(target, 0)
        if capture is None:
            raise RefusedRoutineError(errors.ILLEGAL_STATE)
        if not target and not capture.graph:
            raise RefusedRoutineError(errors.INVALID_VALUE)
        if capture.origin != stream:
            self._invalidate([capture], errors.CAPTURE_UNMATCHED)
        for each in capture.ends:
            self._captures.pop(each, None)
        self._events = {event: entry for event, entry in self._events.items() if entry[0] is not capture}
        if capture.invalid:
            raise RefusedRoutineError(errors.CAPTURE_INVALIDATED)
        if not set().union(*capture.ends.values()) <= _collect_predecessors(capture.nodes, capture.ends[stream]):
            raise RefusedRoutineError(errors.CAPTURE_UNJOINED)
        if target:
            write_address(target, self._find_graph(capture))

    def _find_graph(self, capture: _Capture) -> int:
        """Return the handle of the graph to which a capture adds nodes."""
        capture.graph = capture.graph or self._add_graph(capture.nodes)
        return capture.graph

    def do_capture_info(self, stream: int, state: int, number: int, graph: int, before: int, count: int) -> None:
        """Execute `cudaStreamGetCaptureInfo`; addresses that are 0 are not written to."""
        self.do_is_capturing(stream, state)
        capture = self._captures.get(stream)
        if capture is None or capture.invalid:
            return
        ends = sorted(capture.ends[stream])
        capture.handles = (ctypes.c_longlong * max(len(ends), 1))(*ends)
        values = capture.origin, self._find_graph(capture), ctypes.addressof(capture.handles), len(ends)
        for target, value in zip((number, graph, before, count), values, strict=True):
            if target:
                write_address(target, value)

    def do_update_capture(self, stream: int, before: int, count: int, replaces: int) -> None:
        """Execute `cudaStreamUpdateCaptureDependencies`: add or replace what the stream's next node depends on."""
        capture = self._captures.get(stream)
        if capture is None:
            raise RefusedRoutineError(errors.ILLEGAL_STATE)
        nodes = set(_read_handles(before, count))
        if not capture.nodes.keys() >= nodes:
            raise RefusedRoutineError(errors.INVALID_VALUE)
        capture.ends[stream] = nodes if replaces else capture.ends[stream] | nodes

    def do_is_capturing(self, stream: int, target: int) -> None:
        capture = self._captures.get(stream)
        state = 0 if capture is None else _INVALIDATED if capture.invalid else _CAPTURING
        write_int(target, state)

    def do_captures(self, stream: int) -> int:
        return int(stream in self._captures)

    # Graphs

    def _add_graph(self, nodes: Nodes) -> int:
        graph = next(self._handles)
        self._graphs[graph] = nodes
        return graph

    def _add_node(self, nodes: Nodes, routine: str, arguments: Sequence[int], predecessors: Collection[int]) -> int:
        node = next(self._handles)
        nodes[node] = GraphNode(self.bind_operation(routine, arguments), set(predecessors), routine)
        return node

    def do_graph_create(self, target: int) -> None:
        write_address(target, self._add_graph({}))

    def do_graph_clone(self, target: int, graph: int) -> None:
        write_address(target, self._add_graph(_copy_nodes(_lookup(self._graphs, graph))))

    def do_graph_destroy(self, graph: int) -> None:
        _lookup(self._graphs, graph)
        del self._graphs[graph]

    def do_graph_add(self, target: int, graph: int, before: int, count: int, routine: int, *arguments: int) -> None:
        """Add a node to a graph, as `cudaGraphAddMemsetNode` and similar functions do.

        Parameters
        ----------
        target : int
            The address at which the node's handle is written.
        graph : int
            The graph's handle.
        before, count : int
            The address of the handles of the node's predecessors, and their number.
        routine : int
            The address of the name of the routine that the node executes.
        *arguments : int
            The routine's arguments; their current values are bound.

        Raises
        ------
        RefusedRoutineError
            The graph does not exist or does not contain a predecessor.
        """
        nodes, first = _lookup(self._graphs, graph), _read_handles(before, count)
        if not nodes.keys() >= set(first):
            raise RefusedRoutineError(errors.INVALID_VALUE)
        write_address(target, self._add_node(nodes, ctypes.string_at(routine).decode(), arguments, first))

    def do_graph_add_graph(self, target: int, graph: int, before: int, count: int, child: int) -> None:
        """Add a node that executes another graph, as `cudaGraphAddChildGraphNode` does.

        Parameters
        ----------
        target, graph, before, count : int
            As of `do_graph_add`.
        child : int
            The handle of the graph to execute; later changes to it have no effect on the node.

        Raises
        ------
        RefusedRoutineError
            A graph does not exist or has a cycle, or `graph` does not contain a predecessor.
        """
        nodes = _lookup(self._graphs, child)
        _sort_nodes(nodes)
        self.do_graph_add(target, graph, before, count, ctypes.cast(_NOTHING, ctypes.c_void_p).value or 0)
        node = access_host(ctypes.c_longlong, target).value
        first = set(_read_handles(before, count))
        self._graphs[graph][node] = GraphNode(lambda: 0, first, bodies=(_copy_nodes(nodes),))

    def do_condition_create(self, target: int, graph: int, value: int, is_default: int) -> None:
        """Create a condition of a graph's nodes: a number in device memory, whose address is the handle.

        Parameters
        ----------
        target : int
            The address at which the handle is written.
        graph : int
            The graph's handle.
        value, is_default : int
            The value that each launch of the graph assigns first, and whether it does.

        Raises
        ------
        RefusedRoutineError
            The graph does not exist.
        """
        _lookup(self._graphs, graph)
        self.bind_operation("malloc_mapped", (target, ctypes.sizeof(ctypes.c_uint), 0))()
        handle = access_host(ctypes.c_longlong, target).value
        condition = self._conditions[handle] = access_host(ctypes.c_uint, handle)
        condition.value = value
        if is_default:
            self._defaults.setdefault(graph, []).append(partial(setattr, condition, "value", value))

    def do_graph_add_condition(self, target: int, graph: int, before: int, count: int, parameters: int) -> None:
        """Add a conditional node, and create its graphs, which are empty.

        Parameters
        ----------
        target, graph, before, count : int
            As of `do_graph_add`.
        parameters : int
            The address of its `cudaConditionalNodeParams`.

        Raises
        ------
        RefusedRoutineError
            The graph or the condition does not exist, or the graph does not contain a predecessor.
        """
        conditional = _ConditionalNodeParams.from_address(parameters)
        condition, kind, size = _lookup(self._conditions, conditional.handle), conditional.type, conditional.size
        self.do_graph_add(target, graph, before, count, ctypes.cast(_NOTHING, ctypes.c_void_p).value or 0)
        node = self._graphs[graph][access_host(ctypes.c_longlong, target).value]
        handles: list[Any] = [self._add_graph({}) for _ in range(size)]
        (ctypes.c_longlong * size).from_address(conditional.graphs)[:] = handles
        node.operation, node.routine = lambda: _select_body(kind, condition.value, size), "condition"
        node.bodies, node.repeats = tuple(self._graphs[each] for each in handles), kind == _WHILE

    def do_graph_depend(self, graph: int, first: int, second: int, count: int) -> None:
        """Add dependencies between nodes, as `cudaGraphAddDependencies` does.

        Parameters
        ----------
        graph : int
            The graph's handle.
        first, second : int
            The addresses of two arrays of node handles. Each node of the second array depends on the node of the first
            one with the same index.
        count : int
            The number of dependencies.

        Raises
        ------
        RefusedRoutineError
            The graph does not exist or does not contain a node.
        """
        nodes = _lookup(self._graphs, graph)
        pairs = list(zip(_read_handles(first, count), _read_handles(second, count), strict=True))
        if not nodes.keys() >= {node for pair in pairs for node in pair}:
            raise RefusedRoutineError(errors.INVALID_VALUE)
        for before, after in pairs:
            nodes[after].predecessors.add(before)

    def do_graph_nodes(self, graph: int, target: int, count: int) -> None:
        nodes: list[Any] = [*_lookup(self._graphs, graph).keys()]
        room = access_host(ctypes.c_size_t, count)
        if target:
            nodes = nodes[: room.value]
            (ctypes.c_longlong * len(nodes)).from_address(target)[:] = nodes
        room.value = len(nodes)

    def do_graph_node_type(self, node: int, target: int) -> None:
        """Write the number of a node's `cudaGraphNodeType`; copies are what is not listed."""
        found = next((nodes[node] for nodes in self._graphs.values() if node in nodes), None)
        if found is None:
            raise RefusedRoutineError(errors.INVALID_VALUE)
        write_int(target, _NODE_TYPES.get(found.routine, _COPY))

    # Memory, which is allocated when its node is added, and kept: its address is the same in each launch

    def do_graph_allocate(self, target: int, size: int) -> None:
        """Allocate memory of a graph; write its address."""
        self.bind_operation("malloc", (target, size))()
        self._memory[access_host(ctypes.c_longlong, target).value] = size

    def owns_memory(self, address: int) -> bool:
        """Return whether an address is that of memory of a graph."""
        return address in self._memory

    def do_check_graph_memory(self, address: int) -> None:
        """Refuse to free memory in a graph that is not of a graph."""
        if address not in self._memory:
            raise RefusedRoutineError(errors.INVALID_VALUE)

    def do_graph_memory_bytes(self, device: int, target: int) -> None:
        self.bind_operation("set_device", (device,))()
        write_address(target, sum(self._memory.values()))

    # Executable graphs

    def do_graph_instantiate(self, target: int, graph: int) -> None:
        nodes = _lookup(self._graphs, graph)
        _sort_nodes(nodes)
        executable = next(self._handles)
        self._executables[executable] = _copy_nodes(nodes)
        self._defaults[executable] = list(self._defaults.get(graph, ()))
        write_address(target, executable)

    def do_executable_destroy(self, executable: int) -> None:
        _lookup(self._executables, executable)
        del self._executables[executable]

    def do_executable_set(self, executable: int, node: int, routine: int, *arguments: int) -> None:
        """Replace the operation of a node, as `cudaGraphExecKernelNodeSetParams` does.

        Parameters
        ----------
        executable : int
            The handle of the executable graph.
        node : int
            The node's handle in the graph from which it was instantiated.
        routine : int
            The address of the name of the routine that the node executes from now on.
        *arguments : int
            The routine's arguments; their current values are bound.

        Raises
        ------
        RefusedRoutineError
            The executable graph or the node does not exist.
        """
        nodes = _lookup(self._executables, executable)
        _lookup(nodes, node).operation = self.bind_operation(ctypes.string_at(routine).decode(), arguments)

    def do_executable_update(self, executable: int, graph: int) -> None:
        """Replace an executable graph's operations by those of a graph with as many nodes."""
        nodes, new = _lookup(self._executables, executable), _lookup(self._graphs, graph)
        if len(nodes) != len(new):
            raise RefusedRoutineError(errors.UPDATE_FAILURE)
        for node, other in zip(_sort_nodes(nodes), _sort_nodes(new), strict=True):
            node.operation, node.bodies, node.repeats = other.operation, _copy_bodies(other), other.repeats

    def iterate_operations(self, executable: int) -> Iterator[GraphStep]:
        """Yield an executable graph's operations in order; the caller executes each before the next."""
        for operation in self._defaults.get(executable, ()):
            yield operation, _DEFAULTS, frozenset()
        for operation, node, predecessors in _iterate_operations(_lookup(self._executables, executable)):
            yield operation, node, predecessors | {_DEFAULTS}


_NOTHING = ctypes.c_char_p(b"nothing")


def _lookup(objects: dict[int, Stored], handle: int) -> Stored:
    if handle not in objects:
        raise RefusedRoutineError(errors.INVALID_VALUE)
    return objects[handle]


def _copy_nodes(nodes: Nodes) -> Nodes:
    """Copy nodes, so that later changes to the graph have no effect on the copy."""
    return {
        name: GraphNode(node.operation, set(node.predecessors), node.routine, _copy_bodies(node), node.repeats)
        for name, node in nodes.items()
    }


def _copy_bodies(node: GraphNode) -> tuple[Nodes, ...]:
    return tuple(map(_copy_nodes, node.bodies))


def _select_body(kind: int, value: int, size: int) -> int:
    """Return the number of the graph that a conditional node executes for a value of its condition, -1 for none."""
    if kind == _SWITCH:
        return value if value < size else -1
    body = 0 if value else 1
    return body if body < size else -1


def _iterate_operations(nodes: Nodes) -> Iterator[GraphStep]:
    """Yield the operations of nodes and of their graphs in order; the caller executes each before the next.

    The operations of a node's graphs count as those of the node, one after the other.
    """
    names = {id(node): name for name, node in nodes.items()}
    for node in _sort_nodes(nodes):
        name, predecessors = names[id(node)], frozenset(node.predecessors)
        if not node.bodies:
            yield node.operation, name, predecessors
            continue
        body = node.operation()
        while body >= 0:
            for operation, _, _ in _iterate_operations(node.bodies[body]):
                yield operation, name, predecessors
            body = node.operation() if node.repeats else -1


def _collect_predecessors(nodes: Nodes, ends: Collection[int]) -> set[int]:
    """Return nodes and all their direct and indirect predecessors."""
    visited: set[int] = set()
    pending = list(ends)
    while pending:
        node = pending.pop()
        if node not in visited:
            visited.add(node)
            pending += nodes[node].predecessors
    return visited


def _sort_nodes(nodes: Nodes) -> list[GraphNode]:
    """Sort nodes topologically, in insertion order where dependencies allow."""
    done: dict[int, GraphNode] = {}
    left = dict(nodes)
    while left:
        ready = 0
        for name, node in list(left.items()):
            if node.predecessors <= done.keys():
                done[name] = left.pop(name)
                ready += 1
        if not ready:  # a cycle
            raise RefusedRoutineError(errors.INVALID_VALUE)
    return list(done.values())


def _read_handles(address: int, count: int) -> list[int]:
    return list(access_host(ctypes.c_longlong * count, address)) if count else []
