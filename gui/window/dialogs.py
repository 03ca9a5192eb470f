"""The dialogs for keyboard shortcuts and program information; modeless, so that the window stays usable."""

from __future__ import annotations

from collections.abc import Iterable

from PyQt6.QtGui import QFont, QFontMetrics
from PyQt6.QtWidgets import QWidget

from gpu import __version__
from gui.painting.theme import look
from gui.widgets.notice import Notice

_GAP = 18
"""Pixels between a key and its description."""
_FRAME = 170
"""Maximum pixels around and between columns."""

Rows = list[tuple[str, str]]


def show_shortcuts(window: QWidget, groups: dict[str, Rows]) -> None:
    """List the keys and their effects by group, in as many columns as fit."""
    font = QFont(window.font())
    font.setPixelSize(look().text_px)
    strong = QFont(font)
    strong.setBold(True)

    def width(titles: list[str]) -> int:
        rows = [row for title in titles for row in groups[title]]
        keys, texts = zip(*rows, strict=True) if rows else ((), ())
        return _GAP + _measure_widest(strong, keys) + _measure_widest(font, texts)

    room = window.width() - _FRAME
    layouts = (_distribute_groups(groups, columns) for columns in (3, 2))
    columns = next((layout for layout in layouts if sum(map(width, layout)) <= room), _distribute_groups(groups, 1))
    tables = ("".join(_format_table_rows(title, groups[title]) for title in titles) for titles in columns)
    Notice(window, "Keyboard", *(f"<table>{table}</table>" for table in tables)).open()


def _measure_widest(font: QFont, texts: Iterable[str]) -> int:
    metrics = QFontMetrics(font)
    return max(map(metrics.horizontalAdvance, texts), default=0)


def _distribute_groups(groups: dict[str, Rows], columns: int) -> list[list[str]]:
    """Distribute group titles over columns of similar length; groups stay whole and in order."""
    lines, done = sum(len(rows) + 1 for rows in groups.values()), 0
    titles: list[list[str]] = [[] for _ in range(columns)]
    for title, rows in groups.items():
        middle = done + (len(rows) + 1) / 2
        titles[min(columns - 1, int(columns * middle / lines))].append(title)
        done += len(rows) + 1
    return titles


def show_about(window: QWidget) -> None:
    """Show the version and a description of the program."""
    text = (
        f"Version {__version__}. Shows how parallel algorithms run on a GPU.<br><br>The kernels are ordinary CUDA "
        "C++: they run on an NVIDIA GPU through PyCUDA, or on a SIMT simulator that reads the same files."
    )
    Notice(window, "About Lockstep", text).open()


def _format_table_rows(title: str, rows: list[tuple[str, str]]) -> str:
    """Return HTML table rows: a title, then one row per key."""
    head = f"<tr><td colspan='2' style='padding: 8px 0 2px 0; color: {look().theme.muted}'>{title}</td></tr>"
    return head + "".join(
        f"<tr><td style='padding: 1px 18px 2px 0; white-space: nowrap'><b>{key}</b></td>"
        f"<td style='padding: 1px 0 2px 0; white-space: nowrap'>{text}</td></tr>"
        for key, text in rows
    )
