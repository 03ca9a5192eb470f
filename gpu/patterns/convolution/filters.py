"""Filter coefficients for the convolution, any odd size from 3 on.

The sharpening and edge filters have their textbook 3 x 3 form at size 3. A larger size smooths with a binomial filter
first, which is how the Sobel operator is usually widened.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_THREE_BY_THREE = {
    "sobel-x": [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]],
    "sobel-y": [[-1, -2, -1], [0, 0, 0], [1, 2, 1]],
    "laplacian": [[0, 1, 0], [1, -4, 1], [0, 1, 0]],
    "emboss": [[-2, -1, 0], [-1, 1, 1], [0, 1, 2]],
    "sharpen": [[0, -1, 0], [-1, 5, -1], [0, -1, 0]],
}

GRADIENT = "gradient"
"""Both Sobels: the root of the sum of their squares."""
BORDERS = ("clamp", "zero")
"""What lies outside of the image, as kernels number it: the nearest pixel again, or zeros."""
SOBELS = ("sobel-x", "sobel-y")
NAMES = ("box", "gaussian", "sobel-x", "sobel-y", GRADIENT, "laplacian", "emboss", "sharpen")
OWN_SIZES = tuple((name, 3) for name in (*_THREE_BY_THREE, GRADIENT))
"""Of filters that have a textbook form."""


def coefficients(name: str, size: int) -> Array:
    """Return a filter as a float32 array of shape (size, size), laid over the image as it is written.

    Parameters
    ----------
    name : str
        One of `NAMES`; of the gradient the first of its two filters.
    size : int
        Odd, at least 3.
    """
    if name == "box":
        box: Array = np.full((size, size), 1 / size**2, np.float32)
        return box
    if name == "gaussian":
        offsets = np.arange(size) - size // 2
        # The deviation that makes the border's weight small but not wasted: about 1.1 at size 5, 6 at size 31.
        curve = np.exp(-0.5 * (offsets / (0.15 * size + 0.35)) ** 2)
        gaussian: Array = (np.outer(curve, curve) / curve.sum() ** 2).astype(np.float32)
        return gaussian
    name = SOBELS[0] if name == GRADIENT else name
    return _widened(np.array(_THREE_BY_THREE[name], np.float64), size).astype(np.float32)


def _widened(filter_3x3: Array, size: int) -> Array:
    """Convolve a 3 x 3 filter with a normalized binomial of size - 2."""
    curve = np.ones(1)
    for _ in range(size - 3):
        curve = np.convolve(curve, [0.5, 0.5])
    smooth = np.outer(curve, curve)
    wide = np.zeros((size, size))
    for row in range(3):
        for column in range(3):
            wide[row : row + size - 2, column : column + size - 2] += filter_3x3[row, column] * smooth
    return wide


def filter_of(params: Mapping[str, Any]) -> Array:
    """Return the coefficients that the parameters ask for: float32, shape (K, K)."""
    if params["filter"] == "custom":
        return np.asarray(params["coefficients"], np.float32)
    return coefficients(params["filter"], params["size"])
