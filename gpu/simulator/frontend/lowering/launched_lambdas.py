"""Kernels that host code instantiates with lambdas: found by following its calls, since lambda types have no names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from gpu.simulator.frontend.clang.parsing import Cursor, CursorKind, is_kernel, is_own
from gpu.simulator.frontend.lowering.closures import is_closure

_LAMBDA = re.compile(r"\(lambda at (?P<line>\d+):(?P<number>\d+)(?: of (?P<owner>[^()]*))?\)")
_CLANG_LAMBDA = re.compile(r"\(lambda at .*?:(\d+):(\d+)\)")
_FUNCTIONS = (CursorKind.FUNCTION_DECL, CursorKind.CXX_METHOD, CursorKind.CONSTRUCTOR)


def has_lambda_argument(name: str) -> bool:
    """Return whether a kernel's name has a lambda as an argument: "k<(lambda at 7:0 of f)>", the first of line 7."""
    return _LAMBDA.search(name) is not None


@dataclass
class LaunchedLambdas:
    """The instantiations of kernel templates with lambdas in host code.

    Parameters
    ----------
    owners : dict of Cursor to Cursor
        The function that contains each lambda, by the lambda's class.
    line_indices : dict of (int, int) to int
        The index of each lambda within its line, by line and column.
    """

    kernels: list[Cursor] = field(default_factory=list)
    owners: dict[Cursor, Cursor] = field(default_factory=dict)
    line_indices: dict[tuple[int, int], int] = field(default_factory=dict)

    @classmethod
    def collect(cls, bodies: Iterable[Cursor]) -> LaunchedLambdas:
        """Follow all calls from functions that have bodies."""
        collected = cls()
        columns: dict[int, set[int]] = {}
        for function in _reachable_functions(bodies):
            for inner in function.descendants():
                if inner.kind == CursorKind.LAMBDA_EXPR:
                    collected.owners[inner.type.canonical.declaration] = function
                    columns.setdefault(inner.position.line, set()).add(inner.position.column)
                referenced = inner.referenced
                if referenced is None or referenced.kind != CursorKind.FUNCTION_DECL or not is_kernel(referenced):
                    continue
                if referenced.template is not None and referenced not in collected.kernels:
                    collected.kernels.append(referenced)
        for line, line_columns in columns.items():
            collected.line_indices |= {(line, column): number for number, column in enumerate(sorted(line_columns))}
        return collected

    def find_kernel(self, name: str) -> Cursor | None:
        """Return the kernel of a name; None if there is none, or if the name is ambiguous."""
        head, _, arguments = name.partition("<")
        short = head.rpartition("::")[2].strip()
        requested = [(int(each["line"]), int(each["number"])) for each in _LAMBDA.finditer(name)]
        matches = [
            kernel
            for kernel in self.kernels
            if kernel.spelling == short and sorted({*self._find_lambda_indices(kernel)}) == sorted({*requested})
        ]
        if len(matches) > 1:
            scores = [self._similarity(match, arguments) for match in matches]
            matches = [match for match, score in zip(matches, scores, strict=True) if score == max(scores)]
        return matches[0] if len(matches) == 1 else None

    def _find_lambda_indices(self, kernel: Cursor) -> Iterator[tuple[int, int]]:
        for argument in kernel.template_arguments:
            for line, column in _CLANG_LAMBDA.findall(argument.text):
                yield int(line), self.line_indices.get((int(line), int(column)), -1)

    def _similarity(self, kernel: Cursor, arguments: str) -> int:
        """Return how many other template arguments match, including those of the functions that contain the lambdas."""
        rest, owned = (
            _LAMBDA.sub("", arguments),
            ", ".join(match["owner"] or "" for match in _LAMBDA.finditer(arguments)),
        )
        score = 0
        for argument in kernel.template_arguments:
            if is_closure(argument.declaration):
                owner = self.owners.get(argument.declaration) if argument.declaration is not None else None
                inner = owner.template_arguments if owner is not None else ()
                score += sum(_occurs_in(statement.text, owned) for statement in inner)
            else:
                score += _occurs_in(argument.text, rest)
        return score


def _occurs_in(text: str, arguments: str) -> bool:
    return re.search(rf"(?<![\w:]){re.escape(text)}(?![\w:])", arguments) is not None


def _reachable_functions(bodies: Iterable[Cursor]) -> Iterator[Cursor]:
    """Yield functions and all functions that they call, with templates as they are instantiated."""
    visited: set[Cursor] = set()
    pending = [body for body in bodies if body.kind in _FUNCTIONS]
    while pending:
        function = pending.pop()
        if function in visited or not is_own(function):
            continue
        visited.add(function)
        yield function
        for inner in function.descendants():
            referenced = inner.referenced
            definition = referenced.definition if referenced is not None and referenced.kind in _FUNCTIONS else None
            if definition is not None and not is_kernel(definition):
                pending.append(definition)
