"""A simulator engine that saves the memory before each launch, so that blocks of a launch can run again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpu.engines.base import Argument, Array, Buffer, Device, Extent, Kernel
from gpu.engines.simulator import SimulatedBuffer, SimulatorEngine, SimulatorKernel, get_buffer, get_memory
from gpu.simulator.executor.state.observer import Observer

MAX_BYTES = 2**28
"""Size limit in bytes of all saved launches; the oldest are dropped first."""


@dataclass(frozen=True)
class BuiltKernel:
    """A kernel, with the file and macros that it was built from."""

    name: str
    simulator_kernel: SimulatorKernel
    file: str
    defines: Mapping[str, int | str]


class BuiltModule:
    """A built kernel file; its kernels refer to its name and macros."""

    def __init__(self, module: Any, file: str, defines: Mapping[str, int | str]) -> None:
        self._module, self._file, self._defines = module, file, defines

    def kernel(self, name: str) -> BuiltKernel:
        return BuiltKernel(name, self._module.kernel(name), self._file, self._defines)

    def set_constant(self, name: str, values: Array) -> None:
        self._module.set_constant(name, values)


@dataclass(frozen=True, eq=False)
class Origin:
    """The position of a result's element in a buffer: `size` bytes from `start`."""

    buffer: SimulatedBuffer
    start: int
    size: int


@dataclass(frozen=True, eq=False)
class SavedLaunch:
    """A launch, and a copy of the memory before it.

    Parameters
    ----------
    number : int
        Its index among the host program's launches, from 0.
    grid, block, shared_bytes
        As in `Engine.launch`.
    arguments : tuple of Argument
        The arguments, with buffers but not their contents.
    buffer_contents : tuple of (array or None)
        The contents of each argument that is a buffer before the launch, as bytes.
    variables : mapping of str to array
        The contents of the variables of the kernel's file before the launch.
    compiled : bool
        Whether the compiled executor ran it.
    """

    number: int
    kernel: BuiltKernel
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared_bytes: int
    arguments: tuple[Argument, ...]
    buffer_contents: tuple[Array | None, ...]
    variables: Mapping[str, Array]
    compiled: bool

    @property
    def buffers(self) -> tuple[SimulatedBuffer | None, ...]:
        """The buffer that the kernel accesses through each argument; None for a value."""
        return tuple(map(get_buffer, self.arguments))

    @property
    def blocks(self) -> int:
        """The number of blocks of the grid."""
        return int(np.prod(self.grid))

    @property
    def threads(self) -> int:
        """The number of threads of the grid."""
        return self.blocks * int(np.prod(self.block))

    @property
    def nbytes(self) -> int:
        """The size of the saved memory in bytes."""
        return sum(each.nbytes for each in (*self.buffer_contents, *self.variables.values()) if each is not None)


@dataclass(frozen=True, eq=False)
class BufferFill:
    """A buffer that the host program filled with one value."""

    buffer: SimulatedBuffer


class RewoundLaunch:
    """A launch that can run again, block by block, from its saved memory.

    Parameters
    ----------
    on_progress : callable
        Called while blocks run; an exception from it stops them.
    """

    def __init__(self, saved_launch: SavedLaunch, on_progress: Callable[[], None]) -> None:
        self.saved_launch = saved_launch
        self._on_progress = on_progress
        self._variable_data = {
            name: data for name, (_, data) in saved_launch.kernel.simulator_kernel.lockstep.variables.items()
        }
        arrays: dict[SimulatedBuffer, Array] = {}
        for argument, found in zip(saved_launch.arguments, saved_launch.buffer_contents, strict=True):
            buffer = get_buffer(argument)
            if buffer is not None and found is not None:
                arrays.setdefault(buffer, found.copy())
        self._arrays = arrays
        self.values: list[Any] = [
            get_memory(argument, arrays[buffer] if (buffer := get_buffer(argument)) is not None else None)
            for argument in saved_launch.arguments
        ]
        self.restore((saved_launch.variables, {}))

    def current_contents(self, buffer: SimulatedBuffer) -> Array:
        """Return the current contents of a buffer, as bytes."""
        return self._arrays[buffer]

    def copy_variables(self) -> dict[str, Array]:
        """Return copies of the current contents of the kernel file's variables, as bytes."""
        return {name: data.copy() for name, data in self._variable_data.items()}

    def save(self) -> tuple[Mapping[str, Array], Mapping[SimulatedBuffer, Array]]:
        """Return a copy of the current memory for `restore`."""
        return self.copy_variables(), {each: data.copy() for each, data in self._arrays.items()}

    def restore(self, saved: tuple[Mapping[str, Array], Mapping[SimulatedBuffer, Array]]) -> None:
        """Restore memory that `save` returned."""
        variables, arrays = saved
        for name, data in variables.items():
            self._variable_data[name][:] = data
        for buffer, data in arrays.items():
            self._arrays[buffer][:] = data

    def run(self, blocks: range) -> None:
        """Run some blocks in order, in the compiled executor if the launch used it."""
        kept = self.saved_launch
        if not kept.compiled:
            self.run_observed(blocks)
        elif blocks:
            kept.kernel.simulator_kernel.compiled.launch(
                kept.grid,
                kept.block,
                self.values,
                shared_bytes=kept.shared_bytes,
                on_progress=lambda fraction: self._on_progress(),
                blocks=blocks,
            )

    def run_observed(self, blocks: range, *observers: Observer) -> None:
        """Run some blocks in order, in the lockstep executor with observers."""
        self.saved_launch.kernel.simulator_kernel.lockstep.launch(
            self.saved_launch.grid,
            self.saved_launch.block,
            self.values,
            shared_bytes=self.saved_launch.shared_bytes,
            on_progress=lambda fraction: self._on_progress(),
            observers=observers,
            on_print=lambda thread, text: None,
            blocks=blocks,
        )


class RewindingEngine(SimulatorEngine):
    """Runs a host program, and saves the memory before its last launches.

    Parameters
    ----------
    target_device : Device or None
        The device with the limits for launches; None for the simulator's limits.

    Attributes
    ----------
    saved_operations : deque of (SavedLaunch or BufferFill)
        The saved launches and fills in order, limited by `MAX_BYTES`.
    launches : int
        The number of launches.
    complete : bool
        Whether all launches are saved.
    """

    def __init__(self, target_device: Device | None = None) -> None:
        super().__init__()
        if target_device is not None:
            self.device = replace(
                self.device,
                max_threads_per_block=target_device.max_threads_per_block,
                shared_bytes_per_block=target_device.shared_bytes_per_block,
                multiprocessors=target_device.multiprocessors,
                has_clusters=target_device.has_clusters,
                no_warpgroups=target_device.no_warpgroups,
            )
        self.saved_operations: deque[SavedLaunch | BufferFill] = deque()
        self.launches = 0
        self.complete = True
        self._downloaded: list[tuple[Array, SimulatedBuffer]] = []

    @property
    def elapsed_s(self) -> float:
        """Seconds spent on launches and copies, without compilation."""
        return sum(self._times.values()) / 1e3

    def build(self, file: str, defines: Mapping[str, int | str] | None = None) -> BuiltModule:
        return BuiltModule(super().build(file, defines), file, defines or {})

    def fill(self, buffer: Buffer, value: float) -> None:
        super().fill(buffer, value)
        assert isinstance(buffer, SimulatedBuffer)
        self.saved_operations.append(BufferFill(buffer))

    def download(self, buffer: Buffer, count: int | None = None) -> Array:
        assert isinstance(buffer, SimulatedBuffer)
        values = super().download(buffer, count)
        self._downloaded = [each for each in self._downloaded if each[1] is not buffer] + [(values, buffer)]
        return values

    def launch(self, kernel: Kernel, grid: Extent, block: Extent, *arguments: Argument, shared_bytes: int = 0) -> None:
        assert isinstance(kernel, BuiltKernel)
        compiled = self._try_compile(kernel.simulator_kernel, grid, block)
        with self._time_phase("upload"):
            self._save_launch(
                SavedLaunch(
                    self.launches,
                    kernel,
                    tuple(grid),
                    tuple(block),
                    shared_bytes,
                    arguments,
                    tuple(
                        buffer.data.copy() if (buffer := get_buffer(argument)) is not None else None
                        for argument in arguments
                    ),
                    {name: data.copy() for name, (_, data) in kernel.simulator_kernel.lockstep.variables.items()},
                    compiled,
                )
            )
        super().launch(kernel.simulator_kernel, grid, block, *arguments, shared_bytes=shared_bytes)

    def _save_launch(self, launch: SavedLaunch) -> None:
        self.saved_operations.append(launch)
        self.launches += 1
        while (
            sum(
                saved_operation.nbytes
                for saved_operation in self.saved_operations
                if isinstance(saved_operation, SavedLaunch)
            )
            > MAX_BYTES
        ):
            self.saved_operations.popleft()
            self.complete = False

    def find_origin(self, result: Array, element: tuple[int, ...]) -> Origin | None:
        """Return the origin of an element of a host program's result; None if it was not downloaded but computed."""
        view = result[tuple(slice(index, index + 1) for index in element)]
        address = view.ctypes.data
        for values, buffer in self._downloaded:
            start = address - values.ctypes.data
            if np.shares_memory(view, values) and 0 <= start < values.nbytes:
                return Origin(buffer, start, view.itemsize)
        return None
