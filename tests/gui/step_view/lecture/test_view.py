"""A lecture: what fills the window, what its keys do, and that all is back where it was afterwards."""

from __future__ import annotations

import itertools

import pytest
from PyQt6.QtCore import QPoint, QPointF, Qt
from PyQt6.QtGui import QFontMetricsF
from PyQt6.QtWidgets import QApplication, QWidget

from gui.editor.source_pane import SourcePane
from gui.painting.style import style_sheet
from gui.painting.theme import FONT_SIZES, look
from gui.step_view.lecture.texts import CodeLines
from tests.gui.step_view.conftest import wait_for_recording


@pytest.fixture
def window(open_step_tab):
    return open_step_tab()


@pytest.fixture
def tab(window):
    return window.page.step


@pytest.fixture
def lecture(qtbot, window):
    press_key(qtbot, window, Qt.Key.Key_F11)
    assert window.lecturing.view is not None
    return window.lecturing.view


def press_key(qtbot, window, key, modifier=Qt.KeyboardModifier.NoModifier):
    qtbot.keyClick(QApplication.focusWidget() or window, key, modifier)


def box_within(widget, over):
    return over.rect().contains(widget.rect().translated(widget.mapTo(over, QPoint(0, 0))))


def test_figure_lines_and_sentence_fill_the_window(qtbot, window, tab):
    for size, text in itertools.product([(1024, 700), (1280, 720), (1920, 1080)], FONT_SIZES):
        window.appearance.set_text_size(text)
        _check_lecture(qtbot, window, tab, size)


def _check_lecture(qtbot, window, tab, size):
    chosen = look().text_px
    press_key(qtbot, window, Qt.Key.Key_F11)
    window.showNormal()
    window.resize(*size)
    view = window.lecturing.view
    qtbot.waitUntil(lambda: (view.width(), view.height()) == size and tab.panes.flow.viewport.width == size[0])
    assert look().text_px > chosen
    flow = tab.panes.flow
    assert flow.width() == size[0]
    assert flow.height() >= 0.6 * size[1]
    for each in (flow, view.code, view.sentence):
        assert each.isVisible()
        assert box_within(each, view)
    for each in (tab.panes.timeline, tab.panes.lanes, tab.panes.counters):
        assert not each.isVisible()
    port = flow.viewport
    assert port.layout.height(port.sizes) <= flow.height()
    # Cells are wider than in the tab, and all hold their values in print as large as the text.
    assert all(flow.canvas.flow.text_placement(number) is None for number in range(len(port.layout.rows)))
    assert port.sizes.column > 40
    window.lecturing.toggle()


def test_all_is_back_afterwards(qtbot, window, tab):
    right = tab.panes.right.layout()

    def places():
        layouts = (tab.panes.picture.body, right, tab.panes.time.body)
        return [[layout.itemAt(at).widget() for at in range(layout.count())] for layout in layouts]

    hints = []
    for source in window.findChildren(SourcePane):
        source.hint_changed.connect(hints.append)
    before, px, column = places(), look().text_px, tab.panes.flow.viewport.sizes.column
    press_key(qtbot, window, Qt.Key.Key_F11)
    assert places() != before
    press_key(qtbot, window, Qt.Key.Key_F11)
    window.resize(1280, 720)
    assert window.lecturing.view is None
    assert places() == before
    assert look().text_px == px
    assert not window.isFullScreen()
    assert all(each.isVisible() for each in (tab.panes.flow, tab.panes.lanes, tab.panes.timeline, tab.panes.counters))
    qtbot.waitUntil(lambda: abs(tab.panes.flow.viewport.sizes.column - column) < 1)
    assert not hints, "the code had the focus meanwhile"
    press_key(qtbot, window, Qt.Key.Key_Right)
    assert tab.player.moment == 1


def test_the_keys_of_the_tab_move_and_the_line_and_the_sentence_go_along(qtbot, window, tab, lecture):
    press_key(qtbot, window, Qt.Key.Key_Right)
    assert tab.player.moment == 1
    seen = set()
    for key in (Qt.Key.Key_PageDown, Qt.Key.Key_PageDown, Qt.Key.Key_Right, Qt.Key.Key_End, Qt.Key.Key_Left):
        press_key(qtbot, window, key)
        now = tab.snapshot(tab.player.moment)
        assert (lecture.sentence.phase, lecture.sentence.text) == (now.phase, now.effect)
        assert lecture.code.current_line == tab.models.lines[tab.player.moment - 1]
        assert lecture.code.current_line in lecture.code.visible_lines
        seen.add(lecture.code.accessibleDescription())
    assert len(seen) > 2
    press_key(qtbot, window, Qt.Key.Key_Home)
    assert lecture.code.visible_lines == range(0)
    press_key(qtbot, window, Qt.Key.Key_Space)
    assert tab.player.playing
    press_key(qtbot, window, Qt.Key.Key_Space)


def test_b_blanks_and_the_next_key_only_comes_back(qtbot, window, tab, lecture):
    press_key(qtbot, window, Qt.Key.Key_Right)
    press_key(qtbot, window, Qt.Key.Key_B)
    assert lecture.blank.isVisible()
    image = window.centralWidget().grab().toImage()
    places = [(x, y) for x in range(0, image.width(), 50) for y in range(0, image.height(), 50)]
    assert {image.pixelColor(x, y).name() for x, y in places} == {"#000000"}
    press_key(qtbot, window, Qt.Key.Key_Right)
    assert (lecture.blank.isVisible(), tab.player.moment) == (False, 1)
    press_key(qtbot, window, Qt.Key.Key_Period)
    qtbot.mouseClick(lecture.blank, Qt.MouseButton.LeftButton)
    assert not lecture.blank.isVisible()


def test_code_time_and_lanes_are_a_key_away(qtbot, window, tab, lecture):
    for key, widget in (
        (Qt.Key.Key_C, lecture.code),
        (Qt.Key.Key_T, tab.panes.timeline),
        (Qt.Key.Key_L, tab.panes.lanes),
        (Qt.Key.Key_L, tab.panes.counters),
    ):
        before = widget.isVisible()
        press_key(qtbot, window, key)
        assert widget.isVisible() is not before
        press_key(qtbot, window, key)
        assert widget.isVisible() is before
    press_key(qtbot, window, Qt.Key.Key_T)
    qtbot.mouseClick(tab.panes.timeline, Qt.MouseButton.LeftButton, pos=QPoint(tab.panes.timeline.width() // 2, 20))
    assert tab.player.moment > 0


@pytest.mark.qt_log_ignore("does not support (raise|propagateSizeHints)")  # offscreen, of tool tips
def test_the_pointer_lights_a_cell_a_line_and_a_lane(qtbot, window, tab, lecture):
    press_key(qtbot, window, Qt.Key.Key_End)
    press_key(qtbot, window, Qt.Key.Key_L)
    flow = tab.panes.flow
    qtbot.waitUntil(lambda: flow.viewport.width == flow.width() and not flow.viewport.gliding)
    cell = flow.canvas.flow.cell_rect(1, 3).translated(flow.viewport.origin())
    places = (
        (flow, cell.center().toPoint()),
        (lecture.code, QPoint(60, lecture.code.height() // 2)),
        (tab.panes.lanes.grid, tab.panes.lanes.grid._box(5).center().toPoint()),
    )
    for widget, at in places:
        before = lecture.grab().toImage()
        qtbot.mouseMove(widget, at)
        lit = lecture.light.highlighted_box
        assert lit is not None
        assert lit.contains(QPointF(widget.mapTo(lecture, at)))
        assert lecture.grab().toImage() != before
    assert flow.box_at(QPointF(1, 1)) is None
    press_key(qtbot, window, Qt.Key.Key_P)
    assert lecture.light.highlighted_box is None
    press_key(qtbot, window, Qt.Key.Key_P)
    assert lecture.light.highlighted_box is not None


def test_an_element_of_an_array_is_lit_too(qtbot, window, tab, lecture):
    tab.panes.kinds.choose("Arrays")
    press_key(qtbot, window, Qt.Key.Key_End)
    memory = tab.panes.arrays
    panel = memory.panels[0]
    x, y = memory._arrange_grids()[1][0]
    inside = QPointF(x + 3, y + memory._title_height() + 3)
    place = memory.box_at(inside)
    assert place.topLeft() == QPointF(x, y + memory._title_height())
    assert panel.has_value.reshape(-1)[0]
    assert memory.box_at(QPointF(0, 0)) is None


def test_escape_clears_what_stands_out_and_then_leaves(qtbot, window, tab, lecture):
    press_key(qtbot, window, Qt.Key.Key_End)
    tab.panes.flow.select((2, 3))
    press_key(qtbot, window, Qt.Key.Key_Escape)
    assert window.lecturing.view is lecture
    assert tab.panes.flow.marks.selected is None
    press_key(qtbot, window, Qt.Key.Key_Escape)
    assert window.lecturing.view is None


def test_another_variant_goes_on_and_another_pattern_ends_it(qtbot, window, tab, lecture):
    window.choose_variant("kogge-stone")
    wait_for_recording(qtbot, tab)
    press_key(qtbot, window, Qt.Key.Key_End)
    assert window.lecturing.view is lecture
    assert lecture.sentence.phase == "write"
    window.choose_pattern("reduction")
    assert window.lecturing.view is None
    assert tab.panes.flow.parentWidget() is tab.panes.pictures
    assert tab.panes.isAncestorOf(tab.panes.pictures)


def test_what_cannot_be_recorded_is_said_there_too(qtbot, window, tab, lecture):
    tab._show_message("Nothing to see.")
    assert lecture.sentence.text == "Nothing to see."
    assert lecture.code.visible_lines == range(0)


def test_elsewhere_f11_is_the_full_screen(qtbot, window):
    window.page.tabs.setCurrentIndex(0)
    window.window_actions.actions_by_name["full screen"].trigger()
    assert window.isFullScreen()
    assert window.lecturing.view is None
    window.window_actions.actions_by_name["full screen"].trigger()
    assert not window.isFullScreen()


def test_a_maximized_window_is_maximized_again_after_a_lecture(qtbot, window, tab):
    window.showMaximized()
    press_key(qtbot, window, Qt.Key.Key_F11)
    assert window.isFullScreen()
    press_key(qtbot, window, Qt.Key.Key_F11)
    assert not window.isFullScreen()
    assert window.isMaximized()


def test_a_lecture_restyles_only_what_it_shows(qtbot, window, tab):
    styles, chosen = window.styleSheet(), look().text_px
    press_key(qtbot, window, Qt.Key.Key_F11)
    assert look().text_px > chosen
    assert window.styleSheet() == styles
    window.appearance.toggle_theme()
    light = look().theme.surface
    assert light in window.lecturing.view.styleSheet()
    press_key(qtbot, window, Qt.Key.Key_F11)
    assert look().text_px == chosen
    assert window.styleSheet() == style_sheet(look())


def test_lines_at_the_ends_of_a_text_are_shown(qtbot):
    code = CodeLines()
    qtbot.addWidget(code)
    code.show_line("a\n\tb\nc\n", 1)
    assert code.visible_lines == range(1, 4)
    code.show_line("a\n\tb\nc\n", 4)
    assert code.visible_lines == range(2, 5)
    code.show_line("only", 1)
    assert code.visible_lines == range(1, 2)
    code.resize(code.sizeHint())
    code.grab()
    assert isinstance(code, QWidget)


@pytest.mark.parametrize(("width", "is_whole"), [(900, True), (620, True), (200, False)])
def test_a_long_current_line_is_written_in_a_font_in_which_it_fits(qtbot, width, is_whole):
    code = CodeLines()
    qtbot.addWidget(code)
    code.resize(width, code.sizeHint().height())
    line = "if (t % (2 * stride) == 0 && i + stride < n) data[i] = COMBINE(data[i], data[i + stride]);"
    code.show_line(f"for (;;) {{\n    {line}\n}}", 2)
    font = code.choose_font(0)
    needed = QFontMetricsF(font).horizontalAdvance("0" * (5 + 4 + len(line)))
    assert (needed <= width) == is_whole
    assert font.pixelSize() >= round(0.6 * look().text_px)
    code.show_line("short;", 1)
    assert code.choose_font(0).pixelSize() == look().text_px or width < 300
