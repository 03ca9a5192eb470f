"""Which local memory can be taken apart, aggregates replaced by scalars: a thread's own becomes an array of each value.

Side by side, a member of neighboring threads is a vector; in structs one after the other, it is not. Of a struct, each
access must be known to be to one member: at a constant offset, by the variable itself or by a reference to it that a
called function has. Of an array, whose elements are found by an index, all values must be of one size: it becomes rows
of a value a thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gpu.simulator import ir
from gpu.simulator.compiled.rematerialize import changed_slots
from gpu.simulator.compiled.waiting import waits
from gpu.simulator.compiled.walking import is_unrolled, parts, walk
from gpu.simulator.types import Type, leaves

_DEEPEST = 24
_MOST_ROWS = 64


@dataclass(frozen=True)
class Part:
    """A place in memory that is taken apart: so many bytes into what a variable of a frame holds."""

    frame: str
    slot: int
    offset: int

    def moved(self, by: int) -> Part:
        """Return the place so many bytes further."""
        return Part(self.frame, self.slot, self.offset + by)


@dataclass(frozen=True)
class RowShape:
    """Memory that is taken apart into values of one size."""

    width: int
    """The size of a value in bytes."""
    count: int


@dataclass(frozen=True)
class Reached:
    """What a pointer leads to: from what a slot holds, so many bytes further, and by each index so many bytes."""

    slot: int
    offset: int
    indices: tuple[tuple[ir.Expression, int], ...] = ()


class _Escapes(Exception):  # noqa: N818  # says that the address is used for something else
    pass


class ScalarReplacement:
    """What is known of the threads' local memory, function by function."""

    def __init__(self) -> None:
        self._known: dict[int, dict[int, dict[int, int]]] = {}
        self._rows: dict[int, dict[int, RowShape]] = {}

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

    def parts_ways(self, function: ir.Function, loop: ir.Loop) -> bool:
        """Whether threads go through a loop one by one: each at its own pace, or with memory that is in one piece."""
        apart = self.taken_apart(function)
        return any(
            isinstance(node, ir.Jump | ir.Return | ir.Switch | ir.Temporary)
            or (isinstance(node, ir.DeclareMemory) and node.slot not in apart)
            for node in walk(loop.body)
        )

    def _is_used_apart(self, function: ir.Function, slot: int) -> bool:
        """Whether threads go one by one through a loop that uses a variable: an array is best in one piece then."""
        return any(
            isinstance(loop, ir.Loop)
            and _uses(slot, loop)
            and not waits(loop)
            and not is_unrolled(loop)
            and self.parts_ways(function, loop)
            for loop in walk(function.body)
        )

    def in_rows(self, function: ir.Function) -> dict[int, RowShape]:
        """Return the slots of memory that becomes rows."""
        if id(function) not in self._rows:
            found = self._rows[id(function)] = {}
            apart = self.taken_apart(function)
            for node in walk(function.body):
                if (
                    isinstance(node, ir.DeclareMemory)
                    and not node.punned
                    and node.slot not in apart
                    and not self._is_used_apart(function, node.slot)
                ):
                    rows = _rows(function, node)
                    if rows is not None:
                        found[node.slot] = rows
        return self._rows[id(function)]


def _uses(slot: int, node: Any) -> bool:
    return any(isinstance(each, ir.Local) and each.slot == slot for each in walk(node))


def _rows(function: ir.Function, declared: ir.DeclareMemory) -> RowShape | None:
    widths: set[int] = set()
    try:
        for offset, value in declared.values:
            _note_rows(widths, Reached(declared.slot, offset), value.type)
        _visit(function.body, {declared.slot: 0}, lambda reached, type: _note_rows(widths, reached, type), 0)
    except _Escapes:
        return None
    (width,) = widths or {1}
    count = declared.size // width
    return RowShape(width, count) if widths and count <= _MOST_ROWS and declared.size % width == 0 else None


def _note_rows(widths: set[int], reached: Reached, type: Type) -> None:
    parts = leaves(type)
    widths.update(leaf.size for _, leaf in parts)
    if len(widths) > 1:
        raise _Escapes
    (width,) = widths
    steps = (reached.offset, *(offset for offset, _ in parts), *(by for _, by in reached.indices))
    if any(step % width for step in steps):
        raise _Escapes


def _members(function: ir.Function, declared: ir.DeclareMemory) -> dict[int, int] | None:
    members: dict[int, int] = {}
    try:
        for offset, value in declared.values:
            _note(members, Reached(declared.slot, offset), value.type)
        _visit(function.body, {declared.slot: 0}, lambda reached, type: _note(members, reached, type), 0)
    except _Escapes:
        return None
    return members


def reached(pointer: ir.Expression) -> Reached | None:
    """Return what a pointer leads to, None where it comes from elsewhere than a slot."""
    match pointer:
        case ir.Local(_, slot, _):
            return Reached(slot, 0)
        case ir.Member(_, inner, by):
            found = reached(inner)
            return None if found is None else Reached(found.slot, found.offset + by, found.indices)
        case ir.Offset(type, inner, index):
            return _further(reached(inner), index, type.element.size)
        case ir.Cast(_, inner):
            return reached(inner)
    return None


def place_reached(place: ir.Element) -> Reached | None:
    """Return the same of a place."""
    return _further(reached(place.pointer), place.index, place.type.size)


def _further(found: Reached | None, index: ir.Expression | None, size: int) -> Reached | None:
    match index:
        case None:
            return found
        case ir.Const(_, known) if found is not None:
            return Reached(found.slot, found.offset + int(known) * size, found.indices)
        case _ if found is not None:
            return Reached(found.slot, found.offset, (*found.indices, (index, size)))
    return None


Note = Callable[[Reached, Type], None]


def _visit(node: Any, known: dict[int, int], note: Note, depth: int) -> None:
    """Note the accesses to memory within a node; `known` holds the variables that lead to it, and how far in."""
    match node:
        case ir.Element(type):
            found = place_reached(node)
            if found is not None and found.slot in known and not node.volatile:
                note(Reached(found.slot, known[found.slot] + found.offset, found.indices), type)
                for index, _ in found.indices:
                    _visit(index, known, note, depth)
                return
        case ir.Call(_, function, arguments):
            _call(function, arguments, known, note, depth)
            return
        case ir.Local(_, slot, _) if slot in known:
            raise _Escapes
    for part in parts(node):
        _visit(part, known, note, depth)


def _call(
    function: ir.Function,
    arguments: tuple[ir.Expression, ...],
    known: dict[int, int],
    note: Note,
    depth: int,
) -> None:
    inside: dict[int, int] = {}
    for slot, argument in enumerate(arguments):
        found = reached(argument)
        if found is not None and found.slot in known and not found.indices:
            inside[slot] = known[found.slot] + found.offset
        else:
            _visit(argument, known, note, depth)
    if not inside:
        return
    if depth >= _DEEPEST or not inside.keys().isdisjoint(changed_slots(function, list(walk(function.body)))):
        raise _Escapes
    _visit(function.body, inside, note, depth + 1)


def _note(members: dict[int, int], reached: Reached, type: Type) -> None:
    if reached.indices:
        raise _Escapes
    for offset, leaf in leaves(type):
        at, end = reached.offset + offset, reached.offset + offset + leaf.size
        for other, size in members.items():
            if other < end and at < other + size and (other, size) != (at, leaf.size):
                raise _Escapes
        members[at] = leaf.size
