"""Messages about recordings of runs, which the window plays step by step."""

from __future__ import annotations

from dataclasses import dataclass

from gpu.base.schedules import ROUND_ROBIN
from gpu.messages.requests import ArrayResult, Request
from gpu.messages.runs.pattern_runs import VariantRun


@dataclass(frozen=True)
class RecordingFile(ArrayResult):
    """Recording of a run: the array `recording` is the file of a `gpu.recording.recording.Recording`."""

    @property
    def path(self) -> str:
        """Path of the file, which exists as long as its handle in `arrays`; "" without a recording."""
        return self.arrays["recording"].path if self.arrays else ""


@dataclass(frozen=True)
class StepPattern(VariantRun, Request[RecordingFile]):
    """Run one variant of a pattern in the simulator and record every step of every launch.

    Parameters
    ----------
    pattern, variant, params, inputs, seed, sources
        As in VariantRun.
    schedule : str
        One of `gpu.base.schedules.NAMES`.

    If a kernel's error ends a launch, the recording ends there and contains the error.
    """

    schedule: str = ROUND_ROBIN
