"""The picture Timeline in the window: asked for, moved through by keys and the mouse, in step with the source."""

from __future__ import annotations

import numpy as np
import pytest
from PyQt6.QtCore import QPoint, Qt
from PyQt6.QtGui import QImage

from gpu.messages.events import Failure
from gpu.messages.modeled_time import LineCode
from gpu.messages.timelines import TimelineKernel, TimelinePattern
from gpu.timing import compiler
from gpu.timing.timeline import WarpState
from gui.painting.theme import look
from gui.step_view.warps.canvas import describe_span
from gui.step_view.warps.states import STATE_NAMES, state_color
from gui.widgets.glossary_tip import find_definition
from tests.gui.conftest import FakeHost


@pytest.fixture(autouse=True)
def without_nvcc(monkeypatch) -> None:
    monkeypatch.setattr(compiler, "find_nvcc", lambda: "")


@pytest.fixture
def open_timeline(qtbot, open_tab):
    """Return a function that opens the timeline of a pattern at a size, by a click."""

    def open_at():
        tab = open_tab("reduction", "neighbored")
        tab.window().bench.settings["reduction"].params["n"] = 2**16
        show_timeline(qtbot, tab)
        return tab

    return open_at


@pytest.fixture
def window(qtbot, open_step_tab):
    """The whole window, with the timeline of a pattern that was run at a size."""
    made = open_step_tab("reduction", "neighbored")
    made.page.form.change_values(n=2**16)
    show_timeline(qtbot, made.page.step)
    return made


def show_timeline(qtbot, tab):
    qtbot.mouseClick(tab.panes.kinds.buttons["Timeline"], Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: tab.panes.warps.run is not None, timeout=20_000)


def press_key(qtbot, tab, which, modifier=Qt.KeyboardModifier.NoModifier) -> None:
    qtbot.keyClick(tab.panes.warps, which, modifier)


def lines_at(view, cycle: int) -> set[int]:
    """Return the lines of the instructions that issue in a cycle, straight from the model's spans."""
    found = view.run.timelines
    spans = found.find_spans(view.resident)
    here = spans[(spans["begin"] <= cycle + 0.5) & (spans["end"] > cycle + 0.5) & (spans["state"] == WarpState.ISSUING)]
    return {found.operations[each].line for each in here["operation"]} - {0}


def test_it_is_moved_through_in_step_with_the_source(qtbot, open_timeline):
    tab = open_timeline()
    view = tab.panes.warps
    assert tab.panes.pictures.currentWidget() is view
    assert view.canvas.isVisible()
    assert not tab.panes.time.isVisible()  # the recording's own time stands still
    assert not tab.panes.counters.isVisible()
    assert view.title.text().startswith("Modeled for an H200")
    assert view.player.end == int(np.ceil(view.run.timelines.timelines[view.resident - 1].recorded_until))
    moment = tab.player.moment
    # A step is as many cycles as a pixel has; near enough it is one.
    press_key(qtbot, tab, Qt.Key.Key_Right)
    assert view.player.moment >= 1
    while view.canvas.scale < 1:
        qtbot.mouseClick(tab.panes.zoom_buttons["+"], Qt.MouseButton.LeftButton)
    at = view.player.moment
    seen = set()
    for number in range(1, 40):
        press_key(qtbot, tab, Qt.Key.Key_Right)
        assert view.player.moment == at + number
        lit = lines_at(view, view.player.moment)
        assert tab.source.code._highlighted_lines == frozenset(lit)
        seen |= lit
    assert len(seen) > 1
    press_key(qtbot, tab, Qt.Key.Key_Left)
    assert view.player.moment == at + 38
    press_key(qtbot, tab, Qt.Key.Key_End)
    assert view.player.moment == view.player.end
    assert view.transport.count.text() == f"cycle {view.player.end} of {view.player.end}"
    press_key(qtbot, tab, Qt.Key.Key_Home)
    press_key(qtbot, tab, Qt.Key.Key_Right, Qt.KeyboardModifier.ShiftModifier)
    assert view.player.moment == view.canvas.rows.borders[1]
    assert tab.player.moment == moment
    # Back at the recording its line is lit, and no other.
    qtbot.mouseClick(tab.panes.kinds.buttons["Flow"], Qt.MouseButton.LeftButton)
    assert tab.source.code._highlighted_lines == tab.source.code._faint_lines == frozenset()
    assert tab.panes.time.isVisible()
    assert tab.panes.counters.isVisible()
    assert not view.card.isVisible()
    press_key(qtbot, tab, Qt.Key.Key_Right)
    assert tab.player.moment == moment + 1
    assert tab.source.code._executing_line == int(tab.models.lines[moment])


def test_a_click_picks_a_warp_and_a_cycle_and_a_drag_goes_on(qtbot, open_timeline):
    tab = open_timeline()
    view = tab.panes.warps
    canvas = view.canvas
    tops, high = canvas._row_edges()
    row = 5
    place = QPoint(canvas._left + 120, round(tops[row] + high / 2))
    cycle = int(canvas.cycle_at(place.x()))
    qtbot.mousePress(canvas, Qt.MouseButton.LeftButton, pos=place)
    warp = int(canvas.rows.warps[row])
    assert (canvas.picked, view.player.moment) == (warp, cycle)
    now = canvas.rows.span_at(warp, cycle)
    assert now is not None
    assert view.card.state_label._full_text.startswith(f"w{warp} line {now.line}: {STATE_NAMES[now.state]}")
    assert describe_span(now) in canvas.accessibleDescription()
    assert f"Warp {warp}, block {now.block}" in describe_span(now)
    assert f"line {now.line}" in describe_span(now)
    qtbot.mouseMove(canvas, pos=place)
    canvas._scrub(place.x() + 60)
    qtbot.mouseRelease(canvas, Qt.MouseButton.LeftButton, pos=place)
    assert view.player.moment == int(canvas.cycle_at(place.x() + 60))
    # Escape's way back: nothing stands out any more.
    assert tab.has_selection
    tab.clear_selection()
    assert canvas.picked is None
    # The strip below is a slider over all cycles.
    strip = view.strip
    qtbot.mouseClick(strip, Qt.MouseButton.LeftButton, pos=QPoint(strip.width() // 2, 4))
    assert view.player.moment == pytest.approx(view.player.end / 2, rel=0.02)


def test_more_blocks_at_once_take_less_time(qtbot, open_timeline):
    tab = open_timeline()
    view = tab.panes.warps
    found = view.run.timelines
    most = len(found.timelines)
    assert view.resident == found.resident
    qtbot.mouseClick(view.card.bars, Qt.MouseButton.LeftButton, pos=QPoint(2, 10))
    assert view.resident == 1
    alone = view.player.end
    assert view.canvas.rows.count == found.warps_per_block
    view.canvas.fit()
    ends, scale = [alone], view.canvas.scale
    for resident in range(2, most + 1):
        press_key(qtbot, tab, Qt.Key.Key_Up)
        assert view.resident == resident
        assert view.card.resident._full_text.startswith(f"{resident} of {most} blocks  ·")
        # Cycles are as wide as before: the same blocks are seen to end earlier.
        assert view.canvas.scale == pytest.approx(scale)
        ends.append(view.player.end)
    assert ends[-1] < alone / 2
    press_key(qtbot, tab, Qt.Key.Key_Up)
    assert view.resident == most  # no more fit
    press_key(qtbot, tab, Qt.Key.Key_Down)
    assert view.resident == most - 1
    each = found.timelines[most - 2]
    assert f"{100 * each.compute_issue_utilization(found.schedulers):.0f}%" in view.card.issue._full_text
    assert view.card.resident.toolTip().endswith(f"\n\n{find_definition('resident warps')}")
    assert view.card.issue.toolTip().endswith(f"\n\n{find_definition('instruction issue')}")
    shares = np.array(each.state_cycles) / sum(each.state_cycles)
    assert view.card.shares.shares == pytest.approx(tuple(shares))


def test_cells_have_the_color_of_what_warps_do(qtbot, open_timeline):
    view = open_timeline().panes.warps
    canvas = view.canvas
    canvas.zoom(1e6)  # as near as it goes
    view.player.go_to(0)
    picture = canvas.grab().toImage()
    tops, high = canvas._row_edges()
    seen = set()
    for row, warp in enumerate(canvas.rows.warps.tolist()):
        if high < 3:
            break
        for cycle in range(1, 8):
            x = canvas.x_of(cycle) + canvas.scale / 2
            now = canvas.rows.span_at(warp, cycle)
            state = len(WarpState) if now is None else now.state
            color = picture.pixelColor(round(x), round(tops[row]) + 1)
            assert color.name() == state_color(look().theme, state).name(), (warp, cycle)
            seen.add(state)
    assert len(seen) >= 3


@pytest.mark.parametrize("scale", [0.3, 1.0, 6.0])
def test_what_is_moved_looks_as_if_it_were_painted_anew_and_only_what_is_new_is_worked_out(qtbot, open_timeline, scale):
    canvas = open_timeline().panes.warps.canvas
    canvas.scale, canvas.first_cycle = scale, 100.0
    canvas._clamp()
    canvas.grab()
    asked = []
    worked_out = canvas.rows.columns

    def columns(first, cycles, count):
        asked.append(count)
        return worked_out(first, cycles, count)

    canvas.rows.columns = columns
    for by in (-72, -30, 50):
        canvas.scroll_by(by)
        moved = canvas.grab().toImage()
        assert asked == [abs(by)]
        canvas._columns = None
        canvas._pictures.clear()
        assert moved == canvas.grab().toImage(), by
        asked.clear()


def test_one_block_more_or_less_is_prepared_while_nobody_waits(qtbot, open_timeline):
    view = open_timeline().panes.warps
    view.show_resident(3)
    qtbot.waitUntil(lambda: {2, 3, 4} <= set(view._rows))
    assert "borders" in vars(view._rows[4])


def test_another_launch_gpu_or_text_is_modeled_anew(qtbot, open_timeline):
    tab = open_timeline()
    view = tab.panes.warps
    first = view.run
    assert view.launches.isVisible()
    view.launches.setCurrentIndex(1)
    view.launches.activated.emit(1)
    qtbot.waitUntil(lambda: view.run is not first, timeout=20_000)
    assert view.run.launch_index == first.launches[1].index
    second = view.run
    tab.window().bench.modeling.select_gpu("l4")
    qtbot.waitUntil(lambda: view.run is not second, timeout=20_000)
    assert "Modeled for an L4 (never compared with measurements)" in view.title.text()
    third = view.run
    qtbot.mouseClick(tab.panes.kinds.buttons["Flow"], Qt.MouseButton.LeftButton)
    qtbot.mouseClick(tab.panes.kinds.buttons["Timeline"], Qt.MouseButton.LeftButton)
    assert view.run is third  # what is there is not made again
    tab.window().choose_variant("shared")
    qtbot.waitUntil(lambda: view.run is not third, timeout=20_000)
    assert "reduce_shared" in view.title.text()


def test_a_timeline_that_comes_late_takes_no_room_from_what_is_shown_meanwhile(qtbot, open_timeline):
    tab = open_timeline()
    view = tab.panes.warps
    assert view.card.isVisible()
    qtbot.mouseClick(tab.panes.kinds.buttons["Flow"], Qt.MouseButton.LeftButton)
    tab.timelines.timelines_ready.emit(view.run)
    assert not view.card.isVisible()
    qtbot.mouseClick(tab.panes.kinds.buttons["Timeline"], Qt.MouseButton.LeftButton)
    assert view.card.isVisible()


def test_what_cannot_be_modeled_is_said_and_the_rest_goes_on(qtbot, open_tab, monkeypatch):
    tab = open_tab("reduction", "neighbored")
    view = tab.panes.warps
    answered = FakeHost.result_of

    def refuse(self, request):
        if isinstance(request, TimelinePattern | TimelineKernel):
            return Failure("launch", "It calls a function that is not its own.", "Kernels that print are not modeled.")
        return answered(self, request)

    monkeypatch.setattr(FakeHost, "result_of", refuse)
    qtbot.mouseClick(tab.panes.kinds.buttons["Timeline"], Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: "not its own" in view.message.text(), timeout=20_000)
    assert "print are not modeled" in view.message.text()
    assert not view.card.isVisible()
    for each in (Qt.Key.Key_Right, Qt.Key.Key_End, Qt.Key.Key_Space, Qt.Key.Key_Plus, Qt.Key.Key_F, Qt.Key.Key_Up):
        press_key(qtbot, tab, each)
    view.grab()
    qtbot.mouseClick(tab.panes.kinds.buttons["Flow"], Qt.MouseButton.LeftButton)
    assert tab.panes.pictures.currentWidget() is tab.panes.flow


def test_a_lecture_shows_the_line_that_warps_are_at(qtbot, window):
    tab, view = window.page.step, window.page.step.panes.warps
    press_key(qtbot, tab, Qt.Key.Key_F11)
    lecture = window.lecturing.view
    assert lecture is not None
    qtbot.waitUntil(view.canvas.isVisible)
    seen = set()
    for cycle in range(0, view.player.end, 97):
        view.player.go_to(cycle)
        issuing = lines_at(view, cycle)
        if issuing:
            assert lecture.code.current_line == min(issuing)
            seen.add(lecture.code.current_line)
        assert lecture.sentence.text == view.summary
    assert len(seen) > 1
    window.lecturing.toggle()
    assert view.card.isVisible()
    assert not tab.panes.counters.isVisible()
    assert not tab.panes.time.isVisible()


def test_blocks_of_another_size_are_modeled_here_alone(qtbot, window):
    tab, view = window.page.step, window.page.step.panes.warps
    before = view.run
    assert view.block_sizes.isVisible()
    assert view.block_sizes.currentText() == "256 threads, as in Run"
    view.block_sizes.setFocus()
    qtbot.keyClick(view.block_sizes, Qt.Key.Key_Up)  # an arrow chooses, as a click in the list does
    qtbot.waitUntil(lambda: view.run is not before, timeout=20_000)
    assert view.run.timelines.block[0] == 128
    assert view.block_sizes.currentText() == "128 threads"
    assert window.page.form.values["block"] == "256"
    assert tab.timelines.threads == 128
    window.page.select_tab("Run")
    window.page.form.change_values(block="128")
    window.page.select_tab("Step")
    qtbot.waitUntil(lambda: view.block_sizes.currentText() == "128 threads, as in Run", timeout=20_000)
    assert tab.timelines.threads == 0


@pytest.mark.qt_log_ignore("This plugin does not support", extend=True)
@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_a_picture_of_it_is_saved_with_what_it_is_of_and_nothing_else_is_offered(
    qtbot, open_timeline, tmp_path, suffix
):
    tab = open_timeline()
    assert tab.panes.export.isVisible()
    tab.exports.open(tab.panes.export)
    offered = [each.text() for each in tab.exports.menu.actions() if each.isVisible()]
    tab.exports.menu.hide()
    assert offered == ["Picture…", "Copy picture"]
    path = tmp_path / f"timeline{suffix}"
    assert tab.exports.write_picture(path)
    if suffix == ".svg":
        text = path.read_text("utf-8")
        assert "Modeled for an H200" in text
        assert "waits for memory" in text
    else:
        image = QImage(str(path))
        assert (image.width(), image.height()) == (
            2 * tab.panes.warps.figure_size.width(), 2 * tab.panes.warps.figure_size.height(),
        )  # fmt: skip
        canvas = tab.panes.warps.canvas
        colors = {image.pixelColor(x, image.height() // 2).name() for x in range(2 * canvas._left, image.width(), 3)}
        assert colors & {state_color(look().theme, state).name() for state in WarpState}
    qtbot.mouseClick(tab.panes.kinds.buttons["Flow"], Qt.MouseButton.LeftButton)
    tab.exports.open(tab.panes.export)
    assert len([each for each in tab.exports.menu.actions() if each.isVisible()]) == 7
    tab.exports.menu.hide()


def test_machine_instructions_stand_beside_the_source_while_it_is_seen(qtbot, open_timeline, monkeypatch):
    lines = {"reduction.cu": {93: LineCode(12, 0, {"IADD3": 9, "LDG": 3})}}
    monkeypatch.setattr("gpu.run.modeling.timelines.collect_line_codes", lambda kernels: lines)
    tab = open_timeline()
    assert tab.source.code._costs == {93: ("12", "12 machine instructions: 9 IADD3, 3 LDG")}
    qtbot.mouseClick(tab.panes.kinds.buttons["Flow"], Qt.MouseButton.LeftButton)
    assert tab.source.code._costs == {}
    qtbot.mouseClick(tab.panes.kinds.buttons["Timeline"], Qt.MouseButton.LeftButton)
    assert tab.source.code._costs


def test_it_plays_by_itself(qtbot, open_timeline):
    tab = open_timeline()
    view = tab.panes.warps
    press_key(qtbot, tab, Qt.Key.Key_Space)
    assert view.player.playing
    qtbot.waitUntil(lambda: view.player.moment > 20, timeout=5000)
    press_key(qtbot, tab, Qt.Key.Key_Space)
    assert not view.player.playing
    assert not tab.player.playing
