"""What the window says in a dialog of its own, or in its banner when asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PyQt6.QtCore import Qt

from gpu import __version__
from gui.painting.theme import look
from gui.widgets.notice import Notice
from gui.window.status_line import explain

if TYPE_CHECKING:
    from gui.window.main_window import MainWindow

_KEYS_ON_THE_LEFT = ("File", "View", "Help")


class Dialogs:
    """The dialogs of one window; it goes on while they are open."""

    def __init__(self, window: MainWindow) -> None:
        self._window = window

    def show_preferences(self) -> None:
        """Show the preferences."""
        from gui.window.preferences import Preferences

        window = self._window
        dialog = Preferences(window, window.memory.theme, window.memory.text_size, window.engine)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.theme_chosen.connect(window.appearance.set_theme)
        dialog.text_size_chosen.connect(window.appearance.set_text_size)
        dialog.engine_chosen.connect(window.set_engine)
        dialog.open()

    def show_devices(self, found: list[Any]) -> None:
        """Say what engines there are, and what the others lack."""
        self._window.banner.say(*explain(found), tone="neutral")

    def show_shortcuts(self) -> None:
        """List the keys."""
        groups = self._window.actions_.shortcuts()
        sides = [[title for title in groups if (title in _KEYS_ON_THE_LEFT) == left] for left in (True, False)]
        Notice(
            self._window,
            "Keyboard",
            *(f"<table>{''.join(_listed(title, groups[title]) for title in side)}</table>" for side in sides),
        ).open()

    def show_about(self) -> None:
        """Say what this is."""
        text = (
            f"Version {__version__}. Shows how parallel algorithms run on a GPU.<br><br>The kernels are ordinary CUDA "
            "C++: they run on an NVIDIA GPU through PyCUDA, or on a SIMT simulator that reads the same files."
        )
        Notice(self._window, "About Lockstep", text).open()


def _listed(title: str, rows: list[tuple[str, str]]) -> str:
    """Return rows of a table: keys and what they do, under a title."""
    head = f"<tr><td colspan='2' style='padding: 8px 0 2px 0; color: {look().theme.muted}'>{title}</td></tr>"
    return head + "".join(
        f"<tr><td style='padding: 2px 18px 2px 0; white-space: nowrap'><b>{key}</b></td>"
        f"<td style='padding: 2px 0; white-space: nowrap'>{text}</td></tr>"
        for key, text in rows
    )
