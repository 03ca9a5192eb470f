"""A window that a program drives."""

from __future__ import annotations

from gui.driving.driven import wait


def test_nothing_is_asked_once_a_wait_is_over(qtbot):
    asked = []

    def done():
        asked.append(True)
        return len(asked) > 2

    assert wait(done, 10)
    before = len(asked)
    qtbot.wait(200)
    assert len(asked) == before
    assert not wait(lambda: False, 0.05)
