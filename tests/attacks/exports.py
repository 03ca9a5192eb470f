"""Exports: texts that are no XML or end a script, and paths that no file can replace."""

from __future__ import annotations

import json
import os
import re
from functools import cache, partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from PyQt6.QtCore import QPointF, QSize
from PyQt6.QtGui import QPainter
from PyQt6.QtWidgets import QApplication

from gpu.files.file_access import write_file
from gpu.recording.player_file import extract_recording
from gpu.recording.recording import Recording
from gui.app import application
from gui.qt.exported_files import paint_svg
from gui.step_view.export.files import Caption
from gui.step_view.export.html_player import write_page
from gui.step_view.recording.models import build_models
from tests.attacks.recordings import list_valid_recordings
from tests.odd_inputs import read_or_none

_PLAYERS = 0.03
"""Part of the inputs that are players, which take longer."""

_PIECES = (
    "a", "\ud800", "\udfff", "\0", "\x1b[2J", "\ufffe", "\uffff", "\u2028", "\U0001f600", "<", ">", "&", '"', "'",
    "]]>", "</script>", "<!--", "<script>", "-->", "@DATA@", "@RECORDING@", "\\", "\n", "\r", "%s", "{}",
    "e\u0301" * 40, "\u202e",
)  # fmt: skip
_NAMES = ("x.svg", "x" * 300 + ".svg", "a\udcffb.svg", "none/x.svg", "file/x.svg", "\0.svg", "\ud800.svg", "..", "")
_KEPT = "precious"


def attack(random: np.random.Generator, folder: Path) -> None:
    """Write a drawing or a player with an odd text to an odd path; what is there stays unless it is a file or link."""
    _start_application()
    text = "".join(_PIECES[int(index)] for index in random.integers(len(_PIECES), size=int(random.integers(1, 8))))
    if random.random() < _PLAYERS:
        content = _write_player(text)
    else:
        content = paint_svg(QSize(200, 100), partial(_paint, text))
        ElementTree.fromstring(content)
    (folder / "file").write_text(_KEPT)
    path = folder / _NAMES[0 if random.random() < 0.7 else int(random.integers(len(_NAMES)))]
    kind = _put(random, folder, path) if path.name == "x.svg" and path.parent == folder else "none"
    is_written = read_or_none(lambda: write_file(path, content) or True)
    if is_written:
        assert kind not in ("fifo", "folder")
        assert path.read_bytes() == content
        assert not path.is_symlink()
    elif kind == "file":
        assert path.read_text() == _KEPT
    assert (folder / "file").read_text() == _KEPT, "a link was followed"
    assert not [each for each in folder.iterdir() if each.name.startswith(".")], "an unfinished file remains"


def _put(random: np.random.Generator, folder: Path, path: Path) -> str:
    """Put something at a path, and return what."""
    kind = str(random.choice(["file", "link", "loop", "dangling", "fifo", "folder", "none"]))
    match kind:
        case "file":
            path.write_text(_KEPT)
        case "link" | "loop" | "dangling":
            path.symlink_to({"link": "file", "loop": "x.svg", "dangling": "nowhere"}[kind])
        case "fifo":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
    return kind


def _paint(text: str, painter: QPainter) -> None:
    painter.drawText(QPointF(5, 50), text)


def _write_player(text: str) -> bytes:
    """Return a player with that title, after checks that its data are whole and its recording can be read."""
    page = write_page(_build_models(), Caption(text, text[::-1], text))
    scripts = re.findall(r"<script[^>]*>(.*?)</script>", page, re.DOTALL)
    assert json.loads(scripts[0])["title"] == text
    assert len(scripts) == page.count("<script") == page.count("</script>")
    content = page.encode(errors="surrogatepass").decode(errors="replace").encode()
    assert Recording.read(extract_recording(content), "x").event_count == _build_models().recording.event_count
    return content


@cache
def _build_models() -> Any:
    return build_models(Recording.read(list_valid_recordings()[1], "k"))


@cache
def _start_application() -> Any:
    return QApplication.instance() or application()
