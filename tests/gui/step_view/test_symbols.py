"""Symbols in the place of values, in the Step tab."""

from __future__ import annotations

import pytest
from PyQt6.QtCore import Qt

from tests.gui.step_view.conftest import shown


@pytest.fixture
def tab(stepping):
    return stepping("scan", "brent-kung").page.step


def texts(tab):
    layout = tab.panes.flow.viewport.layout
    return [layout.texts(number, 40) for number in range(len(layout.rows))]


def test_s_writes_symbols_into_the_cells_and_back(qtbot, tab, tmp_path):
    tab.player.go(tab.player.end)
    values, moment = texts(tab), tab.player.moment
    qtbot.keyClick(tab.panes.flow, Qt.Key.Key_S)
    qtbot.waitUntil(lambda: texts(tab) != values)
    assert texts(tab)[0] == [f"x{element}" for element in range(16)]
    assert "Σ x[0..15]" in texts(tab)[-1]
    assert tab.player.moment == moment
    assert tab.panes.flow.moment == moment
    assert tab.exports.write_picture(tmp_path / "scan.svg")
    assert "x0..7" in (tmp_path / "scan.svg").read_text().replace("[", "")
    qtbot.keyClick(tab.panes.flow, Qt.Key.Key_S)
    assert texts(tab) == values


def test_another_recording_has_symbols_too(qtbot, tab):
    qtbot.mouseClick(tab.panes.symbols, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: texts(tab)[0][0] == "x0")
    tab.settings.form.change(n=8)
    shown(qtbot, tab)
    qtbot.waitUntil(lambda: texts(tab)[0] == [f"x{element}" for element in range(8)])


def test_what_was_computed_keeps_its_symbol(qtbot, tab):
    """A symbol is wider than a cell: those of what was made are written all the same."""
    qtbot.mouseClick(tab.panes.symbols, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: texts(tab)[0][0] == "x0")
    flow = tab.panes.flow
    for number, row in enumerate(flow.viewport.layout.rows):
        plan = flow.canvas.flow.written(number)
        if plan is not None and row.made.any():
            assert plan.together or sum(map(bool, plan.texts.values())) >= row.made.sum() / 2
