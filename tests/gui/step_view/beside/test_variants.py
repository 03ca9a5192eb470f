"""Two variants side by side: the same input, one time line, lanes and counts beside each other."""

from __future__ import annotations

import itertools

import pytest
from PyQt6.QtCore import QPoint, Qt
from PyQt6.QtWidgets import QApplication

from gui.painting.theme import FONT_SIZES
from gui.step_view.beside.variants import BY_BARRIER, BY_PHASE
from tests.gui.step_view.conftest import shown

PAIRS = (
    ("scan", "kogge-stone", "brent-kung"),
    ("reduction", "neighbored", "interleaved"),
    ("scan", "brent-kung", "brent-kung-padded"),
    ("scan", "naive", "kogge-stone"),
)


@pytest.fixture
def beside(qtbot, stepping):
    def open_at(pattern="scan", variant="kogge-stone", other="brent-kung", **params):
        tab = stepping(pattern, variant, **params).page.step
        tab.panes.kinds.choose("Side by side")
        qtbot.waitUntil(lambda: tab.beside.models[1] is not None)
        show(qtbot, tab, other)
        return tab

    return open_at


def show(qtbot, tab, other):
    before = tab.beside.models[1]
    tab.beside.choose(other)
    qtbot.waitUntil(lambda: tab.beside.models[1] not in (None, before) or before is None)


@pytest.mark.parametrize(("pattern", "variant", "other"), PAIRS)
def test_both_have_the_same_input_and_come_to_the_same_end(qtbot, beside, pattern, variant, other):
    tab = beside(pattern, variant, other)
    one, two = tab.beside.models
    given = [models.layout.rows[0].value.tolist() for models in (one, two)]
    assert given[0] == given[1]
    tab.player.to_end(last=True)
    assert [side.moment for side in tab.beside.sides] == [models.recording.moments for models in (one, two)]
    kernels = [models.recording.launches[0].trace.kernel for models in (one, two)]
    assert kernels[0] != kernels[1]
    for side, models in zip(tab.beside.sides, (one, two), strict=True):
        assert side.flow.viewport.layout is models.layout
        assert f"step {side.moment} of {models.recording.moments}" in side.title._whole


def test_they_load_and_write_together_by_phase(qtbot, beside):
    tab = beside()
    one, two = tab.beside.models
    for name in ("load", "write"):
        mine, theirs = (next(each for each in models.phases.stretches if each.name == name) for models in (one, two))
        for here, there in ((mine.first, theirs.first), (mine.last, theirs.last)):
            tab.player.go(here)
            assert tab.beside.sides[1].moment == there
    seen = []
    for moment in range(tab.player.end + 1):
        tab.player.go(moment)
        seen.append(tab.beside.sides[1].moment)
    assert seen == sorted(seen)
    assert (seen[0], seen[-1]) == (0, two.recording.moments)


def test_they_pass_barriers_together_by_barrier(qtbot, beside):
    tab = beside()
    tab.beside.align.choose(BY_BARRIER)
    one, two = tab.beside.models
    borders = list(zip(*([s.first for s in models.segments][1:] for models in (one, two)), strict=False))
    assert len(borders) >= 4
    for here, there in borders:
        tab.player.go(here)
        assert tab.beside.sides[1].moment == there
    tab.beside.align.choose(BY_PHASE)
    assert tab.beside.sides[1].moment != borders[-1][1]


def test_counts_stand_beside_each_other_and_the_lesser_stands_out(qtbot, beside):
    tab = beside()
    tab.player.to_end(last=True)
    one, two = (models.tally.at(models.recording.moments) for models in tab.beside.models)
    cells = tab.beside.counts.cells
    for place, counts in enumerate((one, two)):
        assert cells[place, "operations"]._whole == f"{counts.operations} / {counts.operations}"
        assert cells[place, "steps"]._whole == f"{counts.steps} / {counts.steps}"
    # Kogge and Stone need fewer steps, Brent and Kung less work.
    assert [cells[place, "steps"].property("tone") for place in (0, 1)] == ["best", ""]
    assert [cells[place, "operations"].property("tone") for place in (0, 1)] == ["", "best"]
    tab.player.go(0)
    assert cells[0, "operations"]._whole == f"0 / {one.operations}"


def test_padding_has_fewer_conflicts_and_banks_show_it(qtbot, beside):
    tab = beside("scan", "brent-kung", "brent-kung-padded", n=256, block="128")
    conflicts = [models.tally.at(models.recording.moments).bank_conflicts for models in tab.beside.models]
    assert conflicts[0] > conflicts[1]
    assert tab.beside.counts.cells[1, "conflicts"].property("tone") == "best"
    most = [0, 0]
    for moment in range(tab.player.end + 1):
        tab.player.go(moment)
        for place, side in enumerate(tab.beside.sides):
            most[place] = max(most[place], int(side.banks.threads.max()))
    assert most[0] > most[1]


def test_it_has_the_room_of_the_code_and_the_cards(qtbot, beside):
    tab = beside()
    assert tab.panes.right.isHidden()
    assert tab.beside.width() > 0.95 * tab.panes.width()
    tab.panes.kinds.choose("Flow")
    assert tab.panes.right.isVisible()


def test_another_recording_keeps_what_stands_beside_it(qtbot, beside):
    tab = beside()
    tab.settings.form.change(n=8)
    shown(qtbot, tab)
    qtbot.waitUntil(lambda: tab.beside.models[1] is not None)
    assert tab.beside.other.currentData() == "brent-kung"
    assert [models.layout.rows[0].value.size for models in tab.beside.models] == [8, 8]


def test_a_rung_begins_beside_the_one_that_it_improves_on(qtbot, stepping):
    tab = stepping("scan", "brent-kung-padded").page.step
    tab.panes.kinds.choose("Side by side")
    qtbot.waitUntil(lambda: tab.beside.models[1] is not None)
    assert tab.beside.other.currentData() == "brent-kung"
    names = [tab.beside.other.itemData(place) for place in range(tab.beside.other.count())]
    assert "brent-kung-padded" not in names
    assert len(names) == len(set(names))


def test_what_cannot_be_recorded_beside_it_is_said(qtbot, beside):
    from gpu.messages.requests import Failure

    tab = beside()
    tab.beside._fail(Failure("input", "A block has at most 1024 threads."))
    assert tab.beside.state._whole == "A block has at most 1024 threads."
    tab.player.go(3)
    assert tab.beside.sides[0].moment == 3


def test_it_fills_a_lecture(qtbot, beside):
    tab = beside()
    window = tab.window()
    qtbot.keyClick(QApplication.focusWidget() or window, Qt.Key.Key_F11)
    window.showNormal()
    window.resize(1280, 720)
    qtbot.waitUntil(lambda: tab.beside.width() == 1280)
    qtbot.keyClick(QApplication.focusWidget() or window, Qt.Key.Key_End)
    assert all(side.flow.isVisible() for side in tab.beside.sides)
    window.lecturing.toggle()
    assert tab.panes.right.isHidden()


@pytest.mark.parametrize("size", [(1024, 700), (1280, 720), (1920, 1080)])
@pytest.mark.parametrize("text", list(FONT_SIZES))
def test_everything_stays_within_the_window(qtbot, beside, size, text):
    tab = beside()
    window = tab.window()
    window.appearance.set_text_size(text)
    window.resize(*size)
    qtbot.waitUntil(lambda: (window.width(), window.height()) == size)
    tab.player.to_end(last=True)
    parts = [tab.beside.other, tab.beside.align, tab.beside.counts]
    for side in tab.beside.sides:
        parts += [side.title, side.flow, side.line, side.grid, side.banks, side.words]
    QApplication.processEvents()
    boxes = [part.rect().translated(part.mapTo(tab.beside, QPoint(0, 0))) for part in parts if part.isVisible()]
    assert all(tab.beside.rect().contains(box) for box in boxes)
    assert not any(one.intersects(other) for one, other in itertools.combinations(boxes, 2))
    assert all(side.flow.height() >= 90 for side in tab.beside.sides)
    for side in tab.beside.sides:
        port = side.flow.viewport
        qtbot.waitUntil(lambda port=port, flow=side.flow: port.width == flow.width())
        assert port.sizes.label + port.layout.width(port.sizes) <= side.flow.width()
