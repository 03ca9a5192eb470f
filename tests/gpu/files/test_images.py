"""Images read: values as they stand in the file, one sentence for everything that is wrong with it."""

from __future__ import annotations

import errno
import io
import os
import struct

import numpy as np
import PIL.Image
import pytest

from gpu.base.errors import InputError
from gpu.files import decoder
from gpu.files.images import Image, convert_for_display, read_image
from tests import needs
from tests.gpu.files.image_files import GRAY8, GRAY16, RANDOM, RGB8, RGB16, big_endian_rows, png, refusal, write_file
from tests.tiers import spread


@pytest.mark.parametrize(
    ("name", "pixels"),
    [
        ("a.png", GRAY8),
        ("a.png", RGB8),
        ("a.tif", GRAY8),
        ("a.tif", RGB8),
        ("a.bmp", RGB8),
        ("a.png", GRAY16),
        ("a.tif", GRAY16),
    ],
)
@pytest.mark.parametrize("options", [{}, {"compression": "tiff_lzw"}, {"compression": "tiff_adobe_deflate"}])
def test_lossless_formats_are_exact(tmp_path, name, pixels, options):
    PIL.Image.fromarray(pixels).save(tmp_path / name, **(options if name.endswith("tif") else {}))
    image = read_image(tmp_path / name)
    assert image.pixels.dtype == pixels.dtype
    assert image.maxval == np.iinfo(pixels.dtype).max
    np.testing.assert_array_equal(image.pixels, pixels)


def test_16_bit_color_png_keeps_both_bytes(tmp_path):
    image = read_image(write_file(tmp_path, png(31, 19, 16, 2, big_endian_rows(RGB16)), "a.png"))
    assert image.maxval == 65535
    np.testing.assert_array_equal(image.pixels, RGB16)


@pytest.mark.parametrize("channels", [2, 4])
def test_16_bit_alpha_is_composited_on_white_in_16_bits(tmp_path, channels):
    values = RANDOM.integers(0, 65536, (19, 31, channels), np.uint16)
    values[:5, :, -1] = 65535
    values[5:9, :, -1] = 0
    image = read_image(write_file(tmp_path, png(31, 19, 16, {2: 4, 4: 6}[channels], big_endian_rows(values)), "a.png"))
    alpha = values[..., -1:] / 65535
    expected = np.floor(values[..., :-1] * alpha + 65535 * (1 - alpha) + 0.5)
    assert image.pixels.shape == ((19, 31) if channels == 2 else (19, 31, 3))
    assert np.abs(image.pixels - expected.reshape(image.pixels.shape)).max() <= 1
    np.testing.assert_array_equal(image.pixels[:5], values[:5, :, :-1].reshape(image.pixels[:5].shape))
    assert (image.pixels[5:9] == 65535).all()


@pytest.mark.parametrize(
    ("order", "inverted", "channels"),
    [("<", False, 1), ("<", True, 1), ("<", False, 3), (">", False, 1), (">", False, 3)],
)
def test_16_bit_tiff_of_either_byte_order(tmp_path, order, inverted, channels):
    values = RGB16 if channels == 3 else GRAY16
    photometric = 2 if channels == 3 else 1 - inverted
    data = values.astype(f"{order}u2").tobytes()
    entries = [(256, 4, 1, 31), (257, 4, 1, 19), (258, 3, 1, 16), (259, 3, 1, 1), (262, 3, 1, photometric)]
    entries += [(273, 4, 1, 200), (277, 3, 1, channels), (278, 4, 1, 19), (279, 4, 1, len(data))]
    if channels == 3:
        entries[2] = (258, 3, 3, 190)
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(f"{order}IH", 8, len(entries))
    for tag, kind, count, value in entries:
        field = struct.pack(f"{order}HH", value, 0) if (kind, count) == (3, 1) else struct.pack(f"{order}I", value)
        head += struct.pack(f"{order}HHI", tag, kind, count) + field
    head = (head + bytes(4)).ljust(190, b"\0") + struct.pack(f"{order}HHH", 16, 16, 16)
    image = read_image(write_file(tmp_path, head.ljust(200, b"\0") + data, "a.tif"))
    np.testing.assert_array_equal(image.pixels, 65535 - values if inverted else values)


def test_1_bit_2_bit_and_4_bit_png_fill_the_range(tmp_path):
    for depth, white in ((1, 1), (2, 3), (4, 15)):
        image = read_image(write_file(tmp_path, png(2, 1, depth, 0, bytes([0, white << (8 - 2 * depth)])), "a.png"))
        assert image.pixels.tolist() == [[0, 255]], depth
        assert image.pixels.dtype == np.uint8


def test_palette_and_its_transparency(tmp_path):
    palette = PIL.Image.new("P", (3, 1))
    palette.putpalette([10, 20, 30, 40, 50, 60, 70, 80, 90])
    palette.putdata([0, 1, 2])
    palette.save(tmp_path / "a.png")
    assert read_image(tmp_path / "a.png").pixels.tolist() == [[[10, 20, 30], [40, 50, 60], [70, 80, 90]]]
    palette.save(tmp_path / "a.gif", transparency=1)
    assert read_image(tmp_path / "a.gif").pixels.tolist() == [[[10, 20, 30], [255, 255, 255], [70, 80, 90]]]


@pytest.mark.parametrize("mode", ["LA", "RGBA"])
def test_8_bit_alpha_is_composited_on_white(tmp_path, mode):
    values = np.array([[[100] * (len(mode) - 1) + [alpha] for alpha in (0, 51, 255)]], np.uint8)
    PIL.Image.fromarray(values, mode).save(tmp_path / "a.png")
    assert read_image(tmp_path / "a.png").pixels.reshape(3, -1)[:, 0].tolist() == [255, 224, 100]


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
def test_jpeg(tmp_path, mode):
    smooth = PIL.Image.fromarray(np.tile(np.arange(0, 256, 4, dtype=np.uint8), (40, 1)))
    smooth.convert(mode).save(tmp_path / "a.jpg", quality=95)
    image = read_image(tmp_path / "a.jpg")
    assert image.pixels.shape == ((40, 64) if mode == "L" else (40, 64, 3))
    gray = image.pixels if mode == "L" else image.pixels[..., 1]
    assert np.abs(gray.astype(int) - np.asarray(smooth)).max() < 6


@pytest.mark.parametrize(
    ("orientation", "file"),
    spread(
        range(1, 9),
        [("a.png", GRAY8), ("a.png", GRAY16), ("a.tif", GRAY8), ("a.tif", RGB8), ("a.tif", GRAY16), ("a.jpg", RGB8)],
    ),
)
def test_orientation(tmp_path, orientation, file):
    name, pixels = file
    exif = PIL.Image.Exif()
    plain = PIL.Image.fromarray(pixels)
    plain.save(tmp_path / f"plain-{name}")
    exif[274] = orientation
    plain.save(tmp_path / name, exif=exif)
    upright = {2: 0, 3: 3, 4: 1, 5: 5, 6: 4, 7: 6, 8: 2}  # PIL.Image.Transpose by EXIF's numbers
    expected = PIL.Image.fromarray(read_image(tmp_path / f"plain-{name}").pixels)
    if orientation in upright:
        expected = expected.transpose(PIL.Image.Transpose(upright[orientation]))
    image = read_image(tmp_path / name)
    np.testing.assert_array_equal(image.pixels, np.asarray(expected))
    assert image.pixels.flags.c_contiguous


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_values_of_unknown_scale_are_refused(tmp_path, dtype):
    PIL.Image.fromarray(np.zeros((4, 4), dtype)).save(tmp_path / "a.tif")
    assert "8 or 16 unsigned bits per value" in refusal(tmp_path / "a.tif")


def test_first_frame_of_several(tmp_path):
    frames = [PIL.Image.fromarray(GRAY8), PIL.Image.fromarray(255 - GRAY8)]
    frames[0].save(tmp_path / "a.tif", save_all=True, append_images=frames[1:])
    np.testing.assert_array_equal(read_image(tmp_path / "a.tif").pixels, GRAY8)


@pytest.mark.parametrize("extension", ["png", "jpg", "tif", "gif", "bmp"])
@pytest.mark.parametrize("kept", [0.1, 0.5, 0.9])
def test_cut_short(tmp_path, extension, kept):
    buffer = io.BytesIO()
    noise = np.random.default_rng(3).integers(0, 256, (80, 90), np.uint8)
    PIL.Image.fromarray(noise).save(buffer, {"jpg": "jpeg", "tif": "tiff"}.get(extension, extension))
    data = buffer.getvalue()
    message = refusal(write_file(tmp_path, data[: int(len(data) * kept)], f"a.{extension}"))
    assert "truncated" in message or "is not a supported image" in message


def test_png_that_promises_more_than_it_can_hold(tmp_path):
    data = png(16000, 16000, 8, 2, bytes(100))
    assert "truncated: its header declares 16000 x 16000" in refusal(write_file(tmp_path, data, "a.png"))


@pytest.mark.parametrize("size", [(17000, 16384), (60000, 60000), (2**31 - 1, 1)])
def test_png_above_the_limit(tmp_path, size):
    assert "Mpixel" in refusal(write_file(tmp_path, png(*size, 8, 0, bytes(100)), "a.png"))


def test_zero_sized_png(tmp_path):
    refusal(write_file(tmp_path, png(0, 3, 8, 0, b""), "a.png"))


def test_an_image_between_pillows_limit_and_ours_makes_no_noise(tmp_path):
    PIL.Image.new("1", (14000, 14000)).save(tmp_path / "a.png")  # 187 Mpixel; Pillow by itself warns above 85
    assert read_image(tmp_path / "a.png").pixels.shape == (14000, 14000)


@pytest.mark.parametrize("extension", ["png", "jpg", "tif", "gif", "bmp", "pgm"])
def test_damaged_anywhere_is_an_image_or_one_sentence(tmp_path, monkeypatch, extension):
    monkeypatch.setattr(decoder, "is_small", lambda _file: True)  # hundreds of processes would take a minute
    buffer = io.BytesIO()
    kind = {"jpg": "jpeg", "tif": "tiff", "pgm": "ppm"}.get(extension, extension)
    PIL.Image.fromarray(GRAY8).save(buffer, kind)
    whole = buffer.getvalue()
    random = np.random.default_rng(7)
    for _ in range(150):
        data = bytearray(whole)
        for position in random.integers(0, min(len(data), 400), random.integers(1, 6)):
            data[position] = random.integers(0, 256)
        path = write_file(tmp_path, bytes(data), f"a.{extension}")
        try:
            assert read_image(path).pixels.size
        except InputError:
            refusal(path)


# --- files that are none


def test_missing_folder_and_unreadable(tmp_path):
    assert refusal(tmp_path / "none.png") == f"There is no file {tmp_path / 'none.png'}."
    assert "is a folder" in refusal(tmp_path)
    assert "There is no file" in refusal(tmp_path / "a\0b.png")
    refusal(tmp_path / ("long" * 200))
    assert refusal(tmp_path / "two\nlines.png").count("\\n") == 1


@needs.named_pipes
def test_a_pipe_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "a.pgm")
    assert "is a pipe, not a file" in refusal(tmp_path / "a.pgm")


def test_no_permission(tmp_path, monkeypatch):
    path = write_file(tmp_path, b"P5 1 1 255\n.")

    def denied(*_arguments, **_options):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(os, "open", denied)  # root may read everything
    assert refusal(path) == f"Cannot read {path}: permission denied."


# --- for a screen


@pytest.mark.parametrize(("dtype", "maxval"), [(np.uint8, 1), (np.uint8, 100), (np.uint16, 1023), (np.uint16, 65535)])
def test_picture_scales_white_to_255(dtype, maxval):
    values = np.linspace(0, maxval, 200_000).round().astype(dtype).reshape(400, 500)
    shown = convert_for_display(Image(values, maxval))
    assert shown.dtype == np.uint8
    expected = values.astype(np.int64) * 255 / maxval
    assert np.abs(shown - expected).max() <= 0.5
    assert (shown.min(), shown.max()) == (0, 255)


def test_picture_of_color_and_of_what_needs_nothing():
    assert convert_for_display(Image(RGB8, 255)) is RGB8
    np.testing.assert_array_equal(convert_for_display(Image(RGB16, 65535)), np.floor(RGB16 / 257 + 0.5))
