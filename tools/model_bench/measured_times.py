"""Measured times of launches on a GPU, kept as data for comparison with the timing model."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from gpu.base.errors import InputError
from gpu.files import file_access
from gpu.files.text import read_text
from gpu.timing.validation import Validation, read_validation

FORMAT = 1

MAX_STEADY_RATIO = 1.15
"""Largest ratio of a case's median time to its fastest; above it, the host disturbed the measurement."""


@dataclass(frozen=True)
class MeasuredLaunch:
    """Launches of one kernel with the same extents, in one host program.

    Parameters
    ----------
    kernel : str
        The kernel's name; "fill" for a buffer that is filled.
    shared_bytes : int
        Dynamic shared memory.
    time_us : float
        Sum of the medians of all launches.
    registers, static_shared_bytes, local_bytes, blocks : int
        As in `gpu.engines.cuda.occupancy.Residency`; 0 if the driver was not queried.
    """

    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared_bytes: int
    launches: int
    time_us: float
    registers: int = 0
    static_shared_bytes: int = 0
    local_bytes: int = 0
    blocks: int = 0


@dataclass(frozen=True)
class MeasuredCase:
    """A variant of a pattern, or a foreign kernel, at one size.

    Parameters
    ----------
    of : str
        Name of the pattern, or file of a foreign kernel.
    who : str
        Name of the variant or of the kernel.
    work : str
        Description of its input.
    time_us : float
        All launches of the host program together.
    spread_us : tuple of float
        The fastest and the slowest repetition.
    launches : tuple of MeasuredLaunch
        In the order of their first launches.
    """

    of: str
    who: str
    work: str
    time_us: float
    spread_us: tuple[float, float]
    launches: tuple[MeasuredLaunch, ...] = field(default=())

    @property
    def disturbed(self) -> bool:
        """Whether the host delayed launches."""
        return self.time_us > MAX_STEADY_RATIO * self.spread_us[0]


@dataclass(frozen=True)
class MeasuredTimes:
    """All measurements on one GPU, with the seed of their inputs.

    `date` is the date of the measurement if the times were taken from an earlier comparison; "" for times of `save`.
    """

    gpu: str
    seed: int
    cases: tuple[MeasuredCase, ...]
    date: str = ""

    @property
    def remark(self) -> str:
        """A sentence with the date of an earlier measurement or the number of disturbed cases; "" without either."""
        if self.date:
            return f"The times were measured on {self.date}."
        count = sum(case.disturbed for case in self.cases)
        if not count:
            return ""
        return (
            f"{count} of the {len(self.cases)} cases {'was' if count == 1 else 'were'} disturbed while measured: half "
            f"of the repetitions took {MAX_STEADY_RATIO - 1:.0%} more than the fastest. The figures include "
            "them as measured."
        )

    def save(self, path: Path) -> None:
        """Write the measurements as JSON."""
        with file_access.replace_file(path) as file:
            values = {name: value for name, value in asdict(self).items() if name != "date"}
            file.write(json.dumps({"format": FORMAT, **values}, indent=1).encode())


def load_times(path: Path) -> MeasuredTimes:
    """Read a file that `save` wrote, or the times in validation data; raise InputError for any other file."""
    try:
        data = json.loads(read_text(path))
        if "format" not in data and "source" in data:
            return _take_times(read_validation(path))
        if data.pop("format") != FORMAT:
            raise ValueError("unknown format")
        return MeasuredTimes(data["gpu"], int(data["seed"]), tuple(map(_parse_case, data["cases"])))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} does not contain measured times: {error}.") from None


def _take_times(validation: Validation) -> MeasuredTimes:
    cases = (
        MeasuredCase(case.of, case.who, case.work, case.measured_us, (case.measured_us, case.measured_us))
        for case in validation.cases
    )
    return MeasuredTimes(validation.device, 0, tuple(cases), validation.measured_date or validation.date)


def _parse_case(data: Mapping[str, Any]) -> MeasuredCase:
    launches = tuple(
        MeasuredLaunch(**{**launch, "grid": tuple(launch["grid"]), "block": tuple(launch["block"])})
        for launch in data["launches"]
    )
    return MeasuredCase(**{**data, "spread_us": tuple(data["spread_us"]), "launches": launches})


@dataclass(frozen=True)
class TimedLaunch:
    """A launch with its times in all repetitions."""

    description: MeasuredLaunch
    times_ms: tuple[float, ...]


def combine_launches(
    pattern_or_file: str, variant_or_kernel: str, work: str, launches: Sequence[TimedLaunch]
) -> MeasuredCase:
    """Combine the launches of a host program into a case, with equal launches as one group.

    Parameters
    ----------
    pattern_or_file : str
        The pattern's name, or the file of a foreign kernel.
    work : str
        A description of the input.
    launches : sequence of TimedLaunch
        All launches in order, with equally many repetitions.

    Returns
    -------
    MeasuredCase
        Its time is the median over the repetitions, each the sum of all launches, in us.
    """
    times_by_launch: dict[MeasuredLaunch, list[float]] = {}
    for launch in launches:
        times_by_launch.setdefault(launch.description, []).append(1e3 * statistics.median(launch.times_ms))
    groups = tuple(
        MeasuredLaunch(**{**asdict(launch), "launches": len(times), "time_us": math.fsum(times)})
        for launch, times in times_by_launch.items()
    )
    totals = [1e3 * math.fsum(times) for times in zip(*(launch.times_ms for launch in launches), strict=True)]
    return MeasuredCase(
        pattern_or_file, variant_or_kernel, work, statistics.median(totals), (min(totals), max(totals)), groups
    )
