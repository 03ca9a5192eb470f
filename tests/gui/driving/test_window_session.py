"""A window that a program drives."""

from __future__ import annotations

from gui.driving.window_session import wait_until


def test_nothing_is_asked_once_a_wait_is_over(qtbot):
    asked = []

    def is_finished():
        asked.append(True)
        return len(asked) > 2

    assert wait_until(is_finished, 10)
    before = len(asked)
    qtbot.wait(200)
    assert len(asked) == before
    assert not wait_until(lambda: False, 0.05)
