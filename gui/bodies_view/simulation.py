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
from gpu.messages.bodies import BodyFigures, Camera
from gpu.messages.requests import AdvanceBodies, Failure, Result
from gpu.messages.shared_arrays import SharedArray
from gui.model.jobs import Jobs
from gui.qt.later import after

CHANNEL = "bodies"
FRAME_S = 1 / 66
"""Slightly less than a screen's frame interval, so that a late frame of ours does not miss the next screen frame."""
MEASURE_S = 0.2
_MEASURING_SHARE = 1 / 6
"""Maximum share of the time that goes into measuring conserved quantities."""
IMPATIENT_S = 1.0
"""Seconds after which stopping a request ends the engine's process."""
AT_REST = 2**15
"""Number of bodies up to which a CPU measures them before the first step, which takes as long as a step."""
LONGEST_S = 0.1
"""Seconds per frame above which the frame has fewer steps, so that the camera follows the pointer."""
BEGINNING = (Role.SOURCE, Role.SIZE)
"""Roles of the parameters that determine the initial bodies."""

_numbers = itertools.count(1)


@dataclass(frozen=True)
class BodiesFrame:
    """A picture, its handle for saving, and the figures of its time step.

    A request that only measures has no picture; `moved` is whether the bodies have moved since the previous picture.
    """

    picture: Array | None
    handle: SharedArray | None
    figures: BodyFigures
    moved: bool


class LiveSimulation(QObject):
    """Play a simulation as fast as its frames are shown.

    The next frame is requested when the previous one has arrived and the one before that has been painted. The engine
    thus works while the window paints, the newest frame is shown, and requests do not pile up.

    Parameters
    ----------
    pattern : Pattern
    jobs : Jobs
        The engine's queue.
    """

    arrived = pyqtSignal(object)
    """BodiesFrame"""
    progressed = pyqtSignal(object)
    """Progress"""
    failed = pyqtSignal(object)
    """Failure, which pauses the simulation."""
    begun = pyqtSignal()
    """The simulation was restarted; the next frame is its first."""
    playing_changed = pyqtSignal(bool)

    def __init__(self, pattern: Pattern, jobs: Jobs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.pattern = pattern
        self._jobs = jobs
        self.number = next(_numbers)
        self.variant = ""
        self.params: dict[str, Any] = {}
        self.sources: Mapping[str, str] = {}
        """The edited kernel sources that have passed a run."""
        self.bodies: SharedArray | None = None
        """The initial bodies; None generates them from the parameters."""
        self._values: Array | None = None
        self.camera = Camera()
        self.size = (0, 0)
        self.color = "speed"
        self.exposure = 1.0
        self.steps_a_frame = 1
        self.whole = False
        """Whether a frame has all of its steps, however long they take."""
        self.playing = False
        self.awake = False
        """Whether frames are visible; without, nothing is requested."""
        self.held = False
        """Whether a recorder that needs every frame is not ready for the next."""
        self._single = False
        self._stale = True
        self._unseen = False
        self._unmeasured = True
        self._failed = False
        self._due = 0.0
        self._measured = float("-inf")
        self._cost = self._step_s = 0.0
        self._pace = after(0, self.go_on, self)
        self._pace.setTimerType(Qt.TimerType.PreciseTimer)
        jobs.ready.connect(self._on_engine_ready)

    # --- user actions

    def begin(self, bodies: SharedArray | None = None) -> None:
        """Restart with `bodies`, or with bodies generated from the parameters."""
        self.bodies, self._values = bodies, None if bodies is None else bodies.open()
        self.number = next(_numbers)
        self._stale = self._unmeasured = True
        self._single = self._failed = False
        self._cost = self._step_s = 0.0
        self.begun.emit()
        self.go_on()

    def play(self, on: bool) -> None:
        """Play or pause."""
        self._failed &= not on
        if on != self.playing:
            self.playing = on
            self.playing_changed.emit(on)
        self.go_on()

    def step(self) -> None:
        """Do one step, and pause."""
        self.play(False)
        self._single, self._failed = True, False
        self.go_on()

    def begins_anew(self, before: Mapping[str, Any]) -> bool:
        """Return whether the parameters generate other bodies than the parameters `before`."""
        return any(self._changed(before, role) for role in BEGINNING)

    def _changed(self, before: Mapping[str, Any], role: Role) -> bool:
        value = self.pattern.value
        return bool(value(before, role) != value(self.params, role))

    def show_params(self, params: Mapping[str, Any]) -> None:
        """Set the parameters; those that generate bodies restart the simulation, others apply from the next step."""
        before, self.params = self.params, dict(params)
        if not before or self.begins_anew(before):
            self.begin()
        elif self._changed(before, Role.SOFTENING):
            self._unmeasured = True
            self.go_on()

    def redraw(self) -> None:
        """Redraw the current bodies: the camera or the size has changed."""
        # After a failure only the user retries: the same request might end the next process as well.
        self._stale |= not self._failed
        self.go_on()

    def wake(self, awake: bool) -> None:
        """Set whether frames are visible."""
        self.awake = awake
        self._unseen = False
        self.go_on()

    def seen(self) -> None:
        """Report that the newest frame has been painted."""
        self._unseen = False
        self.go_on()

    def hold(self, held: bool) -> None:
        """Set whether frames have to wait for a recorder that needs every frame."""
        self.held = held
        self.go_on()

    def stop(self) -> bool:
        """Pause, and end a request that has been running for long; return whether there was anything to stop."""
        was_active = self.playing or self._jobs.waits(CHANNEL)
        age = self._jobs.age(CHANNEL)
        self.playing, was_playing = False, self.playing
        self._single = self._stale = False
        if was_playing:
            self.playing_changed.emit(False)
        self._jobs.drop(CHANNEL)
        if age > IMPATIENT_S:
            # The simulation ends with its process; later events with the old number are ignored.
            self.number = next(_numbers)
            self._jobs.stop()
        return was_active

    # --- requests

    def go_on(self) -> None:
        """Request the next frame if one is needed and nothing prevents it."""
        if not self.awake or self._unseen or self.held or 0 in self.size or self._jobs.waits(CHANNEL):
            return
        moving = self.playing or self._single
        measuring = self._unmeasured and not moving and not self._stale and self._measures_at_rest
        if not (moving or self._stale or measuring):
            return
        now = time.perf_counter()
        wait = self._due - now
        if wait > 1e-3:
            if not self._pace.isActive():
                self._pace.start(max(1, round(1e3 * wait)))
            return
        # A late frame does not delay all later ones.
        self._due = max(self._due, now - FRAME_S) + FRAME_S
        self._request(now, (1 if self._single else self._steps) if moving else 0, measuring)

    @property
    def _steps(self) -> int:
        """The number of steps for the next frame."""
        if self.whole or not self._step_s:
            return self.steps_a_frame
        return max(1, min(self.steps_a_frame, int(LONGEST_S / self._step_s)))

    @property
    def _measures_at_rest(self) -> bool:
        device = self._jobs.device
        count = self.bodies.shape[0] if self.bodies is not None else self.pattern.value(self.params, Role.SIZE) or 0
        return count <= AT_REST or (device is not None and device.engine == "cuda")

    def _request(self, now: float, steps: int, only_measure: bool) -> None:
        interval = max(MEASURE_S, self._cost / _MEASURING_SHARE)
        measure = only_measure or (steps > 0 and (self._single or now - self._measured >= interval))
        if measure:
            self._measured = now
            self._unmeasured = False
        if not only_measure:
            self._single = self._stale = False
        width, height = (0, 0) if only_measure else self.size
        number = self.number
        request = AdvanceBodies(
            number, self.variant, dict(self.params), self.bodies, steps, self.camera, width, height, self.color,
            self.exposure, measure, sources=self.sources,
        )  # fmt: skip
        self._jobs.post(
            CHANNEL, request, lambda event: self._on_result(number, request, event), self.progressed.emit, priority=1
        )

    def _on_result(self, number: int, request: AdvanceBodies, event: Result | Failure) -> None:
        if number != self.number:
            self.go_on()
            return
        if isinstance(event, Failure):
            self.play(False)
            self._single = self._stale = self._unmeasured = False
            self._failed = event.kind != "input"
            if self._failed:
                # The engine has dropped the simulation, and would treat the same number as its restart.
                self.number = next(_numbers)
            self.failed.emit(event)
            return
        self._failed = False
        assert event.bodies is not None
        self._update_costs(request, event.bodies)
        # Requested before this frame is shown, so that the engine works while the window paints.
        self.go_on()
        handle = event.arrays.get("picture")
        if handle is not None:
            self._unseen = True
        self.arrived.emit(
            BodiesFrame(None if handle is None else handle.open(), handle, event.bodies, request.steps > 0)
        )

    def _update_costs(self, request: AdvanceBodies, figures: BodyFigures) -> None:
        """Update the measured cost of a step and of measuring."""
        if not request.steps:
            return  # the first measurement may include compiling
        self._step_s = figures.kernel_ms / request.steps / 1e3
        if request.measure:
            self._cost = figures.measuring_ms / 1e3

    def _on_engine_ready(self) -> None:
        """Restart: the new engine process has no simulation."""
        self._unseen = False
        bodies = self.bodies
        if self._values is not None and bodies is not None and Path(bodies.path).parent != Path(self._jobs.folder.path):
            bodies = self._jobs.folder.adopt(self._jobs.folder.put(self._values))
        failed, self.awake, awake = self._failed, False, self.awake
        self.begin(bodies)
        if failed:
            self._stale = self._unmeasured = False
            self._failed = True
        self.wake(awake)
