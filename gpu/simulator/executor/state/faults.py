"""Threads with an invalid access: they end, so that the checkers see what the other threads of the launch do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpu.base.errors import LaunchError
from gpu.base.lane_mask import LaneMask, union_masks
from gpu.simulator.executor.state.memory import AccessError
from gpu.simulator.executor.state.observer import Observers


class LaunchFaults:
    """The invalid accesses of a launch. The first is its error; after it, only some observers are notified.

    Parameters
    ----------
    observers : Observers
        The observers of the launch; those with `outlives_faults` are notified further.
    """

    def __init__(self, observers: Observers) -> None:
        self._observers = observers
        self.first: LaunchError | None = None

    def add(self, error: LaunchError) -> None:
        """Add an invalid access."""
        if self.first is None:
            self.first = error
            self._observers.drop_after_fault()


class BatchFaults:
    """The lanes of a batch that have ended by an invalid access."""

    def __init__(self, launch: LaunchFaults, lanes: int) -> None:
        self._launch = launch
        self._bits = np.zeros(lanes, bool)
        self._any = False

    def attempt(self, access: Callable[[LaneMask], Any], mask: LaneMask) -> Any:
        """Perform an access in the lanes that have not ended; those for which it is invalid end.

        Parameters
        ----------
        access : callable
            Performs the access in the lanes of a mask, or raises AccessError before any of them has performed it.
        mask : LaneMask
            The lanes that access memory.

        Returns
        -------
        Any
            The result of `access`; None if no lane is left.
        """
        live = self.exclude(mask)
        while live is not None:
            try:
                return access(live)
            except AccessError as error:
                self._launch.add(error)
                self._bits[error.lanes] = True
                self._any = True
                live = self.exclude(live)
        return None

    def exclude(self, mask: LaneMask) -> LaneMask | None:
        """Return the lanes of a mask that have not ended."""
        return mask.split(self._bits)[1] if self._any else mask

    def retire(self, frame: Any, mask: LaneMask) -> LaneMask | None:
        """Return the lanes of a mask that have not ended; note in a call frame and its kernel's that others exited."""
        if not self._any:
            return mask
        ended, live = mask.split(self._bits)
        if ended is not None:
            for each in {frame, frame.kernel or frame}:
                each.returned_mask = union_masks(each.returned_mask, ended.without(each.returned_mask))
        return live
