"""Scalar replacement of aggregates: split local memory so that each value becomes an array over the threads.

The same member of neighboring threads then forms a vector, which it does not in an array of structs. For a struct, each
access must be known to be to one member: at a constant offset, by the variable itself or by a reference to it in a
called function. For an array that is indexed, all values must have the same size: it becomes rows with one value per
thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gpu.simulator import ir
from gpu.simulator.compiled.analysis.rematerialization import find_changed_slots
from gpu.simulator.compiled.analysis.synchronization import has_synchronization
from gpu.simulator.compiled.analysis.traversal import is_unrolled
from gpu.simulator.ir.walking import child_nodes, walk
from gpu.simulator.types import Type, leaves

_MAXIMUM_DEPTH = 24
_MAXIMUM_ROWS = 64


@dataclass(frozen=True)
class SplitPlace:
    """A place in split memory: a byte offset in the memory that a variable of a frame holds."""

    frame: str
    slot: int
    offset: int

    def offset_by(self, byte_count: int) -> SplitPlace:
        """Return the place `byte_count` bytes further."""
        return SplitPlace(self.frame, self.slot, self.offset + byte_count)


@dataclass(frozen=True)
class RowShape:
    """The shape of memory that is split into values of one size."""

    width: int
    """The size of a value in bytes."""
    count: int


@dataclass(frozen=True)
class PointerTarget:
    """The target of a pointer: the memory of a slot, plus an offset in bytes, plus each index times its bytes."""

    slot: int
    offset: int
    indices: tuple[tuple[ir.Expression, int], ...] = ()


class _AddressEscapes(Exception):  # noqa: N818  # the address is used for more than accesses
    pass


class ScalarReplacement:
    """The analysis of local memory, function by function."""

    def __init__(self) -> None:
        self._members_by_function: dict[int, dict[int, dict[int, int]]] = {}
        self._rows: dict[int, dict[int, RowShape]] = {}

    def find_split_members(self, function: ir.Function) -> dict[int, dict[int, int]]:
        """Return the slots of memory that can be split into members, each with their sizes by offset, in bytes."""
        if id(function) not in self._members_by_function:
            members_by_slot = self._members_by_function[id(function)] = {}
            for node in walk(function.body):
                if isinstance(node, ir.DeclareMemory) and not node.punned:
                    members = _find_members(function, node)
                    if members is not None:
                        members_by_slot[node.slot] = members
        return self._members_by_function[id(function)]

    def runs_individually(self, function: ir.Function, loop: ir.Loop) -> bool:
        """Return whether threads run a loop individually, because of jumps or of memory that is not split."""
        split = self.find_split_members(function)
        return any(
            isinstance(node, ir.Jump | ir.Return | ir.Switch | ir.Temporary)
            or (isinstance(node, ir.DeclareMemory) and node.slot not in split)
            for node in walk(loop.body)
        )

    def _is_used_individually(self, function: ir.Function, slot: int) -> bool:
        """Return whether a loop that threads run individually uses a variable; its array is best not split then."""
        return any(
            isinstance(loop, ir.Loop)
            and _uses(slot, loop)
            and not has_synchronization(loop)
            and not is_unrolled(loop)
            and self.runs_individually(function, loop)
            for loop in walk(function.body)
        )

    def find_row_shapes(self, function: ir.Function) -> dict[int, RowShape]:
        """Return the slots of memory that can be split into rows."""
        if id(function) not in self._rows:
            shapes = self._rows[id(function)] = {}
            split = self.find_split_members(function)
            for node in walk(function.body):
                if (
                    isinstance(node, ir.DeclareMemory)
                    and not node.punned
                    and node.slot not in split
                    and not self._is_used_individually(function, node.slot)
                ):
                    rows = _find_rows(function, node)
                    if rows is not None:
                        shapes[node.slot] = rows
        return self._rows[id(function)]


def _uses(slot: int, node: Any) -> bool:
    return any(isinstance(each, ir.Local) and each.slot == slot for each in walk(node))


def _visit_all(function: ir.Function, declared: ir.DeclareMemory, visit: AccessCallback) -> bool:
    """Visit the initial values of a memory and all accesses to it; return whether no other address is used."""
    try:
        for offset, value in declared.values:
            visit(PointerTarget(declared.slot, offset), value.type)
        _visit_accesses(function.body, {declared.slot: 0}, visit, 0)
    except _AddressEscapes:
        return False
    return True


def _find_rows(function: ir.Function, declared: ir.DeclareMemory) -> RowShape | None:
    widths: set[int] = set()
    if not _visit_all(function, declared, lambda target, type: _record_widths(widths, target, type)):
        return None
    (width,) = widths or {1}
    count = declared.size // width
    return RowShape(width, count) if widths and count <= _MAXIMUM_ROWS and declared.size % width == 0 else None


def _record_widths(widths: set[int], target: PointerTarget, type: Type) -> None:
    parts = leaves(type)
    widths.update(leaf.size for _, leaf in parts)
    if len(widths) > 1:
        raise _AddressEscapes
    (width,) = widths
    steps = (target.offset, *(offset for offset, _ in parts), *(by for _, by in target.indices))
    if any(step % width for step in steps):
        raise _AddressEscapes


def _find_members(function: ir.Function, declared: ir.DeclareMemory) -> dict[int, int] | None:
    members: dict[int, int] = {}
    has_all = _visit_all(function, declared, lambda target, type: _record_member(members, target, type))
    return members if has_all else None


def find_target(pointer: ir.Expression) -> PointerTarget | None:
    """Return the target of a pointer; None if it does not start from a slot."""
    match pointer:
        case ir.Local(_, slot, _):
            return PointerTarget(slot, 0)
        case ir.Member(_, inner, by):
            target = find_target(inner)
            return None if target is None else PointerTarget(target.slot, target.offset + by, target.indices)
        case ir.Offset(type, inner, index):
            return _add_index(find_target(inner), index, type.element.size)
        case ir.Cast(_, inner):
            return find_target(inner)
    return None


def find_place_target(place: ir.Element) -> PointerTarget | None:
    """Return the target of a place; None if it does not start from a slot."""
    return _add_index(find_target(place.pointer), place.index, place.type.size)


def _add_index(target: PointerTarget | None, index: ir.Expression | None, size: int) -> PointerTarget | None:
    match index:
        case None:
            return target
        case ir.Const(_, number) if target is not None:
            return PointerTarget(target.slot, target.offset + int(number) * size, target.indices)
        case _ if target is not None:
            return PointerTarget(target.slot, target.offset, (*target.indices, (index, size)))
    return None


AccessCallback = Callable[[PointerTarget, Type], None]


def _visit_accesses(node: Any, offsets: dict[int, int], callback: AccessCallback, depth: int) -> None:
    """Call `callback` for all accesses within a node; `offsets` are those of variables that point to the memory."""
    match node:
        case ir.Element(type):
            target = find_place_target(node)
            if target is not None and target.slot in offsets and not node.volatile:
                callback(PointerTarget(target.slot, offsets[target.slot] + target.offset, target.indices), type)
                for index, _ in target.indices:
                    _visit_accesses(index, offsets, callback, depth)
                return
        case ir.Call(_, function, arguments):
            _visit_call(function, arguments, offsets, callback, depth)
            return
        case ir.Local(_, slot, _) if slot in offsets:
            raise _AddressEscapes
    for part in child_nodes(node):
        _visit_accesses(part, offsets, callback, depth)


def _visit_call(
    function: ir.Function,
    arguments: tuple[ir.Expression, ...],
    offsets: dict[int, int],
    callback: AccessCallback,
    depth: int,
) -> None:
    parameters: dict[int, int] = {}
    for slot, argument in enumerate(arguments):
        target = find_target(argument)
        if target is not None and target.slot in offsets and not target.indices:
            parameters[slot] = offsets[target.slot] + target.offset
        else:
            _visit_accesses(argument, offsets, callback, depth)
    if not parameters:
        return
    if depth >= _MAXIMUM_DEPTH or not parameters.keys().isdisjoint(find_changed_slots(list(walk(function.body)))):
        raise _AddressEscapes
    _visit_accesses(function.body, parameters, callback, depth + 1)


def _record_member(members: dict[int, int], target: PointerTarget, type: Type) -> None:
    if target.indices:
        raise _AddressEscapes
    for offset, leaf in leaves(type):
        start, end = target.offset + offset, target.offset + offset + leaf.size
        for other, size in members.items():
            if other < end and start < other + size and (other, size) != (start, leaf.size):
                raise _AddressEscapes
        members[start] = leaf.size
