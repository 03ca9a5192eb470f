"""Shared-memory addresses: 32-bit numbers as in PTX, and pointers into other blocks of the cluster.

The shared memory of a block is one window of addresses; those of the blocks of its cluster follow above, by rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpu.base.errors import LaunchError, SourcePosition
from gpu.base.lane_mask import LaneMask
from gpu.simulator.executor.state.memory import ClusterMemory, FlatMemory, SharedMemory
from gpu.simulator.executor.state.pointers import PointerValue, to_pointer
from gpu.simulator.executor.state.running_batch import RunningBatch

# The beginning of the window, and the alignment of variables in it, which suffices for tensor cores and bulk copies.
# Gaps between variables keep an address slightly outside of one from falling into another. Bits above the window hold
# a rank plus 1 for a pointer into the block of that rank, else 0.
_WINDOW, _ALIGNMENT = 1024, 1024
_RANK_SHIFT = 27


def _variable_starts(memories: Sequence[FlatMemory]) -> list[int]:
    """Return the beginning of each variable, and the end of the last."""
    begins = [_WINDOW]
    for memory in memories:
        size = memory.extents[0] if isinstance(memory, SharedMemory) else memory.data.size
        begins.append(begins[-1] + (-(-size // _ALIGNMENT) + 1) * _ALIGNMENT)
    return begins


def to_shared_address(batch: RunningBatch, pointer: PointerValue, mask: LaneMask, position: SourcePosition) -> Any:
    """Convert pointers into shared memory to 32-bit addresses, as `__cvta_generic_to_shared` does.

    Parameters
    ----------
    batch : RunningBatch
        The batch of the lanes.
    pointer : PointerValue
        The pointer of each lane.
    mask : LaneMask
        The lanes that convert it.
    position : SourcePosition
        The position of the conversion.

    Returns
    -------
    int64 scalar or array
        The addresses, one for all lanes or one per lane.

    Raises
    ------
    LaunchError
        A pointer does not point into shared memory.
    """
    memories = list(batch.shared.values())
    begins = _variable_starts(memories)
    numbers: Any = np.int64(0)
    for address, lanes in pointer.split_by_memory(mask):
        memory, above, offset = address.memory, 0, np.asarray(address.offset, np.int64)
        if isinstance(memory, ClusterMemory):
            above, offset, memory = memory.rank + 1 << _RANK_SHIFT, offset - memory.byte_offsets, memory.own_memory
        if memory not in memories:
            raise _not_shared_error(batch, lanes, position)
        number = above + begins[memories.index(memory)] + offset[()]
        numbers = number if lanes is mask else np.where(lanes.bits, number, numbers)
    return numbers


def from_shared_address(batch: RunningBatch, number: Any) -> PointerValue:
    """Convert shared-memory addresses to pointers; numbers of pointers into other memory are converted as such."""
    memories = list(batch.shared.values())
    begins = _variable_starts(memories)
    numbers = np.asarray(number, np.int64)
    within = numbers & ((1 << _RANK_SHIFT) - 1)
    ranks = numbers >> _RANK_SHIFT
    is_shared = (numbers >= 0) & (ranks <= batch.cluster_blocks) & (within >= _WINDOW) & (within < begins[-1])
    # The number of the variable, from 1, plus a multiple of the rank; 0 for none.
    variables = np.searchsorted(begins, within, "right")
    targets = np.where(is_shared, variables + ranks * len(begins), 0)
    pointers = numbers.copy()
    for target in np.unique(targets):
        if not target:
            continue
        rank, variable = divmod(int(target), len(begins))
        memory, offset = memories[variable - 1], within - begins[variable - 1]
        if rank:
            memory = memory.get_cluster_memory(batch, rank - 1)
            offset = offset + memory.byte_offsets
        pointers = np.where(targets == target, PointerValue(memory).number() + offset, pointers)
    return to_pointer(pointers[()])


def map_to_cluster(
    batch: RunningBatch, pointer: PointerValue, rank: Any, mask: LaneMask, position: SourcePosition
) -> PointerValue:
    """Map pointers into the own block's shared memory to the same variables of other blocks of the cluster.

    Parameters
    ----------
    batch : RunningBatch
        The batch of the lanes.
    pointer : PointerValue
        Pointers into the own block's shared memory.
    rank : int or array
        The rank of the other block, one for all lanes or one per lane.
    mask : LaneMask
        The lanes that call it.
    position : SourcePosition
        The position of the call.

    Raises
    ------
    LaunchError
        A pointer does not point into the block's own shared memory, or the cluster has no block of that rank.
    """
    lanes = batch.geometry.lanes
    ranks = np.broadcast_to(rank, lanes)
    numbers = np.zeros(lanes, np.int64)
    for address, part in pointer.split_by_memory(mask):
        memory = address.memory
        if not isinstance(memory, SharedMemory) or isinstance(memory, ClusterMemory):
            raise _not_shared_error(batch, part, position)
        for rank_value in np.unique(ranks[part.lanes]).tolist():
            rank_part, _ = part.split(ranks == rank_value)
            assert rank_part is not None
            if not 0 <= rank_value < batch.cluster_blocks:
                sentence = f"{{thread}} maps rank {rank_value} of its cluster, which has {batch.cluster_blocks} blocks."
                advice = "Ranks are 0 to num_blocks() - 1."
                raise batch.thread_error(rank_part, position, sentence, kind="out-of-bounds", advice=advice)
            other = memory.get_cluster_memory(batch, rank_value)
            numbers[rank_part.lanes] = (PointerValue(other).number() + address.offset + other.byte_offsets)[
                rank_part.lanes
            ]
    # Inactive lanes get a copy, so that the pointer is not mixed without need.
    numbers[~mask.bits] = numbers[mask.lanes[0]]
    return to_pointer(numbers)


def _not_shared_error(batch: RunningBatch, lanes: LaneMask, position: SourcePosition) -> LaunchError:
    sentence = "the pointer of {thread} does not point into shared memory."
    return batch.thread_error(lanes, position, sentence, advice="Pass the address of a __shared__ variable.")
