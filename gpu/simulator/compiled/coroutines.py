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

POLLS, MEETS, GATHERS = 1, 2, 3
"""What a warp waits for: it asks for a phase again, or all other warps of its block, or of its cluster, come too."""

_STUCK = -1
"""In the place of what is counted of progress: whoever still waits does so for ever."""
_FRUITLESS = 1 << 16
"""So often all warps may ask in vain: a loop that asks may do something else after some times."""

_SIGNATURE = (
    "ptr noalias %scratch, ptr %shared, ptr %args, i64 %number, i64 %rank, i64 %warp, i32 %gx, i32 %gy, i32 %gz, "
    "ptr %state, ptr %progress, ptr %arrivals, ptr %gathered, ptr %cluster.shared, i64 %stride"
)
_ENDS, _CLEANS, _SUSPENDED = "ends", "cleans", "suspended"


class WarpThreads(ThreadBlock):
    """The lanes of one warp of a block; the number of a thread is that of its lane.

    Parameters
    ----------
    asm, shape
        As of a block.
    cluster : sequence of int
        How many blocks a cluster has along x, y and z.
    """

    def __init__(self, asm: Assembly, shape: Sequence[int], cluster: Sequence[int]) -> None:
        super().__init__(asm, shape)
        self.cluster = tuple(cluster)
        self.of_block = self.threads
        self.threads, self.in_line = WARP, True
        self._in_row = shape[0] % WARP == 0
        self._first_index: list[str] | None = None

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

    def begin(self, number: str) -> None:
        """Write what finds blockIdx from a cluster's number in the grid, and the block's rank in it."""
        asm = self._asm
        across, down = (
            asm.value(f"udiv i64 {asm.value(f'zext i32 %g{axis} to i64')}, {self.cluster[at]}")
            for at, axis in enumerate("xy")
        )
        row = asm.value(f"udiv i64 {number}, {across}")
        corner = (f"urem i64 {number}, {across}", f"urem i64 {row}, {down}", f"udiv i64 {row}, {down}")
        x, y, _ = self.cluster
        inner = asm.value(f"udiv i64 %rank, {x}")
        inside = (f"urem i64 %rank, {x}", f"urem i64 {inner}, {y}", f"udiv i64 {inner}, {y}")
        places = []
        for box, of, at in zip(corner, self.cluster, inside, strict=True):
            start = asm.value(f"mul i64 {asm.value(box)}, {of}")
            places.append(asm.value(f"add i64 {start}, {asm.value(at)}"))
        self._block_index = [asm.value(f"trunc i64 {place} to i32", "bid") for place in places]
        self._first_index = super().index_of(asm.value(f"mul nuw nsw i64 %warp, {WARP}")) if self._in_row else None

    def special(self, name: str, axis: int) -> str:
        """Return a value of threadIdx, blockIdx, blockDim, gridDim or clusterDim: i32."""
        return str(self.cluster[axis]) if name == "clusterDim" else super().special(name, axis)

    def index_of(self, thread: str) -> list[str]:
        """Return threadIdx of a lane."""
        if self._first_index is not None:
            x, *others = self._first_index
            lane = self._asm.value(f"trunc nuw nsw i64 {thread} to i32")
            return [self._asm.value(f"add nuw nsw i32 {x}, {lane}", "tid"), *others]
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

    def arrive(self) -> None:
        """Take note that the warp is at the barrier of its cluster."""
        self._asm.update("%arrivals", "i64", "add", "1")
        self.goes_on()

    def is_ahead(self) -> str:
        """Return whether the warp has arrived there and others have not, an i1."""
        asm = self._asm
        own, all_of = asm.value("load i64, ptr %arrivals"), asm.value("load i64, ptr %gathered")
        return asm.value(f"icmp sgt i64 {own}, {all_of}")

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
            *map(str, asm.lines),
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
    """What lets the warps of a cluster's blocks go on in turns: the function `kernel`.

    Parameters
    ----------
    blocks, warps : int
        How many blocks a cluster has, and warps a block.
    scratch_bytes : int
        What each warp has.
    failed : int
        Which of the arguments is the variable that takes word of a failure.
    stride : int
        Which is the one that says how far the blocks' shared memories are apart.
    """

    blocks: int
    warps: int
    scratch_bytes: int
    failed: int
    stride: int

    def text(self, signature: str, asm: Assembly) -> str:
        """Return the function, whose metadata and declarations are those of another one too."""
        own = Assembly()
        own.metadata, own.declared = asm.metadata, asm.declared
        for each in ("void @llvm.coro.resume(ptr)", "void @llvm.coro.destroy(ptr)", "i1 @llvm.coro.done(ptr)"):
            own.declare(each)
        failed = own.value(f"load ptr, ptr {own.offset('%args', 8 * self.failed)}")
        told = own.value(f"load ptr, ptr {own.offset('%args', 8 * self.stride)}")
        stride = own.value(f"load i64, ptr {told}")
        state = _TurnsState.new(own, self.blocks * self.warps, failed)
        with own.loop("%blocks", "cluster", own.not_unrolled) as (index, _):
            number = own.value(f"add nsw i64 %first, {index}")
            state.clear(own)
            with self._each_warp(own) as (block, warp, place):
                scratch = own.offset("%scratch", own.value(f"mul i64 {place}, {self.scratch_bytes}"))
                shared = own.offset("%shared", own.value(f"mul i64 {block}, {stride}"))
                given = (
                    f"ptr {scratch}, ptr {shared}, ptr %args, i64 {number}, i64 {block}, i64 {warp}, "
                    f"i32 %gx, i32 %gy, i32 %gz, ptr {_element(own, state.waits, place)}, ptr {state.progress}, "
                    f"ptr {_element(own, state.arrivals, place)}, ptr {state.gathered}, ptr %shared, i64 {stride}"
                )
                handle = own.value(f"call ptr @warp({given})")
                own.emit(f"store ptr {handle}, ptr {_element(own, state.handles, place)}")
            own.place(self._rounds(own, state))
            with self._each_warp(own) as (_, _, place):
                handle = own.value(f"load ptr, ptr {_element(own, state.handles, place)}")
                own.emit(f"call void @llvm.coro.destroy(ptr {handle})")
        lines = [
            f"define void @kernel({signature}) nounwind {{",
            "entry:",
            *own.entry,
            "  br label %start",
            "start:",
            *map(str, own.lines),
            "  ret void",
            "}",
        ]
        return "\n".join(lines)

    @contextmanager
    def _each_warp(self, own: Assembly) -> Iterator[tuple[str, str, str]]:
        """Give the block, the warp in it, and its number among those of the cluster."""
        with (
            own.loop(self.blocks, "rank", own.not_unrolled) as (block, _),
            own.loop(self.warps, "warp", own.not_unrolled) as (warp, _),
        ):
            yield block, warp, self._place(own, block, warp)

    def _place(self, own: Assembly, block: str, warp: str) -> str:
        return own.value(f"add i64 {own.value(f'mul i64 {block}, {self.warps}')}, {warp}")

    def _rounds(self, own: Assembly, state: _TurnsState) -> str:
        """Let each warp go on that need not wait, again and again; return where to go on when none is left."""
        again, over, judge = own.fresh("again"), own.fresh("over"), own.fresh("judge")
        left, here, meeting = (own.alloca(8, name) for name in ("left", "here", "meeting"))
        arrived = own.alloca(8, "arrived")
        own.place(again)
        for each in (left, arrived):
            own.emit(f"store i64 0, ptr {each}")
        with own.loop(self.blocks, "rank", own.not_unrolled) as (block, _):
            for each in (here, meeting):
                own.emit(f"store i64 0, ptr {each}")
            with own.loop(self.warps, "warp", own.not_unrolled) as (warp, skip):
                self._turn(own, state, self._place(own, block, warp), (here, meeting, arrived), skip, over)
            alive = own.value(f"load i64, ptr {here}")
            own.update(left, "i64", "add", alive)
            # Who has come since to where the others are is counted in the next round.
            met = own.value(f"icmp eq i64 {own.value(f'load i64, ptr {meeting}')}, {alive}")
            with own.when(own.value(f"and i1 {met}, {own.value(f'icmp ne i64 {alive}, 0')}")):
                own.fill(_element(own, state.waits, self._place(own, block, "0")), 0, 8 * self.warps)
                own.update(state.progress, "i64", "add", "1")
        all_left = own.value(f"load i64, ptr {left}")
        own.branch(own.value(f"icmp eq i64 {all_left}, 0"), over, judge)
        own.place(judge)
        with own.when(own.value(f"icmp eq i64 {own.value(f'load i64, ptr {arrived}')}, {all_left}")):
            own.update(state.gathered, "i64", "add", "1")
            own.update(state.progress, "i64", "add", "1")
        reached, known = own.value(f"load i64, ptr {state.progress}"), own.value(f"load i64, ptr {state.before}")
        own.emit(f"store i64 {reached}, ptr {state.before}")
        count = own.value(f"add i64 {own.value(f'load i64, ptr {state.fruitless}')}, 1")
        count = own.value(f"select i1 {own.value(f'icmp eq i64 {reached}, {known}')}, i64 {count}, i64 0")
        own.emit(f"store i64 {count}, ptr {state.fruitless}")
        with own.when(own.value(f"icmp sgt i64 {count}, {_FRUITLESS}")):
            own.fill(state.waits, 0, 8 * self.blocks * self.warps)
            own.emit(f"store i64 {_STUCK}, ptr {state.progress}")
        own.jump(again)
        return over

    def _turn(
        self, own: Assembly, state: _TurnsState, place: str, counts: tuple[str, str, str], skip: str, over: str
    ) -> None:
        """Let a warp go on, unless it has ended or waits for others."""
        here, meeting, arrived = counts
        handle = own.value(f"load ptr, ptr {_element(own, state.handles, place)}")
        alive, meets, gathers, goes = (own.fresh(name) for name in ("alive", "meets", "gathers", "goes"))
        own.branch(own.value(f"call i1 @llvm.coro.done(ptr {handle})"), skip, alive)
        own.place(alive)
        own.update(here, "i64", "add", "1")
        own_count = own.value(f"load i64, ptr {_element(own, state.arrivals, place)}")
        ahead = own.value(f"icmp sgt i64 {own_count}, {own.value(f'load i64, ptr {state.gathered}')}")
        own.update(arrived, "i64", "add", own.value(f"zext i1 {ahead} to i64"))
        reason = own.value(f"load i64, ptr {_element(own, state.waits, place)}")
        own.emit(f"switch i64 {reason}, label %{goes} [ i64 {MEETS}, label %{meets} i64 {GATHERS}, label %{gathers} ]")
        own.ended = True
        own.place(meets)
        own.update(meeting, "i64", "add", "1")
        own.jump(skip)
        own.place(gathers)
        own.branch(ahead, skip, goes)
        own.place(goes)
        own.emit(f"call void @llvm.coro.resume(ptr {handle})")
        own.branch(own.value(f"icmp eq i64 {own.value(f'load i64, ptr {state.failed}')}, 0"), skip, over)


@dataclass(frozen=True)
class _TurnsState:
    """Addresses of what is known of the warps of a cluster while they take turns."""

    handles: str
    waits: str
    arrivals: str
    gathered: str
    """How often all have met at the cluster's barrier."""
    progress: str
    before: str
    fruitless: str
    failed: str
    warps: int

    @classmethod
    def new(cls, own: Assembly, warps: int, failed: str) -> _TurnsState:
        handles, waits, arrivals = (own.alloca(8 * warps, name) for name in ("handles", "waits", "arrivals"))
        gathered, progress, before, fruitless = (
            own.alloca(8, name) for name in ("gathered", "progress", "before", "fruitless")
        )
        return cls(handles, waits, arrivals, gathered, progress, before, fruitless, failed, warps)

    def clear(self, own: Assembly) -> None:
        """Write the state in which nobody has begun."""
        for each in (self.waits, self.arrivals):
            own.fill(each, 0, 8 * self.warps)
        for each in (self.gathered, self.progress, self.before, self.fruitless):
            own.emit(f"store i64 0, ptr {each}")


def _element(asm: Assembly, array: str, index: str) -> str:
    return asm.value(f"getelementptr i64, ptr {array}, i64 {index}", "p")
