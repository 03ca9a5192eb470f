"""The simulator that compiles nothing, as workers are told to make it."""

from __future__ import annotations

from gpu.engines.simulator import SimulatorEngine


class LockstepEngine(SimulatorEngine):
    def __init__(self) -> None:
        super().__init__("lockstep")
