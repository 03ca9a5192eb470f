"""Checker for uses of local variables after the end of their scope."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from gpu.base.errors import SourcePosition
from gpu.base.findings import Finding
from gpu.base.lane_mask import LaneMask
from gpu.simulator.checkers.checker import Checker
from gpu.simulator.executor.state.batch import BlockBatch
from gpu.simulator.executor.state.memory import DeviceMemory, LocalMemory
from gpu.simulator.executor.state.observer import Access

Array = npt.NDArray[Any]

# The most bytes of variables kept alive after their scope, so that a dangling pointer still finds its variable.
_MAX_RETAINED_BYTES = 1 << 24


@dataclass(frozen=True)
class _EndedScope:
    """The lanes in which a variable's scope has ended, as bool, and its declaration."""

    bits: Array
    declaration: SourcePosition


class LifetimeChecker(Checker):
    """Find accesses through pointers and references to a local variable after the end of its scope."""

    def __init__(self) -> None:
        super().__init__()
        self._ended_scopes: WeakKeyDictionary[DeviceMemory, _EndedScope] = WeakKeyDictionary()
        self._retained_variables: deque[LocalMemory] = deque()
        self._retained_bytes = 0

    def batch_ends(self, batch: BlockBatch) -> None:
        self._retained_variables.clear()
        self._retained_bytes = 0

    def local_ends(self, batch: BlockBatch, memory: LocalMemory, declaration: SourcePosition, mask: LaneMask) -> None:
        previous = self._ended_scopes.get(memory)
        self._ended_scopes[memory] = _EndedScope(
            mask.bits if previous is None else previous.bits | mask.bits, declaration
        )
        if previous is None:
            self._retained_variables.append(memory)
            self._retained_bytes += memory.bytes
            while self._retained_bytes > _MAX_RETAINED_BYTES:
                self._retained_bytes -= self._retained_variables.popleft().bytes

    def access(self, batch: BlockBatch, access: Access) -> None:
        ended = self._ended_scopes.get(access.memory) if access.memory.space == "local" else None
        if ended is None:
            return
        lanes = np.flatnonzero(access.mask.bits & ended.bits)
        if not lanes.size:
            return
        position, declared = access.site.position, ended.declaration
        key = (position.line_key, declared.line_key)
        if self._count_again(key, lanes.size):
            return
        thread = batch.describe(int(lanes[0]))
        self._findings[key] = Finding(
            "use-after-scope",
            f"Invalid __local__ {access.site.action} of size {access.size} bytes by {thread} at "
            f"{position.short_text}: the scope of {access.memory.name}, declared at "
            f"{declared.short_text}, has ended",
            (position, declared),
            (thread,),
            lanes.size,
        )
