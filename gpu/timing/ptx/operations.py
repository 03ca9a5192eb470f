"""The arithmetic of PTX instructions as NumPy operations, on one value for all lanes or one per lane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpu.base.errors import KernelError
from gpu.simulator.ir.intrinsics import INTRINSICS
from gpu.simulator.ir.operations import BINARY, UNARY, get_cast
from gpu.simulator.types import Scalar
from gpu.timing.ptx import library_functions
from gpu.timing.ptx.library_functions import LIBRARY_FUNCTION

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


_ROWS = {row.ptx: row for row in (*BINARY.values(), *UNARY.values(), *INTRINSICS.values()) if isinstance(row.ptx, str)}
"""The operators and intrinsics that PTX instructions compute."""


def _shared_operation(instruction: str) -> Operation:
    """Return the operation of an instruction that C or CUDA also has."""
    forms = _ROWS[instruction].numpy
    if callable(forms):
        return forms
    return lambda a, b: forms[a.dtype.kind](a, b)


COMPARISONS: dict[str, Operation] = {
    **{name.removeprefix("setp."): _shared_operation(name) for name in _ROWS if name.startswith("setp.")},
    "ne": lambda a, b: (a < b) | (a > b),
    "lo": lambda a, b: a < b,
    "ls": lambda a, b: a <= b,
    "hi": lambda a, b: a > b,
    "hs": lambda a, b: a >= b,
    "equ": lambda a, b: ~((a < b) | (a > b)),
    "ltu": lambda a, b: ~(a >= b),
    "leu": lambda a, b: ~(a > b),
    "gtu": lambda a, b: ~(a <= b),
    "geu": lambda a, b: ~(a < b),
    "num": lambda a, b: (a == a) & (b == b),
    "nan": lambda a, b: (a != a) | (b != b),
}


def _shift(instruction: str) -> Operation:
    """Return a shift; the amount has 32 bits, of which a shorter type holds fewer."""
    shift = _shared_operation(instruction)
    return lambda a, amount: shift(a, np.minimum(amount.view(np.uint32), np.uint32(255)))


def _find_leading_bit(words: tuple[str, ...], a: Value) -> Value:
    unsigned = a.view(np.dtype(f"u{a.dtype.itemsize}"))
    if a.dtype.kind == "i":
        unsigned = np.where(a < 0, ~unsigned, unsigned)
    zeros = _shared_operation("clz")(unsigned).astype(np.uint32)
    bits = a.dtype.itemsize * 8
    position = zeros if "shiftamt" in words else (np.uint32(bits - 1) - zeros)
    return np.where(unsigned == 0, np.uint32(0xFFFFFFFF), position).astype(np.uint32)


def _extract_bits(a: Value, position: Value, length: Value) -> Value:
    shift, mask, word = _find_field(a, position, length)
    field = a.view(word) >> shift & mask
    if a.dtype.kind == "i":
        top = mask & ~(mask >> word(1))
        field = np.where(field & top, field | ~mask, field)
    return field.view(a.dtype)


def _insert_bits(a: Value, b: Value, position: Value, length: Value) -> Value:
    shift, mask, _ = _find_field(b, position, length)
    mask = mask << shift
    return (b & ~mask) | ((a << shift) & mask)


def _find_field(value: Value, position: Value, length: Value) -> tuple[Value, Value, Any]:
    """Return a bit field's shift, the mask of as many low bits as the field has, and the unsigned type of a value."""
    bits = 8 * value.dtype.itemsize
    word = np.dtype(f"u{value.dtype.itemsize}").type
    position, length = (each.astype(word) & word(255) for each in (position, length))
    mask = np.where(length >= bits, ~word(0), (word(1) << np.minimum(length, word(bits - 1))) - word(1))
    return np.minimum(position, word(bits - 1)), mask, word


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


_multiply_high = _shared_operation("mul.hi")


def _multiply(words: tuple[str, ...], a: Value, b: Value) -> Value:
    if "wide" in words:
        wide = np.dtype(f"{a.dtype.kind}{2 * a.dtype.itemsize}")
        return a.astype(wide) * b.astype(wide)
    return _multiply_high(a, b) if "hi" in words else a * b


def _multiply_add(words: tuple[str, ...], a: Value, b: Value, c: Value) -> Value:
    return _multiply(words, a, b) + c


def _saturate(words: tuple[str, ...], value: Value) -> Value:
    return np.clip(value, value.dtype.type(0), value.dtype.type(1)) if "sat" in words else value


_OPERATIONS: dict[str, Operation] = {
    **{name: _shared_operation(name) for name in _ROWS},
    "cnot": lambda a: (a == 0).astype(a.dtype),
    "cvta": lambda a: a,
    "fma": lambda a, b, c: a * b + c,
    "sad": lambda a, b, c: c + np.where(a > b, a - b, b - a),
    # All blocks of a cluster are assumed to have the same shared memory contents.
    "mapa": lambda address, rank: address,
    "bfe": _extract_bits,
    "bfi": _insert_bits,
    "lop3": _lookup_logic,
    "copysign": lambda a, b: np.copysign(b, a),
    "shl": _shift("shl"),
    "shr": _shift("shr"),
}
_MODIFIED_OPERATIONS: dict[str, Operation] = {
    "mul": _multiply,
    "mad": _multiply_add,
    "shf": _funnel_shift,
    "bfind": _find_leading_bit,
}
_FIXED_TYPES: dict[str, tuple[str | None, ...]] = {
    "shl": (None, "u32"), "shr": (None, "u32"), "bfe": (None, "u32", "u32"), "bfi": (None, None, "u32", "u32"),
    "prmt": ("b32", "b32", "u32"), "mapa": (None, "u32"),
}  # fmt: skip


def find_operation(opcode: str, words: tuple[str, ...]) -> Operation:
    """Return the operation of an arithmetic instruction; raise KernelError for an unsupported one."""
    if opcode in _OPERATIONS:
        operation = _OPERATIONS[opcode]
        if "sat" in words:
            return lambda *values: _saturate(words, operation(*values))
        return operation
    if opcode in _MODIFIED_OPERATIONS:
        with_words = _MODIFIED_OPERATIONS[opcode]
        return lambda *values: with_words(words, *values)
    if opcode == LIBRARY_FUNCTION:
        return library_functions.get_function(words)
    raise KernelError(f"The timing model does not support the instruction {'.'.join((opcode, *words))}.")


def find_operand_types(opcode: str, words: tuple[str, ...], type: str, count: int) -> list[str]:
    """Return the PTX type as which each operand of an instruction is read.

    Parameters
    ----------
    opcode : str
        The instruction's name without modifiers, such as "shl".
    words : tuple of str
        Its modifiers, such as "wide".
    type : str
        Its type, such as "u32".
    count : int
        The number of source operands.
    """
    if opcode in ("mad", "mul") and "wide" in words and count == 3:
        return [type, type, f"{type[0]}{2 * int(type[1:])}"]
    fixed_types = _FIXED_TYPES.get(opcode, ())
    if opcode == LIBRARY_FUNCTION:
        fixed_types = library_functions.OPERAND_TYPES.get(words[0], ())
    return [(fixed_types[index] if index < len(fixed_types) else None) or type for index in range(count)]


def convert_value(value: Value, words: tuple[str, ...], target_type: str, source_type: str) -> Value:
    """Convert a value between PTX types, as `cvt` does.

    Parameters
    ----------
    value : scalar or array
        The value, one for all lanes or one per lane, in the source type.
    words : tuple of str
        The modifiers, such as "rni" for rounding to the nearest integer or "sat" for saturation.
    target_type, source_type : str
        The types, such as "s32" and "f32".
    """
    source, target = DTYPES[source_type], DTYPES[target_type]
    if source.kind == "f" and target.kind in "iu":
        rounded = np.rint(value) if "rni" in words else np.floor(value) if "rmi" in words else value
        rounded = np.ceil(rounded) if "rpi" in words else rounded
        return get_cast(Scalar(source.name), Scalar(target.name))(rounded)
    if source.kind == "f" and target.kind == "f" and source == target:
        for word, step in (("rni", np.rint), ("rmi", np.floor), ("rpi", np.ceil), ("rzi", np.trunc)):
            if word in words:
                value = step(value)
        return _saturate(words, value)
    if "sat" in words and target.kind in "iu" and source.kind in "iu":
        limits = np.iinfo(target)
        return np.clip(value.astype(np.int64), limits.min, limits.max).astype(target)
    return _saturate(words, value.astype(target))
