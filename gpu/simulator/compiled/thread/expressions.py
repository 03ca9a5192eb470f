"""The computations of one thread: write expressions as LLVM instructions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from gpu.simulator import ir
from gpu.simulator.compiled.analysis.intervals import Intervals
from gpu.simulator.compiled.analysis.plan import PlannedFrame
from gpu.simulator.compiled.block.memory import (
    HANDLE_COUNT_VARIABLE,
    LAUNCH_CALLBACK_VARIABLE,
    SHARED_STRIDE_VARIABLE,
    KernelMemory,
    ThreadFailure,
    Value,
)
from gpu.simulator.compiled.block.thread_block import ThreadBlock
from gpu.simulator.compiled.children import ARGUMENTS, compute_parameter_offsets
from gpu.simulator.compiled.llvm import arithmetic
from gpu.simulator.compiled.llvm.assembly import Assembly, UnsupportedKernel, memory_type
from gpu.simulator.compiled.llvm.value_writer import ValueWriter
from gpu.simulator.compiled.thread.accesses import AccessWriter
from gpu.simulator.compiled.thread.context import ThreadContext
from gpu.simulator.compiled.thread.phases import PhaseWriter
from gpu.simulator.compiled.thread.strips import BitStrips
from gpu.simulator.types import INT64, Scalar, Type

_NONATOMIC_OPERATORS = {"add": "+", "sub": "-", "and": "&", "or": "|", "xor": "^"}
_UNSUPPORTED = {
    "Print": "printf",
    "Warp": "an exchange between threads in a conditional operand",
    "IndirectCall": "a call through a function pointer",
    "GridBarrier": "a barrier of the whole grid",
    "NamedBarrier": "a barrier for some of a block's threads",
    "Clock": "a clock",
    "Texel": "a texture that is read by coordinates",
    "TexelWeight": "a texture that is read by coordinates",
    "WaitForChildren": "a wait for kernels that it launched",
}


_SHARED_WINDOW = 1024
"""The address of the first byte of shared memory, which must not be null."""

_RANK_SHIFT = 27
"""Addresses in another block's shared memory have its rank, counted from 1, in the bits from this one on."""


class ExpressionWriter(ValueWriter):
    """Writes the computations of a thread.

    Parameters
    ----------
    call : callable
        (frame, call) -> the value that a function returns; writes the function's body.

    Attributes
    ----------
    thread : ThreadContext
        The context of the thread, for other writers.
    strips : BitStrips
        Writes values along strips of threads.
    accesses : AccessWriter
        Writes loads and stores.
    phases : PhaseWriter
        Writes operations on barrier objects in memory.
    """

    target = "llvm"
    speculates = True
    exchange_order = "seq_cst"
    distance_instruction = "sdiv"

    def __init__(
        self, asm: Assembly, block: ThreadBlock, memory: KernelMemory, call: Callable[[PlannedFrame, ir.Call], Value]
    ) -> None:
        super().__init__(asm)
        self._block = block
        self._memory = memory
        self._call = call
        self._intervals = Intervals(block.shape)
        self.thread = ThreadContext(asm, block, memory, self.scalar)
        self.strips = BitStrips(self.thread)
        self.accesses = AccessWriter(self.thread, self.strips.find_subscript)
        self.phases = PhaseWriter(self.thread)

    def visit_local(self, node: ir.Local, frame: PlannedFrame) -> Value:
        computed = self._memory.computed_expression(frame, node.slot)
        if computed is not None:
            return self.value(frame, computed)
        parameter = self._memory.parameter_value(frame, node.slot)
        if parameter is not None:
            return parameter
        array = self._memory.array_address(frame, node.slot)
        if array is not None:
            return array
        return self._memory.load(self._memory.variable_address(frame, node.slot, node.type), node.type)

    def visit_global(self, node: ir.Global, frame: PlannedFrame) -> Value:
        return self._memory.module_variable_address(node.name)

    def visit_special(self, node: ir.Special, frame: PlannedFrame) -> Value:
        return self._block.special(node.name, node.axis)

    def visit_binary(self, node: ir.Binary, frame: PlannedFrame) -> Value:
        strip_value = self.strips.find_value(frame, node) if node.op in "&|^" else None
        if strip_value is not None:
            return strip_value
        quotient = self._block.quotient(frame, node)
        if quotient is not None:
            assert isinstance(node.left.type, Scalar)
            return arithmetic.emit_cast(self._asm, INT64, node.left.type, quotient)
        return super().visit_binary(node, frame)

    def visit_load(self, node: ir.Load, frame: PlannedFrame) -> Value:
        return self.accesses.read(frame, node.place, node.type)

    def visit_assign(self, node: ir.Assign, frame: PlannedFrame) -> Value:
        new = self.value(frame, node.value)
        self.accesses.write(frame, node.place, node.type, new)
        return new

    def visit_fence(self, node: ir.Fence, frame: PlannedFrame) -> Value:
        self._asm.emit("fence seq_cst")
        return "0"

    def visit_heap_change(self, node: ir.HeapChange | ir.AsyncCommit | ir.AsyncWait, frame: PlannedFrame) -> Value:
        return "0"

    visit_async_commit = visit_heap_change

    visit_async_wait = visit_heap_change

    def visit_barrier_phase(self, node: ir.BarrierPhase, frame: PlannedFrame) -> Value:
        return self.phases.write_change(frame, node)

    def visit_bulk_copy(self, node: ir.BulkCopy, frame: PlannedFrame) -> Value:
        return self.phases.write_bulk_copy(frame, node)

    def visit_tensor_copy(self, node: ir.TensorCopy, frame: PlannedFrame) -> Value:
        return self.phases.write_tensor_copy(frame, node)

    def visit_call(self, node: ir.Call, frame: PlannedFrame) -> Value:
        return self._call(frame, node)

    def visit_clock(self, node: ir.Clock, frame: PlannedFrame) -> Value:
        if not node.is_handle:
            return self.visit_other(node, frame)
        counter = self._memory.module_variable_address(HANDLE_COUNT_VARIABLE)
        number = self._asm.value(f"atomicrmw add ptr {counter}, i64 1 monotonic")
        return arithmetic.emit_cast(self._asm, INT64, node.type, number)

    def visit_other(self, node: ir.Expression, frame: PlannedFrame) -> Value:
        kind = node.__class__.__name__
        raise UnsupportedKernel(_UNSUPPORTED.get(kind, f"{kind.lower()} expressions"))

    def _load(self, address: str, type: Type, *, private: bool = False) -> Value:
        return self._memory.load(address, type, private=private)

    def _store(self, address: str, type: Type, value: Value, *, private: bool = False) -> None:
        self._memory.store(address, type, value, private=private)

    def _place_address(self, frame: PlannedFrame, place: ir.Place) -> str:
        return self.accesses.address(frame, place)

    def _element_address(self, frame: PlannedFrame, start: str, index: ir.Expression, size: int) -> str:
        return self.accesses.offset_address(frame, start, index, size)

    def _no_wrap_flags(self, frame: PlannedFrame, operation: ir.Binary | ir.Update) -> str:
        return self._intervals.no_wrap_flags(frame, operation) if isinstance(operation, ir.Binary) else ""

    def visit_cluster_address(self, expression: ir.ClusterAddress, frame: PlannedFrame) -> Value:
        asm, blocks = self._asm, prod(self._block.cluster)
        pointer, rank = self.scalar(frame, expression.pointer), self._int64_value(frame, expression.rank)
        failure_text = f"maps a rank beyond the {blocks} blocks of its cluster"
        failure = ThreadFailure(failure_text, expression.position, "out-of-bounds", "Ranks are 0 to num_blocks() - 1.")
        self._memory.check(asm.value(f"icmp ult i64 {rank}, {blocks}"), failure)
        if blocks == 1:
            return pointer
        return asm.offset(pointer, asm.value(f"mul i64 {asm.value(f'sub i64 {rank}, %rank')}, %stride"))

    def visit_shared_address(self, node: ir.SharedAddress, frame: PlannedFrame) -> Value:
        """Convert between addresses and pointers of shared memory; larger numbers are generic pointers already.

        In a cluster, the addresses of another block's shared memory have its rank in their upper bits.
        """
        type, operand = node.type, node.operand
        asm, value = self._asm, self.scalar(frame, operand)
        start, has_ranks = asm.value("ptrtoint ptr %shared to i64"), prod(self._block.cluster) > 1
        if isinstance(type, Scalar):
            number = asm.value(f"sub i64 {asm.value(f'ptrtoint ptr {value} to i64')}, {start}")
            if has_ranks:
                # Blocks before this one have negative distances, so count from the first block.
                own_base = asm.value("mul i64 %rank, %stride")
                absolute = asm.value(f"add i64 {number}, {own_base}")
                rank, inner_offset = (
                    asm.value(f"udiv i64 {absolute}, %stride"),
                    asm.value(f"urem i64 {absolute}, %stride"),
                )
                above = asm.value(f"shl i64 {asm.value(f'add i64 {rank}, 1')}, {_RANK_SHIFT}")
                is_own = asm.value(f"icmp eq i64 {rank}, %rank")
                other = asm.value(f"add i64 {above}, {inner_offset}")
                number = asm.value(f"select i1 {is_own}, i64 {number}, i64 {other}")
            return arithmetic.emit_cast(asm, INT64, type, asm.value(f"add i64 {number}, {_SHARED_WINDOW}"))
        assert isinstance(operand.type, Scalar)
        number = arithmetic.emit_cast(asm, operand.type, INT64, value)
        if has_ranks:
            inner_offset = asm.value(f"and i64 {number}, {(1 << _RANK_SHIFT) - 1}")
            rank = asm.value(f"lshr i64 {number}, {_RANK_SHIFT}")
            rank_distance = asm.value(f"sub i64 {asm.value(f'sub i64 {rank}, 1')}, %rank")
            block_distance = asm.value(f"mul i64 {rank_distance}, %stride")
            is_own = asm.value(f"icmp eq i64 {rank}, 0")
            start = asm.value(f"add i64 {start}, {asm.value(f'select i1 {is_own}, i64 0, i64 {block_distance}')}")
        else:
            inner_offset = number
        pointer_number = asm.value(f"add i64 {asm.value(f'sub i64 {inner_offset}, {_SHARED_WINDOW}')}, {start}")
        result = asm.value(
            f"select i1 {asm.value(f'icmp ult i64 {number}, {1 << 32}')}, i64 {pointer_number}, i64 {number}"
        )
        return asm.value(f"inttoptr i64 {result} to ptr")

    def visit_atomic(self, expression: ir.Atomic, frame: PlannedFrame) -> Value:
        type = expression.type
        address = self.accesses.address(frame, expression.place)
        values = [self.scalar(frame, argument) for argument in expression.arguments]
        if expression.op in _NONATOMIC_OPERATORS:
            if self._memory.is_shared(frame, expression.place.pointer):
                return self._update_nonatomic(expression.op, type, address, values[0])
            if not self._memory.is_global(frame, expression.place.pointer):
                return self._update_nonatomic_if_shared(expression, address, values)
        return self._write_atomic(expression, address, values)

    def _update_nonatomic(self, op: str, type: Scalar, address: str, value: str) -> str:
        """Write a non-atomic update of memory that only this block uses: its threads share one processor thread."""
        asm, llvm_type = self._asm, memory_type(type)
        old = asm.value(f"load {llvm_type}, ptr {address}")
        result = arithmetic.emit_binary(asm, _NONATOMIC_OPERATORS[op], type, old, value)
        asm.emit(f"store {llvm_type} {result}, ptr {address}")
        return old

    def _update_nonatomic_if_shared(self, expression: ir.Atomic, address: str, values: Sequence[str]) -> str:
        """Test whether a pointer points to shared memory, which costs less than an atomic instruction."""
        asm, type = self._asm, expression.type
        llvm_type = memory_type(type)
        size = asm.value(f"load i64, ptr {self._memory.module_variable_address(SHARED_STRIDE_VARIABLE)}")
        numbers = [asm.value(f"ptrtoint ptr {each} to i64") for each in (address, "%shared")]
        is_own = asm.value(f"icmp ult i64 {asm.value(f'sub i64 {numbers[0]}, {numbers[1]}')}, {size}")
        result = asm.alloca(type.size, "found")
        for is_shared in asm.iterate_sides(is_own):
            if is_shared:
                old = self._update_nonatomic(expression.op, type, address, values[0])
            else:
                old = self._write_atomic(expression, address, values)
            asm.emit(f"store {llvm_type} {old}, ptr {result}")
        return asm.value(f"load {llvm_type}, ptr {result}")

    def visit_async_copy(self, expression: ir.AsyncCopy, frame: PlannedFrame) -> Value:
        """Copy immediately, which is allowed: code that waits for the copy sees no difference."""
        asm = self._asm
        destination, source = self.scalar(frame, expression.destination), self.scalar(frame, expression.source)
        size = self._int64_value(frame, expression.bytes)
        source_size = size
        if expression.read_bytes is not None:
            asm.declare("i64 @llvm.umin.i64(i64, i64)")
            requested = self._int64_value(frame, expression.read_bytes)
            source_size = asm.value(f"call i64 @llvm.umin.i64(i64 {requested}, i64 {size})")
            asm.fill(destination, 0, size)
        asm.declare("void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)")
        asm.emit(f"call void @llvm.memmove.p0.p0.i64(ptr {destination}, ptr {source}, i64 {source_size}, i1 false)")
        return "0"

    def visit_launch_call(self, launch: ir.LaunchCall, frame: PlannedFrame) -> Value:
        """Pass a launch's record to the host, which runs the child after all blocks have finished."""
        asm, memory, block = self._asm, self._memory, self._block
        stream, shared = self.scalar(frame, launch.stream), self._int64_value(frame, launch.shared_bytes)
        extents = [*self.value(frame, launch.grid), *self.value(frame, launch.block)]
        arguments = [self.value(frame, argument) for argument in launch.arguments]
        *offsets, size = compute_parameter_offsets(launch.function)
        record = asm.alloca(size, "launch")
        indices = [block.special(name, axis) for name in ("threadIdx", "blockIdx") for axis in range(3)]
        head = [asm.value(f"zext i32 {number} to i64") for number in (*indices, *extents)]
        asm.declare("ptr @llvm.frameaddress.p0(i32)")
        asm.declare("ptr @llvm.stacksave.p0()")
        bounds = [
            asm.value(f"call ptr @llvm.{intrinsic}") for intrinsic in ("stacksave.p0()", "frameaddress.p0(i32 0)")
        ]
        addresses = [asm.value(f"ptrtoint ptr {address} to i64") for address in (stream, *bounds)]
        head = [str(memory.launch_number(launch)), *head, shared, *addresses]
        for word, number in enumerate(head):
            asm.emit(f"store i64 {number}, ptr {asm.offset(record, 8 * word)}")
        assert len(head) * 8 == ARGUMENTS
        for offset, argument, value in zip(offsets, launch.arguments, arguments, strict=True):
            memory.store(asm.offset(record, offset), argument.type, value, private=True)
        taker = asm.value(f"load ptr, ptr {memory.module_variable_address(LAUNCH_CALLBACK_VARIABLE)}")
        asm.emit(f"call void {taker}(ptr {record})")
        return "0"

    def _int64_value(self, frame: PlannedFrame, expression: ir.Expression) -> str:
        assert isinstance(expression.type, Scalar)
        return arithmetic.emit_cast(self._asm, expression.type, INT64, self.scalar(frame, expression))

    def visit_assertion(self, assertion: ir.Assertion, frame: PlannedFrame) -> Value:
        """Write an assertion: the first thread that finds it false records the failure, and its worker stops."""
        failure = ThreadFailure(f"finds the assertion `{assertion.text}` false", assertion.position, "assertion")
        self._memory.check(self.scalar(frame, assertion.condition), failure)
        return "0"
