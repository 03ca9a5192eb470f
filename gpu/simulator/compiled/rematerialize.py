"""Which variables need no memory of each thread's own, since their value follows from the thread's number.

`i = blockIdx.x * blockDim.x + threadIdx.x` that is kept for each thread makes `data[i]` an access to anywhere; computed
again where it is used, neighboring threads access neighboring elements, and LLVM sees it. The variable of a loop that
all threads step by the same is such a value too: where it began, and how far the block has come.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Set
from typing import Any

from gpu.simulator import ir
from gpu.simulator.compiled.walking import walk
from gpu.simulator.types import BOOL, Pointer, Scalar

_LARGEST = 60
_CHEAP = ("+", "-", "*", "&", "|", "^", "<<", ">>")


def changed_slots(function: ir.Function, nodes: list[Any]) -> frozenset[int]:
    """Return the variables that are given a value other than when they come to life, or more than once."""
    declared: set[int] = set()
    changed: set[int] = set()
    for node in nodes:
        match node:
            case ir.Declare(slot, _, value):
                if slot in declared or value is None:
                    changed.add(slot)
                declared.add(slot)
            case ir.Assign(_, ir.Local(_, slot, _)) | ir.Update(_, ir.Local(_, slot, _)):
                changed.add(slot)
    return frozenset(changed)


def changes_of(slot: int, nodes: list[Any]) -> int:
    """Return in how many places a variable is given a value after it came to life."""
    return sum(
        isinstance(node, ir.Assign | ir.Update) and isinstance(node.place, ir.Local) and node.place.slot == slot
        for node in nodes
    )


def values_at_birth(nodes: list[Any]) -> dict[int, ir.Expression]:
    """Return what variables are given when they come to life."""
    return {node.slot: node.value for node in nodes if isinstance(node, ir.Declare) and node.value is not None}


def constant(expression: ir.Expression, values: Mapping[int, ir.Expression]) -> int | None:
    """Return the number that an expression always is, None where it is not known to be one.

    Parameters
    ----------
    expression : ir.Expression
    values : mapping of int to expression
        Those of variables that never get another one.
    """
    match expression:
        case ir.Const(type, known) if not type.is_float:
            return int(known)
        case ir.Local(_, slot, _) if slot in values:
            return constant(values[slot], values)
        case ir.Cast(target, operand) if _is_integer(target) and _is_integer(operand.type):
            return constant(operand, values)
        case ir.Binary(type, "*" | "/" as op, left, right) if _is_integer(type):
            first, second = constant(left, values), constant(right, values)
            if first is None or second is None or first < 0 or second <= 0:
                return None
            found = first * second if op == "*" else first // second
            return found if found < 2**31 else None
    return None


class Assignments:
    """Where the variables of a function get their values.

    Parameters
    ----------
    function : ir.Function
    nodes : list
        All nodes of its body.

    Attributes
    ----------
    nodes : list
    changed : frozenset of int
        The variables that get another value than at their birth.
    births : dict of int to expression
        What variables are given at their birth.
    lasting : dict of int to expression
        The values of variables that never get another one.
    counting : dict of int to frozenset of int
        By variable those that count the loops in whose bodies it comes to life.
    """

    def __init__(self, function: ir.Function, nodes: list[Any]) -> None:
        self.nodes = nodes
        self.changed = changed_slots(function, nodes)
        self.births = values_at_birth(nodes)
        self.lasting = {slot: value for slot, value in self.births.items() if slot not in self.changed}
        self.counting = _counting(nodes)


class Rematerializable:
    """What can be computed again, for one function.

    Parameters
    ----------
    assignments : Assignments
    varying : frozenset of int
        The variables that differ between threads.
    computed : frozenset of int
        Those of them that are computed wherever they are used, from where a loop began and how far the block is.
    """

    def __init__(
        self, assignments: Assignments, varying: frozenset[int], computed: frozenset[int] = frozenset()
    ) -> None:
        self._assignments = assignments
        self._varying = varying
        self._computed = computed
        self._known: dict[int, bool] = {}
        self._sizes: dict[int, int] = {}

    def value(self, slot: int) -> ir.Expression | None:
        """Return what a variable that differs between threads is always equal to, None where it must be kept."""
        if slot not in self._known:
            self._known[slot] = False  # of a value that needs itself
            value = self._assignments.lasting.get(slot)
            steady = self._assignments.counting.get(slot, frozenset())
            holds = value is not None and self.holds(value, steady)
            self._sizes[slot] = self._size(value) if holds else 0
            self._known[slot] = holds and self._sizes[slot] <= _LARGEST
        return self._assignments.births[slot] if self._known[slot] else None

    def _size(self, expression: Any) -> int:
        if isinstance(expression, ir.Local):
            return self._sizes.get(expression.slot, 1)
        return 1 + sum(self._size(part) for part in vars(expression).values() if dataclasses.is_dataclass(part))

    def holds(self, expression: ir.Expression, steady: Set[int] = frozenset()) -> bool:
        """Whether an expression has the same value for as long as its variables live, and little to compute.

        `steady` are variables that change while the function runs, but not while those live that are asked about.
        """
        match expression:
            case ir.Const(type) | ir.Special(type):
                return not type.is_float
            case ir.Local(type, slot, _):
                if slot in self._varying:
                    return self.value(slot) is not None or slot in self._computed & steady
                lasts = slot not in self._assignments.changed or slot in steady
                return lasts and (isinstance(type, Pointer) or _is_integer(type))
            case ir.Unary(type, "-" | "~", operand):
                return _is_integer(type) and self.holds(operand, steady)
            case ir.Binary(type, op, left, right) if _is_integer(type) and op in _CHEAP:
                return self.holds(left, steady) and self.holds(right, steady)
            case ir.Binary(type, "/" | "%", left, right) if _is_integer(type):
                by = constant(right, self._assignments.lasting) or 0
                return by > 0 and by & (by - 1) == 0 and self.holds(left, steady) and self.holds(right, steady)
            case ir.Cast(target, operand):
                return _is_integer(target) and _is_integer(operand.type) and self.holds(operand, steady)
            case ir.Offset(_, pointer, index):
                return self.holds(pointer, steady) and self.holds(index, steady)
            case ir.Member(_, pointer, _):
                return self.holds(pointer, steady)
        return False


def _counting(nodes: list[Any]) -> dict[int, frozenset[int]]:
    """Return by variable those that count the loops in whose bodies it comes to life, and that change nowhere else.

    While it lives they do not change: a loop takes its step when a round's own variables are gone.
    """
    found: dict[int, frozenset[int]] = {}
    for loop in nodes:
        match loop:
            case ir.Loop(step=ir.Update(_, ir.Local(_, slot, _)) | ir.Assign(_, ir.Local(_, slot, _))) if (
                changes_of(slot, nodes) == 1
            ):
                for node in walk(loop.body):
                    if isinstance(node, ir.Declare):
                        found[node.slot] = found.get(node.slot, frozenset()) | {slot}
    return found


def _is_integer(type: Any) -> bool:
    return isinstance(type, Scalar) and not type.is_float and type != BOOL
