"""What the window works on: the image, the patterns' settings, and their runs. It knows no widget."""

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
"""Seconds after which a run that the user has moved on from is stopped: longer than a new engine's process takes."""

MANY_BODIES = 2**15
"""More than these are verified on a CPU only when that is asked for."""


class Workbench(QObject):
    """Opens images, runs the pattern that is chosen, and counts the levels of what it shows."""

    image_changed = pyqtSignal(object)
    values_changed = pyqtSignal(object)
    text_changed = pyqtSignal(str)
    defaults_changed = pyqtSignal()
    """What nobody has chosen is another on this device."""
    settings_changed = pyqtSignal()
    """What is seen of the chosen pattern, but for its text, is another."""
    progressed = pyqtSignal(str, object)
    """The name of the pattern that runs, and its Progress."""
    run_finished = pyqtSignal(object)
    run_checked = pyqtSignal(object)
    """FinishedRun, whose text has been checked by now."""
    run_counted = pyqtSignal(object)
    """FinishedRun, of which it is known by now what it does, or why that is not."""
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
        self.clearance.checked.connect(self._take_check)
        self.counting = Counting(lambda: self.side_jobs, self)
        self.reading = FileJobs(jobs, self)
        self.reading.failed.connect(self.problem)
        self._device_engine = ""
        jobs.ready.connect(self._take_device)
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
        self._wanted: tuple[Path, Path | None] | None = None
        self._debounce = after(DEBOUNCE_MS, self._run_live, self)
        self._settle = after(SETTLE_MS, lambda: self.run(verify=True), self)

    @property
    def side_jobs(self) -> Jobs:
        """Return the queue of a simulator of its own, so that typing and stepping never wait for a run.

        Its process starts when it is first asked for.
        """
        if not self._side.started:
            try:
                self._side.start("simulator")
            except InputError as error:  # what is asked of it waits until that works
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
        """Return the pattern that is chosen."""
        return self.patterns[self.chosen]

    @property
    def pending(self) -> bool:
        """Whether a run is about to be asked for, or its counts are to come."""
        timers = self._debounce.isActive() or self._settle.isActive()
        return timers or self.clearance.under_way or self.counting.under_way

    # --- kernels

    def _take_device(self, device: Device) -> None:
        self._device_engine = device.engine
        self._suit(device)

    def _suit(self, device: Device | None) -> None:
        """Let what nobody has chosen suit the device, and run with that."""
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

    def _take_check(self, request: RunPattern, check: Check) -> None:
        """Show what was found in a text, and what that makes of the run that it belongs to."""
        file = self.patterns[request.pattern].file_of(request.variant)
        self.sources.show_run(file, request.sources, check.diagnostics, check.remedy)
        ran = self.outcomes.get(request.pattern)
        known = with_check(ran, request, check) if ran is not None else None
        if known is not None:
            self.outcomes[request.pattern] = known
            self.run_checked.emit(known)

    def run_all_the_same(self, refusal: Refusal) -> None:
        """Run edited texts on the GPU although the check of them did not end well."""
        self.clearance.accept(refusal.request)
        self.run(verify=True)

    def _check_source(self, file: str, text: str, take: Callable[[tuple[Diagnostic, ...]], None]) -> None:
        def done(event: Result | Failure) -> None:
            if isinstance(event, Result):
                take(event.diagnostics)
            elif event.kind not in ("cancelled", "engine"):
                take((Diagnostic(1, 1, 2, "error", f"This text cannot be checked. {event.message} {event.advice}"),))

        self.side_jobs.post(f"check {file}", CheckSource(file, text), done, priority=3)

    def restore(self, name: str, variant: str, params: Mapping[str, Any], chosen: Iterable[str] = ()) -> None:
        """Take a pattern's settings of the last time; a file of numbers is not open any more.

        `chosen` are the parameters that were remembered, and not defaults.
        """
        pattern = self.patterns[name]
        self.settings[name] = Settings(variant, pattern.check(without_file(pattern, params)), set(chosen))

    # --- input

    def holds_numbers(self, path: Path) -> bool:
        """Whether a file of that name is opened for its numbers: where they are what the pattern takes."""
        return self.takes == "values" and path.suffix.lower() in array_files.ENDINGS

    def holds_text(self, path: Path) -> bool:
        """Whether a file of that name is opened for its letters."""
        return self.takes == "text" and path.suffix.lower() == ".txt"

    @property
    def takes(self) -> Kind:
        """Return what the chosen pattern runs on as it is set."""
        return self.pattern.takes(self.settings[self.chosen].params)

    def open_text(self, path: Path) -> None:
        """Read a text whose letters the chosen pattern counts; when that fails all stays as it was."""
        name = self.chosen

        def take(text: str) -> None:
            self.settings[name].params |= self.patterns[name].for_file("text", text)
            self.text_changed.emit(path.name)
            self.settings_changed.emit()
            if self.chosen == name:
                self.run(verify=True)

        self._make_way()
        self.reading.text(path, take)

    def open_values(self, path: Path) -> None:
        """Read a file of numbers for the chosen pattern; when that fails all stays as it was."""
        name = self.chosen

        def take(values: OpenValues) -> None:
            self.values = values
            self.settings[name].params |= self.patterns[name].for_file("values")
            self.outcomes = {other: kept for other, kept in self.outcomes.items() if kept.image is not None}
            self.values_changed.emit(values)
            self.settings_changed.emit()
            if self.chosen == name:
                self.run(verify=True)

        self._make_way()
        self.reading.values(path, self.pattern.dimensions, take)

    def open(self, path: Path, fallback: Path | None = None) -> None:
        """Read an image; when that fails the one before stays, or `fallback` is read where there is none."""

        def take(image: OpenImage) -> None:
            if fallback is None and self.pattern.of_images and self.takes != "image":
                # Somebody opened it to see it counted.
                self.settings[self.chosen].params |= self.pattern.for_file("image")
            self._take_image(image)

        def otherwise() -> None:
            if self.image is None and fallback is not None and fallback != path:
                self.open(fallback)

        self._make_way()
        self._wanted = (path, fallback)
        self.reading.image(path, take, otherwise)

    def _take_image(self, image: OpenImage) -> None:
        self.image = image
        self.outcomes = {name: kept for name, kept in self.outcomes.items() if kept.image is None}
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
        """Hand the input to the new engine's process, and run there."""
        self.outcomes.clear()
        self.clearance.forget()
        self.counting.forget()
        self._device_engine = ""
        self._suit(None)
        if self.values is not None:
            self.values = self.reading.moved_values(self.values)
        if self.image is not None:
            self.image = self.reading.moved(self.image)
            self.run(verify=True)
        elif self._wanted is not None:
            self.open(*self._wanted)

    @property
    def input_words(self) -> tuple[str, str]:
        """The name of what the chosen pattern works on, and what that is; empty where there is nothing yet."""
        return self._words_of(self.settings[self.chosen].params, self.image)

    def recorded_words(self, params: Mapping[str, Any], part: Mapping[str, Array]) -> tuple[str, str]:
        """Return the same of a recording with other settings, and of what is open a part."""
        if self.image is not None and "image" in part:
            name, what = self._words_of(params, replace(self.image, values=part["image"]))
            return name, f"a part, {what}"
        name, what = self._words_of(params, None)
        cut = self.values is not None and "values" in part and part["values"].size < self.values.values.size
        return name, f"{part['values'].size} of {what}" if cut else what

    def _words_of(self, params: Mapping[str, Any], image: OpenImage | None) -> tuple[str, str]:
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

    # --- choices

    def choose_pattern(self, name: str) -> None:
        """Show another pattern, and run it unless its last run still holds."""
        self.chosen = name
        self._debounce.stop()
        self._settle.stop()
        self._make_way()
        self.clearance.forget()
        self.jobs.drop("run")
        if self._inputs() is not None and not self._holds and not self._unasked:
            if isinstance(self.pattern.presentation, ImagePresentation) and self.image is not None:
                self._count("before", self.image.inputs, self.image)
            self.run(verify=True)

    @property
    def _holds(self) -> bool:
        """Whether the chosen pattern's last run still holds."""
        done, wanted = self.outcomes.get(self.chosen), self.settings[self.chosen]
        text = self.sources.edits(self.pattern.file_of(wanted.variant))
        return (
            done is not None
            and (done.variant, done.sources) == (wanted.variant, text)
            and _same(done.params, wanted.params)
        )

    @property
    def _unasked(self) -> bool:
        """Whether a run waits until it is asked for: bodies that move need the engine, and many of them take long."""
        if not self._of_bodies:
            return False
        many = (self.pattern.value(self.settings[self.chosen].params, Role.SIZE) or 0) > MANY_BODIES
        return self.live or (many and self._device_engine != "cuda")

    @property
    def _of_bodies(self) -> bool:
        return isinstance(self.pattern.presentation, BodiesPresentation)

    def set_live(self, live: bool) -> None:
        """Say whether a simulation is playing; what was chosen meanwhile is verified when it stands still."""
        self.live = live
        if not live and not self._holds:
            self.run_soon()

    def choose_variant(self, name: str) -> None:
        """Run another variant."""
        self.settings[self.chosen].variant = self.pattern.variant(name).name
        if self.jobs.device is not None:
            self._suit(self.jobs.device)
        self.settings_changed.emit()
        self.run_soon()

    def choose_params(self, params: Mapping[str, Any]) -> None:
        """Run with other parameters."""
        choose(self.pattern, self.settings[self.chosen], params)
        self.settings_changed.emit()
        self.run_soon()

    # --- runs

    def _inputs(self) -> Mapping[str, SharedArray] | None:
        """Return what the chosen pattern runs on: nothing where it makes its input; None where it cannot run yet."""
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
        """Run a moment from now; until then more changes may come."""
        if not self._unasked:
            self._debounce.start()

    def _make_way(self) -> None:
        """Stop a run that nobody waits for any more, where it would take long to end by itself."""
        # To end the process is to end the simulation that it keeps.
        channels = () if self._of_bodies else ("run", "bodies")
        if any(self.jobs.age(channel) > STALE_S for channel in channels):
            self.jobs.stop()

    def _run_live(self) -> None:
        self._make_way()
        # A change that follows another at once is a drag: show it unchecked, and check when the hand rests.
        dragging = self._settle.isActive() or self.jobs.waits("run")
        self.run(verify=not dragging)
        if dragging:
            self._settle.start()

    def run(self, *, verify: bool = True) -> None:
        """Run the chosen pattern on the image that is open, or on values."""
        self._debounce.stop()
        if verify:
            self._settle.stop()
        inputs = self._inputs()
        if inputs is None:
            return
        name, wanted = self.chosen, self.settings[self.chosen]
        sources = self.sources.edits(self.pattern.file_of(wanted.variant))
        request = RunPattern(
            name, wanted.variant, dict(wanted.params), dict(inputs), verify=verify, sources=sources, frames=True
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
            lambda event: self._take_run(request, image, event, file),
            lambda progress: self.progressed.emit(request.pattern, progress),
            2,
        )

    def to_model(self) -> ModelPattern | None:
        """Return what is seen of the chosen pattern, for the timing model; None where it has no input yet."""
        inputs, settings = self._inputs(), self.settings[self.chosen]
        if inputs is None:
            return None
        sources = self.sources.edits(self.pattern.file_of(settings.variant))
        params = dict(settings.params)
        return ModelPattern(self.chosen, settings.variant, self.modeling.gpu, params, dict(inputs), sources=sources)

    def block_sizes(self) -> tuple[list[int], int]:
        """Return the threads that a block of the chosen pattern can have, and has."""
        return self.pattern.block_sizes(self.settings[self.chosen].params)

    def to_time(self, gpu: str, launch: int | None, threads: int) -> TimelinePattern:
        """Return what is seen of the chosen pattern, for a timeline of it; InputError where it has no input yet.

        Blocks have so many threads; 0 is as many as are chosen.
        """
        inputs, wanted = self._inputs(), self.settings[self.chosen]
        if inputs is None:
            raise InputError("Open an image, or a file of numbers: what runs on it is modeled.")
        sources = self.sources.edits(self.pattern.file_of(wanted.variant))
        params, block = dict(wanted.params), self.pattern.block
        if threads and block is not None:
            params[block.name] = str(threads)
        return TimelinePattern(self.chosen, wanted.variant, gpu, params, dict(inputs), sources=sources, launch=launch)

    def stop(self) -> None:
        """Stop whatever runs."""
        self._debounce.stop()
        self._settle.stop()
        self.clearance.stop()
        self.jobs.stop()

    def _take_run(
        self, request: RunPattern, image: OpenImage | None, event: Result | Failure, file: Path | None
    ) -> None:
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
        """Have counted what a run does, and show it while that run is the newest."""

        def take(counts: RunCounts | Failure) -> None:
            ran = self.outcomes.get(request.pattern)
            if ran is None or ran.report is not report:
                return
            if isinstance(counts, Failure):
                known = replace(ran, uncounted=counts.message)
            else:
                known = replace(ran, counts=counts)
            self.outcomes[request.pattern] = known
            self.run_counted.emit(known)

        self.counting.ask(request, take)

    @property
    def _counter(self) -> Pattern | None:
        """The pattern that counts the levels which other patterns' pages show."""
        counting = (each for each in self.patterns.values() if isinstance(each.presentation, CountsPresentation))
        return next(counting, None)

    def _count(
        self, side: str, inputs: Mapping[str, SharedArray], image: OpenImage, params: Mapping[str, Any] | None = None
    ) -> None:
        counter = self._counter
        if counter is None:
            return

        def done(event: Result | Failure) -> None:
            if isinstance(event, Failure):
                if event.kind != "cancelled":
                    self.problem.emit(event)
            elif image is self.image and event.report is not None:
                counts = event.arrays[counter.result].open()
                self.counted.emit(LevelCounts(side, counts, image.maxval, event.report))

        request = RunPattern(counter.name, counter.default_variant, dict(params or {}), dict(inputs), verify=False)
        self.jobs.post(f"count {side}", request, done, priority=1)

    # --- results

    def save(self, path: Path) -> None:
        """Write the chosen pattern's result: levels for an image file, the values themselves for .npy and .csv."""
        outcome = self.outcomes.get(self.chosen)
        if outcome is None:
            return
        pattern = self.patterns[outcome.pattern]
        image = None if path.suffix.lower() in (".npy", ".csv") else outcome.image
        handle = outcome.handles.get(pattern.result if image is None else "image", outcome.handles[pattern.result])
        maxval = None if image is None else image.maxval
        self.reading.save(path, handle, maxval, lambda: self.saved.emit(str(path)))


def without_file(pattern: Pattern, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was set the last time, but for numbers of a file: it is not open any more."""
    source = pattern.source
    return {key: value for key, value in params.items() if source is None or (key, value) != (source.name, FROM_FILE)}


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)
