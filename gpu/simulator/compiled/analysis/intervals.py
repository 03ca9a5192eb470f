"""Value ranges of integers that cannot wrap, so that LLVM detects accesses to neighboring elements."""

from __future__ import annotations

from collections.abc import Sequence

from gpu.simulator import ir
from gpu.simulator.compiled.analysis.plan import PlannedFrame
from gpu.simulator.ir.walking import walk
from gpu.simulator.limits import LIMITS
from gpu.simulator.types import BOOL, Scalar

Interval = tuple[int, int]

MAXIMUM_THREADS_ALONG_X = 2**31 - 1
"""Assumption of the intervals: the threads of a grid along x can be numbered by an int, ..."""
MAXIMUM_BLOCKS_ALONG_Y = LIMITS.grid[1]
"""... and so can those along y and z, as CUDA requires."""


class Intervals:
    """The value ranges of a kernel's integers, for blocks of one shape."""

    def __init__(self, block: Sequence[int]) -> None:
        self._block = tuple(block)
        self._variable_values: dict[int, dict[int, ir.Expression]] = {}

    def no_wrap_flags(self, frame: PlannedFrame, expression: ir.Binary) -> str:
        """Return LLVM's flags for an operation that does not wrap."""
        if expression.type.is_float or expression.type == BOOL or expression.op not in ("+", "-", "*"):
            return ""
        left, right = self.find_interval(frame, expression.left), self.find_interval(frame, expression.right)
        exact = self._compute_exact_range(frame, expression)
        if exact is None or left is None or right is None:
            return ""
        # LLVM applies the flag to the operands too: a large unsigned number is negative as a signed one.
        bits = 8 * expression.type.size
        unsigned = all(_is_within(each, 0, 2**bits) for each in (exact, left, right))
        signed = all(_is_within(each, -(2 ** (bits - 1)), 2 ** (bits - 1)) for each in (exact, left, right))
        return ("nuw " if unsigned else "") + ("nsw " if signed else "")

    def find_interval(self, frame: PlannedFrame, expression: ir.Expression) -> Interval | None:
        """Return the smallest and largest value of an integer; None if they are unknown."""
        match expression:
            case ir.Const(type, number) if not type.is_float:
                return int(number), int(number)
            case ir.Special(_, name, axis):
                return self._special_range(name, axis)
            case ir.Cast(Scalar() as target, operand) if isinstance(operand.type, Scalar):
                inner = self.find_interval(frame, operand)
                return inner if inner is not None and _fits_type(inner, target) else None
            case ir.Local(_, slot, _):
                value = self._single_value(frame, slot)
                return self.find_interval(frame, value) if value is not None else None
            case ir.Binary(type) if not type.is_float and type != BOOL:
                exact = self._compute_exact_range(frame, expression)
                return exact if exact is not None and _fits_type(exact, type) else None
        return None

    def _compute_exact_range(self, frame: PlannedFrame, expression: ir.Binary) -> Interval | None:
        """Return the range of an operation's exact result, without wraparound."""
        left, right = self.find_interval(frame, expression.left), self.find_interval(frame, expression.right)
        if right is None or left is None:
            return None
        match expression.op:
            case "+":
                return left[0] + right[0], left[1] + right[1]
            case "-":
                return left[0] - right[1], left[1] - right[0]
            case "*":
                products = [first * second for first in left for second in right]
                return min(products), max(products)
            case "/" if right[0] > 0 and left[0] >= 0:
                return left[0] // right[1], left[1] // right[0]
            case "%" if right[0] > 0 and left[0] >= 0:
                return 0, min(right[1] - 1, left[1])
            case ">>" if right[0] >= 0 and left[0] >= 0:
                return left[0] >> right[1], left[1] >> right[0]
            case "&" if left[0] >= 0 and right[0] >= 0:
                return 0, min(left[1], right[1])
        return None

    def _special_range(self, name: str, axis: int) -> Interval:
        threads = self._block[axis]
        limit = MAXIMUM_THREADS_ALONG_X // threads if axis == 0 else MAXIMUM_BLOCKS_ALONG_Y
        match name:
            case "threadIdx":
                return 0, threads - 1
            case "blockIdx":
                return 0, limit - 1
            case "blockDim":
                return threads, threads
            case "clusterDim":
                return 1, LIMITS.cluster_blocks
        return 1, limit

    def _single_value(self, frame: PlannedFrame, slot: int) -> ir.Expression | None:
        """Return the value of a variable that is assigned only at its declaration."""
        function = frame.function
        if id(function) not in self._variable_values:
            values: dict[int, ir.Expression] = {}
            changed: set[int] = set(range(len(function.parameters)))
            for node in walk(function.body):
                match node:
                    case ir.Declare(declared, _, value) if value is not None and declared not in values:
                        values[declared] = value
                    case ir.Declare(declared):
                        changed.add(declared)
                    case ir.Assign(_, ir.Local(_, assigned, _)) | ir.Update(_, ir.Local(_, assigned, _)):
                        changed.add(assigned)
            self._variable_values[id(function)] = {key: value for key, value in values.items() if key not in changed}
        return self._variable_values[id(function)].get(slot)


def _fits_type(interval: Interval, type: Scalar) -> bool:
    if type.is_float or type == BOOL:
        return False
    bits = 8 * type.size
    low, stop = (-(2 ** (bits - 1)), 2 ** (bits - 1)) if type.is_signed else (0, 2**bits)
    return _is_within(interval, low, stop)


def _is_within(interval: Interval, low: int, stop: int) -> bool:
    return low <= interval[0] and interval[1] < stop
