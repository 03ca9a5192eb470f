"""Device code that calls host functions: rejected as by nvcc 13.0, which was asked about each example."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpu.base.errors import CompileError
from gpu.files.sources import RELAXED_CONSTEXPR
from gpu.messages.compiler_options import parse_compiler_options
from gpu.simulator.simulated_module import SimulatedModule
from tests.gpu.simulator.kernel_runner import launch

HEADER = "#include <algorithm>\n#include <array>\n#include <limits>\n#include <utility>\n"
MAX, METHOD = "std::max: use max(a, b)", "of a class of std"
REJECTED = {
    "max": ("", "x[0] = std::max(x[1], x[2]);", MAX),
    "min": ("", "x[0] = std::min(x[1], x[2]);", "std::min: use min(a, b)"),
    "clamp": ("", "x[0] = std::clamp(x[1], 0, 5);", "std::clamp: use min(max(value, low), high)"),
    "of constants": ("", "constexpr int m = std::max(3, 4); x[0] = m;", MAX),
    "an extent": ("", "__shared__ int s[std::max(8, 16)]; s[0] = 1;", MAX),
    "in a lambda": ("", "auto f = [](int a, int b) { return std::max(a, b); }; x[0] = f(x[1], x[2]);", MAX),
    "in a function": ("__device__ int f(int a, int b) { return std::max(a, b); }", "x[0] = f(x[1], x[2]);", MAX),
    "in a template": (
        "template <class T> __device__ T f(T a, T b) { return std::max(a, b); }", "x[0] = f(x[1], x[2]);", MAX,
    ),
    "limits": ("", "x[0] = std::numeric_limits<int>::max();", METHOD),
    "array's element": ("", "std::array<int, 3> a; a[0] = x[1]; x[0] = a[0];", METHOD),
    "array's size": ("", "std::array<int, 3> a; x[0] = a.size();", METHOD),
    "pair": ("", "auto p = std::make_pair(x[1], x[2]); x[0] = p.first;", "std::make_pair: use cuda::std::make_pair"),
    "pair's constructor": ("", "std::pair<int, int> p(1, x[1]); x[0] = p.second;", "std::pair: use cuda::std::pair"),
    "own function": ("constexpr int f(int a) { return a + 1; }", "x[0] = f(x[1]);", "declare it __host__ __device__"),
}  # fmt: skip
_RELAXED = ("std::max", "std::min", "std::clamp", "::max()")
ACCEPTED = {
    "math": ("", "x[0] = std::abs(x[1]) + (int)(std::sqrt(4.0f) + std::fmax(1.0f, 2.0f));"),
    "move": ("", "int a = x[1]; int b = std::move(a); x[0] = b;"),
    "forward": ("template <class T> __device__ int f(T &&t) { return std::forward<T>(t); }", "x[0] = f(x[1]);"),
    "global max": ("using namespace std;", "x[0] = max(x[1], x[2]);"),
    "cuda::std": (
        "#include <cuda/std/algorithm>\n#include <cuda/std/limits>\n#include <cuda/std/array>\n",
        "cuda::std::array<int, 2> a = {1}; x[0] = cuda::std::max(x[1], a[1]) - cuda::std::numeric_limits<int>::min();",
    ),
    "a pair as a parameter": ("__device__ int f(std::pair<int, long> p) { return p.first; }", "x[0] = 1;"),
    "cuda::std::pair": ("#include <cuda/std/utility>\n", "cuda::std::pair<int, int> p(x[1], 2); x[0] = p.first;"),
    "cuda::std::swap": ("#include <cuda/std/utility>\n", "cuda::std::swap(x[1], x[2]);"),
    "cuda::std::clamp": ("#include <cuda/std/algorithm>\n", "x[0] = cuda::std::clamp(x[1], 0, 3);"),
    "constexpr on both sides": (
        "__host__ __device__ constexpr int f(int a) { return a + 1; }",
        "constexpr int b = f(2); x[0] = f(b);",
    ),
    "constant outside": ("struct S { static constexpr int bytes = std::max(3, 4); };", "x[0] = S::bytes;"),
    "host code": ("int main() { int a = 1, b = 2; std::swap(a, b); return std::max(a, b); }", "x[0] = 1;"),
}


def build(declarations: str, body: str, **defines: str) -> None:
    source = f"{HEADER}{declarations}\n__global__ void k(int *x) {{\n    {body}\n}}"
    SimulatedModule(source, Path("test.cu"), defines).kernel("k")


@pytest.mark.parametrize("case", REJECTED)
def test_a_call_of_a_host_function_is_rejected_unless_constexpr_is_relaxed(case: str) -> None:
    declarations, body, message = REJECTED[case]
    with pytest.raises(CompileError, match="device code cannot call the host function") as caught:
        build(declarations, body)
    assert message in caught.value.message
    assert ("--expt-relaxed-constexpr" in caught.value.message) == any(each in body + declarations for each in _RELAXED)
    assert caught.value.position is not None
    own = caught.value.position.line == HEADER.count("\n") + (1 if "std::" in declarations else 3)
    assert own, caught.value.position
    build(declarations, body, **{RELAXED_CONSTEXPR: "1"})


@pytest.mark.parametrize("case", ACCEPTED)
def test_what_nvcc_accepts_is_accepted(case: str) -> None:
    build(*ACCEPTED[case])


def test_swap_is_no_constexpr_function_in_cpp17() -> None:
    for defines in ({}, {RELAXED_CONSTEXPR: "1"}):
        with pytest.raises(CompileError, match="std::swap: exchange the values through a variable"):
            build("", "std::swap(x[0], x[1]);", **defines)


def test_the_option_of_nvcc_is_understood() -> None:
    assert parse_compiler_options("--expt-relaxed-constexpr -D N=2", Path()).defines == {
        RELAXED_CONSTEXPR: "1",
        "N": "2",
    }


def test_constants_of_constexpr_functions_and_members_of_numeric_limits() -> None:
    """As vLLM clamps to eight bits."""
    source = """
    #include <cub/util_type.cuh>
    #include <cstdint>
    #include <limits>
    __device__ float clamp(float x) {
        static constexpr auto low = static_cast<float>(std::numeric_limits<int8_t>::min());
        static constexpr double high = std::numeric_limits<int8_t>::max() + 0.5;
        return x < low ? low : x > high ? high : x;
    }
    template <typename T> __global__ void k(float *x, int *limits) {
        x[threadIdx.x] = clamp(x[threadIdx.x]);
        limits[0] = std::numeric_limits<T>::digits;
        if constexpr (std::numeric_limits<T>::is_signed) limits[1] = std::numeric_limits<T>::is_integer;
        limits[2] = isnan(std::numeric_limits<float>::quiet_NaN());
    }"""
    module = SimulatedModule(source, Path("test.cu"), {RELAXED_CONSTEXPR: "1"})
    for type, expected in (("int", [31, 1, 1]), ("unsigned short", [16, 0, 1]), ("double", [53, 0, 1])):
        x, limits = launch(module, f"k<{type}>", np.float32([-200, 3, 200]), np.zeros(3, np.int32), block=3)
        assert (x.tolist(), limits.tolist()) == ([-128, 3, 127.5], expected)
