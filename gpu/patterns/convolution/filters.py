"""Filter coefficients for convolution, for any odd size of at least 3.

The sharpening and edge filters have their textbook 3 x 3 form at size 3. Larger sizes smooth with a binomial filter
first, the usual way to enlarge the Sobel operator.
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
"""Gradient magnitude: the root of the sum of both Sobel filters' squares."""
BORDERS = ("clamp", "zero")
"""Pixels outside the image, in the order of the kernels' numbers: the nearest pixel, or zeros."""
SOBELS = ("sobel-x", "sobel-y")
NAMES = ("box", "gaussian", "sobel-x", "sobel-y", GRADIENT, "laplacian", "emboss", "sharpen")
DEFAULT_SIZES = tuple((name, 3) for name in (*_THREE_BY_THREE, GRADIENT))
"""Default sizes of the filters that have a textbook form."""


def make_filter(name: str, size: int) -> Array:
    """Return a filter as a float32 array of shape (size, size), applied by correlation (not flipped).

    Parameters
    ----------
    name : str
        One of `NAMES`; for the gradient, the first of its two filters.
    size : int
        Odd, at least 3.
    """
    if name == "box":
        box: Array = np.full((size, size), 1 / size**2, np.float32)
        return box
    if name == "gaussian":
        offsets = np.arange(size) - size // 2
        # A standard deviation for which weights at the border are small but relevant: 1.1 at size 5, 5 at size 31.
        curve = np.exp(-0.5 * (offsets / (0.15 * size + 0.35)) ** 2)
        gaussian: Array = (np.outer(curve, curve) / curve.sum() ** 2).astype(np.float32)
        return gaussian
    name = SOBELS[0] if name == GRADIENT else name
    return _enlarge(np.array(_THREE_BY_THREE[name], np.float64), size).astype(np.float32)


def _enlarge(filter_3x3: Array, size: int) -> Array:
    """Convolve a 3 x 3 filter with a normalized binomial filter of side size - 2."""
    curve = np.ones(1)
    for _ in range(size - 3):
        curve = np.convolve(curve, [0.5, 0.5])
    smooth = np.outer(curve, curve)
    wide = np.zeros((size, size))
    for row in range(3):
        for column in range(3):
            wide[row : row + size - 2, column : column + size - 2] += filter_3x3[row, column] * smooth
    return wide


def filter_from_params(params: Mapping[str, Any]) -> Array:
    """Return the coefficients for the parameters: float32, shape (K, K)."""
    if params["filter"] == "custom":
        return np.asarray(params["coefficients"], np.float32)
    return make_filter(params["filter"], params["size"])
