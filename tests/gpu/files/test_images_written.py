"""Images written: they read the same, and nothing is left of what fails."""

from __future__ import annotations

import errno
import io

import numpy as np
import PIL.Image
import pytest

from gpu.base.errors import InputError
from gpu.files import file_access, png
from gpu.files.images import read_image, write_image
from tests.gpu.files.image_files import GRAY8, GRAY16, RANDOM, RGB8, RGB16, write_file


@pytest.mark.parametrize("name", ["a.pgm", "a.ppm", "a.png", "A.PNG"])
@pytest.mark.parametrize("pixels", [GRAY8, RGB8, GRAY16, RGB16, GRAY8[:1, :1], RGB16[::2, ::-1]])
def test_what_is_written_reads_the_same(tmp_path, name, pixels):
    if name[-3:] in ("pgm", "ppm") and (name.endswith("ppm") != (pixels.ndim == 3)):
        with pytest.raises(InputError, match="image needs"):
            write_image(tmp_path / name, pixels)
        assert not list(tmp_path.iterdir())
        return
    write_image(tmp_path / name, pixels)
    image = read_image(tmp_path / name)
    assert image.pixels.dtype == pixels.dtype
    assert image.maxval == np.iinfo(pixels.dtype).max
    np.testing.assert_array_equal(image.pixels, pixels)


@pytest.mark.parametrize("pixels", [GRAY16, RGB16])
def test_16_bit_png_is_right_by_another_reader(tmp_path, pixels):
    write_image(tmp_path / "a.png", pixels)
    with PIL.Image.open(tmp_path / "a.png") as image:
        image.load()
        other = np.asarray(image)
    np.testing.assert_array_equal(other, pixels if pixels.ndim == 2 else pixels >> 8)


def test_png_of_many_strips(tmp_path, monkeypatch):
    monkeypatch.setattr(png, "_STRIP_BYTES", 200)
    write_image(tmp_path / "a.png", RGB16)
    np.testing.assert_array_equal(read_image(tmp_path / "a.png").pixels, RGB16)


@pytest.mark.parametrize(("maxval", "white"), [(1, 255), (100, 255), (256, 65535), (1023, 65535)])
def test_png_scales_to_its_own_white(tmp_path, maxval, white):
    values = np.arange(maxval + 1, dtype=np.uint16).reshape(1, -1)
    write_image(tmp_path / "a.png", values, maxval)
    image = read_image(tmp_path / "a.png")
    assert image.maxval == white
    np.testing.assert_array_equal(image.pixels, (2 * white * values.astype(int) + maxval) // (2 * maxval))


@pytest.mark.parametrize(
    ("name", "pixels", "maxval", "words"),
    [
        ("a.jpg", GRAY8, None, "must end in .pgm, .ppm, .png"),
        ("a", GRAY8, None, "must end in"),
        ("a.png", GRAY8[:0], None, "no pixels"),
        ("a.png", GRAY8.astype(float), None, "not an image"),
        ("a.png", RGB8[..., :2], None, "not an image"),
        ("a.pgm", GRAY8, 100, "above the value of white, 100"),
        ("a.pgm", GRAY16, 65536, "must be 1 to 65535"),
        ("none/a.pgm", GRAY8, None, "there is no folder"),
    ],
)
def test_what_cannot_be_written(tmp_path, name, pixels, maxval, words):
    with pytest.raises(InputError, match=words):
        write_image(tmp_path / name, pixels, maxval)
    assert not list(tmp_path.iterdir())


def test_writing_over_a_folder(tmp_path):
    (tmp_path / "a.png").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        write_image(tmp_path / "a.png", GRAY8)


@pytest.mark.parametrize("name", ["a.png", "a.pgm"])
@pytest.mark.parametrize("pixels", [GRAY8, GRAY16])
def test_a_full_disk_leaves_the_old_file_and_no_other(tmp_path, monkeypatch, name, pixels):
    write_file(tmp_path, b"old", name)

    class Full(io.FileIO):
        def write(self, _data):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(file_access, "open", lambda path, _mode: Full(path, "x"), raising=False)
    with pytest.raises(InputError, match=r"Cannot write .*a\.p..: no space left on device\."):
        write_image(tmp_path / name, pixels)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_bytes() == b"old"


def test_replacing_keeps_permissions_and_takes_the_place_of_a_link(tmp_path):
    write_image(tmp_path / "real.pgm", GRAY8)
    (tmp_path / "real.pgm").chmod(0o640)
    (tmp_path / "link.pgm").symlink_to("real.pgm")
    write_image(tmp_path / "link.pgm", 255 - GRAY8)
    assert not (tmp_path / "link.pgm").is_symlink()
    np.testing.assert_array_equal(read_image(tmp_path / "link.pgm").pixels, 255 - GRAY8)
    np.testing.assert_array_equal(read_image(tmp_path / "real.pgm").pixels, GRAY8)
    write_image(tmp_path / "real.pgm", 255 - GRAY8)
    assert (tmp_path / "real.pgm").stat().st_mode & 0o777 == 0o640


def test_strided_rows_too_long_for_a_strip(tmp_path):
    wide = RANDOM.integers(0, 256, (3, 2_000_000), np.uint8)
    write_image(tmp_path / "a.pgm", wide[:, ::2])
    np.testing.assert_array_equal(read_image(tmp_path / "a.pgm").pixels, wide[:, ::2])
