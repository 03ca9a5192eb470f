"""The timing model's counts beside Nsight Compute's, launch by launch."""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gpu.bench.model import elsewhere
from gpu.bench.model.compare import HELD_OUT, is_held_out
from gpu.bench.model.measure import variants
from gpu.bench.model.measured import MeasuredTimes
from gpu.engines.modeling import ModeledLaunch, ModelingEngine
from gpu.errors import InputError, LockstepError
from gpu.files import opening
from gpu.timing.gpus import GpuDescription
from gpu.timing.launch import LaunchEstimate

_LARGEST = 64 << 20
_CLOSE = 0.15
_FEWEST = 0.05
"""Which share of wavefronts is not worth a comparison: loads and stores that meet count as bank conflicts, too."""

_ABOUT = """\
What the model counts of a launch beside what Nsight Compute counts of it: warp instructions (`smsp__inst_executed`),
sectors of the L2 cache (`lts__t_sectors_op_read`, `_write`, `_atom` and `_red`), bytes that DRAM reads and writes, and
wavefronts that bank conflicts add (`l1tex__data_bank_conflicts_pipe_lsu_mem_shared`), where they are more than a
twentieth of all. The figures are the model's count as a share of the other. Before each launch Nsight Compute empties
the caches."""


@dataclass(frozen=True)
class ProfiledCounter:
    """A quantity that both count.

    Parameters
    ----------
    name : str
        In tables.
    metrics : tuple of str
        Nsight Compute's, of which it is the sum.
    modeled : callable
        The model's.
    part_of : str
        A metric of which it is to be more than a small share for one of both; "" where it is compared in any case.
    """

    name: str
    metrics: tuple[str, ...]
    modeled: Callable[[LaunchEstimate], float]
    part_of: str = ""


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
    """A launch as a profiler saw it, with the metrics that it counted, and as it was modeled.

    Parameters
    ----------
    of, who, work : str
        The case, as `MeasuredCase` has it.
    metrics : mapping of str to float
    launch : ModeledLaunch
    """

    of: str
    who: str
    work: str
    metrics: Mapping[str, float]
    launch: ModeledLaunch

    def ratio(self, counter: ProfiledCounter) -> float | None:
        """Return the model's count as a share of the profiler's; None where there is nothing to compare."""
        if self.launch.estimate is None or any(name not in self.metrics for name in counter.metrics):
            return None
        counted, modeled = sum(self.metrics[name] for name in counter.metrics), counter.modeled(self.launch.estimate)
        few = _FEWEST * self.metrics.get(counter.part_of, 0.0)
        return modeled / counted if counted and max(counted, modeled) > few else None


def read(path: Path) -> list[tuple[str, dict[str, float]]]:
    """Return the launches that Nsight Compute lists in a CSV file, in order: kernels, and their metrics.

    Raises
    ------
    InputError
        It is no such file.
    """
    text = opening.read_bytes(path, _LARGEST).decode("utf-8", "replace")
    lines = [line for line in text.splitlines(keepends=True) if not line.startswith("==")]
    rows = csv.DictReader(io.StringIO("".join(lines)))
    found: dict[str, tuple[str, dict[str, float]]] = {}
    for row in rows:
        try:
            metrics = found.setdefault(row["ID"], (row["Kernel Name"], {}))[1]
            name, value = row["Metric Name"], row["Metric Value"].replace(",", "")
        except (KeyError, AttributeError):
            raise InputError(f"{path} is not what Nsight Compute writes with --csv.") from None
        try:
            metrics[name] = float(value)
        except ValueError:
            continue  # what could not be counted is named so
    if not found:
        raise InputError(f"{path} is not what Nsight Compute writes with --csv.")
    return list(found.values())


def paired(
    profiled: MeasuredTimes, counted: Sequence[tuple[str, Mapping[str, float]]]
) -> dict[tuple[str, str, str], list[tuple[str, Mapping[str, float]]]]:
    """Return by case the launches that were profiled, in order; what else the profiler saw is left out.

    Raises
    ------
    InputError
        The two are not of one run.
    """
    place = 0
    found: dict[tuple[str, str, str], list[tuple[str, Mapping[str, float]]]] = {}
    for case in profiled.cases:
        for launch in case.launches:
            while place < len(counted) and counted[place][0] != launch.kernel:
                place += 1
            if place == len(counted):
                raise InputError(f"The profiler's list has no {launch.kernel} of {case.work} where it should come.")
            found.setdefault((case.of, case.who, case.work), []).append(counted[place])
            place += 1
    return found


def compare(
    profiled: MeasuredTimes, counted: Sequence[tuple[str, Mapping[str, float]]], gpu: GpuDescription
) -> Iterator[ProfiledLaunch]:
    """Model every launch that was profiled, and yield both."""
    seen = paired(profiled, counted)
    for pattern, case, variant, inputs, params in variants(profiled.seed, profiled=True):
        key = (pattern.name, variant.name, case.work)
        if key not in seen:
            continue
        engine = ModelingEngine(gpu)
        try:
            for _ in variant.run(engine, inputs, params):
                pass
            yield from _together(key, seen[key], engine.launches)
        except LockstepError:
            continue  # the table of times says why
        finally:
            engine.close()
    for foreign in elsewhere.all_cases():
        key = (foreign.file, foreign.kernel, foreign.size)
        if key not in seen:
            continue
        engine = ModelingEngine(gpu)
        engine.sources.update(elsewhere.sources())
        try:
            foreign.launch(engine, foreign.make(np.random.default_rng(profiled.seed)))
            yield from _together(key, seen[key], engine.launches)
        except LockstepError:
            continue
        finally:
            engine.close()


def _together(
    key: tuple[str, str, str], seen: Sequence[tuple[str, Mapping[str, float]]], launches: Sequence[ModeledLaunch]
) -> Iterator[ProfiledLaunch]:
    """Yield the launches of a case that a profiler saw: of each kernel the first ones."""
    modeled = {name: [each for each in launches if each.kernel == name] for name, _ in seen}
    for name, metrics in seen:
        if modeled[name]:
            yield ProfiledLaunch(*key, metrics, modeled[name].pop(0))


def tables(rows: Sequence[ProfiledLaunch]) -> str:
    """Return how far the counts are apart, as Markdown."""
    own = dict.fromkeys(row.of for row in rows if not row.of.endswith(".cu"))
    groups: list[tuple[str, list[ProfiledLaunch]]] = [
        (f"{name}{', held out' if name in HELD_OUT else ''}", [row for row in rows if row.of == name]) for name in own
    ]
    groups += [
        ("all of ours", [row for row in rows if row.of in own]),
        ("ours, held out", [row for row in rows if is_held_out(row.of, row.work)]),
        ("from elsewhere, held out", [row for row in rows if row.of not in own]),
    ]
    names = [counter.name for counter in COUNTERS]
    lines = [
        _ABOUT,
        "",
        f"| launches of | number | {' | '.join(f'{name} within 15 %, median error' for name in names)} |",
    ]
    lines.append("|---|--:|" + "--:|" * len(names))
    for title, group in groups:
        if group:
            cells = [_share([row.ratio(counter) for row in group]) for counter in COUNTERS]
            lines.append(f"| {title} | {len(group)} | {' | '.join(cells)} |")
    lines += ["", f"| kernel | on | grid | block | {' | '.join(names)} |", "|---|---|---|---|" + "--:|" * len(names)]
    for row in rows:
        cells = ["" if (ratio := row.ratio(counter)) is None else f"{ratio:.2f}" for counter in COUNTERS]
        grid, block = (" x ".join(str(size) for size in _short(each)) for each in (row.launch.grid, row.launch.block))
        lines.append(
            f"| {row.of} {row.who} `{row.launch.kernel}` | {row.work} | {grid} | {block} | {' | '.join(cells)} |"
        )
    return "\n".join(lines)


def _short(extents: Sequence[int]) -> list[int]:
    rest = list(extents)
    while len(rest) > 1 and rest[-1] == 1:
        rest.pop()
    return rest


def _share(ratios: Sequence[float | None]) -> str:
    errors = [abs(ratio - 1) for ratio in ratios if ratio is not None]
    if not errors:
        return ""
    return f"{sum(error <= _CLOSE for error in errors) / len(errors):.0%}, {statistics.median(errors):.1%}"
