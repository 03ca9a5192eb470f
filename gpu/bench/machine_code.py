"""Benchmark of compiling each kernel to machine code for the CPU, and of fetching it from the cache."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

from gpu.base.paths import KERNELS
from gpu.bench.measurement import Measurement
from gpu.simulator.compiled.llvm.assembly import UnsupportedKernel
from gpu.simulator.simulated_module import SimulatedModule

_BLOCK = (32, 8, 1)


def run() -> Iterator[Measurement]:
    """Measure, and yield a row for all kernels, compiled and from the cache."""
    with tempfile.TemporaryDirectory() as folder, _use_cache_folder(folder):
        for name, goal in (("First time", "1000 ms"), ("From the cache", "50 ms")):
            times, not_compiled = _prepare_all()
            slowest = max(times, key=lambda name: times[name])
            remark = f"the slowest of {len(times)} is {slowest}; goal: at most {goal}"
            if not_compiled:
                remark += f"; in lockstep: {', '.join(not_compiled)}"
            yield Measurement("machine code of a kernel", name, True, tuple(times.values()), 1, "kernels/s", remark)


def _prepare_all() -> tuple[dict[str, float], list[str]]:
    """Return the milliseconds of each kernel, and the kernels that only the lockstep executor runs."""
    times, not_compiled = {}, []
    for path in sorted(KERNELS.glob("*.cu")):
        module = SimulatedModule(path.read_text(encoding="utf-8"), path, {})
        for name in module.kernels:
            kernel = module.compiled_kernel(name)
            start = time.perf_counter()
            try:
                kernel.prepare((1, 1, 1), _BLOCK)
            except UnsupportedKernel:
                not_compiled.append(name)
            else:
                times[name] = 1e3 * (time.perf_counter() - start)
    return times, not_compiled


@contextmanager
def _use_cache_folder(folder: str) -> Iterator[None]:
    before = os.environ.get("LOCKSTEP_CACHE")
    os.environ["LOCKSTEP_CACHE"] = folder
    try:
        yield
    finally:
        if before is None:
            del os.environ["LOCKSTEP_CACHE"]
        else:
            os.environ["LOCKSTEP_CACHE"] = before
