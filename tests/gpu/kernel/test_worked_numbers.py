"""Numbers that the teaching texts work out, as the simulator gives them when it runs the texts' kernels."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from gpu.kernel.simulate import Simulation, simulate
from tests import needs
from tests.gpu.kernel.test_listings import LISTINGS

EXAMPLES = LISTINGS / "examples.json"
KNOWN = json.loads(EXAMPLES.read_text(encoding="utf-8")) if EXAMPLES.is_file() else []
PHRASE = "programming massively parallel processors."

pytestmark = needs.needs(KNOWN, needs.LISTINGS)


def claimed_numbers(beginning: str, **inputs: Any) -> Any:
    """Return the numbers of the claim that begins so."""
    (only,) = [
        each["numbers"]["right"]
        for each in KNOWN
        if each["claim"].startswith(beginning) and inputs.items() <= each["inputs"].items()
    ]
    return only


def run(
    file: str,
    kernel: str,
    grid: int,
    block: int,
    *arguments: Any,
    shared: int = 0,
    traced: bool = False,
    **defines: int,
) -> Simulation:
    return simulate(
        LISTINGS / file, kernel, grid, block, arguments, shared_bytes=shared, defines=defines, traced=traced
    )


def count(simulation: Simulation, line: int, name: str) -> float:
    """Return what was counted of a line; 0 where it did not run."""
    return sum(counts.get(name, 0) for (_, at), counts in simulation.counters.per_line.items() if at == line)


def total(simulation: Simulation, name: str) -> float:
    return simulation.counters.total.get(name, 0)


def letters(text: str) -> np.ndarray[Any, Any]:
    return np.frombuffer(text.encode(), np.uint8)


def test_threads_that_do_nothing_in_a_reduction_of_neighbors() -> None:
    simulation = run("0-neighbored.cu", "reduceNeighbored", 1, 8, "arange:8", "empty:1", 8)
    idle = claimed_numbers("with tid % (2 * stride) == 0 half of the threads do nothing")
    assert count(simulation, 12, "lane_statements") == sum(8 - 8 * each for each in idle)


def test_warps_that_add_in_a_reduction_of_neighbors() -> None:
    warps = claimed_numbers("index = 2 * stride * tid uses the threads better")
    first = run("0-neighbored.cu", "reduceNeighbored", 1, 128, "arange:128", "empty:1", 128)
    assert count(first, 12, "warp_statements") == sum(warps["neighbored"])
    second = run("0-neighbored-less.cu", "reduceNeighboredLess", 1, 128, "arange:128", "empty:1", 128)
    assert count(second, 14, "warp_statements") == sum(warps["neighbored less"])


def test_a_block_that_is_no_power_of_two_loses_elements() -> None:
    simulation = run("1-two-stage-repaired.cu", "reductionKernel", 1, 96, "empty:1", "full:96:1", 96, shared=384)
    assert simulation.arrays[0][0] == claimed_numbers("blockDim.x must be a multiple of 32")


def test_two_launches_give_the_whole_sum() -> None:
    kernel = ("1-two-stage-repaired.cu", "reductionKernel")
    partial = run(*kernel, 4, 64, "empty:4", "arange:1000", 1000, shared=256).arrays[0]
    whole = run(*kernel, 1, 64, "empty:1", partial, 4, shared=256)
    assert whole.arrays[0][0] == claimed_numbers("two calls of the kernel, the second with one block")


def test_warps_that_work_and_diverge_in_the_naive_reduction() -> None:
    wanted = claimed_numbers("after the 5th step entire warps fail the test")
    arguments = ("zeros:2048", "empty:1")
    simulation = run("2-reduction-naive-repaired.cu", "reduce_naive", 1, 1024, *arguments, BLOCK_SIZE=1024)
    assert count(simulation, 19, "warp_statements") == sum(wanted["warps that work"])
    assert count(simulation, 18, "divergent_branches") == sum(wanted["warps that diverge"])
    active = claimed_numbers("after the first step half of the threads or fewer execute")
    assert count(simulation, 19, "lane_statements") == sum(active)


def test_the_better_reduction_diverges_in_its_last_steps_alone() -> None:
    arguments = ("zeros:2048", "empty:1")
    simulation = run("2-reduction-better-repaired.cu", "reduce_better", 1, 1024, *arguments, BLOCK_SIZE=1024)
    assert count(simulation, 19, "divergent_branches") == claimed_numbers("the final 5 steps still diverge")
    assert claimed_numbers("the better kernel has no divergence in the first 5 steps") == 11 - 5


def inclusive(values: list[float]) -> list[float]:
    arguments = ("empty:" + str(len(values)), np.array(values, np.float32), len(values), 0)
    return [float(each) for each in run("4-scan-v1.cu", "scan_v1_kernel", 1, len(values), *arguments).arrays[0]]


def test_scans() -> None:
    sausage = claimed_numbers("where to cut a sausage")
    assert inclusive([3, 5, 2, 7, 28, 4, 3, 0, 8, 1]) == sausage["cuts"]
    assert 100 - sausage["cuts"][-1] == sausage["left"]
    assert inclusive([3, 1, 7, 0, 4, 1, 6, 3]) == claimed_numbers("inclusive scan")
    assert inclusive([1, 2, 3, 4, 5, 6]) == claimed_numbers("prefix sums of 1 to 6")
    values = np.array([3, 1, 7, 0, 4, 1, 6, 3], np.float32)
    exclusive = run("2-scan-exclusive-efficient.cu", "scan_exclusive", 1, 4, values, "empty:8", 8, BLOCK_SIZE=4)
    assert exclusive.arrays[1][:4].tolist() == claimed_numbers("exclusive scan")[:4], "the other half is not written"


@pytest.mark.parametrize("threads", [32, 512])
def test_bank_conflicts_of_a_scan(threads: int) -> None:
    wanted = claimed_numbers("threads of scan_v2 meet in banks", BLOCK_DIM=threads)
    n = 2 * threads
    simulation = run(
        "4-scan-v2.cu", "scan_v2_kernel", 1, threads, f"empty:{n}", f"arange:{n}", n, shared=4 * n, BLOCK_DIM=threads
    )
    for action, name in (("ld", "conflicts of loads"), ("st", "conflicts of stores")):
        metric = f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{action}.sum"
        assert sum(count(simulation, line, metric) for line in (19, 29)) == wanted[name]


@pytest.mark.parametrize("file", ["3-fig-9-6-repaired.cu", "3-fig-9-8.cu"])
def test_letters_in_bins_of_four(file: str) -> None:
    for text, wanted in (
        (PHRASE[:24], claimed_numbers("histogram of the first 24 characters")),
        (PHRASE, claimed_numbers("bins of four letters")),
    ):
        simulation = run(file, "histo_kernel", 1, 4, letters(text), len(text), "zeros:7")
        assert simulation.arrays[2].tolist() == wanted
    hottest = claimed_numbers("the phrase spreads worse than over 7 bins")
    assert (max(wanted), sum(wanted)) == (hottest["hottest bin"], hottest["letters"])


def test_letters_of_neighbors_are_read_in_one_access() -> None:
    wanted = claimed_numbers("interleaving reads neighbouring characters in one access")
    for figure, file, line in (("figure 9.6", "3-fig-9-6-repaired.cu", 12), ("figure 9.8", "3-fig-9-8.cu", 8)):
        simulation = run(file, "histo_kernel", 1, 32, "full:1024:97", 1024, "zeros:7")
        metric = "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio"
        assert count(simulation, line, metric) == wanted[figure]


def test_sections_of_a_thousand_characters() -> None:
    wanted = claimed_numbers("1000 characters, 256 threads")
    simulation = run("3-fig-9-6-repaired.cu", "histo_kernel", 1, 256, "full:1000:97", 1000, "zeros:7")
    assert count(simulation, 12, "lane_statements") == 1000 == wanted["busy"] * wanted["section"]
    assert (256 - wanted["idle"], 8 * wanted["section"]) == (wanted["busy"], wanted["thread 8"])


def test_two_convolutions_differ_along_the_border() -> None:
    image = np.array([5 * each % 11 for each in range(64)], np.float32)
    weights = np.array([1, 2, 1, 2, 4, 2, 1, 2, 1], np.float32)
    launch = ((2, 2), (4, 4), ("empty:64", image, weights, 8, 8, 3))
    first = simulate(LISTINGS / "4-conv-v1.cu", "convolution_kernel_v1", *launch)
    second = simulate(LISTINGS / "4-conv-v2.cu", "convolution_kernel_v2", *launch, constants={"c_filter": weights})
    differing = claimed_numbers("versions 1 and 2 filter the same")["pixels that differ"]
    assert np.count_nonzero(first.arrays[0] != second.arrays[0]) == differing


def test_a_softmax() -> None:
    values = np.arange(4, dtype=np.float32)
    simulation = run("4-softmax.cu", "softmax", 1, 4, values, "empty:4", BLOCK_DIM=4)
    np.testing.assert_allclose(simulation.arrays[1], claimed_numbers("reduction serves a softmax layer"), atol=1e-6)
