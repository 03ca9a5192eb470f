"""The simulator engine: buffers are NumPy arrays, and times are wall-clock times."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.base.devices.processor import peak_gflops, processor_name
from gpu.base.errors import LaunchError
from gpu.base.paths import KERNELS
from gpu.base.resource_limits import limit_resources
from gpu.base.schedules import ROUND_ROBIN
from gpu.engines.base import (
    Argument,
    Array,
    Buffer,
    Device,
    EngineSettings,
    ExecutorChoice,
    Extent,
    Kernel,
    Module,
    PhaseTimes,
    Routine,
    TensorMap,
    kernel_text,
)
from gpu.simulator.compiled.launch import CompiledKernel
from gpu.simulator.compiled.llvm.assembly import UnsupportedKernel
from gpu.simulator.executor.launch import SimulatedKernel
from gpu.simulator.executor.state.memory import POISON
from gpu.simulator.executor.textures import SimulatedTensorMap
from gpu.simulator.limits import LIMITS
from gpu.simulator.simulated_module import SimulatedModule

_ALIGNMENT = 256
"""Alignment of arrays in the device's memory, in bytes."""


@dataclass(eq=False)
class SimulatedBuffer:
    """An array in the simulated device's memory; `data` has its bytes."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    data: npt.NDArray[np.uint8]


def get_buffer(argument: Argument) -> SimulatedBuffer | None:
    """Return the buffer that a kernel accesses through an argument; None if it is a value."""
    buffer = argument.buffer if isinstance(argument, TensorMap) else argument
    return buffer if isinstance(buffer, SimulatedBuffer) else None


def get_memory(argument: Argument, data: Array | None = None) -> Any:
    """Return an argument as the simulator's kernels take it: a buffer's bytes, a tensor map or a value.

    `data`, if not None, replaces the bytes of the argument's buffer.
    """
    buffer = get_buffer(argument)
    if buffer is None:
        return argument
    memory = buffer.data if data is None else data
    if not isinstance(argument, TensorMap):
        return memory
    (rows, columns), size = buffer.shape, buffer.dtype.itemsize
    return SimulatedTensorMap(memory, rows, columns, columns * size, size, argument.box_rows)


def replace_buffer(argument: Argument, get_replacement: Callable[[SimulatedBuffer], SimulatedBuffer]) -> Argument:
    """Return an argument with another buffer; a value stays the same."""
    buffer = get_buffer(argument)
    if buffer is None:
        return argument
    other = get_replacement(buffer)
    return replace(argument, buffer=other) if isinstance(argument, TensorMap) else other


@dataclass(eq=False)
class SimulatorKernel:
    """A kernel for both executors; an edited kernel runs in the lockstep executor, which checks every access."""

    name: str
    lockstep: SimulatedKernel
    compiled: CompiledKernel
    edited: bool


class SimulatorModule:
    """A built kernel file."""

    def __init__(self, module: SimulatedModule, edited: bool) -> None:
        self._module = module
        self._edited = edited
        self._kernels: dict[str, SimulatorKernel] = {}

    def kernel(self, name: str) -> SimulatorKernel:
        if name not in self._kernels:
            lockstep, compiled = self._module.kernel(name), self._module.compiled_kernel(name)
            self._kernels[name] = SimulatorKernel(name, lockstep, compiled, self._edited)
        return self._kernels[name]

    def set_constant(self, name: str, values: Array) -> None:
        self._module.set_constant(name, values)


def list_descending_blocks(grid: Extent) -> list[range]:
    """Return the numbers of a grid's blocks, one by one, the last one first."""
    count = grid if isinstance(grid, int) else math.prod(grid)
    return [range(number, number + 1) for number in reversed(range(count))]


class SimulatorEngine(EngineSettings):
    """Runs kernels on the CPU, from the same text that is compiled for a GPU.

    Parameters
    ----------
    executor : str
        "compiled"; "lockstep", which checks every access; or "auto" for "compiled" except for edited kernels. Kernels
        that cannot be compiled run in lockstep, and `executor_choice` has the reason.
    schedule : str
        The schedule of the lockstep executor, one of `gpu.base.schedules.NAMES`; it may be changed between launches.
    """

    def __init__(self, executor: str = "auto", *, schedule: str = ROUND_ROBIN) -> None:
        super().__init__()
        self._executor = executor
        self.schedule = schedule
        self.decides_writes = False
        """Whether a kernel run in lockstep tests values of atomic or volatile reads, and writes by such accesses."""
        # Blocks for 16 multiprocessors fill a batch, and leave several iterations for grid-stride loops.
        self.device = Device(
            "simulator",
            processor_name(),
            "lockstep" if executor == "lockstep" else "compiled",
            LIMITS.threads,
            LIMITS.shared_bytes,
            16,
            peak_gflops(),
            "The simulator runs kernels from source, and libraries do not include the source of their kernels.",
            True,
        )
        self.executor_choice = ExecutorChoice(self.device.executor)
        self._modules: dict[tuple[Any, ...], SimulatedModule] = {}
        self._built_modules: dict[SimulatedModule, SimulatorModule] = {}
        self._times = {"upload": 0.0, "kernel": 0.0, "download": 0.0}

    def build(self, file: str, defines: Mapping[str, int | str] | None = None) -> Module:
        module = self.build_simulated_module(file, defines)
        if module not in self._built_modules:
            self._built_modules[module] = SimulatorModule(module, edited=file in self.sources)
        return self._built_modules[module]

    def build_simulated_module(self, file: str, defines: Mapping[str, int | str] | None = None) -> SimulatedModule:
        """Return the simulator's module of a kernel file, with kernels' parameters and the file's variables."""
        text = kernel_text(file, self.sources)
        key = (file, text, *sorted((defines or {}).items()))
        if key not in self._modules:
            with limit_resources():
                self._modules[key] = SimulatedModule(text, KERNELS / file, defines or {})
        return self._modules[key]

    def allocate(self, shape: Sequence[int], dtype: npt.DTypeLike) -> SimulatedBuffer:
        kind = np.dtype(dtype)
        size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
        try:
            return SimulatedBuffer(tuple(shape), kind, self._allocate_bytes(size))
        except MemoryError:
            raise LaunchError(
                f"There is not enough memory for an array of {size / 2**20:.0f} MB.",
                advice="Use a smaller input.",
            ) from None

    def _allocate_bytes(self, size: int) -> npt.NDArray[np.uint8]:
        memory = _allocate_aligned(size)
        memory.fill(POISON)
        return memory

    def upload(self, values: Array) -> SimulatedBuffer:
        with self._time_phase("upload"):
            data = _allocate_aligned(values.nbytes)
            data.view(values.dtype).reshape(values.shape)[...] = values
        return SimulatedBuffer(values.shape, values.dtype, data)

    def download(self, buffer: Buffer, count: int | None = None) -> Array:
        assert isinstance(buffer, SimulatedBuffer)
        with self._time_phase("download"):
            values = buffer.data.view(buffer.dtype)
            return (values.reshape(buffer.shape) if count is None else values[:count]).copy()

    def fill(self, buffer: Buffer, value: float) -> None:
        assert isinstance(buffer, SimulatedBuffer)
        with self._time_phase("kernel"):
            buffer.data.view(buffer.dtype).fill(value)

    def free(self, *buffers: Buffer) -> None:
        for buffer in buffers:
            assert isinstance(buffer, SimulatedBuffer)
            buffer.data = np.empty(0, np.uint8)

    def texture(self, buffer: Buffer) -> Buffer:
        return buffer  # the simulator's headers define a texture object as a pointer

    def launch(self, kernel: Kernel, grid: Extent, block: Extent, *arguments: Argument, shared_bytes: int = 0) -> None:
        assert isinstance(kernel, SimulatorKernel)
        values: list[Any] = [get_memory(argument) for argument in arguments]
        kernel.lockstep.check_launch(grid, block, shared_bytes, values)
        if self._try_compile(kernel, grid, block):
            with self._time_phase("kernel"):
                kernel.compiled.launch(grid, block, values, shared_bytes=shared_bytes, on_progress=self.on_progress)
            return
        self.decides_writes |= kernel.lockstep.traits.decides_writes
        with self._time_phase("kernel"):
            kernel.lockstep.launch(
                grid,
                block,
                values,
                shared_bytes=shared_bytes,
                on_progress=self.on_progress,
                schedule=self.schedule,
            )

    def call(self, routine: Routine, *buffers: Buffer) -> None:
        raise LaunchError(self.device.no_library)

    def _try_compile(self, kernel: SimulatorKernel, grid: Extent, block: Extent) -> bool:
        """Return whether the compiled executor runs a launch, and compile the kernel if necessary."""
        if self._executor == "lockstep":
            return False
        if self._executor == "auto" and kernel.edited:
            self.executor_choice = ExecutorChoice("lockstep", "every access of an edited kernel is checked")
            return False
        try:
            kernel.compiled.prepare(grid, block, lambda: self.on_compiling(kernel.name))
        except UnsupportedKernel as reason:
            self.executor_choice = ExecutorChoice(
                "lockstep", f"{kernel.name} has {reason}, which the compiled executor does not support"
            )
            return False
        return True

    def take_times(self) -> PhaseTimes:
        times = PhaseTimes(self._times["upload"], self._times["kernel"], self._times["download"])
        self._times = dict.fromkeys(self._times, 0.0)
        self.executor_choice = ExecutorChoice(self.device.executor)
        return times

    def launch_ms(self) -> float:
        return 0.0

    def close(self) -> None:
        self._modules.clear()
        self._built_modules.clear()

    @contextmanager
    def _time_phase(self, phase: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self._times[phase] += 1e3 * (time.perf_counter() - start)


def _allocate_aligned(size: int) -> npt.NDArray[np.uint8]:
    """Return memory with the alignment of cudaMalloc, so that long vectors do not cross cache lines."""
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start : start + size]
