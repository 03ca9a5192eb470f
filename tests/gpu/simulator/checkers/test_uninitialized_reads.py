"""Reads of what nobody has written are found; where something was written, none is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu.base.findings import Finding
from gpu.simulator.checkers.memory.uninitialized_reads import UninitializedChecker
from tests.gpu.simulator.watched_launch import finding_lines, launch_watched

Array = np.ndarray[Any, Any]


def make_ints(size: int = 4096) -> Array:
    return np.zeros(size, np.int32)


def find_uninitialized_reads(
    statements: str, *, shared: str = "int tile[64];", uninitialized: tuple[str, ...] = (), **shape: Any
) -> list[Finding]:
    """Run a kernel whose statements begin on line 4."""
    checker = UninitializedChecker(uninitialized)
    source = f"""__global__ void f(int *data, int *out, int n) {{
    __shared__ {shared}
    int t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x, i = blockIdx.x * 64 + t, mine[4];
{statements}
}}"""
    launch_watched(
        checker,
        source.replace("__shared__ extern", "extern __shared__"),
        make_ints(),
        make_ints(),
        np.int32(4),
        **shape,
    )
    assert all(finding.kind == "uninitialized" for finding in checker.findings)
    return checker.findings


def test_what_a_finding_says() -> None:
    (found,) = find_uninitialized_reads(
        "if (t < 40) tile[t] = t;\n__syncthreads();\nout[i] = tile[63 - t];", block=64, grid=2
    )
    assert found.message == (
        "Uninitialized __shared__ memory read of size 4 bytes by thread (0,0,0) in block (0,0,0) at test.cu:6: "
        "element 63 of tile"
    )
    assert finding_lines([found]) == [(6,)]
    assert found.threads == ("thread (0,0,0) in block (0,0,0)",)
    assert found.count == 2 * 24


def test_a_shared_array_is_observed_until_all_of_it_is_written() -> None:
    write, read = "if (t < {}) tile[t] = t;\n__syncthreads();", "out[i] = tile[63 - t];"
    lines = [*(write.format(60) for _ in range(4)), read, write.format(64), *(write.format(1) for _ in range(3)), read]
    (found,) = find_uninitialized_reads("\n".join(lines), block=64)
    assert finding_lines([found]) == [(12,)]
    assert found.count == 4


MISSING = {
    "shared": "out[i] = tile[t];",
    "one element, all lanes": "out[i] = tile[5];",
    "atomic": "atomicAdd(&tile[t % 3], 1);",
    "update": "tile[t] += 1;",
    "half a word": "((short *)tile)[2 * t] = 1; __syncthreads(); out[i] = tile[t];",
    "vector": "if (t != 7) tile[t] = t; __syncthreads(); if (t < 16) { int4 v = ((int4 *)tile)[t]; out[i] = v.x; }",
    "local": "mine[t % 4] = 1; out[i] = mine[0];",
    "local in one lane": "for (int k = 0; k < 4; ++k) if (k + t != 40) mine[k] = k; out[i] = mine[n - 1];",
    "only the other blocks": "if (blockIdx.x != gridDim.x - 1) tile[t] = t; out[i] = tile[t];",
    "local, declared anew": "for (int k = 0; k < 2; ++k) { int own[2]; if (k == 0) own[0] = 1; out[i] = own[0]; }",
}


@pytest.mark.parametrize("statements", MISSING.values(), ids=MISSING.keys())
@pytest.mark.parametrize("grid", [1, 2, 3])
def test_missing(statements: str, grid: int) -> None:
    (found,) = find_uninitialized_reads(statements, block=64, grid=grid)
    assert finding_lines([found]) == [(4,)]


CLEAN = {
    "shared": "tile[t] = t; __syncthreads(); out[i] = tile[blockDim.x * blockDim.y * blockDim.z - 1 - t];",
    "atomics": "tile[t] = 0; atomicAdd(&tile[t], 1); atomicExch(&tile[0], 2); out[i] = tile[t];",
    "bytes": "for (int k = 0; k < 4; ++k) ((char *)tile)[4 * t + k] = k; out[i] = tile[t];",
    "vectors": "if (t < 16) ((int4 *)tile)[t] = make_int4(1, 2, 3, 4); __syncthreads(); out[i] = tile[t];",
    "words of a vector": "tile[t] = t; __syncthreads(); if (t < 12) out[i] = ((int4 *)tile)[t].w;",
    "local": "for (int k = 0; k < 4; ++k) mine[k] = t; out[i] = mine[t % 4];",
    "initialized": "int zeros[4] = {}; int some[4] = {1}; out[i] = zeros[t % 4] + some[3];",
    "a struct": "struct Pair { float x; int y; }; Pair p; p.x = 1; p.y = 2; Pair q = p; out[i] = q.y;",
    "global": "out[i] = data[i]; atomicAdd(&data[0], 1);",
    "masked": "if (t < 9) tile[t] = t; if (t < 9) out[i] = tile[t];",
}


@pytest.mark.parametrize("statements", CLEAN.values(), ids=CLEAN.keys())
@pytest.mark.parametrize("shape", [{"block": 64}, {"block": (4, 4, 4), "grid": (2, 2, 2)}, {"block": 50, "grid": 7}])
def test_clean(statements: str, shape: dict[str, Any]) -> None:
    assert find_uninitialized_reads(statements, **shape) == []


def test_dynamic_shared_memory() -> None:
    def run(statements: str) -> list[Finding]:
        return find_uninitialized_reads(
            statements, shared="extern float dynamic[];", block=32, grid=3, shared_bytes=256
        )

    assert run("dynamic[t] = t; dynamic[t + 32] = t; __syncthreads(); out[i] = dynamic[(t + 40) % 64];") == []
    (found,) = run("dynamic[t] = t;\n__syncthreads();\nout[i] = dynamic[t + 1];")
    assert finding_lines([found]) == [(6,)]
    assert found.threads == ("thread (31,0,0) in block (0,0,0)",)
    assert found.count == 3


def test_every_batch_starts_anew() -> None:
    statements = "if (blockIdx.x < 2000) tile[t] = t;\nout[t] = tile[t];"
    (found,) = find_uninitialized_reads(statements, block=64, grid=2001)
    assert found.threads == ("thread (0,0,0) in block (2000,0,0)",)
    assert found.count == 64


def test_arrays_that_start_without_values() -> None:
    statements = "if (t < 16) out[t] = 1;\ndata[t] = out[t];"
    assert find_uninitialized_reads(statements) == []
    assert find_uninitialized_reads(statements, uninitialized=("data",)) == []
    (found,) = find_uninitialized_reads(statements, uninitialized=("data", "out"))
    assert found.message.startswith("Uninitialized __global__ memory read of size 4 bytes by thread (16,0,0)")
    assert finding_lines([found]) == [(5,)]


def test_what_a_launch_writes_the_next_one_reads() -> None:
    checker = UninitializedChecker({"out"})
    data, between, out = make_ints(64), make_ints(64), make_ints(64)
    source = "__global__ void f(const int *in, int *out) { out[threadIdx.x] = in[threadIdx.x]; }"
    launch_watched(checker, source, data, between)
    launch_watched(checker, source, between, out, block=64)
    (found,) = checker.findings
    assert found.count == 32
    assert "element 32 of in" in found.message


def test_one_finding_for_each_line_and_memory() -> None:
    found = find_uninitialized_reads(
        "for (int k = 0; k < 3; ++k) out[i] = tile[t] + tile[t + 1] + mine[k];\nout[i] = tile[t];"
    )
    assert finding_lines(found) == [(4,), (4,), (5,)]
    assert [finding.count for finding in found] == [192, 96, 32]
