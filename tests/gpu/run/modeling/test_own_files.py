"""Kernels of files that nvcc compiles only in part, or that call what the host handles."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpu.run.modeling.timing_model import ModeledRun
from tests import needs
from tests.gpu.timing.modeled_kernels import model_kernel

KERNEL = """\
#include <cassert>
#include <cstdio>
template <typename T> __global__ void twice(T *a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    CHECK
    if (i < n) a[i] = 2 * a[i] + 1;
    PRINT
}
"""
CALLS = KERNEL.replace("CHECK", "assert(n > 0 && i >= 0);").replace("PRINT", 'if (i == n) printf("%d of %d\\n", i, n);')
PLAIN = KERNEL.replace("CHECK", "").replace("PRINT", "")
HOST = "#include <library_that_is_missing.h>\n"
COUNT = 1 << 24


def model(text: str) -> ModeledRun:
    arguments = [np.zeros(COUNT, np.float32), COUNT]
    return model_kernel(Path("own.cu"), text, "twice<float>", COUNT // 256, 256, arguments, "h200")


@needs.nvcc
def test_assertions_and_prints_that_do_not_run_take_no_time():
    run, plain = model(CALLS), model(PLAIN)
    assert (run.source, run.note) == ("sass", "")
    assert abs(run.time_us / plain.time_us - 1) < 0.05


@needs.nvcc
def test_a_file_that_nvcc_rejects_is_compiled_by_llvm_and_said_to_be():
    run, plain = model(HOST + CALLS), model(PLAIN)
    assert run.source == "ir"
    assert run.note.startswith("nvcc rejects own.cu: own.cu:1:10: fatal error: library_that_is_missing.h: ")
    assert run.note.endswith(". LLVM compiled the kernel instead.")
    assert run.data()["note"] == run.note
    assert abs(run.time_us / plain.time_us - 1) < 0.1


@needs.nvcc
@pytest.mark.parametrize(
    ("type", "value", "called"),
    [("double", "pow(x[i], 1.7)", "__internal_accurate_pow"), ("float", "scaled(x[i])", "_Z6scaledf")],
)
def test_a_function_that_nvcc_does_not_inline_is_compiled_by_llvm(type: str, value: str, called: str) -> None:
    text = f"""__device__ __noinline__ float scaled(float x) {{ return 3 * x; }}
    __global__ void apply({type} *x, int n) {{ int i = threadIdx.x; if (i < n) x[i] = {value}; }}"""
    run = model_kernel(Path("own.cu"), text, "apply", 1, 32, ["random:32", "32"], "h200")
    assert (run.source, run.note) == (
        "ir",
        f"nvcc's PTX calls the function {called}. LLVM compiled the kernel instead.",
    )


@needs.nvcc
def test_one_of_several_instantiations_of_a_template_is_modeled():
    both = "".join(f"template __global__ void twice<{each}>({each} *, int);\n" for each in ("double", "float", "int"))
    run, plain = model(PLAIN + both), model(PLAIN)
    assert (run.source, run.note) == ("sass", "")
    assert abs(run.time_us / plain.time_us - 1) < 0.05


def test_types_of_two_words_are_template_arguments():
    text = (
        HOST
        + "template <class T, class I> __global__ void twice(T *x, I n) { if (threadIdx.x < n) x[threadIdx.x] *= 2; }"
    )
    run = model_kernel(Path("own.cu"), text, "twice< float ,unsigned int>", 1, 32, ["zeros:32", "32"], "h200")
    assert run.launches[0].time_us > 0
