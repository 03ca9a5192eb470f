"""Programs run as a user runs them: `python main.py program FILE.cu`, in a process of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gpu.base.errors import EngineUnavailableError
from gpu.base.paths import ROOT
from gpu.hosts.program.host_compiler import find_compiler
from tests import needs

CHECK = """\
#include <cstdio>
#include <cstdlib>
#define CHECK(call) do { \\
    cudaError_t error = (call); \\
    if (error != cudaSuccess) { \\
        fprintf(stderr, "%s:%d %s\\n", __FILE__, __LINE__, cudaGetErrorString(error)); \\
        exit(EXIT_FAILURE); \\
    } \\
} while (0)
"""


@dataclass
class FinishedProgram:
    """What a program left."""

    code: int
    stdout: str
    stderr: str
    report: dict[str, Any] = field(default_factory=dict)


@pytest.fixture
def program(tmp_path):
    """Return what compiles and runs a program's text."""
    return _make_runner(tmp_path)


@pytest.fixture(scope="module")
def run_program(tmp_path_factory):
    """Return what compiles and runs a program's text, for programs of several tests."""
    return _make_runner(tmp_path_factory.mktemp("program"))


def _make_runner(folder: Path) -> Callable[..., FinishedProgram]:
    try:
        find_compiler()
    except EngineUnavailableError:
        needs.skip(needs.COMPILER)

    def run(
        text: str,
        *options: str,
        arguments: tuple[str, ...] = (),
        report: bool = False,
        beside: dict[str, str] | None = None,
    ) -> FinishedProgram:
        file, target = folder / "program.cu", folder / "report.json"
        file.write_text(CHECK + text)
        more = ["--report", str(target)] if report else []
        for name, content in (beside or {}).items():
            (folder / name).write_text(content)
            if not name.endswith(".h"):
                more.append(str(folder / name))
        command = [sys.executable, str(ROOT / "main.py"), "program", str(file), *more, *options, "--", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
        written = json.loads(target.read_text()) if report and target.exists() else {}
        return FinishedProgram(done.returncode, done.stdout, done.stderr, written)

    return run
