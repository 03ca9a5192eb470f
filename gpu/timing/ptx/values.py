"""Register values, one for all lanes or one per lane: type conversion, and constants from the text."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.timing.ptx.lanes import SampleLanes

Value = Any


def select_lanes(value: Value, mask: SampleLanes) -> Value:
    """Return the values of selected lanes."""
    return value[mask.bits] if value.ndim else value


def reinterpret_value(value: Value, dtype: np.dtype[Any]) -> Value:
    """Reinterpret bits as another type; convert numerically if the widths differ."""
    if value.dtype == dtype:
        return value
    if value.dtype.itemsize == dtype.itemsize and value.dtype.kind != "b" and dtype.kind != "b":
        return value.view(dtype)
    if dtype.kind == "b":
        return value != 0
    if value.dtype.kind == "b":
        return value.astype(dtype)
    if dtype.kind == "f":
        return value.view(np.dtype(f"f{value.dtype.itemsize}")).astype(dtype)
    return value.view(np.dtype(f"u{value.dtype.itemsize}")).astype(dtype)


def widen_value(value: Value, width: int) -> Value:
    """Extend an integer to a register width in bytes; floats and wider values are unchanged."""
    if not width or value.dtype.itemsize >= width or value.dtype.kind == "f":
        return value
    return value.astype(np.dtype(f"{value.dtype.kind}{width}"))


def parse_constant(text: str, dtype: np.dtype[Any]) -> Value:
    """Parse a constant of the text: an integer, or the bits of a floating-point number."""
    if text[:2].lower() in ("0f", "0d"):
        kind = ">f" if text[1].lower() == "f" else ">d"
        number = np.dtype(kind[1]).type(struct.unpack(kind, bytes.fromhex(text[2:]))[0])
        return number.astype(dtype) if dtype.kind == "f" else number.view(dtype)
    is_negated = text.startswith("!")
    integer = int(text.lstrip("!").rstrip("U"), 0)
    if dtype.kind == "b":
        return np.bool_(bool(integer) != is_negated)
    if dtype.kind == "f":
        return np.uint64(integer & (1 << 64) - 1).astype(np.dtype(f"u{dtype.itemsize}")).view(dtype)
    return np.array(integer & (1 << 64) - 1, np.uint64).astype(np.dtype(f"u{dtype.itemsize}")).view(dtype)[()]


def multiply_wrapped(count: int, number: Any, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return a product as an array of one integer, without the bits that its type does not have."""
    product: npt.NDArray[Any] = np.array([count]).astype(dtype) * np.array([number]).astype(dtype)
    return product
