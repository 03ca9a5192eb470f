"""Startup time of the window: in a separate process, from the command to the first painted picture."""

from __future__ import annotations

import time

import pytest

from gui.driving import startup_time


def test_a_startup_is_measured_and_ends(monkeypatch) -> None:
    start = time.time()
    monkeypatch.setattr(startup_time, "_WARM_UP_COUNT", 0)
    (startup,) = startup_time.measure_startups(1)
    assert startup.cpu_ms > 100
    assert startup.wall_ms <= 1e3 * (time.time() - start)


def test_a_failed_startup_reports_its_reason(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(startup_time, "ROOT", tmp_path)
    with pytest.raises(RuntimeError, match="gui"):
        startup_time.measure_startups(1)
