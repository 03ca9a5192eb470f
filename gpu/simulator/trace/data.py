"""What a recording is when it is over: arrays and a description, which one file holds."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from gpu.errors import InputError
from gpu.simulator.trace.functions import describe
from gpu.simulator.trace.packing import Array, Growing
from gpu.simulator.trace.recorder import ACCESS, BARRIER, EVENT, OPERATION, POINTER, REGISTER, Recorder

VERSION = 4

_TABLES = {
    "events": EVENT,
    "accesses": ACCESS,
    "registers": REGISTER,
    "operations": OPERATION,
    "barriers": BARRIER,
    "pointers": POINTER,
    "masks": ("",) * 4,
}
_VECTORS = {
    "integer_starts": "int64",
    "integer_steps": "int32",
    "integer_pool": "int32",
    "value_starts": "int64",
    "value_codes": "int32",
    "value_pool": "uint8",
    "mask_pool": "uint8",
    "initial": "uint8",
    "log_index": "int32",
    "log_nodes": "int32",
    "log_values": "uint8",
    "log_borders": "int32",
}


@dataclass(frozen=True)
class TraceData:
    """The arrays of a trace, by name, and everything else in `about`."""

    about: dict[str, Any]
    arrays: dict[str, Array]

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays."""
        return sum(each.nbytes for each in self.arrays.values())


def gather(recorder: Recorder, about: dict[str, Any]) -> TraceData:
    """Return what a recorder has seen; `about` is what the launch knows of itself."""
    initial, index, nodes = Growing(np.uint8), Growing(np.int32), Growing(np.int32)
    values, borders = Growing(np.uint8), Growing(np.int32)
    memories = []
    for memory in recorder.memories:
        memories.append(
            {
                "name": memory.name,
                "space": memory.space,
                "size": memory.size,
                "dtype": memory.dtype.name if memory.dtype is not None else "uint8",
                "blocks": memory.blocks,
                "stride": memory.stride,
                "lanes": memory.lanes,
                "batch": memory.batch,
                "unit": memory.unit,
                "base": memory.base,
                "fill": memory.fill if memory.initial is None else None,
                "initial": initial.add(memory.initial) if memory.initial is not None else 0,
                "log": index.add(memory.index.array()),
                "written": memory.index.size,
                "values": values.add(memory.values.array()),
                "border": borders.add(np.array(memory.borders, np.int32)),
                "writes": memory.writes,
            }
        )
        nodes.add(memory.nodes.array())
    arrays = {
        "events": recorder.events.array(),
        "accesses": recorder.accesses.array(),
        "registers": recorder.registers.array(),
        "operations": recorder.operations.array(),
        "barriers": recorder.barriers.array(),
        "pointers": recorder.pointers.array(),
        "masks": recorder.masks.rows.array(),
        "integer_starts": np.array(recorder.integers.starts, np.int64),
        "integer_steps": np.array(recorder.integers.steps, np.int32),
        "integer_pool": recorder.integers.pool.array().copy(),
        "value_starts": np.array(recorder.values.starts, np.int64),
        "value_codes": np.array(recorder.values.codes, np.int32),
        "value_pool": recorder.values.pool.array().copy(),
        "mask_pool": recorder.masks.pool.array().copy(),
        "initial": initial.array().copy(),
        "log_index": index.array().copy(),
        "log_nodes": nodes.array().copy(),
        "log_values": values.array().copy(),
        "log_borders": borders.array().copy(),
    }
    described = {
        "version": VERSION,
        **about,
        "stopped": recorder.stopped,
        "lane_events": recorder.lane_events,
        "batches": recorder.batches,
        "launches": recorder.launches,
        "kinds": recorder.kinds.things,
        "operators": recorder.operators.things,
        "pointer_names": recorder.pointer_names.things,
        "positions": [(place.file, place.line, place.column) for place in recorder.positions.things],
        "dtypes": recorder.values.dtypes,
        "functions": [describe(function, recorder.positions.numbers) for function in recorder.functions],
        "memories": memories,
        "inputs": recorder.inputs,
        "callers": recorder.callers,
    }
    return TraceData(described, arrays)


def save(data: TraceData, path: str | Path | IO[bytes]) -> None:
    """Write one file: a zip archive of manifest.json and arrays.npz."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        write(data, archive)


def write(data: TraceData, archive: zipfile.ZipFile, folder: str = "") -> None:
    """Add a trace to an archive, its members in a folder of their own, such as "0/"."""
    arrays = io.BytesIO()
    np.savez(arrays, allow_pickle=False, **data.arrays)
    archive.writestr(f"{folder}manifest.json", json.dumps(data.about))
    archive.writestr(f"{folder}arrays.npz", arrays.getvalue())


def load(path: str | Path) -> TraceData:
    """Read what `save` wrote.

    Raises
    ------
    InputError
        The file cannot be read, is no trace, or was written by another version.
    """
    with reading(path, "trace"), zipfile.ZipFile(path) as archive:
        return read(archive, path)


def read(archive: zipfile.ZipFile, path: str | Path, folder: str = "") -> TraceData:
    """Read what `write` added to the archive of that path; within `reading`, which says what is wrong with it."""
    about = json.loads(archive.read(f"{folder}manifest.json"))
    if about["version"] != VERSION:
        raise InputError(f"{path} is a trace of version {about['version']}; this program reads version {VERSION}.")
    with np.load(io.BytesIO(archive.read(f"{folder}arrays.npz")), allow_pickle=False) as members:
        arrays = {name: members[name] for name in (*_TABLES, *_VECTORS)}
    data = TraceData(about, arrays)
    _check(data)
    return data


@contextmanager
def reading(path: str | Path, what: str) -> Iterator[None]:
    """Turn what is raised by a file that is damaged, or none of its kind, into an InputError that says so."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error
    except (zipfile.BadZipFile, zlib.error, LookupError, ValueError, TypeError, EOFError, AttributeError) as error:
        raise InputError(
            f"{path} is not a {what}, or is damaged.",
            advice="Record it again: Export in the Step tab, or simulate --trace.",
        ) from error


def _check(data: TraceData) -> None:
    """Make sure that no number in a table points outside of what it points into."""
    for name, columns in _TABLES.items():
        table = data.arrays[name]
        if table.dtype != np.int32 or table.ndim != 2 or table.shape[1] != len(columns):
            raise ValueError(name)
    for name, dtype in _VECTORS.items():
        if data.arrays[name].dtype != dtype or data.arrays[name].ndim != 1:
            raise ValueError(name)
    about = data.about
    limits: dict[str, int] = {
        "kind": len(about["kinds"]),
        "position": len(about["positions"]),
        "function": len(about["functions"]),
        "batch": len(about["batches"]),
        "mask": len(data.arrays["masks"]),
        "event": len(data.arrays["events"]),
        "before": len(data.arrays["events"]) + 1,
        "memory": len(about["memories"]),
        "dtype": len(about["dtypes"]),
        "operator": len(about["operators"]),
        "name": len(about["pointer_names"]),
        "elements": data.arrays["integer_starts"].size,
        "value": data.arrays["value_starts"].size,
    }
    for name, columns in _TABLES.items():
        for number, column in enumerate(columns):
            found = data.arrays[name][:, number]
            if found.size and found.max() >= limits.get(column, 2**31):
                raise ValueError(f"{name}.{column}")
