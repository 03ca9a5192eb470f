"""The variables and local memory that pointers in other variables may point to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Set

from gpu.simulator import ir
from gpu.simulator.compiled.analysis.plan import Bind, PlannedFrame, VariableKey
from gpu.simulator.compiled.analysis.scalar_replacement import find_target
from gpu.simulator.ir.walking import child_nodes, walk
from gpu.simulator.types import Pointer, Type, leaves


def find_reachable_variables(
    variables: Set[VariableKey], frames: Iterable[PlannedFrame], bindings: Iterable[tuple[PlannedFrame, Bind]]
) -> set[VariableKey]:
    """Return the variables whose addresses or pointers the given ones may hold, directly or through others.

    Parameters
    ----------
    bindings : iterable of (PlannedFrame, Bind)
        The initializations of parameters, each with the caller's frame.
    """
    sources: defaultdict[VariableKey, set[VariableKey]] = defaultdict(set)
    for frame in frames:
        for slot, value in _find_assignments(frame.function):
            sources[frame.path, slot].update((frame.path, each) for each in _find_pointed_slots(value))
    for frame, bind in bindings:
        sources[bind.frame.path, bind.slot].update((frame.path, each) for each in _find_pointed_slots(bind.value))
    found: set[VariableKey] = set()
    pending = list(variables)
    while pending:
        new = sources[pending.pop()] - found
        found |= new
        pending += new
    return found


def _find_assignments(function: ir.Function) -> Iterator[tuple[int, ir.Expression]]:
    """Yield the slots of variables and local memory with the values that are assigned to them or to a part of them."""
    for node in walk(function.body):
        match node:
            case ir.Declare(slot, _, value) if value is not None:
                yield slot, value
            case ir.DeclareMemory(slot, _, values):
                yield from ((slot, value) for _, value in values)
            case ir.Assign(_, ir.Local(_, slot, _), value):
                yield slot, value
            case ir.Assign(_, ir.Element() as place, value) if (target := find_target(place.pointer)) is not None:
                yield target.slot, value


def _may_hold_address(type: Type) -> bool:
    """Return whether values of a type may contain an address: pointers, structs with one, and integers of 8 bytes."""
    return any(isinstance(leaf, Pointer) or (leaf.size == 8 and not leaf.is_float) for _, leaf in leaves(type))


def _find_pointed_slots(value: ir.Expression) -> set[int]:
    """Return the slots whose address or pointer an expression's value may be."""
    if not _may_hold_address(value.type):
        return set()
    match value:
        case ir.Local(_, slot, _):
            return {slot}
        case ir.Load(type, place):
            is_pointer = any(isinstance(leaf, Pointer) for _, leaf in leaves(type))
            return _find_pointed_slots(place.pointer) if is_pointer else set()
        case ir.Offset(_, pointer, _) | ir.Member(_, pointer, _):
            return _find_pointed_slots(pointer)
    return {
        slot for part in child_nodes(value) if isinstance(part, ir.Expression) for slot in _find_pointed_slots(part)
    }
