"""A histogram as pixels, for a file."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gpu.declaration.pattern import Array

HEIGHT = 400
LEAST_WIDTH = 1024


def draw_counts(counts: Array) -> npt.NDArray[np.uint8]:
    """Draw counts as bars that stand on the lower edge, in a linear scale; the highest reaches the top.

    Parameters
    ----------
    counts : array of int, shape (1, bins) or (3, bins)
        One row draws white bars; three draw red, green and blue ones that add up where they overlap.

    Returns
    -------
    array of uint8, shape (400, width) or (400, width, 3)
        Each bin as wide as it takes to be at least 1024 pixels together.
    """
    bins = counts.shape[1]
    levels = np.arange(HEIGHT, 0, -1, dtype=np.float64)[:, np.newaxis]
    highest = max(int(counts.max()), 1)
    channels = [
        np.repeat(np.where(row / highest * HEIGHT >= levels, 255, 24).astype(np.uint8), -(-LEAST_WIDTH // bins), axis=1)
        for row in counts
    ]
    return channels[0] if len(channels) == 1 else np.stack(channels, axis=2)
