"""Loads through the read-only cache: an error if the launch writes the data, and only then."""

from __future__ import annotations

import numpy as np
import pytest

from gpu.base.findings import Finding
from gpu.simulator.checkers.races.races import RaceChecker
from gpu.simulator.executor.textures import Texture
from tests.gpu.simulator.watched_launch import finding_lines, launch_watched

HEAD = """#include <cooperative_groups.h>
__device__ int load(const int *place) {
    int value;
    asm volatile("ld.global.nc.s32 %0, [%1];" : "=r"(value) : "l"(place));
    return value;
}
__global__ void f(int *a, int *b, int *out) {
int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
"""
FIRST = HEAD.count("\n") + 1


def find_loads(body: str) -> list[Finding]:
    checker, arrays = RaceChecker(), [np.arange(66, dtype=np.int32) for _ in range(3)]
    launch_watched(checker, f"{HEAD}{body}\n}}", *arrays, grid=2, block=33)
    return [finding for finding in checker.findings if finding.kind == "read-only-load"]


WRITTEN = {
    "written before by the thread": "a[i] = 1;\nout[i] = __ldg(&a[i]);",
    "written before by another thread": "a[i] = 1;\n__syncthreads(); out[i] = __ldg(a + blockIdx.x * 33 + 32 - t);",
    "written after by the thread": "int x = __ldg(&a[i]);\na[i] = x + 1;",
    "written after by another thread": "int x = __ldg(&a[i]); __syncthreads();\na[blockIdx.x * 33 + 32 - t] = x;",
    "updated atomically": "atomicAdd(&a[i], 1);\nout[i] = __ldg(&a[i]);",
    "updated atomically after the load": "int x = __ldg(&a[i]);\natomicAdd_block(&a[i], x);",
    "PTX": "a[i] = 1;\nout[i] = load(&a[i]);",
    "vector": "if (i >= 64) return; a[i ^ 1] = 1; __syncthreads();\n"
    "if (i % 2 == 0) out[i] = __ldg((const int2 *)a + i / 2).y;",
    "byte of a word": "((char *)a)[4 * i + 3] = 1;\nout[i] = __ldg(&a[i]);",
    "grid barrier": "a[i] = 1; cooperative_groups::this_grid().sync();\nout[i] = __ldg(&a[65 - i]);",
    "grid barrier after the load": "int x = __ldg(&a[i]); cooperative_groups::this_grid().sync();\na[65 - i] = x;",
}


@pytest.mark.parametrize(("write", "is_wrong"), [("a[t] = t;", True), ("", False)])
def test_data_that_a_texture_reads_and_the_launch_writes(write: str, *, is_wrong: bool) -> None:
    source = f"""__global__ void f(cudaTextureObject_t texture, float *a, float *out) {{
    int t = threadIdx.x;
    {write}
    __syncthreads();
    out[t] = tex1Dfetch<float>(texture, 31 - t); }}"""
    checker, (a, out) = RaceChecker(), (np.zeros(32, np.float32) for _ in range(2))
    launch_watched(checker, source, Texture(a.view(np.uint8), (32,), 4), a, out, block=32)
    assert [finding.kind for finding in checker.findings] == ["read-only-load"] * is_wrong
    assert finding_lines(checker.findings) == [(3, 5)] * is_wrong


@pytest.mark.parametrize("name", WRITTEN)
def test_data_that_the_launch_writes(name: str) -> None:
    assert find_loads(WRITTEN[name])


@pytest.mark.parametrize(
    "body",
    [
        "out[i] = __ldg(&a[i]) + load(&b[i]);",
        "b[i] = __ldg(&a[65 - i]);",
        "a[i] = 1; out[i] = a[i];",
        "if (i % 2) a[i] = 1; __syncthreads(); out[i] = __ldg(&a[i & ~1]);",
        "a[i] = 1; cooperative_groups::this_grid().sync(); out[i] = __ldg(&b[i]) + a[65 - i];",
        "__shared__ int s[33]; s[t] = __ldg(&a[i]); __syncthreads(); s[32 - t] = 1;",
    ],
)
def test_data_that_the_launch_does_not_write(body: str) -> None:
    assert find_loads(body) == []


def test_writes_of_an_earlier_launch_are_visible() -> None:
    checker, a, out = RaceChecker(), np.zeros(66, np.int32), np.zeros(66, np.int32)
    launch_watched(checker, f"{HEAD} a[i] = i; }}", a, a, out, grid=2, block=33)
    launch_watched(checker, f"{HEAD} out[i] = __ldg(&a[65 - i]); }}", a, a, out, grid=2, block=33)
    assert checker.findings == []
    assert out.tolist() == list(range(65, -1, -1))


def test_a_finding_names_both_lines_and_threads() -> None:
    (finding,) = find_loads("if (i == 40) a[3] = 7;\nif (i == 50) out[i] = __ldg(&a[3]);")
    assert finding_lines([finding]) == [(FIRST, FIRST + 1)]
    assert finding.threads == ("thread (17,0,0) in block (1,0,0)", "thread (7,0,0) in block (1,0,0)")
    assert "element 3 of a" in finding.message
    assert "ordinary load" in finding.message
