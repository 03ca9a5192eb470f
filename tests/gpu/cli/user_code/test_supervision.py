"""The command `simulate` ends with a sentence whatever a file does to it, and with its parent."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpu.base.paths import ROOT
from tests import needs

pytestmark = needs.linux

DOUBLED = "".join(f"#define A{number} A{number - 1} A{number - 1}\n" for number in range(1, 40))
GROWING = f"#define A0 a[0] = 1;\n{DOUBLED}__global__ void f(int *a) {{ A38 }}\n"
WIDE = "__device__ int table[500000000];\n__global__ void f(int *a) { a[0] = table[0]; }\n"
WAITING = '#define PIPE "pipe"\n#include PIPE\n__global__ void f(int *a) {}\n'


def command(folder: Path, text: str, *options: str) -> list[str]:
    path = folder / "test.cu"
    path.write_text(text)
    launch = ("f", "--grid", "1", "--block", "1", "--arg", "zeros:9")
    return [sys.executable, str(ROOT / "main.py"), "simulate", str(path), *launch, *options]


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        pytest.param(GROWING, ("--max-seconds", "0.5"), "Parsing the kernel exceeded the limit of CPU time", id="time"),
        pytest.param(GROWING, ("--max-memory", "40"), "memory", id="memory of clang"),
        pytest.param(
            WIDE, ("--max-memory", "40"), "The simulation needs more than 40 MB of memory.", id="memory of arrays"
        ),
    ],
)
def test_a_text_that_grows_without_end_is_refused_in_one_line(tmp_path: Path, text: str, options, words: str):
    done = subprocess.run(command(tmp_path, text, *options), capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("deed", "code", "said"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", 2, "lockstep: Clang crashed on the kernel's text: its nesting is too"),
        ("os.kill(os.getpid(), signal.SIGKILL)", 2, "lockstep: The process was killed, most likely because memory ran"),
        ("os.kill(os.getpid(), signal.SIGALRM)", 2, "lockstep: Parsing the kernel exceeded the time limit: "),
        ("os.kill(os.getpid(), signal.SIGUSR1)", 2, "lockstep: The process was killed by a signal (SIGUSR1)."),
        ("os._exit(7)", 7, ""),
        ("7", 7, ""),
    ],
)
def test_however_the_command_ends_its_parent_says_so(deed: str, code: int, said: str):
    imports = "import os, signal, sys; from gpu.cli.user_code import supervision"
    text = f"{imports}; sys.exit(supervision.run_supervised(lambda: {deed}))"
    done = subprocess.run([sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert done.returncode == code
    assert done.stderr.startswith(said)
    assert done.stderr.count("\n") == bool(said)


@pytest.fixture
def waiting(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Start the command, and wait until clang waits for a pipe; return it and the end of the pipe that is written."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    process = subprocess.Popen(
        command(tmp_path, WAITING),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    writing = os.open(pipe, os.O_WRONLY)
    yield process, writing
    os.close(writing)
    with process:
        process.kill()


def test_ctrl_c_ends_it_while_clang_reads(waiting):
    process, _ = waiting
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "lockstep: Stopped.\n")


@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL"])
def test_it_ends_with_its_parent(waiting, name: str):
    process, writing = waiting
    process.send_signal(signal.Signals[name])
    assert process.wait(60) == -signal.Signals[name]
    looking = select.poll()
    looking.register(writing, 0)
    assert looking.poll(60_000) == [(writing, select.POLLERR)], "whoever read the pipe is gone"


def test_what_lockstep_does_without_is_not_imported():
    program = (
        "import sys, gpu.kernel.simulate\nfrom gpu.cli.main import main, Desktop\n"
        "try: main(['simulate', '--help'], Desktop(None, None, None))\nexcept SystemExit: pass\n"
        "print([each for each in ('llvmlite', 'gpu.patterns.scan', 'gpu.bench.command') if each in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
