"""How long the window takes to open: in a process of its own, from the command to its first picture."""

from __future__ import annotations

import time

import pytest

from gui.driving import startup_time


def test_an_opening_takes_its_time_and_leaves(monkeypatch) -> None:
    begun = time.time()
    monkeypatch.setattr(startup_time, "_WARM_UP_COUNT", 0)
    (found,) = startup_time.measure_startups(1)
    assert found.cpu_ms > 100
    assert found.wall_ms <= 1e3 * (time.time() - begun)


def test_a_window_that_does_not_open_says_why(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(startup_time, "_ROOT", tmp_path)
    with pytest.raises(RuntimeError, match="gui"):
        startup_time.measure_startups(1)
