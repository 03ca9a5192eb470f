"""Running one kernel of a source text on the simulator, with NumPy arrays in and out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gpu.simulator.simulated_module import SimulatedModule

Array = np.ndarray[Any, Any]
Extent = int | Sequence[int]


def build(source: str, defines: Mapping[str, int | str] | None = None) -> SimulatedModule:
    """Parse a source text as if it were the file test.cu."""
    return SimulatedModule(source, Path("test.cu"), defines or {})


def run_kernel(
    source: str,
    kernel: str,
    *arguments: Any,
    grid: Extent = 1,
    block: Extent = 32,
    shared_bytes: int = 0,
    defines: Mapping[str, int | str] | None = None,
) -> list[Array]:
    """Launch a kernel and return what it leaves in each of its array arguments, in order; the arguments stay as are."""
    return launch(build(source, defines), kernel, *arguments, grid=grid, block=block, shared_bytes=shared_bytes)


def launch(
    module: SimulatedModule,
    kernel: str,
    *arguments: Any,
    grid: Extent = 1,
    block: Extent = 32,
    shared_bytes: int = 0,
) -> list[Array]:
    """Launch a kernel of a module, which keeps its `__device__` variables from launch to launch."""
    arrays = {place: np.array(given, order="C") for place, given in enumerate(arguments) if _is_array(given)}
    memories = {place: array.reshape(-1).view(np.uint8) for place, array in arrays.items()}
    bound = [memories.get(place, given) for place, given in enumerate(arguments)]
    module.kernel(kernel).launch(
        _to_three_dimensions(grid), _to_three_dimensions(block), bound, shared_bytes=shared_bytes
    )
    return list(arrays.values())


def _is_array(argument: Any) -> bool:
    return isinstance(argument, np.ndarray)


def _to_three_dimensions(extent: Extent) -> tuple[int, ...]:
    extents = (extent,) if isinstance(extent, int) else tuple(extent)
    return extents + (1,) * (3 - len(extents))
