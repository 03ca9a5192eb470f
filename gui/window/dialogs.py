"""What is said in a dialog of its own, beside which the window goes on."""

from __future__ import annotations

from PyQt6.QtWidgets import QWidget

from gpu import __version__
from gui.painting.theme import look
from gui.widgets.notice import Notice

_KEYS_ON_THE_LEFT = ("File", "View", "Help")


def show_shortcuts(window: QWidget, groups: dict[str, list[tuple[str, str]]]) -> None:
    """List the keys: what each does, under the titles of their groups."""
    sides = [[title for title in groups if (title in _KEYS_ON_THE_LEFT) == left] for left in (True, False)]
    Notice(
        window,
        "Keyboard",
        *(f"<table>{''.join(_listed(title, groups[title]) for title in side)}</table>" for side in sides),
    ).open()


def show_about(window: QWidget) -> None:
    """Say what this is."""
    text = (
        f"Version {__version__}. Shows how parallel algorithms run on a GPU.<br><br>The kernels are ordinary CUDA "
        "C++: they run on an NVIDIA GPU through PyCUDA, or on a SIMT simulator that reads the same files."
    )
    Notice(window, "About Lockstep", text).open()


def _listed(title: str, rows: list[tuple[str, str]]) -> str:
    """Return rows of a table: keys and what they do, under a title."""
    head = f"<tr><td colspan='2' style='padding: 8px 0 2px 0; color: {look().theme.muted}'>{title}</td></tr>"
    return head + "".join(
        f"<tr><td style='padding: 2px 18px 2px 0; white-space: nowrap'><b>{key}</b></td>"
        f"<td style='padding: 2px 0; white-space: nowrap'>{text}</td></tr>"
        for key, text in rows
    )
