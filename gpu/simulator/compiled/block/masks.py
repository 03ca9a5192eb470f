"""Masks of active threads of a block: in a branch, or in a loop or function that some threads have left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from gpu.simulator.compiled.analysis.plan import PlannedFrame
from gpu.simulator.compiled.block.scratch import ALIGNMENT, Scratch
from gpu.simulator.compiled.block.thread_block import ThreadBlock
from gpu.simulator.compiled.llvm.assembly import Assembly

MAX_SPECIALIZED_INSTRUCTIONS = 3000
"""Instructions of a kernel after which no loop gets a second version for the case that the first threads are active;
compiling this many instructions takes about a second."""


@dataclass(eq=False)
class ThreadMask:
    """The active threads: a byte per thread in scratch memory, and their number."""

    bytes: int
    count: str
    end: str
    """The number after the last active thread; if it equals the count, exactly the first threads are active."""
    skip_label: str
    """The label for the case that no thread is active: the end of the masked code, or a loop's next iteration."""
    loop_bytes: int | None = None
    """For a loop, the threads still in it: `break` removes a thread from both, `continue` only from `bytes`."""
    function: str | None = None
    """For a function's body, the path of its frame: `return` removes a thread from all masks from here on."""

    @property
    def array_offsets(self) -> tuple[int, ...]:
        """The offsets of the mask's byte arrays."""
        return (self.bytes,) if self.loop_bytes is None else (self.bytes, self.loop_bytes)


class MaskStack:
    """The masks around the code that is being written, each nested in the one before."""

    def __init__(self, asm: Assembly, block: ThreadBlock, scratch: Scratch) -> None:
        self._asm = asm
        self._block = block
        self._scratch = scratch
        self._enclosing: list[ThreadMask] = []

    def create_mask(self, skip: str, *, is_loop: bool = False, function: str | None = None) -> ThreadMask:
        """Return a new, uninitialized mask."""
        return ThreadMask(
            self._scratch.allocate(object(), 1),
            self._asm.alloca(8, "count"),
            self._asm.alloca(8, "top"),
            skip,
            self._scratch.allocate(object(), 1) if is_loop else None,
            function,
        )

    @contextmanager
    def activate(self, mask: ThreadMask) -> Iterator[None]:
        """Activate only the threads of a mask in the code written inside."""
        self._enclosing.append(mask)
        yield
        self._enclosing.pop()

    @property
    def has_enclosing_mask(self) -> bool:
        """Whether there is an enclosing mask, so that threads may be inactive."""
        return bool(self._enclosing)

    # Changes of masks.

    def fill(self, mask: ThreadMask, count: str | None = None) -> None:
        """Activate all threads, or the first `count`."""
        start, threads = self._scratch.array_address(mask.bytes), self._block.threads
        if count is not None:
            self._asm.fill(start, 0, threads, align=ALIGNMENT)
        self._asm.fill(start, 1, threads if count is None else count, align=ALIGNMENT)
        for number in (mask.count, mask.end):
            self._asm.emit(f"store i64 {threads if count is None else count}, ptr {number}")

    def inherit(self, mask: ThreadMask) -> None:
        """Activate the threads that are active in the enclosing mask."""
        asm, threads = self._asm, self._block.threads
        if not self._enclosing:
            self.fill(mask)
            if mask.loop_bytes is not None:
                asm.fill(self._scratch.array_address(mask.loop_bytes), 1, threads, align=ALIGNMENT)
            return
        enclosing = self._enclosing[-1]
        for offset in mask.array_offsets:
            self._copy(enclosing.bytes, offset)
        for source, place in ((enclosing.count, mask.count), (enclosing.end, mask.end)):
            asm.emit(f"store i64 {asm.value(f'load i64, ptr {source}')}, ptr {place}")

    def reconverge(self, mask: ThreadMask) -> None:
        """Reactivate the threads that have continued a loop."""
        assert mask.loop_bytes is not None
        self._copy(mask.loop_bytes, mask.bytes)
        self._count_active(mask)

    def _copy(self, source: int, target: int) -> None:
        asm, threads = self._asm, self._block.threads
        asm.declare("void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
        places = ", ".join(f"ptr align {ALIGNMENT} {self._scratch.array_address(each)}" for each in (target, source))
        asm.emit(f"call void @llvm.memcpy.p0.p0.i64({places}, i64 {threads}, i1 false)")

    def split(
        self,
        condition: Callable[[], str],
        mask: ThreadMask,
        others: ThreadMask | None = None,
        uniform_test: Callable[[], str] | None = None,
    ) -> None:
        """Keep the active threads for which a condition holds.

        In the common case that the first threads are active, one loop does this, which LLVM can vectorize.

        Parameters
        ----------
        condition : callable
            Writes the evaluation of the condition in the current thread; returns its value, an i1.
        mask : ThreadMask
            Receives the active threads for which the condition holds.
        others : ThreadMask or None
            Receives the other active threads, which are not counted; None if they are not needed.
        uniform_test : callable or None
            Writes a test whether the condition holds for all threads; returns an i1. If it is true and all threads are
            active, all stay active. None if there is no such test.
        """
        asm = self._asm
        if self._enclosing and asm.instructions > MAX_SPECIALIZED_INSTRUCTIONS:
            self._split_each_thread(condition, mask, others)
            return
        first, some, after = asm.new_name("first"), asm.new_name("some"), asm.new_name("after")
        if uniform_test is not None:
            self._split_uniform(uniform_test, mask, others, after)
        are_first, number = self._are_first_active()
        asm.branch(are_first, first, some)
        asm.begin_block(first)
        if number is not None:
            rest = asm.value(f"sub i64 {self._block.threads}, {number}")
            for offset in (*mask.array_offsets, *((others.bytes,) if others is not None else ())):
                asm.fill(asm.offset(self._scratch.array_address(offset), number), 0, rest)
        with self._count_threads(mask) as count, self._block.loop_over_threads(first=number):
            holds = condition()
            for offset in mask.array_offsets:
                self._set_flag(offset, holds)
            if others is not None:
                self._set_flag(others.bytes, asm.value(f"xor i1 {holds}, true"))
            count(holds)
        asm.jump(after)
        asm.begin_block(some)
        if self._enclosing:
            self._split_each_thread(condition, mask, others)
        asm.jump(after)
        asm.begin_block(after)

    def _split_each_thread(self, condition: Callable[[], str], mask: ThreadMask, others: ThreadMask | None) -> None:
        """Test for each thread whether it is active, and only then the condition."""
        asm = self._asm
        with self._count_threads(mask) as count, self._block.loop_over_threads():
            is_active = self.is_active()
            holds = self._is_true_and_active(condition, is_active)
            for offset in mask.array_offsets:
                self._set_flag(offset, holds)
            if others is not None:
                self._set_flag(others.bytes, asm.value(f"and i1 {asm.value(f'xor i1 {holds}, true')}, {is_active}"))
            count(holds)

    def _split_uniform(
        self, uniform_test: Callable[[], str], mask: ThreadMask, others: ThreadMask | None, after: str
    ) -> None:
        """Keep all threads together if all are active and the condition is known to hold for all of them."""
        asm = self._asm
        all_true, not_all_true = asm.new_name("whole"), asm.new_name("parted")
        if self._enclosing:
            all_active = asm.new_name("asked")
            asm.branch(self.are_all_active(), all_active, not_all_true)
            asm.begin_block(all_active)
        asm.branch(uniform_test(), all_true, not_all_true)
        asm.begin_block(all_true)
        if not self._enclosing or mask is not self._enclosing[-1]:
            self.fill(mask)
        if others is not None:
            asm.fill(self._scratch.array_address(others.bytes), 0, self._block.threads, align=ALIGNMENT)
        asm.jump(after)
        asm.begin_block(not_all_true)

    def write_jump(self, frame: PlannedFrame, kind: str) -> None:
        """Write the deactivation of a thread by `break`, `continue` or `return`."""
        asm = self._asm
        if kind == "return":
            targets = [number for number, mask in enumerate(self._enclosing) if mask.function == frame.path]
        else:
            targets = [number for number, mask in enumerate(self._enclosing) if mask.loop_bytes is not None]
        for mask in self._enclosing[max(targets, default=0) :]:
            for offset in mask.array_offsets if kind != "continue" else (mask.bytes,):
                asm.emit(f"store i8 0, ptr {self._flag_address(offset)}{self._block.access}")
        asm.jump(self._block.latch)

    def _is_true_and_active(self, condition: Callable[[], str], is_active: str) -> str:
        """Return whether a thread is active and a condition holds for it; only active threads compute it."""
        asm = self._asm
        result = asm.alloca(1, "holds")
        asm.emit(f"store i1 false, ptr {result}")
        with asm.execute_if(is_active):
            asm.emit(f"store i1 {condition()}, ptr {result}")
        return asm.value(f"load i1, ptr {result}")

    def _set_flag(self, offset: int, bit: str) -> None:
        wide = self._asm.value(f"zext i1 {bit} to i8")
        self._asm.emit(f"store i8 {wide}, ptr {self._flag_address(offset)}{self._block.access}")

    def _flag_address(self, offset: int) -> str:
        return self._scratch.element_address(offset, 1, self._block.thread)

    # Counts of active threads.

    def recount(self, mask: ThreadMask | None = None) -> None:
        """Count the threads of a mask again, or those of all enclosing masks."""
        for each in self._enclosing if mask is None else (mask,):
            self._count_active(each)

    def _count_active(self, mask: ThreadMask) -> None:
        asm = self._asm
        with self._count_threads(mask) as count, self._block.loop_over_thread_numbers():
            count(asm.value(f"icmp ne i8 {asm.value(f'load i8, ptr {self._flag_address(mask.bytes)}')}, 0"))

    @contextmanager
    def _count_threads(self, mask: ThreadMask) -> Iterator[Callable[[str], None]]:
        """Yield a function that registers whether a thread is active in a mask; the count is stored at the end."""
        asm = self._asm
        total, top = asm.alloca(4, "total"), asm.alloca(4, "highest")
        for each in (total, top):
            asm.emit(f"store i32 0, ptr {each}")
        asm.declare("i32 @llvm.umax.i32(i32, i32)")

        def count(takes_part: str) -> None:
            asm.update(total, "i32", "add", asm.value(f"zext i1 {takes_part} to i32"))
            if self._block.is_one_dimensional:
                number = asm.value(f"trunc nuw nsw i64 {self._block.thread} to i32")
                after = asm.value(f"add nuw nsw i32 {number}, 1")
                chosen = asm.value(f"select i1 {takes_part}, i32 {after}, i32 0")
                highest = asm.value(f"load i32, ptr {top}")
                asm.emit(f"store i32 {asm.value(f'call i32 @llvm.umax.i32(i32 {highest}, i32 {chosen})')}, ptr {top}")

        yield count
        for number, place in ((total, mask.count), (top, mask.end)):
            total_value = asm.value(f"load i32, ptr {number}")
            asm.emit(f"store i64 {asm.value(f'zext i32 {total_value} to i64')}, ptr {place}")

    # Queries.

    @property
    def may_have_inactive(self) -> bool:
        """Whether threads may be inactive."""
        return bool(self._enclosing)

    def is_active(self) -> str:
        """Return whether the current thread is active."""
        if not self._enclosing:
            return "true"
        flag = self._asm.value(f"load i8, ptr {self._flag_address(self._enclosing[-1].bytes)}{self._block.access}")
        return self._asm.value(f"icmp ne i8 {flag}, 0")

    def are_all_active(self) -> str:
        """Return whether all threads of the block are active."""
        if not self._enclosing:
            return "true"
        count = self._asm.value(f"load i64, ptr {self._enclosing[-1].count}")
        return self._asm.value(f"icmp eq i64 {count}, {self._block.threads}")

    def active_flags_address(self, first: str) -> str | None:
        """Return the address of the active flags, a byte each, from a thread on; None if all threads are active."""
        if not self._enclosing:
            return None
        return self._scratch.element_address(self._enclosing[-1].bytes, 1, first)

    def is_any_active(self, mask: ThreadMask) -> str:
        """Return whether any thread is active."""
        return self._asm.value(f"icmp ne i64 {self._asm.value(f'load i64, ptr {mask.count}')}, 0")

    def skip_if_empty(self) -> None:
        """Skip the code that follows if no thread is active; otherwise a loop might not end."""
        not_empty = self._asm.new_name("here")
        self._asm.branch(self.is_any_active(self._enclosing[-1]), not_empty, self._enclosing[-1].skip_label)
        self._asm.begin_block(not_empty)

    def _are_first_active(self) -> tuple[str, str | None]:
        """Return whether the active threads are the first ones, and their number, None for all.

        In a block that is not one-dimensional, the first threads may not fill whole rows, so all must be active.
        """
        if not self._enclosing:
            return "true", None
        mask = self._enclosing[-1]
        count = self._asm.value(f"load i64, ptr {mask.count}")
        if not self._block.is_one_dimensional:
            return self._asm.value(f"icmp eq i64 {count}, {self._block.threads}"), None
        return self._asm.value(f"icmp eq i64 {count}, {self._asm.value(f'load i64, ptr {mask.end}')}"), count

    # Loops over active threads.

    def loop_over_threads(self, write: Callable[[], None], *, parallel: bool, strip: int = 0) -> None:
        """Run code for the active threads, in a separate loop for the case that these are the first ones."""
        block = self._block
        if not self._enclosing:
            with block.loop_over_threads(parallel=parallel, strip=strip):
                write()
            return
        asm = self._asm
        if asm.instructions > MAX_SPECIALIZED_INSTRUCTIONS:
            self._each_active_thread(write, parallel=parallel)
            return
        are_first, number = self._are_first_active()
        for are_all in asm.iterate_sides(self.are_all_active()) if strip else (False,):
            if are_all:
                with block.loop_over_threads(parallel=parallel, strip=strip):
                    write()
                continue
            for is_first in asm.iterate_sides(are_first):
                if is_first:
                    with block.loop_over_threads(parallel=parallel, first=number):
                        write()
                else:
                    self._each_active_thread(write, parallel=parallel)

    def _each_active_thread(self, write: Callable[[], None], *, parallel: bool) -> None:
        """Run code for the active threads, in a loop over all threads that tests each."""
        asm = self._asm
        with self._block.loop_over_threads(parallel=parallel):
            inside = asm.new_name("active")
            asm.branch(self.is_active(), inside, self._block.latch)
            asm.begin_block(inside)
            write()

    @contextmanager
    def loop_over_lanes(self) -> Iterator[str]:
        """Execute the code written inside for every thread's number up to the last active thread."""
        block, last = self._block, str(self._block.threads)
        if self._enclosing and block.is_one_dimensional:
            last = self._asm.value(f"load i64, ptr {self._enclosing[-1].end}")
        with block.loop_over_lanes(last) as thread:
            yield thread
