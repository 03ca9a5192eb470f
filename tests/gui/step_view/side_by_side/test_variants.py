"""Two variants side by side: the same input, one time line, lanes and counts beside each other."""

from __future__ import annotations

import itertools

import pytest
from PyQt6.QtCore import QPoint, Qt
from PyQt6.QtWidgets import QApplication

from gui.painting.theme import FONT_SIZES
from gui.step_view.side_by_side.variants import BY_BARRIER, BY_PHASE
from tests.gui.step_view.conftest import wait_for_recording

PAIRS = (
    ("scan", "kogge-stone", "brent-kung"),
    ("reduction", "neighbored", "interleaved"),
    ("scan", "brent-kung", "brent-kung-padded"),
    ("scan", "naive", "kogge-stone"),
)

FIRST_TIER = ((1024, "normal"), (1024, "lecture hall"), (1280, "large"), (1920, "lecture hall"))
"""Widths of windows, with sizes of text."""


@pytest.fixture
def open_side_by_side(qtbot, open_tab):
    def open_at(pattern="scan", variant="kogge-stone", other="brent-kung", **params):
        tab = open_tab(pattern, variant, **params)
        show_side_by_side(qtbot, tab, other)
        return tab

    return open_at


@pytest.fixture
def window(qtbot, open_step_tab):
    """The whole window, with two variants side by side."""
    made = open_step_tab("scan", "kogge-stone")
    show_side_by_side(qtbot, made.page.step, "brent-kung")
    return made


def show_side_by_side(qtbot, tab, other):
    tab.panes.kinds.choose("Side by side")
    qtbot.waitUntil(lambda: tab.variants_view.models[1] is not None)
    select_variant(qtbot, tab, other)


def select_variant(qtbot, tab, other):
    before = tab.variants_view.models[1]
    tab.variants_view.select_variant(other)
    qtbot.waitUntil(lambda: tab.variants_view.models[1] not in (None, before) or before is None)


@pytest.mark.parametrize(("pattern", "variant", "other"), PAIRS)
def test_both_have_the_same_input_and_come_to_the_same_end(qtbot, open_side_by_side, pattern, variant, other):
    tab = open_side_by_side(pattern, variant, other)
    one, two = tab.variants_view.models
    given = [models.layout.rows[0].value.tolist() for models in (one, two)]
    assert given[0] == given[1]
    tab.player.go_to_end(last=True)
    assert [side.moment for side in tab.variants_view.sides] == [models.recording.event_count for models in (one, two)]
    kernels = [models.recording.launches[0].trace.kernel for models in (one, two)]
    assert kernels[0] != kernels[1]
    for side, models in zip(tab.variants_view.sides, (one, two), strict=True):
        assert side.flow.viewport.layout is models.layout
        assert f"step {side.moment} of {models.recording.event_count}" in side.title._full_text


def test_they_load_and_write_together_by_phase(qtbot, open_side_by_side):
    tab = open_side_by_side()
    one, two = tab.variants_view.models
    for name in ("load", "write"):
        mine, theirs = (
            next(each for each in models.data.phases.intervals if each.name == name) for models in (one, two)
        )
        for here, there in ((mine.first, theirs.first), (mine.last, theirs.last)):
            tab.player.go_to(here)
            assert tab.variants_view.sides[1].moment == there
    seen = []
    for moment in range(tab.player.end + 1):
        tab.player.go_to(moment)
        seen.append(tab.variants_view.sides[1].moment)
    assert seen == sorted(seen)
    assert (seen[0], seen[-1]) == (0, two.recording.event_count)


def test_they_pass_barriers_together_by_barrier(qtbot, open_side_by_side):
    tab = open_side_by_side()
    tab.variants_view.alignment_kinds.choose(BY_BARRIER)
    one, two = tab.variants_view.models
    borders = list(zip(*([s.first for s in models.data.segments][1:] for models in (one, two)), strict=False))
    assert len(borders) >= 4
    for here, there in borders:
        tab.player.go_to(here)
        assert tab.variants_view.sides[1].moment == there
    tab.variants_view.alignment_kinds.choose(BY_PHASE)
    assert tab.variants_view.sides[1].moment != borders[-1][1]


def test_counts_stand_beside_each_other_and_the_lesser_stands_out(qtbot, open_side_by_side):
    tab = open_side_by_side()
    tab.player.go_to_end(last=True)
    one, two = (models.data.tally.counts_at(models.recording.event_count) for models in tab.variants_view.models)
    cells = tab.variants_view.counts.cells
    for place, counts in enumerate((one, two)):
        assert cells[place, "operations"]._full_text == f"{counts.operations} / {counts.operations}"
        assert cells[place, "steps"]._full_text == f"{counts.steps} / {counts.steps}"
    # Kogge and Stone need fewer steps, Brent and Kung less work.
    assert [cells[place, "steps"].property("tone") for place in (0, 1)] == ["best", ""]
    assert [cells[place, "operations"].property("tone") for place in (0, 1)] == ["", "best"]
    tab.player.go_to(0)
    assert cells[0, "operations"]._full_text == f"0 / {one.operations}"


def test_padding_has_fewer_conflicts_and_banks_show_it(qtbot, open_side_by_side):
    tab = open_side_by_side("scan", "brent-kung", "brent-kung-padded", n=256, block="128")
    conflicts = [
        models.data.tally.counts_at(models.recording.event_count).bank_conflicts for models in tab.variants_view.models
    ]
    assert conflicts[0] > conflicts[1]
    assert tab.variants_view.counts.cells[1, "conflicts"].property("tone") == "best"
    most = [0, 0]
    for moment in range(tab.player.end + 1):
        tab.player.go_to(moment)
        for place, side in enumerate(tab.variants_view.sides):
            most[place] = max(most[place], int(side.banks.wavefronts.max()))
    assert most[0] > most[1]


def test_it_has_the_room_of_the_code_and_the_cards(qtbot, open_side_by_side):
    tab = open_side_by_side()
    assert tab.panes.right.isHidden()
    assert tab.variants_view.width() > 0.95 * tab.panes.width()
    tab.panes.kinds.choose("Flow")
    assert tab.panes.right.isVisible()


def test_another_recording_keeps_what_stands_beside_it(qtbot, open_side_by_side):
    tab = open_side_by_side()
    tab.settings.form.change_values(n=8)
    wait_for_recording(qtbot, tab)
    qtbot.waitUntil(lambda: tab.variants_view.models[1] is not None)
    assert tab.variants_view.other_variants.currentData() == "brent-kung"
    assert [models.layout.rows[0].value.size for models in tab.variants_view.models] == [8, 8]


def test_a_rung_begins_beside_the_one_that_it_improves_on(qtbot, open_tab):
    tab = open_tab("scan", "brent-kung-padded")
    tab.panes.kinds.choose("Side by side")
    qtbot.waitUntil(lambda: tab.variants_view.models[1] is not None)
    assert tab.variants_view.other_variants.currentData() == "brent-kung"
    names = [
        tab.variants_view.other_variants.itemData(place) for place in range(tab.variants_view.other_variants.count())
    ]
    assert "brent-kung-padded" not in names
    assert len(names) == len(set(names))


def test_what_cannot_be_recorded_beside_it_is_said(qtbot, open_side_by_side):
    from gpu.messages.events import Failure

    tab = open_side_by_side()
    tab.variants_view._show_failure(Failure("input", "A block has at most 1024 threads."))
    assert tab.variants_view.state._full_text == "A block has at most 1024 threads."
    tab.player.go_to(3)
    assert tab.variants_view.sides[0].moment == 3


def test_it_fills_a_lecture(qtbot, window):
    tab = window.page.step
    qtbot.keyClick(QApplication.focusWidget() or window, Qt.Key.Key_F11)
    window.showNormal()
    window.resize(1280, 720)
    qtbot.waitUntil(lambda: tab.variants_view.width() == 1280)
    qtbot.keyClick(QApplication.focusWidget() or window, Qt.Key.Key_End)
    assert all(side.flow.isVisible() for side in tab.variants_view.sides)
    window.lecturing.toggle()
    assert tab.panes.right.isHidden()


@pytest.mark.parametrize(
    ("size", "text"),
    [
        # The first tier has each size and each text, and the smallest window with the largest text.
        pytest.param(size, text, marks=() if (size[0], text) in FIRST_TIER else pytest.mark.sweep)
        for size, text in itertools.product([(1024, 700), (1280, 720), (1920, 1080)], FONT_SIZES)
    ],
)
def test_everything_stays_within_the_window(qtbot, window, size, text):
    tab = window.page.step
    window.appearance.set_text_size(text)
    window.resize(*size)
    qtbot.waitUntil(lambda: (window.width(), window.height()) == size)
    tab.player.go_to_end(last=True)
    parts = [tab.variants_view.other_variants, tab.variants_view.alignment_kinds, tab.variants_view.counts]
    for side in tab.variants_view.sides:
        parts += [side.title, side.flow, side.line, side.grid, side.banks, side.lane_states]
    QApplication.processEvents()
    boxes = [part.rect().translated(part.mapTo(tab.variants_view, QPoint(0, 0))) for part in parts if part.isVisible()]
    assert all(tab.variants_view.rect().contains(box) for box in boxes)
    assert not any(one.intersects(other) for one, other in itertools.combinations(boxes, 2))
    assert all(side.flow.height() >= 90 for side in tab.variants_view.sides)
    for side in tab.variants_view.sides:
        port = side.flow.viewport
        qtbot.waitUntil(lambda port=port, flow=side.flow: port.width == flow.width())
        assert port.sizes.label + port.layout.width(port.sizes) <= side.flow.width()
