"""The arithmetic of PTX instructions as NumPy operations, on one value for all lanes or one per lane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpu.errors import KernelError

Value = Any
Operation = Callable[..., Value]

DTYPES: dict[str, np.dtype[Any]] = {
    name: np.dtype(kind)
    for name, kind in {
        "b8": np.uint8, "u8": np.uint8, "s8": np.int8, "b16": np.uint16, "u16": np.uint16, "s16": np.int16,
        "f16": np.float16, "b32": np.uint32, "u32": np.uint32, "s32": np.int32, "f32": np.float32, "b64": np.uint64,
        "u64": np.uint64, "s64": np.int64, "f64": np.float64, "pred": np.bool_,
    }.items()
}  # fmt: skip


COMPARISONS: dict[str, Operation] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: (a < b) | (a > b),
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lo": lambda a, b: a < b,
    "ls": lambda a, b: a <= b,
    "hi": lambda a, b: a > b,
    "hs": lambda a, b: a >= b,
    "equ": lambda a, b: ~((a < b) | (a > b)),
    "neu": lambda a, b: a != b,
    "ltu": lambda a, b: ~(a >= b),
    "leu": lambda a, b: ~(a > b),
    "gtu": lambda a, b: ~(a <= b),
    "geu": lambda a, b: ~(a < b),
    "num": lambda a, b: (a == a) & (b == b),
    "nan": lambda a, b: (a != a) | (b != b),
}


def _truncating_division(a: Value, b: Value) -> Value:
    """Divide integers toward zero; a division by zero returns all bits set, as on a GPU."""
    if a.dtype.kind == "u":
        return np.where(b == 0, ~a, a // np.where(b == 0, b.dtype.type(1), b)).astype(a.dtype)
    divisor = np.where(b == 0, b.dtype.type(1), b)
    quotient = a // divisor
    quotient = quotient + ((a % divisor != 0) & ((a < 0) != (divisor < 0)))
    return np.where(b == 0, a.dtype.type(-1), quotient).astype(a.dtype)


def _divide(a: Value, b: Value) -> Value:
    return a / b if a.dtype.kind == "f" else _truncating_division(a, b)


def _remainder(a: Value, b: Value) -> Value:
    return (a - _truncating_division(a, b) * b).astype(a.dtype)


def _shift(words: tuple[str, ...], a: Value, amount: Value, left: bool) -> Value:
    bits = a.dtype.itemsize * 8
    amount = amount.view(np.uint32) if amount.dtype.itemsize == 4 else amount
    clamped = np.minimum(amount, np.uint32(bits - 1)).astype(a.dtype)
    if left:
        return np.where(amount >= bits, a.dtype.type(0), a << clamped)
    shifted = a >> clamped
    return shifted if a.dtype.kind == "i" else np.where(amount >= bits, a.dtype.type(0), shifted)


def _multiply_high(a: Value, b: Value) -> Value:
    if a.dtype.itemsize < 8:
        wide = np.int64 if a.dtype.kind == "i" else np.uint64
        return (a.astype(wide) * b.astype(wide) >> wide(8 * a.dtype.itemsize)).astype(a.dtype)
    low = np.uint64(0xFFFFFFFF)
    x, y = a.view(np.uint64), b.view(np.uint64)
    (x0, x1), (y0, y1) = ((v & low, v >> np.uint64(32)) for v in (x, y))
    middle = x1 * y0 + (x0 * y0 >> np.uint64(32))
    high = x1 * y1 + (middle >> np.uint64(32)) + ((middle & low) + x0 * y1 >> np.uint64(32))
    if a.dtype.kind == "i":
        high = high - np.where(a < 0, y, np.uint64(0)) - np.where(b < 0, x, np.uint64(0))
    return high.view(a.dtype)


def _leading_zeros(a: Value) -> Value:
    np.zeros(np.shape(a), np.uint32)
    remainder = np.asarray(a).view(np.dtype(f"u{a.dtype.itemsize}")).astype(np.uint64)
    bits = a.dtype.itemsize * 8
    length = np.zeros(np.shape(a), np.uint32)
    for step in (32, 16, 8, 4, 2, 1):
        is_large = remainder >= np.uint64(1) << np.uint64(step)
        length = length + np.where(is_large, np.uint32(step), np.uint32(0))
        remainder = np.where(is_large, remainder >> np.uint64(step), remainder)
    length = length + (remainder > 0)
    return (np.uint32(bits) - length).astype(np.uint32)


def _reverse_bits(a: Value) -> Value:
    x = a
    for shift, mask in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F), (8, 0x00FF00FF)):
        x = ((x >> np.uint32(shift)) & np.uint32(mask)) | ((x & np.uint32(mask)) << np.uint32(shift))
    return (x >> np.uint32(16)) | (x << np.uint32(16))


def _find_leading_bit(words: tuple[str, ...], a: Value) -> Value:
    unsigned = a.view(np.dtype(f"u{a.dtype.itemsize}"))
    if a.dtype.kind == "i":
        unsigned = np.where(a < 0, ~unsigned, unsigned)
    zeros = _leading_zeros(unsigned)
    bits = a.dtype.itemsize * 8
    position = zeros if "shiftamt" in words else (np.uint32(bits - 1) - zeros)
    return np.where(unsigned == 0, np.uint32(0xFFFFFFFF), position).astype(np.uint32)


def _extract_bits(a: Value, position: Value, length: Value) -> Value:
    position, length = position & np.uint32(255), length & np.uint32(255)
    unsigned = a.view(np.uint32) >> np.minimum(position, np.uint32(31))
    mask = np.where(
        length >= 32, np.uint32(0xFFFFFFFF), (np.uint32(1) << np.minimum(length, np.uint32(31))) - np.uint32(1)
    )
    field = unsigned & mask
    if a.dtype.kind == "i":
        top = np.uint32(1) << np.minimum(np.maximum(length, np.uint32(1)) - np.uint32(1), np.uint32(31))
        field = np.where(field & top, field | ~mask, field)
    return field.view(a.dtype)


def _insert_bits(a: Value, b: Value, position: Value, length: Value) -> Value:
    position, length = position & np.uint32(255), length & np.uint32(255)
    mask = np.where(
        length >= 32, np.uint32(0xFFFFFFFF), (np.uint32(1) << np.minimum(length, np.uint32(31))) - np.uint32(1)
    )
    mask = mask << np.minimum(position, np.uint32(31))
    return (b & ~mask) | ((a << np.minimum(position, np.uint32(31))) & mask)


def _permute_bytes(a: Value, b: Value, selector: Value) -> Value:
    both = a.astype(np.uint64) | (b.astype(np.uint64) << np.uint64(32))
    permuted = np.zeros(np.broadcast(a, b, selector).shape, np.uint32)
    for byte in range(4):
        chosen = (selector >> np.uint32(4 * byte)) & np.uint32(15)
        value = (both >> ((chosen & np.uint32(7)).astype(np.uint64) * np.uint64(8))).astype(np.uint32) & np.uint32(255)
        value = np.where(chosen & np.uint32(8), np.where(value & np.uint32(128), np.uint32(255), np.uint32(0)), value)
        permuted = permuted | (value << np.uint32(8 * byte))
    return permuted


def _lookup_logic(a: Value, b: Value, c: Value, table: Value) -> Value:
    code = int(np.ravel(table)[0])
    result = np.zeros_like(a | b | c)
    for case in range(8):
        if code >> case & 1:
            term = (a if case & 4 else ~a) & (b if case & 2 else ~b) & (c if case & 1 else ~c)
            result = result | term
    return result


def _funnel_shift(words: tuple[str, ...], a: Value, b: Value, c: Value) -> Value:
    amount = (c & np.uint32(31) if "wrap" in words else np.minimum(c, np.uint32(32))).astype(np.uint64)
    both = (b.astype(np.uint64) << np.uint64(32)) | a.astype(np.uint64)
    if "l" in words:
        return ((both << amount) >> np.uint64(32)).astype(np.uint32)
    return (both >> amount).astype(np.uint32)


def _multiply(words: tuple[str, ...], a: Value, b: Value) -> Value:
    if "wide" in words:
        wide = np.dtype(f"{a.dtype.kind}{2 * a.dtype.itemsize}")
        return a.astype(wide) * b.astype(wide)
    return _multiply_high(a, b) if "hi" in words else a * b


def _multiply_add(words: tuple[str, ...], a: Value, b: Value, c: Value) -> Value:
    return _multiply(words, a, b) + c


def _saturate(words: tuple[str, ...], value: Value) -> Value:
    return np.clip(value, value.dtype.type(0), value.dtype.type(1)) if "sat" in words else value


_ONE_ARGUMENT: dict[str, Callable[[Value], Value]] = {
    "neg": lambda a: -a,
    "abs": np.abs,
    "not": lambda a: ~a,
    "cnot": lambda a: (a == 0).astype(a.dtype),
    "popc": lambda a: np.bitwise_count(a).astype(np.uint32),
    "clz": _leading_zeros,
    "brev": _reverse_bits,
    "sqrt": np.sqrt,
    "rsqrt": lambda a: a.dtype.type(1) / np.sqrt(a),
    "rcp": lambda a: a.dtype.type(1) / a,
    "ex2": np.exp2,
    "lg2": np.log2,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "cvta": lambda a: a,
}
_SEVERAL_ARGUMENTS: dict[str, Operation] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "div": _divide,
    "rem": _remainder,
    "fma": lambda a, b, c: a * b + c,
    "min": np.fmin,
    "max": np.fmax,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "sad": lambda a, b, c: c + np.where(a > b, a - b, b - a),
    # All blocks of a cluster are assumed to have the same shared memory contents.
    "mapa": lambda address, rank: address,
    "bfe": _extract_bits,
    "bfi": _insert_bits,
    "prmt": _permute_bytes,
    "lop3": _lookup_logic,
    "copysign": lambda a, b: np.copysign(b, a),
    "mul24": lambda a, b: a * b,
}
_MODIFIED_OPERATIONS: dict[str, Operation] = {
    "mul": _multiply,
    "mad": _multiply_add,
    "shl": lambda words, a, by: _shift(words, a, by, True),
    "shr": lambda words, a, by: _shift(words, a, by, False),
    "shf": _funnel_shift,
    "bfind": _find_leading_bit,
}
_FIXED_TYPES: dict[str, tuple[str | None, ...]] = {
    "shl": (None, "u32"), "shr": (None, "u32"), "bfe": (None, "u32", "u32"), "bfi": (None, None, "u32", "u32"),
    "prmt": ("b32", "b32", "u32"), "mapa": (None, "u32"),
}  # fmt: skip


def find_operation(opcode: str, words: tuple[str, ...]) -> Operation:
    """Return the operation of an arithmetic instruction; raise KernelError for an unsupported one."""
    if opcode in _ONE_ARGUMENT:
        return _ONE_ARGUMENT[opcode]
    if opcode in _SEVERAL_ARGUMENTS:
        several = _SEVERAL_ARGUMENTS[opcode]
        if "sat" in words:
            return lambda *values: _saturate(words, several(*values))
        return several
    if opcode in _MODIFIED_OPERATIONS:
        with_words = _MODIFIED_OPERATIONS[opcode]
        return lambda *values: with_words(words, *values)
    raise KernelError(f"The timing model does not support the instruction {'.'.join((opcode, *words))}.")


def find_operand_types(opcode: str, words: tuple[str, ...], type: str, count: int) -> list[str]:
    """Return the type as which each of an instruction's `count` operands is read, such as "u32"."""
    if opcode in ("mad", "mul") and "wide" in words and count == 3:
        return [type, type, f"{type[0]}{2 * int(type[1:])}"]
    fixed_types = _FIXED_TYPES.get(opcode, ())
    return [(fixed_types[index] if index < len(fixed_types) else None) or type for index in range(count)]


def convert_value(value: Value, words: tuple[str, ...], target_type: str, source_type: str) -> Value:
    """Convert a value from the PTX type `source_type` to `target_type`, with the rounding of the modifiers of `cvt`."""
    source, target = DTYPES[source_type], DTYPES[target_type]
    if source.kind == "f" and target.kind in "iu":
        rounded = np.rint(value) if "rni" in words else np.floor(value) if "rmi" in words else value
        rounded = np.ceil(rounded) if "rpi" in words else rounded
        limits = np.iinfo(target)
        inside = np.clip(np.nan_to_num(np.trunc(rounded).astype(np.float64)), float(limits.min), float(limits.max))
        return inside.astype(target) if target.itemsize < 8 else np.trunc(rounded).astype(target)
    if source.kind == "f" and target.kind == "f" and source == target:
        for word, step in (("rni", np.rint), ("rmi", np.floor), ("rpi", np.ceil), ("rzi", np.trunc)):
            if word in words:
                value = step(value)
        return _saturate(words, value)
    if "sat" in words and target.kind in "iu" and source.kind in "iu":
        limits = np.iinfo(target)
        return np.clip(value.astype(np.int64), limits.min, limits.max).astype(target)
    return _saturate(words, value.astype(target))
