"""Base class of the checkers: an observer that collects findings."""

from __future__ import annotations

from gpu.findings import Finding
from gpu.simulator.executor.observer import Observer


class Checker(Observer):
    """Observe launches and collect findings."""

    @property
    def findings(self) -> list[Finding]:
        """The findings so far, in order of detection."""
        raise NotImplementedError
