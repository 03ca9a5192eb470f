"""Convolution by Fourier transforms: tile sizes and the host program."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from gpu.declaration.images import to_channels_last, to_planes
from gpu.declaration.pattern import Array, Inputs, Outputs, Params, Progress
from gpu.engines.base import Engine
from gpu.patterns.convolution.filters import BORDERS, filter_from_params

FILE = "convolution_fft.cu"


@dataclass(frozen=True)
class _Tile:
    """Side of a tile, elements of a line per thread, and threads per block; see the kernel file."""

    side: int
    radix: int
    threads: int

    @property
    def second_pass_elements(self) -> int:
        """Elements of a line per transform in the second pass."""
        return self.side // self.radix

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory for a tile of complex numbers, with padding."""
        return 8 * self.side * (self.side + self.second_pass_elements)

    def output_side(self, size: int) -> int:
        """Return the pixels per side that a tile yields with a filter of `size` rows; 0 or less for none."""
        return self.side - size + 1


# The fastest on an H200: block sizes; and the filter size from which the largest tile is faster than the next one.
_TILES = (_Tile(16, 4, 64), _Tile(32, 8, 128), _Tile(64, 8, 256), _Tile(128, 16, 1024))
_LARGE = 17


def _choose_tile(size: int, height: int, width: int, shared_bytes: int) -> _Tile:
    """Return the tile for a filter of `size` rows: the smallest that holds a whole small image, else the fastest."""
    fitting = [tile for tile in _TILES if tile.output_side(size) > 0 and tile.shared_bytes <= shared_bytes]
    covering = [tile for tile in fitting if tile.output_side(size) >= max(height, width)]
    return covering[0] if covering else fitting[-1 if size >= _LARGE or len(fitting) < len(_TILES) else -2]


def _count_filter_parts(tile: _Tile, size: int, height: int, width: int) -> int:
    """Return the number of parts into which a filter's rows, and its columns, are divided.

    One if a tile holds the image. Otherwise parts are at most half a tile's side, since a filter of many rows would
    leave few result pixels per tile if shared memory is too small for a larger tile.
    """
    return 1 if tile.output_side(size) >= max(height, width) else -(-2 * size // tile.side)


def _compute_roots(side: int) -> Array:
    """Return the powers of exp(-2 pi i / side): float32, shape (side, 2)."""
    powers = np.exp(-2j * np.pi * np.arange(side) / side)
    return np.stack([powers.real, powers.imag], axis=-1).astype(np.float32)


def convolve_by_transforms(engine: Engine, inputs: Inputs, params: Params) -> Generator[Progress, None, Outputs]:
    """Run the host program: transform the filter, then convolve the image tile by tile."""
    weights = filter_from_params(params)
    size = len(weights)
    planes = to_planes(inputs["image"], np.float32)
    channels, height, width = planes.shape
    tile = _choose_tile(size, height, width, engine.device.max_shared_bytes)
    parts = _count_filter_parts(tile, size, height, width)
    rows = -(-size // parts)
    padded = np.zeros((parts * rows, parts * rows), np.float32)
    padded[:size, :size] = weights
    defines = {"SIZE": rows, "SIDE": tile.side, "RADIX": tile.radix, "FFT_BLOCK": tile.threads}
    module = engine.build(FILE, defines)
    to_spectrum, kernel = module.kernel("transform_filter"), module.kernel("convolve_fft")
    block, shared_bytes = (tile.threads, 1, 1), tile.shared_bytes

    image, roots = engine.upload(planes), engine.upload(_compute_roots(tile.side))
    del planes
    spectrum = engine.allocate((tile.side, tile.side, 2), np.float32)
    out = engine.allocate(image.shape, np.float32)
    yield Progress(0.1, "uploaded")

    side = tile.output_side(rows)
    grid = (-(-width // (2 * side)), -(-height // side), channels)
    extent = (np.int32(width), np.int32(height))
    border = np.int32(BORDERS.index(params["border"]))
    for number, (down, across) in enumerate(np.ndindex(parts, parts)):
        first = (down * rows, across * rows)
        taps = engine.upload(np.ascontiguousarray(padded[first[0] : first[0] + rows, first[1] : first[1] + rows]))
        engine.launch(to_spectrum, (1, 1, 1), block, taps, roots, spectrum, shared_bytes=shared_bytes)
        engine.free(taps)
        yield Progress(0.1 + 0.8 * number / parts**2, "transformed the filter")
        begins = (np.int32(first[1] - size // 2), np.int32(first[0] - size // 2), np.int32(number > 0))
        engine.launch(
            kernel, grid, block, image, spectrum, roots, out, *extent, *begins, border, shared_bytes=shared_bytes
        )
    engine.free(image, spectrum, roots)
    yield Progress(0.9, "convolved")

    result = to_channels_last(engine.download(out), inputs["image"])
    engine.free(out)
    return {"result": result}
