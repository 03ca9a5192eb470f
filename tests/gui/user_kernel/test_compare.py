"""The Compare tab of a kernel file, with real keys and clicks."""

from __future__ import annotations

import pytest
from PyQt6.QtCore import Qt

from gpu.messages.events import Failure
from gpu.messages.kernels import CountKernel
from gui.user_kernel.counts_table import FINDINGS, LINES, RESULT
from tests.gui.conftest import FakeHost
from tests.gui.window.test_main_window import drop_path, press_key

TEXT = """__global__ void near(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i];
}
__global__ void apart(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i * 17 % n] = in[i * 17 % n];
}
__global__ void racing(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[0] = in[i];
}
__global__ void short_of(const float *in, float *out, int n) {
    __shared__ float s[64];
    s[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
    out[blockIdx.x * blockDim.x + threadIdx.x] = s[threadIdx.x];
}
__global__ void clear(int *out) { out[threadIdx.x] = 0; }
"""


@pytest.fixture
def page(qtbot, window, tmp_path):
    path = tmp_path / "mine.cu"
    path.write_text(TEXT)
    assert drop_path(window, path)
    qtbot.waitUntil(lambda: window.user_file.visible_page is not None and bool(window.user_file.visible_page.form.rows))
    made = window.user_file.visible_page
    made.side = next(host for host in FakeHost.instances if host.engine == "simulator")
    made.tabs.setCurrentIndex(2)
    return made


def count_requests(page):
    return [request.launch for request in page.side.requests if isinstance(request, CountKernel)]


def count_launches(qtbot, page):
    qtbot.mouseClick(page.compare.count_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not page.compare.busy)


def line(page, name):
    table = page.compare.table
    return [table.item(LINES.index(name), column).text() for column in range(table.columnCount())]


def test_kernels_of_a_file_are_counted_on_the_same_arguments(qtbot, page):
    compare = page.compare
    assert [(box.text(), box.isEnabled()) for box in compare.boxes] == [
        ("near", True), ("apart", True), ("racing", True), ("short_of", True), ("clear", False),
    ]  # fmt: skip
    assert compare.boxes[4].toolTip() == "clear has other parameters than near."
    assert not count_requests(page), "nothing is counted before it is asked for"
    count_launches(qtbot, page)
    assert [launch.kernel for launch in count_requests(page)] == ["near", "apart", "racing", "short_of"]
    assert len({launch.arguments for launch in count_requests(page)}) == 1
    assert line(page, FINDINGS) == ["none", "none", "race in line 11", "none"]
    assert line(page, RESULT) == ["", "same", "different", "same"]
    near, apart = (float(figure.replace("\u202f", "")) for figure in line(page, "bytes moved")[:2])
    assert near == 2 * 64 * 4 < apart
    assert compare.findings_label.text() == "racing: race in line 11. Its counts are those of an incorrect kernel."
    assert "the same on every machine" in compare.status_label.accessibleDescription()


def test_one_kernel_in_blocks_of_several_sizes_and_what_fails_is_said(qtbot, page):
    page.form.kernel.setCurrentText("short_of")
    page.form.kernel.lineEdit().editingFinished.emit()
    qtbot.waitUntil(lambda: page.form.signature.name == "short_of")
    qtbot.mouseClick(page.compare.comparison.buttons["Block sizes"], Qt.MouseButton.LeftButton)
    count_launches(qtbot, page)
    assert [(launch.grid[0], launch.block[0]) for launch in count_requests(page)] == [
        (2, 32), (1, 64), (1, 128), (1, 256), (1, 512), (1, 1024),
    ]  # fmt: skip
    assert line(page, FINDINGS) == ["none", "none", *["failed"] * 4]
    assert "128 threads: Invalid" in page.compare.findings_label.text()
    assert "element 64 of" in page.compare.findings_label.text()


def test_what_is_not_ticked_is_not_counted_and_f5_counts(qtbot, window, page):
    for number in (1, 2, 3):
        page.compare.boxes[number].click()
    assert page.compare.table.columnCount() == 1
    press_key(qtbot, window, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: not page.compare.busy)
    assert [launch.kernel for launch in count_requests(page)] == ["near"]
    page.compare.boxes[0].click()
    assert not page.compare.count_button.isEnabled()


def test_counting_can_be_stopped(qtbot, window, page):
    page.side.answers_later = True
    qtbot.mouseClick(page.compare.count_button, Qt.MouseButton.LeftButton)
    assert page.compare.count_button.text() == "Stop"
    assert window.header.stop.isEnabled()
    press_key(qtbot, window, Qt.Key.Key_Escape)
    assert not page.compare.busy
    assert page.compare.count_button.text() == "Count"
    assert page.side.cancels == 1
    page.side.answers_later = False
    count_launches(qtbot, page)
    assert line(page, FINDINGS)[0] == "none"


def test_leaving_the_tab_stops(qtbot, page):
    page.side.answers_later = True
    page.compare.count_launches()
    page.tabs.setCurrentIndex(0)
    assert not page.compare.busy


def test_another_text_or_launch_is_compared_anew(qtbot, page):
    count_launches(qtbot, page)
    page.tabs.setCurrentIndex(0)
    page.tabs.setCurrentIndex(2)
    assert line(page, FINDINGS)[0] == "none", "what was counted is there as long as it is true"
    page.tabs.setCurrentIndex(0)
    page.form.grid.setText("3")
    page.tabs.setCurrentIndex(2)
    assert line(page, FINDINGS) == [""] * 4
    count_launches(qtbot, page)
    assert count_requests(page)[-1].grid == (3,)
    page.document.replace(TEXT.replace("near", "nearby"))
    qtbot.waitUntil(lambda: page.compare.boxes[0].text() == "nearby")
    assert line(page, FINDINGS) == [""] * 4


def test_a_launch_that_is_none_is_refused_with_its_reason(qtbot, page):
    page.tabs.setCurrentIndex(0)
    page.form.block.setText("many")
    page.tabs.setCurrentIndex(2)
    assert "The block must be one to three positive integers" in page.compare.hint.text()
    assert not page.compare.count_button.isEnabled()
    page.run()
    assert not count_requests(page)


def test_a_file_with_one_kernel_says_that_there_is_no_other(qtbot, page):
    page.document.replace("__global__ void only(float *a) { a[threadIdx.x] = 1; }")
    qtbot.waitUntil(lambda: [box.text() for box in page.compare.boxes] == ["only"])
    assert page.compare.hint.text() == "No other kernel of the file has the parameters of only."


def test_an_engine_that_dies_is_told_and_ends_it(qtbot, window, page):
    page.side.answers_later = True
    page.compare.count_launches()
    page.side.answer(Failure("crash", "The engine's process has died."))
    qtbot.waitUntil(lambda: not page.compare.busy)
    assert window.messages.banner.message.text() == "The engine's process has died."
