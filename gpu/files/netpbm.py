"""The Netpbm formats PBM, PGM and PPM, plain (P1 to P3) and raw (P4 to P6), read and written value by value.

Pillow reads them too, but it rescales every value whose white is not 255 or 65535, one pixel at a time, and squeezes
16-bit color to 8 bits. Here a value in the file is the value in the array, and a raw file is read in one go.

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

from gpu.errors import InputError
from gpu.files.opening import reading

Pixels = npt.NDArray[Any]

MAGICS = tuple(f"P{digit}".encode() for digit in range(1, 7))
_WHITESPACE = (b" ", b"\t", b"\n", b"\v", b"\f", b"\r")
_BLOCK_BYTES = 2**20
_LONGEST_HEADER = 2**16


@dataclass(frozen=True)
class Header:
    """What stands before the pixels; `offset` is where they begin."""

    magic: str
    width: int
    height: int
    maxval: int
    offset: int

    @property
    def plain(self) -> bool:
        """Whether the values are written as decimal text."""
        return self.magic in ("P1", "P2", "P3")

    @property
    def bitmap(self) -> bool:
        """Whether a pixel is one bit, 1 being black."""
        return self.magic in ("P1", "P4")

    @property
    def shape(self) -> tuple[int, ...]:
        """The array's shape: (height, width), or (height, width, 3) for color."""
        color = (3,) if self.magic in ("P3", "P6") else ()
        return (self.height, self.width, *color)

    @property
    def dtype(self) -> np.dtype[Any]:
        """uint8, or uint16 where white is above 255."""
        return np.dtype(np.uint16 if self.maxval > 255 else np.uint8)

    @property
    def samples(self) -> int:
        """How many numbers the pixels hold."""
        return self.width * self.height * (3 if len(self.shape) == 3 else 1)

    @property
    def least_bytes(self) -> int:
        """The fewest bytes that so many pixels can take in the file."""
        if self.magic == "P4":
            return self.height * -(-self.width // 8)
        if self.magic == "P1":
            return self.samples
        return 2 * self.samples - 1 if self.plain else self.samples * self.dtype.itemsize


def is_netpbm(start: bytes) -> bool:
    """Whether a file that begins so is one of the six formats."""
    return start[:2] in MAGICS and (len(start) == 2 or start[2:3] in (*_WHITESPACE, b"#"))


def read(path: Path, name: str, limit: int) -> tuple[Pixels, int]:
    """Read a Netpbm file's first image.

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
        The values as they stand in the file; a bitmap's are 0 and 255.
    maxval : int
        The value of white.

    Raises
    ------
    InputError
        When the file breaks its format. A header that promises more than the file holds is refused before any memory
        is taken.
    """
    with reading(path) as file:
        header = _read_header(file, name)
        if header.width == 0 or header.height == 0:
            raise InputError(f"{name} has no pixels: its header says {header.width} x {header.height}.")
        if header.width * header.height > limit:
            raise too_large(name, header.width, header.height, limit)
        size = os.fstat(file.fileno()).st_size
        offset = _skip_comment_after_maxval(file, header, size)
        if size - offset < header.least_bytes:
            raise cut_short(name, header.width, header.height, header.least_bytes, size - offset)
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
        raise InputError(f"{name} holds the value {brightest}, above the {header.maxval} that its header calls white.")
    return pixels, header.maxval


def layout(path: Path, name: str) -> Header:
    """Return how a gray raw file's (P5's) or a color one's (P6's) pixels lie in it, to be read some rows at a time.

    Raises
    ------
    InputError
        Where it is another kind of file, or shorter than its header promises.
    """
    with reading(path) as file:
        header = _read_header(file, name)
        size = os.fstat(file.fileno()).st_size
        offset = _skip_comment_after_maxval(file, header, size)
    if header.magic not in ("P5", "P6") or not header.samples:
        raise InputError(f"{name} is not a raw PGM or PPM file with pixels, which can be read by rows.")
    if size - offset < header.least_bytes:
        raise cut_short(name, header.width, header.height, header.least_bytes, size - offset)
    return replace(header, offset=offset)


def too_large(name: str, width: int, height: int, limit: int) -> InputError:
    """Return the error for an image of too many pixels."""
    return InputError(
        f"{name} is too large: {width} x {height} is {width * height / 2**20:.0f} Mpixel, "
        f"and at most {limit // 2**20} are taken."
    )


def cut_short(name: str, width: int, height: int, needed: int, there: int) -> InputError:
    """Return the error for a file with fewer bytes than its header promises."""
    return InputError(
        f"{name} is cut short: its header promises {width} x {height} pixels, at least {needed} bytes, "
        f"and {there} are there."
    )


def _read_header(file: IO[bytes], name: str) -> Header:
    magic = file.read(2).decode("latin-1")
    fields = ("width", "height") if magic in ("P1", "P4") else ("width", "height", "maxval")
    values = [_read_number(file, name, field) for field in fields]
    maxval = values[2] if len(values) == 3 else 1
    if not 1 <= maxval <= 65535:
        raise InputError(f"{name} has a broken header: its maxval is {maxval}, and 1 to 65535 are allowed.")
    return Header(magic, values[0], values[1], maxval, file.tell())


def _read_number(file: IO[bytes], name: str, field: str) -> int:
    """Read a decimal number and the one character after it, where a comment counts as the line's end that closes it."""
    digits = b""
    while file.tell() < _LONGEST_HEADER:
        character = file.read(1)
        if character == b"#":
            while character not in (b"\n", b"\r", b"") and file.tell() < _LONGEST_HEADER:
                character = file.read(1)
        if character.isdigit() and len(digits) < 10:
            digits += character
        elif character and character in _WHITESPACE:
            if digits:
                return int(digits)
        elif not character:
            raise InputError(f"{name} is cut short: it ends before the {field} in its header.")
        else:
            break
    raise InputError(f"{name} has a broken header: its {field} is not a number.")


def _skip_comment_after_maxval(file: IO[bytes], header: Header, size: int) -> int:
    """Return where the pixels begin.

    A comment between the header's last number and raw pixels looks like pixels; it is one when without it the file is
    exactly as long as the header promises, and with it is not.
    """
    if header.plain or size - header.offset == header.least_bytes:
        return header.offset
    comments = re.match(rb"(?:\s*#[^\r\n]*(?:\r\n|\r|\n))+", file.read(_LONGEST_HEADER))
    if comments and size - header.offset - comments.end() == header.least_bytes:
        return header.offset + comments.end()
    return header.offset


def _read_raw(file: IO[bytes], header: Header, name: str) -> Pixels:
    data = np.fromfile(file, np.uint8, header.least_bytes)
    if data.size != header.least_bytes:  # it has become shorter
        raise cut_short(name, header.width, header.height, header.least_bytes, data.size)
    if header.magic == "P4":
        packed = data.reshape(header.height, -(-header.width // 8))
        pixels = np.unpackbits(packed, axis=1, count=header.width)
        return np.subtract(255, np.multiply(pixels, 255, out=pixels), out=pixels)
    pixels = data.view(header.dtype).reshape(header.shape)
    if header.dtype.itemsize == 2 and np.little_endian:
        pixels.byteswap(inplace=True)
    return pixels


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    """Yield a plain raster in blocks that end at whitespace, comments taken out; one without any is no numbers."""
    rest, comment = b"", b""
    while block := file.read(_BLOCK_BYTES):
        block = comment + block
        comment = b"#" if block.rfind(b"#") > max(block.rfind(b"\n"), block.rfind(b"\r")) else b""
        block = rest + (_without_comments(block) if b"#" in block else block)
        # Text may follow the pixels, in lines of its own.
        end = max(block.rfind(b"\n"), block.rfind(b"\r")) + 1
        end = end or max(block.rfind(character) for character in _WHITESPACE) + 1 or len(block)
        rest = block[end:]
        yield block[:end]
    yield rest


def _without_comments(block: bytes) -> bytes:
    letters = np.frombuffer(block, np.uint8)
    places = np.arange(letters.size, dtype=np.int32)
    lines = np.maximum.accumulate(np.where((letters == ord("\n")) | (letters == ord("\r")), places, -1))
    comments = np.maximum.accumulate(np.where(letters == ord("#"), places, -1))
    return np.where(comments > lines, np.uint8(ord(" ")), letters).tobytes()


def _read_plain(file: IO[bytes], header: Header, name: str) -> Pixels:
    pixels = np.empty(header.samples, header.dtype)
    filled = 0
    for block in _blocks(file):
        if stray := re.search(rb"[^0-9\s]+", block):
            raise InputError(f"{name} holds {_excerpt(stray[0])} where a number should be.")
        if not block.strip():
            continue
        values = np.fromstring(block, np.int64, sep=" ")[: header.samples - filled]
        if (values > header.maxval).any():
            raise InputError(
                f"{name} holds the value {values.max()}, above the {header.maxval} that its header calls white."
            )
        pixels[filled : filled + values.size] = values
        filled += values.size
        if filled == header.samples:
            return pixels.reshape(header.shape)
    raise InputError(f"{name} is cut short: its header promises {header.samples} numbers, and {filled} are there.")


def _read_plain_bitmap(file: IO[bytes], header: Header, name: str) -> Pixels:
    """Read a P1 raster, whose digits need no space between them."""
    pixels = np.empty(header.samples, np.uint8)
    filled = 0
    for block in _blocks(file):
        digits = block.translate(None, b"".join(_WHITESPACE))
        if stray := re.search(rb"[^01]+", digits):
            raise InputError(f"{name} holds {_excerpt(stray[0])} where 0 or 1 should be.")
        values = np.frombuffer(digits, np.uint8)[: header.samples - filled]
        pixels[filled : filled + values.size] = np.where(values == ord("1"), 0, 255)
        filled += values.size
        if filled == header.samples:
            return pixels.reshape(header.shape)
    raise InputError(f"{name} is cut short: its header promises {header.samples} digits, and {filled} are there.")


def _excerpt(stray: bytes) -> str:
    return repr(stray[:12].decode("latin-1"))


def write(file: IO[bytes], pixels: Pixels, maxval: int) -> None:
    """Write a raw PGM (pixels of shape (height, width)) or PPM ((height, width, 3)).

    Values above 255 take two bytes each, the high one first, as soon as `maxval` is above 255.
    """
    magic = "P5" if pixels.ndim == 2 else "P6"
    file.write(f"{magic}\n{pixels.shape[1]} {pixels.shape[0]}\n{maxval}\n".encode())
    dtype = np.dtype(">u2" if maxval > 255 else np.uint8)
    rows = max(1, _BLOCK_BYTES // max(1, pixels[0].nbytes))
    for first in range(0, pixels.shape[0], rows):
        file.write(pixels[first : first + rows].astype(dtype).tobytes())
