"""Validation of data read from files: types match their declarations, references are in range, sizes are plausible."""

from __future__ import annotations

import types
from collections.abc import Mapping
from functools import cache
from math import prod
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from gpu.recording.data import FailedAccess, TraceData, TraceMemory
from gpu.recording.packing import UNCOMPRESSED, Array
from gpu.recording.tables import (
    ACCESS,
    ACTIONS,
    BARRIER,
    BATCH,
    CALL,
    EVENT,
    INPUT,
    NO_LANES,
    NO_STATEMENT,
    NOT_A_BRANCH,
    OPERATION,
    POINTER,
    REGISTER,
)

TABLES = {
    "events": EVENT,
    "accesses": ACCESS,
    "registers": REGISTER,
    "pointers": POINTER,
    "operations": OPERATION,
    "barriers": BARRIER,
    "batches": BATCH,
    "calls": CALL,
    "inputs": INPUT,
}

MAX_THREADS = 2**28
"""The limit of threads in a launch: more than can be recorded."""

MAX_THREADS_PER_BLOCK = 1024

MAX_MEMORY_BYTES = 2**31
"""The limit of bytes in an array, for all blocks or threads together."""

# The smallest value of each column if it is not 0: parameters are written before the first event, and negative numbers
# mark missing values, nodes and statements.
_MIN_VALUES = {
    "event": -1,
    "statement": NO_STATEMENT,
    "value": -1,
    "nodes": -1,
    "operands": -1,
    "taken": min(NOT_A_BRANCH, NO_LANES),
}


def validate_trace(data: TraceData) -> None:
    """Raise ValueError if a trace is not a valid recording."""
    _require(matches_type(data, TraceData), "types")
    _check_references(data)
    _check_launches(data)
    _check_masks(data)
    _check_lanes(data)
    _check_nodes(data)
    for memory in data.memories:
        _check_memory(data, memory)


def _require(condition: Any, subject: str) -> None:
    if not condition:
        raise ValueError(subject)


def _check_launches(data: TraceData) -> None:
    _require(data.launches, "no launch")
    for number, launch in enumerate(data.launches):
        _require(launch.number == number and -1 <= launch.parent < number and launch.kernel, "launches")
        _require(len(launch.grid) == len(launch.block) == 3 and min(launch.grid + launch.block) > 0, "extents")
        _require(prod(launch.block) <= MAX_THREADS_PER_BLOCK, "block")
        _require(prod(launch.grid) * launch.lanes_per_block <= MAX_THREADS, "grid")
        _require(-1 <= launch.event <= len(data.events), "launches")
    blocks = np.array([prod(launch.grid) for launch in data.launches])
    batches = data.batches
    _require((batches["blocks"] > 0).all(), "batches")
    ends = batches["first"].astype(np.int64) + batches["blocks"]
    _require((ends <= blocks[batches["launch"]]).all(), "batches")
    for found in data.launch.findings:
        _require(0 <= found.event <= len(data.events), "findings")
        if found.access is not None:
            _check_failed_access(data, found.access)


def _check_failed_access(data: TraceData, access: FailedAccess) -> None:
    lanes = len(access.offsets)
    _require(access.action in ACTIONS and 0 <= access.memory < len(data.memories), "failed access")
    _require(len(access.blocks) == len(access.threads) == lanes > 0 < access.size, "failed access")
    _require(all(abs(offset) < 2**62 for offset in access.offsets), "failed access")
    _require(min(access.blocks) >= 0 <= min(access.threads) and max(access.blocks) < MAX_THREADS, "failed access")
    _require(max(access.threads) < MAX_THREADS_PER_BLOCK, "failed access")


def _check_references(data: TraceData) -> None:
    limits: dict[str, int] = {
        "kind": len(data.kinds),
        "position": len(data.positions),
        "function": len(data.functions),
        "statement": len(data.statements),
        "batch": len(data.batches),
        "launch": len(data.launches),
        "mask": len(data.masks.rows),
        "taken": len(data.masks.rows),
        "event": len(data.events),
        "before": len(data.events) + 1,
        "memory": len(data.memories),
        "dtype": len(data.values.dtypes),
        "operator": len(data.operators),
        "name": len(data.pointer_names),
        "elements": data.integers.starts.size,
        "node": data.integers.starts.size,
        "nodes": data.integers.starts.size,
        "value": data.values.starts.size,
        "operands": data.values.starts.size,
        # The events' first rows in these tables, which may be their end.
        "access": len(data.accesses) + 1,
        "register": len(data.registers) + 1,
    }
    for table, dtype in TABLES.items():
        for column in dtype.names or ():
            values = getattr(data, table)[column]
            least, limit = _MIN_VALUES.get(column, 0), limits.get(column, 2**31)
            if values.size and not (least <= values.min() and values.max() < limit):
                raise ValueError(f"{table}.{column}")
    _require((data.accesses["action"] < len(ACTIONS)).all(), "accesses.action")
    _require((data.accesses["event"] >= 0).all() and (data.operations["event"] >= 0).all(), "event")
    for function in data.functions:
        _require(all(-1 <= statement.position < len(data.positions) for statement in function.statements), "functions")
        _require(all(size > 0 for size in function.pointers.values()), "functions")
        _require(set(function.rounds) <= set(range(len(function.statements))), "functions")
        _require(all(-1 <= position < len(data.positions) for position in function.rounds.values()), "functions")
    frames = len(data.calls) + len(data.batches) + 1
    for framed in (data.events, data.registers, data.pointers):
        _require(framed["frame"].max(initial=0) < max(frames, len(data.events) + 1), "frame")


def _check_masks(data: TraceData) -> None:
    rows, pool = data.masks.rows, data.masks.pool
    start, count, lanes = (rows[name].astype(np.int64) for name in ("start", "count", "lanes"))
    as_bits = rows["bits"] != 0
    size = np.where(as_bits, -(-lanes // 8), 4 * count)
    _require((start >= 0).all() and (count >= 0).all() and (count <= lanes).all(), "masks")
    _require((start + size <= pool.size).all(), "masks")
    for number, (limit, expected) in enumerate(zip(lanes.tolist(), count.tolist(), strict=True)):
        active = data.masks.lanes(number)
        _require(active.size == expected and not (active.size and not 0 <= active[0] <= active[-1] < limit), "masks")
        _require((np.diff(active) > 0).all(), "masks")


def _check_lanes(data: TraceData) -> None:
    """Check that each row's mask is one of its batch, and that each of its vectors has a number for each lane."""
    per_block = np.array([launch.lanes_per_block for launch in data.launches])
    lanes_of_batch = data.batches["blocks"].astype(np.int64) * per_block[data.batches["launch"]]
    events, masks = data.events, data.masks.rows
    lanes_of_event = lanes_of_batch[events["batch"]]
    _require((masks["lanes"][events["mask"]] == lanes_of_event).all(), "events.mask")
    _require((masks["count"][events["mask"]] > 0).all(), "events.mask")
    branches = events["taken"] >= 0
    _require((masks["lanes"][events["taken"][branches]] == lanes_of_event[branches]).all(), "events.taken")
    barriers = data.barriers
    _require((masks["lanes"][barriers["mask"]] == lanes_of_batch[barriers["batch"]]).all(), "barriers.mask")
    for name in ("accesses", "registers", "pointers", "operations"):
        table = getattr(data, name)
        _require((table["event"] < len(events)).all(), name)
        if not len(table):
            continue
        _require((np.diff(table["event"]) >= 0).all(), f"{name}.event")
        lanes = masks["lanes"][table["mask"]]
        # Parameters of a child launch are written after the last event of another batch.
        fits = (
            np.isin(lanes, lanes_of_batch)
            if name in ("registers", "pointers")
            else lanes == lanes_of_event[table["event"]]
        )
        _require(fits.all(), f"{name}.mask")
        counts = masks["count"][table["mask"]].astype(np.int64)
        for column in ("elements", "node"):
            if column in (table.dtype.names or ()):
                _check_integers(data, table[column], counts)
        if "value" in (table.dtype.names or ()):
            _check_values(data, table["value"], counts)
    counts = masks["count"][data.operations["mask"]].astype(np.int64)
    for index in range(3):
        _check_integers(data, data.operations["nodes"][:, index], counts)
        _check_values(data, data.operations["operands"][:, index], counts)
    _require((data.operations["first"] > 0).all() and (data.inputs["first"] > 0).all(), "nodes")
    _require((data.inputs["count"] >= 0).all() and (data.inputs["unit"] > 0).all(), "inputs")


def _check_nodes(data: TraceData) -> None:
    """Check that all nodes are those of operations or of initial elements of memories."""
    counts = data.masks.rows["count"].astype(np.int64)[data.operations["mask"]]
    inputs = data.inputs
    sizes = np.array([0 if memory.initial is None else memory.total_bytes for memory in data.memories])
    _require((inputs["count"].astype(np.int64) * inputs["unit"] <= sizes[inputs["memory"]]).all(), "inputs")
    end = 1 + int(counts.sum()) + int(inputs["count"].sum(dtype=np.int64))
    _require((data.operations["first"].astype(np.int64) + counts <= end).all(), "nodes")
    _require((inputs["first"].astype(np.int64) + inputs["count"] <= end).all(), "nodes")


def _check_integers(data: TraceData, numbers: Array, counts: Array) -> None:
    has = numbers >= 0
    starts = data.integers.starts[numbers[has]]
    explicit = data.integers.steps[numbers[has]] == UNCOMPRESSED
    _require((starts[explicit] >= 0).all(), "integers")
    _require((starts[explicit] + counts[has][explicit] <= data.integers.pool.size).all(), "integers")


def _check_values(data: TraceData, numbers: Array, counts: Array) -> None:
    has = numbers >= 0
    starts, codes = data.values.starts[numbers[has]], data.values.codes[numbers[has]]
    _require((codes >= 0).all() and (codes // 2 < len(data.values.dtypes)).all(), "values")
    size = data.values.sizes[codes // 2] * np.where(codes % 2 == 1, counts[has], 1)
    _require((starts >= 0).all() and (starts + size <= data.values.pool.size).all(), "values")
    _require(all(dtype.kind in "biuf" and dtype.itemsize <= 8 for dtype in data.values.dtypes), "values")


def _check_memory(data: TraceData, memory: TraceMemory) -> None:
    sizes = (memory.size, memory.blocks, memory.stride, memory.lanes, memory.total_bytes)
    _require(all(0 <= size <= MAX_MEMORY_BYTES for size in sizes) and memory.blocks > 0 and memory.unit > 0, "memory")
    _require(memory.space in ("global", "constant", "shared", "local") and 0 <= memory.fill < 256, "memory")
    _require(-1 <= memory.batch < len(data.batches) and memory.base >= 0, "memory")
    _require((memory.batch >= 0) == (memory.space in ("shared", "local")), "memory")
    _require(memory.dtype.kind in "biuf" and memory.dtype.itemsize <= 8, "memory")
    _require(memory.initial is None or memory.initial.size == memory.total_bytes, "memory")
    blocks, lanes = 1, 0
    if memory.batch >= 0:
        batch = data.batches[memory.batch]
        if memory.space == "shared":
            blocks = int(batch["blocks"])
        else:
            lanes = int(batch["blocks"]) * data.launches[batch["launch"]].lanes_per_block
    _require(memory.blocks == blocks and memory.lanes == lanes, "memory")
    if memory.blocks > 1:
        _require(memory.stride >= memory.size, "memory")
    _require(memory.index.size == memory.nodes.size == len(memory.values), "memory")
    _require((memory.index >= 0).all() and (memory.index < max(memory.total_bytes // memory.unit, 1)).all(), "memory")
    _require((memory.nodes >= 0).all() and (np.diff(memory.borders) >= 0).all(), "memory")
    _require((memory.borders >= 0).all() and (memory.borders <= memory.index.size).all(), "memory")


def matches_type(value: object, kind: Any) -> bool:
    """Return whether a value and all its parts have a type: plain types, data classes, tuples, mappings."""
    if kind is Any:
        return isinstance(value, int | float | str | list | None)
    origin, arguments = get_origin(kind), get_args(kind)
    # An alias by a `type` statement, such as NumPy's NDArray since Python 3.12, is not a class; its value is.
    if hasattr(kind if origin is None else origin, "__value__"):
        return matches_type(value, (kind if origin is None else origin).__value__)
    if origin in (Union, types.UnionType):
        return any(matches_type(value, each) for each in arguments)
    if origin is tuple and arguments[1:] == (...,):
        return isinstance(value, tuple) and all(matches_type(each, arguments[0]) for each in value)
    if origin in (dict, Mapping):
        return isinstance(value, dict) and all(
            matches_type(key, arguments[0]) and matches_type(each, arguments[1]) for key, each in value.items()
        )
    if origin is not None:
        return isinstance(value, origin)
    if kind in (int, float):  # a bool does not count as a number
        return type(value) is kind or (kind is float and type(value) is int)
    if not isinstance(value, kind):
        return False
    return isinstance(value, np.dtype | np.ndarray) or all(
        matches_type(getattr(value, name), each) for name, each in _field_types(kind) if not name.startswith("_")
    )


@cache
def _field_types(kind: type) -> tuple[tuple[str, Any], ...]:
    is_record = hasattr(kind, "__dataclass_fields__") or hasattr(kind, "_fields")
    return tuple(get_type_hints(kind).items()) if is_record else ()
