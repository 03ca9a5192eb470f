"""The kernel file of the user's that is open in a window, and its page there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gpu.errors import InputError
from gui.editor.files import ask_kernel, read_kernel
from gui.own_kernel.page import OwnKernelPage

if TYPE_CHECKING:
    from gui.main_window import MainWindow

ENDINGS = (".cu", ".cuh")


class OwnKernel:
    """Opens a kernel file in a window, and shows its page; the next file takes its place."""

    def __init__(self, window: MainWindow) -> None:
        self._window = window
        self.page: OwnKernelPage | None = None

    @property
    def shown(self) -> OwnKernelPage | None:
        """Return the page while it is the one that is shown."""
        return self.page if self.page is not None and self._window.stack.currentWidget() is self.page else None

    def ask(self) -> None:
        """Ask for a file and open it."""
        path = ask_kernel(self._window)
        if path is not None:
            self.open(path)

    def open(self, path: Path) -> None:
        """Open a file; what was shown stays if it cannot be read."""
        window, path = self._window, path.absolute()
        try:
            read_kernel(path)
        except InputError as error:
            window.banner.say(error.message, "Open a CUDA C++ file.")
            return
        if self.page is None or self.page.path != path:
            self._forget()
            self.page = OwnKernelPage(path, window.bench.sources, lambda: window.bench.side_jobs)
            self.page.failed.connect(window.show_failure)
            self.page.busy_changed.connect(window.header.show_busy)
            self.page.busy_changed.connect(lambda busy: window.header.show_progress(None if busy else 0.0))
            for pane in (self.page.source, self.page.step.source):
                pane.failed.connect(window.banner.say)
                pane.saved.connect(window.bench.saved)
            window.stack.addWidget(self.page)
        self.show()

    def show(self) -> None:
        """Show the page of the file that is open."""
        if self.page is None:
            return
        window = self._window
        window.banner.hide()
        window.stack.setCurrentWidget(self.page)
        window.header.show_own(str(self.page.path))
        window.sidebar.mark_own(self.page.path.name)
        window.sidebar.show_images(False)
        window.actions_.show_variants([])
        window.status.say(f"{self.page.path.name} runs on the simulator")

    def _forget(self) -> None:
        if self.page is not None:
            self.page.stop()
            self._window.stack.removeWidget(self.page)
            self.page.deleteLater()
            self.page = None
