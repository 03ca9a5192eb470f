"""Finds products by warpgroups whose sums or tiles are touched without what orders the two: a wait, or a fence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from gpu.errors import SourcePosition
from gpu.simulator.checkers.checker import Checker
from gpu.simulator.checkers.findings import Finding
from gpu.simulator.checkers.shadow import Shadow
from gpu.simulator.executor.batch import BlockBatch
from gpu.simulator.executor.masks import LaneMask
from gpu.simulator.executor.memory import FlatMemory, LocalMemory
from gpu.simulator.executor.observe import Access

Array = npt.NDArray[Any]

_FENCE, _PROXY_FENCE, _INIT_FENCE = "wgmma.fence", "fence.proxy.async", "fence.mbarrier_init"


@dataclass(eq=False)
class _Sums:
    """Of each element of a thread's own array, and of each lane, how many products go on, and when it was touched."""

    memory: LocalMemory
    going_on: Array
    touched: Array
    product: SourcePosition


class WarpgroupChecker(Checker):
    """Finds registers that a thread touches while a product by its warpgroup may still write them.

    They are a thread's own arrays: of variables that are numbers nothing is told. Products that add to the same sums
    one after the other need nothing between them. Between what else touches sums and a product there has to be a
    `wgmma.fence`, and one before a thread's first product.

    What threads store in shared memory tensor cores, and copies in bulk from there, see behind a `fence.proxy.async`,
    by the thread that stores or, later, by the one that has it read. So do copies in bulk see a barrier in memory that
    was made, to which they tell their bytes, also behind a `fence.mbarrier_init`.
    """

    def __init__(self) -> None:
        self._findings: dict[tuple[str, int, int], Finding] = {}

    @property
    def findings(self) -> list[Finding]:
        """One finding for each pair of source lines, in the order in which they were found."""
        return list(self._findings.values())

    def batch_begins(self, batch: BlockBatch) -> None:
        self._sums: dict[int, _Sums] = {}
        self._time = 0
        self._fenced = np.full(batch.geometry.lanes, -1)
        self._proxied = np.zeros(batch.geometry.lanes, np.int64)
        self._made = np.zeros(batch.geometry.lanes, np.int64)
        self._stored: WeakKeyDictionary[FlatMemory, Shadow] = WeakKeyDictionary()
        self._places: dict[SourcePosition, int] = {}

    def fence(self, batch: BlockBatch, name: str, mask: LaneMask, named: Any = None) -> None:
        if name == _FENCE:
            self._time += 1
            self._fenced[mask.lanes] = self._time
        elif name == _PROXY_FENCE:
            self._time += 1
            self._proxied[mask.lanes] = self._made[mask.lanes] = self._time
        elif name == _INIT_FENCE:
            self._time += 1
            self._made[mask.lanes] = self._time

    def bound(self, batch: BlockBatch, access: Access) -> None:
        if access.memory.space == "shared":
            self._read_by_others(batch, access, "made", self._made)

    def copying(self, batch: BlockBatch, access: Access, *, begins: bool) -> None:
        memory, position = access.memory, access.site.position
        if not isinstance(memory, LocalMemory):
            if begins and memory.space == "shared" and access.site.action == "read":
                self._read_by_others(batch, access, "stored", self._proxied)
            return
        if id(memory) not in self._sums:
            shape = (batch.geometry.lanes, memory.size // access.size)
            self._sums[id(memory)] = _Sums(memory, np.zeros(shape, np.int64), np.full(shape, -2), position)
        sums, lanes = self._sums[id(memory)], access.mask.lanes
        where = lanes, access.elements
        if not begins:
            sums.going_on[where] -= 1
            return
        late = self._fenced[lanes] < np.maximum(sums.touched[where], 0)
        if late.any():
            what = "no wgmma.fence before it: one behind whatever touches its sums would order the two"
            self._report(batch, access, (position,), lanes[late], what)
        sums.going_on[where] += 1
        sums.product = position

    def _read_by_others(self, batch: BlockBatch, access: Access, slot: str, fenced: Array) -> None:
        """Report what threads have stored and not fenced, of what is read past them now.

        `slot` is "stored", or "made" of what no atomic wrote; `fenced` is when each thread has fenced it last.
        """
        assert isinstance(access.memory, FlatMemory)
        shadow = self._stored.get(access.memory)
        if shadow is None:
            return
        lanes, cells = shadow.cells(batch.geometry, access)
        stored, writer = shadow.slot(slot)[cells], shadow.slot(f"{slot} by")[cells]
        early = (stored > fenced[writer]) & (stored > fenced[lanes])
        if early.any():
            at = list(self._places)[int(shadow.slot(f"{slot} at")[cells[early][0]])]
            what = (
                f"what {batch.describe(int(writer[early][0]))} wrote at line {at.line}: a fence.proxy.async between "
                "them would order the two"
            )
            self._report(batch, access, (at, access.site.position), lanes[early], what)

    def _store(self, batch: BlockBatch, access: Access) -> None:
        """Take note of what threads store in shared memory, or copies in bulk bring there."""
        memory = access.memory
        assert isinstance(memory, FlatMemory)
        if memory not in self._stored:
            self._stored[memory] = Shadow(memory, batch.geometry.blocks, access.size)
        shadow = self._stored[memory]
        lanes, cells = shadow.cells(batch.geometry, access)
        self._time += 1
        for slot in ("stored",) if access.site.action == "atomic" else ("stored", "made"):
            shadow.slot(slot)[cells] = 0 if access.site.bulk else self._time
            shadow.slot(f"{slot} by")[cells] = lanes
            shadow.slot(f"{slot} at")[cells] = self._places.setdefault(access.site.position, len(self._places))

    def access(self, batch: BlockBatch, access: Access) -> None:
        if access.memory.space == "shared" and access.site.action != "read":
            self._store(batch, access)
        sums = self._sums.get(id(access.memory)) if access.memory.space == "local" else None
        if sums is None or access.site.sum:
            return
        lanes = access.mask.lanes
        where = lanes, access.elements
        self._time += 1
        sums.touched[where] = self._time
        early = sums.going_on[where] > 0
        if early.any():
            what = f"a product of line {sums.product.line}: a wgmma.wait_group between them would order the two"
            self._report(batch, access, (sums.product, access.site.position), lanes[early], what)

    def _report(
        self, batch: BlockBatch, access: Access, positions: tuple[SourcePosition, ...], lanes: Array, what: str
    ) -> None:
        key = (positions[0].file, positions[0].line, positions[-1].line if len(positions) > 1 else 0)
        if key in self._findings:
            known = self._findings[key]
            self._findings[key] = replace(known, count=known.count + lanes.size)
            return
        who, at = batch.describe(int(lanes[0])), positions[-1]
        self._findings[key] = Finding(
            "race",
            f"Race reported between {access.site.action.capitalize()} access at {PurePath(at.file).name}:{at.line} by "
            f"{who} to {access.memory.name} and {what}.",
            positions,
            (who,) * len(positions),
            int(lanes.size),
        )
