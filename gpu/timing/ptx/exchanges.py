"""What lanes of a warp exchange: shuffles, votes, matches, sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.errors import KernelError
from gpu.timing.ptx.lanes import SampleLanes
from gpu.warp import WARP

Array = npt.NDArray[Any]

_LANE = np.arange(WARP, dtype=np.int64)
_WEIGHTS = (np.uint32(1) << np.arange(WARP, dtype=np.uint32)).astype(np.uint32)
_SUMS: dict[str, Any] = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}  # fmt: skip


def spread(value: Any, lanes: int) -> Array:
    """Return a value as one a lane."""
    if isinstance(value, np.ndarray) and value.ndim:
        return value
    return np.full(lanes, value, value.dtype)


def shuffled(mode: str, value: Array, by: Array, limits: Array) -> tuple[Array, Array]:
    """Return what each lane receives, and whether it is from a lane of its part of the warp."""
    rows = value.reshape(-1, WARP)
    by, limits = by.reshape(-1, WARP).astype(np.int64), limits.reshape(-1, WARP).astype(np.int64)
    clamp, segment = limits & 31, limits >> 8 & 31
    most, least = (_LANE & segment) | (clamp & ~segment & 31), _LANE & segment
    if mode == "up":
        source = _LANE - (by & 31)
        inside = source >= most
    elif mode == "down":
        source = _LANE + (by & 31)
        inside = source <= most
    elif mode == "bfly":
        source = _LANE ^ (by & 31)
        inside = source <= most
    else:
        source = least | (by & ~segment & 31)
        inside = source <= most
    chosen = np.where(inside, source, _LANE)
    return np.take_along_axis(rows, chosen & 31, axis=1).ravel(), inside.ravel()


def voted(mode: str, holds: Array, mask: SampleLanes) -> Array:
    """Return what a vote of the active lanes gives to every lane of a warp."""
    rows = (holds & mask.bits).reshape(-1, WARP)
    active = mask.bits.reshape(-1, WARP)
    if mode == "ballot":
        found = rows @ _WEIGHTS
        return np.repeat(found.astype(np.uint32), WARP)
    if mode == "any":
        return np.repeat(rows.any(axis=1), WARP)
    everyone = (rows == active).all(axis=1)
    if mode == "all":
        return np.repeat(everyone, WARP)
    return np.repeat(everyone | ~rows.any(axis=1), WARP)


def matched(mode: str, value: Array, mask: SampleLanes) -> Array:
    """Return which active lanes of its warp have the same value as each lane."""
    rows, active = value.reshape(-1, WARP), mask.bits.reshape(-1, WARP)
    same = (rows[:, :, None] == rows[:, None, :]) & active[:, None, :]
    found = (same @ _WEIGHTS).astype(np.uint32)
    if mode == "all":
        everyone = active @ _WEIGHTS
        found = np.where(found == everyone[:, None], found, np.uint32(0))
    flat: Array = found.ravel()
    return flat


def summed_up(mode: str, value: Array, mask: SampleLanes) -> Array:
    """Return what all active lanes of a warp come to."""
    if mode not in _SUMS:
        raise KernelError(f"The model does not know the instruction redux.sync.{mode}.")
    function = _SUMS[mode]
    neutral = {
        "add": 0, "or": 0, "xor": 0, "and": -1, "min": np.iinfo(value.dtype).max, "max": np.iinfo(value.dtype).min,
    }[mode]  # fmt: skip
    filled = np.where(mask.bits, value, np.array(neutral).astype(value.dtype)).reshape(-1, WARP)
    summed: Array = np.repeat(function.reduce(filled, axis=1).astype(value.dtype), WARP)
    return summed
