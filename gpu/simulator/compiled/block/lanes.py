"""The threads of a block in an exchange: the values that they pass, and the results that they get."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from gpu.base.warp import WARP
from gpu.simulator.compiled.analysis.plan import Exchange
from gpu.simulator.compiled.block.masks import MaskStack
from gpu.simulator.compiled.block.memory import KernelMemory, ThreadFailure
from gpu.simulator.compiled.block.scratch import Scratch
from gpu.simulator.compiled.block.thread_block import ThreadBlock
from gpu.simulator.compiled.llvm.assembly import Assembly, memory_type, value_type
from gpu.simulator.types import BOOL, Scalar

_BITS = f"<{WARP} x i1>"
_NUMBERS = ", ".join(f"i32 {lane}" for lane in range(WARP))


@dataclass(frozen=True)
class ExchangeArgument:
    """An argument of an exchange.

    `value` is the value that all threads pass, or the offset of an array with one value per thread, or a function that
    writes the vector of a warp's values from its first thread on; bools are one bit each.
    """

    type: Scalar
    value: str | int | Callable[[str], str]


class ExchangeLanes:
    """The threads of a block in one exchange, by number, an i64.

    Attributes
    ----------
    threads : int
        Threads per block.
    """

    def __init__(
        self,
        asm: Assembly,
        block: ThreadBlock,
        scratch: Scratch,
        memory: KernelMemory,
        masks: MaskStack,
        item: Exchange,
        arguments: Sequence[ExchangeArgument],
    ) -> None:
        self.asm = asm
        self.threads = block.threads
        self._block = block
        self._scratch = scratch
        self._memory = memory
        self._masks = masks
        self._item = item
        self._arguments = arguments

    def uniform_argument(self, number: int) -> str | None:
        """Return the value that all threads pass; None if they may differ."""
        value = self._arguments[number].value
        return value if isinstance(value, str) else None

    def loop_over_threads(self) -> AbstractContextManager[str]:
        """Execute the code written inside for every thread's number, including inactive threads."""
        return self._masks.loop_over_lanes()

    def argument(self, number: int, thread: str) -> str:
        """Return the value that a thread passes."""
        argument = self._arguments[number]
        if isinstance(argument.value, str):
            return argument.value
        assert isinstance(argument.value, int)
        value = self._memory.load(
            self._scratch.element_address(argument.value, argument.type.size, thread), argument.type
        )
        assert isinstance(value, str)
        return value

    @property
    def argument_count(self) -> int:
        """The number of arguments."""
        return len(self._arguments)

    def has_argument(self, number: int) -> bool:
        """Return whether the exchange has an argument with this number, counted from 0."""
        return number < len(self._arguments)

    def argument_type(self, number: int) -> Scalar:
        """Return the type of an argument."""
        return self._arguments[number].type

    @property
    def are_all_active(self) -> bool:
        """Whether all threads of the block are known to be active."""
        return not self._masks.has_enclosing_mask

    def fail(self, text: str, thread: str) -> None:
        """End the launch like a thread that finds an assertion false."""
        failure = ThreadFailure(f"finds the assertion `{text}` false", self._item.expression.position, "assertion")
        self._memory.fail(failure, self._block.index_of(thread))

    def is_active(self, thread: str) -> str:
        """Return whether a thread is active."""
        with self._block.select_thread(thread):
            return self._masks.is_active()

    def store_result(self, thread: str, value: str) -> None:
        """Store a thread's result."""
        type = self._item.expression.type
        with self._block.select_thread(thread):
            self._memory.store(self._memory.variable_address(self._item.frame, self._item.slot, type), type, value)

    @contextmanager
    def loop_over_warps(self) -> Iterator[WarpVector]:
        """Execute the code written inside for every warp; its lanes are the elements of vectors."""
        with self.asm.loop(-(-self.threads // WARP), "warp", self.asm.no_unroll_metadata) as (warp, _):
            yield WarpVector(self, "0" if warp == "0" else self.asm.value(f"mul nuw nsw i64 {warp}, {WARP}"))

    @contextmanager
    def loop_over_active(self) -> Iterator[str]:
        """Execute the code written inside for every active thread; yield its number."""
        with self.asm.loop(self.threads, "lane", self.asm.no_unroll_metadata) as (thread, after):
            active = self.asm.new_name("active")
            self.asm.branch(self.is_active(thread), active, after)
            self.asm.begin_block(active)
            yield thread

    def active_flags_address(self, first: str) -> str | None:
        """Return the address of the active flags, a byte each, from a thread on; None if all threads are active."""
        return self._masks.active_flags_address(first)

    def vector_writer(self, number: int) -> Callable[[str], str] | None:
        """Return the function that writes a warp's vector of an argument; None if it is stored or uniform."""
        value = self._arguments[number].value
        return None if isinstance(value, str | int) else value

    def argument_address(self, number: int, thread: str) -> str:
        """Return the address of a thread's argument that is not uniform."""
        argument = self._arguments[number]
        assert isinstance(argument.value, int)
        return self._scratch.element_address(argument.value, argument.type.size, thread)

    def result_address(self, first: str) -> str | None:
        """Return the address of the results from a thread on; None if they are not used."""
        type = self._item.expression.type
        if not self._memory.is_wide(self._item.frame, self._item.slot):
            return None
        with self._block.select_thread(first):
            return self._memory.variable_address(self._item.frame, self._item.slot, type)

    @property
    def result_type(self) -> Scalar:
        """The type of each thread's result."""
        return self._item.expression.type


class WarpVector:
    """The lanes of one warp in an exchange, as vectors of 32 elements, including lanes that a partial warp lacks.

    Parameters
    ----------
    first : str
        The number of the warp's first thread, an i64.
    """

    def __init__(self, lanes: ExchangeLanes, first: str) -> None:
        self._lanes = lanes
        self._asm = lanes.asm
        self.first = first

    def participating_lanes(self) -> str:
        """Return the lanes that exist, are active, and are named by the mask that they pass, if there is one."""
        asm, lanes = self._asm, self._lanes
        active = "splat (i1 true)"
        if lanes.threads % WARP:
            remaining = asm.value(f"trunc i64 {asm.value(f'sub i64 {lanes.threads}, {self.first}')} to i32")
            active = asm.value(f"icmp sgt <{WARP} x i32> {self._splat(remaining, 'i32')}, <{_NUMBERS}>")
        flags = lanes.active_flags_address(self.first)
        if flags is not None:
            active_flags = asm.value(f"load <{WARP} x i8>, ptr {flags}, align {WARP}")
            active = asm.value(
                f"and {_BITS} {active}, {asm.value(f'icmp ne <{WARP} x i8> {active_flags}, splat (i8 0)')}"
            )
        if lanes.has_argument(0):
            shifted = asm.value(f"lshr <{WARP} x i32> {self.argument_vector(0)}, <{_NUMBERS}>")
            active = asm.value(f"and {_BITS} {active}, {asm.value(f'trunc <{WARP} x i32> {shifted} to {_BITS}')}")
        return active

    def argument_vector(self, number: int) -> str:
        """Return the vector of an argument; a bool is a byte."""
        asm, llvm_type = self._asm, memory_type(self._lanes.argument_type(number))
        write = self._lanes.vector_writer(number)
        if write is not None:
            vector = write(self.first)
            return asm.value(f"zext {_BITS} {vector} to <{WARP} x i8>") if self._is_bool(number) else vector
        uniform_value = self._lanes.uniform_argument(number)
        if uniform_value is None:
            address = self._lanes.argument_address(number, self.first)
            return asm.value(f"load <{WARP} x {llvm_type}>, ptr {address}, align {WARP}")
        if self._is_bool(number):
            uniform_value = asm.value(f"zext i1 {uniform_value} to i8")
        return self._splat(uniform_value, llvm_type)

    def _is_bool(self, number: int) -> bool:
        return self._lanes.argument_type(number) == BOOL

    def true_lanes(self, number: int) -> str:
        """Return the lanes for which an argument is true."""
        kind = self._lanes.argument_type(number)
        vector_type = f"<{WARP} x {memory_type(kind)}>"
        values = self.argument_vector(number)
        test = (
            f"fcmp une {vector_type} {values}, zeroinitializer"
            if kind.is_float
            else f"icmp ne {vector_type} {values}, zeroinitializer"
        )
        return self._asm.value(test)

    def store_result(self, value: str) -> None:
        """Store the same result for all lanes."""
        place, llvm_type = self._lanes.result_address(self.first), value_type(self._lanes.result_type)
        if place is not None:
            # Force the value into a register; otherwise LLVM copies a vote's bits from mask to mask and stores those.
            value = self._asm.value(f'call {llvm_type} asm "", "=r,0"({llvm_type} {value})')
            self._asm.emit(f"store <{WARP} x {llvm_type}> {self._splat(value, llvm_type)}, ptr {place}, align {WARP}")

    def _splat(self, value: str, llvm_type: str) -> str:
        vector_type = f"<{WARP} x {llvm_type}>"
        one = self._asm.value(f"insertelement {vector_type} poison, {llvm_type} {value}, i64 0")
        return self._asm.value(
            f"shufflevector {vector_type} {one}, {vector_type} poison, <{WARP} x i32> zeroinitializer"
        )
