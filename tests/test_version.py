"""The version: one number, which the program says and the changelog dates."""

from __future__ import annotations

import re
import subprocess
import sys

import gpu
from gpu.base.paths import ROOT


def test_the_changelog_dates_the_version():
    released = re.findall(r"^## \[(.+)\] - (.+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    version, date = released[0]
    assert version == gpu.__version__
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", date)


def test_the_command_line_says_it():
    said = subprocess.run(
        [sys.executable, "main.py", "--version"], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert (said.returncode, said.stdout) == (0, f"lockstep {gpu.__version__}\n")
