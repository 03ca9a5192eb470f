"""Checker that warns of output arrays that a launch leaves partly or entirely unwritten."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpu.base.errors import SourcePosition
from gpu.base.findings import Finding
from gpu.simulator.checkers.checker import Checker
from gpu.simulator.executor.state.batch import BlockBatch
from gpu.simulator.executor.state.memory import FlatMemory
from gpu.simulator.executor.state.observer import Access

_LISTED_RUNS = 2
"""The most runs of elements that a message names."""


@dataclass(frozen=True)
class ResultArray:
    """An uninitialized array that is passed to a kernel.

    Parameters
    ----------
    name : str
        The parameter's name.
    declared : SourcePosition
        The parameter's declaration.
    size, count : int
        Bytes per element, and the number of elements.
    """

    name: str
    declared: SourcePosition
    size: int
    count: int


class UnwrittenChecker(Checker):
    """Warn of elements that no thread has written by the end of the launch.

    Parameters
    ----------
    arrays : mapping of int to ResultArray
        The arrays that start uninitialized, by the address of their first byte.
    """

    def __init__(self, arrays: Mapping[int, ResultArray]) -> None:
        self._arrays = arrays
        self._written: dict[int, npt.NDArray[np.bool_]] = {}
        self._last: dict[int, SourcePosition] = {}
        self._has_ended = False

    @property
    def findings(self) -> list[Finding]:
        """One finding for each array with unwritten elements; none before the launch ends."""
        if not self._has_ended:
            return []
        findings = []
        for address, array in self._arrays.items():
            written = self._written.get(address)
            missing = (
                np.arange(array.count)
                if written is None
                else np.flatnonzero(~written.reshape(array.count, array.size).any(axis=1))
            )
            if missing.size:
                message = f"{_element_list(missing, array)} not written: no thread of the kernel wrote there"
                findings.append(Finding("never-written", message, (self._last.get(address, array.declared),)))
        return findings

    def access(self, batch: BlockBatch, access: Access) -> None:
        memory = access.memory
        if access.site.action == "read" or not isinstance(memory, FlatMemory) or memory.space != "global":
            return
        address = memory.data.ctypes.data
        array = self._arrays.get(address)
        if array is None:
            return
        written = self._written.setdefault(address, np.zeros(array.count * array.size, bool))
        accessible = written[: written.size // access.size * access.size].reshape(-1, access.size)
        accessible[access.elements] = True
        self._last[address] = access.site.position

    def launch_ends(self) -> None:
        self._has_ended = True


def _element_list(missing: npt.NDArray[np.intp], array: ResultArray) -> str:
    """Return the subject and verb of a sentence about unwritten elements."""
    if missing.size == array.count:
        if array.count == 1:
            return f"The only element of {array.name} is"
        return f"All {array.count:,} elements of {array.name} are"
    runs = np.split(missing, np.flatnonzero(np.diff(missing) > 1) + 1)
    texts = [str(run[0]) if run.size == 1 else f"{run[0]} to {run[-1]}" for run in runs[:_LISTED_RUNS]]
    if len(runs) > _LISTED_RUNS:
        texts.append(f"{sum(run.size for run in runs[_LISTED_RUNS:]):,} more")
    listed = texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
    several = missing.size > 1
    return f"Element{'s' * several} {listed} of {array.name} {'are' if several else 'is'}"
