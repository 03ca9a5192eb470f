"""Checker for data races: two threads access a byte, at least one writes, and neither happens before the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from gpu.base.errors import SourcePosition
from gpu.base.findings import Finding
from gpu.base.lane_mask import LaneMask
from gpu.base.warp import WARP
from gpu.simulator.checkers.checker import Checker
from gpu.simulator.checkers.races import read_only
from gpu.simulator.checkers.races.advice import RaceScope, format_race_advice, format_race_cause
from gpu.simulator.checkers.races.causes import CauseFinder, RacingPair
from gpu.simulator.checkers.races.checked_access import CheckedAccess
from gpu.simulator.checkers.races.conflicts import SiteTable, Strength, find_strength, is_narrow
from gpu.simulator.checkers.races.happens_before import HappensBefore
from gpu.simulator.checkers.races.launch_tree import ArrayKey, LaunchAccesses, LaunchTree
from gpu.simulator.checkers.races.old_values import OldValues
from gpu.simulator.checkers.races.release_sequences import SCOPE_LEVELS
from gpu.simulator.checkers.races.shadow import (
    EVENT,
    LAST_THREAD,
    SEVERAL,
    Shadow,
    extract_threads,
    high_records,
    low_records,
)
from gpu.simulator.checkers.races.synchronization import SEQUENCE
from gpu.simulator.checkers.races.tickets import Tickets
from gpu.simulator.checkers.races.vector_clocks import merge_launches
from gpu.simulator.executor.launches.trials import PREEMPTED, TRIAL_SCHEDULES
from gpu.simulator.executor.state.batch import BlockBatch
from gpu.simulator.executor.state.child import ChildLaunch
from gpu.simulator.executor.state.memory import FlatMemory
from gpu.simulator.executor.state.observer import Access, PhaseChange, StaleRead, WarpSync
from gpu.simulator.ir import Scope
from gpu.simulator.ir.value_uses import ValueUse

Array = npt.NDArray[Any]
_Line = tuple[str, int]

# The number of recent accesses for which values are kept for messages: a race is usually with a recent access.
_VALUE_HISTORY_SIZE = 64


class RaceChecker(Checker):
    """Find data races in shared and global memory, within a warp, within a block and between blocks.

    A barrier orders the accesses of a block, `__syncwarp` also those of a warp, and the cluster barrier those of the
    blocks of a cluster. All other accesses are ordered as PTX's memory consistency model defines it: by releases that
    acquires observe (`synchronization.py`). `conflicts.py` defines which accesses conflict. Lanes of a warp that write
    the same value in one instruction do not race.

    For each byte, the checker records the last writer, and the lowest and the highest thread among the readers and
    among the threads with atomic operations: if any two of them are in different blocks or warps, so are these two.
    This detects every byte with a race, but not every pair of lines that race on it. The records take 40 bytes for each
    element that a kernel reads, writes and updates atomically, 16 for an element that it only reads.

    Between the start of an asynchronous copy and the wait for it, no thread may access its destination or change its
    source, including the thread that started it; at the wait it becomes an access of that thread. Conflicting accesses
    of other threads must happen before the start. The same applies to the tiles that the matrix product of a warpgroup
    reads. A bulk copy to shared memory may end before its thread waits for the mbarrier, but the wait must precede the
    accesses of that thread.

    A load through the read-only cache of data that the same launch writes is an error, whatever orders the two.

    Child launches are compared with the launches that run concurrently, as described in `LaunchTree`.

    Findings are kept across the host's launches; all other state is reset at each of them.

    Parameters
    ----------
    orders_volatile : bool
        Whether volatile data in global memory needs an order even if the launch has executed no fence.
    """

    outlives_faults = True

    def __init__(self, *, orders_volatile: bool = False) -> None:
        super().__init__()
        self._orders_volatile = orders_volatile
        self._widest_scopes: dict[tuple[tuple[_Line, ...], str], int] = {}
        self._read_only_findings: dict[tuple[_Line, ...], Finding] = {}
        self._is_child = False

    @property
    def findings(self) -> list[Finding]:
        """One finding for each kind, pair of source lines, and array, in order of detection."""
        return [*self._findings.values(), *self._read_only_findings.values()]

    def launch_begins(self, kernel: str, grid: Sequence[int], block: Sequence[int]) -> None:
        if not self._is_child:
            self._reset()
        self._is_child = False
        self._clear_records()

    def child_launched(self, batch: BlockBatch, child: ChildLaunch) -> None:
        self._order.synchronization.acquire(self._time, np.array([child.lane]))
        self._tree.add_child(child, self._order.build_clock(child.lane, self._time))

    def child_begins(self, child: ChildLaunch) -> None:
        self._store_accesses()
        self._tree.begin_child(child)
        self._is_child = True

    def launch_resumes(self, batch: BlockBatch) -> None:
        self._has_grid_barriers = not self._tree.has_children
        # All earlier accesses happen before the following ones, so no records are needed for races.
        self._tree.resume_launch(batch, self._time)
        shadows, arrays = self._shadows, self._arrays
        self._clear_records()
        if not self._tree.has_children:
            for memory, shadow in shadows.items():
                if memory.space == "global":
                    read_only.keep_records(shadow)
                    self._shadows[memory] = shadow
            self._arrays |= arrays
        self.batch_begins(batch)

    def launch_ends(self) -> None:
        self._store_accesses()
        self._clear_records()
        if not self._tree.has_children:
            self._values.clear()

    def _reset(self) -> None:
        """Reset all state for a launch by the host."""
        self._tree = LaunchTree()
        self._has_grid_barriers = False
        self._time = 1
        self._sites = SiteTable()
        self._site_of_event = np.zeros(1024, np.int32)
        self._values: dict[int, tuple[int, Any]] = {}

    def _clear_records(self) -> None:
        """Clear all records of accesses."""
        self._tickets = Tickets()
        self._has_named_barriers = False
        self._order = HappensBefore()
        self._shadows: WeakKeyDictionary[FlatMemory, Shadow] = WeakKeyDictionary()
        self._arrays: dict[tuple[int, int], tuple[Array, Shadow]] = {}
        # The sources and destinations of asynchronous copies that are still running.
        self._copy_shadows: WeakKeyDictionary[FlatMemory, Shadow] = WeakKeyDictionary()

    def _store_accesses(self) -> None:
        """Store the accesses of the running launch if other launches may run concurrently."""
        if self._tree.has_children and self._arrays:
            self._tree.store_accesses(self._batch, self._arrays, self._order.synchronization)

    def batch_begins(self, batch: BlockBatch) -> None:
        self._order.batch_begins(batch)
        self._tree.batch_begins(batch)
        self._batch = batch
        self._threads = self._order.first_thread + batch.geometry.lane_numbers
        self._own_records = high_records(self._threads), low_records(self._threads)
        self._old_values = OldValues()
        # For each lane, the record of the last write of the flag that it read last.
        self._flags = np.zeros(batch.geometry.lanes, np.int64)
        # The same for the write that it read before that one.
        self._earlier_flags = np.zeros(batch.geometry.lanes, np.int64)

    def stale_read(self, batch: BlockBatch, read: StaleRead) -> None:
        self._old_values.add(read)

    def _report_old_value(self, batch: BlockBatch, read: StaleRead) -> None:
        """Report that a thread acts on an old value, although it has read a later write of the writer."""
        write, later = read.write.site.position, read.later.site.position
        known = f"{_describe_place(read.later, read.writer)}, which the writer writes later, at {later.short_text}"
        if read.earlier is not None:
            known += f", by the read at {read.earlier.position.short_text}"
        lines = tuple(sorted(position.line_key for position in (write, read.access.site.position)))
        key = lines, read.access.memory.name
        if self._count_again(key, 1):
            return
        names = batch.describe(read.writer), batch.describe(read.lane)
        per_block = batch.geometry.lanes_per_block
        fence = "__threadfence_block" if read.writer // per_block == read.lane // per_block else "__threadfence"
        self._widest_scopes[key] = len(_SCOPES)
        self._findings[key] = Finding(
            "race",
            f"Race reported between Write access at {write.short_text} by {names[0]} and Read access at "
            f"{read.access.site.position.short_text} by {names[1]} on {_describe_place(read.access, read.lane)}: the "
            f"reader has read {known}, and may still read the old value here, as no fence separates the two "
            f"{'writes' if read.earlier is None else 'reads'}. Add a {fence}() between them.",
            (write, read.access.site.position),
            names,
        )

    def async_copy(self, batch: BlockBatch, access: Access, *, begins: bool) -> None:
        memory = access.memory
        if not isinstance(memory, FlatMemory):
            return
        if memory not in self._copy_shadows:
            blocks = batch.geometry.blocks if memory.space == "shared" else 1
            self._copy_shadows[memory] = Shadow(memory, blocks, access.size)
        shadow = self._copy_shadows[memory]
        lanes, cells = shadow.cells(batch.geometry, access)
        event = self._register_event(access) if begins else 0
        if begins:
            self._compare_copies(batch, access, event)
            # The copy may run at once, before the next barrier.
            earlier = self._get_shadow(memory, batch, access.size)
            self._compare_with_earlier(CheckedAccess(batch, access, event, earlier, self._own_records))
        shadow.get_or_create("writer" if access.site.action == "write" else "reader high")[cells] = (
            self._own_records[0][lanes] + event if begins else 0
        )

    def async_read_ends(self, batch: BlockBatch, access: Access) -> None:
        self.access(batch, access)

    def _compare_copies(self, batch: BlockBatch, access: Access, event: int) -> None:
        """Report lanes that access the destination of a running copy or change its source.

        The access may itself be the beginning of a copy.
        """
        assert isinstance(access.memory, FlatMemory)
        shadow = self._copy_shadows.get(access.memory)
        if shadow is None:
            return
        now = CheckedAccess(batch, access, event, shadow, self._own_records)
        for slot in ("writer",) if access.site.action == "read" else ("writer", "reader high"):
            records = shadow.get_or_create(slot).take(now.cells)
            hit = records.nonzero()[0]
            self._report(now, hit, extract_threads(records[hit], slot), records[hit] & EVENT)

    def phase(self, batch: BlockBatch, change: PhaseChange) -> None:
        self._has_named_barriers |= change.phase < 0
        if change.passes:
            self._order.pass_phase(change)
        else:
            self._order.arrive_at_phase(self._time, change)

    def barrier(self, batch: BlockBatch, position: SourcePosition, mask: LaneMask) -> None:
        passed = self._order.barrier(self._time, mask)
        if batch.cluster_blocks > 1:
            return  # other blocks of the cluster may access the shared memory too
        for memory in batch.shared.values():
            if memory in self._shadows:
                self._shadows[memory].clear_blocks(passed)

    def cluster_arrives(self, batch: BlockBatch, mask: LaneMask, *, is_relaxed: bool) -> None:
        self._order.cluster_arrives(self._time, mask, is_relaxed=is_relaxed)

    def cluster_passes(self, batch: BlockBatch, mask: LaneMask) -> None:
        self._order.cluster_passes(mask)

    def fence(self, batch: BlockBatch, name: str, mask: LaneMask, member_mask: Any = None) -> None:
        function, _, order = name.partition(".")
        if name == "fence.mbarrier_init":  # orders initializations of mbarriers; treated as a fence of all accesses
            self._order.fence(self._time, mask, "cluster", "release")
        elif function in _FENCE_SCOPES:
            self._order.fence(self._time, mask, _FENCE_SCOPES[function], order)

    def warp_sync(self, batch: BlockBatch, sync: WarpSync) -> None:
        if sync.name == "__syncwarp":
            self._order.warp_barrier(self._time, sync.mask, sync.member_mask, sync.exited_mask)

    def access(self, batch: BlockBatch, access: Access) -> None:
        memory, action = access.memory, access.site.action
        if memory.space not in ("global", "shared"):
            return
        assert isinstance(memory, FlatMemory)
        shadow = self._get_shadow(memory, batch, access.size)
        now = CheckedAccess(batch, access, self._register_event(access), shadow, self._own_records)
        if self._copy_shadows:
            self._compare_copies(batch, access, now.event)
        for read in self._old_values.follow(access) if self._old_values else ():
            self._report_old_value(batch, read)
        site, is_strong = access.site, access.site.is_strong
        if is_strong and not site.vector:
            shadow.note_strong_size(access.size)
        self._compare_with_earlier(now)
        self._check_read_only(now)
        if memory.space == "global" and self._tree.has_children:
            self._compare_launches(now, is_flag=is_strong)
        if action == "write":
            self._record_writers(now)
        elif action == "read":
            self._record_threads(now, "strong reader" if is_strong else "reader")
        else:
            self._record_threads(now, "narrow atomic" if is_narrow(site) else "atomic")
        self._synchronize(now)

    def _compare_with_earlier(self, checked: CheckedAccess) -> None:
        """Report lanes that race with earlier accesses of the launch."""
        site, has_mixed_sizes = checked.access.site, checked.shadow.has_mixed_sizes
        self._compare(checked, "writer")
        if site.action != "read":
            self._compare(checked, "reader high", "reader low")
        if site.action == "write" or (site.action == "atomic" and has_mixed_sizes):
            self._compare(checked, "strong reader high", "strong reader low")
        if site.action == "write" or not site.is_strong or is_narrow(site) or has_mixed_sizes:
            self._compare(checked, "atomic high", "atomic low")
        if self._sites.has_narrow_scopes:
            self._compare(checked, "narrow atomic high", "narrow atomic low")

    def _check_read_only(self, checked: CheckedAccess) -> None:
        """Report loads through the read-only cache of data that the launch writes."""
        site, shadow, cells = checked.access.site, checked.shadow, checked.cells
        assert isinstance(checked.access.memory, FlatMemory)
        is_load = site.read_only or checked.access.memory.is_texture
        if not is_load and (site.action == "read" or not read_only.has_loads(shadow)):
            return
        for indices, threads, events in read_only.find_conflicts(shadow, cells, is_load=is_load):
            earlier = self._sites.sites[int(self._site_of_event[events[0]])]
            ends = (
                (site, self._describe_thread(checked, int(self._threads[checked.lanes[indices[0]]]))),
                (earlier, self._describe_thread(checked, int(threads[0]))),
            )
            (load, reader), (write, writer) = ends if is_load else ends[::-1]
            lines = (load.position.line_key, write.position.line_key)
            if lines in self._read_only_findings:
                finding = self._read_only_findings[lines]
                self._read_only_findings[lines] = replace(finding, count=finding.count + indices.size)
                continue
            place = self._describe_element(checked, int(checked.lanes[indices[0]]))
            self._read_only_findings[lines] = read_only.build_finding(
                (load, write), (reader, writer), place, indices.size
            )
        if is_load:
            read_only.record_loads(shadow, cells, checked.high + checked.event)

    def _describe_thread(self, checked: CheckedAccess, thread: int) -> str:
        # The lanes of earlier batches have negative numbers.
        return checked.batch.describe(thread - self._order.first_thread)

    def _describe_element(self, checked: CheckedAccess, lane: int) -> str:
        return _describe_place(checked.access, lane)

    def _synchronize(self, checked: CheckedAccess) -> None:
        """Record what an access observes, releases or ends."""
        site, synchronization = checked.access.site, self._order.synchronization
        synchronization.record_access(checked.event, checked.access.mask.lanes)
        if site.is_strong:
            records = checked.high + checked.event
            if site.action != "write" and checked.access.used and site.use > ValueUse.DATA:
                # Of a flag that all lanes read, `checked` has two lanes only.
                lanes, cells = checked.shadow.all_cells(checked.batch.geometry, checked.access)
                self._observe_flags(checked.shadow, lanes, cells)
                checked.shadow.get_or_create(_LAST_STRONG)[checked.cells] = records
                is_ticket = site.action == "atomic" and site.use in (ValueUse.ADDRESS, ValueUse.BRANCH)
                if is_ticket and checked.access.memory.space == "global":
                    self._record_tickets(checked, lanes, cells)
            if site.action == "write" or not (checked.access.used and site.op in ("", "add", "or", "cas")):
                checked.shadow.get_or_create(_LAST_WRITE)[checked.cells] = records
            elif site.op == "cas" and checked.access.old is not None:
                wrote = _have_written(checked.access, checked.lanes)
                checked.shadow.get_or_create(_LAST_WRITE)[checked.cells[wrote]] = records[wrote]
                self._observe_flags(checked.shadow, checked.lanes[~wrote], checked.cells[~wrote])
            synchronization.record_strong_access(
                checked.batch,
                checked.access,
                checked.event,
                checked.shadow,
                lambda lane: self._order.take_snapshot(lane, checked.event),
            )
        elif site.action == "write":
            synchronization.record_write(checked.shadow, checked.cells)

    def _observe_flags(self, shadow: Shadow, lanes: Array, cells: Array) -> None:
        """Record who has written the flags that lanes read."""
        flags = shadow.get_or_create(_LAST_WRITE).take(cells)
        last = self._flags[lanes]
        is_new = (flags != 0) & (flags != last)
        if np.count_nonzero(is_new):
            self._earlier_flags[lanes] = np.where(is_new, last, self._earlier_flags[lanes])
            self._flags[lanes] = np.where(is_new, flags, last)

    def _record_tickets(self, checked: CheckedAccess, lanes: Array, cells: Array) -> None:
        threads, per_block = self._threads[lanes], checked.batch.geometry.lanes_per_block
        blocks = threads // per_block
        # Of consecutive lanes of a block that take tickets from one counter, the last one counts.
        ends = np.append((blocks[1:] != blocks[:-1]) | (cells[1:] != cells[:-1]), True).nonzero()[0]
        if ends.size <= _MAX_TICKETS:
            for thread, cell, block in zip(
                threads[ends].tolist(), cells[ends].tolist(), blocks[ends].tolist(), strict=True
            ):
                self._tickets.take((id(checked.shadow), cell), block, (checked.event, thread))

    def _get_shadow(self, memory: FlatMemory, batch: BlockBatch, size: int) -> Shadow:
        shadow = self._shadows.get(memory)
        if shadow is None:
            if memory.space == "shared":
                shadow = Shadow(memory, batch.geometry.blocks, size)
            else:
                # An array that is passed twice has one shadow. The reference keeps its address from being reused.
                key = _array_key(memory)
                if key not in self._arrays:
                    self._arrays[key] = memory.data, Shadow(memory, 1, size)
                    self._continue_sequences(key, self._arrays[key][1])
                _, shadow = self._arrays[key]
            self._shadows[memory] = shadow
        return shadow

    def _continue_sequences(self, key: ArrayKey, shadow: Shadow) -> None:
        """Let threads observe what concurrent launches have released in an array."""
        for past, _ in self._tree.find_concurrent_accesses() if self._tree.has_children else ():
            if key in past.arrays:
                cells, numbers = past.arrays[key].list_records(SEQUENCE, shadow.cell_size)
                self._order.synchronization.continue_sequences(
                    shadow, cells, numbers, past.synchronization, past.launch
                )

    def _register_event(self, access: Access) -> int:
        """Return an event number for an access, and store its site and values for messages."""
        event = self._time
        self._time += 1
        if event >= self._site_of_event.size:
            self._site_of_event = np.resize(self._site_of_event, 2 * event)
        self._site_of_event[event] = self._sites.find_number(access.site, access.size)
        self._values[event] = (self._order.first_thread, access.values)
        self._values.pop(event - _VALUE_HISTORY_SIZE, None)
        return event

    def _compare(self, checked: CheckedAccess, *slots: str) -> None:
        """Report the lanes that race with the records of some slots, each lane and cell once."""
        if checked.shadow.get(slots[0]) is None:
            return
        if checked.only_cell is not None and not self._may_race(checked, slots):
            return
        reported: Array | None = None
        for slot in slots:
            records = checked.view(slot)
            if slot == "writer" and self._sites.has_bulk_writes:
                indices = records.nonzero()[0]
            else:
                indices = checked.find_others(records, slot)
            if reported is not None:
                indices = np.setdiff1d(indices, reported, assume_unique=True)
            if indices.size == 0:
                continue
            records = records[indices]
            lanes = checked.lanes[indices]
            threads = extract_threads(records, slot)
            if slot == "writer":
                threads = self._other_writer(checked, indices, lanes, records, threads)
            events = records & EVENT
            races = threads != self._threads[lanes]
            if self._sites.has_bulk_writes and slot == "writer" and checked.access.memory.space == "shared":
                # An mbarrier orders a bulk copy before what follows a wait, not before what follows its start.
                races |= self._sites.properties["bulk"][self._site_of_event[events]]
            if races.any():
                different = races.nonzero()[0]
                races[different] = self._find_races(checked, indices[different], threads[different], events[different])
                self._report(checked, indices[races], threads[races], events[races])
                reported = indices[races] if reported is None else np.union1d(reported, indices[races])

    def _may_race(self, checked: CheckedAccess, slots: Sequence[str]) -> bool:
        """Return whether an access of one cell may race with the records of slots; False is certain.

        Most accesses for synchronization are those of one thread, for which this costs less than arrays do.
        """
        for slot in slots:
            record = int(checked.shadow.get_or_create(slot)[checked.only_cell])
            if not record:
                return False
            event, thread = record & EVENT, (record >> 32) - 1
            thread = LAST_THREAD - thread if slot.endswith("low") else thread
            if record & SEVERAL or self._sites.has_bulk_writes:
                return True
            for lane in checked.lanes.tolist():
                if thread != self._order.first_thread + lane and self._conflicts(checked, lane, thread, event):
                    return True
        return False

    def _conflicts(self, checked: CheckedAccess, lane: int, thread: int, event: int) -> bool:
        """Return whether an access of a lane may race with an earlier event of another thread; False is certain."""
        if find_strength(checked.access.site) >= Strength.ORDERED:
            own, number = self._site_of_event[checked.event], self._site_of_event[event]
            strength = int(self._sites.properties["strength"][number])
            theirs, per_block = thread - self._order.first_thread, self._batch.geometry.lanes_per_block
            includes_both = not self._sites.has_narrow_scopes or theirs // per_block == lane // per_block
            if strength >= Strength.ORDERED and includes_both and not self._sites.differ_in_size(own, number):
                return False
        return not self._order.is_known(lane, thread, event)

    def _find_races(self, checked: CheckedAccess, indices: Array, threads: Array, events: Array) -> Array:
        """Return whether accesses of other threads conflict with the current one and are not ordered before it.

        Parameters
        ----------
        checked : CheckedAccess
            The current access.
        indices : array of int
            Indices of elements of `checked.lanes`.
        threads, events : array of int
            Thread and event of the earlier access, one for each index.
        """
        site, lanes, numbers = checked.access.site, checked.lanes[indices], self._site_of_event[events]
        synchronization = self._order.synchronization
        races: Array = np.ones(indices.size, bool)
        if site.is_strong:
            levels = synchronization.find_levels(lanes, threads) if self._sites.has_narrow_scopes else None
            races = self._find_conflicts(checked, events, levels)
        rest = races.nonzero()[0]
        if rest.size:
            are_strong = self._sites.are_strong(numbers[rest])
            races[rest] = ~self._order.are_ordered_before(
                lanes[rest], threads[rest], events[rest], is_strong=site.is_strong, are_strong=are_strong
            )
            rest = rest[races[rest] & are_strong & ~self._sites.properties["reads"][numbers[rest]]]
            if rest.size:
                races[rest] = ~self._are_observed(checked, indices[rest], threads[rest], events[rest])
        return races

    def _find_conflicts(self, checked: CheckedAccess, events: Array, levels: Array | None) -> Array:
        """Return whether a strong access conflicts with earlier ones; levels as of `SiteTable.find_conflicts`."""
        # Without a fence and without a wait for a flag, a kernel does not mean to order its volatile data.
        is_ordering = self._orders_volatile or self._order.synchronization.has_fences or self._sites.has_waits
        if checked.access.memory.space == "global":
            flag_use = ValueUse.ADDRESS if is_ordering else ValueUse.DATA
        else:
            flag_use = ValueUse.WAIT
        number = int(self._site_of_event[checked.event])
        return self._sites.find_conflicts(number, self._site_of_event[events], levels, flag_use)

    def _are_observed(self, checked: CheckedAccess, indices: Array, threads: Array, events: Array) -> Array:
        """Return whether a strong read that is ordered before the current access has observed earlier strong writes."""
        lanes, cells = checked.lanes[indices], checked.cells[indices]
        observed: Array = self._flags[lanes] == high_records(threads) + events
        for slot in (_LAST_STRONG, "strong reader high", "strong reader low"):
            slots = checked.shadow.get(slot)
            if slots is None:
                continue
            records = slots.take(cells)
            readers, times = extract_threads(records, slot), records & EVENT
            # The lanes of an instruction execute its atomic operations in order.
            later = ((records != 0) & ((times > events) | ((times == events) & (readers > threads)))).nonzero()[0]
            if later.size:
                readers, times = readers[later], times[later]
                observed[later] |= (readers == self._threads[lanes[later]]) | self._order.are_ordered_before(
                    lanes[later],
                    readers,
                    times,
                    is_strong=checked.access.site.is_strong,
                    are_strong=np.ones(later.size, bool),
                )
        return observed

    def _compare_launches(self, checked: CheckedAccess, *, is_flag: bool) -> None:
        """Report the lanes that race with accesses of concurrent launches."""
        assert isinstance(checked.access.memory, FlatMemory)
        action, key = checked.access.site.action, _array_key(checked.access.memory)
        excluded = ("strong", "atomic") if action == "read" else ("strong",)
        slots = [slot for slot in _CONFLICTS[action] if not (is_flag and slot.startswith(excluded))]
        for past, seen in self._tree.find_concurrent_accesses():
            if key not in past.arrays or not past.arrays[key].may_contain(checked.cells, checked.shadow.cell_size):
                continue
            reported = np.zeros(checked.cells.size, bool)
            for slot in slots:
                at, records = past.arrays[key].find_records(slot, checked.cells, checked.shadow.cell_size)
                if not at.size:
                    continue
                threads, events = extract_threads(records, slot), records & EVENT
                races = ~reported[at]
                if seen is not None:
                    races &= ~seen.includes(threads, events)
                are_strong = self._sites.are_strong(self._site_of_event[events])
                if is_flag and action == "read":
                    races &= ~are_strong
                elif is_flag:
                    races &= self._find_conflicts(checked, events, None)
                rest = races.nonzero()[0]
                if rest.size:
                    races[rest] = ~self._have_acquired(
                        checked.lanes[at[rest]],
                        past,
                        threads[rest],
                        events[rest],
                        is_strong=is_flag,
                        are_strong=are_strong[rest],
                    )
                    if is_flag and action != "read":
                        races[rest] &= ~(
                            are_strong[rest] & self._are_observed(checked, at[rest], threads[rest], events[rest])
                        )
                reported[at[races]] = True
                self._report(checked, at[races], threads[races], events[races], past.batch)

    def _have_acquired(
        self, lanes: Array, past: LaunchAccesses, threads: Array, events: Array, *, is_strong: bool, are_strong: Array
    ) -> Array:
        """Return whether lanes have acquired events of threads of a concurrent launch, each of which may be strong."""
        acquired: Array = np.zeros(lanes.size, bool)
        for lane in sorted(set(lanes.tolist())):
            launches = merge_launches(
                (
                    self._tree.find_acquired_events(),
                    self._order.synchronization.find_launches(lane, is_strong=is_strong),
                )
            )
            chosen = (lanes == lane).nonzero()[0]
            for launch, clock in launches.items():
                if launch == past.launch:
                    per_block = past.batch.geometry.lanes_per_block
                    acquired[chosen] |= clock.includes(threads[chosen], events[chosen], per_block)
                else:
                    acquired[chosen] |= self._tree.are_ordered(past.launch, launch, threads[chosen], events[chosen])
        return acquired & ~past.synchronization.are_unfenced(threads, events, are_strong & is_strong)

    def _other_writer(
        self, checked: CheckedAccess, indices: Array, lanes: Array, records: Array, threads: Array
    ) -> Array:
        """Return the threads; where a record has several writers and names the lane itself, return another writer."""
        others = checked.shadow.get("other writer")
        if others is None:
            return threads
        same = ((records & SEVERAL) != 0) & (threads == self._threads[lanes])
        return np.where(same, others.take(checked.cells[indices]), threads)

    def _record_threads(self, checked: CheckedAccess, slot: str) -> None:
        """Record the lowest and the highest thread of a read or an atomic operation."""
        drops = (
            self._order.has_warp_times
            or (self._order.has_barriers and checked.access.memory.space == "global")
            or self._order.synchronization.has_fences
        )
        if checked.only_cell is not None:
            self._record_thread(checked, slot + " high", -1, drops=drops)
            self._record_thread(checked, slot + " low", 0, drops=drops)
        else:
            self._record_each_thread(checked, slot, drops=drops)
        if slot == "narrow atomic":
            self._compare_with_highest(checked, slot)

    def _record_thread(self, checked: CheckedAccess, slot: str, index: int, *, drops: bool) -> None:
        """Record one of the lanes that access a cell; with `drops`, first drop a record that is ordered before it."""
        records = checked.shadow.get_or_create(slot)
        own = int((checked.low if slot.endswith("low") else checked.high)[index])
        earlier = int(records[checked.only_cell])
        if earlier and drops and earlier ^ own > EVENT:
            thread = (earlier >> 32) - 1
            thread = LAST_THREAD - thread if slot.endswith("low") else thread
            if self._order.is_ordered_before(int(checked.lanes[index]), thread, earlier & EVENT):
                earlier = 0
        records[checked.only_cell] = max(own + checked.event, earlier)

    def _record_each_thread(self, checked: CheckedAccess, slot: str, *, drops: bool) -> None:
        for name, own in ((slot + " high", checked.high), (slot + " low", checked.low)):
            merged = own + checked.event
            if checked.shadow.get(name) is not None:
                earlier = checked.view(name)
                if drops:
                    self._drop_ordered(checked, earlier, name)
                np.maximum(merged, earlier, out=merged)
            records = checked.shadow.get_or_create(name)
            if checked.span is not None:
                records[checked.span] = merged
                continue
            # If several lanes access a cell, the last assignment remains: the highest lane, or the lowest.
            if own is checked.high:
                records[checked.cells] = merged
            else:
                records[checked.cells[::-1]] = merged[::-1]

    def _compare_with_highest(self, checked: CheckedAccess, slot: str) -> None:
        """Report lanes of this instruction that race with the highest lane that accesses the same cell."""
        highest = checked.shadow.get_or_create(f"{slot} high").take(checked.cells)
        threads = extract_threads(highest, slot)
        same = (((highest & EVENT) == checked.event) & (threads != self._threads[checked.lanes])).nonzero()[0]
        if same.size:
            levels = self._order.synchronization.find_levels(checked.lanes[same], threads[same])
            same = same[levels > SCOPE_LEVELS[checked.access.site.scope]]
            self._report(checked, same, threads[same], np.full(same.size, checked.event))

    def _drop_ordered(self, checked: CheckedAccess, records: Array, slot: str) -> None:
        """Clear records that a barrier or `__syncwarp` orders before the current access of their block or warp."""
        lanes, hit = checked.lanes, checked.find_others(records, slot)
        if hit.size:
            present = records[hit]
            events = present & EVENT
            ordered = self._order.are_ordered_before(
                lanes[hit],
                extract_threads(present, slot),
                events,
                is_strong=False,
                are_strong=np.zeros(events.size, bool),
            )
            records[hit[ordered]] = 0

    def _record_writers(self, checked: CheckedAccess) -> None:
        """Record the writers, and report lanes that write the same cell in this instruction."""
        cells = checked.cells
        writers = checked.shadow.get_or_create("writer")
        mine = checked.high + checked.event
        if checked.span is not None:
            writers[checked.span] = mine
            return
        writers[cells] = mine
        if cells.size == 1 or (writers.take(cells) == mine).all():
            return
        # In reverse order the first lane remains, so that the finding names it as the earlier writer.
        writers[cells[::-1]] = mine[::-1]
        first = writers.take(cells)
        clash = (first != mine).nonzero()[0]
        threads = extract_threads(first[clash], "writer")
        lanes, firsts = checked.lanes[clash], threads - self._order.first_thread
        harmless = (lanes // WARP == firsts // WARP) & _same_values(checked.access.values, lanes, firsts)
        writers[cells] = mine
        writers[cells[clash]] |= SEVERAL
        checked.shadow.get_or_create("other writer")[cells[clash]] = threads
        racing, events = ~harmless, np.full(clash.size, checked.event)
        if checked.access.site.is_strong:
            levels = self._order.synchronization.find_levels(lanes, threads) if self._sites.has_narrow_scopes else None
            racing &= self._find_conflicts(checked, events, levels)
        self._report(checked, clash[racing], threads[racing], events[racing])

    def _report(
        self,
        checked: CheckedAccess,
        indices: Array,
        threads: Array,
        events: Array,
        other_batch: BlockBatch | None = None,
    ) -> None:
        """Add findings for races of the current access with earlier ones.

        Parameters
        ----------
        checked : _Now
            The current access.
        indices : array of int
            Indices of the racing elements of `checked.lanes`.
        threads, events : array of int
            Thread and event of the earlier access, one for each index.
        other_batch : BlockBatch or None
            A batch of the launch of the earlier accesses, if that is another launch.
        """
        if checked.shadow.cell_size < checked.access.size:
            _, first = np.unique(checked.lanes[indices], return_index=True)
            indices, threads, events = indices[first], threads[first], events[first]
        if indices.size == 0:
            return
        sites = self._site_of_event[events]
        scopes = self._find_scopes(checked, checked.lanes[indices], threads, events, other_batch)
        for number in sorted(set(sites.tolist())):
            chosen = (sites == number).nonzero()[0]
            one = chosen[scopes[chosen].argmax()]
            earlier = self._sites.sites[number]
            lines = tuple(sorted(site.position.line_key for site in (earlier, checked.access.site)))
            key = lines, checked.access.memory.name
            known = self._findings.get(key)
            count = chosen.size + (known.count if known is not None else 0)
            if known is not None and scopes[one] <= self._widest_scopes[key]:
                self._findings[key] = replace(known, count=count)
                continue
            # The advice has to order the accesses of all pairs, so the finding describes one of the widest scope.
            self._widest_scopes[key] = int(scopes[one])
            lane, thread, event = int(checked.lanes[indices[one]]), int(threads[one]), int(events[one])
            pair = RacingPair(checked, lane, earlier, thread, event)
            finding = self._build_finding(pair, _SCOPES[scopes[one]], other_batch)
            self._findings[key] = replace(finding, count=count)

    def _build_finding(self, pair: RacingPair, scope: RaceScope, other_batch: BlockBatch | None) -> Finding:
        checked, lane, earlier, thread = pair.checked, pair.lane, pair.earlier, pair.thread
        access, batch = checked.access, other_batch or checked.batch
        # The lanes of earlier batches have negative numbers.
        names = (batch.describe(thread - batch.first * batch.geometry.lanes_per_block), checked.batch.describe(lane))
        first, second = (
            f"{_NOUNS[site.action]} access at {site.position.short_text} by {name}"
            for site, name in zip((earlier, access.site), names, strict=True)
        )
        values = ", ".join(
            f"{_VERBS[site.action]} {value}"
            for site, value in (
                (earlier, self._format_value(pair.event, thread)),
                (access.site, self._format_value(checked.event, int(self._threads[lane]))),
            )
            if value is not None
        )
        return Finding(
            "race",
            f"Race reported between {first} and {second} on {self._describe_element(checked, lane)}"
            + (", in launches that run at the same time" if other_batch is not None else "")
            + (f": {values}" if values else "")
            + f". {self._format_advice(pair, scope)}"
            + _get_trial_note(checked.batch.trial_order),
            (earlier.position, access.site.position),
            names,
        )

    def _format_advice(self, pair: RacingPair, scope: RaceScope) -> str:
        checked, earlier, causes = pair.checked, pair.earlier, self._create_cause_finder()
        site, is_local = checked.access.site, scope in ("warp", "block")
        is_read_and_write = (earlier.action, site.action) in (("read", "write"), ("write", "read"))
        if scope not in ("copy", "launching block", "launches"):
            cause, other, barrier = causes.find_cause(pair), "", ""
            if cause is None and (flag := causes.find_flag_thread(pair)) is not None:
                cause, other, barrier = flag[0], self._describe_thread(checked, flag[1]), flag[2]
            if cause is not None:
                return format_race_cause(
                    cause,
                    access="atomic operation" if earlier.action == "atomic" else earlier.action,
                    fence="__threadfence_block" if is_local else "__threadfence",
                    scope="cluster" if scope == "grid" and checked.batch.cluster_blocks > 1 else "block",
                    other=other,
                    barrier=barrier,
                )
        if scope == "copy" and earlier.bulk:
            scope = "running bulk"
        elif is_local and is_read_and_write:
            scope = causes.find_update_scope(pair) or scope
        elif scope == "grid" and is_read_and_write and earlier.position.line_key == site.position.line_key:
            scope = "in place"
        return format_race_advice(
            scope,
            is_one_place=is_read_and_write and earlier.position == site.position,
            has_atomic="atomic" in (earlier.action, site.action),
            has_named_barriers=self._has_named_barriers,
            has_mbarriers=self._order.has_mbarriers,
            has_grid_barriers=self._has_grid_barriers,
        )

    def _create_cause_finder(self) -> CauseFinder:
        flags = self._flags, self._earlier_flags
        return CauseFinder(self._order, self._sites, self._site_of_event, self._tickets, self._threads, flags)

    def _find_scopes(
        self, checked: CheckedAccess, lanes: Array, threads: Array, events: Array, other_batch: BlockBatch | None
    ) -> Array:
        """Return for each lane the index in `_SCOPES` of the narrowest scope that contains the earlier thread too."""
        if other_batch is not None:
            clocks = (clock for past, clock in self._tree.find_concurrent_accesses() if past.batch is other_batch)
            clock = next(clocks, None)
            scopes = np.full(lanes.size, _SCOPES.index("launches"))
            if clock is not None:
                scopes[clock.may_include(threads, events)] = _SCOPES.index("launching block")
            return scopes
        if checked.shadow in self._copy_shadows.values():
            return np.full(lanes.size, _SCOPES.index("copy"))
        theirs, per_block = threads - self._order.first_thread, checked.batch.geometry.lanes_per_block
        beyond = "grid" if checked.access.memory.space == "global" else "cluster"
        scopes = np.where(theirs // WARP == lanes // WARP, _SCOPES.index("warp"), _SCOPES.index("block"))
        scopes[theirs // per_block != lanes // per_block] = _SCOPES.index(beyond)
        if self._sites.has_bulk_writes and checked.access.memory.space == "shared":
            scopes[self._sites.properties["bulk"][self._site_of_event[events]]] = _SCOPES.index("bulk")
        scopes[events == checked.event] = _SCOPES.index("instruction")
        return scopes

    def _format_value(self, event: int, thread: int) -> str | None:
        """Return the value that a thread read or wrote, or None if it is no longer known."""
        if event not in self._values:
            return None
        first, values = self._values[event]
        parts = values if isinstance(values, tuple) else (values,)
        thread_values = [value[thread - first] if isinstance(value, np.ndarray) else value for value in parts]
        if not all(isinstance(value, np.generic | int | float) for value in thread_values):
            return None  # the value of a pointer is not meaningful to the reader
        return f"({', '.join(map(str, thread_values))})" if isinstance(values, tuple) else str(thread_values[0])


_SCOPES: tuple[RaceScope, ...] = (
    *("instruction", "warp", "block", "cluster", "grid", "copy", "bulk", "launching block", "launches"),
)
"""Scopes of races; a barrier for the threads of one also orders those of the scopes before it."""


def _get_trial_note(order: str) -> str:
    """Return the sentence that names the order of a trial that shows a race; "" if there is none."""
    if order in TRIAL_SCHEDULES:
        return f" It occurs with --schedule {' or '.join(TRIAL_SCHEDULES)}."
    return " It occurs if a warp stops before an atomic or volatile access." if order == PREEMPTED else ""


_MAX_TICKETS = 64
"""The most tickets of an instruction: it takes one for each block and counter."""
_LAST_WRITE = "last strong write"
"""The slot with the last write of a cell by a strong access that may set a flag."""
_LAST_STRONG = "last strong"
"""The slot with the last strong read or atomic operation of a cell."""

_FENCE_SCOPES: dict[str, Scope] = {
    "__threadfence_block": "block",
    "__threadfence_cluster": "cluster",
    "__threadfence": "device",
    "__threadfence_system": "system",
}

# For each action, the slots of another launch that conflict with it.
_CONFLICTS = {
    "read": ("writer", "atomic high", "atomic low"),
    "write": (
        "writer",
        "reader high",
        "reader low",
        "atomic high",
        "atomic low",
        "strong reader high",
        "strong reader low",
    ),
    "atomic": ("writer", "reader high", "reader low"),
}
_NOUNS = {"read": "Read", "write": "Write", "atomic": "Atomic"}
_VERBS = {"read": "read", "write": "wrote", "atomic": "atomic operand"}


def _describe_place(access: Access, lane: int) -> str:
    """Return the element that a lane accesses, and its space."""
    assert isinstance(access.memory, FlatMemory)
    element = access.element[lane] if isinstance(access.element, np.ndarray) else access.element
    return f"{access.memory.describe_location(int(element), access.size)} ({access.memory.space} memory)"


def _array_key(memory: FlatMemory) -> ArrayKey:
    return (memory.data.ctypes.data, memory.data.size)


def _same_values(values: Any, lanes: Array, others: Array) -> Array:
    """Return whether each lane wrote bitwise the same value as another lane."""
    same: Array = np.ones(lanes.size, bool)
    for value in values if isinstance(values, tuple) else (values,):
        if isinstance(value, np.ndarray):
            same &= value[lanes].view(f"V{value.itemsize}") == value[others].view(f"V{value.itemsize}")
    return same


def _have_written(access: Access, lanes: Array) -> Array:
    """Return whether the compare-and-swap of each lane found the value that it compared with."""
    old, compared = (
        each[lanes] if isinstance(each, np.ndarray) else np.full(lanes.size, each)
        for each in (access.old, access.compared)
    )
    written: Array = old == compared
    return written
