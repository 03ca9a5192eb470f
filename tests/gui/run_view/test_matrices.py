"""Patterns of matrices in the window: three pictures of a product, rows of a softmax, sizes compared."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PyQt6.QtCore import QPointF, QRectF

from gpu.declaration.matrices import color_matrix, present
from gpu.messages.files import LoadArray
from tests.gui.conftest import FakeHost, wait_until_idle


@pytest.fixture
def first_pattern():
    return "matmul"


@pytest.fixture
def multiplying(qtbot, window):
    """A window that shows the product of a 6 x 4 and a 4 x 5 matrix."""
    window.page.form.change_values(n=5, m=6, k=4, input="digits")
    wait_until_idle(qtbot, window)
    return window


def point_at(qtbot, pane, x, y):
    at = pane.box.mapViewToScene(QPointF(x + 0.5, y + 0.5))
    viewport = pane._widget.viewport()
    qtbot.mouseMove(viewport, pane._widget.mapFromScene(at))


def test_the_three_matrices_are_shown_with_their_sizes(multiplying):
    shown = multiplying.page.view.cards
    assert list(shown) == ["A", "B", "C"]
    assert [each.pane.item.pyramid.shape for each in shown.values()] == [(6, 4), (4, 5), (6, 5)]
    assert shown["A"].element_label.toolTip().startswith("6 × 4   ")


def test_an_element_of_the_product_frames_its_row_and_its_column(qtbot, multiplying):
    view = multiplying.page.view
    product = view.cards["C"]
    with qtbot.waitSignal(product.pane.hovered):
        point_at(qtbot, product.pane, 3, 2)
    assert view.cards["A"].pane.item.band == QRectF(0, 2, 4, 1)
    assert view.cards["B"].pane.item.band == QRectF(3, 0, 1, 4)
    a, b = view.cards["A"].values, view.cards["B"].values
    assert view.product_label.text().startswith(f"C[2][3] = {float(a[2] @ b[:, 3]):.7g}\n")
    assert "4 products" in view.product_label.text()
    product.pane.hovered.emit(None)
    assert view.cards["A"].pane.item.band is None
    assert "Point at an element" in view.product_label.text()


def test_factors_frame_what_they_make(qtbot, multiplying):
    view = multiplying.page.view
    with qtbot.waitSignal(view.cards["B"].pane.hovered):
        point_at(qtbot, view.cards["B"].pane, 4, 1)
    assert view.cards["C"].pane.item.band == QRectF(4, 0, 1, 6)
    assert view.cards["B"].element_label.toolTip() == f"B[1][4] = {view.cards['B'].values[1, 4]:.7g}"
    with qtbot.waitSignal(view.cards["A"].pane.hovered):
        point_at(qtbot, view.cards["A"].pane, 1, 5)
    assert view.cards["C"].pane.item.band == QRectF(0, 5, 5, 1)


def test_each_run_of_square_matrices_is_a_point_of_its_variants_curve(qtbot, multiplying):
    rates = multiplying.page.view.rates
    assert rates.points == {1: {512: 12.5}}, "6 x 5 x 4 is none"
    assert rates.title.text() == "Mpixel/s over n", "which is what the pretended engine says"
    multiplying.page.form.change_values(n=32, m=0, k=0)
    wait_until_idle(qtbot, multiplying)
    multiplying.choose_variant("peak")
    wait_until_idle(qtbot, multiplying)
    multiplying.page.form.change_values(n=1024)
    wait_until_idle(qtbot, multiplying)
    assert rates.points == rates.curves.points == {1: {512: 12.5, 32: 12.5}, 7: {32: 12.5, 1024: 12.5}}
    low, high = rates.curves.plot.getViewBox().viewRange()[0]
    assert low <= 5 < 10 <= high
    assert "<b>8</b>" in rates.legend.text()
    assert "2  Naive: 12.5 at 32, 12.5 at 512" in rates.legend.toolTip()


def test_wrong_runs_are_no_points_and_another_engine_begins_anew(qtbot, multiplying):
    rates = multiplying.page.view.rates
    made = []
    add = rates.add_run
    rates.add_run = lambda outcome, size: (made.append(outcome), add(outcome, size))
    multiplying.page.form.change_values(n=32, m=0, k=0)
    wait_until_idle(qtbot, multiplying)
    wrong = replace(made[-1], report=replace(made[-1].report, verified=False))
    add(wrong, 64)
    assert rates.points == {1: {512: 12.5, 32: 12.5}}
    add(replace(made[-1], report=replace(made[-1].report, device="another")), 128)
    assert rates.points == rates.curves.points == {1: {128: 12.5}}


def test_a_wide_matrix_has_its_title_above_and_others_beside(multiplying):
    shown = multiplying.page.view.cards
    assert [each.side_label.isVisible() for each in shown.values()] == [True, False, True]
    assert [each.element_label.isVisible() for each in shown.values()] == [False, True, False]
    for each in shown.values():
        each.show_texts("one", "two")
        assert (each.element_label.toolTip(), each.side_label.text()) == ("one   two", "one\ntwo")


def test_another_size_takes_the_place_of_the_last(qtbot, multiplying):
    multiplying.page.form.change_values(n=3, m=0, k=0)
    wait_until_idle(qtbot, multiplying)
    shown = multiplying.page.view.cards
    assert [each.pane.item.pyramid.shape for each in shown.values()] == [(3, 3)] * 3


@pytest.mark.parametrize("first_pattern", ["softmax"])
def test_input_and_softmax_are_read_together(qtbot, window):
    window.page.form.change_values(n=7, rows=3)
    wait_until_idle(qtbot, window)
    shown = window.page.view.cards
    assert list(shown) == ["Input", "Softmax"]
    with qtbot.waitSignal(shown["Input"].pane.hovered):
        point_at(qtbot, shown["Input"].pane, 6, 1)
    assert all(each.element_label.toolTip().startswith("[1][6] = ") for each in shown.values())
    assert shown["Softmax"].pane.item.band == QRectF(0, 1, 7, 1)
    np.testing.assert_allclose(shown["Softmax"].values.sum(axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize("first_pattern", ["transpose"])
def test_an_element_and_the_place_that_it_went_to_are_read_together(qtbot, window):
    window.page.form.change_values(n=7, rows=3)
    wait_until_idle(qtbot, window)
    given, turned = window.page.view.cards.values()
    assert (given.shape, turned.shape) == ((3, 7), (7, 3))
    for here, there in ((given, turned), (turned, given)):
        column, row = here.shape[1] - 1, 1
        with qtbot.waitSignal(here.pane.hovered):
            point_at(qtbot, here.pane, column, row)
        assert here.element_label.toolTip().startswith(f"[{row}][{column}] = ")
        assert there.element_label.toolTip().startswith(f"[{column}][{row}] = ")
        assert here.element_label.toolTip().split(" = ")[1] == there.element_label.toolTip().split(" = ")[1]
        assert here.pane.item.band == QRectF(0, row, here.shape[1], 1)
        assert there.pane.item.band == QRectF(row, 0, 1, there.shape[0])


@pytest.mark.parametrize("first_pattern", ["stencil"])
def test_a_middle_plane_has_the_rows_of_the_whole_grid(qtbot, window):
    window.page.form.change_values(n=6, rows=5, planes=4, input="random")
    wait_until_idle(qtbot, window)
    shown = window.page.view.cards
    assert {each.first_row for each in shown.values()} == {10}
    assert all("from row 10 on" in each.element_label.toolTip() for each in shown.values())
    with qtbot.waitSignal(shown["Result"].pane.hovered):
        point_at(qtbot, shown["Result"].pane, 4, 2)
    assert all(each.element_label.toolTip().startswith("[12][4] = ") for each in shown.values())
    with qtbot.waitSignal(window.page.view.element_selected) as pointed:
        shown["Result"].pane.picked.emit((4, 2))
    assert (pointed.args[0].element, pointed.args[0].title) == ((12, 4), "Result[12][4]")


def test_a_file_is_read_as_a_matrix(qtbot, multiplying, tmp_path):
    np.save(tmp_path / "a.npy", np.ones((3, 4)))
    multiplying.files.open_file(tmp_path / "a.npy")
    wait_until_idle(qtbot, multiplying)
    loads = [request for request in FakeHost.instances[-1].requests if isinstance(request, LoadArray)]
    assert [(request.path, request.dimensions) for request in loads] == [(str(tmp_path / "a.npy"), 2)]
    shown = multiplying.page.view.cards
    assert [each.shape for each in shown.values()] == [(3, 4), (4, 5), (3, 5)]
    assert (shown["A"].values == 1).all()


def test_a_matrix_is_none_of_an_array_patterns_files(qtbot, multiplying, tmp_path):
    """Each pattern keeps its own choice of input, but there is one open file."""
    multiplying.choose_pattern("reduction")
    np.savetxt(tmp_path / "line.csv", np.arange(4))
    multiplying.files.open_file(tmp_path / "line.csv")
    wait_until_idle(qtbot, multiplying)
    multiplying.choose_pattern("matmul")
    np.save(tmp_path / "a.npy", np.ones((3, 4)))
    multiplying.files.open_file(tmp_path / "a.npy")
    wait_until_idle(qtbot, multiplying)
    multiplying.choose_pattern("reduction")
    qtbot.waitUntil(lambda: "No file of numbers is open" in multiplying.banner.message.text())


def test_what_is_not_shown_is_said(qtbot):
    values = np.arange(5000 * 2, dtype=np.float32).reshape(5000, 2)
    made = present({"A": values})
    np.testing.assert_array_equal(made["A"], values[::3, ::3])
    assert made["A shape"].tolist() == [5000, 2]
    assert made["A range"].tolist() == [0, 4998 * 2]


def test_colors_run_from_least_to_greatest_and_what_is_no_number_is_red():
    values = np.array([[0, 5, 10, np.nan, -np.inf, np.inf]], np.float32)
    low, _, high, missing, below, above = color_matrix(values, 0, 10)[0].tolist()
    assert low == below == [68, 1, 84]
    assert high == above == [253, 231, 37]
    assert missing == [214, 39, 40]
    assert (color_matrix(np.full((2, 2), np.nan, np.float32), np.nan, np.nan) == (214, 39, 40)).all()


def test_parts_of_a_matrix_are_colored_as_the_whole(monkeypatch):
    values = np.random.default_rng(0).uniform(-1, 11, (7, 3)).astype(np.float32)
    values[4, 1] = np.nan
    whole = color_matrix(values, 0, 10)
    monkeypatch.setattr("gpu.declaration.matrices._COLORED_ELEMENTS", 6)
    np.testing.assert_array_equal(color_matrix(values, 0, 10), whole)


def test_throughput_is_compared_over_sides(qtbot, multiplying):
    multiplying.page.tabs.setCurrentIndex(2)
    tab = multiplying.page.compare
    assert list(tab.unit.buttons) == ["GFLOP/s", "GB/s"]
    tab.largest.setCurrentIndex(tab.largest.findData(7))
    for each in tab.rows[2:]:
        each.box.setChecked(False)
    tab.measure()
    qtbot.waitUntil(lambda: not tab.sweep.running, timeout=20_000)
    assert sorted({point.n for point in tab.points}) == [32, 64, 128]
    # The pretended engine always says 12.5, and takes 20 ms.
    assert tab.curves.points[0] == {32: 12.5, 64: 12.5, 128: 12.5}
