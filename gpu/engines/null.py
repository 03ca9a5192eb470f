"""An engine that runs nothing, to test the window and the engine's process without kernels; downloads are zeros."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.engines.base import (
    Argument,
    Array,
    Buffer,
    Device,
    EngineSettings,
    ExecutorChoice,
    Extent,
    Kernel,
    PhaseTimes,
    Routine,
)


@dataclass(frozen=True)
class NullKernel:
    """A kernel's name without code."""

    name: str


class NullModule:
    """A module in which every kernel and every constant exists."""

    def kernel(self, name: str) -> NullKernel:
        return NullKernel(name)

    def set_constant(self, name: str, values: Array) -> None:
        pass


class NullEngine(EngineSettings):
    """Returns immediately from every call of the Engine protocol; downloads are zeros."""

    def __init__(self) -> None:
        super().__init__()
        self.device = Device("null", "no device", "null", 1024, 48 * 1024, 1)
        self.executor_choice = ExecutorChoice("null")

    def build(self, file: str, defines: Mapping[str, int | str] | None = None) -> NullModule:
        return NullModule()

    def allocate(self, shape: Sequence[int], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        return np.zeros(tuple(shape), dtype)

    def upload(self, values: Array) -> npt.NDArray[Any]:
        return np.zeros_like(values)

    def download(self, buffer: Buffer, count: int | None = None) -> Array:
        return np.zeros(buffer.shape if count is None else (count,), buffer.dtype)

    def fill(self, buffer: Buffer, value: float) -> None:
        pass

    def free(self, *buffers: Buffer) -> None:
        pass

    def texture(self, buffer: Buffer) -> Buffer:
        return buffer

    def launch(self, kernel: Kernel, grid: Extent, block: Extent, *arguments: Argument, shared_bytes: int = 0) -> None:
        pass

    def call(self, routine: Routine, *buffers: Buffer) -> None:
        pass

    def take_times(self) -> PhaseTimes:
        return PhaseTimes()

    def launch_ms(self) -> float:
        return 0.0

    def close(self) -> None:
        pass
