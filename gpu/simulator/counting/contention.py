"""Counts atomics by address: how many there are for each, and how many threads want one at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.simulator.executor.batch import BlockBatch
from gpu.simulator.executor.observe import Access, Observer
from gpu.warp import WARP

Array = npt.NDArray[Any]

# Elements of an array that a key has room for; a key is a block or a warp, and an element.
_ELEMENT_BITS = 34


@dataclass
class AddressTally:
    """The atomics on one kind of memory.

    Parameters
    ----------
    operations : int
        Atomics of single threads.
    requests : int
        Atomics of warps.
    warp_queue, block_queue : int
        The most threads of a warp, and of a block, that want one address with the same atomic.
    """

    operations: int = 0
    requests: int = 0
    warp_queue: int = 0
    block_queue: int = 0
    _pieces: dict[str, list[tuple[Array, Array]]] = field(default_factory=lambda: defaultdict(list))

    def add(self, name: str, addresses: Array, counts: Array) -> None:
        """Take note of so many atomics on each of these addresses of an array."""
        self._pieces[name].append((addresses, counts))
        if len(self._pieces[name]) >= 64:
            self._pieces[name] = [_merged(self._pieces[name])]

    @property
    def by_address(self) -> Array:
        """How many atomics each address had that had any, the most first."""
        counts = [_merged(pieces)[1] for pieces in self._pieces.values()]
        return np.sort(np.concatenate(counts))[::-1] if counts else np.zeros(0, np.int64)


class Contention(Observer):
    """Watches launches.

    Attributes
    ----------
    tallies : dict of str to AddressTally
        By the memory's space: "global" and "shared". An address of shared memory is one of a block's own.
    """

    def __init__(self) -> None:
        self.tallies: dict[str, AddressTally] = {"global": AddressTally(), "shared": AddressTally()}
        self._launches = 0

    def launch_begins(self, kernel: str, grid: Sequence[int], block: Sequence[int]) -> None:
        self._launches += 1

    def access(self, batch: BlockBatch, access: Access) -> None:
        if access.site.action != "atomic" or access.memory.space not in self.tallies:
            return
        shared = access.memory.space == "shared"
        tally = self.tallies[access.memory.space]
        lanes, elements = access.mask.lanes, access.elements
        tally.operations += lanes.size
        warps, of_warp = _runs((lanes // WARP << _ELEMENT_BITS) | elements)
        tally.requests += int(np.unique(warps >> _ELEMENT_BITS).size)
        tally.warp_queue = max(tally.warp_queue, int(of_warp.max()))
        block = batch.first + lanes // batch.geometry.lanes_per_block
        blocks, of_block = _runs((block << _ELEMENT_BITS) | elements)
        tally.block_queue = max(tally.block_queue, int(of_block.max()))
        if shared:
            # A block's array is gone with its launch: the next launch's is another.
            tally.add(f"{access.memory.name} {self._launches}", blocks, of_block)
        else:
            tally.add(access.memory.name, *_runs(elements))


def _runs(keys: Array) -> tuple[Array, Array]:
    return np.unique(keys, return_counts=True)


def _merged(pieces: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    addresses, place = np.unique(np.concatenate([each for each, _ in pieces]), return_inverse=True)
    counts = np.bincount(place, np.concatenate([counts for _, counts in pieces]), addresses.size)
    return addresses, counts.astype(np.int64)
