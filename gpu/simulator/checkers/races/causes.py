"""Why two accesses race although their threads synchronize through memory, such as by a flag or a lock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from gpu.base.warp import WARP
from gpu.simulator.checkers.races.advice import RaceCause, RaceScope
from gpu.simulator.checkers.races.checked_access import CheckedAccess
from gpu.simulator.checkers.races.conflicts import SiteTable, Strength, find_strength, is_narrow
from gpu.simulator.checkers.races.happens_before import HappensBefore
from gpu.simulator.checkers.races.shadow import EVENT
from gpu.simulator.checkers.races.tickets import Tickets
from gpu.simulator.executor.launches.trials import BUFFERED
from gpu.simulator.executor.state.memory import AccessSite

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class RacingPair:
    """An access of a lane, and an earlier one of another thread with which it races.

    Parameters
    ----------
    checked : CheckedAccess
        The access.
    lane : int
        The lane of the running batch that performs it.
    earlier : AccessSite
        The earlier access in the source.
    thread, event : int
        Its thread and its event.
    """

    checked: CheckedAccess
    lane: int
    earlier: AccessSite
    thread: int
    event: int


class CauseFinder:
    """Finds why the accesses of a pair are unordered.

    Parameters
    ----------
    order : HappensBefore
        What is ordered so far.
    sites : SiteTable
        The accesses of the launch in the source.
    site_of_event : array of int
        The number of the site of each event.
    tickets : Tickets
        The atomic operations by which the blocks of the launch take tickets.
    threads : array of int
        The thread of each lane.
    flags : sequence of two arrays of int64
        For each lane, the records of the writes of the last two flags that it has read.
    """

    def __init__(
        self,
        order: HappensBefore,
        sites: SiteTable,
        site_of_event: Array,
        tickets: Tickets,
        threads: Array,
        flags: Sequence[Array],
    ) -> None:
        self._order, self._sites, self._site_of_event = order, sites, site_of_event
        self._tickets, self._threads, self._flags = tickets, threads, flags

    def find_update_scope(self, pair: RacingPair) -> RaceScope | None:
        """Return "update" or "claim" if several lanes read and write the element of a lane, so that no barrier fits."""
        checked = pair.checked
        if checked.access.site.action != "write":
            return None
        writers = checked.lanes[checked.cells == checked.cells[checked.lanes == pair.lane][0]]
        if writers.size == 1:
            return None
        if pair.earlier.position.line_key == checked.access.site.position.line_key:
            return "update"
        return "claim" if pair.thread in self._threads[writers] else None

    def find_cause(self, pair: RacingPair) -> RaceCause | None:
        """Return why synchronization through memory does not order the accesses; None if there is none."""
        checked, earlier, event = pair.checked, pair.earlier, pair.event
        synchronization, site = self._order.synchronization, checked.access.site
        both_strong = Strength.VOLATILE not in (find_strength(site), find_strength(earlier))
        if site.is_strong and earlier.is_strong and both_strong and (is_narrow(site) or is_narrow(earlier)):
            return "narrow access"
        numbers = self._site_of_event[checked.event], self._site_of_event[event]
        if site.is_strong and earlier.is_strong and self._sites.differ_in_size(*numbers):
            return "mixed sizes"
        cause = synchronization.find_cause(pair.lane, pair.thread, event)
        if cause is None and (written := self._find_flag_time(pair)):
            if written > event:
                flag = self._sites.sites[int(self._site_of_event[written])]
                cause = "relaxed write" if flag.has_relaxed_order else "unfenced write"
            else:
                cause = "early release" if earlier.action == "read" else "early flag"
        per_block = checked.batch.geometry.lanes_per_block
        block, other = (int(each) // per_block for each in (self._threads[pair.lane], pair.thread))
        is_released = synchronization.find_flag_writer(pair.lane, pair.thread, event) is not None
        if cause is None and not is_released and self._tickets.follow(block, other, event):
            cause = "unfenced ticket"
        if cause is None and (operation := self._order.find_relaxed_operation(pair.lane, pair.thread, event)):
            cause = "relaxed arrival" if operation == "arrival" else "relaxed wait"
        return "late write" if cause is None and checked.batch.trial_order == BUFFERED else cause

    def find_flag_thread(self, pair: RacingPair) -> tuple[RaceCause, int, str] | None:
        """Return that a third thread writes or reads the flag, this thread, and the barrier that is missing."""
        synchronization, mine = self._order.synchronization, int(self._threads[pair.lane])
        writer = synchronization.find_flag_writer(pair.lane, pair.thread, pair.event)
        if writer is not None:
            return "unordered flag write", writer, _choose_barrier(pair.thread, writer)
        reader = synchronization.find_flag_reader(pair.lane, pair.thread, pair.event)
        return None if reader is None else ("unordered flag read", reader, _choose_barrier(mine, reader))

    def _find_flag_time(self, pair: RacingPair) -> int:
        """Return when a flag that a lane has read was written by a thread, or for it; 0 if it was not.

        Another thread of its block writes the flag for it after a barrier that follows the event. Of the last two flags
        the one that was written last counts.
        """
        times = [0]
        for flags in self._flags:
            record = int(flags[pair.lane])
            writer, written = (record >> 32) - 1, record & EVENT
            if writer == pair.thread or self._order.are_separated_by_barrier(pair.thread, pair.event, writer, written):
                times.append(written)
        return max(times)


def _choose_barrier(thread: int, other: int) -> str:
    """Return a barrier for two threads of a block."""
    if thread // WARP != other // WARP:
        return "__syncthreads()"
    return "__syncwarp(), or a __syncthreads() if other warps access the data too,"
