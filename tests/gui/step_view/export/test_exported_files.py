"""Exports replace a file completely or not at all, follow no link, wait for no pipe, and are valid XML."""

from __future__ import annotations

import errno
import os
from xml.etree import ElementTree

import pytest
from PyQt6.QtCore import QPointF, QSize

from gpu.files import file_access
from gui.qt.exported_files import write_svg
from tests import needs

NAMES = ("step.png", "step.svg", "handout.pdf", "handout.svg", "player.html", "recording.lockstep")


@pytest.fixture
def export(qtbot, open_tab):
    """Return a function that exports to a path, and returns the error message or ""."""
    tab = open_tab()

    def write(path):
        messages = []
        tab.exports.failed.connect(lambda message, advice: messages.append(message))
        tab.exports.status_message.connect(lambda message: messages.append(""))
        kind = path.name.partition(".")[0]
        writers = {"step": "picture", "handout": "handout", "player": "player", "recording": "recording"}
        getattr(tab.exports, f"write_{writers[kind]}")(path)
        qtbot.waitUntil(lambda: bool(messages), timeout=20_000)
        return messages[0]

    return write


@needs.linux
def test_links_pipes_and_full_disks(export, tmp_path, monkeypatch):
    for name in NAMES:
        victim, path = tmp_path / f"victim-{name}", tmp_path / name
        victim.write_text("precious")
        path.symlink_to(victim)
        assert export(path) == "", name
        assert victim.read_text() == "precious", name
        assert path.is_file(), name
        assert not path.is_symlink(), name
        path.unlink()
        os.mkfifo(path)
        assert "it is a pipe" in export(path), name
        path.unlink()
        path.write_text("precious")
        with monkeypatch.context() as patch:
            patch.setattr(file_access, "_link_to_path", _fail)
            assert "no space left on device" in export(path), name
        assert path.read_text() == "precious", name
    assert not list(tmp_path.glob(".*"))


def _fail(file, path):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_drawing_with_control_characters_is_valid(qapp, tmp_path):
    path = tmp_path / "drawing.svg"
    write_svg(path, QSize(90, 20), lambda painter: painter.drawText(QPointF(1, 15), "a\x01\x1b\x0b\ufffe\udcff<b>&"))
    text = "".join(ElementTree.parse(path).getroot().itertext())
    assert "<b>&" in text
    assert "\x1b" not in text


def test_a_text_with_a_lone_surrogate_is_written(tmp_path):
    file_access.write_file(tmp_path / "page.html", "a\udcffb")
    assert (tmp_path / "page.html").read_bytes() == b"a?b"
