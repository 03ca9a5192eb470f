"""Checks of the launches of a test suite: each finding fails the test that launched the kernel."""

from __future__ import annotations

import sys
from collections.abc import Generator

import pytest

from gpu.cli.user_code.launches import find_distinct_findings, format_findings
from gpu.hosts.driver.journal import Journal, set_current_journal
from gpu.hosts.pycuda import driver


class LaunchChecks:
    """Plugin of pytest that puts the simulator in PyCUDA's place and checks every launch.

    Raises
    ------
    EngineUnavailableError
        PyCUDA's Python files are missing and cannot be fetched.
    """

    def __init__(self) -> None:
        driver.fetch_missing_files(lambda line: print(line, file=sys.stderr, flush=True))
        self._journal = Journal(checked=True)
        self._reported = 0
        set_current_journal(self._journal)
        driver.install()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Add the findings since the last report; they fail a test, a fixture too, that succeeded otherwise."""
        report = yield
        entries = self._journal.entries[self._reported :]
        self._reported = len(self._journal.entries)
        findings = find_distinct_findings(entries)
        if findings:
            text = "\n".join(format_findings(self._journal, findings)).strip()
            if report.passed:
                report.outcome, report.longrepr = "failed", text
            else:
                report.sections.append(("Lockstep's findings", text))
        return report
