"""A kernel file's launches, modeled side by side."""

from __future__ import annotations

import pytest
from PyQt6.QtCore import Qt

from gpu.messages.modeled_time import ModelKernel
from gui.user_kernel.compare import BLOCKS, COUNTS
from tests.gui.conftest import wait_until_idle

TEXT = """
__global__ void once(float *x, int n) { int i = threadIdx.x; if (i < n) x[i] += 1; }
__global__ void twice(float *x, int n) { int i = threadIdx.x; if (i < n) x[i] *= 2; }
int main() { once<<<4, 64>>>(0, 256); }
"""


@pytest.fixture
def kernel_page(qtbot, window, tmp_path):
    path = tmp_path / "own.cu"
    path.write_text(TEXT)
    wait_until_idle(qtbot, window)
    window.user_file.open(path)
    window.user_file.page.kernels_requested.emit()
    page = window.user_file.page
    qtbot.waitUntil(lambda: page.form.signature is not None)
    page.tabs.setCurrentIndex(2)
    page.modeling_host = window.bench.modeling
    return page


def model_requests(page):
    return [request for request in page.modeling_host._jobs._host.requests if isinstance(request, ModelKernel)]


def test_kernels_of_a_file_are_modeled_side_by_side(qtbot, kernel_page) -> None:
    tab = kernel_page.compare
    qtbot.mouseClick(tab.views.buttons["Limits"], Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: len(tab.modeled_views.modeled) == 2)
    assert [request.launch.kernel for request in model_requests(kernel_page)] == ["once", "twice"]
    table = tab.modeled_views.limits
    assert [" ".join(table.item(line, 0).text().split()) for line in range(2)] == ["1 once", "2 twice"]
    assert tab.count_button.text() == "Model"
    qtbot.mouseClick(tab.views.buttons[COUNTS], Qt.MouseButton.LeftButton)
    assert tab.count_button.text() == "Count"


def test_blocks_of_several_sizes_are_modeled_with_as_many_threads(qtbot, kernel_page) -> None:
    tab = kernel_page.compare
    tab.comparison.choose(BLOCKS)
    qtbot.mouseClick(tab.views.buttons["Roofline"], Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not tab.modeled_views.busy and len(tab.modeled_views.modeled) == 6)
    assert {request.launch.grid[0] * request.launch.block[0] for request in model_requests(kernel_page)[:4]} == {256}
    assert len(tab.modeled_views.roofline.dots) == 6
    assert tab.modeled_views.what_if.blocks == ()


def test_a_slider_gives_all_of_them_other_blocks(qtbot, kernel_page) -> None:
    tab = kernel_page.compare
    qtbot.mouseClick(tab.views.buttons["Limits"], Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: len(tab.modeled_views.modeled) == 2)
    qtbot.keyClick(tab.modeled_views.what_if.block.slider, Qt.Key.Key_Right)
    qtbot.waitUntil(lambda: model_requests(kernel_page)[-1].launch.block == (128, 1, 1))
    assert model_requests(kernel_page)[-1].launch.grid == (2, 1, 1)
