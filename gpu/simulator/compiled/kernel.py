"""A kernel as one LLVM function that runs a range of blocks."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from math import prod

from gpu.simulator import ir
from gpu.simulator.compiled.analysis.planner import KernelPlan, plan_kernel
from gpu.simulator.compiled.analysis.scalar_replacement import ScalarReplacement
from gpu.simulator.compiled.analysis.synchronization import needs_separate_warps
from gpu.simulator.compiled.block.coroutines import WarpCoroutine, WarpSchedulerWriter, WarpThreads
from gpu.simulator.compiled.block.masks import MaskStack
from gpu.simulator.compiled.block.memory import FAILURE_VARIABLE, SHARED_STRIDE_VARIABLE, KernelMemory, ThreadFailure
from gpu.simulator.compiled.block.scratch import ALIGNMENT, Scratch
from gpu.simulator.compiled.block.thread_block import ThreadBlock
from gpu.simulator.compiled.children import find_launch_sites
from gpu.simulator.compiled.control_flow import ControlFlow
from gpu.simulator.compiled.llvm.assembly import Assembly, UnsupportedKernel
from gpu.simulator.compiled.llvm.outlining import OutlinedLines, Outliner
from gpu.simulator.ir.walking import query_cache, walk
from gpu.simulator.types import Pointer, Type

_SIGNATURE = "ptr noalias %scratch, ptr noalias %shared, ptr %args, i64 %first, i64 %blocks, i32 %gx, i32 %gy, i32 %gz"


@dataclass(frozen=True)
class KernelText:
    """The LLVM text of a kernel, and the memory that a worker needs to run it."""

    text: str
    scratch_bytes: int
    shared_bytes: int
    variables: tuple[str, ...]
    failures: tuple[ThreadFailure, ...]


def compile_kernel(
    function: ir.Function, block: Sequence[int], constants: frozenset[str], cluster: Sequence[int] = (1, 1, 1)
) -> KernelText:
    """Return a kernel as LLVM text, for blocks of one shape.

    Parameters
    ----------
    block : sequence of int
        Threads per block along x, y and z.
    constants : frozenset of str
        The names of `__constant__` variables.
    cluster : sequence of int
        Blocks per cluster along x, y and z.

    Raises
    ------
    UnsupportedKernel
        The kernel uses something that this executor does not support.
    """
    replacement = ScalarReplacement()
    with query_cache():
        return _KernelWriter(plan_kernel(function, block, constants, replacement), replacement, block, cluster).write()


class _KernelWriter:
    def __init__(
        self, planned: KernelPlan, replacement: ScalarReplacement, block: Sequence[int], cluster: Sequence[int]
    ) -> None:
        self._planned = planned
        self._frame = planned.frames[""]
        self._function = self._frame.function
        self._asm = Assembly()
        self._warp = WarpCoroutine(self._asm) if needs_separate_warps(self._function) else None
        self._block = (
            WarpThreads(self._asm, block, cluster) if self._warp is not None else ThreadBlock(self._asm, block)
        )
        self._scratch = Scratch(self._asm, self._block.threads)
        self._memory = KernelMemory(self._asm, self._block, self._scratch, planned, replacement)
        self._masks = MaskStack(self._asm, self._block, self._scratch)
        self._control = ControlFlow(self._asm, self._block, self._scratch, self._memory, self._masks, self._warp)

    def write(self) -> KernelText:
        """Write the kernel."""
        asm, memory = self._asm, self._memory
        if self._warp is not None and isinstance(self._block, WarpThreads):
            if find_launch_sites(self._function):
                raise UnsupportedKernel("launches by warps that run separately")
            functions, scratch_bytes = self._write_warps(self._warp, self._block)
        else:
            asm.outlines = True
            with asm.loop("%blocks", "block", asm.no_unroll_metadata) as (index, next_block):
                self._run_block(asm.value(f"add nsw i64 %first, {index}"), next_block)
            scratch_bytes, parameters = self._scratch.size, self._fetch_arguments()
            outliner = Outliner(_SIGNATURE, parameters, asm.entry, asm.persistent_variables)
            variables, body = outliner.write_kernel(OutlinedLines(asm.lines))
            lines = ["entry:", *variables, *parameters, "  br label %start", "start:", *body, "  ret void"]
            head = f"define void @kernel({_SIGNATURE}) nounwind {{"
            functions = "\n".join([*outliner.functions, head, *lines, "}"])
        text = "\n".join([*sorted(asm.declarations), functions, *asm.metadata])
        return KernelText(
            text, scratch_bytes, memory.extern_offset, tuple(memory.module_variables), tuple(memory.failures)
        )

    def _write_warps(self, warp: WarpCoroutine, threads: WarpThreads) -> tuple[str, int]:
        """Write the code of each warp and of their scheduler; return both, and the bytes of scratch memory."""
        for each in (FAILURE_VARIABLE, SHARED_STRIDE_VARIABLE):
            self._memory.module_variable_address(each)
        warp.suspend_until_first_turn()
        self._run_block("%number", warp.end_label)
        function = warp.format_function(self._fetch_arguments())
        variables = list(self._memory.module_variables)
        failed, stride = (
            len(self._function.parameters) + variables.index(each)
            for each in (FAILURE_VARIABLE, SHARED_STRIDE_VARIABLE)
        )
        warp_bytes, blocks = -(-self._scratch.size // ALIGNMENT) * ALIGNMENT, prod(threads.cluster)
        turns = WarpSchedulerWriter(blocks, threads.warp_count, warp_bytes, failed, stride).format_function(
            _SIGNATURE, self._asm
        )
        return f"{function}\n{turns}", warp_bytes * threads.warp_count * blocks

    def _run_block(self, number: str, end: str) -> None:
        """Write the code of a block, or of a warp, from the block's number in the grid."""
        items = self._planned.items
        has_returns = len(items) > 1 and any(isinstance(node, ir.Return) for node in walk(self._function.body))
        count = self._block.lane_count if isinstance(self._block, WarpThreads) else None
        mask = self._masks.create_mask(end, function="") if has_returns or count is not None else None
        self._block.write_block_index(number)
        if mask is not None:
            self._masks.fill(mask, count)
        for slot, (_, type) in enumerate(self._function.parameters):
            self._begin_parameter(slot, type)
        with self._masks.activate(mask) if mask is not None else nullcontext():
            self._control.write_plan(items)

    def _begin_parameter(self, slot: int, type: Type) -> None:
        memory, source = self._memory, f"%argument.{slot}"
        if not isinstance(type, Pointer) and type.size > 8:
            source = self._asm.value(f"load ptr, ptr {source}")
        with self._block.loop_over_threads() if ("", slot) in self._planned.varying_variables else nullcontext():
            memory.store(memory.variable_address(self._frame, slot, type), type, memory.load(source, type))

    def _fetch_arguments(self) -> list[str]:
        """Return instructions that load parameters, module variables and the extern array's address, 8 bytes each."""
        lines = []
        names = [f"%argument.{slot}" for slot in range(len(self._function.parameters))]
        names += list(self._memory.module_variables.values())
        for number, name in enumerate(names):
            lines.append(f"  {name} = getelementptr i64, ptr %args, i64 {number}")
            if number >= len(self._function.parameters):
                lines[-1] = lines[-1].replace(name, f"{name}.at", 1)
                lines.append(f"  {name} = load ptr, ptr {name}.at")
        lines.append(f"  %extern = getelementptr i8, ptr %shared, i64 {self._memory.extern_offset}")
        return lines
