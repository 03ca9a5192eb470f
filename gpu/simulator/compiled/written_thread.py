"""The thread that is being written, for all who write a part of what it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gpu.simulator import ir
from gpu.simulator.compiled.assembly import Assembly
from gpu.simulator.compiled.memory import KernelMemory
from gpu.simulator.compiled.plan import PlannedFrame
from gpu.simulator.compiled.thread_block import ThreadBlock


@dataclass(frozen=True)
class WrittenThread:
    """Where its instructions go, which one of its block it is, where its variables are, and what it computes."""

    asm: Assembly
    block: ThreadBlock
    memory: KernelMemory
    scalar: Callable[[PlannedFrame, ir.Expression], str]
    """(frame, expression) -> the value of an expression that is no struct."""
