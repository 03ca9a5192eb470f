"""Observer that counts atomic operations by address, and the threads that access one address at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.base.warp import WARP
from gpu.simulator.executor.state.batch import BlockBatch
from gpu.simulator.executor.state.observer import Access, Observer

Array = npt.NDArray[Any]

# The bits of an element's index in a key; the bits above hold a block or a warp.
_ELEMENT_BITS = 34


@dataclass
class AddressTally:
    """The atomic operations on one memory space.

    Parameters
    ----------
    operations : int
        Atomic operations of single threads.
    requests : int
        Atomic operations of warps.
    longest_warp_queues, longest_block_queues : int
        The most threads of a warp, and of a block, that access one address with the same atomic operation.
    """

    operations: int = 0
    requests: int = 0
    longest_warp_queues: int = 0
    longest_block_queues: int = 0
    _pieces: dict[str, list[tuple[Array, Array]]] = field(default_factory=lambda: defaultdict(list))

    def add(self, name: str, addresses: Array, counts: Array) -> None:
        """Add the numbers of atomic operations on addresses of an array."""
        self._pieces[name].append((addresses, counts))
        if len(self._pieces[name]) >= 64:
            self._pieces[name] = [_merge_pieces(self._pieces[name])]

    @property
    def counts_by_address(self) -> Array:
        """The number of atomic operations on each address that has any, in descending order."""
        counts = [_merge_pieces(pieces)[1] for pieces in self._pieces.values()]
        return np.sort(np.concatenate(counts))[::-1] if counts else np.zeros(0, np.int64)


class Contention(Observer):
    """Observer of the contention of atomic operations.

    Attributes
    ----------
    tallies : dict of str to AddressTally
        By memory space: "global" and "shared". Each block has its own addresses of shared memory.
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
        warps, warp_counts = _count_runs((lanes // WARP << _ELEMENT_BITS) | elements)
        tally.requests += int(np.unique(warps >> _ELEMENT_BITS).size)
        tally.longest_warp_queues = max(tally.longest_warp_queues, int(warp_counts.max()))
        block = batch.first + lanes // batch.geometry.lanes_per_block
        blocks, block_counts = _count_runs((block << _ELEMENT_BITS) | elements)
        tally.longest_block_queues = max(tally.longest_block_queues, int(block_counts.max()))
        if shared:
            # Shared arrays exist only for one launch, so each launch has its own key.
            tally.add(f"{access.memory.name} {self._launches}", blocks, block_counts)
        else:
            tally.add(access.memory.name, *_count_runs(elements))


def _count_runs(keys: Array) -> tuple[Array, Array]:
    return np.unique(keys, return_counts=True)


def _merge_pieces(pieces: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    addresses, address_index = np.unique(
        np.concatenate([element_addresses for element_addresses, _ in pieces]), return_inverse=True
    )
    counts = np.bincount(address_index, np.concatenate([counts for _, counts in pieces]), addresses.size)
    return addresses, counts.astype(np.int64)
