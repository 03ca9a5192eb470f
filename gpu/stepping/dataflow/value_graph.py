"""The graph of a host program's operations: where each value was computed, from which operands, and in which column.

An operation belongs to the place where its value is first stored: an array element, or else a variable of its thread.
Intermediate operations, in one statement or in a function that it calls, are merged with it. A copy counts only if it
moves a value to another column.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpu.recording.packing import Array
from gpu.stepping.dataflow.provenance import Provenance


class Columns:
    """Map cells to columns."""

    def __init__(self, provenance: Provenance) -> None:
        self._provenance = provenance
        storages = provenance.storages.entries
        self._section = np.array([max(storage.section, 1) for storage in storages] or [1])
        width = self._count_input_elements()
        blocks = [-(-storage.count // max(storage.section, 1)) for storage in storages]
        self._stride = np.array(
            [
                max(storage.section, -(-width // number)) if number > 1 else storage.section
                for storage, number in zip(storages, blocks, strict=True)
            ]
            or [1]
        )
        self._starts = np.array([each.first for each in provenance.inputs] or [0])

    def _count_input_elements(self) -> int:
        """Return the number of elements of the program's first input array."""
        inputs = [self._provenance.storages[number] for number in self._provenance.first_reading_launch]
        arrays = [storage for storage in inputs if storage.space == "global"] or inputs
        return arrays[0].count if arrays else 0

    def find_columns(self, storage: Array, cell: Array) -> Array:
        """Return the column of each cell."""
        block, offset = np.divmod(cell, self._section[storage])
        column: Array = block * self._stride[storage] + offset
        return column

    def find_input_cells(self, node: Array) -> tuple[Array, Array]:
        """Return the storage and the cell of nodes that are inputs of a launch; the storage of any other node is -1."""
        storage, cell = np.full(node.size, -1), np.zeros(node.size, np.int64)
        input_number = np.searchsorted(self._starts, node, side="right") - 1
        for number in np.unique(input_number):
            if 0 <= number < len(self._provenance.inputs):
                inputs = self._provenance.inputs[number]
                rows = np.flatnonzero((input_number == number) & (node - inputs.first < inputs.elements.size))
                storage[rows], cell[rows] = inputs.storage, inputs.elements[node[rows] - inputs.first]
        return storage, cell

    def find_input_indices(self, node: Array) -> Array:
        """Return the index of the inputs that contain each node; -1 for an operation's node."""
        input_number = np.searchsorted(self._starts, node, side="right") - 1
        sizes = np.array([each.elements.size for each in self._provenance.inputs] or [0])
        inside = (input_number >= 0) & (node - self._starts[input_number] < sizes[input_number])
        return np.where(inside, input_number, -1)


@dataclass(frozen=True)
class Definitions:
    """The writes that define visible values: results of operations, and copies that move a value.

    Parameters
    ----------
    write : array
        Their indices among all writes, ascending.
    group : array
        The defined value's group: one number per cell and step.
    is_move : array
        Whether the write is a copy.
    """

    write: Array
    group: Array
    is_move: Array

    @cached_property
    def last_writes(self) -> Array:
        """The last write of each group."""
        last = np.zeros(int(self.group.max(initial=-1)) + 1, np.int64)
        last[self.group] = self.write
        return last


class ValueGraph:
    """The values of a recording, their operations and their sources."""

    def __init__(self, provenance: Provenance, columns: Columns) -> None:
        self._provenance = provenance
        self._columns = columns
        self._writes = provenance.writes
        storages = provenance.storages.entries
        self._in_array = np.array([storage.is_array for storage in storages] or [False])[self._writes.storage]
        # The index of each node's operation; -1 for a node without one.
        self.operation_of_node = np.full(provenance.node_count, -1)
        self.operation_of_node[provenance.operations.node] = np.arange(provenance.operations.node.size)

    # The places of operations.

    @cached_property
    def visible_writes(self) -> Array:
        """For each operation the write that made its value visible; -1 if there is none."""
        operations, writes = self._provenance.operations, self._writes
        in_array, in_variable = self._find_first_writes(self._in_array), self._find_first_writes(~self._in_array)
        shared, private = in_array >= 0, in_variable >= 0
        at_array, at_variable = writes.moment[in_array], writes.moment[in_variable]
        early = shared & (~private | (at_array <= at_variable))
        visible = np.where(early, in_array, in_variable)
        # A value that is in a variable only until its thread stores it belongs to the store. This is decided for all
        # values of a statement together, so that they stay in one row.
        used = np.full(self._provenance.node_count, np.iinfo(np.int64).max)
        np.minimum.at(used, operations.sources.reshape(-1), np.repeat(operations.moment, 3))
        waits_for_store = shared & private & ~early & (used[operations.node] >= at_array)
        for column in (writes.block, writes.thread):
            waits_for_store &= column[in_array] == column[in_variable]
        statements = int(operations.statement.max(initial=0)) + 1
        uses_variables = np.zeros(statements, bool)
        uses_variables[operations.statement[private & ~early & ~waits_for_store]] = True
        visible = np.where(waits_for_store & ~uses_variables[operations.statement], in_array, visible)
        return np.where(self._find_data_statements(shared, private)[operations.statement], visible, -1)

    def _find_first_writes(self, selected: Array) -> Array:
        """Return the first of the selected writes of each operation's value."""
        writes = self._writes
        operation = self.operation_of_node[writes.node]
        rows = np.flatnonzero(selected & (operation >= 0) & ~writes.is_parameter)
        rows = rows[np.argsort(writes.moment[rows], kind="stable")]
        operations, first = np.unique(operation[rows], return_index=True)
        first_writes = np.full(self._provenance.operations.node.size, -1)
        first_writes[operations] = rows[first]
        return first_writes

    def _find_data_statements(self, shared: Array, private: Array) -> Array:
        """Return which statements compute values that end in arrays; other values, such as indices, are not data.

        If a launch did not complete, the destination of its values is unknown, so all its variables count.
        """
        operations = self._provenance.operations
        useful = np.zeros(int(operations.statement.max(initial=0)) + 1, bool)
        useful[operations.statement[shared]] = True
        incomplete = [
            launch for launch in self._provenance.recording.launches if launch.trace.failure or launch.trace.stop_reason
        ]
        for launch in incomplete:
            in_launch = (operations.moment >= launch.first) & (operations.moment < launch.first + launch.count)
            useful[operations.statement[in_launch & private]] = True
        source = self.operation_of_node[operations.sources]
        user, storage = np.nonzero(source >= 0)
        pairs = np.stack((operations.statement[user], operations.statement[source[user, storage]]), axis=1)
        pairs = np.unique(pairs, axis=0)
        while True:
            newly_used = pairs[useful[pairs[:, 0]] & ~useful[pairs[:, 1]], 1]
            if not newly_used.size:
                return useful
            useful[newly_used] = True

    # Copies that move values.

    @cached_property
    def moves(self) -> Array:
        """The writes that copied a value to another column, and the other copies of the same step.

        A load from global to shared memory does not count as a move, which keeps the picture clear.
        """
        writes, storages = self._writes, self._provenance.storages.entries
        is_defining = np.zeros(len(writes), bool)
        is_defining[self.visible_writes[self.visible_writes >= 0]] = True
        rows = np.flatnonzero((writes.node > 0) & (is_defining | self._in_array))
        order = np.lexsort((rows, writes.node[rows]))
        rows = rows[order]
        node, step = writes.node[rows], writes.step[rows]
        is_first = np.concatenate(([True], node[1:] != node[:-1]))[: rows.size]
        # The last write of the same node in an earlier step: just before the first one of this step.
        run = np.flatnonzero(is_first | np.concatenate(([True], step[1:] != step[:-1]))[: rows.size])
        start = np.repeat(run, np.diff(np.append(run, rows.size)))
        source_write = np.where(is_first[start], -1, rows[start - 1])
        copies = np.flatnonzero(~is_defining[rows])
        rows, node, source_write = rows[copies], node[copies], source_write[copies]
        visible = np.append(self.visible_writes, -1)[self.operation_of_node[node]]
        source_write = np.where(source_write >= 0, source_write, visible)
        from_storage, from_cell = writes.storage[source_write], writes.cell[source_write]
        unknown = (source_write < 0) | self._find_input_copies(rows, source_write)
        from_storage[unknown], from_cell[unknown] = self._columns.find_input_cells(node[unknown])
        spaces = np.array([storage.space for storage in storages])
        loads = np.isin(spaces[from_storage], ("global", "constant")) & (spaces[writes.storage[rows]] == "shared")
        # For a store of such a loaded value to global memory, as in stream compaction, the load's source counts.
        origin = np.full(len(writes) + 1, -1)
        origin[rows[loads]] = np.flatnonzero(loads)
        loaded = np.flatnonzero((spaces[writes.storage[rows]] == "global") & (origin[source_write] >= 0))
        from_storage[loaded], from_cell[loaded] = (
            each[origin[source_write[loaded]]] for each in (from_storage, from_cell)
        )
        candidates = (from_storage >= 0) & ~loads
        moved = candidates & (
            self._columns.find_columns(from_storage, from_cell)
            != self._columns.find_columns(writes.storage[rows], writes.cell[rows])
        )
        key = writes.step[rows] * len(storages) + writes.storage[rows]
        return np.sort(rows[candidates & np.isin(key, key[moved])])

    def _find_input_copies(self, rows: Array, source_writes: Array) -> Array:
        """Return which writes have an input value, although an earlier write stored the same value elsewhere.

        Without a barrier in between, another thread's write to shared memory cannot be the source of a read.
        """
        writes, barriers = self._writes, np.cumsum(self._provenance.barriers)
        shared = np.array([storage.space == "shared" for storage in self._provenance.storages.entries] or [False])
        other = (writes.block[rows] != writes.block[source_writes]) | (
            writes.thread[rows] != writes.thread[source_writes]
        )
        passed_barrier = barriers[writes.step[rows]] != barriers[writes.step[source_writes]]
        is_input = self._columns.find_input_indices(writes.node[rows]) >= 0
        other_block = writes.block[rows] != writes.block[source_writes]
        result: Array = shared[writes.storage[source_writes]] & is_input & other & (other_block | ~passed_barrier)
        return result

    # Groups.

    @cached_property
    def definitions(self) -> Definitions:
        """All writes that define visible values."""
        visible = self.visible_writes[self.visible_writes >= 0]
        write = np.concatenate((visible, self.moves))
        is_move = np.arange(write.size) >= visible.size
        order = np.argsort(write)
        write, is_move = write[order], is_move[order]
        writes = self._writes
        keys = np.stack((writes.step[write], writes.storage[write], writes.cell[write]), axis=1)
        group = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
        return Definitions(write, group, is_move)

    @cached_property
    def _group_of_operation(self) -> Array:
        """The group that an operation's value defined; -1 if it defined none."""
        group_of_write = np.full(len(self._writes) + 1, -1)
        group_of_write[self.definitions.write] = np.where(self.definitions.is_move, -1, self.definitions.group)
        group: Array = group_of_write[self.visible_writes]
        return group

    @cached_property
    def members(self) -> tuple[Array, Array]:
        """The operations of each group, as pairs of a group and an operation, sorted by both.

        If several threads wrote to one cell, operations with overwritten values are omitted.
        """
        definitions, writes = self.definitions, self._writes
        chained = writes.is_atomic[definitions.write] | (
            definitions.last_writes[definitions.group] == definitions.write
        )
        rows = np.flatnonzero(chained & ~definitions.is_move)
        group_of_operation = self._group_of_operation
        pairs = _stack_pairs(definitions.group[rows], self.operation_of_node[writes.node[definitions.write[rows]]])
        found_pairs = [pairs]
        while pairs.size:
            group, source = self._find_operands(pairs)
            inner = (source >= 0) & ((group_of_operation[source] < 0) | (group_of_operation[source] == group))
            pairs = _subtract_pairs(_stack_pairs(group[inner], source[inner]), found_pairs)
            found_pairs.append(pairs)
        members = np.concatenate(found_pairs)
        members = members[np.lexsort((members[:, 1], members[:, 0]))]
        return members[:, 0], members[:, 1]

    def _find_operands(self, pairs: Array) -> tuple[Array, Array]:
        """Return the group and the operation, -1 for none, of each operand."""
        sources = self._provenance.operations.sources[pairs[:, 1]]
        return np.repeat(pairs[:, 0], 3), self.operation_of_node[sources.reshape(-1)]

    @cached_property
    def sources(self) -> tuple[Array, Array]:
        """The sources of each group, as unique pairs of a group and a node."""
        group, operation = self.members
        node = self._provenance.operations.sources[operation].reshape(-1)
        group = np.repeat(group, 3)
        source = self.operation_of_node[node]
        group_of_operation = self._group_of_operation
        outer = (node > 0) & (
            (source < 0) | ((group_of_operation[source] >= 0) & (group_of_operation[source] != group))
        )
        definitions = self.definitions
        moved = definitions.write[definitions.is_move]
        survived = definitions.last_writes[definitions.group[definitions.is_move]] == moved
        pairs = np.concatenate(
            (
                _stack_pairs(group[outer], node[outer]),
                _stack_pairs(definitions.group[definitions.is_move][survived], self._writes.node[moved[survived]]),
            )
        )
        pairs = np.unique(pairs, axis=0)
        return pairs[:, 0], pairs[:, 1]

    def group_of_node(self, node: Array) -> Array:
        """Return the group that each node defined; -1 if it defined none."""
        group: Array = np.append(self._group_of_operation, -1)[self.operation_of_node[node]]
        return group


def _stack_pairs(first: Array, second: Array) -> Array:
    return np.stack((first, second), axis=1).astype(np.int64).reshape(-1, 2)


def _subtract_pairs(pairs: Array, others: list[Array]) -> Array:
    """Return the unique pairs that are not in other arrays of pairs."""
    pairs = np.unique(pairs, axis=0)
    if not pairs.size:
        return pairs
    size = int(max(each[:, 1].max(initial=0) for each in (pairs, *others))) + 1
    keys = np.concatenate([each[:, 0] * size + each[:, 1] for each in others])
    return pairs[~np.isin(pairs[:, 0] * size + pairs[:, 1], keys)]
