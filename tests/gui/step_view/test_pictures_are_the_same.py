"""A picture that went through time, put together from what it kept, is that of one made for the moment alone."""

from __future__ import annotations

import itertools

import pytest
from PyQt6.QtCore import Qt

from gui.step_view.arrays.view import MemoryView
from gui.step_view.dataflow.layout import DataflowLayout
from gui.step_view.dataflow.view import FlowView
from gui.step_view.pictures.launches import LaunchesView
from gui.step_view.pictures.variables import VariablesView
from gui.step_view.time.timeline import Timeline

SHIFT = Qt.KeyboardModifier.ShiftModifier
ZOOMS = {"+": 1.25, "−": 1 / 1.25}


def fresh_flow(tab, zooms):
    made, models = FlowView(), tab.models
    _place(made, tab, tab.flow)
    made.open(DataflowLayout(models.layout.dataflow), models.warps, several_blocks=models.several_blocks)
    for each in zooms:
        made.zoom(ZOOMS[each])
    made.show_moment(tab.player.moment)
    made.follow_thread(tab.followed)
    made.viewport.offset = tab.flow.viewport.offset  # where it was scrolled to on its way
    return made


def fresh_memory(tab, zooms):
    made = MemoryView()
    _place(made, tab, tab.memory)
    made.open(tab.models)
    made.show_moment(tab.player.moment, tab.snapshot(tab.player.moment).block, tab.followed)
    return made


def fresh_variables(tab, zooms):
    made = VariablesView()
    _place(made, tab, tab.warp)
    made.show_warp(tab.warp.variables, tab.warp._active, tab.warp._warp)
    return made


def fresh_launches(tab, zooms):
    made = LaunchesView()
    _place(made, tab, tab.launches)
    made.open(tab.models.grids)
    made.show_moment(tab.player.moment)
    return made


def fresh_timeline(tab):
    made, models = Timeline(), tab.models
    _place(made, tab, tab.timeline)
    made.open(models.segments, tab.timeline.findings, [launch.trace.kernel for launch in models.recording.launches])
    made.show_moment(tab.player.moment)
    return made


def _place(made, tab, like):
    made.setParent(tab)
    made.resize(like.size())
    made.show()  # a hidden one is given its size again for each picture


PICTURES = {
    "Flow": ("flow", fresh_flow),
    "Arrays": ("memory", fresh_memory),
    "Variables": ("warp", fresh_variables),
    "Launches": ("launches", fresh_launches),
}


def whole(view):
    """Return a view's picture when nothing of it is left for the next frame."""
    for _ in range(500):
        image = view.grab().toImage()
        if getattr(view, "complete", True):
            return image
    pytest.fail("the picture is never finished")


def rest(qtbot, tab):
    """Let the picture come to rest, and all be prepared that is worked out ahead."""
    qtbot.waitUntil(lambda: not (tab.prefetcher.busy or tab.flow.gliding))


def check(qtbot, tab, kind, zooms=""):
    rest(qtbot, tab)
    name, make = PICTURES[kind]
    for seen, fresh in ((getattr(tab, name), make(tab, zooms)), (tab.timeline, fresh_timeline(tab))):
        assert whole(seen) == whole(fresh), f"{kind} at {tab.player.moment}"
        fresh.setParent(None)
        fresh.deleteLater()


def walk(qtbot, tab, kind, moments, zooms=""):
    """Go to moments with a few steps from each, as keys do; compare where each few end."""
    for moment, step in zip(moments, itertools.cycle((1, 1, -1))):
        tab.timeline.wanted.emit(moment % (tab.player.end + 1))
        getattr(tab, PICTURES[kind][0]).grab()
        for _ in range(2):
            tab.player.step(step)
            rest(qtbot, tab)
            getattr(tab, PICTURES[kind][0]).grab()
        check(qtbot, tab, kind, zooms)


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
def test_it_does_not_matter_how_a_moment_was_come_to(qtbot, stepping, pattern, variant, params, kinds):
    window = stepping(pattern, variant, **params)
    tab, end = window.page.step, window.page.step.player.end
    for kind in kinds:
        tab.kinds.choose(kind)
        walk(qtbot, tab, kind, (end, end // 3))
        window.appearance.toggle_theme()
        walk(qtbot, tab, kind, (end // 3,))
        window.resize(window.width() - 90, window.height() - 40)
        walk(qtbot, tab, kind, (end // 2,))
        qtbot.keyClick(tab, Qt.Key.Key_Right, SHIFT)
        check(qtbot, tab, kind)


def test_a_zoomed_dataflow_goes_through_time_too(qtbot, stepping):
    tab = stepping("sort", "bitonic", n=16).page.step
    tab.kinds.choose("Flow")
    # Cells that carry text, and those that are patches of color.
    for zooms, share in (("++", 3), ("−" * 8, 2)):
        tab.player.go(tab.player.end // share)
        tab.flow.fit()
        for each in zooms:
            tab.zooms[each].click()
        walk(qtbot, tab, "Flow", (tab.player.end // share,), zooms)
    told = tab.snapshot(tab.player.moment)
    tab.lanes.grid.thread_clicked.emit(told.block, told.thread)
    check(qtbot, tab, "Flow", zooms)
