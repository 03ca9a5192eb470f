"""Messages about modeled launches of a run, and the warp timelines of one of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gpu.messages.kernels import KernelLaunch
from gpu.messages.modeled_time import LineCode, VariantOnGpu
from gpu.messages.requests import ArrayResult, Request
from gpu.messages.shared_arrays import SharedArray
from gpu.timing.timeline import SPAN, LaunchTimelines


@dataclass(frozen=True)
class LaunchSummary:
    """Kernel launch of a run: its index among all operations of the host program, and its modeled time."""

    index: int
    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    time_us: float


@dataclass(frozen=True)
class RunTimelines:
    """Modeled launches of a run on a GPU, and the timelines of one of them.

    Parameters
    ----------
    validated : bool
        Whether the timing model has been compared with measurements on this GPU.
    launch_index : int
        `LaunchSummary.index` of the launch with the timelines.
    timelines : LaunchTimelines
        Between processes it has no spans; these are the array `spans` of TimelineResult.
    lines : mapping of str to mapping of int to LineCode
        Machine instructions by file name and line, for that launch's kernel; empty without an assembler.
    """

    validated: bool
    launches: tuple[LaunchSummary, ...]
    launch_index: int
    timelines: LaunchTimelines = field(repr=False)
    lines: Mapping[str, Mapping[int, LineCode]] = field(default_factory=dict)

    def split_spans(self) -> tuple[RunTimelines, dict[str, Any]]:
        """Split off the spans; return the rest, and the spans as arrays to be shared."""
        bare = replace(self, timelines=replace(self.timelines, spans=np.empty(0, SPAN)))
        return bare, {"spans": self.timelines.spans.view(np.uint8)}

    def join_spans(self, arrays: Mapping[str, SharedArray]) -> RunTimelines:
        """Rejoin the spans."""
        return replace(self, timelines=replace(self.timelines, spans=arrays["spans"].open().view(SPAN)))


@dataclass(frozen=True)
class TimelineResult(ArrayResult):
    """Result of modeling timelines, with their spans in the array `spans`."""

    timelines: RunTimelines


@dataclass(frozen=True)
class TimelinePattern(VariantOnGpu, Request[TimelineResult]):
    """Model when the warps of a run issue on a GPU.

    It runs in the simulator's process for every engine.

    Parameters
    ----------
    pattern, variant, gpu, params, inputs, seed, sources, side
        As in VariantOnGpu.
    launch : int or None
        Index of the launch, with fills counted; None for the longest.
    """

    launch: int | None = None


@dataclass(frozen=True)
class TimelineKernel(Request[TimelineResult]):
    """Model when the warps of any kernel's launch issue on a GPU."""

    kernel: KernelLaunch
    gpu: str
