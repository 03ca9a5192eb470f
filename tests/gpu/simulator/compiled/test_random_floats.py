"""Random kernels of floats with divergent warps: the same bits from every executor, fused as nvcc fuses."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu.base.schedules import ROUND_ROBIN
from gpu.simulator.simulated_module import SimulatedModule

Array = np.ndarray[Any, Any]
GRID = 3
HEAD = """
struct Pair { float x, y; };
__device__ float mix(float p, float q, float w) { return p + (q - p) * w; }
extern "C" __global__ void k(const float *x, const float *y, float *out, float u, int n) {
    __shared__ float tile[128];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t, j = 0;
    bool full = t / 32 * 32 + 32 <= blockDim.x;
    float a = x[i], b = y[i], c = x[(i + 7) % n], s = 0, own[4] = {a, b, 0.5f, 2};
    double wide = b;
    Pair pair = {b, c};
"""
TAIL = """
    out[i] += a + b * c - s * pair.x + pair.y + own[0] + own[1] * own[2] + own[3] + (float)wide;
}
"""
_VARIABLES = ("a", "b", "c", "s", "pair.x", "pair.y", "own[j & 3]")
_VALUES = (*_VARIABLES, "x[i]", "y[(3 * i + 1) % n]", "0.3f", "-2.0f", "(float)i", "u")
_EXPRESSIONS = (
    *("{} * {} + {}", "{} * {} - {}", "({} + {})", "({} - {})", "({} / {})", "-({})", "({} > {} ? {} : {})"),
    *("fminf({}, {})", "fmaxf({}, {})", "fmaf({}, {}, {})", "__fmul_rn({}, {})", "__fadd_rn({}, {})", "sqrtf({})"),
    *("fabsf({})", "rintf({})", "(float)((double)({}) * ({}) + {})", "mix({}, {}, {})"),
)
_STATEMENTS = (
    *("@ = {};", "@ += {};", "@ -= {};", "@ *= {};", "@ -= {} * {};", "out[i] += {};", "wide += (double)a * {};"),
    *("{ float kept = {}; @ = kept * {} + kept; }", "if ({} < {}) { # } else { # }"),
    "for (int r = 0; r < (i + 2) % 5; ++r) { j += 1; # }",
)
_EXCHANGES = (
    "tile[t] = {}; __syncthreads(); s = tile[(5 * t + 1) % blockDim.x] * a + s; __syncthreads();",
    "if (full) s += __shfl_xor_sync(0xffffffffu, @, 4) * {};",
    "if (full && (i & 3) < 2) { __syncwarp(0x33333333u); # __syncwarp(0x33333333u); }",
)


def _write_expression(generator: random.Random, depth: int) -> str:
    if not depth:
        return generator.choice(_VALUES)
    text = generator.choice(_EXPRESSIONS)
    while "{}" in text:
        text = text.replace("{}", _write_expression(generator, depth - 1), 1)
    return text


def _write_statements(generator: random.Random, depth: int, count: int) -> str:
    statements = []
    for _ in range(count):
        text = generator.choice(_STATEMENTS if depth else _STATEMENTS[:-2])
        statements.append(_fill(generator, text, depth))
    return " ".join(statements)


def _fill(generator: random.Random, text: str, depth: int) -> str:
    """Replace the variables @, expressions {} and statements # in a text."""
    while "@" in text:
        text = text.replace("@", generator.choice(_VARIABLES), 1)
    while "{}" in text:
        text = text.replace("{}", _write_expression(generator, generator.randint(1, 2)), 1)
    while "#" in text:
        text = text.replace("#", _write_statements(generator, depth - 1, generator.randint(1, 2)), 1)
    return text


def write_kernel(number: int) -> str:
    """Return the kernel with a number; one in three has no exchanges between threads."""
    generator = random.Random(number)
    body = []
    for _ in range(generator.randint(2, 5)):
        body.append(_write_statements(generator, 2, generator.randint(1, 3)))
        if number % 3:
            body.append(_fill(generator, generator.choice(_EXCHANGES), 2))
    return HEAD + "\n".join(body) + TAIL


def _run(module: SimulatedModule, executor: str, number: int, block: int) -> Array:
    n = GRID * block
    generator = np.random.default_rng(number)
    x, y = (generator.standard_normal(n).astype(np.float32) for _ in "xy")
    out = np.linspace(-1, 1, n).astype(np.float32)
    arguments: list[Any] = [x.view(np.uint8), y.view(np.uint8), out.view(np.uint8), np.float32(0.37), np.int32(n)]
    extents = (GRID, 1, 1), (block, 1, 1)
    with np.errstate(all="ignore"):
        match executor:
            case "machine code":
                module.compiled_kernel("k").launch(*extents, arguments)
            case "recorded":
                module.trace("k", *extents, arguments)
            case _:
                module.kernel("k").launch(*extents, arguments, schedule=executor)
    return out


@pytest.mark.parametrize("executor", ["machine code", "recorded", "lanes:7"])
@pytest.mark.parametrize("count", [3, pytest.param(1000, marks=[pytest.mark.sweep, pytest.mark.timeout(7200)])])
def test_every_executor_gives_the_same_bits(executor: str, count: int) -> None:
    for number in range(count):
        text, block = write_kernel(number), (1, 32, 40, 96, 128)[number % 5]
        module = SimulatedModule(text, Path("kernel.cu"), {})
        expected, found = (_run(module, each, number, block) for each in (ROUND_ROBIN, executor))
        are_numbers = ~(np.isnan(expected) & np.isnan(found))
        wrong = np.flatnonzero((expected.view(np.int32) != found.view(np.int32)) & are_numbers)
        assert not wrong.size, f"{text}\nelement {wrong[0]}: {expected[wrong[0]]!r}, not {found[wrong[0]]!r}"
