"""Closing the window waits for what other threads still do: an interpreter that ends beside them crashes."""

from __future__ import annotations

import time

from gui.work.background import aside


def test_closing_waits_for_what_is_done_aside(qtbot, window):
    done = []
    aside(lambda: (time.sleep(0.3), done.append(True)))
    window.close()
    assert done == [True]
    assert not window.isVisible()
