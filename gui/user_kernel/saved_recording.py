"""The page of a saved recording, which is played without running anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from PyQt6.QtCore import pyqtSignal
from PyQt6.QtWidgets import QTabBar

from gpu.messages.events import Failure
from gui.editor.sources import TextSources
from gui.model.request_queue import RequestQueue
from gui.step_view.recording.models import RecordingModels
from gui.step_view.recording.steppable import CheckedReader, ReadRecording, Steppable, StepRequest
from gui.step_view.tab import StepTab
from gui.widgets.basic import Ground, column, row


def create_recording_steppable(path: Path, read_checked: CheckedReader, file: str = "", kernel: str = "") -> Steppable:
    """Return a recording file as a subject of the Step tab.

    Parameters
    ----------
    read_checked : callable
        As in `ReadRecording`.
    file, kernel : str
        The recorded source file and kernel; "" until they have been read.
    """
    return Steppable(
        subject=str(path),
        name=path.stem,
        title=f"{path.name}: {kernel}" if kernel else path.name,
        file=file,
        kernel=kernel,
        make_request=lambda chosen: ReadRecording(path, read_checked),
    )


class RecordedStepTab(StepTab):
    """Play a recording from a file, next to the recorded source.

    Parameters
    ----------
    path : Path
        The recording, or the trace of a launch.
    read_checked : callable
        As in `ReadRecording`.
    jobs : callable
        As in `StepTab`.
    """

    readable = pyqtSignal()
    """The file has been read and can be shown."""

    def __init__(self, path: Path, read_checked: CheckedReader, jobs: Callable[[], RequestQueue]) -> None:
        self._path, self._read_checked = path, read_checked
        self._texts = TextSources()
        super().__init__(create_recording_steppable(path, read_checked), self._texts, jobs)
        self._texts.setParent(self)
        # Comparing two schedules needs a second run, and a saved recording cannot be run.
        self.panes.kinds.buttons["Two schedules"].hide()

    def _show_failure(self, failure: Failure) -> None:
        if self.models is None:
            super()._show_failure(failure)
        else:
            self.failed.emit(failure)  # the contents read so far stay

    def _receive_recording(self, request: StepRequest, models: RecordingModels) -> None:
        self.readable.emit()
        with self._report_damage():
            self._show_recording(request, models)

    def _show_recording(self, request: StepRequest, models: RecordingModels) -> None:
        recording = models.recording
        self._texts.replace_texts(recording.texts)
        file = next((file for file in models.files if recording.text(file)), "")
        if file:
            kernel = recording.launches[0].trace.kernel
            self.steppable = self._requested_steppable = create_recording_steppable(
                self._path, self._read_checked, file, kernel
            )
            self._file = file
            self.source.show_source(file, kernel)
        super()._receive_recording(request, models)

    def _show_moment(self, moment: int) -> None:
        with self._report_damage():
            super()._show_moment(moment)

    def _prefetch(self, moment: int, direction: int) -> Iterator[object]:
        with suppress(Exception):  # reported when that moment is shown
            yield from super()._prefetch(moment, direction)

    @contextmanager
    def _report_damage(self) -> Iterator[None]:
        """Report an error in an untrusted file as damage, and pause playback."""
        try:
            yield
        except Exception as error:
            self.player.pause()
            from gpu.recording.recording import build_damage_error

            damage = build_damage_error(self._path)
            self.failed.emit(Failure("input", damage.message, damage.advice, detail=repr(error)))


class RecordedPage(Ground):
    """A page with only a Step tab; the caller shows it when `readable` is emitted.

    Parameters
    ----------
    path, read_checked, jobs
        As in `RecordedStepTab`.
    """

    failed = pyqtSignal(object)
    """Failure"""
    readable = pyqtSignal()
    status_changed = pyqtSignal(str)
    status_text = "is played, not run"
    busy = False
    stepping = True

    def __init__(self, path: Path, read_checked: CheckedReader, jobs: Callable[[], RequestQueue]) -> None:
        super().__init__()
        self.path = path
        self.step = RecordedStepTab(path, read_checked, jobs)
        self.step.failed.connect(self.failed)
        self.step.readable.connect(self.readable)
        self.source = self.step.source
        tabs = QTabBar()
        tabs.setExpanding(False)
        tabs.setDrawBase(False)
        tabs.addTab("Step")
        self.setLayout(column(row(tabs, 0), self.step, margins=(8, 8, 8, 8), stretch=1))
        self.step.record()

    def run(self) -> None:
        """Read the file again."""
        self.step.record()

    def stop(self) -> None:
        """Do nothing: no work is running."""

    def close_down(self) -> None:
        """Stop playback: the page or the window closes."""
        self.step.close_down()
