"""Image files: read with unchanged values, converted for display, and written atomically.

Supported are PGM, PPM and PBM (`gpu.files.netpbm`: any maxval, exact), and through Pillow PNG, JPEG, TIFF, BMP, GIF
and WebP; of a file with several images, the first. Formats with more than gray or RGB are converted as follows:

- 16-bit gray, color and alpha keep their 16 bits, in PNG and TIFF.
- Transparency is composited on white. A color key (one color declared transparent) is ignored.
- A palette, CMYK, YCbCr and Lab become 8-bit RGB; 1-bit pixels become 0 and 255.
- Floating-point, signed and 32-bit values are refused, since their scale is unknown.
- EXIF's orientation is applied. Color profiles are not: kernels receive the numbers in the file.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.base.errors import InputError
from gpu.base.paths import ASSETS
from gpu.files import netpbm, png
from gpu.files.file_access import convert_os_errors, format_path, open_for_reading, replace_file
from gpu.files.pillow import decode

Pixels = npt.NDArray[Any]

MAX_PIXELS = 256 * 2**20
SAMPLES = ASSETS / "images"
DEFAULT_SAMPLE = SAMPLES / "cat.png"
READABLE = (".pgm", ".ppm", ".pbm", ".pnm", ".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".gif", ".webp")
WRITABLE = (".pgm", ".ppm", ".png")

_STRIP_PIXELS = 2**16


@dataclass(frozen=True)
class Image:
    """An image with the values of its file.

    Parameters
    ----------
    pixels : ndarray of uint8 or uint16, shape (height, width) or (height, width, 3)
    maxval : int
        The value of white, 1 to 65535; no pixel is larger.
    """

    pixels: Pixels
    maxval: int


def read_image(path: str | os.PathLike[str]) -> Image:
    """Read an image file; its content determines the format.

    Raises
    ------
    InputError
        If the file does not exist, cannot be read, is not an image, is damaged, has no pixels or more than 256 Mpixel,
        or is shorter than its header declares.
    """
    path = Path(path)
    name = format_path(path)
    with convert_os_errors(name, "read"):
        with open_for_reading(path) as file:
            start = file.read(3)
        if not start:
            raise InputError(f"{name} is empty.")
        try:
            if netpbm.is_netpbm(start):
                return Image(*netpbm.read(path, name, MAX_PIXELS))
            if path.suffix.lower() in (".pgm", ".ppm", ".pbm", ".pnm") and start[:1] == b"P":
                raise InputError(f"{name} is not a PGM or PPM file: it begins with {start[:2]!r} instead of P1 to P6.")
            return Image(*decode(path, name, MAX_PIXELS))
        except MemoryError:
            raise InputError(f"There is not enough memory for {name}.") from None


def convert_for_display(image: Image) -> npt.NDArray[np.uint8]:
    """Convert an image for display: uint8 of the same shape, with `maxval` scaled to 255.

    Pixels that already have this form are returned without a copy.
    """
    pixels = image.pixels
    if pixels.dtype == np.uint8 and image.maxval == 255:
        return pixels
    return _apply_table(pixels, _build_scale_table(pixels.dtype, image.maxval, np.dtype(np.uint8)))


def _build_scale_table(source: np.dtype[Any], maxval: int, target: np.dtype[Any]) -> Pixels:
    """Return a table that maps each value of `source` to the nearest in `target`'s range."""
    white = int(np.iinfo(target).max)
    values = np.minimum(np.arange(np.iinfo(source).max + 1, dtype=np.int64), maxval)
    return ((2 * values * white + maxval) // (2 * maxval)).astype(target)


def _apply_table(pixels: Pixels, table: Pixels) -> Pixels:
    """Return `table[pixels]`, computed in strips: at once, NumPy would create indices of eight bytes each."""
    result = np.empty(pixels.shape, table.dtype)
    flat, out = np.ascontiguousarray(pixels).reshape(-1), result.reshape(-1)
    for first in range(0, flat.size, _STRIP_PIXELS):
        strip = slice(first, first + _STRIP_PIXELS)
        np.take(table, flat[strip], out=out[strip], mode="clip")
    return result


def write_image(path: str | os.PathLike[str], pixels: Pixels, maxval: int | None = None) -> None:
    """Write an image file; the extension determines the format: .pgm (gray), .ppm (color) or .png.

    Parameters
    ----------
    path : path-like
        An existing file is replaced after the new one is complete.
    pixels : ndarray of uint8 or uint16, shape (height, width) or (height, width, 3)
    maxval : int or None
        The value of white; None means 255 for uint8 and 65535 for uint16. PGM and PPM keep the values and store
        `maxval`; above 255, with two bytes per value. PNG has no maxval: values are scaled to 8 bits, or to 16 if
        `maxval` is above 255.

    Raises
    ------
    InputError
        If the format cannot represent the pixels or the file cannot be written. Nothing is left behind then, and an
        existing file is unchanged.
    """
    path = Path(path)
    name = format_path(path)
    extension = path.suffix.lower()
    if extension not in WRITABLE:
        raise InputError(f"Cannot write {name}: its name must end in {', '.join(WRITABLE)}.")
    if pixels.dtype not in (np.uint8, np.uint16) or not (
        pixels.ndim == 2 or (pixels.ndim == 3 and pixels.shape[2] == 3)
    ):
        raise InputError(f"Cannot write {name}: {pixels.dtype} values of shape {pixels.shape} are not an image.")
    if pixels.size == 0:
        raise InputError(f"Cannot write {name}: the image has no pixels.")
    if extension in (".pgm", ".ppm") and (extension == ".pgm") != (pixels.ndim == 2):
        needed = "a color image needs .ppm or .png" if extension == ".pgm" else "a gray image needs .pgm or .png"
        raise InputError(f"Cannot write {name}: {needed}.")
    if maxval is None:
        maxval = 255 if pixels.dtype == np.uint8 else 65535
    if not 1 <= maxval <= 65535:
        raise InputError(f"Cannot write {name}: the value of white must be 1 to 65535, not {maxval}.")
    if int(pixels.max()) > maxval:
        raise InputError(f"Cannot write {name}: a pixel is above the value of white, {maxval}.")
    with replace_file(path) as file:
        if extension == ".png":
            depth, white = (np.dtype(np.uint16), 65535) if maxval > 255 else (np.dtype(np.uint8), 255)
            if (pixels.dtype, maxval) != (depth, white):
                pixels = _apply_table(pixels, _build_scale_table(pixels.dtype, maxval, depth))
            png.write(file, pixels)
        else:
            netpbm.write(file, pixels, maxval)


def sample_images() -> list[Path]:
    """Return the images that come with Lockstep, the default one first."""
    paths = sorted(path for path in SAMPLES.iterdir() if path.suffix.lower() in READABLE)
    return sorted(paths, key=lambda path: path != DEFAULT_SAMPLE)
