from __future__ import annotations

from collections import Counter
from itertools import pairwise

from PyQt6.QtCore import QPoint, Qt

from gui.step_view.pictures.launches import _FINISHED, _FUTURE, _LAUNCHED, _RUNNING, state_of
from tests.gui.step_view.conftest import wait_for_recording


def test_a_sort_that_launches_itself_opens_at_its_launches(qtbot, open_tab):
    tab = open_tab("sort", "quicksort")
    assert tab.panes.kinds.chosen == "Launches"
    assert tab.panes.pictures.currentWidget() is tab.panes.launches
    view = tab.panes.launches
    boxes = [view.box(number) for number in range(len(view.grids))]
    for number, box in enumerate(boxes):
        assert view.rect().contains(box.toRect())
        assert not any(box.intersects(other) for other in boxes[:number])
        if view.grids[number].parent >= 0:
            assert boxes[view.grids[number].parent].bottom() < box.top()
    tab.window().choose_variant("bitonic")
    wait_for_recording(qtbot, tab)
    assert tab.panes.kinds.chosen == "Flow"
    assert not tab.panes.kinds.buttons["Launches"].isVisibleTo(tab)


def test_the_tree_unfolds_and_a_click_goes_to_where_a_grid_begins(qtbot, open_tab):
    tab = open_tab("sort", "quicksort")
    view = tab.panes.launches
    states = [[state_of(grid, moment) for grid in view.grids] for moment in range(tab.player.end + 1)]
    assert Counter(states[0]) == {_LAUNCHED: 1, _FUTURE: len(view.grids) - 1}
    assert set(states[-1]) == {_FINISHED}
    for before, after in pairwise(states):
        assert all(a <= b for a, b in zip(before, after, strict=True))
    assert all(Counter(each)[_RUNNING] <= 1 for each in states), "one after the other, as the simulator runs them"
    tab.player.go_to(tab.player.end)
    assert view.accessibleDescription() == f"{len(view.grids)} of {len(view.grids)} grids launched, 11 finished"
    number = len(view.grids) - 1
    at = view.box(number).center().toPoint()
    qtbot.mouseClick(view, Qt.MouseButton.LeftButton, pos=at)
    assert tab.player.moment == view.grids[number].first + 1
    assert state_of(view.grids[number], tab.player.moment) == _RUNNING
    qtbot.mouseClick(view, Qt.MouseButton.LeftButton, pos=QPoint(1, 1))
    assert tab.player.moment == view.grids[number].first + 1
    words = view.describe_grid(number).split("\n")
    assert words[0] == "sort_quick: 1 block of 32 threads"
    assert "end = 16" in words[1]
    assert words[2] == "launched by thread 1"
    assert view.describe_grid(0).endswith("launched by the host")
