"""An engine that predicts the time of each launch of a host program on a described GPU, by the timing model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.base.devices.architecture import explain_missing_warpgroups
from gpu.base.paths import KERNELS
from gpu.engines.base import Argument, Array, Buffer, Extent, Kernel, inline_headers, kernel_text
from gpu.engines.simulator import (
    SimulatedBuffer,
    SimulatorEngine,
    SimulatorKernel,
    get_buffer,
    get_memory,
    replace_buffer,
)
from gpu.timing.compiler import MachineKernel
from gpu.timing.gpus import GpuDescription
from gpu.timing.kernels import ModeledFile, compile_modeled_file, compile_with_llvm
from gpu.timing.launch import LaunchEstimate
from gpu.timing.ptx.sampled_blocks import GridShape
from gpu.timing.timeline import LaunchTimelines

_MAX_LANE_INSTRUCTIONS = 2e9
"""Limit on lane instructions that are executed here, so that later launches read correct values."""
_MAX_BYTES = 256 << 20
"""Limit on the size of the arrays of a launch that is executed here."""
_RESULT_BYTES = 64 << 10
"""Longer downloads are final results, on which no host program's control flow depends."""

LONGEST_LAUNCH = -1


@dataclass(frozen=True)
class ModeledLaunch:
    """A launch and its modeled time.

    Parameters
    ----------
    estimate : LaunchEstimate or None
        None for a fill.
    file : str
        The kernel file.
    code : MachineKernel or None
        The assembled kernel; None if there is no assembler.
    """

    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    time_us: float
    estimate: LaunchEstimate | None = None
    file: str = ""
    code: MachineKernel | None = None


@dataclass(eq=False)
class ModeledKernel:
    """A simulator kernel, and the timing model's file that contains it."""

    name: str
    simulated: SimulatorKernel
    file: ModeledFile


class ModeledModule:
    """A built kernel file."""

    def __init__(self, simulated: Any, file: ModeledFile) -> None:
        self._simulated = simulated
        self._file = file

    def kernel(self, name: str) -> ModeledKernel:
        return ModeledKernel(name, self._simulated.kernel(name), self._file)

    def set_constant(self, name: str, values: Array) -> None:
        self._simulated.set_constant(name, values)
        self._file.set_variable(name, values)


class ModelingEngine(SimulatorEngine):
    """Runs host programs and models each launch; it executes only launches with results that are needed.

    Final results are zeros. An uploaded buffer shares the host's array until an executed launch may change it, so that
    gigabytes of input need no second copy.

    Parameters
    ----------
    gpu : GpuDescription
        The modeled GPU. Host programs see its number of multiprocessors.
    timeline_launch : int or None
        Index of the launch for `timelines`, fills included; LONGEST for the launch with the longest time.
    nvcc : bool
        Whether the timing model may use nvcc if it is installed.

    Attributes
    ----------
    launches : list of ModeledLaunch
        In order, including fills.
    all_executed : bool
        Whether every launch read the actual results of the launches before it.
    source : str
        Source of the register counts: "sass" or "ir".
    timelines : LaunchTimelines or None
        The requested timelines, after that launch.
    timed_launch : int
        Index of their launch.
    """

    def __init__(self, gpu: GpuDescription, timeline_launch: int | None = None, *, nvcc: bool = True) -> None:
        super().__init__("compiled")
        # The timing model does not support clusters, so host programs must not use them.
        self.device = replace(
            self.device,
            name=gpu.name,
            multiprocessors=gpu.multiprocessors,
            has_clusters=False,
            no_warpgroups=explain_missing_warpgroups(gpu.capability),
            shared_bytes_opt_in=gpu.shared_bytes - gpu.shared_reserved_bytes,
        )
        self._gpu = gpu
        self._timeline_launch = timeline_launch
        self._nvcc = nvcc
        self.timelines: LaunchTimelines | None = None
        self.timed_launch = 0
        self.launches: list[ModeledLaunch] = []
        self.all_executed = True
        self.source = "sass"
        self._files: dict[tuple[Any, ...], ModeledModule] = {}
        self._pending: Callable[[], None] | None = None
        self._executed_instructions = 0.0
        self._has_skipped_launch = False
        self._host_backed_buffers: set[SimulatedBuffer] = set()
        self._estimate_cache: dict[tuple[Any, ...], tuple[int, LaunchEstimate]] = {}

    def build(self, file: str, defines: Mapping[str, int | str] | None = None) -> Any:
        text = kernel_text(file, self.sources)
        key = (file, text, *sorted((defines or {}).items()))
        if key not in self._files:
            plain = self.build_simulated_module(file, defines)
            lines = self._timeline_launch is not None
            if self._nvcc:
                modeled = compile_modeled_file(inline_headers(file, text), self._gpu, [KERNELS], plain, lines=lines)
            else:
                modeled = compile_with_llvm(plain, self._gpu, lines=lines)
            self.source = modeled.source
            self._files[key] = ModeledModule(super().build(file, defines), modeled)
        return self._files[key]

    def _allocate_bytes(self, size: int) -> npt.NDArray[np.uint8]:
        return np.zeros(size, np.uint8)  # the system allocates pages only when they are written

    def upload(self, values: Array) -> SimulatedBuffer:
        flags, address = values.flags, values.ctypes.data
        if not (flags.c_contiguous and flags.writeable) or any(
            host_backed_buffer.data.ctypes.data == address for host_backed_buffer in self._host_backed_buffers
        ):
            return super().upload(values)
        buffer = SimulatedBuffer(values.shape, values.dtype, values.reshape(-1).view(np.uint8))
        self._host_backed_buffers.add(buffer)
        return buffer

    def free(self, *buffers: Buffer) -> None:
        super().free(*buffers)
        self._host_backed_buffers.difference_update(buffers)

    def fill(self, buffer: Buffer, value: float) -> None:
        self._run_pending_launch()
        assert isinstance(buffer, SimulatedBuffer)
        if buffer in self._host_backed_buffers:
            buffer.data = np.empty_like(buffer.data)
            self._host_backed_buffers.remove(buffer)
        super().fill(buffer, value)
        time = self._gpu.launch_us * 0.7 + min(buffer.data.size / 750.0, 1.0e9) / 1e3
        time = min(time, self._gpu.launch_us + buffer.data.size / self._gpu.memory_gb_s / 1e3)
        self.launches.append(ModeledLaunch("fill", (buffer.data.size, 1, 1), (1, 1, 1), time))

    def launch(self, kernel: Kernel, grid: Extent, block: Extent, *arguments: Argument, shared_bytes: int = 0) -> None:
        assert isinstance(kernel, ModeledKernel)
        self._run_pending_launch()
        self.all_executed &= not self._has_skipped_launch
        shape = GridShape(_pad_extents(grid), _pad_extents(block), shared_bytes)
        key = (kernel.name, id(kernel.file), shape)
        count, estimate = self._estimate_cache.get(key, (0, None))
        if estimate is None or count & (count - 1) == 0:
            values = [get_memory(argument) for argument in arguments]
            estimate = kernel.file.estimate_launch(kernel.name, shape, values)
        self._estimate_cache[key] = count + 1, estimate
        if self._is_timed(estimate):
            values = [get_memory(argument) for argument in arguments]
            self.timelines = kernel.file.build_timelines(kernel.name, shape, values, estimate.time_us)
            self.timed_launch = len(self.launches)
        code = kernel.file.machine_kernel(kernel.name)
        self.launches.append(
            ModeledLaunch(kernel.name, shape.grid, shape.block, estimate.time_us, estimate, kernel.file.name, code)
        )
        work = estimate.instructions * 32
        buffers = [buffer for buffer in map(get_buffer, arguments) if buffer is not None]
        size = sum(buffer.data.size for buffer in buffers)
        runs = shared_bytes <= self.device.shared_bytes_per_block
        if not runs or self._executed_instructions + work > _MAX_LANE_INSTRUCTIONS or size > _MAX_BYTES:
            self._has_skipped_launch = True
            return
        # A host program may free the arguments before the launch is executed here.
        copies = {buffer: replace(buffer) for buffer in buffers}
        copied = [replace_buffer(argument, copies.__getitem__) for argument in arguments]
        host_backed = self._host_backed_buffers.intersection(buffers)

        def run() -> None:
            self._executed_instructions += work
            for buffer in host_backed:
                copies[buffer].data = copies[buffer].data.copy()
                if buffer in self._host_backed_buffers:  # it is not freed
                    buffer.data = copies[buffer].data
                    self._host_backed_buffers.remove(buffer)
            super(ModelingEngine, self).launch(kernel.simulated, grid, block, *copied, shared_bytes=shared_bytes)

        self._pending = run

    def _is_timed(self, estimate: LaunchEstimate) -> bool:
        if self._timeline_launch != LONGEST_LAUNCH:
            return self._timeline_launch == len(self.launches)
        return all(estimate.time_us > launch.time_us for launch in self.launches if launch.estimate is not None)

    def download(self, buffer: Buffer, count: int | None = None) -> Array:
        assert isinstance(buffer, SimulatedBuffer)
        shape = buffer.shape if count is None else (count,)
        if int(np.prod(shape, dtype=np.int64)) * buffer.dtype.itemsize > _RESULT_BYTES:
            return np.zeros(shape, buffer.dtype)
        self._run_pending_launch()
        return super().download(buffer, count)

    def _run_pending_launch(self) -> None:
        """Execute the pending launch, because its results are needed now."""
        if self._pending is not None:
            run, self._pending = self._pending, None
            run()


def _pad_extents(extents: Extent) -> tuple[int, int, int]:
    x, y, z = (*map(int, extents), 1, 1)[:3]
    return x, y, z
