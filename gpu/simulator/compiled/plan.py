"""A kernel divided at the points where its threads wait for each other, and queries on such a plan.

Between two such points the threads of a block are independent, so the statements between them, a *region*, can run as a
loop over the threads. Loops and branches around a barrier run once per block, with a mask if threads disagree. A loop
in which all threads do the same is planned this way even without a barrier inside: the loop over the threads is then
the inner one, which LLVM vectorizes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from gpu.errors import SourcePosition
from gpu.simulator import ir
from gpu.simulator.compiled.walking import asked_once, parts, walk
from gpu.simulator.types import Type


@dataclass(eq=False)
class PlannedFrame:
    """The variables of a function in the plan: the kernel's, or those of an inlined function that waits."""

    path: str
    function: ir.Function
    slots: int
    added: dict[int, Type] = field(default_factory=dict)
    result: tuple[PlannedFrame, int, Type] | None = None
    """The caller's variable for the value of returns before the function's end."""

    def new_slot(self, type: Type) -> int:
        """Return a new variable that the plan itself needs."""
        self.slots += 1
        self.added[self.slots - 1] = type
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
class Once:
    """A statement that assigns the same value to a variable in all threads."""

    frame: PlannedFrame
    statement: ir.Statement | Bind


@dataclass(frozen=True, eq=False)
class Exchange:
    """An exchange between the lanes of a warp, or a block's vote; the result is assigned to a variable."""

    frame: PlannedFrame
    slot: int
    expression: ir.Warp
    agreed: tuple[bool, ...]
    """Whether each argument is the same for all threads."""


@dataclass(frozen=True, eq=False)
class PhaseTest:
    """A test whether a phase of a barrier in memory is complete; the result is assigned to a variable."""

    frame: PlannedFrame
    slot: int
    expression: ir.BarrierPhase


@dataclass(frozen=True)
class BlockMeeting:
    """A barrier at which a warp waits for the others of its block."""

    position: SourcePosition


@dataclass(frozen=True)
class ClusterMeeting:
    """An arrival of a warp at its cluster's barrier, or the wait there for the other warps."""

    barrier: ir.ClusterBarrier


@dataclass(frozen=True)
class PlannedIf:
    """A branch around regions; if threads disagree, each side runs under a mask."""

    frame: PlannedFrame
    condition: ir.Expression
    uniform: bool
    then: Plan
    orelse: Plan | None


@dataclass(frozen=True)
class PlannedLoop:
    """A loop around regions. `before` is the plan of the exchanges in the condition."""

    frame: PlannedFrame
    before: Plan
    condition: ir.Expression | None
    uniform: bool
    body: Plan
    step: Plan
    tests_first: bool


@dataclass(frozen=True)
class PlannedCall:
    """The body of an inlined function with early returns; the return values are in `frame.result`."""

    frame: PlannedFrame
    body: Plan


Item = Region | Once | Exchange | PhaseTest | BlockMeeting | ClusterMeeting | PlannedIf | PlannedLoop | PlannedCall
Plan = list[Item]


Key = tuple[str, int]


def places(items: Plan) -> Iterator[set[Key]]:
    """Yield the variables of each item; a variable used in two items outlives both."""
    for item in items:
        match item:
            case Region(statements):
                yield {key for frame, statement in statements for key in used(frame, statement)}
            case Once(frame, statement):
                yield set(used(frame, statement))
            case Exchange(frame, slot, expression) | PhaseTest(frame, slot, expression):
                yield set(used(frame, expression))
                yield {(frame.path, slot)}
                yield set()
            case PlannedIf(frame, condition, _, then, orelse):
                yield set(used(frame, condition))
                yield from places(then)
                yield from places(orelse or [])
            case PlannedLoop(frame, before, condition, _, body, step):
                yield from places(before)
                if condition is not None:
                    yield set(used(frame, condition))
                yield from places(body)
                yield from places(step)
            case PlannedCall(_, body):
                yield from places(body)


def handed_on(items: Plan) -> Iterator[Key]:
    """Yield the arguments of functions that wait, since local memory that is passed to them is used in many items."""
    for item in items:
        match item:
            case Region(statements):
                for frame, statement in statements:
                    if isinstance(statement, Bind):
                        yield from used(frame, statement.value)
            case Once(frame, Bind() as bind):
                yield from used(frame, bind.value)
            case PlannedIf(_, _, _, then, orelse):
                yield from handed_on(then)
                yield from handed_on(orelse or [])
            case PlannedLoop(_, before, _, _, body, step):
                for inner in (before, body, step):
                    yield from handed_on(inner)
            case PlannedCall(_, body):
                yield from handed_on(body)


def used(frame: PlannedFrame, node: object) -> Iterator[Key]:
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
            case PlannedIf(_, _, _, then, orelse):
                yield from all_statements(then)
                yield from all_statements(orelse or [])
            case PlannedLoop(_, before, _, _, body, step):
                for part in (before, body, step):
                    yield from all_statements(part)
            case PlannedCall(_, body):
                yield from all_statements(body)


def takes_out(item: Item) -> bool:
    """Return whether threads may leave the loop or function around an item."""
    match item:
        case Region(statements):
            return any(not isinstance(each, Bind) and not jumps(each).isdisjoint(_JUMP_KINDS) for _, each in statements)
        case PlannedIf(_, _, _, then, orelse):
            return any(map(takes_out, (*then, *(orelse or []))))
        case PlannedLoop():
            return any("return" in jumps(each) for each in all_statements([item]) if not isinstance(each, Bind))
    return False


_JUMP_KINDS = ("break", "continue", "return")


@asked_once
def jumps(node: object) -> set[str]:
    """Return the kinds of jumps that leave a statement."""
    kinds: set[str] = {node.kind} if isinstance(node, ir.Jump) else set()
    if isinstance(node, ir.Return):
        kinds.add("return")
    for part in parts(node):
        kinds |= jumps(part)
    contained = (
        ("break", "continue") if isinstance(node, ir.Loop) else ("break",) if isinstance(node, ir.Switch) else ()
    )
    return kinds.difference(contained)


def touches_one(node: object, apart: set[int]) -> bool:
    """Return whether a node accesses memory that all threads share or use in turn, except split memory."""
    for each in walk(node):
        match each:
            case ir.DeclareMemory(slot) if slot in apart:
                continue
            case ir.Atomic() | ir.DeclareMemory() | ir.Temporary() | ir.Fence() | ir.BarrierPhase() | ir.BulkCopy():
                return True
            case ir.LaunchCall():
                return True
            case ir.Call() if touches_one(each.function.body, set()):
                return True
    return False
