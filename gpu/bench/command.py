"""The command `bench`: measure, print the results as they come, and write the data files and the page."""

from __future__ import annotations

import argparse
import datetime
import itertools
import secrets
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpu.base.errors import InputError
from gpu.base.paths import DOCS
from gpu.bench.recording_engine import MIN_REPETITIONS
from gpu.files import file_access

if TYPE_CHECKING:
    from gpu.bench.measurement import Measurement

PAGE = DOCS / "benchmarks.md"

_TITLES = {"gpu": "GPU", "simulator": "Simulator"}
WINDOW, MODEL, DEVICE, CLUSTER = "window", "model", "device", "cluster"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "device", nargs="?", choices=[*sorted(_TITLES), WINDOW, MODEL, DEVICE, CLUSTER],
        help="what to benchmark: gpu or simulator: the kernels (default: both, if there is a GPU); window: user "
        "actions; model: the timing model against the GPU; device: latencies and rates of the GPU; cluster: several "
        "GPUs against one",
    )  # fmt: skip
    parser.add_argument(
        "--measure", metavar="FILE", type=Path, help="with model, device: only measure, and write the results to FILE"
    )
    parser.add_argument(
        "--profile", metavar="FILE", type=Path, help="with model: launch each kernel once under a profiler"
    )
    parser.add_argument(
        "--counters", metavar="FILE", type=Path,
        help="with --profile: compare Nsight Compute's counters in FILE with the model's, without a GPU",
    )  # fmt: skip
    parser.add_argument(
        "--from",
        dest="from_file",
        metavar="FILE",
        type=Path,
        help="with model: compare with the results of --measure in FILE, without a GPU",
    )
    parser.add_argument(
        "--without-nvcc", action="store_true", help="with --from: model as without nvcc, with PTX from LLVM"
    )
    parser.add_argument(
        "--gpu", metavar="NAME", help="with model: GPU description to compare (default: the measured GPU's)"
    )
    parser.add_argument(
        "--show", metavar="NAME", nargs="?", const="",
        help="print all rows of a section of the page; without NAME: the names of the sections",
    )  # fmt: skip
    parser.add_argument(
        "--write-page", action="store_true", help="write the page from its data files, without measuring anything"
    )
    parser.add_argument(
        "--document", metavar="FILE", type=Path, default=PAGE,
        help="page to write (default: docs/benchmarks.md); its data files are in the folder with the page's name, such "
        "as docs/benchmarks/",
    )  # fmt: skip
    parser.add_argument(
        "--sweep", action="store_true",
        help="with gpu: measure only every variant over sizes, as data that Compare shows; do not write the page",
    )  # fmt: skip
    parser.add_argument(
        "--beside", action="store_true",
        help="with gpu: measure only the fastest variants and their peers over sizes, and plot them",
    )  # fmt: skip
    parser.add_argument(
        "--data", metavar="FILE", type=Path,
        help="with gpu: file for the measurements over sizes (default: in assets/recorded/, by the GPU's name); with "
        "model: file for the error of each case (default: in assets/modeled/)",
    )  # fmt: skip
    parser.add_argument(
        "--repetitions", metavar="N", type=int, default=21, help="repetitions of each measurement (default: 21)"
    )
    parser.add_argument("--seed", metavar="N", type=int, help="seed of random inputs (default: a new one each time)")
    parser.add_argument(
        "--workers", metavar="N", type=int, default=0, help="with cluster: number of workers (default: one per GPU)"
    )
    parser.add_argument(
        "--size", metavar="NAME=N", type=_parse_size, action="append", default=[],
        help="with cluster: size of a benchmark, such as sort=2^31; 0 skips it. Names: nbody (bodies), matmul (rows), "
        "sort, scan, reduction, histogram, convolution (elements), overhead (elements), disk (bytes)",
    )  # fmt: skip
    parser.add_argument(
        "--folder", metavar="DIR", type=Path, default=Path(tempfile.gettempdir()),
        help="with cluster: folder on a disk for an image (default: the temporary folder)",
    )  # fmt: skip


def _parse_size(text: str) -> tuple[str, int]:
    from gpu.bench.cluster.sizes import parse_size

    return parse_size(text)


WindowOpener = Callable[[int], Sequence[Any]]


def run(
    options: argparse.Namespace, measure_window: Callable[[Path, int], int], openings: WindowOpener | None = None
) -> int:
    """Measure and write the results; return 1 if a variant is wrong.

    Parameters
    ----------
    options : argparse.Namespace
    measure_window : callable
        Measures the window and writes the results to a page, given the repetitions of each action; returns the exit
        code.
    openings : callable or None
        Opens the window N times; returns for each the `wall_ms` and `cpu_ms` up to its first picture.
    """
    if options.show is not None or options.write_page:
        return _show(options)
    if options.repetitions < 1:
        raise InputError("--repetitions must be a whole number from 1.")
    if (options.sweep and options.device != "gpu") or (options.data and options.device not in ("gpu", MODEL)):
        raise InputError("--sweep requires `bench gpu`; --data requires `bench gpu` or `bench model`.")
    if options.beside and (options.device != "gpu" or options.sweep):
        raise InputError("--beside requires `bench gpu` without --sweep.")
    file_access.check_target(options.document)
    if options.data:
        file_access.check_target(options.data)
    if options.device == CLUSTER:
        return _benchmark_cluster(options)
    if options.size or options.workers:
        raise InputError("--size and --workers require `bench cluster`.")
    if options.device == WINDOW:
        return measure_window(options.document, options.repetitions)
    seed = options.seed if options.seed is not None else secrets.randbelow(2**31)
    if options.device in (MODEL, DEVICE):
        return _benchmark_model(seed, options)
    if options.beside:
        return _benchmark_size_comparison(seed, options)
    devices = [options.device] if options.device else _available_devices()
    benchmarked_devices = [] if options.sweep else devices
    codes = [_benchmark_device(device, seed, options, openings) for device in benchmarked_devices]
    return max([*codes, *([_record_size_sweep(seed, options)] if "gpu" in devices else [])])


def _show(options: argparse.Namespace) -> int:
    """Print sections of the page with all rows or their names, or write the page from its data files."""
    from gpu.bench.pages import document

    if options.device is not None or (options.show is not None and options.write_page):
        raise InputError("--show and --write-page require `bench` alone.")
    if options.write_page:
        document.write_page(options.document)
    else:
        sections = document.find_sections(options.document, options.show)
        if options.show:
            print("\n\n".join(section.markdown() for section in sections))
        else:
            print("\n".join(f"{section.name}: {section.device}, {section.date}" for section in sections))
    return 0


def _benchmark_cluster(options: argparse.Namespace) -> int:
    from gpu.distributed.cluster.dask_import import load_dask
    from gpu.distributed.cluster.settings import ClusterSettings

    if options.workers < 0:
        raise InputError("--workers must be a whole number from 1.")
    load_dask()
    from gpu.bench.cluster import command

    settings = ClusterSettings(workers=options.workers)
    return command.run(settings, dict(options.size), options.repetitions, options.document, options.folder)


def _benchmark_model(seed: int, options: argparse.Namespace) -> int:
    from gpu.bench.model import command

    if options.device == DEVICE:
        if options.measure is None:
            raise InputError("bench device requires --measure FILE, the file for its results.")
        return command.measure_device(options.measure)
    if options.counters is not None:
        if options.profile is None:
            raise InputError("--counters requires --profile FILE, which lists the launches that were counted.")
        return command.compare_counters(options.profile, options.counters, options.document, options.gpu)
    if options.profile is not None:
        return command.profile_launches(options.profile, seed)
    if options.from_file is not None:
        return command.compare_with_model(
            options.from_file, options.document, options.gpu, options.data, nvcc=not options.without_nvcc
        )
    if options.measure is not None:
        return command.measure_launches(options.measure, seed, options.repetitions)
    with tempfile.TemporaryDirectory() as folder:
        times = Path(folder) / "times.json"
        command.measure_launches(times, seed, options.repetitions)
        return command.compare_with_model(times, options.document, options.gpu, options.data)


def _available_devices() -> list[str]:
    from gpu.devices.survey import list_device_statuses

    has_gpu = any(status.engine == "cuda" and status.usable for status in list_device_statuses())
    return ["gpu", "simulator"] if has_gpu else ["simulator"]


def _benchmark_device(device: str, seed: int, options: argparse.Namespace, openings: WindowOpener | None) -> int:
    from gpu.bench import gpu_benchmark, simulator_benchmark
    from gpu.bench.measurement import format_table
    from gpu.bench.pages import document

    benchmark: Any = gpu_benchmark if device == "gpu" else simulator_benchmark
    measurements: Iterable[Measurement] = benchmark.run(seed, options.repetitions)
    if device == "simulator" and openings is not None:
        measurements = itertools.chain(
            measurements, [simulator_benchmark.measure_opening(openings, options.repetitions)]
        )
    rows = _print_rows(measurements)
    body = f"{_format_remark(seed, options)}\n\n{format_table(rows)}"
    document.write_section(options.document, _TITLES[device], benchmark.device_name(), body)
    return _exit_code(rows)


def _benchmark_size_comparison(seed: int, options: argparse.Namespace) -> int:
    """Measure the fastest variants and their peers over sizes; write the page's section and its plot."""
    from gpu.bench import gpu_benchmark, size_comparison
    from gpu.bench.pages import document
    from gpu.patterns import all_patterns

    plot = options.document.parent / "images" / "beside-peers.svg"
    plot.parent.mkdir(parents=True, exist_ok=True)
    file_access.check_target(plot)
    rows = _print_rows(gpu_benchmark.measure_cases("sizes", seed, options.repetitions))
    declared = [each for pattern in all_patterns().values() for each in pattern.benchmark.size_comparisons]
    curves, device = size_comparison.build_speedup_curves(declared, rows), gpu_benchmark.device_name()
    plot.write_text(size_comparison.draw_speedup_plot(curves, f"Compared with libraries: {device}"), encoding="utf-8")
    method = "The fastest of our variants and the fastest library at each size. L2 is cold before each run."
    parts = (
        f"{_format_remark(seed, options)} {method}",
        f"![Speedup over the best peer, by size](images/{plot.name})",
        size_comparison.format_summary(curves),
        size_comparison.format_table(curves),
    )
    document.write_section(options.document, "Over sizes", device, "\n\n".join(parts))
    return _exit_code(rows)


def _print_rows(measurements: Iterable[Measurement]) -> list[Measurement]:
    """Print each measurement as it comes, and return all of them."""
    rows = []
    for row in measurements:
        rows.append(row)
        figures = f"{row.median_ms:10.3f} ms {row.rate:10.4g} {row.unit}" if row.rate is not None else " " * 26
        print(f"{row.work:<48} {row.name:<44} {figures}  {row.remark}", flush=True)
    return rows


def _format_remark(seed: int, options: argparse.Namespace) -> str:
    fewer = f" ({MIN_REPETITIONS} for long runs)" if options.repetitions > MIN_REPETITIONS else ""
    return f"Median of {options.repetitions}{fewer}, seed {seed}."


def _exit_code(rows: list[Measurement]) -> int:
    return 1 if any("WRONG" in row.remark for row in rows) else 0


def _record_size_sweep(seed: int, options: argparse.Namespace) -> int:
    """Measure every variant over sizes on the GPU, and write the measurements as data."""
    from gpu import engines
    from gpu.bench import device_records, size_sweep
    from gpu.devices.probe import driver_version
    from gpu.patterns import all_patterns

    with closing(engines.create_engine("cuda")) as engine:
        runs = []
        measuring = size_sweep.run(engine, all_patterns().values(), seed, options.repetitions, report=print)
        for run in measuring:
            runs.append(run)
            figures = f"{run.median_ms:10.4f} ms {run.rate:10.4g} {run.unit}" if run.verified else "WRONG, so not timed"
            print(f"{run.pattern:<12} {run.variant:<20} {run.size:>10}  {figures}", flush=True)
        path = options.data or device_records.record_path(engine.device.name)
        record = device_records.DeviceRecord(
            engine.device.name,
            datetime.datetime.now(datetime.UTC).date().isoformat(),
            driver_version(),
            f"Median of {options.repetitions} warm repetitions (at least {MIN_REPETITIONS} for long runs), the cache "
            f"cold before each launch, timed with device events around the kernels alone; seed {seed}.",
            tuple(run for run in runs if run.verified),
        )
    device_records.write_record(path, record)
    print(f"written: {path}")
    return 0 if all(run.verified for run in runs) else 1
