"""Where the results of votes and reductions over warps and blocks come from: trees over the lanes that take part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpu.simulator.executor.batch import BlockBatch
from gpu.simulator.executor.exchanges import group_of, operands_of_product
from gpu.simulator.executor.masks import LaneMask
from gpu.simulator.trace.packing import Array
from gpu.simulator.trace.recorded_memory import NONE
from gpu.simulator.trace.recorder import Recorder
from gpu.warp import WARP

#: How two lanes' values become one, and what that is called in a trace.
COMBINED: dict[str, tuple[np.ufunc, str]] = {
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


def combined_nodes(
    recorder: Recorder, op: str, batch: BlockBatch, mask: LaneMask, named: Any, value: Any, node: Any
) -> Array | np.int32:
    """Return the node of what each lane gets from a vote or a reduction over its warp, after recording how it was made.

    Each lane's part in a ballot is a bit, which is an operation on its predicate. So it is where lanes of the same
    value find each other: what they get is made of these lanes' bits.

    Parameters
    ----------
    recorder : Recorder
    op : str
        One of COMBINED.
    batch : BlockBatch
    mask : LaneMask
        The lanes that are here.
    named : scalar or array
        The lanes that each lane names.
    value, node : scalar or array
        What each lane brings, and the node of it.
    """
    combine, operator = COMBINED[op]
    lanes, groups = group_of(batch, mask, named)
    values = np.array(np.broadcast_to(value, batch.geometry.lanes))
    nodes = np.array(np.broadcast_to(node, batch.geometry.lanes), np.int32)
    if not nodes[lanes].any():
        return NONE
    if op in ("__ballot_sync", "__match_any_sync"):
        counts = (values != 0) | (op == "__match_any_sync")
        bits = np.where(counts, np.uint32(1) << (batch.geometry.lane_numbers % WARP).astype(np.uint32), np.uint32(0))
        nodes = np.array(np.broadcast_to(recorder.operation(op, mask, bits, [nodes], [values]), nodes.shape))
        if op == "__match_any_sync":
            _, same = np.unique(values[lanes], return_inverse=True)
            _, groups = np.unique(np.stack([groups, same]), axis=1, return_inverse=True)
        values = bits
    return _tree(recorder, combine, operator, lanes, groups, values, nodes)


def voted_nodes(
    recorder: Recorder, op: str, batch: BlockBatch, arrived: LaneMask, votes: Array, nodes: Array
) -> Array | np.int32:
    """Return the node of what each lane gets from a vote of its block, after recording how it was made.

    Parameters
    ----------
    recorder : Recorder
    op : str
        One of `gpu.simulator.intrinsics.BLOCK_VOTES`.
    batch : BlockBatch
    arrived : LaneMask
        The lanes that arrived, whole blocks.
    votes, nodes : array
        What each lane votes, 0 or 1, and the node of it.
    """
    combine, operator = _VOTES[op]
    lanes = arrived.lanes
    if not nodes[lanes].any():
        return NONE
    values = votes.astype(np.int32 if combine is np.add else np.bool_)
    return _tree(recorder, combine, operator, lanes, lanes // batch.geometry.lanes_per_block, values, nodes)


def product_nodes(
    recorder: Recorder, batch: BlockBatch, mask: LaneMask, values: Sequence[Any], nodes: Sequence[Any]
) -> Any:
    """Return the nodes of one result a lane of a product of tiles, after recording its sum, product by product.

    Parameters
    ----------
    recorder : Recorder
    batch : BlockBatch
    mask : LaneMask
        Whole warps.
    values, nodes : sequence
        The arguments, as of `gpu.simulator.executor.exchanges.operands_of_product`, and where each comes from.
    """
    lanes = batch.geometry.lanes
    sources, factors = operands_of_product(values, lanes)
    _, of_factors = operands_of_product([*values[:2], *nodes[2:]], lanes)
    kind = np.asarray(values[1]).dtype
    wide = np.float64 if kind.kind == "f" else kind
    total, made = np.broadcast_to(np.asarray(values[1], wide), lanes), nodes[1]
    left = 4 * len(factors)
    for pair, of_pair in zip(factors, of_factors, strict=True):
        for turn in zip(*sources, strict=True):
            taken, of_taken = (
                [np.broadcast_to(each, lanes)[at] for each, at in zip(held, turn, strict=True)]
                for held in (pair, of_pair)
            )
            before, left = total, left - 1
            total = before + np.multiply(*taken, dtype=wide)
            value = total if left else total.astype(kind)
            made = recorder.operation("fma", mask, value, [*of_taken, made], [*taken, before])
    return made


def _tree(
    recorder: Recorder, combine: np.ufunc, operator: str, lanes: Array, groups: Array, values: Array, nodes: Array
) -> Array:
    """Record how the lanes of each group become one, and return the node of that for each lane.

    Neighbors combine first, then pairs of neighbors, and so on.
    """
    order = np.argsort(groups, kind="stable")
    left, of = lanes[order], groups[order]
    while True:
        starts = np.flatnonzero(np.diff(of, prepend=-1))
        rank = np.arange(of.size) - np.repeat(starts, np.diff(starts, append=of.size))
        stays = rank % 2 == 0
        paired = np.flatnonzero(stays & np.append(of[1:] == of[:-1], False))
        if not paired.size:
            break
        into, other = left[paired], left[paired + 1]
        second, second_nodes = values.copy(), nodes.copy()
        second[into], second_nodes[into] = values[other], nodes[other]
        made = combine(values, second)
        bits = np.zeros(nodes.size, bool)
        bits[into] = True
        found = recorder.operation(operator, LaneMask(bits), made, [nodes, second_nodes], [values, second])
        nodes[into] = np.broadcast_to(found, nodes.shape)[into]
        values = np.where(bits, made, values)
        left, of = left[stays], of[stays]
    result = np.zeros(nodes.size, np.int32)
    result[lanes] = nodes[left][np.searchsorted(of, groups)]
    return result
