"""Warps that go their own ways: each is a coroutine of LLVM's, which gives way where it waits for others of its block.

The function `warp` is the kernel for the lanes of one warp; `kernel` lets the warps of a block go on in turns until all
have come to their end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import llvmlite.binding as llvm

from gpu.simulator.compiled.assembly import Assembly
from gpu.simulator.compiled.thread_block import ThreadBlock
from gpu.warp import WARP

POLLS, MEETS = 1, 2
"""What a warp waits for: it asks for a phase again, or all other warps of its block come to the barrier."""

_STUCK = -1
"""In the place of what is counted of progress: whoever still waits does so for ever."""
_FRUITLESS = 1 << 16
"""So often all warps may ask in vain: a loop that asks may do something else after some times."""

_SIGNATURE = (
    "ptr noalias %scratch, ptr %shared, ptr %args, i64 %number, i64 %warp, i32 %gx, i32 %gy, i32 %gz, "
    "ptr %state, ptr %progress"
)
_ENDS, _CLEANS, _SUSPENDED = "ends", "cleans", "suspended"


class WarpThreads(ThreadBlock):
    """The lanes of one warp of a block; the number of a thread is that of its lane."""

    def __init__(self, asm: Assembly, shape: Sequence[int]) -> None:
        super().__init__(asm, shape)
        self.of_block = self.threads
        self.threads, self.in_line = WARP, True

    @property
    def warps(self) -> int:
        """The warps of a block."""
        return -(-self.of_block // WARP)

    @property
    def count(self) -> str | None:
        """How many lanes are threads, an i64; None for all, in every warp."""
        if not self.of_block % WARP:
            return None
        self._asm.declare("i64 @llvm.smin.i64(i64, i64)")
        left = self._asm.value(f"sub i64 {self.of_block}, {self._asm.value(f'mul i64 %warp, {WARP}')}")
        return self._asm.value(f"call i64 @llvm.smin.i64(i64 {left}, i64 {WARP})")

    def index_of(self, thread: str) -> list[str]:
        """Return threadIdx of a lane."""
        first = self._asm.value(f"mul nuw nsw i64 %warp, {WARP}")
        return super().index_of(self._asm.value(f"add nuw nsw i64 {first}, {thread}"))

    def strip(self, statements: object) -> int:
        """Return 0: a warp is no row of its block."""
        return 0

    @contextmanager
    def each_thread(self, *, parallel: bool = True, first: str | None = None, strip: int = 0) -> Iterator[None]:
        """Run what is written inside for every lane, or for so many of the first ones."""
        marks = self._independently() if parallel else []
        outer = (self.thread, self._thread_index, self.latch)
        with self._asm.loop(first if first is not None else WARP, "lane", *marks) as (lane, latch):
            self.thread, self.latch = lane, latch
            self._thread_index = self.index_of(lane)
            yield
        self.thread, self._thread_index, self.latch = outer
        self.access = ""


class WarpCoroutine:
    """The function `warp`, while it is written."""

    def __init__(self, asm: Assembly) -> None:
        self._asm = asm
        asm.way_out = f"br label %{_ENDS}"
        self.end = _ENDS

    def give_way(self, reason: int) -> str:
        """Let other warps go on, and return whether what this one waits for can never come, an i1."""
        asm = self._asm
        asm.emit(f"store i64 {reason}, ptr %state")
        self._suspend()
        asm.emit("store i64 0, ptr %state")
        return asm.value(f"icmp eq i64 {asm.value('load i64, ptr %progress')}, {_STUCK}")

    def goes_on(self) -> None:
        """Take note that somebody has found what was waited for."""
        self._asm.update("%progress", "i64", "add", "1")

    def begin(self) -> None:
        """Wait for the first turn."""
        self._suspend()

    def text(self, parameters: Sequence[str]) -> str:
        """Return the function; `parameters` are the instructions that fetch them."""
        asm = self._asm
        for signature in (
            "token @llvm.coro.id(i32, ptr, ptr, ptr)",
            "i64 @llvm.coro.size.i64()",
            "ptr @llvm.coro.begin(token, ptr)",
            "i8 @llvm.coro.suspend(token, i1)",
            "ptr @llvm.coro.free(token, ptr)",
            "ptr @malloc(i64)",
            "void @free(ptr)",
        ):
            asm.declare(signature)
        lines = [
            f"define internal ptr @warp({_SIGNATURE}) presplitcoroutine nounwind {{",
            "entry:",
            *asm.entry,
            "  %coroutine = call token @llvm.coro.id(i32 16, ptr null, ptr null, ptr null)",
            "  %frame.size = call i64 @llvm.coro.size.i64()",
            "  %frame.memory = call ptr @malloc(i64 %frame.size)",
            "  %frame = call ptr @llvm.coro.begin(token %coroutine, ptr %frame.memory)",
            *parameters,
            "  br label %start",
            "start:",
            *asm.lines,
            f"  br label %{_ENDS}",
            f"{_ENDS}:",
            "  %last = call i8 @llvm.coro.suspend(token none, i1 true)",
            f"  switch i8 %last, label %{_SUSPENDED} [ i8 1, label %{_CLEANS} ]",
            f"{_CLEANS}:",
            "  %frame.freed = call ptr @llvm.coro.free(token %coroutine, ptr %frame)",
            "  call void @free(ptr %frame.freed)",
            f"  br label %{_SUSPENDED}",
            f"{_SUSPENDED}:",
            f"  {self._end()}",
            "  ret ptr %frame",
            "}",
        ]
        return "\n".join(lines)

    def _suspend(self) -> None:
        asm = self._asm
        resumed = asm.fresh("resumed")
        how = asm.value("call i8 @llvm.coro.suspend(token none, i1 false)")
        asm.emit(f"switch i8 {how}, label %{_SUSPENDED} [ i8 0, label %{resumed} i8 1, label %{_CLEANS} ]")
        asm.ended = True
        asm.place(resumed)

    def _end(self) -> str:
        """Declare what marks a coroutine's end, which LLVM has changed twice, and return its call."""
        version = llvm.llvm_version_info[0]
        kind, token = ("void" if version >= 22 else "i1"), (version >= 17)
        self._asm.declare(f"{kind} @llvm.coro.end(ptr, i1{', token' if token else ''})")
        return f"call {kind} @llvm.coro.end(ptr %frame, i1 false{', token none' if token else ''})"


@dataclass(frozen=True)
class WarpTurns:
    """What lets the warps of a block go on in turns: the function `kernel`, written with the metadata of another one.

    Parameters
    ----------
    warps : int
        Those of a block.
    scratch_bytes : int
        What each of them has.
    failed : int
        Which of the arguments is the variable that takes word of a failure.
    """

    warps: int
    scratch_bytes: int
    failed: int

    def text(self, signature: str, asm: Assembly) -> str:
        """Return the function."""
        own = Assembly()
        own.metadata, own.declared = asm.metadata, asm.declared
        for each in ("void @llvm.coro.resume(ptr)", "void @llvm.coro.destroy(ptr)", "i1 @llvm.coro.done(ptr)"):
            own.declare(each)
        failed = own.value(f"load ptr, ptr {own.offset('%args', 8 * self.failed)}")
        handles, states = own.alloca(8 * self.warps, "handles"), own.alloca(8 * self.warps, "states")
        progress, before = own.alloca(8, "progress"), own.alloca(8, "before")
        fruitless = own.alloca(8, "fruitless")
        with own.loop("%blocks", "block", own.not_unrolled) as (index, _):
            number = own.value(f"add nsw i64 %first, {index}")
            own.fill(states, 0, 8 * self.warps)
            for each in (progress, before, fruitless):
                own.emit(f"store i64 0, ptr {each}")
            with own.loop(self.warps, "warp", own.not_unrolled) as (warp, _):
                scratch = own.offset("%scratch", own.value(f"mul i64 {warp}, {self.scratch_bytes}"))
                given = (
                    f"ptr {scratch}, ptr %shared, ptr %args, i64 {number}, i64 {warp}, i32 %gx, i32 %gy, i32 %gz, "
                    f"ptr {_element(own, states, warp)}, ptr {progress}"
                )
                handle = own.value(f"call ptr @warp({given})")
                own.emit(f"store ptr {handle}, ptr {_element(own, handles, warp)}")
            over = self._rounds(own, handles, states, progress, before, fruitless, failed)
            own.place(over)
            with own.loop(self.warps, "warp", own.not_unrolled) as (warp, _):
                handle = own.value(f"load ptr, ptr {_element(own, handles, warp)}")
                own.emit(f"call void @llvm.coro.destroy(ptr {handle})")
        lines = [
            f"define void @kernel({signature}) nounwind {{",
            "entry:",
            *own.entry,
            "  br label %start",
            "start:",
            *own.lines,
            "  ret void",
            "}",
        ]
        return "\n".join(lines)

    def _rounds(
        self, own: Assembly, handles: str, states: str, progress: str, before: str, fruitless: str, failed: str
    ) -> str:
        """Let each warp go on that need not wait, again and again; return where to go on when none is left."""
        again, over, judge = own.fresh("again"), own.fresh("over"), own.fresh("judge")
        left, meeting = own.alloca(8, "left"), own.alloca(8, "meeting")
        own.place(again)
        for each in (left, meeting):
            own.emit(f"store i64 0, ptr {each}")
        with own.loop(self.warps, "warp", own.not_unrolled) as (warp, skip):
            handle = own.value(f"load ptr, ptr {_element(own, handles, warp)}")
            alive, waits, goes = own.fresh("alive"), own.fresh("waits"), own.fresh("goes")
            own.branch(own.value(f"call i1 @llvm.coro.done(ptr {handle})"), skip, alive)
            own.place(alive)
            own.update(left, "i64", "add", "1")
            state = own.value(f"load i64, ptr {_element(own, states, warp)}")
            own.branch(own.value(f"icmp eq i64 {state}, {MEETS}"), waits, goes)
            own.place(waits)
            own.update(meeting, "i64", "add", "1")
            own.jump(skip)
            own.place(goes)
            own.emit(f"call void @llvm.coro.resume(ptr {handle})")
            own.branch(own.value(f"icmp eq i64 {own.value(f'load i64, ptr {failed}')}, 0"), skip, over)
            own.ended = True
        alive = own.value(f"load i64, ptr {left}")
        own.branch(own.value(f"icmp eq i64 {alive}, 0"), over, judge)
        own.place(judge)
        # Who has come since to where the others are is counted in the next round.
        with own.when(own.value(f"icmp eq i64 {own.value(f'load i64, ptr {meeting}')}, {alive}")):
            own.fill(states, 0, 8 * self.warps)
            own.update(progress, "i64", "add", "1")
        reached, known = own.value(f"load i64, ptr {progress}"), own.value(f"load i64, ptr {before}")
        own.emit(f"store i64 {reached}, ptr {before}")
        count = own.value(f"add i64 {own.value(f'load i64, ptr {fruitless}')}, 1")
        stands = own.value(f"icmp eq i64 {reached}, {known}")
        count = own.value(f"select i1 {stands}, i64 {count}, i64 0")
        own.emit(f"store i64 {count}, ptr {fruitless}")
        with own.when(own.value(f"icmp sgt i64 {count}, {_FRUITLESS}")):
            own.fill(states, 0, 8 * self.warps)
            own.emit(f"store i64 {_STUCK}, ptr {progress}")
        own.jump(again)
        return over


def _element(asm: Assembly, array: str, index: str) -> str:
    return asm.value(f"getelementptr i64, ptr {array}, i64 {index}", "p")
