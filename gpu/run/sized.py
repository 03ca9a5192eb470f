"""What a request hands over, as what runs takes it: images of any size, made of one that is there."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gpu.declaration.pattern import Inputs
from gpu.messages.shared_arrays import SharedArray


def opened(handed: Mapping[str, SharedArray], side: int) -> Inputs:
    """Return the arrays that a request hands over, an image among them with so many rows and columns."""
    return of_side({name: handle.open() for name, handle in handed.items()}, side)


def of_side(inputs: Inputs, side: int) -> Inputs:
    """Return inputs whose image has so many rows and columns, cut or repeated; with 0, and without one, as they are."""
    if not side or "image" not in inputs:
        return inputs
    image = inputs["image"]
    rows, columns = (np.arange(side) % length for length in image.shape[:2])
    return {**inputs, "image": np.ascontiguousarray(image[rows[:, None], columns])}
