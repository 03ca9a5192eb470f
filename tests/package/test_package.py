"""The package `lockstep`, as an editable installation puts it on the module path; `make wheel` checks a real one."""

from __future__ import annotations

import subprocess
import sys
import zipfile

import pytest

from gpu import __version__
from gpu.base.paths import ROOT
from tests import needs
from tools.installation import wheel_check


def run(*words, cwd):
    # -I and an explicit path: nothing of the checkout is on the module path but the package.
    start = f"import runpy, sys; sys.path.insert(0, {str(ROOT / 'package')!r}); "
    command = [sys.executable, "-I", "-c", start + words[0], *words[1:]]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60)


START = "runpy.run_module('lockstep', run_name='__main__', alter_sys=True)"


def test_the_package_runs_commands_from_any_folder(tmp_path):
    done = run(START, "run", "reduction", "--n", "65", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "verified    yes" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_the_exit_code_is_the_commands(tmp_path):
    assert run(START, "run", "reduction", "--n", "none", cwd=tmp_path).returncode == 2


def test_a_foreign_package_of_the_same_name_is_reported(tmp_path):
    (tmp_path / "gpu.py").touch()
    done = run(f"sys.path.insert(0, {str(tmp_path)!r}); import gpu; {START}", "--version", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "ImportError: Lockstep's package 'gpu' has the name of one that is imported already, "
        f"from {tmp_path / 'gpu.py'}."
    )


CONTENTS = ("main.py", "gpu/base/commit.txt", "kernels/reduction.cu", "assets/images/cat.png")


@pytest.mark.parametrize(
    ("left_out", "added", "complaint"),
    [
        ("", "", None),
        ("", "gpu/__init__.py", "would install gpu beside the package lockstep"),
        ("gpu/base/commit.txt", "", "lacks gpu/base/commit.txt"),
    ],
)
def test_a_wheel_that_lacks_or_adds_files_is_refused(tmp_path, left_out, added, complaint):
    wheel = tmp_path / "lockstep_gpu.whl"
    names = [f"lockstep/_app/{name}" for name in CONTENTS if name != left_out] + ([added] if added else [])
    with zipfile.ZipFile(wheel, "w") as packed:
        for name in [*names, "lockstep/__init__.py", f"lockstep_gpu-{__version__}.dist-info/METADATA"]:
            packed.writestr(name, "")
    if complaint is None:
        wheel_check.check_contents(wheel)
        return
    with pytest.raises(wheel_check.CheckError, match=complaint):
        wheel_check.check_contents(wheel)


def test_a_large_wheel_is_refused(tmp_path):
    wheel = tmp_path / "lockstep_gpu.whl"
    wheel.write_bytes(b"0" * (wheel_check.MAX_WHEEL_BYTES + 1))
    with pytest.raises(wheel_check.CheckError, match="12,000,001 bytes, more than 12,000,000"):
        wheel_check.check_contents(wheel)


def test_a_change_of_the_installation_is_seen(tmp_path):
    (tmp_path / "folder").mkdir()
    before = wheel_check._list_files(tmp_path)
    (tmp_path / "folder" / "cache.pyc").touch()
    assert {name for name, *_ in before ^ wheel_check._list_files(tmp_path)} == {str(tmp_path / "folder" / "cache.pyc")}


@needs.posix
def test_the_folder_of_a_check_has_the_path_that_lockstep_prints(tmp_path, monkeypatch):
    """On macOS the temporary folder is behind a link, on Windows its path may be a short one."""
    (tmp_path / "private").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path / "private")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "linked"))
    assert wheel_check.create_folder("lockstep-").parent == tmp_path / "private"
