"""The control flow of a block: write the items of a kernel's plan, one after the other, under the enclosing masks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from gpu.errors import SourcePosition
from gpu.simulator import ir
from gpu.simulator.compiled import exchanges
from gpu.simulator.compiled.assembly import Assembly
from gpu.simulator.compiled.corners import Corners
from gpu.simulator.compiled.coroutines import GATHERS, MEETS, POLLS, WarpCoroutine
from gpu.simulator.compiled.lanes import ExchangeLanes, Given
from gpu.simulator.compiled.masks import LONG, MaskStack
from gpu.simulator.compiled.memory import KernelMemory, ThreadFailure
from gpu.simulator.compiled.plan import (
    Bind,
    BlockMeeting,
    ClusterMeeting,
    Exchange,
    Item,
    Once,
    PhaseTest,
    Plan,
    PlannedCall,
    PlannedIf,
    PlannedLoop,
    Region,
    all_statements,
    jumps,
    takes_out,
    touches_one,
)
from gpu.simulator.compiled.scratch import Scratch
from gpu.simulator.compiled.statements import StatementWriter
from gpu.simulator.compiled.thread_block import ThreadBlock
from gpu.simulator.compiled.warp_vectors import WarpVectors
from gpu.simulator.types import Scalar

_ADVICE = "Check the arrivals and bytes of copies that each phase expects; every counted thread must arrive."


class ControlFlow:
    """Writes the code of a block.

    Parameters
    ----------
    asm : Assembly
    block : ThreadBlock
    scratch : Scratch
    memory : KernelMemory
    masks : MaskStack
    warp : WarpCoroutine or None
        The warp to write, if warps run separately instead of a whole block.
    """

    def __init__(
        self,
        asm: Assembly,
        block: ThreadBlock,
        scratch: Scratch,
        memory: KernelMemory,
        masks: MaskStack,
        warp: WarpCoroutine | None,
    ) -> None:
        self._warp = warp
        self._asm = asm
        self._block = block
        self._scratch = scratch
        self._memory = memory
        self._masks = masks
        self._statements = StatementWriter(asm, block, memory, masks)
        self._expressions = self._statements.expressions
        self._vectors = WarpVectors(self._expressions.thread)
        self._corners = Corners(self._expressions.thread)

    def run(self, items: Plan) -> None:
        """Write the items of a plan."""
        start = len(self._asm.lines)
        can_outline = not self._asm.ended
        for item in items:
            self._item(item)
            if self._masks.parted and takes_out(item):
                self._masks.go_on()
            if can_outline:
                start = self._asm.outline(start)

    def _item(self, item: Item) -> None:
        match item:
            case Region(statements):
                if statements:
                    self._region(item)
            case Once(frame, statement):
                self._statements.run(frame, statement)
            case Exchange():
                self._exchange(item)
            case PhaseTest():
                self._phase_test(item)
            case BlockMeeting(position):
                self._give_way(MEETS, "waits at a barrier that other threads do not reach", position, "0")
            case ClusterMeeting(barrier):
                self._cluster_barrier(barrier)
            case PlannedIf():
                self._if(item)
            case PlannedLoop():
                self._loop(item)
            case PlannedCall():
                self._call(item)

    # Code that each thread runs independently.

    def _region(self, region: Region) -> None:
        parallel = not any(
            touches_one(statement.value if isinstance(statement, Bind) else statement, self._memory.apart(frame))
            for frame, statement in region.statements
        )

        def run() -> None:
            for frame, statement in region.statements:
                self._statements.run(frame, statement)

        after = self._run_in_strips(region, run) if parallel else ""
        strip = self._block.strip(region.statements) if parallel else 0
        self._masks.each_thread(run, parallel=parallel, strip=strip)
        if after:
            self._asm.place(after)
        if takes_out(region):
            self._masks.recount()

    def _run_in_strips(self, region: Region, run: Callable[[], None]) -> str:
        """Write loops over strips before the general loop; return the label after both, or "" if there are none."""
        asm, strips = self._asm, self._expressions.strips
        versions = strips.versions(region) if asm.instructions <= LONG and not takes_out(region) else []
        after = asm.fresh("after") if versions else ""
        for version in versions:
            test, inside, other = (asm.fresh(part) for part in ("asked", "strips", "other"))
            asm.branch(self._masks.everyone_takes_part(), test, other)
            asm.place(test)
            asm.branch(strips.holds(version), inside, other)
            asm.place(inside)
            with strips.within(version), self._block.each_thread(strip=version.threads):
                run()
            asm.jump(after)
            asm.place(other)
        return after

    def _exchange(self, item: Exchange) -> None:
        """Write the computation of each thread's arguments, then their exchange."""
        expression = item.expression
        arguments: list[Given] = []
        computed_per_thread: list[tuple[ir.Expression, Scalar, int]] = []
        for number, argument in enumerate(expression.arguments):
            kind = argument.type
            assert isinstance(kind, Scalar)
            array_offset = self._memory.kept_at(item.frame, argument)
            if item.agreed[number] and not exchanges.takes_places(expression.op, number):
                arguments.append(Given(kind, self._expressions.scalar(item.frame, argument)))
            elif self._is_vector(item, number):
                arguments.append(Given(kind, partial(self._vectors.value, item.frame, argument)))
            elif array_offset is not None:
                arguments.append(Given(kind, array_offset))
            else:
                offset = self._scratch.take((item, number), kind.size)
                arguments.append(Given(kind, offset))
                computed_per_thread.append((argument, kind, offset))

        def compute_arguments() -> None:
            for argument, kind, offset in computed_per_thread:
                place = self._scratch.element(offset, kind.size, self._block.thread)
                self._memory.store(place, kind, self._expressions.value(item.frame, argument))

        if computed_per_thread:
            split_slots = self._memory.apart(item.frame)
            parallel = not any(touches_one(argument, split_slots) for argument in expression.arguments)
            self._masks.each_thread(compute_arguments, parallel=parallel)
        lanes = ExchangeLanes(self._asm, self._block, self._scratch, self._memory, self._masks, item, arguments)
        exchanges.write(lanes, expression.op, expression.type)

    def _is_vector(self, item: Exchange, number: int) -> bool:
        """Return whether the exchange computes an argument for all lanes of a warp at once."""
        if self._warp is not None or not exchanges.takes_vectors(item.expression.op):
            return False
        return self._vectors.holds(item.frame, item.expression.arguments[number])

    def _phase_test(self, item: PhaseTest) -> None:
        """Write one test per thread; if any fails, other warps run before the next test."""
        asm, expression = self._asm, item.expression
        assert self._warp is not None
        waiting = asm.alloca(8, "waiting")
        asm.emit(f"store i64 -1, ptr {waiting}")

        def test_phase() -> None:
            assert self._warp is not None
            is_complete = self._expressions.phases.is_over(item.frame, expression)
            place = self._memory.variable(item.frame, item.slot, expression.type)
            self._memory.store(place, expression.type, is_complete)
            succeeds, waits, after = asm.fresh("found"), asm.fresh("waits"), asm.fresh("after")
            asm.branch(is_complete, succeeds, waits)
            asm.place(succeeds)
            self._warp.goes_on()
            asm.jump(after)
            asm.place(waits)
            asm.emit(f"store i64 {self._block.thread}, ptr {waiting}")
            asm.place(after)

        self._masks.each_thread(test_phase, parallel=False)
        waiting_thread = asm.value(f"load i64, ptr {waiting}")
        with asm.when(asm.value(f"icmp sge i64 {waiting_thread}, 0")):
            self._give_way(
                POLLS, "waits for a phase of a barrier that does not end", expression.position, waiting_thread
            )

    def _cluster_barrier(self, barrier: ir.ClusterBarrier) -> None:
        assert self._warp is not None
        if barrier.part == "arrive":
            self._warp.arrive()
            return
        failure_text = "waits at the cluster barrier, which other threads do not reach"
        with self._asm.when(self._warp.is_ahead()):
            self._give_way(GATHERS, failure_text, barrier.position, "0")

    def _give_way(self, reason: int, failure_text: str, position: SourcePosition, thread: str) -> None:
        """Let other warps run; if that cannot help, end the launch with a failure of a thread."""
        asm = self._asm
        assert self._warp is not None
        with asm.when(self._warp.give_way(reason)):
            self._memory.fail(ThreadFailure(failure_text, position, "endless", _ADVICE), self._block.index_of(thread))

    # Code that the block runs, for all of its threads or under a mask.

    def _if(self, item: PlannedIf) -> None:
        asm, masks = self._asm, self._masks
        if item.uniform:
            labels = [asm.fresh(part) for part in ("then", "else", "after")]
            asm.branch(self._holds(item), labels[0], labels[1])
            for label, side in ((labels[0], item.then), (labels[1], item.orelse)):
                asm.place(label)
                self.run(side or [])
                asm.jump(labels[2])
            asm.place(labels[2])
            return
        then, orelse = (masks.new(asm.fresh("after")) for _ in range(2))
        others = orelse if item.orelse is not None else None
        masks.split(lambda: self._holds(item), then, others, self._corners.everywhere(item.frame, item.condition))
        for mask, side in ((then, item.then), (orelse, item.orelse)):
            if side is not None:
                if mask is orelse:
                    masks.recount(mask)
                with masks.within(mask):
                    masks.go_on()
                    self.run(side)
                asm.place(mask.skip)

    def _loop(self, item: PlannedLoop) -> None:
        asm, masks = self._asm, self._masks
        test, body, step, end = (asm.fresh(part) for part in ("test", "body", "step", "end"))
        if item.uniform:
            asm.jump(test if item.tests_first else body)
            asm.place(test)
            self.run(item.before)
            if item.condition is not None:
                asm.branch(self._holds(item), body, end)
            asm.place(body)
            self.run(item.body)
            self.run(item.step)
            asm.jump(test)
            asm.place(end)
            return
        continues = any("continue" in jumps(part) for part in all_statements(item.body) if not isinstance(part, Bind))
        mask = masks.new(step, of_loop=True)
        masks.inherit(mask)
        with masks.within(mask):
            asm.jump(test if item.tests_first else body)
            asm.place(test)
            if continues:
                masks.reconverge(mask)
            self.run(item.before)
            if item.condition is not None:
                everywhere = self._corners.everywhere(item.frame, item.condition)
                masks.split(lambda: self._holds(item), mask, everywhere=everywhere)
            asm.branch(masks.is_someone(mask), body, end)
            asm.place(body)
            self.run(item.body)
            asm.place(step)
            if item.step:
                if continues:
                    masks.reconverge(mask)
                self.run(item.step)
            asm.jump(test)
            asm.place(end)

    def _call(self, item: PlannedCall) -> None:
        mask = self._masks.new(self._asm.fresh("returned"), function=item.frame.path)
        self._masks.inherit(mask)
        with self._masks.within(mask):
            self.run(item.body)
        self._asm.place(mask.skip)

    def _holds(self, item: PlannedIf | PlannedLoop) -> str:
        """Return whether an item's condition is true for the current thread."""
        assert item.condition is not None
        return self._expressions.scalar(item.frame, item.condition)
