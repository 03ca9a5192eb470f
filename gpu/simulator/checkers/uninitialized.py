"""Finds reads of memory that nobody has written."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import PurePath
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from gpu.simulator.checkers.checker import Checker
from gpu.simulator.checkers.findings import Finding
from gpu.simulator.checkers.heap import HEAP
from gpu.simulator.executor.batch import BlockBatch
from gpu.simulator.executor.memory import DeviceMemory, FlatMemory, LocalMemory
from gpu.simulator.executor.observe import Access, HeapCall

Array = npt.NDArray[Any]

_WIDEST = 16
_WRITTEN = 0xFF
_WORDS: dict[int, Any] = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


class UninitializedChecker(Checker):
    """Finds reads of bytes that nobody has written.

    Shared memory, a thread's own arrays and what malloc gives start without a value each time. Other global memory has
    one from the beginning, but for arrays that are said not to; what a launch writes there is known in the next one,
    where the array is the same.

    Parameters
    ----------
    uninitialized : collection of str
        The parameters of the kernel whose arrays start without values.
    """

    def __init__(self, uninitialized: Collection[str] = ()) -> None:
        self._uninitialized = frozenset(uninitialized)
        self._findings: dict[tuple[str, int, str], Finding] = {}
        self._shadows: WeakKeyDictionary[DeviceMemory, Array | None] = WeakKeyDictionary()
        self._arrays: dict[tuple[int, int], tuple[Array, Array]] = {}

    @property
    def findings(self) -> list[Finding]:
        """One finding for each source line and memory, in the order in which they were found."""
        return list(self._findings.values())

    def access(self, batch: BlockBatch, access: Access) -> None:
        shadow = self._shadow_of(access.memory, batch)
        if shadow is None:
            return
        lanes, words, word = _words(batch, access, shadow.size)
        view = shadow.view(_WORDS[word])
        if access.site.action != "write":
            written = np.iinfo(view.dtype).max
            missing = view.take(words) != written
            if missing.any():
                self._report(batch, access, lanes[missing])
        if access.site.action != "read":
            view[words] = np.iinfo(view.dtype).max

    def heap_call(self, batch: BlockBatch, call: HeapCall) -> None:
        heap = call.memory
        if call.size is None or not isinstance(heap, FlatMemory):
            return
        shadow = self._shadows.get(heap)
        if shadow is None:
            shadow = self._shadows[heap] = np.full(_padded(heap.data.size), _WRITTEN, np.uint8)
        lanes = call.mask.lanes
        starts, sizes = (np.broadcast_to(each, batch.geometry.lanes)[lanes] for each in (call.offset, call.size))
        for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
            shadow[start : start + size] = 0

    def _shadow_of(self, memory: DeviceMemory, batch: BlockBatch) -> Array | None:
        """Return which bytes of a memory are written, or None where all are."""
        if memory not in self._shadows:
            self._shadows[memory] = self._new_shadow(memory, batch)
        return self._shadows[memory]

    def _new_shadow(self, memory: DeviceMemory, batch: BlockBatch) -> Array | None:
        if isinstance(memory, LocalMemory):
            # Each lane's bytes in a row, however the memory itself keeps them.
            return None if memory.zeroed else np.zeros(batch.geometry.lanes * _padded(memory.size), np.uint8)
        if not isinstance(memory, FlatMemory) or memory.space == "constant":
            return None
        if memory.space == "shared":
            return np.zeros(memory.data.size, np.uint8)
        # The array is kept, so that its address stays its own, and another launch finds what it was.
        place = (memory.data.ctypes.data, memory.data.size)
        if place not in self._arrays and memory.name in self._uninitialized:
            self._arrays[place] = (memory.data, np.zeros(_padded(memory.data.size), np.uint8))
        return self._arrays[place][1] if place in self._arrays else None

    def _report(self, batch: BlockBatch, access: Access, lanes: Array) -> None:
        """Make a finding of lanes that read what nobody has written."""
        lanes = np.unique(lanes)
        position, memory = access.site.position, access.memory
        key = (position.file, position.line, memory.name)
        if key in self._findings:
            known = self._findings[key]
            self._findings[key] = replace(known, count=known.count + lanes.size)
            return
        lane = int(lanes[0])
        element = access.element[lane] if isinstance(access.element, np.ndarray) else access.element
        who = batch.describe(lane)
        what = f"element {int(element)} of {memory.name}"
        if memory.name == HEAP:
            what = "memory from malloc"
        elif isinstance(memory, FlatMemory):
            what = memory.place(int(element), access.size)
        self._findings[key] = Finding(
            "uninitialized",
            f"Uninitialized __{memory.space}__ memory read of size {access.size} bytes by {who} at "
            f"{PurePath(position.file).name}:{position.line}: {what}",
            (position,),
            (who,),
            lanes.size,
        )


def _padded(size: int) -> int:
    return -(-size // _WIDEST) * _WIDEST


def _words(batch: BlockBatch, access: Access, size: int) -> tuple[Array, Array, int]:
    """Return lanes, the words of the shadow that they touch, one pair for each word, and the bytes of a word."""
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
