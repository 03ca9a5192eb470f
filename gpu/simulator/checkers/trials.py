"""Findings of trials: runs of the first blocks in other schedules, for kernels whose lanes wait for others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gpu.base.findings import Finding
from gpu.simulator.checkers.checker import Checker
from gpu.simulator.executor.launch import TRIAL_SCHEDULES


def select_trial_findings(trial: Checker, findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings of trials at source positions without findings of the launch, with the schedules' names."""
    known = {frozenset((position.file, position.line) for position in finding.positions) for finding in findings}
    return [
        replace(finding, message=f"{finding.message} It occurs with --schedule {' or '.join(TRIAL_SCHEDULES)}.")
        for finding in trial.findings
        if frozenset((position.file, position.line) for position in finding.positions) not in known
    ]
