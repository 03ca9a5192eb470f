"""Read files of numbers: NumPy's own format, or text with one number a line."""

from __future__ import annotations

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


def read_array(path: str | Path) -> Array:
    """Read a file of numbers.

    Parameters
    ----------
    path : str or Path
        A .npy file with one dimension; any other is text in UTF-8, one number a line, where empty lines and what
        follows a # do not count.

    Returns
    -------
    array of shape (n,)
        int64 where every number is whole and fits, else float64; n may be 0.

    Raises
    ------
    InputError
        Where the file cannot be read, or a line does not hold a number.
    """
    path = Path(path)
    try:
        return _read_npy(path) if path.suffix.lower() == ".npy" else _read_text(path)
    except FileNotFoundError:
        raise InputError(f"There is no file {path}.") from None
    except IsADirectoryError:
        raise InputError(f"{path} is a folder.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None


def _read_npy(path: Path) -> Array:
    try:
        # Mapped, so that a header that promises more than the file holds claims no memory.
        found = np.lib.format.open_memmap(path, mode="r")
    except (ValueError, EOFError, OverflowError) as error:
        raise InputError(f"{path.name} is not a whole .npy file of numbers: {_first_line(error)}") from None
    if found.ndim != 1:
        shape = " x ".join(map(str, found.shape)) or "a single number"
        raise InputError(f"{path.name} holds {shape}; an array of one dimension is wanted.")
    if found.dtype.kind not in "biuf":
        raise InputError(f"{path.name} holds {found.dtype}; whole or floating-point numbers are wanted.")
    if found.dtype.kind == "f":
        return found.astype(np.float64)
    if found.dtype == np.uint64 and found.size and int(found.max()) > np.iinfo(np.int64).max:
        return found.astype(np.float64)
    return found.astype(np.int64)


def _read_text(path: Path) -> Array:
    whole: list[int] = []
    numbers: list[float] = []
    with open(path, "rb") as file:
        for place, line in enumerate(file, 1):
            try:
                text = line.decode("utf-8-sig" if place == 1 else "utf-8").split(_COMMENT, 1)[0].strip()
            except UnicodeDecodeError:
                raise InputError(f"{path.name}, line {place}, is not text.") from None
            if not text:
                continue
            try:
                numbers.append(_number(text))
            except ValueError:
                raise InputError(f"{path.name}, line {place}: {_shortened(text)} is not one number.") from None
            if len(whole) == len(numbers) - 1 and _is_whole(text):
                whole.append(int(text))
    if len(whole) == len(numbers):
        return np.array(whole, np.int64)
    return np.array(numbers, np.float64)


def _number(text: str) -> float:
    if "_" in text:  # Python's own notation
        raise ValueError(text)
    return float(text)


def _is_whole(text: str) -> bool:
    # 19 digits are as many as int64 can have, and few enough to ask int() about.
    digits = text.lstrip("+-")
    return digits.isdecimal() and len(digits) <= 19 and abs(int(digits)) <= np.iinfo(np.int64).max


def _shortened(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or ["it ends too early"])[0].rstrip(".") + "."
