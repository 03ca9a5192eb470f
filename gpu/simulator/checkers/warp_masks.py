"""Checker for masks of `__syncwarp` and of warp exchanges that do not match the lanes that call them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.base.errors import SourcePosition
from gpu.base.findings import Finding
from gpu.base.lane_mask import LaneMask
from gpu.base.warp import WARP
from gpu.simulator.checkers.checker import Checker
from gpu.simulator.executor.state.batch import BlockBatch
from gpu.simulator.executor.state.observer import WarpSync

Array = npt.NDArray[Any]

# The most `__syncwarp` calls of a lane that can wait for other lanes of its warp.
_MAX_WAITING_CALLS = 4096

_DIVERGENT, _INVALID = "Divergent thread(s) in warp", "Invalid arguments"
_SHUFFLE = "__shfl_sync"
_WIDTHS = (1, 2, 4, 8, 16, 32)
_ALL_LANES = (1 << WARP) - 1


@dataclass(frozen=True)
class _Arrival:
    """A lane's call of a function with a mask: the mask argument, and the lanes that had not exited, as bits."""

    position: SourcePosition
    member_mask: int
    alive_lanes: int


class _WaitingLanes:
    """The lanes of a warp that wait at a `__syncwarp`, each with a queue of its calls.

    The simulator executes branches one after the other; on a GPU they may run at the same time. So lanes may arrive at
    one `__syncwarp` from different source positions, and at several of them before others arrive at the first.
    """

    def __init__(self) -> None:
        self._arrivals: list[deque[_Arrival]] = [deque() for _ in range(WARP)]

    @property
    def lanes(self) -> int:
        """The waiting lanes, as bits."""
        return sum(1 << lane for lane, arrivals in enumerate(self._arrivals) if arrivals)

    @property
    def exceeds_limit(self) -> bool:
        """Whether a lane has more waiting calls than the limit; its warp then counts as stuck."""
        return any(len(arrivals) > _MAX_WAITING_CALLS for arrivals in self._arrivals)

    def arrive(self, lane: int, arrival: _Arrival) -> None:
        """Add a call of a lane."""
        self._arrivals[lane].append(arrival)

    def release(self, alive: int) -> None:
        """Release lanes if all lanes of their mask that have not exited wait with the same mask."""
        passed = True
        while passed:
            passed = False
            for arrivals in self._arrivals:
                if arrivals and not self.find_missing_lanes(arrivals[0], alive):
                    for lane in _lane_numbers(arrivals[0].member_mask & self.lanes):
                        self._arrivals[lane].popleft()
                    passed = True

    def find_missing_lanes(self, arrival: _Arrival, alive: int) -> int:
        """Return the lanes in a call's mask that have neither exited nor arrived with the same mask, as bits."""
        present = sum(
            1 << lane
            for lane, theirs in enumerate(self._arrivals)
            if theirs and theirs[0].member_mask == arrival.member_mask
        )
        return arrival.member_mask & alive & ~present

    def find_stuck_lanes(self) -> list[tuple[int, _Arrival]]:
        """Return the lanes that still wait for others, each with its call."""
        return [
            (lane, arrivals[0])
            for lane, arrivals in enumerate(self._arrivals)
            if arrivals and self.find_missing_lanes(arrivals[0], arrivals[0].alive_lanes)
        ]


@dataclass(frozen=True)
class _Callers:
    """The lanes that call an operation, one per row: the lane's number in the batch, and sets of lanes as bits."""

    sync: WarpSync
    lanes: Array
    member_masks: Array
    """The mask argument."""
    active_lanes: Array
    """The lanes of the warp that call the operation now."""
    alive_lanes: Array
    """The lanes of the warp that have not exited."""

    @property
    def expected(self) -> Array:
        """The lanes in the mask argument that have not exited."""
        both: Array = self.member_masks & self.alive_lanes
        return both

    def select(self, rows: Array) -> _Callers:
        """Return some of the rows."""
        return _Callers(
            self.sync, self.lanes[rows], self.member_masks[rows], self.active_lanes[rows], self.alive_lanes[rows]
        )


class WarpMaskChecker(Checker):
    """Find masks that omit a calling lane or name lanes that do not arrive, as synccheck does.

    All lanes that a mask names, except those that have exited or do not exist, must arrive with the same mask: at
    an exchange together, at a `__syncwarp` possibly from another source position. A shuffle must not read a lane
    that its mask names but that has exited or does not exist, and a `__shfl_sync`, which names its source, none
    outside its mask. The other shuffles do so at the edge of a group of lanes, where the result is usually not
    used. A shuffle's width must be a power of two.
    """

    def __init__(self) -> None:
        super().__init__()
        self._waiting: dict[int, _WaitingLanes] = {}

    def warp_sync(self, batch: BlockBatch, sync: WarpSync) -> None:
        active, alive = _find_active_and_alive(batch, sync)
        if not self._waiting and not isinstance(sync.member_mask, np.ndarray):
            # The usual case: one mask names all lanes of each warp, and all of them call.
            named = int(sync.member_mask)
            reads_named = sync.name != _SHUFFLE or named == _ALL_LANES
            if (
                reads_named
                and _is_valid_width(sync.width)
                and ((active == named) & (alive & named == named) | (active == 0)).all()
            ):
                return
        callers = _build_callers(batch, sync, active, alive)
        mismatched = callers.expected != callers.active_lanes
        if sync.sources is not None:
            self._check_sources(batch, callers, sync.sources)
            self._check_width(batch, callers)
        if not mismatched.any() and not self._waiting:
            return
        # The masks of a warp's lanes can differ, so if one does not match its callers, all of the warp are checked.
        warps = callers.lanes // WARP
        self._check_masks(batch, callers.select(np.flatnonzero(np.isin(warps, warps[mismatched]))))
        if sync.name == "__syncwarp":
            self._record_waiting(batch, callers, mismatched)

    def barrier(self, batch: BlockBatch, position: SourcePosition, mask: LaneMask) -> None:
        if self._waiting:
            self._report_stuck_lanes(
                batch, [warp for warp in self._waiting if mask.bits[warp * WARP : (warp + 1) * WARP].any()]
            )

    def batch_ends(self, batch: BlockBatch) -> None:
        self._report_stuck_lanes(batch, list(self._waiting))

    def _check_masks(self, batch: BlockBatch, callers: _Callers) -> None:
        """Check the lanes of warps in which a mask differs from the callers."""
        names_itself = (callers.member_masks >> callers.lanes % WARP) & 1
        if (rows := np.flatnonzero(names_itself == 0)).size:
            self._report(batch, callers.select(rows), _INVALID, "which does not name the lane itself")
        callers = callers.select(np.flatnonzero(names_itself))
        missing = callers.expected & ~callers.active_lanes
        if callers.sync.name != "__syncwarp" and (rows := np.flatnonzero(missing)).size:
            self._report(batch, callers.select(rows), _DIVERGENT, _format_missing_lanes(missing[rows[0]]))
        others = callers.expected & callers.active_lanes & ~_lanes_with_same_mask(callers)
        if (rows := np.flatnonzero(others)).size:
            cause = f"which names {_format_lanes(others[rows[0]])}, calling with another mask"
            self._report(batch, callers.select(rows), _DIVERGENT, cause)

    def _check_sources(self, batch: BlockBatch, callers: _Callers, sources: Array) -> None:
        """Check for lanes that read a lane that has exited or does not exist."""
        read = np.int64(1) << sources.reshape(-1)[callers.lanes]
        if (rows := np.flatnonzero(read & callers.member_masks & ~callers.alive_lanes)).size:
            source = _lane_numbers(read[rows[0]])[0]
            exists = batch.geometry.thread_mask.bits[callers.lanes[rows[0]] // WARP * WARP + source]
            cause = f"reads lane {source}, which the mask names but which "
            self._report(
                batch, callers.select(rows), _DIVERGENT, cause + ("has exited" if exists else "the block does not have")
            )
        if callers.sync.name == _SHUFFLE and (rows := np.flatnonzero(read & ~callers.member_masks)).size:
            source = _lane_numbers(read[rows[0]])[0]
            cause = f"reads lane {source}, which the mask does not name: its value is undefined"
            self._report(batch, callers.select(rows), _INVALID, cause)

    def _check_width(self, batch: BlockBatch, callers: _Callers) -> None:
        widths = np.broadcast_to(callers.sync.width, batch.geometry.lanes)[callers.lanes]
        if (rows := np.flatnonzero(~np.isin(widths, _WIDTHS))).size:
            cause = (
                f"with the width {widths[rows[0]]}, which is not a power of two up to {WARP}: its value is undefined"
            )
            self._report(batch, callers.select(rows), _INVALID, cause)

    def _record_waiting(self, batch: BlockBatch, callers: _Callers, mismatched: Array) -> None:
        """Add callers to the waiting lanes if lanes of their mask are missing, and release those that are complete."""
        warps = callers.lanes // WARP
        concerned = mismatched & (callers.expected & ~callers.active_lanes != 0) | np.isin(warps, list(self._waiting))
        for warp in np.unique(warps[concerned]).tolist():
            waiting = self._waiting.setdefault(warp, _WaitingLanes())
            alive = 0
            for row in np.flatnonzero(warps == warp).tolist():
                alive = int(callers.alive_lanes[row])
                arrival = _Arrival(callers.sync.position, int(callers.member_masks[row]), alive)
                waiting.arrive(int(callers.lanes[row]) % WARP, arrival)
            waiting.release(alive)
            if not waiting.lanes:
                del self._waiting[warp]
            elif waiting.exceeds_limit:
                self._report_stuck_lanes(batch, [warp])

    def _report_stuck_lanes(self, batch: BlockBatch, warps: list[int]) -> None:
        """Report the waiting lanes of some warps and stop waiting for the missing ones."""
        for warp in warps:
            waiting = self._waiting.pop(warp)
            for lane, arrival in waiting.find_stuck_lanes():
                cause = _format_missing_lanes(waiting.find_missing_lanes(arrival, arrival.alive_lanes))
                self._add_finding(batch, _DIVERGENT, "__syncwarp", warp * WARP + lane, arrival, cause)

    def _report(self, batch: BlockBatch, callers: _Callers, error: str, cause: str) -> None:
        """Report callers in one finding; `cause` describes the error of the first."""
        sync = callers.sync
        first = _Arrival(sync.position, int(callers.member_masks[0]), int(callers.alive_lanes[0]))
        self._add_finding(batch, error, sync.name, int(callers.lanes[0]), first, cause, callers.lanes.size)

    def _add_finding(
        self, batch: BlockBatch, error: str, name: str, lane: int, arrival: _Arrival, cause: str, count: int = 1
    ) -> None:
        position = arrival.position
        key = (error, position.line_key)
        if self._count_again(key, count):
            return
        thread = batch.describe(lane)
        message = (
            f"Barrier error detected. {error}: {name} at {position.short_text} by {thread}, "
            f"lane {lane % WARP} of its warp, with the mask 0x{arrival.member_mask:x}, {cause}"
        )
        self._findings[key] = Finding("warp-mask", message, (position,), (thread,), count)


def _find_active_and_alive(batch: BlockBatch, sync: WarpSync) -> tuple[Array, Array]:
    """Return for each warp the calling lanes, and the lanes that have not exited, as bits."""
    threads, exited = batch.geometry.thread_mask.bits, sync.exited_mask
    return _warp_bits(sync.mask.bits), _warp_bits(threads if exited is None else threads & ~exited.bits)


def _is_valid_width(width: Any) -> bool:
    """Return whether a shuffle has one width for all lanes, and it is valid."""
    return not isinstance(width, np.ndarray) and int(width) in _WIDTHS


def _build_callers(batch: BlockBatch, sync: WarpSync, active: Array, alive: Array) -> _Callers:
    lanes = sync.mask.lanes
    warps = lanes // WARP
    named = np.broadcast_to(sync.member_mask, batch.geometry.lanes)[lanes].astype(np.uint32).astype(np.int64)
    return _Callers(sync, lanes, named, active[warps], alive[warps])


def _lanes_with_same_mask(callers: _Callers) -> Array:
    """Return for each caller the calling lanes of its warp with the same mask, as bits."""
    _, group = np.unique((callers.lanes // WARP << WARP) | callers.member_masks, return_inverse=True)
    together = np.zeros(group.size, np.int64)
    np.bitwise_or.at(together, group, np.int64(1) << callers.lanes % WARP)
    same: Array = together[group]
    return same


def _warp_bits(bits: Array) -> Array:
    """Return the lanes of each warp as a bit mask."""
    words: Array = np.packbits(bits.reshape(-1, WARP), axis=1, bitorder="little").view("<u4").reshape(-1)
    return words.astype(np.int64)


def _format_missing_lanes(missing: Any) -> str:
    return f"which names {_format_lanes(missing)}, but these do not arrive"


def _lane_numbers(bits: Any) -> list[int]:
    return [lane for lane in range(WARP) if int(bits) >> lane & 1]


def _format_lanes(bits: Any) -> str:
    """Return the names of lanes, such as "lane 3" or "lanes 1, 4 and 8-31"."""
    runs: list[list[int]] = []
    for lane in _lane_numbers(bits):
        if runs and runs[-1][-1] == lane - 1:
            runs[-1].append(lane)
        else:
            runs.append([lane])
    texts = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    listed = texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
    return f"lane{'' if len(_lane_numbers(bits)) == 1 else 's'} {listed}"
