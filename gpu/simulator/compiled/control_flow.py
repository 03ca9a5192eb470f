"""The control flow of a block: write the items of a kernel's plan, one after the other, under the enclosing masks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from gpu.base.errors import SourcePosition
from gpu.simulator import ir
from gpu.simulator.compiled.analysis.plan import (
    Bind,
    BlockBarrier,
    ClusterBarrierStep,
    Exchange,
    Item,
    PhaseTest,
    Plan,
    PlannedCall,
    PlannedIf,
    PlannedLoop,
    Region,
    UniformAssignment,
    accesses_common_memory,
    all_statements,
    jump_kinds,
    may_leave,
)
from gpu.simulator.compiled.block.coroutines import WAITS_FOR_BLOCK, WAITS_FOR_CLUSTER, WAITS_FOR_PHASE, WarpCoroutine
from gpu.simulator.compiled.block.lanes import ExchangeArgument, ExchangeLanes
from gpu.simulator.compiled.block.masks import MAX_SPECIALIZED_INSTRUCTIONS, MaskStack
from gpu.simulator.compiled.block.memory import KernelMemory, ThreadFailure
from gpu.simulator.compiled.block.scratch import Scratch
from gpu.simulator.compiled.block.thread_block import ThreadBlock
from gpu.simulator.compiled.llvm.assembly import Assembly
from gpu.simulator.compiled.thread import exchanges
from gpu.simulator.compiled.thread.corners import CornerTests
from gpu.simulator.compiled.thread.statements import StatementWriter, build_repetition_failure, count_repetition
from gpu.simulator.compiled.thread.warp_vectors import WarpVectors
from gpu.simulator.types import Scalar

_ADVICE = "Check the arrivals and bytes of copies that each phase expects; every counted thread must arrive."


class ControlFlow:
    """Writes the code of a block.

    Parameters
    ----------
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
        self._corners = CornerTests(self._expressions.thread)

    def write_plan(self, items: Plan) -> None:
        """Write the items of a plan."""
        start = len(self._asm.lines)
        can_outline = not self._asm.is_terminated
        for item in items:
            self._item(item)
            if self._masks.may_have_inactive and may_leave(item):
                self._masks.skip_if_empty()
            if can_outline:
                start = self._asm.outline(start)

    def _item(self, item: Item) -> None:
        match item:
            case Region(statements):
                if statements:
                    self._region(item)
            case UniformAssignment(frame, statement):
                self._statements.write_statement(frame, statement)
            case Exchange():
                self._exchange(item)
            case PhaseTest():
                self._phase_test(item)
            case BlockBarrier(position):
                self._yield_to_other_warps(
                    WAITS_FOR_BLOCK, "waits at a barrier that other threads do not reach", position, "0"
                )
            case ClusterBarrierStep(barrier):
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
            accesses_common_memory(
                statement.value if isinstance(statement, Bind) else statement, self._memory.find_split_slots(frame)
            )
            for frame, statement in region.statements
        )

        def run() -> None:
            for frame, statement in region.statements:
                self._statements.write_statement(frame, statement)

        after = self._write_strips(region, run) if parallel else ""
        strip = self._block.find_strip_length(region.statements) if parallel else 0
        self._masks.loop_over_threads(run, parallel=parallel, strip=strip)
        if after:
            self._asm.begin_block(after)
        if may_leave(region):
            self._masks.recount()

    def _write_strips(self, region: Region, run: Callable[[], None]) -> str:
        """Write loops over strips before the general loop; return the label after both, or "" if there are none."""
        asm, strips = self._asm, self._expressions.strips
        versions = (
            strips.find_versions(region)
            if asm.instructions <= MAX_SPECIALIZED_INSTRUCTIONS and not may_leave(region)
            else []
        )
        after = asm.new_name("after") if versions else ""
        for version in versions:
            test, inside, other = (asm.new_name(part) for part in ("asked", "strips", "other"))
            asm.branch(self._masks.are_all_active(), test, other)
            asm.begin_block(test)
            asm.branch(strips.write_assumption_test(version), inside, other)
            asm.begin_block(inside)
            with strips.use_version(version), self._block.loop_over_threads(strip=version.threads):
                run()
            asm.jump(after)
            asm.begin_block(other)
        return after

    def _exchange(self, item: Exchange) -> None:
        """Write the computation of each thread's arguments, then their exchange."""
        expression = item.expression
        arguments: list[ExchangeArgument] = []
        computed_per_thread: list[tuple[ir.Expression, Scalar, int]] = []
        for number, argument in enumerate(expression.arguments):
            kind = argument.type
            assert isinstance(kind, Scalar)
            array_offset = self._memory.find_wide_offset(item.frame, argument)
            if item.uniform_arguments[number] and not exchanges.needs_addresses(expression.op, number):
                arguments.append(ExchangeArgument(kind, self._expressions.scalar(item.frame, argument)))
            elif self._is_vector(item, number):
                arguments.append(ExchangeArgument(kind, partial(self._vectors.value, item.frame, argument)))
            elif array_offset is not None:
                arguments.append(ExchangeArgument(kind, array_offset))
            else:
                offset = self._scratch.allocate((item, number), kind.size)
                arguments.append(ExchangeArgument(kind, offset))
                computed_per_thread.append((argument, kind, offset))

        def compute_arguments() -> None:
            for argument, kind, offset in computed_per_thread:
                address = self._scratch.element_address(offset, kind.size, self._block.thread)
                self._memory.store(address, kind, self._expressions.value(item.frame, argument))

        if computed_per_thread:
            split_slots = self._memory.find_split_slots(item.frame)
            parallel = not any(accesses_common_memory(argument, split_slots) for argument in expression.arguments)
            self._masks.loop_over_threads(compute_arguments, parallel=parallel)
        lanes = ExchangeLanes(self._asm, self._block, self._scratch, self._memory, self._masks, item, arguments)
        exchanges.write_exchange(lanes, expression.op, expression.type)

    def _is_vector(self, item: Exchange, number: int) -> bool:
        """Return whether the exchange computes an argument for all lanes of a warp at once."""
        if self._warp is not None or not exchanges.reads_vectors(item.expression.op):
            return False
        return self._vectors.is_supported(item.frame, item.expression.arguments[number])

    def _phase_test(self, item: PhaseTest) -> None:
        """Write one test per thread; if any fails, other warps run before the next test."""
        asm, expression = self._asm, item.expression
        assert self._warp is not None
        waiting = asm.alloca(8, "waiting")
        asm.emit(f"store i64 -1, ptr {waiting}")

        def test_phase() -> None:
            assert self._warp is not None
            is_complete = self._expressions.phases.write_test(item.frame, expression)
            address = self._memory.variable_address(item.frame, item.slot, expression.type)
            self._memory.store(address, expression.type, is_complete)
            for succeeds in asm.iterate_sides(is_complete):
                if succeeds:
                    self._warp.count_progress()
                else:
                    asm.emit(f"store i64 {self._block.thread}, ptr {waiting}")

        self._masks.loop_over_threads(test_phase, parallel=False)
        waiting_thread = asm.value(f"load i64, ptr {waiting}")
        with asm.execute_if(asm.value(f"icmp sge i64 {waiting_thread}, 0")):
            self._yield_to_other_warps(
                WAITS_FOR_PHASE, "waits for a phase of a barrier that does not end", expression.position, waiting_thread
            )

    def _cluster_barrier(self, barrier: ir.ClusterBarrier) -> None:
        assert self._warp is not None
        if barrier.part == "arrive":
            self._warp.count_arrival()
            return
        failure_text = "waits at the cluster barrier, which other threads do not reach"
        with self._asm.execute_if(self._warp.is_ahead()):
            self._yield_to_other_warps(WAITS_FOR_CLUSTER, failure_text, barrier.position, "0")

    def _yield_to_other_warps(self, reason: int, failure_text: str, position: SourcePosition, thread: str) -> None:
        """Let other warps run; if that cannot help, end the launch with a failure of a thread."""
        asm = self._asm
        assert self._warp is not None
        with asm.execute_if(self._warp.suspend_warp(reason)):
            self._memory.fail(ThreadFailure(failure_text, position, "endless", _ADVICE), self._block.index_of(thread))

    # Code that the block runs, for all of its threads or under a mask.

    def _if(self, item: PlannedIf) -> None:
        asm, masks = self._asm, self._masks
        if item.is_uniform:
            for holds in asm.iterate_sides(self._condition_value(item)):
                self.write_plan((item.then if holds else item.orelse) or [])
            return
        then, orelse = (masks.create_mask(asm.new_name("after")) for _ in range(2))
        others = orelse if item.orelse is not None else None
        masks.split(
            lambda: self._condition_value(item),
            then,
            others,
            self._corners.build_uniform_test(item.frame, item.condition),
        )
        for mask, side in ((then, item.then), (orelse, item.orelse)):
            if side is not None:
                if mask is orelse:
                    masks.recount(mask)
                with masks.activate(mask):
                    masks.skip_if_empty()
                    self.write_plan(side)
                asm.begin_block(mask.skip_label)

    def _loop(self, item: PlannedLoop) -> None:
        asm, masks = self._asm, self._masks
        test, body, step, end = (asm.new_name(part) for part in ("test", "body", "step", "end"))
        iterations = asm.alloca(8, "iterations") if item.repetition is not None else ""
        if iterations:
            asm.emit(f"store i64 0, ptr {iterations}")
        if item.is_uniform:
            asm.jump(test if item.tests_first else body)
            asm.begin_block(test)
            self.write_plan(item.condition_plan)
            if item.condition is not None:
                asm.branch(self._condition_value(item), body, end)
            asm.begin_block(body)
            self.write_plan(item.body)
            self.write_plan(item.step)
            self._limit_repetitions(item, iterations)
            asm.jump(test)
            asm.begin_block(end)
            return
        continues = any(
            "continue" in jump_kinds(part) for part in all_statements(item.body) if not isinstance(part, Bind)
        )
        mask = masks.create_mask(step, is_loop=True)
        masks.inherit(mask)
        with masks.activate(mask):
            asm.jump(test if item.tests_first else body)
            asm.begin_block(test)
            if continues:
                masks.reconverge(mask)
            self.write_plan(item.condition_plan)
            if item.condition is not None:
                everywhere = self._corners.build_uniform_test(item.frame, item.condition)
                masks.split(lambda: self._condition_value(item), mask, uniform_test=everywhere)
            asm.branch(masks.is_any_active(mask), body, end)
            asm.begin_block(body)
            self.write_plan(item.body)
            asm.begin_block(step)
            if item.step:
                if continues:
                    masks.reconverge(mask)
                self.write_plan(item.step)
            self._limit_repetitions(item, iterations)
            asm.jump(test)
            asm.begin_block(end)

    def _limit_repetitions(self, item: PlannedLoop, iterations: str) -> None:
        """Count an iteration of a loop that repeats itself; end the launch if it may be endless."""
        if item.repetition is None:
            return
        asm = self._asm
        with asm.execute_if(count_repetition(asm, iterations)):
            waiting = asm.alloca(8, "waiting")
            asm.emit(f"store i64 0, ptr {waiting}")
            self._masks.loop_over_threads(
                lambda: asm.emit(f"store i64 {self._block.thread}, ptr {waiting}"), parallel=False
            )
            thread = asm.value(f"load i64, ptr {waiting}")
            self._memory.fail(build_repetition_failure(item.repetition), self._block.index_of(thread))

    def _call(self, item: PlannedCall) -> None:
        mask = self._masks.create_mask(self._asm.new_name("returned"), function=item.frame.path)
        self._masks.inherit(mask)
        with self._masks.activate(mask):
            self.write_plan(item.body)
        self._asm.begin_block(mask.skip_label)

    def _condition_value(self, item: PlannedIf | PlannedLoop) -> str:
        """Return whether an item's condition is true for the current thread."""
        assert item.condition is not None
        return self._expressions.scalar(item.frame, item.condition)
