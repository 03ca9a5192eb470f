"""Findings of trials: runs of the first blocks in other orders, if lanes wait for others or test flags."""

from __future__ import annotations

from collections.abc import Iterable

from gpu.base.findings import Finding
from gpu.simulator.checkers.checker import Checker


def select_trial_findings(trial: Checker, findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings of trials at source positions without findings of the launch."""
    known = {frozenset(position.line_key for position in finding.positions) for finding in findings}
    return [
        finding
        for finding in trial.findings
        if frozenset(position.line_key for position in finding.positions) not in known
    ]
