"""Statements: from clang's cursors to the IR's, one function at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu.simulator import ir
from gpu.simulator.clang import Cursor, CursorKind, operand_positions, start_of
from gpu.simulator.lower_expressions import Expressions, Scope
from gpu.simulator.lower_types import lower_type, refuse
from gpu.simulator.types import VOID, ArrayOf, Pointer, Scalar, Type

if TYPE_CHECKING:
    from gpu.simulator.frontend import Program


class FunctionLowering:
    """Fills in an `ir.Function` from its definition."""

    def __init__(self, program: Program, function: ir.Function, definition: Cursor) -> None:
        self._function = function
        self._definition = definition
        self._scope = Scope(program)
        self._expressions = Expressions(self._scope)

    def run(self) -> None:
        """Lower the parameters and the body."""
        parameters = []
        for parameter in self._definition.get_arguments():
            type = lower_type(parameter.type, parameter)
            if not isinstance(type, Scalar | Pointer):
                raise refuse(parameter, f"a parameter of type {parameter.type.spelling}")
            self._scope.declare(parameter, type)
            parameters.append((parameter.spelling, type))
        self._function.parameters = tuple(parameters)
        body = next(child for child in self._definition.get_children() if child.kind == CursorKind.COMPOUND_STMT)
        self._function.body = ir.Block(tuple(self._block(body)))
        self._function.slots = self._scope.slots

    def _block(self, cursor: Cursor) -> list[ir.Statement]:
        return [statement for child in cursor.get_children() for statement in self._statements(child)]

    def _statements(self, cursor: Cursor) -> list[ir.Statement]:
        """Lower a statement; a declaration of several variables becomes several."""
        kind = cursor.kind
        if kind == CursorKind.DECL_STMT:
            return [made for child in cursor.get_children() for made in self._declaration(child)]
        if kind == CursorKind.NULL_STMT:
            return []
        return [self._statement(cursor)]

    def _statement(self, cursor: Cursor) -> ir.Statement:
        kind = cursor.kind
        position = start_of(cursor)
        if kind == CursorKind.COMPOUND_STMT:
            return ir.Block(tuple(self._block(cursor)))
        if kind in (CursorKind.DECL_STMT, CursorKind.NULL_STMT):
            return ir.Block(tuple(self._statements(cursor)))
        if kind == CursorKind.IF_STMT:
            return self._if(cursor)
        if kind == CursorKind.FOR_STMT:
            return self._for(cursor)
        if kind == CursorKind.WHILE_STMT:
            condition, body = cursor.get_children()
            return ir.Loop(self._expressions.condition(condition), None, self._statement(body), True, position)
        if kind == CursorKind.DO_STMT:
            body, condition = cursor.get_children()
            return ir.Loop(self._expressions.condition(condition), None, self._statement(body), False, position)
        if kind == CursorKind.BREAK_STMT:
            return ir.Jump("break", position)
        if kind == CursorKind.CONTINUE_STMT:
            return ir.Jump("continue", position)
        if kind == CursorKind.RETURN_STMT:
            value = next(iter(cursor.get_children()), None)
            return ir.Return(self._expressions.value(value) if value is not None else None, position)
        if kind == CursorKind.CALL_EXPR and cursor.spelling == "__syncthreads":
            return ir.Barrier(position)
        if kind.is_expression():
            return ir.Evaluate(self._expressions.discarded(cursor), position)
        if kind.is_unexposed() and len(children := list(cursor.get_children())) == 1:
            return self._statement(children[0])  # a statement with an attribute, such as one behind #pragma unroll
        raise refuse(cursor, f"this statement ({kind.name.lower().replace('_', ' ')})")

    def _if(self, cursor: Cursor) -> ir.Statement:
        children = list(cursor.get_children())
        if not 2 <= len(children) <= 3 or not children[0].kind.is_expression():
            raise refuse(cursor, "a declaration inside of an if's condition", instead="Declare it before the if.")
        condition, then, *orelse = children
        return ir.If(
            self._expressions.condition(condition),
            self._statement(then),
            self._statement(orelse[0]) if orelse else None,
            start_of(cursor),
        )

    def _for(self, cursor: Cursor) -> ir.Statement:
        first, condition, step, body = _parts_of_for(cursor)
        before = self._statements(first) if first is not None else []
        loop = ir.Loop(
            self._expressions.condition(condition) if condition is not None else None,
            self._expressions.discarded(step) if step is not None else None,
            self._statement(body),
            True,
            start_of(cursor),
        )
        return ir.Block((*before, loop))

    def _declaration(self, cursor: Cursor) -> list[ir.Statement]:
        if cursor.kind in (CursorKind.TYPEDEF_DECL, CursorKind.TYPE_ALIAS_DECL, CursorKind.STATIC_ASSERT):
            return []
        if cursor.kind != CursorKind.VAR_DECL:
            raise refuse(cursor, f"this declaration ({cursor.kind.name.lower().replace('_', ' ')})")
        type = lower_type(cursor.type, cursor)
        if any(child.kind.name == "CUDASHARED_ATTR" for child in cursor.get_children()):
            return self._shared(cursor, type)
        if cursor.storage_class.name == "STATIC":
            raise refuse(cursor, "a static variable inside of a function")
        initial = _initialiser(cursor)
        if isinstance(type, ArrayOf):
            return [self._local_array(cursor, type, initial)]
        if not isinstance(type, Scalar | Pointer):
            raise refuse(cursor, f"a variable of type {type}")
        value = None if initial is None else self._expressions.converted(initial, type)
        local = self._scope.declare(cursor, type)
        return [ir.Declare(local.slot, type, value, start_of(cursor))]

    def _shared(self, cursor: Cursor, type: Type) -> list[ir.Statement]:
        dynamic = isinstance(type, ArrayOf) and type.length == 0
        element = type.innermost if isinstance(type, ArrayOf) else type
        if not isinstance(element, Scalar):
            raise refuse(cursor, f"a __shared__ variable of type {cursor.type.spelling}")
        count = 0 if dynamic else type.count if isinstance(type, ArrayOf) else 1
        local = self._scope.declare(cursor, type, in_memory=True)
        self._function.shared.append(ir.SharedArray(local.slot, cursor.spelling, element, count, dynamic))
        return []

    def _local_array(self, cursor: Cursor, type: ArrayOf, initial: Cursor | None) -> ir.Statement:
        element = type.innermost
        if not isinstance(element, Scalar):
            raise refuse(cursor, "an array of pointers")
        values = None
        if initial is not None:
            if initial.kind != CursorKind.INIT_LIST_EXPR:
                raise refuse(initial, "this initialiser of an array")
            values = tuple(self._array_values(initial, type, element))
        local = self._scope.declare(cursor, type)
        return ir.DeclareArray(local.slot, element, type.count, values, cursor.spelling, start_of(cursor))

    def _array_values(self, cursor: Cursor, type: ArrayOf, element: Scalar) -> list[ir.Expression]:
        """Flatten nested braces; a row shorter than its type is filled with zeros."""
        values: list[ir.Expression] = []
        for child in cursor.get_children():
            if child.kind == CursorKind.INIT_LIST_EXPR and isinstance(type.element, ArrayOf):
                row = self._array_values(child, type.element, element)
                values += row + [ir.Const(element, element.dtype.type(0))] * (type.element.count - len(row))
            else:
                values.append(self._expressions.converted(child, element))
        return values


def _initialiser(cursor: Cursor) -> Cursor | None:
    """Return a variable's initialiser; the extents of an array type are expressions too, and come before it."""
    expressions = [child for child in cursor.get_children() if child.kind.is_expression()]
    if not expressions:
        return None
    last = expressions[-1]
    if cursor.type.get_canonical().kind.name != "CONSTANTARRAY" or last.kind == CursorKind.INIT_LIST_EXPR:
        return last
    return None


def _parts_of_for(cursor: Cursor) -> tuple[Cursor | None, Cursor | None, Cursor | None, Cursor]:
    """Return the four parts of a `for`; clang leaves out those that are empty."""
    children = list(cursor.get_children())
    if len(children) == 4:
        first, condition, step, body = children
        return first, condition, step, body
    *parts, body = children
    semicolons: list[int] = []
    depth = 0
    for spelling, offset in operand_positions(cursor):
        depth += (spelling in "([{") - (spelling in ")]}")
        if spelling == ";" and depth == 1:
            semicolons.append(offset)
        if len(semicolons) == 2:
            break
    found: list[Cursor | None] = [None, None, None]
    for part in parts:
        found[sum(part.extent.start.offset > offset for offset in semicolons)] = part
    return found[0], found[1], found[2], body


__all__ = ["VOID", "FunctionLowering"]
