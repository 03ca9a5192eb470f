"""Histogram of an image's levels, a channel at a time."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from gpu.engines.base import Engine, Module
from gpu.pattern import Array, Cost, HostProgram, Inputs, Integer, Outputs, Params, Pattern, Progress, Variant, Work
from gpu.patterns.image_planes import middle, planes_of, screen_picture

ORDER = 2

_FILE = "histogram.cu"
_BLOCK = 256
_BLOCKS_PER_MULTIPROCESSOR = 8
_PIXEL_TYPES = {"uint8": "unsigned char", "uint16": "unsigned short"}
_MERGE_BLOCK = (32, 8, 1)

# The last rung's own, of which `FEW_LEVELS` and `PEAK_BLOCK` stand in the kernel file too.
_PEAK_BLOCK = 512
_PEAK_BLOCKS_PER_MULTIPROCESSOR = 4
_PEAK_COPIES = 32
_PEAK_LOADS = 2
_PEAK_SHARED_BYTES = 48 * 1024
_FEW_LEVELS = 256
_LOAD_BYTES = 16


def _levels(inputs: Inputs) -> int:
    return int(inputs["maxval"]) + 1


def _build(engine: Engine, inputs: Inputs, **more: int) -> Module:
    types: dict[str, int | str] = {"PIXEL": _PIXEL_TYPES[inputs["image"].dtype.name], "LEVELS": _levels(inputs)}
    return engine.build(_FILE, types | more)


def _host_program(kernel_name: str, *, private_bins: bool = False) -> HostProgram:
    def run(engine: Engine, inputs: Inputs, params: Params) -> Generator[Progress, None, Outputs]:
        image, bins = inputs["image"], params["bins"]
        kernel = _build(engine, inputs).kernel(kernel_name)

        planes = planes_of(image, image.dtype)
        channels, pixels = planes.shape[0], planes.shape[1] * planes.shape[2]
        data = engine.upload(planes)
        del planes
        counts = engine.allocate((channels, bins), np.uint32)
        engine.fill(counts, 0)
        yield Progress(0.1, "uploaded")

        blocks = min(-(-pixels // _BLOCK), engine.device.multiprocessors * _BLOCKS_PER_MULTIPROCESSOR)
        engine.launch(
            kernel,
            (blocks, channels, 1),
            (_BLOCK, 1, 1),
            data,
            counts,
            np.int32(pixels),
            np.int32(bins),
            shared_bytes=4 * bins if private_bins else 0,
        )
        engine.free(data)
        yield Progress(0.9, "counted")

        result = engine.download(counts)
        engine.free(counts)
        return {"counts": result}

    return run


def _written_out(engine: Engine, inputs: Inputs, params: Params) -> Generator[Progress, None, Outputs]:
    image, bins = inputs["image"], params["bins"]
    module = _build(engine, inputs)
    count, merge = module.kernel("histogram_written_out"), module.kernel("histogram_merge")
    planes = planes_of(image, image.dtype)
    channels, pixels = planes.shape[0], planes.shape[1] * planes.shape[2]
    blocks = min(-(-pixels // _BLOCK), engine.device.multiprocessors * _BLOCKS_PER_MULTIPROCESSOR)
    data = engine.upload(planes)
    del planes
    partial = engine.allocate((channels, blocks, bins), np.uint32)
    yield Progress(0.1, "uploaded")

    sizes = (np.int32(pixels), np.int32(bins))
    engine.launch(count, (blocks, channels, 1), (_BLOCK, 1, 1), data, partial, *sizes, shared_bytes=4 * bins)
    engine.free(data)
    yield Progress(0.8, f"{blocks} histograms to merge")

    counts = engine.allocate((channels, bins), np.uint32)
    grid = (-(-bins // _MERGE_BLOCK[0]), channels, 1)
    engine.launch(merge, grid, _MERGE_BLOCK, partial, counts, np.int32(blocks), np.int32(bins))
    engine.free(partial)
    yield Progress(0.9, "counted")

    result = engine.download(counts)
    engine.free(counts)
    return {"counts": result}


def _copies(slots: int) -> int:
    """Return how many counters there are for each of `slots`: a power of two, as many as fit, at most one a lane."""
    copies = _PEAK_COPIES
    while copies > 1 and 4 * slots * copies > _PEAK_SHARED_BYTES:
        copies //= 2
    return copies


def _peak(engine: Engine, inputs: Inputs, params: Params) -> Generator[Progress, None, Outputs]:
    image, bins = inputs["image"], params["bins"]
    slots = _levels(inputs) if _levels(inputs) <= _FEW_LEVELS else bins
    copies = _copies(slots)
    kernel = _build(engine, inputs, COPIES=copies, LOADS=_PEAK_LOADS).kernel("histogram_peak")
    planes = planes_of(image, image.dtype)
    channels, pixels = planes.shape[0], planes.shape[1] * planes.shape[2]
    data = engine.upload(planes)
    del planes
    counts = engine.allocate((channels, bins), np.uint32)
    engine.fill(counts, 0)
    yield Progress(0.1, "uploaded")

    fill = -(-engine.device.multiprocessors * _PEAK_BLOCKS_PER_MULTIPROCESSOR // channels)
    blocks = min(-(-pixels * image.itemsize // (_PEAK_BLOCK * _LOAD_BYTES)), fill)
    sizes = (np.int32(pixels), np.int32(bins))
    shared_bytes = 4 * slots * copies
    engine.launch(kernel, (blocks, channels, 1), (_PEAK_BLOCK, 1, 1), data, counts, *sizes, shared_bytes=shared_bytes)
    engine.free(data)
    yield Progress(0.9, "counted")

    result = engine.download(counts)
    engine.free(counts)
    return {"counts": result}


def _reference(inputs: Inputs, params: Params) -> Array:
    """Count in pieces: `bincount` wants 8-byte integers."""
    bins, levels = params["bins"], _levels(inputs)
    bin_of_level = np.arange(levels, dtype=np.int64) * bins // levels
    counts = []
    for plane in planes_of(inputs["image"], inputs["image"].dtype):
        per_level = np.zeros(levels, np.int64)
        flat = plane.ravel()
        for start in range(0, flat.size, 2**22):
            per_level += np.bincount(flat[start : start + 2**22], minlength=levels)
        counts.append(np.bincount(bin_of_level, weights=per_level, minlength=bins).astype(np.int64))
    return np.stack(counts)


def _cost(inputs: Inputs, params: Params) -> Cost:
    image = inputs["image"]
    channels = 1 if image.ndim == 2 else image.shape[2]
    return Cost(bytes_read=image.nbytes, bytes_written=4 * params["bins"] * channels, flops=0)


def _work(inputs: Inputs, params: Params) -> Work:
    height, width = inputs["image"].shape[:2]
    return Work(height * width, "pixel")


def _present(inputs: Inputs, params: Params, outputs: Outputs) -> Outputs:
    return {"picture": screen_picture(inputs["image"], int(inputs["maxval"]))}


PATTERN = Pattern(
    name="histogram",
    title="Histogram",
    summary="How many pixels have each brightness.",
    kernels=_FILE,
    view="image-counts",
    parameters=(
        Integer(
            name="bins",
            label="Bins",
            help="How many equal ranges the levels are sorted into.",
            default=256,
            minimum=1,
            maximum=8192,
        ),
    ),
    variants=(
        Variant(
            "block-partition",
            "Atomics, block partition",
            run=_host_program("histogram_block_partition"),
            idea="Each thread counts a contiguous section with global atomics.",
            limit="The threads of a warp read far apart, and queue at a few addresses.",
            kernels=("histogram_block_partition",),
        ),
        Variant(
            "interleaved",
            "Atomics, interleaved",
            run=_host_program("histogram_interleaved"),
            idea="A warp reads neighbouring pixels, then strides on by the whole grid.",
            limit="One global atomic a pixel.",
            kernels=("histogram_interleaved",),
        ),
        Variant(
            "privatized",
            "Privatised",
            run=_host_program("histogram_privatized", private_bins=True),
            idea="Each block counts in shared memory and merges once.",
            limit="Equal pixels queue at one shared address.",
            kernels=("histogram_privatized",),
        ),
        Variant(
            "aggregated",
            "Privatised and aggregated",
            run=_host_program("histogram_aggregated", private_bins=True),
            idea="A run of equal pixels is added at once.",
            limit="Gains on skies only; pixels are loaded one by one.",
            kernels=("histogram_aggregated",),
        ),
        Variant(
            "written-out",
            "Written out, then merged",
            run=_written_out,
            idea="Each block writes its histogram out, and a second kernel adds them: no global atomics.",
            limit="A second launch; within a block equal pixels queue as before.",
            kernels=("histogram_written_out", "histogram_merge"),
        ),
        Variant(
            "peak",
            "Peak",
            run=_peak,
            idea="16-byte loads, and for each lane a counter in a memory bank of its own.",
            limit="Memory's bandwidth.",
            kernels=("histogram_peak",),
        ),
        Variant(
            "racy",
            "Racy, without atomics",
            run=_host_program("histogram_racy"),
            idea="What happens when threads read, add and write with nothing to hold the three together.",
            limit="Updates are lost.",
            kernels=("histogram_racy",),
            cautionary="Two threads that read the same count both write it back plus one: an update is lost.",
        ),
    ),
    default_variant="privatized",
    result="counts",
    reference=_reference,
    tolerance=lambda inputs, params: 0.0,
    cost=_cost,
    work=_work,
    present=_present,
    step_params={"bins": 8},
    step_input=middle,
)
