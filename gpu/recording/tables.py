"""The structured types of a trace's tables, with one row per event, access, write to a variable and so on.

All columns are int32. A column named after an object contains its number: `mask` that of a mask, `value` that of a
vector of values with one value for each lane of the mask.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


def _int32(*names: str) -> np.dtype[np.void]:
    return np.dtype([(name, np.int32) for name in names])


class EventRow(NamedTuple):
    """An executed statement.

    `taken` is the mask of the lanes in which a branch's condition was true, or which follow the first lane of their
    warp at a `switch`; `work` the number of operations on data of all lanes, `statement` the number of the statement;
    `access` and `register` are its first rows in those tables.
    """

    kind: int
    position: int
    function: int
    frame: int
    batch: int
    mask: int
    taken: int
    resumed: int
    work: int
    statement: int
    access: int
    register: int


class AccessRow(NamedTuple):
    """A memory access of a statement, or one `part` of a vector access.

    `elements` is a vector of integers, and `write` the number of earlier writes to the memory. `value` are the old
    values of an atomic operation, or the values of a read that came from a register in some lanes; else -1.
    """

    event: int
    action: int
    memory: int
    dtype: int
    mask: int
    elements: int
    write: int
    value: int
    part: int


class BatchRow(NamedTuple):
    """A batch: the number of its first block in the grid, the number of its blocks, and its launch."""

    first: int
    blocks: int
    launch: int


EVENT, ACCESS, BATCH = _int32(*EventRow._fields), _int32(*AccessRow._fields), _int32(*BatchRow._fields)

REGISTER = _int32("event", "frame", "slot", "mask", "value", "node")
"""A write to a scalar variable."""

POINTER = _int32("event", "frame", "slot", "mask", "name", "value")
"""A write to a pointer variable: the name of the array that it points into, and the offset in bytes."""

OPERATION = np.dtype(
    [*_int32("event", "operator", "mask", "first", "value").descr, ("nodes", np.int32, 3), ("operands", np.int32, 3)]
)
"""An operation that computed values: `first` is the first lane's node. `nodes` are vectors of the operands' nodes, and
`operands` vectors of their values if an operand has no node in some lane; -1 for none."""

BARRIER = _int32("before", "batch", "mask")
"""A barrier: the number of the next event, and the lanes that passed it."""

MASK = _int32("start", "count", "lanes", "bits")
"""A mask: its start in the pool, the number of active lanes, the number of all lanes, and whether it is stored as bits
or as lane numbers."""

CALL = _int32("frame", "caller")
"""A function call: its frame, and the frame of the caller."""

INPUT = _int32("first", "count", "memory", "unit")
"""The nodes of a memory's initial content, one for each `unit` of bytes."""

ACTIONS = ("read", "write", "atomic")
NOT_A_BRANCH, NO_LANES = -1, -2
"""Special values of an event's column `taken`: not a branch, and no lane."""

NO_STATEMENT = -1
"""The value of an event's column `statement` at a barrier."""
