"""Trace files: a zip archive with the concatenated arrays, and a JSON manifest with everything else."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike

from gpu.base.errors import InputError, SourcePosition
from gpu.base.findings import Finding
from gpu.files.file_access import read_bytes
from gpu.recording.data import FailedAccess, LaunchRecord, TraceData, TraceFinding, TraceLaunch, TraceMemory
from gpu.recording.packing import Array, PackedIntegers, PackedMasks, PackedValues
from gpu.recording.statements import Statement, TraceFunction, pack_statement, unpack_statement
from gpu.recording.tables import MASK
from gpu.recording.validation import TABLES, validate_trace

VERSION = 7

MAX_BYTES = 2**30
"""The largest file that is read, and the largest total size of the arrays in it, in bytes."""

MAX_MANIFEST_BYTES = 2**25

_MANIFEST, _BYTES = "manifest.json", "arrays.bin"

# In file order: the widest types come first, so that all arrays are aligned. The arrays of all memories are joined.
_ARRAYS: dict[str, DTypeLike] = {
    "integer_starts": np.int64,
    "value_starts": np.int64,
    **TABLES,
    "masks": MASK,
    "integer_steps": np.int32,
    "integer_pool": np.int32,
    "value_codes": np.int32,
    "written_units": np.int32,
    "written_nodes": np.int32,
    "written_borders": np.int32,
    "value_pool": np.uint8,
    "mask_pool": np.uint8,
    "written_values": np.uint8,
    "initial": np.uint8,
}


def save_trace(data: TraceData, path: str | Path | IO[bytes]) -> None:
    """Save a trace to a file."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        write_trace(data, archive)


def write_trace(data: TraceData, archive: zipfile.ZipFile, folder: str = "") -> None:
    """Add a trace to an archive, in a folder such as "0/"."""
    arrays = collect_arrays(data)
    manifest = {
        "version": VERSION,
        **_build_manifest(data),
        "rows": {name: len(array) for name, array in arrays.items()},
    }
    archive.writestr(f"{folder}{_MANIFEST}", json.dumps(manifest))
    archive.writestr(f"{folder}{_BYTES}", b"".join(arrays[name].tobytes() for name in _ARRAYS))


def load_trace(path: str | Path) -> TraceData:
    """Load a trace from a file written by `save_trace`.

    Raises
    ------
    InputError
        The file cannot be read, is not a trace, or was written by another version.
    """
    with convert_read_errors(path, "trace"), zipfile.ZipFile(io.BytesIO(read_bytes(path, MAX_BYTES))) as archive:
        return read_trace(archive, path)


def read_trace(archive: zipfile.ZipFile, path: str | Path, folder: str = "") -> TraceData:
    """Read a trace that `write_trace` added to an archive; call it within `convert_read_errors`."""
    manifest = json.loads(read_member(archive, f"{folder}{_MANIFEST}", MAX_MANIFEST_BYTES))
    check_version(manifest["version"], VERSION, path, "trace")
    arrays = _unpack_arrays(read_member(archive, f"{folder}{_BYTES}", MAX_BYTES), manifest["rows"])
    data = _build_data(manifest, arrays)
    validate_trace(data)
    return data


def check_version(version: object, supported_version: int, path: str | Path, file_kind: str) -> None:
    """Check the version of a file.

    Parameters
    ----------
    version : object
        The version in the file, of any type.
    supported_version : int
        The version that this program reads.
    path : str or Path
        The file, for the message.
    file_kind : str
        The kind of file for the message, such as "trace".

    Raises
    ------
    InputError
        The file was written by another version.
    ValueError
        The version is not a whole number from 1 to 999.
    """
    if type(version) is not int or not 0 < version < 1000:
        raise ValueError("invalid version")
    if version != supported_version:
        raise InputError(
            f"{path} is a {file_kind} of version {version}; this program reads version {supported_version}."
        )


def read_member(archive: zipfile.ZipFile, name: str, max_bytes: int) -> bytes:
    """Return the content of an archive's member, after testing its declared size."""
    about = archive.getinfo(name)
    if about.file_size > max_bytes or about.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{name} has {about.file_size} bytes")
    return archive.read(about)


@contextmanager
def convert_read_errors(path: str | Path, file_kind: str) -> Iterator[None]:
    """Convert errors from an unreadable or damaged file to an InputError; `file_kind` is the kind of file."""
    try:
        yield
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error
    except MemoryError as error:
        raise InputError(
            f"{path} needs more memory than is available.", advice="Record a smaller input, or fewer threads."
        ) from error
    except _DAMAGE_ERRORS as error:
        raise build_damage_error(path, file_kind) from error


_DAMAGE_ERRORS = (
    zipfile.BadZipFile, zlib.error, LookupError, ValueError, TypeError, EOFError, AttributeError, ArithmeticError,
    AssertionError, RuntimeError, Warning,
)  # fmt: skip
"""The exceptions that a damaged file can raise; RuntimeError comes from endless recursion or an encrypted archive."""


def build_damage_error(path: str | Path, file_kind: str) -> InputError:
    """Return the error for a file that is damaged or of another kind."""
    return InputError(
        f"{path} is not a {file_kind}, or is damaged.",
        advice="Record it again: Export in the Step tab, or simulate --trace.",
    )


def collect_arrays(data: TraceData) -> dict[str, Array]:
    """Return all arrays of a trace, by their names in the file."""
    memories = data.memories
    initial = [memory.initial for memory in memories if memory.initial is not None]
    return {
        **{name: getattr(data, name) for name in TABLES},
        "integer_starts": data.integers.starts,
        "integer_steps": data.integers.steps,
        "integer_pool": data.integers.pool,
        "value_starts": data.values.starts,
        "value_codes": data.values.codes,
        "value_pool": data.values.pool,
        "masks": data.masks.rows,
        "mask_pool": data.masks.pool,
        "initial": np.concatenate([np.empty(0, np.uint8), *initial]),
        "written_units": np.concatenate([np.empty(0, np.int32), *(memory.index for memory in memories)]),
        "written_nodes": np.concatenate([np.empty(0, np.int32), *(memory.nodes for memory in memories)]),
        "written_values": np.concatenate([np.empty(0, np.uint8), *(memory.values.ravel() for memory in memories)]),
        "written_borders": np.concatenate([np.empty(0, np.int32), *(memory.borders for memory in memories)]),
    }


def _unpack_arrays(raw: bytes, rows: Mapping[str, int]) -> dict[str, Array]:
    arrays, start = {}, 0
    for name, dtype in _ARRAYS.items():
        arrays[name] = np.frombuffer(raw, dtype, rows[name], start)
        start += arrays[name].nbytes
    if start != len(raw):
        raise ValueError("more bytes than the arrays have")
    return arrays


def _build_manifest(data: TraceData) -> dict[str, Any]:
    return {
        "launch": {**vars(data.launch), "findings": [asdict(found) for found in data.launch.findings]},
        "stopped": data.stop_reason,
        "lane_events": data.lane_events,
        "launches": [vars(launch) for launch in data.launches],
        "functions": [vars(function) for function in data.functions],
        "statements": [pack_statement(statement) for statement in data.statements],
        "memories": [_memory_entry(memory) for memory in data.memories],
        "positions": [(position.file, position.line, position.column) for position in data.positions],
        "kinds": data.kinds,
        "operators": data.operators,
        "pointer_names": data.pointer_names,
        "dtypes": [dtype.name for dtype in data.values.dtypes],
    }


def _build_data(manifest: Mapping[str, Any], arrays: Mapping[str, Array]) -> TraceData:
    return TraceData(
        _launch_record(manifest["launch"]),
        manifest["stopped"],
        manifest["lane_events"],
        tuple(_build_launch(each) for each in manifest["launches"]),
        tuple(_build_function(each) for each in manifest["functions"]),
        tuple(map(unpack_statement, manifest["statements"])),
        _memories(manifest["memories"], arrays),
        tuple(SourcePosition(*position) for position in manifest["positions"]),
        tuple(manifest["kinds"]),
        tuple(manifest["operators"]),
        tuple(manifest["pointer_names"]),
        **{name: arrays[name] for name in TABLES},
        integers=PackedIntegers(arrays["integer_starts"], arrays["integer_steps"], arrays["integer_pool"]),
        values=PackedValues(
            arrays["value_starts"],
            arrays["value_codes"],
            arrays["value_pool"],
            tuple(map(np.dtype, manifest["dtypes"])),
        ),
        masks=PackedMasks(arrays["masks"], arrays["mask_pool"]),
    )


def _launch_record(entry: dict[str, Any]) -> LaunchRecord:
    return LaunchRecord(**entry | {"findings": tuple(_build_finding(**each) for each in entry["findings"])})


def _build_finding(event: int, finding: dict[str, Any], access: dict[str, Any] | None) -> TraceFinding:
    positions = tuple(SourcePosition(**position) for position in finding["positions"])
    return TraceFinding(
        event,
        Finding(**finding | {"positions": positions, "threads": tuple(finding["threads"])}),
        None if access is None else _build_failed_access(access),
    )


def _build_failed_access(entry: dict[str, Any]) -> FailedAccess:
    return FailedAccess(**entry | {name: tuple(entry[name]) for name in ("offsets", "blocks", "threads")})


def _build_launch(entry: dict[str, Any]) -> TraceLaunch:
    return TraceLaunch(**entry | {"grid": tuple(entry["grid"]), "block": tuple(entry["block"])})


def _build_function(entry: dict[str, Any]) -> TraceFunction:
    return TraceFunction(
        entry["name"],
        {int(slot): name for slot, name in entry["variables"].items()},
        {int(slot): size for slot, size in entry["pointers"].items()},
        tuple(Statement(position, tuple(loops)) for position, loops in entry["statements"]),
        {int(loop): position for loop, position in entry["rounds"].items()},
    )


_MEMORY_FIELDS = ("name", "space", "size", "blocks", "stride", "lanes", "batch", "unit", "is_accessed", "base", "fill")


def _memory_entry(memory: TraceMemory) -> dict[str, Any]:
    return {
        **{name: getattr(memory, name) for name in _MEMORY_FIELDS},
        "dtype": memory.dtype.name,
        "given": memory.initial is not None,
        "units": memory.index.size,
        "writes": memory.borders.size,
    }


def _memories(entries: list[dict[str, Any]], arrays: Mapping[str, Array]) -> tuple[TraceMemory, ...]:
    counts = {
        "initial": [entry["size"] if entry["given"] else 0 for entry in entries],
        "written_units": [entry["units"] for entry in entries],
        "written_nodes": [entry["units"] for entry in entries],
        "written_values": [entry["units"] * entry["unit"] for entry in entries],
        "written_borders": [entry["writes"] for entry in entries],
    }
    parts = {name: _split(arrays[name], sizes) for name, sizes in counts.items()}
    return tuple(
        TraceMemory(
            **{name: entry[name] for name in _MEMORY_FIELDS},
            dtype=np.dtype(entry["dtype"]),
            initial=parts["initial"][number] if entry["given"] else None,
            index=parts["written_units"][number],
            nodes=parts["written_nodes"][number],
            values=parts["written_values"][number].reshape(-1, entry["unit"]),
            borders=parts["written_borders"][number],
        )
        for number, entry in enumerate(entries)
    )


def _split(joined: Array, sizes: list[int]) -> list[Array]:
    borders = np.cumsum([0, *sizes]).tolist()
    if borders[-1] != joined.size:
        raise ValueError("array sizes do not match the memories")
    return [joined[start:end] for start, end in pairwise(borders)]
