"""The keys that are sorted: how they are made, the order they have, and how a window shows them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu.declaration.arrays import READABLE_ELEMENTS, TYPED, outline, present_many, refuse_missing_file, typed
from gpu.declaration.pattern import Array, Inputs, Outputs, Params
from gpu.declaration.text_parameters import numbers_of

KINDS = ("random", "sorted", "reversed", "few", "equal", "nearly", "zipf", "worked")
DTYPES = ("int32", "uint32", "float32")

_FEW = 8
_WORKED = (7, 14, 4, 1)
_MOVED = 64


def make_input(params: Params, seed: int) -> Inputs:
    """Make the keys that `input`, `n` and `dtype` ask for; InputError where they ask for a file."""
    refuse_missing_file(params)
    if params["input"] == TYPED:
        return {"values": numbers_of(params["values"])}
    return {"values": make_keys(params["input"], params["n"], params["dtype"], seed)}


def make_keys(kind: str, n: int, dtype: str, seed: int) -> Array:
    """Make n keys.

    Parameters
    ----------
    kind : str
        One of `KINDS`: of "few" values; all "equal"; "nearly" sorted, but for one of 64 exchanged with any other;
        "zipf", where few values have most of the keys; "worked", the keys of a worked example, again and again.
    n : int
    dtype : str
        One of `DTYPES`.
    seed : int

    Returns
    -------
    array of shape (n,)
        Many random keys are of any size; as few as somebody reads have two digits.
    """
    rng = np.random.default_rng(seed)
    if kind == "zipf":
        return np.minimum(rng.zipf(1.5, n), 2**30).astype(dtype)
    if kind == "worked":
        return np.resize(np.array(_WORKED, dtype), n)
    if kind == "equal":
        return np.full(n, 7, dtype)
    keys = _random(n, dtype, rng)
    if kind == "few":
        return rng.choice(_random(_FEW, dtype, rng), n)
    if kind == "random":
        return keys
    keys.sort()
    if kind == "reversed":
        return keys[::-1].copy()
    if kind == "nearly" and n:
        first, second = rng.integers(0, n, (2, -(-n // _MOVED)))
        for a, b in zip(first, second, strict=True):
            keys[[a, b]] = keys[[b, a]]
    return keys


def _random(n: int, dtype: str, rng: np.random.Generator) -> Array:
    if dtype == "float32":
        keys = rng.normal(scale=10, size=n)
        return (keys.round(1) if n <= READABLE_ELEMENTS else keys).astype(np.float32)
    kind = np.dtype(dtype)
    limits = np.iinfo(kind)
    low, high = (max(-99, limits.min), 99) if n <= READABLE_ELEMENTS else (limits.min, limits.max)
    return rng.integers(low, high, n, kind, endpoint=True)


def rank(keys: Array, *, descending: bool = False) -> Array:
    """Return unsigned numbers in the order in which the keys are sorted.

    Floats are in the order of their bits: -infinity, ..., -0, 0, ..., infinity. NaN, whatever its bits, comes last,
    also where the order is descending.

    Parameters
    ----------
    keys : array of shape (n,)
        int32, uint32 or float32.
    descending : bool

    Returns
    -------
    array of shape (n,)
        uint32.
    """
    if keys.dtype == np.uint32:
        rising = keys
    elif keys.dtype == np.int32:
        rising = keys.view(np.uint32) ^ np.uint32(2**31)
    else:
        bits = keys.view(np.uint32)
        rising = np.where(bits >> 31 != 0, ~bits, bits | np.uint32(2**31))
    ranks = ~rising if descending else rising
    return ranks if keys.dtype.kind != "f" else np.where(np.isnan(keys), np.uint32(2**32 - 1), ranks)


def unrank(ranks: Array, dtype: np.dtype[Any], *, descending: bool = False) -> Array:
    """Return the keys of that type which have these ranks: undo `rank`, but for NaN's bits."""
    rising = ~ranks if descending else ranks
    if dtype == np.uint32:
        return rising
    if dtype == np.int32:
        return (rising ^ np.uint32(2**31)).view(np.int32)
    return np.where(rising >> 31 != 0, rising ^ np.uint32(2**31), ~rising).view(np.float32)


def present(inputs: Inputs, params: Params, outputs: Outputs) -> Outputs:
    """Return what a window shows: the keys before and after. What is not finite stands at the end of what is."""
    before, after = drawn(typed(inputs, params)), drawn(outputs["keys"])
    shown = {"input": outline(before), "output": outline(after), "elements": np.array(before.size)}
    return {**shown, **present_many(before, after)}


def drawn(keys: Array) -> Array:
    """Return keys as bars can show them: what is not finite stands at the end of what is."""
    if keys.dtype.kind != "f":
        return keys
    finite = np.isfinite(keys)
    if finite.all():
        return keys
    low, high = (keys[finite].min(), keys[finite].max()) if finite.any() else (0, 0)
    return np.nan_to_num(keys, nan=high, posinf=high, neginf=low)
