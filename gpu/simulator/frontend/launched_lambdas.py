"""Kernels that host code launches with lambdas: their types have no names, so the code that launches is followed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from gpu.simulator.frontend.clang import Cursor, CursorKind, is_kernel, is_own
from gpu.simulator.frontend.closures import is_closure

_LAMBDA = re.compile(r"\(lambda at (?P<line>\d+):(?P<number>\d+)(?: of (?P<owner>[^()]*))?\)")
_CLANGS = re.compile(r"\(lambda at .*?:(\d+):(\d+)\)")
_FUNCTIONS = (CursorKind.FUNCTION_DECL, CursorKind.CXX_METHOD, CursorKind.CONSTRUCTOR)


def names_lambda(name: str) -> bool:
    """Whether a kernel's name has a lambda among its arguments, the first one of line 7: "k<(lambda at 7:0 of f)>"."""
    return _LAMBDA.search(name) is not None


@dataclass
class LaunchedLambdas:
    """What host code makes of kernel templates with lambdas.

    Parameters
    ----------
    kernels : list of Cursor
    owners : dict of Cursor to Cursor
        The function that each lambda's class is of.
    places : dict of (int, int) to int
        The line and column of each lambda, and which of its line it is.
    """

    kernels: list[Cursor] = field(default_factory=list)
    owners: dict[Cursor, Cursor] = field(default_factory=dict)
    places: dict[tuple[int, int], int] = field(default_factory=dict)

    @classmethod
    def of(cls, bodies: Iterable[Cursor]) -> LaunchedLambdas:
        """Follow all calls from functions that have bodies."""
        found = cls()
        columns: dict[int, set[int]] = {}
        for function in _reached(bodies):
            for inner in function.descendants():
                if inner.kind == CursorKind.LAMBDA_EXPR:
                    found.owners[inner.type.canonical.declaration] = function
                    columns.setdefault(inner.position.line, set()).add(inner.position.column)
                named = inner.referenced
                if named is None or named.kind != CursorKind.FUNCTION_DECL or not is_kernel(named):
                    continue
                if named.template is not None and named not in found.kernels:
                    found.kernels.append(named)
        for line, those in columns.items():
            found.places |= {(line, column): number for number, column in enumerate(sorted(those))}
        return found

    def kernel(self, name: str) -> Cursor | None:
        """Return the kernel of a name; None where there is none, or where several could be meant."""
        head, _, arguments = name.partition("<")
        short = head.rpartition("::")[2].strip()
        wanted = [(int(each["line"]), int(each["number"])) for each in _LAMBDA.finditer(name)]
        fitting = [
            each
            for each in self.kernels
            if each.spelling == short and sorted({*self._places(each)}) == sorted({*wanted})
        ]
        if len(fitting) > 1:
            scores = [self._likeness(each, arguments) for each in fitting]
            fitting = [each for each, score in zip(fitting, scores, strict=True) if score == max(scores)]
        return fitting[0] if len(fitting) == 1 else None

    def _places(self, kernel: Cursor) -> Iterator[tuple[int, int]]:
        for argument in kernel.template_arguments:
            for line, column in _CLANGS.findall(argument.text):
                yield int(line), self.places.get((int(line), int(column)), -1)

    def _likeness(self, kernel: Cursor, arguments: str) -> int:
        """Return how many of the other arguments, and of those of the functions around the lambdas, are the same."""
        rest, owned = _LAMBDA.sub("", arguments), ", ".join(each["owner"] or "" for each in _LAMBDA.finditer(arguments))
        score = 0
        for argument in kernel.template_arguments:
            if is_closure(argument.declaration):
                owner = self.owners.get(argument.declaration) if argument.declaration is not None else None
                inner = owner.template_arguments if owner is not None else ()
                score += sum(_stands_in(each.text, owned) for each in inner)
            else:
                score += _stands_in(argument.text, rest)
        return score


def _stands_in(text: str, arguments: str) -> bool:
    return re.search(rf"(?<![\w:]){re.escape(text)}(?![\w:])", arguments) is not None


def _reached(bodies: Iterable[Cursor]) -> Iterator[Cursor]:
    """Yield functions and all that they call, templates as they are instantiated."""
    done: set[Cursor] = set()
    ahead = [each for each in bodies if each.kind in _FUNCTIONS]
    while ahead:
        function = ahead.pop()
        if function in done or not is_own(function):
            continue
        done.add(function)
        yield function
        for inner in function.descendants():
            named = inner.referenced
            definition = named.definition if named is not None and named.kind in _FUNCTIONS else None
            if definition is not None and not is_kernel(definition):
                ahead.append(definition)
