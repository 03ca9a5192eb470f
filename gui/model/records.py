"""What the window works on and what comes of it, as plain records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpu.declaration.pattern import Array
from gpu.messages.counted import RunCounts
from gpu.messages.distributed import DistributedRun
from gpu.messages.requests import Report, RunPattern
from gpu.messages.shared_arrays import SharedArray
from gpu.messages.verdicts import Check, Verdict, verdict_of


@dataclass(frozen=True)
class OpenImage:
    """An image that was read: handles for the engine, and arrays for the screen."""

    path: Path
    inputs: Mapping[str, SharedArray]
    values: Array
    picture: Array
    maxval: int

    @property
    def channels(self) -> int:
        """Return 1 for gray, 3 for color."""
        return 1 if self.values.ndim == 2 else self.values.shape[2]

    @property
    def description(self) -> str:
        """Return its size, kind and depth, as people say it."""
        height, width = self.values.shape[:2]
        kind = "gray" if self.channels == 1 else "color"
        return f"{width} × {height} {kind}, {'8' if self.maxval < 256 else '16'} bit"


@dataclass(frozen=True)
class OpenValues:
    """A file of numbers that was read: a handle for the engine, and the array."""

    path: Path
    inputs: Mapping[str, SharedArray]
    values: Array


@dataclass(frozen=True)
class FinishedRun:
    """A run that succeeded: what was asked, and what came of it. `image` is None where the input was an array.

    `asked` is the request that it is the answer to. `file` is where that array was read from; None where it was
    made. `check` is what the simulator's checkers found in an edited kernel; None as long as that is not known.
    `counts` is what was counted of a simulated run; None as long as that is not known, and where it cannot be, for
    which `uncounted` has the reason. `distributed` is what a run on several devices did; None on one device.
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
    uncounted: str = ""
    asked: RunPattern | None = None
    distributed: DistributedRun | None = None

    def verdict(self, lesson: str) -> Verdict:
        """Return what is to be said of its result; `lesson` is why the variant is wrong by design, "" if it is not."""
        return verdict_of(self.report.verified, edited=bool(self.sources), check=self.check, lesson=lesson)


@dataclass(frozen=True)
class PointedElement:
    """An element of a result at which somebody points: the output's name, its index there, and what it is called.

    `run` is what it is a result of, None for the newest run. Of a color image `planes` has its index in red, green and
    blue, of which one is asked for.
    """

    output: str
    element: tuple[int, ...]
    title: str
    run: RunPattern | None = None
    planes: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class LevelCounts:
    """Levels that our own kernel counted: of an image "before" or "after", or the "right" ones beside a wrong run."""

    side: str
    counts: Array
    maxval: int
    report: Report


@dataclass
class Settings:
    """What is set on a pattern's page; `chosen` are the parameters that keep their values on any device."""

    variant: str
    params: dict[str, Any] = field(default_factory=dict)
    chosen: set[str] = field(default_factory=set)
