"""Symbols in the place of values, in the Step tab."""

from __future__ import annotations

import pytest
from PyQt6.QtCore import Qt

from tests.gui.step_view.conftest import wait_for_recording


@pytest.fixture
def tab(open_tab):
    return open_tab("scan", "brent-kung")


def cell_texts(tab):
    layout = tab.panes.flow.viewport.layout
    return [layout.texts(number, 40) for number in range(len(layout.rows))]


def test_s_writes_symbols_into_the_cells_and_back(qtbot, tab, tmp_path):
    tab.player.go_to(tab.player.end)
    values, moment = cell_texts(tab), tab.player.moment
    qtbot.keyClick(tab.panes.flow, Qt.Key.Key_S)
    qtbot.waitUntil(lambda: cell_texts(tab) != values)
    assert cell_texts(tab)[0] == [f"x{element}" for element in range(16)]
    assert "Σ x[0..15]" in cell_texts(tab)[-1]
    assert tab.player.moment == moment
    assert tab.panes.flow.moment == moment
    assert tab.exports.write_picture(tmp_path / "scan.svg")
    assert "x0..7" in (tmp_path / "scan.svg").read_text().replace("[", "")
    qtbot.keyClick(tab.panes.flow, Qt.Key.Key_S)
    assert cell_texts(tab) == values


def test_another_recording_has_symbols_too(qtbot, tab):
    qtbot.mouseClick(tab.panes.symbols, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: cell_texts(tab)[0][0] == "x0")
    tab.settings.form.change_values(n=8)
    wait_for_recording(qtbot, tab)
    qtbot.waitUntil(lambda: cell_texts(tab)[0] == [f"x{element}" for element in range(8)])


def test_what_was_computed_keeps_its_symbol(qtbot, tab):
    """A symbol is wider than a cell: those of what was made are written all the same."""
    qtbot.mouseClick(tab.panes.symbols, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: cell_texts(tab)[0][0] == "x0")
    flow = tab.panes.flow
    for number, row in enumerate(flow.viewport.layout.rows):
        plan = flow.canvas.flow.text_placement(number)
        if plan is not None and row.computed.any():
            assert plan.summaries or sum(map(bool, plan.texts.values())) >= row.computed.sum() / 2
