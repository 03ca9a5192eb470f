"""Stream compaction of an array by a predicate, and its inverse."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

import numpy as np

from gpu.base.threads import PART_ELEMENTS, map_parts
from gpu.declaration.arrays import (
    accept_values,
    block_parameter,
    cast_values,
    dtype_parameter,
    input_parameter,
    make_input,
    outline_selected,
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
from gpu.declaration.presentation import ArrayPresentation
from gpu.engines.base import Buffer, Device, Engine, Module, download_and_free
from gpu.patterns import scan

_FILE = "compact.cu"
_C_TYPES = {"int32": "int", "float32": "float"}
_COMPARISONS = ("greater", "less")

# For the look-back variant: 16-byte loads in flight per thread, as far as a block's kept elements fit in shared memory,
# where their original positions need the same space again. More loads make larger tiles, fewer of which wait for each
# other: this pays off with many tiles per multiprocessor.
_VECTORS, _VECTORS_FOR_LARGE_INPUT = 6, 8
_MAX_VECTORS_PER_BLOCK = 2048
_MIN_TILES_OF_LARGE_INPUT = 48


@dataclass(frozen=True)
class _PackingBuffers:
    """Device buffers for packed elements, their original positions, and their count (one element)."""

    packed: Buffer
    positions: Buffer
    count: Buffer


_Pack = Callable[[Engine, Module, Buffer, _PackingBuffers, Params, int], None]


def _threshold(params: Params) -> np.generic:
    """Return the threshold in the elements' type, rounded so that whole numbers compare as with the original one."""
    if params["dtype"] == "float32":
        return np.float32(params["threshold"])
    rounding = math.floor if params["predicate"] == "greater" else math.ceil
    return np.int32(rounding(params["threshold"]))


def _compute_tiling(device: Device, n: int, block: int, *, split: bool) -> tuple[int, int]:
    limit = _MAX_VECTORS_PER_BLOCK // 2 if split else _MAX_VECTORS_PER_BLOCK
    many = n > _MIN_TILES_OF_LARGE_INPUT * device.multiprocessors * 4 * _VECTORS_FOR_LARGE_INPUT * block
    return scan.compute_tiling(n, block, min(_VECTORS_FOR_LARGE_INPUT if many else _VECTORS, limit // block))


def _pack_program(pack: _Pack) -> HostProgram:
    def run(engine: Engine, inputs: Inputs, params: Params) -> Generator[Progress, None, Outputs]:
        block = warp_aligned_block_size(params)
        split = params["result"] == "split"
        module = engine.build(
            _FILE,
            {
                "VALUE": _C_TYPES[params["dtype"]],
                "PREDICATE": params["predicate"].upper(),
                "BLOCK_SIZE": block,
                "VECTORS": _compute_tiling(engine.device, inputs["values"].size, block, split=split)[0],
                "PLACES": int(split),
            },
        )
        data = engine.upload(cast_values(inputs, params))
        n = data.shape[0]
        to = _PackingBuffers(
            engine.allocate((n,), data.dtype),
            engine.allocate((n if split else 1,), np.int32),
            engine.allocate((1,), np.int32),
        )
        yield Progress(0.1, "uploaded")
        if n:
            pack(engine, module, data, to, params, block)
        else:
            engine.fill(to.count, 0)
        engine.free(data)
        yield Progress(0.7, "packed")
        count = int(engine.download(to.count)[0])
        if split:
            out = engine.allocate((n,), data.dtype)
            engine.fill(out, 0)
            if count:
                back = module.kernel("compact_split")
                engine.launch(back, (-(-count // block), 1, 1), (block, 1, 1), to.packed, to.positions, to.count, out)
            result = download_and_free(engine, out)
        else:
            result = engine.download(to.packed, count)
        engine.free(to.packed, to.positions, to.count)
        return {"result": result, "count": np.array(count)}

    return run


def _pack_with_scan(
    engine: Engine, module: Module, data: Buffer, buffers: _PackingBuffers, params: Params, block: int
) -> None:
    n = data.shape[0]
    grid = (-(-n // block), 1, 1)
    flags = engine.allocate((n,), np.int32)
    engine.launch(module.kernel("compact_flag"), grid, (block, 1, 1), data, flags, np.int32(n), _threshold(params))
    scanning = scan.build_scan_module(engine, "int32", "sum", block)
    positions = scan.scan_sections(engine, scanning, "scan_sections", flags, block, 4, exclusive=True)
    engine.launch(
        module.kernel("compact_scatter"),
        grid,
        (block, 1, 1),
        data,
        flags,
        positions,
        buffers.packed,
        buffers.positions,
        buffers.count,
        np.int32(n),
    )
    engine.free(flags, positions)


def _pack_with_ballot(
    engine: Engine, module: Module, data: Buffer, buffers: _PackingBuffers, params: Params, block: int
) -> None:
    n = data.shape[0]
    engine.fill(buffers.count, 0)
    engine.launch(
        module.kernel("compact_ballot"),
        (-(-n // block), 1, 1),
        (block, 1, 1),
        data,
        buffers.packed,
        buffers.positions,
        buffers.count,
        np.int32(n),
        _threshold(params),
    )


def _pack_with_look_back(
    engine: Engine, module: Module, data: Buffer, buffers: _PackingBuffers, params: Params, block: int
) -> None:
    n = data.shape[0]
    _, tiles = _compute_tiling(engine.device, n, block, split=params["result"] == "split")
    states = engine.upload(
        np.zeros((1 + tiles, 2), np.uint32)
    )  # uploaded once, as each launch resets them for the next
    engine.launch(
        module.kernel("compact_look_back"),
        (tiles, 1, 1),
        (block, 1, 1),
        data,
        buffers.packed,
        buffers.positions,
        buffers.count,
        states,
        np.int32(n),
        _threshold(params),
    )
    engine.free(states)


def compact_chunk(worker: WorkerContext, piece: ChunkInput) -> dict[str, Array]:
    """Compact a chunk; the count of its kept elements goes to the other devices."""
    outputs = worker.run(piece.inputs)
    return {"kept": outputs["result"], "count": outputs["count"].reshape(1)}


def scan_counts(worker: WorkerContext, counts: list[Array]) -> dict[str, Array]:
    """Return the start of each chunk's kept elements in the result, and the total count.

    The sum of many counts may exceed int32, which is the type that the ladder scans.
    """
    kept_counts = np.concatenate(counts).astype(np.int64)
    return {"starts": kept_counts.cumsum() - kept_counts, "count": np.array(kept_counts.sum())}


def _plan(tasks: TaskCollector) -> dict[str, Parts]:
    chunks = [tasks.add_task(compact_chunk, chunk, chunk_index=index) for index, chunk in enumerate(tasks.chunks)]
    places = tasks.add_task(scan_counts, [each["count"] for each in chunks])
    return {
        "result": _result_parts(tasks, [each["kept"] for each in chunks], places["starts"]),
        "count": Parts((places["count"],)),
    }


def count_selected(worker: WorkerContext, piece: ChunkInput) -> Array:
    """Return the number of kept elements of a chunk."""
    return worker.run(piece.inputs)["count"].reshape(1)


def compact_positioned_chunk(worker: WorkerContext, piece: ChunkInput, starts: Array) -> Array:
    """Compact a chunk once the position of its elements is known, so that they need not wait in memory."""
    return worker.run(piece.inputs)["result"]


def _two_pass_plan(tasks: TaskCollector) -> dict[str, Parts]:
    counts = [tasks.add_task(count_selected, chunk, chunk_index=index) for index, chunk in enumerate(tasks.chunks)]
    places = tasks.add_task(scan_counts, counts)
    starts = places["starts"]
    kept = [
        tasks.add_task(compact_positioned_chunk, chunk, starts, chunk_index=index)
        for index, chunk in enumerate(tasks.chunks)
    ]
    return {"result": _result_parts(tasks, kept, starts), "count": Parts((places["count"],))}


def _result_parts(tasks: TaskCollector, chunk_results: Sequence[FutureResult], starts: FutureResult) -> Parts:
    """Return the chunks' results with their starts; a split result has the position and length of its chunk."""
    return Parts(tuple(chunk_results), starts if tasks.params["result"] == "pack" else None)


def _selection_mask(values: Array, params: Params) -> Array:
    """Return the mask of kept elements."""
    match params["predicate"]:
        case "greater":
            return np.asarray(values > values.dtype.type(_threshold(params)))
        case "less":
            return np.asarray(values < values.dtype.type(_threshold(params)))
        case "odd":
            return np.asarray(np.fmod(np.abs(values.astype(np.float64)), 2) == 1)
        case "even":
            return np.asarray(np.fmod(values.astype(np.float64), 2) == 0)
    return np.asarray(values != 0)


def _reference(inputs: Inputs, params: Params) -> Array:
    values = cast_values(inputs, params)
    if params["result"] != "pack":
        return np.where(_selection_mask(values, params), values, values.dtype.type(0))

    def select(start: int) -> Array:
        part = values[start : start + PART_ELEMENTS]
        return part[_selection_mask(part, params)]

    return np.concatenate(map_parts(select, range(0, values.size, PART_ELEMENTS)) or [values])


def _cost(inputs: Inputs, params: Params) -> Cost:
    """Return the minimum traffic: each element is read once, and each element of the result written once."""
    n = inputs["values"].size
    written = (
        n
        if params["result"] == "split"
        else int(np.count_nonzero(_selection_mask(cast_values(inputs, params), params)))
    )
    return Cost(bytes_read=4 * n, bytes_written=4 * written, flops=0)


def _present(inputs: Inputs, params: Params, outputs: Outputs) -> Outputs:
    values = cast_values(inputs, params)
    return {
        **present(inputs, params, outputs["result"]),
        "kept": outline_selected(values, _selection_mask(values, params)),
    }


def _sorted_if_packed(params: Params, result: Array) -> Array:
    """Sort a packed result to compare it as a multiset; a split result has defined positions."""
    return np.sort(result) if params["result"] == "pack" else result


def _textbook(params: Params, n: int) -> Textbook:
    """Return work and span of the work-efficient scan of the flags; flags and scatter only compute positions."""
    return scan.brent_kung_textbook(n)


def _gpu_case(power: int, variants: tuple[str, ...] = ()) -> Case:
    return Case(
        f"compaction (greater than 0.5, keeping half), 2^{power} float32",
        {"n": 2**power, "dtype": "float32", "predicate": "greater", "threshold": 0.5},
        variants=variants,
        libraries=float_array_peers(2**power, lambda library, values: values[values > 0.5]),
        programs=(CudaProgram("CUB", "cub.cu", ("select", 2**power), prints_version=True),),
    )


def _timing_model_case(power: int, block: int = 256, threshold: float = 0.5) -> Case:
    params = {"n": 2**power, "dtype": "float32", "threshold": threshold, "block": str(block)}
    return Case(f"compaction (greater than {threshold}), 2^{power} float32, blocks of {block}", params)


PATTERN = Pattern(
    name="compaction",
    order=5,
    title="Compaction",
    summary="Keep and pack some elements.",
    kernel_file=_FILE,
    presentation=ArrayPresentation(describe=lambda params: ("split",) if params["result"] == "split" else ()),
    parameters=(
        input_parameter(),
        size_parameter(default=2**18, on_gpu=elements_rule(2**17)),
        values_parameter(),
        Choice(
            name="predicate",
            label="Keep",
            help="Which elements to keep.",
            options=(*_COMPARISONS, "odd", "even", "nonzero"),
            default="greater",
        ),
        Real(
            name="threshold",
            label="Than",
            help="Threshold of the comparison.",
            default=0.5,
            minimum=-1e9,
            maximum=1e9,
            only_if=("predicate", _COMPARISONS),
        ),
        Choice(
            name="result",
            label="Result",
            help="Pack: kept elements in consecutive positions. Split: packed, then moved back, with zeros between.",
            options=("pack", "split"),
            default="pack",
        ),
        dtype_parameter(("float32", "int32")),
        block_parameter(),
    ),
    variants=(
        Variant(
            "three-kernels",
            "Flags, scan, scatter",
            run=_pack_program(_pack_with_scan),
            idea="An exclusive scan of 0/1 flags, of any length, gives the position of each kept element.",
            limit="Flags, the three kernels of the scan and the scatter take five passes over memory.",
            kernels=("compact_flag", "compact_scatter", "compact_split"),
            threads=warp_aligned_block_size,
        ),
        Variant(
            "ballot",
            "Ballot, one atomic per block",
            run=_pack_program(_pack_with_ballot),
            idea="A warp ballot gives each lane its rank; one atomic operation reserves space for a whole block.",
            limit="Not stable: blocks are written in the order of their atomic operations.",
            kernels=("compact_ballot", "compact_split"),
            threads=warp_aligned_block_size,
            comparable=_sorted_if_packed,
        ),
        Variant(
            "look-back",
            "Single pass, decoupled look-back",
            run=_pack_program(_pack_with_look_back),
            idea="Decoupled look-back adds up the counts of earlier tiles; each tile writes its kept elements at once.",
            limit="Memory bandwidth: each element is read once, and each kept one written once.",
            kernels=("compact_look_back", "compact_split"),
            threads=warp_aligned_block_size,
        ),
    ),
    benchmark=Benchmark(
        gpu=(_gpu_case(24), _gpu_case(28)),
        curve=SizeCurve(powers_of_two(16, 18, 20, 22, 24, 26)),
        timing_model_cases=(
            *map(_timing_model_case, (16, 20, 24, 27)),
            _timing_model_case(22, threshold=0.9),
            *(_timing_model_case(22, block) for block in (64, 1024)),
        ),
        size_comparisons=(
            SizeComparison(
                "compaction, keeping half of float32",
                "elements",
                {2**power: _gpu_case(power, ("ballot", "look-back")) for power in range(10, 29, 2)},
            ),
        ),
    ),
    default_variant="three-kernels",
    result="result",
    reference=_reference,
    tolerance=lambda inputs, params: 0.0,
    cost=_cost,
    work=lambda inputs, params: Work(inputs["values"].size, "element"),
    present=_present,
    accept=accept_values,
    make_input=make_input,
    textbook=_textbook,
    distributed=DistributedProgram(
        local="Each device compacts its chunk.",
        exchange="An exclusive scan of the chunks' counts gives the start of each chunk's elements.",
        fix_up="Each chunk's elements are moved to their start; a split result is already in place.",
        plan=_plan,
        streaming=Streaming(
            _two_pass_plan,
            lambda params: str(params["dtype"]),
            is_input_sized=lambda params: params["result"] == "split",
        ),
    ),
    step_params={"n": 16, "block": "16", "dtype": "int32", "threshold": 50.0},
    step_input=truncate_values,
    presets=(
        Preset(
            "Keep odd numbers",
            "The scan of 0/1 flags gives each kept element its position: the number of kept elements before it.",
            {"input": "random", "n": 32, "predicate": "odd", "dtype": "int32"},
        ),
        Preset(
            "Keep, then put back",
            "Split inverts the packing: each element returns to its position, with zeros where nothing was kept.",
            {"input": "random", "n": 32, "predicate": "odd", "dtype": "int32", "result": "split"},
        ),
        Preset(
            "Half of many",
            "Of 262\u202f144 random numbers, those above 0.5. The ballot variant keeps them in a different order.",
            {"input": "random", "n": 2**18, "predicate": "greater", "threshold": 0.5, "dtype": "float32"},
        ),
        Preset(
            "Pack what is positive",
            "Random numbers of both signs: those above 0 are packed into consecutive positions, in their order.",
            {"input": "signed", "n": 16, "predicate": "greater", "threshold": 0.0, "dtype": "float32"},
        ),
        Preset(
            "Split what is positive",
            "Packed elements return to their positions, and zeros replace the negative numbers.",
            {
                "input": "signed",
                "n": 16,
                "predicate": "greater",
                "threshold": 0.0,
                "dtype": "float32",
                "result": "split",
            },
        ),
    ),
)
