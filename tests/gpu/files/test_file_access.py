"""What a user names is read only where it is a file, and written only where a file may stand."""

from __future__ import annotations

import errno
import io
import os
import random
import socket
import stat
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from gpu.base.errors import InputError
from gpu.base.paths import ROOT
from gpu.files import file_access
from gpu.files.arrays import read_array, read_npy
from gpu.files.images import read_image
from gpu.files.sources import SourceLines, read_source
from gpu.files.text import read_text
from gpu.kernel.simulate import simulate
from gpu.patterns import find_pattern
from gpu.patterns.nbody.files import read_bodies, write_bodies
from gpu.recording.recording import Recording
from gpu.recording.trace import Trace
from gpu.run import export
from tests import needs

unix = needs.posix


def coefficients(path: Path) -> object:
    pattern = find_pattern("convolution")
    return pattern.check({"filter": "custom", "coefficients": str(path)})


READERS = {
    "an array": ("x.npy", read_array),
    "numbers": ("x.csv", read_array),
    "a matrix": ("x.csv", lambda path: read_array(path, 2)),
    "an image": ("x.pgm", read_image),
    "a picture": ("x.png", read_image),
    "a text": ("x.txt", read_text),
    "a kernel": ("x.cu", lambda path: simulate(path, "k", 1, 1)),
    "bodies": ("x.csv", read_bodies),
    "tipsy": ("x.tipsy", read_bodies),
    "a recording": ("x.lockstep", Recording.load),
    "a trace": ("x.trace", Trace.load),
    "a filter": ("x.csv", coefficients),
    "a filter's array": ("x.npy", coefficients),
}


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_endless_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def make_null_device(path: Path) -> None:
    path.symlink_to("/dev/null")


def make_link_loop(path: Path) -> None:
    path.symlink_to(path)


def make_folder(path: Path) -> None:
    path.mkdir()


def make_nothing(path: Path) -> None:
    pass


def make_dangling_link(path: Path) -> None:
    path.symlink_to(path.with_name("nothing"))


def make_socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # a socket's path is short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


@unix
@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "put",
    [
        make_pipe,
        make_endless_device,
        make_null_device,
        make_link_loop,
        make_folder,
        make_nothing,
        make_dangling_link,
        make_socket,
    ],
)
@pytest.mark.parametrize(("name", "read"), READERS.values(), ids=READERS)
def test_what_is_no_file_is_refused_in_one_sentence(tmp_path, put, name, read):
    path = tmp_path / name
    put(path)
    with pytest.raises(InputError) as raised:
        read(path)
    assert raised.value.message.endswith(".")
    assert "\n" not in raised.value.message
    assert str(path) in raised.value.message


@pytest.mark.parametrize(
    "name", ["x" * 5000 + ".npy", "a/" * 3000 + "x.npy", "nul\0byte.npy", "new\nline.npy", "\ud800.npy"]
)
@pytest.mark.parametrize("read", [read_array, read_image, read_text, read_bodies, read_source])
def test_names_that_no_file_has(tmp_path, name, read):
    with pytest.raises(InputError) as raised:
        read(tmp_path / name)
    assert "\n" not in raised.value.message
    assert len(raised.value.message) < 500


@unix
@pytest.mark.timeout(20)
@pytest.mark.parametrize("put", [make_pipe, make_endless_device, make_folder])
def test_an_include_that_is_no_file_is_not_shown(tmp_path, put):
    put(tmp_path / "x.h")
    kernel = tmp_path / "k.cu"
    kernel.write_text('#include "x.h"\nint a;\n')
    sources = SourceLines(kernel)
    assert sources.line("k.cu", 2) == "int a;"
    assert sources.line("x.h", 1) == ""


def test_what_is_too_large_is_refused_before_it_is_read(tmp_path, monkeypatch):
    path = tmp_path / "x.cu"
    with open(path, "wb") as file:
        file.truncate(2**40)
    with pytest.raises(InputError, match=r"x\.cu is too large: 1\.05e\+06 MB; the limit is 4 MB"):
        read_source(path)


# --- .npy


def npy(values: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, values)
    return file.getvalue()


@pytest.mark.parametrize(
    "values",
    [
        np.arange(24, dtype=np.int32).reshape(2, 3, 4),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.zeros((0, 5), np.uint8),
        np.array(7.5),
        np.arange(5, dtype=">u2"),
        np.zeros(3, [("a", "i4"), ("b", "f8")]),
    ],
    ids=lambda values: f"{values.dtype}{values.shape}",
)
def test_npy_is_read_as_numpy_reads_it(tmp_path, values):
    path = tmp_path / "x.npy"
    path.write_bytes(npy(values))
    found = read_npy(path)
    assert (found.dtype, found.shape) == (values.dtype, values.shape)
    np.testing.assert_array_equal(found, np.load(path))


def test_damaged_npy_headers_are_refused_in_one_sentence(tmp_path):
    """One byte is changed, or the end cut off: what is read then has as many bytes as the file, or it is refused."""
    whole = npy(np.arange(100, dtype=np.int32).reshape(10, 10))
    path, chance = tmp_path / "x.npy", random.Random(2)
    refused, sizes, sentences = 0, [0], set()
    for _ in range(1500):
        content = bytearray(whole[: chance.choice([len(whole)] * 9 + [chance.randrange(len(whole))])])
        if content:
            content[chance.randrange(min(128, len(content)))] = chance.randrange(256)
        path.write_bytes(content)
        try:
            sizes.append(read_npy(path).nbytes - len(content))
        except InputError as error:
            sentences.add(error.message)
            refused += 1
    assert sentences == {"x.npy is not a complete .npy file of numbers."}
    assert max(sizes) <= 0
    assert refused > 500


@pytest.mark.parametrize("shape", ["(1000000000000,)", "(-4,)", "(2**62, 8)", "(4294967296, 4294967296, 0)"])
def test_a_header_that_promises_more_than_there_is_takes_no_memory(tmp_path, shape):
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    path = tmp_path / "x.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + bytes(800))
    with pytest.raises(InputError, match="not a complete"):
        read_npy(path)


def test_a_small_file_takes_no_memory_for_what_might_be_read(tmp_path):
    path = tmp_path / "small.md"
    path.write_bytes(b"words")
    tracemalloc.start()
    try:
        assert file_access.read_bytes(path, 2**30) == b"words"
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_a_file_that_grows_while_it_is_read_is_read_as_far_as_it_may(tmp_path, monkeypatch):
    path = tmp_path / "grows.md"
    path.write_bytes(b"words")
    about = path.stat()
    path.write_bytes(b"words and more")
    monkeypatch.setattr(file_access.os, "fstat", lambda handle: about)
    assert file_access.read_bytes(path, 14) == b"words and more"
    with pytest.raises(InputError, match="too large"):
        file_access.read_bytes(path, 13)


def test_a_file_that_shrinks_while_it_is_read_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "x.npy"
    path.write_bytes(npy(np.zeros(1000)))
    fstat = os.fstat

    def then_shrinks(handle: int) -> os.stat_result:
        about = fstat(handle)
        os.truncate(path, 500)
        return about

    with file_access.open_for_reading(path):  # which looks at it once before
        pass
    calls = iter([fstat, then_shrinks])
    monkeypatch.setattr(os, "fstat", lambda handle: next(calls, fstat)(handle))
    with pytest.raises(InputError) as raised:
        read_npy(path)
    assert raised.value.detail == "It became shorter while it was being read."


# --- writing


WRITERS = {
    "an array": ("x.npy", lambda path: export.save_array(str(path), np.zeros((2, 2), np.uint8))),
    "a table": ("x.csv", lambda path: export.save_array(str(path), np.zeros(2))),
    "an image": ("x.png", lambda path: export.save_array(str(path), np.zeros((2, 2), np.uint8))),
    "bodies": ("x.tipsy", lambda path: write_bodies(path, np.ones((2, 7), np.float32))),
}


@unix
@pytest.mark.timeout(20)
@pytest.mark.parametrize("put", [make_pipe, make_folder, make_socket])
@pytest.mark.parametrize(("name", "write"), WRITERS.values(), ids=WRITERS)
def test_only_a_file_is_replaced(tmp_path, put, name, write):
    path = tmp_path / name
    put(path)
    kind = stat.S_IFMT(path.lstat().st_mode)
    with pytest.raises(InputError, match=r"Cannot write .*: it is a "):
        write(path)
    assert stat.S_IFMT(path.lstat().st_mode) == kind
    assert list(tmp_path.iterdir()) == [path]


@unix
@pytest.mark.parametrize("put", [make_endless_device, make_link_loop, make_dangling_link])
@pytest.mark.parametrize(("name", "write"), WRITERS.values(), ids=WRITERS)
def test_a_link_is_replaced_and_not_what_it_leads_to(tmp_path, put, name, write):
    path = tmp_path / name
    put(path)
    write(path)
    assert stat.S_ISREG(path.lstat().st_mode)
    assert list(tmp_path.iterdir()) == [path]


@unix
@pytest.mark.parametrize(("name", "write"), WRITERS.values(), ids=WRITERS)
def test_a_link_to_a_file_is_replaced_and_the_file_stays(tmp_path, name, write):
    kept = tmp_path / "kept"
    kept.write_text("precious")
    (tmp_path / name).symlink_to(kept)
    write(tmp_path / name)
    assert kept.read_text() == "precious"
    assert stat.S_ISREG((tmp_path / name).lstat().st_mode)


@pytest.mark.parametrize(
    "name", ["x" * 300 + ".npy", "loop/x.npy", "file/x.npy", "none/x.npy", "nul\0byte.npy", "\ud800.npy"]
)
def test_where_no_file_may_stand(tmp_path, name):
    (tmp_path / "file").write_text("")
    if sys.platform != "win32":
        (tmp_path / "loop").symlink_to("loop")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(InputError) as raised:
        export.save_array(str(tmp_path / name), np.zeros(3))
    assert "\n" not in raised.value.message
    assert sorted(tmp_path.iterdir()) == before


def test_a_folder_that_may_not_be_written_to(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everywhere
    with pytest.raises(InputError, match=r"Cannot write .*x\.npy: permission denied\."):
        file_access.check_target(tmp_path / "x.npy")


def test_a_full_disk_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "x.npy"
    np.save(path, np.arange(3))

    class Full(io.FileIO):
        def write(self, _data: object) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(file_access, "open", lambda where, _mode: Full(where, "x"), raising=False)
    with pytest.raises(InputError, match=r"Cannot write .*: no space left on device"):
        export.save_array(str(path), np.zeros(5))
    assert np.load(path).tolist() == [0, 1, 2]
    assert list(tmp_path.iterdir()) == [path]


KILLED = """
import sys, time
from gpu.files.file_access import replace_file
with replace_file(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    print("writing", flush=True)
    time.sleep(600)
"""


@needs.unnamed_files
def test_a_process_that_is_killed_while_it_writes_leaves_nothing_and_the_file_as_it_was(tmp_path):
    target = tmp_path / "result.csv"
    target.write_text("before")
    command = [sys.executable, "-c", KILLED, str(target)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        process.kill()
    assert [path.name for path in tmp_path.iterdir()] == ["result.csv"]
    assert target.read_text() == "before"


@pytest.mark.parametrize("nameless", [True, False])
def test_a_new_file_has_the_mode_that_any_has_and_a_replaced_one_its_own(tmp_path, monkeypatch, nameless):
    if not nameless:
        monkeypatch.setattr(file_access, "_open_unnamed", lambda folder: None)
    (tmp_path / "any").touch()
    (tmp_path / "old").touch(0o600)
    for name in ("new", "old"):
        with file_access.replace_file(tmp_path / name) as file:
            file.write(b"all")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "any").stat().st_mode
    assert stat.S_IMODE((tmp_path / "old").stat().st_mode) == (0o666 if sys.platform == "win32" else 0o600)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["any", "new", "old"]


def test_an_array_of_which_a_full_disk_takes_a_part_is_told_in_words():
    with (
        pytest.raises(InputError, match=r"Cannot write x\.npy: no space is left\."),
        file_access.convert_os_errors("x.npy", "write"),
    ):
        raise OSError("100000 requested and 992 written")
