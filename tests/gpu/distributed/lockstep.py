"""The simulator that compiles nothing, as workers are told to make it; it can be lost as a GPU can."""

from __future__ import annotations

from pathlib import Path

from gpu.engines.simulator import SimulatorEngine
from gpu.errors import EngineLostError

LOSE = "lose"
"""Among a run's sources: a file, and who removes it first has an engine that is lost at its next launch."""


class LockstepEngine(SimulatorEngine):
    def __init__(self) -> None:
        super().__init__("lockstep")

    def launch(self, kernel, grid, block, *arguments, shared_bytes=0):
        if LOSE in self.sources and Path(self.sources[LOSE]).exists():
            Path(self.sources[LOSE]).unlink(missing_ok=True)
            raise EngineLostError("An illegal address was met.")
        super().launch(kernel, grid, block, *arguments, shared_bytes=shared_bytes)
