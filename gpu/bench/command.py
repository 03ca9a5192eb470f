"""`python main.py bench`: measure, print as it comes, and write the page; of a GPU also what is kept as data."""

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

from gpu.bench.record import FEWEST
from gpu.errors import InputError
from gpu.files import opening

if TYPE_CHECKING:
    from gpu.bench.measurement import Measurement

PAGE = Path(__file__).resolve().parents[2] / "docs" / "benchmarks.md"

_TITLES = {"gpu": "GPU", "simulator": "Simulator"}
WINDOW, MODEL, DEVICE, CLUSTER = "window", "model", "device", "cluster"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument(
        "device", nargs="?", choices=[*sorted(_TITLES), WINDOW, MODEL, DEVICE, CLUSTER],
        help="what to measure: the kernels, on both where there is a GPU, how long the window takes for a move, the "
        "timing model beside the GPU, what the GPU is made of, or several GPUs beside one",
    )  # fmt: skip
    parser.add_argument(
        "--measure", metavar="FILE", type=Path, help="of model, device: only measure, and write that as data"
    )
    parser.add_argument(
        "--profile", metavar="FILE", type=Path, help="of model: launch each kernel once, for a profiler that looks on"
    )
    parser.add_argument(
        "--counters", metavar="FILE", type=Path,
        help="with --profile: compare what Nsight Compute wrote of that with the model's counts, without a GPU",
    )  # fmt: skip
    parser.add_argument(
        "--from",
        dest="kept",
        metavar="FILE",
        type=Path,
        help="of model: compare with what --measure wrote, without a GPU",
    )
    parser.add_argument(
        "--without-nvcc", action="store_true", help="with --from: model as where it is not installed, PTX by LLVM"
    )
    parser.add_argument("--gpu", metavar="NAME", help="of model: the description to compare (the measured GPU's own)")
    parser.add_argument("--document", type=Path, default=PAGE, help="the page to write, docs/benchmarks.md")
    parser.add_argument(
        "--sweep", action="store_true",
        help="with gpu: only every variant over sizes, which Compare shows as recorded, and not the page",
    )  # fmt: skip
    parser.add_argument(
        "--beside", action="store_true",
        help="with gpu: only the fastest variants beside their peers over sizes, drawn beside the page too",
    )  # fmt: skip
    parser.add_argument(
        "--data", type=Path,
        help="the file of what was measured over sizes, assets/recorded/, by the GPU's name; of model, of how far each "
        "case is off, assets/modeled/",
    )  # fmt: skip
    parser.add_argument("--repetitions", type=int, default=21, help="how often each is timed (21)")
    parser.add_argument("--seed", type=int, help="of the random inputs; another one each time")
    parser.add_argument("--workers", type=int, default=0, help="of cluster: how many (one a GPU)")
    parser.add_argument(
        "--size", metavar="NAME=N", type=_size, action="append", default=[],
        help="of cluster: another size, such as sort=2^31, and 0 to leave a work out: nbody (bodies), matmul (rows), "
        "sort, scan, reduction, histogram, convolution (elements), overhead (elements), disk (bytes)",
    )  # fmt: skip
    parser.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir()), help="of cluster: where an image lies on a disk"
    )


def _size(text: str) -> tuple[str, int]:
    from gpu.bench.cluster.sizes import size_of

    return size_of(text)


Openings = Callable[[int], Sequence[Any]]


def run(
    options: argparse.Namespace, measure_window: Callable[[Path, int], int], openings: Openings | None = None
) -> int:
    """Measure and write; return 1 where a variant is wrong.

    Parameters
    ----------
    options : argparse.Namespace
    measure_window : callable
        Measures the window and writes that to a page, given how often each move is made; returns the exit code.
    openings : callable or None
        Opens the window so often; of each, `wall_ms` and `cpu_ms` up to its first picture.
    """
    if options.repetitions < 1:
        raise InputError("--repetitions is a whole number from 1.")
    if (options.sweep and options.device != "gpu") or (options.data and options.device not in ("gpu", MODEL)):
        raise InputError("--sweep goes with `bench gpu`, --data with that and `bench model`: nothing else is kept.")
    if options.beside and (options.device != "gpu" or options.sweep):
        raise InputError("--beside goes with `bench gpu`, and without --sweep.")
    opening.check_target(options.document)
    if options.data:
        opening.check_target(options.data)
    if options.device == CLUSTER:
        return _cluster(options)
    if options.size or options.workers:
        raise InputError("--size and --workers go with `bench cluster`.")
    if options.device == WINDOW:
        return measure_window(options.document, options.repetitions)
    seed = options.seed if options.seed is not None else secrets.randbelow(2**31)
    if options.device in (MODEL, DEVICE):
        return _modeled(seed, options)
    if options.beside:
        return _beside(seed, options)
    devices = [options.device] if options.device else _devices_here()
    pages = [] if options.sweep else devices
    codes = [_measure(device, seed, options, openings) for device in pages]
    return max([*codes, *([_record(seed, options)] if "gpu" in devices else [])])


def _cluster(options: argparse.Namespace) -> int:
    from gpu.distributed.asked import Asked
    from gpu.distributed.library import load_dask

    if options.workers < 0:
        raise InputError("--workers is a whole number from 1.")
    load_dask()
    from gpu.bench.cluster import command

    asked = Asked(workers=options.workers)
    return command.run(asked, dict(options.size), options.repetitions, options.document, options.folder)


def _modeled(seed: int, options: argparse.Namespace) -> int:
    from gpu.bench.model import command

    if options.device == DEVICE:
        if options.measure is None:
            raise InputError("bench device writes what it measures to a file: --measure FILE.")
        return command.measure_device(options.measure)
    if options.counters is not None:
        if options.profile is None:
            raise InputError("--counters goes with --profile FILE, which says which launches were counted.")
        return command.count_with(options.profile, options.counters, options.document, options.gpu)
    if options.profile is not None:
        return command.profile_launches(options.profile, seed)
    if options.kept is not None:
        return command.compare_with(
            options.kept, options.document, options.gpu, options.data, nvcc=not options.without_nvcc
        )
    if options.measure is not None:
        return command.measure_launches(options.measure, seed, options.repetitions)
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "times.json"
        command.measure_launches(kept, seed, options.repetitions)
        return command.compare_with(kept, options.document, options.gpu, options.data)


def _devices_here() -> list[str]:
    from gpu.devices.survey import survey

    has_gpu = any(found.engine == "cuda" and found.usable for found in survey())
    return ["gpu", "simulator"] if has_gpu else ["simulator"]


def _measure(device: str, seed: int, options: argparse.Namespace, openings: Openings | None) -> int:
    from gpu.bench import document, on_gpu, on_simulator  # only this command needs them, and every one reads this file
    from gpu.bench.measurement import table

    measuring: Any = on_gpu if device == "gpu" else on_simulator
    measured: Iterable[Measurement] = measuring.run(seed, options.repetitions)
    if device == "simulator" and openings is not None:
        measured = itertools.chain(measured, [on_simulator.opening(openings, options.repetitions)])
    rows = _told(measured)
    body = f"{_remarks(seed, options)}\n\n{table(rows)}"
    document.write_section(options.document, _TITLES[device], measuring.device_name(), body)
    return _code(rows)


def _beside(seed: int, options: argparse.Namespace) -> int:
    """Measure the fastest variants beside their peers over sizes, and write the page's section and its drawing."""
    from gpu.bench import beside, document, on_gpu
    from gpu.patterns import all_patterns

    drawn = options.document.parent / "images" / "beside-peers.svg"
    drawn.parent.mkdir(parents=True, exist_ok=True)
    opening.check_target(drawn)
    rows = _told(on_gpu.measure_cases("beside", seed, options.repetitions))
    declared = [each for pattern in all_patterns().values() for each in pattern.benchmark.beside]
    curves, device = beside.curves_of(declared, rows), on_gpu.device_name()
    drawn.write_text(beside.picture(curves, f"Beside the libraries: {device}"), encoding="utf-8")
    how = "The fastest of ours, verified first, and of the libraries, at every size; the L2 is cold before each."
    parts = (
        f"{_remarks(seed, options)} {how}",
        f"![Times as fast as the best peer, over sizes](images/{drawn.name})",
        beside.summary(curves),
        beside.table(curves),
    )
    document.write_section(options.document, "Over sizes", device, "\n\n".join(parts))
    return _code(rows)


def _told(measured: Iterable[Measurement]) -> list[Measurement]:
    """Print each figure as it comes, and return them all."""
    rows = []
    for row in measured:
        rows.append(row)
        figures = f"{row.median_ms:10.3f} ms {row.rate:10.4g} {row.unit}" if row.rate is not None else " " * 26
        print(f"{row.work:<48} {row.who:<44} {figures}  {row.remark}", flush=True)
    return rows


def _remarks(seed: int, options: argparse.Namespace) -> str:
    fewer = f" ({FEWEST} where they take long)" if options.repetitions > FEWEST else ""
    return f"Median of {options.repetitions}{fewer}, seed {seed}."


def _code(rows: list[Measurement]) -> int:
    return 1 if any("WRONG" in row.remark for row in rows) else 0


def _record(seed: int, options: argparse.Namespace) -> int:
    """Measure every variant over sizes on the GPU, and write that as data."""
    from gpu import engines
    from gpu.bench import over_sizes, recorded
    from gpu.devices.probe import driver_version
    from gpu.patterns import all_patterns

    with closing(engines.create("cuda")) as engine:
        runs = []
        measuring = over_sizes.run(engine, all_patterns().values(), seed, options.repetitions, tell=print)
        for run in measuring:
            runs.append(run)
            figures = f"{run.median_ms:10.4f} ms {run.rate:10.4g} {run.unit}" if run.verified else "WRONG, so not timed"
            print(f"{run.pattern:<12} {run.variant:<20} {run.size:>10}  {figures}", flush=True)
        path = options.data or recorded.path_of(engine.device.name)
        about = recorded.DeviceRecord(
            engine.device.name,
            datetime.datetime.now(datetime.UTC).date().isoformat(),
            driver_version(),
            f"Median of {options.repetitions} warm repetitions ({FEWEST} at least where they take long), the cache "
            f"cold before each launch, by device events around the kernels alone; seed {seed}.",
            tuple(run for run in runs if run.verified),
        )
    recorded.write(path, about)
    print(f"written: {path}")
    return 0 if all(run.verified for run in runs) else 1
