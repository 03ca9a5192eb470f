"""Intrinsics with a rounding direction, compared with exact fractions."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tests.gpu.simulator.kernel_runner import build

_OPERATIONS = {"add": 2, "sub": 2, "mul": 2, "div": 2, "rcp": 1, "sqrt": 1, "fma": 3}
_PREFIXES = {(name, letter): f"{letter}{name}" for name in _OPERATIONS for letter in "fd"}
_PREFIXES |= {("fma", "f"): "fmaf", ("fma", "d"): "fma"}
_DIRECTIONS = ("rd", "ru", "rz")


def _list_operands(dtype: Any) -> np.ndarray[Any, Any]:
    """Return numbers at the limits of a type, and some of usual size."""
    info = np.finfo(dtype)
    tiny, small, large = info.smallest_subnormal, info.smallest_normal, info.max
    usual = [0.0, 1.0, 1 + float(info.eps), 1 / 3, 3.0, 7e-5, 123456.789]
    values = np.array([*usual, tiny, 3 * tiny, small, small * dtype(1.25), large, large / 2, info.eps / 4], dtype)
    return np.concatenate([values, -values])


def _round_down(exact: Any, dtype: Any) -> Any:
    """Return the greatest number of a type that is not above an exact number; -inf if all are above."""
    info = np.finfo(dtype)
    if exact > Fraction(float(info.max)):
        return info.max
    if exact < -Fraction(float(info.max)):
        return dtype(-np.inf)
    value = dtype(float(exact))
    value = np.clip(value, -info.max, info.max)
    while Fraction(float(value)) > exact:
        value = np.nextafter(value, dtype(-np.inf))
    while np.isfinite(above := np.nextafter(value, dtype(np.inf))) and Fraction(float(above)) <= exact:
        value = above
    return value


def _round(exact: Fraction, dtype: Any, direction: str) -> Any:
    if direction == "rd" or (direction == "rz" and exact > 0):
        return _round_down(exact, dtype)
    return -_round_down(-exact, dtype)


def _root_bounds(x: Fraction, dtype: Any, direction: str) -> Any:
    """Return the root of a number, rounded, by comparing squares."""
    value = dtype(np.sqrt(float(x)))
    while Fraction(float(value)) ** 2 > x:
        value = np.nextafter(value, dtype(0))
    while Fraction(float(np.nextafter(value, dtype(np.inf)))) ** 2 <= x:
        value = np.nextafter(value, dtype(np.inf))
    is_exact = Fraction(float(value)) ** 2 == x
    return value if is_exact or direction != "ru" else np.nextafter(value, dtype(np.inf))


def _compute(operation: str, x: Any, y: Any, z: Any, dtype: Any, direction: str) -> Any:
    a, b, c = Fraction(float(x)), Fraction(float(y)), Fraction(float(z))
    if operation == "sqrt":
        return _root_bounds(a, dtype, direction) if a >= 0 else dtype(np.nan)
    if operation in ("div", "rcp"):
        a, b = (a, b) if operation == "div" else (Fraction(1), a)
        if b == 0:
            divisor = y if operation == "div" else x
            return dtype(np.nan) if a == 0 else dtype(np.copysign(np.inf, float(a) * np.copysign(1, divisor)))
        return _round(a / b, dtype, direction)
    exact = {"add": a + b, "sub": a - b, "mul": a * b, "fma": a * b + c}[operation]
    return _round(exact, dtype, direction)


@pytest.mark.parametrize("executor", ["kernel", "compiled_kernel"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_results_are_the_exact_ones_rounded_in_the_direction(dtype: Any, executor: str) -> None:
    letter, kind = ("f", "float") if dtype == np.float32 else ("d", "double")
    calls = [(operation, direction) for operation in _OPERATIONS for direction in _DIRECTIONS]
    stores = "".join(
        f"out[{number} * n + i] = __{_PREFIXES[operation, letter]}_{direction}"
        f"({', '.join(['x[i]', 'y[i]', 'z[i]'][: _OPERATIONS[operation]])});\n"
        for number, (operation, direction) in enumerate(calls)
    )
    source = f"""__global__ void k({kind} *out, const {kind} *x, const {kind} *y, const {kind} *z, int n) {{
        int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return;\n{stores} }}"""
    pairs = list(itertools.product(_list_operands(dtype), repeat=2))
    x, y = (np.array(each, dtype) for each in zip(*pairs, strict=True))
    z = np.random.default_rng(5).permutation(x)
    out = np.zeros((len(calls), len(pairs)), dtype)
    memories = [array.reshape(-1).view(np.uint8) for array in (out, x, y, z)]
    getattr(build(source), executor)("k").launch((7, 1, 1), (128, 1, 1), [*memories, np.int32(len(pairs))])
    with np.errstate(all="ignore"):
        expected = np.array(
            [[_compute(o, *each, dtype, direction) for each in zip(x, y, z, strict=True)] for o, direction in calls],
            dtype,
        )
    np.testing.assert_array_equal(out, expected)
    cancelled = (x == 1) & (y == -1)
    assert np.signbit(out[0][cancelled]).all()  # down
    assert not np.signbit(out[1][cancelled]).any()  # up
