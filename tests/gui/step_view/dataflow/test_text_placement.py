"""Fit shows the whole figure, and what was computed keeps its text."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from PyQt6.QtCore import QRectF

from gui.painting.theme import FONT_SIZES, Look, look, set_look
from gui.step_view.dataflow.layout import MIN_FRAMED_WIDTH, DataflowLayout
from gui.step_view.dataflow.text_placement import FreeSpace, RowValues
from gui.step_view.dataflow.view import FlowView
from tests.gui.step_view.conftest import wait_for_recording
from tests.gui.step_view.fake_dataflow import FakeDataflow


def layout_rows(view):
    return view.viewport.layout.rows


def visible_texts(view):
    """Return the texts of each row that are written when all has been computed, and what warps made together."""
    painter = view.canvas.flow
    found = []
    for number, row in enumerate(layout_rows(view)):
        plan = painter.text_placement(number)
        if plan is None:
            found.append(
                ([painter.row_texts(number)[cell] for cell in np.flatnonzero(row.computed | ~row.computed.any())], [])
            )
        else:
            found.append((list(plan.texts.values()), [text for _, text, _ in plan.summaries]))
    return found


@pytest.fixture
def open_scan(open_tab, qtbot):
    tabs = []

    def open_at(variant, n, block, size):
        if not tabs:
            tabs.append(open_tab("scan", variant, n=n, block=str(block)))
        tab = tabs[0]
        window, flow = tab.window(), tab.panes.flow
        window.choose_variant(variant)
        tab.settings.form.change_values(n=n, block=str(block))
        wait_for_recording(qtbot, tab)
        window.resize(*size)
        qtbot.waitUntil(lambda: (window.width(), window.height()) == size and flow.viewport.width == flow.width())
        qtbot.keyClick(flow, "F")
        return tab

    return open_at


def test_fit_shows_all_columns_and_rows(open_scan):
    for n, size in product((32, 64, 256), ((1024, 700), (1280, 720))):
        flow = open_scan("kogge-stone", n, n, size).panes.flow
        port = flow.viewport
        assert port.layout.columns == n
        assert port.sizes.label + port.layout.width(port.sizes) <= flow.width()
        assert port.layout.height(port.sizes) <= flow.height()
        flow.show_moment(10**6)
        assert (port.offset.x(), port.offset.y()) == (0, 0)


@pytest.mark.parametrize("variant", ["brent-kung", "kogge-stone"])
def test_no_row_of_an_overview_is_an_empty_bar(open_scan, variant):
    for n, block, size in ((32, 32, (1280, 720)), (64, 32, (1280, 720)), (256, 128, (1920, 1080))):
        tab = open_scan(variant, n, block if variant == "brent-kung" else 2 * block, size)
        _check_rows(tab.panes.flow, variant, n)


def _check_rows(flow, variant, n):
    for (texts, together), row in zip(visible_texts(flow), layout_rows(flow), strict=True):
        made = np.flatnonzero(row.computed)
        # What was computed is told by value, or else by warp.
        assert together or len([text for text in texts if text]) >= max(1, made.size / 2), row.label
        if row.computed.any() and not together and flow.viewport.sizes.column >= MIN_FRAMED_WIDTH:
            assert len([text for text in texts if text]) == made.size, "no cell between others is blank"
        if 0 < made.size <= 8:
            assert texts == [str(each) for each in row.value[made]]
    sums = [row for row in layout_rows(flow) if row.computed.any()]
    if variant == "kogge-stone" and n >= 64:
        first = next(
            plan
            for plan in map(flow.canvas.flow.text_placement, range(len(layout_rows(flow))))
            if plan and plan.summaries
        )
        made = np.flatnonzero(sums[0].computed)
        if flow.viewport.sizes.column >= MIN_FRAMED_WIDTH:
            ends = (
                flow.canvas.flow.cell_rect(1, int(made[0])).left(),
                flow.canvas.flow.cell_rect(1, int(made[-1])).right(),
            )
            assert (first.summaries[0][0].left(), first.summaries[-1][0].right()) == pytest.approx(ends, abs=2)
        warps = sorted(set((sums[0].thread[sums[0].computed] // 32).tolist()))
        assert [text for _, text, _ in first.summaries] == [
            f"warp {warp}: {np.count_nonzero(sums[0].thread[sums[0].computed] // 32 == warp)} × +" for warp in warps
        ]


def test_boxes_do_not_lie_upon_each_other_and_stay_within(open_scan):
    flow = open_scan("brent-kung", 64, 32, (1280, 720)).panes.flow
    for number in range(len(layout_rows(flow))):
        plan = flow.canvas.flow.text_placement(number)
        boxes = list(plan.boxes.values()) if plan else []
        assert not any(one.adjusted(1, 0, -1, 0).intersects(other) for one, other in combinations(boxes, 2))
        width = flow.viewport.layout.width(flow.viewport.sizes) + 1
        assert all(box.left() >= 0 and box.right() <= width for box in boxes)


def test_what_was_just_computed_and_its_inputs_are_written(open_scan):
    """Where the row tells of its warp only, an event of one cell is told by its values all the same."""
    flow = open_scan("brent-kung", 256, 128, (1280, 720)).panes.flow
    painter = flow.canvas.flow
    number = next(at for at, row in enumerate(layout_rows(flow)) if np.count_nonzero(row.computed) == 1 and row.label)
    cells = np.flatnonzero(layout_rows(flow)[number].computed)
    plans = painter._highlight_placements(number, cells)
    assert plans[0][2].texts == {int(cells[0]): str(layout_rows(flow)[number].value[cells[0]])}
    edges = flow.viewport.layout.edges[number]
    inputs = {(int(row), int(column)) for row, column in zip(edges.row, edges.column, strict=True)}
    told = {(at, int(layout_rows(flow)[at].column[cell])) for at, _, plan in plans[1:] for cell in plan.texts}
    assert told == inputs
    area = painter.highlight_area(number, cells)
    assert all(area.contains(box) for _, _, plan in plans for box in plan.boxes.values())


def test_a_warps_summary_stays_at_its_place_when_other_cells_are_highlighted_too(open_scan):
    flow = open_scan("brent-kung", 256, 128, (1280, 720)).panes.flow
    painter, rows = flow.canvas.flow, layout_rows(flow)
    number = next(
        number
        for number, row in enumerate(rows)
        if not row.computed.all() and (plan := painter.text_placement(number)) is not None and plan.summaries
    )
    highlighted = painter._highlight_placements(number, np.arange(rows[number].computed.size))[0][2]
    assert highlighted.summaries == painter.text_placement(number).summaries


def test_bars_are_as_high_as_values_are_large(qtbot):
    layout = DataflowLayout(FakeDataflow([0, 5, 10, -10]))
    assert layout.levels(0).tolist() == [0.5, 0.75, 1.0, 0.0]
    odd = DataflowLayout(FakeDataflow(np.array([np.nan, np.inf, 1.0, 2.0])))
    assert odd.levels(0).tolist() == [1.0, 1.0, 0.0, 1.0]
    assert DataflowLayout(FakeDataflow([3, 3])).levels(0).tolist() == [1.0, 1.0]
    view = FlowView()
    qtbot.addWidget(view)
    view.resize(700, 400)
    view.open(DataflowLayout(FakeDataflow(np.arange(256))))
    view.show()
    painter = view.canvas.flow
    painter.text_placement = lambda number: None
    qtbot.waitUntil(lambda: not view.grab().isNull() and view.complete)
    image = view.grab().toImage()
    origin, sizes = view.viewport.origin(), view.viewport.sizes
    top = round(origin.y() + sizes.top(0)) + 3
    ground = image.pixelColor(2, 2)
    left, right = (image.pixelColor(round(origin.x() + share * sizes.column * 256), top) for share in (0.1, 0.97))
    assert left == ground != right


def test_room_is_taken_once():
    room = FreeSpace(0, 100)
    assert room.reserve(50, 20) == 40
    assert room.reserve(55, 20) is None
    assert room.reserve(2, 20) == 0
    assert room.reserve(99, 20) == 80
    assert room.reserve(50, 101) is None


def test_nothing_made_nothing_written():
    values = RowValues(None, np.zeros(0, int), [], lambda cell: QRectF(), (0, 1), np.zeros(0), str, float)
    assert values.place((9,), 9).px == 0


def test_what_was_made_is_written_in_larger_print_than_its_cell_holds(open_scan):
    """In 17 pixels three digits are small print; what was made reaches over its neighbors where all of it has room."""
    flow = open_scan("brent-kung", 32, 16, (1280, 720)).panes.flow
    painter = flow.canvas.flow
    for number, row in enumerate(layout_rows(flow)):
        made = np.count_nonzero(row.computed)
        plan = painter.text_placement(number)
        if 0 < made <= 4:
            assert plan is not None
            assert len(plan.boxes) == made
            assert plan.px >= look().small_px


@pytest.mark.parametrize(("width", "text"), [(500, "2e9"), (800, "2000000001"), (950, "2000000001")])
def test_a_large_result_has_all_digits_in_a_wide_column(qtbot, width, text):
    set_look(Look(look().theme, FONT_SIZES["lecture hall"]))
    view = FlowView()
    qtbot.addWidget(view)
    view.resize(width, 400)
    view.open(DataflowLayout(FakeDataflow([2 * 10**9, 1, 0, 0, 0, 0, 0, 0])))
    view.show()
    assert visible_texts(view)[1][0][0] == text
