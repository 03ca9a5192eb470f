"""Files of bodies: CSV with a body in each row, and tipsy, the format of PKDGRAV, Gasoline and ChaNGa."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.errors import InputError
from gpu.files import opening
from gpu.files.arrays import read_npy

Array = npt.NDArray[Any]

COLUMNS = ("x", "y", "z", "vx", "vy", "vz", "m")
TIPSY = (".tipsy", ".bin")
FORMATS = (".csv", *TIPSY, ".npy")
"""Endings of the files that are written; they are read too, and any other is read as text."""

MAXIMUM = 2**20
"""Bodies that a simulation takes."""

_SHOWN = 24
_MOST_BYTES = 2**28
"""Of a file: a line of 256 bytes for each of the bodies."""
_LONGEST_LINE = 2**16
_HEADER = [("time", "f8"), ("bodies", "i4"), ("dimensions", "i4"), ("gas", "i4"), ("dark", "i4"), ("stars", "i4")]
# Of each kind only the mass, the place and the velocity are taken, which stand first.
_WORDS = {"gas": 12, "dark": 9, "stars": 11}


def read_bodies(path: str | Path) -> Array:
    """Read a file of bodies.

    Parameters
    ----------
    path : str or Path
        A .tipsy or .bin is tipsy, of either byte order, with or without padding in its header; gas, dark matter and
        stars are all bodies. A .npy holds real numbers of shape (n, 7). Any other is text in UTF-8 with seven numbers a
        line, x y z vx vy vz m, between commas, semicolons or blanks; empty lines, what follows a # and a first line of
        names do not count.

    Returns
    -------
    array of float32, shape (n, 7)
        n is at least 1.

    Raises
    ------
    InputError
        Where the file cannot be read, or holds something else; for text with the number of the line.
    """
    path = Path(path)
    kind = path.suffix.lower()
    bodies = _read_tipsy(path) if kind in TIPSY else _read_npy(path) if kind == ".npy" else _read_text(path)
    if not bodies[:, 6].any():
        raise InputError(f"{path.name} holds no body with a mass.")
    return bodies


def check_target(path: str | Path) -> None:
    """Raise InputError where `write_bodies` could not write `path` anyway."""
    target = Path(path)
    if target.suffix.lower() not in FORMATS:
        raise InputError(f"{path} cannot be written: bodies go into {', '.join(FORMATS)}.")
    opening.check_target(target)


def write_bodies(path: str | Path, bodies: Array, time: float = 0.0) -> None:
    """Write bodies, float32 of shape (n, 7), so that the same numbers are read again.

    Parameters
    ----------
    path : str or Path
        A file of that name is replaced once the new one is whole. The ending says the format: .csv, .tipsy or .bin
        (dark matter, big-endian, as tipsy's standard wants it), .npy.
    bodies : array
    time : float
        Simulated, for a header that has it.

    Raises
    ------
    InputError
        Where the file cannot be written.
    """
    check_target(path)
    kind = Path(path).suffix.lower()
    with opening.replacing(path) as file:
        if kind == ".npy":
            np.lib.format.write_array(file, np.ascontiguousarray(bodies, np.float32), allow_pickle=False)
        elif kind in TIPSY:
            header = np.zeros(1, np.dtype([*((name, f">{type}") for name, type in _HEADER), ("padding", ">i4")]))
            header["time"], header["bodies"], header["dimensions"] = time, len(bodies), 3
            header["dark"] = len(bodies)
            rows = np.zeros((len(bodies), _WORDS["dark"]), ">f4")
            rows[:, 0], rows[:, 1:7] = bodies[:, 6], bodies[:, :6]
            file.write(header.tobytes() + rows.tobytes())
        else:
            np.savetxt(file, bodies, fmt="%.9g", delimiter=",", header=",".join(COLUMNS), comments="")


def accept_bodies(bodies: Array, name: str) -> Array:
    """Return bodies as float32, shape (n, 7).

    Raises
    ------
    InputError
        Where they are none, too many, or not finite numbers with masses from 0. `name` says whose they are.
    """
    if bodies.ndim != 2 or bodies.shape[1] != len(COLUMNS):
        shape = " x ".join(map(str, bodies.shape)) or "a single number"
        raise InputError(f"{name} has {shape} numbers; a body is seven: {' '.join(COLUMNS)}.")
    if not 1 <= len(bodies) <= MAXIMUM:
        raise InputError(f"{name} has {len(bodies)} bodies; 1 to {MAXIMUM} are simulated.")
    with np.errstate(over="ignore"):
        single = np.ascontiguousarray(bodies, np.float32)
    wrong = np.flatnonzero(~np.isfinite(single).all(axis=1) | (single[:, 6] < 0))
    if wrong.size:
        raise InputError(f"{name}, body {wrong[0] + 1}: numbers are finite, and a mass is not negative.")
    return single


def _read_text(path: Path) -> Array:
    rows: list[list[float]] = []
    with opening.reading(path, _MOST_BYTES) as file:
        for place, line in opening.lines_of(file, path.name, _LONGEST_LINE):
            try:
                text = line.decode("utf-8-sig" if place == 1 else "utf-8").split("#", 1)[0].strip()
            except UnicodeDecodeError:
                raise InputError(f"{path.name}, line {place}, is not text.") from None
            fields = text.replace(";", ",").split(",") if "," in text or ";" in text else text.split()
            if not text or (not rows and [field.strip().lower() for field in fields] == list(COLUMNS)):
                continue
            rows.append(_row(fields, f"{path.name}, line {place}"))
            if len(rows) > MAXIMUM:
                raise InputError(f"{path.name} has more than {MAXIMUM} bodies, which is as many as are simulated.")
    if not rows:
        raise InputError(f"{path.name} holds no bodies: a line with {' '.join(COLUMNS)} for each is wanted.")
    return np.array(rows, np.float32)


def _row(fields: list[str], where: str) -> list[float]:
    if len(fields) != len(COLUMNS):
        count = f"{len(fields)} number" + ("s" if len(fields) != 1 else "")
        raise InputError(f"{where}: {count} where a body has seven: {' '.join(COLUMNS)}.")
    numbers = []
    for name, field in zip(COLUMNS, fields, strict=True):
        try:
            number = float(field)
        except ValueError:
            shown = repr(field.strip()[:_SHOWN])
            raise InputError(f"{where}: {shown} is not a number for {name}.") from None
        if not math.isfinite(number) or abs(number) > float(np.finfo(np.float32).max):
            raise InputError(f"{where}: {name} is {field.strip()[:_SHOWN]}, which is not a finite float32.")
        numbers.append(number)
    if numbers[6] < 0:
        raise InputError(f"{where}: the mass {numbers[6]:g} is negative.")
    return numbers


def _read_npy(path: Path) -> Array:
    found = read_npy(path)
    if found.dtype.kind not in "iuf":
        raise InputError(f"{path.name} holds {str(found.dtype)[:_SHOWN]}; real numbers are wanted.")
    return accept_bodies(found, path.name)


def _read_tipsy(path: Path) -> Array:
    data = opening.read_bytes(path, _MOST_BYTES)
    for order in ">", "<":
        for padding in 4, 0:
            found = _tipsy_bodies(data, order, padding)
            if found is not None:
                return accept_bodies(found, path.name)
    raise InputError(f"{path.name} is not a whole tipsy file: its header does not say how long it is.")


def _tipsy_bodies(data: bytes, order: str, padding: int) -> Array | None:
    """Return the bodies, or None where the file's length is not what a header of that kind says."""
    kind = np.dtype([(name, order + type) for name, type in _HEADER])
    if len(data) < kind.itemsize + padding:
        return None
    header = np.frombuffer(data, kind, 1)[0]
    counts = {name: int(header[name]) for name in _WORDS}
    begin = kind.itemsize + padding
    length = begin + sum(4 * _WORDS[name] * count for name, count in counts.items())
    if min(counts.values()) < 0 or sum(counts.values()) != header["bodies"] or length != len(data):
        return None
    parts = []
    for name, words in _WORDS.items():
        rows = np.frombuffer(data, order + "f4", words * counts[name], begin).reshape(-1, words)
        begin += rows.nbytes
        parts.append(np.concatenate([rows[:, 1:7], rows[:, :1]], axis=1))
    return np.concatenate(parts).astype(np.float32)
