"""A trace's tables with one row a lane, so that NumPy can ask about all of them at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.simulator.trace.packing import EXPLICIT
from gpu.simulator.trace.recorder import ACCESS, ACTIONS, EVENT, OPERATION, REGISTER
from gpu.simulator.trace.trace import Trace

Array = npt.NDArray[Any]

WIDTH = 8
"""Bytes that the widest scalar takes."""


@dataclass(frozen=True)
class FlatOperations:
    """The operations of a trace, one row for each value that was made.

    Parameters
    ----------
    node : array
        The value's node.
    event, operator : arrays
        When it was made, and the number of the operator.
    sources : array, shape (values, 3)
        The nodes of the operands, 0 for none.
    """

    node: Array
    event: Array
    operator: Array
    sources: Array


@dataclass(frozen=True)
class FlatWrites:
    """What variables or an array got, one row for each lane's write, in the order of time.

    Parameters
    ----------
    event : array
    lane : array
        The lane in the batch.
    owner : array
        What was written: for variables the number of the frame's function times 2**20 plus the slot, for arrays that of
        the recorded memory.
    cell : array
        The element, counted over all blocks or lanes of an array's memory; 0 for a variable.
    node : array
    raw : uint8 array, shape (writes, 8)
        The value's bytes, filled up with zeros.
    is_parameter : array
        Whether the write hands an argument to a called function.
    is_atomic : array
    """

    event: Array
    lane: Array
    owner: Array
    cell: Array
    node: Array
    raw: Array
    is_parameter: Array
    is_atomic: Array

    @classmethod
    def joined(cls, parts: list[FlatWrites]) -> FlatWrites:
        """Return several as one, as they happened."""
        whole = cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in cls.__annotations__))
        order = np.argsort(whole.event, kind="stable")
        return cls(*(getattr(whole, name)[order] for name in cls.__annotations__))


class FlatTrace:
    """A trace, flattened.

    Parameters
    ----------
    trace : Trace
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._arrays = trace.data.arrays
        self.events = trace.data.arrays["events"]
        self._dtypes = [np.dtype(name) for name in trace.about["dtypes"]]

    def event(self, column: str) -> Array:
        """Return a column of the events."""
        return self.events[:, EVENT.index(column)]

    @cached_property
    def function_of_frame(self) -> Array:
        """The number of each frame's function."""
        frames = self.event("frame")
        functions = np.zeros(int(frames.max()) + 1 if frames.size else 0, np.int64)
        functions[frames] = self.event("function")
        return functions

    @cached_property
    def operations(self) -> FlatOperations:
        """The operations."""
        table = self._arrays["operations"]
        owner, rank, _ = self.lanes(table[:, OPERATION.index("mask")])
        sources = np.zeros((owner.size, 3), np.int64)
        for place in range(3):
            numbers = table[:, OPERATION.index(f"node{place}")]
            has = np.flatnonzero(numbers[owner] >= 0)
            sources[has, place] = self._integers(numbers[owner[has]], rank[has])
        return FlatOperations(
            table[owner, OPERATION.index("first")].astype(np.int64) + rank,
            table[owner, OPERATION.index("event")],
            table[owner, OPERATION.index("operator")],
            sources,
        )

    @cached_property
    def variables(self) -> FlatWrites:
        """The writes to variables."""
        table = self._arrays["registers"]
        owner, rank, lanes = self.lanes(table[:, REGISTER.index("mask")])
        event, frame = table[owner, REGISTER.index("event")], table[owner, REGISTER.index("frame")]
        functions = self.function_of_frame
        known = np.append(functions, np.zeros(max(0, int(frame.max(initial=-1)) + 1 - functions.size), np.int64))
        return FlatWrites(
            np.maximum(event, 0),
            lanes,
            (known[frame] << 20) + table[owner, REGISTER.index("slot")],
            np.zeros(owner.size, np.int64),
            self._integers(table[owner, REGISTER.index("node")], rank),
            self._raw(table[owner, REGISTER.index("value")], rank),
            (event < 0) | (self.event("frame")[event] != frame) if self.events.size else event < 0,
            np.zeros(owner.size, bool),
        )

    def dtype_of_variable(self, owner: int) -> np.dtype[Any]:
        """Return the type of a variable, by its number in `variables`."""
        found: np.dtype[Any] = self._dtypes[self._codes_of_variables[owner] // 2]
        return found

    @cached_property
    def _codes_of_variables(self) -> dict[int, int]:
        table = self._arrays["registers"]
        frames = np.minimum(table[:, REGISTER.index("frame")], self.function_of_frame.size - 1)
        owners = (self.function_of_frame[frames] << 20) + table[:, REGISTER.index("slot")]
        codes = self._arrays["value_codes"][table[:, REGISTER.index("value")]]
        return dict(zip(owners.tolist(), codes.tolist(), strict=True))

    @cached_property
    def arrays(self) -> FlatWrites:
        """The writes to arrays, atomics included."""
        table = self._arrays["accesses"]
        parts = [self._written(table, number) for number in range(len(self.trace.about["memories"]))]
        return FlatWrites.joined([part for part in parts if part is not None] or [_NOTHING])

    def _written(self, table: Array, number: int) -> FlatWrites | None:
        rows = self.trace.write_rows[number]
        if not rows.size:
            return None
        memory, log = self.trace.about["memories"][number], self.trace.log(number)
        size, unit = np.dtype(memory["dtype"]).itemsize, log.unit
        written = np.array([dtype.itemsize for dtype in self._dtypes])[table[rows, ACCESS.index("dtype")]]
        owner, _, lanes = self.lanes(table[rows, ACCESS.index("mask")])
        # A write in the array's own size has so many units; a wider one is several, a narrower one changes a part.
        units = written[owner] // unit
        pieces = np.maximum(written[owner] // size, 1)
        of = np.repeat(np.arange(owner.size), pieces)
        piece, _ = _ranks(pieces)
        first = (np.cumsum(units) - units)[of] + piece * (size // unit)
        place = log.index[first].astype(np.int64) * unit
        raw = np.zeros((of.size, WIDTH), np.uint8)
        if (written >= size).all():
            at = first[:, None] + np.arange(size // unit)
            raw[:, :size] = log.values[at].reshape(of.size, size)
        else:
            _replay(log.content(0), log.index, log.values, place // size, first, units[of], raw[:, :size])
        rows_of = rows[owner[of]]
        return FlatWrites(
            table[rows_of, ACCESS.index("event")],
            lanes[of],
            np.full(of.size, number),
            place // size,
            log.nodes[first].astype(np.int64),
            raw,
            np.zeros(of.size, bool),
            table[rows_of, ACCESS.index("action")] == ACTIONS.index("atomic"),
        )

    @cached_property
    def read_memories(self) -> Array:
        """The numbers of the memories that something was read from before anything was written there."""
        table = self._arrays["accesses"]
        wanted = (table[:, ACCESS.index("action")] == ACTIONS.index("read")) & (table[:, ACCESS.index("write")] == 0)
        return np.unique(table[wanted, ACCESS.index("memory")])

    def lanes(self, masks: Array) -> tuple[Array, Array, Array]:
        """Return, for each lane of each mask: which mask of the given ones, the lane's place in it, and its number."""
        used, which = np.unique(masks, return_inverse=True)
        if not used.size:
            return (np.zeros(0, np.int64),) * 3
        lists = [self.trace.lanes_of_mask(int(mask)) for mask in used]
        sizes = np.array([each.size for each in lists])
        starts = np.cumsum(sizes) - sizes
        rank, owner = _ranks(sizes[which])
        return owner, rank, np.concatenate(lists)[starts[which[owner]] + rank]

    def _integers(self, numbers: Array, rank: Array) -> Array:
        """Return one number of each of some vectors."""
        starts, steps = self._arrays["integer_starts"][numbers], self._arrays["integer_steps"][numbers]
        explicit = steps == EXPLICIT
        found: Array = starts + np.where(explicit, 0, steps) * rank
        found[explicit] = self._arrays["integer_pool"][(starts + rank)[explicit]]
        return found

    def _raw(self, numbers: Array, rank: Array) -> Array:
        """Return the bytes of one value of each of some vectors, filled up with zeros."""
        starts, codes = self._arrays["value_starts"][numbers], self._arrays["value_codes"][numbers]
        sizes = np.array([dtype.itemsize for dtype in self._dtypes] or [1])[codes // 2]
        starts = starts + np.where(codes % 2 == 1, rank * sizes, 0)
        raw = np.zeros((numbers.size, WIDTH), np.uint8)
        for byte in range(int(sizes.max(initial=0))):
            has = np.flatnonzero(sizes > byte)
            raw[has, byte] = self._arrays["value_pool"][starts[has] + byte]
        return raw


_NONE, _NEVER = np.zeros(0, np.int64), np.zeros(0, bool)
_NOTHING = FlatWrites(_NONE, _NONE, _NONE, _NONE, _NONE, np.zeros((0, WIDTH), np.uint8), _NEVER, _NEVER)


def _ranks(counts: Array) -> tuple[Array, Array]:
    """Return 0 .. count - 1 for each of some counts, one after the other, and which count each belongs to."""
    owner = np.repeat(np.arange(counts.size), counts)
    return np.arange(owner.size) - (np.cumsum(counts) - counts)[owner], owner


def _replay(content: Array, index: Array, values: Array, cells: Array, first: Array, units: Array, raw: Array) -> None:
    """Fill in what whole elements held after each of the writes that change parts of them."""
    unit, size = values.shape[1], raw.shape[1]
    for number, (cell, start, count) in enumerate(zip(cells, first, units, strict=True)):
        for entry in range(start, start + min(count, size // unit)):
            content[index[entry] * unit : (index[entry] + 1) * unit] = values[entry]
        raw[number] = content[cell * size : (cell + 1) * size]
