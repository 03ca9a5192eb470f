"""Images: values as they stand in the file, one sentence for everything that is wrong with it."""

from __future__ import annotations

import errno
import io
import os
import struct
import tracemalloc
import zlib

import numpy as np
import PIL.Image
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpu import images
from gpu.errors import InputError
from gpu.images import Image, picture, read_image, write_image

RANDOM = np.random.default_rng(2)
GREY8 = RANDOM.integers(0, 256, (19, 31), np.uint8)
RGB8 = RANDOM.integers(0, 256, (19, 31, 3), np.uint8)
GREY16 = RANDOM.integers(0, 65536, (19, 31), np.uint16)
RGB16 = RANDOM.integers(0, 65536, (19, 31, 3), np.uint16)


def stored(folder, data: bytes, name: str = "image.pgm"):
    path = folder / name
    path.write_bytes(data)
    return path


def refusal(path) -> str:
    with pytest.raises(InputError) as caught:
        read_image(path)
    assert "\n" not in caught.value.message
    assert caught.value.message.endswith(".")
    return caught.value.message


def png(width: int, height: int, depth: int, kind: int, rows: bytes, *, size: bytes = b"") -> bytes:
    """Return a PNG file made by hand; `rows` with a filter byte before each."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + (size or chunk(b"IDAT", zlib.compress(rows)))
        + chunk(b"IEND", b"")
    )


def big_endian_rows(values: np.ndarray) -> bytes:
    return b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)


# --- PGM and PPM, exact


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    maxval=st.one_of(st.sampled_from([1, 2, 100, 254, 255, 256, 1023, 4095, 65534, 65535]), st.integers(1, 65535)),
    width=st.integers(1, 9),
    height=st.integers(1, 9),
    colour=st.booleans(),
    plain=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_netpbm_values_are_those_of_the_file(tmp_path, maxval, width, height, colour, plain, seed):
    shape = (height, width, 3) if colour else (height, width)
    values = np.random.default_rng(seed).integers(0, maxval, shape, endpoint=True)
    magic = {(False, False): "P5", (False, True): "P2", (True, False): "P6", (True, True): "P3"}[colour, plain]
    if plain:
        raster = " ".join(map(str, values.ravel())).encode()
    else:
        raster = values.astype(">u2" if maxval > 255 else np.uint8).tobytes()
    image = read_image(stored(tmp_path, f"{magic}\n{width} {height}\n{maxval}\n".encode() + raster))
    assert image.maxval == maxval
    assert image.pixels.dtype == (np.uint16 if maxval > 255 else np.uint8)
    assert image.pixels.dtype.isnative
    np.testing.assert_array_equal(image.pixels, values)

    written = tmp_path / ("again.ppm" if colour else "again.pgm")
    write_image(written, image.pixels, maxval)
    again = read_image(written)
    assert again.maxval == maxval
    np.testing.assert_array_equal(again.pixels, values)


@pytest.mark.parametrize(
    "header",
    [
        b"P5 3 2 200 ",
        b"P5#made by hand\n3 2\n200\n",
        b"P5\n# one\n# two\n3 # width\n#height next\n2\n#white\n200\n",
        b"P5\r\n3\t2\r200\n",
        b"P5\n3 2\n200#white\n",
        b"P5\n3 2\n200\n# after the last number\n",
        b"P5\n3 2\n200 # after the last number\n# and again\n",
        b"P5\n\n\n  3\n  2\n  00200\n",
    ],
)
def test_comments_anywhere_in_the_header(tmp_path, header):
    image = read_image(stored(tmp_path, header + bytes([0, 35, 200, 10, 13, 32])))
    assert image.maxval == 200
    assert image.pixels.tolist() == [[0, 35, 200], [10, 13, 32]]


def test_a_pixel_that_looks_like_a_comment_is_a_pixel(tmp_path):
    image = read_image(stored(tmp_path, b"P5 4 1 255\n# \n!"))
    assert bytes(image.pixels.ravel()) == b"# \n!"


def test_comments_in_plain_pixels_and_trailing_text(tmp_path):
    image = read_image(stored(tmp_path, b"P2\n2 2\n9\n1 2 # first 7 7\r\n3\n\n4 # last\nP2 and more"))
    assert image.pixels.tolist() == [[1, 2], [3, 4]]


def test_second_image_of_a_file_is_left_alone(tmp_path):
    one = b"P5 2 1 255\n\1\2"
    assert read_image(stored(tmp_path, one + one)).pixels.tolist() == [[1, 2]]


@pytest.mark.parametrize("newlines", [True, False])
def test_plain_file_larger_than_a_block(tmp_path, newlines):
    values = RANDOM.integers(0, 65536, (700, 600))
    separator = b"\n" if newlines else b" "
    raster = separator.join(b" ".join(b"%d" % value for value in row) for row in values)
    assert len(raster) > 2 * images.netpbm._BLOCK_BYTES
    image = read_image(stored(tmp_path, b"P2 600 700 65535\n# a comment\n" + raster))
    np.testing.assert_array_equal(image.pixels, values)


@pytest.mark.parametrize("data", [b"P1\n# c\n5 2\n01 0 1 0\n1#c\n1111", b"P4 5 2\n" + bytes([0b01010111, 0b11111000])])
def test_bitmaps_are_black_where_1(tmp_path, data):
    image = read_image(stored(tmp_path, data, "bits.pbm"))
    assert image.maxval == 255
    assert image.pixels.tolist() == [[255, 0, 255, 0, 255], [0, 0, 0, 0, 0]]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b"P9\n2 2\n255\n....", "begins with b'P9'"),
        (b"hello, this is text", "is not an image"),
        (b"P5", "ends before the width"),
        (b"P5\n2\n", "ends before the height"),
        (b"P5\n2 2 ", "ends before the maxval"),
        (b"P5\n2 2\n255", "ends before the maxval"),
        (b"P5\n2 x\n255\n....", "height is not a number"),
        (b"P5\n-2 2\n255\n....", "width is not a number"),
        (b"P5\n99999999999 2\n255\n....", "width is not a number"),
        (b"P5\n" + b" " * 100_000, "width is not a number"),
        (b"P5\n0 2\n255\n", "0 x 2"),
        (b"P2\n2 0\n255\n", "2 x 0"),
        (b"P5\n2 2\n0\n....", "maxval is 0"),
        (b"P5\n2 2\n65536\n........", "maxval is 65536"),
        (b"P5\n2 2\n255\n...", "cut short"),
        (b"P5\n2 2\n256\n.......", "cut short"),
        (b"P6\n2 2\n255\n...........", "cut short"),
        (b"P4\n9 2\n...", "cut short"),
        (b"P1\n2 2\n0 1 0", "cut short"),
        (b"P2\n2 2\n255\n1 2 3", "cut short"),
        (b"P2\n2 2\n255\n1 2 3       ", "promises 4 numbers, and 3 are there"),
        (b"P1\n2 2\n0 1 0      ", "promises 4 digits, and 3 are there"),
        (b"P2\n2 2\n255\n1 2 3 x", "'x' where a number should be"),
        (b"P2\n2 2\n255\n1 -2 3 4", "'-' where a number should be"),
        (b"P2\n2 2\n255\n1 2.5 3 4", "'.' where a number should be"),
        (b"P1\n2 2\n0 1 0 2", "'2' where 0 or 1 should be"),
        (b"P2\n2 2\n100\n1 2 3 101", "the value 101, above the 100"),
        (b"P5\n2 2\n100\n\1\2\3\x65", "the value 101, above the 100"),
        (b"P2\n1 1\n9\n99999999999999999999999", "above the 9"),
        (b"P5\n100000 100000\n255\n....", "too large"),
        (b"Pf\n2 2\n-1.0\n" + b"." * 16, "begins with b'Pf'"),
    ],
)
def test_broken_netpbm(tmp_path, data, words):
    assert words in refusal(stored(tmp_path, data))


@pytest.mark.parametrize("data", [b"P5\n16000 16000\n255\n....", b"P2\n16000 16000\n255\n1 2 3", b"P4 16000 16000\n.."])
def test_promise_of_far_more_is_refused_before_memory_is_taken(tmp_path, data):
    path = stored(tmp_path, data)
    tracemalloc.start()
    message = refusal(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "16000 x 16000" in message
    assert peak < 2**20


# --- through Pillow


@pytest.mark.parametrize(
    ("name", "pixels"),
    [
        ("a.png", GREY8),
        ("a.png", RGB8),
        ("a.tif", GREY8),
        ("a.tif", RGB8),
        ("a.bmp", RGB8),
        ("a.png", GREY16),
        ("a.tif", GREY16),
    ],
)
@pytest.mark.parametrize("options", [{}, {"compression": "tiff_lzw"}, {"compression": "tiff_adobe_deflate"}])
def test_lossless_formats_are_exact(tmp_path, name, pixels, options):
    PIL.Image.fromarray(pixels).save(tmp_path / name, **(options if name.endswith("tif") else {}))
    image = read_image(tmp_path / name)
    assert image.pixels.dtype == pixels.dtype
    assert image.maxval == np.iinfo(pixels.dtype).max
    np.testing.assert_array_equal(image.pixels, pixels)


def test_16_bit_colour_png_keeps_both_bytes(tmp_path):
    image = read_image(stored(tmp_path, png(31, 19, 16, 2, big_endian_rows(RGB16)), "a.png"))
    assert image.maxval == 65535
    np.testing.assert_array_equal(image.pixels, RGB16)


@pytest.mark.parametrize("channels", [2, 4])
def test_16_bit_alpha_is_composited_on_white_in_16_bits(tmp_path, channels):
    values = RANDOM.integers(0, 65536, (19, 31, channels), np.uint16)
    values[:5, :, -1] = 65535
    values[5:9, :, -1] = 0
    image = read_image(stored(tmp_path, png(31, 19, 16, {2: 4, 4: 6}[channels], big_endian_rows(values)), "a.png"))
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
    values = RGB16 if channels == 3 else GREY16
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
    image = read_image(stored(tmp_path, head.ljust(200, b"\0") + data, "a.tif"))
    np.testing.assert_array_equal(image.pixels, 65535 - values if inverted else values)


def test_1_bit_2_bit_and_4_bit_png_fill_the_range(tmp_path):
    for depth, white in ((1, 1), (2, 3), (4, 15)):
        image = read_image(stored(tmp_path, png(2, 1, depth, 0, bytes([0, white << (8 - 2 * depth)])), "a.png"))
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
    grey = image.pixels if mode == "L" else image.pixels[..., 1]
    assert np.abs(grey.astype(int) - np.asarray(smooth)).max() < 6


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize(
    ("name", "pixels"),
    [("a.png", GREY8), ("a.png", GREY16), ("a.tif", GREY8), ("a.tif", RGB8), ("a.tif", GREY16), ("a.jpg", RGB8)],
)
def test_orientation(tmp_path, name, pixels, orientation):
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
    assert "8 or 16 bits a value" in refusal(tmp_path / "a.tif")


def test_first_frame_of_several(tmp_path):
    frames = [PIL.Image.fromarray(GREY8), PIL.Image.fromarray(255 - GREY8)]
    frames[0].save(tmp_path / "a.tif", save_all=True, append_images=frames[1:])
    np.testing.assert_array_equal(read_image(tmp_path / "a.tif").pixels, GREY8)


@pytest.mark.parametrize("extension", ["png", "jpg", "tif", "gif", "bmp"])
@pytest.mark.parametrize("kept", [0.1, 0.5, 0.9])
def test_cut_short(tmp_path, extension, kept):
    buffer = io.BytesIO()
    noise = np.random.default_rng(3).integers(0, 256, (80, 90), np.uint8)
    PIL.Image.fromarray(noise).save(buffer, {"jpg": "jpeg", "tif": "tiff"}.get(extension, extension))
    data = buffer.getvalue()
    message = refusal(stored(tmp_path, data[: int(len(data) * kept)], f"a.{extension}"))
    assert "cut short" in message or "is not an image" in message


def test_png_that_promises_more_than_it_can_hold(tmp_path):
    data = png(16000, 16000, 8, 2, bytes(100))
    assert "cut short: its header promises 16000 x 16000" in refusal(stored(tmp_path, data, "a.png"))


@pytest.mark.parametrize("size", [(17000, 16384), (60000, 60000), (2**31 - 1, 1)])
def test_png_above_the_limit(tmp_path, size):
    assert "Mpixel" in refusal(stored(tmp_path, png(*size, 8, 0, bytes(100)), "a.png"))


def test_zero_sized_png(tmp_path):
    refusal(stored(tmp_path, png(0, 3, 8, 0, b""), "a.png"))


def test_an_image_between_pillows_limit_and_ours_makes_no_noise(tmp_path):
    PIL.Image.new("1", (14000, 14000)).save(tmp_path / "a.png")  # 187 Mpixel; Pillow by itself warns above 85
    assert read_image(tmp_path / "a.png").pixels.shape == (14000, 14000)


@pytest.mark.parametrize("extension", ["png", "jpg", "tif", "gif", "bmp", "pgm"])
def test_damaged_anywhere_is_an_image_or_one_sentence(tmp_path, extension):
    buffer = io.BytesIO()
    kind = {"jpg": "jpeg", "tif": "tiff", "pgm": "ppm"}.get(extension, extension)
    PIL.Image.fromarray(GREY8).save(buffer, kind)
    whole = buffer.getvalue()
    random = np.random.default_rng(7)
    for _ in range(150):
        data = bytearray(whole)
        for position in random.integers(0, min(len(data), 400), random.integers(1, 6)):
            data[position] = random.integers(0, 256)
        path = stored(tmp_path, bytes(data), f"a.{extension}")
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


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_pipe_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "a.pgm")
    assert "is not a file" in refusal(tmp_path / "a.pgm")


def test_no_permission(tmp_path, monkeypatch):
    path = stored(tmp_path, b"P5 1 1 255\n.")

    def denied(*_arguments, **_options):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(images, "open", denied, raising=False)  # root may read everything
    assert refusal(path) == f"{path} cannot be read: permission denied."


# --- for a screen


@pytest.mark.parametrize(("dtype", "maxval"), [(np.uint8, 1), (np.uint8, 100), (np.uint16, 1023), (np.uint16, 65535)])
def test_picture_scales_white_to_255(dtype, maxval):
    values = np.linspace(0, maxval, 200_000).round().astype(dtype).reshape(400, 500)
    shown = picture(Image(values, maxval))
    assert shown.dtype == np.uint8
    expected = values.astype(np.int64) * 255 / maxval
    assert np.abs(shown - expected).max() <= 0.5
    assert (shown.min(), shown.max()) == (0, 255)


def test_picture_of_colour_and_of_what_needs_nothing():
    assert picture(Image(RGB8, 255)) is RGB8
    np.testing.assert_array_equal(picture(Image(RGB16, 65535)), np.floor(RGB16 / 257 + 0.5))


# --- written


@pytest.mark.parametrize("name", ["a.pgm", "a.ppm", "a.png", "A.PNG"])
@pytest.mark.parametrize("pixels", [GREY8, RGB8, GREY16, RGB16, GREY8[:1, :1], RGB16[::2, ::-1]])
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


@pytest.mark.parametrize("pixels", [GREY16, RGB16])
def test_16_bit_png_is_right_by_another_reader(tmp_path, pixels):
    write_image(tmp_path / "a.png", pixels)
    with PIL.Image.open(tmp_path / "a.png") as image:
        image.load()
        other = np.asarray(image)
    np.testing.assert_array_equal(other, pixels if pixels.ndim == 2 else pixels >> 8)


def test_png_of_many_strips(tmp_path, monkeypatch):
    monkeypatch.setattr(images.png, "_STRIP_BYTES", 200)
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
        ("a.jpg", GREY8, None, "ends in .pgm, .ppm, .png"),
        ("a", GREY8, None, "ends in"),
        ("a.png", GREY8[:0], None, "no pixels"),
        ("a.png", GREY8.astype(float), None, "not an image"),
        ("a.png", RGB8[..., :2], None, "not an image"),
        ("a.pgm", GREY8, 100, "not the value of white"),
        ("a.pgm", GREY16, 65536, "not the value of white"),
        ("none/a.pgm", GREY8, None, "there is no folder"),
    ],
)
def test_what_cannot_be_written(tmp_path, name, pixels, maxval, words):
    with pytest.raises(InputError, match=words):
        write_image(tmp_path / name, pixels, maxval)
    assert not list(tmp_path.iterdir())


def test_writing_over_a_folder(tmp_path):
    (tmp_path / "a.png").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        write_image(tmp_path / "a.png", GREY8)


@pytest.mark.parametrize("name", ["a.png", "a.pgm"])
@pytest.mark.parametrize("pixels", [GREY8, GREY16])
def test_a_full_disk_leaves_the_old_file_and_no_other(tmp_path, monkeypatch, name, pixels):
    stored(tmp_path, b"old", name)

    class Full(io.FileIO):
        def write(self, _data):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(images, "open", lambda path, _mode: Full(path, "x"), raising=False)
    with pytest.raises(InputError, match=r"a\.p.. cannot be written: no space left on device\."):
        write_image(tmp_path / name, pixels)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_bytes() == b"old"


def test_replacing_keeps_permissions_and_links(tmp_path):
    write_image(tmp_path / "real.pgm", GREY8)
    (tmp_path / "real.pgm").chmod(0o640)
    (tmp_path / "link.pgm").symlink_to("real.pgm")
    write_image(tmp_path / "link.pgm", 255 - GREY8)
    assert (tmp_path / "link.pgm").is_symlink()
    assert (tmp_path / "real.pgm").stat().st_mode & 0o777 == 0o640
    np.testing.assert_array_equal(read_image(tmp_path / "real.pgm").pixels, 255 - GREY8)


def test_strided_rows_too_long_for_a_strip(tmp_path):
    wide = RANDOM.integers(0, 256, (3, 2_000_000), np.uint8)
    write_image(tmp_path / "a.pgm", wide[:, ::2])
    np.testing.assert_array_equal(read_image(tmp_path / "a.pgm").pixels, wide[:, ::2])
