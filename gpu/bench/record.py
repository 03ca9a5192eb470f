"""An engine that remembers a host program's launches, so that they can be timed again without the rest of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy.typing as npt

from gpu.engines.base import Argument, Array, Buffer, Engine, Extent, Kernel, Module, PhaseTimes, Routine

FEWEST = 5
"""How often what takes long is timed."""

_LONG_MS = 2000


class RecordingEngine:
    """Passes every call on; keeps launches, calls and fills for `replay`, and buffers alive until `finish`."""

    def __init__(self, inner: Engine) -> None:
        self._inner = inner
        self._actions: list[Callable[[], None]] = []
        self._kept: list[Buffer] = []
        self._uploaded: list[tuple[Buffer, Array]] = []
        self._anew: dict[int, Buffer] = {}
        self.device = inner.device
        self.executed = inner.executed
        self.sources: dict[str, str] = {}
        self.on_progress: Callable[[float], None] = lambda fraction: None
        self.on_compiling: Callable[[str], None] = lambda name: None
        self.apart = True

    def build(self, file: str, defines: Mapping[str, int | str] | None = None) -> Module:
        return self._inner.build(file, defines or {})

    def allocate(self, shape: Sequence[int], dtype: npt.DTypeLike) -> Buffer:
        return self._inner.allocate(shape, dtype)

    def upload(self, values: Array) -> Buffer:
        buffer = self._inner.upload(values)
        self._uploaded.append((buffer, values))
        return buffer

    def download(self, buffer: Buffer, count: int | None = None) -> Array:
        return self._inner.download(buffer, count)

    def fill(self, buffer: Buffer, value: float) -> None:
        self._inner.fill(buffer, value)
        self._actions.append(lambda: self._inner.fill(buffer, value))

    def free(self, buffer: Buffer) -> None:
        self._kept.append(buffer)

    def texture(self, buffer: Buffer) -> Argument:
        return self._inner.texture(buffer)

    def launch(self, kernel: Kernel, grid: Extent, block: Extent, *arguments: Argument, shared_bytes: int = 0) -> None:
        def action() -> None:
            now = [self._anew.get(id(argument), argument) for argument in arguments]
            self._inner.launch(kernel, grid, block, *now, shared_bytes=shared_bytes)

        action()
        self._actions.append(action)

    def call(self, routine: Routine, *buffers: Buffer) -> None:
        def action() -> None:
            self._inner.call(routine, *(self._anew.get(id(buffer), buffer) for buffer in buffers))

        action()
        self._actions.append(action)

    def take_times(self) -> PhaseTimes:
        return self._inner.take_times()

    def launch_ms(self) -> float:
        return self._inner.launch_ms()

    def replay(self, times: int, warm_up: int = 3, *, anew: bool = False) -> tuple[float, ...]:
        """Run all fills, launches and calls again, so many times, and return each repetition's milliseconds.

        `anew` uploads again what was uploaded before each of them, for launches that overwrite it. What takes
        seconds is run less often, but `FEWEST` times at least: its times hardly differ.
        """
        measured: list[float] = []
        for repetition in range(warm_up + times):
            if anew:
                self._anew = {id(buffer): self._inner.upload(values) for buffer, values in self._uploaded}
            self._inner.take_times()
            for action in self._actions:
                action()
            elapsed = self._inner.take_times().kernel
            for buffer in self._anew.values():
                self._inner.free(buffer)
            self._anew = {}
            if repetition >= warm_up:
                measured.append(elapsed)
            if len(measured) >= FEWEST and sum(measured) > _LONG_MS:
                break
        return tuple(measured)

    def replay_each(self, times: int, warm_up: int = 1, *, anew: bool = False) -> list[tuple[float, ...]]:
        """Run all fills and launches again, so many times, and return the milliseconds of each of them by itself.

        `anew`, and what takes seconds, as in `replay`.
        """
        measured: list[list[float]] = [[] for _ in self._actions]
        total = 0.0
        for repetition in range(warm_up + times):
            if anew:
                self._anew = {id(buffer): self._inner.upload(values) for buffer, values in self._uploaded}
            self._inner.take_times()
            for action, own in zip(self._actions, measured, strict=True):
                action()
                elapsed = self._inner.take_times().kernel
                total += elapsed
                if repetition >= warm_up:
                    own.append(elapsed)
            for buffer in self._anew.values():
                self._inner.free(buffer)
            self._anew = {}
            if total > _LONG_MS and measured and measured[0]:
                break
        return [tuple(own) for own in measured]

    def finish(self) -> None:
        """Free the buffers that the host program gave up, and forget its launches."""
        for buffer in self._kept:
            self._inner.free(buffer)
        self._kept.clear()
        self._uploaded.clear()
        self._actions.clear()

    def close(self) -> None:
        self.finish()
        self._inner.close()
