"""An engine that says it is a GPU, and whose times a test decides."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from gpu.engines.base import PhaseTimes
from gpu.engines.simulator import SimulatorEngine


class FakeGpu(SimulatorEngine):
    """The simulator in a GPU's place: launches take the times it is given, and what follows another waits 0.5 ms."""

    def __init__(self, *kernels: float) -> None:
        super().__init__("lockstep")
        self.device = replace(self.device, engine="cuda", executor="gpu", name="Pretended", multiprocessors=8)
        self._kernels = iter(kernels) if kernels else count(1.0)
        self._pending = PhaseTimes()
        self.launch_count = 0
        self.modes: list[bool] = []

    def launch(self, kernel, grid, block, *arguments, shared_bytes=0) -> None:
        super().launch(kernel, grid, block, *arguments, shared_bytes=shared_bytes)
        follows = self._pending.launches > 0 and not self.isolates_launches
        self._pending += PhaseTimes(kernel=next(self._kernels), launches=1, gaps=0.5 if follows else 0.0)
        self.launch_count += 1
        self.modes.append(self.isolates_launches)

    def take_times(self) -> PhaseTimes:
        taken, self._pending = self._pending, PhaseTimes()
        return taken

    def launch_ms(self) -> float:
        return 0.25
