"""What the lanes of a warp ask of a memory at once: sectors, wavefronts and queues, for all warps of a batch together.

Counters add up what is found here, and the view of a single step shows it as it is. Lanes are laid out as rows: a row
is a warp, or the half or quarter of one that shared memory serves at a time. The rules are those that Nsight Compute's
counters follow on a GPU of compute capability 9.0, found by experiment.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpu.simulator.executor.masks import LaneMask
from gpu.warp import WARP

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
        How many there are.
    numbers : int array
        Which of all rows they are.
    """

    def __init__(self, mask: LaneMask, width: int) -> None:
        self.width = width
        words = _packed(mask.bits, width)
        self.numbers = np.flatnonzero(words)
        self.count = self.numbers.size
        self._active: Array | None = None
        self._source: Array | None = None
        if not mask.full:
            rows = self.numbers
            self._active = mask.bits.reshape(-1, width)[rows]
            self._source = _nearest_active(rows, self._active)
            self._lanes = (rows[:, None] * width + np.arange(width)).ravel()

    def of(self, elements: Array) -> Array:
        """Return the elements in rows, where a lane that is not active repeats one before it that is.

        That neither adds a distinct element, nor spoils an order.
        """
        return (elements if self._source is None else elements.take(self._source)).reshape(-1, self.width)

    def marked(self, elements: Array) -> Array:
        """Return the elements in rows, -1 in lanes that are not active."""
        if self._active is None:
            return elements.reshape(-1, self.width)
        return np.where(self._active, elements.take(self._lanes).reshape(-1, self.width), -1)


class Warps:
    """The lanes of a mask by warps.

    Attributes
    ----------
    words : ndarray of uint32
        The lanes of each warp of the batch as bits.
    count : int
        How many warps have an active lane.
    """

    def __init__(self, mask: LaneMask) -> None:
        self.mask = mask
        self.words = _packed(mask.bits, WARP)
        self.count = int(np.count_nonzero(self.words))
        self._rows: dict[int, Rows] = {}
        self._ideal: dict[int, Array] = {}

    def rows(self, width: int = WARP) -> Rows:
        """Return the lanes as rows of 32, or of 16 or 8."""
        if width not in self._rows:
            self._rows[width] = Rows(self.mask, width)
        return self._rows[width]

    def split(self, chosen: Array) -> tuple[Warps, Warps]:
        """Return some of the active warps, and the others; there are both."""
        which = np.zeros(self.words.size, np.bool_)
        which[self.active] = chosen
        ones, others = self.mask.split(np.repeat(which, WARP))
        assert ones is not None
        assert others is not None
        return Warps(ones), Warps(others)

    @cached_property
    def active(self) -> Array:
        """The numbers of the warps that have an active lane."""
        return np.flatnonzero(self.words)

    def ideal_sectors(self, size: int) -> Array:
        """Return how many sectors the lanes of each active warp fill with `size` bytes each, side by side."""
        if size not in self._ideal:
            self._ideal[size] = _filled_sectors(np.bitwise_count(self.words[self.active]), size)
        return self._ideal[size]


class Sectors(NamedTuple):
    """The sectors of loads or stores, each an array with one number for each active warp.

    Attributes
    ----------
    moved : array
        The sectors that the elements lie in.
    elements : array
        How many different elements there are.
    ideal : array
        How many sectors these would fill, side by side.
    """

    moved: Array
    elements: Array
    ideal: Array


def sectors(warps: Warps, elements: Any, size: int) -> Sectors:
    """Return the sectors of a load or store of `elements`, one for all lanes or one a lane.

    A size is 1, 2, 4, 8 or 16, so that no element lies in two sectors.
    """
    if not isinstance(elements, np.ndarray):
        ones = np.ones(warps.count, np.int64)
        return Sectors(ones, ones, ones)
    rows = warps.rows().of(elements)
    ordered, first = _in_order(rows)
    different = _count(first, rows)
    return Sectors(_count(_firsts(_sector(ordered, size)), rows), different, _filled_sectors(different, size))


def _filled_sectors(counts: Array, size: int) -> Array:
    """Return how many sectors so many elements of `size` bytes fill, side by side."""
    return -(counts.astype(np.int64) * -size // SECTOR_BYTES)


def queues(rows: Array) -> Array:
    """Return for each row the most lanes that want one element, for which they wait in a queue; negative: nobody's."""
    ordered, first = _in_order(rows)
    starts = np.flatnonzero(first)
    lengths = np.empty_like(starts)
    np.subtract(starts[1:], starts[:-1], out=lengths[:-1])
    lengths[-1:] = first.size - starts[-1:]
    lengths[ordered.ravel().take(starts) < 0] = 0
    longest: Array = np.maximum.reduceat(lengths, np.flatnonzero(starts % rows.shape[1] == 0))
    return longest


def queued_sectors(rows: Array, size: int) -> tuple[Array, Array]:
    """Return the longest queue of each row, and how many sectors atomics on its elements move.

    Each lane of a queue has a sector of its own; lanes that want different elements of a sector go together.
    """
    ordered, first = _in_order(rows)
    queue, turns = _turns(ordered, first)
    width = rows.shape[1]
    last = _packed(_firsts(_sector(ordered, size)), width) >> 1 | 1 << width - 1
    others = ~last
    moved = np.zeros(rows.shape[0], np.int64)
    for waiting in turns:
        # In each sector's run of bits a carry reaches the last one if any is set.
        moved += np.bitwise_count(((waiting & others) + others | waiting) & last)
    return queue, moved


def _turns(ordered: Array, first: Array) -> tuple[Array, list[Array]]:
    """Return the longest queue of each row, and who waits at the first turn, at the second and so on: a bit a lane."""
    width = ordered.shape[1]
    waiting = _packed(ordered.ravel() >= 0, width)
    behind = waiting & ~_packed(first, width)
    longest, turns = np.zeros(ordered.shape[0], np.int64), []
    while (left := waiting != 0).any():
        longest += left
        turns.append(waiting)
        waiting = behind & waiting << 1
    return longest, turns


class Passes(NamedTuple):
    """The wavefronts of an access to shared memory, each an array with one number for each active warp.

    Attributes
    ----------
    total : array
        All wavefronts.
    least : array
        As few as there would be if all lanes wanted the same.
    worst : array
        The most of lanes that are served together; 1 is no conflict.
    """

    total: Array
    least: Array
    worst: Array


def shared_passes(warps: Warps, elements: Any, size: int, *, reads: bool) -> Passes:
    """Return the wavefronts of a load or store of `elements`, one for all lanes or one a lane.

    As many lanes are served together as can ask for one word of every bank: all, or of 8 bytes a half warp, of 16 a
    quarter. A load serves twice as many where all pairs of lanes want the same.
    """
    width = _served_together(size)
    if not isinstance(elements, np.ndarray):
        rows = warps.rows(min(WARP, 2 * width) if reads else width)
        return _by_warp(warps, rows, np.ones(rows.count, np.int64))
    if not reads or width == WARP:
        return _passes(warps, elements, size, width)
    paired = _in_pairs(warps, elements)
    if paired.all():
        return _passes(warps, elements, size, 2 * width)
    if not paired.any():
        return _passes(warps, elements, size, width)
    pairs, others = warps.split(paired)
    one, other = _passes(pairs, elements, size, 2 * width), _passes(others, elements, size, width)
    merged = []
    for of_pairs, of_others in zip(one, other, strict=True):
        both = np.empty(warps.count, np.int64)
        both[paired], both[~paired] = of_pairs, of_others
        merged.append(both)
    return Passes(*merged)


def atomic_passes(warps: Warps, elements: Array, size: int) -> Passes:
    """Return the wavefronts of atomics in shared memory: of each bank as many as it has lanes, be it for one word."""
    rows = warps.rows(_served_together(size))
    words, banks = bank_words(rows.marked(elements), size)
    return _by_warp(warps, rows, queues(np.where(words >= 0, words & (banks - 1), -1)))


def _served_together(size: int) -> int:
    return min(WARP, BANKS * BANK_BYTES // size)


def _passes(warps: Warps, elements: Array, size: int, width: int) -> Passes:
    """Return the wavefronts where `width` lanes are served together: the most different words that a bank is asked for.

    Elements of 8 and 16 bytes take two and four banks, all of which are asked for the same number of words.
    """
    rows = warps.rows(width)
    words, banks = bank_words(rows.of(elements), size)
    ordered, first = _in_order(words)
    # Words less than `banks` apart are in banks of their own.
    wide = np.flatnonzero(ordered[:, -1] - ordered[:, 0] >= banks)
    passes = np.ones(rows.count, np.int64)
    if wide.size:
        different = first.reshape(words.shape).take(wide, axis=0)
        passes[wide] = queues(np.where(different, ordered.take(wide, axis=0) & (banks - 1), -1))
    return _by_warp(warps, rows, passes)


def _by_warp(warps: Warps, rows: Rows, passes: Array) -> Passes:
    """Put the passes of rows together to those of the warps that they are parts of."""
    if rows.width == WARP:
        return Passes(passes, np.ones(rows.count, np.int64), passes)
    starts = np.searchsorted(rows.numbers * rows.width // WARP, warps.active)
    total, worst = np.add.reduceat(passes, starts), np.maximum.reduceat(passes, starts)
    return Passes(total, np.diff(starts, append=rows.count), worst)


def _in_pairs(warps: Warps, elements: Array) -> Array:
    """Return in which active warps each lane wants what its neighbor wants, or else the next but one does."""
    active = warps.words[warps.active]
    flat = warps.rows().of(elements).ravel()
    paired = np.zeros(active.size, np.bool_)
    # Bit p of `same` says that lane p wants what lane p - step wants; the lower lanes of the pairs do not matter.
    for step, lower in ((1, 0x55555555), (2, 0x33333333)):
        same = np.zeros(flat.size, np.bool_)
        np.equal(flat[step:], flat[:-step], out=same[step:])
        agreed = _packed(same, WARP) | ~(active & active << step)
        paired |= agreed | np.uint32(lower) == 0xFFFFFFFF
    return paired


def narrow(elements: Array, limit: int) -> Array:
    """Return elements below a limit as int32 where that holds them: half the bytes are twice as fast."""
    return elements.astype(np.int32, copy=False) if limit < 1 << 31 else elements.astype(np.int64, copy=False)


def _sector(elements: Array, size: int) -> Array:
    shifted: Array = elements >> (SECTOR_BYTES // size).bit_length() - 1
    return shifted


def bank_words(rows: Array, size: int) -> tuple[Array, int]:
    """Return which word each lane wants, in words as wide as an element or a bank, and how many banks are as wide."""
    if size < BANK_BYTES:
        return rows >> (BANK_BYTES // size).bit_length() - 1, BANKS
    return rows, BANKS * BANK_BYTES // size


def _packed(flags: Array, width: int) -> Array:
    """Return each row of flags as one number."""
    return np.packbits(flags, bitorder="little").view(_WORDS[width])


def _count(flags: Array, rows: Array) -> Array:
    """Return how many flags each row has."""
    return np.bitwise_count(_packed(flags, rows.shape[1]))


def _nearest_active(rows: Array, active: Array) -> Array:
    """Return for each lane of some rows the last active one up to it, or else its row's first."""
    width = active.shape[1]
    lanes = np.where(active, rows[:, None] * width + np.arange(width), 0)
    lanes[:, 0] = rows * width + active.argmax(axis=1)
    nearest: Array = np.maximum.accumulate(lanes.ravel())
    return nearest


def _in_order(rows: Array) -> tuple[Array, Array]:
    """Return the rows sorted, and flat which value is the first of its kind in its row."""
    flat = rows.ravel()
    falls = np.empty(flat.size, np.bool_)
    np.less(flat[1:], flat[:-1], out=falls[1:])
    falls[:: rows.shape[1]] = False
    # Most accesses of real kernels are in order already, and comparing is much cheaper than sorting.
    if falls.any():
        rows = np.sort(rows, axis=1)
    return rows, _firsts(rows)


def _firsts(ordered: Array) -> Array:
    """Return flat which value of sorted rows is the first of its kind in its row."""
    flat = ordered.ravel()
    first = np.empty(flat.size, np.bool_)
    np.not_equal(flat[1:], flat[:-1], out=first[1:])
    first[:: ordered.shape[1]] = True
    return first
