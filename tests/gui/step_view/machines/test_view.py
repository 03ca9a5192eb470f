"""A run on several devices, stepped: at each moment what had ended by then is there, and says what it was made of."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PyQt6.QtCore import QPointF, Qt

from gpu.patterns import find_pattern
from gui.painting.colors import warp_color
from gui.painting.theme import look
from gui.step_view.machines.moments import MachineMoments
from gui.step_view.machines.view import MAX_TASKS, MachinesView
from tests.gui.step_view.machines.sample_run import SCAN, WORKERS, make_run, make_task


@pytest.fixture
def view(qtbot):
    made = MachinesView(find_pattern("scan").require_distributed())
    qtbot.addWidget(made)
    made.resize(1100, 620)
    made.show_run(make_run())
    with qtbot.waitExposed(made):
        made.show()
    return made


def background_color(widget, box):
    """Return the color of a cell's ground, below what is written there."""
    return widget.grab().toImage().pixelColor(int(box.left()) + 12, int(box.bottom()) - 5).name()


def test_tasks_end_one_after_the_other_and_borders_are_the_steps():
    moments = MachineMoments(make_run())
    assert [each.task for each in moments.tasks_by_end] == ["chunk-0", "chunk-1", "totals-2", "carry-3", "carry-4"]
    assert moments.borders == (2, 3, 5)
    assert moments.elapsed_time(0) == 0
    assert moments.elapsed_time(3) == pytest.approx(2.5)


def test_a_task_that_was_done_again_counts_when_it_was_done_last():
    again = replace(SCAN[0], worker=WORKERS[1].address, begin=13.5, end=14.0)
    moments = MachineMoments(make_run(*SCAN, again))
    assert (moments.end, moments.tasks_by_end[-1]) == (5, again)


def test_keys_step_and_what_has_just_ended_is_said(view, qtbot):
    assert view.player.moment == 5, "the whole picture is there first"
    qtbot.keyClick(view, Qt.Key.Key_Home)
    assert view.task_state.toolTip() == "Before the first task"
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Right):
        qtbot.keyClick(view, key)
    said = view.description.text().replace("\u00a0", " ")
    assert said.startswith("totals, worker 0: produced 8 B in 100 ms")
    assert "input: 4 KB from itself, 4 KB from worker 1" in said
    assert "400 ms of transfers from other workers" in said
    assert view.clock.toolTip() == "2.5 s of 3.4 s"
    qtbot.keyClick(view, Qt.Key.Key_Right, Qt.KeyboardModifier.ShiftModifier)
    assert view.player.moment == 5


def test_a_cell_is_filled_when_its_task_has_ended(view):
    box = view.graph.box(view.moments.layout.tasks["carry-4"])
    filled = background_color(view.graph, box)
    view.player.go_to(4)
    assert background_color(view.graph, box) == look().theme.surface != filled


def test_what_is_clicked_in_either_picture_stands_out_in_both(view, qtbot):
    bar = view.lanes.bar(view.moments.layout.tasks["chunk-1"].record)
    qtbot.mouseClick(view.lanes, Qt.MouseButton.LeftButton, pos=bar.center().toPoint())
    assert view.graph.picked == view.lanes.picked == "chunk-1"
    assert "from 1\u202f000 elements, starting at 1\u202f000" in view.description.text().replace("\u00a0", " ")
    qtbot.mouseClick(
        view.graph,
        Qt.MouseButton.LeftButton,
        pos=view.graph.box(view.moments.layout.inputs["chunk-1"]).center().toPoint(),
    )
    assert view.graph.picked is None, "a second click takes it back"


def test_a_bar_is_as_long_as_its_task_and_what_came_before_stands_below(view):
    moments, lanes = view.moments, view.lanes
    chunk, totals = (moments.layout.tasks[name].record for name in ("chunk-1", "totals-2"))
    assert lanes.bar(chunk).width() == pytest.approx(20 * lanes.bar(totals).width(), rel=0.01)
    image = lanes.grab().toImage()
    x, y = lanes.x_of(2.2), lanes.bar(totals).bottom() + 3
    assert image.pixelColor(int(x), int(y)).name() == warp_color(look().theme, 1).name(), "in its source's color"


def test_the_timeline_goes_nearer_and_on_with_the_moments(view, qtbot):
    lanes = view.lanes
    totals = view.moments.layout.tasks["totals-2"].record
    whole, at = lanes.bar(totals).width(), lanes.x_of(2.45)
    lanes.zoom(8, at)
    assert lanes.bar(totals).width() == pytest.approx(8 * whole)
    assert lanes.x_of(2.45) == pytest.approx(at), "what is under the pointer stays"
    assert lanes.task_at(QPointF(20, lanes.bar(totals).center().y())) is None, "names are no tasks"
    view.player.go_to(1)
    assert lanes.first_time < 1.0 < lanes.time_at(lanes.width()), "the moment is brought into view"
    qtbot.keyClick(view, Qt.Key.Key_F)
    assert (lanes.first_time, lanes.bar(totals).width()) == (0, pytest.approx(whole))
    for _ in range(3):
        qtbot.keyClick(view, Qt.Key.Key_Plus)
    assert lanes.zoom_factor == pytest.approx(1.5**3)
    for _ in range(9):
        qtbot.keyClick(view, Qt.Key.Key_Minus)
    assert (lanes.first_time, lanes.zoom_factor) == (0, 1), "never farther than all of it"
    lanes.zoom(1e12)
    assert lanes.time_at(lanes.width()) <= 3.41, "nothing is seen beyond the end"


def test_more_tasks_than_can_be_seen_are_drawn_in_time_alone(view):
    many = [make_task(f"step-{number}", 0, 0, number, number + 1) for number in range(MAX_TASKS + 1)]
    view.show_run(make_run(*many))
    assert view.too_many_message.text() == f"{MAX_TASKS + 1} tasks are too many to show as cells."
    assert view.lanes.moments.end == MAX_TASKS + 1
