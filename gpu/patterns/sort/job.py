"""One run of a sort: what its launches have in common."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial

import numpy as np

from gpu.declaration.pattern import Array, Progress
from gpu.engines.base import Argument, Buffer, Engine, Module
from gpu.patterns.sort.keys import drawn

FILE = "sort.cu"
SAMPLE_FILE = "sort_sample.cu"

# So many keys are a picture.
_SAMPLED = 512


@dataclass(frozen=True)
class Data:
    """Keys on the device, and the places where they were; one element where no places are asked for."""

    keys: Buffer
    places: Buffer


@dataclass(frozen=True)
class Job:
    """One run of a sort.

    Parameters
    ----------
    engine : Engine
    defines : mapping of str to int or str
        The macros that all kernels take.
    n : int
        How many keys there are, at least 1.
    bits : int
        So many low bits of the keys' order differ; of many keys any may.
    digit_bits : int
        So many of them a radix pass takes.
    """

    engine: Engine
    defines: dict[str, int | str]
    n: int
    bits: int
    digit_bits: int

    @property
    def block(self) -> int:
        """Threads in a block."""
        return int(self.defines["BLOCK_SIZE"])

    def build(self, file: str = FILE, **more: int) -> Module:
        """Build a kernel file for the keys at hand."""
        return self.engine.build(file, {**self.defines, **more})

    def launch(self, module: Module, kernel: str, blocks: int, *arguments: Argument) -> None:
        """Launch a kernel of a module on so many blocks."""
        self.engine.launch(module.kernel(kernel), (blocks, 1, 1), (self.block, 1, 1), *arguments)

    def progress(self, data: Data, done: float, message: str) -> Progress:
        """Return how far the launches are, in 0..1, with what the keys look like."""
        return Progress(0.1 + 0.8 * min(done, 1.0), message, partial(self.sample, data.keys))

    def sample(self, keys: Buffer) -> Array:
        """Return a few hundred of the keys, spread evenly."""
        count = min(self.n, _SAMPLED)
        sample = self.engine.allocate((count,), keys.dtype)
        numbers = np.int32(self.n), np.int32(count)
        self.launch(self.build(SAMPLE_FILE), "sort_sample", -(-count // self.block), keys, sample, *numbers)
        values = self.engine.download(sample)
        self.engine.free(sample)
        return drawn(values)

    def empty_like(self, data: Data) -> Data:
        """Allocate as much as `data` is."""
        keys, places = data.keys, data.places
        return Data(self.engine.allocate(keys.shape, keys.dtype), self.engine.allocate(places.shape, places.dtype))

    def free(self, data: Data) -> None:
        """Give keys and places back."""
        self.engine.free(data.keys)
        self.engine.free(data.places)


Sorting = Generator[Progress, None, Data]
Sort = Callable[[Job, Data], Sorting]


def both(data: Data, to: Data) -> tuple[Buffer, Buffer, Buffer, Buffer]:
    """Return what a kernel takes that moves keys and places."""
    return data.keys, data.places, to.keys, to.places
