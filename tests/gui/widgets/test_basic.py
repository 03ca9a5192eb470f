"""Texts in too little room: a label ends in an ellipsis, a check box, findings and problems wrap first."""

from __future__ import annotations

from PyQt6.QtGui import QFontMetrics
from PyQt6.QtWidgets import QLabel

from gui.editor.problem_strip import ProblemStrip
from gui.painting.theme import look
from gui.step_view.cards.findings import FindingsLabel
from gui.widgets.basic import ElidedLabel, format_count
from gui.widgets.elided_box import WrappedCheck


def test_a_label_ends_within_its_margins(qtbot):
    label = ElidedLabel("caption", "Title")
    qtbot.addWidget(label)
    label.setContentsMargins(14, 0, 14, 0)
    label.resize(120, 20)
    label.show()
    label.show_text("a text that is far too long for so little room")
    assert label.text().endswith("…")
    assert label.fontMetrics().horizontalAdvance(label.text()) <= 120 - 28
    label.show_text("a text that is far too long for so little room", "a text", "t")
    assert label.text() == "a text"
    label.resize(28 + label.fontMetrics().horizontalAdvance("t") + 2, 20)
    assert label.text() == "t"
    label.show_text("a text")
    assert label.text() == "", "an ellipsis alone says nothing"


def test_a_check_box_is_as_high_as_its_wrapped_text(qtbot):
    box = WrappedCheck("11  One launch: one atomic per block")
    qtbot.addWidget(box)
    box.show()
    heights = []
    for share in (1.1, 0.7, 0.45, 0.3):
        width = box.width() - box._text_room().width() + round(share * box.fontMetrics().horizontalAdvance(box.text()))
        box.resize(width, box.height())
        box.resize(width, box.minimumSizeHint().height())
        heights.append(box.height())
    line = box.fontMetrics().lineSpacing()
    assert heights[0] < 2 * line <= heights[1]
    assert heights[2] >= 3 * line
    assert heights[3] >= 4 * line


def test_a_check_box_writes_a_word_that_lacks_room_in_the_small_size(qtbot):
    box = WrappedCheck("3  Neighbored pairs")
    qtbot.addWidget(box)
    box.setStyleSheet(f"font-size: {look().small_px + 6}px")
    box.show()
    longest = box.fontMetrics().horizontalAdvance("Neighbored")
    beside = box.width() - box._text_room().width()
    box.resize(beside + longest + 2, box.height())
    assert box.shown_font().pixelSize() == look().small_px + 6
    box.resize(beside + longest - 2, box.height())
    assert box.shown_font().pixelSize() == look().small_px
    assert QFontMetrics(box.shown_font()).horizontalAdvance("Neighbored") <= box._text_room().width()


def test_findings_take_a_second_line_before_they_are_elided(qtbot):
    label = FindingsLabel()
    qtbot.addWidget(label)
    text = "barrier not reached by all threads in line 5"
    label.setText(text)
    width, height = label.fontMetrics().horizontalAdvance(text), label.fontMetrics().height()
    label.resize(round(0.7 * width), height)
    assert label.visible_text().endswith("…")
    label.resize(round(0.7 * width), 2 * height)
    assert label.visible_text() == text
    label.resize(round(0.4 * width), 2 * height)
    assert label.visible_text().endswith("…")


def test_a_problem_scrolls_to_its_end_where_it_does_not_fit(qtbot):
    strip = ProblemStrip()
    qtbot.addWidget(strip)
    sentence = "thread 63 writes an element that another thread reads without a barrier in between. "
    strip.show()
    bar = strip.area.verticalScrollBar()
    for width in (300, 420):
        strip.resize(width, 60)
        strip._show_text(3 * sentence)
        assert strip.message.text() == 3 * sentence
        qtbot.waitUntil(bar.isVisible)
        assert bar.value() == 0
        bar.setValue(bar.maximum())
        end = strip.message.mapTo(strip.area.viewport(), strip.message.rect().bottomLeft()).y()
        assert end < strip.area.viewport().height()
        assert strip.message.heightForWidth(strip.message.width()) <= strip.message.height()
    strip._show_text("A race.")
    qtbot.waitUntil(lambda: not bar.isVisible())


def test_a_number_is_not_broken_between_its_digits(qtbot):
    label = QLabel(f"{format_count(16_777_215)} {format_count(16_777_215)}")
    qtbot.addWidget(label)
    label.setWordWrap(True)
    half = label.fontMetrics().horizontalAdvance(format_count(16_777_215))
    one_line = label.heightForWidth(3 * half)
    # Even far too narrow, each number keeps its line.
    assert label.heightForWidth(round(0.7 * half)) < 3 * one_line
