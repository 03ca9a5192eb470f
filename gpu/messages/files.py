"""Messages about the user's files: images, arrays and texts."""

from __future__ import annotations

from dataclasses import dataclass

from gpu.messages.requests import Acknowledgment, ArrayResult, Request
from gpu.messages.shared_arrays import SharedArray


@dataclass(frozen=True)
class LoadImage(Request[ArrayResult]):
    """Read an image file.

    The arrays are `image` (with the file's values: uint8 or uint16, (height, width) or (height, width, 3)),
    `maxval` (a 0-d array with the value of white) and `picture` (uint8, for display).
    """

    path: str


@dataclass(frozen=True)
class LoadArray(Request[ArrayResult]):
    """Read a file of numbers: .npy, or text with one number per line or, for two dimensions, one row per line.

    The array is `values`: int64 if every number is an integer, else float64; it may be empty.
    """

    path: str
    dimensions: int = 1


@dataclass(frozen=True)
class LoadText(Request[ArrayResult]):
    """Read a text file.

    The array is `text`: uint8, its characters in Latin-1; others are replaced by question marks.
    """

    path: str


@dataclass(frozen=True)
class SaveArray(Request[Acknowledgment]):
    """Write an array to a file in the format of its extension: an image (.pgm, .ppm, .png), .npy or .csv.

    `maxval` is the value of white; None means the largest value of the array's type.
    """

    path: str
    array: SharedArray
    maxval: int | None = None
