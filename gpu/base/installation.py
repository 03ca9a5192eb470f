"""The installed program: its version and commit, and the commands that start and extend it."""

from __future__ import annotations

import subprocess

from gpu import __version__
from gpu.base.paths import IS_INSTALLED, ROOT

COMMAND = "lockstep" if IS_INSTALLED else "python main.py"
"""The command that starts Lockstep."""

COMMIT_FILE = ROOT / "gpu" / "base" / "commit.txt"
"""The commit from which a package was built; `package/build_hook.py` writes it, and a checkout has none."""

OR_MAKE_SETUP = "" if IS_INSTALLED else ", or run `make setup`"
"""End of an advice in a checkout, whose Makefile installs everything."""


def format_install_command(extra: str = "") -> str:
    """Return the command that installs the packages of an extra ("cuda", "dask") or, for "", those of Lockstep."""
    if IS_INSTALLED:
        return f'`pip install "lockstep-gpu[{extra}]"`' if extra else "`pip install --force-reinstall lockstep-gpu`"
    return f"`pip install -r requirements{'-' if extra else ''}{extra}.txt`"


def find_commit() -> str:
    """Return the short hash of this version's commit, with "-dirty" for a changed checkout; "" if it is unknown."""
    if COMMIT_FILE.is_file():
        return COMMIT_FILE.read_text("utf-8").strip()
    if not (ROOT / ".git").exists():
        return ""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude=*"]
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return process.stdout.strip()


def format_version() -> str:
    """Return the version with its commit, such as "0.2.0 (commit 1a2b3c4d)"."""
    commit = find_commit()
    return f"{__version__} (commit {commit})" if commit else __version__
