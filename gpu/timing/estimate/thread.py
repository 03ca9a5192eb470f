"""What one thread does, as LLVM's text for NVIDIA's GPUs: LLVM then optimizes it as their compiler would."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

import numpy.typing as npt

from gpu.errors import CompileError, SourcePosition
from gpu.simulator import ir
from gpu.simulator.compiled import arithmetic
from gpu.simulator.compiled.assembly import Assembly, NotCompiled, memory_type, value_type
from gpu.simulator.intrinsics import MATRIX_PRODUCTS, WARPGROUP_PRODUCT, WHOLE_WARP
from gpu.simulator.types import BOOL, INT64, Pointer, Scalar, Struct, Type, Void, leaves

Array = npt.NDArray[Any]
Value = str | tuple[str, ...]

_AXES = "xyz"
_SPECIALS = {"threadIdx": "tid", "blockIdx": "ctaid", "blockDim": "ntid", "gridDim": "nctaid"}
_SHUFFLES = {"__shfl_sync": "idx", "__shfl_up_sync": "up", "__shfl_down_sync": "down", "__shfl_xor_sync": "bfly"}
_SUMS = {"add": "add", "min": "min", "max": "max", "and": "and", "or": "or", "xor": "xor"}
_LOG2_E, _LN_2 = "0x3FF7154760000000", "0x3FE62E4300000000"
_HALF_DEPTH = 16
"""Elements of a row that are multiplied at once, of 16-bit floats; of TF32 half as many."""
_WIDE = 8
_MOST_ROUNDS = 64
"""Rounds of a loop up to which it is unrolled to its end, if its bound is known."""


@dataclass
class _CallFrame:
    """A function that is being written where it is called: its variables, and where its value goes.

    `counters` are the variables that begin with a number that the text knows.
    """

    function: ir.Function
    variables: dict[int, str] = field(default_factory=dict)
    arrays: dict[int, str] = field(default_factory=dict)
    counters: set[int] = field(default_factory=set)
    result: str = ""
    end: str = ""


class ThreadWriter:
    """Writes a kernel for one thread.

    Parameters
    ----------
    variables : mapping of str to (str, array)
        Of the module: their state spaces, "constant" or "global", and their bytes.
    located : str
        The name of the file whose lines instructions are to know; "" where they need not.
    """

    def __init__(self, variables: Mapping[str, tuple[str, Array]], located: str = "") -> None:
        self._asm = Assembly()
        self._module = variables
        self._globals: dict[str, str] = {}
        self._loops: list[tuple[str, str]] = []
        self._depth = 0
        self._enabled = ""
        self._located = located
        self._scope = ""
        self._marks: dict[int, str] = {}
        self._named: list[str] = []

    def kernel(self, function: ir.Function) -> str:
        """Return a module's text with the kernel in it; CompileError says what is not estimated."""
        asm = self._asm
        frame = _CallFrame(function, end="end")
        known = self._know_lines(function.name) if self._located else ""
        parameters = []
        try:
            for slot, (_, type) in enumerate(function.parameters):
                name = f"%argument.{slot}"
                if isinstance(type, Struct):
                    parameters.append(f"ptr byval([{type.size} x i8]) align {max(type.alignment, 1)} {name}")
                    self._store(self._variable(frame, slot, type), type, self._load(name, type))
                else:
                    what = memory_type(type) if isinstance(type, Scalar | Pointer) else "ptr"
                    parameters.append(f"{what} {name}")
                    asm.emit(f"store {what} {name}, ptr {self._variable(frame, slot, type)}")
            self._shared(frame)
            self._statement(frame, function.body)
            for each in sorted(asm.declared):
                if "@llvm." not in each:  # the C library's, which no GPU has
                    raise NotCompiled(f"the function {each.partition('@')[2].partition('(')[0]}")
        except NotCompiled as reason:
            raise CompileError(f"{function.name} cannot be estimated without nvcc: it has {reason}.") from None
        if not asm.ended:
            asm.jump("end")
        body = "\n".join(
            ["entry:", *asm.entry, "  br label %start", "start:", *map(str, asm.lines), "end:", "  ret void"]
        )
        head = "\n".join([*self._globals.values(), *sorted(asm.declared)])
        opening = f"define ptx_kernel void @{function.name}({', '.join(parameters)}){known} {{"
        return "\n".join([head, opening, body, "}", *asm.metadata, *self._named])

    # Lines.

    def _know_lines(self, name: str) -> str:
        """Write down what is said of the file and the kernel, so that lines can be; return the kernel's mark."""
        asm = self._asm
        file = asm.described(f'!DIFile(filename: "{self._located}", directory: "/")')
        unit = asm.described(
            f"distinct !DICompileUnit(language: DW_LANG_C_plus_plus, file: {file}, emissionKind: DebugDirectivesOnly)"
        )
        type = asm.described(f"!DISubroutineType(types: {asm.node('null')})")
        self._scope = asm.described(
            f'distinct !DISubprogram(name: "{name}", scope: {file}, file: {file}, type: {type}, unit: {unit}, '
            "spFlags: DISPFlagDefinition)"
        )
        version = asm.node('i32 2, !"Debug Info Version", i32 3')
        self._named += [f"!llvm.dbg.cu = !{{{unit}}}", f"!llvm.module.flags = !{{{version}}}"]
        asm.mark = self._mark_of(0)
        return f" !dbg {self._scope}"

    def _mark_of(self, line: int) -> str:
        if line not in self._marks:
            self._marks[line] = f", !dbg {self._asm.described(f'!DILocation(line: {line}, scope: {self._scope})')}"
        return self._marks[line]

    def _at_line(self, position: SourcePosition) -> None:
        """Let what follows be of a line; what a header does is of the line that called it."""
        if self._located and PurePath(position.file).name == self._located:
            self._asm.mark = self._mark_of(position.line)

    # Statements.

    def _shared(self, frame: _CallFrame) -> None:
        for shared in frame.function.shared:
            name = "@extern_shared" if shared.dynamic else f"@shared.{frame.function.name}.{shared.slot}"
            kind = "external" if shared.dynamic else "internal"
            start = "" if shared.dynamic else " undef"
            self._globals[name] = (
                f"{name} = {kind} addrspace(3) global [{shared.size if start else 0} x i8]{start}, align 16"
            )
            frame.arrays[shared.slot] = self._asm.value(f"addrspacecast ptr addrspace(3) {name} to ptr")

    def _statement(self, frame: _CallFrame, statement: ir.Statement) -> None:
        asm = self._asm
        if not isinstance(statement, ir.Block):
            self._at_line(statement.position)
        match statement:
            case ir.Evaluate(expression):
                self._value(frame, expression)
            case ir.Declare(slot, type, value):
                place = self._variable(frame, slot, type)
                if value is not None:
                    self._store(place, type, self._value(frame, value))
                (frame.counters.add if _is_constant(value) else frame.counters.discard)(slot)
            case ir.DeclareMemory(slot, size, values, zeroed):
                place = frame.arrays.setdefault(slot, asm.alloca(size, "array"))
                if zeroed:
                    asm.fill(place, 0, size)
                for offset, value in values:
                    self._store(asm.offset(place, offset), value.type, self._value(frame, value))
            case ir.Block(statements):
                for each in statements:
                    self._statement(frame, each)
            case ir.If(condition, then, orelse):
                labels = asm.fresh("then"), asm.fresh("else"), asm.fresh("after")
                asm.branch(self._scalar(frame, condition), labels[0], labels[1])
                asm.place(labels[0])
                self._statement(frame, then)
                asm.jump(labels[2])
                asm.place(labels[1])
                if orelse is not None:
                    self._statement(frame, orelse)
                asm.place(labels[2])
            case ir.Loop():
                self._loop(frame, statement)
            case ir.Switch():
                self._switch(frame, statement)
            case ir.Jump(kind):
                asm.jump(self._loops[-1][0 if kind == "break" else 1])
            case ir.Return(value):
                if value is not None and frame.result:
                    self._store(frame.result, value.type, self._value(frame, value))
                asm.jump(frame.end)
            case ir.Barrier():
                self._call("void", "llvm.nvvm.barrier0", [])

    def _loop(self, frame: _CallFrame, loop: ir.Loop) -> None:
        asm = self._asm
        test, body, step, after = (asm.fresh(name) for name in ("test", "body", "step", "after"))
        asm.jump(test if loop.tests_first else body)
        asm.place(test)
        if loop.condition is not None:
            asm.branch(self._scalar(frame, loop.condition), body, after)
        asm.place(body)
        self._loops.append((after, step))
        self._statement(frame, loop.body)
        self._loops.pop()
        self._at_line(loop.position)
        asm.place(step)
        if loop.step is not None:
            self._value(frame, loop.step)
        asm.jump(test, f", !llvm.loop {self._unrolled()}" if _is_counted(loop, frame.counters) else "")
        asm.place(after)

    def _unrolled(self) -> str:
        """Return what tells LLVM to unroll a loop as far as NVIDIA's compiler does, which goes further."""
        if not self._enabled:
            self._enabled = self._asm.node('!"llvm.loop.unroll.enable"')
        return self._asm.node(f"self, {self._enabled}", distinct=True)

    def _switch(self, frame: _CallFrame, switch: ir.Switch) -> None:
        asm = self._asm
        type = switch.value.type
        assert isinstance(type, Scalar)
        value, after = self._scalar(frame, switch.value), asm.fresh("after")
        labels = [asm.fresh("case") for _ in switch.sections]
        for label, section in zip(labels, switch.sections, strict=True):
            for case in section.values:
                other = asm.fresh("other")
                asm.branch(asm.value(f"icmp eq {value_type(type)} {value}, {case}"), label, other)
                asm.place(other)
        default = next((label for label, each in zip(labels, switch.sections, strict=True) if each.is_default), after)
        asm.jump(default)
        self._loops.append((after, self._loops[-1][1] if self._loops else after))
        for label, section in zip(labels, switch.sections, strict=True):
            asm.place(label)
            self._statement(frame, section.body)
        self._loops.pop()
        asm.place(after)

    # Memory.

    def _variable(self, frame: _CallFrame, slot: int, type: Type) -> str:
        if slot not in frame.variables:
            frame.variables[slot] = self._asm.alloca(max(type.size, 1), "variable")
        return frame.variables[slot]

    def _load(self, place: str, type: Type, *, volatile: bool = False) -> Value:
        how = "load volatile" if volatile else "load"
        parts = [
            self._asm.value(f"{how} {memory_type(leaf)}, ptr {self._at(place, offset)}, align {align}")
            for offset, leaf, align in _parts(type)
        ]
        found = [
            self._asm.value(f"trunc i8 {part} to i1") if leaf == BOOL else part
            for part, (_, leaf, _) in zip(parts, _parts(type), strict=True)
        ]
        return found[0] if isinstance(type, Scalar | Pointer) else tuple(found)

    def _store(self, place: str, type: Type, value: Value, *, volatile: bool = False) -> None:
        given = value if isinstance(value, tuple) else (value,)
        for each, (offset, leaf, align) in zip(given, _parts(type), strict=True):
            stored = self._asm.value(f"zext i1 {each} to i8") if leaf == BOOL else each
            how = "store volatile" if volatile else "store"
            self._asm.emit(f"{how} {memory_type(leaf)} {stored}, ptr {self._at(place, offset)}, align {align}")

    def _at(self, place: str, offset: int) -> str:
        return self._asm.offset(place, offset) if offset else place

    def _address(self, frame: _CallFrame, place: ir.Place) -> str:
        if isinstance(place, ir.Local):
            return self._variable(frame, place.slot, place.type)
        start = self._scalar(frame, place.pointer)
        return start if place.index is None else self._moved(frame, start, place.index, place.type.size)

    def _moved(self, frame: _CallFrame, start: str, index: ir.Expression, size: int) -> str:
        assert isinstance(index.type, Scalar)
        at = arithmetic.cast(self._asm, index.type, INT64, self._scalar(frame, index))
        return self._asm.value(f"getelementptr inbounds [{size} x i8], ptr {start}, i64 {at}", "p")

    def _global(self, name: str) -> str:
        space, data = self._module[name]
        number = 4 if space == "constant" else 1
        if name not in self._globals:
            content = "".join(f"\\{byte:02X}" for byte in data.tobytes())
            head = f'@"{name}" = addrspace({number}) externally_initialized global'
            self._globals[name] = f'{head} [{data.size} x i8] c"{content}", align 16'
        return self._asm.value(f'addrspacecast ptr addrspace({number}) @"{name}" to ptr')

    # Expressions.

    def _scalar(self, frame: _CallFrame, expression: ir.Expression) -> str:
        value = self._value(frame, expression)
        return value[0] if isinstance(value, tuple) else value

    def _copy(self, frame: _CallFrame, copy: ir.AsyncCopy) -> None:
        """Start a copy to shared memory: how many bytes it has the compiler finds out."""
        asm = self._asm
        to = asm.value(f"addrspacecast ptr {self._scalar(frame, copy.to)} to ptr addrspace(3)")
        source = asm.value(f"addrspacecast ptr {self._scalar(frame, copy.source)} to ptr addrspace(1)")
        size = self._scalar(frame, copy.bytes)
        given = self._scalar(frame, copy.given) if copy.given is not None else size
        read = asm.value(f"trunc i64 {given} to i32")
        for count, cache in ((4, "ca"), (8, "ca"), (16, "cg")):
            with asm.when(asm.value(f"icmp eq i64 {size}, {count}")):
                asm.emit(
                    f'call void asm sideeffect "cp.async.{cache}.shared.global [$0], [$1], {count}, $2;", '
                    f'"l,l,r,~{{memory}}"(ptr addrspace(3) {to}, ptr addrspace(1) {source}, i32 {read})'
                )

    def _copy_in_bulk(self, frame: _CallFrame, copy: ir.BulkCopy) -> None:
        if copy.barrier is None:
            raise NotCompiled("copies in bulk to global memory")
        asm = self._asm
        to = asm.value(f"addrspacecast ptr {self._scalar(frame, copy.to)} to ptr addrspace(3)")
        source = asm.value(f"addrspacecast ptr {self._scalar(frame, copy.source)} to ptr addrspace(1)")
        asm.emit(
            'call void asm sideeffect "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes '
            '[$0], [$1], $2, [$0];", "l,l,r,~{memory}"'
            f"(ptr addrspace(3) {to}, ptr addrspace(1) {source}, i32 {self._scalar(frame, copy.bytes)})"
        )

    def _value(self, frame: _CallFrame, expression: ir.Expression) -> Value:
        asm = self._asm
        match expression:
            case ir.Const(type, value):
                return arithmetic.literal(type, value)
            case ir.Null():
                return "null"
            case ir.Local(type, slot, _):
                return (
                    frame.arrays[slot] if slot in frame.arrays else self._load(self._variable(frame, slot, type), type)
                )
            case ir.Global(_, name):
                return self._global(name)
            case ir.Special(type, name, axis):
                if name not in _SPECIALS:
                    raise NotCompiled("clusters of blocks")
                number = self._call("i32", f"llvm.nvvm.read.ptx.sreg.{_SPECIALS[name]}.{_AXES[axis]}", [])
                return arithmetic.cast(asm, Scalar("uint32"), type, number)
            case ir.SharedAddress(type, operand):
                held = self._scalar(frame, operand)
                if isinstance(type, Scalar):
                    place = asm.value(f"addrspacecast ptr {held} to ptr addrspace(3)")
                    return asm.value(f"ptrtoint ptr addrspace(3) {place} to {value_type(type)}")
                assert isinstance(operand.type, Scalar)
                assert isinstance(operand.type, Scalar)
                place = asm.value(f"inttoptr {value_type(operand.type)} {held} to ptr addrspace(3)")
                return asm.value(f"addrspacecast ptr addrspace(3) {place} to ptr")
            case ir.AsyncCopy():
                self._copy(frame, expression)
                return "void"
            case ir.BulkCopy():
                self._copy_in_bulk(frame, expression)
                return "void"
            case ir.BarrierPhase(_, op):
                return "true" if op == "test" else "0"  # who waits is taken to have waited
            case ir.AsyncCommit(kind="bulk" | "product") | ir.AsyncWait(kind="bulk" | "product"):
                return "void"
            case ir.AsyncCommit(kind="copy"):
                asm.emit('call void asm sideeffect "cp.async.commit_group;", ""()')
                return "void"
            case ir.AsyncWait(kind="copy"):
                asm.emit('call void asm sideeffect "cp.async.wait_all;", "~{memory}"()')
                return "void"
            case ir.Unary(_, op, operand):
                assert isinstance(operand.type, Scalar)
                return arithmetic.unary(asm, op, operand.type, self._scalar(frame, operand))
            case ir.Binary(_, op, left, right):
                return self._binary(frame, op, left, right)
            case ir.Logical(_, op, left, right):
                place = asm.alloca(1, "logical")
                first = self._scalar(frame, left)
                asm.emit(f"store i1 {first}, ptr {place}")
                with asm.when(first if op == "&&" else asm.value(f"xor i1 {first}, true")):
                    asm.emit(f"store i1 {self._scalar(frame, right)}, ptr {place}")
                return asm.value(f"load i1, ptr {place}")
            case ir.Select(type, condition, chosen, other):
                return self._select(frame, type, condition, chosen, other)
            case ir.Sequence(_, first_part, second_part):
                self._value(frame, first_part)
                return self._value(frame, second_part)
            case ir.Cast():
                return self._cast(frame, expression)
            case ir.Offset(type, pointer, index):
                return self._moved(frame, self._scalar(frame, pointer), index, type.element.size)
            case ir.Member(_, pointer, offset):
                return self._at(self._scalar(frame, pointer), offset)
            case ir.Construct(_, parts):
                flat: list[str] = []
                for part in parts:
                    given = self._value(frame, part)
                    flat += given if isinstance(given, tuple) else (given,)
                return tuple(flat)
            case ir.Extract(type, operand, first_leaf):
                whole = self._value(frame, operand)
                assert isinstance(whole, tuple)
                if isinstance(type, Scalar | Pointer):
                    return whole[first_leaf]
                return whole[first_leaf : first_leaf + len(leaves(type))]
            case ir.Temporary(type, inner):
                place = asm.alloca(type.element.size, "temporary")
                if inner is not None:
                    self._store(place, type.element, self._value(frame, inner))
                return place
            case ir.Distance(_, left, right):
                assert isinstance(left.type, Pointer)
                numbers = [asm.value(f"ptrtoint ptr {self._scalar(frame, side)} to i64") for side in (left, right)]
                return asm.value(
                    f"sdiv exact i64 {asm.value(f'sub i64 {numbers[0]}, {numbers[1]}')}, {left.type.element.size}"
                )
            case ir.Load(reads_on=True):
                return "0"  # tensor cores load it themselves
            case ir.Load(type, element):
                return self._load(self._address(frame, element), type, volatile=element.volatile)
            case ir.Assign(type, target, inner):
                new = self._value(frame, inner)
                volatile = isinstance(target, ir.Element) and target.volatile
                self._store(self._address(frame, target), type, new, volatile=volatile)
                return new
            case ir.Update():
                return self._update(frame, expression)
            case ir.Intrinsic(type, name, arguments):
                return self._intrinsic(frame, name, type, arguments)
            case ir.Atomic():
                return self._atomic(frame, expression)
            case ir.Warp(type, op, arguments):
                return self._exchange(frame, op, type, arguments)
            case ir.Fence(_, name):
                if name.startswith("__threadfence"):
                    scope = "cta" if name.endswith("block") else "sys" if name.endswith("system") else "gl"
                    self._call("void", f"llvm.nvvm.membar.{scope}", [])
                return "0"
            case ir.HeapChange() | ir.Assertion() | ir.Print():
                return "0"
            case ir.Clock():
                return "0"
            case ir.Call():
                return self._inlined(frame, expression)
        raise NotCompiled(f"{expression.__class__.__name__.lower()} expressions")

    def _binary(self, frame: _CallFrame, op: str, left: ir.Expression, right: ir.Expression) -> str:
        asm = self._asm
        assert isinstance(left.type, Scalar)
        first, second = self._scalar(frame, left), self._scalar(frame, right)
        if op in ("<<", ">>") and isinstance(right.type, Scalar):
            second = arithmetic.cast(asm, right.type, left.type, second)
            bits = 8 * left.type.size - 1
            masked = asm.value(f"and {value_type(left.type)} {second}, {bits}") if not second.isdigit() else second
            kind = "shl" if op == "<<" else "ashr" if left.type.is_signed else "lshr"
            return asm.value(f"{kind} {value_type(left.type)} {first}, {masked}")
        if op in "/%" and not left.type.is_float:
            sign = "s" if left.type.is_signed else "u"
            return asm.value(f"{sign}{'div' if op == '/' else 'rem'} {value_type(left.type)} {first}, {second}")
        flags = "nsw " if left.type.is_signed else ""
        return arithmetic.binary(asm, op, left.type, first, second, flags=flags)

    def _select(
        self, frame: _CallFrame, type: Type, condition: ir.Expression, chosen: ir.Expression, other: ir.Expression
    ) -> Value:
        asm = self._asm
        place = asm.alloca(max(type.size, 1), "select")
        labels = asm.fresh("then"), asm.fresh("else"), asm.fresh("after")
        asm.branch(self._scalar(frame, condition), labels[0], labels[1])
        for label, side in zip(labels[:2], (chosen, other), strict=True):
            asm.place(label)
            value = self._value(frame, side)
            if type.size:
                self._store(place, type, value)
            asm.jump(labels[2])
        asm.place(labels[2])
        return self._load(place, type) if type.size else "0"

    def _cast(self, frame: _CallFrame, expression: ir.Cast) -> Value:
        asm, source, target = self._asm, expression.operand.type, expression.type
        operand = self._value(frame, expression.operand)
        if not isinstance(operand, str):
            return operand
        if isinstance(source, Scalar) and isinstance(target, Scalar):
            if source.is_float and not target.is_float and target != BOOL and target.size >= 4:
                sign = "s" if target.is_signed else "u"
                return asm.value(f"fpto{sign}i {value_type(source)} {operand} to {value_type(target)}")
            return arithmetic.cast(asm, source, target, operand)
        if isinstance(source, Pointer) and isinstance(target, Scalar):
            return arithmetic.pointer_number(asm, operand, target)
        if isinstance(source, Scalar) and isinstance(target, Pointer):
            return asm.value(f"inttoptr i64 {arithmetic.cast(asm, source, INT64, operand)} to ptr")
        return operand

    def _update(self, frame: _CallFrame, update: ir.Update) -> Value:
        asm, place, by = self._asm, update.place, update.value
        if isinstance(update.compute, Pointer):
            where = self._address(frame, place)
            old = self._load(where, place.type)
            assert isinstance(old, str)
            new = self._moved(frame, old, by, update.compute.element.size)
        else:
            held, compute = update.type, update.compute
            assert isinstance(held, Scalar)
            right = self._scalar(frame, by)
            where = self._address(frame, place)
            old = self._load(where, place.type)
            assert isinstance(old, str)
            if update.op in ("<<", ">>") and isinstance(by.type, Scalar):
                right = arithmetic.cast(asm, by.type, compute, right)
            flags = "nsw " if compute.is_signed else ""
            wide = arithmetic.cast(asm, held, compute, old)
            new = arithmetic.cast(
                asm, compute, held, arithmetic.binary(asm, update.op, compute, wide, right, flags=flags)
            )
        self._store(where, place.type, new)
        return old if update.gives_old else new

    def _intrinsic(self, frame: _CallFrame, name: str, type: Scalar, arguments: tuple[ir.Expression, ...]) -> str:
        asm = self._asm
        kinds: list[Any] = [each.type for each in arguments]
        values = [self._scalar(frame, each) for each in arguments]
        base = name.strip("_").removesuffix("f") if kinds and kinds[0] == Scalar("float32") else name
        if kinds and kinds[0] == Scalar("float32"):
            if base in ("exp", "exp2", "exp10"):
                by = {"exp": _LOG2_E, "exp2": "1.0", "exp10": "0x400A934F00000000"}[base]
                return self._call(
                    "float", "llvm.nvvm.ex2.approx.f", [f"float {asm.value(f'fmul float {values[0]}, {by}')}"]
                )
            if base in ("log", "log2", "log10"):
                found = self._call("float", "llvm.nvvm.lg2.approx.f", [f"float {values[0]}"])
                return asm.value(f"fmul float {found}, {_LN_2}")
            if base in ("sin", "cos", "tan"):
                return self._call(
                    "float", f"llvm.nvvm.{'sin' if base != 'cos' else 'cos'}.approx.f", [f"float {values[0]}"]
                )
            if base in ("rsqrt", "frsqrt_rn"):
                return self._call("float", "llvm.nvvm.rsqrt.approx.f", [f"float {values[0]}"])
            if base == "pow":
                logged = self._call("float", "llvm.nvvm.lg2.approx.f", [f"float {values[0]}"])
                return self._call(
                    "float", "llvm.nvvm.ex2.approx.f", [f"float {asm.value(f'fmul float {logged}, {values[1]}')}"]
                )
        return arithmetic.intrinsic(asm, name, type, kinds, values)

    def _atomic(self, frame: _CallFrame, atomic: ir.Atomic) -> str:
        asm, type = self._asm, atomic.type
        what = memory_type(type)
        where = self._address(frame, atomic.place)
        values = [self._scalar(frame, argument) for argument in atomic.arguments]
        if atomic.op == "cas":
            ints = f"i{8 * type.size}"
            pair = asm.value(f"cmpxchg ptr {where}, {ints} {values[0]}, {ints} {values[1]} monotonic monotonic")
            return asm.value(f"extractvalue {{ {ints}, i1 }} {pair}, 0")
        kind = {"exch": "xchg", "inc": "uinc_wrap", "dec": "udec_wrap"}.get(atomic.op, atomic.op)
        if type.is_float:
            kind = {"min": "fmin", "max": "fmax", "xchg": "xchg"}.get(kind, f"f{kind}")
        elif kind in ("min", "max") and not type.is_signed:
            kind = f"u{kind}"
        return asm.value(f"atomicrmw {kind} ptr {where}, {what} {values[0]} monotonic, align {type.size}")

    def _exchange(self, frame: _CallFrame, op: str, type: Scalar, arguments: tuple[ir.Expression, ...]) -> str:
        asm = self._asm
        if op == WHOLE_WARP:
            return "0"
        values = [self._scalar(frame, each) for each in arguments]
        kinds: list[Any] = [each.type for each in arguments]
        if op in MATRIX_PRODUCTS:
            return self._product(type, kinds, values, "wgmma" if op == WARPGROUP_PRODUCT else "mma")
        if op == "__activemask":
            return self._call("i32", "llvm.nvvm.activemask", [])
        if op.startswith("__syncthreads_"):
            flag = asm.value(f"zext i1 {self._truth(kinds[0], values[0])} to i32")
            name = {"count": "popc", "and": "and", "or": "or"}[op.removeprefix("__syncthreads_")]
            return self._as(self._call("i32", f"llvm.nvvm.barrier0.{name}", [f"i32 {flag}"]), type)
        mask = f"i32 {values[0]}"
        if op in _SHUFFLES:
            return self._shuffle(_SHUFFLES[op], mask, kinds[1], values, kinds)
        if op == "__ballot_sync":
            return self._call("i32", "llvm.nvvm.vote.ballot.sync", [mask, f"i1 {self._truth(kinds[1], values[1])}"])
        if op in ("__any_sync", "__all_sync"):
            name = op.strip("_").partition("_")[0]
            holds = self._call("i1", f"llvm.nvvm.vote.{name}.sync", [mask, f"i1 {self._truth(kinds[1], values[1])}"])
            return arithmetic.cast(asm, BOOL, type, holds)
        if op == "__match_any_sync":
            bits = 8 * kinds[1].size
            number = asm.value(f"bitcast float {values[1]} to i32") if kinds[1].is_float else values[1]
            return self._call("i32", f"llvm.nvvm.match.any.sync.i{bits}", [mask, f"i{bits} {number}"])
        if op.startswith("__reduce_"):
            name = op.removeprefix("__reduce_").removesuffix("_sync")
            signed = "" if name not in ("min", "max") else "" if type.is_signed else "u"
            return self._call("i32", f"llvm.nvvm.redux.sync.{signed}{_SUMS[name]}", [f"i32 {values[1]}", mask])
        raise NotCompiled(f"the exchange {op}")

    def _product(self, type: Scalar, kinds: list[Any], values: list[str], by: str) -> str:
        """Write what each lane has of a product of tiles as a PTX instruction of our own, which says how large it is.

        Four lanes have the elements of a row, and of a column, among them.
        """
        depth = 4 * (len(values) - 2) // 2
        of_floats = "f16" if depth == _HALF_DEPTH else "tf32"
        element = of_floats if kinds[2] == Scalar("float32") else "f64" if kinds[2].is_float else "s8"
        letters = ["d" if kind.size == _WIDE else "f" if kind.is_float else "r" for kind in (type, *kinds)]
        places = ", ".join(f"${number}" for number in range(len(letters)))
        given = ", ".join(f"{value_type(kind)} {value}" for kind, value in zip(kinds, values, strict=True))
        text = f"{by}.part.m32n1k{depth}.{element} {places};"
        return self._asm.value(f'call {value_type(type)} asm "{text}", "={",".join(letters)}"({given})')

    def _shuffle(self, mode: str, mask: str, kind: Scalar, values: list[str], kinds: list[Any]) -> str:
        asm = self._asm
        by = arithmetic.cast(asm, kinds[2], Scalar("uint32"), values[2])
        width = values[3] if len(values) > 3 else "32"
        segment = asm.value(
            f"sub i32 32, {arithmetic.cast(asm, kinds[3], Scalar('int32'), width) if len(values) > 3 else 32}"
        )
        limits = asm.value(f"shl i32 {segment}, 8")
        if mode != "up":
            limits = asm.value(f"or i32 {limits}, 31")

        def moved(word: str) -> str:
            given = [mask, f"i32 {word}", f"i32 {by}", f"i32 {limits}"]
            return self._call("i32", f"llvm.nvvm.shfl.sync.{mode}.i32", given)

        if kind.size == _WIDE:
            whole = asm.value(f"bitcast double {values[1]} to i64") if kind.is_float else values[1]
            low = moved(asm.value(f"trunc i64 {whole} to i32"))
            high = moved(asm.value(f"trunc i64 {asm.value(f'lshr i64 {whole}, 32')} to i32"))
            upper = asm.value(f"shl i64 {asm.value(f'zext i32 {high} to i64')}, 32")
            both = asm.value(f"or i64 {upper}, {asm.value(f'zext i32 {low} to i64')}")
            return asm.value(f"bitcast i64 {both} to double") if kind.is_float else both
        if kind.is_float:
            return asm.value(f"bitcast i32 {moved(asm.value(f'bitcast float {values[1]} to i32'))} to float")
        word = arithmetic.cast(asm, kind, Scalar("int32"), values[1])
        return arithmetic.cast(asm, Scalar("int32"), kind, moved(word))

    def _truth(self, kind: Scalar, value: str) -> str:
        return arithmetic.cast(self._asm, kind, BOOL, value)

    def _as(self, number: str, type: Scalar) -> str:
        return arithmetic.cast(self._asm, Scalar("int32"), type, number)

    def _inlined(self, frame: _CallFrame, call: ir.Call) -> Value:
        asm = self._asm
        if self._depth > 40:
            raise NotCompiled("functions that call themselves")
        inner = _CallFrame(call.function, end=asm.fresh("returned"))
        for slot, argument in enumerate(call.arguments):
            value = self._value(frame, argument)
            self._store(self._variable(inner, slot, argument.type), argument.type, value)
        if not isinstance(call.type, Void) and call.type.size:
            inner.result = asm.alloca(call.type.size, "result")
        self._shared(inner)
        loops, self._loops = self._loops, []
        mark = asm.mark
        self._depth += 1
        self._statement(inner, call.function.body)
        self._depth -= 1
        asm.mark = mark
        self._loops = loops
        if not asm.ended:
            asm.jump(inner.end)
        asm.place(inner.end)
        return self._load(inner.result, call.type) if inner.result else "0"

    def _call(self, gives: str, name: str, arguments: list[str]) -> str:
        types = ", ".join(each.split()[0] for each in arguments)
        self._asm.declare(f"{gives} @{name}({types})")
        text = f"call {gives} @{name}({', '.join(arguments)})"
        if gives == "void":
            self._asm.emit(text)
            return "0"
        return self._asm.value(text)


def _is_counted(loop: ir.Loop, counters: set[int]) -> bool:
    """Whether the text knows where a loop begins and ends."""
    match loop.condition:
        case ir.Binary(_, "<" | "<=" | ">" | ">=" | "!=", left, right):
            left, right = _plain(left), _plain(right)
            known = isinstance(right, ir.Const) and abs(int(right.value)) <= _MOST_ROUNDS
            steps = isinstance(loop.step, ir.Update) and loop.step.op in ("+", "-")
            return known and steps and isinstance(left, ir.Local) and left.slot in counters
    return False


def _is_constant(value: ir.Expression | None) -> bool:
    return value is not None and isinstance(_plain(value), ir.Const)


def _plain(expression: ir.Expression) -> ir.Expression:
    while isinstance(expression, ir.Cast):
        expression = expression.operand
    return expression


def _parts(type: Type) -> list[tuple[int, Scalar | Pointer, int]]:
    """Return the leaves of a type: offset, type, and what the address of each is a multiple of."""
    if isinstance(type, Scalar | Pointer):
        return [(0, type, type.size)]
    whole = type.alignment if isinstance(type, Struct) else 1
    return [(offset, leaf, min(whole, offset & -offset) if offset else whole) for offset, leaf in leaves(type)]
