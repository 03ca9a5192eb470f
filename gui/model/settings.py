"""The settings that the window saves between sessions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from PyQt6.QtCore import QByteArray

from gpu.declaration.pattern import Pattern
from gpu.distributed.asked import Asked, Tls
from gpu.errors import InputError
from gpu.timing.gpus import keys
from gui.model.settings_file import SettingsFile, settings_path
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
        self._store = SettingsFile(path or settings_path(), _is_sound)

    def _word(self, key: str, allowed: Any, default: str) -> str:
        value = self._store.value(key)
        return value if isinstance(value, str) and (allowed is None or value in allowed) else default

    def _remember(self, key: str, value: Any) -> None:
        """Save a setting at once, in case the window does not close normally."""
        self._store.put(key, value)
        self._store.write()

    @property
    def theme(self) -> str:
        """The theme: "dark" or "light"."""
        return self._word("theme", THEMES, "dark")

    @theme.setter
    def theme(self, name: str) -> None:
        self._remember("theme", name)

    @property
    def text_size(self) -> str:
        """The text size: a name of `FONT_SIZES`."""
        return self._word("text_size", FONT_SIZES, "normal")

    @text_size.setter
    def text_size(self, name: str) -> None:
        self._remember("text_size", name)

    @property
    def engine(self) -> str:
        """The selected engine."""
        return self._word("engine", ("auto", "cuda", "simulator", "null"), "auto")

    @engine.setter
    def engine(self, name: str) -> None:
        self._remember("engine", name)

    @property
    def cluster(self) -> Asked:
        """The cluster that was used last; the window does not connect to it automatically."""
        saved = self._store.value("cluster") or []
        scheduler, workers, *files = saved if len(saved) in (2, 5) else ["", "0"]
        count = int(workers) if workers.isdecimal() and len(workers) < _DIGITS else 0
        return Asked(scheduler, 0 if scheduler else count, Tls(*files) if files else None)

    @cluster.setter
    def cluster(self, asked: Asked) -> None:
        files = [asked.tls.ca, asked.tls.cert, asked.tls.key] if asked.tls is not None else []
        self._remember("cluster", [asked.scheduler, str(asked.workers), *files])

    @property
    def gpu(self) -> str:
        """The key of the GPU that times are modeled for; "" if none was selected."""
        return self._word("gpu", keys(), "")

    @gpu.setter
    def gpu(self, key: str) -> None:
        self._remember("gpu", key)

    @property
    def scale(self) -> str:
        """The histogram's scale: "linear" or "log"."""
        return self._word("histogram_scale", ("linear", "log"), "linear")

    @scale.setter
    def scale(self, name: str) -> None:
        self._remember("histogram_scale", name)

    @property
    def pattern(self) -> str:
        """The pattern that was shown last."""
        return self._word("pattern", None, "")

    @pattern.setter
    def pattern(self, name: str) -> None:
        self._store.put("pattern", name)

    @property
    def image(self) -> Path | None:
        """The image that was open last."""
        return next(_paths([self._word("image", None, "")]), None)

    @image.setter
    def image(self, path: Path) -> None:
        self._remember("image", str(path))

    def variant(self, pattern: Pattern) -> str:
        """Return the variant that was selected last, by default the first of the ladder."""
        names = {variant.name for variant in pattern.variants}
        return self._word(f"patterns/{pattern.name}/variant", names, pattern.first_rung.name)

    def params(self, pattern: Pattern) -> dict[str, Any]:
        """Return the saved parameters; an invalid value is replaced by its default."""
        return pattern.check(self._stored(pattern, "params"))

    def chosen(self, pattern: Pattern) -> set[str]:
        """Return the names of the parameters with a valid saved value."""
        return set(self._stored(pattern, "params"))

    def step(self, pattern: Pattern) -> tuple[dict[str, Any], str]:
        """Return the saved settings of the Step tab: the valid parameters, and the schedule."""
        schedule = self._word(f"patterns/{pattern.name}/schedule", None, "")
        return self._stored(pattern, "step_params"), schedule

    def store_step(self, pattern: str, params: Mapping[str, Any], schedule: str) -> None:
        """Save the settings of a pattern's Step tab."""
        self._store.put(f"patterns/{pattern}/step_params", _plain(params))
        self._store.put(f"patterns/{pattern}/schedule", schedule)

    def _stored(self, pattern: Pattern, key: str) -> dict[str, Any]:
        """Return the saved parameters that are valid."""
        stored = self._store.value(f"patterns/{pattern.name}/{key}") or {}
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
        self._store.put(f"patterns/{pattern}/variant", variant)
        self._store.put(f"patterns/{pattern}/params", _plain(params))

    @property
    def recent(self) -> list[Path]:
        """The images that were opened last, newest first."""
        return list(_paths(self._store.value("recent") or []))[:MAX_RECENT]

    def add_recent(self, path: Path) -> None:
        """Add an image at the front of the recent ones."""
        names = [str(path), *(str(old) for old in self.recent if old != path)]
        self._remember("recent", names[:MAX_RECENT])

    def clear_recent(self) -> None:
        """Clear the recent images."""
        self._remember("recent", [])

    @property
    def geometry(self) -> QByteArray | None:
        """The window's geometry in Qt's encoding; None if none is saved."""
        text = self._word("geometry", None, "")
        is_plausible = text.isascii() and 0 < len(text) <= _LONGEST_GEOMETRY
        return QByteArray.fromBase64(text.encode()) if is_plausible else None

    @geometry.setter
    def geometry(self, encoded: QByteArray) -> None:
        self._store.put("geometry", encoded.toBase64().data().decode())

    def sizes(self, key: str) -> list[int]:
        """Return the saved widths or heights of a splitter's parts; [] if none are saved."""
        sizes = self._store.value(f"{key}/sizes") or []
        return sizes if all(0 <= size <= _WIDEST for size in sizes) else []

    def store_sizes(self, key: str, sizes: list[int]) -> None:
        """Save the widths or heights of a splitter's parts."""
        self._store.put(f"{key}/sizes", sizes)

    def tab(self, pattern: str) -> str:
        """Return the title of the tab that a pattern's page showed last."""
        return self._word(f"patterns/{pattern}/tab", None, "")

    def store_tab(self, pattern: str, title: str) -> None:
        """Save the title of the tab that a pattern's page shows."""
        self._store.put(f"patterns/{pattern}/tab", title)

    def folder(self, kind: str) -> Path | None:
        """Return the folder of the last opened or saved file of a kind, if it still exists."""
        saved = next(_paths([self._word(f"folders/{kind}", None, "")]), None)
        return saved if saved is not None and os.path.isdir(saved) else None

    def store_folder(self, kind: str, folder: Path) -> None:
        """Save the folder for files of a kind."""
        self._remember(f"folders/{kind}", str(folder))

    def compiler_options(self, path: Path) -> str:
        """Return the compiler options that were last used for a user's file, or ""."""
        saved = self._store.value("compiler_options") or []
        return next((options for file, _, options in (each.partition("\n") for each in saved) if file == str(path)), "")

    def store_compiler_options(self, path: Path, options: str) -> None:
        """Save the compiler options for a user's file."""
        saved = self._store.value("compiler_options") or []
        others = [each for each in saved if each.partition("\n")[0] != str(path)]
        entries = [f"{path}\n{options}", *others] if options else others
        if entries != saved:
            self._remember("compiler_options", entries[:_MOST_FILES])

    def lesson_steps(self, lesson: str) -> list[str]:
        """Return the titles of a lesson's completed steps."""
        return list(self._store.value(f"lessons/{lesson}/steps") or [])

    def store_lesson_steps(self, lesson: str, titles: list[str]) -> None:
        """Save the titles of a lesson's completed steps."""
        self._remember(f"lessons/{lesson}/steps", titles)

    def written(self, lesson: str, task: str) -> str:
        """Return the saved submission for a lesson's task, or ""."""
        return self._word(f"lessons/{lesson}/{task}.cu", None, "")

    def store_written(self, lesson: str, task: str, text: str) -> None:
        """Save the submission for a lesson's task."""
        key = f"lessons/{lesson}/{task}.cu"
        if len(text) <= _LONGEST_TEXT and text != self._word(key, None, ""):
            self._remember(key, text)

    @property
    def lesson_progress(self) -> tuple[int, int]:
        """Completed and total lesson steps when last known; (0, 0) before."""
        done, _, total = self._word("lessons/progress", None, "").partition("/")
        return (int(done), int(total)) if done.isdecimal() and total.isdecimal() else (0, 0)

    @lesson_progress.setter
    def lesson_progress(self, steps: tuple[int, int]) -> None:
        self._remember("lessons/progress", f"{steps[0]}/{steps[1]}")

    @property
    def shows_class(self) -> bool:
        """Whether questions are shown to a class, without marking answers."""
        return self._word("lessons/class", ("yes", "no"), "no") == "yes"

    @shows_class.setter
    def shows_class(self, on: bool) -> None:
        self._remember("lessons/class", "yes" if on else "no")

    @property
    def lesson_folders(self) -> list[str]:
        """The folders of lessons that were opened."""
        return [str(path) for path in _paths(self._store.value("lessons/folders") or [])][:MAX_RECENT]

    def remember_lessons(self, folder: str) -> None:
        """Add a folder at the front of the opened lesson folders."""
        self._remember(
            "lessons/folders", [folder, *(each for each in self.lesson_folders if each != folder)][:MAX_RECENT]
        )

    def forget_lessons(self, folder: str) -> None:
        """Remove a folder of lessons that no longer exists."""
        self._remember("lessons/folders", [each for each in self.lesson_folders if each != folder])

    @property
    def complaint(self) -> str:
        """A sentence about a problem with the settings file, or ""."""
        return self._store.complaint

    def write(self) -> None:
        """Save all changes."""
        self._store.write()


_LONGEST_PATH = 4096
_DIGITS = 4
"""A number of workers has fewer digits than this."""
_MOST_FILES = 50
"""Maximum number of files with saved compiler options."""
_LONGEST_GEOMETRY = 1000
"""Characters; Qt's encoding of a geometry has 88."""
_WIDEST = 100_000
_LONGEST_TEXT = 10_000
"""Maximum number of characters of a saved parameter; longer texts are not saved."""


def _plain(params: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in params.items()
        if not (isinstance(value, str) and len(value) > _LONGEST_TEXT)
    }


def _is_sound(key: str, value: Any) -> bool:
    """Return whether a value has the type that its key requires."""
    match key.rpartition("/")[2]:
        case "params" | "step_params":
            return isinstance(value, dict) and all(map(_is_plain, value.values()))
        case "sizes":
            return isinstance(value, list) and all(type(each) is int for each in value)
        case "recent" | "steps" | "folders" | "compiler_options" | "cluster":
            return isinstance(value, list) and all(isinstance(each, str) for each in value)
    return isinstance(value, str)


def _is_plain(value: Any) -> bool:
    """Return whether a value can be a parameter: a scalar, a row, or a matrix."""
    rows = value if isinstance(value, list) else [value]
    values = [each for row in rows for each in (row if isinstance(row, list) else [row])]
    return not any(isinstance(each, list | dict) for each in values)


def _paths(names: list[str]) -> Iterator[Path]:
    """Yield the names that are valid paths."""
    for name in names:
        with suppress(UnicodeEncodeError):
            if 0 < len(os.fsencode(name)) <= _LONGEST_PATH and "\0" not in name:
                yield Path(name)
