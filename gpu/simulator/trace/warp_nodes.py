"""Provenance of votes, reductions and matrix products: operation trees over the participating lanes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpu.base.lane_mask import LaneMask
from gpu.base.warp import WARP
from gpu.recording.packing import Array
from gpu.simulator.executor.exchanges import find_groups, find_product_operands
from gpu.simulator.executor.state.batch import BlockBatch
from gpu.simulator.trace.recorded_memory import NO_NODE
from gpu.simulator.trace.recorder import Recorder

#: The operation that combines the values of two lanes, and its name in a trace.
REDUCTIONS: dict[str, tuple[np.ufunc, str]] = {
    "__reduce_add_sync": (np.add, "+"),
    "__reduce_min_sync": (np.minimum, "min"),
    "__reduce_max_sync": (np.maximum, "max"),
    "__reduce_and_sync": (np.bitwise_and, "&"),
    "__reduce_or_sync": (np.bitwise_or, "|"),
    "__reduce_xor_sync": (np.bitwise_xor, "^"),
    "__any_sync": (np.logical_or, "||"),
    "__all_sync": (np.logical_and, "&&"),
    "__ballot_sync": (np.bitwise_or, "|"),
    "__match_any_sync": (np.bitwise_or, "|"),
}

_VOTES: dict[str, tuple[np.ufunc, str]] = {
    "__syncthreads_count": (np.add, "+"),
    "__syncthreads_and": (np.logical_and, "&&"),
    "__syncthreads_or": (np.logical_or, "||"),
}


def record_reduction(
    recorder: Recorder, op: str, batch: BlockBatch, mask: LaneMask, member_mask: Any, value: Any, node: Any
) -> Array | np.int32:
    """Record a vote or a reduction over a warp, and return the node of each lane's result.

    In a ballot, each lane contributes a bit, which is an operation on its predicate. The result of `__match_any_sync`
    is composed of the bits of the lanes with the same value.

    Parameters
    ----------
    op : str
        One of COMBINED.
    batch : BlockBatch
        The batch of the lanes.
    mask : LaneMask
        The active lanes.
    member_mask : scalar or array
        The mask argument, one for all lanes or one per lane.
    value, node : scalar or array
        The values of the lanes, and their nodes.
    """
    combine, operator = REDUCTIONS[op]
    lanes, groups = find_groups(batch, mask, member_mask)
    values = np.array(np.broadcast_to(value, batch.geometry.lanes))
    nodes = np.array(np.broadcast_to(node, batch.geometry.lanes), np.int32)
    if not nodes[lanes].any():
        return NO_NODE
    if op in ("__ballot_sync", "__match_any_sync"):
        counts = (values != 0) | (op == "__match_any_sync")
        bits = np.where(counts, np.uint32(1) << (batch.geometry.lane_numbers % WARP).astype(np.uint32), np.uint32(0))
        nodes = np.array(np.broadcast_to(recorder.record_operation(op, mask, bits, [nodes], [values]), nodes.shape))
        if op == "__match_any_sync":
            _, same = np.unique(values[lanes], return_inverse=True)
            _, groups = np.unique(np.stack([groups, same]), axis=1, return_inverse=True)
        values = bits
    return _record_tree(recorder, combine, operator, lanes, groups, values, nodes)


def record_block_vote(
    recorder: Recorder, op: str, batch: BlockBatch, arrived_mask: LaneMask, votes: Array, nodes: Array
) -> Array | np.int32:
    """Record a vote of a block, and return the node of each lane's result.

    Parameters
    ----------
    op : str
        One of `gpu.simulator.ir.intrinsics.BLOCK_VOTES`.
    batch : BlockBatch
        The batch of the lanes.
    arrived_mask : LaneMask
        The lanes that arrived, as whole blocks.
    votes, nodes : array
        The vote of each lane, 0 or 1, and its node.
    """
    combine, operator = _VOTES[op]
    lanes = arrived_mask.lanes
    if not nodes[lanes].any():
        return NO_NODE
    values = votes.astype(np.int32 if combine is np.add else np.bool_)
    return _record_tree(recorder, combine, operator, lanes, lanes // batch.geometry.lanes_per_block, values, nodes)


def record_matrix_product(
    recorder: Recorder, batch: BlockBatch, mask: LaneMask, values: Sequence[Any], nodes: Sequence[Any]
) -> Any:
    """Record the multiply-add operations of a matrix product, and return the node of each lane's element.

    Parameters
    ----------
    batch : BlockBatch
        The batch of the lanes.
    mask : LaneMask
        The lanes, as whole warps.
    values, nodes : sequence
        The arguments, as of `gpu.simulator.executor.exchanges.find_product_operands`, and their nodes.
    """
    lanes = batch.geometry.lanes
    sources, factors = find_product_operands(values, lanes)
    _, factor_nodes = find_product_operands([*values[:2], *nodes[2:]], lanes)
    kind = np.asarray(values[1]).dtype
    wide = np.float64 if kind.kind == "f" else kind
    total, total_nodes = np.broadcast_to(np.asarray(values[1], wide), lanes), nodes[1]
    remaining = 4 * len(factors)
    for pair, pair_nodes in zip(factors, factor_nodes, strict=True):
        for turn in zip(*sources, strict=True):
            operands, operand_nodes = (
                [np.broadcast_to(fragment, lanes)[at] for fragment, at in zip(fragments, turn, strict=True)]
                for fragments in (pair, pair_nodes)
            )
            before, remaining = total, remaining - 1
            total = before + np.multiply(*operands, dtype=wide)
            value = total if remaining else total.astype(kind)
            total_nodes = recorder.record_operation(
                "fma", mask, value, [*operand_nodes, total_nodes], [*operands, before]
            )
    return total_nodes


def _record_tree(
    recorder: Recorder, combine: np.ufunc, operator: str, lanes: Array, groups: Array, values: Array, nodes: Array
) -> Array:
    """Record a reduction tree over the lanes of each group, and return the node of the result for each lane.

    Neighbors are combined first, then pairs of neighbors, and so on.
    """
    order = np.argsort(groups, kind="stable")
    remaining, group = lanes[order], groups[order]
    while True:
        starts = np.flatnonzero(np.diff(group, prepend=-1))
        rank = np.arange(group.size) - np.repeat(starts, np.diff(starts, append=group.size))
        is_even = rank % 2 == 0
        paired = np.flatnonzero(is_even & np.append(group[1:] == group[:-1], False))
        if not paired.size:
            break
        target, other = remaining[paired], remaining[paired + 1]
        second, second_nodes = values.copy(), nodes.copy()
        second[target], second_nodes[target] = values[other], nodes[other]
        combined = combine(values, second)
        bits = np.zeros(nodes.size, bool)
        bits[target] = True
        new_nodes = recorder.record_operation(
            operator, LaneMask(bits), combined, [nodes, second_nodes], [values, second]
        )
        nodes[target] = np.broadcast_to(new_nodes, nodes.shape)[target]
        values = np.where(bits, combined, values)
        remaining, group = remaining[is_even], group[is_even]
    result = np.zeros(nodes.size, np.int32)
    result[lanes] = nodes[remaining][np.searchsorted(group, groups)]
    return result
