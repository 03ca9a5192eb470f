"""What a lecturer and a student do in front of the window, with real keys and clicks on the simulator."""

from __future__ import annotations

import re

import numpy as np
import pytest
from PyQt6.QtCore import Qt
from PyQt6.QtGui import QTextCursor
from PyQt6.QtTest import QTest
from PyQt6.QtWidgets import QApplication

from gpu.files.images import read_image, sample_images
from gui.driving.window_session import open_window, wait_until
from tests.gui.window.clipped_widgets import find_clipped_when_settled
from tests.gui.window.walker import PATIENCE_S, Key, Walker

pytestmark = [pytest.mark.timeout(300), pytest.mark.qt_log_ignore("This plugin does not support", extend=True)]

CTRL = Qt.KeyboardModifier.ControlModifier


@pytest.fixture(scope="module", params=["dark", pytest.param("light", marks=pytest.mark.sweep)])
def walker(qapp, request):
    with open_window("simulator") as window:
        window.appearance.set_theme(request.param)
        assert wait_until(lambda: window.is_idle, PATIENCE_S)
        yield Walker(window)
        for document in window.bench.sources.unsaved:
            document.replace(document.original)


@pytest.fixture
def walk(walker):
    walker.press(Key.Key_F2)
    return walker


def test_an_image_is_opened_filtered_by_both_sobels_and_saved(walk, tmp_path):
    walk.show_pattern("convolution")
    image = next(path for path in sample_images() if path.name == "camera.pgm")
    walk.answer_file_dialog(image)
    walk.press(Key.Key_O, modifier=CTRL)
    assert wait_until(lambda: walk.window.bench.image.path == image, PATIENCE_S)
    box = walk.page.form.fields["filter"].box
    box.setFocus()
    QTest.keyClicks(box, "sob")
    walk.wait_until_idle()
    assert (walk.page.form.values["filter"], walk.page.form.values["size"]) == ("sobel-x", 3)
    while box.currentText() != "Gradient":
        walk.press(Key.Key_Down)
    walk.wait_until_idle()
    assert walk.verdict() == "✓ verified"
    scale = walk.page.view.levels.scale
    if scale.chosen == "linear":
        walk.press(Key.Key_L, modifier=CTRL)
    assert scale.chosen == "log"
    after = walk.page.view.after
    after.setFocus()
    walk.press(Key.Key_Right)
    assert after.item.framed_pixel is not None
    target = tmp_path / "edges.pgm"
    walk.answer_file_dialog(target)
    walk.press(Key.Key_S, modifier=CTRL)
    assert wait_until(target.is_file, PATIENCE_S)
    pixels = read_image(image).pixels.astype(float)
    padded = np.pad(pixels, 1, mode="edge")
    across = padded[:, 2:] - padded[:, :-2]
    down = padded[2:] - padded[:-2]
    x = across[:-2] + 2 * across[1:-1] + across[2:]
    y = down[:, :-2] + 2 * down[:, 1:-1] + down[:, 2:]
    due = np.clip(np.rint(np.hypot(x, y)), 0, 255)
    assert np.abs(read_image(target).pixels - due).max() <= 1


def test_the_idle_lanes_of_a_reduction_are_those_of_the_text(walk):
    walk.show_pattern("reduction")
    walk.select_example("Idle lanes of a whole warp")
    assert walk.page.variant.name == "neighbored"
    assert "1/2, then 3/4, then 7/8" in walk.page.idea.limit.text()
    walk.record_steps()
    seen, said = [], walk.step_tab.panes.counters
    walk.press(Key.Key_Home)
    while walk.step_tab.player.moment < walk.step_tab.player.end:
        walk.press(Key.Key_Right)
        idle = said.text("this step", "idle lanes")
        if idle not in (*seen, "–", "—", "0", "0%"):
            seen.append(idle)
    assert seen[:3] == ["1/2", "3/4", "7/8"]
    walk.press(Key.Key_F2)
    walk.select_example("3 1 7 0 4 1 6 3")
    assert walk.page.view.single_result.value_label.text() == "25"
    # The next rung, beside it on the same numbers.
    walk.record_steps()
    walk.click(walk.step_tab.panes.kinds.buttons["Side by side"])
    beside = walk.step_tab.variants_view
    assert wait_until(lambda: beside.models[1] is not None, PATIENCE_S)
    names = [each.name for each in walk.page.pattern.variants]
    beside.other_variants.setFocus()
    QTest.keyClicks(beside.other_variants, "Neighbored pairs, less")
    assert beside.other_variants.currentData() == names[names.index(walk.page.variant.name) + 1]
    assert wait_until(lambda: walk.step_tab.is_up_to_date and beside.models[1] is not None, PATIENCE_S)
    walk.press(Key.Key_End)
    inputs = [list(each.layout.texts(0, 8)) for each in beside.models]
    assert inputs[0] == inputs[1] == ["3", "1", "7", "0", "4", "1", "6", "3"]
    assert [side.moment for side in beside.sides] == [each.recording.event_count for each in beside.models]
    walk.step_tab.panes.kinds.choose("Flow")


def test_a_scan_has_named_phases_at_every_size(walk):
    walk.show_pattern("scan")
    walk.press(Key.Key_5)
    assert walk.page.variant.name == "brent-kung"
    walk.wait_until_idle()
    walk.record_steps()
    for size in ("16", "32", "64"):
        walk.click(walk.step_tab.settings_button)
        number = walk.step_tab.settings.form.fields["n"].box
        number.setFocus()
        number.selectAll()
        QTest.keyClicks(number, size)
        walk.press(Key.Key_Return)
        assert wait_until(
            lambda size=size: walk.step_tab.is_up_to_date and size in walk.step_tab.settings_button.text(), PATIENCE_S
        )
        walk.press(Key.Key_Escape)
        walk.press(Key.Key_Home)
        phases, before = [], -1
        while walk.step_tab.player.moment != before:
            before = walk.step_tab.player.moment
            walk.press(Key.Key_PageDown)
            phases.append(walk.step_tab.panes.phase.text())
        assert [each for each in phases if each][:3] == ["load", "up-sweep", "down-sweep"]


@pytest.mark.parametrize("barrier", [0, 1])
def test_a_barrier_that_is_taken_out_is_missed_and_put_back(walk, barrier):
    walk.show_pattern("scan")
    walk.press(Key.Key_3)
    walk.wait_until_idle()
    code = walk.page.source.code
    lines = code.toPlainText().split("\n")
    start = next(number for number, line in enumerate(lines) if "void scan_kogge_stone(" in line)
    place = [number for number in range(start, len(lines)) if "__syncthreads();" in lines[number]][barrier]
    code.setTextCursor(QTextCursor(code.document().findBlockByNumber(place)))
    code.ensureCursorVisible()
    walk.click(code.viewport(), code.cursorRect().center())
    walk.press(Key.Key_Home)
    QTest.keyClicks(code, "// ")
    walk.press(Key.Key_F5)
    walk.wait_until_idle()
    assert walk.verdict().startswith("right by chance: race in line")
    assert not find_clipped_when_settled(walk.window)
    remedy = walk.page.source.strip.remedy
    assert remedy.text() == f"Insert __syncthreads(); before line {place + 1}"
    advised = "add a __syncthreads() between them"
    assert advised in walk.page.source.strip.message.toolTip().replace("\n", " ")
    walk.record_steps()
    assert walk.step_tab.panes.verdict.text().startswith("race in line")
    told = walk.step_tab.source.strip.message

    def quotes_recording():
        values = re.findall(r"\b(?:wrote|read) \d+", told.toolTip())
        recorded = [finding.message for _, finding in walk.step_tab.models.recording.findings]
        return values and any(all(value in message for value in values) for message in recorded)

    assert wait_until(quotes_recording, PATIENCE_S), told.toolTip()
    assert advised in told.toolTip().replace("\n", " ")
    assert wait_until(lambda: told.text() == " ".join(told.toolTip().split()) != "", PATIENCE_S), told.text()
    assert "race" in told.text().lower()
    walk.press(Key.Key_F2)
    walk.click(remedy)
    walk.press(Key.Key_Escape, Key.Key_F5)
    walk.wait_until_idle()
    assert walk.verdict() == "✓ verified"
    document = walk.page.source.document
    document.replace(document.original)
    walk.press(Key.Key_Escape)


@pytest.mark.parametrize("order", ["sections", "interleaved"])
def test_24_letters_are_counted_by_4_threads(walk, order):
    walk.show_pattern("histogram")
    walk.select_example(f"24 letters, 4 threads: {order}")
    assert walk.verdict() == "✓ verified"
    counts = walk.window.bench.outcomes["histogram"].arrays["counts"].ravel().tolist()
    assert counts == [3, 3, 3, 7, 4, 1, 1, 2]
    walk.record_steps()
    assert "programming massively pa" in walk.step_tab.settings_button.toolTip() + walk.step_tab.settings_button.text()
    walk.press(Key.Key_End)
    assert walk.step_tab.player.moment == walk.step_tab.player.end


def test_tab_comes_to_every_control_and_leaves_it(walk):
    for pattern in ("convolution", "reduction", "matmul"):
        walk.show_pattern(pattern)
        for tab in (Key.Key_F2, Key.Key_F3, Key.Key_F4):
            walk.press(tab)
            walk.page.setFocus()
            reached = []
            while len(reached) < 120 and (focused := QApplication.focusWidget()) not in reached:
                reached.append(focused)
                QTest.keyClick(focused, Key.Key_Tab)
                assert QApplication.focusWidget() is not focused, focused.accessibleName()
            assert len(reached) > 12
            unnamed = [each for each in reached if not (each.accessibleName() or getattr(each, "text", str)())]
            assert {type(each).__name__ for each in unnamed} <= {"PatternPage", "QTabBar", "ScrollColumn"}
        walk.press(Key.Key_F2)
