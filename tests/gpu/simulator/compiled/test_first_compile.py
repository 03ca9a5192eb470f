"""What LLVM is given of our longest kernels: how long they take to compile the first time goes by that."""

from __future__ import annotations

import pytest

from gpu.engines.base import KERNELS
from gpu.simulator.compiled.kernel import compile_kernel
from gpu.simulator.simulated_module import SimulatedModule


@pytest.mark.parametrize(
    ("kernel", "most"), [("matmul_wgmma", 9_500), ("matmul_halves", 10_600), ("matmul_tensor", 4_300)]
)
def test_a_long_kernel_has_few_lines(kernel: str, most: int) -> None:
    """What all of its places do alike, such as a product of tiles, stands in a function: see `bench simulator`."""
    path = KERNELS / f"{kernel}.cu"
    module = SimulatedModule(path.read_text(encoding="utf-8"), path, {})
    text = compile_kernel(module.kernel(kernel).function, (32, 8, 1), frozenset()).text
    assert text.count("\n") <= most
