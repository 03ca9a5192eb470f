"""How a run on a GPU was timed: several times, and whether its figure is the kernels' or what launching them costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from gpu.engines.base import PhaseTimes

LAUNCHES_WORTH = 10
"""A run is bound by launches where its kernels take less time than so many launches that do nothing, each."""


@dataclass(frozen=True)
class Timing:
    """Milliseconds of a run's kernels over warm repetitions, each with the caches cold.

    Parameters
    ----------
    median, minimum, maximum : float
        Of all kernels of the run together, without what is between them.
    repetitions : int
        How often it ran; 1 where it takes so long that it ran once, for its result.
    launches : int
        Of one run.
    gaps : float
        What passes between the launches of a run where they follow each other; 0 where there is one.
    launch : float
        What a launch takes that does nothing; 0 where that is not known.
    comparable_from : int
        The size from which variants can be compared on this GPU; 0 where none is known.
    size : int
        The size of this run; 0 where it has none.
    of : str
        The parameter that both sizes are values of; "" where they are the side of an image.
    """

    median: float
    minimum: float
    maximum: float
    repetitions: int
    launches: int = 0
    gaps: float = 0.0
    launch: float = 0.0
    comparable_from: int = 0
    size: int = 0
    of: str = ""

    @property
    def bound_by_launches(self) -> bool:
        """Whether launching is more than a tenth of what the figure says."""
        return 0 < self.median < LAUNCHES_WORTH * self.launches * self.launch

    @property
    def too_small(self) -> bool:
        """Whether the run has less work than variants need to be compared on this GPU."""
        return 0 < self.size < self.comparable_from

    @property
    def offered(self) -> int:
        """Return the size to take instead; 0 where there is no reason for another."""
        return self.comparable_from if self.too_small else 0

    @property
    def sentence(self) -> str:
        """Return what a reader of the figure must know; "" where it can be compared as it is."""
        if self.bound_by_launches:
            many = "a launch that does" if self.launches == 1 else f"{self.launches} launches that do"
            doing = self.launches * self.launch
            return f"Bound by launches: {many} nothing would take {_spoken(doing)} of these {_spoken(self.median)}."
        if self.too_small:
            return "Too small to fill this GPU: at this size the order of variants may be another."
        return ""

    def data(self) -> dict[str, Any]:
        """Return it as JSON takes it."""
        return {
            "median": self.median,
            "min": self.minimum,
            "max": self.maximum,
            "repetitions": self.repetitions,
            "launches": self.launches,
            "gaps": self.gaps,
            "launch": self.launch,
            "bound_by_launches": self.bound_by_launches,
            "comparable_from": self.comparable_from or None,
        }


def timing_of(
    warm: Sequence[PhaseTimes],
    following: PhaseTimes | None = None,
    *,
    launch: float = 0.0,
    of: str = "",
    size: int = 0,
    comparable_from: int = 0,
) -> Timing:
    """Return what repetitions come to.

    Parameters
    ----------
    warm : sequence of PhaseTimes
        At least one, each launch timed apart.
    following : PhaseTimes or None
        Of a repetition whose launches followed each other.
    launch, of, size, comparable_from
        As of a Timing.
    """
    kernels = [times.kernel for times in warm]
    return Timing(
        median(kernels),
        min(kernels),
        max(kernels),
        len(kernels),
        warm[0].launches,
        following.gaps if following is not None else 0.0,
        launch,
        comparable_from,
        size,
        of,
    )


def _spoken(milliseconds: float) -> str:
    """Return a time in the unit that suits it."""
    return f"{milliseconds:.3g} ms" if milliseconds >= 1 else f"{1e3 * milliseconds:.3g} \u00b5s"
