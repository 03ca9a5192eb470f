"""Elements of a source array that threads counted in bins, matched by order: addresses have no provenance."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection

import numpy as np

from gpu.recording.packing import Array
from gpu.recording.recording import Recording


def match_binned_elements(recording: Recording, source: str, bins: Collection[str]) -> Array:
    """Match the elements that threads read with the bins in which they counted them.

    A thread counts elements in the order in which it reads them: an atomic operation that adds k counts the first k
    elements that the thread has read and not yet counted. So an operation that adds a run's length counts the run.

    Parameters
    ----------
    source : str
        The array that is read.
    bins : collection of str
        The names of the arrays of bins.

    Returns
    -------
    array of shape (elements, 5)
        int64, with columns event number, element of `source`, element of the bins, block, thread.
    """
    rows: list[tuple[int, ...]] = []
    for launch in recording.launches:
        trace = launch.trace
        pending: defaultdict[tuple[int, int], deque[int]] = defaultdict(deque)
        names = [array.name for array in trace.arrays]
        for event in range(len(trace.events)):
            trace_event = trace.events[event]
            for access in trace_event.accesses:
                blocks, threads = trace.lanes.threads(trace_event.batch, access.lanes)
                added = np.asarray(access.results) - np.asarray(access.values)
                for lane, number in enumerate(access.arrays.tolist()):
                    owner = int(blocks[lane]), int(threads[lane])
                    queue = pending[owner]
                    element = int(access.elements[lane])
                    if names[number] == source and access.action == "read":
                        queue.append(element)
                    elif names[number] in bins and access.action == "atomic":
                        count = min(int(added[lane]), len(queue))
                        rows.extend((launch.first + event, queue.popleft(), element, *owner) for _ in range(count))
    return np.array(rows, np.int64).reshape(-1, 5)
