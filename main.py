"""Lockstep shows how parallel algorithms run on a GPU. `python main.py` opens the window, --help lists the commands."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import sys
from pathlib import Path
from typing import Any


def _open_window(file: Path | None = None, engine: Any = "") -> int:
    if complaint := _display_obstacle() or _library_obstacle():
        print(f"lockstep: {complaint}", file=sys.stderr)
        return 2
    try:
        from gui.app import main
    except ImportError as error:
        return _report_import_error(error)
    return main([str(file)] if file is not None else [], engine)


def _tour(folder: str) -> int:
    try:
        from gui.driving.tour import run_tour
    except ImportError as error:
        return _report_import_error(error)
    return run_tour(folder) or 0


def _measure_window(page: Path, repetitions: int) -> int:
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
    if not sys.platform.startswith("linux") or "QT_QPA_PLATFORM" in os.environ:
        return ""
    if os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        return ""
    return (
        "There is no display to open a window on. `python main.py tour DIR` saves pictures of the window instead, and "
        "`python main.py run convolution` runs without one."
    )


def _library_obstacle() -> str:
    """Return the names of all missing system libraries that Qt needs, and how to install them; "" if none is missing.

    Qt itself ends the process at the first missing library, and its message names another one.
    """
    from tools.installation import probe

    on_x = "DISPLAY" in os.environ and "WAYLAND_DISPLAY" not in os.environ and "QT_QPA_PLATFORM" not in os.environ
    needed = probe.WINDOW_LIBRARIES if on_x else probe.OFFSCREEN_LIBRARIES
    missing = probe.missing_libraries(needed)
    if not missing:
        return ""
    reason = f"The window needs system libraries that are not installed: {', '.join(missing)}."
    if not shutil.which("apt-get"):
        return f"{reason} Install them with this system's package manager."
    return f"{reason} Run: {probe.apt_command(tuple(missing.values()))}"


def _report_import_error(error: ImportError) -> int:
    """Report a missing package or system library."""
    remedy = "Run `make setup`, or `pip install -r requirements.txt`."
    if ".so" in str(error):
        remedy = "Run `make run`, which installs Qt's system libraries or prints how to."
    print(f"lockstep: The window needs a package or library that is not installed: {error}. {remedy}", file=sys.stderr)
    return 2


def _run() -> int:
    try:
        from gpu.cli.main import Desktop, main
    except KeyboardInterrupt:
        print("lockstep: Stopped.", file=sys.stderr)
        return 130
    return main(sys.argv[1:], Desktop(_open_window, _tour, _measure_window, _measure_openings))


def _main() -> int:
    # PYTHONSAFEPATH removes this folder from the module path, but Lockstep's packages are here.
    if os.environ.pop("PYTHONSAFEPATH", None):
        sys.path.insert(0, str(Path(__file__).resolve().parent))
    if sys.argv[1:2] != ["simulate"]:
        return _run()
    from gpu.cli.user_code.supervision import run_supervised

    return run_supervised(_run)  # before importing modules that start threads


if __name__ == "__main__":
    multiprocessing.freeze_support()
    sys.exit(_main())
