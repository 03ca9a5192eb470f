"""PyCUDA's Python files are taken from an archive, and nothing else of it."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from gpu.base.errors import EngineUnavailableError
from gpu.hosts.pycuda import driver, python_files
from tools import setup


def write_archive(path: Path, names: tuple[str, ...]) -> Path:
    file = path / "pycuda-1.tar.gz"
    with tarfile.open(file, "w:gz") as packed:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = len(name)
            packed.addfile(member, io.BytesIO(name.encode()))
    return file


def test_only_pycudas_own_files_are_unpacked(tmp_path):
    packed = write_archive(
        tmp_path, ("pycuda-1/pycuda/driver.py", "pycuda-1/pycuda/cuda/help.hpp", "pycuda-1/setup.py")
    )
    target = tmp_path / "share" / "pycuda"
    assert python_files.unpack(packed, target) == ""
    found = {str(path.relative_to(target)) for path in target.rglob("*") if path.is_file()}
    assert {name for name in found if not name.startswith("toolkit")} == {"pycuda/driver.py", "pycuda/cuda/help.hpp"}
    assert [path.name for path in target.parent.iterdir()] == ["pycuda"]


def test_an_archive_that_is_none_or_reaches_out_leaves_nothing(tmp_path):
    target = tmp_path / "share" / "pycuda"
    (tmp_path / "broken.tar.gz").write_bytes(b"no archive")
    assert "cannot be unpacked" in python_files.unpack(tmp_path / "broken.tar.gz", target)
    reaching = write_archive(tmp_path, ("pycuda-1/pycuda/../../../outside.py", "pycuda-1/pycuda/driver.py"))
    assert "cannot be unpacked" in python_files.unpack(reaching, target)
    assert "has no pycuda/driver.py" in python_files.unpack(write_archive(tmp_path, ("pycuda-1/setup.py",)), target)
    assert list(target.parent.iterdir()) == []


def test_an_archive_with_another_hash_is_refused_before_its_code_runs(tmp_path, monkeypatch):
    name, ran = f"pycuda-{python_files.VERSION}", tmp_path / "ran"
    setup_py = f"open({str(ran)!r}, 'w')\nfrom setuptools import setup\nsetup(name='pycuda', version='2026.1')"
    with tarfile.open(tmp_path / f"{name}.tar.gz", "w:gz") as packed:
        member = tarfile.TarInfo(f"{name}/setup.py")
        member.size = len(setup_py)
        packed.addfile(member, io.BytesIO(setup_py.encode()))
    for variable, value in (("NO_INDEX", "1"), ("FIND_LINKS", str(tmp_path)), ("NO_BUILD_ISOLATION", "0")):
        monkeypatch.setenv(f"PIP_{variable}", value)
    (tmp_path / "to").mkdir()
    archive, failure = python_files.download(Path(sys.executable), tmp_path / "to")
    assert archive is None
    assert "HASHES" in failure
    assert not ran.exists()


def test_a_failure_is_told_and_tried_again_only_when_asked(tmp_path, monkeypatch, capsys):
    asked = []

    def fails(command, **options):
        asked.append(command)
        return subprocess.CompletedProcess(command, 1, "", "WARNING: x\nERROR: No matching distribution\n")

    monkeypatch.setattr(python_files.subprocess, "run", fails)
    for again in (False, False, True):
        setup.ensure_pycuda_files(Path("python"), tmp_path, retry=again)
    assert len(asked) == 2
    assert capsys.readouterr().out.count("No matching distribution (`make setup` tries again)") == 3
    packed = write_archive(tmp_path, ("pycuda-1/pycuda/driver.py",))
    assert python_files.unpack(packed, python_files.files_folder(tmp_path)) == ""
    setup.ensure_pycuda_files(Path("python"), tmp_path, retry=True)
    assert (len(asked), capsys.readouterr().out) == (2, "")


def test_the_first_script_fetches_the_files_and_says_so_once(tmp_path, monkeypatch):
    target, told = tmp_path / "data" / "pycuda", []
    monkeypatch.setattr(driver, "python_layer", lambda: target)
    packed = write_archive(tmp_path, ("pycuda-1/pycuda/driver.py",))
    monkeypatch.setattr(python_files, "download", lambda python, folder: (packed, ""))
    for _ in range(2):
        driver.fetch_missing_files(told.append)
    assert told == [f"lockstep: Fetching the Python files of PyCUDA {python_files.VERSION} with pip, once."]
    assert driver.explain_unavailable() == ""


def test_files_that_cannot_be_stored_are_an_error_with_the_folder(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setattr(driver, "python_layer", lambda: tmp_path / "file" / "pycuda")
    packed = write_archive(tmp_path, ("pycuda-1/pycuda/driver.py",))
    monkeypatch.setattr(python_files, "download", lambda python, folder: (packed, ""))
    with pytest.raises(EngineUnavailableError, match=r"cannot be fetched: .*file/pycuda cannot be written"):
        driver.fetch_missing_files(lambda line: None)
