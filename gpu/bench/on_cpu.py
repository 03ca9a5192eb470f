"""What libraries for the CPU do on the same inputs as a pattern's variants: NumPy, SciPy, OpenCV and Numba."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gpu.bench.interpreter import time_ms
from gpu.bench.ladder import Case, amount_of
from gpu.bench.row import Row
from gpu.declaration.pattern import Inputs, Params
from gpu.patterns import find_pattern
from gpu.patterns.convolution.pattern import filter_of

Peer = tuple[str, Callable[[], Any]]

_FILTER_2D, _CALC_HIST = "OpenCV filter2D", "OpenCV calcHist"
_NUMBA_SIMULATOR, _NUMBA_LOOPS = "Numba's CUDA simulator (2^16 elements)", "Numba, a double loop"
_OPTIONAL = {
    "convolution": {_FILTER_2D: "cv2"},
    "histogram": {_CALC_HIST: "cv2"},
    "nbody": {_NUMBA_LOOPS: "numba"},
    "reduction": {_NUMBA_SIMULATOR: "numba"},
}
"""The peers that need a package which is no requirement, and that package."""


def run(case: Case, seed: int, repetitions: int) -> Iterator[Row]:
    """Measure the libraries that do a case's work, and yield a row for each."""
    pattern = find_pattern(case.pattern)
    params = pattern.check(case.params)
    given = case.make_inputs(np.random.default_rng(seed)) if case.make_inputs else {}
    inputs = pattern.inputs(given, params, seed)
    amount, unit = amount_of(pattern, inputs, params)
    for name, action in _PEERS[case.pattern](inputs, params):
        yield Row(case.work, name, False, time_ms(action, repetitions), amount, unit)
    for name, package in _OPTIONAL.get(case.pattern, {}).items():
        if importlib.util.find_spec(package) is None:
            yield Row(case.work, name, False, (), 0, "", f"{package} is not installed here")
    if case.pattern == "reduction" and importlib.util.find_spec("numba"):
        yield _numba_simulator(case.work, seed)


# Numba reads the switch when it is imported: a process of its own.
_NUMBA = """
import os, sys, time
os.environ["NUMBA_ENABLE_CUDASIM"] = "1"
import numpy as np
from numba import cuda, float32

@cuda.jit
def reduce(data, partial):
    s = cuda.shared.array(256, float32)
    t = cuda.threadIdx.x
    value = 0.0
    i = cuda.blockIdx.x * cuda.blockDim.x + t
    while i < data.size:
        value += data[i]
        i += cuda.gridDim.x * cuda.blockDim.x
    s[t] = value
    cuda.syncthreads()
    stride = cuda.blockDim.x // 2
    while stride > 0:
        if t < stride:
            s[t] += s[t + stride]
        cuda.syncthreads()
        stride //= 2
    if t == 0:
        partial[cuda.blockIdx.x] = s[0]

data = np.random.default_rng(int(sys.argv[1])).random(int(sys.argv[2])).astype(np.float32)
partial = np.zeros(4, np.float32)
start = time.perf_counter()
reduce[4, 256](data, partial)
print(1e3 * (time.perf_counter() - start), np.isclose(partial.sum(), data.sum(), rtol=1e-4))
"""


def _numba_simulator(work: str, seed: int) -> Row:
    """Measure Numba's simulator, which runs each thread as one of Python's, once and on few elements."""
    count, who = 2**16, _NUMBA_SIMULATOR
    done = subprocess.run(
        [sys.executable, "-c", _NUMBA, str(seed), str(count)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        return Row(work, who, False, (), 0, "", f"failed: {reason}")
    milliseconds, right = done.stdout.split()
    remark = f"once; {'verified' if right == 'True' else 'WRONG'}; wanted: a 10,000th of ours"
    return Row(work, who, False, (float(milliseconds),), 4 * count / 1e9, "GB/s", remark)


def _convolution(inputs: Inputs, params: Params) -> Iterator[Peer]:
    from scipy import ndimage

    image, weights = inputs["image"].astype(np.float32), filter_of(params)
    yield "SciPy ndimage.correlate", lambda: ndimage.correlate(image, weights, mode="nearest")
    if importlib.util.find_spec("cv2"):
        import cv2

        yield _FILTER_2D, lambda: cv2.filter2D(image, -1, weights, borderType=cv2.BORDER_REPLICATE)


def _histogram(inputs: Inputs, params: Params) -> Iterator[Peer]:
    image = inputs["image"]
    yield "NumPy bincount", lambda: np.bincount(image.ravel(), minlength=256)
    if importlib.util.find_spec("cv2"):
        import cv2

        yield _CALC_HIST, lambda: cv2.calcHist([image], [0], None, [256], [0, 256])


def _reduction(inputs: Inputs, params: Params) -> Iterator[Peer]:
    values = inputs["values"].astype(np.float32)
    yield "NumPy sum", values.sum


def _scan(inputs: Inputs, params: Params) -> Iterator[Peer]:
    values = inputs["values"].astype(np.float32)
    scanned = np.empty_like(values)
    yield "NumPy cumsum", lambda: np.cumsum(values, out=scanned)


def _matmul(inputs: Inputs, params: Params) -> Iterator[Peer]:
    product = np.empty((inputs["values"].shape[0], inputs["b"].shape[1]), np.float32)
    yield "NumPy matmul", lambda: np.matmul(inputs["values"], inputs["b"], out=product)


def _softmax(inputs: Inputs, params: Params) -> Iterator[Peer]:
    from scipy import special

    yield "SciPy special.softmax", lambda: special.softmax(inputs["values"], axis=1)


def _nbody(inputs: Inputs, params: Params) -> Iterator[Peer]:
    if importlib.util.find_spec("numba") is None:
        return
    import numba

    def loops(bodies: Any, found: Any, softening_squared: Any) -> None:
        for i in range(bodies.shape[0]):
            ax = ay = az = np.float32(0)
            for j in range(bodies.shape[0]):
                dx = bodies[j, 0] - bodies[i, 0]
                dy = bodies[j, 1] - bodies[i, 1]
                dz = bodies[j, 2] - bodies[i, 2]
                inverse = np.float32(1) / np.sqrt(dx * dx + dy * dy + dz * dz + softening_squared)
                pull = bodies[j, 3] * inverse * inverse * inverse
                ax += dx * pull
                ay += dy * pull
                az += dz * pull
            found[i, 0], found[i, 1], found[i, 2] = ax, ay, az

    # Not as a decorator, which has no type where Numba is missing.
    accelerate = numba.njit(numba.void(numba.float32[:, ::1], numba.float32[:, ::1], numba.float32))(loops)
    bodies = np.ascontiguousarray(inputs["bodies"][:, [0, 1, 2, 6]])
    found = np.empty((len(bodies), 3), np.float32)
    squared = np.float32(params["softening"] ** 2)
    yield _NUMBA_LOOPS, lambda: accelerate(bodies, found, squared)


def _sort(inputs: Inputs, params: Params) -> Iterator[Peer]:
    keys = inputs["values"].astype(params["dtype"])
    yield "NumPy sort", lambda: np.sort(keys)


_PEERS: dict[str, Callable[[Inputs, Params], Iterator[Peer]]] = {
    "convolution": _convolution,
    "histogram": _histogram,
    "matmul": _matmul,
    "nbody": _nbody,
    "reduction": _reduction,
    "scan": _scan,
    "softmax": _softmax,
    "sort": _sort,
}
