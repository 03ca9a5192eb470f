"""Shared code of the matrix patterns: inputs from a seed or a file, parameters, and pictures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from gpu.base.errors import InputError
from gpu.base.threads import map_parts
from gpu.declaration.pattern import Array, Choice, Inputs, Integer, Outputs
from gpu.declaration.random_values import draw_values
from gpu.declaration.roles import FROM_FILE, Role

KINDS = ("random", "digits", "ones")
MAX_SIDE = 16384

MAX_DISPLAYED_SIDE = 2048
"""The most rows or columns that are shown; of larger matrices, every second, third and so on."""

_CHUNK = 2**20
_COLORED_ELEMENTS = 2**17
"""Elements that each thread colors at a time."""

# Perceptually uniform from dark blue through green to yellow, after matplotlib's viridis (CC0).
_COLORS = np.array(
    [[68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141], [39, 173, 129], [92, 200, 99],
     [170, 220, 50], [253, 231, 37]],
    np.float64,
)  # fmt: skip
_NAN_COLOR = (214, 39, 40)


def input_parameter(kinds: tuple[str, ...] = KINDS, default: str = "random") -> Choice:
    """Return the parameter for the source of the values: one of `kinds`, or a file."""
    return Choice(
        name="input",
        label="Input",
        help="How the matrices are generated, or whether one is read from a file.",
        options=(*kinds, FROM_FILE),
        default=default,
        role=Role.SOURCE,
    )


def side_parameter(
    name: str, label: str, text: str, unit: str, default: int, minimum: int = 1, **fields: Any
) -> Integer:
    """Return a parameter for the number of rows or columns of a matrix.

    Parameters
    ----------
    name, label, text, unit : str
        As in `Integer`; `text` is the help.
    default, minimum : int
        As in `Integer`. If the minimum is 0, 0 means n.
    **fields
        Other fields of the `Integer`; its maximum is `MAX_SIDE` unless it is given.
    """
    defaults: dict[str, Any] = {"maximum": MAX_SIDE, "minimum_label": "" if minimum else "as n"}
    return Integer(name=name, label=label, help=text, unit=unit, default=default, minimum=minimum, **defaults | fields)


def make_matrix(kind: str, rows: int, columns: int, rng: np.random.Generator) -> Array:
    """Generate a float32 matrix.

    Parameters
    ----------
    kind : str
        "digits" for whole numbers from 0 to 9, "ones", or any other name for random numbers from -1 to 1.
    rows, columns : int
        The shape.
    rng : numpy.random.Generator
        The source of random numbers.
    """
    if kind == "ones":
        return np.ones((rows, columns), np.float32)

    def draw(generator: np.random.Generator, count: int) -> Array:
        if kind == "digits":
            return generator.integers(0, 10, count).astype(np.float32)
        return generator.random(count, np.float32) * np.float32(2) - np.float32(1)

    return draw_values(rng, rows * columns, draw).reshape(rows, columns)


def accept_matrix(
    values: Array,
    name: str,
    *,
    finite: bool = True,
    largest: int = MAX_SIDE,
    dtype: type[np.float16] | type[np.float32] = np.float32,
) -> None:
    """Check the size and the elements of a matrix.

    Parameters
    ----------
    values : array of shape (rows, columns)
        The matrix.
    name : str
        The matrix's name in messages, such as "the matrix".
    finite : bool
        Whether to refuse infinite elements; NaN is always refused.
    largest : int
        The most rows, and the most columns.
    dtype : type
        The floating-point type; all finite elements must be in its range.

    Raises
    ------
    InputError
        The matrix is empty or too large, or an element is not finite or out of range.
    """
    rows, columns = values.shape
    if not 1 <= rows <= largest or not 1 <= columns <= largest:
        raise InputError(
            f"{name[0].upper()}{name[1:]} has {rows} rows and {columns} columns; 1 to {largest} are allowed."
        )
    limit = float(np.finfo(dtype).max)

    def accept_rows(block: tuple[int, Array]) -> None:
        first, piece = block
        size = np.abs(piece.astype(np.float64, copy=False))
        bad = ~(size <= limit) if finite else ~((size <= limit) | np.isinf(size))
        if bad.any():
            row, column = np.argwhere(bad)[0].tolist()
            value = piece[row, column].item()
            why = "is not a finite number" if finite else "is not a number"
            if np.isfinite(value):
                why = f"does not fit {np.dtype(dtype)}"
            raise InputError(f"Row {first + row}, column {column} of {name}, {value!r}, {why}.")

    map_parts(accept_rows, iterate_row_blocks(values))


def iterate_row_blocks(values: Array) -> Iterator[tuple[int, Array]]:
    """Yield a matrix a few rows at a time, each part with the number of its first row."""
    step = max(1, _CHUNK // max(1, values.shape[1]))
    for first in range(0, values.shape[0], step):
        yield first, values[first : first + step]


def to_float32(values: Array) -> Array:
    """Return a matrix as kernels need it: float32, contiguous rows; `accept_matrix` has checked that it fits."""
    return np.ascontiguousarray(values, np.float32)


def present(matrices: Mapping[str, Array], first: int = 0) -> Outputs:
    """Return the arrays that a window shows of matrices.

    Parameters
    ----------
    matrices : mapping of str to array of shape (rows, columns)
        By the name that is shown above each.
    first : int
        Index of their first row in the larger matrices that they are rows of.

    Returns
    -------
    mapping of str to array
        For a matrix "A": `A`, its elements, subsampled where it has more than `MAX_DISPLAYED_SIDE` rows or columns;
        `A picture`, uint8, of the same shape with three channels; `A shape`, its numbers of rows and columns;
        `A first`, which is `first`; and `A range`, float64, the minimum and maximum of the finite elements that are
        shown, NaN without any.
    """
    arrays: dict[str, Array] = {}
    for name, values in matrices.items():
        stride = display_stride(values.shape)
        arrays[name] = np.ascontiguousarray(values[::stride, ::stride], np.float32)
        low, high = _finite_range(arrays[name])
        arrays[f"{name} picture"] = color_matrix(arrays[name], low, high)
        arrays[f"{name} range"] = np.array([low, high])
        arrays[f"{name} shape"] = np.array(values.shape)
        arrays[f"{name} first"] = np.array(first)
    return arrays


def display_stride(shape: tuple[int, ...]) -> int:
    """Return the stride between the rows and columns of a matrix that are shown."""
    return max(1, -(-max(shape) // MAX_DISPLAYED_SIDE))


def _finite_range(values: Array) -> tuple[float, float]:
    finite = np.isfinite(values)
    if not finite.any():
        return np.nan, np.nan
    return float(values.min(where=finite, initial=np.inf)), float(values.max(where=finite, initial=-np.inf))


def color_matrix(values: Array, low: float, high: float) -> Array:
    """Color a matrix from dark blue (`low` or less) to yellow (`high` or more), and NaN red.

    Parameters
    ----------
    values : float array of shape (rows, columns)

    Returns
    -------
    uint8 array of shape (rows, columns, 3)
    """
    places, steps = np.linspace(0, len(_COLORS) - 1, 256), np.arange(len(_COLORS))
    table = np.stack([np.interp(places, steps, channel) for channel in _COLORS.T], axis=1).round().astype(np.uint8)
    width = high - low if high > low else 1.0
    colored = np.empty((*values.shape, 3), np.uint8)

    def color_rows(part: slice) -> None:
        with np.errstate(invalid="ignore", over="ignore"):
            level = np.clip((values[part].astype(np.float64) - low) * (255 / width), 0, 255)
        missing = np.isnan(level)
        level[missing] = 0
        np.take(table, level.astype(np.uint8), axis=0, out=colored[part], mode="clip")
        colored[part][missing] = _NAN_COLOR

    rows = max(1, _COLORED_ELEMENTS // max(values.shape[1], 1))
    map_parts(color_rows, [slice(first, first + rows) for first in range(0, len(values), rows)])
    return colored


def crop_corner(inputs: Inputs, rows: int, columns: int) -> Inputs:
    """Truncate a matrix to its first rows and columns, few enough to follow every step."""
    return {**inputs, "values": np.ascontiguousarray(inputs["values"][:rows, :columns])}
