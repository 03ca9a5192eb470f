"""Functions: the object and the parameters that they are given, then their members' initial values, then the body."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from gpu.simulator import ir
from gpu.simulator.frontend.clang import Cursor, CursorKind, start_of
from gpu.simulator.frontend.closures import THIS, is_in_closure
from gpu.simulator.frontend.construction import array_values, default
from gpu.simulator.frontend.expressions import Expressions
from gpu.simulator.frontend.scope import Scope, TranslationUnit
from gpu.simulator.frontend.statements import Statements
from gpu.simulator.frontend.types import decayed, is_reference, refuse, value_type
from gpu.simulator.types import INT32, ArrayOf, Pointer, Struct, Type, has_union

_CLASSES = (CursorKind.TYPE_REF, CursorKind.TEMPLATE_REF)
_CLUSTER = "lockstep cluster "
"""How the shim marks a kernel that has __cluster_dims__: the extents follow."""

_METHODS = (CursorKind.CXX_METHOD, CursorKind.CONVERSION_FUNCTION, CursorKind.CONSTRUCTOR)


def lower_function(unit: TranslationUnit, function: ir.Function, definition: Cursor) -> None:
    """Fill in a function's parameters and its body from its definition."""
    function.cluster = _cluster(definition)
    scope = Scope(unit, function, definition)
    expressions = Expressions(scope)
    this = _declare_this(scope)
    parameters, moved = _declare_parameters(scope)
    function.parameters = (*this, *parameters)
    initial = _member_initializers(expressions)
    body = next(child for child in definition.children if child.kind == CursorKind.COMPOUND_STMT)
    statements = Statements(expressions).block(body)
    function.body = ir.Block((*moved, *scope.declared_first, *initial, *statements), scope=True)


def _cluster(definition: Cursor) -> tuple[int, int, int] | None:
    """Return the extents of a kernel's clusters of blocks, where it says them."""
    marks = [each.spelling for each in definition.children if each.kind == CursorKind.ANNOTATE_ATTR]
    written = next((mark.removeprefix(_CLUSTER) for mark in marks if mark.startswith(_CLUSTER)), None)
    if written is None:
        return None
    extents = [each.strip().rstrip("uU") for each in written.split(",")]
    if not all(each.isdecimal() for each in extents) or len(extents) > 3:
        raise refuse(
            definition, f"__cluster_dims__({written})", instead="Write one to three numbers, or macros of them."
        )
    x, y, z = [int(each) for each in extents] + [1] * (3 - len(extents))
    return x, y, z


def _declare_this(scope: Scope) -> list[tuple[str, Type]]:
    """Give a method the address of its object, its first parameter; of a lambda's body that of what it captured."""
    definition = scope.definition
    if definition.kind not in _METHODS or definition.is_static_method:
        return []
    owner = scope.unit.types.lower(definition.owner.type, definition)
    this = ir.Local(Pointer(owner), scope.new_slot(), "this")
    if is_in_closure(definition):
        scope.closure = this
        around = scope.captured(THIS, start_of(definition))
        scope.this = ir.Load(around.type, around) if around is not None else None
    else:
        scope.this = this
    return [("this", this.type)]


def _declare_parameters(scope: Scope) -> tuple[list[tuple[str, Type]], list[ir.Statement]]:
    """Return the parameters, and the statements that move those to memory which must live there."""
    parameters: list[tuple[str, Type]] = []
    given: list[tuple[Cursor, Type, ir.Local]] = []
    for parameter in scope.definition.arguments:
        type = scope.unit.types.lower(parameter.type, parameter)
        if is_reference(parameter.type):
            scope.declare(parameter, type, in_memory=True)
            parameters.append((parameter.spelling, Pointer(decayed(type))))
            continue
        type = value_type(type)
        if scope.lives_in_memory(parameter, type):
            given.append((parameter, type, ir.Local(type, scope.new_slot(), parameter.spelling)))
        else:
            scope.declare(parameter, type, in_memory=False)
        parameters.append((parameter.spelling, type))
    moved: list[ir.Statement] = []
    for parameter, type, value in given:
        slot, name = scope.declare(parameter, type, in_memory=True).slot, parameter.spelling
        position = start_of(parameter)
        moved.append(ir.DeclareMemory(slot, type.size, ((0, value),), False, name, position, has_union(type), type))
    return parameters, moved


def _member_initializers(expressions: Expressions) -> list[ir.Statement]:
    """Lower what stands between a constructor's colon and its body; other members get their own initializers."""
    definition, this = expressions.scope.definition, expressions.scope.this
    if definition.kind != CursorKind.CONSTRUCTOR or this is None:
        return []
    assert isinstance(this.type, Pointer)
    struct = this.type.element
    assert isinstance(struct, Struct)
    position = start_of(definition)
    children = [child for child in definition.children if child.kind != CursorKind.PARM_DECL]
    written = [
        (member, value)
        for member, value in pairwise(children)
        if member.kind in (CursorKind.MEMBER_REF, *_CLASSES) and value.is_expression
    ]
    given = {member.spelling if member.kind == CursorKind.MEMBER_REF else "" for member, _ in written}
    fresh = default(expressions, struct, definition.owner.type, given=given)
    made: list[ir.Statement] = [
        ir.Evaluate(ir.Assign(struct, ir.Element(struct, this, None, position), fresh), position)
    ]
    for member, value in written:
        made += _initial(expressions, struct, this, member, value)
    return made


def _initial(
    expressions: Expressions, struct: Struct, this: ir.Expression, member: Cursor, value: Cursor
) -> list[ir.Statement]:
    """Lower the initial value of a member, of what a reference refers to, of a base class or of an array's elements."""
    position = start_of(value)
    if member.kind == CursorKind.MEMBER_REF:
        field = struct.field(member.spelling)
        type, offset, binds = field.type, field.offset, field.is_reference
    else:
        type, offset, binds = expressions.scope.unit.types.lower(value.type, member), 0, False
    start = ir.Member(Pointer(decayed(type)), this, offset)
    if isinstance(type, ArrayOf) and not binds:
        places = [
            ir.Element(type.innermost, start, ir.Const(INT32, np.int32(number)), position)
            for number in range(type.count)
        ]
        parts = array_values(expressions, value, type)
    else:
        places = [ir.Element(type, start, None, position)]
        parts = [expressions.address(value) if binds else expressions.converted(value, type)]
    return [
        ir.Evaluate(ir.Assign(place.type, place, part), position) for place, part in zip(places, parts, strict=True)
    ]
