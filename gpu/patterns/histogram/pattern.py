"""Histogram: counts of an image's levels, of a text's letters, of numbers by ranges."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace

import numpy as np

from gpu.declaration.alone import on_one_thread
from gpu.declaration.arrays import block_parameter, dtype_parameter
from gpu.declaration.distributed import DistributedProgram, OnWorker, Parts, Piece, Streaming, Tasks, as_tree
from gpu.declaration.gpu_sizes import elements, side
from gpu.declaration.images import liveliest, screen_picture
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
from gpu.declaration.text_parameters import BinEdges, Text
from gpu.engines.base import Array, Buffer, Device, Engine, Module
from gpu.patterns.histogram import counted
from gpu.patterns.histogram.benchmark import BENCHMARK
from gpu.patterns.histogram.counted import LETTERS, LEVELS, NUMBERS, RANGES, SAMPLE_TEXT, TYPES, Counted
from gpu.patterns.histogram.presets import PHRASE, PRESETS

_FILE = "histogram.cu"
_BLOCKS_PER_MULTIPROCESSOR = 8
_SHARED_BYTES = 48 * 1024  # that a block has on every GPU
_MERGE_BLOCK = (32, 8, 1)

# The last rung's own: the fastest on an H200, be the pixels equal or not. `FEW_LEVELS` and `PEAK_BLOCK` stand in the
# kernel file too, and there how many loads a thread has under way.
_PEAK_BLOCK = 1024
_PEAK_BLOCKS_PER_MULTIPROCESSOR = 1
_PEAK_COPIES = 32
_PEAK_OWN_BYTES = 2 * 1024  # that it has beside its counters
_MOST_MOVED = 2048  # bins: more of them are cleared faster than one block moves them
_FEW_LEVELS = 256
_LOAD_BYTES = 16

_TEXTURE_ELEMENTS = 2**27  # what every GPU of today has at least


def _launch(engine: Engine, params: Params, pixels: int) -> tuple[int, int]:
    """Return how many blocks a plane is counted by, and the threads of each: as asked for, or as the device is busy."""
    block = int(params["block"])
    enough = min(max(1, -(-pixels // block)), engine.device.multiprocessors * _BLOCKS_PER_MULTIPROCESSOR)
    return params["blocks"] or enough, block


def _build(engine: Engine, task: Counted, **more: int) -> Module:
    module = engine.build(_FILE, {**task.macros, **more})
    if task.edges is not None:
        module.set_constant("EDGES", task.edges)
    return module


def _host_program(kernel_name: str, *, private_bins: bool = False, fetched: bool = False) -> HostProgram:
    def run(engine: Engine, inputs: Inputs, params: Params) -> Generator[Progress, None, Outputs]:
        task = counted.counted(inputs, params)
        kernel = _build(engine, task).kernel(kernel_name)
        channels, pixels = task.planes.shape
        data = engine.upload(task.planes)
        bins = task.bins
        del task
        counts = engine.allocate((channels, bins), np.uint32)
        engine.fill(counts, 0)
        yield Progress(0.1, "uploaded")

        blocks, block = _launch(engine, params, pixels)
        engine.launch(
            kernel,
            (blocks, channels, 1),
            (block, 1, 1),
            engine.texture(data) if fetched else data,
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


def _on_one_thread(engine: Engine, inputs: Inputs, params: Params) -> Generator[Progress, None, Outputs]:
    task = counted.counted(inputs, params)
    kernel = _build(engine, task).kernel("histogram_one_thread")
    channels, pixels = task.planes.shape
    data = engine.upload(task.planes)
    counts = engine.allocate((channels, task.bins), np.uint32)
    engine.fill(counts, 0)
    yield Progress(0.1, "uploaded")
    sizes = (np.int32(pixels), np.int32(task.bins), np.int32(channels))
    engine.launch(kernel, (1, 1, 1), (1, 1, 1), data, counts, *sizes)
    engine.free(data)
    yield Progress(0.9, "counted")
    result = engine.download(counts)
    engine.free(counts)
    return {"counts": result}


def _too_many_for_a_block(inputs: Inputs, params: Params) -> str:
    bins = counted.counted(inputs, params).bins
    if 4 * bins <= _SHARED_BYTES:
        return ""
    return f"A block has room for {_SHARED_BYTES // 4} bins in its shared memory, and these are {bins}."


def _too_many_for_a_texture(inputs: Inputs, params: Params) -> str:
    return _too_many_for_a_block(inputs, params) or _too_long_for_a_texture(inputs, params)


def _too_long_for_a_texture(inputs: Inputs, params: Params) -> str:
    elements = counted.counted(inputs, params).planes.size
    if 0 < elements <= _TEXTURE_ELEMENTS:
        return ""
    return f"A texture over memory has from one to {_TEXTURE_ELEMENTS} elements, and this input has {elements}."


def _written_out(engine: Engine, inputs: Inputs, params: Params) -> Generator[Progress, None, Outputs]:
    task = counted.counted(inputs, params)
    bins = task.bins
    module = _build(engine, task)
    count = module.kernel("histogram_written_out")
    channels, pixels = task.planes.shape
    blocks, block = _launch(engine, params, pixels)
    data = engine.upload(task.planes)
    partial = engine.allocate((channels, blocks, bins), np.uint32)
    yield Progress(0.1, "uploaded")

    sizes = (np.int32(pixels), np.int32(bins))
    engine.launch(count, (blocks, channels, 1), (block, 1, 1), data, partial, *sizes, shared_bytes=4 * bins)
    engine.free(data)
    yield Progress(0.8, f"{blocks} histograms to merge")

    counts = _merged(engine, module, partial)
    engine.free(partial)
    yield Progress(0.9, "counted")

    result = engine.download(counts)
    engine.free(counts)
    return {"counts": result}


def _merged(engine: Engine, module: Module, partial: Buffer) -> Buffer:
    """Return the sums of histograms, of shape (channels, histograms, bins), bin by bin; the caller's to free."""
    channels, histograms, bins = partial.shape
    counts = engine.allocate((channels, bins), np.uint32)
    grid = (-(-bins // _MERGE_BLOCK[0]), channels, 1)
    merge = module.kernel("histogram_merge")
    engine.launch(merge, grid, _MERGE_BLOCK, partial, counts, np.int32(histograms), np.int32(bins))
    return counts


def count_chunk(worker: OnWorker, piece: Piece) -> Array:
    """Count a chunk's elements."""
    return worker.run(piece.inputs)["counts"]


def merge_counts(worker: OnWorker, counts: list[Array]) -> Array:
    """Add histograms of chunks, as those of blocks that were written out are added."""
    engine = worker.engine
    module = engine.build(_FILE, {"PIXEL": "unsigned char", "LEVELS": 256})
    partial = engine.upload(np.stack(counts, axis=1))
    merged = _merged(engine, module, partial)
    result = engine.download(merged)
    for buffer in (partial, merged):
        engine.free(buffer)
    return result


def _plan(tasks: Tasks) -> dict[str, Parts]:
    counts = [tasks.make(count_chunk, chunk, place=place) for place, chunk in enumerate(tasks.chunks)]
    return {"counts": Parts((as_tree(tasks, merge_counts, counts),))}


@dataclass(frozen=True)
class _Counters:
    """How the last rung counts: in `parts` of the bins, with so many counters for each, on a power of two of them."""

    parts: int
    slots: int
    copies: int

    @property
    def shared_bytes(self) -> int:
        return 4 * self.slots * self.copies


def _counters(slots: int, device: Device) -> _Counters:
    """Return as many counters for each of `slots` as fit, at most one a lane; where not even one does, parts.

    A block asks for no more shared memory than every GPU has but where that spares parts.
    """
    if 4 * slots > _SHARED_BYTES - _PEAK_OWN_BYTES:
        parts = -(-4 * slots // (device.most_shared_bytes - _PEAK_OWN_BYTES))
        return _Counters(parts, -(-slots // parts), 1)
    copies = _PEAK_COPIES
    while 4 * slots * copies > _SHARED_BYTES - _PEAK_OWN_BYTES:
        copies //= 2
    return _Counters(1, slots, copies)


def _peak(engine: Engine, inputs: Inputs, params: Params) -> Generator[Progress, None, Outputs]:
    task = counted.counted(inputs, params)
    bins = task.bins
    counters = _counters(task.levels if task.levels <= _FEW_LEVELS else bins, engine.device)
    channels, pixels = task.planes.shape
    moved = channels * bins <= _MOST_MOVED
    kernel = _build(engine, task, PARTS=counters.parts, MOVED=int(moved)).kernel("histogram_peak")
    data = engine.upload(task.planes)
    counts = engine.allocate((channels, bins), np.uint32)
    sums, tickets = counts, counts
    if moved:  # zeros once: a launch leaves them so that the next can begin
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
    for buffer in (data, sums, tickets) if moved else (data,):
        engine.free(buffer)
    yield Progress(0.9, "counted")

    result = engine.download(counts)
    engine.free(counts)
    return {"counts": result}


def _cost(inputs: Inputs, params: Params) -> Cost:
    task = counted.counted(inputs, params)
    return Cost(bytes_read=task.planes.nbytes, bytes_written=4 * task.bins * len(task.planes), flops=0)


def _textbook(params: Params, n: int) -> Textbook:
    """An atomic for each element; those on one bin go one after the other, in the best case as many on each."""
    # The last bin of texts and numbers is for what falls into no other.
    bins = params["bins"] if params["of"] in (LEVELS, NUMBERS) else len(counted.names(params)) - 1
    return Textbook(operations=n, steps=-(-n // bins), peak=min(n, bins))


def _work(inputs: Inputs, params: Params) -> Work:
    unit = {LEVELS: "pixel", LETTERS: "character", RANGES: "value", NUMBERS: "value"}[params["of"]]
    return Work(counted.counted(inputs, params).planes.shape[1], unit)


def _present(inputs: Inputs, params: Params, outputs: Outputs) -> Outputs:
    if "image" not in inputs:
        return {}
    return {"picture": screen_picture(inputs["image"], int(inputs["maxval"]))}


def _step_input(inputs: Inputs) -> Inputs:
    return liveliest(inputs, 4, 16) if "image" in inputs else counted.small(inputs)


PATTERN = Pattern(
    name="histogram",
    order=2,
    title="Histogram",
    summary="How often each level or letter occurs.",
    kernels=_FILE,
    presentation=CountsPresentation(counted.KINDS),
    parameters=(
        Choice(
            name="of",
            label="Count",
            role=Role.SUBJECT,
            help="Levels of an image, letters of a text, numbers by chosen ranges, or numbers by equal ones.",
            options=(LEVELS, LETTERS, RANGES, NUMBERS),
            default=LEVELS,
        ),
        Integer(
            name="bins",
            label="Bins",
            role=Role.BINS,
            help="How many equal ranges the levels, or all numbers that the type holds, are sorted into.",
            default=256,
            minimum=1,
            maximum=65536,
            only_if=("of", (LEVELS, NUMBERS)),
        ),
        Text(
            name="text",
            label="Text",
            role=Role.TEXT,
            help="Its letters are counted, capitals as small ones; other characters are counted apart.",
            default=SAMPLE_TEXT,
            maximum=2**20,
            only_if=("of", (LETTERS,)),
        ),
        Integer(
            name="letters",
            label="Letters a bin",
            help="How many letters of the alphabet make a bin.",
            default=4,
            minimum=1,
            maximum=counted.ALPHABET,
            only_if=("of", (LETTERS,)),
        ),
        BinEdges(
            name="edges",
            label="BinEdges",
            help="Where ranges of numbers begin, and where the last ends.",
            default=(-3, -2, -1, 0, 1, 2, 3),
            maximum=1025,
            only_if=("of", (RANGES,)),
        ),
        Choice(
            name="numbers",
            label="Numbers",
            role=Role.SOURCE,
            help="How the numbers are distributed, or that they come from a file.",
            options=counted.DISTRIBUTIONS,
            default=counted.DISTRIBUTIONS[0],
            only_if=("of", (RANGES, NUMBERS)),
        ),
        replace(
            dtype_parameter(tuple(TYPES)),
            help="The numbers' type. Whole ones are counted over all that it holds, float32 from 0 to 1; what is "
            "outside belongs to the bin at that end.",
            only_if=("of", (NUMBERS,)),
        ),
        Integer(
            name="n",
            label="How many",
            role=Role.SIZE,
            help="How many numbers are made, where no file gives them.",
            unit="elements",
            default=2**20,
            minimum=0,
            maximum=2**30,
            on_gpu=elements(2**19),
            only_if=("of", (RANGES, NUMBERS)),
        ),
        replace(
            block_parameter(smallest=1),
            help="Threads in a block; the peak and the merge have blocks of their own.",
        ),
        Integer(
            name="blocks",
            label="Blocks",
            help="How many blocks count a channel.",
            default=0,
            minimum=0,
            maximum=65535,
            least="as many as fit",
        ),
    ),
    variants=(
        on_one_thread(
            _on_one_thread,
            "histogram_one_thread",
            idea="Without threads: a loop over the pixels, and no atomics, since nobody else counts.",
            limit="One pixel after the other.",
            work=lambda inputs, params: counted.counted(inputs, params).planes.size,
            textbook=lambda params, n: n,
        ),
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
            idea="A warp reads neighboring pixels, then strides on by the whole grid.",
            limit="One global atomic a pixel.",
            kernels=("histogram_interleaved",),
        ),
        Variant(
            "privatized",
            "Privatized",
            run=_host_program("histogram_privatized", private_bins=True),
            idea="Each block counts in shared memory and merges once.",
            limit="Equal pixels queue at one shared address.",
            kernels=("histogram_privatized",),
            obstacle=_too_many_for_a_block,
        ),
        Variant(
            "aggregated",
            "Privatized and aggregated",
            run=_host_program("histogram_aggregated", private_bins=True),
            idea="A run of equal pixels is added at once.",
            limit="Gains on skies only; pixels are loaded one by one.",
            kernels=("histogram_aggregated",),
            obstacle=_too_many_for_a_block,
            lifted_by="peak",
        ),
        Variant(
            "written-out",
            "Written out, then merged",
            run=_written_out,
            idea="Each block writes its histogram out, and a second kernel adds them: no global atomics.",
            limit="A second launch; within a block equal pixels queue as before.",
            kernels=("histogram_written_out", "histogram_merge"),
            obstacle=_too_many_for_a_block,
            lifted_by="peak",
        ),
        Variant(
            "texture",
            "Through a texture",
            run=_host_program("histogram_texture", private_bins=True, fetched=True),
            idea="The texture unit fetches the pixels, through a path of its own.",
            limit="One fetch and one shared atomic a pixel.",
            kernels=("histogram_texture",),
            obstacle=_too_many_for_a_texture,
        ),
        Variant(
            "peak",
            "Peak",
            run=_peak,
            idea="16-byte loads, and for each lane a counter in a memory bank of its own.",
            limit="Memory's bandwidth.",
            kernels=("histogram_peak",),
            threads=lambda params: _PEAK_BLOCK,
        ),
        Variant(
            "racy",
            "Racy, without atomics",
            run=_host_program("histogram_racy"),
            idea="What happens when threads read, add and write with nothing to hold the three together.",
            limit="Updates are lost.",
            kernels=("histogram_racy",),
            cautionary="Two threads that read the same count both write it back plus one: an update is lost.",
            lifted_by="block-partition",
        ),
    ),
    benchmark=BENCHMARK,
    side_on_gpu=side(2**21),
    default_variant="privatized",
    result="counts",
    reference=counted.reference,
    tolerance=lambda inputs, params: 0.0,
    cost=_cost,
    work=_work,
    present=_present,
    accept=counted.accept,
    make_input=counted.make_input,
    helpers={"lost_update.cu": ("update_racy", "update_atomic")},
    lessons=(ATOMICS,),
    names=counted.names,
    text=counted.text_of,
    textbook=_textbook,
    distributed=DistributedProgram(
        local="Each device counts its chunk: rows of an image, a stretch of a text or of numbers.",
        exchange="The chunks' histograms are added bin by bin, in a tree.",
        fix_up="",
        plan=_plan,
        streaming=Streaming(_plan),
    ),
    step_params={"bins": 8, "text": PHRASE, "n": 64, "block": "8"},
    step_input=_step_input,
    presets=PRESETS,
)
