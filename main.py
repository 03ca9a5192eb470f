"""Lockstep shows how parallel algorithms run on a GPU. `python main.py` opens the window, --help lists the commands."""

from __future__ import annotations

import multiprocessing
import os
import sys
from pathlib import Path
from typing import Any


def _open_window(file: Path | None = None, engine: Any = "") -> int:
    if obstacle := _display_obstacle() or _library_obstacle():
        return _report(obstacle)
    try:
        from gui.app import main
    except ImportError as error:
        return _report_import_error(error)
    return main([str(file)] if file is not None else [], engine)


def _tour(folder: str) -> int:
    if obstacle := _library_obstacle():
        return _report(obstacle)
    try:
        from gui.driving.tour import run_tour
    except ImportError as error:
        return _report_import_error(error)
    return run_tour(folder) or 0


def _measure_window(page: Path, repetitions: int) -> int:
    if obstacle := _library_obstacle():
        return _report(obstacle)
    try:
        from gui.driving.moves import measure_moves
    except ImportError as error:
        return _report_import_error(error)
    return measure_moves(page, repetitions)


def _measure_openings(repetitions: int) -> Any:
    from gui.driving.startup_time import measure_startups

    return measure_startups(repetitions)


def _display_obstacle() -> str:
    """Return why no window can open on this machine, and what to do instead; "" if one can."""
    from gpu.base.installation import COMMAND

    if not sys.platform.startswith("linux") or "QT_QPA_PLATFORM" in os.environ:
        return ""
    if os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        return ""
    return (
        f"There is no display to open a window on. `{COMMAND} tour DIR` saves pictures of the window instead, and "
        f"`{COMMAND} run convolution` runs without one."
    )


def _library_obstacle() -> str:
    from gui.qt.system_libraries import find_obstacle

    return find_obstacle()


def _report_import_error(error: ImportError) -> int:
    """Report a missing package."""
    from gpu.base.installation import format_install_command

    return _report(f"The window needs a package that is not installed: {error}. Run {format_install_command()}.")


def _report(message: str) -> int:
    print(f"lockstep: {message}", file=sys.stderr)
    return 2


def _run() -> int:
    try:
        from gpu.cli.main import Desktop
        from gpu.cli.main import main as run_command
    except KeyboardInterrupt:
        print("lockstep: Stopped.", file=sys.stderr)
        return 130
    return run_command(sys.argv[1:], Desktop(_open_window, _tour, _measure_window, _measure_openings))


def main() -> int:
    """Run the command of this process's arguments; return its exit code."""
    multiprocessing.freeze_support()
    # PYTHONSAFEPATH removes this folder from the module path, but Lockstep's packages are here.
    if os.environ.pop("PYTHONSAFEPATH", None):
        sys.path.insert(0, str(Path(__file__).resolve().parent))
    if sys.argv[1:2] != ["simulate"]:
        return _run()
    from gpu.cli.user_code.supervision import run_supervised

    return run_supervised(_run)  # before importing modules that start threads


if __name__ == "__main__":
    sys.exit(main())
