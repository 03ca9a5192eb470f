"""Check at the end of a session that the tests left no process and no file behind, and remove its temporary ones."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
import uuid
from pathlib import Path

import pytest

from gpu.base.paths import ROOT

PATIENCE_S = 20.0
"""How long a process that is ending may take; the host's guard, for one, removes files after its host has ended."""
_MEMORY = Path("/dev/shm")
_USER_FOLDERS = ("~/.config", "~/.cache", "~/.local/share")


class LeftoversPlugin:
    """Gives the session temporary folders and an environment mark, and looks for what is left of both at its end.

    Registered in the process that reports, before it starts workers: they and all their children inherit the folders
    and the mark.
    """

    def __init__(self) -> None:
        self.problems: list[str] = []
        self._mark = f"LOCKSTEP_TESTS={uuid.uuid4().hex}"
        self._folders = [Path(tempfile.mkdtemp(prefix="lockstep-tests-"))]
        os.environ["PYTEST_DEBUG_TEMPROOT"] = str(self._folders[0].parent)  # pytest keeps its folders of three runs
        for name in ("TMPDIR", "TEMP", "TMP"):
            os.environ[name] = str(self._folders[0])
        tempfile.tempdir = None
        if _MEMORY.is_dir() and "LOCKSTEP_MEMORY" not in os.environ:
            self._folders.append(Path(tempfile.mkdtemp(prefix="lockstep-tests-", dir=_MEMORY)))
            os.environ["LOCKSTEP_MEMORY"] = str(self._folders[1])
        for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
            os.environ[name] = str(self.folder)
        os.environ["LOCKSTEP_SETTINGS"] = str(self.folder / "settings.json")
        name, value = self._mark.split("=")
        os.environ[name] = value
        self._before = _checkout_and_user_files()

    @property
    def folder(self) -> Path:
        """The session's temporary folder."""
        return self._folders[0]

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        deadline = time.monotonic() + PATIENCE_S
        looks_without = 0
        # While a process executes its program, its environment is empty for a moment: look twice.
        while looks_without < 2 and time.monotonic() < deadline:
            looks_without = 0 if find_marked_processes(self._mark) else looks_without + 1
            time.sleep(0.1)
        self.problems = [f"process {line}" for line in find_marked_processes(self._mark)]
        self.problems += sorted(_checkout_and_user_files() - self._before)
        # Processes that tests kill leave files in the session's folders, such as clang's preambles.
        for folder in self._folders:
            shutil.rmtree(folder, ignore_errors=True)
        if self.problems and session.exitstatus == 0:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.problems:
            terminalreporter.section("left behind by the tests", red=True)
            for problem in self.problems:
                terminalreporter.line(problem)


def find_marked_processes(mark: str) -> list[str]:
    """Return pid and command line of the other processes that have `mark`, NAME=VALUE, in their environment."""
    lines = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if process.name == str(os.getpid()) or mark.encode() not in (process / "environ").read_bytes().split(b"\0"):
                continue
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if "multiprocessing.resource_tracker" not in command:  # Python's own: it ends with this process
                lines.append(f"{process.name} {command}".strip())
        except OSError:
            continue
    return lines


def _checkout_and_user_files() -> set[str]:
    """Return what git sees changed in the checkout, and the folders of this application in the user's."""
    status = subprocess.run(
        ["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True, check=False
    )  # fmt: skip
    user = {str(path) for name in _USER_FOLDERS for path in Path(name).expanduser().glob("[Ll]ockstep*")}
    return {f"in the checkout: {line}" for line in status.stdout.splitlines()} | {f"file {path}" for path in user}
