"""What a GPU takes for each launch: run there, kept as data, and compared with the model anywhere."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from gpu.errors import InputError
from gpu.files import opening
from gpu.files.text import read_text

FORMAT = 1

STEADY = 1.15
"""How many times what the fastest repetition took a case's median may be: where it is more, the host was disturbed."""


@dataclass(frozen=True)
class MeasuredLaunch:
    """Launches of one kernel with the same extents, all of a host program's.

    Parameters
    ----------
    kernel : str
        Its name; "fill" for a buffer that is filled.
    grid, block : tuple of int
    shared_bytes : int
        Dynamic shared memory.
    launches : int
    time_us : float
        Of all of them together, the sum of medians.
    registers, static_shared_bytes, local_bytes, blocks : int
        As `gpu.engines.occupancy.Residency`; 0 where the driver was not asked.
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
    """A variant of a pattern, or a kernel from elsewhere, at one size.

    Parameters
    ----------
    of : str
        The pattern's name, or the file of a kernel from elsewhere.
    who : str
        The variant's name, or the kernel's.
    work : str
        What it was run on.
    time_us : float
        All launches of the host program together.
    spread_us : tuple of float
        The fastest and the slowest repetition.
    launches : tuple of MeasuredLaunch
        In the order in which each is first launched.
    """

    of: str
    who: str
    work: str
    time_us: float
    spread_us: tuple[float, float]
    launches: tuple[MeasuredLaunch, ...] = field(default=())

    @property
    def disturbed(self) -> bool:
        """Whether the host made launches late."""
        return self.time_us > STEADY * self.spread_us[0]


@dataclass(frozen=True)
class MeasuredTimes:
    """All that was measured on one GPU, with the seed of its inputs."""

    gpu: str
    seed: int
    cases: tuple[MeasuredCase, ...]

    @property
    def remark(self) -> str:
        """Return in a sentence how many of them were disturbed; "" where none was."""
        count = sum(case.disturbed for case in self.cases)
        if not count:
            return ""
        return (
            f"Of the {len(self.cases)} cases {count} {'was' if count == 1 else 'were'} disturbed while measured: half "
            f"of the repetitions took {STEADY - 1:.0%} more than the fastest. They are counted as they were measured."
        )

    def save(self, path: Path) -> None:
        """Write it as JSON."""
        with opening.replacing(path) as file:
            file.write(json.dumps({"format": FORMAT, **asdict(self)}, indent=1).encode())


def load(path: Path) -> MeasuredTimes:
    """Read what `save` wrote; InputError where the file is something else."""
    try:
        data = json.loads(read_text(path))
        if data.pop("format") != FORMAT:
            raise ValueError("of another format")
        return MeasuredTimes(data["gpu"], int(data["seed"]), tuple(map(_case, data["cases"])))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} holds no measured times: {error}.") from None


def _case(data: Mapping[str, Any]) -> MeasuredCase:
    launches = tuple(
        MeasuredLaunch(**{**launch, "grid": tuple(launch["grid"]), "block": tuple(launch["block"])})
        for launch in data["launches"]
    )
    return MeasuredCase(**{**data, "spread_us": tuple(data["spread_us"]), "launches": launches})


@dataclass(frozen=True)
class OneLaunch:
    """A launch as it was made, with what it took in each repetition."""

    what: MeasuredLaunch
    times_ms: tuple[float, ...]


def summed(of: str, who: str, work: str, launches: Sequence[OneLaunch]) -> MeasuredCase:
    """Put the launches of a host program together, those that are alike into one."""
    alike: dict[MeasuredLaunch, list[float]] = {}
    for launch in launches:
        alike.setdefault(launch.what, []).append(1e3 * statistics.median(launch.times_ms))
    groups = tuple(_group(what, times) for what, times in alike.items())
    totals = [1e3 * math.fsum(times) for times in zip(*(launch.times_ms for launch in launches), strict=True)]
    return MeasuredCase(of, who, work, statistics.median(totals), (min(totals), max(totals)), groups)


def _group(what: MeasuredLaunch, times_us: Sequence[float]) -> MeasuredLaunch:
    return MeasuredLaunch(**{**asdict(what), "launches": len(times_us), "time_us": math.fsum(times_us)})


def counted_launches(cases: Sequence[MeasuredCase]) -> Iterator[tuple[MeasuredCase, MeasuredLaunch]]:
    """Yield each case's groups of launches."""
    for case in cases:
        for launch in case.launches:
            yield case, launch
