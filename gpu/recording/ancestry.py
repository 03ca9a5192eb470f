"""Ancestry of values: the graph of operations from a value back to elements of arrays."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gpu.recording.arrays import TraceArrays
from gpu.recording.data import TraceData, TraceLanes
from gpu.recording.packing import Array


@dataclass(frozen=True)
class TraceNode:
    """The provenance of a value: an operation, or an initial element of an array.

    Parameters
    ----------
    operator : str
        Such as "+", "sqrtf" or "atomic add"; "" for an element of an array.
    value : NumPy scalar
        The value.
    sources : tuple of int
        The node of each operand, 0 if it has none, such as constants and thread indices.
    operands : tuple
        The value of each operand without a node; None for the others.
    event : int
        The event of the operation; -1 for an element.
    block, thread : int
        The number of the block in the grid and of the thread in the block; -1 for an element.
    array, element : int
        The array's number and the element's index; -1 for an operation.
    """

    number: int
    operator: str
    value: Any
    sources: tuple[int, ...]
    operands: tuple[Any, ...]
    event: int
    block: int
    thread: int
    array: int
    element: int


@dataclass(frozen=True, eq=False)
class NodeGroup:
    """Nodes of one kind: the results of an operation in lanes of one event, or initial elements of one array.

    Parameters
    ----------
    operator : str
        As of `TraceNode`; "" for elements.
    event : int
        The event of the operation; -1 for elements.
    numbers : array
        The nodes, ascending.
    values : array
        The value of each node.
    sources : array, shape (nodes, operands)
        The node of each operand, 0 if it has none.
    operands : tuple of array or None
        For each operand its values, which are needed for operands without a node; None if all have one.
    blocks, threads : array
        The block and the thread of each node; -1 for elements.
    array : int
        The number of the array of elements; -1 for an operation.
    elements : array
        The indices of the elements; -1 for an operation.
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
        """Yield the nodes one by one."""
        columns = (self.numbers, self.blocks, self.threads, self.elements)
        rows = zip(*(column.tolist() for column in columns), self.sources.tolist(), strict=True)
        for index, (number, block, thread, element, sources) in enumerate(rows):
            operands = tuple(
                values[index] if not source and values is not None else None
                for source, values in zip(sources, self.operands, strict=True)
            )
            yield TraceNode(
                number,
                self.operator,
                self.values[index],
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
    """All operations and array elements from which a value was computed.

    Parameters
    ----------
    root : int
        The node of the value; 0 if it has none.
    groups : tuple of NodeGroup
        The root and all its ancestors: elements first, then operations in execution order. Copies have no nodes.
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
        """All nodes by number, sources before their results."""
        return {node.number: node for group in self.groups for node in group.nodes()}

    @property
    def inputs(self) -> list[TraceNode]:
        """The initial elements of arrays from which the value was computed."""
        return [node for group in self.groups if not group.operator for node in group.nodes()]

    @property
    def operations(self) -> list[TraceNode]:
        """The operations that computed the value, in execution order."""
        return [node for group in self.groups if group.operator for node in group.nodes()]


class NodeTable:
    """Lookup of the nodes of a trace."""

    def __init__(self, data: TraceData, lanes: TraceLanes, arrays: TraceArrays) -> None:
        self._data, self._lanes, self._arrays = data, lanes, arrays
        self._operations = data.operations
        self._first = np.ascontiguousarray(self._operations["first"])
        self._inputs = data.inputs[np.argsort(data.inputs["first"], kind="stable")]
        self._input_first = self._inputs["first"].astype(np.int64)
        self._input_end = self._input_first + self._inputs["count"]

    def ancestry(self, root: int) -> Ancestry:
        """Return the ancestry of a value, given its node."""
        pending: dict[int, list[Array]] = {}
        inputs: list[Array] = []
        # The rows to process, latest first: sources always precede their operation.
        rows: list[int] = []

        def add(numbers: Array) -> None:
            numbers = numbers[numbers > 0]
            input_rows = np.searchsorted(self._input_first, numbers, side="right") - 1
            is_input = input_rows >= 0
            is_input[is_input] = numbers[is_input] < self._input_end[input_rows[is_input]]
            if is_input.any():
                inputs.append(numbers[is_input])
                numbers = numbers[~is_input]
            operation_rows = np.searchsorted(self._first, numbers, side="right") - 1
            for row in _distinct(operation_rows).tolist():
                if row not in pending:
                    pending[row] = []
                    heapq.heappush(rows, -row)
                pending[row].append(numbers[operation_rows == row])

        add(np.array([root], np.int64))
        groups: list[NodeGroup] = []
        while rows:
            row = -heapq.heappop(rows)
            numbers = self._closure(row, _distinct(np.concatenate(pending.pop(row))))
            group = self._group(row, numbers)
            groups.append(group)
            add(_distinct(group.sources[group.sources < self._first[row]]))
        elements = self._elements(_distinct(np.concatenate(inputs))) if inputs else []
        return Ancestry(root, (*elements, *reversed(groups)))

    def group(self, number: int) -> NodeGroup:
        """Return the group of one node."""
        input_index = int(np.searchsorted(self._input_first, number, side="right")) - 1
        numbers = np.array([number], np.int64)
        if input_index >= 0 and number < self._input_end[input_index]:
            return self._elements(numbers)[0]
        return self._group(int(np.searchsorted(self._first, number, side="right")) - 1, numbers)

    def _closure(self, row: int, numbers: Array) -> Array:
        """Add sources of nodes of a row within the same row, which atomic operations on one element have."""
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
        columns = [self._data.integers.vector_items(number, ranks) for number in vectors if number >= 0]
        return np.stack(columns, axis=1) if columns else np.zeros((ranks.size, 0), np.int64)

    def _group(self, row: int, numbers: Array) -> NodeGroup:
        data, operation = self._data, self._operations[row]
        event, ranks = int(operation["event"]), numbers - int(operation["first"])
        lanes = self._lanes.mask_lanes(int(operation["mask"]))
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
        input_indices = np.searchsorted(self._input_first, numbers, side="right") - 1
        for input_index in np.unique(input_indices).tolist():
            first, _, memory, unit = self._inputs[input_index].tolist()
            array = self._arrays.all_arrays[self._arrays.first_arrays[memory]]
            group_numbers = numbers[input_indices == input_index]
            elements = (group_numbers - first) * unit // array.dtype.itemsize
            no_thread: Any = np.full(group_numbers.size, -1)
            values = self._arrays.content(array, 0)[elements]
            no_sources = np.zeros((group_numbers.size, 0), np.int64)
            groups.append(
                NodeGroup("", -1, group_numbers, values, no_sources, (), no_thread, no_thread, array.number, elements)
            )
        return groups


def _distinct(numbers: Array) -> Array:
    """Return the distinct numbers in ascending order; for few numbers this is faster than `np.unique`."""
    ordered = np.sort(numbers, axis=None)
    distinct: Array = ordered[np.concatenate((ordered[:1] == ordered[:1], ordered[1:] != ordered[:-1]))]
    return distinct
