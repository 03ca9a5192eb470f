"""Files that are read some rows at a time, such as Zarr arrays; first messages of servers that are no schedulers."""

from __future__ import annotations

import functools
import io
import json
import os
import shutil
import socket
import struct
import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from gpu.base.errors import EngineUnavailableError
from gpu.distributed.cluster import dask_cluster
from gpu.distributed.cluster.settings import ClusterSettings
from gpu.distributed.data.files import StreamedInput, open_streamed_input
from tests.odd_inputs import ODD_VALUES, mutate_bytes, mutate_values, read_or_none

_TYPES = ("|u1", "<i4", ">u2", "<f4", "<f8", "?", "<c8", "|S3", "|O", "<M8[s]")
_RAW = ("float32:5", "float32:4x5", "uint8:80", "int64:0", "float64:99999999999999", "uint8:2x2x20", "half:9", "", "x")
_CODECS: tuple[Any, ...] = (
    {"id": "pickle", "protocol": 5}, {"id": "gzip", "level": 1}, {"id": "blosc"}, {"id": "zlib"}, {"id": "lz4"},
    {"name": "numcodecs.pickle"}, {"name": "gzip", "configuration": {"level": 1}}, {"name": "vlen-utf8"}, "bytes",
    {"name": "sharding_indexed", "configuration": {"chunk_shape": [1], "codecs": [{"name": "numcodecs.pickle"}]}},
)  # fmt: skip
_READ = 1000
"""Rows that are asked for at most."""
_SERVERS = 0.1
"""Part of the inputs that are messages of a server."""
_FRAME_SIZES = (0, 1, 8, 64, 65536, 65537, 2**20, 564_000_000, 2**31, 2**40, 2**63, 2**64 - 1)


def attack(random: np.random.Generator, folder: Path) -> None:
    """Open an input, and read its first rows, its last ones and one in the middle; or connect to a server."""
    if random.random() < _SERVERS:
        _attack_client(random)
        return
    mark = folder / "ran"
    given, raw = _write_input(random, folder, mark)
    found = read_or_none(lambda: open_streamed_input(str(given), raw))
    if isinstance(found, StreamedInput):
        rows, row = found.shape[0], found.nbytes // max(found.shape[0], 1)
        most = min(_READ, 2**24 // max(row, 1))
        for start in sorted({0, rows // 2, max(rows - most, 0)}):
            stop = min(start + most, rows)
            read = read_or_none(lambda start=start, stop=stop: found.source.read(start, stop))
            if read is not None:
                assert read.shape == (stop - start, *found.shape[1:])
                assert read.dtype == found.dtype
                assert read.dtype.kind in "biuf"
    assert not mark.exists(), "the file's own code ran"


def _attack_client(random: np.random.Generator) -> None:
    """Connect to a server that is no scheduler, and answers with an odd frame."""
    dask_cluster.IDENTIFICATION_TIMEOUT_S = 0.3  # type: ignore[misc]
    sizes = [int(random.choice(np.array(_FRAME_SIZES, np.uint64))) for _ in range(int(random.integers(1, 4)))]
    message = b"".join(struct.pack("Q", size) for size in sizes) + random.bytes(int(random.integers(0, 200)))
    with socket.create_server(("127.0.0.1", 0)) as server:
        clients: list[socket.socket] = []

        def answer() -> None:
            try:
                while True:
                    clients.append(server.accept()[0])
                    clients[-1].sendall(message)
            except OSError:
                return

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        settings = ClusterSettings(scheduler=f"127.0.0.1:{server.getsockname()[1]}")
        refusal = ""
        try:
            with dask_cluster.open_cluster(settings):
                pass
        except EngineUnavailableError as error:
            refusal = error.message
        assert refusal.startswith("No Dask scheduler answers at")
        server.shutdown(socket.SHUT_RDWR)
        thread.join(5)
        for client in clients:
            client.close()


def _write_input(random: np.random.Generator, folder: Path, mark: Path) -> tuple[Path, str]:
    match int(random.integers(6)):
        case 0:
            buffer = io.BytesIO()
            np.save(buffer, np.zeros((4, 5), np.dtype(str(random.choice(_TYPES[:-2])))))
            path = folder / "x.npy"
            path.write_bytes(mutate_bytes(random, buffer.getvalue(), head=128))
            return path, ""
        case 1:
            path = folder / str(random.choice(["x.pgm", "x.ppm"]))
            path.write_bytes(mutate_bytes(random, b"P5\n# a\n10 8\n255\n" + bytes(80), head=18))
            return path, ""
        case 2:
            path = folder / str(random.choice(["x.raw", "x.npy"]))
            path.write_bytes(bytes(80))
            return path, str(random.choice(_RAW))
        case _:
            path = folder / "x.zarr"
            _break_zarr(random, path, mark)
            return path, ""


def _break_zarr(random: np.random.Generator, path: Path, mark: Path) -> None:
    """Make an array and harm its description, its chunks, or what lies in their place."""
    shutil.copytree(_intact_zarr_array(int(random.integers(3))), path)
    described = next(each for each in (path / "zarr.json", path / ".zarray") if each.exists())
    chunks = [
        each for each in path.rglob("*") if each.is_file() and each.name not in ("zarr.json", ".zarray", ".zattrs")
    ]
    for chunk in chunks:
        match int(random.integers(6)):
            case 0:
                chunk.write_bytes(mutate_bytes(random, chunk.read_bytes(), head=32))
            case 1:
                chunk.unlink()
                if hasattr(os, "mkfifo"):
                    os.mkfifo(chunk)
            case 2:
                chunk.unlink()
                chunk.symlink_to("/dev/zero")
            case 3:
                # A pickle that makes a folder, as whoever wrote it may do anything else.
                chunk.write_bytes(b"cos\nmkdir\n(S" + repr(str(mark)).encode() + b"\ntR.")
            case _:
                pass
    match int(random.integers(5)):
        case 0:
            described.write_bytes(mutate_bytes(random, described.read_bytes()))
        case 1 | 2:
            whole = json.loads(described.read_text("utf-8"))
            values = (*ODD_VALUES, *_TYPES, *_CODECS, [_CODECS[0]], [10**15], [10**15, 5])
            described.write_text(json.dumps(mutate_values(random, whole, values)), "utf-8")
        case 3:
            whole = json.loads(described.read_text("utf-8"))
            codec = _CODECS[int(random.integers(len(_CODECS)))]
            if "codecs" in whole:
                whole["codecs"] = [codec, *whole["codecs"]][:: int(random.choice([-1, 1]))]
            else:
                whole[str(random.choice(["compressor", "filters"]))] = codec if random.random() < 0.5 else [codec]
            described.write_text(json.dumps(whole), "utf-8")
        case _:
            pass


_KEPT = TemporaryDirectory()


@functools.cache
def _intact_zarr_array(kind: int) -> Path:
    """Return a folder with a good array: of the format's third version, sharded, of its second."""
    import zarr

    folder = Path(_KEPT.name, f"{kind}.zarr")
    how: dict[str, Any] = ({}, {"shards": (8, 5)}, {"zarr_format": 2})[kind]
    zarr.create_array(str(folder), shape=(20, 5), chunks=(4, 5), dtype="float32", **how)[:] = 1.5
    return folder
