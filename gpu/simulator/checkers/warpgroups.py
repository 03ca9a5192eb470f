"""Checker for accesses to accumulators and tiles of warpgroup matrix products without a wait or fence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from gpu.base.errors import SourcePosition
from gpu.base.findings import Finding
from gpu.base.lane_mask import LaneMask
from gpu.simulator.checkers.checker import Checker
from gpu.simulator.checkers.races.shadow import Shadow
from gpu.simulator.executor.state.batch import BlockBatch
from gpu.simulator.executor.state.memory import FlatMemory, LocalMemory
from gpu.simulator.executor.state.observer import Access

Array = npt.NDArray[Any]

_FENCE, _PROXY_FENCE, _INIT_FENCE = "wgmma.fence", "fence.proxy.async", "fence.mbarrier_init"


@dataclass(eq=False)
class _Accumulators:
    """For each lane and element of a local array: the number of running products, and the time of the last access."""

    memory: LocalMemory
    running_counts: Array
    access_times: Array
    product: SourcePosition


class WarpgroupChecker(Checker):
    """Find accesses to registers that a running product of the warpgroup may still write, and missing proxy fences.

    The checker knows accumulators that are local arrays; accesses to scalar variables are not observed. Consecutive
    products that add to the same accumulators need no fence between them. Any other access to accumulators needs a
    `wgmma.fence` before the next product, and so does a thread's first product.

    Tensor cores and bulk copies read what threads store in shared memory only after a `fence.proxy.async`, by the
    storing thread or later by the thread that starts the product or copy. A bulk copy that signals an mbarrier needs
    such a fence, or a `fence.mbarrier_init`, after the initialization of the mbarrier.
    """

    def batch_begins(self, batch: BlockBatch) -> None:
        self._accumulators: dict[int, _Accumulators] = {}
        self._time = 0
        self._fence_times = np.full(batch.geometry.lanes, -1)
        self._proxy_fence_times = np.zeros(batch.geometry.lanes, np.int64)
        self._init_fence_times = np.zeros(batch.geometry.lanes, np.int64)
        self._store_shadows: WeakKeyDictionary[FlatMemory, Shadow] = WeakKeyDictionary()
        self._position_numbers: dict[SourcePosition, int] = {}

    def fence(self, batch: BlockBatch, name: str, mask: LaneMask, member_mask: Any = None) -> None:
        if name == _FENCE:
            self._time += 1
            self._fence_times[mask.lanes] = self._time
        elif name == _PROXY_FENCE:
            self._time += 1
            self._proxy_fence_times[mask.lanes] = self._init_fence_times[mask.lanes] = self._time
        elif name == _INIT_FENCE:
            self._time += 1
            self._init_fence_times[mask.lanes] = self._time

    def mbarrier_bound(self, batch: BlockBatch, access: Access) -> None:
        if access.memory.space == "shared":
            self._check_async_read(batch, access, "initialized", self._init_fence_times)

    def async_copy(self, batch: BlockBatch, access: Access, *, begins: bool) -> None:
        memory, position = access.memory, access.site.position
        if not isinstance(memory, LocalMemory):
            if begins and memory.space == "shared" and access.site.action == "read":
                self._check_async_read(batch, access, "stored", self._proxy_fence_times)
            return
        if id(memory) not in self._accumulators:
            shape = (batch.geometry.lanes, memory.size // access.size)
            self._accumulators[id(memory)] = _Accumulators(
                memory, np.zeros(shape, np.int64), np.full(shape, -2), position
            )
        sums, lanes = self._accumulators[id(memory)], access.mask.lanes
        where = lanes, access.elements
        if not begins:
            sums.running_counts[where] -= 1
            return
        late = self._fence_times[lanes] < np.maximum(sums.access_times[where], 0)
        if late.any():
            other = "earlier accesses to its registers: add a wgmma.fence before the product"
            self._report(batch, access, (position,), lanes[late], other)
        sums.running_counts[where] += 1
        sums.product = position

    def _check_async_read(self, batch: BlockBatch, access: Access, slot: str, fence_times: Array) -> None:
        """Report stores without a proxy fence to bytes that the asynchronous proxy reads now.

        `slot` is "stored" for all stores, or "initialized" for those that are not atomic operations; `fence_times` is
        the time of each thread's last fence.
        """
        assert isinstance(access.memory, FlatMemory)
        shadow = self._store_shadows.get(access.memory)
        if shadow is None:
            return
        lanes, cells = shadow.cells(batch.geometry, access)
        stored, writer = shadow.get_or_create(slot)[cells], shadow.get_or_create(f"{slot} by")[cells]
        early = (stored > fence_times[writer]) & (stored > fence_times[lanes])
        if early.any():
            at = list(self._position_numbers)[int(shadow.get_or_create(f"{slot} at")[cells[early][0]])]
            other = (
                f"Write access by {batch.describe(int(writer[early][0]))} at line {at.line}: add a fence.proxy.async "
                "between them"
            )
            self._report(batch, access, (at, access.site.position), lanes[early], other)

    def _record_store(self, batch: BlockBatch, access: Access) -> None:
        """Record stores in shared memory by threads or by bulk copies."""
        memory = access.memory
        assert isinstance(memory, FlatMemory)
        if memory not in self._store_shadows:
            self._store_shadows[memory] = Shadow(memory, batch.geometry.blocks, access.size)
        shadow = self._store_shadows[memory]
        lanes, cells = shadow.cells(batch.geometry, access)
        self._time += 1
        for slot in ("stored",) if access.site.action == "atomic" else ("stored", "initialized"):
            shadow.get_or_create(slot)[cells] = 0 if access.site.bulk else self._time
            shadow.get_or_create(f"{slot} by")[cells] = lanes
            shadow.get_or_create(f"{slot} at")[cells] = self._position_numbers.setdefault(
                access.site.position, len(self._position_numbers)
            )

    def access(self, batch: BlockBatch, access: Access) -> None:
        if batch.uses_async_proxy and access.memory.space == "shared" and access.site.action != "read":
            self._record_store(batch, access)
        sums = self._accumulators.get(id(access.memory)) if access.memory.space == "local" else None
        if sums is None or access.site.sum:
            return
        lanes = access.mask.lanes
        where = lanes, access.elements
        self._time += 1
        sums.access_times[where] = self._time
        early = sums.running_counts[where] > 0
        if early.any():
            other = f"the product at line {sums.product.line}: add a wgmma.wait_group between them"
            self._report(batch, access, (sums.product, access.site.position), lanes[early], other)

    def _report(
        self, batch: BlockBatch, access: Access, positions: tuple[SourcePosition, ...], lanes: Array, other: str
    ) -> None:
        key = (positions[0].file, positions[0].line, positions[-1].line if len(positions) > 1 else 0)
        if self._count_again(key, lanes.size):
            return
        thread, at = batch.describe(int(lanes[0])), positions[-1]
        self._findings[key] = Finding(
            "race",
            f"Race reported between {access.site.action.capitalize()} access at {at.short_text} by "
            f"{thread} to {access.memory.name} and {other}.",
            positions,
            (thread,) * len(positions),
            int(lanes.size),
        )
