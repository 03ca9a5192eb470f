"""TIFF images, tiled or in strips, some rows at a time: tifffile says where what lies, the rest is read here."""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from gpu.engines.base import Array
from gpu.errors import EngineUnavailableError, InputError
from gpu.files.opening import os_errors, reading, write_back

TIFF = (".tif", ".tiff")
TILE = 256
"""Rows and columns of the tiles that are written."""

LARGEST_SEGMENT = 2**28
"""Bytes of a tile, or strip, which is read as a whole whatever is wanted of it."""

_PLAIN, _DEFLATE = 1, (8, 32946)
_NO_PREDICTOR, _HORIZONTAL = 1, 2
_KINDS = {(1, 1): "gray", (2, 3): "RGB"}
"""By what samples mean and how many a pixel has."""


@dataclass(frozen=True)
class TiffRows:
    """Rows of an image; tiles and strips, here segments, are read one after the other.

    Parameters
    ----------
    path : str
    shape : tuple of int
        Rows, columns, and three samples of a colored image.
    dtype : str
        As it stands in the file.
    segment : tuple of int
        Rows and columns of a segment.
    tiled : bool
        Tiles are all as large; the last strip ends with the image.
    deflated, differences : bool
        Whether segments are compressed, and whether a sample stands as its difference from the one to its left.
    """

    path: str
    shape: tuple[int, ...]
    dtype: str
    segment: tuple[int, int]
    tiled: bool
    deflated: bool
    differences: bool

    def read(self, start: int, stop: int) -> Array:
        (down, across), (height, width) = self.segment, self.shape[:2]
        beside = -(-width // across)
        found = np.empty((stop - start, *self.shape[1:]), np.dtype(self.dtype).newbyteorder("="))
        with reading(self.path) as file:
            page = _page(file, self.path)
            offsets, counts = page.dataoffsets, page.databytecounts
            for number in range(start // down * beside, -(-stop // down) * beside):
                top, left = number // beside * down, number % beside * across
                rows = down if self.tiled else min(down, height - top)
                file.seek(offsets[number])
                values = self._expanded(file.read(min(counts[number], 2 * LARGEST_SEGMENT)), rows)
                first, last, wide = max(start, top), min(stop, top + rows), min(across, width - left)
                found[first - start : last - start, left : left + wide] = values[first - top : last - top, :wide]
        return found

    def _expanded(self, data: bytes, rows: int) -> Array:
        """Return a segment's pixels."""
        kind, shape = np.dtype(self.dtype), (rows, self.segment[1], *self.shape[2:])
        size = math.prod(shape) * kind.itemsize
        try:
            expanded = zlib.decompressobj().decompress(data, size) if self.deflated else data[:size]
        except zlib.error as error:
            raise InputError(f"{Path(self.path).name} is damaged: {error}.") from None
        if len(expanded) < size:
            raise InputError(f"{Path(self.path).name} is damaged: a part of its pixels is missing.")
        values: Array = np.frombuffer(expanded, kind).reshape(shape)
        return values.cumsum(axis=1, dtype=kind.newbyteorder("=")) if self.differences else values


def open_tiff(path: str) -> TiffRows:
    """Find out how an image lies in its file; of several, the first.

    Raises
    ------
    InputError
        Where it is none, or one that is not read: gray and RGB are, of 8 and 16 bits, as they are or by deflate.
    EngineUnavailableError
        Where tifffile is not installed.
    """
    name = Path(path).name
    with reading(path) as file:
        page = _page(file, path)
        try:
            kind = _KINDS.get((int(page.photometric), page.samplesperpixel))
            together = page.samplesperpixel == 1 or int(page.planarconfig) == 1
            if kind is None or str(page.dtype) not in ("uint8", "uint16") or not together or page.imagedepth != 1:
                raise InputError(f"{name} is not read: gray and RGB images of 8 or 16 bits are, in one plane.")
            compression, predictor = int(page.compression), int(page.predictor)
            if compression not in (_PLAIN, *_DEFLATE) or predictor not in (_NO_PREDICTOR, _HORIZONTAL):
                raise InputError(
                    f"{name} is compressed in a way that is not read: as they are, or by deflate, images are."
                )
            down = page.tilelength if page.is_tiled else min(page.rowsperstrip, page.imagelength)
            across = page.tilewidth if page.is_tiled else page.imagewidth
            segments = -(-page.imagelength // max(down, 1)) * -(-page.imagewidth // max(across, 1))
            if min(down, across, page.imagelength, page.imagewidth) < 1 or len(page.dataoffsets) < segments:
                raise InputError(f"{name} is damaged: a part of its pixels is missing.")
            stored = np.dtype(page.dtype).newbyteorder(page.parent.byteorder)
            if down * across * page.samplesperpixel * stored.itemsize > LARGEST_SEGMENT:
                most = f"{LARGEST_SEGMENT >> 20} MB"
                raise InputError(f"{name} has tiles or strips of more than {most}, which are read as a whole.")
            differences = predictor == _HORIZONTAL and compression != _PLAIN
            shape = (page.imagelength, page.imagewidth, *([3] if kind == "RGB" else []))
            deflated = compression in _DEFLATE
            return TiffRows(path, shape, stored.str, (down, across), bool(page.is_tiled), deflated, differences)
        except InputError:
            raise
        except Exception as error:  # what is none fails in a dozen ways
            raise InputError(f"{name} is no TIFF image that can be read.", detail=str(error)) from None


@dataclass(frozen=True)
class TiffTarget:
    """Rows of an image that is there, in tiles as they are, after `offset` bytes; a tile is written by one worker."""

    path: str
    offset: int
    shape: tuple[int, ...]
    dtype: str

    def write(self, start: int, rows: Array) -> None:
        kind, beside = np.dtype(self.dtype), -(-self.shape[1] // TILE)
        tile = np.zeros((TILE, TILE, *self.shape[2:]), kind)
        with os_errors(Path(self.path).name, "written"), open(self.path, "r+b") as file:
            first = self.offset + start // TILE * beside * tile.nbytes
            file.seek(first)
            for top in range(0, len(rows), TILE):
                for left in range(0, self.shape[1], TILE):
                    values = rows[top : top + TILE, left : left + TILE]
                    tile[:] = 0
                    tile[: values.shape[0], : values.shape[1]] = values
                    file.write(tile.data)
            write_back(file, first, file.tell() - first)


def create_tiff(path: str, shape: tuple[int, ...], dtype: str) -> TiffTarget:
    """Make an image of zeros."""
    tifffile, kind = _library(), np.dtype(dtype).newbyteorder("<")
    meaning = "rgb" if len(shape) == 3 else "minisblack"
    layout = {"tile": (TILE, TILE), "photometric": meaning, "metadata": None, "byteorder": "<"}
    large = math.prod(shape) * kind.itemsize > 2**31  # tiles are more than the pixels, and offsets have 32 bits
    tifffile.imwrite(path, None, shape=shape, dtype=kind, bigtiff=large, **layout)
    with tifffile.TiffFile(path) as file:
        return TiffTarget(path, file.pages.first.dataoffsets[0], shape, kind.str)


def _page(file: IO[bytes], path: str) -> Any:
    try:
        return _library().TiffFile(file, name=Path(path).name).pages.first
    except EngineUnavailableError:
        raise
    except Exception as error:  # what is none fails in a dozen ways
        raise InputError(f"{Path(path).name} is no TIFF image that can be read.", detail=str(error)) from None


def _library() -> Any:
    try:
        import tifffile
    except ImportError as error:
        raise EngineUnavailableError(
            f"tifffile, which knows TIFF, is not installed here: {error}.",
            advice="`pip install -r requirements-dask.txt` installs it.",
        ) from error
    return tifffile
