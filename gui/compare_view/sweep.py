"""Measure, count or model variants over sizes, one request at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from PyQt6.QtCore import QObject, pyqtSignal

from gpu.declaration.pattern import Pattern, Variant
from gpu.declaration.roles import Role
from gpu.messages.events import Failure
from gpu.messages.modeled_time import ModeledTime, ModelPattern
from gpu.messages.requests import R, Request
from gpu.messages.run_counts import RunCounts
from gpu.messages.runs.pattern_runs import CountPattern, Report, RunPattern, RunResult
from gpu.messages.shared_arrays import SharedArray
from gui.model.request_queue import RequestQueue
from gui.model.time_modeler import TimeModeler
from gui.plots.throughput_plot import format_power

CHANNEL = "measure"
REPEATS = 3
BUDGET_S = {"cuda": 4.0}
"""Seconds that a run may take, by engine; a slower variant is not measured at larger sizes."""
DEFAULT_BUDGET_S = 1.0
CANCEL_AFTER_S = 1.0
"""Seconds after which an obsolete run is stopped; a shorter one finishes."""


@dataclass(frozen=True)
class Point:
    """A variant's figures at one size: rates per second of kernel time, from the median of several runs.

    Parameters
    ----------
    elements_per_s, bytes_per_s : float
        n per second, and minimum traffic per second.
    work_per_s : float
        The pattern's work per second, in the unit of its throughput.
    counts : RunCounts or None
        The counts, if the sweep counts; nothing is timed then.
    modeled : ModeledTime or None
        The modeled time, if the sweep models; nothing is run then.
    """

    variant: str
    n: int
    elements_per_s: float
    bytes_per_s: float
    work_per_s: float
    engine: str
    device: str
    kernel_ms: float = 0.0
    counts: RunCounts | None = None
    modeled: ModeledTime | None = None


MAX_QUADRATIC_SIZE = 2**16
"""Largest size at which variants with quadratic work are modeled: that takes seconds, larger sizes take minutes."""


def find_skip_reason(variant: Variant, n: int) -> str:
    """Return the reason for which a variant is not modeled at a size; "" if it is modeled."""
    if not variant.is_quadratic or n <= MAX_QUADRATIC_SIZE:
        return ""
    return f"skipped above {format_power(MAX_QUADRATIC_SIZE)}: quadratic"


@dataclass(frozen=True)
class SweepPlan:
    """The variants and sizes of a sweep.

    Parameters
    ----------
    sizes : sequence of int
        Values of n, or sides of an image in pixels.
    params : mapping
        The other parameters.
    inputs : mapping
        Handles of an image; empty for generated inputs.
    sources : mapping
        Edited kernel sources by file name.
    counts_only : bool
        Whether to count instead of measuring.
    gpu : str
        The key of a GPU to model instead of measuring; "" to measure.
    """

    pattern: Pattern
    variants: Sequence[str]
    sizes: Sequence[int]
    params: Mapping[str, Any]
    inputs: Mapping[str, SharedArray]
    sources: Mapping[str, str] = field(default_factory=dict)
    counts_only: bool = False
    gpu: str = ""

    def find_skipped_variants(self) -> dict[str, str]:
        """Return the variants that are not modeled at all sizes, with the reasons."""
        largest = max(self.sizes, default=0)
        reasons = {variant: find_skip_reason(self.pattern.variant(variant), largest) for variant in self.variants}
        return {variant: reason for variant, reason in reasons.items() if reason and self.gpu}


@dataclass
class _Runs:
    kernel_ms: list[float] = field(default_factory=list)
    wall_s: list[float] = field(default_factory=list)
    report: Report | None = None


class Sweep(QObject):
    """Measure variants over sizes, the smallest size first, with all variants at each size.

    A point is valid once its result has been compared with the reference result. Only its times are kept.

    Parameters
    ----------
    jobs : RequestQueue
        The engine's queue.
    channel : str
        The queue channel of its requests.
    """

    added = pyqtSignal(object)
    """Point"""
    variant_skipped = pyqtSignal(str, str)
    """A variant, and the reason why it is not measured at larger sizes."""
    measurement_started = pyqtSignal(str, int)
    """The current variant and size."""
    ended = pyqtSignal()

    def __init__(
        self, jobs: RequestQueue, modeling: TimeModeler, parent: QObject | None = None, channel: str = CHANNEL
    ) -> None:
        super().__init__(parent)
        self._channel = channel
        self._jobs = jobs
        self._modeling = modeling
        self._request_number = 0
        self._todo: list[tuple[int, str]] = []
        self._runs = _Runs()
        self._plan: SweepPlan | None = None

    @property
    def running(self) -> bool:
        """Whether points are pending."""
        return bool(self._todo)

    def start(self, plan: SweepPlan) -> None:
        """Start a sweep, instead of one that is running."""
        self.stop()
        self._plan = plan
        skipped = plan.find_skipped_variants()
        self._todo = [
            (n, variant)
            for n in sorted(plan.sizes)
            for variant in plan.variants
            if n <= MAX_QUADRATIC_SIZE or variant not in skipped
        ]
        self._runs = _Runs()
        for variant, reason in skipped.items():
            self.variant_skipped.emit(variant, reason)
        if self._todo:
            self._request_next()
        else:
            self.ended.emit()

    def stop(self) -> None:
        """Stop the sweep, and a running request that would take long."""
        if not self.running:
            return
        self._request_number += 1
        self._todo = []
        self._modeling.cancel_request(self._channel)
        self._jobs.drop(self._channel)
        if self._jobs.age(self._channel) > CANCEL_AFTER_S:
            self._jobs.stop()
        self.ended.emit()

    def _request_next(self) -> None:
        n, variant = self._todo[0]
        self.measurement_started.emit(variant, n)
        plan = self._plan
        assert plan is not None
        params = {**plan.params, **plan.pattern.params_for_role(Role.SIZE, n)}
        side = n if plan.inputs else 0
        if plan.gpu:
            self._model(ModelPattern(plan.pattern.name, variant, plan.gpu, params, plan.inputs, n, plan.sources, side))
        elif plan.counts_only:
            count = CountPattern(
                plan.pattern.name, variant, params, plan.inputs, n, plan.sources, full_input=True, side=side
            )
            self._post(count, self._on_counts)
        else:
            verify = self._runs.report is None
            run = RunPattern(
                plan.pattern.name, variant, params, plan.inputs, n, verify=verify, sources=plan.sources, side=side
            )
            self._post(run, self._on_run)

    def _post(self, request: Request[R], on_success: Callable[[R, float], None]) -> None:
        """Post a request, and pass its result and duration in seconds to `on_success`."""
        turn = self._request_number
        started: list[float] = []

        def on_result(event: R | Failure) -> None:
            if turn != self._request_number:
                return
            if isinstance(event, Failure):
                self._on_failure(event)
            else:
                on_success(event, time.perf_counter() - (started[0] if started else posted))

        def on_progress(_: Any) -> None:
            # Other requests may run first, so the run's own time starts with its first progress message.
            if not started:
                started.append(time.perf_counter())

        posted = time.perf_counter()
        self._jobs.post(self._channel, request, on_result, on_progress)

    def _model(self, request: ModelPattern) -> None:
        turn, (n, variant) = self._request_number, self._todo[0]

        def on_result(model: ModeledTime | Failure) -> None:
            if turn != self._request_number:
                return
            if isinstance(model, Failure):
                self._on_failure(model)
                return
            seconds = model.time_us / 1e6
            self.added.emit(
                Point(
                    variant, n, n / seconds, model.least_bytes / seconds, model.work / seconds, "model", model.name,
                    1e3 * seconds, modeled=model,
                )
            )  # fmt: skip
            self._advance()

        self._modeling.request_model(self._channel, request, on_result)

    def _on_failure(self, failure: Failure) -> None:
        if failure.kind == "cancelled":
            self.stop()
        else:
            self._skip_variant(self._todo[0][1], failure.message)

    def _on_counts(self, counts: RunCounts, wall_s: float) -> None:
        n, variant = self._todo[0]
        self.added.emit(Point(variant, n, 0.0, 0.0, 0.0, "simulator", "", counts=counts))
        if wall_s > DEFAULT_BUDGET_S:
            self._skip_variant(variant, f"counting takes more than {DEFAULT_BUDGET_S:g} s")
        else:
            self._advance()

    def _on_run(self, result: RunResult, wall_s: float) -> None:
        n, variant = self._todo[0]
        report = result.report
        if self._runs.report is None and not report.verified:
            self._skip_variant(variant, "its result is wrong")
            return
        self._runs.report = self._runs.report or report
        self._runs.kernel_ms.append(report.time_ms.kernel)
        self._runs.wall_s.append(wall_s)
        budget = BUDGET_S.get(report.engine, DEFAULT_BUDGET_S)
        # The first run includes compiling and verifying, so its duration is not representative.
        slow = len(self._runs.wall_s) > 1 and min(self._runs.wall_s) > budget
        timing = self._runs.report.timing
        if timing is not None:  # the engine has measured the median of several runs
            slow = timing.median * timing.repetitions > 1e3 * budget
        elif len(self._runs.kernel_ms) < REPEATS and not slow:
            self._request_next()
            return
        self._add_point(variant, n)
        if slow:
            self._skip_variant(variant, f"a run takes more than {budget:g} s")
        else:
            self._advance()

    def _add_point(self, variant: str, n: int) -> None:
        report = self._runs.report
        assert report is not None
        seconds = median(self._runs.kernel_ms) / 1e3
        if seconds > 0:
            work = report.throughput.value * report.time_ms.kernel / 1e3
            self.added.emit(
                Point(
                    variant,
                    n,
                    n / seconds,
                    report.least_bytes / seconds,
                    work / seconds,
                    report.engine,
                    report.device,
                    1e3 * seconds,
                )
            )

    def _skip_variant(self, variant: str, reason: str) -> None:
        self.variant_skipped.emit(variant, reason)
        self._todo = [self._todo[0], *(each for each in self._todo[1:] if each[1] != variant)]
        self._advance()

    def _advance(self) -> None:
        self._runs = _Runs()
        del self._todo[0]
        if self._todo:
            self._request_next()
        else:
            self._request_number += 1
            self.ended.emit()
