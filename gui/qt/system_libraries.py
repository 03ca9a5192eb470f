"""System libraries that Qt needs on Linux: which are missing, and the command that installs them."""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
from collections.abc import Callable, Mapping, Sequence

OFFSCREEN_LIBRARIES: dict[str, str] = {
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libxkbcommon.so.0": "libxkbcommon0",
    "libdbus-1.so.3": "libdbus-1-3",
    "libfontconfig.so.1": "libfontconfig1",
    "libglib-2.0.so.0": "libglib2.0-0",
}
"""System libraries that Qt needs to draw without a screen, with their Debian packages."""

WINDOW_LIBRARIES: dict[str, str] = OFFSCREEN_LIBRARIES | {
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libX11-xcb.so.1": "libx11-xcb1",
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-sync.so.1": "libxcb-sync1",
    "libxcb-xfixes.so.0": "libxcb-xfixes0",
    "libxcb-xkb.so.1": "libxcb-xkb1",
}
"""System libraries that Qt's xcb plugin needs for a window, with their Debian packages."""


def can_load_library(library: str) -> bool:
    """Return whether the system's loader finds a library and all its dependencies."""
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def missing_libraries(libraries: Mapping[str, str], can_load: Callable[[str], bool] | None = None) -> dict[str, str]:
    """Return the libraries that do not load, with their packages."""
    if platform.system() != "Linux":
        return {}
    can_load = can_load or can_load_library
    return {library: package for library, package in libraries.items() if not can_load(library)}


def apt_command(packages: Sequence[str]) -> str:
    """Return the command that installs packages."""
    return f"sudo apt-get install -y --no-install-recommends {' '.join(packages)}"


def find_obstacle() -> str:
    """Return the names of all missing libraries, and how to install them; "" if none is missing.

    Qt itself ends the process at the first missing library, and its message names another one.
    """
    on_x = "DISPLAY" in os.environ and not {"WAYLAND_DISPLAY", "QT_QPA_PLATFORM"} & os.environ.keys()
    missing = missing_libraries(WINDOW_LIBRARIES if on_x else OFFSCREEN_LIBRARIES)
    if not missing:
        return ""
    reason = f"The window needs system libraries that are not installed: {', '.join(missing)}."
    if not shutil.which("apt-get"):
        return f"{reason} Install them with this system's package manager."
    return f"{reason} Run: {apt_command(tuple(missing.values()))}"
