"""Files that workers read and write by themselves, some rows at a time: .npy, raw numbers, PGM and PPM, Zarr."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from gpu.distributed.sources import Source
from gpu.distributed.tiff import TIFF, TILE, create_tiff, open_tiff
from gpu.distributed.zarr_arrays import ZARR, create_zarr, open_zarr, read_rows
from gpu.engines.base import Array
from gpu.errors import InputError
from gpu.files import netpbm
from gpu.files.arrays import npy_layout
from gpu.files.opening import check_target, os_errors, reading, replacing_in_parts, write_back

RAW_TYPES = ("uint8", "uint16", "int32", "int64", "float32", "float64")
_NETPBM = (".pgm", ".ppm")
_RAW = re.compile(rf"({'|'.join(RAW_TYPES)}):(\d{{1,15}}(?:x\d{{1,15}}){{0,2}})", re.ASCII)


@dataclass(frozen=True)
class RawRows:
    """Rows of numbers that lie one after the other in a file.

    Parameters
    ----------
    path : str
    offset : int
        Bytes before the first one.
    dtype : str
        As it stands in the file.
    row : tuple of int
        A row's shape; () where it is one element.
    """

    path: str
    offset: int
    dtype: str
    row: tuple[int, ...] = ()

    def read(self, start: int, stop: int) -> Array:
        kind = np.dtype(self.dtype)
        found = np.empty((stop - start, *self.row), kind)
        with reading(self.path) as file:
            file.seek(self.offset + start * math.prod(self.row) * kind.itemsize)
            left = found.reshape(-1).view(np.uint8).data if found.size else memoryview(b"")
            while left:
                taken = file.readinto(left)  # type: ignore[attr-defined]
                if not taken:
                    raise InputError(f"{Path(self.path).name} has become shorter while it was read.")
                left = left[taken:]
        return found.astype(kind.newbyteorder("="), copy=False)


@dataclass(frozen=True)
class ZarrRows:
    """Rows of a Zarr array in a folder."""

    path: str

    def read(self, start: int, stop: int) -> Array:
        return read_rows(self.path, start, stop)


@dataclass(frozen=True)
class Streamed:
    """An input that stays where it is.

    Parameters
    ----------
    path : str
    source : Source
    shape : tuple of int
    dtype : dtype
        As workers have it.
    maxval : int
        Of an image the value of white; 0 for numbers.
    """

    path: str
    source: Source
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    maxval: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes of all of it."""
        return math.prod(self.shape) * self.dtype.itemsize


def open_streamed(path: str, raw: str = "") -> Streamed:
    """Find out how an input lies in its file.

    Parameters
    ----------
    path : str
        Of a .npy, .pgm, .ppm or TIFF file, of a Zarr array's folder, or of any file of numbers without a header.
    raw : str
        Of the last one type and shape, such as "float32:1000000" or "uint8:4096x4096".

    Raises
    ------
    InputError
        Where it is none of these, or too short.
    """
    where, ending = str(Path(path).absolute()), Path(path).suffix.lower()
    if raw:
        return _open_raw(where, raw)
    if ending == ".npy":
        found = npy_layout(where)
        _refuse_single(path, found.shape)
        if found.dtype.kind not in "biuf":
            raise InputError(f"{Path(path).name} holds {found.dtype} and no numbers.")
        rows = RawRows(where, found.offset, found.dtype.str, found.shape[1:])
        return Streamed(where, rows, found.shape, found.dtype.newbyteorder("="))
    if ending in _NETPBM:
        header = netpbm.layout(Path(where), Path(path).name)
        stored = header.dtype.newbyteorder(">")
        rows = RawRows(where, header.offset, stored.str, header.shape[1:])
        return Streamed(where, rows, header.shape, header.dtype, header.maxval)
    if ending in TIFF:
        image = open_tiff(where)
        kind = np.dtype(image.dtype).newbyteorder("=")
        return Streamed(where, image, image.shape, kind, int(np.iinfo(kind).max))
    if ending == ZARR:
        array = open_zarr(where)
        _refuse_single(path, array.shape)
        return Streamed(where, ZarrRows(where), tuple(array.shape), np.dtype(array.dtype))
    raise InputError(
        f"{path} cannot be read a chunk at a time: .npy, .pgm, .ppm, .tif and .zarr can.",
        advice="A file of bare numbers needs --raw TYPE:SHAPE.",
    )


def _refuse_single(path: str, shape: tuple[int, ...]) -> None:
    if not shape:
        raise InputError(f"{Path(path).name} holds a single number, and there is nothing to divide.")


def _open_raw(path: str, raw: str) -> Streamed:
    found = _RAW.fullmatch(raw)
    if found is None:
        types = ", ".join(RAW_TYPES)
        raise InputError(f"--raw is TYPE:SHAPE, such as float32:1000000, not {raw!r}; types are {types}.")
    kind, shape = np.dtype(found[1]), tuple(map(int, found[2].split("x")))
    wanted = math.prod(shape) * kind.itemsize
    with reading(path) as file:
        there = file.seek(0, 2)
    if there != wanted:
        raise InputError(f"{Path(path).name} has {there} bytes, and {raw} takes {wanted}.")
    return Streamed(path, RawRows(path, 0, kind.newbyteorder("<").str, shape[1:]), shape, kind)


class Target(Protocol):
    """Where workers put rows of a result."""

    def write(self, start: int, rows: Array) -> None:
        """Put rows in their place, from row `start` on."""
        ...


@dataclass(frozen=True)
class RawTarget:
    """Rows in a file that is there, after `offset` bytes; `dtype` is how they stand in it."""

    path: str
    offset: int
    dtype: str

    def write(self, start: int, rows: Array) -> None:
        stored = np.ascontiguousarray(rows, self.dtype)
        row_bytes = math.prod(stored.shape[1:]) * stored.dtype.itemsize
        with os_errors(Path(self.path).name, "written"), open(self.path, "r+b") as file:
            first = self.offset + start * row_bytes
            file.seek(first)
            file.write(stored.reshape(-1).view(np.uint8).data if stored.size else b"")
            write_back(file, first, stored.nbytes)


@dataclass(frozen=True)
class ZarrTarget:
    """Rows of a Zarr array that is there; a chunk of it is written by one worker."""

    path: str

    def write(self, start: int, rows: Array) -> None:
        if len(rows):
            open_zarr(self.path)[start : start + len(rows)] = rows


@dataclass
class Output:
    """A result's file while it is written: `target` for workers, and `rows`, to be said when all are known."""

    target: Target
    rows: int


@contextmanager
def writing(path: str, shape: tuple[int, ...], dtype: str, chunk: int, maxval: int) -> Iterator[Output]:
    """Have a file for a result; it takes the name's place when the block ends well.

    Parameters
    ----------
    path : str
        Of a .npy, .pgm, .ppm or TIFF file or a .zarr folder; any other is one of bare numbers, if it ends in .raw.
    shape : tuple of int
        Of the result; its first number may be changed in the `Output`, but for .zarr and images.
    dtype : str
    chunk : int
        How many rows a Zarr array's chunk has.
    maxval : int
        Of an image, the value of white.

    Raises
    ------
    InputError
        Where it cannot be written.
    """
    ending, name = Path(path).suffix.lower(), str(Path(path).absolute())
    with replacing_in_parts(name) as unfinished:
        if ending == ZARR:
            create_zarr(str(unfinished), shape, dtype, chunk)
            yield Output(ZarrTarget(str(unfinished)), shape[0])
            return
        if ending in TIFF:
            yield Output(create_tiff(str(unfinished), shape, dtype), shape[0])
            return
        header = _header(ending, shape, dtype, maxval)
        unfinished.write_bytes(header)
        stored = np.dtype(dtype).newbyteorder(">" if ending in _NETPBM else "<")
        output = Output(RawTarget(str(unfinished), len(header), stored.str), shape[0])
        yield output
        if output.rows != shape[0]:
            with open(unfinished, "r+b") as file:
                file.write(_header(ending, (output.rows, *shape[1:]), dtype, maxval))


def check_streamed_target(path: str, *, dtype: str, maxval: int, sized: bool) -> None:
    """Raise InputError where a result cannot be written in parts.

    Parameters
    ----------
    path : str
    dtype : str
        Of the input.
    maxval : int
        Of an image, the value of white; 0 for numbers.
    sized : bool
        Whether its length is known before.
    """
    ending = Path(path).suffix.lower()
    if ending not in (".npy", ".raw", ZARR, *((*_NETPBM, *TIFF) if maxval else ())):
        images = "; of images .pgm, .ppm and .tif too" if maxval else ""
        raise InputError(f"{path} cannot be written a chunk at a time: .npy, .raw and .zarr can{images}.")
    if ending == ZARR and not sized:
        raise InputError(f"{path} cannot be written: how long the result is shows at the end; .npy and .raw can wait.")
    if ending in TIFF and maxval != np.iinfo(dtype).max:
        raise InputError(f"{path} cannot be written: white is {maxval}, and in a TIFF image {np.iinfo(dtype).max}.")
    check_target(path)


def is_image(path: str) -> bool:
    """Whether a file of that name is written as an image."""
    return Path(path).suffix.lower() in (*_NETPBM, *TIFF)


def written_together(path: str) -> int:
    """Return how many rows are written by one worker: those of a row of tiles."""
    return TILE if Path(path).suffix.lower() in TIFF else 1


def _header(ending: str, shape: tuple[int, ...], dtype: str, maxval: int) -> bytes:
    if ending == ".raw":
        return b""
    if ending in _NETPBM:
        magic = "P6" if len(shape) == 3 else "P5"
        return f"{magic}\n{shape[1]} {shape[0]}\n{maxval}\n".encode()
    from io import BytesIO

    header = BytesIO()
    little = np.dtype(dtype).newbyteorder("<")
    np.lib.format.write_array_header_1_0(header, {"descr": little.str, "fortran_order": False, "shape": shape})
    return header.getvalue()


def seen(path: str) -> int:
    """Return a file's bytes as a worker sees it; -1 where it does not."""
    there = Path(path)
    return there.stat().st_size if there.is_file() else 0 if there.is_dir() else -1
