"""Child processes: shielded from Ctrl+C, and ended with the processes that they started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from gpu.base.child_processes import end_process, shield_children_from_ctrl_c, signal_name, start_python
from tests import needs

SLEEPER = [sys.executable, "-c", "print(flush=True); import sys; sys.exit(bool(sys.stdin.readline()))"]


def interrupt_child() -> int:
    """Start a process, interrupt it, let it end; return its exit code."""
    with subprocess.Popen(SLEEPER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdout.readline()
        os.kill(child.pid, signal.SIGINT)
        child.stdin.close()
        return child.wait(timeout=60)


@needs.posix
def test_a_child_goes_on_and_the_parent_is_as_before() -> None:
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    with shield_children_from_ctrl_c():
        shielded = interrupt_child()
    assert (shielded, signal.pthread_sigmask(signal.SIG_BLOCK, ())) == (0, mask)
    assert interrupt_child() != 0


@needs.posix
def test_a_child_is_ended_with_what_it_started() -> None:
    text = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'print(flush=True); input()'])"
    with start_python("-c", text, own_session=True) as child:
        assert child.stdout is not None
        child.stdout.readline()
        end_process(child)
        assert child.stdout.read() == b"", "both have closed it"
    assert signal_name(child.returncode) == "SIGKILL"


def test_a_child_that_ends_in_time_is_not_killed() -> None:
    with start_python("-c", "input()") as child:
        assert child.stdin is not None
        child.stdin.write(b"\n")
        child.stdin.close()
        end_process(child, grace_s=60)
    assert (child.returncode, signal_name(child.returncode)) == (0, "")
