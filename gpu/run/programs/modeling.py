"""How long a program's launches would take on a GPU that is described, modeled as they are made."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpu.driver.memory import GlobalMemory
from gpu.errors import LockstepError
from gpu.simulator.executor.pointers import PointerValue
from gpu.simulator.module import SimulatedModule
from gpu.timing.gpus import find_gpu
from gpu.timing.kernels import ModeledFile, modeled_file
from gpu.timing.ptx.running import GridShape

SECONDS = 3.0
"""By the clock, that modeling may take of a run; launches after that have no modeled time."""

Extents = tuple[int, int, int]


class LaunchModeler:
    """Models launches; those of the same kernel in the same shape are modeled once.

    Parameters
    ----------
    gpu : str
        A key, as of `gpu.timing.gpus.find_gpu`.
    """

    def __init__(self, gpu: str) -> None:
        self._gpu = find_gpu(gpu)
        self._files: dict[int, tuple[SimulatedModule, ModeledFile]] = {}
        self._known: dict[tuple[int, str, GridShape], float | None] = {}
        self._spent = 0.0

    def __call__(
        self, module: SimulatedModule, kernel: str, grid: Extents, block: Extents, shared: int, values: Sequence[Any]
    ) -> float | None:
        """Return the microseconds of a launch that is about to be made; None where the model does not follow it."""
        shape = GridShape(grid, block, shared)
        key = id(module), kernel, shape
        if key not in self._known:
            if self._spent > SECONDS:
                return None
            begun = time.monotonic()
            try:
                self._known[key] = self._estimate(module, kernel, shape, values)
            except (LockstepError, ArithmeticError, IndexError, KeyError, TypeError, ValueError):
                self._known[key] = None  # a program is run all the same
            self._spent += time.monotonic() - begun
        return self._known[key]

    def _estimate(self, module: SimulatedModule, kernel: str, shape: GridShape, values: Sequence[Any]) -> float:
        if id(module) not in self._files:
            # The module is kept: its number would be another's.
            self._files[id(module)] = module, modeled_file("", self._gpu, {}, (), kernel, module, nvcc=False)
        _, file = self._files[id(module)]
        for name, data in module.values().items():
            file.set_variable(name, data)
        return file.estimate(kernel, shape, [_given(value) for value in values]).time_us


def _given(value: Any) -> Any:
    """Return a launch's argument as the model takes it."""
    if not isinstance(value, PointerValue):
        return value
    memory = value.memory
    if not isinstance(memory, GlobalMemory):
        return None
    return memory.data[int(np.asarray(value.offset).flat[0]) :]
