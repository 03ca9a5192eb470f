"""The tables of a trace, each a structured type: one row for each event, access, write to a variable, and so on.

All columns are int32. A column that is named after a thing holds its number: `mask` that of a set of lanes, `value`
that of a vector of values, one for each lane of the mask.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


def _int32(*names: str) -> np.dtype[np.void]:
    return np.dtype([(name, np.int32) for name in names])


class EventRow(NamedTuple):
    """A statement that ran.

    `taken` is the mask of the lanes where a branch's condition held, `work` how many operations on data all lanes did,
    `statement` which of the statements it is, `access` and `register` are the first rows of its own in these tables.
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
    """What a statement read or wrote, or one `part` of a vector.

    `elements` is a vector of integers, `write` the number of writes to the memory before, and `value` what an atomic
    found, or what was read where some lanes took it from a register; -1 for others.
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
    """Blocks that ran in lockstep: the number of the first one in the grid, how many, and that of the launch."""

    first: int
    blocks: int
    launch: int


EVENT, ACCESS, BATCH = _int32(*EventRow._fields), _int32(*AccessRow._fields), _int32(*BatchRow._fields)

REGISTER = _int32("event", "frame", "slot", "mask", "value", "node")
"""A write to a variable that is a number."""

POINTER = _int32("event", "frame", "slot", "mask", "name", "value")
"""A write to a variable that is a pointer: into the array of a name, and how many bytes from its beginning."""

OPERATION = np.dtype(
    [*_int32("event", "operator", "mask", "first", "value").descr, ("nodes", np.int32, 3), ("operands", np.int32, 3)]
)
"""What made values: `first` is the first lane's node. `nodes` are the vectors of its operands' nodes, and `operands` of
their values where some lane's has no node; -1 for none."""

BARRIER = _int32("before", "batch", "mask")
"""Lanes that met at a barrier, and the event that came next."""

MASK = _int32("start", "count", "lanes", "bits")
"""A set of lanes: where it starts in its pool, how many of how many lanes, and whether as bits or as their numbers."""

CALL = _int32("frame", "caller")
"""A call of a function, and the frame of what called it."""

INPUT = _int32("first", "count", "memory", "unit")
"""The nodes of what a memory held when the launch began, one for each `unit` of bytes."""

ACTIONS = ("read", "write", "atomic")
NOT_A_BRANCH, NOBODY = -1, -2
"""In the column `taken` of an event."""

NO_STATEMENT = -1
"""In the column `statement`: the event is at a barrier."""
