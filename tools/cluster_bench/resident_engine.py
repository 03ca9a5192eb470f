"""An engine that keeps inputs and results on its device, so that measured times contain no transfers."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.distributed.cluster.worker import is_executing_task
from gpu.engines.base import (
    Argument,
    Array,
    Buffer,
    Device,
    Engine,
    ExecutorChoice,
    Extent,
    Kernel,
    Module,
    PhaseTimes,
    Routine,
    SharingEngine,
)

GENERATOR_FILE = "generator.cu"
_GENERATOR_TEXT = Path(__file__).with_name(GENERATOR_FILE).read_text(encoding="utf-8")

_BLOCK = 256
_BLOCKS_PER_MULTIPROCESSOR = 8
_C_TYPES = {"int32": "int", "uint8": "unsigned char", "float32": "float"}


@dataclass(frozen=True)
class PartProperties:
    """Properties of a sequence of elements as 32-bit numbers, computed on the device.

    Parameters
    ----------
    total, weighted_total : int
        Sum of the elements, and of each multiplied by its index, modulo 2^64.
    descents : int
        Number of elements less than the one before.
    head, tail : array
        The first and the last elements.
    """

    count: int
    total: int
    weighted_total: int
    descents: int
    head: Array
    tail: Array


@dataclass(frozen=True)
class DeviceCopies:
    """Bytes copied from other devices without passing through this process, and the milliseconds of that."""

    nbytes: int = 0
    ms: float = 0.0


@dataclass(frozen=True)
class _DeviceArray:
    array: Array
    buffer: Any


class ResidentEngine:
    """Wraps another engine. Host arrays are placeholders for data on the device, and are hardly ever read.

    Parameters
    ----------
    in_task : callable
        Returns whether a Dask task requests the download. Data sent to another worker are downloaded unchanged.

    Attributes
    ----------
    min_resident_bytes : int
        Results of Dask tasks of at least this many bytes stay on the device, until `free_results`.
    """

    def __init__(self, inner: Engine, in_task: Callable[[], bool]) -> None:
        self.inner = inner
        self._in_task = in_task
        self.device: Device = inner.device
        self.executor_choice = ExecutorChoice(inner.device.executor)
        self.sources: dict[str, str] = {}
        self.on_progress: Callable[[float], None] = lambda fraction: None
        self.on_compiling: Callable[[str], None] = lambda name: None
        self.isolates_launches, inner.isolates_launches = False, False
        self.min_resident_bytes = 2**62
        self._generated: dict[str, _DeviceArray] = {}
        self._results: list[tuple[Array, Buffer]] = []
        self._freed: list[Buffer] = []
        self._copies = DeviceCopies()

    def generate(self, key: str, shape: Sequence[int], dtype: str, bits: int, first: int) -> int:
        """Generate elements on the device; return their sum.

        An upload of `placeholder(key)` returns them; its caller must not change them.

        Parameters
        ----------
        bits : int
            Bits per element.
        first : int
            Index of the first element among all elements.
        """
        buffer, count = self.inner.allocate(shape, dtype), math.prod(shape)
        start = np.uint32(first % 2**32)
        self._launch("generate_elements", buffer.dtype, count, buffer, start, np.uint32(count), bits=bits)
        self._generated[key] = _DeviceArray(np.empty(shape, dtype), buffer)
        return self._compute_sums(buffer, 0, count)[0]

    def activate(self) -> None:
        """Register this engine as the one where Dask tasks of this process find their inputs."""
        _engines[:] = [self]

    def placeholder(self, key: str) -> Array:
        """Return the placeholder array of generated data, with their size and undefined values."""
        return self._generated[key].array

    def free_generated(self) -> None:
        """Free the generated data."""
        self.inner.free(*(each.buffer for each in self._generated.values()))
        self._generated.clear()

    def take_copies(self) -> DeviceCopies:
        """Return the copies from other devices since the last call."""
        moved, self._copies = self._copies, DeviceCopies()
        return moved

    def compute_properties(self, result: Array, window: int) -> PartProperties:
        """Return properties of a result on the device, with up to `window` elements of either end."""
        array, buffer = next(each for each in self._results if np.may_share_memory(each[0], result))
        begin = (result.ctypes.data - array.ctypes.data) // array.itemsize
        ends = [self._download_end(buffer, begin, result.size, window, last=last) for last in (False, True)]
        return PartProperties(result.size, *self._compute_sums(buffer, begin, result.size), *ends)

    def _compute_sums(self, buffer: Buffer, begin: int, count: int) -> tuple[int, int, int]:
        sums = self.inner.upload(np.zeros(3, np.uint64))
        # The bits of floats can be summed like integers.
        dtype = np.dtype(np.int32) if buffer.dtype.kind == "f" else buffer.dtype
        self._launch("compute_summary", dtype, count, buffer, np.uint64(begin), np.uint32(count), sums)
        total, placed, falls = self.inner.download(sums).tolist()
        self.inner.free(sums)
        return total, placed, falls

    def free_results(self) -> None:
        """Free the results that stayed on the device and that their owners have freed."""
        self.inner.free(*self._freed)
        self._freed.clear()
        self._results.clear()

    def _download_end(self, buffer: Buffer, begin: int, size: int, window: int, *, last: bool) -> Array:
        count = min(size, window)
        part = self.inner.allocate((count,), buffer.dtype)
        first = begin + (size - count if last else 0)
        self._launch("copy_window", buffer.dtype, count, buffer, np.uint64(first), part, np.uint32(count))
        values = self.inner.download(part)
        self.inner.free(part)
        return values

    def _launch(self, name: str, dtype: np.dtype[Any], count: int, *arguments: Argument, bits: int = 32) -> None:
        self.inner.sources = {**self.sources, GENERATOR_FILE: _GENERATOR_TEXT}
        module = self.inner.build(GENERATOR_FILE, {"VALUE": _C_TYPES[dtype.name], "BITS": bits})
        most = self.device.multiprocessors * _BLOCKS_PER_MULTIPROCESSOR
        blocks = max(1, min(-(-count // _BLOCK), most))
        self.inner.launch(module.kernel(name), (blocks, 1, 1), (_BLOCK, 1, 1), *arguments)

    def build(self, file: str, defines: Mapping[str, int | str] | None = None) -> Module:
        self.inner.sources = self.sources
        return self.inner.build(file, defines or {})

    def allocate(self, shape: Sequence[int], dtype: npt.DTypeLike) -> Buffer:
        return self.inner.allocate(shape, dtype)

    def upload(self, values: Array) -> Buffer:
        for each in self._generated.values():
            if values.nbytes == each.array.nbytes and values.ctypes.data == each.array.ctypes.data:
                # All uploads share one object, so that `free` recognizes it even after `free_generated`.
                each.buffer.shape = values.shape
                buffer: Buffer = each.buffer
                return buffer
        return self.inner.upload(values)

    def download(self, buffer: Buffer, count: int | None = None) -> Array:
        size = math.prod(buffer.shape) * buffer.dtype.itemsize
        if count is None and size >= self.min_resident_bytes and self._in_task():
            self._results.append((np.empty(buffer.shape, buffer.dtype), buffer))
            return self._results[-1][0]
        return self.inner.download(buffer, count)

    def fill(self, buffer: Buffer, value: float) -> None:
        self.inner.fill(buffer, value)

    def free(self, *buffers: Buffer) -> None:
        for buffer in buffers:
            if any(buffer is each.buffer for each in self._generated.values()):
                continue
            if any(buffer is each for _, each in self._results):
                self._freed.append(buffer)
            else:
                self.inner.free(buffer)

    def texture(self, buffer: Buffer) -> Argument:
        return self.inner.texture(buffer)

    def launch(self, kernel: Kernel, grid: Extent, block: Extent, *arguments: Argument, shared_bytes: int = 0) -> None:
        self.inner.launch(kernel, grid, block, *arguments, shared_bytes=shared_bytes)

    def call(self, routine: Routine, *buffers: Buffer) -> None:
        self.inner.call(routine, *buffers)

    def take_times(self) -> PhaseTimes:
        return self.inner.take_times()

    def launch_ms(self) -> float:
        return self.inner.launch_ms()

    def close(self) -> None:
        self.free_results()
        self.free_generated()
        self.inner.isolates_launches = True


class ResidentSharingEngine(ResidentEngine):
    """`ResidentEngine` for an engine that shares its buffers with other processes."""

    def share(self, buffer: Buffer) -> bytes:
        assert isinstance(self.inner, SharingEngine)
        return self.inner.share(buffer)

    def copy_shared(self, handle: bytes, shape: Sequence[int], dtype: npt.DTypeLike) -> Buffer:
        assert isinstance(self.inner, SharingEngine)
        start = time.perf_counter()
        buffer = self.inner.copy_shared(handle, shape, dtype)
        seconds, size = time.perf_counter() - start, math.prod(shape) * np.dtype(dtype).itemsize
        self._copies = DeviceCopies(self._copies.nbytes + size, self._copies.ms + 1e3 * seconds)
        return buffer


@dataclass(frozen=True)
class GeneratedSource:
    """Source of a chunk's input that was generated under a key on the worker's device."""

    key: str

    def read(self, start: int, stop: int) -> Array:
        """Return the placeholder of the whole input, regardless of the range."""
        (engine,) = _engines
        return engine.placeholder(self.key)


@dataclass(frozen=True)
class BlankSource:
    """Source of an input that only has a shape: its values are never read."""

    row_shape: tuple[int, ...]
    dtype: str

    def read(self, start: int, stop: int) -> Array:
        return np.empty((stop - start, *self.row_shape), self.dtype)


_engines: list[ResidentEngine] = []
"""The engine of this process; a worker has exactly one."""


def wrap_engine(inner: Engine) -> ResidentEngine:
    """Return a `ResidentEngine` that wraps a worker's engine."""
    kind = ResidentSharingEngine if isinstance(inner, SharingEngine) else ResidentEngine
    return kind(inner, is_executing_task)


def unwrap_engine(engine: Engine) -> Engine:
    """Close a wrapping engine; return the one inside."""
    assert isinstance(engine, ResidentEngine)
    engine.close()
    return engine.inner
