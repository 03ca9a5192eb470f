"""Loops, branches, jumps and calls, where lanes go different ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from gpu.base.errors import LaunchError
from tests.gpu.simulator.kernel_runner import build, launch, run_kernel
from tests.gpu.simulator.oracle import run_c
from tests.gpu.simulator.statements import bodies

Array = np.ndarray[Any, Any]

LANES = 96
PARAMETERS = "const int *in, int uniform, int n, int *called, int *inlined"


@st.composite
def programs(draw: st.DrawFn, count: int) -> list[str]:
    return draw(st.lists(bodies(), min_size=count, max_size=count))


def functions(programs: list[str], qualifier: str) -> str:
    return "#define LEAVE(value) return (value);\n" + "".join(
        f"{qualifier} int program{number}(int a, int b, int c) {{\n{body}\n}}\n" for number, body in enumerate(programs)
    )


def cuda_source(programs: list[str]) -> str:
    """Write each program twice: as a `__device__` function, called in some lanes only, and as a kernel's own body."""
    calls = "".join(
        f"if (i % 5 != {number % 5}) called[{number} * n + i] = program{number}(in[i], uniform, in[n + i]);\n"
        for number in range(len(programs))
    )
    kernels = "".join(
        f"__global__ void kernel{number}({PARAMETERS}) {{\n"
        f"int i = blockIdx.x * blockDim.x + threadIdx.x, a = in[i], b = uniform, c = in[n + i];\n{body}\n}}\n"
        for number, body in enumerate(programs)
    )
    return (
        functions(programs, "__device__")
        + f"__global__ void call({PARAMETERS}) {{\nint i = blockIdx.x * blockDim.x + threadIdx.x;\n{calls}}}\n"
        + "#undef LEAVE\n#define LEAVE(value) { inlined[i] = (value); return; }\n"
        + kernels
    )


def c_source(programs: list[str]) -> str:
    calls = "".join(
        f"inlined[{number} * n + i] = program{number}(in[i], uniform, in[n + i]);\n"
        f"if (i % 5 != {number % 5}) called[{number} * n + i] = inlined[{number} * n + i];\n"
        for number in range(len(programs))
    )
    return functions(programs, "static") + f"void call({PARAMETERS}) {{\nfor (int i = 0; i < n; i++) {{\n{calls}}}}}\n"


@settings(
    max_examples=8,
    derandomize=True,
    database=None,
    deadline=None,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)
@given(programs(count=2), st.integers(-9, 9), st.integers(0, 2**32))
def test_random_programs_do_what_c_does(programs: list[str], uniform: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    given = generator.integers(-9, 10, 2 * LANES).astype(np.int32)
    given[::7] = generator.integers(-(2**31), 2**31, given[::7].size)
    right = np.zeros((2, len(programs), LANES), np.int32)
    run_c(c_source(programs), "call", given, np.int32(uniform), np.int32(LANES), right[0], right[1])

    module, empty = build(cuda_source(programs)), np.zeros((len(programs), LANES), np.int32)
    arguments = given, np.int32(uniform), np.int32(LANES), empty, empty
    _, called, _ = launch(module, "call", *arguments, grid=3, block=LANES // 3)
    for number, body in enumerate(programs):
        *_, inlined = launch(module, f"kernel{number}", *arguments, grid=2, block=LANES // 2)
        for found, known in ((called[number], right[0, number]), (inlined[0], right[1, number])):
            wrong = np.flatnonzero(found != known)
            assert not wrong.size, (
                f"lane {wrong[0]} gives {found[wrong[0]]}, C {known[wrong[0]]}, where a = {given[wrong[0]]}, "
                f"b = {uniform}, c = {given[LANES + wrong[0]]}:\n{body}"
            )


def run_per_lane(body: str, *, before: str = "", uniform: int = 0, lanes: int = 32) -> list[int]:
    """Run statements that set `out` from the lane `i` and the argument `n`."""
    source = f"""
    {before}
    __global__ void run(int n, int *result) {{
        int i = threadIdx.x, out = 0;
        {body}
        result[i] = out;
    }}"""
    [result] = run_kernel(source, "run", np.int32(uniform), np.zeros(lanes, np.int32), block=lanes)
    found: list[int] = result.tolist()
    return found


LOOPS: dict[str, tuple[str, Callable[[int], int]]] = {
    "for": ("for (int k = 0; k < i; k++) out += k;", lambda i: i * (i - 1) // 2),
    "no first part": ("int k = 1; for (; k < i; k++) out += k;", lambda i: i * (i - 1) // 2),
    "no condition": ("for (int k = 0;; k++) { if (k == i) break; out += 2; }", lambda i: 2 * i),
    "no step": ("for (int k = 0; k < i;) { out += 3; k += 1; }", lambda i: 3 * i),
    "only a condition": ("int k = 0; for (; k < i;) k += 2; out = k;", lambda i: i + i % 2),
    "only a step": ("int k = 0; for (;; k++) if (k >= i) { out = k; break; }", lambda i: i),
    "only a first part": ("for (int k = i;;) { out += k--; if (k < 0) break; }", lambda i: i * (i + 1) // 2),
    "nothing": ("for (;;) { if (out >= i) break; out++; }", lambda i: i),
    "an empty body": ("int k = 0; for (; k * k < i; k++); out = k;", lambda i: int(np.ceil(np.sqrt(i)))),
    "two counters": ("for (int k = 0, l = i; k < l; k++, l--) out += l - k;", lambda i: (i + 1) // 2 * (i // 2 + 1)),
    "while": ("int k = i; while (k) { out += k & 1; k >>= 1; }", lambda i: i.bit_count()),
    "do runs once": ("do { out++; } while (out < i);", lambda i: max(1, i)),
    "continue in do tests": ("do { if (++out % 2) continue; } while (out < i);", lambda i: max(1, i)),
    "continue in for steps": ("for (int k = 0; k < i; k++) { if (k % 3) continue; out++; }", lambda i: (i + 2) // 3),
    "continue in while": (
        "int k = 0; while (k++ < i) { if (k % 2) continue; out += k; }",
        lambda i: i // 2 * (i // 2 + 1),
    ),
    "break of the inner loop only": (
        "for (int k = 0; k < 4; k++) for (int l = 0; l < 100; l++) { if (l == i) break; out++; }",
        lambda i: 4 * i,
    ),
    "continue of the outer loop after a break": (
        """for (int k = 0; k < i; k++) {
            int l = 0;
            while (true) { if (l++ > k) break; if (l > 2) continue; }
            if (k % 2) continue;
            out += l;
        }""",
        lambda i: sum(k + 2 for k in range(0, i, 2)),
    ),
    "a loop that some lanes never enter": (
        "if (i % 2) for (int k = 0; k < 5; k++) out += i; else out = -1;",
        lambda i: 5 * i if i % 2 else -1,
    ),
    "a counter used after its loop": (
        "int k; for (k = 0; k < i; k++) if (k == 7) break; out = k;",
        lambda i: min(i, 7),
    ),
    "an unsigned counter downwards": ("for (unsigned k = i; k-- > 0;) out += k;", lambda i: i * (i - 1) // 2),
    "a float condition": ("for (float x = i; x >= 1; x /= 2) out++;", lambda i: i.bit_length()),
    "an uninitialized variable in some lanes": ("int k; if (i > 3) k = i; if (i > 3) out = k;", lambda i: i * (i > 3)),
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops(name: str) -> None:
    body, right = LOOPS[name]
    assert run_per_lane(body) == [right(i) for i in range(32)]


def test_an_if_chain_takes_one_way() -> None:
    body = """
    if (i < 4) out = 1;
    else if (i < 8) { out = 2; if (i == 6) out = 60; else if (i == 7) ; else out += 100; }
    else if (i < 4) out = 3;
    else if (i & 1) { if (i > 20) out = 4; } else out = 5;
    """
    right = [1] * 4 + [102, 102, 60, 2] + [5 if i % 2 == 0 else 4 if i > 20 else 0 for i in range(8, 32)]
    assert run_per_lane(body) == right


def test_an_else_belongs_to_the_nearest_if() -> None:
    assert run_per_lane("if (i > 5) if (i > 10) out = 1; else out = 2;") == [
        (i > 5) * (2 - (i > 10)) for i in range(32)
    ]


def test_an_inner_name_hides_an_outer_one() -> None:
    body = """
    int x = 1;
    { int x = 10; if (i % 2) { int x = 100; x += i; out += x; } out += x; }
    for (int x = 0; x < 2; x++) { out += x; int i = 1000; out += i; }
    out += x;
    """
    assert run_per_lane(body) == [2012 + (100 + i if i % 2 else 0) for i in range(32)]


def test_a_variable_of_a_loop_starts_anew_each_round() -> None:
    body = """
    for (int k = 0; k < i; k++) {
        int fresh = 0, array[2] = {};
        fresh += k;
        array[k % 2]++;
        out += fresh + array[0] + array[1];
    }"""
    assert run_per_lane(body) == [i * (i - 1) // 2 + i for i in range(32)]


def test_loops_that_macros_write() -> None:
    before = """
    #define REPEAT(n, body) for (int k = 0;; k++) { if (k >= n) break; body }
    #define UNTIL(condition) for (; !(condition);)
    #define TIMES for (int l = 0; l < 3;)
    #define FOREVER while (true)
    """
    body = "REPEAT(i, out += 2;) UNTIL(out >= 10) out++; TIMES { l++; out += 100; } FOREVER { if (out++ > 330) break; }"
    assert run_per_lane(body, before=before) == [max(max(2 * i, 10) + 301, 332) for i in range(32)]


def test_an_early_return_inside_loops_of_a_function() -> None:
    before = """
    __device__ int find(int wanted, int n) {
        for (int k = 0; k < n; k++) {
            int l = 0;
            while (l < n) {
                if (k * n + l == wanted) return 100 * k + l;
                if (l++ > k + 3) break;
            }
        }
        return -1;
    }"""

    def right(wanted: int) -> int:
        row, column = divmod(wanted, 6)
        return 100 * row + column if row < 6 and column <= row + 4 else -1

    found = run_per_lane("out = find(i, n) + 1; out--;", before=before, uniform=6, lanes=64)
    assert found == [right(i) for i in range(64)]


def test_calls_within_calls_and_within_expressions() -> None:
    before = """
    __device__ float halve(float x) { return x / 2; }
    __device__ int clamp(int x, int low, int high) { if (x < low) return low; if (x > high) return high; return x; }
    __device__ int nested(int x) { return clamp(x, 3, clamp(x + 1, 5, 20)) + (int)halve(x); }
    __device__ void nothing(int x) { if (x > 3) return; x = 5; }
    """
    body = "nothing(i); out = clamp(nested(i), 0, nested(7)) * 2 + (i > 4 && nested(i) > 9 ? clamp(i, 6, 8) : 0);"

    def clamp(x: int, low: int, high: int) -> int:
        return low if x < low else high if x > high else x

    def nested(x: int) -> int:
        return clamp(x, 3, clamp(x + 1, 5, 20)) + x // 2

    right = [clamp(nested(i), 0, nested(7)) * 2 + (clamp(i, 6, 8) if i > 4 and nested(i) > 9 else 0) for i in range(32)]
    assert run_per_lane(body, before=before) == right


def test_a_parameter_is_the_functions_own() -> None:
    before = "__device__ int change(int x, int y) { x += 5; y *= x; return y; }"
    body = "int x = i, y = 2; out = change(x, y) + change(y, x); out = 1000 * out + 10 * x + y;"
    right = [1000 * ((i + 5) * 2 + 7 * i) + 10 * i + 2 for i in range(32)]
    assert run_per_lane(body, before=before) == right


def test_lanes_that_have_returned_take_no_part_in_anything() -> None:
    source = """
    __global__ void leave(int *out, int *count) {
        int i = threadIdx.x;
        if (i % 4 == 3) return;
        for (int k = 0; k < 4; k++) {
            if (k == i % 4) { out[i] = k; return; }
            atomicAdd(count, 1);
        }
        out[i] = -1;
    }"""
    out, count = run_kernel(source, "leave", np.full(32, 9, np.int32), np.zeros(1, np.int32))
    assert out.tolist() == [i % 4 if i % 4 < 3 else 9 for i in range(32)]
    assert count[0] == 8 * (0 + 1 + 2)


def test_recursion_that_ends_runs_and_one_too_deep_is_an_error() -> None:
    before = "__device__ int sum(int n) { return n == 0 ? 0 : n + sum(n - 1); }"
    assert run_per_lane("out = sum(i);", before=before) == [i * (i + 1) // 2 for i in range(32)]
    with pytest.raises(LaunchError, match=r"Stack overflow: sum is called more than \d+ levels deep"):
        run_per_lane("out = sum(i + 100000);", before=before)


def test_an_endless_loop_ends_in_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpu.simulator.executor.children.MAXIMUM_ROUNDS", 1000)
    with pytest.raises(LaunchError, match=r"^test\.cu:5:9: .*thread \(4,0,0\) in block \(0,0,0\)") as caught:
        run_per_lane("while (i > 3) out ^= i;")
    assert caught.value.position is not None
    assert caught.value.position.line == 5
    assert caught.value.advice
