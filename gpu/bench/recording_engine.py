"""An engine that records a host program's launches, so that they can be timed again without the host code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace

import numpy.typing as npt

from gpu.engines.base import (
    Argument,
    Array,
    Buffer,
    Engine,
    EngineSettings,
    Extent,
    Kernel,
    Module,
    PhaseTimes,
    Routine,
    SequencingEngine,
    TensorMap,
)

MIN_REPETITIONS = 5
"""Fewest repetitions of long runs."""

_LONG_RUN_MS = 2000


class RecordingEngine(EngineSettings):
    """Forwards every call; keeps launches, calls and fills for `replay`, and buffers until `finish`."""

    def __init__(self, inner: Engine) -> None:
        super().__init__()
        self._inner = inner
        self._actions: list[Callable[[], None]] = []
        self._calls_library = False
        self._freed: list[Buffer] = []
        self._uploaded: list[tuple[Buffer, Array]] = []
        self._replacements: dict[int, Buffer] = {}
        self.device = inner.device
        self.executor_choice = inner.executor_choice

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

    def free(self, *buffers: Buffer) -> None:
        self._freed.extend(buffers)

    def texture(self, buffer: Buffer) -> Argument:
        return self._inner.texture(buffer)

    def launch(self, kernel: Kernel, grid: Extent, block: Extent, *arguments: Argument, shared_bytes: int = 0) -> None:
        def action() -> None:
            current = [self._replace(argument) for argument in arguments]
            self._inner.launch(kernel, grid, block, *current, shared_bytes=shared_bytes)

        action()
        self._actions.append(action)

    def _replace(self, argument: Argument) -> Argument:
        """Return an argument with the buffer that currently replaces its own."""
        if isinstance(argument, TensorMap):
            return replace(argument, buffer=self._replacements.get(id(argument.buffer), argument.buffer))
        return self._replacements.get(id(argument), argument)

    def call(self, routine: Routine, *buffers: Buffer) -> None:
        def action() -> None:
            self._inner.call(routine, *(self._replacements.get(id(buffer), buffer) for buffer in buffers))

        self._calls_library = True
        action()
        self._actions.append(action)

    def take_times(self) -> PhaseTimes:
        return self._inner.take_times()

    def launch_ms(self) -> float:
        return self._inner.launch_ms()

    def replay(self, repetitions: int, warm_up: int = 3, *, restore_inputs: bool = False) -> tuple[float, ...]:
        """Repeat all fills, launches and calls; return the milliseconds of each repetition.

        A GPU times a repetition as a sequence, as the peers' programs time theirs: with the gaps between launches, and
        with data in the cache that an earlier launch of the repetition left there. Calls of libraries are timed
        separately.

        Parameters
        ----------
        repetitions : int
            Number of repetitions. Runs that take seconds are repeated less often, because their times hardly vary, but
            at least `MIN_REPETITIONS` times.
        warm_up : int
            Repetitions before the measured ones.
        restore_inputs : bool
            Upload all inputs again before each repetition, for launches that overwrite them.
        """
        measured: list[float] = []
        for repetition in range(warm_up + repetitions):
            with self._restore_inputs(restore_inputs):
                with self._time_actions():
                    for action in self._actions:
                        action()
                elapsed = self._inner.take_times().kernel
            if repetition >= warm_up:
                measured.append(elapsed)
            if len(measured) >= MIN_REPETITIONS and sum(measured) > _LONG_RUN_MS:
                break
        return tuple(measured)

    @contextmanager
    def _restore_inputs(self, restore: bool) -> Iterator[None]:
        """Start the times of a repetition, with the inputs uploaded again if it overwrites them."""
        if restore:
            self._replacements = {id(buffer): self._inner.upload(values) for buffer, values in self._uploaded}
        self._inner.take_times()
        yield
        self._inner.free(*self._replacements.values())
        self._replacements = {}

    def _time_actions(self) -> AbstractContextManager[None]:
        if self._actions and not self._calls_library and isinstance(self._inner, SequencingEngine):
            return self._inner.time_as_sequence()
        return nullcontext()

    def replay_separately(
        self, repetitions: int, warm_up: int = 1, *, restore_inputs: bool = False
    ) -> list[tuple[float, ...]]:
        """Repeat all fills and launches; return the milliseconds of each one separately.

        Parameters as in `replay`.
        """
        measured: list[list[float]] = [[] for _ in self._actions]
        total = 0.0
        for repetition in range(warm_up + repetitions):
            with self._restore_inputs(restore_inputs):
                for action, durations in zip(self._actions, measured, strict=True):
                    action()
                    elapsed = self._inner.take_times().kernel
                    total += elapsed
                    if repetition >= warm_up:
                        durations.append(elapsed)
            if total > _LONG_RUN_MS and measured and measured[0]:
                break
        return [tuple(durations) for durations in measured]

    def finish(self) -> None:
        """Free the buffers that the host program freed, and discard its launches."""
        self._inner.free(*self._freed)
        self._freed.clear()
        self._uploaded.clear()
        self._actions.clear()

    def close(self) -> None:
        self.finish()
        self._inner.close()
