"""Decoding of images by Pillow, in a separate process except for small ones, into arrays."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import PIL

from gpu.base.child_processes import end_process, start_python
from gpu.base.errors import InputError
from gpu.files import decoder
from gpu.files.file_access import convert_os_errors, open_for_reading

Pixels = npt.NDArray[Any]

TIMEOUT_SECONDS = 180.0
"""Seconds after which decoding is killed, even if the system supports no limit of CPU time."""

_STRIP_BYTES = 2**22

# How rows are written to a view of the array so that the image becomes upright, by EXIF's orientation.
_ORIENTATIONS: dict[int, Callable[[Pixels], Pixels]] = {
    2: np.fliplr,
    3: lambda pixels: np.rot90(pixels, 2),
    4: np.flipud,
    5: lambda pixels: np.swapaxes(pixels, 0, 1),
    6: np.rot90,
    7: lambda pixels: np.swapaxes(np.rot90(pixels, 2), 0, 1),
    8: lambda pixels: np.rot90(pixels, -1),
}


def decode(path: Path, name: str, limit: int) -> tuple[Pixels, int]:
    """Decode an image file.

    Allocates the pixels in this process, and in the other process at most as much as `gpu.files.decoder` allows.

    Parameters
    ----------
    name : str
        Name of the file in error messages.
    limit : int
        Most pixels that are accepted.

    Returns
    -------
    pixels : ndarray of uint8 or uint16, shape (height, width) or (height, width, 3)
    maxval : int
        The value of white.

    Raises
    ------
    InputError
        If the file is not an image, is damaged, has no pixels or too many, or takes too long to decode.
    """
    with open_for_reading(path) as file:
        if decoder.is_small(file):
            with BytesIO() as source:
                decoder.write_decoded_image(file, source, limit, in_own_process=False)
                source.seek(0)
                return _read_decoded_image(source, name)
        with _decoder_process(file, name, limit) as process:
            assert process.stdout is not None
            try:
                return _read_decoded_image(process.stdout, name)
            except EOFError:
                raise _build_decoder_error(name, process.wait()) from None


def _read_decoded_image(source: IO[bytes], name: str) -> tuple[Pixels, int]:
    """Read the decoder's answer; raise EOFError if it is incomplete."""
    facts = json.loads(source.readline() or "{}")
    if not facts:
        raise EOFError
    if "refusal" in facts:
        raise InputError(f"{name} {facts['refusal']}")
    return _read_pixels(source, facts), facts["maxval"]


@contextlib.contextmanager
def _decoder_process(file: IO[bytes], name: str, limit: int) -> Iterator[subprocess.Popen[bytes]]:
    """Start the decoder's process, and end it with the block."""
    packages = Path(PIL.__file__).parents[1]
    with convert_os_errors(name, "read"):
        process = start_python("-I", "-S", decoder.__file__, str(limit), str(packages), stdin=file)
    alarm = threading.Timer(TIMEOUT_SECONDS, process.kill)
    alarm.daemon = True
    alarm.start()
    try:
        with process:
            try:
                yield process
            finally:
                end_process(process)
    finally:
        alarm.cancel()


def _build_decoder_error(name: str, code: int) -> InputError:
    """Return the error for a decoder that ended before it completed its answer."""
    if -code in (getattr(signal, "SIGXCPU", 0), signal.SIGTERM, getattr(signal, "SIGKILL", 0)):
        return InputError(f"{name} takes too long to decode.")
    return InputError(f"{name} is damaged: its decoder failed.", detail=f"It ended with code {code}.")


def _read_pixels(source: IO[bytes], header: dict[str, Any]) -> Pixels:
    """Read the strips into an upright image."""
    width, height, samples = header["width"], header["height"], header["samples"]
    colors = samples - 1 if header["alpha"] else samples
    dtype = np.dtype(np.uint16 if header["maxval"] > 255 else np.uint8)
    shape = (height, width) if header["orientation"] not in (5, 6, 7, 8) else (width, height)
    result = np.empty((*shape, *((colors,) if colors > 1 else ())), dtype)
    view = _ORIENTATIONS.get(header["orientation"])
    target = view(result) if view else result
    rows = decoder.rows_per_strip(width)
    for first in range(0, height, rows):
        form = (min(rows, height - first), width, samples)
        values = _read_strip(source, form, np.dtype(header["type"]))
        if header["planes"] == 2:
            values = values.astype(np.uint16) << 8 | _read_strip(source, form, np.dtype(np.uint8))
        if header["inverted"]:
            values = header["maxval"] - values
        if header["alpha"]:
            values = _composite_on_white(values[..., :-1], values[..., -1:], header["maxval"])
        target[first : first + rows] = values if colors > 1 else values[..., 0]
    return result


def _read_strip(source: IO[bytes], shape: tuple[int, ...], dtype: np.dtype[Any]) -> Pixels:
    values = np.empty(shape, dtype)
    if source.readinto(values.reshape(-1).view(np.uint8).data) != values.nbytes:  # type: ignore[attr-defined]
        raise EOFError
    return values


def _composite_on_white(colors: Pixels, alpha: Pixels, white: int) -> Pixels:
    """Composite on white, rounded to nearest; in strips, since the products need twice as many bits."""
    result = np.empty(colors.shape, colors.dtype)
    rows = max(1, _STRIP_BYTES // max(1, 8 * colors[0].size))
    for first in range(0, colors.shape[0], rows):
        strip = slice(first, first + rows)
        weight = alpha[strip].astype(np.uint64)
        result[strip] = (colors[strip] * weight + white * (white - weight) + white // 2) // white
    return result
