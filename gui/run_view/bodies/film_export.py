"""Film recording: every frame of a simulation goes into the film, however long it takes."""

from __future__ import annotations

from pathlib import Path

from PyQt6.QtCore import QObject, pyqtSignal

from gpu.messages.events import Failure
from gui.run_view.bodies.recorder import FilmRecorder
from gui.run_view.bodies.simulation import BodiesFrame, LiveSimulation


class FilmExport(QObject):
    """Record a simulation to a film file, one film at a time.

    Parameters
    ----------
    simulation : LiveSimulation
        Is paused while the recorder is busy, so that no frame is lost.
    """

    changed = pyqtSignal()
    """`recording`, `writing` or `status_text` has changed."""
    status_message = pyqtSignal(str)
    failed = pyqtSignal(object)
    """Failure"""

    def __init__(self, simulation: LiveSimulation, parent: QObject) -> None:
        super().__init__(parent)
        self._simulation = simulation
        self._recorder: FilmRecorder | None = None
        self.writing = False
        """Whether all frames are recorded, but the file is not complete."""

    @property
    def recording(self) -> bool:
        """Whether frames are being recorded."""
        return self._recorder is not None and not self.writing

    @property
    def status_text(self) -> str:
        """The state of the film as text, shown above the picture."""
        if self._recorder is None:
            return ""
        if self.writing:
            return "writing the film"
        return "1 frame" if self._recorder.frame_count == 1 else f"{self._recorder.frame_count} frames"

    def begin_film(self, path: Path) -> None:
        """Start a film, and play the simulation."""
        try:
            recorder = FilmRecorder(path, *self._simulation.size, self)
        except ValueError as error:
            self.failed.emit(Failure("input", f"Cannot write {path.name}.", str(error)))
            return
        self._recorder = recorder
        self._simulation.keeps_all_steps = True
        recorder.ready_changed.connect(lambda ready: self._simulation.set_waits_for_recorder(not ready))
        recorder.finished.connect(lambda problem: self._on_film_finished(path, problem))
        self.changed.emit()
        self._simulation.play(True)

    def add_frame(self, frame: BodiesFrame) -> None:
        """Add a frame if a film is being recorded and the bodies have moved."""
        recorder = self._recorder
        if recorder is None or self.writing or frame.picture is None:
            return
        if not frame.bodies_moved or frame.picture.shape[:2] != recorder.size[::-1]:
            return
        recorder.add(frame.picture)
        if recorder.is_full:
            self.end_film()
            self.status_message.emit(f"The film has reached the maximum length: {recorder.frame_count} frames")
        self.changed.emit()

    def end_film(self) -> None:
        """End the recording, and write the file."""
        if self._recorder is None or self.writing:
            return
        self.writing = True
        self._simulation.keeps_all_steps = False
        self._simulation.set_waits_for_recorder(False)
        self._recorder.finish()
        self.changed.emit()

    def close_down(self) -> None:
        """Discard a film that is not complete."""
        recorder, self._recorder = self._recorder, None
        if recorder is not None:
            recorder.discard_film()

    def _on_film_finished(self, path: Path, problem: str) -> None:
        self._recorder, self.writing, self._simulation.keeps_all_steps = None, False, False
        self._simulation.set_waits_for_recorder(False)
        self.changed.emit()
        if problem:
            self.failed.emit(Failure("input", problem))
        else:
            self.status_message.emit(f"Saved {path.name}")
