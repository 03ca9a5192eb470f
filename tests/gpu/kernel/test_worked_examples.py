"""Worked numbers of the teaching texts as patterns, lessons, counts and small kernels show them; and that none lacks.

Where a text is wrong, the number is ours, and the texts' own numbers say why.
"""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu.base.errors import LaunchError, LockstepError
from gpu.declaration.pattern import Textbook
from gpu.messages.runs.atomics import ContentionCounts, Interleaving, Latencies, LatencyChain, compute_latency_chain
from gpu.patterns import find_pattern
from gpu.recording.recording import Recording
from gpu.run.atomics import enumerate_interleavings, study_atomics
from gpu.run.pattern_run import record_pattern
from gpu.run.workload import Workload
from gpu.stepping.binned_elements import match_binned_elements
from gpu.stepping.derived_data import derive_data
from tests import needs
from tests.gpu.kernel.test_listings import LISTINGS
from tests.gpu.kernel.test_worked_numbers import KNOWN, PHRASE, claimed_numbers, count, run, simulate

pytestmark = needs.needs(KNOWN, needs.LISTINGS)

MEASURED = "the author's own measurement on a GPU that is not here: a simulator has no time of a GPU"
UNSUPPORTED = {
    "sgemm_kernel_v2 is faster": MEASURED,
    "version 3 is about 35 %": MEASURED,
    "Blelloch's scan is about 5 times": MEASURED,
    "dynamic parallelism came with": "a release's number, which no program can give",
}
"""What is not about anything that Lockstep can show, by how the claim begins."""


def test_every_worked_number_is_a_test_or_has_a_reason() -> None:
    here = Path(__file__)
    texts = [here, here.with_name("test_worked_numbers.py"), here.parents[1] / "patterns" / "test_textbook.py"]
    asked = {
        begins
        for text in texts
        for begins in re.findall(r'claimed_numbers\(\s*"([^"]+)"', text.read_text(encoding="utf-8"))
    }
    claims = [each["claim"] for each in KNOWN]
    missing = [claim for claim in claims if not any(claim.startswith(begins) for begins in asked | set(UNSUPPORTED))]
    assert missing == []
    assert [begins for begins in UNSUPPORTED if not any(claim.startswith(begins) for claim in claims)] == []


def kernel(source: str, name: str, grid: Any, block: Any, *arguments: Any, **options: Any) -> Any:
    return simulate("own.cu", name, grid, block, arguments, source=source, **options)


def pattern_result(name: str, variant: str, inputs: dict[str, Any], /, **params: Any) -> tuple[Recording, Any]:
    """Record a pattern's variant; return the recording, and what its reference says of the same input."""
    pattern = find_pattern(name)
    values = pattern.check({**pattern.step_params, **params})
    recording = record_pattern(Workload(pattern, pattern.variant(variant), inputs, values), lambda progress: None)
    return recording, pattern.reference(pattern.prepare_inputs(inputs, values, 0), values)


def final_values(recording: Recording, name: str) -> Any:
    """Return what an array holds at the end."""
    last = recording.launches[-1]
    return last.trace.array(name, last.count)


def textbook(name: str, variant: str, n: int, /, **params: Any) -> Textbook:
    pattern = find_pattern(name)
    book = pattern.textbook_of(pattern.variant(variant), pattern.check({**pattern.step_params, **params}), n)
    assert book is not None
    return book


# Reductions.


def test_halving_with_the_odd_element_added_to_the_first() -> None:
    """The text's is a host function, which is refused with that as the reason: here it is a thread's."""
    source = """
    __global__ void halve(int *data, int n) {
        for (int size = n; size > 1; size /= 2) {
            int half = size / 2;
            for (int i = 0; i < half; i++) data[i] += data[i + half];
            if (size % 2) data[0] += data[size - 1];
        }
    }
    """
    claim = next(each for each in KNOWN if each["claim"].startswith("halving with interleaved pairs"))
    sums = [
        kernel(source, "halve", 1, 1, np.array(data, np.int32), len(data)).arrays[0][0]
        for data in claim["inputs"]["data"]
    ]
    assert sums == claimed_numbers("halving with interleaved pairs")
    for n in (1, 2, 63, 64, 299):
        assert kernel(source, "halve", 1, 1, np.arange(n, dtype=np.int32), n).arrays[0][0] == n * (n - 1) // 2


def test_two_elements_a_round_halve_the_rounds() -> None:
    arguments = ("empty:1000", "arange:1000", "full:1000:1")
    rolled = run("1-loop.cu", "rolled", 1, 1, *arguments)
    unrolled = run("1-loop.cu", "unrolled", 1, 1, *arguments)
    rounds = [count(unrolled, 9, "lane_statements")]
    tests = [count(each, line, "lane_statements") for each, line in ((rolled, 3), (unrolled, 8))]
    # The condition and the assignment of each round; once where i begins, and the condition that ends it.
    assert [(total - 2) / 2 for total in tests] == claimed_numbers("taking two elements a round")["rounds"]
    assert rounds == claimed_numbers("taking two elements a round")["rounds"][1:]


def test_the_last_warp_leaves_the_sum_in_element_0_and_something_else_beside_it() -> None:
    source = """
    __global__ void last_warp(int *s) {
        volatile int *sums = s;
        sums[threadIdx.x] += sums[threadIdx.x + 4];
        sums[threadIdx.x] += sums[threadIdx.x + 2];
        sums[threadIdx.x] += sums[threadIdx.x + 1];
    }
    """
    found = kernel(source, "last_warp", 1, 4, np.arange(1, 9, dtype=np.int32))
    assert found.arrays[0].tolist() == [36, 35, 33, 23, 5, 6, 7, 8]
    assert found.arrays[0][0] == claimed_numbers("with a warp of 4 and 8 threads the loop ends at once")["element 0"]


def test_a_template_of_512_threads_halves_nine_times() -> None:
    found = run("1-template-repaired.cu", "reductionKernel<512>", 1, 512, "arange:512", "empty:1", 512, shared=2048)
    halvings = [line for line in (17, 22, 27, 32, 39, 40, 41, 42, 43, 44) if count(found, line, "lane_statements")]
    assert len(halvings) == claimed_numbers("with threadsPerBlock 512 the condition")
    assert found.arrays[1][0] == 511 * 256


def test_a_volatile_pointer_into_theblock_s_buffer_writes_to_shared_memory() -> None:
    found = run(
        "1-last-warp-repaired.cu", "reductionKernel", 1, 64, "empty:1", "arange:64", 64, shared=256
    ).counters.per_line
    metrics = {line: counts for (_, line), counts in found.items()}[29]
    assert claimed_numbers("volatile tells the compiler to store") == "shared memory"
    assert any("mem_shared_op_st" in name and value for name, value in metrics.items())
    assert not any("mem_global_op_st" in name and value for name, value in metrics.items())


def test_the_last_warp_needs_a_barrier_of_its_own() -> None:
    """Lanes may part since Volta: in their own order the sum is another one, and the checkers say so in any order."""
    arguments = (1, 64, ("empty:1", "arange:64", 64))
    source = """
    __global__ void last(int *out, const int *in, int n) {
        __shared__ int s[64];
        s[threadIdx.x] = in[threadIdx.x];
        __syncthreads();
        if (threadIdx.x < 32) {
            volatile int *v = s;
            for (int half = 32; half; half /= 2) {
                int sum = v[threadIdx.x] + v[threadIdx.x + half];
                BARRIER;
                v[threadIdx.x] = sum;
                BARRIER;
            }
            if (!threadIdx.x) *out = v[0];
        }
    }
    """
    none = [simulate("own.cu", "last", *arguments, source=source, defines={"BARRIER": ""}, schedule=f"lanes:{seed}")
            for seed in range(3)]  # fmt: skip
    own = [simulate("own.cu", "last", *arguments, source=source, defines={"BARRIER": "__syncwarp()"},
                    schedule=f"lanes:{seed}") for seed in range(3)]  # fmt: skip
    assert "__syncwarp()" in claimed_numbers("threads of a warp are synchronous by nature")
    assert all(any(finding.kind == "race" for finding in each.findings) for each in none)
    assert {int(each.arrays[0][0]) for each in none} != {2016}
    assert [(int(each.arrays[0][0]), each.findings) for each in own] == [(2016, [])] * 3


def test_one_launch_gives_the_whole_sum_with_atomics() -> None:
    assert "one launch with atomics" in claimed_numbers("a single kernel cannot give the final result")
    pattern = find_pattern("reduction")
    recording, _ = pattern_result("reduction", "atomic", pattern.prepare_inputs({}, pattern.check({"n": 64}), 0))
    (launch,) = recording.launches
    assert np.prod(launch.trace.grid) > 1
    assert final_values(recording, "total").tolist() == [int(launch.trace.array("data", 0).sum())]


def test_arguments_in_the_order_of_another_kernel_are_found() -> None:
    assert claimed_numbers("callReduction hands (partial, in, N)") == "(in, partial, N)"
    kernel_of = ("1-template-repaired.cu", "reductionKernel<256>", 4, 256)
    handed = run(*kernel_of, "empty:4", "arange:1000", 1000, shared=1024)
    assert handed.findings[0].kind == "out-of-bounds"
    taken = run(*kernel_of, "arange:1000", "empty:4", 1000, shared=1024)
    assert int(taken.arrays[1].sum()) == 499500


def test_work_and_steps_of_a_reduction_for_any_n() -> None:
    tree = textbook("reduction", "neighbored", 16)
    (block,) = [each for each in find_pattern("reduction").parameters if each.name == "block"]
    assert tree.operations == sum(16 // 2**level for level in range(1, 5)) == 15
    assert claimed_numbers("(1/2)N + (1/4)N + ... + (1)N = N - 1 operations").endswith("(1/N)N")
    assert claimed_numbers("log(n) steps and n/2 threads") == {
        "elements": 2 * max(int(each) for each in block.options),
        "steps": textbook("reduction", "neighbored", 2048).steps,
    }


def test_a_sequential_reduction_from_the_identity_adds_every_element() -> None:
    source = """
    __global__ void sum(const int *in, int *out, int n) {
        int total = 0;
        for (int i = 0; i < n; i++)
            total += in[i];
        *out = total;
    }
    """
    found = kernel(source, "sum", 1, 1, "arange:16", "empty:1", 16)
    assert count(found, 5, "lane_statements") == claimed_numbers("N operations for N values")


def test_the_naive_reduction_goes_on_for_six_more_steps_and_its_first_does_not_diverge() -> None:
    arguments = ("zeros:2048", "empty:1")
    found = run("2-reduction-naive-repaired.cu", "reduce_naive", 1, 1024, *arguments, BLOCK_SIZE=1024, traced=True)
    assert found.trace is not None
    branches = [event for event in range(len(found.trace.events)) if found.trace.events[event].position.line == 18]
    strides = {int(found.trace.registers(event, ["stride"])["stride"].values[0]) for event in branches}
    assert len([stride for stride in strides if stride >= 32]) == claimed_numbers("that goes on for up to 6 more steps")
    assert claimed_numbers("in each iteration each warp runs through two paths").startswith("not the first")
    diverging = claimed_numbers("after the 5th step entire warps fail the test")["warps that diverge"]
    assert count(found, 18, "divergent_branches") == sum(diverging[1:]), "none in the first step"


# Scans.


def test_the_work_of_scans() -> None:
    kogge = textbook("scan", "kogge-stone", 1024, block="1024").operations
    brent = textbook("scan", "brent-kung", 1024, block="512").operations
    assert round(kogge / 1023, 2) == claimed_numbers("the factor log(n) costs 10x")
    assert brent <= 2 * 1023
    assert textbook("scan", "brent-kung", 16, block="512").operations == claimed_numbers(
        "no more than twice the additions"
    )
    sequential = run("2-scan-sequential.cu", "scan_sequential", 1, 1, "arange:16", "empty:16", 16)
    assert count(sequential, 6, "lane_statements") == claimed_numbers("N additions for N elements")
    wanted = claimed_numbers("scan_v1 adds every element to all after it")
    values = ("empty:16", "arange:16", 16)
    first = run("4-scan-v1.cu", "scan_v1_kernel", 1, 16, *values, 0)
    second = run("4-scan-v2.cu", "scan_v2_kernel", 1, 8, *values, shared=64, BLOCK_DIM=8)
    assert count(first, 8, "lane_statements") == wanted["scan_v1"]
    assert sum(count(second, line, "lane_statements") for line in (19, 29)) == wanted["scan_v2"]


def _indices(line: int, threads: list[int], steps: int) -> list[list[int]]:
    """Return `index` of threads, step by step, where a line of the scan has just given it a value."""
    found = run("2-scan-efficient.cu", "scan_efficient", 1, 8, "arange:16", "empty:16", 16, traced=True)
    assert found.trace is not None
    here = [event for event in range(len(found.trace.events)) if found.trace.events[event].position.line == line]
    values = [found.trace.registers(event + 1, ["index"])["index"].values for event in here[:steps]]
    return [[int(each[thread]) for each in values] for thread in threads]


def test_elements_of_threads_in_the_efficient_scan() -> None:
    up = [[index for index in indices if index < 16] for indices in _indices(15, [0, 1, 2, 3], 3)]
    assert up == claimed_numbers("the element of threads 0 to 3")
    assert _indices(34, [0, 1, 6, 7], 3) == claimed_numbers("index and stride of threads 0, 1, 6, 7")


def test_the_printed_floats_are_prefix_sums() -> None:
    claim = next(each for each in KNOWN if each["claim"].startswith("the printed floats"))["inputs"]
    wanted = claimed_numbers("the printed floats are prefix sums")
    values = np.array(claim["input"], np.float32)
    found = run("4-scan-v1.cu", "scan_v1_kernel", 1, 4, "empty:4", values, 4, 0).arrays[0]
    np.testing.assert_allclose(found, wanted[:4], atol=1e-4)
    last = np.array([claim["sum before"], claim["last"]], np.float32)
    found = run("4-scan-v1.cu", "scan_v1_kernel", 1, 2, "empty:2", last, 2, 0).arrays[0]
    np.testing.assert_allclose(found[1], wanted[4], atol=1e-4)


def test_ablock_takes_2048_elements() -> None:
    n = claimed_numbers("2,048 elements at most in one block")
    assert n == claimed_numbers("supports fewer than 2,048 elements"), "and no fewer"
    options = {"shared": 4 * n, "BLOCK_DIM": 1024}
    found = run("4-scan-v2.cu", "scan_v2_kernel", 1, 1024, f"empty:{n}", f"full:{n}:1", n, **options)
    assert found.arrays[0].tolist() == list(range(1, n + 1))
    with pytest.raises(LaunchError, match="1024"):
        run("4-scan-v2.cu", "scan_v2_kernel", 1, 1025, f"empty:{n}", f"full:{n}:1", n, **options)


def test_banks() -> None:
    banks, logarithm = claimed_numbers("NUM_BANKS is 32 and LOG_NUM_BANKS 5 today")
    assert 2**logarithm == banks
    source = "__global__ void k(int s) { __shared__ int a[2048]; a[threadIdx.x * s] = 1; }"
    metric = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"
    conflicts = [kernel(source, "k", 1, 32, stride).counters.total.get(metric, 0) for stride in (banks, banks - 1)]
    assert conflicts == [banks - 1, 0]


def test_pack_and_split() -> None:
    values = np.array([-0.4508, -0.0210, -0.4774, 0.2750, 0.0398, 0.4869], np.float32)
    predicates = run("4-pack-split.cu", "predicate_kernel", 1, 8, "empty:6", values, 6).arrays[0]
    scanned = np.cumsum(predicates).astype(np.float32)
    packed = run("4-pack-split.cu", "pack_kernel", 1, 8, "zeros:6", values, predicates, scanned, 6).arrays[0]
    many = int(scanned[-1])
    wanted = claimed_numbers("pack of an input that ends 0.0398 0.4869")
    np.testing.assert_allclose(packed[0], wanted["first"], rtol=1e-6)
    np.testing.assert_allclose(packed[many - 2 : many], wanted["last two"], rtol=1e-6)
    split = run("4-pack-split.cu", "split_kernel", 1, 8, "zeros:6", packed, predicates, scanned, 6).arrays[0]
    np.testing.assert_allclose(split, claimed_numbers("split puts them back where they were"), rtol=1e-6)


# Histograms and atomics.


def record_counting(variant: str, text: str, /, **params: Any) -> tuple[Recording, Any]:
    chosen = {"of": "letters", "text": text, "letters": 4, "block": "4", "blocks": 1, **params}
    return pattern_result("histogram", variant, {}, **chosen)


def letters_by_thread(recording: Recording, text: str) -> dict[int, str]:
    """Return the letters that each thread counts, in its order."""
    found: defaultdict[int, str] = defaultdict(str)
    for _, element, _, _, thread in match_binned_elements(recording, "image", ("bins",)).tolist():
        found[thread] += text[element].replace(" ", "_")
    return dict(found)


def test_single_letters_of_the_phrase() -> None:
    recording, reference = record_counting("interleaved", PHRASE, letters=1)
    assert final_values(recording, "bins")[:3].tolist() == claimed_numbers("the phrase has 4 a, no b, 1 c")
    assert final_values(recording, "bins").tolist() == reference[0].tolist()


def test_sections_and_turns_of_24_letters() -> None:
    text = PHRASE[:24]
    recording, _ = record_counting("block-partition", text)
    wanted = claimed_numbers("first 24 characters, 4 threads: sections of 6")
    rows = match_binned_elements(recording, "image", ("bins",)).tolist()
    assert letters_by_thread(recording, text) == {t: text[6 * t : 6 * t + 6].replace(" ", "_") for t in range(4)}
    assert {len(each) for each in letters_by_thread(recording, text).values()} == {wanted["section"]}
    first = {thread: bin_ for _, _, bin_, _, thread in reversed(rows)}
    assert sorted(thread for thread, bin_ in first.items() if bin_ == 3) == wanted["threads at m-p"]
    recording, _ = record_counting("interleaved", text)
    read = letters_by_thread(recording, text)
    rounds = ["".join(each) for each in zip(*(read[thread] for thread in range(4)), strict=True)]
    assert [*rounds[:2], read[0], read[1]] == claimed_numbers("interleaved with 4 threads")


def _name_order(order: Interleaving) -> list[int]:
    return [moment.thread + 1 for moment in order.moments]


def test_orders_of_two_increments() -> None:
    claim = next(each for each in KNOWN if each["claim"].startswith("histo[x] after two increments"))["inputs"][
        "orders"
    ]
    wanted = claimed_numbers("histo[x] after two increments in the orders shown")
    racy = enumerate_interleavings("update_racy")
    results = {tuple(_name_order(each)): each.result for each in racy}
    assert {name: results[tuple(order)] for name, order in claim.items()} == wanted
    orders = claimed_numbers("orders of two read-modify-write sequences")
    assert (len(racy), sum(each.is_correct for each in racy)) == (orders["orders"], orders["right"])
    allowed = {name for name, order in claim.items() if results[tuple(order)] == 2}
    assert sorted(allowed) == claimed_numbers("atomics allow the orders of figures")
    assert all(each.is_correct for each in enumerate_interleavings("update_atomic"))


def _longest_chain() -> tuple[LatencyChain, ContentionCounts]:
    pattern = find_pattern("histogram")
    params = {**pattern.step_params, "of": "letters", "text": PHRASE, "letters": 4}
    found = study_atomics(pattern, {}, params, lambda progress: None)
    assert found.elements - found.textbook_counts.operations == 4, "three spaces and the full stop"
    followed = compute_latency_chain(found.textbook_counts, Latencies())
    assert followed is not None
    return followed, found.textbook_counts


def test_the_chapter_s_chain() -> None:
    found, contended = _longest_chain()
    assert (contended.operations, contended.addresses) == (38, 7), "what the kernel ignores is not counted"
    assert found.bytes / 1e9 == claimed_numbers("8 bytes x 2 transfers a clock")["GB/s"]
    assert found.elements / 1e9 == claimed_numbers("elements of 4 bytes a second")["G elements/s"]
    assert found.on_one / 1e6 == claimed_numbers("one atomic each 400 cycles")["M atomics/s"]
    assert found.evenly / 1e6 == claimed_numbers("letters spread evenly over 7 bins")["M atomics/s"]
    skewed = claimed_numbers("the phrase spreads worse than over 7 bins")
    assert (contended.hottest, contended.operations) == (skewed["hottest bin"], skewed["letters"])
    assert found.skewed / 1e6 == pytest.approx(skewed["M atomics/s"])
    assert found.operations / 1e6 == claimed_numbers("6 arithmetic operations for each atomic")["M operations/s"]
    assert found.in_cache / 1e6 == 25
    cycles = 1e9 / Latencies().per_second(200)
    assert (cycles, f"{cycles:.0f} cycles" in claimed_numbers("an atomic's throughput is about twice")) == (400, True)


def test_an_accumulator_that_is_never_below_zero() -> None:
    found = run("3-fig-9-11.cu", "histogram_aggregated_kernel", 2, 4, "full:24:97", "zeros:7", 24, 7, shared=28)
    assert ("always-true", 21) in {(each.kind, each.positions[0].line) for each in found.warnings}
    assert claimed_numbers("if (accumulator >= 0) keeps empty runs").startswith("always true")


# Convolution.


def test_a_6_x_6block_needs_an_8_x_8_tile_and_four_rounds() -> None:
    pattern = find_pattern("convolution")
    preset = next(each for each in pattern.presets if "6 × 6" in each.title)
    inputs = {"image": np.zeros((12, 12), np.uint8), "maxval": np.array(255, np.uint32)}
    recording, _ = pattern_result("convolution", preset.variant, inputs, **preset.params)
    (size,) = {array.count for array in recording.launches[0].trace.arrays if array.space == "shared"}
    assert size == claimed_numbers("blocks of 6 x 6 and a filter of 3 x 3") ** 2
    rounds = [each for each in derive_data(recording).segments if each.label.startswith("load ")]
    assert len(rounds) == claimed_numbers("the tile is filled in four iterations")


FILTER = ",".join("1" for _ in range(25))


def _split_third(size: int, shared: int) -> Any:
    given = ("empty:64", "arange:64", "null", 8, 8, size)
    constants = {"c_filter": FILTER}
    path = LISTINGS / "4-conv-v3.cu"
    return simulate(path, "convolution_kernel_v3", (2, 2), (4, 4), given, shared_bytes=shared, constants=constants)


def test_loops_of_a_tile_go_a_round_too_far() -> None:
    wanted = claimed_numbers("iterations are the ceiling of tile size by block size")
    found = _split_third(5, 256)
    threads = 4 * 16
    assert count(found, 17, "lane_statements") / threads == wanted["loops"]
    filled = count(found, 26, "lane_statements") / threads
    assert filled == wanted["ceiling"]


def test_how_much_shared_memory_a_tile_takes() -> None:
    wanted = claimed_numbers("shared_mem_size = (2 * filter_size + BLOCK_DIM)")["bytes"]
    assert [each.kind for each in _split_third(3, wanted).findings] == []
    assert [each.kind for each in _split_third(3, wanted - 4).findings][:1] == ["out-of-bounds"]


def test_constant_memory_holds_128_x_128_floats_and_no_more() -> None:
    source = "__constant__ float c[{}]; __global__ void k(float *out) {{ out[threadIdx.x] = c[threadIdx.x]; }}"
    elements = claimed_numbers("c_filter of 128 x 128 floats")["bytes"] // 4
    assert elements == 128 * 128
    kernel(source.format(elements), "k", 1, 32, "empty:32", constants={"c": f"zeros:{elements}"})
    with pytest.raises(LockstepError, match="constant"):
        kernel(source.format(elements + 1), "k", 1, 32, "empty:32", constants={"c": f"zeros:{elements + 1}"})


# Sorting, and numbers.


def test_a_quotient_of_integers_is_no_random_number() -> None:
    source = "__global__ void k(const int *r, float *x) { x[threadIdx.x] = 2 * (r[threadIdx.x] / 2147483647) - 1; }"
    drawn = np.array([0, 5, 2**30, 2**31 - 2, 2**31 - 1], np.int32)
    found = kernel(source, "k", 1, 5, drawn, "empty:5").arrays[1].tolist()
    assert found == [-1, -1, -1, -1, 1]
    assert sorted(set(found)) == claimed_numbers("data[i] = 2 * (rand() / max) - 1")


@pytest.mark.parametrize(("more", "selected"), [(0, True), (1, False)])
def test_up_to_which_size_a_sub_array_is_sorted_by_selection(more: int, selected: bool) -> None:
    n = claimed_numbers("a sub-array of fewer than 32 elements") + more
    data = np.arange(n, 0, -1).astype(np.uint32)
    found = run("4-quicksort-wrapped.cu", "cdp_simple_quicksort", 1, 1, data, 0, n - 1, 0)
    assert found.arrays[0].tolist() == sorted(data.tolist())
    assert (count(found, 23, "lane_statements") == 0) == selected


def _sort_by_bit(values: list[int], bit: int) -> list[int]:
    """Return values after a pass over one bit of the radix kernel, whose warp is filled up with the largest number."""
    source = """
    __global__ void by_bit(unsigned int *data, int bit) {
        unsigned int value = data[threadIdx.x];
        bool one = value >> bit & 1;
        unsigned int ones = __ballot_sync(0xffffffff, one);
        unsigned int below = (1u << threadIdx.x) - 1;
        int place = one ? __popc(~ones) + __popc(ones & below) : __popc(~ones & below);
        data[place] = value;
    }
    """
    data = np.full(32, 2**32 - 1, np.uint32)
    data[: len(values)] = values
    return [int(each) for each in kernel(source, "by_bit", 1, 32, data, bit).arrays[0][: len(values)]]


def test_four_values_bit_by_bit() -> None:
    values = [7, 14, 4, 1]
    bits = claimed_numbers("binary of 7, 14, 4, 1, and bit 0")
    assert [f"{each:04b}" for each in values] == bits["binary"]
    assert [each & 1 for each in values] == bits["bit 0"]
    first = _sort_by_bit(values, 0)
    assert first == claimed_numbers("after bit 0")
    second = _sort_by_bit(first, 1)
    assert second == claimed_numbers("after bit 1"), "bit 1 of 4 and 1 is 0, and order is kept"
    third = _sort_by_bit(second, 2)
    assert third == claimed_numbers("after bit 2")
    assert _sort_by_bit(third, 3) == claimed_numbers("after all bits"), "with 14, which the text leaves out"
    recording, reference = pattern_result("sort", "radix", {"values": np.array(values, np.uint32)}, n=4)
    assert np.asarray(reference).tolist() == claimed_numbers("after all bits")
    assert recording.launches


def test_a_histogram_of_bits_and_where_each_value_goes() -> None:
    values = np.array([7, 14, 4, 1])
    bits = values & 1
    counts = np.bincount(bits, minlength=2).tolist()
    assert counts == claimed_numbers("histogram of bit 0 and its exclusive scan")["histogram"]
    prefix = [list(accumulate([0, *counts]))[bit] for bit in bits]
    offset = [int((bits[:place] == bit).sum()) for place, bit in enumerate(bits)]
    table = claimed_numbers("table: prefix sum of the histogram")
    assert (prefix, offset) == (table["prefix"], table["offset"])
    index = [a + b for a, b in zip(prefix, offset, strict=True)]
    assert index == table["index"]
    assert [value for _, value in sorted(zip(index, values.tolist(), strict=True))] == _sort_by_bit(values.tolist(), 0)


def test_two_halves_of_a_ping_pong_fit() -> None:
    found = run("4-warp-radix.cu", "radix_sort", 1, 32, np.arange(31, -1, -1).astype(np.uint32), traced=True)
    assert found.trace is not None
    (shared,) = [array.count for array in found.trace.arrays if array.space == "shared"]
    assert shared == claimed_numbers("s_data of WARP_SIZE * 2 words")
