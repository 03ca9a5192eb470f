"""Records a launch while it runs: each executed statement once, for all of its lanes, and where every value came from.

Values carry a node each: a number that stands for the operation, or the element of an array at the launch, that made
them; 0 stands for none, as constants and thread numbers have. Copies keep the node of what they copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from gpu.errors import SourcePosition
from gpu.simulator import ir
from gpu.simulator.executor.batch import BlockBatch
from gpu.simulator.executor.child import ChildLaunch
from gpu.simulator.executor.masks import LaneMask
from gpu.simulator.executor.memory import DeviceMemory, FlatMemory, LocalMemory
from gpu.simulator.executor.observe import Access, IssuedStep, Observer
from gpu.simulator.executor.pointers import PointerValue
from gpu.simulator.trace.packing import Array, Numbering, Table, compact
from gpu.simulator.trace.recorded_memory import NONE, RecordedMemory, shared_size
from gpu.simulator.trace.tables import (
    ACCESS,
    ACTIONS,
    BARRIER,
    BATCH,
    CALL,
    EVENT,
    INPUT,
    NO_STATEMENT,
    NOBODY,
    NOT_A_BRANCH,
    OPERATION,
    POINTER,
    REGISTER,
)
from gpu.simulator.trace.types import TraceLaunch
from gpu.simulator.trace.vectors import Integers, Masks, Values
from gpu.simulator.types import Pointer, Scalar, Type, leaves

MAXIMUM_LANE_EVENTS = 20_000_000
END_OF_NODES = 2**31 - 1
"""Nodes are below this, so that they and the end of a run of them fit into int32."""


class Recorder(Observer):
    """What is known of a launch so far.

    Where the recording stops for want of room, it keeps what it has, and takes note of nothing that comes later.

    Parameters
    ----------
    max_lane_events : int
        How many statements of single lanes are recorded; after that the launch goes on, and nothing more is recorded.
    """

    def __init__(self, max_lane_events: int = MAXIMUM_LANE_EVENTS) -> None:
        self.max_lane_events = max_lane_events
        self.lane_events = 0
        self.stopped = ""
        self.events, self.accesses = Table(EVENT), Table(ACCESS)
        self.registers, self.operations = Table(REGISTER), Table(OPERATION)
        self.barriers, self.pointers = Table(BARRIER), Table(POINTER)
        self.pointer_names = Numbering[str]()
        self.integers, self.values, self.masks = Integers(), Values(), Masks()
        self.kinds, self.operators = Numbering[str](), Numbering[str]()
        self.positions = Numbering[SourcePosition]()
        self.functions: list[ir.Function] = []
        self._function_numbers: dict[int, int] = {}
        # The statements that ran, and the steps of loops.
        self.statements: list[ir.Statement | ir.Expression] = []
        self._statement_numbers: dict[int, int] = {}
        self.batches, self.inputs, self.calls = Table(BATCH), Table(INPUT), Table(CALL)
        self.launches: list[TraceLaunch] = []
        # Of launches by kernels that did not begin yet, and of the next one: its launch, event, block and thread.
        self._parents: dict[ChildLaunch, tuple[int, ...]] = {}
        self._parent: tuple[int, ...] = ()
        self.memories: list[RecordedMemory] = []
        # The nodes of the value that is stored next, one for each leaf; and those of what was loaded, where wanted.
        self.incoming: tuple[Any, ...] = ()
        self.outgoing: list[tuple[LaneMask, tuple[Any, ...]]] | None = None
        self._next_node = 1
        self._next_frame = 0
        self._frame = (0, 0)
        self._step: tuple[IssuedStep, LaneMask] | None = None
        self._interrupted = False
        # The frame and the statement of the warps, or parts of warps, that others have taken turns with.
        self._part: int | None = None
        self._paused: dict[int | None, tuple[tuple[int, int], tuple[IssuedStep, LaneMask] | None]] = {}
        self._kernel_frame = 0
        self._suspended: list[tuple[Any, ...]] = []
        self._atomics: list[tuple[Access, RecordedMemory, Array]] = []
        self._numbers: WeakKeyDictionary[DeviceMemory, RecordedMemory] = WeakKeyDictionary()
        self._by_address: dict[tuple[int, int], RecordedMemory] = {}
        # Where threads keep what is in memory in registers: the nodes of what each lane knows, by memory and byte, and
        # the frames of the writes that have stayed there.
        self._known_nodes: dict[tuple[int, int, int], int] = {}
        self._kept_frames: dict[int, tuple[int, int]] = {}
        # The batches that run, the last one while those before it wait for its launch; and what each has of its own.
        self._running: list[int] = []
        self._batch_memories: list[list[RecordedMemory]] = []

    # What happens when.

    def launch_begins(self, kernel: str, grid: Sequence[int], block: Sequence[int]) -> None:
        # A kernel that was launched while there was room is told of, even where it runs later.
        if not self.stopped or self._parent:
            self.launches.append(TraceLaunch(len(self.launches), kernel, tuple(grid), tuple(block), *self._parent))
        self._parent = ()

    def launched(self, batch: BlockBatch, child: ChildLaunch) -> None:
        if not self.stopped:
            block, thread = divmod(child.lane, batch.geometry.lanes_per_block)
            of = self.batches.get(self._running[-1], "launch")
            self._parents[child] = (of, self._event(), batch.first + block, thread)

    def child_begins(self, child: ChildLaunch) -> None:
        self._parent = self._parents.pop(child, ())

    def batch_begins(self, batch: BlockBatch) -> None:
        self._running.append(len(self.batches))
        self._batch_memories.append([])
        if not self.stopped:
            self.batches.add(batch.first, batch.geometry.blocks, len(self.launches) - 1)
        self._suspended.append((self._part, self._paused, self._kernel_frame, self._frame, self._step))
        self._part, self._paused, self._kernel_frame, self._step = None, {}, self._new_frame(), None

    def batch_ends(self, batch: BlockBatch) -> None:
        # What a batch had of its own is never touched again: let the shadows go.
        for memory in self._batch_memories.pop():
            memory.forget()
        self._known_nodes.clear()
        self._kept_frames.clear()
        self._running.pop()
        self._part, self._paused, self._kernel_frame, self._frame, self._step = self._suspended.pop()
        self.masks.forget()

    def switch(self, batch: BlockBatch, part: int) -> None:
        self._paused[self._part] = (self._frame, self._step)
        self._part = part
        self._frame, self._step = self._paused.pop(part, ((0, 0), None))
        # What follows in the same statement comes after what others did meanwhile.
        self._interrupted = True

    def barrier(self, batch: BlockBatch, position: SourcePosition, mask: LaneMask) -> None:
        if not self.stopped:
            self.barriers.add(len(self.events), self._running[-1], self.masks.add(mask))

    def step(self, batch: BlockBatch, step: IssuedStep, mask: LaneMask) -> None:
        if self.stopped:
            return
        if self.lane_events + mask.count > self.max_lane_events:
            self._stop(f"{self.max_lane_events} statements of single lanes")
            return
        self.lane_events += mask.count
        self._begin(step, mask, resumed=False)

    def advance(self, batch: BlockBatch, loop: ir.Loop, mask: LaneMask) -> None:
        self.step(batch, IssuedStep(loop.position, "advance", 0, loop.step), mask)

    def _stop(self, what: str) -> None:
        self.stopped = (
            f"The recording ends after {what}; the launch went on to its end. "
            "Launch fewer threads, or allow a longer trace."
        )

    def _begin(self, step: IssuedStep, mask: LaneMask, *, resumed: bool) -> None:
        self._step, self._interrupted = (step, mask), False
        function, frame = self._frame
        self.events.add(
            self.kinds.of(step.kind),
            self.positions.of(step.position),
            function,
            frame,
            self._running[-1],
            self.masks.add(mask),
            NOT_A_BRANCH,
            resumed,
            0 if resumed else step.operations * mask.count,
            self._statement_number(step),
            len(self.accesses),
            len(self.registers),
        )

    def _statement_number(self, step: IssuedStep) -> int:
        if step.executed is None:
            return NO_STATEMENT
        number = self._statement_numbers.setdefault(id(step.executed), len(self.statements))
        if number == len(self.statements):
            self.statements.append(step.executed)
        return number

    def _event(self) -> int:
        """Return the number of the running event: a statement that called a function goes on in an event of its own."""
        if self._interrupted and self._step is not None:
            self._begin(*self._step, resumed=True)
        return len(self.events) - 1

    @property
    def running_event(self) -> int:
        """The number of the running event; where the recording has ended, the number of events."""
        return len(self.events) - (not self.stopped)

    def side(self, batch: BlockBatch, position: SourcePosition, operations: int, mask: LaneMask) -> None:
        if not self.stopped:
            self.events.increase(self._event(), "work", operations * mask.count)

    def branch(self, batch: BlockBatch, position: SourcePosition, mask: LaneMask, taken: LaneMask | None) -> None:
        if not self.stopped:
            event = self._event()
            self.events.set(event, "taken", NOBODY if taken is None else self.masks.add(taken))

    def enter(self, function: ir.Function, *, is_kernel: bool) -> tuple[Any, ...]:
        """Take note of a call, and return what `leave` needs.

        The warps of a batch share the kernel's frame: a variable is one for all lanes, however they take turns.
        """
        before = (self._frame, self._step)
        if self.stopped:
            return before
        number = self._function_numbers.setdefault(id(function), len(self.functions))
        if number == len(self.functions):
            self.functions.append(function)
        called = (number, self._kernel_frame if is_kernel else self._new_frame())
        if self._step is not None:
            self.calls.add(called[1], self._frame[1])
        self._frame = called
        return before

    def _new_frame(self) -> int:
        self._next_frame += 1
        return self._next_frame - 1

    def leave(self, before: tuple[Any, ...]) -> None:
        """Go back to the caller."""
        self._frame, self._step = before
        self._interrupted = True

    def suspend(self) -> tuple[Any, ...]:
        """Let the running statement go on after something else, and return what `leave` then needs."""
        return (self._frame, self._step)

    # Variables.

    def parameter(self, slot: int, value: Any, node: Any, mask: LaneMask) -> None:
        """Take note of a parameter of the function that was just entered."""
        if not self.stopped:
            self._note_variable(len(self.events) - 1, slot, value, node, mask)

    def register(self, slot: int, value: Any, node: Any, mask: LaneMask) -> None:
        """Take note of the value that a variable of the running function, a number or a pointer, got."""
        if not self.stopped:
            self._note_variable(self._event(), slot, value, node, mask)

    def _note_variable(self, event: int, slot: int, value: Any, node: Any, mask: LaneMask) -> None:
        if isinstance(value, np.generic | np.ndarray):
            self._note_register(event, slot, value, node, mask)
        elif isinstance(value, PointerValue):
            for address, lanes in value.parts(mask) if value.mixed else [(value, mask)]:
                name = address.memory.name if address.memory is not None else ""
                offset = np.asarray(compact(address.offset, lanes), np.int64)
                number = self.pointer_names.of(name)
                row = (event, self._frame[1], slot, self.masks.add(lanes), number, self.values.add(offset))
                self.pointers.add(*row)

    def _note_register(self, event: int, slot: int, value: Any, node: Any, mask: LaneMask) -> None:
        self.registers.add(
            event,
            self._frame[1],
            slot,
            self.masks.add(mask),
            self.values.add(compact(value, mask)),
            self.integers.add(compact(node, mask)),
        )

    # Operations.

    def operation(
        self, operator: str, mask: LaneMask, value: Any, nodes: Sequence[Any], operands: Sequence[Any]
    ) -> Any:
        """Return the nodes of values that an operation made; none in lanes where none of its operands has one."""
        packed = [compact(node, mask) for node in nodes]
        if self.stopped or not any(np.any(node) for node in packed):
            return NONE
        first = self._take_nodes(mask.count)
        if first is None:
            return NONE
        self._operate(first, operator, mask, compact(value, mask), packed, [compact(each, mask) for each in operands])
        numbers = np.arange(first, first + mask.count, dtype=np.int32)
        if not any(np.all(node) for node in packed):
            # What a lane's value comes from must not depend on which other lanes happen to run beside it.
            numbers *= np.any([np.broadcast_to(node != 0, mask.count) for node in packed], axis=0)
        if mask.full:
            return numbers
        made = np.zeros(mask.bits.size, np.int32)
        made[mask.lanes] = numbers
        return made

    def _operate(
        self, first: int, operator: str, mask: LaneMask, value: Any, nodes: Sequence[Any], operands: Sequence[Any]
    ) -> None:
        """Take note of what made the values of a mask's lanes, whose nodes begin with `first`; all are packed."""
        sources, others = [-1] * 3, [-1] * 3
        for place, (node, operand) in enumerate(zip(nodes, operands, strict=True)):
            sources[place] = self.integers.add(node)
            if not np.all(node) and isinstance(operand, np.generic | np.ndarray):
                others[place] = self.values.add(operand)
        self.operations.add(
            self._event(),
            self.operators.of(operator),
            self.masks.add(mask),
            first,
            self.values.add(value),
            *sources,
            *others,
        )

    def _take_nodes(self, count: int) -> int | None:
        """Return the first of so many new nodes; where there are no more the recording stops, and there is none."""
        first = self._next_node
        if first + count > END_OF_NODES:
            self._stop(f"{END_OF_NODES - 1} values")
            return None
        self._next_node += count
        return first

    # Memory.

    def arguments(
        self, parameters: Sequence[tuple[str, Type]], values: Sequence[Any], variables: dict[str, Any]
    ) -> None:
        """Take note of what the arrays of a launch hold before it begins."""
        if self.stopped:
            return
        for (_, type), value in zip(parameters, values, strict=True):
            if isinstance(type, Pointer) and isinstance(value.memory, FlatMemory):
                self._array(value.memory, type.element)
        for address in variables.values():
            self._array(address.memory, None)

    def _array(self, memory: FlatMemory, element: Type | None) -> None:
        key = (memory.data.ctypes.data, memory.data.size)
        if key not in self._by_address:
            kinds = {leaf.dtype for _, leaf in leaves(element) if isinstance(leaf, Scalar)} if element else set()
            dtype = kinds.pop() if len(kinds) == 1 else None
            made = RecordedMemory.of_array(len(self.memories), memory.name, memory.space, memory.data.copy(), dtype)
            self.memories.append(made)
            self._by_address[key] = made
        self._numbers[memory] = self._by_address[key]

    def _memory(self, batch: BlockBatch, memory: DeviceMemory) -> RecordedMemory:
        found = self._numbers.get(memory)
        if found is None and isinstance(memory, FlatMemory) and memory.space == "global":
            self._array(memory, None)  # only a pointer in memory, or in a struct, leads there
            found = self._numbers[memory]
        if found is None:
            number, of_batch = len(self.memories), self._running[-1]
            if isinstance(memory, LocalMemory):
                found = RecordedMemory.of_threads(number, memory, batch.geometry.lanes, of_batch)
            else:
                assert isinstance(memory, FlatMemory)
                size, stride = shared_size(batch, memory), memory.data.size // batch.geometry.blocks
                found = RecordedMemory.of_blocks(number, memory.name, size, batch.geometry.blocks, stride, of_batch)
            self.memories.append(found)
            self._batch_memories[-1].append(found)
            self._numbers[memory] = found
        return found

    def access(self, batch: BlockBatch, access: Access) -> None:
        values = access.values if isinstance(access.values, tuple) else (access.values,)
        if self.stopped:
            if self.outgoing is not None:
                self.outgoing.append((access.mask, (NONE,) * len(values)))
            return
        memory = self._memory(batch, access.memory)
        if access.site.action == "atomic":
            self._atomics.append((access, memory, memory.flat(batch, access.element, access.size, access.mask)))
            return
        offset, nodes = 0, []
        for place, value in enumerate(values):
            number = value if isinstance(value, np.ndarray | np.generic) else value.number()
            size = number.dtype.itemsize
            element = access.element if size == access.size else (access.element * access.size + offset) // size
            offset += size
            if access.site.action == "read":
                nodes.append(self._read(batch, access, memory, element, number, place))
            else:
                node = self.incoming[place] if place < len(self.incoming) else NONE
                if access.register is not None:
                    self._know(access, memory, memory.flat(batch, element, size, access.mask), node)
                    if access.register.any():
                        self._kept_frames[id(access)] = self._frame
                        continue
                self._write(batch, access.mask, memory, element, number, node, place)
        if self.outgoing is not None:
            self.outgoing.append((access.mask, tuple(nodes)))

    def written_back(self, batch: BlockBatch, step: IssuedStep, access: Access, mask: LaneMask) -> None:
        if self.stopped or id(access) not in self._kept_frames:
            return
        before = self._frame, self._step
        self._frame = self._kept_frames[id(access)]
        self.step(batch, IssuedStep(step.position, "evaluate", 0, step.executed), mask)
        if not self.stopped:
            memory = self._memory(batch, access.memory)
            value = np.asarray(access.values)
            flat = memory.flat(batch, access.element, access.size, mask)
            nodes = np.zeros(mask.bits.size, np.int32)
            nodes[mask.lanes] = self._remembered(access, memory, flat, mask)
            self._write(batch, mask, memory, access.element, value if value.ndim else value[()], nodes, 0)
        self.leave(before)

    def _know(self, access: Access, memory: RecordedMemory, flat: Any, node: Any) -> None:
        """Take note of the nodes of what lanes know of memory from now on."""
        mask = access.mask
        nodes = np.broadcast_to(compact(node, mask), mask.count).tolist()
        for lane, at, each in zip(mask.lanes.tolist(), _each(flat, mask), nodes, strict=True):
            self._known_nodes[memory.number, lane, at * access.size] = each

    def _remembered(self, access: Access, memory: RecordedMemory, flat: Any, mask: LaneMask) -> list[int]:
        """Return the nodes of what lanes know."""
        places = zip(mask.lanes.tolist(), _each(flat, mask), strict=True)
        return [self._known_nodes.get((memory.number, lane, at * access.size), 0) for lane, at in places]

    def _read(
        self, batch: BlockBatch, access: Access, memory: RecordedMemory, element: Any, value: Any, part: int
    ) -> Any:
        mask, dtype, register = access.mask, value.dtype, access.register
        needs_nodes = self.outgoing is not None or register is not None
        if needs_nodes and not self._counted(memory, dtype):
            return NONE
        from_register = register is not None and register.any()
        told = self.values.add(compact(value, mask)) if from_register else -1
        self._note("read", memory, dtype, mask, element, told, part)
        if not needs_nodes:
            return NONE
        flat = memory.flat(batch, element, dtype.itemsize, mask)
        nodes = memory.shadow(dtype)[flat]
        base = memory.base
        if base:
            nodes = np.where(nodes == 0, flat * memory.per(dtype) + base, nodes)
        nodes = np.maximum(nodes, 0).astype(np.int32)
        if register is not None:
            if from_register:
                kept = np.array(self._remembered(access, memory, flat, mask), np.int32)
                nodes = np.where(register[mask.lanes], kept, nodes)
            self._know(access, memory, flat, _spread(nodes, mask))
        return _spread(nodes, mask)

    def _counted(self, memory: RecordedMemory, dtype: np.dtype[Any]) -> bool:
        """Have a memory count in units that are no larger than a type; return whether there is room for its nodes."""
        if not self.stopped and memory.needs_units(dtype.itemsize):
            base = 0
            if memory.initial is not None:
                count = memory.total // dtype.itemsize
                taken = self._take_nodes(count)
                if taken is None:
                    return False
                base = taken
                self.inputs.add(base, count, memory.number, dtype.itemsize)
            memory.count_in(dtype.itemsize, base)
        return not self.stopped

    def _write(
        self, batch: BlockBatch, mask: LaneMask, memory: RecordedMemory, element: Any, value: Any, node: Any, part: int
    ) -> None:
        if not self._counted(memory, value.dtype):
            return
        flat = np.broadcast_to(memory.flat(batch, element, value.dtype.itemsize, mask), mask.count)
        nodes = np.broadcast_to(compact(node, mask), mask.count)
        self._note("write", memory, value.dtype, mask, element, -1, part)
        memory.write(flat, np.broadcast_to(compact(value, mask), mask.count), nodes)

    def _note(
        self,
        action: str,
        memory: RecordedMemory,
        dtype: np.dtype[Any],
        mask: LaneMask,
        element: Any,
        value: int,
        part: int,
    ) -> None:
        """Take note of an access, or of one `part` of several that a vector is read or written in at once."""
        if memory.dtype is None:
            memory.dtype = dtype
        self.accesses.add(
            self._event(),
            ACTIONS.index(action),
            memory.number,
            self.values.code(dtype),
            self.masks.add(mask),
            self.integers.add(compact(element, mask)),
            memory.writes,
            value,
            part,
        )

    def atomic(self, batch: BlockBatch, op: str, operands: Sequence[Any], nodes: Sequence[Any], old: Any) -> Any:
        """Take note of what an atomic changed, as if lane had gone after lane; return the nodes of what lanes found."""
        found = np.zeros(batch.geometry.lanes, np.int32)
        for access, memory, flat in self._atomics:
            mask = access.mask
            at = np.broadcast_to(flat, mask.count)
            before = np.broadcast_to(compact(old, mask), mask.count)
            if not self._counted(memory, before.dtype):
                break
            known = memory.shadow(before.dtype)[at]
            if memory.base:
                known = np.where(known == 0, at * memory.per(before.dtype) + memory.base, known)
            start = np.maximum(known, 0).astype(np.int32)
            # The lanes of one element side by side, in lane order: what one leaves there is what the next one finds.
            order = np.argsort(at, kind="stable")
            first = np.concatenate(([True], at[order][1:] != at[order][:-1]))
            after = np.empty_like(before)
            last = np.concatenate((first[1:], [True]))
            after[order] = np.where(last, memory.content(access.memory, before.dtype)[at[order]], _next(before[order]))
            given = [np.broadcast_to(compact(node, mask), mask.count) for node in nodes]
            base: int | None = None
            if op == "exch":
                made = given[0]
            elif op == "cas":
                made = _swapped(order, first, start, before, compact(operands[0], mask), given[1])
            else:
                base = self._take_nodes(mask.count)
                if base is None:
                    break
                made = np.arange(base, base + mask.count, dtype=np.int32)
            previous = np.empty_like(start)
            previous[order] = np.where(first, start[order], _previous(made[order]))
            if base is not None:
                by = [compact(operands[0], mask)]
                self._operate(base, f"atomic {op}", mask, after, [previous, given[0]], [before, *by])
            self._note("atomic", memory, before.dtype, mask, access.element, self.values.add(before), 0)
            memory.write(at, after, made)
            found[mask.lanes] = previous
        self._atomics.clear()
        return found


def _spread(packed: Any, mask: LaneMask) -> Any:
    """Return one number a lane of the batch, 0 where the mask is not."""
    if mask.full or not (isinstance(packed, np.ndarray) and packed.ndim):
        return packed if mask.full or isinstance(packed, np.generic) else packed[()]
    lanes = np.zeros(mask.bits.size, packed.dtype)
    lanes[mask.lanes] = packed
    return lanes


def _each(flat: Any, mask: LaneMask) -> list[int]:
    """Return an index for each lane of a mask."""
    found: list[int] = np.broadcast_to(flat, mask.count).tolist()
    return found


def _next(values: Array) -> Array:
    return np.concatenate((values[1:], values[:1]))


def _previous(values: Array) -> Array:
    return np.concatenate((values[-1:], values[:-1]))


def _swapped(order: Array, first: Array, start: Array, before: Array, expected: Any, given: Array) -> Array:
    """Return the node of what each lane's compare-and-swap leaves."""
    made = np.empty_like(start)
    swaps = np.broadcast_to(before == expected, before.shape)
    left = np.int32(0)
    for is_first, lane in zip(first, order, strict=True):
        left = given[lane] if swaps[lane] else start[lane] if is_first else left
        made[lane] = left
    return made
