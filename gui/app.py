"""The application: makes the window, shows it, and leaves nothing behind."""

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
from typing import TYPE_CHECKING

from PyQt6.QtCore import QMessageLogContext, QSize, QTimer, QtMsgType, qInstallMessageHandler
from PyQt6.QtGui import QIcon
from PyQt6.QtWidgets import QApplication

from gui.painting.style import ICONS
from gui.qt.later import every

if TYPE_CHECKING:
    from gpu.distributed.asked import Asked
    from gui.window.main_window import MainWindow

_HEARTBEAT_MS = 200
_FRAME = QSize(16, 48)
"""Pixels that a desktop puts around a window, at most: a foot below the screen is no foot."""
_MADE_MS = 10_000
"""After which the window has made its pages."""


def application(argv: Sequence[str] = ("lockstep",)) -> QApplication:
    """Return the application, made once."""
    app = QApplication.instance()
    if isinstance(app, QApplication):
        return app
    app = QApplication(list(argv))
    app.setApplicationName("Lockstep")
    app.setApplicationDisplayName("Lockstep")
    app.setOrganizationName("Lockstep")
    # The style sheet builds on Fusion, which looks the same everywhere.
    app.setStyle("Fusion")
    app.setWindowIcon(QIcon(str(ICONS / "lockstep.svg")))
    if app.platformName() == "offscreen":
        qInstallMessageHandler(_say_what_matters)
    return app


def _say_what_matters(kind: QtMsgType, context: QMessageLogContext, message: str | None) -> None:
    """Pass on Qt's messages but for the one that a window without a screen always gives."""
    if message and "propagateSizeHints" not in message:
        print(message, file=sys.stderr)


def _end_at_once_by_ctrl_c() -> None:
    """Until the window is there, let Ctrl+C end the process: Python's exception may be raised where it is lost."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _end_by_signals(end: Callable[[], None]) -> None:
    """Let Ctrl+C in the terminal, the terminal's end and a polite kill be heard; a second one ends the process."""
    names = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    heard = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]  # as nohup asks

    def hear(*_: object) -> None:
        for number in heard:
            signal.signal(number, signal.SIG_DFL)
        end()

    for number in heard:
        signal.signal(number, hear)


def _leave(window: MainWindow, app: QApplication) -> None:
    if reason := window.leave():
        with suppress(OSError):  # the terminal may be gone
            print(f"lockstep: {reason}", file=sys.stderr, flush=True)
    app.exit()  # a dialog that is open would hold a mere quit() up


def first_size(room: QSize) -> QSize | None:
    """Return how large a window is the first time: a good part of a large screen, and None for all of a small one."""
    if room.width() < 1280 + _FRAME.width() or room.height() < 720 + _FRAME.height():
        return None
    return QSize(min(max(1280, room.width() * 4 // 5), 1760), min(max(720, room.height() * 4 // 5), 1000))


def _begin(window: MainWindow, file: Path | None) -> None:
    """Look around, and open a file: an image in the place of the first one, others where they belong."""
    from gpu.files.images import READABLE

    image = file is not None and file.suffix.lower() in READABLE
    window.begin(file.absolute() if file is not None and image else None)
    if file is not None and not image:
        window.files.open(file.absolute())


def _go_on(
    say: Callable[[BaseException], object], kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Say what went wrong in a part of the window, where Qt would end all of it."""
    sys.__excepthook__(kind, error, trace)
    with suppress(RuntimeError):  # the banner has gone with its window
        say(error)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Let Python's collector rest: what is made here stays, and it would go through all of that again and again."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def main(argv: Sequence[str] = (), engine: str | Asked = "") -> int:
    """Open the window; `argv` may name a file and an engine, `engine` also a cluster. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="lockstep", description="See how parallel algorithms run on a GPU.")
    parser.add_argument("file", nargs="?", type=Path, help="a file to open: an image, a kernel, a program")
    parser.add_argument("--engine", choices=("auto", "cuda", "simulator", "null"), default="")
    given = parser.parse_args(list(argv))
    _end_at_once_by_ctrl_c()
    app = application()
    with _uncollected():
        from gui.window.main_window import MainWindow

        window = MainWindow(engine=given.engine or engine)
    screen = window.screen()
    size = (
        first_size(screen.availableSize()) if window.memory.geometry is None and screen is not None else window.size()
    )
    sys.excepthook = partial(_go_on, window.messages.show_mistake)
    if size is None:
        window.showMaximized()
    else:
        window.resize(size)
        window.show()
    QTimer.singleShot(0, lambda: _begin(window, given.file))
    # What is there when all pages are made stays: Python's collector, which stops everything, need not go through it.
    QTimer.singleShot(_MADE_MS, gc.freeze)
    app.commitDataRequest.connect(lambda _: window.kept.keep())  # the session ends, and waits for nobody's answer
    _end_by_signals(lambda: _leave(window, app))
    # Python hears signals only between its own steps, so a timer takes one now and then.
    heartbeat = every(_HEARTBEAT_MS, lambda: None, app)
    heartbeat.start()
    return app.exec()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
