"""The Run tab of a pattern of bodies: their picture, its controls, and plots."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

from PyQt6.QtCore import QPointF, QSize, pyqtSignal
from PyQt6.QtGui import QHideEvent, QShowEvent
from PyQt6.QtWidgets import QSplitter

from gpu.declaration.pattern import Pattern, Preset, Progress
from gpu.declaration.presentation import BodiesPresentation
from gpu.declaration.roles import Role
from gpu.engines.base import SIMULATION_TIME_LABEL
from gpu.messages.bodies import Camera, PickBody, PickedBody
from gpu.messages.events import Failure
from gpu.messages.runs.pattern_runs import RunPattern
from gui.model.records import FinishedRun, PointedElement
from gui.model.request_queue import RequestQueue, describe_progress
from gui.run_view.bodies import camera as cameras
from gui.run_view.bodies.canvas import BodiesCanvas
from gui.run_view.bodies.controls import Controls
from gui.run_view.bodies.files import BodyFiles
from gui.run_view.bodies.film_export import FilmExport
from gui.run_view.bodies.plots import Plots
from gui.run_view.bodies.simulation import BodiesFrame, LiveSimulation
from gui.run_view.view import RunView
from gui.widgets.basic import Card, ElidedLabel, column, format_count, format_figure
from gui.widgets.view_keys import ViewKeys

_FILM_FILTER = "MP4 film (*.mp4);;GIF animation (*.gif)"
_MAX_PIXELS = {"cuda": 2560 * 1440}
_MAX_PIXELS_ON_CPU = 960 * 540
"""Maximum pixels of a picture on a CPU, which needs its time for the bodies."""
_RATE_WINDOW_S = 1.0
_RATE_UPDATE_INTERVAL_S = 0.25


class BodiesView(RunView):
    """Show a simulation that runs in the engine's process.

    Parameters
    ----------
    jobs : RequestQueue
        The engine's queue.
    """

    description: ElidedLabel
    side_panel: Card
    status_message = pyqtSignal(str)
    """A message about a completed operation."""
    status_message_ended = pyqtSignal(str)
    """A message about work in progress that has ended."""
    failed = pyqtSignal(object)
    """Failure"""

    def __init__(self, pattern: Pattern, jobs: RequestQueue) -> None:
        super().__init__()
        assert isinstance(pattern.presentation, BodiesPresentation)
        self._pattern, self._jobs, self._forces_array = pattern, jobs, pattern.presentation.forces_output
        self.simulation = LiveSimulation(pattern, jobs, self)
        self.canvas = BodiesCanvas()
        self.controls = Controls(self.simulation)
        self.plots = Plots()
        self.files = BodyFiles(self.simulation, jobs, self)
        self.film_export = FilmExport(self.simulation, self)
        self.frame: BodiesFrame | None = None
        """The newest frame with a picture."""
        self._radius: float | None = None
        self._home_subject: tuple[Any, ...] | None = None
        self._paint_times: deque[float] = deque()
        self._rate_update_time = 0.0
        self._right_text = ""
        self._progress_text = ""
        self.description = ElidedLabel("caption", "About the preset", right=True)
        self.speed = ElidedLabel("caption", "Interactions per second", right=True)
        self.side_panel = Card("Measured", margins=(12, 8, 12, 8))
        self.side_panel.head.addWidget(self.speed, 1)
        self.side_panel.body.addWidget(self.plots, 1)
        self.splitter = QSplitter()
        self.setLayout(column(self.canvas, self.controls, stretch=0))
        self._keys = ViewKeys(
            self,
            {
                "Space": lambda: self.simulation.play(not self.playing),
                ".": self.simulation.step,
                "R": lambda: self.simulation.restart(self.simulation.bodies),
            },
            non_repeating=("Space", "R"),
        )
        self._connect_signals()

    def _connect_signals(self) -> None:
        simulation, canvas = self.simulation, self.canvas
        simulation.frame_arrived.connect(self._show_frame)
        simulation.restarted.connect(self._on_restart)
        simulation.progressed.connect(self._show_progress)
        simulation.failed.connect(self._show_failure)
        canvas.painted.connect(self._count_frame)
        canvas.camera_moved.connect(self._set_camera)
        canvas.home_requested.connect(self.reset_camera)
        canvas.resized.connect(self._update_size)
        canvas.picked.connect(self._pick_body)
        self.files.add_menu_actions(self.controls.menu)
        self.controls.film_requested.connect(self.toggle_film)
        self.film_export.changed.connect(self._show_film_state)
        for part in (self.files, self.film_export):
            part.status_message.connect(self.status_message)
            part.failed.connect(self.failed)

    # --- called by the page

    def show_variant(self, name: str) -> None:
        self.simulation.variant = name
        self._name_kernel()

    def _name_kernel(self) -> None:
        """Report the current kernel to the plots: the variant, and whether its source is edited."""
        variant = self._pattern.variant(self.simulation.variant)
        number = self._pattern.variants.index(variant) + 1
        edited = ", edited" if self._pattern.kernel_file_of(variant.name) in self.simulation.sources else ""
        self.plots.change_kernel(f"{number} {variant.title}{edited}")

    def show_params(self, params: dict[str, Any]) -> None:
        if self.simulation.params and self.simulation.needs_restart(params):
            self.files.source_path = None
        self.simulation.set_params(params)
        self._show_description()

    def _show_description(self) -> None:
        opened, preset = self.files.source_path, self._find_preset(self.simulation.params)
        self.description.show_text(opened.name if opened is not None else preset.text if preset is not None else "")

    def _find_preset(self, params: dict[str, Any]) -> Preset | None:
        """Return the preset that generates the same bodies, in any number."""
        value = self._pattern.value
        source = value(params, Role.SOURCE)
        return next((preset for preset in self._pattern.presets if value(preset.params, Role.SOURCE) == source), None)

    def add_dependent_params(self, params: dict[str, Any]) -> dict[str, Any]:
        """Add the time step and softening of the preset if another one was selected."""
        pattern, value = self._pattern, self._pattern.value
        if value(params, Role.SOURCE) == value(self.simulation.params, Role.SOURCE):
            return params
        preset = self._find_preset(params)
        defaults = pattern.check(preset.params if preset is not None else {})
        for role in (Role.TIME_STEP, Role.SOFTENING):
            params = {**params, **pattern.params_for_role(role, value(defaults, role))}
        return params

    def show_outcome(self, outcome: FinishedRun) -> None:
        # An edited kernel moves the bodies once it has passed a run.
        self.simulation.sources = dict(outcome.sources)
        self._name_kernel()

    @property
    def playing(self) -> bool:
        """Whether the simulation is playing."""
        return self.simulation.playing

    def stop(self) -> bool:
        """Pause, and end a film; return whether there was anything to stop."""
        self.film_export.end_film()
        return self.simulation.stop()

    # --- frames

    def showEvent(self, event: QShowEvent | None) -> None:
        assert event is not None
        super().showEvent(event)
        self._update_size()
        self.simulation.set_visible(True)
        if not event.spontaneous():
            self.canvas.setFocus()

    def hideEvent(self, event: QHideEvent | None) -> None:
        super().hideEvent(event)
        self.simulation.set_visible(False)

    def _on_restart(self) -> None:
        self.plots.clear()
        self.frame = self._radius = None
        self._paint_times.clear()
        self.speed.show_text("")
        self.canvas.show_message("")
        self._show_description()

    def _show_progress(self, progress: Progress) -> None:
        words = describe_progress(progress)
        if words:
            self.show_note("" if self.canvas.has_picture else words)
            self._progress_text = words
            self.status_message.emit(words)

    def _show_frame(self, frame: BodiesFrame) -> None:
        self.show_note("")
        if self._progress_text:
            self.status_message_ended.emit(self._progress_text)
            self._progress_text = ""
        if frame.picture is not None:
            self.frame = frame
            self.canvas.show_picture(frame.picture)
        self.film_export.add_frame(frame)
        if self._radius is None:
            self._radius = frame.figures.radius
            # A restart with the same bodies keeps the user's camera.
            if self._home_subject != self._current_subject:
                self.reset_camera()
        self.plots.peak = self._jobs.device.peak_gflops if self._jobs.device is not None else 0.0
        self.plots.simulated = self._is_simulated
        self.side_panel.title.setText("Simulated" if self._is_simulated else "Measured")
        self.plots.add(frame.figures)
        self._show_texts(frame)

    def _pick_body(self, position: QPointF) -> None:
        """Pause, pick the body at a position, and request its thread."""
        simulation, pixel = self.simulation, self.canvas.pixel_at(position)
        if pixel is None:
            return
        simulation.play(False)
        where = self.canvas.mapToGlobal(position.toPoint())
        request = PickBody(simulation.number, simulation.camera, *simulation.size, *pixel)

        def on_result(event: PickedBody | Failure) -> None:
            if isinstance(event, Failure):
                return  # the simulation was restarted
            if event.number < 0:
                self.status_message.emit("No body at this position")
                return
            params = {**simulation.params, **self._pattern.params_for_role(Role.STEPS, 0)}
            run = RunPattern(self._pattern.name, simulation.variant, params, event.arrays, sources=simulation.sources)
            self.element_selected.emit(
                PointedElement(self._forces_array, (event.number, 0), f"Body {format_count(event.number)}", run), where
            )

        self._jobs.post("pick body", request, on_result, priority=2)

    @property
    def _is_simulated(self) -> bool:
        return self._jobs.device is not None and self._jobs.device.engine == "simulator"

    @property
    def _current_subject(self) -> tuple[Any, ...]:
        return self._pattern.value(self.simulation.params, Role.SOURCE), self.files.source_path

    def reset_camera(self) -> None:
        """Move the camera to its initial position, from where all bodies are visible."""
        if self._radius is not None:
            self._home_subject = self._current_subject
            self.canvas.camera = cameras.create_home_camera(self._radius)
            self._set_camera(self.canvas.camera)

    def _set_camera(self, camera: Camera) -> None:
        self.simulation.camera = camera
        self.simulation.redraw()

    def _update_size(self) -> None:
        if self.film_export.recording or min(self.canvas.width(), self.canvas.height()) < 16:
            return
        available = self.canvas.pixels
        engine = self._jobs.device.engine if self._jobs.device is not None else ""
        max_pixels = _MAX_PIXELS.get(engine, _MAX_PIXELS_ON_CPU)
        share = min(1.0, (max_pixels / (available.width() * available.height())) ** 0.5)
        # Films need frames with even sides.
        size = (int(share * available.width()) // 2 * 2, int(share * available.height()) // 2 * 2)
        if size != self.simulation.size:
            self.simulation.size = size
            self.simulation.redraw()

    def _count_frame(self) -> None:
        now = time.perf_counter()
        self._paint_times.append(now)
        while self._paint_times[0] < now - _RATE_WINDOW_S:
            self._paint_times.popleft()
        self.simulation.on_frame_painted()

    @property
    def frames_per_second(self) -> float:
        """The recent frame rate in frames per second; 0 while paused."""
        if not self.playing or len(self._paint_times) < 2:
            return 0.0
        return (len(self._paint_times) - 1) / (self._paint_times[-1] - self._paint_times[0])

    def _show_texts(self, frame: BodiesFrame) -> None:
        figures = frame.figures
        now = time.perf_counter()
        if now - self._rate_update_time > _RATE_UPDATE_INTERVAL_S or not self.playing:
            self._rate_update_time = now
            rate = self.frames_per_second
            self._right_text = f"{format_count(figures.bodies)} bod{'ies' if figures.bodies != 1 else 'y'}" + (
                f"   {rate:.0f} frames/s" if rate else ""
            )
            if figures.interactions_per_s:
                speed = format_figure(figures.interactions_per_s / 1e9)
                suffix = f" {SIMULATION_TIME_LABEL}" if self._is_simulated else ""
                self.speed.show_text(f"{speed} G interactions/s{suffix}, {figures.executor}")
        opened = f"{self.files.source_path.name}   " if self.files.source_path is not None else ""
        steps = f"{format_count(figures.steps)} step" + ("s" if figures.steps != 1 else "")
        self.canvas.show_texts(f"{opened}t = {figures.time:.4g}   {steps}", self._right_text)

    def _show_failure(self, failure: Failure) -> None:
        self.film_export.end_film()
        self.show_note("")
        if failure.kind == "cancelled":
            self.status_message.emit("Stopped")
            return
        self.canvas.show_message("" if self.canvas.has_picture else failure.message)
        self.failed.emit(failure)

    # --- films

    def toggle_film(self) -> None:
        """End the current film, or ask for a file name and start one."""
        if self.film_export.recording:
            self.film_export.end_film()
            return
        path = self.files.choose_file_name("Record a film", _FILM_FILTER, ".mp4")
        if path is not None:
            self.film_export.begin_film(path)

    def _show_film_state(self) -> None:
        self.controls.show_recording(self.film_export.recording)
        self.controls.record.setEnabled(not self.film_export.writing)
        self.canvas.show_recording(self.film_export.status_text)
        self._update_size()

    def close_down(self) -> None:
        """Stop requesting frames, and discard a film that is not complete."""
        self.simulation.set_visible(False)
        self.film_export.close_down()

    def sizeHint(self) -> QSize:
        return QSize(640, 420)
