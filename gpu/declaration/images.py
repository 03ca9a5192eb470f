"""What the image patterns share: channels as planes for a kernel, and back; pictures for a screen."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gpu.declaration.pattern import Array, Inputs

_PLACES = 16
"""Parts of an image that are looked at, in each direction."""


def planes_of(image: Array, dtype: npt.DTypeLike) -> Array:
    """Turn an image of shape (height, width) or (height, width, channels) into (channels, height, width)."""
    stacked = image[np.newaxis] if image.ndim == 2 else np.moveaxis(image, 2, 0)
    return np.ascontiguousarray(stacked, dtype)


def channels_last(planes: Array, like: Array) -> Array:
    """Undo `planes_of`, for an image of the same shape as `like`: a view."""
    return planes[0] if like.ndim == 2 else np.moveaxis(planes, 0, 2)


def blocks_for(extent: tuple[int, int], block: tuple[int, int, int]) -> tuple[int, int]:
    """Return how many blocks cover `extent` in x and y."""
    return -(-extent[0] // block[0]), -(-extent[1] // block[1])


def screen_picture(image: Array, maxval: int) -> Array:
    """Scale an image whose white is `maxval` to uint8; an image that is so already is returned as it is."""
    if image.dtype == np.uint8 and maxval == 255:
        return image
    levels = np.arange(maxval + 1, dtype=np.uint64)
    return ((levels * 255 + maxval // 2) // maxval).astype(np.uint8)[image]


def middle(inputs: Inputs, height: int, width: int) -> Inputs:
    """Cut the middle out of one channel, for somebody who watches every step: others see the same happen."""
    image = inputs["image"]
    image = image[..., 1] if image.ndim == 3 else image
    top, left = max(0, image.shape[0] - height) // 2, max(0, image.shape[1] - width) // 2
    return {**inputs, "image": np.ascontiguousarray(image[top : top + height, left : left + width])}


def liveliest(inputs: Inputs, height: int, width: int) -> Inputs:
    """Cut out of one channel the part whose values differ most, of some that are spread over the image.

    For somebody who watches every step of what depends on the values: of equal ones there is nothing to be seen.
    """
    image = inputs["image"]
    image = image[..., 1] if image.ndim == 3 else image
    rows, columns = (
        np.unique(np.linspace(0, max(0, whole - part), _PLACES).astype(np.int64))
        for whole, part in zip(image.shape, (height, width), strict=True)
    )
    parts = [image[top : top + height, left : left + width] for top in rows for left in columns]
    spread = [float(part.std()) if part.size else 0.0 for part in parts]
    return {**inputs, "image": np.ascontiguousarray(parts[int(np.argmax(spread))])}
