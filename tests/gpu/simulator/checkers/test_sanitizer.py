"""What compute-sanitizer's tools report: each is found here too, with its line and thread, in much the same words."""

from __future__ import annotations

import pytest

from gpu.kernel.simulate import simulate

# By what the message begins with or says: the body's statement, the finding's kind, and the thread.
DOCUMENTED = {
    # memcheck
    "Invalid __global__ read of size 4 bytes": ("a[i] = a[i + 1];", "out-of-bounds", 31),
    "Invalid __global__ write of size 4 bytes": ("a[i - 1] = 1;", "out-of-bounds", 0),
    "Invalid __global__ atomic of size 4 bytes": ("atomicAdd(a + 32 * i, 1);", "out-of-bounds", 1),
    "Invalid __shared__ read of size 4 bytes": ("s[i] = i; a[i] = s[i + 9];", "out-of-bounds", 23),
    "Invalid __shared__ write of size 4 bytes": ("s[2 * i] = i;", "out-of-bounds", 16),
    "Invalid __local__ read of size 4 bytes": ("int l[4] = {}; a[i] = l[i];", "out-of-bounds", 4),
    "Invalid __local__ write of size 4 bytes": ("int l[4]; l[i] = 1;", "out-of-bounds", 4),
    "bytes by thread (0,0,0) in block (0,0,0): its address in a is misaligned": (
        "a[i] = *(int *)((char *)a + 2);",
        "misaligned",
        0,
    ),
    "Invalid __global__ write of size 16 bytes": ("*(int4 *)(a + 1) = make_int4(1, 2, 3, 4);", "misaligned", 0),
    "its address in s is misaligned": ("s[i] = 1; __syncthreads(); a[i] = *(int *)((char *)s + 1);", "misaligned", 0),
    "its address in l is misaligned": ("char l[8] = {}; a[i] = *(int *)(l + i % 2);", "misaligned", 1),
    "through a null pointer": ("int *p = nullptr; p[i] = 1;", "null-pointer", 0),
    "Malloc/Free error encountered: Double free": ("int *p = new int; delete p; delete p;", "double-free", 0),
    "Malloc/Free error encountered: Invalid pointer to free": ("free(a + 1);", "invalid-free", 0),
    "Stack overflow": ("a[i] = deeper(i);", "stack-overflow", 0),
    "finds the assertion `i < 9` false": ("assert(i < 9);", "assertion", 9),
    "finds the assertion `__trap() is not reached` false": ("if (i == 3) __trap();", "assertion", 3),
    # synccheck
    "Barrier error detected. Divergent thread(s) in block": ("if (i < 7) __syncthreads();", "barrier", 7),
    "Barrier error detected. Divergent thread(s) in warp": ("if (i < 7) __syncwarp();", "warp-mask", 0),
    "Barrier error detected. Invalid arguments": ("__syncwarp(1 << i / 2);", "warp-mask", 1),
    # racecheck and initcheck
    "Race reported between": ("s[i] = i; a[i] = s[31 - i];", "race", None),
    "Uninitialized __global__ memory read of size 4 bytes": ("a[i] = *(new int);", "uninitialized", 0),
    "Uninitialized __shared__ memory read of size 4 bytes": ("a[i] = s[i];", "uninitialized", 0),
}


@pytest.mark.parametrize("message", DOCUMENTED)
def test_what_is_documented_is_found(message: str) -> None:
    statement, kind, thread = DOCUMENTED[message]
    source = f"""__device__ int deeper(int n) {{ return n < 0 ? 0 : deeper(n + 1) + 1; }}
__global__ void f(int *a) {{ __shared__ int s[32]; int i = threadIdx.x;
    {statement}
}}"""
    found = simulate("test.cu", "f", 1, 32, ["zeros:32"], source=source).findings[0]
    assert found.kind == kind
    assert message in found.message
    assert found.positions[0].line == (1 if kind == "stack-overflow" else 3)
    if thread is not None:
        assert found.threads[0] == f"thread ({thread},0,0) in block (0,0,0)"


@pytest.mark.parametrize("narrow", ["signed char", "short"])
@pytest.mark.parametrize("access", ["b[threadIdx.x] = a[i];", "a[i] = 1;"])
def test_negative_indices_of_few_bits_are_outside_of_long_arrays(narrow: str, access: str) -> None:
    source = f"__global__ void f(int *a, int *b) {{ {narrow} i = threadIdx.x - 3; {access} }}"
    (found, *_) = simulate("test.cu", "f", 1, 32, ["zeros:70000", "zeros:32"], source=source).findings
    assert (found.kind, found.threads[0]) == ("out-of-bounds", "thread (0,0,0) in block (0,0,0)")
    assert "element -3 of a" in found.message
