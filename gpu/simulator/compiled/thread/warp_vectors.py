"""Arithmetic on integers for all lanes of a warp at once, in LLVM vectors of 32 elements."""

from __future__ import annotations

from gpu.base.warp import WARP
from gpu.simulator import ir
from gpu.simulator.compiled.analysis.plan import PlannedFrame
from gpu.simulator.compiled.llvm import arithmetic
from gpu.simulator.compiled.llvm.assembly import memory_type, value_type
from gpu.simulator.compiled.thread.context import ThreadContext
from gpu.simulator.types import BOOL, Scalar

_NUMBERS = ", ".join(f"i32 {lane}" for lane in range(WARP))
_OPERATIONS = {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor"}
_COMPARISONS = {"<": "lt", ">": "gt", "<=": "le", ">=": "ge", "==": "eq", "!=": "ne"}


class WarpVectors:
    """Writes the computations of a warp's lanes, if they are arithmetic on integers in registers."""

    def __init__(self, thread: ThreadContext) -> None:
        self._thread = thread

    def is_supported(self, frame: PlannedFrame, expression: ir.Expression) -> bool:
        """Return whether an expression can be computed for all lanes, including inactive ones."""
        if not _is_integer(expression.type):
            return False
        match expression:
            case ir.Const():
                return True
            case ir.Special():
                return self._thread.block.is_one_dimensional
            case ir.Local(_, slot, _):
                computed = self._thread.memory.computed_expression(frame, slot)
                if computed is not None:
                    return self.is_supported(frame, computed)
                return self._thread.memory.is_wide(frame, slot) or not self._thread.memory.is_varying(frame, slot)
            case ir.Unary(_, op, operand):
                return op in "~-!" and self.is_supported(frame, operand)
            case ir.Cast(_, operand):
                return self.is_supported(frame, operand)
            case ir.Binary(_, op, left, right):
                is_supported = (
                    op in _OPERATIONS or op in _COMPARISONS or (op in ("<<", ">>") and expression.type.size >= 4)
                )
                return is_supported and self.is_supported(frame, left) and self.is_supported(frame, right)
            case ir.Logical(_, _, left, right):
                return self.is_supported(frame, left) and self.is_supported(frame, right)
        return False

    def value(self, frame: PlannedFrame, expression: ir.Expression, first: str) -> str:
        """Write a vector of the values of a warp's lanes, from its first thread on; bools are one bit each."""
        asm = self._thread.asm
        assert isinstance(expression.type, Scalar)
        vector_type = _vector_type(expression.type)
        match expression:
            case ir.Const(type, number):
                return f"splat ({value_type(type)} {arithmetic.format_literal(type, number)})"
            case ir.Special(_, "threadIdx", 0):
                start = self._splat(asm.value(f"trunc i64 {first} to i32"), "i32")
                return asm.value(f"add {vector_type} {start}, <{_NUMBERS}>")
            case ir.Special(_, "threadIdx", _):
                return "zeroinitializer"
            case ir.Local(type, slot, _) if isinstance(type, Scalar):
                return self._variable(frame, expression, type, slot, first)
            case ir.Unary(_, op, operand) if isinstance(operand.type, Scalar):
                operand_value, name = self.value(frame, operand, first), _vector_type(operand.type)
                if op == "!":
                    return asm.value(f"icmp eq {name} {operand_value}, zeroinitializer")
                if op == "-":
                    return asm.value(f"sub {name} zeroinitializer, {operand_value}")
                return asm.value(
                    f"xor {name} {operand_value}, splat ({value_type(operand.type)} {_ones(operand.type)})"
                )
            case ir.Cast(Scalar() as target, operand) if isinstance(operand.type, Scalar):
                return self._cast(operand.type, target, self.value(frame, operand, first))
            case ir.Binary(_, op, left, right) if isinstance(left.type, Scalar) and isinstance(right.type, Scalar):
                one, other = self.value(frame, left, first), self.value(frame, right, first)
                return self._binary(op, left.type, one, self._cast(right.type, left.type, other))
            case ir.Logical(_, op, left, right):
                one, other = self.value(frame, left, first), self.value(frame, right, first)
                return asm.value(f"{'and' if op == '&&' else 'or'} {vector_type} {one}, {other}")
        return self._splat(self._thread.scalar(frame, expression), value_type(expression.type))

    def _variable(self, frame: PlannedFrame, expression: ir.Local, type: Scalar, slot: int, first: str) -> str:
        asm = self._thread.asm
        computed = self._thread.memory.computed_expression(frame, slot)
        if computed is not None:
            return self.value(frame, computed, first)
        if not self._thread.memory.is_wide(frame, slot):
            return self._splat(self._thread.scalar(frame, expression), value_type(type))
        with self._thread.block.select_thread(first):
            address = self._thread.memory.variable_address(frame, slot, type)
        loaded = asm.value(f"load <{WARP} x {memory_type(type)}>, ptr {address}, align {WARP}")
        return asm.value(f"icmp ne <{WARP} x i8> {loaded}, zeroinitializer") if type == BOOL else loaded

    def _binary(self, op: str, type: Scalar, one: str, other: str) -> str:
        asm, vector_type, bits = self._thread.asm, _vector_type(type), 8 * type.size
        if op in _OPERATIONS:
            return asm.value(f"{_OPERATIONS[op]} {vector_type} {one}, {other}")
        if op in _COMPARISONS:
            sign = "" if op in ("==", "!=") else "s" if type.is_signed else "u"
            return asm.value(f"icmp {sign}{_COMPARISONS[op]} {vector_type} {one}, {other}")
        # A shift by the width or more results in 0, or in the sign for signed right shifts.
        kind = "shl" if op == "<<" else "ashr" if type.is_signed else "lshr"
        last = f"splat ({value_type(type)} {bits - 1})"
        asm.declare(f"{vector_type} @llvm.umin.v{WARP}i{bits}({vector_type}, {vector_type})")
        amount = asm.value(f"call {vector_type} @llvm.umin.v{WARP}i{bits}({vector_type} {other}, {vector_type} {last})")
        shifted = asm.value(f"{kind} {vector_type} {one}, {amount}")
        if kind == "ashr":
            return shifted
        is_inside = asm.value(f"icmp ule {vector_type} {other}, {last}")
        return asm.value(f"select <{WARP} x i1> {is_inside}, {vector_type} {shifted}, {vector_type} zeroinitializer")

    def _cast(self, source: Scalar, target: Scalar, value: str) -> str:
        asm, before, after = self._thread.asm, _vector_type(source), _vector_type(target)
        if before == after:
            return value
        if target == BOOL:
            return asm.value(f"icmp ne {before} {value}, zeroinitializer")
        if source != BOOL and source.size > target.size:
            return asm.value(f"trunc {before} {value} to {after}")
        return asm.value(f"{'sext' if source.is_signed and source != BOOL else 'zext'} {before} {value} to {after}")

    def _splat(self, value: str, llvm_type: str) -> str:
        vector_type = f"<{WARP} x {llvm_type}>"
        one = self._thread.asm.value(f"insertelement {vector_type} poison, {llvm_type} {value}, i64 0")
        return self._thread.asm.value(
            f"shufflevector {vector_type} {one}, {vector_type} poison, <{WARP} x i32> zeroinitializer"
        )


def _is_integer(type: object) -> bool:
    return isinstance(type, Scalar) and not type.is_float


def _ones(type: Scalar) -> str:
    return "true" if type == BOOL else "-1"


def _vector_type(type: Scalar) -> str:
    return f"<{WARP} x {value_type(type)}>"
