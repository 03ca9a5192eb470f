"""Two orders of the same program side by side: where they first differ, and who wrote there last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpu.schedules import Schedule
from gpu.stepping.dataflow.dataflow import Dataflow
from gpu.stepping.dataflow.row import Row, Who

_Key = tuple[object, ...]


@dataclass(frozen=True)
class Difference:
    """Where two recordings first differ; pairs are of the first and of the second.

    Parameters
    ----------
    name : str
        The array or the variable.
    element : int
        The number of the element, in a shared array or of a thread's own that of all blocks or threads.
    rows, cells : pairs of (int or None)
        Where it is to be seen; None where that order has no such row or cell, or no row shows the array.
    values : pair of (NumPy scalar or None)
    writers : pair of (Who or None)
        Who wrote each value; None where nobody did.
    """

    name: str
    element: int
    rows: tuple[int | None, int | None]
    cells: tuple[int | None, int | None]
    values: tuple[np.generic | None, np.generic | None]
    writers: tuple[Who | None, Who | None]


def first_difference(first: Dataflow, second: Dataflow) -> Difference | None:
    """Return where two orders of one program first differ, in the order of rows; None where they nowhere do.

    Where all rows agree, what the arrays hold at the end is compared too. Where threads keep what is in memory in
    registers, fewer values come there: only variables, and what is left at the end, are compared.
    """
    launches = (*first.recording.launches, *second.recording.launches)
    if any(Schedule.of(launch.trace.schedule).kind.name == "cached" for launch in launches):
        return _of_variables(first, second) or difference_at_the_end(first, second)
    others = dict(_keyed(second))
    for key, row in _keyed(first):
        found = _of_rows(row, others.get(key))
        if found is not None:
            return found
    known = {key for key, _ in _keyed(first)}
    for key, row in others.items():
        if key not in known and row.column.size:
            return _swapped(_difference(row, 0, None, None))
    return difference_at_the_end(first, second)


def _keyed(flow: Dataflow) -> Iterator[tuple[_Key, Row]]:
    """Yield rows with what they are in the program, whatever the order."""
    seen: Counter[_Key] = Counter()
    for row in flow.rows:
        key = (row.launch, row.position, row.storage.space, row.storage.name)
        yield (*key, seen[key]), row
        seen[key] += 1


def _of_variables(first: Dataflow, second: Dataflow) -> Difference | None:
    others = dict(_keyed(second))
    pairs = ((row, others.get(key)) for key, row in _keyed(first) if row.storage.space == "register")
    return next((found for pair in pairs if (found := _of_rows(*pair)) is not None), None)


def _of_rows(row: Row, other: Row | None) -> Difference | None:
    if other is None:
        return _difference(row, 0, None, None) if row.column.size else None
    cells = np.union1d(row.cells, other.cells)
    here, there = (np.isin(cells, each.cells) for each in (row, other))
    differs = here != there
    both = np.flatnonzero(here & there)
    values = [each.value[np.searchsorted(each.cells, cells[both])] for each in (row, other)]
    raw = [np.ascontiguousarray(each).view(np.uint8).reshape(both.size, -1) for each in values]
    differs[both] = (raw[0] != raw[1]).any(axis=1) if raw[0].shape == raw[1].shape else True
    if not differs.any():
        return None
    # What the row itself made says more than what it found.
    made = np.isin(cells, np.concatenate((row.cells[row.made], other.cells[other.made])))
    chosen = np.flatnonzero(differs & made) if (differs & made).any() else np.flatnonzero(differs)
    places = [
        int(np.searchsorted(each.cells, cells[chosen[0]])) if present[chosen[0]] else None
        for each, present in ((row, here), (other, there))
    ]
    return _difference(row, places[0], other, places[1])


def _difference(row: Row, cell: int | None, other: Row | None, place: int | None) -> Difference:
    pairs = ((row, cell), (other, place))
    known = [(each, at) for each, at in pairs if each is not None and at is not None]
    sample, at = known[0]
    return Difference(
        sample.storage.name,
        int(sample.cells[at]),
        (row.number, other.number if other is not None else None),
        (cell, place),
        tuple(each.value[at] if each is not None and at is not None else None for each, at in pairs),  # type: ignore[arg-type]
        tuple(each.who(at) if each is not None and at is not None else None for each, at in pairs),  # type: ignore[arg-type]
    )


def _swapped(found: Difference) -> Difference:
    return Difference(
        found.name, found.element, found.rows[::-1], found.cells[::-1], found.values[::-1], found.writers[::-1]
    )


def difference_at_the_end(first: Dataflow, second: Dataflow) -> Difference | None:
    """Return where what two orders leave in the arrays of their launches differs; None where it nowhere does."""
    for launch, other in zip(first.recording.launches, second.recording.launches, strict=False):
        for array in launch.trace.arrays:
            if launch.buffers[array.number] is None:
                continue
            held = [each.trace.array(array.number, each.count) for each in (launch, other)]
            raw = [np.ascontiguousarray(each).view(np.uint8).reshape(array.count, -1) for each in held]
            differs = np.flatnonzero((raw[0] != raw[1]).any(axis=1))
            if differs.size:
                element = int(differs[0])
                writers = []
                for each, flow in ((launch, first), (other, second)):
                    wrote = each.trace.writer(array.number, element, each.count)
                    moment = each.first + wrote.event if wrote is not None else -1
                    writers.append(
                        Who(wrote.block, wrote.thread, flow.recording.position(moment).line, moment)
                        if wrote is not None
                        else None
                    )
                values = (held[0][element], held[1][element])
                return Difference(array.name, element, (None, None), (None, None), values, (writers[0], writers[1]))
    return None
