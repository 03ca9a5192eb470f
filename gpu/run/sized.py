"""Images of any size, made of one that is there."""

from __future__ import annotations

import numpy as np

from gpu.declaration.pattern import Inputs


def of_side(inputs: Inputs, side: int) -> Inputs:
    """Return inputs whose image has so many rows and columns, cut or repeated; with 0, and without one, as they are."""
    if not side or "image" not in inputs:
        return inputs
    image = inputs["image"]
    rows, columns = (np.arange(side) % length for length in image.shape[:2])
    return {**inputs, "image": np.ascontiguousarray(image[rows[:, None], columns])}
