"""Files that workers read and write by rows, without the window: .npy, raw numbers, PGM and PPM, TIFF, Zarr."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from gpu.base.errors import InputError
from gpu.distributed.data.sources import Source
from gpu.distributed.data.tiff import TIFF, TILE, create_tiff, open_tiff
from gpu.distributed.data.zarr_arrays import ZARR, check_declared_size, create_zarr, open_zarr, read_rows
from gpu.engines.base import Array
from gpu.files import netpbm
from gpu.files.arrays import read_npy_layout
from gpu.files.file_access import check_target, convert_os_errors, open_for_reading, replace_path, write_back

RAW_TYPES = ("uint8", "uint16", "int32", "int64", "float32", "float64")
_NETPBM = (".pgm", ".ppm")
_RAW = re.compile(rf"({'|'.join(RAW_TYPES)}):(\d{{1,15}}(?:x\d{{1,15}}){{0,2}})", re.ASCII)


@dataclass(frozen=True)
class RawRows:
    """Rows of numbers that are stored consecutively in a file.

    Parameters
    ----------
    offset : int
        Bytes before the first row.
    dtype : str
        Type in the file, with its byte order.
    row : tuple of int
        A row's shape; () if each row is one element.
    """

    path: str
    offset: int
    dtype: str
    row: tuple[int, ...] = ()

    def read(self, start: int, stop: int) -> Array:
        kind = np.dtype(self.dtype)
        rows = np.empty((stop - start, *self.row), kind)
        with open_for_reading(self.path) as file:
            file.seek(self.offset + start * math.prod(self.row) * kind.itemsize)
            remaining = rows.reshape(-1).view(np.uint8).data if rows.size else memoryview(b"")
            while remaining:
                count = file.readinto(remaining)  # type: ignore[attr-defined]
                if not count:
                    raise InputError(f"{Path(self.path).name} became shorter while it was being read.")
                remaining = remaining[count:]
        return rows.astype(kind.newbyteorder("="), copy=False)


@dataclass(frozen=True)
class ZarrRows:
    """Rows of a Zarr array in a folder."""

    path: str

    def read(self, start: int, stop: int) -> Array:
        return read_rows(self.path, start, stop)


@dataclass(frozen=True)
class StreamedInput:
    """An input file that workers read directly, chunk by chunk.

    Parameters
    ----------
    dtype : dtype
        Type of the rows that workers receive.
    maxval : int
        For an image, the value of white; 0 for numbers.
    """

    path: str
    source: Source
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    maxval: int = 0

    @property
    def nbytes(self) -> int:
        """Size of the whole input in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize


def open_streamed_input(path: str, raw: str = "") -> StreamedInput:
    """Open an input file or Zarr array and read its layout.

    Parameters
    ----------
    path : str
        A .npy, .pgm, .ppm or TIFF file, a Zarr array's folder, or any file of numbers without a header.
    raw : str
        Type and shape of a file without a header, such as "float32:1000000" or "uint8:4096x4096".

    Raises
    ------
    InputError
        If the format is not supported or the file is too short.
    """
    where, ending = str(Path(path).absolute()), Path(path).suffix.lower()
    if raw:
        return _open_raw(where, raw)
    if ending == ".npy":
        npy = read_npy_layout(where)
        _refuse_single(path, npy.shape)
        if npy.dtype.kind not in "biuf":
            raise InputError(f"{Path(path).name} contains {npy.dtype}, not numbers.")
        rows = RawRows(where, npy.offset, npy.dtype.str, npy.shape[1:])
        return StreamedInput(where, rows, npy.shape, npy.dtype.newbyteorder("="))
    if ending in _NETPBM:
        header = netpbm.read_layout(Path(where), Path(path).name)
        stored = header.dtype.newbyteorder(">")
        rows = RawRows(where, header.offset, stored.str, header.shape[1:])
        return StreamedInput(where, rows, header.shape, header.dtype, header.maxval)
    if ending in TIFF:
        image = open_tiff(where)
        kind = np.dtype(image.dtype).newbyteorder("=")
        return StreamedInput(where, image, image.shape, kind, int(np.iinfo(kind).max))
    if ending == ZARR:
        array = open_zarr(where)
        _refuse_single(path, array.shape)
        check_declared_size(where, array)
        return StreamedInput(where, ZarrRows(where), tuple(array.shape), np.dtype(array.dtype))
    raise InputError(
        f"Cannot read {path} chunk by chunk: use .npy, .pgm, .ppm, .tif or .zarr.",
        advice="For a file of numbers without a header, add --raw TYPE:SHAPE.",
    )


def _refuse_single(path: str, shape: tuple[int, ...]) -> None:
    if not shape:
        raise InputError(f"{Path(path).name} contains a single number, which cannot be divided into chunks.")


def _open_raw(path: str, raw: str) -> StreamedInput:
    match = _RAW.fullmatch(raw)
    if match is None:
        types = ", ".join(RAW_TYPES)
        raise InputError(f"--raw is TYPE:SHAPE, such as float32:1000000, not {raw!r}; types are {types}.")
    kind, shape = np.dtype(match[1]), tuple(map(int, match[2].split("x")))
    expected_size = math.prod(shape) * kind.itemsize
    with open_for_reading(path) as file:
        size = file.seek(0, 2)
    if size != expected_size:
        raise InputError(f"{Path(path).name} has {size} bytes, but {raw} needs {expected_size}.")
    return StreamedInput(path, RawRows(path, 0, kind.newbyteorder("<").str, shape[1:]), shape, kind)


class Target(Protocol):
    """File or array to which workers write rows of a result."""

    def write(self, start: int, rows: Array) -> None:
        """Write rows, the first at index `start`."""
        ...


@dataclass(frozen=True)
class RawTarget:
    """Rows of an existing file, after `offset` bytes; `dtype` is the stored type, with its byte order."""

    path: str
    offset: int
    dtype: str

    def write(self, start: int, rows: Array) -> None:
        stored = np.ascontiguousarray(rows, self.dtype)
        row_bytes = math.prod(stored.shape[1:]) * stored.dtype.itemsize
        with convert_os_errors(Path(self.path).name, "write"), open(self.path, "r+b") as file:
            first = self.offset + start * row_bytes
            file.seek(first)
            file.write(stored.reshape(-1).view(np.uint8).data if stored.size else b"")
            write_back(file, first, stored.nbytes)


@dataclass(frozen=True)
class ZarrTarget:
    """Rows of an existing Zarr array; each of its chunks is written by one worker."""

    path: str

    def write(self, start: int, rows: Array) -> None:
        if len(rows):
            open_zarr(self.path)[start : start + len(rows)] = rows


@dataclass
class Output:
    """A result's unfinished file: `target` is for the workers; set `rows` once the final number of rows is known."""

    target: Target
    rows: int


@contextmanager
def create_output(path: str, shape: tuple[int, ...], dtype: str, chunk: int, maxval: int) -> Iterator[Output]:
    """Create a result's file; it replaces `path` when the block ends without an exception.

    Parameters
    ----------
    path : str
        A .npy, .pgm, .ppm or TIFF file, a .zarr folder, or a file of numbers without a header that ends in .raw.
    shape : tuple of int
        Shape of the result; `Output.rows` can change its first number, except for .zarr and images.
    chunk : int
        Rows per chunk of a Zarr array.
    maxval : int
        For an image, the value of white.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    ending, name = Path(path).suffix.lower(), str(Path(path).absolute())
    with replace_path(name) as unfinished:
        if ending == ZARR:
            create_zarr(str(unfinished), shape, dtype, chunk)
            yield Output(ZarrTarget(str(unfinished)), shape[0])
            return
        if ending in TIFF:
            yield Output(create_tiff(str(unfinished), shape, dtype), shape[0])
            return
        header = _format_header(ending, shape, dtype, maxval)
        unfinished.write_bytes(header)
        stored = np.dtype(dtype).newbyteorder(">" if ending in _NETPBM else "<")
        output = Output(RawTarget(str(unfinished), len(header), stored.str), shape[0])
        yield output
        if output.rows != shape[0]:
            with open(unfinished, "r+b") as file:
                file.write(_format_header(ending, (output.rows, *shape[1:]), dtype, maxval))


def check_streamed_target(path: str, *, dtype: str, maxval: int, is_input_sized: bool) -> None:
    """Raise InputError if a result cannot be written chunk by chunk.

    Parameters
    ----------
    dtype : str
        The input's type.
    maxval : int
        For an image, the value of white; 0 for numbers.
    is_input_sized : bool
        Whether the number of rows is known in advance.
    """
    ending = Path(path).suffix.lower()
    if ending not in (".npy", ".raw", ZARR, *((*_NETPBM, *TIFF) if maxval else ())):
        images = ", or for images .pgm, .ppm or .tif" if maxval else ""
        raise InputError(f"Cannot write {path} chunk by chunk: use .npy, .raw or .zarr{images}.")
    if ending == ZARR and not is_input_sized:
        raise InputError(
            f"Cannot write {path}: the number of rows is known only at the end.", advice="Use .npy or .raw."
        )
    if ending in TIFF and maxval != np.iinfo(dtype).max:
        limit = np.iinfo(dtype).max
        raise InputError(f"Cannot write {path}: white is {maxval}, but must be {limit} in a TIFF image.")
    check_target(path)


def is_image(path: str) -> bool:
    """Return whether a file with that name is written as an image."""
    return Path(path).suffix.lower() in (*_NETPBM, *TIFF)


def find_write_granularity(path: str) -> int:
    """Return the granularity of writes in rows: for a TIFF image, the height of its tiles."""
    return TILE if Path(path).suffix.lower() in TIFF else 1


def _format_header(ending: str, shape: tuple[int, ...], dtype: str, maxval: int) -> bytes:
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


def read_file_size(path: str) -> int:
    """Return a file's size in bytes on a worker; 0 for a folder, -1 if it does not exist there."""
    file = Path(path)
    return file.stat().st_size if file.is_file() else 0 if file.is_dir() else -1
