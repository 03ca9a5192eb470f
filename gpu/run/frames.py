"""Pictures of a run: what its data look like between launches, taken outside of what is measured."""

from __future__ import annotations

import numpy as np

from gpu.declaration.pattern import Outputs, Progress
from gpu.engines.base import Array, Engine, Executed, PhaseTimes

MOST = 96
"""So many pictures at most, as evenly as the run tells how far it is."""


class Frames:
    """Takes the samples that a host program offers, and keeps its times apart from theirs."""

    def __init__(self) -> None:
        self._pictures: list[Array] = []
        self._captions: list[str] = []
        self._next = 0.0
        self._times = PhaseTimes()
        self._executed: Executed | None = None

    def take(self, engine: Engine, progress: Progress) -> None:
        """Take a picture, where one is offered and due."""
        if progress.sample is None or progress.fraction is None or progress.fraction < self._next:
            return
        self._next = progress.fraction + 1 / MOST
        executed = engine.executed
        if self._executed is None or executed.reason:
            self._executed = executed
        self._times += engine.take_times()
        self._pictures.append(progress.sample())
        self._captions.append(progress.message)
        engine.take_times()

    def finish(self, engine: Engine) -> tuple[Executed, PhaseTimes]:
        """Return what executed the run, and its times without those of the pictures."""
        executed = engine.executed
        if self._executed is not None and not executed.reason:
            executed = self._executed
        return executed, self._times + engine.take_times()

    def presented(self) -> Outputs:
        """Return `frames`, shape (pictures, columns), and `captions`, lines in UTF-8, where there are pictures."""
        if not self._pictures:
            return {}
        captions = np.frombuffer("\n".join(self._captions).encode(), np.uint8)
        return {"frames": np.stack(self._pictures), "captions": captions}
