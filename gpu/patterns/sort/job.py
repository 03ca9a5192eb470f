"""A sort job: the context that all launches of one run share."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial

import numpy as np

from gpu.declaration.pattern import Array, Progress
from gpu.engines.base import Argument, Buffer, Engine, Module, download_and_free
from gpu.patterns.sort.keys import clip_for_drawing

FILE = "sort.cu"
SAMPLE_FILE = "sort_sample.cu"

# Number of sampled keys for a picture.
_SAMPLE_COUNT = 512


@dataclass(frozen=True)
class SortData:
    """Keys on the device, and their original positions; one element if positions are not requested."""

    keys: Buffer
    positions: Buffer


@dataclass(frozen=True)
class SortJob:
    """The context of one run of a sort.

    Parameters
    ----------
    defines : mapping of str to int or str
        Macros for all kernels.
    n : int
        Number of keys, at least 1.
    bits : int
        Number of low bits in which the keys' ranks may differ; for many keys, all bits.
    digit_bits : int
        Number of bits per radix pass.
    """

    engine: Engine
    defines: dict[str, int | str]
    n: int
    bits: int
    digit_bits: int

    @property
    def block(self) -> int:
        """Threads per block."""
        return int(self.defines["BLOCK_SIZE"])

    def build(self, file: str = FILE, **more: int) -> Module:
        """Build a kernel file for this job's keys."""
        return self.engine.build(file, {**self.defines, **more})

    def launch(self, module: Module, kernel: str, blocks: int, *arguments: Argument) -> None:
        """Launch a kernel of a module on a number of blocks.

        Parameters
        ----------
        module : Module
            A module that `build` returned.
        blocks : int
            Blocks of the grid, which has one dimension.
        *arguments : Buffer or NumPy scalar
            As of `Engine.launch`.
        """
        self.engine.launch(module.kernel(kernel), (blocks, 1, 1), (self.block, 1, 1), *arguments)

    def progress(self, data: SortData, fraction: float, message: str) -> Progress:
        """Return the progress of the launches, in 0..1, with a sample of the keys."""
        return Progress(0.1 + 0.8 * min(fraction, 1.0), message, partial(self.sample, data.keys))

    def sample(self, keys: Buffer) -> Array:
        """Return a few hundred evenly spread keys."""
        count = min(self.n, _SAMPLE_COUNT)
        sample = self.engine.allocate((count,), keys.dtype)
        numbers = np.int32(self.n), np.int32(count)
        self.launch(self.build(SAMPLE_FILE), "sort_sample", -(-count // self.block), keys, sample, *numbers)
        return clip_for_drawing(download_and_free(self.engine, sample))

    def empty_like(self, data: SortData) -> SortData:
        """Allocate uninitialized keys and positions with the shapes and types of `data`."""
        keys, positions = data.keys, data.positions
        return SortData(
            self.engine.allocate(keys.shape, keys.dtype), self.engine.allocate(positions.shape, positions.dtype)
        )

    def free(self, data: SortData) -> None:
        """Free keys and positions."""
        self.engine.free(data.keys, data.positions)


Sorting = Generator[Progress, None, SortData]
SortFunction = Callable[[SortJob, SortData], Sorting]


def move_arguments(data: SortData, target: SortData) -> tuple[Buffer, Buffer, Buffer, Buffer]:
    """Return the arguments of a kernel that moves keys and positions."""
    return data.keys, data.positions, target.keys, target.positions
