"""Draw a histogram as an image for a file."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gpu.declaration.pattern import Array

HEIGHT = 400
MIN_WIDTH = 1024


def draw_counts(counts: Array) -> npt.NDArray[np.uint8]:
    """Draw counts as bars from the lower edge on a linear scale; the highest bar reaches the top.

    Parameters
    ----------
    counts : array of int, shape (1, bins) or (3, bins)
        One row draws white bars; three rows draw red, green and blue bars that add up where they overlap.

    Returns
    -------
    array of uint8, shape (400, width) or (400, width, 3)
        All bins have the same width, the smallest for which `width` is at least 1024 pixels.
    """
    bins = counts.shape[1]
    levels = np.arange(HEIGHT, 0, -1, dtype=np.float64)[:, np.newaxis]
    highest = max(int(counts.max()), 1)
    channels = [
        np.repeat(np.where(row / highest * HEIGHT >= levels, 255, 24).astype(np.uint8), -(-MIN_WIDTH // bins), axis=1)
        for row in counts
    ]
    return channels[0] if len(channels) == 1 else np.stack(channels, axis=2)
