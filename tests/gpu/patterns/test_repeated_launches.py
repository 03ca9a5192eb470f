"""Kernels that keep words of memory from one launch to the next leave them so that the next can begin."""

from __future__ import annotations

from typing import Any

import pytest

from gpu.engines.base import Argument, Extent, Kernel
from gpu.engines.simulator import SimulatorEngine
from gpu.patterns import find_pattern
from gpu.run.pattern_run import run_pattern
from gpu.run.workload import Workload


class _RepeatingEngine(SimulatorEngine):
    """Launches each kernel three times, on the same arguments."""

    def launch(self, kernel: Kernel, grid: Extent, block: Extent, *arguments: Argument, shared_bytes: int = 0) -> None:
        for _ in range(3):
            super().launch(kernel, grid, block, *arguments, shared_bytes=shared_bytes)


@pytest.mark.parametrize(
    ("name", "variant", "given"),
    [
        ("reduction", "last-block", {"n": 3001, "block": "64"}),
        ("reduction", "peak", {"n": 9001, "block": "64"}),
        ("scan", "look-back", {"n": 3001, "block": "64"}),
        ("compaction", "look-back", {"n": 3001, "block": "64"}),
        ("histogram", "peak", {"of": "numbers", "n": 70001, "dtype": "uint8", "bins": 100}),
    ],
)
@pytest.mark.parametrize("executor", ["lockstep", "compiled"])
def test_a_launch_finds_what_the_one_before_left(executor: str, name: str, variant: str, given: dict[str, Any]) -> None:
    pattern = find_pattern(name)
    outcome = run_pattern(
        _RepeatingEngine(executor), Workload(pattern, pattern.variant(variant), {}, given), lambda progress: None
    )
    assert outcome.report.verified
