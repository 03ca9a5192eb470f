"""Copies to shared memory that threads start and go on: their bytes arrive as late as they may, at the wait for them.

So whoever reads them without a wait finds what was there before, in every run. Products of tiles that threads start
have read shared memory at once, and once more where they are waited for, for who looks for races.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu.errors import LaunchError, SourcePosition
from gpu.simulator.executor.batch import Array
from gpu.simulator.executor.masks import LaneMask
from gpu.simulator.executor.memory import AccessSite
from gpu.simulator.executor.observe import Access
from gpu.simulator.executor.pointers import PointerValue
from gpu.simulator.executor.running import Copies, RunningBatch
from gpu.simulator.executor.values import PlainValues, load, store
from gpu.simulator.ir import AsyncKind
from gpu.simulator.types import Scalar

_SIZES = (4, 8, 16)
_WORD, _BYTE = Scalar("uint32"), Scalar("uint8")


@dataclass(eq=False)
class _Started:
    """A copy that lanes have started: which still wait for it, in which group each has it, and which read at all."""

    lanes: LaneMask | None
    group: Array
    reads: Array
    ends: tuple[tuple[PointerValue, AccessSite], ...]
    size: int
    perform: Callable[[LaneMask], None]


class AsyncCopies:
    """What the lanes of a batch have started and not waited for. A lane's copies are in groups, which end in order."""

    def __init__(self, batch: RunningBatch, kind: AsyncKind = "copy") -> None:
        self._batch = batch
        self._bulk = kind == "bulk"
        self._group = np.zeros(batch.geometry.lanes, np.int64)
        self._started: list[_Started] = []

    def start(
        self,
        to: PointerValue,
        source: PointerValue,
        size: int,
        mask: LaneMask,
        position: SourcePosition,
        perform: Callable[[LaneMask], None],
        given: Any = None,
    ) -> None:
        """Start a copy of so many bytes a lane, which `perform` does; what is no copy to shared memory is done at once.

        `given` is how many of them each lane reads, the others being zeros; None for all.

        Raises
        ------
        LaunchError
            A thread copies 4, 8 or 16 bytes, to and from multiples of as many.
        """
        batch = self._batch
        if size % 16 if self._bulk else size not in _SIZES:
            who = batch.describe(int(mask.lanes[0]))
            allowed = "a multiple of 16" if self._bulk else "4, 8 or 16"
            raise LaunchError(
                f"{position}: {who} starts a copy of {size} bytes; it may have {allowed}.",
                position=position,
                kind="other",
                thread=who,
            )
        ends = ((to, AccessSite(position, "write")), (source, AccessSite(position, "read")))
        reached = [address.memory for address, _ in to.parts(mask)]
        if not self._bulk and any(memory is None or memory.space != "shared" for memory in reached):
            perform(mask)
            return
        reads = np.broadcast_to(size if given is None else given, self._group.shape) > 0
        self._begin(_Started(mask, self._group.copy(), reads, ends, size, perform), mask)

    def read_on(self, source: PointerValue, size: int, mask: LaneMask, position: SourcePosition) -> None:
        """Let lanes read so many bytes until they wait: who changes them before changes what is still to be read."""
        batch, site = self._batch, AccessSite(position, "read")

        def read(due: LaneMask) -> None:
            for address, lanes in source.parts(due):
                memory, element = address.element(batch, size, lanes, site)
                if batch.observer is not None:
                    batch.observer.read_until(batch, Access(site, memory, element, size, lanes, None))

        everyone = np.ones(self._group.shape, bool)
        self._begin(_Started(mask, self._group.copy(), everyone, ((source, site),), size, read), mask)

    def write_on(self, to: PointerValue, size: int, mask: LaneMask, site: AccessSite) -> None:
        """Let so many bytes of each lane be written until it waits: nobody may touch them before."""
        everyone = np.ones(self._group.shape, bool)
        self._begin(_Started(mask, self._group.copy(), everyone, ((to, site),), size, lambda due: None), mask)

    def _begin(self, started: _Started, mask: LaneMask) -> None:
        self._tell(started, mask, begins=True)
        self._started.append(started)

    def commit(self, mask: LaneMask) -> None:
        """End the group of copies of each lane, and begin another one."""
        self._group[mask.lanes] += 1

    def wait(self, mask: LaneMask, left: Any) -> None:
        """Let copies arrive, but for those of the last `left` groups of each lane; of all, where that is None."""
        last = self._group + 1 if left is None else self._group - np.broadcast_to(left, self._group.shape)
        for each in self._started:
            assert each.lanes is not None
            due, _ = each.lanes.split(mask.bits & (each.group < last))
            if due is not None:
                self._arrive(each, due)
        self._started = [each for each in self._started if each.lanes is not None]

    def started_by(self, mask: LaneMask) -> Callable[[LaneMask], None]:
        """Return what lets the copies of lanes arrive that these have started so far."""
        mine = list(self._started)

        def arrive(lanes: LaneMask) -> None:
            for each in mine:
                due = each.lanes.split(lanes.bits)[0] if each.lanes is not None else None
                if due is not None:
                    self._arrive(each, due)
            self._started = [each for each in self._started if each.lanes is not None]

        return arrive

    def _arrive(self, started: _Started, due: LaneMask) -> None:
        assert started.lanes is not None
        started.lanes = started.lanes.without(due)
        self._tell(started, due, begins=False)
        started.perform(due)

    def _tell(self, started: _Started, mask: LaneMask, *, begins: bool) -> None:
        observer = self._batch.observer
        if observer is None:
            return
        size = min(started.size, 16)
        for whole, site in started.ends:
            touching = mask.split(started.reads)[0] if site.action == "read" else mask
            if touching is None:
                continue
            for address, lanes in whole.parts(touching):
                for offset in range(0, started.size, size):
                    memory, element = address.moved(offset, 1).element(self._batch, size, lanes, site)
                    access = Access(site, memory, element, size, lanes, None)
                    observer.copying(self._batch, access, begins=begins)


def started(batch: RunningBatch, kind: AsyncKind = "copy") -> Copies:
    """Return what a batch has started of a kind."""
    if kind not in batch.started:
        batch.started[kind] = AsyncCopies(batch, kind)
    return batch.started[kind]


def of_each_value(value: Any, mask: LaneMask) -> list[tuple[int, LaneMask]]:
    """Return each of the numbers that lanes have, with its lanes."""
    if not isinstance(value, np.ndarray):
        return [(int(value), mask)]
    return [
        (int(each), lanes)
        for each in np.unique(value[mask.lanes])
        if (lanes := mask.split(value == each)[0]) is not None
    ]


@dataclass(frozen=True)
class CopiedBytes:
    """What one statement copies, over an algebra of values; `given` is how many bytes of it are read, None for all."""

    values: PlainValues
    batch: RunningBatch
    to: PointerValue
    source: PointerValue
    given: Any
    position: SourcePosition
    bulk: bool = False

    def perform(self, size: int, mask: LaneMask) -> None:
        """Let so many bytes of each lane arrive."""
        if size > 16:
            for offset in range(0, size, 16):
                self._move(offset, 16, mask)
            return
        given = size if self.given is None else self.given
        for count, lanes in of_each_value(given, mask):
            if count >= size:
                self._move(0, size, lanes)
                continue
            # Words that are read whole, bytes of the last one, and zeros.
            unit = 1 if count % 4 else 4
            for offset in range(0, size, unit):
                self._move(offset, unit, lanes, zeros=offset >= count)

    def _move(self, offset: int, size: int, mask: LaneMask, *, zeros: bool = False) -> None:
        values, batch = self.values, self.batch
        vector = size if size > 4 else 0
        parts = [(at, _BYTE if size == 1 else _WORD) for at in range(0, size, min(size, 4))]
        to = self.to.moved(offset, 1)
        if zeros:
            value = values.lift(parts[0][1].dtype.type(0))
        else:
            site = AccessSite(self.position, "read", vector=bool(vector))
            value = load(values, batch, self.source.moved(offset, 1), parts, vector, mask, site)
        site = AccessSite(self.position, "write", vector=bool(vector), bulk=self.bulk)
        store(values, batch, to, parts, vector, value, mask, site)
