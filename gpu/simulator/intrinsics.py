"""The functions that CUDA gives a kernel, by the names the shim declares: what each computes on NumPy values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Value = Any


def _smaller(left: Value, right: Value) -> Value:
    return np.fmin(left, right) if left.dtype.kind == "f" else np.minimum(left, right)


def _larger(left: Value, right: Value) -> Value:
    return np.fmax(left, right) if left.dtype.kind == "f" else np.maximum(left, right)


def _fused_multiply_add(x: Value, y: Value, z: Value) -> Value:
    """Round once: a float32 product is exact in float64."""
    if x.dtype == np.float64:
        return x * y + z
    return (x.astype(np.float64) * y + z).astype(np.float32)


def _reciprocal_root(x: Value) -> Value:
    return x.dtype.type(1) / np.sqrt(x)


def _round_away(x: Value) -> Value:
    """Round halves away from zero, as C's `round`; exact also where adding a half would not be."""
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(x.dtype.type(1), x), whole).astype(x.dtype)[()]


def _bit_length(x: Value) -> Value:
    return np.frexp(x.astype(np.float64))[1]


def _population_count(x: Value) -> Value:
    return np.bitwise_count(x).astype(np.int32)


def _leading_zeros(x: Value) -> Value:
    return (32 - _bit_length(x.view(np.uint32))).astype(np.int32)


def _first_set(x: Value) -> Value:
    bits = x.view(np.uint32)
    return _bit_length(bits & np.negative(bits)).astype(np.int32)


def _reversed_bits(x: Value) -> Value:
    for shift, mask in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F), (8, 0x00FF00FF), (16, 0x0000FFFF)):
        keep, by = np.uint32(mask), np.uint32(shift)
        x = ((x >> by) & keep) | ((x & keep) << by)
    return x


_FLOAT_FUNCTIONS: dict[str, Callable[..., Value]] = {
    "sqrt": np.sqrt,
    "rsqrt": _reciprocal_root,
    "cbrt": np.cbrt,
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "tanh": np.tanh,
    "fabs": np.fabs,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": _round_away,
    "rint": np.rint,
    "pow": np.power,
    "fmin": np.fmin,
    "fmax": np.fmax,
    "fmod": np.fmod,
    "atan2": np.arctan2,
    "hypot": np.hypot,
    "fma": _fused_multiply_add,
}

INTRINSICS: dict[str, Callable[..., Value]] = {
    **_FLOAT_FUNCTIONS,
    **{f"{name}f": function for name, function in _FLOAT_FUNCTIONS.items()},
    "__expf": np.exp,
    "__logf": np.log,
    "__sinf": np.sin,
    "__cosf": np.cos,
    "__powf": np.power,
    "__fdividef": np.true_divide,
    "min": _smaller,
    "max": _larger,
    "abs": np.abs,
    "llabs": np.abs,
    "__popc": _population_count,
    "__clz": _leading_zeros,
    "__ffs": _first_set,
    "__brev": _reversed_bits,
}

ATOMICS = {
    "atomicAdd": "add",
    "atomicSub": "sub",
    "atomicMin": "min",
    "atomicMax": "max",
    "atomicAnd": "and",
    "atomicOr": "or",
    "atomicXor": "xor",
    "atomicExch": "exch",
    "atomicCAS": "cas",
}

BLOCK_VOTES = frozenset({"__syncthreads_count", "__syncthreads_and", "__syncthreads_or"})

# What orders memory between threads. A gang's lanes go together, so there is nothing left to order.
FENCES = frozenset({"__threadfence", "__threadfence_block", "__syncwarp"})
