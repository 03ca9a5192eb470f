"""Softmax of the rows of a matrix."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from gpu.base.errors import InputError
from gpu.base.threads import map_parts
from gpu.base.warp import WARP
from gpu.declaration.arrays import block_parameter, require_generated_input
from gpu.declaration.benchmark import Benchmark, Case, Peer, SizeComparison, SizeCurve, powers_of_two
from gpu.declaration.distributed_program import DistributedProgram, Streaming, independent_chunks_plan
from gpu.declaration.gpu_sizes import elements_rule
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
from gpu.declaration.rounding import UNIT
from gpu.engines.base import Device, Engine, download_and_free

_FILE = "softmax.cu"
_MAX_COLUMNS = 2**20
_MAX_ELEMENTS = 2**28
_STEPPED_ROWS, _STEPPED_COLUMNS = 4, 16

_VALUE_RANGE = 3
"""Random elements are from -3 to 3: softmax of smaller ones is nearly uniform."""

# The fastest values on an H100 and an H200. For one block per row: quads (vectors of four floats) per thread; the most
# of them, where that would need too many threads; and the fewest, below which a block has at least `_MIN_THREADS`.
_PEAK_QUADS, _FEW_QUADS, _MAX_QUADS = 6, 4, 8
_MIN_THREADS, _PEAK_THREADS = 128, 512
# Short rows share a block: its threads, and the longest row.
_SHORT_BLOCK = 128
_MAX_SHORT_COLUMNS = 512
# Longer rows are processed by a cluster of up to 8 blocks, which every GPU with clusters supports. If these are not
# enough, the blocks have 1024 threads.
_MAX_BLOCKS = 8
_MAX_THREADS = 1024
# With at most this many quads per thread, a block has half as many threads. It keeps the maximum number of quads in
# registers if they nearly hold all of its stretch, else half as many.
_HALF_FULL, _NEARLY = 12, 1.03
# Shared memory in addition to a row's elements: a pair of numbers for every warp of a cluster.
_PARTS_BYTES = 8 * _MAX_BLOCKS * _MAX_THREADS // WARP


@dataclass(frozen=True)
class _Launch:
    """Launch configuration: threads per block, and rows per block or blocks per row.

    `arguments` follow those that all kernels have.
    """

    kernel: str
    threads: int
    rows: int
    defines: dict[str, int | str]
    blocks_a_row: int = 1
    shared_bytes: int = 0
    arguments: tuple[np.generic, ...] = ()


_Planner = Callable[[Params, tuple[int, int], Device], _Launch]
"""(parameters, rows and columns, the device) -> _Launch."""


def _block_per_row_planner(kernel: str, *, row_a_thread: bool = False) -> _Planner:
    def plan(params: Params, shape: tuple[int, int], device: Device) -> _Launch:
        block = int(params["block"])
        return _Launch(kernel, block, block if row_a_thread else 1, {"BLOCK_SIZE": block})

    return plan


def _plan_peak(params: Params, shape: tuple[int, int], device: Device) -> _Launch:
    """Return the launch of the peak variant for a number of rows and their length."""
    rows, columns = shape
    if columns <= _MAX_SHORT_COLUMNS:
        lanes = _lanes_per_row(columns)
        threads = _threads_for_short_rows(rows, columns)
        columns_per_lane = -(-columns // lanes) if columns % 4 else 4 * -(-columns // (4 * lanes))
        defines = {"BLOCK_SIZE": threads, "TEAM": lanes, "EACH": columns_per_lane}
        return _Launch("softmax_short", threads, threads // lanes, {**defines})
    if columns > 4 * _MAX_QUADS * _PEAK_THREADS and device.has_clusters:
        return _plan_cluster(columns, device)
    threads = _threads_per_row(columns)
    return _Launch("softmax_peak", threads, 1, {"BLOCK_SIZE": threads, "QUADS": _quads_per_thread(columns, threads)})


def _lanes_per_row(columns: int) -> int:
    """Return the lanes per short row: a quad per lane, or some elements more if rows are not whole quads."""
    least = _next_power_of_two(-(-columns // 4))
    return min(least // 2 if columns % 4 and 4 * least > columns + 3 else least, WARP)


def _threads_for_short_rows(rows: int, columns: int) -> int:
    """Return the threads per block for short rows: whole warps, and no more than the rows need."""
    return min(max(_next_power_of_two(rows * _lanes_per_row(columns)), WARP), _SHORT_BLOCK)


def _peak_threads(params: Params) -> int:
    """Return the threads per block; blocks for very long rows may have twice as many."""
    rows, columns = params["rows"], params["n"]
    return _threads_for_short_rows(rows, columns) if columns <= _MAX_SHORT_COLUMNS else _threads_per_row(columns)


def _threads_per_row(columns: int) -> int:
    least = min(_next_power_of_two(-(-columns // (4 * _FEW_QUADS))), _MIN_THREADS)
    return min(max(_next_power_of_two(-(-columns // (4 * _PEAK_QUADS))), least), _PEAK_THREADS)


def _plan_cluster(columns: int, device: Device) -> _Launch:
    """Return the launch of a cluster per row, which keeps the row in registers and shared memory."""
    threads = _PEAK_THREADS
    room = device.max_shared_bytes - _PARTS_BYTES
    # Fewer blocks wait less for each other, so shared memory holds as much of the row as registers, if it fits.
    pooled = min(_MAX_QUADS * threads, room // 32)
    needed = _next_power_of_two(-(-columns // (4 * (_MAX_QUADS * threads + pooled))))
    blocks = min(max(needed, 2), _MAX_BLOCKS)
    stretch = -(-columns // (4 * blocks))
    over = 16 * (stretch - _MAX_QUADS * threads)
    if over > room // 2:  # two such blocks do not fit on a multiprocessor
        threads = _MAX_THREADS
    quads = _quads_per_thread(columns, threads * blocks)
    if stretch <= _HALF_FULL * threads // 2:  # half as many threads suffice, with more of the row in shared memory
        threads //= 2
        quads = _MAX_QUADS if stretch <= _NEARLY * _MAX_QUADS * threads else _FEW_QUADS
    pooled = min(max(stretch - quads * threads, 0), room // 16)
    defines = {"BLOCK_SIZE": threads, "QUADS": quads, "CLUSTER": blocks}
    return _Launch("softmax_cluster", threads, 1, {**defines}, blocks, 16 * pooled, (np.int32(pooled),))


def _quads_per_thread(columns: int, threads: int) -> int:
    """Return the quads of a row per thread; rows that are not whole quads begin at any alignment."""
    return min(_MAX_QUADS, -(-(columns + (3 if columns % 4 else 0)) // (4 * threads)))


def _next_power_of_two(minimum: int) -> int:
    """Return the smallest power of two that is at least `minimum`."""
    return 1 << (minimum - 1).bit_length()


def _host_program(plan: _Planner) -> HostProgram:
    def run(engine: Engine, inputs: Inputs, params: Params) -> Generator[Progress, None, Outputs]:
        rows, columns = inputs["values"].shape
        launch = plan(params, (rows, columns), engine.device)
        kernel = engine.build(_FILE, launch.defines).kernel(launch.kernel)
        values = engine.upload(to_float32(inputs["values"]))
        out = engine.allocate((rows, columns), np.float32)
        yield Progress(0.1, "uploaded")
        grid, block = (-(-rows // launch.rows) * launch.blocks_a_row, 1, 1), (launch.threads, 1, 1)
        sizes = (np.int32(rows), np.int32(columns), *launch.arguments)
        engine.launch(kernel, grid, block, values, out, *sizes, shared_bytes=launch.shared_bytes)
        engine.free(values)
        yield Progress(0.9, "computed")
        return {"result": download_and_free(engine, out)}

    return run


def _make_input(params: Params, seed: int) -> Inputs:
    require_generated_input(params)
    kind, rng = params["input"], np.random.default_rng(seed)
    values = make_matrix(kind, params["rows"], params["n"], rng)
    if kind in ("random", "large", "infinities"):
        values *= np.float32(_VALUE_RANGE)
    if kind == "large":
        values += np.float32(1000)
    if kind == "infinities":
        # Alternating rows: all -inf, the first half -inf, one inf, no infinities.
        values[0::4] = -np.inf
        values[1::4, : values.shape[1] // 2] = -np.inf
        values[2::4, values.shape[1] // 2] = np.inf
    return {"values": values}


def _accept(inputs: Inputs, params: Params) -> None:
    values = inputs["values"]
    if values.size > _MAX_ELEMENTS:
        raise InputError(f"The matrix has {values.size} elements; up to {_MAX_ELEMENTS} are allowed.")
    accept_matrix(values, "the matrix", finite=False, largest=_MAX_COLUMNS)


def _reference(inputs: Inputs, params: Params) -> Array:
    from scipy import special

    values = to_float32(inputs["values"])
    expected = np.empty(values.shape, np.float64)

    def compute_rows(block: tuple[int, Array]) -> None:
        first, rows = block
        with np.errstate(invalid="ignore"):
            expected[first : first + len(rows)] = special.softmax(rows.astype(np.float64), axis=1)

    map_parts(compute_rows, iterate_row_blocks(values))
    return expected


def _tolerance(inputs: Inputs, params: Params) -> float:
    """Bound the rounding error of the largest quotient, for any order of summation of its row's n terms.

    With u = 2^-24: the relative error of a sum of n positive terms is at most n u, plus at most 3 u for each scaling of
    the partial sum to a new maximum, of which there are at most n. A term exp(d) with d rounded has an error of |d| u,
    which averaged over the terms is at most log(n) u (the entropy of the row), and the quotient's own error is
    |d| exp(d) u < u. The exponentials and the division contribute a few u.
    """
    values = to_float32(inputs["values"])
    n = values.shape[1]
    largest = 0.0
    with np.errstate(invalid="ignore", over="ignore"):
        for _, rows in iterate_row_blocks(values):
            sums = np.exp(rows - rows.max(axis=1, keepdims=True)).sum(axis=1, dtype=np.float64)
            largest = max(largest, float((1 / sums).max(where=np.isfinite(sums), initial=0.0)))
    roundings: float = 4 * n + 2 * math.log(n) + 32
    return roundings * UNIT * largest


def _comparable(params: Params, result: Array) -> Array:
    """Replace NaN by -1, so that rows that are NaN by definition compare as equal, and unequal to any softmax."""
    has_nan = np.isnan(result.min(initial=0.0))
    return np.where(np.isnan(result), -1, result) if has_nan else result


def _cost(inputs: Inputs, params: Params) -> Cost:
    size = inputs["values"].size
    # Per element: a comparison for the maximum, a subtraction, an exponential, an addition and a division.
    return Cost(bytes_read=4 * size, bytes_written=4 * size, flops=5 * size)


def _work(inputs: Inputs, params: Params) -> Work:
    return Work(inputs["values"].size, "element")


def _present(inputs: Inputs, params: Params, outputs: Outputs) -> Outputs:
    return present({"Input": inputs["values"], "Softmax": outputs["result"]})


def _make_variant(
    name: str,
    title: str,
    kernels: str | tuple[str, ...],
    run: HostProgram,
    idea: str,
    limit: str,
    threads: Callable[[Params], int] | None = None,
) -> Variant:
    names = (kernels,) if isinstance(kernels, str) else kernels
    return Variant(name, title, run=run, idea=idea, limit=limit, kernels=names, comparable=_comparable, threads=threads)


def _case(rows: int, columns: int, variants: tuple[str, ...] = ()) -> Case:
    def torch(torch: Any, seed: int) -> Iterator[Peer]:
        matrix = torch.rand(rows, columns, device="cuda")
        yield Peer(f"PyTorch {torch.__version__}", partial(torch.softmax, matrix, 1))

    def cupy(cupy: Any, seed: int) -> Iterator[Peer]:
        from cupyx.scipy import special

        matrix = cupy.random.default_rng(seed).random((rows, columns), dtype=cupy.float32)
        yield Peer(f"CuPy {cupy.__version__}", partial(special.softmax, matrix, 1))

    work = f"softmax of rows, {rows} x {columns} float32"
    return Case(work, {"n": columns, "rows": rows}, variants=variants, libraries={"torch": torch, "cupy": cupy})


def _timing_model_case(rows: int, columns: int, block: int = 256) -> Case:
    params = {"n": columns, "rows": rows, "block": str(block)}
    return Case(f"softmax of rows, {rows} x {columns} float32, blocks of {block}", params)


def _textbook(params: Params, n: int) -> Textbook:
    """Return work and span: per row two trees, for maximum and sum; per element a difference, an exp and a quotient."""
    rows = params["rows"]
    return Textbook(operations=rows * max(5 * n - 2, 0), steps=2 * max(n - 1, 0).bit_length() + 3, peak=rows * n)


def _peers(inputs: Inputs, params: Params) -> Iterator[Peer]:
    from scipy import special

    yield Peer("SciPy special.softmax", lambda: special.softmax(inputs["values"], axis=1))


_BENCHMARK = Benchmark(
    gpu=(_case(4096, 4096), _case(2**18, 256)),
    compiled=(_case(4096, 4096),),
    curve=SizeCurve(powers_of_two(8, 9, 10, 11, 12, 13), {"rows": 4096}),
    goals={"shuffle": "a third of SciPy", "peak": "SciPy's speed"},
    peers=_peers,
    timing_model_cases=(
        *(
            _timing_model_case(rows, columns)
            for rows, columns in ((1024, 1024), (4096, 4096), (2**17, 256), (256, 2**15))
        ),
        *(_timing_model_case(4096, 2048, block) for block in (64, 1024)),
    ),
    size_comparisons=(
        SizeComparison(
            "softmax of float32 rows",
            "columns",
            {
                columns: _case(min(2**26 // columns, _MAX_COLUMNS), columns, ("shuffle", "peak"))
                for columns in powers_of_two(*range(5, 21))
            },
        ),
        SizeComparison(
            "softmax of float32, odd rows",
            "columns",
            {
                columns: _case(min(2**26 // columns, _MAX_COLUMNS), columns, ("shuffle", "peak"))
                for columns in (33, 127, 1001, 4097, 16_385, 50_257, 300_007)
            },
        ),
    ),
)


PATTERN = Pattern(
    name="softmax",
    order=9,
    title="Softmax",
    summary="Normalize rows to a sum of one.",
    kernel_file=_FILE,
    presentation=MatrixPresentation(),
    parameters=(
        input_parameter((*KINDS, "large", "infinities")),
        side_parameter("n", "Columns", "Elements per row.", "columns", 1024, maximum=_MAX_COLUMNS, role=Role.SIZE),
        side_parameter(
            "rows", "Rows", "Number of rows.", "rows", 1024, maximum=_MAX_COLUMNS, on_gpu=elements_rule(2**7)
        ),
        block_parameter(),
    ),
    variants=(
        _make_variant(
            "naive",
            "Naive",
            "softmax_naive",
            _host_program(_block_per_row_planner("softmax_naive", row_a_thread=True)),
            "One thread per row, in three passes: for the maximum, for the sum, and to write.",
            "Uncoalesced: lanes read elements one row apart. Few rows keep few threads busy.",
        ),
        _make_variant(
            "shared",
            "Shared memory",
            "softmax_shared",
            _host_program(_block_per_row_planner("softmax_shared")),
            "One block per row: two reduction trees in shared memory combine the threads' values.",
            "The row is read three times.",
        ),
        _make_variant(
            "online",
            "Online",
            "softmax_online",
            _host_program(_block_per_row_planner("softmax_online")),
            "Maximum and sum in one pass: a new maximum rescales the partial sum.",
            "A barrier for each step of the reduction tree.",
        ),
        _make_variant(
            "shuffle",
            "Warp shuffle",
            "softmax_shuffle",
            _host_program(_block_per_row_planner("softmax_shuffle")),
            "Warp shuffles combine the lanes' maxima and sums; shared memory has one pair per warp.",
            "The row is read twice, one float at a time.",
        ),
        _make_variant(
            "peak",
            "Peak: the row in registers",
            ("softmax_short", "softmax_peak", "softmax_cluster"),
            _host_program(_plan_peak),
            "Each element is read once, four at a time, and stays in a register until it is written.",
            "Memory bandwidth.",
            _peak_threads,
        ),
    ),
    benchmark=_BENCHMARK,
    default_variant="shuffle",
    result="result",
    reference=_reference,
    tolerance=_tolerance,
    cost=_cost,
    work=_work,
    present=_present,
    accept=_accept,
    # A thread with several elements of a row meets -inf before its first finite value.
    edge_params=lambda params: (
        ("infinities in rows longer than a block", {"input": "infinities", "n": int(params["block"]) + 3}),
    ),
    make_input=_make_input,
    distributed=DistributedProgram(
        local="Each device computes the softmax of some rows.",
        exchange="",
        fix_up="",
        plan=independent_chunks_plan("result"),
        streaming=Streaming(None, lambda params: "float32"),
    ),
    textbook=_textbook,
    step_params={"n": _STEPPED_COLUMNS, "rows": _STEPPED_ROWS, "block": "8", "input": "digits"},
    step_input=lambda inputs: crop_corner(inputs, _STEPPED_ROWS, _STEPPED_COLUMNS),
    presets=(
        Preset(
            "Large numbers",
            "exp(1000) overflows float32: subtracting each row's maximum first prevents that.",
            {"input": "large"},
        ),
        Preset(
            "Infinities",
            "Alternating rows of all -inf, half -inf, one inf, and no infinities: an exponent of inf - inf makes the "
            "row NaN.",
            {"input": "infinities", "n": 64, "rows": 32},
        ),
        Preset(
            "A few long rows",
            "One thread per row leaves the device idle; one block per row does not.",
            {"n": 2**17, "rows": 16},
        ),
    ),
)
