"""The Linux bundle: a Python that works in any folder, and a command that finds it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import needs
from tools.installation import bundle
from tools.installation.wheel_check import CheckError


@pytest.mark.parametrize("base", ["/usr", "/usr/local"])
def test_a_python_of_the_system_is_refused(tmp_path, base):
    with pytest.raises(CheckError, match=f"in {base} belongs to the system"):
        bundle.copy_python(tmp_path / "python", Path(base))
    assert not list(tmp_path.iterdir())


@needs.linux
def test_tests_and_packages_of_the_copied_python_are_left_out(tmp_path):
    library = tmp_path / "base" / "lib" / bundle._PYTHON
    for name in ("os.py", "test/regrtest.py", "site-packages/foreign.py", "json/__init__.py", "json/__pycache__/x.pyc"):
        (library / name).parent.mkdir(parents=True, exist_ok=True)
        (library / name).touch()
    (library.parent / "libpython3.so").symlink_to(library / "os.py")
    (library.parent / "libpython3.11.so.1.0").touch()
    (tmp_path / "base" / "bin").mkdir()
    (tmp_path / "base" / "bin" / bundle._PYTHON).touch()
    bundle.copy_python(tmp_path / "python", tmp_path / "base")
    copied = {str(path.relative_to(tmp_path / "python")) for path in (tmp_path / "python").rglob("*") if path.is_file()}
    lib = f"lib/{bundle._PYTHON}"
    assert copied == {f"bin/{bundle._PYTHON}", "lib/libpython3.11.so.1.0", f"{lib}/os.py", f"{lib}/json/__init__.py"}


@needs.linux
def test_the_command_starts_the_bundles_python_from_any_folder(tmp_path):
    """Also through a link, with spaces in the folder's name, and whatever Python's variables say."""
    folder = tmp_path / "my programs"
    python = folder / "python" / "bin" / bundle._PYTHON
    python.parent.mkdir(parents=True)
    shown = '"$0" "$@" "home=$PYTHONHOME" "path=$PYTHONPATH" "user=$PYTHONNOUSERSITE"'
    python.write_text(f"#!/bin/sh\nprintf '%s\\n' {shown}\nexit 3\n")
    (folder / "lockstep").write_text(bundle._LAUNCHER)
    for file in (python, folder / "lockstep"):
        file.chmod(0o755)
    (tmp_path / "link").symlink_to(folder / "lockstep")
    environment = {**os.environ, "PYTHONHOME": sys.prefix, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [tmp_path / "link", "run", "a b"], cwd="/", env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 3
    assert done.stdout.splitlines() == [str(python), "-m", "lockstep", "run", "a b", "home=", "path=", "user=1"]
