"""Warp operations: shuffles, votes, reductions and matrix products, and votes of blocks.

Lanes are arranged in rows of 32; in a partial last warp some lanes never participate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.base.lane_mask import LaneMask
from gpu.base.warp import WARP
from gpu.simulator.executor.state.batch import BlockBatch
from gpu.simulator.ir.intrinsics import MATRIX_PRODUCTS

Array = npt.NDArray[Any]

ALL_LANES = np.uint32(0xFFFFFFFF)
"""The mask of all lanes of a warp."""

_LANE = np.arange(WARP)
_BIT = np.uint32(1) << _LANE.astype(np.uint32)


def run_warp_operation(op: str, batch: BlockBatch, mask: LaneMask, arguments: list[Any]) -> Any:
    """Run a warp operation in the lanes of `mask` and return its value, one per lane.

    Parameters
    ----------
    op : str
        One of `gpu.simulator.ir.intrinsics.WARP_OPERATIONS`.
    batch : BlockBatch
        The batch of the lanes.
    mask : LaneMask
        The active lanes. Lanes that the operation's mask argument names but that are not active do not participate.
    arguments : list
        The arguments, each one value or one per lane.
    """
    active = mask.bits.reshape(-1, WARP)
    if op == "__activemask":
        return _to_lanes(_ballot(active))
    if op in MATRIX_PRODUCTS:
        return _matrix_product(arguments, batch.geometry.lanes)
    named, *values = arguments
    if op.startswith("__shfl"):
        return _shuffle(op, values, batch.geometry.lanes)
    rows = np.broadcast_to(values[0], batch.geometry.lanes).reshape(-1, WARP)
    masks = _to_rows(named, batch.geometry.lanes)
    participating = active & (np.bitwise_and(masks, _BIT) != 0)
    if not isinstance(named, np.ndarray):
        return _VOTES[op](rows, participating)
    # Parts of a warp with different masks, such as the tiles of a block, run the operation separately.
    leaders = _find_leaders(masks)
    distinct = np.unique(leaders[participating]) if participating.any() else leaders[:1, 0]
    result: Any = None
    for leader in distinct:
        in_group = leaders == leader
        part = _VOTES[op](rows, participating & in_group)
        result = part if result is None else np.where(in_group.reshape(-1), part, result)
    return result


def find_product_operands(arguments: Sequence[Any], lanes: int) -> tuple[Array, list[tuple[Any, Any]]]:
    """Return the factors of one element of a matrix product, and the lanes that hold them.

    Parameters
    ----------
    arguments : sequence
        The column, the addend, and each lane's fragments of its row and of its column; each one value or one per lane.
    lanes : int
        The number of lanes of the batch.

    Returns
    -------
    sources : array
        The lanes from which each lane reads: shape (2, 4, lanes), for row and column, and each of the 4 lanes that
        hold one.
    factors : list of tuple
        Pairs of row and column fragments.
    """
    column, _, *factors = arguments
    numbers = np.arange(lanes)
    first, lane = numbers // WARP * WARP, numbers % WARP
    turn = np.arange(4)[:, None]
    row_sources = first + lane // 4 * 4 + turn
    column_sources = first + (2 * (lane % 4) + np.broadcast_to(column, lanes)) * 4 + turn
    half = len(factors) // 2
    return np.stack([row_sources, column_sources]), list(zip(factors[:half], factors[half:], strict=True))


def _matrix_product(arguments: Sequence[Any], lanes: int) -> Any:
    """Return an element of a matrix product per lane.

    Products of floats are exact in float64, and their sum is rounded to float32 at the end. Integers wrap.
    """
    (rows, columns), factors = find_product_operands(arguments, lanes)
    addend = np.asarray(arguments[1])
    wide = np.float64 if addend.dtype.kind == "f" else addend.dtype
    total = np.array(np.broadcast_to(addend, lanes), wide)
    for row_values, column_values in factors:
        left, right = (np.broadcast_to(each, lanes).astype(wide) for each in (row_values, column_values))
        for row, column in zip(rows, columns, strict=True):
            total += left[row] * right[column]
    return total.astype(addend.dtype)


def find_groups(batch: BlockBatch, mask: LaneMask, member_mask: Any) -> tuple[Array, Array]:
    """Return the lanes that participate in a warp operation, and the number of each one's group."""
    masks = _to_rows(member_mask, batch.geometry.lanes)
    participating = mask.bits.reshape(-1, WARP) & (np.bitwise_and(masks, _BIT) != 0)
    lanes = np.flatnonzero(participating)
    return lanes, (lanes // WARP << WARP) | _find_leaders(masks).reshape(-1)[lanes].astype(np.int64)


def _find_leaders(masks: Array) -> Array:
    """Return the bit of the lowest lane of each mask."""
    lowest: Array = masks & (~masks + masks.dtype.type(1))
    return lowest


def _to_rows(value: Any, lanes: int) -> Array:
    return np.broadcast_to(value, lanes).reshape(-1, WARP)


def _to_lanes(per_warp: Array) -> Array:
    return np.repeat(per_warp, WARP)


def _ballot(bits: Array) -> Array:
    packed: Array = np.where(bits, _BIT, np.uint32(0)).sum(axis=1, dtype=np.uint32)
    return packed


def _shuffle(op: str, values: list[Any], lanes: int) -> Any:
    """Return the value of the source lane, or the lane's own if the source is outside its section of `width` lanes."""
    value, *others = values
    if not isinstance(value, np.ndarray):
        return value
    return np.take_along_axis(value.reshape(-1, WARP), find_shuffle_sources(op, others, lanes), axis=1).reshape(-1)


def find_shuffle_sources(op: str, arguments: Sequence[Any], lanes: int) -> Array:
    """Return the lane of its warp that each lane reads in a shuffle: numbers from 0, shape (warps, 32).

    Parameters
    ----------
    op : str
        Such as "__shfl_down_sync".
    arguments : sequence
        The lane, distance or mask of the shuffle, and the width if it is given; each one value or one per lane.
    lanes : int
        The number of lanes of the batch.
    """
    # As PTX defines `shfl`: 5 bits of the argument count, and a width selects the bits of the lane that stay the same.
    by = _to_rows(arguments[0], lanes).astype(np.int64) & (WARP - 1)
    width = _to_rows(arguments[1] if len(arguments) > 1 else np.int32(WARP), lanes).astype(np.int64)
    kept = (WARP - width) & (WARP - 1)
    free = ~kept & (WARP - 1)
    first = _LANE & kept
    if op == "__shfl_sync":
        source = first | by & free
    elif op == "__shfl_up_sync":
        source = _LANE - by
    elif op == "__shfl_down_sync":
        source = _LANE + by
    else:
        source = _LANE ^ by
    inside = (source <= (first | free)) & ((source >= first) | (op == "__shfl_xor_sync"))
    sources: Array = np.where(inside, source, _LANE)
    return sources


def _match_any(rows: Array, participating: Array) -> Array:
    equal = (rows[:, :, None] == rows[:, None, :]) & participating[:, None, :]
    packed: Array = np.where(equal, _BIT, np.uint32(0)).sum(axis=2, dtype=np.uint32)
    return packed.reshape(-1)


def _reduction(combine: np.ufunc, neutral: Callable[[np.dtype[Any]], int]) -> Callable[[Array, Array], Array]:
    def reduce(rows: Array, participating: Array) -> Array:
        filled = np.where(participating, rows, np.array(neutral(rows.dtype)).astype(rows.dtype))
        return _to_lanes(combine.reduce(filled, axis=1, dtype=rows.dtype))

    return reduce


def _smallest_value(dtype: np.dtype[Any]) -> int:
    return int(np.iinfo(dtype).min)


def _largest_value(dtype: np.dtype[Any]) -> int:
    return int(np.iinfo(dtype).max)


_VOTES: dict[str, Callable[[Array, Array], Array]] = {
    "__ballot_sync": lambda rows, active: _to_lanes(_ballot((rows != 0) & active)),
    "__any_sync": lambda rows, active: _to_lanes(((rows != 0) & active).any(axis=1).astype(np.int32)),
    "__all_sync": lambda rows, active: _to_lanes(((rows != 0) | ~active).all(axis=1).astype(np.int32)),
    "__match_any_sync": _match_any,
    "__reduce_add_sync": _reduction(np.add, lambda dtype: 0),
    "__reduce_min_sync": _reduction(np.minimum, _largest_value),
    "__reduce_max_sync": _reduction(np.maximum, _smallest_value),
    "__reduce_and_sync": _reduction(np.bitwise_and, lambda dtype: -1),
    "__reduce_or_sync": _reduction(np.bitwise_or, lambda dtype: 0),
    "__reduce_xor_sync": _reduction(np.bitwise_xor, lambda dtype: 0),
}


def block_vote(op: str, batch: BlockBatch, mask: LaneMask, votes: Any) -> Array:
    """Return the result of a vote at a block barrier.

    Parameters
    ----------
    op : str
        "__syncthreads_count", "__syncthreads_and" or "__syncthreads_or".
    batch : BlockBatch
        The batch of the lanes.
    mask : LaneMask
        The lanes that arrived, as whole blocks.
    votes : bool or bool array
        Their votes, one for all lanes or one per lane.

    Returns
    -------
    int32 array
        The result for each lane of the batch.
    """
    shape = (batch.geometry.blocks, batch.geometry.lanes_per_block)
    holds = np.broadcast_to(votes, batch.geometry.lanes) & mask.bits
    count = holds.reshape(shape).sum(axis=1)
    if op == "__syncthreads_and":
        count = count == mask.bits.reshape(shape).sum(axis=1)
    elif op == "__syncthreads_or":
        count = count > 0
    return np.repeat(count.astype(np.int32), batch.geometry.lanes_per_block)
