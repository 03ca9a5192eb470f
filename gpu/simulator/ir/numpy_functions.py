"""NumPy functions of operators and intrinsics, on scalars or arrays with one value per lane, as a GPU computes them.

Integers wrap, signed ones too; division rounds toward zero; a shift by the width or more results in 0 (or -1 for
negative numbers shifted right). Functions on bits apply to 32 and 64 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Value = Any
Function = Callable[..., Value]


def shift_left(left: Value, right: Value) -> Value:
    """Return `left << right`."""
    return np.left_shift(left, right.astype(left.dtype))


def shift_right(left: Value, right: Value) -> Value:
    """Return `left >> right`."""
    return np.right_shift(left, right.astype(left.dtype))


def divide_toward_zero(left: Value, right: Value) -> Value:
    """Return the quotient of signed integers."""
    floored = np.floor_divide(left, right)
    if np.min(left) >= 0 and np.min(right) > 0:
        return floored
    rounded_down = (left != floored * right) & ((left < 0) != (right < 0))
    return _replace_zero_divisions(right, floored + rounded_down.astype(floored.dtype))


def remainder_toward_zero(left: Value, right: Value) -> Value:
    """Return the remainder of signed integers."""
    return _replace_zero_divisions(right, left - divide_toward_zero(left, right) * right)


def divide_unsigned(left: Value, right: Value) -> Value:
    """Return the quotient of unsigned integers."""
    return _replace_zero_divisions(right, np.floor_divide(left, right))


def remainder_unsigned(left: Value, right: Value) -> Value:
    """Return the remainder of unsigned integers."""
    # A division and a product take a third of np.remainder's time: NumPy vectorizes only the former.
    return _replace_zero_divisions(right, left - np.floor_divide(left, right) * right)


def _replace_zero_divisions(divisor: Value, result: Value) -> Value:
    """Set all bits of the quotient or remainder where the divisor is 0, as a GPU does; CUDA leaves it undefined."""
    if np.all(divisor):
        return result
    return np.where(divisor == 0, np.array(-1).astype(result.dtype), result).astype(result.dtype)[()]


def minimum(left: Value, right: Value) -> Value:
    """Return the smaller number; of a number and NaN, the number."""
    return np.fmin(left, right) if left.dtype.kind == "f" else np.minimum(left, right)


def maximum(left: Value, right: Value) -> Value:
    """Return the larger number; of a number and NaN, the number."""
    return np.fmax(left, right) if left.dtype.kind == "f" else np.maximum(left, right)


def fused_multiply_add(x: Value, y: Value, z: Value) -> Value:
    """Return `x * y + z`, rounded once."""
    from gpu.simulator.ir.native_fma import get_fma  # not above: only kernels that need it load LLVM

    return get_fma()(x, y, z)


def reciprocal_root(x: Value) -> Value:
    """Return `1 / sqrt(x)`."""
    return x.dtype.type(1) / np.sqrt(x)


def round_away(x: Value) -> Value:
    """Round halves away from zero, as C's `round`; exact also where adding 0.5 would not be."""
    integral = np.trunc(x)
    return np.where(np.abs(x - integral) >= 0.5, integral + np.copysign(x.dtype.type(1), x), integral).astype(x.dtype)[
        ()
    ]


def _bit_length(x: Value) -> Value:
    """Return the bit length of an unsigned number, from 32-bit halves because a float64 holds only 53 bits."""
    if x.dtype.itemsize < 8:
        return np.frexp(x.astype(np.float64))[1]
    high, low = (x >> np.uint64(32)).astype(np.uint32), x.astype(np.uint32)
    return np.where(high != 0, _bit_length(high) + 32, _bit_length(low))


def _to_unsigned(x: Value) -> Value:
    return x.view(f"u{x.dtype.itemsize}")


def count_bits(x: Value) -> Value:
    """Return the number of bits that are set."""
    return np.bitwise_count(x).astype(np.int32)


def count_leading_zeros(x: Value) -> Value:
    """Return the number of zero bits above the highest set bit."""
    return (8 * x.dtype.itemsize - _bit_length(_to_unsigned(x))).astype(np.int32)


def find_first_set(x: Value) -> Value:
    """Return the position of the lowest set bit, counted from 1; 0 if there is none."""
    bits = _to_unsigned(x)
    return _bit_length(bits & np.negative(bits)).astype(np.int32)


def reverse_bits(x: Value) -> Value:
    """Return an unsigned number with its bits in reverse order."""
    word, bits = x.dtype.type, 8 * x.dtype.itemsize
    distance = 1
    while distance < bits:
        mask = word(((1 << bits) - 1) // ((1 << distance) + 1))  # `distance` ones and zeros in turn
        x = ((x >> word(distance)) & mask) | ((x & mask) << word(distance))
        distance *= 2
    return x


def _low_24(x: Value) -> Value:
    """Sign-extend the low 24 bits of a signed number, or zero-extend those of an unsigned one."""
    if x.dtype.kind == "u":
        return x & np.uint32(0xFFFFFF)
    return (x << np.int32(8)) >> np.int32(8)


def multiply_24(x: Value, y: Value) -> Value:
    """Return the product of the low 24 bits."""
    return _low_24(x) * _low_24(y)


def multiply_high(x: Value, y: Value) -> Value:
    """Return the upper half of the product of two integers."""
    bits = 8 * x.dtype.itemsize
    if bits < 64:
        wide = np.int64 if x.dtype.kind == "i" else np.uint64
        return ((x.astype(wide) * y.astype(wide)) >> wide(bits)).astype(x.dtype)
    low = np.uint64(0xFFFFFFFF)
    a, b = x.view(np.uint64), y.view(np.uint64)
    (a0, a1), (b0, b1) = ((v & low, v >> np.uint64(32)) for v in (a, b))
    middle = a1 * b0 + (a0 * b0 >> np.uint64(32))
    high = a1 * b1 + (middle >> np.uint64(32)) + ((middle & low) + a0 * b1 >> np.uint64(32))
    if x.dtype.kind == "i":
        high = high - np.where(x < 0, b, np.uint64(0)) - np.where(y < 0, a, np.uint64(0))
    return high.view(x.dtype)


def permute_bytes(x: Value, y: Value, selector: Value) -> Value:
    """Return four of the eight bytes of two words, or the signs of these bytes, by a selector of 4 bits for each."""
    both = x.astype(np.uint64) | y.astype(np.uint64) << np.uint64(32)
    permuted = np.zeros(np.broadcast(x, y, selector).shape, np.uint32)
    for place in range(4):
        choice = selector >> np.uint32(4 * place) & np.uint32(15)
        byte = (both >> (choice & np.uint32(7)).astype(np.uint64) * np.uint64(8)).astype(np.uint8)
        signs = (byte >> np.uint8(7)) * np.uint8(255)
        permuted |= np.where(choice & np.uint32(8), signs, byte).astype(np.uint32) << np.uint32(8 * place)
    return permuted[()]


def reinterpret_bits(dtype: type) -> Function:
    """Return a function that interprets the same bits as another type."""
    return lambda x: x.view(dtype)


def saturate_to_one(x: Value) -> Value:
    """Clamp to 0 and 1; NaN becomes 0."""
    return np.fmin(np.fmax(np.nan_to_num(x, nan=0.0), np.float32(0)), np.float32(1))


def special_function(name: str) -> Function:
    """Return one of SciPy's special functions."""

    def function(x: Value) -> Value:
        from scipy import special  # slow to import, and few kernels need it

        return getattr(special, name)(x).astype(x.dtype)

    return function


def via_float64(function: Function) -> Function:
    """Return a function that computes in float64 and rounds: NumPy's float32 result is less exact than a GPU's."""

    def via_float64(x: Value) -> Value:
        return function(x.astype(np.float64)).astype(x.dtype)

    return via_float64


def power_of_ten(x: Value) -> Value:
    """Return 10 to the power of `x`."""
    return np.power(x.dtype.type(10), x)


def positive_difference(x: Value, y: Value) -> Value:
    """Return `x - y`, or 0 if it is negative."""
    return np.where(x <= y, x.dtype.type(0), x - y)


def log_gamma(x: Value) -> Value:
    """Return the logarithm of the gamma function's absolute value, also where SciPy's is infinite."""
    size = np.abs(x)
    result = np.where(size < np.finfo(np.float64).smallest_normal, -np.log(size), special_function("gammaln")(x))
    return np.where(np.isinf(x), size, result).astype(x.dtype)[()]


def interpolate(first: Value, second: Value, weight: Value) -> Value:
    """Return a value between two, by the weight of the second."""
    return (1 - weight) * first + weight * second


def find_mantissa(x: Value) -> Value:
    """Return the mantissa, from 0.5 to 1, as C's `frexp`."""
    return np.frexp(x)[0]


def find_exponent(x: Value) -> Value:
    """Return the exponent for that mantissa; 0 for infinity and NaN."""
    return np.where(np.isfinite(x), np.frexp(x)[1], 0)


def from_half(bits: Value) -> Value:
    """Return the number that the bits of a 16-bit float represent."""
    return bits.view(np.float16).astype(np.float32)


def to_half(value: Value) -> Value:
    """Return the bits of a number rounded to a 16-bit float."""
    return value.astype(np.float16).view(np.uint16)
