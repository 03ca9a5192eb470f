"""Scan of an array: inclusive and exclusive prefix sums, products, minima and maxima."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import Any

import numpy as np

from gpu.base.warp import WARP
from gpu.declaration.arrays import (
    accept_factors,
    accept_values,
    block_parameter,
    cast_values,
    dtype_parameter,
    input_parameter,
    make_input,
    present,
    size_parameter,
    truncate_values,
    values_parameter,
    warp_aligned_block_size,
)
from gpu.declaration.benchmark import (
    Benchmark,
    Case,
    CudaProgram,
    Peer,
    SizeComparison,
    SizeCurve,
    float_array_peers,
    powers_of_two,
)
from gpu.declaration.distributed_program import (
    ChunkInput,
    DistributedProgram,
    FutureResult,
    Parts,
    Streaming,
    TaskCollector,
    WorkerContext,
)
from gpu.declaration.gpu_sizes import elements_rule
from gpu.declaration.pattern import (
    Array,
    Choice,
    Cost,
    HostProgram,
    Inputs,
    LengthsPresentation,
    Outputs,
    Params,
    Pattern,
    Preset,
    Progress,
    Textbook,
    Variant,
    Work,
)
from gpu.declaration.presentation import ArrayPresentation
from gpu.declaration.rounding import UNIT, gamma
from gpu.declaration.single_thread import single_thread_variant
from gpu.engines.base import Buffer, Engine, Module, download_and_free
from gpu.patterns.reduction.pattern import operator_identity, reduce_on_device

_FILE = "scan.cu"
_CHUNKS_FILE = "scan_chunks.cu"
_C_TYPES = {"int32": "int", "float32": "float"}
_UFUNCS = {"sum": np.add, "product": np.multiply, "min": np.minimum, "max": np.maximum}
_SINGLE_PASS_VARIANT = "look-back"

# For the look-back variant: 16-byte loads in flight per thread, if that leaves enough tiles.
_VECTORS = 8
_MIN_TILES = 4


def build_scan_module(engine: Engine, dtype: str, operator: str, block: int, vectors: int = _VECTORS) -> Module:
    """Build the kernels of the ladder.

    Parameters
    ----------
    dtype : {"int32", "float32"}
        The type of the elements.
    operator : str
        A key of `_UFUNCS`.
    block : int
        Threads per block.
    vectors : int
        Vector loads per thread.
    """
    defines: dict[str, int | str] = {
        "VALUE": _C_TYPES[dtype],
        "OPERATOR": operator.upper(),
        "BLOCK_SIZE": block,
        "VECTORS": vectors,
    }
    return engine.build(_FILE, defines)


def scan_sections(
    engine: Engine,
    module: Module,
    kernel_name: str,
    data: Buffer,
    block: int,
    elements_a_thread: int,
    *,
    exclusive: bool,
) -> Buffer:
    """Scan any number of elements: each block scans a section, then the sections' totals are scanned and added back.

    Parameters
    ----------
    module : Module
        From `build_scan_module`, with the same block size.
    kernel_name : str
        A kernel with the parameters `in`, `out`, `totals`, `n` and `exclusive`.
    data : Buffer
        Shape (n,), n at least 1; not modified.
    block, elements_a_thread : int
        Threads per block, and elements of a section per thread.
    exclusive : bool
        Whether the scan is exclusive.

    Returns
    -------
    Buffer
        Shape (n,); the caller has to free it.
    """
    n, section = data.shape[0], block * elements_a_thread
    sections = -(-n // section)
    result = engine.allocate((n,), data.dtype)
    totals = engine.allocate((sections,), data.dtype)
    launch = partial(engine.launch, module.kernel(kernel_name))
    launch((sections, 1, 1), (block, 1, 1), data, result, totals, np.int32(n), np.int32(exclusive))
    if sections > 1:
        before = scan_sections(engine, module, kernel_name, totals, block, elements_a_thread, exclusive=False)
        add_back = module.kernel("scan_add_back")
        engine.launch(add_back, (sections - 1, 1, 1), (block, 1, 1), result, before, np.int32(n), np.int32(section))
        engine.free(before)
    engine.free(totals)
    return result


_Scan = Callable[[Engine, Buffer, Params], Buffer]
"""(engine, data, params) -> the scan, which the caller has to free. `data` has at least one element; not modified."""


def _section_scan(kernel_name: str, elements_a_thread: int = 1, *, warp_aligned: bool = False) -> _Scan:
    def scan(engine: Engine, data: Buffer, params: Params) -> Buffer:
        block = warp_aligned_block_size(params) if warp_aligned else int(params["block"])
        module = build_scan_module(engine, params["dtype"], params["operator"], block)
        exclusive = params["kind"] == "exclusive"
        return scan_sections(engine, module, kernel_name, data, block, elements_a_thread, exclusive=exclusive)

    return scan


def _scan_on_one_thread(engine: Engine, data: Buffer, params: Params) -> Buffer:
    kernel = build_scan_module(engine, params["dtype"], params["operator"], int(params["block"])).kernel(
        "scan_one_thread"
    )
    n = data.shape[0]
    scanned = engine.allocate((n,), data.dtype)
    exclusive = np.int32(params["kind"] == "exclusive")
    engine.launch(kernel, (1, 1, 1), (1, 1, 1), data, scanned, np.int32(n), exclusive)
    return scanned


def _scan_in_one_pass(engine: Engine, data: Buffer, params: Params, carry: Array | None = None) -> Buffer:
    block, n = warp_aligned_block_size(params), data.shape[0]
    vectors, tiles = compute_tiling(n, block, _VECTORS)
    kernel = build_scan_module(engine, params["dtype"], params["operator"], block, vectors).kernel("scan_look_back")
    scanned = engine.allocate((n,), data.dtype)
    states = engine.upload(
        np.zeros((1 + tiles, 2), np.uint32)
    )  # uploaded once, as each launch resets them for the next
    exclusive = np.int32(params["kind"] == "exclusive")
    before = operator_identity(params["operator"], params["dtype"])[0] if carry is None else carry
    engine.launch(kernel, (tiles, 1, 1), (block, 1, 1), data, scanned, states, np.int32(n), exclusive, before)
    engine.free(states)
    return scanned


_SCANS: dict[str, _Scan] = {
    "one-thread": _scan_on_one_thread,
    "naive": _section_scan("scan_naive"),
    "kogge-stone": _section_scan("scan_kogge_stone"),
    "double-buffer": _section_scan("scan_double_buffer"),
    "brent-kung": _section_scan("scan_brent_kung", 2),
    "brent-kung-padded": _section_scan("scan_brent_kung_padded", 2),
    "shuffle": _section_scan("scan_shuffle", warp_aligned=True),
    "three-kernels": _section_scan("scan_sections", 4, warp_aligned=True),
    _SINGLE_PASS_VARIANT: _scan_in_one_pass,
}
"""Functions that scan on the device, by variant name."""


def _program(variant: str) -> HostProgram:
    """Return a variant's host program: upload, scan, download."""

    def run(engine: Engine, inputs: Inputs, params: Params) -> Generator[Progress, None, Outputs]:
        data = engine.upload(cast_values(inputs, params))
        yield Progress(0.1, "uploaded")
        if not data.shape[0]:
            return {"result": engine.download(data)}
        scanned = _SCANS[variant](engine, data, params)
        engine.free(data)
        yield Progress(0.9, "scanned")
        return {"result": download_and_free(engine, scanned)}

    return run


def reduce_chunk(worker: WorkerContext, piece: ChunkInput) -> dict[str, Any]:
    """Reduce a chunk, for the devices after this one; its elements stay on the device for the scan."""
    params = worker.params
    data = worker.engine.upload(cast_values(piece.inputs, params))
    return {
        "data": data,
        "total": reduce_on_device(worker.engine, data, params["operator"], warp_aligned_block_size(params)),
    }


def reduce_and_free_chunk(worker: WorkerContext, piece: ChunkInput) -> Array:
    """Reduce a chunk and free its elements, which are read again for the scan."""
    outputs = reduce_chunk(worker, piece)
    worker.engine.free(outputs["data"])
    total: Array = outputs["total"]
    return total


def scan_chunk(
    worker: WorkerContext, chunk: ChunkInput | Buffer, totals: list[Array], preceding_count: int, has_successor: bool
) -> Array | dict[str, Array]:
    """Scan a chunk, starting from the combination of the totals before it.

    Parameters
    ----------
    worker : WorkerContext
        The worker's engine and parameters.
    chunk : ChunkInput or Buffer
        The elements, on the host or on the device.
    totals : list of array
        Totals of chunks in order, one element each.
    preceding_count : int
        How many of the totals belong to chunks before this one.
    has_successor : bool
        Whether the next chunk is on the same device.

    Returns
    -------
    array or dict of str to array
        The prefix sums; if `has_successor`, as "scanned", with the value from which the next chunk starts as "end".
    """
    engine, params = worker.engine, worker.params
    data = engine.upload(cast_values(chunk.inputs, params)) if isinstance(chunk, ChunkInput) else chunk
    if not data.shape[0]:
        return engine.download(data)
    scanned = _scan_from(engine, data, _combine_totals(totals[:preceding_count], params), worker.variant, params)
    end = {"end": _combine_to_end(engine, data, scanned, params)} if has_successor else {}
    if isinstance(chunk, ChunkInput):
        engine.free(data)
    result = download_and_free(engine, scanned)
    return {"scanned": result, **end} if has_successor else result


def _combine_totals(totals: list[Array], params: Params) -> Array:
    """Combine totals of chunks to an array of one element; the identity if there are none."""
    values = np.concatenate([operator_identity(params["operator"], params["dtype"]), *totals])
    combined: Array = _UFUNCS[params["operator"]].reduce(values, dtype=values.dtype)
    return combined


def _scan_from(engine: Engine, data: Buffer, carry: Array, variant: str, params: Params) -> Buffer:
    """Scan by a variant, starting from `carry`; most variants combine it with each element in a second kernel."""
    if variant == _SINGLE_PASS_VARIANT:
        return _scan_in_one_pass(engine, data, params, carry)
    scanned, n, block = _SCANS[variant](engine, data, params), data.shape[0], warp_aligned_block_size(params)
    out = engine.allocate((n,), data.dtype)
    blocks = min(-(-n // (4 * block)), 2**16)
    kernel = _build_chunks(engine, params).kernel("scan_carry")
    engine.launch(kernel, (blocks, 1, 1), (block, 1, 1), scanned, out, carry, np.int32(n))
    engine.free(scanned)
    return out


def _combine_to_end(engine: Engine, data: Buffer, scanned: Buffer, params: Params) -> Array:
    """Return the combination of all elements up to the end of a non-empty chunk."""
    end = engine.allocate((1,), data.dtype)
    exclusive, n = np.int32(params["kind"] == "exclusive"), np.int32(data.shape[0])
    kernel = _build_chunks(engine, params).kernel("scan_chunk_end")
    engine.launch(kernel, (1, 1, 1), (1, 1, 1), data, scanned, end, n, exclusive)
    return download_and_free(engine, end)


def _build_chunks(engine: Engine, params: Params) -> Module:
    defines: dict[str, int | str] = {
        "VALUE": _C_TYPES[params["dtype"]],
        "OPERATOR": params["operator"].upper(),
        "BLOCK_SIZE": warp_aligned_block_size(params),
    }
    return engine.build(_CHUNKS_FILE, defines)


def _plan(tasks: TaskCollector, *, keep_on_device: bool = True) -> dict[str, Parts]:
    """Reduce, then scan: every chunk is read once for its total, except on the last device, and once for its scan.

    The chunks of one device are scanned in sequence, each from the end of the one before. The last device needs no
    totals first, as no other device waits for them. With `keep_on_device`, elements stay on the devices between the two
    passes; otherwise they are read again.
    """
    totals: list[FutureResult] = []
    parts: list[FutureResult] = []
    *_, last = shares = tasks.chunks_by_device
    for share in shares:
        chunks, before = {index: tasks.chunks[index] for index in share}, len(totals)
        if share is not last:
            for index in share:
                reduced = tasks.add_task(
                    reduce_chunk if keep_on_device else reduce_and_free_chunk, chunks[index], chunk_index=index
                )
                totals.append(reduced["total"] if keep_on_device else reduced)
                chunks[index] = reduced["data"] if keep_on_device else chunks[index]
        # The scan also depends on this device's totals, so that they, which other devices wait for, come first.
        carries = list(totals)
        for index in share:
            goes_on = index != share[-1]
            scanned = tasks.add_task(scan_chunk, chunks[index], carries, before, goes_on, chunk_index=index)
            parts.append(scanned["scanned"] if goes_on else scanned)
            if goes_on:
                carries, before = [scanned["end"]], 1
    return {"result": Parts(tuple(parts))}


def compute_tiling(n: int, block: int, max_vectors: int) -> tuple[int, int]:
    """Return the vectors of four elements per thread, and the number of tiles, of a single-pass scan of n elements."""
    vectors = max_vectors if n > _MIN_TILES * 4 * max_vectors * block else 1
    return vectors, -(-n // (4 * vectors * block))


def _reference(inputs: Inputs, params: Params) -> Array:
    """Scan in float64; int32, which wraps around, and minima and maxima in the elements' type."""
    values, operator = cast_values(inputs, params), params["operator"]
    exact = np.float64 if params["dtype"] == "float32" and operator in ("sum", "product") else values.dtype
    scanned: Array = _UFUNCS[operator].accumulate(values, dtype=exact)
    if params["kind"] == "exclusive" and values.size:
        scanned[1:] = scanned[:-1]
        scanned[0] = operator_identity(operator, params["dtype"])[0]
    return scanned


def _tolerance(inputs: Inputs, params: Params) -> float | Array:
    """Bound the rounding error of each float32 sum and product; all other results are exact.

    The number of additions on an element's path is bounded by the larger of two: a thread that adds up its section
    sequentially, plus the scan of the sections' totals; or look-back, where a tile's total goes through at most two
    additions per later tile. The error of each sum is at most `gamma` of that number times the magnitudes up to its
    position, so that the first, small sums have small bounds.

    A product of k factors other than 1 and -1 has at most k roundings in any order, whose relative error is less than
    e^(k u) - 1. `_accept` has checked that no partial product leaves the range of float32.
    """
    values = cast_values(inputs, params)
    if params["dtype"] == "int32" or params["operator"] in ("min", "max") or values.size < 2:
        return 0.0
    if params["operator"] == "product":
        roundings = (np.abs(values) != 1).cumsum(dtype=np.float64)
        if params["kind"] == "exclusive":
            roundings[1:] = roundings[:-1]
            roundings[0] = 0
        bound: Array = np.expm1(roundings * UNIT) * np.abs(_reference(inputs, params))
        return bound
    block = int(params["block"])
    sequential, sections = 0, values.size
    while sections > 1:
        sequential += min(block, sections)
        sections = -(-sections // block)
    look_back = 2 * compute_tiling(values.size, warp_aligned_block_size(params), _VECTORS)[1] + 4 * _VECTORS + WARP
    depth = min(values.size - 1, max(sequential, look_back))
    bound = np.abs(values).cumsum(dtype=np.float64)
    if params["kind"] == "exclusive":
        bound[1:] = bound[:-1]
        bound[0] = 0
    bound *= gamma(depth)
    return bound


def _accept(inputs: Inputs, params: Params) -> None:
    """Raise InputError for values of another type, and for factors with a partial product outside float32's range.

    A scan multiplies neighbors in any order. If no product of consecutive elements leaves the range, no order does; if
    one does, the results of different orders differ by more than rounding.
    """
    accept_values(inputs, params)
    accept_factors(inputs, params)


def _cost(inputs: Inputs, params: Params) -> Cost:
    n = inputs["values"].size
    return Cost(bytes_read=4 * n, bytes_written=4 * n, flops=max(n - 1, 0))


def _work(inputs: Inputs, params: Params) -> Work:
    return Work(inputs["values"].size, "element")


def _sequential(params: Params, n: int) -> int:
    return max(n - 1, 0)


def _strides(n: int) -> list[int]:
    """Return the powers of two below n."""
    return [2**power for power in range(max(n - 1, 0).bit_length())]


def _naive_textbook(n: int) -> Textbook:
    return Textbook(operations=n * (n - 1) // 2, steps=max(n - 1, 0), peak=max(n - 1, 0))


def _kogge_stone_textbook(n: int) -> Textbook:
    """Return work and span of Kogge and Stone's scan: n log2(n) - (n - 1) operations for a power of two."""
    step_operations = [n - distance for distance in _strides(n)]
    return Textbook(operations=sum(step_operations), steps=len(step_operations), peak=max(step_operations, default=0))


def brent_kung_textbook(n: int) -> Textbook:
    """Return work and span of Brent and Kung's work-efficient scan of n elements: up-sweep and down-sweep.

    For a power of two these are 2n - 2 - log2(n) operations in 2 log2(n) - 1 steps.
    """
    up = [n // (2 * distance) for distance in _strides(n)]
    down = [(n - distance) // (2 * distance) for distance in _strides(n)]
    return Textbook(operations=sum(up) + sum(down), steps=sum(map(bool, up + down)), peak=max(up + down, default=0))


def _textbook(section_scan: Callable[[int], Textbook], elements_a_thread: int) -> Callable[[Params, int], Textbook]:
    """Return work and span of a scan by sections: all sections in parallel, their totals, one addition per element."""

    def textbook(params: Params, n: int) -> Textbook:
        section = int(params["block"]) * elements_a_thread
        if n <= section:
            return section_scan(n)
        full, rest = section_scan(section), section_scan(n % section)
        totals = textbook(params, -(-n // section))
        block, sections = int(params["block"]), n // section
        return Textbook(
            operations=sections * full.operations + rest.operations + totals.operations + n - section,
            steps=full.steps + totals.steps + -(-min(n - section, section) // block),
            peak=max(
                sections * full.peak + rest.peak,
                totals.peak,
                (sections - 1) * block + min(n % section, block),
            ),
        )

    return textbook


def _case(power: int, kind: str = "sum", **more: Any) -> Case:
    params = {"n": 2**power, "dtype": "float32", "operator": "sum"}
    return Case(f"scan ({kind}), 2^{power} float32", params, **more)


def _gpu_case(power: int, variants: tuple[str, ...] = ()) -> Case:
    cub = CudaProgram("CUB", "cub.cu", ("scan", 2**power), prints_version=True)
    calls = float_array_peers(2**power, lambda library, values: library.cumsum(values, 0))
    return _case(power, "inclusive sum", variants=variants, libraries=calls, programs=(cub,))


def _timing_model_case(power: int, block: int = 256) -> Case:
    params = {"n": 2**power, "dtype": "float32", "operator": "sum", "block": str(block)}
    return Case(f"scan (sum), 2^{power} float32, blocks of {block}", params)


def _peers(inputs: Inputs, params: Params) -> Iterator[Peer]:
    values = inputs["values"].astype(np.float32)
    scanned = np.empty_like(values)
    yield Peer("NumPy cumsum", lambda: np.cumsum(values, out=scanned))


_CPU_VARIANTS = ("shuffle", "three-kernels", "look-back")
_BENCHMARK = Benchmark(
    gpu=(_gpu_case(24), _gpu_case(28)),
    compiled=(_case(24, variants=_CPU_VARIANTS),),
    lockstep=(_case(20, variants=_CPU_VARIANTS),),
    curve=SizeCurve(powers_of_two(16, 18, 20, 22, 24, 26)),
    goals={"three-kernels": "0.5 x np.cumsum"},
    peers=_peers,
    timing_model_cases=(
        *map(_timing_model_case, (16, 20, 24, 27)),
        *(_timing_model_case(22, block) for block in (64, 512, 1024)),
    ),
    size_comparisons=(
        SizeComparison(
            "scan (inclusive sum) of float32",
            "elements",
            {2**power: _gpu_case(power, ("three-kernels", "look-back")) for power in range(10, 29, 2)},
        ),
    ),
)


PATTERN = Pattern(
    name="scan",
    order=4,
    title="Scan",
    summary="Prefix sums of an array.",
    kernel_file=_FILE,
    presentation=ArrayPresentation(describe=lambda params: (params["kind"], params["operator"])),
    parameters=(
        input_parameter(),
        size_parameter(default=2**18, on_gpu=elements_rule(2**17)),
        values_parameter(),
        Choice(
            name="kind",
            label="Kind",
            help="Inclusive: each result includes its own element. Exclusive: only the elements before it, so that a "
            "scan of sizes gives the offset of each item.",
            options=("inclusive", "exclusive"),
            default="inclusive",
        ),
        Choice(
            name="operator",
            label="Operator",
            help="The operator that combines two elements.",
            options=tuple(_UFUNCS),
            default="sum",
        ),
        dtype_parameter(),
        block_parameter(),
    ),
    variants=(
        single_thread_variant(
            _program("one-thread"),
            "scan_one_thread",
            idea="Sequential: each result is the previous one combined with the next element.",
            limit="n - 1 operations, the fewest of all scans, but each depends on the one before.",
            work=lambda inputs, params: _sequential(params, inputs["values"].size),
            textbook=_sequential,
            max_default_size=2**20,
        ),
        Variant(
            "naive",
            "Naive",
            run=_program("naive"),
            idea="Each thread combines all elements of its section up to its own.",
            limit="n (n - 1) / 2 operations in a section of n; the last thread needs n - 1 steps.",
            kernels=("scan_naive", "scan_add_back"),
            textbook=_textbook(_naive_textbook, 1),
        ),
        Variant(
            "kogge-stone",
            "Kogge-Stone",
            run=_program("kogge-stone"),
            idea="In shared memory, each step combines elements at twice the distance of the step before.",
            limit="n log2 n - (n - 1) operations; two barriers per step, so that no element is overwritten too early.",
            kernels=("scan_kogge_stone", "scan_add_back"),
            textbook=_textbook(_kogge_stone_textbook, 1),
        ),
        Variant(
            "double-buffer",
            "Kogge-Stone, double buffer",
            run=_program("double-buffer"),
            idea="Each step reads one buffer and writes the other, so that one barrier is enough.",
            limit="Still n log2 n - (n - 1) operations.",
            kernels=("scan_double_buffer", "scan_add_back"),
            textbook=_textbook(_kogge_stone_textbook, 1),
        ),
        Variant(
            "brent-kung",
            "Brent-Kung",
            run=_program("brent-kung"),
            idea="Up-sweep and down-sweep over a tree: 2 n - 2 - log2 n operations, two elements per thread.",
            limit="2 log2 n - 1 steps; strides of powers of two cause bank conflicts.",
            kernels=("scan_brent_kung", "scan_add_back"),
            textbook=_textbook(brent_kung_textbook, 2),
        ),
        Variant(
            "brent-kung-padded",
            "Brent-Kung, padded",
            run=_program("brent-kung-padded"),
            idea="Padding after every 32 elements spreads the strides over all banks.",
            limit="Near the top of the tree few threads work, and all others wait at the barriers.",
            kernels=("scan_brent_kung_padded", "scan_add_back"),
            textbook=_textbook(brent_kung_textbook, 2),
        ),
        Variant(
            "shuffle",
            "Warp shuffle",
            run=_program("shuffle"),
            idea="Warp shuffles pass values between registers; shared memory has one value per warp.",
            limit="4-byte loads, and a second pass over all elements for two or more sections.",
            kernels=("scan_shuffle", "scan_add_back"),
            threads=warp_aligned_block_size,
        ),
        Variant(
            "three-kernels",
            "Any length, three kernels",
            run=_program("three-kernels"),
            idea="Sections of four elements per thread, a scan of their totals, and their addition to each section.",
            limit="Each element is read and written twice.",
            kernels=("scan_sections", "scan_add_back"),
            threads=warp_aligned_block_size,
        ),
        Variant(
            _SINGLE_PASS_VARIANT,
            "Single pass, decoupled look-back",
            run=_program("look-back"),
            idea="Each block publishes its tile's total immediately, and adds up the published totals before it.",
            limit="Memory bandwidth: each element is read once and written once.",
            kernels=("scan_look_back",),
            threads=warp_aligned_block_size,
        ),
    ),
    benchmark=_BENCHMARK,
    default_variant="three-kernels",
    result="result",
    reference=_reference,
    tolerance=_tolerance,
    cost=_cost,
    work=_work,
    present=lambda inputs, params, outputs: present(inputs, params, outputs["result"]),
    accept=_accept,
    make_input=make_input,
    sequential_operations=_sequential,
    helpers={_CHUNKS_FILE: ("scan_chunk_end", "scan_carry")},
    distributed=DistributedProgram(
        local="Each device except the last reduces its chunk to a total, and keeps the elements.",
        exchange="Each device receives and combines the totals of all devices before it, a few numbers.",
        fix_up="Each device scans its chunk, starting from the combined totals.",
        plan=_plan,
        streaming=Streaming(partial(_plan, keep_on_device=False), lambda params: str(params["dtype"])),
    ),
    step_params={"n": 16, "block": "16"},
    step_input=truncate_values,
    presets=(
        Preset(
            "Cut a sausage",
            "Ten people order 3 5 2 7 28 4 3 0 8 1 inches of a sausage of 100. The inclusive scan gives the positions "
            "of the cuts, so all ten cuts can be made at once.",
            {"input": "sausage", "n": 10, "kind": "inclusive", "operator": "sum", "dtype": "int32"},
            lengths=LengthsPresentation(total_length=100, unit="inches", remainder_label="left"),
        ),
        Preset(
            "Allocate slots",
            "Each thread needs a slot of a different size. The exclusive scan of the sizes gives the offset of each "
            "slot, without further communication.",
            {"input": "random", "n": 12, "kind": "exclusive", "operator": "sum", "dtype": "int32"},
            lengths=LengthsPresentation(total_length=0, unit="bytes", inclusive=False),
        ),
        Preset(
            "A recurrence: running balance",
            "In the loop x = x + a[i], each x depends on the one before. As a scan it takes log2 n steps, not n - 1.",
            {"input": "alternating", "n": 16, "kind": "inclusive", "operator": "sum", "dtype": "int32"},
        ),
        Preset(
            "A recurrence: highest so far",
            "The loop x = max(x, a[i]) is a scan too: any associative operator works.",
            {"input": "random", "n": 64, "kind": "inclusive", "operator": "max", "dtype": "int32"},
        ),
        Preset(
            "Rounding grows along a float sum",
            "Each float32 sum is rounded. The error against float64, drawn below, depends on the order of additions.",
            {"input": "random", "n": 2**18, "kind": "inclusive", "operator": "sum", "dtype": "float32"},
        ),
        Preset(
            "3 1 7 0 4 1 6 3, inclusive",
            "The scan of the textbook's eight numbers is 3 4 11 11 15 16 22 25: Kogge-Stone in three steps. You can "
            "type other values.",
            {"input": "typed", "values": "3 1 7 0 4 1 6 3", "kind": "inclusive", "dtype": "int32", "block": "8"},
            variant="kogge-stone",
        ),
        Preset(
            "3 1 7 0 4 1 6 3, exclusive",
            "Each result includes only the elements before it: 0 3 4 11 11 15 16 22.",
            {"input": "typed", "values": "3 1 7 0 4 1 6 3", "kind": "exclusive", "dtype": "int32", "block": "8"},
            variant="kogge-stone",
        ),
        Preset(
            "1 to 6",
            "The inclusive scan of 1 2 3 4 5 6 is 1 3 6 10 15 21.",
            {"input": "typed", "values": "1 2 3 4 5 6", "kind": "inclusive", "dtype": "int32", "block": "8"},
            variant="brent-kung",
        ),
        Preset(
            "Factorials",
            "Any associative operator works: the products of 1 2 3 4 5 6 7 8 are 1 2 6 24 120 720 5040 40320.",
            {
                "input": "typed",
                "values": "1 2 3 4 5 6 7 8",
                "kind": "inclusive",
                "operator": "product",
                "dtype": "int32",
                "block": "8",
            },
            variant="kogge-stone",
        ),
        Preset(
            "One block: 1024 threads, 2048 elements",
            "The largest block has 1024 threads: with two elements per thread, it scans at most 2048 elements.",
            {"input": "random", "n": 2048, "kind": "inclusive", "operator": "sum", "dtype": "int32", "block": "1024"},
            variant="brent-kung",
        ),
    ),
)
