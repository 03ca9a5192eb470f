"""Operations as columns, with one row per lane, for vectorized analysis."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from gpu.recording.packing import Array
from gpu.recording.trace import Trace


@dataclass(frozen=True, eq=False)
class Operations:
    """Operations, one row per computed value.

    Parameters
    ----------
    node : array
        The value's node.
    sources : array, shape (values, 3)
        The nodes of the operands, 0 for none.
    statement : array
        The number of the source statement.
    moment : array
        The event number.
    operator : array
        The index of the operator's name.
    """

    node: Array
    sources: Array
    statement: Array
    moment: Array
    operator: Array

    @classmethod
    def from_trace(cls, trace: Trace) -> Operations:
        """Return the operations of a trace, with the trace's own numbers."""
        table = trace.data.operations
        owner, rank, _ = trace.data.masks.expand(table["mask"])
        sources = np.zeros((owner.size, 3), np.int64)
        for operand in range(3):
            numbers = table["nodes"][:, operand]
            present = np.flatnonzero(numbers[owner] >= 0)
            sources[present, operand] = trace.data.integers.gather_items(numbers[owner[present]], rank[present])
        event = table["event"][owner]
        return cls(
            table["first"][owner].astype(np.int64) + rank,
            sources,
            trace.data.events["position"][event].astype(np.int64),
            event,
            table["operator"][owner],
        )

    @classmethod
    def concatenate(cls, parts: list[Operations]) -> Operations:
        """Concatenate several parts, sorted by node."""
        if not parts:
            no_rows = np.zeros(0, np.int64)
            return cls(no_rows, np.zeros((0, 3), np.int64), no_rows, no_rows, no_rows)
        combined = cls(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(cls)))
        order = np.argsort(combined.node, kind="stable")
        return cls(*(getattr(combined, field.name)[order] for field in fields(cls)))
