"""PGM, PPM and PBM: values as they stand in the file, and what is wrong with it."""

from __future__ import annotations

import os
import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpu.base.errors import InputError
from gpu.files import images
from gpu.files.images import read_image, write_image
from tests.gpu.files.image_files import RANDOM, refusal, write_file


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    maxval=st.one_of(st.sampled_from([1, 2, 100, 254, 255, 256, 1023, 4095, 65534, 65535]), st.integers(1, 65535)),
    width=st.integers(1, 9),
    height=st.integers(1, 9),
    color=st.booleans(),
    plain=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_netpbm_values_are_those_of_the_file(tmp_path, maxval, width, height, color, plain, seed):
    shape = (height, width, 3) if color else (height, width)
    values = np.random.default_rng(seed).integers(0, maxval, shape, endpoint=True)
    magic = {(False, False): "P5", (False, True): "P2", (True, False): "P6", (True, True): "P3"}[color, plain]
    if plain:
        raster = " ".join(map(str, values.ravel())).encode()
    else:
        raster = values.astype(">u2" if maxval > 255 else np.uint8).tobytes()
    image = read_image(write_file(tmp_path, f"{magic}\n{width} {height}\n{maxval}\n".encode() + raster))
    assert image.maxval == maxval
    assert image.pixels.dtype == (np.uint16 if maxval > 255 else np.uint8)
    assert image.pixels.dtype.isnative
    np.testing.assert_array_equal(image.pixels, values)

    written = tmp_path / ("again.ppm" if color else "again.pgm")
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
    image = read_image(write_file(tmp_path, header + bytes([0, 35, 200, 10, 13, 32])))
    assert image.maxval == 200
    assert image.pixels.tolist() == [[0, 35, 200], [10, 13, 32]]


def test_a_comment_without_end_is_not_read_to_its_end(tmp_path):
    path = write_file(tmp_path, b"P5\n#" + b"x" * 70_000)
    os.truncate(path, 2**31)
    begun = time.process_time()
    with pytest.raises(InputError, match="invalid header: its width is not a number"):
        read_image(path)
    assert time.process_time() - begun < 2


def test_a_pixel_that_looks_like_a_comment_is_a_pixel(tmp_path):
    image = read_image(write_file(tmp_path, b"P5 4 1 255\n# \n!"))
    assert bytes(image.pixels.ravel()) == b"# \n!"


def test_comments_in_plain_pixels_and_trailing_text(tmp_path):
    image = read_image(write_file(tmp_path, b"P2\n2 2\n9\n1 2 # first 7 7\r\n3\n\n4 # last\nP2 and more"))
    assert image.pixels.tolist() == [[1, 2], [3, 4]]


def test_second_image_of_a_file_is_left_alone(tmp_path):
    one = b"P5 2 1 255\n\1\2"
    assert read_image(write_file(tmp_path, one + one)).pixels.tolist() == [[1, 2]]


@pytest.mark.parametrize("newlines", [True, False])
def test_plain_file_larger_than_a_block(tmp_path, newlines):
    values = RANDOM.integers(0, 65536, (700, 600))
    separator = b"\n" if newlines else b" "
    raster = separator.join(b" ".join(b"%d" % value for value in row) for row in values)
    assert len(raster) > 2 * images.netpbm._BLOCK_BYTES
    image = read_image(write_file(tmp_path, b"P2 600 700 65535\n# a comment\n" + raster))
    np.testing.assert_array_equal(image.pixels, values)


@pytest.mark.parametrize("data", [b"P1\n# c\n5 2\n01 0 1 0\n1#c\n1111", b"P4 5 2\n" + bytes([0b01010111, 0b11111000])])
def test_bitmaps_are_black_where_1(tmp_path, data):
    image = read_image(write_file(tmp_path, data, "bits.pbm"))
    assert image.maxval == 255
    assert image.pixels.tolist() == [[255, 0, 255, 0, 255], [0, 0, 0, 0, 0]]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b"P9\n2 2\n255\n....", "begins with b'P9'"),
        (b"hello, this is text", "is not a supported image"),
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
        (b"P5\n2 2\n255\n...", "truncated"),
        (b"P5\n2 2\n256\n.......", "truncated"),
        (b"P6\n2 2\n255\n...........", "truncated"),
        (b"P4\n9 2\n...", "truncated"),
        (b"P1\n2 2\n0 1 0", "truncated"),
        (b"P2\n2 2\n255\n1 2 3", "truncated"),
        (b"P2\n2 2\n255\n1 2 3       ", "declares 4 numbers, but only 3 follow"),
        (b"P1\n2 2\n0 1 0      ", "declares 4 digits, but only 3 follow"),
        (b"P2\n2 2\n255\n1 2 3 x", "has 'x' instead of a number"),
        (b"P2\n2 2\n255\n1 -2 3 4", "has '-' instead of a number"),
        (b"P2\n2 2\n255\n1 2.5 3 4", "has '.' instead of a number"),
        (b"P1\n2 2\n0 1 0 2", "has '2' instead of 0 or 1"),
        (b"P2\n2 2\n100\n1 2 3 101", "the value 101, but its header declares 100 as white"),
        (b"P5\n2 2\n100\n\1\2\3\x65", "the value 101, but its header declares 100 as white"),
        (b"P2\n1 1\n9\n99999999999999999999999", "declares 9 as white"),
        (b"P5\n100000 100000\n255\n....", "too large"),
        (b"Pf\n2 2\n-1.0\n" + b"." * 16, "begins with b'Pf'"),
    ],
)
def test_broken_netpbm(tmp_path, data, words):
    assert words in refusal(write_file(tmp_path, data))


@pytest.mark.parametrize("data", [b"P5\n16000 16000\n255\n....", b"P2\n16000 16000\n255\n1 2 3", b"P4 16000 16000\n.."])
def test_promise_of_far_more_is_refused_before_memory_is_taken(tmp_path, data):
    path = write_file(tmp_path, data)
    tracemalloc.start()
    message = refusal(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "16000 x 16000" in message
    assert peak < 2**20
