"""Benchmark on the simulator: variants, NumPy and SciPy on the same inputs, and the memory needed for a large image."""

from __future__ import annotations

import dataclasses
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gpu import engines
from gpu.base.child_processes import last_line
from gpu.bench import cpu_libraries, interpreter, machine_code
from gpu.bench.ladder import measure, prepare_case
from gpu.bench.measurement import Measurement
from gpu.bench.recording_engine import MIN_REPETITIONS
from gpu.declaration.benchmark import Benchmark, Case
from gpu.declaration.pattern import Pattern
from gpu.patterns import all_patterns
from gpu.recording.trace import Trace
from gpu.simulator.simulated_module import SimulatedModule, TraceSettings

_TRACED_ELEMENTS, _TRACED_BLOCK = 1 << 14, 256
_TRACED_KERNEL = """
__global__ void reduce(const float *in, float *out) {
    __shared__ float s[256];
    int t = threadIdx.x;
    s[t] = in[blockIdx.x * blockDim.x + t];
    __syncthreads();
    for (int stride = blockDim.x / 2; stride > 0; stride /= 2) {
        if (t < stride) s[t] += s[t + stride];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = s[0];
}
"""

# Runs in a separate process, so that its peak memory is that of this work alone.
_LARGE_IMAGE_SCRIPT = """
import re, resource, sys
from pathlib import Path
import numpy as np
from gpu import engines
from gpu.run.pattern_run import run_pattern
from gpu.run.workload import Workload
from gpu.patterns import find_pattern
pattern = find_pattern("convolution")
image = np.random.default_rng(int(sys.argv[1])).integers(0, 256, (4096, 4096), np.uint8)
inputs = {"image": image, "maxval": np.array(255)}
workload = Workload(pattern, pattern.variant("tiled"), inputs, {"size": 5})
outcome = run_pattern(engines.create_engine("simulator"), workload, lambda progress: None)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
status = Path("/proc/self/status")
if status.exists():  # On Linux, ru_maxrss includes memory of the process that forked this one.
    peak = int(re.search(r"VmHWM:\\s+(\\d+)", status.read_text())[1]) / 2**10
print(outcome.report.time_ms.kernel, peak, outcome.report.verified)
"""


def run(seed: int, repetitions: int) -> Iterator[Measurement]:
    """Measure the variants of each pattern and their peers, and yield their rows."""
    for executor in ("compiled", "lockstep"):
        engine = engines.create_engine("simulator", executor)
        for pattern in all_patterns().values():
            for case in _select_cases(pattern.benchmark, executor):
                for row in measure(engine, prepare_case(pattern, case, seed), repetitions):
                    goal = _find_goal(pattern, row.name) if executor == "compiled" else ""
                    yield dataclasses.replace(row, remark=f"{row.remark}; goal: {goal}") if goal else row
                yield from cpu_libraries.run(pattern, case, seed, repetitions)
        engine.close()
    yield from machine_code.run()
    yield from interpreter.run(seed, repetitions)
    yield _measure_traced(seed, repetitions)
    yield _measure_large_image(seed)


def _select_cases(benchmark: Benchmark, executor: str) -> tuple[Case, ...]:
    if executor == "compiled":
        return benchmark.compiled
    return tuple(dataclasses.replace(case, work=f"{case.work}, in lockstep") for case in benchmark.lockstep)


def _find_goal(pattern: Pattern, title: str) -> str:
    """Return the goal of a variant's machine code, as a speedup over a peer; "" without one."""
    names = (variant.name for variant in pattern.variants if variant.title == title)
    return pattern.benchmark.goals.get(next(names, ""), "")


def device_name() -> str:
    """Return the processor's name."""
    return engines.create_engine("simulator").device.name


def _measure_traced(seed: int, repetitions: int) -> Measurement:
    """Measure a launch while every step is recorded."""
    module = SimulatedModule(_TRACED_KERNEL, Path("reduce.cu"), {})
    values = np.random.default_rng(seed).random(_TRACED_ELEMENTS).astype(np.float32)
    blocks = _TRACED_ELEMENTS // _TRACED_BLOCK
    sums = np.zeros(blocks, np.float32)
    arguments = [values.view(np.uint8), sums.view(np.uint8)]

    def trace() -> Trace:
        extents = (blocks, 1, 1), (_TRACED_BLOCK, 1, 1)
        return module.trace("reduce", *extents, arguments, TraceSettings(checked=False))

    recorded = trace()
    correct = np.allclose(sums, values.reshape(blocks, -1).sum(axis=1, dtype=np.float64))
    bytes_per_event = recorded.nbytes / recorded.lane_events
    remark = f"{'verified' if correct else 'WRONG'}; {bytes_per_event:.1f} bytes per lane event"
    work = f"reduction of {_TRACED_ELEMENTS} float32, one pass, every step recorded"
    return Measurement(
        work,
        "Interleaved pairs",
        True,
        interpreter.time_ms(trace, repetitions),
        recorded.lane_events / 1e6,
        "M lane events/s",
        remark,
    )


def _measure_large_image(seed: int) -> Measurement:
    work = "convolution 5 x 5, 4096 x 4096, with verification"
    process = subprocess.run(
        [sys.executable, "-c", _LARGE_IMAGE_SCRIPT, str(seed)], capture_output=True, text=True, check=False
    )
    if process.returncode:
        reason = last_line(process.stderr, "no reason given")
        return Measurement(work, "Tiled in shared memory", True, (), 0, "", f"failed: {reason}")
    kernel_ms, peak, verified = process.stdout.split()
    remark = f"{'verified' if verified == 'True' else 'WRONG'}; peak memory of the process {float(peak):.0f} MB"
    return Measurement(work, "Tiled in shared memory", True, (float(kernel_ms),), 8 * 4096**2 / 1e9, "GB/s", remark)


def measure_opening(openings: Callable[[int], Sequence[Any]], repetitions: int) -> Measurement:
    """Measure the time from the start to the window's first picture; `openings` opens the window repeatedly."""
    work, name = "the window, from `python main.py` to its first picture", "As on the first start"
    try:
        times = openings(min(repetitions, MIN_REPETITIONS))
    except RuntimeError as error:
        return Measurement(work, name, True, (), 0, "", f"failed: {error}")
    computing = statistics.median(time.cpu_ms for time in times)
    remark = f"{computing:.0f} ms of computing in its process; goal: at most 800 ms"
    return Measurement(work, name, True, tuple(time.wall_ms for time in times), 1, "openings/s", remark)
