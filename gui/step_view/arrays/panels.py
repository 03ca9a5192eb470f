"""Panels of the arrays picture at a moment: each array, or the displayed part of it, as rows and columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from gpu.declaration.pattern import Array
from gpu.stepping.moment.array_accesses import ArrayAccess

_MAX_ELEMENTS = 4096
"""Maximum number of elements of a fully shown array; of a larger one, only the part that the launch accesses."""
_EDGE_ELEMENTS = 64
"""Elements shown at the end of a larger array beside which an access is out of bounds."""
_MAX_OUTSIDE = 32
"""Maximum number of shown elements before the beginning, and after the end, of an array."""


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
    outside : tuple of int
        Elements beyond the array's bounds with a cell next to it, ascending; negative ones come before the array.
    before : int
        The number of cells before the array's first one.
    count : int
        The number of the array's own cells; 0 if all cells are.
    """

    number: int
    title: str
    first: int
    values: Array
    has_value: Array
    pitch: int = 0
    corner: tuple[int, int] | None = (0, 0)
    outside: tuple[int, ...] = ()
    before: int = 0
    count: int = 0

    @property
    def shape(self) -> tuple[int, int]:
        """Return the number of rows and columns."""
        return self.values.shape[0], self.values.shape[1]

    @property
    def is_inside(self) -> Array:
        """Return which cells, row-major, are those of the array; the others lie outside of its bounds."""
        cells: Array = np.arange(self.values.size) - self.before
        inside: Array = (cells >= 0) & (cells < (self.count or self.values.size))
        return inside

    def wrap_rows(self, width: int) -> Panel:
        """Return a one-dimensional panel in rows of at most `width` elements; others are unchanged."""
        if wrap_shape(self.shape, width) == self.shape:
            return self
        # The array itself begins a row, so that its columns do not depend on the cells before it.
        return self._arrange(width, _round_up(self.before, width), self._count_after())

    def add_outside(self, elements: Collection[int]) -> Panel:
        """Return the panel with cells for elements out of bounds; only the nearest ones, if there are many."""
        outside = tuple(sorted(set(elements)))
        if not outside:
            return self
        below = [each for each in outside if each < 0][-_MAX_OUTSIDE:]
        above = [each for each in outside if each >= 0][:_MAX_OUTSIDE]
        columns = self.shape[1] if self.corner is not None else len(below) + self.values.size + len(above)
        before = len(below) if self.corner is None else _round_up(len(below), columns)
        return replace(self._arrange(columns, before, len(above)), outside=(*below, *above))

    def _count_after(self) -> int:
        return sum(element >= 0 for element in self.outside)

    def _arrange(self, columns: int, before: int, after: int) -> Panel:
        """Return the panel in other rows, with some cells before and after those of the array."""
        count = self.count or self.values.size
        shape = (_round_up(before + count + after, columns) // columns, columns)
        values, has_value = np.zeros(shape, self.values.dtype), np.zeros(shape, bool)
        own, target = slice(self.before, self.before + count), slice(before, before + count)
        values.reshape(-1)[target] = self.values.reshape(-1)[own]
        has_value.reshape(-1)[target] = self.has_value.reshape(-1)[own]
        pitch = self.pitch if columns == self.shape[1] else 0
        return replace(self, values=values, has_value=has_value, pitch=pitch, before=before, count=count)

    def find_cells(self, elements: Array) -> Array:
        """Return the row-major cell of each array element, or -1 if it is not shown."""
        row, column = np.divmod(elements - self.first, self.pitch or self.shape[1])
        cells = row * self.shape[1] + column
        inside = (row >= 0) & (cells < (self.count or self.values.size)) & (column < self.shape[1])
        result: Array = np.where(inside, cells + self.before, -1)
        for place, element in zip(self.outside_cells.tolist(), self.outside, strict=True):
            result[elements == element] = place
        return result

    @property
    def outside_cells(self) -> Array:
        """Return the row-major cells of the elements in `outside`."""
        below, after = len(self.outside) - self._count_after(), self.before + self.count
        cells: Array = np.r_[self.before - below : self.before, after : after + self._count_after()]
        return cells

    def element_at(self, cell: int) -> int | None:
        """Return the element that a cell shows; None for a cell without one."""
        cells: list[int] = self.outside_cells.tolist()
        if cell in cells:
            return self.outside[cells.index(cell)]
        if not self.is_inside[cell]:
            return None
        row, column = divmod(cell - self.before, self.shape[1])
        return self.first + row * (self.pitch or self.shape[1]) + column

    def format_index(self, cell: int) -> str:
        """Return a cell's index text: "[row][column]", or "[element]" for a one-dimensional array."""
        if self.corner is None or not self.is_inside[cell]:
            return f"[{self.element_at(cell)}]"
        row, column = divmod(cell - self.before, self.shape[1])
        return f"[{self.corner[0] + row}][{self.corner[1] + column}]"


def wrap_shape(shape: tuple[int, int], width: int) -> tuple[int, int]:
    """Return the shape of a single row after wrapping it to at most `width` columns."""
    rows, columns = shape
    return shape if rows > 1 or columns <= width else (-(-columns // width), width)


def _round_up(number: int, divisor: int) -> int:
    return -(-number // divisor) * divisor


def _find_accessed_plane(array_number: int, plane: int, touches: Sequence[ArrayAccess]) -> int:
    """Return which plane of `plane` elements of an array the current statement accesses; 0 if it accesses none."""
    accessed = (touch.elements for touch in touches if touch.array_number == array_number and touch.elements.size)
    return next((int(elements[0]) // plane for elements in accessed), 0)


def build_panels(
    trace: Any,
    shapes: Any,
    step: int,
    block: int,
    touches: list[ArrayAccess],
    initialized: Collection[str],
    outside: Mapping[int, Collection[int]] = MappingProxyType({}),
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
    outside : mapping of int to collection of int
        Elements out of bounds to show beside an array, by its number.
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
            plane = int(np.prod(shape[-2:]))
            index = _find_accessed_plane(array.number, plane, touches)
            first, plane_title = index * plane, f"  plane {index}" if values.size > plane else ""
            values, has_value, shape = values[first : first + plane], has_value[first : first + plane], shape[-2:]
        rows, columns = (1, values.size) if len(shape) < 2 else shape
        values, has_value = values.reshape(rows, columns), has_value.reshape(rows, columns)
        title, beyond = f"{array.name}  {array.space}{plane_title}", outside.get(array.number, ())
        panel = Panel(array.number, title, first, values, has_value, columns, (0, 0) if rows > 1 else None)
        if values.size <= _MAX_ELEMENTS:
            result.append(panel.add_outside(beyond))
        elif beyond:
            result.append(_build_edge(array.number, title, values, has_value, beyond))
        else:
            used = trace.memory.find_accessed(array)[first : first + values.size].reshape(rows, columns)
            result += _crop(panel, used)
    return result


def _crop(panel: Panel, used: Array) -> list[Panel]:
    """Return the smallest part of a panel with all used cells; none if there are no such cells."""
    part = _bounding_slices(used)
    if part is None:
        return []
    down, across = part
    title = (
        f"{panel.title}  rows {down.start} to {down.stop - 1},  columns" if panel.corner else f"{panel.title}  elements"
    )
    first = panel.first + down.start * panel.pitch + across.start
    cropped = replace(panel, title=f"{title} {across.start} to {across.stop - 1}", first=first)
    corner = (down.start, across.start) if panel.corner else None
    return [replace(cropped, values=panel.values[part], has_value=panel.has_value[part], corner=corner)]


def _build_edge(number: int, title: str, values: Array, has_value: Array, outside: Collection[int]) -> Panel:
    """Return the end of a large array beside which elements are out of bounds."""
    first = 0 if min(outside) < 0 else values.size - _EDGE_ELEMENTS
    last = first + _EDGE_ELEMENTS
    own_values, own_has_value = (each.reshape(1, -1)[:, first:last] for each in (values, has_value))
    title = f"{title}  elements {first} to {last - 1}"
    beyond = [each for each in outside if (each < 0) == (first == 0)]
    return Panel(number, title, first, own_values, own_has_value, 0, None).add_outside(beyond)


def _bounding_slices(used: Array) -> tuple[slice, slice] | None:
    """Return the bounding rows and columns of the used elements; None if there are none or too many."""
    rows, columns = np.flatnonzero(used.any(axis=1)), np.flatnonzero(used.any(axis=0))
    if not rows.size:
        return None
    part = slice(int(rows[0]), int(rows[-1]) + 1), slice(int(columns[0]), int(columns[-1]) + 1)
    return part if (part[0].stop - part[0].start) * (part[1].stop - part[1].start) <= _MAX_ELEMENTS else None
