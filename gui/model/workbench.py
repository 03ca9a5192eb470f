"""The window's working state: the open input, the patterns' settings, and their runs; without widgets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from PyQt6.QtCore import QObject, pyqtSignal

from gpu.base.errors import Diagnostic, InputError
from gpu.declaration.pattern import Array, Pattern
from gpu.declaration.presentation import BodiesPresentation, CountsPresentation, ImagePresentation, InputKind
from gpu.declaration.roles import FROM_FILE, Role
from gpu.engines.base import Device
from gpu.files import arrays as array_files
from gpu.messages.events import Failure
from gpu.messages.kernels import CheckSource
from gpu.messages.modeled_time import ModelPattern
from gpu.messages.run_counts import RunCounts
from gpu.messages.runs.pattern_runs import Report, RunPattern, RunResult
from gpu.messages.shared_arrays import SharedArray
from gpu.messages.timelines import TimelinePattern
from gpu.messages.verdicts import Check
from gpu.patterns import all_patterns
from gui.editor.sources import KernelSources
from gui.model.clearance import Clearance, Refusal, attach_check
from gui.model.defaults import apply_device_defaults, store_params
from gui.model.file_jobs import FileJobs
from gui.model.records import FinishedRun, LevelCounts, OpenImage, OpenValues, Settings
from gui.model.request_queue import RequestQueue
from gui.model.run_counter import RunCounter
from gui.model.time_modeler import TimeModeler
from gui.qt.timers import create_single_shot_timer

RUN_DELAY_MS = 25
VERIFY_DELAY_MS = 450
CANCEL_AFTER_S = 2.0
"""Seconds after which an obsolete run is stopped; longer than starting a new engine process takes."""

MAX_BODIES_VERIFIED_AUTOMATICALLY = 2**15
"""Largest number of bodies that is verified on a CPU without an explicit request."""


class Workbench(QObject):
    """Open inputs, run the current pattern, and count the levels of images.

    Parameters
    ----------
    jobs : RequestQueue
        The queue of the selected engine.
    side : RequestQueue or None
        The queue of a simulator for checks, counts and recordings.
    modeling_jobs : RequestQueue or None
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
    run_counts_ready = pyqtSignal(object)
    """FinishedRun with its counts, or the reason why there are none."""
    run_failed = pyqtSignal(object)
    levels_counted = pyqtSignal(object)
    failed = pyqtSignal(object)
    saved = pyqtSignal(str)

    def __init__(
        self,
        jobs: RequestQueue,
        parent: QObject | None = None,
        side: RequestQueue | None = None,
        modeling_jobs: RequestQueue | None = None,
        gpu: str = "",
    ) -> None:
        super().__init__(parent)
        self.jobs = jobs
        self._side_jobs = side or RequestQueue(parent=self)
        self.modeling = TimeModeler(modeling_jobs or RequestQueue(parent=self), gpu, self)
        self.sources = KernelSources(self._check_source, self)
        self.clearance = Clearance(lambda: self.side_jobs, self._post_run, self)
        self.clearance.refused.connect(self._show_refusal)
        self.clearance.checked.connect(self._on_check)
        self.counting = RunCounter(lambda: self.side_jobs, self)
        self.file_jobs = FileJobs(jobs, self)
        self.file_jobs.failed.connect(self.failed)
        self._device_engine = ""
        jobs.ready.connect(self._on_device)
        jobs.ready.connect(self.modeling.set_device)
        self.patterns: dict[str, Pattern] = all_patterns()
        self.settings = {
            name: Settings(pattern.first_rung.name, pattern.check({})) for name, pattern in self.patterns.items()
        }
        self.pattern_name = next(iter(self.patterns))
        self.simulation_playing = False
        """Whether a simulation is playing."""
        self.image: OpenImage | None = None
        self.values: OpenValues | None = None
        self.outcomes: dict[str, FinishedRun] = {}
        self._pending_image: tuple[Path, Path | None, Callable[[], object] | None] | None = None
        self._run_timer = create_single_shot_timer(RUN_DELAY_MS, self._run_after_change, self)
        self._verify_timer = create_single_shot_timer(VERIFY_DELAY_MS, lambda: self.run(verify=True), self)

    @property
    def side_jobs(self) -> RequestQueue:
        """The queue of the side simulator, so that typing and stepping never wait for a run.

        Its process starts with the first use.
        """
        if not self._side_jobs.started:
            try:
                self._side_jobs.start("simulator")
            except InputError as error:  # its requests wait until a start succeeds
                self.failed.emit(Failure("input", error.message, error.advice))
        return self._side_jobs

    @property
    def side_started(self) -> bool:
        """Whether the process of `side_jobs` has been started."""
        return self._side_jobs.started

    def close(self) -> None:
        """End the processes."""
        self.jobs.close()
        self._side_jobs.close()
        self.modeling.close()

    @property
    def pattern(self) -> Pattern:
        """The current pattern."""
        return self.patterns[self.pattern_name]

    @property
    def pending(self) -> bool:
        """Whether a run is about to start, or its check or counts are pending."""
        timers = self._run_timer.isActive() or self._verify_timer.isActive()
        return timers or self.clearance.under_way or self.counting.under_way

    # --- device and source checks

    def _on_device(self, device: Device) -> None:
        self._device_engine = device.engine
        self._apply_defaults(device)

    def _apply_defaults(self, device: Device | None) -> None:
        """Set the defaults for the device, and run the current pattern if they changed."""
        changed = apply_device_defaults(self.patterns, self.settings, device)
        if changed:
            self.defaults_changed.emit()
            self.settings_changed.emit()
        if self.pattern_name in changed and device is not None:
            self.schedule_run()

    def _show_refusal(self, refusal: Refusal) -> None:
        request = refusal.request
        if refusal.failure is not None:
            file = self.patterns[request.pattern].kernel_file_of(request.variant)
            self.sources.show_failure(file, request.sources, refusal.failure)

    def _on_check(self, request: RunPattern, check: Check) -> None:
        """Show a check's findings in the source, and add the check to its run."""
        file = self.patterns[request.pattern].kernel_file_of(request.variant)
        self.sources.show_run(file, request.sources, check.diagnostics, check.remedy)
        outcome = self.outcomes.get(request.pattern)
        checked_outcome = attach_check(outcome, request, check) if outcome is not None else None
        if checked_outcome is not None:
            self.outcomes[request.pattern] = checked_outcome
            self.run_checked.emit(checked_outcome)

    def run_despite_refusal(self, refusal: Refusal) -> None:
        """Run edited sources on the GPU although their check failed."""
        self.clearance.accept_sources(refusal.request)
        self.run(verify=True)

    def _check_source(self, file: str, text: str, on_diagnostics: Callable[[tuple[Diagnostic, ...]], None]) -> None:
        def on_result(event: tuple[Diagnostic, ...] | Failure) -> None:
            if not isinstance(event, Failure):
                on_diagnostics(event)
            elif event.kind not in ("cancelled", "engine"):
                on_diagnostics(
                    (Diagnostic(1, 1, 2, "error", f"Cannot check the source. {event.message} {event.advice}"),)
                )

        self.side_jobs.post(f"check {file}", CheckSource(file, text), on_result, priority=3)

    def restore(self, name: str, variant: str, params: Mapping[str, Any], chosen: Iterable[str] = ()) -> None:
        """Set a pattern's settings from the last session; a file of numbers is no longer open.

        Parameters
        ----------
        name : str
            The pattern's name.
        params : mapping
            All parameters.
        chosen : iterable of str
            Names of the parameters that were saved; the others have defaults.
        """
        pattern = self.patterns[name]
        self.settings[name] = Settings(variant, pattern.check(drop_file_source(pattern, params)), set(chosen))

    # --- input

    def is_number_file(self, path: Path) -> bool:
        """Return whether a file of that name is opened as numbers, which the pattern then accepts."""
        return self.input_kind == "values" and path.suffix.lower() in array_files.EXTENSIONS

    def is_text_file(self, path: Path) -> bool:
        """Return whether a file of that name is opened as text."""
        return self.input_kind == "text" and path.suffix.lower() == ".txt"

    @property
    def input_kind(self) -> InputKind:
        """The kind of input that the current pattern accepts with its settings."""
        return self.pattern.input_kind(self.settings[self.pattern_name].params)

    def open_text(self, path: Path) -> None:
        """Read a text for the current pattern; if that fails, nothing changes."""
        name = self.pattern_name

        def on_text(text: str) -> None:
            self.settings[name].params |= self.patterns[name].params_for_file("text", text)
            self.text_changed.emit(path.name)
            self.settings_changed.emit()
            if self.pattern_name == name:
                self.run(verify=True)

        self._stop_stale_run()
        self.file_jobs.read_text(path, on_text)

    def open_values(self, path: Path) -> None:
        """Read a file of numbers for the current pattern; if that fails, nothing changes."""
        name = self.pattern_name

        def on_values(values: OpenValues) -> None:
            self.values = values
            self.settings[name].params |= self.patterns[name].params_for_file("values")
            self.outcomes = {other: run for other, run in self.outcomes.items() if run.image is not None}
            self.values_changed.emit(values)
            self.settings_changed.emit()
            if self.pattern_name == name:
                self.run(verify=True)

        self._stop_stale_run()
        self.file_jobs.read_values(path, self.pattern.dimensions, on_values)

    def open_image(
        self, path: Path, fallback: Path | None = None, before_use: Callable[[], object] | None = None
    ) -> None:
        """Read an image; if that fails, keep the current one, or read `fallback` if there is none.

        `before_use` is called when the image has been read, before it becomes the input.
        """

        def on_image(image: OpenImage) -> None:
            if before_use is not None:
                before_use()
            if fallback is None and self.pattern.is_image_pattern and self.input_kind != "image":
                # The user opened an image, so count the image.
                self.settings[self.pattern_name].params |= self.pattern.params_for_file("image")
            self._on_image(image)

        def on_failure() -> None:
            if self.image is None and fallback is not None and fallback != path:
                self.open_image(fallback)

        self._stop_stale_run()
        self._pending_image = (path, fallback, before_use)
        self.file_jobs.read_image(path, on_image, on_failure)

    def _on_image(self, image: OpenImage) -> None:
        self.image = image
        self.outcomes = {name: run for name, run in self.outcomes.items() if run.image is None}
        takes_image = self.pattern.is_image_pattern
        for channel in ("run", "count before", "count after"):
            if takes_image or channel != "run":
                self.jobs.drop(channel)
        self.image_changed.emit(image)
        self.settings_changed.emit()
        if isinstance(self.pattern.presentation, ImagePresentation):
            self._count_levels("before", image.inputs, image)
        if takes_image or self.pattern_name not in self.outcomes:
            self.run(verify=True)

    def on_engine_changed(self) -> None:
        """Pass the input to the new engine's process, and run there."""
        self.outcomes.clear()
        self.clearance.cancel_pending_run()
        self.counting.cancel_pending_count()
        self._device_engine = ""
        self._apply_defaults(None)
        if self.values is not None:
            self.values = self.file_jobs.copy_values_to_engine(self.values)
        if self.image is not None:
            self.image = self.file_jobs.copy_image_to_engine(self.image)
            self.run(verify=True)
        elif self._pending_image is not None:
            self.open_image(*self._pending_image)

    @property
    def input_description(self) -> tuple[str, str]:
        """The name and a description of the current pattern's input; empty if there is none yet."""
        return self._describe_input(self.settings[self.pattern_name].params, self.image)

    def describe_recorded_input(self, params: Mapping[str, Any], part: Mapping[str, Array]) -> tuple[str, str]:
        """Return the name and a description of a recording's input, which may be a part of the open input."""
        if self.image is not None and "image" in part:
            name, details = self._describe_input(params, replace(self.image, values=part["image"]))
            return name, f"a part, {details}"
        name, details = self._describe_input(params, None)
        is_cut = self.values is not None and "values" in part and part["values"].size < self.values.values.size
        return name, f"{part['values'].size} of {details}" if is_cut else details

    def _describe_input(self, params: Mapping[str, Any], image: OpenImage | None) -> tuple[str, str]:
        pattern = self.pattern
        input_kind = pattern.input_kind(params)
        if input_kind == "text":
            return "Text", f"{len(pattern.value(params, Role.TEXT)):,} characters".replace(",", "\u202f")
        if input_kind == "image":
            return ("", "") if image is None else (image.path.name, image.description)
        if pattern.reads_file(params) and self.values is not None:
            return self.values.path.name, f"{self.values.values.size:,} numbers".replace(",", "\u202f")
        size = pattern.count_elements(params)
        source, element_type = (pattern.value(params, role) for role in (Role.SOURCE, Role.TYPE))
        number = f"{size:,} {pattern.size.unit}".replace(",", "\u202f") if pattern.size is not None and size else ""
        return pattern.title, ", ".join(filter(None, (number, source, element_type)))

    # --- settings

    def choose_pattern(self, name: str) -> None:
        """Select a pattern, and run it unless its last run is still current."""
        self.pattern_name = name
        self._run_timer.stop()
        self._verify_timer.stop()
        self._stop_stale_run()
        self.clearance.cancel_pending_run()
        self.jobs.drop("run")
        if self._find_inputs() is not None and not self._is_run_current and not self._requires_explicit_run:
            if isinstance(self.pattern.presentation, ImagePresentation) and self.image is not None:
                self._count_levels("before", self.image.inputs, self.image)
            self.run(verify=True)

    @property
    def _is_run_current(self) -> bool:
        """Whether the current pattern's last run matches its settings and sources."""
        run, settings = self.outcomes.get(self.pattern_name), self.settings[self.pattern_name]
        text = self.sources.find_edits(self.pattern.kernel_file_of(settings.variant))
        return (
            run is not None
            and (run.variant, run.sources) == (settings.variant, text)
            and _are_params_equal(run.params, settings.params)
        )

    @property
    def _requires_explicit_run(self) -> bool:
        """Whether a run waits for an explicit request: a simulation needs the engine, many bodies take long."""
        if not self._has_bodies:
            return False
        has_many_bodies = (
            self.pattern.value(self.settings[self.pattern_name].params, Role.SIZE) or 0
        ) > MAX_BODIES_VERIFIED_AUTOMATICALLY
        return self.simulation_playing or (has_many_bodies and self._device_engine != "cuda")

    @property
    def _has_bodies(self) -> bool:
        return isinstance(self.pattern.presentation, BodiesPresentation)

    def set_simulation_playing(self, playing: bool) -> None:
        """Set whether a simulation is playing; changed settings are verified when it pauses."""
        self.simulation_playing = playing
        if not playing and not self._is_run_current:
            self.schedule_run()

    def choose_variant(self, name: str) -> None:
        """Run another variant."""
        self.settings[self.pattern_name].variant = self.pattern.variant(name).name
        if self.jobs.device is not None:
            self._apply_defaults(self.jobs.device)
        self.settings_changed.emit()
        self.schedule_run()

    def choose_params(self, params: Mapping[str, Any]) -> None:
        """Run with other parameters."""
        store_params(self.pattern, self.settings[self.pattern_name], params)
        self.settings_changed.emit()
        self.schedule_run()

    # --- runs

    def _find_inputs(self) -> Mapping[str, SharedArray] | None:
        """Return the current pattern's input arrays: {} for a generated input, None if no input is open yet."""
        if self.input_kind == "text":
            return {}
        if self.input_kind == "image":
            return None if self.image is None else self.image.inputs
        has_matching_dimensions = self.values is not None and self.values.values.ndim == self.pattern.dimensions
        return self.values.inputs if self._reads_file and has_matching_dimensions and self.values is not None else {}

    @property
    def _reads_file(self) -> bool:
        return self.pattern.reads_file(self.settings[self.pattern_name].params)

    def schedule_run(self) -> None:
        """Run after a short delay, during which more changes can follow."""
        if not self._requires_explicit_run:
            self._run_timer.start()

    def _stop_stale_run(self) -> None:
        """Stop an obsolete run that would take long to finish."""
        # Stopping would also end the simulation of bodies in the engine's process.
        channels = () if self._has_bodies else ("run", "bodies")
        if any(self.jobs.age(channel) > CANCEL_AFTER_S for channel in channels):
            self.jobs.stop()

    def _run_after_change(self) -> None:
        self._stop_stale_run()
        # Changes in quick succession are a drag: run without verifying, and verify once the value is stable.
        dragging = self._verify_timer.isActive() or self.jobs.has_request("run")
        self.run(verify=not dragging)
        if dragging:
            self._verify_timer.start()

    def run(self, *, verify: bool = True) -> None:
        """Run the current pattern on the open input."""
        self._run_timer.stop()
        if verify:
            self._verify_timer.stop()
        inputs = self._find_inputs()
        if inputs is None:
            return
        name, settings = self.pattern_name, self.settings[self.pattern_name]
        sources = self.sources.find_edits(self.pattern.kernel_file_of(settings.variant))
        request = RunPattern(
            name, settings.variant, dict(settings.params), dict(inputs), verify=verify, sources=sources, frames=True
        )
        if sources and self._device_engine in ("", "cuda") and not self.clearance.is_cleared(request):
            self.clearance.check_and_run(request)
        else:
            self.clearance.cancel_pending_run()
            self._post_run(request)

    def _post_run(self, request: RunPattern) -> None:
        image = self.image if self.patterns[request.pattern].input_kind(request.params) == "image" else None
        file = self.values.path if self.values is not None and request.inputs and image is None else None
        self.jobs.post(
            "run",
            request,
            lambda event: self._on_run(request, image, event, file),
            lambda progress: self.progressed.emit(request.pattern, progress),
            2,
        )

    def build_model_request(self) -> ModelPattern | None:
        """Return the timing model's request for the current settings, or None if no input is open yet."""
        inputs, settings = self._find_inputs(), self.settings[self.pattern_name]
        if inputs is None:
            return None
        sources = self.sources.find_edits(self.pattern.kernel_file_of(settings.variant))
        params = dict(settings.params)
        return ModelPattern(
            self.pattern_name, settings.variant, self.modeling.gpu, params, dict(inputs), sources=sources
        )

    def block_sizes(self) -> tuple[list[int], int]:
        """Return the possible block sizes of the current pattern, and the current one."""
        return self.pattern.block_sizes(self.settings[self.pattern_name].params)

    def build_timeline_request(self, gpu: str, launch: int | None, threads: int) -> TimelinePattern:
        """Return the request for a timeline of the current settings; raise InputError if no input is open yet.

        `threads` is the block size; 0 means the current one.
        """
        inputs, settings = self._find_inputs(), self.settings[self.pattern_name]
        if inputs is None:
            raise InputError("Open an image or a file of numbers first: the timeline models its run.")
        sources = self.sources.find_edits(self.pattern.kernel_file_of(settings.variant))
        params, block = dict(settings.params), self.pattern.block
        if threads and block is not None:
            params[block.name] = str(threads)
        return TimelinePattern(
            self.pattern_name, settings.variant, gpu, params, dict(inputs), sources=sources, launch=launch
        )

    def stop(self) -> None:
        """Stop all work."""
        self._run_timer.stop()
        self._verify_timer.stop()
        self.clearance.stop()
        self.jobs.stop()

    def _on_run(
        self, request: RunPattern, image: OpenImage | None, event: RunResult | Failure, file: Path | None
    ) -> None:
        kernels = self.patterns[request.pattern].kernel_file_of(request.variant)
        if isinstance(event, Failure):
            self.sources.show_failure(kernels, request.sources, event)
            self.run_failed.emit(event)
            return
        check = self.clearance.find_cached_check(request)
        if check is None:
            self.sources.show_run(kernels, request.sources, ())
        else:
            self.sources.show_run(kernels, request.sources, check.diagnostics, check.remedy)
        if image is not None and image is not self.image:
            return
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
            self.counting.find_cached_counts(request) if event.report.simulated else None,
            request=request,
            distributed=event.distributed,
        )
        self.outcomes[request.pattern] = outcome
        self.run_finished.emit(outcome)
        if request.sources and request.verify and check is None:
            self.clearance.check_in_background(request)
        if event.report.simulated and request.verify and outcome.counts is None:
            self._count_run(request, event.report)
        pattern = self.patterns[request.pattern]
        if image is None:
            return
        if isinstance(pattern.presentation, ImagePresentation) and "image" in event.arrays:
            self._count_levels("after", {**image.inputs, "image": event.arrays["image"]}, image)
        if pattern is self._counting_pattern and pattern.variant(request.variant).deliberate_error:
            self._count_levels("reference", image.inputs, image, request.params)

    def _count_run(self, request: RunPattern, report: Report) -> None:
        """Count a run, and publish the counts while that run is the newest."""

        def on_counts(counts: RunCounts | Failure) -> None:
            outcome = self.outcomes.get(request.pattern)
            if outcome is None or outcome.report is not report:
                return
            if isinstance(counts, Failure):
                counted_outcome = replace(outcome, count_error=counts.message)
            else:
                counted_outcome = replace(outcome, counts=counts)
            self.outcomes[request.pattern] = counted_outcome
            self.run_counts_ready.emit(counted_outcome)

        self.counting.count_run(request, on_counts)

    @property
    def _counting_pattern(self) -> Pattern | None:
        """The pattern that counts the levels shown on other patterns' pages."""
        counting = (
            pattern for pattern in self.patterns.values() if isinstance(pattern.presentation, CountsPresentation)
        )
        return next(counting, None)

    def _count_levels(
        self, side: str, inputs: Mapping[str, SharedArray], image: OpenImage, params: Mapping[str, Any] | None = None
    ) -> None:
        counter = self._counting_pattern
        if counter is None:
            return

        def on_result(event: RunResult | Failure) -> None:
            if isinstance(event, Failure):
                if event.kind != "cancelled":
                    self.failed.emit(event)
            elif image is self.image:
                counts = event.arrays[counter.result].open()
                self.levels_counted.emit(LevelCounts(side, counts, image.maxval, event.report))

        request = RunPattern(counter.name, counter.default_variant, dict(params or {}), dict(inputs), verify=False)
        self.jobs.post(f"count {side}", request, on_result, priority=1)

    # --- results

    def save(self, path: Path) -> None:
        """Write the current result: an image file gets levels, .npy and .csv get the values themselves."""
        outcome = self.outcomes.get(self.pattern_name)
        if outcome is None:
            return
        pattern = self.patterns[outcome.pattern]
        image = None if path.suffix.lower() in (".npy", ".csv") else outcome.image
        handle = outcome.handles.get(pattern.result if image is None else "image", outcome.handles[pattern.result])
        maxval = None if image is None else image.maxval
        self.file_jobs.save_array(path, handle, maxval, lambda: self.saved.emit(str(path)))


def drop_file_source(pattern: Pattern, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return saved parameters without the choice of a file of numbers, which is no longer open."""
    source = pattern.source
    return {key: value for key, value in params.items() if source is None or (key, value) != (source.name, FROM_FILE)}


def _are_params_equal(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    return first.keys() == second.keys() and all(np.array_equal(first[name], second[name]) for name in first)
