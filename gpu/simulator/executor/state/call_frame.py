"""Call frames: the variables of a running call, and assignment to them in some lanes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from gpu.base.lane_mask import LaneMask
from gpu.simulator import ir
from gpu.simulator.executor.state.pointers import PointerValue, merge_pointers
from gpu.simulator.executor.state.running_batch import RunningBatch


class CallFrame:
    """The variables of one running call.

    `declaration_masks[slot]` is the mask under which a variable was declared. An assignment under the same mask needs
    no merge, since no other lane can access the variable.
    """

    __slots__ = (
        "batch",
        "continued_mask",
        "declaration_masks",
        "depth",
        "globals",
        "kernel",
        "result",
        "returned_mask",
        "values",
    )

    def __init__(
        self, batch: RunningBatch, slots: int, kernel: CallFrame | None, variables: dict[str, PointerValue], depth: int
    ) -> None:
        self.batch = batch
        self.values: list[Any] = [None] * slots
        self.declaration_masks: list[LaneMask | None] = [None] * slots
        self.kernel = kernel
        self.globals = variables
        self.depth = depth
        self.returned_mask: LaneMask | None = None
        self.continued_mask: LaneMask | None = None
        self.result: Any = None


Evaluator = Callable[[CallFrame, LaneMask], Any]
"""An expression compiled to a closure."""
Executable = Callable[[CallFrame, LaneMask], LaneMask | None]
"""A statement compiled to a closure, which returns the lanes that continue with the next statement."""


def assign_local(old: Any, new: Any, mask: LaneMask) -> Any:
    """Return a variable's value after an assignment in the lanes of `mask`."""
    if mask.full or old is None:
        return new
    if isinstance(new, tuple):
        return tuple(assign_local(before, after, mask) for before, after in zip(old, new, strict=True))
    if isinstance(new, PointerValue):
        return merge_pointers(old, new, mask.bits)
    return np.where(mask.bits, new, old)


class Callee(Protocol):
    """A function of the module, compiled to closures."""

    function: ir.Function

    def call(self, caller: CallFrame, mask: LaneMask, arguments: Sequence[Any]) -> Any:
        """Run the function in the lanes of `mask` and return its value, or None if it returns none."""
