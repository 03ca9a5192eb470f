"""A kernel divided at the points where its threads wait for each other, and queries on such a plan.

Between two such points the threads of a block are independent, so the statements between them, a *region*, can run as a
loop over the threads. Loops and branches around a barrier run once per block, with a mask if threads disagree. A loop
in which all threads do the same is planned this way even without a barrier inside: the loop over the threads is then
the inner one, which LLVM vectorizes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from gpu.base.errors import SourcePosition
from gpu.simulator import ir
from gpu.simulator.ir.walking import cache_query, child_nodes, walk
from gpu.simulator.types import Type


@dataclass(eq=False)
class PlannedFrame:
    """The variables of a function in the plan: the kernel's, or those of an inlined function that waits."""

    path: str
    function: ir.Function
    slots: int
    added_slots: dict[int, Type] = field(default_factory=dict)
    result: tuple[PlannedFrame, int, Type] | None = None
    """The caller's variable for the value of returns before the function's end."""

    def new_slot(self, type: Type) -> int:
        """Return a new variable that the plan itself needs."""
        self.slots += 1
        self.added_slots[self.slots - 1] = type
        return self.slots - 1


@dataclass(frozen=True)
class Bind:
    """The initialization of an inlined function's parameter with a value of the caller."""

    frame: PlannedFrame
    slot: int
    type: Type
    value: ir.Expression


@dataclass(eq=False)
class Region:
    """Statements that each thread runs independently, each with the frame of its variables."""

    statements: list[tuple[PlannedFrame, ir.Statement | Bind]] = field(default_factory=list)


@dataclass(frozen=True)
class UniformAssignment:
    """A statement that assigns the same value to a variable in all threads."""

    frame: PlannedFrame
    statement: ir.Statement | Bind


@dataclass(frozen=True, eq=False)
class Exchange:
    """An exchange between the lanes of a warp, or a block's vote; the result is assigned to a variable."""

    frame: PlannedFrame
    slot: int
    expression: ir.Warp
    uniform_arguments: tuple[bool, ...]
    """Whether each argument is the same for all threads."""


@dataclass(frozen=True, eq=False)
class PhaseTest:
    """A test whether a phase of a barrier in memory is complete; the result is assigned to a variable."""

    frame: PlannedFrame
    slot: int
    expression: ir.BarrierPhase


@dataclass(frozen=True)
class BlockBarrier:
    """A barrier at which a warp waits for the others of its block."""

    position: SourcePosition


@dataclass(frozen=True)
class ClusterBarrierStep:
    """An arrival of a warp at its cluster's barrier, or the wait there for the other warps."""

    barrier: ir.ClusterBarrier


@dataclass(frozen=True)
class PlannedIf:
    """A branch around regions; if threads disagree, each side runs under a mask."""

    frame: PlannedFrame
    condition: ir.Expression
    is_uniform: bool
    then: Plan
    orelse: Plan | None


@dataclass(frozen=True)
class PlannedLoop:
    """A loop around regions. `condition_plan` is the plan of the exchanges in the condition.

    `repetition` is the position of a loop that repeats itself (`repeats_itself`), None for all others.
    """

    frame: PlannedFrame
    condition_plan: Plan
    condition: ir.Expression | None
    is_uniform: bool
    body: Plan
    step: Plan
    tests_first: bool
    repetition: SourcePosition | None = None


@dataclass(frozen=True)
class PlannedCall:
    """The body of an inlined function with early returns; the return values are in `frame.result`."""

    frame: PlannedFrame
    body: Plan


Item = (
    Region
    | UniformAssignment
    | Exchange
    | PhaseTest
    | BlockBarrier
    | ClusterBarrierStep
    | PlannedIf
    | PlannedLoop
    | PlannedCall
)
Plan = list[Item]


VariableKey = tuple[str, int]


def variables_by_item(items: Plan) -> Iterator[set[VariableKey]]:
    """Yield the variables of each item; a variable used in two items outlives both."""
    for item in items:
        match item:
            case Region(statements):
                yield {key for frame, statement in statements for key in used_variables(frame, statement)}
            case UniformAssignment(frame, statement):
                yield set(used_variables(frame, statement))
            case Exchange(frame, slot, expression) | PhaseTest(frame, slot, expression):
                yield set(used_variables(frame, expression))
                yield {(frame.path, slot)}
                yield set()
            case PlannedIf(frame, condition, _, then, orelse):
                yield set(used_variables(frame, condition))
                yield from variables_by_item(then)
                yield from variables_by_item(orelse or [])
            case PlannedLoop(frame, before, condition, _, body, step):
                yield from variables_by_item(before)
                if condition is not None:
                    yield set(used_variables(frame, condition))
                yield from variables_by_item(body)
                yield from variables_by_item(step)
            case PlannedCall(_, body):
                yield from variables_by_item(body)


def _inner_items(item: Item) -> Plan:
    """Return the items that an item contains, in order."""
    match item:
        case PlannedIf(_, _, _, then, orelse):
            return [*then, *(orelse or [])]
        case PlannedLoop(_, before, _, _, body, step):
            return [*before, *body, *step]
        case PlannedCall(_, body):
            return body
    return []


def find_bindings(items: Plan) -> Iterator[tuple[PlannedFrame, Bind]]:
    """Yield the initializations of parameters of inlined functions, each with the caller's frame."""
    for item in items:
        match item:
            case Region(statements):
                yield from ((frame, statement) for frame, statement in statements if isinstance(statement, Bind))
            case UniformAssignment(frame, Bind() as bind):
                yield frame, bind
            case _:
                yield from find_bindings(_inner_items(item))


def used_variables(frame: PlannedFrame, node: object) -> Iterator[VariableKey]:
    """Yield the variables that a node uses."""
    if isinstance(node, Bind):
        yield node.frame.path, node.slot
        node = node.value
    for each in walk(node):
        match each:
            case ir.Local(_, slot, _) | ir.Declare(slot) | ir.DeclareMemory(slot):
                yield frame.path, slot
            case ir.Return() if frame.result is not None:
                yield frame.result[0].path, frame.result[1]


def all_statements(items: Plan) -> Iterator[object]:
    """Yield all statements that threads run."""
    for item in items:
        match item:
            case Region(statements):
                yield from (statement for _, statement in statements)
            case _:
                yield from all_statements(_inner_items(item))


def may_leave(item: Item) -> bool:
    """Return whether threads may leave the loop or function around an item."""
    match item:
        case Region(statements):
            return any(
                not isinstance(each, Bind) and not jump_kinds(each).isdisjoint(_JUMP_KINDS) for _, each in statements
            )
        case PlannedIf():
            return any(map(may_leave, _inner_items(item)))
        case PlannedLoop():
            return any(
                "return" in jump_kinds(statement)
                for statement in all_statements([item])
                if not isinstance(statement, Bind)
            )
    return False


_JUMP_KINDS = ("break", "continue", "return")


@cache_query
def jump_kinds(node: object) -> set[str]:
    """Return the kinds of jumps that leave a statement."""
    kinds: set[str] = {node.kind} if isinstance(node, ir.Jump) else set()
    if isinstance(node, ir.Return):
        kinds.add("return")
    for part in child_nodes(node):
        kinds |= jump_kinds(part)
    contained = (
        ("break", "continue") if isinstance(node, ir.Loop) else ("break",) if isinstance(node, ir.Switch) else ()
    )
    return kinds.difference(contained)


def accesses_common_memory(node: object, split_slots: set[int]) -> bool:
    """Return whether a node accesses memory that all threads share or use in turn, except split memory."""
    for each in walk(node):
        match each:
            case ir.DeclareMemory(slot) if slot in split_slots:
                continue
            case ir.Atomic() | ir.DeclareMemory() | ir.Temporary() | ir.Fence() | ir.BarrierPhase() | ir.BulkCopy():
                return True
            case ir.LaunchCall() | ir.TensorCopy():
                return True
            case ir.Call() if accesses_common_memory(each.function.body, set()):
                return True
    return False
