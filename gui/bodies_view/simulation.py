"""A simulation of bodies in the engine's process: one request at a time, each with what is chosen at that moment."""

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
"""A little less than a screen's frames are apart, so that one of ours that comes late costs none of them."""
MEASURE_S = 0.2
_MEASURING_SHARE = 1 / 6
"""Of the time, at most so much goes into measuring what is conserved."""
IMPATIENT_S = 1.0
"""Seconds after which a request is not waited for that is to be stopped."""
AT_REST = 2**15
"""Up to so many bodies are measured on a CPU before the first step is asked for: it takes as long as a step."""
LONGEST_S = 0.1
"""A frame's steps are fewer where they would take longer: the camera is to follow the pointer."""
BEGINNING = (Role.SOURCE, Role.SIZE)
"""What says which bodies it begins with."""

_numbers = itertools.count(1)


@dataclass(frozen=True)
class BodiesFrame:
    """A picture, its handle for a file, and the figures of that moment.

    A request that only measures has no picture; `moved` says whether the bodies have since the picture before.
    """

    picture: Array | None
    handle: SharedArray | None
    figures: BodyFigures
    moved: bool


class LiveSimulation(QObject):
    """Plays a simulation as fast as its frames are shown.

    The next frame is asked for when the one before has arrived and the one before that has been painted: the engine
    works while the window paints, the newest frame is what is seen, and nothing piles up.

    Parameters
    ----------
    pattern : Pattern
    jobs : Jobs
        The engine's queue.
    """

    arrived = pyqtSignal(object)
    """Frame"""
    progressed = pyqtSignal(object)
    """Progress"""
    failed = pyqtSignal(object)
    """Failure: it stands still."""
    begun = pyqtSignal()
    """It is at its beginning again; the next frame is its first."""
    playing_changed = pyqtSignal(bool)

    def __init__(self, pattern: Pattern, jobs: Jobs, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.pattern = pattern
        self._jobs = jobs
        self.number = next(_numbers)
        self.variant = ""
        self.params: dict[str, Any] = {}
        self.sources: Mapping[str, str] = {}
        """Edited kernel texts that have passed a run."""
        self.bodies: SharedArray | None = None
        """What it begins with; None makes them from the parameters."""
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
        """Whether frames are looked at; nothing is asked for while they are not."""
        self.held = False
        """Whether somebody who takes every frame is not ready for the next."""
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
        jobs.ready.connect(self._lose)

    # --- what a user does

    def begin(self, bodies: SharedArray | None = None) -> None:
        """Go back to the beginning: to `bodies`, or to what the parameters make."""
        self.bodies, self._values = bodies, None if bodies is None else bodies.open()
        self.number = next(_numbers)
        self._stale = self._unmeasured = True
        self._single = self._failed = False
        self._cost = self._step_s = 0.0
        self.begun.emit()
        self.go_on()

    def play(self, on: bool) -> None:
        """Go on, or stand still."""
        self._failed &= not on
        if on != self.playing:
            self.playing = on
            self.playing_changed.emit(on)
        self.go_on()

    def step(self) -> None:
        """Do one step, and stand still."""
        self.play(False)
        self._single, self._failed = True, False
        self.go_on()

    def begins_anew(self, before: Mapping[str, Any]) -> bool:
        """Whether other bodies are made now than with the parameters of before."""
        return any(self._changed(before, role) for role in BEGINNING)

    def _changed(self, before: Mapping[str, Any], role: Role) -> bool:
        value = self.pattern.value
        return bool(value(before, role) != value(self.params, role))

    def show_params(self, params: Mapping[str, Any]) -> None:
        """Take other parameters: those that make bodies begin anew, the others count from the next step on."""
        before, self.params = self.params, dict(params)
        if not before or self.begins_anew(before):
            self.begin()
        elif self._changed(before, Role.SOFTENING):
            self._unmeasured = True
            self.go_on()

    def redraw(self) -> None:
        """Draw anew what is there: the camera or the size has changed."""
        # What has ended a process may well end the next: only the user asks for it again.
        self._stale |= not self._failed
        self.go_on()

    def wake(self, awake: bool) -> None:
        """Say whether frames are looked at."""
        self.awake = awake
        self._unseen = False
        self.go_on()

    def seen(self) -> None:
        """Say that the newest frame has been painted."""
        self._unseen = False
        self.go_on()

    def hold(self, held: bool) -> None:
        """Say whether frames have to wait for somebody who takes each of them."""
        self.held = held
        self.go_on()

    def stop(self) -> bool:
        """Stand still; where the engine has been at a request for long, end it. Return whether there was anything."""
        was = self.playing or self._jobs.waits(CHANNEL)
        age = self._jobs.age(CHANNEL)
        self.playing, playing = False, self.playing
        self._single = self._stale = False
        if playing:
            self.playing_changed.emit(False)
        self._jobs.drop(CHANNEL)
        if age > IMPATIENT_S:
            # It ends with its process: what is still said of it is nothing new.
            self.number = next(_numbers)
            self._jobs.stop()
        return was

    # --- requests

    def go_on(self) -> None:
        """Ask for the next frame, if there is one to ask for and nothing that it has to wait for."""
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
        # What came late does not put off all that follow.
        self._due = max(self._due, now - FRAME_S) + FRAME_S
        self._ask(now, (1 if self._single else self._steps) if moving else 0, measuring)

    @property
    def _steps(self) -> int:
        """Return how many steps the next frame has."""
        if self.whole or not self._step_s:
            return self.steps_a_frame
        return max(1, min(self.steps_a_frame, int(LONGEST_S / self._step_s)))

    @property
    def _measures_at_rest(self) -> bool:
        device = self._jobs.device
        few = self.bodies.shape[0] if self.bodies is not None else self.pattern.value(self.params, Role.SIZE) or 0
        return few <= AT_REST or (device is not None and device.engine == "cuda")

    def _ask(self, now: float, steps: int, only_measure: bool) -> None:
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
            CHANNEL, request, lambda event: self._take(number, request, event), self.progressed.emit, priority=1
        )

    def _take(self, number: int, request: AdvanceBodies, event: Result | Failure) -> None:
        if number != self.number:
            self.go_on()
            return
        if isinstance(event, Failure):
            self.play(False)
            self._single = self._stale = self._unmeasured = False
            self._failed = event.kind != "input"
            if self._failed:
                # The engine has dropped it, and would take the same number for its beginning.
                self.number = next(_numbers)
            self.failed.emit(event)
            return
        self._failed = False
        assert event.bodies is not None
        self._learn(request, event.bodies)
        # Asked for before this one is shown, so that the engine works while the window paints.
        self.go_on()
        handle = event.arrays.get("picture")
        if handle is not None:
            self._unseen = True
        self.arrived.emit(
            BodiesFrame(None if handle is None else handle.open(), handle, event.bodies, request.steps > 0)
        )

    def _learn(self, request: AdvanceBodies, figures: BodyFigures) -> None:
        """Learn what a step costs, and what measuring does."""
        if not request.steps:
            return  # the first measurement may have had to compile
        self._step_s = figures.kernel_ms / request.steps / 1e3
        if request.measure:
            self._cost = figures.measuring_ms / 1e3

    def _lose(self) -> None:
        """Begin anew: another process has taken over, which knows nothing of this simulation."""
        self._unseen = False
        given = self.bodies
        if self._values is not None and given is not None and Path(given.path).parent != Path(self._jobs.folder.path):
            given = self._jobs.folder.adopt(self._jobs.folder.put(self._values))
        failed, self.awake, awake = self._failed, False, self.awake
        self.begin(given)
        if failed:
            self._stale = self._unmeasured = False
            self._failed = True
        self.wake(awake)
