from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from PyQt6.QtCore import QEvent, QPoint, QPointF, Qt
from PyQt6.QtGui import QColor, QFontMetricsF, QImage, QMouseEvent, QPainter, QWheelEvent
from PyQt6.QtWidgets import QApplication

from gui.painting.colors import warp_color
from gui.painting.theme import FONT_SIZES, Look, code_font, look, set_look
from gui.painting.values import format_values
from gui.step_view.dataflow.descriptions import describe_cell
from gui.step_view.dataflow.layout import DataflowLayout
from gui.step_view.dataflow.view import FlowView
from tests.gui.step_view.fake_dataflow import FakeDataflow

VALUES = [3, 1, 7, 0, 4, 1, 6, 3, 5, 2, 2, 8, 1, 0, 9, 4]


@pytest.fixture
def view(qtbot):
    made = FlowView()
    qtbot.addWidget(made)
    made.resize(800, 560)
    made.open(DataflowLayout(FakeDataflow(VALUES)))
    with qtbot.waitExposed(made):
        made.show()
    return made


def row_named(view, label):
    return next(number for number, row in enumerate(view.viewport.layout.rows) if row.label == label)


def cell_center(view, row, cell):
    center = view.canvas.flow.cell_rect(row, cell).center() + view.viewport.origin()
    return center.toPoint()


def color_at(view, point):
    return view.grab().toImage().pixelColor(point)


def test_the_fake_is_a_scan():
    assert FakeDataflow(VALUES).rows[-1].value.tolist() == np.cumsum(VALUES).tolist()


def test_lines_begin_at_the_last_row_that_shows_the_value():
    layout = DataflowLayout(FakeDataflow(VALUES))
    last = len(layout.rows) - 1
    edges = layout.edges[last]
    own = edges.row[edges.cell == 2]
    assert (own == last - 1).all()
    assert sorted(edges.column[edges.cell == 2].tolist()) == [1, 2]
    assert not layout.passing_targets


def rowless():
    layout = DataflowLayout(FakeDataflow(VALUES))
    layout.rows = layout.edges = layout.unchanged_edges = ()
    return layout


@pytest.mark.parametrize("layout", [lambda: None, rowless], ids=["no recording", "no operation on data"])
def test_where_there_is_nothing_to_see_keys_wheel_and_mouse_do_nothing(qtbot, view, layout):
    view.open(layout())
    for key in (Qt.Key.Key_Plus, Qt.Key.Key_Minus, Qt.Key.Key_F):
        qtbot.keyClick(view, key)
    middle = QPointF(view.rect().center())
    for kind, buttons, place in (
        (QEvent.Type.MouseButtonPress, Qt.MouseButton.LeftButton, middle),
        (QEvent.Type.MouseMove, Qt.MouseButton.LeftButton, middle + QPointF(40, 30)),
        (QEvent.Type.MouseButtonRelease, Qt.MouseButton.NoButton, middle + QPointF(40, 30)),
    ):
        button = Qt.MouseButton.LeftButton
        event = QMouseEvent(kind, place, view.mapToGlobal(place), button, buttons, Qt.KeyboardModifier.NoModifier)
        QApplication.sendEvent(view, event)
    view.show_moment(3)
    assert view.grab().toImage().pixelColor(3, 3) == QColor(look().theme.surface)
    assert view.current_row == -1


def test_the_future_is_empty_and_the_past_is_not(view):
    first, last = row_named(view, "up 1"), row_named(view, "up 8")
    view.show_moment(view.viewport.layout.rows[first].last + 1)
    assert view.viewport.layout.row_progress(first, view.moment) == 16
    assert view.viewport.layout.row_progress(last, view.moment) == -1
    view.show_moment(0)
    assert view.viewport.layout.row_progress(first, 0) == -1
    assert view.viewport.layout.row_progress(0, 0) == 16


def test_the_current_operation_is_as_bright_as_its_warp(qtbot, view):
    row = row_named(view, "up 2")
    view.show_moment(view.viewport.layout.rows[row].last + 1)
    qtbot.wait(400)
    assert view.current_row == row
    above = view.canvas.flow.circle_at(row, 3) + view.viewport.origin()
    seen = color_at(view, (above + QPointF(-6, 0)).toPoint())
    wanted = warp_color(look().theme, 0)
    assert abs(seen.red() - wanted.red()) + abs(seen.green() - wanted.green()) + abs(seen.blue() - wanted.blue()) < 40
    view.show_moment(0)
    qtbot.wait(400)
    assert color_at(view, (view.canvas.flow.circle_at(row, 3) + view.viewport.origin()).toPoint()) != seen


def test_a_click_on_an_element_lights_all_that_it_was_made_of(qtbot, view):
    row = row_named(view, "up 8")
    view.show_moment(view.viewport.layout.dataflow.moments)
    qtbot.wait(400)
    with qtbot.waitSignal(view.cell_clicked) as clicked:
        qtbot.mouseClick(view, Qt.MouseButton.LeftButton, pos=cell_center(view, row, 15))
    assert clicked.args == [row, 15]
    view.select((row, 15))
    assert sorted(view.marks.highlighted[0]) == list(range(16))
    made = [
        cell
        for row, cells in view.marks.highlighted.items()
        for cell in cells
        if view.viewport.layout.rows[row].computed[cell]
    ]
    assert len(made) == 15
    view.select(None)
    assert not view.marks.highlighted


def test_a_kept_value_leads_to_the_row_that_made_it(qtbot, view):
    made, kept = row_named(view, "up 1"), row_named(view, "up 4")
    view.show_moment(view.viewport.layout.dataflow.moments)
    qtbot.wait(400)
    view.select((kept, 1))
    assert 1 in view.marks.highlighted[made]
    assert sorted(view.marks.highlighted[0]) == [0, 1]


def test_a_click_on_an_operation_follows_its_thread(qtbot, view):
    row = row_named(view, "up 1")
    view.show_moment(view.viewport.layout.dataflow.moments)
    qtbot.wait(400)
    view.viewport.offset = QPointF(0, 0)
    point = (view.canvas.flow.circle_at(row, 5) + view.viewport.origin()).toPoint()
    with qtbot.waitSignal(view.thread_clicked) as clicked:
        qtbot.mouseClick(view, Qt.MouseButton.LeftButton, pos=point)
    assert clicked.args == [0, 2]


def test_nothing_of_the_future_can_be_clicked(qtbot, view):
    row = row_named(view, "up 4")
    view.show_moment(1)
    qtbot.wait(300)
    with qtbot.assertNotEmitted(view.cell_clicked), qtbot.waitSignal(view.cleared):
        qtbot.mouseClick(view, Qt.MouseButton.LeftButton, pos=cell_center(view, row, 7))


def test_words_say_who_made_a_value_from_what(view):
    row = row_named(view, "up 2")
    text = describe_cell(view.viewport.layout, (row, 3))
    assert text.splitlines() == ["s[3] = 11", "thread 0, line 67", "from s[1] = 4, s[3] = 7"]
    assert describe_cell(view.viewport.layout, (0, 2)) == "data[2] = 7"


def test_eight_elements_fill_a_large_panel(qtbot, view):
    view.resize(1200, 800)
    view.open(DataflowLayout(FakeDataflow(VALUES[:8])))
    viewport = view.viewport
    assert viewport.layout.width(viewport.sizes) > 0.9 * (1200 - viewport.sizes.label)
    assert viewport.layout.width(viewport.sizes) <= 1200 - viewport.sizes.label


def test_ctrl_and_wheel_zoom_where_the_pointer_is_and_f_fits(qtbot, view):
    before = view.viewport.sizes.column
    point = QPointF(600, 200)
    column = (point.x() - view.viewport.origin().x()) / before
    event = QWheelEvent(
        point, view.mapToGlobal(point), QPoint(), QPoint(0, 240), Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.ControlModifier, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(view, event)
    assert view.viewport.sizes.column > before
    assert abs((point.x() - view.viewport.origin().x()) / view.viewport.sizes.column - column) < 0.05
    qtbot.keyClick(view, Qt.Key.Key_F)
    assert view.viewport.sizes.column == before


def send_mouse_event(view, kind, x, y, buttons):
    point = QPointF(x, y)
    left = Qt.MouseButton.LeftButton
    changed = left if kind != QEvent.Type.MouseMove else Qt.MouseButton.NoButton
    held = left if buttons else Qt.MouseButton.NoButton
    event = QMouseEvent(kind, point, view.mapToGlobal(point), changed, held, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(view, event)


def test_dragging_moves_the_picture_and_clicks_nothing(qtbot, view):
    view.show_moment(view.viewport.layout.dataflow.moments)
    qtbot.wait(300)
    view.zoom(3)
    view.viewport.offset = QPointF(100, 0)
    with qtbot.assertNotEmitted(view.cell_clicked), qtbot.assertNotEmitted(view.cleared):
        send_mouse_event(view, QEvent.Type.MouseButtonPress, 500, 60, buttons=True)
        for x in range(490, 400, -10):
            send_mouse_event(view, QEvent.Type.MouseMove, x, 60, buttons=True)
        send_mouse_event(view, QEvent.Type.MouseButtonRelease, 410, 60, buttons=False)
    assert view.viewport.offset.x() == 190
    send_mouse_event(view, QEvent.Type.MouseMove, 10, 540, buttons=False)
    assert view.viewport.offset.x() == 190


@pytest.mark.parametrize("columns", [8, 64, 1024])
def test_a_frame_takes_less_than_a_60th_of_a_second(qtbot, columns):
    view = FlowView()
    qtbot.addWidget(view)
    view.resize(900, 480)
    flow = FakeDataflow(np.arange(columns) % 10)
    view.open(DataflowLayout(flow))
    with qtbot.waitExposed(view):
        view.show()

    def play():
        times = []
        for moment in range(flow.moments + 1):
            start = time.thread_time()
            view.show_moment(moment)
            view.repaint()
            times.append(time.thread_time() - start)
        return float(np.median(times)), float(np.quantile(times, 0.9))

    middle, most = min(play() for _ in range(4))
    assert middle < 1 / 60
    assert most < 2 / 60


def test_narrow_columns_still_show_who_worked(qtbot):
    view = FlowView()
    qtbot.addWidget(view)
    view.resize(900, 600)
    flow = FakeDataflow(np.arange(512))
    view.open(DataflowLayout(flow))
    with qtbot.waitExposed(view):
        view.show()
    view.show_moment(flow.moments)
    view.viewport.offset = QPointF(0, 0)
    qtbot.waitUntil(lambda: view.repaint() or view.complete)
    row = row_named(view, "up 1")
    image = view.grab().toImage()
    y = round(view.viewport.origin().y() + view.viewport.sizes.top(row) + view.viewport.sizes.cell / 2)
    shades = {image.pixelColor(x, y).name() for x in range(round(view.viewport.sizes.label) + 20, 880)}
    assert len(shades - {QColor(look().theme.surface).name()}) >= 4


def test_what_is_scrolled_is_legible_and_shows_what_an_operation_takes(qtbot):
    made = FlowView()
    qtbot.addWidget(made)
    made.resize(600, 400)
    made.open(DataflowLayout(FakeDataflow(range(32))))
    made.show()
    made.zoom(1.9)
    assert made.viewport.layout.width(made.viewport.sizes) > made.width(), "not all columns fit"
    assert QFontMetricsF(code_font(11)).horizontalAdvance("496") < made.viewport.sizes.column
    number = next(at for at, row in enumerate(made.viewport.layout.rows) if row.label == "up 16")
    made.show_moment(made.viewport.layout.rows[number].first + 1)
    qtbot.waitUntil(lambda: not made.viewport.gliding)
    for row, column in ((number, 31), (number - 1, 31), (number - 1, 15)):
        place = cell_center(made, row, column)
        assert made.viewport.sizes.label < place.x() < made.width()


def test_the_message_without_rows_fits_into_a_narrow_view(qtbot):
    view = FlowView()
    qtbot.addWidget(view)
    view.resize(220, 300)
    empty = FakeDataflow(VALUES)
    empty.rows = ()
    empty.recording.failure = "out of bounds"
    view.open(DataflowLayout(empty))
    with qtbot.waitExposed(view):
        view.show()
    image = view.grab().toImage()
    surface = QColor(look().theme.surface).name()
    inked = [x for x in range(image.width()) if any(
        image.pixelColor(x, y).name() != surface for y in range(100, 200)
    )]  # fmt: skip
    assert inked
    assert inked[0] >= 10
    assert inked[-1] < image.width() - 10


def test_numbers_of_which_too_little_would_be_left_are_left_out():
    assert format_values(np.array([-148.25, 7.0, 12.5]), 4) == ["-148", "7", "12.5"]
    assert format_values(np.array([-14825.0, 7.0]), 4) == ["", "7"]
    assert format_values(np.array([-14825.0]), 6) == ["-14825"]
    assert format_values(np.array([2.0**24, -(2.0**31), 16777217.5, 1e12, 2.0**31]), 11) == [
        "16777216", "-2147483648", "1.677722e7", "1e12", "2147483648"]  # fmt: skip
    assert format_values(np.array([2.0**24]), 7) == ["1.678e7"]


def test_lines_pass_below_the_cells_between_their_ends(qtbot, open_tab):
    tab = open_tab("reduction", "atomic")
    tab.panes.kinds.choose("Flow")
    flow, rows = tab.panes.flow, tab.panes.flow.viewport.layout.rows
    last = len(rows) - 2  # the first block's sum; the second one's turn comes below it
    above = int(flow.viewport.layout.edges[last].row.min())
    assert above < last - 2, "a line over several rows"

    # What is read is framed.
    framed = {int(each) for number in (last - 1, last, last + 1) for each in flow.viewport.layout.edges[number].row} | {
        last - 1
    }

    def cells():
        image, origin = flow.grab().toImage(), flow.viewport.origin()
        boxes = {
            (row, cell): flow.canvas.flow.cell_rect(row, cell).translated(origin).toRect().adjusted(2, 2, -2, -2)
            for row in set(range(above + 1, last)) - framed
            for cell in np.flatnonzero(rows[row].block == 0).tolist()
        }
        return {place: image.copy(box) for place, box in boxes.items()}

    def painted():
        flow.grab()
        return not flow.viewport.gliding and not flow._repaint_timer.isActive()

    tab.player.go_to(rows[last].first)
    qtbot.waitUntil(painted)
    before = cells()
    tab.player.go_to_end(last=True)
    qtbot.waitUntil(painted)
    after = cells()
    assert len(after) > 15
    assert [place for place in after if after[place] != before[place]] == []


@pytest.fixture
def enlarged(view):
    before = look()
    set_look(Look(before.theme, FONT_SIZES["lecture hall"]))
    QApplication.sendEvent(view, QEvent(QEvent.Type.StyleChange))
    yield view
    set_look(before)


def value_font(view, row):
    """Return the font size of a row's values, in pixels, and whether all of them are in their cells."""
    flow = view.canvas.flow
    return flow._lettering(row, bold=True).font.pixelSize(), flow.text_placement(row) is None and all(
        flow.row_texts(row)
    )


@pytest.mark.parametrize("width", [420, 700, 1500])
def test_values_grow_with_the_text_and_columns_beyond_the_view_are_scrolled_to(enlarged, width):
    view = enlarged
    view.resize(width, 400)
    row = row_named(view, "up 8")
    assert value_font(view, row)[1]
    size, is_inside = value_font(view, row)
    assert size >= look().small_px
    assert is_inside
    view.show_moment(view.viewport.layout.rows[row].last + 1)
    while view.viewport.gliding:
        view.viewport.glide()
    # The up-sweep's last operation is in the last column.
    box = view.canvas.flow.cell_rect(row, 15).translated(view.viewport.origin())
    assert view.viewport.sizes.label <= box.left()
    assert box.right() <= width
    visible = view.viewport.sizes.label + view.viewport.layout.width(view.viewport.sizes) <= width
    assert visible == (width > 420)


def test_fit_all_shows_all_columns_at_any_text_size(qtbot, enlarged):
    view = enlarged
    view.resize(420, 400)
    sizes = view.viewport.sizes
    assert sizes.label + view.viewport.layout.width(sizes) > 420
    qtbot.keyClick(view, Qt.Key.Key_F)
    view.resize(430, 400)
    sizes = view.viewport.sizes
    assert sizes.label + view.viewport.layout.width(sizes) <= 430
    # The next recording is readable again.
    view.open(DataflowLayout(FakeDataflow(VALUES)))
    sizes = view.viewport.sizes
    assert sizes.label + view.viewport.layout.width(sizes) > 430


def test_a_film_and_an_overview_of_many_columns_fit_at_any_text_size(enlarged, qtbot):
    film = FlowView(complete_frames=True)
    qtbot.addWidget(film)
    for view, values in ((film, VALUES), (enlarged, [123] * 256)):
        view.resize(420, 400)
        view.open(DataflowLayout(FakeDataflow(values)))
        sizes = view.viewport.sizes
        assert sizes.label + view.viewport.layout.width(sizes) <= 420


@pytest.mark.parametrize("columns", [16, 64, 256, 1024])
def test_many_columns_have_indices_where_there_is_room(qtbot, view, columns):
    view.open(DataflowLayout(FakeDataflow(np.ones(columns, np.int32))))
    labels = view.canvas.flow.labels
    indices = labels.list_indices(0, view.viewport.layout.width(view.viewport.sizes))
    before = view.grab().toImage()
    if columns < 64:
        assert indices == []
        return
    steps = set(np.diff(indices).tolist())
    assert indices[0] == 0
    assert len(steps) == 1
    step = steps.pop()
    assert columns - step <= indices[-1] < columns
    width = QFontMetricsF(labels._label.font).horizontalAdvance(str(columns))
    assert width < step * view.viewport.sizes.column < 3 * (width + 20)
    # The indices stay at the top, in their columns, when the picture is scrolled and zoomed.
    view.zoom(6.0)
    view.scroll_by(QPointF(-150, -200))
    left = view.viewport.sizes.label - view.viewport.origin().x()
    visible = labels_after = view.canvas.flow.labels.list_indices(left, left + 500)
    assert visible
    assert all(left <= (each + 0.5) * view.viewport.sizes.column <= left + 500 for each in labels_after)
    strip = view.grab().toImage().copy(round(view.viewport.sizes.label), 0, 500, round(view.viewport.sizes.head))
    assert strip != before.copy(strip.rect())
    assert len({strip.pixel(x, y) for x in range(500) for y in range(strip.height())}) > 2


NAMES = ("a–d", "e–h", "i–l", "m–p", "q–t", "u–x", "y–z", "other")


@pytest.mark.parametrize(("column", "texts"), [(40, NAMES), (14, ("a", "e", "i", "m", "q", "u", "y", "other"))])
def test_bins_in_narrow_columns_show_the_start_of_their_range(view, monkeypatch, column, texts):
    layout = DataflowLayout(FakeDataflow(VALUES[:8]))
    monkeypatch.setattr(layout, "names", lambda number: NAMES if number == 0 else ())
    view.open(layout)
    view.viewport.zoom(column / view.viewport.sizes.column, QPointF(0, 0))
    painted = []
    flow = view.canvas.flow
    monkeypatch.setattr(flow._name_lettering, "paint_centered", lambda painter, box, text: painted.append((box, text)))
    image = QImage(400, 100, QImage.Format.Format_RGB32)
    with QPainter(image) as painter:
        flow._paint_names(painter, 0)
    assert tuple(text for _, text in painted) == texts
    assert flow._name_lettering.font.pixelSize() >= look().small_px - 2
    assert all(before.right() <= after.left() for (before, _), (after, _) in itertools.pairwise(painted))
    gaps = [QPointF((before.right() + after.left()) / 2, before.center().y()) for (before, _), (after, _)
            in itertools.pairwise(painted)]  # fmt: skip
    assert all(flow._region_of_row(0).contains(gap.toPoint()) for gap in gaps), "no line passes between names"


def test_names_of_bins_fit_between_rows_in_enlarged_text(enlarged, monkeypatch):
    layout = DataflowLayout(FakeDataflow(VALUES[:8]))
    monkeypatch.setattr(layout, "names", lambda number: NAMES if number == 1 else ())
    enlarged.open(layout)
    for height in (200, 260, 420):
        enlarged.resize(800, height)
        flow = enlarged.canvas.flow
        placed = flow._place_names(1)
        assert min(box.top() for box, _ in placed) >= flow.cell_rect(0, 0).bottom(), height
        assert flow._name_lettering.font.pixelSize() == look().small_px


def test_names_of_bins_stay_at_the_top_when_their_row_scrolls_away(view, monkeypatch):
    layout = DataflowLayout(FakeDataflow(VALUES[:8]))
    monkeypatch.setattr(layout, "names", lambda number: NAMES if number == 1 else ())
    view.open(layout)
    view.zoom(1.6)
    flow, painted = view.canvas.flow, []
    (first, _), *_ = flow._place_names(1)
    view.grab()  # the rows' own pictures, which also have names
    monkeypatch.setattr(
        flow._name_lettering,
        "paint_centered",
        lambda painter, box, text: painted.append((text, painter.transform().mapRect(box).top())),
    )
    for scrolled, names in ((0, ()), (first.top() + 1, NAMES), (first.top() + 2 * view.viewport.sizes.pitch, NAMES)):
        view.viewport.offset = QPointF(0, scrolled)
        painted.clear()
        view.grab()
        at_top = [text for text, top in painted if abs(top) < 1]
        assert tuple(at_top) == names, scrolled
