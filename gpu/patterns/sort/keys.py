"""Sort keys: generation, order, and presentation."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu.declaration.arrays import (
    READABLE_ELEMENTS,
    TYPED,
    cast_values,
    outline,
    present_large_array,
    require_generated_input,
)
from gpu.declaration.pattern import Array, Inputs, Outputs, Params
from gpu.declaration.text_parameters import parse_numbers

KINDS = ("random", "sorted", "reversed", "few", "equal", "nearly", "zipf", "worked")
DTYPES = ("int32", "uint32", "float32", "int64", "uint64", "float64")

_FEW_VALUES = 8
_WORKED_EXAMPLE = (7, 14, 4, 1)
_EXCHANGE_INTERVAL = 64


def make_input(params: Params, seed: int) -> Inputs:
    """Generate keys as the parameters `input`, `n` and `dtype` specify; raise InputError if the source is a file."""
    require_generated_input(params)
    if params["input"] == TYPED:
        return {"values": parse_numbers(params["values"])}
    return {"values": make_keys(params["input"], params["n"], params["dtype"], seed)}


def make_keys(kind: str, n: int, dtype: str, seed: int) -> Array:
    """Generate n keys.

    Parameters
    ----------
    kind : str
        One of `KINDS`: "few" for few different values; "equal" for one value; "nearly" for sorted keys of which one in
        64 is exchanged with another; "zipf" for a distribution in which few values are most frequent; "worked" for
        the repeated keys of a worked example.
    dtype : str
        One of `DTYPES`.

    Returns
    -------
    array of shape (n,)
        Random keys have two digits if there are few enough to read them; otherwise they span the whole type.
    """
    rng = np.random.default_rng(seed)
    if kind == "zipf":
        return np.minimum(rng.zipf(1.5, n), 2**30).astype(dtype)
    if kind == "worked":
        return np.resize(np.array(_WORKED_EXAMPLE, dtype), n)
    if kind == "equal":
        return np.full(n, 7, dtype)
    keys = _make_random_keys(n, dtype, rng)
    if kind == "few":
        return rng.choice(_make_random_keys(_FEW_VALUES, dtype, rng), n)
    if kind == "random":
        return keys
    keys.sort()
    if kind == "reversed":
        return keys[::-1].copy()
    if kind == "nearly" and n:
        first, second = rng.integers(0, n, (2, -(-n // _EXCHANGE_INTERVAL)))
        for a, b in zip(first, second, strict=True):
            keys[[a, b]] = keys[[b, a]]
    return keys


def _make_random_keys(n: int, dtype: str, rng: np.random.Generator) -> Array:
    if np.dtype(dtype).kind == "f":
        keys = rng.normal(scale=10, size=n)
        return (keys.round(1) if n <= READABLE_ELEMENTS else keys).astype(dtype)
    kind = np.dtype(dtype)
    limits = np.iinfo(kind)
    low, high = (max(-99, limits.min), 99) if n <= READABLE_ELEMENTS else (limits.min, limits.max)
    return rng.integers(low, high, n, kind, endpoint=True)


def rank(keys: Array, *, descending: bool = False) -> Array:
    """Map keys to unsigned ranks: sorting the ranks in ascending order sorts the keys.

    Floats have the order -infinity, ..., -0, 0, ..., infinity. NaN comes last in both orders, whatever its bits.

    Parameters
    ----------
    keys : array of shape (n,)
        One of the types `DTYPES`.

    Returns
    -------
    array of shape (n,)
        uint32 or uint64, as wide as a key.
    """
    word, sign = _unsigned_type(keys.dtype)
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
    """Map ranks to keys of a type, the inverse of `rank` except for NaN's bits."""
    rising = ~ranks if descending else ranks
    sign = _unsigned_type(dtype)[1]
    if dtype.kind == "u":
        return rising
    bits: Array = rising ^ sign
    if dtype.kind == "f":
        bits = np.where(rising & sign != 0, bits, ~rising)
    return bits.view(dtype)


def _unsigned_type(dtype: np.dtype[Any]) -> tuple[np.dtype[Any], Any]:
    """Return the unsigned type with the width of a type, and a value with only the highest bit set."""
    word = np.dtype(f"u{dtype.itemsize}")
    return word, word.type(1 << 8 * dtype.itemsize - 1)


def present(inputs: Inputs, params: Params, outputs: Outputs) -> Outputs:
    """Return the keys before and after for a window, with the keys clipped as for drawing."""
    before, after = clip_for_drawing(cast_values(inputs, params)), clip_for_drawing(outputs["keys"])
    arrays = {"input": outline(before), "output": outline(after), "elements": np.array(before.size)}
    return {**arrays, **present_large_array(before, after)}


def clip_for_drawing(keys: Array) -> Array:
    """Clip keys for bars, so that all are finite and differences between them do not overflow."""
    if keys.dtype.kind != "f":
        return keys
    numbers = keys[np.isfinite(keys)]
    limit = np.finfo(keys.dtype).max / 4
    low, high = (numbers.min(), numbers.max()) if numbers.size else (0, 0)
    if numbers.size == keys.size and -limit <= low and high <= limit:
        return keys
    low, high = max(low, -limit), min(high, limit)
    return np.clip(np.where(np.isnan(keys), high, keys), low, high).astype(keys.dtype)
