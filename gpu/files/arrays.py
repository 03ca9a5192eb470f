"""Read files of numbers: NumPy's own format, or text with one number a line, for a matrix one row."""

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

from gpu.errors import InputError
from gpu.files.opening import lines_of, reading

Array = npt.NDArray[Any]

ENDINGS = (".npy", ".csv", ".txt")
"""Endings of the names that are taken for files of numbers where images could be meant too."""

MOST_BYTES = 2**34
"""Bytes of the largest file of numbers: twice 2^30 elements of eight bytes, more than any pattern takes."""

MOST_NUMBERS = 2**30
"""Numbers of the largest array that any pattern takes."""

_LONGEST_LINE = 2**24
_COMMENT = "#"
_SHOWN = 24
_PIECE_BYTES = 2**24


def read_array(path: str | Path, dimensions: int = 1) -> Array:
    """Read a file of numbers.

    Parameters
    ----------
    path : str or Path
        A .npy file with as many dimensions as are wanted; any other is text in UTF-8, one number a line, for two
        dimensions one row a line with commas or blanks between. Empty lines and what follows a # do not count.
    dimensions : {1, 2}

    Returns
    -------
    array of shape (n,) or (rows, columns)
        int64 where every number is whole and fits, else float64; n may be 0.

    Raises
    ------
    InputError
        Where the file cannot be read, or a line does not hold a number.
    """
    path = Path(path)
    if path.suffix.lower() == ".npy":
        return _numbers(path, dimensions)
    return _read_text(path) if dimensions == 1 else _read_rows(path)


def read_npy(path: str | Path) -> Array:
    """Read a .npy file; its bytes are taken as they come, so that neither its header nor its end can do harm.

    Returns
    -------
    array
        Of the shape and dtype that the file says, in memory of its own; never of Python's objects.

    Raises
    ------
    InputError
        Where it cannot be read, or is no whole .npy file of numbers.
    """
    path = Path(path)
    with reading(path, MOST_BYTES) as file:
        shape, fortran_order, dtype = _checked_header(file, path)
        count = math.prod(shape)
        found = np.empty(count, dtype)
        left = found.view(np.uint8).data if found.nbytes else memoryview(b"")
        while left:
            # Not mapped: a file that shrinks meanwhile would end the process.
            taken = file.readinto(left[:_PIECE_BYTES])  # type: ignore[attr-defined]
            if not taken:
                raise _no_npy(path, "It has become shorter while it was read.")
            left = left[taken:]
    try:
        return found.reshape(shape[::-1]).T if fortran_order else found.reshape(shape)
    except (ValueError, OverflowError) as error:  # no elements, in numbers that NumPy cannot count
        raise _no_npy(path, str(error)) from None


@dataclass(frozen=True)
class NpyLayout:
    """How the elements of a .npy file lie in it, row after row, from byte `offset` on."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    offset: int


def npy_layout(path: str | Path) -> NpyLayout:
    """Return how a .npy file of any size can be read a part at a time.

    Raises
    ------
    InputError
        Where it cannot be read, is no whole .npy file of numbers, or has columns one after the other.
    """
    path = Path(path)
    with reading(path) as file:
        shape, fortran_order, dtype = _checked_header(file, path)
        offset = file.tell()
    if fortran_order and len(shape) > 1:
        raise InputError(f"{path.name} has its columns one after the other, and rows are wanted: save it in C order.")
    return NpyLayout(shape, dtype, offset)


def _checked_header(file: IO[bytes], path: Path) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, order and type of a .npy file that has as many bytes as these want."""
    try:
        shape, fortran_order, dtype = _npy_header(file)
    except Exception as error:  # NumPy parses the header as Python's text, and fails in a dozen ways
        raise _no_npy(path, str(error)) from None
    shape = tuple(map(int, shape))  # True is an integer to Python, and none to NumPy
    there = os.fstat(file.fileno()).st_size - file.tell()
    no_numbers = dtype.hasobject or not dtype.itemsize or min(shape, default=0) < 0
    if no_numbers or math.prod(shape) * dtype.itemsize > there:
        raise _no_npy(path, f"Its header says {dtype} of shape {shape}, and {there} bytes follow.")
    return shape, fortran_order, dtype


def _npy_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as of a header that Python 2 wrote
        if version == (1, 0):
            return np.lib.format.read_array_header_1_0(file)
        if version == (2, 0):
            return np.lib.format.read_array_header_2_0(file)
    raise ValueError(f"version {version} of the format")


def _no_npy(path: Path, detail: str) -> InputError:
    return InputError(
        f"{path.name} is not a whole .npy file of numbers.",
        advice="Save it again with numpy.save, or its numbers as text.",
        detail=detail,
    )


def _numbers(path: Path, dimensions: int) -> Array:
    found = read_npy(path)
    if found.ndim != dimensions:
        shape = " x ".join(map(str, found.shape)) or "a single number"
        wanted = "an array of one dimension" if dimensions == 1 else "a matrix"
        raise InputError(f"{path.name} holds {shape}; {wanted} is wanted.")
    if found.dtype.kind not in "biuf":
        kind = str(found.dtype)[:_SHOWN]
        raise InputError(f"{path.name} holds {kind}; whole or floating-point numbers are wanted.")
    if found.size > MOST_NUMBERS:
        raise InputError(f"{path.name} holds {found.size} numbers; at most {MOST_NUMBERS} are taken.")
    if found.dtype.kind == "f":
        with np.errstate(over="ignore", invalid="ignore"):  # of more bits than float64 has
            return found.astype(np.float64, copy=False)
    if found.dtype == np.uint64 and found.size and int(found.max()) > np.iinfo(np.int64).max:
        return found.astype(np.float64)
    return found.astype(np.int64, copy=False)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield each line that says something, with its number."""
    with reading(path, MOST_BYTES) as file:
        for place, line in lines_of(file, path.name, _LONGEST_LINE):
            try:
                text = line.decode("utf-8-sig" if place == 1 else "utf-8").split(_COMMENT, 1)[0].strip()
            except UnicodeDecodeError:
                raise InputError(f"{path.name}, line {place}, is not text.") from None
            if text:
                yield place, text


def _read_text(path: Path) -> Array:
    # Not lists: a number in one takes four times as much.
    whole, numbers = array("q"), array("d")
    for place, text in _lines(path):
        numbers.append(_number(path, place, text))
        if len(whole) == len(numbers) - 1 and _is_whole(text):
            whole.append(int(text))
    return np.array(whole, np.int64) if len(whole) == len(numbers) else np.array(numbers, np.float64)


def _read_rows(path: Path) -> Array:
    numbers, whole = array("d"), True
    columns: int | None = None
    for place, text in _lines(path):
        parts = text.replace(",", " ").split()
        columns = len(parts) if columns is None else columns
        numbers.extend(_number(path, place, part) for part in parts)
        whole = whole and all(map(_is_whole, parts))
        if len(parts) != columns:
            raise InputError(f"{path.name}, line {place}: {len(parts)} numbers, where the first row has {columns}.")
    if not numbers or not columns:
        raise InputError(f"{path.name} is empty; a matrix is wanted.")
    found = np.array(numbers, np.float64).reshape(-1, columns)
    # Past 2^53 the floats are not the numbers that stood there.
    return found.astype(np.int64) if whole and np.abs(found).max(initial=0) < 2**53 else found


def _number(path: Path, place: int, text: str) -> float:
    try:
        if "_" in text:  # Python's own notation
            raise ValueError(text)
        return float(text)
    except ValueError:
        raise InputError(f"{path.name}, line {place}: {_shortened(text)} is not one number.") from None


def _is_whole(text: str) -> bool:
    # 19 digits are as many as int64 can have, and few enough to ask int() about.
    digits = text.lstrip("+-")
    return digits.isdecimal() and len(digits) <= 19 and abs(int(digits)) <= np.iinfo(np.int64).max


def _shortened(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")
