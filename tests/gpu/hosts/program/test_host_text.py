"""A host text that ends where nobody would end it is rewritten all the same: the compiler says what is wrong."""

from __future__ import annotations

import time

import pytest

from gpu.files.source_lexer import find_closing_brackets, find_launches
from gpu.hosts.program.host_text import rewrite_host_text


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
    assert isinstance(rewrite_host_text(b'# 1 "a.cu"\n' + text, 0, b"/headers"), bytes)


def test_brackets_are_paired_in_one_pass():
    """Each that is open was once looked for to the end of the text: 45 s for this one."""
    assert find_closing_brackets(b"f(a[1], {2}) ( ] ( )") == {1: 11, 3: 5, 8: 10, 17: 19}
    begun = time.process_time()
    assert list(find_launches(b"a<<<(((((" * 4000)) == []
    rewrite_host_text(b"int f(int x);\n" + b"__device__ int a = f(\n" * 4000, 0, b"/none")
    assert time.process_time() - begun < 3
