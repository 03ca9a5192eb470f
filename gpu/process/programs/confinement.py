"""Confinement of a process that runs a stranger's host code: no file, network, other process or large output."""

from __future__ import annotations

import platform
from pathlib import Path

from gpu.base.paths import ROOT
from gpu.base.resource_limits import lower_limit, lower_memory_limit
from gpu.hosts.program.host_compiler import find_compiler_paths
from gpu.process import seccomp
from gpu.process.file_access import find_python_folders, restrict_file_access
from gpu.process.privileges import drop_privileges

CPU_LIMIT_S = 5
"""Limit of a run's CPU time."""
MAX_OUTPUT_BYTES = 1 << 23
"""Most bytes in each of a run's output files."""
MAX_MEMORY_BYTES = 1 << 30
"""Most bytes of memory that a run may add to its process."""

# Constants of Linux. Source: linux/sched.h, asm/unistd.h.
_CLONE_THREAD = 0x00010000
_CLONE3 = 435
_CALLS = {
    # clone, then: fork, vfork, execve, execveat, ptrace, kill, process_vm_readv, process_vm_writev, setpgid, setsid
    "x86_64": (56, (57, 58, 59, 322, 101, 62, 310, 311, 109, 112)),
    "aarch64": (220, (221, 281, 117, 129, 270, 271, 154, 157)),
}


def confine_process(readable: Path) -> str:
    """Confine this process, which then runs a program; return why the system cannot do that, or "".

    The process can read Python, the libraries of the system and the C++ compiler, Lockstep's code and one more folder.
    It can write only to files that are open already. It cannot connect, start or signal processes, or read their
    memory; it may start threads.

    Parameters
    ----------
    readable : Path
        The folder with the compiled program.
    """
    drop_privileges()
    lower_limit("RLIMIT_CPU", CPU_LIMIT_S, CPU_LIMIT_S + 1)
    lower_limit("RLIMIT_FSIZE", MAX_OUTPUT_BYTES, MAX_OUTPUT_BYTES)
    lower_memory_limit(MAX_MEMORY_BYTES)
    system_paths = (
        *("/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/dev/null", "/dev/urandom"),
        "/proc/self/statm",
        "/proc/meminfo",
    )
    paths = [*map(Path, system_paths), *find_python_folders(), *find_compiler_paths(), ROOT / "gpu", readable]
    if platform.machine() not in _CALLS or not restrict_file_access(paths, [Path("/dev/null")]):
        return "Grading a whole program needs Linux 5.13 or newer on x86-64 or 64-bit ARM, with Landlock."
    if not _forbid_processes():
        return "Grading a whole program needs a Linux with seccomp filters."
    return ""


def _forbid_processes() -> bool:
    """Refuse the calls that start, signal or inspect processes, or leave their group; `clone` remains for threads.

    The process must have given up new privileges.
    """
    clone, refused = _CALLS[platform.machine()]
    refuse, allow, missing = len(refused) + 5, len(refused) + 6, len(refused) + 7
    steps = [(seccomp.LOAD, 0, 0, seccomp.CALL)]
    steps += [(seccomp.EQUAL, refuse, 0, number) for number in refused]
    steps += [
        (seccomp.EQUAL, missing, 0, _CLONE3),  # its flags are in memory, where a filter cannot see them
        (seccomp.EQUAL, 0, allow, clone),
        (seccomp.LOAD, 0, 0, seccomp.FIRST_ARGUMENT),
        (seccomp.HAS_BITS, allow, refuse, _CLONE_THREAD),
        (seccomp.RETURN, 0, 0, seccomp.REFUSE),
        (seccomp.RETURN, 0, 0, seccomp.ALLOW),
        (seccomp.RETURN, 0, 0, seccomp.MISSING),
    ]
    return seccomp.install_filter(steps)
