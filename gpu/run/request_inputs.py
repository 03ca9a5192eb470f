"""Open a request's input arrays, and resize images by cutting or repeating them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gpu.declaration.pattern import Inputs
from gpu.messages.shared_arrays import SharedArray


def open_inputs(handles: Mapping[str, SharedArray], side: int) -> Inputs:
    """Open a request's arrays; a nonzero `side` makes an image square with that many rows and columns."""
    return resize_image({name: handle.open() for name, handle in handles.items()}, side)


def resize_image(inputs: Inputs, side: int) -> Inputs:
    """Cut or repeat an image to `side` rows and columns; return inputs unchanged for side 0 or without an image."""
    if not side or "image" not in inputs:
        return inputs
    image = inputs["image"]
    rows, columns = (np.arange(side) % length for length in image.shape[:2])
    return {**inputs, "image": np.ascontiguousarray(image[rows[:, None], columns])}
