"""The lockstep executor with a recorder beside it: every value is accompanied by the nodes that made it.

An expression's closure returns its value as ever, and leaves its nodes in the frame: one number, one a lane, or, of a
struct, a tuple with those of each leaf. Where nodes are not wanted, which is so for addresses and for conditions,
expressions are compiled without them ("quietly"); what they store on the way is followed nevertheless.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from gpu.errors import SourcePosition
from gpu.simulator import ir
from gpu.simulator.executor import warp
from gpu.simulator.executor.frame import Evaluator, Frame, assign_local
from gpu.simulator.executor.lanes import BlockBatch, Mask
from gpu.simulator.executor.lockstep import LockstepCompiler
from gpu.simulator.executor.observe import Step as Told
from gpu.simulator.intrinsics import BLOCK_VOTES, INTRINSICS
from gpu.simulator.operations import UNARY, binary
from gpu.simulator.trace.recorded_memory import NONE
from gpu.simulator.trace.recorder import Recorder
from gpu.simulator.trace.tracing_frame import merged_nodes, node_of, of_leaves, set_node, variable_nodes
from gpu.simulator.trace.warp_nodes import COMBINED, combined_nodes, voted_nodes
from gpu.simulator.types import Pointer, Scalar, leaves

# Intrinsics that give the same bits or the same number in another type: copies.
_CONVERSIONS = frozenset(
    {
        "__float_as_int",
        "__float_as_uint",
        "__int_as_float",
        "__uint_as_float",
        "__double_as_longlong",
        "__longlong_as_double",
        "__lockstep_from_half",
        "__lockstep_to_half",
    }
)

_STORES = ir.Assign | ir.Update | ir.Atomic | ir.Call | ir.IndirectCall | ir.Temporary


class TracingExpressions(LockstepCompiler):
    """Compiles expressions so that their nodes come with their values.

    Parameters
    ----------
    recorder : Recorder
        It must be among the observers of the launch too.
    """

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.recorder = recorder
        self._quiet = False
        # By the identity of an expression that is about to be compiled: the steps of loops, and conditions.
        self._advances: dict[int, SourcePosition] = {}
        self._conditions: set[int] = set()
        # Of each block of a batch, by its first lane: what was told at the last vote, and the nodes of its outcome.
        self._votes: dict[int, tuple[Any, Any]] = {}

    @contextmanager
    def nodes_unwanted(self, quiet: bool) -> Iterator[None]:
        """Compile with nodes or without."""
        before, self._quiet = self._quiet, quiet
        try:
            yield
        finally:
            self._quiet = before

    def quietly(self, expression: ir.Expression) -> Evaluator:
        """Compile an expression whose own nodes nobody wants."""
        with self.nodes_unwanted(True):
            return self.expression(expression)

    # Expressions.

    def expression(self, expression: ir.Expression) -> Evaluator:
        if id(expression) in self._advances:
            return self._advance(expression, self._advances.pop(id(expression)))
        if id(expression) in self._conditions:
            self._conditions.discard(id(expression))
            return self.quietly(expression)
        if isinstance(expression, _STORES):
            with self.nodes_unwanted(False):
                return self.storing(expression)
        if self._quiet:
            return super().expression(expression)
        match expression:
            case ir.Local(_, slot, _):
                return self._local(slot)
            case ir.Unary(_, op, operand):
                return self._operation(op, UNARY[op], operand)
            case ir.Binary(_, op, left, right):
                assert isinstance(left.type, Scalar)
                return self._operation(op, binary(op, left.type), left, right)
            case ir.Intrinsic(_, name) if name in _CONVERSIONS:
                return super().expression(expression)
            case ir.Intrinsic(type, name, arguments):
                return self._operation(name, _converting(INTRINSICS[name], type), *arguments)
            case ir.Cast(type, operand) if isinstance(type, Scalar) and isinstance(operand.type, Scalar):
                return super().expression(expression)
            case ir.Logical():
                return self._logical_with_nodes(expression)
            case ir.Select():
                return self._select_with_nodes(expression)
            case ir.Sequence(_, first, second):
                before, after = self.quietly(first), self.expression(second)
                return lambda frame, mask: (before(frame, mask), after(frame, mask))[1]
            case ir.Construct(_, parts):
                return self._construct_with_nodes(parts)
            case ir.Extract(type, operand, first):
                return self._extract_with_nodes(expression, self.expression(operand))
            case ir.Load(_, place):
                return self.load_with_nodes(place)
            case ir.Warp(_, op) if op.startswith("__shfl"):
                return self._shuffle(expression)
            case ir.Warp(_, op) if op in COMBINED:
                return self._combined(expression)
            case ir.Warp(_, op) if op in BLOCK_VOTES:
                return self._vote_with_nodes(expression)
        with self.nodes_unwanted(True):
            run = super().expression(expression)

        def without(frame: Frame, mask: Mask) -> Any:
            value = run(frame, mask)
            set_node(frame, NONE)
            return value

        return without

    @abstractmethod
    def storing(self, expression: ir.Expression) -> Evaluator:
        """Return the closure of an expression that changes something."""

    @abstractmethod
    def load_with_nodes(self, place: ir.Element) -> Evaluator:
        """Return the closure of a load."""

    def _advance(self, expression: ir.Expression, position: SourcePosition) -> Evaluator:
        """Let the step of a for loop be a statement of its own in the recording."""
        run, told, recorder = self.expression(expression), Told(position, "advance", 0), self.recorder

        def advance(frame: Frame, mask: Mask) -> Any:
            recorder.step(frame.batch, told, mask)
            return run(frame, mask)

        return advance

    def _local(self, slot: int) -> Evaluator:
        def run(frame: Frame, mask: Mask) -> Any:
            set_node(frame, variable_nodes(frame)[slot])
            return frame.values[slot]

        return run

    def _operation(self, op: str, function: Callable[..., Any], *operands: ir.Expression) -> Evaluator:
        evaluators, recorder = [self.expression(operand) for operand in operands], self.recorder

        def run(frame: Frame, mask: Mask) -> Any:
            values, nodes = [], []
            for evaluate in evaluators:
                values.append(evaluate(frame, mask))
                nodes.append(node_of(frame))
            made = function(*values)
            set_node(frame, recorder.operation(op, mask, made, nodes, values))
            return made

        return run

    def _logical_with_nodes(self, expression: ir.Logical) -> Evaluator:
        left, right = self.expression(expression.left), self.side(expression.right)
        op, conjunction, recorder = expression.op, expression.op == "&&", self.recorder

        def run(frame: Frame, mask: Mask) -> Any:
            first = left(frame, mask)
            nodes = [node_of(frame), NONE]
            true, false = mask.split(first)
            needed = true if conjunction else false
            second: Any = np.bool_(conjunction)
            made = first
            if needed is not None:
                second = right(frame, needed)
                nodes[1] = assign_local(NONE, node_of(frame), needed)
                second = assign_local(np.bool_(conjunction), second, needed)
                made = first & second if conjunction else first | assign_local(np.bool_(False), second, needed)
            set_node(frame, recorder.operation(op, mask, made, nodes, [first, second]))
            return made

        return run

    def _flag_with_nodes(self, expression: ir.Select) -> Evaluator:
        """Between two constants the choice is all there is to know: the condition makes the value."""
        condition = self.expression(expression.condition)
        chosen, other = self.expression(expression.chosen), self.expression(expression.other)
        recorder = self.recorder

        def run(frame: Frame, mask: Mask) -> Any:
            decided = condition(frame, mask)
            node = node_of(frame)
            picked: Any = np.where(decided, chosen(frame, mask), other(frame, mask))
            made = picked[()]
            set_node(frame, recorder.operation("?:", mask, made, [node], [decided]))
            return made

        return run

    def _select_with_nodes(self, expression: ir.Select) -> Evaluator:
        if isinstance(expression.chosen, ir.Const) and isinstance(expression.other, ir.Const):
            return self._flag_with_nodes(expression)
        condition = self.quietly(expression.condition)
        chosen, other = self.side(expression.chosen), self.side(expression.other)

        def run(frame: Frame, mask: Mask) -> Any:
            true, false = mask.split(condition(frame, mask))
            if false is None:
                return chosen(frame, mask)
            if true is None:
                return other(frame, mask)
            refused = other(frame, false)
            node = node_of(frame)
            taken = chosen(frame, true)
            set_node(frame, merged_nodes(node, node_of(frame), true))
            return assign_local(refused, taken, true)

        return run

    def _construct_with_nodes(self, parts: tuple[ir.Expression, ...]) -> Evaluator:
        evaluators = [self.expression(part) for part in parts]

        def run(frame: Frame, mask: Mask) -> Any:
            flat: list[Any] = []
            nodes: list[Any] = []
            for evaluate in evaluators:
                value = evaluate(frame, mask)
                values = value if isinstance(value, tuple) else (value,)
                flat += values
                nodes += of_leaves(node_of(frame), len(values))
            set_node(frame, tuple(nodes))
            return tuple(flat)

        return run

    def _extract_with_nodes(self, expression: ir.Extract, whole: Evaluator) -> Evaluator:
        first = expression.first
        last = first + len(leaves(expression.type))
        single = isinstance(expression.type, Scalar | Pointer)

        def run(frame: Frame, mask: Mask) -> Any:
            values = whole(frame, mask)
            nodes = of_leaves(node_of(frame), len(values))
            set_node(frame, nodes[first] if single else nodes[first:last])
            return values[first] if single else values[first:last]

        return run

    def _warp(self, expression: ir.Warp) -> Evaluator:
        run, recorder = super()._warp(expression), self.recorder
        if expression.op not in BLOCK_VOTES:
            return run

        def vote(frame: Frame, mask: Mask) -> Any:
            statement = recorder.suspend()
            made = run(frame, mask)
            recorder.leave(statement)
            return made

        return vote

    def _vote_with_nodes(self, expression: ir.Warp) -> Evaluator:
        predicate = self.expression(expression.arguments[0])
        op, position, recorder = expression.op, expression.position, self.recorder

        def run(frame: Frame, mask: Mask) -> Any:
            value = predicate(frame, mask)
            node = node_of(frame)
            voted = np.not_equal(value, 0)
            node = recorder.operation(op, mask, voted.astype(np.int32), [node], [value])
            # A lane tells what it votes, and where that comes from.
            told = np.asarray(node, np.int64) << 1 | voted
            statement = recorder.suspend()
            met, told = self.barrier(frame, mask, position, told)
            recorder.leave(statement)
            set_node(frame, self._outcome(op, frame.batch, met, told))
            return warp.block_vote(op, frame.batch, met, told & 1)

        return run

    def _outcome(self, op: str, batch: BlockBatch, met: Mask, told: Any) -> Any:
        """Return the nodes of a vote's outcome, which the first of the warps that run on their own records."""
        first = int(met.lanes[0])
        before, nodes = self._votes.get(first, (None, None))
        if before is not told:
            lanes = np.broadcast_to(told, batch.geometry.lanes)
            nodes = voted_nodes(self.recorder, op, batch, met, lanes & 1, (lanes >> 1).astype(np.int32))
            self._votes[first] = (told, nodes)
        return nodes

    def _combined(self, expression: ir.Warp) -> Evaluator:
        named, given = self.quietly(expression.arguments[0]), self.expression(expression.arguments[1])
        op, dtype, recorder = expression.op, expression.type.dtype, self.recorder

        def run(frame: Frame, mask: Mask) -> Any:
            here = named(frame, mask)
            value = given(frame, mask)
            set_node(frame, combined_nodes(recorder, op, frame.batch, mask, here, value, node_of(frame)))
            return warp.run(op, frame.batch, mask, [here, value]).astype(dtype, copy=False)

        return run

    def _shuffle(self, expression: ir.Warp) -> Evaluator:
        value, *others = expression.arguments[1:]
        evaluate, rest = self.expression(value), [self.quietly(other) for other in others]
        named = self.quietly(expression.arguments[0])
        op, dtype = expression.op, expression.type.dtype

        def run(frame: Frame, mask: Mask) -> Any:
            here = named(frame, mask)
            given = evaluate(frame, mask)
            node = node_of(frame)
            by = [other(frame, mask) for other in rest]
            set_node(frame, warp.run(op, frame.batch, mask, [here, node, *by]))
            return warp.run(op, frame.batch, mask, [here, given, *by]).astype(dtype, copy=False)

        return run


def _converting(function: Callable[..., Any], type: Scalar) -> Callable[..., Any]:
    return lambda *values: function(*values).astype(type.dtype, copy=False)
