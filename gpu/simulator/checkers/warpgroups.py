"""Finds threads that touch the sums of products by warpgroups, which go on, and products that no fence comes before."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.errors import SourcePosition
from gpu.simulator.checkers.checker import Checker
from gpu.simulator.checkers.findings import Finding
from gpu.simulator.executor.batch import BlockBatch
from gpu.simulator.executor.masks import LaneMask
from gpu.simulator.executor.memory import LocalMemory
from gpu.simulator.executor.observe import Access

Array = npt.NDArray[Any]

_FENCE = "wgmma.fence"


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

    def fence(self, batch: BlockBatch, name: str, mask: LaneMask, named: Any = None) -> None:
        if name == _FENCE:
            self._time += 1
            self._fenced[mask.lanes] = self._time

    def copying(self, batch: BlockBatch, access: Access, *, begins: bool) -> None:
        memory, position = access.memory, access.site.position
        if not isinstance(memory, LocalMemory):
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

    def access(self, batch: BlockBatch, access: Access) -> None:
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
            f"{who} to {access.memory.name} (its registers) and {what}.",
            positions,
            (who,) * len(positions),
            int(lanes.size),
        )
