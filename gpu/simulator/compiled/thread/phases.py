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

# Copies a box of rows of 128 bytes by parts of 16 bytes; bytes outside of the matrix are zeros.
_COPY_BOX = """define internal void @box.copy(
    ptr %to, ptr %matrix, i64 %rows, i64 %row_bytes, i64 %pitch, i64 %x, i64 %y, i64 %box_rows, i64 %line) nounwind {
entry:
  %count = shl i64 %box_rows, 3
  br label %part
part:
  %index = phi i64 [0, %entry], [%next, %copied]
  %down = lshr i64 %index, 3
  %across = and i64 %index, 7
  %row = add i64 %y, %down
  %shifted = shl i64 %across, 4
  %column = add i64 %x, %shifted
  %lines = add i64 %line, %down
  %swizzle = and i64 %lines, 7
  %moved = xor i64 %index, %swizzle
  %offset = shl i64 %moved, 4
  %place = getelementptr i8, ptr %to, i64 %offset
  %start = mul i64 %row, %pitch
  %distance = add i64 %start, %column
  %source = getelementptr i8, ptr %matrix, i64 %distance
  %above = icmp ult i64 %row, %rows
  %right = icmp sge i64 %column, 0
  %inside = and i1 %above, %right
  %left = sub i64 %row_bytes, %column
  %read = select i1 %inside, i64 %left, i64 0
  %whole = icmp sge i64 %read, 16
  br i1 %whole, label %copy, label %partly
copy:
  %value = load <16 x i8>, ptr %source, align 1
  store <16 x i8> %value, ptr %place, align 1
  br label %copied
partly:
  store <16 x i8> zeroinitializer, ptr %place, align 1
  %some = icmp sgt i64 %read, 0
  br i1 %some, label %rest, label %copied
rest:
  call void @llvm.memmove.p0.p0.i64(ptr %place, ptr %source, i64 %read, i1 false)
  br label %copied
copied:
  %next = add i64 %index, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %part, label %end
end:
  ret void
}"""

_BOX_ROWS = 5
"""Index of the box's rows among the numbers of a tensor copy."""

_Signal = ir.BarrierPhase | ir.BulkCopy | ir.TensorCopy


class PhaseWriter:
    """Writes a thread's operations on barriers in memory."""

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

    def write_tensor_copy(self, frame: PlannedFrame, copy: ir.TensorCopy) -> str:
        """Write a copy of a box and its arrival."""
        asm = self._thread.asm
        destination, matrix = self._thread.scalar(frame, copy.destination), self._thread.scalar(frame, copy.matrix)
        numbers = [self._int64_value(frame, each) for each in copy.numbers]
        asm.declare("void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)")
        asm.define(_COPY_BOX)
        operands = ", ".join(f"i64 {number}" for number in numbers)
        asm.emit(f"call void @box.copy(ptr {destination}, ptr {matrix}, {operands})")
        size = asm.value(f"mul i64 {numbers[_BOX_ROWS]}, -128")
        self._change(self._thread.scalar(frame, copy.barrier), copy, count=size)
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
        expression: _Signal,
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

    def _write_check(self, holds: str, failure_text: str, expression: _Signal) -> None:
        failure = ThreadFailure(failure_text, expression.position, advice=MISUSE_ADVICE)
        self._thread.memory.check(holds, failure)

    def _int64_value(self, frame: PlannedFrame, expression: ir.Expression) -> str:
        assert isinstance(expression.type, Scalar)
        return arithmetic.emit_cast(self._thread.asm, expression.type, INT64, self._thread.scalar(frame, expression))
