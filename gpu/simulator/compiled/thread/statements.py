"""The statements of one thread, and the bodies of functions that it calls, as LLVM instructions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gpu.base.errors import SourcePosition
from gpu.simulator import ir
from gpu.simulator.compiled.analysis.plan import Bind, PlannedFrame
from gpu.simulator.compiled.analysis.traversal import split_final_return
from gpu.simulator.compiled.block.masks import MaskStack
from gpu.simulator.compiled.block.memory import KernelMemory, ThreadFailure, Value
from gpu.simulator.compiled.block.thread_block import ThreadBlock
from gpu.simulator.compiled.llvm.assembly import Assembly, UnsupportedKernel, value_type
from gpu.simulator.compiled.thread.expressions import ExpressionWriter
from gpu.simulator.ir.waits import MAX_REPETITIONS, repeats_itself
from gpu.simulator.types import VOID, Scalar, Type

_MAXIMUM_DEPTH = 24


def count_repetition(asm: Assembly, iterations: str) -> str:
    """Count an iteration of a loop that repeats itself, at an address; return whether it may be endless, an i1."""
    asm.update(iterations, "i64", "add", "1")
    return asm.value(f"icmp ugt i64 {asm.value(f'load i64, ptr {iterations}')}, {MAX_REPETITIONS}")


def build_repetition_failure(position: SourcePosition) -> ThreadFailure:
    """Return the failure of a thread in a loop that repeats itself; another thread may still end the loop."""
    return ThreadFailure(
        f"is still in this loop after {MAX_REPETITIONS} equal iterations, and no other thread runs meanwhile",
        position,
        "unfinished",
        "Check the condition that ends the loop. The lockstep executor also runs warps and lanes in turns.",
    )


@dataclass
class _Targets:
    """The labels for a function's jumps; "" leaves the region."""

    breaks: str = ""
    continues: str = ""
    returns: str = ""
    result: Callable[[Value, Type], None] | None = None
    """Stores the return value."""


class StatementWriter:
    """Writes the statements of a thread.

    Parameters
    ----------
    masks : MaskStack
        The masks from which jumps out of the written code remove the thread.

    Attributes
    ----------
    expressions : ExpressionWriter
        Writes the statements' expressions.
    """

    def __init__(self, asm: Assembly, block: ThreadBlock, memory: KernelMemory, masks: MaskStack) -> None:
        self._asm = asm
        self._block = block
        self._memory = memory
        self._masks = masks
        self._targets = _Targets()
        self._depth = 0
        self.expressions = ExpressionWriter(asm, block, memory, self._call)
        self._accesses = self.expressions.accesses

    def write_statement(self, frame: PlannedFrame, statement: ir.Statement | Bind) -> None:
        """Write a statement of a plan, or the initialization of a parameter."""
        if isinstance(statement, Bind):
            self._bind(frame, statement)
        else:
            self._statement(frame, statement)

    def _statement(self, frame: PlannedFrame, statement: ir.Statement) -> None:
        asm = self._asm
        match statement:
            case ir.Block(statements):
                for inner in statements:
                    self._statement(frame, inner)
            case ir.Evaluate(expression):
                self.expressions.value(frame, expression)
            case ir.Declare(slot, type, value):
                if value is not None and self._memory.computed_expression(frame, slot) is None:
                    self._memory.store(
                        self._memory.variable_address(frame, slot, type), type, self.expressions.value(frame, value)
                    )
            case ir.DeclareMemory(slot, size, values, zeroed):
                self._declare_memory(frame, slot, size, values, zeroed)
            case ir.If(condition, then, orelse):
                holds = self.expressions.scalar(frame, condition)
                if holds in ("true", "false"):
                    # A constant condition leaves only one side.
                    side = then if holds == "true" else orelse
                    if side is not None:
                        self._statement(frame, side)
                    return
                for is_true in asm.iterate_sides(holds):
                    side = then if is_true else orelse
                    if side is not None:
                        self._statement(frame, side)
            case ir.Loop():
                self._loop(frame, statement)
            case ir.Switch():
                self._switch(frame, statement)
            case ir.Jump(kind):
                label = self._targets.breaks if kind == "break" else self._targets.continues
                if label:
                    asm.jump(label)
                else:
                    self._masks.write_jump(frame, kind)
            case ir.Return(value):
                self._return(frame, value)
            case _:
                raise UnsupportedKernel(f"a {statement.__class__.__name__.lower()} statement here")

    def _declare_memory(self, frame: PlannedFrame, slot: int, size: int, values: Any, zeroed: bool) -> None:
        asm = self._asm
        part = self._memory.find_part(frame, slot)
        if part is not None:
            for offset, width in self._memory.member_sizes(part).items() if zeroed else ():
                member_address = self._memory.member_address(part.offset_by(offset), width)
                asm.emit(f"store i{8 * width} 0, ptr {member_address}{self._block.access}")
            for offset, value in values:
                self._accesses.write_part(part.offset_by(offset), value.type, self.expressions.value(frame, value))
            return
        local_address = self._memory.local_address(frame, slot, size)
        if zeroed:
            asm.fill(local_address, 0, size, align=16)
        for offset, value in values:
            self._memory.store(asm.offset(local_address, offset), value.type, self.expressions.value(frame, value))

    def _loop(self, frame: PlannedFrame, loop: ir.Loop) -> None:
        asm = self._asm
        test, body, step, end = (asm.new_name(part) for part in ("test", "body", "step", "end"))
        outer = (self._targets.breaks, self._targets.continues)
        self._targets.breaks, self._targets.continues = end, step
        iterations = asm.alloca(8, "iterations") if repeats_itself(loop) else ""
        if iterations:
            asm.emit(f"store i64 0, ptr {iterations}")
        asm.jump(test if loop.tests_first else body)
        asm.begin_block(test)
        if loop.condition is not None:
            asm.branch(self.expressions.scalar(frame, loop.condition), body, end)
        asm.begin_block(body)
        self._statement(frame, loop.body)
        asm.begin_block(step)
        if iterations:
            self._limit_repetitions(iterations, loop)
        if loop.step is not None:
            self.expressions.value(frame, loop.step)
        asm.jump(test)
        asm.begin_block(end)
        self._targets.breaks, self._targets.continues = outer

    def _limit_repetitions(self, iterations: str, loop: ir.Loop) -> None:
        """Count an iteration of a loop that repeats itself; end the launch if it may be endless."""
        with self._asm.execute_if(count_repetition(self._asm, iterations)):
            self._memory.fail(build_repetition_failure(loop.position), self._block.thread_index)

    def _switch(self, frame: PlannedFrame, switch: ir.Switch) -> None:
        asm = self._asm
        assert isinstance(switch.value.type, Scalar)
        llvm_type, value, end = (
            value_type(switch.value.type),
            self.expressions.scalar(frame, switch.value),
            asm.new_name("end"),
        )
        labels = [asm.new_name("section") for _ in switch.sections]
        default = next((label for label, each in zip(labels, switch.sections, strict=True) if each.is_default), end)
        cases = " ".join(
            f"{llvm_type} {case}, label %{label}"
            for label, section in zip(labels, switch.sections, strict=True)
            for case in section.values
        )
        asm.emit(f"switch {llvm_type} {value}, label %{default} [ {cases} ]")
        asm.is_terminated = True
        outer, self._targets.breaks = self._targets.breaks, end
        for label, section in zip(labels, switch.sections, strict=True):
            asm.begin_block(label)
            self._statement(frame, section.body)
        asm.begin_block(end)
        self._targets.breaks = outer

    def _return(self, frame: PlannedFrame, value: ir.Expression | None) -> None:
        if not self._targets.returns:
            if value is not None and frame.result is not None:
                caller, slot, type = frame.result
                self._memory.store(
                    self._memory.variable_address(caller, slot, type), type, self.expressions.value(frame, value)
                )
            self._masks.write_jump(frame, "return")
            return
        if value is not None:
            assert self._targets.result is not None
            self._targets.result(self.expressions.value(frame, value), value.type)
        self._asm.jump(self._targets.returns)

    # Functions.

    def _bind(self, frame: PlannedFrame, bind: Bind) -> None:
        self._memory.propagate_shared(bind.frame, bind.slot, frame, bind.value)
        if not self._accesses.alias_split_memory(bind.frame, bind.slot, frame, bind.value):
            variable_address = self._memory.variable_address(bind.frame, bind.slot, bind.type)
            self._memory.store(variable_address, bind.type, self.expressions.value(frame, bind.value))

    def _call(self, frame: PlannedFrame, call: ir.Call) -> Value:
        """Write a function's body inline."""
        asm = self._asm
        if self._depth >= _MAXIMUM_DEPTH:
            raise UnsupportedKernel("recursion")
        inner = PlannedFrame(asm.new_name(frame.path + "/call"), call.function, call.function.slots)
        self.expressions.strips.enter_call(inner, frame, call)
        for slot, ((_, type), argument) in enumerate(zip(call.function.parameters, call.arguments, strict=True)):
            self._memory.propagate_shared(inner, slot, frame, argument)
            if not self._accesses.alias_split_memory(inner, slot, frame, argument):
                self._memory.initialize_parameter(inner, slot, type, self.expressions.value(frame, argument))
        outer, self._depth = self._targets, self._depth + 1
        result = self._body(inner, call.function.body, call.type)
        self._targets, self._depth = outer, self._depth - 1
        return result

    def _body(self, frame: PlannedFrame, body: ir.Block, type: Type) -> Value:
        """Write the body of a function, and return its return value."""
        asm = self._asm
        last = split_final_return(body)
        if last is not None:
            before, value = last
            self._targets = _Targets()
            self._statement(frame, before)
            return self.expressions.value(frame, value)
        result_address = asm.alloca(type.size, "result")
        end = asm.new_name("returned")
        self._targets = _Targets(
            returns=end, result=lambda value, type: self._memory.store(result_address, type, value, private=True)
        )
        self._statement(frame, body)
        asm.begin_block(end)
        return "0" if type == VOID else self._memory.load(result_address, type, private=True)
