"""Small inputs that tell a pattern's mistakes apart, generated from its declaration.

A kernel can be right for typical inputs and wrong for others: for no elements, for one more than a block, for matrices
that are not square, for negative or equal values. The declaration determines which of these inputs exist: parameters
for sizes, sources of generated input, types, real factors, filters and texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from gpu.base.warp import WARP
from gpu.declaration.pattern import Array, Inputs, Integer, Params, Pattern, Real
from gpu.declaration.roles import FROM_FILE, Role
from gpu.declaration.text_parameters import BinEdges
from gpu.declaration.value_changes import VALUE_CHANGES, make_equal, repeat_values

HEIGHT, WIDTH = "height", "width"
"""Extents of an image, which are not parameters."""

_EXTENT_UNITS = ("elements", "bodies", "rows", "columns", "points")
_SMALL_EXTENTS = (5, 3, 7, 6)
"""Extents of small matrices and grids: all different, so that exchanged extents show."""
_ODD_EXTENTS: dict[int, tuple[int, ...]] = {2: (37, 10), 3: (13, 10, 7), 4: (13, 10, 7, 9)}
"""Extents for unusual values, by their number."""
_VECTOR_EXTENTS = ((8, 12, 4, 16), (6, 10, 14, 18))
"""Extents that are multiples of four, for 16-byte accesses, and of two only."""
_IMAGE_SHAPE = (23, 41)
UNIFORM_ELEMENTS = 300
"""Equal elements per thread: more than a counter of one byte can count."""
_FACTORS = (0.75, -1.25, 0.5, -2.5)
"""Values of real parameters, as factors that cannot be left out or exchanged unnoticed."""


@dataclass(frozen=True)
class EdgeCase:
    """A small input at the edge of what a pattern accepts.

    Parameters
    ----------
    name : str
        Such as "n = 1" or "negative values".
    make_inputs : callable
        Returns the inputs; raises InputError if the pattern or its types have no such input.
    """

    name: str
    params: Params
    make_inputs: Callable[[], Inputs]


@dataclass(frozen=True)
class EdgeCaseSizes:
    """Sizes at which a variant's launches change.

    Parameters
    ----------
    block : int
        Threads per block.
    tiles : mapping of str to int
        The largest value of each extent with which one block is launched; extents without effect are missing.
    largest, typical : int
        The most elements of a one-dimensional input, and of one with unusual values.
    bounded_threads : int
        The number of threads of a large input, if it does not grow with the input; 0 if it does.
    """

    block: int
    tiles: Mapping[str, int]
    largest: int
    typical: int
    bounded_threads: int = 0


def find_extents(pattern: Pattern, params: Params) -> tuple[Integer, ...]:
    """Return the parameters for the sizes of the input that apply, that for the number of columns or elements first."""
    extents = [
        parameter
        for parameter in pattern.parameters
        if isinstance(parameter, Integer) and parameter.unit in _EXTENT_UNITS and parameter.applies(params)
    ]
    return tuple(sorted(extents, key=lambda each: each.role is not Role.SIZE))


def typical_params(pattern: Pattern, params: Params) -> Params:
    """Return parameters for generated input: of random values, if the pattern generates these."""
    source = pattern.source
    if source is None or not source.applies(params):
        return params
    if "random" in source.options:
        return {**params, source.name: "random"}
    return {**params, source.name: source.options[0]} if pattern.reads_file(params) else params


def generate_edge_cases(
    pattern: Pattern, params: Params, inputs: Inputs, seed: int, sizes: EdgeCaseSizes
) -> Iterator[EdgeCase]:
    """Yield small inputs for a pattern, those of increasing size first, then those with unusual values.

    Parameters
    ----------
    params : mapping
        The parameters of the run, all of which are given. Choices stay as they are, except for the source of the input.
    inputs : mapping
        The inputs of the run, of which only the type of an image is used.
    seed : int
        The seed of generated inputs.
    """
    base = typical_params(pattern, params)
    match pattern.input_kind(params):
        case "image":
            yield from _image_cases(pattern, base, inputs, seed, sizes)
        case "text":
            yield from _text_cases(pattern, base, seed)
        case _:
            yield from _generated_cases(pattern, base, seed, sizes)
    for name, changes in pattern.edge_params(params):
        changed = {**base, **changes}
        if "image" in inputs:
            yield EdgeCase(name, changed, lambda: _make_image(inputs, _IMAGE_SHAPE, seed))
        else:
            yield _generated_case(pattern, name, {**_with_typical_extents(pattern, changed, sizes), **changes}, seed)


def _generated_case(
    pattern: Pattern, name: str, params: Params, seed: int, change: Callable[[Array], Array] | None = None
) -> EdgeCase:
    def make_inputs() -> Inputs:
        inputs = pattern.prepare_inputs({}, params, seed)
        if change is None:
            return inputs
        like = inputs["values"]
        return {
            name: change(values) if values.dtype == like.dtype and values.ndim == like.ndim else values
            for name, values in inputs.items()
        }

    return EdgeCase(name, params, make_inputs)


def _generated_cases(pattern: Pattern, params: Params, seed: int, sizes: EdgeCaseSizes) -> Iterator[EdgeCase]:
    extents = find_extents(pattern, params)
    for values in _list_small_extents(extents, sizes):
        yield _sized_case(pattern, params, values, seed)
    typical = _with_typical_extents(pattern, params, sizes)
    yield from _factor_cases(pattern, typical, seed)
    if pattern.input_kind(params) == "values":
        kind = np.dtype(pattern.value(params, Role.TYPE) or np.float32).kind
        for change in VALUE_CHANGES:
            if kind in change.kinds and (len(extents) == 1 or not change.is_order):
                yield _generated_case(pattern, change.name, typical, seed, change.apply)
        boundaries = list(_list_boundaries(pattern, params))
        if boundaries:
            repeat_boundaries = partial(repeat_values, choices=boundaries)
            yield _generated_case(pattern, "values at boundaries", typical, seed, repeat_boundaries)
    source = pattern.source
    if source is not None and source.applies(params):
        for option in source.options:
            chosen = {**typical, source.name: option}
            if option not in (FROM_FILE, typical[source.name]) and pattern.value(chosen, Role.VALUES) is None:
                yield _generated_case(pattern, f"{source.name} = {option}", chosen, seed)
    for values in _list_tile_extents(extents, sizes, has_block=pattern.block is not None):
        yield _sized_case(pattern, params, values, seed)
    if sizes.bounded_threads and pattern.size is not None:
        count = UNIFORM_ELEMENTS * sizes.bounded_threads
        many = {**typical, pattern.size.name: count}
        yield _generated_case(pattern, f"{count} equal values", many, seed, make_equal)


def _with_typical_extents(pattern: Pattern, params: Params, sizes: EdgeCaseSizes) -> Params:
    """Return parameters with small extents: more than a block of elements, or a matrix that is not square."""
    extents = find_extents(pattern, params)
    values = [min(2 * sizes.block + 3, sizes.typical)] if len(extents) == 1 else _ODD_EXTENTS[len(extents)]
    return {**params, **{each.name: min(value, each.maximum) for each, value in zip(extents, values, strict=True)}}


def _sized_case(pattern: Pattern, params: Params, extents: Mapping[str, int], seed: int) -> EdgeCase:
    name = ", ".join(f"{key} = {value}" for key, value in extents.items())
    return _generated_case(pattern, name, {**params, **extents}, seed)


def _list_small_extents(extents: tuple[Integer, ...], sizes: EdgeCaseSizes) -> Iterator[dict[str, int]]:
    """Yield the smallest extents; of one-dimensional inputs also those around a block and a tile."""
    if not extents:
        return
    first, *others = extents
    if not others:
        block, tile = sizes.block, sizes.tiles.get(first.name, sizes.block)
        around = {size + more for size in (block, tile) for more in (-1, 0, 1)}
        for value in sorted({first.minimum, 1, 2, 3, *around, 2 * block + 2}):
            if first.minimum <= value <= min(first.maximum, sizes.largest):
                yield {first.name: value}
        return
    names = [each.name for each in extents]
    yield dict.fromkeys(names, 1)
    for name in names:
        yield {**dict(zip(names, _SMALL_EXTENTS, strict=False)), name: 1}
    for values in _VECTOR_EXTENTS:
        yield dict(zip(names, values, strict=False))


def _list_tile_extents(
    extents: tuple[Integer, ...], sizes: EdgeCaseSizes, *, has_block: bool
) -> Iterator[dict[str, int]]:
    """Yield extents of matrices and grids, one of which is around a tile or, for `has_block`, more than a block."""
    if len(extents) < 2:
        return
    names = [each.name for each in extents]
    small = dict(zip(names, _SMALL_EXTENTS, strict=False))
    fallback = min(sizes.tiles.get(names[0], WARP), WARP)
    for name in names:
        tile = sizes.tiles.get(name, fallback)
        sides = [tile - 1, tile + 1]
        if has_block and name == names[0]:
            sides += [sizes.block - 1, sizes.block + 1]
        for value in dict.fromkeys(sides):
            if 1 < value <= sizes.largest:
                yield {**small, name: value}


def _factor_cases(pattern: Pattern, params: Params, seed: int) -> Iterator[EdgeCase]:
    factors = {
        each.name: min(abs(value) if value < each.minimum else value, each.maximum)
        for each, value in zip(_list_factors(pattern, params), _FACTORS, strict=False)
    }
    if factors:
        name = ", ".join(f"{key} = {value:g}" for key, value in factors.items())
        yield _generated_case(pattern, name, {**params, **factors}, seed)


def _list_factors(pattern: Pattern, params: Params) -> list[Real]:
    return [
        each
        for each in pattern.parameters
        if isinstance(each, Real) and each.applies(params) and each.role is not Role.TIME_STEP
    ]


def _list_boundaries(pattern: Pattern, params: Params) -> Iterator[float]:
    """Yield the values of parameters that values may be compared with."""
    for each in pattern.parameters:
        if each.applies(params):
            if isinstance(each, Real) and each.role is None:
                yield params[each.name]
            if isinstance(each, BinEdges):
                yield from params[each.name]


def _image_cases(
    pattern: Pattern, params: Params, inputs: Inputs, seed: int, sizes: EdgeCaseSizes
) -> Iterator[EdgeCase]:
    height, width = (sizes.tiles.get(name, _SMALL_EXTENTS[0]) for name in (HEIGHT, WIDTH))
    shapes = [(1, 1), (1, 7), (6, 1), (5, width - 1), (3, width + 1), (height + 1, 3), _IMAGE_SHAPE, (7, 12, 3)]
    for shape in shapes:
        if min(shape) > 0:
            channels = " in color" if len(shape) == 3 else ""
            name = f"{shape[1]} x {shape[0]} pixels{channels}"
            yield EdgeCase(name, params, lambda shape=shape: _make_image(inputs, shape, seed))  # type: ignore[misc]
    maxval = int(inputs["maxval"])
    for name, levels in (("black pixels", (0,)), ("white pixels", (maxval,)), ("black and white pixels", (0, maxval))):
        yield EdgeCase(name, params, lambda levels=levels: _fill_image(inputs, _IMAGE_SHAPE, levels))  # type: ignore[misc]
    if sizes.bounded_threads:
        shape = (UNIFORM_ELEMENTS, sizes.bounded_threads)
        name = f"{shape[0] * shape[1]} equal pixels"
        yield EdgeCase(name, params, lambda: _fill_image(inputs, shape, (maxval,)))


def _make_image(inputs: Inputs, shape: tuple[int, ...], seed: int) -> Inputs:
    image = np.random.default_rng(seed).integers(0, int(inputs["maxval"]), shape, np.int64, endpoint=True)
    return {**inputs, "image": image.astype(inputs["image"].dtype)}


def _fill_image(inputs: Inputs, shape: tuple[int, ...], levels: tuple[int, ...]) -> Inputs:
    return {**inputs, "image": np.resize(np.array(levels, inputs["image"].dtype), shape)}


def _text_cases(pattern: Pattern, params: Params, seed: int) -> Iterator[EdgeCase]:
    latin = "".join(map(chr, range(32, 256)))
    for name, text in (("one character", "a"), ("all characters", latin), ("equal characters", "z" * 1000)):
        yield _generated_case(pattern, name, {**params, **pattern.params_for_role(Role.TEXT, text)}, seed)
