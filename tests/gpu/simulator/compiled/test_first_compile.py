"""Size of the LLVM IR of the longest kernels, which determines the time of their first compilation."""

from __future__ import annotations

import pytest

from gpu.base.paths import KERNELS
from gpu.simulator.compiled.kernel import compile_kernel
from gpu.simulator.simulated_module import SimulatedModule


@pytest.mark.parametrize(
    ("kernel", "max_lines"), [("matmul_wgmma", 9_500), ("matmul_halves", 10_600), ("matmul_tensor", 4_300)]
)
def test_a_long_kernel_has_few_lines(kernel: str, max_lines: int) -> None:
    """Repeated code, such as a product of tiles, is in a function: see `bench simulator`."""
    path = KERNELS / f"{kernel}.cu"
    module = SimulatedModule(path.read_text(encoding="utf-8"), path, {})
    text = compile_kernel(module.kernel(kernel).function, (32, 8, 1), frozenset()).text
    assert text.count("\n") <= max_lines
