"""Pictures of a run's data between launches, taken outside the measured times."""

from __future__ import annotations

import numpy as np

from gpu.declaration.arrays import outline
from gpu.declaration.pattern import Outputs, Progress
from gpu.engines.base import Array, Engine, ExecutorChoice, PhaseTimes

MAX_PICTURES = 96
"""Most pictures of a run, evenly distributed over its progress."""


class Frames:
    """Takes the samples that a host program offers, and excludes their time from the run's."""

    def __init__(self) -> None:
        self._pictures: list[Array] = []
        self._captions: list[str] = []
        self._partials: list[Array] = []
        self._next_fraction = 0.0
        self._times = PhaseTimes()
        self._executed: ExecutorChoice | None = None

    def take(self, engine: Engine, progress: Progress) -> None:
        """Take a picture if one is offered and due, and all partial results that are offered."""
        due = progress.sample is not None and progress.fraction is not None and progress.fraction >= self._next_fraction
        if not due and progress.partials is None:
            return
        executed = engine.executor_choice
        if self._executed is None or executed.reason:
            self._executed = executed
        self._times += engine.take_times()
        if progress.partials is not None:
            self._partials.append(progress.partials())
        if progress.sample is not None and progress.fraction is not None and due:
            self._next_fraction = progress.fraction + 1 / MAX_PICTURES
            self._pictures.append(progress.sample())
            self._captions.append(progress.message)
        engine.take_times()

    def finish(self, engine: Engine) -> tuple[ExecutorChoice, PhaseTimes]:
        """Return the executor of the run, and the run's times without those of the pictures."""
        executed = engine.executor_choice
        if self._executed is not None and not executed.reason:
            executed = self._executed
        return executed, self._times + engine.take_times()

    def collect_arrays(self) -> Outputs:
        """Return the pictures and partial results.

        Returns
        -------
        mapping of str to array
            `frames`, shape (pictures, columns), and `captions`, lines in UTF-8. `partials K` for K = 0, 1, ...:
            outline of the partial results after the K-th launch that has any; `partial counts`: how many each has.
        """
        arrays: dict[str, Array] = {
            f"partials {number}": outline(partial) for number, partial in enumerate(self._partials)
        }
        if self._partials:
            arrays["partial counts"] = np.array([partial.size for partial in self._partials])
        if self._pictures:
            arrays["captions"] = np.frombuffer("\n".join(self._captions).encode(), np.uint8)
            arrays["frames"] = np.stack(self._pictures)
        return arrays
