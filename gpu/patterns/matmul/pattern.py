"""Multiplication of two matrices."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpu.declaration.alone import on_one_thread
from gpu.declaration.arrays import refuse_missing_file
from gpu.declaration.distributed import DistributedProgram, OnWorker, Parts, Piece, Tasks
from gpu.declaration.gpu_sizes import side
from gpu.declaration.matrices import (
    KINDS,
    accept_matrix,
    corner,
    input_parameter,
    make_matrix,
    pieces,
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
from gpu.declaration.rounding import RoundingBound, gamma, rounded_to_half
from gpu.engines.base import Buffer, Engine, Module
from gpu.errors import InputError
from gpu.patterns.matmul import elements, fp16, peak
from gpu.patterns.matmul.benchmark import BENCHMARK
from gpu.patterns.matmul.block_tiles import BlockTile
from gpu.patterns.matmul.elements import are_halves, dtype_of, of_floats_alone, taken
from gpu.warp import WARP

_FILE = peak.FILE
_TENSOR_FILE = "matmul_tensor.cu"
_CHUNKS_FILE = "matmul_chunks.cu"
_CUT_BLOCK, _MOST_CUT = 256, 2**15
_HALVES_FILE = "matmul_halves.cu"
_WARPGROUPS_FILE = fp16.FILE
_STEPPED = 8


# By the tile that is asked for: what runs fast at its largest, what can be watched at its smallest.
_COLUMN = {
    4: BlockTile(8, 8, 4, 4, 4),
    8: BlockTile(16, 16, 4, 4, 4),
    16: BlockTile(32, 32, 8, 4, 4),
    32: BlockTile(64, 64, 8, 8, 8),
}
_SQUARE = {
    4: BlockTile(8, 8, 4, 4, 4),
    8: BlockTile(16, 16, 4, 4, 4),
    16: BlockTile(64, 64, 8, 4, 4),
    32: BlockTile(128, 128, 8, 8, 8),
}
_TENSOR = {
    4: BlockTile(16, 16, 8, 16, 16),
    8: BlockTile(32, 16, 8, 16, 16),
    16: BlockTile(32, 32, 16, 16, 16),
    32: BlockTile(64, 64, 16, 16, 16),
}
"""What a block makes, and a warp of it."""


@dataclass(frozen=True)
class _HalvesShape:
    """What a block makes, and a warp of it, and of how many steps it has tiles in shared memory."""

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


_HALVES = {
    4: _HalvesShape(16, 16, 16, 16, 2),
    8: _HalvesShape(32, 32, 16, 32, 3),
    16: _HalvesShape(64, 64, 32, 32, 4),
    32: _HalvesShape(128, 128, 64, 64, 3),
}
_HALVES_DEPTH = 16
"""How far along k tensor cores go at once."""


@dataclass(frozen=True)
class _WarpgroupsShape:
    """What a block makes, of which four warps have 64 rows, and of how many steps it has tiles in shared memory."""

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
        """Two halves of each element of a step's tiles, and two barriers, for each stage."""
        return self.stages * (4 * (self.rows + self.columns) * _WARPGROUPS_DEPTH + 2 * 8)


_WARP_ROWS, _WARPGROUPS_DEPTH = 16, 64
"""Of how many rows a warp of four has the sums, and how far along k a step goes."""

_WARPGROUPS = {
    4: _WarpgroupsShape(64, 8, 2),
    8: _WarpgroupsShape(64, 8, 2),
    16: _WarpgroupsShape(64, 16, 2),
    32: _WarpgroupsShape(128, 128, 3),
}
_WARPGROUPS_FEW = _WarpgroupsShape(128, 64, 4)
"""Of the largest, where there would be fewer blocks than multiprocessors."""
_SPLIT_LINES = 32
"""Rows of A or columns of B that a block splits."""

_BLOCK = 256
"""Threads in a block of what finds the largest values, and of what splits."""

_ROWS_OF_A_THREAD, _MOST_BLOCKS_DOWN = 64, 64
"""About how many rows a thread has of a column whose largest value is found, and how many blocks share one at most."""


def _sides(inputs: Inputs) -> tuple[int, int, int]:
    """Return m, n and k: A is m x k, B is k x n."""
    (m, k), n = inputs["values"].shape, inputs["b"].shape[1]
    return m, n, k


_Multiply = Callable[[Engine, Params, Buffer, Buffer, Buffer], None]
"""(engine, params, a, b, c): C becomes alpha A B + beta C; A is m x k, B is k x n."""


def _launch(
    engine: Engine,
    params: Params,
    a: Buffer,
    b: Buffer,
    c: Buffer,
    kernel_name: str,
    defines: dict[str, int | str],
    covers: tuple[int, int],
    block: tuple[int, int, int],
    file: str = _FILE,
) -> None:
    """Run a kernel of which a block makes `covers` rows and columns of C."""
    (m, k), n = a.shape, b.shape[1]
    kernel = engine.build(file, defines).kernel(kernel_name)
    grid = (-(-n // covers[1]), -(-m // covers[0]), 1)
    scales = (np.float32(params["alpha"]), np.float32(params["beta"]))
    engine.launch(kernel, grid, block, a, b, c, np.int32(m), np.int32(n), np.int32(k), *scales)


def _on_one_thread(engine: Engine, params: Params, a: Buffer, b: Buffer, c: Buffer) -> None:
    _launch(engine, params, a, b, c, "matmul_one_thread", {}, (c.shape[0], c.shape[1]), (1, 1, 1))


def _an_element_a_thread(kernel_name: str) -> _Multiply:
    def multiply(engine: Engine, params: Params, a: Buffer, b: Buffer, c: Buffer) -> None:
        tile = int(params["tile"])
        defines: dict[str, int | str] = {"TILE": tile, **({"ELEMENT": "__half"} if are_halves(params) else {})}
        _launch(engine, params, a, b, c, kernel_name, defines, (tile, tile), (tile, tile, 1))

    return multiply


def _several_a_thread(kernel_name: str, shapes: dict[int, BlockTile], *, one_column: bool = False) -> _Multiply:
    """Launch a kernel whose threads make a column of elements each, or a square."""

    def multiply(engine: Engine, params: Params, a: Buffer, b: Buffer, c: Buffer) -> None:
        shape = shapes[int(params["tile"])]
        threads = shape.threads * (shape.thread_columns if one_column else 1)
        covers = (shape.rows, shape.columns)
        _launch(engine, params, a, b, c, kernel_name, shape.defines, covers, (threads, 1, 1))

    return multiply


def _by_warps(engine: Engine, params: Params, a: Buffer, b: Buffer, c: Buffer) -> None:
    shape = _TENSOR[int(params["tile"])]
    threads = shape.threads * WARP
    defines: dict[str, int | str] = {"ROWS": shape.rows, "COLUMNS": shape.columns, "DEPTH": shape.depth}
    covers = (shape.rows, shape.columns)
    _launch(engine, params, a, b, c, "matmul_tensor", defines, covers, (threads, 1, 1), _TENSOR_FILE)


def _largest(engine: Engine, module: Module, a: Buffer, b: Buffer) -> tuple[Buffer, Buffer]:
    """Return the largest magnitudes of A's rows and of B's columns, as bits."""
    (m, k), n = a.shape, b.shape[1]
    of_rows, of_columns = engine.allocate((m,), np.uint32), engine.allocate((n,), np.uint32)
    engine.fill(of_columns, 0)
    rows, columns = module.kernel("matmul_largest_of_rows"), module.kernel("matmul_largest_of_columns")
    grid = (-(-m * WARP // _BLOCK), 1, 1)
    engine.launch(rows, grid, (_BLOCK, 1, 1), a, of_rows, np.int32(m), np.int32(k))
    some = max(1, min(k // _ROWS_OF_A_THREAD, _MOST_BLOCKS_DOWN))
    engine.launch(columns, (-(-n // _BLOCK), some, 1), (_BLOCK, 1, 1), b, of_columns, np.int32(k), np.int32(n))
    return of_rows, of_columns


def _by_halves(engine: Engine, params: Params, a: Buffer, b: Buffer, c: Buffer) -> None:
    """Split A and B into halves, filled up to whole tiles, and multiply these."""
    (m, k), n = a.shape, b.shape[1]
    shape = _HALVES[int(params["tile"])]
    if shape is _HALVES[32] and -(-m // shape.rows) * -(-n // shape.columns) < engine.device.multiprocessors:
        shape = _HALVES[16]
    module = engine.build(_HALVES_FILE, shape.defines)
    grid = (-(-n // shape.columns), -(-m // shape.rows), 1)
    all_m, all_n, all_k = grid[1] * shape.rows, grid[0] * shape.columns, -(-k // _HALVES_DEPTH) * _HALVES_DEPTH
    of_rows, of_columns = _largest(engine, module, a, b)
    sizes = [(np.int32(rows), np.int32(columns)) for rows, columns in (a.shape, b.shape)]
    halves = []
    for matrix, largest, size, all_rows, all_columns, by_rows in (
        (a, of_rows, sizes[0], all_m, all_k, 1),
        (b, of_columns, sizes[1], all_k, all_n, 0),
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
        of_rows,
        of_columns,
        c,
        np.int32(m),
        np.int32(n),
        np.int32(all_k),
        *scales,
    )
    for buffer in (*halves, of_rows, of_columns):
        engine.free(buffer)


def _by_warpgroups(engine: Engine, params: Params, a: Buffer, b: Buffer, c: Buffer) -> None:
    """Split A and B into halves, in the order of tiles, and multiply these; what are halves is multiplied as it is."""
    if are_halves(params):
        fp16.multiply(engine, params, a, b, c)
        return
    (m, k), n = a.shape, b.shape[1]
    shape = _WARPGROUPS[int(params["tile"])]
    if shape is _WARPGROUPS[32] and -(-m // shape.rows) * -(-n // shape.columns) < engine.device.multiprocessors:
        shape = _WARPGROUPS_FEW
    if shape.shared_bytes > engine.device.most_shared_bytes:
        shape = _WARPGROUPS[16]
    of_rows, of_columns = _largest(engine, engine.build(_HALVES_FILE), a, b)
    module = engine.build(_WARPGROUPS_FILE, shape.defines)
    down, across, steps = -(-m // shape.rows), -(-n // shape.columns), -(-k // _WARPGROUPS_DEPTH)
    tiles = []
    for matrix, largest, count, lines, by_rows in (
        (a, of_rows, down, shape.rows, 1),
        (b, of_columns, across, shape.columns, 0),
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
        of_rows,
        of_columns,
        c,
        *(np.int32(each) for each in (m, n, k)),
        np.float32(params["alpha"]),
        np.float32(params["beta"]),
        shared_bytes=shape.shared_bytes,
    )
    for buffer in (*tiles, of_rows, of_columns):
        engine.free(buffer)


def _cublas(engine: Engine, params: Params, a: Buffer, b: Buffer, c: Buffer) -> None:
    def gemm(library: Any, a: Any, b: Any, c: Any) -> None:
        if are_halves(params):
            library.matmul(a, b, out=c)
        else:
            library.cublas.gemm("N", "N", a, b, out=c, alpha=float(params["alpha"]), beta=float(params["beta"]))

    engine.call(gemm, a, b, c)


def _why_no_library(inputs: Inputs, params: Params) -> str:
    if are_halves(params) and (params["alpha"], params["beta"]) != (1, 0):
        return "Of halves CuPy gives the product alone: alpha has to be 1, and beta 0."
    return ""


_MULTIPLIES: dict[str, _Multiply] = {
    "one-thread": _on_one_thread,
    "naive": _an_element_a_thread("matmul_naive"),
    "coalesced": _an_element_a_thread("matmul_coalesced"),
    "tiled": _an_element_a_thread("matmul_tiled"),
    "registers-1d": _several_a_thread("matmul_registers_1d", _COLUMN, one_column=True),
    "registers-2d": _several_a_thread("matmul_registers_2d", _SQUARE),
    "vectors": _several_a_thread("matmul_vectors", _SQUARE),
    "peak": peak.multiply,
    "tensor": _by_warps,
    "halves": _by_halves,
    "warpgroups": _by_warpgroups,
    "cublas": _cublas,
}
"""What multiplies on the device, by variants' names."""


def _program(variant: str) -> HostProgram:
    """Return a variant's host program: upload A, B and C, multiply, and download C."""

    def run(engine: Engine, inputs: Inputs, params: Params) -> Generator[Progress, None, Outputs]:
        a, b = (engine.upload(taken(inputs[name], params)) for name in ("values", "b"))
        c = _before(engine, inputs, params)
        yield Progress(0.1, "uploaded")
        _MULTIPLIES[variant](engine, params, a, b, c)
        engine.free(a)
        engine.free(b)
        yield Progress(0.9, "multiplied")
        result = engine.download(c)
        engine.free(c)
        return {"result": result}

    return run


def _before(engine: Engine, inputs: Inputs, params: Params) -> Buffer:
    """Return C as it is before: uploaded where it counts."""
    c = inputs["c"]
    return engine.upload(taken(c, params)) if params["beta"] else engine.allocate(c.shape, dtype_of(params))


def hold_rows(worker: OnWorker, piece: Piece) -> Buffer:
    """Put some rows of B on the device, for every device to take."""
    return worker.engine.upload(taken(piece.inputs["b"], worker.params))


def multiply_rows(worker: OnWorker, piece: Piece, blocks: list[Buffer]) -> Array:
    """Multiply some rows of A by all of B, which comes in blocks of rows, and add up what they come to."""
    engine, params = worker.engine, worker.params
    rows, c = engine.upload(taken(piece.inputs["values"], params)), _before(engine, piece.inputs, params)
    first = 0
    for b in blocks:
        a = rows if len(blocks) == 1 else _cut_columns(engine, rows, first, b.shape[0])
        _MULTIPLIES[worker.variant](engine, params, a, b, c)
        if a is not rows:
            engine.free(a)
        first += b.shape[0]
        params = {**params, "beta": 1.0}
    result = engine.download(c)
    for buffer in (rows, c):
        engine.free(buffer)
    return result


def _cut_columns(engine: Engine, rows: Buffer, first: int, width: int) -> Buffer:
    """Return some columns of a matrix, which stays as it is."""
    count, columns = rows.shape
    cut = engine.allocate((count, width), np.float32)
    kernel = engine.build(_CHUNKS_FILE).kernel("matmul_cut_columns")
    grid = (-(-width // _CUT_BLOCK), min(count, _MOST_CUT), 1)
    numbers = np.int32(count), np.int32(columns), np.int32(first), np.int32(width)
    engine.launch(kernel, grid, (_CUT_BLOCK, 1, 1), rows, cut, *numbers)
    return cut


def _plan(tasks: Tasks) -> dict[str, Parts]:
    if are_halves(tasks.params):
        raise InputError(
            "Over several devices C is added up block by block of B, and a sum of halves would be rounded each time.",
            advice=f"Take --dtype {elements.FLOATS}.",
        )
    blocks = [tasks.make(hold_rows, chunk, place=place) for place, chunk in enumerate(tasks.beside["b"])]
    parts = [tasks.make(multiply_rows, chunk, blocks, place=place) for place, chunk in enumerate(tasks.chunks)]
    return {"result": Parts(tuple(parts))}


def _make_input(params: Params, seed: int) -> Inputs:
    refuse_missing_file(params)
    kind, rng = params["input"], np.random.default_rng(seed)
    n = params["n"]
    m, k = params["m"] or n, params["k"] or n
    a = np.eye(m, k, dtype=np.float32) if kind == "identity" else make_matrix(kind, m, k, rng)
    made = {"values": a, "b": make_matrix(kind, k, n, rng), "c": make_matrix(kind, m, n, rng)}
    return {name: taken(each, params) for name, each in made.items()}


def _complete(given: Inputs, params: Params, seed: int) -> Inputs:
    """Make a B and a C that go with the A of a file."""
    if "b" in given:
        return given
    (m, k), n, rng = given["values"].shape, params["n"], np.random.default_rng(seed)
    made = {"b": make_matrix("random", k, n, rng), "c": make_matrix("random", m, n, rng)}
    return {**given, **{name: taken(each, params) for name, each in made.items()}}


def _accept(inputs: Inputs, params: Params) -> None:
    for name, title in (("values", "A"), ("b", "B"), ("c", "C")):
        accept_matrix(inputs[name], title, dtype=dtype_of(params))
    (m, k), (rows, n) = inputs["values"].shape, inputs["b"].shape
    if rows != k or inputs["c"].shape != (m, n):
        raise InputError(f"A is {m} x {k} and B {rows} x {n}: A has to have as many columns as B has rows.")
    if are_halves(params) and (most := sum(_most(inputs, params))) > elements.LARGEST_HALF:
        raise InputError(
            f"C may come to {most:.3g} by the length of A's rows and B's columns; the largest half is "
            f"{elements.LARGEST_HALF:.0f}.",
            advice=f"Take --dtype {elements.FLOATS}, a smaller alpha, or smaller numbers.",
        )


def _reference(inputs: Inputs, params: Params) -> Array:
    alpha, beta = (float(np.float32(params[name])) for name in ("alpha", "beta"))
    b = taken(inputs["b"], params).astype(np.float64)
    c = taken(inputs["c"], params)
    expected = np.empty(c.shape, np.float64)
    for first, rows in pieces(taken(inputs["values"], params)):
        part = expected[first : first + len(rows)]
        np.matmul(rows.astype(np.float64), b, out=part)
        part *= alpha
        if beta:
            part += beta * c[first : first + len(rows)].astype(np.float64)
    return expected


def _most(inputs: Inputs, params: Params) -> tuple[float, float]:
    """Return bounds of alpha A B, the length of the longest row times that of the longest column, and of beta C."""
    alpha, beta = abs(float(params["alpha"])), abs(float(params["beta"]))
    a, b, c = (taken(inputs[name], params) for name in ("values", "b", "c"))
    largest_row = max(float(np.square(rows, dtype=np.float64).sum(axis=1).max()) for _, rows in pieces(a))
    columns = np.zeros(b.shape[1])
    for _, rows in pieces(b):
        columns += np.square(rows, dtype=np.float64).sum(axis=0)
    return alpha * float(np.sqrt(largest_row * columns.max())), beta * float(np.abs(c).max()) if beta else 0.0


def _tolerance(inputs: Inputs, params: Params) -> float | RoundingBound:
    """Bound the rounding of an element, in whatever order its k products are summed up.

    It is at most gamma(k + 2) |alpha| |a| |b| + gamma(2) |beta| |c|, where |a| |b|, the sum of the products'
    magnitudes, is at most the product of the row's length and the column's. Sums of two halves come to gamma(4) more:
    each factor to within 2^-23, and a product without that of the second halves. Whole numbers whose sums stay below
    2^24 are not rounded at all, where one factor is a half, below 2^11, and the other one two. Of tensor cores all this
    is required rather than proven: how they round a sum is not documented. What halves come to is rounded once more.
    """
    off = _tolerance_of_sums(inputs, params)
    return rounded_to_half(off) if are_halves(params) else off


def _tolerance_of_sums(inputs: Inputs, params: Params) -> float:
    products, before = _most(inputs, params)
    a, b, c = (taken(inputs[name], params) for name in ("values", "b", "c"))
    whole = all(float(params[name]).is_integer() for name in ("alpha", "beta"))
    smaller, larger = sorted(float(np.abs(each).max()) for each in (a, b))
    exact = whole and products + before < 2**24 and smaller <= 2**11 and larger <= 2**22
    if exact and all(_is_whole(each) for each in ((a, b, c) if params["beta"] else (a, b))):
        return 0.0
    return gamma(a.shape[1] + 6) * products + gamma(2) * before


def _is_whole(values: Array) -> bool:
    return all(bool((rows == np.trunc(rows)).all()) for _, rows in pieces(values))


def _cost(inputs: Inputs, params: Params) -> Cost:
    m, n, k = _sides(inputs)
    read = m * k + k * n + (m * n if params["beta"] else 0)
    size = np.dtype(dtype_of(params)).itemsize
    return Cost(bytes_read=size * read, bytes_written=size * m * n, flops=2 * m * n * k)


def _textbook(params: Params, n: int) -> Textbook:
    """All elements at once: a step for each element of a row and a column, and one for alpha and beta."""
    m, k = params["m"] or n, params["k"] or n
    operations = _operations(params, m, n, k)
    return Textbook(operations, steps=k + 1, peak=max(2 * m * n, operations - 2 * m * n * k))


def _operations(params: Params, m: int, n: int, k: int) -> int:
    """Return a product and a sum for each element of a row and a column, and alpha, and beta where it is not 0."""
    return 2 * m * n * k + (1 if params["beta"] == 0 else 3) * m * n


def _work(inputs: Inputs, params: Params) -> Work:
    m, n, k = _sides(inputs)
    return Work(2 * m * n * k, "FLOP", "G")


def _present(inputs: Inputs, params: Params, outputs: Outputs) -> Outputs:
    return present({"A": inputs["values"], "B": inputs["b"], "C": outputs["result"]})


_ONE_THREAD = on_one_thread(
    _program("one-thread"),
    "matmul_one_thread",
    idea="Without threads: rows, columns, and the products of an element in three loops.",
    limit="One product and one sum after the other.",
    work=lambda inputs, params: _operations(params, *_sides(inputs)),
    textbook=lambda params, n: _operations(params, params["m"] or n, n, params["k"] or n),
)


PATTERN = Pattern(
    name="matmul",
    order=8,
    title="Matrix product",
    summary="Rows times columns: alpha A B + beta C.",
    kernels=_FILE,
    presentation=MatrixPresentation(product=Product(left="A", right="B", result="C")),
    parameters=(
        input_parameter((*KINDS, "identity")),
        side_parameter("n", "n", "Columns of B and C.", "columns", 512, role=Role.SIZE, on_gpu=side(2**15)),
        side_parameter("m", "m", "Rows of A and C; 0 takes as many as n.", "rows", 0, 0),
        side_parameter(
            "k", "k", "Columns of A, which are as many as B has rows; 0 takes as many as n.", "columns", 0, 0
        ),
        Real(name="alpha", label="alpha", help="What A B is multiplied by.", default=1, minimum=-1e6, maximum=1e6),
        Real(
            name="beta",
            label="beta",
            help="What C is multiplied by before A B is added.",
            default=0,
            minimum=-1e6,
            maximum=1e6,
        ),
        elements.PARAMETER,
        Choice(
            name="tile",
            label="Tile",
            help="Rows and columns of C that a block of the first rungs makes; blocks of the others grow with it.",
            options=("4", "8", "16", "32"),
            default="32",
        ),
    ),
    variants=(
        replace(_ONE_THREAD, obstacle=lambda *given: of_floats_alone(*given) or _ONE_THREAD.obstacle(*given)),
        Variant(
            "naive",
            "Naive",
            run=_program("naive"),
            idea="One thread an element of C; the lanes of a warp stand below each other.",
            limit="Lanes read and write a whole row apart: each wants a sector of its own.",
            kernels=("matmul_naive",),
            obstacle=of_floats_alone,
        ),
        Variant(
            "coalesced",
            "Coalesced",
            run=_program("coalesced"),
            idea="The lanes of a warp stand beside each other and read neighbors.",
            limit="Two factors from global memory for each multiply-add.",
            kernels=("matmul_coalesced",),
            obstacle=of_floats_alone,
        ),
        Variant(
            "tiled",
            "Tiled in shared memory",
            run=_program("tiled"),
            idea="A block brings a tile of A and one of B into shared memory, where a whole row of threads reads them.",
            limit="Two shared loads for each multiply-add.",
            kernels=("matmul_tiled",),
        ),
        Variant(
            "registers-1d",
            "A column in registers",
            run=_program("registers-1d"),
            idea="A thread makes several elements below each other, so that one factor of B serves all of them.",
            limit="The factors of A are still loaded one for each multiply-add.",
            kernels=("matmul_registers_1d",),
            obstacle=of_floats_alone,
        ),
        Variant(
            "registers-2d",
            "A square in registers",
            run=_program("registers-2d"),
            idea="A thread makes a square of elements: 64 multiply-adds for 16 loads.",
            limit="Each load brings one float, and lanes meet in banks.",
            kernels=("matmul_registers_2d",),
            obstacle=of_floats_alone,
        ),
        Variant(
            "vectors",
            "16-byte loads",
            run=_program("vectors"),
            idea="Four floats with each load; the tile of A is transposed on its way into shared memory.",
            limit="The block waits for global memory in every step, and quads still meet in banks.",
            kernels=("matmul_vectors",),
            obstacle=of_floats_alone,
        ),
        Variant(
            "peak",
            "Peak: next tiles on their way",
            run=_program("peak"),
            idea="The next tiles are copied to shared memory while one tile's products are summed up; where elements "
            "are few, blocks share them, in a cluster or by parts of k.",
            limit="The rate of multiply-adds.",
            kernels=("matmul_peak", "matmul_add_parts", "matmul_whole_quads"),
            obstacle=of_floats_alone,
        ),
        Variant(
            "tensor",
            "Tensor cores",
            run=_program("tensor"),
            idea="A warp multiplies tiles of 16 x 16; a factor is three parts of TF32, which keep all of its bits.",
            limit="Six products for one, and the block waits for global memory at each step.",
            kernels=("matmul_tensor",),
            obstacle=of_floats_alone,
            file=_TENSOR_FILE,
        ),
        Variant(
            "halves",
            "Tensor cores: sums of two halves",
            run=_program("halves"),
            idea="A factor is split into two halves once, and three of their products make one of floats; the next "
            "tiles are copied while those of one step are multiplied.",
            limit="Three products for one, and halves of as many bytes as floats, written once and read again.",
            kernels=("matmul_largest_of_rows", "matmul_largest_of_columns", "matmul_split", "matmul_halves"),
            obstacle=of_floats_alone,
            file=_HALVES_FILE,
        ),
        Variant(
            "warpgroups",
            "Tensor cores: tiles by warpgroups",
            run=_program("warpgroups"),
            idea="Four warps have tensor cores multiply tiles as they lie in shared memory, where a thread copies them "
            "in bulk, whole and in the order that is wanted, while others are multiplied; halves are taken as they "
            "are.",
            limit="Three products for one, at the rate of tensor cores; of halves one.",
            kernels=("matmul_split_tiles", "matmul_wgmma", "matmul_whole_rows", "matmul_fp16", "matmul_fp16_add"),
            file=_WARPGROUPS_FILE,
            warpgroups=True,
            # A stage is filled again in the third step of a tile of halves; a block of floats takes a second.
            checked=lambda params: 2 * _WARPGROUPS_DEPTH + 1 if are_halves(params) else _WARPGROUPS_DEPTH // 2 + 1,
        ),
        Variant(
            "cublas",
            "cuBLAS (CuPy)",
            run=_program("cublas"),
            idea="What a user of CuPy has: cuBLAS's sgemm, which chooses among kernels made for this GPU.",
            limit="The rate of multiply-adds, in float32 all the way: no TF32.",
            kernels=(),
            obstacle=_why_no_library,
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
    complete=_complete,
    helpers={_CHUNKS_FILE: ("matmul_cut_columns",)},
    distributed=DistributedProgram(
        local="Each device has some rows of A and of C, and as many of B.",
        exchange="Every device takes the rows of B from all others.",
        fix_up="Each multiplies its rows of A by B, block by block of it, and adds up.",
        plan=_plan,
        divided=("values", "c"),
        beside=("b",),
    ),
    textbook=_textbook,
    step_params={"n": _STEPPED, "m": 0, "k": 0, "tile": "4", "input": "digits"},
    step_input=lambda inputs: corner(inputs, _STEPPED, _STEPPED),
    presets=(
        Preset(
            "Identity",
            "A is the identity, so C is B: where it is not, something is read at a wrong place.",
            {"input": "identity", "n": 256},
        ),
        Preset(
            "Row times matrix",
            "With one row every element of B is wanted once: no tile helps, and memory is the limit.",
            {"n": 2048, "m": 1},
            "coalesced",
        ),
        Preset(
            "Half precision",
            "Elements of 16 bits: half of the bytes, one product of tensor cores instead of three, and errors of up to "
            "one in 2048 where a sum is rounded to be written.",
            {"dtype": elements.HALVES, "n": 1024},
            "warpgroups",
        ),
        Preset(
            "Odd sizes",
            "No tile divides these: what lies outside counts as zero, and rows are not whole quads long.",
            {"m": 257, "n": 131, "k": 33},
        ),
    ),
)
