"""The simulator's benchmark, beside what NumPy and SciPy do on the same input, and the memory of a large image."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from gpu import engines
from gpu.bench import interpreter
from gpu.bench.ladder import Case, measure, random_image
from gpu.bench.row import Row
from gpu.patterns import find_pattern
from gpu.patterns.convolution import filter_of
from gpu.simulator.module import SimulatedModule
from gpu.simulator.trace.trace import Trace

_CONVOLVED, _COUNTED = random_image(512, 512), random_image(1024, 1024)
_CONVOLUTION = Case(
    "convolution 5 x 5, 512 x 512 float32",
    "convolution",
    _CONVOLVED,
    {"filter": "gaussian", "size": 5},
)
_HISTOGRAM = Case("histogram, 256 bins, 1024 x 1024 uint8", "histogram", _COUNTED)
_REDUCED = 2**20
_REDUCTION = Case(
    "reduction (sum), 2^20 float32", "reduction", params={"n": _REDUCED, "dtype": "float32", "operator": "sum"}
)

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
import resource, sys
import numpy as np
from gpu import engines
from gpu.execute import run_pattern
from gpu.patterns import find_pattern
pattern = find_pattern("convolution")
image = np.random.default_rng(int(sys.argv[1])).integers(0, 256, (4096, 4096), np.uint8)
inputs = {"image": image, "maxval": np.array(255)}
outcome = run_pattern(
    engines.create("simulator"), pattern, pattern.variant("tiled"), inputs, {"size": 5}, lambda progress: None
)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
print(outcome.report.time_ms.kernel, peak, outcome.report.verified)
"""


def run(seed: int, repetitions: int) -> Iterator[Row]:
    """Measure the variants, then the peers, and yield a row for each."""
    engine = engines.create("simulator")
    for case in (_CONVOLUTION, _HISTOGRAM, _REDUCTION):
        yield from measure(engine, case, seed, repetitions)
    yield from _peers(seed, repetitions)
    yield from interpreter.run(seed, repetitions)
    yield _traced(seed, repetitions)
    yield _large_image(seed)


def device_name() -> str:
    """Return the processor's name."""
    return engines.create("simulator").device.name


def _peers(seed: int, repetitions: int) -> Iterator[Row]:
    from scipy import ndimage

    image = _CONVOLVED(np.random.default_rng(seed))["image"].astype(np.float32)
    weights = filter_of(find_pattern("convolution").check(_CONVOLUTION.params))
    times = interpreter.time_ms(lambda: ndimage.correlate(image, weights, mode="nearest"), repetitions)
    yield Row(_CONVOLUTION.work, "SciPy ndimage.correlate", False, times, 8 * image.size / 1e9, "GB/s")
    pixels = _COUNTED(np.random.default_rng(seed))["image"].ravel()
    times = interpreter.time_ms(lambda: np.bincount(pixels, minlength=256), repetitions)
    yield Row(_HISTOGRAM.work, "NumPy bincount", False, times, pixels.size / 1e9, "GB/s")
    values = np.random.default_rng(seed).random(_REDUCED, np.float32)
    yield Row(
        _REDUCTION.work, "NumPy sum", False, interpreter.time_ms(values.sum, repetitions), values.nbytes / 1e9, "GB/s"
    )


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
