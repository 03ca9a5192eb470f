"""CuPy scripts run as a user runs them: `python main.py cupy SCRIPT.py`, in a process of their own."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from dataclasses import dataclass, field
from typing import Any

import pytest

from gpu.base.paths import ROOT


@dataclass
class FinishedScript:
    """A script's exit code, output and report."""

    code: int
    stdout: str
    stderr: str
    report: dict[str, Any] = field(default_factory=dict)


@pytest.fixture
def script(tmp_path):
    """Return a function that runs a script's text."""

    def run(text: str, *options: str, arguments: tuple[str, ...] = (), report: bool = False) -> FinishedScript:
        file, target = tmp_path / "script.py", tmp_path / "report.json"
        file.write_text("import cupy as cp\nimport cupy\nimport numpy as np\n" + textwrap.dedent(text))
        more = ["--report", str(target)] if report else []
        command = [sys.executable, str(ROOT / "main.py"), "cupy", *options, *more, str(file), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=100, check=False)
        found = json.loads(target.read_text()) if target.exists() else {}
        return FinishedScript(done.returncode, done.stdout, done.stderr, found)

    return run
