"""Make the sample images that teach something, the same bytes each time: python assets/make_images.py [FOLDER].

All are PGM, whose bytes no compressor's version can change, and all randomness is the raw stream of a seeded generator.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Pixels = npt.NDArray[Any]

SEED = 2011


def checkerboard() -> Pixels:
    """Return squares of 32 pixels, black and white."""
    row, column = np.indices((512, 512))
    return np.where((row // 32 + column // 32) % 2, 255, 0)


def ramp() -> Pixels:
    """Return every 8-bit level once across, two columns each."""
    return np.tile(np.arange(512) // 2, (256, 1))


def ramp_10_bit() -> Pixels:
    """Return the 1024 levels of a 10-bit camera, one column each."""
    return np.tile(np.arange(1024), (128, 1))


def noise() -> Pixels:
    """Return uniform noise: every level about equally often."""
    return _random_bytes(SEED, 512 * 512).reshape(512, 512)


def night_sky() -> Pixels:
    """Return a dark sky of three nearly equal levels, with 150 stars."""
    height, width = 400, 640
    chance = _random_bytes(SEED + 1, height * width).reshape(height, width)
    sky: Pixels = 11 + (chance > 243) - (chance < 12)
    rows, columns, light = _random_bytes(SEED + 2, 6 * 150).view("<u2").reshape(3, 150).astype(int)
    for row, column, brightness in zip(
        1 + rows % (height - 2), 1 + columns % (width - 2), 60 + light % 196, strict=True
    ):
        sky[row, column] = brightness
        for down, right in ((0, 1), (1, 0), (0, -1), (-1, 0)):
            sky[row + down, column + right] = max(sky[row + down, column + right], brightness // 3)
    return sky


def zone_plate() -> Pixels:
    """Return rings that grow finer outwards, up to one cycle in two pixels at the edges."""
    wave = np.array([round(127.5 + 127.5 * math.cos(2 * math.pi * step / 1024)) for step in range(1024)])
    row, column = np.indices((512, 512)) - 256
    rings: Pixels = wave[(row * row + column * column) % 1024]
    return rings


def point() -> Pixels:
    """Return one bright point in the dark: what comes out of a filter is the filter itself, turned by half a turn."""
    pixels = np.zeros((63, 63), np.int64)
    pixels[31, 31] = 255
    return pixels


def _random_bytes(seed: int, count: int) -> Pixels:
    # The raw stream is the part of NumPy's generators that never changes from version to version.
    return np.random.PCG64(seed).random_raw(-(-count // 8)).astype("<u8").view(np.uint8)[:count]


def raw_pgm(pixels: Pixels, maxval: int = 255) -> bytes:
    """Return a P5 file."""
    header = f"P5\n{pixels.shape[1]} {pixels.shape[0]}\n{maxval}\n".encode()
    return header + pixels.astype(">u2" if maxval > 255 else np.uint8).tobytes()


def plain_pgm(pixels: Pixels, comment: str) -> bytes:
    """Return a P2 file, which a text editor opens."""
    rows = "\n".join(" ".join(map(str, row)) for row in pixels)
    return f"P2\n# {comment}\n{pixels.shape[1]} {pixels.shape[0]}\n255\n{rows}\n".encode()


def make_images() -> dict[str, bytes]:
    """Return every made image: its file by its name."""
    return {
        "checkerboard.pgm": raw_pgm(checkerboard()),
        "ramp.pgm": raw_pgm(ramp()),
        "ramp-10-bit.pgm": raw_pgm(ramp_10_bit(), 1023),
        "noise.pgm": raw_pgm(noise()),
        "night-sky.pgm": raw_pgm(night_sky()),
        "zone-plate.pgm": raw_pgm(zone_plate()),
        "point.pgm": plain_pgm(point(), "One bright point: a filter's answer to it is the filter."),
    }


def main(arguments: list[str]) -> None:
    """Write the images to the folder named, or to assets/images."""
    folder = Path(arguments[0]) if arguments else Path(__file__).with_name("images")
    for name, data in make_images().items():
        (folder / name).write_bytes(data)


if __name__ == "__main__":
    main(sys.argv[1:])
