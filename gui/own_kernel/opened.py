"""The kernel file or recording of the user's that is open in a window, and its page there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PyQt6.QtWidgets import QFileDialog

from gpu.errors import InputError
from gui.editor.files import KERNEL_FILES, read_kernel
from gui.own_kernel.page import OwnKernelPage
from gui.own_kernel.recorded import RecordedPage

if TYPE_CHECKING:
    from gui.main_window import MainWindow

RECORDINGS = (".lockstep", ".trace")
ENDINGS = (".cu", ".cuh", *RECORDINGS)
_FILES = f"Kernels and recordings (*{' *'.join(ENDINGS)});;{KERNEL_FILES}"


class OwnKernel:
    """Opens a kernel file or a recording in a window, and shows its page; the next file takes its place."""

    def __init__(self, window: MainWindow) -> None:
        self._window = window
        self.page: OwnKernelPage | RecordedPage | None = None

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
        """Open a file; what was shown stays if a kernel cannot be read."""
        window, path = self._window, path.absolute()
        if path.suffix.lower() in RECORDINGS:
            # Read again where it is open already: it may be another by now.
            self._take(RecordedPage(path, lambda: window.bench.side_jobs))
        else:
            try:
                read_kernel(path)
            except InputError as error:
                window.banner.say(error.message, "Open a CUDA C++ file.")
                return
            if self.page is None or self.page.path != path:
                self._take(self._kernel_page(path))
        self.show()

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
        window.status.say(f"{self.page.path.name} {'is played, not run' if recorded else 'runs on the simulator'}")

    def close_down(self) -> None:
        """Let nothing play on, and give up an animation: the window closes, or another file takes the page's place."""
        if self.page is not None:
            self.page.step.close_down()

    def _forget(self) -> None:
        self.close_down()
        if self.page is not None:
            self.page.stop()
            self._window.stack.removeWidget(self.page)
            self.page.deleteLater()
            self.page = None
