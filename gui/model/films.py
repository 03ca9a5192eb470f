"""Files of animations: GIF and MP4, from frames as they come."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from gpu.declaration.pattern import Array

ENDINGS = (".gif", ".mp4")
_GIF_COLORS = 128


def write_film(path: Path, frames: Iterator[Array], rate: float) -> None:
    """Write a .gif or .mp4 file, its format chosen by the extension.

    Parameters
    ----------
    path : Path
    frames : iterator of array
        uint8, shape (height, width, 3), all of one shape. For a GIF the first two are samples and no part of the film:
        all frames have their palette, so that no color flickers.
    rate : float
        Frames a second. Players show GIF frames for whole hundredths of a second.

    Raises
    ------
    ImportError
        Where imageio is missing, for an MP4.
    OSError, ValueError, RuntimeError
        Where the file cannot be written.
    """
    (_write_gif if path.suffix.lower() == ".gif" else _write_mp4)(path, frames, rate)


def _write_mp4(path: Path, frames: Iterator[Array], rate: float) -> None:
    import imageio.v2 as imageio

    writer: Any = imageio.get_writer(path, fps=rate, quality=8, macro_block_size=2)
    with writer:
        for frame in frames:
            writer.append_data(frame)


def _write_gif(path: Path, frames: Iterator[Array], rate: float) -> None:
    from PIL import Image

    samples = list(islice(frames, 2))
    first = next(frames, None)
    if first is None:  # given up
        return
    palette = Image.fromarray(np.concatenate(samples)).quantize(_GIF_COLORS, dither=Image.Dither.NONE)
    whole = chain([first], frames)
    made = (Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE) for frame in whole)
    next(made).save(path, format="GIF", save_all=True, append_images=made, duration=round(100 / rate) * 10, loop=0)
