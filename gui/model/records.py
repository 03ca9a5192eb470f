"""Records of the window's inputs, runs and settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpu.declaration.pattern import Array
from gpu.messages.run_counts import RunCounts
from gpu.messages.runs.distributed_run import DistributedRun
from gpu.messages.runs.pattern_runs import Report, RunPattern
from gpu.messages.shared_arrays import SharedArray
from gpu.messages.verdicts import Check, Verdict, decide_verdict


@dataclass(frozen=True)
class OpenImage:
    """An image: handles for the engine, and arrays for the screen."""

    path: Path
    inputs: Mapping[str, SharedArray]
    values: Array
    picture: Array
    maxval: int

    @property
    def channels(self) -> int:
        """The number of channels: 1 for gray, 3 for color."""
        return 1 if self.values.ndim == 2 else self.values.shape[2]

    @property
    def description(self) -> str:
        """The size, kind and depth as text."""
        height, width = self.values.shape[:2]
        kind = "gray" if self.channels == 1 else "color"
        return f"{width} × {height} {kind}, {'8' if self.maxval < 256 else '16'} bit"


@dataclass(frozen=True)
class OpenValues:
    """A file of numbers: a handle for the engine, and the array."""

    path: Path
    inputs: Mapping[str, SharedArray]
    values: Array


@dataclass(frozen=True)
class FinishedRun:
    """A run that succeeded, with its request and results.

    Parameters
    ----------
    image : OpenImage or None
        The input image; None for an array input.
    sources : mapping
        The edited kernel sources that ran.
    file : Path or None
        The file that an array input was read from; None for a generated input.
    check : Check or None
        The check of an edited kernel; None while it is pending.
    counts : RunCounts or None
        The counts of a simulated run; None while they are pending, or if they failed.
    count_error : str
        The reason why the run could not be counted.
    distributed : DistributedRun or None
        Details of a run on several devices; None on one device.
    """

    pattern: str
    variant: str
    params: Mapping[str, Any]
    image: OpenImage | None
    report: Report
    handles: Mapping[str, SharedArray]
    arrays: Mapping[str, Array]
    sources: Mapping[str, str] = field(default_factory=dict)
    file: Path | None = None
    check: Check | None = None
    counts: RunCounts | None = None
    count_error: str = ""
    request: RunPattern | None = None
    distributed: DistributedRun | None = None

    def verdict(self, design_flaw: str) -> Verdict:
        """Return the verdict; `design_flaw` is the reason why the variant is wrong by design, or ""."""
        return decide_verdict(self.report.verified, edited=bool(self.sources), check=self.check, lesson=design_flaw)


@dataclass(frozen=True)
class PointedElement:
    """An element of a result selected by the user: the output's name, the element's index, and a title.

    `run` is the run of the result, None for the newest one. For a color image `planes` has the element's indices in
    red, green and blue, one of which is requested. If the host program combined the element from several results,
    `passes` has a name and a run for each of them.
    """

    output: str
    element: tuple[int, ...]
    title: str
    run: RunPattern | None = None
    planes: tuple[tuple[int, ...], ...] = ()
    passes: tuple[tuple[str, RunPattern], ...] = ()


@dataclass(frozen=True)
class LevelCounts:
    """Level counts by our own kernel: of the image "before" or "after", or the "reference" counts of a wrong run."""

    side: str
    counts: Array
    maxval: int
    report: Report


@dataclass
class Settings:
    """The settings of a pattern; the parameters in `chosen` keep their values on any device."""

    variant: str
    params: dict[str, Any] = field(default_factory=dict)
    chosen: set[str] = field(default_factory=set)
