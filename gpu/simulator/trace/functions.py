"""What a trace knows of a function: the names of its variables, and its statements in the order of the program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpu.errors import SourcePosition
from gpu.simulator import ir
from gpu.simulator.types import Pointer, Scalar, Type

_Loops = tuple[int, ...]


def describe(function: ir.Function, positions: Mapping[SourcePosition, int]) -> dict[str, Any]:
    """Return a function's description, in which a position is its number among those where something ran.

    `slots` are the names of the variables, `scalars` the slots of parameters that are numbers, `pointers` has for the
    slot of each pointer the bytes of what it points to. `statements` has for
    each statement, in the order of the program, its position and the loops around it, outermost first, each as the
    number of a statement; a loop is in itself. `rounds` has for each loop the position of what runs once a round: -1
    for its own condition, else a statement of its body. What never ran is left out, or has the position -1.
    """
    names = dict(enumerate(name for name, _ in function.parameters))
    types = dict(enumerate(type for _, type in function.parameters))
    _find_names(function.body, names, types)
    pointers = {str(slot): max(type.element.size, 1) for slot, type in types.items() if isinstance(type, Pointer)}
    scalars = [slot for slot, (_, type) in enumerate(function.parameters) if isinstance(type, Scalar)]
    statements: list[tuple[int, _Loops]] = []
    rounds: dict[str, int] = {}

    def visit(statement: ir.Statement, loops: _Loops) -> None:
        position = _position(statement, positions)
        if isinstance(statement, ir.Loop):
            loops = (*loops, len(statements))
            rounds[str(len(statements))] = -1 if statement.condition is not None else _first(statement, positions)
        if position >= 0 or isinstance(statement, ir.Loop):
            statements.append((position, loops))
        for inner in _inner(statement):
            visit(inner, loops)

    visit(function.body, ())
    return {
        "name": function.name,
        "slots": {str(slot): name for slot, name in names.items()},
        "scalars": scalars,
        "pointers": pointers,
        "statements": statements,
        "rounds": rounds,
    }


def _inner(statement: ir.Statement) -> Iterator[ir.Statement]:
    """Yield the statements in a statement."""
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


def _position(statement: ir.Statement, positions: Mapping[SourcePosition, int]) -> int:
    return -1 if isinstance(statement, ir.Block) else positions.get(statement.position, -1)


def _first(loop: ir.Loop, positions: Mapping[SourcePosition, int]) -> int:
    """Return the position of the first statement of a loop's body that ran."""
    waiting: list[ir.Statement] = [loop.body]
    while waiting:
        statement = waiting.pop()
        position = _position(statement, positions)
        if position >= 0:
            return position
        waiting += reversed(list(_inner(statement)))
    return -1


def _find_names(node: object, names: dict[int, str], types: dict[int, Type]) -> None:
    """Gather the names and types of a function's variables, by slot."""
    if isinstance(node, ir.Local):
        names.setdefault(node.slot, node.name)
        types.setdefault(node.slot, node.type)
    elif isinstance(node, tuple):
        for each in node:
            _find_names(each, names, types)
    elif hasattr(node, "__dataclass_fields__") and not isinstance(node, ir.Function | Type):
        for each in vars(node).values():
            _find_names(each, names, types)
