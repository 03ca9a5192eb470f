"""The page of a recording that was saved: it is played, and nothing is run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from PyQt6.QtCore import pyqtSignal
from PyQt6.QtWidgets import QTabBar, QVBoxLayout

from gpu.messages.requests import Failure
from gui.editor.sources import RecordedSources
from gui.model.jobs import Jobs
from gui.step_view.recording.models import Models
from gui.step_view.recording.steppable import Checked, ReadRecording, Steppable, StepRequest
from gui.step_view.tab import StepTab
from gui.widgets.basic import Ground, row


def saved_recording(path: Path, checked: Checked, file: str = "", kernel: str = "") -> Steppable:
    """Return a recording in a file as what is stepped through, with the text that it was made of once that is read."""
    return Steppable(
        subject=str(path),
        name=path.stem,
        title=f"{path.name}: {kernel}" if kernel else path.name,
        file=file,
        kernel=kernel,
        request=lambda chosen: ReadRecording(path, checked),
    )


class RecordedStepTab(StepTab):
    """Plays a recording from a file, beside the text that it was made of.

    Parameters
    ----------
    path : Path
        The recording, or the trace of a launch.
    checked : callable
        As of a ReadRecording.
    jobs : callable
        As of a StepTab.
    """

    readable = pyqtSignal()
    """The file has been read, and is about to be shown."""

    def __init__(self, path: Path, checked: Checked, jobs: Callable[[], Jobs]) -> None:
        self._path, self._checked = path, checked
        self._texts = RecordedSources()
        super().__init__(saved_recording(path, checked), self._texts, jobs)
        self._texts.setParent(self)
        # Another order would have to be run.
        self.panes.kinds.buttons["Schedules"].hide()

    def _fail(self, failure: Failure) -> None:
        if self.models is None:
            super()._fail(failure)
        else:
            self.failed.emit(failure)  # what was read before stays

    def _take(self, request: StepRequest, models: Models) -> None:
        self.readable.emit()
        with self._told():
            self._show_read(request, models)

    def _show_read(self, request: StepRequest, models: Models) -> None:
        recording = models.recording
        self._texts.texts = recording.texts
        file = next((file for file in models.files if recording.text(file)), "")
        if file:
            kernel = recording.launches[0].trace.kernel
            self.stepped = self._requested = saved_recording(self._path, self._checked, file, kernel)
            self._file = file
            self.source.show_source(file, kernel)
        super()._take(request, models)

    def _show_moment(self, moment: int) -> None:
        with self._told():
            super()._show_moment(moment)

    def _prefetch(self, moment: int, direction: int) -> Iterator[object]:
        with suppress(Exception):  # it is told when that moment is to be seen
            yield from super()._prefetch(moment, direction)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Tell what goes wrong with a file that nobody vouches for, and play on no further."""
        try:
            yield
        except Exception as error:
            self.player.pause()
            from gpu.stepping.recording import damaged

            said = damaged(self._path)
            self.failed.emit(Failure("input", said.message, said.advice, detail=repr(error)))


class RecordedPage(Ground):
    """A Step tab alone, which begins to read the file: whoever makes it shows it when that is `readable`.

    Parameters
    ----------
    path, checked, jobs
        As of a RecordedStepTab.
    """

    failed = pyqtSignal(object)
    """Failure"""
    readable = pyqtSignal()
    words_changed = pyqtSignal(str)
    words = "is played, not run"
    busy = False
    stepping = True

    def __init__(self, path: Path, checked: Checked, jobs: Callable[[], Jobs]) -> None:
        super().__init__()
        self.path = path
        self.step = RecordedStepTab(path, checked, jobs)
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

    def close_down(self) -> None:
        """Let nothing play on: the page, or the window, closes."""
        self.step.close_down()
