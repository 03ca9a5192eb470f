"""All writes of a host program, over all of its launches: the writer of each value, and its origin.

Nodes are numbered over all launches. An element that an earlier launch wrote keeps its node in later launches.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpu.recording.packing import Array
from gpu.recording.recording import LaunchSpan, Recording
from gpu.recording.tables import ACTIONS
from gpu.stepping.dataflow.program_order import compute_program_order
from gpu.stepping.dataflow.writes import LaunchWrites, Operations, Storages, Turns, Writes


@dataclass(frozen=True)
class Inputs:
    """The elements that were in an array before a launch; their nodes are `first` and the following numbers.

    `elements` are their numbers in the array.
    """

    launch: int
    storage: int
    first: int
    elements: Array


class Provenance:
    """All writes of a recording's launches, with their values' origins."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.storages = Storages()
        self.operators: list[str] = []
        self.inputs: list[Inputs] = []
        # For each launch: its first node minus one, its nodes by the trace's numbers, and the step before its first.
        self.first_nodes: list[int] = []
        self.nodes_of_launch: list[Array] = []
        self.first_steps: list[int] = []
        # For each step: its scope, whether it is a barrier, and the number of atomic operations of the same statement
        # that preceded it on the same element.
        self.scopes = np.zeros(0, np.int64)
        self.barriers = np.zeros(0, bool)
        self.turns = np.zeros(0, np.int64)
        # The storages that are inputs, each with the first launch that read it.
        self.first_reading_launch: dict[int, int] = {}
        # The content of each storage before the first launch that uses it.
        self.initial_contents: dict[int, Array] = {}
        self._final_contents: dict[int, tuple[Array, Array]] = {}
        self._next_node, self._next_step, self._next_statement = 0, 0, 0
        self._writes: list[Writes] = []
        self._operations: list[Operations] = []
        for launch in recording.launches:
            self._add_launch(launch)
        self.node_count = self._next_node + 1
        self.writes = Writes.concatenate(self._writes)
        self.operations = Operations.concatenate(self._operations)

    def find_writes(self, storage: int) -> Array:
        """Return the indices of the writes to a storage, ascending."""
        order, borders = self._storage_order
        return order[borders[storage] : borders[storage + 1]]

    @cached_property
    def _storage_order(self) -> tuple[Array, Array]:
        order = np.argsort(self.writes.storage, kind="stable")
        return order, np.searchsorted(self.writes.storage[order], np.arange(len(self.storages.entries) + 1))

    def to_global_nodes(self, launch: LaunchSpan, numbers: tuple[int, ...]) -> list[int]:
        """Return the global nodes for a launch's own node numbers."""
        nodes: list[int] = self.nodes_of_launch[launch.number][list(numbers)].tolist()
        return nodes

    def find_node_launch(self, node: int) -> tuple[LaunchSpan, int]:
        """Return the launch that created a node, and the node's number in that launch."""
        number = int(np.searchsorted(self.first_nodes, node, side="left")) - 1
        return self.recording.launches[number], node - self.first_nodes[number]

    def _add_launch(self, launch: LaunchSpan) -> None:
        operations = Operations.from_trace(launch.trace)
        steps, scopes = compute_program_order(launch.trace)
        base = self._next_node
        self.first_nodes.append(base)
        self.first_steps.append(self._next_step)
        self._next_step += 1
        inputs = launch.trace.data.inputs
        ends = inputs["first"].astype(np.int64) + inputs["count"]
        last = max(int(operations.node.max(initial=0)), int(ends.max(initial=1)) - 1)
        global_nodes = np.arange(base, base + last + 1)
        global_nodes[0] = 0
        self.nodes_of_launch.append(global_nodes)
        writes = LaunchWrites(launch, self.storages, global_nodes, steps + self._next_step)
        for entry in inputs.tolist():
            self._add_inputs(writes, base, *entry)
        self._record_reads(launch)
        self._add_operations(launch, operations, global_nodes)
        to_arrays = list(writes.build_array_writes())
        turns = Turns.from_writes(to_arrays, self._next_step, int(steps.max(initial=-1)) + 1)
        self._writes += [turns.renumber_steps(each) for each in (*to_arrays, writes.build_variable_writes())]
        self._add_steps(launch, steps, scopes, turns)
        self._record_final_content(launch, global_nodes)
        self._next_node += last
        self._next_step += turns.turn_numbers.size

    def _add_steps(self, launch: LaunchSpan, steps: Array, scopes: Array, turns: Turns) -> None:
        first = np.repeat(np.unique(steps, return_index=True)[1], turns.lengths)
        scope_count = int(self.scopes.max(initial=-1)) + 1
        self.scopes = np.concatenate((self.scopes, [scope_count], scopes[first] + scope_count + 1))
        self.barriers = np.concatenate((self.barriers, [False], launch.trace.find_events_of_kind("barrier")[first]))
        self.turns = np.concatenate((self.turns, [0], turns.turn_numbers))

    def _add_inputs(self, writes: LaunchWrites, base: int, first: int, count: int, memory: int, unit: int) -> None:
        """Assign to elements the nodes from an earlier launch; the other elements become inputs."""
        launch, global_nodes = writes.launch, writes.nodes
        array = launch.trace.arrays[launch.trace.memory.first_arrays[memory]]
        storage = self.storages.register_array(launch, array)
        content = launch.trace.array(array.number, 0)
        self.initial_contents.setdefault(storage.number, content)
        nodes = np.arange(first, first + count)
        element = np.minimum(np.arange(count) * unit // array.dtype.itemsize, max(array.count - 1, 0))
        is_input = np.ones(count, bool)
        if storage.number in self._final_contents and array.count:
            left_content, left_nodes = self._final_contents[storage.number]
            if left_content.dtype == content.dtype and left_content.size == content.size:
                is_unchanged = (left_content.view(f"V{left_content.itemsize}") == content.view(f"V{content.itemsize}"))[
                    element
                ]
                is_input = ~is_unchanged | (left_nodes[element] == 0)
                global_nodes[nodes[~is_input]] = left_nodes[element[~is_input]]
            by_host = writes.build_host_writes(
                storage, content, element[is_input], base + nodes[is_input], self._next_step - 1
            )
            self._writes.append(by_host)
        if is_input.any():
            self.inputs.append(Inputs(launch.number, storage.number, base + first, element))

    def _record_reads(self, launch: LaunchSpan) -> None:
        """Record the arrays that were read before anything was written to them."""
        trace = launch.trace
        accesses = trace.data.accesses
        early = (accesses["action"] == ACTIONS.index("read")) & (accesses["write"] == 0)
        for memory in np.unique(accesses["memory"][early]).tolist():
            array = trace.arrays[trace.memory.first_arrays[memory]]
            if array.space in ("global", "constant"):
                storage = self.storages.register_array(launch, array)
                if storage.launch == launch.number:
                    self.initial_contents.setdefault(storage.number, trace.array(array.number, 0))
                    self.first_reading_launch.setdefault(storage.number, launch.number)

    def _add_operations(self, launch: LaunchSpan, operations: Operations, global_nodes: Array) -> None:
        names = launch.trace.data.operators
        numbers = np.array([self._intern_operator(name) for name in names] or [0])
        self._operations.append(
            Operations(
                global_nodes[operations.node],
                global_nodes[operations.sources],
                operations.statement + self._next_statement,
                operations.moment + launch.first,
                numbers[operations.operator],
            )
        )
        self._next_statement += len(launch.trace.data.positions)

    def _intern_operator(self, name: str) -> int:
        if name not in self.operators:
            self.operators.append(name)
        return self.operators.index(name)

    def _record_final_content(self, launch: LaunchSpan, global_nodes: Array) -> None:
        """Record the contents and nodes of arrays at the end of a launch."""
        trace, end = launch.trace, launch.count
        for array in trace.arrays:
            accessed = array.count and trace.data.memories[array.memory].is_accessed
            if accessed and launch.buffers[array.number] is not None:
                storage = self.storages.register_array(launch, array)
                self._final_contents[storage.number] = (
                    trace.array(array.number, end),
                    global_nodes[trace.memory.nodes(array, end)],
                )
