"""The phases of a recording in the Step tab: its time line, card, keys and captions."""

from __future__ import annotations

import pytest
from PyQt6.QtCore import QPoint, Qt
from PyQt6.QtWidgets import QToolTip

from tests.gui.step_view.conftest import wait_for_recording


@pytest.fixture
def tab(open_tab):
    return open_tab("scan", "brent-kung")


def test_a_kernels_phases_stand_below_the_time_line_and_beside_the_statement(qtbot, tab):
    line = tab.panes.timeline
    assert [phase.name for phase in line.phases] == ["", "load", "up-sweep", "down-sweep", "write"]
    for phase in line.phases:
        tab.player.go_to(phase.last)
        assert tab.panes.phase.text() == phase.name
    assert tab.panes.phase.isVisible()
    # One line of names more than without phases.
    height = line.sizeHint().height()
    line.open(line.segments, (), ["scan_brent_kung"])
    assert line.sizeHint().height() < height


def test_page_keys_go_from_phase_to_phase(qtbot, tab):
    tab.player.go_to(0)
    starts = [phase.first for phase in tab.panes.timeline.phases if phase.name]
    for start in starts:
        qtbot.keyClick(tab.panes.flow, Qt.Key.Key_PageDown)
        assert tab.player.moment == start
    qtbot.keyClick(tab.panes.flow, Qt.Key.Key_PageUp)
    assert tab.player.moment == starts[-2]


def test_the_time_line_tells_the_phase_under_the_mouse(qtbot, monkeypatch, tab):
    told = []
    monkeypatch.setattr(QToolTip, "showText", lambda at, text, widget: told.append(text))
    line = tab.panes.timeline
    sweep = next(phase for phase in line.phases if phase.name == "down-sweep")
    qtbot.mouseMove(line, QPoint(int(line.x_of((sweep.first + sweep.last) / 2)), 20))
    assert "down-sweep" in told[-1]


def test_a_picture_says_its_phase(tab, tmp_path):
    sweep = next(phase for phase in tab.panes.timeline.phases if phase.name == "up-sweep")
    tab.player.go_to(sweep.last)
    assert tab.exports.write_picture(tmp_path / "scan.svg")
    assert "up-sweep" in (tmp_path / "scan.svg").read_text()


def test_an_edited_kernel_names_its_own(qtbot, tab):
    document = tab.source.document
    document.setPlainText(document.text.replace("// phase: up-sweep", "// phase: the way up"))
    qtbot.waitUntil(lambda: tab.models is not None and "the way up" in tab.models.data.phases.names)
    wait_for_recording(qtbot, tab)
    assert "the way up" in [phase.name for phase in tab.panes.timeline.phases]
    document.setPlainText(document.text.replace("// phase: ", "// "))
    qtbot.waitUntil(lambda: tab.models is not None and "the way up" not in tab.models.data.phases.names)
    wait_for_recording(qtbot, tab)
    assert tab.panes.timeline.phases == ()
    assert tab.panes.phase.isHidden()
