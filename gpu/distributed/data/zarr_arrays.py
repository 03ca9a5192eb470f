"""Zarr arrays, read safely from untrusted folders: known codecs, bounded chunks, regular files only."""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Iterable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from gpu.base.errors import EngineUnavailableError, InputError
from gpu.base.installation import format_install_command
from gpu.engines.base import Array
from gpu.files.file_access import convert_os_errors, open_for_reading

ZARR = ".zarr"
MAX_CHUNK_BYTES = 2**28
"""Bytes of the largest chunk; a chunk is decompressed completely even if only a part of it is needed."""
_MAX_METADATA_BYTES = 2**20
_MAX_FILES = 100_000
"""Most chunks that a part may span: a description of a few bytes can declare any number."""
_FREE_BYTES = 2**30
"""Bytes that an array may declare however little it stores."""
_MAX_DECLARED_PER_STORED = 16
"""Most bytes that a larger array may declare per byte of its stored chunks; the rest are the fill value."""
_SAFE_CODECS = frozenset(("bytes", "transpose", "blosc", "zstd", "gzip", "zlib", "lz4", "crc32c", "shuffle"))
"""Codecs that rearrange or compress bytes. Others can execute code: pickle's executes code from the file."""


def open_zarr(path: str) -> Any:
    """Open an array of numbers in a folder; writable only if it is an unfinished output.

    Raises
    ------
    InputError
        If it is not a Zarr array, or uses codecs that are not known to be safe.
    EngineUnavailableError
        If Zarr is not installed.
    """
    name = Path(path).name
    zarr = _import_zarr()
    _check_metadata(path)
    try:
        array = zarr.open_array(path, mode="r+" if name.endswith(".part") else "r")
        kind, chunks, numbers = np.dtype(array.dtype), _find_chunk_shape(array), math.prod(array.shape)
    except Exception as error:  # invalid arrays raise many types of exceptions
        raise _unreadable_error(name, str(error)) from None
    if kind.kind not in "biuf":
        raise InputError(f"{name} contains {kind}, not numbers.")
    if numbers >= 2**60:
        raise InputError(f"{name} declares more elements than any disk can hold.")
    if math.prod(chunks) * kind.itemsize > MAX_CHUNK_BYTES:
        raise InputError(f"{name} has chunks of more than {MAX_CHUNK_BYTES >> 20} MB; each is read as a whole.")
    return array


def check_declared_size(path: str, array: Any) -> None:
    """Raise InputError if an array declares far more than it stores: a few bytes would cause hours of work.

    Parameters
    ----------
    path : str
        The array's folder.
    array : zarr.Array
        The array, from `open_zarr`.
    """
    item, chunks = np.dtype(array.dtype).itemsize, _find_chunk_shape(array)
    declared, chunk = math.prod(array.shape) * item, math.prod(chunks) * item
    required = -(-declared // (_MAX_DECLARED_PER_STORED * chunk)) if declared > _FREE_BYTES else 0
    stored = 0
    # Every stored chunk is a file below the folder, in each encoding of the chunks' names.
    for _, _, names in os.walk(path) if required else ():
        stored += sum(not each.startswith((".z", "zarr.json")) for each in names)
        if stored >= required:
            return
    if stored < required:
        total = math.prod(-(-length // size) for length, size in zip(array.shape, chunks, strict=True))
        raise InputError(
            f"{Path(path).name} declares {declared / 1e9:,.0f} GB, but stores {stored:,} of {total:,} chunks.",
            advice=f"Above 1 GB, at least 1 of {_MAX_DECLARED_PER_STORED} chunks must be stored.",
        )


def create_zarr(path: str, shape: tuple[int, ...], dtype: str, chunk: int) -> None:
    """Create an array of zeros in a folder.

    Parameters
    ----------
    path : str
        The folder, which must not contain an array.
    shape : tuple of int
        The shape of the array.
    dtype : str
        The type of the elements, such as "float32".
    chunk : int
        Rows per chunk; a chunk contains complete rows.

    Raises
    ------
    EngineUnavailableError
        If Zarr is not installed.
    """
    _import_zarr().create_array(path, shape=shape, chunks=(max(chunk, 1), *shape[1:]), dtype=dtype)


def read_rows(path: str, start: int, stop: int) -> Array:
    """Read rows [start, stop).

    Raises
    ------
    InputError
        If a chunk is damaged or not a regular file.
    """
    array = open_zarr(path)
    _check_chunks(path, array, start, stop)
    try:
        return np.ascontiguousarray(array[start:stop])
    except Exception as error:  # each codec raises its own types of exceptions
        raise _unreadable_error(Path(path).name, str(error)) from None


def _import_zarr() -> Any:
    try:
        import zarr
    except ImportError as error:
        raise EngineUnavailableError(
            f"Zarr is not installed: {error}.", advice=f"Install it by {format_install_command('dask')}."
        ) from error
    return zarr


def _unreadable_error(name: str, detail: str) -> InputError:
    return InputError(f"{name} is not a readable Zarr array.", detail=detail)


def _check_metadata(path: str) -> None:
    """Raise InputError if an array's metadata names a codec that is not known to be safe."""
    folder = Path(path)
    with convert_os_errors(folder.name, "read"):
        metadata_file = next((each for each in (folder / "zarr.json", folder / ".zarray") if each.exists()), None)
    if metadata_file is None:
        raise _unreadable_error(folder.name, "It has neither zarr.json nor .zarray.")
    with open_for_reading(metadata_file, _MAX_METADATA_BYTES) as file:
        text = file.read()
    try:
        description = json.loads(text)
        unknown = sorted(set(_list_codecs(description)) - _SAFE_CODECS)
    except (ValueError, LookupError, RecursionError, TypeError, AttributeError) as error:
        raise _unreadable_error(folder.name, str(error)) from None
    if unknown:
        raise InputError(f"{folder.name} uses the codec {unknown[0][:80]!r}, which is not supported.")


def _list_codecs(description: Mapping[str, Any]) -> Iterable[str]:
    """Yield the names of an array's codecs, in both versions of the format, including those inside shards."""
    for each in (description.get("compressor"), *(description.get("filters") or ())):
        if each is not None:
            yield str(each["id"])
    for each in description.get("codecs") or ():
        inner = each.get("configuration") or {} if isinstance(each, dict) else {}
        if isinstance(each, dict) and each["name"] == "sharding_indexed":
            yield from _list_codecs({"codecs": [*inner["codecs"], *(inner.get("index_codecs") or ())]})
        else:
            yield str(each["name"] if isinstance(each, dict) else each)


def _find_chunk_shape(array: Any) -> tuple[int, ...]:
    """Return the shape of the part that is stored as one file."""
    chunks: tuple[int, ...] = array.shards or array.chunks
    if not all(size >= 1 for size in chunks):
        raise ValueError(f"a chunk of {chunks}")
    return chunks


def _check_chunks(path: str, array: Any, start: int, stop: int) -> None:
    """Raise InputError if a chunk of these rows is not a regular file or is far larger than its content."""
    chunks = _find_chunk_shape(array)
    largest = 2 * math.prod(chunks) * np.dtype(array.dtype).itemsize + 2**16
    across = [-(-length // size) for length, size in zip(array.shape[1:], chunks[1:], strict=True)]
    first, last = start // chunks[0], -(-stop // chunks[0])
    if (last - first) * math.prod(across) > _MAX_FILES:
        raise InputError(f"{Path(path).name}: one read spans more than {_MAX_FILES} chunks.")
    for chunk_index in product(range(first, last), *map(range, across)):
        file = Path(path, array.metadata.encode_chunk_key(chunk_index))
        try:
            status = file.stat()
        except OSError:
            continue  # a missing chunk has the fill value; one that cannot be read is reported when it is read
        if not stat.S_ISREG(status.st_mode) or status.st_size > largest:
            raise InputError(f"{Path(path).name} has an invalid chunk: {file.name}.")
