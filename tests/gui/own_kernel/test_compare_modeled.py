"""A kernel file's launches, modeled side by side."""

from __future__ import annotations

import pytest
from PyQt6.QtCore import Qt

from gpu.messages.requests import ModelKernel
from gui.own_kernel.compare import BLOCKS, COUNTS
from tests.gui.conftest import settle

TEXT = """
__global__ void once(float *x, int n) { int i = threadIdx.x; if (i < n) x[i] += 1; }
__global__ void twice(float *x, int n) { int i = threadIdx.x; if (i < n) x[i] *= 2; }
int main() { once<<<4, 64>>>(0, 256); }
"""


@pytest.fixture
def own(qtbot, window, tmp_path):
    path = tmp_path / "own.cu"
    path.write_text(TEXT)
    settle(qtbot, window)
    window.own.open(path)
    window.own.page.kernels_wanted.emit()
    page = window.own.page
    qtbot.waitUntil(lambda: page.form.signature is not None)
    page.tabs.setCurrentIndex(2)
    page.modeler = window.bench.modeling
    return page


def models(page):
    return [request for request in page.modeler._jobs._host.requests if isinstance(request, ModelKernel)]


def test_kernels_of_a_file_are_modeled_side_by_side(qtbot, own) -> None:
    tab = own.compare
    qtbot.mouseClick(tab.views.buttons["Limits"], Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: len(tab.modeled.modeled) == 2)
    assert [request.launch.kernel for request in models(own)] == ["once", "twice"]
    table = tab.modeled.limits
    assert [table.item(line, 0).text() for line in range(2)] == ["1  once", "2  twice"]
    assert tab.count_button.text() == "Model"
    qtbot.mouseClick(tab.views.buttons[COUNTS], Qt.MouseButton.LeftButton)
    assert tab.count_button.text() == "Count"


def test_blocks_of_several_sizes_are_modeled_with_as_many_threads(qtbot, own) -> None:
    tab = own.compare
    tab.way.choose(BLOCKS)
    qtbot.mouseClick(tab.views.buttons["Roofline"], Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not tab.modeled.busy and len(tab.modeled.modeled) == 6)
    assert {request.launch.grid[0] * request.launch.block[0] for request in models(own)[:4]} == {256}
    assert len(tab.modeled.roofline.dots) == 6
    assert tab.modeled.what_if.blocks == ()


def test_a_slider_gives_all_of_them_other_blocks(qtbot, own) -> None:
    tab = own.compare
    qtbot.mouseClick(tab.views.buttons["Limits"], Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: len(tab.modeled.modeled) == 2)
    qtbot.keyClick(tab.modeled.what_if.block.slider, Qt.Key.Key_Right)
    qtbot.waitUntil(lambda: models(own)[-1].launch.block == (128, 1, 1))
    assert models(own)[-1].launch.grid == (2, 1, 1)
