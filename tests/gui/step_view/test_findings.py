"""The Step tab opens at the first finding of a recording: its step, its thread, and its elements."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from PyQt6.QtCore import QPoint, Qt
from PyQt6.QtGui import QImage

from gpu.engines.null import NullEngine
from gpu.messages.kernels import StepKernel
from gpu.run.handlers.execution import execute_request
from gui.painting.theme import look
from gui.step_view.arrays.panels import Panel
from gui.step_view.recording.finding_pictures import build_finding_pictures
from tests.gui.conftest import FakeHost
from tests.gui.step_view.conftest import wait_for_recording
from tests.gui.window.test_main_window import drop_path

UNWRITTEN = """__shared__ float s[64];
int i = threadIdx.x;
if (i < 40) s[i] = a[i];
__syncthreads();
b[i] = s[(i + 20) & 63] * 2;"""


@pytest.fixture
def step_kernel(qtbot, make_window, tmp_path, monkeypatch):
    """Return a function that opens the Step tab of a kernel with an array `a`, recorded in this process."""
    answered = FakeHost.result_of

    def answer(self, request):
        if isinstance(request, StepKernel):
            return execute_request(NullEngine(), request, self.folder, lambda progress: None)
        return answered(self, request)

    monkeypatch.setattr(FakeHost, "result_of", answer)

    windows, numbers = [], itertools.count()

    def open_at(body, *, count=64, grid=1, block=64):
        if not windows:
            windows.append(make_window())
        window = windows[0]
        path = tmp_path / f"own-{next(numbers)}.cu"
        path.write_text(f"__global__ void own(const float *a, float *b) {{\n{body}\n}}\n")
        assert drop_path(window, path)
        files = window.user_file
        qtbot.waitUntil(
            lambda: (
                files.visible_page is not None
                and files.visible_page.path == path
                and bool(files.visible_page.form.rows)
            )
        )
        page = files.visible_page
        page.form.grid.setText(str(grid))
        page.form.block.setText(str(block))
        for row in page.form.rows:
            row.number.setText(str(count))
        page.tabs.setCurrentIndex(1)
        wait_for_recording(qtbot, page.step)
        return page.step

    return open_at


def count_red_pixels(widget):
    image = widget.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    pixels = np.frombuffer(image.constBits().asarray(image.sizeInBytes()), np.uint32)
    return int((pixels & 0xFFFFFF == int(look().theme.bad[1:], 16)).sum())


def find_panel(tab, name):
    return next(panel for panel in tab.panes.arrays.panels if panel.title.split()[0] == name)


def click_cell(qtbot, tab, panel, cell):
    view = tab.panes.arrays
    size, places = view._arrange_grids()
    x, y = places[view.panels.index(panel)]
    row, column = divmod(cell, panel.shape[1])
    at = QPoint(round(x + (column + 0.5) * size), round(y + view._title_height() + (row + 0.5) * size))
    qtbot.mouseClick(view, Qt.MouseButton.LeftButton, pos=at)


def test_an_access_past_the_end_is_shown_beside_the_array(qtbot, step_kernel):
    tab = step_kernel("int i = blockIdx.x * blockDim.x + threadIdx.x;\nb[i] = a[i] + 1;", count=1000, grid=32, block=32)
    assert (tab.player.moment, tab.followed) == (2, (31, 8))
    assert tab.panes.kinds.chosen == "Arrays"
    assert tab.source.code._executing_line == 3
    assert tab.panes.statement.text().startswith("block 31, thread 8:  b[1000] = a[1000] + 1")
    assert "invalid access" in tab.panes.lanes.traffic.text()
    panel = find_panel(tab, "a")
    assert panel.outside == tuple(range(1000, 1024))
    assert panel.has_value.sum() == 1000, "the read shows that the array has values"
    assert not find_panel(tab, "b").outside
    assert count_red_pixels(tab.panes.arrays) > 50
    click_cell(qtbot, tab, panel, int(panel.find_cells(np.array([1003]))[0]))
    assert tab.followed == (31, 11)
    cells = tab.panes.arrays.panels[0].shape
    qtbot.keyClick(tab.panes.arrays, Qt.Key.Key_Home)
    assert tab.player.moment == 0
    assert not count_red_pixels(tab.panes.arrays)
    assert tab.panes.arrays.panels[0].shape == cells, "no step moves the arrays"


def test_elements_out_of_bounds_are_the_nearest_ones(step_kernel):
    for body, name, outside, thread in (
        ("b[i] = a[i - 1];", "a", (-1,), (0, 0)),
        ("b[i] = a[threadIdx.x - 1];", "a", (2**32 - 1,), (0, 0)),
        ("__shared__ float s[48];\ns[i] = 1;", "s", tuple(range(48, 64)), (0, 48)),
        ("__shared__ float s[8];\nif (blockIdx.x == 1)\ns[i / 7] = 1;", "s", (8, 9), (1, 56)),
        ("b[i * 1000 - 2000] = 1;", "b", (-2000, -1000, *range(1000, 33000, 1000)), (0, 0)),
        ("b[5 * i] = 1;", "b", tuple(range(65, 65 + 5 * 32, 5)), (0, 13)),
    ):
        tab = step_kernel(f"int i = threadIdx.x;\n{body}", grid=2)
        assert tab.followed == thread, body
        panel = find_panel(tab, name)
        assert panel.outside == outside
        cells = panel.find_cells(np.array(outside)).tolist()
        assert cells == panel.outside_cells.tolist()
        assert [panel.element_at(cell) for cell in cells] == list(outside)
        first, last = panel.find_cells(np.array([0, panel.count - 1])).tolist()
        assert all(cell < first if element < 0 else cell > last for cell, element in zip(cells, outside, strict=True))
        assert panel.is_inside.sum() == panel.count == tab.models.recording.launches[0].trace.arrays[panel.number].count
        assert count_red_pixels(tab.panes.arrays) > 20, body


def test_an_access_past_a_large_array_shows_its_end(step_kernel):
    tab = step_kernel("b[threadIdx.x] = a[9990 + threadIdx.x];", count=10_000)
    panel = find_panel(tab, "a")
    assert "elements 9936 to 9999" in panel.title
    assert panel.outside == tuple(range(10_000, 10_032))
    assert tab.followed == (0, 10)


def test_each_kind_of_finding_is_opened_at_its_step_and_thread(step_kernel):
    for kind, body, thread in (
        ("race", "__shared__ float s[64];\nint i = threadIdx.x;\ns[i] = a[i];\nb[i] = s[63 - i];", (0, 0)),
        ("uninitialized", UNWRITTEN, (0, 20)),
        ("barrier", "int i = threadIdx.x;\nb[i] = a[i] * 2;\nif (i < 40)\n__syncthreads();", (0, 40)),
        ("misaligned", "int i = threadIdx.x;\nb[i] = a[i] * 2;\nfloat2 p = *(const float2 *)(a + i);\nb[i] = p.x;",
         (0, 1)),
    ):  # fmt: skip
        tab = step_kernel(body)
        found = tab.models.data.findings[0]
        assert (found.finding.kind, found.thread, tab.followed) == (kind, thread, thread)
        assert tab.player.moment == found.moment + 1
        assert tab.source.code._executing_line == found.finding.positions[-1].line
        for picture, view in (("Arrays", tab.panes.arrays), ("Flow", tab.panes.flow)):
            tab.panes.kinds.choose(picture)
            assert count_red_pixels(view), (kind, picture)
        if kind == "uninitialized":  # a cell of Flow shows the result, and the picture the element that was read
            assert build_finding_pictures(tab.models)[0].caption.endswith("thread 20 at s[40]")


def test_a_repaired_kernel_returns_to_its_picture_and_a_known_finding_keeps_the_step(qtbot, open_tab):
    tab = open_tab("compaction", "three-kernels")
    assert tab.panes.kinds.chosen == "Flow"
    document, text = tab.source.document, tab.source.document.text
    document.replace(re.sub(r"if \(i < n\) (flags\[i\] = KEPT)", r"\1", text))
    wait_for_recording(qtbot, tab)
    assert (tab.panes.kinds.chosen, tab.followed) == ("Arrays", (0, 16))
    assert find_panel(tab, "in").outside == tuple(range(16, 32))
    tab.player.go_to(1)
    document.replace(document.text + "\n")
    wait_for_recording(qtbot, tab)
    assert (tab.player.moment, tab.followed) == (1, None)
    tab.player.go_to(2)
    tab.settings.form.change_values(n=20)
    wait_for_recording(qtbot, tab)
    assert (tab.player.moment, tab.followed) == (2, (0, 20))
    document.replace(text)
    wait_for_recording(qtbot, tab)
    assert (tab.panes.kinds.chosen, tab.followed) == ("Flow", None)


def test_elements_beside_rows_and_columns_have_rows_of_their_own():
    values = np.arange(12).reshape(3, 4)
    panel = Panel(0, "a  global", 0, values, np.ones((3, 4), bool), 4).add_outside([13, -1, 12])
    assert panel.shape == (5, 4)
    assert panel.find_cells(np.array([-1, 0, 11, 12, 13, 14])).tolist() == [3, 4, 15, 16, 17, -1]
    assert [panel.format_index(cell) for cell in (3, 4, 15, 16)] == ["[-1]", "[0][0]", "[2][3]", "[12]"]
    assert panel.element_at(2) is None
    assert panel.wrap_rows(2) is panel
