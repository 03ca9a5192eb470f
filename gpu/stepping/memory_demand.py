"""Lower bound of the memory that playing a recording needs, computed from its declared sizes alone.

A few bytes of a file can declare a million blocks, or an array of a gigabyte of one value. The bound is computed before
anything of such a size is allocated.
"""

from __future__ import annotations

from math import prod

import numpy as np

from gpu.recording.data import TraceData
from gpu.recording.packing import Array
from gpu.recording.tables import ACTIONS

# Bytes per object, each slightly less than the real size.
_BYTES_PER_ARRAY = 160
_BYTES_PER_NODE = 24
_BYTES_PER_OPERATION = 56
_BYTES_PER_WRITE = 80
_BYTES_PER_LANE = 10
_BYTES_PER_EVENT = 80


def estimate_minimum_bytes(data: TraceData) -> int:
    """Return a lower bound of the bytes needed to derive and show a trace; the real need is a few times higher."""
    counts = data.masks.rows["count"].astype(np.int64)

    def count_lanes(table: Array) -> int:
        return int(counts[table["mask"]].sum())

    writing = data.accesses[data.accesses["action"] != ACTIONS.index("read")]
    nodes = count_lanes(data.operations) + int(data.inputs["count"].sum(dtype=np.int64))
    return (
        len(data.events) * _BYTES_PER_EVENT
        + sum(memory.total_bytes + memory.blocks * _BYTES_PER_ARRAY for memory in data.memories)
        + nodes * _BYTES_PER_NODE
        + count_lanes(data.operations) * _BYTES_PER_OPERATION
        + (count_lanes(writing) + count_lanes(data.registers)) * _BYTES_PER_WRITE
        + max(prod(launch.grid) * launch.lanes_per_block for launch in data.launches) * _BYTES_PER_LANE
    )
