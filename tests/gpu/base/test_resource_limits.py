"""Time and memory that a process may take; each example in a process of its own, as it ends that."""

from __future__ import annotations

import signal
import subprocess
import sys

from gpu.base.paths import ROOT
from tests import needs

pytestmark = needs.linux

START = """
import signal, time
from gpu.base import resource_limits
resource_limits.MIN_WALL_SECONDS = 0.2
def compute():
    while True: pass
"""


def run(text: str, *, watched: bool = True, options: str = "") -> subprocess.CompletedProcess[str]:
    watch = f"resource_limits.allow_termination({options})\n" if watched else ""
    return subprocess.run(
        [sys.executable, "-c", START + watch + text], cwd=ROOT, capture_output=True, text=True, timeout=100
    )


def test_computing_ends_when_its_time_is_up():
    assert (
        run("resource_limits.MIN_WALL_SECONDS = 90\nwith resource_limits.limit_resources(0.1): compute()").returncode
        == -signal.SIGPROF
    )


def test_waiting_ends_too():
    assert run("with resource_limits.limit_resources(0.05): time.sleep(90)").returncode == -signal.SIGALRM


def test_only_computing_counts_where_nobody_waits():
    text = "with resource_limits.limit_resources(0.1): time.sleep(0.6); "
    assert run(text, options="counts_clock=False").returncode == 0
    assert run(f"{text} compute()", options="counts_clock=False").returncode == -signal.SIGPROF


def test_a_bound_within_another_does_not_loosen_it():
    text = (
        "with resource_limits.limit_resources(0.1):\n"
        "  resource_limits.MIN_WALL_SECONDS = 90\n"
        "  with resource_limits.limit_resources(90): {}"
    )
    assert run(text.format("time.sleep(90)")).returncode == -signal.SIGALRM
    assert run(text.format("compute()").replace("0.1", "0.1, 1 << 30")).returncode < 0


def test_memory_is_an_error_and_no_more_than_is_left_within_another():
    done = run(
        "for memory in (50 << 20, 1 << 30):\n"
        "  with resource_limits.limit_resources(None, 50 << 20), resource_limits.limit_resources(None, memory):\n"
        "    try: bytearray(60 << 20); print('taken')\n"
        "    except MemoryError: print('refused')\n"
        "bytearray(60 << 20); print('taken')"
    )
    assert done.stdout.split() == ["refused", "refused", "taken"], done.stderr


def test_nothing_is_left_behind():
    done = run(
        "with resource_limits.limit_resources(1), resource_limits.suspend_time_limits(): pass\n"
        "print(signal.getitimer(signal.ITIMER_PROF), signal.getitimer(signal.ITIMER_REAL))"
    )
    assert done.stdout == "(0.0, 0.0) (0.0, 0.0)\n", done.stderr


def test_what_is_nobodys_doing_costs_no_time():
    assert (
        run(
            "with resource_limits.limit_resources(0.05), resource_limits.suspend_time_limits(): time.sleep(0.6)"
        ).returncode
        == 0
    )


def test_nobody_is_ended_whom_nobody_watches():
    done = run("with resource_limits.limit_resources(0.05, 1): time.sleep(0.6); bytearray(60 << 20)", watched=False)
    assert (done.returncode, done.stderr) == (0, "")
