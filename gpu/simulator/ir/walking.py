"""Traversal of IR nodes: visitors with one method per class, and cached queries."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ClassVar, TypeVar, get_args

from gpu.base.errors import SourcePosition
from gpu.simulator.ir import nodes
from gpu.simulator.types import Type

Result = TypeVar("Result")

_LEAVES = nodes.Function | SourcePosition | Type


def _field_names(kind: type) -> tuple[str, ...] | None:
    """Return the field names of a node class; None for any other class."""
    return tuple(each.name for each in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else None


_PLAIN = re.compile(
    r"((str|int|bool|Type|Scalar|Pointer|SourcePosition|Function|Scope|AsyncKind|None)( \| )?)+|Literal.*"
)
"""Annotations of fields that hold no inner nodes."""


def _inner_field_names(kind: type) -> tuple[str, ...]:
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    return tuple(each.name for each in fields if not _PLAIN.fullmatch(str(each.type)))


class _ClassFacts(dict[type, Result]):
    """Results of a function of classes: a dictionary, because a call for each node takes half of a traversal's time."""

    def __init__(self, find: Callable[[type], Result]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, kind: type) -> Result:
        fact = self[kind] = self._find(kind)
        return fact


_fields = _ClassFacts(_field_names)
_inner_fields = _ClassFacts(_inner_field_names)
_is_inner = _ClassFacts(lambda kind: not issubclass(kind, _LEAVES) and dataclasses.is_dataclass(kind))


_METHOD_NAMES = {
    kind: f"visit_{re.sub('(?<=[a-z])(?=[A-Z])', '_', kind.__name__).lower()}"
    for kind in (*get_args(nodes.Expression), nodes.Element, *get_args(nodes.Statement))
}


class Visitor:
    """Dispatches on the class of a node: `visit` calls `visit_async_copy` for an AsyncCopy.

    A subclass has a method for each class that it handles, and may override `visit_other` for all others.
    """

    _methods: ClassVar[dict[type, Callable[..., Any]]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._methods = {kind: getattr(cls, name) for kind, name in _METHOD_NAMES.items() if hasattr(cls, name)}

    def visit(self, node: Any, *arguments: Any) -> Any:
        """Return the result of the method for a node's class, which also gets further arguments."""
        method = self._methods.get(type(node))
        return self.visit_other(node, *arguments) if method is None else method(self, node, *arguments)

    def visit_other(self, node: Any, *arguments: Any) -> Any:
        """Handle a node of a class without a method."""
        raise AssertionError(node)


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


def child_nodes(node: Any) -> list[Any]:
    """Return the IR nodes directly within a node."""
    nodes: list[Any] = []
    for name in _inner_fields[type(node)]:
        value = getattr(node, name)
        if _is_inner[type(value)]:
            nodes.append(value)
        elif isinstance(value, tuple):
            for inner in value:
                if _is_inner[type(inner)]:
                    nodes.append(inner)
                elif isinstance(inner, tuple):
                    nodes += [part for part in inner if _fields[type(part)] is not None]
    return nodes


def inner_statements(statement: nodes.Statement) -> Iterator[nodes.Statement]:
    """Yield the direct inner statements of a statement."""
    match statement:
        case nodes.Block(statements):
            yield from statements
        case nodes.If(_, then, orelse):
            yield then
            if orelse is not None:
                yield orelse
        case nodes.Loop():
            yield statement.body
        case nodes.Switch(_, sections):
            yield from (section.body for section in sections)


def replace_children(node: Any, replace: Callable[[Any], Any]) -> Any:
    """Return a copy of a node in which a function's results replace its direct children."""
    changed: dict[str, Any] = {}
    for name in _fields[type(node)] or ():
        value = getattr(node, name)
        if isinstance(value, tuple):
            changed[name] = tuple(replace(part) if dataclasses.is_dataclass(part) else part for part in value)
        elif _is_inner[type(value)]:
            changed[name] = replace(value)
    return dataclasses.replace(node, **changed)


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


def find_reachable_functions(kernel: nodes.Function) -> list[nodes.Function]:
    """Return a kernel and all functions that it calls, directly or indirectly."""
    functions = [kernel]
    for function in functions:
        functions += [called for called in function.calls if not any(called is other for other in functions)]
    return functions
