"""Finds uses of local variables after their function or block has ended."""

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

# So many bytes of variables that are gone are kept, so that pointers which were stored still lead to them.
_KEPT_BYTES = 1 << 24


@dataclass(frozen=True)
class _Ended:
    """A variable that is gone in some lanes, and where it was declared."""

    bits: Array
    declared: SourcePosition


class LifetimeChecker(Checker):
    """Finds pointers and references to a local variable that are followed after its function or block has ended."""

    def __init__(self) -> None:
        self._findings: dict[tuple[str, int, str, int], Finding] = {}
        self._ended: WeakKeyDictionary[DeviceMemory, _Ended] = WeakKeyDictionary()
        self._kept: deque[LocalMemory] = deque()
        self._kept_bytes = 0

    @property
    def findings(self) -> list[Finding]:
        """One finding for each line and declaration, in the order in which they were found."""
        return list(self._findings.values())

    def batch_ends(self, batch: BlockBatch) -> None:
        self._kept.clear()
        self._kept_bytes = 0

    def local_ends(self, batch: BlockBatch, memory: LocalMemory, declared: SourcePosition, mask: LaneMask) -> None:
        known = self._ended.get(memory)
        self._ended[memory] = _Ended(mask.bits if known is None else known.bits | mask.bits, declared)
        if known is None:
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
            known = self._findings[key]
            self._findings[key] = replace(known, count=known.count + lanes.size)
            return
        who = batch.describe(int(lanes[0]))
        self._findings[key] = Finding(
            "use-after-scope",
            f"Invalid __local__ {access.site.action} of size {access.size} bytes by {who} at {_place(position)}: "
            f"{access.memory.name}, declared at {_place(declared)}, is gone, as its function or block has ended",
            (position, declared),
            (who,),
            lanes.size,
        )


def _place(position: SourcePosition) -> str:
    return f"{PurePath(position.file).name}:{position.line}"
