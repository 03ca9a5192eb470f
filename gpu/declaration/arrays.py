"""Shared code of the array patterns: inputs from a seed or a file, their parameters, and their outlines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpu.base.errors import InputError
from gpu.base.threads import PART_ELEMENTS, map_parts
from gpu.base.warp import WARP
from gpu.declaration.gpu_sizes import SizeRule
from gpu.declaration.pattern import Array, Choice, Inputs, Integer, Outputs, Params
from gpu.declaration.random_values import draw_values
from gpu.declaration.roles import FROM_FILE, Role
from gpu.declaration.text_parameters import Numbers, parse_numbers

KINDS = ("random", "signed", "ones", "ramp", "alternating", "sausage")
TYPED = "typed"
"""The option of a source for values that the user types."""
MAX_TYPED_VALUES = 2048

SAUSAGE_INCHES = (3, 5, 2, 7, 28, 4, 3, 0, 8, 1)
"""Inches of sausage that ten people order: Kirk and Hwu's example of a scan."""

OUTLINE_COLUMNS = 1024
_MAX_RANGES = 48
_MAX_DIVIDED_WIDTH = 100 * _MAX_RANGES
"""The widest range of a distribution for which one that divides the span is searched."""
_MAX_SAMPLES_PER_COLUMN, _MIN_SAMPLES_PER_COLUMN = 256, 8
MAX_READOUT_VALUES = 2**22
"""The most leading values that a window can show one by one, and the most samples for a distribution."""
READABLE_ELEMENTS = 1024
"""Up to this many elements, random whole numbers have two digits for every operator, so that they are readable."""
MAX_RANDOM_FACTORS = 1024
"""The most random float factors other than 1 for "product", so that the product stays in range and its error small."""
_MAX_EXPONENT = 126
"""float32 represents 2^-126 and 2^126 with full precision."""


def input_parameter(kinds: tuple[str, ...] = KINDS) -> Choice:
    """Return the parameter for the source of the values: one of `kinds`, typed values, or a file."""
    return Choice(
        name="input",
        label="Input",
        help="How the elements are generated, or whether they are typed or read from a file.",
        options=(*kinds, TYPED, FROM_FILE),
        default="random",
        role=Role.SOURCE,
    )


def size_parameter(
    default: int = 2**20, maximum: int = 2**30, kinds: tuple[str, ...] = KINDS, on_gpu: SizeRule | None = None
) -> Integer:
    """Return the parameter for the number of generated values.

    Parameters
    ----------
    default, maximum : int
        The default and the largest number; the smallest is 0.
    kinds : tuple of str
        The sources of values for which the parameter applies.
    on_gpu : SizeRule or None
        As in `Integer`.
    """
    return Integer(
        name="n",
        label="Elements",
        help="Number of elements to generate.",
        unit="elements",
        default=default,
        minimum=0,
        maximum=maximum,
        only_if=("input", kinds),
        role=Role.SIZE,
        on_gpu=on_gpu,
    )


def values_parameter() -> Numbers:
    """Return the parameter for values that the user types."""
    return Numbers(
        name="values",
        label="Values",
        help="The elements, as numbers separated by spaces or commas.",
        default="3 1 7 0 4 1 6 3",
        maximum=MAX_TYPED_VALUES,
        only_if=("input", (TYPED,)),
        role=Role.VALUES,
    )


def dtype_parameter(options: tuple[str, ...] = ("int32", "float32")) -> Choice:
    """Return the parameter for the type of the elements."""
    return Choice(
        name="dtype",
        label="Type",
        help="The elements' type. int32 wraps around on overflow, as on GPUs, though CUDA C++ leaves it undefined.",
        options=options,
        default=options[0],
        role=Role.TYPE,
    )


def block_parameter(smallest: int = 8) -> Choice:
    """Return the parameter for the number of threads per block: a power of two, up to 1024."""
    sizes = tuple(2**power for power in range(11) if 2**power >= smallest)
    return Choice(
        name="block",
        label="Block",
        help="Threads per block; variants that need whole warps use at least 32.",
        unit="threads",
        options=tuple(map(str, sizes)),
        default="256",
        role=Role.BLOCK,
    )


def warp_aligned_block_size(params: Params) -> int:
    """Return the number of threads per block from the parameter `block`, at least one warp."""
    return max(int(params["block"]), WARP)


def make_input(params: Params, seed: int) -> Inputs:
    """Generate values as the parameters `input`, `n`, `dtype` and, where there is one, `operator` specify.

    Raises
    ------
    InputError
        The source is a file, but none is open.
    """
    require_generated_input(params)
    if params["input"] == TYPED:
        return {"values": parse_numbers(params["values"])}
    values = make_values(params["input"], params["n"], params["dtype"], seed, operator=params.get("operator", "sum"))
    return {"values": values}


def require_generated_input(params: Params) -> None:
    """Raise InputError if the parameter `input` selects a file, since no file is open."""
    if params["input"] == FROM_FILE:
        raise InputError("No file of numbers is open.", advice="Open one, or choose another input.")


def make_values(kind: str, n: int, dtype: str, seed: int, *, operator: str = "sum") -> Array:
    """Generate n values.

    Parameters
    ----------
    kind : str
        One of `KINDS`; "signed" are random values of both signs.
    dtype : {"int32", "float32"}
    seed : int
        Seed of the random values.
    operator : str
        Operator that will combine the values. For "product", values are chosen so that it neither overflows nor
        vanishes: odd numbers, with an odd product however it wraps around; floats from 1/2 to 2, most of them 1. For
        "min" or "max", random whole numbers of large inputs span the whole type, so that a skipped element shows.

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
            return np.resize(np.array(SAUSAGE_INCHES, dtype), n)
        case "ramp":
            return _make_ramp(n, dtype, operator)
    rng = np.random.default_rng(seed)
    if dtype == "float32" and operator == "product":
        values = _make_factors(n, rng)
        return values * _draw_signs(rng, n, dtype) if kind == "signed" else values
    # Fewer different values in large inputs, so that their sum does not wrap around.
    limit = max(min(100, 2**31 // max(n, 1)), 2)
    spans_type = operator in ("min", "max") and n > READABLE_ELEMENTS

    def draw(generator: np.random.Generator, count: int) -> Array:
        drawn: Array
        if dtype == "float32":
            drawn = generator.random(count, np.float32)
        elif spans_type:
            drawn = generator.integers(-(2**31), 2**31, count, np.int32)
        elif operator == "product":
            drawn = generator.integers(0, 50, count, np.int32) * np.int32(2) + np.int32(1)
        else:
            drawn = generator.integers(0, limit, count, np.int32)
        return drawn * _draw_signs(generator, count, dtype) if kind == "signed" else drawn

    return draw_values(rng, n, draw)


def _make_ramp(n: int, dtype: str, operator: str) -> Array:
    if operator != "product":
        return np.arange(n, dtype=dtype)
    if dtype == "int32":
        return np.arange(n, dtype=np.int32) * np.int32(2) + np.int32(1)
    # The product of the first half must not vanish either.
    reach = min(0.5, 64 / max(n, 1))
    return np.linspace(1 - reach, 1 + reach, n, dtype=np.float32)


def _draw_signs(rng: np.random.Generator, n: int, dtype: str) -> Array:
    return rng.choice(np.array([-1, 1], dtype), n)


def _make_factors(n: int, rng: np.random.Generator) -> Array:
    factors = np.ones(n, np.float32)
    others = rng.choice(n, min(n, MAX_RANDOM_FACTORS), replace=False, shuffle=False)
    factors[others] = np.exp2(rng.uniform(-1, 1, others.size))
    return factors


def cast_values(inputs: Inputs, params: Params) -> Array:
    """Return the values in the type of the parameter `dtype`; `accept_values` has checked that they fit."""
    return np.ascontiguousarray(inputs["values"], params["dtype"])


def accept_values(inputs: Inputs, params: Params, *, finite: bool = True) -> None:
    """Raise InputError if a value does not fit the type of the parameter `dtype`, or is not finite but has to be."""
    values, dtype = inputs["values"], np.dtype(params["dtype"])
    if values.dtype == dtype and dtype.kind != "f":
        return

    def accept_part(start: int) -> None:
        _accept_piece(values[start : start + PART_ELEMENTS], dtype, start, finite or dtype.kind != "f")

    map_parts(accept_part, range(0, values.size, PART_ELEMENTS))


def accept_factors(inputs: Inputs, params: Params) -> None:
    """Raise InputError if the operator is a product of floats, and products of neighbors leave float32's range.

    Kernels multiply neighbors in any order. If no product of consecutive elements leaves the range, no order does; if
    one does, the results of different orders differ by more than rounding.
    """
    if params["dtype"] != "float32" or params["operator"] != "product" or not inputs["values"].size:
        return
    values = cast_values(inputs, params)
    # A product of consecutive elements is a quotient of prefix products; one with a zero is exact.
    zeros = np.flatnonzero(values == 0)
    upto = np.zeros(values.size + 1)
    np.log2(np.abs(values), out=upto[1:], where=values != 0, dtype=np.float64)
    upto.cumsum(out=upto)
    runs = np.concatenate([[0], zeros + 1])
    if (np.maximum.reduceat(upto, runs) - np.minimum.reduceat(upto, runs)).max() > _MAX_EXPONENT:
        raise InputError(
            "A product of some of these factors is outside the range of float32.",
            advice="Choose fewer factors, factors closer to 1, or int32, which wraps around.",
        )


def _accept_piece(values: Array, dtype: np.dtype[Any], start: int, finite: bool) -> None:
    if values.dtype.kind == "f" and finite:
        _refuse_first(~np.isfinite(values), values, start, "is not a finite number")
    if values.dtype == dtype:
        return
    limits = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    exact = values.astype(np.float64) if dtype.kind == "f" else values
    outside = (exact < float(limits.min)) | (exact > float(limits.max))
    _refuse_first(outside & np.isfinite(exact), values, start, f"does not fit {dtype}")
    if values.dtype.kind == "f" and dtype.kind != "f":
        _refuse_first(
            values != np.trunc(values), values, start, f"is not whole, as {dtype} requires; float32 can hold it"
        )


def _refuse_first(bad: Array, values: Array, start: int, reason: str) -> None:
    if bad.any():
        index = int(bad.argmax())
        raise InputError(f"Element {start + index} of the input, {values[index].item()!r}, {reason}.")


def outline(values: Array, columns: int = OUTLINE_COLUMNS) -> Array:
    """Return the minimum and maximum of each group of neighboring values, to draw a curve of many values.

    Parameters
    ----------
    values : array of shape (n,)
    columns : int
        The most groups; with no more values than that, each value is a group.

    Returns
    -------
    array of shape (2, min(n, columns))
        In the values' type. Groups are as equal as possible: group k begins at element k * n // columns.
    """
    n = values.size
    if n <= columns:
        return np.stack([values, values])
    return _reduce_columns(n, columns, lambda part, starts: _find_limits(values[part], starts))


def outline_selected(values: Array, mask: Array) -> Array:
    """Return the outline of the values that `mask` selects: float64, NaN in columns without any."""

    def outline_part(part: slice, starts: Array) -> Array:
        # fmin and fmax would do it in one pass, but reduceat of them is several times slower.
        low = np.minimum.reduceat(np.where(mask[part], values[part], np.inf), starts)
        high = np.maximum.reduceat(np.where(mask[part], values[part], -np.inf), starts)
        return np.where(low <= high, np.stack([low, high]).astype(np.float64), np.nan)

    return _reduce_columns(values.size, min(values.size, OUTLINE_COLUMNS), outline_part)


def _find_limits(values: Array, starts: Array) -> Array:
    return np.stack([np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)])


def _reduce_columns(n: int, columns: int, reduce: Callable[[slice, Array], Array]) -> Array:
    """Reduce groups of neighboring elements, with the groups of `outline`, a part of the columns at a time.

    Parameters
    ----------
    n, columns : int
        The number of elements, and of groups, not more than `n`.
    reduce : callable
        Called with a part of the elements and where its groups start in it; returns their values, of shape (2, groups).

    Returns
    -------
    array of shape (2, columns)
    """
    step = max(1, PART_ELEMENTS * columns // max(n, 1))

    def reduce_part(first: int) -> Array:
        last = min(first + step, columns)
        start, stop = first * n // columns, last * n // columns
        return reduce(slice(start, stop), np.arange(first, last, dtype=np.int64) * n // columns - start)

    parts = map_parts(reduce_part, range(0, columns, step))
    return np.concatenate(parts, axis=1) if parts else np.zeros((2, 0))


def compute_quartiles(values: Array, columns: int = OUTLINE_COLUMNS) -> Array:
    """Return the lower and upper quartile of each group of neighboring values, with the groups of `outline`.

    Parameters
    ----------
    values : array of shape (n,)
        With n > columns.

    Returns
    -------
    array of shape (2, columns)
        In the values' type: the quartiles of a group's elements, or of 256 of them that are spread evenly.
    """
    n = values.size
    starts = np.arange(columns, dtype=np.int64) * n // columns
    lengths = np.diff(starts, append=n)
    samples = min(int(lengths.min()), _MAX_SAMPLES_PER_COLUMN)
    places = starts[:, np.newaxis] + np.arange(samples) * lengths[:, np.newaxis] // samples
    low, high = samples // 4, (3 * samples) // 4
    partitioned = np.partition(values[places], (low, high), axis=1)
    return np.ascontiguousarray(partitioned[:, (low, high)].T)


def compute_distribution(values: Array) -> Outputs:
    """Return the distribution of the values, of all of them or of `MAX_READOUT_VALUES` that are spread evenly.

    Returns
    -------
    mapping of str to array
        `levels`, int64, of shape (ranges,): the number of values in each of equal ranges; `level edges`, float64, of
        shape (ranges + 1,). Whole numbers of a small span have one range each.
    """
    stride = -(-values.size // MAX_READOUT_VALUES)
    # In float64 the difference of the smallest and the largest float32 does not overflow.
    samples = values[::stride].astype(np.float64) if values.dtype.kind == "f" else values[::stride]
    low, high = float(samples.min()), float(samples.max())
    ranges: int | Array = _MAX_RANGES
    if values.dtype.kind in "ui" and high - low < 2**31:
        span = int(high - low) + 1
        least = -(-span // _MAX_RANGES)
        # Equal ranges where possible: a last range of fewer numbers would look like rare values. For a large span it
        # has few numbers less.
        widths = range(least, 2 * least + 1) if least <= _MAX_DIVIDED_WIDTH else ()
        width = next((index for index in widths if span % index == 0), least)
        count = -(-span // width)
        ranges = low - 0.5 + width * np.arange(count + 1.0)
    bounds = None if isinstance(ranges, np.ndarray) else (low, high)
    edges = np.histogram_bin_edges(np.array([low, high]), ranges, bounds)

    def count_part(start: int) -> Array:
        return np.histogram(samples[start : start + PART_ELEMENTS], ranges, bounds)[0]

    counts = np.sum(map_parts(count_part, range(0, samples.size, PART_ELEMENTS)), axis=0)
    return {"levels": counts.astype(np.int64), "level edges": np.asarray(edges, np.float64)}


def present_large_array(values: Array, result: Array) -> Outputs:
    """Return the arrays that a window shows if there are more values than columns; nothing for fewer values.

    Parameters
    ----------
    values, result : array of shape (n,)
        Finite values, and the result computed from them.

    Returns
    -------
    mapping of str to array
        `levels` and `level edges` as from `compute_distribution`, and `result levels` and `result level edges` for a
        result of several values; `values`, the first `MAX_READOUT_VALUES`; `middle` as from `compute_quartiles`, where
        groups are long enough.
    """
    if values.size <= OUTLINE_COLUMNS:
        return {}
    arrays = {"values": values[:MAX_READOUT_VALUES], **compute_distribution(values)}
    if result.size > 1 and np.isfinite(result).all():
        distribution = compute_distribution(result)
        arrays |= {"result levels": distribution["levels"], "result level edges": distribution["level edges"]}
    if values.size < _MIN_SAMPLES_PER_COLUMN * OUTLINE_COLUMNS:
        return arrays
    return {**arrays, "middle": compute_quartiles(values)}


def present(inputs: Inputs, params: Params, result: Array) -> Outputs:
    """Return the arrays that a window shows of a run: outlines, number of elements, and their distribution."""
    values = cast_values(inputs, params)
    arrays = {"input": outline(values), "output": outline(result), "elements": np.array(values.size)}
    return {**arrays, **present_large_array(values, result)}


def present_error(result: Array, reference: Array) -> Outputs:
    """Return the outlines of the reference result and of a result's absolute error.

    Parameters
    ----------
    result, reference : array of shape (n,)

    Returns
    -------
    mapping of str to array
        `reference`, of the reference result; `error`, float64, of the absolute differences, infinite where not finite.
    """

    def outline_error(part: slice, starts: Array) -> Array:
        with np.errstate(invalid="ignore", over="ignore"):
            difference = np.abs(np.subtract(result[part], reference[part], dtype=np.float64))
        difference[~np.isfinite(difference)] = np.inf
        return _find_limits(difference, starts)

    error = _reduce_columns(result.size, min(result.size, OUTLINE_COLUMNS), outline_error)
    return {"reference": outline(reference), "error": error}


def truncate_values(inputs: Inputs, max_count: int = 32) -> Inputs:
    """Truncate an array to `max_count` elements, few enough to follow every step."""
    return {**inputs, "values": inputs["values"][:max_count]}
