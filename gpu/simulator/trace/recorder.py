"""Recorder: an observer that records the events of a launch and the provenance of values.

Each value has a node: the number of the operation that computed it, or of the initial element of an array; 0 means
none, as for constants and thread indices. A copy has the node of the original.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from gpu.base.errors import SourcePosition
from gpu.base.lane_mask import LaneMask
from gpu.base.warp import WARP
from gpu.recording.data import FailedAccess, LaunchRecord, TraceData, TraceLaunch
from gpu.recording.packing import Array, IntegerVectors, MaskTable, Numbering, Table, ValueVectors, select_active
from gpu.recording.tables import (
    ACCESS,
    ACTIONS,
    BARRIER,
    BATCH,
    CALL,
    EVENT,
    INPUT,
    NO_LANES,
    NO_STATEMENT,
    NOT_A_BRANCH,
    OPERATION,
    POINTER,
    REGISTER,
)
from gpu.simulator import ir
from gpu.simulator.executor.state.batch import BlockBatch
from gpu.simulator.executor.state.child import ChildLaunch
from gpu.simulator.executor.state.memory import ClusterMemory, DeviceMemory, FlatMemory, LocalMemory
from gpu.simulator.executor.state.observer import Access, IssuedStep, Observer
from gpu.simulator.executor.state.pointers import PointerValue
from gpu.simulator.trace.recorded_memory import NO_NODE, RecordedMemory, shared_size
from gpu.simulator.trace.terms import convert_statement, describe_function
from gpu.simulator.types import Pointer, Scalar, Type, leaves

MAXIMUM_LANE_EVENTS = 20_000_000
_MAX_FAILED_LANES = 1024
"""The most lanes to record of an access that ended a launch."""
MAX_NODES = 2**31 - 1
"""The upper limit of nodes, so that a node and the end of a range of nodes fit into int32."""


class Recorder(Observer):
    """Records a launch while it runs.

    When a limit is reached, the recording stops and keeps its data; the launch continues.

    Parameters
    ----------
    max_lane_events : int
        The limit of recorded statements of single lanes.
    """

    def __init__(self, max_lane_events: int = MAXIMUM_LANE_EVENTS) -> None:
        self.max_lane_events = max_lane_events
        self.lane_events = 0
        self.stop_reason = ""
        self.events, self.accesses = Table(EVENT), Table(ACCESS)
        self.registers, self.operations = Table(REGISTER), Table(OPERATION)
        self.barriers, self.pointers = Table(BARRIER), Table(POINTER)
        self.pointer_names = Numbering[str]()
        self.integers, self.values, self.masks = IntegerVectors(), ValueVectors(), MaskTable()
        self.kinds, self.operators = Numbering[str](), Numbering[str]()
        self.positions = Numbering[SourcePosition]()
        self.functions: list[ir.Function] = []
        self._function_numbers: dict[int, int] = {}
        # The executed statements, and the steps of loops.
        self.statements: list[ir.Statement | ir.Expression] = []
        self._statement_numbers: dict[int, int] = {}
        self.batches, self.inputs, self.calls = Table(BATCH), Table(INPUT), Table(CALL)
        self.launches: list[TraceLaunch] = []
        # The parent launch, event, block and thread of child launches that have not begun, and of the next launch.
        self._parents: dict[ChildLaunch, tuple[int, ...]] = {}
        self._parent: tuple[int, ...] = ()
        self.memories: list[RecordedMemory] = []
        self.failed_access: FailedAccess | None = None
        # The nodes of the next stored value, one for each leaf; and those of loaded values, if requested.
        self.stored_nodes: tuple[Any, ...] = ()
        self.loaded_nodes: list[tuple[LaneMask, tuple[Any, ...]]] | None = None
        self._next_node = 1
        self._next_frame = 0
        self._frame = (0, 0)
        self._step: tuple[IssuedStep, LaneMask] | None = None
        self._interrupted = False
        # The frame and the statement of each warp, or part of a warp, that is not running.
        self._running_part: int | None = None
        self._paused_parts: dict[int | None, tuple[tuple[int, int], tuple[IssuedStep, LaneMask] | None]] = {}
        self._kernel_frame = 0
        self._suspended_states: list[tuple[Any, ...]] = []
        self._atomics: list[tuple[Access, RecordedMemory, Array]] = []
        self._recorded_memories: WeakKeyDictionary[DeviceMemory, RecordedMemory] = WeakKeyDictionary()
        self._by_address: dict[tuple[int, int], RecordedMemory] = {}
        # For schedules that cache values in registers: the nodes of each lane's cached values, by memory, lane and
        # byte, and the frames of pending writes.
        self._cached_nodes: dict[tuple[int, int, int], int] = {}
        self._write_frames: dict[int, tuple[int, int]] = {}
        # The stack of batches, of which the last runs and the others wait for their children; and their own memories.
        self._running: list[int] = []
        self._batch_memories: list[list[RecordedMemory]] = []

    def build_data(self, launch: LaunchRecord) -> TraceData:
        """Return the data of the trace of a launch that has ended."""
        return TraceData(
            launch,
            self.stop_reason,
            self.lane_events,
            tuple(self.launches),
            tuple(describe_function(function, self.positions.numbers) for function in self.functions),
            tuple(map(convert_statement, self.statements)),
            tuple(memory.build_data() for memory in self.memories),
            self.positions.objects,
            self.kinds.objects,
            self.operators.objects,
            self.pointer_names.objects,
            self.events.array(),
            self.accesses.array(),
            self.registers.array(),
            self.pointers.array(),
            self.operations.array(),
            self.barriers.array(),
            self.batches.array(),
            self.calls.array(),
            self.inputs.array(),
            self.integers.pack(),
            self.values.pack(),
            self.masks.pack(),
        )

    # Events.

    def launch_begins(self, kernel: str, grid: Sequence[int], block: Sequence[int]) -> None:
        # A child that was launched before the recording stopped is listed even if it runs afterwards.
        if not self.stop_reason or self._parent:
            self.launches.append(TraceLaunch(len(self.launches), kernel, tuple(grid), tuple(block), *self._parent))
        self._parent = ()

    def child_launched(self, batch: BlockBatch, child: ChildLaunch) -> None:
        if not self.stop_reason:
            block, thread = divmod(child.lane, batch.geometry.lanes_per_block)
            launch = self.batches.get(self._running[-1], "launch")
            self._parents[child] = (launch, self._current_event(), batch.first + block, thread)

    def child_begins(self, child: ChildLaunch) -> None:
        self._parent = self._parents.pop(child, ())

    def batch_begins(self, batch: BlockBatch) -> None:
        self._running.append(len(self.batches))
        self._batch_memories.append([])
        if not self.stop_reason:
            self.batches.add(batch.first, batch.geometry.blocks, len(self.launches) - 1)
        self._suspended_states.append(
            (self._running_part, self._paused_parts, self._kernel_frame, self._frame, self._step)
        )
        self._running_part, self._paused_parts, self._kernel_frame, self._step = None, {}, self._new_frame(), None

    def batch_ends(self, batch: BlockBatch) -> None:
        # The batch's own memories are never accessed again, so their shadows are released.
        for memory in self._batch_memories.pop():
            memory.release_shadow()
        self._cached_nodes.clear()
        self._write_frames.clear()
        self._running.pop()
        self._running_part, self._paused_parts, self._kernel_frame, self._frame, self._step = (
            self._suspended_states.pop()
        )
        self.masks.clear_cache()

    def switch(self, batch: BlockBatch, part: int) -> None:
        self._paused_parts[self._running_part] = (self._frame, self._step)
        self._running_part = part
        self._frame, self._step = self._paused_parts.pop(part, ((0, 0), None))
        # The rest of this statement follows the events of other parts.
        self._interrupted = True

    def barrier(self, batch: BlockBatch, position: SourcePosition, mask: LaneMask) -> None:
        if not self.stop_reason:
            self.barriers.add(len(self.events), self._running[-1], self.masks.add(mask))

    def step(self, batch: BlockBatch, step: IssuedStep, mask: LaneMask) -> None:
        if self.stop_reason:
            return
        if self.lane_events + mask.count > self.max_lane_events:
            self._stop(f"{self.max_lane_events} statements of single lanes")
            return
        self.lane_events += mask.count
        self._begin(step, mask, resumed=False)

    def advance(self, batch: BlockBatch, loop: ir.Loop, mask: LaneMask) -> None:
        self.step(batch, IssuedStep(loop.position, "advance", 0, loop.step), mask)

    def _stop(self, limit: str) -> None:
        self.stop_reason = (
            f"The recording ends after {limit}; the launch ran to its end. "
            "Launch fewer threads, or raise the limit of the trace."
        )

    def _begin(self, step: IssuedStep, mask: LaneMask, *, resumed: bool) -> None:
        self._step, self._interrupted = (step, mask), False
        function, frame = self._frame
        self.events.add(
            self.kinds.number_of(step.kind),
            self.positions.number_of(step.position),
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

    def _current_event(self) -> int:
        """Return the number of the running event; the rest of a statement after a function call is a new event."""
        if self._interrupted and self._step is not None:
            self._begin(*self._step, resumed=True)
        return len(self.events) - 1

    @property
    def running_event(self) -> int:
        """The number of the running event, or the number of events if the recording has ended."""
        return len(self.events) - (not self.stop_reason)

    def conditional_operand(self, batch: BlockBatch, position: SourcePosition, operations: int, mask: LaneMask) -> None:
        if not self.stop_reason:
            self.events.increase(self._current_event(), "work", operations * mask.count)

    def branch(self, batch: BlockBatch, position: SourcePosition, mask: LaneMask, true_mask: LaneMask | None) -> None:
        if not self.stop_reason:
            event = self._current_event()
            self.events.set(event, "taken", NO_LANES if true_mask is None else self.masks.add(true_mask))

    def choose_case(
        self, batch: BlockBatch, position: SourcePosition, mask: LaneMask, entering: Sequence[LaneMask | None]
    ) -> None:
        """Record the lanes that jump to the same place as the first lane of their warp; the others diverge."""
        if self.stop_reason:
            return
        places = np.full(mask.bits.size, -1)  # past the `switch`
        for number, section in enumerate(entering):
            if section is not None:
                places[section.bits] = number
        by_warp = places.reshape(-1, WARP)
        first_lanes = mask.bits.reshape(-1, WARP).argmax(axis=1)
        follows = by_warp == by_warp[np.arange(len(by_warp)), first_lanes][:, None]
        together, _ = mask.split(follows.ravel())
        assert together is not None
        self.events.set(self._current_event(), "taken", self.masks.add(together))

    def enter_function(self, function: ir.Function, *, is_kernel: bool) -> tuple[Any, ...]:
        """Record a function call, and return the caller's state for `leave_function`.

        All warps of a batch share the kernel's frame, so that a variable is one for all lanes in every schedule.
        """
        before = (self._frame, self._step)
        if self.stop_reason:
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

    def leave_function(self, state: tuple[Any, ...]) -> None:
        """Restore the state of the caller."""
        self._frame, self._step = state
        self._interrupted = True

    def suspend_statement(self) -> tuple[Any, ...]:
        """Return the state for `leave_function`, which resumes the running statement after an interruption."""
        return (self._frame, self._step)

    # Variables.

    def record_parameter(self, slot: int, value: Any, node: Any, mask: LaneMask) -> None:
        """Record the value of a parameter of the function that was just entered.

        Parameters
        ----------
        slot, value, node
            As of `record_variable`.
        mask : LaneMask
            The lanes that entered the function.
        """
        if not self.stop_reason:
            self._record_variable(len(self.events) - 1, slot, value, node, mask)

    def record_variable(self, slot: int, value: Any, node: Any, mask: LaneMask) -> None:
        """Record a new value of a scalar or pointer variable of the running function.

        Parameters
        ----------
        value : scalar, array or PointerValue
            The value, one for all lanes or one per lane.
        node : int or array
            The nodes of the value.
        mask : LaneMask
            The lanes that assign it.
        """
        if not self.stop_reason:
            self._record_variable(self._current_event(), slot, value, node, mask)

    def _record_variable(self, event: int, slot: int, value: Any, node: Any, mask: LaneMask) -> None:
        if isinstance(value, np.generic | np.ndarray):
            self._record_register(event, slot, value, node, mask)
        elif isinstance(value, PointerValue):
            for address, lanes in value.split_by_memory(mask) if value.mixed else [(value, mask)]:
                name = address.memory.name if address.memory is not None else ""
                offset = np.asarray(select_active(address.offset, lanes), np.int64)
                number = self.pointer_names.number_of(name)
                row = (event, self._frame[1], slot, self.masks.add(lanes), number, self.values.add(offset))
                self.pointers.add(*row)

    def _record_register(self, event: int, slot: int, value: Any, node: Any, mask: LaneMask) -> None:
        self.registers.add(
            event,
            self._frame[1],
            slot,
            self.masks.add(mask),
            self.values.add(select_active(value, mask)),
            self.integers.add(select_active(node, mask)),
        )

    # Operations.

    def record_operation(
        self, operator: str, mask: LaneMask, value: Any, nodes: Sequence[Any], operands: Sequence[Any]
    ) -> Any:
        """Record an operation and return the nodes of its results; 0 in lanes without any operand that has a node.

        Parameters
        ----------
        operator : str
            As of `TraceNode`.
        mask : LaneMask
            The lanes that execute it.
        value : scalar or array
            The results, one for all lanes or one per lane.
        nodes, operands : sequence
            The nodes and the values of the operands, each one for all lanes or one per lane.
        """
        packed = [select_active(node, mask) for node in nodes]
        if self.stop_reason or not any(np.any(node) for node in packed):
            return NO_NODE
        first = self._allocate_nodes(mask.count)
        if first is None:
            return NO_NODE
        self._add_operation(
            first,
            operator,
            mask,
            select_active(value, mask),
            packed,
            [select_active(operand, mask) for operand in operands],
        )
        numbers = np.arange(first, first + mask.count, dtype=np.int32)
        if not any(np.all(node) for node in packed):
            # The provenance of a lane's value must not depend on which other lanes run at the same time.
            numbers *= np.any([np.broadcast_to(node != 0, mask.count) for node in packed], axis=0)
        if mask.full:
            return numbers
        lane_nodes = np.zeros(mask.bits.size, np.int32)
        lane_nodes[mask.lanes] = numbers
        return lane_nodes

    def _add_operation(
        self, first: int, operator: str, mask: LaneMask, value: Any, nodes: Sequence[Any], operands: Sequence[Any]
    ) -> None:
        """Record an operation with new nodes from `first`; all values contain only the mask's lanes."""
        sources, operand_values = [-1] * 3, [-1] * 3
        for index, (node, operand) in enumerate(zip(nodes, operands, strict=True)):
            sources[index] = self.integers.add(node)
            if not np.all(node) and isinstance(operand, np.generic | np.ndarray):
                operand_values[index] = self.values.add(operand)
        self.operations.add(
            self._current_event(),
            self.operators.number_of(operator),
            self.masks.add(mask),
            first,
            self.values.add(value),
            *sources,
            *operand_values,
        )

    def _allocate_nodes(self, count: int) -> int | None:
        """Return the first of `count` new nodes; if there are not enough, stop the recording and return None."""
        first = self._next_node
        if first + count > MAX_NODES:
            self._stop(f"{MAX_NODES - 1} values")
            return None
        self._next_node += count
        return first

    # Memory.

    def record_arguments(
        self, parameters: Sequence[tuple[str, Type]], values: Sequence[Any], variables: dict[str, Any]
    ) -> None:
        """Record the initial contents of a launch's arrays."""
        if self.stop_reason:
            return
        for (_, type), value in zip(parameters, values, strict=True):
            if isinstance(type, Pointer) and isinstance(value.memory, FlatMemory):
                self._add_array(value.memory, type.element)
        for address in variables.values():
            self._add_array(address.memory, None)

    def _add_array(self, memory: FlatMemory, element: Type | None) -> None:
        key = (memory.data.ctypes.data, memory.data.size)
        if key not in self._by_address:
            kinds = {leaf.dtype for _, leaf in leaves(element) if isinstance(leaf, Scalar)} if element else set()
            dtype = kinds.pop() if len(kinds) == 1 else None
            recorded = RecordedMemory.from_array(
                len(self.memories), memory.name, memory.space, memory.data.copy(), dtype
            )
            self.memories.append(recorded)
            self._by_address[key] = recorded
        self._recorded_memories[memory] = self._by_address[key]

    def _recorded_memory(self, batch: BlockBatch, memory: DeviceMemory) -> RecordedMemory:
        recorded = self._recorded_memories.get(memory)
        if recorded is None and isinstance(memory, FlatMemory) and memory.space == "global":
            self._add_array(memory, None)  # reached only through a pointer in memory or in a struct
            recorded = self._recorded_memories[memory]
        if recorded is None:
            number, own_batch, blocks = len(self.memories), self._running[-1], batch.geometry.blocks
            if isinstance(memory, LocalMemory):
                recorded = RecordedMemory.for_local_variable(number, memory, batch.geometry.lanes, own_batch)
            else:
                assert isinstance(memory, FlatMemory)
                size, stride = shared_size(batch, memory), memory.data.size // blocks
                recorded = RecordedMemory.for_shared_variable(number, memory.name, size, blocks, stride, own_batch)
            self.memories.append(recorded)
            self._batch_memories[-1].append(recorded)
            self._recorded_memories[memory] = recorded
        return recorded

    def access(self, batch: BlockBatch, access: Access) -> None:
        values = access.values if isinstance(access.values, tuple) else (access.values,)
        if self.stop_reason:
            if self.loaded_nodes is not None:
                self.loaded_nodes.append((access.mask, (NO_NODE,) * len(values)))
            return
        memory = self._recorded_memory(batch, access.memory)
        if access.site.action == "atomic":
            self._atomics.append((access, memory, memory.flat_index(batch, access.element, access.size, access.mask)))
            return
        offset, nodes = 0, []
        for index, value in enumerate(values):
            number = value if isinstance(value, np.ndarray | np.generic) else value.number()
            size = number.dtype.itemsize
            element = access.element if size == access.size else (access.element * access.size + offset) // size
            offset += size
            if access.site.action == "read":
                nodes.append(self._read(batch, access, memory, element, number, index))
            else:
                node = self.stored_nodes[index] if index < len(self.stored_nodes) else NO_NODE
                if access.register is not None:
                    self._cache_nodes(access, memory, memory.flat_index(batch, element, size, access.mask), node)
                    if access.register.any():
                        self._write_frames[id(access)] = self._frame
                        continue
                self._write(batch, access.mask, memory, element, number, node, index)
        if self.loaded_nodes is not None:
            self.loaded_nodes.append((access.mask, tuple(nodes)))

    def write_back(self, batch: BlockBatch, step: IssuedStep, access: Access, mask: LaneMask) -> None:
        if self.stop_reason or id(access) not in self._write_frames:
            return
        before = self._frame, self._step
        self._frame = self._write_frames[id(access)]
        self.step(batch, IssuedStep(step.position, "evaluate", 0, step.executed), mask)
        if not self.stop_reason:
            memory = self._recorded_memory(batch, access.memory)
            value = np.asarray(access.values)
            flat = memory.flat_index(batch, access.element, access.size, mask)
            nodes = np.zeros(mask.bits.size, np.int32)
            nodes[mask.lanes] = self._lookup_nodes(access, memory, flat, mask)
            self._write(batch, mask, memory, access.element, value if value.ndim else value[()], nodes, 0)
        self.leave_function(before)

    def _cache_nodes(self, access: Access, memory: RecordedMemory, flat: Any, node: Any) -> None:
        """Store the nodes of the values that lanes cache in registers."""
        mask = access.mask
        nodes = np.broadcast_to(select_active(node, mask), mask.count).tolist()
        for lane, at, each in zip(mask.lanes.tolist(), _lane_indices(flat, mask), nodes, strict=True):
            self._cached_nodes[memory.number, lane, at * access.size] = each

    def _lookup_nodes(self, access: Access, memory: RecordedMemory, flat: Any, mask: LaneMask) -> list[int]:
        """Return the nodes of the values that lanes have cached in registers."""
        places = zip(mask.lanes.tolist(), _lane_indices(flat, mask), strict=True)
        return [self._cached_nodes.get((memory.number, lane, at * access.size), 0) for lane, at in places]

    def _read(
        self, batch: BlockBatch, access: Access, memory: RecordedMemory, element: Any, value: Any, part: int
    ) -> Any:
        mask, dtype, register = access.mask, value.dtype, access.register
        needs_nodes = self.loaded_nodes is not None or register is not None
        if needs_nodes and not self._reduce_unit(memory, dtype):
            return NO_NODE
        from_register = register is not None and register.any()
        values = self.values.add(select_active(value, mask)) if from_register else -1
        self._record_access("read", memory, dtype, mask, element, values, part)
        if not needs_nodes:
            return NO_NODE
        flat = memory.flat_index(batch, element, dtype.itemsize, mask)
        nodes = memory.shadow_nodes(dtype)[flat]
        base = memory.base
        if base:
            nodes = np.where(nodes == 0, flat * memory.units_per_element(dtype) + base, nodes)
        nodes = np.maximum(nodes, 0).astype(np.int32)
        if register is not None:
            if from_register:
                cached = np.array(self._lookup_nodes(access, memory, flat, mask), np.int32)
                nodes = np.where(register[mask.lanes], cached, nodes)
            self._cache_nodes(access, memory, flat, _expand_to_lanes(nodes, mask))
        return _expand_to_lanes(nodes, mask)

    def _reduce_unit(self, memory: RecordedMemory, dtype: np.dtype[Any]) -> bool:
        """Make a memory's unit no larger than a type; return whether there are enough nodes for it."""
        if not self.stop_reason and memory.needs_smaller_unit(dtype.itemsize):
            base = 0
            if memory.initial is not None:
                count = memory.total_bytes // dtype.itemsize
                first = self._allocate_nodes(count)
                if first is None:
                    return False
                base = first
                self.inputs.add(base, count, memory.number, dtype.itemsize)
            memory.set_unit(dtype.itemsize, base)
        return not self.stop_reason

    def _write(
        self, batch: BlockBatch, mask: LaneMask, memory: RecordedMemory, element: Any, value: Any, node: Any, part: int
    ) -> None:
        if not self._reduce_unit(memory, value.dtype):
            return
        flat = np.broadcast_to(memory.flat_index(batch, element, value.dtype.itemsize, mask), mask.count)
        nodes = np.broadcast_to(select_active(node, mask), mask.count)
        self._record_access("write", memory, value.dtype, mask, element, -1, part)
        memory.write(flat, np.broadcast_to(select_active(value, mask), mask.count), nodes)

    def _record_access(
        self,
        action: str,
        memory: RecordedMemory,
        dtype: np.dtype[Any],
        mask: LaneMask,
        element: Any,
        value: int,
        part: int,
    ) -> None:
        """Record an access, or one `part` of a vector access."""
        if memory.dtype is None:
            memory.dtype = dtype
        self.accesses.add(
            self._current_event(),
            ACTIONS.index(action),
            memory.number,
            self.values.type_number(dtype),
            self.masks.add(mask),
            self.integers.add(select_active(element, mask)),
            memory.writes,
            value,
            part,
        )

    def record_failed_access(
        self,
        batch: BlockBatch,
        address: PointerValue,
        index: Any,
        dtype: np.dtype[Any],
        mask: LaneMask,
        action: str,
        count: int,
    ) -> None:
        """Record the lanes of an access that raised an error, if their elements are out of bounds or misaligned.

        Parameters
        ----------
        batch : BlockBatch
            The batch of the lanes.
        index : int, array or None
            The distance from the pointer in elements; None for 0.
        dtype : dtype
            The type of the numbers that an element consists of.
        action : str
            "read", "write" or "atomic".
        count : int
            The numbers per element: more than 1 for a vector.
        """
        size = dtype.itemsize * count
        for part, lanes in [] if self.stop_reason else address.split_by_memory(mask):
            if part.memory is None or isinstance(part.memory, ClusterMemory):
                continue
            memory = self._recorded_memory(batch, part.memory)
            start = np.asarray(select_active(part.offset, lanes), np.int64)
            distance = np.asarray(0 if index is None else select_active(index, lanes)).astype(np.int64)
            offsets = np.broadcast_to(start + distance * size, lanes.count)
            is_wrong = (offsets < 0) | (offsets + size > memory.size) | (offsets % size != 0)
            if is_wrong.any():
                if memory.dtype is None:
                    memory.dtype = dtype
                wrong = np.flatnonzero(is_wrong)[:_MAX_FAILED_LANES]
                blocks, threads = np.divmod(lanes.lanes[wrong], batch.geometry.lanes_per_block)
                self.failed_access = FailedAccess(
                    action,
                    memory.number,
                    size,
                    tuple(offsets[wrong].tolist()),
                    tuple((blocks + batch.first).tolist()),
                    tuple(threads.tolist()),
                )
                return

    def record_atomic(self, batch: BlockBatch, op: str, operands: Sequence[Any], nodes: Sequence[Any], old: Any) -> Any:
        """Record an atomic operation, executed in lane order; return the nodes of the old values.

        Parameters
        ----------
        batch : BlockBatch
            The batch of the lanes.
        op : str
            The operation, as of AtomicOperation.
        operands, nodes : sequence
            The operands and their nodes, each one for all lanes or one per lane.
        old : scalar or array
            The old value of each lane.
        """
        old_nodes = np.zeros(batch.geometry.lanes, np.int32)
        for access, memory, flat in self._atomics:
            mask = access.mask
            at = np.broadcast_to(flat, mask.count)
            before = np.broadcast_to(select_active(old, mask), mask.count)
            if not self._reduce_unit(memory, before.dtype):
                break
            current = memory.shadow_nodes(before.dtype)[at]
            if memory.base:
                current = np.where(current == 0, at * memory.units_per_element(before.dtype) + memory.base, current)
            start = np.maximum(current, 0).astype(np.int32)
            # Sorted by element, then by lane: the value after one lane's operation is the old value of the next lane.
            order = np.argsort(at, kind="stable")
            first = np.concatenate(([True], at[order][1:] != at[order][:-1]))
            after = np.empty_like(before)
            last = np.concatenate((first[1:], [True]))
            after[order] = np.where(
                last, memory.content(access.memory, before.dtype)[at[order]], _next_in_group(before[order])
            )
            operand_nodes = [np.broadcast_to(select_active(node, mask), mask.count) for node in nodes]
            base: int | None = None
            if op == "exch":
                new_nodes = operand_nodes[0]
            elif op == "cas":
                new_nodes = _swap_nodes(order, first, start, before, select_active(operands[0], mask), operand_nodes[1])
            else:
                base = self._allocate_nodes(mask.count)
                if base is None:
                    break
                new_nodes = np.arange(base, base + mask.count, dtype=np.int32)
            previous = np.empty_like(start)
            previous[order] = np.where(first, start[order], _previous_in_group(new_nodes[order]))
            if base is not None:
                sources, values = [previous, operand_nodes[0]], [before, select_active(operands[0], mask)]
                self._add_operation(base, f"atomic {op}", mask, after, sources, values)
            self._record_access("atomic", memory, before.dtype, mask, access.element, self.values.add(before), 0)
            memory.write(at, after, new_nodes)
            old_nodes[mask.lanes] = previous
        self._atomics.clear()
        return old_nodes


def _expand_to_lanes(packed: Any, mask: LaneMask) -> Any:
    """Return one number per lane of the batch, 0 in lanes outside the mask; the inverse of `select_active`."""
    if mask.full or not (isinstance(packed, np.ndarray) and packed.ndim):
        return packed if mask.full or isinstance(packed, np.generic) else packed[()]
    lanes = np.zeros(mask.bits.size, packed.dtype)
    lanes[mask.lanes] = packed
    return lanes


def _lane_indices(flat: Any, mask: LaneMask) -> list[int]:
    """Return an index for each lane of a mask."""
    indices: list[int] = np.broadcast_to(flat, mask.count).tolist()
    return indices


def _next_in_group(values: Array) -> Array:
    return np.concatenate((values[1:], values[:1]))


def _previous_in_group(values: Array) -> Array:
    return np.concatenate((values[-1:], values[:-1]))


def _swap_nodes(order: Array, first: Array, start: Array, before: Array, expected: Any, new: Array) -> Array:
    """Return the node of the element's value after each lane's compare-and-swap."""
    nodes = np.empty_like(start)
    swaps = np.broadcast_to(before == expected, before.shape)
    current = np.int32(0)
    for is_first, lane in zip(first, order, strict=True):
        current = new[lane] if swaps[lane] else start[lane] if is_first else current
        nodes[lane] = current
    return nodes
