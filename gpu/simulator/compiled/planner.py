"""Makes the plan of a kernel: where its threads wait for each other, and on what values they all agree."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gpu.errors import SourcePosition
from gpu.simulator import ir
from gpu.simulator.compiled.assembly import NotCompiled
from gpu.simulator.compiled.intervals import Intervals
from gpu.simulator.compiled.plan import (
    Bind,
    BlockMeeting,
    ClusterMeeting,
    Exchange,
    Once,
    PhaseTest,
    Plan,
    PlannedCall,
    PlannedFrame,
    PlannedIf,
    PlannedLoop,
    Region,
)
from gpu.simulator.compiled.rematerialize import Assignments, Rematerializable, changes_of, constant
from gpu.simulator.compiled.scalar_replacement import ScalarReplacement
from gpu.simulator.compiled.uniformity import Uniformity
from gpu.simulator.compiled.waiting import exchanges, go_by_warps, sees, waits
from gpu.simulator.compiled.walking import LEAVES, decided, is_unrolled, outermost_loops, taken, walk
from gpu.simulator.executor.batches import reachable
from gpu.simulator.intrinsics import BLOCK_VOTES
from gpu.simulator.types import Scalar, Type, Void


@dataclass(frozen=True)
class Planned:
    """A kernel's plan: which variables differ between threads, and which of these are computed where they are used."""

    items: Plan
    frames: dict[str, PlannedFrame]
    varying: frozenset[tuple[str, int]]
    computed: dict[tuple[str, int], ir.Expression]
    memories: set[tuple[str, int]]
    """Memory that is in the plan alone, of objects that functions which wait are given."""


def plan(
    kernel: ir.Function, block: Sequence[int], constants: frozenset[str], replacement: ScalarReplacement
) -> Planned:
    """Return the plan of a kernel.

    Parameters
    ----------
    kernel : ir.Function
    block : sequence of int
        How many threads there are along x, y and z.
    constants : frozenset of str
        The names of `__constant__` variables: what is loaded from them at one place is the same for all.
    replacement : ScalarReplacement
        Which local memory is taken apart.

    Raises
    ------
    NotCompiled
        Where it does what this executor leaves to the other one.
    """
    for function in reachable(kernel):
        if any(found is function for called in function.calls for found in reachable(called)):
            raise NotCompiled("recursion")
    varying: frozenset[tuple[str, int]] = frozenset()
    intervals, by_warps = Intervals(block), go_by_warps(kernel)
    assignments: dict[int, Assignments] = {}
    while True:
        planner = _Planner(varying, intervals, constants, replacement, assignments, by_warps=by_warps)
        frame = planner.frames[""] = PlannedFrame("", kernel, kernel.slots)
        planned = planner.block(frame, kernel.body)
        found = varying | planner.found
        if found == varying:
            return Planned(planned, planner.frames, varying, planner.computed, planner.memories)
        varying = found


def _makes_object(expression: ir.Expression) -> bool:
    """Whether an expression makes an object that it goes on with; one that a call is given is done with after that."""
    nodes = list(walk(expression))
    arguments = (each for node in nodes if isinstance(node, ir.Call) for each in node.arguments)
    given = {id(part) for each in arguments if not exchanges(each) for part in walk(each)}
    return any(isinstance(node, ir.Temporary) and id(node) not in given for node in nodes)


class _Planner:
    """Plans under the assumption that only some variables differ between threads; `found` holds those that do too."""

    def __init__(
        self,
        varying: frozenset[tuple[str, int]],
        intervals: Intervals,
        constants: frozenset[str],
        replacement: ScalarReplacement,
        assignments: dict[int, Assignments],
        *,
        by_warps: bool,
    ) -> None:
        self._varying = varying
        self._intervals = intervals
        self.memories: set[tuple[str, int]] = set()
        self._by_warps = by_warps
        self._replacement = replacement
        self._uniformity = Uniformity(varying, constants)
        self.found: set[tuple[str, int]] = set()
        self._masked = 0
        self._context: list[int] = [0]
        self._declared: dict[tuple[str, int], int] = {}
        self._inlined = 0
        self.computed: dict[tuple[str, int], ir.Expression] = {}
        self.frames: dict[str, PlannedFrame] = {}
        self._assignments = assignments
        self._rematerializable: dict[str, Rematerializable] = {}
        self._kept_whole: dict[int, set[int]] = {}

    # Which variables differ between threads.

    def _assigned(self, frame: PlannedFrame, slot: int, value: ir.Expression | None, *, declared: bool) -> bool:
        """Take note of an assignment that the block may do once; whether it can."""
        key = (frame.path, slot)
        if declared:
            self._declared[key] = self._context[-1]
        here = self._declared.setdefault(key, 0) == self._context[-1]
        if here and self._uniformity.holds(frame, value) and key not in self._varying:
            return True
        self.found.add(key)
        return False

    def _of_function(self, frame: PlannedFrame) -> tuple[Assignments, Rematerializable]:
        """Return where a frame's function assigns, and which of its variables can be computed again."""
        function = frame.function
        if id(function) not in self._assignments:
            self._assignments[id(function)] = Assignments(function, list(walk(function.body)))
        assignments = self._assignments[id(function)]
        if frame.path not in self._rematerializable:
            varying = frozenset(slot for path, slot in self._varying if path == frame.path)
            self._rematerializable[frame.path] = Rematerializable(assignments, varying)
        return assignments, self._rematerializable[frame.path]

    def _induction(self, frame: PlannedFrame, loop: ir.Loop) -> ir.Update | None:
        """Return how the block steps, where a loop's variable is where each thread began and how far the block is."""
        match loop.step:
            case ir.Update(Scalar() as type, ir.Local(_, slot, _), "+" | "-" as op, by, Scalar() as compute) if (
                (frame.path, slot) in self._varying
                # `i += gridDim.x * blockDim.x` counts an int up by an unsigned: the same bits, whatever the sign.
                and compute.size == type.size in (4, 8)
                and not (type.is_float or compute.is_float)
                and (type.is_signed or op == "+")
                and self._uniformity.holds(frame, by)
            ):
                pass
            case _:
                return None
        born = self._born(frame, slot, loop)
        if born is None:
            return None
        come = _come(slot, type)
        self.computed[frame.path, slot] = ir.Binary(type, "+", born, come)
        return ir.Update(type, come, op, by, compute)

    def _born(self, frame: PlannedFrame, slot: int, loop: ir.Loop) -> ir.Expression | None:
        """Return where a loop's variable begins; None where it changes elsewhere, or that cannot be computed again."""
        assignments, rematerializable = self._of_function(frame)
        nodes = assignments.nodes
        born = [node for node in nodes if isinstance(node, ir.Declare) and node.slot == slot]
        if len(born) != 1 or born[0].value is None or not rematerializable.holds(born[0].value):
            return None
        if changes_of(slot, nodes) != 1 or _uses(slot, nodes) != _uses(slot, walk(loop)):
            return None
        return born[0].value

    def _alike(self, frame: PlannedFrame, loop: ir.Loop) -> ir.Expression | None:
        """Return what all threads find of a loop's condition, where they begin it apart but go as many rounds.

        `for (int i = lane; i < 256; i += 32)` is eight rounds for every lane.
        """
        match loop.condition, loop.step:
            case (
                ir.Binary(kind, "<" | "<=" as op, left, right),
                ir.Update(Scalar() as type, ir.Local(_, slot, _), "+", by, Scalar()),
            ) if (frame.path, slot) in self._varying and not type.is_float and type.size in (4, 8):
                pass
            case _:
                return None
        counted, lasting = _without_casts(left), self._of_function(frame)[0].lasting
        if not isinstance(counted, ir.Local) or counted.slot != slot:
            return None
        step, bound = constant(by, lasting), constant(right, lasting)
        if bound is None or not step or step < 0 or _leaves(loop):
            return None
        born = self._born(frame, slot, loop)
        starts = self._intervals.of(frame, born) if born is not None else None
        if starts is None or starts[0] < 0:
            return None
        rounds = {max(-((start - bound - (op == "<=")) // step), 0) for start in starts}
        if len(rounds) != 1 or starts[1] + (max(rounds) + 1) * step >= 2**31:
            return None
        first = ir.Binary(type, "+", ir.Const(type, type.dtype.type(starts[0])), _come(slot, type))
        number = first if left.type == type else ir.Cast(left.type, first)
        return ir.Binary(kind, op, number, right)

    def _differ(self, frame: PlannedFrame, statement: Any) -> None:
        """Take note that what a region assigns differs between threads."""
        for node in walk(statement):
            match node:
                case ir.Assign(_, ir.Local(_, slot, _), _) | ir.Update(_, ir.Local(_, slot, _)):
                    self.found.add((frame.path, slot))
                case ir.Declare(slot) | ir.DeclareMemory(slot):
                    self.found.add((frame.path, slot))

    # Statements.

    def block(self, frame: PlannedFrame, body: ir.Statement) -> Plan:
        """Return the plan of statements in order."""
        planned: Plan = []
        for statement in body.statements if isinstance(body, ir.Block) else (body,):
            self._statement(frame, statement, planned)
        return planned

    def _statement(self, frame: PlannedFrame, statement: ir.Statement, planned: Plan) -> None:
        match statement:
            case ir.Block(statements):
                for inner in statements:
                    self._statement(frame, inner, planned)
            case ir.Barrier(position):
                planned.append(BlockMeeting(position) if self._by_warps else Region())
            case ir.Evaluate(ir.ClusterBarrier() as barrier):
                planned.append(ClusterMeeting(barrier))
            case ir.Evaluate(ir.Fence(_, "__syncwarp")):
                planned.append(Region())
            case ir.If(condition, then, orelse) if (known := decided(condition)) is not None:
                side = then if known else orelse
                if side is not None:
                    self._statement(frame, side, planned)
            case ir.If() if self._is_planned(frame, statement):
                self._if(frame, statement, planned)
            case ir.Loop() if self._is_planned(frame, statement):
                self._loop(frame, statement, planned)
            case ir.Declare(slot, type, value, position):
                value = self._hoisted(frame, value, planned)
                made = ir.Declare(slot, type, value, position)
                if self._assigned(frame, slot, value, declared=True) and not isinstance(type, Void):
                    # What comes to life here nobody has read before: it may do so before the region that is open.
                    planned.insert(len(planned) - bool(planned and isinstance(planned[-1], Region)), Once(frame, made))
                else:
                    self._run(frame, made, planned)
            case ir.DeclareMemory(_, _, values) if exchanges(statement):
                held = tuple((offset, self._hoisted(frame, value, planned)) for offset, value in values)
                self._run(frame, dataclasses.replace(statement, values=held), planned)
            case ir.Evaluate(ir.Assign(_, ir.Local(_, slot, _), value) as assign, position):
                value = self._hoisted(frame, value, planned)
                changed = dataclasses.replace(assign, value=value)
                self._change(frame, slot, value, ir.Evaluate(changed, position), planned)
            case ir.Evaluate(ir.Update(_, ir.Local(_, slot, _), _, value) as update, position):
                value = self._hoisted(frame, value, planned)
                updated = dataclasses.replace(update, value=value)
                self._change(frame, slot, value, ir.Evaluate(updated, position), planned)
            case ir.Evaluate(ir.Assign(type, ir.Element() as place, value), position) if sees(statement):
                self._meet(frame, type, place, value, position, planned)
            case ir.Evaluate(ir.Update(type, ir.Element() as place, op, value, Scalar() as compute), position) if (
                sees(statement) and compute == type
            ):
                changed_to = ir.Binary(compute, op, ir.Load(type, place), value)
                self._meet(frame, type, place, changed_to, position, planned)
            case ir.Evaluate(expression, position) if waits(expression):
                left = self._hoisted(frame, expression, planned)
                if not isinstance(left, ir.Local):
                    self._run(frame, ir.Evaluate(left, position), planned)
            case ir.Return(value, position) if waits(value) if value is not None else False:
                self._run(frame, ir.Return(self._hoisted(frame, value, planned), position), planned)
            case _:
                if exchanges(statement):
                    raise NotCompiled(f"threads that wait for each other inside of a {_name(statement)}")
                self._run(frame, statement, planned)

    def _meet(
        self,
        frame: PlannedFrame,
        type: Type,
        place: ir.Element,
        value: ir.Expression,
        position: SourcePosition,
        planned: Plan,
    ) -> None:
        """Plan a store to volatile memory: all threads have read before the first one writes."""
        slot = frame.new_slot(type)
        self.found.add((frame.path, slot))
        value = self._hoisted(frame, value, planned)
        planned.append(Region())
        self._run(frame, ir.Declare(slot, type, value, position), planned)
        planned.append(Region())
        self._run(frame, ir.Evaluate(ir.Assign(type, place, ir.Local(type, slot, "")), position), planned)
        planned.append(Region())

    def _change(
        self, frame: PlannedFrame, slot: int, value: ir.Expression | None, made: ir.Statement, planned: Plan
    ) -> None:
        if self._assigned(frame, slot, value, declared=False):
            planned.append(Once(frame, made))
        else:
            self._run(frame, made, planned)

    def _run(self, frame: PlannedFrame, statement: ir.Statement | Bind, planned: Plan) -> None:
        """Let each thread run a statement, in the region that is open where there is one."""
        self._differ(frame, statement.value if isinstance(statement, Bind) else statement)
        if not (planned and isinstance(planned[-1], Region)):
            planned.append(Region())
        region = planned[-1]
        assert isinstance(region, Region)
        region.statements.append((frame, statement))

    # Control flow around regions.

    def _is_planned(self, frame: PlannedFrame, statement: ir.Statement) -> bool:
        """Whether a branch or a loop is the block's: it holds a barrier, or a loop worth going through together."""
        if waits(statement):
            return True
        if isinstance(statement, ir.Loop):
            return self._goes_together(frame, statement)
        return any(
            isinstance(inner, ir.Loop) and self._goes_together(frame, inner) for inner in outermost_loops(statement)
        )

    def _goes_together(self, frame: PlannedFrame, loop: ir.Loop) -> bool:
        inside = list(walk(loop.body))
        if self._replacement.parts_ways(frame.function, loop):
            return False
        if not self._whole(frame).isdisjoint(node.slot for node in inside if isinstance(node, ir.Local)):
            return False
        if is_unrolled(loop) and self._alike(frame, loop) is None:
            return False
        steps = isinstance(loop.step, ir.Update) and self._uniformity.holds(frame, loop.step.value)
        return self._uniformity.holds(frame, loop.condition) or (steps and _touches_memory(loop.body))

    def _whole(self, frame: PlannedFrame) -> set[int]:
        """Return the slots of the thread's own arrays that are not taken apart: they are best kept in registers."""
        function = frame.function
        if id(function) not in self._kept_whole:
            apart = {*self._replacement.taken_apart(function), *self._replacement.in_rows(function)}
            nodes = self._of_function(frame)[0].nodes
            owned = {node.slot for node in nodes if isinstance(node, ir.DeclareMemory)}
            self._kept_whole[id(function)] = owned - apart
        return self._kept_whole[id(function)]

    def _if(self, frame: PlannedFrame, statement: ir.If, planned: Plan) -> None:
        condition = self._hoisted(frame, statement.condition, planned)
        assert condition is not None
        self._differ(frame, condition)
        uniform = self._uniformity.holds(frame, condition)
        with_mask = self._mask(not uniform)
        then = self._under(with_mask, frame, statement.then)
        orelse = self._under(with_mask, frame, statement.orelse) if statement.orelse is not None else None
        planned.append(PlannedIf(frame, condition, uniform, then, orelse))

    def _loop(self, frame: PlannedFrame, loop: ir.Loop, planned: Plan) -> None:
        before: Plan = []
        condition = loop.condition
        uniform = self._uniformity.holds(frame, condition) and not _leaves(loop)
        stepped = self._induction(frame, loop)
        alike = self._alike(frame, loop) if stepped is not None else None
        if alike is not None:
            uniform, condition = True, alike
        if stepped is not None:
            assert isinstance(stepped.type, Scalar)
            assert isinstance(stepped.place, ir.Local)
            start = ir.Declare(stepped.place.slot, stepped.type, _zero(stepped.type), loop.position)
            planned.append(Once(frame, start))
        context = self._mask(not uniform)
        self._context.append(context)
        condition = self._hoisted(frame, condition, before)
        if condition is not None:
            self._differ(frame, condition)
        body = self.block(frame, loop.body)
        step: Plan = []
        if stepped is not None:
            body.append(Once(frame, ir.Evaluate(stepped, loop.position)))
        elif loop.step is not None:
            # Where nobody skips the rest of a round, the step is a part of it.
            skips = any(isinstance(node, ir.Jump) and node.kind == "continue" for node in walk(loop.body))
            self._statement(frame, ir.Evaluate(loop.step, loop.position), step if skips else body)
        self._context.pop()
        planned.append(PlannedLoop(frame, before, condition, uniform, body, step, loop.tests_first))

    def _mask(self, masked: bool) -> int:
        """Return the number of the context inside: another one where a mask takes threads out."""
        if masked:
            self._masked += 1
            return self._masked
        return self._context[-1]

    def _under(self, context: int, frame: PlannedFrame, body: ir.Statement) -> Plan:
        self._context.append(context)
        planned = self.block(frame, body)
        self._context.pop()
        return planned

    # Expressions that wait.

    def _hoisted(self, frame: PlannedFrame, expression: Any, planned: Plan) -> Any:
        """Plan what threads exchange within an expression, and return what is left of it."""
        if expression is None or not exchanges(expression):
            return expression
        if isinstance(expression, ir.Logical) and exchanges(expression.right):
            raise NotCompiled("an exchange between threads on the right of && or ||")
        if isinstance(expression, ir.Select) and (exchanges(expression.chosen) or exchanges(expression.other)):
            raise NotCompiled("an exchange between threads in one side of ?:")
        if isinstance(expression, ir.Call) and waits(expression.function.body):
            return self._inline(frame, expression, planned)
        if isinstance(expression, ir.Sequence):
            position = next(node.position for node in walk(expression) if hasattr(node, "position"))
            if (constructed := self._constructed(frame, expression, planned)) is not None:
                return constructed
            if _makes_object(expression):
                raise NotCompiled("an exchange between threads while an object is made")
            first = self._hoisted(frame, expression.first, planned)
            self._run(frame, ir.Evaluate(first, position), planned)
            return self._hoisted(frame, expression.second, planned)
        changed: dict[str, Any] = {}
        for each in dataclasses.fields(expression):
            value = getattr(expression, each.name)
            if isinstance(value, tuple):
                changed[each.name] = tuple(
                    self._hoisted(frame, part, planned) if dataclasses.is_dataclass(part) else part for part in value
                )
            elif dataclasses.is_dataclass(value) and not isinstance(value, LEAVES):
                changed[each.name] = self._hoisted(frame, value, planned)
        left = dataclasses.replace(expression, **changed)
        is_test = isinstance(left, ir.BarrierPhase) and left.op == "test"
        if not isinstance(left, ir.Warp) and not is_test:
            return left
        self._differ(frame, left)
        slot = frame.new_slot(left.type)
        self.found.add((frame.path, slot))
        if isinstance(left, ir.BarrierPhase):
            planned.append(PhaseTest(frame, slot, left))
            return ir.Local(left.type, slot, left.op)
        if self._by_warps and left.op in BLOCK_VOTES:
            raise NotCompiled("a vote of the block beside a barrier that is an object in memory")
        agreed = tuple(self._uniformity.holds(frame, argument) for argument in left.arguments)
        planned.append(Exchange(frame, slot, left, agreed))
        return ir.Local(left.type, slot, left.op)

    def _constructed(self, frame: PlannedFrame, made: ir.Sequence, planned: Plan) -> ir.Expression | None:
        """Plan what threads exchange for a constructor, and return what makes the object when all of that is there."""
        begun, after = made.first, made.second
        if not isinstance(begun, ir.Sequence) or exchanges(after):
            return None
        match begun.first, begun.second:
            case ir.Assign(_, _, ir.Temporary(_, None)), ir.Call() as call if not waits(call.function.body):
                given = tuple(self._hoisted(frame, each, planned) for each in call.arguments)
                called = dataclasses.replace(begun, second=dataclasses.replace(call, arguments=given))
                return dataclasses.replace(made, first=called)
        return None

    def _kept(self, frame: PlannedFrame, made: ir.Temporary, position: SourcePosition, planned: Plan) -> ir.Expression:
        """Plan memory for an object that a function which waits is given: it lives until that is done."""
        slot = frame.new_slot(made.type)
        self.found.add((frame.path, slot))
        self.memories.add((frame.path, slot))
        values = ((0, made.value),) if made.value is not None else ()
        declared = ir.DeclareMemory(slot, made.type.element.size, values, False, "a temporary value", position)
        self._run(frame, declared, planned)
        return ir.Local(made.type, slot, "")

    def _inline(self, frame: PlannedFrame, call: ir.Call, planned: Plan) -> ir.Expression:
        """Plan the body of a function that waits, in a frame of its own."""
        self._inlined += 1
        if self._inlined > 200:
            raise NotCompiled("functions that call each other and wait")
        function = call.function
        inner = PlannedFrame(f"{frame.path}/{self._inlined}", function, function.slots)
        self.frames[inner.path] = inner
        for slot, ((_, type), argument) in enumerate(zip(function.parameters, call.arguments, strict=True)):
            value = self._hoisted(frame, argument, planned)
            if isinstance(value, ir.Temporary):
                value = self._kept(frame, value, call.position, planned)
            bind = Bind(inner, slot, type, value)
            self._declared[inner.path, slot] = self._context[-1]
            if self._uniformity.holds(frame, value) and (inner.path, slot) not in self._varying:
                planned.append(Once(frame, bind))
            else:
                self.found.add((inner.path, slot))
                self._run(frame, bind, planned)
        left = taken(function.body)
        *body, last = left.statements or (ir.Block(()),)
        if any(
            isinstance(node, ir.Return) and node is not last for statement in (*body, last) for node in walk(statement)
        ):
            return self._inline_left_early(frame, inner, call, left, planned)
        for statement in body:
            self._statement(inner, statement, planned)
        if not isinstance(last, ir.Return):
            self._statement(inner, last, planned)
        if not isinstance(last, ir.Return) or last.value is None:
            return _zero(Scalar("int32"))
        value = self._hoisted(inner, last.value, planned)
        slot = frame.new_slot(call.type)
        self.found.add((frame.path, slot))
        self._run(inner, Bind(frame, slot, call.type, value), planned)
        return ir.Local(call.type, slot, function.name)

    def _inline_left_early(
        self, frame: PlannedFrame, inner: PlannedFrame, call: ir.Call, body: ir.Block, planned: Plan
    ) -> ir.Expression:
        """Plan the body of a function that some threads leave while others go on."""
        result: ir.Expression = _zero(Scalar("int32"))
        if not isinstance(call.type, Void):
            slot = frame.new_slot(call.type)
            self.found.add((frame.path, slot))
            inner.result = frame, slot, call.type
            result = ir.Local(call.type, slot, call.function.name)
        planned.append(PlannedCall(inner, self._under(self._mask(masked=True), inner, body)))
        return result


def _name(statement: ir.Statement) -> str:
    return type(statement).__name__.lower()


def _zero(type: Scalar) -> ir.Const:
    return ir.Const(type, type.dtype.type(0))


def _come(slot: int, type: Scalar) -> ir.Local:
    """Return the variable that says how far the block has come in a loop over another one."""
    return ir.Local(type, -1 - slot, "")


def _without_casts(expression: ir.Expression) -> ir.Expression:
    while isinstance(expression, ir.Cast) and isinstance(expression.operand.type, Scalar):
        if expression.operand.type.is_float or expression.operand.type.size > expression.type.size:
            break
        expression = expression.operand
    return expression


def _leaves(loop: ir.Loop) -> bool:
    """Whether threads may leave a loop, or a round of it, before its end."""
    return any(isinstance(node, ir.Jump | ir.Return) for node in walk(loop.body))


def _uses(slot: int, nodes: Iterable[Any]) -> int:
    return sum(isinstance(node, ir.Local) and node.slot == slot for node in nodes)


def _touches_memory(node: Any) -> bool:
    return any(isinstance(each, ir.Element) for each in walk(node))
