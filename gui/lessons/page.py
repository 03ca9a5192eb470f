"""The page next to a lesson's pane: a recording in the Step tab, and for a task the Write tab."""

from __future__ import annotations

from collections.abc import Callable

from PyQt6.QtCore import pyqtSignal
from PyQt6.QtWidgets import QStackedWidget, QTabBar

from gpu.messages.events import Failure
from gpu.messages.lessons import SceneRecording, TaskOutline
from gui.editor.source_pane import SourcePane
from gui.editor.sources import SourceChecker
from gui.lessons.scene import LessonStepTab
from gui.lessons.task_editor import TaskEditor
from gui.model.request_queue import RequestQueue
from gui.widgets.basic import ElidedLabel, Ground, button, column, label, row

_WRITE, _STEP = "Write", "Step"


class LessonPage(Ground):
    """The tabs of the current lesson.

    Parameters
    ----------
    jobs : callable
        Returns the queue of the simulator's side process.
    check : callable
        Checks the source of a submission.
    """

    explore_requested = pyqtSignal()
    """The user wants to see the scene on its pattern's page."""

    def __init__(self, jobs: Callable[[], RequestQueue], check: SourceChecker) -> None:
        super().__init__()
        self.setAccessibleName("Lesson content")
        self.step = LessonStepTab(jobs)
        self.writing = TaskEditor(check)
        self.message_label = label("", "muted", wrap=True, name="Message")
        self.tabs = QTabBar()
        self.tabs.setExpanding(False)
        self.tabs.setDrawBase(False)
        for title in (_WRITE, _STEP):
            self.tabs.addTab(title)
        self.scene_label = ElidedLabel("caption", "Current scene", right=True)
        self.explore = button("Explore", "flat", tip="Open the pattern's page with these settings")
        self.explore.clicked.connect(self.explore_requested)
        self.stack = QStackedWidget()
        for each in (self.writing, self.step, self.message_label):
            self.stack.addWidget(each)
        self.tabs.currentChanged.connect(self._on_tab_changed)
        head = row(self.tabs, self.scene_label, self.explore, stretch=1)
        self.setLayout(column(head, self.stack, margins=(8, 8, 8, 8), stretch=1))
        self.show_message("")

    @property
    def stepping(self) -> bool:
        """Whether the Step tab is visible."""
        return self.stack.currentWidget() is self.step

    @property
    def source(self) -> SourcePane:
        """The visible source pane."""
        return self.step.source if self.stepping else self.writing.visible_pane

    def show_message(self, message: str) -> None:
        """Show only a message."""
        self.message_label.setText(message)
        self.tabs.hide()
        self.explore.hide()
        self.scene_label.show_text("")
        self.stack.setCurrentWidget(self.message_label)

    def show_task(self, task: TaskOutline, submission: str) -> None:
        """Show a task's source; the Step tab is disabled until a test fails."""
        self.writing.show_task(task, submission)
        self.tabs.show()
        self.tabs.setTabVisible(0, True)
        self.tabs.setTabEnabled(1, False)
        self.explore.hide()
        self.scene_label.show_text(task.file)
        self._show_tab(0)

    def play_step(self, playable: SceneRecording, *, explored: bool) -> None:
        """Play a step's scene, or an input on which a submission fails."""
        self.step.play_scene(playable)
        self.tabs.show()
        self.tabs.setTabVisible(0, self.writing.task is not None)
        self.tabs.setTabEnabled(1, True)
        self.explore.setVisible(explored)
        self.scene_label.show_text(_format_title(playable))
        self._show_tab(1)

    def leave_task(self) -> None:
        """Close the current task."""
        self.writing.task = None

    def _show_tab(self, tab: int) -> None:
        self.tabs.setCurrentIndex(tab)
        self._on_tab_changed(tab)

    def _on_tab_changed(self, tab: int) -> None:
        self.stack.setCurrentIndex(tab)
        if tab == 0 and self.isVisible():
            self.writing.focus_first()

    def show_failure(self, failure: Failure) -> None:
        """Show why a step cannot be shown."""
        self.show_message(f"{failure.message}\n{failure.advice}".strip())


def _format_title(playable: SceneRecording) -> str:
    scene = playable.scene
    parameters = ", ".join(f"{name} = {value}" for name, value in scene.parameters.items()) if scene.pattern else ""
    return f"{scene.title}  ·  {parameters}" if parameters else scene.title
