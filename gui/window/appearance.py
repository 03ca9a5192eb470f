"""How the window looks: its theme and the size of its text."""

from __future__ import annotations

from PyQt6.QtCore import QObject, pyqtSignal

from gui.model.settings import SavedSettings
from gui.painting.theme import FONT_SIZES, THEMES, Look, set_look


class Appearance(QObject):
    """The look that was chosen, and that is remembered.

    Parameters
    ----------
    memory : SavedSettings
    """

    changed = pyqtSignal()

    def __init__(self, memory: SavedSettings, parent: QObject) -> None:
        super().__init__(parent)
        self._memory = memory
        self._enlarged = 1.0
        self._set_look()

    def _set_look(self) -> None:
        set_look(Look(THEMES[self._memory.theme], round(FONT_SIZES[self._memory.text_size] * self._enlarged)))

    def set_theme(self, name: str) -> None:
        """Show all in another theme."""
        self._memory.theme = name
        self._set_look()
        self.changed.emit()

    def toggle_theme(self) -> None:
        """Go from dark to light, or back."""
        self.set_theme("light" if self._memory.theme == "dark" else "dark")

    def set_text_size(self, name: str) -> None:
        """Show all text larger or smaller."""
        self._memory.text_size = name
        self._set_look()
        self.changed.emit()

    def enlarge(self, factor: float) -> None:
        """Show all text so many times as large as it was chosen; that is not remembered."""
        if factor != self._enlarged:
            self._enlarged = factor
            self._set_look()
            self.changed.emit()

    def step_text_size(self, by: int) -> None:
        """Take the next larger or smaller text."""
        names = list(FONT_SIZES)
        self.set_text_size(names[min(max(names.index(self._memory.text_size) + by, 0), len(names) - 1)])
