"""Slides of a recording's phases: their names, what they show, and files that are complete or absent."""

from __future__ import annotations

import zipfile
from types import SimpleNamespace

import pytest
from PyQt6.QtCore import QSize
from PyQt6.QtGui import QColor, QImage
from PyQt6.QtSvg import QSvgRenderer
from PyQt6.QtWidgets import QApplication

from gui.painting.theme import LIGHT
from gui.qt.background import wait_for_background

NAMES = ["01-load", "02-up-sweep", "03-down-sweep", "04-write"]
FILES = [f"{name}.{suffix}" for name in NAMES for suffix in ("svg", "png")]


@pytest.fixture
def save(qtbot, open_tab):
    """Return a function that saves the slides of a recording to a path, and returns the messages."""

    def save(path, *where, **params):
        tab = open_tab(*where, **params)
        messages = []
        tab.exports.status_message.connect(messages.append)
        tab.exports.failed.connect(lambda *words: messages.append(words))
        tab.exports.write_slides(path)
        qtbot.waitUntil(lambda: tab.exports.slide_writer is None)
        return messages

    return save


def test_an_archive_has_two_files_for_each_phase(save, tmp_path):
    path = tmp_path / "scan.zip"
    assert save(path) == ["Saved scan.zip"]
    with zipfile.ZipFile(path) as archive:
        assert archive.namelist() == FILES
        for name in NAMES:
            image = QImage.fromData(archive.read(f"{name}.png"))
            assert image.size() == QSize(2560, 1440)
            drawing = archive.read(f"{name}.svg")
            renderer = QSvgRenderer(drawing)
            assert renderer.isValid()
            assert renderer.viewBoxF().size().toSize() == QSize(1280, 720)
            assert b"<image" not in drawing
            text = drawing.decode()
            assert "Brent-Kung" in text
            assert f">{NAMES.index(name) + 1}   {name[3:]}<" in text
    assert [each.name for each in tmp_path.iterdir() if each.suffix == ".zip"] == ["scan.zip"]


def test_a_folder_has_the_same_files(save, tmp_path):
    assert save(tmp_path / "slides") == ["Saved slides"]
    assert sorted(each.name for each in (tmp_path / "slides").iterdir()) == sorted(FILES)


@pytest.mark.parametrize(
    ("theme", "where"),
    [
        ("light", ("sort", "bitonic")),
        ("dark", ("reduction", "neighbored")),
    ],
)
def test_a_slide_has_a_white_margin_and_a_figure(qtbot, open_tab, tmp_path, where, theme):
    tab = open_tab(*where)
    tab.window().appearance.set_theme(theme)
    exports = tab.exports
    exports.write_slides(tmp_path / "slides")
    qtbot.waitUntil(lambda: exports.slide_writer is None)
    for path in sorted((tmp_path / "slides").glob("*.png")):
        image = QImage(str(path))
        background = QColor(LIGHT.surface)
        edges = [image.pixelColor(x, y) for x in (4, image.width() - 5) for y in range(0, image.height(), 7)]
        edges += [image.pixelColor(x, image.height() - 5) for x in range(0, image.width(), 7)]
        assert set(map(QColor.name, edges)) == {background.name()}
        colors = {image.pixelColor(x, y).name() for x in range(0, 2560, 16) for y in range(200, 1400, 16)}
        assert len(colors) > 3


def test_an_existing_folder_is_left_as_it_is(save, tmp_path):
    folder = tmp_path / "slides"
    folder.mkdir()
    (folder / "own.txt").write_text("own")
    ((message, _advice),) = save(folder)
    assert message == f"Cannot write {folder}: it is a folder."
    assert [each.name for each in folder.iterdir()] == ["own.txt"]


def test_without_a_folder_nothing_is_written(save, tmp_path):
    ((message, _advice),) = save(tmp_path / "gone" / "slides.zip")
    assert message.startswith(f"Cannot write {tmp_path / 'gone' / 'slides.zip'}: there is no folder")
    assert not (tmp_path / "gone").exists()


def test_a_failed_write_leaves_nothing(save, tmp_path, monkeypatch):
    class FullDisk(zipfile.ZipFile):
        def writestr(self, name, data):
            super().writestr(name, data)
            raise OSError(28, "No space left on device")

    module = SimpleNamespace(ZipFile=FullDisk, ZIP_DEFLATED=zipfile.ZIP_DEFLATED)
    monkeypatch.setattr("gui.step_view.export.slides.zipfile", module)
    before = sorted(tmp_path.iterdir())
    ((message, _),) = save(tmp_path / "slides.zip")
    assert message == f"Cannot write {tmp_path / 'slides.zip'}: no space left on device."
    assert not [each for each in tmp_path.iterdir() if each not in before and each.suffix in (".zip", ".part")]


def test_closing_the_tab_cancels_them(qtbot, open_tab, tmp_path):
    tab = open_tab()
    tab.exports.write_slides(tmp_path / "slides.zip")
    tab.close_down()
    assert tab.exports.slide_writer is None
    for _ in range(3):
        wait_for_background(10_000)
        QApplication.processEvents()
    assert not (tmp_path / "slides.zip").exists()


def test_too_many_phases_are_refused(save, tmp_path, monkeypatch):
    monkeypatch.setattr("gui.step_view.export.menu.MAX_SLIDES", 3)
    ((message, advice),) = save(tmp_path / "slides.zip")
    assert message == "The recording has 4 phases; at most 3 can become slides."
    assert advice
    assert not (tmp_path / "slides.zip").exists()
