"""While the engine's process records, asks and judges, the window goes on."""

from __future__ import annotations

import pytest

from gui.driving.window_session import open_window, wait_until
from tests.gui.lessons.student import Student
from tests.gui.window.test_responsive import LONGEST_GAP_S, Pulse, best_of_attempts
from tests.gui.window.walker import PATIENCE_S, Key

pytestmark = [pytest.mark.timeout(300), pytest.mark.qt_log_ignore("This plugin does not support", extend=True)]


@pytest.mark.alone
def test_a_lesson_that_is_judged_never_holds_the_window_up(qapp):
    with open_window("simulator") as window:
        assert wait_until(lambda: window.is_idle, PATIENCE_S)
        student = Student(window)
        student.begin_lesson("08-reduction")
        lesson = student.lessons.lesson
        number = next(number for number, step in enumerate(lesson.steps) if step.task is not None)
        student.teaching.open_lesson(lesson, number)
        student.wait_for_step()
        student.write_text(student.solution())
        student.grade()  # the engine's process has compiled what it takes

        def attempt():
            pulse = Pulse()
            student.press(Key.Key_F5)
            student.wait_until(lambda: not student.lessons.busy and student.task.verdict.isVisible())
            assert student.task.verdict.text().startswith("Accepted")
            assert len(pulse.times) > 10
            return pulse.longest_gap()

        assert best_of_attempts(attempt) < LONGEST_GAP_S
