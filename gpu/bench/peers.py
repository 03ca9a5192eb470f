"""Time the libraries: PyTorch's cuDNN, CuPy, and CUB from a program that is compiled here.

A script, not a module: it runs in a process of its own, whose context the libraries own, and prints a JSON line for
each figure. A library that is missing is a line that says so.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

Works = dict[str, Any]
WARM_UP = 3
LEAD_CACHES = 2
"""How many times what its cache holds a GPU reads before each round, as before each launch of ours."""


def _tell(work: str, who: str, times_ms: list[float], amount: float, remark: str = "", *, unit: str = "GB/s") -> None:
    row = {"work": work, "who": who, "ours": False, "times_ms": times_ms, "amount": amount, "unit": unit}
    print(json.dumps({**row, "remark": remark}), flush=True)


def _pytorch(works: Works) -> None:
    import torch

    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(works["seed"])

    cache_bytes = torch.cuda.get_device_properties(0).L2_cache_size
    lead = torch.zeros(LEAD_CACHES * cache_bytes // 4, device="cuda")

    def time(action: Callable[[], Any]) -> list[float]:
        times = []
        for repetition in range(WARM_UP + works["repetitions"]):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            lead.sum()
            start.record()
            action()
            end.record()
            end.synchronize()
            if repetition >= WARM_UP:
                times.append(start.elapsed_time(end))
        return times

    block = torch.rand(2**28, device="cuda")
    other = torch.empty_like(block)
    _tell("device-to-device copy, 1 GiB", "driver", time(lambda: other.copy_(block)), 2 * block.nbytes / 1e9)
    side = works["side"]
    image = torch.rand(1, 1, side, side, device="cuda")
    for size, work in works["convolution"].items():
        weights = torch.rand(1, 1, int(size), int(size), device="cuda")
        times = time(partial(torch.nn.functional.conv2d, image, weights, padding="same"))
        _tell(work, f"cuDNN {torch.backends.cudnn.version()} (PyTorch)", times, 8 * side * side / 1e9)
    for content, work in works["histogram"].items():
        pixels = torch.full((works["count"] // 4,), 7, dtype=torch.uint8, device="cuda")
        if content == "uniform":
            pixels.random_(0, 256)
        times = time(partial(torch.bincount, pixels, minlength=256))
        _tell(work, "PyTorch bincount (a quarter of the pixels)", times, pixels.nbytes / 1e9)
    calls: dict[str, Callable[[Any], Any]] = {
        "reduction": torch.sum,
        "scan": lambda values: torch.cumsum(values, 0),
        "compaction": lambda values: values[values > 0.5],
    }
    for pattern, count, work, amount in _arrays(works):
        values = torch.rand(count, device="cuda")
        _tell(work, f"PyTorch {torch.__version__}", time(partial(calls[pattern], values)), amount)
    for n, work, operations in _products(works):
        a, b = torch.rand(n, n, device="cuda"), torch.rand(n, n, device="cuda")
        times = time(partial(torch.matmul, a, b, out=torch.empty_like(a)))
        _tell(work, "cuBLAS, no TF32 (PyTorch)", times, operations, unit="GFLOP/s")
    for rows, columns, work in works["softmax"]:
        matrix = torch.rand(rows, columns, device="cuda")
        times = time(partial(torch.softmax, matrix, 1))
        _tell(work, f"PyTorch {torch.__version__}", times, 8 * rows * columns / 1e9)
    for result, count, work, amount in _sorts(works):
        if result == "places":  # of 64 bits
            continue
        keys = torch.randint(-(2**31), 2**31 - 1, (count,), dtype=torch.int32, device="cuda")
        _tell(work, f"PyTorch {torch.__version__}, int32, with places", time(partial(torch.sort, keys)), amount)


def _cupy(works: Works) -> None:
    import cupy
    from cupyx.scipy import ndimage, special

    lead = cupy.zeros(LEAD_CACHES * cupy.cuda.Device().attributes["L2CacheSize"] // 4, cupy.float32)

    def time(action: Callable[[], Any]) -> list[float]:
        times = []
        for repetition in range(WARM_UP + works["repetitions"]):
            start, end = cupy.cuda.Event(), cupy.cuda.Event()
            lead.sum()
            start.record()
            action()
            end.record()
            end.synchronize()
            if repetition >= WARM_UP:
                times.append(cupy.cuda.get_elapsed_time(start, end))
        return times

    side = works["side"]
    rng = cupy.random.default_rng(works["seed"])
    image = rng.random((side, side), dtype=cupy.float32)
    for size, work in works["convolution"].items():
        weights = rng.random((int(size), int(size)), dtype=cupy.float32)
        times = time(partial(ndimage.correlate, image, weights, mode="constant"))
        _tell(work, f"CuPy {cupy.__version__} ndimage", times, 8 * side * side / 1e9)
    calls: dict[str, Callable[[Any], Any]] = {
        "reduction": cupy.sum,
        "scan": cupy.cumsum,
        "compaction": lambda values: values[values > 0.5],
    }
    for pattern, count, work, amount in _arrays(works):
        values = rng.random(count, dtype=cupy.float32)
        _tell(work, f"CuPy {cupy.__version__}", time(partial(calls[pattern], values)), amount)
    for n, work, operations in _products(works):
        a, b = rng.random((n, n), dtype=cupy.float32), rng.random((n, n), dtype=cupy.float32)
        times = time(partial(cupy.matmul, a, b, out=cupy.empty_like(a)))
        _tell(work, f"cuBLAS (CuPy {cupy.__version__})", times, operations, unit="GFLOP/s")
    for rows, columns, work in works["softmax"]:
        matrix = rng.random((rows, columns), dtype=cupy.float32)
        times = time(partial(special.softmax, matrix, 1))
        _tell(work, f"CuPy {cupy.__version__}", times, 8 * rows * columns / 1e9)
    for result, count, work, amount in _sorts(works):
        keys = rng.integers(0, 2**32, count, cupy.uint32)
        who = f"CuPy {cupy.__version__} (Thrust) {'sort' if result == 'keys' else 'argsort'}"
        _tell(work, who, time(partial(cupy.sort if result == "keys" else cupy.argsort, keys)), amount)


def _arrays(works: Works) -> Iterator[tuple[str, int, str, float]]:
    """Yield the pattern, the number of elements, the name of the work, and its least traffic in GB."""
    for pattern, bytes_an_element in works["bytes_an_element"].items():
        for count, work in works[pattern].items():
            yield pattern, int(count), work, bytes_an_element * int(count) / 1e9


def _products(works: Works) -> Iterator[tuple[int, str, float]]:
    """Yield the side of square matrices, the name of the work, and 10^9 operations of their product."""
    for side, work in works["matmul"].items():
        yield int(side), work, 2 * int(side) ** 3 / 1e9


def _sorts(works: Works) -> Iterator[tuple[str, int, str, float]]:
    """Yield "keys" or "places", the number of keys, the name of the work, and its least traffic in GB."""
    for result, bytes_a_key in (("keys", 8), ("places", 16)):
        for count, work in works["sort"][result].items():
            yield result, int(count), work, bytes_a_key * int(count) / 1e9


def _compiling_cub(program: Path) -> subprocess.Popen[bytes] | None:
    """Begin to compile what times CUB, which takes as long as the other libraries' figures; None without a compiler."""
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    source = Path(__file__).with_name("cub.cu")
    try:
        return subprocess.Popen([nvcc, "-O3", "-arch=native", "-std=c++17", str(source), "-o", str(program)])
    except OSError:
        return None


def _cub(works: Works, program: Path, compiling: subprocess.Popen[bytes] | None) -> None:
    if compiling is None:
        raise ImportError("nvcc")
    if compiling.wait():
        raise RuntimeError("nvcc did not compile it")

    def time(action: str, count: int, work: str, amount: float) -> None:
        arguments = [action, str(count), str(works["seed"]), str(WARM_UP), str(works["repetitions"])]
        printed = subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout.split()
        _tell(work, f"CUB {printed[0]}", [float(time) for time in printed[1:]], amount)

    for content, work in works["histogram"].items():
        time(f"histogram-{content}", works["count"], work, works["count"] / 1e9)
    actions = {"reduction": "reduce", "scan": "scan", "compaction": "select"}
    for pattern, count, work, amount in _arrays(works):
        time(actions[pattern], count, work, amount)
    for result, count, work, amount in _sorts(works):
        time("sort" if result == "keys" else "sort-pairs", count, work, amount)


def main() -> None:
    """Time every library; one that is not here, or fails, is told and does not stop the others."""
    works, program = json.loads(sys.argv[1]), Path(sys.argv[2], "cub")
    compiling = _compiling_cub(program)
    sections: dict[str, Callable[[], None]] = {
        "PyTorch": lambda: _pytorch(works),
        "CuPy": lambda: _cupy(works),
        "CUB": lambda: _cub(works, program, compiling),
    }
    for name, section in sections.items():
        try:
            section()
        except ImportError:
            _tell("peers", name, [], 0, "not installed here")
        except Exception as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            _tell("peers", name, [], 0, f"failed: {reason}")


if __name__ == "__main__":
    main()
