"""Checker for integer operations whose results are undefined in C++: divisions and shifts."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu.base.findings import Finding
from gpu.base.lane_mask import LaneMask
from gpu.simulator.checkers.checker import Checker
from gpu.simulator.executor.state.batch import BlockBatch
from gpu.simulator.executor.state.observer import OperatorSite

_NAMES = {"/": "division", "%": "remainder", "<<": "shift", ">>": "shift"}


class ArithmeticChecker(Checker):
    """Find divisions by 0 and of the lowest number by -1, and shifts by a negative number or by the width or more.

    A GPU has a result for each, but compilers may assume that a program executes none.
    """

    def operands(self, batch: BlockBatch, site: OperatorSite, left: Any, right: Any, mask: LaneMask) -> None:
        undefined = _find_undefined(site, left, right)
        if not _is_any(undefined):
            return
        lanes = np.flatnonzero(mask.bits & undefined)
        if not lanes.size:
            return
        key = site.position, site.op
        if self._count_again(key, lanes.size):
            return
        lane, place = int(lanes[0]), site.position.short_text
        thread = batch.describe(lane)
        first, second = (int(value[lane] if isinstance(value, np.ndarray) else value) for value in (left, right))
        message = f"Undefined {_NAMES[site.op]} by {thread} at {place}: {_explain(site, first, second)}"
        self._findings[key] = Finding("undefined-operation", message, (site.position,), (thread,), lanes.size)


def _find_undefined(site: OperatorSite, left: Any, right: Any) -> Any:
    """Return whether the result is undefined, for all lanes or for each."""
    if site.op in ("<<", ">>"):
        return (right < 0) | (right >= 8 * site.type.size)
    undefined = right == 0
    is_minus_one = right == -1
    if site.type.is_signed and _is_any(is_minus_one):
        undefined = undefined | is_minus_one & (left == np.iinfo(site.type.dtype).min)
    return undefined


def _is_any(condition: Any) -> bool:
    """Return whether a condition holds in any lane; for one value, faster than NumPy's function."""
    return bool(condition.any() if isinstance(condition, np.ndarray) else condition)


def _explain(site: OperatorSite, left: int, right: int) -> str:
    if site.op in ("<<", ">>"):
        return f"in C++ an integer of {8 * site.type.size} bits cannot be shifted by {right}"
    if right == 0:
        return f"{left} {site.op} 0 has no value in C++"
    return f"{left} {site.op} -1 exceeds the range of the type"
