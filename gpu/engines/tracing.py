"""The simulator as an engine that records every step of every launch: what the window plays."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy.typing as npt

from gpu.engines.base import Argument, Array, Buffer, Extent, Kernel, kernel_text
from gpu.engines.simulator import SimulatedBuffer, SimulatorEngine, SimulatorModule
from gpu.errors import KernelError, LaunchError
from gpu.schedules import ROUND_ROBIN
from gpu.simulator.executor.launch import SimulatedKernel
from gpu.simulator.module import SimulatedModule
from gpu.simulator.trace.trace import Trace
from gpu.stepping.recording import RecordedLaunch, Recording, Shape

MAXIMUM_LANE_EVENTS = 4_000_000
"""Statements of single lanes that are recorded of a whole host program: some 100 MB."""


@dataclass(frozen=True)
class TracedKernel:
    """A kernel, the module that traces it, and the shapes of what was put into that module's variables."""

    name: str
    module: SimulatedModule
    plain: SimulatedKernel
    constants: Mapping[str, tuple[int, ...]]


class TracedModule:
    """A built kernel file, each of whose launches is traced."""

    def __init__(self, module: SimulatedModule) -> None:
        self._module = module
        self._constants: dict[str, tuple[int, ...]] = {}

    def kernel(self, name: str) -> TracedKernel:
        return TracedKernel(name, self._module, self._module.kernel(name), self._constants)

    def set_constant(self, name: str, values: Array) -> None:
        self._module.set_constant(name, values)
        self._constants[name] = values.shape


class TracingEngine(SimulatorEngine):
    """Runs a host program on a small simulated device, and keeps a recording of it.

    Parameters
    ----------
    schedule : str
        The order in which warps and lanes run: one of `gpu.schedules.NAMES`.
    max_lane_events : int
        How many statements of single lanes are recorded; what is launched after that runs unrecorded.
    max_rounds : int, optional
        As of a launch: after so many its loops count as endless.
    """

    def __init__(
        self,
        schedule: str = ROUND_ROBIN,
        *,
        max_lane_events: int = MAXIMUM_LANE_EVENTS,
        max_rounds: int | None = None,
    ) -> None:
        super().__init__("lockstep", schedule=schedule)
        # Few enough blocks to be looked at, and more than one.
        self.device = replace(self.device, multiprocessors=2)
        self._left = max_lane_events
        self._max_rounds = max_rounds
        # What was allocated, and by now neither filled nor given to a kernel.
        self._empty: set[SimulatedBuffer] = set()
        self._traces: list[RecordedLaunch] = []
        self._texts: dict[str, str] = {}
        self._stopped = ""
        # The number of each buffer and of each variable of a module.
        self._numbers: dict[Hashable, int] = {}
        self._unused = itertools.count()

    @property
    def launched(self) -> bool:
        """Whether a launch was recorded."""
        return bool(self._traces)

    def recording(self, failure: str = "") -> Recording:
        """Return what was launched so far; `failure` is the mistake that ended the host program."""
        for file in dict.fromkeys(place.file for launch in self._traces for place in launch.trace.data.positions):
            with suppress(KernelError):  # a header from elsewhere has no text
                self._texts.setdefault(file, kernel_text(file, self.sources))
        return Recording.of(self._traces, self._texts, failure=failure, stopped=self._stopped)

    def build(self, file: str, defines: Mapping[str, int | str] | None = None) -> TracedModule:
        self._texts[file] = kernel_text(file, self.sources)
        return TracedModule(self.built(file, defines))

    def allocate(self, shape: Sequence[int], dtype: npt.DTypeLike) -> SimulatedBuffer:
        buffer = super().allocate(shape, dtype)
        self._empty.add(buffer)
        return buffer

    def fill(self, buffer: Buffer, value: float) -> None:
        super().fill(buffer, value)
        assert isinstance(buffer, SimulatedBuffer)
        self._numbers.pop(buffer, None)
        self._empty.discard(buffer)

    def launch(
        self,
        kernel: Kernel,
        grid: Extent,
        block: Extent,
        *arguments: Argument,
        shared_bytes: int = 0,
        blocks: range | None = None,
    ) -> None:
        """Run a kernel and record it; `blocks` are those of the grid that run, None for all."""
        assert isinstance(kernel, TracedKernel)
        if self._left <= 0:
            plain = SimulatorModule(kernel.module, edited=True).kernel(kernel.name)
            super().launch(plain, grid, block, *arguments, shared_bytes=shared_bytes)
            return
        given = self._given(kernel, arguments)
        empty = [name for name, argument in given.items() if argument in self._empty]
        values = [argument.data if isinstance(argument, SimulatedBuffer) else argument for argument in arguments]
        with self._timed("kernel"):
            trace = kernel.module.trace(
                kernel.name,
                grid,
                block,
                values,  # type: ignore[arg-type]
                shared_bytes=shared_bytes,
                max_lane_events=self._left,
                max_rounds=self._max_rounds,
                schedule=self._schedule,
                uninitialized=empty,
                blocks=blocks,
            )
        self._empty -= {argument for argument in arguments if isinstance(argument, SimulatedBuffer)}
        self._traces.append(
            RecordedLaunch(trace, self._buffers(trace, kernel, given), self._shapes(trace, kernel, given))
        )
        self._left = 0 if trace.stopped else self._left - trace.lane_events
        self._stopped = self._stopped or trace.stopped
        if trace.failure:
            raise LaunchError(trace.failure)
        self.on_progress(1.0)

    def _given(self, kernel: TracedKernel, arguments: tuple[Argument, ...]) -> dict[str, Argument]:
        """Return the buffers among the arguments, by the names of the parameters."""
        pairs = zip(kernel.plain.parameters, arguments, strict=False)  # the launch refuses what does not fit
        return {name: argument for (name, _), argument in pairs if isinstance(argument, SimulatedBuffer)}

    def _buffers(self, trace: Trace, kernel: TracedKernel, given: dict[str, Argument]) -> tuple[int | None, ...]:
        """Return the number of the buffer or module variable behind each array of a trace."""
        given = dict(given)
        numbers: list[int | None] = []
        for array in trace.arrays:
            if array.space not in ("global", "constant"):
                numbers.append(None)
                continue
            # An array has the name of the first parameter that points to it; variables of the module come after.
            argument = given.pop(array.name, None)
            key: Hashable = argument if isinstance(argument, SimulatedBuffer) else (kernel.module, array.name)
            numbers.append(self._number(key))
        return tuple(numbers)

    def _shapes(self, trace: Trace, kernel: TracedKernel, given: dict[str, Argument]) -> tuple[Shape, ...]:
        """Return the extents of each array of a trace: the host program's, or those that the kernel declares."""
        known = dict(kernel.constants)
        known.update((name, each.shape) for name, each in given.items() if isinstance(each, SimulatedBuffer))
        shared = kernel.plain.shared_shapes
        found: list[Shape] = []
        for array in trace.arrays:
            shape = (shared if array.space == "shared" else known).get(array.name)
            whole = shape is not None and math.prod(shape) == array.count
            found.append(tuple(shape) if shape is not None and whole else None)
        return tuple(found)

    def _number(self, key: Hashable) -> int:
        if key not in self._numbers:
            self._numbers[key] = next(self._unused)
        return self._numbers[key]
