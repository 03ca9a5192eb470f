"""The Step tab of a lesson: what a step shows is played from the moment that it is about."""

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
"""Pixels of the source, at the normal size of text: as wide without counts as with them."""


def _nothing(chosen: Chosen) -> StepRequest:
    raise AssertionError("a lesson's tab is told what to play")


def shown_scene(played: PlayedStep) -> Steppable:
    """Return what a step shows as what is stepped through."""
    scene, path = played.scene, Path(played.path)
    return Steppable(
        subject=_SUBJECT,
        name=f"lesson-{Path(scene.file).stem}",
        title=scene.title,
        file=scene.file,
        kernel=scene.kernel,
        # The engine's own process has just written it.
        request=lambda chosen: ReadRecording(path, Path.read_bytes),
    )


class LessonStepTab(StepTab):
    """Plays what a lesson shows, and tells which elements and threads are clicked.

    Parameters
    ----------
    jobs : callable
        As of a StepTab.
    """

    placed = pyqtSignal()
    """What was to be played stands at its moment."""
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
        # Another order, size or variant would be another recording than the one that is asked about.
        for name in ("Schedules", "Side by side"):
            self.panes.kinds.buttons[name].hide()
        self.panes.memory.element_clicked.connect(self._tell_element)
        self.panes.flow.cell_clicked.connect(self._tell_cell)
        self.panes.flow.future_clicked.connect(self._tell_cell)
        self.panes.flow.thread_clicked.connect(self.lane_clicked)
        self.panes.lanes.grid.thread_clicked.connect(self.lane_clicked)
        self.scene: ShownScene | None = None

    def play_scene(self, played: PlayedStep) -> None:
        """Play a recording from the moment that it is about."""
        asked = played.scene.asked
        self._moment, self._handle, self.scene = played.scene.moment, played.handle, played.scene
        self._secret = asked is not None
        if asked is not None and asked.form == "cells":
            self._turned = self._turned or self.panes.kinds.chosen != "Arrays"
            self.turn_to_picture("Arrays")
        elif self._turned:
            self._turned, self._kind_chosen = False, None  # the picture that goes with what is recorded
        self.panes.memory.show_picked(())
        self.stepped = self.settings.stepped = shown_scene(played)
        self._file = self.stepped.file
        self.record()

    def turn_to_picture(self, name: str) -> None:
        """Show a picture by its name."""
        if self.panes.kinds.chosen != name:
            self.panes.kinds.choose(name)

    def reveal(self) -> None:
        """Show all that is counted and found: the question has been answered."""
        self._secret = False
        self.panes.keep_counts_back(False)
        if self.models is not None:
            self._show_findings(self.models)

    def _show_findings(self, models: Models) -> None:
        """Show what was found in the recording, unless that is what is asked."""
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
        # What comes of it in all would say what is asked.
        self.panes.keep_counts_back(self._secret)
        self.panes.right.setMinimumWidth(look().px(_RIGHT))

    def snapshot(self, moment: int) -> Snapshot:
        """Return what there is beside the pictures: of the block that is asked about, where no thread is followed."""
        assert self.snapshots is not None
        asked = self.scene.asked if self.scene is not None else None
        pinned = asked is not None and (asked.form == "threads" or asked.block > 0)
        return self.snapshots(moment, self.followed or ((asked.block, -1) if asked is not None and pinned else None))

    def go(self, moment: int) -> None:
        """Go to a moment; behind the end, to the end."""
        self._jump(min(moment, self.player.end))

    def record(self) -> None:
        if self.scene is not None:
            super().record()

    def _take(self, request: StepRequest, models: Models) -> None:
        self._texts.take(models.recording.texts)
        self.models = None  # no picture shows a moment of before in what is there now
        self.player.open(0, ())
        super()._take(request, models)
        self.source.show_source(self.stepped.file, self.stepped.kernel)
        self._show_findings(models)
        self.player.go(min(self._moment, self.player.end))
        self._show_moment(self.player.moment)
        self.placed.emit()

    def _tell_element(self, number: int, element: int) -> None:
        if self.models is not None:
            launch, _ = self.models.recording.at(max(self.player.moment - 1, 0))
            array = launch.trace.arrays[number]
            self.element_clicked.emit(array.name, -1 if array.block is None else array.block, element)

    def _tell_cell(self, row: int, cell: int) -> None:
        if self.models is None:
            return
        found = self.models.layout.dataflow.rows[row]
        storage, place = found.storage, int(found.cells[cell])
        block = place // storage.section if storage.space == "shared" else -1
        self.element_clicked.emit(storage.name, block, place % storage.section)
