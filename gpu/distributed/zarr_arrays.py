"""Zarr arrays, opened only where reading them can do nothing but give numbers: known codecs, bounded chunks, files."""

from __future__ import annotations

import json
import math
import stat
from collections.abc import Iterable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from gpu.engines.base import Array
from gpu.errors import EngineUnavailableError, InputError
from gpu.files.opening import os_errors, reading

ZARR = ".zarr"
LARGEST_CHUNK = 2**28
"""Bytes of a chunk that is expanded as a whole, whatever is wanted of it."""
_LARGEST_DESCRIPTION = 2**20
_MOST_FILES = 100_000
"""Chunks that are looked at for one part: a description of some bytes can name any number."""
_CODECS = frozenset(("bytes", "transpose", "blosc", "zstd", "gzip", "zlib", "lz4", "crc32c", "shuffle"))
"""Those that rearrange or compress bytes. Others run code of their own: pickle's runs that of who wrote the file."""


def open_zarr(path: str) -> Any:
    """Open an array of numbers in a folder; it is written to only where it is one that is being made.

    Raises
    ------
    InputError
        Where it is none, or would have to be read with what this cannot vouch for.
    EngineUnavailableError
        Where Zarr is not installed.
    """
    name = Path(path).name
    zarr = _library()
    _check_description(path)
    try:
        array = zarr.open_array(path, mode="r+" if name.endswith(".part") else "r")
        kind, chunks, numbers = np.dtype(array.dtype), _chunks(array), math.prod(array.shape)
    except Exception as error:  # what is none fails in a dozen ways
        raise _unreadable(name, str(error)) from None
    if kind.kind not in "biuf":
        raise InputError(f"{name} holds {kind} and no numbers.")
    if numbers >= 2**60:
        raise InputError(f"{name} says that it holds more numbers than any disk.")
    if math.prod(chunks) * kind.itemsize > LARGEST_CHUNK:
        raise InputError(f"{name} has chunks of more than {LARGEST_CHUNK >> 20} MB, which are read as a whole.")
    return array


def create_zarr(path: str, shape: tuple[int, ...], dtype: str, chunk: int) -> None:
    """Make an array of zeros in a folder, `chunk` rows a chunk."""
    _library().create_array(path, shape=shape, chunks=(max(chunk, 1), *shape[1:]), dtype=dtype)


def read_rows(path: str, start: int, stop: int) -> Array:
    """Read some rows.

    Raises
    ------
    InputError
        Where a chunk is damaged or no regular file.
    """
    array = open_zarr(path)
    _check_chunks(path, array, start, stop)
    try:
        return np.ascontiguousarray(array[start:stop])
    except Exception as error:  # each codec has its own
        raise _unreadable(Path(path).name, str(error)) from None


def _library() -> Any:
    try:
        import zarr
    except ImportError as error:
        raise EngineUnavailableError(
            f"Zarr is not installed here: {error}.", advice="`pip install -r requirements-dask.txt` installs it."
        ) from error
    return zarr


def _unreadable(name: str, detail: str) -> InputError:
    return InputError(f"{name} is no Zarr array that can be read.", detail=detail)


def _check_description(path: str) -> None:
    """Raise InputError where an array's description asks for a codec that is not known to be harmless."""
    folder = Path(path)
    with os_errors(folder.name, "read"):
        described = next((each for each in (folder / "zarr.json", folder / ".zarray") if each.exists()), None)
    if described is None:
        raise _unreadable(folder.name, "It has neither zarr.json nor .zarray.")
    with reading(described, _LARGEST_DESCRIPTION) as file:
        text = file.read()
    try:
        description = json.loads(text)
        unknown = sorted(set(_codecs(description)) - _CODECS)
    except (ValueError, LookupError, RecursionError, TypeError, AttributeError) as error:
        raise _unreadable(folder.name, str(error)) from None
    if unknown:
        raise InputError(f"{folder.name} is stored with {unknown[0][:80]!r}, which is not read here.")


def _codecs(description: Mapping[str, Any]) -> Iterable[str]:
    """Return the names of an array's codecs, in either of the format's versions; those of a shard count as its own."""
    for each in (description.get("compressor"), *(description.get("filters") or ())):
        if each is not None:
            yield str(each["id"])
    for each in description.get("codecs") or ():
        inner = each.get("configuration") or {} if isinstance(each, dict) else {}
        if isinstance(each, dict) and each["name"] == "sharding_indexed":
            yield from _codecs({"codecs": [*inner["codecs"], *(inner.get("index_codecs") or ())]})
        else:
            yield str(each["name"] if isinstance(each, dict) else each)


def _chunks(array: Any) -> tuple[int, ...]:
    """Return the shape of what is one file."""
    chunks: tuple[int, ...] = array.shards or array.chunks
    if not all(size >= 1 for size in chunks):
        raise ValueError(f"a chunk of {chunks}")
    return chunks


def _check_chunks(path: str, array: Any, start: int, stop: int) -> None:
    """Raise InputError where a chunk of these rows is a pipe, a device or far larger than what it holds."""
    chunks = _chunks(array)
    largest = 2 * math.prod(chunks) * np.dtype(array.dtype).itemsize + 2**16
    across = [-(-length // size) for length, size in zip(array.shape[1:], chunks[1:], strict=True)]
    first, last = start // chunks[0], -(-stop // chunks[0])
    if (last - first) * math.prod(across) > _MOST_FILES:
        raise InputError(f"{Path(path).name} has more than {_MOST_FILES} chunks where a part of it is read.")
    for place in product(range(first, last), *map(range, across)):
        file = Path(path, array.metadata.encode_chunk_key(place))
        try:
            found = file.stat()
        except OSError:
            continue  # what was never written is the fill value, and what cannot be read is said by who reads it
        if not stat.S_ISREG(found.st_mode) or found.st_size > largest:
            raise InputError(f"{Path(path).name} has a chunk that is none: {file.name}.")
