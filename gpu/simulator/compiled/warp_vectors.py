"""What all lanes of a warp compute at once: arithmetic on integers, in LLVM's vectors of 32 elements."""

from __future__ import annotations

from gpu.simulator import ir
from gpu.simulator.compiled import arithmetic
from gpu.simulator.compiled.assembly import memory_type, value_type
from gpu.simulator.compiled.plan import PlannedFrame
from gpu.simulator.compiled.written_thread import WrittenThread
from gpu.simulator.types import BOOL, Scalar
from gpu.warp import WARP

_NUMBERS = ", ".join(f"i32 {lane}" for lane in range(WARP))
_PLAIN = {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor"}
_COMPARED = {"<": "lt", ">": "gt", "<=": "le", ">=": "ge", "==": "eq", "!=": "ne"}


class WarpVectors:
    """Writes what a warp's lanes compute, where that is arithmetic on integers that are in registers.

    Parameters
    ----------
    thread : WrittenThread
    """

    def __init__(self, thread: WrittenThread) -> None:
        self._thread = thread

    def holds(self, frame: PlannedFrame, expression: ir.Expression) -> bool:
        """Whether an expression is of that kind: no lane minds if it is computed for another one that takes no part."""
        if not _is_whole(expression.type):
            return False
        match expression:
            case ir.Const():
                return True
            case ir.Special():
                return self._thread.block.in_line
            case ir.Local(_, slot, _):
                computed = self._thread.memory.computed(frame, slot)
                if computed is not None:
                    return self.holds(frame, computed)
                return self._thread.memory.is_wide(frame, slot) or not self._thread.memory.differs(frame, slot)
            case ir.Unary(_, op, operand):
                return op in "~-!" and self.holds(frame, operand)
            case ir.Cast(_, operand):
                return self.holds(frame, operand)
            case ir.Binary(_, op, left, right):
                known = op in _PLAIN or op in _COMPARED or (op in ("<<", ">>") and _bits(expression) >= 32)
                return known and self.holds(frame, left) and self.holds(frame, right)
            case ir.Logical(_, _, left, right):
                return self.holds(frame, left) and self.holds(frame, right)
        return False

    def value(self, frame: PlannedFrame, expression: ir.Expression, first: str) -> str:
        """Write a vector of the values of the lanes from a thread on; of what is true or not, one bit each."""
        asm = self._thread.asm
        assert isinstance(expression.type, Scalar)
        many = _many(expression.type)
        match expression:
            case ir.Const(type, known):
                return f"splat ({value_type(type)} {arithmetic.literal(type, known)})"
            case ir.Special(_, "threadIdx", 0):
                start = self._splat(asm.value(f"trunc i64 {first} to i32"), "i32")
                return asm.value(f"add {many} {start}, <{_NUMBERS}>")
            case ir.Special(_, "threadIdx", _):
                return "zeroinitializer"
            case ir.Local(type, slot, _) if isinstance(type, Scalar):
                return self._variable(frame, expression, type, slot, first)
            case ir.Unary(_, op, operand) if isinstance(operand.type, Scalar):
                given, name = self.value(frame, operand, first), _many(operand.type)
                if op == "!":
                    return asm.value(f"icmp eq {name} {given}, zeroinitializer")
                if op == "-":
                    return asm.value(f"sub {name} zeroinitializer, {given}")
                return asm.value(f"xor {name} {given}, splat ({value_type(operand.type)} {_ones(operand.type)})")
            case ir.Cast(Scalar() as target, operand) if isinstance(operand.type, Scalar):
                return self._cast(operand.type, target, self.value(frame, operand, first))
            case ir.Binary(_, op, left, right) if isinstance(left.type, Scalar) and isinstance(right.type, Scalar):
                one, other = self.value(frame, left, first), self.value(frame, right, first)
                return self._binary(op, left.type, one, self._cast(right.type, left.type, other))
            case ir.Logical(_, op, left, right):
                one, other = self.value(frame, left, first), self.value(frame, right, first)
                return asm.value(f"{'and' if op == '&&' else 'or'} {many} {one}, {other}")
        return self._splat(self._thread.scalar(frame, expression), value_type(expression.type))

    def _variable(self, frame: PlannedFrame, expression: ir.Local, type: Scalar, slot: int, first: str) -> str:
        asm = self._thread.asm
        computed = self._thread.memory.computed(frame, slot)
        if computed is not None:
            return self.value(frame, computed, first)
        if not self._thread.memory.is_wide(frame, slot):
            return self._splat(self._thread.scalar(frame, expression), value_type(type))
        with self._thread.block.as_thread(first):
            place = self._thread.memory.variable(frame, slot, type)
        loaded = asm.value(f"load <{WARP} x {memory_type(type)}>, ptr {place}, align {WARP}")
        return asm.value(f"icmp ne <{WARP} x i8> {loaded}, zeroinitializer") if type == BOOL else loaded

    def _binary(self, op: str, type: Scalar, one: str, other: str) -> str:
        asm, many, bits = self._thread.asm, _many(type), 8 * type.size
        if op in _PLAIN:
            return asm.value(f"{_PLAIN[op]} {many} {one}, {other}")
        if op in _COMPARED:
            sign = "" if op in ("==", "!=") else "s" if type.is_signed else "u"
            return asm.value(f"icmp {sign}{_COMPARED[op]} {many} {one}, {other}")
        # By as many bits as there are, or more, nothing is left, or the sign.
        kind = "shl" if op == "<<" else "ashr" if type.is_signed else "lshr"
        last = f"splat ({value_type(type)} {bits - 1})"
        asm.declare(f"{many} @llvm.umin.v{WARP}i{bits}({many}, {many})")
        by = asm.value(f"call {many} @llvm.umin.v{WARP}i{bits}({many} {other}, {many} {last})")
        shifted = asm.value(f"{kind} {many} {one}, {by}")
        if kind == "ashr":
            return shifted
        inside = asm.value(f"icmp ule {many} {other}, {last}")
        return asm.value(f"select <{WARP} x i1> {inside}, {many} {shifted}, {many} zeroinitializer")

    def _cast(self, source: Scalar, target: Scalar, given: str) -> str:
        asm, before, after = self._thread.asm, _many(source), _many(target)
        if before == after:
            return given
        if target == BOOL:
            return asm.value(f"icmp ne {before} {given}, zeroinitializer")
        if source != BOOL and source.size > target.size:
            return asm.value(f"trunc {before} {given} to {after}")
        return asm.value(f"{'sext' if source.is_signed and source != BOOL else 'zext'} {before} {given} to {after}")

    def _splat(self, value: str, what: str) -> str:
        many = f"<{WARP} x {what}>"
        one = self._thread.asm.value(f"insertelement {many} poison, {what} {value}, i64 0")
        return self._thread.asm.value(f"shufflevector {many} {one}, {many} poison, <{WARP} x i32> zeroinitializer")


def _is_whole(type: object) -> bool:
    return isinstance(type, Scalar) and not type.is_float


def _bits(expression: ir.Expression) -> int:
    return 8 * expression.type.size


def _ones(type: Scalar) -> str:
    return "true" if type == BOOL else "-1"


def _many(type: Scalar) -> str:
    return f"<{WARP} x {value_type(type)}>"
