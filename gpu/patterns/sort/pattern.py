"""Sort: keys in order, with the places where they were."""

from __future__ import annotations

import numpy as np

from gpu.declaration.alone import on_one_thread
from gpu.declaration.arrays import (
    accept_values,
    block_parameter,
    dtype_parameter,
    first_values,
    input_parameter,
    size_parameter,
    typed,
    values_parameter,
    whole_warps,
)
from gpu.declaration.distributed import DistributedProgram
from gpu.declaration.gpu_sizes import elements
from gpu.declaration.pattern import Array, Choice, Cost, Inputs, Params, Pattern, Preset, Textbook, Variant, Work
from gpu.declaration.presentation import ArrayPresentation
from gpu.patterns.sort.benchmark import BENCHMARK
from gpu.patterns.sort.job import FILE, SAMPLE_FILE
from gpu.patterns.sort.keys import DTYPES, KINDS, make_input, present, rank
from gpu.patterns.sort.peak import PEAK_FILE, THREADS
from gpu.patterns.sort.programs import ONESWEEP_FILE, QUICK_FILE, program
from gpu.patterns.sort.sample_sort import CHUNKS_FILE, plan


def _reference(inputs: Inputs, params: Params) -> Array:
    keys = typed(inputs, params)
    ranks = rank(keys, descending=params["order"] == "descending")
    if ranks.dtype == np.uint32:
        # The place in the lower half makes every number another one: NumPy's fastest sort is stable then.
        numbers = ranks.astype(np.uint64) << np.uint64(32) | np.arange(keys.size, dtype=np.uint64)
        numbers.sort()
        places = (numbers & np.uint64(2**32 - 1)).astype(np.int64)
    else:
        places = np.argsort(ranks, kind="stable")
    return places if params["result"] == "places" else keys[places]


def _comparable(params: Params, result: Array) -> Array:
    """Return places as they are, and of keys their ranks, in which -0 is not 0 and every NaN the same."""
    return result if params["result"] == "places" else rank(result)


def _cost(inputs: Inputs, params: Params) -> Cost:
    """Count each key read once and written once, and each place."""
    size = inputs["values"].size * (np.dtype(params["dtype"]).itemsize + 4 * (params["result"] == "places"))
    return Cost(bytes_read=size, bytes_written=size, flops=0)


def _selection(params: Params, n: int) -> int:
    """Each key is compared with all behind it."""
    return n * (n - 1) // 2


def _odd_even(params: Params, n: int) -> Textbook:
    """Phases by turns compare 0 and 1, 2 and 3, ... and 1 and 2, 3 and 4, ..., as many as there are keys."""
    if n < 2:
        return Textbook(0, 0, 0)
    return Textbook(operations=n * (n - 1) // 2, steps=n if n > 2 else 1, peak=n // 2)


def _bitonic(params: Params, n: int) -> Textbook:
    """Of a power of two n log2(n) (log2(n) + 1) / 4 comparators, else without those that lead beyond the end."""
    rounds = max(n - 1, 0).bit_length()
    stages = [2**power for most in range(rounds) for power in range(most, -1, -1)]
    comparators = [n // (2 * stride) * stride + max(n % (2 * stride) - stride, 0) for stride in stages]
    return Textbook(sum(comparators), len(stages), max(comparators, default=0))


PATTERN = Pattern(
    name="sort",
    order=7,
    title="Sort",
    summary="Keys in order, from least to greatest.",
    kernels=FILE,
    presentation=ArrayPresentation(),
    parameters=(
        input_parameter(KINDS),
        size_parameter(default=2**13, kinds=KINDS, on_gpu=elements(2**17)),
        values_parameter(),
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
        Choice(
            name="bits",
            label="Digit",
            help="Bits of a key that the radix sorts take in a pass.",
            unit="bits",
            options=("1", "2", "4", "8"),
            default="8",
        ),
        block_parameter(),
    ),
    variants=(
        on_one_thread(
            program("one-thread"),
            "sort_one_thread",
            title="On one thread: selection",
            idea="Without threads: the least key of those that are left takes the first place that is left.",
            limit="n (n - 1) / 2 comparisons, one after the other.",
            work=lambda inputs, params: _selection(params, inputs["values"].size),
            textbook=_selection,
            comparable=_comparable,
        ),
        Variant(
            "odd-even",
            "Odd-even transposition",
            run=program("odd-even"),
            idea="Neighbors are put in order, in even and odd phases; after n phases all keys are.",
            limit="A key moves one place a phase: n phases, n (n - 1) / 2 comparisons.",
            kernels=("sort_odd_even",),
            comparable=_comparable,
            textbook=_odd_even,
            most=2**13,
        ),
        Variant(
            "bitonic",
            "Bitonic network",
            run=program("bitonic"),
            idea="Sorted halves are merged by comparisons whose places do not depend on the keys.",
            limit="About n log2(n) squared / 4 comparisons; strides beyond a section are a pass over memory each.",
            kernels=("sort_bitonic", "sort_bitonic_step", "sort_bitonic_merge"),
            comparable=_comparable,
            textbook=_bitonic,
        ),
        Variant(
            "warp-radix",
            "Warp radix",
            run=program("warp-radix"),
            idea="A pass splits 32 keys by one bit, the lowest first: a warp's vote counts them and ranks each.",
            limit="32 keys; all longer runs are merges.",
            kernels=("sort_warp_radix", "sort_merge_path"),
            threads=whole_warps,
            comparable=_comparable,
        ),
        Variant(
            "block-radix",
            "Block radix",
            run=program("block-radix"),
            idea="The votes of all warps of a block split a whole section by one bit.",
            limit="32 passes with two barriers each, and still merges.",
            kernels=("sort_block_radix", "sort_merge_path"),
            threads=whole_warps,
            comparable=_comparable,
        ),
        Variant(
            "radix",
            "Radix, digit by digit",
            run=program("radix"),
            idea="Tiles count their digits, a scan of the counts says where each begins, and keys go there in order.",
            limit="Three kernels a pass, which read each key twice; neighboring lanes write all over memory.",
            kernels=("sort_radix_count", "sort_radix_scatter"),
            threads=whole_warps,
            comparable=_comparable,
            lifted_by="onesweep",
        ),
        Variant(
            "quicksort",
            "Quicksort that launches itself",
            run=program("quicksort"),
            idea="A block parts its keys by a pivot, and launches a grid for either half; few keys it sorts by itself.",
            limit="The first levels are work of a few blocks, and a launch costs as much as thousands of comparisons.",
            kernels=("sort_quick",),
            threads=whole_warps,
            comparable=_comparable,
            file=QUICK_FILE,
        ),
        Variant(
            "merge",
            "Merge sort, merge path",
            run=program("merge"),
            idea="Runs are merged two by two: a block searches for each key, all blocks share the result equally.",
            limit="A pass over memory for each doubling of the runs; threads read and write eight keys apart.",
            kernels=("sort_merge", "sort_merge_path"),
            comparable=_comparable,
        ),
        Variant(
            "onesweep",
            "Radix, one sweep a pass",
            run=program("onesweep"),
            idea="All digits are counted at once; then a tile asks those before it where its keys go: look-back.",
            limit="A vote for each bit of a digit, and three trips of each key to shared memory.",
            kernels=("sort_onesweep", "sort_digit_counts"),
            threads=whole_warps,
            comparable=_comparable,
            file=ONESWEEP_FILE,
        ),
        Variant(
            "peak",
            "Peak: radix, by size",
            run=program("peak"),
            idea="Few keys are sorted by one block in one launch; many go in tiles as large as shared memory holds.",
            limit="A tile is what shared memory holds: in larger ones, runs of a digit would be longer.",
            kernels=("sort_in_block", "sort_peak_counts", "sort_peak_pass"),
            threads=lambda params: THREADS,
            comparable=_comparable,
            file=PEAK_FILE,
        ),
        Variant(
            "thrust",
            "Thrust (CuPy)",
            run=program("thrust"),
            idea="What a user of CuPy has: its sort and argsort are Thrust's, which call CUB's radix sort.",
            limit="Places have 64 bits; keys of other kinds become unsigned numbers first, and what they were after.",
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
        local="Each device takes samples of its chunk.",
        exchange="The samples say where buckets begin; each device sends every other its share of that one's bucket.",
        fix_up="Each device sorts its bucket, shares side by side: equal keys stay in the order of their chunks.",
        plan=plan,
    ),
    presets=(
        Preset(
            "Worked example: 7 14 4 1, bit by bit",
            "Four keys of four bits, for a warp: at each bit the vote says how many have a 0, which go first, and "
            "where each of the others goes. The Step tab shows the votes and ranks of all lanes under Variables.",
            {"input": "worked", "n": 4, "dtype": "uint32", "block": "32", "bits": "1"},
            variant="warp-radix",
        ),
        Preset(
            "Runs that double",
            "Sorted runs are merged two by two: after each pass half as many are left, twice as long.",
            {"input": "random", "n": 2**14, "block": "32"},
            variant="merge",
        ),
        Preset(
            "Digit by digit",
            "The keys look unsorted until the last pass: each pass only keeps the order that those before it made.",
            {"input": "random", "n": 2**14, "dtype": "uint32", "bits": "4"},
            variant="radix",
        ),
        Preset(
            "Nearly sorted, and none the wiser",
            "A network compares the same places whatever the keys are: what is nearly sorted takes it as long.",
            {"input": "nearly", "n": 2**14},
            variant="bitonic",
        ),
    ),
    step_params={"n": 16, "dtype": "uint32", "bits": "4", "block": "8"},
    step_input=first_values,
)
