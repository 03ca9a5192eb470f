"""What a process that runs strangers' texts cannot do any more; each is tried in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from gpu.base.paths import ROOT
from gpu.messages.events import Ready
from gpu.messages.runs.pattern_runs import RunPattern, RunResult
from gpu.patterns import find_pattern
from tests import needs
from tests.gpu.process.host_listener import children, listening

linux = needs.linux


def run_limited(text: str) -> str:
    """Return what a process with limits prints."""
    command = [
        sys.executable,
        "-c",
        f"from gpu.process.privileges import drop_privileges, limit_memory\ndrop_privileges()\n{text}",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    return done.stdout.strip()


@needs.posix
def test_neither_core_dumps_nor_ever_more_files():
    text = """
import resource
for name in ("CORE", "NOFILE"):
    soft, hard = resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))
    print(0 <= soft <= hard <= 4096, end=" ")
"""
    assert run_limited(text) == "True True"


@linux
def test_no_rights_of_other_users():
    assert "NoNewPrivs:\t1" in run_limited("print(open('/proc/self/status').read())")


@linux
def test_no_network_but_the_sockets_that_processes_talk_through():
    text = """
import ctypes, multiprocessing, socket, threading
status = open("/proc/self/status").read()
if "Seccomp:\\t2" not in status:
    print("this kernel lets nobody leave the network")
    raise SystemExit
families = "AF_INET AF_INET6 AF_PACKET AF_VSOCK".split()
def connect():
    for family in families:
        for kind in ("SOCK_STREAM", "SOCK_DGRAM"):
            try:
                socket.socket(getattr(socket, family), getattr(socket, kind))
            except PermissionError:
                print("refused", end=" ")
            except OSError as error:
                print(family, error)
connect()
thread = threading.Thread(target=connect)
thread.start()
thread.join()
print(ctypes.CDLL(None, use_errno=True).syscall(425, 8, None), ctypes.get_errno(), end=" ")
ours, theirs = multiprocessing.Pipe()
ours.send("but pipes")
print(theirs.recv(), end=" ")
for family in (socket.AF_UNIX, socket.AF_NETLINK):
    socket.socket(family, socket.SOCK_DGRAM).close()
print("and local ones")
"""
    said = run_limited(text)
    if said.startswith("this kernel"):
        needs.skip(needs.SYSTEM_CALL_FILTERS)
    assert said == "refused " * 16 + "-1 1 but pipes and local ones"


@linux
def test_a_program_that_it_starts_has_no_network_either():
    text = """
import subprocess, sys
code = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM)"
done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
print(done.stderr.splitlines()[-1] if done.stderr else "a socket")
"""
    said = run_limited(text)
    if "Seccomp:\t0" in run_limited("print(open('/proc/self/status').read())"):
        needs.skip(needs.SYSTEM_CALL_FILTERS)
    assert said == "PermissionError: [Errno 1] Operation not permitted"


@linux
def test_landlock_alone_refuses_tcp():
    """Where there are no filters of calls, as on other processors, at least that is given up."""
    text = """
import ctypes, socket
from gpu.process import network, privileges
if ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1) < 4:
    print("this kernel lets nobody leave the network")
    raise SystemExit
network._SOCKET_CALLS.clear()
privileges.drop_privileges()
for call in (lambda s: s.connect(("127.0.0.1", 9)), lambda s: s.bind(("127.0.0.1", 0))):
    try:
        call(socket.socket())
    except PermissionError:
        print("refused", end=" ")
print(socket.socket(socket.AF_INET, socket.SOCK_DGRAM).type == socket.SOCK_DGRAM)
"""
    done = subprocess.run([sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True, timeout=60)
    if done.stdout.startswith("this kernel"):
        needs.skip(needs.SYSTEM_CALL_FILTERS)
    assert (done.stdout, done.stderr) == ("refused refused True\n", "")


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
    assert run_limited(text) == "refused 1048576.0\nTrue"


@linux
def test_the_engines_process_has_these_limits_and_works():
    with listening("simulator") as listener:
        listener.host.submit(RunPattern("reduction", find_pattern("reduction").default_variant, {"n": 1000}))
        assert isinstance(listener.next_event()[1], Ready)
        (process,) = children()
        limits = Path(f"/proc/{process}/limits").read_text().splitlines()
        assert next(line for line in limits if line.startswith("Max core file size")).split()[4:6] == ["0", "0"]
        assert next(line for line in limits if line.startswith("Max data size")).split()[3] != "unlimited"
        status = Path(f"/proc/{process}/status").read_text()
        assert "NoNewPrivs:\t1" in status
        assert "Seccomp:\t2" in status or "Seccomp:\t2" not in run_limited("print(open('/proc/self/status').read())")
        event = listener.next_event()[1]
        assert isinstance(event, RunResult), event
