"""The command `bench`: measure, print the results as they come, and write the data files and the page."""

from __future__ import annotations

import argparse
import datetime
import itertools
import secrets
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
WINDOW = "window"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "device", nargs="?", choices=[*sorted(_TITLES), WINDOW],
        help="what to benchmark: gpu or simulator: the kernels (default: both, if there is a GPU); window: user "
        "actions",
    )  # fmt: skip
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
        "--beside", metavar="WORK", nargs="?", const="",
        help="with gpu: measure only the fastest variants and their peers over sizes, and plot them; with WORK: only "
        "the kinds of work whose names contain it, as a section of the page, without a plot",
    )  # fmt: skip
    parser.add_argument(
        "--data", metavar="FILE", type=Path,
        help="with gpu: file for the measurements over sizes (default: in assets/recorded/, by the GPU's name)",
    )  # fmt: skip
    parser.add_argument(
        "--repetitions", metavar="N", type=int, default=21, help="repetitions of each measurement (default: 21)"
    )
    parser.add_argument("--seed", metavar="N", type=int, help="seed of random inputs (default: a new one each time)")


WindowOpener = Callable[[int], Sequence[Any]]


def run(
    options: argparse.Namespace, measure_window: Callable[[Path, int], int], openings: WindowOpener | None = None
) -> int:
    """Measure and write the results; return 1 if a variant is wrong.

    Parameters
    ----------
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
    if (options.sweep or options.data) and options.device != "gpu":
        raise InputError("--sweep and --data require `bench gpu`.")
    if options.beside is not None and (options.device != "gpu" or options.sweep):
        raise InputError("--beside requires `bench gpu` without --sweep.")
    file_access.check_target(options.document)
    if options.data:
        file_access.check_target(options.data)
    if options.device == WINDOW:
        return measure_window(options.document, options.repetitions)
    seed = options.seed if options.seed is not None else secrets.randbelow(2**31)
    if options.beside is not None:
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


def _available_devices() -> list[str]:
    from gpu.base.devices.survey import list_device_statuses

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
    """Measure the fastest variants and their peers over sizes; write the page's section, and the plot of all works."""
    from gpu.bench import gpu_benchmark, size_comparison
    from gpu.bench.pages import document
    from gpu.bench.peers import SIZES, CaseSelection
    from gpu.patterns import all_patterns

    plot = options.document.parent / "images" / "beside-peers.svg"
    if not options.beside:
        plot.parent.mkdir(parents=True, exist_ok=True)
        file_access.check_target(plot)
    selection = CaseSelection(SIZES, options.beside)
    declared = [each for pattern in all_patterns().values() for each in selection.size_comparisons(pattern)]
    if not declared:
        raise InputError(f"No kind of work over sizes has a name with {options.beside!r}.")
    rows = _print_rows(gpu_benchmark.measure_cases(selection, seed, options.repetitions))
    curves, device = size_comparison.build_speedup_curves(declared, rows), gpu_benchmark.device_name()
    method = "The fastest of our variants and the fastest library at each size. L2 is cold before each run."
    parts = [
        f"{_format_remark(seed, options)} {method}",
        size_comparison.format_summary(curves),
        size_comparison.format_table(curves),
    ]
    if not options.beside:
        title = f"Compared with libraries: {device}"
        file_access.write_file(plot, size_comparison.draw_speedup_plot(curves, title))
        parts.insert(1, f"![Speedup over the best peer, by size](images/{plot.name})")
    name = f"Over sizes, {options.beside}" if options.beside else "Over sizes"
    document.write_section(options.document, name, device, "\n\n".join(parts))
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
    from gpu.base.devices.probe import driver_version
    from gpu.bench import device_records, size_sweep
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
            f"cold before each, timed with device events around the kernels alone; seed {seed}.",
            tuple(run for run in runs if run.verified),
        )
    device_records.write_record(path, record)
    print(f"written: {path}")
    return 0 if all(run.verified for run in runs) else 1
