"""Base class of the checkers: an observer that collects findings."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from gpu.base.findings import Finding
from gpu.simulator.executor.state.observer import Observer


class Checker(Observer):
    """Observe launches and collect findings, one for each key of the subclass, such as a source line."""

    def __init__(self) -> None:
        self._findings: dict[Hashable, Finding] = {}

    @property
    def findings(self) -> list[Finding]:
        """The findings so far, in order of detection."""
        return list(self._findings.values())

    @property
    def has_findings(self) -> bool:
        return bool(self.findings)

    def _count_again(self, key: Hashable, count: int) -> bool:
        """Add to the count of the finding with a key; return whether there is one."""
        known = self._findings.get(key)
        if known is not None:
            self._findings[key] = replace(known, count=known.count + count)
        return known is not None
