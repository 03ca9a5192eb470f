"""The window's working state: the open input, the patterns' settings, and their runs; without widgets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from PyQt6.QtCore import QObject, pyqtSignal

from gpu.declaration.pattern import Array, Pattern
from gpu.declaration.presentation import BodiesPresentation, CountsPresentation, ImagePresentation, Kind
from gpu.declaration.roles import FROM_FILE, Role
from gpu.engines.base import Device
from gpu.errors import Diagnostic, InputError
from gpu.files import arrays as array_files
from gpu.messages.counted import RunCounts
from gpu.messages.requests import CheckSource, Failure, ModelPattern, Report, Result, RunPattern, TimelinePattern
from gpu.messages.shared_arrays import SharedArray
from gpu.messages.verdicts import Check
from gpu.patterns import all_patterns
from gui.editor.sources import KernelSources
from gui.model.clearance import Clearance, Refusal, with_check
from gui.model.counting import Counting
from gui.model.defaults import choose, suit
from gui.model.file_jobs import FileJobs
from gui.model.jobs import Jobs
from gui.model.modeling import Modeling
from gui.model.records import FinishedRun, LevelCounts, OpenImage, OpenValues, Settings
from gui.qt.later import after

DEBOUNCE_MS = 25
SETTLE_MS = 450
STALE_S = 2.0
"""Seconds after which an obsolete run is stopped; longer than starting a new engine process takes."""

MANY_BODIES = 2**15
"""Largest number of bodies that is verified on a CPU without an explicit request."""


class Workbench(QObject):
    """Open inputs, run the current pattern, and count the levels of images.

    Parameters
    ----------
    jobs : Jobs
        The queue of the selected engine.
    side : Jobs or None
        The queue of a simulator for checks, counts and recordings.
    third : Jobs or None
        The queue of the process that models.
    gpu : str
        The key of the GPU that times are modeled for; "" if none was selected.
    """

    image_changed = pyqtSignal(object)
    values_changed = pyqtSignal(object)
    text_changed = pyqtSignal(str)
    defaults_changed = pyqtSignal()
    """Defaults have changed with the device."""
    settings_changed = pyqtSignal()
    """The current pattern, variant, parameters or input have changed."""
    progressed = pyqtSignal(str, object)
    """The name of the running pattern, and its Progress."""
    run_finished = pyqtSignal(object)
    run_checked = pyqtSignal(object)
    """FinishedRun with the check of its sources."""
    run_counted = pyqtSignal(object)
    """FinishedRun with its counts, or the reason why there are none."""
    run_failed = pyqtSignal(object)
    counted = pyqtSignal(object)
    problem = pyqtSignal(object)
    saved = pyqtSignal(str)

    def __init__(
        self,
        jobs: Jobs,
        parent: QObject | None = None,
        side: Jobs | None = None,
        third: Jobs | None = None,
        gpu: str = "",
    ) -> None:
        super().__init__(parent)
        self.jobs = jobs
        self._side = side or Jobs(parent=self)
        self.modeling = Modeling(third or Jobs(parent=self), gpu, self)
        self.sources = KernelSources(self._check_source, self)
        self.clearance = Clearance(lambda: self.side_jobs, self._post_run, self)
        self.clearance.refused.connect(self._show_refusal)
        self.clearance.checked.connect(self._on_check)
        self.counting = Counting(lambda: self.side_jobs, self)
        self.reading = FileJobs(jobs, self)
        self.reading.failed.connect(self.problem)
        self._device_engine = ""
        jobs.ready.connect(self._on_device)
        jobs.ready.connect(self.modeling.take_device)
        self.patterns: dict[str, Pattern] = all_patterns()
        self.settings = {
            name: Settings(pattern.first_rung.name, pattern.check({})) for name, pattern in self.patterns.items()
        }
        self.chosen = next(iter(self.patterns))
        self.live = False
        """Whether a simulation is playing."""
        self.image: OpenImage | None = None
        self.values: OpenValues | None = None
        self.outcomes: dict[str, FinishedRun] = {}
        self._opening: tuple[Path, Path | None] | None = None
        self._debounce = after(DEBOUNCE_MS, self._run_live, self)
        self._settle = after(SETTLE_MS, lambda: self.run(verify=True), self)

    @property
    def side_jobs(self) -> Jobs:
        """The queue of the side simulator, so that typing and stepping never wait for a run.

        Its process starts with the first use.
        """
        if not self._side.started:
            try:
                self._side.start("simulator")
            except InputError as error:  # its requests wait until a start succeeds
                self.problem.emit(Failure("input", error.message, error.advice))
        return self._side

    @property
    def side_started(self) -> bool:
        """Whether the process of `side_jobs` has been started."""
        return self._side.started

    def close(self) -> None:
        """End the processes."""
        self.jobs.close()
        self._side.close()
        self.modeling.close()

    @property
    def pattern(self) -> Pattern:
        """The current pattern."""
        return self.patterns[self.chosen]

    @property
    def pending(self) -> bool:
        """Whether a run is about to start, or its check or counts are pending."""
        timers = self._debounce.isActive() or self._settle.isActive()
        return timers or self.clearance.under_way or self.counting.under_way

    # --- kernels

    def _on_device(self, device: Device) -> None:
        self._device_engine = device.engine
        self._apply_defaults(device)

    def _apply_defaults(self, device: Device | None) -> None:
        """Set the defaults for the device, and run the current pattern if they changed."""
        changed = suit(self.patterns, self.settings, device)
        if changed:
            self.defaults_changed.emit()
            self.settings_changed.emit()
        if self.chosen in changed and device is not None:
            self.run_soon()

    def _show_refusal(self, refusal: Refusal) -> None:
        request = refusal.request
        if refusal.failure is not None:
            file = self.patterns[request.pattern].file_of(request.variant)
            self.sources.show_failure(file, request.sources, refusal.failure)

    def _on_check(self, request: RunPattern, check: Check) -> None:
        """Show a check's findings in the source, and add the check to its run."""
        file = self.patterns[request.pattern].file_of(request.variant)
        self.sources.show_run(file, request.sources, check.diagnostics, check.remedy)
        ran = self.outcomes.get(request.pattern)
        checked = with_check(ran, request, check) if ran is not None else None
        if checked is not None:
            self.outcomes[request.pattern] = checked
            self.run_checked.emit(checked)

    def run_all_the_same(self, refusal: Refusal) -> None:
        """Run edited sources on the GPU although their check failed."""
        self.clearance.accept(refusal.request)
        self.run(verify=True)

    def _check_source(self, file: str, text: str, take: Callable[[tuple[Diagnostic, ...]], None]) -> None:
        def on_result(event: Result | Failure) -> None:
            if isinstance(event, Result):
                take(event.diagnostics)
            elif event.kind not in ("cancelled", "engine"):
                take((Diagnostic(1, 1, 2, "error", f"The source cannot be checked. {event.message} {event.advice}"),))

        self.side_jobs.post(f"check {file}", CheckSource(file, text), on_result, priority=3)

    def restore(self, name: str, variant: str, params: Mapping[str, Any], chosen: Iterable[str] = ()) -> None:
        """Set a pattern's settings from the last session; a file of numbers is no longer open.

        `chosen` are the parameters that were saved, as opposed to defaults.
        """
        pattern = self.patterns[name]
        self.settings[name] = Settings(variant, pattern.check(without_file(pattern, params)), set(chosen))

    # --- input

    def holds_numbers(self, path: Path) -> bool:
        """Return whether a file of that name is opened as numbers, which the pattern then accepts."""
        return self.takes == "values" and path.suffix.lower() in array_files.ENDINGS

    def holds_text(self, path: Path) -> bool:
        """Return whether a file of that name is opened as text."""
        return self.takes == "text" and path.suffix.lower() == ".txt"

    @property
    def takes(self) -> Kind:
        """The kind of input that the current pattern accepts with its settings."""
        return self.pattern.takes(self.settings[self.chosen].params)

    def open_text(self, path: Path) -> None:
        """Read a text for the current pattern; if that fails, nothing changes."""
        name = self.chosen

        def take(text: str) -> None:
            self.settings[name].params |= self.patterns[name].for_file("text", text)
            self.text_changed.emit(path.name)
            self.settings_changed.emit()
            if self.chosen == name:
                self.run(verify=True)

        self._stop_stale_run()
        self.reading.text(path, take)

    def open_values(self, path: Path) -> None:
        """Read a file of numbers for the current pattern; if that fails, nothing changes."""
        name = self.chosen

        def take(values: OpenValues) -> None:
            self.values = values
            self.settings[name].params |= self.patterns[name].for_file("values")
            self.outcomes = {other: run for other, run in self.outcomes.items() if run.image is not None}
            self.values_changed.emit(values)
            self.settings_changed.emit()
            if self.chosen == name:
                self.run(verify=True)

        self._stop_stale_run()
        self.reading.values(path, self.pattern.dimensions, take)

    def open(self, path: Path, fallback: Path | None = None) -> None:
        """Read an image; if that fails, keep the current one, or read `fallback` if there is none."""

        def take(image: OpenImage) -> None:
            if fallback is None and self.pattern.of_images and self.takes != "image":
                # The user opened an image, so count the image.
                self.settings[self.chosen].params |= self.pattern.for_file("image")
            self._on_image(image)

        def otherwise() -> None:
            if self.image is None and fallback is not None and fallback != path:
                self.open(fallback)

        self._stop_stale_run()
        self._opening = (path, fallback)
        self.reading.image(path, take, otherwise)

    def _on_image(self, image: OpenImage) -> None:
        self.image = image
        self.outcomes = {name: run for name, run in self.outcomes.items() if run.image is None}
        of_image = self.pattern.of_images
        for channel in ("run", "count before", "count after"):
            if of_image or channel != "run":
                self.jobs.drop(channel)
        self.image_changed.emit(image)
        self.settings_changed.emit()
        if isinstance(self.pattern.presentation, ImagePresentation):
            self._count("before", image.inputs, image)
        if of_image or self.chosen not in self.outcomes:
            self.run(verify=True)

    def engine_changed(self) -> None:
        """Pass the input to the new engine's process, and run there."""
        self.outcomes.clear()
        self.clearance.forget()
        self.counting.forget()
        self._device_engine = ""
        self._apply_defaults(None)
        if self.values is not None:
            self.values = self.reading.moved_values(self.values)
        if self.image is not None:
            self.image = self.reading.moved(self.image)
            self.run(verify=True)
        elif self._opening is not None:
            self.open(*self._opening)

    @property
    def input_words(self) -> tuple[str, str]:
        """The name and a description of the current pattern's input; empty if there is none yet."""
        return self._describe_input(self.settings[self.chosen].params, self.image)

    def recorded_words(self, params: Mapping[str, Any], part: Mapping[str, Array]) -> tuple[str, str]:
        """Return the name and a description of a recording's input, which may be a part of the open input."""
        if self.image is not None and "image" in part:
            name, details = self._describe_input(params, replace(self.image, values=part["image"]))
            return name, f"a part, {details}"
        name, details = self._describe_input(params, None)
        cut = self.values is not None and "values" in part and part["values"].size < self.values.values.size
        return name, f"{part['values'].size} of {details}" if cut else details

    def _describe_input(self, params: Mapping[str, Any], image: OpenImage | None) -> tuple[str, str]:
        pattern = self.pattern
        takes = pattern.takes(params)
        if takes == "text":
            return "Text", f"{len(pattern.value(params, Role.TEXT)):,} characters".replace(",", "\u2009")
        if takes == "image":
            return ("", "") if image is None else (image.path.name, image.description)
        if pattern.from_file(params) and self.values is not None:
            return self.values.path.name, f"{self.values.values.size:,} numbers".replace(",", "\u2009")
        size = pattern.elements(params)
        source, type = (pattern.value(params, role) for role in (Role.SOURCE, Role.TYPE))
        number = f"{size:,} {pattern.size.unit}".replace(",", "\u2009") if pattern.size is not None and size else ""
        return pattern.title, ", ".join(filter(None, (number, source, type)))

    # --- settings

    def choose_pattern(self, name: str) -> None:
        """Select a pattern, and run it unless its last run is still current."""
        self.chosen = name
        self._debounce.stop()
        self._settle.stop()
        self._stop_stale_run()
        self.clearance.forget()
        self.jobs.drop("run")
        if self._inputs() is not None and not self._is_current and not self._needs_request:
            if isinstance(self.pattern.presentation, ImagePresentation) and self.image is not None:
                self._count("before", self.image.inputs, self.image)
            self.run(verify=True)

    @property
    def _is_current(self) -> bool:
        """Whether the current pattern's last run matches its settings and sources."""
        run, settings = self.outcomes.get(self.chosen), self.settings[self.chosen]
        text = self.sources.edits(self.pattern.file_of(settings.variant))
        return (
            run is not None
            and (run.variant, run.sources) == (settings.variant, text)
            and _same(run.params, settings.params)
        )

    @property
    def _needs_request(self) -> bool:
        """Whether a run waits for an explicit request: a simulation needs the engine, many bodies take long."""
        if not self._has_bodies:
            return False
        many = (self.pattern.value(self.settings[self.chosen].params, Role.SIZE) or 0) > MANY_BODIES
        return self.live or (many and self._device_engine != "cuda")

    @property
    def _has_bodies(self) -> bool:
        return isinstance(self.pattern.presentation, BodiesPresentation)

    def set_live(self, live: bool) -> None:
        """Set whether a simulation is playing; changed settings are verified when it pauses."""
        self.live = live
        if not live and not self._is_current:
            self.run_soon()

    def choose_variant(self, name: str) -> None:
        """Run another variant."""
        self.settings[self.chosen].variant = self.pattern.variant(name).name
        if self.jobs.device is not None:
            self._apply_defaults(self.jobs.device)
        self.settings_changed.emit()
        self.run_soon()

    def choose_params(self, params: Mapping[str, Any]) -> None:
        """Run with other parameters."""
        choose(self.pattern, self.settings[self.chosen], params)
        self.settings_changed.emit()
        self.run_soon()

    # --- runs

    def _inputs(self) -> Mapping[str, SharedArray] | None:
        """Return the current pattern's input arrays: {} for a generated input, None if no input is open yet."""
        if self.takes == "text":
            return {}
        if self.takes == "image":
            return None if self.image is None else self.image.inputs
        fits = self.values is not None and self.values.values.ndim == self.pattern.dimensions
        return self.values.inputs if self._from_file and fits and self.values is not None else {}

    @property
    def _from_file(self) -> bool:
        return self.pattern.from_file(self.settings[self.chosen].params)

    def run_soon(self) -> None:
        """Run after a short delay, during which more changes can follow."""
        if not self._needs_request:
            self._debounce.start()

    def _stop_stale_run(self) -> None:
        """Stop an obsolete run that would take long to finish."""
        # Stopping would also end the simulation of bodies in the engine's process.
        channels = () if self._has_bodies else ("run", "bodies")
        if any(self.jobs.age(channel) > STALE_S for channel in channels):
            self.jobs.stop()

    def _run_live(self) -> None:
        self._stop_stale_run()
        # Changes in quick succession are a drag: run without verifying, and verify once the value is stable.
        dragging = self._settle.isActive() or self.jobs.waits("run")
        self.run(verify=not dragging)
        if dragging:
            self._settle.start()

    def run(self, *, verify: bool = True) -> None:
        """Run the current pattern on the open input."""
        self._debounce.stop()
        if verify:
            self._settle.stop()
        inputs = self._inputs()
        if inputs is None:
            return
        name, settings = self.chosen, self.settings[self.chosen]
        sources = self.sources.edits(self.pattern.file_of(settings.variant))
        request = RunPattern(
            name, settings.variant, dict(settings.params), dict(inputs), verify=verify, sources=sources, frames=True
        )
        if sources and self._device_engine in ("", "cuda") and not self.clearance.holds(request):
            self.clearance.ask(request)
        else:
            self.clearance.forget()
            self._post_run(request)

    def _post_run(self, request: RunPattern) -> None:
        image = self.image if self.patterns[request.pattern].takes(request.params) == "image" else None
        file = self.values.path if self.values is not None and request.inputs and image is None else None
        self.jobs.post(
            "run",
            request,
            lambda event: self._on_run(request, image, event, file),
            lambda progress: self.progressed.emit(request.pattern, progress),
            2,
        )

    def to_model(self) -> ModelPattern | None:
        """Return the timing model's request for the current settings, or None if no input is open yet."""
        inputs, settings = self._inputs(), self.settings[self.chosen]
        if inputs is None:
            return None
        sources = self.sources.edits(self.pattern.file_of(settings.variant))
        params = dict(settings.params)
        return ModelPattern(self.chosen, settings.variant, self.modeling.gpu, params, dict(inputs), sources=sources)

    def block_sizes(self) -> tuple[list[int], int]:
        """Return the possible block sizes of the current pattern, and the current one."""
        return self.pattern.block_sizes(self.settings[self.chosen].params)

    def to_time(self, gpu: str, launch: int | None, threads: int) -> TimelinePattern:
        """Return the request for a timeline of the current settings; raise InputError if no input is open yet.

        `threads` is the block size; 0 means the current one.
        """
        inputs, settings = self._inputs(), self.settings[self.chosen]
        if inputs is None:
            raise InputError("Open an image or a file of numbers first: the timeline models its run.")
        sources = self.sources.edits(self.pattern.file_of(settings.variant))
        params, block = dict(settings.params), self.pattern.block
        if threads and block is not None:
            params[block.name] = str(threads)
        return TimelinePattern(self.chosen, settings.variant, gpu, params, dict(inputs), sources=sources, launch=launch)

    def stop(self) -> None:
        """Stop all work."""
        self._debounce.stop()
        self._settle.stop()
        self.clearance.stop()
        self.jobs.stop()

    def _on_run(self, request: RunPattern, image: OpenImage | None, event: Result | Failure, file: Path | None) -> None:
        kernels = self.patterns[request.pattern].file_of(request.variant)
        if isinstance(event, Failure):
            self.sources.show_failure(kernels, request.sources, event)
            self.run_failed.emit(event)
            return
        check = self.clearance.known(request)
        if check is None:
            self.sources.show_run(kernels, request.sources, ())
        else:
            self.sources.show_run(kernels, request.sources, check.diagnostics, check.remedy)
        if image is not None and image is not self.image:
            return
        assert event.report is not None
        outcome = FinishedRun(
            request.pattern,
            request.variant,
            request.params,
            image,
            event.report,
            event.arrays,
            {name: handle.open() for name, handle in event.arrays.items()},
            request.sources,
            file,
            check,
            self.counting.known(request) if event.report.simulated else None,
            asked=request,
            distributed=event.distributed,
        )
        self.outcomes[request.pattern] = outcome
        self.run_finished.emit(outcome)
        if request.sources and request.verify and check is None:
            self.clearance.follow(request)
        if event.report.simulated and request.verify and outcome.counts is None:
            self._count_run(request, event.report)
        pattern = self.patterns[request.pattern]
        if image is None:
            return
        if isinstance(pattern.presentation, ImagePresentation) and "image" in event.arrays:
            self._count("after", {**image.inputs, "image": event.arrays["image"]}, image)
        if pattern is self._counter and pattern.variant(request.variant).cautionary:
            self._count("right", image.inputs, image, request.params)

    def _count_run(self, request: RunPattern, report: Report) -> None:
        """Count a run, and publish the counts while that run is the newest."""

        def take(counts: RunCounts | Failure) -> None:
            ran = self.outcomes.get(request.pattern)
            if ran is None or ran.report is not report:
                return
            if isinstance(counts, Failure):
                counted = replace(ran, uncounted=counts.message)
            else:
                counted = replace(ran, counts=counts)
            self.outcomes[request.pattern] = counted
            self.run_counted.emit(counted)

        self.counting.ask(request, take)

    @property
    def _counter(self) -> Pattern | None:
        """The pattern that counts the levels shown on other patterns' pages."""
        counting = (each for each in self.patterns.values() if isinstance(each.presentation, CountsPresentation))
        return next(counting, None)

    def _count(
        self, side: str, inputs: Mapping[str, SharedArray], image: OpenImage, params: Mapping[str, Any] | None = None
    ) -> None:
        counter = self._counter
        if counter is None:
            return

        def on_result(event: Result | Failure) -> None:
            if isinstance(event, Failure):
                if event.kind != "cancelled":
                    self.problem.emit(event)
            elif image is self.image and event.report is not None:
                counts = event.arrays[counter.result].open()
                self.counted.emit(LevelCounts(side, counts, image.maxval, event.report))

        request = RunPattern(counter.name, counter.default_variant, dict(params or {}), dict(inputs), verify=False)
        self.jobs.post(f"count {side}", request, on_result, priority=1)

    # --- results

    def save(self, path: Path) -> None:
        """Write the current result: an image file gets levels, .npy and .csv get the values themselves."""
        outcome = self.outcomes.get(self.chosen)
        if outcome is None:
            return
        pattern = self.patterns[outcome.pattern]
        image = None if path.suffix.lower() in (".npy", ".csv") else outcome.image
        handle = outcome.handles.get(pattern.result if image is None else "image", outcome.handles[pattern.result])
        maxval = None if image is None else image.maxval
        self.reading.save(path, handle, maxval, lambda: self.saved.emit(str(path)))


def without_file(pattern: Pattern, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return saved parameters without the choice of a file of numbers, which is no longer open."""
    source = pattern.source
    return {key: value for key, value in params.items() if source is None or (key, value) != (source.name, FROM_FILE)}


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)
