"""Checks of the launches of a test suite: each finding fails the test that launched the kernel."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Generator, Sequence
from types import ModuleType

import pytest

from gpu.base.errors import LockstepError
from gpu.cli.user_code.launches import find_distinct_findings, format_findings
from gpu.hosts.cupy import installation
from gpu.hosts.cupy.forwarding import format_forwarded_functions
from gpu.hosts.driver.journal import Journal, set_current_journal
from gpu.hosts.pycuda import driver


class _PycudaFinder(importlib.abc.MetaPathFinder):
    """Installer of PyCUDA's replacement at its first import, since suites that use CuPy only need no files of it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != "pycuda":
            return None
        sys.meta_path.remove(self)
        try:
            driver.fetch_missing_files(lambda line: print(line, file=sys.stderr, flush=True))
            driver.install()
        except LockstepError as error:
            raise ImportError(f"{error.message} {error.advice}".rstrip(), name=fullname) from None
        return importlib.util.find_spec(fullname)


class LaunchChecks:
    """Plugin of pytest that puts the simulator in PyCUDA's and CuPy's place and checks every launch."""

    def __init__(self) -> None:
        self._journal = Journal(checked=True)
        self._reported = 0
        set_current_journal(self._journal)
        sys.meta_path.insert(0, _PycudaFinder())
        installation.install()

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name the functions of CuPy that NumPy computed."""
        if line := format_forwarded_functions():
            terminalreporter.write_line(line)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self) -> Generator[None, object, object]:
        """Let findings in fixtures fail the setup."""
        return (yield from self._fail_on_findings())

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, object, object]:
        """Let findings fail a test; one that is expected to fail then does."""
        return (yield from self._fail_on_findings())

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self) -> Generator[None, object, object]:
        """Let findings in fixtures fail the teardown."""
        return (yield from self._fail_on_findings())

    def _fail_on_findings(self) -> Generator[None, object, object]:
        result = yield
        if text := self._take_findings():
            pytest.fail(text, pytrace=False)
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Add the findings of a phase that failed anyway."""
        report = yield
        if text := self._take_findings():
            report.sections.append(("Lockstep's findings", text))
        return report

    def _take_findings(self) -> str:
        """Return the findings since the last call; "" if there are none."""
        entries = self._journal.entries[self._reported :]
        self._reported = len(self._journal.entries)
        findings = find_distinct_findings(entries)
        return "\n".join(format_findings(self._journal, findings)).strip() if findings else ""
