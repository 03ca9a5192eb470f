"""Convolution of an image with a K x K filter."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from types import MappingProxyType

import numpy as np

from gpu.base.errors import InputError
from gpu.base.threads import map_parts
from gpu.base.warp import WARP
from gpu.declaration.distributed_program import DistributedProgram, Streaming, independent_chunks_plan
from gpu.declaration.gpu_sizes import square_side_rule
from gpu.declaration.images import count_covering_blocks, crop_middle, to_channels_last, to_planes, to_screen_picture
from gpu.declaration.pattern import (
    NO_CENTER_ROW,
    Array,
    Choice,
    Cost,
    HostProgram,
    Inputs,
    Integer,
    Matrix,
    Outputs,
    Params,
    Pattern,
    Preset,
    Progress,
    Textbook,
    Variant,
    Work,
)
from gpu.declaration.presentation import Filter, ImagePresentation
from gpu.declaration.roles import Role
from gpu.declaration.rounding import gamma
from gpu.engines.base import Engine, download_and_free
from gpu.patterns.convolution import fft, filters
from gpu.patterns.convolution.benchmark import BENCHMARK
from gpu.patterns.convolution.filters import BORDERS, GRADIENT, SOBELS, filter_from_params

_FILE = "convolution.cu"
_TILES = ("32x8", "16x16", "8x8", "6x6", "4x4")
# Large blocks: more warps share an unrolled loop's code, which for large filters exceeds the instruction cache.
_BLOCK = (32, 16, 1)
# Pixel types that kernels read and write.
_FLOATS, _BYTES = "float32", "uint8"
# The largest filter, and the largest one of variants that unroll over a filter row (the kernel's `WIDEST_UNROLLED`).
_MAX_FILTER, _MAX_UNROLLED_FILTER = 63, 31

# The later variants have `_PIXELS` neighboring pixels per thread, as in the kernel file. In the separable variant,
# strips are as tall as possible while each multiprocessor still gets the threads that its registers can hold, but tall
# enough that most of a strip's reads are its own rows. These numbers were the fastest on an H200.
_PIXELS = 4
_STRIP_BLOCK = (64, 2, 1)
_ROW_BLOCK = (128, 1, 1)
_REGISTERS = 65536
_MIN_STRIP_ROWS, _MAX_STRIP_ROWS = 8, 128
# For small filters, where threads load all their pixels first: rows per thread for each unit of the filter's radius.
_ROWS_BY_RADIUS = 2
_PRELOAD_BLOCK = (32, 4, 1)
# The largest filters for which this is faster than tiles; smaller for interleaved channels, as their halo is larger.
_MAX_PRELOAD_FILTER, _MAX_PRELOAD_FILTER_INTERLEAVED = 5, 3
# Bytes of a row per thread, and rows per thread.
_BYTES_ACROSS, _BYTES_ROWS = 8, 4

# The register-tiled variant's block and its pixels: `RUN_WIDTH` and `RUN_HEIGHT` in the kernel file.
_RUN_WIDTH = 64
_WARP_ROWS = 8
# Warps per block; with three interleaved channels, the halo leaves room for only half a tile.
_RUN_WARPS, _COLOR_RUN_WARPS = 8, 4

# Rows of the reference result per CPU task.
_REFERENCE_ROWS = 256
# From this size, the reference uses float64 transforms; their time does not depend on the filter; error about 10^-14.
_MIN_TRANSFORM_SIZE = 15

# Values that are rounded to levels at a time.
_ROUNDING_CHUNK = 2**16

# Ratio of the second to the first singular value of a separable filter after rounding it to float32.
_SEPARABLE_RATIO = float(np.finfo(np.float32).eps)


def _describe_filter(params: Params) -> str:
    side = len(filter_from_params(params))
    return f"{params['filter'].replace('-', ' ')} {side} × {side}"


def _describe_second_filter(params: Params) -> str:
    """Describe the gradient's second filter, which is not shown; "" for other filters."""
    return f"{filters.SOBELS[0]} shown; also {filters.SOBELS[1]}" if params["filter"] == filters.GRADIENT else ""


def factor_filter(weights: Array) -> tuple[Array, Array]:
    """Return the float32 row and column with the outer product nearest to a filter of shape (K, K)."""
    columns, values, rows = np.linalg.svd(weights.astype(np.float64))
    scale = np.sqrt(values[0])
    if rows[0].sum() + columns[:, 0].sum() < 0:
        # Both signs give the same product; positive sums make the intermediate image look like the input.
        columns, rows = -columns, -rows
    return (scale * rows[0]).astype(np.float32), (scale * columns[:, 0]).astype(np.float32)


def separability_obstacle(weights: Array) -> str:
    """Return why a filter of shape (K, K) is not a column times a row; "" if it is, to the precision of float32."""
    values = np.linalg.svd(weights.astype(np.float64), compute_uv=False)
    if values[1:].max(initial=0) <= _SEPARABLE_RATIO * values[0]:
        return ""
    return (
        f"This filter is not separable into a row and a column: its largest singular values are {values[0]:.3g} and "
        f"{values[1]:.3g}, but the second has to be 0."
    )


def _host_program(
    kernel_name: str,
    *,
    filter_in_constant_memory: bool = True,
    block: tuple[int, int, int] | None = _BLOCK,
    tile: tuple[int, int, int] | None = None,
    defines: Mapping[str, int | str] = MappingProxyType({}),
) -> HostProgram:
    """Return a host program with one launch; a block computes `tile` pixels, or one per thread.

    Without `block`, the block has the size of the parameter `tile`. 8-bit images are uploaded with interleaved
    channels, float32 images as planes.
    """

    def run(engine: Engine, inputs: Inputs, params: Params) -> Generator[Progress, None, Outputs]:
        weights = filter_from_params(params)
        radius = weights.shape[0] // 2
        across, down = map(int, params["tile"].split("x"))
        threads = block or (across, down, 1)
        tiling = {} if block else {"TILE_WIDTH": across, "TILE_HEIGHT": down}
        source = inputs["image"]
        as_bytes = params["pixels"] == _BYTES
        module = engine.build(
            _FILE, {"RADIUS": radius, **tiling, **defines, **(_byte_macros(source) if as_bytes else {})}
        )
        kernel = module.kernel(kernel_name)
        border = np.int32(BORDERS.index(params["border"]))

        loaded = np.ascontiguousarray(source) if as_bytes else to_planes(source, np.float32)
        height, width = source.shape[:2]
        image = engine.upload(loaded)
        planes, length = (1, source[0].size) if as_bytes else (len(loaded), width)
        del loaded
        out = engine.allocate(image.shape, image.dtype)
        extent = (np.int32(width), np.int32(height))
        grid = (*count_covering_blocks((length, height), tile or threads), planes)
        yield Progress(0.1, "uploaded")

        if filter_in_constant_memory:
            module.set_constant("FILTER", weights)
            if as_bytes:
                maxval = int(inputs["maxval"])
                module.set_constant("LEVELS", np.array([_zero_level(params, maxval), maxval], np.float32))
            engine.launch(kernel, grid, threads, image, out, *extent, border)
        else:
            taps = engine.upload(weights)
            engine.launch(kernel, grid, threads, image, taps, out, *extent, np.int32(radius), border)
            engine.free(taps)
        engine.free(image)
        yield Progress(0.9, "convolved")

        result = download_and_free(engine, out)
        return {"result": result if as_bytes else to_channels_last(result, source)}

    return run


def _byte_macros(image: Array) -> dict[str, int | str]:
    """Return the macros for kernels on 8-bit images."""
    return {"PIXEL": "unsigned char", "VECTOR": "unsigned int", "CHANNELS": _count_channels(image)}


def _count_channels(image: Array) -> int:
    return 1 if image.ndim == 2 else image.shape[2]


def _plan_strips(engine: Engine, shape: tuple[int, ...], radius: int) -> tuple[tuple[int, int, int], np.int32]:
    """Return the grid for tall strips of an image of shape (channels, height, width), and the rows per strip."""
    channels, height, width = shape
    window = _PIXELS + 2 * radius
    threads = engine.device.multiprocessors * _REGISTERS // (32 + _PIXELS * (2 * radius + 1) + 2 * window)
    across = -(-width // _PIXELS)
    rows = -(-height * across * channels // threads)
    rows = min(max(rows, _MIN_STRIP_ROWS, 2 * radius), _MAX_STRIP_ROWS)
    return _strip_grid(shape, rows), np.int32(rows)


def _strip_grid(shape: tuple[int, ...], rows: int) -> tuple[int, int, int]:
    channels, height, width = shape
    return (*count_covering_blocks((-(-width // _PIXELS), -(-height // rows)), _STRIP_BLOCK), channels)


def _run_separable(engine: Engine, inputs: Inputs, params: Params) -> Generator[Progress, None, Outputs]:
    weights = filter_from_params(params)
    row, column = factor_filter(weights)
    radius = weights.shape[0] // 2
    module = engine.build(_FILE, {"RADIUS": radius})
    along_rows, along_columns = module.kernel("convolve_rows"), module.kernel("convolve_columns")
    module.set_constant("FILTER_ROW", row)
    module.set_constant("FILTER_COLUMN", column)
    border = np.int32(BORDERS.index(params["border"]))

    planes = to_planes(inputs["image"], np.float32)
    channels, height, width = planes.shape
    image = engine.upload(planes)
    del planes
    intermediate = engine.allocate(image.shape, np.float32)
    extent = (np.int32(width), np.int32(height))
    yield Progress(0.1, "uploaded")

    grid = (*count_covering_blocks((-(-width // _PIXELS), height), _ROW_BLOCK), channels)
    engine.launch(along_rows, grid, _ROW_BLOCK, image, intermediate, *extent, border)
    yield Progress(0.5, "convolved along the rows")
    strips, rows = _plan_strips(engine, image.shape, radius)
    engine.launch(along_columns, strips, _STRIP_BLOCK, intermediate, image, *extent, rows, border)
    engine.free(intermediate)
    yield Progress(0.9, "convolved")

    result = to_channels_last(engine.download(image), inputs["image"])
    engine.free(image)
    return {"result": result}


def _is_interleaved(inputs: Inputs, params: Params) -> bool:
    """Return whether a kernel reads several interleaved channels."""
    return params["pixels"] == _BYTES and _count_channels(inputs["image"]) > 1


def _run_register_tiled(engine: Engine, inputs: Inputs, params: Params) -> Generator[Progress, None, Outputs]:
    warps = _COLOR_RUN_WARPS if _is_interleaved(inputs, params) else _RUN_WARPS
    block, tile = (warps * WARP, 1, 1), (_RUN_WIDTH, warps * _WARP_ROWS, 1)
    run = _host_program("convolve_register_tiled", block=block, tile=tile, defines={"RUN_WARPS": warps})
    return (yield from run(engine, inputs, params))


def _run_preloaded(engine: Engine, inputs: Inputs, params: Params) -> Generator[Progress, None, Outputs]:
    radius = filter_from_params(params).shape[0] // 2
    as_bytes = params["pixels"] == _BYTES
    across, rows = (_BYTES_ACROSS, _BYTES_ROWS) if as_bytes else (_PIXELS, _ROWS_BY_RADIUS * max(1, radius))
    tile = (_PRELOAD_BLOCK[0] * across, _PRELOAD_BLOCK[1] * rows, 1)
    defines = {"ACROSS": across, "AT_ONCE": rows, **({"AT_ONCE_RESIDENT": 0} if as_bytes else {})}
    run = _host_program("convolve_peak", block=_PRELOAD_BLOCK, tile=tile, defines=defines)
    return (yield from run(engine, inputs, params))


def _run_peak(engine: Engine, inputs: Inputs, params: Params) -> Generator[Progress, None, Outputs]:
    widest = _MAX_PRELOAD_FILTER_INTERLEAVED if _is_interleaved(inputs, params) else _MAX_PRELOAD_FILTER
    host_program = _run_preloaded if len(filter_from_params(params)) <= widest else _run_register_tiled
    return (yield from host_program(engine, inputs, params))


def _make_obstacle(
    max_size: int = _MAX_FILTER, *, reason: str = "", supports_bytes: bool = False
) -> Callable[[Inputs, Params], str]:
    """Return a function that returns why a variant does not support filters over `max_size`, or 8-bit pixels."""

    def obstacle(inputs: Inputs, params: Params) -> str:
        size = len(filter_from_params(params))
        if size > max_size:
            return f"{reason} This filter is {size} x {size}."
        if params["pixels"] == _BYTES and not supports_bytes:
            return "This variant supports only float32; choose Register-tiled or Peak for 8-bit pixels."
        return ""

    return obstacle


_SEPARABLE_OBSTACLE = _make_obstacle(
    _MAX_UNROLLED_FILTER,
    reason=f"A thread has registers for the sums of at most {_MAX_UNROLLED_FILTER} rows.",
)
_UNROLLED_OBSTACLE = _make_obstacle(
    _MAX_UNROLLED_FILTER,
    reason=f"This variant unrolls filter rows and keeps the tile's halo for filters up to {_MAX_UNROLLED_FILTER} x "
    f"{_MAX_UNROLLED_FILTER}.",
    supports_bytes=True,
)


def _two_pass_obstacle(inputs: Inputs, params: Params) -> str:
    """Return why a filter cannot be applied in two passes; "" if it can."""
    return _SEPARABLE_OBSTACLE(inputs, params) or separability_obstacle(filter_from_params(params))


def _transform_obstacle(inputs: Inputs, params: Params) -> str:
    """Return why a filter cannot be applied by transforms; "" if it can."""
    if len(filter_from_params(params)) == 1:
        return "A filter of one coefficient only scales the image; transforms would be less exact."
    return _make_obstacle()(inputs, params)


def _filter_passes(params: Params) -> tuple[Params, ...]:
    """Return the parameters for each filter that is applied to the image: both Sobel filters for the gradient."""
    if params["filter"] != GRADIENT:
        return (params,)
    return tuple({**params, "filter": name} for name in SOBELS)


def _apply_each_filter(program: HostProgram) -> HostProgram:
    """Return a host program that applies both Sobel filters for the gradient; the host computes its magnitude."""

    def run(engine: Engine, inputs: Inputs, params: Params) -> Generator[Progress, None, Outputs]:
        filtered = []
        for each in _filter_passes(params):
            outputs = yield from program(engine, inputs, each)
            filtered.append(outputs["result"])
        return {"result": filtered[0] if len(filtered) == 1 else np.hypot(*filtered)}

    return run


def _reference(inputs: Inputs, params: Params) -> Array:
    """Filter in float64. For 8-bit pixels the result is clipped to the range of levels, but not rounded."""
    filtered = [_filter_reference(inputs, each) for each in _filter_passes(params)]
    if params["pixels"] == _BYTES:
        maxval = int(inputs["maxval"])
        return np.clip(filtered[0] + _zero_level(params, maxval), 0, maxval, out=filtered[0])
    return filtered[0] if len(filtered) == 1 else np.hypot(*filtered)


def _filter_reference(inputs: Inputs, params: Params) -> Array:
    from scipy import fft, ndimage

    weights = filter_from_params(params).astype(np.float64)
    clamped = params["border"] == "clamp"
    planes = to_planes(inputs["image"], inputs["image"].dtype)
    expected = np.empty(planes.shape, np.float64)
    height, radius = planes.shape[1], weights.shape[0] // 2

    def filter_strip(strip_of: tuple[Array, Array, int]) -> None:
        plane, out, first = strip_of
        last = min(first + _REFERENCE_ROWS, height)
        above, below = max(first - radius, 0), min(last + radius, height)
        strip = plane[above:below].astype(np.float64)
        if len(weights) < _MIN_TRANSFORM_SIZE:
            mode = "nearest" if clamped else "constant"
            out[first:last] = ndimage.correlate(strip, weights, np.float64, mode)[first - above : last - above]
            return
        missing = ((above - (first - radius), last + radius - below), (radius, radius))
        widened = np.pad(strip, missing, "edge") if clamped else np.pad(strip, missing)
        lengths = [fft.next_fast_len(each, real=True) for each in widened.shape]
        product = fft.rfft2(widened, lengths) * fft.rfft2(weights, lengths).conj()
        out[first:last] = fft.irfft2(product, lengths)[: last - first, : plane.shape[1]]

    map_parts(
        filter_strip,
        (
            (plane, out, first)
            for plane, out in zip(planes, expected, strict=True)
            for first in range(0, height, _REFERENCE_ROWS)
        ),
    )
    return to_channels_last(expected, inputs["image"])


def _tolerance(inputs: Inputs, params: Params) -> float:
    """Bound the rounding error of a float32 sum of K * K products in any order; plus half a level for 8-bit pixels.

    Each product is rounded at most K * K times. Two passes have fewer roundings, 2 K of sums and products and one of
    each coefficient, but a filter that is separable only to the precision of float32 has an error of the same size:
    twice the roundings bound both. A gradient's error is at most that of both filters, plus two roundings.
    """
    weights = filter_from_params(params).astype(np.float64)
    filter_count = len(_filter_passes(params))
    rounded = gamma(2 * weights.size + 2 * filter_count) * float(np.abs(weights).sum())
    levels = 0.5 if params["pixels"] == _BYTES else 0.0
    return levels + filter_count * rounded * float(inputs["image"].max(initial=0))


def _cost(inputs: Inputs, params: Params) -> Cost:
    values = inputs["image"].size
    bytes_per_channel = np.dtype(params["pixels"]).itemsize
    return Cost(
        bytes_read=bytes_per_channel * values,
        bytes_written=bytes_per_channel * values,
        flops=2 * filter_from_params(params).size * values * len(_filter_passes(params)),
    )


def _textbook(params: Params, n: int) -> Textbook:
    """Return work and span: a product and a sum per pixel and coefficient; pixels in parallel, coefficients not."""
    coefficients = filter_from_params(params).size
    return Textbook(operations=2 * coefficients * n, steps=coefficients, peak=2 * n)


def _two_pass_textbook(params: Params, n: int) -> Textbook:
    """Return work and span of two passes, along rows and columns: 2 K instead of K * K coefficients."""
    coefficients = 2 * len(filter_from_params(params))
    return Textbook(operations=2 * coefficients * n, steps=coefficients, peak=2 * n)


def _work(inputs: Inputs, params: Params) -> Work:
    height, width = inputs["image"].shape[:2]
    return Work(height * width, "pixel")


def _transform_textbook(params: Params, n: int) -> Textbook:
    """Return work and span of two forward transforms, a product, and an inverse transform.

    A transform has log2(n) stages of n / 2 butterflies: a complex product, 6 operations with a span of 2, then a sum
    and a difference, 4 operations in parallel.
    """
    stages = max(1, (n - 1).bit_length())
    return Textbook(operations=3 * 5 * n * stages + 6 * n, steps=2 * 3 * stages + 2, peak=4 * n)


def _zero_level(params: Params, maxval: int) -> float:
    """Return the level for a result of zero: mid-gray for filters that sum to zero (edge filters), else black.

    The gradient's magnitude is never negative, so its zero is black.
    """
    around_gray = abs(float(filter_from_params(params).sum())) < 1e-3 and params["filter"] != GRADIENT
    return maxval / 2 if around_gray else 0.0


def _present(inputs: Inputs, params: Params, outputs: Outputs) -> Outputs:
    """Round the result to the input's levels, unless the kernel already did."""
    image, maxval = inputs["image"], int(inputs["maxval"])
    if params["pixels"] == _BYTES:
        return {"image": outputs["result"], "picture": to_screen_picture(outputs["result"], maxval)}
    offset = np.float32(_zero_level(params, maxval))
    rounded = np.empty(image.shape, image.dtype)
    # A few rows at a time, so that they stay in the cache between the steps.
    rows = max(1, _ROUNDING_CHUNK // max(1, image[:1].size))
    for row in range(0, image.shape[0], rows):
        band = outputs["result"][row : row + rows] + offset
        np.rint(band, out=band)
        rounded[row : row + rows] = np.clip(band, 0, maxval, out=band)
    return {"image": rounded, "picture": to_screen_picture(rounded, maxval)}


def _accept(inputs: Inputs, params: Params) -> None:
    """Raise InputError for 8-bit pixels if the image is not 8-bit, or the result would need negative levels."""
    if params["pixels"] != _BYTES:
        return
    if inputs["image"].dtype != np.uint8:
        raise InputError(
            f"This image has {8 * inputs['image'].dtype.itemsize} bits per channel; --pixels {_BYTES} needs 8.",
            advice=f"Choose --pixels {_FLOATS}.",
        )
    if params["filter"] == GRADIENT:
        raise InputError(
            "The gradient combines two results, and 8-bit pixels would clip their negative values.",
            advice=f"Choose --pixels {_FLOATS}, or another filter.",
        )


def _step_input(inputs: Inputs) -> Inputs:
    return crop_middle(inputs, 8, 12)


def _edge_params(params: Params) -> tuple[tuple[str, Params], ...]:
    """Return filters of the same size that equal none of their mirror images, one of which is separable."""
    side = len(filter_from_params(params))
    indices = np.arange(side, dtype=np.float32)
    row, column = indices + 1, (indices * 3 + 2) % 7 - 1
    mixed = (np.arange(side * side, dtype=np.float32) * 5 % 13 - 4).reshape(side, side)
    filters_by_name = {"an asymmetric separable filter": np.outer(column, row), "an asymmetric filter": mixed}
    return tuple((name, {"filter": "custom", "coefficients": each}) for name, each in filters_by_name.items())


def _filter_radius(params: Params) -> int:
    """Return the filter's radius: the halo rows above and below."""
    return len(filter_from_params(params)) // 2


PATTERN = Pattern(
    name="convolution",
    order=1,
    title="Convolution",
    summary="Weighted sums of neighboring pixels.",
    kernel_file=_FILE,
    presentation=ImagePresentation(
        Filter(filter_from_params, _describe_filter, separability_obstacle, _describe_second_filter, _filter_passes)
    ),
    parameters=(
        Choice(
            name="filter",
            label="Filter",
            help="The filter's effect on the image. The gradient applies both Sobel filters, and the host computes the "
            "root of the sum of their squares.",
            options=(*filters.NAMES, "custom"),
            default="gaussian",
        ),
        Integer(
            name="size",
            label="Size",
            help="Rows and columns of the filter.",
            unit="pixels",
            default=9,
            minimum=3,
            maximum=_MAX_FILTER,
            step=2,
            only_if=("filter", filters.NAMES),
            reason=NO_CENTER_ROW,
            defaults_by_option=filters.DEFAULT_SIZES,
        ),
        Choice(
            name="border",
            label="Border",
            help="Pixels outside the image: the nearest pixel, or zeros.",
            options=BORDERS,
            default="clamp",
        ),
        Choice(
            name="pixels",
            label="Pixels",
            help="Pixel type that kernels read and write: float32, which keeps fractions and values out of range, or "
            "the image's 8-bit levels, rounded and clipped: a quarter of the bytes. Register-tiled and Peak support "
            "both.",
            options=(_FLOATS, _BYTES),
            default=_FLOATS,
            titles=(_FLOATS, "8-bit"),
        ),
        Choice(
            name="tile",
            label="Tile",
            help="Pixels per block of the tiled variant, one per thread; the halo is half a filter wide.",
            options=_TILES,
            default=_TILES[0],
            titles=tuple(name.replace("x", " \u00d7 ") for name in _TILES),
        ),
        Matrix(
            name="coefficients",
            label="Coefficients",
            role=Role.COEFFICIENTS,
            help="Your own filter, as rows of numbers.",
            default=((0, 0, 0), (0, 1, 0), (0, 0, 0)),
            maximum=_MAX_FILTER,
            only_if=("filter", ("custom",)),
        ),
    ),
    variants=(
        Variant(
            "naive",
            "Naive",
            run=_apply_each_filter(_host_program("convolve_naive", filter_in_constant_memory=False)),
            idea="One thread per pixel; pixels and filter come from global memory.",
            limit="Half of all loads read the same few coefficients.",
            kernels=("convolve_naive",),
            obstacle=_make_obstacle(),
        ),
        Variant(
            "constant",
            "Filter in constant memory",
            run=_apply_each_filter(_host_program("convolve_constant")),
            idea="Constant memory broadcasts one coefficient to all 32 lanes of a warp.",
            limit="Neighboring threads load the same pixels again and again.",
            kernels=("convolve_constant",),
            obstacle=_make_obstacle(),
        ),
        Variant(
            "tiled",
            "Tiled in shared memory",
            run=_apply_each_filter(_host_program("convolve_tiled", block=None)),
            idea="Shared-memory tiling: a block loads its pixels and their halo once.",
            limit="One shared load for each multiply-add.",
            kernels=("convolve_tiled",),
            obstacle=_make_obstacle(),
            successor="register-tiled",
        ),
        Variant(
            "separable",
            "Separable",
            run=_apply_each_filter(_run_separable),
            idea="A filter of rank one is applied along rows, then along columns: 2 K taps per pixel, not K × K.",
            limit="The image passes through memory twice; other filters are not separable.",
            kernels=("convolve_rows", "convolve_columns"),
            obstacle=_two_pass_obstacle,
            textbook=_two_pass_textbook,
        ),
        Variant(
            "register-tiled",
            "Register-tiled",
            run=_apply_each_filter(_run_register_tiled),
            idea="Register tiling: a thread computes sixteen pixels from a row of the tile in its registers.",
            limit="K × K multiply-adds per pixel; for small filters, the detour through shared memory.",
            kernels=("convolve_register_tiled",),
            obstacle=_UNROLLED_OBSTACLE,
        ),
        Variant(
            "peak",
            "Peak",
            run=_apply_each_filter(_run_peak),
            idea=f"Up to {_MAX_PRELOAD_FILTER} × {_MAX_PRELOAD_FILTER}, with 8-bit colors "
            f"{_MAX_PRELOAD_FILTER_INTERLEAVED} × {_MAX_PRELOAD_FILTER_INTERLEAVED}, a thread issues all loads for its "
            "pixels before the first multiplication; larger filters use register tiling.",
            limit="Memory bandwidth for small filters, arithmetic for large ones.",
            kernels=("convolve_peak", "convolve_register_tiled"),
            obstacle=_UNROLLED_OBSTACLE,
        ),
        Variant(
            "fft",
            "Fourier transforms",
            run=_apply_each_filter(fft.convolve_by_transforms),
            idea="A block transforms two tiles as one complex tile, multiplies by the filter's transform, and "
            "transforms back: a large filter costs little more than a small one.",
            limit="Shared memory, which each element passes six times; small filters cost as much as large ones.",
            kernels=("convolve_fft", "transform_filter"),
            obstacle=_transform_obstacle,
            textbook=_transform_textbook,
            file=fft.FILE,
        ),
    ),
    benchmark=BENCHMARK,
    side_on_gpu=square_side_rule(2**17),
    default_variant="tiled",
    result="result",
    reference=_reference,
    tolerance=_tolerance,
    cost=_cost,
    work=_work,
    accept=_accept,
    present=_present,
    distributed=DistributedProgram(
        local="Each device filters some rows of the image.",
        exchange="It receives as many rows of its neighbors, above and below, as the filter's radius: a halo.",
        fix_up="The results of halo rows are dropped.",
        plan=independent_chunks_plan("result", halo=_filter_radius),
        halo=_filter_radius,
        streaming=Streaming(None, lambda params: str(params["pixels"])),
    ),
    textbook=_textbook,
    step_params={"size": 3},
    step_input=_step_input,
    edge_params=_edge_params,
    presets=(
        Preset(
            "A 6 × 6 block, an 8 × 8 tile",
            "A 3 × 3 filter needs one pixel beyond a block on each side: 36 threads load 64 pixels in four rounds: "
            "36, 12, 12 and 4. Shift and an arrow key go from round to round.",
            {"filter": "gaussian", "size": 3, "tile": "6x6"},
            variant="tiled",
        ),
        Preset(
            "The magnitude of the gradient",
            "Both Sobel filters at their original size, 3: the root of the sum of their squares; zero is black.",
            {"filter": GRADIENT, "size": 3},
        ),
    ),
)
