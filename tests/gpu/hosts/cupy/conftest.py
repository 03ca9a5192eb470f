"""CuPy scripts run as a user runs them: `python main.py cupy SCRIPT.py`, in a process of their own."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.command_server import CommandServer


@dataclass
class FinishedScript:
    """A script's exit code, output and report."""

    code: int
    stdout: str
    stderr: str
    report: dict[str, Any] = field(default_factory=dict)


@pytest.fixture
def script(tmp_path, command_server):
    """Return a function that runs a script's text."""
    return _make_runner(tmp_path, command_server)


@pytest.fixture(scope="module")
def catch_errors(tmp_path_factory, command_server):
    """Return a function that executes statements in one script, and returns what each raises, as Python words it."""
    run = _make_runner(tmp_path_factory.mktemp("errors"), command_server)

    def catch(preparation: str, statements: Sequence[str]) -> dict[str, str]:
        loop = f"""
import json
for statement in {list(statements)!r}:
    message = None
    try:
        exec(statement)
    except Exception as error:
        message = f"{{type(error).__name__}}: {{error}}"
    print(json.dumps(message))
"""
        ended = run(preparation + loop)
        assert ended.code == 0, ended.stderr
        return dict(zip(statements, map(json.loads, ended.stdout.splitlines()), strict=True))

    return catch


def _make_runner(folder: Path, server: CommandServer) -> Callable[..., FinishedScript]:
    def run(text: str, *options: str, arguments: tuple[str, ...] = (), report: bool = False) -> FinishedScript:
        file, target = folder / "script.py", folder / "report.json"
        file.write_text("import cupy as cp\nimport cupy\nimport numpy as np\n" + textwrap.dedent(text))
        more = ["--report", str(target)] if report else []
        done = server.run(["cupy", *options, *more, str(file), *arguments], cwd=folder)
        found = json.loads(target.read_text()) if target.exists() else {}
        return FinishedScript(done.returncode, done.stdout, done.stderr, found)

    return run
