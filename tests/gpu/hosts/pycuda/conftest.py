"""Scripts run as a user runs them: `python main.py pycuda SCRIPT.py`, in a process of their own."""

from __future__ import annotations

import json
import textwrap
from dataclasses import dataclass, field
from typing import Any

import pytest

from gpu.hosts.pycuda import devices, driver
from tests import needs


@dataclass
class FinishedScript:
    """What a script left."""

    code: int
    stdout: str
    stderr: str
    report: dict[str, Any] = field(default_factory=dict)


@pytest.fixture
def script(tmp_path, command_server):
    """Return what runs a script's text."""
    if driver.explain_unavailable():
        needs.skip(needs.PYCUDA)

    def run(text: str, *options: str, arguments: tuple[str, ...] = (), report: bool = False) -> FinishedScript:
        file, target = tmp_path / "script.py", tmp_path / "report.json"
        file.write_text(textwrap.dedent(text))
        more = ["--report", str(target)] if report else []
        done = command_server.run(["pycuda", *options, *more, str(file), *arguments], cwd=tmp_path)
        found = json.loads(target.read_text()) if target.exists() else {}
        return FinishedScript(done.returncode, done.stdout, done.stderr, found)

    return run


@pytest.fixture
def context():
    """Have a context, as a script has."""
    devices.init()
    made = devices.SimulatedDevice(0).make_context()
    yield made
    made.detach()
