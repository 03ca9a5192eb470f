"""The settings that the window saves between sessions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from PyQt6.QtCore import QByteArray

from gpu.base import folders
from gpu.base.errors import InputError
from gpu.declaration.pattern import Pattern
from gpu.distributed.cluster.settings import ClusterSettings, Tls
from gpu.timing.gpus import list_gpu_keys
from gui.model.settings_file import SettingsFile
from gui.painting.theme import FONT_SIZES, THEMES

MAX_RECENT = 8


class SavedSettings:
    """Typed access to the saved settings; invalid values count as not saved.

    Parameters
    ----------
    path : Path or None
        The settings file; None for the platform's default.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._store = SettingsFile(path or folders.settings_file(), _is_valid_value)

    @property
    def is_new(self) -> bool:
        """Whether nothing has been saved yet, as at the first start."""
        return self._store.is_empty

    def _read_choice(self, key: str, allowed: Any, default: str) -> str:
        value = self._store.get_value(key)
        return value if isinstance(value, str) and (allowed is None or value in allowed) else default

    def _save_value(self, key: str, value: Any) -> None:
        """Save a setting at once, in case the window does not close normally."""
        self._store.set_value(key, value)
        self._store.write()

    @property
    def theme(self) -> str:
        """The theme: "dark" or "light"."""
        return self._read_choice("theme", THEMES, "dark")

    @theme.setter
    def theme(self, name: str) -> None:
        self._save_value("theme", name)

    @property
    def text_size(self) -> str:
        """The text size: a name of `FONT_SIZES`."""
        return self._read_choice("text_size", FONT_SIZES, "normal")

    @text_size.setter
    def text_size(self, name: str) -> None:
        self._save_value("text_size", name)

    @property
    def engine(self) -> str:
        """The selected engine."""
        return self._read_choice("engine", ("auto", "cuda", "simulator", "null"), "auto")

    @engine.setter
    def engine(self, name: str) -> None:
        self._save_value("engine", name)

    @property
    def cluster(self) -> ClusterSettings:
        """The cluster that was used last; the window does not connect to it automatically."""
        saved = self._store.get_value("cluster") or []
        scheduler, workers, *files = saved if len(saved) in (2, 5) else ["", "0"]
        count = int(workers) if workers.isdecimal() and len(workers) < _DIGITS else 0
        return ClusterSettings(scheduler, 0 if scheduler else count, Tls(*files) if files else None)

    @cluster.setter
    def cluster(self, request: ClusterSettings) -> None:
        files = [request.tls.ca, request.tls.cert, request.tls.key] if request.tls is not None else []
        self._save_value("cluster", [request.scheduler, str(request.workers), *files])

    @property
    def gpu(self) -> str:
        """The key of the GPU that times are modeled for; "" if none was selected."""
        return self._read_choice("gpu", list_gpu_keys(), "")

    @gpu.setter
    def gpu(self, key: str) -> None:
        self._save_value("gpu", key)

    @property
    def scale(self) -> str:
        """The histogram's scale: "linear" or "log"."""
        return self._read_choice("histogram_scale", ("linear", "log"), "linear")

    @scale.setter
    def scale(self, name: str) -> None:
        self._save_value("histogram_scale", name)

    @property
    def pattern(self) -> str:
        """The pattern that was shown last."""
        return self._read_choice("pattern", None, "")

    @pattern.setter
    def pattern(self, name: str) -> None:
        self._store.set_value("pattern", name)

    @property
    def image(self) -> Path | None:
        """The image that was open last."""
        return next(_iterate_valid_paths([self._read_choice("image", None, "")]), None)

    @image.setter
    def image(self, path: Path) -> None:
        self._save_value("image", str(path))

    def variant(self, pattern: Pattern) -> str:
        """Return the variant that was selected last, by default the first of the ladder."""
        names = {variant.name for variant in pattern.variants}
        return self._read_choice(f"patterns/{pattern.name}/variant", names, pattern.first_rung.name)

    def params(self, pattern: Pattern) -> dict[str, Any]:
        """Return the saved parameters; an invalid value is replaced by its default."""
        return pattern.check(self._read_valid_params(pattern, "params"))

    def list_saved_params(self, pattern: Pattern) -> set[str]:
        """Return the names of the parameters with a valid saved value."""
        return set(self._read_valid_params(pattern, "params"))

    def step(self, pattern: Pattern) -> tuple[dict[str, Any], str]:
        """Return the saved settings of the Step tab: the valid parameters, and the schedule."""
        schedule = self._read_choice(f"patterns/{pattern.name}/schedule", None, "")
        return self._read_valid_params(pattern, "step_params"), schedule

    def store_step(self, pattern: str, params: Mapping[str, Any], schedule: str) -> None:
        """Save the settings of a pattern's Step tab."""
        self._store.set_value(f"patterns/{pattern}/step_params", _to_plain_values(params))
        self._store.set_value(f"patterns/{pattern}/schedule", schedule)

    def _read_valid_params(self, pattern: Pattern, key: str) -> dict[str, Any]:
        """Return the saved parameters that are valid."""
        stored = self._store.get_value(f"patterns/{pattern.name}/{key}") or {}
        params: dict[str, Any] = {}
        for parameter in pattern.parameters:
            value = stored.get(parameter.name)
            if value is None or isinstance(value, list) != isinstance(parameter.initial, np.ndarray):
                continue  # for an array parameter, a string would be a file name
            with suppress(InputError, ValueError, TypeError, OverflowError):
                params[parameter.name] = parameter.check(np.array(value) if isinstance(value, list) else value)
        return params

    def store_settings(self, pattern: str, variant: str, params: dict[str, Any]) -> None:
        """Save the settings of a pattern's page."""
        self._store.set_value(f"patterns/{pattern}/variant", variant)
        self._store.set_value(f"patterns/{pattern}/params", _to_plain_values(params))

    @property
    def recent(self) -> list[Path]:
        """The images that were opened last, newest first."""
        return list(_iterate_valid_paths(self._store.get_value("recent") or []))[:MAX_RECENT]

    def add_recent(self, path: Path) -> None:
        """Add an image at the front of the recent ones."""
        names = [str(path), *(str(old) for old in self.recent if old != path)]
        self._save_value("recent", names[:MAX_RECENT])

    def clear_recent(self) -> None:
        """Clear the recent images."""
        self._save_value("recent", [])

    @property
    def geometry(self) -> QByteArray | None:
        """The window's geometry in Qt's encoding; None if none is saved."""
        text = self._read_choice("geometry", None, "")
        is_plausible = text.isascii() and 0 < len(text) <= _MAX_GEOMETRY_LENGTH
        return QByteArray.fromBase64(text.encode()) if is_plausible else None

    @geometry.setter
    def geometry(self, encoded: QByteArray) -> None:
        self._store.set_value("geometry", encoded.toBase64().data().decode())

    def sizes(self, key: str) -> list[int]:
        """Return the saved widths or heights of a splitter's parts; [] if none are saved."""
        sizes = self._store.get_value(f"{key}/sizes") or []
        return sizes if all(0 <= size <= _MAX_PANE_SIZE for size in sizes) else []

    def store_sizes(self, key: str, sizes: list[int]) -> None:
        """Save the widths or heights of a splitter's parts."""
        self._store.set_value(f"{key}/sizes", sizes)

    def tab(self, pattern: str) -> str:
        """Return the title of the tab that a pattern's page showed last."""
        return self._read_choice(f"patterns/{pattern}/tab", None, "")

    def store_tab(self, pattern: str, title: str) -> None:
        """Save the title of the tab that a pattern's page shows."""
        self._store.set_value(f"patterns/{pattern}/tab", title)

    def folder(self, kind: str) -> Path | None:
        """Return the folder of the last opened or saved file of a kind, if it still exists."""
        saved = next(_iterate_valid_paths([self._read_choice(f"folders/{kind}", None, "")]), None)
        return saved if saved is not None and os.path.isdir(saved) else None

    def store_folder(self, kind: str, folder: Path) -> None:
        """Save the folder for files of a kind."""
        self._save_value(f"folders/{kind}", str(folder))

    def compiler_options(self, path: Path) -> str:
        """Return the compiler options that were last used for a user's file, or ""."""
        saved = self._store.get_value("compiler_options") or []
        return next((options for file, _, options in (each.partition("\n") for each in saved) if file == str(path)), "")

    def store_compiler_options(self, path: Path, options: str) -> None:
        """Save the compiler options for a user's file."""
        saved = self._store.get_value("compiler_options") or []
        other_entries = [each for each in saved if each.partition("\n")[0] != str(path)]
        entries = [f"{path}\n{options}", *other_entries] if options else other_entries
        if entries != saved:
            self._save_value("compiler_options", entries[:_MAX_FILES])

    def is_trusted(self, path: Path) -> bool:
        """Return whether the user has confirmed that the host code of a program or a script may run."""
        return str(path) in (self._store.get_value("programs/trusted") or [])

    def add_trusted_file(self, path: Path) -> None:
        """Save that the host code of a program or a script may run."""
        saved = self._store.get_value("programs/trusted") or []
        self._save_value("programs/trusted", [str(path), *(each for each in saved if each != str(path))][:_MAX_FILES])

    def lesson_steps(self, lesson: str) -> list[str]:
        """Return the titles of a lesson's completed steps."""
        return list(self._store.get_value(f"lessons/{lesson}/steps") or [])

    def store_lesson_steps(self, lesson: str, titles: list[str]) -> None:
        """Save the titles of a lesson's completed steps."""
        self._save_value(f"lessons/{lesson}/steps", titles)

    def load_submission(self, lesson: str, task: str) -> str:
        """Return the saved submission for a lesson's task, or ""."""
        return self._read_choice(f"lessons/{lesson}/{task}.cu", None, "")

    def store_submission(self, lesson: str, task: str, text: str) -> None:
        """Save the submission for a lesson's task."""
        key = f"lessons/{lesson}/{task}.cu"
        if len(text) <= _MAX_TEXT_LENGTH and text != self._read_choice(key, None, ""):
            self._save_value(key, text)

    @property
    def lesson_progress(self) -> tuple[int, int]:
        """Completed and total lesson steps when last known; (0, 0) before."""
        done, _, total = self._read_choice("lessons/progress", None, "").partition("/")
        return (int(done), int(total)) if done.isdecimal() and total.isdecimal() else (0, 0)

    @lesson_progress.setter
    def lesson_progress(self, steps: tuple[int, int]) -> None:
        self._save_value("lessons/progress", f"{steps[0]}/{steps[1]}")

    @property
    def shows_class(self) -> bool:
        """Whether questions are shown to a class, without marking answers."""
        return self._read_choice("lessons/class", ("yes", "no"), "no") == "yes"

    @shows_class.setter
    def shows_class(self, on: bool) -> None:
        self._save_value("lessons/class", "yes" if on else "no")

    @property
    def lesson_folders(self) -> list[str]:
        """The folders of lessons that were opened."""
        return [str(path) for path in _iterate_valid_paths(self._store.get_value("lessons/folders") or [])][:MAX_RECENT]

    def add_lesson_folder(self, folder: str) -> None:
        """Add a folder at the front of the opened lesson folders."""
        self._save_value(
            "lessons/folders",
            [folder, *(lesson_folder for lesson_folder in self.lesson_folders if lesson_folder != folder)][:MAX_RECENT],
        )

    def remove_lesson_folder(self, folder: str) -> None:
        """Remove a folder of lessons that no longer exists."""
        self._save_value(
            "lessons/folders", [lesson_folder for lesson_folder in self.lesson_folders if lesson_folder != folder]
        )

    @property
    def problem_message(self) -> str:
        """A sentence about a problem with the settings file, or ""."""
        return self._store.problem_message

    def write(self) -> None:
        """Save all changes."""
        self._store.write()


_MAX_PATH_LENGTH = 4096
_DIGITS = 4
"""A number of workers has fewer digits than this."""
_MAX_FILES = 50
"""Maximum number of files with saved compiler options, and of trusted files."""
_MAX_GEOMETRY_LENGTH = 1000
"""Characters; Qt's encoding of a geometry has 88."""
_MAX_PANE_SIZE = 100_000
_MAX_TEXT_LENGTH = 10_000
"""Maximum number of characters of a saved parameter; longer texts are not saved."""


def _to_plain_values(params: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in params.items()
        if not (isinstance(value, str) and len(value) > _MAX_TEXT_LENGTH)
    }


def _is_valid_value(key: str, value: Any) -> bool:
    """Return whether a value has the type that its key requires."""
    match key.rpartition("/")[2]:
        case "params" | "step_params":
            return isinstance(value, dict) and all(map(_is_valid_param, value.values()))
        case "sizes":
            return isinstance(value, list) and all(type(each) is int for each in value)
        case "recent" | "steps" | "folders" | "trusted" | "compiler_options" | "cluster":
            return isinstance(value, list) and all(isinstance(each, str) for each in value)
    return isinstance(value, str)


def _is_valid_param(value: Any) -> bool:
    """Return whether a value can be a parameter: a scalar, a row, or a matrix."""
    rows = value if isinstance(value, list) else [value]
    values = [each for row in rows for each in (row if isinstance(row, list) else [row])]
    return not any(isinstance(each, list | dict) for each in values)


def _iterate_valid_paths(names: list[str]) -> Iterator[Path]:
    """Yield the names that are valid paths."""
    for name in names:
        with suppress(UnicodeEncodeError):
            if 0 < len(os.fsencode(name)) <= _MAX_PATH_LENGTH and "\0" not in name:
                yield Path(name)
