"""What a process that runs strangers' texts cannot do any more; each is tried in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gpu.messages.requests import Ready, Result, RunPattern
from gpu.patterns import find_pattern
from tests.gpu.process.hosting import listening
from tests.gpu.process.test_host import children

ROOT = Path(__file__).parents[3]
linux = pytest.mark.skipif(sys.platform != "linux", reason="Linux's own limits")


def tried(text: str) -> str:
    """Return what a process with limits prints."""
    command = [sys.executable, "-c", f"from gpu.process.limits import confine, limit_memory\nconfine()\n{text}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    return done.stdout.strip()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limits")
def test_neither_core_dumps_nor_ever_more_files():
    text = """
import resource
for name in ("CORE", "NOFILE"):
    soft, hard = resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))
    print(0 <= soft <= hard <= 4096, end=" ")
"""
    assert tried(text) == "True True"


@linux
def test_no_rights_of_other_users():
    assert "NoNewPrivs:\t1" in tried("print(open('/proc/self/status').read())")


@linux
def test_no_tcp_but_the_sockets_that_processes_talk_through():
    text = """
import ctypes, multiprocessing, socket, threading
if ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1) < 4:
    print("this kernel lets nobody leave the network")
    raise SystemExit
def connect():
    for call in (lambda s: s.connect(("127.0.0.1", 9)), lambda s: s.bind(("127.0.0.1", 0))):
        try:
            call(socket.socket())
        except OSError as error:
            print(type(error).__name__, end=" ")
connect()
thread = threading.Thread(target=connect)
thread.start()
thread.join()
ours, theirs = multiprocessing.Pipe()
ours.send("but pipes")
print(theirs.recv())
"""
    said = tried(text)
    if said.startswith("this kernel"):
        pytest.skip(said)
    assert said == "PermissionError " * 4 + "but pipes"


@linux
def test_more_memory_than_the_machine_has_is_refused_and_arrays_in_files_are_not_counted():
    text = """
import mmap, resource, tempfile
import numpy as np
limit_memory()
most = resource.getrlimit(resource.RLIMIT_DATA)[0]
try:
    np.empty(most, np.uint8)
except MemoryError:
    print("refused", end=" ")
print(np.ones(2**20).sum())
with tempfile.TemporaryFile() as file:
    file.truncate(most)
    print(len(mmap.mmap(file.fileno(), most)) == most)
"""
    assert tried(text) == "refused 1048576.0\nTrue"


@linux
def test_the_engines_process_has_these_limits_and_works():
    with listening("simulator") as listener:
        listener.host.submit(RunPattern("reduction", find_pattern("reduction").default_variant, {"n": 1000}))
        assert isinstance(listener.next()[1], Ready)
        (process,) = children()
        limits = Path(f"/proc/{process}/limits").read_text().splitlines()
        assert next(line for line in limits if line.startswith("Max core file size")).split()[4:6] == ["0", "0"]
        assert next(line for line in limits if line.startswith("Max data size")).split()[3] != "unlimited"
        assert "NoNewPrivs:\t1" in Path(f"/proc/{process}/status").read_text()
        event = listener.next()[1]
        assert isinstance(event, Result), event
