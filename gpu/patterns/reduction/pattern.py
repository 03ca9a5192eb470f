"""Reduction of an array to one value."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator

import numpy as np

from gpu.base.errors import InputError
from gpu.declaration.arrays import (
    MAX_READOUT_VALUES,
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
)
from gpu.declaration.distributed_program import (
    ChunkInput,
    DistributedProgram,
    Parts,
    Streaming,
    TaskCollector,
    WorkerContext,
    reduce_as_tree,
)
from gpu.declaration.gpu_sizes import elements_rule
from gpu.declaration.pattern import (
    Array,
    Choice,
    Cost,
    HostProgram,
    Inputs,
    Integer,
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
from gpu.engines.base import Buffer, Engine, Kernel, Module, download_and_free
from gpu.patterns.reduction.benchmark import BENCHMARK

_FILE = "reduction.cu"
_C_TYPES = {"int32": "int", "float32": "float"}

# A grid-stride grid is large enough to keep the device busy, with a minimum that limits the length of a thread's sum;
# `_tolerance` relies on both bounds.
_BLOCKS_PER_MULTIPROCESSOR = 8
_MIN_BLOCKS, _MAX_BLOCKS = 128, 2048

# For the peak variant: 16-byte loads in flight per thread, and blocks per multiprocessor.
_PEAK_LOADS = 4
_PEAK_BLOCKS_PER_MULTIPROCESSOR = 4
# For many elements, larger blocks with fewer partial results are faster, by 1 % on an H200.
_PEAK_BLOCK_FOR_LARGE_INPUT = 512
_MIN_LARGE_INPUT = 2**21

_MAX_TOTAL_EXPONENT = 256
"""Limit of the sum of the exponents of all factors above 1, and of all below: few orders multiply these first."""

_CHUNK = 2**24
_PIECES = 16
_UFUNCS = {"sum": np.add, "product": np.multiply, "min": np.minimum, "max": np.maximum}


def operator_identity(operator: str, dtype: str) -> Array:
    """Return the identity of an operator, which is the result for no elements: an array of one element."""
    limits = np.finfo(dtype) if np.dtype(dtype).kind == "f" else np.iinfo(dtype)
    neutral = {"sum": 0, "product": 1, "min": limits.max, "max": limits.min}
    return np.array([neutral[operator]], dtype)


def _build(engine: Engine, params: Params, block: int) -> Module:
    defines: dict[str, int | str] = {
        "VALUE": _C_TYPES[params["dtype"]],
        "OPERATOR": params["operator"].upper(),
        "BLOCK_SIZE": block,
        "LOADS": _PEAK_LOADS,
    }
    return engine.build(_FILE, defines)


def _count_blocks(
    engine: Engine, params: Params, n: int, per_block: int, per_multiprocessor: int = _BLOCKS_PER_MULTIPROCESSOR
) -> int:
    """Return the number of blocks for n elements: the parameter `blocks`, or enough with `per_block` elements each."""
    if params["blocks"]:
        return int(params["blocks"])
    limit = max(_MIN_BLOCKS, min(_MAX_BLOCKS, engine.device.multiprocessors * per_multiprocessor))
    return max(1, min(-(-n // per_block), limit))


def _multi_pass_program(kernel_name: str, elements_a_thread: int = 0, *, shared_elements: int = 0) -> HostProgram:
    """Return a host program that launches a kernel with one partial result per block until one is left.

    Parameters
    ----------
    elements_a_thread : int
        Elements that a thread adds; 0 for any number, so that the second launch, of one block, is the last.
    shared_elements : int
        Elements of dynamic shared memory per thread.
    """

    def run(engine: Engine, inputs: Inputs, params: Params) -> Generator[Progress, None, Outputs]:
        block = int(params["block"])
        kernel = _build(engine, params, block).kernel(kernel_name)
        data = engine.upload(cast_values(inputs, params))
        n = data.shape[0]
        yield Progress(0.1, "uploaded")
        blocks = _count_blocks(engine, params, n, block)
        while True:
            if elements_a_thread:
                blocks = max(1, -(-n // (block * elements_a_thread)))
            partial = engine.allocate((blocks,), params["dtype"])
            shared_bytes = 4 * block * shared_elements
            engine.launch(kernel, (blocks, 1, 1), (block, 1, 1), data, partial, np.int32(n), shared_bytes=shared_bytes)
            engine.free(data)
            data, n, blocks = partial, blocks, 1
            if n == 1:
                break
            yield _partials_progress(engine, data)
        yield Progress(0.9, "reduced")
        return {"result": download_and_free(engine, data)}

    return run


def _peak_threads(params: Params) -> int:
    block = int(params["block"])
    return max(block, _PEAK_BLOCK_FOR_LARGE_INPUT) if params["n"] >= _MIN_LARGE_INPUT else block


def _reduce_on_one_thread(engine: Engine, inputs: Inputs, params: Params) -> Generator[Progress, None, Outputs]:
    kernel = _build(engine, params, int(params["block"])).kernel("reduce_one_thread")
    data = engine.upload(cast_values(inputs, params))
    total = engine.allocate((1,), params["dtype"])
    yield Progress(0.1, "uploaded")
    engine.launch(kernel, (1, 1, 1), (1, 1, 1), data, total, np.int32(data.shape[0]))
    engine.free(data)
    yield Progress(0.9, "reduced")
    return {"result": download_and_free(engine, total)}


def _atomic_program(kernel_name: str) -> HostProgram:
    def run(engine: Engine, inputs: Inputs, params: Params) -> Generator[Progress, None, Outputs]:
        block = int(params["block"])
        kernel = _build(engine, params, block).kernel(kernel_name)
        data = engine.upload(cast_values(inputs, params))
        n = data.shape[0]
        total = engine.allocate((1,), params["dtype"])
        engine.fill(total, operator_identity(params["operator"], params["dtype"]).item())
        yield Progress(0.1, "uploaded")
        engine.launch(kernel, (_count_blocks(engine, params, n, block), 1, 1), (block, 1, 1), data, total, np.int32(n))
        engine.free(data)
        yield Progress(0.9, "reduced")
        return {"result": download_and_free(engine, total)}

    return run


def _single_launch_program(
    kernel_name: str,
    *,
    threads: Callable[[Params], int] = lambda params: int(params["block"]),
    elements_a_thread: int = 1,
    blocks_per_multiprocessor: int = _BLOCKS_PER_MULTIPROCESSOR,
) -> HostProgram:
    """Return a host program with one launch, in which the last block to finish combines all partial results."""

    def run(engine: Engine, inputs: Inputs, params: Params) -> Generator[Progress, None, Outputs]:
        block = threads(params)
        kernel = _build(engine, params, block).kernel(kernel_name)
        data = engine.upload(cast_values(inputs, params))
        blocks = _count_blocks(engine, params, data.shape[0], block * elements_a_thread, blocks_per_multiprocessor)
        yield Progress(0.1, "uploaded")
        total, partial = _launch_once(engine, kernel, data, blocks, block)
        yield _partials_progress(engine, partial)
        engine.free(data, partial)
        yield Progress(0.9, "reduced")
        return {"result": download_and_free(engine, total)}

    return run


def _launch_once(engine: Engine, kernel: Kernel, data: Buffer, blocks: int, block: int) -> tuple[Buffer, Buffer]:
    """Return the total and the blocks' partial results, which the caller has to free."""
    total = engine.allocate((1,), data.dtype)
    tickets = engine.upload(np.zeros(1, np.uint32))  # uploaded once, as each launch resets it for the next
    partial = engine.allocate((blocks,), data.dtype)
    engine.launch(kernel, (blocks, 1, 1), (block, 1, 1), data, partial, total, tickets, np.int32(data.shape[0]))
    engine.free(tickets)
    return total, partial


def reduce_on_device(engine: Engine, data: Buffer, operator: str, block: int) -> Array:
    """Reduce data on the device by the peak variant; return the total, an array of one element.

    Parameters
    ----------
    data : Buffer
        Shape (n,), int32 or float32; not modified.
    operator : str
        sum, product, min or max.
    block : int
        Threads per block, for few elements.
    """
    n = data.shape[0]
    params = {"dtype": data.dtype.name, "operator": operator, "block": block, "n": n, "blocks": 0}
    threads = _peak_threads(params)
    kernel = _build(engine, params, threads).kernel("reduce_peak")
    blocks = _count_blocks(engine, params, n, 4 * _PEAK_LOADS * threads, _PEAK_BLOCKS_PER_MULTIPROCESSOR)
    total, partial = _launch_once(engine, kernel, data, blocks, threads)
    engine.free(partial)
    return download_and_free(engine, total)


def reduce_chunk(worker: WorkerContext, piece: ChunkInput) -> Array:
    """Reduce a chunk to one value."""
    return worker.run(piece.inputs)["result"]


def reduce_totals(worker: WorkerContext, totals: list[Array]) -> Array:
    """Reduce the totals of chunks by the same variant."""
    return worker.run({"values": np.concatenate(totals)})["result"]


def _plan(tasks: TaskCollector) -> dict[str, Parts]:
    totals = [tasks.add_task(reduce_chunk, chunk, chunk_index=index) for index, chunk in enumerate(tasks.chunks)]
    return {"result": Parts((reduce_as_tree(tasks, reduce_totals, totals),))}


def _partials_progress(engine: Engine, partial: Buffer) -> Progress:
    return Progress(0.8, f"{partial.shape[0]} partial results left", partials=lambda: engine.download(partial))


def _iterate_chunks(values: Array) -> Iterator[Array]:
    for start in range(0, values.size, _CHUNK):
        yield values[start : start + _CHUNK]


def _reference(inputs: Inputs, params: Params) -> Array:
    """Reduce in float64; int32 exactly, modulo 2^32 as it wraps around."""
    operator, dtype = params["operator"], params["dtype"]
    ufunc, values = _UFUNCS[operator], cast_values(inputs, params)
    wraps = operator in ("sum", "product")
    total = operator_identity(operator, dtype)
    if dtype == "float32":
        total = total.astype(np.float64)
    elif wraps:
        values, total = values.view(np.uint32), total.view(np.uint32)
    with np.errstate(over="ignore", under="ignore"):
        for piece in _iterate_chunks(values):
            partial = ufunc.reduce(piece.astype(total.dtype, copy=False), dtype=total.dtype)
            total[:] = ufunc(total, partial, dtype=total.dtype)
    return total.view(np.int32) if dtype == "int32" else total


def _tolerance(inputs: Inputs, params: Params) -> float:
    """Bound the rounding error of float32 sums and products; all other results are exact.

    A sum's error is at most `gamma` of the number of additions on an element's path, times the sum of magnitudes. That
    number is at most a thread's elements, plus the number of blocks (for sequential atomics), plus the two trees. A
    product of k factors other than 1 and -1 has at most k roundings in any order, whose relative error is less than
    e^(k u) - 1.
    """
    values, operator = cast_values(inputs, params), params["operator"]
    n = values.size
    if params["dtype"] == "int32" or operator in ("min", "max") or n < 2:
        return 0.0
    if operator == "product":
        factors = sum(int(np.count_nonzero(np.abs(piece) != 1)) for piece in _iterate_chunks(values))
        return math.expm1(factors * UNIT) * abs(float(_reference(inputs, params)[0]))
    block = int(params["block"])
    blocks, chosen = -(-n // block), params["blocks"]
    per_thread = -(-n // (block * min(blocks, chosen or _MIN_BLOCKS)))
    additions = per_thread + (chosen or min(blocks, _MAX_BLOCKS)) + 4 * _PEAK_LOADS + 32
    depth = min(n - 1, additions)
    magnitude = sum(float(np.abs(piece).sum(dtype=np.float64)) for piece in _iterate_chunks(values))
    return gamma(depth) * magnitude


def _accept_edge_case(inputs: Inputs, params: Params) -> None:
    """Raise InputError for float factors with which the product of some order would leave float32's range."""
    accept_factors(inputs, params)
    if params["dtype"] == "float32" and params["operator"] == "product":
        values = cast_values(inputs, params)
        exponents = np.log2(np.abs(values[values != 0]), dtype=np.float64)
        if max(exponents.clip(0).sum(), -exponents.clip(None, 0).sum()) > _MAX_TOTAL_EXPONENT:
            raise InputError("Products of these factors in some orders are outside the range of float32.")


def _wraps_around(values: Array, params: Params) -> bool:
    """Return whether the result leaves the range of int32."""
    if params["dtype"] != "int32" or params["operator"] not in ("sum", "product"):
        return False
    wide = np.int64 if params["operator"] == "sum" else np.float64
    with np.errstate(over="ignore", invalid="ignore"):
        exact = _UFUNCS[params["operator"]].reduce(values, dtype=wide)
    return bool(exact < -(2**31) or exact >= 2**31)  # False for NaN: infinity times a factor 0


def _present(inputs: Inputs, params: Params, outputs: Outputs) -> Outputs:
    """Return the arrays that a window shows, with totals of equal pieces from the CPU, as kernels may keep none."""
    values = cast_values(inputs, params)
    arrays = {**present(inputs, params, outputs["result"]), "wrapped": np.array(_wraps_around(values, params))}
    if not _PIECES < values.size <= MAX_READOUT_VALUES:
        return arrays
    starts = np.arange(_PIECES, dtype=np.int64) * values.size // _PIECES
    wide = np.float64 if params["dtype"] == "float32" else np.int64
    with np.errstate(over="ignore", under="ignore"):
        pieces = _UFUNCS[params["operator"]].reduceat(values.astype(wide), starts)
    return {**arrays, "pieces": pieces.astype(params["dtype"])}


def _cost(inputs: Inputs, params: Params) -> Cost:
    n = inputs["values"].size
    return Cost(bytes_read=4 * n, bytes_written=4, flops=max(n - 1, 0))


def _work(inputs: Inputs, params: Params) -> Work:
    return Work(inputs["values"].size, "element")


def _sequential(params: Params, n: int) -> int:
    return max(n - 1, 0)


def _textbook(params: Params, n: int) -> Textbook:
    """Return work and span of a balanced tree: each operation removes one element, each step half of them."""
    return Textbook(operations=max(n - 1, 0), steps=max(n - 1, 0).bit_length(), peak=n // 2)


PATTERN = Pattern(
    name="reduction",
    order=3,
    title="Reduction",
    summary="Combine an array into one value.",
    kernel_file=_FILE,
    presentation=ArrayPresentation(is_single_value=True, describe=lambda params: (params["operator"],)),
    parameters=(
        input_parameter(),
        size_parameter(on_gpu=elements_rule(2**18)),
        values_parameter(),
        Choice(
            name="operator",
            label="Operator",
            help="The operator that combines two elements.",
            options=tuple(_UFUNCS),
            default="sum",
        ),
        dtype_parameter(),
        block_parameter(),
        Integer(
            name="blocks",
            label="Blocks",
            help="Number of blocks, for variants with a grid of any size.",
            default=0,
            minimum=0,
            maximum=65535,
            minimum_label="as many as fit",
        ),
    ),
    variants=(
        single_thread_variant(
            _reduce_on_one_thread,
            "reduce_one_thread",
            idea="Sequential: the second half is combined with the first, then again with half as many elements.",
            limit="n - 1 operations, one after the other, though half of them are independent.",
            work=lambda inputs, params: _sequential(params, inputs["values"].size),
            textbook=_sequential,
            max_default_size=2**20,
        ),
        Variant(
            "neighbored",
            "Neighbored pairs",
            run=_multi_pass_program("reduce_neighbored", 1),
            idea="Combine neighbors, then pairs of pairs: the stride doubles, in place in global memory.",
            limit="Divergence: 1/2, then 3/4, then 7/8 of each warp's lanes idle.",
            kernels=("reduce_neighbored",),
            textbook=_textbook,
        ),
        Variant(
            "neighbored-less",
            "Neighbored pairs, less divergence",
            run=_multi_pass_program("reduce_neighbored_less", 1),
            idea="The first threads do all the work, so that whole warps finish early.",
            limit="The distance between neighboring threads' accesses to global memory doubles in every step.",
            kernels=("reduce_neighbored_less",),
            textbook=_textbook,
        ),
        Variant(
            "shared",
            "Two loads, shared memory",
            run=_multi_pass_program("reduce_shared", 2),
            idea="Each thread loads two neighboring elements; the tree is in shared memory.",
            limit="Divergence again: t % stride selects the active lanes.",
            kernels=("reduce_shared",),
            textbook=_textbook,
        ),
        Variant(
            "interleaved",
            "Interleaved pairs",
            run=_multi_pass_program("reduce_interleaved", 2),
            idea="The stride halves, and the first threads work: no divergence until the last warp.",
            limit="A block processes only two elements per thread, and half of its threads only load.",
            kernels=("reduce_interleaved",),
            textbook=_textbook,
        ),
        Variant(
            "two-blocks",
            "Unrolled by two blocks",
            run=_multi_pass_program("reduce_two_blocks", 2),
            idea="Each thread combines two elements one block apart as it loads them: no thread only loads.",
            limit="A block processes only two elements per thread.",
            kernels=("reduce_two_blocks",),
            textbook=_textbook,
        ),
        Variant(
            "grid-stride",
            "Grid stride, two launches",
            run=_multi_pass_program("reduce_grid_stride", shared_elements=1),
            idea="Grid stride: a grid of any size; each thread adds many elements before the tree begins.",
            limit="A barrier in every step of the tree, even when only one warp works.",
            kernels=("reduce_grid_stride",),
            textbook=_textbook,
        ),
        Variant(
            "last-warp",
            "Last warp unrolled",
            run=_multi_pass_program("reduce_last_warp", shared_elements=1),
            idea="The last 32 threads are one warp, which __syncwarp synchronizes without a block barrier.",
            limit="Loop overhead: a counter and a comparison in each of the other steps.",
            kernels=("reduce_last_warp",),
            textbook=_textbook,
        ),
        Variant(
            "unrolled",
            "Fully unrolled",
            run=_multi_pass_program("reduce_unrolled"),
            idea="The block size is a compile-time constant, so that the compiler unrolls the whole tree.",
            limit="The lanes of a warp communicate through shared memory.",
            kernels=("reduce_unrolled",),
            textbook=_textbook,
        ),
        Variant(
            "shuffle",
            "Warp shuffle",
            run=_multi_pass_program("reduce_shuffle"),
            idea="Warp shuffles read other lanes' registers; shared memory has one value per warp.",
            limit="A second launch for the partial results.",
            kernels=("reduce_shuffle",),
            textbook=_textbook,
        ),
        Variant(
            "atomic",
            "One launch: one atomic per block",
            run=_atomic_program("reduce_atomic"),
            idea="Each block adds its partial result to the total by an atomic operation.",
            limit="Blocks finish in any order: the last digits of a float sum differ from run to run.",
            kernels=("reduce_atomic",),
            textbook=_textbook,
        ),
        Variant(
            "last-block",
            "One launch: the last block",
            run=_single_launch_program("reduce_last_block"),
            idea="The last block to finish, by an atomic ticket, combines the partial results in a fixed order.",
            limit="A thread waits for each load before it issues the next.",
            kernels=("reduce_last_block",),
            textbook=_textbook,
        ),
        Variant(
            "peak",
            "Peak: wide loads in flight",
            run=_single_launch_program(
                "reduce_peak",
                threads=_peak_threads,
                elements_a_thread=4 * _PEAK_LOADS,
                blocks_per_multiprocessor=_PEAK_BLOCKS_PER_MULTIPROCESSOR,
            ),
            idea="16-byte loads, several in flight per thread, in one launch.",
            limit="Memory bandwidth.",
            kernels=("reduce_peak",),
            threads=_peak_threads,
            textbook=_textbook,
        ),
        Variant(
            "volatile",
            "Last warp, only volatile",
            run=_multi_pass_program("reduce_volatile", shared_elements=2),
            idea="As in old programs: no __syncwarp, assuming that the lanes of a warp run in lockstep.",
            limit="Since Volta that is not guaranteed.",
            kernels=("reduce_volatile",),
            deliberate_error="The lanes of the last warp are not synchronized: one may read what another has changed.",
            textbook=_textbook,
            successor="last-warp",
        ),
    ),
    benchmark=BENCHMARK,
    default_variant="shuffle",
    result="result",
    reference=_reference,
    tolerance=_tolerance,
    cost=_cost,
    work=_work,
    present=_present,
    accept=accept_values,
    accept_edge_case=_accept_edge_case,
    make_input=make_input,
    sequential_operations=_sequential,
    distributed=DistributedProgram(
        local="Each device reduces its chunk to one value.",
        exchange="A reduction tree combines the chunks' values, as it does blocks' values.",
        fix_up="",
        plan=_plan,
        streaming=Streaming(_plan),
    ),
    step_params={"n": 16, "block": "8"},
    step_input=truncate_values,
    presets=(
        Preset(
            "Rounding of float sums",
            "Each float32 addition is rounded, so the order determines the last digits. Try the variants, and compare "
            "their values and errors.",
            {"input": "random", "n": 2**20, "operator": "sum", "dtype": "float32"},
            variant="neighbored",
        ),
        Preset(
            "A race: volatile is not enough",
            "The last warp has no __syncwarp and relies on lanes in lockstep: the simulator's checkers report a race, "
            "and in the Step tab's Two schedules, a schedule with independent lanes gives a different sum. Without "
            "volatile, so does one with values cached in registers.",
            {"input": "ramp", "n": 64, "operator": "sum", "dtype": "int32", "block": "64"},
            variant="volatile",
        ),
        Preset(
            "int32 wraps around",
            "The product of the first odd numbers exceeds 2^32 many times; integers wrap around, on the GPU as in C.",
            {"input": "ramp", "n": 32, "operator": "product", "dtype": "int32"},
        ),
        Preset(
            "3 1 7 0 4 1 6 3 by neighbors",
            "Eight numbers are reduced to 25 in three steps: half of the eight threads idle in the first, 3/4 in "
            "the second, 7/8 in the third. The other 24 lanes of the warp always idle, as the block is so small.",
            {"input": "typed", "values": "3 1 7 0 4 1 6 3", "dtype": "int32", "block": "8"},
            variant="neighbored",
        ),
        Preset(
            "Idle lanes of a whole warp: 1/2, 3/4, 7/8",
            "A block of 32 threads is one warp: in Step half of its lanes idle in the first step, 3/4 in the second, "
            "7/8 in the third.",
            {"input": "ramp", "n": 32, "operator": "sum", "dtype": "int32", "block": "32"},
            variant="neighbored",
        ),
        Preset(
            "Two stages: 3 blocks over 1000 elements",
            "A grid of any size: each of three blocks adds elements by grid stride and writes one partial sum, and one "
            "block adds the three. Try other numbers of blocks, or minimum, maximum or product.",
            {"input": "ramp", "n": 1000, "operator": "sum", "dtype": "int32", "block": "32", "blocks": 3},
            variant="grid-stride",
        ),
    ),
)
