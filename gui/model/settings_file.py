"""The settings file: plain JSON that is never executed; a damaged file never prevents the window from opening."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from gpu.base.errors import InputError
from gpu.files.file_access import check_target, convert_os_errors, format_path, read_bytes, replace_file

MAX_FILE_BYTES = 2**20
"""Maximum size of a file that is read."""


class SettingsFile:
    """Key-value settings as of the last write.

    A damaged file is renamed, and the settings start empty.

    Parameters
    ----------
    is_valid_value : callable
        (key, value) -> whether a JSON value has the type that its key requires.
    """

    def __init__(self, path: Path, is_valid_value: Callable[[str, Any], bool]) -> None:
        self._path, self._is_valid_value = path, is_valid_value
        self._changed_values: dict[str, Any] = {}
        self.problem_message = ""
        """A sentence about a problem with the file or its folder, or ""."""
        self._can_write = True
        self._values = self._load()

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been saved."""
        return not self._values

    def get_value(self, key: str) -> Any:
        """Return the value of a key, or None."""
        return self._values.get(key)

    def set_value(self, key: str, value: Any) -> None:
        """Set a value; `write` saves it."""
        self._values[key] = self._changed_values[key] = value

    def write(self) -> None:
        """Save the changed values, if possible; values that another window has saved meanwhile are kept."""
        if not self._changed_values or not self._can_write:
            return
        with suppress(InputError):
            self._values = self._read() | self._changed_values
        with suppress(InputError), replace_file(self._path) as file:
            # A line per setting: `indent` would take Python's own encoder, which is ten times slower.
            lines = (f" {json.dumps(key)}: {json.dumps(value)}" for key, value in self._values.items())
            file.write("{{\n{}\n}}".format(",\n".join(lines)).encode())
            self._changed_values.clear()

    def _load(self) -> dict[str, Any]:
        try:
            with convert_os_errors(format_path(self._path.parent), "create"):
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            values = self._read()
        except InputError:
            values = self._rename_damaged_file()
        try:
            check_target(self._path)
        except InputError as error:
            self._can_write = False
            self.problem_message = self.problem_message or f"Settings are not saved. {error.message}"
        return values

    def _read(self) -> dict[str, Any]:
        """Return the file's contents, {} without a file; raise InputError if the file is damaged."""
        if not os.path.lexists(self._path):
            return {}
        try:
            values = json.loads(read_bytes(self._path, MAX_FILE_BYTES))
        except (ValueError, RecursionError):
            raise InputError(f"{format_path(self._path)} is damaged.") from None
        if not isinstance(values, dict) or not all(self._is_valid_value(key, value) for key, value in values.items()):
            raise InputError(f"{format_path(self._path)} is damaged.")
        return values

    def _rename_damaged_file(self) -> dict[str, Any]:
        """Rename the damaged file instead of overwriting it, and return empty settings."""
        names = (self._path.with_stem(f"{self._path.stem}-unreadable-{number}") for number in range(1, 1000))
        try:
            backup_path = next(name for name in names if not os.path.lexists(name))
            self._path.rename(backup_path)
            backup_note = f"The old file is kept as {format_path(backup_path)}."
            self.problem_message = f"Cannot read the settings, so defaults are used. {backup_note}"
        except (OSError, ValueError, StopIteration):
            # A file that cannot be renamed is not overwritten either.
            self._can_write = False
            self.problem_message = "Cannot read the settings, so defaults are used and changes are not saved."
        return {}
