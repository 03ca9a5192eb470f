"""C's arithmetic on single values, enough to follow an expression; None stands for a value that is not known.

A vector is a tuple of values, on which C has no arithmetic.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np

Value = Any

_LITERAL = re.compile(r"(0[xX][\da-fA-F]+|0[bB][01]+|[\d.]+(?:[eE][+-]?\d+)?)([uUlLfF]*)")

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_COMPUTE: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": lambda left, right: left << right,
    ">>": operator.rshift,
    "/": lambda left, right: abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1),
    "%": lambda left, right: abs(left) % abs(right) * (-1 if left < 0 else 1),
}


def literal(text: str) -> Value:
    """Return the value of a literal; None for a string or a character."""
    if text[0] in "'\"":
        return None
    found = _LITERAL.fullmatch(text)
    if found is None:
        return None
    number, suffix = found.group(1), found.group(2).lower()
    hexadecimal = number[:2] in ("0x", "0X")
    if not hexadecimal and ("." in number or "e" in number.lower() or suffix == "f"):
        return np.float32(number) if suffix == "f" else np.float64(number)
    octal = len(number) > 1 and number[0] == "0" and number.isdigit()
    value = int(number, 8) if octal else int(number, 0)
    wide = "l" in suffix or value > 0xFFFFFFFF or (value > 0x7FFFFFFF and not hexadecimal and "u" not in suffix)
    unsigned = "u" in suffix or (hexadecimal and 0x7FFFFFFF < value <= 0xFFFFFFFF)
    return np.dtype(f"{'u' if unsigned else ''}int{64 if wide else 32}").type(value)


def binary(op: str, left: Value, right: Value) -> Value:
    """Return `left op right`, converted as in C; None where it has no value."""
    if left is None or right is None or isinstance(left, tuple) or isinstance(right, tuple):
        return None
    if op in ("<<", ">>"):
        dtype = _promoted(np.asarray(left).dtype)
        return wrapped(_COMPUTE[op](int(left), int(right)), dtype) if 0 <= int(right) < 64 else None
    dtype = _common(np.asarray(left).dtype, np.asarray(right).dtype)
    first, second = convert(left, dtype), convert(right, dtype)
    if op in _COMPARE:
        return np.bool_(_COMPARE[op](first, second))
    if dtype.kind == "f":
        with np.errstate(all="ignore"):
            compute = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}.get(op)
            return dtype.type(compute(first, second)) if compute is not None else None
    if op in ("/", "%") and int(second) == 0:
        return None
    return wrapped(_COMPUTE[op](int(first), int(second)), dtype) if op in _COMPUTE else None


def unary(op: str, operand: Value) -> Value:
    """Return `op operand`; None where it has no value."""
    if operand is None or isinstance(operand, tuple):
        return None
    if op == "!":
        return np.bool_(not operand)
    dtype = _promoted(np.asarray(operand).dtype)
    if dtype.kind == "f":
        return {"-": -operand, "+": operand}.get(op)
    return wrapped({"-": -int(operand), "~": ~int(operand), "+": int(operand)}[op], dtype) if op in "-~+" else None


def convert(value: Value, dtype: np.dtype[Any]) -> Value:
    """Return a value in another type."""
    if dtype.kind in "iu" and np.asarray(value).dtype.kind in "iub":
        return wrapped(int(value), dtype)
    with np.errstate(all="ignore"):
        return np.asarray(value).astype(dtype)[()]


def wrapped(value: int, dtype: np.dtype[Any]) -> Value:
    """Return an integer in a type that may be too narrow for it."""
    return np.array([value & (1 << 64) - 1], np.uint64).astype(dtype)[0]


def _promoted(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(np.int32) if dtype.kind in "biu" and dtype.itemsize < 4 else dtype


def _common(left: np.dtype[Any], right: np.dtype[Any]) -> np.dtype[Any]:
    left, right = _promoted(left), _promoted(right)
    floats = [each for each in (left, right) if each.kind == "f"]
    if floats:
        return max(floats, key=lambda each: each.itemsize)
    return max(left, right, key=lambda each: (each.itemsize, each.kind == "u"))
