"""C's operators on NumPy values (scalars, or arrays with one value per lane), as a GPU computes them.

Integers wrap, signed ones too; division rounds toward zero; a float that does not fit an integer of 32 or 64 bits
saturates; a shift by the width or more results in 0 (or -1 for negative numbers shifted right).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from gpu.simulator.types import BOOL, Scalar

Value = Any
Operation = Callable[[Value, Value], Value]


def get_binary_operation(op: str, type: Scalar) -> Operation:
    """Return the function for a binary operator on operands of `type`."""
    if op in ("/", "%") and not type.is_float:
        if op == "/":
            return _divide_toward_zero if type.is_signed else _divide_unsigned
        return _remainder_toward_zero if type.is_signed else _remainder_unsigned
    if op in ("<<", ">>"):
        shift = np.left_shift if op == "<<" else np.right_shift
        return lambda left, right: shift(left, right.astype(left.dtype))
    return _BINARY[op]


# On scalars, such as loop counters, Python's operators are twenty times faster than NumPy's functions.
_BINARY: dict[str, Operation] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def _divide_toward_zero(left: Value, right: Value) -> Value:
    floored = np.floor_divide(left, right)
    if np.min(left) >= 0 and np.min(right) > 0:
        return floored
    rounded_down = (left != floored * right) & ((left < 0) != (right < 0))
    return _replace_zero_divisions(right, floored + rounded_down.astype(floored.dtype))


def _remainder_toward_zero(left: Value, right: Value) -> Value:
    return _replace_zero_divisions(right, left - _divide_toward_zero(left, right) * right)


def _divide_unsigned(left: Value, right: Value) -> Value:
    return _replace_zero_divisions(right, np.floor_divide(left, right))


def _remainder_unsigned(left: Value, right: Value) -> Value:
    # A division and a product take a third of np.remainder's time: NumPy vectorizes only the former.
    return _replace_zero_divisions(right, left - np.floor_divide(left, right) * right)


def _replace_zero_divisions(divisor: Value, result: Value) -> Value:
    """Set all bits of the quotient or remainder where the divisor is 0, as a GPU does; CUDA leaves it undefined."""
    if np.all(divisor):
        return result
    return np.where(divisor == 0, np.array(-1).astype(result.dtype), result).astype(result.dtype)[()]


UNARY: dict[str, Callable[[Value], Value]] = {"-": np.negative, "~": np.invert, "!": np.logical_not}


def get_cast(source: Scalar, target: Scalar) -> Callable[[Value], Value]:
    """Return the function that converts from one scalar type to another."""
    dtype = target.dtype
    if target == BOOL:
        return lambda value: value != 0
    if source.is_float and not target.is_float:
        if target.size < 4:  # convert to 32 bits, and keep the low ones
            wide = np.dtype(np.int32 if target.is_signed else np.uint32)
            return lambda value: _saturate(value, wide).astype(dtype)
        return lambda value: _saturate(value, dtype)
    if source.size == target.size and source != BOOL and not source.is_float and not target.is_float:
        return lambda value: value.view(dtype)
    return lambda value: value.astype(dtype)


def _saturate(value: Value, dtype: np.dtype[Any]) -> Value:
    limits = np.iinfo(dtype)
    truncated = np.trunc(value)
    low, high = float(limits.min), float(limits.max) + 1.0  # both are exact in binary
    if np.all((truncated >= low) & (truncated < high)):
        return truncated.astype(dtype)
    inside = np.where((truncated >= low) & (truncated < high), truncated, 0).astype(dtype)
    clipped = np.where(truncated >= high, dtype.type(limits.max), np.where(truncated < low, limits.min, inside))
    if value.dtype.itemsize == 8 or dtype.itemsize == 8:  # NaN is 0 only from float to 32 bits
        top_bit = np.array(1, dtype) << dtype.type(8 * dtype.itemsize - 1)
        clipped = np.where(np.isnan(value), top_bit, clipped)
    return clipped.astype(dtype)[()]
