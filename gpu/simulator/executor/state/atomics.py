"""Vectorized atomic operations: the result is that of executing them one after the other in lane order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_UFUNCS: dict[str, Any] = {
    "add": np.add,
    "sub": np.subtract,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


class AtomicOperation(NamedTuple):
    """An atomic read-modify-write operation of the lanes of a batch.

    Parameters
    ----------
    op : str
        "add", "sub", "min", "max", "and", "or", "xor", "inc", "dec", "exch" or "cas".
    operands : sequence
        The operands, each one for all lanes or one per lane: the second argument of CUDA's function, and for "cas" the
        third.
    used : bool
        Whether the old values are needed.
    """

    op: str
    operands: Sequence[Any]
    used: bool


def apply_atomics(view: Array, index: Array, operation: AtomicOperation) -> Array | None:
    """Apply an atomic operation to `view[index]` in lane order, and return the old value of each lane if it is used.

    Parameters
    ----------
    view : ndarray
        The memory.
    index : ndarray of intp
        One element per lane; elements may repeat.
    operation : AtomicOperation
        Its operands are one value each or one per element of `index`.
    """
    op, values, used = operation
    if not used and op in _UFUNCS:
        _UFUNCS[op].at(view, index, values[0])
        return None
    if index.size == 1:
        return _apply_once(view, index, op, values)
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    is_first = np.concatenate(([True], ordered[1:] != ordered[:-1]))
    start = np.flatnonzero(is_first)[np.cumsum(is_first) - 1]
    operands = [np.broadcast_to(value, index.shape)[order] for value in values]
    if op in ("add", "sub") and view.dtype.kind in "iu":
        sorted_old = _running_sums(view, ordered, start, operands[0], np.add if op == "add" else np.subtract)
    elif op == "cas":
        sorted_old = _compare_and_swap(view, ordered, *operands)
    elif op == "exch":
        sorted_old = _exchange(view, ordered, is_first, operands[0])
    else:
        sorted_old = _one_by_one(view, ordered, np.arange(index.size) - start, op, operands)
    old = np.empty_like(sorted_old)
    old[order] = sorted_old
    return old


def _apply_once(view: Array, index: Array, op: str, values: Sequence[Any]) -> Array:
    """Execute the operation of a single lane."""
    old: Array = view[index]
    if op == "cas":
        expected, new = values
        if (old == expected).all():
            view[index] = new
    else:
        view[index] = _operation(op)(old, *values)
    return old


def _running_sums(view: Array, ordered: Array, start: Array, operand: Array, combine: Any) -> Array:
    """Add or subtract by prefix sums. Integers wrap, so a difference of prefix sums over all lanes is exact."""
    before = np.cumsum(operand, dtype=view.dtype) - operand
    old: Array = combine(view[ordered], before - before[start]).astype(view.dtype)
    combine.at(view, ordered, operand)
    return old


def _exchange(view: Array, ordered: Array, is_first: Array, values: Array) -> Array:
    """Exchange values: each lane reads that of the lane before it, or the element if it is the first."""
    old = np.empty(ordered.size, view.dtype)
    old[1:] = values[:-1]
    old[is_first] = view[ordered[is_first]]
    view[ordered] = values  # of several lanes, the last one's value remains
    return old


def _compare_and_swap(view: Array, ordered: Array, expected: Array, values: Array) -> Array:
    """Swap in rounds: in each, the first remaining lane of each element that reads its expected value swaps."""
    old, remaining = np.empty(ordered.size, view.dtype), np.arange(ordered.size)
    while remaining.size:
        elements = ordered[remaining]
        old[remaining] = view[elements]
        swapping = np.flatnonzero(old[remaining] == expected[remaining])
        changed, first = np.unique(elements[swapping], return_index=True)
        swappers = remaining[swapping[first]]
        view[changed] = values[swappers]
        # Lanes after a swap read the new value; elements without a swap are done.
        at = np.minimum(np.searchsorted(changed, elements), max(changed.size - 1, 0))
        remaining = remaining[(changed[at] == elements) & (remaining > swappers[at])] if changed.size else remaining[:0]
    return old


def _one_by_one(view: Array, ordered: Array, turn: Array, op: str, operands: list[Array]) -> Array:
    """Execute the first lane of every element, then the second, and so on."""
    old = np.empty(ordered.size, view.dtype)
    by_turn = np.argsort(turn, kind="stable")
    borders = np.searchsorted(turn[by_turn], np.arange(int(turn.max(initial=-1)) + 2))
    operation = _operation(op)
    for first, last in pairwise(borders):
        lanes = by_turn[first:last]
        elements = ordered[lanes]
        old[lanes] = view[elements]
        view[elements] = operation(old[lanes], *(operand[lanes] for operand in operands))
    return old


def _operation(op: str) -> Callable[..., Array]:
    if op == "exch":
        return lambda old, value: value
    if op in _OTHERS:
        return _OTHERS[op]
    combine: Callable[..., Array] = _UFUNCS[op]
    return combine


def _increment(old: Array, limit: Array) -> Array:
    """Increment, and wrap to zero after the limit."""
    new: Array = np.where(old >= limit, old.dtype.type(0), old + old.dtype.type(1))
    return new


def _decrement(old: Array, limit: Array) -> Array:
    """Decrement, and wrap to the limit after zero."""
    new: Array = np.where((old == 0) | (old > limit), limit, old - old.dtype.type(1))
    return new


_OTHERS: dict[str, Callable[..., Array]] = {"inc": _increment, "dec": _decrement}
