"""Timing of a run on a GPU: statistics of its repetitions, and whether launch overhead dominates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from gpu.engines.base import PhaseTimes

LAUNCH_BOUND_RATIO = 10
"""A run is bound by launches if its kernels take less time than this many empty launches for each of its launches."""


@dataclass(frozen=True)
class Timing:
    """Milliseconds of a run's kernels over warm repetitions, each with cold caches.

    Parameters
    ----------
    median, minimum, maximum : float
        Sum of the run's kernels, without gaps between them.
    repetitions : int
        Number of runs; 1 if the run is so long that it was not repeated.
    launches : int
        Launches per run.
    gaps : float
        Total time between consecutive launches; 0 with one launch.
    empty_launch : float
        Time of an empty launch; 0 if unknown.
    comparable_from : int
        The size from which variants can be compared on this GPU; 0 if unknown.
    size : int
        The size of this run; 0 if it has none.
    size_parameter : str
        The parameter that sets the size; "" for the side of an image.
    """

    median: float
    minimum: float
    maximum: float
    repetitions: int
    launches: int = 0
    gaps: float = 0.0
    empty_launch: float = 0.0
    comparable_from: int = 0
    size: int = 0
    size_parameter: str = ""

    @property
    def bound_by_launches(self) -> bool:
        """Whether launch overhead exceeds a tenth of the time."""
        return 0 < self.median < LAUNCH_BOUND_RATIO * self.launches * self.empty_launch

    @property
    def too_small(self) -> bool:
        """Whether the run is too small to compare variants on this GPU."""
        return 0 < self.size < self.comparable_from

    @property
    def recommended_size(self) -> int:
        """The recommended size; 0 if there is no reason to change it."""
        return self.comparable_from if self.too_small else 0

    @property
    def sentence(self) -> str:
        """A note that a reader of the time needs; "" if it can be compared as it is."""
        if self.bound_by_launches:
            launches = "an empty launch" if self.launches == 1 else f"{self.launches} empty launches"
            overhead = self.launches * self.empty_launch
            bound = f"{launches} would take {_format_time(overhead)} of these {_format_time(self.median)}"
            return f"Launch overhead: {bound}."
        if self.too_small:
            return "Too small to fill this GPU: the order of variants may differ at larger sizes."
        return ""

    def data(self) -> dict[str, Any]:
        """Return the timing as JSON types."""
        return {
            "median": self.median,
            "min": self.minimum,
            "max": self.maximum,
            "repetitions": self.repetitions,
            "launches": self.launches,
            "gaps": self.gaps,
            "launch": self.empty_launch,
            "bound_by_launches": self.bound_by_launches,
            "comparable_from": self.comparable_from or None,
        }


def summarize_timing(
    warm: Sequence[PhaseTimes],
    consecutive: PhaseTimes | None = None,
    *,
    empty_launch: float = 0.0,
    size_parameter: str = "",
    size: int = 0,
    comparable_from: int = 0,
) -> Timing:
    """Summarize repetitions.

    Parameters
    ----------
    warm : sequence of PhaseTimes
        At least one, with separately timed launches.
    consecutive : PhaseTimes or None
        A repetition with consecutive launches.
    empty_launch, size_parameter, size, comparable_from
        As in `Timing`.
    """
    kernels = [times.kernel for times in warm]
    return Timing(
        median(kernels),
        min(kernels),
        max(kernels),
        len(kernels),
        warm[0].launches,
        consecutive.gaps if consecutive is not None else 0.0,
        empty_launch,
        comparable_from,
        size,
        size_parameter,
    )


def _format_time(milliseconds: float) -> str:
    """Format a time in a suitable unit."""
    return f"{milliseconds:.3g} ms" if milliseconds >= 1 else f"{1e3 * milliseconds:.3g} \u00b5s"
