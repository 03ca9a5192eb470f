"""Device memories. Every access is checked, so that nothing outside an array is ever accessed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from gpu.base.errors import LaunchError, SourcePosition
from gpu.base.lane_mask import LaneMask
from gpu.simulator.executor.state.atomics import AtomicOperation, apply_atomics
from gpu.simulator.executor.state.batch import BlockBatch
from gpu.simulator.ir import MemoryOrder, Scope
from gpu.simulator.ir.value_uses import ValueUse

Array = npt.NDArray[Any]
DType = np.dtype[Any]

# The byte that fills uninitialized memory: NaN as a float, -1 as an integer, so that reads of it are noticeable.
POISON = 0xFF


@dataclass(frozen=True)
class AccessSite:
    """The source position of an access, and its action: "read", "write" or "atomic".

    An access may be `volatile`, of a whole `vector` type, to a `sum` of an asynchronous matrix product, or by a
    `bulk` copy, or `read_only`: through the read-only cache. `order` and `scope` are those of PTX; an access with
    another order than "weak" is strong. `op` is the operation of an atomic access, and `use` what a strong read
    decides.
    """

    position: SourcePosition
    action: str
    volatile: bool = False
    vector: bool = False
    sum: bool = False
    bulk: bool = False
    order: MemoryOrder = "weak"
    scope: Scope = "system"
    op: str = ""
    use: ValueUse = ValueUse.DATA
    read_only: bool = False

    @cached_property
    def is_strong(self) -> bool:
        """Whether the access is strong: atomic, volatile, or with a memory order."""
        return self.action == "atomic" or self.volatile or self.order != "weak"

    @property
    def acquires(self) -> bool:
        """Whether the access names an order that acquires."""
        return self.order in ("acquire", "acq_rel")

    @property
    def has_relaxed_order(self) -> bool:
        """Whether the access is a load or a store for which the source names relaxed order."""
        return self.action != "atomic" and self.order == "relaxed"


class DeviceMemory(Protocol):
    """Memory that lanes read and write."""

    name: str
    space: str

    def contains_elements(self, element: Any, size: int) -> Any:
        """Return whether elements of `size` bytes, one for all lanes or one per lane, are in the memory."""

    def load(self, batch: BlockBatch, element: Any, dtype: DType, mask: LaneMask, site: AccessSite) -> Any:
        """Load an element in each lane.

        Parameters
        ----------
        batch : BlockBatch
            The batch of the lanes.
        element : int or array
            The index in elements of `dtype`, one for all lanes or one per lane of the batch.
        dtype : dtype
            The type of the elements.
        site : AccessSite
            The access in the source, for errors.

        Returns
        -------
        scalar or array
            The values, one for all lanes or one per lane of the batch; those of inactive lanes are arbitrary.

        Raises
        ------
        LaunchError
            An index is out of bounds in an active lane.
        """

    def store(
        self, batch: BlockBatch, element: Any, dtype: DType, value: Any, mask: LaneMask, site: AccessSite
    ) -> None:
        """Store an element in each lane; if several lanes write one element, the last lane's value remains.

        Parameters
        ----------
        batch, element, dtype, mask, site
            As of `load`.
        value : scalar or array
            The values, one for all lanes or one per lane of the batch.

        Raises
        ------
        LaunchError
            An index is out of bounds in an active lane, or the memory is read-only.
        """

    def atomic(
        self,
        batch: BlockBatch,
        element: Any,
        dtype: DType,
        operation: AtomicOperation,
        mask: LaneMask,
        site: AccessSite,
    ) -> Any:
        """Execute an atomic operation in each lane, in lane order.

        Parameters
        ----------
        batch, element, dtype, mask, site
            As of `load`.

        Returns
        -------
        array or None
            The old values, one per lane of the batch; they may be None if the operation does not need them.

        Raises
        ------
        LaunchError
            An index is out of bounds in an active lane, or the memory has no atomic operations.
        """


class AccessError(LaunchError):
    """An invalid access, before any lane has performed it.

    Parameters
    ----------
    lanes : array of int
        The lanes for which the access is invalid.
    options
        As of LaunchError.
    """

    def __init__(self, message: str, lanes: Array, **options: Any) -> None:
        super().__init__(message, **options)
        self.lanes = lanes


class FlatMemory:
    """Memory backed by one array of bytes: global or constant memory, and the base class of shared memory.

    `element_bytes` is the size of an element as declared in the source, or 0 if it is unknown.
    """

    is_texture = False
    """Whether loads read it through the texture cache."""

    def __init__(self, name: str, space: str, data: Array, *, writable: bool = True, element_bytes: int = 0) -> None:
        self.name = name
        self.element_bytes = element_bytes
        self.space = space
        self.data = data
        self._writable = writable
        self._views: dict[DType, Array] = {}

    def view(self, dtype: DType) -> Array:
        """Return the bytes as elements of a type; a partial element at the end is left out."""
        if dtype not in self._views:
            size = self.data.size // dtype.itemsize * dtype.itemsize
            self._views[dtype] = self.data[:size].view(dtype)
        return self._views[dtype]

    def replace_data(self, data: Array) -> None:
        """Replace the backing array."""
        self.data = data
        self._views.clear()

    def get_written_bytes(self) -> Array | None:
        """Return a uint8 mask, 0xFF for each written byte, padded to 16 bytes; None if all bytes are written."""
        return None

    def to_declared_element(self, element: int, size: int) -> int:
        """Convert an index in elements of `size` bytes to one in elements of the declared type, such as float3."""
        return element * size // self.element_bytes if self.element_bytes > size else element

    def contains_elements(self, element: Any, size: int) -> Any:
        """Return whether elements of `size` bytes are in the memory."""
        return (element >= 0) & (element < self.data.size // size)

    def describe_location(self, element: int, size: int) -> str:
        """Return a description of the location of an access of `size` bytes, with the bytes of a partial element."""
        declared = self.to_declared_element(element, size)
        if self.element_bytes <= size:
            return f"element {declared} of {self.name}"
        first = element * size - declared * self.element_bytes
        return f"element {declared} of {self.name} (bytes {first} to {first + size - 1} of its {self.element_bytes})"

    def load(self, batch: BlockBatch, element: Any, dtype: DType, mask: LaneMask, site: AccessSite) -> Any:
        view = self.view(dtype)
        if not isinstance(element, np.ndarray) or mask.full:
            index = self._check_index(batch, element, dtype, mask, None, site)
            return view[index] if isinstance(index, int) else view.take(index)
        if 2 * mask.count >= element.size:
            # Most lanes are active: the others read element 0, which exists because an active lane reads this memory.
            index = self._check_index(batch, element * mask.bits, dtype, mask, None, site)
            return view.take(index)
        values = np.zeros(element.size, dtype)
        index = self._check_index(batch, _select_elements(element, mask), dtype, mask, mask.lanes, site)
        values[mask.lanes] = view[index]
        return values

    def store(
        self, batch: BlockBatch, element: Any, dtype: DType, value: Any, mask: LaneMask, site: AccessSite
    ) -> None:
        self._reject_read_only(batch, mask, site)
        lanes = None if mask.full else mask.lanes
        index = self._check_index(batch, _select_elements(element, mask), dtype, mask, lanes, site)
        value = _select_lanes(value, lanes)
        if isinstance(index, int) and isinstance(value, np.ndarray):
            value = value[-1]  # all lanes write one element: the last value remains
        view, monitor = self.view(dtype), batch.monitor
        old = monitor.save(view, index, is_global=self.space == "global") if monitor is not None else None
        view[index] = value
        if monitor is not None:
            monitor.compare(view, index, old)

    def atomic(
        self,
        batch: BlockBatch,
        element: Any,
        dtype: DType,
        operation: AtomicOperation,
        mask: LaneMask,
        site: AccessSite,
    ) -> Any:
        self._reject_read_only(batch, mask, site)
        lanes = None if mask.full else mask.lanes
        index = self._check_index(batch, _select_elements(element, mask), dtype, mask, lanes, site)
        if isinstance(index, int):
            index = np.full(mask.count, index)
        view, monitor = self.view(dtype), batch.monitor
        before = monitor.save(view, index, is_global=self.space == "global") if monitor is not None else None
        if lanes is not None:
            operands = [_select_lanes(value, lanes) for value in operation.operands]
            operation = AtomicOperation(operation.op, operands, operation.used)
        old = apply_atomics(view, index, operation)
        if monitor is not None:
            monitor.compare(view, index, before)
        if old is None or lanes is None:
            return old
        spread = np.zeros(mask.bits.size, dtype)
        spread[lanes] = old
        return spread

    def _check_index(
        self, batch: BlockBatch, element: Any, dtype: DType, mask: LaneMask, lanes: Array | None, site: AccessSite
    ) -> Any:
        """Return indices into the view; raise an error if one is out of bounds.

        `element` is one index for all lanes of the mask, or one for each of `lanes`; if these are None, one for each
        lane of the batch.
        """
        size = self.view(dtype).size
        self._check_bounds(batch, element, size, dtype, mask, lanes, site)
        return element if isinstance(element, int) else element.astype(np.intp)

    def _check_bounds(
        self,
        batch: BlockBatch,
        element: Any,
        size: int,
        dtype: DType,
        mask: LaneMask,
        lanes: Array | None,
        site: AccessSite,
    ) -> None:
        if _is_outside(element, size):
            elements, lanes = _spread_element(element, mask, lanes)
            raise _build_bounds_error(batch, self, site, dtype, elements, size, lanes)

    def _reject_read_only(self, batch: BlockBatch, mask: LaneMask, site: AccessSite) -> None:
        if not self._writable:
            raise AccessError(
                f"{site.position}: {batch.describe(int(mask.lanes[0]))} writes to {self.name} in __constant__ memory, "
                "which is read-only in a kernel.",
                mask.lanes,
                position=site.position,
                kind="other",
                thread=batch.describe(int(mask.lanes[0])),
            )


class SharedMemory(FlatMemory):
    """A `__shared__` variable of all blocks of a batch. Element indices count from the beginning of a block's array."""

    def __init__(self, name: str, size: int, batch: BlockBatch, element_bytes: int = 0) -> None:
        self._size = size
        # Lines of tensor copies stay aligned in other blocks of a cluster.
        alignment = 128 if size >= 128 else 16
        self._stride = max(-(-size // alignment) * alignment, alignment)
        self._blocks = batch.geometry.blocks
        self._cluster_memories: dict[int, ClusterMemory] = {}
        data = np.full(self._blocks * self._stride, POISON, np.uint8)
        super().__init__(name, "shared", data, element_bytes=element_bytes)
        self._bases: dict[DType, Array] = {}

    def _base(self, batch: BlockBatch, dtype: DType) -> Array:
        if dtype not in self._bases:
            self._bases[dtype] = batch.geometry.block_of_lane * (self._stride // dtype.itemsize)
        return self._bases[dtype]

    def _check_index(
        self, batch: BlockBatch, element: Any, dtype: DType, mask: LaneMask, lanes: Array | None, site: AccessSite
    ) -> Any:
        self._check_bounds(batch, element, self._size // dtype.itemsize, dtype, mask, lanes, site)
        index = element if isinstance(element, int) else element.astype(np.intp)
        if self._blocks == 1:
            return index
        base = self._base(batch, dtype)
        return (base if lanes is None else base[lanes]) + index

    def contains_elements(self, element: Any, size: int) -> Any:
        """Return whether elements of `size` bytes are in a block's memory; in a cluster, every element counts."""
        return bool(self._cluster_memories) | (element >= 0) & (element < self._size // size)

    @property
    def extents(self) -> tuple[int, int]:
        """The size of a block's variable, and the distance between those of consecutive blocks, in bytes."""
        return self._size, self._stride

    def describe_location(self, element: int, size: int) -> str:
        """Return a description of the location of an access, with the element's index within its block."""
        return super().describe_location(element % (self._stride // size), size)

    def get_cluster_memory(self, batch: BlockBatch, rank: int) -> ClusterMemory:
        """Return the variable of the block with a rank in each cluster."""
        if rank not in self._cluster_memories:
            self._cluster_memories[rank] = ClusterMemory(self, batch, rank)
        return self._cluster_memories[rank]


class ClusterMemory(SharedMemory):
    """A `__shared__` variable of the block with a given rank in each lane's cluster.

    Element indices are relative to the lane's own block; those of another block are offset by the blocks in between.
    """

    def __init__(self, own: SharedMemory, batch: BlockBatch, rank: int) -> None:
        FlatMemory.__init__(self, own.name, "shared", own.data, element_bytes=own.element_bytes)
        self.own_memory = own
        self._size, self._stride = own.extents
        self.rank = rank
        blocks = batch.block_of_rank[batch.cluster_of_block, rank] - np.arange(batch.geometry.blocks)
        self.byte_offsets = np.repeat(blocks, batch.geometry.lanes_per_block) * self._stride
        """For each lane, the offset in bytes of the variable from that of the lane's own block."""
        self._block_offsets = batch.geometry.block_of_lane * self._stride

    def load(self, batch: BlockBatch, element: Any, dtype: DType, mask: LaneMask, site: AccessSite) -> Any:
        values = np.zeros(mask.bits.size, dtype)
        index = self._check_index(batch, _select_lanes(element, mask.lanes), dtype, mask, mask.lanes, site)
        values[mask.lanes] = self.view(dtype).take(index)
        return values

    def _check_index(
        self, batch: BlockBatch, element: Any, dtype: DType, mask: LaneMask, lanes: Array | None, site: AccessSite
    ) -> Any:
        size, width = self._size // dtype.itemsize, dtype.itemsize
        moved, flat = (each if lanes is None else each[lanes] for each in (self.byte_offsets, self._block_offsets))
        self._check_bounds(batch, element - moved // width, size, dtype, mask, lanes, site)
        return (flat // width + element).astype(np.intp)


def observed_memory(memory: DeviceMemory) -> DeviceMemory:
    """Return the memory that observers see for an access: for another block's variable, that of all blocks."""
    return memory.own_memory if isinstance(memory, ClusterMemory) else memory


class LocalMemory:
    """Local memory: `size` bytes per lane, interleaved by lane as on a GPU.

    The elements of `s` bytes at offset `o` of all lanes are stored consecutively from byte `o * lanes`, so that an
    index shared by all lanes addresses a row. This layout requires that elements are read in the size in which they
    were written. In `punned` memory the bytes of a lane are consecutive instead, so elements may have any size. Memory
    is converted to that layout at the first access in another size than that of a written element, unless it is
    recorded.
    """

    def __init__(self, name: str, size: int, lanes: int, *, zeroed: bool = False, punned: bool = False) -> None:
        self.name = name
        self.space = "local"
        self.size = size
        self.zeroed = zeroed
        self.punned = punned
        self.recorded = False
        self._lanes = lanes
        self.stride = -(-size // 16) * 16 if punned else size
        self._data = np.full(self.stride * lanes, 0 if zeroed else POISON, np.uint8)
        # For each byte, the size of the element that it was last written in; 0 if it was not.
        self._written_sizes = bytearray(size)
        self._sizes: set[int] = set()

    @property
    def bytes(self) -> int:
        """The size for all lanes together, in bytes."""
        return self._data.size

    def contains_elements(self, element: Any, size: int) -> Any:
        """Return whether elements of `size` bytes are in the memory."""
        return (element >= 0) & (element < self.size // size)

    def load(self, batch: BlockBatch, element: Any, dtype: DType, mask: LaneMask, site: AccessSite) -> Any:
        self._check(batch, element, dtype, mask, site)
        if not self.punned and self._sizes and self._sizes != {dtype.itemsize}:
            self._require_size(element, dtype.itemsize, mask, site)
        view = self._data.view(dtype) if self._data.size else self._data
        if self.punned:
            values = np.zeros(batch.geometry.lanes, dtype)
            values[mask.lanes] = view[self._punned_index(element, dtype, mask)]
            return values
        if isinstance(element, int):
            # A copy: a later store must not change the value.
            return view[element * self._lanes : (element + 1) * self._lanes].copy()
        if mask.full:
            return view.take(element.astype(np.intp) * self._lanes + batch.geometry.lane_numbers)
        values = np.zeros(element.size, dtype)
        values[mask.lanes] = view[element[mask.lanes].astype(np.intp) * self._lanes + mask.lanes]
        return values

    def store(
        self, batch: BlockBatch, element: Any, dtype: DType, value: Any, mask: LaneMask, site: AccessSite
    ) -> None:
        self._check(batch, element, dtype, mask, site)
        if not self.punned and not (
            isinstance(element, int) and self._written_sizes[element * dtype.itemsize] == dtype.itemsize
        ):
            self._sizes.add(dtype.itemsize)
            first, last = self._require_size(element, dtype.itemsize, mask, site)
            self._written_sizes[first:last] = bytes((dtype.itemsize,)) * (last - first)
        view = self._data.view(dtype)
        if self.punned:
            view[self._punned_index(element, dtype, mask)] = _select_lanes(value, mask.lanes)
        elif mask.full and isinstance(element, int):
            view[element * self._lanes : (element + 1) * self._lanes] = value
        else:
            index = _select_lanes(element, mask.lanes)
            view[np.asarray(index, np.intp) * self._lanes + mask.lanes] = _select_lanes(value, mask.lanes)

    def atomic(
        self,
        batch: BlockBatch,
        element: Any,
        dtype: DType,
        operation: AtomicOperation,
        mask: LaneMask,
        site: AccessSite,
    ) -> Any:
        raise batch.thread_error(mask, site.position, f"atomic operation on {self.name}, which is in local memory.")

    def _require_size(self, element: Any, size: int, mask: LaneMask, site: AccessSite) -> tuple[int, int]:
        """Convert the layout if lanes access bytes that were written in another size; return the range of the bytes.

        Raises
        ------
        LaunchError
            The memory is recorded, so its layout cannot change.
        """
        if isinstance(element, int):
            first, last = element * size, (element + 1) * size
        else:
            elements = _select_lanes(element, mask.lanes)
            first, last = int(elements.min()) * size, (int(elements.max()) + 1) * size
        sizes = self._written_sizes[first:last]
        if sizes.count(size) + sizes.count(0) < last - first:
            if self.recorded:
                raise LaunchError(
                    f"{site.position}: {self.name} is accessed in elements of {size} bytes but was written in another "
                    "size, which the simulator does not support in local memory.",
                    position=site.position,
                    advice="Use elements of the written size and combine them, or functions such as __float_as_int.",
                )
            self._convert_layout()
        return first, last

    def _convert_layout(self) -> None:
        """Convert to the layout with consecutive bytes per lane."""
        self._data = self._arrange_by_lane().reshape(-1)
        self.punned, self.stride = True, -(-self.size // 16) * 16

    def copy_lanes(self, lanes: Array) -> Array:
        """Return the bytes of some lanes, a row for each; those that were not written are the same in all copies."""
        return (self._data.reshape(self._lanes, self.stride) if self.punned else self._arrange_by_lane())[lanes]

    def _arrange_by_lane(self) -> Array:
        """Return the bytes of interleaved memory with those of a lane in one row, padded to 16."""
        first, laid = 0, np.full((self._lanes, -(-self.size // 16) * 16), 0 if self.zeroed else POISON, np.uint8)
        while first < self.size:
            size = self._written_sizes[first] or 1
            if self._written_sizes[first]:
                row = self._data[first * self._lanes : (first + size) * self._lanes]
                laid[:, first : first + size] = row.reshape(self._lanes, size)
            first += size
        return laid

    def _punned_index(self, element: Any, dtype: DType, mask: LaneMask) -> Array:
        index: Array = mask.lanes * (self.stride // dtype.itemsize) + np.asarray(
            _select_lanes(element, mask.lanes), np.intp
        )
        return index

    def _check(self, batch: BlockBatch, element: Any, dtype: DType, mask: LaneMask, site: AccessSite) -> None:
        count, lanes = self.size // dtype.itemsize, None if mask.full else mask.lanes
        element = _select_lanes(element, lanes)
        if _is_outside(element, count):
            elements, lanes = _spread_element(element, mask, lanes)
            raise _build_bounds_error(batch, self, site, dtype, elements, count, lanes)


def _select_lanes(value: Any, lanes: Array | None) -> Any:
    """Return the elements of a value for some lanes."""
    return value.take(lanes) if lanes is not None and isinstance(value, np.ndarray) else value


def _select_elements(element: Any, mask: LaneMask) -> Any:
    """Return the indices that the lanes of a mask access; that of a single lane as a number, which costs less."""
    if not isinstance(element, np.ndarray) or mask.full:
        return element
    return int(element[mask.lanes[0]]) if mask.count == 1 else element.take(mask.lanes)


_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def _is_outside(element: Any, size: int) -> bool:
    """Return whether an index is out of range. Compared as unsigned numbers, negative indices are large."""
    if isinstance(element, int):
        return not 0 <= element < size
    if element.dtype.itemsize < 4:
        element = element.astype(np.int32)  # as unsigned numbers of 8 or 16 bits they may be less than `size`
    return bool(element.size) and element.view(_UNSIGNED[element.dtype.itemsize]).max() >= size


def _spread_element(element: Any, mask: LaneMask, lanes: Array | None) -> tuple[Array, Array]:
    """Return one index per accessing lane, and these lanes, for an index as of `_check_index`."""
    if isinstance(element, int):
        return np.full(mask.count, element), mask.lanes
    return element, np.arange(element.size) if lanes is None else lanes


def _build_bounds_error(
    batch: BlockBatch,
    memory: DeviceMemory,
    site: AccessSite,
    dtype: DType,
    elements: Array,
    size: int,
    lanes: Array,
) -> AccessError:
    """Return the error of lanes whose index is not below `size`."""

    def convert(index: int) -> int:
        return memory.to_declared_element(index, dtype.itemsize) if isinstance(memory, FlatMemory) else index

    outside = np.flatnonzero((elements < 0) | (elements >= size))
    thread = batch.describe(int(lanes[outside[0]]))
    return AccessError(
        f"{site.position}: Invalid __{memory.space}__ {site.action} of size {dtype.itemsize} bytes by "
        f"{thread}: element {convert(int(elements[outside[0]]))} of {memory.name}, which has {convert(size)}.",
        lanes[outside],
        position=site.position,
        advice="Compare the index with the array's size before the access.",
        kind="out-of-bounds",
        thread=thread,
    )
