"""Pointers into shared memory: as the 32-bit numbers that PTX has for them, and those into other blocks of a cluster.

All that a block has is one window; above it lie those of the blocks of its cluster, by their ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpu.errors import LaunchError, SourcePosition
from gpu.simulator.executor.masks import LaneMask
from gpu.simulator.executor.memory import ClusterMemory, FlatMemory, SharedMemory
from gpu.simulator.executor.pointers import PointerValue, from_number
from gpu.simulator.executor.running import RunningBatch

# Variables follow each other from the window's begin, at multiples of what tensor cores and copies may want them at;
# what is a little outside of one is in no other. Above are ranks from 1, where a pointer is one into a block of a rank.
_WINDOW, _APART = 1024, 1024
_RANK_SHIFT = 27


def _begins(memories: Sequence[FlatMemory]) -> list[int]:
    """Return where each variable begins, and where one more would."""
    found = [_WINDOW]
    for each in memories:
        size = each.extents[0] if isinstance(each, SharedMemory) else each.data.size
        found.append(found[-1] + (-(-size // _APART) + 1) * _APART)
    return found


def to_shared(batch: RunningBatch, pointer: PointerValue, mask: LaneMask, position: SourcePosition) -> Any:
    """Return the numbers of pointers into shared memory: int64, one for all lanes or one a lane."""
    memories = list(batch.shared.values())
    begins = _begins(memories)
    found: Any = np.int64(0)
    for address, lanes in pointer.parts(mask):
        memory, above, offset = address.memory, 0, np.asarray(address.offset, np.int64)
        if isinstance(memory, ClusterMemory):
            above, offset, memory = memory.rank + 1 << _RANK_SHIFT, offset - memory.moved, memory.own
        if memory not in memories:
            raise _not_shared(batch, lanes, position)
        number = above + begins[memories.index(memory)] + offset[()]
        found = number if lanes is mask else np.where(lanes.bits, number, found)
    return found


def from_shared(batch: RunningBatch, number: Any) -> PointerValue:
    """Return the pointers that numbers stand for; those of other memory stay what they are."""
    memories = list(batch.shared.values())
    begins = _begins(memories)
    numbers = np.asarray(number, np.int64)
    within = numbers & ((1 << _RANK_SHIFT) - 1)
    ranks = numbers >> _RANK_SHIFT
    is_shared = (numbers >= 0) & (ranks <= batch.cluster_blocks) & (within >= _WINDOW) & (within < begins[-1])
    # The variable, from 1, and the rank above it; 0 for none.
    variables = np.searchsorted(begins, within, "right")
    places = np.where(is_shared, variables + ranks * len(begins), 0)
    found = numbers.copy()
    for place in np.unique(places):
        if not place:
            continue
        rank, variable = divmod(int(place), len(begins))
        memory, offset = memories[variable - 1], within - begins[variable - 1]
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
