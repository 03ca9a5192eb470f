"""The header that is parsed once and kept: whatever becomes of its file, kernels load."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from gpu.simulator import disk
from gpu.simulator.frontend import clang
from gpu.simulator.module import SimulatedModule

TEXT = "__global__ void k(int *data) { data[threadIdx.x] = max(__popc(threadIdx.x), 1); }"


def loads() -> None:
    data = np.zeros(32, np.int32)
    SimulatedModule(TEXT, Path("kernel.cu"), {}).kernel("k").launch((1, 1, 1), (32, 1, 1), [data.view(np.uint8)])
    assert data.tolist() == [max(lane.bit_count(), 1) for lane in range(32)]


def whole(folder: Path) -> bool:
    """Whether a name is kept, and what it names."""
    (name,) = folder.glob("*.header")
    path = folder / f"{(disk.kept(name, name.stem) or b'').decode()}.pch"
    return hashlib.sha256(path.read_bytes()).hexdigest() == path.stem and path.stat().st_size > 100_000


def a_cut_off_file(folder: Path) -> None:
    (path,) = folder.glob("*.pch")
    path.write_bytes(path.read_bytes()[:-100])


def another_clangs_file(folder: Path) -> None:
    content = b"CPCH of another version"
    digest = hashlib.sha256(content).hexdigest()
    (folder / f"{digest}.pch").write_bytes(content)
    (name,) = folder.glob("*.header")
    disk.keep(name, name.stem, digest.encode())


def a_name_that_is_none(folder: Path) -> None:
    (name,) = folder.glob("*.header")
    name.write_bytes(b"\xff../../etc")


def a_name_of_other_arguments(folder: Path) -> None:
    (name,) = folder.glob("*.header")
    digest = disk.kept(name, name.stem) or b""
    disk.keep(name, "another key", digest)


def no_files(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()


@pytest.mark.parametrize(
    "damage", [a_cut_off_file, another_clangs_file, a_name_that_is_none, a_name_of_other_arguments, no_files]
)
def test_a_damaged_header_is_made_anew(tmp_path, monkeypatch, damage) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    monkeypatch.setenv("LOCKSTEP_CACHE", str(before))
    loads()
    assert whole(before)
    damage(before)
    before.rename(after)  # another folder stands for another process, which has not looked yet
    monkeypatch.setenv("LOCKSTEP_CACHE", str(after))
    loads()
    assert whole(after)


def test_a_cache_that_is_cleared_is_filled_again(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("LOCKSTEP_CACHE", str(tmp_path))
    loads()
    no_files(tmp_path)
    loads()
    assert whole(tmp_path)


def test_without_room_for_it_the_header_is_read_each_time(tmp_path, monkeypatch, caplog) -> None:
    file = tmp_path / "file"
    file.write_text("no folder")
    monkeypatch.setenv("LOCKSTEP_CACHE", str(file / "cache"))
    disk._warn_once.cache_clear()
    loads()
    assert file.read_text() == "no folder"
    assert caplog.messages == [f"lockstep: The cache folder {file / 'cache'} is not used: Not a directory."]
    caplog.clear()


LAUNCHING = """
__global__ void child(int *data) { data[threadIdx.x] += 1; }
__global__ void parent(int *data) { child<<<1, 32>>>(data); }
"""


@pytest.mark.parametrize(("text", "parses"), [(TEXT, 1), (LAUNCHING, 2)])
def test_a_text_is_parsed_once_and_once_more_where_it_launches(monkeypatch, text, parses) -> None:
    parsed = []
    whole_parse = clang._parse_unit

    def parse(path, arguments, files, *, again):
        parsed.append(arguments)
        return whole_parse(path, arguments, files, again=again)

    monkeypatch.setattr(clang, "_parse_unit", parse)
    data = np.zeros(32, np.int32)
    module = SimulatedModule(text, Path("kernel.cu"), {})
    for name in module.kernels:
        module.kernel(name).launch((1, 1, 1), (32, 1, 1), [data.view(np.uint8)])
    assert len(parsed) == parses
    assert all("-include-pch" in each for each in parsed)
