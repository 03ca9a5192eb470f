"""Expressions: from clang's cursors to the IR's. Clang has made every conversion a node with a type already."""

from __future__ import annotations

import numpy as np

from gpu.errors import SourcePosition
from gpu.simulator import ir
from gpu.simulator.frontend.addresses import is_assignment
from gpu.simulator.frontend.calls import Calls
from gpu.simulator.frontend.clang import (
    Cursor,
    CursorKind,
    start_of,
)
from gpu.simulator.frontend.closures import THIS, captured_variable, is_declared_in
from gpu.simulator.frontend.construction import Construction, bytes_of
from gpu.simulator.frontend.conversions import (
    address_of,
    convert,
    dereference,
    in_elements,
    index32,
    is_volatile,
    negated,
    number_of,
    only_child,
    promoted,
    times,
    zero_of,
)
from gpu.simulator.frontend.fold import fold
from gpu.simulator.frontend.scope import Scope, decayed, referred_place, value_type
from gpu.simulator.frontend.types import is_function_type, is_reference, refuse
from gpu.simulator.types import (
    BOOL,
    FUNCTION_POINTER,
    INT32,
    INT64,
    VOID,
    ArrayOf,
    Pointer,
    Scalar,
    Struct,
    Type,
    Void,
    has_union,
    leaves,
)

_SPECIAL = ("threadIdx", "blockIdx", "blockDim", "gridDim")
_AXES = ("x", "y", "z")
_LITERALS = (
    CursorKind.INTEGER_LITERAL,
    CursorKind.FLOATING_LITERAL,
    CursorKind.CHARACTER_LITERAL,
    CursorKind.CXX_BOOL_LITERAL_EXPR,
)
_CASTS = (
    CursorKind.CSTYLE_CAST_EXPR,
    CursorKind.CXX_STATIC_CAST_EXPR,
    CursorKind.CXX_FUNCTIONAL_CAST_EXPR,
    CursorKind.CXX_REINTERPRET_CAST_EXPR,
    CursorKind.CXX_CONST_CAST_EXPR,
)
_INSTEAD = {
    "CXX_DYNAMIC_CAST_EXPR": "Device code knows the type: use static_cast.",
}
_CHAR = Scalar("int8")
_POINTER_COMPARISONS = ("==", "!=", "<", ">", "<=", ">=")


class Expressions:
    """Lowers the expressions of one function."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._calls = Calls(scope, self)
        self.construction = Construction(scope, self)

    def type_of(self, cursor: Cursor) -> Type:
        """Return the type of an expression."""
        return self._scope.program.types.lower(cursor.type, cursor)

    def condition(self, cursor: Cursor) -> ir.Expression:
        """Lower an expression that decides: a bool."""
        return self.converted(cursor, BOOL)

    def converted(self, cursor: Cursor, type: Type) -> ir.Expression:
        """Lower an expression and convert it to `type`."""
        if cursor.kind == CursorKind.INIT_LIST_EXPR:
            return self.construction.braces(cursor, type)
        return convert(self.value(cursor), type, cursor)

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
            return self.value(only_child(cursor))
        if kind == CursorKind.UNEXPOSED_EXPR:
            return self._implicit(cursor)
        if kind in _CASTS:
            return self._cast(cursor)
        if kind == CursorKind.DECL_REF_EXPR:
            return self._name(cursor)
        if kind == CursorKind.MEMBER_REF_EXPR:
            return self._member(cursor)
        if kind == CursorKind.ARRAY_SUBSCRIPT_EXPR:
            return self._read(self._subscript(cursor))
        if kind == CursorKind.BINARY_OPERATOR:
            return self._binary(cursor)
        if kind == CursorKind.COMPOUND_ASSIGNMENT_OPERATOR:
            return self._assignment(cursor, self._required_place(cursor.children[0]))
        if kind == CursorKind.UNARY_OPERATOR:
            return self._unary(cursor)
        if kind == CursorKind.CONDITIONAL_OPERATOR:
            return self._conditional(cursor)
        if kind == CursorKind.CALL_EXPR:
            return self._calls.call(cursor)
        if kind == CursorKind.INIT_LIST_EXPR:
            return self.construction.braces(cursor, self.type_of(cursor))
        if kind == CursorKind.LAMBDA_EXPR:
            return self._closure(cursor)
        if kind == CursorKind.CXX_NEW_EXPR:
            return self.construction.new(cursor)
        if kind == CursorKind.CXX_DELETE_EXPR:
            return self.construction.delete(cursor)
        if kind == CursorKind.CXX_THIS_EXPR and self._scope.this is not None:
            return self._scope.this
        if kind == CursorKind.STRING_LITERAL:
            return ir.Global(Pointer(_CHAR), self._scope.program.string(bytes_of(cursor)))
        if kind == CursorKind.CXX_NULL_PTR_LITERAL_EXPR:
            return ir.Null(Pointer(Void()))
        if (number := cursor.constant) is not None:  # sizeof, alignof and the like
            return number_of(self.type_of(cursor), number)
        raise refuse(
            cursor, f"this expression ({kind.name.lower().replace('_', ' ')})", instead=_INSTEAD.get(kind.name, "")
        )

    def place(self, cursor: Cursor) -> ir.Place | None:
        """Lower an expression that names a place; None for one that is only a value."""
        kind = cursor.kind
        if kind == CursorKind.PAREN_EXPR:
            return self.place(only_child(cursor))
        if kind == CursorKind.UNEXPOSED_EXPR:
            return self._place_behind(cursor)
        if kind == CursorKind.DECL_REF_EXPR:
            return self._named_place(cursor)
        if kind == CursorKind.MEMBER_REF_EXPR:
            return self._member_place(cursor)
        if kind == CursorKind.ARRAY_SUBSCRIPT_EXPR:
            return self._subscript(cursor)
        if kind == CursorKind.CALL_EXPR:
            pointer = self._calls.reference(cursor)
            return None if pointer is None else dereference(pointer, cursor)
        if kind == CursorKind.UNARY_OPERATOR and cursor.operator == "*":
            return dereference(self.value(only_child(cursor)), cursor)
        if is_assignment(cursor):
            return self._assigned_place(cursor)
        if kind == CursorKind.CONDITIONAL_OPERATOR:
            return self._chosen_place(cursor)
        return None

    def _chosen_place(self, cursor: Cursor) -> ir.Place | None:
        """Lower `c ? a : b` where both are places in memory."""
        condition, *sides = cursor.children
        places = [self.place(side) for side in sides]
        chosen, other = places
        if not isinstance(chosen, ir.Element) or not isinstance(other, ir.Element) or chosen.type != other.type:
            return None
        type = Pointer(decayed(chosen.type))
        pointer = ir.Select(type, self.condition(condition), address_of(chosen), address_of(other))
        return ir.Element(chosen.type, pointer, None, start_of(cursor), chosen.volatile or other.volatile)

    def _assigned_place(self, cursor: Cursor) -> ir.Place:
        """Lower an assignment that is assigned to, as in `(a += 2) *= 3`: the place is worked out once."""
        place = self._required_place(cursor.children[0])
        if isinstance(place, ir.Local):
            raise refuse(cursor, "an assignment to this assignment", instead="Write one assignment a statement.")
        held = ir.Local(Pointer(decayed(place.type)), self._scope.new_slot(), "assigned")
        within = ir.Element(place.type, held, None, place.position, place.volatile)
        kept = ir.Assign(held.type, held, address_of(place))
        done = ir.Sequence(VOID, kept, self._assignment(cursor, within))
        return ir.Element(place.type, ir.Sequence(held.type, done, held), None, place.position, place.volatile)

    def address(self, cursor: Cursor) -> ir.Expression:
        """Lower an expression to its address, for a reference to bind to; a value is given memory."""
        place = self.place(cursor)
        if isinstance(place, ir.Element):
            return address_of(place)
        value = self.value(cursor)
        return ir.Temporary(Pointer(value.type), value)

    def _required_place(self, cursor: Cursor) -> ir.Place:
        place = self.place(cursor)
        if place is None:
            raise refuse(
                cursor,
                f"an assignment to this ({cursor.kind.name.lower().replace('_', ' ')})",
                instead="Assign to a variable or an element, one assignment a statement.",
            )
        return place

    def _place_behind(self, cursor: Cursor) -> ir.Place | None:
        """A conversion keeps the place where it only adds const or goes to a base class."""
        children = cursor.children
        if len(children) != 1:
            return None
        inner, type = self.place(children[0]), self.type_of(cursor)
        if inner is None or isinstance(inner, ir.Local):
            return inner if inner is not None and inner.type == type else None
        if isinstance(type, Struct) and isinstance(inner.type, Struct):
            base = convert(address_of(inner), Pointer(type), cursor)
            return ir.Element(type, base, None, inner.position, inner.volatile)
        return inner if decayed(type) == inner.type else None

    def _constant(self, cursor: Cursor) -> ir.Const:
        number = cursor.constant
        if number is None:
            raise refuse(cursor, "this literal")
        return number_of(self.type_of(cursor), number)

    def _implicit(self, cursor: Cursor) -> ir.Expression:
        children = cursor.children
        type = self.type_of(cursor)
        if not children or not children[-1].is_expression:
            number = cursor.constant  # of a type trait; None of clang's stand-in for what braces leave out
            return zero_of(type) if number is None else number_of(type, number)
        return convert(self.value(children[-1]), value_type(type), cursor)

    def _cast(self, cursor: Cursor) -> ir.Expression:
        children = cursor.children
        type = self.type_of(cursor)
        if not children or not children[-1].is_expression:
            return zero_of(type)  # T()
        if isinstance(type, Void):
            return self.discarded(children[-1])
        if is_reference(cursor.type):
            return self._read(dereference(convert(self.address(children[-1]), Pointer(type), cursor), cursor))
        return self.converted(children[-1], value_type(type))

    def _name(self, cursor: Cursor) -> ir.Expression:
        declaration = cursor.referenced
        if declaration is None or not cursor.spelling:  # a template's argument, put in by clang
            return convert(self.value(only_child(cursor)), self.type_of(cursor), cursor)
        if declaration.kind == CursorKind.ENUM_CONSTANT_DECL:
            return number_of(self.type_of(cursor), declaration.enum_value)
        if declaration.kind in (CursorKind.FUNCTION_DECL, CursorKind.CXX_METHOD):
            return number_of(FUNCTION_POINTER, self._scope.address_taken(declaration))
        variable = self._scope.find(declaration)
        if variable is not None:
            if not variable.in_memory:
                return variable.local
            return self._read(self._variable_place(variable.local, variable.type, cursor))
        captured = self._scope.captured(cursor.spelling, start_of(cursor))
        if captured is not None:
            return self._read(captured)
        type = self.type_of(cursor)
        if isinstance(type, Scalar) and not self._scope.program.is_variable(declaration):
            number = declaration.constant
            if number is not None:
                return number_of(type, number)
        return self._read(self._module_place(cursor))

    def _named_place(self, cursor: Cursor) -> ir.Place | None:
        declaration = cursor.referenced
        if declaration is None or not cursor.spelling or declaration.kind == CursorKind.ENUM_CONSTANT_DECL:
            return None
        variable = self._scope.find(declaration)
        if variable is None:
            return self._scope.captured(cursor.spelling, start_of(cursor)) or self._module_place(cursor)
        if not variable.in_memory:
            return variable.local
        return self._variable_place(variable.local, variable.type, cursor)

    def _variable_place(self, local: ir.Local, type: Type, cursor: Cursor) -> ir.Element:
        return ir.Element(type, local, None, start_of(cursor), is_volatile(cursor))

    def _module_place(self, cursor: Cursor) -> ir.Element:
        declaration = cursor.referenced
        shared = self._scope.program.shared_outside(declaration, self._scope)
        if shared is not None:
            return self._variable_place(shared, self.type_of(cursor), cursor)
        variable = self._scope.program.variable(declaration) if declaration is not None else None
        if variable is None:
            raise refuse(cursor, f"the name {cursor.spelling} here")
        pointer = ir.Global(Pointer(decayed(variable.type)), variable.name)
        return ir.Element(variable.type, pointer, None, start_of(cursor), is_volatile(cursor))

    def _read(self, place: ir.Element) -> ir.Expression:
        """Return the value at a place; of an array, the pointer to its first element."""
        if isinstance(place.type, ArrayOf):
            return convert(address_of(place), Pointer(place.type.innermost), None)
        return ir.Load(place.type, place)

    def _member(self, cursor: Cursor) -> ir.Expression:
        owner = next(iter(cursor.children), None)
        if owner is not None and owner.spelling in _SPECIAL and self._is_of_cuda(owner):
            return ir.Special(Scalar("uint32"), owner.spelling, _AXES.index(cursor.spelling))
        place = self._member_place(cursor)
        if place is not None:
            return self._read(place)
        declaration = cursor.referenced
        if declaration is not None and declaration.kind == CursorKind.VAR_DECL:
            number = declaration.constant  # a static constexpr member
            if number is not None:
                return number_of(self.type_of(cursor), number)
        if owner is None:
            raise refuse(cursor, f"the member {cursor.spelling} here")
        whole = self.value(owner)
        if not isinstance(whole.type, Struct):
            raise refuse(cursor, f"the member {cursor.spelling} of this")
        member = whole.type.field(cursor.spelling)
        if has_union(whole.type):
            moved = ir.Member(Pointer(decayed(member.type)), ir.Temporary(Pointer(whole.type), whole), member.offset)
            return self._read(referred_place(member, moved, start_of(cursor)))
        first = next(n for n, (offset, _) in enumerate(leaves(whole.type)) if offset >= member.offset)
        return ir.Extract(member.type, whole, first)

    def _is_of_cuda(self, cursor: Cursor) -> bool:
        """Whether a name is not that of a variable of this function."""
        return cursor.referenced is None or self._scope.find(cursor.referenced) is None

    def _member_place(self, cursor: Cursor) -> ir.Element | None:
        declaration = cursor.referenced
        if declaration is None or declaration.kind != CursorKind.FIELD_DECL:
            return None
        owner = next(iter(cursor.children), None)
        if owner is None or not owner.is_expression:
            pointer: ir.Expression | None = self._scope.this
        elif isinstance(self.type_of(owner), Pointer):
            pointer = self.value(owner)
        else:
            place = self.place(owner)
            pointer = address_of(place) if isinstance(place, ir.Element) else None
        if pointer is None or not isinstance(pointer.type, Pointer) or not isinstance(pointer.type.element, Struct):
            return None
        # libclang gives anonymous structs no name to look for: their members are those of the struct around them.
        member = pointer.type.element.field(cursor.spelling)
        moved = ir.Member(Pointer(decayed(member.type)), pointer, member.offset)
        return referred_place(member, moved, start_of(cursor), volatile=is_volatile(cursor))

    def _subscript(self, cursor: Cursor) -> ir.Element:
        base, subscript = cursor.children
        index = self.value(subscript)
        type = self.type_of(cursor)
        outer = _array_behind(base)
        if outer is not None and isinstance(row := self.type_of(outer), ArrayOf):
            place = self._subscript(outer)
            # Arrays are smaller than 2^31 elements, so that 32 bits, whatever their sign, lead to the same element.
            flat = fold(ir.Binary(INT32, "+", times(index32(place), row.length), convert(index, INT32, cursor)))
            return ir.Element(type, place.pointer, flat, start_of(cursor), is_volatile(cursor))
        # Where the element is an array itself, the index counts rows, and the next subscript makes it one of elements.
        return ir.Element(type, self.value(base), index, start_of(cursor), is_volatile(cursor))

    def _conditional(self, cursor: Cursor) -> ir.Expression:
        condition, chosen, other = cursor.children
        type = value_type(self.type_of(cursor))
        return fold(
            ir.Select(type, self.condition(condition), self.converted(chosen, type), self.converted(other, type))
        )

    def _binary(self, cursor: Cursor) -> ir.Expression:
        left, right = cursor.children
        operator = cursor.operator
        if operator == "=":
            return self._assignment(cursor, self._required_place(left))
        if operator == ",":
            launch = self._calls.launch(left, right)
            if launch is not None:
                return launch
            first = self.discarded(left)
            second = self.value(right)
            return ir.Sequence(second.type, first, second)
        if operator in ("&&", "||"):
            return fold(ir.Logical(BOOL, operator, self.condition(left), self.condition(right)))  # type: ignore[arg-type]
        first, second = self.value(left), self.value(right)
        if isinstance(first.type, Pointer) or isinstance(second.type, Pointer):
            return self._pointer_arithmetic(cursor, operator, first, second)
        type = self.type_of(cursor)
        if not isinstance(type, Scalar):
            raise refuse(cursor, f"the operator {operator} here")
        return fold(ir.Binary(type, operator, first, second))

    def _pointer_arithmetic(
        self, cursor: Cursor, operator: str, first: ir.Expression, second: ir.Expression
    ) -> ir.Expression:
        if operator in _POINTER_COMPARISONS:
            return ir.Binary(BOOL, operator, convert(first, INT64, cursor), convert(second, INT64, cursor))
        if operator in ("+", "-") and isinstance(first.type, Pointer) and isinstance(second.type, Scalar):
            index = second if operator == "+" else negated(second)
            return ir.Offset(first.type, first, in_elements(index, self.type_of(cursor)))
        if operator == "+" and isinstance(second.type, Pointer):
            return ir.Offset(second.type, second, first)
        if operator == "-":
            return ir.Distance(INT64, first, second)
        raise refuse(cursor, f"the operator {operator} on pointers")

    def _assignment(self, cursor: Cursor, place: ir.Place) -> ir.Expression:
        """Lower `=`, a compound assignment, `++x` or `--x` to a place that is lowered already."""
        if cursor.kind == CursorKind.UNARY_OPERATOR:
            return self._increment(place, cursor.operator)
        _, right = cursor.children
        if cursor.kind == CursorKind.BINARY_OPERATOR:
            return ir.Assign(place.type, place, self.converted(right, place.type))
        operator = cursor.operator[:-1]
        value = self.value(right)
        if isinstance(place.type, Pointer):
            step = value if operator == "+" else negated(value)
            return ir.Update(place.type, place, "+", step, place.type)
        # Clang has converted the right side to the type that the operation computes in, except for shifts.
        shift = operator in ("<<", ">>")
        compute = promoted(place.type) if shift else value.type
        assert isinstance(compute, Scalar)
        return ir.Update(place.type, place, operator, value, compute)

    def _unary(self, cursor: Cursor) -> ir.Expression:
        operand = only_child(cursor)
        operator = cursor.operator
        if operator in ("x++", "++x", "x--", "--x"):
            return self._increment(self._required_place(operand), operator)
        if operator in ("*", "&") and is_function_type(cursor.type):
            return self.value(operand)
        if operator == "*":
            return self._read(dereference(self.value(operand), cursor))
        if operator == "&":
            place = self._required_place(operand)
            if isinstance(place, ir.Local):
                raise refuse(cursor, f"the address of {place.name}")
            return address_of(place)
        if operator in ("+", "__extension__"):
            return self.value(operand)
        type = self.type_of(cursor)
        if operator not in ("-", "~", "!") or not isinstance(type, Scalar):
            raise refuse(cursor, f"the operator {operator} here")
        return fold(ir.Unary(type, operator, self.condition(operand) if operator == "!" else self.value(operand)))

    def _increment(self, place: ir.Place, operator: str) -> ir.Expression:
        up, gives_old = "+" in operator, operator.startswith("x")
        if isinstance(place.type, Pointer):
            step = ir.Const(INT64, np.int64(1 if up else -1))
            return ir.Update(place.type, place, "+", step, place.type, gives_old)
        compute = promoted(place.type)
        return ir.Update(place.type, place, "+" if up else "-", number_of(compute, 1), compute, gives_old)

    def _closure(self, cursor: Cursor) -> ir.Expression:
        """Lower a lambda to the struct of what it captures."""
        type = self.type_of(cursor)
        assert isinstance(type, Struct)
        parts: list[ir.Expression] = []
        for member in type.fields:
            if member.name == THIS and self._scope.this is not None:
                parts.append(self._scope.this)
                continue
            declaration = captured_variable(cursor, member.name)
            if declaration is None:
                raise refuse(cursor, "this lambda's captures", instead="Write a struct with operator().")
            if is_declared_in(declaration, cursor):
                initial = only_child(declaration)
                parts.append(self.address(initial) if member.is_reference else self.converted(initial, member.type))
                continue
            place = self._place_of(declaration, start_of(cursor))
            if place is None:
                raise refuse(cursor, f"the capture of {member.name}", instead="Write a struct with operator().")
            if isinstance(place, ir.Local):
                parts.append(place)
            elif member.is_reference:
                parts.append(address_of(place))
            elif isinstance(member.type, ArrayOf):
                parts += self._elements_of(place, member.type)
            else:
                parts.append(ir.Load(place.type, place))
        return ir.Construct(type, tuple(parts))

    def _place_of(self, declaration: Cursor, position: SourcePosition) -> ir.Place | None:
        """Return the place of a variable of this function, or of one that this lambda has captured."""
        variable = self._scope.find(declaration)
        if variable is None:
            return self._scope.captured(declaration.spelling, position)
        return ir.Element(variable.type, variable.local, None, position) if variable.in_memory else variable.local

    def _elements_of(self, place: ir.Element, type: ArrayOf) -> list[ir.Expression]:
        """Return the value of each innermost element of an array."""
        first, element = address_of(place), type.innermost
        return [
            ir.Load(element, ir.Element(element, first, number_of(INT32, number), place.position))
            for number in range(type.count)
        ]

    def constructed(self, type: Struct, constructor: Cursor, given: list[Cursor]) -> ir.Expression:
        """Lower a call of a constructor that nobody wrote out."""
        return self._calls.constructed_from(type, constructor, given)


def _array_behind(base: Cursor) -> Cursor | None:
    """Return the subscript that a subscript's base is, `t[i]` in `t[i][j]`, behind the decay of its array."""
    while base.kind in (CursorKind.UNEXPOSED_EXPR, CursorKind.PAREN_EXPR):
        base = only_child(base)
    return base if base.kind == CursorKind.ARRAY_SUBSCRIPT_EXPR else None
