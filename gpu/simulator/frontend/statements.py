"""Lower statements and declarations from clang's cursors to the IR."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from gpu.base.errors import CompileError
from gpu.simulator import ir
from gpu.simulator.frontend.assembly.inline_assembly import lower_assembly
from gpu.simulator.frontend.clang.parsing import (
    Cursor,
    CursorKind,
    StorageClass,
    TypeKind,
    get_reported_position,
    has_attribute,
)
from gpu.simulator.frontend.expressions.construction import build_default_array, lower_array_braces
from gpu.simulator.frontend.expressions.expressions import Expressions
from gpu.simulator.frontend.labels import LabelLowering
from gpu.simulator.frontend.lowering.addresses import is_assignment, is_reference_function
from gpu.simulator.frontend.lowering.classes import (
    find_initializer,
    is_constructed,
    is_implicit,
    refuse_destructor,
)
from gpu.simulator.frontend.lowering.types import build_unsupported_error, is_reference
from gpu.simulator.types import BOOL, INT32, ArrayOf, Pointer, Scalar, Struct, Type, Void, decay, has_union

_NO_CODE = (
    CursorKind.TYPEDEF_DECL,
    CursorKind.TYPE_ALIAS_DECL,
    CursorKind.STATIC_ASSERT,
    CursorKind.STRUCT_DECL,
    CursorKind.UNION_DECL,
    CursorKind.CLASS_DECL,
    CursorKind.ENUM_DECL,
    CursorKind.USING_DECLARATION,
    CursorKind.USING_DIRECTIVE,
    CursorKind.NAMESPACE_ALIAS,
    CursorKind.FUNCTION_DECL,
)

_BREAKABLE = (
    CursorKind.FOR_STMT,
    CursorKind.CXX_FOR_RANGE_STMT,
    CursorKind.WHILE_STMT,
    CursorKind.DO_STMT,
    CursorKind.SWITCH_STMT,
)

_UNROLL_PRAGMA = re.compile(r'(?:#\s*pragma|_Pragma ?\( ?")\s*(no)?unroll\b[ (]*(\d+)?')

_ADVICE = {
    "LABEL_STMT": "Move the label to the statements of a block.",
    "INDIRECT_GOTO_STMT": "Use a switch.",
    "MS_ASM_STMT": "Use the intrinsic for it, such as __ldg, __popc or __shfl_sync.",
    "CXX_TRY_STMT": "Device code has no exceptions: return an error code.",
}


class Statements:
    """Lowers the statements of one function.

    Parameters
    ----------
    expressions : Expressions
        Lowers the statements' expressions, with the function's variables.
    """

    def __init__(self, expressions: Expressions) -> None:
        self._expressions = expressions
        self._scope = expressions.scope
        self._types = expressions.scope.unit.types
        self._labels = LabelLowering(expressions.scope)

    def lower_block(self, cursor: Cursor) -> list[ir.Statement]:
        """Lower the statements between braces."""
        return self._labels.lower_block(cursor.children, self._statements)

    def _statements(self, cursor: Cursor) -> list[ir.Statement]:
        """Lower a statement; a declaration of several variables becomes several statements."""
        kind = cursor.kind
        if kind == CursorKind.DECL_STMT:
            return [statement for child in cursor.children for statement in self._declaration(child)]
        if kind == CursorKind.NULL_STMT:
            return []
        if kind == CursorKind.ASM_STMT:
            return lower_assembly(self._expressions, cursor)
        return [self._statement(cursor)]

    def _statement(self, cursor: Cursor) -> ir.Statement:
        kind = cursor.kind
        position = get_reported_position(cursor)
        if kind == CursorKind.COMPOUND_STMT:
            return ir.Block(tuple(self.lower_block(cursor)), is_scope=True)
        if kind in (CursorKind.DECL_STMT, CursorKind.NULL_STMT, CursorKind.ASM_STMT):
            return ir.Block(tuple(self._statements(cursor)))
        if kind == CursorKind.IF_STMT:
            return self._if(cursor)
        if kind in _BREAKABLE:
            return self._labels.lower_breakable(cursor, self._breakable)
        if kind == CursorKind.GOTO_STMT:
            return self._labels.lower_goto(cursor)
        if kind == CursorKind.BREAK_STMT:
            return ir.Jump("break", position)
        if kind == CursorKind.CONTINUE_STMT:
            return ir.Jump("continue", position)
        if kind == CursorKind.RETURN_STMT:
            return ir.Return(self._return_value(cursor), position)
        if kind == CursorKind.CALL_EXPR and cursor.spelling == "__syncthreads":
            return ir.Barrier(position)
        if kind in (CursorKind.CONDITIONAL_OPERATOR, CursorKind.PAREN_EXPR) and cursor.type.kind == TypeKind.VOID:
            return self._lower_void_conditional(cursor)
        if kind.is_expression():
            return ir.Evaluate(self._expressions.lower_discarded(cursor), position, _expression_text(cursor))
        if kind.is_unexposed() and len(children := cursor.children) == 1:
            return _attach_unroll_pragma(self._statement(children[0]), cursor)
        raise build_unsupported_error(
            cursor, f"this statement ({kind.name.lower().replace('_', ' ')})", advice=_ADVICE.get(kind.name, "")
        )

    def _breakable(self, cursor: Cursor) -> ir.Statement:
        """Lower a loop or a switch."""
        match cursor.kind:
            case CursorKind.FOR_STMT:
                return self._for(cursor)
            case CursorKind.CXX_FOR_RANGE_STMT:
                return self._range_for(cursor)
            case CursorKind.WHILE_STMT:
                return self._while(cursor)
            case CursorKind.SWITCH_STMT:
                return self._switch(cursor)
        body, condition = cursor.children
        test = self._expressions.condition(condition)
        return ir.Loop(test, None, self._statement(body), False, get_reported_position(cursor), condition.text)

    def _return_value(self, cursor: Cursor) -> ir.Expression | None:
        value = next(iter(cursor.children), None)
        if value is None:
            return None
        if is_reference_function(self._scope.definition):
            return self._expressions.address(value)
        if isinstance(self._scope.function.type, Void):
            return self._expressions.value(value)
        return self._expressions.convert(value, self._scope.function.type)

    def _while(self, cursor: Cursor) -> ir.Statement:
        *declarations, condition, body = cursor.children
        position = get_reported_position(cursor)
        if not declarations:
            test = self._expressions.condition(condition)
            return ir.Loop(test, None, self._statement(body), True, position, condition.text)
        # `while (int x = f())` declares its variable in each iteration.
        before = self._declarations(declarations)
        test = self._expressions.condition(condition)
        ends = ir.If(test, ir.Block(()), ir.Jump("break", position), position, condition.text)
        return ir.Loop(None, None, ir.Block((*before, ends, self._statement(body)), is_scope=True), True, position)

    def _declarations(self, cursors: list[Cursor]) -> list[ir.Statement]:
        """Lower the declarations before, or in, the condition of an if, a switch or a while."""
        return [
            statement
            for cursor in cursors
            for statement in (self._declaration(cursor) if cursor.kind.is_declaration() else self._statements(cursor))
        ]

    def _if(self, cursor: Cursor) -> ir.Statement:
        children = cursor.children
        first = next(index for index, child in enumerate(children) if child.is_expression)
        before = self._declarations([*children[:first]])
        condition, then, *orelse = children[first:]
        test = self._expressions.condition(condition)
        chosen, other = self._statement(then), self._statement(orelse[0]) if orelse else None
        branch = ir.If(test, chosen, other, get_reported_position(cursor), condition.text)
        return ir.Block((*before, branch), is_scope=True) if before else branch

    def _lower_void_conditional(self, cursor: Cursor) -> ir.Statement:
        """Lower `c ? f() : g()` of type void as an if, because f or g may contain a barrier."""
        if cursor.kind == CursorKind.PAREN_EXPR:
            return self._statement(cursor.children[-1])
        condition, chosen, other = cursor.children
        test = self._expressions.condition(condition)
        return ir.If(
            test, self._statement(chosen), self._statement(other), get_reported_position(cursor), condition.text
        )

    def _for(self, cursor: Cursor) -> ir.Statement:
        first, condition, step, body = _split_for(cursor)
        before = self._statements(first) if first is not None else []
        loop = ir.Loop(
            self._expressions.condition(condition) if condition is not None else None,
            self._expressions.lower_discarded(step) if step is not None else None,
            self._statement(body),
            True,
            get_reported_position(cursor),
            condition.text if condition is not None else "",
        )
        return ir.Block((*before, loop), is_scope=True)

    def _range_for(self, cursor: Cursor) -> ir.Statement:
        """Lower `for (auto x : array)` to a loop over an index."""
        variable, sequence, body = cursor.children
        type = self._expressions.type_of(sequence)
        if not isinstance(type, ArrayOf):
            raise build_unsupported_error(
                cursor, "a range-based for loop over anything but an array", advice="Use a loop over an index."
            )
        position = get_reported_position(cursor)
        pointer = self._expressions.value(sequence)
        index = ir.Local(INT32, self._scope.new_slot(), "index")
        place = ir.Element(type.element, pointer, index, position)
        variable_type = self._types.lower(variable.type, variable)
        if is_reference(variable.type):
            local = self._scope.declare(variable, variable_type, in_memory=True)
            address = ir.Offset(Pointer(decay(type.element)), pointer, index)
            declare_variable: ir.Statement = ir.Declare(local.slot, local.type, address, position, f"&{local.name}")
        else:
            declare_variable = self._variable(variable, variable_type, ir.Load(type.element, place))
        names = self._bind_names(variable, variable_type) if variable.kind == CursorKind.UNEXPOSED_DECL else []
        count = ir.Const(INT32, np.int32(type.length))
        one = ir.Const(INT32, np.int32(1))
        loop = ir.Loop(
            ir.Binary(BOOL, "<", index, count),
            ir.Update(INT32, index, "+", one, INT32),
            ir.Block((declare_variable, *names, self._statement(body)), is_scope=True),
            True,
            position,
        )
        return ir.Block((ir.Declare(index.slot, INT32, ir.Const(INT32, np.int32(0)), position, index.name), loop))

    def _switch(self, cursor: Cursor) -> ir.Statement:
        *declarations, value, body = cursor.children
        before = self._declarations(declarations)
        sections: list[ir.Section] = []
        statements: list[ir.Statement] = []
        labels: tuple[list[int], bool] = ([], False)

        def finish() -> None:
            if labels[0] or labels[1]:
                sections.append(ir.Section(tuple(labels[0]), labels[1], ir.Block(tuple(statements))))

        for child in body.children if body.kind == CursorKind.COMPOUND_STMT else [body]:
            cases: list[int] = []
            is_default = False
            while child.kind in (CursorKind.CASE_STMT, CursorKind.DEFAULT_STMT):
                parts = child.children
                if child.kind == CursorKind.CASE_STMT:
                    cases.append(self._case(parts[0]))
                else:
                    is_default = True
                child = parts[-1]
            if cases or is_default:
                finish()
                statements, labels = [], (cases, is_default)
            statements += self._statements(child)
        finish()
        switch = ir.Switch(self._expressions.value(value), tuple(sections), get_reported_position(cursor), value.text)
        declares = any(
            isinstance(statement, ir.DeclareMemory) for section in sections for statement in section.body.statements
        )
        return ir.Block((*before, switch), is_scope=True) if before or declares else switch

    def _case(self, cursor: Cursor) -> int:
        number = cursor.constant
        if number is None:
            lowered = self._expressions.value(cursor)
            if not isinstance(lowered, ir.Const):
                raise build_unsupported_error(cursor, "this case, which is not a constant")
            return int(lowered.value)
        return int(number)

    def _declaration(self, cursor: Cursor) -> list[ir.Statement]:
        if cursor.kind in _NO_CODE:
            return []
        if cursor.kind != CursorKind.VAR_DECL:
            if cursor.kind == CursorKind.UNEXPOSED_DECL:  # libclang has no name for `auto [a, b] = c;`
                return self._structured_binding(cursor)
            raise build_unsupported_error(cursor, f"this declaration ({cursor.kind.name.lower().replace('_', ' ')})")
        type = self._types.lower(cursor.type, cursor)
        if has_attribute(cursor, CursorKind.CUDASHARED_ATTR):
            self._scope.declare_shared(cursor, type)
            return []
        if cursor.storage_class == StorageClass.STATIC:
            return []  # a variable of the module, or a constant table, visible only in this function
        initial = find_initializer(cursor)
        refuse_destructor(cursor, cursor.type)
        if is_reference(cursor.type):
            assert initial is not None
            address = self._expressions.address(initial)
            local = self._scope.declare(cursor, type, in_memory=True)
            return [ir.Declare(local.slot, local.type, address, get_reported_position(cursor), f"&{local.name}")]
        if isinstance(type, ArrayOf):
            return [self._array(cursor, type, initial)]
        if initial is None or _is_trivial(initial, cursor):
            return [self._variable(cursor, type, None)]
        return [self._variable(cursor, type, self._expressions.convert(initial, type), initial.text)]

    def _structured_binding(self, cursor: Cursor) -> list[ir.Statement]:
        """Declare a struct, or a reference to one, and the names of its members."""
        type, initial = self._types.lower(cursor.type, cursor), find_initializer(cursor)
        if initial is None or isinstance(type, ArrayOf):
            raise _build_binding_error(cursor)
        refuse_destructor(cursor, cursor.type)
        if is_reference(cursor.type):
            address = self._expressions.address(initial)
            local = self._scope.declare(cursor, type, in_memory=True)
            position = get_reported_position(cursor)
            return [ir.Declare(local.slot, local.type, address, position, local.name), *self._bind_names(cursor, type)]
        value = self._expressions.convert(initial, type)
        return [self._variable(cursor, type, value, initial.text), *self._bind_names(cursor, type)]

    def _bind_names(self, cursor: Cursor, type: Type) -> list[ir.Statement]:
        """Declare the names of a structured binding as references to the members of its struct, which is declared."""
        names = [each for each in cursor.children if each.kind == CursorKind.UNEXPOSED_DECL]
        whole, members = self._scope.find(cursor), type.fields if isinstance(type, Struct) else ()
        assert whole is not None
        is_plain = all(not (each.is_reference or each.is_anonymous or each.parts) for each in members)
        if len(members) != len(names) or not is_plain:
            raise _build_binding_error(cursor)
        declarations: list[ir.Statement] = []
        for name, member in zip(names, members, strict=True):
            local = self._scope.declare(name, member.type, in_memory=True)
            place = ir.Member(Pointer(decay(member.type)), whole.local, member.offset)
            position = get_reported_position(cursor)
            declarations.append(ir.Declare(local.slot, local.type, place, position, f"&{local.name}"))
        return declarations

    def _variable(self, cursor: Cursor, type: Type, value: ir.Expression | None, text: str = "") -> ir.Statement:
        """Declare a variable in a slot, or in memory if it needs an address."""
        in_memory = self._scope.needs_memory(cursor, type)
        local = self._scope.declare(cursor, type, in_memory=in_memory)
        position = get_reported_position(cursor)
        if in_memory:
            values = () if value is None else ((0, value),)
            return ir.DeclareMemory(
                local.slot, type.size, values, False, cursor.spelling, position, has_union(type), type
            )
        if not isinstance(type, Scalar | Pointer):
            raise build_unsupported_error(cursor, f"a variable of type {type}")
        return ir.Declare(local.slot, type, value, position, local.name, text)

    def _array(self, cursor: Cursor, type: ArrayOf, initial: Cursor | None) -> ir.Statement:
        values: tuple[tuple[int, ir.Expression], ...] = ()
        is_string = initial is not None and initial.kind == CursorKind.STRING_LITERAL
        braces = initial is not None and initial.kind == CursorKind.INIT_LIST_EXPR
        if initial is not None and (is_string or (braces and initial.children)):
            size = type.innermost.size
            elements = lower_array_braces(self._expressions, initial, type)
            values = tuple((number * size, value) for number, value in enumerate(elements))
        elif initial is None:
            defaults = build_default_array(self._expressions, cursor.type, type)
            values = tuple((number * type.innermost.size, value) for number, value in enumerate(defaults))
        local = self._scope.declare(cursor, type, in_memory=True)
        return ir.DeclareMemory(
            local.slot, type.size, values, braces, cursor.spelling, get_reported_position(cursor), has_union(type), type
        )


def _build_binding_error(cursor: Cursor) -> CompileError:
    return build_unsupported_error(
        cursor, "a structured binding of this type", advice="Declare one variable for each value."
    )


def _attach_unroll_pragma(statement: ir.Statement, attributed: Cursor) -> ir.Statement:
    """Return a loop with the number of the unroll pragma before it; other statements unchanged."""
    pragma = _UNROLL_PRAGMA.match(attributed.text)
    if pragma is None:
        return statement
    unroll = 1 if pragma[1] else int(pragma[2] or ir.UNROLL_ALL)
    if isinstance(statement, ir.Loop):
        return replace(statement, unroll=unroll)
    if isinstance(statement, ir.Block) and statement.statements:
        *before, last = statement.statements
        if isinstance(last, ir.Loop):
            return replace(statement, statements=(*before, replace(last, unroll=unroll)))
    return statement


def _expression_text(expression: Cursor) -> str:
    """Return the text of an expression; for an assignment, of the assigned value, if there is one."""
    if expression.kind == CursorKind.UNARY_OPERATOR:
        return ""
    return expression.children[1].text if is_assignment(expression) else expression.text


def _is_trivial(initial: Cursor, variable: Cursor) -> bool:
    """Return whether a struct's initializer is a constructor without effect."""
    callee = initial.referenced
    if initial.kind != CursorKind.CALL_EXPR or callee is None or callee.kind != CursorKind.CONSTRUCTOR:
        return False
    return is_implicit(callee) and not is_constructed(variable.type) and not initial.arguments


def _split_for(cursor: Cursor) -> tuple[Cursor | None, Cursor | None, Cursor | None, Cursor]:
    """Return the four parts of a `for`; clang omits empty parts."""
    children = cursor.children
    if len(children) == 4:
        first, condition, step, body = children
        return first, condition, step, body
    *parts, body = children
    semicolons: list[int] = []
    depth = 0
    # If a macro expands to the loop, all its parts start at the macro's position.
    by_macro = any(part.start.offset == cursor.start.offset for part in parts)
    for spelling, offset in [] if by_macro else cursor.tokens():
        depth += (spelling in "([{") - (spelling in ")]}")
        if spelling == ";" and depth == 1:
            semicolons.append(offset)
        if len(semicolons) == 2:
            break
    assigned: list[Cursor | None] = [None, None, None]
    for part in parts:
        if len(semicolons) == 2:
            assigned[sum(part.start.offset > offset for offset in semicolons)] = part
        else:  # a macro wrote the loop, and its text is not available: classify the parts by their kind
            assigned[_guess_part(part, assigned)] = part
    return assigned[0], assigned[1], assigned[2], body


def _guess_part(part: Cursor, assigned: list[Cursor | None]) -> int:
    if part.kind == CursorKind.DECL_STMT:
        return 0
    if part.type.canonical.kind == TypeKind.BOOL:
        return 1
    return 2 if assigned[0] is not None or assigned[1] is not None or part.kind == CursorKind.UNARY_OPERATOR else 0
