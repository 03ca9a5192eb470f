"""An engine whose input lies on its device already, and whose result stays there: what is timed is what is between."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.distributed.worker import in_task
from gpu.engines.base import (
    Argument,
    Array,
    Buffer,
    Device,
    Engine,
    Executed,
    Extent,
    Kernel,
    Module,
    PhaseTimes,
    Routine,
    SharingEngine,
)

MADE = "made.cu"
_TEXT = Path(__file__).with_name(MADE).read_text(encoding="utf-8")

_BLOCK = 256
_BLOCKS_PER_MULTIPROCESSOR = 8
_C_TYPES = {"int32": "int", "uint8": "unsigned char", "float32": "float"}


@dataclass(frozen=True)
class PartFacts:
    """What is known of some elements, as numbers of 32 bits, without bringing them here.

    Parameters
    ----------
    count : int
    total, placed : int
        Their sum, and that of each times its place, modulo 2^64.
    falls : int
        How often one is less than the one before.
    head, tail : array
        The first ones, and the last ones.
    """

    count: int
    total: int
    placed: int
    falls: int
    head: Array
    tail: Array


@dataclass(frozen=True)
class Moved:
    """Bytes that came from other devices without passing through this process, and the milliseconds of that."""

    nbytes: int = 0
    ms: float = 0.0


@dataclass(frozen=True)
class _Held:
    array: Array
    buffer: Any


class HeldEngine:
    """Stands before another engine. Host arrays stand for what lies on the device, and are hardly ever read.

    Parameters
    ----------
    inner : Engine
    in_task : callable
        Whether a download is asked for by a task. What is sent to another worker is brought here as it is.

    Attributes
    ----------
    stays_from : int
        What a task makes of so many bytes is not brought here but stays, until `let_go`.
    """

    def __init__(self, inner: Engine, in_task: Callable[[], bool]) -> None:
        self.inner = inner
        self._in_task = in_task
        self.device: Device = inner.device
        self.executed = Executed(inner.device.executor)
        self.sources: dict[str, str] = {}
        self.on_progress: Callable[[float], None] = lambda fraction: None
        self.on_compiling: Callable[[str], None] = lambda name: None
        self.apart, inner.apart = False, False
        self.stays_from = 2**62
        self._held: dict[str, _Held] = {}
        self._results: list[tuple[Array, Buffer]] = []
        self._freed: list[Buffer] = []
        self._moved = Moved()

    def make(self, key: str, shape: Sequence[int], dtype: str, bits: int, first: int) -> int:
        """Make elements on the device, for whoever uploads what `stand_in` returns for the key; return their sum.

        Whoever has them changes none of them.
        """
        buffer, count = self.inner.allocate(shape, dtype), math.prod(shape)
        place = np.uint32(first % 2**32)
        self._launch("made_elements", buffer.dtype, count, buffer, place, np.uint32(count), bits=bits)
        self._held[key] = _Held(np.empty(shape, dtype), buffer)
        return self._sums(buffer, 0, count)[0]

    def begin(self) -> None:
        """Be the engine that tasks of this process find their input by."""
        _engines[:] = [self]

    def stand_in(self, key: str) -> Array:
        """Return an array as large as what was made, of which nothing is filled in."""
        return self._held[key].array

    def forget(self) -> None:
        """Free what was made."""
        for each in self._held.values():
            self.inner.free(each.buffer)
        self._held.clear()

    def take_moved(self) -> Moved:
        """Return what came from other devices since the last call."""
        moved, self._moved = self._moved, Moved()
        return moved

    def facts_of(self, result: Array, window: int) -> PartFacts:
        """Look at a result that stays on the device, with so many elements of either end as they are."""
        array, buffer = next(each for each in self._results if np.may_share_memory(each[0], result))
        begin = (result.ctypes.data - array.ctypes.data) // array.itemsize
        ends = [self._window(buffer, begin, result.size, window, last=last) for last in (False, True)]
        return PartFacts(result.size, *self._sums(buffer, begin, result.size), *ends)

    def _sums(self, buffer: Buffer, begin: int, count: int) -> tuple[int, int, int]:
        sums = self.inner.upload(np.zeros(3, np.uint64))
        # Of floats the bits are as good as numbers.
        dtype = np.dtype(np.int32) if buffer.dtype.kind == "f" else buffer.dtype
        self._launch("made_facts", dtype, count, buffer, np.uint64(begin), np.uint32(count), sums)
        total, placed, falls = self.inner.download(sums).tolist()
        self.inner.free(sums)
        return total, placed, falls

    def let_go(self) -> None:
        """Give back what stayed, where nobody else has it."""
        for buffer in self._freed:
            self.inner.free(buffer)
        self._freed.clear()
        self._results.clear()

    def _window(self, buffer: Buffer, begin: int, size: int, window: int, *, last: bool) -> Array:
        count = min(size, window)
        part = self.inner.allocate((count,), buffer.dtype)
        first = begin + (size - count if last else 0)
        self._launch("made_window", buffer.dtype, count, buffer, np.uint64(first), part, np.uint32(count))
        values = self.inner.download(part)
        self.inner.free(part)
        return values

    def _launch(self, name: str, dtype: np.dtype[Any], count: int, *arguments: Argument, bits: int = 32) -> None:
        self.inner.sources = {**self.sources, MADE: _TEXT}
        module = self.inner.build(MADE, {"VALUE": _C_TYPES[dtype.name], "BITS": bits})
        most = self.device.multiprocessors * _BLOCKS_PER_MULTIPROCESSOR
        blocks = max(1, min(-(-count // _BLOCK), most))
        self.inner.launch(module.kernel(name), (blocks, 1, 1), (_BLOCK, 1, 1), *arguments)

    def build(self, file: str, defines: Mapping[str, int | str] | None = None) -> Module:
        self.inner.sources = self.sources
        return self.inner.build(file, defines or {})

    def allocate(self, shape: Sequence[int], dtype: npt.DTypeLike) -> Buffer:
        return self.inner.allocate(shape, dtype)

    def upload(self, values: Array) -> Buffer:
        for each in self._held.values():
            if values.nbytes == each.array.nbytes and values.ctypes.data == each.array.ctypes.data:
                # One object for all who have it: who frees it late, when it is forgotten, frees nothing.
                each.buffer.shape = values.shape
                found: Buffer = each.buffer
                return found
        return self.inner.upload(values)

    def download(self, buffer: Buffer, count: int | None = None) -> Array:
        size = math.prod(buffer.shape) * buffer.dtype.itemsize
        if count is None and size >= self.stays_from and self._in_task():
            self._results.append((np.empty(buffer.shape, buffer.dtype), buffer))
            return self._results[-1][0]
        return self.inner.download(buffer, count)

    def fill(self, buffer: Buffer, value: float) -> None:
        self.inner.fill(buffer, value)

    def free(self, buffer: Buffer) -> None:
        if any(buffer is each.buffer for each in self._held.values()):
            return
        if any(buffer is each for _, each in self._results):
            self._freed.append(buffer)
            return
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
        self.let_go()
        self.forget()
        self.inner.apart = True


class HeldSharingEngine(HeldEngine):
    """The same, before an engine whose buffers other processes can copy."""

    def share(self, buffer: Buffer) -> bytes:
        assert isinstance(self.inner, SharingEngine)
        return self.inner.share(buffer)

    def copy_shared(self, handle: bytes, shape: Sequence[int], dtype: npt.DTypeLike) -> Buffer:
        assert isinstance(self.inner, SharingEngine)
        begun = time.perf_counter()
        buffer = self.inner.copy_shared(handle, shape, dtype)
        took, size = time.perf_counter() - begun, math.prod(shape) * np.dtype(dtype).itemsize
        self._moved = Moved(self._moved.nbytes + size, self._moved.ms + 1e3 * took)
        return buffer


@dataclass(frozen=True)
class OnDevice:
    """Where a chunk's input comes from that was made under a key on the worker's device."""

    key: str

    def read(self, start: int, stop: int) -> Array:
        """Return what stands for it; all of it, whatever is asked for."""
        (engine,) = _engines
        return engine.stand_in(self.key)


@dataclass(frozen=True)
class BlankRows:
    """What a chunk has whose values nobody reads."""

    row: tuple[int, ...]
    dtype: str

    def read(self, start: int, stop: int) -> Array:
        return np.empty((stop - start, *self.row), self.dtype)


_engines: list[HeldEngine] = []
"""This process's, which a worker has one of."""


def stand_before(inner: Engine) -> HeldEngine:
    """Return an engine of a worker that stands before another."""
    kind = HeldSharingEngine if isinstance(inner, SharingEngine) else HeldEngine
    return kind(inner, in_task)


def step_aside(engine: Engine) -> Engine:
    """Return the engine that one stood before."""
    assert isinstance(engine, HeldEngine)
    engine.close()
    return engine.inner
