import pytest

from gpu.kernel.simulate import simulate
from tests.gpu.simulator.checkers.independent_kernels import PAIRS, KernelPair


def find_kinds(pair: KernelPair, source: str) -> set[str]:
    simulation = simulate("k.cu", "k", pair.grid, pair.block, pair.arguments, source=source)
    return {finding.kind for finding in simulation.findings}


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.right)
def test_a_right_kernel_has_no_findings(pair: KernelPair) -> None:
    assert not find_kinds(pair, pair.source), pair.reason


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.wrong)
def test_a_wrong_kernel_has_a_finding(pair: KernelPair) -> None:
    assert find_kinds(pair, pair.build_wrong_source()) & set(pair.kinds), pair.error
