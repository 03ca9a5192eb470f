"""Barrier objects in shared memory, and the operations on them, as LLVM instructions.

Copies arrive when they are started, which is allowed: code that waits for the phase sees no difference.
"""

from __future__ import annotations

from gpu.simulator import ir
from gpu.simulator.compiled.analysis.plan import PlannedFrame
from gpu.simulator.compiled.block.memory import ThreadFailure
from gpu.simulator.compiled.llvm import arithmetic
from gpu.simulator.compiled.thread.context import ThreadContext
from gpu.simulator.executor.state.phase_words import (
    BYTES_BIAS,
    BYTES_BITS,
    COUNT_BITS,
    MAX_ARRIVALS,
    MISUSE_ADVICE,
    PARITY_BIT,
    TOO_MANY_ARRIVALS,
    UNINITIALIZED,
    PhaseWord,
)
from gpu.simulator.types import INT64, Scalar

# Changes a barrier's word by arrivals, by arrivals that later phases no longer expect, and by bytes of copies; returns
# the previous word.
_CHANGE = f"""define internal i64
@phase.change(ptr %at, ptr %progress, i64 %arrivals, i64 %fewer, i64 %bytes) nounwind {{
  %old = load i64, ptr %at
  %arrived = sub i64 %old, %arrivals
  %less = shl i64 %fewer, {COUNT_BITS}
  %dropped = sub i64 %arrived, %less
  %more = shl i64 %bytes, {2 * COUNT_BITS}
  %new = add i64 %dropped, %more
  %missing = and i64 %new, {MAX_ARRIVALS}
  %above = lshr i64 %new, {COUNT_BITS}
  %expected = and i64 %above, {MAX_ARRIVALS}
  %highest = lshr i64 %new, {2 * COUNT_BITS}
  %waited = and i64 %highest, {(1 << BYTES_BITS) - 1}
  %came = icmp eq i64 %missing, 0
  %brought = icmp eq i64 %waited, {BYTES_BIAS}
  %over = and i1 %came, %brought
  %filled = or i64 %new, %expected
  %next = xor i64 %filled, {1 << PARITY_BIT}
  %becomes = select i1 %over, i64 %next, i64 %new
  store i64 %becomes, ptr %at
  %steps = load i64, ptr %progress
  %counted = add i64 %steps, 1
  store i64 %counted, ptr %progress
  ret i64 %old
}}"""


class PhaseWriter:
    """Writes a thread's operations on barriers in memory.

    Parameters
    ----------
    thread : ThreadContext
    """

    def __init__(self, thread: ThreadContext) -> None:
        self._thread = thread

    def write_change(self, frame: PlannedFrame, expression: ir.BarrierPhase) -> str:
        """Write any operation except a test, and return the parity of the phase before it."""
        address, count = self._thread.scalar(frame, expression.pointer), self._int64_value(frame, expression.argument)
        match expression.op:
            case "init":
                return self._init(address, count, expression)
            case "bind":
                # The thread's copies are complete, so it arrives; an additional arrival changes nothing.
                expected = self._thread.asm.value(f"icmp eq i64 {count}, 0")
                return self._change(address, expression, arrivals=self._thread.asm.value(f"zext i1 {expected} to i64"))
            case "expect":
                return self._change(address, expression, count=count)
            case "complete":
                return self._change(address, expression, count=self._thread.asm.value(f"sub i64 0, {count}"))
        return self._change(address, expression, arrivals=count, dropped=count if expression.op == "drop" else "0")

    def write_test(self, frame: PlannedFrame, expression: ir.BarrierPhase) -> str:
        """Return whether the phase with a parity is complete, an i1."""
        asm = self._thread.asm
        word = asm.value(f"load i64, ptr {self._thread.scalar(frame, expression.pointer)}")
        self._write_check(asm.value(f"icmp sgt i64 {word}, 0"), UNINITIALIZED, expression)
        parity = asm.value(f"lshr i64 {word}, {PARITY_BIT}")
        differs = asm.value(f"xor i64 {parity}, {self._int64_value(frame, expression.argument)}")
        return asm.value(f"trunc i64 {differs} to i1")

    def write_bulk_copy(self, frame: PlannedFrame, copy: ir.BulkCopy) -> str:
        """Write a bulk copy and its arrival."""
        asm = self._thread.asm
        destination, source, size = (
            self._thread.scalar(frame, copy.destination),
            self._thread.scalar(frame, copy.source),
            self._int64_value(frame, copy.bytes),
        )
        asm.declare("void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)")
        asm.emit(f"call void @llvm.memmove.p0.p0.i64(ptr {destination}, ptr {source}, i64 {size}, i1 false)")
        if copy.barrier is not None:
            self._change(self._thread.scalar(frame, copy.barrier), copy, count=asm.value(f"sub i64 0, {size}"))
        return "0"

    def _init(self, address: str, count: str, expression: ir.BarrierPhase) -> str:
        asm = self._thread.asm
        fits = asm.value(f"icmp ult i64 {asm.value(f'sub i64 {count}, 1')}, {MAX_ARRIVALS}")
        self._write_check(fits, f"initializes a barrier for no arrivals, or more than {MAX_ARRIVALS}", expression)
        word = asm.value(f"mul i64 {count}, {1 + (1 << COUNT_BITS)}")
        asm.emit(f"store i64 {asm.value(f'or i64 {word}, {PhaseWord(0, 0, 0, 0).encoded}')}, ptr {address}")
        return "0"

    def _change(
        self,
        address: str,
        expression: ir.BarrierPhase | ir.BulkCopy,
        *,
        arrivals: str = "0",
        dropped: str = "0",
        count: str = "0",
    ) -> str:
        asm = self._thread.asm
        asm.define(_CHANGE)
        arguments = f"ptr {address}, ptr %progress, i64 {arrivals}, i64 {dropped}, i64 {count}"
        old = asm.value(f"call i64 @phase.change({arguments})")
        self._write_check(asm.value(f"icmp sgt i64 {old}, 0"), UNINITIALIZED, expression)
        if arrivals != "0":
            missing = asm.value(f"and i64 {old}, {MAX_ARRIVALS}")
            self._write_check(asm.value(f"icmp uge i64 {missing}, {arrivals}"), TOO_MANY_ARRIVALS, expression)
        return asm.value(f"lshr i64 {old}, {PARITY_BIT}")

    def _write_check(self, holds: str, failure_text: str, expression: ir.BarrierPhase | ir.BulkCopy) -> None:
        asm = self._thread.asm
        valid, invalid = asm.new_name("right"), asm.new_name("wrong")
        asm.branch(holds, valid, invalid)
        asm.begin_block(invalid)
        failure = ThreadFailure(failure_text, expression.position, advice=MISUSE_ADVICE)
        self._thread.memory.fail(failure, self._thread.block.thread_index)
        asm.begin_block(valid)

    def _int64_value(self, frame: PlannedFrame, expression: ir.Expression) -> str:
        assert isinstance(expression.type, Scalar)
        return arithmetic.emit_cast(self._thread.asm, expression.type, INT64, self._thread.scalar(frame, expression))
