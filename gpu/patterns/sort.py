"""Sort: keys in order, with the places where they were."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial

import numpy as np

from gpu.engines.base import Buffer, Engine, Module
from gpu.pattern import (
    Array,
    Choice,
    Cost,
    HostProgram,
    Inputs,
    Outputs,
    Params,
    Pattern,
    Progress,
    Variant,
    Work,
)
from gpu.patterns import scan
from gpu.patterns.array_inputs import (
    accept_values,
    block_parameter,
    dtype_parameter,
    first_values,
    input_parameter,
    size_parameter,
    typed,
)
from gpu.patterns.sort_keys import DTYPES, KINDS, make_input, present, rank

ORDER = 6

_FILE = "sort.cu"
_C_TYPES = {"int32": "int", "uint32": "unsigned", "float32": "float"}

# As in the kernels: a warp's lanes, a radix pass and its tiles, the keys that a thread merges.
_WARP = 32
_KEY_BITS = 32
_DIGIT_BITS = 4
_ROUNDS = 8
_OUTPUTS = 8


@dataclass(frozen=True)
class _Data:
    """Keys on the device, and the places where they were; one element where no places are asked for."""

    keys: Buffer
    places: Buffer


_Sorting = Generator[Progress, None, _Data]
_Sort = Callable[[Engine, Module, _Data, int], _Sorting]


def _program(sort: _Sort, *, whole_warps: bool = False) -> HostProgram:
    """Return the program of a rung, of which `sort` has the launches for one key or more."""

    def run(engine: Engine, inputs: Inputs, params: Params) -> Generator[Progress, None, Outputs]:
        block = max(int(params["block"]), 32 if whole_warps else 1)
        pairs = params["result"] == "places"
        module = engine.build(
            _FILE,
            {
                "KEY": _C_TYPES[params["dtype"]],
                "DESCENDING": int(params["order"] == "descending"),
                "PAIRS": int(pairs),
                "BLOCK_SIZE": block,
            },
        )
        keys = typed(inputs, params)
        n = keys.size
        data = _Data(engine.upload(keys), engine.upload(np.arange(n if pairs else 1, dtype=np.int32)))
        yield Progress(0.1, "uploaded")
        if n:
            data = yield from sort(engine, module, data, block)
        yield Progress(0.9, "sorted")
        result = engine.download(data.keys)
        outputs = {"keys": result, "result": engine.download(data.places) if pairs else result}
        _free(engine, data)
        return outputs

    return run


def _odd_even(engine: Engine, module: Module, data: _Data, block: int) -> _Sorting:
    """Sort two neighbouring halves of sections at a time, in as many rounds as there are halves."""
    n = data.keys.shape[0]
    kernel = module.kernel("sort_odd_even")
    rounds = 1 if n <= 2 * block else -(-n // block)
    for number in range(rounds):
        shift = number % 2 * block
        grid = (-(-(n + shift) // (2 * block)), 1, 1)
        engine.launch(kernel, grid, (block, 1, 1), data.keys, data.places, np.int32(n), np.int32(shift))
        yield Progress(0.1 + 0.8 * number / rounds, f"round {number + 1} of {rounds}")
    return data


def _bitonic(engine: Engine, module: Module, data: _Data, block: int) -> _Sorting:
    """Sort sections; then the network's strides over all keys, the short ones of a section together."""
    n = data.keys.shape[0]
    section = 2 * block
    launch = partial(_launch, engine, module, block, data)
    launch("sort_bitonic", -(-n // section), np.int32(n))
    half = section
    while half < n:
        stride = half
        while stride > block:
            mask = 2 * half - 1 if stride == half else stride
            pairs = n // (2 * stride) * stride + min(n % (2 * stride), stride)
            launch("sort_bitonic_step", -(-pairs // block), np.int32(n), np.int32(stride), np.int32(mask))
            stride //= 2
        launch("sort_bitonic_merge", -(-n // section), np.int32(n))
        half *= 2
        yield Progress(0.1 + 0.8 * min(half / n, 1), f"sections of {half}")
    return data


def _merged(kernel_name: str, section: int | None = None) -> _Sort:
    """Return a sort by a kernel that sorts sections, of a block's size where none is given; their merges follow."""

    def sort(engine: Engine, module: Module, data: _Data, block: int) -> _Sorting:
        n = data.keys.shape[0]
        _launch(engine, module, block, data, kernel_name, -(-n // block), np.int32(n))
        merge = module.kernel("sort_merge_path")
        grid = (-(-n // (_OUTPUTS * block)), 1, 1)
        run = section or block
        while run < n:
            merged = _like(engine, data)
            engine.launch(merge, grid, (block, 1, 1), *_both(data, merged), np.int32(n), np.int32(run))
            _free(engine, data)
            data = merged
            run *= 2
            yield Progress(0.1 + 0.8 * min(run / n, 1), f"runs of {run}")
        return data

    return sort


def _radix(engine: Engine, module: Module, data: _Data, block: int) -> _Sorting:
    """Sort by a digit at a time, the lowest first: count, scan the counts, scatter."""
    n = data.keys.shape[0]
    tiles = -(-n // (_ROUNDS * block))
    scanning = scan.build(engine, "int32", "sum", block)
    count, scatter = module.kernel("sort_radix_count"), module.kernel("sort_radix_scatter")
    for shift in range(0, _KEY_BITS, _DIGIT_BITS):
        counts = engine.allocate((2**_DIGIT_BITS * tiles,), np.int32)
        engine.launch(count, (tiles, 1, 1), (block, 1, 1), data.keys, counts, np.int32(n), np.int32(shift))
        starts = scan.scan_sections(engine, scanning, "scan_sections", counts, block, 4, exclusive=True)
        scattered = _like(engine, data)
        engine.launch(
            scatter, (tiles, 1, 1), (block, 1, 1), *_both(data, scattered), starts, np.int32(n), np.int32(shift)
        )
        for buffer in (counts, starts):
            engine.free(buffer)
        _free(engine, data)
        data = scattered
        yield Progress(0.1 + 0.8 * (shift + _DIGIT_BITS) / _KEY_BITS, f"bits up to {shift + _DIGIT_BITS}")
    return data


def _like(engine: Engine, data: _Data) -> _Data:
    return _Data(
        engine.allocate(data.keys.shape, data.keys.dtype), engine.allocate(data.places.shape, data.places.dtype)
    )


def _both(data: _Data, to: _Data) -> tuple[Buffer, Buffer, Buffer, Buffer]:
    return data.keys, data.places, to.keys, to.places


def _free(engine: Engine, data: _Data) -> None:
    engine.free(data.keys)
    engine.free(data.places)


def _launch(
    engine: Engine, module: Module, block: int, data: _Data, kernel_name: str, blocks: int, *numbers: np.int32
) -> None:
    kernel = module.kernel(kernel_name)
    engine.launch(kernel, (blocks, 1, 1), (block, 1, 1), data.keys, data.places, *numbers)


def _reference(inputs: Inputs, params: Params) -> Array:
    keys = typed(inputs, params)
    places = np.argsort(rank(keys, descending=params["order"] == "descending"), kind="stable")
    return places if params["result"] == "places" else keys[places]


def _comparable(params: Params, result: Array) -> Array:
    """Return places as they are, and of keys their ranks, in which -0 is not 0 and every NaN the same."""
    return result if params["result"] == "places" else rank(result)


def _cost(inputs: Inputs, params: Params) -> Cost:
    """Count each key read once and written once, and each place."""
    size = inputs["values"].size * (8 if params["result"] == "places" else 4)
    return Cost(bytes_read=size, bytes_written=size, flops=0)


PATTERN = Pattern(
    name="sort",
    title="Sort",
    summary="Keys in order, from the least to the greatest or the other way, and the places where they were.",
    kernels=_FILE,
    view="array",
    parameters=(
        input_parameter(KINDS),
        size_parameter(default=2**16, kinds=KINDS),
        Choice(
            name="order",
            label="Order",
            help="Which key comes first: the least or the greatest. NaN comes last.",
            options=("ascending", "descending"),
            default="ascending",
        ),
        Choice(
            name="result",
            label="Result",
            help="Keys: the keys alone. Places: the values that the keys carry, the place where each was.",
            options=("keys", "places"),
            default="keys",
        ),
        dtype_parameter(DTYPES),
        block_parameter(),
    ),
    variants=(
        Variant(
            "odd-even",
            "Odd-even transposition",
            run=_program(_odd_even),
            idea="Neighbours are put in order, in even and odd phases; after n phases all keys are.",
            limit="A key moves one place a phase: n phases, n (n - 1) / 2 comparisons.",
            kernels=("sort_odd_even",),
            comparable=_comparable,
        ),
        Variant(
            "bitonic",
            "Bitonic network",
            run=_program(_bitonic),
            idea="Sorted halves are merged by comparisons whose places do not depend on the keys.",
            limit="About n log2(n) squared / 4 comparisons; strides beyond a section are a pass over memory each.",
            kernels=("sort_bitonic", "sort_bitonic_step", "sort_bitonic_merge"),
            comparable=_comparable,
        ),
        Variant(
            "warp-radix",
            "Warp radix",
            run=_program(_merged("sort_warp_radix", _WARP), whole_warps=True),
            idea="A pass splits 32 keys by one bit, the lowest first: a warp's vote counts them and ranks each.",
            limit="32 keys; all longer runs are merges.",
            kernels=("sort_warp_radix", "sort_merge_path"),
            comparable=_comparable,
        ),
        Variant(
            "block-radix",
            "Block radix",
            run=_program(_merged("sort_block_radix"), whole_warps=True),
            idea="The votes of all warps of a block split a whole section by one bit.",
            limit="32 passes with two barriers each, and still merges.",
            kernels=("sort_block_radix", "sort_merge_path"),
            comparable=_comparable,
        ),
        Variant(
            "radix",
            "Radix, four bits a pass",
            run=_program(_radix, whole_warps=True),
            idea="Tiles count their digits, a scan of the counts says where each begins, and keys go there in order.",
            limit="Eight passes of three kernels; neighbouring lanes write to up to 16 places.",
            kernels=("sort_radix_count", "sort_radix_scatter"),
            comparable=_comparable,
        ),
        Variant(
            "merge",
            "Merge sort, merge path",
            run=_program(_merged("sort_merge")),
            idea="Runs are merged two by two: a block searches for each key, all blocks share the result equally.",
            limit="A pass over memory for each doubling of the runs; threads read and write eight keys apart.",
            kernels=("sort_merge", "sort_merge_path"),
            comparable=_comparable,
        ),
    ),
    default_variant="radix",
    result="result",
    reference=_reference,
    tolerance=lambda inputs, params: 0.0,
    cost=_cost,
    work=lambda inputs, params: Work(inputs["values"].size, "key"),
    present=present,
    accept=lambda inputs, params: accept_values(inputs, params, finite=False),
    make_input=make_input,
    step_params={"n": 16, "block": "8"},
    step_input=first_values,
)
