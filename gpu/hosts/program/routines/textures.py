"""CUDA arrays, texture objects over arrays, linear and pitched memory, and surface objects over arrays."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpu.base.errors import KernelError
from gpu.hosts.driver.memory import address_of, bytes_at
from gpu.hosts.program import errors
from gpu.hosts.program.errors import RefusedRoutineError
from gpu.hosts.program.mapped_memory import access_host, write_address
from gpu.simulator.executor.state.memory import FlatMemory
from gpu.simulator.executor.textures import Addressing, Sampling, Surface, Texture

Array = npt.NDArray[Any]

_MODES: tuple[Addressing, ...] = ("wrap", "clamp", "mirror", "border")
_ONLY_NORMALIZED = ("wrap", "mirror")
_LAYERED, _SURFACES, _CUBEMAP = 1, 2, 4
"""Flags of a CUDA array."""
_SIGNED, _UNSIGNED = 0, 1
"""Numbers of cudaChannelFormatKind."""
_FORMAT = 5
"""Number of ints in a cudaChannelFormatDesc."""


@dataclass(frozen=True)
class CudaArray:
    """A CUDA array for copies, textures and surfaces. An element of zeros follows its data, as the border value.

    Parameters
    ----------
    data : array of uint8
    width, height, depth : int
        In elements; unused dimensions are 0. For a layered array, depth is the number of layers; for a cubemap, six.
    element_bytes : int
        Bytes per element.
    channels : tuple of int
        Content of the cudaChannelFormatDesc.
    flags : int
        Flags of its allocation.
    """

    data: Array
    width: int
    height: int
    depth: int
    element_bytes: int
    channels: tuple[int, ...]
    flags: int

    @property
    def extents(self) -> tuple[int, ...]:
        """Elements in x, rows in y, and slices or layers."""
        return tuple(each for each in (self.width, self.height, self.depth) if each)

    @property
    def supports_surfaces(self) -> bool:
        """Whether it was allocated with cudaArraySurfaceLoadStore."""
        return bool(self.flags & _SURFACES)

    @property
    def layered(self) -> bool:
        """Whether its slices are layers or faces."""
        return bool(self.flags & (_LAYERED | _CUBEMAP))

    def slice(self, z: int) -> Array:
        """Return a view of the bytes of a slice, by rows."""
        if not 0 <= z < max(self.depth, 1):
            raise RefusedRoutineError(errors.INVALID_VALUE)
        rows: Array = self.data[: -self.element_bytes].reshape(max(self.depth, 1), max(self.height, 1), -1)[z]
        return rows


class _PitchedRows(NamedTuple):
    """Rows in linear or pitched memory, on the host or on the device, that a copy reads or writes.

    Parameters
    ----------
    address : int
        The address of the first row.
    pitch : int
        The distance between the starts of consecutive rows in bytes.
    width : int
        Bytes per row; with a height of 1, also whole rows of an array at once.
    height : int
        The number of rows.
    kind : int
        The direction as a `cudaMemcpyKind`.
    """

    address: int
    pitch: int
    width: int
    height: int
    kind: int


@dataclass
class ProgramTextures:
    """Arrays, textures and surfaces of a program.

    Parameters
    ----------
    view_side : callable
        Function that returns a view of one side of a copy, as in `Runtime`: of address, size, kind of copy, the kinds
        in which the side is on the device, and whether it is written.
    """

    view_side: Callable[[int, int, int, tuple[int, ...], bool], Array]
    _arrays: dict[int, CudaArray] = field(default_factory=dict)
    _textures: dict[int, FlatMemory] = field(default_factory=dict)
    _surfaces: dict[int, FlatMemory] = field(default_factory=dict)
    _refreshers: dict[int, Callable[[], None]] = field(default_factory=dict)

    def refresh(self) -> None:
        """Update textures over copies of pitched memory; called before each launch."""
        for read in self._refreshers.values():
            read()

    def do_array(
        self, target: int, width: int, height: int, depth: int, channels: int, element: int, flags: int
    ) -> None:
        """Execute `cudaMalloc3DArray`.

        Parameters
        ----------
        target : int
            The address at which the array's handle is written.
        width, height, depth : int
            The extents in elements; unused dimensions are 0. For a layered array, `depth` is the number of layers.
        channels : int
            The address of the elements' `cudaChannelFormatDesc`.
        element : int
            Bytes per element.
        flags : int
            Flags of the allocation, of which layers, surfaces and cubemaps are supported.

        Raises
        ------
        RefusedRoutineError
            An extent or the element is invalid, or a flag is not supported.
        """
        if width <= 0 or min(height, depth) < 0:
            raise RefusedRoutineError(errors.INVALID_VALUE)
        words = tuple(access_host(ctypes.c_int * _FORMAT, channels))
        if not _is_channel_format(words):
            raise RefusedRoutineError(errors.INVALID_CHANNEL_DESCRIPTOR)
        layered, cubemap = bool(flags & _LAYERED), bool(flags & _CUBEMAP)
        if depth and not height and not layered:
            raise RefusedRoutineError(errors.INVALID_VALUE)
        if cubemap and (width != height or depth % 6 or (depth != 6 and not layered)):
            raise RefusedRoutineError(errors.INVALID_VALUE)
        if flags & ~(_LAYERED | _SURFACES | _CUBEMAP):
            raise RefusedRoutineError(errors.NOT_SUPPORTED)
        data = np.zeros(width * max(height, 1) * max(depth, 1) * element + element, np.uint8)
        write_address(target, data.ctypes.data)
        self._arrays[data.ctypes.data] = CudaArray(data, width, height, depth, element, words, flags)

    def do_array_info(self, channels: int, extent: int, flags: int, array: int) -> None:
        """Execute `cudaArrayGetInfo`.

        Parameters
        ----------
        channels : int
            The address for the `cudaChannelFormatDesc`; 0 if not requested.
        extent : int
            The address for the extents in elements, three of `size_t`; 0 if not requested.
        flags : int
            The address for the flags of the allocation; 0 if not requested.
        array : int
            The array's handle.

        Raises
        ------
        RefusedRoutineError
            There is no such array.
        """
        cuda_array = self._find_array(array)
        if channels:
            (ctypes.c_int * _FORMAT).from_address(channels)[:] = [*cuda_array.channels]
        if extent:
            (ctypes.c_size_t * 3).from_address(extent)[:] = [cuda_array.width, cuda_array.height, cuda_array.depth]
        if flags:
            ctypes.c_uint.from_address(flags).value = cuda_array.flags

    def do_array_free(self, array: int) -> None:
        if array:
            self._find_array(array)
            del self._arrays[array]

    def do_to_array(self, array: int, x: int, y: int, z: int, *rows: int) -> None:
        """Copy rows to an array, as `cudaMemcpy2DToArray` does.

        Parameters
        ----------
        array : int
            The array's handle.
        x, y, z : int
            The position of the first byte: the offset in bytes in a row, the row, and the slice or layer.
        *rows : int
            The fields of `_PitchedRows`, which are read.

        Raises
        ------
        RefusedRoutineError
            There is no such array, the rows exceed it, the pitch is too small, or the direction does not match.
        """
        self._copy(array, (x, y, z), _PitchedRows(*rows), is_read=False)

    def do_from_array(self, target: int, pitch: int, array: int, x: int, y: int, z: int, *rest: int) -> None:
        """Copy rows from an array, as `cudaMemcpy2DFromArray` does.

        Parameters
        ----------
        target, pitch : int
            The address and the pitch of `_PitchedRows`, which are written.
        array, x, y, z : int
            As of `do_to_array`.
        *rest : int
            The other fields of `_PitchedRows`.

        Raises
        ------
        RefusedRoutineError
            As of `do_to_array`.
        """
        self._copy(array, (x, y, z), _PitchedRows(target, pitch, *rest), is_read=True)

    def do_box_to_array(self, array: int, x: int, y: int, z: int, source: int, pitch: int, *rest: int) -> None:
        """Copy a slice of a box to an array, for `cudaMemcpy3D`.

        Parameters
        ----------
        array : int
            The array's handle.
        x, y, z : int
            The position of the first element: element in a row, row, and slice or layer.
        source, pitch : int
            The address and the pitch of `_PitchedRows`.
        *rest : int
            The width in elements, the height in rows and the direction as a `cudaMemcpyKind`.

        Raises
        ------
        RefusedRoutineError
            As of `do_to_array`.
        """
        width, height, kind = rest
        element = self._find_array(array).element_bytes
        rows = _PitchedRows(source, pitch, width * element, max(height, 1), kind)
        self._copy(array, (x * element, y, z), rows, is_read=False)

    def do_box_from_array(self, target: int, pitch: int, array: int, x: int, y: int, z: int, *rest: int) -> None:
        """Copy a slice of a box from an array, for `cudaMemcpy3D`.

        Parameters
        ----------
        target, pitch : int
            As of `do_from_array`.
        array, x, y, z : int
            As of `do_box_to_array`.
        *rest : int
            As of `do_box_to_array`.

        Raises
        ------
        RefusedRoutineError
            As of `do_to_array`.
        """
        width, height, kind = rest
        element = self._find_array(array).element_bytes
        rows = _PitchedRows(target, pitch, width * element, max(height, 1), kind)
        self._copy(array, (x * element, y, z), rows, is_read=True)

    def do_array_to_array(self, target: int, x: int, y: int, z: int, source: int, *box: int) -> None:
        """Copy a slice of a box between arrays, for `cudaMemcpy3D`.

        Parameters
        ----------
        target : int
            The handle of the array that is written.
        x, y, z : int
            The position of the first element there: element in a row, row, and slice or layer.
        source : int
            The handle of the array that is read, with elements of the same size.
        *box : int
            The position of the first element there, the width in elements and the height in rows.

        Raises
        ------
        RefusedRoutineError
            An array does not exist, the box exceeds one, or their elements have different sizes.
        """
        target_array, source_array = self._find_array(target), self._find_array(source)
        from_x, from_y, from_z, columns, rows = box
        width, height = columns * source_array.element_bytes, max(rows, 1)
        if target_array.element_bytes != source_array.element_bytes:
            raise RefusedRoutineError(errors.INVALID_VALUE)
        read = _box_view(source_array.slice(from_z), from_x * source_array.element_bytes, from_y, width, height)
        _box_view(target_array.slice(z), x * target_array.element_bytes, y, width, height)[:] = read.copy()

    def _copy(self, array: int, position: tuple[int, int, int], linear_rows: _PitchedRows, *, is_read: bool) -> None:
        """Copy between linear memory and an array, which `is_read` or written."""
        (x, y, z), (address, pitch, width, height, kind) = position, linear_rows
        rows = self._find_array(array).slice(z)
        if height == 1 and x + width > rows.shape[1] and width % rows.shape[1] == 0:
            height, width = width // rows.shape[1], rows.shape[1]  # cudaMemcpyToArray of several rows
            pitch = width
        if width > pitch:
            raise RefusedRoutineError(errors.INVALID_VALUE)
        for row, part in enumerate(_box_view(rows, x, y, width, height)):
            other = self.view_side(address + row * pitch, width, kind, (1, 3) if is_read else (2, 3), is_read)
            if is_read:
                other[:] = part
            else:
                part[:] = other

    def do_texture_of_array(self, target: int, array: int, sampling: int) -> None:
        source = self._find_array(array)
        parameters, fractions = _read_sampling(sampling)
        if source.flags & _CUBEMAP:  # places on a face, which the kernel computes, are normalized
            parameters = Sampling(parameters.linear, normalized=True)
        if not fractions:
            texture = Texture(source.data, source.extents, source.element_bytes, parameters, source.layered)
            self._register_texture(target, texture)
            return
        texels = source.data[: -source.element_bytes]
        self._register_copy(target, texels, source.channels, source.extents, (parameters, True, source.layered))

    def do_texture_of_memory(
        self, target: int, pointer: int, size: int, pitch: int, width: int, height: int, *formats: int
    ) -> None:
        """Create a texture object over linear or pitched memory.

        Parameters
        ----------
        target : int
            The address at which the handle of the texture object is written.
        pointer : int
            The address of the first element on the device.
        size : int
            Bytes of the memory; `pitch * height` for pitched memory.
        pitch : int
            The distance between the starts of consecutive rows in bytes; 0 for linear memory.
        width, height : int
            The extents in elements; 0 for linear memory.
        *formats : int
            The address of the elements' `cudaChannelFormatDesc`, and that of four ints: filter, normalized coordinates,
            addressing and read mode.

        Raises
        ------
        RefusedRoutineError
            The element is empty, a row exceeds the pitch, or the addressing or the read mode is invalid.
        DriverLogicError
            The memory is not all in one allocation.
        """
        channels, sampling = formats
        words = tuple(access_host(ctypes.c_int * _FORMAT, channels))
        element = sum(words[:4]) // 8
        if not element:
            raise RefusedRoutineError(errors.INVALID_CHANNEL_DESCRIPTOR)
        data = bytes_at(pointer, size, "cudaCreateTextureObject")
        parameters, fractions = _read_sampling(sampling)
        if width * element > pitch:
            raise RefusedRoutineError(errors.INVALID_VALUE)
        texels = data[: size // element * element]
        extents: tuple[int, ...] = (size // element,)
        if height:
            texels, extents = data[: pitch * height].reshape(height, pitch)[:, : width * element], (width, height)
        if height or fractions:
            self._register_copy(target, texels, words, extents, (parameters, fractions, False))
        else:
            self._register_texture(target, Texture(texels, extents, element, parameters))

    def _register_copy(
        self, target: int, texels: Array, words: tuple[int, ...], extents: tuple[int, ...],
        how: tuple[Sampling, bool, bool],
    ) -> None:  # fmt: skip
        """Create a texture over a copy of the texels, in contiguous rows or as fractions; launches update it."""
        sampling, fractions, layered = how
        element = 4 * sum(bits > 0 for bits in words[:4]) if fractions else sum(words[:4]) // 8
        contiguous = np.zeros(math.prod(extents) * element + element, np.uint8)

        def refresh() -> None:
            rows = texels.reshape(-1)
            contiguous[:-element] = _convert_to_fractions(rows, words).view(np.uint8) if fractions else rows

        refresh()
        self._register_texture(target, Texture(contiguous, extents, element, sampling, layered), refresh)

    def do_texture_destroy(self, texture: int) -> None:
        if texture and self._textures.pop(texture, None) is None:
            raise RefusedRoutineError(errors.INVALID_VALUE)
        self._refreshers.pop(texture, None)

    def do_surface_of_array(self, target: int, array: int) -> None:
        source = self._arrays.get(array)
        if source is None or not source.supports_surfaces:
            raise RefusedRoutineError(errors.INVALID_VALUE)
        memory = Surface(source.data, source.extents, source.element_bytes).to_memory("a surface")
        self._surfaces[address_of(memory)] = memory
        write_address(target, address_of(memory))

    def do_surface_destroy(self, surface: int) -> None:
        if surface and self._surfaces.pop(surface, None) is None:
            raise RefusedRoutineError(errors.INVALID_VALUE)

    def do_texture_reference(self) -> None:
        raise KernelError(
            "Texture references were removed in CUDA 12.", advice="Use a texture object: cudaCreateTextureObject."
        )

    def _find_array(self, array: int) -> CudaArray:
        if array not in self._arrays:
            raise RefusedRoutineError(errors.INVALID_HANDLE)
        return self._arrays[array]

    def _register_texture(self, target: int, texture: Texture, refresh: Callable[[], None] | None = None) -> None:
        if texture.data.size < math.prod(texture.extents) * texture.size:
            raise RefusedRoutineError(errors.INVALID_VALUE)
        memory = texture.to_memory("a texture")
        address = address_of(memory)
        self._textures[address] = memory
        if refresh is not None:
            self._refreshers[address] = refresh
        write_address(target, address)


def _is_channel_format(words: tuple[int, ...]) -> bool:
    """Return whether a cudaChannelFormatDesc has one, two or four channels of equally many bits."""
    used = [bits for bits in words[:4] if bits]
    return len(used) in (1, 2, 4) and used[0] in (8, 16, 32) and len(set(used)) == 1


def _box_view(rows: Array, x: int, y: int, width: int, height: int) -> Array:
    """Return a view of a box of rows of bytes."""
    if min(x, y, width, height) < 0 or x + width > rows.shape[1] or y + height > rows.shape[0]:
        raise RefusedRoutineError(errors.INVALID_VALUE)
    return rows[y : y + height, x : x + width]


def _read_sampling(address: int) -> tuple[Sampling, bool]:
    """Read a texture's parameters, and whether it reads integers as fractions, from four ints.

    These are: filter, normalized coordinates, addressing, read mode.
    """
    linear, normalized, mode, fractions = (ctypes.c_int * 4).from_address(address)
    if not 0 <= mode < len(_MODES) or fractions not in (0, 1):
        raise RefusedRoutineError(errors.INVALID_VALUE)
    addressing = _MODES[mode]
    if addressing in _ONLY_NORMALIZED and not normalized:
        addressing = "clamp"
    return Sampling(bool(linear), bool(normalized), addressing), bool(fractions)


def _convert_to_fractions(texels: Array, words: tuple[int, ...]) -> npt.NDArray[np.float32]:
    """Return integers of 8 or 16 bits as fractions of the largest: from 0 to 1, signed ones from -1 to 1."""
    bits, kind = words[0], words[4]
    if bits not in (8, 16) or kind not in (_SIGNED, _UNSIGNED):
        raise RefusedRoutineError(errors.INVALID_VALUE)
    dtype = np.dtype(f"{'iu'[kind]}{bits // 8}")
    largest = np.float32(np.iinfo(dtype).max)
    fractions: npt.NDArray[np.float32] = texels.view(dtype).astype(np.float32) / largest
    return fractions.clip(-1, None)
