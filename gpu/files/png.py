"""PNG writer: 8 bits through Pillow; 16 bits directly, because Pillow cannot write 16-bit color.

Source: the PNG specification (ISO/IEC 15948), chunks IHDR, IDAT and IEND.
"""

from __future__ import annotations

import struct
import zlib
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import PIL.Image

Pixels = npt.NDArray[Any]

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_GRAY, _RGB = 0, 2
_FILTER_UP = 2
_STRIP_BYTES = 2**22


def write(file: IO[bytes], pixels: Pixels) -> None:
    """Write an image of shape (height, width) or (height, width, 3), uint8 or uint16, with white at the maximum."""
    if pixels.dtype == np.uint8:
        PIL.Image.fromarray(np.ascontiguousarray(pixels)).save(file, "PNG")
    else:
        _write_16_bit(file, pixels)


def _write_16_bit(file: IO[bytes], pixels: Pixels) -> None:
    height, width = pixels.shape[:2]
    file.write(_SIGNATURE)
    kind = _GRAY if pixels.ndim == 2 else _RGB
    _write_chunk(file, b"IHDR", struct.pack(">IIBBBBB", width, height, 16, kind, 0, 0, 0))
    compressor = zlib.compressobj(6)
    rows = max(1, _STRIP_BYTES // pixels[0].nbytes)
    above = np.zeros((1, pixels[0].nbytes), np.uint8)
    for first in range(0, height, rows):
        strip = pixels[first : first + rows].astype(">u2").view(np.uint8).reshape(-1, pixels[0].nbytes)
        # Store each row as the difference from the row above, which compresses better.
        filtered = np.empty((strip.shape[0], strip.shape[1] + 1), np.uint8)
        filtered[:, 0] = _FILTER_UP
        np.subtract(strip, np.concatenate([above, strip[:-1]]), out=filtered[:, 1:])
        above = strip[-1:]
        if packed := compressor.compress(filtered.tobytes()):
            _write_chunk(file, b"IDAT", packed)
    _write_chunk(file, b"IDAT", compressor.flush())
    _write_chunk(file, b"IEND", b"")


def _write_chunk(file: IO[bytes], kind: bytes, data: bytes) -> None:
    file.write(struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)))
