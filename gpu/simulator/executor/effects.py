"""What a kernel does besides computing: it prints, asserts, and orders its memory accesses."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu.errors import LaunchError, SourcePosition
from gpu.simulator.executor.address import Address, unobserved
from gpu.simulator.executor.frame import Frame
from gpu.simulator.executor.lanes import BlockBatch, Mask
from gpu.simulator.executor.memory import Site
from gpu.simulator.executor.observe import Step
from gpu.simulator.executor.printf import format_c
from gpu.simulator.executor.schedule import check_barrier

# A text that no zero ends is printed so far.
_LONGEST_TEXT = 1024


def print_lanes(frame: Frame, mask: Mask, text: str, values: list[Any]) -> np.int32:
    """Format a text for each lane, in lane order, and return what printf does."""
    for lane in mask.lanes:
        own = [_of_lane(frame.batch, value, int(lane)) for value in values]
        frame.batch.printed.append((int(lane), format_c(text, own)))
    return np.int32(len(values))


class _Letters:
    """A pointer that is printed: as a number, or as the text that it leads to."""

    def __init__(self, batch: BlockBatch, lane: int, address: Address) -> None:
        self._batch, self._lane, self._address = batch, lane, address.of_lane(lane)

    def number(self) -> Any:
        return self._address.number()

    def __str__(self) -> str:
        bits = np.zeros(self._batch.geometry.lanes, bool)
        bits[self._lane] = True
        mask, site, letters = Mask(bits, 1), Site(SourcePosition("", 0), "read"), bytearray()
        with unobserved(self._batch):
            while len(letters) < _LONGEST_TEXT:
                found = self._address.load(self._batch, np.int64(len(letters)), np.dtype(np.uint8), mask, site)
                letter = int(found[self._lane] if isinstance(found, np.ndarray) else found)
                if letter == 0:
                    break
                letters.append(letter)
        return letters.decode("latin-1")


def _of_lane(batch: BlockBatch, value: Any, lane: int) -> Any:
    if isinstance(value, Address):
        return _Letters(batch, lane, value)
    return value[lane] if isinstance(value, np.ndarray) else value


def tell_fence(frame: Frame, name: str, mask: Mask, named: Any) -> None:
    """Let an observer know of a fence; lanes that go together have nothing left to order."""
    if frame.batch.observer is not None:
        frame.batch.observer.fence(frame.batch, name, mask, named)


def pass_barrier(frame: Frame, mask: Mask, position: SourcePosition, votes: Any = False) -> tuple[Mask, Any]:
    """Pass where all threads of each block that comes here, but for those that have ended, are here.

    Return those that met, whole blocks, and how they voted: one value for all, or one a lane.
    """
    batch, gone = frame.batch, (frame.kernel or frame).returned
    if batch.warps is not None:
        return batch.warps.meet(gone, mask, position, votes)
    batch.begin(Step(position, "barrier", 0), mask)
    check_barrier(batch, batch.geometry.everyone.without(gone), mask, position)
    if batch.observer is not None:
        batch.observer.barrier(batch, position, mask)
    return mask, votes


def pass_grid_barrier(frame: Frame, mask: Mask, position: SourcePosition) -> None:
    """Pass where all threads of the grid, which is one batch, but for those that have ended, are here."""
    batch = frame.batch
    if batch.warps is not None:
        raise LaunchError(
            f"{position}: a barrier of the whole grid runs in the schedule round-robin only.", position=position
        )
    due = batch.geometry.everyone.without((frame.kernel or frame).returned)
    missing = due.without(mask) if due is not None else None
    if missing is not None:
        who = batch.describe(int(missing.lanes[0]))
        raise LaunchError(
            f"{position}: Barrier error detected. Divergent thread(s) in grid: "
            f"{who} does not come to the barrier of the grid.",
            position=position,
            advice="Move the barrier out of the branch, so that every thread of the grid reaches it.",
            kind="barrier",
            thread=who,
        )
    if batch.observer is not None:
        batch.observer.barrier(batch, position, mask)
        batch.observer.launch_resumes(batch)


def tell_time(frame: Frame, dtype: np.dtype[Any]) -> Any:
    """Return a number larger than any before: it counts the rounds of loops, and the calls."""
    frame.batch.clock_calls += 1
    return dtype.type(frame.batch.rounds + frame.batch.clock_calls)


def assert_lanes(frame: Frame, mask: Mask, holds: Any, text: str, position: SourcePosition) -> None:
    """End the launch where a lane finds an assertion false."""
    _, failed = mask.split(holds)
    if failed is not None:
        raise LaunchError(
            f"{position}: {frame.batch.describe(int(failed.lanes[0]))} finds the assertion `{text}` false.",
            position=position,
            kind="assertion",
            thread=frame.batch.describe(int(failed.lanes[0])),
        )
