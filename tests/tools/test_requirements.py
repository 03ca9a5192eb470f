"""What requirements.txt names is to be had, as wheels, on Windows and macOS too: LOCKSTEP_REGISTRY=1 asks."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from gpu.base.paths import ROOT
from tests import needs

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PLATFORMS = {
    "win_amd64": PYTHONS,
    "macosx_12_0_arm64": PYTHONS,
    "macosx_12_0_x86_64": PYTHONS[:-1],  # of llvmlite there is but a beta, which README says
}


@needs.registry
@pytest.mark.parametrize(
    ("platform", "python"), [(platform, python) for platform, pythons in PLATFORMS.items() for python in pythons]
)
def test_requirements_resolve(platform, python, tmp_path):
    """Markers such as `platform_system` are this machine's all the same: pip knows no others."""
    # Nothing is installed, but --platform wants a folder for it.
    install = ["install", "--dry-run", "--ignore-installed", "--target", tmp_path / "none", "--only-binary=:all:"]
    wanted = ["--platform", platform, "--python-version", python, "-r", ROOT / "requirements.txt"]
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *install, *wanted]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr


def test_the_workflow_tries_the_same_pythons():
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")
    assert f"python: {json.dumps(PYTHONS)}" in workflow
