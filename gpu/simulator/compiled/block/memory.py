"""Memory of the variables of a block's threads: registers, arrays in scratch memory, or shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpu.base.errors import SourcePosition
from gpu.simulator import ir
from gpu.simulator.compiled.analysis.plan import Plan, PlannedFrame, find_bindings, used_variables, variables_by_item
from gpu.simulator.compiled.analysis.planner import KernelPlan
from gpu.simulator.compiled.analysis.pointer_flow import find_reachable_variables
from gpu.simulator.compiled.analysis.rematerialization import Assignments, RematerializableVariables, find_changed_slots
from gpu.simulator.compiled.analysis.scalar_replacement import RowShape, ScalarReplacement, SplitPlace
from gpu.simulator.compiled.block.scratch import Scratch
from gpu.simulator.compiled.block.thread_block import ThreadBlock
from gpu.simulator.compiled.children import find_launch_sites
from gpu.simulator.compiled.llvm.assembly import Assembly, memory_type
from gpu.simulator.ir.walking import walk
from gpu.simulator.types import BOOL, Pointer, Scalar, Type, leaves

FAILURE_VARIABLE = "lockstep.failed"
"""The variable for a failing thread's record, 7 words of 8 bytes: the failure's number from 1, threadIdx, blockIdx."""

LAUNCH_CALLBACK_VARIABLE = "lockstep.launched"
"""The variable that holds the address of the callback for records of child launches."""

_SWIZZLE_ALIGNMENT = 1024
"""Bytes after which the swizzle of tiles in shared memory repeats."""

SHARED_STRIDE_VARIABLE = "lockstep.shared_stride"
"""The variable that holds a block's shared memory size, 8 bytes: the distance between the blocks of a cluster."""

HANDLE_COUNT_VARIABLE = "lockstep.handles"
"""The variable that counts the handles returned so far, 8 bytes."""

# Records a failure; if several threads fail, the first one is reported. It rarely runs, so it is a function.
_FAILURE_FUNCTION = (
    """define internal void
@thread.fails(ptr %word, i64 %number, i32 %axis.0, i32 %axis.1, i32 %axis.2, i32 %axis.3, i32 %axis.4, i32 %axis.5)
noinline cold nounwind {
  %pair = cmpxchg ptr %word, i64 0, i64 %number seq_cst seq_cst
  %first = extractvalue { i64, i1 } %pair, 1
  br i1 %first, label %tell, label %leave
tell:
"""
    + "".join(
        f"""  %wide.{axis} = zext i32 %axis.{axis} to i64
  %place.{axis} = getelementptr i64, ptr %word, i64 {axis + 1}
  store i64 %wide.{axis}, ptr %place.{axis}
"""
        for axis in range(6)
    )
    + """  br label %leave
leave:
  ret void
}"""
)

Value = str | tuple[str, ...]
"""The value of an instruction; for a struct, one value per leaf."""


@dataclass(frozen=True)
class ThreadFailure:
    """A failure of a thread, as the rest of a sentence about the thread, and its kind."""

    description: str
    position: SourcePosition
    kind: str = "other"
    advice: str = ""


class KernelMemory:
    """The memory of a kernel, from the view of the current thread.

    Parameters
    ----------
    replacement : ScalarReplacement
        The local memory that is split into scalars.

    Attributes
    ----------
    shared_bytes : int
        The size of all shared arrays of known size.
    module_variables : dict of str to str
        The addresses of `__constant__` and `__device__` variables that the kernel uses.
    failures : list of ThreadFailure
    """

    def __init__(
        self, asm: Assembly, block: ThreadBlock, scratch: Scratch, planned: KernelPlan, replacement: ScalarReplacement
    ) -> None:
        self._asm = asm
        self._block = block
        self._scratch = scratch
        self._replacement = replacement
        self._frames, self._varying, self._computed = planned.frames, planned.varying_variables, planned.computed_values
        self._rematerializable = {
            path: RematerializableVariables(
                Assignments(frame.function, list(walk(frame.function.body))),
                frozenset(slot for each, slot in self._varying if each == path),
                frozenset(slot for each, slot in self._computed if each == path),
            )
            for path, frame in self._frames.items()
        }
        self._shared: dict[object, int] = {}
        self._variables: dict[tuple[str, int], str] = {}
        self._values: dict[tuple[str, int], Value] = {}
        self._memories: dict[tuple[str, int], str | tuple[int, int]] = {}
        self._parts: dict[tuple[str, int], SplitPlace] = {}
        self._shared_parameters: set[tuple[str, int]] = set()
        self._changed_slots_by_function: dict[int, frozenset[int]] = {}
        self._wide_variables: set[tuple[str, int]] = set()
        self.shared_bytes = 0
        self.module_variables: dict[str, str] = {}
        self.failures: list[ThreadFailure] = []
        self._uninitialized = {
            (path, node.slot)
            for path, frame in self._frames.items()
            for node in walk(frame.function.body)
            if isinstance(node, ir.Declare) and node.value is None
        }
        self._plan_memories = planned.added_memories
        self._launches = find_launch_sites(planned.frames[""].function)
        self._find_wide_variables(planned.items)

    def _find_wide_variables(self, items: Plan) -> None:
        """Find the variables that outlive one item: those used in two, and those that their values depend on."""
        first_items: dict[tuple[str, int], int] = {}
        for number, item_keys in enumerate(variables_by_item(items)):
            for key in item_keys:
                if first_items.setdefault(key, number) != number:
                    self._wide_variables.add(key)
        declared = {
            (path, node.slot)
            for path, frame in self._frames.items()
            for node in walk(frame.function.body)
            if isinstance(node, ir.DeclareMemory)
        }
        bindings = list(find_bindings(items))
        # Local memory that is passed to functions that wait is used in many items.
        passed = {key for frame, bind in bindings for key in used_variables(frame, bind.value)}
        self._wide_variables |= (declared | self._plan_memories) & passed
        self._wide_variables |= {
            ("", slot) for slot in range(len(self._frames[""].function.parameters)) if ("", slot) in self._varying
        }
        pointed = find_reachable_variables(self._wide_variables, self._frames.values(), bindings)
        self._wide_variables |= declared & pointed
        for path, frame in self._frames.items():
            dependencies = [slot for each, slot in (*self._wide_variables, *self._computed) if each == path]
            for slot in dependencies:
                value = self.computed_expression(frame, slot)
                for node in walk(value) if value is not None else ():
                    if isinstance(node, ir.Local) and node.slot not in dependencies:
                        dependencies.append(node.slot)
                        self._wide_variables.add((path, node.slot))

    # Variables.

    def computed_expression(self, frame: PlannedFrame, slot: int) -> ir.Expression | None:
        """Return the expression that is computed at each use of a variable; None for a stored variable."""
        key = (frame.path, slot)
        if key in self._computed:
            return self._computed[key]
        return (
            self._rematerializable[frame.path].find_expression(slot)
            if key in self._varying and key in self._wide_variables
            else None
        )

    def initialize_parameter(self, frame: PlannedFrame, slot: int, type: Type, value: Value) -> None:
        """Initialize a parameter of a function that a thread calls.

        Parameters
        ----------
        frame : PlannedFrame
            The frame of the called function.
        value : str or tuple of str
            The argument's value; for a struct, one per leaf. It is stored only if the function assigns the parameter.
        """
        if slot in self._changed_slots(frame.function):
            self.store(self.variable_address(frame, slot, type), type, value, private=True)
        else:
            self._values[frame.path, slot] = value

    def parameter_value(self, frame: PlannedFrame, slot: int) -> Value | None:
        """Return the value of a parameter that is never assigned; None for any other variable."""
        return self._values.get((frame.path, slot))

    def variable_address(self, frame: PlannedFrame, slot: int, type: Type) -> str:
        """Return the address of a variable."""
        key = (frame.path, slot)
        if self.is_wide(frame, slot):
            return self._scratch.element_address(self._scratch.allocate(key, type.size), type.size, self._block.thread)
        if key not in self._variables:
            self._variables[key] = self._asm.alloca(type.size, "variable")
            if key not in self._varying and key in self._uninitialized:
                self._asm.persistent_variables.add(self._variables[key])
        return self._variables[key]

    def is_varying(self, frame: PlannedFrame, slot: int) -> bool:
        """Return whether threads may have different values of a variable."""
        return (frame.path, slot) in self._varying

    def is_wide(self, frame: PlannedFrame, slot: int) -> bool:
        """Return whether a variable is an array with a value per thread, because it outlives one item."""
        return (frame.path, slot) in self._varying and (frame.path, slot) in self._wide_variables

    def find_wide_offset(self, frame: PlannedFrame, expression: ir.Expression) -> int | None:
        """Return the offset of the array of a variable that outlives one item; None for any other expression."""
        if isinstance(expression, ir.Load) and isinstance(expression.place, ir.Local):
            expression = expression.place
        if not isinstance(expression, ir.Local) or not self.is_wide(frame, expression.slot):
            return None
        if (
            self.computed_expression(frame, expression.slot) is not None
            or self.array_address(frame, expression.slot) is not None
        ):
            return None
        return self._scratch.allocate((frame.path, expression.slot), expression.type.size)

    def module_variable_address(self, name: str) -> str:
        """Return the address of a `__constant__` or `__device__` variable."""
        return self.module_variables.setdefault(name, f"%module.{len(self.module_variables)}")

    def launch_number(self, launch: ir.LaunchCall) -> int:
        """Return the number of a launch among the kernel's launch sites."""
        return next(
            number
            for number, site in enumerate(self._launches)
            if site.function is launch.function and site.position == launch.position
        )

    def fail(self, failure: ThreadFailure, thread: Sequence[str]) -> None:
        """Record a failure, unless another is recorded, and end the worker; `thread` is threadIdx."""
        asm = self._asm
        self.failures.append(failure)
        asm.define(_FAILURE_FUNCTION)
        axes = ", ".join(f"i32 {each}" for each in (*thread, *(self._block.special("blockIdx", i) for i in range(3))))
        failure_address = self.module_variable_address(FAILURE_VARIABLE)
        asm.emit(f"call void @thread.fails(ptr {failure_address}, i64 {len(self.failures)}, {axes})")
        asm.emit(asm.exit_instruction)
        asm.is_terminated = True

    def check(self, condition: str, failure: ThreadFailure) -> None:
        """Record a failure of the thread, as `fail`, unless a condition holds."""
        holds, fails = self._asm.new_name("holds"), self._asm.new_name("fails")
        self._asm.branch(condition, holds, fails)
        self._asm.begin_block(fails)
        self.fail(failure, self._block.thread_index)
        self._asm.begin_block(holds)

    # Arrays and structs.

    def array_address(self, frame: PlannedFrame, slot: int) -> str | None:
        """Return the address of an array, local or shared; None for a slot that holds a pointer."""
        for shared in frame.function.shared:
            if shared.slot == slot:
                return self._shared_address(shared)
        memory = self._memories.get((frame.path, slot))
        return self._scratch.element_address(*memory, self._block.thread) if isinstance(memory, tuple) else memory

    def _shared_address(self, shared: ir.SharedVariable) -> str:
        key = shared.key
        if key not in self._shared:
            if shared.is_dynamic:
                self._shared[key] = -1  # at `extern_offset`
            else:
                self._shared[key] = self._align_shared(shared.size)
                self.shared_bytes = self._shared[key] + -(-shared.size // 64) * 64
        return "%extern" if shared.is_dynamic else self._asm.offset("%shared", self._shared[key])

    def _align_shared(self, size: int) -> int:
        """Return the offset of the next shared array; the swizzle of large ones depends on the address."""
        alignment = _SWIZZLE_ALIGNMENT if size >= _SWIZZLE_ALIGNMENT else 64
        return -(-self.shared_bytes // alignment) * alignment

    @property
    def extern_offset(self) -> int:
        """The offset of the extern shared array, after all arrays of known size."""
        return self._align_shared(_SWIZZLE_ALIGNMENT if "extern" in self._shared else 0)

    def is_shared(self, frame: PlannedFrame, pointer: ir.Expression) -> bool:
        """Return whether a pointer certainly points to shared memory, which only this block uses."""
        match pointer:
            case ir.Local(_, slot, _):
                is_shared_parameter = (frame.path, slot) in self._shared_parameters
                return is_shared_parameter or any(shared.slot == slot for shared in frame.function.shared)
            case ir.Offset(_, inner, _) | ir.Member(_, inner, _) | ir.Cast(_, inner):
                return self.is_shared(frame, inner)
        return False

    def is_global(self, frame: PlannedFrame, pointer: ir.Expression) -> bool:
        """Return whether a pointer certainly points to global memory: to a kernel argument's or the module's."""
        match pointer:
            case ir.Global():
                return True
            case ir.Local(_, slot, _):
                is_kernel_parameter = not frame.path and slot < len(frame.function.parameters)
                return is_kernel_parameter and slot not in self._changed_slots(frame.function)
            case ir.Offset(_, inner, _) | ir.Member(_, inner, _) | ir.Cast(_, inner):
                return self.is_global(frame, inner)
        return False

    def propagate_shared(self, inner: PlannedFrame, slot: int, frame: PlannedFrame, argument: ir.Expression) -> None:
        """Record that a parameter points to shared memory, if its argument certainly does.

        Parameters
        ----------
        inner : PlannedFrame
            The frame of the called function.
        slot : int
            The parameter's slot in it.
        frame : PlannedFrame
            The caller's frame.
        """
        if not isinstance(argument.type, Pointer) or not self.is_shared(frame, argument):
            return
        if slot not in self._changed_slots(inner.function):
            self._shared_parameters.add((inner.path, slot))

    def _changed_slots(self, function: ir.Function) -> frozenset[int]:
        if id(function) not in self._changed_slots_by_function:
            self._changed_slots_by_function[id(function)] = find_changed_slots(list(walk(function.body)))
        return self._changed_slots_by_function[id(function)]

    def local_address(self, frame: PlannedFrame, slot: int, size: int) -> str:
        """Return the address of local memory at its declaration."""
        key = (frame.path, slot)
        if key in self._wide_variables:
            stride = -(-size // 16) * 16
            array = (self._scratch.allocate(key, stride), stride)
            self._memories[key] = array
            return self._scratch.element_address(*array, self._block.thread)
        if key not in self._memories:
            self._memories[key] = self._asm.alloca(size, "own")
        place = self._memories[key]
        assert isinstance(place, str)
        return place

    # Memory that is split.

    def find_part(self, frame: PlannedFrame, slot: int) -> SplitPlace | None:
        """Return the split memory that a variable holds, or points to."""
        key = (frame.path, slot)
        if key in self._wide_variables and slot in self._split_slots(frame.function):
            return SplitPlace(*key, 0)
        return self._parts.get(key)

    def set_alias(self, frame: PlannedFrame, slot: int, part: SplitPlace) -> None:
        """Record that a parameter points to split memory."""
        self._parts[frame.path, slot] = part

    def member_address(self, part: SplitPlace, size: int) -> str:
        """Return the address of a thread's member of split memory."""
        rows = self.row_shape(part)
        if rows is not None:
            return self.row_address(part, str(part.offset // rows.width))
        key = (part.frame, part.slot, part.offset)
        return self._scratch.element_address(self._scratch.allocate(key, size), size, self._block.thread)

    def member_sizes(self, part: SplitPlace) -> dict[int, int]:
        """Return the members of split memory, sizes in bytes by offsets in bytes."""
        rows = self.row_shape(part)
        if rows is not None:
            return {rows.width * number: rows.width for number in range(rows.count)}
        return self._replacement.find_split_members(self._frames[part.frame].function)[part.slot]

    def row_shape(self, part: SplitPlace) -> RowShape | None:
        """Return the row shape of split memory; None if each member has an array."""
        return self._replacement.find_row_shapes(self._frames[part.frame].function).get(part.slot)

    def row_address(self, part: SplitPlace, row: str) -> str:
        """Return the address of a thread's value in a row, by the row's number, an i64."""
        rows = self.row_shape(part)
        assert rows is not None
        start = self._scratch.allocate((part.frame, part.slot, "rows"), rows.count * rows.width)
        row_start = self._asm.value(f"mul nsw i64 {row}, {self._scratch.stride}")
        return self._scratch.element_address(
            start, rows.width, self._asm.value(f"add nsw i64 {row_start}, {self._block.thread}")
        )

    def find_split_slots(self, frame: PlannedFrame) -> set[int]:
        """Return the slots of a frame that hold split memory."""
        return {slot for slot in self._split_slots(frame.function) if (frame.path, slot) in self._wide_variables}

    def _split_slots(self, function: ir.Function) -> set[int]:
        return {*self._replacement.find_split_members(function), *self._replacement.find_row_shapes(function)}

    # Values.

    def load(self, address: str, type: Type, *, private: bool = False) -> Value:
        """Return the value at an address; `private` marks memory that only the current code accesses."""
        access = "" if private else self._block.access
        values = []
        for offset, leaf in leaves(type):
            member_address = self._asm.offset(address, offset)
            value = self._asm.value(f"load {memory_type(leaf)}, ptr {member_address}, align {leaf.size}{access}", "l")
            values.append(self._asm.value(f"icmp ne i8 {value}, 0") if leaf == BOOL else value)
        return values[0] if isinstance(type, Scalar | Pointer) else tuple(values)

    def store(self, address: str, type: Type, value: Value, *, private: bool = False) -> None:
        """Write a value to an address.

        Parameters
        ----------
        value : str or tuple of str
            The value; for a struct, one per leaf.
        private : bool
            Whether only the current code accesses the memory; otherwise other threads may.
        """
        access = "" if private else self._block.access
        values = value if isinstance(value, tuple) else (value,)
        for (offset, leaf), part in zip(leaves(type), values, strict=True):
            member_address = self._asm.offset(address, offset)
            stored = self._asm.value(f"zext i1 {part} to i8") if leaf == BOOL else part
            self._asm.emit(f"store {memory_type(leaf)} {stored}, ptr {member_address}, align {leaf.size}{access}")
