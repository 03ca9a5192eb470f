"""Modeled times of a program's launches on a described GPU, computed as they happen."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpu.base.errors import LockstepError
from gpu.hosts.driver.memory import GlobalMemory, address_of
from gpu.simulator.executor.state.memory import FlatMemory
from gpu.simulator.executor.state.pointers import PointerValue, to_pointer
from gpu.simulator.simulated_module import SimulatedModule
from gpu.timing.gpus import GpuDescription
from gpu.timing.kernels import ModeledFile, compile_with_llvm
from gpu.timing.launch import LaunchEstimate
from gpu.timing.ptx.memory import WINDOW_BITS, Window
from gpu.timing.ptx.sampled_blocks import GridShape

TIME_LIMIT_S = 3.0
"""Seconds of computing for modeling in a run, compilers included; later launches have no modeled time."""

Extents = tuple[int, int, int]


class LaunchModeler:
    """Models launches, once per kernel and shape."""

    def __init__(self, gpu: GpuDescription, *, imitates_nvcc: bool = True) -> None:
        self._gpu = gpu
        self._imitates_nvcc = imitates_nvcc
        self._files: dict[int, tuple[SimulatedModule, ModeledFile]] = {}
        self._times: dict[tuple[int, str, GridShape], float | None] = {}
        self._elapsed_s = 0.0

    def __call__(
        self, module: SimulatedModule, kernel: str, grid: Extents, block: Extents, shared: int, values: Sequence[Any]
    ) -> float | None:
        """Return the microseconds of a launch before it runs; None if the timing model does not support it."""
        shape = GridShape(grid, block, shared)
        key = id(module), kernel, shape
        if key not in self._times:
            if self._elapsed_s > TIME_LIMIT_S:
                return None
            start = sum(os.times()[:4])
            try:
                self._times[key] = self.estimate_launch(module, kernel, shape, values).time_us
            except (LockstepError, ArithmeticError, IndexError, KeyError, TypeError, ValueError):
                self._times[key] = None  # an error of the model must not stop the program
            self._elapsed_s += sum(os.times()[:4]) - start
        return self._times[key]

    def estimate_launch(
        self, module: SimulatedModule, kernel: str, shape: GridShape, values: Sequence[Any]
    ) -> LaunchEstimate:
        """Predict a launch with the current contents of memory.

        Raises
        ------
        LockstepError
            The timing model does not support the kernel.
        """
        if id(module) not in self._files:
            # Keep a reference to the module, or another one could get the same id.
            self._files[id(module)] = module, compile_with_llvm(module, self._gpu, imitates_nvcc=self._imitates_nvcc)
        _, file = self._files[id(module)]
        for name, data in module.read_variables().items():
            file.set_variable(name, data)
        return file.estimate_launch(kernel, shape, [_to_model_argument(value) for value in values], _find_window)


def _to_model_argument(value: Any) -> Any:
    """Return a launch's argument in the form that the timing model needs: addresses as the program's, if possible."""
    if not isinstance(value, PointerValue):
        return value
    memory = value.memory
    if not isinstance(memory, GlobalMemory):
        return None
    if _find_window(address_of(memory) >> WINDOW_BITS):
        return value.number()
    return memory.data[int(np.asarray(value.offset).flat[0]) :]


def _find_window(number: int) -> Window | None:
    """Return the device memory with addresses of its own in a window; the host's addresses share windows."""
    start = 1 << WINDOW_BITS - 1  # where the simulator's pointers to a memory's first byte are
    pointer = to_pointer(np.int64((number << WINDOW_BITS) + start))
    memory = pointer.memory if pointer.offset == 0 else None
    return Window(memory.data, start) if isinstance(memory, FlatMemory) else None
