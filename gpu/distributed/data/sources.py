"""Sources from which workers read their chunks: a file on the same machine, or data sent with the Dask task."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from gpu.engines.base import Array


class Source(Protocol):
    """Elements or rows that are read by range."""

    def read(self, start: int, stop: int) -> Array:
        """Return elements or rows [start, stop); they must not change while they are in use."""
        ...


@dataclass(frozen=True)
class MappedSource:
    """A .npy file on the workers' machine; it must not change until the run ends."""

    path: str

    def read(self, start: int, stop: int) -> Array:
        part = np.asarray(np.load(self.path, mmap_mode="r")[start:stop])
        # Windows cannot delete a file while it is mapped.
        return part.copy() if os.name == "nt" else part


@dataclass(frozen=True)
class EmbeddedSource:
    """Elements sent with the Dask task, so that any worker can repeat it; `first` is the index of the first element.

    Workers on other machines cannot read this machine's files.
    """

    values: Array
    first: int

    def read(self, start: int, stop: int) -> Array:
        return self.values[start - self.first : stop - self.first]


@dataclass(frozen=True)
class Excerpt:
    """The range [first, last) of a source."""

    source: Source
    first: int
    last: int

    def read(self) -> Array:
        """Read the range."""
        return self.source.read(self.first, self.last)


def write_source(values: Array, folder: Path, name: str) -> MappedSource:
    """Write an array to a file that this machine's workers can read, and return its source."""
    path = folder / f"{name}.npy"
    np.save(path, values)
    return MappedSource(str(path))
