"""What the picture of the arrays shows at a moment: each array as rows and columns, and what the statement touches."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpu.declaration.pattern import Array
from gpu.stepping.moment.touched import Touched

_MOST = 4096
"""Elements of an array up to which all are shown; of a larger one the part that the launch has to do with."""


@dataclass(frozen=True, eq=False)
class Panel:
    """An array, or the plane or the part of it that is looked at, as rows and columns.

    Parameters
    ----------
    number : int
        Of the array in its trace.
    first : int
        The array's element at the top left.
    values : array, shape (rows, columns)
    known : bool array, same shape
        Where there is a value: nobody has written the others yet, or the last row ends early.
    pitch : int
        Elements from one row of the array to the next; 0 for as many as there are columns.
    corner : (int, int) or None
        The row and the column, of the array or the plane, at the top left; None for an array without rows.
    """

    number: int
    title: str
    first: int
    values: Array
    known: Array
    pitch: int = 0
    corner: tuple[int, int] | None = (0, 0)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.values.shape[0], self.values.shape[1]

    def wrapped(self, width: int) -> Panel:
        """Return the elements of a single row in rows of at most `width`; what has rows stays as it is."""
        shape = wrapped(self.shape, width)
        if shape == self.shape:
            return self
        values, known = np.zeros(shape, self.values.dtype), np.zeros(shape, bool)
        values.reshape(-1)[: self.values.size], known.reshape(-1)[: self.known.size] = self.values, self.known
        return replace(self, values=values, known=known, pitch=0)

    def places(self, elements: Array) -> Array:
        """Return the cells of elements of the array, counted row by row; -1 for what is not shown."""
        row, column = np.divmod(elements - self.first, self.pitch or self.shape[1])
        inside = (row >= 0) & (row < self.shape[0]) & (column < self.shape[1])
        found: Array = np.where(inside, row * self.shape[1] + column, -1)
        return found

    def element(self, place: int) -> int:
        """Return the element of the array that a cell shows."""
        row, column = divmod(place, self.shape[1])
        return self.first + row * (self.pitch or self.shape[1]) + column

    def index(self, place: int) -> str:
        """Return the row and the column of a cell in the array, or its element where that has no rows."""
        if self.corner is None:
            return f"[{self.element(place)}]"
        row, column = divmod(place, self.shape[1])
        return f"[{self.corner[0] + row}][{self.corner[1] + column}]"


def wrapped(shape: tuple[int, int], width: int) -> tuple[int, int]:
    """Return the rows and columns of a single row that is written in rows of at most `width`."""
    rows, columns = shape
    return shape if rows > 1 or columns <= width else (-(-columns // width), width)


def panels(
    trace: Any, shapes: Any, step: int, block: int, touches: list[Touched], given: Collection[str]
) -> list[Panel]:
    """Return the arrays to show at a step of a launch: those of the launch, and the shared ones of a block.

    What has no rows is a single one.

    `given` are the names of those that held something before.
    """
    made = []
    for array in trace.arrays:
        if array.space == "local" or (array.block is not None and array.block != block) or not array.count:
            continue
        if array.space == "constant" and not trace.memory.are_accessed(array.memory):
            continue
        shape = tuple(shapes[array.number]) if shapes is not None and shapes[array.number] else (array.count,)
        values = trace.array(array.number, step)[: array.count]
        there = np.ones(array.count, bool)
        if array.space != "constant" and array.name not in given:
            there = trace.memory.written(array, step)
        first, where = 0, ""
        if len(shape) > 2:
            # One plane of several: the one that is touched.
            plane = int(np.prod(shape[-2:]))
            own = [touch.elements for touch in touches if touch.number == array.number and touch.elements.size]
            index = int(own[0][0]) // plane if own else 0
            first, where = index * plane, f"  plane {index}" if values.size > plane else ""
            values, there, shape = values[first : first + plane], there[first : first + plane], shape[-2:]
        rows, columns = (1, values.size) if len(shape) < 2 else shape
        values, there = values.reshape(rows, columns), there.reshape(rows, columns)
        title = f"{array.name}  {array.space}{where}"
        if values.size <= _MOST:
            made.append(Panel(array.number, title, first, values, there, columns, (0, 0) if rows > 1 else None))
            continue
        used = trace.memory.accessed(array)[first : first + values.size].reshape(rows, columns)
        part = _around(used)
        if part is None:
            continue
        down, across = part
        title += f"  rows {down.start} to {down.stop - 1}," if rows > 1 else ""
        title += f"  {'columns' if rows > 1 else 'elements'} {across.start} to {across.stop - 1}"
        corner = first + down.start * columns + across.start
        at = (down.start, across.start) if rows > 1 else None
        made.append(Panel(array.number, title, corner, values[part], there[part], columns, at))
    return made


def _around(used: Array) -> tuple[slice, slice] | None:
    """Return the rows and columns around what is used; None where that is nothing, or too much to be shown."""
    rows, columns = np.flatnonzero(used.any(axis=1)), np.flatnonzero(used.any(axis=0))
    if not rows.size:
        return None
    part = slice(int(rows[0]), int(rows[-1]) + 1), slice(int(columns[0]), int(columns[-1]) + 1)
    return part if (part[0].stop - part[0].start) * (part[1].stop - part[1].start) <= _MOST else None
