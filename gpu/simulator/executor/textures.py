"""Textures: memories of one to three dimensions, and which elements a fetch by coordinates reads, with which weights.

And surfaces, whose elements are read and written by coordinates. As the CUDA C++ Programming Guide has it, chapters
"Texture Fetching" and "Surface Functions".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from gpu.errors import LaunchError
from gpu.simulator import ir
from gpu.simulator.executor.masks import LaneMask
from gpu.simulator.executor.memory import FlatMemory
from gpu.simulator.executor.pointers import PointerValue
from gpu.simulator.executor.running import RunningBatch

Array = npt.NDArray[Any]
Addressing = Literal["clamp", "border", "wrap", "mirror"]

_CLAMPS, _TRAPS = 1, 2
_STEPS = 256
"""A filter's weights have 8 bits behind the point; 1 is one of them."""


@dataclass(frozen=True)
class Sampling:
    """How a texture is read by coordinates, as a cudaTextureDesc says it.

    Parameters
    ----------
    linear : bool
        Whether a fetch is between the elements around a place, and not the nearest one.
    normalized : bool
        Whether all of an axis is from 0 to 1.
    addressing : {"clamp", "border", "wrap", "mirror"}
        What lies beyond the edges: the last element, zero, the texture again, or the texture mirrored.
    """

    linear: bool = False
    normalized: bool = False
    addressing: Addressing = "clamp"


@dataclass(frozen=True)
class Texture:
    """What a texture holds.

    Parameters
    ----------
    data : array of uint8
        Its elements' bytes, row after row.
    extents : tuple of int
        Elements in x, and, of more dimensions, in y and z.
    size : int
        Bytes of an element.
    sampling : Sampling
        Where the addressing is "border" one more element stands at the end, of zeros.
    layered : bool
        Whether its last extent is that of layers, which are chosen by their numbers.
    """

    data: Array
    extents: tuple[int, ...]
    size: int
    sampling: Sampling = Sampling()
    layered: bool = False

    def memory(self, name: str) -> FlatMemory:
        """Return it as a memory of the device."""
        return _TextureMemory(name, self)


class _TextureMemory(FlatMemory):
    def __init__(self, name: str, texture: Texture) -> None:
        super().__init__(name, "global", texture.data)
        self.texture = texture


@dataclass(frozen=True)
class Surface:
    """What a surface holds.

    Parameters
    ----------
    data : array of uint8
        Its elements' bytes, row after row; what stands behind them is not reached.
    extents : tuple of int
        Elements in x, and, of more dimensions, in y and z.
    size : int
        Bytes of an element.
    """

    data: Array
    extents: tuple[int, ...]
    size: int

    def memory(self, name: str) -> FlatMemory:
        """Return it as a memory of the device."""
        return _SurfaceMemory(name, self)


class _SurfaceMemory(FlatMemory):
    def __init__(self, name: str, surface: Surface) -> None:
        super().__init__(name, "global", surface.data)
        self.surface = surface


def texel(
    expression: ir.Texel, batch: RunningBatch, pointer: PointerValue, places: list[Any], mask: LaneMask
) -> npt.NDArray[np.int64]:
    """Return the number of the element that each lane's fetch reads: the nearest one, or one of those it is between.

    Of a surface it is counted in elements as large as the access is; -1 is none, beyond the edges.
    """
    numbers = np.zeros(mask.bits.size, np.int64)
    for address, part in pointer.parts(mask):
        if expression.boundary is not None:
            numbers[part.lanes] = _surfel(expression, batch, address, places, part)[part.lanes]
            continue
        texture = _texture_of(expression, batch, address, part)
        sampling = texture.sampling
        axes: list[Any] = []
        for place, extent, second in zip(places, texture.extents, expression.beside or [0] * len(places), strict=True):
            if texture.layered and len(axes) == len(places) - 1:
                axes.append(_addressed(np.nan_to_num(np.asarray(place, np.float64)), extent, "clamp"))
                continue
            first = np.floor(_element_of(place, extent, sampling, filtered=bool(expression.beside)))
            axes.append(_addressed(first + second, extent, sampling.addressing))
        number, beyond = np.zeros(mask.bits.size, np.int64), np.zeros(mask.bits.size, bool)
        for at, extent in zip(reversed(axes), reversed(texture.extents), strict=True):
            beyond |= at < 0
            number = number * extent + at
        number = np.where(beyond, int(np.prod(texture.extents)), number)
        numbers[part.lanes] = number[part.lanes]
    return numbers


def _surfel(
    expression: ir.Texel, batch: RunningBatch, address: PointerValue, places: list[Any], mask: LaneMask
) -> npt.NDArray[np.int64]:
    memory, size = address.memory, expression.size
    if not isinstance(memory, _SurfaceMemory):
        name = memory.name if memory is not None else "a null pointer"
        instead = "Make it with cudaCreateSurfaceObject, over an array."
        raise _refused(expression, batch, mask, f"{name} is no surface", instead, "a surface")
    surface, lanes = memory.surface, mask.bits.size
    if len(surface.extents) != len(places):
        words = f"{memory.name} is of {len(surface.extents)}, not of {len(places)} dimensions"
        raise _refused(expression, batch, mask, words, "An array's extents say it.", "a surface")
    # In bytes, as x is given.
    extents = (surface.extents[0] * surface.size, *surface.extents[1:])
    at = [np.broadcast_to(np.asarray(place, np.int64), lanes) for place in places]
    if extents[0] % size or (astray := mask.bits & (at[0] % size != 0)).any():
        lane = int(np.flatnonzero(astray)[0]) if extents[0] % size == 0 else int(mask.lanes[0])
        raise LaunchError(
            f"{expression.position}: {batch.describe(lane)} reaches x = {at[0][lane]} of {memory.name} whose rows have "
            f"{extents[0]} bytes, for an element of {size}: misaligned.",
            kind="misaligned",
            position=expression.position,
            advice="A surface's x counts bytes: x * sizeof(element).",
        )
    last = [extents[0] - size, *(extent - 1 for extent in extents[1:])]
    beyond = np.zeros(lanes, bool)
    for place, most in zip(at, last, strict=True):
        beyond |= (place < 0) | (place > most)
    beyond &= mask.bits
    if expression.boundary == _TRAPS and beyond.any():
        lane = int(np.flatnonzero(beyond)[0])
        where = ", ".join(f"{axis} = {place[lane]}" for axis, place in zip("xyz", at, strict=False))
        raise LaunchError(
            f"{expression.position}: {batch.describe(lane)} reaches {where} of {memory.name} of "
            f"{' x '.join(map(str, extents))}, x in bytes: out of bounds.",
            kind="out-of-bounds",
            position=expression.position,
            advice="A surface's x counts bytes; cudaBoundaryModeClamp or cudaBoundaryModeZero allow what lies beyond.",
        )
    number = np.zeros(lanes, np.int64)
    for place, most, extent in zip(reversed(at), reversed(last), reversed(extents), strict=True):
        number = number * extent + np.clip(place, 0, most)
    return number // size if expression.boundary == _CLAMPS else np.where(beyond, -1, number // size)


def texel_weight(
    expression: ir.TexelWeight, batch: RunningBatch, pointer: PointerValue, place: Any, mask: LaneMask
) -> Array:
    """Return how much of the second of two elements each lane's fetch takes; without a place whether it filters."""
    found = np.zeros(mask.bits.size, expression.type.dtype)
    for address, part in pointer.parts(mask):
        texture = address.memory.texture if isinstance(address.memory, _TextureMemory) else None
        if texture is None or not texture.sampling.linear:
            continue  # the fetch itself says what is wrong
        if expression.place is None:
            found[part.lanes] = 1
        elif expression.axis < len(texture.extents):
            at = _element_of(place, texture.extents[expression.axis], texture.sampling, filtered=True)
            weight = np.floor((at - np.floor(at)) * _STEPS + 0.5) / _STEPS
            found[part.lanes] = np.broadcast_to(weight, found.shape)[part.lanes]
    return found


def _element_of(place: Any, extent: int, sampling: Sampling, *, filtered: bool) -> Any:
    """Return where a coordinate lies among elements; NaN is 0, as a GPU converts it."""
    at = np.nan_to_num(np.asarray(place, np.float64)) * (extent if sampling.normalized else 1)
    return at - 0.5 if filtered else at


def _addressed(number: Any, extent: int, addressing: Addressing) -> Any:
    """Return the elements that stand for numbers which may lie beyond the edges; -1 for the border."""
    match addressing:
        case "border":
            number = np.where((number >= 0) & (number < extent), number, -1)
        case "wrap":
            number = np.mod(number, extent)
        case "mirror":
            turned = np.mod(number, 2 * extent)
            number = np.minimum(turned, 2 * extent - 1 - turned)
        case "clamp":
            number = np.clip(number, 0, extent - 1)
    return number.astype(np.int64)


def _texture_of(expression: ir.Texel, batch: RunningBatch, address: PointerValue, mask: LaneMask) -> Texture:
    memory = address.memory
    name = memory.name if memory is not None else "a null pointer"
    if not isinstance(memory, _TextureMemory):
        raise _refused(expression, batch, mask, f"{name} holds no texture", "Give texture:FILE or --texture NAME=FILE.")
    texture = memory.texture
    if texture.size != expression.size:
        words = f"an element of {name} has a size of {texture.size}, not of {expression.size}, in bytes"
        raise _refused(
            expression,
            batch,
            mask,
            words,
            "Give a .npy file with elements of the type that is fetched; a gray image has 1 byte, one in color 4.",
        )
    if len(texture.extents) != len(expression.places):
        words = f"{name} is of {len(texture.extents)}, not of {len(expression.places)} dimensions"
        raise _refused(expression, batch, mask, words, "An image has two; of an array its shape counts.")
    if texture.sampling.linear and not expression.beside:
        words = f"{name} is filtered, which only float, float2 and float4 are"
        raise _refused(expression, batch, mask, words, "Fetch floats, or leave linear out.")
    return texture


def _refused(
    expression: ir.Texel, batch: RunningBatch, mask: LaneMask, why: str, instead: str, what: str = "a texture"
) -> LaunchError:
    position = expression.position
    return LaunchError(
        f"{position}: {batch.describe(int(mask.lanes[0]))} reads {what} by coordinates, and {why}.",
        position=position,
        advice=instead,
    )
