"""How the window looks: its theme and the size of its text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gui.painting.style import style_sheet
from gui.painting.theme import FONT_SIZES, THEMES, Look, look, palette, set_look

if TYPE_CHECKING:
    from gui.window.main_window import MainWindow


class Appearance:
    """The looks of one window, which remembers what was chosen."""

    def __init__(self, window: MainWindow) -> None:
        self._window = window
        memory = window.memory
        set_look(Look(THEMES[memory.theme], FONT_SIZES[memory.text_size]))

    def apply(self) -> None:
        """Give the window the theme and the text size that are chosen."""
        window, now = self._window, look()
        window.setPalette(palette(now.theme))
        window.setStyleSheet(style_sheet(now))
        window.header.resize_with_text()
        window.sidebar.resize_with_text()
        window.actions_.show_choices(window.memory.theme, window.memory.text_size)

    def set_theme(self, name: str) -> None:
        """Show the window in another theme."""
        self._window.memory.theme = name
        set_look(Look(THEMES[name], look().text_px))
        self.apply()

    def toggle_theme(self) -> None:
        """Go from dark to light, or back."""
        self.set_theme("light" if self._window.memory.theme == "dark" else "dark")

    def set_text_size(self, name: str) -> None:
        """Show all text larger or smaller."""
        self._window.memory.text_size = name
        set_look(Look(look().theme, FONT_SIZES[name]))
        self.apply()

    def step_text_size(self, by: int) -> None:
        """Take the next larger or smaller text."""
        names = list(FONT_SIZES)
        self.set_text_size(names[min(max(names.index(self._window.memory.text_size) + by, 0), len(names) - 1)])

    def toggle_full_screen(self) -> None:
        """Fill the screen, or leave it."""
        window = self._window
        window.showNormal() if window.isFullScreen() else window.showFullScreen()
