"""All that a host program wrote, over all of its launches: who put which value where, and what made the value.

Nodes are numbered over all launches. An element that a launch finds as an earlier one left it has the node of then.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.simulator.trace.types import TraceArray
from gpu.stepping.flat import WIDTH, FlatTrace, FlatWrites
from gpu.stepping.places import Place, Places
from gpu.stepping.program_order import program_order
from gpu.stepping.recording import Launch, Recording

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Writes:
    """One row for each value that was put somewhere, in the order of the program and, within a step, of time.

    Parameters
    ----------
    place, cell, node : arrays
        `node` is 0 where nothing that is known made the value.
    step : array
        The place in the program, over all launches.
    moment : array
        The number of the event over all launches.
    block, thread : arrays
    raw : uint8 array, shape (writes, 8)
    is_parameter, is_atomic : arrays
    """

    place: Array
    cell: Array
    node: Array
    step: Array
    moment: Array
    block: Array
    thread: Array
    raw: Array
    is_parameter: Array
    is_atomic: Array

    def __len__(self) -> int:
        return int(self.place.size)

    def take(self, rows: Array) -> Writes:
        """Return some of the rows."""
        return Writes(*(getattr(self, each.name)[rows] for each in fields(self)))

    @classmethod
    def joined(cls, parts: list[Writes]) -> Writes:
        """Return several as one, in order."""
        whole = cls(*(np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(cls)))
        return whole.take(np.lexsort((whole.moment, whole.step)))


@dataclass(frozen=True)
class Operations:
    """The operations of all launches, one row for each value, ascending by node.

    Parameters
    ----------
    node : array
    sources : array, shape (values, 3)
    statement : array
        A number for the statement in the source, different in different launches.
    moment : array
    operator : array
        The number of the operator's name in `History.operators`.
    """

    node: Array
    sources: Array
    statement: Array
    moment: Array
    operator: Array


@dataclass(frozen=True)
class Inputs:
    """The elements that a launch found in an array, whose nodes are `first` and those after it.

    `elements` are the array's own numbers of them.
    """

    launch: int
    place: int
    first: int
    elements: Array


class History:
    """Everything that the launches of a recording wrote.

    Parameters
    ----------
    recording : Recording
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.places = Places()
        self.operators: list[str] = []
        self.inputs: list[Inputs] = []
        # For each launch the first of its nodes, less one, the nodes of its own numbers, and the step before its first.
        self.first_nodes: list[int] = []
        self.nodes_of_launch: list[Array] = []
        self.first_steps: list[int] = []
        # For each step the scope that it is in, and whether it is a barrier.
        self.scopes = np.zeros(0, np.int64)
        self.barriers = np.zeros(0, bool)
        # The places that were read in the launch that first had them: by place the launch.
        self.read: dict[int, int] = {}
        # By place what it held before the first launch that has it.
        self.initial: dict[int, Array] = {}
        self._left: dict[int, tuple[Array, Array]] = {}
        self._next_node, self._next_step, self._next_statement = 0, 0, 0
        self._writes: list[Writes] = []
        self._operations: list[Operations] = []
        for launch in recording.launches:
            self._add(launch)
        self.nodes = self._next_node + 1
        self.writes = Writes.joined(self._writes) if self._writes else _no_writes()
        self.operations = _joined(self._operations)

    def nodes_in(self, launch: Launch, numbers: tuple[int, ...]) -> list[int]:
        """Return the nodes that a launch knows by numbers of its own."""
        found: list[int] = self.nodes_of_launch[launch.number][list(numbers)].tolist()
        return found

    def launch_of_node(self, node: int) -> tuple[Launch, int]:
        """Return the launch that a node is of, and the node's number there."""
        number = int(np.searchsorted(self.first_nodes, node, side="left")) - 1
        return self.recording.launches[number], node - self.first_nodes[number]

    def _add(self, launch: Launch) -> None:
        flat = FlatTrace(launch.trace)
        steps, scopes = program_order(flat)
        base = self._next_node
        self.first_nodes.append(base)
        self.first_steps.append(self._next_step)
        self._note_steps(launch, flat, steps, scopes)
        self._next_step += 1
        inputs: list[tuple[int, int, int, int]] = launch.trace.about["inputs"]
        last = max([int(flat.operations.node.max(initial=0)), *(first + count - 1 for first, count, _, _ in inputs)])
        same = np.arange(base, base + last + 1)
        same[0] = 0
        self.nodes_of_launch.append(same)
        for first, count, memory, unit in inputs:
            self._find(launch, same, base, (first, count, memory, unit))
        self._note_reads(launch, flat)
        self._add_operations(launch, flat, same)
        for writes in (flat.arrays, flat.variables):
            if writes.event.size:
                self._writes.append(self._global(launch, flat, writes, same, steps))
        self._leave(launch, flat, same)
        self._next_node += last
        self._next_step += int(steps.max(initial=-1)) + 1

    def _note_steps(self, launch: Launch, flat: FlatTrace, steps: Array, scopes: Array) -> None:
        kinds = launch.trace.about["kinds"]
        first = np.unique(steps, return_index=True)[1]
        barrier = flat.event("kind")[first] == (kinds.index("barrier") if "barrier" in kinds else -1)
        here = int(self.scopes.max(initial=-1)) + 1
        self.scopes = np.concatenate((self.scopes, [here], scopes[first] + here + 1))
        self.barriers = np.concatenate((self.barriers, [False], barrier))

    def _find(self, launch: Launch, same: Array, base: int, entry: tuple[int, int, int, int]) -> None:
        """Give elements the nodes that an earlier launch left them with; the others are inputs."""
        first, count, memory, unit = entry
        array = launch.trace.arrays[launch.trace.first_array[memory]]
        place = self.places.of_array(launch, array)
        content = launch.trace.array(array.number, 0)
        self.initial.setdefault(place.number, content)
        nodes = np.arange(first, first + count)
        element = np.minimum(np.arange(count) * unit // array.dtype.itemsize, max(array.count - 1, 0))
        fresh = np.ones(count, bool)
        if place.number in self._left and array.count:
            before, held = self._left[place.number]
            if before.dtype == content.dtype and before.size == content.size:
                kept = (before.view(f"V{before.itemsize}") == content.view(f"V{content.itemsize}"))[element]
                fresh = ~kept | (held[element] == 0)
                same[nodes[~fresh]] = held[element[~fresh]]
            self._writes.append(
                _by_host(launch, place, content, element[fresh], base + nodes[fresh], self._next_step - 1)
            )
        if fresh.any():
            self.inputs.append(Inputs(launch.number, place.number, base + first, element))

    def _note_reads(self, launch: Launch, flat: FlatTrace) -> None:
        for memory in flat.read_memories:
            array = launch.trace.arrays[launch.trace.first_array[memory]]
            if array.space in ("global", "constant"):
                place = self.places.of_array(launch, array)
                if place.launch == launch.number:
                    self.initial.setdefault(place.number, launch.trace.array(array.number, 0))
                    self.read.setdefault(place.number, launch.number)

    def _add_operations(self, launch: Launch, flat: FlatTrace, same: Array) -> None:
        found = flat.operations
        names: list[str] = launch.trace.about["operators"]
        numbers = np.array([self._operator(name) for name in names] or [0])
        statement = flat.event("position")[found.event].astype(np.int64) + self._next_statement
        self._next_statement += len(launch.trace.about["positions"])
        self._operations.append(
            Operations(
                same[found.node], same[found.sources], statement, found.event + launch.first, numbers[found.operator]
            )
        )

    def _operator(self, name: str) -> int:
        if name not in self.operators:
            self.operators.append(name)
        return self.operators.index(name)

    def _global(self, launch: Launch, flat: FlatTrace, found: FlatWrites, same: Array, steps: Array) -> Writes:
        """Return writes by place, cell and thread."""
        batch = flat.event("batch")[found.event]
        trace = launch.trace
        first = np.array([each[0] for each in trace.about["batches"]])
        lanes = np.array([trace.lanes_per_block_of(number) for number in range(first.size)])
        block = first[batch] + found.lane // lanes[batch]
        thread = found.lane % lanes[batch]
        place, cell = np.zeros(found.event.size, np.int64), np.zeros(found.event.size, np.int64)
        keys = found.owner * first.size + batch
        for key in np.unique(keys):
            rows = np.flatnonzero(keys == key)
            owner, of_batch = divmod(int(key), int(first.size))
            if found is flat.variables:
                dtype = flat.dtype_of_variable(owner)
                where = self.places.of_variable(launch, of_batch, owner >> 20, owner % (1 << 20), dtype)
                cell[rows] = block[rows] * where.section + thread[rows]
            else:
                where = self.places.of_array(launch, trace.arrays[trace.first_array[owner]])
                cell[rows] = _cells(trace.about["memories"][owner], where, found.cell[rows], block[rows], thread[rows])
            place[rows] = where.number
        return Writes(
            place,
            cell,
            same[found.node],
            steps[found.event] + self._next_step,
            found.event.astype(np.int64) + launch.first,
            block,
            thread,
            found.raw,
            found.is_parameter,
            found.is_atomic,
        )

    def _leave(self, launch: Launch, flat: FlatTrace, same: Array) -> None:
        """Take note of what arrays hold when a launch is over, and of the nodes of it."""
        trace = launch.trace
        for array in trace.arrays:
            accessed = trace.about["memories"][array.memory]["unit"]
            if launch.buffers[array.number] is None or not array.count or not accessed:
                continue
            place = self.places.of_array(launch, array)
            nodes = self._nodes_at_end(launch, array)
            self._left[place.number] = (trace.array(array.number, len(trace.events)), same[nodes])

    def _nodes_at_end(self, launch: Launch, array: TraceArray) -> Array:
        """Return the node of each element when a launch is over."""
        trace = launch.trace
        log = trace.log(array.memory)
        places = np.arange(array.count) * array.dtype.itemsize // log.unit
        found: Array = log.nodes_of(places, trace.writes_before(array.memory, len(trace.events)))
        return found


def _by_host(launch: Launch, place: Place, content: Array, element: Array, node: Array, step: int) -> Writes:
    """Return what the host put into an array between two launches, or found there without a known origin."""
    raw = np.zeros((element.size, WIDTH), np.uint8)
    size = content.dtype.itemsize
    raw[:, :size] = content[element].view(np.uint8).reshape(-1, size)
    nobody = np.full(element.size, -1)
    never = np.zeros(element.size, bool)
    return Writes(
        np.full(element.size, place.number),
        element,
        node,
        np.full(element.size, step),
        np.full(element.size, launch.first - 1),
        nobody,
        nobody,
        raw,
        never,
        never,
    )


def _cells(memory: dict[str, Any], place: Place, flat: Array, block: Array, thread: Array) -> Array:
    """Return the cell of each element, which is counted over all of a recorded memory."""
    if place.space == "local":
        return np.asarray(block * place.section + thread * place.extent + flat // memory["lanes"])
    if place.space == "shared":
        return np.asarray(block * place.section + flat % (memory["stride"] // place.dtype.itemsize))
    return flat


def _joined(parts: list[Operations]) -> Operations:
    if not parts:
        none = np.zeros(0, np.int64)
        return Operations(none, np.zeros((0, 3), np.int64), none, none, none)
    whole = Operations(*(np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(Operations)))
    order = np.argsort(whole.node, kind="stable")
    return Operations(*(getattr(whole, each.name)[order] for each in fields(Operations)))


def _no_writes() -> Writes:
    none, never = np.zeros(0, np.int64), np.zeros(0, bool)
    return Writes(none, none, none, none, none, none, none, np.zeros((0, WIDTH), np.uint8), never, never)
