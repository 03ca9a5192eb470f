"""The 7-point stencil on a three-dimensional grid.

A grid is stored as a matrix with the rows of all its planes, one plane after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import Any

import numpy as np

from gpu.base.errors import InputError
from gpu.base.threads import PART_ELEMENTS, map_parts
from gpu.declaration.arrays import require_generated_input
from gpu.declaration.benchmark import Benchmark, Case, Peer, SizeCurve, powers_of_two
from gpu.declaration.distributed_program import DistributedProgram, Streaming, independent_chunks_plan
from gpu.declaration.gpu_sizes import cube_edge_rule
from gpu.declaration.matrices import (
    accept_matrix,
    crop_corner,
    input_parameter,
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
    Integer,
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
from gpu.declaration.presentation import MatrixPresentation
from gpu.declaration.roles import Role
from gpu.declaration.rounding import gamma
from gpu.engines.base import Engine, download_and_free

_FILE = "stencil.cu"
_STEP_SIDE = 4
_MAX_POINTS = 2**28
_MAX_SIDE = 4096
_MAX_CUBE_SIDE = 512
"""The largest side of a cube."""

# By the edge of a cube: the edge of a face, and the number of planes that a block processes.
_FACES = {4: (4, 4), 8: (30, 32)}
# By the edge of a cube: the block size with one point per thread, and with four points of a row per thread.
_POINTS = {4: (4, 4, 4), 8: (32, 4, 2)}
_QUADS = {4: (1, 4), 8: (32, 8)}

_Shape = tuple[int, int, int]


def _grid_shape(values: Array, params: Params) -> _Shape:
    """Return the numbers of planes, rows and columns of a grid."""
    rows = _rows_per_plane(params)
    return values.shape[0] // rows, rows, values.shape[1]


def _rows_per_plane(params: Params) -> int:
    """Return the number of rows per plane."""
    rows: int = params["rows"] or params["n"]
    return rows


def _point_blocks(tile: int) -> tuple[_Shape, _Shape]:
    """Return the points that a block computes, along x, y and z, and its threads."""
    return _POINTS[tile], _POINTS[tile]


def _cube_blocks(tile: int) -> tuple[_Shape, _Shape]:
    return (tile, tile, tile), (tile + 2, tile + 2, tile + 2)


def _face_blocks(tile: int) -> tuple[_Shape, _Shape]:
    face, length = _FACES[tile]
    return (face, face, length), (face + 2, face + 2, 1)


def _quad_blocks(tile: int) -> tuple[_Shape, _Shape]:
    across, down = _QUADS[tile]
    return (4 * across, down, _FACES[tile][1]), (across, down, 1)


def _host_program(kernel_name: str, block_extents: Callable[[int], tuple[_Shape, _Shape]]) -> HostProgram:
    def run(engine: Engine, inputs: Inputs, params: Params) -> Generator[Progress, None, Outputs]:
        planes, rows, columns = _grid_shape(inputs["values"], params)
        tile = int(params["tile"])
        face, length = _FACES[tile]
        kernel = engine.build(_FILE, {"TILE": tile, "FACE": face, "LENGTH": length}).kernel(kernel_name)
        values = engine.upload(to_float32(inputs["values"]))
        result_buffer = engine.allocate(inputs["values"].shape, np.float32)
        yield Progress(0.1, "uploaded")
        extents, block = block_extents(tile)
        grid = (-(-columns // extents[0]), -(-rows // extents[1]), -(-planes // extents[2]))
        grid_shape = (np.int32(planes), np.int32(rows), np.int32(columns))
        factors = (np.float32(params["center"]), np.float32(params["around"]))
        engine.launch(kernel, grid, block, values, result_buffer, *grid_shape, *factors)
        engine.free(values)
        yield Progress(0.9, "computed")
        return {"result": download_and_free(engine, result_buffer)}

    return run


def _make_input(params: Params, seed: int) -> Inputs:
    require_generated_input(params)
    columns, kind = params["n"], params["input"]
    rows, planes = params["rows"] or columns, params["planes"] or columns
    if planes * rows * columns > _MAX_POINTS:
        raise InputError(f"The grid has {planes * rows * columns} points; up to {_MAX_POINTS} are allowed.")
    if kind == "ball":
        z, y, x = (np.linspace(-1, 1, length, dtype=np.float32) for length in (planes, rows, columns))
        inside = z[:, None, None] ** 2 + y[None, :, None] ** 2 + x[None, None, :] ** 2 < 0.5
        return {"values": inside.astype(np.float32).reshape(planes * rows, columns)}
    return {"values": make_matrix(kind, planes * rows, columns, np.random.default_rng(seed))}


def _accept(inputs: Inputs, params: Params) -> None:
    values = inputs["values"]
    if values.size > _MAX_POINTS:
        raise InputError(f"The grid has {values.size} points; up to {_MAX_POINTS} are allowed.")
    accept_matrix(values, "the grid", largest=_MAX_POINTS)
    rows = _rows_per_plane(params)
    if values.shape[0] % rows:
        raise InputError(
            f"{values.shape[0]} rows are not a whole number of planes of {rows} rows.",
            advice="Set Rows to the number of rows per plane; the file has one plane below the other.",
        )


def _crop_input(inputs: Inputs, params: Params, small_params: Params) -> Inputs:
    """Crop a grid to its first planes, and these to their first rows and columns."""
    values = inputs["values"]
    rows, columns = _rows_per_plane(small_params), small_params["n"]
    grid = values.reshape(_grid_shape(values, params))[: small_params["planes"] or columns, :rows, :columns]
    return {**inputs, "values": np.ascontiguousarray(grid).reshape(-1, grid.shape[2])}


def _stencil_factors(params: Params) -> tuple[float, float]:
    center, around = (float(np.float32(params[name])) for name in ("center", "around"))
    return center, around


def _apply_stencil(values: Array, center: float, around: float) -> Array:
    """Apply the stencil to a three-dimensional grid in float64."""
    result = np.multiply(values, center, dtype=np.float64)
    for axis in range(3):
        lower: list[slice] = [slice(None)] * 3
        upper = list(lower)
        lower[axis], upper[axis] = slice(None, -1), slice(1, None)
        for to, source in ((lower, upper), (upper, lower)):
            result[tuple(to)] += np.multiply(values[tuple(source)], around, dtype=np.float64)
    return result


def _apply_to_grid(values: Array, params: Params, center: float, around: float) -> Array:
    """Apply the stencil to a grid whose rows are those of a matrix, some planes at a time; return the same rows."""
    grid = values.reshape(_grid_shape(values, params))
    result = np.empty(grid.shape, np.float64)
    step = max(1, PART_ELEMENTS * len(grid) // max(1, grid.size))

    def apply_to_planes(start: int) -> None:
        stop = min(start + step, len(grid))
        first = max(start - 1, 0)
        terms = _apply_stencil(grid[first : stop + 1], center, around)
        result[start:stop] = terms[start - first : stop - first]

    map_parts(apply_to_planes, range(0, len(grid), step))
    return result.reshape(values.shape)


def _reference(inputs: Inputs, params: Params) -> Array:
    return _apply_to_grid(to_float32(inputs["values"]), params, *_stencil_factors(params))


def _tolerance(inputs: Inputs, params: Params) -> Array:
    """Bound the rounding error of each point: each of its seven terms is rounded at most seven times."""
    values = np.abs(to_float32(inputs["values"]))
    center, around = _stencil_factors(params)
    return _apply_to_grid(values, params, gamma(7) * abs(center), gamma(7) * abs(around))


def _cost(inputs: Inputs, params: Params) -> Cost:
    points = inputs["values"].size
    return Cost(bytes_read=4 * points, bytes_written=4 * points, flops=8 * points)


def _textbook(params: Params, n: int) -> Textbook:
    """Return work and span per point: five sums of neighbors, two products and their sum; one product is parallel."""
    points = (params["planes"] or n) * (params["rows"] or n) * n
    return Textbook(operations=8 * points, steps=7, peak=2 * points)


def _present(inputs: Inputs, params: Params, outputs: Outputs) -> Outputs:
    """Present the middle plane."""
    planes, rows, _ = _grid_shape(inputs["values"], params)
    first = planes // 2 * rows
    middle = slice(first, first + rows)
    return present({"Input": inputs["values"][middle], "Result": outputs["result"][middle]}, first)


def _other_side_parameter(name: str, label: str, text: str) -> Integer:
    return side_parameter(name, label, text, "points", 0, 0, maximum=_MAX_SIDE, minimum_label="as columns")


def _case(side: int) -> Case:
    def cupy(cupy: Any, seed: int) -> Iterator[Peer]:
        from cupyx.scipy import ndimage

        weights = np.zeros((3, 3, 3), np.float32)
        weights[1, 1, :] = weights[1, :, 1] = weights[:, 1, 1] = 0.1
        grid = cupy.random.default_rng(seed).random((side, side, side), dtype=cupy.float32)
        out = cupy.empty_like(grid)
        action = partial(ndimage.convolve, grid, cupy.asarray(weights), out, mode="constant")
        yield Peer(f"CuPy {cupy.__version__} ndimage.convolve", action)

    def torch(torch: Any, seed: int) -> Iterator[Peer]:
        weights = torch.zeros(1, 1, 3, 3, 3, device="cuda")
        weights[0, 0, 1, 1, :] = weights[0, 0, 1, :, 1] = weights[0, 0, :, 1, 1] = 0.1
        grid = torch.rand(1, 1, side, side, side, device="cuda")
        yield Peer("cuDNN (PyTorch conv3d)", lambda: torch.nn.functional.conv3d(grid, weights, padding=1))

    return Case(f"7-point stencil, {side}^3 float32", {"n": side}, libraries={"torch": torch, "cupy": cupy})


def _timing_model_case(side: int, tile: int = 8) -> Case:
    return Case(f"7-point stencil, {side}^3 float32, tile {tile}", {"n": side, "tile": str(tile)})


def _peers(inputs: Inputs, params: Params) -> Iterator[Peer]:
    from scipy import ndimage

    center, around = _stencil_factors(params)
    weights = around * ndimage.generate_binary_structure(3, 1).astype(np.float32)
    weights[1, 1, 1] = center
    grid = inputs["values"].reshape(_grid_shape(inputs["values"], params))
    yield Peer("SciPy ndimage.correlate", lambda: ndimage.correlate(grid, weights, mode="constant"))


_BENCHMARK = Benchmark(
    gpu=(_case(512),),
    compiled=(_case(128),),
    curve=SizeCurve(powers_of_two(5, 6, 7, 8, 9)),
    goals={"naive": "2 x SciPy"},
    peers=_peers,
    timing_model_cases=(
        *map(_timing_model_case, (64, 128, 256, 512)),
        _timing_model_case(250),
        _timing_model_case(128, 4),
    ),
)

PATTERN = Pattern(
    name="stencil",
    order=11,
    title="Stencil",
    summary="Sums of neighbors in a 3-D grid.",
    kernel_file=_FILE,
    presentation=MatrixPresentation(),
    parameters=(
        input_parameter(("ball", "random", "digits", "ones"), "ball"),
        side_parameter(
            "n",
            "Columns",
            "Points along x.",
            "points",
            128,
            maximum=_MAX_CUBE_SIDE,
            role=Role.SIZE,
            on_gpu=cube_edge_rule(2**17),
        ),
        _other_side_parameter("rows", "Rows", "Points along y (rows per plane); 0 for the same as columns."),
        _other_side_parameter("planes", "Planes", "Points along z; 0 for the same as columns."),
        Real(
            name="center",
            label="Center",
            help="Factor of the point itself.",
            default=-6,
            minimum=-1e6,
            maximum=1e6,
        ),
        Real(
            name="around",
            label="Around",
            help="Factor of the sum of its six neighbors.",
            default=1,
            minimum=-1e6,
            maximum=1e6,
        ),
        Choice(
            name="tile",
            label="Tile",
            help="Points along each edge of a cube; the blocks of the other variants scale with it.",
            options=("4", "8"),
            default="8",
        ),
    ),
    variants=(
        Variant(
            "naive",
            "Naive",
            run=_host_program("stencil_naive", _point_blocks),
            idea="One thread per point, lanes along a row; the point and its six neighbors come from global memory.",
            limit="Each point is loaded seven times: seven loads for eight operations.",
            kernels=("stencil_naive",),
        ),
        Variant(
            "tiled",
            "A cube in shared memory",
            run=_host_program("stencil_tiled", _cube_blocks),
            idea="Shared-memory tiling: a block loads a cube and its halo into shared memory.",
            limit="Blocks allow no larger cube: half of the loads are halo, and half of the threads compute nothing.",
            kernels=("stencil_tiled",),
        ),
        Variant(
            "coarse",
            "Planes along z",
            run=_host_program("stencil_coarse", _face_blocks),
            idea="Thread coarsening: a block covers a wide face and loops along z, with three planes in shared memory.",
            limit="Planes are copied within shared memory, though along z a thread needs only its own points.",
            kernels=("stencil_coarse",),
        ),
        Variant(
            "registers",
            "Neighbors along z in registers",
            run=_host_program("stencil_registers", _face_blocks),
            idea="A thread's neighbors along z are in its registers; only one plane is in shared memory.",
            limit="Two barriers per plane, and each load fetches one float.",
            kernels=("stencil_registers",),
        ),
        Variant(
            "vectors",
            "Four points per thread",
            run=_host_program("stencil_vectors", _quad_blocks),
            idea="No shared memory: a thread's four points are neighbors of each other; the rest are 16-byte loads.",
            limit="Memory bandwidth.",
            kernels=("stencil_vectors",),
        ),
    ),
    benchmark=_BENCHMARK,
    default_variant="registers",
    result="result",
    reference=_reference,
    tolerance=_tolerance,
    cost=_cost,
    work=lambda inputs, params: Work(inputs["values"].size, "point"),
    present=_present,
    accept=_accept,
    make_input=_make_input,
    distributed=DistributedProgram(
        local="Each device has some planes of the grid.",
        exchange="It receives the planes before its first one and after its last: a halo.",
        fix_up="The results of halo planes are dropped.",
        plan=independent_chunks_plan("result", halo=_rows_per_plane, granularity=_rows_per_plane),
        halo=_rows_per_plane,
        granularity=_rows_per_plane,
        streaming=Streaming(None, lambda params: "float32"),
    ),
    textbook=_textbook,
    step_params={"n": _STEP_SIDE, "rows": _STEP_SIDE, "planes": _STEP_SIDE, "tile": "4", "input": "digits"},
    step_input=lambda inputs: crop_corner(inputs, _STEP_SIDE**2, _STEP_SIDE),
    crop_input=_crop_input,
    presets=(
        Preset(
            "The edge of a ball",
            "Six neighbors minus six times the point (Laplace operator): 0 except where points differ.",
            {"n": 96},
        ),
        Preset(
            "A step of heat",
            "A tenth of each neighbor and four tenths of the point: heat spreads, and leaves the grid.",
            {"n": 24, "center": 0.4, "around": 0.1},
        ),
        Preset(
            "One plane",
            "With one plane there are no neighbors along z: three planes are loaded for one, two of them zeros.",
            {"n": 256, "planes": 1},
            "registers",
        ),
        Preset(
            "Odd sizes",
            "These sizes are multiples of no cube and no face, and rows are not whole vectors of four floats.",
            {"n": 67, "rows": 35, "planes": 21, "input": "random"},
        ),
    ),
)
