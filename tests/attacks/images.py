"""Images: whole ones of every format, changed in a few bytes."""

from __future__ import annotations

import io
from functools import cache
from pathlib import Path
from unittest.mock import patch

import numpy as np
import PIL.Image

from gpu.files import decoder, images
from tests.odd_inputs import mutate_bytes, read_or_none

_IN_A_PROCESS = 0.03
_FEW_PIXELS = 2**22


def attack(random: np.random.Generator, folder: Path) -> None:
    """Read an image that was changed; most are decoded here, for a process each would take most of the time."""
    whole = _intact_images()
    name = sorted(whole)[int(random.integers(len(whole)))]
    path = folder / f"image{Path(name).suffix if random.random() < 0.9 else '.png'}"
    path.write_bytes(mutate_bytes(random, whole[name]) if random.random() < 0.98 else random.bytes(500))
    if random.random() < _IN_A_PROCESS:
        image = read_or_none(lambda: images.read_image(path))
    else:
        with patch.object(decoder, "is_small", lambda _file: True), patch.object(images, "MAX_PIXELS", _FEW_PIXELS):
            image = read_or_none(lambda: images.read_image(path))
    if image is None:
        return
    pixels = image.pixels
    assert pixels.dtype in (np.uint8, np.uint16)
    assert pixels.ndim == 2 or pixels.shape[2:] == (3,)
    assert pixels.size > 0
    assert pixels.max() <= image.maxval <= np.iinfo(pixels.dtype).max
    assert images.convert_for_display(image).shape == pixels.shape


@cache
def _intact_images() -> dict[str, bytes]:
    random = np.random.default_rng(5)
    color = PIL.Image.fromarray(random.integers(0, 256, (19, 31, 3), np.uint8))
    made: dict[str, bytes] = {}
    for mode, options in (
        ("L", {"png": {}, "jpg": {}, "tif": {}, "bmp": {}, "gif": {}, "webp": {}}),
        ("RGB", {"png": {}, "jpg": {"progressive": True}, "tif": {"compression": "jpeg"}, "bmp": {}, "webp": {}}),
        ("RGBA", {"png": {}, "tif": {"compression": "tiff_lzw"}, "webp": {"lossless": True}}),
        ("CMYK", {"jpg": {}, "tif": {"compression": "packbits"}}),
        ("P", {"png": {"transparency": 3}, "gif": {"transparency": 3}, "bmp": {}}),
        ("1", {"png": {}, "tif": {"compression": "group4"}, "bmp": {}}),
        ("LA", {"png": {}}),
        ("I;16", {"png": {}, "tif": {"compression": "tiff_adobe_deflate"}}),
        ("F", {"tif": {}}),
    ):
        picture = color.convert("L").convert(mode) if mode == "I;16" else color.convert(mode)
        for ending, settings in options.items():
            buffer = io.BytesIO()
            picture.save(buffer, {"jpg": "JPEG", "tif": "TIFF"}.get(ending, ending.upper()), **settings)
            made[f"{mode.replace(';', '')}.{ending}"] = buffer.getvalue()
    for kind, maxval in ((5, 255), (5, 1023), (6, 255), (4, 1)):
        bytes_each = {4: 4, 5: 31, 6: 93}[kind] * (2 if maxval > 255 else 1)
        header = f"P{kind}\n31 19\n" + (f"{maxval}\n" if kind != 4 else "")
        made[f"{kind}-{maxval}.pgm"] = header.encode() + bytes(bytes_each * 19)
    for kind, count in ((1, 1), (2, 1), (3, 3)):
        numbers = " ".join(map(str, random.integers(0, 2, 31 * 19 * count)))
        made[f"{kind}.ppm"] = f"P{kind}\n# a comment\n31 19\n{'' if kind == 1 else '255'}\n{numbers}\n".encode()
    return made
