"""A lesson in lecture mode: the question, the figure and the answer are visible, and the lesson's keys work."""

from __future__ import annotations

import pytest
from PyQt6.QtCore import QPoint, Qt

from tests.gpu.lessons.lesson_folder import HEAD, SHOW, write_lesson
from tests.gui.lessons.student import ALT, Student
from tests.gui.window.walker import Key

CELLS = SHOW + '[question]\nask = "cells"\narray = "c"\n'
VALUE = SHOW + '[question]\nask = "value"\narray = "c"\n'


@pytest.fixture
def lecturer(window, tmp_path):
    folder = tmp_path / "adding"
    folder.mkdir()
    write_lesson(folder, CELLS, VALUE, head=HEAD + "A text that fills most of the column. " * 20 + "\n\n")
    lecturer = Student(window)
    window.files.open_file(folder)
    lecturer.wait_until(lambda: lecturer.lessons.lesson is not None)
    lecturer.wait_for_step()
    lecturer.click(lecturer.pane.for_class, QPoint(8, lecturer.pane.for_class.height() // 2))
    assert lecturer.lessons.for_class
    lecturer.wait_for_step()
    return lecturer


def is_within(part, whole):
    """Return whether all of a widget lies in another one, where nothing cuts it."""
    return whole.rect().contains(part.rect().translated(part.mapTo(whole, QPoint(0, 0))))


@pytest.mark.parametrize("size", [(1024, 700), (1280, 720), (1920, 1080)])
def test_a_lecture_shows_question_figure_and_answer(lecturer, size):
    lecturer.press(Key.Key_F11)
    view = lecturer.window.lecturing.view
    lecturer.window.showNormal()
    lecturer.window.resize(*size)
    lecturer.wait_until(lambda: (view.width(), view.height()) == size)
    figure, question = lecturer.lesson_page.step.panes.pictures, lecturer.question
    column, texts = lecturer.pane.scroll_area.viewport(), (question.prompt, question.reveal, question.hints.hint_button)
    for whole, parts in ((view, (figure,)), (column, texts)):
        for part in parts:
            assert part.isVisible()
            lecturer.wait_until(lambda part=part, whole=whole: is_within(part, whole))
    pane_right = lecturer.pane.mapTo(view, QPoint(lecturer.pane.width(), 0)).x()
    assert pane_right <= figure.mapTo(view, QPoint(0, 0)).x()
    assert figure.width() > size[0] / 2
    lecturer.press(Key.Key_F5)
    for part in (question.verdict, question.retry_button, question.hints.hint_button):
        assert part.isVisible()
        lecturer.wait_until(lambda part=part: is_within(part, column))
    assert lecturer.window.lecturing.view is view


def test_alt_with_arrows_moves_in_a_lecture_and_the_lesson_is_back_afterwards(lecturer):
    pane, window = lecturer.pane, lecturer.window
    parent, width = pane.parentWidget(), pane.width()
    place = parent.layout().indexOf(pane)
    lecturer.press(Key.Key_F11)
    lecturer.press(Key.Key_Right, modifier=ALT)
    lecturer.wait_for_step()
    assert lecturer.lessons.step_number == 1
    assert lecturer.question.prompt.isVisible()
    lecturer.press(Key.Key_Left, modifier=ALT)
    lecturer.wait_for_step()
    assert lecturer.lessons.step_number == 0
    assert window.lecturing.view is not None
    lecturer.press(Key.Key_F11)
    assert window.lecturing.view is None
    assert (pane.parentWidget(), parent.layout().indexOf(pane), pane.isVisible()) == (parent, place, True)
    lecturer.wait_until(lambda: pane.width() == width)


def test_another_pattern_ends_the_lecture_and_hides_the_lesson(lecturer):
    lecturer.press(Key.Key_F11)
    lecturer.window.choose_pattern("scan")
    assert lecturer.window.lecturing.view is None
    assert not lecturer.pane.isVisible()
    assert lecturer.window.windowState() & Qt.WindowState.WindowFullScreen == Qt.WindowState.WindowNoState
