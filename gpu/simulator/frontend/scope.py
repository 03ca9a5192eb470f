"""The variables of a function while it is lowered, and which of them must live in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpu.errors import SourcePosition
from gpu.simulator import ir
from gpu.simulator.frontend.addresses import addressed_variables
from gpu.simulator.frontend.clang import Cursor
from gpu.simulator.types import ArrayOf, Field, Pointer, Struct, Type

if TYPE_CHECKING:
    from gpu.simulator.frontend.program import Program


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
        self._variables: dict[Cursor, Variable] = {}
        self._addressed = addressed_variables(body)

    def lives_in_memory(self, cursor: Cursor, type: Type) -> bool:
        """Whether a variable needs an address: arrays, structs, and what `&` or a reference is taken of."""
        return isinstance(type, ArrayOf | Struct) or cursor in self._addressed

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
        self._variables[cursor] = Variable(local, type, in_memory)
        return local

    def declare_shared(self, cursor: Cursor, type: Type) -> ir.Local:
        """Give a `__shared__` variable its slot; one that is declared outside of the function has one slot in each."""
        known = self._variables.get(cursor)
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
        return self._variables.get(declaration)


def referred_place(
    member: Field, moved: ir.Expression, position: SourcePosition, *, volatile: bool = False
) -> ir.Element:
    """Return the place of a member whose address is given; of a reference the place that it refers to."""
    if member.refers_to is None:
        return ir.Element(member.type, moved, None, position, volatile)
    held = ir.Load(member.type, ir.Element(member.type, moved, None, position))
    return ir.Element(member.refers_to, held, None, position, volatile)
