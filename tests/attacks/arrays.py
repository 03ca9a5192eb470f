"""Files of numbers: .npy with a changed header, text with odd words; filters and bodies among them."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import numpy as np

from gpu.files.arrays import read_array, read_npy
from gpu.patterns import find_pattern
from gpu.patterns.nbody.files import FORMATS, MAX_BODIES, read_bodies, write_bodies
from tests.odd_inputs import mutate_bytes, read_or_none

_TYPES = ("?", "i1", "<i2", ">u4", "<u8", "<f2", ">f4", "<f8", "<c8", "S3", "<U2", "V5", "<M8[s]", "i4,f4")
_KINDS = (
    "'<f8'",
    "'|S0'",
    "'O'",
    "'|V0'",
    "[('a','<f8')]",
    "('<f8',(2,))",
    "'<i9'",
    "None",
    "{}",
    "'m8[7s]'",
    "'>f16'",
)
_SHAPES = ("(3,)", "()", "(-1,)", "(2**9,)", "(99999999999999,)", "(0,99999999999999999999)", "(1.5,)", "3", "'a'")
_WORDS = (
    "1", "-2", "3.5", "1e400", "nan", "-inf", "0x1F", "1_000", "٣", "9" * 40, "9" * 5000, "1e", "\0", "\ufeff", "#", "",
    ",", ";", "\x1b[2J", "\r", "é", "1 2", "1,2", "0." + "0" * 400 + "1", "+", "--1", "True",
)  # fmt: skip

_BODIES = 0.4
"""Part of the inputs that are bodies."""


def attack(random: np.random.Generator, folder: Path) -> None:
    """Read a file of numbers as a list, as a matrix, as it is, and as a filter's coefficients; or bodies."""
    if random.random() < _BODIES:
        _attack_bodies(random, folder)
        return
    binary = random.random() < 0.6
    path = folder / ("x.npy" if binary else "x.csv")
    path.write_bytes(_npy(random) if binary else _text(random))
    for dimensions in (1, 2):
        found = read_or_none(lambda dimensions=dimensions: read_array(path, dimensions))
        if found is not None:
            assert found.dtype in (np.int64, np.float64)
            assert found.ndim == dimensions
            assert found.nbytes <= 16 * path.stat().st_size + 16
    if binary:
        found = read_or_none(lambda: read_npy(path))
        assert found is None or found.nbytes <= path.stat().st_size
    params = read_or_none(lambda: find_pattern("convolution").check({"filter": "custom", "coefficients": str(path)}))
    assert params is None or np.isfinite(params["coefficients"]).all()


def _npy(random: np.random.Generator) -> bytes:
    if random.random() < 0.3:
        shape, kind = random.choice(_SHAPES), random.choice(_KINDS)
        order = random.choice(["True", "False", "None", "1"])
        head = f"{{'descr': {kind}, 'fortran_order': {order}, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
        version = bytes([int(random.integers(5)), 0])
        return b"\x93NUMPY" + version + struct.pack("<H", len(head)) + head + bytes(64)
    rows, columns = random.integers(0, 8, 2).tolist()
    shape = (rows, columns) if random.random() < 0.6 else (rows,)
    order = "F" if random.random() < 0.3 else "C"
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(shape, np.dtype(str(random.choice(_TYPES))), order=order))
    return mutate_bytes(random, buffer.getvalue(), head=128)


def _text(random: np.random.Generator) -> bytes:
    words = [_WORDS[place] for place in random.integers(len(_WORDS), size=int(random.integers(30))).tolist()]
    some = ["1", "2.5", "-3"] * 5 + words if random.random() < 0.5 else words
    joined = str(random.choice([" ", ",", "\n", "\r\n", ", "])).join(some)
    encoding = str(random.choice(["utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1"]))
    data = joined.encode(encoding, errors="replace")
    return mutate_bytes(random, data) if data and random.random() < 0.5 else data


def _attack_bodies(random: np.random.Generator, folder: Path) -> None:
    """Read bodies, from a table, tipsy or .npy, of which some bytes were changed."""
    ending = str(random.choice(FORMATS))
    path = folder / f"x{ending}"
    bodies = random.standard_normal((int(random.integers(1, 20)), 7)).astype(np.float32)
    bodies[:, 6] = np.abs(bodies[:, 6])
    write_bodies(path, bodies)
    data = path.read_bytes()
    path.write_bytes(mutate_bytes(random, data, head=120) if random.random() < 0.95 else random.bytes(200))
    found = read_or_none(lambda: read_bodies(path))
    if found is not None:
        assert found.dtype == np.float32
        assert found.ndim == 2
        assert found.shape[1] == 7
        assert 1 <= len(found) <= MAX_BODIES
        assert np.isfinite(found).all()
        assert (found[:, 6] >= 0).all()
        assert found.nbytes <= 16 * path.stat().st_size
