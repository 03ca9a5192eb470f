"""Programs run as a user runs them: `python main.py program FILE.cu`, in a process of their own."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gpu.base.errors import EngineUnavailableError
from gpu.hosts.program.host_compiler import find_compiler
from tests import needs
from tests.command_server import CommandServer

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
def program(tmp_path, command_server):
    """Return what compiles and runs a program's text."""
    return _make_runner(tmp_path, command_server)


@pytest.fixture(scope="module")
def run_program(tmp_path_factory, command_server):
    """Return what compiles and runs a program's text, for programs of several tests."""
    return _make_runner(tmp_path_factory.mktemp("program"), command_server)


def _make_runner(folder: Path, server: CommandServer) -> Callable[..., FinishedProgram]:
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
        # By its name, which `__FILE__` is: else the cache of compiled programs would not have it in the next session.
        done = server.run(["program", file.name, *more, *options, "--", *arguments], cwd=folder)
        written = json.loads(target.read_text()) if report and target.exists() else {}
        return FinishedProgram(done.returncode, done.stdout, done.stderr, written)

    return run
