"""The window's theme and text size."""

from __future__ import annotations

from PyQt6.QtCore import QObject, pyqtSignal

from gui.model.settings import SavedSettings
from gui.painting.theme import FONT_SIZES, THEMES, Look, look, set_look


class Appearance(QObject):
    """Apply the chosen theme and text size, and remember them."""

    changed = pyqtSignal()
    """The look of the whole window has changed."""

    def __init__(self, saved_settings: SavedSettings, parent: QObject) -> None:
        super().__init__(parent)
        self._saved_settings = saved_settings
        self._scale_factor = 1.0
        self._set_look()
        self._window_look = look()

    def _set_look(self) -> None:
        set_look(
            Look(
                THEMES[self._saved_settings.theme],
                round(FONT_SIZES[self._saved_settings.text_size] * self._scale_factor),
            )
        )

    def _restyle_window(self) -> None:
        self._set_look()
        self._window_look = look()
        self.changed.emit()

    def set_theme(self, name: str) -> None:
        """Switch to a theme."""
        self._saved_settings.theme = name
        self._restyle_window()

    def toggle_theme(self) -> None:
        """Switch between dark and light."""
        self.set_theme("light" if self._saved_settings.theme == "dark" else "dark")

    def set_text_size(self, name: str) -> None:
        """Set the text size by its name."""
        self._saved_settings.text_size = name
        self._restyle_window()

    def scale_text(self, factor: float) -> None:
        """Scale the chosen text size by a factor, without remembering it.

        The caller restyles what is visible: restyling all pages of the window takes seconds.
        """
        self._scale_factor = factor
        self._set_look()
        if factor == 1.0 and look() != self._window_look:  # a theme or size was chosen while the text was scaled
            self._restyle_window()

    def step_text_size(self, step: int) -> None:
        """Select the next larger (`step` = 1) or smaller (-1) text size."""
        names = list(FONT_SIZES)
        self.set_text_size(names[min(max(names.index(self._saved_settings.text_size) + step, 0), len(names) - 1)])
