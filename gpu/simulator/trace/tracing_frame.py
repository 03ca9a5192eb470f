"""What the tracing executor keeps beside the values of a running call: the nodes that made them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu.simulator.executor.address import Address
from gpu.simulator.executor.frame import Frame
from gpu.simulator.executor.lanes import BlockBatch, Mask
from gpu.simulator.trace.recorded_memory import NONE


class TracingFrame(Frame):
    """A running call, with the nodes of its variables (`nodes`), of the last value (`node`) and of its result."""

    __slots__ = ("node", "nodes", "result_node")

    def __init__(
        self, batch: BlockBatch, slots: int, kernel: Frame | None, variables: dict[str, Address], depth: int
    ) -> None:
        super().__init__(batch, slots, kernel, variables, depth)
        self.node: Any = NONE
        self.nodes: list[Any] = [NONE] * slots
        self.result_node: Any = NONE


def node_of(frame: Frame) -> Any:
    """Return the nodes of the last value."""
    return frame.node  # type: ignore[attr-defined]


def set_node(frame: Frame, node: Any) -> None:
    """Leave the nodes of a value in the frame."""
    frame.node = node  # type: ignore[attr-defined]


def variable_nodes(frame: Frame) -> list[Any]:
    """Return the nodes of the variables, by slot."""
    return frame.nodes  # type: ignore[attr-defined,no-any-return]


def of_leaves(node: Any, count: int) -> tuple[Any, ...]:
    """Return the nodes of each leaf of a value."""
    return node if isinstance(node, tuple) else (node,) * count


def merged_nodes(old: Any, new: Any, mask: Mask) -> Any:
    """Return `new` in the lanes of the mask and `old` elsewhere."""
    if isinstance(new, tuple) or isinstance(old, tuple):
        size = len(new) if isinstance(new, tuple) else len(old)
        pairs = zip(of_leaves(old, size), of_leaves(new, size), strict=True)
        return tuple(merged_nodes(before, after, mask) for before, after in pairs)
    if new is old:
        return new
    return np.where(mask.bits, new, old)


def joined(parts: list[tuple[Mask, Any]]) -> Any:
    """Return the nodes of lanes that loaded from different memories."""
    made: Any = NONE
    for number, (mask, node) in enumerate(parts):
        made = merged_nodes(made, node, mask) if number else node
    return made
