from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpu.base.errors import InputError
from gpu.files import images
from gpu.run import export


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint32, np.int64])
@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (2, 3, 3)])
def test_npy_keeps_everything(tmp_path: Path, shape: tuple[int, ...], dtype):
    path = tmp_path / "a.npy"
    values = np.asarray(np.random.default_rng(1).random(shape) * 1000).astype(dtype)
    export.save_array(str(path), values)
    found = np.load(path)
    assert found.dtype == dtype
    assert found.shape == shape
    assert np.array_equal(found, values)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint32, np.int64])
@pytest.mark.parametrize("shape", [(), (5,), (1, 5), (3, 4), (2, 3, 3)])
def test_csv_gives_the_same_numbers_again(tmp_path: Path, shape: tuple[int, ...], dtype):
    path = tmp_path / "a.csv"
    values = np.asarray(np.random.default_rng(1).random(shape) * 1e9 / 7).astype(dtype)
    export.save_array(str(path), values)
    assert np.array_equal(np.loadtxt(path, delimiter=",", dtype=dtype).reshape(shape), values)


def test_csv_of_a_color_image_says_how_it_is_laid_out(tmp_path: Path):
    path = tmp_path / "a.csv"
    export.save_array(str(path), np.arange(12, dtype=np.uint8).reshape(2, 2, 3))
    assert path.read_text().splitlines() == [
        "# 2 rows, 2 columns, 3 values in each, side by side",
        "0,1,2,3,4,5",
        "6,7,8,9,10,11",
    ]


def test_csv_has_no_room_for_four_dimensions(tmp_path: Path):
    path = tmp_path / "a.csv"
    with pytest.raises(InputError, match="a table cannot have 4 dimensions"):
        export.save_array(str(path), np.zeros((1, 1, 1, 1)))
    assert not list(tmp_path.iterdir())


def test_an_image_keeps_its_levels(tmp_path: Path):
    path = tmp_path / "a.pgm"
    values = np.array([[0, 700, 1000]], np.uint16)
    export.save_array(str(path), values, maxval=1000)
    found = images.read_image(path)
    assert found.maxval == 1000
    assert np.array_equal(found.pixels, values)


def test_numbers_that_are_no_picture_are_refused_as_one(tmp_path: Path):
    with pytest.raises(InputError, match="float32 values of shape"):
        export.save_array(str(tmp_path / "a.png"), np.zeros((3, 3), np.float32))


@pytest.mark.parametrize(
    ("name", "color", "sentence"),
    [
        ("a.txt", None, ".txt is not a known format. Use one of .pgm, .ppm, .png, .npy, .csv."),
        ("a", None, "the name has no suffix."),
        ("folder.npy", None, "it is a folder."),
        ("nowhere/a.npy", None, "there is no folder "),
        ("a.pgm", True, "a color image needs .ppm or .png."),
        ("a.ppm", False, "a gray image needs .pgm or .png."),
    ],
)
def test_a_file_that_cannot_be_written_is_refused_beforehand(
    tmp_path: Path, name: str, color: bool | None, sentence: str
):
    (tmp_path / "folder.npy").mkdir()
    with pytest.raises(InputError) as caught:
        export.check_target(str(tmp_path / name), color=color)
    assert sentence in caught.value.message
    assert caught.value.message.startswith(f"Cannot write {tmp_path / name}: ")


@pytest.mark.parametrize("name", ["a.pgm", "a.PNG", "a.npy", "a.csv"])
def test_a_file_that_can_be_written_is_not_refused(tmp_path: Path, name: str):
    export.check_target(str(tmp_path / name), color=False)
    assert not list(tmp_path.iterdir())
