"""Temporary files, the command line's and the engine's, are gone however their process ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from gpu.base.paths import KERNELS, ROOT
from gpu.messages.kernels import CheckSource
from gpu.process.temporary_files import own_temporary_folder
from tests import needs
from tests.gpu.process.host_listener import list_guards, listening, wait_until

posix = needs.posix

TEMPORARY = """
import sys, tempfile
from pathlib import Path
from gpu.process.temporary_files import own_temporary_folder

with own_temporary_folder():
    left = tempfile.mkdtemp()
    Path(left, "preamble-1a2b3c.pch").touch()
    print(left, flush=True)
    sys.stdin.read()
"""


def list_temporary_files(parent: Path) -> tuple[subprocess.Popen[str], Path]:
    environment = {**os.environ, "TMPDIR": str(parent), "TEMP": str(parent), "TMP": str(parent)}
    process = subprocess.Popen(
        [sys.executable, "-c", TEMPORARY],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


@posix
@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", ""])
def test_temporary_files_are_gone_however_the_process_ends(tmp_path: Path, name: str):
    process, left = list_temporary_files(tmp_path)
    with process:
        assert left.is_relative_to(tmp_path)
        assert left.exists()
        if name:
            process.send_signal(getattr(signal, name))
        else:
            process.communicate("")
        assert wait_until(lambda: not list(tmp_path.iterdir()))
        assert wait_until(lambda: not list_guards(left.parent))


def test_the_environment_is_as_before_when_the_folder_is_gone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.delenv("TEMP", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = dict(os.environ)
    with own_temporary_folder():
        assert tempfile.gettempdir() == os.environ["TMPDIR"] == os.environ["TEMP"]
        assert Path(tempfile.gettempdir()).parent == tmp_path
    assert dict(os.environ) == before
    assert tempfile.gettempdir() == str(tmp_path)
    assert not list(tmp_path.iterdir())


def test_without_a_folder_for_temporary_files_a_command_goes_on(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/nowhere"])
    monkeypatch.setattr(os, "access", lambda *anything: False)
    before = dict(os.environ)
    with own_temporary_folder():
        assert dict(os.environ) == before


@posix
def test_what_clang_keeps_while_one_types_lies_in_the_shared_folder_and_goes_with_the_engine(tmp_path: Path):
    with listening("simulator") as listener:
        folder = Path(listener.host.folder.path)
        listener.host.submit(CheckSource("scan.cu", (KERNELS / "scan.cu").read_text()))
        assert listener.next_event()[0] == 0
        assert listener.next_event()[1] == ()
        kept = list(folder.rglob("preamble-*.pch"))
        assert kept
        listener.host.cancel()
        assert wait_until(lambda: not any(path.exists() for path in kept))
    assert not folder.exists()


def test_an_array_is_shared_where_memory_has_no_room_for_a_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    from gpu.messages import shared_arrays

    monkeypatch.setattr(shared_arrays, "_memory_backed_folder", lambda: str(tmp_path / "gone"))
    folder = shared_arrays.SharedFolder()
    try:
        assert not Path(folder.path).is_relative_to(tmp_path / "gone")
        assert folder.put(np.arange(3)).open().tolist() == [0, 1, 2]
    finally:
        folder.close()
