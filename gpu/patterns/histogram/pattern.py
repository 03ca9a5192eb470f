"""Histogram of an image's levels, a text's letters, or numbers in ranges."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace

import numpy as np

from gpu.declaration.arrays import block_parameter, dtype_parameter
from gpu.declaration.distributed_program import (
    ChunkInput,
    DistributedProgram,
    Parts,
    Streaming,
    TaskCollector,
    WorkerContext,
    reduce_as_tree,
)
from gpu.declaration.gpu_sizes import elements_rule, square_side_rule
from gpu.declaration.images import crop_most_varied, to_screen_picture
from gpu.declaration.pattern import (
    Choice,
    Cost,
    HostProgram,
    Inputs,
    Integer,
    Outputs,
    Params,
    Pattern,
    Progress,
    Textbook,
    Variant,
    Work,
)
from gpu.declaration.presentation import ATOMICS, CountsPresentation
from gpu.declaration.roles import Role
from gpu.declaration.single_thread import single_thread_variant
from gpu.declaration.text_parameters import BinEdges, Text
from gpu.engines.base import Array, Buffer, Device, Engine, Module, download_and_free
from gpu.patterns.histogram import counting_input
from gpu.patterns.histogram.benchmark import BENCHMARK
from gpu.patterns.histogram.counting_input import LETTERS, LEVELS, NUMBERS, RANGES, SAMPLE_TEXT, TYPES, CountingInput
from gpu.patterns.histogram.presets import PHRASE, PRESETS

_FILE = "histogram.cu"
_BLOCKS_PER_MULTIPROCESSOR = 8
_SHARED_BYTES = 48 * 1024  # per block, on every GPU
_MERGE_BLOCK = (32, 8, 1)

# For the peak variant: the fastest values on an H200, for equal and random pixels. `FEW_LEVELS` and `PEAK_BLOCK` are
# also in the kernel file, as is the number of loads in flight per thread.
_PEAK_BLOCK = 1024
_PEAK_BLOCKS_PER_MULTIPROCESSOR = 1
_PEAK_COPIES = 32
_PEAK_EXTRA_BYTES = 2 * 1024  # in addition to its counters
_MAX_MOVED_BINS = 2048  # bins: for more, clearing them is faster than moving them by one block
_FEW_LEVELS = 256
_LOAD_BYTES = 16

_TEXTURE_ELEMENTS = 2**27  # supported by every current GPU


def _launch_extents(engine: Engine, params: Params, pixels: int) -> tuple[int, int]:
    """Return the number of blocks per plane and the block size: from the parameters, or enough to fill the device."""
    block = int(params["block"])
    enough = min(max(1, -(-pixels // block)), engine.device.multiprocessors * _BLOCKS_PER_MULTIPROCESSOR)
    return params["blocks"] or enough, block


def _build(engine: Engine, task: CountingInput, **more: int) -> Module:
    module = engine.build(_FILE, {**task.macros, **more})
    if task.edges is not None:
        module.set_constant("EDGES", task.edges)
    return module


def _host_program(
    kernel_name: str, *, on_one_thread: bool = False, private_bins: bool = False, through_texture: bool = False
) -> HostProgram:
    def run(engine: Engine, inputs: Inputs, params: Params) -> Generator[Progress, None, Outputs]:
        task = counting_input.prepare_counting_input(inputs, params)
        kernel = _build(engine, task).kernel(kernel_name)
        channels, pixels = task.planes.shape
        data = engine.upload(task.planes)
        bins = task.bins
        del task
        counts = engine.allocate((channels, bins), np.uint32)
        engine.fill(counts, 0)
        yield Progress(0.1, "uploaded")

        blocks, block = (1, 1) if on_one_thread else _launch_extents(engine, params, pixels)
        engine.launch(
            kernel,
            (blocks, 1 if on_one_thread else channels, 1),
            (block, 1, 1),
            engine.texture(data) if through_texture else data,
            counts,
            np.int32(pixels),
            np.int32(bins),
            *((np.int32(channels),) if on_one_thread else ()),
            shared_bytes=4 * bins if private_bins else 0,
        )
        engine.free(data)
        yield Progress(0.9, "counted")

        return {"counts": download_and_free(engine, counts)}

    return run


def _block_obstacle(inputs: Inputs, params: Params) -> str:
    bins = counting_input.prepare_counting_input(inputs, params).bins
    if 4 * bins <= _SHARED_BYTES:
        return ""
    return f"A block's shared memory has room for {_SHARED_BYTES // 4} bins, not {bins}."


def _texture_obstacle(inputs: Inputs, params: Params) -> str:
    return _block_obstacle(inputs, params) or _texture_size_obstacle(inputs, params)


def _texture_size_obstacle(inputs: Inputs, params: Params) -> str:
    elements = counting_input.prepare_counting_input(inputs, params).planes.size
    if 0 < elements <= _TEXTURE_ELEMENTS:
        return ""
    return f"A texture over linear memory has 1 to {_TEXTURE_ELEMENTS} elements; this input has {elements}."


def _count_and_merge(engine: Engine, inputs: Inputs, params: Params) -> Generator[Progress, None, Outputs]:
    task = counting_input.prepare_counting_input(inputs, params)
    bins = task.bins
    module = _build(engine, task)
    count = module.kernel("histogram_written_out")
    channels, pixels = task.planes.shape
    blocks, block = _launch_extents(engine, params, pixels)
    data = engine.upload(task.planes)
    partial = engine.allocate((channels, blocks, bins), np.uint32)
    yield Progress(0.1, "uploaded")

    sizes = (np.int32(pixels), np.int32(bins))
    engine.launch(count, (blocks, channels, 1), (block, 1, 1), data, partial, *sizes, shared_bytes=4 * bins)
    engine.free(data)
    yield Progress(0.8, f"{blocks} histograms to merge")

    counts = _launch_merge(engine, module, partial)
    engine.free(partial)
    yield Progress(0.9, "counted")

    return {"counts": download_and_free(engine, counts)}


def _launch_merge(engine: Engine, module: Module, partial: Buffer) -> Buffer:
    """Return the sums over histograms of shape (channels, histograms, bins); the caller has to free them."""
    channels, histograms, bins = partial.shape
    counts = engine.allocate((channels, bins), np.uint32)
    grid = (-(-bins // _MERGE_BLOCK[0]), channels, 1)
    merge = module.kernel("histogram_merge")
    engine.launch(merge, grid, _MERGE_BLOCK, partial, counts, np.int32(histograms), np.int32(bins))
    return counts


def count_chunk(worker: WorkerContext, piece: ChunkInput) -> Array:
    """Count a chunk's elements."""
    return worker.run(piece.inputs)["counts"]


def merge_counts(worker: WorkerContext, counts: list[Array]) -> Array:
    """Add the histograms of chunks by the kernel that merges those of blocks."""
    engine = worker.engine
    module = engine.build(_FILE, {"PIXEL": "unsigned char", "LEVELS": 256})
    partial = engine.upload(np.stack(counts, axis=1))
    merged = _launch_merge(engine, module, partial)
    result = engine.download(merged)
    engine.free(partial, merged)
    return result


def _plan(tasks: TaskCollector) -> dict[str, Parts]:
    counts = [tasks.add_task(count_chunk, chunk, chunk_index=index) for index, chunk in enumerate(tasks.chunks)]
    return {"counts": Parts((reduce_as_tree(tasks, merge_counts, counts),))}


@dataclass(frozen=True)
class _Counters:
    """Counters of the peak variant: parts of the bins, slots (bins or levels) per part, and copies of each slot."""

    parts: int
    slots: int
    copies: int

    @property
    def shared_bytes(self) -> int:
        return 4 * self.slots * self.copies


def _plan_counters(slots: int, device: Device) -> _Counters:
    """Return as many copies of each slot as fit, at most one per lane; if not even one fits, several parts.

    Only for several parts does a block use more shared memory than every GPU has.
    """
    if 4 * slots > _SHARED_BYTES - _PEAK_EXTRA_BYTES:
        parts = -(-4 * slots // (device.max_shared_bytes - _PEAK_EXTRA_BYTES))
        return _Counters(parts, -(-slots // parts), 1)
    copies = _PEAK_COPIES
    while 4 * slots * copies > _SHARED_BYTES - _PEAK_EXTRA_BYTES:
        copies //= 2
    return _Counters(1, slots, copies)


def _run_peak(engine: Engine, inputs: Inputs, params: Params) -> Generator[Progress, None, Outputs]:
    task = counting_input.prepare_counting_input(inputs, params)
    bins = task.bins
    counters = _plan_counters(task.levels if task.levels <= _FEW_LEVELS else bins, engine.device)
    channels, pixels = task.planes.shape
    moved = channels * bins <= _MAX_MOVED_BINS
    kernel = _build(engine, task, PARTS=counters.parts, MOVED=int(moved)).kernel("histogram_peak")
    data = engine.upload(task.planes)
    counts = engine.allocate((channels, bins), np.uint32)
    sums, tickets = counts, counts
    if moved:  # zeroed once, as each launch resets them for the next
        sums, tickets = engine.upload(np.zeros((channels, bins), np.uint32)), engine.upload(np.zeros(1, np.uint32))
    else:
        engine.fill(counts, 0)
    yield Progress(0.1, "uploaded")

    fill = -(-engine.device.multiprocessors * _PEAK_BLOCKS_PER_MULTIPROCESSOR // (channels * counters.parts))
    enough = min(max(1, -(-task.planes.nbytes // channels // (_PEAK_BLOCK * _LOAD_BYTES))), fill)
    blocks = params["blocks"] or enough
    sizes = (np.int32(pixels), np.int32(bins), np.int32(counters.slots), np.uint32(4 * counters.copies))
    grid, block = (blocks, channels, counters.parts), (_PEAK_BLOCK, 1, 1)
    engine.launch(kernel, grid, block, data, counts, sums, tickets, *sizes, shared_bytes=counters.shared_bytes)
    engine.free(data, *((sums, tickets) if moved else ()))
    yield Progress(0.9, "counted")

    return {"counts": download_and_free(engine, counts)}


def _cost(inputs: Inputs, params: Params) -> Cost:
    task = counting_input.prepare_counting_input(inputs, params)
    return Cost(bytes_read=task.planes.nbytes, bytes_written=4 * task.bins * len(task.planes), flops=0)


def _textbook(params: Params, n: int) -> Textbook:
    """Return work and span: one atomic per element, serialized per bin; at best, all bins have the same count."""
    # The last bin of texts and custom ranges counts everything else.
    bins = params["bins"] if params["of"] in (LEVELS, NUMBERS) else len(counting_input.bin_names(params)) - 1
    return Textbook(operations=n, steps=-(-n // bins), peak=min(n, bins))


def _work(inputs: Inputs, params: Params) -> Work:
    unit = {LEVELS: "pixel", LETTERS: "character", RANGES: "value", NUMBERS: "value"}[params["of"]]
    return Work(counting_input.prepare_counting_input(inputs, params).planes.shape[1], unit)


def _present(inputs: Inputs, params: Params, outputs: Outputs) -> Outputs:
    if "image" not in inputs:
        return {}
    return {"picture": to_screen_picture(inputs["image"], int(inputs["maxval"]))}


def _step_input(inputs: Inputs) -> Inputs:
    return crop_most_varied(inputs, 4, 4) if "image" in inputs else counting_input.truncate_inputs(inputs)


PATTERN = Pattern(
    name="histogram",
    order=2,
    title="Histogram",
    summary="How often each level or letter occurs.",
    kernel_file=_FILE,
    presentation=CountsPresentation(counting_input.KINDS),
    parameters=(
        Choice(
            name="of",
            label="Count",
            role=Role.SUBJECT,
            help="Levels of an image, letters of a text, numbers in custom ranges, or numbers in equal ranges.",
            options=(LEVELS, LETTERS, RANGES, NUMBERS),
            default=LEVELS,
        ),
        Integer(
            name="bins",
            label="Bins",
            role=Role.BINS,
            help="Number of equal ranges that divide the levels, or the range of the numbers' type.",
            default=256,
            minimum=1,
            maximum=65536,
            only_if=("of", (LEVELS, NUMBERS)),
        ),
        Text(
            name="text",
            label="Text",
            role=Role.TEXT,
            help="The text: its letters are counted, ignoring case; other characters have a separate bin.",
            default=SAMPLE_TEXT,
            maximum=2**20,
            only_if=("of", (LETTERS,)),
        ),
        Integer(
            name="letters",
            label="Letters per bin",
            help="Number of consecutive letters of the alphabet per bin.",
            default=4,
            minimum=1,
            maximum=counting_input.ALPHABET,
            only_if=("of", (LETTERS,)),
        ),
        BinEdges(
            name="edges",
            label="BinEdges",
            help="The beginnings of the ranges, and the end of the last one.",
            default=(-3, -2, -1, 0, 1, 2, 3),
            maximum=1025,
            only_if=("of", (RANGES,)),
        ),
        Choice(
            name="numbers",
            label="Numbers",
            role=Role.SOURCE,
            help="The distribution of the numbers, or a file.",
            options=counting_input.DISTRIBUTIONS,
            default=counting_input.DISTRIBUTIONS[0],
            only_if=("of", (RANGES, NUMBERS)),
        ),
        replace(
            dtype_parameter(tuple(TYPES)),
            help="The numbers' type. Bins cover the range of integer types, or 0 to 1 for float32; the first and last "
            "bins include values outside.",
            only_if=("of", (NUMBERS,)),
        ),
        Integer(
            name="n",
            label="Elements",
            role=Role.SIZE,
            help="Number of generated numbers.",
            unit="elements",
            default=2**20,
            minimum=0,
            maximum=2**30,
            on_gpu=elements_rule(2**19),
            only_if=("of", (RANGES, NUMBERS)),
        ),
        replace(
            block_parameter(smallest=1),
            help="Threads per block; the peak variant and the merge kernel have fixed block sizes.",
        ),
        Integer(
            name="blocks",
            label="Blocks",
            help="Number of blocks per channel.",
            default=0,
            minimum=0,
            maximum=65535,
            minimum_label="as many as fit",
        ),
    ),
    variants=(
        single_thread_variant(
            _host_program("histogram_one_thread", on_one_thread=True),
            "histogram_one_thread",
            idea="Sequential: a loop over the pixels; a single thread needs no atomics.",
            limit="One pixel after the other.",
            work=lambda inputs, params: counting_input.prepare_counting_input(inputs, params).planes.size,
            textbook=lambda params, n: n,
            max_default_size=2**20,
        ),
        Variant(
            "block-partition",
            "Atomics, block partition",
            run=_host_program("histogram_block_partition"),
            idea="Each thread counts a contiguous section by atomics in global memory.",
            limit="Uncoalesced reads, and contention at a few addresses.",
            kernels=("histogram_block_partition",),
        ),
        Variant(
            "interleaved",
            "Atomics, interleaved",
            run=_host_program("histogram_interleaved"),
            idea="Grid stride: a warp reads neighboring pixels, coalesced.",
            limit="One atomic in global memory per pixel.",
            kernels=("histogram_interleaved",),
        ),
        Variant(
            "privatized",
            "Privatized",
            run=_host_program("histogram_privatized", private_bins=True),
            idea="Privatization: each block counts in shared memory, and adds its counts to the result once.",
            limit="Contention: atomics for equal pixels in one block are serialized.",
            kernels=("histogram_privatized",),
            obstacle=_block_obstacle,
        ),
        Variant(
            "aggregated",
            "Privatized and aggregated",
            run=_host_program("histogram_aggregated", private_bins=True),
            idea="Aggregation: a thread adds a run of equal pixels by one atomic.",
            limit="Faster only for images with long runs; pixels are loaded one by one.",
            kernels=("histogram_aggregated",),
            obstacle=_block_obstacle,
            successor="peak",
        ),
        Variant(
            "written-out",
            "Written out, then merged",
            run=_count_and_merge,
            idea="Each block writes its histogram to global memory, and a second kernel adds them without atomics.",
            limit="A second launch; contention within a block remains.",
            kernels=("histogram_written_out", "histogram_merge"),
            obstacle=_block_obstacle,
            successor="peak",
        ),
        Variant(
            "texture",
            "Through a texture",
            run=_host_program("histogram_texture", private_bins=True, through_texture=True),
            idea="The texture unit reads the pixels; since Volta it shares the L1 cache with loads.",
            limit="One fetch and one shared-memory atomic per pixel.",
            kernels=("histogram_texture",),
            obstacle=_texture_obstacle,
        ),
        Variant(
            "peak",
            "Peak",
            run=_run_peak,
            idea="16-byte loads, and separate counters per lane, each in its own bank.",
            limit="Memory bandwidth.",
            kernels=("histogram_peak",),
            threads=lambda params: _PEAK_BLOCK,
        ),
        Variant(
            "racy",
            "Racy, without atomics",
            run=_host_program("histogram_racy"),
            idea="A data race: threads read, add and write in three separate steps.",
            limit="Updates are lost.",
            kernels=("histogram_racy",),
            deliberate_error="Two threads that read the same count both write that count plus one: one update is lost.",
            successor="block-partition",
        ),
    ),
    benchmark=BENCHMARK,
    side_on_gpu=square_side_rule(2**21),
    default_variant="privatized",
    result="counts",
    reference=counting_input.reference,
    tolerance=lambda inputs, params: 0.0,
    cost=_cost,
    work=_work,
    present=_present,
    accept=counting_input.accept,
    make_input=counting_input.make_input,
    helpers={"lost_update.cu": ("update_racy", "update_atomic")},
    lessons=(ATOMICS,),
    value_names=counting_input.bin_names,
    describe_text=counting_input.describe_text,
    textbook=_textbook,
    distributed=DistributedProgram(
        local="Each device counts its chunk: rows of an image, or a range of a text or of numbers.",
        exchange="A reduction tree adds the chunks' histograms bin by bin.",
        fix_up="",
        plan=_plan,
        streaming=Streaming(_plan),
    ),
    step_params={"bins": 8, "text": PHRASE, "n": 16, "block": "4", "blocks": 2},
    step_input=_step_input,
    presets=PRESETS,
)
