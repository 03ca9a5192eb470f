"""A simulator engine with one observer of every launch."""

from __future__ import annotations

from collections.abc import Mapping

from gpu.engines.base import Argument, Extent, Kernel
from gpu.engines.simulator import SimulatorEngine, get_memory
from gpu.simulator.executor.launch import SimulatedKernel
from gpu.simulator.executor.state.observer import Observer
from gpu.simulator.simulated_module import SimulatedModule


class ObservedEngine(SimulatorEngine):
    """Runs a host program in the lockstep executor with an observer."""

    def __init__(self, observer: Observer) -> None:
        super().__init__("lockstep")
        self._observer = observer

    def build(self, file: str, defines: Mapping[str, int | str] | None = None) -> SimulatedModule:
        return self.build_simulated_module(file, defines)

    def launch(self, kernel: Kernel, grid: Extent, block: Extent, *arguments: Argument, shared_bytes: int = 0) -> None:
        assert isinstance(kernel, SimulatedKernel)
        values = [get_memory(argument) for argument in arguments]
        kernel.launch(
            grid,
            block,
            values,
            shared_bytes=shared_bytes,
            on_progress=self.on_progress,
            observers=(self._observer,),
        )
