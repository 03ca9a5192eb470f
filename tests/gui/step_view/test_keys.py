"""The Step tab by real keys and clicks, wherever the keyboard's focus is."""

from __future__ import annotations

import numpy as np
import pytest
from PyQt6.QtCore import QPoint, QPointF, Qt
from PyQt6.QtGui import QTextCursor
from PyQt6.QtWidgets import QApplication

from tests.gui.step_view.conftest import wait_for_recording

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def window(qtbot, open_step_tab):
    made = open_step_tab()
    made.activateWindow()
    qtbot.waitUntil(made.isActiveWindow)
    return made


@pytest.fixture
def tab(window):
    return window.page.step


def press_key(qtbot, key, modifier=Qt.KeyboardModifier.NoModifier):
    """Press a key where the focus is."""
    qtbot.keyClick(QApplication.focusWidget(), key, modifier)


def focus_targets(tab):
    """Return widgets of all kinds on which the focus is left, by clicks or by Tab."""
    window, panes = tab.window(), tab.panes
    return {
        "tabs": window.page.tabs,
        "kinds": panes.kinds.buttons["Flow"],
        "chosen": tab.settings_button,
        "speed": panes.transport.speed,
        "loop": panes.transport.loop,
        "next": panes.transport.buttons["barrier on"],
        "export": panes.export,
        "variant": window.header.variant,
        "engine": window.header.engine,
        "pattern": window.sidebar.buttons["scan"],
        "run": window.header.run,
        "order": tab.settings.schedule_kinds.buttons["round-robin"],
        "operator": tab.settings.form.fields["operator"].box,
        "slider": tab.settings.form.fields["n"].slider,
    }


def test_playback_keys_work_wherever_the_focus_is(qtbot, tab):
    tab.settings.show()
    for name, widget in focus_targets(tab).items():
        tab.player.go_to(3)
        widget.setFocus()
        assert widget.hasFocus(), name
        press_key(qtbot, Qt.Key.Key_Right)
        assert tab.player.moment == 4, name
        press_key(qtbot, Qt.Key.Key_Left)
        press_key(qtbot, Qt.Key.Key_Left)
        assert tab.player.moment == 2, name
        press_key(qtbot, Qt.Key.Key_Right, Qt.KeyboardModifier.ShiftModifier)
        assert tab.player.moment == tab.models.data.segments[1].first, name
        press_key(qtbot, Qt.Key.Key_End)
        assert tab.player.moment == tab.player.end, name
        press_key(qtbot, Qt.Key.Key_Home)
        assert tab.player.moment == 0, name
        press_key(qtbot, Qt.Key.Key_Space)
        assert tab.player.playing, name
        press_key(qtbot, Qt.Key.Key_Space)
        assert not tab.player.playing, name
        assert tab.window().page.stepping, name
        assert tab.panes.kinds.chosen == "Flow", name


def test_after_a_change_of_the_settings_the_keys_step(qtbot, tab):
    qtbot.mouseClick(tab.settings_button, LEFT)
    box = tab.settings.form.fields["n"].box
    box.setFocus()
    box.selectAll()
    qtbot.keyClicks(box, "8")
    wait_for_recording(qtbot, tab)
    qtbot.mouseClick(tab.settings.close_button, LEFT)
    tab.player.go_to(0)
    for moment in (1, 2, 3):
        press_key(qtbot, Qt.Key.Key_Right)
        assert tab.player.moment == moment
    press_key(qtbot, Qt.Key.Key_Space)
    assert tab.player.playing
    assert tab.window().page.stepping


@pytest.mark.parametrize("leaving", [Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Escape])
def test_after_a_number_is_typed_the_focus_returns_to_the_figure(qtbot, tab, leaving):
    qtbot.mouseClick(tab.settings_button, LEFT)
    box = tab.settings.form.fields["n"].box
    qtbot.mouseClick(box.lineEdit(), LEFT)
    qtbot.waitUntil(lambda: box.lineEdit().selectedText() == box.text())
    qtbot.keyClicks(box, "8")
    wait_for_recording(qtbot, tab)
    assert tab.settings.params["n"] == 8
    press_key(qtbot, leaving)
    assert tab.panes.flow.hasFocus()
    tab.player.go_to(0)
    press_key(qtbot, Qt.Key.Key_Right)
    assert tab.player.moment == 1
    press_key(qtbot, Qt.Key.Key_Right, Qt.KeyboardModifier.ShiftModifier)
    assert tab.player.moment == tab.models.data.segments[1].first
    press_key(qtbot, Qt.Key.Key_Space)
    assert tab.player.playing


def test_enter_in_the_number_of_the_textbook_returns_the_focus_to_the_figure(qtbot, tab):
    tab.panes.counters.n.setFocus()
    qtbot.keyClicks(tab.panes.counters.n, "64")
    press_key(qtbot, Qt.Key.Key_Return)
    assert tab.panes.flow.hasFocus()


def test_what_is_typed_is_typed(qtbot, tab):
    tab.player.go_to(3)
    tab.settings.show()
    for field in (tab.settings.form.fields["n"].box, tab.panes.counters.n):
        field.setFocus()
        for key in (Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Home, Qt.Key.Key_End, Qt.Key.Key_Space):
            press_key(qtbot, key)
        assert tab.player.moment == 3
        assert not tab.player.playing
    code = tab.source.code
    code.setFocus()
    press_key(qtbot, Qt.Key.Key_Space)
    assert tab.source.document.edited
    assert not tab.player.playing


@pytest.mark.qt_log_ignore("This plugin does not support", extend=True)
def test_return_presses_the_button_that_has_the_focus(qtbot, tab):
    tab.panes.transport.loop.setFocus()
    press_key(qtbot, Qt.Key.Key_Return)
    assert tab.player.loop
    tab.panes.kinds.buttons["Arrays"].setFocus()
    press_key(qtbot, Qt.Key.Key_Return)
    assert tab.panes.kinds.chosen == "Arrays"
    tab.panes.transport.speed.setFocus()
    press_key(qtbot, Qt.Key.Key_Return)
    assert tab.panes.transport.speed.view().isVisible()
    tab.panes.transport.speed.hidePopup()


def test_another_view_has_its_own_keys(qtbot, window, tab):
    window.page.tabs.setCurrentIndex(0)
    moment = tab.player.moment
    window.page.view.after.setFocus()
    press_key(qtbot, Qt.Key.Key_Right)
    press_key(qtbot, Qt.Key.Key_Space)
    assert tab.player.moment == moment
    assert not tab.player.playing
    assert window.page.view.after.index is not None


def position_after(code, line, behind):
    """Return where in the text's viewport some words of a line end."""
    cursor = QTextCursor(code.document().findBlockByNumber(line - 1))
    cursor.setPosition(cursor.position() + cursor.block().text().index(behind) + len(behind))
    code.setTextCursor(cursor)
    return code.cursorRect(cursor).center()


def test_one_click_on_a_line_jumps_and_what_is_typed_edits_there(qtbot, tab):
    code, lines = tab.source.code, tab.models.lines
    line = int(lines[20])
    tab.player.go_to(0)
    place = position_after(code, line, ";")
    tab.panes.flow.setFocus()
    qtbot.mouseClick(code.viewport(), LEFT, pos=place)
    assert tab.player.moment == int(np.argmax(lines == line)) + 1
    variant = tab.steppable
    for key in "variants":
        qtbot.keyClick(QApplication.focusWidget(), key)
    qtbot.keyClick(QApplication.focusWidget(), " ")
    qtbot.keyClicks(QApplication.focusWidget(), "1 [")
    assert "variants 1 [" in code.document().findBlockByNumber(line - 1).text()
    assert not tab.player.playing
    assert tab.steppable == variant
    assert tab.window().bench.pattern_name == "scan"


def test_escape_gives_the_keys_back_to_the_picture(qtbot, tab):
    line = int(tab.models.lines[20])
    qtbot.mouseClick(tab.source.code.viewport(), LEFT, pos=position_after(tab.source.code, line, ";"))
    moment = tab.player.moment
    press_key(qtbot, Qt.Key.Key_Escape)
    assert tab.panes.flow.hasFocus()
    press_key(qtbot, Qt.Key.Key_Right)
    assert tab.player.moment == moment + 1
    assert not tab.source.document.edited


def test_a_click_on_the_number_of_a_line_jumps_and_leaves_the_keys_to_the_picture(qtbot, tab):
    code, lines = tab.source.code, tab.models.lines
    line = int(lines[20])
    tab.player.go_to(0)
    height = position_after(code, line, ";").y()
    code.setFocus()
    qtbot.mouseClick(code._gutter, LEFT, pos=QPoint(10, height))
    moment = int(np.argmax(lines == line)) + 1
    assert tab.player.moment == moment
    press_key(qtbot, Qt.Key.Key_Left)
    assert tab.player.moment == moment - 1


def test_a_number_that_is_out_of_range_is_not_recorded(qtbot, tab):
    """4096 became 409."""
    tab.settings.show()
    field = tab.settings.form.fields["n"]
    assert field.parameter.maximum < 4096
    field.box.setFocus()
    field.box.selectAll()
    qtbot.keyClicks(field.box, "4096")
    qtbot.keyClick(field.box, Qt.Key.Key_Return)
    wait_for_recording(qtbot, tab)
    assert field.box.text() == "4096"
    assert "not 4096. Still using 16." in tab.settings.form.error.text()
    assert tab.settings.form.error.isVisible()
    assert tab.request.params["n"] == 16
    assert tab.settings_button.text().startswith("16 elements")


def test_a_seed_below_zero_is_refused(qtbot, tab):
    tab.settings.show()
    tab.settings.schedule_kinds.choose("shuffle")
    tab.settings.seed.setFocus()
    tab.settings.seed.selectAll()
    qtbot.keyClicks(tab.settings.seed, "-3")
    wait_for_recording(qtbot, tab)
    assert tab.settings.seed.text() == "-3"
    assert "not -3" in tab.settings.form.error.text()
    assert tab.request.schedule == "shuffle:0"


def click_cell(qtbot, flow, row, cell, modifier=Qt.KeyboardModifier.NoModifier):
    center = flow.canvas.flow.cell_rect(row, cell).center() + flow.viewport.origin()
    qtbot.mouseClick(flow, LEFT, modifier, center.toPoint())


def test_a_key_of_a_sort_is_followed_by_shift_click_and_back_by_a_key(qtbot, open_tab):
    tab = open_tab("sort", "odd-even")
    window, flow = tab.window(), tab.panes.flow
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    keys = flow.viewport.layout.rows[0].value.tolist()
    cell = int(np.argmax(keys))
    tab.player.go_to(tab.player.end)
    flow.scroll_by(QPointF(0, 10_000))
    click_cell(qtbot, flow, 0, cell, Qt.KeyboardModifier.ShiftModifier)
    last = len(flow.viewport.layout.rows) - 1
    assert flow.marks.highlighted[last] == [len(keys) - 1], "the largest key is the last one"
    assert all(len(cells) == 1 for cells in flow.marks.highlighted.values())
    # A key turns the direction: an input has no sources; the last place has all keys that were compared there.
    press_key(qtbot, Qt.Key.Key_U)
    assert (flow.marks.highlighted, flow.marks.selected) == ({0: [cell]}, (0, cell))
    press_key(qtbot, Qt.Key.Key_U)
    assert last in flow.marks.highlighted
    click_cell(qtbot, flow, 0, cell, Qt.KeyboardModifier.ShiftModifier)
    assert flow.marks.selected is None
    press_key(qtbot, Qt.Key.Key_U)
    assert flow.marks.selected is None
    click_cell(qtbot, flow, 0, cell)
    assert (flow.marks.selected, flow.marks.forward) == ((0, cell), False)


def test_a_followed_key_appears_step_by_step(qtbot, open_tab):
    tab = open_tab("sort", "odd-even")
    flow, layout = tab.panes.flow, tab.models.layout
    tab.player.go_to(layout.rows[2].last + 1)
    flow.scroll_by(QPointF(0, 10_000))
    click_cell(qtbot, flow, 0, 3, Qt.KeyboardModifier.ShiftModifier)
    flow.scroll_by(QPointF(0, -10_000))
    painted = []
    paint = flow.canvas.flow.paint_highlight

    def record(painter, row, cells, starts=None):
        painted.append((row, cells))
        paint(painter, row, cells, starts)

    flow.canvas.flow.paint_highlight = record
    for number in (2, 5):
        tab.player.go_to(layout.rows[number].last + 1)
        painted.clear()
        flow.grab()
        assert sorted(painted) == sorted(
            (row, cells) for row, cells in flow.marks.highlighted.items() if row <= number and painted
        )
        assert max(row for row, _ in painted) == number
