"""Data exchange between the lanes of a warp: shuffles, votes, matches, reductions."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.base.errors import KernelError
from gpu.base.warp import WARP
from gpu.timing.ptx.lanes import SampleLanes

Array = npt.NDArray[Any]

_LANE = np.arange(WARP, dtype=np.int64)
_WEIGHTS = (np.uint32(1) << np.arange(WARP, dtype=np.uint32)).astype(np.uint32)
_REDUCTIONS: dict[str, Any] = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}  # fmt: skip


def broadcast_to_lanes(value: Any, lanes: int) -> Array:
    """Broadcast a value to one per lane."""
    if isinstance(value, np.ndarray) and value.ndim:
        return value
    return np.full(lanes, value, value.dtype)


def shuffle_values(mode: str, value: Array, delta: Array, limits: Array) -> tuple[Array, Array]:
    """Return the value that each lane receives, and whether its source lane is in range.

    Parameters
    ----------
    mode : {"up", "down", "bfly", "idx"}
    value, delta, limits : arrays, one element per lane
        The operands of `shfl.sync`: the value, the lane or its distance, and the packed clamp and segment mask.
    """
    rows = value.reshape(-1, WARP)
    delta, limits = delta.reshape(-1, WARP).astype(np.int64), limits.reshape(-1, WARP).astype(np.int64)
    clamp, segment = limits & 31, limits >> 8 & 31
    highest, lowest = (_LANE & segment) | (clamp & ~segment & 31), _LANE & segment
    if mode == "up":
        source = _LANE - (delta & 31)
        inside = source >= highest
    elif mode == "down":
        source = _LANE + (delta & 31)
        inside = source <= highest
    elif mode == "bfly":
        source = _LANE ^ (delta & 31)
        inside = source <= highest
    else:
        source = lowest | (delta & ~segment & 31)
        inside = source <= highest
    chosen = np.where(inside, source, _LANE)
    return np.take_along_axis(rows, chosen & 31, axis=1).ravel(), inside.ravel()


def compute_vote(mode: str, holds: Array, mask: SampleLanes) -> Array:
    """Return the result of a vote among the active lanes, for every lane of a warp."""
    rows = (holds & mask.bits).reshape(-1, WARP)
    active = mask.bits.reshape(-1, WARP)
    if mode == "ballot":
        ballot = rows @ _WEIGHTS
        return np.repeat(ballot.astype(np.uint32), WARP)
    if mode == "any":
        return np.repeat(rows.any(axis=1), WARP)
    unanimous = (rows == active).all(axis=1)
    if mode == "all":
        return np.repeat(unanimous, WARP)
    return np.repeat(unanimous | ~rows.any(axis=1), WARP)


def match_values(mode: str, value: Array, mask: SampleLanes) -> Array:
    """Return for each lane a mask of the active lanes of its warp with the same value."""
    rows, active = value.reshape(-1, WARP), mask.bits.reshape(-1, WARP)
    same = (rows[:, :, None] == rows[:, None, :]) & active[:, None, :]
    masks = (same @ _WEIGHTS).astype(np.uint32)
    if mode == "all":
        active_mask = active @ _WEIGHTS
        masks = np.where(masks == active_mask[:, None], masks, np.uint32(0))
    flat: Array = masks.ravel()
    return flat


def reduce_values(mode: str, value: Array, mask: SampleLanes) -> Array:
    """Reduce the values of a warp's active lanes."""
    if mode not in _REDUCTIONS:
        raise KernelError(f"The timing model does not support the instruction redux.sync.{mode}.")
    function = _REDUCTIONS[mode]
    neutral = {
        "add": 0, "or": 0, "xor": 0, "and": -1, "min": np.iinfo(value.dtype).max, "max": np.iinfo(value.dtype).min,
    }[mode]  # fmt: skip
    filled = np.where(mask.bits, value, np.array(neutral).astype(value.dtype)).reshape(-1, WARP)
    reduced: Array = np.repeat(function.reduce(filled, axis=1).astype(value.dtype), WARP)
    return reduced
