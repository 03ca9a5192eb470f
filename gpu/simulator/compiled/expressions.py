"""The computations of one thread: write expressions as LLVM instructions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from gpu.simulator import ir
from gpu.simulator.compiled import arithmetic
from gpu.simulator.compiled.accesses import AccessWriter
from gpu.simulator.compiled.assembly import Assembly, UnsupportedKernel, memory_type, value_type
from gpu.simulator.compiled.children import ARGUMENTS, compute_parameter_offsets
from gpu.simulator.compiled.intervals import Intervals
from gpu.simulator.compiled.memory import (
    HANDLE_COUNT_VARIABLE,
    LAUNCH_CALLBACK_VARIABLE,
    SHARED_STRIDE_VARIABLE,
    KernelMemory,
    ThreadFailure,
    Value,
)
from gpu.simulator.compiled.phases import PhaseWriter
from gpu.simulator.compiled.plan import PlannedFrame
from gpu.simulator.compiled.strips import BitStrips
from gpu.simulator.compiled.thread_block import ThreadBlock
from gpu.simulator.compiled.thread_context import ThreadContext
from gpu.simulator.types import INT64, Pointer, Scalar, Type, leaves

_NONATOMIC_OPERATORS = {"add": "+", "sub": "-", "and": "&", "or": "|", "xor": "^"}
_UNSUPPORTED = {
    "Print": "printf",
    "Warp": "an exchange between threads in a conditional operand",
    "IndirectCall": "a call through a function pointer",
    "GridBarrier": "a barrier of the whole grid",
    "Clock": "a clock",
    "Texel": "a texture that is read by coordinates",
    "TexelWeight": "a texture that is read by coordinates",
    "WaitForChildren": "a wait for kernels that it launched",
}


_SHARED_WINDOW = 1024
"""The address of the first byte of shared memory, which must not be null."""

_RANK_SHIFT = 27
"""Addresses in another block's shared memory have its rank, counted from 1, in the bits from this one on."""


class ExpressionWriter:
    """Writes the computations of a thread.

    Parameters
    ----------
    asm : Assembly
    block : ThreadBlock
    memory : KernelMemory
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

    def __init__(
        self, asm: Assembly, block: ThreadBlock, memory: KernelMemory, call: Callable[[PlannedFrame, ir.Call], Value]
    ) -> None:
        self._asm = asm
        self._block = block
        self._memory = memory
        self._call = call
        self._intervals = Intervals(block.shape)
        self.thread = ThreadContext(asm, block, memory, self.scalar)
        self.strips = BitStrips(self.thread)
        self.accesses = AccessWriter(self.thread, self.strips.find_subscript)
        self.phases = PhaseWriter(self.thread)

    def scalar(self, frame: PlannedFrame, expression: ir.Expression) -> str:
        """Return the value of an expression that is not a struct."""
        value = self.value(frame, expression)
        assert isinstance(value, str)
        return value

    def value(self, frame: PlannedFrame, expression: ir.Expression) -> Value:
        """Write the computation of an expression, and return its value; for a struct, one value per leaf."""
        asm = self._asm
        match expression:
            case ir.Const(type, value):
                return arithmetic.format_literal(type, value)
            case ir.Null():
                return "null"
            case ir.Local(type, slot, _):
                computed = self._memory.computed_expression(frame, slot)
                if computed is not None:
                    return self.value(frame, computed)
                parameter = self._memory.parameter_value(frame, slot)
                if parameter is not None:
                    return parameter
                array = self._memory.array_address(frame, slot)
                if array is not None:
                    return array
                return self._memory.load(self._memory.variable_address(frame, slot, type), type)
            case ir.Global(_, name):
                return self._memory.module_variable_address(name)
            case ir.Special(_, name, axis):
                return self._block.special(name, axis)
            case ir.Unary(_, op, operand):
                assert isinstance(operand.type, Scalar)
                return arithmetic.emit_unary(asm, op, operand.type, self.scalar(frame, operand))
            case ir.Binary(_, op, left, right):
                assert isinstance(left.type, Scalar)
                strip_value = self.strips.find_value(frame, expression) if op in "&|^" else None
                if strip_value is not None:
                    return strip_value
                quotient = self._block.quotient(frame, expression)
                if quotient is not None:
                    return arithmetic.emit_cast(asm, INT64, left.type, quotient)
                first, second = self.scalar(frame, left), self.scalar(frame, right)
                if op in ("<<", ">>") and isinstance(right.type, Scalar):
                    second = arithmetic.emit_cast(asm, right.type, left.type, second)
                return arithmetic.emit_binary(
                    asm, op, left.type, first, second, flags=self._intervals.no_wrap_flags(frame, expression)
                )
            case ir.Logical(_, op, left, right):
                return self._logical(frame, op, left, right)
            case ir.Select(type, condition, chosen, other):
                return self._select(frame, type, condition, chosen, other)
            case ir.Sequence(_, before, after):
                self.value(frame, before)
                return self.value(frame, after)
            case ir.Cast():
                return self._cast(frame, expression)
            case ir.SharedAddress(type, operand):
                return self._shared_address(frame, type, operand)
            case ir.ClusterAddress():
                return self._cluster_address(frame, expression)
            case ir.Offset(type, pointer, index):
                return self.accesses.offset_address(frame, self.scalar(frame, pointer), index, type.element.size)
            case ir.Member(_, pointer, offset):
                return asm.offset(self.scalar(frame, pointer), offset)
            case ir.Construct(_, parts):
                flat: list[str] = []
                for part in parts:
                    part_values = self.value(frame, part)
                    flat += part_values if isinstance(part_values, tuple) else (part_values,)
                return tuple(flat)
            case ir.Extract(type, operand, first_leaf):
                struct_values = self.value(frame, operand)
                assert isinstance(struct_values, tuple)
                if isinstance(type, Scalar | Pointer):
                    return struct_values[first_leaf]
                return struct_values[first_leaf : first_leaf + len(leaves(type))]
            case ir.Temporary(type, inner):
                address = asm.alloca(type.element.size, "temporary")
                if inner is not None:
                    self._memory.store(address, type.element, self.value(frame, inner))
                return address
            case ir.Distance():
                return self._distance(frame, expression)
            case ir.Load(type, place):
                return self.accesses.read(frame, place, type)
            case ir.Assign(type, place, inner):
                new = self.value(frame, inner)
                self.accesses.write(frame, place, type, new)
                return new
            case ir.Update():
                return self._update(frame, expression)
            case ir.Intrinsic(_, name, arguments):
                operand_values = [self.scalar(frame, argument) for argument in arguments]
                return arithmetic.emit_intrinsic(asm, name, arguments[0].type, operand_values)
            case ir.Atomic():
                return self._atomic(frame, expression)
            case ir.Fence():
                asm.emit("fence seq_cst")
                return "0"
            case ir.HeapChange() | ir.AsyncCommit() | ir.AsyncWait():
                return "0"
            case ir.AsyncCopy():
                return self._async_copy(frame, expression)
            case ir.BarrierPhase():
                return self.phases.write_change(frame, expression)
            case ir.BulkCopy():
                return self.phases.write_bulk_copy(frame, expression)
            case ir.Assertion():
                return self._assert(frame, expression)
            case ir.Call():
                return self._call(frame, expression)
            case ir.Clock(type, is_handle=True):
                counter = self._memory.module_variable_address(HANDLE_COUNT_VARIABLE)
                return arithmetic.emit_cast(
                    asm, INT64, type, asm.value(f"atomicrmw add ptr {counter}, i64 1 monotonic")
                )
            case ir.LaunchCall():
                return self._launch(frame, expression)
        kind = expression.__class__.__name__
        raise UnsupportedKernel(_UNSUPPORTED.get(kind, f"{kind.lower()} expressions"))

    def _logical(self, frame: PlannedFrame, op: str, left: ir.Expression, right: ir.Expression) -> str:
        asm = self._asm
        first = self.scalar(frame, left)
        if _is_cheap(right):
            second = self.scalar(frame, right)
            return asm.value(f"{'and' if op == '&&' else 'or'} i1 {first}, {second}")
        result = asm.alloca(1, "logical")
        asm.emit(f"store i1 {first}, ptr {result}")
        needed = first if op == "&&" else asm.value(f"xor i1 {first}, true")
        with asm.execute_if(needed):
            asm.emit(f"store i1 {self.scalar(frame, right)}, ptr {result}")
        return asm.value(f"load i1, ptr {result}")

    def _select(
        self, frame: PlannedFrame, type: Type, condition: ir.Expression, chosen: ir.Expression, other: ir.Expression
    ) -> Value:
        asm = self._asm
        test = self.scalar(frame, condition)
        if test in ("true", "false"):
            return self.value(frame, chosen if test == "true" else other)
        if isinstance(type, Scalar | Pointer) and _is_cheap(chosen) and _is_cheap(other):
            first, second = self.scalar(frame, chosen), self.scalar(frame, other)
            return asm.value(f"select i1 {test}, {value_type(type)} {first}, {value_type(type)} {second}")
        result_address = asm.alloca(type.size, "select")
        then, otherwise, after = asm.new_name("then"), asm.new_name("else"), asm.new_name("after")
        asm.branch(test, then, otherwise)
        for label, side in ((then, chosen), (otherwise, other)):
            asm.begin_block(label)
            self._memory.store(result_address, type, self.value(frame, side), private=True)
            asm.jump(after)
        asm.begin_block(after)
        return self._memory.load(result_address, type, private=True)

    def _cast(self, frame: PlannedFrame, expression: ir.Cast) -> Value:
        source, target = expression.operand.type, expression.type
        operand = self.value(frame, expression.operand)
        if not isinstance(operand, str):
            return operand
        if isinstance(source, Scalar) and isinstance(target, Scalar):
            return arithmetic.emit_cast(self._asm, source, target, operand)
        if isinstance(source, Pointer) and isinstance(target, Scalar):
            return arithmetic.emit_pointer_conversion(self._asm, operand, target)
        if isinstance(source, Scalar) and isinstance(target, Pointer):
            number = arithmetic.emit_cast(self._asm, source, INT64, operand)
            return self._asm.value(f"inttoptr i64 {number} to ptr")
        return operand

    def _cluster_address(self, frame: PlannedFrame, expression: ir.ClusterAddress) -> str:
        asm, blocks = self._asm, prod(self._block.cluster)
        pointer, rank = self.scalar(frame, expression.pointer), self._int64_value(frame, expression.rank)
        is_valid, is_invalid = asm.new_name("there"), asm.new_name("nowhere")
        asm.branch(asm.value(f"icmp ult i64 {rank}, {blocks}"), is_valid, is_invalid)
        asm.begin_block(is_invalid)
        failure_text = f"maps a rank beyond the {blocks} blocks of its cluster"
        failure = ThreadFailure(failure_text, expression.position, "out-of-bounds", "Ranks are 0 to num_blocks() - 1.")
        self._memory.fail(failure, self._block.thread_index)
        asm.begin_block(is_valid)
        if blocks == 1:
            return pointer
        return asm.offset(pointer, asm.value(f"mul i64 {asm.value(f'sub i64 {rank}, %rank')}, %stride"))

    def _shared_address(self, frame: PlannedFrame, type: Scalar | Pointer, operand: ir.Expression) -> str:
        """Convert between addresses and pointers of shared memory; larger numbers are generic pointers already.

        In a cluster, the addresses of another block's shared memory have its rank in their upper bits.
        """
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

    def _distance(self, frame: PlannedFrame, expression: ir.Distance) -> str:
        asm = self._asm
        assert isinstance(expression.left.type, Pointer)
        numbers = [
            asm.value(f"ptrtoint ptr {self.scalar(frame, side)} to i64") for side in (expression.left, expression.right)
        ]
        difference = asm.value(f"sub i64 {numbers[0]}, {numbers[1]}")
        return asm.value(f"sdiv i64 {difference}, {expression.left.type.element.size}")

    def _update(self, frame: PlannedFrame, expression: ir.Update) -> Value:
        asm, place = self._asm, expression.place
        operand = expression.value
        if isinstance(expression.compute_type, Pointer):
            address = self.accesses.address(frame, place)
            old = self._memory.load(address, place.type)
            assert isinstance(old, str)
            new = self.accesses.offset_address(frame, old, operand, expression.compute_type.element.size)
        else:
            stored_type, compute = expression.type, expression.compute_type
            assert isinstance(stored_type, Scalar)
            right = self.scalar(frame, operand)
            address = self.accesses.address(frame, place)
            old = self._memory.load(address, place.type)
            assert isinstance(old, str)
            if expression.op in ("<<", ">>") and isinstance(operand.type, Scalar):
                right = arithmetic.emit_cast(asm, operand.type, compute, right)
            widened = arithmetic.emit_cast(asm, stored_type, compute, old)
            computed = arithmetic.emit_binary(asm, expression.op, compute, widened, right)
            new = arithmetic.emit_cast(asm, compute, stored_type, computed)
        self._memory.store(address, place.type, new)
        return old if expression.returns_old else new

    def _atomic(self, frame: PlannedFrame, expression: ir.Atomic) -> str:
        type = expression.type
        address = self.accesses.address(frame, expression.place)
        values = [self.scalar(frame, argument) for argument in expression.arguments]
        if expression.op in _NONATOMIC_OPERATORS:
            if self._memory.is_shared(frame, expression.place.pointer):
                return self._update_nonatomic(expression.op, type, address, values[0])
            if not self._memory.is_global(frame, expression.place.pointer):
                return self._update_nonatomic_if_shared(expression, address, values)
        return self._update_atomically(expression, address, values)

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
        own_block, other_block, end = asm.new_name("own"), asm.new_name("other"), asm.new_name("after")
        asm.branch(is_own, own_block, other_block)
        asm.begin_block(own_block)
        asm.emit(f"store {llvm_type} {self._update_nonatomic(expression.op, type, address, values[0])}, ptr {result}")
        asm.jump(end)
        asm.begin_block(other_block)
        asm.emit(f"store {llvm_type} {self._update_atomically(expression, address, values)}, ptr {result}")
        asm.begin_block(end)
        return asm.value(f"load {llvm_type}, ptr {result}")

    def _update_atomically(self, expression: ir.Atomic, address: str, values: Sequence[str]) -> str:
        asm, type = self._asm, expression.type
        llvm_type = memory_type(type)
        if expression.op == "cas":
            integer = f"i{8 * type.size}"
            pair = asm.value(f"cmpxchg ptr {address}, {integer} {values[0]}, {integer} {values[1]} seq_cst seq_cst")
            return asm.value(f"extractvalue {{ {integer}, i1 }} {pair}, 0")
        kind = {"exch": "xchg", "inc": "uinc_wrap", "dec": "udec_wrap"}.get(expression.op, expression.op)
        if type.is_float:
            kind = {"min": "fmin", "max": "fmax", "xchg": "xchg"}.get(kind, f"f{kind}")
        elif kind in ("min", "max") and not type.is_signed:
            kind = f"u{kind}"
        return asm.value(f"atomicrmw {kind} ptr {address}, {llvm_type} {values[0]} monotonic")

    def _async_copy(self, frame: PlannedFrame, expression: ir.AsyncCopy) -> str:
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

    def _launch(self, frame: PlannedFrame, launch: ir.LaunchCall) -> str:
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

    def _assert(self, frame: PlannedFrame, assertion: ir.Assertion) -> str:
        """Write an assertion: the first thread that finds it false records the failure, and its worker stops."""
        asm = self._asm
        holds, fails = asm.new_name("holds"), asm.new_name("fails")
        asm.branch(self.scalar(frame, assertion.condition), holds, fails)
        asm.begin_block(fails)
        failure = ThreadFailure(f"finds the assertion `{assertion.text}` false", assertion.position, "assertion")
        self._memory.fail(failure, self._block.thread_index)
        asm.begin_block(holds)
        return "0"


def _is_cheap(expression: Any) -> bool:
    """Return whether an expression may be evaluated although C would not: it has no effect and cannot fail."""
    match expression:
        case ir.Const() | ir.Local() | ir.Special() | ir.Null():
            return True
        case ir.Unary(_, _, operand) | ir.Cast(_, operand):
            return _is_cheap(operand)
        case ir.Binary(_, op, left, right):
            return op not in ("/", "%") and _is_cheap(left) and _is_cheap(right)
        case ir.Logical(_, _, left, right):
            return _is_cheap(left) and _is_cheap(right)
        case ir.Select(_, condition, chosen, other):
            return _is_cheap(condition) and _is_cheap(chosen) and _is_cheap(other)
        case ir.Intrinsic(_, name, arguments):
            return name in ("min", "max", "fminf", "fmaxf") and all(map(_is_cheap, arguments))
    return False
