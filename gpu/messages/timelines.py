"""What a run's launches would take on a GPU, and the timelines of one of them, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gpu.messages.modeled import LineCode
from gpu.messages.shared_arrays import SharedArray
from gpu.timing.timeline import SPAN, LaunchTimelines


@dataclass(frozen=True)
class ListedLaunch:
    """A launch of a kernel of a run: its place among all that the host does, and what it would take."""

    place: int
    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    time_us: float


@dataclass(frozen=True)
class RunTimelines:
    """The launches of a run on a GPU, and the timelines of one of them.

    Parameters
    ----------
    validated : bool
        Whether the model has been compared with a real GPU of this kind.
    launches : tuple of ListedLaunch
    of : int
        The place of that which the timelines are of.
    timelines : LaunchTimelines
        While it crosses between processes without its spans, which are the Result's array `spans`.
    lines : mapping of str to mapping of int to LineCode
        What lines of files became, by the file's name, in the kernel that the timelines are of; nothing without an
        assembler.
    """

    validated: bool
    launches: tuple[ListedLaunch, ...]
    of: int
    timelines: LaunchTimelines = field(repr=False)
    lines: Mapping[str, Mapping[int, LineCode]] = field(default_factory=dict)

    def apart(self) -> tuple[RunTimelines, dict[str, Any]]:
        """Return it without its spans, and these as arrays that can be shared."""
        bare = replace(self, timelines=replace(self.timelines, spans=np.empty(0, SPAN)))
        return bare, {"spans": self.timelines.spans.view(np.uint8)}

    def together(self, arrays: Mapping[str, SharedArray]) -> RunTimelines:
        """Return it with its spans again."""
        return replace(self, timelines=replace(self.timelines, spans=arrays["spans"].open().view(SPAN)))
