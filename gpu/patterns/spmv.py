"""Product of a sparse matrix and a vector (SpMV)."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any

import numpy as np

from gpu.base.errors import InputError
from gpu.base.warp import WARP
from gpu.declaration import arrays
from gpu.declaration.arrays import block_parameter, size_parameter, values_parameter, warp_aligned_block_size
from gpu.declaration.benchmark import Benchmark, Case, Peer, SizeCurve, powers_of_two
from gpu.declaration.distributed_program import ChunkInput, DistributedProgram, Parts, TaskCollector, WorkerContext
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
from gpu.declaration.rounding import UNIT
from gpu.engines.base import Buffer, Engine, download_and_free

_FILE = "spmv.cu"
_ITEMS_PER_THREAD = 8
_KINDS = ("random", "signed", "ones", "ramp")
_FLOAT_PARAMS = {"dtype": "float32"}
_MAX_ROWS = 2**24
_MAX_ENTRIES = 2**28
_SKEW = 0.7
"""In a power-law matrix, the length of the k-th longest row is proportional to k to the power of minus this."""

_MAX_PADDING_FACTOR, _MIN_PADDING_LIMIT = 8, 2**16
"""ELL is limited to this multiple of the entries, unless it has at most `_MIN_PADDING_LIMIT` elements."""

_FILL_CHUNK = 2**17
"""Elements of ELL that are filled together, since their indices take more memory than their values."""

_MATRIX_CHUNK = 2**15
"""Entries of a matrix that are generated together."""


def _row_lengths(params: Params, n: int) -> Array:
    """Return the numbers of entries of the rows, in no particular order: int64, shape (n,)."""
    mean_length = min(params["entries"], n)
    match params["matrix"]:
        case "poisson":
            lengths: Array = np.diff(_make_poisson_matrix(n)["offsets"]).astype(np.int64)
            return lengths
        case "power-law":
            weights = np.arange(1.0, n + 1) ** -_SKEW
            rounded: Array = np.rint(weights * (mean_length * n / max(weights.sum(), 1)))
            return np.minimum(rounded, n).astype(np.int64)
    return np.full(n, mean_length, np.int64)


def _make_poisson_matrix(n: int) -> dict[str, Array]:
    """Return the matrix of Poisson's equation on an approximately square grid of n points."""
    width = max(1, math.isqrt(n))
    row = np.arange(n)
    neighbors = np.stack([row - width, row - 1, row, row + 1, row + width], axis=1)
    inside = (neighbors >= 0) & (neighbors < n)
    inside[:, 1] &= row % width > 0
    inside[:, 3] &= row % width < width - 1
    factors = np.broadcast_to(np.array([-1, -1, 4, -1, -1], np.float32), neighbors.shape)
    return {
        "offsets": _row_offsets(inside.sum(axis=1)),
        "columns": neighbors[inside].astype(np.int32),
        "entries": factors[inside],
    }


def _row_offsets(lengths: Array) -> Array:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)


def _make_matrix(params: Params, n: int, seed: int) -> dict[str, Array]:
    """Generate a matrix; if x has whole numbers, its entries are digits, so that sums are exact in any order."""
    if params["matrix"] == "poisson":
        return _make_poisson_matrix(n)
    lengths, rng = _row_lengths(params, n), np.random.default_rng((seed, 1))
    count = int(lengths.sum())
    _check_entry_count(count)
    lengths = rng.permutation(lengths)
    # One entry in each of a row's equal ranges of columns, so that columns ascend.
    columns = np.empty(count, np.int32)
    if n and (lengths == lengths[0]).all():
        # All rows have the same ranges, and parts of the rows have temporary arrays that fit in a CPU's cache.
        ranks = np.arange(lengths[0] + 1) * n // lengths[0]
        begin, width = ranks[:-1], np.diff(ranks)
        for part in np.array_split(columns.reshape(n, -1), max(1, count // _MATRIX_CHUNK)):
            np.add(begin, (rng.random(part.shape) * width).astype(np.int64), out=part, casting="unsafe")
    else:
        rank = np.arange(count) - np.repeat(_row_offsets(lengths)[:-1].astype(np.int64), lengths)
        row_length = np.repeat(lengths, lengths)
        begin, end = rank * n // row_length, (rank + 1) * n // row_length
        columns[...] = begin + (rng.random(count) * (end - begin)).astype(np.int64)
    whole = params["input"] in ("ones", "ramp")
    entries = rng.integers(1, 10, count).astype(np.float32) if whole else rng.random(count, np.float32)
    return {"offsets": _row_offsets(lengths), "columns": columns, "entries": entries}


def _check_entry_count(count: int) -> None:
    if count > _MAX_ENTRIES:
        raise InputError(f"The matrix has {count} entries; up to {_MAX_ENTRIES} are allowed.")


def _make_input(params: Params, seed: int) -> Inputs:
    x = arrays.make_input({**params, **_FLOAT_PARAMS}, seed)
    return {**x, **_make_matrix(params, x["values"].size, seed)}


def _complete_inputs(supplied: Inputs, params: Params, seed: int) -> Inputs:
    """Generate a matrix for a vector from a file, or for a truncated vector."""
    n = supplied["values"].size
    if (
        "offsets" in supplied
        and supplied["offsets"].size == n + 1
        and supplied["offsets"][-1] == supplied["entries"].size
    ):
        return supplied
    return {**supplied, **_make_matrix(params, n, seed)}


def _accept(inputs: Inputs, params: Params) -> None:
    arrays.accept_values(inputs, _FLOAT_PARAMS)
    if inputs["values"].size > _MAX_ROWS:
        raise InputError(f"The vector has {inputs['values'].size} elements; up to {_MAX_ROWS} are allowed.")


def _to_float_vector(inputs: Inputs) -> Array:
    return arrays.cast_values(inputs, _FLOAT_PARAMS)


def _count_rows(inputs: Inputs) -> int:
    """Return the number of rows; a part of a matrix has fewer rows than x has elements."""
    return inputs["offsets"].size - 1


def _linear_grid(items: int, items_per_block: int) -> tuple[int, int, int]:
    return max(1, -(-items // items_per_block)), 1, 1


def _host_program(launch: Callable[[Engine, Inputs, Params, Buffer, Buffer], list[Buffer]]) -> HostProgram:
    """Return a host program that uploads x, zeroes y, calls `launch`, and downloads y."""

    def run(engine: Engine, inputs: Inputs, params: Params) -> Generator[Progress, None, Outputs]:
        x = engine.upload(_to_float_vector(inputs))
        y = engine.allocate((_count_rows(inputs),), np.float32)
        engine.fill(y, 0)
        yield Progress(0.1, "uploaded")
        matrix = launch(engine, inputs, params, x, y)
        engine.free(x, *matrix)
        yield Progress(0.9, "multiplied")
        return {"result": download_and_free(engine, y)}

    return run


def _launch_coo(engine: Engine, inputs: Inputs, params: Params, x: Buffer, y: Buffer) -> list[Buffer]:
    block, count = int(params["block"]), inputs["entries"].size
    rows = np.repeat(np.arange(_count_rows(inputs), dtype=np.int32), np.diff(inputs["offsets"]))
    kernel = engine.build(_FILE, {"BLOCK_SIZE": block}).kernel("spmv_coo")
    matrix = [engine.upload(array) for array in (rows, inputs["columns"], inputs["entries"])]
    engine.launch(kernel, _linear_grid(count, block), (block, 1, 1), *matrix, x, y, np.int32(count))
    return matrix


def _launch_ell(engine: Engine, inputs: Inputs, params: Params, x: Buffer, y: Buffer) -> list[Buffer]:
    """Launch one thread per row, on entries that are ordered by their ranks in their rows."""
    block, n, offsets = int(params["block"]), _count_rows(inputs), inputs["offsets"]
    width = int(np.diff(offsets).max(initial=0))
    columns, entries = np.full((width, n), -1, np.int32), np.zeros((width, n), np.float32)
    step = max(1, _FILL_CHUNK // max(width, 1))
    for first in range(0, n, step):
        rows = slice(first, min(first + step, n))
        entries_of_rows = slice(offsets[rows.start], offsets[rows.stop])
        lengths = np.diff(offsets[rows.start : rows.stop + 1])
        rank = np.arange(entries_of_rows.start, entries_of_rows.stop) - np.repeat(offsets[rows], lengths)
        row = np.repeat(np.arange(rows.start, rows.stop), lengths)
        columns[rank, row], entries[rank, row] = inputs["columns"][entries_of_rows], inputs["entries"][entries_of_rows]
    kernel = engine.build(_FILE, {"BLOCK_SIZE": block}).kernel("spmv_ell")
    matrix = [engine.upload(columns), engine.upload(entries)]
    engine.launch(kernel, _linear_grid(n, block), (block, 1, 1), *matrix, x, y, np.int32(n), np.int32(width))
    return matrix


def _ell_obstacle(inputs: Inputs, params: Params) -> str:
    longest, n, count = int(np.diff(inputs["offsets"]).max(initial=0)), inputs["values"].size, inputs["entries"].size
    if longest * n <= max(_MAX_PADDING_FACTOR * count, _MIN_PADDING_LIMIT):
        return ""
    return (
        f"ELL pads all rows to the longest one, which has {longest} entries: {longest * n} elements for {count} "
        f"entries, more than {_MAX_PADDING_FACTOR} times as many."
    )


def _csr_launcher(
    kernel_name: str, *, lanes: Callable[[Inputs], int] = lambda inputs: 1, warps: bool = True
) -> Callable[[Engine, Inputs, Params, Buffer, Buffer], list[Buffer]]:
    """Return a function that launches a CSR kernel with `lanes` lanes per row."""

    def launch(engine: Engine, inputs: Inputs, params: Params, x: Buffer, y: Buffer) -> list[Buffer]:
        block, n, row_lanes = (
            warp_aligned_block_size(params) if warps else int(params["block"]),
            _count_rows(inputs),
            lanes(inputs),
        )
        kernel = engine.build(_FILE, {"BLOCK_SIZE": block, "LANES": row_lanes}).kernel(kernel_name)
        matrix = _upload_csr(engine, inputs)
        engine.launch(kernel, _linear_grid(n * row_lanes, block), (block, 1, 1), *matrix, x, y, np.int32(n))
        return matrix

    return launch


def _launch_balanced(engine: Engine, inputs: Inputs, params: Params, x: Buffer, y: Buffer) -> list[Buffer]:
    block, n, count = warp_aligned_block_size(params), _count_rows(inputs), inputs["entries"].size
    kernel = engine.build(_FILE, {"BLOCK_SIZE": block, "ITEMS": _ITEMS_PER_THREAD}).kernel("spmv_balanced")
    matrix = _upload_csr(engine, inputs)
    blocks = _linear_grid(count, _ITEMS_PER_THREAD * block)
    engine.launch(kernel, blocks, (block, 1, 1), *matrix, x, y, np.int32(n), np.int32(count))
    return matrix


def _upload_csr(engine: Engine, inputs: Inputs) -> list[Buffer]:
    return [engine.upload(inputs[name]) for name in ("offsets", "columns", "entries")]


def _choose_lanes(inputs: Inputs) -> int:
    """Return the power of two nearest to the mean number of entries per row, by ratio, and at most a warp."""
    mean = inputs["entries"].size / max(_count_rows(inputs), 1)
    return min(WARP, 1 << max(0, round(math.log2(max(mean, 1)))))


def broadcast_part(worker: WorkerContext, piece: ChunkInput) -> Array:
    """Return a part of x, for all devices."""
    return _to_float_vector(piece.inputs)


def multiply_rows(worker: WorkerContext, piece: ChunkInput, parts: list[Array]) -> Array:
    """Multiply some rows of the matrix by all of x."""
    offsets = piece.inputs["offsets"]
    rows = {**piece.inputs, "offsets": offsets - offsets[0], "values": np.concatenate(parts)}
    return worker.run(rows)["result"]


def _plan(tasks: TaskCollector) -> dict[str, Parts]:
    x = [
        tasks.add_task(broadcast_part, part, chunk_index=index)
        for index, part in enumerate(tasks.separate_chunks["values"])
    ]
    parts = [tasks.add_task(multiply_rows, chunk, x, chunk_index=index) for index, chunk in enumerate(tasks.chunks)]
    return {"result": Parts(tuple(parts))}


def _multiply_reference(inputs: Inputs, *, magnitudes: bool = False) -> Array:
    """Return the product, or that of the magnitudes, in float64."""
    from scipy import sparse

    n, x, entries = (
        inputs["values"].size,
        _to_float_vector(inputs).astype(np.float64),
        inputs["entries"].astype(np.float64),
    )
    if magnitudes:
        x, entries = np.abs(x), np.abs(entries)
    if not n:
        return np.zeros(0)
    product: Array = sparse.csr_array((entries, inputs["columns"], inputs["offsets"]), shape=(n, n)) @ x
    return product


def _tolerance(inputs: Inputs, params: Params) -> Array:
    """Bound the rounding error of each row, for any order of summation of its d products.

    A product goes through at most d + 1 roundings: its own, and those of adding d terms to zero.
    """
    roundings = (np.diff(inputs["offsets"]) + 1.0) * UNIT
    bound: Array = roundings / (1 - roundings) * _multiply_reference(inputs, magnitudes=True)
    return bound


def _cost(inputs: Inputs, params: Params) -> Cost:
    n, count = inputs["values"].size, inputs["entries"].size
    return Cost(bytes_read=8 * count + 4 * (n + 1) + 4 * n, bytes_written=4 * n, flops=2 * count)


def _textbook(params: Params, n: int) -> Textbook:
    """Return work and span: all products in parallel, and a reduction tree per row."""
    lengths = _row_lengths(params, n)
    count, longest = int(lengths.sum()), int(lengths.max(initial=0))
    if not count:
        return Textbook(0, 0, 0)
    return Textbook(2 * count - int((lengths > 0).sum()), steps=1 + (longest - 1).bit_length(), peak=count)


def _present(inputs: Inputs, params: Params, outputs: Outputs) -> Outputs:
    return arrays.present(inputs, _FLOAT_PARAMS, outputs["result"])


def _case(n: int, **params: Any) -> Case:
    def generate(seed: int) -> Mapping[str, Array]:
        return _make_input(PATTERN.check({"n": n, **params}), seed)

    def cupy(cupy: Any, seed: int) -> Iterator[Peer]:
        from cupyx.scipy import sparse

        inputs = generate(seed)
        parts = tuple(cupy.asarray(inputs[name]) for name in ("entries", "columns", "offsets"))
        matrix, x = sparse.csr_matrix(parts, shape=(n, n)), cupy.asarray(inputs["values"])
        yield Peer(f"cuSPARSE (CuPy {cupy.__version__})", lambda: matrix @ x)

    def torch(torch: Any, seed: int) -> Iterator[Peer]:
        inputs = generate(seed)
        parts = [torch.from_numpy(inputs[name]).cuda() for name in ("offsets", "columns", "entries")]
        matrix, x = torch.sparse_csr_tensor(*parts, size=(n, n)), torch.from_numpy(inputs["values"]).cuda()
        yield Peer(f"cuSPARSE (PyTorch {torch.__version__})", lambda: matrix @ x)

    work = f"sparse matrix x vector, {params.get('matrix', 'random')}, 2^{n.bit_length() - 1} rows"
    return Case(work, {"n": n, **params}, libraries={"torch": torch, "cupy": cupy})


def _timing_model_case(n: int, matrix: str, entries: int = 16, block: int = 256) -> Case:
    work = f"sparse matrix x vector, {matrix}, {n} rows of {entries}, blocks of {block}"
    return Case(work, {"n": n, "matrix": matrix, "entries": entries, "block": str(block)})


def _peers(inputs: Inputs, params: Params) -> Iterator[Peer]:
    from scipy import sparse

    n = inputs["values"].size
    matrix = sparse.csr_array((inputs["entries"], inputs["columns"], inputs["offsets"]), shape=(n, n))
    yield Peer("SciPy csr_array @", lambda: matrix @ inputs["values"])


_BENCHMARK = Benchmark(
    gpu=(_case(2**22), _case(2**22, matrix="power-law"), _case(2**24, matrix="poisson")),
    compiled=(_case(2**18),),
    curve=SizeCurve(powers_of_two(12, 14, 16, 18, 20, 22)),
    goals={"scalar": "half of SciPy"},
    peers=_peers,
    timing_model_cases=(
        *(_timing_model_case(2**power, "random") for power in (14, 18, 22)),
        *(_timing_model_case(2**20, "power-law", 16, block) for block in (256, 64)),
        _timing_model_case(2**22, "poisson", 5),
        _timing_model_case(2**18, "random", 100),
    ),
)


PATTERN = Pattern(
    name="spmv",
    order=12,
    title="Sparse product",
    summary="A sparse matrix times a vector: y = A x.",
    kernel_file=_FILE,
    presentation=ArrayPresentation(),
    parameters=(
        arrays.input_parameter(_KINDS),
        size_parameter(2**16, _MAX_ROWS, _KINDS, elements_rule(2**11)),
        values_parameter(),
        Choice(
            name="matrix",
            label="Matrix",
            help="Rows of equal length with random columns, rows of very different lengths, or Poisson's equation on "
            "a square: 4 on the diagonal, and -1 for each of four neighbors.",
            options=("random", "power-law", "poisson"),
            default="random",
        ),
        Integer(
            name="entries",
            label="Entries",
            help="Average number of entries per row.",
            unit="per row",
            default=16,
            minimum=1,
            maximum=256,
            only_if=("matrix", ("random", "power-law")),
        ),
        block_parameter(),
    ),
    variants=(
        Variant(
            "coo",
            "COO, atomics",
            run=_host_program(_launch_coo),
            idea="One thread per entry, stored with its row and column; atomics add the products to y.",
            limit="One atomic per entry instead of one sum per row; contention among the entries of a row.",
            kernels=("spmv_coo",),
        ),
        Variant(
            "scalar",
            "CSR, one thread per row",
            run=_host_program(_csr_launcher("spmv_scalar", warps=False)),
            idea="Entries are stored row by row; each thread loops over its row and keeps the sum in a register.",
            limit="Uncoalesced: lanes read entries one row apart. A warp waits for the longest of its rows.",
            kernels=("spmv_scalar",),
        ),
        Variant(
            "ell",
            "ELL, by columns",
            run=_host_program(_launch_ell),
            idea="Coalesced: the first entries of all rows are stored next to each other, then the second ones.",
            limit="All rows are padded to the longest, and a warp waits for the longest of its rows.",
            kernels=("spmv_ell",),
            obstacle=_ell_obstacle,
        ),
        Variant(
            "vector",
            "CSR, one warp per row",
            run=_host_program(_csr_launcher("spmv_vector", lanes=lambda inputs: WARP)),
            idea="The lanes of a warp read consecutive entries of a row, and combine their sums by warp shuffles.",
            limit="Rows shorter than a warp leave lanes idle.",
            kernels=("spmv_vector",),
            threads=warp_aligned_block_size,
        ),
        Variant(
            "fitted",
            "CSR, fitted lanes",
            run=_host_program(_csr_launcher("spmv_fitted", lanes=_choose_lanes)),
            idea="As many lanes per row as the average row has entries: a warp processes several rows.",
            limit="Rows of different lengths: short rows leave lanes idle, a long row keeps only a few lanes busy.",
            kernels=("spmv_fitted",),
            threads=warp_aligned_block_size,
        ),
        Variant(
            "balanced",
            "Balanced: equal parts",
            run=_host_program(_launch_balanced),
            idea="Each block processes the same number of entries, regardless of rows, and sums rows in shared memory.",
            limit="Memory bandwidth, and the irregular reads of x.",
            kernels=("spmv_balanced",),
            threads=warp_aligned_block_size,
        ),
    ),
    benchmark=_BENCHMARK,
    default_variant="vector",
    # Rows without entries, and rows of more entries than a warp has lanes.
    edge_params=lambda params: (("rows of very different lengths", {"matrix": "power-law", "entries": 16}),),
    result="result",
    reference=lambda inputs, params: _multiply_reference(inputs),
    tolerance=_tolerance,
    cost=_cost,
    work=lambda inputs, params: Work(2 * inputs["entries"].size, "FLOP", "G"),
    present=_present,
    accept=_accept,
    make_input=_make_input,
    complete_inputs=_complete_inputs,
    distributed=DistributedProgram(
        local="Each device has some rows of the matrix, and a part of x.",
        exchange="Every device receives the parts of x from all others.",
        fix_up="Each device multiplies its rows by x.",
        plan=_plan,
        divided_inputs=(),
        separately_divided_inputs=("values",),
        ragged_inputs={"columns": "offsets", "entries": "offsets"},
    ),
    textbook=_textbook,
    step_params={"n": 16, "block": "16", "matrix": "poisson", "input": "ramp"},
    step_input=lambda inputs: {"values": inputs["values"][:32]},
    presets=(
        Preset(
            "Rows of very different lengths",
            "One row has a hundredth of all entries, most rows have a few: the thread of the long row delays others.",
            {"matrix": "power-law"},
            "balanced",
        ),
        Preset(
            "Poisson's equation",
            "Each row has a point and its four neighbors, at most five entries: one warp per row leaves 27 lanes idle.",
            {"matrix": "poisson", "input": "ones"},
            "vector",
        ),
        Preset(
            "Long rows",
            "With 256 entries per row, each warp reads 128 consecutive bytes eight times.",
            {"n": 4096, "entries": 256},
            "vector",
        ),
        Preset(
            "A vector of ones",
            "The result is the row sums: for Poisson's equation 0 inside, and more at the edges of the square.",
            {"n": 1024, "matrix": "poisson", "input": "ones"},
            "scalar",
        ),
    ),
)
