"""Which memory of a thread's own can be taken apart: a struct whose members become one array each, of a value a thread.

Side by side, a member of neighbouring threads is a vector; in structs one after the other, it is not. For that, each
access must be known to be to one member: at a constant offset, by the variable itself or by a reference to it that a
called function has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpu.simulator import ir
from gpu.simulator.compiled.recompute import changed_slots
from gpu.simulator.compiled.walking import parts, walk
from gpu.simulator.types import Type, leaves

_DEEPEST = 24


@dataclass(frozen=True)
class Part:
    """A place in memory that is taken apart: so many bytes into what a variable of a frame holds."""

    frame: str
    slot: int
    offset: int

    def moved(self, by: int) -> Part:
        """Return the place so many bytes further."""
        return Part(self.frame, self.slot, self.offset + by)


class _Escapes(Exception):  # noqa: N818  # says that the address is used for something else
    pass


class OwnMemory:
    """What is known of the memory of the threads' own, function by function."""

    def __init__(self) -> None:
        self._known: dict[int, dict[int, dict[int, int]]] = {}

    def taken_apart(self, function: ir.Function) -> dict[int, dict[int, int]]:
        """Return the slots of memory that can be taken apart, each with its members: offset and size in bytes."""
        if id(function) not in self._known:
            found = self._known[id(function)] = {}
            for node in walk(function.body):
                if isinstance(node, ir.DeclareMemory) and not node.punned:
                    members = _members(function, node)
                    if members is not None:
                        found[node.slot] = members
        return self._known[id(function)]


def _members(function: ir.Function, declared: ir.DeclareMemory) -> dict[int, int] | None:
    members: dict[int, int] = {}
    try:
        for offset, value in declared.values:
            _note(members, offset, value.type)
        _visit(function.body, {declared.slot: 0}, members, 0)
    except _Escapes:
        return None
    return members


def moved(pointer: ir.Expression) -> tuple[int, int] | None:
    """Return the slot that a pointer comes from and the bytes by which it is moved, None where they are not known."""
    match pointer:
        case ir.Local(_, slot, _):
            return slot, 0
        case ir.Member(_, inner, by):
            found = moved(inner)
            return None if found is None else (found[0], found[1] + by)
        case ir.Offset(type, inner, ir.Const(_, index)):
            found = moved(inner)
            return None if found is None else (found[0], found[1] + int(index) * type.element.size)
        case ir.Cast(_, inner):
            return moved(inner)
    return None


def place_moved(place: ir.Element) -> tuple[int, int] | None:
    """Return the same of a place."""
    found = moved(place.pointer)
    match place.index:
        case None:
            return found
        case ir.Const(_, index) if found is not None:
            return found[0], found[1] + int(index) * place.type.size
    return None


def _visit(node: Any, known: dict[int, int], members: dict[int, int], depth: int) -> None:
    """Note the accesses to members within a node; `known` holds the variables that lead to the memory."""
    match node:
        case ir.Element(type):
            found = place_moved(node)
            if found is not None and found[0] in known and not node.volatile:
                _note(members, known[found[0]] + found[1], type)
                return
        case ir.Call(_, function, arguments):
            _call(function, arguments, known, members, depth)
            return
        case ir.Local(_, slot, _) if slot in known:
            raise _Escapes
    for part in parts(node):
        _visit(part, known, members, depth)


def _call(
    function: ir.Function,
    arguments: tuple[ir.Expression, ...],
    known: dict[int, int],
    members: dict[int, int],
    depth: int,
) -> None:
    inside: dict[int, int] = {}
    for slot, argument in enumerate(arguments):
        found = moved(argument)
        if found is not None and found[0] in known:
            inside[slot] = known[found[0]] + found[1]
        else:
            _visit(argument, known, members, depth)
    if not inside:
        return
    if depth >= _DEEPEST or not inside.keys().isdisjoint(changed_slots(function, list(walk(function.body)))):
        raise _Escapes
    _visit(function.body, inside, members, depth + 1)


def _note(members: dict[int, int], start: int, type: Type) -> None:
    for offset, leaf in leaves(type):
        at, end = start + offset, start + offset + leaf.size
        for other, size in members.items():
            if other < end and at < other + size and (other, size) != (at, leaf.size):
                raise _Escapes
        members[at] = leaf.size
