"""From an element of a result to its thread, by real clicks and keys at 1280 x 720."""

from __future__ import annotations

import numpy as np
import pytest
from PyQt6.QtCore import QEvent, QPoint, QPointF, Qt
from PyQt6.QtWidgets import QApplication, QLabel, QScrollBar

from gpu.messages.bodies import PickBody
from gpu.messages.events import Failure
from gpu.messages.runs.writer import FindWriter, StepWriter
from gui.widgets.notice import Notice
from tests.gui.conftest import FakeHost, wait_until_idle


def run_pattern_page(qtbot, window, pattern, variant=None, **params):
    """Run a pattern, and return its page and the card."""
    window.resize(1280, 720)
    window.choose_pattern(pattern)
    if variant is not None:
        window.choose_variant(variant)
    if params:
        window.page.form.change_values(**params)
    wait_until_idle(qtbot, window)
    return window.page, window.page.writer_search.card


def click(qtbot, place, view):
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=view.mapFromScene(place))


def click_pixel(qtbot, pane, x, y):
    click(qtbot, pane.box.mapViewToScene(QPointF(x + 0.5, y + 0.5)), pane._widget)


def click_bar(qtbot, plot, number):
    (_, _), (low, high) = plot.box.viewRange()
    click(qtbot, plot.box.mapViewToScene(QPointF(plot.position_of(number), (low + high) / 2)), plot.plot)


def wait_for_answer(qtbot, card):
    qtbot.waitUntil(lambda: card.isVisible() and not card.thread_label.text().startswith("Finding"))


def requests_of(kind=FindWriter):
    return [request for host in FakeHost.instances for request in host.requests if isinstance(request, kind)]


def test_a_pixel_that_is_clicked_shows_its_thread_and_steps_from_there(qtbot, window):
    page, card = run_pattern_page(qtbot, window, "convolution", "naive")
    click_pixel(qtbot, page.view.after, 37, 20)
    wait_for_answer(qtbot, card)
    title, who, where, moved = card.texts
    assert title.startswith("Pixel x 37, y 20")
    # The blocks are 32 wide and 8 high, a plane a color.
    assert who.startswith("Block (1, ")
    assert who.endswith("thread (5, 4)")
    assert "convolve_naive" in where
    assert "1 store request for 8 lanes" in moved
    assert card.line.text().startswith("convolution.cu:")
    view = page.view.rect()
    assert view.contains(card.geometry())
    qtbot.mouseClick(card.step, Qt.MouseButton.LeftButton)
    step = page.step
    qtbot.waitUntil(lambda: page.stepping and step.models is not None and step.is_up_to_date)
    (request,) = requests_of(StepWriter)
    writer = request.writer
    assert step.followed == (writer.block_number, writer.thread_number)
    # The thread has one name in Run and in Step: in the statement, in tooltips, and in the head.
    name = card.thread_label.text()
    assert step.panes.statement.text().startswith(f"{name[0].lower()}{name[1:]}:")
    assert step.settings_button.text().startswith(f"From Run: convolve_naive, block {who[6 : who.index('), ') + 1]}")
    assert step.models.recording.position(step.player.moment - 1).line == writer.line
    assert step.settings_button.text().startswith("From Run: convolve_naive, block ")
    panel = next(each for each in step.panes.arrays.panels if each.title.startswith("out"))
    assert panel.find_cells(request.written_element.index) >= 0
    # What is chosen in Step is recorded again when that is asked for.
    step.record_soon()
    assert not step.settings_button.text().startswith("Of the run")


def test_of_a_color_image_the_color_is_chosen_and_stays_so(qtbot, window, color):
    window.bench.open_image(color)
    page, card = run_pattern_page(qtbot, window, "convolution", "naive")
    click_pixel(qtbot, page.view.after, 37, 20)
    wait_for_answer(qtbot, card)
    assert card.plane.isVisible()
    assert card.texts[0] == "Pixel x 37, y 20"
    blocks = [card.thread_label.text()]
    for color in ("green", "blue"):
        qtbot.mouseClick(card.plane.buttons[color], Qt.MouseButton.LeftButton)
        wait_for_answer(qtbot, card)
        blocks.append(card.thread_label.text())
    assert [request.element[2] for request in requests_of()] == [0, 1, 2]
    assert len(set(blocks)) == 3, "each color is a plane of blocks"
    click_pixel(qtbot, page.view.after, 38, 20)
    wait_for_answer(qtbot, card)
    assert requests_of()[-1].element == (20, 38, 2)
    qtbot.mouseClick(card.step, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: page.stepping and page.step.models is not None and page.step.is_up_to_date)
    (request,) = requests_of(StepWriter)
    assert request.request.element == (20, 38, 2)


def test_a_pixel_of_a_gradient_has_a_thread_in_each_sobel_filter(qtbot, window, color):
    window.bench.open_image(color)
    page, card = run_pattern_page(qtbot, window, "convolution", "naive", filter="gradient", size=3)
    click_pixel(qtbot, page.view.after, 37, 20)
    wait_for_answer(qtbot, card)
    assert list(card.filters.buttons) == ["sobel x 3 × 3", "sobel y 3 × 3"]
    assert "combined two results" in card.texts[1]
    # The blocks are 32 wide and 8 high, a plane a color.
    assert card.thread_label.text().endswith("thread (5, 4)")
    qtbot.mouseClick(card.plane.buttons["green"], Qt.MouseButton.LeftButton)
    wait_for_answer(qtbot, card)
    qtbot.mouseClick(card.filters.buttons["sobel y 3 × 3"], Qt.MouseButton.LeftButton)
    wait_for_answer(qtbot, card)
    assert card.thread_label.text().endswith("thread (5, 4)")
    assert page.view.rect().contains(card.geometry())
    found = [(request.run.params["filter"], request.element) for request in requests_of()]
    assert found == [("sobel-x", (20, 37, 0)), ("sobel-x", (20, 37, 1)), ("sobel-y", (20, 37, 1))]
    qtbot.mouseClick(card.step, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: page.stepping and page.step.models is not None and page.step.is_up_to_date)
    (request,) = requests_of(StepWriter)
    assert request.request.run.params["filter"] == "sobel-y"
    # Another filter's pixel has a single thread.
    page.tabs.setCurrentIndex(0)
    page.form.change_values(filter="sobel-x")
    wait_until_idle(qtbot, window)
    click_pixel(qtbot, page.view.after, 36, 20)
    wait_for_answer(qtbot, card)
    assert card.filters is None
    assert not card.combination_label.isVisible()


def test_bars_elements_and_values_have_their_threads(qtbot, window):
    for pattern, variant, title in (
        ("histogram", "interleaved", "Bin {}"),
        ("scan", "brent-kung", "Element {}"),
        ("sort", "bitonic", "Element {}"),
        ("compaction", "ballot", "Element {}"),
        ("softmax", "shuffle", "Softmax[{1}][{0}]"),
        ("matmul", "tiled", "C[{1}][{0}]"),
        ("reduction", "atomic", "Result"),
    ):
        _check_writer(qtbot, window, pattern, variant, title)


def _check_writer(qtbot, window, pattern, variant, title):
    before = len(requests_of())
    sizes = {"softmax": {"n": 64}, "matmul": {"n": 64}, "histogram": {}}
    page, card = run_pattern_page(qtbot, window, pattern, variant, **sizes.get(pattern, {"n": 1024}))
    view = page.view
    # Where elements are narrower than pixels it is the one that is read that counts.
    if pattern == "reduction":
        read = ()
        qtbot.mouseClick(view.single_result.writer_button, Qt.MouseButton.LeftButton)
    elif pattern in ("softmax", "matmul"):
        pane = view.cards["Softmax" if pattern == "softmax" else "C"].pane
        click_pixel(qtbot, pane, 34, 12)
        (request,) = requests_of()[before:]
        read = request.element[1::-1]
        # A pixel of the widget is about as large as an element.
        assert np.abs(np.subtract(read, (34, 12))).max() <= 1
    else:
        plot = view.levels.plot if pattern == "histogram" else view.after
        with qtbot.waitSignal(plot.picked) as picked:
            click_bar(qtbot, plot, 120)
        read = picked.args
    wait_for_answer(qtbot, card)
    assert card.texts[0] == title.format(*read)
    assert card.thread_label.text().startswith("Block ")
    assert card.step.isVisible()
    assert ("atomics by" in card.other_writes_label.text()) == (pattern in ("histogram", "reduction"))
    (request,) = requests_of()[before:]
    assert page.view.rect().contains(card.geometry())
    assert request.run.variant == variant


def test_an_element_of_many_is_picked_where_it_is_read(qtbot, window):
    page, card = run_pattern_page(qtbot, window, "scan", "brent-kung", n=30_000)
    stretch = page.view.excerpts[1]
    page.view.after.excerpt_moved.emit(20_000)
    middle = stretch.mapFromGlobal(stretch.find_cell_position(stretch.first + 2))
    qtbot.mousePress(stretch, Qt.MouseButton.LeftButton, pos=middle)
    qtbot.mouseMove(stretch, middle - QPoint(70, 0))
    qtbot.mouseRelease(stretch, Qt.MouseButton.LeftButton, pos=middle - QPoint(70, 0))
    assert not requests_of()
    first = stretch.first
    qtbot.mouseClick(stretch, Qt.MouseButton.LeftButton, pos=middle)
    wait_for_answer(qtbot, card)
    stretch.setFocus()
    qtbot.keyClick(stretch, Qt.Key.Key_Return)
    wait_for_answer(qtbot, card)
    assert [request.element for request in requests_of()] == [(first + 2,), (first,)]
    assert first > 19_000


def test_the_keyboard_asks_steps_and_goes_back(qtbot, window):
    page, card = run_pattern_page(qtbot, window, "convolution", "naive")
    pane = page.view.after
    pane.setFocus()
    qtbot.keyClick(pane, Qt.Key.Key_Return)
    assert not requests_of()
    qtbot.keyClick(pane, Qt.Key.Key_Right)
    qtbot.keyClick(pane, Qt.Key.Key_Down)
    qtbot.keyClick(pane, Qt.Key.Key_Return)
    wait_for_answer(qtbot, card)
    assert card.texts[0].startswith("Pixel x 21, y 16")
    assert QApplication.focusWidget() is card.step
    # As if the card had covered a pointer that rests on the pane.
    QApplication.sendEvent(pane._widget.viewport(), QEvent(QEvent.Type.Leave))
    qtbot.keyClick(card.step, Qt.Key.Key_Escape)
    assert not card.isVisible()
    assert QApplication.focusWidget() is pane
    qtbot.keyClick(pane, Qt.Key.Key_Return)
    wait_for_answer(qtbot, card)
    qtbot.keyClick(card.step, Qt.Key.Key_Space)
    qtbot.waitUntil(lambda: page.stepping and page.step.models is not None and page.step.is_up_to_date)


def test_a_drag_or_a_click_beside_the_picture_asks_nothing(qtbot, window):
    page, card = run_pattern_page(qtbot, window, "convolution", "naive")
    pane = page.view.after
    viewport = pane._widget.viewport()
    start = pane._widget.mapFromScene(pane.box.mapViewToScene(QPointF(10, 10)))
    qtbot.mousePress(viewport, Qt.MouseButton.LeftButton, pos=start)
    end = pane._widget.mapFromScene(pane.box.mapViewToScene(QPointF(25, 10)))
    qtbot.mouseMove(viewport, end)
    qtbot.mouseRelease(viewport, Qt.MouseButton.LeftButton, pos=end)
    click_pixel(qtbot, pane, -3, 10)
    qtbot.mouseClick(viewport, Qt.MouseButton.RightButton, pos=start)
    assert not requests_of()
    assert not card.isVisible()


def test_looking_is_stopped_and_what_comes_late_is_nobodys(qtbot, window):
    page, card = run_pattern_page(qtbot, window, "convolution", "naive")
    side = window.bench.side_jobs._host
    side.answers_later = True
    click_pixel(qtbot, page.view.after, 5, 5)
    assert card.thread_label.text() == "Finding its thread…"
    assert not card.step.isVisible()
    qtbot.keyClick(window, Qt.Key.Key_Escape)
    assert side.cancels == 1
    assert not card.isVisible()
    click_pixel(qtbot, page.view.after, 5, 5)
    window.choose_variant("constant")
    side.answer_all()
    wait_until_idle(qtbot, window)
    assert not card.isVisible()


def test_why_no_thread_is_known_is_said(qtbot, window):
    page, card = run_pattern_page(qtbot, window, "convolution", "naive")
    side = window.bench.side_jobs._host
    side.answers_later = True
    click_pixel(qtbot, page.view.after, 5, 5)
    side.answer(Failure("input", "No thread is known: cuDNN is a library.", "Take another variant."))
    wait_for_answer(qtbot, card)
    assert card.texts[1] == "No thread is known: cuDNN is a library. Take another variant."
    assert not card.step.isVisible()
    qtbot.mouseClick(card.close_button, Qt.MouseButton.LeftButton)
    assert not card.isVisible()


def test_the_line_is_shown_in_the_kernel(qtbot, window):
    page, card = run_pattern_page(qtbot, window, "convolution", "separable")
    click_pixel(qtbot, page.view.after, 5, 5)
    wait_for_answer(qtbot, card)
    qtbot.mouseClick(card.line, Qt.MouseButton.LeftButton)
    code = page.source.code
    line = int(card.line.text().split()[0].rpartition(":")[2])
    assert code.textCursor().blockNumber() + 1 == line


def test_a_block_that_does_too_much_leaves_the_smaller_run(qtbot, window):
    page, card = run_pattern_page(qtbot, window, "matmul", "tiled", n=512)
    click_pixel(qtbot, page.view.cards["C"].pane, 34, 12)
    wait_for_answer(qtbot, card)
    assert "smaller run" in card.step.toolTip()
    assert card.step.text() == "Step in a smaller run"
    assert "more than the 500\u202f000 that can be stepped through" in card.limit_label.text()
    assert page.view.rect().contains(card.geometry())
    qtbot.mouseClick(card.step, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: page.stepping)
    assert not requests_of(StepWriter)


def test_a_body_has_the_thread_that_computes_its_forces(qtbot, window):
    page, card = run_pattern_page(qtbot, window, "nbody", "naive")
    canvas, simulation = page.view.canvas, page.view.simulation
    qtbot.waitUntil(lambda: canvas.has_picture)
    simulation.play(True)
    middle = canvas.rect().center()
    qtbot.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=middle + QPoint(40, 0))
    wait_until_idle(qtbot, window)
    assert not requests_of()
    qtbot.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=middle - QPoint(40, 0))
    wait_for_answer(qtbot, card)
    assert not simulation.playing
    assert card.texts[:2] == ("Body 3", "Block 0, thread 3")
    assert "nbody_naive" in card.launch_label.text()
    assert page.view.rect().contains(card.geometry())
    (request,) = requests_of()
    assert request.run.inputs["bodies"].shape == (300, 7)
    picks = [each for host in FakeHost.instances for each in host.requests if isinstance(each, PickBody)]
    canvas.setFocus()
    qtbot.keyClick(canvas, Qt.Key.Key_Return)
    wait_until_idle(qtbot, window)
    last = [each for host in FakeHost.instances for each in host.requests if isinstance(each, PickBody)][-1]
    assert len(picks) == 2
    assert last.x == pytest.approx(last.width / 2, abs=2)
    # A drag turns the camera, and asks nothing.
    before = canvas.camera
    qtbot.mousePress(canvas, Qt.MouseButton.LeftButton, pos=middle)
    qtbot.mouseMove(canvas, middle + QPoint(60, 0))
    qtbot.mouseRelease(canvas, Qt.MouseButton.LeftButton, pos=middle + QPoint(60, 0))
    wait_until_idle(qtbot, window)
    assert canvas.camera != before
    assert len(requests_of()) == 1


def test_the_list_of_keys_names_it_and_is_seen_whole(qtbot, window):
    window.resize(1280, 720)
    window.setFocus()
    qtbot.keyClick(window, Qt.Key.Key_F1)
    (notice,) = window.findChildren(Notice)
    qtbot.waitUntil(notice.isVisible)
    assert any("Show its thread" in label.text() for label in notice.findChildren(QLabel))
    assert not any(bar.maximum() for bar in notice.area.findChildren(QScrollBar))
