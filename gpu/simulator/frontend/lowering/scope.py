"""The variables of a function during lowering, and which of them must be in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from gpu.base.errors import SourcePosition
from gpu.simulator import ir
from gpu.simulator.frontend.clang.parsing import Cursor, CursorKind, has_attribute
from gpu.simulator.frontend.lowering.addresses import find_addressed_variables
from gpu.simulator.frontend.lowering.types import TypeLowering
from gpu.simulator.types import ArrayOf, Field, Pointer, Struct, Type, decay


class TranslationUnit(Protocol):
    """The kernel file of a function: access to everything declared outside of the function."""

    types: TypeLowering
    functions_by_number: dict[int, ir.Function]
    shared_variables: dict[Cursor, ir.SharedVariable]
    """The `__shared__` variables that functions use, by their declarations."""

    def function(self, cursor: Cursor, place: SourcePosition | None = None) -> ir.Function:
        """Return the IR of a function that has a body; a header's function is specialized for its call at `place`."""

    def find_header_function(self, name: str) -> Cursor:
        """Return a function that a header of the shim defines."""

    def function_number(self, cursor: Cursor) -> int:
        """Return the number that represents a pointer to a function."""

    def is_variable(self, declaration: Cursor) -> bool:
        """Return whether a name is a variable in device memory, whatever its initializer."""

    def variable(self, declaration: Cursor) -> ir.GlobalVariable | None:
        """Return a variable of the module, or a constant table; None for any other name."""

    def string(self, text: bytes) -> str:
        """Return the name of the constant array that holds a string."""


@dataclass(frozen=True)
class Variable:
    """A variable of C++. If it is `in_memory`, its slot holds its address."""

    local: ir.Local
    type: Type
    in_memory: bool


class Scope:
    """The variables of one function, by the cursors that declare them."""

    def __init__(self, unit: TranslationUnit, function: ir.Function, body: Cursor) -> None:
        self.unit = unit
        self.function = function
        self.definition = body
        self.this: ir.Expression | None = None
        # For a lambda's body: the address of its captures.
        self.closure: ir.Local | None = None
        # Declarations within expressions, which cannot contain statements; they are moved to the function's start.
        self.hoisted_declarations: list[ir.Statement] = []
        # The carry that `add.cc` saves for `addc`.
        self.carry: ir.Local | None = None
        self._variables: dict[Cursor, Variable] = {}
        self._addressed_variables = find_addressed_variables(body)

    def needs_memory(self, cursor: Cursor, type: Type) -> bool:
        """Return whether a variable needs an address: arrays, structs, and operands of `&` or references."""
        return isinstance(type, ArrayOf | Struct) or cursor in self._addressed_variables

    def add_call(self, callee: Cursor, place: SourcePosition) -> ir.Function:
        """Return a function that this function calls at a place, and record the call."""
        function = self.unit.function(callee, place)
        self.function.calls.append(function)
        return function

    def add_pointer_target(self, callee: Cursor) -> int:
        """Return the number of a function that may be called through a pointer."""
        number = self.unit.function_number(callee)
        self.function.calls.append(self.unit.functions_by_number[number])
        return number

    def new_slot(self) -> int:
        """Allocate a new slot."""
        self.function.slots += 1
        return self.function.slots - 1

    def declare(self, cursor: Cursor, type: Type, *, in_memory: bool) -> ir.Local:
        """Allocate a variable's slot."""
        slot_type = Pointer(decay(type)) if in_memory else type
        local = ir.Local(slot_type, self.new_slot(), cursor.spelling)
        self._variables[cursor] = Variable(local, type, in_memory)
        return local

    def declare_shared(self, cursor: Cursor, type: Type) -> ir.Local:
        """Allocate a `__shared__` variable's slot; one that several functions use has one slot in each."""
        variable = self._variables.get(cursor)
        if variable is not None:
            return variable.local
        dynamic = isinstance(type, ArrayOf) and type.length == 0
        local = self.declare(cursor, type, in_memory=True)
        size, shape = (0, ()) if dynamic else (type.size, type.shape if isinstance(type, ArrayOf) else ())
        original = self.unit.shared_variables.get(cursor)
        shared = ir.SharedVariable(local.slot, cursor.spelling, size, dynamic, shape, original)
        self.unit.shared_variables.setdefault(cursor, shared)
        self.function.shared.append(shared)
        return local

    def find_outer_shared(self, declaration: Cursor | None) -> ir.Local | None:
        """Return the slot of a `__shared__` variable that is declared outside of this function."""
        if declaration is None or declaration.kind != CursorKind.VAR_DECL:
            return None
        if not has_attribute(declaration, CursorKind.CUDASHARED_ATTR):
            return None
        return self.declare_shared(declaration, self.unit.types.lower(declaration.type, declaration))

    def find_captured(self, name: str, position: SourcePosition) -> ir.Element | None:
        """Return the place of a captured variable, in a lambda's body; None for any other name."""
        if self.closure is None:
            return None
        assert isinstance(self.closure.type, Pointer)
        struct = self.closure.type.element
        assert isinstance(struct, Struct)
        for member in struct.fields:
            if member.name == name:
                address = ir.Member(Pointer(decay(member.type)), self.closure, member.offset)
                return resolve_reference(member, address, position)
        return None

    def find(self, declaration: Cursor) -> Variable | None:
        """Return a variable of this function; None for one of the module."""
        return self._variables.get(declaration)


def resolve_reference(
    member: Field, address: ir.Expression, position: SourcePosition, *, volatile: bool = False
) -> ir.Element:
    """Return the place of a member at an address; for a reference, the place that it refers to.

    Parameters
    ----------
    member : Field
        The member of a struct.
    address : ir.Expression
        The address of the member itself.
    position : SourcePosition
        The position of the access.
    volatile : bool
        Whether the access is volatile.
    """
    if member.refers_to is None:
        return ir.Element(member.type, address, None, position, volatile)
    pointer = ir.Load(member.type, ir.Element(member.type, address, None, position))
    return ir.Element(member.refers_to, pointer, None, position, volatile)
