"""Ctrl+C does not reach a process that was started in the shield; the parent itself is as before."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from gpu.base.child_processes import shield_children_from_ctrl_c
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
