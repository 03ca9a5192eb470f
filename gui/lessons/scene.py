"""The Step tab of a lesson, which plays a step's scene from its moment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PyQt6.QtCore import pyqtSignal

from gpu.messages.lessons import ShownScene
from gui.lessons.texts import LessonTexts
from gui.model.jobs import Jobs
from gui.model.lessons import PlayedStep
from gui.painting.theme import look
from gui.step_view.recording.models import Models
from gui.step_view.recording.steppable import Chosen, ReadRecording, Steppable, StepRequest
from gui.step_view.tab import StepTab
from gui.step_view.time.snapshots import Snapshot

_SUBJECT = "lesson"
_RIGHT = 340
"""Width of the source in pixels at the normal text size, the same with and without counts."""


def _nothing(chosen: Chosen) -> StepRequest:
    raise AssertionError("a lesson's tab plays only scenes")


def shown_scene(played: PlayedStep) -> Steppable:
    """Return a step's scene as a subject of the Step tab."""
    scene, path = played.scene, Path(played.path)
    return Steppable(
        subject=_SUBJECT,
        name=f"lesson-{Path(scene.file).stem}",
        title=scene.title,
        file=scene.file,
        kernel=scene.kernel,
        # The file is trusted: the engine's own process has just written it.
        request=lambda chosen: ReadRecording(path, Path.read_bytes),
    )


class LessonStepTab(StepTab):
    """Play a lesson's scene, and emit signals for clicked elements and threads.

    Parameters
    ----------
    jobs : callable
        As in `StepTab`.
    """

    placed = pyqtSignal()
    """The scene is shown at its moment."""
    element_clicked = pyqtSignal(str, int, int)
    """An array's name, its block or -1, and an element."""
    lane_clicked = pyqtSignal(int, int)
    """A block and a thread."""

    def __init__(self, jobs: Callable[[], Jobs]) -> None:
        self._texts = LessonTexts()
        self._moment = 0
        self._secret = False
        self._turned = False
        self._handle: object = None
        super().__init__(Steppable(_SUBJECT, "lesson", "", "", "", _nothing), self._texts, jobs)
        self._texts.setParent(self)
        # Another schedule, size or variant would need another recording than the question's.
        for name in ("Two schedules", "Side by side"):
            self.panes.kinds.buttons[name].hide()
        self.panes.memory.element_clicked.connect(self._emit_element)
        self.panes.flow.cell_clicked.connect(self._emit_cell)
        self.panes.flow.future_clicked.connect(self._emit_cell)
        self.panes.flow.thread_clicked.connect(self.lane_clicked)
        self.panes.lanes.grid.thread_clicked.connect(self.lane_clicked)
        self.scene: ShownScene | None = None

    def play_scene(self, played: PlayedStep) -> None:
        """Play a scene from its moment."""
        asked = played.scene.asked
        self._moment, self._handle, self.scene = played.scene.moment, played.handle, played.scene
        self._secret = asked is not None
        if asked is not None and asked.form == "cells":
            self._turned = self._turned or self.panes.kinds.chosen != "Arrays"
            self.turn_to_picture("Arrays")
        elif self._turned:
            self._turned, self._kind_chosen = False, None  # the default picture of the recording
        self.panes.memory.show_picked(())
        self.stepped = self.settings.stepped = shown_scene(played)
        self._file = self.stepped.file
        self.record()

    def turn_to_picture(self, name: str) -> None:
        """Show a picture by its name."""
        if self.panes.kinds.chosen != name:
            self.panes.kinds.choose(name)

    def reveal(self) -> None:
        """Show counts and findings, which are hidden until the question is answered."""
        self._secret = False
        self.panes.keep_counts_back(False)
        if self.models is not None:
            self._show_findings(self.models)

    def _show_findings(self, models: Models) -> None:
        """Show the recording's findings, unless they would reveal the answer."""
        recording = models.recording
        findings = [] if self._secret else [(moment, finding.message) for moment, finding in recording.findings]
        names = [launch.trace.kernel for launch in recording.launches]
        self.panes.timeline.open(models.segments, findings, names, models.phases.stretches)
        self.panes.timeline.show_moment(self.player.moment)
        self.panes.verdict.clear()
        self.panes.flow.show_races({} if self._secret else models.racing_cells)
        if not self._secret:
            self.panes.verdict.show_recording(recording)
        self._mark_findings()

    def _mark_findings(self) -> None:
        if self._secret:
            self.source.set_markers({})
        else:
            super()._mark_findings()

    def _turn_to_picture(self) -> None:
        super()._turn_to_picture()
        # The totals would reveal the answer.
        self.panes.keep_counts_back(self._secret)
        self.panes.right.setMinimumWidth(look().px(_RIGHT))

    def snapshot(self, moment: int) -> Snapshot:
        """Return the values of a moment; if no thread is followed, those of the block in question."""
        assert self.snapshots is not None
        asked = self.scene.asked if self.scene is not None else None
        pinned = asked is not None and (asked.form == "threads" or asked.block > 0)
        return self.snapshots(moment, self.followed or ((asked.block, -1) if asked is not None and pinned else None))

    def go(self, moment: int) -> None:
        """Go to a moment, at most to the end."""
        self._jump(min(moment, self.player.end))

    def record(self) -> None:
        if self.scene is not None:
            super().record()

    def _take(self, request: StepRequest, models: Models) -> None:
        self._texts.take(models.recording.texts)
        self.models = None  # so that no picture mixes the old and the new recording
        self.player.open(0, ())
        super()._take(request, models)
        self.source.show_source(self.stepped.file, self.stepped.kernel)
        self._show_findings(models)
        self.player.go(min(self._moment, self.player.end))
        self._show_moment(self.player.moment)
        self.placed.emit()

    def _emit_element(self, number: int, element: int) -> None:
        if self.models is not None:
            launch, _ = self.models.recording.at(max(self.player.moment - 1, 0))
            array = launch.trace.arrays[number]
            self.element_clicked.emit(array.name, -1 if array.block is None else array.block, element)

    def _emit_cell(self, row: int, cell: int) -> None:
        if self.models is None:
            return
        row_cells = self.models.layout.dataflow.rows[row]
        storage, place = row_cells.storage, int(row_cells.cells[cell])
        block = place // storage.section if storage.space == "shared" else -1
        self.element_clicked.emit(storage.name, block, place % storage.section)
