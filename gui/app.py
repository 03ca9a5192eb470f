"""The application: create the window, show it, and end cleanly."""

from __future__ import annotations

import argparse
import gc
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, cast

from PyQt6.QtCore import QEvent, QMessageLogContext, QSize, QTimer, QtMsgType, pyqtSignal, qInstallMessageHandler
from PyQt6.QtGui import QFileOpenEvent, QIcon
from PyQt6.QtWidgets import QApplication

from gui.painting.style import ICONS
from gui.qt.timers import create_repeating_timer

if TYPE_CHECKING:
    from gpu.distributed.cluster.settings import ClusterSettings
    from gui.window.main_window import MainWindow

_HEARTBEAT_MS = 200
_FRAME = QSize(16, 48)
"""Maximum size of a desktop's window frame in pixels; the status line must not end up below the screen."""
_PAGES_MS = 10_000
"""Time after which the window has created its pages."""


class Application(QApplication):
    """The application, which emits `file_opened` with the path of each file that is opened with it on macOS."""

    file_opened = pyqtSignal(Path)

    def event(self, event: QEvent | None) -> bool:
        """Handle the event with which macOS passes a file; other systems pass it as an argument."""
        if event is not None and event.type() == QEvent.Type.FileOpen:
            self.file_opened.emit(Path(cast(QFileOpenEvent, event).file()))
            return True
        return super().event(event)


_created: list[QApplication] = []
"""Keeps the application until the process ends: with it, Qt would delete widgets that Python still refers to."""


def application(argv: Sequence[str] = ("lockstep",)) -> QApplication:
    """Return the application, which is created on first use."""
    app = QApplication.instance()
    if isinstance(app, QApplication):
        return app
    app = Application(list(argv))
    _created.append(app)
    app.setApplicationName("Lockstep")
    app.setApplicationDisplayName("Lockstep")
    app.setOrganizationName("Lockstep")
    app.setDesktopFileName("lockstep")
    # The style sheet builds on Fusion, which looks the same everywhere.
    app.setStyle("Fusion")
    app.setWindowIcon(QIcon(str(ICONS / "lockstep.svg")))
    if app.platformName() == "offscreen":
        qInstallMessageHandler(_print_message)
    return app


def _print_message(kind: QtMsgType, context: QMessageLogContext, message: str | None) -> None:
    """Print Qt's messages, except the one that the offscreen platform always emits."""
    if message and "propagateSizeHints" not in message:
        print(message, file=sys.stderr)


def _reset_interrupt_handler() -> None:
    """Let Ctrl+C end the process until the window is open: a KeyboardInterrupt could be raised where it is lost."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def handle_signals(close_window: Callable[[], None]) -> None:
    """Close the window on Ctrl+C, the terminal's end or a termination signal; a second signal ends the process.

    The event loop closes it: the signal may interrupt a function that holds a lock, which closing needs too.
    """
    names = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    handled = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]  # nohup ignores SIGHUP

    def handle(*_: object) -> None:
        for number in handled:
            signal.signal(number, signal.SIG_DFL)
        QTimer.singleShot(0, close_window)

    for number in handled:
        signal.signal(number, handle)


def _close_window(window: MainWindow, app: QApplication) -> None:
    if reason := window.close_without_question():
        with suppress(OSError):  # the terminal may be gone
            print(f"lockstep: {reason}", file=sys.stderr, flush=True)
    app.exit()  # an open dialog would delay quit()


def compute_initial_size(available_size: QSize) -> QSize | None:
    """Return the window's initial size: a large part of a large screen, or None to fill a small one."""
    if available_size.width() < 1280 + _FRAME.width() or available_size.height() < 720 + _FRAME.height():
        return None
    return QSize(
        min(max(1280, available_size.width() * 4 // 5), 1760), min(max(720, available_size.height() * 4 // 5), 1000)
    )


def _open_first_file(window: MainWindow, file: Path | None, is_first_start: bool) -> None:
    """Start the window's work, and open a file: an image as the first input, other files after it.

    At the first start without a file, the window offers ways to begin.
    """
    from gpu.files.images import READABLE

    image = file is not None and file.suffix.lower() in READABLE
    window.load_first_input(file.absolute() if file is not None and image else None)
    if file is not None and not image:
        window.files.open_file(file.absolute())
    if file is None and is_first_start:
        window.show_start()


def _report_error(
    show_error: Callable[[BaseException], object],
    kind: type[BaseException],
    error: BaseException,
    trace: TracebackType | None,
) -> None:
    """Report an unhandled exception, where Qt would end the application."""
    sys.__excepthook__(kind, error, trace)
    with suppress(RuntimeError):  # the banner was deleted with its window
        show_error(error)


@contextmanager
def _garbage_collection_disabled() -> Iterator[None]:
    """Disable the garbage collector: objects created here live on, and it would scan them again and again."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def main(argv: Sequence[str] = (), engine: str | ClusterSettings = "") -> int:
    """Open the window; `argv` may name a file and an engine, `engine` may also be a cluster. Return the exit status."""
    parser = argparse.ArgumentParser(prog="lockstep", description="See how parallel algorithms run on a GPU.")
    parser.add_argument("file", nargs="?", type=Path, help="a file to open: an image, a kernel, a program, a sequence")
    parser.add_argument("--engine", choices=("auto", "cuda", "simulator", "null"), default="")
    options = parser.parse_args(list(argv))
    _reset_interrupt_handler()
    app = application()
    with _garbage_collection_disabled():
        from gui.window.main_window import MainWindow

        window = MainWindow(engine=options.engine or engine)
    is_first_start = window.saved_settings.is_new
    screen = window.screen()
    size = (
        compute_initial_size(screen.availableSize())
        if window.saved_settings.geometry is None and screen is not None
        else window.size()
    )
    sys.excepthook = partial(_report_error, window.messages.show_internal_error)
    if size is None:
        window.showMaximized()
    else:
        window.resize(size)
        window.show()
    QTimer.singleShot(0, lambda: _open_first_file(window, options.file, is_first_start))
    if isinstance(app, Application):
        app.file_opened.connect(window.files.open_file)
    # Objects that exist once all pages are created live on: the collector need not scan them again.
    QTimer.singleShot(_PAGES_MS, gc.freeze)
    app.commitDataRequest.connect(
        lambda _: window.draft_recovery.save_drafts()
    )  # the session ends: there is no time for a dialog
    handle_signals(lambda: _close_window(window, app))
    # Python handles signals only between its own instructions, so a timer executes some regularly.
    heartbeat = create_repeating_timer(_HEARTBEAT_MS, lambda: None, app)
    heartbeat.start()
    return app.exec()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
