"""A kernel's plan as one LLVM function that runs a range of blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from gpu.simulator import ir
from gpu.simulator.compiled import exchanges
from gpu.simulator.compiled.assembly import Assembly
from gpu.simulator.compiled.divisions import Divisions
from gpu.simulator.compiled.intervals import Intervals
from gpu.simulator.compiled.memory import AROUND, Memory
from gpu.simulator.compiled.plan import (
    Bind,
    Exchange,
    Frame,
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
from gpu.simulator.compiled.threads import ThreadWriter
from gpu.simulator.compiled.walking import walk
from gpu.simulator.types import Pointer, Scalar, Type

_SIGNATURE = "ptr noalias %scratch, ptr noalias %shared, ptr %args, i64 %first, i64 %blocks, i32 %gx, i32 %gy, i32 %gz"


@dataclass(eq=False)
class Mask:
    """Which threads take part: a byte for each in the scratch memory, and how many they are."""

    bytes: int
    count: str
    top: str
    """The number after that of the last one: where it is the count, the first threads take part and no others."""
    skip: str
    """Where to go on when nobody is left: at the end of what the mask is of, in a loop at its next round."""
    stays: int = -1
    """Of a loop, the threads that are still in it: `break` takes a thread out of both, `continue` of `bytes` alone."""
    function: str | None = None
    """Of a function's body, the path of its frame: `return` takes a thread out of all masks from here on."""


@dataclass(frozen=True)
class Strip:
    """Threads that are written as one loop: the number of the first along x, and that of each from there."""

    start: str
    lane: str
    threads: int


@dataclass(frozen=True)
class CompiledText:
    """LLVM's text of a kernel, and the memory that a worker needs to run it."""

    text: str
    scratch_bytes: int
    shared_bytes: int
    variables: tuple[str, ...]
    assertions: tuple[ir.Assertion, ...]


def compile_kernel(function: ir.Function, block: Sequence[int], constants: frozenset[str]) -> CompiledText:
    """Return a kernel as LLVM text, for blocks of one shape.

    Raises
    ------
    NotCompiled
        Where it does what this executor leaves to the other one.
    """
    return _KernelWriter(function, block, constants).write()


class _KernelWriter(Memory):
    def __init__(self, function: ir.Function, block: Sequence[int], constants: frozenset[str]) -> None:
        super().__init__(function, block, constants)
        self._block = tuple(block)
        self._in_line = block[1] == block[2] == 1
        self._writer = ThreadWriter(self.asm, self)
        self._intervals = Intervals(block)
        self._masks: list[Mask] = []
        self._index: tuple[str, str, str] = ("0", "0", "0")
        self._latch = ""
        self._strip: Strip | None = None
        self._divisions = Divisions()
        self._block_index: tuple[str, str, str] = ("0", "0", "0")

    def special(self, name: str, axis: int) -> str:
        match name:
            case "threadIdx":
                return self._index[axis]
            case "blockIdx":
                return self._block_index[axis]
            case "blockDim":
                return str(self._block[axis])
        return ("%gx", "%gy", "%gz")[axis]

    def flags(self, frame: Frame, expression: ir.Binary) -> str:
        return self._intervals.flags(frame, expression)

    # The function.

    def write(self) -> CompiledText:
        """Write the kernel."""
        asm = self.asm
        with asm.loop("%blocks", "block", asm.not_unrolled) as (index, next_block):
            if any(isinstance(node, ir.Return) for node in walk(self._function.body)) and len(self._plan) > 1:
                self._masks.append(self._new_mask(next_block, function=""))
            number = asm.value(f"add nsw i64 %first, {index}")
            self._begin_block(number)
            self._run(self._plan)
        parameters = self._load_arguments()
        body = "\n".join(["entry:", *asm.entry, *parameters, "  br label %start", "start:", *asm.lines, "  ret void"])
        text = "\n".join(
            [
                *sorted(asm.declared),
                f"define void @kernel({_SIGNATURE}) nounwind {{",
                body,
                "}",
                *asm.metadata,
            ]
        )
        return CompiledText(
            text,
            self._scratch.size + AROUND,
            self._shared_bytes,
            tuple(self._module_variables),
            tuple(self._assertions),
        )

    def _load_arguments(self) -> list[str]:
        """Write what fetches parameters, module variables and the extern array's address, 8 bytes each."""
        lines = []
        names = [f"%argument.{slot}" for slot in range(len(self._function.parameters))]
        names += list(self._module_variables.values())
        for number, name in enumerate(names):
            lines.append(f"  {name} = getelementptr i64, ptr %args, i64 {number}")
            if number >= len(self._function.parameters):
                lines[-1] = lines[-1].replace(name, f"{name}.at", 1)
                lines.append(f"  {name} = load ptr, ptr {name}.at")
        lines.append(f"  %extern = getelementptr i8, ptr %shared, i64 {self._shared_bytes}")
        return lines

    def _begin_block(self, number: str) -> None:
        asm = self.asm
        columns, rows = asm.value("zext i32 %gx to i64"), asm.value("zext i32 %gy to i64")
        row = asm.value(f"udiv i64 {number}, {columns}")
        axes = (
            asm.value(f"urem i64 {number}, {columns}"),
            asm.value(f"urem i64 {row}, {rows}"),
            asm.value(f"udiv i64 {row}, {rows}"),
        )
        self._block_index = tuple(asm.value(f"trunc i64 {axis} to i32", "bid") for axis in axes)  # type: ignore[assignment]
        for slot, (_, type) in enumerate(self._function.parameters):
            self._begin_parameter(slot, type)
        for mask in self._masks:
            self._fill_mask(mask)

    def _begin_parameter(self, slot: int, type: Type) -> None:
        source = f"%argument.{slot}"
        if not isinstance(type, Pointer) and type.size > 8:
            source = self.asm.value(f"load ptr, ptr {source}")
        if ("", slot) not in self._varying:
            self._writer.store(self.variable(self._frames[""], slot, type), type, self._writer.load(source, type))
            return
        with self._all_threads():
            self._writer.store(self.variable(self._frames[""], slot, type), type, self._writer.load(source, type))

    # Loops over the threads.

    @contextmanager
    def _all_threads(self, *, parallel: bool = True, first: str | None = None, strip: int = 0) -> Iterator[None]:
        """Run what is written inside for every thread, or for so many of the first ones.

        `parallel` says that they do not touch each other's memory. Threads may go in strips of so many along x.
        """
        asm = self.asm
        marks = self._independently() if parallel else []
        outer = (self._thread, self._index, self._latch)
        x, y, z = self._block
        with (
            asm.loop(z, "tz", asm.not_unrolled) as (k, _),
            asm.loop(y, "ty", asm.not_unrolled) as (j, _),
            self._along_x(first if first is not None else x, strip, marks) as (i, latch),
        ):
            row = asm.value(f"add nuw nsw i64 {asm.value(f'mul nuw nsw i64 {k}, {y}')}, {j}")
            self._thread = asm.value(f"add nuw nsw i64 {asm.value(f'mul nuw nsw i64 {row}, {x}')}, {i}", "t")
            axes = [asm.value(f"trunc nuw nsw i64 {axis} to i32", "tid") for axis in (i, j, k)]
            self._index = (axes[0], axes[1], axes[2])
            self._latch = latch
            yield
        self._thread, self._index, self._latch = outer
        self._strip = None
        self._writer.access = ""

    @contextmanager
    def _along_x(self, count: str | int, strip: int, marks: Sequence[str]) -> Iterator[tuple[str, str]]:
        if not strip:
            with self.asm.loop(count, "tx", *marks) as (i, latch):
                yield i, latch
            return
        assert isinstance(count, int)
        with self.asm.loop(count // strip, "strip", self.asm.not_unrolled) as (number, _):
            start = self.asm.value(f"mul nuw nsw i64 {number}, {strip}")
            with self.asm.loop(strip, "tx", *marks) as (lane, latch):
                self._strip = Strip(start, lane, strip)
                yield self.asm.value(f"add nuw nsw i64 {start}, {lane}"), latch

    def quotient(self, frame: Frame, expression: ir.Binary) -> str | None:
        """Return threadIdx.x divided by a constant, or the rest, as i64, where that is known of a whole strip."""
        strip = self._strip
        found = self._divisions.of(frame, expression) if strip is not None else None
        if strip is None or found is None or found.by % strip.threads:
            return None
        if found.rest:
            rest = self.asm.value(f"urem i64 {strip.start}, {found.by}")
            return self.asm.value(f"add nuw nsw i64 {rest}, {strip.lane}")
        return self.asm.value(f"udiv i64 {strip.start}, {found.by}")

    @contextmanager
    def _warp_lanes(self) -> Iterator[str]:
        """Run what is written inside for every thread, by its number alone; gives that number."""
        with self.asm.loop(self.threads, "lane", self.asm.not_unrolled) as (thread, _):
            outer, self._thread = self._thread, thread
            yield thread
            self._thread = outer

    # Masks.

    def _new_mask(self, skip: str, *, of_loop: bool = False, function: str | None = None) -> Mask:
        return Mask(
            self._take_flags(),
            self.asm.alloca(8, "count"),
            self.asm.alloca(8, "top"),
            skip,
            self._take_flags() if of_loop else -1,
            function,
        )

    def _take_flags(self) -> int:
        return self._scratch.take(object(), self._padded)

    def _is_someone(self, mask: Mask) -> str:
        """Return whether any thread takes part."""
        return self.asm.value(f"icmp ne i64 {self.asm.value(f'load i64, ptr {mask.count}')}, 0")

    def _flag(self, offset: int) -> str:
        return self.element(offset, 1, self._thread)

    def _fill_mask(self, mask: Mask) -> None:
        self.asm.declare("void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
        start = self.asm.offset("%scratch", mask.bytes)
        self.asm.emit(f"call void @llvm.memset.p0.i64(ptr align 64 {start}, i8 1, i64 {self.threads}, i1 false)")
        for number in (mask.count, mask.top):
            self.asm.emit(f"store i64 {self.threads}, ptr {number}")

    def _count(self, mask: Mask) -> None:
        """Count the threads of a mask anew."""
        asm = self.asm
        with self._counted(mask) as count, self._warp_lanes():
            count(asm.value(f"icmp ne i8 {asm.value(f'load i8, ptr {self._flag(mask.bytes)}')}, 0"))

    @contextmanager
    def _counted(self, mask: Mask) -> Iterator[Callable[[str], None]]:
        """Give what takes note of whether a thread takes part in a mask; they are counted in the end."""
        asm = self.asm
        total, top = asm.alloca(4, "total"), asm.alloca(4, "highest")
        for each in (total, top):
            asm.emit(f"store i32 0, ptr {each}")
        asm.declare("i32 @llvm.umax.i32(i32, i32)")

        def count(takes_part: str) -> None:
            asm.update(total, "i32", "add", asm.value(f"zext i1 {takes_part} to i32"))
            if self._in_line:
                after = asm.value(f"add nuw nsw i32 {asm.value(f'trunc nuw nsw i64 {self._thread} to i32')}, 1")
                chosen = asm.value(f"select i1 {takes_part}, i32 {after}, i32 0")
                highest = asm.value(f"load i32, ptr {top}")
                asm.emit(f"store i32 {asm.value(f'call i32 @llvm.umax.i32(i32 {highest}, i32 {chosen})')}, ptr {top}")

        yield count
        for number, place in ((total, mask.count), (top, mask.top)):
            summed = asm.value(f"load i32, ptr {number}")
            asm.emit(f"store i64 {asm.value(f'zext i32 {summed} to i64')}, ptr {place}")

    def _first_take_part(self) -> tuple[str, str | None]:
        """Return whether the threads that take part are the first ones, and how many they are, None for all.

        Where the block is not a line, the first threads do not fill whole rows of it, and all must take part.
        """
        if not self._masks:
            return "true", None
        mask = self._masks[-1]
        count = self.asm.value(f"load i64, ptr {mask.count}")
        if not self._in_line:
            return self.asm.value(f"icmp eq i64 {count}, {self.threads}"), None
        return self.asm.value(f"icmp eq i64 {count}, {self.asm.value(f'load i64, ptr {mask.top}')}"), count

    def _ask(self, item: PlannedIf | PlannedLoop, holding: Sequence[int], mask: Mask, others: int | None) -> None:
        """Evaluate a condition in the threads that take part, and store for whom it holds, how many, and for whom not.

        Where the first threads take part, which is the common case, one loop does it, of a kind that LLVM makes vector
        code of.
        """
        asm = self.asm
        first, some, after = asm.fresh("first"), asm.fresh("some"), asm.fresh("after")
        assert item.condition is not None
        are_first, number = self._first_take_part()
        asm.branch(are_first, first, some)
        asm.place(first)
        if number is not None:
            rest = asm.value(f"sub i64 {self.threads}, {number}")
            asm.declare("void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
            for offset in (*holding, *((others,) if others is not None else ())):
                start = asm.offset(asm.offset("%scratch", offset), number)
                asm.emit(f"call void @llvm.memset.p0.i64(ptr {start}, i8 0, i64 {rest}, i1 false)")
        with self._counted(mask) as count, self._all_threads(first=number):
            holds = self._writer.scalar(item.frame, item.condition)
            for offset in holding:
                self._set(offset, holds)
            if others is not None:
                self._set(others, asm.value(f"xor i1 {holds}, true"))
            count(holds)
        asm.jump(after)
        asm.place(some)
        if self._masks:
            with self._counted(mask) as count, self._all_threads():
                here = self.taking_part()
                holds = self._guarded(item, here)
                for offset in holding:
                    self._set(offset, holds)
                if others is not None:
                    self._set(others, asm.value(f"and i1 {asm.value(f'xor i1 {holds}, true')}, {here}"))
                count(holds)
        asm.jump(after)
        asm.place(after)

    def taking_part(self) -> str:
        """Return whether the thread that is written takes part."""
        if not self._masks:
            return "true"
        flag = self.asm.value(f"load i8, ptr {self._flag(self._masks[-1].bytes)}{self._writer.access}")
        return self.asm.value(f"icmp ne i8 {flag}, 0")

    def leave(self, frame: Frame, kind: str) -> None:
        asm = self.asm
        if kind == "return":
            left = [number for number, mask in enumerate(self._masks) if mask.function == frame.path]
        else:
            left = [number for number, mask in enumerate(self._masks) if mask.stays >= 0]
        for mask in self._masks[max(left, default=0) :]:
            asm.emit(f"store i8 0, ptr {self._flag(mask.bytes)}{self._writer.access}")
            if mask.stays >= 0 and kind != "continue":
                asm.emit(f"store i8 0, ptr {self._flag(mask.stays)}{self._writer.access}")
        asm.jump(self._latch)

    # The plan.

    def _run(self, items: Plan) -> None:
        for item in items:
            self._item(item)
            if self._masks and takes_out(item):
                self._go_on_with(self._masks[-1])

    def _go_on_with(self, mask: Mask) -> None:
        """Run what follows only where someone is left for it: a loop may end for nobody."""
        here = self.asm.fresh("here")
        self.asm.branch(self._is_someone(mask), here, mask.skip)
        self.asm.place(here)

    def _item(self, item: Item) -> None:
        match item:
            case Region(statements):
                if statements:
                    self._region(item)
            case Once(frame, Bind() as bind):
                self._writer.bind(bind, frame)
            case Once(frame, statement):
                assert not isinstance(statement, Bind)
                self._writer.statement(frame, statement)
            case Exchange():
                self._exchange(item)
            case PlannedIf():
                self._if(item)
            case PlannedLoop():
                self._loop(item)
            case PlannedCall():
                self._called(item)

    def _region(self, region: Region) -> None:
        parallel = not any(
            touches_one(statement.value if isinstance(statement, Bind) else statement, self._apart(frame))
            for frame, statement in region.statements
        )
        strip = self._divisions.strip(region.statements, self._block[0]) if parallel else 0
        self._in_threads(lambda: self._statements_of(region), parallel=parallel, strip=strip)
        if takes_out(region):
            for each in self._masks:
                self._count(each)

    def _statements_of(self, region: Region) -> None:
        for frame, statement in region.statements:
            if isinstance(statement, Bind):
                self._writer.bind(statement, frame)
            else:
                self._writer.statement(frame, statement)

    def _in_threads(self, write: Callable[[], None], *, parallel: bool, strip: int = 0) -> None:
        """Let the threads that take part run something: in one loop where these are the first, in another elsewhere."""
        if not self._masks:
            with self._all_threads(parallel=parallel, strip=strip):
                write()
            return
        asm = self.asm
        are_first, number = self._first_take_part()
        first, some, after = asm.fresh("first"), asm.fresh("some"), asm.fresh("after")
        if strip:
            every, not_every = asm.fresh("every"), asm.fresh("not.every")
            taking = asm.value(f"load i64, ptr {self._masks[-1].count}")
            asm.branch(asm.value(f"icmp eq i64 {taking}, {self.threads}"), every, not_every)
            asm.place(every)
            with self._all_threads(parallel=parallel, strip=strip):
                write()
            asm.jump(after)
            asm.place(not_every)
        asm.branch(are_first, first, some)
        asm.place(first)
        with self._all_threads(parallel=parallel, first=number):
            write()
        asm.jump(after)
        asm.place(some)
        with self._all_threads(parallel=parallel):
            inside = asm.fresh("active")
            asm.branch(self.taking_part(), inside, self._latch)
            asm.place(inside)
            write()
        asm.jump(after)
        asm.place(after)

    def _apart(self, frame: Frame) -> set[int]:
        """Return the slots of memory that is taken apart."""
        return {slot for slot in self._slots_apart(frame.function) if (frame.path, slot) in self._wide}

    def _if(self, item: PlannedIf) -> None:
        asm = self.asm
        if item.uniform:
            labels = [asm.fresh(part) for part in ("then", "else", "after")]
            asm.branch(self._writer.scalar(item.frame, item.condition), labels[0], labels[1])
            for label, side in ((labels[0], item.then), (labels[1], item.orelse)):
                asm.place(label)
                self._run(side or [])
                asm.jump(labels[2])
            asm.place(labels[2])
            return
        then, orelse = (self._new_mask(asm.fresh("after")) for _ in range(2))
        self._ask(item, [then.bytes], then, orelse.bytes if item.orelse is not None else None)
        for mask, side in ((then, item.then), (orelse, item.orelse)):
            if side is not None:
                if mask is orelse:
                    self._count(mask)
                self._go_on_with(mask)
                self._masks.append(mask)
                self._run(side)
                self._masks.pop()
                asm.place(mask.skip)

    def _guarded(self, item: PlannedIf | PlannedLoop, here: str) -> str:
        """Return whether a thread takes part and a condition holds for it; only those that take part compute it."""
        asm = self.asm
        assert item.condition is not None
        result = asm.alloca(1, "holds")
        asm.emit(f"store i1 false, ptr {result}")
        with asm.when(here):
            asm.emit(f"store i1 {self._writer.scalar(item.frame, item.condition)}, ptr {result}")
        return asm.value(f"load i1, ptr {result}")

    def _set(self, offset: int, bit: str) -> None:
        self.asm.emit(
            f"store i8 {self.asm.value(f'zext i1 {bit} to i8')}, ptr {self._flag(offset)}{self._writer.access}"
        )

    def _loop(self, item: PlannedLoop) -> None:
        asm = self.asm
        test, body, step, end = (asm.fresh(part) for part in ("test", "body", "step", "end"))
        if item.uniform:
            asm.jump(test if item.tests_first else body)
            asm.place(test)
            self._run(item.before)
            if item.condition is not None:
                asm.branch(self._writer.scalar(item.frame, item.condition), body, end)
            asm.place(body)
            self._run(item.body)
            self._run(item.step)
            asm.jump(test)
            asm.place(end)
            return
        continues = any("continue" in jumps(part) for part in all_statements(item.body) if not isinstance(part, Bind))
        mask = self._new_mask(step, of_loop=True)
        self._begin_mask(mask)
        self._masks.append(mask)
        asm.jump(test if item.tests_first else body)
        asm.place(test)
        if continues:
            self._back(mask)
        self._run(item.before)
        if item.condition is not None:
            self._ask(item, [mask.bytes, mask.stays], mask, None)
        asm.branch(self._is_someone(mask), body, end)
        asm.place(body)
        self._run(item.body)
        asm.place(step)
        if item.step:
            if continues:
                self._back(mask)
            self._run(item.step)
        asm.jump(test)
        asm.place(end)
        self._masks.pop()

    def _begin_mask(self, mask: Mask) -> None:
        """Let those take part that took part before."""
        with self._all_threads():
            here = self.taking_part()
            for offset in (mask.bytes, mask.stays):
                if offset >= 0:
                    self._set(offset, here)
        self._count(mask)

    def _called(self, item: PlannedCall) -> None:
        mask = self._new_mask(self.asm.fresh("returned"), function=item.frame.path)
        self._begin_mask(mask)
        self._masks.append(mask)
        self._run(item.body)
        self._masks.pop()
        self.asm.place(mask.skip)

    def _back(self, mask: Mask) -> None:
        """Let those that continued a loop take part again."""
        with self._all_threads():
            stays = self.asm.value(f"load i8, ptr {self._flag(mask.stays)}{self._writer.access}")
            self.asm.emit(f"store i8 {stays}, ptr {self._flag(mask.bytes)}{self._writer.access}")
        self._count(mask)

    def _exchange(self, item: Exchange) -> None:
        """Let each thread compute its arguments, then exchange them."""
        expression = item.expression
        arguments: list[tuple[Scalar, int]] = []
        for number, argument in enumerate(expression.arguments):
            assert isinstance(argument.type, Scalar)
            size = argument.type.size * self._padded
            arguments.append((argument.type, self._scratch.take((item, number), size)))
        agreed = [
            self._writer.scalar(item.frame, argument) if same else None
            for argument, same in zip(expression.arguments, item.agreed, strict=True)
        ]

        def give_arguments() -> None:
            for argument, (kind, offset), same in zip(expression.arguments, arguments, item.agreed, strict=True):
                if not same:
                    place = self.element(offset, kind.size, self._thread)
                    self._writer.store(place, kind, self._writer.value(item.frame, argument))

        apart = self._apart(item.frame)
        parallel = not any(touches_one(argument, apart) for argument in expression.arguments)
        self._in_threads(give_arguments, parallel=parallel)
        exchanges.write(_Exchanging(self, item, arguments, agreed), expression.op, expression.type)

    @contextmanager
    def each_lane(self) -> Iterator[str]:
        """Run what is written inside for the number of every thread, up to the last that takes part."""
        asm = self.asm
        last = asm.value(f"load i64, ptr {self._masks[-1].top}") if self._masks and self._in_line else self.threads
        marks = self._independently()
        with asm.loop(last, "lane", *marks) as (thread, _):
            yield thread
        self._writer.access = ""

    def _independently(self) -> list[str]:
        """Return the marks of a loop whose rounds do not touch each other's memory; accesses are of its group now."""
        asm = self.asm
        group = asm.node("", distinct=True)
        self._writer.access = f", !llvm.access.group {group}"
        return [asm.not_unrolled, asm.node(f'!"llvm.loop.parallel_accesses", {group}')]

    def at_thread(self, thread: str, kind: Scalar, offset: int) -> str:
        """Return a thread's element of an array."""
        value = self._writer.load(self.element(offset, kind.size, thread), kind)
        assert isinstance(value, str)
        return value

    def takes_part(self, thread: str) -> str:
        """Return whether a thread takes part."""
        outer, self._thread = self._thread, thread
        answer = self.taking_part()
        self._thread = outer
        return answer

    def give(self, thread: str, item: Exchange, value: str) -> None:
        """Let a thread have the result of an exchange."""
        outer, self._thread = self._thread, thread
        type = item.expression.type
        self._writer.store(self.variable(item.frame, item.slot, type), type, value)
        self._thread = outer


@dataclass
class _Exchanging:
    """The lanes of an exchange, for `exchanges`."""

    kernel: _KernelWriter
    item: Exchange
    arguments: list[tuple[Scalar, int]]
    values: list[str | None]

    @property
    def asm(self) -> Assembly:
        return self.kernel.asm

    @property
    def threads(self) -> int:
        return self.kernel.threads

    def agreed(self, number: int) -> str | None:
        return self.values[number]

    @contextmanager
    def each(self) -> Iterator[str]:
        with self.kernel.each_lane() as thread:
            yield thread

    def argument(self, number: int, thread: str) -> str:
        value = self.values[number]
        return value if value is not None else self.kernel.at_thread(thread, *self.arguments[number])

    def kind(self, number: int) -> Scalar:
        return self.arguments[number][0]

    def here(self, thread: str) -> str:
        return self.kernel.takes_part(thread)

    def give(self, thread: str, value: str) -> None:
        self.kernel.give(thread, self.item, value)
