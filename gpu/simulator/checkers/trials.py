"""Findings of runs in other orders: trials of the first blocks, and runs in other schedules."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gpu.base.findings import Finding
from gpu.simulator.checkers.checker import Checker


def select_trial_findings(trial: Checker, findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings of trials at source positions without findings of the launch."""
    return _select_new_findings(trial.findings, findings)


def collect_findings(checkers: Iterable[Checker], trial: Checker | None) -> list[Finding]:
    """Return the findings of a launch's checkers, and those of its trials, if it had any, at other positions."""
    found = [finding for checker in checkers for finding in checker.findings]
    return found + (select_trial_findings(trial, found) if trial is not None else [])


def select_schedule_findings(found: Iterable[Finding], known: Iterable[Finding], schedule: str) -> list[Finding]:
    """Return the findings of a run in a schedule at source positions without known findings; each names the schedule.

    A run that exceeds a limit shows no error of the kernel, as another order may take longer.
    """
    new = (finding for finding in found if finding.kind != "unfinished")
    return [
        replace(finding, message=f"{finding.message.removesuffix('.')}. It occurs with --schedule {schedule}.")
        for finding in _select_new_findings(new, known)
    ]


def _select_new_findings(found: Iterable[Finding], known: Iterable[Finding]) -> list[Finding]:
    places = {_find_places(finding) for finding in known}
    return [finding for finding in found if _find_places(finding) not in places]


def _find_places(finding: Finding) -> frozenset[tuple[str, int]]:
    return frozenset(position.line_key for position in finding.positions)
