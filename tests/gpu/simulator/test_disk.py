"""What is kept from run to run is used only where this user wrote it, whole and under its own key."""

from __future__ import annotations

import errno
import hashlib
import os
import socket
import time
from pathlib import Path

import numpy as np
import pytest

from gpu.simulator import disk
from gpu.simulator.frontend.clang import precompiled_header
from gpu.simulator.simulated_module import SimulatedModule
from tests import needs
from tests.tiers import spread

pytestmark = needs.posix


def run_cached_kernel(factor: int) -> None:
    """Run a kernel from its machine code and see that it is right."""
    text = f"__global__ void k(int *data) {{ data[threadIdx.x] = threadIdx.x * {factor}; }}"
    data = np.full(32, -1, np.int32)
    SimulatedModule(text, Path("kernel.cu"), {}).compiled_kernel("k").launch(
        (1, 1, 1), (32, 1, 1), [data.view(np.uint8)]
    )
    np.testing.assert_array_equal(data, np.arange(32) * factor)


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """An empty folder to keep things in."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("LOCKSTEP_CACHE", str(folder))
    disk._warn_once.cache_clear()
    return folder


def read_cached_code(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.o"))


def test_an_entry_is_read_under_its_own_key_alone(cache):
    path = cache / "entry"
    disk.write_entry(path, "one", b"content")
    assert disk.read_entry(path, "one") == b"content"
    assert disk.read_entry(path, "other") is None
    assert disk.read_entry(path, "onec") is None, "nor where key and content are cut elsewhere"
    for damaged in (b"", b"x", path.read_bytes()[:-1], path.read_bytes() + b"x"):
        path.write_bytes(damaged)
        assert disk.read_entry(path, "one") is None


def test_exchanged_entries_are_none(cache):
    run_cached_kernel(3)
    (three,) = read_cached_code(cache)
    run_cached_kernel(5)
    (five,) = set(read_cached_code(cache)) - {three}
    contents = three.read_bytes(), five.read_bytes()
    three.write_bytes(contents[1])
    five.write_bytes(contents[0])
    run_cached_kernel(3)
    run_cached_kernel(5)
    assert (three.read_bytes(), five.read_bytes()) == contents, "and they are made anew"


def test_an_entry_that_only_holds_together_is_none(cache):
    run_cached_kernel(3)
    (path,) = read_cached_code(cache)
    content = path.read_bytes()[32:]
    path.write_bytes(hashlib.sha256(content).digest() + content)
    assert disk.read_entry(path, path.stem) is None


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def link_to_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def link_to_itself(path: Path) -> None:
    path.symlink_to(path)


def make_folder(path: Path) -> None:
    path.mkdir()


def make_socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # a socket's path is short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def make_world_writable_file(path: Path) -> None:
    path.write_bytes(b"x" * 100)
    path.chmod(0o666)


def make_oversized_file(path: Path) -> None:
    with open(path, "wb") as file:
        file.truncate(disk.MAX_ENTRY_BYTES + 1)


@pytest.mark.parametrize(
    ("put", "suffix"),
    spread(
        (
            make_fifo,
            link_to_device,
            link_to_itself,
            make_folder,
            make_socket,
            make_world_writable_file,
            make_oversized_file,
        ),
        (".o", ".header", ".pch"),
    ),
)
def test_what_is_no_file_of_ours_is_passed_over(cache, put, suffix):
    precompiled_header._header_path.cache_clear()
    run_cached_kernel(7)
    (path,) = cache.glob(f"*{suffix}")
    path.unlink()
    put(path)
    assert disk.read_file(path) is None
    precompiled_header._header_path.cache_clear()  # as in a process that has not looked yet
    run_cached_kernel(7)


def pretend_other_user(folder: Path, monkeypatch) -> str:
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    return "it belongs to another user"


def make_folder_world_writable(folder: Path, monkeypatch) -> str:
    folder.chmod(0o777)
    return "other users may write to it"


def make_folder_inaccessible(folder: Path, monkeypatch) -> str:
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may enter all
    return "this user may not read and write it"


@pytest.mark.parametrize("make", [pretend_other_user, make_folder_world_writable, make_folder_inaccessible])
def test_a_folder_that_cannot_be_trusted_is_left_alone_with_a_note(cache, monkeypatch, caplog, make):
    run_cached_kernel(3)
    before = {path: path.read_bytes() for path in cache.iterdir()}
    for path in read_cached_code(cache):  # as if it were forged: it must not run
        path.write_bytes(b"forged")
        before[path] = b"forged"
    reason = make(cache, monkeypatch)
    run_cached_kernel(3)
    run_cached_kernel(9)
    assert {path: path.read_bytes() for path in cache.iterdir()} == before
    assert caplog.messages == [f"lockstep: The cache folder {cache} is not used: {reason}."]
    caplog.clear()


@pytest.mark.parametrize("name", ["a" * 5000, "file/cache", "loop/cache"])
def test_a_folder_that_cannot_be_is_none(tmp_path, monkeypatch, caplog, name):
    (tmp_path / "file").write_text("no folder")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    monkeypatch.setenv("LOCKSTEP_CACHE", str(tmp_path / name))
    disk._warn_once.cache_clear()
    run_cached_kernel(3)
    assert len(caplog.messages) == 1
    caplog.clear()


def test_a_full_disk_leaves_nothing_behind(cache, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    run_cached_kernel(3)
    before = sorted(cache.iterdir())
    monkeypatch.setattr(Path, "replace", full)
    run_cached_kernel(5)
    assert sorted(cache.iterdir()) == before


def test_the_least_recently_used_entries_are_removed(cache, monkeypatch):
    monkeypatch.setattr(disk, "MAX_TOTAL_BYTES", 1000)
    monkeypatch.setattr(disk, "_UNCOUNTED_BYTES", 0)
    for number in range(6):
        path = cache / str(number)
        disk.write_file(path, b"x" * 180)
        if path.exists():
            os.utime(path, (number, number))
    assert {path.name for path in cache.iterdir()} == {"2", "3", "4", "5"}
    assert disk.read_file(cache / "2") is not None  # which uses it
    for name in ("6", "7"):
        disk.write_file(cache / name, b"x" * 180)
    assert {path.name for path in cache.iterdir()} == {"2", "5", "6", "7"}


def test_the_folder_is_not_listed_for_every_write(cache, monkeypatch):
    """That would take longer for each entry than for the one before."""
    cache.mkdir(mode=0o700, exist_ok=True)
    listings = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: listings.append(path) or scandir(path))
    monkeypatch.setattr(disk, "MAX_TOTAL_BYTES", 6_000)
    monkeypatch.setattr(disk, "_UNCOUNTED_BYTES", 100)
    for number in range(700):
        disk.write_file(cache / str(number), b"x" * 10)
    assert 0 < len(listings) < 100
    assert sum(path.stat().st_size for path in cache.iterdir()) <= 6_000 + 100


def test_abandoned_files_are_removed_and_those_being_written_stay(cache):
    cache.mkdir(mode=0o700, exist_ok=True)
    old, new = cache / "unfinished-old", cache / "unfinished-new"
    old.write_bytes(b"half")
    new.write_bytes(b"half")
    os.utime(old, (time.time() - 7200,) * 2)
    disk.write_file(cache / "second", b"")
    assert not old.exists()
    assert new.exists()
