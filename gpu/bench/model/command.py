"""`python main.py bench model` and `bench device`: a GPU measured, and the timing model beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpu.bench.model.measured import MeasuredTimes, load


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


def compare_with(path: Path, page: Path, gpu: str | None, data: Path | None = None, *, nvcc: bool = True) -> int:
    """Model what was measured and is kept as data, print both, write the page's section, and the cases as data."""
    from gpu.bench import document
    from gpu.bench.model import compare
    from gpu.timing import validation
    from gpu.timing.gpus import find_gpu

    times = load(path)
    described = find_gpu(gpu or times.gpu)
    rows = []
    for row in compare.compare(times, described, nvcc=nvcc):
        rows.append(row)
        modeled = f"{row.modeled_us:12.2f} us {row.ratio:6.2f}" if row.modeled_us is not None else row.remark
        print(f"{row.of:<16} {row.who:<20} {row.work:<56} {row.measured_us:12.2f} us {modeled}", flush=True)
    if nvcc:
        name, body = f"Timing model on {described.key}", compare.tables(rows, described.name, times.remark)
    else:
        name, body = f"Timing model without nvcc on {described.key}", compare.without_nvcc(rows, times.remark)
    document.write_section(page, name, times.gpu, body)
    known = [row for row in rows if row.modeled_us is not None]
    if known:
        found = compare.validation_of(known, described.key, times.gpu)
        validation.write(data or validation.path_of(found.gpu, found.source), found)
    return 0


def count_with(profile: Path, counted: Path, page: Path, gpu: str | None) -> int:
    """Model the launches that a profiler has counted, and write the page's section of counters."""
    from gpu.bench import document
    from gpu.bench.model import counters
    from gpu.timing.gpus import find_gpu

    profiled, seen = load(profile), counters.read(counted)
    described = find_gpu(gpu or profiled.gpu)
    rows = []
    for row in counters.compare(profiled, seen, described):
        rows.append(row)
        ratios = (row.ratio(counter) for counter in counters.COUNTERS)
        figures = " ".join(f"{ratio:6.2f}" if ratio is not None else " " * 6 for ratio in ratios)
        print(f"{row.of:<16} {row.who:<20} {row.work:<56} {row.launch.kernel:<28} {figures}", flush=True)
    document.write_section(page, f"Timing model's counters on {described.key}", profiled.gpu, counters.tables(rows))
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
