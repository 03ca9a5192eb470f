"""What every checker is: an observer that knows what it has found."""

from __future__ import annotations

from gpu.simulator.checkers.findings import Finding
from gpu.simulator.executor.observe import Observer


class Checker(Observer):
    """Finds mistakes by watching launches."""

    @property
    def findings(self) -> list[Finding]:
        """What was found so far, in the order in which it was."""
        raise NotImplementedError
