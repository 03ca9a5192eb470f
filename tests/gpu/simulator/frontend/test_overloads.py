"""Several kernels of one name in one file, told apart by their lines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpu.base.errors import KernelError
from gpu.simulator.simulated_module import SimulatedModule

SOURCE = """// größer: clang counts bytes
__global__ void f(int *o) { o[0] = 1; }
__global__ void f(float *o) { o[0] = 2; }
template <typename T>
__global__ void t(T *o) { o[0] = 3; }
template <typename T> __global__ void t(T *o, int n) { o[0] = n; }
namespace a { __global__ void f(int *o) { o[0] = 5; } }
#ifdef TWICE
__global__ void f(int *o) {
    o[0] = 6;
}
#endif
template <int N> __global__ void s(int *o) { o[0] = N; }
template <> __global__ void s<8>(int *o) { o[0] = 9; }
"""


def result(module: SimulatedModule, name: str) -> int:
    out = np.zeros(4, np.uint8)
    kernel = module.kernel(name)
    kernel.launch((1, 1, 1), (1, 1, 1), [out])
    return int(out.view(kernel.parameters[0][1].element.dtype)[0])  # type: ignore[union-attr]


def refusal(module: SimulatedModule, name: str) -> str:
    with pytest.raises(KernelError) as caught:
        module.kernel(name)
    return caught.value.message


def test_a_line_tells_which() -> None:
    module = SimulatedModule(SOURCE, Path("test.cu"), {})
    assert module.kernels == ("a::f", "s")
    assert module.overloads == ("f@2", "f@3")
    assert [result(module, name) for name in ("f@2", "f@3", "t<int>@4", "t<int>@5", "a::f")] == [1, 2, 3, 3, 5]
    assert len(module.kernel("t<int>@6").parameters) == 2
    assert [result(module, name) for name in ("s<7>", "s<8>")] == [7, 9], "a specialization is none of several"


def test_a_kernel_that_is_defined_twice_runs_by_its_line() -> None:
    module = SimulatedModule(SOURCE, Path("test.cu"), {"TWICE": 1}, tolerant=True)
    assert [result(module, name) for name in ("f@2", "f@3", "f@9", "f@10")] == [1, 2, 6, 6]
    assert "several kernels f, at lines 2, 3 and 9: select one by its line, as in f@2." in refusal(module, "f")


def test_a_name_without_a_line_and_a_line_without_a_kernel_are_refused() -> None:
    module = SimulatedModule(SOURCE, Path("test.cu"), {}, tolerant=True)
    assert refusal(module, "f") == "test.cu has several kernels f, at lines 2 and 3: select one by its line, as in f@2."
    message = refusal(module, "t<int>")
    assert "several kernels t<int>, at lines 4 and 6: select one by its line, as in t<int>@4." in message
    assert refusal(module, "f@5") == "test.cu has no kernel f at line 5; it has f@2, f@3."
    assert refusal(module, "g@5") == "test.cu has no kernel g at line 5; it has none of that name."
    assert "f@x does not name a line" in refusal(module, "f@x")
    assert refusal(module, "g") == "test.cu has no kernel 'g'; it has a::f, s, f@2, f@3, s, t."
