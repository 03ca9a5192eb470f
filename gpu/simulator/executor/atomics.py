"""Atomic operations of many lanes at once: the result is as if they had gone one after the other, in lane order."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

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


def apply_atomics(view: Array, index: Array, op: str, values: list[Any], used: bool) -> Array | None:
    """Apply an atomic to `view[index]`, lane after lane, and return what each lane found there, where that is used.

    Parameters
    ----------
    view : ndarray
        The memory.
    index : ndarray of intp
        One element a lane; the same element may come many times.
    op : str
        "add", "sub", "min", "max", "and", "or", "xor", "exch" or "cas".
    values : list
        The operands, one value or one a lane: the second argument of CUDA's function, and for "cas" the third.
    used : bool
        Whether the old values are wanted.
    """
    if not used and op in _UFUNCS:
        _UFUNCS[op].at(view, index, values[0])
        return None
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    is_first = np.concatenate(([True], ordered[1:] != ordered[:-1]))
    start = np.flatnonzero(is_first)[np.cumsum(is_first) - 1]
    operands = [np.broadcast_to(value, index.shape)[order] for value in values]
    if op in ("add", "sub") and view.dtype.kind in "iu":
        found = _running_sums(view, ordered, start, operands[0], np.add if op == "add" else np.subtract)
    elif op == "cas":
        found = _compare_and_swap(view, ordered, *operands)
    else:
        found = _one_by_one(view, ordered, np.arange(index.size) - start, op, operands)
    old = np.empty_like(found)
    old[order] = found
    return old


def _running_sums(view: Array, ordered: Array, start: Array, operand: Array, combine: Any) -> Array:
    """Integers wrap, so that a difference of prefix sums over all lanes is right for each element."""
    before = np.cumsum(operand, dtype=view.dtype) - operand
    found: Array = combine(view[ordered], before - before[start]).astype(view.dtype)
    combine.at(view, ordered, operand)
    return found


def _compare_and_swap(view: Array, ordered: Array, expected: Array, values: Array) -> Array:
    """Go on to the next lane of each element that finds what it expects: all before that one find the same."""
    found, left = np.empty(ordered.size, view.dtype), np.arange(ordered.size)
    while left.size:
        places = ordered[left]
        found[left] = view[places]
        swapping = np.flatnonzero(found[left] == expected[left])
        changed, first = np.unique(places[swapping], return_index=True)
        swappers = left[swapping[first]]
        view[changed] = values[swappers]
        # What comes after a swap finds something else; elements without one are done.
        at = np.minimum(np.searchsorted(changed, places), max(changed.size - 1, 0))
        left = left[(changed[at] == places) & (left > swappers[at])] if changed.size else left[:0]
    return found


def _one_by_one(view: Array, ordered: Array, turn: Array, op: str, operands: list[Array]) -> Array:
    """Let the first lane of every element go, then the second, and so on."""
    found = np.empty(ordered.size, view.dtype)
    by_turn = np.argsort(turn, kind="stable")
    borders = np.searchsorted(turn[by_turn], np.arange(int(turn.max(initial=-1)) + 2))
    change = _change(op)
    for first, last in pairwise(borders):
        lanes = by_turn[first:last]
        place = ordered[lanes]
        found[lanes] = view[place]
        view[place] = change(found[lanes], *(operand[lanes] for operand in operands))
    return found


def _change(op: str) -> Callable[..., Array]:
    if op == "exch":
        return lambda old, value: value
    if op in _OTHERS:
        return _OTHERS[op]
    combine: Callable[..., Array] = _UFUNCS[op]
    return combine


def _increment(old: Array, limit: Array) -> Array:
    """Count up to the limit and start again at zero."""
    counted: Array = np.where(old >= limit, old.dtype.type(0), old + old.dtype.type(1))
    return counted


def _decrement(old: Array, limit: Array) -> Array:
    """Count down to zero and start again at the limit."""
    counted: Array = np.where((old == 0) | (old > limit), limit, old - old.dtype.type(1))
    return counted


_OTHERS: dict[str, Callable[..., Array]] = {"inc": _increment, "dec": _decrement}
