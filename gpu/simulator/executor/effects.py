"""Side effects of kernels other than memory accesses: printf, assert, the clock, fences, and warp synchronization."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpu.base.errors import LaunchError, SourcePosition
from gpu.base.lane_mask import LaneMask, union_masks
from gpu.base.warp import WARP
from gpu.simulator.executor.exchanges import ALL_LANES, find_shuffle_sources
from gpu.simulator.executor.state.call_frame import CallFrame
from gpu.simulator.executor.state.memory import AccessSite
from gpu.simulator.executor.state.observer import HeapCall, WarpSync
from gpu.simulator.executor.state.pointers import PointerValue, select_lane, without_observer
from gpu.simulator.executor.state.printf import format_c
from gpu.simulator.executor.state.progress import StarvationError
from gpu.simulator.executor.state.running_batch import RunningBatch

# The most characters printed of a string without a terminating zero.
_MAX_STRING_LENGTH = 1024


def print_lanes(frame: CallFrame, mask: LaneMask, text: str, values: list[Any]) -> np.int32:
    """Execute `printf`: format a text for each lane, in lane order while the buffer has room.

    Parameters
    ----------
    frame : CallFrame
        The running call.
    text : str
        The format string.
    values : list
        The arguments, each one value for all lanes or one per lane.

    Returns
    -------
    int32
        The number of arguments, as `printf` returns it.
    """
    batch = frame.batch
    for lane in mask.lanes:
        if batch.print_buffer.reserve_call():
            arguments = [_get_lane_value(batch, value, int(lane)) for value in values]
            batch.printed_texts.append((int(lane), format_c(text, arguments)))
            batch.print_buffer.consume(batch.printed_texts[-1][1])
    return np.int32(len(values))


class _PrintedPointer:
    """A pointer argument of printf: printed as a number, or as the string that it points to."""

    def __init__(self, batch: RunningBatch, lane: int, address: PointerValue) -> None:
        self._batch, self._lane, self._address = batch, lane, address.select_lane(lane)

    def number(self) -> Any:
        return self._address.number()

    def __str__(self) -> str:
        bits = np.zeros(self._batch.geometry.lanes, bool)
        bits[self._lane] = True
        mask, site, letters = LaneMask(bits, 1), AccessSite(SourcePosition("", 0), "read"), bytearray()
        with without_observer(self._batch):
            while len(letters) < _MAX_STRING_LENGTH:
                loaded = self._address.load(self._batch, np.int64(len(letters)), np.dtype(np.uint8), mask, site)
                letter = int(select_lane(loaded, self._lane))
                if letter == 0:
                    break
                letters.append(letter)
        return letters.decode("latin-1")


def _get_lane_value(batch: RunningBatch, value: Any, lane: int) -> Any:
    if isinstance(value, PointerValue):
        return _PrintedPointer(batch, lane, value)
    return select_lane(value, lane)


def report_fence(frame: CallFrame, name: str, mask: LaneMask, member_mask: Any, position: SourcePosition) -> None:
    """Notify the observer of a fence. In schedules with independent lanes, `__syncwarp` also waits for its lanes.

    Parameters
    ----------
    frame : CallFrame
        The running call.
    name : str
        Such as "__threadfence" or "__syncwarp".
    mask : LaneMask
        The lanes that call it.
    member_mask : scalar, array or None
        The mask argument of `__syncwarp`, one for all lanes or one per lane; None for all lanes.
    position : SourcePosition
        The position of the call.
    """
    if frame.batch.scheduler is not None and name == "__syncwarp":
        sync = frame.batch.scheduler.wait_for_lanes(name, mask, ALL_LANES if member_mask is None else member_mask, ())
        if sync.mask is not mask:
            return  # the part of the warp that arrived last notifies the observer for all
    monitor = frame.batch.monitor
    if name == "__syncwarp" and monitor is not None and monitor.watches_syncs:
        _require_lanes(frame, mask, ALL_LANES if member_mask is None else member_mask)
    if frame.batch.registers is not None:
        frame.batch.registers.order_accesses(name.partition(".")[2], mask, is_fence=True)
    if frame.batch.observer is not None:
        frame.batch.observer.fence(frame.batch, name, mask, member_mask)
        if name == "__syncwarp":
            _notify_warp_sync(frame, name, mask, ALL_LANES if member_mask is None else member_mask, position)


def _require_lanes(frame: CallFrame, mask: LaneMask, member_mask: Any) -> None:
    """Raise StarvationError if lanes that a `__syncwarp` names have not exited and do not execute it now."""
    batch, ended = frame.batch, (frame.kernel or frame).returned_mask
    if batch.scheduler is not None:
        ended = union_masks(ended, batch.scheduler.exited_mask)
    running = batch.geometry.thread_mask.bits if ended is None else batch.geometry.thread_mask.bits & ~ended.bits
    absent = np.packbits((running & ~mask.bits).reshape(-1, WARP), axis=1, bitorder="little").view("<u4").ravel()
    named = member_mask[mask.lanes] if isinstance(member_mask, np.ndarray) else member_mask
    if (absent[mask.lanes // WARP] & np.asarray(named).astype(np.uint32)).any():
        error = StarvationError()
        error.needs_lanes = True
        raise error


def report_exchange(
    name: str, position: SourcePosition, frame: CallFrame, mask: LaneMask, member_mask: Any, arguments: Sequence[Any]
) -> None:
    """Notify the observer of an exchange of values within a warp.

    Parameters
    ----------
    name : str
        Such as "__shfl_down_sync".
    position : SourcePosition
        The position of the call.
    frame : CallFrame
        The running call.
    mask : LaneMask
        The lanes that call it.
    member_mask : scalar or array
        The mask argument, one for all lanes or one per lane.
    arguments : sequence
        The further arguments of a shuffle: the lane or distance, and the width if it is given.
    """
    if frame.batch.observer is not None:
        sources = (
            find_shuffle_sources(name, arguments, frame.batch.geometry.lanes) if name.startswith("__shfl") else None
        )
        width = arguments[1] if sources is not None and len(arguments) > 1 else WARP
        _notify_warp_sync(frame, name, mask, member_mask, position, sources, width)


def _notify_warp_sync(
    frame: CallFrame,
    name: str,
    mask: LaneMask,
    member_mask: Any,
    position: SourcePosition,
    sources: Any = None,
    width: Any = WARP,
) -> None:
    observer, ended = frame.batch.observer, (frame.kernel or frame).returned_mask
    if frame.batch.scheduler is not None:
        ended = union_masks(ended, frame.batch.scheduler.returned_mask)
    assert observer is not None
    observer.warp_sync(frame.batch, WarpSync(position, name, mask, member_mask, ended, sources, width))


def require_full_warp(frame: CallFrame, mask: LaneMask, position: SourcePosition) -> np.int32:
    """Raise an error unless all lanes of a warp reach an operation of the full warp, such as a matrix product."""
    batch = frame.batch
    if batch.scheduler is not None:
        mask = batch.scheduler.wait_for_lanes(f"full-warp operation at {position}", mask, ALL_LANES, ()).mask
    rows = mask.bits.reshape(-1, WARP)
    missing = np.flatnonzero(rows.any(axis=1, keepdims=True) & ~rows)
    if missing.size:
        lane = int(missing[0])
        exists = bool(batch.geometry.thread_mask.bits[lane])
        name = batch.describe(lane) if exists else f"lane {lane % WARP}, which the block does not have,"
        raise LaunchError(
            f"{position}: Barrier error detected. Divergent thread(s) in warp: all 32 lanes must execute this "
            f"together; {name} does not reach it.",
            position=position,
            advice="Move the operation out of the branch, and launch blocks of whole warps.",
            kind="barrier",
            thread=batch.describe(int(mask.lanes[0])) if not exists else name,
        )
    return np.int32(0)


def report_heap_call(
    frame: CallFrame, mask: LaneMask, address: PointerValue, size: Any, position: SourcePosition
) -> None:
    """Notify the observer of an allocation on the heap, or of a free.

    Parameters
    ----------
    frame : CallFrame
        The running call.
    mask : LaneMask
        The lanes that call malloc or free.
    address : PointerValue
        The address of the allocation, for each lane.
    size : scalar, array or None
        The number of bytes allocated; None for a call of free.
    """
    if frame.batch.observer is not None:
        for part, lanes in address.split_by_memory(mask):
            frame.batch.observer.heap_call(frame.batch, HeapCall(position, part.memory, part.offset, size, lanes))


def read_clock(frame: CallFrame, dtype: np.dtype[Any]) -> Any:
    """Return a clock value that increases with each call: the number of loop iterations and of calls."""
    frame.batch.clock_calls += 1
    return dtype.type(frame.batch.rounds + frame.batch.clock_calls)


def check_assertion(frame: CallFrame, mask: LaneMask, condition: Any, text: str, position: SourcePosition) -> None:
    """Execute `assert`.

    Parameters
    ----------
    frame : CallFrame
        The running call.
    mask : LaneMask
        The lanes that execute it.
    condition : bool or bool array
        The condition, one value for all lanes or one per lane.
    text : str
        The condition in the source, for the message.
    position : SourcePosition
        The position of the call.

    Raises
    ------
    LaunchError
        The condition is false in a lane; the error names the first one.
    """
    _, failed = mask.split(condition)
    if failed is not None:
        sentence = f"{{thread}} finds the assertion `{text}` false."
        raise frame.batch.thread_error(failed, position, sentence, kind="assertion")
