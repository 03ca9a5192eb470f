"""PyCUDA's Python files are taken from an archive, and nothing else of it."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

from tools import setup
from tools.installation import pycuda_files


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
    assert pycuda_files.unpack(packed, target) == ""
    found = {str(path.relative_to(target)) for path in target.rglob("*") if path.is_file()}
    assert {name for name in found if not name.startswith("toolkit")} == {"pycuda/driver.py", "pycuda/cuda/help.hpp"}
    assert [path.name for path in target.parent.iterdir()] == ["pycuda"]


def test_an_archive_that_is_none_or_reaches_out_leaves_nothing(tmp_path):
    target = tmp_path / "share" / "pycuda"
    (tmp_path / "broken.tar.gz").write_bytes(b"no archive")
    assert "cannot be unpacked" in pycuda_files.unpack(tmp_path / "broken.tar.gz", target)
    reaching = write_archive(tmp_path, ("pycuda-1/pycuda/../../../outside.py", "pycuda-1/pycuda/driver.py"))
    assert "cannot be unpacked" in pycuda_files.unpack(reaching, target)
    assert "has no pycuda/driver.py" in pycuda_files.unpack(write_archive(tmp_path, ("pycuda-1/setup.py",)), target)
    assert list(target.parent.iterdir()) == []


def test_a_failure_is_told_and_tried_again_only_when_asked(tmp_path, monkeypatch, capsys):
    asked = []

    def fails(command, **options):
        asked.append(command)
        return subprocess.CompletedProcess(command, 1, "", "WARNING: x\nERROR: No matching distribution\n")

    monkeypatch.setattr(pycuda_files.subprocess, "run", fails)
    for again in (False, False, True):
        setup.ensure_pycuda_files(Path("python"), tmp_path, retry=again)
    assert len(asked) == 2
    assert capsys.readouterr().out.count("No matching distribution (`make setup` tries again)") == 3
    packed = write_archive(tmp_path, ("pycuda-1/pycuda/driver.py",))
    assert pycuda_files.unpack(packed, pycuda_files.files_folder(tmp_path)) == ""
    setup.ensure_pycuda_files(Path("python"), tmp_path, retry=True)
    assert (len(asked), capsys.readouterr().out) == (2, "")
