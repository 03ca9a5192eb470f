"""What Compare says by the timing model: curves of their own, limits, a roofline, occupancy, and what if."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations

import pyqtgraph as pg
import pytest
from PyQt6.QtCore import QPoint, QPointF, Qt
from PyQt6.QtGui import QFontMetrics
from PyQt6.QtWidgets import QApplication, QLabel

from gpu.declaration.pattern import Progress
from gpu.messages.events import Failure
from gpu.messages.modeled_time import LIMITS, ModelPattern
from gpu.patterns import all_patterns
from gpu.timing.gpus import GpuScaling
from gui.compare_view.limits import LimitsTable
from gui.compare_view.modeled_views import LIMITS_VIEW, OCCUPANCY, ROOFLINE
from gui.compare_view.tab import CURVES
from gui.painting.style import style_sheet
from gui.painting.theme import DARK, FONT_SIZES, Look, look, set_look
from gui.plots.roofline_plot import RooflineDot, RooflinePlot, Roofs
from gui.widgets.basic import format_figure
from tests.gui.conftest import FakeHost, make_modeled_time, wait_until_idle


def click(qtbot, widget, at=None):
    qtbot.mouseClick(widget, Qt.MouseButton.LeftButton, pos=at or QPoint())


@pytest.fixture
def first_pattern():
    return "scan"


@pytest.fixture
def tab(open_compare):
    """The scan's Compare tab in a window of its own."""
    return open_compare("scan").compare


@pytest.fixture
def window_tab(window):
    """The scan's Compare tab in the whole window."""
    window.page.select_tab("Compare")
    found = window.page.compare
    found.window_ = window
    return found


def wait_for_models(qtbot, tab):
    qtbot.waitUntil(lambda: not tab.modeled_views.busy and not tab.sweep.running)


def show_view(qtbot, tab, view):
    click(qtbot, tab.views.buttons[view])
    wait_for_models(qtbot, tab)


def modeling_host(tab):
    return tab._modeling._jobs._host


def model_requests(tab):
    return [request for request in modeling_host(tab).requests if isinstance(request, ModelPattern)]


def compare_modeled(qtbot, tab):
    texts = [tab.quantity.itemText(place) for place in range(tab.quantity.count())]
    tab.quantity.setCurrentIndex(texts.index("modeled, H200"))


def test_modeled_curves_have_a_title_of_their_own(qtbot, window_tab) -> None:
    compare_modeled(qtbot, window_tab)
    assert window_tab.card.title.text() == "Modeled"
    assert window_tab.measure_button.text() == "Model"
    assert "not measured" in window_tab.status_label.toolTip()
    window_tab.largest.setCurrentIndex(window_tab.largest.findData(14))
    click(qtbot, window_tab.measure_button)
    wait_for_models(qtbot, window_tab)
    assert {request.params["n"] for request in model_requests(window_tab)} == {2**12, 2**13, 2**14}
    assert set(window_tab.curves.points[0]) == {2**12, 2**13, 2**14}
    point = next(each for each in window_tab.points if (each.variant, each.n) == ("naive", 2**14))
    assert point.kernel_ms == pytest.approx(point.modeled.time_us / 1000)
    assert point.elements_per_s == pytest.approx(2**14 / point.modeled.time_us * 1e6)
    assert "within 25% for 9 of 10 kernels tried" in window_tab.status_label.toolTip()
    assert ", modeled, at the largest n" in window_tab.size_label.text()
    assert not window_tab.window_.host.runs("scan")[1:], "no engine ran for it"


def test_what_is_modeled_is_never_drawn_with_what_is_measured(qtbot, tab) -> None:
    compare_modeled(qtbot, tab)
    tab.largest.setCurrentIndex(tab.largest.findData(14))
    click(qtbot, tab.measure_button)
    wait_for_models(qtbot, tab)
    tab.quantity.setCurrentIndex(0)
    assert tab.points == []
    assert tab.card.title.text() == "Measured here"


def test_curves_are_stopped_at_once(qtbot, tab) -> None:
    compare_modeled(qtbot, tab)
    tab._modeling.jobs  # noqa: B018
    modeling_host(tab).answers_later = True
    click(qtbot, tab.measure_button)
    assert tab.measure_button.text() == "Stop"
    click(qtbot, tab.measure_button)
    assert tab.measure_button.text() == "Model"
    modeling_host(tab).answer_all()
    qtbot.wait(20)
    assert tab.points == []
    assert len(model_requests(tab)) == 1


def test_esc_stops_what_is_modeled(qtbot, window_tab) -> None:
    window_tab._modeling.jobs  # noqa: B018
    modeling_host(window_tab).answers_later = True
    click(qtbot, window_tab.views.buttons[LIMITS_VIEW])
    assert window_tab.window_.header.stop.isEnabled()
    window_tab.window_.running.stop()
    assert not window_tab.busy
    assert not window_tab.window_.header.stop.isEnabled()
    assert window_tab.measure_button.text() == "Model"


def test_what_is_chosen_in_run_is_looked_at_first(qtbot, window_tab) -> None:
    window_tab.window_.choose_variant("brent-kung")
    wait_until_idle(qtbot, window_tab.window_)
    show_view(qtbot, window_tab, LIMITS_VIEW)
    assert window_tab.modeled_views.limit_label.text().startswith("Brent-Kung: ")


def test_every_limit_is_seen_at_1280_by_720(qtbot, window_tab) -> None:
    window_tab.window_.resize(1280, 720)
    show_view(qtbot, window_tab, LIMITS_VIEW)
    table = window_tab.modeled_views.limits
    qtbot.waitUntil(lambda: window_tab.window_.width() == 1280)
    assert sum(table.columnWidth(column) for column in range(table.columnCount())) <= table.viewport().width()
    lines = [table.rowHeight(line) for line in range(table.rowCount())]
    assert look().px(26) < min(lines)
    assert sum(lines) <= table.viewport().height()


def test_limits_that_no_variant_reaches_are_hidden_so_that_the_others_fit_a_small_window(qtbot) -> None:
    table = LimitsTable()
    qtbot.addWidget(table)
    table.resize(200, 300)
    table.show_titles([f"{number}  Neighbored pairs, less divergence" for number in range(14)])
    found = make_modeled_time(ModelPattern("scan", "naive", "h200", {"n": 2**24}))
    times = replace(found, limits=dict.fromkeys(LIMITS, 1234.0) | {"atomics": 0.0})
    table.show()
    table.show_times({0: times, 3: Failure("input", "skipped above 2¹⁶: quadratic")})
    heads = [table.horizontalHeaderItem(column).text() for column in range(table.columnCount())]
    needed = sum(table.columnWidth(column) for column in range(table.columnCount()))
    table.resize(needed + table.width() - table.viewport().width(), 300)
    assert [head for column, head in enumerate(heads) if table.isColumnHidden(column)] == ["atomics"]
    assert table.verticalScrollBar().isVisible()
    assert not table.horizontalScrollBar().maximum()
    table.show_times({0: times, 1: replace(times, limits=times.limits | {"atomics": 1.0})})
    assert not table.isColumnHidden(heads.index("atomics"))


def test_a_name_has_two_lines_where_all_limits_are_shown_in_a_small_window(qtbot) -> None:
    table = LimitsTable()
    qtbot.addWidget(table)
    table.setStyleSheet(style_sheet(look()))
    table.resize(556, 420)  # as in a window of 1024 x 700
    variants = all_patterns()["reduction"].variants
    table.show_titles([f"{number}  {variant.title}" for number, variant in enumerate(variants, 1)])
    found = make_modeled_time(ModelPattern("scan", "naive", "h200", {"n": 2**24}))
    table.show()
    times = replace(found, time_us=1495.0, limits=dict.fromkeys(LIMITS, 58.9))
    table.show_times(dict.fromkeys(range(len(variants)), times))
    QApplication.processEvents()
    assert table.verticalScrollBar().isVisible()
    assert not table.horizontalScrollBar().maximum()
    small, large = (QFontMetrics(table.item(0, 0).font()).lineSpacing(), table.fontMetrics().lineSpacing())
    assert small < large, "the names are smaller rather than higher"
    assert max(table.rowHeight(line) for line in range(table.rowCount())) < 3 * small
    table.resize(680, 420)
    QApplication.processEvents()
    assert QFontMetrics(table.item(0, 0).font()).lineSpacing() == large, "two lines are enough for larger names"
    assert max(table.rowHeight(line) for line in range(table.rowCount())) < 3 * large


def count_ink(heads, column):
    """Return the number of pixels of a column's name that are painted."""
    image, left = heads.grab().toImage(), heads.sectionViewportPosition(column)
    rows, ground = range(heads.height() - 3), image.pixel(0, 0)  # without the line below the names
    return sum(image.pixel(left + x, y) != ground for x in range(heads.sectionSize(column)) for y in rows)


@pytest.mark.parametrize("size", FONT_SIZES)
def test_the_names_of_limits_are_whole_at_each_text_size(qtbot, size) -> None:
    set_look(Look(DARK, FONT_SIZES[size]))
    table = LimitsTable()
    qtbot.addWidget(table)
    table.setStyleSheet(style_sheet(look()))
    table.resize(300, 200)  # no column gets more than its least width
    table.show_titles(["1  Naive"])
    table.show()
    table.restyle()
    widths = [table.columnWidth(column) for column in range(table.columnCount())]
    table.resize(2000, 200)
    QApplication.processEvents()
    heads = table.horizontalHeader()
    for column, width in enumerate(widths):
        heads.resizeSection(column, width)
    QApplication.processEvents()
    for column in range(1, table.columnCount()):
        ink = count_ink(heads, column)
        heads.resizeSection(column, 2 * widths[column])
        QApplication.processEvents()
        assert ink == count_ink(heads, column), table.horizontalHeaderItem(column).text()


@pytest.mark.parametrize(("intensity", "is_moved"), [(250.0, True), (0.25, False)])
def test_the_names_of_roofs_are_whole(qtbot, intensity, is_moved) -> None:
    plot = RooflinePlot()
    qtbot.addWidget(plot)
    plot.resize(540, 420)
    plot.show()
    plot.show_dots([RooflineDot(1, intensity, intensity / 30, 2 * intensity)], Roofs(4525.0, 8502.0, 66900.0), 1)
    qtbot.waitUntil(lambda: bool(plot.names))
    (name,) = [each for each in plot._roof_labels if each.toPlainText().startswith("L2")]
    plot.grab()  # places the texts
    assert plot.box.sceneBoundingRect().left() - 4 <= name.sceneBoundingRect().left()
    assert (abs(name.pos().y() - math.log10(66900)) < 1e-9) == is_moved


@pytest.mark.parametrize("text", ["normal", "lecture hall"])
def test_names_of_variants_are_whole_in_a_small_window(qtbot, window_tab, text) -> None:
    window_tab.window_.resize(1024, 700)
    window_tab.window_.appearance.set_text_size(text)
    show_view(qtbot, window_tab, LIMITS_VIEW)
    table = window_tab.modeled_views.limits
    qtbot.waitUntil(lambda: window_tab.window_.width() == 1024)
    for line in range(table.rowCount()):
        # A number is not alone on a line.
        words, metrics = table.item(line, 0).text().split(" "), QFontMetrics(table.item(line, 0).font())
        assert words[0].split()[1:]
        assert max(map(metrics.horizontalAdvance, words)) < table.columnWidth(0) - 6
        # Qt's hint is the height of the text, wrapped at the width of its column.
        assert table.sizeHintForIndex(table.model().index(line, 0)).height() <= table.rowHeight(line)
        if metrics.horizontalAdvance(table.item(line, 0).text()) > table.columnWidth(0):
            assert table.rowHeight(line) >= 2 * metrics.height()
    # The list beside it scrolls where the names need more lines.
    qtbot.waitUntil(lambda: all(each.box.height() >= each.box.sizeHint().height() for each in window_tab.rows))


def test_limits_stand_in_a_line_for_each_variant_that_is_ticked(qtbot, tab) -> None:
    show_view(qtbot, tab, LIMITS_VIEW)
    table = tab.modeled_views.limits
    ticked = [each for each in tab.rows if each.box.isChecked()]
    assert table.rowCount() == len(ticked)
    assert table.item(1, 0).text().split() == ["2", "Naive"]
    found = make_modeled_time(model_requests(tab)[0])  # the current variant, the naive one, comes first
    cells = [table.item(1, column) for column in range(table.columnCount())]
    assert cells[2].text() == format_figure(found.limits["DRAM"])
    assert cells[2].font().bold()
    assert not cells[3].text()
    assert tab.rows[1].figure.text().endswith(" ms")
    assert tab.size_label.text() == "modeled, n = 2²⁴"
    click(qtbot, table.viewport(), table.visualItemRect(cells[0]).center())
    assert tab.modeled_views.limit_label.text().startswith("Naive: ")
    assert tab.modeled_views.limit_label.text().endswith("waits for memory.")


def test_a_variant_that_cannot_be_modeled_says_why(qtbot, tab) -> None:
    tab._modeling.jobs  # noqa: B018
    host = modeling_host(tab)
    host.answers_later = True
    click(qtbot, tab.views.buttons[LIMITS_VIEW])
    host.answer(Failure("input", "Naive would do too much."))
    host.answers_later = False
    qtbot.waitUntil(lambda: len(host.requests) > 1)
    host.answer_all()
    assert tab.modeled_views.refusals == {1: "Naive would do too much."}
    wait_for_models(qtbot, tab)
    assert tab.modeled_views.limits.item(1, 1).text() == "–"
    assert tab.rows[1].figure.toolTip() == "Naive would do too much."


def test_a_bound_fills_the_row_until_the_variant_is_modeled(qtbot, tab) -> None:
    tab._modeling.jobs  # noqa: B018
    host = modeling_host(tab)
    host.answers_later = True
    bound = "at least 30.0 µs, because of the launch and 134 MB of DRAM traffic"
    click(qtbot, tab.views.buttons[LIMITS_VIEW])
    table, label = tab.modeled_views.limits, tab.modeled_views.limit_label
    host.deliver(next(iter(host.pending)), Progress(None, bound))
    qtbot.waitUntil(lambda: table.item(1, 2).text() == bound)
    assert label.text() == f"Naive: {bound}."
    assert not tab.rows[1].figure.text()
    host.answers_later = False
    host.answer_all()
    wait_for_models(qtbot, tab)
    assert label.text().endswith("waits for memory.")
    qtbot.waitUntil(lambda: table.item(1, 2).text() not in ("", bound))


@pytest.mark.parametrize("first_pattern", ["convolution"])
def test_another_image_is_modeled_anew_and_the_first_one_when_it_is_there(qtbot, window, gray) -> None:
    image, window.bench.image = window.bench.image, None
    window.page.select_tab("Compare")
    tab = window.page.compare
    click(qtbot, tab.views.buttons[ROOFLINE])
    sliders = tab.modeled_views.what_if
    assert (sliders.block.isHidden(), sliders.reset.isHidden()) == (True, True), "its blocks have one size"
    assert window.messages.banner.isVisible()
    assert not tab.modeled_views.modeled
    window.bench.open_image(image.path)
    qtbot.waitUntil(lambda: bool(tab.modeled_views.modeled) and not tab.modeled_views.busy)
    assert not window.messages.banner.isVisible()
    before = {request.inputs["image"].path for request in model_requests(tab)}
    window.bench.open_image(gray)
    qtbot.waitUntil(lambda: {request.inputs["image"].path for request in model_requests(tab)} > before)


@pytest.fixture
def sorting(open_compare):
    """The sort's Compare tab, with a variant whose work is quadratic."""
    window = open_compare("sort")
    window.bench.settings["sort"].variant = "radix"
    return window.compare


@pytest.mark.parametrize("first_pattern", ["sort"])
def test_a_quadratic_variant_is_skipped_above_a_size_that_is_named(qtbot, window) -> None:
    window.choose_variant("radix")
    wait_until_idle(qtbot, window)
    window.page.select_tab("Compare")
    sorting = window.page.compare
    show_view(qtbot, sorting, LIMITS_VIEW)
    assert [request.variant for request in model_requests(sorting)][:3] == ["radix", "one-thread", "bitonic"]
    assert "odd-even" not in {request.variant for request in model_requests(sorting)}
    table = sorting.modeled_views.limits
    assert (table.item(1, 1).text(), table.item(1, 2).text()) == ("–", "skipped above 2¹⁶: quadratic")
    for width in (1024, 1920):  # the reason wraps in the visible columns
        window.resize(width, 700)
        qtbot.waitUntil(lambda width=width: window.width() == width)
        last = 2 + table.columnSpan(1, 2) - 1
        assert table.columnViewportPosition(last) + table.columnWidth(last) <= table.viewport().width()
    assert last == table.columnCount() - 1
    sorting.largest.setCurrentIndex(sorting.largest.findData(16))
    click(qtbot, sorting.measure_button)
    wait_for_models(qtbot, sorting)
    assert model_requests(sorting)[-1].variant == "odd-even", "the slowest comes last"
    assert table.columnSpan(1, 2) == 1


def test_a_modeled_curve_of_a_quadratic_variant_ends_at_its_largest_size(qtbot, sorting) -> None:
    compare_modeled(qtbot, sorting)
    sorting.largest.setCurrentIndex(sorting.largest.findData(18))
    click(qtbot, sorting.measure_button)
    wait_for_models(qtbot, sorting)
    assert max(sorting.curves.points[1]) == 2**16
    assert max(sorting.curves.points[2]) == 2**18
    assert sorting.rows[1].figure.text().endswith(" at 2¹⁶")
    assert sorting.rows[1].figure.toolTip() == "skipped above 2¹⁶: quadratic"


def test_no_more_is_modeled_than_fills_the_gpu(qtbot, open_compare) -> None:
    tab = open_compare("spmv").compare
    click(qtbot, tab.views.buttons[LIMITS_VIEW])
    assert tab.largest.currentData() == 18


def test_each_variant_is_a_dot_below_the_roofs_of_the_gpu(qtbot, tab) -> None:
    show_view(qtbot, tab, ROOFLINE)
    plot = tab.modeled_views.roofline
    assert len(plot.dots) == sum(each.box.isChecked() for each in tab.rows)
    dot = plot.dots[1]
    found = make_modeled_time(model_requests(tab)[1])
    assert (dot.memory_intensity, dot.cache_intensity) == (
        found.operations / found.dram_bytes,
        found.operations / found.l2_bytes,
    )
    assert dot.rate == pytest.approx(found.operations / found.time_us / 1000)
    assert (plot.roofs.memory, plot.roofs.cache) == (4525, 8502)
    assert plot.roofs.operations == pytest.approx(2 * 128 * 132 * 1.98)
    assert model_requests(tab)[0].count_operations
    peak = plot.dots[-1]
    qtbot.waitUntil(lambda: len(plot.names) == len(plot.dots))
    at = plot.box.mapViewToScene(QPointF(math.log10(peak.cache_intensity), math.log10(peak.rate)))
    click(qtbot, plot.plot.viewport(), plot.plot.mapFromScene(at))
    assert tab.modeled_views.selected == peak.number


def test_the_roofline_says_what_its_dots_are_and_no_number_lies_on_another(qtbot, window_tab) -> None:
    window_tab.window_.resize(1024, 700)
    show_view(qtbot, window_tab, ROOFLINE)
    plot = window_tab.modeled_views.roofline
    (legend,) = [each for each in plot.findChildren(QLabel) if each.accessibleName() == "Legend"]
    assert legend.isVisible()
    assert "●  per byte of DRAM, below the solid roof" in legend.text()
    qtbot.waitUntil(lambda: len(plot.names) == len(plot.dots))
    assert not any(one.intersects(two) for one, two in combinations(plot.names.values(), 2))
    written = {each.toPlainText() for each in plot.plot.scene().items() if isinstance(each, pg.TextItem)}
    assert {str(each.number + 1) for each in plot.dots} <= written


def test_twice_the_bandwidth_moves_the_dots_and_can_be_taken_back(qtbot, tab) -> None:
    show_view(qtbot, tab, ROOFLINE)
    before = tab.modeled_views.roofline.dots[1]
    sliders = tab.modeled_views.what_if
    qtbot.keyClick(sliders.bandwidth.slider, Qt.Key.Key_Right)
    qtbot.waitUntil(lambda: model_requests(tab)[-1].gpu_scaling == GpuScaling(bandwidth=2.0))
    wait_for_models(qtbot, tab)
    assert tab.modeled_views.roofline.dots[1].rate > before.rate
    assert tab.modeled_views.roofline.roofs.memory == 2 * 4525
    assert "supposing ×2 bandwidth" in tab.modeled_views.status_label.toolTip()
    asked = len(model_requests(tab))
    click(qtbot, sliders.reset)
    qtbot.waitUntil(lambda: tab.modeled_views.roofline.roofs.memory == 4525)
    wait_for_models(qtbot, tab)
    assert tab.modeled_views.roofline.dots[1] == before
    assert len(model_requests(tab)) == asked, "what was modeled before is known"


def test_occupancy_and_time_go_by_the_size_of_blocks(qtbot, window_tab) -> None:
    show_view(qtbot, window_tab, OCCUPANCY)
    view = window_tab.modeled_views.occupancy
    assert (view.threads.value(), view.registers.value(), view.shared.value()) == (256, 32, 0)
    text = "up to 8 blocks of 256 threads: 64 of 64 warps at once (100%), limited by registers"
    assert view.occupancy_label.text() == text
    first = model_requests(window_tab)[:6]
    assert len({request.variant for request in first}) == 1, "the shown variant's block sizes come first"
    assert len({request.params["block"] for request in first}) == 6
    points = view.times.points[window_tab.modeled_views.selected]
    assert set(points) == {32, 64, 128, 256, 512, 1024}
    assert points[256] == window_tab.modeled_views.modeled[window_tab.modeled_views.selected].time_us
    view.registers.setValue(64)
    qtbot.waitUntil(lambda: "4 blocks of 256 threads: 32 of 64 warps at once (50%)" in view.occupancy_label.text())
    view.threads.setValue(96)
    qtbot.waitUntil(lambda: "10 blocks of 96 threads" in view.occupancy_label.text())
    view.threads.setValue(2048)
    qtbot.waitUntil(lambda: view.occupancy_label.text() == "This block exceeds the GPU's limits.")
    assert view.times.isVisible()
    window_tab.window_.appearance.set_text_size("lecture hall")
    window_tab.window_.resize(1024, 700)
    qtbot.waitUntil(view.times.isHidden)  # no room for two plots


def test_another_size_of_blocks_is_modeled(qtbot, tab) -> None:
    show_view(qtbot, tab, LIMITS_VIEW)
    qtbot.keyClick(tab.modeled_views.what_if.block.slider, Qt.Key.Key_Right)
    qtbot.waitUntil(lambda: model_requests(tab)[-1].params["block"] == "512")
    wait_for_models(qtbot, tab)


def test_another_gpu_is_modeled_anew(qtbot, tab) -> None:
    show_view(qtbot, tab, ROOFLINE)
    tab._modeling.select_gpu("t4")
    qtbot.waitUntil(lambda: model_requests(tab)[-1].gpu == "t4")
    wait_for_models(qtbot, tab)
    assert tab.modeled_views.roofline.roofs.memory < 400
    assert "never compared with measurements" in tab.modeled_views.status_label.toolTip()
    texts = [tab.quantity.itemText(place) for place in range(tab.quantity.count())]
    assert "modeled, T4" in texts
    assert "modeled, H200" not in texts


def test_an_edit_takes_what_was_modeled_away_and_is_modeled_itself(qtbot, tab) -> None:
    show_view(qtbot, tab, LIMITS_VIEW)
    document = tab.window().bench.sources.document("scan.cu")
    document.replace(document.text + "// another\n")
    assert not tab.modeled_views.results
    assert tab.rows[1].figure.text() == ""
    qtbot.waitUntil(lambda: model_requests(tab)[-1].sources == {"scan.cu": document.text})
    wait_for_models(qtbot, tab)
    assert tab.modeled_views.modeled


def test_curves_come_back_as_they_were(qtbot, tab) -> None:
    title, largest = tab.card.title.text(), tab.largest.currentData()
    show_view(qtbot, tab, LIMITS_VIEW)
    show_view(qtbot, tab, CURVES)
    assert (tab.card.title.text(), tab.largest.currentData()) == (title, largest)
    assert tab.measure_button.text() == "Measure"
    assert FakeHost.instances
