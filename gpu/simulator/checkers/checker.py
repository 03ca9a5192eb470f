"""Base class of the checkers: an observer that collects findings."""

from __future__ import annotations

from gpu.base.findings import Finding
from gpu.simulator.executor.state.observer import Observer


class Checker(Observer):
    """Observe launches and collect findings."""

    @property
    def findings(self) -> list[Finding]:
        """The findings so far, in order of detection."""
        raise NotImplementedError
