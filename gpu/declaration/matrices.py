"""What patterns of matrices share: inputs made from a seed or taken from a file, parameters, pictures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from gpu.declaration.gpu_sizes import SizeRule
from gpu.declaration.pattern import Array, Choice, Inputs, Integer, Outputs
from gpu.declaration.roles import FROM_FILE, Role
from gpu.errors import InputError

KINDS = ("random", "digits", "ones")
LARGEST = 16384

SHOWN = 2048
"""Of a matrix with more rows or columns, every second is shown, every third, and so on: at most so many."""

_CHUNK = 2**22

# Dark blue to yellow through green, of which every step looks as wide as the next: after matplotlib's viridis (CC0).
_COLORS = np.array(
    [[68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141], [39, 173, 129], [92, 200, 99],
     [170, 220, 50], [253, 231, 37]],
    np.float64,
)  # fmt: skip
_NOT_A_NUMBER = (214, 39, 40)


def input_parameter(kinds: tuple[str, ...] = KINDS, default: str = "random") -> Choice:
    """Return the parameter that says where the values come from: one of `kinds`, or a file."""
    return Choice(
        name="input",
        label="Input",
        help="How the matrices are made, or that one comes from a file.",
        options=(*kinds, FROM_FILE),
        default=default,
        role=Role.SOURCE,
    )


def side_parameter(
    name: str,
    label: str,
    text: str,
    unit: str,
    default: int,
    minimum: int = 1,
    largest: int = LARGEST,
    role: Role | None = None,
    on_gpu: SizeRule | None = None,
) -> Integer:
    """Return a parameter that says how many rows or columns a matrix has; as many as n where it may be 0."""
    least = "" if minimum else "as n"
    return Integer(
        name=name,
        label=label,
        help=text,
        unit=unit,
        default=default,
        minimum=minimum,
        maximum=largest,
        least=least,
        role=role,
        on_gpu=on_gpu,
    )


def make_matrix(kind: str, rows: int, columns: int, rng: np.random.Generator) -> Array:
    """Make a matrix of float32: random numbers from -1 to 1, random digits, or ones."""
    match kind:
        case "digits":
            return rng.integers(0, 10, (rows, columns)).astype(np.float32)
        case "ones":
            return np.ones((rows, columns), np.float32)
    return rng.random((rows, columns), np.float32) * np.float32(2) - np.float32(1)


def accept_matrix(
    values: Array,
    name: str,
    *,
    finite: bool = True,
    largest: int = LARGEST,
    dtype: type[np.float16] | type[np.float32] = np.float32,
) -> None:
    """Raise InputError where there is no element, there are more rows or columns, or one is not a finite `dtype`.

    With `finite` False an infinite element is taken too.
    """
    rows, columns = values.shape
    if not 1 <= rows <= largest or not 1 <= columns <= largest:
        raise InputError(
            f"{name[0].upper()}{name[1:]} has {rows} rows and {columns} columns; 1 to {largest} are taken."
        )
    limit = float(np.finfo(dtype).max)
    for first, piece in pieces(values):
        size = np.abs(piece.astype(np.float64, copy=False))
        bad = ~(size <= limit) if finite else ~((size <= limit) | np.isinf(size))
        if bad.any():
            row, column = np.argwhere(bad)[0].tolist()
            value = piece[row, column].item()
            why = "is not a finite number" if finite else "is no number"
            if np.isfinite(value):
                why = f"does not fit {np.dtype(dtype)}"
            raise InputError(f"Row {first + row}, column {column} of {name}, {value!r}, {why}.")


def pieces(values: Array) -> Iterator[tuple[int, Array]]:
    """Yield a matrix a few rows at a time, with the number of the first."""
    step = max(1, _CHUNK // max(1, values.shape[1]))
    for first in range(0, values.shape[0], step):
        yield first, values[first : first + step]


def single(values: Array) -> Array:
    """Return a matrix as kernels take it: float32, one row after the other; `accept_matrix` has seen that it fits."""
    return np.ascontiguousarray(values, np.float32)


def present(matrices: Mapping[str, Array], first: int = 0) -> Outputs:
    """Return what a window shows of matrices.

    Parameters
    ----------
    matrices : mapping of str to array of shape (rows, columns)
        By the name that stands above each.
    first : int
        Which row of the whole their first one is, where they are rows of larger ones.

    Returns
    -------
    mapping of str to array
        For a matrix "A" there are `A`, its elements or, of more than `SHOWN` rows or columns, every second or further;
        `A picture`, uint8, of the same shape and three channels; `A shape`, how many rows and columns it has;
        `A first`, which is `first`; and `A range`, float64, the least and the greatest of the elements that are shown
        and finite, NaN where none is.
    """
    shown: dict[str, Array] = {}
    for name, values in matrices.items():
        stride = every(values.shape)
        shown[name] = np.ascontiguousarray(values[::stride, ::stride], np.float32)
        low, high = _range(shown[name])
        shown[f"{name} picture"] = picture(shown[name], low, high)
        shown[f"{name} range"] = np.array([low, high])
        shown[f"{name} shape"] = np.array(values.shape)
        shown[f"{name} first"] = np.array(first)
    return shown


def every(shape: tuple[int, ...]) -> int:
    """Return how far apart the rows and columns are that are shown of a matrix."""
    return max(1, -(-max(shape) // SHOWN))


def _range(values: Array) -> tuple[float, float]:
    finite = np.isfinite(values)
    if not finite.any():
        return np.nan, np.nan
    return float(values.min(where=finite, initial=np.inf)), float(values.max(where=finite, initial=-np.inf))


def picture(values: Array, low: float, high: float) -> Array:
    """Color a matrix: what is `low` or less dark blue, `high` or more yellow, and what is not a number red.

    Parameters
    ----------
    values : float array of shape (rows, columns)
    low, high : float

    Returns
    -------
    uint8 array of shape (rows, columns, 3)
    """
    places, steps = np.linspace(0, len(_COLORS) - 1, 256), np.arange(len(_COLORS))
    table = np.stack([np.interp(places, steps, channel) for channel in _COLORS.T], axis=1).round().astype(np.uint8)
    width = high - low if high > low else 1.0
    with np.errstate(invalid="ignore", over="ignore"):
        level = np.clip((values.astype(np.float64) - low) * (255 / width), 0, 255)
    missing = np.isnan(level)
    level[missing] = 0
    colored: Array = table[level.astype(np.uint8)]
    colored[missing] = _NOT_A_NUMBER
    return colored


def corner(inputs: Inputs, rows: int, columns: int) -> Inputs:
    """Cut a matrix that was given down to its first rows and columns, for somebody who watches every step."""
    return {**inputs, "values": np.ascontiguousarray(inputs["values"][:rows, :columns])}
