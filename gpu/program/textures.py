"""Textures of a program: CUDA arrays, and texture objects over them, over linear memory and over rows of a pitch.

And surface objects, over arrays only.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.driver.memory import address_of, bytes_at
from gpu.errors import KernelError
from gpu.program import errors
from gpu.program.errors import RefusedRoutineError
from gpu.simulator.executor.memory import FlatMemory
from gpu.simulator.executor.textures import Addressing, Sampling, Surface, Texture

Array = npt.NDArray[Any]

_MODES: tuple[Addressing, ...] = ("wrap", "clamp", "mirror", "border")
_ONLY_NORMALIZED = ("wrap", "mirror")


@dataclass(frozen=True)
class CudaArray:
    """An array that copies, textures and surfaces reach. Behind its elements stands one of zeros, which borders are.

    Parameters
    ----------
    data : array of uint8
    width, height : int
        In elements; the height of a line is 0.
    element : int
        Bytes of one.
    takes_surfaces : bool
        Whether it was made with cudaArraySurfaceLoadStore.
    """

    data: Array
    width: int
    height: int
    element: int
    takes_surfaces: bool

    @property
    def extents(self) -> tuple[int, ...]:
        """Elements in x, and, of rows, in y."""
        return (self.width, self.height) if self.height else (self.width,)

    def rows(self) -> Array:
        """Return its bytes, row by row: a view."""
        return self.data[: -self.element].reshape(max(self.height, 1), self.width * self.element)


@dataclass
class ProgramTextures:
    """All of a program's.

    Parameters
    ----------
    side : callable
        Returns the bytes of one side of a copy, as `Runtime` has it: of an address, a size, a kind of copy, the kinds
        in which it is the device's, and whether it is written.
    """

    side: Callable[[int, int, int, tuple[int, ...], bool], Array]
    _arrays: dict[int, CudaArray] = field(default_factory=dict)
    _textures: dict[int, FlatMemory] = field(default_factory=dict)
    _surfaces: dict[int, FlatMemory] = field(default_factory=dict)
    _read_again: dict[int, Callable[[], None]] = field(default_factory=dict)

    def refresh(self) -> None:
        """Have textures that are copies hold what their memory does now, which is when a kernel is launched."""
        for read in self._read_again.values():
            read()

    def do_array(self, target: int, width: int, height: int, element: int, takes_surfaces: int) -> None:
        if width <= 0 or height < 0 or element <= 0:
            raise RefusedRoutineError(errors.INVALID_VALUE)
        data = np.zeros(width * max(height, 1) * element + element, np.uint8)
        self._arrays[data.ctypes.data] = CudaArray(data, width, height, element, bool(takes_surfaces))
        ctypes.c_longlong.from_address(target).value = data.ctypes.data

    def do_array_free(self, array: int) -> None:
        if array:
            self._array(array)
            del self._arrays[array]

    def do_to_array(
        self, array: int, x: int, y: int, source: int, pitch: int, width: int, height: int, kind: int
    ) -> None:
        self._copy(array, x, y, source, pitch, width, height, kind, is_read=False)

    def do_from_array(
        self, target: int, pitch: int, array: int, x: int, y: int, width: int, height: int, kind: int
    ) -> None:
        self._copy(array, x, y, target, pitch, width, height, kind, is_read=True)

    def _copy(
        self, array: int, x: int, y: int, place: int, pitch: int, width: int, height: int, kind: int, *, is_read: bool
    ) -> None:
        rows = self._array(array).rows()
        if height == 1 and x + width > rows.shape[1] and width % rows.shape[1] == 0:
            height, width = width // rows.shape[1], rows.shape[1]  # cudaMemcpyToArray of several rows at once
            pitch = width
        if min(x, y, width, height) < 0 or x + width > rows.shape[1] or y + height > rows.shape[0] or width > pitch:
            raise RefusedRoutineError(errors.INVALID_VALUE)
        for row in range(height):
            held = rows[y + row, x : x + width]
            other = self.side(place + row * pitch, width, kind, (1, 3) if is_read else (2, 3), is_read)
            if is_read:
                other[:] = held
            else:
                held[:] = other

    def do_texture_of_array(self, target: int, array: int, sampling: int) -> None:
        held = self._array(array)
        self._enter(target, Texture(held.data, held.extents, held.element, _sampling(sampling)))

    def do_texture_of_memory(
        self, target: int, pointer: int, size: int, pitch: int, width: int, height: int, element: int, sampling: int
    ) -> None:
        if not element:
            raise RefusedRoutineError(errors.INVALID_VALUE)
        data, how = bytes_at(pointer, size, "cudaCreateTextureObject"), _sampling(sampling)
        if not height:
            self._enter(target, Texture(data[: size // element * element], (size // element,), element, how))
            return
        if width * element > pitch:
            raise RefusedRoutineError(errors.INVALID_VALUE)
        # A texture's rows stand close: those of a pitch are copied, again for each launch.
        rows = data[: pitch * height].reshape(height, pitch)[:, : width * element]
        close = np.zeros(rows.size + element, np.uint8)

        def read() -> None:
            close[: rows.size] = rows.reshape(-1)

        read()
        self._enter(target, Texture(close, (width, height), element, how), read)

    def do_texture_destroy(self, texture: int) -> None:
        if self._textures.pop(texture, None) is None:
            raise RefusedRoutineError(errors.INVALID_VALUE)
        self._read_again.pop(texture, None)

    def do_surface_of_array(self, target: int, array: int) -> None:
        held = self._array(array)
        if not held.takes_surfaces:
            raise RefusedRoutineError(errors.INVALID_VALUE)
        memory = Surface(held.data, held.extents, held.element).memory("a surface")
        self._surfaces[address_of(memory)] = memory
        ctypes.c_longlong.from_address(target).value = address_of(memory)

    def do_surface_destroy(self, surface: int) -> None:
        if self._surfaces.pop(surface, None) is None:
            raise RefusedRoutineError(errors.INVALID_VALUE)

    def do_texture_reference(self) -> None:
        raise KernelError(
            "Texture references are gone since CUDA 12.", advice="Use a texture object: cudaCreateTextureObject."
        )

    def _array(self, array: int) -> CudaArray:
        if array not in self._arrays:
            raise RefusedRoutineError(errors.INVALID_HANDLE)
        return self._arrays[array]

    def _enter(self, target: int, texture: Texture, read: Callable[[], None] | None = None) -> None:
        if texture.data.size < math.prod(texture.extents) * texture.size:
            raise RefusedRoutineError(errors.INVALID_VALUE)
        memory = texture.memory("a texture")
        address = address_of(memory)
        self._textures[address] = memory
        if read is not None:
            self._read_again[address] = read
        ctypes.c_longlong.from_address(target).value = address


def _sampling(address: int) -> Sampling:
    """Return how a texture is read, as four numbers say it: filter, normalized coordinates, addressing, read mode."""
    linear, normalized, mode, converted = (ctypes.c_int * 4).from_address(address)
    if converted:
        raise KernelError(
            "A texture that makes fractions of whole numbers (cudaReadModeNormalizedFloat) is none that the simulator "
            "reads.",
            advice="Read the elements, and divide in the kernel.",
        )
    if not 0 <= mode < len(_MODES):
        raise RefusedRoutineError(errors.INVALID_VALUE)
    addressing = _MODES[mode]
    if addressing in _ONLY_NORMALIZED and not normalized:
        addressing = "clamp"
    return Sampling(bool(linear), bool(normalized), addressing)
