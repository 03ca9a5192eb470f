"""Finds masks of `__syncwarp` and of exchanges in a warp that do not name the lanes which come there."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.errors import SourcePosition
from gpu.simulator.checkers.checker import Checker
from gpu.simulator.checkers.findings import Finding
from gpu.simulator.executor.batch import BlockBatch
from gpu.simulator.executor.masks import LaneMask
from gpu.simulator.executor.observe import WarpMeeting
from gpu.warp import WARP

Array = npt.NDArray[Any]

# So often lanes may come to a `__syncwarp` before the others of their warp come to the first of them.
_MOST_WAITING = 4096

_DIVERGENT = "Divergent thread(s) in warp"


@dataclass(frozen=True)
class _Arrival:
    """A lane at a `__syncwarp`: the mask that it gives, and the lanes that were alive then, as bits."""

    position: SourcePosition
    named: int
    alive: int


class _Waiting:
    """The lanes of a warp that wait at a `__syncwarp`, and where each of them comes next.

    What branches do one after the other here goes on at the same time on a GPU: lanes may come to one `__syncwarp` from
    different places, and to several of them before others come to the first.
    """

    def __init__(self) -> None:
        self._arrivals: list[deque[_Arrival]] = [deque() for _ in range(WARP)]

    @property
    def lanes(self) -> int:
        """The lanes that wait, as bits."""
        return sum(1 << lane for lane, arrivals in enumerate(self._arrivals) if arrivals)

    @property
    def is_too_long(self) -> bool:
        """Whether lanes have come so often that the others will hardly follow."""
        return any(len(arrivals) > _MOST_WAITING for arrivals in self._arrivals)

    def come(self, lane: int, arrival: _Arrival) -> None:
        """Let a lane come to a `__syncwarp`."""
        self._arrivals[lane].append(arrival)

    def let_pass(self, alive: int) -> None:
        """Let those go on of whom all that they name, and that are alive, wait under the same mask."""
        passed = True
        while passed:
            passed = False
            for arrivals in self._arrivals:
                if arrivals and not self.missing(arrivals[0], alive):
                    for lane in _numbers(arrivals[0].named & self.lanes):
                        self._arrivals[lane].popleft()
                    passed = True

    def missing(self, arrival: _Arrival, alive: int) -> int:
        """Return the lanes that do not come to where a lane waits."""
        here = sum(
            1 << lane for lane, theirs in enumerate(self._arrivals) if theirs and theirs[0].named == arrival.named
        )
        return arrival.named & alive & ~here

    def left(self) -> list[tuple[int, _Arrival]]:
        """Return the lanes that wait in vain, each with the place where it does."""
        return [
            (lane, arrivals[0])
            for lane, arrivals in enumerate(self._arrivals)
            if arrivals and self.missing(arrivals[0], arrivals[0].alive)
        ]


@dataclass(frozen=True)
class _Here:
    """The lanes that come to an operation, one a row: each one's number in the batch, and sets of lanes as bits."""

    meeting: WarpMeeting
    lanes: Array
    named: Array
    active: Array
    """The lanes of its warp that are here."""
    alive: Array
    """The lanes of its warp whose threads have not ended."""

    @property
    def due(self) -> Array:
        """The lanes that it names and that are alive."""
        both: Array = self.named & self.alive
        return both

    def at(self, rows: Array) -> _Here:
        """Return some of the lanes."""
        return _Here(self.meeting, self.lanes[rows], self.named[rows], self.active[rows], self.alive[rows])


class WarpMaskChecker(Checker):
    """Finds masks that leave out a lane which calls, or name lanes which do not come, as synccheck does.

    All lanes that a mask names, but for those whose threads have ended or never were, must come with the same mask: to
    an exchange together, to a `__syncwarp` also from another place in the text. A shuffle must not read a lane that its
    mask names and that has ended, or that the block does not have.
    """

    def __init__(self) -> None:
        self._findings: dict[tuple[object, ...], Finding] = {}
        self._waiting: dict[int, _Waiting] = {}

    @property
    def findings(self) -> list[Finding]:
        """One finding for each line and kind of mistake, in the order in which they were found."""
        return list(self._findings.values())

    def warp_meets(self, batch: BlockBatch, meeting: WarpMeeting) -> None:
        active, alive = _words_at(batch, meeting)
        if not self._waiting and not isinstance(meeting.named, np.ndarray):
            # Mostly one mask names all lanes of each warp, and these are here.
            named = int(meeting.named)
            if ((active == named) & (alive & named == named) | (active == 0)).all():
                return
        here = _lanes_of(batch, meeting, active, alive)
        apart = here.due != here.active
        if meeting.sources is not None:
            self._check_sources(batch, here, meeting.sources)
        if not apart.any() and not self._waiting:
            return
        # One lane's mask may be just those that are here, and another's still be another.
        warps = here.lanes // WARP
        self._check_masks(batch, here.at(np.flatnonzero(np.isin(warps, warps[apart]))))
        if meeting.name == "__syncwarp":
            self._wait(batch, here, apart)

    def barrier(self, batch: BlockBatch, position: SourcePosition, mask: LaneMask) -> None:
        if self._waiting:
            self._give_up(batch, [warp for warp in self._waiting if mask.bits[warp * WARP : (warp + 1) * WARP].any()])

    def batch_ends(self, batch: BlockBatch) -> None:
        self._give_up(batch, list(self._waiting))

    def _check_masks(self, batch: BlockBatch, here: _Here) -> None:
        """Look at the lanes of warps in which a mask is not just those that are here."""
        own = (here.named >> here.lanes % WARP) & 1
        if (rows := np.flatnonzero(own == 0)).size:
            self._report(batch, here.at(rows), "Invalid arguments", "which leaves the lane itself out")
        here = here.at(np.flatnonzero(own))
        missing = here.due & ~here.active
        if here.meeting.name != "__syncwarp" and (rows := np.flatnonzero(missing)).size:
            self._report(batch, here.at(rows), _DIVERGENT, _not_coming(missing[rows[0]]))
        others = here.due & here.active & ~_giving_the_same(here)
        if (rows := np.flatnonzero(others)).size:
            what = f"which names {_spelled(others[rows[0]])}, here with another mask"
            self._report(batch, here.at(rows), _DIVERGENT, what)

    def _check_sources(self, batch: BlockBatch, here: _Here, sources: Array) -> None:
        """Look at lanes that read what no thread gives."""
        read = np.int64(1) << sources.reshape(-1)[here.lanes]
        if (rows := np.flatnonzero(read & here.named & ~here.alive)).size:
            source = _numbers(read[rows[0]])[0]
            exists = batch.geometry.everyone.bits[here.lanes[rows[0]] // WARP * WARP + source]
            what = f"reads lane {source}, which the mask names and which "
            self._report(
                batch, here.at(rows), _DIVERGENT, what + ("has exited" if exists else "the block does not have")
            )

    def _wait(self, batch: BlockBatch, here: _Here, apart: Array) -> None:
        """Let lanes wait where some that they name are elsewhere, and pass where these have come by now."""
        warps = here.lanes // WARP
        concerned = apart & (here.due & ~here.active != 0) | np.isin(warps, list(self._waiting))
        for warp in np.unique(warps[concerned]).tolist():
            waiting = self._waiting.setdefault(warp, _Waiting())
            alive = 0
            for row in np.flatnonzero(warps == warp).tolist():
                alive = int(here.alive[row])
                arrival = _Arrival(here.meeting.position, int(here.named[row]), alive)
                waiting.come(int(here.lanes[row]) % WARP, arrival)
            waiting.let_pass(alive)
            if not waiting.lanes:
                del self._waiting[warp]
            elif waiting.is_too_long:
                self._give_up(batch, [warp])

    def _give_up(self, batch: BlockBatch, warps: list[int]) -> None:
        """Report the lanes of some warps for which nobody comes any more."""
        for warp in warps:
            waiting = self._waiting.pop(warp)
            for lane, arrival in waiting.left():
                what = _not_coming(waiting.missing(arrival, arrival.alive))
                self._add(batch, _DIVERGENT, arrival.position, "__syncwarp", warp * WARP + lane, arrival.named, what, 1)

    def _report(self, batch: BlockBatch, here: _Here, error: str, what: str) -> None:
        """Report lanes of which `what` says of the first what is wrong."""
        meeting, lane, named = here.meeting, int(here.lanes[0]), int(here.named[0])
        self._add(batch, error, meeting.position, meeting.name, lane, named, what, here.lanes.size)

    def _add(
        self,
        batch: BlockBatch,
        error: str,
        position: SourcePosition,
        name: str,
        lane: int,
        named: int,
        what: str,
        count: int,
    ) -> None:
        key = (error, position.file, position.line)
        if key in self._findings:
            known = self._findings[key]
            self._findings[key] = replace(known, count=known.count + count)
            return
        who = batch.describe(lane)
        message = (
            f"Barrier error detected. {error}: {name} at {PurePath(position.file).name}:{position.line} by {who}, lane "
            f"{lane % WARP} of its warp, with the mask 0x{named:x}, {what}"
        )
        self._findings[key] = Finding("warp-mask", message, (position,), (who,), count)


def _words_at(batch: BlockBatch, meeting: WarpMeeting) -> tuple[Array, Array]:
    """Return of each warp the lanes that are here, and those whose threads have not ended, as bits."""
    everyone, ended = batch.geometry.everyone.bits, meeting.ended
    return _words(meeting.mask.bits), _words(everyone if ended is None else everyone & ~ended.bits)


def _lanes_of(batch: BlockBatch, meeting: WarpMeeting, active: Array, alive: Array) -> _Here:
    lanes = meeting.mask.lanes
    warps = lanes // WARP
    named = np.broadcast_to(meeting.named, batch.geometry.lanes)[lanes].astype(np.uint32).astype(np.int64)
    return _Here(meeting, lanes, named, active[warps], alive[warps])


def _giving_the_same(here: _Here) -> Array:
    """Return for each lane those of its warp, as bits, that are here and give the same mask."""
    _, group = np.unique((here.lanes // WARP << WARP) | here.named, return_inverse=True)
    together = np.zeros(group.size, np.int64)
    np.bitwise_or.at(together, group, np.int64(1) << here.lanes % WARP)
    same: Array = together[group]
    return same


def _words(bits: Array) -> Array:
    """Return the lanes of each warp as the bits of one number."""
    words: Array = np.packbits(bits.reshape(-1, WARP), axis=1, bitorder="little").view("<u4").reshape(-1)
    return words.astype(np.int64)


def _not_coming(missing: Any) -> str:
    return f"which names {_spelled(missing)}, not coming there"


def _numbers(bits: Any) -> list[int]:
    return [lane for lane in range(WARP) if int(bits) >> lane & 1]


def _spelled(bits: Any) -> str:
    """Name lanes: "lane 3", "lanes 1, 4 and 8-31"."""
    runs: list[list[int]] = []
    for lane in _numbers(bits):
        if runs and runs[-1][-1] == lane - 1:
            runs[-1].append(lane)
        else:
            runs.append([lane])
    texts = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    spelled = texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
    return f"lane{'' if len(_numbers(bits)) == 1 else 's'} {spelled}"
