"""The threads of a block: loops over them, and the state of the current thread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from gpu.simulator import ir
from gpu.simulator.compiled.analysis.divisions import DivisionAnalysis
from gpu.simulator.compiled.analysis.plan import Bind, PlannedFrame
from gpu.simulator.compiled.llvm.assembly import Assembly


@dataclass(frozen=True)
class ThreadStrip:
    """Threads in one loop: the number of the first along x, and each thread's offset from it."""

    start: str
    lane: str
    threads: int
    insertion_line: int
    """The line before which code that is the same for all of them can be inserted."""


class ThreadBlock:
    """Writes loops over the threads of a block.

    Parameters
    ----------
    shape : sequence of int
        Threads per block along x, y and z.

    Attributes
    ----------
    thread : str
        The number of the current thread, an i64.
    latch : str
        The label where the next thread begins.
    access : str
        Suffix of loads and stores: the metadata of accesses that are independent between threads.
    """

    def __init__(self, asm: Assembly, shape: Sequence[int]) -> None:
        self._asm = asm
        self.shape = tuple(shape)
        self.threads = shape[0] * shape[1] * shape[2]
        self.cluster: tuple[int, ...] = (1, 1, 1)
        self.is_one_dimensional = shape[1] == shape[2] == 1
        self.thread = ""
        self.latch = ""
        self.access = ""
        self._thread_index: Sequence[str] = ("0", "0", "0")
        self._block_index: Sequence[str] = ("0", "0", "0")
        self._strip: ThreadStrip | None = None
        self._divisions = DivisionAnalysis()

    def write_block_index(self, number: str) -> None:
        """Write the computation of blockIdx from a block's number in the grid, an i64."""
        asm = self._asm
        columns, rows = asm.value("zext i32 %gx to i64"), asm.value("zext i32 %gy to i64")
        row = asm.value(f"udiv i64 {number}, {columns}")
        axes = (
            asm.value(f"urem i64 {number}, {columns}"),
            asm.value(f"urem i64 {row}, {rows}"),
            asm.value(f"udiv i64 {row}, {rows}"),
        )
        self._block_index = [asm.value(f"trunc i64 {axis} to i32", "bid") for axis in axes]

    # The current thread.

    @property
    def thread_index(self) -> Sequence[str]:
        """threadIdx, three i32."""
        return self._thread_index

    def index_of(self, thread: str) -> list[str]:
        """Return threadIdx of a thread by its number, an i64."""
        x, y, _ = self.shape
        row = self._asm.value(f"udiv i64 {thread}, {x}")
        axes = (f"urem i64 {thread}, {x}", f"urem i64 {row}, {y}", f"udiv i64 {row}, {y}")
        return [self._asm.value(f"trunc i64 {self._asm.value(axis)} to i32", "tid") for axis in axes]

    def special(self, name: str, axis: int) -> str:
        """Return a value of threadIdx, blockIdx, blockDim, gridDim or clusterDim: i32."""
        match name:
            case "threadIdx":
                return self._thread_index[axis]
            case "blockIdx":
                return self._block_index[axis]
            case "blockDim":
                return str(self.shape[axis])
            case "clusterDim":
                return "1"
        return ("%gx", "%gy", "%gz")[axis]

    def quotient(self, frame: PlannedFrame, expression: ir.Binary) -> str | None:
        """Return the quotient or remainder of threadIdx.x and a constant, an i64, if the strip determines it."""
        strip = self._strip
        division = self._divisions.find_division(frame, expression) if strip is not None else None
        if strip is None or division is None or division.divisor % strip.threads:
            return None
        if division.is_remainder:
            remainder = self._asm.value(f"urem i64 {strip.start}, {division.divisor}")
            return self._asm.value(f"add nuw nsw i64 {remainder}, {strip.lane}")
        return self._asm.value(f"udiv i64 {strip.start}, {division.divisor}")

    @property
    def is_in_strip(self) -> bool:
        """Whether the current code is within a loop over a strip."""
        return self._strip is not None

    @property
    def lane(self) -> str:
        """The number of the thread in its strip, an i64."""
        assert self._strip is not None
        return self._strip.lane

    @contextmanager
    def insert_before_strip(self) -> Iterator[None]:
        """Insert the code written inside before the loop over the strip, with threadIdx of the strip's first thread."""
        assert self._strip is not None
        outer = (self._thread_index, self._strip)
        with self._asm.insert_lines(self._strip.insertion_line):
            first = self._asm.value(f"trunc nuw nsw i64 {self._strip.start} to i32", "tid")
            self._thread_index, self._strip = [first, *self._thread_index[1:]], None
            yield
        self._thread_index, self._strip = outer

    # Loops.

    @contextmanager
    def loop_over_threads(self, *, parallel: bool = True, first: str | None = None, strip: int = 0) -> Iterator[None]:
        """Execute the code written inside for every thread, or for the `first` threads.

        `parallel` means that their accesses are independent. `strip` divides the loop along x into strips of this many
        threads.
        """
        asm = self._asm
        marks = self._parallel_loop_marks() if parallel else []
        outer = (self.thread, self._thread_index, self.latch)
        x, y, z = self.shape
        with (
            asm.loop(z, "tz", asm.no_unroll_metadata) as (k, _),
            asm.loop(y, "ty", asm.no_unroll_metadata) as (j, _),
            self._loop_along_x(first if first is not None else x, strip, marks) as (i, latch),
        ):
            self.thread = self._linear_index(self._linear_index(k, y, j), x, i)
            self._thread_index = [
                axis if axis == "0" else asm.value(f"trunc nuw nsw i64 {axis} to i32", "tid") for axis in (i, j, k)
            ]
            self.latch = latch
            yield
        self.thread, self._thread_index, self.latch = outer
        self._strip = None
        self.access = ""

    def _linear_index(self, rows: str, length: int, place: str) -> str:
        """Return the number of position `insertion_line` after `rows` rows of a length."""
        if rows == "0":
            return place
        row_start = self._asm.value(f"mul nuw nsw i64 {rows}, {length}")
        return row_start if place == "0" else self._asm.value(f"add nuw nsw i64 {row_start}, {place}", "t")

    @contextmanager
    def _loop_along_x(self, count: str | int, strip: int, marks: Sequence[str]) -> Iterator[tuple[str, str]]:
        if not strip:
            with self._asm.loop(count, "tx", *marks) as (i, latch):
                yield i, latch
            return
        assert isinstance(count, int)
        with self._asm.loop(count // strip, "strip", self._asm.no_unroll_metadata) as (number, _):
            start = self._asm.value(f"mul nuw nsw i64 {number}, {strip}")
            line_index = len(self._asm.lines)
            with self._asm.loop(strip, "tx", *marks) as (lane, latch):
                self._strip = ThreadStrip(start, lane, strip, line_index)
                yield self._asm.value(f"add nuw nsw i64 {start}, {lane}"), latch

    def find_strip_length(self, statements: Iterable[tuple[PlannedFrame, ir.Statement | Bind]]) -> int:
        """Return the strip length in threads that simplifies the divisions in statements; 0 if there is none."""
        return self._divisions.find_strip_length(statements, self.shape[0])

    @contextmanager
    def loop_over_thread_numbers(self) -> Iterator[str]:
        """Execute the code written inside for every thread's number; yield the number."""
        with (
            self._asm.loop(self.threads, "lane", self._asm.no_unroll_metadata) as (thread, _),
            self.select_thread(thread),
        ):
            yield thread

    @contextmanager
    def loop_over_lanes(self, count: str | int) -> Iterator[str]:
        """Execute the code written inside for the first `count` thread numbers, with independent accesses."""
        with self._asm.loop(count, "lane", *self._parallel_loop_marks()) as (thread, _):
            yield thread
        self.access = ""

    @contextmanager
    def select_thread_at(self, index: Sequence[int]) -> Iterator[None]:
        """Write the code inside for the thread with an index, three numbers."""
        outer = (self.thread, self._thread_index, self._strip, self.access)
        x, y, _ = self.shape
        self.thread = str((index[2] * y + index[1]) * x + index[0])
        self._thread_index, self._strip, self.access = [str(axis) for axis in index], None, ""
        yield
        self.thread, self._thread_index, self._strip, self.access = outer

    @contextmanager
    def select_thread(self, number: str) -> Iterator[None]:
        """Write the code inside for the thread with a number."""
        outer, self.thread = self.thread, number
        yield
        self.thread = outer

    def _parallel_loop_marks(self) -> list[str]:
        """Return the metadata of a loop with independent iterations, and start a group of independent accesses."""
        asm = self._asm
        group = asm.add_metadata("", distinct=True)
        self.access = f", !llvm.access.group {group}"
        return [asm.no_unroll_metadata, asm.add_metadata(f'!"llvm.loop.parallel_accesses", {group}')]
