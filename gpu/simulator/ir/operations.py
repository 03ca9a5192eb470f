"""C's operators, a row each, and conversions between scalars, as a GPU computes them.

A float that does not fit an integer of 32 or 64 bits saturates.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from gpu.simulator.ir import numpy_functions as functions
from gpu.simulator.ir.forms import Function, Missing, Operation, Value
from gpu.simulator.types import BOOL, Scalar

_INTEGERS = ("int", "unsigned int", "long long", "unsigned long long")
_NUMBERS = (*_INTEGERS, "float", "double")

_IN_HOST_LANGUAGE = Missing("is an operator of the host compiler's own language")

_SHIFT = """inside = icmp ult $T $y, $bits
amount = select i1 $inside, $T $y, $T 0
shifted = {} $T $x, $amount
{}select i1 $inside, $T $shifted, $T {}"""
_SIGN = "sign = ashr $T $x, $last\n"
"""A shift by the width or more results in 0, or in the sign for signed right shifts."""

_NVPTX_SHIFT = "amount = and $T $y, $last\n{} $T $x, $amount"
"""The timing model assumes a shift by less than the width, like NVIDIA's compiler."""

_UNSIGNED_DIVISION = """zero = icmp eq $T $y, 0
divisor = select i1 $zero, $T 1, $T $y
result = {} $T $x, $divisor
select i1 $zero, $T -1, $T $result"""
_SIGNED_DIVISION = """zero = icmp eq $T $y, 0
nonzero = select i1 $zero, $T 1, $T $y
minus = icmp eq $T $nonzero, -1
divisor = select i1 $minus, $T 1, $T $nonzero
plain = {} $T $x, $divisor
negated = {}
result = select i1 $minus, $T $negated, $T $plain
select i1 $zero, $T -1, $T $result"""
"""Without a trap: division by 0 sets all bits, and the smallest number divided by -1 wraps."""


def _operator(
    name: str,
    numpy: Function | Mapping[str, Function],
    ptx: str | Missing,
    llvm: Mapping[str, str],
    nvptx: Mapping[str, str] | None = None,
    *,
    signature: str = "T(T, T)",
    types: tuple[str, ...] = _NUMBERS,
) -> Operation:
    return Operation(name, signature, types, numpy, llvm, nvptx or llvm, ptx, _IN_HOST_LANGUAGE)


def _arithmetic(name: str, function: Function, instruction: str, ptx: str | Missing) -> Operation:
    forms = {"f": f"f{instruction} $T $x, $y", "": f"{instruction} $flags$T $x, $y"}
    # NVIDIA's compiler contracts wherever it can, so the timing model's code does too.
    return _operator(name, function, ptx, forms, {**forms, "f": f"f{instruction} contract $T $x, $y"})


def _bitwise(name: str, function: Function, instruction: str) -> Operation:
    return _operator(name, function, instruction, {"": f"{instruction} $T $x, $y"}, types=_INTEGERS)


def _shift(name: str, function: Function, ptx: str, signed: str, unsigned: str) -> Operation:
    signed_form = _SHIFT.format(signed, *((_SIGN, "$sign") if signed == "ashr" else ("", "0")))
    forms = {"i": signed_form, "u": _SHIFT.format(unsigned, "", "0")}
    nvptx_forms = {"i": _NVPTX_SHIFT.format(signed), "u": _NVPTX_SHIFT.format(unsigned)}
    shift = _operator(name, function, ptx, forms, nvptx_forms, signature="T(T, int)", types=_INTEGERS)
    return replace(shift, constant={"i": f"{signed} $T $x, $y", "u": f"{unsigned} $T $x, $y"})


def _division(name: str, ptx: str, numpy: Mapping[str, Function], instruction: str, negated: str) -> Operation:
    plain = {kind: f"{sign}{instruction} $T $x, $y" for kind, sign in (("i", "s"), ("u", "u"))}
    checked = {
        "i": _SIGNED_DIVISION.format(f"s{instruction}", negated),
        "u": _UNSIGNED_DIVISION.format(f"u{instruction}"),
    }
    floats = {"f": "fdiv $T $x, $y"} if name == "/" else {}
    types = _NUMBERS if floats else _INTEGERS
    division = _operator(name, numpy, ptx, {**checked, **floats}, {**plain, **floats}, types=types)
    return replace(division, constant=plain)


def _comparison(name: str, function: Function, word: str) -> Operation:
    signed, unsigned = (word, word) if word in ("eq", "ne") else (f"s{word}", f"u{word}")
    forms = {
        "f": f"fcmp {'une' if word == 'ne' else 'o' + word} $T $x, $y",
        "i": f"icmp {signed} $T $x, $y",
        "u": f"icmp {unsigned} $T $x, $y",
    }
    return _operator(name, function, f"setp.{'neu' if word == 'ne' else word}", forms, signature="bool(T, T)")


# On scalars, such as loop counters, Python's operators are twenty times faster than NumPy's functions.
BINARY: dict[str, Operation] = {
    each.name: each
    for each in (
        _arithmetic("+", operator.add, "add", "add"),
        _arithmetic("-", operator.sub, "sub", "sub"),
        _arithmetic("*", operator.mul, "mul", Missing("has instructions with different results: lo, hi and wide")),
        _division(
            "/",
            "div",
            {"i": functions.divide_toward_zero, "u": functions.divide_unsigned, "f": operator.truediv},
            "div",
            "sub $T 0, $x",
        ),
        _division(
            "%", "rem", {"i": functions.remainder_toward_zero, "u": functions.remainder_unsigned}, "rem", "add $T 0, 0"
        ),
        _bitwise("&", operator.and_, "and"),
        _bitwise("|", operator.or_, "or"),
        _bitwise("^", operator.xor, "xor"),
        _shift("<<", functions.shift_left, "shl", "shl", "shl"),
        _shift(">>", functions.shift_right, "shr", "ashr", "lshr"),
        _comparison("<", operator.lt, "lt"),
        _comparison(">", operator.gt, "gt"),
        _comparison("<=", operator.le, "le"),
        _comparison(">=", operator.ge, "ge"),
        _comparison("==", operator.eq, "eq"),
        _comparison("!=", operator.ne, "ne"),
    )
}

UNARY: dict[str, Operation] = {
    each.name: each
    for each in (
        _operator("-", np.negative, "neg", {"f": "fneg $T $x", "": "sub $T 0, $x"}, signature="T(T)"),
        _operator(
            "~", np.invert, "not", {"b": "xor i1 $x, true", "": "xor $T $x, -1"}, signature="T(T)", types=_INTEGERS
        ),
        _operator(
            "!",
            np.logical_not,
            Missing("is a comparison with 0"),
            {"b": "xor i1 $x, true", "f": "fcmp oeq $T $x, 0.0", "": "icmp eq $T $x, 0"},
            signature="bool(T)",
        ),
    )
}


def get_binary_operation(op: str, type: Scalar) -> Callable[[Value, Value], Value]:
    """Return the function for a binary operator on operands of `type`."""
    return BINARY[op].get_function(type)


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
