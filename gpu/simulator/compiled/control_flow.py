"""The control flow of a block: the items of a kernel's plan, one after the other, under the masks around them."""

from __future__ import annotations

from gpu.simulator.compiled import exchanges
from gpu.simulator.compiled.assembly import Assembly
from gpu.simulator.compiled.lanes import ExchangeLanes, Given
from gpu.simulator.compiled.masks import MaskStack
from gpu.simulator.compiled.memory import KernelMemory
from gpu.simulator.compiled.plan import (
    Bind,
    Exchange,
    Item,
    Once,
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
from gpu.simulator.types import Scalar


class ControlFlow:
    """Writes what a block runs.

    Parameters
    ----------
    asm : Assembly
    block : ThreadBlock
    scratch : Scratch
    memory : KernelMemory
    masks : MaskStack
    """

    def __init__(
        self, asm: Assembly, block: ThreadBlock, scratch: Scratch, memory: KernelMemory, masks: MaskStack
    ) -> None:
        self._asm = asm
        self._block = block
        self._scratch = scratch
        self._memory = memory
        self._masks = masks
        self._statements = StatementWriter(asm, block, memory, masks)
        self._expressions = self._statements.expressions

    def run(self, items: Plan) -> None:
        """Write items of a plan."""
        for item in items:
            self._item(item)
            if self._masks.parted and takes_out(item):
                self._masks.go_on()

    def _item(self, item: Item) -> None:
        match item:
            case Region(statements):
                if statements:
                    self._region(item)
            case Once(frame, statement):
                self._statements.run(frame, statement)
            case Exchange():
                self._exchange(item)
            case PlannedIf():
                self._if(item)
            case PlannedLoop():
                self._loop(item)
            case PlannedCall():
                self._called(item)

    # What threads run by themselves.

    def _region(self, region: Region) -> None:
        parallel = not any(
            touches_one(statement.value if isinstance(statement, Bind) else statement, self._memory.apart(frame))
            for frame, statement in region.statements
        )

        def run() -> None:
            for frame, statement in region.statements:
                self._statements.run(frame, statement)

        strip = self._block.strip(region.statements) if parallel else 0
        self._masks.each_thread(run, parallel=parallel, strip=strip)
        if takes_out(region):
            self._masks.recount()

    def _exchange(self, item: Exchange) -> None:
        """Let each thread compute its arguments, then exchange them."""
        expression = item.expression
        kinds: list[Scalar] = []
        offsets: list[int] = []
        for number, argument in enumerate(expression.arguments):
            assert isinstance(argument.type, Scalar)
            kinds.append(argument.type)
            offsets.append(self._scratch.take((item, number), argument.type.size))
        given = [
            Given(kind, self._expressions.scalar(item.frame, argument) if agreed else offset)
            for argument, kind, offset, agreed in zip(expression.arguments, kinds, offsets, item.agreed, strict=True)
        ]

        def give_arguments() -> None:
            for argument, kind, offset, agreed in zip(expression.arguments, kinds, offsets, item.agreed, strict=True):
                if not agreed:
                    place = self._scratch.element(offset, kind.size, self._block.thread)
                    self._memory.store(place, kind, self._expressions.value(item.frame, argument))

        apart = self._memory.apart(item.frame)
        parallel = not any(touches_one(argument, apart) for argument in expression.arguments)
        self._masks.each_thread(give_arguments, parallel=parallel)
        lanes = ExchangeLanes(self._asm, self._block, self._scratch, self._memory, self._masks, item, given)
        exchanges.write(lanes, expression.op, expression.type)

    # What the block runs, for all of its threads or under a mask.

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
        masks.split(lambda: self._holds(item), then, orelse if item.orelse is not None else None)
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
                masks.split(lambda: self._holds(item), mask)
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

    def _called(self, item: PlannedCall) -> None:
        mask = self._masks.new(self._asm.fresh("returned"), function=item.frame.path)
        self._masks.inherit(mask)
        with self._masks.within(mask):
            self.run(item.body)
        self._asm.place(mask.skip)

    def _holds(self, item: PlannedIf | PlannedLoop) -> str:
        """Return whether the condition of an item holds for the thread that is written."""
        assert item.condition is not None
        return self._expressions.scalar(item.frame, item.condition)
