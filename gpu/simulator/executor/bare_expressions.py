"""Compilation of expressions with results that do not derive from other values: constants, addresses, effects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpu.base.lane_mask import LaneMask
from gpu.simulator import ir
from gpu.simulator.executor import exchanges
from gpu.simulator.executor.async_copies import get_async_copies
from gpu.simulator.executor.barriers import pass_grid_barrier, pass_named_barrier
from gpu.simulator.executor.children import add_child_launches
from gpu.simulator.executor.clusters import pass_cluster_barrier
from gpu.simulator.executor.effects import (
    check_assertion,
    print_lanes,
    read_clock,
    report_fence,
    report_heap_call,
    require_full_warp,
)
from gpu.simulator.executor.shared_addresses import from_shared_address, map_to_cluster, to_shared_address
from gpu.simulator.executor.state.call_frame import CallFrame, Evaluator
from gpu.simulator.executor.state.pointers import PointerValue, to_pointer
from gpu.simulator.executor.textures import compute_texel_weight, find_texel
from gpu.simulator.ir.intrinsics import FULL_WARP_SYNC
from gpu.simulator.ir.operations import get_cast
from gpu.simulator.ir.walking import Visitor
from gpu.simulator.types import INT64, Pointer, Scalar


class BareExpressions(Visitor):
    """Compiles constants, addresses and effects to closures.

    Parameters
    ----------
    compile_expression : callable
        Compiles operands to closures of bare values.
    """

    def __init__(self, compile_expression: Callable[[ir.Expression], Evaluator]) -> None:
        self._compile = compile_expression

    def visit_const(self, node: ir.Const) -> Evaluator:
        value = node.value
        return lambda frame, mask: value

    def visit_null(self, node: ir.Null) -> Evaluator:
        null = PointerValue(None)
        return lambda frame, mask: null

    def visit_global(self, node: ir.Global) -> Evaluator:
        name = node.name
        return lambda frame, mask: frame.globals[name]

    def visit_special(self, node: ir.Special) -> Evaluator:
        name, axis = node.name, node.axis
        return lambda frame, mask: frame.batch.builtin_values[name][axis]

    def visit_cast(self, node: ir.Cast) -> Evaluator:
        run, source, type = self._compile(node.operand), node.operand.type, node.type
        if isinstance(source, Pointer) and isinstance(type, Scalar):
            narrow = get_cast(INT64, type)
            return lambda frame, mask: narrow(run(frame, mask).number())
        if isinstance(source, Scalar) and isinstance(type, Pointer):
            widen = get_cast(source, INT64)
            return lambda frame, mask: to_pointer(widen(run(frame, mask)))
        return run

    def visit_cluster_address(self, node: ir.ClusterAddress) -> Evaluator:
        own, rank = self._compile(node.pointer), self._compile(node.rank)
        return lambda frame, mask: map_to_cluster(frame.batch, own(frame, mask), rank(frame, mask), mask, node.position)

    def visit_shared_address(self, node: ir.SharedAddress) -> Evaluator:
        run, position = self._compile(node.operand), node.position
        if isinstance(node.type, Pointer):
            return lambda frame, mask: from_shared_address(frame.batch, run(frame, mask))
        narrow = get_cast(INT64, node.type)
        return lambda frame, mask: narrow(to_shared_address(frame.batch, run(frame, mask), mask, position))

    def visit_offset(self, node: ir.Offset) -> Evaluator:
        start, by, size = self._compile(node.pointer), self._compile(node.index), node.type.element.size
        return lambda frame, mask: start(frame, mask).offset_by(by(frame, mask), size)

    def visit_member(self, node: ir.Member) -> Evaluator:
        start, offset = self._compile(node.pointer), node.offset
        return lambda frame, mask: start(frame, mask).offset_by(offset, 1)

    def visit_distance(self, node: ir.Distance) -> Evaluator:
        left, right = self._compile(node.left), self._compile(node.right)
        assert isinstance(node.left.type, Pointer)
        size = node.left.type.element.size

        def run(frame: CallFrame, mask: LaneMask) -> Any:
            difference = (left(frame, mask).offset - right(frame, mask).offset) // size
            return difference if isinstance(difference, np.ndarray) else np.int64(difference)

        return run

    def visit_warp(self, node: ir.Warp) -> Evaluator:
        if node.op == FULL_WARP_SYNC:
            return lambda frame, mask: require_full_warp(frame, mask, node.position)
        dtype = node.type.dtype
        return lambda frame, mask: exchanges.run_warp_operation(node.op, frame.batch, mask, []).astype(
            dtype, copy=False
        )

    def visit_fence(self, node: ir.Fence) -> Evaluator:
        named = self._compile(node.lanes) if node.lanes is not None else None
        return lambda frame, mask: report_fence(frame, node.name, mask, named and named(frame, mask), node.position)

    def visit_async_commit(self, node: ir.AsyncCommit) -> Evaluator:
        return lambda frame, mask: get_async_copies(frame.batch, node.kind).commit(mask)

    def visit_async_wait(self, node: ir.AsyncWait) -> Evaluator:
        pending = self._compile(node.pending_groups) if node.pending_groups is not None else None
        return lambda frame, mask: get_async_copies(frame.batch, node.kind).complete_groups(
            mask, pending and pending(frame, mask)
        )

    def visit_heap_change(self, node: ir.HeapChange) -> Evaluator:
        address = self._compile(node.pointer)
        byte_count = self._compile(node.size) if node.size is not None else None
        return lambda frame, mask: report_heap_call(
            frame, mask, address(frame, mask), byte_count and byte_count(frame, mask), node.position
        )

    def visit_print(self, node: ir.Print) -> Evaluator:
        values = [each if isinstance(each, str) else self._compile(each) for each in node.arguments]

        def run(frame: CallFrame, mask: LaneMask) -> Any:
            results = [value if isinstance(value, str) else value(frame, mask) for value in values]
            return print_lanes(frame, mask, node.format, results)

        return run

    def visit_assertion(self, node: ir.Assertion) -> Evaluator:
        holds = self._compile(node.condition)
        return lambda frame, mask: check_assertion(frame, mask, holds(frame, mask), node.text, node.position)

    def visit_grid_barrier(self, node: ir.GridBarrier) -> Evaluator:
        return lambda frame, mask: pass_grid_barrier(frame, mask, node.position)

    def visit_named_barrier(self, node: ir.NamedBarrier) -> Evaluator:
        number = self._compile(node.number)
        count = self._compile(node.count) if node.count is not None else None
        return lambda frame, mask: pass_named_barrier(
            frame, mask, node, number(frame, mask), count and count(frame, mask)
        )

    def visit_cluster_barrier(self, node: ir.ClusterBarrier) -> Evaluator:
        return lambda frame, mask: pass_cluster_barrier(frame, mask, node)

    def visit_clock(self, node: ir.Clock) -> Evaluator:
        dtype = node.type.dtype
        return lambda frame, mask: read_clock(frame, dtype)

    def visit_texel(self, node: ir.Texel) -> Evaluator:
        address, at = self._compile(node.pointer), [self._compile(place) for place in node.coordinates]
        return lambda frame, mask: find_texel(
            node, frame.batch, address(frame, mask), [place(frame, mask) for place in at], mask
        )

    def visit_texel_weight(self, node: ir.TexelWeight) -> Evaluator:
        texture = self._compile(node.pointer)
        coordinate = self._compile(node.coordinate) if node.coordinate is not None else None
        return lambda frame, mask: compute_texel_weight(
            node, texture(frame, mask), coordinate and coordinate(frame, mask), mask
        )

    def visit_launch_call(self, node: ir.LaunchCall) -> Evaluator:
        function, position = node.function, node.position
        parts = (node.grid, node.block, node.shared_bytes, node.stream)
        configuration = [self._compile(part) for part in parts]
        arguments = [self._compile(argument) for argument in node.arguments]
        return lambda frame, mask: add_child_launches(frame, mask, function, configuration, arguments, position)

    def visit_wait_for_children(self, node: ir.WaitForChildren) -> Evaluator:
        return lambda frame, mask: frame.batch.wait_for_children()
