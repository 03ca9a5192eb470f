"""Traversal of IR nodes with cached queries, and queries on loops and function bodies."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from typing import Any, TypeVar

from gpu.errors import SourcePosition
from gpu.simulator import ir
from gpu.simulator.types import BOOL, Type

_MAXIMUM_UNROLLED = 9

LEAVES = ir.Function | SourcePosition | Type


def _field_names(kind: type) -> tuple[str, ...] | None:
    """Return the field names of a node class; None for any other class."""
    return tuple(field.name for field in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else None


# Cached, because looking them up for each node takes half of a traversal's time.
_fields: Callable[[type], tuple[str, ...] | None] = cache(_field_names)
_is_inner: Callable[[type], bool] = cache(lambda kind: not issubclass(kind, LEAVES) and dataclasses.is_dataclass(kind))


Result = TypeVar("Result")

_cache: dict[tuple[Any, int], tuple[Any, Any]] = {}
_active_caches: list[None] = []


@contextmanager
def query_cache() -> Iterator[None]:
    """Cache the results of `cache_query` functions inside: planning a kernel repeats the same queries many times."""
    _active_caches.append(None)
    try:
        yield
    finally:
        _active_caches.pop()
        if not _active_caches:
            _cache.clear()


def cache_query(query: Callable[[Any], Result]) -> Callable[[Any], Result]:
    """Decorate a query on a node so that its results are cached while `query_cache`."""

    @wraps(query)
    def cached_query(node: Any) -> Result:
        if not _active_caches:
            return query(node)
        entry = _cache.get((query, id(node)))
        if entry is None:
            entry = _cache[query, id(node)] = node, query(node)  # keep the node alive, so that its id stays unique
        result: Result = entry[1]
        return result

    return cached_query


@cache_query
def child_nodes(node: Any) -> list[Any]:
    """Return the IR nodes directly within a node."""
    nodes: list[Any] = []
    for name in _fields(type(node)) or ():
        value = getattr(node, name)
        for inner in value if isinstance(value, tuple) else (value,):
            if isinstance(inner, tuple):
                nodes += [part for part in inner if _fields(type(part)) is not None]
            elif _is_inner(type(inner)):
                nodes.append(inner)
    return nodes


def walk(node: Any) -> Iterator[Any]:
    """Yield a node and all nodes within it, except called functions."""
    return iter(_walk_to_list(node)) if _active_caches else _walk(node)


@cache_query
def _walk_to_list(node: Any) -> list[Any]:
    return list(_walk(node))


def _walk(node: Any) -> Iterator[Any]:
    pending = [node]
    while pending:
        each = pending.pop()
        yield each
        pending += reversed(child_nodes(each))


def fold_condition(condition: Any) -> bool | None:
    """Return the constant value of a condition, as for `if constexpr`; None if it is not known."""
    match condition:
        case ir.Const(_, number):
            return bool(number)
        case ir.Cast(type, operand) if type == BOOL:
            return fold_condition(operand)
        case ir.Unary(_, "!", operand):
            operand_value = fold_condition(operand)
            return None if operand_value is None else not operand_value
        case ir.Logical(_, op, left, right):
            sides = fold_condition(left), fold_condition(right)
            if sides[0] is (op == "||"):
                return sides[0]
            return None if None in sides else sides[1]
    return None


def remove_dead_code(body: ir.Block) -> ir.Block:
    """Return a function's body without branches that are never taken and without code after a return."""
    statements: list[ir.Statement] = []
    for statement in _flatten(body):
        statements.append(statement)
        if isinstance(statement, ir.Return):
            break
    return ir.Block(tuple(statements))


def _flatten(statement: ir.Statement | None) -> Iterator[ir.Statement]:
    match statement:
        case None:
            return
        case ir.Block(statements):
            for inner in statements:
                yield from _flatten(inner)
        case ir.If(condition, then, orelse) if (holds := fold_condition(condition)) is not None:
            yield from _flatten(then if holds else orelse)
        case _:
            yield statement


@cache_query
def split_final_return(body: ir.Block) -> tuple[ir.Block, ir.Expression] | None:
    """Return a body's statements and its return value, if the only return is at its end; None otherwise."""
    *before, last = remove_dead_code(body).statements or (ir.Block(()),)
    if not isinstance(last, ir.Return) or last.value is None:
        return None
    has_early_return = any(isinstance(node, ir.Return) for statement in before for node in walk(statement))
    return None if has_early_return else (ir.Block(tuple(before)), last.value)


def is_unrolled(loop: ir.Loop) -> bool:
    """Return whether a loop has so few iterations that each thread should run it individually, unrolled."""
    iterations = _iterations(loop)
    return iterations is not None and iterations * _inner_iterations(loop) <= _MAXIMUM_UNROLLED


def outermost_loops(statement: Any) -> Iterator[Any]:
    """Yield the loops within a node that are not in another loop there."""
    for part in child_nodes(statement):
        if isinstance(part, ir.Loop):
            yield part
        else:
            yield from outermost_loops(part)


def _iterations(loop: ir.Loop) -> int | None:
    """Return the iterations of a loop to a constant, as if it started at 0; None if they are unknown."""
    match loop.condition, loop.step:
        case ir.Binary(_, "<" | "<=", _, ir.Const(_, end)), ir.Update(_, _, "+", ir.Const(_, step)) if int(step) > 0:
            return max(int(end) // int(step), 1)
    return None


def _inner_iterations(loop: ir.Loop) -> int:
    maximum = 1
    for inner in outermost_loops(loop.body):
        maximum = max(maximum, (_iterations(inner) or _MAXIMUM_UNROLLED) * _inner_iterations(inner))
    return maximum
