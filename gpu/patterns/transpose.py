"""Transposition of a matrix."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from gpu.base.threads import PART_ELEMENTS, map_parts
from gpu.declaration.arrays import require_generated_input
from gpu.declaration.benchmark import Benchmark, Case, Peer, SizeCurve, powers_of_two
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
    to_float32,
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
    Textbook,
    Variant,
    Work,
)
from gpu.declaration.presentation import MatrixPresentation
from gpu.declaration.roles import Role
from gpu.engines.base import Buffer, Engine, download_and_free

_FILE = "transpose.cu"
_STEPPED_ROWS, _STEPPED_COLUMNS = 16, 4

_MAX_EXACT_INTEGER = 2**24
"""Whole numbers below this are exact in float32."""
_REFERENCE_TILE = 256
"""Rows that are copied before they are transposed: the columns of a large matrix share few lines of a CPU's cache."""


def _run_transfer(
    engine: Engine, inputs: Inputs, shape: tuple[int, int], move: Callable[[Buffer, Buffer], None]
) -> Generator[Progress, None, Array]:
    """Upload the matrix, call `move` to write a matrix of another shape, and download that."""
    matrix, out = engine.upload(to_float32(inputs["values"])), engine.allocate(shape, np.float32)
    yield Progress(0.1, "uploaded")
    move(matrix, out)
    engine.free(matrix)
    yield Progress(0.9, "transposed")
    return download_and_free(engine, out)


def _launch_kernel(
    engine: Engine,
    inputs: Inputs,
    params: Params,
    kernel_name: str,
    threads: tuple[int, int],
    *,
    keeps_shape: bool = False,
) -> Generator[Progress, None, Array]:
    """Launch a kernel with the tile's columns and rows, divided by `threads`, as block size."""
    (rows, columns), tile = inputs["values"].shape, int(params["tile"])
    kernel = engine.build(_FILE, {"TILE": tile}).kernel(kernel_name)
    across, down = (rows, columns) if kernel_name == "transpose_gather" else (columns, rows)
    grid, block = (-(-across // tile), -(-down // tile), 1), (tile // threads[0], tile // threads[1], 1)

    def move(matrix: Buffer, out: Buffer) -> None:
        engine.launch(kernel, grid, block, matrix, out, np.int32(rows), np.int32(columns))

    return (yield from _run_transfer(engine, inputs, (rows, columns) if keeps_shape else (columns, rows), move))


def _transpose_program(kernel_name: str, *threads: int) -> HostProgram:
    def run(engine: Engine, inputs: Inputs, params: Params) -> Generator[Progress, None, Outputs]:
        across, down = threads or (1, 1)
        return {"result": (yield from _launch_kernel(engine, inputs, params, kernel_name, (across, down)))}

    return run


def _copy_columns(engine: Engine, inputs: Inputs, params: Params) -> Generator[Progress, None, Outputs]:
    """Copy the matrix, and read the copy in column-major order."""
    copy = yield from _launch_kernel(engine, inputs, params, "transpose_copy", (4, 2), keeps_shape=True)
    return {"result": copy.T}


def _transpose_by_cublas(engine: Engine, inputs: Inputs, params: Params) -> Generator[Progress, None, Outputs]:
    def geam(library: Any, matrix: Any, out: Any) -> None:
        library.cublas.geam("T", "N", 1.0, matrix, 0.0, out, out=out)

    rows, columns = inputs["values"].shape
    return {"result": (yield from _run_transfer(engine, inputs, (columns, rows), partial(engine.call, geam)))}


def cut_columns(worker: WorkerContext, piece: ChunkInput, parts: int) -> dict[str, Array]:
    """Cut rows into blocks, one for each device's columns."""
    rows = to_float32(piece.inputs["values"])
    bounds = np.arange(parts + 1) * rows.shape[1] // parts
    return {str(part): np.ascontiguousarray(rows[:, first:end]) for part, (first, end) in enumerate(pairwise(bounds))}


def transpose_columns(worker: WorkerContext, blocks: list[Array]) -> Array:
    """Transpose some columns, of which each block has some rows: they become rows of the result."""
    columns = np.concatenate(blocks)
    return worker.run({"values": columns})["result"] if columns.size else columns.T


def _plan(tasks: TaskCollector) -> dict[str, Parts]:
    count = len(tasks.chunks)
    cut = [tasks.add_task(cut_columns, chunk, count, chunk_index=index) for index, chunk in enumerate(tasks.chunks)]
    transposed = [
        tasks.add_task(transpose_columns, [each[str(part)] for each in cut], chunk_index=part) for part in range(count)
    ]
    return {"result": Parts(tuple(transposed))}


def _make_input(params: Params, seed: int) -> Inputs:
    require_generated_input(params)
    columns, kind = params["n"], params["input"]
    rows = params["rows"] or columns
    if kind == "ramp":
        return {"values": _count_up(rows * columns).reshape(rows, columns)}
    return {"values": make_matrix(kind, rows, columns, np.random.default_rng(seed))}


def _count_up(count: int) -> Array:
    """Return 0, 1, 2 ... as float32, which begin again at the first integer that float32 does not represent."""
    values = np.empty(count, np.float32)

    def fill(start: int) -> None:
        part, first = values[start : start + PART_ELEMENTS], start % _MAX_EXACT_INTEGER
        part[:] = np.arange(first, first + part.size, dtype=np.float32)

    map_parts(fill, range(0, count, PART_ELEMENTS))
    return values


def _accept(inputs: Inputs, params: Params) -> None:
    accept_matrix(inputs["values"], "the matrix")


def _reference(inputs: Inputs, params: Params) -> Array:
    values = to_float32(inputs["values"])
    transposed = np.empty(values.shape[::-1], np.float32)

    def fill(block: tuple[int, Array]) -> None:
        first, rows = block
        for start in range(0, rows.shape[1], _REFERENCE_TILE):
            tile = np.ascontiguousarray(values[start : start + _REFERENCE_TILE, first : first + len(rows)])
            rows[:, start : start + _REFERENCE_TILE] = tile.T

    map_parts(fill, iterate_row_blocks(transposed))
    return transposed


def _cost(inputs: Inputs, params: Params) -> Cost:
    moved = 4 * inputs["values"].size
    return Cost(bytes_read=moved, bytes_written=moved, flops=0)


def _present(inputs: Inputs, params: Params, outputs: Outputs) -> Outputs:
    return present({"Input": inputs["values"], "Transposed": outputs["result"]})


def _case(rows: int, columns: int) -> Case:
    def torch(torch: Any, seed: int) -> Iterator[Peer]:
        matrix, out = torch.rand(rows, columns, device="cuda"), torch.empty(columns, rows, device="cuda")
        yield Peer(f"PyTorch {torch.__version__}", lambda: out.copy_(matrix.t()))

    def cupy(cupy: Any, seed: int) -> Iterator[Peer]:
        matrix = cupy.random.default_rng(seed).random((rows, columns), dtype=cupy.float32)
        out = cupy.empty((columns, rows), cupy.float32)
        yield Peer(f"CuPy {cupy.__version__}", lambda: cupy.copyto(out, matrix.T))

    work = f"transpose, {rows} x {columns} float32"
    return Case(work, {"n": columns, "rows": rows}, libraries={"torch": torch, "cupy": cupy})


def _timing_model_case(rows: int, columns: int, tile: int = 32) -> Case:
    work = f"transpose, {rows} x {columns} float32, tile {tile}"
    return Case(work, {"n": columns, "rows": rows, "tile": str(tile)})


def _peers(inputs: Inputs, params: Params) -> Iterator[Peer]:
    transposed = np.empty(inputs["values"].shape[::-1], np.float32)
    yield Peer("NumPy copyto", lambda: np.copyto(transposed, inputs["values"].T))


_BENCHMARK = Benchmark(
    gpu=(_case(8192, 8192), _case(4099, 16381)),
    compiled=(_case(2048, 2048),),
    curve=SizeCurve(powers_of_two(9, 10, 11, 12, 13, 14)),
    goals={"padded": "half of NumPy"},
    peers=_peers,
    timing_model_cases=(
        *(_timing_model_case(side, side) for side in (1024, 2048, 4096, 8192)),
        _timing_model_case(2050, 8190),
        *(_timing_model_case(4096, 4096, tile) for tile in (16, 8)),
    ),
)


PATTERN = Pattern(
    name="transpose",
    order=10,
    title="Transpose",
    summary="Rows become columns.",
    kernel_file=_FILE,
    presentation=MatrixPresentation(transposed=True),
    parameters=(
        input_parameter((*KINDS, "ramp"), "ramp"),
        side_parameter(
            "n", "Columns", "Elements per row.", "columns", 1024, role=Role.SIZE, on_gpu=square_side_rule(2**17)
        ),
        side_parameter("rows", "Rows", "Number of rows; 0 for the same as columns.", "rows", 0, 0),
        Choice(
            name="tile",
            label="Tile",
            help="Rows and columns of the tile that a block transposes.",
            options=("4", "8", "16", "32"),
            default="32",
        ),
    ),
    variants=(
        Variant(
            "scatter",
            "Scattered writes",
            run=_transpose_program("transpose_scatter"),
            idea="One thread per element: a warp reads along a row and writes along a column.",
            limit="Uncoalesced writes: each lane writes four bytes of a different 32-byte sector.",
            kernels=("transpose_scatter",),
        ),
        Variant(
            "gather",
            "Gathered reads",
            run=_transpose_program("transpose_gather"),
            idea="A warp reads along a column and writes along a row: the cache keeps the rest of each sector.",
            limit="Uncoalesced reads: each lane reads a different sector, which the cache serves one after the other.",
            kernels=("transpose_gather",),
        ),
        Variant(
            "tiled",
            "Tiled in shared memory",
            run=_transpose_program("transpose_tiled"),
            idea="A tile in shared memory is written along rows and read along columns: global accesses are coalesced.",
            limit="The words of a tile's column are in one bank: reading a column has 32-way bank conflicts.",
            kernels=("transpose_tiled",),
        ),
        Variant(
            "padded",
            "Padded rows",
            run=_transpose_program("transpose_padded"),
            idea="Padding the tile's rows puts the words of a column into different banks.",
            limit="Each thread loads one element, and waits for all others of its block.",
            kernels=("transpose_padded",),
        ),
        Variant(
            "coarse",
            "Four elements per thread",
            run=_transpose_program("transpose_coarse", 1, 4),
            idea="Thread coarsening: four loads in flight per thread share the index arithmetic and the barrier.",
            limit="Padding wastes shared memory.",
            kernels=("transpose_coarse",),
        ),
        Variant(
            "swizzled",
            "Swizzled, without padding",
            run=_transpose_program("transpose_swizzled", 1, 4),
            idea="In row y of the tile, column x is stored at x ^ y: a column is in different banks, without padding.",
            limit="Each load and each store moves one float.",
            kernels=("transpose_swizzled",),
        ),
        Variant(
            "vectors",
            "16-byte loads",
            run=_transpose_program("transpose_vectors", 4, 2),
            idea="Each load and each store moves four floats, transposed on the way into swizzled vectors.",
            limit="Every element passes through shared memory and waits for a barrier.",
            kernels=("transpose_vectors",),
        ),
        Variant(
            "copy",
            "Copy, read by columns",
            run=_copy_columns,
            idea="No transposition: a row-major matrix is its transpose in column-major order.",
            limit="Memory bandwidth: no transposition is faster.",
            kernels=("transpose_copy",),
        ),
        Variant(
            "cublas",
            "cuBLAS (CuPy)",
            run=_transpose_by_cublas,
            idea="cuBLAS's geam, as called from CuPy: it adds two matrices, each optionally transposed.",
            limit="Memory bandwidth.",
            kernels=(),
            library="cuBLAS",
        ),
    ),
    benchmark=_BENCHMARK,
    default_variant="padded",
    result="result",
    reference=_reference,
    tolerance=lambda inputs, params: 0.0,
    cost=_cost,
    work=lambda inputs, params: Work(inputs["values"].size, "element"),
    present=_present,
    accept=_accept,
    make_input=_make_input,
    distributed=DistributedProgram(
        local="Each device cuts its rows into blocks, one for each device's columns.",
        exchange="All-to-all: every device sends every other the block of its columns; nearly all data moves.",
        fix_up="Each device transposes the columns that it received.",
        plan=_plan,
    ),
    textbook=lambda params, n: Textbook(operations=0, steps=0, peak=0),
    step_params={"n": _STEPPED_COLUMNS, "rows": _STEPPED_ROWS, "tile": "16", "input": "ramp"},
    step_input=lambda inputs: crop_corner(inputs, _STEPPED_ROWS, _STEPPED_COLUMNS),
    presets=(
        Preset(
            "Places",
            "Each element is the index of its original position, so that you can see where it moved.",
            {"n": 24, "rows": 16},
            "padded",
        ),
        Preset(
            "A single row",
            "A row becomes a column with the same memory layout: scattered writes are to neighbors after all.",
            {"n": 16384, "rows": 1},
            "scatter",
        ),
        Preset(
            "Odd sizes",
            "These sizes are multiples of no tile, and rows are not whole vectors of four floats.",
            {"n": 1021, "rows": 517},
        ),
        Preset(
            "Narrow tiles",
            "A tile's rows have 32 bytes: whole sectors, but each warp's request needs four of them.",
            {"n": 1024, "tile": "8"},
            "tiled",
        ),
    ),
)
