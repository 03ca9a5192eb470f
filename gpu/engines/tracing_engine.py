"""A simulator engine that records every step of every launch, for the Step tab."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy.typing as npt

from gpu.base.errors import KernelError, LaunchError
from gpu.base.schedules import ROUND_ROBIN
from gpu.engines.base import Argument, Array, Buffer, Extent, Kernel, kernel_text
from gpu.engines.simulator import (
    SimulatedBuffer,
    SimulatorEngine,
    SimulatorModule,
    get_buffer,
    get_memory,
    list_descending_blocks,
)
from gpu.recording.recording import RecordedLaunch, Recording, Shape
from gpu.recording.trace import Trace
from gpu.simulator.executor.launch import LaunchOptions, SimulatedKernel
from gpu.simulator.executor.scheduling.choosers import Chooser
from gpu.simulator.simulated_module import SimulatedModule, TraceSettings

MAXIMUM_LANE_EVENTS = 4_000_000
"""Limit on recorded statements of single lanes per host program: about 100 MB."""


@dataclass(frozen=True)
class TracedKernel:
    """A kernel, the module that traces it, and the shapes of the arrays copied to that module's constants."""

    name: str
    module: SimulatedModule
    simulated_kernel: SimulatedKernel
    constants: Mapping[str, tuple[int, ...]]


class TracedModule:
    """A built kernel file that traces its launches."""

    def __init__(self, module: SimulatedModule) -> None:
        self._module = module
        self._constants: dict[str, tuple[int, ...]] = {}

    def kernel(self, name: str) -> TracedKernel:
        return TracedKernel(name, self._module, self._module.kernel(name), self._constants)

    def set_constant(self, name: str, values: Array) -> None:
        self._module.set_constant(name, values)
        self._constants[name] = values.shape


class TracingEngine(SimulatorEngine):
    """Runs a host program on a small simulated device, and records it.

    Parameters
    ----------
    schedule : str or Chooser
        One of `gpu.base.schedules.NAMES`, or a chooser of the next warp.
    max_lane_events : int
        Limit on recorded statements of single lanes; later launches run unrecorded.
    max_rounds : int, optional
        Loop-iteration limit of a launch.
    is_descending : bool
        Whether the blocks of a launch are recorded one after the other, the last one first, if they may run so.
    """

    def __init__(
        self,
        schedule: str | Chooser = ROUND_ROBIN,
        *,
        max_lane_events: int = MAXIMUM_LANE_EVENTS,
        max_rounds: int | None = None,
        is_descending: bool = False,
    ) -> None:
        super().__init__("lockstep", schedule=str(schedule))
        self._order, self._is_descending = schedule, is_descending
        # A few blocks can be inspected; one would hide their interaction.
        self.device = replace(self.device, multiprocessors=2)
        self._remaining_lane_events = max_lane_events
        self._max_rounds = max_rounds
        # Buffers that were allocated but not filled or passed to a kernel.
        self._unwritten_buffers: set[SimulatedBuffer] = set()
        self._traces: list[RecordedLaunch] = []
        self._texts: dict[str, str] = {}
        self._stopped = ""
        # Numbers of buffers and module variables.
        self._numbers: dict[Hashable, int] = {}
        self._next_number = itertools.count()

    @property
    def has_launches(self) -> bool:
        """Whether a launch was recorded."""
        return bool(self._traces)

    def build_recording(self, failure: str = "") -> Recording:
        """Return the recording of all launches so far; `failure` is the error that ended the host program."""
        for file in dict.fromkeys(position.file for launch in self._traces for position in launch.trace.data.positions):
            with suppress(KernelError):  # the text of foreign headers is not available
                self._texts.setdefault(file, kernel_text(file, self.sources))
        return Recording.from_launches(self._traces, self._texts, failure=failure, stopped=self._stopped)

    def build(self, file: str, defines: Mapping[str, int | str] | None = None) -> TracedModule:
        self._texts[file] = kernel_text(file, self.sources)
        return TracedModule(self.build_simulated_module(file, defines))

    def allocate(self, shape: Sequence[int], dtype: npt.DTypeLike) -> SimulatedBuffer:
        buffer = super().allocate(shape, dtype)
        self._unwritten_buffers.add(buffer)
        return buffer

    def fill(self, buffer: Buffer, value: float) -> None:
        super().fill(buffer, value)
        assert isinstance(buffer, SimulatedBuffer)
        self._numbers.pop(buffer, None)
        self._unwritten_buffers.discard(buffer)

    def launch(
        self,
        kernel: Kernel,
        grid: Extent,
        block: Extent,
        *arguments: Argument,
        shared_bytes: int = 0,
        blocks: range | None = None,
    ) -> None:
        """Run a kernel and record it.

        Parameters
        ----------
        kernel : TracedKernel
            A kernel of a module that this engine built.
        grid, block : sequence of int
            Blocks of the grid and threads of a block, along x, y and z.
        *arguments : Buffer or NumPy scalar
            As of `Engine.launch`.
        shared_bytes : int
            Dynamic shared memory per block.
        blocks : range or None
            Numbers of the blocks to run; None for all.

        Raises
        ------
        LaunchError
            The launch is invalid, or it fails; the recording contains the events up to the failure.
        """
        assert isinstance(kernel, TracedKernel)
        if self._is_descending and blocks is None and kernel.simulated_kernel.traits.has_separate_blocks:
            for block_number in list_descending_blocks(grid):
                self.launch(kernel, grid, block, *arguments, shared_bytes=shared_bytes, blocks=block_number)
            return
        if self._remaining_lane_events <= 0:
            plain = SimulatorModule(kernel.module, edited=True).kernel(kernel.name)
            super().launch(plain, grid, block, *arguments, shared_bytes=shared_bytes)
            return
        options: LaunchOptions = {
            "shared_bytes": shared_bytes,
            "max_rounds": self._max_rounds,
            "schedule": self._order,
            "blocks": blocks,
        }
        trace = self._record(kernel, (grid, block), arguments, options)
        if trace.failure:
            raise LaunchError(trace.failure)
        self.on_progress(1.0)

    def _record(
        self,
        kernel: TracedKernel,
        extents: tuple[Extent, Extent],
        arguments: tuple[Argument, ...],
        options: LaunchOptions,
    ) -> Trace:
        """Run a kernel, and add its trace to the recording."""
        buffers = self._buffer_arguments(kernel, arguments)
        empty = [name for name, buffer in buffers.items() if buffer in self._unwritten_buffers]
        with self._time_phase("kernel"):
            trace = kernel.module.trace(
                kernel.name,
                *extents,
                [get_memory(argument) for argument in arguments],
                TraceSettings(self._remaining_lane_events, uninitialized=empty),
                **options,
            )
        self._unwritten_buffers.difference_update(buffers.values())
        numbers, shapes = self._buffer_numbers(trace, kernel, buffers), self._array_shapes(trace, kernel, buffers)
        self._traces.append(RecordedLaunch(trace, numbers, shapes))
        self._remaining_lane_events = 0 if trace.stop_reason else self._remaining_lane_events - trace.lane_events
        self._stopped = self._stopped or trace.stop_reason
        return trace

    def _buffer_arguments(self, kernel: TracedKernel, arguments: tuple[Argument, ...]) -> dict[str, SimulatedBuffer]:
        """Return the buffers among the arguments, by parameter name."""
        pairs = zip(
            kernel.simulated_kernel.parameters, arguments, strict=False
        )  # the launch reports a wrong number of arguments
        return {name: buffer for (name, _), argument in pairs if (buffer := get_buffer(argument)) is not None}

    def _buffer_numbers(
        self, trace: Trace, kernel: TracedKernel, buffers: dict[str, SimulatedBuffer]
    ) -> tuple[int | None, ...]:
        """Return the number of the buffer or module variable of each array of a trace."""
        remaining: dict[str, Hashable] = {**buffers}
        numbers: list[int | None] = []
        for array in trace.arrays:
            if array.space not in ("global", "constant"):
                numbers.append(None)
                continue
            # An array has the name of the first parameter that points to it; module variables come after.
            key: Hashable = remaining.pop(array.name, (kernel.module, array.name))
            numbers.append(self._assign_number(key))
        return tuple(numbers)

    def _array_shapes(
        self, trace: Trace, kernel: TracedKernel, buffers: dict[str, SimulatedBuffer]
    ) -> tuple[Shape, ...]:
        """Return the shape of each array of a trace, from the host program or the kernel's declaration."""
        global_shapes = dict(kernel.constants)
        global_shapes.update((name, buffer.shape) for name, buffer in buffers.items())
        shared = kernel.simulated_kernel.traits.shared_shapes
        shapes: list[Shape] = []
        for array in trace.arrays:
            shape = (shared if array.space == "shared" else global_shapes).get(array.name)
            matches = shape is not None and math.prod(shape) == array.count
            shapes.append(tuple(shape) if shape is not None and matches else None)
        return tuple(shapes)

    def _assign_number(self, key: Hashable) -> int:
        if key not in self._numbers:
            self._numbers[key] = next(self._next_number)
        return self._numbers[key]
