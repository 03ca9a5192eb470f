"""Lowering of a lambda to the struct of its captures."""

from __future__ import annotations

from gpu.simulator import ir
from gpu.simulator.frontend.clang.parsing import Cursor, get_reported_position
from gpu.simulator.frontend.expressions.names import place_of_variable
from gpu.simulator.frontend.lowering.closures import THIS, find_captured_variable, is_declared_in
from gpu.simulator.frontend.lowering.conversions import address_of, build_constant, only_child
from gpu.simulator.frontend.lowering.interface import Lowering
from gpu.simulator.frontend.lowering.types import build_unsupported_error
from gpu.simulator.types import INT32, ArrayOf, Struct


def lower_lambda(lower: Lowering, cursor: Cursor) -> ir.Expression:
    """Lower a lambda to the struct of its captures."""
    type = lower.type_of(cursor)
    assert isinstance(type, Struct)
    parts: list[ir.Expression] = []
    for member in type.fields:
        if member.name == THIS and lower.scope.this is not None:
            parts.append(lower.scope.this)
            continue
        declaration = find_captured_variable(cursor, member.name)
        if declaration is None:
            raise build_unsupported_error(cursor, "this lambda's captures", advice="Write a struct with operator().")
        if is_declared_in(declaration, cursor):
            initial = only_child(declaration)
            parts.append(lower.address(initial) if member.is_reference else lower.convert(initial, member.type))
            continue
        place = place_of_variable(lower.scope, declaration, get_reported_position(cursor))
        if place is None:
            raise build_unsupported_error(
                cursor, f"the capture of {member.name}", advice="Write a struct with operator()."
            )
        if isinstance(place, ir.Local):
            parts.append(place)
        elif member.is_reference:
            parts.append(address_of(place))
        elif isinstance(member.type, ArrayOf):
            parts += _read_elements(place, member.type)
        else:
            parts.append(ir.Load(place.type, place))
    return ir.Construct(type, tuple(parts))


def _read_elements(place: ir.Element, type: ArrayOf) -> list[ir.Expression]:
    """Return the value of each innermost element of an array."""
    first, element = address_of(place), type.innermost
    return [
        ir.Load(element, ir.Element(element, first, build_constant(INT32, number), place.position))
        for number in range(type.count)
    ]
