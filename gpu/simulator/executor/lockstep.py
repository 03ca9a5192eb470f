"""The lockstep executor: each statement runs in all lanes of a batch at once, as NumPy operations under a mask.

A kernel is compiled to closures once. A value is one NumPy scalar if all lanes agree, as for constants and most loop
counters, or an array with one value per lane. The closure of a statement takes the mask of the lanes that run it and
returns the mask of those that continue with the next; the frame records lanes that break, continue or return.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gpu.base.errors import LaunchError, SourcePosition
from gpu.base.lane_mask import LaneMask, union_masks
from gpu.simulator import ir
from gpu.simulator.executor.barriers import pass_barrier
from gpu.simulator.executor.expressions import ExpressionCompiler
from gpu.simulator.executor.operation_counter import OperationCounter
from gpu.simulator.executor.state.call_frame import CallFrame, Evaluator, Executable
from gpu.simulator.executor.state.memory import AccessSite, LocalMemory, SharedMemory
from gpu.simulator.executor.state.observer import IssuedStep
from gpu.simulator.executor.state.pointers import PointerValue
from gpu.simulator.executor.state.progress import ProgressMonitor, StarvationError
from gpu.simulator.executor.state.running_batch import RunningBatch
from gpu.simulator.executor.values import PLAIN, PlainValues
from gpu.simulator.ir.value_uses import ValueUses
from gpu.simulator.ir.waits import (
    MAX_REPETITIONS,
    classify_wait,
    has_wait_loop,
    never_ends,
    only_tests_phases,
    reads_strongly,
    repeats_itself,
)
from gpu.simulator.ir.walking import find_reachable_functions
from gpu.simulator.types import VOID, Pointer, Scalar, Type, Void, leaves

_ITERATIONS_PER_TEST = 4
"""Loop iterations between two tests of the time limit, which keep their cost negligible."""


class CompiledFunction:
    """A kernel or `__device__` function, compiled to closures at its first call or before."""

    def __init__(self, function: ir.Function, compiler: LockstepCompiler) -> None:
        self.function = function
        self._compiler = compiler
        self._values = compiler.values
        self._body: Executable | None = None

    def call(self, caller: CallFrame, mask: LaneMask, arguments: Sequence[Any]) -> Any:
        """Run a `__device__` function in the lanes of `mask` and return its value."""
        frame = CallFrame(caller.batch, self.function.slots, caller.kernel or caller, caller.globals, caller.depth + 1)
        self._run(frame, mask, arguments)
        if frame.result is None and self.function.type != VOID:
            # Every lane has ended, or it lacks a return statement: C++ leaves this value undefined.
            return self._values.lift(create_zero(self.function.type))
        return frame.result

    def launch(
        self, batch: RunningBatch, arguments: Sequence[Any], variables: dict[str, PointerValue], mask: LaneMask
    ) -> LaneMask | None:
        """Run a kernel in lanes of a batch.

        Parameters
        ----------
        arguments : sequence
            The value of each parameter, one for all lanes.
        variables : dict of str to PointerValue
            The addresses of the module's variables, by name.

        Returns
        -------
        LaneMask or None
            The lanes that reach the kernel's end without a return statement; None if there are none.
        """
        values = self._values.bind_arguments(self.function, arguments, variables)
        return self._run(CallFrame(batch, self.function.slots, None, variables, 0), mask, values)

    def _run(self, frame: CallFrame, mask: LaneMask, arguments: Sequence[Any]) -> LaneMask | None:
        body = self._body or self.compile(is_kernel=frame.kernel is None)
        for shared in self.function.shared:
            frame.values[shared.slot] = self._values.lift(get_shared_memory(frame.batch, shared))
        for slot, argument in enumerate(arguments):
            frame.values[slot] = argument
            frame.declaration_masks[slot] = mask
        return body(frame, mask)

    def compile(self, *, is_kernel: bool) -> Executable:
        """Compile the body, which a call otherwise does, and return it."""
        self._body = self._compiler.compile_body(self.function, is_kernel=is_kernel)
        return self._body


class LockstepCompiler:
    """Compiles statements over an algebra of values; each function is compiled at its first call."""

    def __init__(self, values: PlainValues = PLAIN) -> None:
        self.values = values
        self._functions: dict[int, CompiledFunction] = {}
        self._operation_counter = OperationCounter()
        self._value_uses = ValueUses()
        compiler = ExpressionCompiler(values, self.get_function, self._operation_counter, self._value_uses)
        self._expressions, self._bare = compiler.compile_expression, compiler.bare_compiler.compile_expression

    def get_function(self, function: ir.Function) -> CompiledFunction:
        """Return the compiled form of a function."""
        if id(function) not in self._functions:
            self._functions[id(function)] = CompiledFunction(function, self)
        return self._functions[id(function)]

    def compile_body(self, function: ir.Function, *, is_kernel: bool) -> Executable:
        """Compile the body of a kernel or of another function."""
        self._operation_counter.analyze_kernel(function)
        if is_kernel:
            self._value_uses.analyze_kernel(find_reachable_functions(function))
        return self.values.body(function, self.compile_statement(function.body))

    def compile_statement(self, statement: ir.Statement) -> Executable:
        """Compile a statement of the current function."""
        match statement:
            case ir.Evaluate():
                return self._evaluate(statement)
            case ir.Declare():
                return self._declare(statement)
            case ir.DeclareMemory():
                return self._declare_memory(statement)
            case ir.Switch():
                return self._switch(statement)
            case ir.Block(statements):
                inside = _sequence_steps([self.compile_statement(inner) for inner in statements])
                declared = list(_iterate_declared(statement)) if statement.is_scope else []
                return self._scope(inside, declared) if declared else inside
            case ir.If():
                return self._if(statement)
            case ir.Loop():
                return self._loop(statement)
            case ir.Jump("break"):
                return _break
            case ir.Jump():
                return _continue
            case ir.Return():
                return self._return(statement)
            case ir.Barrier(position):
                return self._barrier(position)

    def _barrier(self, position: SourcePosition) -> Executable:
        def step(frame: CallFrame, mask: LaneMask) -> LaneMask:
            pass_barrier(frame, mask, position)
            return mask

        return step

    def _issue(
        self,
        statement: ir.Evaluate | ir.Declare | ir.DeclareMemory | ir.If | ir.Loop | ir.Switch | ir.Return,
        kind: str,
    ) -> IssuedStep:
        operations = self._operation_counter.count_operations(statement)
        return IssuedStep(statement.position, kind, operations, statement)

    def _evaluate(self, statement: ir.Evaluate) -> Executable:
        run = self._bare(statement.expression)
        issued = self._issue(statement, "evaluate")

        def step(frame: CallFrame, mask: LaneMask) -> LaneMask | None:
            frame.batch.begin(issued, mask)
            run(frame, mask)
            return mask if frame.batch.faults is None else frame.batch.faults.retire(frame, mask)

        return step

    def _declare(self, statement: ir.Declare) -> Executable:
        slot, type, noted = statement.slot, statement.type, self.values.on_assign
        if statement.value is None:
            empty = self.values.lift(create_zero(type))
            run: Evaluator = lambda frame, mask: empty  # noqa: E731
        else:
            run = self._expressions(statement.value)
        issued = self._issue(statement, "declare")

        def step(frame: CallFrame, mask: LaneMask) -> LaneMask | None:
            frame.batch.begin(issued, mask)
            value = run(frame, mask)
            frame.values[slot], frame.declaration_masks[slot] = value, mask
            if noted is not None:
                noted(slot, value, mask)
            return mask if frame.batch.faults is None else frame.batch.faults.retire(frame, mask)

        return step

    def _declare_memory(self, statement: ir.DeclareMemory) -> Executable:
        slot, size, name = statement.slot, statement.size, statement.name
        zeroed, punned = statement.zeroed, statement.punned
        values = self.values
        initial = [(offset, leaves(value.type), self._expressions(value)) for offset, value in statement.values]
        site = AccessSite(statement.position, "write")
        issued = self._issue(statement, "declare")

        def step(frame: CallFrame, mask: LaneMask) -> LaneMask:
            frame.batch.begin(issued, mask)
            address = PointerValue(
                create_local_memory(frame.batch, statement, name, size, zeroed=zeroed, punned=punned)
            )
            for offset, parts, value in initial:
                values.store(frame.batch, address.offset_by(offset, 1), parts, 0, value(frame, mask), mask, site)
            frame.values[slot], frame.declaration_masks[slot] = values.lift(address), mask
            return mask

        return step

    def _scope(self, inside: Executable, declared: Sequence[ir.DeclareMemory]) -> Executable:
        strip = self.values.strip

        def step(frame: CallFrame, mask: LaneMask) -> LaneMask | None:
            through = inside(frame, mask)
            if frame.batch.observer is not None:
                for variable in declared:
                    if frame.values[variable.slot] is not None:
                        memory = strip(frame.values[variable.slot]).memory
                        frame.batch.observer.local_ends(frame.batch, memory, variable.position, mask)
            return through

        return step

    def _switch(self, statement: ir.Switch) -> Executable:
        value = self._bare(statement.value)
        sections = [
            (section.values, section.is_default, self.compile_statement(section.body)) for section in statement.sections
        ]
        cases = [case for section in statement.sections for case in section.values]

        issued = self._issue(statement, "switch")

        def step(frame: CallFrame, mask: LaneMask) -> LaneMask | None:
            frame.batch.begin(issued, mask)
            returned, continued = frame.returned_mask, frame.continued_mask
            frame.continued_mask = None
            selector = value(frame, mask)
            if frame.batch.faults is not None:
                retired = frame.batch.faults.retire(frame, mask)
                if retired is None:
                    return None
                mask = retired
            entering = []
            for values, is_default, _ in sections:
                enters = _matches_case(selector, values)
                entering.append(mask.split(enters | ~_matches_case(selector, cases) if is_default else enters)[0])
            if frame.batch.observer is not None:
                frame.batch.observer.choose_case(frame.batch, issued.position, mask, entering)
            live: LaneMask | None = None
            for (_, _, run), entered in zip(sections, entering, strict=True):
                live = union_masks(live, entered)
                if live is not None:
                    live = run(frame, live)
            jumped, frame.continued_mask = frame.continued_mask, union_masks(continued, frame.continued_mask)
            after = mask if frame.returned_mask is returned else mask.without(frame.returned_mask)
            return after.without(jumped) if after is not None else None

        return step

    def _if(self, statement: ir.If) -> Executable:
        condition = self._bare(statement.condition)
        then = self.compile_statement(statement.then)
        orelse = self.compile_statement(statement.orelse) if statement.orelse is not None else None

        issued = self._issue(statement, "if")

        def step(frame: CallFrame, mask: LaneMask) -> LaneMask | None:
            frame.batch.begin(issued, mask)
            chosen = condition(frame, mask)
            if frame.batch.faults is not None:
                retired = frame.batch.faults.retire(frame, mask)
                if retired is None:
                    return None
                mask = retired
            true, false = mask.split(chosen)
            if frame.batch.observer is not None:
                frame.batch.observer.branch(frame.batch, issued.position, mask, true)
            left = then(frame, true) if true is not None else None
            right = orelse(frame, false) if orelse is not None and false is not None else false
            if left is true and right is false:
                return mask  # no lane was lost; the identical mask object lets assignments skip the merge
            return union_masks(left, right)

        return step

    def _loop(self, statement: ir.Loop) -> Executable:
        condition = self._bare(statement.condition) if statement.condition is not None else None
        advance = self._bare(statement.step) if statement.step is not None else None
        body = self.compile_statement(statement.body)
        tests_first, position, watch = statement.tests_first, statement.position, _LoopWatch(statement, self.values)
        issued = self._issue(statement, "loop")

        def test(frame: CallFrame, live: LaneMask) -> LaneMask | None:
            frame.batch.begin(issued, live)
            remaining, _ = live.split(condition(frame, live))  # type: ignore[misc]
            if remaining is not None and frame.batch.faults is not None:
                remaining = frame.batch.faults.retire(frame, remaining)
            if frame.batch.observer is not None:
                frame.batch.observer.branch(frame.batch, position, live, remaining)
            return remaining

        def step(frame: CallFrame, mask: LaneMask) -> LaneMask | None:
            returned, outer = frame.returned_mask, frame.continued_mask
            frame.continued_mask = None
            live: LaneMask | None = mask
            count = mask.count
            tests, iterations = tests_first, 0
            while live is not None:
                if tests and condition is not None:
                    live = test(frame, live)
                    if live is None:
                        if frame.batch.monitor is not None and watch.may_wait:
                            frame.batch.monitor.leave_loop(position)
                        break
                tests = True
                live = _next_iteration(frame, body(frame, live), live)
                if live is not None and advance is not None:
                    if frame.batch.observer is not None:
                        frame.batch.observer.advance(frame.batch, statement, live)
                    advance(frame, live)
                frame.batch.rounds += 1
                if frame.batch.monitor is not None and watch.may_wait:
                    watch.record_iteration(frame, frame.batch.monitor, live, count)
                    count = live.count if live is not None else 0
                iterations += 1
                if limit := watch.find_limit(frame.batch, live, iterations):
                    raise watch.build_error(frame, live, mask, iterations, limit)
            frame.continued_mask = outer
            return mask if frame.returned_mask is returned else mask.without(frame.returned_mask)

        return step

    def _return(self, statement: ir.Return) -> Executable:
        run = self._expressions(statement.value) if statement.value is not None else None
        merged = self.values.merge
        issued = self._issue(statement, "return")

        def step(frame: CallFrame, mask: LaneMask) -> None:
            if frame.kernel is None and frame.batch.registers is not None:
                frame.batch.registers.end_lanes(mask)
            frame.batch.begin(issued, mask)
            if run is not None:
                result = run(frame, mask)
                frame.result = result if frame.result is None else merged(frame.result, result, mask)
            frame.returned_mask = union_masks(frame.returned_mask, mask)

        return step


def create_zero(type: Type) -> Any:
    """Return the value of a type whose bytes are 0: of a struct or vector, those of its leaves; of void, None."""
    match type:
        case Scalar():
            return type.dtype.type(0)
        case Pointer():
            return PointerValue(None)
        case Void():
            return None
    return tuple(create_zero(leaf) for _, leaf in leaves(type))


def get_shared_memory(batch: RunningBatch, shared: ir.SharedVariable) -> PointerValue:
    """Return a batch's memory for a `__shared__` variable."""
    key = shared.key
    if key not in batch.shared:
        size = batch.shared_bytes if shared.is_dynamic else shared.size
        element_bytes = shared.size // math.prod(shared.shape) if shared.shape else 0
        batch.shared[key] = SharedMemory(shared.name, size, batch, element_bytes)
    return PointerValue(batch.shared[key])


def create_local_memory(
    batch: RunningBatch, declaration: object, name: str, size: int, *, zeroed: bool, punned: bool
) -> LocalMemory:
    """Return local memory for a variable that lanes declare.

    Parameters
    ----------
    batch : RunningBatch
        The batch of the lanes.
    declaration : object
        Identifies the declaration in the source.
    name : str
        The variable's name.
    size : int
        Bytes per lane.
    zeroed : bool
        Whether the memory starts with zeros.
    punned : bool
        Whether elements may be read in another size than they were written in.
    """
    if batch.scheduler is not None:
        return batch.scheduler.local_memory(declaration, name, size, zeroed=zeroed, punned=punned)
    return LocalMemory(name, size, batch.geometry.lanes, zeroed=zeroed, punned=punned)


def _iterate_declared(statement: ir.Statement) -> Iterator[ir.DeclareMemory]:
    """Yield the variables in memory that a scope declares, except those of nested scopes."""
    match statement:
        case ir.DeclareMemory():
            yield statement
        case ir.Switch(_, sections):
            for section in sections:
                yield from _iterate_declared(section.body)
        case ir.Block(statements):
            for inner in statements:
                if not (isinstance(inner, ir.Block) and inner.is_scope):
                    yield from _iterate_declared(inner)


def _matches_case(value: Any, cases: Sequence[int]) -> Any:
    return np.isin(value, cases) if isinstance(value, np.ndarray) else np.bool_(int(value) in cases)


def _next_iteration(frame: CallFrame, finished: LaneMask | None, continued_before: LaneMask) -> LaneMask | None:
    """Return the lanes that start another iteration: those that reached the end of the body or continued."""
    live = union_masks(finished, frame.continued_mask)
    frame.continued_mask = None
    return continued_before if live is not None and live.count == continued_before.count else live


def _sequence_steps(steps: list[Executable]) -> Executable:
    def step(frame: CallFrame, mask: LaneMask) -> LaneMask | None:
        live: LaneMask | None = mask
        for run in steps:
            live = run(frame, live)  # type: ignore[arg-type]  # the loop ends before None is passed on
            if live is None:
                return None
        return live

    return steps[0] if len(steps) == 1 else step


def _break(frame: CallFrame, mask: LaneMask) -> None:
    """Remove the lanes from the loop; they become active again after it."""


def _continue(frame: CallFrame, mask: LaneMask) -> None:
    frame.continued_mask = union_masks(frame.continued_mask, mask)


class _LoopWatch:
    """Detects lanes that stay in a loop. The properties walk the loop and all inner ones, so few launches need them."""

    def __init__(self, loop: ir.Loop, values: PlainValues) -> None:
        self._loop, self._values = loop, values

    @functools.cached_property
    def may_wait(self) -> bool:
        """Whether lanes may wait in the loop for others."""
        return reads_strongly(self._loop)

    @functools.cached_property
    def _repeats_itself(self) -> bool:
        return repeats_itself(self._loop)

    @functools.cached_property
    def _only_tests_phases(self) -> bool:
        return only_tests_phases(self._loop)

    @functools.cached_property
    def _kind_of_wait(self) -> str:
        return classify_wait(self._loop)

    def record_iteration(self, frame: CallFrame, monitor: ProgressMonitor, live: LaneMask | None, count: int) -> None:
        """Count an iteration of a loop in which lanes may wait; `count` lanes began it, and `live` continue."""
        batch, position = frame.batch, self._loop.position
        if live is None or live.count < count:
            monitor.leave_loop(position)
            return
        repeats = (
            batch.scheduler is not None and monitor.is_idle(position) and self._repeats_state(frame, monitor, live)
        )
        try:
            running_parts = 1 if batch.scheduler is None else batch.scheduler.running_parts
            is_waiting = monitor.iterate(running_parts, position, lambda: "repeats" if repeats else self._kind_of_wait)
        except StarvationError as error:
            error.position, error.lane = position, int(live.lanes[0])
            raise
        if is_waiting and batch.scheduler is not None:
            batch.scheduler.wait_in_loop(self._loop, frame.values, live, self._values)

    def _repeats_state(self, frame: CallFrame, monitor: ProgressMonitor, live: LaneMask) -> bool:
        """Note the variables and local arrays of lanes; return whether they are those of the last iteration noted."""
        assert frame.batch.scheduler is not None
        variables = [None if value is None else _describe(self._values.strip(value), live) for value in frame.values]
        variables.append(frame.batch.scheduler.copy_local_memories(live))
        last = monitor.replace_state(
            self._loop.position, (frame, live.lanes.tobytes(), frame.batch.clock_calls), variables
        )
        return last is not None and all(
            _is_unchanged(before, now, live) for before, now in zip(last, variables, strict=True)
        )

    def find_limit(self, batch: RunningBatch, live: LaneMask | None, iterations: int) -> str:
        """Return the limit that a loop has reached, in words; "" if none."""
        if (
            iterations >= MAX_REPETITIONS
            and live is not None
            and (
                (_runs_alone(batch) and self._repeats_itself)
                or self._waits_in_deadlock(batch)
                or self._waits_for_phase_for_ever(batch)
            )
        ):
            return f"{iterations} equal iterations"
        if batch.rounds > batch.max_rounds:
            return f"{batch.max_rounds} iterations"
        if not batch.rounds % _ITERATIONS_PER_TEST and batch.time_limit.is_exceeded:
            return batch.time_limit.elapsed_text
        return ""

    def build_error(
        self, frame: CallFrame, live: LaneMask | None, entered: LaneMask, iterations: int, limit: str
    ) -> LaunchError:
        """Return the error of lanes in a loop that has reached a limit."""
        batch, loop = frame.batch, self._loop
        if live is not None and self._waits_for_phase_for_ever(batch):
            return _phase_error(frame, live, loop.position)
        is_endless = live is not None and self._never_ends(batch, live, iterations)
        advice = "" if not has_wait_loop(loop) or self.may_wait else _WEAK_WAIT
        return _loop_error(frame, live or entered, loop.position, limit, advice, is_endless=is_endless)

    def _never_ends(self, batch: RunningBatch, live: LaneMask, iterations: int) -> bool:
        no_other_lane = batch.is_deadlock or (_runs_alone(batch) and _has_all_remaining_lanes(batch, live))
        repeats = self._repeats_itself or self._waits_in_deadlock(batch)
        return never_ends(self._loop) or (iterations > 1 and no_other_lane and repeats)

    def _waits_in_deadlock(self, batch: RunningBatch) -> bool:
        """Return whether lanes wait in the loop in lockstep, after all have waited for ever in the fairest order."""
        return batch.is_deadlock and self.may_wait and self._kind_of_wait != "counts"

    def _waits_for_phase_for_ever(self, batch: RunningBatch) -> bool:
        return batch.scheduler is not None and self._only_tests_phases and batch.scheduler.waits_for_ever()


def _describe(value: Any, mask: LaneMask) -> Any:
    """Return a variable's value; of a pointer the memories and offsets, the same for locals that are declared anew."""
    if not isinstance(value, PointerValue):
        return value
    described = []
    for pointer, lanes in value.split_by_memory(mask):
        memory = pointer.memory.name if isinstance(pointer.memory, LocalMemory) else pointer.memory
        offsets = np.broadcast_to(pointer.offset, mask.bits.shape)[lanes.lanes]
        described.append((memory, lanes.bits.tobytes(), offsets.tobytes()))
    return described


def _is_unchanged(before: Any, now: Any, mask: LaneMask) -> bool:
    """Return whether lanes have the same value of a variable; False if that is not certain."""
    if isinstance(now, list):
        return bool(before == now)
    if isinstance(now, np.ndarray | np.generic | int):
        return bool(np.all(np.broadcast_to(before == now, mask.bits.shape)[mask.lanes]))
    return before is now and now is None


def _runs_alone(batch: RunningBatch) -> bool:
    """Return whether no other lanes can run, now or in a fairer order, while some are in a loop."""
    return batch.is_deadlock or (batch.scheduler is None and batch.monitor is None)


def _has_all_remaining_lanes(batch: RunningBatch, live: LaneMask) -> bool:
    """Return whether some lanes are all those of the grid that have not ended, as earlier blocks have."""
    is_last = batch.first + batch.geometry.blocks == math.prod(batch.grid)
    return is_last and live.count == batch.geometry.lanes


def _phase_error(frame: CallFrame, mask: LaneMask, position: SourcePosition) -> LaunchError:
    """Return the error of lanes that wait for a phase of an mbarrier that no thread completes."""
    return frame.batch.thread_error(
        mask,
        position,
        "this loop does not end: {thread} waits for a phase of an mbarrier that no thread can complete.",
        kind="endless",
        advice="A phase needs as many arrivals as the count of the mbarrier, and all bytes that it expects. A thread "
        "that leaves earlier must arrive all the same, as by arrive_and_drop(). The parity must be that of the phase.",
    )


_WEAK_WAIT = (
    " It tests memory by ordinary loads, whose values a compiler may keep in registers: if it waits for another "
    "thread, use volatile or atomic ones."
)


def _loop_error(
    frame: CallFrame, mask: LaneMask, position: SourcePosition, duration: str, advice: str, *, is_endless: bool
) -> LaunchError:
    """Return the error of lanes that are in a loop after a limit; `is_endless` if nothing can end it."""
    verb, reason = ("does", ", and no thread can end it") if is_endless else ("did", "")
    return frame.batch.thread_error(
        mask,
        position,
        f"this loop {verb} not end: {{thread}} is still in it after {duration}{reason}.",
        kind="endless" if is_endless else "unfinished",
        advice=f"Check the condition that ends the loop.{advice}",
    )
