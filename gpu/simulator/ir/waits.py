"""Loops in which threads wait for other threads: how they test memory, and how they may end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from gpu.simulator.ir import nodes as ir
from gpu.simulator.ir.walking import child_nodes, find_reachable_functions, walk

MAX_REPETITIONS = 1000
"""Iterations of a loop that repeats itself, after which it ends the launch."""

_REGISTER_NODES = (ir.Const, ir.Null, ir.Local, ir.Special, ir.Unary, ir.Binary, ir.Logical, ir.Select, ir.Cast)
_PURE_NODES = (
    *(ir.Const, ir.Null, ir.Local, ir.Global, ir.Special, ir.Unary, ir.Binary, ir.Logical, ir.Select, ir.Cast),
    *(ir.SharedAddress, ir.Offset, ir.Member, ir.Distance, ir.Element, ir.Load, ir.Fence),
    *(ir.Block, ir.If, ir.Declare, ir.Evaluate, ir.Jump, ir.Return),
)
_ENDLESS_NODES = (*_PURE_NODES, ir.Assign, ir.Update, ir.Atomic, ir.Loop)


def has_wait_loop(statement: ir.Statement) -> bool:
    """Return whether a statement contains a loop that waits for another thread.

    Such a loop tests memory with an atomic operation, has a body without effects, or repeats the same iteration until
    memory changes.
    """
    match statement:
        case ir.Loop(condition, _, body):
            return (
                _reads_memory(condition, atomics_only=not _is_empty(body))
                or _only_polls(statement)
                or has_wait_loop(body)
            )
        case ir.Block(statements):
            return any(map(has_wait_loop, statements))
        case ir.If(_, then, orelse):
            return has_wait_loop(then) or (orelse is not None and has_wait_loop(orelse))
        case ir.Switch(_, sections):
            return any(has_wait_loop(section.body) for section in sections)
    return False


def repeats_itself(loop: ir.Loop) -> bool:
    """Return whether all iterations of a loop are the same, unless another thread changes memory.

    It is then endless where no other thread runs during the loop: in lockstep, and in machine code, which runs the
    blocks of kernels with such loops in order.
    """
    return has_wait_loop(loop) and _is_repetition(loop) and not any(map(_tests_phase, walk(loop)))


def only_tests_phases(loop: ir.Loop) -> bool:
    """Return whether all iterations of a loop are the same, unless an mbarrier changes."""
    return _is_repetition(loop) and any(map(_tests_phase, walk(loop))) and not reads_strongly(loop)


def classify_wait(loop: ir.Loop) -> Literal["repeats", "counts", "other"]:
    """Return how a loop may end whose threads change no memory: never, or once it has counted its iterations."""
    if repeats_itself(loop):
        return "repeats"
    counts = loop.step is not None or any(
        isinstance(node, ir.Update | ir.Assign)
        and isinstance(node.place, ir.Local)
        and (isinstance(node, ir.Update) or any(each == node.place for each in walk(node.value)))
        for node in walk(loop)
    )
    return "counts" if counts else "other"


def never_ends(loop: ir.Loop) -> bool:
    """Return whether no thread can end a loop: its condition reads no memory and nothing that the loop changes."""
    nodes = list(walk(loop))
    targets = (node.place for node in nodes if isinstance(node, ir.Assign | ir.Update))
    assigned = {target.slot for target in targets if isinstance(target, ir.Local)}
    assigned |= {node.slot for node in nodes if isinstance(node, ir.Declare)}
    return (
        all(isinstance(node, _ENDLESS_NODES) for node in nodes)
        and not any(
            isinstance(node, ir.Return) or (isinstance(node, ir.Jump) and node.kind == "break") for node in nodes
        )
        and (
            loop.condition is None
            or all(
                isinstance(node, _REGISTER_NODES) and not (isinstance(node, ir.Local) and node.slot in assigned)
                for node in walk(loop.condition)
            )
        )
    )


def has_strong_loop(statement: ir.Statement) -> bool:
    """Return whether a statement contains a loop in which lanes may wait."""
    return any(map(reads_strongly, find_outermost_loops(statement)))


def reads_strongly(loop: ir.Loop) -> bool:
    """Return whether a loop reads memory by atomic or volatile accesses, so that lanes may wait in it."""
    return any(map(_is_strong_read, walk_with_calls(loop)))


def only_counts_iterations(loop: ir.Loop, slot: int) -> bool:
    """Return whether a loop waits for memory to change, and its variable `slot` affects no accesses and no calls."""
    flags: set[int] = set()
    for node in walk(loop):
        match node:
            case ir.Declare(slot, _, value) | ir.Assign(_, ir.Local(_, slot), value) if _has_strong_read(value):
                flags.add(slot)
    conditions = [loop.condition, *(node.condition for node in walk(loop.body) if isinstance(node, ir.If))]
    tests_memory = any(
        _has_strong_read(condition)
        or any(isinstance(node, ir.Local) and node.slot in flags for node in walk(condition))
        for condition in conditions
    )
    return tests_memory and not any(
        isinstance(node, ir.Element | ir.Offset | ir.Atomic | ir.Call | ir.IndirectCall) and _reads_slot(node, slot)
        for node in walk(loop)
    )


def find_compared_constants(loop: ir.Loop, slot: int) -> set[int]:
    """Return 0 and the constants that a loop compares for equality with expressions of its variable `slot`."""
    sides = [
        (node.left, node.right)
        for node in walk(loop)
        if isinstance(node, ir.Binary) and node.op in ("==", "!=") and _reads_slot(node, slot)
    ]
    constants = (node.value for pair in sides for side in pair for node in walk(side) if isinstance(node, ir.Const))
    return {0, *(int(value) for value in constants if value.dtype.kind in "iu")}


def adds_zero(node: ir.Atomic) -> bool:
    """Return whether an atomic operation only reads."""
    return node.op == "add" and all(isinstance(each, ir.Const) and each.value == 0 for each in node.arguments)


def find_outermost_loops(statement: ir.Statement) -> Iterator[ir.Loop]:
    """Yield the loops that no other loop contains: one that does not wait has no inner loop that waits."""
    pending = [statement]
    while pending:
        each = pending.pop()
        if isinstance(each, ir.Loop):
            yield each
        else:
            pending += child_nodes(each)


def walk_with_calls(statement: ir.Statement) -> Iterator[object]:
    """Yield the nodes of a statement, and those of all functions that it calls."""
    for node in walk(statement):
        yield node
        if isinstance(node, ir.Call):
            for called in find_reachable_functions(node.function):
                yield from walk(called.body)


def _is_repetition(loop: ir.Loop) -> bool:
    return (
        loop.step is None
        and _is_repeatable(loop.body, _find_assigned_slots(loop.body), set())
        and (loop.condition is None or _is_invariant(loop.condition, frozenset()))
        and all(
            node is loop or isinstance(node, _PURE_NODES) or _is_idempotent(node) or _is_pure_call(node)
            for node in walk(loop)
        )
    )


def _tests_phase(node: object) -> bool:
    """Return whether a node tests the phase of an mbarrier, or calls a function that does nothing else."""
    if isinstance(node, ir.Call):
        nodes = list(walk(node.function.body))
        return any(map(_tests_phase, nodes)) and all(
            isinstance(each, _PURE_NODES) or _tests_phase(each) for each in nodes
        )
    return isinstance(node, ir.BarrierPhase) and node.op == "test"


def _is_pure_call(node: object) -> bool:
    """Return whether a node calls a function that only computes, such as an address from its arguments."""
    return isinstance(node, ir.Call) and all(isinstance(each, _PURE_NODES) for each in walk(node.function.body))


def _is_idempotent(node: object) -> bool:
    """Return whether repeating a node with the same operands changes no memory after the first time."""
    if isinstance(node, ir.Assign):
        return isinstance(node.place, ir.Local)
    if _tests_phase(node):
        return True
    if not isinstance(node, ir.Atomic):
        return False
    return adds_zero(node) or node.op in ("cas", "exch", "and", "or", "min", "max")


def _only_polls(loop: ir.Loop) -> bool:
    """Return whether a loop only loads from the same addresses in each iteration and tests the loaded values."""
    return (
        loop.step is None
        and _is_repeatable(loop.body, _find_assigned_slots(loop.body), set())
        and _is_invariant(loop.condition, frozenset())
        and _reads_memory(loop.body, atomics_only=False)
    )


def _is_repeatable(statement: ir.Statement, assigned: frozenset[int], current: set[int]) -> bool:
    """Return whether a statement does the same in each iteration unless memory changes.

    `assigned` are the variables that the loop's body assigns, `current` those that this iteration has assigned already.
    """
    match statement:
        case ir.Block(statements):
            return all(_is_repeatable(each, assigned, current) for each in statements)
        case ir.Declare(slot, _, value) | ir.Evaluate(ir.Assign(_, ir.Local(_, slot), value)):
            current.add(slot)
            return _is_invariant(value, assigned - current)
        case ir.Evaluate(ir.Fence() | ir.Const()) | ir.Jump() | ir.Return():
            return True
        case ir.If(condition, then, orelse):
            return _is_invariant(condition, assigned - current) and all(
                _is_repeatable(each, assigned, set(current)) for each in (then, orelse) if each is not None
            )
    return False


def _find_assigned_slots(statement: ir.Statement) -> frozenset[int]:
    """Return the variables that a statement assigns to."""
    match statement:
        case ir.Block(statements):
            return frozenset().union(*map(_find_assigned_slots, statements))
        case ir.Evaluate(ir.Assign(_, ir.Local(_, slot))):
            return frozenset((slot,))
        case ir.If(_, then, orelse):
            return _find_assigned_slots(then) | (_find_assigned_slots(orelse) if orelse is not None else frozenset())
    return frozenset()


def _is_invariant(expression: object, changing: frozenset[int]) -> bool:
    """Return whether an expression assigns no variable and reads none of `changing`."""
    return not any(
        (
            isinstance(node, ir.Assign | ir.Update | ir.Call | ir.IndirectCall)
            and not _tests_phase(node)
            and not _is_pure_call(node)
        )
        or (isinstance(node, ir.Local) and node.slot in changing)
        for node in walk(expression)
    )


def _is_empty(statement: ir.Statement) -> bool:
    """Return whether a statement does nothing but wait, such as by `__nanosleep`."""
    match statement:
        case ir.Block(statements):
            return all(map(_is_empty, statements))
        case ir.Evaluate(ir.Fence()):
            return True
    return False


def _reads_memory(expression: object, *, atomics_only: bool) -> bool:
    """Return whether an expression reads memory, or calls a function with an atomic or volatile read."""
    return any(
        isinstance(node, ir.Atomic)
        or (isinstance(node, ir.Load) and not atomics_only)
        or (
            isinstance(node, ir.Call)
            and any(_has_strong_read(called.body) for called in find_reachable_functions(node.function))
        )
        for node in walk(expression)
    )


def _reads_slot(expression: object, slot: int) -> bool:
    return any(isinstance(node, ir.Local) and node.slot == slot for node in walk(expression))


def _has_strong_read(statement: object) -> bool:
    return any(map(_is_strong_read, walk(statement)))


def _is_strong_read(node: object) -> bool:
    return isinstance(node, ir.Atomic) or (isinstance(node, ir.Element) and node.volatile)
