"""What lessons are put together from: pads, lines, Markdown, hints."""

from __future__ import annotations

import pytest
from PyQt6.QtCore import QPoint, Qt
from PyQt6.QtGui import QTextDocument
from PyQt6.QtTest import QTest
from PyQt6.QtWidgets import QLabel

from gpu.messages.lessons import AnswerMark, RecordingQuestion
from gui.lessons.answers import create_answer_box
from gui.lessons.hints import Hints
from gui.lessons.line_order import LineOrder
from gui.lessons.markdown import MarkdownLabel
from gui.lessons.pad import ElementPad, format_numbers, parse_numbers
from gui.painting.theme import DARK, LIGHT, Look, look, set_look
from tests.gui.window.walker import Key

LEFT = Qt.MouseButton.LeftButton


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("", set()),
        ("3", {3}),
        ("0, 2 and 4-7", {0, 2, 4, 5, 6, 7}),
        ("1 to 3, 5..6", {1, 2, 3, 5, 6}),
        ("6 - 99999999999", {6, 7, 8, 9}),
        ("10, 11", set()),
        ("nothing", set()),
        ("0, 2 … 8", {0, 2, 4, 6, 8}),
        ("0, 2, 4, ... 99999999999", {0, 2, 4, 6, 8}),
        ("1 ... 3", {1, 2, 3}),
        ("5, 3 ... 9", {3, 5, 9}),
    ],
)
def test_numbers_are_read_as_people_write_them(text, numbers):
    assert parse_numbers(text, 10) == numbers


def test_what_is_said_of_numbers_is_read_again():
    for numbers in (frozenset(), frozenset({4}), frozenset({0, 1}), frozenset({0, 1, 2, 7, 9})):
        assert parse_numbers(format_numbers(numbers), 10) == numbers
    assert format_numbers({0, 1, 2, 7}) == "0-2, 7"


@pytest.fixture
def pad(qtbot):
    made = ElementPad("Elements")
    qtbot.addWidget(made)
    made.resize(300, 200)
    made.set_cell_count(20)
    with qtbot.waitExposed(made):
        made.show()
    return made


def click_element(pad, element):
    QTest.mouseClick(pad, LEFT, pos=pad.compute_cell_rect(element).center().toPoint())


def test_cells_are_chosen_by_clicks_and_given_back(pad):
    click_element(pad, 3)
    click_element(pad, 19)
    assert pad.selected == {3, 19}
    click_element(pad, 3)
    assert pad.selected == {19}
    assert pad.accessibleDescription() == "19"


def test_dragging_over_cells_chooses_them(pad):
    QTest.mousePress(pad, LEFT, pos=pad.compute_cell_rect(1).center().toPoint())
    for element in (2, 3):
        QTest.mouseMove(pad, pad.compute_cell_rect(element).center().toPoint())
    QTest.mouseRelease(pad, LEFT, pos=pad.compute_cell_rect(3).center().toPoint())
    assert pad.selected == {1, 2, 3}


def test_cells_are_chosen_by_keys(pad):
    pad.setFocus()
    for key in (Key.Key_Space, Key.Key_Right, Key.Key_Right, Key.Key_Space, Key.Key_Down, Key.Key_Space, Key.Key_Left):
        QTest.keyClick(pad, key)
    across = next(each for each in range(1, 20) if pad.compute_cell_rect(each).y() > pad.compute_cell_rect(0).y())
    assert pad.selected == {0, 2, 2 + across}


def test_nothing_is_chosen_any_more_once_it_is_marked(pad):
    pad.select_cells(frozenset({1, 2}))
    pad.show_mark(frozenset({4}), frozenset({2}))
    click_element(pad, 7)
    assert pad.selected == {1, 2}
    colors = {
        each: pad.grab().toImage().pixelColor(pad.compute_cell_rect(each).center().toPoint() - QPoint(9, 0)).name()
        for each in (1, 2)
    }
    assert colors == {1: look().theme.good, 2: look().theme.bad}


@pytest.fixture
def lines(qtbot):
    made = LineOrder()
    qtbot.addWidget(made)
    made.resize(300, 100)
    made.set_lines(("a;", "b;", "c;"))
    with qtbot.waitExposed(made):
        made.show()
    return made


def test_a_line_is_dragged_to_its_place(lines):
    QTest.mousePress(lines, LEFT, pos=lines.compute_line_rect(0).center().toPoint())
    QTest.mouseMove(lines, lines.compute_line_rect(1).center().toPoint())
    QTest.mouseMove(lines, lines.compute_line_rect(2).center().toPoint())
    QTest.mouseRelease(lines, LEFT, pos=lines.compute_line_rect(2).center().toPoint())
    assert lines.lines == ("b;", "c;", "a;")


def test_a_line_is_moved_by_keys_and_stays_within(lines):
    changes = []
    lines.changed.connect(lambda: changes.append(lines.lines))
    lines.setFocus()
    QTest.keyClick(lines, Key.Key_Down)
    QTest.keyClick(lines, Key.Key_Down, Qt.KeyboardModifier.AltModifier)
    assert lines.lines == ("a;", "c;", "b;")
    QTest.keyClick(lines, Key.Key_Down, Qt.KeyboardModifier.AltModifier)
    QTest.keyClick(lines, Key.Key_Home, Qt.KeyboardModifier.AltModifier)
    assert lines.lines == ("b;", "a;", "c;")
    assert len(changes) == 2


def test_markdown_is_shown_and_nothing_is_loaded(qtbot, tmp_path):
    made = MarkdownLabel("Words")
    qtbot.addWidget(made)
    made.show_text("Some **strong** words, `code[i]`, <b>tags</b>\nand ![a picture](/etc/passwd).")
    assert "code[i]" in made.text()
    assert "&lt;b&gt;" in made.text()
    assert "<img" not in made.text()
    set_look(Look(DARK, look().text_px))
    made.setStyleSheet("QLabel { color: white; }")
    before = made.text()
    set_look(Look(LIGHT, look().text_px))
    made.setStyleSheet("QLabel { color: black; }")
    assert made.text() != before  # code stands on the ground of the theme that is on
    made.show_text("")
    assert made.isHidden()


@pytest.mark.parametrize(
    "text",
    ["![x]({})", "!![x]({})", "!\\![x]({})", "![x][r]\n\n[r]: {}", "* ![x]({})", "[![x]({})](y)",
     "**![x]({} 'z')** ![x]({})", "![![x]({})]({})", "> ![x](<{}>)", "!&#91;x]({}) ![x]({})", "# ![x]({})"],
)  # fmt: skip
def test_no_spelling_of_an_image_loads_a_file(qtbot, tmp_path, text):
    label = MarkdownLabel("Words")
    qtbot.addWidget(label)
    label.show_text(f"Before {text.format(*[tmp_path / 'x.png'] * 2)}\n\nAfter.")
    assert "<img" not in label.text()
    shown = QTextDocument()
    shown.setHtml(label.text())
    assert "After." in shown.toPlainText()
    assert "x" in shown.toPlainText()
    assert "\ufffc" not in shown.toPlainText()


def test_hints_come_one_by_one(qtbot):
    hints = Hints()
    qtbot.addWidget(hints)
    qtbot.addWidget(hints.hint_button)
    hints.set_hints(("First.", "Second."))
    assert hints.hints_label.isHidden()
    hints.hint_button.click()
    assert hints.hints_label.text() == "1. First."
    hints.hint_button.click()
    assert hints.hints_label.text() == "1. First.\n2. Second."
    assert not hints.hint_button.isEnabled()
    hints.set_hints(())
    assert hints.hint_button.isHidden()


def answer_form(form, answer, **more):
    return RecordingQuestion("kind", "?", form, answer, "Why.", **more)


@pytest.mark.parametrize(
    ("typed", "answer"), [("", None), ("12", 12), ("-3", -3), ("2.5", 2.5), ("2,5", 2.5), ("many", None)]
)
def test_a_number_is_read(qtbot, typed, answer):
    box = create_answer_box(answer_form("number", 12))
    qtbot.addWidget(box)
    QTest.keyClicks(box.text_edit, typed)
    assert box.answer == answer


def test_a_thread_is_typed_or_clicked(qtbot):
    box = create_answer_box(answer_form("thread", (1, 2)))
    qtbot.addWidget(box)
    assert box.answer is None
    QTest.keyClicks(box.block, "1")
    QTest.keyClicks(box.thread_, "x")
    assert box.answer is None
    box.handle_thread_click(3, 4)
    assert box.answer == (3, 4)
    box.show_mark(AnswerMark(False, ""))
    box.handle_thread_click(5, 6)
    assert box.answer == (3, 4)


def test_only_elements_of_the_array_that_is_meant_are_taken(qtbot):
    box = create_answer_box(answer_form("cells", frozenset({1}), array="s", block=1, size=8))
    qtbot.addWidget(box)
    for array, block, element in (("s", 1, 1), ("s", -1, 2), ("s", 0, 3), ("x", 1, 4), ("s", 1, 8)):
        box.handle_cell_click(array, block, element)
    assert box.answer == {1, 2}
    assert box.text_edit.text() == "1, 2"


def test_of_many_elements_those_of_the_picture_are_clicked(qtbot):
    box = create_answer_box(answer_form("cells", frozenset({1}), array="x", size=512))
    qtbot.addWidget(box)
    assert box.pad.isHidden()
    QTest.keyClicks(box.text_edit, "0-3, 511")
    assert box.answer == {0, 1, 2, 3, 511}


def test_a_choice_is_made_by_its_words_too(qtbot):
    box = create_answer_box(answer_form("choice", "b", choices=("a", "b")))
    qtbot.addWidget(box)
    assert box.answer is None
    words = next(each for each in box.findChildren(QLabel) if each.text() == "b")
    QTest.mouseClick(words, LEFT)
    assert box.answer == "b"
    box.show_mark(AnswerMark(True, ""))
    assert not box.buttons["a"].isEnabled()
