"""The memories of a recorded launch: the log of what was written to each, and the node of each element by now."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np

from gpu.simulator import ir
from gpu.simulator.executor.batch import BlockBatch
from gpu.simulator.executor.masks import LaneMask
from gpu.simulator.executor.memory import POISON, DeviceMemory, FlatMemory, LocalMemory
from gpu.simulator.trace.packing import Array, Growing, compact

NONE = np.int32(0)

# In a shadow: 0 where nobody wrote since the launch began, this where what was written has no node.
_CLEARED = -1


def shared_size(batch: BlockBatch, memory: FlatMemory) -> int:
    """Return how many bytes a block's `__shared__` variable has; the memory itself rounds that up."""
    for key, known in batch.shared.items():
        if known is memory:
            return key.size if isinstance(key, ir.SharedVariable) else batch.shared_bytes
    raise KeyError(memory.name)


class RecordedMemory:
    """One memory: a global array, a `__shared__` one of all blocks of a batch, or one of each thread of a batch.

    Its bytes lie as those of the memory itself. An index is "flat" when it counts from the beginning of all bytes. The
    log and the shadow count in units: the smallest element that was ever accessed.
    """

    def __init__(self, number: int, name: str, space: str, size: int) -> None:
        self.number = number
        self.name = name
        self.space = space
        self.size = size
        self.initial: Array | None = None
        self.fill = POISON
        self.dtype: np.dtype[Any] | None = None
        self.blocks, self.stride, self.lanes, self.batch = 1, size, 0, -1
        self.unit = 0
        self.base = 0
        self.index, self.nodes = Growing(np.int32), Growing(np.int32)
        self.values = Growing(np.uint8)
        # How many units the log had before each write.
        self.borders = array("i")
        self._shadow: Array | None = None

    @classmethod
    def of_array(
        cls, number: int, name: str, space: str, initial: Array, dtype: np.dtype[Any] | None
    ) -> RecordedMemory:
        """Return the memory of an array that is there before the launch."""
        made = cls(number, name, space, initial.size)
        made.initial, made.dtype = initial, dtype
        return made

    @classmethod
    def of_blocks(cls, number: int, name: str, size: int, blocks: int, stride: int, batch: int) -> RecordedMemory:
        """Return the memory of a `__shared__` variable."""
        made = cls(number, name, "shared", size)
        made.blocks, made.stride, made.batch = blocks, stride, batch
        return made

    @classmethod
    def of_threads(cls, number: int, memory: LocalMemory, lanes: int, batch: int) -> RecordedMemory:
        """Return the memory of a variable of each thread's own."""
        made = cls(number, memory.name, "local", memory.size)
        made.lanes, made.batch, made.fill = lanes, batch, 0 if memory.zeroed else POISON
        made.stride = memory.stride if memory.punned else 0
        memory.recorded = True
        return made

    @property
    def writes(self) -> int:
        """How many writes the log holds."""
        return len(self.borders)

    @property
    def total(self) -> int:
        """The bytes of all blocks or lanes."""
        return (self.stride or self.size) * self.lanes if self.lanes else self.blocks * self.stride

    def flat(self, batch: BlockBatch, element: Any, size: int, mask: LaneMask) -> Any:
        """Return the flat index of the element that each lane of a mask accesses, in elements of `size` bytes."""
        index = compact(element, mask)
        if self.space == "local" and self.stride:
            return np.asarray(index, np.int64) + mask.lanes * (self.stride // size)
        if self.space == "local":
            return np.asarray(index, np.int64) * self.lanes + mask.lanes
        if self.space == "shared" and self.blocks > 1:
            return index + compact(batch.geometry.block_of_lane, mask) * (self.stride // size)
        return np.int64(index) if not isinstance(index, np.ndarray) else index.astype(np.int64)

    def per(self, dtype: np.dtype[Any]) -> int:
        """How many units an element of a type has."""
        return dtype.itemsize // self.unit

    def shadow(self, dtype: np.dtype[Any]) -> Array:
        """Return the node of each element of a type, as it stands in the shadow."""
        assert self._shadow is not None
        whole = self._shadow.size // self.per(dtype) * self.per(dtype)
        return self._shadow[: whole : self.per(dtype)]

    def content(self, memory: DeviceMemory, dtype: np.dtype[Any]) -> Array:
        """Return what the memory itself holds now."""
        assert isinstance(memory, FlatMemory)
        return memory.view(dtype)

    def write(self, flat: Array, values: Array, nodes: Array) -> None:
        """Log a write of each lane, a later one on top of an earlier one."""
        assert self._shadow is not None
        self.borders.append(self.index.size)
        pieces = self.per(values.dtype)
        if pieces > 1:
            flat = (flat[:, None] * pieces + np.arange(pieces)).ravel()
            nodes = np.repeat(nodes, pieces)
        self.index.add(flat)
        self.nodes.add(nodes)
        self.values.add(np.ascontiguousarray(values).view(np.uint8))
        self._shadow[flat] = np.where(nodes == 0, np.int32(_CLEARED), nodes)

    def forget(self) -> None:
        """Let the shadow go: nobody accesses this memory any more."""
        self._shadow = None

    def needs_units(self, size: int) -> bool:
        """Whether units are larger than elements of `size` bytes, or there are none yet."""
        return not self.unit or self.unit > size

    def count_in(self, size: int, base: int) -> None:
        """Make units `size` bytes large; `base` is the node of the first as it was before the launch, 0 for none."""
        before, self.unit, self.base = self.unit, size, base
        if not before:
            self._shadow = np.zeros(self.total // size, np.int32)
        else:
            self._split(before // size)

    def _split(self, pieces: int) -> None:
        """Make each unit so many smaller ones."""
        assert self._shadow is not None
        shadow = np.zeros(self.total // self.unit, np.int32)
        parts = np.repeat(self._shadow, pieces)
        shadow[: parts.size] = parts
        self._shadow = shadow
        index, nodes = Growing(np.int32), Growing(np.int32)
        index.add((self.index.array()[:, None] * pieces + np.arange(pieces)).ravel())
        nodes.add(np.repeat(self.nodes.array(), pieces))
        self.index, self.nodes = index, nodes
        self.borders = array("i", [border * pieces for border in self.borders])
