"""Pictures painted from caches after many steps equal new pictures of the same moment."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import QWidget

from gpu.base.warp import WARP
from gpu.stepping.moment.lanes import LaneState, LaneStates
from gpu.stepping.moment.warp_variables import find_warp_variables
from gui.step_view.arrays.view import MemoryView
from gui.step_view.cards.lanes import LaneGrid
from gui.step_view.dataflow.layout import DataflowLayout
from gui.step_view.dataflow.view import FlowView
from gui.step_view.pictures.launches import LaunchesView
from gui.step_view.pictures.variables import VariablesView
from gui.step_view.time.snapshots import make_snapshots
from gui.step_view.time.timeline import Timeline
from tests.gui.step_view.conftest import wait_for_recording

SHIFT = Qt.KeyboardModifier.ShiftModifier


def fresh_flow(tab):
    view, models, old_viewport = FlowView(), tab.models, tab.panes.flow.viewport
    _place_like(view, tab, tab.panes.flow)
    view.open(DataflowLayout(models.layout.dataflow))
    if not old_viewport.fitted:
        view.zoom(old_viewport.sizes.column / view.viewport.sizes.column)
    view.show_moment(tab.player.moment)
    view.follow_thread(tab.followed)
    view.select(tab.panes.flow.marks.selected)
    view.viewport.offset = tab.panes.flow.viewport.offset  # the same scroll position
    return view


def fresh_arrays(tab):
    view = MemoryView()
    _place_like(view, tab, tab.panes.arrays)
    view.open(tab.models)
    view.show_moment(tab.player.moment, fresh_snapshot(tab).block, tab.followed)
    return view


def fresh_variables(tab):
    view, snapshot = VariablesView(), fresh_snapshot(tab)
    _place_like(view, tab, tab.panes.variables_view)
    warp = snapshot.thread // WARP
    variables = find_warp_variables(tab.models.recording, tab.player.moment, snapshot.block, warp)
    active = snapshot.lanes.state[snapshot.block, warp] == LaneState.ACTIVE
    view.show_warp(variables, active.tolist(), snapshot.block * snapshot.lanes.state.shape[1] + warp)
    return view


def fresh_launches(tab):
    view = LaunchesView()
    _place_like(view, tab, tab.panes.launches)
    view.open(tab.models.data.grids)
    view.show_moment(tab.player.moment)
    return view


def fresh_timeline(tab):
    view, models = Timeline(), tab.models
    _place_like(view, tab, tab.panes.timeline)
    kernels = [launch.trace.kernel for launch in models.recording.launches]
    view.open(models.data.segments, tab.panes.timeline.findings, kernels, models.data.phases.intervals)
    view.show_moment(tab.player.moment)
    return view


def fresh_lanes(tab):
    view, snapshot = LaneGrid(), fresh_snapshot(tab)
    _place_like(view, tab, tab.panes.lanes.grid)
    view.first_warp, view.max_rows = (
        tab.panes.lanes.grid.first_warp,
        tab.panes.lanes.grid.max_rows,
    )  # the same scroll position
    view.show_lanes(snapshot.lanes, snapshot.block, snapshot.threads, snapshot.thread if tab.followed else -1)
    return view


def fresh_snapshot(tab):
    """Return the snapshot of the moment, computed from the recording without caches."""
    data = replace(tab.models.data, lanes=LaneStates(tab.models.recording))
    models = replace(tab.models, data=data)
    return make_snapshots(models)(tab.player.moment, tab.followed)


def _place_like(view, tab, model_view):
    view.setParent(tab)
    view.resize(model_view.size())
    view.show()  # Qt resizes a hidden widget for each picture


PICTURES = {
    "Flow": ("flow", fresh_flow),
    "Arrays": ("arrays", fresh_arrays),
    "Variables": ("variables_view", fresh_variables),
    "Launches": ("launches", fresh_launches),
}


def grab_complete(view):
    """Return a view's picture once no part of it is delayed to the next frame."""
    for _ in range(500):
        image = view.grab().toImage()
        if getattr(view, "complete", True):
            return image
    pytest.fail("the picture is never finished")


def wait_until_idle(qtbot, tab):
    """Wait for the layout, animations and prefetching."""
    before = None
    while before != (before := [each.geometry() for each in tab.findChildren(QWidget)]):
        qtbot.wait(20)  # a new layout may wrap texts differently
    qtbot.waitUntil(lambda: not (tab.prefetcher.busy or tab.panes.flow.viewport.gliding))


def compare_picture(qtbot, tab, kind):
    wait_until_idle(qtbot, tab)
    name, make = PICTURES[kind]
    views = {
        kind: (getattr(tab.panes, name), make),
        "time": (tab.panes.timeline, fresh_timeline),
        "lanes": (tab.panes.lanes.grid, fresh_lanes),
    }
    for name, (view, make_one) in views.items():
        fresh = make_one(tab)
        assert grab_complete(view) == grab_complete(fresh), f"{name} at {tab.player.moment}"
        fresh.setParent(None)
        fresh.deleteLater()
    snapshot = fresh_snapshot(tab)
    labels = tab.panes.statement, tab.panes.variables, tab.panes.phase
    assert [each._full_text for each in labels] == [snapshot.effect, snapshot.variables, snapshot.phase]
    groups = "  ·  ".join(group.text for group in snapshot.lanes.groups(snapshot.block))
    assert tab.panes.lanes.lane_states._full_text.endswith(groups)


def compare_at_moments(qtbot, tab, kind, moments):
    """Go to moments and step from each; compare the pictures after the steps."""
    for moment, step in zip(moments, itertools.cycle((1, 1, -1))):
        tab.panes.timeline.moment_requested.emit(moment % (tab.player.end + 1))
        getattr(tab.panes, PICTURES[kind][0]).grab()
        for _ in range(2):
            tab.player.step(step)
            getattr(tab.panes, PICTURES[kind][0]).grab()
        compare_picture(qtbot, tab, kind)


@pytest.mark.parametrize(
    ("pattern", "variant", "params", "kinds"),
    [
        ("scan", "brent-kung", {}, ("Flow", "Arrays")),
        ("sort", "bitonic", {"n": 16}, ("Variables",)),
        ("matmul", "tiled", {"n": 4}, ("Arrays",)),
        ("nbody", "tiled", {"bodies": 8}, ("Arrays",)),
        ("sort", "quicksort", {"n": 8}, ("Launches",)),
    ],
)
def test_a_picture_does_not_depend_on_earlier_moments(qtbot, open_tab, pattern, variant, params, kinds):
    tab = open_tab(pattern, variant, **params)
    window, end = tab.window(), tab.player.end
    for kind in kinds:
        tab.panes.kinds.choose(kind)
        compare_at_moments(qtbot, tab, kind, (end, end // 3))
        window.appearance.toggle_theme()
        compare_at_moments(qtbot, tab, kind, (end // 3,))
        window.resize(window.width() - 90, window.height() - 40)
        compare_at_moments(qtbot, tab, kind, (end // 2,))
        qtbot.keyClick(tab, Qt.Key.Key_Right, SHIFT)
        compare_picture(qtbot, tab, kind)


def test_a_zoomed_dataflow_does_not_depend_on_earlier_moments(qtbot, open_tab):
    tab = open_tab("sort", "bitonic", n=16)
    tab.panes.kinds.choose("Flow")
    # Cells with text, and cells without.
    for zooms, share in (("++", 3), ("−" * 8, 2)):
        tab.player.go_to(tab.player.end // share)
        tab.panes.flow.fit()
        for each in zooms:
            tab.panes.zoom_buttons[each].click()
        compare_at_moments(qtbot, tab, "Flow", (tab.player.end // share,))
    snapshot = tab.snapshot(tab.player.moment)
    tab.panes.lanes.grid.thread_clicked.emit(snapshot.block, snapshot.thread)
    compare_picture(qtbot, tab, "Flow")


def change_repeatedly(qtbot, tab):
    """Yield after each of many changes that may invalidate a cache."""
    window, player, form, end = tab.window(), tab.player, tab.settings.form, tab.player.end
    for moment in (end // 2, end // 2 - 1, end):
        player.go_to(moment)
        yield
    window.appearance.toggle_theme()
    yield
    player.step(1)
    player.step(1)
    yield
    snapshot = tab.snapshot(player.moment)
    tab.panes.lanes.grid.thread_clicked.emit(snapshot.block, snapshot.thread)
    yield
    player.go_to_border(1)
    yield
    tab.clear_selection()
    yield
    window.resize(window.width() - 60, window.height() - 30)
    yield
    player.go_to_border(-1)
    yield
    window.appearance.set_text_size("large")
    yield
    player.go_to(end * 2 // 3)
    yield
    window.appearance.set_text_size("normal")
    window.appearance.toggle_theme()
    yield
    window.resize(window.width() + 60, window.height() + 30)
    yield
    # The same shapes with other values, then other shapes, then the initial ones.
    tab.settings.new_input_button.click()
    wait_for_recording(qtbot, tab)
    yield
    n = form.values["n"]
    for changed in (2 * n, n):
        form.change_values(n=changed)
        wait_for_recording(qtbot, tab)
        player.go_to(player.end // 2)
        yield
    names = [each.name for each in window.bench.pattern.variants if not tab.steppable.name.endswith(each.name)]
    window.choose_variant(names[0])
    wait_for_recording(qtbot, tab)
    player.go_to(player.end // 2)
    yield
    player.go_to_end(last=True)
    yield


@pytest.mark.parametrize(
    ("pattern", "variant", "kind"),
    [
        ("scan", "brent-kung", "Flow"),
        ("reduction", "atomic", "Arrays"),
        ("scan", "brent-kung", "Variables"),
        pytest.param("reduction", "atomic", "Flow", marks=pytest.mark.sweep),
        pytest.param("scan", "brent-kung", "Arrays", marks=pytest.mark.sweep),
        pytest.param("reduction", "atomic", "Variables", marks=pytest.mark.sweep),
    ],
)
def test_no_change_leaves_an_outdated_picture(qtbot, open_tab, pattern, variant, kind):
    tab = open_tab(pattern, variant)
    tab.panes.kinds.choose(kind)
    for _ in change_repeatedly(qtbot, tab):
        compare_picture(qtbot, tab, kind)
