"""The Step tab of a lesson, which plays a step's scene from its moment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PyQt6.QtCore import pyqtSignal

from gpu.messages.lessons import SceneRecording, StepScene
from gui.editor.sources import TextSources
from gui.model.request_queue import RequestQueue
from gui.painting.theme import look
from gui.step_view.recording.finding_pictures import build_finding_pictures
from gui.step_view.recording.models import RecordingModels
from gui.step_view.recording.steppable import ReadRecording, Steppable, StepRequest, StepSettings
from gui.step_view.tab import StepTab
from gui.step_view.time.snapshots import Snapshot

_SUBJECT = "lesson"
_SOURCE_WIDTH = 340
"""Width of the source in pixels at the normal text size, the same with and without counts."""


def _reject_request(chosen: StepSettings) -> StepRequest:
    raise AssertionError("a lesson's tab plays only scenes")


def create_steppable(playable: SceneRecording) -> Steppable:
    """Return a step's scene as a subject of the Step tab."""
    scene, path = playable.scene, Path(playable.path)
    return Steppable(
        subject=_SUBJECT,
        name=f"lesson-{Path(scene.file).stem}",
        title=scene.title,
        file=scene.file,
        kernel=scene.kernel,
        # The file is trusted: the engine's own process has just written it.
        make_request=lambda chosen: ReadRecording(path, Path.read_bytes),
    )


class LessonStepTab(StepTab):
    """Play a lesson's scene, and emit signals for clicked elements and threads.

    Parameters
    ----------
    jobs : callable
        As in `StepTab`.
    """

    scene_shown = pyqtSignal()
    """The scene is shown at its moment."""
    element_clicked = pyqtSignal(str, int, int)
    """An array's name, its block or -1, and an element."""
    lane_clicked = pyqtSignal(int, int)
    """A block and a thread."""

    def __init__(self, jobs: Callable[[], RequestQueue]) -> None:
        self._texts = TextSources()
        self._moment = 0
        self._hides_answer = False
        self._picture_changed = False
        self._recording_handle: object = None
        super().__init__(Steppable(_SUBJECT, "lesson", "", "", "", _reject_request), self._texts, jobs)
        self._texts.setParent(self)
        # Another schedule, size or variant would need another recording than the question's.
        for name in ("Two schedules", "Side by side"):
            self.panes.kinds.buttons[name].hide()
        # A stack has room for all its views, also for those that a lesson never shows.
        for view in (self.schedules_view, self.variants_view, self.panes.warps):
            view.setMinimumWidth(1)
        self.panes.arrays.element_clicked.connect(self._emit_element)
        self.panes.flow.cell_clicked.connect(self._emit_cell)
        self.panes.flow.future_clicked.connect(self._emit_cell)
        self.panes.flow.thread_clicked.connect(self.lane_clicked)
        self.panes.lanes.grid.thread_clicked.connect(self.lane_clicked)
        self.scene: StepScene | None = None

    def play_scene(self, playable: SceneRecording) -> None:
        """Play a scene from its moment."""
        question = playable.scene.question
        self._moment, self._recording_handle, self.scene = playable.scene.moment, playable.arrays, playable.scene
        self._hides_answer = question is not None
        if question is not None and question.answer_type == "cells":
            self._picture_changed = self._picture_changed or self.panes.kinds.chosen != "Arrays"
            self.choose_picture("Arrays")
        elif self._picture_changed:
            self._picture_changed = False
            self.choose_picture("")
        self.panes.arrays.highlight_elements(())
        self.steppable = self.settings.steppable = create_steppable(playable)
        self._file = self.steppable.file
        self.record()

    def show_hidden_results(self) -> None:
        """Show counts and findings, which are hidden until the question is answered."""
        self._hides_answer = False
        self.panes.set_counts_hidden(False)
        if self.models is not None:
            self._show_findings(self.models)

    def _show_findings(self, models: RecordingModels) -> None:
        """Show the recording's findings, unless they would reveal the answer."""
        recording = models.recording
        findings = [] if self._hides_answer else [(moment, finding.message) for moment, finding in recording.findings]
        names = [launch.trace.kernel for launch in recording.launches]
        self.panes.timeline.open(models.data.segments, findings, names, models.data.phases.intervals)
        self.panes.timeline.show_moment(self.player.moment)
        self.panes.verdict.clear()
        if self._hides_answer:
            self.panes.flow.show_findings({})
        else:
            self.panes.flow.show_findings(models.finding_cells, build_finding_pictures(models))
        self.panes.arrays.set_findings_visible(not self._hides_answer)
        if not self._hides_answer:
            self.panes.verdict.show_recording(recording)
        self._mark_findings()

    def _mark_findings(self) -> None:
        if self._hides_answer:
            self.source.set_markers({})
        else:
            super()._mark_findings()

    def _select_picture(self) -> None:
        super()._select_picture()
        # The totals would reveal the answer.
        self.panes.set_counts_hidden(self._hides_answer)
        self.panes.right.setMinimumWidth(look().px(_SOURCE_WIDTH))

    def snapshot(self, moment: int) -> Snapshot:
        """Return the values of a moment; if no thread is followed, those of the block in question."""
        assert self.snapshots is not None
        question = self.scene.question if self.scene is not None else None
        pinned = question is not None and (question.answer_type == "threads" or question.block > 0)
        return self.snapshots(
            moment, self.followed or ((question.block, -1) if question is not None and pinned else None)
        )

    def go_to_moment(self, moment: int) -> None:
        """Go to a moment, at most to the end."""
        self._jump_to_moment(min(moment, self.player.end))

    def record(self) -> None:
        if self.scene is not None:
            super().record()

    def _receive_recording(self, request: StepRequest, models: RecordingModels) -> None:
        self._texts.replace_texts(models.recording.texts)
        self.models = None  # so that no picture mixes the old and the new recording
        self.player.open(0, ())
        super()._receive_recording(request, models)
        self.source.show_source(self.steppable.file, self.steppable.kernel)
        self._show_findings(models)
        self.player.go_to(min(self._moment, self.player.end))
        if not self._hides_answer:
            self._follow_faulty_thread(models)
        self._show_moment(self.player.moment)
        self.scene_shown.emit()

    def _follow_faulty_thread(self, models: RecordingModels) -> None:
        """Follow the thread of a finding at the scene's moment, such as the failure of a submission."""
        at_moment = (found for found in models.data.findings if found.moment + 1 == self.player.moment)
        self.followed = next((found.thread for found in at_moment), None)
        self.panes.flow.follow_thread(self.followed)

    def _emit_element(self, number: int, element: int) -> None:
        if self.models is not None:
            launch, _ = self.models.recording.locate_moment(max(self.player.moment - 1, 0))
            array = launch.trace.arrays[number]
            self.element_clicked.emit(array.name, -1 if array.block is None else array.block, element)

    def _emit_cell(self, row: int, cell: int) -> None:
        if self.models is None:
            return
        row_cells = self.models.layout.dataflow.rows[row]
        storage, storage_cell = row_cells.storage, int(row_cells.cells[cell])
        block = storage_cell // storage.section if storage.space == "shared" else -1
        self.element_clicked.emit(storage.name, block, storage_cell % storage.section)
