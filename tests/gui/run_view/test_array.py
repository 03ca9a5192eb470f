"""A pattern of arrays in the window: it runs without an image, on values made or read."""

from __future__ import annotations

import numpy as np
import pytest
from PyQt6.QtWidgets import QFileDialog

from gpu.jobs import LoadArray, SaveArray
from gui.run_view.array import ArrayPlot
from tests.gui.conftest import FakeHost, settle


@pytest.fixture
def reducing(qtbot, window):
    """A window that shows the reduction, run once."""
    window.choose_pattern("reduction")
    settle(qtbot, window)
    return window


def bars(plot):
    return plot._bars.opts


def test_it_runs_without_an_image(qtbot, make_window):
    window = make_window()
    assert window.bench.image is None
    window.choose_pattern("reduction")
    settle(qtbot, window)
    (request,) = FakeHost.made[-1].runs("reduction")
    assert request.inputs == {}
    assert window.page.numbers.verdict.text() == "✓ verified"


def test_the_result_of_a_reduction_is_shown_as_a_number(qtbot, reducing):
    view = reducing.page.view
    reducing.page.form.change(input="ramp", n=5, operator="sum")
    settle(qtbot, reducing)
    assert view.value.text() == "10"
    assert view.result.currentWidget().isAncestorOf(view.value)
    assert view._about_input.toolTip() == "5 × int32, ramp"
    assert view._about_result.toolTip() == "sum, shuffle"
    reducing.page.form.change(operator="max", n=2**31 // 1000, input="random")
    settle(qtbot, reducing)
    assert view.value.text() == str(int(reducing.bench.outcomes["reduction"].arrays["result"][0]))
    reducing.page.form.change(n=0, operator="sum", input="ramp")
    settle(qtbot, reducing)
    assert view.value.text() == "0"
    assert view._about_input.toolTip() == "0 × int32, ramp"


def test_few_elements_are_bars_from_zero_and_many_are_bands(qtbot):
    plot = ArrayPlot("Input")
    qtbot.addWidget(plot)
    plot.show()
    plot.show_outline(np.array([[3, -5], [3, -5]]), 2)
    assert bars(plot)["y0"].tolist() == [0, -5]
    assert bars(plot)["y1"].tolist() == [3, 0]
    plot.show_outline(np.array([[3, -5], [7, -1]]), 100)
    assert bars(plot)["y0"].tolist() == [3, -5]
    assert bars(plot)["x1"].tolist() == [50, 100]
    plot.show_outline(np.zeros((2, 0)), 0)
    assert plot._bars is None


def test_a_file_of_numbers_is_opened_where_arrays_are_shown(qtbot, reducing, tmp_path, monkeypatch):
    path = tmp_path / "numbers.txt"
    path.write_text("3\n5\n")
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *asked: (str(path), ""))
    reducing.files.ask_open()
    qtbot.waitUntil(lambda: reducing.bench.values is not None)
    settle(qtbot, reducing)
    assert reducing.page.view.value.text() == "8"
    assert reducing.page.form.values["input"] == "file"
    assert not reducing.page.form.fields["n"].isVisible()
    run = reducing.host.runs("reduction")[-1]
    assert run.inputs["values"].open().tolist() == [3.0, 5.0]
    reducing.page.form.change(input="ones", n=4)
    settle(qtbot, reducing)
    assert reducing.page.view.value.text() == "4"
    assert reducing.host.runs("reduction")[-1].inputs == {}


def test_a_file_that_cannot_be_read_changes_nothing(qtbot, reducing, tmp_path):
    shown, settings = reducing.page.view.value.text(), dict(reducing.page.form.values)
    reducing.open(tmp_path / "nowhere.csv")
    qtbot.waitUntil(lambda: "There is no file" in reducing.banner.message.text())
    settle(qtbot, reducing)
    assert reducing.page.view.value.text() == shown
    assert reducing.page.form.values == settings


def test_file_without_a_file_is_told_and_the_last_result_stays(qtbot, reducing):
    shown = reducing.page.view.value.text()
    reducing.page.form.change(input="file")
    qtbot.waitUntil(lambda: "No file of numbers is open" in reducing.banner.message.text())
    assert reducing.page.view.value.text() == shown


def test_a_file_of_last_time_is_not_asked_for_again(qtbot, reducing, make_window, tmp_path):
    path = tmp_path / "numbers.csv"
    path.write_text("3\n")
    reducing.open(path)
    qtbot.waitUntil(lambda: reducing.bench.values is not None)
    settle(qtbot, reducing)
    reducing.close()
    again = make_window()
    assert again.bench.chosen == "reduction"
    assert again.bench.settings["reduction"].params["input"] == "random"


def test_values_go_along_to_another_engine(qtbot, reducing, tmp_path):
    path = tmp_path / "numbers.csv"
    path.write_text("3\n4\n")
    reducing.open(path)
    qtbot.waitUntil(lambda: reducing.bench.values is not None)
    settle(qtbot, reducing)
    reducing.set_engine("simulator")
    settle(qtbot, reducing)
    host = FakeHost.made[-1]
    assert host is not reducing.host
    assert host.runs("reduction")[-1].inputs["values"].open().tolist() == [3.0, 4.0]


def test_an_image_that_is_opened_goes_to_a_pattern_of_images(qtbot, reducing, colour):
    assert not [r for r in reducing.host.requests if isinstance(r, LoadArray)]
    reducing.open(colour)
    settle(qtbot, reducing)
    assert reducing.bench.chosen == "convolution"
    qtbot.waitUntil(lambda: reducing.bench.image.path == colour)
    assert "reduction" in reducing.bench.outcomes, "its result has nothing to do with the image"


def test_the_result_is_saved_as_values(qtbot, reducing, tmp_path, monkeypatch):
    asked = []

    def answer(parent, title, suggested, kinds):
        asked.append((suggested, kinds))
        return str(tmp_path / "sum.npy"), ""

    monkeypatch.setattr(QFileDialog, "getSaveFileName", answer)
    reducing.files.ask_save()
    qtbot.waitUntil(lambda: (tmp_path / "sum.npy").exists())
    ((suggested, kinds),) = asked
    assert suggested.endswith("random-reduction-shuffle.csv")
    assert "image" not in kinds.lower()
    (save,) = [request for request in reducing.host.requests if isinstance(request, SaveArray)]
    assert save.array.path == reducing.bench.outcomes["reduction"].handles["result"].path


def test_the_scale_of_counts_does_not_concern_it(qtbot, reducing):
    reducing.toggle_scale()
    reducing.choose_pattern("histogram")
    settle(qtbot, reducing)
    assert reducing.page.view.levels.scale.chosen == "linear"
