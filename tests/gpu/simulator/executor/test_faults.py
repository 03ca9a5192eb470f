"""A thread with an invalid access ends; the first one is the launch's error, and races of other threads are found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from gpu.base.findings import Finding
from gpu.kernel.simulate import simulate

SCHEDULES = ("round-robin", "shuffle:1", "lanes:1", "cached:1")


def check(body: str, block: int = 64, schedule: str = "round-robin", before: str = "", grid: int = 1) -> list[Finding]:
    """Return the findings of a kernel with 8 elements of `a` and 64 of `out`."""
    text = f"{before}\n__global__ void k(float *a, float *out, int n) {{\n    int t = threadIdx.x;\n{body}\n}}\n"
    arguments: Sequence[Any] = [np.ones(8, np.float32), np.zeros(64, np.float32), 8]
    return list(simulate("k.cu", "k", grid, block, arguments, source=text, schedule=schedule).findings)


@pytest.mark.parametrize(
    "access",
    [
        "out[0] = a[n];",
        "a[n] = 0;",
        "atomicAdd(&a[n], 1.0f);",
        "__shared__ float s[8]; s[n] = 1; out[0] = s[0];",
        "float l[8]; for (int i = 0; i < 8; ++i) l[i] = i; out[0] = l[n];",
        "((float4 *)out)[0] = ((float4 *)a)[n];",
        "((float4 *)a)[n] = ((float4 *)out)[0];",
        "out[0] = *(float *)nullptr;",
        "out[0] = *(float *)((char *)a + 2);",
    ],
    ids=["read", "write", "atomic", "shared", "local", "vector read", "vector write", "null", "misaligned"],
)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_error_names_the_thread(access: str, schedule: str):
    (finding,) = check(f"if (t == 37) {{ {access} }}", schedule=schedule)
    assert finding.threads == ("thread (37,0,0) in block (0,0,0)",)
    assert "thread (37,0,0)" in finding.message


RACE = "out[t / 2] = t + x;"
GET = "__device__ float get(float *a, int i) { float r = a[i]; if (i < 0) return 0; return r; }"
GET_TOGETHER = "__device__ float get(float *a, int i) { float r = a[i]; __syncthreads(); return r; }"


@pytest.mark.parametrize(
    ("body", "before"),
    [
        (f"float x = a[t]; __syncthreads(); {RACE}", ""),
        (f"float x = 0; if (a[t] < 1) __syncthreads(); {RACE}", ""),
        (f"float x = 0; for (int i = 0; a[t + i] < 2 && i < 1; ++i) x += 1; __syncthreads(); {RACE}", ""),
        (f"float x = 0; while (true) {{ x += a[t]; if (x > 3) break; }} __syncthreads(); {RACE}", ""),
        (f"float x = get(a, t) + get(a, t); __syncthreads(); {RACE}", GET),
        (f"float x = get(a, t); {RACE}", GET_TOGETHER),
        (f"float x = 0; switch ((int)a[t]) {{ case 1: break; default: __syncthreads(); }} {RACE}", ""),
    ],
    ids=["declaration", "condition", "for", "while", "function", "barrier", "switch"],
)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_races_of_the_other_threads_are_found(body: str, before: str, schedule: str):
    error, race = check(body, schedule=schedule, before=before)
    assert error.kind == "out-of-bounds"
    assert race.kind == "race"
    # Threads 8 and up have ended before they wrote.
    lines = [int(thread.partition("(")[2].partition(",")[0]) for thread in race.threads]
    assert max(lines) < 8


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_what_follows_from_the_error_is_not_reported(schedule: str):
    # Thread 37 does not write its element of s, and does not reach the barrier: neither is a mistake of its own.
    findings = check(
        "__shared__ float s[64]; if (t == 37) s[t] = a[n]; else s[t] = 1; __syncthreads(); out[t] = s[t ^ 1];",
        schedule=schedule,
    )
    assert [finding.kind for finding in findings] == ["out-of-bounds"]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_thread_that_has_ended_races_with_nobody_behind_a_barrier(schedule: str):
    findings = check(
        "out[t] = t; float x = t == 37 ? a[n] : 0; __syncthreads(); out[63 - t] = x + out[63 - t];", schedule=schedule
    )
    assert [finding.kind for finding in findings] == ["out-of-bounds"]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_only_threads_with_a_valid_access_to_a_vector_are_observed(schedule: str):
    error, race = check(
        "float4 v = ((float4 *)a)[t]; v.x = t; ((float4 *)out)[t / 2] = v;", block=16, schedule=schedule
    )
    valid = {"thread (0,0,0) in block (0,0,0)", "thread (1,0,0) in block (0,0,0)"}
    assert error.kind == "out-of-bounds"
    assert not valid & set(error.threads)
    assert (race.kind, set(race.threads)) == ("race", valid)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("copied", ["s + t, a + t", "s + t % 8 * 8 + 8, out + t"], ids=["read", "write"])
def test_an_asynchronous_copy_out_of_bounds_is_an_error_of_its_thread(copied: str, schedule: str):
    body = f"""__shared__ float s[64];
    __pipeline_memcpy_async({copied}, 4); __pipeline_commit(); __pipeline_wait_prior(0); out[t] = s[t % 8];"""
    findings = check(body, block=16, schedule=schedule, before="#include <cuda_pipeline.h>", grid=2)
    error = next(finding for finding in findings if finding.kind == "out-of-bounds")
    assert int(error.threads[0].partition("(")[2].partition(",")[0]) % 8 == 7 or copied.endswith("a + t")


def test_a_finding_before_the_error_stays():
    findings = check("__shared__ float s[64]; out[t] = s[t]; if (t == 37) out[t] = a[n];")
    assert sorted(finding.kind for finding in findings) == ["out-of-bounds", "uninitialized"]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_second_error_does_not_replace_the_first(schedule: str):
    (finding,) = check("float x = t == 37 ? a[n] : 0; if (t < 5) __syncthreads(); out[t] = x;", schedule=schedule)
    assert finding.kind == "out-of-bounds"


def test_all_threads_may_end():
    (finding,) = check("for (int i = 0; i < 3; ++i) { out[t] = a[n + i]; __syncthreads(); }")
    assert finding.threads == ("thread (0,0,0) in block (0,0,0)",)
