from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu.base.errors import InputError
from gpu.files.arrays import read_array
from gpu.run.export import save_array

Array = np.ndarray[Any, Any]


def text(folder: Path, content: bytes | str, name: str = "numbers.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("content", "values"),
    [
        ("3\n5\n-2\n", [3, 5, -2]),
        ("3\r\n5\r\n", [3, 5]),
        ("# people\n\n3 # inches\n  +7  \n", [3, 7]),
        ("9223372036854775807\n-9223372036854775807", [2**63 - 1, -(2**63) + 1]),
        ("", []),
        ("# nothing\n", []),
        (b"\xef\xbb\xbf12\n", [12]),
    ],
)
def test_whole_numbers_a_line_each(tmp_path: Path, content: str, values: list[int]) -> None:
    found = read_array(text(tmp_path, content))
    assert found.dtype == np.int64
    assert found.ndim == 1
    assert found.tolist() == values


@pytest.mark.parametrize(
    ("content", "values"),
    [
        ("3\n0.5\n7", [3.0, 0.5, 7.0]),
        ("0.5\n3", [0.5, 3.0]),
        ("1e3", [1000.0]),
        ("9223372036854775808", [2.0**63]),
        ("1" + "0" * 5000 + "e-5000", [1.0]),
        ("inf\n-inf", [np.inf, -np.inf]),
    ],
)
def test_one_number_with_a_fraction_makes_all_of_them_float(tmp_path: Path, content: str, values: list[float]) -> None:
    found = read_array(text(tmp_path, content))
    assert found.dtype == np.float64
    assert found.tolist() == values


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1\ntwo\n3", "numbers.csv, line 2: 'two' is not a number."),
        ("1\n\n# x\n1,2,3", "numbers.csv, line 4: '1,2,3' is not a number."),
        ("value\n1", "numbers.csv, line 1: 'value' is not a number."),
        ("1_000", "numbers.csv, line 1: '1_000' is not a number."),
        ("0x10", "numbers.csv, line 1: '0x10' is not a number."),
        ("x" * 1000, f"numbers.csv, line 1: '{'x' * 24}…' is not a number."),
        (b"1\n\xff\xfe\n", "numbers.csv, line 2, is not text."),
        (b"1\n2\0\n", "numbers.csv, line 2: '2\\x00' is not a number."),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, content: str | bytes, message: str) -> None:
    with pytest.raises(InputError) as raised:
        read_array(text(tmp_path, content))
    assert raised.value.message == message


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int32, np.int64, np.uint64, ">i4"])
def test_npy_of_whole_numbers(tmp_path: Path, dtype: Any) -> None:
    values = np.array([0, 1, 1], dtype)
    np.save(tmp_path / "a.npy", values)
    found = read_array(tmp_path / "a.npy")
    assert found.dtype == np.int64
    assert found.tolist() == [0, 1, 1]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ">f4"])
def test_npy_of_floats(tmp_path: Path, dtype: Any) -> None:
    np.save(tmp_path / "a.npy", np.array([0.5, -2], dtype))
    found = read_array(tmp_path / "a.npy")
    assert found.dtype == np.float64
    assert found.tolist() == [0.5, -2.0]


def test_npy_of_no_elements_and_of_numbers_past_int64(tmp_path: Path) -> None:
    np.save(tmp_path / "none.npy", np.zeros(0, np.float32))
    assert read_array(tmp_path / "none.npy").shape == (0,)
    np.save(tmp_path / "large.npy", np.array([2**64 - 1], np.uint64))
    assert read_array(tmp_path / "large.npy").tolist() == [2.0**64]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros((2, 3)), "a.npy contains 2 x 3; an array of one dimension is needed."),
        (np.array(7), "a.npy contains a single number; an array of one dimension is needed."),
        (np.array([1j]), "a.npy contains complex128; integers or floating-point numbers are needed."),
        (np.array(["a"]), "a.npy contains <U1; integers or floating-point numbers are needed."),
    ],
)
def test_npy_of_what_is_no_list_of_numbers(tmp_path: Path, values: Array, message: str) -> None:
    np.save(tmp_path / "a.npy", values)
    with pytest.raises(InputError) as raised:
        read_array(tmp_path / "a.npy")
    assert raised.value.message == message


def test_npy_that_is_cut_off_or_promises_too_much_or_is_something_else(tmp_path: Path) -> None:
    whole = tmp_path / "whole.npy"
    np.save(whole, np.arange(100))
    content = whole.read_bytes()
    huge = content.replace(b"(100,), ", b"(99999999999999,), ".ljust(8))
    for case in (content[:-1], content[:60], content[:3], b"", b"no", huge, b"PK\x03\x04nothing"):
        with pytest.raises(InputError, match=r"^a\.npy is ") as raised:
            read_array(text(tmp_path, case, "a.npy"))
        assert raised.value.message == "a.npy is not a complete .npy file of numbers."
        assert "numpy.save" in raised.value.advice
    np.savez(tmp_path / "many.npz", a=np.arange(3))
    with pytest.raises(InputError, match="not a complete"):
        read_array((tmp_path / "many.npz").rename(tmp_path / "many.npy"))
    np.save(tmp_path / "objects.npy", np.array([None]), allow_pickle=True)
    with pytest.raises(InputError, match=r"^objects\.npy is not a complete \.npy file of numbers"):
        read_array(tmp_path / "objects.npy")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for name in ("a.npy", "a.csv"):
        with pytest.raises(InputError, match="There is no file"):
            read_array(tmp_path / name)
    with pytest.raises(InputError, match="is a folder"):
        read_array(tmp_path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("saved")


@given(st.lists(st.integers(-(2**63) + 1, 2**63 - 1)) | st.lists(st.floats(allow_nan=False), min_size=1))
def test_what_was_saved_is_read_again(folder: Path, values: list[float]) -> None:
    array = np.array(values, np.int64 if all(isinstance(value, int) for value in values) else np.float64)
    for ending in ("npy", "csv"):
        save_array(str(folder / f"a.{ending}"), array)
        np.testing.assert_array_equal(read_array(folder / f"a.{ending}"), array)


@pytest.mark.parametrize("content", ["1,2,3\n4,5,6\n", "1 2 3 # first\n\n4\t5 6", "1, 2, 3\n4, 5, 6"])
def test_rows_of_a_matrix(tmp_path: Path, content: str) -> None:
    found = read_array(text(tmp_path, content), 2)
    assert found.dtype == np.int64
    assert found.tolist() == [[1, 2, 3], [4, 5, 6]]


def test_a_matrix_that_was_saved_is_read_as_it_was(tmp_path: Path) -> None:
    values = np.random.default_rng(1).standard_normal((5, 7)).astype(np.float32)
    for name in ("matrix.csv", "matrix.npy"):
        save_array(str(tmp_path / name), values)
        np.testing.assert_array_equal(read_array(tmp_path / name, 2).astype(np.float32), values)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1,2\n3", "numbers.csv, line 2: 1 numbers, but the first row has 2."),
        ("1,2\n3,four", "numbers.csv, line 2: 'four' is not a number."),
        ("# nothing\n", "numbers.csv is empty; a matrix is needed."),
    ],
)
def test_what_is_no_matrix_says_why(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(InputError) as raised:
        read_array(text(tmp_path, content), 2)
    assert raised.value.message == message


def test_an_array_of_other_dimensions_is_not_a_matrix(tmp_path: Path) -> None:
    np.save(tmp_path / "line.npy", np.zeros(5))
    with pytest.raises(InputError, match=r"line\.npy contains 5; a matrix is needed"):
        read_array(tmp_path / "line.npy", 2)
