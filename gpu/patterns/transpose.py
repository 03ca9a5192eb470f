"""Transposition of a matrix."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from gpu.declaration.arrays import refuse_missing_file
from gpu.declaration.benchmark import Benchmark, Case, Peer, SizeCurve, powers
from gpu.declaration.distributed import DistributedProgram, OnWorker, Parts, Piece, Tasks
from gpu.declaration.gpu_sizes import side
from gpu.declaration.matrices import (
    KINDS,
    accept_matrix,
    corner,
    input_parameter,
    make_matrix,
    present,
    side_parameter,
    single,
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
from gpu.engines.base import Buffer, Engine

_FILE = "transpose.cu"
_STEPPED_ROWS, _STEPPED_COLUMNS = 16, 4

_EXACT = 2**24
"""So many whole numbers, from 0 on, are float32."""


def _moved(
    engine: Engine, inputs: Inputs, shape: tuple[int, int], move: Callable[[Buffer, Buffer], None]
) -> Generator[Progress, None, Array]:
    """Upload the matrix, move it into one of another shape, and download that."""
    given, out = engine.upload(single(inputs["values"])), engine.allocate(shape, np.float32)
    yield Progress(0.1, "uploaded")
    move(given, out)
    engine.free(given)
    yield Progress(0.9, "transposed")
    result = engine.download(out)
    engine.free(out)
    return result


def _launched(
    engine: Engine, inputs: Inputs, params: Params, kernel_name: str, threads: tuple[int, int], *, copies: bool = False
) -> Generator[Progress, None, Array]:
    """Launch a kernel whose blocks have a tile's columns and rows of threads, divided by `threads`."""
    (rows, columns), tile = inputs["values"].shape, int(params["tile"])
    kernel = engine.build(_FILE, {"TILE": tile}).kernel(kernel_name)
    across, down = (rows, columns) if kernel_name == "transpose_gather" else (columns, rows)
    grid, block = (-(-across // tile), -(-down // tile), 1), (tile // threads[0], tile // threads[1], 1)

    def move(given: Buffer, out: Buffer) -> None:
        engine.launch(kernel, grid, block, given, out, np.int32(rows), np.int32(columns))

    return (yield from _moved(engine, inputs, (rows, columns) if copies else (columns, rows), move))


def _turned(kernel_name: str, *threads: int) -> HostProgram:
    def run(engine: Engine, inputs: Inputs, params: Params) -> Generator[Progress, None, Outputs]:
        across, down = threads or (1, 1)
        return {"result": (yield from _launched(engine, inputs, params, kernel_name, (across, down)))}

    return run


def _copied(engine: Engine, inputs: Inputs, params: Params) -> Generator[Progress, None, Outputs]:
    """Copy the matrix, and read the copy by columns."""
    copy = yield from _launched(engine, inputs, params, "transpose_copy", (4, 2), copies=True)
    return {"result": copy.T}


def _cublas(engine: Engine, inputs: Inputs, params: Params) -> Generator[Progress, None, Outputs]:
    def geam(library: Any, given: Any, out: Any) -> None:
        library.cublas.geam("T", "N", 1.0, given, 0.0, out, out=out)

    rows, columns = inputs["values"].shape
    return {"result": (yield from _moved(engine, inputs, (columns, rows), partial(engine.call, geam)))}


def cut_columns(worker: OnWorker, piece: Piece, parts: int) -> dict[str, Array]:
    """Cut rows into blocks, one for each device's columns."""
    rows = single(piece.inputs["values"])
    bounds = np.arange(parts + 1) * rows.shape[1] // parts
    return {str(part): np.ascontiguousarray(rows[:, first:end]) for part, (first, end) in enumerate(pairwise(bounds))}


def turn_columns(worker: OnWorker, blocks: list[Array]) -> Array:
    """Turn some columns, of which each block has some rows: they are rows of the result."""
    columns = np.concatenate(blocks)
    return worker.run({"values": columns})["result"] if columns.size else columns.T


def _plan(tasks: Tasks) -> dict[str, Parts]:
    count = len(tasks.chunks)
    cut = [tasks.make(cut_columns, chunk, count, place=place) for place, chunk in enumerate(tasks.chunks)]
    turned = [tasks.make(turn_columns, [each[str(part)] for each in cut], place=part) for part in range(count)]
    return {"result": Parts(tuple(turned))}


def _make_input(params: Params, seed: int) -> Inputs:
    refuse_missing_file(params)
    columns, kind = params["n"], params["input"]
    rows = params["rows"] or columns
    if kind == "ramp":
        places = np.arange(rows * columns) % _EXACT
        return {"values": places.astype(np.float32).reshape(rows, columns)}
    return {"values": make_matrix(kind, rows, columns, np.random.default_rng(seed))}


def _accept(inputs: Inputs, params: Params) -> None:
    accept_matrix(inputs["values"], "the matrix")


def _reference(inputs: Inputs, params: Params) -> Array:
    return np.ascontiguousarray(single(inputs["values"]).T)


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


def _timed(rows: int, columns: int, tile: int = 32) -> Case:
    work = f"transpose, {rows} x {columns} float32, tile {tile}"
    return Case(work, {"n": columns, "rows": rows, "tile": str(tile)})


def _peers(inputs: Inputs, params: Params) -> Iterator[Peer]:
    turned = np.empty(inputs["values"].shape[::-1], np.float32)
    yield Peer("NumPy copyto", lambda: np.copyto(turned, inputs["values"].T))


_BENCHMARK = Benchmark(
    gpu=(_case(8192, 8192), _case(4099, 16381)),
    compiled=(_case(2048, 2048),),
    curve=SizeCurve(powers(9, 10, 11, 12, 13, 14)),
    wanted={"padded": "half of NumPy"},
    peers=_peers,
    timed=(
        *(_timed(side, side) for side in (1024, 2048, 4096, 8192)),
        _timed(2050, 8190),
        *(_timed(4096, 4096, tile) for tile in (16, 8)),
    ),
)


PATTERN = Pattern(
    name="transpose",
    order=10,
    title="Transpose",
    summary="Rows become columns, and nothing else.",
    kernels=_FILE,
    presentation=MatrixPresentation(turned=True),
    parameters=(
        input_parameter((*KINDS, "ramp"), "ramp"),
        side_parameter("n", "Columns", "Elements of a row.", "columns", 1024, role=Role.SIZE, on_gpu=side(2**19)),
        side_parameter("rows", "Rows", "How many rows there are; 0 takes as many as columns.", "rows", 0, 0),
        Choice(
            name="tile",
            label="Tile",
            help="Rows and columns that a block turns.",
            options=("4", "8", "16", "32"),
            default="32",
        ),
    ),
    variants=(
        Variant(
            "scatter",
            "Scattered writes",
            run=_turned("transpose_scatter"),
            idea="One thread an element: a warp reads along a row and writes down a column.",
            limit="Each lane's write touches a sector of its own, for four of its 32 bytes.",
            kernels=("transpose_scatter",),
        ),
        Variant(
            "gather",
            "Gathered reads",
            run=_turned("transpose_gather"),
            idea="A warp reads down a column and writes along a row: what a read brings in vain, the cache keeps.",
            limit="Each lane's read touches a sector of its own, and they wait for each other in the cache.",
            kernels=("transpose_gather",),
        ),
        Variant(
            "tiled",
            "Tiled in shared memory",
            run=_turned("transpose_tiled"),
            idea="A tile comes into shared memory along rows and leaves it along columns, coalesced on both sides.",
            limit="The words of a tile's column lie in one bank: the lanes that read it wait for each other.",
            kernels=("transpose_tiled",),
        ),
        Variant(
            "padded",
            "Padded rows",
            run=_turned("transpose_padded"),
            idea="Rows of the tile are longer than they have to be, so that a column lies in different banks.",
            limit="Each thread fetches one element, and waits for all others of its block.",
            kernels=("transpose_padded",),
        ),
        Variant(
            "coarse",
            "Four elements a thread",
            run=_turned("transpose_coarse", 1, 4),
            idea="Four reads of a thread are under way at once; indices and the barrier are for all four.",
            limit="The words that make rows longer hold nothing.",
            kernels=("transpose_coarse",),
        ),
        Variant(
            "swizzled",
            "Swizzled, without padding",
            run=_turned("transpose_swizzled", 1, 4),
            idea="In row y of the tile, column x stands at x ^ y: a column lies in different banks, no word is empty.",
            limit="Each load and each store moves one float.",
            kernels=("transpose_swizzled",),
        ),
        Variant(
            "vectors",
            "16-byte loads",
            run=_turned("transpose_vectors", 4, 2),
            idea="Four floats with each load and each store; they are turned on their way into swizzled quads.",
            limit="Every element goes through shared memory, and waits there for a barrier.",
            kernels=("transpose_vectors",),
        ),
        Variant(
            "copy",
            "Copy, read by columns",
            run=_copied,
            idea="Nothing is turned: a matrix by rows is the transposed one by columns, for whoever reads it so.",
            limit="The memory's bandwidth: no transposition is faster.",
            kernels=("transpose_copy",),
        ),
        Variant(
            "cublas",
            "cuBLAS (CuPy)",
            run=_cublas,
            idea="What a user of CuPy has: cuBLAS's geam, which adds two matrices, each perhaps transposed.",
            limit="The memory's bandwidth.",
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
        exchange="Every device sends each other the block of its columns: nearly everything moves.",
        fix_up="Each turns the columns that it has then.",
        plan=_plan,
    ),
    textbook=lambda params, n: Textbook(operations=0, steps=0, peak=0),
    step_params={"n": _STEPPED_COLUMNS, "rows": _STEPPED_ROWS, "tile": "16", "input": "ramp"},
    step_input=lambda inputs: corner(inputs, _STEPPED_ROWS, _STEPPED_COLUMNS),
    presets=(
        Preset(
            "Places",
            "So few elements that one sees where each went: it is the number of the place that it came from.",
            {"n": 24, "rows": 16},
            "padded",
        ),
        Preset(
            "A single row",
            "A row becomes a column, which lies in memory as it did: scattered writes are neighbors after all.",
            {"n": 16384, "rows": 1},
            "scatter",
        ),
        Preset(
            "Odd sizes",
            "No tile divides these, and rows are not whole quads long.",
            {"n": 1021, "rows": 517},
        ),
        Preset(
            "Narrow tiles",
            "Rows of a tile are 32 bytes long: whole sectors, but four of them for each warp's request.",
            {"n": 1024, "tile": "8"},
            "tiled",
        ),
    ),
)
