"""What the picture of the arrays shows at a moment: each array as rows and columns, and what the statement touches."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpu.declaration.pattern import Array
from gpu.stepping.moment.touched import Touched

_MOST = 4096


@dataclass(frozen=True, eq=False)
class Panel:
    """An array, or the plane of it that is looked at, as rows and columns.

    Parameters
    ----------
    number : int
        Of the array in its trace.
    first : int
        The array's element at the top left.
    values : array, shape (rows, columns)
    known : bool array, same shape
        Where there is a value: nobody has written the others yet, or the last row ends early.
    """

    number: int
    title: str
    first: int
    values: Array
    known: Array

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
        return replace(self, values=values, known=known)


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
        if values.size > _MOST:
            continue
        shape = (1, values.size) if len(shape) < 2 else shape
        title = f"{array.name}  {array.space}{where}"
        made.append(Panel(array.number, title, first, values.reshape(shape), there.reshape(shape)))
    return made
