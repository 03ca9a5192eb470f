"""Reader of files of numbers: .npy, or text with one number per line or, for a matrix, one row per line."""

from __future__ import annotations

import math
import os
import warnings
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from gpu.base.errors import InputError
from gpu.files.file_access import open_for_reading, read_lines

Array = npt.NDArray[Any]

EXTENSIONS = (".npy", ".csv", ".txt")
"""Extensions of files that are read as numbers where an image is possible too."""

MAX_BYTES = 2**34
"""Bytes of the largest file of numbers: 2^31 elements of eight bytes, more than any pattern accepts."""

MAX_NUMBERS = 2**30
"""Elements of the largest array that any pattern accepts."""

_MAX_LINE_BYTES = 2**24
_COMMENT = "#"
_MAX_EXCERPT_LENGTH = 24
_PIECE_BYTES = 2**24


def read_array(path: str | Path, dimensions: int = 1) -> Array:
    """Read a file of numbers.

    Parameters
    ----------
    path : str or Path
        A .npy file with this number of dimensions; any other file is text in UTF-8 with one number per line or, for
        two dimensions, one row per line, separated by commas or blanks. Empty lines and comments after # are ignored.
    dimensions : {1, 2}

    Returns
    -------
    array of shape (n,) or (rows, columns)
        int64 if every number is an integer that fits, else float64; n may be 0.

    Raises
    ------
    InputError
        If the file cannot be read, or a line is not a number.
    """
    path = Path(path)
    if path.suffix.lower() == ".npy":
        return _read_npy_numbers(path, dimensions)
    return _read_text(path) if dimensions == 1 else _read_rows(path)


def read_npy(path: str | Path) -> Array:
    """Read a .npy file safely: neither its header nor truncation can do harm.

    Returns
    -------
    array
        With the shape and type in the header, in its own memory; never of Python objects.

    Raises
    ------
    InputError
        If it cannot be read, or is not a complete .npy file of numbers.
    """
    path = Path(path)
    with open_for_reading(path, MAX_BYTES) as file:
        shape, fortran_order, dtype = _read_checked_header(file, path)
        count = math.prod(shape)
        values = np.empty(count, dtype)
        remaining = values.view(np.uint8).data if values.nbytes else memoryview(b"")
        while remaining:
            # Not mapped: if the file were truncated meanwhile, the process would be killed.
            read_bytes = file.readinto(remaining[:_PIECE_BYTES])  # type: ignore[attr-defined]
            if not read_bytes:
                raise _build_npy_error(path, "It became shorter while it was being read.")
            remaining = remaining[read_bytes:]
    try:
        return values.reshape(shape[::-1]).T if fortran_order else values.reshape(shape)
    except (ValueError, OverflowError) as error:  # an empty array with extents that NumPy cannot represent
        raise _build_npy_error(path, str(error)) from None


@dataclass(frozen=True)
class NpyLayout:
    """Layout of a .npy file's elements: row-major, from byte `offset` on."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    offset: int


def read_npy_layout(path: str | Path) -> NpyLayout:
    """Return the layout of a .npy file of any size, to read it by rows.

    Raises
    ------
    InputError
        If it cannot be read, is not a complete .npy file of numbers, or is in column-major (Fortran) order.
    """
    path = Path(path)
    with open_for_reading(path) as file:
        shape, fortran_order, dtype = _read_checked_header(file, path)
        offset = file.tell()
    if fortran_order and len(shape) > 1:
        raise InputError(f"{path.name} is in Fortran order, but rows are needed: save it in C order.")
    return NpyLayout(shape, dtype, offset)


def _read_checked_header(file: IO[bytes], path: Path) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return the shape, order and type of a .npy file after checking that it has enough bytes for them."""
    try:
        shape, fortran_order, dtype = _read_npy_header(file)
    except Exception as error:  # NumPy evaluates the header as Python text, which raises many types of exceptions
        raise _build_npy_error(path, str(error)) from None
    shape = tuple(map(int, shape))  # True is an instance of int, but not a valid extent
    available = os.fstat(file.fileno()).st_size - file.tell()
    no_numbers = dtype.hasobject or not dtype.itemsize or min(shape, default=0) < 0
    if no_numbers or math.prod(shape) * dtype.itemsize > available:
        raise _build_npy_error(path, f"Its header declares {dtype} of shape {shape}, but {available} bytes follow.")
    return shape, fortran_order, dtype


def _read_npy_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as for a header written by Python 2
        if version == (1, 0):
            return np.lib.format.read_array_header_1_0(file)
        if version == (2, 0):
            return np.lib.format.read_array_header_2_0(file)
    raise ValueError(f"version {version} of the format")


def _build_npy_error(path: Path, detail: str) -> InputError:
    return InputError(
        f"{path.name} is not a complete .npy file of numbers.",
        advice="Save it again with numpy.save, or its numbers as text.",
        detail=detail,
    )


def _read_npy_numbers(path: Path, dimensions: int) -> Array:
    values = read_npy(path)
    if values.ndim != dimensions:
        shape = " x ".join(map(str, values.shape)) or "a single number"
        expected = "an array of one dimension" if dimensions == 1 else "a matrix"
        raise InputError(f"{path.name} contains {shape}; {expected} is needed.")
    if values.dtype.kind not in "biuf":
        kind = str(values.dtype)[:_MAX_EXCERPT_LENGTH]
        raise InputError(f"{path.name} contains {kind}; integers or floating-point numbers are needed.")
    if values.size > MAX_NUMBERS:
        raise InputError(f"{path.name} contains {values.size} numbers; the limit is {MAX_NUMBERS}.")
    if values.dtype.kind == "f":
        with np.errstate(over="ignore", invalid="ignore"):  # types with more bits than float64
            return values.astype(np.float64, copy=False)
    if values.dtype == np.uint64 and values.size and int(values.max()) > np.iinfo(np.int64).max:
        return values.astype(np.float64)
    return values.astype(np.int64, copy=False)


def _read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield each line that is not empty or a comment, with its number."""
    with open_for_reading(path, MAX_BYTES) as file:
        for number, line in read_lines(file, path.name, _MAX_LINE_BYTES):
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8").split(_COMMENT, 1)[0].strip()
            except UnicodeDecodeError:
                raise InputError(f"{path.name}, line {number}, is not text.") from None
            if text:
                yield number, text


def _read_text(path: Path) -> Array:
    # Arrays, not lists: a number in a list takes four times as much memory.
    integers, numbers = array("q"), array("d")
    for line, text in _read_lines(path):
        numbers.append(_parse_number(path, line, text))
        if len(integers) == len(numbers) - 1 and _is_int64(text):
            integers.append(int(text))
    return np.array(integers, np.int64) if len(integers) == len(numbers) else np.array(numbers, np.float64)


def _read_rows(path: Path) -> Array:
    numbers, all_integers = array("d"), True
    columns: int | None = None
    for line, text in _read_lines(path):
        parts = text.replace(",", " ").split()
        columns = len(parts) if columns is None else columns
        numbers.extend(_parse_number(path, line, part) for part in parts)
        all_integers = all_integers and all(map(_is_int64, parts))
        if len(parts) != columns:
            raise InputError(f"{path.name}, line {line}: {len(parts)} numbers, but the first row has {columns}.")
    if not numbers or not columns:
        raise InputError(f"{path.name} is empty; a matrix is needed.")
    values = np.array(numbers, np.float64).reshape(-1, columns)
    # Beyond 2^53 the floats may differ from the integers in the file.
    return values.astype(np.int64) if all_integers and np.abs(values).max(initial=0) < 2**53 else values


def _parse_number(path: Path, line: int, text: str) -> float:
    try:
        if "_" in text:  # Python's digit separator
            raise ValueError(text)
        return float(text)
    except ValueError:
        raise InputError(f"{path.name}, line {line}: {_shorten(text)} is not a number.") from None


def _is_int64(text: str) -> bool:
    # int64 has at most 19 digits; longer texts are not worth converting.
    digits = text.lstrip("+-")
    return digits.isdecimal() and len(digits) <= 19 and abs(int(digits)) <= np.iinfo(np.int64).max


def _shorten(text: str) -> str:
    return repr(text if len(text) <= _MAX_EXCERPT_LENGTH else text[:_MAX_EXCERPT_LENGTH] + "…")
