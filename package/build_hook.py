"""Build hook of hatchling: record the commit in the source archive and in the wheel."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

COMMIT_FILE = "gpu/base/commit.txt"
"""As in `gpu/base/installation.py`."""


class CommitHook(BuildHookInterface[Any]):
    """Add the file with the commit, unless the source archive from which a wheel is built contains it."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable" or Path(self.root, COMMIT_FILE).is_file():
            return
        command = ["git", "-C", self.root, "describe", "--always", "--dirty", "--exclude=*"]
        try:
            commit = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False).stdout.strip()
        except OSError:
            return
        if not commit or not Path(self.root, ".git").exists():
            return
        self._folder = tempfile.TemporaryDirectory()
        file = Path(self._folder.name, "commit.txt")
        file.write_text(commit + "\n", "utf-8")
        prefix = "lockstep/_app/" if self.target_name == "wheel" else ""
        build_data["force_include"][str(file)] = f"{prefix}{COMMIT_FILE}"
