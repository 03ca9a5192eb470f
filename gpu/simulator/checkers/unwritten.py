"""Suspects arrays of a launch that start without values and do not get them, wholly or in part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpu.errors import SourcePosition
from gpu.simulator.checkers.checker import Checker
from gpu.simulator.checkers.findings import Finding
from gpu.simulator.executor.batch import BlockBatch
from gpu.simulator.executor.memory import FlatMemory
from gpu.simulator.executor.observe import Access

_SHOWN = 2
"""Runs of elements that a message names at most."""


@dataclass(frozen=True)
class ResultArray:
    """An array that a kernel is given without values.

    Parameters
    ----------
    name : str
        The parameter.
    declared : SourcePosition
        Where the parameter stands.
    size, count : int
        Bytes of an element, and elements.
    """

    name: str
    declared: SourcePosition
    size: int
    count: int


class UnwrittenChecker(Checker):
    """Suspects elements that are without a value when the launch has ended: a result that nobody wrote.

    Parameters
    ----------
    arrays : mapping of int to ResultArray
        The arrays that start without values, by the address of their first byte.
    """

    def __init__(self, arrays: Mapping[int, ResultArray]) -> None:
        self._arrays = arrays
        self._written: dict[int, npt.NDArray[np.bool_]] = {}
        self._last: dict[int, SourcePosition] = {}
        self._ended = False

    @property
    def findings(self) -> list[Finding]:
        """One for each array that is not wholly written; none while the launch has not come to its end."""
        if not self._ended:
            return []
        found = []
        for address, array in self._arrays.items():
            written = self._written.get(address)
            missing = (
                np.arange(array.count)
                if written is None
                else np.flatnonzero(~written.reshape(array.count, array.size).any(axis=1))
            )
            if missing.size:
                what = _in_words(missing, array)
                message = f"{what} still no value when the kernel has ended: no thread has written there"
                found.append(Finding("never-written", message, (self._last.get(address, array.declared),)))
        return found

    def access(self, batch: BlockBatch, access: Access) -> None:
        memory = access.memory
        if access.site.action == "read" or not isinstance(memory, FlatMemory) or memory.space != "global":
            return
        address = memory.data.ctypes.data
        array = self._arrays.get(address)
        if array is None:
            return
        written = self._written.setdefault(address, np.zeros(array.count * array.size, bool))
        whole = written[: written.size // access.size * access.size].reshape(-1, access.size)
        whole[access.elements] = True
        self._last[address] = access.site.position

    def launch_ends(self) -> None:
        self._ended = True


def _in_words(missing: npt.NDArray[np.intp], array: ResultArray) -> str:
    """Return which elements have no value, as the beginning of a sentence."""
    if missing.size == array.count:
        if array.count == 1:
            return f"The only element of {array.name} has"
        return f"All {array.count:,} elements of {array.name} have"
    runs = np.split(missing, np.flatnonzero(np.diff(missing) > 1) + 1)
    texts = [str(run[0]) if run.size == 1 else f"{run[0]} to {run[-1]}" for run in runs[:_SHOWN]]
    if len(runs) > _SHOWN:
        texts.append(f"{sum(run.size for run in runs[_SHOWN:]):,} more")
    listed = texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
    several = missing.size > 1
    return f"Element{'s' * several} {listed} of {array.name} {'have' if several else 'has'}"
