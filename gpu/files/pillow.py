"""Decode an image file through Pillow into an array of 8 or 16 bits, without a whole extra copy on the way."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import PIL.BmpImagePlugin
import PIL.GifImagePlugin
import PIL.Image
import PIL.ImageFile
import PIL.JpegImagePlugin
import PIL.PngImagePlugin
import PIL.TiffImagePlugin
import PIL.WebPImagePlugin

from gpu.errors import InputError
from gpu.files import netpbm
from gpu.files.opening import reading

Pixels = npt.NDArray[Any]

# Pillow knows more formats; some of them start other programs, and none of those is a picture to filter.
FORMATS = tuple(name for name in ("PNG", "JPEG", "TIFF", "BMP", "GIF", "WEBP") if name in PIL.Image.OPEN)

_TIFF_BITS, _TIFF_COMPRESSION, _TIFF_PHOTOMETRIC, _ORIENTATION = 258, 259, 262, 274
_WHITE_IS_ZERO = 0
_STRIP_BYTES = 2**22
# The most that one byte of a file can become: deflate's limit, and JPEG's one bit a block of 64 pixels.
_DEFLATE_RATIO = 1032
_JPEG_PIXELS_PER_BYTE = 512

# The raw modes with which Pillow keeps the high byte of each 16-bit value, and those that give it the low byte.
_LOW_BYTES = {
    f"{colors};16{end}": f"{colors};16{other}" for colors in ("RGB", "RGBA", "RGBX") for end, other in ("LB", "BL")
}
_LOW_BYTES |= {f"{mode[:-1]}N": low for mode, low in _LOW_BYTES.items() if mode[-1] == sys.byteorder[0].upper()}
_GRAY_ALPHA = "LA;16B"

_ORIENTED: dict[int, Callable[[Pixels], Pixels]] = {
    2: np.fliplr,
    3: lambda pixels: np.rot90(pixels, 2),
    4: np.flipud,
    5: lambda pixels: np.swapaxes(pixels, 0, 1),
    6: lambda pixels: np.rot90(pixels, -1),
    7: lambda pixels: np.rot90(np.swapaxes(pixels, 0, 1), 2),
    8: np.rot90,
}


def decode(path: Path, name: str, limit: int) -> tuple[Pixels, int]:
    """Decode an image file.

    Parameters
    ----------
    path : Path
    name : str
        What an error's sentence calls the file.
    limit : int
        The most pixels allowed.

    Returns
    -------
    pixels : ndarray of uint8 or uint16, shape (height, width) or (height, width, 3)
    maxval : int
        The value of white.

    Raises
    ------
    InputError
        When the file is no image, is damaged, or has no pixels or too many.
    """
    try:
        with _opened(path) as file:
            _check_size(file, path.stat().st_size, name, limit)
            pixels, maxval = _decode(file, path, name)
            orientation = _orientation(file)
    except (InputError, MemoryError, FileNotFoundError, PermissionError):
        raise
    except PIL.UnidentifiedImageError:
        raise InputError(f"{name} is not an image that can be read: no PGM, PPM, PNG, JPEG or TIFF.") from None
    except Exception as error:  # Pillow's decoders raise a dozen kinds on a damaged file
        reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise InputError(f"{name} is damaged or cut short: {reason}.") from None
    if orientation in _ORIENTED:
        pixels = np.ascontiguousarray(_ORIENTED[orientation](pixels))
    return pixels, maxval


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[PIL.ImageFile.ImageFile]:
    # By a name, Pillow would map the file: that reads turned TIFFs with the wrong row length, and a file that shrinks
    # meanwhile would end the process.
    with reading(path) as stream, PIL.Image.open(stream, formats=FORMATS) as file:
        yield file


def _orientation(file: PIL.Image.Image) -> int:
    """Return EXIF's orientation, 1 to 8; a broken EXIF block is no reason to refuse a picture."""
    with contextlib.suppress(Exception):
        return int(file.getexif().get(_ORIENTATION, 1))
    return 1


def _check_size(file: PIL.ImageFile.ImageFile, file_bytes: int, name: str, limit: int) -> None:
    width, height = file.size
    if width < 1 or height < 1:
        raise InputError(f"{name} has no pixels: its header says {width} x {height}.")
    if width * height > limit:
        raise netpbm.too_large(name, width, height, limit)
    needed = _least_bytes(file, width * height)
    if needed > file_bytes:
        raise netpbm.cut_short(name, width, height, needed, file_bytes)


def _least_bytes(file: PIL.ImageFile.ImageFile, pixels: int) -> int:
    """Return the fewest bytes in which the format can hold so many pixels; 0 where there is no such bound."""
    if file.format == "PNG":
        bits = 1 if file.mode in ("1", "P") else 8
        return pixels * bits // 8 // _DEFLATE_RATIO
    if file.format in ("JPEG", "MPO"):
        return pixels // _JPEG_PIXELS_PER_BYTE
    if file.format == "TIFF":
        tags: Any = file.tag_v2  # type: ignore[attr-defined]
        if tags.get(_TIFF_COMPRESSION, 1) == 1:
            return pixels * int(sum(tags.get(_TIFF_BITS, (1,)))) // 8
    return 0


def _decode(file: PIL.ImageFile.ImageFile, path: Path, name: str) -> tuple[Pixels, int]:
    mode, raw_mode = file.mode, _raw_mode(file)
    if mode.startswith("I;16"):
        return _sixteen_bit_gray(file, raw_mode)
    if mode in ("I", "F"):
        kind = "floating-point" if mode == "F" else "signed or 32-bit"
        raise InputError(f"{name} holds {kind} values; save it with 8 or 16 bits a value, unsigned.")
    if raw_mode == _GRAY_ALPHA:
        interleaved = _other_bytes(path, "RGBA").view(">u2").astype(np.uint16)
        return _on_white(interleaved[..., :1], interleaved[..., 1:], 65535)[..., 0], 65535
    if raw_mode in _LOW_BYTES and mode in ("RGB", "RGBA"):
        values = _array(file).astype(np.uint16)
        values <<= 8
        values |= _other_bytes(path, _LOW_BYTES[raw_mode])
        return (_on_white(values[..., :3], values[..., 3:], 65535) if mode == "RGBA" else values), 65535
    if mode == "LA":
        values = _array(file)
        return _on_white(values[..., :1], values[..., 1:], 255)[..., 0], 255
    if mode == "RGBA" or (mode == "P" and "transparency" in file.info) or mode in ("PA", "La", "RGBa"):
        values = _array(file if mode == "RGBA" else file.convert("RGBA"))
        return _on_white(values[..., :3], values[..., 3:], 255), 255
    if mode == "1":
        return _array(file, "L"), 255
    return _array(file, None if mode in ("L", "RGB") else "RGB"), 255


def _raw_mode(file: PIL.ImageFile.ImageFile) -> str:
    """Return how the pixels lie in the file, in Pillow's words."""
    arguments = file.tile[0].args if file.tile else ""
    first = arguments[0] if isinstance(arguments, tuple) and arguments else arguments
    return first if isinstance(first, str) else ""


def _other_bytes(path: Path, raw_mode: str) -> Pixels:
    """Decode a file again, other bytes of each pixel this time; `raw_mode` is as wide as the file's own."""
    with _opened(path) as file:
        tiles = []
        for tile in file.tile:
            arguments = (raw_mode, *tile.args[1:]) if isinstance(tile.args, tuple) else raw_mode
            tiles.append(tile._replace(args=arguments))
        file.tile = tiles
        return _array(file)


def _sixteen_bit_gray(file: PIL.ImageFile.ImageFile, raw_mode: str) -> tuple[Pixels, int]:
    maxval = 4095 if raw_mode == "I;12" else 65535
    tags = getattr(file, "tag_v2", {})
    inverted = tags.get(_TIFF_PHOTOMETRIC) == _WHITE_IS_ZERO
    pixels = _array(file).astype(np.uint16, copy=False)
    return (np.subtract(maxval, pixels, out=pixels) if inverted else pixels), maxval


def _array(image: PIL.Image.Image, mode: str | None = None) -> Pixels:
    """Return an image's pixels, converted to `mode`; strip by strip, Pillow's own way to an array copies it twice."""
    image.load()
    width, height = image.size
    rows = max(1, _STRIP_BYTES // (4 * width))

    def strip(first: int) -> Pixels:
        part = image.crop((0, first, width, min(first + rows, height)))
        return np.asarray(part.convert(mode) if mode else part)

    top = strip(0)
    result = np.empty((height, *top.shape[1:]), top.dtype)
    result[:rows] = top
    for first in range(rows, height, rows):
        result[first : first + rows] = strip(first)
    return result


def _on_white(colors: Pixels, alpha: Pixels, white: int) -> Pixels:
    """Composite on white, rounded to nearest; strip by strip, since the products need twice the bits."""
    result = np.empty(colors.shape, colors.dtype)
    rows = max(1, _STRIP_BYTES // max(1, 8 * colors[0].size))
    for first in range(0, colors.shape[0], rows):
        strip = slice(first, first + rows)
        weight = alpha[strip].astype(np.uint64)
        result[strip] = (colors[strip] * weight + white * (white - weight) + white // 2) // white
    return result
