"""A kernel as one LLVM function that runs a range of blocks."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from gpu.simulator import ir
from gpu.simulator.compiled.assembly import Assembly
from gpu.simulator.compiled.control_flow import ControlFlow
from gpu.simulator.compiled.masks import MaskStack
from gpu.simulator.compiled.memory import KernelMemory
from gpu.simulator.compiled.planner import Planned, plan
from gpu.simulator.compiled.scalar_replacement import ScalarReplacement
from gpu.simulator.compiled.scratch import Scratch
from gpu.simulator.compiled.thread_block import ThreadBlock
from gpu.simulator.compiled.walking import walk
from gpu.simulator.types import Pointer, Type

_SIGNATURE = "ptr noalias %scratch, ptr noalias %shared, ptr %args, i64 %first, i64 %blocks, i32 %gx, i32 %gy, i32 %gz"


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

    Parameters
    ----------
    function : ir.Function
    block : sequence of int
        How many threads there are along x, y and z.
    constants : frozenset of str
        The names of `__constant__` variables.

    Raises
    ------
    NotCompiled
        Where it does what this executor leaves to the other one.
    """
    replacement = ScalarReplacement()
    return _KernelWriter(plan(function, constants, replacement), replacement, block).write()


class _KernelWriter:
    def __init__(self, planned: Planned, replacement: ScalarReplacement, block: Sequence[int]) -> None:
        self._planned = planned
        self._frame = planned.frames[""]
        self._function = self._frame.function
        self._asm = Assembly()
        self._block = ThreadBlock(self._asm, block)
        self._scratch = Scratch(self._asm, self._block.threads)
        self._memory = KernelMemory(self._asm, self._block, self._scratch, planned, replacement)
        self._masks = MaskStack(self._asm, self._block, self._scratch)
        self._control = ControlFlow(self._asm, self._block, self._scratch, self._memory, self._masks)

    def write(self) -> CompiledText:
        """Write the kernel."""
        asm = self._asm
        with asm.loop("%blocks", "block", asm.not_unrolled) as (index, next_block):
            self._run_block(index, next_block)
        parameters = self._fetch_arguments()
        body = "\n".join(["entry:", *asm.entry, *parameters, "  br label %start", "start:", *asm.lines, "  ret void"])
        text = "\n".join(
            [*sorted(asm.declared), f"define void @kernel({_SIGNATURE}) nounwind {{", body, "}", *asm.metadata]
        )
        memory = self._memory
        return CompiledText(
            text, self._scratch.size, memory.shared_bytes, tuple(memory.module_variables), tuple(memory.assertions)
        )

    def _run_block(self, index: str, next_block: str) -> None:
        """Write what runs a block, by its number in the range."""
        items = self._planned.items
        threads_leave = len(items) > 1 and any(isinstance(node, ir.Return) for node in walk(self._function.body))
        mask = self._masks.new(next_block, function="") if threads_leave else None
        self._block.begin(self._asm.value(f"add nsw i64 %first, {index}"))
        for slot, (_, type) in enumerate(self._function.parameters):
            self._begin_parameter(slot, type)
        if mask is not None:
            self._masks.fill(mask)
        with self._masks.within(mask) if mask is not None else nullcontext():
            self._control.run(items)

    def _begin_parameter(self, slot: int, type: Type) -> None:
        memory, source = self._memory, f"%argument.{slot}"
        if not isinstance(type, Pointer) and type.size > 8:
            source = self._asm.value(f"load ptr, ptr {source}")
        with self._block.each_thread() if ("", slot) in self._planned.varying else nullcontext():
            memory.store(memory.variable(self._frame, slot, type), type, memory.load(source, type))

    def _fetch_arguments(self) -> list[str]:
        """Return what fetches parameters, module variables and the extern array's address, 8 bytes each."""
        lines = []
        names = [f"%argument.{slot}" for slot in range(len(self._function.parameters))]
        names += list(self._memory.module_variables.values())
        for number, name in enumerate(names):
            lines.append(f"  {name} = getelementptr i64, ptr %args, i64 {number}")
            if number >= len(self._function.parameters):
                lines[-1] = lines[-1].replace(name, f"{name}.at", 1)
                lines.append(f"  {name} = load ptr, ptr {name}.at")
        lines.append(f"  %extern = getelementptr i8, ptr %shared, i64 {self._memory.shared_bytes}")
        return lines
