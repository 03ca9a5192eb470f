"""The variables of a trace: their values at any step."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpu.recording.data import TraceData, TraceLanes
from gpu.recording.packing import Array
from gpu.recording.tables import EventRow

_CACHE_SIZE = 4096


@dataclass(frozen=True)
class RegisterState:
    """A variable: `values`, one per lane of the batch, valid where `defined` is True, else 0.

    The values of a pointer are texts: the array and the element that it points to, such as "s[12]", or "null".
    """

    values: Array
    defined: Array


class TraceVariables:
    """The variables of a trace's functions."""

    def __init__(self, data: TraceData, lanes: TraceLanes) -> None:
        self._data, self._lanes = data, lanes
        self._cache: dict[tuple[int, int], RegisterState] = {}

    def registers(self, step: int, names: Collection[str] | None = None) -> dict[str, RegisterState]:
        """Return the variables of the running function just before event `step`, by name; all, or those in `names`."""
        before = {}
        for slot, rows in self._rows_of_slots.get(int(self._data.events["frame"][step]), {}).items():
            count = int(np.searchsorted(self._data.registers["event"][rows], step))
            if count:
                before[slot] = rows[:count]
        return self._variables_by_name(before, step, names)

    def registers_written(self, event: int) -> dict[str, RegisterState]:
        """Return the variables of its function that an event wrote, by name."""
        events, registers = self._data.events, self._data.registers
        last = int(events["register"][event + 1]) if event + 1 < len(events) else len(registers)
        rows = np.arange(int(events["register"][event]), last)
        rows = rows[registers["frame"][rows] == events["frame"][event]]
        slots = registers["slot"][rows]
        return self._variables_by_name({slot: rows[slots == slot] for slot in np.unique(slots).tolist()}, event)

    def pointers(self, step: int) -> dict[str, RegisterState]:
        """Return the pointers of the running function just before event `step`, by name."""
        pointers = self._data.pointers
        return self._pointers(pointers[pointers["event"] < step], step)

    def pointers_written(self, event: int) -> dict[str, RegisterState]:
        """Return the pointers of its function that an event wrote, by name."""
        pointers = self._data.pointers
        return self._pointers(pointers[pointers["event"] == event], event)

    @cached_property
    def _rows_of_slots(self) -> dict[int, dict[int, Array]]:
        """The rows of `registers` by frame and slot, oldest first."""
        frames, slots = (self._data.registers[name].astype(np.int64) for name in ("frame", "slot"))
        frame_slots: dict[int, dict[int, Array]] = {}
        if frames.size:
            order = np.lexsort((slots, frames))
            starts = np.flatnonzero(np.diff(frames[order], prepend=-1) | np.diff(slots[order], prepend=-1))
            for rows in np.split(order, starts[1:]):
                frame_slots.setdefault(int(frames[rows[0]]), {})[int(slots[rows[0]])] = rows
        return frame_slots

    def _variables_by_name(
        self, slot_rows: dict[int, Array], event: int, selection: Collection[str] | None = None
    ) -> dict[str, RegisterState]:
        """Return variables of an event's function by name, given the rows that wrote each slot."""
        row = EventRow(*self._data.events[event].tolist())
        names = self._data.functions[row.function].variables
        latest: dict[str, tuple[int, int]] = {}
        for slot in sorted(slot_rows):
            name = names.get(slot)
            if name is not None and (selection is None or name in selection):
                # If two scopes have variables with equal names, the one that was written last counts.
                latest[name] = max(latest.get(name, (-1, -1)), (int(slot_rows[slot][-1]), slot))
        lanes = self._lanes.count(row.batch)
        return {name: self._register(slot_rows[slot], lanes) for name, (_, slot) in latest.items()}

    def _register(self, rows: Array, lanes: int) -> RegisterState:
        """Return a variable, given the rows of its writes; cached, since neighboring steps mostly share them."""
        key = (int(rows[0]), int(rows[-1]))
        if key not in self._cache:
            if len(self._cache) >= _CACHE_SIZE:
                self._cache.clear()
            self._cache[key] = self._assemble(rows, lanes)
        return self._cache[key]

    def _assemble(self, rows: Array, lanes: int) -> RegisterState:
        """Assemble a variable from its last writes, newest first, until every lane has its value."""
        defined = np.zeros(lanes, bool)
        values: Array | None = None
        missing = lanes
        for mask, value in self._last_writes(rows):
            written = self._lanes.mask_lanes(mask)
            new_values = self._data.values.vector(value, written.size)
            if values is None:
                values = np.zeros(lanes, new_values.dtype)
                values[written] = new_values
                missing -= written.size
            else:
                fresh = ~defined[written]
                values[written[fresh]] = new_values[fresh]
                missing -= int(np.count_nonzero(fresh))
            defined[written] = True
            if missing == 0:
                break
        assert values is not None
        return RegisterState(values, defined)

    def _last_writes(self, rows: Array) -> Iterator[tuple[int, int]]:
        """Yield mask and value of writes, newest first; of those with the same mask, only the last."""
        columns = ["mask", "value"]
        mask, value = self._data.registers[rows[-1]][columns].tolist()
        yield mask, value
        newest = rows[:-1][::-1]
        last = np.sort(np.unique(self._data.registers["mask"][newest], return_index=True)[1])
        for other, value in self._data.registers[newest[last]][columns].tolist():
            if other != mask:
                yield other, value

    def _pointers(self, rows: Array, event: int) -> dict[str, RegisterState]:
        """Return the pointers of an event's frame by name, given rows of `pointers`, oldest first."""
        row = EventRow(*self._data.events[event].tolist())
        rows = rows[rows["frame"] == row.frame]
        lanes = self._lanes.count(row.batch)
        function = self._data.functions[row.function]
        pointers: dict[str, RegisterState] = {}
        for slot in np.unique(rows["slot"]).tolist():
            name, size = function.variables.get(slot), function.pointers.get(slot)
            if name is None or size is None:
                continue
            values, defined = np.full(lanes, "", object), np.zeros(lanes, bool)
            for mask, array, value in rows[rows["slot"] == slot][["mask", "name", "value"]].tolist():
                written = self._lanes.mask_lanes(mask)
                elements = (self._data.values.vector(value, written.size) // size).tolist()
                array_name = self._data.pointer_names[array]
                values[written] = [f"{array_name}[{element}]" if array_name else "null" for element in elements]
                defined[written] = True
            pointers[name] = RegisterState(values.astype(str), defined)
        return pointers
