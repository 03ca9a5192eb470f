from __future__ import annotations

from tests.gui.step_view.conftest import wait_for_recording


def test_a_worked_example_shows_its_votes_lane_by_lane(qtbot, open_step_tab):
    window = open_step_tab("sort", "warp-radix")
    tab = window.page.step
    assert tab.settings.params["n"] == 16
    window.page.show_example(window.page.pattern.presets[0])
    wait_for_recording(qtbot, tab)
    assert (tab.settings.params["n"], tab.settings.params["input"]) == (4, "worked")
    tab.panes.kinds.choose("Variables")
    assert tab.panes.pictures.currentWidget() is tab.panes.variables_view
    assert not tab.panes.kinds.buttons["Tiles"].isVisibleTo(window)  # no tensor core multiplies any
    votes = []
    for moment in range(tab.player.end + 1):
        tab.player.go_to(moment)
        votes += [
            each for each in tab.panes.variables_view.accessibleDescription().split("; ") if each.startswith("ones = ")
        ]
    # 7, 14, 4, 1: the lowest bit is 1 in lanes 0 and 3.
    assert votes[0] == "ones = 9: 1 0 0 1" + " 0" * 28
    pictures = []
    for moment in (0, tab.player.end // 2, tab.player.end):
        tab.player.go_to(moment)
        pictures.append(tab.panes.variables_view.grab().toImage())
    assert pictures[0] != pictures[1] != pictures[2]


def test_an_example_that_is_too_large_to_watch_is_not_recorded(qtbot, open_step_tab):
    window = open_step_tab("sort", "merge")
    before = dict(window.page.step.settings.params)
    window.page.show_example(window.page.pattern.presets[1])
    assert window.page.step.settings.params == before
    wait_for_recording(qtbot, window.page.step)
