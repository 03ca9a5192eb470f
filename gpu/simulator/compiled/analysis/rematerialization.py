"""Rematerialization: variables that are recomputed from the thread's number at each use instead of stored.

If `i = blockIdx.x * blockDim.x + threadIdx.x` were stored per thread, LLVM could not analyze the address of `data[i]`;
recomputed at each use, neighboring threads visibly access neighboring elements. The variable of a loop that all threads
step equally is such a value too: its start plus the block's progress.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Set
from typing import Any

from gpu.simulator import ir
from gpu.simulator.ir.walking import walk
from gpu.simulator.types import Pointer, is_integer

_CHANGES = (ir.Assign, ir.Update)
_MAXIMUM_SIZE = 60
_CHEAP = ("+", "-", "*", "&", "|", "^", "<<", ">>")


def find_changed_slots(nodes: list[Any]) -> frozenset[int]:
    """Return the variables that are assigned after their declaration, or declared without a value or repeatedly."""
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


def find_initial_values(nodes: list[Any]) -> dict[int, ir.Expression]:
    """Return the values of variables at their declaration."""
    return {node.slot: node.value for node in nodes if isinstance(node, ir.Declare) and node.value is not None}


def find_constant(expression: ir.Expression, values: Mapping[int, ir.Expression]) -> int | None:
    """Return the constant value of an integer expression; None if it is not known to be constant.

    Parameters
    ----------
    values : mapping of int to expression
        The values of variables that are assigned only once.
    """
    match expression:
        case ir.Const(type, number) if not type.is_float:
            return int(number)
        case ir.Local(_, slot, _) if slot in values:
            return find_constant(values[slot], values)
        case ir.Cast(target, operand) if is_integer(target) and is_integer(operand.type):
            return find_constant(operand, values)
        case ir.Binary(type, "*" | "/" as op, left, right) if is_integer(type):
            first, second = find_constant(left, values), find_constant(right, values)
            if first is None or second is None or first < 0 or second <= 0:
                return None
            result = first * second if op == "*" else first // second
            return result if result < 2**31 else None
    return None


class Assignments:
    """The assignments to the variables of a function.

    Parameters
    ----------
    nodes : list
        All nodes of its body.

    Attributes
    ----------
    nodes : list
    changed_slots : frozenset of int
        The variables that are assigned after their declaration.
    change_counts, use_counts : Counter of int
        The number of assignments to a variable after its declaration, and of its occurrences.
    initial_values : dict of int to expression
        The values of variables at their declaration.
    lasting_slots : dict of int to expression
        The values of variables that are assigned only at their declaration.
    loop_counters : dict of int to frozenset of int
        By variable, the counters of the loops that contain its declaration.
    """

    def __init__(self, function: ir.Function, nodes: list[Any]) -> None:
        self.nodes = nodes
        self.changed_slots = find_changed_slots(nodes)
        self.change_counts = Counter(
            node.place.slot for node in nodes if isinstance(node, _CHANGES) and isinstance(node.place, ir.Local)
        )
        self.use_counts = Counter(node.slot for node in nodes if isinstance(node, ir.Local))
        self.initial_values = find_initial_values(nodes)
        self.lasting_slots = {
            slot: value for slot, value in self.initial_values.items() if slot not in self.changed_slots
        }
        self.loop_counters = _find_loop_counters(nodes, self.change_counts)


class RematerializableVariables:
    """The rematerializable variables of one function.

    Parameters
    ----------
    varying : frozenset of int
        The variables that differ between threads.
    computed : frozenset of int
        The varying variables that are computed at each use, from a loop's start and the block's progress.
    """

    def __init__(
        self, assignments: Assignments, varying: frozenset[int], computed: frozenset[int] = frozenset()
    ) -> None:
        self._assignments = assignments
        self._varying = varying
        self._computed = computed
        self._can_compute: dict[int, bool] = {}
        self._sizes: dict[int, int] = {}

    def find_expression(self, slot: int) -> ir.Expression | None:
        """Return the expression that a varying variable always equals; None if the variable must be stored."""
        if slot not in self._can_compute:
            self._can_compute[slot] = False  # for a value that depends on itself
            value = self._assignments.lasting_slots.get(slot)
            steady = self._assignments.loop_counters.get(slot, frozenset())
            holds = value is not None and self.is_rematerializable(value, steady)
            self._sizes[slot] = self._size(value) if holds else 0
            self._can_compute[slot] = holds and self._sizes[slot] <= _MAXIMUM_SIZE
        return self._assignments.initial_values[slot] if self._can_compute[slot] else None

    def _size(self, expression: Any) -> int:
        if isinstance(expression, ir.Local):
            return self._sizes.get(expression.slot, 1)
        return 1 + sum(self._size(part) for part in vars(expression).values() if dataclasses.is_dataclass(part))

    def is_rematerializable(self, expression: ir.Expression, steady: Set[int] = frozenset()) -> bool:
        """Return whether an expression is cheap, and constant during the lifetime of its variables.

        `steady` are variables that change while the function runs, but not during the lifetime in question.
        """
        match expression:
            case ir.Const(type) | ir.Special(type):
                return not type.is_float
            case ir.Local(type, slot, _):
                if slot in self._varying:
                    return self.find_expression(slot) is not None or slot in self._computed & steady
                is_constant = slot not in self._assignments.changed_slots or slot in steady
                return is_constant and (isinstance(type, Pointer) or is_integer(type))
            case ir.Unary(type, "-" | "~", operand):
                return is_integer(type) and self.is_rematerializable(operand, steady)
            case ir.Binary(type, op, left, right) if is_integer(type) and op in _CHEAP:
                return self.is_rematerializable(left, steady) and self.is_rematerializable(right, steady)
            case ir.Binary(type, "/" | "%", left, right) if is_integer(type):
                divisor = find_constant(right, self._assignments.lasting_slots) or 0
                return (
                    divisor > 0
                    and divisor & (divisor - 1) == 0
                    and self.is_rematerializable(left, steady)
                    and self.is_rematerializable(right, steady)
                )
            case ir.Cast(target, operand):
                return is_integer(target) and is_integer(operand.type) and self.is_rematerializable(operand, steady)
            case ir.Offset(_, pointer, index):
                return self.is_rematerializable(pointer, steady) and self.is_rematerializable(index, steady)
            case ir.Member(_, pointer, _):
                return self.is_rematerializable(pointer, steady)
        return False


def _find_loop_counters(nodes: list[Any], change_counts: Mapping[int, int]) -> dict[int, frozenset[int]]:
    """Return by variable the counters of the loops that contain its declaration, if only the loops change them.

    They are constant during the variable's lifetime, because a loop's step runs after the end of the iteration's scope.
    """
    counters: dict[int, frozenset[int]] = {}
    for loop in nodes:
        match loop:
            case ir.Loop(step=ir.Update(_, ir.Local(_, slot, _)) | ir.Assign(_, ir.Local(_, slot, _))) if (
                change_counts[slot] == 1
            ):
                for node in walk(loop.body):
                    if isinstance(node, ir.Declare):
                        counters[node.slot] = counters.get(node.slot, frozenset()) | {slot}
    return counters
