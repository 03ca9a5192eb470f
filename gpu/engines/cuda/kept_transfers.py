"""Large arrays that a run copied to or from the device, kept for repetitions of the run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

_MIN_BYTES = 2**20
"""Smaller arrays are copied each time: that takes microseconds, and the host program may decide by their values."""


class KeptTransfers:
    """The large transfers of a run, by direction in their order; in a repetition the same place has the same one."""

    def __init__(self) -> None:
        self._kept: defaultdict[str, list[tuple[tuple[Any, ...], Any]]] = defaultdict(list)
        self._places: defaultdict[str, int] = defaultdict(int)

    def begin_run(self) -> None:
        """Begin a repetition."""
        self._places.clear()

    def list_kept(self, direction: str) -> list[Any]:
        """Return what the transfers in one direction returned."""
        return [kept for _, kept in self._kept[direction]]

    def repeat(self, direction: str, shape: Sequence[int], dtype: np.dtype[Any], transfer: Callable[[], Any]) -> Any:
        """Return what `transfer` returned at this place of the first run; call it in the first run.

        Parameters
        ----------
        direction : str
            "upload" or "download".
        dtype : dtype
        transfer : callable
            Copies the array; returns where it is.
        """
        if int(np.prod(shape, dtype=np.int64)) * dtype.itemsize < _MIN_BYTES:
            return transfer()
        key, place = (tuple(shape), dtype), self._places[direction]
        self._places[direction] += 1
        if place == len(self._kept[direction]):
            self._kept[direction].append((key, transfer()))
        kept_key, kept = self._kept[direction][place]
        return kept if kept_key == key else transfer()
