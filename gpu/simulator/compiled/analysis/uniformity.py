"""Uniformity analysis: the values on which all threads of a block agree."""

from __future__ import annotations

from collections.abc import Set

from gpu.simulator import ir
from gpu.simulator.compiled.analysis.plan import PlannedFrame, VariableKey
from gpu.simulator.ir.walking import child_nodes


class Uniformity:
    """Finds uniform expressions, given the variables that differ between threads.

    Parameters
    ----------
    varying : set of (str, int)
        The variables that differ: the path of a frame, and the slot.
    constants : set of str
        The names of `__constant__` variables; all threads load the same values from them.
    """

    def __init__(self, varying: Set[VariableKey], constants: Set[str]) -> None:
        self._varying = varying
        self._constants = constants

    def is_uniform(self, frame: PlannedFrame, expression: ir.Expression | None) -> bool:
        """Return whether all threads of a block compute the same value."""
        match expression:
            case None | ir.Const() | ir.Null() | ir.Global():
                return True
            case ir.Special(_, name, _):
                return name != "threadIdx"
            case ir.ClusterBarrier():
                return False
            case ir.Local(_, slot, _):
                shared = any(each.slot == slot for each in frame.function.shared)
                return shared or (frame.path, slot) not in self._varying
            case ir.Load(_, place):
                return self._is_constant(place.pointer) and all(
                    self.is_uniform(frame, part) for part in (place.pointer, place.index)
                )
            case ir.Assign() | ir.Update() | ir.Atomic() | ir.Warp() | ir.Print() | ir.Assertion() | ir.Call():
                return False
            case ir.Temporary() | ir.Fence() | ir.HeapChange() | ir.IndirectCall() | ir.Clock() | ir.BarrierPhase():
                return False
            case ir.LaunchCall():
                return False
        return all(self.is_uniform(frame, part) for part in child_nodes(expression))

    def _is_constant(self, pointer: ir.Expression) -> bool:
        """Return whether a pointer points into a `__constant__` variable."""
        match pointer:
            case ir.Global(_, name):
                return name in self._constants
            case ir.Offset(_, inner, _) | ir.Member(_, inner, _) | ir.Cast(_, inner):
                return self._is_constant(inner)
        return False
