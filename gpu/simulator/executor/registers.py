"""What threads keep in registers of what is in memory, as a compiler may have it.

A read that is neither volatile nor an atomic may give the value that its thread knows of the place, and a plain write
may stay in a register, until something orders the thread's accesses: a barrier, a fence, `__syncwarp`, a launch, or
its end. What it knows a thread forgets there, and also where an atomic on global memory, or a volatile read of it, may
have told it that others have come further. A thread always sees what it wrote itself.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

import numpy as np

from gpu.errors import SourcePosition
from gpu.simulator.executor.batch import Array, BlockBatch
from gpu.simulator.executor.masks import LaneMask
from gpu.simulator.executor.memory import AccessSite, DeviceMemory, DType, FlatMemory, accessed
from gpu.simulator.executor.observe import Access, IssuedStep, Observer

# What part of the accesses keep their values: a seed has one of these, but 0, with which all do.
_KEEPING = (0.75, 0.5, 0.25)


@dataclass(eq=False)
class _KeptWrite:
    """A write that has not come to memory: which of its lanes it is kept back for."""

    step: IssuedStep
    access: Access
    dtype: DType
    lanes: set[int] = field(default_factory=set)


@dataclass
class _Known:
    """What a thread knows of a place, and the write of its own that is kept back."""

    value: np.generic
    kept: _KeptWrite | None = None


class Registers:
    """What the threads of a batch keep.

    Parameters
    ----------
    batch : BlockBatch
    observer : Observer or None
        Who is told of writes that come to memory later.
    seed : int
        Decides which accesses of the source keep their values; with 0 all do.
    """

    def __init__(self, batch: BlockBatch, observer: Observer | None, seed: int) -> None:
        self._batch = batch
        self._observer = observer
        self._seed = seed
        self._share = random.Random(seed).choice(_KEEPING) if seed else 1.0
        self._sites: dict[int, tuple[AccessSite, bool]] = {}
        # For each lane what it knows, by address.
        self._known: list[dict[int, _Known]] = [{} for _ in range(batch.geometry.lanes)]
        self._kept: list[_KeptWrite] = []
        # The size of the elements of each memory, by its address, that are known.
        self._sizes: dict[int, int] = {}
        self.step = IssuedStep(SourcePosition("", 0), "evaluate", 0)
        """The statement that runs."""

    def load(
        self, memory: DeviceMemory, element: Any, dtype: DType, mask: LaneMask, site: AccessSite
    ) -> tuple[Any, Array | None]:
        """Return what is read, and in which lanes that is from a register; None where this memory is never kept."""
        if not _is_kept(memory):
            return memory.load(self._batch, element, dtype, mask, site), None
        places = self._places(memory, element, dtype, mask)
        from_register = np.zeros(mask.bits.size, bool)
        if site.volatile or site.vector:
            self._put_back(places)
            if site.volatile and memory.space == "global":
                self._forget(mask)
            return memory.load(self._batch, element, dtype, mask, site), from_register
        found = memory.load(self._batch, element, dtype, mask, site)
        keeps = self._keeps(site)
        values = np.array(np.broadcast_to(found, mask.bits.shape))
        for lane, place in places:
            known = self._known[lane].get(place)
            if known is not None and (keeps or known.kept is not None):
                values[lane] = known.value.view(dtype)
                from_register[lane] = True
            else:
                self._known[lane][place] = _Known(values[lane])
        return (values, from_register) if from_register.any() else (found, from_register)

    def store(
        self, memory: DeviceMemory, element: Any, dtype: DType, value: Any, mask: LaneMask, site: AccessSite
    ) -> Access:
        """Write, now or later, and return the access."""
        batch = self._batch
        if not _is_kept(memory):
            memory.store(batch, element, dtype, value, mask, site)
            return Access(site, accessed(memory), element, dtype.itemsize, mask, value)
        places = self._places(memory, element, dtype, mask)
        keeps = not site.volatile and not site.vector and self._keeps(site)
        access = Access(site, memory, element, dtype.itemsize, mask, value, register=mask.bits & keeps)
        if keeps:
            memory.load(batch, element, dtype, mask, site)  # what lies outside fails now
        else:
            memory.store(batch, element, dtype, value, mask, site)
        kept = _KeptWrite(self.step, access, dtype) if keeps else None
        values = np.broadcast_to(np.asarray(value, dtype), mask.bits.shape)
        for lane, place in places:
            before = self._known[lane].get(place)
            if before is not None and before.kept is not None:
                before.kept.lanes.discard(lane)  # nobody will see that one
            if site.volatile or site.vector:
                self._known[lane].pop(place, None)
            else:
                self._known[lane][place] = _Known(values[lane], kept)
            if kept is not None:
                kept.lanes.add(lane)
        if kept is not None:
            self._kept.append(kept)
        return access

    def before_atomic(self, memory: DeviceMemory, element: Any, dtype: DType, mask: LaneMask) -> None:
        """Let an atomic find what its threads wrote there, and forget what others may have changed."""
        if _is_kept(memory):
            places = self._places(memory, element, dtype, mask)
            self._put_back(places)
            if memory.space == "global":
                self._forget(mask)

    def settle(self, mask: LaneMask) -> None:
        """Let what lanes have kept back come to memory, and forget what they know."""
        lanes = mask.lanes.tolist()
        self._write_back(set(lanes))
        for lane in lanes:
            self._known[lane].clear()

    def _keeps(self, site: AccessSite) -> bool:
        """Whether an access of the source keeps its value: the same in each run with this seed."""
        if id(site) not in self._sites:
            at = site.position
            name = f"{self._seed} {PurePath(at.file).name} {at.line} {at.column} {site.action}"
            self._sites[id(site)] = (site, random.Random(name).random() < self._share)
        return self._sites[id(site)][1]

    def _places(self, memory: DeviceMemory, element: Any, dtype: DType, mask: LaneMask) -> list[tuple[int, int]]:
        """Return each lane with the address that it accesses."""
        assert isinstance(memory, FlatMemory)
        base, size = memory.data.ctypes.data, dtype.itemsize
        if self._sizes.setdefault(base, size) != size:
            # Parts of what is known are accessed: it is as if all threads were ordered here.
            self.settle(self._batch.geometry.everyone)
            self._sizes[base] = size
        elements = np.broadcast_to(element, mask.bits.shape)[mask.lanes].astype(np.int64)
        return list(zip(mask.lanes.tolist(), (base + elements * size).tolist(), strict=True))

    def _put_back(self, places: list[tuple[int, int]]) -> None:
        """Let what lanes keep back of some places come to memory, and forget what is there."""
        kept: dict[_KeptWrite, set[int]] = {}
        for lane, place in places:
            known = self._known[lane].pop(place, None)
            if known is not None and known.kept is not None:
                kept.setdefault(known.kept, set()).add(lane)
        for write, lanes in kept.items():
            self._perform(write, lanes)

    def _forget(self, mask: LaneMask) -> None:
        """Forget what others may have changed."""
        for lane in mask.lanes.tolist():
            known = self._known[lane]
            for place in [place for place, each in known.items() if each.kept is None]:
                del known[place]

    def _write_back(self, lanes: set[int]) -> None:
        kept, self._kept = self._kept, []
        for write in kept:
            if here := write.lanes & lanes:
                self._perform(write, here)
        self._kept = [write for write in kept if write.lanes]

    def _perform(self, write: _KeptWrite, lanes: set[int]) -> None:
        write.lanes -= lanes
        bits = np.zeros(self._batch.geometry.lanes, bool)
        bits[list(lanes)] = True
        mask, access = LaneMask(bits, len(lanes)), write.access
        access.memory.store(self._batch, access.element, write.dtype, access.values, mask, access.site)
        if self._observer is not None:
            self._observer.written_back(self._batch, write.step, access, mask)


def _is_kept(memory: DeviceMemory) -> bool:
    return memory.space in ("global", "shared") and accessed(memory) is memory
