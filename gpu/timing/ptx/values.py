"""Values of registers, one for all lanes or one a lane: as other types, and as the text writes them."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from gpu.timing.ptx.lanes import SampleLanes

Value = Any


def of_lanes(value: Value, mask: SampleLanes) -> Value:
    """Return the values of some lanes."""
    return value[mask.bits] if value.ndim else value


def read_as(value: Value, dtype: np.dtype[Any]) -> Value:
    """Return the same bits as another type; of another width, the number that they are."""
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


def widened(value: Value, width: int) -> Value:
    """Return a whole number in a register of at least so many bytes."""
    if not width or value.dtype.itemsize >= width or value.dtype.kind == "f":
        return value
    return value.astype(np.dtype(f"{value.dtype.kind}{width}"))


def constant_of(text: str, dtype: np.dtype[Any]) -> Value:
    """Return what a number in the text stands for: whole, or the bits of a floating-point one."""
    if text[:2].lower() in ("0f", "0d"):
        kind = ">f" if text[1].lower() == "f" else ">d"
        number = np.dtype(kind[1]).type(struct.unpack(kind, bytes.fromhex(text[2:]))[0])
        return number.astype(dtype) if dtype.kind == "f" else number.view(dtype)
    negated = text.startswith("!")
    whole = int(text.lstrip("!").rstrip("U"), 0)
    if dtype.kind == "b":
        return np.bool_(bool(whole) != negated)
    if dtype.kind == "f":
        return np.uint64(whole & (1 << 64) - 1).astype(np.dtype(f"u{dtype.itemsize}")).view(dtype)
    return np.array(whole & (1 << 64) - 1, np.uint64).astype(np.dtype(f"u{dtype.itemsize}")).view(dtype)[()]
