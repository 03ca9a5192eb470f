"""Images that ask for more than they are: refused before anything is decoded, or decoded where that can be ended."""

from __future__ import annotations

import contextlib
import io
import os
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from gpu.base.errors import InputError
from gpu.base.paths import ROOT
from gpu.files import decoder, netpbm, pillow
from gpu.files.images import read_image
from gpu.messages.files import LoadImage
from tests import needs
from tests.gpu.files.image_files import RANDOM, png, refusal, write_file
from tests.gpu.process.host_listener import listening, wait_until

MOST_MB = 260
"""Of the test's own process and the decoder's, each: Python with NumPy, and pictures of 4 Mpixel."""

_MEASURED = """
import resource, sys
from gpu.base.errors import InputError
from gpu.files.images import read_image
from gpu.messages.files import LoadImage
for path in sys.argv[1:]:
    try:
        print(read_image(path).pixels.shape)
    except InputError as error:
        print(error.message)
print(int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) >> 10)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10)
"""


def webp(width: int, height: int) -> bytes:
    """Return a black picture, in 34 bytes whatever its size."""
    buffer = io.BytesIO()
    PIL.Image.new("RGB", (1, 1)).save(buffer, "WEBP", lossless=True)
    data = bytearray(buffer.getvalue())
    place = data.index(b"VP8L") + 9
    bits = int.from_bytes(data[place : place + 4], "little") & ~(2**28 - 1)
    data[place : place + 4] = (bits | (height - 1) << 14 | (width - 1)).to_bytes(4, "little")
    return bytes(data)


def png_with_chunk(name: bytes, data: bytes, count: int = 1) -> bytes:
    """Return a PNG of 2 x 1 pixels with other chunks before the pixels."""
    return png(2, 1, 8, 0, b"", size=chunk(name, data) * count + chunk(b"IDAT", zlib.compress(b"\0\1\2")))


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


ZEROS = zlib.compress(bytes(32 << 20), 1)


def bombs() -> dict[str, tuple[bytes, str]]:
    """Return the files, and what is said of them."""
    frames = [PIL.Image.new("P", (1500, 1500), color) for color in range(12)]
    animated = io.BytesIO()
    frames[0].save(animated, "GIF", save_all=True, append_images=frames[1:])
    return {
        "a.webp": (webp(16383, 16383), "is too large: the limit for WebP is 51 Mpixel"),
        "b.webp": (webp(2048, 2048), "(2048, 2048, 3)"),
        "a.gif": (animated.getvalue(), "(1500, 1500, 3)"),
        "text.png": (png_with_chunk(b"zTXt", b"a\0\0" + ZEROS), "is damaged"),
        "texts.png": (png_with_chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(900_000), 9), 200), "is damaged"),
        "international.png": (png_with_chunk(b"iTXt", b"a\0\1\0\0\0" + ZEROS), "is damaged"),
        "profile.png": (png_with_chunk(b"iCCP", b"a\0\0" + ZEROS), "is damaged"),
        "pixels.png": (png(2, 1, 8, 0, b"", size=chunk(b"IDAT", ZEROS)), "(1, 2)"),
    }


@needs.linux
def test_bombs_take_no_more_than_their_pixels(tmp_path):
    made = bombs()
    paths = [write_file(tmp_path, data, name) for name, (data, _) in made.items()]
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, *map(str, paths)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    *said, own, decoding = done.stdout.splitlines()
    assert done.stderr == ""
    for (_, expected), line in zip(made.values(), said, strict=True):
        # Before Pillow 13, the decoder refuses the largest WebP image itself.
        assert expected in line or ("limit for WebP" in expected and "could not create decoder object" in line)
    assert int(own) < MOST_MB
    assert int(decoding) < MOST_MB


def test_16_bit_color_is_bounded_by_what_its_decoder_takes(tmp_path):
    """The limit of pixels alone would allow 256 Mpixel, of which a file of 2 MB took 5.2 GB."""
    data = png(16384, 16384, 16, 6, b"", size=chunk(b"IDAT", bytes(2**21)))
    assert "16384 x 16384 is 256 Mpixel; the limit for this format is 128 Mpixel." in refusal(
        write_file(tmp_path, data)
    )


@pytest.mark.parametrize("compression", ["tiff_lzw", "tiff_adobe_deflate", "packbits", "jpeg", "group4"])
def test_odd_tiffs_print_nothing(tmp_path, capfd, compression):
    """libtiff complains on the process's own stderr."""
    buffer = io.BytesIO()
    noise = PIL.Image.fromarray(np.random.default_rng(1).integers(0, 256, (40, 50), np.uint8))
    noise.convert("1" if compression == "group4" else "L").save(buffer, "TIFF", compression=compression)
    whole, random = buffer.getvalue(), np.random.default_rng(7)
    for _ in range(4):
        data = bytearray(whole)
        for place in random.integers(8, len(data), 40):
            data[place] = random.integers(0, 256)
        with contextlib.suppress(InputError):
            read_image(write_file(tmp_path, bytes(data), "a.tif"))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ("import time; time.sleep(100)", "takes too long to decode."),
        ("import os; os.abort()", "is damaged: its decoder failed."),
        ("print('{}')", "is damaged: its decoder failed."),
        ("import sys; sys.exit(1)", "is damaged: its decoder failed."),
    ],
    ids=["endless", "crash", "silent", "error"],
)
def test_a_decoder_that_does_not_answer_is_ended(tmp_path, monkeypatch, ends, said):
    (tmp_path / "decoder.py").write_text(ends)
    monkeypatch.setattr(decoder, "__file__", str(tmp_path / "decoder.py"))
    if "sleep" in ends:
        monkeypatch.setattr(pillow, "TIMEOUT_SECONDS", 0.3)
    path = write_file(tmp_path, webp(3, 2), "a.webp")
    assert refusal(path) == f"{path} {said}"


def test_a_decoder_that_ends_amid_the_pixels(tmp_path, monkeypatch):
    facts = (
        '{"width": 9, "height": 9, "samples": 1, "planes": 1, "type": "u1", "alpha": false, "maxval": 255, '
        '"inverted": false, "orientation": 1}'
    )
    (tmp_path / "decoder.py").write_text(f"print('''{facts}''')\nprint('x' * 50)\n")
    monkeypatch.setattr(decoder, "__file__", str(tmp_path / "decoder.py"))
    assert "its decoder failed" in refusal(write_file(tmp_path, webp(3, 2), "a.webp"))


@needs.linux
def test_a_decoder_is_held_to_the_memory_of_its_pixels():
    made = subprocess.run(
        [sys.executable, "-c", "from gpu.files import decoder; decoder._limit_resources(100); bytearray(2**29)"],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert "MemoryError" in made.stderr


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "P", "CMYK", "1", "LA"])
def test_small_pictures_and_others_are_decoded_alike(tmp_path, monkeypatch, mode):
    image = PIL.Image.fromarray(RANDOM.integers(0, 256, (37, 51, 3), np.uint8)).convert(mode)
    image.save(tmp_path / "a.tif" if mode == "CMYK" else tmp_path / "a.png")
    path = next(tmp_path.iterdir())
    pixels = []
    for small in (True, False):
        monkeypatch.setattr(decoder, "is_small", lambda _file, small=small: small)
        pixels.append(read_image(path).pixels)
    np.testing.assert_array_equal(*pixels)


@pytest.mark.parametrize(
    ("raster", "said"),
    [(b"1", "has the value"), (b"#", "is truncated"), (b"1 #", "is truncated"), (b"\n#", "truncated")],
)
def test_plain_numbers_without_an_end_are_not_put_together(tmp_path, monkeypatch, raster, said):
    """One long word was copied again with each block: 72 MB took 3 s, 720 MB 300 s."""
    monkeypatch.setattr(netpbm, "_BLOCK_BYTES", 64)
    blocks, longest = netpbm._read_blocks, []
    monkeypatch.setattr(
        netpbm, "_read_blocks", lambda file: (longest.append(len(block)) or block for block in blocks(file))
    )
    path = write_file(tmp_path, b"P2\n60 60\n255\n" + raster * (7200 // len(raster)), "a.pgm")
    assert said in refusal(path)
    assert max(longest) <= 128


def test_a_raw_image_that_shrinks_while_it_is_read(tmp_path, monkeypatch):
    path = write_file(tmp_path, b"P5\n60 60\n255\n" + bytes(3600), "a.pgm")
    skip = netpbm._skip_comment_after_maxval

    def then_shrinks(*arguments):
        os.truncate(path, 500)
        return skip(*arguments)

    monkeypatch.setattr(netpbm, "_skip_comment_after_maxval", then_shrinks)
    assert "is truncated" in refusal(path)


def slow_jpeg() -> bytes:
    """Return a progressive JPEG whose last scan stands there a thousand times: minutes of work in 100 KB."""
    buffer = io.BytesIO()
    PIL.Image.new("RGB", (3000, 3000)).save(buffer, "JPEG", progressive=True)
    data = buffer.getvalue()
    return data[:-2] + data[data.rindex(b"\xff\xda") : -2] * 1000 + data[-2:]


def list_decoder_pids(path: Path) -> list[str]:
    """Return the numbers of the processes that decode: those that have this file as their input."""
    found = []
    for link in Path("/proc").glob("[0-9]*/fd/0"):
        with contextlib.suppress(OSError):
            if link.readlink() == path:
                found.append(link.parts[2])
    return found


@needs.linux
def test_an_image_that_is_being_decoded_is_stopped_with_the_engine(tmp_path):
    path = write_file(tmp_path, slow_jpeg(), "a.jpg")
    with listening("null") as listener:
        listener.host.submit(LoadImage(str(path)))
        assert wait_until(lambda: list_decoder_pids(path))
        listener.host.cancel()
        assert wait_until(lambda: not list_decoder_pids(path))
