"""Reads that are guesses: a loop repeats an atomic compare-and-swap until the value that it expects is there."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gpu.simulator.ir.nodes import (
    Assign,
    Atomic,
    Cast,
    Declare,
    Element,
    Expression,
    Function,
    Intrinsic,
    Load,
    Local,
    Loop,
)
from gpu.simulator.ir.walking import walk


def find_guesses(functions: Sequence[Function], deciding: Collection[int]) -> set[int]:
    """Return the identities of the places whose plain reads are guesses.

    `int old = *p; do { seen = old; old = atomicCAS(p, seen, seen + 1); } while (old != seen);` reads `*p` only for its
    first attempt. The CUDA C++ Programming Guide writes atomic functions this way. Hardware reads 64 bits at once, and
    if the value is out of date, the attempt fails.

    Parameters
    ----------
    deciding : collection of int
        The identities of the places of atomic operations whose results decide whether a loop ends.
    """
    return {place for function in functions for place in _find_function_guesses(function, deciding)}


def _find_function_guesses(function: Function, deciding: Collection[int]) -> set[int]:
    if not deciding:
        return set()
    values: list[tuple[int, Expression]] = []
    expected: set[int] = set()
    inner_loops: set[int] = set()
    for node in walk(function.body):
        match node:
            case Declare(slot, _, value) if value is not None:
                values.append((slot, _strip(value)))
            case Assign(_, Local(slot=slot), value):
                values.append((slot, _strip(value)))
            case Loop() if id(node) not in inner_loops:
                for inner in walk(node):
                    if isinstance(inner, Loop):
                        inner_loops.add(id(inner))
                    elif isinstance(inner, Atomic) and inner.op == "cas" and id(inner.place) in deciding:
                        compared = _strip(inner.arguments[0])
                        expected |= {compared.slot} if isinstance(compared, Local) else set()
    count = -1
    while count != len(expected):
        count = len(expected)
        expected |= {value.slot for slot, value in values if slot in expected and isinstance(value, Local)}
    return {
        id(value.place)
        for slot, value in values
        if slot in expected and isinstance(value, Load) and isinstance(value.place, Element)
    }


def _strip(value: Expression) -> Expression:
    """Return the expression that conversions are applied to, such as those of `__float_as_int`."""
    while isinstance(value, Cast) or (isinstance(value, Intrinsic) and len(value.arguments) == 1):
        value = value.operand if isinstance(value, Cast) else value.arguments[0]
    return value
