"""Sort of keys, optionally with their original positions."""

from __future__ import annotations

import numpy as np

from gpu.declaration.arrays import (
    accept_values,
    block_parameter,
    cast_values,
    dtype_parameter,
    input_parameter,
    size_parameter,
    truncate_values,
    values_parameter,
    warp_aligned_block_size,
)
from gpu.declaration.distributed_program import DistributedProgram
from gpu.declaration.gpu_sizes import elements_rule
from gpu.declaration.pattern import Array, Choice, Cost, Inputs, Params, Pattern, Preset, Textbook, Variant, Work
from gpu.declaration.presentation import ArrayPresentation
from gpu.declaration.single_thread import single_thread_variant
from gpu.patterns.sort.benchmark import BENCHMARK
from gpu.patterns.sort.job import FILE, SAMPLE_FILE
from gpu.patterns.sort.keys import DTYPES, KINDS, make_input, present, rank
from gpu.patterns.sort.peak import MIN_THREADS, PEAK_FILE
from gpu.patterns.sort.programs import ONESWEEP_FILE, QUICK_FILE, sort_program
from gpu.patterns.sort.sample_sort import CHUNKS_FILE, plan


def _reference(inputs: Inputs, params: Params) -> Array:
    keys, descending = cast_values(inputs, params), params["order"] == "descending"
    if params["result"] != "places" and keys.dtype.kind in "iu":
        keys = np.sort(keys)
        return keys[::-1].copy() if descending else keys
    ranks = rank(keys, descending=descending)
    if ranks.dtype == np.uint32:
        # With the position in the lower half all numbers differ, so that NumPy's fastest sort is stable.
        numbers = ranks.astype(np.uint64) << np.uint64(32) | np.arange(keys.size, dtype=np.uint64)
        numbers.sort()
        positions = (numbers & np.uint64(2**32 - 1)).astype(np.int64)
    else:
        positions = np.argsort(ranks, kind="stable")
    return positions if params["result"] == "places" else keys[positions]


def _comparable(params: Params, result: Array) -> Array:
    """Return positions unchanged, and the ranks of keys, which distinguish -0 from 0 but not NaNs."""
    return result if params["result"] == "places" else rank(result)


def _cost(inputs: Inputs, params: Params) -> Cost:
    """Return the minimum traffic: each key, and each position if requested, is read and written once."""
    size = inputs["values"].size * (np.dtype(params["dtype"]).itemsize + 4 * (params["result"] == "places"))
    return Cost(bytes_read=size, bytes_written=size, flops=0)


def _selection_comparisons(params: Params, n: int) -> int:
    """Return the comparisons of selection sort: each key with all after it."""
    return n * (n - 1) // 2


def _odd_even_textbook(params: Params, n: int) -> Textbook:
    """Return work and span of odd-even transposition: n phases, alternating pairs 0-1, 2-3, ... and 1-2, 3-4, ..."""
    if n < 2:
        return Textbook(0, 0, 0)
    return Textbook(operations=n * (n - 1) // 2, steps=n if n > 2 else 1, peak=n // 2)


def _bitonic_textbook(params: Params, n: int) -> Textbook:
    """Return work and span: n log2(n) (log2(n) + 1) / 4 comparators for a power of two, else only those within n."""
    rounds = max(n - 1, 0).bit_length()
    stages = [2**power for first in range(rounds) for power in range(first, -1, -1)]
    comparators = [n // (2 * stride) * stride + max(n % (2 * stride) - stride, 0) for stride in stages]
    return Textbook(sum(comparators), len(stages), max(comparators, default=0))


PATTERN = Pattern(
    name="sort",
    order=7,
    title="Sort",
    summary="Order keys from smallest to largest.",
    kernel_file=FILE,
    presentation=ArrayPresentation(),
    parameters=(
        input_parameter(KINDS),
        size_parameter(default=2**13, kinds=KINDS, on_gpu=elements_rule(2**15)),
        values_parameter(),
        Choice(
            name="order",
            label="Order",
            help="Which key comes first: the smallest or the largest. NaN comes last.",
            options=("ascending", "descending"),
            default="ascending",
        ),
        Choice(
            name="result",
            label="Result",
            help="Keys: only the sorted keys. Places: also sort values, here each key's original position.",
            options=("keys", "places"),
            default="keys",
        ),
        dtype_parameter(DTYPES),
        Choice(
            name="bits",
            label="Digit",
            help="Bits of a key per pass of the radix sorts.",
            unit="bits",
            options=("1", "2", "4", "8"),
            default="8",
        ),
        block_parameter(),
    ),
    variants=(
        single_thread_variant(
            sort_program("one-thread"),
            "sort_one_thread",
            title="On one thread: selection",
            idea="Sequential: the smallest remaining key moves to the first remaining position.",
            limit="n (n - 1) / 2 comparisons, one after the other.",
            work=lambda inputs, params: _selection_comparisons(params, inputs["values"].size),
            textbook=_selection_comparisons,
            max_default_size=2**10,
            comparable=_comparable,
        ),
        Variant(
            "odd-even",
            "Odd-even transposition",
            run=sort_program("odd-even"),
            idea="Even and odd phases order alternating pairs of neighbors; after n phases all keys are sorted.",
            limit="A key moves one position per phase: n phases, n (n - 1) / 2 comparisons.",
            kernels=("sort_odd_even",),
            comparable=_comparable,
            textbook=_odd_even_textbook,
            max_default_size=2**13,
            is_quadratic=True,
        ),
        Variant(
            "bitonic",
            "Bitonic network",
            run=sort_program("bitonic"),
            idea="A sorting network merges sorted halves; its comparisons do not depend on the keys.",
            limit="About n log2(n) squared / 4 comparisons; each stride beyond a section is a pass over memory.",
            kernels=("sort_bitonic", "sort_bitonic_step", "sort_bitonic_merge"),
            comparable=_comparable,
            textbook=_bitonic_textbook,
        ),
        Variant(
            "warp-radix",
            "Warp radix",
            run=sort_program("warp-radix"),
            idea="Each pass splits 32 keys by one bit, the lowest first: a warp ballot gives each key its rank.",
            limit="Only 32 keys; longer runs have to be merged.",
            kernels=("sort_warp_radix", "sort_merge_path"),
            threads=warp_aligned_block_size,
            comparable=_comparable,
        ),
        Variant(
            "block-radix",
            "Block radix",
            run=sort_program("block-radix"),
            idea="The ballots of all warps of a block split a whole section by one bit.",
            limit="32 passes with two barriers each, and then still merges.",
            kernels=("sort_block_radix", "sort_merge_path"),
            threads=warp_aligned_block_size,
            comparable=_comparable,
        ),
        Variant(
            "radix",
            "Radix, digit by digit",
            run=sort_program("radix"),
            idea="Tiles count their digits, a scan gives each digit's start, and a stable scatter moves the keys.",
            limit="Three kernels per pass, which read each key twice; scattered, uncoalesced writes.",
            kernels=("sort_radix_count", "sort_radix_scatter"),
            threads=warp_aligned_block_size,
            comparable=_comparable,
            successor="onesweep",
        ),
        Variant(
            "quicksort",
            "Quicksort with child launches",
            run=sort_program("quicksort"),
            idea="A block partitions its keys by a pivot, and launches a child grid per half; it sorts small parts.",
            limit="The first levels keep few blocks busy, and a launch costs as much as thousands of comparisons.",
            kernels=("sort_quick",),
            threads=warp_aligned_block_size,
            comparable=_comparable,
            file=QUICK_FILE,
        ),
        Variant(
            "merge",
            "Merge sort, merge path",
            run=sort_program("merge"),
            idea="Sorted runs are merged in pairs; merge path divides each result equally among all blocks.",
            limit="A pass over memory for each doubling of the runs; threads access memory eight keys apart.",
            kernels=("sort_merge", "sort_merge_path"),
            comparable=_comparable,
        ),
        Variant(
            "onesweep",
            "Radix, one sweep per pass",
            run=sort_program("onesweep"),
            idea="All digits are counted first; then each pass is one kernel, with decoupled look-back between tiles.",
            limit="A warp vote for each bit of a digit, and three round trips of each key to shared memory.",
            kernels=("sort_onesweep", "sort_digit_counts"),
            threads=warp_aligned_block_size,
            comparable=_comparable,
            file=ONESWEEP_FILE,
        ),
        Variant(
            "peak",
            "Peak: radix, by size",
            run=sort_program("peak"),
            idea="A block or a cluster sorts few keys in one launch; tiles that fill shared memory sort many keys.",
            limit="Shared memory limits the tile size: in larger tiles, runs of equal digits would be longer.",
            kernels=("sort_in_block", "sort_in_cluster", "sort_peak_counts", "sort_peak_pass"),
            threads=lambda params: MIN_THREADS,
            comparable=_comparable,
            file=PEAK_FILE,
        ),
        Variant(
            "thrust",
            "Thrust (CuPy)",
            run=sort_program("thrust"),
            idea="CuPy's sort and argsort, which call Thrust and so CUB's radix sort.",
            limit="Positions have 64 bits; signed and float keys are converted to unsigned numbers and back.",
            kernels=(),
            comparable=_comparable,
            library="Thrust",
        ),
    ),
    benchmark=BENCHMARK,
    default_variant="radix",
    result="result",
    reference=_reference,
    tolerance=lambda inputs, params: 0.0,
    cost=_cost,
    work=lambda inputs, params: Work(inputs["values"].size, "key"),
    present=present,
    accept=lambda inputs, params: accept_values(inputs, params, finite=False),
    make_input=make_input,
    helpers={
        SAMPLE_FILE: ("sort_sample",),
        CHUNKS_FILE: (
            "sort_chunk_sample",
            "sort_chunk_counts",
            "sort_chunk_bounds",
            "sort_chunk_share",
            "sort_chunk_join",
        ),
    },
    distributed=DistributedProgram(
        local="Each device samples its chunk.",
        exchange="The samples determine one bucket per device; each device sends keys to their buckets' devices.",
        fix_up="Each device sorts its bucket, with the chunks' keys in order: the sort is stable.",
        plan=plan,
    ),
    presets=(
        Preset(
            "Worked example: 7 14 4 1, bit by bit",
            "Four keys of four bits, in one warp: for each bit, the ballot gives the number of keys with a 0, which "
            "come first, and the position of each key. The Step tab shows ballots and ranks under Variables.",
            {"input": "worked", "n": 4, "dtype": "uint32", "block": "32", "bits": "1"},
            variant="warp-radix",
        ),
        Preset(
            "Runs that double",
            "Sorted runs are merged in pairs: after each pass there are half as many, twice as long.",
            {"input": "random", "n": 2**14, "block": "32"},
            variant="merge",
        ),
        Preset(
            "Digit by digit",
            "The keys look unsorted until the last pass: each pass only preserves the order of those before it.",
            {"input": "random", "n": 2**14, "dtype": "uint32", "bits": "4"},
            variant="radix",
        ),
        Preset(
            "Nearly sorted, but not faster",
            "A sorting network always compares the same positions: nearly sorted keys take as long as any others.",
            {"input": "nearly", "n": 2**14},
            variant="bitonic",
        ),
    ),
    step_params={"n": 16, "dtype": "uint32", "bits": "4", "block": "8"},
    step_input=truncate_values,
)
