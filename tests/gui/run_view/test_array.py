"""A pattern of arrays in the window: it runs without an image, on values made or read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyqtgraph as pg
import pytest
from PyQt6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PyQt6.QtGui import QDropEvent, QFontMetricsF
from PyQt6.QtWidgets import QFileDialog

from gpu.declaration.arrays import make_values, outline
from gpu.declaration.presentation import ArrayPresentation
from gpu.messages.files import LoadArray, SaveArray
from gpu.patterns import find_pattern
from gui.painting.theme import FONT_SIZES, Look, look, set_look
from gui.plots.array_plot import ArrayPlot
from gui.run_view.partials import _format_short
from gui.widgets.basic import format_count
from tests.gui.conftest import FakeHost, wait_until_idle


@pytest.fixture
def first_pattern(request):
    return "scan" if "scanning" in request.fixturenames else "reduction"


@pytest.fixture
def reducing(window):
    """A window that shows the reduction, run once."""
    return window


def bar_heights(plot):
    return plot._bar_item.opts


def test_it_runs_without_an_image(qtbot, make_window):
    window = make_window()
    assert window.bench.image is None
    window.choose_pattern("reduction")
    wait_until_idle(qtbot, window)
    (request,) = FakeHost.instances[-1].runs("reduction")
    assert request.inputs == {}
    assert window.page.numbers.verdict.text() == "✓ verified"


def test_the_result_of_a_reduction_is_shown_as_a_number(qtbot, reducing):
    view = reducing.page.view
    reducing.page.form.change_values(input="ramp", n=5, operator="sum")
    wait_until_idle(qtbot, reducing)
    assert view.single_result.value_label.text() == "10"
    assert view.result_stack.currentWidget().isAncestorOf(view.single_result.value_label)
    assert view._input_caption.toolTip() == "5 × int32, ramp"
    assert view._result_caption.toolTip() == "sum, neighbored"
    reducing.page.form.change_values(operator="max", n=2**31 // 1000, input="random")
    wait_until_idle(qtbot, reducing)
    assert view.single_result.value_label.text() == str(int(reducing.bench.outcomes["reduction"].arrays["result"][0]))
    reducing.page.form.change_values(n=0, operator="sum", input="ramp")
    wait_until_idle(qtbot, reducing)
    assert view.single_result.value_label.text() == "0"
    assert view._input_caption.toolTip() == "0 × int32, ramp"


def test_a_result_that_wrapped_around_says_so_beside_the_number(qtbot, reducing):
    view = reducing.page.view
    for n, operator, wraps in (
        (2**16, "sum", False),
        (2**17, "sum", True),
        (8, "product", False),
        (32, "product", True),
    ):
        reducing.page.form.change_values(input="ramp", n=n, operator=operator)
        wait_until_idle(qtbot, reducing)
        assert view.single_result.overflow_label.isVisible() == wraps, (n, operator)


@pytest.mark.parametrize("values", [[3, 1, 7, 0], [-5, 2, 7, -7]])
def test_values_beside_bars_are_whole_in_a_low_plot(qtbot, values):
    set_look(Look(look().theme, FONT_SIZES["lecture hall"]))
    plot = ArrayPlot("values")
    qtbot.addWidget(plot)
    plot.resize(400, 130)
    with qtbot.waitExposed(plot):
        plot.show()
    plot.show_outline(np.array([values, values]), len(values))
    texts = [each for each in plot._items if isinstance(each, pg.TextItem)]
    assert len(texts) == len(values)
    qtbot.wait(0)
    area = plot.box.sceneBoundingRect()
    for each in texts:
        box = each.textItem.sceneBoundingRect()
        assert area.top() <= box.top() + 4
        assert box.bottom() - 4 <= area.bottom()


def test_values_above_bars_do_not_overlap(qtbot):
    values = [-103, -86, 99913, 99912, 2000099912, 2000099917, 2000099875, 2000199875]
    plot = ArrayPlot("values")
    qtbot.addWidget(plot)
    plot.show()
    plot.show_outline(np.array([values, values]), len(values))
    for width, whole in ((1000, True), (420, False), (200, False), (1000, True)):
        plot.resize(width, 200)
        qtbot.waitUntil(lambda width=width: plot.box.width() > width - 140)
        texts = [each for each in plot._items if isinstance(each, pg.TextItem)]
        assert ([each.toPlainText() for each in texts] == list(map(str, values))) == whole
        widths = [QFontMetricsF(each.textItem.font()).horizontalAdvance(each.toPlainText()) for each in texts]
        assert max(widths) <= plot.box.width() / len(values)


def test_few_elements_are_bars_from_zero_and_many_are_bands(qtbot):
    plot = ArrayPlot("Input")
    qtbot.addWidget(plot)
    plot.show()
    plot.show_outline(np.array([[3, -5], [3, -5]]), 2)
    assert bar_heights(plot)["y0"].tolist() == [0, -5]
    assert bar_heights(plot)["y1"].tolist() == [3, 0]
    assert bar_heights(plot)["x0"].tolist() == [-0.4, 0.6], "centerd on the index"
    plot.show_outline(np.array([[3, -5], [7, -1]]), 100)
    assert bar_heights(plot)["y0"].tolist() == [3, -5]
    assert bar_heights(plot)["x1"].tolist() == [49.5, 99.5]
    plot.show_outline(np.zeros((2, 0)), 0)
    assert plot._bar_item is None


def test_a_file_of_numbers_is_opened_where_arrays_are_shown(qtbot, reducing, tmp_path, monkeypatch):
    path = tmp_path / "numbers.txt"
    path.write_text("3\n5\n")
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *asked: (str(path), ""))
    reducing.files.choose_and_open()
    qtbot.waitUntil(lambda: reducing.bench.values is not None)
    wait_until_idle(qtbot, reducing)
    assert reducing.page.view.single_result.value_label.text() == "8"
    assert reducing.page.form.values["input"] == "file"
    assert not reducing.page.form.fields["n"].isVisible()
    run = reducing.host.runs("reduction")[-1]
    assert run.inputs["values"].open().tolist() == [3.0, 5.0]
    reducing.page.form.change_values(input="ones", n=4)
    wait_until_idle(qtbot, reducing)
    assert reducing.page.view.single_result.value_label.text() == "4"
    assert reducing.host.runs("reduction")[-1].inputs == {}


def test_a_file_that_cannot_be_read_changes_nothing(qtbot, reducing, tmp_path):
    shown, settings = reducing.page.view.single_result.value_label.text(), dict(reducing.page.form.values)
    reducing.files.open_file(tmp_path / "nowhere.csv")
    qtbot.waitUntil(lambda: "There is no file" in reducing.banner.message.text())
    wait_until_idle(qtbot, reducing)
    assert reducing.page.view.single_result.value_label.text() == shown
    assert reducing.page.form.values == settings


def test_file_without_a_file_is_told_and_the_last_result_stays(qtbot, reducing):
    shown = reducing.page.view.single_result.value_label.text()
    reducing.page.form.change_values(input="file")
    qtbot.waitUntil(lambda: "No file of numbers is open" in reducing.banner.message.text())
    assert reducing.page.view.single_result.value_label.text() == shown


def test_a_file_of_last_time_is_not_asked_for_again(qtbot, reducing, make_window, tmp_path):
    path = tmp_path / "numbers.csv"
    path.write_text("3\n")
    reducing.files.open_file(path)
    qtbot.waitUntil(lambda: reducing.bench.values is not None)
    wait_until_idle(qtbot, reducing)
    reducing.close()
    again = make_window()
    assert again.bench.pattern_name == "reduction"
    assert again.bench.settings["reduction"].params["input"] == "random"


def test_values_go_along_to_another_engine(qtbot, reducing, tmp_path):
    path = tmp_path / "numbers.csv"
    path.write_text("3\n4\n")
    reducing.files.open_file(path)
    qtbot.waitUntil(lambda: reducing.bench.values is not None)
    wait_until_idle(qtbot, reducing)
    reducing.set_engine("simulator")
    wait_until_idle(qtbot, reducing)
    host = FakeHost.instances[-1]
    assert host is not reducing.host
    assert host.runs("reduction")[-1].inputs["values"].open().tolist() == [3.0, 4.0]


def test_an_image_that_is_opened_goes_to_a_pattern_of_images(qtbot, reducing, color):
    assert not [r for r in reducing.host.requests if isinstance(r, LoadArray)]
    reducing.files.open_file(color)
    wait_until_idle(qtbot, reducing)
    assert reducing.bench.pattern_name == "convolution"
    qtbot.waitUntil(lambda: reducing.bench.image.path == color)
    assert "reduction" in reducing.bench.outcomes, "its result has nothing to do with the image"


def test_the_result_is_saved_as_values(qtbot, reducing, tmp_path, monkeypatch):
    asked = []

    def answer(parent, title, suggested, kinds):
        asked.append((suggested, kinds))
        return str(tmp_path / "sum.npy"), ""

    monkeypatch.setattr(QFileDialog, "getSaveFileName", answer)
    reducing.files.save_as()
    qtbot.waitUntil(lambda: (tmp_path / "sum.npy").exists())
    ((suggested, kinds),) = asked
    assert suggested.endswith("random-reduction-neighbored.csv")
    assert "image" not in kinds.lower()
    (save,) = [request for request in reducing.host.requests if isinstance(request, SaveArray)]
    assert save.array.path == reducing.bench.outcomes["reduction"].handles["result"].path


def test_the_scale_of_counts_does_not_concern_it(qtbot, reducing):
    reducing.pages.toggle_scale()
    reducing.choose_pattern("histogram")
    wait_until_idle(qtbot, reducing)
    assert reducing.page.view.levels.scale.chosen == "linear"


def choose_example(page, number):
    """Choose from the list as a user does: from its keyboard."""
    page.examples.box.setFocus()
    page.examples.box.setCurrentIndex(number)
    page.examples.box.activated.emit(number)


@pytest.fixture
def scanning(window):
    """A window that shows the scan, run once."""
    return window


def test_the_sausage_is_cut_where_the_scan_says(qtbot, scanning):
    page = scanning.page
    choose_example(page, 1)
    wait_until_idle(qtbot, scanning)
    bar = page.view.pieces
    assert page.view.result_stack.currentWidget() is bar
    assert bar.cut_positions.tolist() == [3, 8, 10, 17, 45, 49, 52, 52, 60, 61]
    assert bar.unused_length == 39
    assert bar.total_length == 100
    assert "39 left" in bar.accessibleName()
    assert page.examples.description_banner.isVisible()
    assert "sausage of 100" in page.examples.text.text()
    assert not bar.grab().isNull()
    page.form.change_values(n=11)
    wait_until_idle(qtbot, scanning)
    assert page.view.result_stack.currentWidget().isAncestorOf(page.view.after)
    assert page.examples.box.currentIndex() == 0
    assert not page.examples.description_banner.isVisible()


def test_slots_begin_where_the_exclusive_scan_says(qtbot, scanning):
    choose_example(scanning.page, 2)
    wait_until_idle(qtbot, scanning)
    bar = scanning.page.view.pieces
    assert bar.cut_positions[0] == 0
    assert bar.cut_positions[1:].tolist() == bar.lengths.cumsum()[:-1].tolist()
    assert bar.unused_length == 0


def test_an_example_may_bring_its_variant(qtbot, reducing):
    choose_example(reducing.page, 2)
    wait_until_idle(qtbot, reducing)
    assert reducing.bench.outcomes["reduction"].variant == "volatile"
    assert reducing.header.variant.currentData() == "volatile"
    assert len({(r.variant, r.params["n"]) for r in reducing.host.runs("reduction")}) == 2, "not run in between"


def test_an_input_is_seen_before_it_was_run(qtbot, scanning):
    scanning.page.form.change_values(input="ramp", n=5)
    view = scanning.page.view
    assert view.before.outline[0].tolist() == [0, 1, 2, 3, 4]
    assert view._input_caption.toolTip() == "5 × int32, ramp"
    assert scanning.bench.outcomes["scan"].params["n"] != 5
    wait_until_idle(qtbot, scanning)
    assert view.after.outline[0].tolist() == [0, 1, 3, 6, 10]


def test_the_pointer_reads_both_arrays(qtbot, scanning):
    scanning.page.form.change_values(input="ramp", n=5)
    wait_until_idle(qtbot, scanning)
    view = scanning.page.view
    viewport = view.before.plot.viewport()
    for index, (given, made) in {3: ("[3] = 3", "[3] = 6"), 4: ("[4] = 4", "[4] = 10")}.items():
        at = view.before.box.mapViewToScene(QPointF(index, 1))
        qtbot.mouseMove(viewport, view.before.plot.mapFromScene(at))
        qtbot.waitUntil(lambda given=given: view._input_caption.toolTip() == given)
        assert view._result_caption.toolTip() == made
        assert view.after.line.isVisible()
        assert view.after.line.value() == index
    view.after.setFocus()
    qtbot.keyClick(view.after, Qt.Key.Key_Left)
    assert view._result_caption.toolTip() == "[3] = 6"
    view._show_element(None)
    assert view._input_caption.toolTip() == "5 × int32, ramp"
    assert not view.after.line.isVisible()


def test_a_column_of_many_elements_is_read_as_a_range(qtbot):
    plot = ArrayPlot("Input")
    qtbot.addWidget(plot)
    plot.show_outline(np.array([[1, 2, 3], [4, 5, 6]]), 10)
    # Columns begin at k * n // columns: 0, 3, 6.
    assert plot.find_column_range(2) == (0, 2, 1, 4)
    assert plot.find_column_range(3) == (3, 5, 2, 5)
    assert plot.find_column_range(9) == (6, 9, 3, 6)
    assert plot.find_column_range(10) is None


def test_zooming_in_one_plot_moves_the_other(qtbot, scanning):
    view = scanning.page.view
    view.after.box.setXRange(100, 200, padding=0)
    assert view.before.box.viewRange()[0] == pytest.approx([100, 200])
    view.before.fit()
    assert view.after.box.viewRange()[0] == pytest.approx(view.before.box.viewRange()[0])


@pytest.mark.parametrize("first_pattern", ["compaction"])
def test_what_is_kept_stands_out_and_lies_at_the_left_of_the_same_axis(qtbot, window):
    choose_example(window.page, 1)
    wait_until_idle(qtbot, window)
    view = window.page.view
    values = view.before.outline[0]
    kept = view.before.highlighted_outline[0]
    assert kept[values % 2 == 1].tolist() == values[values % 2 == 1].tolist()
    assert np.isnan(kept[values % 2 == 0]).all()
    assert view.after.elements == np.count_nonzero(values % 2)
    assert view.after.box.viewRange()[0] == pytest.approx(view.before.box.viewRange()[0])
    assert f"{view.after.elements} of 32 kept" in view._result_caption.toolTip()


def test_errors_are_drawn_below_a_result_that_is_off(qtbot, scanning):
    view = scanning.page.view
    scanning.page.form.change_values(input="ramp", n=5)
    wait_until_idle(qtbot, scanning)
    assert not view.error.isVisible()
    host = FakeHost.instances[-1]
    run = host._run_array

    def wrong(request):
        result = run(request)
        off = np.array([[0, 0, 2.0, 0, np.inf]] * 2)
        return type(result)({**result.arrays, "error": host.share_array(off)}, host._report(request, wrong=True))

    host._run_array = wrong
    scanning.run()
    wait_until_idle(qtbot, scanning)
    assert view.error.isVisible()
    assert view.error.tone == "bad"
    assert view.error.outline[1].tolist() == [0, 0, 2, 0, 4], "what is not finite is a bar too"
    host._run_array = run
    scanning.run()
    wait_until_idle(qtbot, scanning)
    assert not view.error.isVisible()


@pytest.mark.parametrize("first_pattern", ["reduction", "histogram"])
def test_numbers_dropped_on_the_window_are_named(qtbot, window, tmp_path):
    path = tmp_path / "sizes.csv"
    path.write_text("3\n5\n")
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(path))])
    event = QDropEvent(
        QPointF(QPoint(100, 100)),
        Qt.DropAction.CopyAction,
        mime,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )
    window.dropEvent(event)
    qtbot.waitUntil(lambda: window.bench.values is not None)
    wait_until_idle(qtbot, window)
    assert isinstance(window.page.pattern.presentation, ArrayPresentation)
    qtbot.waitUntil(lambda: window.page.view._input_caption.toolTip() == "2 × int32, sizes.csv")


@pytest.mark.parametrize("first_pattern", ["sort"])
def test_large_values_keep_their_magnitude_in_every_theme(qtbot, window):
    for theme in ("light", "dark"):
        window.appearance.set_theme(theme)
        axes = [plot.plot.getAxis("left") for plot in window.page.view.findChildren(ArrayPlot) if plot.isVisible()]
        axis = max(axes, key=lambda axis: axis.range[1])  # the input's: this engine's result is zeros
        assert axis.range[1] > 1e9
        assert axis.tickStrings([-2e9, 0.0, 2e9], axis.autoSIPrefixScale * axis.scale, 1e9) == ["-2e+09", "0", "2e+09"]


@pytest.mark.parametrize("height", [60, 110, 400])
@pytest.mark.parametrize("most", [0.7, 10, 99, 13_000_000])
def test_figures_of_a_low_axis_do_not_stand_on_each_other(qtbot, most, height):
    set_look(replace(look(), text_px=FONT_SIZES["lecture hall"]))
    plot = ArrayPlot("Input")
    qtbot.addWidget(plot)
    plot.show()
    plot.show_outline(np.array([[0.0, 0.0], [0.0, most]]), 2)
    axis = plot.plot.getAxis("left")
    spacings = [spacing for spacing, _ in axis.tickSpacing(0.0, most, height)]
    assert min(spacings) / most * height >= look().small_px
    assert spacings[0] <= 1.05 * most, "there is a figure"


def test_an_axis_is_painted_anew_when_its_range_changes(qtbot):
    plot = ArrayPlot("numbers")
    qtbot.addWidget(plot)
    plot.resize(400, 200)
    with qtbot.waitExposed(plot):
        plot.show()
    axis = plot.plot.getAxis("left")
    for greatest in (90, 9000):
        plot.box.setYRange(0, greatest, padding=0)
        shown = plot.grab().toImage()
        axis.picture = None
        axis.update()
        assert shown == plot.grab().toImage()
        assert axis.range == [0, greatest]


@pytest.fixture
def large_scan_view(qtbot, scanning):
    """A scan of more values than a plot has columns."""
    scanning.page.form.change_values(input="random", n=20_000, dtype="int32", operator="sum")
    wait_until_idle(qtbot, scanning)
    return scanning.page.view


def excerpt_cells(stretch):
    return [int(text) for text in stretch.cell_texts]


def test_of_many_values_a_stretch_is_read_in_both_arrays(qtbot, large_scan_view):
    given, made = large_scan_view.excerpts
    assert given.isVisible()
    assert made.isVisible()
    values = make_values("random", 20_000, "int32", 0)
    assert excerpt_cells(given) == values[: given.count].tolist()
    assert excerpt_cells(made) == values.cumsum()[: given.count].tolist()
    given.setFocus()
    for key, first in (
        (Qt.Key.Key_Right, 1),
        (Qt.Key.Key_PageDown, 1 + given.count),
        (Qt.Key.Key_Left, given.count),
        (Qt.Key.Key_Home, 0),
        (Qt.Key.Key_Left, 0),
        (Qt.Key.Key_End, 20_000 - given.count),
    ):
        qtbot.keyClick(given, key)
        assert excerpt_cells(made) == values.cumsum()[first : first + given.count].tolist()
        assert (
            large_scan_view.before.excerpt_line.value()
            == large_scan_view.after.excerpt_line.value()
            == first + (given.count - 1) / 2
        )
    # Dragged to the right by three cells, it is three elements back.
    at = given.rect().center()
    qtbot.mousePress(given, Qt.MouseButton.LeftButton, pos=at)
    qtbot.mouseMove(given, at + QPoint(round(3 * given._compute_cells_rect().width() / given.count), 0))
    qtbot.mouseRelease(given, Qt.MouseButton.LeftButton)
    assert given.first == 20_000 - given.count - 3
    large_scan_view.after.excerpt_moved.emit(777)
    assert given.first == 777 - given.count // 2


def test_a_stretch_keeps_within_the_array_when_the_window_grows(qtbot, large_scan_view):
    given = large_scan_view.excerpts[0]
    few = given.count
    qtbot.keyClick(given, Qt.Key.Key_End)
    large_scan_view.window().resize(1900, 900)
    qtbot.waitUntil(lambda: given.count > few)
    assert given.first + given.count == 20_000
    assert len(given.cell_texts) == given.count


@pytest.mark.parametrize("name", ["sort"])
def test_keys_of_an_example_that_is_seen_sorted_fill_their_plot(name):
    """Of Zipf's, all but a few are so small that a plot shows nothing."""
    pattern = find_pattern(name)
    for preset in pattern.presets:
        params = pattern.check(preset.params)
        values = pattern.make_input(params, 0)["values"].astype(float)
        low, high = outline(values, 256)
        assert np.median(high) - min(low.min(), 0) > 0.2 * (high.max() - min(low.min(), 0)), preset.title


def test_values_of_every_size_are_counted_beside_the_plot(large_scan_view):
    bar = large_scan_view.bars[0]
    values = make_values("random", 20_000, "int32", 0)
    assert bar.isVisible()
    assert bar.counts.sum() == 20_000
    y = bar._value_to_y(50)
    number = bar.find_range(y)
    low, high = bar.edges[number : number + 2]
    within = int(((values > low) & (values < high)).sum())
    assert low < 50 < high
    assert bar.counts[number] == within
    assert format_count(within) in bar.describe_range(number)
    assert not bar.grab().isNull()


def test_few_values_have_neither_stretch_nor_counts(qtbot, large_scan_view, scanning):
    scanning.page.form.change_values(n=1024)
    wait_until_idle(qtbot, scanning)
    assert not any(each.isVisible() for each in (*large_scan_view.excerpts, *large_scan_view.bars))
    assert not large_scan_view.before.excerpt_line.isVisible()


def test_the_middle_half_is_drawn_stronger_within_all(qtbot, scanning):
    scanning.page.form.change_values(input="random", n=2**15, dtype="int32", operator="sum")
    wait_until_idle(qtbot, scanning)
    plot = scanning.page.view.before
    assert (plot.outline[0] <= plot.quartiles[0]).all()
    assert (plot.quartiles[1] <= plot.outline[1]).all()
    assert plot.quartiles[1].mean() - plot.quartiles[0].mean() == pytest.approx(50, abs=8)
    assert "dark band: middle half of the values" in scanning.page.view._input_caption.toolTip()


def test_a_value_says_what_a_cpu_makes_of_pieces_where_no_partial_results_are_kept(qtbot, reducing):
    view = reducing.page.view
    reducing.page.form.change_values(input="ramp", n=160, operator="sum", dtype="int32")
    wait_until_idle(qtbot, reducing)
    (row,) = view.single_result.partials.rows
    assert view.single_result.partials.isVisible()
    assert row.outline[0].tolist() == [sum(range(10 * piece, 10 * piece + 10)) for piece in range(16)]
    assert "computed on the CPU" in view.single_result.partials.accessibleDescription()
    reducing.page.form.change_values(n=5)
    wait_until_idle(qtbot, reducing)
    assert not view.single_result.partials.isVisible()


def test_a_value_shows_the_partial_results_of_its_launches(qtbot, reducing):
    host, view = reducing.host, reducing.page.view
    run, blocks = host._run_array, np.arange(100, 140, dtype=np.int32)

    def with_partials(request):
        result = run(request)
        left = {
            "partial counts": host.share_array(np.array([40, 3])),
            "partials 0": host.share_array(outline(blocks)),
            "partials 1": host.share_array(outline(np.array([1500, 1600, 1680], np.int32))),
        }
        return type(result)({**result.arrays, **left}, host._report(request))

    host._run_array = with_partials
    reducing.run()
    wait_until_idle(qtbot, reducing)
    first, second = view.single_result.partials.rows
    assert (first.count, second.count) == (40, 3)
    assert "CPU" not in view.single_result.partials.accessibleDescription()
    (top, _), (bottom, _) = view.single_result.partials._compute_areas()
    assert view.single_result.partials.describe_position(top.center()) == "[1]: 1600"
    assert view.single_result.partials.describe_position(bottom.topLeft() + QPointF(1, 1)) == "[0]: 100"
    assert view.single_result.partials.describe_position(QPointF(1, 1)) == ""
    assert not view.single_result.partials.grab().isNull()


@pytest.mark.parametrize(
    ("value", "room", "text"), [(3232301, 7, "3232301"), (3232301, 5, "3.23M"), (-51200, 4, "-51k")]
)
def test_what_has_no_room_is_written_in_thousands(value, room, text):
    assert _format_short(value, room) == text
