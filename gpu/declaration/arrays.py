"""What the array patterns share: inputs made from a seed or taken from a file, their parameters, their outlines."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu.declaration.gpu_sizes import SizeRule
from gpu.declaration.pattern import Array, Choice, Inputs, Integer, Outputs, Params
from gpu.declaration.roles import FROM_FILE, Role
from gpu.declaration.text_parameters import Numbers, numbers_of
from gpu.errors import InputError
from gpu.warp import WARP

KINDS = ("random", "signed", "ones", "ramp", "alternating", "sausage")
TYPED = "typed"
"""The option of a source that says: somebody types the values."""
MOST_TYPED = 2048

SAUSAGE = (3, 5, 2, 7, 28, 4, 3, 0, 8, 1)
"""Inches that ten people want of a sausage: Kirk and Hwu's example of a scan."""

OUTLINE_COLUMNS = 1024
_ERROR_COLUMNS = 64
_CHECKED = 2**20
_LEVELS = 48
_OF_A_COLUMN, _FEWEST_OF_A_COLUMN = 256, 8
READ_OUT = 2**22
"""So many values from the first one on a window can read one by one; and so many, spread evenly, it counts."""
READABLE_ELEMENTS = 1024
"""Up to so many elements, random whole numbers have two digits, whatever the operator: somebody reads them."""
FACTORS = 1024
"""So many random factors of a float product are not 1: it stays in range, and is as exact as a product of so many."""


def input_parameter(kinds: tuple[str, ...] = KINDS) -> Choice:
    """Return the parameter that says where the values come from: one of `kinds`, what is typed, or a file."""
    return Choice(
        name="input",
        label="Input",
        help="How the elements are made, or that they are typed or come from a file.",
        options=(*kinds, TYPED, FROM_FILE),
        default="random",
        role=Role.SOURCE,
    )


def size_parameter(
    default: int = 2**20, maximum: int = 2**30, kinds: tuple[str, ...] = KINDS, on_gpu: SizeRule | None = None
) -> Integer:
    """Return the parameter that says how many values are made, where they are one of `kinds`."""
    return Integer(
        name="n",
        label="Elements",
        help="How many elements are made.",
        unit="elements",
        default=default,
        minimum=0,
        maximum=maximum,
        only_if=("input", kinds),
        role=Role.SIZE,
        on_gpu=on_gpu,
    )


def values_parameter() -> Numbers:
    """Return the parameter that holds the values that somebody types."""
    return Numbers(
        name="values",
        label="Values",
        help="The elements, as numbers in a line.",
        default="3 1 7 0 4 1 6 3",
        maximum=MOST_TYPED,
        only_if=("input", (TYPED,)),
        role=Role.VALUES,
    )


def dtype_parameter(options: tuple[str, ...] = ("int32", "float32")) -> Choice:
    """Return the parameter that says what type the elements have."""
    return Choice(
        name="dtype",
        label="Type",
        help="The elements' type. int32 wraps around, as it does on a GPU.",
        options=options,
        default=options[0],
        role=Role.TYPE,
    )


def block_parameter(smallest: int = 8, default: int = 256) -> Choice:
    """Return the parameter that says how many threads a block has: a power of two, up to 1024."""
    sizes = tuple(2**power for power in range(11) if 2**power >= smallest)
    return Choice(
        name="block",
        label="Block",
        help="Threads in a block; a variant that needs whole warps takes 32 where it is fewer.",
        unit="threads",
        options=tuple(map(str, sizes)),
        default=str(default),
        role=Role.BLOCK,
    )


def whole_warps(params: Params) -> int:
    """Return how many threads a block has, a warp at least, by the parameter `block`."""
    return max(int(params["block"]), WARP)


def make_input(params: Params, seed: int) -> Inputs:
    """Make the values that parameters named `input`, `n`, `dtype` and perhaps `operator` ask for.

    Raises
    ------
    InputError
        Where they ask for a file, since none was given.
    """
    refuse_missing_file(params)
    if params["input"] == TYPED:
        return {"values": numbers_of(params["values"])}
    made = make_values(params["input"], params["n"], params["dtype"], seed, operator=params.get("operator", "sum"))
    return {"values": made}


def refuse_missing_file(params: Params) -> None:
    """Raise InputError where `input` asks for a file: whoever makes values was given none."""
    if params["input"] == FROM_FILE:
        raise InputError("No file of numbers is open.", advice="Open one, or choose another input.")


def make_values(kind: str, n: int, dtype: str, seed: int, *, operator: str = "sum") -> Array:
    """Make n values.

    Parameters
    ----------
    kind : str
        One of `KINDS`; "signed" are random ones of both signs.
    n : int
    dtype : {"int32", "float32"}
    seed : int
        What random values grow from.
    operator : str
        What the values will be combined by. For a "product" they are chosen so that it neither overflows nor vanishes:
        odd numbers, whose product is odd however it wraps around; floats from 1/2 to 2, most of them 1. For a "min" or
        "max", many random whole numbers are of any size, so that it matters whether each is looked at.

    Returns
    -------
    array of shape (n,)
    """
    match kind:
        case "ones":
            return np.ones(n, dtype)
        case "alternating":
            signs = np.ones(n, dtype)
            signs[1::2] = -1
            return signs
        case "sausage":
            return np.resize(np.array(SAUSAGE, dtype), n)
        case "ramp":
            return _ramp(n, dtype, operator)
    rng = np.random.default_rng(seed)
    made = _random(n, dtype, operator, rng)
    return made * rng.choice(np.array([-1, 1], dtype), n) if kind == "signed" else made


def _ramp(n: int, dtype: str, operator: str) -> Array:
    if operator != "product":
        return np.arange(n, dtype=dtype)
    if dtype == "int32":
        return np.arange(n, dtype=np.int32) * np.int32(2) + np.int32(1)
    # The first half alone must not vanish either.
    reach = min(0.5, 64 / max(n, 1))
    return np.linspace(1 - reach, 1 + reach, n, dtype=np.float32)


def _random(n: int, dtype: str, operator: str, rng: np.random.Generator) -> Array:
    if dtype == "float32":
        if operator != "product":
            return rng.random(n, np.float32)
        factors = np.ones(n, np.float32)
        others = rng.choice(n, min(n, FACTORS), replace=False, shuffle=False)
        factors[others] = np.exp2(rng.uniform(-1, 1, others.size))
        return factors
    if operator in ("min", "max") and n > READABLE_ELEMENTS:
        return rng.integers(-(2**31), 2**31, n, np.int32)
    if operator == "product":
        return rng.integers(0, 50, n, np.int32) * np.int32(2) + np.int32(1)
    return rng.integers(0, 100, n, np.int32)


def typed(inputs: Inputs, params: Params) -> Array:
    """Return the values in the type that the parameters ask for; `accept_values` has seen that they fit."""
    return np.ascontiguousarray(inputs["values"], params["dtype"])


def accept_values(inputs: Inputs, params: Params, *, finite: bool = True) -> None:
    """Raise InputError where a value is not one of the type that the parameters ask for, or not finite as it should."""
    values, dtype = inputs["values"], np.dtype(params["dtype"])
    if values.dtype == dtype and dtype.kind != "f":
        return
    for start in range(0, values.size, _CHECKED):
        _accept_piece(values[start : start + _CHECKED], dtype, start, finite or dtype.kind != "f")


def _accept_piece(values: Array, dtype: np.dtype[Any], start: int, finite: bool) -> None:
    if values.dtype.kind == "f" and finite:
        _refuse(~np.isfinite(values), values, start, "is not a finite number")
    if values.dtype == dtype:
        return
    limits = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    exact = values.astype(np.float64) if dtype.kind == "f" else values
    outside = (exact < float(limits.min)) | (exact > float(limits.max))
    _refuse(outside & np.isfinite(exact), values, start, f"does not fit {dtype}")
    if values.dtype.kind == "f" and dtype.kind != "f":
        _refuse(values != np.trunc(values), values, start, f"is not whole, as {dtype} is; float32 takes it")


def _refuse(bad: Array, values: Array, start: int, why: str) -> None:
    if bad.any():
        place = int(bad.argmax())
        raise InputError(f"Element {start + place} of the input, {values[place].item()!r}, {why}.")


def outline(values: Array, columns: int = OUTLINE_COLUMNS) -> Array:
    """Return what a curve of many values needs: the least and the greatest of each run of neighbors.

    Parameters
    ----------
    values : array of shape (n,)
    columns : int
        The most runs; where there are no more values than that, each is a run of its own.

    Returns
    -------
    array of shape (2, min(n, columns))
        In the values' type. Runs are as equal as can be: run k begins at element k * n // columns.
    """
    n = values.size
    if n <= columns:
        return np.stack([values, values])
    starts = np.arange(columns, dtype=np.int64) * n // columns
    return np.stack([np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)])


def outline_of_kept(values: Array, kept: Array) -> Array:
    """Return the outline of the values that are kept: float64, NaN in columns where none is."""
    with np.errstate(invalid="ignore"):
        # fmin and fmax would do it in one pass, but reduceat of them is several times slower.
        low = outline(np.where(kept, values, np.inf))[0]
        high = outline(np.where(kept, values, -np.inf))[1]
    there = low <= high
    return np.where(there, np.stack([low, high]).astype(np.float64), np.nan)


def middle_half(values: Array, columns: int = OUTLINE_COLUMNS) -> Array:
    """Return between what the middle half of each run of neighbors lies, the runs being those of `outline`.

    Parameters
    ----------
    values : array of shape (n,)
        With n > columns.
    columns : int

    Returns
    -------
    array of shape (2, columns)
        In the values' type: the quartiles of a run's elements, or of 256 of them that are spread evenly.
    """
    n = values.size
    starts = np.arange(columns, dtype=np.int64) * n // columns
    lengths = np.diff(starts, append=n)
    taken = min(int(lengths.min()), _OF_A_COLUMN)
    places = starts[:, np.newaxis] + np.arange(taken) * lengths[:, np.newaxis] // taken
    low, high = taken // 4, (3 * taken) // 4
    parted = np.partition(values[places], (low, high), axis=1)
    return np.ascontiguousarray(parted[:, (low, high)].T)


def levels_of(values: Array) -> Outputs:
    """Return how often values of each size come: of all values, or of `READ_OUT` that are spread evenly.

    Returns
    -------
    mapping of str to array
        `levels`, int64, of shape (ranges,): how many fall into each of equal ranges; `level edges`, float64, of shape
        (ranges + 1,). Whole numbers that lie close have a range each.
    """
    every = -(-values.size // READ_OUT)
    # In float64 the least and the greatest float32 have a difference.
    looked_at = values[::every].astype(np.float64) if values.dtype.kind == "f" else values[::every]
    low, high = float(looked_at.min()), float(looked_at.max())
    ranges: int | Array = _LEVELS
    if values.dtype.kind in "ui" and high - low < 2**31:
        span = int(high - low) + 1
        least = -(-span // _LEVELS)
        # Where it can be, all ranges hold equally many numbers: a last one that holds fewer looks like rare values.
        width = next((each for each in range(least, 2 * least + 1) if span % each == 0), least)
        count = -(-span // width)
        ranges = low - 0.5 + width * np.arange(count + 1.0)
    counts, edges = np.histogram(looked_at, ranges, None if isinstance(ranges, np.ndarray) else (low, high))
    return {"levels": counts.astype(np.int64), "level edges": np.asarray(edges, np.float64)}


def present_many(values: Array, result: Array) -> Outputs:
    """Return what a window shows of so many values that each has no place of its own; nothing of fewer.

    Parameters
    ----------
    values, result : array of shape (n,)
        Finite values, and what came of them.

    Returns
    -------
    mapping of str to array
        `levels` and `level edges` as `levels_of` has them, and `made levels` and `made edges` of a result of several;
        `values`, the first `READ_OUT`; `middle` as `middle_half` has it, where a run of neighbors is long enough.
    """
    if values.size <= OUTLINE_COLUMNS:
        return {}
    shown = {"values": values[:READ_OUT], **levels_of(values)}
    if result.size > 1 and np.isfinite(result).all():
        made = levels_of(result)
        shown |= {"made levels": made["levels"], "made edges": made["level edges"]}
    return {**shown, "middle": middle_half(values)} if values.size >= _FEWEST_OF_A_COLUMN * OUTLINE_COLUMNS else shown


def present(inputs: Inputs, params: Params, result: Array) -> Outputs:
    """Return what a window shows of an array pattern's run: outlines, how many elements there were, what they are."""
    values = typed(inputs, params)
    shown = {"input": outline(values), "output": outline(result), "elements": np.array(values.size)}
    return {**shown, **present_many(values, result)}


def present_error(result: Array, reference: Array) -> Outputs:
    """Return the reference's outline, and that of how far a result is from it.

    Parameters
    ----------
    result, reference : array of shape (n,)

    Returns
    -------
    mapping of str to array
        `right`, of the reference; `error`, float64, of the absolute differences: what is not finite is infinite.
    """
    n = result.size
    columns = min(n, OUTLINE_COLUMNS)
    error = np.zeros((2, columns))
    for first in range(0, columns, _ERROR_COLUMNS):
        last = min(first + _ERROR_COLUMNS, columns)
        start, stop = first * n // columns, last * n // columns
        with np.errstate(invalid="ignore", over="ignore"):
            off = np.abs(np.subtract(result[start:stop], reference[start:stop], dtype=np.float64))
        off[~np.isfinite(off)] = np.inf
        starts = np.arange(first, last, dtype=np.int64) * n // columns - start
        error[0, first:last], error[1, first:last] = np.minimum.reduceat(off, starts), np.maximum.reduceat(off, starts)
    return {"right": outline(reference), "error": error}


def first_values(inputs: Inputs, most: int = 32) -> Inputs:
    """Cut an array to so many elements, for somebody who watches every step."""
    return {**inputs, "values": inputs["values"][:most]}
