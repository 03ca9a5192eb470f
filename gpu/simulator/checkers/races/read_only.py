"""Loads through the read-only cache, by `__ldg()`, `ld.global.nc` or a texture, of data that the same launch writes.

CUDA requires that the data is read-only while the kernel runs. No barrier or fence makes the load right: the cache may
hold the value from before the write.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from gpu.base.findings import Finding
from gpu.simulator.checkers.races.shadow import EVENT, Shadow, extract_threads
from gpu.simulator.executor.state.memory import AccessSite

Array = npt.NDArray[np.int64]

_LOADS = "read-only load"
"""The slot with the last load of a cell through the read-only cache."""

_EARLIER_WRITES = "earlier write"
"""The slot with a write of each cell before the last barrier of the grid."""

_WRITES = ("writer", "atomic high", "narrow atomic high", _EARLIER_WRITES)


def has_loads(shadow: Shadow) -> bool:
    """Return whether threads have loaded data of an array through the read-only cache."""
    return shadow.get(_LOADS) is not None


def find_conflicts(shadow: Shadow, cells: Array, *, is_load: bool) -> Iterator[tuple[Array, Array, Array]]:
    """Yield what contradicts that the data of loads is read-only: loads of written data, or writes of loaded data.

    Parameters
    ----------
    shadow : Shadow
        The shadow memory of the accessed array.
    cells : array of int
        The cells of each element of the access.
    is_load : bool
        Whether it is a load through the read-only cache, else a write.

    Yields
    ------
    indices, threads, events : array of int
        Indices of `cells`, and the thread and event of the earlier access to each.
    """
    for slot in _WRITES if is_load else (_LOADS,):
        if shadow.get(slot) is not None:
            records = shadow.get_or_create(slot).take(cells)
            hit = np.flatnonzero(records)
            if hit.size:
                yield hit, extract_threads(records[hit], slot), records[hit] & EVENT
                return


def record_loads(shadow: Shadow, cells: Array, records: Array) -> None:
    """Record loads through the read-only cache."""
    shadow.get_or_create(_LOADS)[cells] = records


def keep_records(shadow: Shadow) -> None:
    """Keep, of all records of an array, only those of writes and of loads through the read-only cache."""
    slots = dict(shadow.slots())
    kept = {_LOADS: slots[_LOADS]} if _LOADS in slots else {}
    writes = [slots[slot] for slot in _WRITES if slot in slots]
    if writes:
        kept[_EARLIER_WRITES] = np.maximum.reduce(writes)
    shadow.replace_slots(kept)


def build_finding(lines: tuple[AccessSite, AccessSite], names: tuple[str, str], place: str, count: int) -> Finding:
    """Return the finding for a load through the read-only cache and a write.

    Parameters
    ----------
    lines : tuple of AccessSite
        The sites of the load and of the write.
    names : tuple of str
        The threads of the load and of the write.
    place : str
        The element, with the memory that it is in.
    count : int
        The number of loads.
    """
    load, write = (site.position for site in lines)
    return Finding(
        "read-only-load",
        f"Read through the read-only cache at {load.short_text} by {names[0]} of {place}, which the same launch "
        f"writes at {write.short_text} by {names[1]}. The read may return the value from before the launch: use "
        "an ordinary load instead of __ldg(), ld.global.nc or a texture",
        (load, write),
        names,
        count,
    )
