"""Where workers read their chunks from: a file that they see too, or what travels with the task."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from gpu.engines.base import Array


class Source(Protocol):
    """Elements, or rows, that are read a part at a time."""

    def read(self, start: int, stop: int) -> Array:
        """Return those from `start` until before `stop`, which nobody changes while they are used."""
        ...


@dataclass(frozen=True)
class Mapped:
    """A .npy file that this machine's workers see; it stays as it is until the run is over."""

    path: str

    def read(self, start: int, stop: int) -> Array:
        part = np.asarray(np.load(self.path, mmap_mode="r")[start:stop])
        # Windows removes no file that somebody maps.
        return part.copy() if os.name == "nt" else part


@dataclass(frozen=True)
class Carried:
    """Elements that travel with the task, so that whoever does it again has them too; `first` is the first one's place.

    A worker on another machine sees none of this one's files.
    """

    values: Array
    first: int

    def read(self, start: int, stop: int) -> Array:
        return self.values[start - self.first : stop - self.first]


@dataclass(frozen=True)
class Excerpt:
    """Those of a source from `first` until before `last`."""

    source: Source
    first: int
    last: int

    def read(self) -> Array:
        """Return them."""
        return self.source.read(self.first, self.last)


def written(values: Array, folder: Path, name: str) -> Mapped:
    """Write an array where this machine's workers can read it."""
    path = folder / f"{name}.npy"
    np.save(path, values)
    return Mapped(str(path))
