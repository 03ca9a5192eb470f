"""Open a user's kernel file, program or recording, and show its page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PyQt6.QtCore import QObject, pyqtSignal
from PyQt6.QtWidgets import QStackedWidget

from gpu.base.errors import InputError
from gpu.messages.events import Failure
from gpu.messages.programs import SCRIPT_SUFFIX, has_main
from gpu.process.inspector import Inspector
from gui.editor.files import KERNEL_FILE_FILTER, read_kernel
from gui.editor.source_pane import SourcePane
from gui.editor.sources import KernelSources
from gui.model.request_queue import RequestQueue
from gui.model.settings import SavedSettings
from gui.model.time_modeler import TimeModeler
from gui.step_view.tab import StepTab
from gui.user_kernel.page import UserKernelPage
from gui.user_kernel.program.page import ProgramPage
from gui.user_kernel.saved_recording import RecordedPage
from gui.widgets.file_dialogs import choose_existing_file

RECORDING_SUFFIXES = (".lockstep", ".trace", ".html")
SUFFIXES = (".cu", ".cuh", SCRIPT_SUFFIX, *RECORDING_SUFFIXES)
_FILE_FILTER = f"Kernels, programs, scripts and recordings (*{' *'.join(SUFFIXES)});;{KERNEL_FILE_FILTER}"

UserPage = UserKernelPage | ProgramPage | RecordedPage


def is_recording(path: Path) -> bool:
    """Return whether a path's suffix is one of a recording."""
    return path.suffix.lower() in RECORDING_SUFFIXES


class UserFile(QObject):
    """Open a kernel file, a program or a recording, and show its page in place of the previous one.

    Parameters
    ----------
    stack : QStackedWidget
        The stack that shows the page, among others.
    jobs : callable
        Returns the queue of the simulator that runs and records kernels.
    modeling : TimeModeler
        Predicts the launches' times on a GPU.
    programs : RequestQueue
        The queue of a separate process that runs programs, because a program may never terminate.
    saved_settings : SavedSettings
        Saves the compiler options of each file.
    """

    page_shown = pyqtSignal(str, object)
    """The page is shown: its title and Path."""
    status_message = pyqtSignal(str)
    """A message for the status line."""
    warned = pyqtSignal(str, str)
    """A problem, and advice."""
    confirmation_requested = pyqtSignal(str, str, object)
    """A question whether to run a program, what it can do, and a function that runs it."""
    failed = pyqtSignal(object)
    """Failure"""
    saved = pyqtSignal(str)
    """The path of a kernel that was saved."""
    busy_changed = pyqtSignal(bool)

    def __init__(
        self,
        stack: QStackedWidget,
        sources: KernelSources,
        jobs: Callable[[], RequestQueue],
        modeling: TimeModeler,
        programs: RequestQueue,
        saved_settings: SavedSettings,
    ) -> None:
        super().__init__(stack)
        self._stack, self._sources, self._jobs, self._modeling = stack, sources, jobs, modeling
        self._programs, self._saved_settings = programs, saved_settings
        self.page: UserPage | None = None
        self._pending_page: RecordedPage | None = None
        self._inspector = Inspector()

    @property
    def visible_page(self) -> UserPage | None:
        """The page, if it is visible."""
        return self.page if self.page is not None and self._stack.currentWidget() is self.page else None

    def choose_and_open(self) -> None:
        """Ask for a file and open it."""
        self.start_inspector()
        path = choose_existing_file(self._stack, "Open kernel, program or recording", _FILE_FILTER, "kernels")
        if path is not None:
            self.open(path)

    def start_inspector(self) -> None:
        """Start the process that reads recordings, since one may be opened soon."""
        self._inspector.prepare()

    def open(self, path: Path) -> None:
        """Open a file; the current page stays until the file has been read."""
        path = path.absolute()
        self._pending_page = None
        if is_recording(path):
            self._read_recording(path)
            return
        try:
            text = read_kernel(path)
        except InputError as error:
            self.warned.emit(error.message, "Open a CUDA C++ file, or a PyCUDA or CuPy script.")
            return
        if self.page is None or self.page.path != path:
            if path.suffix.lower() == SCRIPT_SUFFIX or has_main(text):
                self._open_program(path)
            else:
                self._open_kernels(path)
        self.show_page()

    def _open_kernels(self, path: Path) -> None:
        page = UserKernelPage(
            path, self._sources, self._jobs, self._modeling, self._saved_settings.compiler_options(path)
        )
        page.options_changed.connect(lambda text: self._saved_settings.store_compiler_options(path, text))
        page.busy_changed.connect(self.busy_changed)
        page.program_requested.connect(lambda: self._switch_page(self._open_program, path))
        self._set_page(page)

    def _open_program(self, path: Path) -> None:
        self._inspector.prepare()
        page = ProgramPage(
            path,
            self._sources,
            self._program_jobs,
            self._inspector.read,
            lambda: self._modeling.gpu,
            self._saved_settings.compiler_options(path),
        )
        page.options_changed.connect(lambda text: self._saved_settings.store_compiler_options(path, text))
        page.is_trusted = self._saved_settings.is_trusted(path)
        page.trusted.connect(lambda: self._saved_settings.add_trusted_file(path))
        page.confirmation_requested.connect(
            lambda question, warning: self.confirmation_requested.emit(
                question, warning, lambda: page.trust_and_run() if page is self.page else None
            )
        )
        page.busy_changed.connect(self.busy_changed)
        page.step_tab_created.connect(self._connect_step)
        page.kernels_requested.connect(lambda: self._switch_page(self._open_kernels, path))
        self._program_jobs()  # starts the process while the user reads the source
        self._set_page(page)

    def _switch_page(self, open_page: Callable[[Path], None], path: Path) -> None:
        """Show the current file on another kind of page."""
        open_page(path)
        self.show_page()

    def _program_jobs(self) -> RequestQueue:
        if not self._programs.started:
            try:
                self._programs.start("simulator")
            except InputError as error:  # its requests wait until a start succeeds
                self.warned.emit(error.message, error.advice)
        return self._programs

    def _read_recording(self, path: Path) -> None:
        """Read a recording, even if it is open already: the file may have changed."""
        self.status_message.emit(f"Opening {path.name}…")
        self._pending_page = page = RecordedPage(path, self._inspector.read, self._jobs)
        page.readable.connect(lambda: self._on_readable(page))
        page.failed.connect(lambda failure: self._on_failure(page, failure))

    def _on_readable(self, page: RecordedPage) -> None:
        if page is self._pending_page:
            self._pending_page = None
            self._set_page(page)
            self.show_page()
        elif page is not self.page:
            page.deleteLater()  # another file was opened meanwhile

    def _on_failure(self, page: RecordedPage, failure: Failure) -> None:
        if page is self._pending_page:
            self._pending_page = None
            self.failed.emit(failure)
        if page is not self.page:
            page.deleteLater()

    def _set_page(self, page: UserPage) -> None:
        """Replace the current page."""
        self._close_page()
        self.page = page
        page.failed.connect(self.failed)
        page.status_changed.connect(self._show_status)
        if not isinstance(page, RecordedPage):
            self._connect_pane(page.source)
        if not isinstance(page, ProgramPage):
            self._connect_step(page.step)
        self._stack.addWidget(page)

    def _connect_step(self, step: StepTab) -> None:
        step.exports.status_message.connect(self.status_message)
        step.exports.failed.connect(self.warned)
        self._connect_pane(step.source)

    def _connect_pane(self, pane: SourcePane) -> None:
        pane.failed.connect(lambda message: self.warned.emit(message, ""))
        pane.saved.connect(self.saved)
        pane.hint_changed.connect(self.status_message)

    def show_page(self) -> None:
        """Show the page of the open file."""
        if self.page is not None:
            self._stack.setCurrentWidget(self.page)
            self.page_shown.emit(_page_title(self.page), self.page.path)
            self._show_status()

    def _show_status(self) -> None:
        """Show in the status line how the open file can be used."""
        if self.visible_page is not None:
            self.status_message.emit(f"{self.visible_page.path.name} {self.visible_page.status_text}".strip())

    def close_down(self) -> None:
        """Stop playback and exports: the window closes."""
        self._pending_page = None
        if self.page is not None:
            self.page.close_down()
        self._inspector.close()
        self._programs.close()

    def _close_page(self) -> None:
        self._pending_page = None
        if self.page is not None:
            self.page.stop()
            self.page.close_down()
            self._stack.removeWidget(self.page)
            self.page.deleteLater()
            self.page = None


def _page_title(page: UserPage) -> str:
    match page:
        case RecordedPage():
            return "Recording"
        case ProgramPage():
            return "Script" if page.path.suffix.lower() == SCRIPT_SUFFIX else "Program"
    return "Your kernel"
