"""What a lecturer and a student do in an hour, by real keys and clicks, at three sizes and in both themes."""

from __future__ import annotations

from contextlib import contextmanager
from itertools import product

import pytest
from PyQt6.QtCore import QPoint, QRect, Qt, QTimer
from PyQt6.QtTest import QTest
from PyQt6.QtWidgets import (
    QApplication,
    QComboBox,
    QFileDialog,
    QLabel,
    QWidget,
)

from gui.driving.window_session import open_window, wait_until
from gui.painting.theme import look
from gui.widgets.file_dialogs import set_folder_memory
from tests.gui.conftest import PatientBot
from tests.gui.window.clipped_widgets import find_clipped, find_clipped_when_settled
from tests.gui.window.walker import PATIENCE_S, Key, Walker

pytestmark = pytest.mark.timeout(300)
MENUS = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)
"""Of lists and menus the offscreen platform says that it cannot raise them."""

CTRL = Qt.KeyboardModifier.ControlModifier
SIZES = SMALL, MEDIUM, LARGE = (1024, 700), (1280, 720), (1920, 1080)
THEME_OF = {SMALL: "dark", MEDIUM: "light", LARGE: "dark"}


def at(*sizes):
    """Run a test at sizes, each in its theme; the exhaustive tier has all sizes in both themes."""
    return pytest.mark.parametrize(
        "walk",
        [
            pytest.param(
                (size, theme),
                id=f"{size[0]}-{theme}",
                marks=() if size in sizes and theme == THEME_OF[size] else pytest.mark.sweep,
            )
            for size, theme in product(SIZES, ("dark", "light"))
        ],
        indirect=True,
        scope="module",
    )


@pytest.fixture(scope="module")
def walker(qapp):
    with open_window("simulator") as window:
        assert wait_until(lambda: window.is_idle, PATIENCE_S)
        yield Walker(window)


@pytest.fixture(scope="module")
def walk(walker, request):
    """The window at a size and in a theme."""
    walker.size, theme = request.param
    walker.window.appearance.set_theme(theme)
    return walker


@pytest.fixture
def step(walk):
    """The Step tab of a scan at its first step, with the keys at the picture, whatever was done before."""
    walk.window.resize(*walk.size)
    walk.press(Key.Key_F2)
    walk.show_pattern("scan")
    walk.press(Key.Key_5)
    walk.wait_until_idle()
    walk.record_steps()
    walk.step_tab.panes.kinds.choose("Flow")
    walk.step_tab.panes.flow.setFocus()
    walk.press(Key.Key_Home)
    return walk.step_tab


@contextmanager
def lecture(walk):
    """A lecture in a window of the size that is tried, as F11 begins and ends it."""
    walk.press(Key.Key_F11)
    walk.window.showNormal()
    walk.window.resize(*walk.size)
    view = walk.window.lecturing.view
    assert wait_until(lambda: (view.width(), view.height()) == walk.size, PATIENCE_S)
    yield view
    walk.press(Key.Key_F11)
    walk.window.resize(*walk.size)
    assert walk.window.lecturing.view is None


def is_fitted(flow):
    port = flow.viewport
    return port.layout.height(port.sizes) <= flow.height() and port.layout.width(port.sizes) <= flow.width() + 1


@at(SMALL, LARGE)
def test_a_lecture_is_given_from_the_keyboard(walk, step):
    with lecture(walk) as view:
        flow = step.panes.flow
        assert flow.width() == walk.size[0]
        assert flow.height() > 0.6 * walk.size[1]
        walk.press(Key.Key_PageDown, Key.Key_Right)
        assert view.sentence.phase == "load"
        assert wait_until(lambda: flow.viewport.width == flow.width() and not flow.viewport.gliding, PATIENCE_S)
        walk.press(Key.Key_End)
        cell = flow.canvas.flow.cell_rect(1, 3).translated(flow.viewport.origin())
        PatientBot.mouseMove(flow, cell.center().toPoint())
        assert view.light.highlighted_box is not None
        moment = step.player.moment
        walk.press(Key.Key_B)
        assert view.blank.isVisible()
        walk.press(Key.Key_Right)
        assert (view.blank.isVisible(), step.player.moment) == (False, moment)
        walk.press(Key.Key_T)
        assert step.panes.timeline.isVisible()
    assert step.panes.timeline.isVisible()
    assert not walk.window.isFullScreen()


@at(SMALL, LARGE)
def test_fit_shows_the_whole_figure(walk, step):
    flow = step.panes.flow
    for _ in range(8):
        walk.press(Key.Key_Plus)
    assert wait_until(lambda: not flow.viewport.gliding and not is_fitted(flow), PATIENCE_S)
    fit = step.panes.zoom_buttons["fit"]
    assert fit.text() == "Fit all"
    names = [step.panes.kinds.buttons[each].mapTo(walk.window, QPoint(0, 0)) for each in ("Flow", "Side by side")]
    assert names[0].y() == names[1].y()
    walk.click(fit)
    assert wait_until(lambda: not flow.viewport.gliding and is_fitted(flow), PATIENCE_S)


@at(MEDIUM)
def test_phases_and_symbols_are_a_key_away(walk, step):
    phases = []
    for _ in range(4):
        walk.press(Key.Key_PageDown)
        phases.append(step.panes.phase.text())
    assert [each for each in phases if each][:3] == ["load", "up-sweep", "down-sweep"]
    port = step.panes.flow.viewport
    walk.press(Key.Key_S)
    assert wait_until(lambda: port.layout.texts(0, 40)[:2] == ["x0", "x1"], PATIENCE_S)
    walk.press(Key.Key_S)
    assert wait_until(lambda: port.layout.texts(0, 40)[0].isdecimal(), PATIENCE_S)


@at(LARGE)
def test_the_keys_step_wherever_the_focus_is(walk, step):
    panes = step.panes
    for widget in (
        walk.page.tabs,
        panes.kinds.buttons["Flow"],
        panes.transport.speed,
        step.settings_button,
        panes.export,
    ):
        walk.press(Key.Key_Home)
        widget.setFocus()
        walk.press(Key.Key_Right, Key.Key_Right, Key.Key_Left)
        assert step.player.moment == 1, widget.accessibleName()
        assert walk.page.stepping
        panes.flow.setFocus()


@at(SMALL)
def test_a_click_on_a_line_goes_there_and_escape_comes_back(walk, step):
    code, line = step.source.code, int(step.models.lines[-1])
    code.go_to_line(line)
    walk.click(code.viewport(), code.cursorRect().center())
    assert step.player.moment == step.models.lines.tolist().index(line) + 1
    walk.press(Key.Key_Escape, Key.Key_Home, Key.Key_Right)
    assert step.player.moment == 1


@at(SMALL)
def test_a_pixel_leads_to_its_thread_which_is_stepped_from_there(walk):
    walk.window.resize(*walk.size)
    walk.press(Key.Key_F2)
    walk.show_pattern("convolution")
    asked = walk.page.writer_search.card
    walk.click(walk.page.view.after._widget.viewport())
    assert wait_until(lambda: asked.isVisible() and asked.step.isVisible(), PATIENCE_S)
    assert "thread (" in asked.thread_label.text()
    assert asked.line.text().startswith("convolution.cu:")
    walk.click(asked.step)
    assert wait_until(
        lambda: walk.page.stepping and walk.step_tab.is_up_to_date and walk.step_tab.models is not None, PATIENCE_S
    )
    assert walk.step_tab.followed is not None
    assert walk.step_tab.panes.kinds.chosen == "Arrays"  # the picture that teaches it


@at(SMALL)
def test_two_variants_play_side_by_side(walk, step):
    walk.click(step.panes.kinds.buttons["Side by side"])
    assert wait_until(lambda: step.variants_view.models[1] is not None, PATIENCE_S)
    walk.press(Key.Key_End)
    one, two = step.variants_view.models
    assert [side.moment for side in step.variants_view.sides] == [one.recording.event_count, two.recording.event_count]
    assert all(side.isVisible() for side in step.variants_view.sides)


FILES = [("Handout…", "strip.pdf", b"%PDF"), ("Player", "scan.html", b"<!")]


@MENUS
@pytest.mark.parametrize(("entry", "name", "begins"), FILES)
@at(MEDIUM)
def test_what_is_handed_out_is_chosen_by_keys(walk, step, tmp_path, entry, name, begins):
    walk.answer_file_dialog(tmp_path / name)
    walk.click(step.panes.export)
    menu = step.exports.menu
    assert wait_until(menu.isVisible, PATIENCE_S)
    titles = [action.text() for action in menu.actions()]
    for _ in range(next(place for place, title in enumerate(titles) if title.startswith(entry)) + 1):
        QTest.keyClick(menu, Key.Key_Down)
    QTest.keyClick(menu, Key.Key_Return)
    assert wait_until(lambda: (tmp_path / name).is_file() and (tmp_path / name).stat().st_size > 0, PATIENCE_S)
    assert (tmp_path / name).read_bytes().lstrip().startswith(begins)
    assert (tmp_path / name).stat().st_size < 2 * 2**20


@at(SMALL)
def test_a_number_out_of_range_stays_as_it_was_typed(walk, step):
    walk.click(step.settings_button)
    field = step.settings.form.fields["n"]
    field.box.setFocus()
    field.box.selectAll()
    QTest.keyClicks(field.box, "4096")
    walk.press(Key.Key_Return)
    assert field.box.text() == "4096"
    assert "not 4096. Still using 16." in step.settings.form.error.text()
    field.box.selectAll()
    QTest.keyClicks(field.box, "16")
    walk.press(Key.Key_Return)
    assert wait_until(lambda: step.is_up_to_date, PATIENCE_S)
    walk.click(step.settings.close_button)
    assert not step.settings.isVisible()


@at(MEDIUM)
def test_own_values_are_typed(walk, step):
    walk.press(Key.Key_F2)
    form = walk.page.form
    box = form.fields["input"].box
    box.setFocus()
    QTest.keyClicks(box, "typed")
    values = next(each for each in form.findChildren(QWidget) if each.accessibleName() == "Values")
    values.setFocus()
    values.selectAll()
    QTest.keyClicks(values, "3 1 7 0 4 1 6 3")
    walk.press(Key.Key_Return)
    walk.wait_until_idle()
    assert walk.window.bench.outcomes["scan"].arrays["result"].tolist() == [3, 4, 11, 11, 15, 16, 22, 25]
    box.setFocus()
    QTest.keyClick(box, Key.Key_Home)
    walk.wait_until_idle()
    assert (box.currentText(), step.settings.params["input"]) == ("Random", "random")


@at(LARGE)
def test_tab_indents_in_the_code_and_escape_leaves_it(walk, step):
    walk.press(Key.Key_F2)
    code, document = walk.page.source.code, walk.page.source.document
    code.setFocus()
    before = document.text
    walk.press(Key.Key_End, Key.Key_Return, Key.Key_Tab)
    assert QApplication.focusWidget() is code
    assert document.text != before
    walk.press(Key.Key_Escape)
    assert QApplication.focusWidget() is not code
    document.replace(document.original)


@at(MEDIUM)
def test_ctrl_e_saves_a_picture_from_a_number_too(walk, step, tmp_path):
    walk.press(Key.Key_F2)
    walk.page.form.fields["n"].box.setFocus()
    walk.answer_file_dialog(tmp_path / "window.png")
    walk.press(Key.Key_E, modifier=CTRL)
    assert wait_until((tmp_path / "window.png").is_file, PATIENCE_S)


@MENUS
@at(SMALL, LARGE)
def test_the_ladder_is_climbed_by_keys(walk, step):
    walk.press(Key.Key_F2)
    ladder = walk.window.header.variant
    ladder.setFocus()
    walk.press(Key.Key_Space)
    view = ladder.view()
    assert view.isVisible()
    assert view.window().width() >= view.sizeHintForColumn(0)
    corner = walk.window.mapFromGlobal(view.window().geometry().topLeft())
    assert walk.window.rect().contains(QRect(corner, view.window().size()))
    QTest.keyClick(view, Key.Key_Up)
    QTest.keyClick(view, Key.Key_Return)
    assert not view.isVisible()
    walk.wait_until_idle()
    assert walk.page.variant == walk.page.pattern.variants[3]
    walk.press(Key.Key_5)
    walk.wait_until_idle()
    assert walk.page.variant.name == "brent-kung"


@at(SMALL, MEDIUM)
def test_title_bar_and_footer_are_there(walk, step):
    assert walk.window.windowTitle() == "Scan – Lockstep"
    line = walk.window.status
    assert line.isVisible()
    assert walk.window.rect().contains(QRect(line.mapTo(walk.window, QPoint(0, 0)), line.size()))


# --- what is remembered


def drag_splitter(splitter, by):
    """Drag a splitter's handle to the right; return the sizes that this leaves."""
    handle = splitter.handle(1)
    QTest.mousePress(handle, Qt.MouseButton.LeftButton, pos=handle.rect().center())
    QTest.mouseMove(handle, handle.rect().center() + QPoint(by, 0))
    QTest.mouseRelease(handle, Qt.MouseButton.LeftButton, pos=handle.rect().center() + QPoint(by, 0))
    return splitter.sizes()


def test_the_next_time_all_is_as_it_was_left(walker, tmp_path):
    home, saved = tmp_path / "home", tmp_path / "saved"
    for each in (home, saved):
        each.mkdir()
    try:
        with open_window("null", home) as window:
            first = Walker(window)
            first.wait_until_idle()
            window.resize(960, 740)  # no wider than the screen that is pretended
            first.show_pattern("scan")
            first.press(Key.Key_3)
            first.wait_until_idle()
            first.answer_file_dialog(saved / "window.png")
            first.press(Key.Key_E, modifier=CTRL)
            assert wait_until((saved / "window.png").is_file, PATIENCE_S)
            run = drag_splitter(first.page.splitter, -60)
            first.record_steps()
            first.press(Key.Key_T, modifier=CTRL)
            variant = first.page.variant.name
        with open_window("null", home) as window:
            again = Walker(window)
            assert wait_until(lambda: again.page.stepping and again.step_tab.is_up_to_date, PATIENCE_S)
            assert (window.width(), window.height()) == (960, 740)
            assert (again.page.pattern.name, again.page.variant.name) == ("scan", variant)
            assert look().theme.name == "light"
            again.press(Key.Key_F2)
            assert again.page.splitter.sizes() == pytest.approx(run, abs=2)
            seen = []

            def read():
                dialog = QApplication.activeModalWidget()
                if not isinstance(dialog, QFileDialog):
                    return QTimer.singleShot(20, read)
                seen.append(dialog.directory().absolutePath())
                return QTest.keyClick(dialog, Key.Key_Escape)

            QTimer.singleShot(0, read)
            again.press(Key.Key_E, modifier=CTRL)
            assert seen == [str(saved)]
    finally:
        set_folder_memory(walker.window.saved_settings)
        walker.window.appearance.changed.emit()


# --- what is cut


@pytest.fixture(scope="module")
def patterns(walker):
    return list(walker.window.bench.patterns)


def test_nothing_is_cut_in_any_picture_of_step_nor_view_of_compare(walker):
    """Before all patterns have pages: a change of the text's size lays all of them out."""
    window, seen = walker.window, {}
    window.resize(*SIZES[0])
    walker.show_pattern("scan")
    window.page.form.change_values(n=4096)
    walker.wait_until_idle()
    walker.record_steps()
    step = walker.step_tab
    for picture, made in step.panes.kinds.buttons.items():
        if made.isVisible():
            walker.click(made)
            if picture == "Timeline":
                assert wait_until(lambda: step.panes.warps.run is not None, PATIENCE_S)
            seen[picture] = find_clipped_when_settled(window)
    window.appearance.set_text_size("lecture hall")
    for picture in ("Timeline", "Flow"):
        step.panes.kinds.choose(picture)
        seen[f"{picture}, large"] = find_clipped_when_settled(window)
    window.appearance.set_text_size("normal")
    walker.press(Key.Key_F4)
    compare = walker.page.compare
    for view, made in compare.views.buttons.items():
        walker.click(made)
        seen[view] = find_clipped_when_settled(window)
        compare.stop()
    walker.click(compare.views.buttons["Curves"])
    walker.press(Key.Key_F2)
    assert not any(seen.values()), "\n".join(f"{view}: {found}" for view, found in seen.items() if found)


def test_nothing_is_cut_in_any_view_of_a_small_window(walker, patterns):
    """Larger ones have more room, and themes have the same sizes of everything."""
    window, seen = walker.window, {}
    window.resize(*SIZES[0])
    for pattern in patterns:
        window.choose_pattern(pattern)
        window.page.writer_search.card.close_card()  # another test may have left it over the view
        for tab in range(window.page.tabs.count()):
            window.page.tabs.setCurrentIndex(tab)
            assert wait_until(
                lambda: window.is_idle and (not window.page.stepping or window.page.step.is_up_to_date),
                PATIENCE_S,
            )
            if found := find_clipped_when_settled(window):
                seen[pattern, window.page.tabs.tabText(tab)] = found
        window.page.tabs.setCurrentIndex(0)
    assert not seen, "\n".join(f"{view}: {found}" for view, found in seen.items())


def test_every_pattern_has_examples_whose_names_have_room(walker, patterns):
    window = walker.window
    window.resize(1024, 700)
    for pattern in patterns:
        window.choose_pattern(pattern)
        walker.press(Key.Key_F2)
        walker.wait_until_idle()
        boxes = [each for each in window.page.findChildren(QComboBox) if each.accessibleName() == "Example"]
        (box,) = [each for each in boxes if each.isVisible()]
        assert box.count() >= 3
        for text in map(box.itemText, range(box.count())):
            assert box.fontMetrics().horizontalAdvance(text) < box.width() - 30, text


def test_a_tool_that_finds_what_is_cut_finds_it(walker):
    label = QLabel("a text that is far too long for so little room", walker.window)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.resize(40, 20)
    label.show()
    assert [text for _, _, text in find_clipped(walker.window) if text == label.text()]
    label.hide()
    label.setParent(None)
    QTimer.singleShot(0, label.deleteLater)
