"""A kernel's plan as one LLVM function that runs a range of blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from gpu.simulator import ir
from gpu.simulator.compiled import exchanges
from gpu.simulator.compiled.assembly import Assembly
from gpu.simulator.compiled.divisions import Divisions
from gpu.simulator.compiled.intervals import Intervals
from gpu.simulator.compiled.own_memory import OwnMemory, Part, Rows
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
    plan,
)
from gpu.simulator.compiled.recompute import Recomputable
from gpu.simulator.compiled.threads import ThreadWriter
from gpu.simulator.compiled.walking import parts, walk
from gpu.simulator.types import Pointer, Scalar, Type

_WARP = 32
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


FAILED = "lockstep.failed"
"""The variable that a failed assertion writes 7 words of 8 bytes to: its number from 1, threadIdx, blockIdx."""


_AROUND = 32 * 8
"""The bytes before and after a worker's memory, so that the lane next to the first or the last one may be read."""


@dataclass
class _Scratch:
    size: int = _AROUND
    offsets: dict[object, int] = field(default_factory=dict)

    def take(self, key: object, size: int) -> int:
        if key not in self.offsets:
            self.offsets[key] = self.size
            self.size += -(-size // 64) * 64
        return self.offsets[key]


def compile_kernel(function: ir.Function, block: Sequence[int], constants: frozenset[str]) -> CompiledText:
    """Return a kernel as LLVM text, for blocks of one shape.

    Raises
    ------
    NotCompiled
        Where it does what this executor leaves to the other one.
    """
    return _KernelWriter(function, block, constants).write()


class _KernelWriter:
    def __init__(self, function: ir.Function, block: Sequence[int], constants: frozenset[str]) -> None:
        self._function = function
        self._block = tuple(block)
        self.threads = block[0] * block[1] * block[2]
        self._padded = -(-self.threads // _WARP) * _WARP
        self._in_line = block[1] == block[2] == 1
        self._own = OwnMemory()
        planned = plan(function, constants, self._own)
        self._plan, self._frames, self._varying = planned.items, planned.frames, planned.varying
        self._computed = planned.computed
        self._recomputable = {
            path: Recomputable(
                frame.function,
                list(walk(frame.function.body)),
                frozenset(slot for each, slot in self._varying if each == path),
            )
            for path, frame in self._frames.items()
        }
        self.asm = Assembly()
        self._writer = ThreadWriter(self.asm, self)
        self._intervals = Intervals(block)
        self._scratch = _Scratch()
        self._shared: dict[object, int] = {}
        self._shared_bytes = 0
        self._variables: dict[tuple[str, int], str] = {}
        self._memories: dict[tuple[str, int], str | tuple[int, int]] = {}
        self._parts: dict[tuple[str, int], Part] = {}
        self._module_variables: dict[str, str] = {}
        self._assertions: list[ir.Assertion] = []
        self._wide: set[tuple[str, int]] = set()
        self._masks: list[Mask] = []
        self._thread = ""
        self._index: tuple[str, str, str] = ("0", "0", "0")
        self._latch = ""
        self._strip: Strip | None = None
        self._divisions = Divisions()
        self._block_index: tuple[str, str, str] = ("0", "0", "0")
        self._survey()

    # What is where.

    def _survey(self) -> None:
        """Find the variables that outlive a place: those that are used in two, and those that such ones are made of."""
        seen: dict[tuple[str, int], int] = {}
        for number, used in enumerate(_places(self._plan)):
            for key in used:
                if seen.setdefault(key, number) != number:
                    self._wide.add(key)
        declared = {
            (path, node.slot)
            for path, frame in self._frames.items()
            for node in walk(frame.function.body)
            if isinstance(node, ir.DeclareMemory)
        }
        self._wide |= declared.intersection(_handed_on(self._plan))
        self._wide |= {("", slot) for slot in range(len(self._function.parameters)) if ("", slot) in self._varying}
        for path, frame in self._frames.items():
            reached = [slot for each, slot in (*self._wide, *self._computed) if each == path]
            for slot in reached:
                value = self.computed(frame, slot)
                for node in walk(value) if value is not None else ():
                    if isinstance(node, ir.Local) and node.slot not in reached:
                        reached.append(node.slot)
                        self._wide.add((path, node.slot))

    def computed(self, frame: Frame, slot: int) -> ir.Expression | None:
        key = (frame.path, slot)
        if key in self._computed:
            return self._computed[key]
        return self._recomputable[frame.path].value(slot) if key in self._varying and key in self._wide else None

    def variable(self, frame: Frame, slot: int, type: Type) -> str:
        key = (frame.path, slot)
        if key in self._varying and key in self._wide:
            return self.element(self._scratch.take(key, type.size * self._padded), type.size, self._thread)
        if key not in self._variables:
            self._variables[key] = self.asm.alloca(type.size, "variable")
        return self._variables[key]

    def element(self, offset: int, size: int, thread: str) -> str:
        """Return the address of a thread's element of an array of the scratch memory."""
        start = self.asm.offset("%scratch", offset)
        if size in (1, 2, 4, 8):
            return self.asm.value(f"getelementptr i{8 * size}, ptr {start}, i64 {thread}", "p")
        return self.asm.offset(start, self.asm.value(f"mul nsw i64 {thread}, {size}"))

    def memory(self, frame: Frame, slot: int) -> str | None:
        for shared in frame.function.shared:
            if shared.slot == slot:
                return self._shared_address(shared)
        found = self._memories.get((frame.path, slot))
        return self.element(*found, self._thread) if isinstance(found, tuple) else found

    def part(self, frame: Frame, slot: int) -> Part | None:
        """Return the memory that is taken apart and that a variable holds, or leads to."""
        key = (frame.path, slot)
        if key in self._wide and slot in self._slots_apart(frame.function):
            return Part(*key, 0)
        return self._parts.get(key)

    def lead_to(self, frame: Frame, slot: int, part: Part) -> None:
        """Take note that a parameter leads to memory that is taken apart."""
        self._parts[frame.path, slot] = part

    def member(self, part: Part, size: int) -> str:
        """Return the address of a thread's member."""
        rows = self.rows(part)
        if rows is not None:
            return self.in_row(part, str(part.offset // rows.width))
        key = (part.frame, part.slot, part.offset)
        return self.element(self._scratch.take(key, size * self._padded), size, self._thread)

    def members(self, part: Part) -> dict[int, int]:
        """Return the members of memory that is taken apart: their offsets and sizes in bytes."""
        rows = self.rows(part)
        if rows is not None:
            return {rows.width * number: rows.width for number in range(rows.count)}
        return self._own.taken_apart(self._frames[part.frame].function)[part.slot]

    def rows(self, part: Part) -> Rows | None:
        """Return what rows memory has become, None where each member has an array."""
        return self._own.in_rows(self._frames[part.frame].function).get(part.slot)

    def in_row(self, part: Part, row: str) -> str:
        """Return the address of a thread's value in a row."""
        rows = self.rows(part)
        assert rows is not None
        start = self._scratch.take((part.frame, part.slot, "rows"), rows.count * rows.width * self._padded)
        before = self.asm.value(f"mul nsw i64 {row}, {self._padded}")
        return self.element(start, rows.width, self.asm.value(f"add nsw i64 {before}, {self._thread}"))

    def _slots_apart(self, function: ir.Function) -> set[int]:
        return {*self._own.taken_apart(function), *self._own.in_rows(function)}

    def _shared_address(self, shared: ir.SharedArray) -> str:
        key: object = "extern" if shared.dynamic else shared
        if key not in self._shared:
            if shared.dynamic:
                self._shared[key] = -1
            else:
                self._shared[key] = self._shared_bytes
                self._shared_bytes += -(-shared.size // 64) * 64
        return "%extern" if shared.dynamic else self.asm.offset("%shared", self._shared[key])

    def own_memory(self, frame: Frame, slot: int, size: int) -> str:
        key = (frame.path, slot)
        if key in self._wide:
            stride = -(-size // 16) * 16
            wide = (self._scratch.take(key, stride * self._padded), stride)
            self._memories[key] = wide
            return self.element(*wide, self._thread)
        if key not in self._memories:
            self._memories[key] = self.asm.alloca(size, "own")
        place = self._memories[key]
        assert isinstance(place, str)
        return place

    def variable_of_module(self, name: str) -> str:
        return self._module_variables.setdefault(name, f"%module.{len(self._module_variables)}")

    def assertion(self, assertion: ir.Assertion) -> tuple[str, int]:
        self._assertions.append(assertion)
        return self.variable_of_module(FAILED), len(self._assertions)

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

    def is_shared(self, frame: Frame, pointer: ir.Expression) -> bool:
        match pointer:
            case ir.Local(_, slot, _):
                return any(shared.slot == slot for shared in frame.function.shared)
            case ir.Offset(_, inner, _) | ir.Member(_, inner, _) | ir.Cast(_, inner):
                return self.is_shared(frame, inner)
        return False

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
            self._scratch.size + _AROUND,
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
            if self._masks and _takes_out(item):
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
            _touches_one(statement.value if isinstance(statement, Bind) else statement, self._apart(frame))
            for frame, statement in region.statements
        )
        strip = self._divisions.strip(region.statements, self._block[0]) if parallel else 0
        self._in_threads(lambda: self._statements_of(region), parallel=parallel, strip=strip)
        if _takes_out(region):
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
        continues = any("continue" in _jumps(part) for part in _statements(item.body) if not isinstance(part, Bind))
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
        parallel = not any(_touches_one(argument, apart) for argument in expression.arguments)
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


Key = tuple[str, int]


def _places(items: Plan) -> Iterator[set[Key]]:
    """Yield the variables of each place: one that is used in two of them outlives both."""
    for item in items:
        match item:
            case Region(statements):
                yield {key for frame, statement in statements for key in _used(frame, statement)}
            case Once(frame, statement):
                yield set(_used(frame, statement))
            case Exchange(frame, slot, expression):
                yield set(_used(frame, expression))
                yield {(frame.path, slot)}
                yield set()
            case PlannedIf(frame, condition, _, then, orelse):
                yield set(_used(frame, condition))
                yield from _places(then)
                yield from _places(orelse or [])
            case PlannedLoop(frame, before, condition, _, body, step):
                yield from _places(before)
                if condition is not None:
                    yield set(_used(frame, condition))
                yield from _places(body)
                yield from _places(step)
            case PlannedCall(_, body):
                yield from _places(body)


def _handed_on(items: Plan) -> Iterator[Key]:
    """Yield what functions that wait are given: a thread's own memory is used in their many places."""
    for item in items:
        match item:
            case Region(statements):
                for frame, statement in statements:
                    if isinstance(statement, Bind):
                        yield from _used(frame, statement.value)
            case Once(frame, Bind() as bind):
                yield from _used(frame, bind.value)
            case PlannedIf(_, _, _, then, orelse):
                yield from _handed_on(then)
                yield from _handed_on(orelse or [])
            case PlannedLoop(_, before, _, _, body, step):
                for inner in (before, body, step):
                    yield from _handed_on(inner)
            case PlannedCall(_, body):
                yield from _handed_on(body)


def _used(frame: Frame, node: object) -> Iterator[Key]:
    if isinstance(node, Bind):
        yield node.frame.path, node.slot
        node = node.value
    for each in walk(node):
        match each:
            case ir.Local(_, slot, _) | ir.Declare(slot) | ir.DeclareMemory(slot):
                yield frame.path, slot
            case ir.Return() if frame.result is not None:
                yield frame.result[0].path, frame.result[1]


def _statements(items: Plan) -> Iterator[object]:
    """Yield all that threads run."""
    for item in items:
        match item:
            case Region(statements):
                yield from (statement for _, statement in statements)
            case PlannedIf(_, _, _, then, orelse):
                yield from _statements(then)
                yield from _statements(orelse or [])
            case PlannedLoop(_, before, _, _, body, step):
                for part in (before, body, step):
                    yield from _statements(part)
            case PlannedCall(_, body):
                yield from _statements(body)


def _takes_out(item: Item) -> bool:
    """Whether threads may leave what is around an item: a loop, or a function."""
    match item:
        case Region(statements):
            return any(not isinstance(each, Bind) and not _jumps(each).isdisjoint(_WAYS_OUT) for _, each in statements)
        case PlannedIf(_, _, _, then, orelse):
            return any(map(_takes_out, (*then, *(orelse or []))))
        case PlannedLoop():
            return any("return" in _jumps(each) for each in _statements([item]) if not isinstance(each, Bind))
    return False


_WAYS_OUT = ("break", "continue", "return")


def _jumps(node: object) -> set[str]:
    """Return the kinds of jumps that lead out of a statement."""
    found: set[str] = {node.kind} if isinstance(node, ir.Jump) else set()
    if isinstance(node, ir.Return):
        found.add("return")
    for part in parts(node):
        found |= _jumps(part)
    inside = ("break", "continue") if isinstance(node, ir.Loop) else ("break",) if isinstance(node, ir.Switch) else ()
    return found.difference(inside)


def _touches_one(node: object, apart: set[int]) -> bool:
    """Whether there is memory that all threads touch, or that they have one after the other; not where taken apart."""
    for each in walk(node):
        match each:
            case ir.DeclareMemory(slot) if slot in apart:
                continue
            case ir.Atomic() | ir.DeclareMemory() | ir.Temporary() | ir.Fence():
                return True
            case ir.Call() if _touches_one(each.function.body, set()):
                return True
    return False
