"""Closing the window waits for what other threads still do: an interpreter that ends beside them crashes."""

from __future__ import annotations

import time

from gui.qt.background import run_in_background


def test_closing_waits_for_what_is_done_in_the_background(qtbot, window):
    done = []
    run_in_background(lambda: (time.sleep(0.3), done.append(True)))
    window.close()
    assert done == [True]
    assert not window.isVisible()
