"""The graph of operations of a host program: which values were made where, and from which others.

An operation belongs where its value is first kept: in an element of an array, else in a variable of its thread.
Operations on the way there, as those of one statement or of a function that it calls, are one with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpu.simulator.trace.packing import Array
from gpu.stepping.dataflow.columns import Columns
from gpu.stepping.provenance.provenance import Provenance


@dataclass(frozen=True)
class Definitions:
    """The writes that made something visible: operations, and copies that moved a value.

    Parameters
    ----------
    write : array
        Their numbers among all writes, ascending.
    group : array
        What it defined: one number for each cell of each step.
    is_move : array
        Whether it is a copy.
    """

    write: Array
    group: Array
    is_move: Array

    @cached_property
    def last(self) -> Array:
        """The last write of each group."""
        found = np.zeros(int(self.group.max(initial=-1)) + 1, np.int64)
        found[self.group] = self.write
        return found


class ValueGraph:
    """What made what.

    Parameters
    ----------
    provenance : Provenance
    columns : Columns
    """

    def __init__(self, provenance: Provenance, columns: Columns) -> None:
        self._provenance = provenance
        self._columns = columns
        self._writes = provenance.writes
        storages = provenance.storages.all
        self._in_array = np.array([storage.is_array for storage in storages] or [False])[self._writes.storage]
        # The row of each node among the operations, -1 for what none made.
        self.operation = np.full(provenance.nodes, -1)
        self.operation[provenance.operations.node] = np.arange(provenance.operations.node.size)

    # Where operations belong.

    @cached_property
    def kept(self) -> Array:
        """For each operation the write that made its value visible; -1 where none did."""
        operations, writes = self._provenance.operations, self._writes
        in_array, in_variable = self._first(self._in_array), self._first(~self._in_array)
        shared, private = in_array >= 0, in_variable >= 0
        at_array, at_variable = writes.moment[in_array], writes.moment[in_variable]
        early = shared & (~private | (at_array <= at_variable))
        kept = np.where(early, in_array, in_variable)
        # A value that only waits in a variable until its thread stores it belongs where it is stored. That is decided
        # for all the values of a statement, so that its row does not fall apart.
        used = np.full(self._provenance.nodes, np.iinfo(np.int64).max)
        np.minimum.at(used, operations.sources.reshape(-1), np.repeat(operations.moment, 3))
        waits = shared & private & ~early & (used[operations.node] >= at_array)
        for column in (writes.block, writes.thread):
            waits &= column[in_array] == column[in_variable]
        statements = int(operations.statement.max(initial=0)) + 1
        impatient = np.zeros(statements, bool)
        impatient[operations.statement[private & ~early & ~waits]] = True
        kept = np.where(waits & ~impatient[operations.statement], in_array, kept)
        return np.where(self._useful(shared, private)[operations.statement], kept, -1)

    def _first(self, wanted: Array) -> Array:
        """Return the first write of each operation's value, of those that are wanted."""
        writes = self._writes
        of = self.operation[writes.node]
        rows = np.flatnonzero(wanted & (of >= 0) & ~writes.is_parameter)
        rows = rows[np.argsort(writes.moment[rows], kind="stable")]
        made, first = np.unique(of[rows], return_index=True)
        found = np.full(self._provenance.operations.node.size, -1)
        found[made] = rows[first]
        return found

    def _useful(self, shared: Array, private: Array) -> Array:
        """Return which statements make values that end in arrays: others, such as indices, are not data.

        Of a launch that did not come to its end nobody knows where values would have ended.
        """
        operations = self._provenance.operations
        useful = np.zeros(int(operations.statement.max(initial=0)) + 1, bool)
        useful[operations.statement[shared]] = True
        cut = [launch for launch in self._provenance.recording.launches if launch.trace.failure or launch.trace.stopped]
        for launch in cut:
            within = (operations.moment >= launch.first) & (operations.moment < launch.first + launch.count)
            useful[operations.statement[within & private]] = True
        source = self.operation[operations.sources]
        user, storage = np.nonzero(source >= 0)
        pairs = np.stack((operations.statement[user], operations.statement[source[user, storage]]), axis=1)
        pairs = np.unique(pairs, axis=0)
        while True:
            more = pairs[useful[pairs[:, 0]] & ~useful[pairs[:, 1]], 1]
            if not more.size:
                return useful
            useful[more] = True

    # Copies that move.

    @cached_property
    def moves(self) -> Array:
        """The rows of the writes that copied a value to another column, and of the other copies of the same step.

        What is loaded from global to shared memory moves for its thread only: a picture is clearer without it.
        """
        writes, storages = self._writes, self._provenance.storages.all
        made = np.zeros(len(writes), bool)
        made[self.kept[self.kept >= 0]] = True
        rows = np.flatnonzero((writes.node > 0) & (made | self._in_array))
        order = np.lexsort((rows, writes.node[rows]))
        rows = rows[order]
        node, step = writes.node[rows], writes.step[rows]
        fresh = np.concatenate(([True], node[1:] != node[:-1]))[: rows.size]
        # The last one of the same node in an earlier step: just before the first one of this step.
        run = np.flatnonzero(fresh | np.concatenate(([True], step[1:] != step[:-1]))[: rows.size])
        start = np.repeat(run, np.diff(np.append(run, rows.size)))
        before = np.where(fresh[start], -1, rows[start - 1])
        here = np.flatnonzero(~made[rows])
        rows, node, before = rows[here], node[here], before[here]
        kept = np.append(self.kept, -1)[self.operation[node]]
        before = np.where(before >= 0, before, kept)
        from_storage, from_cell = writes.storage[before], writes.cell[before]
        unknown = (before < 0) | self._read_again(rows, before)
        from_storage[unknown], from_cell[unknown] = self._columns.of_inputs(node[unknown])
        spaces = np.array([storage.space for storage in storages])
        loads = np.isin(spaces[from_storage], ("global", "constant")) & (spaces[writes.storage[rows]] == "shared")
        # From such a load on to global memory, as where results are packed, what counts is where the value was before.
        origin = np.full(len(writes) + 1, -1)
        origin[rows[loads]] = np.flatnonzero(loads)
        loaded = np.flatnonzero((spaces[writes.storage[rows]] == "global") & (origin[before] >= 0))
        from_storage[loaded], from_cell[loaded] = (each[origin[before[loaded]]] for each in (from_storage, from_cell))
        candidates = (from_storage >= 0) & ~loads
        moved = candidates & (
            self._columns.of(from_storage, from_cell) != self._columns.of(writes.storage[rows], writes.cell[rows])
        )
        key = writes.step[rows] * len(storages) + writes.storage[rows]
        return np.sort(rows[candidates & np.isin(key, key[moved])])

    def _read_again(self, rows: Array, before: Array) -> Array:
        """Return which writes have a value from where a launch found it, though another was written with it before.

        With no barrier in between, another thread's write to shared memory is not what was read.
        """
        writes, barriers = self._writes, np.cumsum(self._provenance.barriers)
        shared = np.array([storage.space == "shared" for storage in self._provenance.storages.all] or [False])
        other = (writes.block[rows] != writes.block[before]) | (writes.thread[rows] != writes.thread[before])
        waited = barriers[writes.step[rows]] != barriers[writes.step[before]]
        given = self._columns.input_of(writes.node[rows]) >= 0
        apart = writes.block[rows] != writes.block[before]
        found: Array = shared[writes.storage[before]] & given & other & (apart | ~waited)
        return found

    # What belongs together.

    @cached_property
    def definitions(self) -> Definitions:
        """All writes that made something."""
        kept = self.kept[self.kept >= 0]
        write = np.concatenate((kept, self.moves))
        is_move = np.arange(write.size) >= kept.size
        order = np.argsort(write)
        write, is_move = write[order], is_move[order]
        writes = self._writes
        keys = np.stack((writes.step[write], writes.storage[write], writes.cell[write]), axis=1)
        group = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
        return Definitions(write, group, is_move)

    @cached_property
    def _group_of_operation(self) -> Array:
        """The group that an operation's value made; -1 where it made none by itself."""
        of_write = np.full(len(self._writes) + 1, -1)
        of_write[self.definitions.write] = np.where(self.definitions.is_move, -1, self.definitions.group)
        found: Array = of_write[self.kept]
        return found

    @cached_property
    def members(self) -> tuple[Array, Array]:
        """The operations of each group, as pairs of a group and an operation, by group and then as they were made.

        Where several threads put values into one cell, those that were lost are not among them.
        """
        made, writes = self.definitions, self._writes
        chained = writes.is_atomic[made.write] | (made.last[made.group] == made.write)
        rows = np.flatnonzero(chained & ~made.is_move)
        of_group = self._group_of_operation
        pairs = _pairs(made.group[rows], self.operation[writes.node[made.write[rows]]])
        found = [pairs]
        while pairs.size:
            group, source = self._sources(pairs)
            inner = (source >= 0) & ((of_group[source] < 0) | (of_group[source] == group))
            pairs = _without(_pairs(group[inner], source[inner]), found)
            found.append(pairs)
        whole = np.concatenate(found)
        whole = whole[np.lexsort((whole[:, 1], whole[:, 0]))]
        return whole[:, 0], whole[:, 1]

    def _sources(self, pairs: Array) -> tuple[Array, Array]:
        """Return the group and the operation, -1 for none, of each operand."""
        sources = self._provenance.operations.sources[pairs[:, 1]]
        return np.repeat(pairs[:, 0], 3), self.operation[sources.reshape(-1)]

    @cached_property
    def sources(self) -> tuple[Array, Array]:
        """What each group was made from, as pairs of a group and a node, without repetition."""
        group, operation = self.members
        node = self._provenance.operations.sources[operation].reshape(-1)
        group = np.repeat(group, 3)
        source = self.operation[node]
        of_group = self._group_of_operation
        outer = (node > 0) & ((source < 0) | ((of_group[source] >= 0) & (of_group[source] != group)))
        made = self.definitions
        moved = made.write[made.is_move]
        survived = made.last[made.group[made.is_move]] == moved
        pairs = np.concatenate(
            (
                _pairs(group[outer], node[outer]),
                _pairs(made.group[made.is_move][survived], self._writes.node[moved[survived]]),
            )
        )
        pairs = np.unique(pairs, axis=0)
        return pairs[:, 0], pairs[:, 1]

    def group_of_node(self, node: Array) -> Array:
        """Return the group that each node made; -1 for what none did."""
        of: Array = np.append(self._group_of_operation, -1)[self.operation[node]]
        return of


def _pairs(first: Array, second: Array) -> Array:
    return np.stack((first, second), axis=1).astype(np.int64).reshape(-1, 2)


def _without(pairs: Array, known: list[Array]) -> Array:
    """Return the different pairs that are not known yet."""
    pairs = np.unique(pairs, axis=0)
    if not pairs.size:
        return pairs
    size = int(max(each[:, 1].max(initial=0) for each in (pairs, *known))) + 1
    keys = np.concatenate([each[:, 0] * size + each[:, 1] for each in known])
    return pairs[~np.isin(pairs[:, 0] * size + pairs[:, 1], keys)]
