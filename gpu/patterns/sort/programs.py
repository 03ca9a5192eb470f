"""The host programs of the sort variants."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from gpu.base.warp import WARP
from gpu.declaration.arrays import READABLE_ELEMENTS, cast_values, warp_aligned_block_size
from gpu.declaration.pattern import Array, HostProgram, Inputs, Outputs, Params, Progress
from gpu.engines.base import Engine, Module
from gpu.patterns import scan
from gpu.patterns.sort.job import SortData, SortFunction, Sorting, SortJob, move_arguments
from gpu.patterns.sort.keys import rank, unrank
from gpu.patterns.sort.peak import sort_by_peak

ONESWEEP_FILE = "sort_onesweep.cu"
QUICK_FILE = "sort_quick.cu"

_C_TYPES = {
    "int32": "int",
    "uint32": "unsigned",
    "float32": "float",
    "int64": "int64",
    "uint64": "uint64",
    "float64": "double",
}

# As in the kernels: rounds per radix tile, and keys per thread of a merge.
_ROUNDS = 8
_OUTPUTS = 8

# For the onesweep variant: keys per thread (fewer if positions need registers), the fewest tiles per multiprocessor for
# which to use them, and blocks per multiprocessor that count digits.
_KEYS_A_THREAD = (24, 16, 8, 4, 2, 1)
_PAIRS_A_THREAD = (22, 16, 8, 4, 2, 1)
_MIN_TILES_PER_MULTIPROCESSOR = 1.5
_COUNTING_BLOCKS_PER_MULTIPROCESSOR = 8


def sort_on_one_thread(job: SortJob, data: SortData) -> Sorting:
    """Run selection sort on one thread."""
    kernel = job.build().kernel("sort_one_thread")
    job.engine.launch(kernel, (1, 1, 1), (1, 1, 1), data.keys, data.positions, np.int32(job.n))
    yield job.progress(data, 1.0, "sorted")
    return data


def odd_even(job: SortJob, data: SortData) -> Sorting:
    """Sort pairs of neighboring half sections, in as many rounds as there are half sections."""
    module = job.build()
    rounds = 1 if job.n <= 2 * job.block else -(-job.n // job.block)
    for number in range(rounds):
        shift = number % 2 * job.block
        blocks = -(-(job.n + shift) // (2 * job.block))
        job.launch(module, "sort_odd_even", blocks, data.keys, data.positions, np.int32(job.n), np.int32(shift))
        yield job.progress(data, (number + 1) / rounds, f"round {number + 1} of {rounds}")
    return data


def bitonic(job: SortJob, data: SortData) -> Sorting:
    """Sort sections; then apply the network's strides to all keys, the short ones within a section in one launch."""
    n, section = job.n, 2 * job.block
    module = job.build()
    sections, both = -(-n // section), (data.keys, data.positions, np.int32(n))
    job.launch(module, "sort_bitonic", sections, *both)
    half = section
    rounds = (sections - 1).bit_length()
    yield job.progress(data, 1 / (rounds + 1), f"sections of {section}")
    while half < n:
        stride = half
        while stride > job.block:
            mask = 2 * half - 1 if stride == half else stride
            pairs = n // (2 * stride) * stride + min(n % (2 * stride), stride)
            blocks = -(-pairs // job.block)
            job.launch(module, "sort_bitonic_step", blocks, *both, np.int32(stride), np.int32(mask))
            stride //= 2
        job.launch(module, "sort_bitonic_merge", sections, *both)
        half *= 2
        done = (half // section).bit_length()
        yield job.progress(data, done / (rounds + 1), f"sections of {half}")
    return data


def warp_radix(job: SortJob, data: SortData) -> Sorting:
    """Sort runs of 32 keys by their bits, then merge the runs."""
    module = job.build()
    blocks = -(-job.n // job.block)
    job.launch(module, "sort_warp_radix", blocks, data.keys, data.positions, np.int32(job.n), np.int32(job.bits))
    return (yield from _merge_runs(job, module, data, WARP))


def block_radix(job: SortJob, data: SortData) -> Sorting:
    """Sort one run per block by its keys' bits, then merge the runs."""
    module = job.build()
    blocks = -(-job.n // job.block)
    job.launch(module, "sort_block_radix", blocks, data.keys, data.positions, np.int32(job.n), np.int32(job.bits))
    return (yield from _merge_runs(job, module, data, job.block))


def merge(job: SortJob, data: SortData) -> Sorting:
    """Sort one run per block by merges in shared memory, then merge the runs."""
    module = job.build()
    job.launch(module, "sort_merge", -(-job.n // job.block), data.keys, data.positions, np.int32(job.n))
    return (yield from _merge_runs(job, module, data, job.block))


def _merge_runs(job: SortJob, module: Module, data: SortData, run: int) -> Sorting:
    """Merge pairs of sorted runs until one is left."""
    n = job.n
    section, rounds = run, (-(-n // run) - 1).bit_length()
    yield job.progress(data, 1 / (rounds + 1), f"runs of {run}")
    while run < n:
        merged = job.empty_like(data)
        blocks = -(-n // (_OUTPUTS * job.block))
        job.launch(module, "sort_merge_path", blocks, *move_arguments(data, merged), np.int32(n), np.int32(run))
        job.free(data)
        data = merged
        run *= 2
        done = (run // section).bit_length()
        yield job.progress(data, done / (rounds + 1), f"runs of {run}")
    return data


def radix(job: SortJob, data: SortData) -> Sorting:
    """Sort by one digit per pass, the lowest first: count, scan the counts, scatter."""
    engine, n = job.engine, job.n
    tiles = -(-n // (_ROUNDS * job.block))
    module = job.build(DIGIT_BITS=job.digit_bits)
    scanning = scan.build_scan_module(engine, "int32", "sum", job.block)
    for shift in range(0, job.bits, job.digit_bits):
        counts = engine.allocate((2**job.digit_bits * tiles,), np.int32)
        job.launch(module, "sort_radix_count", tiles, data.keys, counts, np.int32(n), np.int32(shift))
        starts = scan.scan_sections(engine, scanning, "scan_sections", counts, job.block, 4, exclusive=True)
        scattered = job.empty_like(data)
        numbers = np.int32(n), np.int32(shift)
        job.launch(module, "sort_radix_scatter", tiles, *move_arguments(data, scattered), starts, *numbers)
        engine.free(counts, starts)
        job.free(data)
        data = scattered
        done = shift + job.digit_bits
        yield job.progress(data, done / job.bits, f"sorted by the lowest {done} bits")
    return data


def quick(job: SortJob, data: SortData) -> Sorting:
    """Launch one block, which starts child launches for the rest."""
    # For few keys, small parts still start child launches, so that they can be followed step by step.
    small = min(job.block, max(job.n // 4, 2))
    module = job.build(QUICK_FILE, SMALL=small)
    spare = job.empty_like(data)
    numbers = np.int32(0), np.int32(job.n), np.int32(0), np.int32(0)
    job.launch(module, "sort_quick", 1, *move_arguments(data, spare), *numbers)
    yield Progress(0.8, "partitioned and sorted")
    job.free(spare)
    return data


def onesweep(job: SortJob, data: SortData) -> Sorting:
    """Count the digits of all passes; then run each pass in one launch."""
    engine, n = job.engine, job.n
    keys_a_thread = _keys_per_thread(job, data)
    tile = keys_a_thread * job.block
    tiles = -(-n // tile)
    module = job.build(ONESWEEP_FILE, DIGIT_BITS=job.digit_bits, KEYS_A_THREAD=keys_a_thread)
    digits, passes = 2**job.digit_bits, -(-job.bits // job.digit_bits)
    counts = engine.allocate((8 * data.keys.dtype.itemsize // job.digit_bits, digits), np.uint32)
    states = engine.allocate((passes, 1 + tiles * digits), np.uint32)
    engine.fill(counts, 0)
    engine.fill(states, 0)
    counting = min(tiles, _COUNTING_BLOCKS_PER_MULTIPROCESSOR * engine.device.multiprocessors)
    job.launch(module, "sort_digit_counts", counting, data.keys, counts, np.int32(n))
    other = job.empty_like(data)
    for number in range(passes):
        numbers = np.int32(n), np.int32(number)
        job.launch(module, "sort_onesweep", tiles, *move_arguments(data, other), counts, states, *numbers)
        data, other = other, data
        yield job.progress(data, (number + 1) / passes, f"sorted by the lowest {(number + 1) * job.digit_bits} bits")
    engine.free(counts, states)
    job.free(other)
    return data


def thrust(job: SortJob, data: SortData) -> Sorting:
    """Sort the keys' ranks by Thrust."""
    descending, pairs = bool(job.defines["DESCENDING"]), bool(job.defines["PAIRS"])

    def routine(library: Any, keys: Any, positions: Any) -> None:
        ranks = rank(keys, descending=descending)
        if pairs:
            order = library.argsort(ranks)
            positions[:] = order
            keys[:] = keys[order]
            return
        ranks.sort()
        if ranks is not keys:
            keys[:] = unrank(ranks, keys.dtype, descending=descending)

    job.engine.call(routine, data.keys, data.positions)
    yield Progress(0.8, "sorted")
    return data


def _keys_per_thread(job: SortJob, data: SortData) -> int:
    """Return the keys per thread: as many as fit in shared memory while all multiprocessors have tiles."""
    device, block, key_bytes = job.engine.device, job.block, data.keys.dtype.itemsize
    counts = 4 * 2**job.digit_bits * (block // WARP + 1) + 4 * 2 * 2**job.digit_bits
    for keys in _PAIRS_A_THREAD if job.defines["PAIRS"] else _KEYS_A_THREAD:
        fits = key_bytes * keys * block + counts <= device.shared_bytes_per_block
        if fits and job.n >= _MIN_TILES_PER_MULTIPROCESSOR * device.multiprocessors * block * keys:
            return keys
    return 1


SORTS: dict[str, tuple[SortFunction, bool]] = {
    "one-thread": (sort_on_one_thread, False),
    "odd-even": (odd_even, False),
    "bitonic": (bitonic, False),
    "warp-radix": (warp_radix, True),
    "block-radix": (block_radix, True),
    "radix": (radix, True),
    "quicksort": (quick, True),
    "merge": (merge, False),
    "onesweep": (onesweep, True),
    "peak": (sort_by_peak, False),
    "thrust": (thrust, False),
}
"""By variant name, the function that launches its kernels for at least one key, and whether blocks are whole warps."""


def sort_program(variant: str) -> HostProgram:
    """Return a variant's host program: upload, sort, download."""

    def run(engine: Engine, inputs: Inputs, params: Params) -> Generator[Progress, None, Outputs]:
        pairs = params["result"] == "places"
        keys = cast_values(inputs, params)
        n = keys.size
        data = SortData(engine.upload(keys), engine.upload(np.arange(n if pairs else 1, dtype=np.int32)))
        if not n:
            yield Progress(0.1, "uploaded")
        else:
            data = yield from _run_sort(variant, engine, data, keys, n, params)
        yield Progress(0.9, "sorted")
        result = engine.download(data.keys)
        outputs = {"keys": result, "result": engine.download(data.positions) if pairs else result}
        engine.free(data.keys, data.positions)
        return outputs

    return run


def sort_on_device(variant: str, engine: Engine, data: SortData, params: Params) -> SortData:
    """Sort keys on the device by a variant.

    Parameters
    ----------
    data : SortData
        At least one key; the result replaces it, so its buffers must not be used afterward.
    params : mapping
        The pattern's parameters; `result` is "places" if the positions are sorted too.
    """
    n = data.keys.shape[0]
    sorting = _run_sort(variant, engine, data, engine.download(data.keys, min(n, READABLE_ELEMENTS + 1)), n, params)
    while True:
        try:
            next(sorting)
        except StopIteration as end:
            result: SortData = end.value
            return result


def _run_sort(variant: str, engine: Engine, data: SortData, keys: Array, n: int, params: Params) -> Sorting:
    """Sort n keys; `keys` are all of them, or just more than `READABLE_ELEMENTS`."""
    job = create_job(variant, engine, params, n, _count_differing_bits(keys))
    yield job.progress(data, 0.0, "in input order")
    return (yield from SORTS[variant][0](job, data))


def create_job(variant: str, engine: Engine, params: Params, n: int, bits: int | None = None) -> SortJob:
    """Return the context of a variant's launches.

    Parameters
    ----------
    params : mapping
        The pattern's parameters.
    n : int
        The number of keys.
    bits : int or None
        The number of low bits in which ranks may differ; None for all bits of the type.
    """
    defines: dict[str, int | str] = {
        "KEY": _C_TYPES[params["dtype"]],
        "DESCENDING": int(params["order"] == "descending"),
        "PAIRS": int(params["result"] == "places"),
        "BLOCK_SIZE": warp_aligned_block_size(params) if SORTS[variant][1] else int(params["block"]),
    }
    all_bits = 8 * np.dtype(params["dtype"]).itemsize
    return SortJob(engine, defines, n, all_bits if bits is None else bits, int(params["bits"]))


def _count_differing_bits(keys: Array) -> int:
    """Return the number of low bits in which ranks differ, at least 1, for few keys; all bits for many keys."""
    if keys.size > READABLE_ELEMENTS:
        return 8 * keys.dtype.itemsize
    ranks = rank(keys)
    return max(int(np.bitwise_or.reduce(ranks ^ ranks[0])).bit_length(), 1)
