from __future__ import annotations

import itertools
import re
import subprocess
import threading

import numpy as np
import pytest
from PyQt6.QtCore import QPoint, QPointF, QRect, Qt
from PyQt6.QtGui import QImage
from PyQt6.QtWidgets import QApplication, QLabel, QWidget

from gpu.messages.events import Failure
from gpu.messages.runs.recordings import StepPattern
from gpu.patterns import find_pattern
from gpu.recording.recording import Recording
from gpu.stepping.moment.lanes import LaunchLanes
from gui.editor.kernel_lines import find_kernel_lines
from gui.painting.theme import look
from gui.step_view.cards.lanes import ACTIVE
from gui.step_view.dataflow.descriptions import describe_race
from gui.step_view.recording.settings_panel import SettingsPanel
from gui.step_view.recording.steppable import make_variant_steppable
from gui.widgets.basic import Card, ElidedLabel
from tests.gui.conftest import FakeHost
from tests.gui.step_view.conftest import wait_for_recording


@pytest.fixture
def window(open_step_tab):
    return open_step_tab()


@pytest.fixture
def tab(open_tab):
    return open_tab()


def press_key(qtbot, tab, key, modifier=Qt.KeyboardModifier.NoModifier):
    qtbot.keyClick(tab.window().focusWidget() or tab.panes.flow, key, modifier)


def step_requests():
    return [request for host in FakeHost.instances for request in host.requests if isinstance(request, StepPattern)]


def make_steppable(name):
    pattern = find_pattern(name)
    return make_variant_steppable(pattern, pattern.variants[0])


SHIFT = Qt.KeyboardModifier.ShiftModifier


def test_it_shows_a_small_run_of_the_variant_that_is_chosen(tab):
    assert tab.player.end > 20
    rows = tab.panes.flow.viewport.layout.rows
    assert rows[0].value.size == 16
    sums = next(row for row in reversed(rows) if row.value.size == 16)
    assert sums.value.tolist() == np.cumsum(rows[0].value).tolist()
    assert step_requests()[-1].params["n"] == 16
    assert "16" in tab.settings_button.text()


def test_nothing_is_recorded_before_the_tab_is_seen(make_window, open_step_tab):
    window = make_window()
    window.choose_pattern("scan")
    window.choose_variant("kogge-stone")
    assert not step_requests()
    assert not window.bench._side_jobs.started


def test_keys_move_through_time(qtbot, tab):
    press_key(qtbot, tab, Qt.Key.Key_Right)
    press_key(qtbot, tab, Qt.Key.Key_Right)
    assert tab.player.moment == 2
    press_key(qtbot, tab, Qt.Key.Key_Left)
    assert tab.player.moment == 1
    press_key(qtbot, tab, Qt.Key.Key_Right, SHIFT)
    border = tab.models.data.segments[1].first
    assert tab.player.moment == border
    press_key(qtbot, tab, Qt.Key.Key_End)
    assert tab.player.moment == tab.player.end == tab.models.recording.event_count
    press_key(qtbot, tab, Qt.Key.Key_Left, SHIFT)
    assert tab.player.moment == tab.models.data.segments[-1].first
    press_key(qtbot, tab, Qt.Key.Key_Home)
    assert tab.player.moment == 0


def test_space_plays_and_pauses_and_everything_goes_along(qtbot, tab):
    tab.panes.transport.speed.setCurrentIndex(tab.panes.transport.speed.count() - 1)
    press_key(qtbot, tab, Qt.Key.Key_Space)
    assert tab.player.playing
    assert tab.panes.transport.buttons["play"].text() == "Pause"
    qtbot.waitUntil(lambda: tab.player.moment >= 5, timeout=5000)
    press_key(qtbot, tab, Qt.Key.Key_Space)
    assert not tab.player.playing
    moment = tab.player.moment
    assert tab.panes.flow.moment == tab.panes.timeline.moment == moment
    assert tab.panes.transport.count.text() == f"step {moment} of {tab.player.end}"
    assert tab.source.code._executing_line == int(tab.models.lines[moment - 1])
    active = int((tab.panes.lanes.grid.lanes.state == ACTIVE).sum())
    assert active == 0 or f"{active} active" in tab.panes.lanes.lane_states._full_text


def test_buttons_do_what_the_keys_do(qtbot, tab):
    click = {name: lambda name=name: qtbot.mouseClick(tab.panes.transport.buttons[name], Qt.MouseButton.LeftButton)
             for name in tab.panes.transport.buttons}  # fmt: skip
    assert not tab.panes.transport.buttons["back"].isEnabled()
    click["step"]()
    click["step"]()
    click["back"]()
    assert tab.player.moment == 1
    click["last"]()
    assert tab.player.moment == tab.player.end
    assert not tab.panes.transport.buttons["step"].isEnabled()
    click["first"]()
    click["barrier on"]()
    assert tab.player.moment == tab.models.data.segments[0].last
    click["barrier back"]()
    assert tab.player.moment == 0
    press_key(qtbot, tab, Qt.Key.Key_Right)
    assert tab.player.moment == 1, "a click on a button leaves the keys where they were"


def test_the_time_line_goes_where_it_is_pressed_and_dragged(qtbot, tab):
    segment = tab.models.data.segments[3]
    x = round(tab.panes.timeline.x_of((segment.first + segment.last) / 2))
    qtbot.mousePress(tab.panes.timeline, Qt.MouseButton.LeftButton, pos=QPoint(x, 20))
    assert segment.first < tab.player.moment <= segment.last
    qtbot.mouseRelease(tab.panes.timeline, Qt.MouseButton.LeftButton, pos=QPoint(x, 20))
    for moment in range(tab.player.end + 1):
        assert tab.panes.timeline.moment_at(tab.panes.timeline.x_of(moment)) == moment


def test_going_back_shows_what_was_there(tab):
    def state(moment):
        tab.player.go_to(moment)
        lanes = tab.panes.lanes.grid.lanes.state.tolist()
        phases = [
            tab.panes.flow.viewport.layout.row_progress(row, tab.panes.flow.moment)
            for row in range(len(tab.panes.flow.viewport.layout.rows))
        ]
        return lanes, phases, tab.panes.counters.text("so far", "operations"), tab.panes.variables._full_text

    forwards = [state(moment) for moment in range(1, tab.player.end + 1)]
    backwards = [state(moment) for moment in range(tab.player.end, 0, -1)]
    assert backwards[::-1] == forwards
    assert forwards[0] != forwards[-1]


def test_counts_stand_beside_the_textbook(tab):
    tab.player.go_to(tab.player.end)
    counted = [tab.panes.counters.text("so far", name) for name in ("operations", "steps")]
    assert counted == ["26", "7"]
    assert counted == [tab.panes.counters.text("total", name) for name in ("operations", "steps")]
    assert counted == [tab.panes.counters.text("textbook", name) for name in ("operations", "steps")]
    # 15 additions would do, of one thread after the other.
    assert [tab.panes.counters.text(row, "efficiency") for row in ("total", "textbook")] == ["58%", "58%"]
    tab.player.go_to(0)
    assert tab.panes.counters.text("so far", "operations") == "0"
    assert tab.panes.counters.text("so far", "average") == "–"


def _step_counts(tab) -> list[dict[str, str]]:
    """Return what the card shows of each step of the algorithm, at its end."""
    names = ("idle lanes", "divergent", "sectors", "conflicts")
    found: dict[str, dict[str, str]] = {}
    for moment in range(tab.player.end + 1):
        tab.player.go_to(moment)
        card = tab.panes.counters
        found[card.text("so far", "steps")] = {name: card.text("this step", name) for name in names}
    return [found[step] for step in sorted(found, key=int) if step != "0"]


def test_the_card_shows_what_the_better_rung_is_better_in(open_tab):
    """The same additions and steps; but whole warps work, or none of their lanes does."""
    shown = {}
    for variant in ("neighbored", "neighbored-less"):
        tab = open_tab("reduction", variant, n=64, block="64")
        shown[variant] = _step_counts(tab)
        assert [tab.panes.counters.text("total", name) for name in ("operations", "steps")] == ["63", "6"]
    idle = {variant: [step["idle lanes"] for step in steps] for variant, steps in shown.items()}
    assert idle["neighbored"] == ["1/2", "3/4", "7/8", "15/16", "31/32", "31/32"]
    assert idle["neighbored-less"] == ["0%", "1/2", "3/4", "7/8", "15/16", "31/32"]
    divergent = {variant: [int(step["divergent"].split()[0]) for step in steps] for variant, steps in shown.items()}
    assert (divergent["neighbored"][:3], divergent["neighbored-less"][:2]) == ([2, 2, 2], [0, 1])


def test_lanes_that_a_block_does_not_have_are_idle_everywhere(open_tab):
    tab = open_tab("nbody", "naive")
    tab.player.go_to(tab.player.end // 2)
    assert "24 not in the block" in tab.panes.lanes.lane_states.text()
    assert tab.panes.counters.text("this step", "idle lanes") == "3/4"


def test_states_and_conditions_are_whole_in_a_small_window(qtbot, open_step_tab):
    window = open_step_tab("reduction", "neighbored")
    tab, panes = window.page.step, window.page.step.panes
    window.resize(1024, 700)
    qtbot.waitUntil(lambda: window.width() == 1024 and panes.statement.width() > 100)
    conditions = 0
    for moment in range(0, tab.player.end + 1, 3):
        tab.player.go_to(moment)
        assert not panes.lanes.lane_states.text().endswith("…")
        if panes.statement._full_text.endswith((" is true", " is false")):
            conditions += 1
            assert panes.statement.text().endswith((" is true", " is false"))
    assert conditions > 3


def test_the_textbook_is_asked_about_any_number_of_elements(qtbot, open_tab):
    tab = open_tab("reduction", "neighbored")
    card = tab.panes.counters
    names = ("operations", "steps", "average", "peak")
    assert (card.n.placeholderText(), card.text("textbook", "steps")) == ("16", "4")
    qtbot.keyClicks(card.n, "1000000")
    assert [card.text("textbook", name) for name in names] == ["999\u202f999", "20", "50\u202f000", "500\u202f000"]
    assert card.text("total", "operations") == "15", "what was counted stays"
    card.n.clear()
    assert card.text("textbook", "operations") == "15"


def test_large_counts_are_whole_in_a_small_window(qtbot, open_step_tab):
    window = open_step_tab("scan", "kogge-stone", n=1024, block="1024")
    window.resize(1024, 700)
    tab = window.page.step
    tab.player.go_to(tab.player.end)
    counters = tab.panes.counters

    def find_elided():
        visible = {place: cell for place, cell in counters.cells.items() if cell.isVisible()}
        assert ("so far", "operations") in visible
        return [place for place, cell in visible.items() if cell.text() != cell.accessibleDescription()]

    for width in (1024, 1280, 1100):
        window.resize(width, 700)
        qtbot.waitUntil(lambda width=width: window.width() == width)
        qtbot.waitUntil(lambda: find_elided() == [])


def test_the_textbook_stands_beside_every_pattern(open_tab):
    for pattern, n in (("convolution", "96"), ("histogram", "16"), ("softmax", "16")):
        card = open_tab(pattern, find_pattern(pattern).default_variant).panes.counters
        assert card.n.placeholderText() == n
        assert int(card.text("textbook", "operations").replace("\u202f", "")) > 0


def test_a_function_of_another_file_is_shown_there(open_tab):
    tab = open_tab("compaction", "three-kernels")
    files = {tab.models.files[event].rpartition("/")[2] for event in range(tab.player.end)}
    assert files == {"compact.cu", "scan.cu"}
    seen = set()
    for moment in range(tab.player.end + 1):
        tab.player.go_to(moment)
        seen.add(tab.source.title.text())
    assert seen == {"compact.cu", "scan.cu"}
    event = next(e for e in range(tab.player.end) if tab.models.files[e].endswith("scan.cu"))
    tab.player.go_to(event + 1)
    assert tab.source.title.text() == "scan.cu"
    assert tab.source.code._executing_line == int(tab.models.lines[event])
    tab.player.go_to(1)
    assert tab.source.title.text() == "compact.cu"


def test_a_click_on_a_line_goes_to_its_next_execution(tab):
    lines = tab.models.lines
    line = int(lines[10])
    tab.player.go_to(0)
    seen = []
    for _ in range(int((lines == line).sum()) + 1):
        tab.source.line_clicked.emit(line)
        seen.append(tab.player.moment)
    assert seen == [*(np.flatnonzero(lines == line) + 1).tolist(), int(np.argmax(lines == line)) + 1]
    before = tab.player.moment
    tab.source.line_clicked.emit(1)
    assert tab.player.moment == before


def test_clicks_light_an_ancestry_and_follow_a_thread_and_escape_clears(qtbot, window):
    tab = window.page.step
    tab.player.go_to(tab.player.end)
    qtbot.wait(300)
    row = max(number for number, each in enumerate(tab.panes.flow.viewport.layout.rows) if each.value.size == 16)
    tab.panes.flow.viewport.offset = QPointF(0, 0)
    center = (tab.panes.flow.canvas.flow.cell_rect(row, 14).center() + tab.panes.flow.viewport.origin()).toPoint()
    qtbot.mouseClick(tab.panes.flow, Qt.MouseButton.LeftButton, pos=center)
    assert tab.panes.flow.marks.selected == (row, 14)
    assert sorted(tab.panes.flow.marks.highlighted[0]) == list(range(15))
    qtbot.mouseClick(tab.panes.flow, Qt.MouseButton.LeftButton, pos=center)
    assert tab.panes.flow.marks.selected is None
    qtbot.mouseClick(tab.panes.flow, Qt.MouseButton.LeftButton, pos=center)
    qtbot.mouseClick(
        tab.panes.lanes.grid, Qt.MouseButton.LeftButton, pos=tab.panes.lanes.grid._box(3).center().toPoint()
    )
    assert tab.followed == (0, 3)
    assert tab.panes.statement._full_text.startswith("thread 3")
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    qtbot.keyClick(window.focusWidget() or tab.panes.flow, Qt.Key.Key_Escape)
    assert tab.panes.flow.marks.selected is None
    assert tab.followed is None


def test_the_statement_is_told_with_the_values_of_the_thread_that_is_followed(tab):
    tab._toggle_followed_thread(0, 3)
    told = []
    for moment in range(1, tab.player.end + 1):
        tab.player.go_to(moment)
        told.append((tab.panes.statement._full_text, tab.panes.variables._full_text))
    values = tab.panes.flow.viewport.layout.rows[0].value
    # Thread 3 adds elements 6 and 7 first.
    assert any(said.startswith("thread 3:") and f"{values[6]} + {values[7]} = {values[6] + values[7]}" in said
               for said, _ in told)  # fmt: skip
    assert any("thread 3 is not active" in said for said, _ in told)
    assert any("distance = 4" in variables and "t = 3" in variables for _, variables in told)


def test_the_button_names_numbers_and_lets_words_speak(tab):
    assert tab.settings.text == "16 elements · random · inclusive · sum · int32 · block 16 · round-robin"


def test_the_foot_tells_of_the_tab_that_is_seen(qtbot, window):
    tab = window.page.step
    word = window.status.message_label
    assert word.text() == "Scan: 16 elements, random, int32"
    tab.settings.form.change_values(n=24)
    assert word.text() == "Scan: 24 elements, random, int32"
    window.page.tabs.setCurrentIndex(0)
    assert word.text() == "Scan: 262\u202f144 elements, random, int32"
    window.page.tabs.setCurrentIndex(2)
    assert word.text() == "", "many sizes are compared"
    window.choose_pattern("convolution")
    name = window.bench.image.path.name
    assert word.text() == f"{name}: 40 × 30 gray, 8 bit"
    window.page.tabs.setCurrentIndex(1)
    assert word.text() == f"{name}: a part, 12 × 8 gray, 8 bit"


def test_it_says_how_many_threads_run_where_a_variant_needs_whole_warps(qtbot, tab):
    tab.window().choose_variant("look-back")
    assert "block 16 → 32" in tab.settings_button.text()
    wait_for_recording(qtbot, tab)
    assert tab.models.recording.launches[0].trace.block == (32, 1, 1)
    tab.settings.form.change_values(block="64")
    assert "block 64 ·" in tab.settings_button.text()
    tab.settings.form.change_values(block="16")
    tab.window().choose_variant("brent-kung")
    assert "block 16 ·" in tab.settings_button.text()


def _add_line_breaks(lines):
    for card, pieces in lines.items():
        seen = [each for each in pieces if each.isVisible()]
        boxes = [QRect(each.mapTo(card, QPoint(0, 0)), each.size()) for each in seen]
        for each, box in zip(seen, boxes, strict=True):
            assert card.rect().contains(box), each.accessibleName()
            if not isinstance(each, ElidedLabel):
                assert each.width() >= each.minimumSizeHint().width(), each.accessibleName() or each.text()
        for one, other in itertools.combinations(boxes, 2):
            assert not one.intersects(other)


def test_nothing_stands_on_anything_else(qtbot, window):
    tab = window.page.step
    tab.settings.form.change_values(n=64)
    wait_for_recording(qtbot, tab)
    tab.player.go_to_end(last=True)
    assert tab.player.end > 99
    assert tab.panes.transport.count.text() == f"step {tab.player.end} of {tab.player.end}"
    for size, (width, height) in itertools.product(("normal", "lecture hall"), ((1280, 720), (1024, 640))):
        window.appearance.set_text_size(size)
        window.resize(width, height)
        qtbot.waitUntil(lambda width=width: window.width() == width)
        # Lines that break anew ask for another height, which comes with a later event.
        qtbot.waitUntil(lambda: _add_line_breaks(_list_lines(tab)))
        assert tab.settings_button.width() <= window.width()
    # A long message, and a text that was edited: the code is what stays.
    source = tab.source
    source.strip.show()
    source.edited_badge.show_text("edited", "warn")
    source.revert.setEnabled(True)
    window.banner.show_message("A message that takes as much room as it may. " * 3, "And what to do about it. " * 6)
    cards = tab.panes.right.findChildren(Card, options=Qt.FindChildOption.FindDirectChildrenOnly)
    qtbot.waitUntil(lambda: _add_line_breaks({**_list_lines(tab), tab.panes.right: cards}))
    seen = [each for each in cards if each.isVisible()]
    assert all(each.height() >= each.minimumSizeHint().height() for each in seen)
    assert source.code.height() >= 2 * source.code.fontMetrics().lineSpacing()
    window.banner.hide()


def _list_lines(tab):
    """Return the widgets of each line of the tab."""
    transport, source = tab.panes.transport, tab.source
    return {
        tab.panes.picture: [*tab.panes.kinds.buttons.values(), *tab.panes.zoom_buttons.values()],
        transport.parentWidget().parentWidget(): [
            transport.count, *transport.buttons.values(), transport.speed, transport.loop, tab.panes.verdict,
        ],
        source: [source.title, source.edited_badge, source.kernel, source.revert, source.save, source.open],
        tab.panes.counters: [*tab.panes.counters.findChildren(QLabel)],
    }  # fmt: skip


def test_after_a_text_that_does_not_compile_nothing_of_the_recording_is_left(qtbot, tab):
    tab.player.go_to_end(last=True)
    assert tab.panes.counters.text("so far", "operations") not in ("", "–")
    document = tab.source.document
    document.replace(document.text.replace("__syncthreads();", "oops __syncthreads();"))
    qtbot.waitUntil(lambda: tab.models is None, timeout=20_000)
    assert "oops" in tab.panes.message.text()
    assert {cell.text() for cell in tab.panes.counters.cells.values()} == {""}
    assert tab.panes.verdict.text() == tab.panes.lanes.block_label.text() == tab.panes.lanes.traffic.text() == ""
    assert not any(button.isEnabled() for button in tab.panes.transport.buttons.values())
    document.replace(document.original)
    qtbot.waitUntil(lambda: tab.models is not None, timeout=20_000)
    wait_for_recording(qtbot, tab)
    assert tab.panes.counters.text("total", "operations") not in ("", "–")
    assert tab.panes.verdict.text() == "no findings"
    assert look().theme.good in tab.panes.verdict.styleSheet()
    document.replace(f"{document.original}// mine\n")
    qtbot.waitUntil(lambda: tab.panes.verdict.text() == "no findings at this size", timeout=20_000)
    assert look().theme.good not in tab.panes.verdict.styleSheet()
    assert "checks an edited kernel on more inputs" in tab.panes.verdict.toolTip()


def test_a_number_with_a_point_is_named_too(qtbot):
    parent = QWidget()
    qtbot.addWidget(parent)
    panel = SettingsPanel(make_steppable("nbody"), parent)
    assert "time step 0.005 · softening 0.03 ·" in panel.text
    panel = SettingsPanel(make_steppable("compaction"), parent)
    panel.form.change_values(threshold=0.5)
    assert "than 0.5 ·" in panel.text


def test_settings_and_variants_record_again_and_keep_the_place(qtbot, tab):
    tab.player.go_to(7)
    tab.settings.form.change_values(n=8)
    wait_for_recording(qtbot, tab)
    assert tab.panes.flow.viewport.layout.rows[0].value.size == 8
    assert tab.player.moment == 7
    tab.settings.schedule_kinds.choose("shuffle")
    tab.settings.seed.setValue(3)
    wait_for_recording(qtbot, tab)
    assert step_requests()[-1].schedule == "shuffle:3"
    tab.window().choose_variant("kogge-stone")
    wait_for_recording(qtbot, tab)
    assert step_requests()[-1].variant == "kogge-stone"
    assert tab.player.moment == 0


def test_an_edited_kernel_is_what_is_recorded(qtbot, tab):
    document = tab.source.document
    text = document.text
    start = text.index("scan_brent_kung")
    at = text.index("__syncthreads();", start)
    document.setPlainText(text[:at] + text[at + len("__syncthreads();") :])
    qtbot.waitUntil(lambda: bool(step_requests()[-1].sources), timeout=5000)
    wait_for_recording(qtbot, tab)
    assert step_requests()[-1].sources == {"scan.cu": document.text}
    document.setPlainText(text)
    qtbot.waitUntil(lambda: not step_requests()[-1].sources, timeout=5000)
    wait_for_recording(qtbot, tab)


def test_without_a_barrier_there_is_a_race_and_another_order_has_another_answer(qtbot, tab):
    code, text = tab.source.code, tab.source.document.text
    at = text.index("__syncthreads();", text.index("distance /= 4", text.index("scan_brent_kung")))
    cursor = code.textCursor()
    cursor.setPosition(at)
    code.setTextCursor(cursor)
    qtbot.keyClick(code, Qt.Key.Key_End, Qt.KeyboardModifier.ShiftModifier)
    qtbot.keyClick(code, Qt.Key.Key_Delete)
    qtbot.waitUntil(lambda: bool(step_requests()[-1].sources), timeout=5000)
    wait_for_recording(qtbot, tab)
    assert tab.panes.verdict.text().startswith("race in line ")
    assert "Race reported" in tab.panes.verdict.toolTip()
    qtbot.mouseClick(tab.panes.kinds.buttons["Two schedules"], Qt.MouseButton.LeftButton)
    orders = tab.schedules_view
    qtbot.waitUntil(lambda: orders.settled and orders.difference is not None, timeout=60_000)
    assert orders.titles[1].text().startswith("Independent lanes"), "one warp has one order"
    one, other = orders.difference.values
    assert one != other
    qtbot.waitUntil(lambda: not orders.search.running, timeout=60_000)
    before = tab.request.params["n"]
    qtbot.mouseClick(orders.smallest_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: tab.request.params["n"] < before, timeout=60_000)
    qtbot.waitUntil(lambda: orders.settled and orders.difference is not None, timeout=60_000)


def _count_red_pixels(widget: QWidget) -> int:
    """Return how many pixels have the color of what is bad."""
    image = widget.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    wanted, pixels = look().theme.bad, image.constBits().asarray(image.sizeInBytes())
    return int((np.frombuffer(pixels, np.uint32) & 0xFFFFFF == int(wanted[1:], 16)).sum())


def test_cells_that_threads_race_for_stand_out_from_the_second_access_on(qtbot, open_tab):
    tab = open_tab("histogram", "racy")
    races = tab.models.data.races
    second = min(race.second.moment for race in races)
    for kind, view in (("Flow", tab.panes.flow), ("Arrays", tab.panes.arrays)):
        tab.panes.kinds.choose(kind)
        tab.player.go_to(second)
        assert not _count_red_pixels(view), kind
        tab.player.go_to(tab.player.end)
        assert _count_red_pixels(view) > 50, kind
    assert all(tab.models.layout.rows[row].storage.name == races[0].name for row, _ in tab.models.racing_cells)
    words = describe_race(tab.models.recording, races[0])
    assert re.fullmatch(
        r"race: (written|read) by block \d, thread \d; (written|read) by block \d, thread \d; not synchronized", words
    )
    assert "written" in words
    clean = open_tab("scan", "brent-kung")
    assert not clean.models.data.races
    assert not clean.models.racing_cells


def test_findings_are_marked_in_time_and_in_the_code(open_tab):
    tab = open_tab("histogram", "racy")
    recording = tab.models.recording
    assert recording.findings
    moment, finding = recording.findings[0]
    assert tab.panes.timeline.findings[0] == (moment, finding.message)
    assert tab.panes.verdict.text().startswith("race in line")
    assert finding.message in " ".join(tab.panes.verdict.toolTip().split())
    assert finding.message in tab.source.code._markers.values()
    assert int(tab.models.lines[moment]) in tab.source.code._markers


def test_what_fails_is_said_and_the_tab_goes_on(qtbot, tab, monkeypatch):
    seen = []
    tab.failed.connect(seen.append)
    answer = FakeHost.result_of
    monkeypatch.setattr(FakeHost, "result_of", lambda *_: Failure("compile", "scan.cu:3: no.", "Mend it."))
    tab.record()
    qtbot.waitUntil(lambda: bool(seen))
    assert "scan.cu:3: no." in tab.panes.message.text()
    assert tab.panes.pictures.currentWidget() is tab.panes.message
    assert tab.player.end == 0
    press_key(qtbot, tab, Qt.Key.Key_Right)
    monkeypatch.setattr(FakeHost, "result_of", answer)
    tab.record()
    wait_for_recording(qtbot, tab)
    assert tab.panes.pictures.currentWidget() is tab.panes.flow


def test_a_recording_that_takes_long_is_stopped_by_escape(qtbot, window):
    tab = window.page.step
    host = next(host for host in FakeHost.instances if any(isinstance(each, StepPattern) for each in host.requests))
    host.answers_later = True
    end = tab.player.end
    tab.record()
    assert tab.stepper.busy
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    qtbot.keyClick(window.focusWidget() or tab.panes.flow, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: not tab.stepper.busy)
    assert host.cancels == 1
    assert tab.player.end == end, "what was shown stays"
    host.answers_later = False
    qtbot.keyClick(window.focusWidget() or tab.panes.flow, Qt.Key.Key_F5)
    wait_for_recording(qtbot, tab)


def test_a_recording_that_nobody_waits_for_makes_way(qtbot, monkeypatch, tab):
    monkeypatch.setattr("gui.step_view.recording.stepper.STALE_S", 0.05)
    host = next(host for host in FakeHost.instances if any(isinstance(each, StepPattern) for each in host.requests))
    host.answers_later = True
    tab.record()
    qtbot.wait(100)
    host.answers_later = False
    tab.settings.form.change_values(n=8)
    wait_for_recording(qtbot, tab)
    assert host.cancels == 1
    assert tab.panes.flow.viewport.layout.rows[0].value.size == 8


def test_a_damaged_recording_is_said(qtbot, tab, monkeypatch):
    def broken(path):
        raise RuntimeError("out of luck")

    monkeypatch.setattr("gui.step_view.recording.models.load_models", broken)
    seen = []
    tab.failed.connect(seen.append)
    tab.record()
    qtbot.waitUntil(lambda: bool(seen))
    assert "out of luck" in seen[0].message


def test_nothing_at_all_is_shown_as_such(open_tab):
    tab = open_tab(n=0)
    tab.player.go_to(tab.player.end)
    assert tab.player.moment == tab.player.end


def test_arrays_are_shown_as_grids_for_images(qtbot, open_tab):
    tab = open_tab("convolution", "tiled")
    assert tab.panes.kinds.chosen == "Arrays"
    assert tab.panes.pictures.currentWidget() is tab.panes.arrays
    tab.player.go_to(tab.player.end)
    by_name = {panel.title.split()[0]: panel for panel in tab.panes.arrays.panels}
    assert by_name["image"].shape == by_name["out"].shape == (8, 12)
    assert by_name["FILTER"].shape == (3, 3)
    assert by_name["out"].has_value.all()
    tab.player.go_to(1)
    at_first = {panel.title.split()[0]: panel for panel in tab.panes.arrays.panels}
    assert at_first["image"].has_value.all()
    assert not at_first["out"].has_value.any(), "what nobody has written yet is no value"
    rows, columns = by_name["tile"].shape
    assert rows > 8
    assert columns > 32
    writes = next(
        moment for moment in range(1, tab.player.end + 1)
        if any(touch.is_write for touch in (tab.player.go_to(moment), tab.panes.arrays.touches)[1])
    )  # fmt: skip
    tab.player.go_to(writes)
    touch = next(touch for touch in tab.panes.arrays.touches if touch.is_write)
    assert touch.elements.size == touch.threads.size > 0
    qtbot.mouseClick(tab.panes.kinds.buttons["Flow"], Qt.MouseButton.LeftButton)
    assert tab.panes.pictures.currentWidget() is tab.panes.flow
    tab.record()
    wait_for_recording(qtbot, tab)
    assert tab.panes.kinds.chosen == "Flow", "what was chosen stays"


def test_the_tab_pauses_when_it_is_left(qtbot, window):
    tab = window.page.step
    tab.player.play()
    window.page.tabs.setCurrentIndex(0)
    assert not tab.player.playing


# --- two orders


def test_two_orders_of_a_race_differ_where_it_is_said(qtbot, open_tab):
    tab = open_tab("histogram", "racy")
    qtbot.mouseClick(tab.panes.kinds.buttons["Two schedules"], Qt.MouseButton.LeftButton)
    orders = tab.schedules_view
    qtbot.waitUntil(lambda: orders.settled, timeout=60_000)
    assert orders.difference is not None
    assert step_requests()[-1].schedule.startswith("shuffle:")
    assert orders.titles[0].text().startswith("In lockstep → bins[")
    one, other = orders.difference.values
    assert one != other
    assert str(one) in orders.verdict.text()
    assert str(other) in orders.verdict.text()
    for size in ((1024, 700), (1280, 720)):
        tab.window().resize(*size)
        qtbot.waitUntil(lambda: orders.verdict.height() >= orders.verdict.heightForWidth(orders.verdict.width()))
    tab.player.go_to(tab.player.end)
    assert orders.views[0].moment == tab.player.end
    assert orders.views[1].moment == orders.models[1].recording.event_count
    tab.player.go_to(0)
    assert [view.moment for view in orders.views] == [0, 0]


def test_orders_of_a_sound_kernel_do_not_differ(qtbot, monkeypatch, open_tab):
    monkeypatch.setattr("gui.step_view.pictures.schedule_search.MAX_SEEDS", 1)
    tab = open_tab("scan", "kogge-stone", n=64, block="64")
    tab.panes.kinds.choose("Two schedules")
    qtbot.waitUntil(lambda: tab.schedules_view.settled, timeout=60_000)
    assert tab.schedules_view.difference is None
    assert "No difference" in tab.schedules_view.verdict.text()
    assert [request.schedule for request in step_requests()[-3:]] == ["shuffle:1", "lanes:1", "cached:0"]
    assert not tab.schedules_view.search.running


def test_volatile_is_not_enough_where_lanes_part(qtbot, open_tab):
    """The preset's promise: another order, another sum, and the smallest size at which it is seen."""
    tab = open_tab("reduction", "volatile", n=64, block="64", input="ramp")
    tab.panes.kinds.choose("Two schedules")
    orders = tab.schedules_view
    qtbot.waitUntil(lambda: orders.settled, timeout=60_000)
    assert orders.titles[0].text() == "In lockstep → partial[0] = 2016"
    assert orders.titles[1].text().startswith("Independent lanes, seed 1 → partial[0] = ")
    assert not orders.titles[1].text().endswith(" 2016")
    qtbot.waitUntil(lambda: not orders.search.running, timeout=60_000)
    assert orders.smallest_button.isVisible()
    assert orders.smallest_button.text() == "Smallest example: 4 elements"


def test_an_order_that_cannot_run_is_passed_over(qtbot, open_tab, monkeypatch):
    tab = open_tab("histogram", "racy")
    answer = FakeHost.result_of

    def refuse_shuffled(host, request):
        refused = getattr(request, "schedule", "").startswith("shuffle")  # a run has none
        return Failure("launch", "Not in this order.", "") if refused else answer(host, request)

    monkeypatch.setattr(FakeHost, "result_of", refuse_shuffled)
    tab.panes.kinds.choose("Two schedules")
    qtbot.waitUntil(lambda: tab.schedules_view.settled, timeout=60_000)
    assert tab.schedules_view.titles[1].text().startswith("Independent lanes")


def test_one_thread_has_no_orders_and_that_is_said(tab, monkeypatch):
    monkeypatch.setattr("gui.step_view.pictures.schedules.count_threads", lambda models: 1)
    asked = len(step_requests())
    tab.panes.kinds.choose("Two schedules")
    assert tab.schedules_view.settled
    assert "one thread" in tab.schedules_view.verdict.text()
    assert len(step_requests()) == asked
    assert tab.schedules_view.views[0].isVisible()
    assert not tab.schedules_view.views[1].isVisible()


def test_both_orders_are_seen_from_the_first_column_to_the_last(qtbot, monkeypatch, open_tab):
    monkeypatch.setattr("gui.step_view.pictures.schedule_search.MAX_SEEDS", 1)
    tab = open_tab("scan", "kogge-stone", n=64, block="32")
    window = tab.window()
    tab.panes.kinds.choose("Two schedules")
    qtbot.waitUntil(lambda: tab.schedules_view.settled, timeout=60_000)
    for width in (1280, 1900):
        window.resize(width, 720)
        qtbot.waitUntil(lambda width=width: window.width() == width)
        for view in tab.schedules_view.views:
            left = view.viewport.origin().x()
            assert left >= view.viewport.sizes.label
            assert left + view.viewport.layout.width(view.viewport.sizes) <= view.width()


def test_both_orders_fill_a_large_window(qtbot, monkeypatch, open_tab):
    monkeypatch.setattr("gui.step_view.pictures.schedule_search.MAX_SEEDS", 1)
    tab = open_tab("scan", "kogge-stone", n=16, block="16")
    tab.panes.kinds.choose("Two schedules")
    orders = tab.schedules_view
    qtbot.waitUntil(lambda: orders.settled, timeout=60_000)
    tab.window().resize(1920, 1080)
    qtbot.waitUntil(lambda: orders.width() > 900)
    QApplication.processEvents()  # the layout follows
    first, second = orders.views
    assert second.y() > first.y() + first.height(), "one above the other, the cells are larger"
    for view in orders.views:
        assert view.viewport.layout.height(view.viewport.sizes) > 0.75 * view.height()


# --- files


def test_pictures_are_written_and_copied(qtbot, tab, tmp_path):
    tab.player.go_to(tab.player.end)
    png, svg = tmp_path / "scan.png", tmp_path / "scan.svg"
    assert tab.exports.write_picture(png)
    assert tab.exports.write_picture(svg)
    image = QImage(str(png))
    assert image.width() > 1000
    assert len({image.pixel(x, y) for x in range(0, image.width(), 7) for y in range(0, image.height(), 7)}) > 10
    text = svg.read_text()
    total = str(int(tab.panes.flow.viewport.layout.rows[0].value.sum()))
    assert "<svg" in text
    assert total in text
    tab.exports.copy_picture()
    clipboard = QApplication.clipboard()
    assert clipboard.image().size() == image.size()


@pytest.mark.parametrize("suffix", [".gif", ".mp4"])
def test_animations_are_written_while_the_window_goes_on(qtbot, open_tab, tmp_path, suffix):
    import imageio_ffmpeg
    from PIL import Image, ImageSequence

    tab = open_tab(n=2, block="16")
    path = tmp_path / f"scan{suffix}"
    said = []
    tab.exports.status_message.connect(said.append)
    tab.panes.transport.speed.setCurrentIndex(0)  # the last step is held for fewer frames
    tab.exports.write_film(path)
    assert tab.exports.film is not None
    qtbot.waitUntil(lambda: bool(said), timeout=60_000)
    if suffix == ".gif":
        with Image.open(path) as film:
            frames = [np.asarray(frame.convert("RGB")) for frame in ImageSequence.Iterator(film)]
    else:
        raw = subprocess.run(
            [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-i", path, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"],
            capture_output=True, check=True,
        ).stdout  # fmt: skip
        frames = list(np.frombuffer(raw, np.uint8).reshape(-1, 720, 1280, 3))
    assert len(frames) >= 2
    assert frames[0].shape == (720, 1280, 3)
    assert np.abs(frames[0].astype(int) - frames[-1]).max() > 60


def test_an_animation_is_of_the_recording_that_it_was_begun_with(qtbot, open_tab, tmp_path):
    tab, said = open_tab(n=4, block="16"), []
    tab.exports.status_message.connect(said.append)
    tab.panes.transport.speed.setCurrentIndex(tab.panes.transport.speed.count() - 1)
    films = [tmp_path / "alone.gif", tmp_path / "disturbed.gif"]
    tab.exports.write_film(films[0])
    qtbot.waitUntil(lambda: bool(said), timeout=60_000)
    tab.exports.write_film(films[1])
    tab.window().choose_variant("kogge-stone")
    tab.settings.form.change_values(n=1)
    wait_for_recording(qtbot, tab)
    assert tab.exports.film is not None, "it is still being written"
    qtbot.waitUntil(lambda: len(said) == 2, timeout=60_000)
    alone, disturbed = (path.read_bytes() for path in films)
    assert disturbed == alone


@pytest.mark.parametrize("suffix", [".gif", ".mp4"])
def test_an_animation_that_is_given_up_leaves_what_was_there(qtbot, tab, tmp_path, monkeypatch, suffix):
    monkeypatch.setattr("gui.step_view.export.menu.plan_frames", lambda end, rate: ([0, end] * 5000, 10.0))
    path = tmp_path / "films" / f"scan{suffix}"
    path.parent.mkdir()
    said = []
    tab.exports.progressed.connect(said.append)
    for before in (None, b"an older one"):
        if before:
            path.write_bytes(before)
        said.clear()
        tab.exports.write_film(path)
        qtbot.waitUntil(lambda: len(said) > 10, timeout=20_000)
        assert tab.exports.film is not None, "the end of the film before is not its end"
        tab.exports.cancel()
        qtbot.wait(20)  # the thread's last signal
        assert (tab.exports.film, said[-1]) == (None, "")
        assert [(each, each.read_bytes()) for each in path.parent.iterdir()] == ([(path, before)] if before else [])


def test_an_animation_that_cannot_be_written_is_said(qtbot, tab, tmp_path):
    seen = []
    tab.exports.failed.connect(lambda message, advice: seen.append(message))
    for name in ("scan.gif", "scan.mp4"):
        seen.clear()
        tab.exports.write_film(tmp_path / "nowhere" / name)
        qtbot.waitUntil(lambda: bool(seen), timeout=20_000)
        assert seen[0].startswith("Cannot write ")
        assert f"{name}: there is no folder" in seen[0]
        assert tab.exports.film is None


def test_what_cannot_be_written_is_said(tab, tmp_path):
    seen = []
    tab.exports.failed.connect(lambda message, advice: seen.append((message, advice)))
    for name in ("scan.png", "scan.svg", "scan.lockstep"):
        seen.clear()
        path = tmp_path / "nowhere" / name
        write = tab.exports.write_recording if name.endswith("lockstep") else tab.exports.write_picture
        assert not write(path)
        assert name in seen[0][0]
        assert seen[0][1]


def test_the_recording_is_saved_as_a_file(tab, tmp_path):
    path = tmp_path / "scan.lockstep"
    assert tab.exports.write_recording(path)
    assert Recording.load(path).event_count == tab.player.end


def test_a_shorter_recording_is_shown_at_its_end(qtbot, open_tab):
    tab = open_tab(n=32, block="32")
    for picture in ("Flow", "Arrays", "Variables", "Two schedules"):
        tab.settings.form.change_values(n=32)
        wait_for_recording(qtbot, tab)
        tab.player.go_to_end(True)
        before = tab.player.moment
        tab.panes.kinds.choose(picture)
        tab.settings.form.change_values(n=4)
        wait_for_recording(qtbot, tab)
        assert 0 < tab.player.moment == tab.player.end < before
        assert tab.panes.kinds.chosen == picture


def test_atomics_queue_in_a_bar_for_each_address(qtbot, open_tab):
    tab = open_tab("histogram", "privatized")
    assert tab.panes.lanes.queues.isVisible()
    moment = next(
        each
        for each in range(1, tab.player.end + 1)
        if (told := tab.snapshot(each).traffic) and "on one address" in told.summary
    )
    tab.player.go_to(moment)
    shown = tab.panes.lanes.queues.addresses
    block = tab.panes.lanes.grid.block
    assert sum(each.threads.size for each in shown) == int((tab.panes.lanes.grid.lanes.state[block] == ACTIVE).sum())
    sizes = [each.threads.size for each in shown]
    assert sizes == sorted(sizes, reverse=True)
    assert f"{shown[0].array}[{shown[0].element}]: {sizes[0]} lanes" in tab.panes.lanes.queues.toolTip()
    empty = tab.panes.lanes.queues.grab().toImage()
    tab.player.go_to(0)
    assert tab.panes.lanes.queues.addresses == ()
    assert tab.panes.lanes.queues.grab().toImage() != empty


@pytest.mark.parametrize("of", ["levels", "letters", "numbers"])
def test_the_default_histogram_shows_the_queues_at_its_bins(qtbot, open_tab, of):
    tab = open_tab("histogram", "block-partition", of=of)
    for variant in ("block-partition", "interleaved", "privatized"):
        tab.window().choose_variant(variant)
        wait_for_recording(qtbot, tab)
        layout = tab.models.layout
        counting = "block_bins" if variant == "privatized" else "bins"
        turns = []
        for before, row in itertools.pairwise(layout.rows):
            if row.label.startswith("turn ") and row.storage.name == counting:
                # The next thread in the queue adds to the count that the one before it left.
                assert (row.value.astype(int) - before.value)[row.computed].tolist() == [1] * int(row.computed.sum())
                turns.append(int(row.label.split()[1]))
        assert len(turns) >= 2
        assert max(turns) >= 2
        assert layout.columns <= 41


def test_no_room_is_kept_for_queues_where_there_are_no_atomics(open_tab):
    assert not open_tab("scan", "brent-kung").panes.lanes.queues.isVisible()


def test_the_source_is_that_of_the_kernel_that_runs(open_tab):
    tab = open_tab("compaction", "three-kernels")
    seen = []
    for launch in tab.models.recording.launches:
        tab.player.go_to(launch.first + 1)
        assert tab.source.code.kernel == launch.trace.kernel
        first, last = find_kernel_lines(tab.source.code.toPlainText(), launch.trace.kernel)
        assert first < last
        seen.append((tab.source.title.text(), launch.trace.kernel))
    assert len({file for file, _ in seen}) == 2


def test_letters_of_a_text_lead_to_bins_that_have_names(qtbot, open_tab):
    step = open_tab("histogram", "interleaved")
    step.settings.form.change_values(of="letters", text="programming massively pa", letters=4, block="4", blocks=1)
    qtbot.waitUntil(lambda: step.is_up_to_date and step.models is not None and step.models.layout.texts(0, 3)[0] == "p")
    layout = step.models.layout
    assert "".join(layout.texts(0, 3)) == "programming␣massively␣pa"
    assert layout.names(1) == ("a–d", "e–h", "i–l", "m–p", "q–t", "u–x", "y–z", "other")
    assert [layout.names(row) for row in (0, 2)] == [(), ()]
    # The first four letters: p goes to m–p, r to q–t, g to e–h; o has to wait for p.
    assert [layout.rows[row].label for row in (2, 3)] == ["line 110", "turn 2"]
    found = []
    for lines in layout.edges[2:4]:
        places = zip(lines.cell.tolist(), lines.row.tolist(), lines.column.tolist(), strict=True)
        found.append(sorted((cell, column) for cell, row, column in places if row == 0))
    assert found == [[(1, 3), (3, 0), (4, 1)], [(3, 2)]]


def test_a_shorter_recording_with_another_picture_replaces_one_that_was_at_its_end(qtbot, open_tab):
    tab = open_tab("histogram", "written-out", of="letters")
    assert tab.panes.kinds.chosen == "Arrays"
    tab.player.go_to_end(last=True)
    longer = tab.player.end
    tab.window().choose_variant("interleaved")
    wait_for_recording(qtbot, tab)
    assert tab.player.end < longer
    assert (tab.panes.kinds.chosen, tab.player.moment) == ("Flow", 0)


def test_the_first_moment_of_a_recording_is_prepared_in_the_background(qtbot, tab, monkeypatch):
    threads, derive = [], LaunchLanes.__init__

    def note_thread(*arguments):
        threads.append(threading.current_thread())
        derive(*arguments)

    monkeypatch.setattr(LaunchLanes, "__init__", note_thread)
    tab.first_moment = 30
    tab.record()
    wait_for_recording(qtbot, tab)
    assert tab.player.moment == 30
    assert threads
    assert threading.main_thread() not in threads
