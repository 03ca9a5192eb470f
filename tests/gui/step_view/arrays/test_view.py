from __future__ import annotations

import numpy as np
import pytest
from PyQt6.QtCore import QPoint, QPointF, Qt
from PyQt6.QtGui import QColor, QFontMetrics, QImage, QPainter

from gui.painting.theme import FONT_SIZES, Look, look, set_look
from gui.step_view.arrays.panels import Panel, wrap_shape
from gui.step_view.arrays.shades import Mark
from gui.step_view.arrays.tinted_grid import TintedGrid
from gui.step_view.arrays.value_grid import ValueGrid
from gui.step_view.arrays.view import MemoryView, _pack_shelves
from tests.gui.step_view.conftest import wait_for_recording


@pytest.mark.parametrize(("pattern", "variant"), [("scan", "brent-kung"), ("reduction", "interleaved")])
def test_a_picture_that_went_through_time_is_that_of_somebody_who_jumped_there(qtbot, open_tab, pattern, variant):
    tab = open_tab(pattern, variant)
    tab.panes.kinds.choose("Arrays")
    rng = np.random.default_rng(1)
    moments = [0, *range(1, tab.player.end, 7), tab.player.end, *rng.integers(0, tab.player.end, 12).tolist()]
    for moment in moments:
        tab.player.go_to(moment)
        tab.panes.arrays.grab()
    fresh = MemoryView()
    qtbot.addWidget(fresh)
    fresh.updates_when_hidden = True
    fresh.resize(tab.panes.arrays.size())
    fresh.open(tab.models)
    for moment in (moments[-1], tab.player.end, 0):
        tab.player.go_to(moment)
        fresh.show_moment(moment, tab.snapshot(moment).block, None)
        assert tab.panes.arrays.grab().toImage() == fresh.grab().toImage()


def test_a_click_follows_the_thread_that_wrote(qtbot, open_tab):
    tab = open_tab("scan", "brent-kung")
    tab.panes.kinds.choose("Arrays")
    wait_for_recording(qtbot, tab)
    while not any(touch.is_write for touch in tab.panes.arrays.touches):
        tab.player.step(1)
    writing = tab.player.moment
    touch = next(t for t in tab.panes.arrays.touches if t.is_write)
    panel = next(p for p in tab.panes.arrays.panels if p.number == touch.array_number)
    cell, places = tab.panes.arrays._arrange_grids()
    x, y = places[tab.panes.arrays.panels.index(panel)]
    row, column = divmod(int(touch.elements[0]) - panel.first, panel.shape[1])
    at = (x + (column + 0.5) * cell, y + tab.panes.arrays._title_height() + (row + 0.5) * cell)
    qtbot.mouseClick(tab.panes.arrays, Qt.MouseButton.LeftButton, pos=QPoint(round(at[0]), round(at[1])))
    assert tab.player.moment == writing
    assert tab.followed == (int(touch.blocks[0]), int(touch.threads[0]))


def test_titles_stand_beside_each_other_where_cells_are_small(qtbot, open_tab):
    tab = open_tab("nbody", "naive")
    view = MemoryView()
    qtbot.addWidget(view)
    view.updates_when_hidden = True
    view.resize(700, 180)
    view.open(tab.models)
    view.show_moment(5, tab.snapshot(5).block, None)
    cell, places = view._arrange_grids()
    assert cell < 12
    assert len({y for _, y in places}) == 1
    measure = QFontMetrics(view._title_font()).horizontalAdvance
    for panel, (x, _), (following, _) in zip(view.panels, places, places[1:], strict=False):
        assert x + measure(panel.title) < following


def test_a_shorter_recording_opens_where_a_longer_one_was_left(qtbot, open_tab):
    tab = open_tab("scan", "brent-kung", n=16)
    long = tab.models
    tab.settings.form.change_values(n=1)
    wait_for_recording(qtbot, tab)
    view = MemoryView()
    qtbot.addWidget(view)
    view.open(long)
    view.show_moment(long.recording.event_count, 0, None)
    assert tab.models.recording.event_count < long.recording.event_count
    view.open(tab.models)
    view.show()
    assert view.panels


def test_constants_of_other_kernels_are_left_out(open_tab):
    tab = open_tab("convolution", "tiled")
    tab.player.go_to(tab.player.end)
    names = {panel.title.split()[0] for panel in tab.panes.arrays.panels}
    assert names == {"image", "out", "FILTER", "tile"}
    assert not tab.models.recording.has_several_blocks, "one channel of a few pixels"


@pytest.mark.parametrize(("n", "columns"), [(16, {16}), (64, {16, 32}), (1024, {64, 128})])
def test_arrays_without_rows_are_written_in_rows_that_make_cells_largest(qtbot, open_tab, n, columns):
    tab = open_tab("scan", "kogge-stone", n=n, block=str(n))
    tab.panes.kinds.choose("Arrays")
    tab.player.go_to(9)
    panel = next(each for each in tab.panes.arrays.panels if each.title.startswith("in "))
    assert panel.shape[1] in columns
    assert (
        panel.values.reshape(-1)[:n].tolist()
        == tab.models.recording.locate_moment(0)[0].trace.array(panel.number, 0).tolist()
    )
    assert not panel.has_value.reshape(-1)[n:].any()
    largest, _ = tab.panes.arrays._arrange_grids()
    for width in (16, 32, 64, 128):
        shapes = tuple(wrap_shape((1, each.values.size), width) for each in tab.panes.arrays.panels)
        assert _pack_shelves(shapes, *tab.panes.arrays._shelf_arguments(tab.panes.arrays.panels)[1:])[0] <= largest


@pytest.mark.parametrize("cell", [17, 20, 24, 29, 32])
@pytest.mark.parametrize("value", [-103, 1234, -98765, 0.0001234])
@pytest.mark.parametrize("marked", [False, True])
def test_a_written_value_never_looks_unwritten(qtbot, cell, value, marked):
    def paint(has_value):
        image = QImage(cell, cell, QImage.Format.Format_RGB32)
        image.fill(QColor(look().theme.surface))
        painter = QPainter(image)
        panel = Panel(0, "s", 0, np.array([[value]]), np.array([[has_value]]))
        marks = [Mark(np.array([0]), QColor("#804040"), True, True)] if marked else []
        ValueGrid((1, 1), cell, 1.0).paint(painter, panel, QPointF(0, 0), None, marks)
        painter.end()
        inside = image.copy(3, 3, cell - 6, cell - 6)
        return {inside.pixelColor(x, y).name() for x in range(inside.width()) for y in range(inside.height())}

    assert len(paint(has_value=False)) == 1
    assert len(paint(has_value=True)) > 1


@pytest.mark.parametrize("ratio", [1.0, 1.5, 2.0])
def test_a_grid_of_small_cells_shows_each_cell_where_it_is(qtbot, ratio):
    rows, columns, cell = 5, 32, 11
    values = np.arange(rows * columns, dtype=np.int32).reshape(rows, columns)
    panel = Panel(0, "s", 0, values, np.ones_like(values, bool))
    mark = Mark(np.array([0, 70]), QColor("#ff0000"), True, True)
    image = QImage(round(columns * cell * ratio), round(rows * cell * ratio), QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(ratio)
    painter = QPainter(image)
    TintedGrid((rows, columns), cell, ratio).paint(painter, panel, QPointF(0, 0), (0.0, 159.0), [mark])
    painter.end()

    def at(place, x, y):
        row, column = divmod(place, columns)
        return image.pixelColor(int((column * cell + x) * ratio), int((row * cell + y) * ratio))

    middles = [at(place, cell / 2, cell / 2) for place in range(rows * columns)]
    grays = [each.lightness() for place, each in enumerate(middles) if place not in (0, 70)]
    assert grays == sorted(grays)
    assert grays[-1] > grays[0] + 150
    for place in (0, 70):
        assert at(place, 1, 1).name() == "#ff0000"
        assert middles[place].red() > middles[place].green() + 60
    assert at(33, cell - 0.4, cell / 2).name() == look().theme.surface


@pytest.mark.parametrize(("text", "size", "row_length"), [("normal", (470, 330), 16), ("lecture hall", (464, 285), 8)])
def test_rows_are_short_where_large_text_needs_larger_cells(qtbot, open_tab, text, size, row_length):
    tab = open_tab("scan", "brent-kung", n=16)
    tab.window().appearance.set_text_size(text)
    view = MemoryView()
    qtbot.addWidget(view)
    view.updates_when_hidden = True
    view.resize(*size)
    view.open(tab.models)
    view.show_moment(tab.player.end, 0, None)
    assert {panel.shape[1] for panel in view.panels if panel.count >= 16} == {row_length}


def measure_text_height(value, cell):
    """Return the number of lines of pixels that the text of a value takes in a cell."""
    image = QImage(cell, cell, QImage.Format.Format_RGB32)
    image.fill(QColor("black"))
    painter = QPainter(image)
    panel = Panel(0, "s", 0, np.array([[value]]), np.ones((1, 1), bool))
    view = MemoryView()
    view._grid(panel, cell, (0.0, value)).paint(painter, panel, QPointF(0, 0), (0.0, 1e12), [])
    painter.end()
    inside = range(2, cell - 2)
    return sum(len({image.pixelColor(x, y).name() for x in inside}) > 1 for y in inside)


def test_short_values_are_written_in_larger_text(qtbot):
    set_look(Look(look().theme, FONT_SIZES["lecture hall"]))
    assert measure_text_height(25, 26) == measure_text_height(2, 26) >= measure_text_height(253, 26) + 2
    assert measure_text_height(253, 26) == measure_text_height(2.53, 26)


def test_values_grow_with_their_cells(qtbot):
    assert measure_text_height(253, 26) < measure_text_height(253, 44) <= measure_text_height(253, 64)
    assert measure_text_height(100000, 64) > measure_text_height(2000000000, 64) > 3  # all digits, not an ellipsis


def test_long_integers_have_all_digits_where_there_is_room(qtbot):
    values = np.array([[-103, 17, 99999, -1, 2000000000, 5, -42, 100000]])
    view, panel = MemoryView(), Panel(0, "in global", 0, values, np.ones_like(values, bool))
    qtbot.addWidget(view)
    view.panels, view._ranges = [panel], {(0, panel.title): (-103.0, 2e9)}

    def find_texts(*size):
        view.resize(*size)
        cell, _ = view._arrange_grids()
        width = view._columns()[panel.title]
        return cell, width, view._grid(panel, cell, (-103.0, 2e9), width)._format_values(values.reshape(-1))

    cell, width, texts = find_texts(1200, 600)
    assert texts == list(map(str, values.reshape(-1).tolist()))
    assert width > cell
    x, y = view._arrange_grids()[1][0]
    at_end = view.box_at(QPointF(x + 7.5 * width, y + view._title_height() + cell / 2))
    assert (at_end.left(), at_end.width(), at_end.height()) == (x + 7 * width, width, cell)
    assert view.box_at(QPointF(x + 8.1 * width, y + view._title_height() + cell / 2)) is None
    cell, width, texts = find_texts(330, 300)  # high cells rather than wide ones that are too low for any value
    assert "…" in texts
    assert width == cell
