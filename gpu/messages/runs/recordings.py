"""Messages about recordings of runs, which the window plays step by step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpu.messages.requests import ArrayResult, Request
from gpu.messages.shared_arrays import SharedArray
from gpu.schedules import ROUND_ROBIN


@dataclass(frozen=True)
class RecordingFile(ArrayResult):
    """Recording of a run: the array `recording` is the file of a `gpu.recording.recording.Recording`."""

    @property
    def path(self) -> str:
        """Path of the file, which exists as long as its handle in `arrays`; "" without a recording."""
        return self.arrays["recording"].path if self.arrays else ""


@dataclass(frozen=True)
class StepPattern(Request[RecordingFile]):
    """Run one variant of a pattern in the simulator and record every step of every launch.

    Parameters
    ----------
    pattern, variant, params, inputs, seed, sources
        As in RunPattern.
    schedule : str
        One of `gpu.schedules.NAMES`.

    If a kernel's error ends a launch, the recording ends there and contains the error.
    """

    pattern: str
    variant: str
    params: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, SharedArray] = field(default_factory=dict)
    seed: int = 0
    schedule: str = ROUND_ROBIN
    sources: Mapping[str, str] = field(default_factory=dict)
