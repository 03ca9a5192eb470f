"""Which elements of an array made a thread count in which of another: what an address is made from leaves no trace."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection

import numpy as np

from gpu.simulator.trace.packing import Array
from gpu.stepping.recording import Recording


def counted_elements(recording: Recording, source: str, bins: Collection[str]) -> Array:
    """Return what was counted where.

    A thread counts what it reads in the order in which it reads it: an atomic that adds k counts the k elements that
    the thread has read and not counted, the first ones first. So one that adds a whole run counts the run.

    Parameters
    ----------
    recording : Recording
    source : str
        The array that is read.
    bins : collection of str
        The arrays that are counted in.

    Returns
    -------
    array of shape (elements, 5)
        int64: the number of the event, the element of `source`, that of the bins, and the block and the thread.
    """
    found: list[tuple[int, ...]] = []
    for launch in recording.launches:
        trace = launch.trace
        waiting: defaultdict[tuple[int, int], deque[int]] = defaultdict(deque)
        names = [array.name for array in trace.arrays]
        for event in range(len(trace.events)):
            each = trace.events[event]
            for access in each.accesses:
                blocks, threads = trace.lanes.threads(each.batch, access.lanes)
                added = np.asarray(access.after) - np.asarray(access.values)
                for lane, number in enumerate(access.arrays.tolist()):
                    who = int(blocks[lane]), int(threads[lane])
                    own = waiting[who]
                    element = int(access.elements[lane])
                    if names[number] == source and access.action == "read":
                        own.append(element)
                    elif names[number] in bins and access.action == "atomic":
                        many = min(int(added[lane]), len(own))
                        found.extend((launch.first + event, own.popleft(), element, *who) for _ in range(many))
    return np.array(found, np.int64).reshape(-1, 5)
