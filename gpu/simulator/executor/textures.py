"""Textures: memories of one or two dimensions, and which element a fetch by coordinates reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.errors import LaunchError
from gpu.simulator import ir
from gpu.simulator.executor.masks import LaneMask
from gpu.simulator.executor.memory import FlatMemory
from gpu.simulator.executor.pointers import PointerValue
from gpu.simulator.executor.running import RunningBatch

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Texture:
    """What a texture holds.

    Parameters
    ----------
    data : array of uint8
        Its elements' bytes, row after row.
    extents : tuple of int
        Elements in x, and, of two dimensions, in y.
    size : int
        Bytes of an element.
    """

    data: Array
    extents: tuple[int, ...]
    size: int

    def memory(self, name: str) -> FlatMemory:
        """Return it as a memory of the device."""
        return _TextureMemory(name, self)


class _TextureMemory(FlatMemory):
    def __init__(self, name: str, texture: Texture) -> None:
        super().__init__(name, "global", texture.data)
        self.texture = texture


def texel(
    expression: ir.Texel, batch: RunningBatch, pointer: PointerValue, places: list[Any], mask: LaneMask
) -> npt.NDArray[np.int64]:
    """Return the number of the element that each lane's fetch reads: the nearest one, beyond an edge the last one."""
    numbers = np.zeros(mask.bits.size, np.int64)
    for address, part in pointer.parts(mask):
        texture = _texture_of(expression, batch, address, part)
        number = np.zeros(mask.bits.size, np.int64)
        for place, extent in zip(reversed(places), reversed(texture.extents), strict=True):
            number = number * extent + _within(place, extent)
        numbers[part.lanes] = number[part.lanes]
    return numbers


def _within(place: Any, extent: int) -> Any:
    """Return the number of the element that a coordinate lies in; NaN is 0, as a GPU converts it."""
    return np.clip(np.floor(np.nan_to_num(np.asarray(place, np.float64))), 0, extent - 1).astype(np.int64)


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
        raise _refused(expression, batch, mask, words, "An image has two; of a .npy file its array's shape counts.")
    return texture


def _refused(expression: ir.Texel, batch: RunningBatch, mask: LaneMask, why: str, instead: str) -> LaunchError:
    position = expression.position
    return LaunchError(
        f"{position}: {batch.describe(int(mask.lanes[0]))} reads a texture by coordinates, and {why}.",
        position=position,
        advice=instead,
    )
