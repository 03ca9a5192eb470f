"""Write a kernel's code for one thread as LLVM IR for NVIDIA GPUs, which LLVM then optimizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.base.errors import CompileError, SourcePosition
from gpu.simulator import ir
from gpu.simulator.compiled.llvm import arithmetic
from gpu.simulator.compiled.llvm.assembly import Assembly, UnsupportedKernel, memory_type, value_type
from gpu.simulator.compiled.llvm.value_writer import Value, ValueWriter
from gpu.simulator.ir.intrinsics import FULL_WARP_SYNC, MATRIX_PRODUCTS, WARPGROUP_PRODUCT
from gpu.simulator.ir.walking import walk
from gpu.simulator.types import BOOL, FUNCTION_POINTER, INT64, ArrayOf, Pointer, Scalar, Struct, Type, Void, leaves
from gpu.timing.ptx.library_functions import LIBRARY_FUNCTION, find_library_name, get_function

Array = npt.NDArray[Any]

_AXES = "xyz"
_SPECIALS = {"threadIdx": "tid", "blockIdx": "ctaid", "blockDim": "ntid", "gridDim": "nctaid"}
_SHUFFLES = {"__shfl_sync": "idx", "__shfl_up_sync": "up", "__shfl_down_sync": "down", "__shfl_xor_sync": "bfly"}
_REDUCTIONS = {"add": "add", "min": "min", "max": "max", "and": "and", "or": "or", "xor": "xor"}
_MATRIX_LOADS = {
    "__lockstep_ptx_ldmatrix": "part.m8n8.shared.b16",
    "__lockstep_ptx_ldmatrix_trans": "part.m8n8.trans.shared.b16",
}
"""By the function that loads a lane's part of a matrix, the modifiers of the timing model's own instruction."""
_HALF_DEPTH = 16
"""The depth of a 16-bit float product, in elements of a row; TF32 products have half."""
_WIDE_BYTES = 8
_NO_MEMORY = "nounwind willreturn memory(none)"
"""Attributes of an instruction of the timing model's own. Without them LLVM keeps loads and stores in loops with it."""
_ALIGNMENT = 16
"""The alignment of variables in bytes."""
_MAXIMUM_UNROLLED = 64
"""The most iterations of a loop that is unrolled completely, if its bound is known."""
STRIDED_LOOP, UNROLL_COUNT = "lockstep.strided", "llvm.loop.unroll.count"
"""Metadata of a loop that a variable increments, with nvcc's factor; it becomes LLVM's where LLVM leaves the loop."""
UNROLLED_LOOP = "lockstep.unrolled"
"""Metadata of a loop that LLVM unrolls as nvcc does, and the assembler once more."""
_UNROLL_FACTORS: Mapping[int, int] = {4: 105, 2: 200}
"""By how often nvcc 13 unrolls a loop with a variable number of iterations: the most nodes of its body."""
_UNROLLED_NODES = (
    ir.Assign, ir.Binary, ir.Block, ir.Cast, ir.Const, ir.Construct, ir.Declare, ir.Element, ir.Evaluate, ir.Extract,
    ir.Global, ir.If, ir.Intrinsic, ir.Load, ir.Local, ir.Logical, ir.Member, ir.Offset, ir.Select, ir.Sequence,
    ir.SharedAddress, ir.Special, ir.Temporary, ir.Unary, ir.Update,
)  # fmt: skip


@dataclass
class _CallFrame:
    """A function that is inlined at its call: its variables, and the destination of its result.

    `counters` are the variables that are initialized with a constant, `scaled` those that the function multiplies,
    divides or shifts; None if they have not been looked for.
    """

    function: ir.Function
    variables: dict[int, str] = field(default_factory=dict)
    arrays: dict[int, str] = field(default_factory=dict)
    counters: set[int] = field(default_factory=set)
    scaled: frozenset[int] | None = None
    result: str = ""
    end: str = ""


class ThreadWriter(ValueWriter):
    """Write a kernel as code of one thread.

    Parameters
    ----------
    variables : mapping of str to (str, array)
        The module's variables: their state spaces, "constant" or "global", and their contents as bytes.
    source_file : str
        The name of the source file, to attach its lines to instructions; "" for none.
    imitates_nvcc : bool
        Whether LLVM unrolls loops and computes remainders as nvcc does, not as on its own, that is as clang.
    """

    target = "nvptx"
    speculates = False
    exchange_order = "monotonic"
    distance_instruction = "sdiv exact"

    def __init__(
        self, variables: Mapping[str, tuple[str, Array]], source_file: str = "", *, imitates_nvcc: bool = True
    ) -> None:
        super().__init__(Assembly())
        self._imitates_nvcc = imitates_nvcc
        self._module_variables = variables
        self._globals: dict[str, str] = {}
        self._loops: list[tuple[str, str]] = []
        self._depth = 0
        self._unroll_nodes: dict[str, str] = {}
        self._source_file = source_file
        self._scope = ""
        self._marks: dict[int, str] = {}
        self._named_metadata: list[str] = []

    def write_kernel(self, function: ir.Function) -> str:
        """Return the text of a module with the kernel; raise CompileError for a feature that cannot be estimated."""
        asm = self._asm
        frame = _CallFrame(function, end="end")
        debug_reference = self._write_debug_metadata(function.name) if self._source_file else ""
        parameters = []
        try:
            for slot, (_, type) in enumerate(function.parameters):
                name = f"%argument.{slot}"
                if isinstance(type, Struct):
                    place = f"align {max(type.alignment, 1)}"
                    parameters.append(f"ptr noalias readonly byval([{type.size} x i8]) {place} {name}")
                    self._copy_struct(self._declare_variable(frame, slot, type), name, type)
                else:
                    parameter_type = memory_type(type) if isinstance(type, Scalar | Pointer) else "ptr"
                    attribute = "noalias " if slot in function.restricted and parameter_type == "ptr" else ""
                    parameters.append(f"{parameter_type} {attribute}{name}")
                    asm.emit(f"store {parameter_type} {name}, ptr {self._declare_variable(frame, slot, type)}")
            self._declare_shared(frame)
            self._emit_statement(frame, function.body)
        except UnsupportedKernel as reason:
            raise CompileError(f"{function.name} cannot be estimated without nvcc: it has {reason}.") from None
        if not asm.is_terminated:
            asm.jump("end")
        body = "\n".join(
            ["entry:", *asm.entry, "  br label %start", "start:", *map(str, asm.lines), "end:", "  ret void"]
        )
        head = "\n".join([*self._globals.values(), *sorted(asm.declarations)])
        opening = f"define ptx_kernel void @{function.name}({', '.join(parameters)}) mustprogress{debug_reference} {{"
        return "\n".join([head, opening, body, "}", *asm.metadata, *self._named_metadata])

    # Lines.

    def _write_debug_metadata(self, name: str) -> str:
        """Write the debug metadata of the file and the kernel, to which lines refer; return the kernel's reference."""
        asm = self._asm
        file = asm.add_debug_metadata(f'!DIFile(filename: "{self._source_file}", directory: "/")')
        unit = asm.add_debug_metadata(
            f"distinct !DICompileUnit(language: DW_LANG_C_plus_plus, file: {file}, emissionKind: DebugDirectivesOnly)"
        )
        type = asm.add_debug_metadata(f"!DISubroutineType(types: {asm.add_metadata('null')})")
        self._scope = asm.add_debug_metadata(
            f'distinct !DISubprogram(name: "{name}", scope: {file}, file: {file}, type: {type}, unit: {unit}, '
            "spFlags: DISPFlagDefinition)"
        )
        version = asm.add_metadata('i32 2, !"Debug Info Version", i32 3')
        self._named_metadata += [f"!llvm.dbg.cu = !{{{unit}}}", f"!llvm.module.flags = !{{{version}}}"]
        asm.instruction_suffix = self._line_mark(0)
        return f" !dbg {self._scope}"

    def _line_mark(self, line: int) -> str:
        if line not in self._marks:
            self._marks[line] = (
                f", !dbg {self._asm.add_debug_metadata(f'!DILocation(line: {line}, scope: {self._scope})')}"
            )
        return self._marks[line]

    def _set_line(self, position: SourcePosition) -> None:
        """Attach a line to the following instructions; code from a header gets the line of its call."""
        if self._source_file and PurePath(position.file).name == self._source_file:
            self._asm.instruction_suffix = self._line_mark(position.line)

    # Statements.

    def _declare_shared(self, frame: _CallFrame) -> None:
        for shared in frame.function.shared:
            name = "@extern_shared" if shared.is_dynamic else f"@shared.{frame.function.name}.{shared.slot}"
            kind = "external" if shared.is_dynamic else "internal"
            start = "" if shared.is_dynamic else " undef"
            self._globals[name] = (
                f"{name} = {kind} addrspace(3) global [{shared.size if start else 0} x i8]{start}, align 16"
            )
            frame.arrays[shared.slot] = self._asm.value(f"addrspacecast ptr addrspace(3) {name} to ptr")

    def _emit_statement(self, frame: _CallFrame, statement: ir.Statement) -> None:
        asm = self._asm
        if not isinstance(statement, ir.Block):
            self._set_line(statement.position)
        match statement:
            case ir.Evaluate(expression):
                self.value(frame, expression)
                if isinstance(expression, ir.Assign) and isinstance(expression.place, ir.Local):
                    change = frame.counters.add if _is_constant(expression.value) else frame.counters.discard
                    change(expression.place.slot)
            case ir.Declare(slot, type, value):
                address = self._declare_variable(frame, slot, type)
                if value is not None:
                    self._store_value(frame, address, value)
                (frame.counters.add if _is_constant(value) else frame.counters.discard)(slot)
            case ir.DeclareMemory(slot, size, values, zeroed):
                alignment = min((_find_place_alignment(value.type) for _, value in values), default=_ALIGNMENT)
                address = frame.arrays.setdefault(slot, asm.alloca(size, "array", alignment))
                if not self._imitates_nvcc and (data := _evaluate_memory(size, values)) is not None:
                    self._copy_constants(address, data, alignment)
                else:
                    if zeroed and sum(value.type.size for _, value in values) < size:
                        asm.fill(address, 0, size, align=alignment)
                    for offset, value in values:
                        self._store_value(frame, asm.offset(address, offset), value)
            case ir.Block(statements):
                for each in statements:
                    self._emit_statement(frame, each)
            case ir.If(condition, then, orelse):
                for holds in asm.iterate_sides(self.scalar(frame, condition)):
                    side = then if holds else orelse
                    if side is not None:
                        self._emit_statement(frame, side)
            case ir.Loop():
                self._emit_loop(frame, statement)
            case ir.Switch():
                self._emit_switch(frame, statement)
            case ir.Jump(kind):
                asm.jump(self._loops[-1][0 if kind == "break" else 1])
            case ir.Return(value):
                if value is not None and frame.result:
                    self._store_value(frame, frame.result, value)
                asm.jump(frame.end)
            case ir.Barrier():
                self._emit_call("void", "llvm.nvvm.barrier0", [])

    def _emit_loop(self, frame: _CallFrame, loop: ir.Loop) -> None:
        asm = self._asm
        test, body, step, after = (asm.new_name(name) for name in ("test", "body", "step", "after"))
        asm.jump(test if loop.tests_first else body)
        asm.begin_block(test)
        if loop.condition is not None:
            asm.branch(self.scalar(frame, loop.condition), body, after)
        asm.begin_block(body)
        self._loops.append((after, step))
        self._emit_statement(frame, loop.body)
        self._loops.pop()
        self._set_line(loop.position)
        asm.begin_block(step)
        if loop.step is not None:
            self.value(frame, loop.step)
        asm.jump(test, self._format_unroll_suffix(loop, frame.counters))
        asm.begin_block(after)

    def _format_unroll_suffix(self, loop: ir.Loop, counters: set[int]) -> str:
        """Return a suffix of a loop's jump that makes LLVM unroll as its pragma, or as much as NVIDIA's compiler."""
        match loop.unroll:
            case None if not self._imitates_nvcc:
                return ""
            case None if not _has_constant_bounds(loop, counters):
                if _find_constant_bound(loop, counters) is not None:
                    return ""  # LLVM unrolls by a divisor of the number of iterations, as nvcc
                factor = _find_unroll_factor(loop)
                if factor is None:
                    return ""
                if _has_constant_step(loop):
                    return self._format_loop_suffix(f'!"{UNROLL_COUNT}", i32 {factor}', f'!"{UNROLLED_LOOP}"')
                option = f'!"{STRIDED_LOOP}", i32 {factor}'
            case None | ir.UNROLL_ALL:
                option = '!"llvm.loop.unroll.enable"'
            case 1:
                option = '!"llvm.loop.unroll.disable"'
            case _:
                option = f'!"{UNROLL_COUNT}", i32 {loop.unroll}'
        return self._format_loop_suffix(option)

    def _format_loop_suffix(self, *options: str) -> str:
        for option in options:
            if option not in self._unroll_nodes:
                self._unroll_nodes[option] = self._asm.add_metadata(option)
        nodes = ", ".join(self._unroll_nodes[option] for option in options)
        return f", !llvm.loop {self._asm.add_metadata(f'self, {nodes}', distinct=True)}"

    def _emit_switch(self, frame: _CallFrame, switch: ir.Switch) -> None:
        asm = self._asm
        type = switch.value.type
        assert isinstance(type, Scalar)
        value, after = self.scalar(frame, switch.value), asm.new_name("after")
        labels = [asm.new_name("case") for _ in switch.sections]
        for label, section in zip(labels, switch.sections, strict=True):
            for case in section.values:
                other = asm.new_name("other")
                asm.branch(asm.value(f"icmp eq {value_type(type)} {value}, {case}"), label, other)
                asm.begin_block(other)
        default = next((label for label, each in zip(labels, switch.sections, strict=True) if each.is_default), after)
        asm.jump(default)
        self._loops.append((after, self._loops[-1][1] if self._loops else after))
        for label, section in zip(labels, switch.sections, strict=True):
            asm.begin_block(label)
            self._emit_statement(frame, section.body)
        self._loops.pop()
        asm.begin_block(after)

    # Memory.

    def _declare_variable(self, frame: _CallFrame, slot: int, type: Type) -> str:
        if slot not in frame.variables:
            frame.variables[slot] = self._asm.alloca(max(type.size, 1), "variable", _find_place_alignment(type))
        return frame.variables[slot]

    def _load(
        self, address: str, type: Type, *, private: bool = False, volatile: bool = False, alignment: int = 0
    ) -> Value:
        """Load a value; `alignment` is that of its address in bytes, if it is known to exceed the type's."""
        instruction = "load volatile" if volatile else "load"
        parts = [
            self._asm.value(
                f"{instruction} {memory_type(leaf)}, ptr {self._asm.offset(address, offset)}, "
                f"align {max(align, alignment)}"
            )
            for offset, leaf, align in _find_leaves(type)
        ]
        values = [
            self._asm.value(f"trunc i8 {part} to i1") if leaf == BOOL else part
            for part, (_, leaf, _) in zip(parts, _find_leaves(type), strict=True)
        ]
        return values[0] if isinstance(type, Scalar | Pointer) else tuple(values)

    def _store(self, address: str, type: Type, value: Value, *, private: bool = False, volatile: bool = False) -> None:
        values = value if isinstance(value, tuple) else (value,)
        for each, (offset, leaf, align) in zip(values, _find_leaves(type), strict=True):
            stored = self._asm.value(f"zext i1 {each} to i8") if leaf == BOOL else each
            instruction = "store volatile" if volatile else "store"
            self._asm.emit(
                f"{instruction} {memory_type(leaf)} {stored}, ptr {self._asm.offset(address, offset)}, align {align}"
            )

    def _store_value(self, frame: _CallFrame, address: str, value: ir.Expression) -> None:
        """Store the value of an expression; copy a struct with arrays as a whole."""
        place = value.place if isinstance(value, ir.Load) else value
        if isinstance(value.type, Struct) and _has_array(value.type) and isinstance(place, ir.Local | ir.Element):
            self._copy_struct(address, self._place_address(frame, place), value.type)
        else:
            self._store(address, value.type, self.value(frame, value))

    def _copy_struct(self, target: str, source: str, type: Struct) -> None:
        """Copy a struct with one instruction: LLVM omits a copy that is only read, even with an index into an array."""
        place = f"ptr align {max(type.alignment, 1)}"
        self._asm.declare("void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
        self._asm.emit(
            f"call void @llvm.memcpy.p0.p0.i64({place} {target}, {place} {source}, i64 {type.size}, i1 false)"
        )

    def _copy_constants(self, target: str, data: bytes, alignment: int) -> None:
        """Copy from constant memory as clang does: LLVM reads the constants where an array is only read."""
        name = f"@constants.{len(self._globals)}"
        self._globals[name] = f"{name} = private unnamed_addr addrspace(4) constant {_format_bytes(data)}"
        self._asm.declare("void @llvm.memcpy.p0.p4.i64(ptr, ptr addrspace(4), i64, i1)")
        self._asm.emit(
            f"call void @llvm.memcpy.p0.p4.i64(ptr align {alignment} {target}, "
            f"ptr addrspace(4) align {_ALIGNMENT} {name}, i64 {len(data)}, i1 false)"
        )

    def _place_address(self, frame: _CallFrame, place: ir.Place) -> str:
        if isinstance(place, ir.Local):
            return self._declare_variable(frame, place.slot, place.type)
        start = self.scalar(frame, place.pointer)
        return start if place.index is None else self._element_address(frame, start, place.index, place.type.size)

    def _element_address(self, frame: _CallFrame, start: str, index: ir.Expression, size: int) -> str:
        assert isinstance(index.type, Scalar)
        offset = arithmetic.emit_cast(self._asm, index.type, INT64, self.scalar(frame, index))
        return self._asm.value(f"getelementptr inbounds [{size} x i8], ptr {start}, i64 {offset}", "p")

    def _declare_global(self, name: str) -> str:
        space, data = self._module_variables[name]
        number = 4 if space == "constant" else 1
        if name not in self._globals:
            head = f'@"{name}" = addrspace({number}) externally_initialized global'
            self._globals[name] = f"{head} {_format_bytes(data.tobytes())}"
        return self._asm.value(f'addrspacecast ptr addrspace({number}) @"{name}" to ptr')

    # Expressions.

    def scalar(self, frame: _CallFrame, expression: ir.Expression) -> str:
        value = self.value(frame, expression)
        return value[0] if isinstance(value, tuple) else value

    def visit_async_copy(self, copy: ir.AsyncCopy, frame: _CallFrame) -> Value:
        """Start a copy to shared memory; the compiler derives its size from constants."""
        asm = self._asm
        target = asm.value(f"addrspacecast ptr {self.scalar(frame, copy.destination)} to ptr addrspace(3)")
        source = asm.value(f"addrspacecast ptr {self.scalar(frame, copy.source)} to ptr addrspace(1)")
        size = self.scalar(frame, copy.bytes)
        copied_bytes = self.scalar(frame, copy.read_bytes) if copy.read_bytes is not None else size
        read = asm.value(f"trunc i64 {copied_bytes} to i32")
        for count, cache in ((4, "ca"), (8, "ca"), (16, "cg")):
            with asm.execute_if(asm.value(f"icmp eq i64 {size}, {count}")):
                asm.emit(
                    f'call void asm sideeffect "cp.async.{cache}.shared.global [$0], [$1], {count}, $2;", '
                    f'"l,l,r,~{{memory}}"(ptr addrspace(3) {target}, ptr addrspace(1) {source}, i32 {read})'
                )
        return "void"

    def visit_bulk_copy(self, copy: ir.BulkCopy, frame: _CallFrame) -> Value:
        if copy.barrier is None:
            raise UnsupportedKernel("bulk copies to global memory")
        asm = self._asm
        target = asm.value(f"addrspacecast ptr {self.scalar(frame, copy.destination)} to ptr addrspace(3)")
        source = asm.value(f"addrspacecast ptr {self.scalar(frame, copy.source)} to ptr addrspace(1)")
        asm.emit(
            'call void asm sideeffect "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes '
            '[$0], [$1], $2, [$0];", "l,l,r,~{memory}"'
            f"(ptr addrspace(3) {target}, ptr addrspace(1) {source}, i32 {self.scalar(frame, copy.bytes)})"
        )
        return "void"

    def visit_tensor_copy(self, copy: ir.TensorCopy, frame: _CallFrame) -> Value:
        """Write a copy with its matrix and box as operands, an instruction of the timing model's own."""
        asm = self._asm
        target = asm.value(f"addrspacecast ptr {self.scalar(frame, copy.destination)} to ptr addrspace(3)")
        source = asm.value(f"addrspacecast ptr {self.scalar(frame, copy.matrix)} to ptr addrspace(1)")
        numbers = ", ".join(f"i64 {self.scalar(frame, number)}" for number in copy.numbers[:-1])
        asm.emit(
            'call void asm sideeffect "cp.async.bulk.tensor.2d.shared::cluster.global.rows '
            '[$0], [$1], $2, $3, $4, $5, $6, $7;", "l,l,l,l,l,l,l,l,~{memory}"'
            f"(ptr addrspace(3) {target}, ptr addrspace(1) {source}, {numbers})"
        )
        return "void"

    def visit_local(self, node: ir.Local, frame: _CallFrame) -> Value:
        return (
            frame.arrays[node.slot]
            if node.slot in frame.arrays
            else self._load(self._declare_variable(frame, node.slot, node.type), node.type)
        )

    def visit_global(self, node: ir.Global, frame: _CallFrame) -> Value:
        return self._declare_global(node.name)

    def visit_special(self, node: ir.Special, frame: _CallFrame) -> Value:
        if node.name not in _SPECIALS:
            raise UnsupportedKernel("clusters of blocks")
        number = self._emit_call("i32", f"llvm.nvvm.read.ptx.sreg.{_SPECIALS[node.name]}.{_AXES[node.axis]}", [])
        return arithmetic.emit_cast(self._asm, Scalar("uint32"), node.type, number)

    def visit_shared_address(self, node: ir.SharedAddress, frame: _CallFrame) -> Value:
        address = self.scalar(frame, node.operand)
        if isinstance(node.type, Scalar):
            place = self._asm.value(f"addrspacecast ptr {address} to ptr addrspace(3)")
            return self._asm.value(f"ptrtoint ptr addrspace(3) {place} to {value_type(node.type)}")
        assert isinstance(node.operand.type, Scalar)
        place = self._asm.value(f"inttoptr {value_type(node.operand.type)} {address} to ptr addrspace(3)")
        return self._asm.value(f"addrspacecast ptr addrspace(3) {place} to ptr")

    def visit_named_barrier(self, node: ir.NamedBarrier, frame: _CallFrame) -> Value:
        instruction = "bar.sync $0;" if node.count is None else f"bar.{node.part} $0, $1;"
        operands = [f"i32 {self.scalar(frame, each)}" for each in (node.number, node.count) if each is not None]
        constraints = ",".join("r" for _ in operands)
        self._asm.emit(f'call void asm sideeffect "{instruction}", "{constraints},~{{memory}}"({", ".join(operands)})')
        return "void"

    def visit_barrier_phase(self, node: ir.BarrierPhase, frame: _CallFrame) -> Value:
        return "true" if node.op == "test" else "0"  # a wait is treated as complete

    def visit_assign(self, node: ir.Assign, frame: _CallFrame) -> Value:
        new = self.value(frame, node.value)
        volatile = isinstance(node.place, ir.Element) and node.place.volatile
        self._store(self._place_address(frame, node.place), node.type, new, volatile=volatile)
        return new

    def visit_atomic(self, node: ir.Atomic, frame: _CallFrame) -> Value:
        address = self._place_address(frame, node.place)
        return self._write_atomic(node, address, [self.scalar(frame, argument) for argument in node.arguments])

    def visit_warp(self, node: ir.Warp, frame: _CallFrame) -> Value:
        return self._emit_exchange(frame, node.op, node.type, node.arguments)

    def visit_binary(self, node: ir.Binary, frame: _CallFrame) -> Value:
        """Write a remainder by a variable that is doubled in a loop as an instruction, with which nvcc computes it.

        LLVM proves that the variable is a power of two, and replaces the remainder.
        """
        type = node.type
        if not self._imitates_nvcc or node.op != "%" or type.is_float or type.size < 4:
            return super().visit_binary(node, frame)
        if frame.scaled is None:
            frame.scaled = _find_scaled_variables(frame.function)
        if not any(isinstance(each, ir.Local) and each.slot in frame.scaled for each in walk(node.right)):
            return super().visit_binary(node, frame)
        kind, letter = f"{'s' if type.is_signed else 'u'}{8 * type.size}", "r" if type.size == 4 else "l"
        operands = ", ".join(f"{value_type(type)} {self.scalar(frame, each)}" for each in (node.left, node.right))
        instruction = f'asm "rem.{kind} $0, $1, $2;", "={letter},{letter},{letter}"'
        return self._asm.value(f"call {value_type(type)} {instruction}({operands}) {_NO_MEMORY}")

    def visit_intrinsic(self, node: ir.Intrinsic, frame: _CallFrame) -> Value:
        """Write a function of NVIDIA's library as an instruction of the timing model's own."""
        name, type = find_library_name(node.name), node.arguments[0].type
        if not name or not isinstance(type, Scalar) or not type.is_float:
            return super().visit_intrinsic(node, frame)
        constants = [_evaluate_constant(each) for each in node.arguments]
        if all(each is not None for each in constants):
            result = get_function((name, f"f{8 * type.size}"))(*constants)
            return self.scalar(frame, ir.Const(node.type, result))
        arguments = [
            (value_type(each.type), self.scalar(frame, each))
            for each in node.arguments
            if isinstance(each.type, Scalar)
        ]
        letters = {"float": "f", "double": "d", "i32": "r"}
        constraints = ",".join([f"={letters[value_type(node.type)]}", *(letters[kind] for kind, _ in arguments)])
        operands = ", ".join(f"${number}" for number in range(len(arguments) + 1))
        instruction = f"{LIBRARY_FUNCTION}.{name}.f{8 * type.size} {operands};"
        values = ", ".join(f"{kind} {value}" for kind, value in arguments)
        call = f'call {value_type(node.type)} asm "{instruction}", "{constraints}"({values})'
        return self._asm.value(f"{call} {_NO_MEMORY}")

    def visit_fence(self, node: ir.Fence, frame: _CallFrame) -> Value:
        if node.name.startswith("__threadfence"):
            scope = "cta" if node.name.endswith("block") else "sys" if node.name.endswith("system") else "gl"
            self._emit_call("void", f"llvm.nvvm.membar.{scope}", [])
        return "0"

    def visit_heap_change(self, node: ir.HeapChange | ir.Assertion, frame: _CallFrame) -> Value:
        return "0"

    visit_assertion = visit_heap_change

    def visit_print(self, node: ir.Print, frame: _CallFrame) -> Value:
        """Write an empty instruction that uses what is printed: it is computed, but printing it is not modeled."""
        letters = {"float": "f", "double": "d", "i64": "l", "ptr": "l", "i32": "r"}
        operands = []
        for each in node.arguments:
            if not isinstance(each, str) and isinstance(each.type, Scalar | Pointer):
                type, value = value_type(each.type), self.scalar(frame, each)
                if type in ("i1", "i8", "i16"):
                    type, value = "i32", self._asm.value(f"zext {type} {value} to i32")
                operands.append((type, value))
        constraints = ",".join(letters[type] for type, _ in operands)
        values = ", ".join(f"{type} {value}" for type, value in operands)
        self._asm.emit(f'call void asm sideeffect "", "{constraints}"({values})')
        return "0"

    def visit_clock(self, node: ir.Clock, frame: _CallFrame) -> Value:
        return "0"

    def visit_call(self, node: ir.Call, frame: _CallFrame) -> Value:
        words = _MATRIX_LOADS.get(node.function.name)
        return self._inline_call(frame, node) if words is None else self._emit_matrix_load(frame, words, node.arguments)

    def _emit_matrix_load(self, frame: _CallFrame, words: str, arguments: tuple[ir.Expression, ...]) -> str:
        """Write the load of one matrix as a part of `ldmatrix`, which the assembler joins to those of the others."""
        asm, (rows, number) = self._asm, arguments
        generic = asm.value(f"inttoptr i64 {self.scalar(frame, rows)} to ptr")
        place = asm.value(f"addrspacecast ptr {generic} to ptr addrspace(3)")
        instruction = f"ldmatrix.{words} $0, [$1], {self.scalar(frame, number)};"
        return asm.value(f'call i32 asm sideeffect "{instruction}", "=r,l,~{{memory}}"(ptr addrspace(3) {place})')

    def visit_indirect_call(self, node: ir.IndirectCall, frame: _CallFrame) -> Value:
        """Compare the pointer with each function of its type, and inline that function."""
        asm, types = self._asm, [argument.type for argument in node.arguments]
        result = asm.alloca(node.type.size, "result") if not isinstance(node.type, Void) and node.type.size else ""
        after = asm.new_name("after")
        for number, function in node.functions.items():
            if function.type != node.type or [type for _, type in function.parameters] != types:
                continue
            called, other = asm.new_name("called"), asm.new_name("other")
            constant = ir.Const(FUNCTION_POINTER, np.uint64(number))
            asm.branch(self.scalar(frame, ir.Binary(BOOL, "==", node.function, constant)), called, other)
            asm.begin_block(called)
            value = self._inline_call(frame, ir.Call(node.type, function, node.arguments, node.position))
            if result:
                self._store(result, node.type, value)
            asm.jump(after)
            asm.begin_block(other)
        asm.jump(after)
        asm.begin_block(after)
        return self._load(result, node.type) if result else "0"

    def visit_load(self, node: ir.Load, frame: _CallFrame) -> Value:
        if node.is_async:
            return "0"  # tensor cores load the operand from shared memory
        return self._load(
            self._place_address(frame, node.place), node.type, volatile=node.place.volatile,
            alignment=_find_member_alignment(node.place) if isinstance(node.type, Scalar) else 0,
        )  # fmt: skip

    def visit_async_commit(self, node: ir.AsyncCommit, frame: _CallFrame) -> Value:
        if node.kind == "copy":
            self._asm.emit('call void asm sideeffect "cp.async.commit_group;", ""()')
        return "void"

    def visit_async_wait(self, node: ir.AsyncWait, frame: _CallFrame) -> Value:
        if node.kind == "copy":
            self._asm.emit('call void asm sideeffect "cp.async.wait_all;", "~{memory}"()')
        return "void"

    def visit_other(self, node: ir.Expression, frame: _CallFrame) -> Value:
        raise UnsupportedKernel(f"{node.__class__.__name__.lower()} expressions")

    def _no_wrap_flags(self, frame: _CallFrame, operation: ir.Binary | ir.Update) -> str:
        type = operation.compute_type if isinstance(operation, ir.Update) else operation.left.type
        return "nsw " if isinstance(type, Scalar) and type.is_signed else ""

    def _emit_exchange(self, frame: _CallFrame, op: str, type: Scalar, arguments: tuple[ir.Expression, ...]) -> str:
        asm = self._asm
        if op == FULL_WARP_SYNC:
            return "0"
        values = [self.scalar(frame, each) for each in arguments]
        kinds: list[Any] = [each.type for each in arguments]
        if op in MATRIX_PRODUCTS:
            return self._emit_product(type, kinds, values, "wgmma" if op == WARPGROUP_PRODUCT else "mma")
        if op == "__activemask":
            return self._emit_call("i32", "llvm.nvvm.activemask", [])
        if op.startswith("__syncthreads_"):
            flag = asm.value(f"zext i1 {self._emit_truth(kinds[0], values[0])} to i32")
            name = {"count": "popc", "and": "and", "or": "or"}[op.removeprefix("__syncthreads_")]
            return self._emit_from_int(self._emit_call("i32", f"llvm.nvvm.barrier0.{name}", [f"i32 {flag}"]), type)
        mask = f"i32 {values[0]}"
        if op in _SHUFFLES:
            return self._emit_shuffle(_SHUFFLES[op], mask, kinds[1], values, kinds)
        if op == "__ballot_sync":
            return self._emit_call(
                "i32", "llvm.nvvm.vote.ballot.sync", [mask, f"i1 {self._emit_truth(kinds[1], values[1])}"]
            )
        if op in ("__any_sync", "__all_sync"):
            name = op.strip("_").partition("_")[0]
            vote = self._emit_call(
                "i1", f"llvm.nvvm.vote.{name}.sync", [mask, f"i1 {self._emit_truth(kinds[1], values[1])}"]
            )
            return arithmetic.emit_cast(asm, BOOL, type, vote)
        if op == "__match_any_sync":
            bits = 8 * kinds[1].size
            number = asm.value(f"bitcast float {values[1]} to i32") if kinds[1].is_float else values[1]
            return self._emit_call("i32", f"llvm.nvvm.match.any.sync.i{bits}", [mask, f"i{bits} {number}"])
        if op.startswith("__reduce_"):
            name = op.removeprefix("__reduce_").removesuffix("_sync")
            signed = "" if name not in ("min", "max") else "" if type.is_signed else "u"
            return self._emit_call(
                "i32", f"llvm.nvvm.redux.sync.{signed}{_REDUCTIONS[name]}", [f"i32 {values[1]}", mask]
            )
        raise UnsupportedKernel(f"the warp function {op}")

    def _emit_product(self, type: Scalar, kinds: list[Any], values: list[str], opcode: str) -> str:
        """Write each lane's part of a tile product as an internal PTX instruction that contains the shape.

        Four lanes share the elements of a row, and of a column.
        """
        depth = 4 * (len(values) - 2) // 2
        float_type = "f16" if depth == _HALF_DEPTH else "tf32"
        element = float_type if kinds[2] == Scalar("float32") else "f64" if kinds[2].is_float else "s8"
        letters = ["d" if kind.size == _WIDE_BYTES else "f" if kind.is_float else "r" for kind in (type, *kinds)]
        placeholders = ", ".join(f"${number}" for number in range(len(letters)))
        arguments = ", ".join(f"{value_type(kind)} {value}" for kind, value in zip(kinds, values, strict=True))
        text = f"{opcode}.part.m32n1k{depth}.{element} {placeholders};"
        return self._asm.value(
            f'call {value_type(type)} asm "{text}", "={",".join(letters)}"({arguments}) {_NO_MEMORY}'
        )

    def _emit_shuffle(self, mode: str, mask: str, kind: Scalar, values: list[str], kinds: list[Any]) -> str:
        asm = self._asm
        delta = arithmetic.emit_cast(asm, kinds[2], Scalar("uint32"), values[2])
        width = values[3] if len(values) > 3 else "32"
        segment = asm.value(
            f"sub i32 32, {arithmetic.emit_cast(asm, kinds[3], Scalar('int32'), width) if len(values) > 3 else 32}"
        )
        limits = asm.value(f"shl i32 {segment}, 8")
        if mode != "up":
            limits = asm.value(f"or i32 {limits}, 31")

        def shuffle_word(word: str) -> str:
            arguments = [mask, f"i32 {word}", f"i32 {delta}", f"i32 {limits}"]
            return self._emit_call("i32", f"llvm.nvvm.shfl.sync.{mode}.i32", arguments)

        if kind.size == _WIDE_BYTES:
            bits = asm.value(f"bitcast double {values[1]} to i64") if kind.is_float else values[1]
            low = shuffle_word(asm.value(f"trunc i64 {bits} to i32"))
            high = shuffle_word(asm.value(f"trunc i64 {asm.value(f'lshr i64 {bits}, 32')} to i32"))
            upper = asm.value(f"shl i64 {asm.value(f'zext i32 {high} to i64')}, 32")
            both = asm.value(f"or i64 {upper}, {asm.value(f'zext i32 {low} to i64')}")
            return asm.value(f"bitcast i64 {both} to double") if kind.is_float else both
        if kind.is_float:
            return asm.value(f"bitcast i32 {shuffle_word(asm.value(f'bitcast float {values[1]} to i32'))} to float")
        word = arithmetic.emit_cast(asm, kind, Scalar("int32"), values[1])
        return arithmetic.emit_cast(asm, Scalar("int32"), kind, shuffle_word(word))

    def _emit_truth(self, kind: Scalar, value: str) -> str:
        return arithmetic.emit_cast(self._asm, kind, BOOL, value)

    def _emit_from_int(self, number: str, type: Scalar) -> str:
        return arithmetic.emit_cast(self._asm, Scalar("int32"), type, number)

    def _inline_call(self, frame: _CallFrame, call: ir.Call) -> Value:
        asm = self._asm
        if self._depth > 40:
            raise UnsupportedKernel("recursive functions")
        inner = _CallFrame(call.function, end=asm.new_name("returned"))
        for slot, argument in enumerate(call.arguments):
            self._store_value(frame, self._declare_variable(inner, slot, argument.type), argument)
        if not isinstance(call.type, Void) and call.type.size:
            inner.result = asm.alloca(call.type.size, "result")
        self._declare_shared(inner)
        loops, self._loops = self._loops, []
        mark = asm.instruction_suffix
        self._depth += 1
        self._emit_statement(inner, call.function.body)
        self._depth -= 1
        asm.instruction_suffix = mark
        self._loops = loops
        if not asm.is_terminated:
            asm.jump(inner.end)
        asm.begin_block(inner.end)
        return self._load(inner.result, call.type) if inner.result else "0"

    def _emit_call(self, result_type: str, name: str, arguments: list[str]) -> str:
        types = ", ".join(argument.split()[0] for argument in arguments)
        self._asm.declare(f"{result_type} @{name}({types})")
        text = f"call {result_type} @{name}({', '.join(arguments)})"
        if result_type == "void":
            self._asm.emit(text)
            return "0"
        return self._asm.value(text)


def _has_constant_bounds(loop: ir.Loop, counters: set[int]) -> bool:
    """Return whether a loop has constant bounds, and few iterations."""
    bound = _find_constant_bound(loop, counters)
    return bound is not None and bound <= _MAXIMUM_UNROLLED


def _find_constant_bound(loop: ir.Loop, counters: set[int]) -> int | None:
    """Return the constant, without its sign, with which a loop compares its counter; None if it has no such bounds."""
    match loop.condition:
        case ir.Binary(_, "<" | "<=" | ">" | ">=" | "!=", left, right):
            left, right = _strip_casts(left), _strip_casts(right)
            is_stepped = isinstance(loop.step, ir.Update) and loop.step.op in ("+", "-")
            if isinstance(right, ir.Const) and is_stepped and isinstance(left, ir.Local) and left.slot in counters:
                return abs(int(right.value))
    return None


def _find_scaled_variables(function: ir.Function) -> frozenset[int]:
    """Return the variables that a function multiplies, divides or shifts."""
    scaled = set()
    for node in walk(function.body):
        match node:
            case ir.Update(place=ir.Local(slot=slot), op="*" | "/" | "<<" | ">>"):
                scaled.add(slot)
            case ir.Assign(place=ir.Local(slot=slot), value=value) if any(
                isinstance(each, ir.Binary) and each.op in ("*", "/", "<<", ">>") for each in walk(value)
            ):
                scaled.add(slot)
    return frozenset(scaled)


def _find_unroll_factor(loop: ir.Loop) -> int | None:
    """Return how often nvcc unrolls a loop with a variable number of iterations; None if it does not.

    As measured with nvcc 13, jumps, barriers and inner loops prevent it. A step that is a variable must be added to a
    signed counter, as an unsigned one may wrap; then a step that reads a register such as `blockDim.x` in the loop
    prevents it, too, as do atomic operations.
    """
    body, update = _find_step(loop)
    match update, loop.condition:
        case (
            ir.Update(Scalar() as type, ir.Local(slot=slot), "+" | "-" as op, step),
            ir.Binary(_, "<" | "<=" | ">" | ">=" | "!=", compared, _),
        ) if isinstance(place := _strip_casts(compared), ir.Local) and slot == place.slot:
            nodes, is_constant = list(_iterate_inlined(body, ())), _is_constant(step)
            if not is_constant and (op == "-" or not type.is_signed or not isinstance(_strip_casts(step), ir.Local)):
                return None
            unrolled = (*_UNROLLED_NODES, ir.Atomic) if is_constant else _UNROLLED_NODES
            if all(isinstance(each, unrolled) for each in nodes):
                return next((factor for factor, limit in _UNROLL_FACTORS.items() if len(nodes) <= limit), None)
    return None


def _iterate_inlined(statements: Sequence[ir.Statement], callers: tuple[ir.Function, ...]) -> Iterator[Any]:
    """Yield the nodes of statements and of the functions that they call, without calls and returns."""
    for statement in statements:
        for node in walk(statement):
            if isinstance(node, ir.Call) and node.function not in callers:
                yield from _iterate_inlined([node.function.body], (*callers, node.function))
            elif not (callers and isinstance(node, ir.Return)):
                yield node


def _has_constant_step(loop: ir.Loop) -> bool:
    _, step = _find_step(loop)
    return isinstance(step, ir.Update) and _is_constant(step.value)


def _find_step(loop: ir.Loop) -> tuple[Sequence[ir.Statement], ir.Expression | None]:
    """Return the statements of a loop's body, and its step: that of `for`, or a last statement such as `i += 4`."""
    statements = loop.body.statements if isinstance(loop.body, ir.Block) else (loop.body,)
    if loop.step is None and loop.tests_first and statements and isinstance(statements[-1], ir.Evaluate):
        return statements[:-1], statements[-1].expression
    return statements, loop.step


def _find_place_alignment(type: Type) -> int:
    """Return the alignment of a variable; LLVM omits no copy whose target has a greater alignment than its source."""
    return max(type.alignment, 1) if isinstance(type, Struct) and _has_array(type) else _ALIGNMENT


def _has_array(type: Type) -> bool:
    """Return whether a type is an array, or a struct that contains one."""
    return isinstance(type, ArrayOf) or (
        isinstance(type, Struct) and any(_has_array(member.type) for member in type.fields)
    )


def _evaluate_constant(expression: ir.Expression) -> Any:
    """Return the value of a constant, its cast or its negation, as a NumPy number; None for other expressions."""
    match expression:
        case ir.Const():
            return expression.value
        case ir.Cast(Scalar() as type, operand) if (value := _evaluate_constant(operand)) is not None:
            return value.astype(type.dtype)
        case ir.Unary(_, "-", operand) if (value := _evaluate_constant(operand)) is not None:
            return -value
    return None


def _format_bytes(data: bytes) -> str:
    """Return the type, value and alignment of a global variable."""
    content = "".join(f"\\{byte:02X}" for byte in data)
    return f'[{len(data)} x i8] c"{content}", align {_ALIGNMENT}'


def _evaluate_memory(size: int, values: Sequence[tuple[int, ir.Expression]]) -> bytes | None:
    """Return the bytes of an array of constants, the others zero; None if it has no or other values."""
    data = np.zeros(size, np.uint8)
    for offset, value in values:
        constant = _evaluate_constant(value)
        if constant is None:
            return None
        data[offset : offset + value.type.size] = np.frombuffer(constant.tobytes(), np.uint8)
    return data.tobytes() if values else None


def _is_constant(value: ir.Expression | None) -> bool:
    return value is not None and isinstance(_strip_casts(value), ir.Const)


def _strip_casts(expression: ir.Expression) -> ir.Expression:
    while isinstance(expression, ir.Cast):
        expression = expression.operand
    return expression


def _find_member_alignment(place: ir.Element) -> int:
    """Return the alignment in bytes of a struct's member, from the alignment of the struct; 0 for other places."""
    offset, pointer = 0, place.pointer
    if place.index is not None:
        return 0
    while isinstance(pointer, ir.Member):
        offset += pointer.offset
        pointer = pointer.pointer
    struct = pointer.type.element if isinstance(pointer.type, Pointer) and pointer is not place.pointer else None
    if not isinstance(struct, Struct):
        return 0
    return min(struct.alignment, offset & -offset) if offset else struct.alignment


def _find_leaves(type: Type) -> list[tuple[int, Scalar | Pointer, int]]:
    """Return the leaves of a type: offset, type, and alignment in bytes."""
    if isinstance(type, Scalar | Pointer):
        return [(0, type, type.size)]
    alignment = type.alignment if isinstance(type, Struct) else 1
    return [(offset, leaf, min(alignment, offset & -offset) if offset else alignment) for offset, leaf in leaves(type)]
