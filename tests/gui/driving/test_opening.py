"""How long the window takes to open: in a process of its own, from the command to its first picture."""

from __future__ import annotations

import time

import pytest

from gui.driving import opening


def test_an_opening_takes_its_time_and_leaves(monkeypatch) -> None:
    begun = time.time()
    monkeypatch.setattr(opening, "_WARM_UP", 0)
    (found,) = opening.openings(1)
    assert found.cpu_ms > 100
    assert found.wall_ms <= 1e3 * (time.time() - begun)


def test_a_window_that_does_not_open_says_why(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(opening, "_ROOT", tmp_path)
    with pytest.raises(RuntimeError, match="gui"):
        opening.openings(1)
