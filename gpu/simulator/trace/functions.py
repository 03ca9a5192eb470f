"""Functions in a trace: the names of their variables, and their statements in source order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from gpu.errors import SourcePosition
from gpu.simulator import ir
from gpu.simulator.types import Pointer, Type

_Loops = tuple[int, ...]


class Statement(NamedTuple):
    """A statement: the number of its position, -1 if it never ran, and the loops around it, outermost first.

    The loops around a loop include the loop itself.
    """

    position: int
    loops: _Loops


@dataclass(frozen=True)
class TraceFunction:
    """A function of a trace.

    Parameters
    ----------
    name : str
        The function's name.
    variables : dict of int to str
        The names of its variables, by slot.
    pointers : dict of int to int
        For each pointer variable, by slot, the bytes per element that it points to.
    statements : tuple of Statement
        In source order; statements that never ran are left out, except loops.
    rounds : dict of int to int
        For each loop, by the number of its statement, the position of a statement that runs once per iteration, or -1
        for the loop's condition.
    """

    name: str
    variables: dict[int, str]
    pointers: dict[int, int]
    statements: tuple[Statement, ...]
    rounds: dict[int, int]

    def loops_at(self, position: int) -> _Loops:
        """Return the loops around a position, outermost first."""
        return next((statement.loops for statement in self.statements if statement.position == position), ())


def describe_function(function: ir.Function, positions: Mapping[SourcePosition, int]) -> TraceFunction:
    """Return the description of a function for a trace; `positions` numbers the positions of executed statements."""
    names = dict(enumerate(name for name, _ in function.parameters))
    types = dict(enumerate(type for _, type in function.parameters))
    _find_names(function.body, names, types)
    pointers = {slot: max(type.element.size, 1) for slot, type in types.items() if isinstance(type, Pointer)}
    statements: list[Statement] = []
    rounds: dict[int, int] = {}

    def visit(statement: ir.Statement, loops: _Loops) -> None:
        position = _position_number(statement, positions)
        if isinstance(statement, ir.Loop):
            loops = (*loops, len(statements))
            rounds[len(statements)] = (
                -1 if statement.condition is not None else _find_first_position(statement, positions)
            )
        if position >= 0 or isinstance(statement, ir.Loop):
            statements.append(Statement(position, loops))
        for inner in _inner_statements(statement):
            visit(inner, loops)

    visit(function.body, ())
    return TraceFunction(function.name, names, pointers, tuple(statements), rounds)


def _inner_statements(statement: ir.Statement) -> Iterator[ir.Statement]:
    """Yield the direct inner statements of a statement."""
    match statement:
        case ir.Block(statements):
            yield from statements
        case ir.If(_, then, orelse):
            yield then
            if orelse is not None:
                yield orelse
        case ir.Loop():
            yield statement.body
        case ir.Switch(_, sections):
            yield from (section.body for section in sections)


def _position_number(statement: ir.Statement, positions: Mapping[SourcePosition, int]) -> int:
    return -1 if isinstance(statement, ir.Block) else positions.get(statement.position, -1)


def _find_first_position(loop: ir.Loop, positions: Mapping[SourcePosition, int]) -> int:
    """Return the position of the first statement of a loop's body that ran."""
    waiting: list[ir.Statement] = [loop.body]
    while waiting:
        statement = waiting.pop()
        position = _position_number(statement, positions)
        if position >= 0:
            return position
        waiting += reversed(list(_inner_statements(statement)))
    return -1


def _find_names(node: object, names: dict[int, str], types: dict[int, Type]) -> None:
    """Collect the names and types of a function's variables, by slot."""
    if isinstance(node, ir.Local):
        names.setdefault(node.slot, node.name)
        types.setdefault(node.slot, node.type)
    elif isinstance(node, tuple):
        for each in node:
            _find_names(each, names, types)
    elif hasattr(node, "__dataclass_fields__") and not isinstance(node, ir.Function | Type):
        for each in vars(node).values():
            _find_names(each, names, types)
