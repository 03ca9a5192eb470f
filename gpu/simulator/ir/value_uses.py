"""What the values of strong reads decide: nothing but data, a branch or an address, or the end of a wait loop.

A thread that never tests a flag does not synchronize through it: in another execution it may read an earlier value, and
nothing makes it wait.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, get_args
from weakref import WeakKeyDictionary

from gpu.simulator.ir import nodes as ir
from gpu.simulator.ir.guesses import find_guesses
from gpu.simulator.ir.validated_reads import find_validated_reads
from gpu.simulator.ir.walking import Visitor, child_nodes
from gpu.simulator.types import Pointer

_EXPRESSIONS = frozenset(get_args(ir.Expression))


class ValueUse(IntEnum):
    """What the value of a read decides."""

    DATA = 0
    """Only values that the kernel stores in global memory, also by way of shared variables, or nothing."""
    ADDRESS = 1
    """An address, and no branch."""
    BRANCH = 2
    """A branch, or something unknown."""
    WAIT = 3
    """Whether a loop ends."""
    FLAG = 4
    """Of a write: the value of a flag, of which all reads are tested, or of a hint where to look."""
    VALIDATED = 5
    """Only something that counts while a flag is unchanged (`validated_reads.py`)."""


class ValueUses:
    """Determines the uses of the strong reads of kernels. Reads of unknown functions decide branches."""

    def __init__(self) -> None:
        self._uses: dict[int, ValueUse] = {}
        self._guesses: set[int] = set()
        self._kernels: list[ir.Function] = []

    def analyze_kernel(self, functions: Sequence[ir.Function]) -> None:
        """Determine the uses of the strong reads in a kernel and the functions that it calls; the kernel is first."""
        kernel = functions[0]
        self._kernels.append(kernel)  # keeps the nodes alive, whose identities are the keys
        if kernel not in _analyzed:
            _analyzed[kernel] = _find_uses_and_guesses(functions)
        uses, guesses = _analyzed[kernel]
        self._uses |= uses
        self._guesses |= guesses

    def find_use(self, place: ir.Element) -> ValueUse:
        """Return the use of the value that is read at a place."""
        return self._uses.get(id(place), ValueUse.BRANCH)

    def is_guess(self, place: ir.Element) -> bool:
        """Return whether a plain read is a guess, which a loop with an atomic compare-and-swap corrects."""
        return id(place) in self._guesses


# The exchanges whose results consist of the values of other lanes, their second argument.
_VALUE_EXCHANGES = ("__shfl", "__reduce")


def _find_uses_and_guesses(functions: Sequence[ir.Function]) -> tuple[dict[int, ValueUse], set[int]]:
    uses = _KernelUses(functions).find_uses()
    validated = find_validated_reads(functions)
    uses |= dict.fromkeys(validated.valid, ValueUse.VALIDATED) | dict.fromkeys(validated.invalid, ValueUse.DATA)
    return uses, find_guesses(functions, {place for place, use in uses.items() if use >= ValueUse.WAIT})


_analyzed: WeakKeyDictionary[ir.Function, tuple[dict[int, ValueUse], set[int]]] = WeakKeyDictionary()
"""Results of kernels, by the identity of the reads: a first launch asks for them four times."""


@dataclass
class _FunctionUses:
    """What the values of a function decide, in all of its calls together.

    Parameters
    ----------
    result : ValueUse
        The use of the value that it returns.
    slots : dict of int to ValueUse
        The uses of its variables; a parameter's is that of the argument.
    other_pointers : set of int
        Its variables that may point to other memory than global memory.
    shared : dict of int to ValueUse
        The uses of the values in its shared variables that are accessed by their names alone.
    """

    result: ValueUse = ValueUse.DATA
    slots: dict[int, ValueUse] = field(default_factory=dict)
    other_pointers: set[int] = field(default_factory=set)
    shared: dict[int, ValueUse] = field(default_factory=dict)


class _KernelUses(Visitor):
    """Follows the values of strong reads through the variables, arguments and results of a kernel's functions.

    `use` is the use of an expression's value.
    """

    def __init__(self, functions: Sequence[ir.Function]) -> None:
        self._functions = functions
        self._uses: dict[int, ValueUse] = {}
        self._of_function = {id(function): _FunctionUses() for function in functions}
        for function in functions:
            slots = {shared.slot for shared in function.shared}
            self._of_function[id(function)].other_pointers |= slots
            self._of_function[id(function)].shared = dict.fromkeys(slots, ValueUse.DATA)
        self._loops = 0
        self._has_changed = True
        # The places of reads and writes, by the variable or parameter through which they go.
        self._read_places: defaultdict[Hashable, set[int]] = defaultdict(set)
        self._written_places: defaultdict[Hashable, set[int]] = defaultdict(set)

    def find_uses(self) -> dict[int, ValueUse]:
        """Return the use of each strong read, by the identity of its place, and the places of flags that are written.

        A place is that of a flag if all reads through the same pointer variable are tested, some of them by loops, and
        that of a hint if all of them decide addresses only.
        """
        # A variable's use depends on statements that may come before or after its assignment, and on other functions.
        while self._has_changed:
            self._has_changed = False
            for function in self._functions:
                self._current = self._of_function[id(function)]
                self._statement(function.body)
        for variable, places in self._written_places.items():
            uses = [self._uses[place] for place in self._read_places[variable]]
            is_flag = ValueUse.WAIT in uses and ValueUse.DATA not in uses
            if variable is not None and (is_flag or set(uses) == {ValueUse.ADDRESS}):
                self._uses |= dict.fromkeys(places, ValueUse.FLAG)
        return self._uses

    def _statement(self, statement: ir.Statement | None) -> None:
        match statement:
            case ir.Evaluate(expression):
                self.visit(expression, ValueUse.DATA)
            case ir.Declare(slot, _, value) if value is not None:
                self._assign(self._current, slot, value, ValueUse.DATA)
            case ir.DeclareMemory(slot, _, values):
                self._note_other_pointer(self._current, slot)
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
                self.visit(value, self._current.result)

    def _assign(self, owner: _FunctionUses, slot: int, value: ir.Expression, use: ValueUse) -> None:
        """Visit a value that a variable of a function receives; `use` is another use of it."""
        self.visit(value, max(use, owner.slots.get(slot, ValueUse.DATA)))
        if isinstance(value.type, Pointer) and not self._is_global(value):
            self._note_other_pointer(owner, slot)

    def _note_other_pointer(self, owner: _FunctionUses, slot: int) -> None:
        if slot not in owner.other_pointers:
            owner.other_pointers.add(slot)
            self._has_changed = True

    def _raise_slot(self, slot: int, use: ValueUse) -> ValueUse:
        """Raise the use of a variable, and return it."""
        known = self._current.slots.get(slot, ValueUse.DATA)
        if use > known:
            self._current.slots[slot] = use
            self._has_changed = True
        return max(use, known)

    def _raise_shared(self, slot: int, use: ValueUse) -> None:
        """Raise the use of the values in a shared variable; other variables are ignored."""
        if use > self._current.shared.get(slot, ValueUse.FLAG):
            self._current.shared[slot] = use
            self._has_changed = True

    def _raise_result(self, function: ir.Function, use: ValueUse) -> None:
        called = self._of_function.get(id(function))
        if called is not None and use > called.result:
            called.result = use
            self._has_changed = True

    def visit_local(self, node: ir.Local, use: ValueUse) -> None:
        self._raise_slot(node.slot, use)
        self._raise_shared(node.slot, ValueUse.BRANCH)  # its address may be stored anywhere

    def visit_call(self, node: ir.Call, use: ValueUse) -> None:
        called = self._of_function.get(id(node.function))
        if called is None:
            self.visit_other(node, use)
            return
        self._raise_result(node.function, use)
        for slot, argument in enumerate(node.arguments):
            self._assign(called, slot, argument, ValueUse.DATA)

    def visit_indirect_call(self, node: ir.IndirectCall, use: ValueUse) -> None:
        for function in node.functions.values():
            self._raise_result(function, max(use, ValueUse.BRANCH))
            if called := self._of_function.get(id(function)):
                for slot in range(len(function.parameters)):
                    self._note_other_pointer(called, slot)
        self.visit_other(node, use)

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

    def visit_warp(self, node: ir.Warp, use: ValueUse) -> None:
        if not node.op.startswith(_VALUE_EXCHANGES):
            self.visit_other(node, use)
            return
        mask, value, *lanes = node.arguments
        self.visit(value, use)
        for argument in (mask, *lanes):
            self.visit(argument, ValueUse.BRANCH)

    def visit_load(self, node: ir.Load, use: ValueUse) -> None:
        self._read(node.place, use)

    def visit_atomic(self, node: ir.Atomic, use: ValueUse) -> None:
        self._read(node.place, use)
        for argument in node.arguments:
            self.visit(argument, ValueUse.DATA)

    def visit_assign(self, node: ir.Assign, use: ValueUse) -> None:
        if isinstance(node.place, ir.Local):
            self._assign(self._current, node.place.slot, node.value, use)
        else:
            self._written_places[self._find_variable(node.place)].add(id(node.place))
            self._address(node.place)
            self.visit(node.value, max(use, self._use_in_memory(node.place)))

    def visit_update(self, node: ir.Update, use: ValueUse) -> None:
        if isinstance(node.place, ir.Local):
            use = self._raise_slot(node.place.slot, use)
        else:
            use = max(use, self._use_in_memory(node.place))
            self._read(node.place, use)
        self.visit(node.value, use)

    def visit_other(self, node: Any, use: ValueUse) -> None:
        """Treat the operands of all other expressions as deciding a branch."""
        use = max(use, ValueUse.BRANCH)
        for inner in child_nodes(node):
            if type(inner) in _EXPRESSIONS:
                self.visit(inner, use)

    def _read(self, place: ir.Element, use: ValueUse) -> None:
        self._uses[id(place)] = max(use, self._uses.get(id(place), ValueUse.DATA))
        self._read_places[self._find_variable(place)].add(id(place))
        if isinstance(place.pointer, ir.Local):
            self._raise_shared(place.pointer.slot, use)
        self._address(place)

    def _address(self, place: ir.Element) -> None:
        if not (isinstance(place.pointer, ir.Local) and place.pointer.slot in self._current.shared):
            self.visit(place.pointer, ValueUse.ADDRESS)
        if place.index is not None:
            self.visit(place.index, ValueUse.ADDRESS)

    def _use_in_memory(self, place: ir.Element) -> ValueUse:
        """Return the use of a value stored at a place: in global memory, it is data."""
        if isinstance(place.pointer, ir.Local) and place.pointer.slot in self._current.shared:
            return self._current.shared[place.pointer.slot]
        return ValueUse.DATA if self._is_global(place.pointer) else ValueUse.BRANCH

    def _find_variable(self, place: ir.Element) -> Hashable:
        """Return what identifies the variable or parameter through which a place is accessed, or None."""
        match _find_root(place.pointer):
            case ir.Local(slot=slot):
                return id(self._current), slot
            case ir.Global(name=name):
                return name
        return None

    def _is_global(self, pointer: ir.Expression) -> bool:
        """Return whether an expression, if it is a pointer, points to global memory."""
        pointer = _find_root(pointer)
        return isinstance(pointer, ir.Global) or (
            isinstance(pointer, ir.Local) and pointer.slot not in self._current.other_pointers
        )


def _find_root(pointer: ir.Expression) -> ir.Expression:
    """Return the expression of which a pointer is an offset, a member or a cast."""
    while isinstance(pointer, ir.Offset | ir.Member | ir.Cast):
        pointer = pointer.operand if isinstance(pointer, ir.Cast) else pointer.pointer
    return pointer


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
