"""Kernel files that mean harm or are just broken."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gpu.base.errors import CompileError, KernelError, LockstepError
from gpu.base.paths import KERNELS
from gpu.kernel.simulate import Simulation, simulate
from gpu.simulator.frontend.editor_diagnostics import diagnose

_FILES = tuple(sorted(path for path in KERNELS.glob("*.cu") if path.stat().st_size < 30_000))
_TOKENS = (
    *("{", "}", "(", ")", "[", "]", ";", ",", "<", ">", "<<<", ">>>", "#", "##", "\\\n", "/*", "*/", '"', "'", "::"),
    *("a", "i", "threadIdx.x", "blockIdx.y", "__syncthreads()", "__shared__ int s[32];", "atomicAdd(a, 1)", "asm"),
    *("return", "if (i)", "else", "for (;;)", "while (1)", "do", "switch (i)", "case 1:", "break;", "goto", "new int"),
    *("0", "1", "-1", "1e999", "0x", "9" * 20, "2147483648", "1u << 40", "1.f", "'ab'", "\0", "é", "\ud7ff"),
    *("+", "-", "*", "/", "%", "=", "+=", "<<", "&&", "?", ":", "~", "->", ".", "...", "sizeof", "(float)", "(int *)"),
    *("template <int N>", "struct S", "auto", "[&]", "operator+", "virtual", "__device__", "__global__", "constexpr"),
    *('#include "pipe"', "#include <", "#define A A", "#define B(x) x x", "B(B(B(i)))", "#if", "#endif", "#line 0"),
    *("__shfl_xor_sync(~0u, i, 1, 12)", "__shfl_down_sync(~0u, i, -9, i)", "static_assert(sizeof(i) == 8);", 'R"('),
    *("template <int N> struct D { static const int v = D<N - 1>::v; };", "D<3>::v", "\n" * 5000, "/* " * 5000),
    *("__shared__ int t[9]; size_t u = i; t[u % 9] = 1;",),
    *('printf("%s%n%*d%999999999d", i)', "assert(0)", "malloc(1 << 30)", "__shfl_sync(0, i, i)", "float4", "double"),
)  # fmt: skip
_NUMBERS = ("0", "1", "31", "33", "1024", "-1", "4294967296", "99999999999999999999", "x", "1,1,1,1", "")
IN_TESTS = 10
"""Attacks that a test makes: each parses a whole file; `make fuzz` makes thousands."""
_ARGUMENTS = (
    "zeros:64",
    "empty:64",
    "null",
    "5",
    "-1",
    "1e99",
    "full:9:nan",
    "arange:0",
    "random:9:x",
    "file:no.npy",
    "",
)


def attack(random: np.random.Generator, folder: Path) -> None:
    """Have one odd text diagnosed, and one of its kernels run, or what would be one, with an odd launch."""
    text, kernel = _mutate_kernel(random) if random.random() < 0.4 else (_generate_kernel(random), "f")
    path = folder / "odd.cu"
    path.write_text(text, encoding="utf-8", errors="replace")
    for found in diagnose(text, path, {}):
        assert found.message.strip()
        assert found.severity in ("error", "warning")
        assert 1 <= found.line <= text.count("\n") + 1, (found, text)
        assert 1 <= found.column < found.end
    count = int(random.integers(4)) if random.random() < 0.3 else 1
    extents = [_draw_extent(random) for _ in range(2)]
    arguments = [_ARGUMENTS[0] if random.random() < 0.7 else _pick_token(random, _ARGUMENTS) for _ in range(count)]
    try:
        check_simulation(
            simulate(path, kernel, *extents, arguments, max_seconds=0.2, max_steps=200, traced=random.random() < 0.2)
        )
    except LockstepError as error:
        _check_sentence(error)


def check_simulation(simulation: Simulation) -> None:
    """Look at all that came of a launch."""
    for finding in simulation.findings:
        assert finding.kind
        assert finding.message.strip()
        assert all(position.line >= 1 for position in finding.positions)
    assert sum(len(each.text) for each in simulation.printed) < 2 << 20
    assert all(count == count for count in simulation.counters.total.values()), "no NaN"


def _check_sentence(error: LockstepError) -> None:
    sentence = f"{error.message} {error.advice}".strip()
    assert sentence
    assert "Traceback" not in sentence
    if not isinstance(error, KernelError):
        assert sentence.endswith((".", ")", "?")), sentence
    if isinstance(error, CompileError) and error.position is not None:
        assert error.position.line >= 0


def _pick_token(random: np.random.Generator, words: tuple[str, ...]) -> str:
    return words[int(random.integers(len(words)))]


def _draw_extent(random: np.random.Generator) -> tuple[int, ...]:
    if random.random() < 0.6:
        return (int(random.integers(1, 65)),)
    odd = (0, 1, -1, 33, 65, 1024, 1025, 65_536, 2**31 - 1, 2**31, 2**40)
    return tuple(odd[int(random.integers(len(odd)))] for _ in range(int(random.integers(1, 5))))


def _mutate_kernel(random: np.random.Generator) -> tuple[str, str]:
    """Return a kernel file of the project's, cut, or with some tokens changed, and the name of a kernel of it."""
    text = _FILES[int(random.integers(len(_FILES)))].read_text("utf-8")
    names = [piece.split("(")[0].split()[-1] for piece in text.split("__global__")[1:] if piece.split("(")[0].split()]
    kernel = names[int(random.integers(len(names)))] if names else "f"
    for _ in range(int(random.integers(1, 5))):
        start = int(random.integers(len(text)))
        match random.integers(4):
            case 0:
                text = text[:start]
            case 1:
                text = text[:start] + text[start + int(random.integers(1, 200)) :]
            case 2:
                text = text[:start] + _pick_token(random, _TOKENS) + text[start:]
            case _:
                text = text[:start] + text[start : start + 200] + text[start:]
        if not text:
            break
    return text, kernel


def _generate_kernel(random: np.random.Generator) -> str:
    """Return a text of odd tokens, or of one piece that is nested or repeated, in a kernel that has a pointer."""
    if random.random() < 0.5:
        body = " ".join(_pick_token(random, _TOKENS) for _ in range(int(random.integers(1, 40))))
        return body if random.random() < 0.1 else f"__global__ void f(int *a) {{ int i = threadIdx.x; {body} }}"
    levels = int(random.choice([1, 10, 100, 300, 450, 1200]))
    opening, inner, closing = (
        ("a[0] = ", "(", ")"), ("a[0] = ", "a[", "]"), ("a[0] = ", "i + ", ""), ("a[0] = ", "-", ""),
        ("a[0] = ", "i ? i : ", ""), ("", "if (i) ", ""), ("", "if (i) i = 2; else ", ""), ("", "{ ", "}"),
        ("", "for (int j = 0; j < 2; j++) ", ""), ("", "while (i < 3) ", ""), ("", "switch (i) case 1: ", ""),
        ("a[0] = ", "[&] { return ", "; }()"), ("a[0] = ", "g(", ")"), ("", "nothing(i); ", ""), ("", "a[0]; ", ""),
    )[int(random.integers(15))]  # fmt: skip
    end = str(_pick_token(random, _NUMBERS)) if opening else ""
    device = "__device__ int g(int n) { return n > 0 ? g(n - 1) + g(n - 2) : n; }\n"
    body = f"{opening}{inner * levels}{end}{closing * levels};"
    return f"{device}__global__ void f(int *a) {{ int i = threadIdx.x;\n{body} }}"
