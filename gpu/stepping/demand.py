"""What memory a recording takes at least before it can be played, told from its sizes alone.

A few bytes of a file may say that there are a million blocks, or that an array is a gigabyte of one value: all of that
is known before anything of such a size is made.
"""

from __future__ import annotations

from math import prod

import numpy as np

from gpu.simulator.trace.data import TraceData
from gpu.simulator.trace.packing import Array
from gpu.simulator.trace.tables import ACTIONS

# Bytes of what is made one by one. Each is a little less than what it really takes.
_OF_ARRAY = 160
_OF_NODE = 24
_OF_OPERATION = 56
_OF_WRITE = 80
_OF_LANE = 10
_OF_EVENT = 80


def least_bytes(data: TraceData) -> int:
    """Return bytes that deriving and looking at a trace takes at least; what it really takes is a few times that."""
    counts = data.masks.rows["count"].astype(np.int64)

    def lanes(table: Array) -> int:
        return int(counts[table["mask"]].sum())

    writing = data.accesses[data.accesses["action"] != ACTIONS.index("read")]
    nodes = lanes(data.operations) + int(data.inputs["count"].sum(dtype=np.int64))
    return (
        len(data.events) * _OF_EVENT
        + sum(memory.total + memory.blocks * _OF_ARRAY for memory in data.memories)
        + nodes * _OF_NODE
        + lanes(data.operations) * _OF_OPERATION
        + (lanes(writing) + lanes(data.registers)) * _OF_WRITE
        + max(prod(launch.grid) * launch.lanes_per_block for launch in data.launches) * _OF_LANE
    )
