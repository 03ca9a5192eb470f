"""Measurements of a GPU, and comparisons of the timing model with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tools.model_bench.measured_times import MeasuredTimes, load_times


def measure_launches(path: Path, seed: int, repetitions: int) -> int:
    """Measure every case on this machine's GPU, and write the times to a file."""
    from gpu import engines
    from tools.model_bench import measure

    engine: Any = engines.create_engine("cuda")
    try:
        print(f"{measure.compile_modules(engine, seed)} modules are compiled", flush=True)
        cases = []
        for case in measure.measure(engine, seed, repetitions):
            cases.append(case)
            print(f"{case.work:<60} {case.who:<24} {case.time_us:12.2f} us", flush=True)
        MeasuredTimes(engine.device.name, seed, tuple(cases)).save(path)
    finally:
        engine.close()
    return 0


def compare_with_model(path: Path, page: Path, gpu: str | None, data: Path | None = None, *, nvcc: bool = True) -> int:
    """Model the measured cases of a file, print both times, and write the page's section and the validation data.

    Parameters
    ----------
    path : Path
        The times, as `measure_launches` writes them.
    page : Path
        The Markdown page with the section.
    gpu : str or None
        The GPU to model, by name or as a file with a description; None for the one that was measured.
    data : Path or None
        The file for the validation data; None for the project's file of this GPU.
    nvcc : bool
        Whether to compile with nvcc; False compares the results of a machine without it.

    Returns
    -------
    int
        The exit status, 0.

    Raises
    ------
    InputError
        `path` does not contain measured times, or there is no such GPU.
    """
    from gpu.bench.pages import document
    from gpu.timing import validation
    from gpu.timing.gpus import find_gpu
    from tools.model_bench import compare

    times = load_times(path)
    gpu_description = find_gpu(gpu or times.gpu)
    rows = []
    for row in compare.compare_cases(times, gpu_description, nvcc=nvcc):
        rows.append(row)
        modeled = f"{row.modeled_us:12.2f} us {row.ratio:6.2f}" if row.modeled_us is not None else row.remark
        print(
            f"{row.pattern_or_file:<16} {row.variant_or_kernel:<20} {row.work:<56} "
            f"{row.measured_us:12.2f} us {modeled}",
            flush=True,
        )
    if nvcc:
        name = f"Timing model on {gpu_description.key}"
        body = compare.format_tables(rows, gpu_description.name, times.remark)
    else:
        name = f"Timing model without nvcc on {gpu_description.key}"
        body = compare.format_llvm_tables(rows, times.remark)
    document.write_section(page, name, times.gpu, body)
    modeled_rows = [row for row in rows if row.modeled_us is not None]
    if modeled_rows:
        result = compare.build_validation(modeled_rows, gpu_description.key, times)
        validation.write_validation(data or validation.validation_path(result.gpu, result.source), result)
    return 0


def compare_counters(profile: Path, counters_path: Path, page: Path, gpu: str | None) -> int:
    """Model the launches that a profiler has counted, and write the page's section of counters.

    Parameters
    ----------
    profile : Path
        The profiled launches, as `profile_launches` writes them.
    counters_path : Path
        Nsight Compute's CSV file with the counters of these launches.
    page : Path
        The Markdown page with the section.
    gpu : str or None
        The GPU to model, by name or as a file with a description; None for the profiled one.

    Returns
    -------
    int
        The exit status, 0.

    Raises
    ------
    InputError
        A file has another format, or there is no such GPU.
    """
    from gpu.bench.pages import document
    from gpu.timing.gpus import find_gpu
    from tools.model_bench import counters

    profiled, launches = load_times(profile), counters.read_profile(counters_path)
    gpu_description = find_gpu(gpu or profiled.gpu)
    rows = []
    for row in counters.compare_launches(profiled, launches, gpu_description):
        rows.append(row)
        ratios = (row.ratio(counter) for counter in counters.COUNTERS)
        figures = " ".join(f"{ratio:6.2f}" if ratio is not None else " " * 6 for ratio in ratios)
        print(
            f"{row.pattern_or_file:<16} {row.variant_or_kernel:<20} {row.work:<56} {row.launch.kernel:<28} {figures}",
            flush=True,
        )
    section = f"Timing model's counters on {gpu_description.key}"
    document.write_section(page, section, profiled.gpu, counters.format_tables(rows))
    return 0


def profile_launches(path: Path, seed: int) -> int:
    """Launch some cases once under a profiler, and write the profiled launches to a file, in order."""
    import pycuda.driver as cuda

    from gpu import engines
    from tools.model_bench import measure

    engine: Any = engines.create_engine("cuda")
    try:
        measure.compile_modules(engine, seed)
        cases = tuple(measure.profile(engine, seed, cuda.start_profiler, cuda.stop_profiler))
        MeasuredTimes(engine.device.name, seed, cases).save(path)
    finally:
        engine.close()
    return 0


def measure_device(path: Path) -> int:
    """Measure the properties of this machine's GPU, and write its description."""
    from tools.model_bench import microbenchmarks

    microbenchmarks.measure(path)
    return 0
