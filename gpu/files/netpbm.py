"""The Netpbm formats PBM, PGM and PPM, plain (P1 to P3) and raw (P4 to P6), with exact values.

Pillow supports them too, but it rescales every value if white is not 255 or 65535, one pixel at a time, and reduces
16-bit color to 8 bits. Here values are not changed, and a raw file is read in one operation.

Source: the format descriptions of the Netpbm project, pgm(5) and ppm(5).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from gpu.base.errors import InputError
from gpu.files.file_access import open_for_reading

Pixels = npt.NDArray[Any]

MAGICS = tuple(f"P{digit}".encode() for digit in range(1, 7))
_WHITESPACE = (b" ", b"\t", b"\n", b"\v", b"\f", b"\r")
_BLOCK_BYTES = 2**20
_MAX_HEADER_BYTES = 2**16


@dataclass(frozen=True)
class Header:
    """Header of a file; `offset` is the position of the first pixel."""

    magic: str
    width: int
    height: int
    maxval: int
    offset: int

    @property
    def plain(self) -> bool:
        """Whether the values are decimal text."""
        return self.magic in ("P1", "P2", "P3")

    @property
    def bitmap(self) -> bool:
        """Whether a pixel is one bit, with 1 for black."""
        return self.magic in ("P1", "P4")

    @property
    def shape(self) -> tuple[int, ...]:
        """The array's shape: (height, width), or (height, width, 3) for color."""
        color = (3,) if self.magic in ("P3", "P6") else ()
        return (self.height, self.width, *color)

    @property
    def dtype(self) -> np.dtype[Any]:
        """uint8, or uint16 if white is above 255."""
        return np.dtype(np.uint16 if self.maxval > 255 else np.uint8)

    @property
    def samples(self) -> int:
        """Number of values of all pixels."""
        return self.width * self.height * (3 if len(self.shape) == 3 else 1)

    @property
    def minimum_bytes(self) -> int:
        """Minimum number of bytes of the pixels in the file."""
        if self.magic == "P4":
            return self.height * -(-self.width // 8)
        if self.magic == "P1":
            return self.samples
        return 2 * self.samples - 1 if self.plain else self.samples * self.dtype.itemsize


def is_netpbm(start: bytes) -> bool:
    """Return whether a file that begins with these bytes has one of the six formats."""
    return start[:2] in MAGICS and (len(start) == 2 or start[2:3] in (*_WHITESPACE, b"#"))


def read(path: Path, name: str, limit: int) -> tuple[Pixels, int]:
    """Read a Netpbm file's first image.

    Parameters
    ----------
    name : str
        Name of the file in error messages.
    limit : int
        Most pixels that are accepted.

    Returns
    -------
    pixels : ndarray of uint8 or uint16, shape (height, width) or (height, width, 3)
        Values as in the file; 0 and 255 for a bitmap.
    maxval : int
        The value of white.

    Raises
    ------
    InputError
        If the file violates its format. A header that declares more pixels than the file contains is refused before
        memory is allocated.
    """
    with open_for_reading(path) as file:
        header = _read_header(file, name)
        if header.width == 0 or header.height == 0:
            raise InputError(f"{name} has no pixels: its header says {header.width} x {header.height}.")
        if header.width * header.height > limit:
            raise build_size_error(name, header.width, header.height, limit)
        size = os.fstat(file.fileno()).st_size
        offset = _skip_comment_after_maxval(file, header, size)
        if size - offset < header.minimum_bytes:
            raise build_truncation_error(name, header.width, header.height, header.minimum_bytes, size - offset)
        file.seek(offset)
        if header.magic == "P1":
            pixels = _read_plain_bitmap(file, header, name)
        elif header.plain:
            pixels = _read_plain(file, header, name)
        else:
            pixels = _read_raw(file, header, name)
    if header.bitmap:
        return pixels, 255
    brightest = int(pixels.max())
    if brightest > header.maxval:
        raise InputError(f"{name} has the value {brightest}, but its header declares {header.maxval} as white.")
    return pixels, header.maxval


def read_layout(path: Path, name: str) -> Header:
    """Return the layout of a raw gray (P5) or color (P6) file, to read it by rows.

    Raises
    ------
    InputError
        If the file has another format, or is shorter than its header declares.
    """
    with open_for_reading(path) as file:
        header = _read_header(file, name)
        size = os.fstat(file.fileno()).st_size
        offset = _skip_comment_after_maxval(file, header, size)
    if header.magic not in ("P5", "P6") or not header.samples:
        raise InputError(f"{name} is not a raw PGM or PPM file with pixels, which can be read by rows.")
    if size - offset < header.minimum_bytes:
        raise build_truncation_error(name, header.width, header.height, header.minimum_bytes, size - offset)
    return replace(header, offset=offset)


def build_size_error(name: str, width: int, height: int, limit: int) -> InputError:
    """Return the error for an image of too many pixels.

    Parameters
    ----------
    name : str
        The file's name.
    width, height : int
        The image's size in pixels.
    limit : int
        The most pixels of an image.
    """
    return InputError(
        f"{name} is too large: {width} x {height} is {width * height / 2**20:.0f} Mpixel, "
        f"the limit is {limit // 2**20} Mpixel."
    )


def build_truncation_error(name: str, width: int, height: int, needed: int, available: int) -> InputError:
    """Return the error for a file that is shorter than its header declares.

    Parameters
    ----------
    name : str
        The file's name.
    width, height : int
        Pixels according to the header.
    needed, available : int
        Bytes that they take at least, and bytes after the header.
    """
    return InputError(
        f"{name} is truncated: its header declares {width} x {height} pixels, at least {needed} bytes, "
        f"but only {available} follow."
    )


def _read_header(file: IO[bytes], name: str) -> Header:
    magic = file.read(2).decode("latin-1")
    fields = ("width", "height") if magic in ("P1", "P4") else ("width", "height", "maxval")
    values = [_read_number(file, name, field) for field in fields]
    maxval = values[2] if len(values) == 3 else 1
    if not 1 <= maxval <= 65535:
        raise InputError(f"{name} has an invalid header: its maxval is {maxval}, but must be 1 to 65535.")
    return Header(magic, values[0], values[1], maxval, file.tell())


def _read_number(file: IO[bytes], name: str, field: str) -> int:
    """Read a decimal number and the character after it, which may be a comment that ends with its line."""
    digits = b""
    while file.tell() < _MAX_HEADER_BYTES:
        character = file.read(1)
        if character == b"#":
            while character not in (b"\n", b"\r", b"") and file.tell() < _MAX_HEADER_BYTES:
                character = file.read(1)
        if character.isdigit() and len(digits) < 10:
            digits += character
        elif character and character in _WHITESPACE:
            if digits:
                return int(digits)
        elif not character:
            raise InputError(f"{name} is truncated: it ends before the {field} in its header.")
        else:
            break
    raise InputError(f"{name} has an invalid header: its {field} is not a number.")


def _skip_comment_after_maxval(file: IO[bytes], header: Header, size: int) -> int:
    """Return the offset of the pixels.

    A comment between the header's last number and raw pixels looks like pixels; it is a comment if the file has exactly
    the declared length with it, but not without it.
    """
    if header.plain or size - header.offset == header.minimum_bytes:
        return header.offset
    comments = re.match(rb"(?:\s*#[^\r\n]*(?:\r\n|\r|\n))+", file.read(_MAX_HEADER_BYTES))
    if comments and size - header.offset - comments.end() == header.minimum_bytes:
        return header.offset + comments.end()
    return header.offset


def _read_raw(file: IO[bytes], header: Header, name: str) -> Pixels:
    data = np.fromfile(file, np.uint8, header.minimum_bytes)
    if data.size != header.minimum_bytes:  # the file became shorter
        raise build_truncation_error(name, header.width, header.height, header.minimum_bytes, data.size)
    if header.magic == "P4":
        packed = data.reshape(header.height, -(-header.width // 8))
        pixels = np.unpackbits(packed, axis=1, count=header.width)
        return np.subtract(255, np.multiply(pixels, 255, out=pixels), out=pixels)
    pixels = data.view(header.dtype).reshape(header.shape)
    if header.dtype.itemsize == 2 and np.little_endian:
        pixels.byteswap(inplace=True)
    return pixels


def _read_blocks(file: IO[bytes]) -> Iterator[bytes]:
    """Yield a plain raster in blocks that end at whitespace, without comments; text without whitespace is one block."""
    rest, comment = b"", b""
    while block := file.read(_BLOCK_BYTES):
        block = comment + block
        comment = b"#" if block.rfind(b"#") > max(block.rfind(b"\n"), block.rfind(b"\r")) else b""
        block = rest + (_blank_comments(block) if b"#" in block else block)
        # Text may follow the pixels on separate lines.
        end = max(block.rfind(b"\n"), block.rfind(b"\r")) + 1
        end = end or max(block.rfind(character) for character in _WHITESPACE) + 1 or len(block)
        rest = block[end:]
        yield block[:end]
    yield rest


def _blank_comments(block: bytes) -> bytes:
    letters = np.frombuffer(block, np.uint8)
    positions = np.arange(letters.size, dtype=np.int32)
    lines = np.maximum.accumulate(np.where((letters == ord("\n")) | (letters == ord("\r")), positions, -1))
    comments = np.maximum.accumulate(np.where(letters == ord("#"), positions, -1))
    return np.where(comments > lines, np.uint8(ord(" ")), letters).tobytes()


def _read_plain(file: IO[bytes], header: Header, name: str) -> Pixels:
    pixels = np.empty(header.samples, header.dtype)
    filled = 0
    for block in _read_blocks(file):
        if stray := re.search(rb"[^0-9\s]+", block):
            raise InputError(f"{name} has {_format_excerpt(stray[0])} instead of a number.")
        if not block.strip():
            continue
        values = np.fromstring(block, np.int64, sep=" ")[: header.samples - filled]
        if (values > header.maxval).any():
            raise InputError(f"{name} has the value {values.max()}, but its header declares {header.maxval} as white.")
        pixels[filled : filled + values.size] = values
        filled += values.size
        if filled == header.samples:
            return pixels.reshape(header.shape)
    raise InputError(f"{name} is truncated: its header declares {header.samples} numbers, but only {filled} follow.")


def _read_plain_bitmap(file: IO[bytes], header: Header, name: str) -> Pixels:
    """Read a P1 raster, in which digits need no separators."""
    pixels = np.empty(header.samples, np.uint8)
    filled = 0
    for block in _read_blocks(file):
        digits = block.translate(None, b"".join(_WHITESPACE))
        if stray := re.search(rb"[^01]+", digits):
            raise InputError(f"{name} has {_format_excerpt(stray[0])} instead of 0 or 1.")
        values = np.frombuffer(digits, np.uint8)[: header.samples - filled]
        pixels[filled : filled + values.size] = np.where(values == ord("1"), 0, 255)
        filled += values.size
        if filled == header.samples:
            return pixels.reshape(header.shape)
    raise InputError(f"{name} is truncated: its header declares {header.samples} digits, but only {filled} follow.")


def _format_excerpt(stray: bytes) -> str:
    return repr(stray[:12].decode("latin-1"))


def write(file: IO[bytes], pixels: Pixels, maxval: int) -> None:
    """Write a raw PGM (pixels of shape (height, width)) or PPM ((height, width, 3)).

    If `maxval` is above 255, each value takes two bytes, the high one first.
    """
    magic = "P5" if pixels.ndim == 2 else "P6"
    file.write(f"{magic}\n{pixels.shape[1]} {pixels.shape[0]}\n{maxval}\n".encode())
    dtype = np.dtype(">u2" if maxval > 255 else np.uint8)
    rows = max(1, _BLOCK_BYTES // max(1, pixels[0].nbytes))
    for first in range(0, pixels.shape[0], rows):
        file.write(pixels[first : first + rows].astype(dtype).tobytes())
