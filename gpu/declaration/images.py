"""Shared code of the image patterns: conversion between channels and planes, and pictures for a screen."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gpu.declaration.pattern import Array, Inputs

_CANDIDATE_POSITIONS = 16
"""Number of candidate positions of a part of an image in each direction."""


def to_planes(image: Array, dtype: npt.DTypeLike) -> Array:
    """Convert an image of shape (height, width) or (height, width, channels) into (channels, height, width)."""
    stacked = image[np.newaxis] if image.ndim == 2 else np.moveaxis(image, 2, 0)
    return np.ascontiguousarray(stacked, dtype)


def to_channels_last(planes: Array, original: Array) -> Array:
    """Return a view of planes in the shape of the image `original`: the inverse of `to_planes`."""
    return planes[0] if original.ndim == 2 else np.moveaxis(planes, 0, 2)


def count_covering_blocks(extent: tuple[int, int], block: tuple[int, int, int]) -> tuple[int, int]:
    """Return the numbers of blocks that cover `extent` in x and y."""
    return -(-extent[0] // block[0]), -(-extent[1] // block[1])


def to_screen_picture(image: Array, maxval: int) -> Array:
    """Scale an image with white at `maxval` to uint8; return an image that needs no scaling unchanged."""
    if image.dtype == np.uint8 and maxval == 255:
        return image
    levels = np.arange(maxval + 1, dtype=np.uint64)
    return ((levels * 255 + maxval // 2) // maxval).astype(np.uint8)[image]


def crop_middle(inputs: Inputs, height: int, width: int) -> Inputs:
    """Crop the middle of one channel, small enough to follow every step; the other channels behave the same."""
    image = inputs["image"]
    image = image[..., 1] if image.ndim == 3 else image
    top, left = max(0, image.shape[0] - height) // 2, max(0, image.shape[1] - width) // 2
    return {**inputs, "image": np.ascontiguousarray(image[top : top + height, left : left + width])}


def crop_most_varied(inputs: Inputs, height: int, width: int) -> Inputs:
    """Crop one channel to the part with the largest standard deviation among parts spread over the image.

    For data-dependent kernels that are followed step by step: a part of equal values would show nothing.
    """
    image = inputs["image"]
    image = image[..., 1] if image.ndim == 3 else image
    rows, columns = (
        np.unique(np.linspace(0, max(0, length - part), _CANDIDATE_POSITIONS).astype(np.int64))
        for length, part in zip(image.shape, (height, width), strict=True)
    )
    parts = [image[top : top + height, left : left + width] for top in rows for left in columns]
    spread = [float(part.std()) if part.size else 0.0 for part in parts]
    return {**inputs, "image": np.ascontiguousarray(parts[int(np.argmax(spread))])}
