"""All that a host program wrote, over all of its launches: who put which value where, and what made the value.

Nodes are numbered over all launches. An element that a launch finds as an earlier one left it has the node of then.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpu.simulator.trace.packing import Array
from gpu.simulator.trace.tables import ACTIONS
from gpu.stepping.provenance.operations import Operations
from gpu.stepping.provenance.program_order import program_order
from gpu.stepping.provenance.storages import Storages
from gpu.stepping.provenance.turns import Turns
from gpu.stepping.provenance.writes import LaunchWrites, Writes
from gpu.stepping.recording import LaunchSpan, Recording


@dataclass(frozen=True)
class Inputs:
    """The elements that a launch found in an array, whose nodes are `first` and those after it.

    `elements` are the array's own numbers of them.
    """

    launch: int
    storage: int
    first: int
    elements: Array


class Provenance:
    """Everything that the launches of a recording wrote.

    Parameters
    ----------
    recording : Recording
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.storages = Storages()
        self.operators: list[str] = []
        self.inputs: list[Inputs] = []
        # For each launch the first of its nodes, less one, the nodes of its own numbers, and the step before its first.
        self.first_nodes: list[int] = []
        self.nodes_of_launch: list[Array] = []
        self.first_steps: list[int] = []
        # For each step the scope that it is in, whether it is a barrier, and how many of its statement's atomics came
        # to the same element before those of this step.
        self.scopes = np.zeros(0, np.int64)
        self.barriers = np.zeros(0, bool)
        self.turns = np.zeros(0, np.int64)
        # The storages that were read in the launch that first had them: by storage the launch.
        self.read: dict[int, int] = {}
        # By storage what it held before the first launch that has it.
        self.initial: dict[int, Array] = {}
        self._left: dict[int, tuple[Array, Array]] = {}
        self._next_node, self._next_step, self._next_statement = 0, 0, 0
        self._writes: list[Writes] = []
        self._operations: list[Operations] = []
        for launch in recording.launches:
            self._add(launch)
        self.nodes = self._next_node + 1
        self.writes = Writes.joined(self._writes)
        self.operations = Operations.joined(self._operations)

    def writes_to(self, storage: int) -> Array:
        """Return the rows of the writes to a storage, ascending."""
        order, borders = self._by_storage
        return order[borders[storage] : borders[storage + 1]]

    @cached_property
    def _by_storage(self) -> tuple[Array, Array]:
        order = np.argsort(self.writes.storage, kind="stable")
        return order, np.searchsorted(self.writes.storage[order], np.arange(len(self.storages.all) + 1))

    def nodes_in(self, launch: LaunchSpan, numbers: tuple[int, ...]) -> list[int]:
        """Return the nodes that a launch knows by numbers of its own."""
        found: list[int] = self.nodes_of_launch[launch.number][list(numbers)].tolist()
        return found

    def launch_of_node(self, node: int) -> tuple[LaunchSpan, int]:
        """Return the launch that a node is of, and the node's number there."""
        number = int(np.searchsorted(self.first_nodes, node, side="left")) - 1
        return self.recording.launches[number], node - self.first_nodes[number]

    def _add(self, launch: LaunchSpan) -> None:
        operations = Operations.of(launch.trace)
        steps, scopes = program_order(launch.trace)
        base = self._next_node
        self.first_nodes.append(base)
        self.first_steps.append(self._next_step)
        self._next_step += 1
        inputs = launch.trace.data.inputs
        ends = inputs["first"].astype(np.int64) + inputs["count"]
        last = max(int(operations.node.max(initial=0)), int(ends.max(initial=1)) - 1)
        same = np.arange(base, base + last + 1)
        same[0] = 0
        self.nodes_of_launch.append(same)
        writes = LaunchWrites(launch, self.storages, same, steps + self._next_step)
        for entry in inputs.tolist():
            self._find(writes, base, *entry)
        self._note_reads(launch)
        self._add_operations(launch, operations, same)
        to_arrays = list(writes.to_arrays())
        turns = Turns.of(to_arrays, self._next_step, int(steps.max(initial=-1)) + 1)
        self._writes += [turns.taken(each) for each in (*to_arrays, writes.to_variables())]
        self._note_steps(launch, steps, scopes, turns)
        self._leave(launch, same)
        self._next_node += last
        self._next_step += turns.number.size

    def _note_steps(self, launch: LaunchSpan, steps: Array, scopes: Array, turns: Turns) -> None:
        first = np.repeat(np.unique(steps, return_index=True)[1], turns.lengths)
        here = int(self.scopes.max(initial=-1)) + 1
        self.scopes = np.concatenate((self.scopes, [here], scopes[first] + here + 1))
        self.barriers = np.concatenate((self.barriers, [False], launch.trace.is_kind("barrier")[first]))
        self.turns = np.concatenate((self.turns, [0], turns.number))

    def _find(self, writes: LaunchWrites, base: int, first: int, count: int, memory: int, unit: int) -> None:
        """Give elements the nodes that an earlier launch left them with; the others are inputs."""
        launch, same = writes.launch, writes.nodes
        array = launch.trace.arrays[launch.trace.memory.first[memory]]
        storage = self.storages.of_array(launch, array)
        content = launch.trace.array(array.number, 0)
        self.initial.setdefault(storage.number, content)
        nodes = np.arange(first, first + count)
        element = np.minimum(np.arange(count) * unit // array.dtype.itemsize, max(array.count - 1, 0))
        fresh = np.ones(count, bool)
        if storage.number in self._left and array.count:
            before, held = self._left[storage.number]
            if before.dtype == content.dtype and before.size == content.size:
                kept = (before.view(f"V{before.itemsize}") == content.view(f"V{content.itemsize}"))[element]
                fresh = ~kept | (held[element] == 0)
                same[nodes[~fresh]] = held[element[~fresh]]
            by_host = writes.by_host(storage, content, element[fresh], base + nodes[fresh], self._next_step - 1)
            self._writes.append(by_host)
        if fresh.any():
            self.inputs.append(Inputs(launch.number, storage.number, base + first, element))

    def _note_reads(self, launch: LaunchSpan) -> None:
        """Take note of arrays that were read before anything was written there."""
        trace = launch.trace
        accesses = trace.data.accesses
        early = (accesses["action"] == ACTIONS.index("read")) & (accesses["write"] == 0)
        for memory in np.unique(accesses["memory"][early]).tolist():
            array = trace.arrays[trace.memory.first[memory]]
            if array.space in ("global", "constant"):
                storage = self.storages.of_array(launch, array)
                if storage.launch == launch.number:
                    self.initial.setdefault(storage.number, trace.array(array.number, 0))
                    self.read.setdefault(storage.number, launch.number)

    def _add_operations(self, launch: LaunchSpan, found: Operations, same: Array) -> None:
        names = launch.trace.data.operators
        numbers = np.array([self._operator(name) for name in names] or [0])
        self._operations.append(
            Operations(
                same[found.node],
                same[found.sources],
                found.statement + self._next_statement,
                found.moment + launch.first,
                numbers[found.operator],
            )
        )
        self._next_statement += len(launch.trace.data.positions)

    def _operator(self, name: str) -> int:
        if name not in self.operators:
            self.operators.append(name)
        return self.operators.index(name)

    def _leave(self, launch: LaunchSpan, same: Array) -> None:
        """Take note of what arrays hold when a launch is over, and of the nodes of it."""
        trace, end = launch.trace, launch.count
        for array in trace.arrays:
            accessed = array.count and trace.data.memories[array.memory].is_accessed
            if accessed and launch.buffers[array.number] is not None:
                storage = self.storages.of_array(launch, array)
                self._left[storage.number] = (trace.array(array.number, end), same[trace.memory.nodes(array, end)])
