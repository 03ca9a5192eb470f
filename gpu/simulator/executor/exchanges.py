"""What the lanes of a warp exchange. Lanes are rows of 32; a partial last warp has lanes that never take part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.simulator.executor.batch import BlockBatch
from gpu.simulator.executor.masks import LaneMask
from gpu.simulator.intrinsics import MATRIX_PRODUCTS
from gpu.warp import WARP

Array = npt.NDArray[Any]

ALL_LANES = np.uint32(0xFFFFFFFF)
"""The mask that names all lanes of a warp."""

_LANE = np.arange(WARP)
_BIT = np.uint32(1) << _LANE.astype(np.uint32)


def run(op: str, batch: BlockBatch, mask: LaneMask, arguments: list[Any]) -> Any:
    """Run a warp operation in the lanes of `mask` and return its value, one a lane.

    Parameters
    ----------
    op : str
        One of `gpu.simulator.intrinsics.WARP_OPERATIONS`.
    batch : BlockBatch
    mask : LaneMask
        The lanes that are here. Those that the operation's own mask names and that are not here do not take part.
    arguments : list
        Its arguments, one value or one a lane.
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
    names = _rows(named, batch.geometry.lanes)
    taking_part = active & (np.bitwise_and(names, _BIT) != 0)
    if not isinstance(named, np.ndarray):
        return _VOTES[op](rows, taking_part)
    # Parts of a warp that name different lanes, as the tiles of a block do, are each among themselves.
    leaders = _leaders(names)
    several = np.unique(leaders[taking_part]) if taking_part.any() else leaders[:1, 0]
    result: Any = None
    for leader in several:
        own = leaders == leader
        part = _VOTES[op](rows, taking_part & own)
        result = part if result is None else np.where(own.reshape(-1), part, result)
    return result


def operands_of_product(arguments: Sequence[Any], lanes: int) -> tuple[Array, list[tuple[Any, Any]]]:
    """Return for a result of a product of tiles where its factors are, and the factors.

    Parameters
    ----------
    arguments : sequence
        The column, what is added to, what each lane has of its row, and of its column: one value or one a lane.
    lanes : int
        Of the batch.

    Returns
    -------
    sources : array
        For each of the 4 lanes that hold a row, and then a column, the one that each lane reads: shape (2, 4, lanes).
    factors : list of tuple
        What lanes hold of rows and columns.
    """
    column, _, *factors = arguments
    numbers = np.arange(lanes)
    first, lane = numbers // WARP * WARP, numbers % WARP
    turn = np.arange(4)[:, None]
    of_row = first + lane // 4 * 4 + turn
    of_column = first + (2 * (lane % 4) + np.broadcast_to(column, lanes)) * 4 + turn
    half = len(factors) // 2
    return np.stack([of_row, of_column]), list(zip(factors[:half], factors[half:], strict=True))


def _matrix_product(arguments: Sequence[Any], lanes: int) -> Any:
    """Add products one by one: those of floats are exact in float64, and their sum is rounded to a float32 at the end.

    Whole numbers wrap.
    """
    (rows, columns), factors = operands_of_product(arguments, lanes)
    held = np.asarray(arguments[1])
    wide = np.float64 if held.dtype.kind == "f" else held.dtype
    total = np.array(np.broadcast_to(held, lanes), wide)
    for of_row, of_column in factors:
        left, right = (np.broadcast_to(each, lanes).astype(wide) for each in (of_row, of_column))
        for row, column in zip(rows, columns, strict=True):
            total += left[row] * right[column]
    return total.astype(held.dtype)


def group_of(batch: BlockBatch, mask: LaneMask, named: Any) -> tuple[Array, Array]:
    """Return the lanes that take part in a warp operation, and the number of each one's group."""
    names = _rows(named, batch.geometry.lanes)
    taking_part = mask.bits.reshape(-1, WARP) & (np.bitwise_and(names, _BIT) != 0)
    lanes = np.flatnonzero(taking_part)
    return lanes, (lanes // WARP << WARP) | _leaders(names).reshape(-1)[lanes].astype(np.int64)


def _leaders(names: Array) -> Array:
    """Return the bit of the lowest lane of each set of lanes."""
    lowest: Array = names & (~names + names.dtype.type(1))
    return lowest


def _rows(value: Any, lanes: int) -> Array:
    return np.broadcast_to(value, lanes).reshape(-1, WARP)


def _to_lanes(per_warp: Array) -> Array:
    return np.repeat(per_warp, WARP)


def _ballot(bits: Array) -> Array:
    packed: Array = np.where(bits, _BIT, np.uint32(0)).sum(axis=1, dtype=np.uint32)
    return packed


def _shuffle(op: str, values: list[Any], lanes: int) -> Any:
    """Return the value of another lane; where that lies outside of the section of `width` lanes, the lane's own."""
    value, *others = values
    if not isinstance(value, np.ndarray):
        return value
    return np.take_along_axis(value.reshape(-1, WARP), shuffled_from(op, others, lanes), axis=1).reshape(-1)


def shuffled_from(op: str, others: Sequence[Any], lanes: int) -> Array:
    """Return which lane of its warp each lane reads in a shuffle: numbers from 0, shape (warps, 32).

    Parameters
    ----------
    op : str
    others : sequence
        By how much, and, where it is given, the width of the sections, one value or one a lane.
    lanes : int
        Of the batch.
    """
    by = _rows(others[0], lanes).astype(np.int64)
    width = _rows(others[1] if len(others) > 1 else np.int32(WARP), lanes).astype(np.int64)
    first = _LANE // width * width
    if op == "__shfl_sync":
        source = first + by % width
    elif op == "__shfl_up_sync":
        source = _LANE - by
    elif op == "__shfl_down_sync":
        source = _LANE + by
    else:
        source = _LANE ^ by
    inside = (source < first + width) & ((source >= first) | (op == "__shfl_xor_sync"))
    found: Array = np.where(inside, source, _LANE)
    return found


def _match_any(rows: Array, taking_part: Array) -> Array:
    equal = (rows[:, :, None] == rows[:, None, :]) & taking_part[:, None, :]
    packed: Array = np.where(equal, _BIT, np.uint32(0)).sum(axis=2, dtype=np.uint32)
    return packed.reshape(-1)


def _reduction(combine: np.ufunc, neutral: Callable[[np.dtype[Any]], int]) -> Callable[[Array, Array], Array]:
    def reduce(rows: Array, taking_part: Array) -> Array:
        filled = np.where(taking_part, rows, np.array(neutral(rows.dtype)).astype(rows.dtype))
        return _to_lanes(combine.reduce(filled, axis=1, dtype=rows.dtype))

    return reduce


def _smallest(dtype: np.dtype[Any]) -> int:
    return int(np.iinfo(dtype).min)


def _largest(dtype: np.dtype[Any]) -> int:
    return int(np.iinfo(dtype).max)


_VOTES: dict[str, Callable[[Array, Array], Array]] = {
    "__ballot_sync": lambda rows, here: _to_lanes(_ballot((rows != 0) & here)),
    "__any_sync": lambda rows, here: _to_lanes(((rows != 0) & here).any(axis=1).astype(np.int32)),
    "__all_sync": lambda rows, here: _to_lanes(((rows != 0) | ~here).all(axis=1).astype(np.int32)),
    "__match_any_sync": _match_any,
    "__reduce_add_sync": _reduction(np.add, lambda dtype: 0),
    "__reduce_min_sync": _reduction(np.minimum, _largest),
    "__reduce_max_sync": _reduction(np.maximum, _smallest),
    "__reduce_and_sync": _reduction(np.bitwise_and, lambda dtype: -1),
    "__reduce_or_sync": _reduction(np.bitwise_or, lambda dtype: 0),
    "__reduce_xor_sync": _reduction(np.bitwise_xor, lambda dtype: 0),
}


def block_vote(op: str, batch: BlockBatch, mask: LaneMask, votes: Any) -> Array:
    """Return the number of threads of the block that voted for something, or whether all or any of them did."""
    shape = (batch.geometry.blocks, batch.geometry.lanes_per_block)
    holds = np.broadcast_to(votes, batch.geometry.lanes) & mask.bits
    count = holds.reshape(shape).sum(axis=1)
    if op == "__syncthreads_and":
        count = count == mask.bits.reshape(shape).sum(axis=1)
    elif op == "__syncthreads_or":
        count = count > 0
    return np.repeat(count.astype(np.int32), batch.geometry.lanes_per_block)
