"""Files as textures."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import numpy as np

from gpu.errors import InputError
from gpu.files.arrays import read_npy
from gpu.files.images import read_image
from gpu.simulator.executor.textures import Addressing, Sampling, Texture

_WIDE = {np.dtype(np.float64): np.float32, np.dtype(np.int64): np.int32, np.dtype(np.uint64): np.uint32}


_ADDRESSINGS: tuple[Addressing, ...] = get_args(Addressing)
_WORDS = ("linear", "normalized", *_ADDRESSINGS)


def read_texture(spec: str | Path) -> Texture:
    """Return what a file gives a texture, and how it is read.

    Parameters
    ----------
    spec : str or Path
        A .npy file of one or two dimensions: elements of eight bytes, which no texture has, become ones of four. Or an
        image, of which one in color becomes elements of four channels. Behind it, after commas, how coordinates are
        taken: "linear" for between the elements and not the nearest one, which makes elements of 8 and 16 bits floats
        up to 1; "normalized" for axes from 0 to 1; and "clamp", "border", "wrap" or "mirror".

    Raises
    ------
    InputError
        The file cannot be read, or is no such array; or it cannot be read so.
    """
    path, *words = str(spec).split(",")
    while words and words[0] not in _WORDS and not Path(path).is_file():
        path = f"{path},{words.pop(0)}"  # a file's name may have commas
    sampling = _sampling(words)
    values, extents = _values(path)
    if sampling.linear:
        values = _as_floats(values, Path(path).name)
    data = np.array(values, order="C")
    size = data.nbytes // int(np.prod(extents))
    elements = data.reshape(-1).view(np.uint8)
    if sampling.addressing == "border":
        elements = np.concatenate((elements, np.zeros(size, np.uint8)))
    return Texture(elements, extents, size, sampling)


def _sampling(words: list[str]) -> Sampling:
    for word in words:
        if word not in _WORDS:
            raise InputError(f"{word!r} is no way to read a texture: {', '.join(_WORDS)} are.")
    given = [each for each in _ADDRESSINGS if each in words]
    if len(given) > 1:
        raise InputError(f"A texture is read by one of {', '.join(given)}, not by all.")
    addressing = given[0] if given else "clamp"
    if addressing in ("wrap", "mirror") and "normalized" not in words:
        raise InputError(f"{addressing} needs coordinates from 0 to 1, on a GPU too.", advice="Add ,normalized.")
    return Sampling("linear" in words, "normalized" in words, addressing)


def _as_floats(values: np.ndarray, name: str) -> np.ndarray:
    """Return elements as a filter takes them: of integers parts of the greatest one, as cudaReadModeNormalizedFloat."""
    if values.dtype == np.float32:
        return values
    if values.dtype.kind not in "iu" or values.dtype.itemsize > 2:
        raise InputError(
            f"{name} cannot be filtered: only float32 and integers of 8 and 16 bits are, not {values.dtype}."
        )
    return np.maximum(values / np.float32(np.iinfo(values.dtype).max), np.float32(-1)).astype(np.float32)


def _values(path: str) -> tuple[np.ndarray, tuple[int, ...]]:
    """Return a file's elements, and how many there are in x and y."""
    name = Path(path).name
    if Path(path).suffix.lower() != ".npy":
        pixels = read_image(path).pixels
        if pixels.ndim == 3:
            opaque = np.full((*pixels.shape[:2], 1), np.iinfo(pixels.dtype).max, pixels.dtype)
            pixels = np.concatenate((pixels, opaque), axis=2)
        return pixels, pixels.shape[1::-1]
    values = read_npy(path)
    if values.ndim not in (1, 2) or not values.size:
        shape = " x ".join(map(str, values.shape)) or "a single number"
        raise InputError(f"{name} is no texture: it needs one or two dimensions, and is {shape}.")
    if values.dtype.kind not in "iuf":
        raise InputError(f"{name} is no texture: {values.dtype} is no type of a texture's elements.")
    if values.dtype in _WIDE:
        narrow = values.astype(_WIDE[values.dtype])
        if values.dtype.kind != "f" and (narrow != values).any():
            raise InputError(f"{name} is no texture: a texture's elements have four bytes, and its numbers need eight.")
        values = narrow
    return values, values.shape[::-1]
