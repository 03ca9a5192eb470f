"""What the values of strong reads decide: nothing but data, a branch or an address, or the end of a wait loop.

A thread that never tests a flag does not synchronize through it: in another execution it may read an earlier value, and
nothing makes it wait.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from gpu.simulator.ir import nodes as ir
from gpu.simulator.ir.walking import Visitor


class ValueUse(IntEnum):
    """What the value of a read decides."""

    DATA = 0
    """Only values that the kernel stores in global memory, or nothing."""
    BRANCH = 1
    """A branch, an address, or something unknown."""
    WAIT = 2
    """Whether a loop ends."""


class ValueUses:
    """Determines the uses of strong reads, function by function. Reads of unknown functions decide branches."""

    def __init__(self) -> None:
        self._uses: dict[int, ValueUse] = {}
        self._functions: list[ir.Function] = []

    def analyze_function(self, function: ir.Function, *, is_kernel: bool) -> None:
        """Determine the uses of the strong reads in a function."""
        self._functions.append(function)  # keeps the nodes alive, whose identities are the keys
        self._uses |= _FunctionUses(function, is_kernel=is_kernel).find_uses()

    def find_use(self, place: ir.Element) -> ValueUse:
        """Return the use of the value that is read at a place."""
        return self._uses.get(id(place), ValueUse.BRANCH)


class _FunctionUses(Visitor):
    """Follows the values of strong reads through a function's variables. `use` is the use of an expression's value."""

    def __init__(self, function: ir.Function, *, is_kernel: bool) -> None:
        self._function = function
        self._parameter_count = len(function.parameters) if is_kernel else 0
        self._uses: dict[int, ValueUse] = {}
        self._slot_uses: dict[int, ValueUse] = {}
        self._loops = 0

    def find_uses(self) -> dict[int, ValueUse]:
        """Return the use of each strong read, by the identity of its place."""
        # A variable's use depends on statements that may come before or after its assignment.
        while True:
            before = dict(self._slot_uses)
            self._statement(self._function.body)
            if self._slot_uses == before:
                return self._uses

    def _statement(self, statement: ir.Statement | None) -> None:
        match statement:
            case ir.Evaluate(expression):
                self.visit(expression, ValueUse.DATA)
            case ir.Declare(slot, _, value) if value is not None:
                self.visit(value, self._use_of_slot(slot))
            case ir.DeclareMemory(_, _, values):
                for _, value in values:
                    self.visit(value, ValueUse.BRANCH)
            case ir.Block(statements):
                for each in statements:
                    self._statement(each)
            case ir.If(condition, then, orelse):
                leaves = self._loops and (_leaves_loop(then) or _leaves_loop(orelse))
                self.visit(condition, ValueUse.WAIT if leaves else ValueUse.BRANCH)
                self._statement(then)
                self._statement(orelse)
            case ir.Loop(condition, step, body):
                self._loops += 1
                if condition is not None:
                    self.visit(condition, ValueUse.WAIT)
                if step is not None:
                    self.visit(step, ValueUse.DATA)
                self._statement(body)
                self._loops -= 1
            case ir.Switch(value, sections):
                self.visit(value, ValueUse.BRANCH)
                for section in sections:
                    self._statement(section.body)
            case ir.Return(value) if value is not None:
                self.visit(value, ValueUse.BRANCH)

    def _use_of_slot(self, slot: int) -> ValueUse:
        return self._slot_uses.get(slot, ValueUse.DATA)

    def visit_local(self, node: ir.Local, use: ValueUse) -> None:
        self._slot_uses[node.slot] = max(use, self._use_of_slot(node.slot))

    def visit_unary(self, node: ir.Unary, use: ValueUse) -> None:
        self.visit(node.operand, use)

    def visit_cast(self, node: ir.Cast, use: ValueUse) -> None:
        self.visit(node.operand, use)

    def visit_binary(self, node: ir.Binary, use: ValueUse) -> None:
        self.visit(node.left, use)
        self.visit(node.right, use)

    def visit_logical(self, node: ir.Logical, use: ValueUse) -> None:
        self.visit(node.left, max(use, ValueUse.BRANCH))
        self.visit(node.right, use)

    def visit_select(self, node: ir.Select, use: ValueUse) -> None:
        self.visit(node.condition, max(use, ValueUse.BRANCH))
        self.visit(node.chosen, use)
        self.visit(node.other, use)

    def visit_sequence(self, node: ir.Sequence, use: ValueUse) -> None:
        self.visit(node.first, ValueUse.DATA)
        self.visit(node.second, use)

    def visit_intrinsic(self, node: ir.Intrinsic, use: ValueUse) -> None:
        for argument in node.arguments:
            self.visit(argument, use)

    def visit_load(self, node: ir.Load, use: ValueUse) -> None:
        self._read(node.place, use)

    def visit_atomic(self, node: ir.Atomic, use: ValueUse) -> None:
        self._read(node.place, use)
        for argument in node.arguments:
            self.visit(argument, ValueUse.DATA)

    def visit_assign(self, node: ir.Assign, use: ValueUse) -> None:
        if isinstance(node.place, ir.Local):
            self.visit(node.value, max(use, self._use_of_slot(node.place.slot)))
        else:
            self._address(node.place)
            self.visit(node.value, max(use, self._use_in_memory(node.place)))

    def visit_update(self, node: ir.Update, use: ValueUse) -> None:
        if isinstance(node.place, ir.Local):
            use = max(use, self._use_of_slot(node.place.slot))
            self._slot_uses[node.place.slot] = use
        else:
            use = max(use, self._use_in_memory(node.place))
            self._read(node.place, use)
        self.visit(node.value, use)

    def visit_other(self, node: Any, use: ValueUse) -> None:
        """Treat the operands of all other expressions as deciding a branch."""
        for part in vars(node).values() if hasattr(node, "__dataclass_fields__") else ():
            for inner in part if isinstance(part, tuple) else (part,):
                if isinstance(inner, ir.Expression):
                    self.visit(inner, max(use, ValueUse.BRANCH))

    def _read(self, place: ir.Element, use: ValueUse) -> None:
        self._uses[id(place)] = max(use, self._uses.get(id(place), ValueUse.DATA))
        self._address(place)

    def _address(self, place: ir.Element) -> None:
        self.visit(place.pointer, ValueUse.BRANCH)
        if place.index is not None:
            self.visit(place.index, ValueUse.BRANCH)

    def _use_in_memory(self, place: ir.Element) -> ValueUse:
        """Return the use of a value stored at a place: in global memory, it is data."""
        pointer = place.pointer
        while isinstance(pointer, ir.Offset | ir.Member | ir.Cast):
            pointer = pointer.operand if isinstance(pointer, ir.Cast) else pointer.pointer
        is_global = isinstance(pointer, ir.Global) or (
            isinstance(pointer, ir.Local) and pointer.slot < self._parameter_count
        )
        return ValueUse.DATA if is_global else ValueUse.BRANCH


def _leaves_loop(statement: ir.Statement | None) -> bool:
    """Return whether a statement leaves the innermost loop or the function."""
    match statement:
        case ir.Jump("break") | ir.Return():
            return True
        case ir.Block(statements):
            return any(map(_leaves_loop, statements))
        case ir.If(_, then, orelse):
            return _leaves_loop(then) or _leaves_loop(orelse)
    return False
