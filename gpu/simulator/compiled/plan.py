"""A kernel cut at the points where its threads wait for each other, and what is asked about such a plan.

Between two such points the threads of a block are independent, so that a *region*, the statements in between, can run
as a loop over the threads. Loops and branches around a barrier run once for the block, with a mask where its threads
disagree. A loop that all threads go through alike is planned so even without a barrier inside: then the loop over the
threads is the inner one, which LLVM turns into vector instructions.
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
    """The variables of a function that the plan runs: the kernel's, or those of one that waits and was inlined."""

    path: str
    function: ir.Function
    slots: int
    added: dict[int, Type] = field(default_factory=dict)
    result: tuple[PlannedFrame, int, Type] | None = None
    """The caller's variable that takes what is returned from the middle of the function."""

    def new_slot(self, type: Type) -> int:
        """Return a variable that the plan itself needs."""
        self.slots += 1
        self.added[self.slots - 1] = type
        return self.slots - 1


@dataclass(frozen=True)
class Bind:
    """A parameter of an inlined function comes to life, with a value of the caller's."""

    frame: PlannedFrame
    slot: int
    type: Type
    value: ir.Expression


@dataclass(eq=False)
class Region:
    """Statements that each thread runs by itself, each with the frame whose variables it means."""

    statements: list[tuple[PlannedFrame, ir.Statement | Bind]] = field(default_factory=list)


@dataclass(frozen=True)
class Once:
    """A statement that gives a variable the same value in all threads."""

    frame: PlannedFrame
    statement: ir.Statement | Bind


@dataclass(frozen=True, eq=False)
class Exchange:
    """A warp's lanes exchange values, or a block votes; the result goes to a variable."""

    frame: PlannedFrame
    slot: int
    expression: ir.Warp
    agreed: tuple[bool, ...]
    """Which arguments all threads agree on."""


@dataclass(frozen=True, eq=False)
class PhaseTest:
    """Threads ask whether a phase of a barrier in memory is over; the answers go to a variable."""

    frame: PlannedFrame
    slot: int
    expression: ir.BarrierPhase


@dataclass(frozen=True)
class BlockMeeting:
    """A warp waits for the others of its block."""

    position: SourcePosition


@dataclass(frozen=True)
class ClusterMeeting:
    """A warp arrives at the barrier of its cluster, or waits there for the others of it."""

    barrier: ir.ClusterBarrier


@dataclass(frozen=True)
class PlannedIf:
    """A branch around regions; where threads disagree, each side runs under a mask."""

    frame: PlannedFrame
    condition: ir.Expression
    uniform: bool
    then: Plan
    orelse: Plan | None


@dataclass(frozen=True)
class PlannedLoop:
    """A loop around regions. `before` is the plan of what the condition needs."""

    frame: PlannedFrame
    before: Plan
    condition: ir.Expression | None
    uniform: bool
    body: Plan
    step: Plan
    tests_first: bool


@dataclass(frozen=True)
class PlannedCall:
    """The body of a function that threads leave at different places; what they return is in `frame.result`."""

    frame: PlannedFrame
    body: Plan


Item = Region | Once | Exchange | PhaseTest | BlockMeeting | ClusterMeeting | PlannedIf | PlannedLoop | PlannedCall
Plan = list[Item]


Key = tuple[str, int]


def places(items: Plan) -> Iterator[set[Key]]:
    """Yield the variables of each place: one that is used in two of them outlives both."""
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
    """Yield what functions that wait are given: a thread's own memory is used in their many places."""
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
    """Yield all that threads run."""
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
    """Whether threads may leave what is around an item: a loop, or a function."""
    match item:
        case Region(statements):
            return any(not isinstance(each, Bind) and not jumps(each).isdisjoint(_WAYS_OUT) for _, each in statements)
        case PlannedIf(_, _, _, then, orelse):
            return any(map(takes_out, (*then, *(orelse or []))))
        case PlannedLoop():
            return any("return" in jumps(each) for each in all_statements([item]) if not isinstance(each, Bind))
    return False


_WAYS_OUT = ("break", "continue", "return")


@asked_once
def jumps(node: object) -> set[str]:
    """Return the kinds of jumps that lead out of a statement."""
    found: set[str] = {node.kind} if isinstance(node, ir.Jump) else set()
    if isinstance(node, ir.Return):
        found.add("return")
    for part in parts(node):
        found |= jumps(part)
    inside = ("break", "continue") if isinstance(node, ir.Loop) else ("break",) if isinstance(node, ir.Switch) else ()
    return found.difference(inside)


def touches_one(node: object, apart: set[int]) -> bool:
    """Whether there is memory that all threads touch, or that they have one after the other; not where taken apart."""
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
