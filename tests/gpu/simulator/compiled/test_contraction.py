"""Products and sums that are fused, in both executors and in recordings: the same bits, and those of nvcc's choice."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu.base.devices.probe import find_nvcc
from gpu.simulator.frontend.program import Program
from gpu.simulator.ir.contraction import is_exact_product
from gpu.simulator.ir.walking import walk
from gpu.simulator.simulated_module import SimulatedModule
from gpu.timing.sass.cubin import read_cubin
from tests import needs
from tests.gpu.simulator.trace_checks import fma, trace_kernel

Array = np.ndarray[Any, Any]
COUNT = 64


# The statements of a kernel, and what nvcc 12 computes for compute capability 9.0, as its machine code shows.
SHAPES: dict[str, Any] = {
    "r = a * b + c;": lambda a, b, c, d: fma(a, b, c),
    "r = c + a * b;": lambda a, b, c, d: fma(a, b, c),
    "r = (a * b) + (c);": lambda a, b, c, d: fma(a, b, c),
    "r = a * b - c;": lambda a, b, c, d: fma(a, b, -c),
    "r = c - a * b;": lambda a, b, c, d: fma(-a, b, c),
    "r = -c + a * b;": lambda a, b, c, d: fma(a, b, -c),
    "r = a * b + c * d;": lambda a, b, c, d: fma(a, b, c * d),
    "r = a * b - c * d;": lambda a, b, c, d: fma(a, b, -(c * d)),
    "r = a * b + c * d + a * d;": lambda a, b, c, d: fma(a, d, fma(a, b, c * d)),
    "r = (a * b + c) + (c * d + a);": lambda a, b, c, d: fma(a, b, c) + fma(c, d, a),
    "r = a * b * c + d;": lambda a, b, c, d: fma(a * b, c, d),
    "r = a + (b - a) * c;": lambda a, b, c, d: fma(b - a, c, a),
    "r = ((a * b + c) * b + d) * b + a;": lambda a, b, c, d: fma(fma(fma(a, b, c), b, d), b, a),
    "r = 3 * a + 1;": lambda a, b, c, d: fma(type(a)(3), a, type(a)(1)),
    "r = a * b + c / d;": lambda a, b, c, d: fma(a, b, c / d),
    "r = c; r += a * b;": lambda a, b, c, d: fma(a, b, c),
    "r = c; r -= a * b;": lambda a, b, c, d: fma(-a, b, c),
    "r = c; for (int k = 0; k < 3; ++k) r += a * d;": lambda a, b, c, d: fma(a, d, fma(a, d, fma(a, d, c))),
    "r = (c > 0 ? a * b : d) + c;": lambda a, b, c, d: (a * b if c > 0 else d) + c,
    "T p = a * b; r = (p + c) * p;": lambda a, b, c, d: (a * b + c) * (a * b),
    "r = T(int(a * 9) * 3 + 1);": lambda a, b, c, d: type(a)(int(a * type(a)(9)) * 3 + 1),
}


def make_kernel(statements: str, type: str) -> str:
    return f"""
    typedef {type} T;
    extern "C" __global__ void k(const T *x, T *out) {{
        int i = threadIdx.x;
        T a = x[4 * i], b = x[4 * i + 1], c = x[4 * i + 2], d = x[4 * i + 3], r;
        {statements}
        out[i] = r;
    }}"""


def draw_operands(dtype: Any) -> Array:
    return np.random.default_rng(5).standard_normal((COUNT, 4)).astype(dtype)


def launch(kernel: Any, values: Array) -> Array:
    out = np.zeros(COUNT, values.dtype)
    kernel.launch((1, 1, 1), (COUNT, 1, 1), [values.reshape(-1).view(np.uint8), out.view(np.uint8)])
    return out


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("statements", SHAPES)
def test_executors_and_recordings_fuse_what_nvcc_fuses(statements: str, dtype: Any) -> None:
    text, values = make_kernel(statements, "float" if dtype is np.float32 else "double"), draw_operands(dtype)
    expected = np.array([SHAPES[statements](*row) for row in values], dtype)
    module = SimulatedModule(text, Path("kernel.cu"), {})
    assert launch(module.kernel("k"), values).tobytes() == expected.tobytes()
    assert launch(module.compiled_kernel("k"), values).tobytes() == expected.tobytes()
    _, (_, traced) = trace_kernel(text, [values.reshape(-1), np.zeros(COUNT, dtype)], block=COUNT)
    assert traced.tobytes() == expected.tobytes()


def test_the_cases_differ_from_those_of_separate_rounding() -> None:
    values = draw_operands(np.float32)
    assert any(fma(a, b, c) != a * b + c for a, b, c, _ in values)


@pytest.mark.parametrize(("type", "multiply"), [("float", "__fmul_rn"), ("double", "__dmul_rn")])
def test_intrinsics_that_round_are_never_fused(type: str, multiply: str) -> None:
    text = make_kernel(f"r = {multiply}(a, b) + c;", type)
    values = draw_operands(np.float32 if type == "float" else np.float64)
    module = SimulatedModule(text, Path("kernel.cu"), {})
    for kernel in (module.kernel("k"), module.compiled_kernel("k")):
        assert np.array_equal(launch(kernel, values), values[:, 0] * values[:, 1] + values[:, 2])


def test_lengths_around_a_vector_and_lanes_that_a_branch_selects() -> None:
    text = """extern "C" __global__ void k(const float *x, float *out, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n && i % 3) out[i] = x[i] * x[0] + x[i];
    }"""
    module = SimulatedModule(text, Path("kernel.cu"), {})
    for n in (0, 1, 15, 16, 17, 33, 250):
        x = np.random.default_rng(n).standard_normal(max(n, 1)).astype(np.float32)
        expected = [fma(each, x[0], each) if i % 3 else 0 for i, each in enumerate(x)][:n]
        for kernel in (module.kernel("k"), module.compiled_kernel("k")):
            out = np.zeros(max(n, 1), np.float32)
            kernel.launch((5, 1, 1), (50, 1, 1), [x.view(np.uint8), out.view(np.uint8), np.int32(n)])
            assert np.array_equal(out[:n], np.array(expected, np.float32))


@needs.nvcc
def test_nvcc_fuses_as_many_products(tmp_path) -> None:
    shapes = [each for each in SHAPES if "/" not in each and "for" not in each]
    texts = [make_kernel(each, "float").replace("void k(", f"void k{n}(") for n, each in enumerate(shapes)]
    path, cubin = tmp_path / "k.cu", tmp_path / "k.cubin"
    path.write_text("".join(texts))
    nvcc = str(find_nvcc())
    subprocess.run([nvcc, "-arch=sm_90", "-lineinfo", "-cubin", str(path), "-o", str(cubin)], check=True, timeout=120)
    code = read_cubin(cubin.read_bytes(), "k.cu", "9.0")
    program = Program(path.read_text(), path, {})
    for number, statements in enumerate(shapes):
        fused = sum(each.opcode == "FFMA" for each in code[f"k{number}"])
        assert fused == sum(map(is_exact_product, walk(program.lower_kernel(f"k{number}").body))), statements
