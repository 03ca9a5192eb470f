"""The timeline of a kernel of the user's own, launched as its form says."""

from __future__ import annotations

import pytest
from PyQt6.QtCore import Qt

from gpu.engines.null import NullEngine
from gpu.messages.kernels import StepKernel
from gpu.messages.timelines import TimelineKernel
from gpu.run.handlers.execution import execute_request
from gpu.timing import compiler
from tests.gui.conftest import FakeHost
from tests.gui.window.test_main_window import drop_path

TEXT = """__global__ void halve(float *data, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        data[i] = data[i] * 0.5f;
}
"""


@pytest.fixture
def page(qtbot, make_window, tmp_path, monkeypatch):
    """Return the page of a kernel, whose launches are recorded and modeled in this process."""
    monkeypatch.setattr(compiler, "find_nvcc", lambda: "")
    answered = FakeHost.result_of

    def answer(self, request):
        if isinstance(request, StepKernel | TimelineKernel):
            return execute_request(NullEngine(), request, self.folder, lambda progress: None)
        return answered(self, request)

    monkeypatch.setattr(FakeHost, "result_of", answer)
    window = make_window()
    (tmp_path / "own.cu").write_text(TEXT)
    assert drop_path(window, tmp_path / "own.cu")
    qtbot.waitUntil(lambda: window.user_file.visible_page is not None and bool(window.user_file.visible_page.form.rows))
    return window.user_file.visible_page


def test_its_warps_are_timed_with_what_the_form_says(qtbot, page):
    page.form.grid.setText("264")
    page.tabs.setCurrentIndex(1)
    tab, view = page.step, page.step.panes.warps
    qtbot.waitUntil(lambda: tab.is_up_to_date, timeout=20_000)
    qtbot.mouseClick(tab.panes.kinds.buttons["Timeline"], Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: view.run is not None, timeout=20_000)
    assert view.run.timelines.grid == (264, 1, 1)
    assert view.run.timelines.blocks_per_multiprocessor == 2
    assert "halve<<<264, " in view.title.text()
    assert not view.launches.isVisible()  # there is one
    lit = set()
    for cycle in range(0, view.player.end, 7):
        view.player.go_to(cycle)
        lit |= tab.source.code._highlighted_lines
    assert lit <= {1, 2, 3, 4, 5}
    assert 4 in lit
