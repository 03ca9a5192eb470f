"""Write an array to a file: as an image, in NumPy's format, or as a table."""

from __future__ import annotations

from pathlib import Path
from typing import IO

import numpy as np

from gpu.base.errors import InputError
from gpu.declaration.pattern import Array
from gpu.files import file_access, images

WRITABLE_SUFFIXES = (*images.WRITABLE, ".npy", ".csv")


def is_image(path: str) -> bool:
    """Return whether a file of that name is written as an image."""
    return Path(path).suffix.lower() in images.WRITABLE


def check_target(path: str, *, color: bool | None = None) -> None:
    """Raise InputError before a run if `save_array` cannot write `path`.

    Parameters
    ----------
    color : bool or None
        Whether the image is in color; None if unknown.
    """
    target = Path(path)
    extension = target.suffix.lower()
    if extension not in WRITABLE_SUFFIXES:
        ending = f"{extension} is not a known format" if extension else "the name has no suffix"
        raise InputError(f"Cannot write {path}: {ending}. Use one of {', '.join(WRITABLE_SUFFIXES)}.")
    file_access.check_target(target)
    if extension == ".pgm" and color:
        raise InputError(f"Cannot write {path}: a color image needs .ppm or .png.")
    if extension == ".ppm" and color is False:
        raise InputError(f"Cannot write {path}: a gray image needs .pgm or .png.")


def save_array(path: str, array: Array, *, maxval: int | None = None) -> None:
    """Write an array to a file in the format of its suffix.

    Parameters
    ----------
    path : str
        An existing file is replaced once the new one is complete. An image is uint8 or uint16 of shape (height, width)
        or (height, width, 3). A .csv file has up to three dimensions: each row contains the values of the third side
        by side, which a comment in the first line states.
    maxval : int or None
        The value of white in an image; None for the type's largest.

    Raises
    ------
    InputError
        The array does not fit the format, or the file cannot be written.
    """
    check_target(path)
    if is_image(path):
        images.write_image(path, array, maxval)
        return
    with file_access.replace_file(path) as file:
        if Path(path).suffix.lower() == ".npy":
            np.lib.format.write_array(file, np.asarray(array), allow_pickle=False)
        else:
            _write_table(file, path, array)


def _write_table(file: IO[bytes], path: str, array: Array) -> None:
    if array.ndim > 3:
        raise InputError(f"Cannot write {path}: a table cannot have {array.ndim} dimensions; use .npy.")
    header = ""
    rows = array.reshape(1, 1) if array.ndim == 0 else array
    if array.ndim == 3:
        height, width, values = array.shape
        header = f"{height} rows, {width} columns, {values} values in each, side by side"
        rows = array.reshape(height, width * values)
    digits = {4: 9, 8: 17}.get(array.dtype.itemsize, 17)  # enough to read back the same number
    number_format = f"%.{digits}g" if array.dtype.kind == "f" else "%d"
    np.savetxt(file, rows, fmt=number_format, delimiter=",", header=header)
