"""The cost of a warp's memory requests: sectors, lanes per address, and passes over shared memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.base.warp import WARP

Array = npt.NDArray[Any]

_SECTOR_BITS = 5
_WORD_BITS = 2
CONSTANT_LINE_WORDS = 16
"""Words in a line of the constant cache: 64 bytes (Jia et al. 2018, arXiv:1804.06826)."""
BANKS = 32


def find_distinct_sectors(rows: Array, active: Array, *, scalar: bool = False) -> tuple[Array, Array]:
    """Return the distinct sectors of each warp: the start index of each warp's sectors, and all sectors."""
    return _find_distinct(rows >> _SECTOR_BITS, active, scalar=scalar)


def find_distinct_words(rows: Array, active: Array, *, scalar: bool) -> tuple[Array, Array]:
    """Return the distinct words of 4 bytes of each warp, as `find_distinct_sectors` does."""
    return _find_distinct(rows >> _WORD_BITS, active, scalar=scalar)


def count_constant_lines(starts: Array, words: Array) -> Array:
    """Return how many lines of the constant cache have each warp's distinct words, which are ascending.

    The cache serves a line at a time to a warp, as in GPGPU-Sim and Accel-Sim.
    """
    lines = words // CONSTANT_LINE_WORDS
    new = np.ones(lines.size, np.int64)
    new[1:] = lines[1:] != lines[:-1]
    new[starts[:-1]] = 1
    counts: Array = np.add.reduceat(new, starts[:-1])
    return counts


def _find_distinct(sectors: Array, active: Array, *, scalar: bool) -> tuple[Array, Array]:
    if scalar:
        first = sectors[:, 0]
        return np.arange(first.size + 1, dtype=np.int64), first
    if not active.all():
        # Inactive lanes get the sector of the warp's first active lane.
        leader = sectors[np.arange(sectors.shape[0]), active.argmax(axis=1)]
        sectors = np.where(active, sectors, leader[:, None])
    if (sectors[:, 1:] < sectors[:, :-1]).any():
        sectors = np.sort(sectors, axis=1)
    new = np.ones(sectors.shape, np.bool_)
    np.not_equal(sectors[:, 1:], sectors[:, :-1], out=new[:, 1:])
    starts = np.zeros(sectors.shape[0] + 1, np.int64)
    np.cumsum(new.sum(axis=1), out=starts[1:])
    return starts, sectors[new]


def count_contending_lanes(rows: Array, active: Array) -> Array:
    """Return the contention of each warp: the largest number of its active lanes that access one address."""
    ordered = np.sort(np.where(active, rows, -1 - np.arange(WARP)), axis=1)
    return _find_longest_runs(ordered)


def count_sector_contention(rows: Array, active: Array) -> Array:
    """Return for each of the warps' distinct sectors the largest number of active lanes that access one address."""
    warps, addresses = np.nonzero(active)[0], rows[active]
    order = np.lexsort((addresses, warps))
    warps, addresses = warps[order], addresses[order]
    is_new_warp = np.diff(warps, prepend=-1) != 0
    words = np.flatnonzero(is_new_warp | (np.diff(addresses, prepend=-1) != 0))
    is_new_sector = is_new_warp | (np.diff(addresses >> _SECTOR_BITS, prepend=-1) != 0)
    lanes = np.diff(words, append=addresses.size)
    contention: Array = np.maximum.reduceat(lanes, np.flatnonzero(is_new_sector[words]))
    return contention


def _find_longest_runs(ordered: Array) -> Array:
    width = ordered.shape[1]
    new = np.ones(ordered.shape, np.bool_)
    np.not_equal(ordered[:, 1:], ordered[:, :-1], out=new[:, 1:])
    columns = np.broadcast_to(np.arange(width), ordered.shape)
    starts = np.maximum.accumulate(np.where(new, columns, 0), axis=1)
    lengths: Array = (columns - starts + 1).max(axis=1)
    return lengths


def count_bank_passes(words: Array, active: Array) -> Array:
    """Return the number of passes over shared memory for each row of lanes: the most distinct words in one bank."""
    leader = words[np.arange(words.shape[0]), active.argmax(axis=1)]
    filled = np.where(active, words, leader[:, None])
    first = filled - filled.min(axis=1, keepdims=True)
    if (first < BANKS).all():
        return np.ones(words.shape[0], np.int64)
    ordered = np.sort(filled, axis=1)
    new = np.ones(ordered.shape, np.bool_)
    np.not_equal(ordered[:, 1:], ordered[:, :-1], out=new[:, 1:])
    spare = -1 - np.arange(ordered.shape[1])
    return _find_longest_runs(np.sort(np.where(new, ordered % BANKS, spare), axis=1))
