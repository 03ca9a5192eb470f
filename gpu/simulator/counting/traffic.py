"""Memory traffic of warp accesses: sectors, wavefronts and queues, for all warps of a batch at once.

The counters sum these numbers, and the Step tab shows them for single events. Lanes are arranged as rows: a row is a
warp, or the half or quarter warp that shared memory serves at a time. The rules reproduce the counters of Nsight
Compute on a GPU of compute capability 9.0, as determined by experiment.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpu.base.lane_mask import LaneMask
from gpu.base.warp import WARP

Array = npt.NDArray[Any]

SECTOR_BYTES = 32
BANKS = 32
BANK_BYTES = 4

_WORDS: dict[int, np.dtype[Any]] = {8: np.dtype("<u1"), 16: np.dtype("<u2"), 32: np.dtype("<u4")}


class Rows:
    """The rows of a mask that have an active lane.

    Attributes
    ----------
    count : int
        The number of rows.
    numbers : int array
        Their indices among all rows.
    """

    def __init__(self, mask: LaneMask, width: int) -> None:
        self.width = width
        words = _pack_flags(mask.bits, width)
        self.numbers = np.flatnonzero(words)
        self.count = self.numbers.size
        self._active: Array | None = None
        self._source: Array | None = None
        if not mask.full:
            rows = self.numbers
            self._active = mask.bits.reshape(-1, width)[rows]
            self._source = _find_nearest_active(rows, self._active)
            self._lanes = (rows[:, None] * width + np.arange(width)).ravel()

    def gather(self, elements: Array) -> Array:
        """Return the elements in rows; an inactive lane repeats the element of an active lane before it.

        This adds no distinct element and preserves the order.
        """
        return (elements if self._source is None else elements.take(self._source)).reshape(-1, self.width)

    def gather_marked(self, elements: Array) -> Array:
        """Return the elements in rows, with -1 in inactive lanes."""
        if self._active is None:
            return elements.reshape(-1, self.width)
        return np.where(self._active, elements.take(self._lanes).reshape(-1, self.width), -1)


class Warps:
    """The lanes of a mask, by warp.

    Attributes
    ----------
    words : ndarray of uint32
        The active lanes of each warp of the batch, as bits.
    count : int
        The number of warps with an active lane.
    """

    def __init__(self, mask: LaneMask) -> None:
        self.mask = mask
        self.words = _pack_flags(mask.bits, WARP)
        self.count = int(np.count_nonzero(self.words))
        self._rows: dict[int, Rows] = {}
        self._ideal: dict[int, Array] = {}

    def rows(self, width: int = WARP) -> Rows:
        """Return the lanes as rows of 32, or of a smaller power of two."""
        if width not in self._rows:
            self._rows[width] = Rows(self.mask, width)
        return self._rows[width]

    def split(self, chosen: Array) -> tuple[Warps, Warps]:
        """Split the active warps by a bool per active warp; neither part may be empty."""
        is_chosen = np.zeros(self.words.size, np.bool_)
        is_chosen[self.active] = chosen
        selected, others = self.mask.split(np.repeat(is_chosen, WARP))
        assert selected is not None
        assert others is not None
        return Warps(selected), Warps(others)

    @cached_property
    def active(self) -> Array:
        """The numbers of the warps that have an active lane."""
        return np.flatnonzero(self.words)

    def ideal_sectors(self, size: int) -> Array:
        """Return the number of sectors for each active warp if its lanes access `size` consecutive bytes each."""
        if size not in self._ideal:
            self._ideal[size] = _filled_sectors(np.bitwise_count(self.words[self.active]), size)
        return self._ideal[size]


class Sectors(NamedTuple):
    """The sectors of loads or stores; each array has one number per active warp.

    Attributes
    ----------
    transferred : array
        The sectors that contain the elements.
    elements : array
        The number of distinct elements.
    ideal : array
        The sectors that these would fill if they were consecutive.
    """

    transferred: Array
    elements: Array
    ideal: Array


def count_sectors(warps: Warps, elements: Any, size: int) -> Sectors:
    """Return the sectors of a load or store of `elements`, one for all lanes or one per lane.

    The size is 1, 2, 4, 8 or 16 bytes, so that no element spans two sectors.
    """
    if not isinstance(elements, np.ndarray):
        ones = np.ones(warps.count, np.int64)
        return Sectors(ones, ones, ones)
    rows = warps.rows().gather(elements)
    ordered, first = _sort_rows(rows)
    distinct = _count_flags(first, rows)
    return Sectors(
        _count_flags(_find_firsts(_sector_number(ordered, size)), rows), distinct, _filled_sectors(distinct, size)
    )


def _filled_sectors(counts: Array, size: int) -> Array:
    """Return the number of sectors that consecutive elements of `size` bytes fill."""
    return -(counts.astype(np.int64) * -size // SECTOR_BYTES)


def find_longest_queues(rows: Array) -> Array:
    """Return for each row the longest queue: the most lanes that access one element; negative elements do not count."""
    ordered, first = _sort_rows(rows)
    starts = np.flatnonzero(first)
    lengths = np.empty_like(starts)
    np.subtract(starts[1:], starts[:-1], out=lengths[:-1])
    lengths[-1:] = first.size - starts[-1:]
    lengths[ordered.ravel().take(starts) < 0] = 0
    longest: Array = np.maximum.reduceat(lengths, np.flatnonzero(starts % rows.shape[1] == 0))
    return longest


def count_queued_sectors(rows: Array, size: int) -> tuple[Array, Array]:
    """Return the longest queue of each row, and the sectors that atomic operations on its elements move.

    Each lane in a queue moves its own sector; lanes that access different elements of one sector share it.
    """
    ordered, first = _sort_rows(rows)
    queue, turns = _find_turns(ordered, first)
    width = rows.shape[1]
    last = _pack_flags(_find_firsts(_sector_number(ordered, size)), width) >> 1 | 1 << width - 1
    others = ~last
    moved = np.zeros(rows.shape[0], np.int64)
    for waiting in turns:
        # In each sector's run of bits, the addition carries into the last bit if any bit is set.
        moved += np.bitwise_count(((waiting & others) + others | waiting) & last)
    return queue, moved


def _find_turns(ordered: Array, first: Array) -> tuple[Array, list[Array]]:
    """Return the longest queue of each row, and the lanes waiting at the first turn, the second and so on, as bits."""
    width = ordered.shape[1]
    waiting = _pack_flags(ordered.ravel() >= 0, width)
    behind = waiting & ~_pack_flags(first, width)
    longest, turns = np.zeros(ordered.shape[0], np.int64), []
    while (is_waiting := waiting != 0).any():
        longest += is_waiting
        turns.append(waiting)
        waiting = behind & waiting << 1
    return longest, turns


class Wavefronts(NamedTuple):
    """The wavefronts of an access to shared memory; each array has one number per active warp.

    Attributes
    ----------
    total : array
        All wavefronts.
    minimum : array
        The wavefronts if all lanes accessed one element.
    maximum : array
        The most wavefronts for lanes that are served together; 1 means no conflict.
    """

    total: Array
    minimum: Array
    maximum: Array


def count_shared_wavefronts(warps: Warps, elements: Any, size: int, *, reads: bool) -> Wavefronts:
    """Return the wavefronts of a load or store of `elements`, one for all lanes or one per lane.

    The lanes served together are those that can access one word of every bank: a warp, with 8 bytes a half warp, with
    16 bytes a quarter warp. A load serves twice as many lanes if all pairs of lanes access the same element.

    Parameters
    ----------
    warps : Warps
        The active warps.
    elements : int or array
        The element of all lanes or of each.
    size : int
        Bytes per element.
    reads : bool
        Whether the access is a load.
    """
    width = _lanes_per_wavefront(size)
    if not isinstance(elements, np.ndarray):
        rows = warps.rows(min(WARP, 2 * width) if reads else width)
        return _by_warp(warps, rows, np.ones(rows.count, np.int64))
    if not reads or width == WARP:
        return _count_wavefronts(warps, elements, size, width)
    paired = _is_paired(warps, elements)
    if paired.all():
        return _count_wavefronts(warps, elements, size, 2 * width)
    if not paired.any():
        return _count_wavefronts(warps, elements, size, width)
    pairs, others = warps.split(paired)
    pair_passes, other_passes = (
        _count_wavefronts(pairs, elements, size, 2 * width),
        _count_wavefronts(others, elements, size, width),
    )
    merged = []
    for pair_counts, other_counts in zip(pair_passes, other_passes, strict=True):
        counts = np.empty(warps.count, np.int64)
        counts[paired], counts[~paired] = pair_counts, other_counts
        merged.append(counts)
    return Wavefronts(*merged)


def count_atomic_wavefronts(warps: Warps, elements: Array, size: int) -> Wavefronts:
    """Return the wavefronts of atomics in shared memory: per bank, one for each lane, even if all access one word."""
    rows = warps.rows(_lanes_per_wavefront(size))
    words, banks = find_bank_words(rows.gather_marked(elements), size)
    return _by_warp(warps, rows, find_longest_queues(np.where(words >= 0, words & (banks - 1), -1)))


def _lanes_per_wavefront(size: int) -> int:
    return min(WARP, BANKS * BANK_BYTES // size)


def _count_wavefronts(warps: Warps, elements: Array, size: int, width: int) -> Wavefronts:
    """Return the wavefronts if `width` lanes are served together: the most distinct words of one bank.

    Elements of 8 and 16 bytes span two and four banks, which all have the same number of words.
    """
    rows = warps.rows(width)
    words, banks = find_bank_words(rows.gather(elements), size)
    ordered, first = _sort_rows(words)
    # Words that span fewer than `banks` are all in different banks.
    wide = np.flatnonzero(ordered[:, -1] - ordered[:, 0] >= banks)
    passes = np.ones(rows.count, np.int64)
    if wide.size:
        distinct = first.reshape(words.shape).take(wide, axis=0)
        passes[wide] = find_longest_queues(np.where(distinct, ordered.take(wide, axis=0) & (banks - 1), -1))
    return _by_warp(warps, rows, passes)


def _by_warp(warps: Warps, rows: Rows, passes: Array) -> Wavefronts:
    """Combine the passes of rows to those of their warps."""
    if rows.width == WARP:
        return Wavefronts(passes, np.ones(rows.count, np.int64), passes)
    starts = np.searchsorted(rows.numbers * rows.width // WARP, warps.active)
    total, worst = np.add.reduceat(passes, starts), np.maximum.reduceat(passes, starts)
    return Wavefronts(total, np.diff(starts, append=rows.count), worst)


def _is_paired(warps: Warps, elements: Array) -> Array:
    """Return for each active warp whether every lane accesses the same element as its partner.

    The partner is the neighboring lane in all pairs, or the lane at distance two in all pairs.
    """
    active = warps.words[warps.active]
    flat = warps.rows().gather(elements).ravel()
    paired = np.zeros(active.size, np.bool_)
    # Bit p of `same`: lane p accesses the element of lane p - step; the lower lanes of the pairs do not matter.
    for step, lower in ((1, 0x55555555), (2, 0x33333333)):
        same = np.zeros(flat.size, np.bool_)
        np.equal(flat[step:], flat[:-step], out=same[step:])
        agreed = _pack_flags(same, WARP) | ~(active & active << step)
        paired |= agreed | np.uint32(lower) == 0xFFFFFFFF
    return paired


def narrow_indices(elements: Array, limit: int) -> Array:
    """Convert elements below a limit to int32 if they fit, since that is twice as fast as int64."""
    return elements.astype(np.int32, copy=False) if limit < 1 << 31 else elements.astype(np.int64, copy=False)


def _sector_number(elements: Array, size: int) -> Array:
    shifted: Array = elements >> (SECTOR_BYTES // size).bit_length() - 1
    return shifted


def find_bank_words(rows: Array, size: int) -> tuple[Array, int]:
    """Return the word that each lane accesses, in units of the larger of element and bank, and the number of units."""
    if size < BANK_BYTES:
        return rows >> (BANK_BYTES // size).bit_length() - 1, BANKS
    return rows, BANKS * BANK_BYTES // size


def _pack_flags(flags: Array, width: int) -> Array:
    """Return each row of flags as a bit mask."""
    if width not in _WORDS:
        # The lane of a tensor copy accesses a whole line of shared memory, so a wavefront serves less than eight lanes.
        masks: Array = flags.reshape(-1, width) @ (1 << np.arange(width, dtype=np.uint8))
        return masks
    return np.packbits(flags, bitorder="little").view(_WORDS[width])


def _count_flags(flags: Array, rows: Array) -> Array:
    """Return the number of set flags in each row."""
    return np.bitwise_count(_pack_flags(flags, rows.shape[1]))


def _find_nearest_active(rows: Array, active: Array) -> Array:
    """Return for each lane of some rows the last active lane up to it, or else the row's first active lane."""
    width = active.shape[1]
    lanes = np.where(active, rows[:, None] * width + np.arange(width), 0)
    lanes[:, 0] = rows * width + active.argmax(axis=1)
    nearest: Array = np.maximum.accumulate(lanes.ravel())
    return nearest


def _sort_rows(rows: Array) -> tuple[Array, Array]:
    """Return the rows sorted, and a flat mask of the values that are the first of equal ones in their row."""
    flat = rows.ravel()
    falls = np.empty(flat.size, np.bool_)
    np.less(flat[1:], flat[:-1], out=falls[1:])
    falls[:: rows.shape[1]] = False
    # Most accesses of real kernels are sorted already, and comparing is much cheaper than sorting.
    if falls.any():
        rows = np.sort(rows, axis=1)
    return rows, _find_firsts(rows)


def _find_firsts(ordered: Array) -> Array:
    """Return a flat mask of the values of sorted rows that are the first of equal ones in their row."""
    flat = ordered.ravel()
    first = np.empty(flat.size, np.bool_)
    np.not_equal(flat[1:], flat[:-1], out=first[1:])
    first[:: ordered.shape[1]] = True
    return first
