"""Memories of a launch during recording: the log of writes, and the current node of each element."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np

from gpu.base.lane_mask import LaneMask
from gpu.recording.data import TraceMemory
from gpu.recording.packing import Array, GrowingArray, select_active
from gpu.simulator import ir
from gpu.simulator.executor.state.batch import BlockBatch
from gpu.simulator.executor.state.memory import POISON, DeviceMemory, FlatMemory, LocalMemory

NO_NODE = np.int32(0)

# The value in a shadow for an element if its last write has no node; 0 marks an element without a write.
_CLEARED = -1


def shared_size(batch: BlockBatch, memory: FlatMemory) -> int:
    """Return the size in bytes of a block's `__shared__` variable, which the memory itself rounds up."""
    for key, shared in batch.shared.items():
        if shared is memory:
            return key.size if isinstance(key, ir.SharedVariable) else batch.shared_bytes
    raise KeyError(memory.name)


class RecordedMemory:
    """A global array, a `__shared__` array of all blocks of a batch, or a local array of all its threads.

    Bytes have the same layout as in the memory itself. A "flat" index counts from the beginning of all bytes. The log
    and the shadow count in units of the smallest element that was accessed.
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
        self.index, self.nodes = GrowingArray(np.int32), GrowingArray(np.int32)
        self.values = GrowingArray(np.uint8)
        # The number of units in the log before each write.
        self.borders = array("i")
        self._shadow: Array | None = None

    @classmethod
    def from_array(
        cls, number: int, name: str, space: str, initial: Array, dtype: np.dtype[Any] | None
    ) -> RecordedMemory:
        """Create the memory of an array that exists before the launch.

        Parameters
        ----------
        number : int
            The memory's number.
        space : {"global", "constant"}
            The state space.
        initial : uint8 array
            The bytes before the launch, which must not change later.
        dtype : dtype or None
            The declared type of the elements; None if it is unknown or elements have several types.
        """
        memory = cls(number, name, space, initial.size)
        memory.initial, memory.dtype = initial, dtype
        return memory

    @classmethod
    def for_shared_variable(
        cls, number: int, name: str, size: int, blocks: int, stride: int, batch: int
    ) -> RecordedMemory:
        """Create the memory of a `__shared__` variable.

        Parameters
        ----------
        number : int
            The memory's number.
        size : int
            Bytes per block.
        blocks : int
            The number of blocks of the batch.
        stride : int
            The distance in bytes between the variables of consecutive blocks.
        """
        memory = cls(number, name, "shared", size)
        memory.blocks, memory.stride, memory.batch = blocks, stride, batch
        return memory

    @classmethod
    def for_local_variable(cls, number: int, memory: LocalMemory, lanes: int, batch: int) -> RecordedMemory:
        """Create the recorded memory of a variable in local memory.

        Parameters
        ----------
        number : int
            The memory's number.
        memory : LocalMemory
            The variable's memory for all lanes, which keeps its layout from now on.
        lanes : int
            The number of lanes of the batch.
        """
        recorded = cls(number, memory.name, "local", memory.size)
        recorded.lanes, recorded.batch, recorded.fill = lanes, batch, 0 if memory.zeroed else POISON
        recorded.stride = memory.stride if memory.punned else 0
        memory.recorded = True
        return recorded

    @property
    def writes(self) -> int:
        """The number of writes in the log."""
        return len(self.borders)

    @property
    def total_bytes(self) -> int:
        """The size for all blocks or lanes, in bytes."""
        return (self.stride or self.size) * self.lanes if self.lanes else self.blocks * self.stride

    def flat_index(self, batch: BlockBatch, element: Any, size: int, mask: LaneMask) -> Any:
        """Return the flat index of each lane's element, counted in elements of `size` bytes.

        Parameters
        ----------
        batch : BlockBatch
            The batch of the lanes.
        element : int or array
            The element index within a block or lane, one for all lanes or one per lane of the batch.
        size : int
            Bytes per element.
        """
        index = select_active(element, mask)
        if self.space == "local" and self.stride:
            return np.asarray(index, np.int64) + mask.lanes * (self.stride // size)
        if self.space == "local":
            return np.asarray(index, np.int64) * self.lanes + mask.lanes
        if self.space == "shared" and self.blocks > 1:
            return index + select_active(batch.geometry.block_of_lane, mask) * (self.stride // size)
        return np.int64(index) if not isinstance(index, np.ndarray) else index.astype(np.int64)

    def units_per_element(self, dtype: np.dtype[Any]) -> int:
        """Return the number of units per element of a type."""
        return dtype.itemsize // self.unit

    def shadow_nodes(self, dtype: np.dtype[Any]) -> Array:
        """Return the shadow's node of each element of a type."""
        assert self._shadow is not None
        size = self._shadow.size // self.units_per_element(dtype) * self.units_per_element(dtype)
        return self._shadow[: size : self.units_per_element(dtype)]

    def content(self, memory: DeviceMemory, dtype: np.dtype[Any]) -> Array:
        """Return the current elements of the memory."""
        assert isinstance(memory, FlatMemory)
        return memory.view(dtype)

    def write(self, flat: Array, values: Array, nodes: Array) -> None:
        """Log a write of each lane; later lanes overwrite earlier ones."""
        assert self._shadow is not None
        self.borders.append(self.index.size)
        pieces = self.units_per_element(values.dtype)
        if pieces > 1:
            flat = (flat[:, None] * pieces + np.arange(pieces)).ravel()
            nodes = np.repeat(nodes, pieces)
        self.index.add(flat)
        self.nodes.add(nodes)
        self.values.add(np.ascontiguousarray(values).view(np.uint8))
        self._shadow[flat] = np.where(nodes == 0, np.int32(_CLEARED), nodes)

    def release_shadow(self) -> None:
        """Release the shadow, when the memory will not be accessed again."""
        self._shadow = None

    def needs_smaller_unit(self, size: int) -> bool:
        """Return whether units are larger than elements of `size` bytes, or not defined yet."""
        return not self.unit or self.unit > size

    def set_unit(self, size: int, base: int) -> None:
        """Set the unit to `size` bytes; `base` is the node of the first unit's initial value, 0 for none."""
        old, self.unit, self.base = self.unit, size, base
        if not old:
            self._shadow = np.zeros(self.total_bytes // size, np.int32)
        else:
            self._split(old // size)

    def _split(self, pieces: int) -> None:
        """Split each unit in the log and the shadow into smaller ones."""
        assert self._shadow is not None
        shadow = np.zeros(self.total_bytes // self.unit, np.int32)
        parts = np.repeat(self._shadow, pieces)
        shadow[: parts.size] = parts
        self._shadow = shadow
        index, nodes = GrowingArray(np.int32), GrowingArray(np.int32)
        index.add((self.index.array()[:, None] * pieces + np.arange(pieces)).ravel())
        nodes.add(np.repeat(self.nodes.array(), pieces))
        self.index, self.nodes = index, nodes
        self.borders = array("i", [border * pieces for border in self.borders])

    def build_data(self) -> TraceMemory:
        """Return the data of the memory in a trace."""
        unit = self.unit or 1
        return TraceMemory(
            self.name,
            self.space,
            self.size,
            self.dtype if self.dtype is not None else np.dtype(np.uint8),
            self.blocks,
            self.stride,
            self.lanes,
            self.batch,
            unit,
            bool(self.unit),
            self.base,
            self.fill,
            self.initial,
            self.index.array().copy(),
            self.nodes.array().copy(),
            self.values.array().copy().reshape(-1, unit),
            np.array(self.borders, np.int32),
        )
