"""Image files for tests, and how a file is refused."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest

from gpu.base.errors import InputError
from gpu.files.images import read_image

RANDOM = np.random.default_rng(2)
GRAY8 = RANDOM.integers(0, 256, (19, 31), np.uint8)
RGB8 = RANDOM.integers(0, 256, (19, 31, 3), np.uint8)
GRAY16 = RANDOM.integers(0, 65536, (19, 31), np.uint16)
RGB16 = RANDOM.integers(0, 65536, (19, 31, 3), np.uint16)


def write_file(folder, data: bytes, name: str = "image.pgm"):
    path = folder / name
    path.write_bytes(data)
    return path


def refusal(path) -> str:
    with pytest.raises(InputError) as caught:
        read_image(path)
    assert "\n" not in caught.value.message
    assert caught.value.message.endswith(".")
    return caught.value.message


def png(width: int, height: int, depth: int, kind: int, rows: bytes, *, size: bytes = b"") -> bytes:
    """Return a PNG file made by hand; `rows` with a filter byte before each."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + (size or chunk(b"IDAT", zlib.compress(rows)))
        + chunk(b"IEND", b"")
    )


def big_endian_rows(values: np.ndarray) -> bytes:
    return b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
