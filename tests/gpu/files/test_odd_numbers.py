"""Files of numbers that no one meant to write: every dtype and shape, lines without an end, numbers without one."""

from __future__ import annotations

import io
import struct
import warnings

import numpy as np
import pytest

from gpu.base.errors import InputError
from gpu.files import arrays
from gpu.files.arrays import read_array, read_npy
from gpu.files.text import read_text
from gpu.patterns.nbody.files import read_bodies


def npy_file(folder, header: str, content: bytes = bytes(800)):
    head = header.encode("latin-1").ljust(117) + b"\n"
    path = folder / "x.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + content)
    return path


def check_refusal(read, path) -> str:
    with pytest.raises(InputError) as raised:
        read(path)
    assert "\n" not in raised.value.message
    assert len(raised.value.message) < 300
    return raised.value.message


def read_or_none(read, path):
    """Return what is read; None where one sentence says why that cannot be."""
    try:
        return read(path)
    except InputError as error:
        said = error.message
    assert "\n" not in said
    assert len(said) < 300
    return None


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(
    "dtype",
    ["?", "i1", "u1", "<i2", ">i2", "<u4", ">i8", "<u8", "<f2", ">f4", "<f8", "<f16", "<c8", "<M8[s]", "S3", "<U2",
     "V5", "O", "S0", "V0", "i4,f4"],
)  # fmt: skip
def test_npy_of_every_dtype_is_numbers_or_a_sentence(tmp_path, dtype, order):
    path, kind = tmp_path / "x.npy", np.dtype(dtype)
    values = np.zeros((3, 4), kind, order=order)
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.save(file, values)
    path.write_bytes(file.getvalue())
    found = read_or_none(lambda path: read_array(path, 2), path)
    assert (found is not None) == (kind.kind in "biuf")
    if found is not None:
        assert found.dtype in (np.int64, np.float64)
        assert found.tolist() == values.tolist()
    read_or_none(read_npy, path)
    read_or_none(read_bodies, path)


@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        ("'|S0'", "(4611686018427387904,)"),
        ("'|V0'", "(4611686018427387904, 4)"),
        ("'|V0'", "(99999999999999999999999,)"),
        ("'<f8'", "(0, 99999999999999999999999)"),
        ("'<f8'", "(" + "1," * 70 + ")"),
        ("'<f8'", "3"),
        ("[('a' , '<f8'), ('a', '<f8')]", "(3,)"),
        ("[('" + "a" * 900 + "', '<f8')]", "(3,)"),
        ("('<f8', (99999999999,))", "(3,)"),
        ("'O'", "(3,)"),
        ("__import__('os').system('false')", "(3,)"),
    ],
)
def test_npy_headers_that_numpy_never_writes(tmp_path, kind, shape):
    path = npy_file(tmp_path, f"{{'descr': {kind}, 'fortran_order': False, 'shape': {shape}, }}")
    check_refusal(lambda path: read_array(path, 2), path)
    check_refusal(read_bodies, path)


def test_wide_floats_that_float64_does_not_hold_are_no_noise(tmp_path):
    np.save(tmp_path / "x.npy", np.array([np.finfo(np.longdouble).max, np.longdouble(1)]))
    assert read_array(tmp_path / "x.npy").tolist()[1] == 1


def test_more_numbers_than_any_pattern_takes_are_not_widened(tmp_path, monkeypatch):
    """A file of one byte a number became eight times as large."""
    monkeypatch.setattr(arrays, "MAX_NUMBERS", 10)
    np.save(tmp_path / "x.npy", np.zeros(11, np.uint8))
    assert "contains 11 numbers; the limit is 10" in check_refusal(read_array, tmp_path / "x.npy")


ODD_TEXTS = {
    "a million digits": (b"9" * 1_000_000, [float("inf")]),
    "digits of a fraction": (b"0." + b"3" * 1_000_000, [1 / 3]),
    "an exponent": (b"1e" + b"9" * 100_000, [float("inf")]),
    "a zero byte": (b"1\n2\0\n", None),
    "a mark of the byte order": (b"\xef\xbb\xbf1\n2", [1, 2]),
    "two marks": (b"\xef\xbb\xbf\xef\xbb\xbf1", None),
    "UTF-16": ("1\n2\n".encode("utf-16"), None),
    "other digits": ("\u0661\n\u0662".encode(), [1, 2]),
    "an escape": (b"\x1b[2J", None),
    "old line ends": (b"1\r2", None),
    "not a number": (b"nan\ninf\n-inf", [float("nan"), float("inf"), float("-inf")]),
    "hexadecimal": (b"0x10", None),
    "nothing": (b"", []),
    "a comment": (b"#" + b"x" * 100_000, []),
    "2^63": (b"9223372036854775808\n1", [2.0**63, 1.0]),
}


@pytest.mark.parametrize(("content", "expected"), ODD_TEXTS.values(), ids=ODD_TEXTS)
def test_odd_texts_are_numbers_or_a_sentence(tmp_path, content, expected):
    path = tmp_path / "x.csv"
    path.write_bytes(content)
    if expected is None:
        check_refusal(read_array, path)
    else:
        np.testing.assert_array_equal(read_array(path), expected)
    check_refusal(read_bodies, path)
    read_or_none(lambda path: read_array(path, 2), path)
    read_or_none(read_text, path)


@pytest.mark.parametrize(("read", "longest"), [(read_array, "16"), (read_bodies, "65536")])
def test_a_line_without_an_end_is_not_read_to_its_end(tmp_path, read, longest):
    """Its words took fifty times as much memory."""
    path = tmp_path / "x.csv"
    with open(path, "wb") as file:
        file.write(b"1 2 3\n" if read is read_array else b"1 2 3 4 5 6 7\n")
        for _ in range(20):
            file.write(b"1 " * 2**19)
    said = check_refusal(lambda path: read(path, 2), path) if read is read_array else check_refusal(read, path)
    assert said.startswith(f"x.csv, line 2, is too long: the limit is {longest} ")
