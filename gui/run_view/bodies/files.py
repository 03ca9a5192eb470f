"""Open and save files of bodies and pictures: ask for names, and read and write in the engine's process."""

from __future__ import annotations

from pathlib import Path

from PyQt6.QtCore import QObject, pyqtSignal
from PyQt6.QtWidgets import QMenu, QWidget

from gpu.declaration.roles import Role
from gpu.messages.bodies import LoadBodies, SaveBodies
from gpu.messages.events import Failure
from gpu.messages.files import SaveArray
from gpu.messages.requests import Acknowledgment, ArrayResult, Request
from gpu.messages.shared_arrays import SharedArray
from gui.model.request_queue import RequestQueue
from gui.run_view.bodies.simulation import BodiesFrame, LiveSimulation
from gui.widgets.basic import format_count
from gui.widgets.file_dialogs import choose_existing_file, choose_new_file

TIPSY = (".tipsy", ".bin")
BODY_FILES = (".csv", ".npy", *TIPSY)
_READABLE_FILTER = "Bodies (*.csv *.tipsy *.bin *.npy);;All files (*)"
_WRITABLE_FILTER = "Table (*.csv);;Tipsy (*.tipsy);;NumPy array (*.npy)"


class BodyFiles(QObject):
    """Open and save the files of a simulation.

    Parameters
    ----------
    jobs : RequestQueue
        The engine's queue.
    window : QWidget
        Parent of the file dialogs.
    """

    status_message = pyqtSignal(str)
    """A message about a completed operation."""
    failed = pyqtSignal(object)
    """Failure"""

    def __init__(self, simulation: LiveSimulation, jobs: RequestQueue, window: QWidget) -> None:
        super().__init__(window)
        self._simulation, self._jobs, self._window = simulation, jobs, window
        self._picture: SharedArray | None = None
        simulation.restarted.connect(self._forget_picture)
        simulation.frame_arrived.connect(self._on_frame)
        self.source_path: Path | None = None
        """The file that the bodies were read from; None for generated bodies."""

    def _forget_picture(self) -> None:
        self._picture = None

    def _on_frame(self, frame: BodiesFrame) -> None:
        if frame.picture is not None:
            self._picture = frame.handle

    def add_menu_actions(self, menu: QMenu) -> None:
        """Add the file operations to a menu."""
        for text, do in (
            ("Save picture…", self.save_picture_as),
            ("Save bodies…", self.save_as),
            ("Open bodies…", self.choose_and_open),
            ("Back to the preset", self.return_to_preset),
        ):
            action = menu.addAction(text)
            assert action is not None
            action.triggered.connect(lambda _=False, do=do: do())
        back = menu.actions()[-1]
        menu.aboutToShow.connect(lambda: back.setEnabled(self.source_path is not None))

    def choose_file_name(self, title: str, kinds: str, suffix: str) -> Path | None:
        """Ask for the name of a new file; the simulation pauses meanwhile."""
        simulation, playing = self._simulation, self._simulation.playing
        simulation.play(False)
        try:
            return self._run_name_dialog(title, kinds, suffix)
        finally:
            simulation.play(playing)

    def _run_name_dialog(self, title: str, kinds: str, suffix: str) -> Path | None:
        pattern = self._simulation.pattern
        default = f"{pattern.name}-{pattern.value(self._simulation.params, Role.SOURCE)}"
        stem = self.source_path.stem if self.source_path is not None else default
        return choose_new_file(self._window, title, f"{stem}{suffix}", kinds, "bodies")

    def save_picture_as(self) -> None:
        """Ask for a file name, and save the current picture."""
        path = self.choose_file_name("Save picture", "PNG image (*.png)", ".png")
        if path is not None:
            self.save_picture(path)

    def save_picture(self, path: Path) -> None:
        """Save the current picture as the engine drew it."""
        if self._picture is None:
            self.failed.emit(Failure("input", "There is no picture to save yet."))
            return
        self._request_save(path, SaveArray(str(path), self._picture))

    def save_as(self) -> None:
        """Ask for a file name, and save the current bodies."""
        path = self.choose_file_name("Save bodies", _WRITABLE_FILTER, ".csv")
        if path is not None:
            self.save(path)

    def save(self, path: Path) -> None:
        """Save the current bodies."""
        self._request_save(path, SaveBodies(str(path), self._simulation.number))

    def _request_save(self, path: Path, request: Request[Acknowledgment]) -> None:
        def on_result(event: Acknowledgment | Failure) -> None:
            if not isinstance(event, Failure):
                self.status_message.emit(f"Saved {path.name}")
            elif event.kind != "cancelled":
                self.failed.emit(event)

        # A channel per file, so that a request does not replace another one that waits.
        self._jobs.post(f"save {path}", request, on_result, priority=3)

    def choose_file(self) -> Path | None:
        """Ask for a file of bodies; return None if the user cancels."""
        return choose_existing_file(self._window, "Open bodies", _READABLE_FILTER, "bodies")

    def choose_and_open(self) -> None:
        """Ask for a file of bodies, and open it."""
        path = self.choose_file()
        if path is not None:
            self.open(path)

    def return_to_preset(self) -> None:
        """Restart with the preset's bodies instead of a file's."""
        if self.source_path is not None:
            self.source_path = None
            self._simulation.restart()

    def open(self, path: Path) -> None:
        """Restart with a file's bodies; if it cannot be read, nothing changes."""

        def on_result(event: ArrayResult | Failure) -> None:
            if isinstance(event, Failure):
                if event.kind != "cancelled":
                    self.failed.emit(event)
                return
            bodies = event.arrays["bodies"]
            self.source_path = path
            self._simulation.restart(bodies)
            self.status_message.emit(f"{path.name}: {format_count(bodies.shape[0])} bodies")

        self._jobs.post("open", LoadBodies(str(path)), on_result, priority=3)
