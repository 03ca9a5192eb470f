"""While the engine's process records, asks and judges, the window goes on."""

from __future__ import annotations

import pytest

from gui.driving.driven import driven, wait
from tests.gui.lessons.student import Student
from tests.gui.window.test_responsive import LONGEST_GAP_S, Pulse, steadiest
from tests.gui.window.walker import PATIENCE_S, Key

pytestmark = [pytest.mark.timeout(300), pytest.mark.qt_log_ignore("This plugin does not support", extend=True)]


@pytest.mark.alone
def test_a_lesson_that_is_judged_never_holds_the_window_up(qapp):
    with driven("simulator") as window:
        assert wait(lambda: window.at_rest, PATIENCE_S)
        student = Student(window)
        student.begin("06-reduction")
        lesson = student.lessons.lesson
        number = next(number for number, step in enumerate(lesson.steps) if step.task is not None)
        student.teaching.open(lesson, number)
        student.settle()
        student.write(student.solution())
        student.judge()  # the engine's process has compiled what it takes

        def attempt():
            pulse = Pulse()
            student.press(Key.Key_F5)
            student.until(lambda: not student.lessons.busy and student.task.verdict.isVisible())
            assert student.task.verdict.text().startswith("Accepted")
            assert len(pulse.times) > 10
            return pulse.longest_gap()

        assert steadiest(attempt) < LONGEST_GAP_S
