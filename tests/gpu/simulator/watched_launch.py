"""Launching one kernel of a source text with a checker that watches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpu.base.findings import Finding
from gpu.engines.simulator import SimulatedBuffer, SimulatorEngine
from gpu.simulator.executor.launch import SimulatedKernel
from gpu.simulator.executor.state.observer import Observer
from gpu.simulator.simulated_module import SimulatedModule
from tests.gpu.simulator.kernel_runner import build

Array = np.ndarray[Any, Any]
Extent = int | Sequence[int]


class WatchedEngine(SimulatorEngine):
    """An engine that lets observers watch every launch."""

    def __init__(self, *observers: Observer) -> None:
        super().__init__()
        self._observers = observers

    def build(self, file: str, defines: Any = None) -> Any:
        return self.build_simulated_module(file, defines)

    def launch(self, kernel: Any, grid: Any, block: Any, *arguments: Any, shared_bytes: int = 0) -> None:
        assert isinstance(kernel, SimulatedKernel)
        values = [argument.data if isinstance(argument, SimulatedBuffer) else argument for argument in arguments]
        kernel.launch(grid, block, values, shared_bytes=shared_bytes, observers=self._observers)


def launch_watched(
    observer: Observer,
    source: str | SimulatedModule,
    *arguments: Any,
    kernel: str = "f",
    grid: Extent = 1,
    block: Extent = 32,
    shared_bytes: int = 0,
    defines: Mapping[str, int | str] | None = None,
    **options: Any,
) -> None:
    """Launch a kernel; arrays among the arguments are changed in place."""
    module = build(source, defines) if isinstance(source, str) else source
    bound = [given.reshape(-1).view(np.uint8) if isinstance(given, np.ndarray) else given for given in arguments]
    options |= {"shared_bytes": shared_bytes, "observers": [observer]}
    module.kernel(kernel).launch(_to_three_dimensions(grid), _to_three_dimensions(block), bound, **options)


def finding_lines(findings: Sequence[Finding]) -> list[tuple[int, ...]]:
    """Return the lines of each finding, sorted."""
    return sorted(tuple(sorted(position.line for position in finding.positions)) for finding in findings)


def _to_three_dimensions(extent: Extent) -> tuple[int, ...]:
    extents = (extent,) if isinstance(extent, int) else tuple(extent)
    return extents + (1,) * (3 - len(extents))
