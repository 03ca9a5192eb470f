"""A host text that ends where nobody would end it is rewritten all the same: the compiler says what is wrong."""

from __future__ import annotations

import pytest

from gpu.program.host_text import rewritten


@pytest.mark.parametrize(
    "text",
    [
        b"struct S { __device__ int operator",
        b"struct S { __device__ int operator()",
        b"__device__ int f() = default",
        b"__global__ void f(int *a",
        b"__constant__ int a[",
        b"template <typename T __global__",
        b'__global__ void f() { char c = "',
    ],
)
def test_a_text_that_is_cut_off_ends(text: bytes) -> None:
    assert isinstance(rewritten(b'# 1 "a.cu"\n' + text, 0, b"/headers"), bytes)
