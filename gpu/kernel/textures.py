"""Textures from files."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import numpy as np

from gpu.base.errors import InputError
from gpu.files.arrays import read_npy
from gpu.files.images import read_image
from gpu.simulator.executor.textures import Addressing, Sampling, Texture

_NARROWED_TYPES = {np.dtype(np.float64): np.float32, np.dtype(np.int64): np.int32, np.dtype(np.uint64): np.uint32}


_ADDRESSINGS: tuple[Addressing, ...] = get_args(Addressing)
_OPTIONS = ("linear", "normalized", *_ADDRESSINGS)


def read_texture(spec: str | Path) -> Texture:
    """Load a texture from a file, with the sampling options that follow its name.

    Parameters
    ----------
    spec : str or Path
        A .npy file of one or two dimensions (8-byte elements, which textures do not support, become 4-byte ones), or an
        image (a color image becomes elements of four channels). Sampling options follow, separated by commas: "linear"
        interpolates between texels and converts 8- and 16-bit elements to floats up to 1; "normalized" uses
        coordinates from 0 to 1; "clamp", "border", "wrap" or "mirror" sets the addressing mode.

    Raises
    ------
    InputError
        The file cannot be read or is not such an array, or the sampling options are invalid.
    """
    path, *words = str(spec).split(",")
    while words and words[0] not in _OPTIONS and not Path(path).is_file():
        path = f"{path},{words.pop(0)}"  # a file's name may have commas
    sampling = _parse_sampling(words)
    values, extents = _read_elements(path)
    if sampling.linear:
        values = _to_floats(values, Path(path).name)
    data = np.array(values, order="C")
    size = data.nbytes // int(np.prod(extents))
    elements = data.reshape(-1).view(np.uint8)
    if sampling.addressing == "border":
        elements = np.concatenate((elements, np.zeros(size, np.uint8)))
    return Texture(elements, extents, size, sampling)


def _parse_sampling(options: list[str]) -> Sampling:
    for option in options:
        if option not in _OPTIONS:
            raise InputError(f"{option!r} is not a texture option; valid options are {', '.join(_OPTIONS)}.")
    addressings = [mode for mode in _ADDRESSINGS if mode in options]
    if len(addressings) > 1:
        raise InputError(f"A texture can use only one of {', '.join(addressings)}.")
    addressing = addressings[0] if addressings else "clamp"
    if addressing in ("wrap", "mirror") and "normalized" not in options:
        raise InputError(f"{addressing} needs coordinates from 0 to 1, as on a GPU.", advice="Add ,normalized.")
    return Sampling("linear" in options, "normalized" in options, addressing)


def _to_floats(values: np.ndarray, name: str) -> np.ndarray:
    """Convert elements to floats for filtering; integers are scaled as with cudaReadModeNormalizedFloat."""
    if values.dtype == np.float32:
        return values
    if values.dtype.kind not in "iu" or values.dtype.itemsize > 2:
        raise InputError(f"{name} cannot be filtered: only float32 and 8- and 16-bit integers can, not {values.dtype}.")
    return np.maximum(values / np.float32(np.iinfo(values.dtype).max), np.float32(-1)).astype(np.float32)


def _read_elements(path: str) -> tuple[np.ndarray, tuple[int, ...]]:
    """Return a file's elements, and their number in x and y."""
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
        raise InputError(f"{name} cannot be a texture: it needs one or two dimensions, but is {shape}.")
    if values.dtype.kind not in "iuf":
        raise InputError(f"{name} cannot be a texture: textures do not support elements of type {values.dtype}.")
    if values.dtype in _NARROWED_TYPES:
        narrow = values.astype(_NARROWED_TYPES[values.dtype])
        if values.dtype.kind != "f" and (narrow != values).any():
            raise InputError(
                f"{name} cannot be a texture: texture elements have four bytes, but its numbers need eight."
            )
        values = narrow
    return values, values.shape[::-1]
