"""Warps that run independently: each is an LLVM coroutine that suspends while it waits for other warps of its block.

The function `warp` is the kernel for the lanes of one warp; `kernel` resumes the warps of a block in turn until all are
done.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import llvmlite.binding as llvm

from gpu.base.warp import WARP
from gpu.simulator.compiled.block.thread_block import ThreadBlock
from gpu.simulator.compiled.llvm.assembly import Assembly

WAITS_FOR_PHASE, WAITS_FOR_BLOCK, WAITS_FOR_CLUSTER = 1, 2, 3
"""Reasons why a warp is suspended: it waits for a phase, or for all other warps of its block, or of its cluster."""

_DEADLOCK = -1
"""Replaces the progress count to signal a deadlock: all warps that still wait have failed."""
_MAXIMUM_FRUITLESS_ROUNDS = 1 << 16
"""Rounds without progress before a deadlock is assumed; a polling loop may do something else after some tests."""

_SIGNATURE = (
    "ptr noalias %scratch, ptr %shared, ptr %args, i64 %number, i64 %rank, i64 %warp, i32 %gx, i32 %gy, i32 %gz, "
    "ptr %state, ptr %progress, ptr %arrivals, ptr %gathered, ptr %cluster.shared, i64 %stride"
)
_END_LABEL, _CLEANUP_LABEL, _SUSPENDED_LABEL = "ends", "cleans", "suspended"


class WarpThreads(ThreadBlock):
    """The lanes of one warp of a block; a thread's number is that of its lane.

    Parameters
    ----------
    asm, shape
        As for a block.
    cluster : sequence of int
        Blocks per cluster along x, y and z.
    """

    def __init__(self, asm: Assembly, shape: Sequence[int], cluster: Sequence[int]) -> None:
        super().__init__(asm, shape)
        self.cluster = tuple(cluster)
        self.block_threads = self.threads
        self.threads, self.is_one_dimensional = WARP, True
        self._fits_rows = shape[0] % WARP == 0
        self._first_index: list[str] | None = None

    @property
    def warp_count(self) -> int:
        """The number of warps of a block."""
        return -(-self.block_threads // WARP)

    @property
    def lane_count(self) -> str | None:
        """The number of lanes that are threads, an i64; None if all are, in every warp."""
        if not self.block_threads % WARP:
            return None
        self._asm.declare("i64 @llvm.smin.i64(i64, i64)")
        remaining = self._asm.value(f"sub i64 {self.block_threads}, {self._asm.value(f'mul i64 %warp, {WARP}')}")
        return self._asm.value(f"call i64 @llvm.smin.i64(i64 {remaining}, i64 {WARP})")

    def write_block_index(self, number: str) -> None:
        """Write the computation of blockIdx from a cluster's number in the grid and the block's rank in the cluster."""
        asm = self._asm
        across, down = (
            asm.value(f"udiv i64 {asm.value(f'zext i32 %g{axis} to i64')}, {self.cluster[axis_index]}")
            for axis_index, axis in enumerate("xy")
        )
        row = asm.value(f"udiv i64 {number}, {across}")
        corner = (f"urem i64 {number}, {across}", f"urem i64 {row}, {down}", f"udiv i64 {row}, {down}")
        x, y, _ = self.cluster
        inner = asm.value(f"udiv i64 %rank, {x}")
        inside = (f"urem i64 %rank, {x}", f"urem i64 {inner}, {y}", f"udiv i64 {inner}, {y}")
        coordinates = []
        for box, extent, position in zip(corner, self.cluster, inside, strict=True):
            start = asm.value(f"mul i64 {asm.value(box)}, {extent}")
            coordinates.append(asm.value(f"add i64 {start}, {asm.value(position)}"))
        self._block_index = [asm.value(f"trunc i64 {coordinate} to i32", "bid") for coordinate in coordinates]
        self._first_index = super().index_of(asm.value(f"mul nuw nsw i64 %warp, {WARP}")) if self._fits_rows else None

    def special(self, name: str, axis: int) -> str:
        return str(self.cluster[axis]) if name == "clusterDim" else super().special(name, axis)

    def index_of(self, thread: str) -> list[str]:
        """Return threadIdx of a lane, three i32."""
        if self._first_index is not None:
            x, *others = self._first_index
            lane = self._asm.value(f"trunc nuw nsw i64 {thread} to i32")
            return [self._asm.value(f"add nuw nsw i32 {x}, {lane}", "tid"), *others]
        first = self._asm.value(f"mul nuw nsw i64 %warp, {WARP}")
        return super().index_of(self._asm.value(f"add nuw nsw i64 {first}, {thread}"))

    def find_strip_length(self, statements: object) -> int:
        """Return 0: a warp need not be a row of its block."""
        return 0

    @contextmanager
    def loop_over_threads(self, *, parallel: bool = True, first: str | None = None, strip: int = 0) -> Iterator[None]:
        """Execute the code written inside for every lane, or for the `first` lanes."""
        marks = self._parallel_loop_marks() if parallel else []
        outer = (self.thread, self._thread_index, self.latch)
        with self._asm.loop(first if first is not None else WARP, "lane", *marks) as (lane, latch):
            self.thread, self.latch = lane, latch
            self._thread_index = self.index_of(lane)
            yield
        self.thread, self._thread_index, self.latch = outer
        self.access = ""


class WarpCoroutine:
    """Writes the function `warp`."""

    def __init__(self, asm: Assembly) -> None:
        self._asm = asm
        asm.exit_instruction = f"br label %{_END_LABEL}"
        self.end_label = _END_LABEL

    def suspend_warp(self, reason: int) -> str:
        """Suspend the warp; return whether it resumes because of a deadlock, an i1."""
        asm = self._asm
        asm.emit(f"store i64 {reason}, ptr %state")
        self._suspend()
        asm.emit("store i64 0, ptr %state")
        return asm.value(f"icmp eq i64 {asm.value('load i64, ptr %progress')}, {_DEADLOCK}")

    def count_progress(self) -> None:
        """Count progress: a thread has found the phase it waits for complete."""
        self._asm.update("%progress", "i64", "add", "1")

    def count_arrival(self) -> None:
        """Count the warp's arrival at its cluster's barrier."""
        self._asm.update("%arrivals", "i64", "add", "1")
        self.count_progress()

    def is_ahead(self) -> str:
        """Return whether the warp has arrived at the cluster's barrier before others, an i1."""
        asm = self._asm
        arrivals, completed = asm.value("load i64, ptr %arrivals"), asm.value("load i64, ptr %gathered")
        return asm.value(f"icmp sgt i64 {arrivals}, {completed}")

    def suspend_until_first_turn(self) -> None:
        """Suspend until the first turn."""
        self._suspend()

    def format_function(self, parameters: Sequence[str]) -> str:
        """Return the function; `parameters` are the instructions that load the kernel's parameters."""
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
            f"  br label %{_END_LABEL}",
            f"{_END_LABEL}:",
            "  %last = call i8 @llvm.coro.suspend(token none, i1 true)",
            f"  switch i8 %last, label %{_SUSPENDED_LABEL} [ i8 1, label %{_CLEANUP_LABEL} ]",
            f"{_CLEANUP_LABEL}:",
            "  %frame.freed = call ptr @llvm.coro.free(token %coroutine, ptr %frame)",
            "  call void @free(ptr %frame.freed)",
            f"  br label %{_SUSPENDED_LABEL}",
            f"{_SUSPENDED_LABEL}:",
            f"  {self._end()}",
            "  ret ptr %frame",
            "}",
        ]
        return "\n".join(lines)

    def _suspend(self) -> None:
        asm = self._asm
        resumed = asm.new_name("resumed")
        action = asm.value("call i8 @llvm.coro.suspend(token none, i1 false)")
        asm.emit(
            f"switch i8 {action}, label %{_SUSPENDED_LABEL} [ i8 0, label %{resumed} i8 1, label %{_CLEANUP_LABEL} ]"
        )
        asm.is_terminated = True
        asm.begin_block(resumed)

    def _end(self) -> str:
        """Declare the intrinsic that ends a coroutine, with the signature of LLVM's version; return its call."""
        version = llvm.llvm_version_info[0]
        kind, token = ("void" if version >= 22 else "i1"), (version >= 17)
        self._asm.declare(f"{kind} @llvm.coro.end(ptr, i1{', token' if token else ''})")
        return f"call {kind} @llvm.coro.end(ptr %frame, i1 false{', token none' if token else ''})"


@dataclass(frozen=True)
class WarpSchedulerWriter:
    """Writes the function `kernel`, which resumes the warps of a cluster's blocks in turn.

    Parameters
    ----------
    blocks, warps : int
        Blocks per cluster, and warps per block.
    scratch_bytes : int
        Scratch memory per warp.
    failure_argument : int
        The index of the argument that points to the failure record.
    stride_argument : int
        The index of the argument that points to the distance between the blocks' shared memories.
    """

    blocks: int
    warps: int
    scratch_bytes: int
    failure_argument: int
    stride_argument: int

    def format_function(self, signature: str, asm: Assembly) -> str:
        """Return the function; it shares its metadata and declarations with the function `warp`."""
        scheduler = Assembly()
        scheduler.metadata, scheduler.declarations = asm.metadata, asm.declarations
        for each in ("void @llvm.coro.resume(ptr)", "void @llvm.coro.destroy(ptr)", "i1 @llvm.coro.done(ptr)"):
            scheduler.declare(each)
        failed = scheduler.value(f"load ptr, ptr {scheduler.offset('%args', 8 * self.failure_argument)}")
        stride_address = scheduler.value(f"load ptr, ptr {scheduler.offset('%args', 8 * self.stride_argument)}")
        stride = scheduler.value(f"load i64, ptr {stride_address}")
        state = _SchedulerState.allocate(scheduler, self.blocks * self.warps, failed)
        with scheduler.loop("%blocks", "cluster", scheduler.no_unroll_metadata) as (index, _):
            number = scheduler.value(f"add nsw i64 %first, {index}")
            state.clear(scheduler)
            with self._each_warp(scheduler) as (block, warp, place):
                scratch = scheduler.offset("%scratch", scheduler.value(f"mul i64 {place}, {self.scratch_bytes}"))
                shared = scheduler.offset("%shared", scheduler.value(f"mul i64 {block}, {stride}"))
                arguments = (
                    f"ptr {scratch}, ptr {shared}, ptr %args, i64 {number}, i64 {block}, i64 {warp}, "
                    f"i32 %gx, i32 %gy, i32 %gz, ptr {_element_address(scheduler, state.wait_reasons, place)}, "
                    f"ptr {state.progress}, ptr {_element_address(scheduler, state.arrivals, place)}, "
                    f"ptr {state.completed_barriers}, ptr %shared, i64 {stride}"
                )
                handle = scheduler.value(f"call ptr @warp({arguments})")
                scheduler.emit(f"store ptr {handle}, ptr {_element_address(scheduler, state.handles, place)}")
            scheduler.begin_block(self._write_rounds(scheduler, state))
            with self._each_warp(scheduler) as (_, _, place):
                handle = scheduler.value(f"load ptr, ptr {_element_address(scheduler, state.handles, place)}")
                scheduler.emit(f"call void @llvm.coro.destroy(ptr {handle})")
        lines = [
            f"define void @kernel({signature}) nounwind {{",
            "entry:",
            *scheduler.entry,
            "  br label %start",
            "start:",
            *map(str, scheduler.lines),
            "  ret void",
            "}",
        ]
        return "\n".join(lines)

    @contextmanager
    def _each_warp(self, asm: Assembly) -> Iterator[tuple[str, str, str]]:
        """Yield the block, the warp in it, and its number in the cluster."""
        with (
            asm.loop(self.blocks, "rank", asm.no_unroll_metadata) as (block, _),
            asm.loop(self.warps, "warp", asm.no_unroll_metadata) as (warp, _),
        ):
            yield block, warp, self._warp_number(asm, block, warp)

    def _warp_number(self, asm: Assembly, block: str, warp: str) -> str:
        return asm.value(f"add i64 {asm.value(f'mul i64 {block}, {self.warps}')}, {warp}")

    def _write_rounds(self, asm: Assembly, state: _SchedulerState) -> str:
        """Write rounds in which each warp that need not wait is resumed; return the label after the last round."""
        next_round, done, check = asm.new_name("again"), asm.new_name("over"), asm.new_name("judge")
        unfinished, unfinished_in_block, waiting_in_block = (
            asm.alloca(8, name) for name in ("left", "here", "meeting")
        )
        waiting_for_cluster = asm.alloca(8, "arrived")
        asm.begin_block(next_round)
        for each in (unfinished, waiting_for_cluster):
            asm.emit(f"store i64 0, ptr {each}")
        with asm.loop(self.blocks, "rank", asm.no_unroll_metadata) as (block, _):
            for each in (unfinished_in_block, waiting_in_block):
                asm.emit(f"store i64 0, ptr {each}")
            with asm.loop(self.warps, "warp", asm.no_unroll_metadata) as (warp, skip):
                self._write_turn(
                    asm,
                    state,
                    self._warp_number(asm, block, warp),
                    (unfinished_in_block, waiting_in_block, waiting_for_cluster),
                    skip,
                    done,
                )
            block_count = asm.value(f"load i64, ptr {unfinished_in_block}")
            asm.update(unfinished, "i64", "add", block_count)
            # Warps that have reached the barrier since then are counted in the next round.
            all_waiting = asm.value(f"icmp eq i64 {asm.value(f'load i64, ptr {waiting_in_block}')}, {block_count}")
            with asm.execute_if(asm.value(f"and i1 {all_waiting}, {asm.value(f'icmp ne i64 {block_count}, 0')}")):
                asm.fill(
                    _element_address(asm, state.wait_reasons, self._warp_number(asm, block, "0")), 0, 8 * self.warps
                )
                asm.update(state.progress, "i64", "add", "1")
        unfinished_count = asm.value(f"load i64, ptr {unfinished}")
        asm.branch(asm.value(f"icmp eq i64 {unfinished_count}, 0"), done, check)
        asm.begin_block(check)
        with asm.execute_if(
            asm.value(f"icmp eq i64 {asm.value(f'load i64, ptr {waiting_for_cluster}')}, {unfinished_count}")
        ):
            asm.update(state.completed_barriers, "i64", "add", "1")
            asm.update(state.progress, "i64", "add", "1")
        progress, previous = (
            asm.value(f"load i64, ptr {state.progress}"),
            asm.value(f"load i64, ptr {state.previous_progress}"),
        )
        asm.emit(f"store i64 {progress}, ptr {state.previous_progress}")
        count = asm.value(f"add i64 {asm.value(f'load i64, ptr {state.fruitless_rounds}')}, 1")
        count = asm.value(f"select i1 {asm.value(f'icmp eq i64 {progress}, {previous}')}, i64 {count}, i64 0")
        asm.emit(f"store i64 {count}, ptr {state.fruitless_rounds}")
        with asm.execute_if(asm.value(f"icmp sgt i64 {count}, {_MAXIMUM_FRUITLESS_ROUNDS}")):
            asm.fill(state.wait_reasons, 0, 8 * self.blocks * self.warps)
            asm.emit(f"store i64 {_DEADLOCK}, ptr {state.progress}")
        asm.jump(next_round)
        return done

    def _write_turn(
        self,
        asm: Assembly,
        state: _SchedulerState,
        warp_number: str,
        counts: tuple[str, str, str],
        next_label: str,
        end_label: str,
    ) -> None:
        """Resume a warp, unless it has finished or waits for others."""
        unfinished_in_block, waiting_in_block, waiting_for_cluster = counts
        handle = asm.value(f"load ptr, ptr {_element_address(asm, state.handles, warp_number)}")
        alive, waits_for_block, waits_for_cluster, resumes = (
            asm.new_name(name) for name in ("alive", "meets", "gathers", "goes")
        )
        asm.branch(asm.value(f"call i1 @llvm.coro.done(ptr {handle})"), next_label, alive)
        asm.begin_block(alive)
        asm.update(unfinished_in_block, "i64", "add", "1")
        own_count = asm.value(f"load i64, ptr {_element_address(asm, state.arrivals, warp_number)}")
        is_ahead = asm.value(f"icmp sgt i64 {own_count}, {asm.value(f'load i64, ptr {state.completed_barriers}')}")
        asm.update(waiting_for_cluster, "i64", "add", asm.value(f"zext i1 {is_ahead} to i64"))
        reason = asm.value(f"load i64, ptr {_element_address(asm, state.wait_reasons, warp_number)}")
        asm.emit(
            f"switch i64 {reason}, label %{resumes} "
            f"[ i64 {WAITS_FOR_BLOCK}, label %{waits_for_block} i64 {WAITS_FOR_CLUSTER}, label %{waits_for_cluster} ]"
        )
        asm.is_terminated = True
        asm.begin_block(waits_for_block)
        asm.update(waiting_in_block, "i64", "add", "1")
        asm.jump(next_label)
        asm.begin_block(waits_for_cluster)
        asm.branch(is_ahead, next_label, resumes)
        asm.begin_block(resumes)
        asm.emit(f"call void @llvm.coro.resume(ptr {handle})")
        asm.branch(
            asm.value(f"icmp eq i64 {asm.value(f'load i64, ptr {state.failure_record}')}, 0"), next_label, end_label
        )


@dataclass(frozen=True)
class _SchedulerState:
    """Addresses of the scheduling state of a cluster's warps."""

    handles: str
    wait_reasons: str
    arrivals: str
    completed_barriers: str
    """The number of completed cluster barriers."""
    progress: str
    previous_progress: str
    fruitless_rounds: str
    failure_record: str
    warps: int

    @classmethod
    def allocate(cls, asm: Assembly, warps: int, failure_record: str) -> _SchedulerState:
        handles, waits, arrivals = (asm.alloca(8 * warps, name) for name in ("handles", "waits", "arrivals"))
        gathered, progress, before, fruitless = (
            asm.alloca(8, name) for name in ("gathered", "progress", "before", "fruitless")
        )
        return cls(handles, waits, arrivals, gathered, progress, before, fruitless, failure_record, warps)

    def clear(self, asm: Assembly) -> None:
        """Reset the state before the warps start."""
        for each in (self.wait_reasons, self.arrivals):
            asm.fill(each, 0, 8 * self.warps)
        for each in (self.completed_barriers, self.progress, self.previous_progress, self.fruitless_rounds):
            asm.emit(f"store i64 0, ptr {each}")


def _element_address(asm: Assembly, array: str, index: str) -> str:
    return asm.value(f"getelementptr i64, ptr {array}, i64 {index}", "p")
