"""The file of what is remembered: plain JSON, of which nothing is run, and which never keeps the window shut."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from PyQt6.QtCore import QStandardPaths

from gpu.errors import InputError
from gpu.files.opening import check_target, name_of, os_errors, read_bytes, replacing

MOST_BYTES = 2**20
"""Of the largest file that is read."""


def settings_path() -> Path:
    """Return where the platform keeps a program's settings; LOCKSTEP_SETTINGS names another file."""
    if "LOCKSTEP_SETTINGS" in os.environ:
        return Path(os.environ["LOCKSTEP_SETTINGS"])
    folder = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.GenericConfigLocation)
    return Path(folder) / "Lockstep" / "settings.json"


class SettingsFile:
    """Values by their keys, as they were when the file was last written.

    A file that is no such thing is given another name, and all begins anew.

    Parameters
    ----------
    path : Path
    is_sound : callable
        (key, value) -> whether a value, of whatever JSON holds, is of its key's kind.
    """

    def __init__(self, path: Path, is_sound: Callable[[str, Any], bool]) -> None:
        self._path, self._is_sound = path, is_sound
        self._changed: dict[str, Any] = {}
        self.complaint = ""
        """One sentence on what is wrong with the file, or with the place where it should be; "" where nothing is."""
        self._can_write = True
        self._values = self._begin()

    def value(self, key: str) -> Any:
        """Return what was put last under a key; None where nothing was."""
        return self._values.get(key)

    def put(self, key: str, value: Any) -> None:
        """Remember a value, in the file once that is written."""
        self._values[key] = self._changed[key] = value

    def write(self) -> None:
        """Write what has been put, where that can be; what another window has written meanwhile stays."""
        if not self._changed or not self._can_write:
            return
        with suppress(InputError):
            self._values = self._read() | self._changed
        with suppress(InputError), replacing(self._path) as file:
            file.write(json.dumps(self._values, indent=1).encode())
            self._changed.clear()

    def _begin(self) -> dict[str, Any]:
        try:
            with os_errors(name_of(self._path.parent), "made"):
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            values = self._read()
        except InputError:
            values = self._put_away()
        try:
            check_target(self._path)
        except InputError as error:
            self._can_write = False
            self.complaint = self.complaint or f"What you choose is not remembered: {error.message}"
        return values

    def _read(self) -> dict[str, Any]:
        """Return what is in the file, nothing where there is none; InputError where it is not what was written."""
        if not os.path.lexists(self._path):
            return {}
        try:
            values = json.loads(read_bytes(self._path, MOST_BYTES))
        except (ValueError, RecursionError):
            raise InputError(f"{name_of(self._path)} is damaged.") from None
        if not isinstance(values, dict) or not all(self._is_sound(key, value) for key, value in values.items()):
            raise InputError(f"{name_of(self._path)} is damaged.")
        return values

    def _put_away(self) -> dict[str, Any]:
        """Give whatever is in the file's place another name: it may be all that is left of something."""
        names = (self._path.with_stem(f"{self._path.stem}-unreadable-{number}") for number in range(1, 1000))
        try:
            other = next(name for name in names if not os.path.lexists(name))
            self._path.rename(other)
            self.complaint = (
                f"The settings could not be read, so all is as at the first start; they are kept as {name_of(other)}."
            )
        except (OSError, ValueError, StopIteration):
            # What cannot be moved is not written over either.
            self._can_write = False
            self.complaint = "The settings cannot be read, so all is as at the first start and nothing is remembered."
        return {}
