"""Pointers into shared memory: as the 32-bit numbers that PTX has for them, and those into other blocks of a cluster.

All that a block has is one window; above it lie those of the blocks of its cluster, by their ranks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu.errors import LaunchError, SourcePosition
from gpu.simulator.executor.masks import LaneMask
from gpu.simulator.executor.memory import ClusterMemory, SharedMemory
from gpu.simulator.executor.pointers import PointerValue, from_number
from gpu.simulator.executor.running import RunningBatch

# A rank from 1 above, where the pointer is one into a block of a rank; a variable's number from 1; the offset below,
# which holds more bytes than a block may have.
_OFFSET_BITS, _VARIABLE_BITS = 20, 7
_RANK_SHIFT = _OFFSET_BITS + _VARIABLE_BITS


def to_shared(batch: RunningBatch, pointer: PointerValue, mask: LaneMask, position: SourcePosition) -> Any:
    """Return the numbers of pointers into shared memory: int64, one for all lanes or one a lane."""
    memories = list(batch.shared.values())
    found: Any = np.int64(0)
    for address, lanes in pointer.parts(mask):
        memory, above, offset = address.memory, 0, np.asarray(address.offset, np.int64)
        if isinstance(memory, ClusterMemory):
            above, offset, memory = memory.rank + 1 << _RANK_SHIFT, offset - memory.moved, memory.own
        if memory not in memories:
            raise _not_shared(batch, lanes, position)
        number = above + (memories.index(memory) + 1 << _OFFSET_BITS) + offset[()]
        found = number if lanes is mask else np.where(lanes.bits, number, found)
    return found


def from_shared(batch: RunningBatch, number: Any) -> PointerValue:
    """Return the pointers that numbers stand for; those of other memory stay what they are."""
    memories = list(batch.shared.values())
    numbers = np.asarray(number, np.int64)
    places = np.where(numbers >> 32 == 0, numbers >> _OFFSET_BITS, 0)
    found = numbers.copy()
    for place in np.unique(places):
        rank, variable = divmod(int(place), 1 << _VARIABLE_BITS)
        if 0 < variable <= len(memories) and rank <= batch.cluster_blocks:
            memory, offset = memories[variable - 1], numbers & ((1 << _OFFSET_BITS) - 1)
            if rank:
                memory = memory.of_rank(batch, rank - 1)
                offset = offset + memory.moved
            found = np.where(places == place, PointerValue(memory).number() + offset, found)
    return from_number(found[()])


def in_cluster(
    batch: RunningBatch, pointer: PointerValue, rank: Any, mask: LaneMask, position: SourcePosition
) -> PointerValue:
    """Return the pointers to where pointers lead to in the block of each lane's rank in its cluster.

    Raises
    ------
    LaunchError
        A pointer does not lead to the block's own shared memory, or the cluster has no such block.
    """
    lanes = batch.geometry.lanes
    ranks = np.broadcast_to(rank, lanes)
    found = np.zeros(lanes, np.int64)
    for address, part in pointer.parts(mask):
        memory = address.memory
        if not isinstance(memory, SharedMemory) or isinstance(memory, ClusterMemory):
            raise _not_shared(batch, part, position)
        for each in np.unique(ranks[part.lanes]).tolist():
            own, _ = part.split(ranks == each)
            assert own is not None
            if not 0 <= each < batch.cluster_blocks:
                who = batch.describe(int(own.lanes[0]))
                raise LaunchError(
                    f"{position}: {who} names block {each} of its cluster, which has {batch.cluster_blocks}.",
                    position=position,
                    advice="Ranks go from 0 to num_blocks() - 1.",
                    kind="out-of-bounds",
                    thread=who,
                )
            other = memory.of_rank(batch, each)
            found[own.lanes] = (PointerValue(other).number() + address.offset + other.moved)[own.lanes]
    # Lanes that take no part point to where others do.
    found[~mask.bits] = found[mask.lanes[0]]
    return from_number(found)


def _not_shared(batch: RunningBatch, lanes: LaneMask, position: SourcePosition) -> LaunchError:
    who = batch.describe(int(lanes.lanes[0]))
    return LaunchError(
        f"{position}: {who} has no pointer into shared memory here.",
        position=position,
        advice="Give it the address of what is declared __shared__.",
        kind="other",
        thread=who,
    )
