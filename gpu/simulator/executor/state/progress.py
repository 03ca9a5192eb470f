"""Progress of a batch: detects that all of its running lanes wait in loops, and undoes what the batch has done.

Lanes wait if memory does not change, or if each iteration restores it, as a loop does that takes and releases a lock.

A GPU's warps, the lanes of a warp since Volta, and its resident blocks make progress independently. The executor runs
them in an order that costs less; if lanes starve in it, the batch starts again in a fairer order.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.base.errors import SourcePosition

Array = npt.NDArray[Any]

_IDLE_ITERATIONS = 64
"""Iterations of a waiting loop without any change of memory after which its lanes count as starving."""

_CHECK_INTERVAL, _RESTORED_CHECKS = 16, 3
"""Iterations of a loop between those that are checked for restoring memory, and the number of such iterations in
succession after which lanes in lockstep count as starving."""

_MAX_SAVED_BYTES = 1 << 28
"""The most bytes of old values that a batch keeps; one that writes more cannot start again."""


class StarvationError(Exception):
    """All running lanes of a batch wait in loops, and no memory has changed for many iterations."""

    position: SourcePosition | None = None
    """The position of the loop in which the last lane waits."""
    lane = 0
    needs_lanes = False
    """Whether only a schedule of lanes helps."""
    needs_blocks = False
    """Whether the lanes probably wait for other blocks: each iteration restores the memory that it changes."""
    is_deadlock = False
    """Whether no running lane can end its wait or another lane's: all repeat the same iteration."""


class ProgressMonitor:
    """Watches the memory that a batch changes, and keeps the old values of global memory.

    Parameters
    ----------
    must_undo : bool
        Whether a batch that writes too much ends, instead of running without the possibility to undo.
    watches_syncs : bool
        Whether lanes of a warp may meet at different `__syncwarp` calls.
    """

    def __init__(self, *, must_undo: bool = False, watches_syncs: bool = False) -> None:
        self._must_undo = must_undo
        self._watches_syncs = watches_syncs
        self._undo: list[tuple[Array, Any, Any]] = []
        self._saved_bytes = 0
        # For each part, the iterations of each loop that it is in since memory last changed, and how the loop may end.
        self._idle_counts: dict[Hashable, dict[Hashable, int]] = {}
        self._waits: dict[tuple[Hashable, Hashable], Callable[[], str]] = {}
        # For each part and loop, the variables of an idle iteration, and what must be the same in the next one.
        self._states: dict[tuple[Hashable, Hashable], tuple[tuple[Any, ...], list[Any]]] = {}
        # The parts that have changed memory since their last iteration.
        self._writers: set[Hashable] = set()
        # For each loop, its iterations in lockstep, and those in succession that were checked and restored memory.
        self._iterations: dict[Hashable, int] = {}
        self._restored: dict[Hashable, int] = {}
        # The number of saved changes when an iteration began that is to be checked.
        self._marks: dict[Hashable, int] = {}
        self.part: Hashable = None
        """The part of the batch that runs: a warp, a lane, or None for all lanes."""
        self.is_active = True

    def stop(self) -> None:
        """Stop watching; the batch cannot start again."""
        self.is_active = False
        self._undo.clear()
        self._idle_counts.clear()

    def save(self, view: Array, index: Any, *, is_global: bool) -> Any:
        """Return the old values of elements that are about to change; keep those of global memory."""
        old = view[index].copy() if isinstance(index, np.ndarray) else view[index]
        if is_global and self.is_active:
            self._undo.append((view, index, old))
            self._saved_bytes += old.nbytes
            if self._saved_bytes > _MAX_SAVED_BYTES:
                if self._must_undo:
                    raise StarvationError
                self.stop()
        return old

    def compare(self, view: Array, index: Any, old: Any) -> None:
        """Note whether elements have changed."""
        if (self._idle_counts or self.part not in self._writers) and np.count_nonzero(view[index] != old):
            self._idle_counts.clear()
            self._writers.add(self.part)

    def iterate(self, running_parts: int, loop: Hashable, classify_wait: Callable[[], str]) -> bool:
        """Count an iteration of a loop that reads memory which other threads may change.

        Parameters
        ----------
        running_parts : int
            The number of parts that can run.
        loop : hashable
            Identifies the loop.
        classify_wait : callable
            Returns how the loop may end if no memory changes, as `batches.classify_wait`.

        Returns
        -------
        bool
            Whether the running part has changed no memory since its last iteration, so that it probably waits.

        Raises
        ------
        StarvationError
            All parts that can run have executed many iterations without any change of memory, and none counts them;
            or in lockstep, without a change that lasts.
        """
        if not self.is_active:
            return False
        if self.part is None:
            self._check_restored_memory(loop)
        counts = self._idle_counts.setdefault(self.part, {})
        counts[loop] = counts.get(loop, 0) + 1
        self._waits[self.part, loop] = classify_wait
        if (
            counts[loop] >= _IDLE_ITERATIONS
            and len(self._idle_counts) >= running_parts
            and all(max(each.values()) >= _IDLE_ITERATIONS for each in self._idle_counts.values())
        ):
            waits = set(map(self._classify_part, self._idle_counts))
            if self.part is None or "counts" not in waits:
                starvation = StarvationError()
                starvation.is_deadlock = waits == {"repeats"}
                raise starvation
            self._idle_counts.clear()
        if self.part in self._writers:
            self._writers.remove(self.part)
            return False
        return True

    def _check_restored_memory(self, loop: Hashable) -> None:
        """Raise StarvationError if several checked iterations have restored all global memory that they changed."""
        count = self._iterations[loop] = self._iterations.get(loop, 0) + 1
        if count % _CHECK_INTERVAL == 0:
            self._marks[loop] = len(self._undo)
        elif (start := self._marks.pop(loop, None)) is not None:
            self._restored[loop] = self._restored.get(loop, 0) + 1 if self._has_restored(start) else 0
            if self._restored[loop] >= _RESTORED_CHECKS:
                starvation = StarvationError()
                starvation.needs_blocks = True
                raise starvation

    def _has_restored(self, start: int) -> bool:
        """Return whether memory was changed since a number of saved changes, and has its old values again."""
        changes = self._undo[start:]
        final = [(view, index, view[index].copy()) for view, index, _ in changes]
        for view, index, old in reversed(changes):
            view[index] = old
        restored = bool(changes) and all(np.array_equal(view[index], now) for view, index, now in final)
        for view, index, now in final:
            view[index] = now
        return restored

    @property
    def watches_syncs(self) -> bool:
        """Whether lanes of a warp may meet at different `__syncwarp` calls, and the batch can start again."""
        return self._watches_syncs and self.is_active

    def _classify_part(self, part: Hashable) -> str:
        """Return how the wait of an idle part may end: if any of its loops repeats itself, never."""
        counts = self._idle_counts[part]
        kinds = {self._waits[part, loop]() for loop, count in counts.items() if count >= _IDLE_ITERATIONS}
        return next((kind for kind in ("repeats", "counts") if kind in kinds), "other")

    def replace_state(self, loop: Hashable, key: tuple[Any, ...], variables: list[Any]) -> list[Any] | None:
        """Keep the variables of the running part in a loop; return those kept before, if their key is the same."""
        last = self._states.get((self.part, loop))
        self._states[self.part, loop] = key, variables
        return last[1] if last is not None and last[0] == key else None

    def is_idle(self, loop: Hashable) -> bool:
        """Return whether the running part soon counts as idle in a loop."""
        return self._idle_counts.get(self.part, {}).get(loop, 0) >= _IDLE_ITERATIONS - 2

    def leave_loop(self, loop: Hashable) -> None:
        """Note that the running part has left a loop, at least with some lanes.

        It may be in another loop around this one. In lockstep other lanes may run now.
        """
        counts = self._idle_counts.get(self.part, {})
        counts.pop(loop, None)
        if not counts or self.part is None:
            self._idle_counts.pop(self.part, None)

    def undo(self) -> None:
        """Restore the old values of global memory."""
        for view, index, old in reversed(self._undo):
            view[index] = old
        self.stop()
