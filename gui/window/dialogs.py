"""What is said in a dialog of its own, beside which the window goes on."""

from __future__ import annotations

from PyQt6.QtWidgets import QWidget

from gpu import __version__
from gui.painting.theme import look
from gui.widgets.notice import Notice

_COLUMN = 325
"""Pixels that a column of keys takes, at the normal size of text."""


def show_shortcuts(window: QWidget, groups: dict[str, list[tuple[str, str]]]) -> None:
    """List the keys: what each does, under the titles of their groups."""
    columns = min(3, max(1, window.width() // look().px(_COLUMN)))
    Notice(window, "Keyboard", *(f"<table>{column}</table>" for column in _shared_out(groups, columns))).open()


def _shared_out(groups: dict[str, list[tuple[str, str]]], columns: int) -> list[str]:
    """Return the rows of tables that are about as long as each other; groups stay whole, and in their order."""
    lines, done = sum(len(rows) + 1 for rows in groups.values()), 0
    made = [""] * columns
    for title, rows in groups.items():
        middle = done + (len(rows) + 1) / 2
        made[min(columns - 1, int(columns * middle / lines))] += _listed(title, rows)
        done += len(rows) + 1
    return made


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
