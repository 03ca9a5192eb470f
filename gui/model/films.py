"""Write animations as GIF and MP4 files, frame by frame."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from gpu.base.errors import InputError
from gpu.declaration.pattern import Array
from gpu.files.file_access import format_path, replace_file

FILM_SUFFIXES = (".gif", ".mp4")
_GIF_COLORS = 128


class FilmAbandonedError(Exception):
    """Raised by a frame iterator to abandon its film."""


def write_film(path: Path, frames: Iterator[Array], rate: float) -> None:
    """Write a .gif or .mp4 file, depending on the extension; an incomplete film leaves no file.

    Parameters
    ----------
    path : Path
        An existing file stays until the film is complete.
    frames : iterator of array
        uint8, shape (height, width, 3), all of one shape. For a GIF the first two frames are samples for the palette
        and not part of the film; all frames share one palette, so that no color flickers.
    rate : float
        Frames per second. Players round GIF frames to hundredths of a second.

    Raises
    ------
    InputError
        If the file cannot be written.
    FilmAbandonedError
        If `frames` raises it.
    """
    try:
        with replace_file(path) as file:
            (_write_gif if path.suffix.lower() == ".gif" else _write_mp4)(file, frames, rate)
    except ImportError:
        raise InputError(f"Cannot write {format_path(path)}: pip install imageio-ffmpeg first.") from None
    except (ValueError, RuntimeError, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"Cannot write {format_path(path)}: {reason}") from error


def _write_mp4(file: IO[bytes], frames: Iterator[Array], rate: float) -> None:
    import imageio_ffmpeg

    first = next(frames)
    height, width = first.shape[:2]
    # ffmpeg opens the file by this name, which does not reveal the format.
    name = file.name if isinstance(file.name, str) else f"/proc/{os.getpid()}/fd/{file.fileno()}"
    film: Any = imageio_ffmpeg.write_frames(
        name, (width, height), fps=rate, quality=8, macro_block_size=2, output_params=["-f", "mp4"]
    )
    film.send(None)
    try:
        for frame in chain([first], frames):
            film.send(np.ascontiguousarray(frame))
    finally:
        film.close()


def _write_gif(file: IO[bytes], frames: Iterator[Array], rate: float) -> None:
    from PIL import Image

    samples = list(islice(frames, 2))
    first = next(frames)
    palette = Image.fromarray(np.concatenate(samples)).quantize(_GIF_COLORS, dither=Image.Dither.NONE)
    remaining = chain([first], frames)
    images = (Image.fromarray(frame).quantize(palette=palette, dither=Image.Dither.NONE) for frame in remaining)
    next(images).save(file, format="GIF", save_all=True, append_images=images, duration=round(100 / rate) * 10, loop=0)
