"""A recorded launch: every statement that ran, everything that memories and variables held, and what made each value.

Moments are numbered by events: event k is the k-th statement that the lanes of a batch (blocks that run in lockstep)
executed, and "at step k" means just before it. A step of `len(trace.events)` is the end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cached_property
from pathlib import Path
from typing import IO

import numpy as np

from gpu.simulator.trace import data as trace_data
from gpu.simulator.trace.ancestry import Ancestry, NodeTable
from gpu.simulator.trace.data import TraceData
from gpu.simulator.trace.events import Events
from gpu.simulator.trace.packing import EXPLICIT, Array
from gpu.simulator.trace.recorder import ACCESS, ACTIONS, EVENT, POINTER, REGISTER
from gpu.simulator.trace.state import TraceState, own_element
from gpu.simulator.trace.types import Register, TraceAccess, TraceArray, TraceNode, Write

_KEPT_REGISTERS = 4096


class Trace(TraceState):
    """A recorded launch.

    Parameters
    ----------
    data : TraceData
    """

    def __init__(self, data: TraceData) -> None:
        super().__init__(data)
        self.events = Events(self)
        self._known: dict[tuple[int, int], Register] = {}

    @classmethod
    def load(cls, path: str | Path) -> Trace:
        """Read a trace from a file.

        Raises
        ------
        InputError
            It cannot be read, is damaged, or was written by another version.
        """
        return cls(trace_data.load(path))

    def save(self, path: str | Path | IO[bytes]) -> None:
        """Write everything to one file."""
        trace_data.save(self.data, path)

    @property
    def nbytes(self) -> int:
        """The bytes that the trace takes in memory."""
        return self.data.nbytes

    # Lanes.

    def mask(self, step: int) -> Array:
        """Return which lanes of the batch execute event `step`: bool, one a lane."""
        row = self._events[step]
        return self.bits(int(row[EVENT.index("batch")]), [int(row[EVENT.index("mask")])])

    def ended(self, step: int) -> Array:
        """Return which lanes of the batch of event `step` have returned from the kernel before it: bool, one a lane."""
        batch, frame = EVENT.index("batch"), EVENT.index("frame")
        number = int(self._events[step, batch])
        kernel = self._events[np.argmax(self._events[:, batch] == number), frame]
        rows = self._events[:step]
        wanted = self._is(rows, "return") & (rows[:, frame] == kernel)
        return self.bits(number, (int(mask) for mask in rows[wanted, EVENT.index("mask")]))

    def waiting(self, step: int) -> Array:
        """Return which lanes of the batch of event `step` wait at a barrier just before it: bool, one a lane.

        Only where warps are shuffled does anyone wait: in lockstep all come to a barrier at once.
        """
        batch = int(self._events[step, EVENT.index("batch")])
        rows = self._events[:step]
        arrivals = self._is(rows, "barrier") & (rows[:, EVENT.index("batch")] == batch)
        barriers = self.data.arrays["barriers"]
        before, of, _ = barriers.T
        passed = barriers[(before <= step) & (of == batch)]
        # Backwards in time: what a lane did last is what counts. One that arrives by event k goes on at k + 1 at first.
        told = [(int(row), int(rows[row, EVENT.index("mask")]), True) for row in np.flatnonzero(arrivals)]
        told += [(int(time) - 1, int(mask), False) for time, _, mask in passed]
        waits, known = np.zeros(self.batch_lanes(batch), bool), np.zeros(self.batch_lanes(batch), bool)
        for _, mask, is_arrival in sorted(told, key=lambda each: (each[0], not each[2]), reverse=True):
            lanes = self.lanes_of_mask(mask)
            if is_arrival:
                waits[lanes[~known[lanes]]] = True
            known[lanes] = True
            if known.all():
                break
        return waits

    def _is(self, events: Array, kind: str) -> Array:
        """Whether rows of events are of a kind: bool, one a row."""
        kinds = self.about["kinds"]
        found: Array = events[:, EVENT.index("kind")] == (kinds.index(kind) if kind in kinds else -1)
        return found

    # Vectors.

    def _integers(self, number: int, count: int) -> Array:
        arrays = self.data.arrays
        start, step = int(arrays["integer_starts"][number]), int(arrays["integer_steps"][number])
        if step == EXPLICIT:
            return arrays["integer_pool"][start : start + count].astype(np.int64)
        return start + step * np.arange(count)

    def integers_at(self, number: int, places: Array) -> Array:
        """Return some numbers of a recorded vector of integers."""
        arrays = self.data.arrays
        start, step = int(arrays["integer_starts"][number]), int(arrays["integer_steps"][number])
        found: Array = start + step * places
        return arrays["integer_pool"][start + places].astype(np.int64) if step == EXPLICIT else found

    def values_of(self, number: int, count: int) -> Array:
        """Return a recorded vector of so many values."""
        arrays = self.data.arrays
        start, code = int(arrays["value_starts"][number]), int(arrays["value_codes"][number])
        dtype = np.dtype(self.about["dtypes"][code // 2])
        if code % 2:
            return arrays["value_pool"][start : start + count * dtype.itemsize].view(dtype)
        return np.broadcast_to(arrays["value_pool"][start : start + dtype.itemsize].view(dtype), count)

    # Accesses.

    def access(self, row: int) -> TraceAccess:
        """Return an access by its row."""
        _, action, number, code, mask, elements, write, before, _ = (int(each) for each in self._accesses[row])
        assert len(ACCESS) == 9
        lanes = self.lanes_of_mask(mask)
        memory, log = self.about["memories"][number], self.log(number)
        dtype = np.dtype(self.about["dtypes"][code])
        element = self._integers(elements, lanes.size)
        flat, array = element, np.full(lanes.size, self.first_array[number])
        if memory["space"] == "local":
            flat = own_element(memory, lanes, element, dtype.itemsize)
        elif memory["space"] == "shared":
            within = lanes // self.lanes_per_block_of(memory["batch"])
            flat, array = element + within * (memory["stride"] // dtype.itemsize), array + within
        if ACTIONS[action] == "read":
            content = log.content(write)
            values = content[: content.size // dtype.itemsize * dtype.itemsize].view(dtype)[flat]
            nodes = log.nodes_of(flat * dtype.itemsize // log.unit, write)
            return TraceAccess("read", lanes, array, element, values, values, nodes)
        raw, nodes = log.written(write, dtype.itemsize)
        after = np.ascontiguousarray(raw).view(dtype).reshape(-1)
        values = self.values_of(before, lanes.size) if before >= 0 else after
        return TraceAccess(ACTIONS[action], lanes, array, element, values, after, nodes.astype(np.int64))

    def places(self, row: int) -> tuple[Array, Array]:
        """Return of an access, by its row, the lanes and the element of each, without looking up what was there."""
        mask, elements = (int(self._accesses[row, ACCESS.index(name)]) for name in ("mask", "elements"))
        lanes = self.lanes_of_mask(mask)
        return lanes, self._integers(elements, lanes.size)

    def touches(self, memory: int) -> bool:
        """Return whether anything in a memory was read or written: constants of a file may be another kernel's."""
        return memory in self._touched

    @cached_property
    def _touched(self) -> frozenset[int]:
        return frozenset(np.unique(self._accesses[:, ACCESS.index("memory")]).tolist())

    # Variables.

    @cached_property
    def _rows_of_slots(self) -> dict[int, dict[int, Array]]:
        """The rows of `registers` by frame and slot, oldest first."""
        frames, slots = (self._registers[:, REGISTER.index(name)].astype(np.int64) for name in ("frame", "slot"))
        found: dict[int, dict[int, Array]] = {}
        if frames.size:
            order = np.lexsort((slots, frames))
            starts = np.flatnonzero(np.diff(frames[order], prepend=-1) | np.diff(slots[order], prepend=-1))
            for rows in np.split(order, starts[1:]):
                found.setdefault(int(frames[rows[0]]), {})[int(slots[rows[0]])] = rows
        return found

    def registers(self, step: int, names: Collection[str] | None = None) -> dict[str, Register]:
        """Return the variables of the running function just before event `step`, by name; all, or those named."""
        event = self._events[step]
        of_slots = self._rows_of_slots.get(int(event[EVENT.index("frame")]), {})
        before = {}
        for slot, rows in of_slots.items():
            count = int(np.searchsorted(self._registers[rows, REGISTER.index("event")], step))
            if count:
                before[slot] = rows[:count]
        return self._registers_of(before, event, names)

    def pointers(self, step: int) -> dict[str, Register]:
        """Return the pointers of the running function just before event `step`, by name."""
        pointers = self.data.arrays["pointers"]
        return self._pointers_of(pointers[pointers[:, POINTER.index("event")] < step], self._events[step])

    def pointers_written(self, event: int) -> dict[str, Register]:
        """Return the pointers that an event wrote, those of its function."""
        pointers = self.data.arrays["pointers"]
        return self._pointers_of(pointers[pointers[:, POINTER.index("event")] == event], self._events[event])

    def registers_written(self, rows: range, event: int) -> dict[str, Register]:
        """Return the variables that some rows wrote, those of the function of an event."""
        row = self._events[event]
        numbers = np.arange(rows.start, rows.stop)
        own = self._registers[numbers, REGISTER.index("frame")] == row[EVENT.index("frame")]
        numbers = numbers[own]
        slots = self._registers[numbers, REGISTER.index("slot")]
        return self._registers_of({slot: numbers[slots == slot] for slot in np.unique(slots).tolist()}, row)

    def _pointers_of(self, rows: Array, event: Array) -> dict[str, Register]:
        """Return the pointers of an event's frame that some rows wrote, oldest first."""
        rows = rows[rows[:, POINTER.index("frame")] == event[EVENT.index("frame")]]
        lanes = self.batch_lanes(int(event[EVENT.index("batch")]))
        function = self.about["functions"][int(event[EVENT.index("function")])]
        found: dict[str, Register] = {}
        for slot in np.unique(rows[:, POINTER.index("slot")]).tolist():
            name, size = function["slots"].get(str(slot)), function["pointers"].get(str(slot))
            if name is None or size is None:
                continue
            values, defined = np.full(lanes, "", object), np.zeros(lanes, bool)
            for _, _, _, mask, array, value in rows[rows[:, POINTER.index("slot")] == slot].tolist():
                written = self.lanes_of_mask(mask)
                elements = (self.values_of(value, written.size) // size).tolist()
                array_name = self.about["pointer_names"][array]
                values[written] = [f"{array_name}[{element}]" if array_name else "null" for element in elements]
                defined[written] = True
            found[name] = Register(values.astype(str), np.zeros(lanes, np.int64), defined)
        return found

    def _registers_of(
        self, of_slots: dict[int, Array], event: Array, wanted: Collection[str] | None = None
    ) -> dict[str, Register]:
        """Put variables together from the rows that wrote their slots."""
        lanes = self.batch_lanes(int(event[EVENT.index("batch")]))
        names = self.about["functions"][int(event[EVENT.index("function")])]["slots"]
        latest: dict[str, tuple[int, int]] = {}
        for slot in sorted(of_slots):
            name = names.get(str(slot))
            if name is not None and (wanted is None or name in wanted):
                # Where two scopes have a variable of one name, the one that was written last counts.
                latest[name] = max(latest.get(name, (-1, -1)), (int(of_slots[slot][-1]), slot))
        return {name: self._register(of_slots[slot], lanes) for name, (_, slot) in latest.items()}

    def _register(self, rows: Array, lanes: int) -> Register:
        """Put a variable together from its writes, which most moments have in common with those around them."""
        key = (int(rows[0]), int(rows[-1]))
        if key not in self._known:
            if len(self._known) >= _KEPT_REGISTERS:
                self._known.clear()
            self._known[key] = self._written(rows, lanes)
        return self._known[key]

    def _written(self, rows: Array, lanes: int) -> Register:
        """Put a variable together from its last writes, newest first, until every lane has its value."""
        defined, nodes = np.zeros(lanes, bool), np.zeros(lanes, np.int64)
        values: Array | None = None
        missing = lanes
        for mask, value, node in self._last_writes(rows):
            written = self.lanes_of_mask(mask)
            found = self.values_of(value, written.size)
            made = self._integers(node, written.size)
            if values is None:
                values = np.zeros(lanes, found.dtype)
                values[written], nodes[written] = found, made
                missing -= written.size
            else:
                fresh = ~defined[written]
                values[written[fresh]], nodes[written[fresh]] = found[fresh], made[fresh]
                missing -= int(np.count_nonzero(fresh))
            defined[written] = True
            if missing == 0:
                break
        assert values is not None
        return Register(values, nodes, defined)

    def _last_writes(self, rows: Array) -> Iterator[tuple[int, int, int]]:
        """Return mask, value and node of writes, newest first; of those under one mask only the last can be seen."""
        columns = [REGISTER.index(name) for name in ("mask", "value", "node")]
        mask, value, node = self._registers[rows[-1], columns].tolist()
        yield mask, value, node
        newest = self._registers[rows[:-1][::-1]]
        last = np.sort(np.unique(newest[:, columns[0]], return_index=True)[1])
        for other, value, node in newest[last][:, columns].tolist():
            if other != mask:
                yield other, value, node

    # Provenance.

    def _place(self, found: TraceArray, element: int) -> Array:
        """Return where an element lies in its memory's log; of a thread's own array it counts lane after lane."""
        memory, log = self.about["memories"][found.memory], self.log(found.memory)
        size = found.dtype.itemsize
        if found.space == "local":
            lane, own = divmod(element, found.count)
            return np.array([own_element(memory, lane, own, size) * size // log.unit])
        start = (found.number - self.first_array[found.memory]) * memory["stride"]
        return np.array([(start + element * size) // log.unit])

    def node_of(self, array: str | int, element: int, step: int, block: int | None = None) -> int:
        """Return the node of an element's value at a step; 0 where nothing made it."""
        found = self.find(array, block)
        write = self.writes_before(found.memory, step)
        return int(self.log(found.memory).nodes_of(self._place(found, element), write)[0])

    def writer(self, array: str | int, element: int, step: int, block: int | None = None) -> Write | None:
        """Return who wrote an element last before a step; None where nobody did."""
        found = self.find(array, block)
        log = self.log(found.memory)
        (position,) = log.last_write(self._place(found, element), self.writes_before(found.memory, step))
        if position < 0:
            return None
        write = int(np.searchsorted(log.borders, position, side="right")) - 1
        row = self._accesses[self.write_rows[found.memory][write]]
        event = int(row[ACCESS.index("event")])
        size = np.dtype(self.about["dtypes"][row[ACCESS.index("dtype")]]).itemsize
        rank = (int(position) - int(log.borders[write])) // (size // log.unit)
        lane = int(self.lanes_of_mask(int(row[ACCESS.index("mask")]))[rank])
        blocks, threads = self.threads_of(event, np.array([lane]))
        return Write(event, lane, int(blocks[0]), int(threads[0]))

    def threads_of(self, event: int, lanes: Array) -> tuple[Array, Array]:
        """Return the numbers of the blocks, and of the threads in them, of lanes of the batch of an event."""
        batch = int(self._events[event, EVENT.index("batch")])
        return self.block_of(batch, lanes), lanes % self.lanes_per_block_of(batch)

    @cached_property
    def _nodes(self) -> NodeTable:
        return NodeTable(self)

    def node(self, number: int) -> TraceNode:
        """Return what a node stands for."""
        return next(self._nodes.group(number).nodes())

    def ancestry(self, node: int) -> Ancestry:
        """Return all that made a value, given its node."""
        return self._nodes.ancestry(node)
