"""The kernel file or recording of the user's that is open in a window, and its page there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PyQt6.QtWidgets import QFileDialog

from gpu.errors import InputError
from gpu.messages.requests import Failure
from gui.editor.files import KERNEL_FILES, read_kernel
from gui.own_kernel.page import OwnKernelPage
from gui.own_kernel.recorded import RecordedPage

if TYPE_CHECKING:
    from gui.window.main_window import MainWindow

RECORDINGS = (".lockstep", ".trace")
ENDINGS = (".cu", ".cuh", *RECORDINGS)
_FILES = f"Kernels and recordings (*{' *'.join(ENDINGS)});;{KERNEL_FILES}"


class OwnKernel:
    """Opens a kernel file or a recording in a window, and shows its page; the next file takes its place."""

    def __init__(self, window: MainWindow) -> None:
        self._window = window
        self.page: OwnKernelPage | RecordedPage | None = None
        self._opening: RecordedPage | None = None

    @property
    def shown(self) -> OwnKernelPage | RecordedPage | None:
        """Return the page while it is the one that is shown."""
        return self.page if self.page is not None and self._window.stack.currentWidget() is self.page else None

    def ask(self) -> None:
        """Ask for a file and open it."""
        name, _ = QFileDialog.getOpenFileName(self._window, "Open kernel or recording", str(Path.home()), _FILES)
        if name:
            self.open(Path(name))

    def open(self, path: Path) -> None:
        """Open a file; what was shown stays until it has been read, and if it cannot be."""
        window, path = self._window, path.absolute()
        self._opening = None
        if path.suffix.lower() in RECORDINGS:
            self._read(path)
            return
        try:
            read_kernel(path)
        except InputError as error:
            window.banner.say(error.message, "Open a CUDA C++ file.")
            return
        if self.page is None or self.page.path != path:
            self._take(self._kernel_page(path))
        self.show()

    def _read(self, path: Path) -> None:
        """Read a recording, also where it is open already: it may be another by now."""
        self._window.status.say(f"Opening {path.name}…")
        self._opening = page = RecordedPage(path, lambda: self._window.bench.side_jobs)
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
            self._window.show_failure(failure)
        if page is not self.page:
            page.deleteLater()

    def _kernel_page(self, path: Path) -> OwnKernelPage:
        window = self._window
        page = OwnKernelPage(path, window.bench.sources, lambda: window.bench.side_jobs)
        page.busy_changed.connect(window.header.show_busy)
        page.busy_changed.connect(lambda busy: window.header.show_progress(None if busy else 0.0))
        return page

    def _take(self, page: OwnKernelPage | RecordedPage) -> None:
        """Put a page in the place of the one before."""
        window = self._window
        self._forget()
        self.page = page
        page.failed.connect(window.show_failure)
        page.words_changed.connect(lambda: self.shown is page and self._say_words())
        page.step.exports.said.connect(window.status.say)
        page.step.exports.failed.connect(window.banner.say)
        for pane in {page.source, page.step.source}:
            pane.failed.connect(window.banner.say)
            pane.saved.connect(window.bench.saved)
        window.stack.addWidget(page)

    def show(self) -> None:
        """Show the page of the file that is open."""
        if self.page is None:
            return
        window = self._window
        window.banner.hide()
        window.stack.setCurrentWidget(self.page)
        recorded = isinstance(self.page, RecordedPage)
        title = "Recording" if recorded else "Own kernel"
        window.header.show_own(title, str(self.page.path))
        window.sidebar.mark_own(title, self.page.path.name)
        window.sidebar.show_images(False)
        window.actions_.show_variants([])
        self._say_words()

    def _say_words(self) -> None:
        """Say of the file that is open what it is good for."""
        if self.page is not None:
            self._window.status.say(f"{self.page.path.name} {self.page.words}".strip())

    def close_down(self) -> None:
        """Let nothing play on, and give up an animation: the window closes, or another file takes the page's place."""
        self._opening = None
        if self.page is not None:
            self.page.step.close_down()

    def _forget(self) -> None:
        self.close_down()
        if self.page is not None:
            self.page.stop()
            self._window.stack.removeWidget(self.page)
            self.page.deleteLater()
            self.page = None
