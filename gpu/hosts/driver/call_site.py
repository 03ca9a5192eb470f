"""The line of a script that launches a kernel."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

from gpu.base.paths import ROOT

_PACKAGE_FOLDER = str(ROOT / "gpu")
_LIBRARIES = ("pycuda", "pytools")
"""Packages whose Python files run between the script and the driver."""


def find_call_site() -> str:
    """Return the innermost line outside Lockstep and the libraries, as "script.py:12"; "" if there is none."""
    frame = sys._getframe(1)  # noqa: SLF001
    for _ in itertools.count():
        file = frame.f_code.co_filename
        module = str(frame.f_globals.get("__name__", ""))
        if not file.startswith(_PACKAGE_FOLDER) and module.partition(".")[0] not in _LIBRARIES:
            return f"{Path(file).name}:{frame.f_lineno}"
        if frame.f_back is None:
            break
        frame = frame.f_back
    return ""
