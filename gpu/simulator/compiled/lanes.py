"""The threads of a block where they exchange values: what each gave, and what it gets."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from gpu.simulator.compiled.assembly import Assembly
from gpu.simulator.compiled.masks import MaskStack
from gpu.simulator.compiled.memory import KernelMemory, ThreadFailure
from gpu.simulator.compiled.plan import Exchange
from gpu.simulator.compiled.scratch import Scratch
from gpu.simulator.compiled.thread_block import ThreadBlock
from gpu.simulator.types import Scalar


@dataclass(frozen=True)
class Given:
    """An argument of an exchange: what all threads give, or the offset of an array with the value of each."""

    type: Scalar
    value: str | int


class ExchangeLanes:
    """The threads of a block in one exchange, by their number, which is an i64.

    Parameters
    ----------
    asm : Assembly
    block : ThreadBlock
    scratch : Scratch
    memory : KernelMemory
    masks : MaskStack
    item : Exchange
    arguments : sequence of Given

    Attributes
    ----------
    threads : int
        How many threads the block has.
    """

    def __init__(
        self,
        asm: Assembly,
        block: ThreadBlock,
        scratch: Scratch,
        memory: KernelMemory,
        masks: MaskStack,
        item: Exchange,
        arguments: Sequence[Given],
    ) -> None:
        self.asm = asm
        self.threads = block.threads
        self._block = block
        self._scratch = scratch
        self._memory = memory
        self._masks = masks
        self._item = item
        self._arguments = arguments

    def agreed(self, number: int) -> str | None:
        """Return what all threads gave, None where they may differ."""
        value = self._arguments[number].value
        return value if isinstance(value, str) else None

    def each(self) -> AbstractContextManager[str]:
        """Run what is written inside for the number of every thread, also of those that do not take part."""
        return self._masks.each_lane()

    def argument(self, number: int, thread: str) -> str:
        """Return what a thread gave."""
        given = self._arguments[number]
        if isinstance(given.value, str):
            return given.value
        value = self._memory.load(self._scratch.element(given.value, given.type.size, thread), given.type)
        assert isinstance(value, str)
        return value

    @property
    def arguments(self) -> int:
        """How many arguments threads gave."""
        return len(self._arguments)

    def has(self, number: int) -> bool:
        """Whether threads gave so many arguments, counted from 0."""
        return number < len(self._arguments)

    def kind(self, number: int) -> Scalar:
        """Return the type of what threads gave."""
        return self._arguments[number].type

    @property
    def everyone_is_here(self) -> bool:
        """Whether all threads of the block surely take part."""
        return not self._masks.some_may_be_out

    def fail(self, text: str, thread: str) -> None:
        """End the launch as a thread that finds an assertion false does."""
        failure = ThreadFailure(f"finds the assertion `{text}` false", self._item.expression.position, "assertion")
        self._memory.fail(failure, self._block.index_of(thread))

    def here(self, thread: str) -> str:
        """Return whether a thread takes part."""
        with self._block.as_thread(thread):
            return self._masks.takes_part()

    def give(self, thread: str, value: str) -> None:
        """Let a thread have its result."""
        type = self._item.expression.type
        with self._block.as_thread(thread):
            self._memory.store(self._memory.variable(self._item.frame, self._item.slot, type), type, value)
