"""The page of a recording that was saved: it is played, and nothing is run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PyQt6.QtCore import pyqtSignal
from PyQt6.QtWidgets import QTabBar, QVBoxLayout

from gpu.messages.requests import Failure
from gui.editor.sources import RecordedSources
from gui.model.jobs import Jobs
from gui.step_view.recording.models import Models
from gui.step_view.recording.steppable import ReadRecording, Steppable, StepRequest
from gui.step_view.tab import StepTab
from gui.widgets.basic import Ground, row


def saved_recording(path: Path, file: str = "", kernel: str = "") -> Steppable:
    """Return a recording in a file as what is stepped through, with the text that it was made of once that is read."""
    return Steppable(
        subject=str(path),
        name=path.stem,
        title=f"{path.name}: {kernel}" if kernel else path.name,
        file=file,
        kernel=kernel,
        request=lambda chosen: ReadRecording(path),
    )


class RecordedStepTab(StepTab):
    """Plays a recording from a file, beside the text that it was made of.

    Parameters
    ----------
    path : Path
        The recording, or the trace of a launch.
    jobs : callable
        As of a StepTab.
    """

    readable = pyqtSignal()
    """The file has been read, and is about to be shown."""

    def __init__(self, path: Path, jobs: Callable[[], Jobs]) -> None:
        self._path = path
        self._texts = RecordedSources()
        super().__init__(saved_recording(path), self._texts, jobs)
        self._texts.setParent(self)
        # Another order would have to be run.
        self.panes.kinds.buttons["Two orders"].hide()

    def _fail(self, failure: Failure) -> None:
        if self.models is None:
            super()._fail(failure)
        else:
            self.failed.emit(failure)  # what was read before stays

    def _take(self, request: StepRequest, models: Models) -> None:
        self.readable.emit()
        recording = models.recording
        self._texts.texts = recording.texts
        file = next((file for file in models.files if recording.text(file)), "")
        if file:
            kernel = recording.launches[0].trace.kernel
            self.stepped = self._asked = saved_recording(self._path, file, kernel)
            self._file = file
            self.source.show_source(file, kernel)
        super()._take(request, models)


class RecordedPage(Ground):
    """A Step tab alone, which begins to read the file: whoever makes it shows it when that is `readable`.

    Parameters
    ----------
    path, jobs
        As of a RecordedStepTab.
    """

    failed = pyqtSignal(object)
    """Failure"""
    readable = pyqtSignal()
    words_changed = pyqtSignal(str)
    words = "is played, not run"
    busy = False
    stepping = True

    def __init__(self, path: Path, jobs: Callable[[], Jobs]) -> None:
        super().__init__()
        self.path = path
        self.step = RecordedStepTab(path, jobs)
        self.step.failed.connect(self.failed)
        self.step.readable.connect(self.readable)
        self.source = self.step.source
        tabs = QTabBar()
        tabs.setExpanding(False)
        tabs.setDrawBase(False)
        tabs.addTab("Step")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 8, 8, 8)
        layout.setSpacing(8)
        layout.addLayout(row(tabs, 0))
        layout.addWidget(self.step, 1)
        self.step.record()

    def run(self) -> None:
        """Read the file again."""
        self.step.record()

    def stop(self) -> None:
        """Stop nothing: nothing runs."""
