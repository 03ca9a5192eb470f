import pytest

from gpu.kernel.simulate import simulate
from tests.gpu.simulator.checkers import independent_kernels, weak_order_kernels
from tests.gpu.simulator.checkers.independent_kernels import KernelPair

PAIRS = (*independent_kernels.PAIRS, *weak_order_kernels.PAIRS, *weak_order_kernels.TRIAL_PAIRS)

# An endless loop costs the whole limit. No right kernel reaches it.
MAX_STEPS = 2_000


def find_kinds(pair: KernelPair, source: str, **options: bool) -> set[str]:
    simulation = simulate(
        "k.cu", "k", pair.grid, pair.block, pair.arguments, source=source, max_steps=MAX_STEPS, **options
    )
    return {finding.kind for finding in simulation.findings}


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.right)
def test_a_right_kernel_has_no_findings(pair: KernelPair) -> None:
    assert not find_kinds(pair, pair.source), pair.reason


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.wrong)
def test_a_wrong_kernel_has_a_finding(pair: KernelPair) -> None:
    assert find_kinds(pair, pair.build_wrong_source()) & set(pair.kinds), pair.error


# Of the wrong twins, an endless loop costs its whole time limit, and trials find the others without a recording.
_NOT_RECORDED = {
    "cuda::counting_semaphore for two warps at a time",
    "first wait for parity 1",
    "latch that waits for one of two warps",
    "barrier object that a warp leaves without notice",
    "sequence lock over plain data",
    "sum of values that waits for one of two additions",
    *(pair.wrong for pair in weak_order_kernels.TRIAL_PAIRS),
}


@pytest.mark.parametrize(
    "pair",
    [
        # The first tier records one pair in four.
        pytest.param(pair, id=pair.right, marks=[pytest.mark.sweep] * (number % 4 > 0))
        for number, pair in enumerate(PAIRS)
    ],
)
def test_a_recording_has_the_same_verdict(pair: KernelPair) -> None:
    assert not find_kinds(pair, pair.source, traced=True), pair.reason
    if pair.wrong not in _NOT_RECORDED:
        assert find_kinds(pair, pair.build_wrong_source(), traced=True) & set(pair.kinds), pair.error


@pytest.mark.parametrize("pair", weak_order_kernels.TRIAL_PAIRS[:3], ids=lambda pair: pair.wrong)
def test_a_race_by_a_late_write_names_its_cause(pair: KernelPair) -> None:
    findings = simulate("k.cu", "k", pair.grid, pair.block, pair.arguments, source=pair.build_wrong_source()).findings
    assert "only after the thread has read the other flag" in findings[0].message
    assert "--schedule" not in findings[0].message


@pytest.mark.parametrize(
    ("right", "operation"), [("relaxed arrival after a fence", "arrival"), ("relaxed wait before a fence", "wait")]
)
def test_a_relaxed_operation_on_a_barrier_object_names_its_cause(right: str, operation: str) -> None:
    pair = next(pair for pair in PAIRS if pair.right == right)
    findings = simulate("k.cu", "k", pair.grid, pair.block, pair.arguments, source=pair.build_wrong_source()).findings
    assert f"thread's {operation} at the barrier is relaxed" in findings[0].message
