"""Write an array to a file: as an image, as NumPy's own format, or as a table."""

from __future__ import annotations

from pathlib import Path
from typing import IO

import numpy as np

from gpu.declaration.pattern import Array
from gpu.errors import InputError
from gpu.files import images, opening

WRITABLE = (*images.WRITABLE, ".npy", ".csv")


def is_image(path: str) -> bool:
    """Whether a file of that name is written as an image."""
    return Path(path).suffix.lower() in images.WRITABLE


def check_target(path: str, *, color: bool | None = None) -> None:
    """Raise InputError where `save` could not write `path` anyway: before a run that would be in vain.

    Parameters
    ----------
    color : bool or None
        Whether what an image file would hold is in color; None where that is not known.
    """
    target = Path(path)
    extension = target.suffix.lower()
    if extension not in WRITABLE:
        ending = f"names that end in {extension}" if extension else "names without an ending"
        raise InputError(f"{path} cannot be written: {', '.join(WRITABLE)} are known, {ending} are not.")
    opening.check_target(target)
    if extension == ".pgm" and color:
        raise InputError(f"{path} cannot be written: a color image needs .ppm or .png.")
    if extension == ".ppm" and color is False:
        raise InputError(f"{path} cannot be written: a gray image needs .pgm or .png.")


def save(path: str, array: Array, *, maxval: int | None = None) -> None:
    """Write an array to a file, its format chosen by the extension.

    Parameters
    ----------
    path : str
        A file of that name is replaced once the new one is whole. An image format takes uint8 or uint16 of shape
        (height, width) or (height, width, 3). A .csv takes up to three dimensions: those of a third stand side by
        side in each row, and a comment on top says so.
    maxval : int or None
        The value of white, for an image; None means the type's largest.

    Raises
    ------
    InputError
        Where the array does not go into that format, or the file cannot be written.
    """
    check_target(path)
    if is_image(path):
        images.write_image(path, array, maxval)
        return
    with opening.replacing(path) as file:
        if Path(path).suffix.lower() == ".npy":
            np.lib.format.write_array(file, np.asarray(array), allow_pickle=False)
        else:
            _write_table(file, path, array)


def _write_table(file: IO[bytes], path: str, array: Array) -> None:
    if array.ndim > 3:
        raise InputError(f"{path} cannot be written: a table has no room for {array.ndim} dimensions; use .npy.")
    header = ""
    rows = array.reshape(1, 1) if array.ndim == 0 else array
    if array.ndim == 3:
        height, width, values = array.shape
        header = f"{height} rows, {width} columns, {values} values in each, side by side"
        rows = array.reshape(height, width * values)
    digits = {4: 9, 8: 17}.get(array.dtype.itemsize, 17)  # as many as it takes to read the same number again
    exact = f"%.{digits}g" if array.dtype.kind == "f" else "%d"
    np.savetxt(file, rows, fmt=exact, delimiter=",", header=header)
