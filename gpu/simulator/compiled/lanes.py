"""The threads of a block where they exchange values: what each gave, and what it gets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from gpu.simulator.compiled.assembly import Assembly, memory_type, value_type
from gpu.simulator.compiled.masks import MaskStack
from gpu.simulator.compiled.memory import KernelMemory, ThreadFailure
from gpu.simulator.compiled.plan import Exchange
from gpu.simulator.compiled.scratch import Scratch
from gpu.simulator.compiled.thread_block import ThreadBlock
from gpu.simulator.types import BOOL, Scalar
from gpu.warp import WARP

_BITS = f"<{WARP} x i1>"
_NUMBERS = ", ".join(f"i32 {lane}" for lane in range(WARP))


@dataclass(frozen=True)
class Given:
    """An argument of an exchange: what all threads give, the offset of an array with the value of each, or what writes
    the vector of those of a warp from a thread on, of bools a bit each.
    """

    type: Scalar
    value: str | int | Callable[[str], str]


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
        assert isinstance(given.value, int)
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

    @contextmanager
    def each_warp(self) -> Iterator[WarpVector]:
        """Run what is written inside for every warp, whose lanes are the elements of vectors."""
        with self.asm.loop(-(-self.threads // WARP), "warp", self.asm.not_unrolled) as (warp, _):
            yield WarpVector(self, "0" if warp == "0" else self.asm.value(f"mul nuw nsw i64 {warp}, {WARP}"))

    def flags(self, first: str) -> str | None:
        """Return the address of whether threads take part, a byte each, from one on; None where all do."""
        return self._masks.flags(first)

    def vector(self, number: int) -> Callable[[str], str] | None:
        """Return what writes the vector of what a warp's lanes gave; None where that is kept, or all gave the same."""
        value = self._arguments[number].value
        return None if isinstance(value, str | int) else value

    def place(self, number: int, thread: str) -> str:
        """Return the address of what a thread gave, where threads differ."""
        given = self._arguments[number]
        assert isinstance(given.value, int)
        return self._scratch.element(given.value, given.type.size, thread)

    def result(self, first: str) -> str | None:
        """Return the address of the results from a thread on; None where nobody asks for them."""
        type = self._item.expression.type
        if not self._memory.is_wide(self._item.frame, self._item.slot):
            return None
        with self._block.as_thread(first):
            return self._memory.variable(self._item.frame, self._item.slot, type)

    @property
    def type(self) -> Scalar:
        """What each thread gets."""
        return self._item.expression.type


class WarpVector:
    """The lanes of one warp in an exchange, in vectors of 32 elements: also those that the last warp of a block lacks.

    Parameters
    ----------
    lanes : ExchangeLanes
    first : str
        The number of the warp's first thread, an i64.

    Attributes
    ----------
    first : str
    """

    def __init__(self, lanes: ExchangeLanes, first: str) -> None:
        self._lanes = lanes
        self._asm = lanes.asm
        self.first = first

    def takes_part(self) -> str:
        """Return which lanes there are, are here, and are named by the mask that they give, where there is one."""
        asm, lanes = self._asm, self._lanes
        found = "splat (i1 true)"
        if lanes.threads % WARP:
            left = asm.value(f"trunc i64 {asm.value(f'sub i64 {lanes.threads}, {self.first}')} to i32")
            found = asm.value(f"icmp sgt <{WARP} x i32> {self._splat(left, 'i32')}, <{_NUMBERS}>")
        flags = lanes.flags(self.first)
        if flags is not None:
            here = asm.value(f"load <{WARP} x i8>, ptr {flags}, align {WARP}")
            found = asm.value(f"and {_BITS} {found}, {asm.value(f'icmp ne <{WARP} x i8> {here}, splat (i8 0)')}")
        if lanes.has(0):
            shifted = asm.value(f"lshr <{WARP} x i32> {self.argument(0)}, <{_NUMBERS}>")
            found = asm.value(f"and {_BITS} {found}, {asm.value(f'trunc <{WARP} x i32> {shifted} to {_BITS}')}")
        return found

    def argument(self, number: int) -> str:
        """Return what the lanes gave; a bool is a byte."""
        asm, what = self._asm, memory_type(self._lanes.kind(number))
        write = self._lanes.vector(number)
        if write is not None:
            vector = write(self.first)
            return asm.value(f"zext {_BITS} {vector} to <{WARP} x i8>") if self._is_bool(number) else vector
        agreed = self._lanes.agreed(number)
        if agreed is None:
            place = self._lanes.place(number, self.first)
            return asm.value(f"load <{WARP} x {what}>, ptr {place}, align {WARP}")
        if self._is_bool(number):
            agreed = asm.value(f"zext i1 {agreed} to i8")
        return self._splat(agreed, what)

    def _is_bool(self, number: int) -> bool:
        return self._lanes.kind(number) == BOOL

    def holds(self, number: int) -> str:
        """Return for which lanes what they gave is true."""
        kind = self._lanes.kind(number)
        many = f"<{WARP} x {memory_type(kind)}>"
        given = self.argument(number)
        test = (
            f"fcmp une {many} {given}, zeroinitializer" if kind.is_float else f"icmp ne {many} {given}, zeroinitializer"
        )
        return self._asm.value(test)

    def give(self, value: str) -> None:
        """Let all lanes have the same result."""
        place, what = self._lanes.result(self.first), value_type(self._lanes.type)
        if place is not None:
            # In a register once: LLVM would rather copy the bits of a vote from mask to mask, and store those.
            value = self._asm.value(f'call {what} asm "", "=r,0"({what} {value})')
            self._asm.emit(f"store <{WARP} x {what}> {self._splat(value, what)}, ptr {place}, align {WARP}")

    def _splat(self, value: str, what: str) -> str:
        many = f"<{WARP} x {what}>"
        one = self._asm.value(f"insertelement {many} poison, {what} {value}, i64 0")
        return self._asm.value(f"shufflevector {many} {one}, {many} poison, <{WARP} x i32> zeroinitializer")
