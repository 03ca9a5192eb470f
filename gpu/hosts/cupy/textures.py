"""Module `cupy.cuda.texture`: arrays, descriptions, and texture and surface objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpu.hosts.cupy.arrays import DeviceArray
from gpu.hosts.cupy.faults import CUDARuntimeError
from gpu.hosts.cupy.memory import Array, allocate
from gpu.hosts.cupy.names import named
from gpu.hosts.driver.memory import address_of
from gpu.simulator.executor.state.memory import FlatMemory
from gpu.simulator.executor.textures import Addressing, Sampling, Surface, Texture

_ADDRESSING: tuple[Addressing, ...] = ("wrap", "clamp", "mirror", "border")
_FLOAT, _ARRAY, _LINEAR, _PITCH = 2, 0, 2, 3
_SURFACE = 2


@named("cupy.cuda.texture.ChannelFormatDescriptor")
class ChannelFormat:
    """The format of a texel.

    Parameters
    ----------
    x, y, z, w : int
        Bits of each channel.
    f : int
        `cudaChannelFormatKindSigned` ...
    """

    def __init__(self, x: int, y: int, z: int, w: int, f: int) -> None:
        self.bits, self.kind = (x, y, z, w), f

    @property
    def size(self) -> int:
        """Bytes per texel."""
        return sum(self.bits) // 8

    def get_channel_format(self) -> dict[str, int]:
        """Return the parameters by name."""
        return dict(zip("xyzwf", (*self.bits, self.kind), strict=True))


@named("cupy.cuda.texture.CUDAarray")
class TexelArray:
    """An array of one to three dimensions for textures and surfaces.

    Parameters
    ----------
    width, height, depth : int
        Texels; 0 for no such dimension.
    flags : int
        `cudaArraySurfaceLoadStore` allows surfaces.
    """

    def __init__(self, desc: ChannelFormat, width: int, height: int = 0, depth: int = 0, flags: int = 0) -> None:
        if width < 1 or (depth and not height):
            raise ValueError(f"Invalid extents of a CUDAarray: {width}, {height}, {depth}")
        self.desc, self.width, self.height, self.depth, self.flags = desc, width, height, depth, flags
        self.ndim = 3 if depth else 2 if height else 1
        self._bytes = width * max(height, 1) * max(depth, 1) * desc.size
        # A texel of zeros follows the data, as the border value of textures.
        self.memory = allocate(self._bytes + desc.size)
        self.memory.data[:] = 0
        self.memory.mark_written()
        self.ptr = address_of(self.memory)

    @property
    def extents(self) -> tuple[int, ...]:
        """Texels in x, and with more dimensions in y and z."""
        return (self.width, self.height, self.depth)[: self.ndim]

    def copy_from(self, in_arr: Any, stream: Any = None) -> None:
        """Copy the texels from an array of the device or the host."""
        self.memory.data[: self._bytes] = _find_bytes(in_arr, self._bytes).copy()

    def copy_to(self, out_arr: Any, stream: Any = None) -> None:
        """Copy the texels to an array of the device or the host."""
        _find_bytes(out_arr, self._bytes)[:] = self.memory.data[: self._bytes]


def _find_bytes(array: Any, size: int) -> Array:
    if not isinstance(array, np.ndarray) or not array.flags.c_contiguous or array.nbytes != size:
        raise ValueError(f"The array must be contiguous, with {size:,} bytes")
    if isinstance(array, DeviceArray):
        array.mark_written()
        return array.view_host().reshape(-1).view(np.uint8)
    return array.reshape(-1).view(np.uint8)


@named("cupy.cuda.texture.ResourceDescriptor")
class Resource:
    """The memory of a texture: `cuArr`, or `arr` with a format and extents."""

    def __init__(
        self,
        restype: int,
        cuArr: TexelArray | None = None,  # noqa: N803
        arr: DeviceArray | None = None,
        chDesc: ChannelFormat | None = None,  # noqa: N803
        sizeInBytes: int = 0,  # noqa: N803
        width: int = 0,
        height: int = 0,
        pitchInBytes: int = 0,  # noqa: N803
    ) -> None:
        self.restype, self.cuArr, self.arr, self.chDesc = restype, cuArr, arr, chDesc
        self.size, self.extents, self.pitch = sizeInBytes, (width, height), pitchInBytes


@named("cupy.cuda.texture.TextureDescriptor")
class TextureSettings:
    """The filtering and addressing of a texture, with the names of cudaTextureDesc."""

    def __init__(
        self,
        addressModes: Sequence[int] | None = None,  # noqa: N803
        filterMode: int = 0,  # noqa: N803
        readMode: int = 0,  # noqa: N803
        sRGB: int = 0,  # noqa: N803
        borderColors: Any = None,  # noqa: N803
        normalizedCoords: int = 0,  # noqa: N803
        **others: Any,
    ) -> None:
        self.addresses = tuple(addressModes or (0,))
        self.linear, self.read_mode, self.normalized = bool(filterMode), readMode, bool(normalizedCoords)


@named("cupy.cuda.texture.TextureObject")
class TextureObject:
    """A texture that kernels take as `cudaTextureObject_t`.

    Raises
    ------
    CUDARuntimeError
        If the simulator does not have such textures.
    """

    def __init__(self, ResDesc: Resource, TexDesc: TextureSettings) -> None:  # noqa: N803
        self.ResDesc, self.TexDesc = ResDesc, TexDesc
        kind = (ResDesc.cuArr.desc if ResDesc.cuArr is not None else ResDesc.chDesc).kind  # type: ignore[union-attr]
        if TexDesc.read_mode and kind != _FLOAT:
            raise CUDARuntimeError("cudaErrorNotSupported: operation not supported - conversions of texels to float")
        data, extents, size = _find_texels(ResDesc)
        addressing = _ADDRESSING[TexDesc.addresses[0]]
        if ResDesc.restype == _LINEAR or (addressing in ("wrap", "mirror") and not TexDesc.normalized):
            addressing = "clamp"
        sampling = Sampling(TexDesc.linear, TexDesc.normalized, addressing)
        self.texture: FlatMemory = Texture(data, extents, size, sampling).to_memory("a texture")
        self.ptr = address_of(self.texture)


def _find_texels(resource: Resource) -> tuple[Array, tuple[int, ...], int]:
    """Return a resource's bytes, extents and bytes per texel."""
    if resource.restype == _ARRAY and resource.cuArr is not None:
        return resource.cuArr.memory.data, resource.cuArr.extents, resource.cuArr.desc.size
    if resource.arr is None or resource.chDesc is None or resource.restype not in (_LINEAR, _PITCH):
        raise CUDARuntimeError("cudaErrorInvalidValue: invalid argument - a texture needs an array and its format")
    size = resource.chDesc.size
    data = _find_bytes(resource.arr, resource.arr.nbytes)
    if resource.restype == _LINEAR:
        return data, (resource.size // size,), size
    if resource.pitch != resource.extents[0] * size:
        raise CUDARuntimeError("cudaErrorNotSupported: operation not supported - rows with gaps")
    return data, resource.extents, size


@named("cupy.cuda.texture.SurfaceObject")
class SurfaceObject:
    """A surface that kernels take as `cudaSurfaceObject_t`; raise CUDARuntimeError if the array does not allow it."""

    def __init__(self, ResDesc: Resource) -> None:  # noqa: N803
        array = ResDesc.cuArr
        if array is None or not array.flags & _SURFACE:
            raise CUDARuntimeError(
                "cudaErrorInvalidValue: invalid argument - a surface needs an array with cudaArraySurfaceLoadStore"
            )
        self.ResDesc = ResDesc
        self.texture: FlatMemory = Surface(array.memory.data, array.extents, array.desc.size).to_memory("a surface")
        self.ptr = address_of(self.texture)


NAMES: dict[str, Any] = {
    "ChannelFormatDescriptor": ChannelFormat,
    "CUDAarray": TexelArray,
    "ResourceDescriptor": Resource,
    "TextureDescriptor": TextureSettings,
    "TextureObject": TextureObject,
    "SurfaceObject": SurfaceObject,
}
"""The module's names."""
