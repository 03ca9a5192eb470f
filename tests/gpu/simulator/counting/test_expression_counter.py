"""Branches of `&&`, `||` and `?:`, and exchanges of lanes, counted per warp against a count by hand."""

from __future__ import annotations

import numpy as np
import pytest

from gpu.simulator.counting.expression_counter import ExpressionCounter
from tests.gpu.simulator.kernel_runner import build

# With 2 warps of 32 threads and x[i] = i: branches of both, and those at which the lanes of a warp differ.
CASES = {
    "load": ("y[i] = i < 40 && x[i] > 3;", 2, 1),
    "load that none needs": ("y[i] = i < 0 && x[i] > 3;", 2, 0),
    "load that all need": ("y[i] = i < 64 && x[i] > 3;", 2, 0),
    "or": ("y[i] = i < 32 || x[i] > 3;", 2, 0),
    "two loads": ("y[i] = i < 40 && x[i] > 3 && x[x[i]] > 5;", 4, 3),
    "write": ("(i % 2 == 0 && (y[i] = 1)) || (y[i] = 2);", 4, 4),
    "choice of loads": ("y[i] = i < 8 ? x[i] : x[i + 1];", 2, 1),
    "choice of values": ("int a = x[i], b = a + 1; y[i] = i % 2 ? a : b;", 0, 0),
    "comparisons": ("y[i] = i > 3 && i < 40 || i == 50;", 0, 0),
    "in a condition": ("if (i < 20 && x[i] > 3) y[i] = 1;", 2, 1),
    "atomic": ("i < 5 ? atomicAdd(y, 1) : 0;", 2, 1),
}


@pytest.mark.parametrize("case", CASES)
def test_conditions_that_decide_about_accesses_are_branches(case: str) -> None:
    body, branches, divergent = CASES[case]
    source = f"__global__ void k(const int *x, int *y) {{ int i = threadIdx.x; {body} }}"
    counter = ExpressionCounter()
    x = np.arange(128, dtype=np.int32).view(np.uint8)
    build(source).kernel("k").launch((1, 1, 1), (64, 1, 1), [x, x.copy()], observers=[counter])
    assert (counter.branches, counter.divergent_branches) == (branches, divergent)


def test_exchanges_are_counted_once_per_warp() -> None:
    body = "int v = __shfl_down_sync(~0u, x[i], 1) + __ballot_sync(~0u, i);\n__syncwarp();"
    body += "if (i < 32) v += __all_sync(~0u, v);"
    source = f"__global__ void k(const int *x, int *y) {{ int i = threadIdx.x; {body} y[i] = v; }}"
    counter = ExpressionCounter()
    x = np.arange(128, dtype=np.int32).view(np.uint8)
    build(source).kernel("k").launch((1, 1, 1), (64, 1, 1), [x, x.copy()], observers=[counter])
    assert counter.exchanges == 2 + 2 + 1
