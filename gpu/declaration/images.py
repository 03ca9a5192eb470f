"""What the image patterns share: channels as planes for a kernel, and back; pictures for a screen."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gpu.declaration.pattern import Array, Inputs


def planes_of(image: Array, dtype: npt.DTypeLike) -> Array:
    """Turn an image of shape (height, width) or (height, width, channels) into (channels, height, width)."""
    stacked = image[np.newaxis] if image.ndim == 2 else np.moveaxis(image, 2, 0)
    return np.ascontiguousarray(stacked, dtype)


def channels_last(planes: Array, like: Array) -> Array:
    """Undo `planes_of`, for an image of the same shape as `like`."""
    return planes[0] if like.ndim == 2 else np.ascontiguousarray(np.moveaxis(planes, 0, 2))


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
