"""Panels of the arrays picture at a moment: each array, or the displayed part of it, as rows and columns."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpu.declaration.pattern import Array
from gpu.stepping.moment.array_accesses import ArrayAccess

_MAX_ELEMENTS = 4096
"""Maximum number of elements of a fully shown array; of a larger one, only the part that the launch accesses."""


@dataclass(frozen=True, eq=False)
class Panel:
    """An array, or the displayed plane or part of it, as rows and columns.

    Parameters
    ----------
    number : int
        The array's number in its trace.
    first : int
        The array's element at the top left.
    values : array, shape (rows, columns)
    has_value : bool array, same shape
        True for cells with a value; false if not yet written, or beyond the end of the last row.
    pitch : int
        Elements between the starts of two rows of the array; 0 for the number of columns.
    corner : (int, int) or None
        Row and column, in the array or plane, of the top left cell; None for a one-dimensional array.
    """

    number: int
    title: str
    first: int
    values: Array
    has_value: Array
    pitch: int = 0
    corner: tuple[int, int] | None = (0, 0)

    @property
    def shape(self) -> tuple[int, int]:
        """Return the number of rows and columns."""
        return self.values.shape[0], self.values.shape[1]

    def wrap_rows(self, width: int) -> Panel:
        """Return a one-dimensional panel in rows of at most `width` elements; others are unchanged."""
        shape = wrap_shape(self.shape, width)
        if shape == self.shape:
            return self
        values, has_value = np.zeros(shape, self.values.dtype), np.zeros(shape, bool)
        values.reshape(-1)[: self.values.size], has_value.reshape(-1)[: self.has_value.size] = (
            self.values,
            self.has_value,
        )
        return replace(self, values=values, has_value=has_value, pitch=0)

    def find_cells(self, elements: Array) -> Array:
        """Return the row-major cell of each array element, or -1 if it is not shown."""
        row, column = np.divmod(elements - self.first, self.pitch or self.shape[1])
        inside = (row >= 0) & (row < self.shape[0]) & (column < self.shape[1])
        cells: Array = np.where(inside, row * self.shape[1] + column, -1)
        return cells

    def element_at(self, cell: int) -> int:
        """Return the element of the array that a cell shows."""
        row, column = divmod(cell, self.shape[1])
        return self.first + row * (self.pitch or self.shape[1]) + column

    def format_index(self, cell: int) -> str:
        """Return a cell's index text: "[row][column]", or "[element]" for a one-dimensional array."""
        if self.corner is None:
            return f"[{self.element_at(cell)}]"
        row, column = divmod(cell, self.shape[1])
        return f"[{self.corner[0] + row}][{self.corner[1] + column}]"


def wrap_shape(shape: tuple[int, int], width: int) -> tuple[int, int]:
    """Return the shape of a single row after wrapping it to at most `width` columns."""
    rows, columns = shape
    return shape if rows > 1 or columns <= width else (-(-columns // width), width)


def build_panels(
    trace: Any, shapes: Any, step: int, block: int, touches: list[ArrayAccess], initialized: Collection[str]
) -> list[Panel]:
    """Return the panels of a launch's arrays at a step, including the shared arrays of one block.

    Parameters
    ----------
    trace : Trace
        The launch's trace.
    shapes : sequence or None
        The arrays' shapes by number; an array without a shape is one row.
    step : int
        Number of executed events.
    block : int
        The block that provides the shared arrays.
    touches : list of ArrayAccess
        Elements that the current statement accesses; they select the plane of a three-dimensional array.
    initialized : collection of str
        Names of the arrays that had values before the launch.
    """
    result = []
    for array in trace.arrays:
        if array.space == "local" or (array.block is not None and array.block != block) or not array.count:
            continue
        if array.space == "constant" and not trace.memory.are_accessed(array.memory):
            continue
        shape = tuple(shapes[array.number]) if shapes is not None and shapes[array.number] else (array.count,)
        values = trace.array(array.number, step)[: array.count]
        has_value = np.ones(array.count, bool)
        if array.space != "constant" and array.name not in initialized:
            has_value = trace.memory.find_written(array, step)
        first, plane_title = 0, ""
        if len(shape) > 2:
            # Of several planes, show the one that is accessed.
            plane = int(np.prod(shape[-2:]))
            own_elements = [
                touch.elements for touch in touches if touch.array_number == array.number and touch.elements.size
            ]
            index = int(own_elements[0][0]) // plane if own_elements else 0
            first, plane_title = index * plane, f"  plane {index}" if values.size > plane else ""
            values, has_value, shape = values[first : first + plane], has_value[first : first + plane], shape[-2:]
        rows, columns = (1, values.size) if len(shape) < 2 else shape
        values, has_value = values.reshape(rows, columns), has_value.reshape(rows, columns)
        title = f"{array.name}  {array.space}{plane_title}"
        if values.size <= _MAX_ELEMENTS:
            result.append(Panel(array.number, title, first, values, has_value, columns, (0, 0) if rows > 1 else None))
            continue
        used = trace.memory.find_accessed(array)[first : first + values.size].reshape(rows, columns)
        part = _bounding_slices(used)
        if part is None:
            continue
        down, across = part
        title += f"  rows {down.start} to {down.stop - 1}," if rows > 1 else ""
        title += f"  {'columns' if rows > 1 else 'elements'} {across.start} to {across.stop - 1}"
        corner = first + down.start * columns + across.start
        origin = (down.start, across.start) if rows > 1 else None
        result.append(Panel(array.number, title, corner, values[part], has_value[part], columns, origin))
    return result


def _bounding_slices(used: Array) -> tuple[slice, slice] | None:
    """Return the bounding rows and columns of the used elements; None if there are none or too many."""
    rows, columns = np.flatnonzero(used.any(axis=1)), np.flatnonzero(used.any(axis=0))
    if not rows.size:
        return None
    part = slice(int(rows[0]), int(rows[-1]) + 1), slice(int(columns[0]), int(columns[-1]) + 1)
    return part if (part[0].stop - part[0].start) * (part[1].stop - part[1].start) <= _MAX_ELEMENTS else None
