"""TIFF images some rows at a time, against what tifffile makes of all of them."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from gpu.base.errors import EngineUnavailableError, InputError
from gpu.distributed.data import tiff
from gpu.distributed.data.files import check_streamed_target
from gpu.distributed.data.tiff import TILE, create_tiff, open_tiff
from tests import needs

tifffile = needs.module("tifffile", needs.DASK)
RNG = np.random.default_rng(3)
TILES = {"tile": (32, 16)}


def image(*shape, dtype=np.uint8):
    return RNG.integers(0, np.iinfo(dtype).max + 1, shape).astype(dtype)


@pytest.mark.parametrize(
    ("pixels", "layout"),
    [
        (image(70, 45), TILES),
        (image(70, 45, 3), {**TILES, "photometric": "rgb", "compression": 8, "predictor": 2}),
        (image(70, 45, dtype=np.uint16), {**TILES, "compression": 8, "byteorder": ">", "bigtiff": True}),
        (image(70, 45, dtype=np.uint16), {"rowsperstrip": 16, "compression": 8, "predictor": 2, "byteorder": ">"}),
        (image(70, 45), {"rowsperstrip": 33}),
        (image(1, 1), {}),
    ],
)
def test_any_rows_are_those_of_the_image(tmp_path, pixels, layout):
    path = tmp_path / "in.tif"
    tifffile.imwrite(path, pixels, **{"photometric": "minisblack", **layout})
    rows = open_tiff(str(path))
    assert rows.shape == pixels.shape
    for start, stop in ((0, len(pixels)), (len(pixels) - 1, len(pixels)), (31, 34), (5, 5)):
        found = rows.read(min(start, len(pixels)), min(stop, len(pixels)))
        assert found.dtype == pixels.dtype
        assert np.array_equal(found, pixels[start:stop])


@pytest.mark.parametrize("shape", [(TILE + 30, TILE + 7), (300, 100, 3), (1, 1)])
def test_rows_of_tiles_are_written_in_any_order(tmp_path, shape):
    pixels = image(*shape, dtype=np.uint16)
    target = create_tiff(str(tmp_path / "out.tif"), shape, "uint16")
    for start in range(len(pixels) - len(pixels) % TILE, -1, -TILE):
        target.write(start, pixels[start : start + TILE])
    with tifffile.TiffFile(tmp_path / "out.tif") as file:
        assert file.pages.first.is_tiled
        assert np.array_equal(file.asarray(), pixels)


@pytest.mark.parametrize(
    ("layout", "sentence"),
    [
        ({"photometric": "miniswhite"}, "is not supported: only gray and RGB"),
        ({"dtype": np.float32}, "is not supported: only gray and RGB"),
        (
            {"shape": (3, 40, 50), "photometric": "rgb", "planarconfig": "separate"},
            "is not supported: only gray and RGB",
        ),
        ({"tile": (2**15, 2**14)}, "tiles or strips of more than 256 MB"),
    ],
)
def test_what_is_not_read_is_one_sentence(tmp_path, layout, sentence):
    options = {"shape": (40, 50), "dtype": np.uint8, "photometric": "minisblack", **layout}
    tifffile.imwrite(tmp_path / "in.tif", None, **options)
    with pytest.raises(InputError, match=sentence):
        open_tiff(str(tmp_path / "in.tif"))


def test_an_image_larger_than_its_bytes_can_store_is_refused(tmp_path):
    tifffile.imwrite(tmp_path / "in.tif", image(1000, 50), photometric="minisblack", rowsperstrip=1, compression=8)
    with tifffile.TiffFile(tmp_path / "in.tif", mode="r+b") as file:
        file.pages.first.tags["ImageWidth"].overwrite(2**21)
    with pytest.raises(InputError, match=r"in\.tif declares more pixels than a file of its size can store\."):
        open_tiff(str(tmp_path / "in.tif"))


@pytest.mark.parametrize("spoiled", [b"", b"II*\0", b"no image"])
def test_what_is_no_image_is_one_sentence(tmp_path, spoiled):
    (tmp_path / "in.tif").write_bytes(spoiled)
    with pytest.raises(InputError, match=r"in\.tif is not a readable TIFF image\."):
        open_tiff(str(tmp_path / "in.tif"))


@pytest.mark.parametrize(
    ("compression", "cut", "sentence"), [(1, 300, "some pixels are missing"), (8, 3000, "is damaged")]
)
def test_a_damaged_image_is_one_sentence(tmp_path, compression, cut, sentence):
    path = tmp_path / "in.tif"
    tifffile.imwrite(path, image(64, 64), compression=compression, photometric="minisblack", **TILES)
    with tifffile.TiffFile(path) as file:
        last = file.pages.first.dataoffsets[-1]
    content = bytearray(path.read_bytes())
    if compression == 8:
        content[last : last + 40] = b"x" * 40
    else:
        del content[-cut:]
    path.write_bytes(content)
    with pytest.raises(InputError, match=sentence):
        open_tiff(str(path)).read(0, 64)


def test_what_expands_without_end_is_cut_off(tmp_path, monkeypatch):
    path = tmp_path / "in.tif"
    tifffile.imwrite(path, np.zeros((64, 64), np.uint8), compression=8, photometric="minisblack", **TILES)
    rows = open_tiff(str(path))
    bomb = tiff.zlib.compress(bytes(2**24))
    assert rows._decode_segment(bomb, 32).nbytes == 32 * 16


def test_compressions_that_are_not_known_are_one_sentence(tmp_path):
    path = tmp_path / "in.tif"
    tifffile.imwrite(path, image(8, 8), photometric="minisblack")
    with tifffile.TiffFile(path, mode="r+b") as file:
        file.pages.first.tags["Compression"].overwrite(5)
    with pytest.raises(InputError, match="unsupported compression"):
        open_tiff(str(path))


def test_without_the_library_it_is_one_sentence(tmp_path, monkeypatch):
    (tmp_path / "in.tif").write_bytes(b"II")
    monkeypatch.setitem(sys.modules, "tifffile", None)
    with pytest.raises(EngineUnavailableError, match="tifffile, which reads TIFF images, is not installed"):
        open_tiff(str(tmp_path / "in.tif"))


def test_another_white_is_not_written(tmp_path):
    with pytest.raises(InputError, match="white is 1000, but must be 65535 in a TIFF image"):
        check_streamed_target(str(tmp_path / "out.tif"), dtype="uint16", maxval=1000, is_input_sized=True)
