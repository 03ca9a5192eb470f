"""Textures and surfaces of one to three dimensions: addressing, border modes, interpolation weights; tensor maps.

As specified by the CUDA C++ Programming Guide, chapters "Texture Fetching" and "Surface Functions".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from gpu.base.errors import LaunchError
from gpu.base.lane_mask import LaneMask
from gpu.simulator import ir
from gpu.simulator.executor.state.memory import FlatMemory
from gpu.simulator.executor.state.pointers import PointerValue
from gpu.simulator.executor.state.running_batch import RunningBatch

Array = npt.NDArray[Any]
Addressing = Literal["clamp", "border", "wrap", "mirror"]

TENSOR_MAP_BYTES = 128
_CLAMPS, _TRAPS = 1, 2
_STEPS = 256
"""Interpolation weights are multiples of 1/256, including 1."""


@dataclass(frozen=True)
class Sampling:
    """The filtering and addressing of a texture, as in cudaTextureDesc.

    Parameters
    ----------
    linear : bool
        Whether a fetch interpolates between the neighboring texels instead of returning the nearest.
    normalized : bool
        Whether coordinates run from 0 to 1.
    addressing : {"clamp", "border", "wrap", "mirror"}
        The values outside the texture: the last texel, zero, the texture repeated, or the texture mirrored.
    """

    linear: bool = False
    normalized: bool = False
    addressing: Addressing = "clamp"


@dataclass(frozen=True)
class Texture:
    """A texture.

    Parameters
    ----------
    data : array of uint8
        The texels' bytes, row by row. With addressing "border", one more texel of zeros follows at the end.
    extents : tuple of int
        Texels in x, and with more dimensions in y and z.
    size : int
        Bytes per texel.
    sampling : Sampling
        Filtering and addressing.
    layered : bool
        Whether the last extent is the number of layers, which are selected by index.
    """

    data: Array
    extents: tuple[int, ...]
    size: int
    sampling: Sampling = Sampling()
    layered: bool = False

    def to_memory(self, name: str) -> FlatMemory:
        """Return the texture as device memory."""
        return _TextureMemory(name, self)


class _TextureMemory(FlatMemory):
    is_texture = True

    def __init__(self, name: str, texture: Texture) -> None:
        super().__init__(name, "global", texture.data)
        self.texture = texture


@dataclass(frozen=True)
class Surface:
    """A surface: an array of one to three dimensions that is read and written by coordinates.

    Parameters
    ----------
    data : array of uint8
        The elements' bytes, row by row; bytes after the last element are not accessible.
    extents : tuple of int
        Elements in x, and with more dimensions in y and z.
    size : int
        Bytes per element.
    """

    data: Array
    extents: tuple[int, ...]
    size: int

    def to_memory(self, name: str) -> FlatMemory:
        """Return the surface as device memory."""
        return _SurfaceMemory(name, self)


class _SurfaceMemory(FlatMemory):
    def __init__(self, name: str, surface: Surface) -> None:
        super().__init__(name, "global", surface.data)
        self.surface = surface


@dataclass(frozen=True, eq=False)
class SimulatedTensorMap:
    """A tensor map: a row-major matrix in device memory, and the box that a bulk tensor copy copies from it.

    Parameters
    ----------
    data : array of uint8
        The matrix's bytes, row by row.
    rows, columns : int
        Shape of the matrix.
    pitch : int
        Bytes from one row to the next.
    element_bytes : int
        Bytes per element.
    box_rows : int
        Rows of the box; its rows have 128 bytes.
    """

    data: Array
    rows: int
    columns: int
    pitch: int
    element_bytes: int
    box_rows: int

    @cached_property
    def memory(self) -> FlatMemory:
        """The matrix as device memory, valid as long as this object."""
        return FlatMemory("", "global", self.data, element_bytes=self.element_bytes)

    def encode(self, address: int) -> np.void:
        """Return the 128 bytes of the kernel's argument for a matrix at an address, as the header ptx.h reads them."""
        row_bytes = self.columns * self.element_bytes
        words = np.zeros(TENSOR_MAP_BYTES // 8, np.uint64)
        words[:6] = address, self.rows, row_bytes, self.pitch, self.element_bytes, self.box_rows
        return np.void(words.tobytes())

    def encode_for_lockstep(self, name: str) -> np.void:
        """Return the argument with the matrix's address in the lockstep executor; `name` is the parameter's."""
        self.memory.name = name
        return self.encode(int(PointerValue(self.memory).number()))


def find_texel(
    expression: ir.Texel, batch: RunningBatch, pointer: PointerValue, places: list[Any], mask: LaneMask
) -> npt.NDArray[np.int64]:
    """Return the index of the texel that each lane's fetch reads: the nearest, or one of those to interpolate.

    Parameters
    ----------
    expression : ir.Texel
        The fetch; it selects the texel among those to interpolate.
    batch : RunningBatch
        The batch of the lanes.
    pointer : PointerValue
        The texture or surface object of each lane.
    places : list
        The coordinates along x and, if they exist, y and z or the layer; each one for all lanes or one per lane.
    mask : LaneMask
        The lanes that fetch.

    Returns
    -------
    int64 array
        The index for each lane of the batch. Beyond a texture's border it is that of the border value. For a surface it
        counts elements of the access's size, and is -1 outside the surface.

    Raises
    ------
    LaunchError
        The object is invalid, or does not match the fetch.
    """
    numbers = np.zeros(mask.bits.size, np.int64)
    for address, part in pointer.split_by_memory(mask):
        if expression.boundary is not None:
            numbers[part.lanes] = _find_surface_element(expression, batch, address, places, part)[part.lanes]
            continue
        texture = _get_texture(expression, batch, address, part)
        sampling = texture.sampling
        axes: list[Any] = []
        for coordinate, extent, second in zip(
            places, texture.extents, expression.neighbor_offsets or [0] * len(places), strict=True
        ):
            if texture.layered and len(axes) == len(places) - 1:
                axes.append(_apply_addressing(np.nan_to_num(np.asarray(coordinate, np.float64)), extent, "clamp"))
                continue
            first = np.floor(_to_texel_units(coordinate, extent, sampling, filtered=bool(expression.neighbor_offsets)))
            axes.append(_apply_addressing(first + second, extent, sampling.addressing))
        number, beyond = np.zeros(mask.bits.size, np.int64), np.zeros(mask.bits.size, bool)
        for at, extent in zip(reversed(axes), reversed(texture.extents), strict=True):
            beyond |= at < 0
            number = number * extent + at
        number = np.where(beyond, int(np.prod(texture.extents)), number)
        numbers[part.lanes] = number[part.lanes]
    return numbers


def _find_surface_element(
    expression: ir.Texel, batch: RunningBatch, address: PointerValue, places: list[Any], mask: LaneMask
) -> npt.NDArray[np.int64]:
    memory, size = address.memory, expression.size
    if not isinstance(memory, _SurfaceMemory):
        name = memory.name if memory is not None else "a null pointer"
        advice = "Create it with cudaCreateSurfaceObject from an array."
        raise _fetch_error(expression, batch, mask, f"{name} is not a surface", advice, "a surface")
    surface, lanes = memory.surface, mask.bits.size
    if len(surface.extents) != len(places):
        cause = f"{memory.name} is {len(surface.extents)}-dimensional, not {len(places)}-dimensional"
        advice = "The extents of the array determine the dimensions."
        raise _fetch_error(expression, batch, mask, cause, advice, "a surface")
    # In bytes, like the x coordinate.
    extents = (surface.extents[0] * surface.size, *surface.extents[1:])
    coordinates = [np.broadcast_to(np.asarray(coordinate, np.int64), lanes) for coordinate in places]
    if extents[0] % size or (misaligned := mask.bits & (coordinates[0] % size != 0)).any():
        lane = int(np.flatnonzero(misaligned)[0]) if extents[0] % size == 0 else int(mask.lanes[0])
        raise LaunchError(
            f"{expression.position}: {batch.describe(lane)} accesses an element of {size} bytes at "
            f"x = {coordinates[0][lane]} of {memory.name}, whose rows have {extents[0]} bytes: misaligned.",
            kind="misaligned",
            position=expression.position,
            advice="A surface's x counts bytes: x * sizeof(element).",
        )
    last = [extents[0] - size, *(extent - 1 for extent in extents[1:])]
    beyond = np.zeros(lanes, bool)
    for coordinate, limit in zip(coordinates, last, strict=True):
        beyond |= (coordinate < 0) | (coordinate > limit)
    beyond &= mask.bits
    if expression.boundary == _TRAPS and beyond.any():
        lane = int(np.flatnonzero(beyond)[0])
        where = ", ".join(f"{axis} = {coordinate[lane]}" for axis, coordinate in zip("xyz", coordinates, strict=False))
        raise LaunchError(
            f"{expression.position}: {batch.describe(lane)} accesses {where} of {memory.name}, which has "
            f"{' x '.join(map(str, extents))} (x in bytes): out of bounds.",
            kind="out-of-bounds",
            position=expression.position,
            advice="A surface's x counts bytes; cudaBoundaryModeClamp and cudaBoundaryModeZero allow such accesses.",
        )
    number = np.zeros(lanes, np.int64)
    for coordinate, limit, extent in zip(reversed(coordinates), reversed(last), reversed(extents), strict=True):
        number = number * extent + np.clip(coordinate, 0, limit)
    return number // size if expression.boundary == _CLAMPS else np.where(beyond, -1, number // size)


def compute_texel_weight(expression: ir.TexelWeight, pointer: PointerValue, place: Any, mask: LaneMask) -> Array:
    """Return the weight of the second of two texels along an axis; without a place, whether the fetch interpolates.

    Parameters
    ----------
    expression : ir.TexelWeight
        The fetch and its axis.
    pointer : PointerValue
        The texture.
    place : scalar, array or None
        The coordinate along the axis, one for all lanes or one per lane.
    mask : LaneMask
        The lanes that fetch.
    """
    weights = np.zeros(mask.bits.size, expression.type.dtype)
    for address, part in pointer.split_by_memory(mask):
        texture = address.memory.texture if isinstance(address.memory, _TextureMemory) else None
        if texture is None or not texture.sampling.linear:
            continue  # the fetch raises the error
        if expression.coordinate is None:
            weights[part.lanes] = 1
        elif expression.axis < len(texture.extents):
            at = _to_texel_units(place, texture.extents[expression.axis], texture.sampling, filtered=True)
            weight = np.floor((at - np.floor(at)) * _STEPS + 0.5) / _STEPS
            weights[part.lanes] = np.broadcast_to(weight, weights.shape)[part.lanes]
    return weights


def _to_texel_units(place: Any, extent: int, sampling: Sampling, *, filtered: bool) -> Any:
    """Convert a coordinate to units of texels; NaN becomes 0, as a GPU converts it."""
    at = np.nan_to_num(np.asarray(place, np.float64)) * (extent if sampling.normalized else 1)
    return at - 0.5 if filtered else at


def _apply_addressing(number: Any, extent: int, addressing: Addressing) -> Any:
    """Map texel indices that may be outside the texture to texels; -1 is the border."""
    match addressing:
        case "border":
            number = np.where((number >= 0) & (number < extent), number, -1)
        case "wrap":
            number = np.mod(number, extent)
        case "mirror":
            folded = np.mod(number, 2 * extent)
            number = np.minimum(folded, 2 * extent - 1 - folded)
        case "clamp":
            number = np.clip(number, 0, extent - 1)
    return number.astype(np.int64)


def _get_texture(expression: ir.Texel, batch: RunningBatch, address: PointerValue, mask: LaneMask) -> Texture:
    memory = address.memory
    name = memory.name if memory is not None else "a null pointer"
    if not isinstance(memory, _TextureMemory):
        cause = f"{name} is not a texture"
        raise _fetch_error(expression, batch, mask, cause, "Pass texture:FILE or --texture NAME=FILE.")
    texture = memory.texture
    if texture.size != expression.size:
        cause = f"a texel of {name} has {texture.size} bytes, not {expression.size}"
        raise _fetch_error(
            expression,
            batch,
            mask,
            cause,
            "Pass a .npy file with elements of the fetched type; a gray image has 1 byte per texel, a color image 4.",
        )
    if len(texture.extents) != len(expression.coordinates):
        cause = f"{name} is {len(texture.extents)}-dimensional, not {len(expression.coordinates)}-dimensional"
        raise _fetch_error(
            expression, batch, mask, cause, "An image has 2 dimensions; an array has those of its shape."
        )
    if texture.sampling.linear and not expression.neighbor_offsets:
        cause = f"{name} has linear filtering, which requires float, float2 or float4"
        raise _fetch_error(expression, batch, mask, cause, "Fetch floats, or remove linear.")
    return texture


def _fetch_error(
    expression: ir.Texel, batch: RunningBatch, mask: LaneMask, cause: str, advice: str, target: str = "a texture"
) -> LaunchError:
    position = expression.position
    return LaunchError(
        f"{position}: {batch.describe(int(mask.lanes[0]))} reads {target} by coordinates, but {cause}.",
        position=position,
        advice=advice,
    )
