"""Everything that made a value: the graph of operations down to elements of arrays."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gpu.simulator.trace.arrays import TraceArrays
from gpu.simulator.trace.data import TraceData
from gpu.simulator.trace.lanes import TraceLanes
from gpu.simulator.trace.packing import Array
from gpu.simulator.trace.types import TraceNode


@dataclass(frozen=True, eq=False)
class NodeGroup:
    """Nodes of one kind: what an operation made in lanes of one event, or elements of one array at the launch.

    Parameters
    ----------
    operator : str
        As of `TraceNode`; "" for elements.
    event : int
        When; -1 for elements.
    numbers : array
        The nodes, ascending.
    values : array
    sources : array, shape (nodes, operands)
        The node of each operand, 0 where it has none.
    operands : tuple of array or None
        For each operand the values, which count where it has no node; None where all have one.
    blocks, threads : array
        Who, one a node; -1 for elements.
    array : int
        The number of the array of elements; -1 of an operation.
    elements : array
        Which ones; -1 of an operation.
    """

    operator: str
    event: int
    numbers: Array
    values: Array
    sources: Array
    operands: tuple[Array | None, ...]
    blocks: Array
    threads: Array
    array: int
    elements: Array

    def nodes(self) -> Iterator[TraceNode]:
        """Return the nodes one by one."""
        columns = (self.numbers, self.blocks, self.threads, self.elements)
        rows = zip(*(column.tolist() for column in columns), self.sources.tolist(), strict=True)
        for place, (number, block, thread, element, sources) in enumerate(rows):
            operands = tuple(
                values[place] if not source and values is not None else None
                for source, values in zip(sources, self.operands, strict=True)
            )
            yield TraceNode(
                number,
                self.operator,
                self.values[place],
                tuple(sources),
                operands,
                self.event,
                block,
                thread,
                self.array,
                element,
            )


@dataclass(frozen=True, eq=False)
class Ancestry:
    """Everything that made a value.

    Parameters
    ----------
    root : int
        The node of the value; 0 where nothing made it.
    groups : tuple of NodeGroup
        The root and all that it was made from: elements first, then operations as they ran. Copies leave no nodes.
    """

    root: int
    groups: tuple[NodeGroup, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ancestry) and (self.root, self.nodes) == (other.root, other.nodes)

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return sum(group.numbers.size for group in self.groups)

    @cached_property
    def nodes(self) -> dict[int, TraceNode]:
        """All nodes by number, sources before what they made."""
        return {node.number: node for group in self.groups for node in group.nodes()}

    @property
    def inputs(self) -> list[TraceNode]:
        """The elements of arrays, as they were at the launch, that the value was made from."""
        return [node for group in self.groups if not group.operator for node in group.nodes()]

    @property
    def operations(self) -> list[TraceNode]:
        """The operations that made the value, in the order in which they ran."""
        return [node for group in self.groups if group.operator for node in group.nodes()]


class NodeTable:
    """The nodes of a trace, looked up many at once.

    Parameters
    ----------
    data : TraceData
    lanes : TraceLanes
    arrays : TraceArrays
    """

    def __init__(self, data: TraceData, lanes: TraceLanes, arrays: TraceArrays) -> None:
        self._data, self._lanes, self._arrays = data, lanes, arrays
        self._operations = data.operations
        self._first = np.ascontiguousarray(self._operations["first"])
        self._inputs = data.inputs[np.argsort(data.inputs["first"], kind="stable")]
        self._input_first = self._inputs["first"].astype(np.int64)
        self._input_end = self._input_first + self._inputs["count"]

    def ancestry(self, root: int) -> Ancestry:
        """Return all that made a value, given its node."""
        wanted: dict[int, list[Array]] = {}
        inputs: list[Array] = []
        # The rows that are still to be looked at, the latest first: no operation's source is made after it.
        rows: list[int] = []

        def want(numbers: Array) -> None:
            numbers = numbers[numbers > 0]
            of_input = np.searchsorted(self._input_first, numbers, side="right") - 1
            is_input = of_input >= 0
            is_input[is_input] = numbers[is_input] < self._input_end[of_input[is_input]]
            if is_input.any():
                inputs.append(numbers[is_input])
                numbers = numbers[~is_input]
            of_row = np.searchsorted(self._first, numbers, side="right") - 1
            for row in _distinct(of_row).tolist():
                if row not in wanted:
                    wanted[row] = []
                    heapq.heappush(rows, -row)
                wanted[row].append(numbers[of_row == row])

        want(np.array([root], np.int64))
        groups: list[NodeGroup] = []
        while rows:
            row = -heapq.heappop(rows)
            numbers = self._closure(row, _distinct(np.concatenate(wanted.pop(row))))
            group = self._group(row, numbers)
            groups.append(group)
            want(_distinct(group.sources[group.sources < self._first[row]]))
        elements = self._elements(_distinct(np.concatenate(inputs))) if inputs else []
        return Ancestry(root, (*elements, *reversed(groups)))

    def group(self, number: int) -> NodeGroup:
        """Return one node."""
        place = int(np.searchsorted(self._input_first, number, side="right")) - 1
        numbers = np.array([number], np.int64)
        if place >= 0 and number < self._input_end[place]:
            return self._elements(numbers)[0]
        return self._group(int(np.searchsorted(self._first, number, side="right")) - 1, numbers)

    def _closure(self, row: int, numbers: Array) -> Array:
        """Add what nodes of a row were made from in the same row: atomics on one element go one after the other."""
        first = int(self._first[row])
        fresh = numbers
        while True:
            sources = self._sources(row, fresh - first)
            fresh = sources[sources >= first]
            if not fresh.size or not (fresh := np.setdiff1d(fresh, numbers)).size:
                return numbers
            numbers = np.union1d(numbers, fresh)

    def _sources(self, row: int, ranks: Array) -> Array:
        vectors = self._operations["nodes"][row].tolist()
        made = [self._data.integers.items(number, ranks) for number in vectors if number >= 0]
        return np.stack(made, axis=1) if made else np.zeros((ranks.size, 0), np.int64)

    def _group(self, row: int, numbers: Array) -> NodeGroup:
        data, operation = self._data, self._operations[row]
        event, ranks = int(operation["event"]), numbers - int(operation["first"])
        lanes = self._lanes.of_mask(int(operation["mask"]))
        sources = self._sources(row, ranks)
        pairs = zip(operation["nodes"].tolist(), operation["operands"].tolist(), strict=True)
        others = [other for node, other in pairs if node >= 0]
        operands = tuple(data.values.vector(other, lanes.size)[ranks] if other >= 0 else None for other in others)
        blocks, threads = self._lanes.threads(int(data.events["batch"][event]), lanes[ranks])
        return NodeGroup(
            data.operators[operation["operator"]],
            event,
            numbers,
            data.values.vector(int(operation["value"]), lanes.size)[ranks],
            sources,
            operands,
            blocks,
            threads,
            -1,
            np.full(numbers.size, -1),
        )

    def _elements(self, numbers: Array) -> list[NodeGroup]:
        groups = []
        places = np.searchsorted(self._input_first, numbers, side="right") - 1
        for place in np.unique(places).tolist():
            first, _, memory, unit = self._inputs[place].tolist()
            array = self._arrays.all[self._arrays.first[memory]]
            own = numbers[places == place]
            elements = (own - first) * unit // array.dtype.itemsize
            nobody: Any = np.full(own.size, -1)
            values = self._arrays.content(array, 0)[elements]
            none = np.zeros((own.size, 0), np.int64)
            groups.append(NodeGroup("", -1, own, values, none, (), nobody, nobody, array.number, elements))
        return groups


def _distinct(numbers: Array) -> Array:
    """Return numbers in ascending order, each once; of so few, this is faster than `np.unique`."""
    ordered = np.sort(numbers, axis=None)
    found: Array = ordered[np.concatenate((ordered[:1] == ordered[:1], ordered[1:] != ordered[:-1]))]
    return found
