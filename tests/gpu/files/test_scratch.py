from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from gpu.base.errors import InputError
from gpu.base.paths import ROOT
from gpu.files import scratch
from gpu.files.scratch import PREFIX, ScratchFolder
from tests import needs

posix = needs.posix

HOLD = """
import sys
from gpu.files.scratch import ScratchFolder
print(ScratchFolder(sys.argv[1]).path, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def _reset_cleanup_cache():
    scratch.remove_stale_folders.cache_clear()


def start_holding_process(parent: Path) -> tuple[subprocess.Popen[str], Path]:
    root = ROOT
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(parent)], cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_a_folder_goes_with_all_that_is_in_it(tmp_path):
    folder = ScratchFolder(str(tmp_path))
    Path(folder.path, "deep").mkdir()
    Path(folder.path, "deep", "file").touch()
    folder.close()
    assert not list(tmp_path.iterdir())
    folder.close()


def test_what_a_killed_process_left_is_removed_at_the_next_start_and_not_before(tmp_path):
    process, left = start_holding_process(tmp_path)
    with process:
        (left / "preamble-1a2b3c.pch").touch()
        with closing(ScratchFolder(str(tmp_path))):
            assert left.exists(), "it is in use"
        process.kill()
        process.wait()
        assert left.exists(), "nobody has had the time to remove it"
        scratch.remove_stale_folders.cache_clear()
        with closing(ScratchFolder(str(tmp_path))) as folder:
            assert [path.name for path in tmp_path.iterdir()] == [Path(folder.path).name]


def test_files_and_folders_of_others_stay(tmp_path):
    others = (f"{PREFIX}a-file", "lockstep-driven-xyz", "preamble-1a2b3c.pch")
    (tmp_path / others[0]).touch()
    (tmp_path / others[1]).mkdir()
    (tmp_path / others[2]).touch()
    ScratchFolder(str(tmp_path)).close()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(others)


@posix
def test_neither_a_link_nor_what_another_user_left_is_removed(tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / f"{PREFIX}link").symlink_to(home)
    scratch.remove_stale_folders(str(tmp_path))
    assert home.exists()
    (tmp_path / f"{PREFIX}theirs").mkdir()
    scratch.remove_stale_folders.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        scratch.remove_stale_folders(str(tmp_path))
    assert (tmp_path / f"{PREFIX}theirs").exists()
    scratch.remove_stale_folders.cache_clear()
    scratch.remove_stale_folders(str(tmp_path))
    assert not (tmp_path / f"{PREFIX}theirs").exists()


@posix
def test_a_folder_that_is_removed_while_it_is_made_is_made_again(tmp_path, monkeypatch):
    made = []

    def mkdtemp(**options):
        path = original(**options)
        made.append(path)
        if len(made) == 1:
            scratch.remove_folder(path)  # a process that starts at the same time takes it for a forgotten one
        return path

    original = tempfile.mkdtemp
    monkeypatch.setattr(tempfile, "mkdtemp", mkdtemp)
    with closing(ScratchFolder(str(tmp_path))) as folder:
        assert folder.path == made[1]
        assert Path(folder.path).exists()


@posix
def test_where_nothing_can_be_locked_folders_are_made_and_none_is_removed(tmp_path, monkeypatch):
    import fcntl

    def refuse(handle: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    (tmp_path / f"{PREFIX}other").mkdir()
    monkeypatch.setattr(fcntl, "flock", refuse)
    with closing(ScratchFolder(str(tmp_path))) as folder:
        assert Path(folder.path).exists()
    assert (tmp_path / f"{PREFIX}other").exists()


def test_no_usable_temporary_folder_is_one_sentence(monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/nowhere"])
    monkeypatch.setattr(os, "access", lambda *anything: False)
    with pytest.raises(InputError) as raised:
        ScratchFolder()
    assert raised.value.message.startswith("There is no folder for temporary files: no usable temporary directory")
    assert "TMPDIR" in raised.value.advice


def test_a_full_disk_is_one_sentence(tmp_path, monkeypatch):
    def refuse(**options: str) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    with pytest.raises(InputError, match="There is no folder for temporary files: no space left on device"):
        ScratchFolder(str(tmp_path))


@pytest.mark.parametrize("names", [("TMPDIR",), ("TEMP",), ("TMPDIR", "TEMP")])
def test_the_place_for_temporary_files_is_the_one_that_python_takes_and_no_file_is_made_to_try_it(
    tmp_path, monkeypatch, names
):
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.delenv(name, raising=False)
    for name in names:
        monkeypatch.setenv(name, str(tmp_path / name))
    (tmp_path / names[-1]).mkdir()  # the first one is not there, where there are two
    monkeypatch.setattr(tempfile, "tempdir", None)
    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "_get_default_tempdir", None)
        found = scratch.find_temporary_folder()
    assert found == tempfile.gettempdir() == str(tmp_path / names[-1])
