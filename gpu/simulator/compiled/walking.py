"""The nodes inside of an IR node, and the loops among them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from typing import Any, TypeVar

from gpu.errors import SourcePosition
from gpu.simulator import ir
from gpu.simulator.types import BOOL, Type

_LARGEST_UNROLLED = 9

LEAVES = ir.Function | SourcePosition | Type


def _named(kind: type) -> tuple[str, ...] | None:
    """Return the names of the fields of a kind of node; None of what is no node."""
    return tuple(each.name for each in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else None


# To ask for each node anew is half of a walk.
_fields: Callable[[type], tuple[str, ...] | None] = cache(_named)
_is_inner: Callable[[type], bool] = cache(lambda kind: not issubclass(kind, LEAVES) and dataclasses.is_dataclass(kind))


Asked = TypeVar("Asked")

_answers: dict[tuple[Any, int], tuple[Any, Any]] = {}
_remembering: list[None] = []


@contextmanager
def remembering() -> Iterator[None]:
    """Ask each node only once what is `asked_once` inside: a kernel's plan asks the same of the same many times."""
    _remembering.append(None)
    try:
        yield
    finally:
        _remembering.pop()
        if not _remembering:
            _answers.clear()


def asked_once(question: Callable[[Any], Asked]) -> Callable[[Any], Asked]:
    """Return a question about a node that remembers its answers while `remembering`."""

    @wraps(question)
    def ask(node: Any) -> Asked:
        if not _remembering:
            return question(node)
        known = _answers.get((question, id(node)))
        if known is None:
            known = _answers[question, id(node)] = node, question(node)  # the node lives on, and keeps its number
        answer: Asked = known[1]
        return answer

    return ask


@asked_once
def parts(node: Any) -> list[Any]:
    """Return the IR nodes directly inside of one."""
    found: list[Any] = []
    for name in _fields(type(node)) or ():
        value = getattr(node, name)
        for inner in value if isinstance(value, tuple) else (value,):
            if isinstance(inner, tuple):
                found += [part for part in inner if _fields(type(part)) is not None]
            elif _is_inner(type(inner)):
                found.append(inner)
    return found


def walk(node: Any) -> Iterator[Any]:
    """Yield a node and all inside of it, called functions left out."""
    return iter(_inside(node)) if _remembering else _one_by_one(node)


@asked_once
def _inside(node: Any) -> list[Any]:
    return list(_one_by_one(node))


def _one_by_one(node: Any) -> Iterator[Any]:
    left = [node]
    while left:
        each = left.pop()
        yield each
        left += reversed(parts(each))


def decided(condition: Any) -> bool | None:
    """Return what a condition always is, as that of `if constexpr`; None where that is not plain."""
    match condition:
        case ir.Const(_, known):
            return bool(known)
        case ir.Cast(type, operand) if type == BOOL:
            return decided(operand)
        case ir.Unary(_, "!", operand):
            found = decided(operand)
            return None if found is None else not found
        case ir.Logical(_, op, left, right):
            sides = decided(left), decided(right)
            if sides[0] is (op == "||"):
                return sides[0]
            return None if None in sides else sides[1]
    return None


def taken(body: ir.Block) -> ir.Block:
    """Return a function's body without the sides that are never taken, and without what follows a return."""
    kept: list[ir.Statement] = []
    for statement in _flat(body):
        kept.append(statement)
        if isinstance(statement, ir.Return):
            break
    return ir.Block(tuple(kept))


def _flat(statement: ir.Statement | None) -> Iterator[ir.Statement]:
    match statement:
        case None:
            return
        case ir.Block(statements):
            for inner in statements:
                yield from _flat(inner)
        case ir.If(condition, then, orelse) if (known := decided(condition)) is not None:
            yield from _flat(then if known else orelse)
        case _:
            yield statement


@asked_once
def returned_last(body: ir.Block) -> tuple[ir.Block, ir.Expression] | None:
    """Return what a function runs, and what it then gives, where it returns nowhere else; None of any other."""
    *before, last = taken(body).statements or (ir.Block(()),)
    if not isinstance(last, ir.Return) or last.value is None:
        return None
    leaves = any(isinstance(node, ir.Return) for statement in before for node in walk(statement))
    return None if leaves else (ir.Block(tuple(before)), last.value)


def is_unrolled(loop: ir.Loop) -> bool:
    """Whether a loop has so few rounds that a thread had better run it by itself, written out."""
    rounds = _rounds(loop)
    return rounds is not None and rounds * _inner_rounds(loop) <= _LARGEST_UNROLLED


def outermost_loops(statement: Any) -> Iterator[Any]:
    """Yield the loops inside of a node that are in no other loop there."""
    for part in parts(statement):
        if isinstance(part, ir.Loop):
            yield part
        else:
            yield from outermost_loops(part)


def _rounds(loop: ir.Loop) -> int | None:
    """Return how often a loop to a constant goes round, as if it began at 0; None where that is not known."""
    match loop.condition, loop.step:
        case ir.Binary(_, "<" | "<=", _, ir.Const(_, end)), ir.Update(_, _, "+", ir.Const(_, by)) if int(by) > 0:
            return max(int(end) // int(by), 1)
    return None


def _inner_rounds(loop: ir.Loop) -> int:
    most = 1
    for inner in outermost_loops(loop.body):
        most = max(most, (_rounds(inner) or _LARGEST_UNROLLED) * _inner_rounds(inner))
    return most
