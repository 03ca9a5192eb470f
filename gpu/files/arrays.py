"""Read files of numbers: NumPy's own format, or text with one number a line, for a matrix one row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.errors import InputError

Array = npt.NDArray[Any]

ENDINGS = (".npy", ".csv", ".txt")
"""Endings of the names that are taken for files of numbers where images could be meant too."""

_COMMENT = "#"
_SHOWN = 24


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
    try:
        if path.suffix.lower() == ".npy":
            return _read_npy(path, dimensions)
        return _read_text(path) if dimensions == 1 else _read_rows(path)
    except FileNotFoundError:
        raise InputError(f"There is no file {path}.") from None
    except IsADirectoryError:
        raise InputError(f"{path} is a folder.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None


def map_npy(path: Path) -> Array:
    """Map a .npy file into memory, read-only: a header that promises more than the file holds claims no memory.

    Raises
    ------
    OSError
    ValueError, EOFError, OverflowError
        Where it is no whole .npy file, or one of Python's objects.
    """
    return np.lib.format.open_memmap(path, mode="r")


def _read_npy(path: Path, dimensions: int) -> Array:
    try:
        found = map_npy(path)
    except (ValueError, EOFError, OverflowError) as error:
        raise InputError(
            f"{path.name} is not a whole .npy file of numbers.",
            advice="Save it again with numpy.save, or its numbers as text.",
            detail=str(error),
        ) from None
    if found.ndim != dimensions:
        shape = " x ".join(map(str, found.shape)) or "a single number"
        wanted = "an array of one dimension" if dimensions == 1 else "a matrix"
        raise InputError(f"{path.name} holds {shape}; {wanted} is wanted.")
    if found.dtype.kind not in "biuf":
        raise InputError(f"{path.name} holds {found.dtype}; whole or floating-point numbers are wanted.")
    if found.dtype.kind == "f":
        return found.astype(np.float64)
    if found.dtype == np.uint64 and found.size and int(found.max()) > np.iinfo(np.int64).max:
        return found.astype(np.float64)
    return found.astype(np.int64)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield each line that says something, with its number."""
    with open(path, "rb") as file:
        for place, line in enumerate(file, 1):
            try:
                text = line.decode("utf-8-sig" if place == 1 else "utf-8").split(_COMMENT, 1)[0].strip()
            except UnicodeDecodeError:
                raise InputError(f"{path.name}, line {place}, is not text.") from None
            if text:
                yield place, text


def _read_text(path: Path) -> Array:
    whole: list[int] = []
    numbers: list[float] = []
    for place, text in _lines(path):
        numbers.append(_number(path, place, text))
        if len(whole) == len(numbers) - 1 and _is_whole(text):
            whole.append(int(text))
    if len(whole) == len(numbers):
        return np.array(whole, np.int64)
    return np.array(numbers, np.float64)


def _read_rows(path: Path) -> Array:
    rows: list[list[float]] = []
    whole = True
    for place, text in _lines(path):
        parts = text.replace(",", " ").split()
        rows.append([_number(path, place, part) for part in parts])
        whole = whole and all(map(_is_whole, parts))
        if len(rows[-1]) != len(rows[0]):
            raise InputError(
                f"{path.name}, line {place}: {len(rows[-1])} numbers, where the first row has {len(rows[0])}."
            )
    if not rows:
        raise InputError(f"{path.name} is empty; a matrix is wanted.")
    found = np.array(rows, np.float64)
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
