"""Matrix product: C = alpha A B + beta C."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpu.base.errors import InputError
from gpu.base.warp import WARP
from gpu.declaration.arrays import require_generated_input
from gpu.declaration.distributed_program import ChunkInput, DistributedProgram, Parts, TaskCollector, WorkerContext
from gpu.declaration.gpu_sizes import square_side_rule
from gpu.declaration.matrices import (
    KINDS,
    accept_matrix,
    crop_corner,
    input_parameter,
    iterate_row_blocks,
    make_matrix,
    present,
    side_parameter,
)
from gpu.declaration.pattern import (
    Array,
    Choice,
    Cost,
    HostProgram,
    Inputs,
    Outputs,
    Params,
    Pattern,
    Preset,
    Progress,
    Real,
    Textbook,
    Variant,
    Work,
)
from gpu.declaration.presentation import MatrixPresentation, Product
from gpu.declaration.roles import Role
from gpu.declaration.rounding import RoundingBound, float16_rounding_bound, gamma
from gpu.declaration.single_thread import single_thread_variant
from gpu.engines.base import Buffer, Engine, Kernel, Module, download_and_free
from gpu.patterns.matmul import element_types, fp16, peak
from gpu.patterns.matmul.benchmark import BENCHMARK
from gpu.patterns.matmul.block_tiles import BlockTile
from gpu.patterns.matmul.element_types import dtype_of, float16_obstacle, is_float16, to_element_type

_FILE = peak.FILE
_TENSOR_FILE = "matmul_tensor.cu"
_CHUNKS_FILE = "matmul_chunks.cu"
_CUT_BLOCK, _MAX_CUT_BLOCKS = 256, 2**15
_HALVES_FILE = "matmul_halves.cu"
_WARPGROUPS_FILE = fp16.FILE
_STEP_SIDE = 8


# By the parameter `tile`: the largest is fast, the smallest can be followed step by step.
_COLUMN_TILES = {
    4: BlockTile(8, 8, 4, 4, 4),
    8: BlockTile(16, 16, 4, 4, 4),
    16: BlockTile(32, 32, 8, 4, 4),
    32: BlockTile(64, 64, 8, 8, 8),
}
_SQUARE_TILES = {
    4: BlockTile(8, 8, 4, 4, 4),
    8: BlockTile(16, 16, 4, 4, 4),
    16: BlockTile(64, 64, 8, 4, 4),
    32: BlockTile(128, 128, 8, 8, 8),
}
_TENSOR_TILES = {
    4: BlockTile(16, 16, 8, 16, 16),
    8: BlockTile(32, 16, 8, 16, 16),
    16: BlockTile(32, 32, 16, 16, 16),
    32: BlockTile(64, 64, 16, 16, 16),
}
"""Tiles of a block, and of a warp."""


@dataclass(frozen=True)
class _HalvesShape:
    """Tiles of a block and of a warp, and the number of pipeline stages in shared memory."""

    rows: int
    columns: int
    warp_rows: int
    warp_columns: int
    stages: int

    @property
    def defines(self) -> dict[str, int | str]:
        return {
            "ROWS": self.rows,
            "COLUMNS": self.columns,
            "WARP_ROWS": self.warp_rows,
            "WARP_COLUMNS": self.warp_columns,
            "STAGES": self.stages,
        }

    @property
    def threads(self) -> int:
        return self.rows // self.warp_rows * (self.columns // self.warp_columns) * WARP


_HALVES_SHAPES = {
    4: _HalvesShape(16, 16, 16, 16, 2),
    8: _HalvesShape(32, 32, 16, 32, 3),
    16: _HalvesShape(64, 64, 32, 32, 4),
    32: _HalvesShape(128, 128, 64, 64, 3),
}
_HALVES_DEPTH = 16
"""Depth of a tensor core instruction along k."""


@dataclass(frozen=True)
class _WarpgroupsShape:
    """A block's tile, 64 rows per warpgroup, and the number of pipeline stages in shared memory."""

    rows: int
    columns: int
    stages: int

    @property
    def defines(self) -> dict[str, int | str]:
        return {"ROWS": self.rows, "COLUMNS": self.columns, "STAGES": self.stages}

    @property
    def threads(self) -> int:
        return (self.rows // _WARP_ROWS + 1) * WARP

    @property
    def shared_bytes(self) -> int:
        """Bytes of all stages: two float16 parts of each element of a step's tiles, and two barriers."""
        return self.stages * (4 * (self.rows + self.columns) * _WARPGROUPS_DEPTH + 2 * 8)


_WARP_ROWS, _WARPGROUPS_DEPTH = 16, 64
"""Rows per warp of a warpgroup, and depth of a step along k."""

_WARPGROUP_SHAPES = {
    4: _WarpgroupsShape(64, 8, 2),
    8: _WarpgroupsShape(64, 8, 2),
    16: _WarpgroupsShape(64, 16, 2),
    32: _WarpgroupsShape(128, 128, 3),
}
_SMALL_WARPGROUP_SHAPE = _WarpgroupsShape(128, 64, 4)
"""Shape for the largest `tile` if there would be fewer blocks than multiprocessors."""
_SPLIT_LINES = 32
"""Rows of A or columns of B per block of the kernel that splits elements."""

_BLOCK = 256
"""Block size of the kernels that find the largest values and that split elements."""

_ROWS_PER_THREAD, _MAX_BLOCKS_PER_COLUMN = 64, 64
"""For the largest value of a column: about as many rows per thread, and the most blocks per column."""


def _product_sizes(inputs: Inputs) -> tuple[int, int, int]:
    """Return m, n and k: A is m x k, B is k x n."""
    (m, k), n = inputs["values"].shape, inputs["b"].shape[1]
    return m, n, k


_Multiply = Callable[[Engine, Params, Buffer, Buffer, Buffer], None]
"""(engine, params, a, b, c): compute C = alpha A B + beta C; A is m x k, B is k x n."""


def _launch(
    engine: Engine,
    params: Params,
    operands: tuple[Buffer, Buffer, Buffer],
    kernel: Kernel,
    block_extent: tuple[int, int],
    block: tuple[int, int, int],
) -> None:
    """Launch a kernel on A, B and C; each block computes `block_extent` rows and columns of C."""
    (m, k), n = operands[0].shape, operands[1].shape[1]
    grid = (-(-n // block_extent[1]), -(-m // block_extent[0]), 1)
    scales = (np.float32(params["alpha"]), np.float32(params["beta"]))
    engine.launch(kernel, grid, block, *operands, np.int32(m), np.int32(n), np.int32(k), *scales)


def _multiply_on_one_thread(engine: Engine, params: Params, a: Buffer, b: Buffer, c: Buffer) -> None:
    kernel = engine.build(_FILE).kernel("matmul_one_thread")
    _launch(engine, params, (a, b, c), kernel, (c.shape[0], c.shape[1]), (1, 1, 1))


def _single_element_launcher(kernel_name: str) -> _Multiply:
    def multiply(engine: Engine, params: Params, a: Buffer, b: Buffer, c: Buffer) -> None:
        tile = int(params["tile"])
        defines: dict[str, int | str] = {"TILE": tile, **({"ELEMENT": "__half"} if is_float16(params) else {})}
        kernel = engine.build(_FILE, defines).kernel(kernel_name)
        _launch(engine, params, (a, b, c), kernel, (tile, tile), (tile, tile, 1))

    return multiply


def _multi_element_launcher(kernel_name: str, shapes: dict[int, BlockTile], *, one_column: bool = False) -> _Multiply:
    """Return a launcher of a kernel with a column or a square of elements per thread."""

    def multiply(engine: Engine, params: Params, a: Buffer, b: Buffer, c: Buffer) -> None:
        shape = shapes[int(params["tile"])]
        threads = shape.threads * (shape.thread_columns if one_column else 1)
        kernel = engine.build(_FILE, shape.defines).kernel(kernel_name)
        _launch(engine, params, (a, b, c), kernel, (shape.rows, shape.columns), (threads, 1, 1))

    return multiply


def _multiply_by_warps(engine: Engine, params: Params, a: Buffer, b: Buffer, c: Buffer) -> None:
    shape = _TENSOR_TILES[int(params["tile"])]
    threads = shape.threads * WARP
    defines: dict[str, int | str] = {"ROWS": shape.rows, "COLUMNS": shape.columns, "DEPTH": shape.depth}
    kernel = engine.build(_TENSOR_FILE, defines).kernel("matmul_tensor")
    _launch(engine, params, (a, b, c), kernel, (shape.rows, shape.columns), (threads, 1, 1))


def _find_largest_magnitudes(engine: Engine, module: Module, a: Buffer, b: Buffer) -> tuple[Buffer, Buffer]:
    """Return the largest magnitudes of A's rows and of B's columns, as the bits of floats."""
    (m, k), n = a.shape, b.shape[1]
    row_bits, column_bits = engine.allocate((m,), np.uint32), engine.allocate((n,), np.uint32)
    engine.fill(column_bits, 0)
    rows, columns = module.kernel("matmul_largest_of_rows"), module.kernel("matmul_largest_of_columns")
    grid = (-(-m * WARP // _BLOCK), 1, 1)
    engine.launch(rows, grid, (_BLOCK, 1, 1), a, row_bits, np.int32(m), np.int32(k))
    blocks_down = max(1, min(k // _ROWS_PER_THREAD, _MAX_BLOCKS_PER_COLUMN))
    engine.launch(columns, (-(-n // _BLOCK), blocks_down, 1), (_BLOCK, 1, 1), b, column_bits, np.int32(k), np.int32(n))
    return row_bits, column_bits


def _multiply_by_halves(engine: Engine, params: Params, a: Buffer, b: Buffer, c: Buffer) -> None:
    """Split A and B into pairs of float16 matrices, padded to whole tiles, and multiply these."""
    (m, k), n = a.shape, b.shape[1]
    shape = _HALVES_SHAPES[int(params["tile"])]
    if shape is _HALVES_SHAPES[32] and -(-m // shape.rows) * -(-n // shape.columns) < engine.device.multiprocessors:
        shape = _HALVES_SHAPES[16]
    module = engine.build(_HALVES_FILE, shape.defines)
    grid = (-(-n // shape.columns), -(-m // shape.rows), 1)
    padded_m, padded_n, padded_k = grid[1] * shape.rows, grid[0] * shape.columns, -(-k // _HALVES_DEPTH) * _HALVES_DEPTH
    row_bits, column_bits = _find_largest_magnitudes(engine, module, a, b)
    sizes = [(np.int32(rows), np.int32(columns)) for rows, columns in (a.shape, b.shape)]
    halves = []
    for matrix, largest, size, all_rows, all_columns, by_rows in (
        (a, row_bits, sizes[0], padded_m, padded_k, 1),
        (b, column_bits, sizes[1], padded_k, padded_n, 0),
    ):
        split = engine.allocate((2, all_rows, all_columns), np.float16)
        blocks = (-(-all_columns // (2 * _BLOCK)), all_rows, 1)
        more = (np.int32(all_columns), np.int32(by_rows))
        engine.launch(module.kernel("matmul_split"), blocks, (_BLOCK, 1, 1), matrix, largest, split, *size, *more)
        halves.append(split)
    scales = (np.float32(params["alpha"]), np.float32(params["beta"]))
    engine.launch(
        module.kernel("matmul_halves"),
        grid,
        (shape.threads, 1, 1),
        *halves,
        row_bits,
        column_bits,
        c,
        np.int32(m),
        np.int32(n),
        np.int32(padded_k),
        *scales,
    )
    engine.free(*halves, row_bits, column_bits)


def _multiply_by_warpgroups(engine: Engine, params: Params, a: Buffer, b: Buffer, c: Buffer) -> None:
    """Split A and B into pairs of float16 matrices in tile order, and multiply these; float16 is used directly."""
    if is_float16(params):
        fp16.multiply(engine, params, a, b, c)
        return
    (m, k), n = a.shape, b.shape[1]
    shape = _WARPGROUP_SHAPES[int(params["tile"])]
    if shape is _WARPGROUP_SHAPES[32] and -(-m // shape.rows) * -(-n // shape.columns) < engine.device.multiprocessors:
        shape = _SMALL_WARPGROUP_SHAPE
    if shape.shared_bytes > engine.device.max_shared_bytes:
        shape = _WARPGROUP_SHAPES[16]
    row_bits, column_bits = _find_largest_magnitudes(engine, engine.build(_HALVES_FILE), a, b)
    module = engine.build(_WARPGROUPS_FILE, shape.defines)
    down, across, steps = -(-m // shape.rows), -(-n // shape.columns), -(-k // _WARPGROUPS_DEPTH)
    tiles = []
    for matrix, largest, count, lines, by_rows in (
        (a, row_bits, down, shape.rows, 1),
        (b, column_bits, across, shape.columns, 0),
    ):
        split = engine.allocate((count, steps, 2, lines, _WARPGROUPS_DEPTH), np.float16)
        grid = (steps, -(-count * lines // _SPLIT_LINES), 1)
        sizes = (np.int32(matrix.shape[0]), np.int32(matrix.shape[1]), np.int32(by_rows))
        engine.launch(module.kernel("matmul_split_tiles"), grid, (_BLOCK, 1, 1), matrix, largest, split, *sizes)
        tiles.append(split)
    engine.launch(
        module.kernel("matmul_wgmma"),
        (min(down * across, engine.device.multiprocessors), 1, 1),
        (shape.threads, 1, 1),
        *tiles,
        row_bits,
        column_bits,
        c,
        *(np.int32(each) for each in (m, n, k)),
        np.float32(params["alpha"]),
        np.float32(params["beta"]),
        shared_bytes=shape.shared_bytes,
    )
    engine.free(*tiles, row_bits, column_bits)


def _multiply_by_cublas(engine: Engine, params: Params, a: Buffer, b: Buffer, c: Buffer) -> None:
    def gemm(library: Any, a: Any, b: Any, c: Any) -> None:
        if is_float16(params):
            library.matmul(a, b, out=c)
        else:
            library.cublas.gemm("N", "N", a, b, out=c, alpha=float(params["alpha"]), beta=float(params["beta"]))

    engine.call(gemm, a, b, c)


def _library_obstacle(inputs: Inputs, params: Params) -> str:
    if is_float16(params) and (params["alpha"], params["beta"]) != (1, 0):
        return "For float16, CuPy computes only A B: alpha has to be 1, and beta 0."
    return ""


_MULTIPLIES: dict[str, _Multiply] = {
    "one-thread": _multiply_on_one_thread,
    "naive": _single_element_launcher("matmul_naive"),
    "coalesced": _single_element_launcher("matmul_coalesced"),
    "tiled": _single_element_launcher("matmul_tiled"),
    "registers-1d": _multi_element_launcher("matmul_registers_1d", _COLUMN_TILES, one_column=True),
    "registers-2d": _multi_element_launcher("matmul_registers_2d", _SQUARE_TILES),
    "vectors": _multi_element_launcher("matmul_vectors", _SQUARE_TILES),
    "peak": peak.multiply,
    "tensor": _multiply_by_warps,
    "halves": _multiply_by_halves,
    "warpgroups": _multiply_by_warpgroups,
    "cublas": _multiply_by_cublas,
}
"""Functions that multiply on the device, by variant name."""


def _program(variant: str) -> HostProgram:
    """Return a variant's host program: upload A, B and C, multiply, and download C."""

    def run(engine: Engine, inputs: Inputs, params: Params) -> Generator[Progress, None, Outputs]:
        a, b = (engine.upload(to_element_type(inputs[name], params)) for name in ("values", "b"))
        c = _upload_initial_c(engine, inputs, params)
        yield Progress(0.1, "uploaded")
        _MULTIPLIES[variant](engine, params, a, b, c)
        engine.free(a, b)
        yield Progress(0.9, "multiplied")
        return {"result": download_and_free(engine, c)}

    return run


def _upload_initial_c(engine: Engine, inputs: Inputs, params: Params) -> Buffer:
    """Return the initial C, which is uploaded only if beta is not 0."""
    c = inputs["c"]
    return engine.upload(to_element_type(c, params)) if params["beta"] else engine.allocate(c.shape, dtype_of(params))


def upload_rows(worker: WorkerContext, piece: ChunkInput) -> Buffer:
    """Upload some rows of B, which all devices need."""
    return worker.engine.upload(to_element_type(piece.inputs["b"], worker.params))


def multiply_rows(worker: WorkerContext, piece: ChunkInput, blocks: list[Buffer]) -> Array:
    """Multiply some rows of A by all of B, which arrives in blocks of rows, and sum the products."""
    engine, params = worker.engine, worker.params
    rows, c = (
        engine.upload(to_element_type(piece.inputs["values"], params)),
        _upload_initial_c(engine, piece.inputs, params),
    )
    first = 0
    for b in blocks:
        a = rows if len(blocks) == 1 else _cut_columns(engine, rows, first, b.shape[0])
        _MULTIPLIES[worker.variant](engine, params, a, b, c)
        if a is not rows:
            engine.free(a)
        first += b.shape[0]
        params = {**params, "beta": 1.0}
    result = engine.download(c)
    engine.free(rows, c)
    return result


def _cut_columns(engine: Engine, rows: Buffer, first: int, width: int) -> Buffer:
    """Return a copy of some columns of a matrix."""
    count, columns = rows.shape
    cut = engine.allocate((count, width), np.float32)
    kernel = engine.build(_CHUNKS_FILE).kernel("matmul_cut_columns")
    grid = (-(-width // _CUT_BLOCK), min(count, _MAX_CUT_BLOCKS), 1)
    numbers = np.int32(count), np.int32(columns), np.int32(first), np.int32(width)
    engine.launch(kernel, grid, (_CUT_BLOCK, 1, 1), rows, cut, *numbers)
    return cut


def _plan(tasks: TaskCollector) -> dict[str, Parts]:
    if is_float16(tasks.params):
        raise InputError(
            "On several devices C is summed over blocks of B, and a float16 sum would be rounded each time.",
            advice=f"Choose --dtype {element_types.FLOATS}.",
        )
    blocks = [
        tasks.add_task(upload_rows, chunk, chunk_index=index) for index, chunk in enumerate(tasks.separate_chunks["b"])
    ]
    parts = [
        tasks.add_task(multiply_rows, chunk, blocks, chunk_index=index) for index, chunk in enumerate(tasks.chunks)
    ]
    return {"result": Parts(tuple(parts))}


def _make_input(params: Params, seed: int) -> Inputs:
    require_generated_input(params)
    kind, rng = params["input"], np.random.default_rng(seed)
    n = params["n"]
    m, k = params["m"] or n, params["k"] or n
    a = np.eye(m, k, dtype=np.float32) if kind == "identity" else make_matrix(kind, m, k, rng)
    matrices = {"values": a, "b": make_matrix(kind, k, n, rng), "c": make_matrix(kind, m, n, rng)}
    return {name: to_element_type(matrix, params) for name, matrix in matrices.items()}


def _complete_inputs(supplied: Inputs, params: Params, seed: int) -> Inputs:
    """Generate B and C for an A from a file."""
    if "b" in supplied:
        return supplied
    (m, k), n, rng = supplied["values"].shape, params["n"], np.random.default_rng(seed)
    matrices = {"b": make_matrix("random", k, n, rng), "c": make_matrix("random", m, n, rng)}
    return {**supplied, **{name: to_element_type(matrix, params) for name, matrix in matrices.items()}}


def _accept(inputs: Inputs, params: Params) -> None:
    for name, title in (("values", "A"), ("b", "B"), ("c", "C")):
        accept_matrix(inputs[name], title, dtype=dtype_of(params))
    (m, k), (rows, n) = inputs["values"].shape, inputs["b"].shape
    if rows != k or inputs["c"].shape != (m, n):
        raise InputError(f"A is {m} x {k} and B is {rows} x {n}: A's columns have to match B's rows.")
    if is_float16(params) and (bound := sum(_magnitude_bounds(inputs, params))) > element_types.MAX_FLOAT16:
        raise InputError(
            f"Elements of C may reach {bound:.3g}, by the norms of A's rows and B's columns; the largest float16 is "
            f"{element_types.MAX_FLOAT16:.0f}.",
            advice=f"Choose --dtype {element_types.FLOATS}, a smaller alpha, or smaller numbers.",
        )


def _reference(inputs: Inputs, params: Params) -> Array:
    alpha, beta = (float(np.float32(params[name])) for name in ("alpha", "beta"))
    b = to_element_type(inputs["b"], params).astype(np.float64)
    c = to_element_type(inputs["c"], params)
    expected = np.empty(c.shape, np.float64)
    for first, rows in iterate_row_blocks(to_element_type(inputs["values"], params)):
        part = expected[first : first + len(rows)]
        np.matmul(rows.astype(np.float64), b, out=part)
        part *= alpha
        if beta:
            part += beta * c[first : first + len(rows)].astype(np.float64)
    return expected


def _magnitude_bounds(inputs: Inputs, params: Params) -> tuple[float, float]:
    """Return bounds of the elements of alpha A B, by the largest norms of a row and a column, and of beta C."""
    alpha, beta = abs(float(params["alpha"])), abs(float(params["beta"]))
    a, b, c = (to_element_type(inputs[name], params) for name in ("values", "b", "c"))
    largest_row = max(float(np.square(rows, dtype=np.float64).sum(axis=1).max()) for _, rows in iterate_row_blocks(a))
    columns = np.zeros(b.shape[1])
    for _, rows in iterate_row_blocks(b):
        columns += np.square(rows, dtype=np.float64).sum(axis=0)
    return alpha * float(np.sqrt(largest_row * columns.max())), beta * float(np.abs(c).max()) if beta else 0.0


def _tolerance(inputs: Inputs, params: Params) -> float | RoundingBound:
    """Bound the rounding error of an element, for any order of summation of its k products.

    It is at most gamma(k + 2) |alpha| |a| |b| + gamma(2) |beta| |c|, where |a| |b|, the sum of the products'
    magnitudes, is at most the product of the norms of row and column. Splitting factors into two float16 adds gamma(4):
    each factor is exact to 2^-23, and the product of the second parts is left out. Whole numbers whose sums stay below
    2^24 are exact if one factor fits in one float16, below 2^11, and the other in two. For tensor cores this is
    a requirement, not a proof, as their rounding of sums is not documented. A float16 result is rounded once more.
    """
    error = _sum_tolerance(inputs, params)
    return float16_rounding_bound(error) if is_float16(params) else error


def _sum_tolerance(inputs: Inputs, params: Params) -> float:
    products, initial = _magnitude_bounds(inputs, params)
    a, b, c = (to_element_type(inputs[name], params) for name in ("values", "b", "c"))
    whole = all(float(params[name]).is_integer() for name in ("alpha", "beta"))
    smaller, larger = sorted(float(np.abs(each).max()) for each in (a, b))
    exact = whole and products + initial < 2**24 and smaller <= 2**11 and larger <= 2**22
    if exact and all(_is_whole(each) for each in ((a, b, c) if params["beta"] else (a, b))):
        return 0.0
    return gamma(a.shape[1] + 6) * products + gamma(2) * initial


def _is_whole(values: Array) -> bool:
    return all(bool((rows == np.trunc(rows)).all()) for _, rows in iterate_row_blocks(values))


def _cost(inputs: Inputs, params: Params) -> Cost:
    m, n, k = _product_sizes(inputs)
    read = m * k + k * n + (m * n if params["beta"] else 0)
    size = np.dtype(dtype_of(params)).itemsize
    return Cost(bytes_read=size * read, bytes_written=size * m * n, flops=2 * m * n * k)


def _textbook(params: Params, n: int) -> Textbook:
    """Return work and span, with all elements in parallel: k multiply-adds, and one step for alpha and beta."""
    m, k = params["m"] or n, params["k"] or n
    operations = _count_operations(params, m, n, k)
    return Textbook(operations, steps=k + 1, peak=max(2 * m * n, operations - 2 * m * n * k))


def _count_operations(params: Params, m: int, n: int, k: int) -> int:
    """Return the operations: k products and sums per element, the product with alpha, and beta C unless beta is 0."""
    return 2 * m * n * k + (1 if params["beta"] == 0 else 3) * m * n


def _work(inputs: Inputs, params: Params) -> Work:
    m, n, k = _product_sizes(inputs)
    return Work(2 * m * n * k, "FLOP", "G")


def _present(inputs: Inputs, params: Params, outputs: Outputs) -> Outputs:
    return present({"A": inputs["values"], "B": inputs["b"], "C": outputs["result"]})


_ONE_THREAD = single_thread_variant(
    _program("one-thread"),
    "matmul_one_thread",
    idea="Sequential: three loops over rows, columns, and the products of an element.",
    limit="One multiply-add after the other.",
    work=lambda inputs, params: _count_operations(params, *_product_sizes(inputs)),
    textbook=lambda params, n: _count_operations(params, params["m"] or n, n, params["k"] or n),
    max_default_size=2**6,
)


PATTERN = Pattern(
    name="matmul",
    order=8,
    title="Matrix product",
    summary="Rows times columns: alpha A B + beta C.",
    kernel_file=_FILE,
    presentation=MatrixPresentation(product=Product(left="A", right="B", result="C")),
    parameters=(
        input_parameter((*KINDS, "identity")),
        side_parameter("n", "n", "Columns of B and C.", "columns", 512, role=Role.SIZE, on_gpu=square_side_rule(2**15)),
        side_parameter("m", "m", "Rows of A and C; 0 for the same as n.", "rows", 0, 0),
        side_parameter("k", "k", "Columns of A and rows of B; 0 for the same as n.", "columns", 0, 0),
        Real(name="alpha", label="alpha", help="Factor of A B.", default=1, minimum=-1e6, maximum=1e6),
        Real(
            name="beta",
            label="beta",
            help="Factor of the initial C, which is added.",
            default=0,
            minimum=-1e6,
            maximum=1e6,
        ),
        element_types.PARAMETER,
        Choice(
            name="tile",
            label="Tile",
            help="Rows and columns of C per block of the first variants; the tiles of the others scale with it.",
            options=("4", "8", "16", "32"),
            default="32",
        ),
    ),
    variants=(
        replace(_ONE_THREAD, obstacle=lambda *args: float16_obstacle(*args) or _ONE_THREAD.obstacle(*args)),
        Variant(
            "naive",
            "Naive",
            run=_program("naive"),
            idea="One thread per element of C; the lanes of a warp have consecutive rows.",
            limit="Uncoalesced: lanes read and write one row apart, each in a different sector.",
            kernels=("matmul_naive",),
            obstacle=float16_obstacle,
        ),
        Variant(
            "coalesced",
            "Coalesced",
            run=_program("coalesced"),
            idea="The lanes of a warp have consecutive columns, so that accesses are coalesced.",
            limit="Two loads from global memory for each multiply-add.",
            kernels=("matmul_coalesced",),
            obstacle=float16_obstacle,
        ),
        Variant(
            "tiled",
            "Tiled in shared memory",
            run=_program("tiled"),
            idea="Shared-memory tiling: a block loads tiles of A and B, which all its threads reuse.",
            limit="Two shared loads for each multiply-add.",
            kernels=("matmul_tiled",),
        ),
        Variant(
            "registers-1d",
            "A column in registers",
            run=_program("registers-1d"),
            idea="Register tiling: a thread computes several elements of a column, and reuses each factor of B.",
            limit="Each multiply-add still loads one factor of A.",
            kernels=("matmul_registers_1d",),
            obstacle=float16_obstacle,
        ),
        Variant(
            "registers-2d",
            "A square in registers",
            run=_program("registers-2d"),
            idea="Register tiling: a thread computes a square of elements, with 64 multiply-adds for 16 loads.",
            limit="Each load fetches one float, and there are bank conflicts.",
            kernels=("matmul_registers_2d",),
            obstacle=float16_obstacle,
        ),
        Variant(
            "vectors",
            "16-byte loads",
            run=_program("vectors"),
            idea="Each load fetches four floats; the tile of A is transposed on the way into shared memory.",
            limit="The block waits for global memory in every step, and there still are bank conflicts.",
            kernels=("matmul_vectors",),
            obstacle=float16_obstacle,
        ),
        Variant(
            "peak",
            "Peak: asynchronous copies",
            run=_program("peak"),
            idea="Asynchronous copies load the next tiles during the computation of the current ones; for few "
            "elements, blocks share k, in a cluster or by parts (split-k).",
            limit="The peak rate of multiply-adds.",
            kernels=("matmul_peak", "matmul_add_parts", "matmul_whole_quads"),
            obstacle=float16_obstacle,
        ),
        Variant(
            "tensor",
            "Tensor cores",
            run=_program("tensor"),
            idea="A warp multiplies 16 × 16 tiles; each factor is split into three TF32 parts that keep all its bits.",
            limit="Six products instead of one, and the block waits for global memory in every step.",
            kernels=("matmul_tensor",),
            obstacle=float16_obstacle,
            file=_TENSOR_FILE,
        ),
        Variant(
            "halves",
            "Tensor cores: sums of two halves",
            run=_program("halves"),
            idea="Each factor is split once into two float16, and three products replace one of float32; asynchronous "
            "copies load the next tiles.",
            limit="Three products instead of one, and the split factors are written and read again.",
            kernels=("matmul_largest_of_rows", "matmul_largest_of_columns", "matmul_split", "matmul_halves"),
            obstacle=float16_obstacle,
            file=_HALVES_FILE,
        ),
        Variant(
            "warpgroups",
            "Tensor cores: tiles by warpgroups",
            run=_program("warpgroups"),
            idea="Warpgroup instructions (wgmma) multiply tiles directly from shared memory, where one thread issues "
            "bulk copies of the next tiles, already in the required layout; float16 matrices are copied directly, by "
            "tensor maps.",
            limit="The rate of tensor cores, with three products instead of one; for float16, one.",
            kernels=("matmul_split_tiles", "matmul_wgmma", "matmul_whole_rows", "matmul_fp16"),
            file=_WARPGROUPS_FILE,
            warpgroups=True,
            # A block processes a second tile; for float16, of several steps.
            checked_side=lambda params: _WARPGROUPS_DEPTH // (1 if is_float16(params) else 2) + 1,
        ),
        Variant(
            "cublas",
            "cuBLAS (CuPy)",
            run=_program("cublas"),
            idea="cuBLAS's sgemm, as called from CuPy, which chooses among kernels optimized for this GPU.",
            limit="The peak rate of float32 multiply-adds: no TF32.",
            kernels=(),
            obstacle=_library_obstacle,
            library="cuBLAS",
        ),
    ),
    benchmark=BENCHMARK,
    default_variant="tiled",
    result="result",
    reference=_reference,
    tolerance=_tolerance,
    cost=_cost,
    work=_work,
    present=_present,
    accept=_accept,
    make_input=_make_input,
    complete_inputs=_complete_inputs,
    helpers={_CHUNKS_FILE: ("matmul_cut_columns",)},
    distributed=DistributedProgram(
        local="Each device has some rows of A, B and C.",
        exchange="Every device receives the rows of B from all others.",
        fix_up="Each device multiplies its rows of A by B, block by block, and sums the products.",
        plan=_plan,
        divided_inputs=("values", "c"),
        separately_divided_inputs=("b",),
    ),
    textbook=_textbook,
    step_params={"n": _STEP_SIDE, "m": 0, "k": 0, "tile": "4", "input": "digits"},
    step_input=lambda inputs: crop_corner(inputs, _STEP_SIDE, _STEP_SIDE),
    presets=(
        Preset(
            "Identity",
            "A is the identity, so C equals B: a difference shows a wrong index.",
            {"input": "identity", "n": 256},
        ),
        Preset(
            "Row times matrix",
            "With one row, every element of B is used once: no tiling helps, and memory is the limit.",
            {"n": 2048, "m": 1},
            "coalesced",
        ),
        Preset(
            "Half precision",
            "16-bit elements: half the bytes, one tensor-core product instead of three, and rounding errors of up to "
            "one in 2048 in each result.",
            {"dtype": element_types.HALVES, "n": 1024},
            "warpgroups",
        ),
        Preset(
            "Odd sizes",
            "These sizes are multiples of no tile: elements outside count as zero, and rows are not whole vectors.",
            {"m": 257, "n": 131, "k": 33},
        ),
    ),
)
