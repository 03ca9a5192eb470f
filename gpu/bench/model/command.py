"""`python main.py bench model` and `bench device`: a GPU measured, and the timing model beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpu.bench.model.measured import MeasuredTimes

REPETITIONS = 9


def measure_launches(path: Path, seed: int, repetitions: int) -> int:
    """Measure every case on the GPU that is here, and write the times as data."""
    from gpu import engines
    from gpu.bench.model import measure

    engine: Any = engines.create("cuda")
    try:
        print(f"{measure.prepare(engine, seed)} modules are compiled", flush=True)
        cases = []
        for case in measure.measure(engine, seed, repetitions):
            cases.append(case)
            print(f"{case.work:<60} {case.who:<24} {case.time_us:12.2f} us", flush=True)
        MeasuredTimes(engine.device.name, seed, tuple(cases)).save(path)
    finally:
        engine.close()
    return 0


def profile_launches(path: Path, seed: int) -> int:
    """Launch a part of the cases once under a profiler that looks on, and write which launches it saw, in order."""
    import pycuda.driver as cuda

    from gpu import engines
    from gpu.bench.model import measure

    engine: Any = engines.create("cuda")
    try:
        measure.prepare(engine, seed)
        cases = tuple(measure.profile(engine, seed, cuda.start_profiler, cuda.stop_profiler))
        MeasuredTimes(engine.device.name, seed, cases).save(path)
    finally:
        engine.close()
    return 0


def measure_device(path: Path) -> int:
    """Measure what the GPU that is here is made of, and write its description."""
    from gpu.bench.model import microbenchmarks

    microbenchmarks.measure(path)
    return 0
