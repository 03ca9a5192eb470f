"""The keys that are sorted: how they are made, the order they have, and how a window shows them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu.declaration.arrays import READABLE_ELEMENTS, TYPED, outline, present_many, refuse_missing_file, typed
from gpu.declaration.pattern import Array, Inputs, Outputs, Params
from gpu.declaration.text_parameters import numbers_of

KINDS = ("random", "sorted", "reversed", "few", "equal", "nearly", "zipf", "worked")
DTYPES = ("int32", "uint32", "float32", "int64", "uint64", "float64")

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
    if np.dtype(dtype).kind == "f":
        keys = rng.normal(scale=10, size=n)
        return (keys.round(1) if n <= READABLE_ELEMENTS else keys).astype(dtype)
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
        Of one of `DTYPES`.
    descending : bool

    Returns
    -------
    array of shape (n,)
        uint32 or uint64, as many bits as a key has.
    """
    word, sign = _word(keys.dtype)
    if keys.dtype.kind == "u":
        rising = keys
    elif keys.dtype.kind == "i":
        rising = keys.view(word) ^ sign
    else:
        bits = keys.view(word)
        rising = np.where(bits & sign != 0, ~bits, bits | sign)
    ranks = ~rising if descending else rising
    return ranks if keys.dtype.kind != "f" else np.where(np.isnan(keys), ~word.type(0), ranks)


def unrank(ranks: Array, dtype: np.dtype[Any], *, descending: bool = False) -> Array:
    """Return the keys of that type which have these ranks: undo `rank`, but for NaN's bits."""
    rising = ~ranks if descending else ranks
    sign = _word(dtype)[1]
    if dtype.kind == "u":
        return rising
    bits: Array = rising ^ sign
    if dtype.kind == "f":
        bits = np.where(rising & sign != 0, bits, ~rising)
    return bits.view(dtype)


def _word(dtype: np.dtype[Any]) -> tuple[np.dtype[Any], Any]:
    """Return the unsigned type that is as wide, and the bit of it where a sign stands."""
    word = np.dtype(f"u{dtype.itemsize}")
    return word, word.type(1 << 8 * dtype.itemsize - 1)


def present(inputs: Inputs, params: Params, outputs: Outputs) -> Outputs:
    """Return what a window shows: the keys before and after. What is not finite stands at the end of what is."""
    before, after = drawn(typed(inputs, params)), drawn(outputs["keys"])
    shown = {"input": outline(before), "output": outline(after), "elements": np.array(before.size)}
    return {**shown, **present_many(before, after)}


def drawn(keys: Array) -> Array:
    """Return keys as bars can show them: what is not finite, or too large for a difference, stands at the end."""
    if keys.dtype.kind != "f":
        return keys
    numbers = keys[np.isfinite(keys)]
    most = np.finfo(keys.dtype).max / 4
    low, high = (numbers.min(), numbers.max()) if numbers.size else (0, 0)
    if numbers.size == keys.size and -most <= low and high <= most:
        return keys
    low, high = max(low, -most), min(high, most)
    return np.clip(np.where(np.isnan(keys), high, keys), low, high).astype(keys.dtype)
