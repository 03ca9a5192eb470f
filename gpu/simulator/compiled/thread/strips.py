"""Strips of threads for bit operations on a thread's number with a uniform mask: `t & (stride - 1)`, `i ^ stride`.

A strip is a sequence of consecutive threads that starts at a multiple of its length, a power of two. If a mask contains
all or none of the low bits, the values of such an expression along a strip follow from the first one: they increase by
one from thread to thread, decrease by one, or are equal. Whether a mask does is known at run time, so a loop over
strips, in which LLVM detects neighboring accesses, precedes the general loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from gpu.simulator import ir
from gpu.simulator.compiled.analysis.plan import Bind, PlannedFrame, Region
from gpu.simulator.compiled.analysis.rematerialization import find_changed_slots, find_initial_values
from gpu.simulator.compiled.llvm import arithmetic
from gpu.simulator.compiled.llvm.assembly import value_type
from gpu.simulator.compiled.thread.context import ThreadContext
from gpu.simulator.ir.walking import walk
from gpu.simulator.types import BOOL, INT64, Scalar, is_integer

MIN_STRIP_LENGTH = 4
_LENGTHS = (32, 8, MIN_STRIP_LENGTH)
"""Strip lengths in threads: long strips have little overhead, and short ones are valid for many masks."""
_MAXIMUM_NODES = 60
"""The most nodes of an expression that is analyzed."""
_MAXIMUM_REGION_NODES = 400
"""The most nodes of statements that are worth several versions."""
_MAXIMUM_DEPTH = 6
_BITWISE = ("&", "|", "^")


@dataclass(frozen=True)
class StripProgression:
    """How a value progresses along a strip.

    Parameters
    ----------
    slope : int
        The increase from thread to thread: 1, 0 or -1. An increasing value starts at a multiple of the strip length, a
        decreasing one ends there.
    is_aligned : bool
        Whether all low bits are 0, for a value that is the same for all threads.
    is_from_mask : bool
        Whether this follows from a mask.
    """

    slope: int
    is_aligned: bool = False
    is_from_mask: bool = False


Masks = Mapping[ir.Expression, bool]
"""Whether masks contain all low bits (True), or none."""


@dataclass(frozen=True)
class StripVersion:
    """Strips of a length in threads, with assumptions about masks."""

    threads: int
    masks: Masks
    frame: PlannedFrame


@dataclass(frozen=True)
class _Scope:
    """The scope of variables: a frame of the plan, or a function that a thread calls."""

    frame: PlannedFrame
    arguments: Mapping[int, ir.Expression | None] | None = None


class BitStrips:
    """Finds strips, and writes the values that progress along them."""

    def __init__(self, thread: ThreadContext) -> None:
        self._thread = thread
        self._version: StripVersion | None = None
        self._first_values: dict[ir.Expression, str] = {}
        self._region_declarations: set[tuple[str, int]] = set()
        self._scopes: dict[str, tuple[PlannedFrame, _Scope]] = {}
        self._value_cache: dict[int, tuple[dict[int, ir.Expression], frozenset[int]]] = {}

    # Analysis of a region.

    def find_versions(self, region: Region) -> list[StripVersion]:
        """Return the versions of a region that are worth writing, the best one first; usually none."""
        size = 0
        expressions: dict[ir.Expression, None] = {}
        frames = {id(frame): frame for frame, _ in region.statements}
        if len(frames) != 1 or not any(self._thread.block.shape[0] % threads == 0 for threads in _LENGTHS):
            return []
        (frame,) = frames.values()
        self._region_declarations = {
            (frame.path, node.slot)
            for _, statement in region.statements
            if not isinstance(statement, Bind)
            for node in walk(statement)
            if isinstance(node, ir.Declare)
        }
        for _, statement in region.statements:
            for scope, node in self._nodes_in(_Scope(frame), statement, 0):
                size += 1
                if size > _MAXIMUM_REGION_NODES:
                    return []
                if isinstance(node, ir.Binary) and node.op in _BITWISE:
                    expanded = self._expand_bounded(scope, node)
                    if expanded is not None:
                        expressions[expanded] = None
        versions: list[StripVersion] = []
        for threads in _LENGTHS:
            for assume_ones in (False, True) if self._thread.block.shape[0] % threads == 0 else ():
                masks: dict[ir.Expression, bool] = {}
                for expression in expressions:
                    self._assume(expression, threads, masks, assume_ones=assume_ones)
                version = StripVersion(threads, masks, frame)
                if masks and version not in versions:
                    versions.append(version)
        return versions

    def _nodes_in(self, scope: _Scope, statement: Any, depth: int) -> Iterator[tuple[_Scope, Any]]:
        """Yield the nodes of a statement, and of the functions that it calls."""
        for node in walk(statement.value if isinstance(statement, Bind) else statement):
            yield scope, node
            if isinstance(node, ir.Call) and depth < _MAXIMUM_DEPTH:
                yield from self._nodes_in(self._call_scope(scope, node), node.function.body, depth + 1)

    def _assume(
        self, expression: ir.Expression, threads: int, masks: dict[ir.Expression, bool], *, assume_ones: bool
    ) -> None:
        """Add the best assumption about each mask in an expression, unless one exists.

        `assume_ones` is whether to assume that a mask of `^` contains all low bits.
        """
        for node in reversed(list(walk(expression))):  # inner nodes come first
            if not (isinstance(node, ir.Binary) and node.op in _BITWISE):
                continue
            for other_operand, mask in ((node.left, node.right), (node.right, node.left)):
                if not self._is_uniform(mask) or isinstance(mask, ir.Const):
                    continue
                course, mask_course = (
                    self._compute_progression(other_operand, threads, masks),
                    self._compute_progression(mask, threads, {}),
                )
                if course is None or mask_course is None or course.slope == 0 or mask_course.is_aligned:
                    continue
                ones = assume_ones if node.op == "^" else node.op == "&" and not _is_inverted(mask)
                masks.setdefault(mask, ones)

    # Code of a version.

    @contextmanager
    def use_version(self, version: StripVersion) -> Iterator[None]:
        """Write the values inside along strips, under a version's assumptions."""
        self._version = version
        self._first_values.clear()
        yield
        self._version = None

    def write_assumption_test(self, version: StripVersion) -> str:
        """Return whether a version's assumptions about masks hold."""
        asm, result = self._thread.asm, "true"
        for mask, ones in version.masks.items():
            assert isinstance(mask.type, Scalar)
            name, low = value_type(mask.type), version.threads - 1
            # Freeze variables that may not have a value yet, so that the comparison is not undefined.
            value = asm.value(f"freeze {name} {self._thread.scalar(version.frame, mask)}")
            bits = asm.value(f"and {name} {value}, {low}")
            result = asm.value(f"and i1 {result}, {asm.value(f'icmp eq {name} {bits}, {low if ones else 0}')}")
        return result

    def enter_call(self, inner: PlannedFrame, frame: PlannedFrame, call: ir.Call) -> None:
        """Register the frame in which a function's body is written."""
        if self._version is not None:
            self._scopes[inner.path] = inner, self._call_scope(self._scope(frame), call)

    def find_value(self, frame: PlannedFrame, expression: ir.Expression) -> str | None:
        """Return a value that progresses along the strip because of masks; None for any other."""
        progression = self._find_progression(frame, expression)
        if progression is None:
            return None
        first_value, slope = progression
        assert isinstance(expression.type, Scalar)
        if not slope:
            return first_value
        asm, name, low = self._thread.asm, value_type(expression.type), self._length - 1
        lane = (
            self._thread.block.lane
            if name == "i64"
            else asm.value(f"trunc nuw nsw i64 {self._thread.block.lane} to {name}")
        )
        if slope > 0:
            return asm.value(f"add nuw nsw {name} {asm.value(f'and {name} {first_value}, {~low}')}, {lane}")
        return asm.value(f"sub nuw nsw {name} {asm.value(f'or {name} {first_value}, {low}')}, {lane}")

    def find_subscript(self, frame: PlannedFrame, expression: ir.Expression) -> str | None:
        """Return such a value as an i64; None for any other."""
        progression = self._find_progression(frame, expression)
        if progression is None:
            return None
        first_value, slope = progression
        assert isinstance(expression.type, Scalar)
        wide = arithmetic.emit_cast(self._thread.asm, expression.type, INT64, first_value)
        if not slope:
            return wide
        return self._thread.asm.value(f"{'add' if slope > 0 else 'sub'} nsw i64 {wide}, {self._thread.block.lane}", "x")

    @property
    def _length(self) -> int:
        assert self._version is not None
        return self._version.threads

    def _find_progression(self, frame: PlannedFrame, expression: ir.Expression) -> tuple[str, int] | None:
        """Return the value of a strip's first thread, and its increase from thread to thread."""
        version = self._version
        if version is None or not self._thread.block.is_in_strip or not is_integer(expression.type):
            return None
        expanded = self._expand_bounded(self._scope(frame), expression)
        course = self._compute_progression(expanded, version.threads, version.masks) if expanded is not None else None
        if expanded is None or course is None or not course.is_from_mask:
            return None
        if expanded not in self._first_values:
            with self._thread.block.insert_before_strip():
                self._first_values[expanded] = self._thread.scalar(version.frame, expanded)
        return self._first_values[expanded], course.slope

    # Expansion of variables.

    def _scope(self, frame: PlannedFrame) -> _Scope:
        scope_entry = self._scopes.get(frame.path)
        return scope_entry[1] if scope_entry is not None and scope_entry[0] is frame else _Scope(frame)

    def _call_scope(self, scope: _Scope, call: ir.Call) -> _Scope:
        function = call.function
        changed = self._single_values(function)[1]
        arguments = {
            slot: self._expand_bounded(scope, argument) if slot not in changed else None
            for slot, argument in enumerate(call.arguments)
        }
        return _Scope(PlannedFrame("", function, function.slots), arguments)

    def _single_values(self, function: ir.Function) -> tuple[dict[int, ir.Expression], frozenset[int]]:
        """Return the values of variables that are assigned only once, and the variables that are not."""
        if id(function) not in self._value_cache:
            nodes = list(walk(function.body))
            changed = find_changed_slots(nodes)
            births = find_initial_values(nodes)
            self._value_cache[id(function)] = (
                {key: value for key, value in births.items() if key not in changed},
                changed,
            )
        return self._value_cache[id(function)]

    def _expand_bounded(self, scope: _Scope, expression: ir.Expression) -> ir.Expression | None:
        """Return an expression with varying variables replaced by their values; None if it is not plain arithmetic."""
        expanded = self._expand(scope, expression, 0)
        return expanded if expanded is not None and sum(1 for _ in walk(expanded)) <= _MAXIMUM_NODES else None

    def _expand(self, scope: _Scope, expression: ir.Expression, depth: int) -> ir.Expression | None:
        if depth > _MAXIMUM_NODES or not (is_integer(expression.type) or expression.type == BOOL):
            return None
        match expression:
            case ir.Const() | ir.Special():
                return expression
            case ir.Local(_, slot, _):
                return self._expand_variable(scope, expression, slot, depth)
            case ir.Call(function=function) if depth < _MAXIMUM_DEPTH:
                body = function.body.statements
                if not body or not isinstance(body[-1], ir.Return) or body[-1].value is None:
                    return None
                if not all(isinstance(statement, ir.Declare) for statement in body[:-1]):
                    return None
                return self._expand(self._call_scope(scope, expression), body[-1].value, depth + 1)
            case ir.Unary(_, _, operand) | ir.Cast(_, operand):
                inner = self._expand(scope, operand, depth + 1)
                return None if inner is None else replace(expression, operand=inner)
            case ir.Binary(_, op, left, right) | ir.Logical(_, op, left, right) if op not in ("/", "%"):
                first, second = self._expand(scope, left, depth + 1), self._expand(scope, right, depth + 1)
                return None if first is None or second is None else replace(expression, left=first, right=second)
            case ir.Select(_, condition, chosen, other):
                test, first, second = (self._expand(scope, each, depth + 1) for each in (condition, chosen, other))
                if test is None or first is None or second is None:
                    return None
                return replace(expression, condition=test, chosen=first, other=second)
        return None

    def _expand_variable(self, scope: _Scope, local: ir.Local, slot: int, depth: int) -> ir.Expression | None:
        single_values, _ = self._single_values(scope.frame.function)
        if scope.arguments is not None:
            if slot in scope.arguments:
                return scope.arguments[slot]
            return self._expand(scope, single_values[slot], depth + 1) if slot in single_values else None
        frame = scope.frame
        computed = self._thread.memory.computed_expression(frame, slot)
        if computed is not None:
            return self._expand(scope, computed, depth + 1)
        if not self._thread.memory.is_varying(frame, slot):
            return local
        if (frame.path, slot) in self._region_declarations and slot in single_values:
            return self._expand(scope, single_values[slot], depth + 1)
        return None

    # Progression of values along a strip.

    def _is_uniform(self, expression: ir.Expression) -> bool:
        """Return whether an expanded expression is uniform."""
        return not any(isinstance(node, ir.Special) and node.name == "threadIdx" for node in walk(expression))

    def _compute_progression(self, expression: ir.Expression, threads: int, masks: Masks) -> StripProgression | None:
        low = threads - 1
        match expression:
            case ir.Const(_, number):
                return StripProgression(0, int(number) & low == 0)
            case ir.Special(_, "threadIdx", 0):
                return StripProgression(1)
            case ir.Special(_, name, _):
                return StripProgression(0, name == "blockDim" and self._thread.block.shape[expression.axis] & low == 0)
            case ir.Cast(Scalar() as target, operand) if is_integer(target) and is_integer(operand.type):
                return self._compute_progression(operand, threads, masks)  # types have more bits than a strip's length
            case ir.Unary(_, "~", operand):
                inner = self._compute_progression(operand, threads, masks)
                return None if inner is None else replace(inner, slope=-inner.slope, is_aligned=False)
            case ir.Binary(type, op, left, right) if is_integer(type):
                first, second = (
                    self._compute_progression(left, threads, masks),
                    self._compute_progression(right, threads, masks),
                )
                if first is None or second is None:
                    return None
                if op in _BITWISE:
                    return _mask_progression(op, first, second, _low_bits(right, low, masks)) or _mask_progression(
                        op, second, first, _low_bits(left, low, masks)
                    )
                return _arithmetic_progression(op, first, second, right, threads)
        return StripProgression(0) if self._is_uniform(expression) else None


def _mask_progression(
    op: str, one: StripProgression, mask: StripProgression, low_bits: bool | None
) -> StripProgression | None:
    """Return the progression of an operation with a mask whose low bits are all set, all clear, or unknown (None)."""
    if mask.slope:
        return None
    by_bits = one.is_from_mask or mask.is_from_mask
    if not one.slope:
        return StripProgression(0, _is_aligned(op, one, mask), by_bits)
    has_low_bits = False if mask.is_aligned else low_bits
    if has_low_bits is None:
        return None
    if op == "&":
        return (
            StripProgression(one.slope, is_from_mask=True)
            if has_low_bits
            else StripProgression(0, True, is_from_mask=True)
        )
    if op == "^":
        return StripProgression(-one.slope if has_low_bits else one.slope, is_from_mask=True)
    return None if has_low_bits else StripProgression(one.slope, is_from_mask=True)


def _arithmetic_progression(
    op: str, first: StripProgression, second: StripProgression, right: ir.Expression, threads: int
) -> StripProgression | None:
    by_bits = first.is_from_mask or second.is_from_mask
    if not first.slope and not second.slope:
        if op == "*":
            aligned = first.is_aligned or second.is_aligned
        elif op == "<<":
            aligned = first.is_aligned or (isinstance(right, ir.Const) and 1 << min(int(right.value), 31) >= threads)
        else:
            aligned = op in "+-" and first.is_aligned and second.is_aligned
        return StripProgression(0, aligned, by_bits)
    if op in "+-" and second.slope == 0 and second.is_aligned:
        return StripProgression(first.slope, is_from_mask=by_bits)
    if op == "+" and first.slope == 0 and first.is_aligned:
        return StripProgression(second.slope, is_from_mask=by_bits)
    return None


def _is_aligned(op: str, one: StripProgression, other: StripProgression) -> bool:
    """Return whether an operation on two uniform numbers clears all low bits."""
    return any((one.is_aligned, other.is_aligned)) if op == "&" else all((one.is_aligned, other.is_aligned))


def _low_bits(mask: ir.Expression, low: int, masks: Masks) -> bool | None:
    """Return whether all low bits of a mask are set (True) or clear; None if unknown."""
    if isinstance(mask, ir.Const):
        bits = int(mask.value) & low
        return bits == low if bits in (0, low) else None
    return masks.get(mask)


def _is_inverted(mask: ir.Expression) -> bool:
    while isinstance(mask, ir.Cast):
        mask = mask.operand
    return isinstance(mask, ir.Unary) and mask.op in "~-"
