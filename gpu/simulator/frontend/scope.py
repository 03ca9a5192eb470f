"""The variables of a function while it is lowered, and which of them must live in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clang import cindex

from gpu.errors import SourcePosition
from gpu.simulator import ir
from gpu.simulator.frontend.clang import (
    Cursor,
    CursorKind,
    TypeKind,
    binary_operator,
    children_of,
    descendants_of,
    unary_operator,
)
from gpu.simulator.frontend.closures import captured_by_reference
from gpu.simulator.frontend.lower_types import is_function_type, is_reference
from gpu.simulator.types import ArrayOf, Field, Pointer, Struct, Type

if TYPE_CHECKING:
    from gpu.simulator.frontend.program import Program


_FUNCTIONS = (
    CursorKind.FUNCTION_DECL,
    CursorKind.CXX_METHOD,
    CursorKind.CONSTRUCTOR,
    CursorKind.CONVERSION_FUNCTION,
    CursorKind.OVERLOADED_DECL_REF,
)


@dataclass(frozen=True)
class Variable:
    """A variable of C. Where it is `in_memory`, its slot holds its address."""

    local: ir.Local
    type: Type
    in_memory: bool


def decayed(type: Type) -> Type:
    """Return what an array's elements are, over every dimension; other types are returned as they are."""
    return type.innermost if isinstance(type, ArrayOf) else type


def value_type(type: Type) -> Type:
    """Return the type of a value: an array's is a pointer."""
    return Pointer(type.innermost) if isinstance(type, ArrayOf) else type


class Scope:
    """The variables of one function, by the cursors that declare them."""

    def __init__(self, program: Program, function: ir.Function, body: Cursor) -> None:
        self.program = program
        self.function = function
        self.definition = body
        self.this: ir.Expression | None = None
        # Of a lambda's body: the address of what it has captured.
        self.closure: ir.Local | None = None
        self._variables: dict[int, Variable] = {}
        self._addressed = _addressed_variables(body)

    def lives_in_memory(self, cursor: Cursor, type: Type) -> bool:
        """Whether a variable needs an address: arrays, structs, and what `&` or a reference is taken of."""
        return isinstance(type, ArrayOf | Struct) or cursor.hash in self._addressed

    def function_called(self, callee: Cursor, place: SourcePosition) -> ir.Function:
        """Return a function that this one calls at a place."""
        called = self.program.function(callee, place)
        self.function.calls.append(called)
        return called

    def address_taken(self, callee: Cursor) -> int:
        """Return the number of a function that may be called through a pointer."""
        number = self.program.function_number(callee)
        self.function.calls.append(self.program.functions_by_number[number])
        return number

    def new_slot(self) -> int:
        """Return a slot that no variable has yet."""
        self.function.slots += 1
        return self.function.slots - 1

    def declare(self, cursor: Cursor, type: Type, *, in_memory: bool) -> ir.Local:
        """Give a variable its slot."""
        held = Pointer(decayed(type)) if in_memory else type
        local = ir.Local(held, self.new_slot(), cursor.spelling)
        self._variables[cursor.hash] = Variable(local, type, in_memory)
        return local

    def declare_shared(self, cursor: Cursor, type: Type) -> ir.Local:
        """Give a `__shared__` variable its slot; one that is declared outside of the function has one slot in each."""
        known = self._variables.get(cursor.hash)
        if known is not None:
            return known.local
        dynamic = isinstance(type, ArrayOf) and type.length == 0
        local = self.declare(cursor, type, in_memory=True)
        size, shape = (0, ()) if dynamic else (type.size, type.shape if isinstance(type, ArrayOf) else ())
        self.function.shared.append(ir.SharedArray(local.slot, cursor.spelling, size, dynamic, shape))
        return local

    def captured(self, name: str, position: SourcePosition) -> ir.Element | None:
        """Return the place of what the lambda whose body this is has captured; None for anything else."""
        if self.closure is None:
            return None
        assert isinstance(self.closure.type, Pointer)
        struct = self.closure.type.element
        assert isinstance(struct, Struct)
        for member in struct.fields:
            if member.name == name:
                moved = ir.Member(Pointer(decayed(member.type)), self.closure, member.offset)
                return referred_place(member, moved, position)
        return None

    def find(self, declaration: Cursor) -> Variable | None:
        """Return a variable of this function; None for one of the module."""
        return self._variables.get(declaration.hash)


def referred_place(
    member: Field, moved: ir.Expression, position: SourcePosition, *, volatile: bool = False
) -> ir.Element:
    """Return the place of a member whose address is given; of a reference the place that it refers to."""
    if member.refers_to is None:
        return ir.Element(member.type, moved, None, position, volatile)
    held = ir.Load(member.type, ir.Element(member.type, moved, None, position))
    return ir.Element(member.refers_to, held, None, position, volatile)


def _addressed_variables(body: Cursor) -> set[int]:
    """Return the declarations of variables whose address is taken: by `&`, or by binding a reference."""
    found: set[int] = set()
    for cursor in descendants_of(body):
        kind = cursor.kind
        if is_assignment(cursor) or (kind == CursorKind.UNARY_OPERATOR and unary_operator(cursor) in ("x++", "x--")):
            inner = _without_parentheses(children_of(cursor)[0])
            if is_assignment(inner) or inner.kind == CursorKind.CONDITIONAL_OPERATOR:
                _add_root(found, inner)
        if kind == CursorKind.UNARY_OPERATOR and unary_operator(cursor) == "&":
            _add_root(found, children_of(cursor)[0])
        elif kind == CursorKind.VAR_DECL and is_reference(cursor.type):
            for child in children_of(cursor):
                if child.kind.is_expression():
                    _add_root(found, child)
        elif kind == CursorKind.CALL_EXPR and (prototype := called_prototype(cursor)) is not None:
            for argument, type in zip(children_of(cursor)[1:], prototype.argument_types(), strict=False):
                if is_reference(type):
                    _add_root(found, argument)
        elif kind == CursorKind.CALL_EXPR and cursor.referenced is not None:
            for argument, parameter in zip(call_arguments(cursor), cursor.referenced.get_arguments(), strict=False):
                if argument is not None and is_reference(parameter.type):
                    _add_root(found, argument)
        elif kind == CursorKind.LAMBDA_EXPR:
            for declaration in captured_by_reference(cursor):
                found.add(declaration.hash)
                for initial in children_of(declaration):
                    _add_root(found, initial)
        elif kind == CursorKind.INIT_LIST_EXPR and cursor.type.get_canonical().kind == TypeKind.RECORD:
            for member, value in zip(cursor.type.get_canonical().get_fields(), children_of(cursor), strict=False):
                if is_reference(member.type):
                    _add_root(found, value)
        elif kind == CursorKind.RETURN_STMT and is_reference_function(body):
            for child in children_of(cursor):
                _add_root(found, child)
    return found


def is_assignment(cursor: Cursor) -> bool:
    """Whether an expression assigns and is itself the place that it assigned to."""
    if cursor.kind == CursorKind.BINARY_OPERATOR:
        return binary_operator(cursor) == "="
    if cursor.kind == CursorKind.UNARY_OPERATOR:
        return unary_operator(cursor) in ("++x", "--x")
    return bool(cursor.kind == CursorKind.COMPOUND_ASSIGNMENT_OPERATOR)


def _without_parentheses(cursor: Cursor) -> Cursor:
    while cursor.kind == CursorKind.PAREN_EXPR:
        cursor = children_of(cursor)[0]
    return cursor


def called_prototype(call: Cursor) -> cindex.Type | None:
    """Return the type of the function that a call through a pointer calls; None for a call of one by its name."""
    if call.referenced is not None and call.referenced.kind in _FUNCTIONS:
        return None
    pointer = next(iter(children_of(call)), None)
    if pointer is None or not is_function_type(pointer.type):
        return None
    canonical = pointer.type.get_canonical()
    return canonical if canonical.kind == TypeKind.FUNCTIONPROTO else canonical.get_pointee().get_canonical()


def call_arguments(call: Cursor) -> list[Cursor]:
    """Return a call's arguments, without the object that an overloaded operator is called on."""
    arguments = list(call.get_arguments())
    callee = call.referenced
    is_member_operator = callee.kind == CursorKind.CXX_METHOD and callee.spelling.startswith("operator")
    return arguments[1:] if is_member_operator and not names_method(children_of(call)[0]) else arguments


def names_method(cursor: Cursor) -> bool:
    """Whether the first part of a call is `object.method`, and not the object that an operator is called on."""
    return bool(cursor.kind == CursorKind.MEMBER_REF_EXPR and cursor.referenced.kind != CursorKind.FIELD_DECL)


def is_reference_function(definition: Cursor) -> bool:
    """Whether a function returns a reference."""
    return definition.kind != CursorKind.CONSTRUCTOR and is_reference(definition.result_type)


def _add_root(found: set[int], cursor: Cursor) -> None:
    """Find the variable that an lvalue is, behind parentheses and conversions that keep it one."""
    lvalues = (CursorKind.PAREN_EXPR, CursorKind.UNEXPOSED_EXPR, CursorKind.CONDITIONAL_OPERATOR)
    while cursor.kind in lvalues or is_assignment(cursor):
        children = children_of(cursor)
        if not children:
            return
        if is_assignment(cursor):
            cursor = children[0]
            continue
        if cursor.kind == CursorKind.CONDITIONAL_OPERATOR:
            _add_root(found, children[1])
        cursor = children[-1]
    if cursor.kind == CursorKind.DECL_REF_EXPR and cursor.referenced is not None:
        found.add(cursor.referenced.hash)
