"""The simulator's benchmark, beside what NumPy and SciPy do on the same input, and the memory of a large image."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from gpu import engines
from gpu.bench import interpreter, machine_code, on_cpu
from gpu.bench.ladder import Case, measure, random_image
from gpu.bench.row import Row
from gpu.simulator.module import SimulatedModule
from gpu.simulator.trace.trace import Trace

_SCANS = ("shuffle", "three-kernels", "look-back")


def _cases(side: int, pixels_side: int, power: int, suffix: str = "") -> tuple[Case, ...]:
    """Return a convolution and a histogram of images with these sides, and a reduction and a scan of 2^power."""
    array = {"n": 2**power, "dtype": "float32", "operator": "sum"}
    return (
        Case(
            f"convolution 5 x 5, {side} x {side} float32{suffix}",
            "convolution",
            random_image(side, side),
            {"filter": "gaussian", "size": 5},
        ),
        Case(
            f"histogram, 256 bins, {pixels_side} x {pixels_side} uint8{suffix}",
            "histogram",
            random_image(pixels_side, pixels_side),
        ),
        Case(f"reduction (sum), 2^{power} float32{suffix}", "reduction", params=array),
        Case(f"scan (sum), 2^{power} float32{suffix}", "scan", params=array, variants=_SCANS),
    )


_COMPILED = (
    *_cases(1024, 4096, 24),
    Case("matmul, 512 x 512 float32", "matmul", params={"n": 512}),
    Case("softmax of rows, 4096 x 4096 float32", "softmax", params={"n": 4096, "rows": 4096}),
    Case("n-body, 4096 bodies, 20 flop an interaction", "nbody", params={"preset": "plummer", "bodies": 4096}),
    Case(
        "sort, 2^20 uint32 keys",
        "sort",
        params={"n": 2**20, "dtype": "uint32"},
        variants=("bitonic", "radix", "merge", "onesweep"),
        anew=True,
    ),
)
_LOCKSTEP = _cases(512, 1024, 20, ", in lockstep")

# What is wanted of machine code: so many times the peer's speed.
_WANTED = {
    ("convolution", "Tiled in shared memory"): "4 x SciPy",
    ("histogram", "Privatized"): "3 x np.bincount",
    ("reduction", "Grid stride, two launches"): "0.5 x np.sum",
    ("scan", "Any length, three kernels"): "0.5 x np.cumsum",
    ("matmul", "Tiled in shared memory"): "a 20th of np.matmul",
    ("softmax", "Warp shuffle"): "a third of SciPy",
    ("nbody", "Tiled in shared memory"): "10 x Numba's double loop",
    ("sort", "Radix, one sweep a pass"): "a 10th of np.sort",
}

_TRACED_ELEMENTS, _TRACED_BLOCK = 1 << 14, 256
_TRACED = """
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

# A process of its own runs this, so that its peak memory is that of this work alone.
_LARGE_IMAGE = """
import re, resource, sys
from pathlib import Path
import numpy as np
from gpu import engines
from gpu.run.execute import run_pattern
from gpu.patterns import find_pattern
pattern = find_pattern("convolution")
image = np.random.default_rng(int(sys.argv[1])).integers(0, 256, (4096, 4096), np.uint8)
inputs = {"image": image, "maxval": np.array(255)}
outcome = run_pattern(
    engines.create("simulator"), pattern, pattern.variant("tiled"), inputs, {"size": 5}, lambda progress: None
)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
status = Path("/proc/self/status")
if status.exists():  # On Linux the other figure begins with what the process had from which this one was made.
    peak = int(re.search(r"VmHWM:\\s+(\\d+)", status.read_text())[1]) / 2**10
print(outcome.report.time_ms.kernel, peak, outcome.report.verified)
"""


def run(seed: int, repetitions: int) -> Iterator[Row]:
    """Measure the variants, each pattern beside its peers, and yield a row for each."""
    for executor, cases in (("compiled", _COMPILED), ("lockstep", _LOCKSTEP)):
        engine = engines.create("simulator", executor)
        for case in cases:
            for row in measure(engine, case, seed, repetitions):
                wanted = _WANTED.get((case.pattern, row.who)) if executor == "compiled" else None
                yield dataclasses.replace(row, remark=f"{row.remark}; wanted: {wanted}") if wanted else row
            yield from on_cpu.run(case, seed, repetitions)
        engine.close()
    yield from machine_code.run()
    yield from interpreter.run(seed, repetitions)
    yield _traced(seed, repetitions)
    yield _large_image(seed)


def device_name() -> str:
    """Return the processor's name."""
    return engines.create("simulator").device.name


def _traced(seed: int, repetitions: int) -> Row:
    """Measure a launch of which every step is recorded."""
    module = SimulatedModule(_TRACED, Path("reduce.cu"), {})
    values = np.random.default_rng(seed).random(_TRACED_ELEMENTS).astype(np.float32)
    blocks = _TRACED_ELEMENTS // _TRACED_BLOCK
    sums = np.zeros(blocks, np.float32)
    arguments = [values.view(np.uint8), sums.view(np.uint8)]

    def trace() -> Trace:
        return module.trace("reduce", (blocks, 1, 1), (_TRACED_BLOCK, 1, 1), arguments, checked=False)

    made = trace()
    right = np.allclose(sums, values.reshape(blocks, -1).sum(axis=1, dtype=np.float64))
    remark = f"{'verified' if right else 'WRONG'}; {made.nbytes / made.lane_events:.1f} bytes a lane-event"
    work = f"reduction of {_TRACED_ELEMENTS} float32, one pass, every step recorded"
    return Row(
        work,
        "Interleaved pairs",
        True,
        interpreter.time_ms(trace, repetitions),
        made.lane_events / 1e6,
        "M lane-events/s",
        remark,
    )


def _large_image(seed: int) -> Row:
    work = "convolution 5 x 5, 4096 x 4096, with verification"
    done = subprocess.run([sys.executable, "-c", _LARGE_IMAGE, str(seed)], capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        return Row(work, "Tiled in shared memory", True, (), 0, "", f"failed: {reason}")
    kernel_ms, peak, verified = done.stdout.split()
    remark = f"{'verified' if verified == 'True' else 'WRONG'}; the process peaks at {float(peak):.0f} MB"
    return Row(work, "Tiled in shared memory", True, (float(kernel_ms),), 8 * 4096**2 / 1e9, "GB/s", remark)
