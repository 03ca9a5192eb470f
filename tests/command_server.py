"""Run Lockstep's commands in forks of a process that has imported their modules: imports are most of a short run.

`python -m tests.command_server` is that process: it reads a request from each line of its standard input and writes the
process's id, then its exit code.
"""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from multiprocessing import connection
from pathlib import Path
from typing import Any, NoReturn

from gpu.base.paths import ROOT

HAS_FORK = sys.platform.startswith("linux")
_OUTPUTS = ("stdout", "stderr")


class CommandServer:
    """Starts the process at its first command, and ends it in `close`."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def run(
        self, arguments: Sequence[str], *, cwd: Path | None = None, timeout: float = 100
    ) -> subprocess.CompletedProcess[str]:
        """Run `main.py` with these arguments, this process's environment and no input, as `subprocess.run` does.

        Raises
        ------
        subprocess.TimeoutExpired
            After `timeout` seconds of wall-clock time; the command's process is killed.
        """
        command = [sys.executable, str(ROOT / "main.py"), *arguments]
        if not HAS_FORK:
            return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=timeout, check=False)
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, bufsize=0
            )
        with tempfile.TemporaryDirectory() as folder:
            files = {name: Path(folder) / name for name in _OUTPUTS}
            request = {
                "arguments": command[1:],
                "cwd": str(cwd or Path.cwd()),
                "environment": dict(os.environ),
                **{name: str(file) for name, file in files.items()},
            }
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            process_id = self._read_number()
            assert self._process.stdout is not None
            if not connection.wait([self._process.stdout], timeout):
                os.kill(process_id, 9)
                self._read_number()
                raise subprocess.TimeoutExpired(command, timeout)
            code = self._read_number()
            return subprocess.CompletedProcess(command, code, *(file.read_text() for file in files.values()))

    def _read_number(self) -> int:
        assert self._process is not None
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())

    def close(self) -> None:
        """End the process, which no command is using."""
        if self._process is not None:
            self._process.communicate(timeout=20)


def _serve() -> None:
    """Fork a process for each request until the input ends."""
    import gpu.base.devices.survey
    import gpu.cli.findings
    import gpu.cli.main
    import gpu.cli.user_code.program
    import gpu.cli.user_code.script
    import gpu.hosts.cupy.installation
    import gpu.hosts.program.main_runner
    import gpu.hosts.pycuda.driver  # noqa: F401

    for line in iter(sys.stdin.buffer.readline, b""):
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # libraries' threads wait for work
            process_id = os.fork()
        if not process_id:
            _run_command(json.loads(line))
        print(process_id, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(process_id, 0)[1]), flush=True)


def _run_command(request: dict[str, Any]) -> NoReturn:
    """Become the command's process."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, name in enumerate(_OUTPUTS, 1):
        os.dup2(os.open(request[name], os.O_WRONLY | os.O_CREAT), number)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["cwd"])
    sys.argv = request["arguments"]
    runpy.run_path(sys.argv[0], run_name="__main__")
    sys.exit()


if __name__ == "__main__":
    _serve()
