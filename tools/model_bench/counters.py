"""Compare the timing model's counts with Nsight Compute's, launch by launch."""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gpu.base.errors import InputError, LockstepError
from gpu.engines.modeling_engine import ModeledLaunch, ModelingEngine
from gpu.files import file_access
from gpu.timing.gpus import GpuDescription
from gpu.timing.launch import LaunchEstimate
from tools.model_bench import foreign_kernels
from tools.model_bench.compare import HELD_OUT, is_held_out
from tools.model_bench.measure import iterate_variants
from tools.model_bench.measured_times import MeasuredTimes

_MAX_FILE_BYTES = 64 << 20
_CLOSE_ERROR = 0.15
_MIN_CONFLICT_SHARE = 0.05
"""Share of wavefronts below which bank conflicts are not compared: other collisions of accesses count as conflicts."""

_DESCRIPTION = """\
The timing model's counts of each launch, compared with Nsight Compute's: warp instructions (`smsp__inst_executed`),
sectors of the L2 cache (`lts__t_sectors_op_read`, `_write`, `_atom` and `_red`), bytes that DRAM reads and writes, and
the wavefronts added by bank conflicts (`l1tex__data_bank_conflicts_pipe_lsu_mem_shared`), if they are more than a
twentieth of all. The figures are the model's count as a share of the profiler's. Nsight Compute flushes the caches
before each launch."""


@dataclass(frozen=True)
class ProfiledCounter:
    """A quantity that the profiler and the timing model both count.

    Parameters
    ----------
    name : str
        Column of the tables.
    metrics : tuple of str
        Nsight Compute's metrics; their sum is the count.
    modeled_count : callable
        Returns the model's count.
    total_metric : str
        Metric of which one of the counts must exceed a small share to be compared; "" to compare always.
    """

    name: str
    metrics: tuple[str, ...]
    modeled_count: Callable[[LaunchEstimate], float]
    total_metric: str = ""


COUNTERS = (
    ProfiledCounter("instructions", ("smsp__inst_executed.sum",), lambda estimate: estimate.instructions),
    ProfiledCounter(
        "L2 sectors",
        tuple(f"lts__t_sectors_op_{kind}.sum" for kind in ("read", "write", "atom", "red")),
        lambda estimate: estimate.l2_sectors,
    ),
    ProfiledCounter(
        "DRAM bytes", ("dram__bytes_read.sum", "dram__bytes_write.sum"), lambda estimate: estimate.dram_bytes
    ),
    ProfiledCounter(
        "bank conflicts",
        ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",),
        lambda estimate: estimate.bank_conflicts,
        "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    ),
)


@dataclass(frozen=True)
class ProfiledLaunch:
    """A launch as profiled, with its metrics, and as modeled.

    Parameters
    ----------
    pattern_or_file, variant_or_kernel, work : str
        The case, as in `MeasuredCase`.
    metrics : mapping of str to float
    """

    pattern_or_file: str
    variant_or_kernel: str
    work: str
    metrics: Mapping[str, float]
    launch: ModeledLaunch

    def ratio(self, counter: ProfiledCounter) -> float | None:
        """Return the model's count as a share of the profiler's; None if they cannot be compared."""
        if self.launch.estimate is None or any(name not in self.metrics for name in counter.metrics):
            return None
        counted, modeled = (
            sum(self.metrics[name] for name in counter.metrics),
            counter.modeled_count(self.launch.estimate),
        )
        least = _MIN_CONFLICT_SHARE * self.metrics.get(counter.total_metric, 0.0)
        return modeled / counted if counted and max(counted, modeled) > least else None


def read_profile(path: Path) -> list[tuple[str, dict[str, float]]]:
    """Read Nsight Compute's CSV file; return the launches in order, each a kernel with its metrics.

    Raises
    ------
    InputError
        The file has another format.
    """
    text = file_access.read_bytes(path, _MAX_FILE_BYTES).decode("utf-8", "replace")
    lines = [line for line in text.splitlines(keepends=True) if not line.startswith("==")]
    rows = csv.DictReader(io.StringIO("".join(lines)))
    launches: dict[str, tuple[str, dict[str, float]]] = {}
    for row in rows:
        try:
            metrics = launches.setdefault(row["ID"], (row["Kernel Name"], {}))[1]
            name, value = row["Metric Name"], row["Metric Value"].replace(",", "")
        except (KeyError, AttributeError):
            raise InputError(f"{path} is not Nsight Compute's output with --csv.") from None
        try:
            metrics[name] = float(value)
        except ValueError:
            continue  # a metric that could not be counted has a text as its value
    if not launches:
        raise InputError(f"{path} is not Nsight Compute's output with --csv.")
    return list(launches.values())


def pair_launches(
    profiled: MeasuredTimes, profiler_launches: Sequence[tuple[str, Mapping[str, float]]]
) -> dict[tuple[str, str, str], list[tuple[str, Mapping[str, float]]]]:
    """Return the profiled launches by case, in order, without other launches that the profiler saw.

    Raises
    ------
    InputError
        The two are from different runs.
    """
    launch_index = 0
    launches: dict[tuple[str, str, str], list[tuple[str, Mapping[str, float]]]] = {}
    for case in profiled.cases:
        for launch in case.launches:
            while launch_index < len(profiler_launches) and profiler_launches[launch_index][0] != launch.kernel:
                launch_index += 1
            if launch_index == len(profiler_launches):
                raise InputError(f"The profiler's list has no {launch.kernel} of {case.work} where it is expected.")
            launches.setdefault((case.of, case.who, case.work), []).append(profiler_launches[launch_index])
            launch_index += 1
    return launches


def compare_launches(
    profiled: MeasuredTimes, profiler_launches: Sequence[tuple[str, Mapping[str, float]]], gpu: GpuDescription
) -> Iterator[ProfiledLaunch]:
    """Model every profiled launch, and yield it with its metrics."""
    launches = pair_launches(profiled, profiler_launches)
    for pattern, case, variant, inputs, params in iterate_variants(profiled.seed, profiled=True):
        key = (pattern.name, variant.name, case.work)
        if key not in launches:
            continue
        engine = ModelingEngine(gpu)
        try:
            for _ in variant.run(engine, inputs, params):
                pass
            yield from _match_launches(key, launches[key], engine.launches)
        except LockstepError:
            continue  # the table of times contains the reason
        finally:
            engine.close()
    for foreign in foreign_kernels.all_cases():
        key = (foreign.file, foreign.kernel, foreign.size)
        if key not in launches:
            continue
        engine = ModelingEngine(gpu)
        engine.sources.update(foreign_kernels.read_sources())
        try:
            foreign.launch(engine, foreign.make_arguments(np.random.default_rng(profiled.seed)))
            yield from _match_launches(key, launches[key], engine.launches)
        except LockstepError:
            continue
        finally:
            engine.close()


def _match_launches(
    key: tuple[str, str, str], profiled: Sequence[tuple[str, Mapping[str, float]]], launches: Sequence[ModeledLaunch]
) -> Iterator[ProfiledLaunch]:
    """Match the profiled launches of a case with the first modeled launches of their kernels; yield the pairs."""
    modeled = {name: [launch for launch in launches if launch.kernel == name] for name, _ in profiled}
    for name, metrics in profiled:
        if modeled[name]:
            yield ProfiledLaunch(*key, metrics, modeled[name].pop(0))


def format_tables(rows: Sequence[ProfiledLaunch]) -> str:
    """Return the differences between the counts as Markdown tables."""
    patterns = dict.fromkeys(row.pattern_or_file for row in rows if not row.pattern_or_file.endswith(".cu"))
    groups: list[tuple[str, list[ProfiledLaunch]]] = [
        (f"{name}{', held out' if name in HELD_OUT else ''}", [row for row in rows if row.pattern_or_file == name])
        for name in patterns
    ]
    groups += [
        ("all of ours", [row for row in rows if row.pattern_or_file in patterns]),
        ("ours, held out", [row for row in rows if is_held_out(row.pattern_or_file, row.work)]),
        ("foreign, held out", [row for row in rows if row.pattern_or_file not in patterns]),
    ]
    names = [counter.name for counter in COUNTERS]
    lines = [
        _DESCRIPTION,
        "",
        f"| launches of | number | {' | '.join(f'{name} within 15%, median error' for name in names)} |",
    ]
    lines.append("|---|--:|" + "--:|" * len(names))
    for title, group in groups:
        if group:
            cells = [_format_agreement([row.ratio(counter) for row in group]) for counter in COUNTERS]
            lines.append(f"| {title} | {len(group)} | {' | '.join(cells)} |")
    lines += ["", f"| kernel | on | grid | block | {' | '.join(names)} |", "|---|---|---|---|" + "--:|" * len(names)]
    for row in rows:
        cells = ["" if (ratio := row.ratio(counter)) is None else f"{ratio:.2f}" for counter in COUNTERS]
        grid, block = (
            " x ".join(str(size) for size in _trim_extents(each)) for each in (row.launch.grid, row.launch.block)
        )
        lines.append(
            f"| {row.pattern_or_file} {row.variant_or_kernel} `{row.launch.kernel}` | {row.work} "
            f"| {grid} | {block} | {' | '.join(cells)} |"
        )
    return "\n".join(lines)


def _trim_extents(extents: Sequence[int]) -> list[int]:
    rest = list(extents)
    while len(rest) > 1 and rest[-1] == 1:
        rest.pop()
    return rest


def _format_agreement(ratios: Sequence[float | None]) -> str:
    errors = [abs(ratio - 1) for ratio in ratios if ratio is not None]
    if not errors:
        return ""
    return f"{sum(error <= _CLOSE_ERROR for error in errors) / len(errors):.0%}, {statistics.median(errors):.1%}"
