"""The timing model's inner loops, `*.cu` in this folder: run as machine code by the simulator's compiled executor."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu.simulator.compiled.launch import CompiledKernel
from gpu.simulator.simulated_module import SimulatedModule

Array = npt.NDArray[Any]


@cache
def _compile_kernel(name: str) -> CompiledKernel:
    path = Path(__file__).with_name(f"{name}.cu")
    return SimulatedModule(path.read_text("utf-8"), path, {}).compiled_kernel(name)


def run_kernel(name: str, *arguments: Array | np.generic) -> None:
    """Run a kernel in one thread, with scalars and arrays, which it changes in place."""
    buffers = [
        argument.reshape(-1).view(np.uint8) if isinstance(argument, np.ndarray) else argument for argument in arguments
    ]
    _compile_kernel(name).launch((1, 1, 1), (1, 1, 1), buffers)
