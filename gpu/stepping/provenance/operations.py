"""Operations with one row a lane, so that NumPy can ask about all of them at once."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from gpu.simulator.trace.packing import Array
from gpu.simulator.trace.trace import Trace


@dataclass(frozen=True, eq=False)
class Operations:
    """Operations, one row for each value that was made.

    Parameters
    ----------
    node : array
        The value's node.
    sources : array, shape (values, 3)
        The nodes of the operands, 0 for none.
    statement : array
        A number for the statement in the source.
    moment : array
        The number of the event.
    operator : array
        The number of the operator's name.
    """

    node: Array
    sources: Array
    statement: Array
    moment: Array
    operator: Array

    @classmethod
    def of(cls, trace: Trace) -> Operations:
        """Return the operations of a trace, everything numbered as it is there."""
        table = trace.data.operations
        owner, rank, _ = trace.data.masks.expand(table["mask"])
        sources = np.zeros((owner.size, 3), np.int64)
        for place in range(3):
            numbers = table["nodes"][:, place]
            has = np.flatnonzero(numbers[owner] >= 0)
            sources[has, place] = trace.data.integers.each(numbers[owner[has]], rank[has])
        event = table["event"][owner]
        return cls(
            table["first"][owner].astype(np.int64) + rank,
            sources,
            trace.data.events["position"][event].astype(np.int64),
            event,
            table["operator"][owner],
        )

    @classmethod
    def joined(cls, parts: list[Operations]) -> Operations:
        """Return several as one, ascending by node."""
        if not parts:
            none = np.zeros(0, np.int64)
            return cls(none, np.zeros((0, 3), np.int64), none, none, none)
        whole = cls(*(np.concatenate([getattr(part, each.name) for part in parts]) for each in fields(cls)))
        order = np.argsort(whole.node, kind="stable")
        return cls(*(getattr(whole, each.name)[order] for each in fields(cls)))
