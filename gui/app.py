"""The application: makes the window, shows it, and leaves nothing behind."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from PyQt6.QtCore import QTimer
from PyQt6.QtWidgets import QApplication


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
    return app


def main(argv: Sequence[str] = ()) -> int:
    """Open the window; `argv` may name an image and an engine. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="lockstep", description="See how parallel algorithms run on a GPU.")
    parser.add_argument("image", nargs="?", type=Path, help="an image to open")
    parser.add_argument("--engine", choices=("auto", "cuda", "simulator", "null"), default="")
    given = parser.parse_args(list(argv))
    app = application()
    from gui.main_window import MainWindow

    window = MainWindow(engine=given.engine)
    window.show()
    QTimer.singleShot(0, lambda: window.begin(given.image.absolute() if given.image else None))
    return app.exec()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
