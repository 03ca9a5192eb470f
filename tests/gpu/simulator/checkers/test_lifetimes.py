"""Pointers to local variables that are followed after their function or block has ended."""

from __future__ import annotations

import ctypes
import mmap
import sys

import numpy as np
import pytest

from gpu.base.errors import LaunchError
from gpu.base.findings import Finding
from gpu.kernel.simulate import simulate
from gpu.simulator.executor.state.memory import FlatMemory
from gpu.simulator.executor.state.pointers import PointerValue
from tests.gpu.simulator.kernel_runner import run_kernel

BEFORE = """struct S { int *p; int x[2]; };
__device__ int *of_variable(int n) { int x = n; return &x; }
__device__ int *of_array(int n) { int x[3] = {n, 1, 2}; return x + 1; }
__device__ int &of_reference(int n) { int x = n; return x; }
__device__ int *of_parameter(int n) { return &n; }
__device__ S in_struct(int n) { int x = n; S s; s.p = &x; s.x[0] = s.x[1] = n; return s; }
__device__ void by_pointer(int **p) { int x = 3; *p = &x; }
__device__ S whole(int n) { S s; s.p = nullptr; s.x[0] = s.x[1] = n; return s; }
__device__ int *same(int *p) { return p; }
__device__ auto closure(int n) { int x = n; return [&x](int k) { return x + k; }; }
struct R { int &r; };
__device__ R in_reference(int n) { int x = n; return R{x}; }
__device__ int depth(int n, int *above) { int x = n; return n ? depth(n - 1, &x) + *above : *above; }
"""
_FIRST_LINE = BEFORE.count("\n") + 2


def list_findings(body: str, *, schedule: str = "round-robin", traced: bool = False, block: int = 32) -> list[Finding]:
    source = f"{BEFORE}__global__ void f(int *a) {{ int i = threadIdx.x;\n{body}\n}}"
    simulation = simulate("test.cu", "f", 1, block, ["zeros:64"], source=source, schedule=schedule, traced=traced)
    return [finding for finding in simulation.findings if finding.kind != "race"]


# What is in the body, the line where the pointer is followed, that of the variable's declaration, and its name.
WRONG: dict[str, tuple[str, int, int | str, str]] = {
    "a variable's address returned": ("a[i] = *of_variable(i);", 1, "of_variable", "x"),
    "an array returned": ("int *p = of_array(i);\na[i] = p[1];", 2, "of_array", "x"),
    "a reference returned": ("a[i] = of_reference(i);", 1, "of_reference", "x"),
    "a parameter's address returned": ("a[i] = *of_parameter(i);", 1, "of_parameter", "n"),
    "in a struct": ("S s = in_struct(i);\na[i] = *s.p;", 2, "in_struct", "x"),
    "through a pointer": ("int *p;\nby_pointer(&p);\na[i] = *p;", 3, "by_pointer", "x"),
    "written": ("int *p;\nby_pointer(&p);\n*p = 1;", 3, "by_pointer", "x"),
    "a block's": ("int *p;\n{ int x = i; p = &x; }\na[i] = *p;", 3, 2, "x"),
    "a branch's": ("int y = 0, *p = &y;\nif (i & 1) { int x[2] = {1, 2}; p = x; }\na[i] = *p;", 3, 2, "x"),
    "that of the round before": (
        "int *p = a;\nfor (int k = 0; k < 3; k++) {\nint x = k;\nif (k) a[i] += *p;\np = &x; }",
        4,
        3,
        "x",
    ),
    "that of a round that was left": (
        "int *p;\nwhile (true) {\nint x = i; p = &x;\nif (i < 40) break; }\na[i] = *p;",
        5,
        3,
        "x",
    ),
    "a loop's own": ("int *p;\nfor (int k = 0; k < 3; k++) p = &k;\na[i] = *p;", 3, 2, "k"),
    "a condition's": ("int *p = nullptr;\nwhile (int x = p ? 0 : 1) p = &x;\na[i] = *p;", 3, 2, "x"),
    "a switch's": (
        "int y = 0, *p = &y;\nswitch (i & 3) { case 0: int x[3]; x[0] = 1; p = x; }\na[i] = *p;",
        3,
        2,
        "x",
    ),
    "a lambda's": ("auto g = [&](int k) {\nint x = k; return &x; };\na[i] = *g(3);", 3, 2, "x"),
    "what a lambda has captured": (
        "int *p; { int x = i;\nauto g = [&]() { return &x; }; p = g(); }\na[i] = *p;",
        3,
        1,
        "x",
    ),
    "captured by a lambda that is returned": ("auto g = closure(i);\na[i] = g(1);", -4, "closure", "x"),
    "a member that is a reference": ("R s = in_reference(i);\na[i] = s.r;", 2, "in_reference", "x"),
    "kept in memory": ("__shared__ int *q[64];\n{ int x = i; q[i] = &x; }\n__syncthreads();\na[i] = *q[i];", 4, 2, "x"),
}


@pytest.mark.parametrize("schedule", ["round-robin", "shuffle:2"])
@pytest.mark.parametrize("name", WRONG)
def test_a_variable_that_is_gone_is_found_with_both_lines(name: str, schedule: str) -> None:
    body, used, declared, variable = WRONG[name]
    if isinstance(declared, str):
        declared = next(at for at, line in enumerate(BEFORE.split("\n"), 2 - _FIRST_LINE) if f"{declared}(" in line)
    finding = list_findings(body, schedule=schedule)[0]
    assert finding.kind == "use-after-scope"
    assert [position.line - _FIRST_LINE + 1 for position in finding.positions] == [used, declared]
    assert f" the scope of {variable}, declared at test.cu:" in finding.message


def test_a_recording_has_the_finding() -> None:
    body = WRONG["a block's"][0]
    assert list_findings(body, traced=True) == list_findings(body)


RIGHT = {
    "passed down": "int x = i; a[i] = *same(&x);",
    "passed down again and again": "int x = 2; a[i] = depth(5, &x);",
    "a struct that is returned": "S s = whole(i); s.p = &s.x[1]; a[i] = *s.p;",
    "a new one each round": "for (int k = 0; k < 3; k++) { int x = k; int *p = &x; a[i] += *p; }",
    "another one since": "int x = 1, *p; { int y = 2; p = &y; p = &x; } a[i] = *p;",
    "a reference to a value": "const int &r = i + 1; a[i] = r;",
    "each of an array": "int x[3] = {1, 2, 3}; for (int &each : x) each += 1; a[i] = x[2];",
    "an outer one from inside": "int x[4]; { int *p = x; p[0] = 1; } a[i] = x[0];",
    "by a lambda": "int y = 1; auto g = [&](int k) { int x[2] = {k, y}; return x[1]; }; a[i] = g(3);",
    "compared only": "int *p; { int x = i; p = &x; } a[i] = p != nullptr;",
    "while other lanes go round": (
        "int x = 0, *p = &x; for (int k = 0; k <= i; k++) { int y[2] = {k, k}; x += y[1]; } a[i] = *p;"
    ),
    "in a branch": "int x = i; int *p = &x; if (i & 1) { int y[1] = {3}; p = y; *p += 1; p = &x; } a[i] = *p;",
    "returned early": "int x = i, *p = &x; for (int k = 0; k < 9; k++) { int y = k; if (y == i) return; } a[i] = *p;",
}


@pytest.mark.parametrize("schedule", ["round-robin", "shuffle:2"])
@pytest.mark.parametrize("name", RIGHT)
def test_what_is_still_there_is_not_found(name: str, schedule: str) -> None:
    assert list_findings(RIGHT[name], schedule=schedule, block=64) == []


@pytest.mark.parametrize(
    ("number", "kind", "words"),
    [
        ("0x7f0012345678", "invalid-pointer", "a pointer to host memory"),
        ("0x100345678", "invalid-pointer", "a pointer to host memory"),
        ("0x123456789abcdef0", "invalid-pointer", "0x123456789abcdef0, which is not an address of any memory"),
        ("0x78", "null-pointer", "a null pointer"),
    ],
)
def test_a_number_that_is_no_address_of_the_device_says_what_it_is(number: str, kind: str, words: str) -> None:
    for access in ("a[0] = *p;", "*p = 1;"):
        [finding] = list_findings(f"int *p = (int *){number}; {access}", block=1)
        assert (finding.kind, words in finding.message) == (kind, True)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux, whose /proc tells what is mapped")
def test_host_memory_at_a_low_address_is_not_called_null() -> None:
    """The heap of a program that is not relocated, such as Ubuntu's python3, is below 4 GB."""
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    address = libc.mmap(0x2000_0000, mmap.PAGESIZE, mmap.PROT_READ, flags, -1, 0)
    assert mmap.PAGESIZE <= address < 1 << 32
    [finding] = list_findings(f"a[0] = *(int *){address:#x};", block=1)
    libc.munmap(ctypes.c_void_p(address), ctypes.c_size_t(mmap.PAGESIZE))
    assert (finding.kind, "a pointer to host memory" in finding.message) == ("invalid-pointer", True)
    [finding] = list_findings(f"a[0] = *(int *){address:#x};", block=1)
    assert finding.kind == "null-pointer"


def test_a_pointer_to_freed_memory_is_not_called_a_variable_whose_scope_has_ended() -> None:
    memory = FlatMemory("gone", "global", np.zeros(4, np.uint8))
    number = int(PointerValue(memory).number())
    del memory
    [finding] = list_findings(f"a[0] = *(int *){number};", block=1)
    assert (finding.kind, "memory that has been freed" in finding.message) == ("use-after-free", True)


def test_unchecked_a_stored_pointer_to_what_is_gone_is_not_called_null() -> None:
    source = (
        "__global__ void f(int *a) { __shared__ int *q[32]; int i = threadIdx.x;\n"
        "for (int k = 0; k < 3; k++) { int x = k;\nif (k == 0) q[i] = &x;\nif (k == 2) a[i] = *q[i]; } }"
    )
    with pytest.raises(LaunchError, match=r"test.cu:4:20: Invalid read by thread .* a variable whose scope has ended"):
        run_kernel(source, "f", np.zeros(32, np.int32))
    for nothing in ("int *p = nullptr; a[0] = p[i];", "int *p = nullptr; p += i + 1; a[0] = *p;"):
        [finding] = list_findings(nothing)
        assert finding.kind == "null-pointer"
