"""CUDA arrays, copies of boxes between arrays, device and host, and texture references."""

from __future__ import annotations

import itertools
import math
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from gpu.hosts.driver.faults import INVALID_VALUE, build_logic_error
from gpu.hosts.driver.memory import bytes_at, writable_bytes_at
from gpu.hosts.pycuda.devices import current_context
from gpu.hosts.pycuda.memory.device_memory import host_bytes, new_memory, strided_bytes
from gpu.hosts.pycuda.names import NAMES, export
from gpu.simulator.executor.textures import Addressing, Sampling, Texture
from gpu.simulator.simulated_module import SimulatedModule

Array = npt.NDArray[Any]

_handles = itertools.count(0x3000, 0x10)
_arrays_by_handle: WeakValueDictionary[int, SimulatedArray] = WeakValueDictionary()
ADDRESSING: dict[int, Addressing] = {0: "wrap", 1: "clamp", 2: "mirror", 3: "border"}
FORMAT_BYTES = {1: 1, 2: 2, 3: 4, 8: 1, 9: 2, 10: 4, 16: 2, 32: 4}


@export("ArrayDescriptor")
class PlaneDescriptor:
    """Description of a two-dimensional array."""

    def __init__(self) -> None:
        self.width = 0
        self.height = 0
        self.format: int = 32
        self.num_channels = 1


@export("ArrayDescriptor3D")
class BoxDescriptor(PlaneDescriptor):
    """Description of a three-dimensional array."""

    def __init__(self) -> None:
        super().__init__()
        self.depth = 0
        self.flags = 0


@export("Array")
class SimulatedArray:
    """Array of one to three dimensions for copies, textures and surfaces."""

    def __init__(self, descriptor: PlaneDescriptor) -> None:
        current_context("cuArrayCreate")
        if int(descriptor.format) not in FORMAT_BYTES or descriptor.num_channels not in (1, 2, 4):
            raise build_logic_error(
                "cuArrayCreate", INVALID_VALUE, "elements have 1, 2 or 4 channels of 1, 2 or 4 bytes"
            )
        self.handle = next(_handles)
        self.descriptor = descriptor
        self.element_bytes = FORMAT_BYTES[int(descriptor.format)] * descriptor.num_channels
        self.extents = (int(descriptor.width), int(descriptor.height), int(getattr(descriptor, "depth", 0)))
        width, height, depth = (max(extent, 1) for extent in self.extents)
        size = width * height * depth * self.element_bytes
        # An element of zeros follows the data, as the border value of textures.
        memory = new_memory(size + self.element_bytes, "cuArrayCreate", written=True)
        self._memory: Any = memory
        self.data: Array = memory.data[:size].reshape(depth, height, width * self.element_bytes)
        _arrays_by_handle[self.handle] = self

    def free(self) -> None:
        """Free the memory."""
        if self._memory is None:
            raise build_logic_error("cuArrayDestroy", INVALID_VALUE, "it is already freed")
        self._memory = None
        self.data = np.empty((0, 0, 0), np.uint8)

    def get_descriptor(self) -> PlaneDescriptor:
        """Return the array's description."""
        return self.descriptor

    def get_descriptor_3d(self) -> BoxDescriptor:
        """Return the array's description in three dimensions."""
        descriptor = BoxDescriptor()
        descriptor.__dict__.update(self.descriptor.__dict__)
        return descriptor

    def flat(self) -> Array:
        """Return a view of all bytes as one row."""
        return self.data.reshape(-1)

    @property
    def dimensions(self) -> tuple[int, ...]:
        """Elements per dimension: x, then y and z if they exist."""
        width, height, depth = self.extents
        return (width, height, depth) if depth > 1 else (width, height) if height else (width,)

    @property
    def bordered_data(self) -> Array:
        """View of all bytes as one row, followed by an element of zeros."""
        if self._memory is None:
            raise build_logic_error("cuArray", INVALID_VALUE, "it is already freed")
        data: Array = self._memory.data
        return data

    @property
    def supports_surfaces(self) -> bool:
        """Whether surfaces can write it."""
        return bool(int(getattr(self.descriptor, "flags", 0)) & int(NAMES["array3d_flags"].SURFACE_LDST))


def find_array(handle: int) -> SimulatedArray | None:
    """Return the array with a handle; None if there is none."""
    return _arrays_by_handle.get(handle)


def _subrange(data: Array, first: int, size: int, routine: str) -> Array:
    if first < 0 or first + size > data.size:
        raise build_logic_error(
            routine, INVALID_VALUE, f"bytes {first:,} to {first + size:,} of an array of {data.size:,} bytes"
        )
    return data[first : first + size]


@export("memcpy_dtoa")
def memcpy_dtoa(ary: SimulatedArray, index: int, src: Any, len: int) -> None:  # noqa: A002
    """Copy from device memory to an array.

    Parameters
    ----------
    ary : SimulatedArray
        The array; its bytes count as one row.
    index : int
        The offset in it, in bytes.
    src : int or SimulatedAllocation
        The address of the data.
    len : int
        Bytes to copy.

    Raises
    ------
    DriverLogicError
        The bytes exceed the array or the allocation.
    """
    _subrange(ary.flat(), index, len, "cuMemcpyDtoA")[:] = bytes_at(src, len, "cuMemcpyDtoA")


@export("memcpy_atod")
def memcpy_atod(dest: Any, ary: SimulatedArray, index: int, len: int) -> None:  # noqa: A002
    """Copy from an array to device memory.

    Parameters
    ----------
    dest : int or SimulatedAllocation
        The address for the data.
    ary : SimulatedArray
        The array; its bytes count as one row.
    index : int
        The offset in it, in bytes.
    len : int
        Bytes to copy.

    Raises
    ------
    DriverLogicError
        The bytes exceed the array or the allocation.
    """
    writable_bytes_at(dest, len, "cuMemcpyAtoD")[:] = _subrange(ary.flat(), index, len, "cuMemcpyAtoD")


@export("memcpy_htoa")
def memcpy_htoa(ary: SimulatedArray, index: int, src: Any) -> None:
    """Copy from the host to an array."""
    data = host_bytes(src)
    _subrange(ary.flat(), index, data.size, "cuMemcpyHtoA")[:] = data


@export("memcpy_atoh")
def memcpy_atoh(dest: Any, ary: SimulatedArray, index: int) -> None:
    """Copy from an array to the host."""
    data = host_bytes(dest, writable=True)
    data[:] = _subrange(ary.flat(), index, data.size, "cuMemcpyAtoH")


NAMES["py_memcpy_htoa"], NAMES["py_memcpy_atoh"] = memcpy_htoa, memcpy_atoh


@export("memcpy_atoa")
def memcpy_atoa(dest: SimulatedArray, dest_index: int, src: SimulatedArray, src_index: int, len: int) -> None:  # noqa: A002
    """Copy between arrays; their bytes may overlap.

    Parameters
    ----------
    dest : SimulatedArray
        The array that is written; its bytes count as one row.
    dest_index : int
        The offset in it, in bytes.
    src : SimulatedArray
        The array that is read.
    src_index : int
        The offset in it, in bytes.
    len : int
        Bytes to copy.

    Raises
    ------
    DriverLogicError
        The bytes exceed an array.
    """
    data = _subrange(src.flat(), src_index, len, "cuMemcpyAtoA").copy()
    _subrange(dest.flat(), dest_index, len, "cuMemcpyAtoA")[:] = data


class _BoxCopy:
    """Copy of a box of bytes; unset offsets are 0, and a pitch of 0 means the width."""

    routine = "cuMemcpy3D"

    def __init__(self) -> None:
        for side in ("src", "dst"):
            for name in ("x_in_bytes", "y", "z", "lod", "device", "pitch", "height"):
                setattr(self, f"{side}_{name}", 0)
            setattr(self, f"{side}_memory_type", 0)
        self.width_in_bytes = 0
        self.height = 0
        self.depth = 1
        self._endpoints: dict[str, Any] = {}

    def set_src_host(self, buffer: Any) -> None:
        """Copy from the host."""
        self._set_endpoint("src", "HOST", strided_bytes(buffer))

    def set_dst_host(self, buffer: Any) -> None:
        """Copy to the host."""
        self._set_endpoint("dst", "HOST", strided_bytes(buffer, writable=True))

    def set_src_array(self, array: SimulatedArray) -> None:
        """Copy from an array."""
        self._set_endpoint("src", "ARRAY", array)

    def set_dst_array(self, array: SimulatedArray) -> None:
        """Copy to an array."""
        self._set_endpoint("dst", "ARRAY", array)

    def set_src_device(self, address: Any) -> None:
        """Copy from device memory."""
        self.src_device: Any = address
        self._set_endpoint("src", "DEVICE", None)

    def set_dst_device(self, address: Any) -> None:
        """Copy to device memory."""
        self.dst_device: Any = address
        self._set_endpoint("dst", "DEVICE", None)

    def set_src_unified(self, buffer: Any) -> None:
        """Copy from managed memory."""
        self._set_endpoint("src", "HOST", strided_bytes(buffer))

    def set_dst_unified(self, buffer: Any) -> None:
        """Copy to managed memory."""
        self._set_endpoint("dst", "HOST", strided_bytes(buffer, writable=True))

    def set_src_context(self, context: Any) -> None:
        """Ignore the source's context."""

    def set_dst_context(self, context: Any) -> None:
        """Ignore the destination's context."""

    def _set_endpoint(self, side: str, kind: str, end: Any) -> None:
        setattr(self, f"{side}_memory_type", NAMES["memory_type"][kind])
        self._endpoints[side] = end

    def __call__(self, *options: Any, aligned: bool = False) -> None:
        """Copy; `options` is whether rows are aligned, or the stream."""
        current_context(self.routine)
        if self.width_in_bytes and self.height and self.depth:
            self._view_side("dst")[...] = self._view_side("src").copy()

    def _view_side(self, side: str) -> Array:
        """Return a view of one side: (depth, height, width)."""
        if side not in self._endpoints:
            raise build_logic_error(self.routine, INVALID_VALUE, f"the copy's {side} is not set")
        x, y, z = (int(getattr(self, f"{side}_{name}")) for name in ("x_in_bytes", "y", "z"))
        width, height, depth = int(self.width_in_bytes), int(self.height), int(self.depth)
        end = self._endpoints[side]
        if isinstance(end, SimulatedArray):
            view = end.data[z : z + depth, y : y + height, x : x + width]
            if view.shape != (depth, height, width):
                raise build_logic_error(
                    self.routine, INVALID_VALUE, f"the box does not fit the array of {end.extents} elements"
                )
            return view
        pitch = int(getattr(self, f"{side}_pitch")) or x + width
        rows = int(getattr(self, f"{side}_height")) or y + height
        if pitch < x + width:
            raise build_logic_error(self.routine, INVALID_VALUE, f"a pitch of {pitch} bytes for rows of {x + width}")
        first = (z * rows + y) * pitch + x
        size = ((depth - 1) * rows + height - 1) * pitch + width
        if end is None:
            look = writable_bytes_at if side == "dst" else bytes_at
            data = look(int(getattr(self, f"{side}_device")) + first, size, self.routine)
        else:
            data = _subrange(end, first, size, self.routine)
        return np.lib.stride_tricks.as_strided(data, (depth, height, width), (rows * pitch, pitch, 1))


@export("Memcpy2D")
class PlaneCopy(_BoxCopy):
    """Copy of a rectangle."""

    routine = "cuMemcpy2D"


@export("Memcpy3D")
class BoxCopy(_BoxCopy):
    """Copy of a box."""


@export("Memcpy3DPeer")
class PeerCopy(_BoxCopy):
    """Copy of a box between contexts."""


@export("TextureReference")
class TextureReference:
    """Texture reference of a module."""

    def __init__(self, module: SimulatedModule | None = None, name: str = "") -> None:
        self._module, self._name = module, name
        self._array: SimulatedArray | None = None
        self._address = 0
        self._format: tuple[int, int] = (32, 1)
        self._modes: dict[int, int] = {}
        self._filter = 0
        self._flags = 0
        self._binding: tuple[Array, tuple[int, ...], int] | None = None

    def set_array(self, array: SimulatedArray) -> None:
        """Bind an array."""
        self._array = array
        self._set_data(array.bordered_data, array.dimensions, array.element_bytes)

    def set_address(self, devptr: Any, bytes: int, allow_offset: bool = False) -> int:  # noqa: A002
        """Bind device memory; return the offset that fetches have to add, which is 0."""
        self._address = int(devptr)
        data = bytes_at(devptr, int(bytes), "cuTexRefSetAddress")
        self._set_data(data, (data.size // self._element_bytes(),), self._element_bytes())
        return 0

    def set_address_2d(self, devptr: Any, descr: PlaneDescriptor, pitch: int) -> None:
        """Bind pitched rows in device memory."""
        self._address = int(devptr)
        self.set_format(descr.format, descr.num_channels)
        size = self._element_bytes()
        if int(pitch) % size:
            raise build_logic_error("cuTexRefSetAddress2D", INVALID_VALUE, f"rows of {pitch} bytes, elements of {size}")
        data = bytes_at(devptr, int(pitch) * int(descr.height), "cuTexRefSetAddress2D")
        self._set_data(data, (int(pitch) // size, int(descr.height)), size)

    def set_format(self, format: int, num_components: int) -> None:  # noqa: A002
        """Set the format of the elements."""
        self._format = (int(format), int(num_components))
        if self._address and self._binding is not None:
            data, _, _ = self._binding
            self._set_data(data, (data.size // self._element_bytes(),), self._element_bytes())

    def set_address_mode(self, dim: int, am: int) -> None:
        """Set the address mode of a dimension."""
        self._modes[int(dim)] = int(am)
        self._bind()

    def set_filter_mode(self, mode: int) -> None:
        """Set the filter mode."""
        self._filter = int(mode)
        self._bind()

    def set_flags(self, flags: int) -> None:
        """Set the flags of coordinates and values."""
        self._flags = int(flags)
        self._bind()

    def get_address(self) -> int:
        """Return the address of the bound memory."""
        return self._address

    def get_array(self) -> SimulatedArray | None:
        """Return the bound array."""
        return self._array

    def get_address_mode(self, dim: int) -> Any:
        """Return the address mode of a dimension."""
        return NAMES["address_mode"](self._modes.get(dim, 1))

    def get_filter_mode(self) -> Any:
        """Return the filter mode."""
        return NAMES["filter_mode"](self._filter)

    def get_format(self) -> tuple[Any, int]:
        """Return the format of the elements."""
        return NAMES["array_format"](self._format[0]), self._format[1]

    def get_flags(self) -> int:
        """Return the flags of coordinates and values."""
        return self._flags

    def _element_bytes(self) -> int:
        return FORMAT_BYTES[self._format[0]] * self._format[1]

    def _set_data(self, data: Array, extents: tuple[int, ...], size: int) -> None:
        self._binding = (data, extents, size)
        self._bind()

    def _bind(self) -> None:
        """Pass the current settings to the module."""
        if self._module is None or self._binding is None:
            return
        data, extents, size = self._binding
        addressing = ADDRESSING[self._modes.get(0, 1)]
        if addressing == "border" and data.size == math.prod(extents) * size:
            data = np.append(data, np.zeros(size, np.uint8))
        normalized = bool(self._flags & NAMES["TRSF_NORMALIZED_COORDINATES"])
        sampling = Sampling(bool(self._filter), normalized, addressing)
        self._module.set_texture(self._name, Texture(data, extents, size, sampling))
