"""Whole CUDA programs: their host code as the compiler gets it, names of kernels, and now and then all of it."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np

from gpu.base.errors import LockstepError
from gpu.base.paths import ROOT
from gpu.hosts.program.host_compiler import find_compiler
from gpu.hosts.program.host_text import rewrite_host_text
from gpu.hosts.program.names import kernel_name
from tests.odd_inputs import LONGEST_SENTENCE, mutate_bytes

_RUN = 0.01
_HEADERS = b"/nowhere/headers"
_HOST = b"""# 1 "/usr/include/x.h" 1 3
extern int puts(const char *);
# 1 "a.cu" 2
__device__ int counted[4] = {1, 2, 3}; __constant__ float weights[2];
template <typename T, unsigned N> __global__ void __launch_bounds__(N) add(const T *a, T *b, int n) { b[n] = a[n]; }
namespace { struct Sum { __host__ __device__ int operator()(int x) const { return x; } }; }
static __global__ void plain(int *x, float (*f)[3]) { *x = ')'; /* } */ }
int main() {
    const char *s = "<<<1, 2>>>(3)"; char c = '}';
    add<float, 64><<<dim3(1, 2), 64, 4 * sizeof(int)>>>((float *)0, 0, [] { return 1; }());
    plain<<<1, 32>>>(nullptr, 0);
    return puts(R"x(plain<<<1, 1>>>())x");
}
"""
_NAMES = (
    "void reduce(T*) [with T = float; unsigned int N = 256]", "void (anonymous namespace)::f<T>(T) [T = int]",
    "void a::b(int (*)(char)) [with A = a::C<int>; int N = 3]", "void k(T...) [with T = {int, float}]",
)  # fmt: skip
_PROGRAM = b"""#include <cstdio>
__global__ void add(int *a, int n) { int i = threadIdx.x; if (i < n) a[i] += 1; }
int main(int argc, char **argv) {
    int *a, b[32] = {};
    cudaMalloc(&a, sizeof(b));
    cudaMemcpy(a, b, sizeof(b), cudaMemcpyHostToDevice);
    add<<<1, 32>>>(a, 32);
    cudaMemcpy(b, a, sizeof(b), cudaMemcpyDeviceToHost);
    printf("%d\\n", b[31]);
    return cudaFree(a);
}
"""
_SIZES = (b"(size_t)-1", b"(size_t)-64", b"(size_t)1 << 50", b"0", b"1", b"nullptr", b"(char *)0 - (char *)8")
_CALLS = (
    b"cudaMalloc(&a, %s);", b"cudaMalloc((void **)%s, 8);", b"cudaMemcpy(a, b, %s, cudaMemcpyHostToDevice);",
    b"cudaMemset(a, 0, %s);", b"cudaMemcpy2D(a, 8, b, 8, 8, %s, cudaMemcpyHostToDevice);",
    b"cudaMallocManaged(&a, %s);",
    b"cudaGetDeviceCount((int *)%s);", b"cudaStreamDestroy((cudaStream_t)%s);", b"cudaHostRegister(b, %s, 0);",
    b"cudaEventRecord((cudaEvent_t)%s);", b"cudaLaunchHostFunc(0, (cudaHostFn_t)nullptr, (void *)%s);",
    b"cudaFuncSetAttribute(add, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)(size_t)%s);",
    b"cudaMallocManaged(&a, 64, (unsigned)(size_t)%s);", b"cudaMemAdvise(b, 8, (cudaMemoryAdvise)(size_t)%s, 0);",
    b"cudaGraphLaunch((cudaGraphExec_t)%s, 0);", b"cudaEventSynchronize((cudaEvent_t)%s);",
)  # fmt: skip
_TARGETS = ("r.json", "none/r.json", "loop", "folder", "/dev/full", "fifo", "x" * 300, "p.cu")


def attack(random: np.random.Generator, folder: Path) -> None:
    """Rewrite a host text that was changed, or run a program of which some bytes are others."""
    if random.random() < _RUN and _can_compile():
        _run(random, folder)
        return
    text = mutate_bytes(random, _HOST)
    assert isinstance(rewrite_host_text(text, 0, _HEADERS), bytes)
    pretty = mutate_bytes(random, _NAMES[int(random.integers(len(_NAMES)))].encode()).decode(errors="replace")
    assert isinstance(kernel_name(pretty, int(random.integers(-1, 4))), str)


@cache
def _can_compile() -> bool:
    try:
        return bool(find_compiler())
    except LockstepError:
        return False


def _run(random: np.random.Generator, folder: Path) -> None:
    program = folder / "p.cu"
    if random.random() < 0.5:
        call = _CALLS[int(random.integers(len(_CALLS)))] % _SIZES[int(random.integers(len(_SIZES)))]
        program.write_bytes(_PROGRAM.replace(b"    add<<<", b"    " + call + b"\n    add<<<"))
    else:
        program.write_bytes(mutate_bytes(random, _PROGRAM, head=len(_PROGRAM)))
    before = program.read_bytes()
    (folder / "folder").mkdir()
    (folder / "loop").symlink_to("loop")
    os.mkfifo(folder / "fifo")
    options = ["--check"] if random.random() < 0.5 else []
    if random.random() < 0.7:
        options += ["--report", _TARGETS[int(random.integers(len(_TARGETS) - 1))]]
    command = [sys.executable, str(ROOT / "main.py"), "program", "p.cu", *options, "--", "a", "\udcff"]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    said = done.stderr.decode(errors="replace")
    assert "Traceback" not in said, said
    assert 0 <= done.returncode <= 255
    if "--report" in options and options[-1] not in ("r.json", "loop"):  # a link is replaced
        assert done.returncode == 2
        assert said.count("\n") == 1
        assert len(said) < LONGEST_SENTENCE
    assert program.read_bytes() == before
