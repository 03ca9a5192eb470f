"""A live simulation of bodies in the engine's process: one request at a time, with the current settings."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PyQt6.QtCore import QObject, Qt, pyqtSignal

from gpu.declaration.pattern import Array, Pattern
from gpu.declaration.roles import Role
from gpu.messages.bodies import AdvanceBodies, BodiesResult, BodyFigures, Camera
from gpu.messages.events import Failure
from gpu.messages.shared_arrays import SharedArray
from gui.model.request_queue import RequestQueue
from gui.qt.timers import create_single_shot_timer

CHANNEL = "bodies"
FRAME_S = 1 / 66
"""Slightly less than a screen's frame interval, so that a late frame of ours does not miss the next screen frame."""
MEASURE_INTERVAL_S = 0.2
_MEASURING_SHARE = 1 / 6
"""Maximum share of the time that goes into measuring conserved quantities."""
CANCEL_AFTER_S = 1.0
"""Seconds after which stopping a request ends the engine's process."""
MAX_BODIES_MEASURED_AT_START = 2**15
"""Number of bodies up to which a CPU measures them before the first step, which takes as long as a step."""
MAX_FRAME_S = 0.1
"""Seconds per frame above which the frame has fewer steps, so that the camera follows the pointer."""
INITIAL_STATE_ROLES = (Role.SOURCE, Role.SIZE)
"""Roles of the parameters that determine the initial bodies."""

_simulation_numbers = itertools.count(1)


@dataclass(frozen=True)
class BodiesFrame:
    """A picture, its handle for saving, and the figures of its time step.

    A request that only measures has no picture; `bodies_moved` is whether the bodies moved since the previous picture.
    """

    picture: Array | None
    handle: SharedArray | None
    figures: BodyFigures
    bodies_moved: bool


class LiveSimulation(QObject):
    """Play a simulation as fast as its frames are shown.

    The next frame is requested when the previous one has arrived and the one before that has been painted. The engine
    thus works while the window paints, the newest frame is shown, and requests do not pile up.

    Parameters
    ----------
    jobs : RequestQueue
        The engine's queue.
    """

    frame_arrived = pyqtSignal(object)
    """BodiesFrame"""
    progressed = pyqtSignal(object)
    """Progress"""
    failed = pyqtSignal(object)
    """Failure, which pauses the simulation."""
    restarted = pyqtSignal()
    """The simulation was restarted; the next frame is its first."""
    playing_changed = pyqtSignal(bool)

    def __init__(self, pattern: Pattern, jobs: RequestQueue, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.pattern = pattern
        self._jobs = jobs
        self.number = next(_simulation_numbers)
        self.variant = ""
        self.params: dict[str, Any] = {}
        self.sources: Mapping[str, str] = {}
        """The edited kernel sources that have passed a run."""
        self.bodies: SharedArray | None = None
        """The initial bodies; None generates them from the parameters."""
        self._body_values: Array | None = None
        self.camera = Camera()
        self.size = (0, 0)
        self.color = "speed"
        self.exposure = 1.0
        self.steps_per_frame = 1
        self.keeps_all_steps = False
        """Whether a frame has all of its steps, however long they take."""
        self.playing = False
        self.is_visible = False
        """Whether frames are visible; without, nothing is requested."""
        self.waits_for_recorder = False
        """Whether a recorder that needs every frame is not ready for the next."""
        self._single_step = False
        self._needs_redraw = True
        self._frame_unpainted = False
        self._needs_measurement = True
        self._failed = False
        self._next_frame_time = 0.0
        self._last_measured = float("-inf")
        self._measuring_s = self._step_s = 0.0
        self._frame_timer = create_single_shot_timer(0, self.request_next_frame, self)
        self._frame_timer.setTimerType(Qt.TimerType.PreciseTimer)
        jobs.ready.connect(self._on_engine_ready)

    # --- user actions

    def restart(self, bodies: SharedArray | None = None) -> None:
        """Restart with `bodies`, or with bodies generated from the parameters."""
        self.bodies, self._body_values = bodies, None if bodies is None else bodies.open()
        self.number = next(_simulation_numbers)
        self._needs_redraw = self._needs_measurement = True
        self._single_step = self._failed = False
        self._measuring_s = self._step_s = 0.0
        self.restarted.emit()
        self.request_next_frame()

    def play(self, on: bool) -> None:
        """Play or pause."""
        self._failed &= not on
        if on != self.playing:
            self.playing = on
            self.playing_changed.emit(on)
        self.request_next_frame()

    def step(self) -> None:
        """Do one step, and pause."""
        self.play(False)
        self._single_step, self._failed = True, False
        self.request_next_frame()

    def needs_restart(self, before: Mapping[str, Any]) -> bool:
        """Return whether the parameters generate other bodies than the parameters `before`."""
        return any(self._has_parameter_changed(before, role) for role in INITIAL_STATE_ROLES)

    def _has_parameter_changed(self, before: Mapping[str, Any], role: Role) -> bool:
        value = self.pattern.value
        return bool(value(before, role) != value(self.params, role))

    def set_params(self, params: Mapping[str, Any]) -> None:
        """Set the parameters; those that generate bodies restart the simulation, others apply from the next step."""
        before, self.params = self.params, dict(params)
        if not before or self.needs_restart(before):
            self.restart()
        elif self._has_parameter_changed(before, Role.SOFTENING):
            self._needs_measurement = True
            self.request_next_frame()

    def redraw(self) -> None:
        """Redraw the current bodies: the camera or the size has changed."""
        # After a failure only the user retries: the same request might end the next process as well.
        self._needs_redraw |= not self._failed
        self.request_next_frame()

    def set_visible(self, is_visible: bool) -> None:
        """Set whether frames are visible."""
        self.is_visible = is_visible
        self._frame_unpainted = False
        self.request_next_frame()

    def on_frame_painted(self) -> None:
        """Report that the newest frame has been painted."""
        self._frame_unpainted = False
        self.request_next_frame()

    def set_waits_for_recorder(self, waits_for_recorder: bool) -> None:
        """Set whether frames have to wait for a recorder that needs every frame."""
        self.waits_for_recorder = waits_for_recorder
        self.request_next_frame()

    def stop(self) -> bool:
        """Pause, and end a request that has been running for long; return whether there was anything to stop."""
        was_active = self.playing or self._jobs.has_request(CHANNEL)
        age = self._jobs.age(CHANNEL)
        self.playing, was_playing = False, self.playing
        self._single_step = self._needs_redraw = False
        if was_playing:
            self.playing_changed.emit(False)
        self._jobs.drop(CHANNEL)
        if age > CANCEL_AFTER_S:
            # The simulation ends with its process; later events with the old number are ignored.
            self.number = next(_simulation_numbers)
            self._jobs.stop()
        return was_active

    # --- requests

    def request_next_frame(self) -> None:
        """Request the next frame if one is needed and nothing prevents it."""
        if (
            not self.is_visible
            or self._frame_unpainted
            or self.waits_for_recorder
            or 0 in self.size
            or self._jobs.has_request(CHANNEL)
        ):
            return
        moving = self.playing or self._single_step
        measuring = (
            self._needs_measurement and not moving and not self._needs_redraw and self._can_measure_initial_state
        )
        if not (moving or self._needs_redraw or measuring):
            return
        now = time.perf_counter()
        wait = self._next_frame_time - now
        if wait > 1e-3:
            if not self._frame_timer.isActive():
                self._frame_timer.start(max(1, round(1e3 * wait)))
            return
        # A late frame does not delay all later ones.
        self._next_frame_time = max(self._next_frame_time, now - FRAME_S) + FRAME_S
        self._post_request(now, (1 if self._single_step else self._next_step_count) if moving else 0, measuring)

    @property
    def _next_step_count(self) -> int:
        """The number of steps for the next frame."""
        if self.keeps_all_steps or not self._step_s:
            return self.steps_per_frame
        return max(1, min(self.steps_per_frame, int(MAX_FRAME_S / self._step_s)))

    @property
    def _can_measure_initial_state(self) -> bool:
        device = self._jobs.device
        count = self.bodies.shape[0] if self.bodies is not None else self.pattern.value(self.params, Role.SIZE) or 0
        return count <= MAX_BODIES_MEASURED_AT_START or (device is not None and device.engine == "cuda")

    def _post_request(self, now: float, steps: int, only_measure: bool) -> None:
        interval = max(MEASURE_INTERVAL_S, self._measuring_s / _MEASURING_SHARE)
        measure = only_measure or (steps > 0 and (self._single_step or now - self._last_measured >= interval))
        if measure:
            self._last_measured = now
            self._needs_measurement = False
        if not only_measure:
            self._single_step = self._needs_redraw = False
        width, height = (0, 0) if only_measure else self.size
        number = self.number
        request = AdvanceBodies(
            number, self.variant, dict(self.params), self.bodies, steps, self.camera, width, height, self.color,
            self.exposure, measure, sources=self.sources,
        )  # fmt: skip
        self._jobs.post(
            CHANNEL, request, lambda event: self._on_result(number, request, event), self.progressed.emit, priority=1
        )

    def _on_result(self, number: int, request: AdvanceBodies, event: BodiesResult | Failure) -> None:
        if number != self.number:
            self.request_next_frame()
            return
        if isinstance(event, Failure):
            self.play(False)
            self._single_step = self._needs_redraw = self._needs_measurement = False
            self._failed = event.kind != "input"
            if self._failed:
                # The engine has dropped the simulation, and would treat the same number as its restart.
                self.number = next(_simulation_numbers)
            self.failed.emit(event)
            return
        self._failed = False
        self._update_costs(request, event.figures)
        # Requested before this frame is shown, so that the engine works while the window paints.
        self.request_next_frame()
        handle = event.arrays.get("picture")
        if handle is not None:
            self._frame_unpainted = True
        self.frame_arrived.emit(
            BodiesFrame(None if handle is None else handle.open(), handle, event.figures, request.steps > 0)
        )

    def _update_costs(self, request: AdvanceBodies, figures: BodyFigures) -> None:
        """Update the measured cost of a step and of measuring."""
        if not request.steps:
            return  # the first measurement may include compiling
        self._step_s = figures.kernel_ms / request.steps / 1e3
        if request.measure:
            self._measuring_s = figures.measuring_ms / 1e3

    def _on_engine_ready(self) -> None:
        """Restart: the new engine process has no simulation."""
        self._frame_unpainted = False
        bodies = self.bodies
        if (
            self._body_values is not None
            and bodies is not None
            and Path(bodies.path).parent != Path(self._jobs.folder.path)
        ):
            bodies = self._jobs.folder.adopt(self._jobs.folder.put(self._body_values))
        failed, self.is_visible, awake = self._failed, False, self.is_visible
        self.restart(bodies)
        if failed:
            self._needs_redraw = self._needs_measurement = False
            self._failed = True
        self.set_visible(awake)
