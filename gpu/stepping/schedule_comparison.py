"""Compare two schedules of one program: the first difference, and the last writer of each value there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpu.base.schedules import Schedule
from gpu.stepping.dataflow.dataflow import Dataflow
from gpu.stepping.dataflow.rows import CellWriter, Row

_RowKey = tuple[object, ...]


@dataclass(frozen=True)
class Difference:
    """The first difference between two recordings; pairs are from the first and the second recording.

    Parameters
    ----------
    name : str
        The array or the variable.
    element : int
        The element's number; in a shared array or per-thread storage, counted over all blocks or threads.
    rows, cells : pairs of (int or None)
        The position in the picture; None where that recording has no such row or cell, or no row shows the array.
    writers : pair of (CellWriter or None)
        The writer of each value; None if there is none.
    """

    name: str
    element: int
    rows: tuple[int | None, int | None]
    cells: tuple[int | None, int | None]
    values: tuple[np.generic | None, np.generic | None]
    writers: tuple[CellWriter | None, CellWriter | None]


def find_first_difference(first: Dataflow, second: Dataflow) -> Difference | None:
    """Return the first difference between two schedules of one program, in row order, or None.

    If all rows agree, the final contents of the arrays are compared too. In schedules where threads cache memory in
    registers, fewer values reach memory, so only variables and final contents are compared.
    """
    launches = (*first.recording.launches, *second.recording.launches)
    if any(Schedule.parse(launch.trace.schedule).kind.name == "cached" for launch in launches):
        return _find_variable_difference(first, second) or find_final_difference(first, second)
    others = dict(_rows_by_key(second))
    for key, row in _rows_by_key(first):
        difference = _find_row_difference(row, others.get(key))
        if difference is not None:
            return difference
    keys = {key for key, _ in _rows_by_key(first)}
    for key, row in others.items():
        if key not in keys and row.column.size:
            return _swap_recordings(_build_difference(row, 0, None, None))
    return find_final_difference(first, second)


def _rows_by_key(flow: Dataflow) -> Iterator[tuple[_RowKey, Row]]:
    """Yield rows with keys that identify them in the program, independent of the schedule."""
    counts: Counter[_RowKey] = Counter()
    for row in flow.rows:
        key = (row.launch, row.position, row.storage.space, row.storage.name)
        yield (*key, counts[key]), row
        counts[key] += 1


def _find_variable_difference(first: Dataflow, second: Dataflow) -> Difference | None:
    others = dict(_rows_by_key(second))
    pairs = ((row, others.get(key)) for key, row in _rows_by_key(first) if row.storage.space == "register")
    return next((difference for pair in pairs if (difference := _find_row_difference(*pair)) is not None), None)


def _find_row_difference(row: Row, other: Row | None) -> Difference | None:
    if other is None:
        return _build_difference(row, 0, None, None) if row.column.size else None
    cells = np.union1d(row.cells, other.cells)
    in_row, in_other = (np.isin(cells, each.cells) for each in (row, other))
    differs = in_row != in_other
    both = np.flatnonzero(in_row & in_other)
    values = [each.value[np.searchsorted(each.cells, cells[both])] for each in (row, other)]
    raw = [np.ascontiguousarray(value).view(np.uint8).reshape(both.size, -1) for value in values]
    differs[both] = (raw[0] != raw[1]).any(axis=1) if raw[0].shape == raw[1].shape else True
    if not differs.any():
        return None
    # Values that the row computed are more informative than values that were already there.
    computed = np.isin(cells, np.concatenate((row.cells[row.computed], other.cells[other.computed])))
    differing = np.flatnonzero(differs & computed) if (differs & computed).any() else np.flatnonzero(differs)
    indices = [
        int(np.searchsorted(each.cells, cells[differing[0]])) if present[differing[0]] else None
        for each, present in ((row, in_row), (other, in_other))
    ]
    return _build_difference(row, indices[0], other, indices[1])


def _build_difference(row: Row, cell: int | None, other: Row | None, other_cell: int | None) -> Difference:
    pairs = ((row, cell), (other, other_cell))
    present = [(each, index) for each, index in pairs if each is not None and index is not None]
    sample, index = present[0]
    return Difference(
        sample.storage.name,
        int(sample.cells[index]),
        (row.number, other.number if other is not None else None),
        (cell, other_cell),
        tuple(each.value[index] if each is not None and index is not None else None for each, index in pairs),  # type: ignore[arg-type]
        tuple(each.find_writer(index) if each is not None and index is not None else None for each, index in pairs),  # type: ignore[arg-type]
    )


def _swap_recordings(difference: Difference) -> Difference:
    return Difference(
        difference.name,
        difference.element,
        difference.rows[::-1],
        difference.cells[::-1],
        difference.values[::-1],
        difference.writers[::-1],
    )


def find_final_difference(first: Dataflow, second: Dataflow) -> Difference | None:
    """Return the first difference in the final contents of two recordings' arrays, or None."""
    for launch, other in zip(first.recording.launches, second.recording.launches, strict=False):
        for array in launch.trace.arrays:
            if launch.buffers[array.number] is None:
                continue
            contents = [each.trace.array(array.number, each.count) for each in (launch, other)]
            raw = [np.ascontiguousarray(each).view(np.uint8).reshape(array.count, -1) for each in contents]
            differs = np.flatnonzero((raw[0] != raw[1]).any(axis=1))
            if differs.size:
                element = int(differs[0])
                writers = []
                for each, flow in ((launch, first), (other, second)):
                    writer = each.trace.find_writer(array.number, element, each.count)
                    moment = each.first + writer.event if writer is not None else -1
                    writers.append(
                        CellWriter(writer.block, writer.thread, flow.recording.position(moment).line, moment)
                        if writer is not None
                        else None
                    )
                values = (contents[0][element], contents[1][element])
                return Difference(array.name, element, (None, None), (None, None), values, (writers[0], writers[1]))
    return None
