"""Checker for uninitialized reads."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from gpu.base.findings import Finding
from gpu.simulator.checkers.checker import Checker
from gpu.simulator.checkers.memory.heap import HEAP
from gpu.simulator.executor.state.batch import BlockBatch
from gpu.simulator.executor.state.memory import DeviceMemory, FlatMemory, LocalMemory
from gpu.simulator.executor.state.observer import Access, HeapCall

Array = npt.NDArray[Any]

_MAX_WORD_BYTES = 16
_WRITTEN = 0xFF
_WORDS: dict[int, Any] = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_WRITTEN_WORDS = {size: np.iinfo(word).max for size, word in _WORDS.items()}


class UninitializedChecker(Checker):
    """Find reads of bytes that nothing has written.

    Shared memory, local arrays and memory from malloc always start uninitialized. Other global memory counts as
    initialized, except for the arrays in `uninitialized`, and for the bytes that `FlatMemory.get_written_bytes` lacks:
    writes are added to that mask. Writes to `uninitialized` remain known in later launches that use the same array.

    Parameters
    ----------
    uninitialized : collection of str
        The names of kernel parameters for arrays that start uninitialized.
    """

    def __init__(self, uninitialized: Collection[str] = ()) -> None:
        super().__init__()
        self._uninitialized = frozenset(uninitialized)
        self._shadows: WeakKeyDictionary[DeviceMemory, Array | None] = WeakKeyDictionary()
        # Bytes at the beginning of a memory that were written before the launch: most reads need no other test.
        self._prefixes: WeakKeyDictionary[DeviceMemory, int] = WeakKeyDictionary()
        self._arrays: dict[tuple[int, int], tuple[Array, Array]] = {}
        self._write_counts: WeakKeyDictionary[DeviceMemory, int] = WeakKeyDictionary()

    def access(self, batch: BlockBatch, access: Access) -> None:
        shadow = self._get_shadow(access.memory, batch)
        if shadow is None or (access.site.action == "read" and self._is_in_prefix(access)):
            return
        lanes, words, word = _access_words(batch, access, shadow.size)
        view, written = shadow.view(_WORDS[word]), _WRITTEN_WORDS[word]
        if access.site.action == "read" or (access.site.action == "atomic" and not _only_writes(access)):
            missing = view.take(words) != written
            if np.count_nonzero(missing):
                self._report(batch, access, lanes[missing])
        if access.site.action != "read":
            view[words] = written
            if access.memory.space == "shared":
                self._forget_written(access.memory, shadow)

    def _forget_written(self, memory: DeviceMemory, shadow: Array) -> None:
        """Stop observing a shared array once all of it is written; test it after 1, 2, 4, 8 ... writes."""
        count = self._write_counts[memory] = self._write_counts.get(memory, 0) + 1
        if count & (count - 1) == 0 and shadow.all():
            self._shadows[memory] = None

    def heap_call(self, batch: BlockBatch, call: HeapCall) -> None:
        heap = call.memory
        if call.size is None or not isinstance(heap, FlatMemory):
            return
        shadow = self._shadows.get(heap)
        if shadow is None:
            shadow = self._shadows[heap] = np.full(_pad_size(heap.data.size), _WRITTEN, np.uint8)
        lanes = call.mask.lanes
        starts, sizes = (np.broadcast_to(each, batch.geometry.lanes)[lanes] for each in (call.offset, call.size))
        for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
            shadow[start : start + size] = 0

    def _get_shadow(self, memory: DeviceMemory, batch: BlockBatch) -> Array | None:
        """Return a uint8 mask of the written bytes of a memory, or None if all are written."""
        try:
            return self._shadows[memory]
        except KeyError:
            shadow = self._shadows[memory] = self._new_shadow(memory, batch)
            return shadow

    def _new_shadow(self, memory: DeviceMemory, batch: BlockBatch) -> Array | None:
        if isinstance(memory, LocalMemory):
            # The bytes of a lane are consecutive here, whatever the layout of the memory.
            return None if memory.zeroed else np.zeros(batch.geometry.lanes * _pad_size(memory.size), np.uint8)
        if not isinstance(memory, FlatMemory) or memory.space == "constant":
            return None
        if memory.space == "shared":
            return np.zeros(memory.data.size, np.uint8)
        written = memory.get_written_bytes()
        if written is not None:
            self._prefixes[memory] = memory.data.size if written.all() else int(written.argmin())
            return written
        # A reference to the array keeps its address from being reused, and later launches find its shadow.
        key = (memory.data.ctypes.data, memory.data.size)
        if key not in self._arrays and memory.name in self._uninitialized:
            self._arrays[key] = (memory.data, np.zeros(_pad_size(memory.data.size), np.uint8))
        return self._arrays[key][1] if key in self._arrays else None

    def _is_in_prefix(self, access: Access) -> bool:
        prefix = self._prefixes.get(access.memory, 0)
        if not prefix:
            return False
        last = access.element.max() if isinstance(access.element, np.ndarray) else access.element
        return (int(last) + 1) * access.size <= prefix

    def _report(self, batch: BlockBatch, access: Access, lanes: Array) -> None:
        """Add a finding for lanes that read unwritten bytes."""
        lanes = np.unique(lanes)
        position, memory = access.site.position, access.memory
        key = (position.line_key, memory.name)
        if self._count_again(key, lanes.size):
            return
        lane = int(lanes[0])
        element = access.element[lane] if isinstance(access.element, np.ndarray) else access.element
        thread = batch.describe(lane)
        location = f"element {int(element)} of {memory.name}"
        if memory.name == HEAP:
            location = "memory from malloc"
        elif isinstance(memory, FlatMemory):
            location = memory.describe_location(int(element), access.size)
        self._findings[key] = Finding(
            "uninitialized",
            f"Uninitialized __{memory.space}__ memory read of size {access.size} bytes by {thread} at "
            f"{position.short_text}: {location}",
            (position,),
            (thread,),
            lanes.size,
        )


def _only_writes(access: Access) -> bool:
    """Return whether an atomic operation is an exchange that returns no value to the kernel."""
    return access.site.op == "exch" and not access.used


def _pad_size(size: int) -> int:
    return -(-size // _MAX_WORD_BYTES) * _MAX_WORD_BYTES


def _access_words(batch: BlockBatch, access: Access, size: int) -> tuple[Array, Array, int]:
    """Return lanes and the shadow words that they access, one pair per word, and the size of a word in bytes."""
    geometry, mask, element = batch.geometry, access.mask, access.element
    lanes = geometry.lane_numbers if mask.full else mask.lanes
    word = min(access.size, 8)
    count = access.size // word
    if isinstance(element, np.ndarray):
        words = (element if mask.full else element.take(lanes)).astype(np.intp, copy=False) * count
    else:
        words = np.full(lanes.size, element * count, np.intp)
    if access.memory.space == "local":
        words = words + lanes * (size // geometry.lanes // word)
    elif access.memory.space == "shared" and geometry.blocks > 1:
        words = words + geometry.block_of_lane[lanes] * (size // geometry.blocks // word)
    if count > 1:
        lanes = np.repeat(lanes, count)
        words = (words[:, None] + np.arange(count)).ravel()
    return lanes, words, word
