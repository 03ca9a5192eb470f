"""Expressions: from clang's cursors to the IR's. Clang has made every conversion a node with a type already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpu.simulator import ir
from gpu.simulator.clang import Cursor, CursorKind, binary_operator, evaluate, start_of, unary_operator
from gpu.simulator.fold import fold
from gpu.simulator.intrinsics import ATOMICS, FENCES, INTRINSICS
from gpu.simulator.lower_types import lower_type, refuse
from gpu.simulator.types import BOOL, INT32, INT64, ArrayOf, Pointer, Scalar, Type, Void

if TYPE_CHECKING:
    from gpu.simulator.frontend import Program

_SPECIAL = ("threadIdx", "blockIdx", "blockDim", "gridDim")
_AXES = ("x", "y", "z")
_LITERALS = (
    CursorKind.INTEGER_LITERAL,
    CursorKind.FLOATING_LITERAL,
    CursorKind.CHARACTER_LITERAL,
    CursorKind.CXX_BOOL_LITERAL_EXPR,
)
_CASTS = (CursorKind.CSTYLE_CAST_EXPR, CursorKind.CXX_STATIC_CAST_EXPR, CursorKind.CXX_FUNCTIONAL_CAST_EXPR)
_POINTER_CASTS = (CursorKind.CXX_REINTERPRET_CAST_EXPR, CursorKind.CXX_CONST_CAST_EXPR)


class Scope:
    """The variables of one function, by the cursors that declare them."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.slots = 0
        self._locals: dict[int, tuple[ir.Local, Type]] = {}
        self._in_memory: set[int] = set()

    def declare(self, cursor: Cursor, type: Type, *, in_memory: bool = False) -> ir.Local:
        """Give a variable its slot. What is an array or `in_memory` is reached through a pointer in that slot."""
        held = Pointer(type.innermost) if isinstance(type, ArrayOf) else Pointer(type) if in_memory else type
        local = ir.Local(held, self.slots, cursor.spelling)
        self._locals[cursor.hash] = (local, type)
        if in_memory and not isinstance(type, ArrayOf):
            self._in_memory.add(cursor.hash)
        self.slots += 1
        return local

    def find(self, declaration: Cursor) -> tuple[ir.Local, Type, bool] | None:
        """Return a variable, its type in C, and whether it is a scalar behind a pointer; None for one not of here."""
        if declaration.hash not in self._locals:
            return None
        return (*self._locals[declaration.hash], declaration.hash in self._in_memory)


class Expressions:
    """Lowers the expressions of one function."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def condition(self, cursor: Cursor) -> ir.Expression:
        """Lower an expression that decides: a bool."""
        return self.converted(cursor, BOOL)

    def converted(self, cursor: Cursor, type: Type) -> ir.Expression:
        """Lower an expression and convert it to `type`."""
        return _convert(self.value(cursor), type)

    def discarded(self, cursor: Cursor) -> ir.Expression:
        """Lower an expression whose value nobody wants, so that an atomic need not give one."""
        lowered = self.value(cursor)
        if isinstance(lowered, ir.Atomic):
            return ir.Atomic(lowered.type, lowered.op, lowered.place, lowered.arguments, used=False)
        return lowered

    def value(self, cursor: Cursor) -> ir.Expression:
        """Lower an expression to its value. An array's is the pointer to its first element."""
        kind = cursor.kind
        if kind in _LITERALS:
            return self._constant(cursor)
        if kind == CursorKind.PAREN_EXPR:
            return self.value(_only_child(cursor))
        if kind == CursorKind.UNEXPOSED_EXPR:
            return self._implicit(cursor)
        if kind in _CASTS or kind in _POINTER_CASTS:
            return self._cast(cursor)
        if kind == CursorKind.DECL_REF_EXPR:
            return self._name(cursor)
        if kind == CursorKind.MEMBER_REF_EXPR:
            return self._member(cursor)
        if kind == CursorKind.ARRAY_SUBSCRIPT_EXPR:
            return self._read_subscript(cursor)
        if kind == CursorKind.BINARY_OPERATOR:
            return self._binary(cursor)
        if kind == CursorKind.COMPOUND_ASSIGNMENT_OPERATOR:
            return self._compound(cursor)
        if kind == CursorKind.UNARY_OPERATOR:
            return self._unary(cursor)
        if kind == CursorKind.CONDITIONAL_OPERATOR:
            condition, chosen, other = cursor.get_children()
            type = lower_type(cursor.type, cursor)
            return fold(
                ir.Select(type, self.condition(condition), self.converted(chosen, type), self.converted(other, type))
            )
        if kind == CursorKind.CALL_EXPR:
            return self._call(cursor)
        if (number := evaluate(cursor)) is not None:  # sizeof, alignof and the like
            return _number(lower_type(cursor.type, cursor), number)
        raise refuse(cursor, f"this expression ({kind.name.lower().replace('_', ' ')})")

    def place(self, cursor: Cursor) -> ir.Place:
        """Lower an expression that can be assigned to."""
        kind = cursor.kind
        if kind == CursorKind.PAREN_EXPR:
            return self.place(_only_child(cursor))
        if kind == CursorKind.DECL_REF_EXPR:
            found = self._scope.find(cursor.referenced)
            if found is not None:
                local, _, in_memory = found
                return _dereference(local, cursor) if in_memory else local
            return _dereference(self._module_variable(cursor), cursor)
        if kind == CursorKind.ARRAY_SUBSCRIPT_EXPR:
            return self._subscript(cursor)
        if kind == CursorKind.UNARY_OPERATOR and unary_operator(cursor) == "*":
            return _dereference(self.value(_only_child(cursor)), cursor)
        raise refuse(cursor, f"an assignment to this ({kind.name.lower().replace('_', ' ')})")

    def _constant(self, cursor: Cursor) -> ir.Const:
        number = evaluate(cursor)
        if number is None:
            raise refuse(cursor, "this literal")
        return _number(lower_type(cursor.type, cursor), number)

    def _implicit(self, cursor: Cursor) -> ir.Expression:
        children = list(cursor.get_children())
        if len(children) != 1:
            raise refuse(cursor, f"this expression of type {cursor.type.spelling}")
        return _convert(self.value(children[0]), _value_type(lower_type(cursor.type, cursor)))

    def _cast(self, cursor: Cursor) -> ir.Expression:
        operand = list(cursor.get_children())[-1]
        type = lower_type(cursor.type, cursor)
        lowered = self.value(operand)
        if isinstance(type, Void):
            return lowered
        if isinstance(type, Pointer) != isinstance(lowered.type, Pointer):
            raise refuse(cursor, "a cast between a pointer and a number")
        return _convert(lowered, type)

    def _name(self, cursor: Cursor) -> ir.Expression:
        declaration = cursor.referenced
        found = self._scope.find(declaration)
        if found is not None:
            local, type, in_memory = found
            return _load(_dereference(local, cursor)) if in_memory else local
        if declaration.kind == CursorKind.ENUM_CONSTANT_DECL:
            return _number(lower_type(cursor.type, cursor), declaration.enum_value)
        type = lower_type(cursor.type, cursor)
        if declaration.spelling not in self._scope.program.variables:
            number = evaluate(declaration)
            if number is None or not isinstance(type, Scalar):
                raise refuse(cursor, f"the name {cursor.spelling} here")
            return _number(type, number)
        variable = self._module_variable(cursor)
        return variable if isinstance(type, ArrayOf) else _load(_dereference(variable, cursor))

    def _module_variable(self, cursor: Cursor) -> ir.Global:
        variable = self._scope.program.variables.get(cursor.spelling)
        if variable is None:
            raise refuse(cursor, f"the name {cursor.spelling} here")
        return ir.Global(Pointer(variable.element), variable.name)

    def _member(self, cursor: Cursor) -> ir.Expression:
        owner = next(iter(cursor.get_children()), None)
        if owner is not None and owner.spelling in _SPECIAL and cursor.spelling in _AXES:
            return ir.Special(Scalar("uint32"), owner.spelling, _AXES.index(cursor.spelling))
        raise refuse(cursor, f"the member {cursor.spelling} of a struct")

    def _read_subscript(self, cursor: Cursor) -> ir.Expression:
        type = lower_type(cursor.type, cursor)
        if isinstance(type, ArrayOf):
            root, index = self._row(cursor)
            scaled = _times(index, type.count)
            return ir.Offset(Pointer(type.innermost), root, scaled)
        return _load(self._subscript(cursor))

    def _subscript(self, cursor: Cursor) -> ir.Element:
        root, index = self._row(cursor)
        type = lower_type(cursor.type, cursor)
        assert isinstance(type, Scalar | Pointer)
        return ir.Element(type, root, index, start_of(cursor))

    def _row(self, cursor: Cursor) -> tuple[ir.Expression, ir.Expression]:
        """Return the pointer and the index of a subscript; the subscripts of a multi-dimensional array become one."""
        base, subscript = cursor.get_children()
        index = self.value(subscript)
        inner = base
        while inner.kind in (CursorKind.UNEXPOSED_EXPR, CursorKind.PAREN_EXPR):
            inner = _only_child(inner)
        row = lower_type(inner.type, inner)
        if inner.kind == CursorKind.ARRAY_SUBSCRIPT_EXPR and isinstance(row, ArrayOf):
            root, outer = self._row(inner)
            # Arrays are smaller than 2^31 elements, so that 32 bits, whatever their sign, lead to the same element.
            return root, fold(ir.Binary(INT32, "+", _times(outer, row.length), _convert(index, INT32)))
        return self.value(base), index

    def _binary(self, cursor: Cursor) -> ir.Expression:
        left, right = cursor.get_children()
        operator = binary_operator(cursor)
        if operator == "=":
            place = self.place(left)
            return ir.Assign(place.type, place, self.converted(right, place.type))
        if operator == ",":
            return ir.Sequence(lower_type(cursor.type, cursor), self.discarded(left), self.value(right))
        if operator in ("&&", "||"):
            return fold(ir.Logical(BOOL, operator, self.condition(left), self.condition(right)))  # type: ignore[arg-type]
        first, second = self.value(left), self.value(right)
        type = lower_type(cursor.type, cursor)
        if isinstance(first.type, Pointer) or isinstance(second.type, Pointer):
            return self._pointer_arithmetic(cursor, operator, first, second)
        if not isinstance(type, Scalar):
            raise refuse(cursor, f"the operator {operator} here")
        return fold(ir.Binary(type, operator, first, second))

    def _pointer_arithmetic(
        self, cursor: Cursor, operator: str, first: ir.Expression, second: ir.Expression
    ) -> ir.Expression:
        if operator in ("+", "-") and isinstance(first.type, Pointer) and isinstance(second.type, Scalar):
            return ir.Offset(first.type, first, second if operator == "+" else _negated(second))
        if operator == "+" and isinstance(second.type, Pointer):
            return ir.Offset(second.type, second, first)
        if operator == "-":
            return ir.Distance(INT64, first, second)
        raise refuse(cursor, f"the operator {operator} on pointers")

    def _compound(self, cursor: Cursor) -> ir.Expression:
        left, right = cursor.get_children()
        operator = binary_operator(cursor)[:-1]
        place = self.place(left)
        value = self.value(right)
        if isinstance(place.type, Pointer):
            step = value if operator == "+" else _negated(value)
            return ir.Update(place.type, place, "+", step, place.type)
        # Clang has converted the right side to the type that the operation computes in, except for shifts.
        shift = operator in ("<<", ">>")
        compute = _promoted(place.type) if shift else value.type
        assert isinstance(compute, Scalar)
        assert isinstance(place.type, Scalar)
        return ir.Update(place.type, place, operator, value, compute)

    def _unary(self, cursor: Cursor) -> ir.Expression:
        operand = _only_child(cursor)
        operator = unary_operator(cursor)
        if operator in ("x++", "++x", "x--", "--x"):
            place = self.place(operand)
            compute = place.type if isinstance(place.type, Pointer) else _promoted(place.type)
            step = 1 if "+" in operator else -1
            if isinstance(compute, Pointer):
                value: ir.Expression = ir.Const(INT64, np.int64(step))
            else:
                value = _number(compute, abs(step))
            sign = "+" if step > 0 or isinstance(compute, Pointer) else "-"
            return ir.Update(place.type, place, sign, value, compute, gives_old=operator.startswith("x"))
        if operator == "*":
            return _load(_dereference(self.value(operand), cursor))
        if operator == "&":
            place = self.place(operand)
            if isinstance(place, ir.Local):
                raise refuse(cursor, f"the address of the variable {place.name}", instead="Use an array of length 1.")
            index = place.index if place.index is not None else ir.Const(INT32, np.int32(0))
            return ir.Offset(Pointer(place.type), place.pointer, index)
        if operator in ("+", "__extension__"):
            return self.value(operand)
        type = lower_type(cursor.type, cursor)
        if operator not in ("-", "~", "!") or not isinstance(type, Scalar):
            raise refuse(cursor, f"the operator {operator} here")
        return fold(ir.Unary(type, operator, self.condition(operand) if operator == "!" else self.value(operand)))

    def _call(self, cursor: Cursor) -> ir.Expression:
        name = cursor.spelling
        arguments = list(cursor.get_arguments())
        if name in ATOMICS:
            return self._atomic(cursor, arguments)
        type = lower_type(cursor.type, cursor)
        if name in FENCES:
            return ir.Const(INT32, np.int32(0))
        if name in INTRINSICS and isinstance(type, Scalar):
            return ir.Intrinsic(type, name, tuple(self.value(argument) for argument in arguments))
        callee = cursor.referenced
        if callee is None or callee.get_definition() is None:
            raise refuse(cursor, f"a call of {name or 'this'}, which has no body here")
        function = self._scope.program.function(callee)
        return ir.Call(function.type, function, tuple(self.value(argument) for argument in arguments))

    def _atomic(self, cursor: Cursor, arguments: list[Cursor]) -> ir.Expression:
        pointer = self.value(arguments[0])
        if not isinstance(pointer.type, Pointer) or not isinstance(pointer.type.element, Scalar):
            raise refuse(cursor, f"{cursor.spelling} on this address")
        element = pointer.type.element
        place = ir.Element(element, *_split_offset(pointer), start_of(cursor))
        values = tuple(self.converted(argument, element) for argument in arguments[1:])
        return ir.Atomic(element, ATOMICS[cursor.spelling], place, values)


def _only_child(cursor: Cursor) -> Cursor:
    child: Cursor = list(cursor.get_children())[-1]
    return child


def _number(type: Type, number: int | float) -> ir.Const:
    assert isinstance(type, Scalar)
    value: Any = np.array(number).astype(type.dtype)[()]
    return ir.Const(type, value)


def _value_type(type: Type) -> Type:
    return Pointer(type.innermost) if isinstance(type, ArrayOf) else type


def _promoted(type: Type) -> Scalar:
    """Apply C's integer promotion."""
    assert isinstance(type, Scalar)
    return INT32 if type.size < 4 and not type.is_float else type


def _convert(expression: ir.Expression, type: Type) -> ir.Expression:
    if isinstance(type, Pointer):
        element = type.element
        while isinstance(element, ArrayOf):
            element = element.element
        type = Pointer(element)
    if expression.type == type or isinstance(type, Void):
        return expression
    if isinstance(type, Scalar) and isinstance(expression.type, Pointer) and type == BOOL:
        return ir.Binary(BOOL, "!=", ir.Cast(INT64, expression), ir.Const(INT64, np.int64(0)))
    if isinstance(type, Pointer) and isinstance(expression, ir.Const):
        return ir.Null(type)
    return fold(ir.Cast(type, expression))


def _times(index: ir.Expression, factor: int) -> ir.Expression:
    return fold(ir.Binary(INT32, "*", _convert(index, INT32), ir.Const(INT32, np.int32(factor))))


def _negated(index: ir.Expression) -> ir.Expression:
    """Negate an index in 64 bits, where the negative of an unsigned one is right too."""
    return fold(ir.Unary(INT64, "-", _convert(index, INT64)))


def _split_offset(pointer: ir.Expression) -> tuple[ir.Expression, ir.Expression | None]:
    """See `&array[index]` as the array and the index again."""
    return (pointer.pointer, pointer.index) if isinstance(pointer, ir.Offset) else (pointer, None)


def _dereference(pointer: ir.Expression, cursor: Cursor) -> ir.Element:
    if not isinstance(pointer.type, Pointer) or not isinstance(pointer.type.element, Scalar | Pointer):
        raise refuse(cursor, f"what a pointer of type {pointer.type} leads to")
    return ir.Element(pointer.type.element, *_split_offset(pointer), start_of(cursor))


def _load(place: ir.Element) -> ir.Load:
    return ir.Load(place.type, place)
