"""TIFF images, tiled or in strips, read and written by rows: tifffile parses the structure; pixels are read here."""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from gpu.base.errors import EngineUnavailableError, InputError
from gpu.base.installation import format_install_command
from gpu.engines.base import Array
from gpu.files.file_access import convert_os_errors, open_for_reading, write_back

TIFF = (".tif", ".tiff")
TILE = 256
"""Rows and columns of the tiles of written images."""

MAX_SEGMENT_BYTES = 2**28
"""Bytes of the largest tile or strip; it is read completely even if only a part of it is needed."""

_MAX_EXPANSION = 1032
"""Most bytes that deflate makes of one byte; a larger image uses the same bytes for many segments."""
_FREE_BYTES = 2**30
"""Bytes that an image may declare however small its file is."""
_PLAIN, _DEFLATE = 1, (8, 32946)
_NO_PREDICTOR, _HORIZONTAL = 1, 2
_COLOR_KINDS = {(1, 1): "gray", (2, 3): "RGB"}
"""Kinds of images, by photometric interpretation and samples per pixel."""


@dataclass(frozen=True)
class TiffRows:
    """Rows of an image; tiles and strips, together called segments, are read one after the other.

    Parameters
    ----------
    shape : tuple of int
        Rows, columns, and three samples if it is a color image.
    dtype : str
        Type in the file, with its byte order.
    segment : tuple of int
        Rows and columns of a segment.
    tiled : bool
        All tiles have the same size; the last strip may have fewer rows.
    is_deflated, stores_differences : bool
        Whether segments are compressed, and whether samples are stored as differences from the left neighbor.
    """

    path: str
    shape: tuple[int, ...]
    dtype: str
    segment: tuple[int, int]
    tiled: bool
    is_deflated: bool
    stores_differences: bool

    def read(self, start: int, stop: int) -> Array:
        (down, across), (height, width) = self.segment, self.shape[:2]
        segments_per_row = -(-width // across)
        pixels = np.empty((stop - start, *self.shape[1:]), np.dtype(self.dtype).newbyteorder("="))
        with open_for_reading(self.path) as file:
            page = _open_first_page(file, self.path)
            offsets, counts = page.dataoffsets, page.databytecounts
            for number in range(start // down * segments_per_row, -(-stop // down) * segments_per_row):
                top, left = number // segments_per_row * down, number % segments_per_row * across
                rows = down if self.tiled else min(down, height - top)
                file.seek(offsets[number])
                values = self._decode_segment(file.read(min(counts[number], 2 * MAX_SEGMENT_BYTES)), rows)
                first, last, wide = max(start, top), min(stop, top + rows), min(across, width - left)
                pixels[first - start : last - start, left : left + wide] = values[first - top : last - top, :wide]
        return pixels

    def _decode_segment(self, data: bytes, rows: int) -> Array:
        """Decompress and decode a segment's pixels."""
        kind, shape = np.dtype(self.dtype), (rows, self.segment[1], *self.shape[2:])
        size = math.prod(shape) * kind.itemsize
        try:
            expanded = zlib.decompressobj().decompress(data, size) if self.is_deflated else data[:size]
        except zlib.error as error:
            raise InputError(f"{Path(self.path).name} is damaged: {error}.") from None
        if len(expanded) < size:
            raise InputError(f"{Path(self.path).name} is damaged: some pixels are missing.")
        values: Array = np.frombuffer(expanded, kind).reshape(shape)
        return values.cumsum(axis=1, dtype=kind.newbyteorder("=")) if self.stores_differences else values


def open_tiff(path: str) -> TiffRows:
    """Read an image's structure; of several images in the file, the first.

    Raises
    ------
    InputError
        If it is not a TIFF image, or not a supported one: gray or RGB, 8 or 16 bits, uncompressed or deflate.
    EngineUnavailableError
        If tifffile is not installed.
    """
    name = Path(path).name
    with open_for_reading(path) as file:
        page = _open_first_page(file, path)
        try:
            kind = _COLOR_KINDS.get((int(page.photometric), page.samplesperpixel))
            together = page.samplesperpixel == 1 or int(page.planarconfig) == 1
            if kind is None or str(page.dtype) not in ("uint8", "uint16") or not together or page.imagedepth != 1:
                raise InputError(f"{name} is not supported: only gray and RGB images of 8 or 16 bits in one plane are.")
            compression, predictor = int(page.compression), int(page.predictor)
            if compression not in (_PLAIN, *_DEFLATE) or predictor not in (_NO_PREDICTOR, _HORIZONTAL):
                raise InputError(f"{name} has an unsupported compression: only uncompressed and deflate data are read.")
            down = page.tilelength if page.is_tiled else min(page.rowsperstrip, page.imagelength)
            across = page.tilewidth if page.is_tiled else page.imagewidth
            segments = -(-page.imagelength // max(down, 1)) * -(-page.imagewidth // max(across, 1))
            if min(down, across, page.imagelength, page.imagewidth) < 1 or len(page.dataoffsets) < segments:
                raise InputError(f"{name} is damaged: some pixels are missing.")
            pixel_bytes = page.samplesperpixel * np.dtype(page.dtype).itemsize
            declared = page.imagelength * page.imagewidth * pixel_bytes
            if declared > max(_FREE_BYTES, _MAX_EXPANSION * file.seek(0, 2)):
                raise InputError(f"{name} declares more pixels than a file of its size can store.")
            stored = np.dtype(page.dtype).newbyteorder(page.parent.byteorder)
            if down * across * pixel_bytes > MAX_SEGMENT_BYTES:
                most = f"{MAX_SEGMENT_BYTES >> 20} MB"
                raise InputError(f"{name} has tiles or strips of more than {most}; each is read as a whole.")
            differences = predictor == _HORIZONTAL and compression != _PLAIN
            shape = (page.imagelength, page.imagewidth, *([3] if kind == "RGB" else []))
            deflated = compression in _DEFLATE
            return TiffRows(path, shape, stored.str, (down, across), bool(page.is_tiled), deflated, differences)
        except InputError:
            raise
        except Exception as error:  # invalid files raise many types of exceptions
            raise InputError(f"{name} is not a readable TIFF image.", detail=str(error)) from None


@dataclass(frozen=True)
class TiffTarget:
    """Rows of an existing TIFF image, in uncompressed tiles after `offset` bytes; one worker writes each tile."""

    path: str
    offset: int
    shape: tuple[int, ...]
    dtype: str

    def write(self, start: int, rows: Array) -> None:
        kind, tiles_per_row = np.dtype(self.dtype), -(-self.shape[1] // TILE)
        tile = np.zeros((TILE, TILE, *self.shape[2:]), kind)
        with convert_os_errors(Path(self.path).name, "write"), open(self.path, "r+b") as file:
            first = self.offset + start // TILE * tiles_per_row * tile.nbytes
            file.seek(first)
            for top in range(0, len(rows), TILE):
                for left in range(0, self.shape[1], TILE):
                    values = rows[top : top + TILE, left : left + TILE]
                    tile[:] = 0
                    tile[: values.shape[0], : values.shape[1]] = values
                    file.write(tile.data)
            write_back(file, first, file.tell() - first)


def create_tiff(path: str, shape: tuple[int, ...], dtype: str) -> TiffTarget:
    """Create an image of zeros."""
    tifffile, kind = _import_tifffile(), np.dtype(dtype).newbyteorder("<")
    meaning = "rgb" if len(shape) == 3 else "minisblack"
    layout = {"tile": (TILE, TILE), "photometric": meaning, "metadata": None, "byteorder": "<"}
    large = math.prod(shape) * kind.itemsize > 2**31  # padded tiles exceed the pixels, and offsets have 32 bits
    tifffile.imwrite(path, None, shape=shape, dtype=kind, bigtiff=large, **layout)
    with tifffile.TiffFile(path) as file:
        return TiffTarget(path, file.pages.first.dataoffsets[0], shape, kind.str)


def _open_first_page(file: IO[bytes], path: str) -> Any:
    try:
        return _import_tifffile().TiffFile(file, name=Path(path).name).pages.first
    except EngineUnavailableError:
        raise
    except Exception as error:  # invalid files raise many types of exceptions
        raise InputError(f"{Path(path).name} is not a readable TIFF image.", detail=str(error)) from None


def _import_tifffile() -> Any:
    try:
        import tifffile
    except ImportError as error:
        raise EngineUnavailableError(
            f"tifffile, which reads TIFF images, is not installed: {error}.",
            advice=f"Install it by {format_install_command('dask')}.",
        ) from error
    return tifffile
