"""N-body's benchmark on a GPU: the ladder at three sizes, beside the kernels that people write."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from gpu.bench.ladder import Case
from gpu.bench.row import Row
from gpu.messages.bodies import FLOPS_PER_INTERACTION

_BODIES = (4096, 65536, 262144)
_PEERS = {1: "one body a thread, as CUDA's sample", 2: "two bodies a thread", 4: "four bodies a thread"}
_WARM_UP = 3


def work(bodies: int) -> str:
    """Name the forces on so many bodies."""
    return f"n-body, {bodies} bodies, {FLOPS_PER_INTERACTION} flop an interaction"


def cases() -> Iterator[Case]:
    """Yield what is measured: the forces alone."""
    for bodies in _BODIES:
        yield Case(work(bodies), "nbody", params={"preset": "plummer", "bodies": bodies, "steps": 0})


def peers(seed: int, repetitions: int) -> Iterator[Row]:
    """Compile and time the kernels that people write, and yield a row for each."""
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "gravity")
        source = Path(__file__).with_suffix(".cu")
        command = [nvcc, "-O3", "-arch=native", "-std=c++17", str(source), "-o", str(program)]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True)
            for bodies in _BODIES:
                for per_thread, who in _PEERS.items():
                    given = map(str, (program, per_thread, bodies, seed, _WARM_UP, repetitions))
                    done = subprocess.run([*given], check=True, capture_output=True, text=True)
                    times = tuple(map(float, done.stdout.split()))
                    yield Row(work(bodies), who, False, times, FLOPS_PER_INTERACTION * bodies**2 / 1e9, "GFLOP/s")
        except (OSError, subprocess.CalledProcessError) as error:
            reason = str(getattr(error, "stderr", "") or error).strip().splitlines()[0]
            yield Row("n-body", "peers", False, (), 0, "", f"failed: {reason}")
