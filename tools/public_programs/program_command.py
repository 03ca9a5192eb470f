"""Runs of the command `program` with limits of time."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from gpu.base.paths import ROOT

LIMIT_S = 120
"""Limit of a program's computing time, all threads together, so that other work does not count."""


def run_program(
    folder: Path, files: Sequence[str], options: Sequence[str], arguments: Sequence[str], limit_s: int = LIMIT_S
) -> tuple[int | None, str, str]:
    """Run a program with the command `program`.

    Parameters
    ----------
    folder : Path
        The working folder.
    files, options, arguments : sequence of str
        Source files, options of the command, and the program's own arguments.
    limit_s : int
        The limit of processor time in seconds; the limit by the clock is 15 times as long.

    Returns
    -------
    tuple of int or None, str, str
        Exit code, output and errors; None, "" and the reason if it takes too long.
    """
    command = [sys.executable, str(ROOT / "main.py"), "program", *files, *options, "--", *arguments]
    try:
        process = subprocess.run(
            ["/bin/sh", "-c", f'ulimit -t {limit_s}; exec "$@"', "sh", *command],
            cwd=folder, capture_output=True, timeout=15 * limit_s, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None, "", f"it does not end within {15 * limit_s // 60} minutes by the clock"
    errors = process.stderr.decode(errors="replace")
    if re.search("SIGXCPU|crashed: SIGKILL", errors):
        return None, "", f"exceeds the limit of {limit_s} s"
    return process.returncode, process.stdout.decode(errors="replace"), errors
