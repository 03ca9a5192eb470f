"""The context of the current thread, shared by all writers of its code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gpu.simulator import ir
from gpu.simulator.compiled.assembly import Assembly
from gpu.simulator.compiled.memory import KernelMemory
from gpu.simulator.compiled.plan import PlannedFrame
from gpu.simulator.compiled.thread_block import ThreadBlock


@dataclass(frozen=True)
class ThreadContext:
    """The text under construction, the thread's block, its memory, and the writer of its expressions."""

    asm: Assembly
    block: ThreadBlock
    memory: KernelMemory
    scalar: Callable[[PlannedFrame, ir.Expression], str]
    """(frame, expression) -> the value of a scalar expression."""
