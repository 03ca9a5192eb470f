"""What the window remembers from one time to the next."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PyQt6.QtCore import QByteArray, QSettings

from gpu.declaration.pattern import Pattern
from gpu.errors import InputError
from gui.painting.theme import FONT_SIZES, THEMES

MAX_RECENT = 8


class SavedSettings:
    """Typed access to the settings; whatever does not make sense any more is as if it had never been stored."""

    def __init__(self, store: QSettings | None = None) -> None:
        self._store = store or QSettings("Lockstep", "Lockstep")

    def _word(self, key: str, allowed: Any, default: str) -> str:
        value = self._store.value(key, default)
        return value if isinstance(value, str) and (allowed is None or value in allowed) else default

    @property
    def theme(self) -> str:
        """Return "dark" or "light"."""
        return self._word("theme", THEMES, "dark")

    @theme.setter
    def theme(self, name: str) -> None:
        self._store.setValue("theme", name)

    @property
    def text_size(self) -> str:
        """Return a name of `FONT_SIZES`."""
        return self._word("text_size", FONT_SIZES, "normal")

    @text_size.setter
    def text_size(self, name: str) -> None:
        self._store.setValue("text_size", name)

    @property
    def engine(self) -> str:
        """Return the engine that is asked for."""
        return self._word("engine", ("auto", "cuda", "simulator", "null"), "auto")

    @engine.setter
    def engine(self, name: str) -> None:
        self._store.setValue("engine", name)

    @property
    def scale(self) -> str:
        """Return the histogram's scale, "linear" or "log"."""
        return self._word("histogram_scale", ("linear", "log"), "linear")

    @scale.setter
    def scale(self, name: str) -> None:
        self._store.setValue("histogram_scale", name)

    @property
    def pattern(self) -> str:
        """Return the pattern that was shown last."""
        return self._word("pattern", None, "")

    @pattern.setter
    def pattern(self, name: str) -> None:
        self._store.setValue("pattern", name)

    @property
    def image(self) -> Path | None:
        """Return the image that was open last."""
        text = self._word("image", None, "")
        return Path(text) if text else None

    @image.setter
    def image(self, path: Path) -> None:
        self._store.setValue("image", str(path))

    def variant(self, pattern: Pattern) -> str:
        """Return the variant that was chosen last."""
        names = {variant.name for variant in pattern.variants}
        return self._word(f"patterns/{pattern.name}/variant", names, pattern.default_variant)

    def params(self, pattern: Pattern) -> dict[str, Any]:
        """Return the parameters as they were last; a value that is not allowed any more is the default again."""
        return pattern.check(self._stored(pattern, "params"))

    def step(self, pattern: Pattern) -> tuple[dict[str, Any], str]:
        """Return what was last chosen in the Step tab: the parameters that still make sense, and the order of warps."""
        schedule = self._word(f"patterns/{pattern.name}/schedule", None, "")
        return self._stored(pattern, "step_params"), schedule

    def store_step(self, pattern: str, params: Mapping[str, Any], schedule: str) -> None:
        """Remember what is chosen in a pattern's Step tab."""
        self._store.setValue(f"patterns/{pattern}/step_params", json.dumps(_plain(params)))
        self._store.setValue(f"patterns/{pattern}/schedule", schedule)

    def _stored(self, pattern: Pattern, key: str) -> dict[str, Any]:
        """Return those of the stored parameters that are still allowed."""
        try:
            stored = json.loads(self._word(f"patterns/{pattern.name}/{key}", None, "{}"))
        except ValueError:
            stored = {}
        given: dict[str, Any] = {}
        for parameter in pattern.parameters:
            if not isinstance(stored, dict) or parameter.name not in stored:
                continue
            value = stored[parameter.name]
            try:
                given[parameter.name] = parameter.check(np.array(value) if isinstance(value, list) else value)
            except (InputError, ValueError):
                continue
        return given

    def store_settings(self, pattern: str, variant: str, params: dict[str, Any]) -> None:
        """Remember what is chosen on a pattern's page."""
        self._store.setValue(f"patterns/{pattern}/variant", variant)
        self._store.setValue(f"patterns/{pattern}/params", json.dumps(_plain(params)))

    @property
    def recent(self) -> list[Path]:
        """Return the images that were opened last, newest first."""
        try:
            names = json.loads(self._word("recent", None, "[]"))
        except ValueError:
            return []
        return [Path(name) for name in names if isinstance(name, str)] if isinstance(names, list) else []

    def add_recent(self, path: Path) -> None:
        """Put an image at the head of the recent ones."""
        names = [str(path), *(str(old) for old in self.recent if old != path)]
        self._store.setValue("recent", json.dumps(names[:MAX_RECENT]))

    def clear_recent(self) -> None:
        """Forget the recent images."""
        self._store.setValue("recent", "[]")

    def bytes(self, key: str) -> QByteArray | None:
        """Return a geometry or a splitter's state."""
        value = self._store.value(f"layout/{key}")
        return value if isinstance(value, QByteArray) else None

    def store_bytes(self, key: str, value: QByteArray) -> None:
        """Remember a geometry or a splitter's state."""
        self._store.setValue(f"layout/{key}", value)

    def sync(self) -> None:
        """Write everything out."""
        self._store.sync()


_LONGEST_TEXT = 10_000
"""Characters of a parameter that is remembered: a book is opened again."""


def _plain(params: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in params.items()
        if not (isinstance(value, str) and len(value) > _LONGEST_TEXT)
    }
