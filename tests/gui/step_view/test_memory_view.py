from __future__ import annotations

import numpy as np
import pytest
from PyQt6.QtCore import QPoint, Qt
from PyQt6.QtGui import QFontMetrics

from gui.step_view.memory_view import MemoryView
from tests.gui.step_view.conftest import shown


@pytest.mark.parametrize(("pattern", "variant"), [("scan", "brent-kung"), ("reduction", "interleaved")])
def test_a_picture_that_went_through_time_is_that_of_somebody_who_jumped_there(qtbot, stepping, pattern, variant):
    tab = stepping(pattern, variant).page.step
    tab.kinds.choose("Arrays")
    rng = np.random.default_rng(1)
    moments = [0, *range(1, tab.player.end, 7), tab.player.end, *rng.integers(0, tab.player.end, 12).tolist()]
    for moment in moments:
        tab.player.go(moment)
        tab.memory.grab()
    fresh = MemoryView()
    qtbot.addWidget(fresh)
    fresh.hidden_too = True
    fresh.resize(tab.memory.size())
    fresh.open(tab.models)
    for moment in (moments[-1], tab.player.end, 0):
        tab.player.go(moment)
        fresh.show_moment(moment, tab.instant(moment).block, None)
        assert tab.memory.grab().toImage() == fresh.grab().toImage()


def test_a_click_follows_the_thread_that_wrote(qtbot, stepping):
    tab = stepping("scan", "brent-kung").page.step
    tab.kinds.choose("Arrays")
    shown(qtbot, tab)
    while not any(touch.writes for touch in tab.memory.touches):
        tab.player.step(1)
    writing = tab.player.moment
    touch = next(t for t in tab.memory.touches if t.writes)
    panel = next(p for p in tab.memory.panels if p.number == touch.number)
    cell, places = tab.memory._arranged()
    x, y = places[tab.memory.panels.index(panel)]
    row, column = divmod(int(touch.elements[0]) - panel.first, panel.shape[1])
    at = (x + (column + 0.5) * cell, y + tab.memory._title_height() + (row + 0.5) * cell)
    qtbot.mouseClick(tab.memory, Qt.MouseButton.LeftButton, pos=QPoint(round(at[0]), round(at[1])))
    assert tab.player.moment == writing
    assert tab.followed == (int(touch.blocks[0]), int(touch.threads[0]))


def test_titles_stand_beside_each_other_where_cells_are_small(qtbot, stepping):
    tab = stepping("nbody", "naive").page.step
    view = MemoryView()
    qtbot.addWidget(view)
    view.hidden_too = True
    view.resize(700, 180)
    view.open(tab.models)
    view.show_moment(5, tab.instant(5).block, None)
    cell, places = view._arranged()
    assert cell < 12
    assert len({y for _, y in places}) == 1
    measure = QFontMetrics(view._title_font()).horizontalAdvance
    for panel, (x, _), (following, _) in zip(view.panels, places, places[1:], strict=False):
        assert x + measure(panel.title) < following


def test_a_shorter_recording_opens_where_a_longer_one_was_left(qtbot, stepping):
    tab = stepping("scan", "brent-kung", n=16).page.step
    long = tab.models
    tab.settings.form.change(n=1)
    shown(qtbot, tab)
    view = MemoryView()
    qtbot.addWidget(view)
    view.open(long)
    view.show_moment(long.recording.moments, 0, None)
    assert tab.models.recording.moments < long.recording.moments
    view.open(tab.models)
    view.show()
    assert view.panels


def test_constants_of_other_kernels_are_left_out(stepping):
    tab = stepping("convolution", "tiled").page.step
    tab.player.go(tab.player.end)
    names = {panel.title.split()[0] for panel in tab.memory.panels}
    assert names == {"image", "out", "FILTER", "tile"}
    assert not tab.models.several_blocks, "one channel of a few pixels"
