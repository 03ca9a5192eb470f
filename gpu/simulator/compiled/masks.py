"""Which threads of a block take part where they have parted: in a branch, a loop or a function that some have left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from gpu.simulator.compiled.assembly import Assembly
from gpu.simulator.compiled.plan import PlannedFrame
from gpu.simulator.compiled.scratch import ALIGNMENT, Scratch
from gpu.simulator.compiled.thread_block import ThreadBlock

LONG = 3000
"""Instructions of a kernel after which no loop is written twice, for the first threads and for any: it takes a second
to make machine code of so many."""


@dataclass(eq=False)
class ThreadMask:
    """Which threads take part: a byte for each in the scratch memory, and how many they are."""

    bytes: int
    count: str
    top: str
    """The number after that of the last one: where it is the count, the first threads take part and no others."""
    skip: str
    """Where to go on when nobody is left: at the end of what the mask is of, in a loop at its next round."""
    stays: int | None = None
    """Of a loop, the threads that are still in it: `break` takes a thread out of both, `continue` of `bytes` alone."""
    function: str | None = None
    """Of a function's body, the path of its frame: `return` takes a thread out of all masks from here on."""

    @property
    def arrays(self) -> tuple[int, ...]:
        """The offsets of its bytes for each thread."""
        return (self.bytes,) if self.stays is None else (self.bytes, self.stays)


class MaskStack:
    """The masks that are around what is being written, each within the one before.

    Parameters
    ----------
    asm : Assembly
    block : ThreadBlock
    scratch : Scratch
    """

    def __init__(self, asm: Assembly, block: ThreadBlock, scratch: Scratch) -> None:
        self._asm = asm
        self._block = block
        self._scratch = scratch
        self._around: list[ThreadMask] = []

    def new(self, skip: str, *, of_loop: bool = False, function: str | None = None) -> ThreadMask:
        """Return a mask that nobody has filled yet."""
        return ThreadMask(
            self._scratch.take(object(), 1),
            self._asm.alloca(8, "count"),
            self._asm.alloca(8, "top"),
            skip,
            self._scratch.take(object(), 1) if of_loop else None,
            function,
        )

    @contextmanager
    def within(self, mask: ThreadMask) -> Iterator[None]:
        """Let only the threads of a mask take part in what is written inside."""
        self._around.append(mask)
        yield
        self._around.pop()

    @property
    def some_may_be_out(self) -> bool:
        """Whether there is a mask around, so that threads may not take part."""
        return bool(self._around)

    # Who takes part.

    def fill(self, mask: ThreadMask, count: str | None = None) -> None:
        """Let all threads take part, or so many of the first ones."""
        start, threads = self._scratch.address(mask.bytes), self._block.threads
        if count is not None:
            self._asm.fill(start, 0, threads, align=ALIGNMENT)
        self._asm.fill(start, 1, threads if count is None else count, align=ALIGNMENT)
        for number in (mask.count, mask.top):
            self._asm.emit(f"store i64 {threads if count is None else count}, ptr {number}")

    def inherit(self, mask: ThreadMask) -> None:
        """Let those take part that take part in what is around."""
        asm, threads = self._asm, self._block.threads
        if not self._around:
            self.fill(mask)
            if mask.stays is not None:
                asm.fill(self._scratch.address(mask.stays), 1, threads, align=ALIGNMENT)
            return
        around = self._around[-1]
        for offset in mask.arrays:
            self._copy(around.bytes, offset)
        for known, place in ((around.count, mask.count), (around.top, mask.top)):
            asm.emit(f"store i64 {asm.value(f'load i64, ptr {known}')}, ptr {place}")

    def reconverge(self, mask: ThreadMask) -> None:
        """Let those that continued a loop take part again."""
        assert mask.stays is not None
        self._copy(mask.stays, mask.bytes)
        self._count(mask)

    def _copy(self, source: int, to: int) -> None:
        asm, threads = self._asm, self._block.threads
        asm.declare("void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
        places = ", ".join(f"ptr align {ALIGNMENT} {self._scratch.address(each)}" for each in (to, source))
        asm.emit(f"call void @llvm.memcpy.p0.p0.i64({places}, i64 {threads}, i1 false)")

    def split(
        self,
        condition: Callable[[], str],
        mask: ThreadMask,
        others: ThreadMask | None = None,
        everywhere: Callable[[], str] | None = None,
    ) -> None:
        """Let those take part that do so already and for whom a condition holds, and in `others` those for whom not.

        Where the first threads take part, which is the common case, one loop does it, of a kind that LLVM makes vector
        code of. Where all do, `everywhere` may tell at once that all go on. `others` are not counted.
        """
        asm = self._asm
        if self._around and asm.instructions > LONG:
            self._split_some(condition, mask, others)
            return
        first, some, after = asm.fresh("first"), asm.fresh("some"), asm.fresh("after")
        if everywhere is not None:
            self._split_none(everywhere, mask, others, after)
        are_first, number = self._first_take_part()
        asm.branch(are_first, first, some)
        asm.place(first)
        if number is not None:
            rest = asm.value(f"sub i64 {self._block.threads}, {number}")
            for offset in (*mask.arrays, *((others.bytes,) if others is not None else ())):
                asm.fill(asm.offset(self._scratch.address(offset), number), 0, rest)
        with self._counted(mask) as count, self._block.each_thread(first=number):
            holds = condition()
            for offset in mask.arrays:
                self._set(offset, holds)
            if others is not None:
                self._set(others.bytes, asm.value(f"xor i1 {holds}, true"))
            count(holds)
        asm.jump(after)
        asm.place(some)
        if self._around:
            self._split_some(condition, mask, others)
        asm.jump(after)
        asm.place(after)

    def _split_some(self, condition: Callable[[], str], mask: ThreadMask, others: ThreadMask | None) -> None:
        """Ask each thread whether it takes part, and if so for the condition."""
        asm = self._asm
        with self._counted(mask) as count, self._block.each_thread():
            here = self.takes_part()
            holds = self._holds(condition, here)
            for offset in mask.arrays:
                self._set(offset, holds)
            if others is not None:
                self._set(others.bytes, asm.value(f"and i1 {asm.value(f'xor i1 {holds}, true')}, {here}"))
            count(holds)

    def _split_none(
        self, everywhere: Callable[[], str], mask: ThreadMask, others: ThreadMask | None, after: str
    ) -> None:
        """Where all threads take part and a condition surely holds for all of them, they go on together."""
        asm = self._asm
        whole, parted = asm.fresh("whole"), asm.fresh("parted")
        if self._around:
            asked = asm.fresh("asked")
            asm.branch(self.everyone_takes_part(), asked, parted)
            asm.place(asked)
        asm.branch(everywhere(), whole, parted)
        asm.place(whole)
        if not self._around or mask is not self._around[-1]:
            self.fill(mask)
        if others is not None:
            asm.fill(self._scratch.address(others.bytes), 0, self._block.threads, align=ALIGNMENT)
        asm.jump(after)
        asm.place(parted)

    def leave(self, frame: PlannedFrame, kind: str) -> None:
        """Write that the thread takes part no more, from a `break`, a `continue` or a `return` on."""
        asm = self._asm
        if kind == "return":
            left = [number for number, mask in enumerate(self._around) if mask.function == frame.path]
        else:
            left = [number for number, mask in enumerate(self._around) if mask.stays is not None]
        for mask in self._around[max(left, default=0) :]:
            for offset in mask.arrays if kind != "continue" else (mask.bytes,):
                asm.emit(f"store i8 0, ptr {self._flag(offset)}{self._block.access}")
        asm.jump(self._block.latch)

    def _holds(self, condition: Callable[[], str], here: str) -> str:
        """Return whether a thread takes part and a condition holds for it; only those that take part compute it."""
        asm = self._asm
        result = asm.alloca(1, "holds")
        asm.emit(f"store i1 false, ptr {result}")
        with asm.when(here):
            asm.emit(f"store i1 {condition()}, ptr {result}")
        return asm.value(f"load i1, ptr {result}")

    def _set(self, offset: int, bit: str) -> None:
        wide = self._asm.value(f"zext i1 {bit} to i8")
        self._asm.emit(f"store i8 {wide}, ptr {self._flag(offset)}{self._block.access}")

    def _flag(self, offset: int) -> str:
        return self._scratch.element(offset, 1, self._block.thread)

    # How many they are.

    def recount(self, mask: ThreadMask | None = None) -> None:
        """Count the threads of a mask anew, or of all that are around."""
        for each in self._around if mask is None else (mask,):
            self._count(each)

    def _count(self, mask: ThreadMask) -> None:
        asm = self._asm
        with self._counted(mask) as count, self._block.each_number():
            count(asm.value(f"icmp ne i8 {asm.value(f'load i8, ptr {self._flag(mask.bytes)}')}, 0"))

    @contextmanager
    def _counted(self, mask: ThreadMask) -> Iterator[Callable[[str], None]]:
        """Give what takes note of whether a thread takes part in a mask; they are counted in the end."""
        asm = self._asm
        total, top = asm.alloca(4, "total"), asm.alloca(4, "highest")
        for each in (total, top):
            asm.emit(f"store i32 0, ptr {each}")
        asm.declare("i32 @llvm.umax.i32(i32, i32)")

        def count(takes_part: str) -> None:
            asm.update(total, "i32", "add", asm.value(f"zext i1 {takes_part} to i32"))
            if self._block.in_line:
                number = asm.value(f"trunc nuw nsw i64 {self._block.thread} to i32")
                after = asm.value(f"add nuw nsw i32 {number}, 1")
                chosen = asm.value(f"select i1 {takes_part}, i32 {after}, i32 0")
                highest = asm.value(f"load i32, ptr {top}")
                asm.emit(f"store i32 {asm.value(f'call i32 @llvm.umax.i32(i32 {highest}, i32 {chosen})')}, ptr {top}")

        yield count
        for number, place in ((total, mask.count), (top, mask.top)):
            summed = asm.value(f"load i32, ptr {number}")
            asm.emit(f"store i64 {asm.value(f'zext i32 {summed} to i64')}, ptr {place}")

    # Asking.

    @property
    def parted(self) -> bool:
        """Whether there may be threads that take no part."""
        return bool(self._around)

    def takes_part(self) -> str:
        """Return whether the thread that is written takes part."""
        if not self._around:
            return "true"
        flag = self._asm.value(f"load i8, ptr {self._flag(self._around[-1].bytes)}{self._block.access}")
        return self._asm.value(f"icmp ne i8 {flag}, 0")

    def everyone_takes_part(self) -> str:
        """Return whether all threads of the block take part."""
        if not self._around:
            return "true"
        count = self._asm.value(f"load i64, ptr {self._around[-1].count}")
        return self._asm.value(f"icmp eq i64 {count}, {self._block.threads}")

    def flags(self, first: str) -> str | None:
        """Return the address of whether threads take part, a byte each, from one on; None where all do."""
        if not self._around:
            return None
        return self._scratch.element(self._around[-1].bytes, 1, first)

    def is_someone(self, mask: ThreadMask) -> str:
        """Return whether any thread takes part."""
        return self._asm.value(f"icmp ne i64 {self._asm.value(f'load i64, ptr {mask.count}')}, 0")

    def go_on(self) -> None:
        """Run what follows only where someone is left for it: a loop may end for nobody."""
        here = self._asm.fresh("here")
        self._asm.branch(self.is_someone(self._around[-1]), here, self._around[-1].skip)
        self._asm.place(here)

    def _first_take_part(self) -> tuple[str, str | None]:
        """Return whether the threads that take part are the first ones, and how many they are, None for all.

        Where the block is not a line, the first threads do not fill whole rows of it, and all must take part.
        """
        if not self._around:
            return "true", None
        mask = self._around[-1]
        count = self._asm.value(f"load i64, ptr {mask.count}")
        if not self._block.in_line:
            return self._asm.value(f"icmp eq i64 {count}, {self._block.threads}"), None
        return self._asm.value(f"icmp eq i64 {count}, {self._asm.value(f'load i64, ptr {mask.top}')}"), count

    # Loops over them.

    def each_thread(self, write: Callable[[], None], *, parallel: bool, strip: int = 0) -> None:
        """Let the threads that take part run something: in one loop where these are the first, in another elsewhere."""
        block = self._block
        if not self._around:
            with block.each_thread(parallel=parallel, strip=strip):
                write()
            return
        asm = self._asm
        if asm.instructions > LONG:
            self._each_of_some(write, parallel=parallel)
            return
        are_first, number = self._first_take_part()
        first, some, after = asm.fresh("first"), asm.fresh("some"), asm.fresh("after")
        if strip:
            every, not_every = asm.fresh("every"), asm.fresh("not.every")
            asm.branch(self.everyone_takes_part(), every, not_every)
            asm.place(every)
            with block.each_thread(parallel=parallel, strip=strip):
                write()
            asm.jump(after)
            asm.place(not_every)
        asm.branch(are_first, first, some)
        asm.place(first)
        with block.each_thread(parallel=parallel, first=number):
            write()
        asm.jump(after)
        asm.place(some)
        self._each_of_some(write, parallel=parallel)
        asm.jump(after)
        asm.place(after)

    def _each_of_some(self, write: Callable[[], None], *, parallel: bool) -> None:
        """Let the threads that take part run something, in a loop over all that asks each whether it does."""
        asm = self._asm
        with self._block.each_thread(parallel=parallel):
            inside = asm.fresh("active")
            asm.branch(self.takes_part(), inside, self._block.latch)
            asm.place(inside)
            write()

    @contextmanager
    def each_lane(self) -> Iterator[str]:
        """Run what is written inside for the number of every thread, up to the last that takes part."""
        block, last = self._block, str(self._block.threads)
        if self._around and block.in_line:
            last = self._asm.value(f"load i64, ptr {self._around[-1].top}")
        with block.each_lane(last) as thread:
            yield thread
