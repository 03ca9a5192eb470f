"""The strip of a recording's phases as SVG and PDF."""

from __future__ import annotations

import re

import pytest
from PyQt6.QtCore import QSize
from PyQt6.QtGui import QColor, QImage, QPainter
from PyQt6.QtPdf import QPdfDocument
from PyQt6.QtSvg import QSvgRenderer

from gui.painting.theme import LIGHT
from gui.step_view.export.handout import Handout


def write_handout(tab, path):
    assert tab.exports.write_handout(path)
    return path


def read_pages(path):
    """Return a PDF, and the text of its pages as it is read."""
    document = QPdfDocument(None)
    assert document.load(str(path)) == QPdfDocument.Error.None_
    return document, [document.getAllText(number).text() for number in range(document.pageCount())]


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_every_phase_has_its_picture_its_lines_and_its_counts(open_tab, tmp_path, theme):
    tab = open_tab("scan", "brent-kung")
    tab.window().appearance.set_theme(theme)
    document, texts = read_pages(write_handout(tab, tmp_path / "scan.pdf"))
    text = "\n".join(texts)
    models = tab.models
    for number, name in enumerate(("load", "up-sweep", "down-sweep", "write"), 1):
        assert re.search(rf"^{number}\s+{name}", text, re.MULTILINE)
    assert "Brent-Kung" in text
    assert "16 elements" in text
    # 4 steps up and 3 down: 15 and 11 operations, 26 in all.
    for words in ("4 steps", "15 operations", "3 steps", "11 operations", "Total: 7 steps", "26 operations"):
        assert words in text
    assert str(int(models.layout.rows[0].value.sum())) in text
    made = next(row for row in models.layout.rows if row.computed.any())
    assert re.search(rf"^{made.line}\s+if", text, re.MULTILINE)
    image = document.render(0, QSize(600, 850))
    assert image.pixelColor(300, 845).name() in ("#ffffff", "#000000")  # nothing is painted on the paper there


def test_it_is_light_whatever_the_window_is(open_tab, tmp_path):
    tab = open_tab("scan", "brent-kung")
    tab.window().appearance.set_theme("dark")
    handout = Handout(tab.models.layout, tab.models, tab._export_state().caption)
    image = QImage(handout.size, QImage.Format.Format_RGB32)
    painter = QPainter(image)
    handout.paint(painter)
    painter.end()
    assert image.pixelColor(2, 2) == QColor(LIGHT.surface)
    dark = [image.pixelColor(x, y).lightness() < 100
            for x in range(0, image.width(), 5) for y in range(0, image.height(), 5)]  # fmt: skip
    assert 0 < sum(dark) < 0.1 * len(dark)


def test_a_drawing_is_one_strip_with_all_phases(open_tab, tmp_path):
    tab = open_tab("sort", "block-radix")
    text = write_handout(tab, tmp_path / "sort.svg").read_text()
    assert "<svg" in text
    names = [phase.name for phase in tab.models.data.phases.intervals if phase.name]
    assert len(names) > 6
    for name in names:
        assert name in text


def test_no_line_to_a_drawings_first_row_crosses_its_title(open_tab, tmp_path):
    """SVG drawings are not clipped."""
    tab = open_tab("scan", "brent-kung")
    drawing = QSvgRenderer(str(write_handout(tab, tmp_path / "scan.svg")))
    handout = Handout(tab.models.layout, tab.models, tab._export_state().caption)
    image = QImage(handout.size, QImage.Format.Format_RGB32)
    painter = QPainter(image)
    drawing.render(painter)
    painter.end()
    down_sweep = round(sum(panel.height for panel in handout.panels[:3])) + 8
    below_title = down_sweep + 31
    colors = {image.pixelColor(x, below_title).name() for x in range(image.width())}
    assert colors == {LIGHT.surface}


def test_many_phases_go_on_over_pages_and_none_is_cut(open_tab, tmp_path):
    tab = open_tab("sort", "odd-even")
    _, texts = read_pages(write_handout(tab, tmp_path / "sort.pdf"))
    assert len(texts) > 1
    names = [phase.name for phase in tab.models.data.phases.intervals if phase.name]
    assert [
        name for text in texts for name in re.findall(r"^\d+\s+(load|round \d+|write)\b", text, re.MULTILINE)
    ] == names


def test_without_names_there_is_a_picture_of_each_stretch_between_barriers(open_tab, tmp_path):
    tab = open_tab("histogram", "racy")
    handout = Handout(tab.models.layout, tab.models, tab._export_state().caption)
    assert len(handout.panels) == 1 + len(tab.models.data.segments)
    assert tab.exports.write_handout(tmp_path / "racy.pdf")


def test_a_wide_figure_fits_the_page(open_tab, tmp_path):
    tab = open_tab("scan", "kogge-stone", n=256, block="256")
    handout = Handout(tab.models.layout, tab.models, tab._export_state().caption)
    flow = handout._flow
    assert flow.sizes.label + tab.models.layout.width(flow.sizes) <= handout.size.width()
    assert "warp 7" in write_handout(tab, tmp_path / "wide.svg").read_text()


@pytest.mark.parametrize("name", ["nowhere/scan.pdf", "nowhere/scan.svg", "scan.png"])
def test_what_cannot_be_written_is_said(open_tab, tmp_path, name):
    tab = open_tab()
    seen = []
    tab.exports.failed.connect(lambda message, advice: seen.append(message))
    assert not tab.exports.write_handout(tmp_path / name)
    assert name.rpartition("/")[2] in seen[0]


def test_what_lies_between_two_moments_adds_up(open_tab):
    tab = open_tab("scan", "brent-kung")
    tally, end = tab.models.data.tally, tab.models.recording.event_count
    parts = [tally.counts_between(phase.first, phase.last) for phase in tab.models.data.phases.intervals]
    assert sum(part.operations for part in parts) == tally.counts_at(end).operations
    assert sum(part.steps for part in parts) == tally.counts_at(end).steps
    assert max(part.peak for part in parts) == tally.counts_at(end).peak
    assert tally.counts_between(0, end) == tally.counts_at(end)
