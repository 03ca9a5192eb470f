"""Scan of an array: what all elements up to each one, or before it, come to."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import Any

import numpy as np

from gpu.declaration.alone import on_one_thread
from gpu.declaration.arrays import (
    accept_values,
    block_parameter,
    dtype_parameter,
    first_values,
    input_parameter,
    make_input,
    present,
    size_parameter,
    typed,
    values_parameter,
    whole_warps,
)
from gpu.declaration.benchmark import Benchmark, Beside, Case, CudaProgram, Peer, SizeCurve, of_floats, powers
from gpu.declaration.distributed import DistributedProgram, Made, OnWorker, Parts, Piece, Streaming, Tasks
from gpu.declaration.gpu_sizes import elements
from gpu.declaration.pattern import (
    Array,
    Choice,
    Cost,
    HostProgram,
    Inputs,
    Outputs,
    Params,
    Pattern,
    Pieces,
    Preset,
    Progress,
    Textbook,
    Variant,
    Work,
)
from gpu.declaration.presentation import ArrayPresentation
from gpu.declaration.rounding import UNIT, gamma
from gpu.engines.base import Buffer, Engine, Module
from gpu.errors import InputError
from gpu.patterns.reduction.pattern import identity, peak_total
from gpu.warp import WARP

_FILE = "scan.cu"
_CHUNKS_FILE = "scan_chunks.cu"
_C_TYPES = {"int32": "int", "float32": "float"}
_UFUNCS = {"sum": np.add, "product": np.multiply, "min": np.minimum, "max": np.maximum}
_ONE_PASS = "look-back"

# The last rung's own: how many 16-byte loads a thread has under way, where that leaves a few tiles.
_VECTORS = 8
_FEW_TILES = 4

_POWERS = 126
"""float32 holds 2^-126 with all of its digits, and 2^126 too."""


def build(engine: Engine, dtype: str, operator: str, block: int, vectors: int = _VECTORS) -> Module:
    """Build the ladder for a type of elements, an operator of `_UFUNCS` and a number of threads."""
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
    """Scan any number of elements by a kernel in which a block scans a section: sections, their totals, add back.

    Parameters
    ----------
    engine : Engine
    module : Module
        From `build`, with the same number of threads.
    kernel_name : str
        A kernel that takes `in`, `out`, `totals`, `n` and `exclusive`.
    data : Buffer
        Shape (n,), n at least 1. It stays as it is.
    block, elements_a_thread : int
        Threads in a block, and how many elements of a section each of them has.
    exclusive : bool
        Whether an element counts only what is before it.

    Returns
    -------
    Buffer
        Shape (n,), the caller's to free.
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
"""(engine, data, params) -> the scan, the caller's to free: `data` has at least one element, and stays as it is."""


def _by_sections(kernel_name: str, elements_a_thread: int = 1, *, in_warps: bool = False) -> _Scan:
    def scanned(engine: Engine, data: Buffer, params: Params) -> Buffer:
        block = whole_warps(params) if in_warps else int(params["block"])
        module = build(engine, params["dtype"], params["operator"], block)
        exclusive = params["kind"] == "exclusive"
        return scan_sections(engine, module, kernel_name, data, block, elements_a_thread, exclusive=exclusive)

    return scanned


def _on_one_thread(engine: Engine, data: Buffer, params: Params) -> Buffer:
    kernel = build(engine, params["dtype"], params["operator"], int(params["block"])).kernel("scan_one_thread")
    n = data.shape[0]
    scanned = engine.allocate((n,), data.dtype)
    exclusive = np.int32(params["kind"] == "exclusive")
    engine.launch(kernel, (1, 1, 1), (1, 1, 1), data, scanned, np.int32(n), exclusive)
    return scanned


def _in_one_pass(engine: Engine, data: Buffer, params: Params, carry: Array | None = None) -> Buffer:
    block, n = whole_warps(params), data.shape[0]
    vectors, tiles = tiling(n, block, _VECTORS)
    kernel = build(engine, params["dtype"], params["operator"], block, vectors).kernel("scan_look_back")
    scanned = engine.allocate((n,), data.dtype)
    states = engine.upload(np.zeros((1 + tiles, 2), np.uint32))  # once: a launch leaves them so that the next can begin
    exclusive = np.int32(params["kind"] == "exclusive")
    before = identity(params["operator"], params["dtype"])[0] if carry is None else carry
    engine.launch(kernel, (tiles, 1, 1), (block, 1, 1), data, scanned, states, np.int32(n), exclusive, before)
    engine.free(states)
    return scanned


_SCANS: dict[str, _Scan] = {
    "one-thread": _on_one_thread,
    "naive": _by_sections("scan_naive"),
    "kogge-stone": _by_sections("scan_kogge_stone"),
    "double-buffer": _by_sections("scan_double_buffer"),
    "brent-kung": _by_sections("scan_brent_kung", 2),
    "brent-kung-padded": _by_sections("scan_brent_kung_padded", 2),
    "shuffle": _by_sections("scan_shuffle", in_warps=True),
    "three-kernels": _by_sections("scan_sections", 4, in_warps=True),
    _ONE_PASS: _in_one_pass,
}
"""What scans on the device, by variants' names."""


def _program(variant: str) -> HostProgram:
    """Return a variant's host program: upload, scan, download."""

    def run(engine: Engine, inputs: Inputs, params: Params) -> Generator[Progress, None, Outputs]:
        data = engine.upload(typed(inputs, params))
        yield Progress(0.1, "uploaded")
        if not data.shape[0]:
            return {"result": engine.download(data)}
        scanned = _SCANS[variant](engine, data, params)
        engine.free(data)
        yield Progress(0.9, "scanned")
        result = engine.download(scanned)
        engine.free(scanned)
        return {"result": result}

    return run


def reduce_chunk(worker: OnWorker, piece: Piece) -> dict[str, Any]:
    """Reduce a chunk, for the devices after this one; its elements stay on the device, to be scanned."""
    params = worker.params
    data = worker.engine.upload(typed(piece.inputs, params))
    return {"data": data, "total": peak_total(worker.engine, data, params["operator"], whole_warps(params))}


def total_of_chunk(worker: OnWorker, piece: Piece) -> Array:
    """Reduce a chunk, and keep nothing of it: its elements are read again."""
    made = reduce_chunk(worker, piece)
    worker.engine.free(made["data"])
    total: Array = made["total"]
    return total


def scan_chunk(
    worker: OnWorker, given: Piece | Buffer, totals: list[Array], before: int, goes_on: bool
) -> Array | dict[str, Array]:
    """Scan a chunk from what comes before it on: the first totals, so many of them.

    A chunk that `goes_on` in another one of its device also says where that one begins: with all that it comes to.
    """
    engine, params = worker.engine, worker.params
    data = engine.upload(typed(given.inputs, params)) if isinstance(given, Piece) else given
    if not data.shape[0]:
        return engine.download(data)
    scanned = _scanned_from(engine, data, _combined(totals[:before], params), worker.variant, params)
    end = {"end": _end_of(engine, data, scanned, params)} if goes_on else {}
    if isinstance(given, Piece):
        engine.free(data)
    result = engine.download(scanned)
    engine.free(scanned)
    return {"scanned": result, **end} if goes_on else result


def _combined(totals: list[Array], params: Params) -> Array:
    """Combine what chunks come to: one element, the identity where there is none."""
    every = np.concatenate([identity(params["operator"], params["dtype"]), *totals])
    combined: Array = _UFUNCS[params["operator"]].reduce(every, dtype=every.dtype)
    return combined


def _scanned_from(engine: Engine, data: Buffer, carry: Array, variant: str, params: Params) -> Buffer:
    """Scan by a rung, from a value on; rungs that take none have it combined with each element afterwards."""
    if variant == _ONE_PASS:
        return _in_one_pass(engine, data, params, carry)
    scanned, n, block = _SCANS[variant](engine, data, params), data.shape[0], whole_warps(params)
    out = engine.allocate((n,), data.dtype)
    blocks = min(-(-n // (4 * block)), 2**16)
    kernel = _build_chunks(engine, params).kernel("scan_carry")
    engine.launch(kernel, (blocks, 1, 1), (block, 1, 1), scanned, out, carry, np.int32(n))
    engine.free(scanned)
    return out


def _end_of(engine: Engine, data: Buffer, scanned: Buffer, params: Params) -> Array:
    """Return what a chunk comes to with all before it, of which it has at least one element."""
    end = engine.allocate((1,), data.dtype)
    exclusive, n = np.int32(params["kind"] == "exclusive"), np.int32(data.shape[0])
    kernel = _build_chunks(engine, params).kernel("scan_chunk_end")
    engine.launch(kernel, (1, 1, 1), (1, 1, 1), data, scanned, end, n, exclusive)
    found = engine.download(end)
    engine.free(end)
    return found


def _build_chunks(engine: Engine, params: Params) -> Module:
    defines: dict[str, int | str] = {
        "VALUE": _C_TYPES[params["dtype"]],
        "OPERATOR": params["operator"].upper(),
        "BLOCK_SIZE": whole_warps(params),
    }
    return engine.build(_CHUNKS_FILE, defines)


def _plan(tasks: Tasks, *, stays: bool = True) -> dict[str, Parts]:
    """Reduce, then scan: every chunk is read once for its total, but for the last device's, and once for its scan.

    On one device a chunk goes on where the one before ends, so that nothing is reduced first; the last device's totals
    nobody waits for, so that its chunks go on in the same way. Where elements do not stay on the devices they are read
    again.
    """
    totals: list[Made] = []
    parts: list[Made] = []
    *_, last = shares = tasks.shares
    for share in shares:
        held, before = {place: tasks.chunks[place] for place in share}, len(totals)
        if share is not last:
            for place in share:
                made = tasks.make(reduce_chunk if stays else total_of_chunk, held[place], place=place)
                totals.append(made["total"] if stays else made)
                held[place] = made["data"] if stays else held[place]
        # Its own totals too: others wait for these, and nobody for its scan.
        known = list(totals)
        for place in share:
            goes_on = place != share[-1]
            made = tasks.make(scan_chunk, held[place], known, before, goes_on, place=place)
            parts.append(made["scanned"] if goes_on else made)
            if goes_on:
                known, before = [made["end"]], 1
    return {"result": Parts(tuple(parts))}


def tiling(n: int, block: int, most_vectors: int) -> tuple[int, int]:
    """Return how many vectors of four elements a thread takes of n in a single pass, and how many tiles that makes."""
    vectors = most_vectors if n > _FEW_TILES * 4 * most_vectors * block else 1
    return vectors, -(-n // (4 * vectors * block))


def _reference(inputs: Inputs, params: Params) -> Array:
    """Scan in float64; whole numbers, which wrap around, and extremes as they are."""
    values, operator = typed(inputs, params), params["operator"]
    exact = np.float64 if params["dtype"] == "float32" and operator in ("sum", "product") else values.dtype
    scanned: Array = _UFUNCS[operator].accumulate(values, dtype=exact)
    if params["kind"] == "exclusive" and values.size:
        scanned[1:] = scanned[:-1]
        scanned[0] = identity(operator, params["dtype"])[0]
    return scanned


def _tolerance(inputs: Inputs, params: Params) -> float | Array:
    """Bound the rounding of each float32 sum and product; all else is exact.

    An element takes part in no more additions than the larger of two: a thread that adds its section alone, and then
    those of the sections' totals; or look-back, where a tile's total goes through at most two additions for each tile
    after it. Each sum is off by `gamma` of so many times the magnitudes up to its place: the first ones, which are
    small, are not let off by what the last one, of everything, may be off by.

    A product of k factors other than 1 and -1 has at most k roundings, in any order: together they are no further from
    1 than e^(k u). That no part of it leaves the range of float32 is what `_accept` has seen.
    """
    values = typed(inputs, params)
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
    alone, sections = 0, values.size
    while sections > 1:
        alone += min(block, sections)
        sections = -(-sections // block)
    looked_back = 2 * tiling(values.size, whole_warps(params), _VECTORS)[1] + 4 * _VECTORS + WARP
    depth = min(values.size - 1, max(alone, looked_back))
    bound = np.abs(values).cumsum(dtype=np.float64)
    if params["kind"] == "exclusive":
        bound[1:] = bound[:-1]
        bound[0] = 0
    bound *= gamma(depth)
    return bound


def _accept(inputs: Inputs, params: Params) -> None:
    """Raise InputError for values of another type, and for factors some of which leave float32's range together.

    A scan multiplies neighbors, in whichever order: where no product of neighbors leaves it, no order does; where one
    does, orders differ by more than rounding.
    """
    accept_values(inputs, params)
    if params["dtype"] != "float32" or params["operator"] != "product" or not inputs["values"].size:
        return
    values = typed(inputs, params)
    # A product of neighbors is the quotient of what all up to its ends come to; with a zero among them it is exact.
    zeros = np.flatnonzero(values == 0)
    upto = np.zeros(values.size + 1)
    np.log2(np.abs(values), out=upto[1:], where=values != 0, dtype=np.float64)
    upto.cumsum(out=upto)
    runs = np.concatenate([[0], zeros + 1])
    if (np.maximum.reduceat(upto, runs) - np.minimum.reduceat(upto, runs)).max() > _POWERS:
        raise InputError(
            "Some of these factors come to more, or to less, than float32 holds.",
            advice="Take fewer of them, factors closer to 1, or int32, which wraps around.",
        )


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


def _naive(n: int) -> Textbook:
    return Textbook(operations=n * (n - 1) // 2, steps=max(n - 1, 0), peak=max(n - 1, 0))


def _kogge_stone(n: int) -> Textbook:
    """At each distance all elements but the first ones: n log2(n) - (n - 1) where n is a power of two."""
    each = [n - distance for distance in _strides(n)]
    return Textbook(operations=sum(each), steps=len(each), peak=max(each, default=0))


def brent_kung(n: int) -> Textbook:
    """Say what the textbook does of the work-efficient scan of n elements, up and down a tree.

    Where n is a power of two that is 2n - 2 - log2(n) operations in 2 log2(n) - 1 steps.
    """
    up = [n // (2 * distance) for distance in _strides(n)]
    down = [(n - distance) // (2 * distance) for distance in _strides(n)]
    return Textbook(operations=sum(up) + sum(down), steps=sum(map(bool, up + down)), peak=max(up + down, default=0))


def _textbook(of_section: Callable[[int], Textbook], elements_a_thread: int) -> Callable[[Params, int], Textbook]:
    """Return what a scan by sections comes to: the sections at once, their totals, one addition back for each."""

    def claim(params: Params, n: int) -> Textbook:
        section = int(params["block"]) * elements_a_thread
        if n <= section:
            return of_section(n)
        whole, rest = of_section(section), of_section(n % section)
        totals = claim(params, -(-n // section))
        block, sections = int(params["block"]), n // section
        return Textbook(
            operations=sections * whole.operations + rest.operations + totals.operations + n - section,
            steps=whole.steps + totals.steps + -(-min(n - section, section) // block),
            peak=max(
                sections * whole.peak + rest.peak,
                totals.peak,
                (sections - 1) * block + min(n % section, block),
            ),
        )

    return claim


def _case(power: int, kind: str = "sum", **more: Any) -> Case:
    params = {"n": 2**power, "dtype": "float32", "operator": "sum"}
    return Case(f"scan ({kind}), 2^{power} float32", params, **more)


def _on_gpu(power: int, variants: tuple[str, ...] = ()) -> Case:
    cub = CudaProgram("CUB", "cub.cu", ("scan", 2**power), versioned=True)
    calls = of_floats(2**power, lambda library, values: library.cumsum(values, 0))
    return _case(power, "inclusive sum", variants=variants, libraries=calls, programs=(cub,))


def _timed(power: int, block: int = 256) -> Case:
    params = {"n": 2**power, "dtype": "float32", "operator": "sum", "block": str(block)}
    return Case(f"scan (sum), 2^{power} float32, blocks of {block}", params)


def _peers(inputs: Inputs, params: Params) -> Iterator[Peer]:
    values = inputs["values"].astype(np.float32)
    scanned = np.empty_like(values)
    yield Peer("NumPy cumsum", lambda: np.cumsum(values, out=scanned))


_FOR_PROCESSORS = ("shuffle", "three-kernels", "look-back")
_BENCHMARK = Benchmark(
    gpu=(_on_gpu(24), _on_gpu(28)),
    compiled=(_case(24, variants=_FOR_PROCESSORS),),
    lockstep=(_case(20, variants=_FOR_PROCESSORS),),
    curve=SizeCurve(powers(16, 18, 20, 22, 24, 26)),
    wanted={"three-kernels": "0.5 x np.cumsum"},
    peers=_peers,
    timed=(*map(_timed, (16, 20, 24, 27)), *(_timed(22, block) for block in (64, 512, 1024))),
    beside=(
        Beside(
            "scan (inclusive sum) of float32",
            "elements",
            {2**power: _on_gpu(power, ("three-kernels", "look-back")) for power in range(10, 29, 2)},
        ),
    ),
)


PATTERN = Pattern(
    name="scan",
    order=4,
    title="Scan",
    summary="Running totals of an array.",
    kernels=_FILE,
    presentation=ArrayPresentation(words=lambda params: (params["kind"], params["operator"])),
    parameters=(
        input_parameter(),
        size_parameter(default=2**18, on_gpu=elements(2**19)),
        values_parameter(),
        Choice(
            name="kind",
            label="Kind",
            help="Inclusive: each element counts itself. Exclusive: only those before it; a scan of sizes then says "
            "where each thing of a size begins.",
            options=("inclusive", "exclusive"),
            default="inclusive",
        ),
        Choice(
            name="operator",
            label="Operator",
            help="What two elements are combined by.",
            options=tuple(_UFUNCS),
            default="sum",
        ),
        dtype_parameter(),
        block_parameter(),
    ),
    variants=(
        on_one_thread(
            _program("one-thread"),
            "scan_one_thread",
            idea="Without threads: each result is the one before it and one element more.",
            limit="n - 1 operations, which no scan is below, but each waits for the one before.",
            work=lambda inputs, params: _sequential(params, inputs["values"].size),
            textbook=_sequential,
        ),
        Variant(
            "naive",
            "Naive",
            run=_program("naive"),
            idea="Every thread combines all elements of its section up to its own.",
            limit="n (n - 1) / 2 operations in a section of n; the last thread does them in n - 1 steps.",
            kernels=("scan_naive", "scan_add_back"),
            textbook=_textbook(_naive, 1),
        ),
        Variant(
            "kogge-stone",
            "Kogge-Stone",
            run=_program("kogge-stone"),
            idea="In shared memory the distance doubles, and every element takes part in every step.",
            limit="n log2 n - (n - 1) operations; two barriers a step, so that nobody overwrites what another reads.",
            kernels=("scan_kogge_stone", "scan_add_back"),
            textbook=_textbook(_kogge_stone, 1),
        ),
        Variant(
            "double-buffer",
            "Kogge-Stone, double buffer",
            run=_program("double-buffer"),
            idea="A step reads one copy and writes the other: one barrier is enough.",
            limit="Still n log2 n - (n - 1) operations.",
            kernels=("scan_double_buffer", "scan_add_back"),
            textbook=_textbook(_kogge_stone, 1),
        ),
        Variant(
            "brent-kung",
            "Brent-Kung",
            run=_program("brent-kung"),
            idea="Up a tree and down again: 2 n - 2 - log2 n operations, two elements a thread.",
            limit="2 log2 n - 1 steps; strides of powers of two, so that threads queue at few banks.",
            kernels=("scan_brent_kung", "scan_add_back"),
            textbook=_textbook(brent_kung, 2),
        ),
        Variant(
            "brent-kung-padded",
            "Brent-Kung, padded",
            run=_program("brent-kung-padded"),
            idea="A gap after every 32 elements spreads the strides over all banks.",
            limit="Near the top of the trees a few threads work, and all wait at the barriers.",
            kernels=("scan_brent_kung_padded", "scan_add_back"),
            textbook=_textbook(brent_kung, 2),
        ),
        Variant(
            "shuffle",
            "Warp shuffle",
            run=_program("shuffle"),
            idea="The lanes of a warp pass values on in registers; shared memory holds one value a warp.",
            limit="Loads of 4 bytes, and a whole further pass as soon as there are two sections.",
            kernels=("scan_shuffle", "scan_add_back"),
            threads=whole_warps,
        ),
        Variant(
            "three-kernels",
            "Any length, three kernels",
            run=_program("three-kernels"),
            idea="Sections of four elements a thread, the scan of their totals, and the addition back.",
            limit="Every element is read and written twice.",
            kernels=("scan_sections", "scan_add_back"),
            threads=whole_warps,
        ),
        Variant(
            _ONE_PASS,
            "Single pass, decoupled look-back",
            run=_program("look-back"),
            idea="A block says at once what its tile comes to, and asks the tiles before for what they come to.",
            limit="Memory's bandwidth: each element is read once and written once.",
            kernels=("scan_look_back",),
            threads=whole_warps,
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
    sequential=_sequential,
    helpers={_CHUNKS_FILE: ("scan_chunk_end", "scan_carry")},
    distributed=DistributedProgram(
        local="Each device but the last one reduces its chunk to a total, and keeps the elements.",
        exchange="Each device takes the totals of all before it, a few numbers, and combines them.",
        fix_up="Each device scans its chunk, from what comes before it on.",
        plan=_plan,
        streaming=Streaming(partial(_plan, stays=False), lambda params: str(params["dtype"])),
    ),
    step_params={"n": 16, "block": "16"},
    step_input=first_values,
    presets=(
        Preset(
            "Cut a sausage",
            "Ten people want 3 5 2 7 28 4 3 0 8 1 inches of a sausage of 100. The inclusive scan is where to cut, and "
            "all ten cuts can be made at once.",
            {"input": "sausage", "n": 10, "kind": "inclusive", "operator": "sum", "dtype": "int32"},
            pieces=Pieces(whole=100, unit="inches", rest="left"),
        ),
        Preset(
            "Allocate slots",
            "Each thread asks for a slot of another size. The exclusive scan of the sizes is where each slot begins, "
            "and its owner needs to ask nobody.",
            {"input": "random", "n": 12, "kind": "exclusive", "operator": "sum", "dtype": "int32"},
            pieces=Pieces(whole=0, unit="bytes", inclusive=False),
        ),
        Preset(
            "A recurrence: running balance",
            "x = x + a[i] in a loop needs each x before the next. It is a scan: log2 n steps instead of n - 1.",
            {"input": "alternating", "n": 16, "kind": "inclusive", "operator": "sum", "dtype": "int32"},
        ),
        Preset(
            "A recurrence: highest so far",
            "x = max(x, a[i]) in a loop is a scan as well: any associative operator will do.",
            {"input": "random", "n": 64, "kind": "inclusive", "operator": "max", "dtype": "int32"},
        ),
        Preset(
            "Rounding grows along a float sum",
            "Each float32 sum rounds. The error against float64 is drawn below: it depends on who adds what first.",
            {"input": "random", "n": 2**18, "kind": "inclusive", "operator": "sum", "dtype": "float32"},
        ),
        Preset(
            "3 1 7 0 4 1 6 3, inclusive",
            "The text's eight numbers come to 3 4 11 11 15 16 22 25: Kogge-Stone in three steps. Other values can be "
            "typed.",
            {"input": "typed", "values": "3 1 7 0 4 1 6 3", "kind": "inclusive", "dtype": "int32", "block": "8"},
            variant="kogge-stone",
        ),
        Preset(
            "3 1 7 0 4 1 6 3, exclusive",
            "Each element counts only those before it: 0 3 4 11 11 15 16 22.",
            {"input": "typed", "values": "3 1 7 0 4 1 6 3", "kind": "exclusive", "dtype": "int32", "block": "8"},
            variant="kogge-stone",
        ),
        Preset(
            "1 to 6",
            "1 2 3 4 5 6 come to 1 3 6 10 15 21.",
            {"input": "typed", "values": "1 2 3 4 5 6", "kind": "inclusive", "dtype": "int32", "block": "8"},
            variant="brent-kung",
        ),
        Preset(
            "Factorials",
            "Any associative operator will do: the products of 1 2 3 4 5 6 7 8 are 1 2 6 24 120 720 5040 40320.",
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
            "The largest block has 1024 threads, and with two elements each that is all that one block can scan.",
            {"input": "random", "n": 2048, "kind": "inclusive", "operator": "sum", "dtype": "int32", "block": "1024"},
            variant="brent-kung",
        ),
    ),
)
