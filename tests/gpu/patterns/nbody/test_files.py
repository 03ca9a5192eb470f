"""Files of bodies: what is written is read again, and what is wrong gets one sentence with the line."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu.base.errors import InputError
from gpu.patterns.nbody import files as nbody_files
from gpu.patterns.nbody.files import accept_bodies, read_bodies, write_bodies

Array = np.ndarray[Any, Any]

TWO = "0.5,0,0,0,0.5,0,1\n-0.5,0,0,0,-0.5,0,2\n"


def bodies(n: int) -> Array:
    rng = np.random.default_rng(n)
    made = (rng.normal(size=(n, 7)) * 10.0 ** rng.integers(-6, 6, (n, 7))).astype(np.float32)
    made[:, 6] = np.abs(made[:, 6])
    return made


@pytest.mark.parametrize("ending", [".csv", ".tipsy", ".bin", ".npy"])
@pytest.mark.parametrize("n", [1, 2, 1000])
def test_what_is_written_is_read_again(tmp_path: Path, ending: str, n: int) -> None:
    made = bodies(n)
    write_bodies(tmp_path / f"bodies{ending}", made, time=1.5)
    np.testing.assert_array_equal(read_bodies(tmp_path / f"bodies{ending}"), made)
    assert [file.name for file in tmp_path.iterdir()] == [f"bodies{ending}"]


def test_npy_is_numpy_s(tmp_path: Path) -> None:
    write_bodies(tmp_path / "bodies.npy", bodies(5))
    np.testing.assert_array_equal(np.load(tmp_path / "bodies.npy"), bodies(5))
    for wrong, message in (
        (np.ones((3, 4)), "3 x 4 numbers; a body has seven"),
        (np.ones((3, 7), complex), "contains complex128, but bodies need real numbers"),
    ):
        np.save(tmp_path / "wrong.npy", wrong)
        with pytest.raises(InputError, match=rf"^wrong\.npy .*{message}"):
            read_bodies(tmp_path / "wrong.npy")
    (tmp_path / "cut.npy").write_bytes((tmp_path / "bodies.npy").read_bytes()[:140])
    with pytest.raises(InputError, match=r"cut\.npy is not a complete \.npy file"):
        read_bodies(tmp_path / "cut.npy")


@pytest.mark.parametrize(
    "text",
    [
        TWO,
        "x,y,z,vx,vy,vz,m\n" + TWO,
        "X, Y, Z, VX, VY, VZ, M\n" + TWO,
        TWO.replace(",", " \t"),
        TWO.replace(",", " ; "),
        "# two bodies\n\n" + TWO.replace("\n", "  # here\r\n"),
        "\ufeff" + TWO.rstrip(),
        TWO.replace("0.5", "5e-1"),
    ],
)
def test_text_as_people_write_it(tmp_path: Path, text: str) -> None:
    (tmp_path / "two.csv").write_text(text, encoding="utf-8", newline="")
    found = read_bodies(tmp_path / "two.csv")
    assert found.dtype == np.float32
    assert found.tolist() == [[0.5, 0, 0, 0, 0.5, 0, 1], [-0.5, 0, 0, 0, -0.5, 0, 2]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no bodies: each needs a line with x y z vx vy vz m"),
        ("x,y,z,vx,vy,vz,m\n", "has no bodies"),
        (TWO + "1,2,3\n", "line 3: 3 numbers, but a body has seven"),
        ("1\n", "line 1: 1 number, but"),
        (TWO + "\n1,2,3,4,5,6,7,8\n", "line 4: 8 numbers"),
        (TWO + "1,2,3,4,5,six,7\n", "line 3: 'six' is not a number for vz"),
        (TWO + "1,2,3,4,5,,7\n", "line 3: '' is not a number for vz"),
        ("1,2,3,4,5,6,nan\n", "line 1: m is nan, which is not a finite float32"),
        ("1e39,2,3,4,5,6,7\n", "line 1: x is 1e39, which is not a finite float32"),
        ("1,2,3,4,5,6,-7\n", "line 1: the mass -7 is negative"),
        ("1,2,3,4,5,6,0\n", "has no body with a mass"),
        ("x,y,z,vx,vy,vz,mass\n", "line 1: 'x' is not a number for x"),
    ],
)
def test_bad_text_is_named_by_its_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "bad.csv").write_text(text)
    with pytest.raises(InputError, match=rf"^bad\.csv.*{message}"):
        read_bodies(tmp_path / "bad.csv")


def test_what_is_no_text_or_not_there(tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_bytes(b"1,2,3,4,5,6,7\n\xff\xfe\n")
    with pytest.raises(InputError, match=r"bad\.csv, line 2, is not text"):
        read_bodies(tmp_path / "bad.csv")
    with pytest.raises(InputError, match="There is no file"):
        read_bodies(tmp_path / "missing.csv")
    with pytest.raises(InputError, match="is a folder"):
        read_bodies(tmp_path)


def test_too_many_bodies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nbody_files, "MAX_BODIES", 3)
    (tmp_path / "many.csv").write_text(TWO * 2)
    with pytest.raises(InputError, match="more than 3 bodies"):
        read_bodies(tmp_path / "many.csv")
    write_bodies(tmp_path / "many.tipsy", bodies(4))
    with pytest.raises(InputError, match="has 4 bodies; 1 to 3 are allowed"):
        read_bodies(tmp_path / "many.tipsy")


@pytest.mark.parametrize("order", [">", "<"])
@pytest.mark.parametrize("padding", [b"", b"\0\0\0\0"])
def test_tipsy_of_other_programs(tmp_path: Path, order: str, padding: bytes) -> None:
    """One particle of gas, two dark ones, one star: each has its own length, and all begin alike."""
    header = struct.pack(f"{order}d5i", 0.25, 4, 3, 1, 2, 1) + padding
    particles = [(12, 1.0), (9, 2.0), (9, 3.0), (11, 4.0)]
    data = b"".join(
        struct.pack(f"{order}{words}f", mass, *np.arange(6) + 10 * mass, *[99] * (words - 7))
        for words, mass in particles
    )
    (tmp_path / "all.tipsy").write_bytes(header + data)
    found = read_bodies(tmp_path / "all.tipsy")
    assert found[:, 6].tolist() == [1, 2, 3, 4]
    np.testing.assert_array_equal(found[:, :6], np.arange(6) + 10 * found[:, 6:])


@pytest.mark.parametrize("cut", [0, 10, 31, 32, 100])
def test_a_tipsy_file_that_is_cut_short(tmp_path: Path, cut: int) -> None:
    write_bodies(tmp_path / "whole.tipsy", bodies(3))
    (tmp_path / "cut.tipsy").write_bytes((tmp_path / "whole.tipsy").read_bytes()[:cut])
    with pytest.raises(InputError, match=r"cut\.tipsy is not a complete tipsy file"):
        read_bodies(tmp_path / "cut.tipsy")


def test_tipsy_bodies_are_numbers_too(tmp_path: Path) -> None:
    made = bodies(3)
    made[1, 2] = np.nan
    write_bodies(tmp_path / "nan.tipsy", made)
    with pytest.raises(InputError, match=r"nan\.tipsy, body 2: numbers have to be finite"):
        read_bodies(tmp_path / "nan.tipsy")


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    for name, message in (
        ("bodies.txt", r"its suffix has to be one of \.csv, \.tipsy, \.bin, \.npy"),
        ("missing/bodies.csv", "there is no folder"),
    ):
        with pytest.raises(InputError, match=message):
            write_bodies(tmp_path / name, bodies(2))
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match="it is a folder"):
        write_bodies(tmp_path / "folder.csv", bodies(2))
    assert [file.name for file in tmp_path.iterdir()] == ["folder.csv"]


def test_bodies_are_made_float32() -> None:
    assert accept_bodies(np.ones((2, 7)), "It").dtype == np.float32
    with pytest.raises(InputError, match="It, body 2: numbers have to be finite, and the mass not negative"):
        accept_bodies(np.array([[0, 0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0, -1]]), "It")
