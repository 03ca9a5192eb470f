"""Expressions of one thread as LLVM instructions, for CPUs and for GPUs; subclasses write variables and memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from gpu.simulator import ir
from gpu.simulator.compiled.llvm import arithmetic
from gpu.simulator.compiled.llvm.assembly import Assembly, memory_type, value_type
from gpu.simulator.ir.contraction import is_exact_product
from gpu.simulator.ir.walking import Visitor
from gpu.simulator.types import INT64, Pointer, Scalar, Type, leaves

Value = str | tuple[str, ...]


class ValueWriter(Visitor):
    """Writes the computations of expressions; a frame is the function call that evaluates them.

    Attributes
    ----------
    target : str
        The forms of operations to write.
    speculates : bool
        Whether cheap conditional operands are evaluated although C would not.
    exchange_order : str
        The memory order of compare-and-swap operations.
    distance_instruction : str
        The division of a distance in bytes by an element's size.
    """

    target: ClassVar[arithmetic.Target]
    speculates: ClassVar[bool]
    exchange_order: ClassVar[str]
    distance_instruction: ClassVar[str]

    def __init__(self, asm: Assembly) -> None:
        self._asm = asm

    def scalar(self, frame: Any, expression: ir.Expression) -> str:
        """Return the value of an expression that is not a struct."""
        value = self.value(frame, expression)
        assert isinstance(value, str)
        return value

    def value(self, frame: Any, expression: ir.Expression) -> Value:
        """Write the computation of an expression, and return its value; for a struct, one value per leaf."""
        value: Value = self.visit(expression, frame)
        return value

    # Differences between targets.

    def _load(self, address: str, type: Type, *, private: bool = False) -> Value:
        """Return the value at an address; `private` marks memory that only this thread accesses."""
        raise NotImplementedError

    def _store(self, address: str, type: Type, value: Value, *, private: bool = False) -> None:
        """Write a value to an address."""
        raise NotImplementedError

    def _place_address(self, frame: Any, place: ir.Place) -> str:
        """Return the address of a variable or element."""
        raise NotImplementedError

    def _element_address(self, frame: Any, start: str, index: ir.Expression, size: int) -> str:
        """Return an address moved by an index of elements of a size."""
        raise NotImplementedError

    def _no_wrap_flags(self, frame: Any, operation: ir.Binary | ir.Update) -> str:
        """Return LLVM's flags for an operation that does not wrap."""
        raise NotImplementedError

    # Expressions of each class.

    def visit_const(self, node: ir.Const, frame: Any) -> Value:
        return arithmetic.format_literal(node.type, node.value)

    def visit_null(self, node: ir.Null, frame: Any) -> Value:
        return "null"

    def visit_unary(self, node: ir.Unary, frame: Any) -> Value:
        assert isinstance(node.operand.type, Scalar)
        return arithmetic.emit_unary(self._asm, node.op, node.operand.type, self.scalar(frame, node.operand))

    def visit_binary(self, node: ir.Binary, frame: Any) -> Value:
        type = node.left.type
        assert isinstance(type, Scalar)
        first, second = self._operand(frame, node.left), self._operand(frame, node.right)
        if isinstance(first, tuple) or isinstance(second, tuple):
            return arithmetic.emit_fused(self._asm, node.op, type, first, second)
        if node.op in ("<<", ">>") and isinstance(node.right.type, Scalar):
            second = arithmetic.emit_cast(self._asm, node.right.type, type, second)
        flags = self._no_wrap_flags(frame, node)
        return arithmetic.emit_binary(self._asm, node.op, type, first, second, flags=flags, target=self.target)

    def _operand(self, frame: Any, operand: ir.Expression) -> Value:
        """Return an operand; for an exact product, its factors."""
        if self.target == "llvm" and is_exact_product(operand):
            return self.scalar(frame, operand.left), self.scalar(frame, operand.right)
        return self.scalar(frame, operand)

    def visit_logical(self, node: ir.Logical, frame: Any) -> Value:
        asm = self._asm
        first = self.scalar(frame, node.left)
        if self.speculates and _is_cheap(node.right):
            second = self.scalar(frame, node.right)
            return asm.value(f"{'and' if node.op == '&&' else 'or'} i1 {first}, {second}")
        result = asm.alloca(1, "logical")
        asm.emit(f"store i1 {first}, ptr {result}")
        needed = first if node.op == "&&" else asm.value(f"xor i1 {first}, true")
        with asm.execute_if(needed):
            asm.emit(f"store i1 {self.scalar(frame, node.right)}, ptr {result}")
        return asm.value(f"load i1, ptr {result}")

    def visit_select(self, node: ir.Select, frame: Any) -> Value:
        asm, type = self._asm, node.type
        test = self.scalar(frame, node.condition)
        if test in ("true", "false"):
            return self.value(frame, node.chosen if test == "true" else node.other)
        sides = (node.chosen, node.other)
        if self.speculates and isinstance(type, Scalar | Pointer) and all(map(_is_cheap, sides)):
            first, second = (self.scalar(frame, side) for side in sides)
            return asm.value(f"select i1 {test}, {value_type(type)} {first}, {value_type(type)} {second}")
        place = asm.alloca(type.size, "select")
        for holds in asm.iterate_sides(test):
            self._store(place, type, self.value(frame, node.chosen if holds else node.other), private=True)
        return self._load(place, type, private=True)

    def visit_sequence(self, node: ir.Sequence, frame: Any) -> Value:
        self.value(frame, node.first)
        return self.value(frame, node.second)

    def visit_cast(self, node: ir.Cast, frame: Any) -> Value:
        source, target = node.operand.type, node.type
        operand = self.value(frame, node.operand)
        if not isinstance(operand, str):
            return operand
        if isinstance(source, Scalar) and isinstance(target, Scalar):
            return arithmetic.emit_cast(self._asm, source, target, operand, self.target)
        if isinstance(source, Pointer) and isinstance(target, Scalar):
            return arithmetic.emit_pointer_conversion(self._asm, operand, target)
        if isinstance(source, Scalar) and isinstance(target, Pointer):
            number = arithmetic.emit_cast(self._asm, source, INT64, operand)
            return self._asm.value(f"inttoptr i64 {number} to ptr")
        return operand

    def visit_offset(self, node: ir.Offset, frame: Any) -> Value:
        return self._element_address(frame, self.scalar(frame, node.pointer), node.index, node.type.element.size)

    def visit_member(self, node: ir.Member, frame: Any) -> Value:
        return self._asm.offset(self.scalar(frame, node.pointer), node.offset)

    def visit_construct(self, node: ir.Construct, frame: Any) -> Value:
        flat: list[str] = []
        for part in node.parts:
            part_values = self.value(frame, part)
            flat += part_values if isinstance(part_values, tuple) else (part_values,)
        return tuple(flat)

    def visit_extract(self, node: ir.Extract, frame: Any) -> Value:
        struct_values = self.value(frame, node.operand)
        assert isinstance(struct_values, tuple)
        if isinstance(node.type, Scalar | Pointer):
            return struct_values[node.first]
        return struct_values[node.first : node.first + len(leaves(node.type))]

    def visit_temporary(self, node: ir.Temporary, frame: Any) -> Value:
        address = self._asm.alloca(node.type.element.size, "temporary")
        if node.value is not None:
            self._store(address, node.type.element, self.value(frame, node.value))
        return address

    def visit_distance(self, node: ir.Distance, frame: Any) -> Value:
        asm = self._asm
        assert isinstance(node.left.type, Pointer)
        numbers = [asm.value(f"ptrtoint ptr {self.scalar(frame, side)} to i64") for side in (node.left, node.right)]
        difference = asm.value(f"sub i64 {numbers[0]}, {numbers[1]}")
        return asm.value(f"{self.distance_instruction} i64 {difference}, {node.left.type.element.size}")

    def visit_update(self, node: ir.Update, frame: Any) -> Value:
        asm, place, operand, compute = self._asm, node.place, node.value, node.compute_type
        right = "" if isinstance(compute, Pointer) else self._operand(frame, operand)
        address = self._place_address(frame, place)
        old = self._load(address, place.type)
        assert isinstance(old, str)
        if isinstance(compute, Pointer):
            new = self._element_address(frame, old, operand, compute.element.size)
        else:
            stored_type = node.type
            assert isinstance(stored_type, Scalar)
            widened, flags = arithmetic.emit_cast(asm, stored_type, compute, old), self._no_wrap_flags(frame, node)
            if isinstance(right, tuple):
                computed = arithmetic.emit_fused(asm, node.op, compute, widened, right)
            else:
                if node.op in ("<<", ">>") and isinstance(operand.type, Scalar):
                    right = arithmetic.emit_cast(asm, operand.type, compute, right)
                computed = arithmetic.emit_binary(
                    asm, node.op, compute, widened, right, flags=flags, target=self.target
                )
            new = arithmetic.emit_cast(asm, compute, stored_type, computed, self.target)
        self._store(address, place.type, new)
        return old if node.returns_old else new

    def visit_intrinsic(self, node: ir.Intrinsic, frame: Any) -> Value:
        values = [self.scalar(frame, argument) for argument in node.arguments]
        return arithmetic.emit_intrinsic(self._asm, node.name, node.arguments[0].type, values, self.target)

    def _write_atomic(self, node: ir.Atomic, address: str, values: Sequence[str]) -> str:
        """Write an atomic instruction, and return the old value."""
        asm, type = self._asm, node.type
        if node.op == "cas":
            integer, order = f"i{8 * type.size}", self.exchange_order
            pair = asm.value(f"cmpxchg ptr {address}, {integer} {values[0]}, {integer} {values[1]} {order} {order}")
            return asm.value(f"extractvalue {{ {integer}, i1 }} {pair}, 0")
        kind = {"exch": "xchg", "inc": "uinc_wrap", "dec": "udec_wrap"}.get(node.op, node.op)
        if type.is_float:
            kind = {"min": "fmin", "max": "fmax", "xchg": "xchg"}.get(kind, f"f{kind}")
        elif kind in ("min", "max") and not type.is_signed:
            kind = f"u{kind}"
        return asm.value(f"atomicrmw {kind} ptr {address}, {memory_type(type)} {values[0]} monotonic")


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
