"""Checker for uses of local variables after the end of their scope."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from gpu.errors import SourcePosition
from gpu.simulator.checkers.checker import Checker
from gpu.simulator.checkers.findings import Finding
from gpu.simulator.executor.batch import BlockBatch
from gpu.simulator.executor.masks import LaneMask
from gpu.simulator.executor.memory import DeviceMemory, LocalMemory
from gpu.simulator.executor.observe import Access

Array = npt.NDArray[Any]

# The most bytes of variables kept alive after their scope, so that a dangling pointer still finds its variable.
_KEPT_BYTES = 1 << 24


@dataclass(frozen=True)
class _EndedScope:
    """The lanes in which a variable's scope has ended, as bool, and its declaration."""

    bits: Array
    declared: SourcePosition


class LifetimeChecker(Checker):
    """Find accesses through pointers and references to a local variable after the end of its scope."""

    def __init__(self) -> None:
        self._findings: dict[tuple[str, int, str, int], Finding] = {}
        self._ended: WeakKeyDictionary[DeviceMemory, _EndedScope] = WeakKeyDictionary()
        self._kept: deque[LocalMemory] = deque()
        self._kept_bytes = 0

    @property
    def findings(self) -> list[Finding]:
        """One finding for each line and declaration, in order of detection."""
        return list(self._findings.values())

    def batch_ends(self, batch: BlockBatch) -> None:
        self._kept.clear()
        self._kept_bytes = 0

    def local_ends(self, batch: BlockBatch, memory: LocalMemory, declared: SourcePosition, mask: LaneMask) -> None:
        previous = self._ended.get(memory)
        self._ended[memory] = _EndedScope(mask.bits if previous is None else previous.bits | mask.bits, declared)
        if previous is None:
            self._kept.append(memory)
            self._kept_bytes += memory.bytes
            while self._kept_bytes > _KEPT_BYTES:
                self._kept_bytes -= self._kept.popleft().bytes

    def access(self, batch: BlockBatch, access: Access) -> None:
        ended = self._ended.get(access.memory) if access.memory.space == "local" else None
        if ended is None:
            return
        lanes = np.flatnonzero(access.mask.bits & ended.bits)
        if not lanes.size:
            return
        position, declared = access.site.position, ended.declared
        key = (position.file, position.line, declared.file, declared.line)
        if key in self._findings:
            finding = self._findings[key]
            self._findings[key] = replace(finding, count=finding.count + lanes.size)
            return
        thread = batch.describe(int(lanes[0]))
        self._findings[key] = Finding(
            "use-after-scope",
            f"Invalid __local__ {access.site.action} of size {access.size} bytes by {thread} at {_place(position)}: "
            f"the scope of {access.memory.name}, declared at {_place(declared)}, has ended",
            (position, declared),
            (thread,),
            lanes.size,
        )


def _place(position: SourcePosition) -> str:
    return f"{PurePath(position.file).name}:{position.line}"
