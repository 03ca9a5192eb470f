"""Lockstep as an installed package: its entry point, and the extension of IPython that `%load_ext lockstep` loads.

The program is in the folder `_app`, as in a checkout. Only this package is on Python's module path; so the names of
Lockstep's own packages, `gpu` and `gui`, do not collide with others until Lockstep starts.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).resolve().parent
APP = _FOLDER / "_app" if (_FOLDER / "_app").is_dir() else _FOLDER.parents[1]
"""Folder of main.py, `gpu/` and `gui/`: within this package, or the checkout of an editable installation."""


def add_app_to_path() -> None:
    """Make Lockstep's packages importable in this process and in the processes that it starts.

    Raises
    ------
    ImportError
        If another package with the name of one of Lockstep's has been imported.
    """
    if str(APP) not in sys.path:
        sys.path.insert(0, str(APP))
    for name in ("gpu", "gui"):
        file = getattr(sys.modules.get(name), "__file__", None)
        if name in sys.modules and (file is None or APP not in Path(file).resolve().parents):
            raise ImportError(f"Lockstep's package {name!r} has the name of one that is imported already, from {file}.")


def main() -> int:
    """Run the command `lockstep`; return its exit code."""
    add_app_to_path()
    from main import main as run

    return run()


def load_ipython_extension(shell: Any) -> None:
    """Register the cell magic `%%lockstep` in an IPython shell."""
    from lockstep.notebook import KernelRun, run_cell

    def lockstep(line: str, cell: str) -> KernelRun:
        from IPython.core.error import UsageError

        try:
            return run_cell(line, cell, shell.user_ns)
        except ValueError as error:
            raise UsageError(str(error)) from None

    shell.register_magic_function(lockstep, "cell")
