"""The context of the current thread, shared by all writers of its code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gpu.simulator import ir
from gpu.simulator.compiled.analysis.plan import PlannedFrame
from gpu.simulator.compiled.block.memory import KernelMemory
from gpu.simulator.compiled.block.thread_block import ThreadBlock
from gpu.simulator.compiled.llvm.assembly import Assembly


@dataclass(frozen=True)
class ThreadContext:
    """The text under construction, the thread's block, its memory, and the writer of its expressions."""

    asm: Assembly
    block: ThreadBlock
    memory: KernelMemory
    scalar: Callable[[PlannedFrame, ir.Expression], str]
    """(frame, expression) -> the value of a scalar expression."""
