"""The kernel file, program or recording of the user's that is open, and its page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PyQt6.QtCore import QObject, pyqtSignal
from PyQt6.QtWidgets import QStackedWidget

from gpu.errors import InputError
from gpu.messages.programs import SCRIPT, has_main
from gpu.messages.requests import Failure
from gpu.process.inspector import Inspector
from gui.editor.files import KERNEL_FILES, read_kernel
from gui.editor.source_pane import SourcePane
from gui.editor.sources import KernelSources
from gui.model.jobs import Jobs
from gui.model.modeling import Modeling
from gui.model.settings import SavedSettings
from gui.own_kernel.page import OwnKernelPage
from gui.own_kernel.program.page import ProgramPage
from gui.own_kernel.recorded import RecordedPage
from gui.step_view.tab import StepTab
from gui.widgets.ask_file import ask_open

RECORDINGS = (".lockstep", ".trace", ".html")
ENDINGS = (".cu", ".cuh", SCRIPT, *RECORDINGS)
_FILES = f"Kernels, programs, scripts and recordings (*{' *'.join(ENDINGS)});;{KERNEL_FILES}"

OwnPage = OwnKernelPage | ProgramPage | RecordedPage


class OwnKernel(QObject):
    """Opens a kernel file, a program or a recording, and shows its page; the next file takes its place.

    Parameters
    ----------
    stack : QStackedWidget
        Where the page is shown, among others.
    sources : KernelSources
        The kernels' texts.
    jobs : callable
        Returns the queue of the simulator that runs and steps it.
    modeling : Modeling
        Says how long a launch would take on a GPU.
    programs : Jobs
        The queue of a process that is there for programs alone: they may never end.
    memory : SavedSettings
        Remembers what the compiler is given for each file.
    """

    appeared = pyqtSignal(str, object)
    """Its page is shown: what it is, and its Path."""
    said = pyqtSignal(str)
    """A passing word."""
    warned = pyqtSignal(str, str)
    """What cannot be done, and what can."""
    failed = pyqtSignal(object)
    """Failure"""
    saved = pyqtSignal(str)
    """The path of a kernel that was written."""
    busy_changed = pyqtSignal(bool)

    def __init__(
        self,
        stack: QStackedWidget,
        sources: KernelSources,
        jobs: Callable[[], Jobs],
        modeling: Modeling,
        programs: Jobs,
        memory: SavedSettings,
    ) -> None:
        super().__init__(stack)
        self._stack, self._sources, self._jobs, self._modeling = stack, sources, jobs, modeling
        self._programs, self._memory = programs, memory
        self.page: OwnPage | None = None
        self._opening: RecordedPage | None = None
        self._inspector = Inspector()

    @property
    def shown(self) -> OwnPage | None:
        """Return the page while it is the one that is shown."""
        return self.page if self.page is not None and self._stack.currentWidget() is self.page else None

    def ask(self) -> None:
        """Ask for a file and open it."""
        self.prepare()
        path = ask_open(self._stack, "Open kernel, program or recording", _FILES, "kernels")
        if path is not None:
            self.open(path)

    def prepare(self) -> None:
        """Let what looks at recordings start: one may be opened soon."""
        self._inspector.prepare()

    def open(self, path: Path) -> None:
        """Open a file; what was shown stays until it has been read, and if it cannot be."""
        path = path.absolute()
        self._opening = None
        if path.suffix.lower() in RECORDINGS:
            self._read(path)
            return
        try:
            text = read_kernel(path)
        except InputError as error:
            self.warned.emit(error.message, "Open a CUDA C++ file, or a PyCUDA script.")
            return
        if self.page is None or self.page.path != path:
            if path.suffix.lower() == SCRIPT or has_main(text):
                self._open_program(path)
            else:
                self._open_kernels(path)
        self.show()

    def _open_kernels(self, path: Path) -> None:
        page = OwnKernelPage(path, self._sources, self._jobs, self._modeling, self._memory.compiler_options(path))
        page.options_changed.connect(lambda text: self._memory.store_compiler_options(path, text))
        page.busy_changed.connect(self.busy_changed)
        page.program_wanted.connect(lambda: self._turn(self._open_program, path))
        self._take(page)

    def _open_program(self, path: Path) -> None:
        self._inspector.prepare()
        page = ProgramPage(
            path,
            self._sources,
            self._program_jobs,
            self._inspector.read,
            lambda: self._modeling.gpu,
            self._memory.compiler_options(path),
        )
        page.options_changed.connect(lambda text: self._memory.store_compiler_options(path, text))
        page.busy_changed.connect(self.busy_changed)
        page.stepped.connect(self._connect_step)
        page.kernels_wanted.connect(lambda: self._turn(self._open_kernels, path))
        self._program_jobs()  # its process starts while the text is looked at
        self._take(page)

    def _turn(self, open_as: Callable[[Path], None], path: Path) -> None:
        """Show the file that is open as another kind of page."""
        open_as(path)
        self.show()

    def _program_jobs(self) -> Jobs:
        if not self._programs.started:
            try:
                self._programs.start("simulator")
            except InputError as error:  # what is asked of it waits until that works
                self.warned.emit(error.message, error.advice)
        return self._programs

    def _read(self, path: Path) -> None:
        """Read a recording, also where it is open already: it may be another by now."""
        self.said.emit(f"Opening {path.name}…")
        self._opening = page = RecordedPage(path, self._inspector.read, self._jobs)
        page.readable.connect(lambda: self._show_read(page))
        page.failed.connect(lambda failure: self._refuse(page, failure))

    def _show_read(self, page: RecordedPage) -> None:
        if page is self._opening:
            self._opening = None
            self._take(page)
            self.show()
        elif page is not self.page:
            page.deleteLater()  # another was asked for while it was read

    def _refuse(self, page: RecordedPage, failure: Failure) -> None:
        if page is self._opening:
            self._opening = None
            self.failed.emit(failure)
        if page is not self.page:
            page.deleteLater()

    def _take(self, page: OwnPage) -> None:
        """Put a page in the place of the one before."""
        self._forget()
        self.page = page
        page.failed.connect(self.failed)
        page.words_changed.connect(self._say_words)
        if not isinstance(page, RecordedPage):
            self._connect_pane(page.source)
        if not isinstance(page, ProgramPage):
            self._connect_step(page.step)
        self._stack.addWidget(page)

    def _connect_step(self, step: StepTab) -> None:
        step.exports.said.connect(self.said)
        step.exports.failed.connect(self.warned)
        self._connect_pane(step.source)

    def _connect_pane(self, pane: SourcePane) -> None:
        pane.failed.connect(lambda message: self.warned.emit(message, ""))
        pane.saved.connect(self.saved)
        pane.typing.connect(self.said)

    def show(self) -> None:
        """Show the page of the file that is open."""
        if self.page is not None:
            self._stack.setCurrentWidget(self.page)
            self.appeared.emit(_title(self.page), self.page.path)
            self._say_words()

    def _say_words(self) -> None:
        """Say of the file that is shown what it is good for."""
        if self.shown is not None:
            self.said.emit(f"{self.shown.path.name} {self.shown.words}".strip())

    def close_down(self) -> None:
        """Let nothing play on, and give up an animation: the window closes."""
        self._opening = None
        if self.page is not None:
            self.page.close_down()
        self._inspector.close()
        self._programs.close()

    def _forget(self) -> None:
        self._opening = None
        if self.page is not None:
            self.page.stop()
            self.page.close_down()
            self._stack.removeWidget(self.page)
            self.page.deleteLater()
            self.page = None


def _title(page: OwnPage) -> str:
    match page:
        case RecordedPage():
            return "Recording"
        case ProgramPage():
            return "Script" if page.path.suffix.lower() == SCRIPT else "Program"
    return "Own kernel"
