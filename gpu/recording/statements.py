"""The executed statements and functions of a trace, as trees that can be written to a file.

A tree contains the information for display: operators and names as in the source, constants as numbers, and the types
that determine the meaning of an operator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from gpu.base import nesting

nesting.raise_recursion_limit()

_Loops = tuple[int, ...]


@dataclass(frozen=True)
class Term:
    """An expression, or a part of one.

    Parameters
    ----------
    kind : str
        The kind of expression:

        - "constant", "variable", "global" (an array of the module) and "special" (such as threadIdx.x);
        - "unary", "binary", "logical", "choice", "comma" and "cast";
        - "function" (an intrinsic), "call", "warp" (a shuffle, a vote), "atomic" and "construct" (a value composed of
          several parts);
        - "place" (in memory: a pointer and, if it has one, an index), "member" (the address of one), "sum" and
          "difference" (of pointers), "temporary" (the address of a value);
        - "load", "part" (of a composed value), "assign" and "update";
        - "other", of which only the text is known.
    text : str
        The operator, or the name; "*" for a dereferenced pointer.
    type : str
        NumPy's name of the type: of the operands of a binary operator, of the computation of an update, else of the
        value. "" if it is not a scalar.
    parts : tuple of Term
        The subexpressions, in source order.
    value : number or None
        The value of a constant; for an update, 1 if it returns the old value; for a product, 1 if it is not rounded
        before the sum or difference that uses it; for a part, its index and its number of scalars; for a load, an
        assignment and a temporary value, the number of accesses.
    rows : tuple of int
        The lengths of all dimensions of an array except the first, for an index over several dimensions.
    """

    kind: str
    text: str = ""
    type: str = ""
    parts: tuple[Term, ...] = ()
    value: Any = None
    rows: tuple[int, ...] = ()


@dataclass(frozen=True)
class ExecutedStatement:
    """A statement in the source, or the step of a `for`.

    Parameters
    ----------
    text : str
        The source text of its expression, or of the value of an assignment; "" if unknown.
    name : str
        The variable that it declares, with a preceding "&" for a reference; "" if it declares none.
    type : str
        The type of that variable in C notation, with "@" in place of the name.
    terms : tuple of Term
        The expressions that it evaluates; for the declaration of an array, the value of each element.
    """

    text: str = ""
    name: str = ""
    type: str = ""
    terms: tuple[Term, ...] = ()


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
        return next((each.loops for each in self.statements if each.position == position), ())


def pack_statement(statement: ExecutedStatement) -> list[Any]:
    """Convert a statement to JSON-compatible lists."""
    return [statement.text, statement.name, statement.type, [_pack_term(term) for term in statement.terms]]


def unpack_statement(fields: list[Any]) -> ExecutedStatement:
    """Convert lists from `pack_statement` back to a statement."""
    text, name, type, terms = fields
    return ExecutedStatement(text, name, type, tuple(map(_unpack_term, terms)))


def _pack_term(term: Term) -> list[Any]:
    return [term.kind, term.text, term.type, [_pack_term(part) for part in term.parts], term.value, term.rows]


def _unpack_term(fields: list[Any]) -> Term:
    kind, text, type, parts, value, rows = fields
    return Term(kind, text, type, tuple(map(_unpack_term, parts)), value, tuple(rows))
