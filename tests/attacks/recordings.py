"""Recordings that mean harm or are just broken."""

from __future__ import annotations

import contextlib
import io
import json
import time
import zipfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from gpu.base.errors import InputError
from gpu.stepping.inspection import inspect
from tests.gpu.stepping.recordings import record

MOST_S = 10
"""Seconds that an answer may take."""

_MOST_BYTES = 2**30

_SHARED = """
__device__ int twice(int x) { int y = x * 2; return y; }
__global__ void k(const int *in, int *out, int n) {
    __shared__ int s[64];
    int mine[2];
    s[threadIdx.x] = twice(in[threadIdx.x]);
    __syncthreads();
    for (int i = 0; i < n; i++) {
        mine[i % 2] = s[(threadIdx.x + i) % 64];
        if (threadIdx.x % 2) out[blockIdx.x * 64 + threadIdx.x] += mine[i % 2];
    }
    atomicAdd(&out[0], 1);
}
"""
_FLOATS = """
__global__ void k(const float *in, float *out, int n) {
    float4 v = reinterpret_cast<const float4 *>(in)[threadIdx.x];
    const float *p = in + threadIdx.x;
    out[threadIdx.x] = sqrtf(v.x) + __shfl_xor_sync(0xffffffff, v.y, 1) * p[0];
    if (n > 4) out[threadIdx.x] = out[63 - threadIdx.x];
}
"""
_ODD = (
    -(2**31), -2, -1, 0, 1, 2, 3, 31, 32, 33, 255, 1024, 2**16, 10**6, 10**9, 2**31 - 1,
)  # fmt: skip
_ODD_JSON: tuple[Any, ...] = (
    *_ODD, 2**31, 2**63, 10**40, 1.5, float("nan"), float("inf"), None, True, "", "x", "int32", "object", "S8",
    "M8[us]", [], {}, [[]], [1, 2], {"0": 0}, [[], []] * 500,
)  # fmt: skip


@cache
def list_valid_recordings() -> tuple[bytes, ...]:
    """Return recordings as they are saved: of two launches with calls, loops and atomics, and of one with a race."""

    def launch_two_kernels(engine: Any, module: Any) -> None:
        given, out = engine.upload(np.arange(64, dtype=np.int32)), engine.allocate((128,), np.int32)
        engine.fill(out, 0)
        engine.launch(module.kernel("k"), (2, 1, 1), (64, 1, 1), given, out, np.int32(3))
        engine.launch(module.kernel("k"), (1, 1, 1), (40, 1, 1), given, out, np.int32(2))

    def launch_racy_kernel(engine: Any, module: Any) -> None:
        given, out = engine.upload(np.arange(256, dtype=np.float32)), engine.allocate((64,), np.float32)
        engine.launch(module.kernel("k"), (1, 1, 1), (64, 1, 1), given, out, np.int32(9))

    found = []
    for made in (record(_SHARED, launch_two_kernels), record(_FLOATS, launch_racy_kernel, schedule="shuffle:1")):
        file = io.BytesIO()
        made.save(file)
        found.append(file.getvalue())
    return tuple(found)


def attack(random: np.random.Generator, folder: Path) -> None:
    """Inspect an honest recording after something in it was changed; `folder` is not needed."""
    data = list_valid_recordings()[int(random.integers(len(list_valid_recordings())))]
    changes: tuple[Callable[[np.random.Generator, bytes], bytes], ...] = (
        _mutate_bytes,
        _truncate,
        _mutate_numbers,
        _mutate_numbers,
        _mutate_manifest,
        _mutate_manifest,
    )
    data = changes[int(random.integers(len(changes)))](random, data)
    check_answer(lambda: inspect(data, "a.lockstep"))


def check_answer(ask: Callable[[], object]) -> None:
    """Raise AssertionError where a reader neither returns nor says in a sentence why not, within bounds."""
    start = time.process_time()
    sentence = "."
    with _limit_memory():
        try:
            ask()
        except InputError as error:
            sentence = error.message
        except Exception as error:
            raise AssertionError(f"{type(error).__name__} instead of a sentence") from error
    assert sentence.endswith("."), sentence
    assert "\n" not in sentence, sentence
    assert time.process_time() - start < MOST_S


@contextlib.contextmanager
def _limit_memory() -> Iterator[None]:
    """Let this process take at most 1 GB more, where the system can see to it."""
    try:
        import resource
    except ImportError:
        yield
        return
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (taken + _MOST_BYTES, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def change_members(data: bytes, change: Callable[[dict[str, bytes]], None]) -> bytes:
    """Return an archive after a change of its members."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def _mutate_bytes(random: np.random.Generator, data: bytes) -> bytes:
    changed = bytearray(data)
    for place in random.integers(len(data), size=int(random.integers(1, 4))).tolist():
        changed[place] = int(random.integers(256))
    return bytes(changed)


def _truncate(random: np.random.Generator, data: bytes) -> bytes:
    return data[: int(random.integers(len(data)))]


def _mutate_numbers(random: np.random.Generator, data: bytes) -> bytes:
    """Change some of the numbers in the tables."""

    def change(members: dict[str, bytes]) -> None:
        name = random.choice([name for name in members if name.endswith("arrays.bin")])
        numbers = np.frombuffer(members[name], np.int32, len(members[name]) // 4).copy()
        places = random.integers(numbers.size, size=int(random.integers(1, 4)))
        numbers[places] = random.choice(_ODD, places.size)
        members[name] = numbers.tobytes() + members[name][4 * numbers.size :]

    return change_members(data, change)


def _mutate_manifest(random: np.random.Generator, data: bytes) -> bytes:
    """Change one value of a manifest, or leave it out."""

    def change(members: dict[str, bytes]) -> None:
        name = random.choice([name for name in members if name.endswith(".json")])
        whole = json.loads(members[name])
        places = list(_iterate_values(whole))
        holder, key = places[int(random.integers(len(places)))]
        if random.random() < 0.1:
            del holder[key]
        else:
            holder[key] = _ODD_JSON[int(random.integers(len(_ODD_JSON)))]
        members[name] = json.dumps(whole).encode()

    return change_members(data, change)


def _iterate_values(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield what holds each value of a manifest, and by which key; long lists count a few times only."""
    keys = list(value) if isinstance(value, dict) else range(min(len(value), 6)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _iterate_values(value[key])
