"""Files of bodies: CSV with one body per row, NumPy arrays, and tipsy, the format of PKDGRAV, Gasoline and ChaNGa."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.base.errors import InputError
from gpu.files import file_access
from gpu.files.arrays import read_npy

Array = npt.NDArray[Any]

COLUMNS = ("x", "y", "z", "vx", "vy", "vz", "m")
TIPSY = (".tipsy", ".bin")
FORMATS = (".csv", *TIPSY, ".npy")
"""Suffixes of files that can be written and read; files with any other suffix are read as text."""

MAX_BODIES = 2**20
"""The most bodies of a simulation."""

_MAX_QUOTED_LETTERS = 24
_MAX_FILE_BYTES = 2**28
"""The largest file: 256 bytes for each of the bodies."""
_MAX_LINE_BYTES = 2**16
_HEADER = [("time", "f8"), ("bodies", "i4"), ("dimensions", "i4"), ("gas", "i4"), ("dark", "i4"), ("stars", "i4")]
# Of each kind only mass, position and velocity are read, which come first.
_FLOATS_BY_KIND = {"gas": 12, "dark": 9, "stars": 11}


def read_bodies(path: str | Path) -> Array:
    """Read a file of bodies.

    Parameters
    ----------
    path : str or Path
        A .tipsy or .bin file is tipsy, of either byte order, with or without padding in its header; gas, dark matter
        and stars all become bodies. A .npy file contains real numbers of shape (n, 7). Any other file is UTF-8 text
        with seven numbers per line, x y z vx vy vz m, separated by commas, semicolons or spaces; empty lines, text
        after a # and a first line of column names are ignored.

    Returns
    -------
    array of float32, shape (n, 7)
        n is at least 1.

    Raises
    ------
    InputError
        The file cannot be read, or has other contents; for text, the message includes the line number.
    """
    path = Path(path)
    kind = path.suffix.lower()
    bodies = _read_tipsy(path) if kind in TIPSY else _read_npy(path) if kind == ".npy" else _read_text(path)
    if not bodies[:, 6].any():
        raise InputError(f"{path.name} has no body with a mass.")
    return bodies


def check_target(path: str | Path) -> None:
    """Raise InputError if `write_bodies` could not write `path`."""
    target = Path(path)
    if target.suffix.lower() not in FORMATS:
        raise InputError(f"Cannot write {path}: its suffix has to be one of {', '.join(FORMATS)}.")
    file_access.check_target(target)


def write_bodies(path: str | Path, bodies: Array, time: float = 0.0) -> None:
    """Write bodies, float32 of shape (n, 7), without loss of precision.

    Parameters
    ----------
    path : str or Path
        An existing file is replaced when the new one is complete. The suffix selects the format: .csv, .tipsy or .bin
        (dark matter, big-endian as in tipsy's standard), or .npy.
    bodies : array
    time : float
        Simulated time, for formats with time in their header.

    Raises
    ------
    InputError
        The file cannot be written.
    """
    check_target(path)
    kind = Path(path).suffix.lower()
    with file_access.replace_file(path) as file:
        if kind == ".npy":
            np.lib.format.write_array(file, np.ascontiguousarray(bodies, np.float32), allow_pickle=False)
        elif kind in TIPSY:
            header = np.zeros(1, np.dtype([*((name, f">{type}") for name, type in _HEADER), ("padding", ">i4")]))
            header["time"], header["bodies"], header["dimensions"] = time, len(bodies), 3
            header["dark"] = len(bodies)
            rows = np.zeros((len(bodies), _FLOATS_BY_KIND["dark"]), ">f4")
            rows[:, 0], rows[:, 1:7] = bodies[:, 6], bodies[:, :6]
            file.write(header.tobytes() + rows.tobytes())
        else:
            np.savetxt(file, bodies, fmt="%.9g", delimiter=",", header=",".join(COLUMNS), comments="")


def accept_bodies(bodies: Array, name: str) -> Array:
    """Validate bodies and return them as float32, shape (n, 7).

    Raises
    ------
    InputError
        There are none or too many, a number is not finite, or a mass is negative. The message begins with `name`.
    """
    if bodies.ndim != 2 or bodies.shape[1] != len(COLUMNS):
        shape = " x ".join(map(str, bodies.shape)) or "a single number"
        raise InputError(f"{name} has {shape} numbers; a body has seven: {' '.join(COLUMNS)}.")
    if not 1 <= len(bodies) <= MAX_BODIES:
        raise InputError(f"{name} has {len(bodies)} bodies; 1 to {MAX_BODIES} are allowed.")
    with np.errstate(over="ignore"):
        single = np.ascontiguousarray(bodies, np.float32)
    wrong = np.flatnonzero(~np.isfinite(single).all(axis=1) | (single[:, 6] < 0))
    if wrong.size:
        raise InputError(f"{name}, body {wrong[0] + 1}: numbers have to be finite, and the mass not negative.")
    return single


def _read_text(path: Path) -> Array:
    rows: list[list[float]] = []
    with file_access.open_for_reading(path, _MAX_FILE_BYTES) as file:
        for number, line in file_access.read_lines(file, path.name, _MAX_LINE_BYTES):
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8").split("#", 1)[0].strip()
            except UnicodeDecodeError:
                raise InputError(f"{path.name}, line {number}, is not text.") from None
            fields = text.replace(";", ",").split(",") if "," in text or ";" in text else text.split()
            if not text or (not rows and [field.strip().lower() for field in fields] == list(COLUMNS)):
                continue
            rows.append(_parse_row(fields, f"{path.name}, line {number}"))
            if len(rows) > MAX_BODIES:
                raise InputError(f"{path.name} has more than {MAX_BODIES} bodies, the most that a simulation allows.")
    if not rows:
        raise InputError(f"{path.name} has no bodies: each needs a line with {' '.join(COLUMNS)}.")
    return np.array(rows, np.float32)


def _parse_row(fields: list[str], location: str) -> list[float]:
    if len(fields) != len(COLUMNS):
        count = f"{len(fields)} number" + ("s" if len(fields) != 1 else "")
        raise InputError(f"{location}: {count}, but a body has seven: {' '.join(COLUMNS)}.")
    numbers = []
    for name, field in zip(COLUMNS, fields, strict=True):
        try:
            number = float(field)
        except ValueError:
            quoted = repr(field.strip()[:_MAX_QUOTED_LETTERS])
            raise InputError(f"{location}: {quoted} is not a number for {name}.") from None
        if not math.isfinite(number) or abs(number) > float(np.finfo(np.float32).max):
            raise InputError(
                f"{location}: {name} is {field.strip()[:_MAX_QUOTED_LETTERS]}, which is not a finite float32."
            )
        numbers.append(number)
    if numbers[6] < 0:
        raise InputError(f"{location}: the mass {numbers[6]:g} is negative.")
    return numbers


def _read_npy(path: Path) -> Array:
    values = read_npy(path)
    if values.dtype.kind not in "iuf":
        raise InputError(
            f"{path.name} contains {str(values.dtype)[:_MAX_QUOTED_LETTERS]}, but bodies need real numbers."
        )
    return accept_bodies(values, path.name)


def _read_tipsy(path: Path) -> Array:
    data = file_access.read_bytes(path, _MAX_FILE_BYTES)
    for order in ">", "<":
        for padding in 4, 0:
            bodies = _parse_tipsy(data, order, padding)
            if bodies is not None:
                return accept_bodies(bodies, path.name)
    raise InputError(f"{path.name} is not a complete tipsy file: its length does not match its header.")


def _parse_tipsy(data: bytes, order: str, padding: int) -> Array | None:
    """Return the bodies, or None if the file's length does not match a header of that byte order and padding."""
    kind = np.dtype([(name, order + type) for name, type in _HEADER])
    if len(data) < kind.itemsize + padding:
        return None
    header = np.frombuffer(data, kind, 1)[0]
    counts = {name: int(header[name]) for name in _FLOATS_BY_KIND}
    begin = kind.itemsize + padding
    length = begin + sum(4 * _FLOATS_BY_KIND[name] * count for name, count in counts.items())
    if min(counts.values()) < 0 or sum(counts.values()) != header["bodies"] or length != len(data):
        return None
    parts = []
    for name, words in _FLOATS_BY_KIND.items():
        rows = np.frombuffer(data, order + "f4", words * counts[name], begin).reshape(-1, words)
        begin += rows.nbytes
        parts.append(np.concatenate([rows[:, 1:7], rows[:, :1]], axis=1))
    return np.concatenate(parts).astype(np.float32)
