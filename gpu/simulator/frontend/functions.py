"""Lower functions: the object and parameters, the initial values of members, then the body."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from gpu.simulator import ir
from gpu.simulator.frontend.clang.parsing import Cursor, CursorKind, get_reported_position
from gpu.simulator.frontend.expressions.construction import build_default, lower_array_braces
from gpu.simulator.frontend.expressions.expressions import Expressions
from gpu.simulator.frontend.expressions.operators import assign_bits
from gpu.simulator.frontend.lowering.closures import THIS, is_in_closure
from gpu.simulator.frontend.lowering.scope import Scope, TranslationUnit
from gpu.simulator.frontend.lowering.types import build_unsupported_error, is_reference, value_type
from gpu.simulator.frontend.statements import Statements
from gpu.simulator.types import INT32, ArrayOf, Pointer, Struct, Type, decay, has_union

_CLASSES = (CursorKind.TYPE_REF, CursorKind.TEMPLATE_REF)
_CLUSTER = "lockstep cluster"
"""The annotation with which the shim marks a kernel with __cluster_dims__; its arguments are the extents."""

_METHODS = (CursorKind.CXX_METHOD, CursorKind.CONVERSION_FUNCTION, CursorKind.CONSTRUCTOR)


def lower_function(unit: TranslationUnit, function: ir.Function, definition: Cursor) -> None:
    """Fill in a function's parameters and its body from its definition."""
    function.cluster = _cluster(definition)
    scope = Scope(unit, function, definition)
    expressions = Expressions(scope)
    this = _declare_this(scope)
    parameters, moves = _declare_parameters(scope)
    function.parameters = (*this, *parameters)
    function.restricted = tuple(
        len(this) + index
        for index, parameter in enumerate(definition.arguments)
        if "__restrict" in parameter.type.spelling.rpartition("*")[2]
    )
    initial = _member_initializers(expressions)
    body = next(child for child in definition.children if child.kind == CursorKind.COMPOUND_STMT)
    statements = Statements(expressions).lower_block(body)
    function.body = ir.Block((*moves, *scope.hoisted_declarations, *initial, *statements), is_scope=True)


def _cluster(definition: Cursor) -> tuple[int, int, int] | None:
    """Return the extents of a kernel's clusters, if it specifies them."""
    marks = [child for child in definition.children if child.kind == CursorKind.ANNOTATE_ATTR]
    mark = next((each for each in marks if each.spelling == _CLUSTER), None)
    if mark is None:
        return None
    extents = [child.constant for child in mark.children]
    if not 1 <= len(extents) <= 3 or not all(isinstance(extent, int) and extent > 0 for extent in extents):
        raise build_unsupported_error(definition, "__cluster_dims__", advice="Write one to three positive constants.")
    x, y, z = [int(extent or 0) for extent in extents] + [1] * (3 - len(extents))
    return x, y, z


def _declare_this(scope: Scope) -> list[tuple[str, Type]]:
    """Add a method's first parameter, the address of its object; for a lambda's body, of its captures."""
    definition = scope.definition
    if definition.kind not in _METHODS or definition.is_static_method:
        return []
    owner = scope.unit.types.lower(definition.owner.type, definition)
    this = ir.Local(Pointer(owner), scope.new_slot(), "this")
    if is_in_closure(definition):
        scope.closure = this
        captured_this = scope.find_captured(THIS, get_reported_position(definition))
        scope.this = ir.Load(captured_this.type, captured_this) if captured_this is not None else None
    else:
        scope.this = this
    return [("this", this.type)]


def _declare_parameters(scope: Scope) -> tuple[list[tuple[str, Type]], list[ir.Statement]]:
    """Return the parameters, and the statements that move parameters to memory if they need an address."""
    parameters: list[tuple[str, Type]] = []
    moved_parameters: list[tuple[Cursor, Type, ir.Local]] = []
    for parameter in scope.definition.arguments:
        type = scope.unit.types.lower(parameter.type, parameter)
        if is_reference(parameter.type):
            scope.declare(parameter, type, in_memory=True)
            parameters.append((parameter.spelling, Pointer(decay(type))))
            continue
        type = value_type(type)
        if scope.needs_memory(parameter, type):
            moved_parameters.append((parameter, type, ir.Local(type, scope.new_slot(), parameter.spelling)))
        else:
            scope.declare(parameter, type, in_memory=False)
        parameters.append((parameter.spelling, type))
    moves: list[ir.Statement] = []
    for parameter, type, value in moved_parameters:
        slot, name = scope.declare(parameter, type, in_memory=True).slot, parameter.spelling
        position = get_reported_position(parameter)
        moves.append(ir.DeclareMemory(slot, type.size, ((0, value),), False, name, position, has_union(type), type))
    return parameters, moves


def _member_initializers(expressions: Expressions) -> list[ir.Statement]:
    """Lower a constructor's initializer list; the other members get their default initializers."""
    definition, this = expressions.scope.definition, expressions.scope.this
    if definition.kind != CursorKind.CONSTRUCTOR or this is None:
        return []
    assert isinstance(this.type, Pointer)
    struct = this.type.element
    assert isinstance(struct, Struct)
    position = get_reported_position(definition)
    children = [child for child in definition.children if child.kind != CursorKind.PARM_DECL]
    explicit = [
        (member, value)
        for member, value in pairwise(children)
        if member.kind in (CursorKind.MEMBER_REF, *_CLASSES) and value.is_expression
    ]
    initialized = {member.spelling if member.kind == CursorKind.MEMBER_REF else "" for member, _ in explicit}
    defaults = build_default(expressions, struct, definition.owner.type, initialized_members=initialized)
    assignments: list[ir.Statement] = [
        ir.Evaluate(ir.Assign(struct, ir.Element(struct, this, None, position), defaults), position)
    ]
    for member, value in explicit:
        assignments += _lower_initializer(expressions, struct, this, member, value)
    return assignments


def _lower_initializer(
    expressions: Expressions, struct: Struct, this: ir.Expression, member: Cursor, value: Cursor
) -> list[ir.Statement]:
    """Lower the initializer of a member, a reference, a base class or an array."""
    position = get_reported_position(value)
    bit_field = struct.find_bit_field(member.spelling) if member.kind == CursorKind.MEMBER_REF else None
    if bit_field is not None:
        unit = ir.Member(Pointer(bit_field.unit), this, bit_field.offset)
        place = ir.Element(bit_field.unit, unit, None, position)
        part = assign_bits(expressions, (bit_field, place), expressions.convert(value, bit_field.type))
        return [ir.Evaluate(part, position)]
    if member.kind == CursorKind.MEMBER_REF:
        field = struct.field(member.spelling)
        type, offset, binds = field.type, field.offset, field.is_reference
    else:
        type, offset, binds = expressions.scope.unit.types.lower(value.type, member), 0, False
    start = ir.Member(Pointer(decay(type)), this, offset)
    if isinstance(type, ArrayOf) and not binds:
        places = [
            ir.Element(type.innermost, start, ir.Const(INT32, np.int32(number)), position)
            for number in range(type.count)
        ]
        parts = lower_array_braces(expressions, value, type)
    else:
        places = [ir.Element(type, start, None, position)]
        parts = [expressions.address(value) if binds else expressions.convert(value, type)]
    return [
        ir.Evaluate(ir.Assign(place.type, place, part), position) for place, part in zip(places, parts, strict=True)
    ]
