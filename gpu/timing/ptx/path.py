"""What sampled blocks did: the basic blocks that they went through, and what they asked of memory on the way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

PERIOD = 8
"""Rounds that are repeated together: a sector of memory lasts for as many loads of a word."""


@dataclass(frozen=True, eq=False)
class Request:
    """What the warps of a visit ask of memory with one instruction, each array with one number for each of `warps`.

    Parameters
    ----------
    space : str
        "global", "shared", "local", "const" or "texture".
    kind : str
        "ld", "st", "atom" or "red".
    warps : array
        The warps that ask.
    lanes : array
        How many lanes of each.
    passes : array
        Of shared memory its wavefronts, of atomics the most lanes that want one place, else 1.
    starts, sectors : array
        The numbers of the 32-byte sectors, those of warp `i` from `starts[i]` to `starts[i + 1]`; none but of global
        and local memory.
    conflicts : array
        Of shared memory the wavefronts besides those that there would be if all lanes wanted the same.
    volatile : bool
        Whether it goes past the first cache.
    """

    space: str
    kind: str
    warps: Array
    lanes: Array
    passes: Array
    starts: Array
    sectors: Array
    conflicts: Array
    volatile: bool = False

    @property
    def counts(self) -> Array:
        """How many sectors each warp asks for."""
        counted: Array = np.diff(self.starts)
        return counted


@dataclass(frozen=True, eq=False)
class Visit:
    """A basic block that lanes go through together.

    Parameters
    ----------
    block : int
    lanes : array
        How many of each warp of the sample: uint8.
    requests : tuple of Request
    places : tuple of int
        Of each request the place of its instruction in the block.
    """

    block: int
    lanes: Array
    requests: tuple[Request, ...]
    places: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Repeated:
    """Rounds of a loop that were left out: each is like the last one, whose path `round` is."""

    times: int
    round: tuple[Step, ...]


Step = Visit | Repeated


@dataclass(eq=False)
class SampledPath:
    """What sampled blocks did from their start to their end.

    Parameters
    ----------
    blocks : tuple of int
        Their numbers in the grid.
    warps_per_block : int
    steps : list
    ended : bool
        Whether they came to their end, rather than to the most steps that are looked at.
    tickets : dict of int to (dtype, number)
        By the address of a whole number: what each block adds to it once, and finds there how many did so before it.
    """

    blocks: tuple[int, ...]
    warps_per_block: int
    steps: list[Step] = field(default_factory=list)
    ended: bool = True
    tickets: dict[int, tuple[np.dtype[Any], Any]] = field(default_factory=dict)
