"""The planner: divide a kernel where its threads wait for each other, and find the values on which they agree."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gpu.base.errors import SourcePosition
from gpu.simulator import ir
from gpu.simulator.compiled.analysis.intervals import Intervals
from gpu.simulator.compiled.analysis.plan import (
    Bind,
    BlockBarrier,
    ClusterBarrierStep,
    Exchange,
    PhaseTest,
    Plan,
    PlannedCall,
    PlannedFrame,
    PlannedIf,
    PlannedLoop,
    Region,
    UniformAssignment,
)
from gpu.simulator.compiled.analysis.rematerialization import (
    Assignments,
    RematerializableVariables,
    find_constant,
)
from gpu.simulator.compiled.analysis.scalar_replacement import ScalarReplacement
from gpu.simulator.compiled.analysis.synchronization import (
    accesses_volatile,
    has_exchange,
    has_synchronization,
    needs_separate_warps,
)
from gpu.simulator.compiled.analysis.traversal import fold_condition, is_unrolled, outermost_loops, remove_dead_code
from gpu.simulator.compiled.analysis.uniformity import Uniformity
from gpu.simulator.compiled.llvm.assembly import UnsupportedKernel
from gpu.simulator.ir.intrinsics import BLOCK_VOTES
from gpu.simulator.ir.kernel_traits import syncs_in_branches
from gpu.simulator.ir.waits import repeats_itself
from gpu.simulator.ir.walking import find_reachable_functions, replace_children, walk
from gpu.simulator.types import Scalar, Type, Void


@dataclass(frozen=True)
class KernelPlan:
    """A kernel's plan, the variables that differ between threads, and those of them that are computed at each use."""

    items: Plan
    frames: dict[str, PlannedFrame]
    varying_variables: frozenset[tuple[str, int]]
    computed_values: dict[tuple[str, int], ir.Expression]
    added_memories: set[tuple[str, int]]
    """Memory added by the plan, for objects that are passed to functions that wait."""


def plan_kernel(
    kernel: ir.Function, block: Sequence[int], constants: frozenset[str], replacement: ScalarReplacement
) -> KernelPlan:
    """Return the plan of a kernel.

    Parameters
    ----------
    block : sequence of int
        Threads per block along x, y and z.
    constants : frozenset of str
        The names of `__constant__` variables; all threads load the same values from them.
    replacement : ScalarReplacement
        The local memory that is split into scalars.

    Raises
    ------
    UnsupportedKernel
        The kernel uses something that this executor does not support.
    """
    for function in find_reachable_functions(kernel):
        if any(
            callee is function for direct_callee in function.calls for callee in find_reachable_functions(direct_callee)
        ):
            raise UnsupportedKernel("recursion")
    varying: frozenset[tuple[str, int]] = frozenset()
    intervals, by_warps = Intervals(block), needs_separate_warps(kernel)
    assignments: dict[int, Assignments] = {}
    while True:
        planner = _Planner(varying, intervals, constants, replacement, assignments, by_warps=by_warps)
        frame = planner.frames[""] = PlannedFrame("", kernel, kernel.slots)
        planned = planner.plan_block(frame, kernel.body)
        all_varying = varying | planner.varying_found
        if all_varying == varying:
            return KernelPlan(planned, planner.frames, varying, planner.computed_values, planner.added_memories)
        varying = all_varying


def _creates_object(expression: ir.Expression) -> bool:
    """Return whether an expression creates an object that outlives the calls to which it is passed."""
    nodes = list(walk(expression))
    arguments = (argument for node in nodes if isinstance(node, ir.Call) for argument in node.arguments)
    passed = {id(part) for argument in arguments if not has_exchange(argument) for part in walk(argument)}
    return any(isinstance(node, ir.Temporary) and id(node) not in passed for node in nodes)


class _Planner:
    """Plans for an assumed set of varying variables, and collects those that turn out to vary too."""

    def __init__(
        self,
        varying: frozenset[tuple[str, int]],
        intervals: Intervals,
        constants: frozenset[str],
        replacement: ScalarReplacement,
        assignments: dict[int, Assignments],
        *,
        by_warps: bool,
    ) -> None:
        self._varying = varying
        self._intervals = intervals
        self.added_memories: set[tuple[str, int]] = set()
        self._by_warps = by_warps
        self._replacement = replacement
        self._uniformity = Uniformity(varying, constants)
        self.varying_found: set[tuple[str, int]] = set()
        self._context_count = 0
        self._context: list[int] = [0]
        self._declared: dict[tuple[str, int], int] = {}
        self._inlined_count = 0
        self.computed_values: dict[tuple[str, int], ir.Expression] = {}
        self.frames: dict[str, PlannedFrame] = {}
        self._assignments = assignments
        self._rematerializable: dict[str, RematerializableVariables] = {}
        self._unsplit_by_function: dict[int, set[int]] = {}

    # Which variables differ between threads.

    def _is_uniform_assignment(
        self, frame: PlannedFrame, slot: int, value: ir.Expression | None, *, declared: bool
    ) -> bool:
        """Register an assignment; return whether the block can execute it once for all threads."""
        key = (frame.path, slot)
        if declared:
            self._declared[key] = self._context[-1]
        in_same_context = self._declared.setdefault(key, 0) == self._context[-1]
        if in_same_context and self._uniformity.is_uniform(frame, value) and key not in self._varying:
            return True
        self.varying_found.add(key)
        return False

    def _analyze_frame(self, frame: PlannedFrame) -> tuple[Assignments, RematerializableVariables]:
        """Return the assignments in a frame's function, and its rematerializable variables."""
        function = frame.function
        if id(function) not in self._assignments:
            self._assignments[id(function)] = Assignments(function, list(walk(function.body)))
        assignments = self._assignments[id(function)]
        if frame.path not in self._rematerializable:
            varying = frozenset(slot for path, slot in self._varying if path == frame.path)
            self._rematerializable[frame.path] = RematerializableVariables(assignments, varying)
        return assignments, self._rematerializable[frame.path]

    def _find_induction_step(self, frame: PlannedFrame, loop: ir.Loop) -> ir.Update | None:
        """Return the block's step, if a loop's variable is each thread's start plus the block's common progress."""
        match loop.step:
            case ir.Update(Scalar() as type, ir.Local(_, slot, _), "+" | "-" as op, by, Scalar() as compute) if (
                (frame.path, slot) in self._varying
                # `i += gridDim.x * blockDim.x` adds an unsigned to an int: the bits are the same.
                and compute.size == type.size in (4, 8)
                and not (type.is_float or compute.is_float)
                and (type.is_signed or op == "+")
                and self._uniformity.is_uniform(frame, by)
            ):
                pass
            case _:
                return None
        start = self._find_loop_start(frame, slot, loop)
        if start is None:
            return None
        progress = _progress_variable(slot, type)
        self.computed_values[frame.path, slot] = ir.Binary(type, "+", start, progress)
        return ir.Update(type, progress, op, by, compute)

    def _find_loop_start(self, frame: PlannedFrame, slot: int, loop: ir.Loop) -> ir.Expression | None:
        """Return a loop variable's start; None if the variable changes elsewhere, or its start must be stored."""
        assignments, rematerializable = self._analyze_frame(frame)
        nodes = assignments.nodes
        declarations = [node for node in nodes if isinstance(node, ir.Declare) and node.slot == slot]
        if (
            len(declarations) != 1
            or declarations[0].value is None
            or not rematerializable.is_rematerializable(declarations[0].value)
        ):
            return None
        if assignments.change_counts[slot] != 1 or assignments.use_counts[slot] != _uses(slot, walk(loop)):
            return None
        return declarations[0].value

    def _find_common_condition(self, frame: PlannedFrame, loop: ir.Loop) -> ir.Expression | None:
        """Return a condition common to all threads for a loop with different starts but equally many iterations.

        `for (int i = lane; i < 256; i += 32)` has eight iterations for every lane.
        """
        match loop.condition, loop.step:
            case (
                ir.Binary(kind, "<" | "<=" as op, left, right),
                ir.Update(Scalar() as type, ir.Local(_, slot, _), "+", by, Scalar()),
            ) if (frame.path, slot) in self._varying and not type.is_float and type.size in (4, 8):
                pass
            case _:
                return None
        counter, single_values = _strip_casts(left), self._analyze_frame(frame)[0].lasting_slots
        if not isinstance(counter, ir.Local) or counter.slot != slot:
            return None
        step, bound = find_constant(by, single_values), find_constant(right, single_values)
        if bound is None or not step or step < 0 or _has_jumps(loop):
            return None
        loop_start = self._find_loop_start(frame, slot, loop)
        starts = self._intervals.find_interval(frame, loop_start) if loop_start is not None else None
        if starts is None or starts[0] < 0:
            return None
        rounds = {max(-((start - bound - (op == "<=")) // step), 0) for start in starts}
        if len(rounds) != 1 or starts[1] + (max(rounds) + 1) * step >= 2**31:
            return None
        first = ir.Binary(type, "+", ir.Const(type, type.dtype.type(starts[0])), _progress_variable(slot, type))
        number = first if left.type == type else ir.Cast(left.type, first)
        return ir.Binary(kind, op, number, right)

    def _mark_varying(self, frame: PlannedFrame, statement: Any) -> None:
        """Mark the variables that a region assigns as varying."""
        for node in walk(statement):
            match node:
                case ir.Assign(_, ir.Local(_, slot, _), _) | ir.Update(_, ir.Local(_, slot, _)):
                    self.varying_found.add((frame.path, slot))
                case ir.Declare(slot) | ir.DeclareMemory(slot):
                    self.varying_found.add((frame.path, slot))

    # Statements.

    def plan_block(self, frame: PlannedFrame, body: ir.Statement) -> Plan:
        """Return the plan of a sequence of statements."""
        planned: Plan = []
        for statement in body.statements if isinstance(body, ir.Block) else (body,):
            self._statement(frame, statement, planned)
        return planned

    def _statement(self, frame: PlannedFrame, statement: ir.Statement, planned: Plan) -> None:
        match statement:
            case ir.Block(statements):
                for inner in statements:
                    self._statement(frame, inner, planned)
            case ir.Barrier(position):
                planned.append(BlockBarrier(position) if self._by_warps else Region())
            case ir.Evaluate(ir.ClusterBarrier() as barrier):
                planned.append(ClusterBarrierStep(barrier))
            case ir.Evaluate(ir.Fence(_, "__syncwarp")):
                planned.append(Region())
            case ir.If(condition, then, orelse) if (holds := fold_condition(condition)) is not None:
                side = then if holds else orelse
                if side is not None:
                    self._statement(frame, side, planned)
            case ir.If() if self._is_planned(frame, statement):
                self._if(frame, statement, planned)
            case ir.Loop() if self._is_planned(frame, statement):
                self._loop(frame, statement, planned)
            case ir.Declare(slot, type, value, position):
                value = self._hoist_exchanges(frame, value, planned)
                declaration = ir.Declare(slot, type, value, position)
                if self._is_uniform_assignment(frame, slot, value, declared=True) and not isinstance(type, Void):
                    # Nothing reads the variable before its declaration, so it can move before the open region.
                    planned.insert(
                        len(planned) - bool(planned and isinstance(planned[-1], Region)),
                        UniformAssignment(frame, declaration),
                    )
                else:
                    self._add_to_region(frame, declaration, planned)
            case ir.DeclareMemory(_, _, values) if has_exchange(statement):
                hoisted_values = tuple(
                    (offset, self._hoist_exchanges(frame, value, planned)) for offset, value in values
                )
                self._add_to_region(frame, dataclasses.replace(statement, values=hoisted_values), planned)
            case ir.Evaluate(ir.Assign(_, ir.Local(_, slot, _), value) as assign, position):
                value = self._hoist_exchanges(frame, value, planned)
                changed = dataclasses.replace(assign, value=value)
                self._plan_assignment(frame, slot, value, ir.Evaluate(changed, position), planned)
            case ir.Evaluate(ir.Update(_, ir.Local(_, slot, _), _, value) as update, position):
                value = self._hoist_exchanges(frame, value, planned)
                updated = dataclasses.replace(update, value=value)
                self._plan_assignment(frame, slot, value, ir.Evaluate(updated, position), planned)
            case ir.Evaluate(ir.Assign(type, ir.Element() as place, value), position) if accesses_volatile(statement):
                self._plan_volatile_store(frame, type, place, value, position, planned)
            case ir.Evaluate(ir.Update(type, ir.Element() as place, op, value, Scalar() as compute), position) if (
                accesses_volatile(statement) and compute == type
            ):
                changed_to = ir.Binary(compute, op, ir.Load(type, place), value)
                self._plan_volatile_store(frame, type, place, changed_to, position, planned)
            case ir.Evaluate(expression, position) if has_synchronization(expression):
                remaining = self._hoist_exchanges(frame, expression, planned)
                if not isinstance(remaining, ir.Local):
                    self._add_to_region(frame, ir.Evaluate(remaining, position), planned)
            case ir.Return(value, position) if has_synchronization(value) if value is not None else False:
                self._add_to_region(frame, ir.Return(self._hoist_exchanges(frame, value, planned), position), planned)
            case _:
                if has_exchange(statement):
                    raise UnsupportedKernel(f"threads that wait for each other inside of a {_variable_name(statement)}")
                self._add_to_region(frame, statement, planned)

    def _plan_volatile_store(
        self,
        frame: PlannedFrame,
        type: Type,
        place: ir.Element,
        value: ir.Expression,
        position: SourcePosition,
        planned: Plan,
    ) -> None:
        """Plan a store to volatile memory: all threads read before the first one writes."""
        slot = frame.new_slot(type)
        self.varying_found.add((frame.path, slot))
        value = self._hoist_exchanges(frame, value, planned)
        planned.append(Region())
        self._add_to_region(frame, ir.Declare(slot, type, value, position), planned)
        planned.append(Region())
        self._add_to_region(frame, ir.Evaluate(ir.Assign(type, place, ir.Local(type, slot, "")), position), planned)
        planned.append(Region())

    def _plan_assignment(
        self, frame: PlannedFrame, slot: int, value: ir.Expression | None, statement: ir.Statement, planned: Plan
    ) -> None:
        if self._is_uniform_assignment(frame, slot, value, declared=False):
            planned.append(UniformAssignment(frame, statement))
        else:
            self._add_to_region(frame, statement, planned)

    def _add_to_region(self, frame: PlannedFrame, statement: ir.Statement | Bind, planned: Plan) -> None:
        """Add a statement of each thread to the open region, or to a new one."""
        self._mark_varying(frame, statement.value if isinstance(statement, Bind) else statement)
        if not (planned and isinstance(planned[-1], Region)):
            planned.append(Region())
        region = planned[-1]
        assert isinstance(region, Region)
        region.statements.append((frame, statement))

    # Control flow around regions.

    def _is_planned(self, frame: PlannedFrame, statement: ir.Statement) -> bool:
        """Return whether the block executes a branch or loop: it contains a barrier, or a loop to run in lockstep."""
        if has_synchronization(statement):
            return True
        if isinstance(statement, ir.Loop):
            return self._runs_in_lockstep(frame, statement)
        return any(
            isinstance(inner, ir.Loop) and self._runs_in_lockstep(frame, inner) for inner in outermost_loops(statement)
        )

    def _runs_in_lockstep(self, frame: PlannedFrame, loop: ir.Loop) -> bool:
        nodes = list(walk(loop.body))
        if self._replacement.runs_individually(frame.function, loop):
            return False
        if not self._find_unsplit_arrays(frame).isdisjoint(node.slot for node in nodes if isinstance(node, ir.Local)):
            return False
        if is_unrolled(loop) and self._find_common_condition(frame, loop) is None:
            return False
        steps = isinstance(loop.step, ir.Update) and self._uniformity.is_uniform(frame, loop.step.value)
        return self._uniformity.is_uniform(frame, loop.condition) or (steps and _accesses_memory(loop.body))

    def _find_unsplit_arrays(self, frame: PlannedFrame) -> set[int]:
        """Return the slots of local arrays that are not split, and are best kept in registers."""
        function = frame.function
        if id(function) not in self._unsplit_by_function:
            split = {*self._replacement.find_split_members(function), *self._replacement.find_row_shapes(function)}
            nodes = self._analyze_frame(frame)[0].nodes
            owned = {node.slot for node in nodes if isinstance(node, ir.DeclareMemory)}
            self._unsplit_by_function[id(function)] = owned - split
        return self._unsplit_by_function[id(function)]

    def _if(self, frame: PlannedFrame, statement: ir.If, planned: Plan) -> None:
        condition = self._hoist_exchanges(frame, statement.condition, planned)
        assert condition is not None
        self._mark_varying(frame, condition)
        uniform = self._uniformity.is_uniform(frame, condition)
        if not uniform and syncs_in_branches(statement):
            raise UnsupportedKernel("lanes of two branches that may meet at __syncwarp()")
        with_mask = self._new_context(not uniform)
        then = self._plan_masked(with_mask, frame, statement.then)
        orelse = self._plan_masked(with_mask, frame, statement.orelse) if statement.orelse is not None else None
        planned.append(PlannedIf(frame, condition, uniform, then, orelse))

    def _loop(self, frame: PlannedFrame, loop: ir.Loop, planned: Plan) -> None:
        before: Plan = []
        condition = loop.condition
        uniform = self._uniformity.is_uniform(frame, condition) and not _has_jumps(loop)
        block_step = self._find_induction_step(frame, loop)
        common = self._find_common_condition(frame, loop) if block_step is not None else None
        if common is not None:
            uniform, condition = True, common
        if block_step is not None:
            assert isinstance(block_step.type, Scalar)
            assert isinstance(block_step.place, ir.Local)
            start = ir.Declare(block_step.place.slot, block_step.type, _zero_constant(block_step.type), loop.position)
            planned.append(UniformAssignment(frame, start))
        context = self._new_context(not uniform)
        self._context.append(context)
        condition = self._hoist_exchanges(frame, condition, before)
        if condition is not None:
            self._mark_varying(frame, condition)
        body = self.plan_block(frame, loop.body)
        step: Plan = []
        # If no thread skips the rest of an iteration, the step is part of the body.
        skips = any(isinstance(node, ir.Jump) and node.kind == "continue" for node in walk(loop.body))
        if block_step is not None:
            (step if skips else body).append(UniformAssignment(frame, ir.Evaluate(block_step, loop.position)))
        elif loop.step is not None:
            self._statement(frame, ir.Evaluate(loop.step, loop.position), step if skips else body)
        self._context.pop()
        repetition = loop.position if repeats_itself(loop) else None
        planned.append(PlannedLoop(frame, before, condition, uniform, body, step, loop.tests_first, repetition))

    def _new_context(self, masked: bool) -> int:
        """Return the number of the inner context: a new one if a mask deactivates threads."""
        if masked:
            self._context_count += 1
            return self._context_count
        return self._context[-1]

    def _plan_masked(self, context: int, frame: PlannedFrame, body: ir.Statement) -> Plan:
        self._context.append(context)
        planned = self.plan_block(frame, body)
        self._context.pop()
        return planned

    # Expressions that wait.

    def _hoist_exchanges(self, frame: PlannedFrame, expression: Any, planned: Plan) -> Any:
        """Plan the exchanges within an expression, and return the remaining expression."""
        if expression is None or not has_exchange(expression):
            return expression
        if isinstance(expression, ir.Logical) and has_exchange(expression.right):
            raise UnsupportedKernel("an exchange between threads on the right of && or ||")
        if isinstance(expression, ir.Select) and (has_exchange(expression.chosen) or has_exchange(expression.other)):
            raise UnsupportedKernel("an exchange between threads in one side of ?:")
        if isinstance(expression, ir.Call) and has_synchronization(expression.function.body):
            return self._inline_call(frame, expression, planned)
        if isinstance(expression, ir.Sequence):
            position = next(node.position for node in walk(expression) if hasattr(node, "position"))
            if (construction := self._plan_construction(frame, expression, planned)) is not None:
                return construction
            if _creates_object(expression):
                raise UnsupportedKernel("an exchange between threads in the construction of an object")
            first = self._hoist_exchanges(frame, expression.first, planned)
            self._add_to_region(frame, ir.Evaluate(first, position), planned)
            return self._hoist_exchanges(frame, expression.second, planned)
        remaining = replace_children(expression, lambda part: self._hoist_exchanges(frame, part, planned))
        is_test = isinstance(remaining, ir.BarrierPhase) and remaining.op == "test"
        if not isinstance(remaining, ir.Warp) and not is_test:
            return remaining
        self._mark_varying(frame, remaining)
        slot = frame.new_slot(remaining.type)
        self.varying_found.add((frame.path, slot))
        if isinstance(remaining, ir.BarrierPhase):
            planned.append(PhaseTest(frame, slot, remaining))
            return ir.Local(remaining.type, slot, remaining.op)
        if self._by_warps and remaining.op in BLOCK_VOTES:
            raise UnsupportedKernel("a vote of the block together with a barrier object in memory")
        uniform = tuple(self._uniformity.is_uniform(frame, argument) for argument in remaining.arguments)
        planned.append(Exchange(frame, slot, remaining, uniform))
        return ir.Local(remaining.type, slot, remaining.op)

    def _plan_construction(self, frame: PlannedFrame, construction: ir.Sequence, planned: Plan) -> ir.Expression | None:
        """Plan the exchanges in a constructor's arguments, and return the construction with their results."""
        started, after = construction.first, construction.second
        if not isinstance(started, ir.Sequence) or has_exchange(after):
            return None
        match started.first, started.second:
            case ir.Assign(_, _, ir.Temporary(_, None)), ir.Call() as call if not has_synchronization(
                call.function.body
            ):
                arguments = tuple(self._hoist_exchanges(frame, argument, planned) for argument in call.arguments)
                call_with_results = dataclasses.replace(started, second=dataclasses.replace(call, arguments=arguments))
                return dataclasses.replace(construction, first=call_with_results)
        return None

    def _plan_object(self, frame: PlannedFrame, argument: Any, position: SourcePosition, planned: Plan) -> Any:
        """Plan memory for an object that is passed to a function that waits, for the duration of the call."""
        match argument:
            case ir.Cast(_, inner):  # to a base class
                return dataclasses.replace(argument, operand=self._plan_object(frame, inner, position, planned))
            case ir.Member(_, inner, _):
                return dataclasses.replace(argument, pointer=self._plan_object(frame, inner, position, planned))
            case ir.Temporary() as temporary:
                pass
            case _:
                return argument
        slot = frame.new_slot(temporary.type)
        self.varying_found.add((frame.path, slot))
        self.added_memories.add((frame.path, slot))
        values = ((0, temporary.value),) if temporary.value is not None else ()
        declaration = ir.DeclareMemory(slot, temporary.type.element.size, values, False, "a temporary value", position)
        self._add_to_region(frame, declaration, planned)
        return ir.Local(temporary.type, slot, "")

    def _inline_call(self, frame: PlannedFrame, call: ir.Call, planned: Plan) -> ir.Expression:
        """Plan the body of a function that waits, in a separate frame."""
        self._inlined_count += 1
        if self._inlined_count > 200:
            raise UnsupportedKernel("recursive functions that wait")
        function = call.function
        inner = PlannedFrame(f"{frame.path}/{self._inlined_count}", function, function.slots)
        self.frames[inner.path] = inner
        for slot, ((_, type), argument) in enumerate(zip(function.parameters, call.arguments, strict=True)):
            value = self._hoist_exchanges(frame, argument, planned)
            value = self._plan_object(frame, value, call.position, planned)
            bind = Bind(inner, slot, type, value)
            self._declared[inner.path, slot] = self._context[-1]
            if self._uniformity.is_uniform(frame, value) and (inner.path, slot) not in self._varying:
                planned.append(UniformAssignment(frame, bind))
            else:
                self.varying_found.add((inner.path, slot))
                self._add_to_region(frame, bind, planned)
        reachable_part = remove_dead_code(function.body)
        *body, last = reachable_part.statements or (ir.Block(()),)
        if any(
            isinstance(node, ir.Return) and node is not last for statement in (*body, last) for node in walk(statement)
        ):
            return self._inline_with_early_returns(frame, inner, call, reachable_part, planned)
        for statement in body:
            self._statement(inner, statement, planned)
        if not isinstance(last, ir.Return):
            self._statement(inner, last, planned)
        if not isinstance(last, ir.Return) or last.value is None:
            return _zero_constant(Scalar("int32"))
        value = self._hoist_exchanges(inner, last.value, planned)
        slot = frame.new_slot(call.type)
        self.varying_found.add((frame.path, slot))
        self._add_to_region(inner, Bind(frame, slot, call.type, value), planned)
        return ir.Local(call.type, slot, function.name)

    def _inline_with_early_returns(
        self, frame: PlannedFrame, inner: PlannedFrame, call: ir.Call, body: ir.Block, planned: Plan
    ) -> ir.Expression:
        """Plan the body of a function that some threads leave before others."""
        result: ir.Expression = _zero_constant(Scalar("int32"))
        if not isinstance(call.type, Void):
            slot = frame.new_slot(call.type)
            self.varying_found.add((frame.path, slot))
            inner.result = frame, slot, call.type
            result = ir.Local(call.type, slot, call.function.name)
        planned.append(PlannedCall(inner, self._plan_masked(self._new_context(masked=True), inner, body)))
        return result


def _variable_name(statement: ir.Statement) -> str:
    return type(statement).__name__.lower()


def _zero_constant(type: Scalar) -> ir.Const:
    return ir.Const(type, type.dtype.type(0))


def _progress_variable(slot: int, type: Scalar) -> ir.Local:
    """Return the variable for the block's progress in a loop over another variable."""
    return ir.Local(type, -1 - slot, "")


def _strip_casts(expression: ir.Expression) -> ir.Expression:
    while isinstance(expression, ir.Cast) and isinstance(expression.operand.type, Scalar):
        if expression.operand.type.is_float or expression.operand.type.size > expression.type.size:
            break
        expression = expression.operand
    return expression


def _has_jumps(loop: ir.Loop) -> bool:
    """Return whether threads may leave a loop, or one of its iterations, early."""
    return any(isinstance(node, ir.Jump | ir.Return) for node in walk(loop.body))


def _uses(slot: int, nodes: Iterable[Any]) -> int:
    return sum(isinstance(node, ir.Local) and node.slot == slot for node in nodes)


def _accesses_memory(node: Any) -> bool:
    return any(isinstance(each, ir.Element) for each in walk(node))
