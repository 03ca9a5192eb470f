"""The path of sampled blocks: the basic blocks that they execute, and the memory requests of each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

PERIOD = 8
"""Loop iterations that are repeated together: a sector lasts for this number of loads of a word."""


@dataclass(frozen=True, eq=False)
class MemoryRequest:
    """A memory instruction's requests in one visit; each array has one entry per entry of `warps`.

    Parameters
    ----------
    space : str
        "global", "shared", "local", "const" or "texture".
    kind : str
        "ld", "st", "atom" or "red".
    warps : array
        The warps with active lanes.
    lanes : array
        The active lanes of each warp.
    passes : array
        For shared memory its wavefronts, for constants their lines in the constant cache, for atomic operations the
        most lanes on one address, otherwise 1.
    starts, sectors : array
        The numbers of the 32-byte sectors, or for constants of the 4-byte words; those of warp `i` are from `starts[i]`
        to `starts[i + 1]`. Empty except for global and local memory and constants.
    conflicts : array
        For shared memory, the wavefronts beyond those of a conflict-free access.
    volatile : bool
        Whether the request bypasses the L1 cache.
    rounds : array or None
        For an atomic operation that is a loop, the rounds that each warp needs alone: its lanes on one word.
    contention : array or None
        For an atomic operation in global memory, the most lanes on one address in each of `sectors`.
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
    rounds: Array | None = None
    contention: Array | None = None

    @property
    def counts(self) -> Array:
        """The number of sectors per warp."""
        counts_per_warp: Array = np.diff(self.starts)
        return counts_per_warp


@dataclass(frozen=True, eq=False)
class Visit:
    """The execution of a basic block by lanes that run together.

    Parameters
    ----------
    block : int
    lanes : array
        The active lanes of each warp of the sample: uint8.
    requests : tuple of MemoryRequest
    instruction_indices : tuple of int
        For each request, the index of its instruction in the block.
    guarded_lanes : tuple of (int, array)
        For each arithmetic operation with a predicate, the index of its instruction in the block, and the lanes of each
        warp for which the predicate holds: uint8.
    """

    block: int
    lanes: Array
    requests: tuple[MemoryRequest, ...]
    instruction_indices: tuple[int, ...]
    guarded_lanes: tuple[tuple[int, Array], ...] = ()


@dataclass(frozen=True, eq=False)
class RepeatedIterations:
    """Loop iterations that were skipped: each repeats the last executed one, with the path `steps`."""

    times: int
    steps: tuple[Step, ...]


Step = Visit | RepeatedIterations


@dataclass(eq=False)
class SampledPath:
    """The path of sampled blocks from start to end.

    Parameters
    ----------
    blocks : tuple of int
        Their numbers in the grid.
    warps_per_block : int
    steps : list
    completed : bool
        Whether the blocks completed, rather than reaching the limit of visits.
    tickets : dict of int to (dtype, number)
        By the address of an integer: the value that each block adds to it once, receiving the count of earlier blocks.
    replaced_words : dict of int to dtype
        By its address, the type of a word in global memory that several blocks compare and replace, such as a minimum.
    """

    blocks: tuple[int, ...]
    warps_per_block: int
    steps: list[Step] = field(default_factory=list)
    completed: bool = True
    tickets: dict[int, tuple[np.dtype[Any], Any]] = field(default_factory=dict)
    replaced_words: dict[int, np.dtype[Any]] = field(default_factory=dict)
