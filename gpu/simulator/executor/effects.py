"""What a kernel does besides computing: it prints, asserts, reads the clock and orders its memory accesses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpu.errors import LaunchError, SourcePosition
from gpu.simulator.executor.call_frame import CallFrame
from gpu.simulator.executor.exchanges import ALL_LANES, shuffled_from
from gpu.simulator.executor.masks import LaneMask, union
from gpu.simulator.executor.memory import AccessSite
from gpu.simulator.executor.observe import HeapCall, WarpMeeting
from gpu.simulator.executor.pointers import PointerValue, unobserved
from gpu.simulator.executor.printf import format_c
from gpu.simulator.executor.running import RunningBatch
from gpu.warp import WARP

# A text that no zero ends is printed so far.
_LONGEST_TEXT = 1024


def print_lanes(frame: CallFrame, mask: LaneMask, text: str, values: list[Any]) -> np.int32:
    """Format a text for each lane, in lane order and as long as there is room, and return what printf does."""
    batch = frame.batch
    for lane in mask.lanes:
        if batch.print_buffer.takes():
            own = [_of_lane(batch, value, int(lane)) for value in values]
            batch.printed.append((int(lane), format_c(text, own)))
            batch.print_buffer.take(batch.printed[-1][1])
    return np.int32(len(values))


class _Letters:
    """A pointer that is printed: as a number, or as the text that it leads to."""

    def __init__(self, batch: RunningBatch, lane: int, address: PointerValue) -> None:
        self._batch, self._lane, self._address = batch, lane, address.of_lane(lane)

    def number(self) -> Any:
        return self._address.number()

    def __str__(self) -> str:
        bits = np.zeros(self._batch.geometry.lanes, bool)
        bits[self._lane] = True
        mask, site, letters = LaneMask(bits, 1), AccessSite(SourcePosition("", 0), "read"), bytearray()
        with unobserved(self._batch):
            while len(letters) < _LONGEST_TEXT:
                found = self._address.load(self._batch, np.int64(len(letters)), np.dtype(np.uint8), mask, site)
                letter = int(found[self._lane] if isinstance(found, np.ndarray) else found)
                if letter == 0:
                    break
                letters.append(letter)
        return letters.decode("latin-1")


def _of_lane(batch: RunningBatch, value: Any, lane: int) -> Any:
    if isinstance(value, PointerValue):
        return _Letters(batch, lane, value)
    return value[lane] if isinstance(value, np.ndarray) else value


def tell_fence(frame: CallFrame, name: str, mask: LaneMask, named: Any, position: SourcePosition) -> None:
    """Let an observer know of a fence; lanes that go together have nothing left to order, others wait."""
    if frame.batch.scheduler is not None and name == "__syncwarp":
        met = frame.batch.scheduler.meet(name, mask, ALL_LANES if named is None else named, ())
        if met.mask is not mask:
            return  # who let the last of them pass has told of it
    if frame.batch.registers is not None:
        frame.batch.registers.settle(mask)
    if frame.batch.observer is not None:
        frame.batch.observer.fence(frame.batch, name, mask, named)
        if name == "__syncwarp":
            _tell_meeting(frame, name, mask, ALL_LANES if named is None else named, position)


def tell_exchange(
    name: str, position: SourcePosition, frame: CallFrame, mask: LaneMask, named: Any, by: Sequence[Any]
) -> None:
    """Let an observer know of values that lanes of a warp exchange; `by` says of a shuffle from where to where."""
    if frame.batch.observer is not None:
        sources = shuffled_from(name, by, frame.batch.geometry.lanes) if name.startswith("__shfl") else None
        _tell_meeting(frame, name, mask, named, position, sources)


def _tell_meeting(
    frame: CallFrame, name: str, mask: LaneMask, named: Any, position: SourcePosition, sources: Any = None
) -> None:
    observer, ended = frame.batch.observer, (frame.kernel or frame).returned
    if frame.batch.scheduler is not None:
        ended = union(ended, frame.batch.scheduler.ended)
    assert observer is not None
    observer.warp_meets(frame.batch, WarpMeeting(position, name, mask, named, ended, sources))


def meet_whole_warp(frame: CallFrame, mask: LaneMask, position: SourcePosition) -> np.int32:
    """End the launch where not all lanes of a warp come to what they do together, such as a product of tiles."""
    batch = frame.batch
    if batch.scheduler is not None:
        mask = batch.scheduler.meet(f"what a whole warp does at {position}", mask, ALL_LANES, ()).mask
    rows = mask.bits.reshape(-1, WARP)
    missing = np.flatnonzero(rows.any(axis=1, keepdims=True) & ~rows)
    if missing.size:
        lane = int(missing[0])
        exists = bool(batch.geometry.everyone.bits[lane])
        who = batch.describe(lane) if exists else f"lane {lane % WARP}, which the block does not have,"
        raise LaunchError(
            f"{position}: Barrier error detected. Divergent thread(s) in warp: all 32 lanes do this together; "
            f"{who} does not come.",
            position=position,
            advice="Let whole warps come here: move it out of the branch, and launch blocks of whole warps.",
            kind="barrier",
            thread=batch.describe(int(mask.lanes[0])) if not exists else who,
        )
    return np.int32(0)


def tell_heap_call(
    frame: CallFrame, mask: LaneMask, address: PointerValue, size: Any, position: SourcePosition
) -> None:
    """Let an observer know of memory that lanes have got from the heap, or that they give back, whose size is None."""
    if frame.batch.observer is not None:
        for part, lanes in address.parts(mask):
            frame.batch.observer.heap_call(frame.batch, HeapCall(position, part.memory, part.offset, size, lanes))


def read_clock(frame: CallFrame, dtype: np.dtype[Any]) -> Any:
    """Return a number larger than any before: it counts the rounds of loops, and the calls."""
    frame.batch.clock_calls += 1
    return dtype.type(frame.batch.rounds + frame.batch.clock_calls)


def assert_lanes(frame: CallFrame, mask: LaneMask, holds: Any, text: str, position: SourcePosition) -> None:
    """End the launch where a lane finds an assertion false."""
    _, failed = mask.split(holds)
    if failed is not None:
        raise LaunchError(
            f"{position}: {frame.batch.describe(int(failed.lanes[0]))} finds the assertion `{text}` false.",
            position=position,
            kind="assertion",
            thread=frame.batch.describe(int(failed.lanes[0])),
        )
