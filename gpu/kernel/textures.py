"""Files as textures."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gpu.errors import InputError
from gpu.files.arrays import read_npy
from gpu.files.images import read_image
from gpu.simulator.executor.textures import Texture

_WIDE = {np.dtype(np.float64): np.float32, np.dtype(np.int64): np.int32, np.dtype(np.uint64): np.uint32}


def read_texture(path: str | Path) -> Texture:
    """Return what a file gives a texture.

    Parameters
    ----------
    path : str or Path
        A .npy file of one or two dimensions: elements of eight bytes, which no texture has, become ones of four. Or an
        image, of which one in color becomes elements of four channels.

    Raises
    ------
    InputError
        The file cannot be read, or is no such array.
    """
    name = Path(path).name
    if Path(path).suffix.lower() != ".npy":
        pixels = read_image(path).pixels
        if pixels.ndim == 3:
            opaque = np.full((*pixels.shape[:2], 1), np.iinfo(pixels.dtype).max, pixels.dtype)
            pixels = np.concatenate((pixels, opaque), axis=2)
        return _texture(pixels, pixels.shape[1::-1])
    values = read_npy(str(path))
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
    return _texture(values, values.shape[::-1])


def _texture(values: np.ndarray, extents: tuple[int, ...]) -> Texture:
    data = np.array(values, order="C")
    return Texture(data.reshape(-1).view(np.uint8), tuple(extents), data.nbytes // int(np.prod(extents)))
