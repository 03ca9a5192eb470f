"""A kernel file of the user's: opened, launched on the simulator, stepped."""

from __future__ import annotations

import numpy as np
import pytest
from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import QFileDialog, QScrollArea

from gpu.messages.kernels import DescribeKernels, RunKernel, StepKernel
from tests.gui.conftest import FakeHost, wait_until_idle
from tests.gui.window.test_main_window import drop_path, press_key

TEXT = r"""__global__ void shift(float *data, const float *weights, int n, float scale) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n - 1) data[i] = data[i + 1] * scale + weights[i];
    if (i == 3) printf("here %d\n", i);
}

__global__ void clear(int *out) { out[threadIdx.x] = 0; }

template <typename T, int N> __global__ void fill(T *out) { out[threadIdx.x] = N; }
"""
BOTH = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.cu"
    path.write_text(TEXT)
    return path


@pytest.fixture
def page(qtbot, window, file):
    """The page of a file that was dropped on the window."""
    assert drop_path(window, file)
    qtbot.waitUntil(lambda: window.user_file.visible_page is not None and bool(window.user_file.visible_page.form.rows))
    made = window.user_file.visible_page
    made.side = next(host for host in FakeHost.instances if host.engine == "simulator")
    return made


def enter_text(qtbot, box, text):
    box.setFocus()
    box.selectAll()
    qtbot.keyClicks(box, text)


def run_kernel(qtbot, window, page):
    qtbot.mouseClick(window.header.run, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not page.busy)


def run_requests(page):
    return [request.launch for request in page.side.requests if isinstance(request, RunKernel)]


def test_a_dropped_kernel_is_opened_with_a_form_made_from_its_parameters(qtbot, window, page, file):
    assert page.source.title.text() == "mine.cu"
    assert page.source.code.toPlainText() == TEXT
    assert [page.form.kernel.itemText(each) for each in range(3)] == ["shift", "clear", "fill"]
    assert [(row.parameter.name, row.text) for row in page.form.rows] == [
        ("data", "random:64"), ("weights", "random:64"), ("n", "64"), ("scale", "1"),
    ]  # fmt: skip
    assert window.sidebar.own.isChecked()
    assert str(file) in window.header.summary.toolTip()
    assert not window.header.variant.isVisible()


def test_the_foot_says_whether_there_is_anything_to_run(qtbot, window, page, tmp_path):
    assert window.status.message_label.text() == "mine.cu runs on the simulator"
    (tmp_path / "bad.cu").write_text("__global__ void f( {")
    assert drop_path(window, tmp_path / "bad.cu")
    said = []
    window.status.show_message, say = lambda text: (said.append(text), say(text)), window.status.show_message
    qtbot.waitUntil(lambda: window.status.message_label.text() == "bad.cu cannot run")
    assert "bad.cu runs on the simulator" not in said
    window.user_file.visible_page.document.replace(TEXT)
    qtbot.waitUntil(lambda: window.status.message_label.text() == "bad.cu runs on the simulator")
    (tmp_path / "none.cu").write_text("int x;")
    assert drop_path(window, tmp_path / "none.cu")
    qtbot.waitUntil(lambda: window.status.message_label.text() == "none.cu cannot run")


def test_it_is_asked_for_by_keyboard(qtbot, window, file, monkeypatch):
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *a, **k: (str(file), ""))
    press_key(qtbot, window, Qt.Key.Key_O, BOTH)
    assert window.user_file.visible_page is not None
    assert window.user_file.visible_page.path == file


def test_a_run_shows_findings_arrays_what_was_printed_and_counts(qtbot, window, page):
    run_kernel(qtbot, window, page)
    results = page.results
    assert results.verdict.text() == "race in line 3"
    assert results.findings.item(0).text().startswith("Line 3: Race reported")
    assert [problem.line for problem in page.source.code.problems] == [3]
    qtbot.mouseClick(results.kinds.buttons["Arrays"], Qt.MouseButton.LeftButton)
    assert results.arrays.isVisible()
    assert results.arrays.toPlainText().startswith("data   float32, 64\n")
    data = results.arrays.document().findBlockByNumber(1)
    assert len(data.text().split()) == 64
    lines = [data.layout().lineAt(each) for each in range(data.layout().lineCount())]
    figures = [len(data.text()[line.textStart() :][: line.textLength()].split()) for line in lines]
    assert len(set(figures[:-1])) == 1, "each line is full, and none is broken twice"
    qtbot.mouseClick(results.kinds.buttons["Printed"], Qt.MouseButton.LeftButton)
    assert results.printed.toPlainText() == "here 3\n"
    qtbot.mouseClick(results.kinds.buttons["Line by line"], Qt.MouseButton.LeftButton)
    assert [results.lines.item(row, 0).text() for row in range(results.lines.rowCount())] == ["2", "3", "4"]
    results.lines.setCurrentCell(2, 0)
    assert page.source.code.textCursor().blockNumber() + 1 == 4


def test_what_is_only_suspicious_is_listed_behind_a_good_verdict(qtbot, window, page):
    page.source.document.replace("__global__ void shift(float *data, int n) {\n    data[threadIdx.x] = 1;\n}\n")
    qtbot.waitUntil(lambda: len(page.form.rows) == 2)
    data = page.form.rows[0]
    data.kind.setCurrentText("empty")
    enter_text(qtbot, data.number, "512")
    run_kernel(qtbot, window, page)
    results = page.results
    assert results.verdict.text() == "✓ no findings"
    said = [results.findings.item(row).text() for row in range(results.findings.count())]
    assert [each.partition(":")[0] for each in said[:2]] == ["Warning, line 1", "Warning, line 2"]
    assert "of data are not written" in said[1]
    assert said[2].startswith("Checked for races")


def test_what_is_entered_is_what_is_launched(qtbot, window, page, tmp_path):
    np.save(tmp_path / "w.npy", np.arange(8, dtype=np.float32))
    data, weights, n, scale = page.form.rows
    data.kind.setCurrentText("full")
    enter_text(qtbot, data.number, "8")
    enter_text(qtbot, data.extra, "2.5")
    weights.kind.setCurrentText("file")
    enter_text(qtbot, weights.extra, str(tmp_path / "w.npy"))
    enter_text(qtbot, n.number, "8")
    enter_text(qtbot, scale.number, "0")
    enter_text(qtbot, page.form.grid, "1,1")
    enter_text(qtbot, page.form.block, "8")
    enter_text(qtbot, page.form.options, "-D FAST -I .")
    qtbot.keyClick(page.form.options, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: any(isinstance(each, DescribeKernels) and each.defines for each in page.side.requests))
    run_kernel(qtbot, window, page)
    (launch,) = run_requests(page)
    assert (launch.include_dirs, launch.defines) == ((str(tmp_path),), {"FAST": "1"})
    described = [request for request in page.side.requests if isinstance(request, DescribeKernels)][-1]
    assert (described.include_dirs, described.defines) == (launch.include_dirs, launch.defines)
    assert window.saved_settings.compiler_options(page.path) == "-D FAST -I ."
    assert launch.arguments == ("full:8:2.5", f"file:{tmp_path / 'w.npy'}", "8", "0")
    assert (launch.grid, launch.block) == ((1, 1), (8,))
    assert "0. 1. 2. 3. 4. 5. 6. 2.5" in " ".join(page.results.arrays.toPlainText().split())


def test_a_bad_entry_is_told_in_a_sentence_and_nothing_is_lost(qtbot, window, page):
    form = page.form
    for box, text, words, good in (
        (form.grid, "0", "The grid must be one to three positive integers", "1"),
        (form.block, "8,x", "The block must be one to three positive integers", "64"),
        (form.shared, "-3", "is not an integer", "64"),
        (form.rows[2].number, "many", "many", "64"),
        (form.block, "2000", "at most 1024", "64"),
        (form.options, "-O2", "Unsupported compiler option", "-D N=64"),
    ):
        enter_text(qtbot, box, text)
        run_kernel(qtbot, window, page)
        assert words in (form.error.text() if form.error.isVisible() else window.banner.message.text())
        assert box.text() == text
        window.banner.hide()
        page.results.verdict.clear()
        enter_text(qtbot, box, good)
        run_kernel(qtbot, window, page)
        assert form.error.isHidden()
        assert page.results.verdict.text() == "race in line 3"


def test_a_template_wants_its_arguments_and_then_runs(qtbot, window, page):
    page.form.kernel.setCurrentIndex(2)
    page.form.kernel.activated.emit(2)
    qtbot.waitUntil(lambda: "is a template" in page.form.error.text())
    assert not page.form.rows
    edit = page.form.kernel.lineEdit()
    enter_text(qtbot, edit, "fill<short, 7>")
    qtbot.keyClick(edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: [row.text for row in page.form.rows] == ["zeros:64"])
    assert page.form.error.isHidden()
    run_kernel(qtbot, window, page)
    assert "7 7 7" in page.results.arrays.toPlainText()
    assert "no findings" in page.results.verdict.text()


def test_editing_the_kernel_makes_the_form_anew_and_keeps_what_was_entered(qtbot, window, page):
    enter_text(qtbot, page.form.rows[3].number, "5")
    page.document.replace(TEXT.replace("float scale", "double scale, int more"))
    qtbot.waitUntil(lambda: len(page.form.rows) == 5)
    assert [row.text for row in page.form.rows[3:]] == ["5", "1"]
    assert page.form.rows[3].parameter.type == "float64"
    assert page.source.edited_badge.isVisible()
    run_kernel(qtbot, window, page)
    assert "double scale" in run_requests(page)[-1].text


def test_a_text_that_does_not_compile_is_told_and_the_form_stays(qtbot, window, page):
    page.document.replace(TEXT.replace("int i = blockIdx", "int i = blckIdx"))
    qtbot.waitUntil(lambda: "blckIdx" in page.form.error.text())
    page.document.replace(TEXT)
    qtbot.waitUntil(page.form.error.isHidden)
    assert len(page.form.rows) == 4


def test_why_a_file_does_not_run_is_shown_at_its_line(qtbot, window, tmp_path):
    path = tmp_path / "broken.cu"
    path.write_text("__global__ void f(int *y) {\n    int i = threadIdx.x\n    y[i] = 1;\n}\n")
    assert drop_path(window, path)
    qtbot.waitUntil(
        lambda: window.user_file.visible_page is not None and window.user_file.visible_page.form.kernel.count() > 0
    )
    page = window.user_file.visible_page
    run_kernel(qtbot, window, page)
    assert "expected ';'" in window.banner.message.text()
    assert [problem.line for problem in page.source.code.problems] == [2]
    assert window.banner.isVisible()
    window.choose_pattern("scan")
    assert not window.banner.isVisible(), "it is about the file"


def test_it_is_stepped(qtbot, window, page):
    page.tabs.setCurrentIndex(1)
    qtbot.waitUntil(lambda: page.step.models is not None, timeout=20_000)
    assert isinstance(page.side.requests[-1], StepKernel)
    recording = page.step.models.recording
    assert recording.event_count > 3
    assert {finding.kind for _, finding in recording.findings} == {"race"}
    page.step.setFocus()
    start = page.step.player.moment
    qtbot.keyClick(page.step, Qt.Key.Key_Right)
    qtbot.waitUntil(lambda: page.step.player.moment > start)
    assert page.step.source.document is page.document
    assert page.step.source.code.toPlainText() == TEXT


def test_the_form_fits_into_a_small_window(qtbot, window, page):
    window.resize(1024, 700)
    area = next(each for each in page.findChildren(QScrollArea) if each.isAncestorOf(page.form))
    qtbot.waitUntil(lambda: area.width() < 520)
    for kind in ("random", "list", "text", "file", "texture"):
        page.form.rows[1].kind.setCurrentText(kind)
        qtbot.wait(20)
        qtbot.waitUntil(lambda: area.horizontalScrollBar().maximum() == 0)


def test_a_kernel_without_statements_has_nothing_to_step_through(qtbot, window, page):
    page.document.replace("__global__ void shift(float *data, int n) {}")
    qtbot.waitUntil(lambda: len(page.form.rows) == 2)
    page.tabs.setCurrentIndex(1)
    words = "No thread executes a statement, so there is nothing to step through."
    qtbot.waitUntil(lambda: page.step.panes.message.text() == words)


def test_two_orders_of_it_are_recorded(qtbot, window, page):
    page.tabs.setCurrentIndex(1)
    qtbot.waitUntil(lambda: page.step.models is not None, timeout=20_000)
    page.step.panes.kinds.choose("Two schedules")
    qtbot.waitUntil(lambda: page.step.schedules_view.settled, timeout=60_000)
    first, second = page.step.schedules_view.models
    assert first is page.step.models
    assert second is not None
    asked = [request for request in page.side.requests if isinstance(request, StepKernel)]
    shuffled = [request for request in asked if request.schedule.startswith("shuffle:")]
    assert shuffled
    assert all(request.launch == asked[0].launch for request in asked)
    assert page.step.steppable.name == "mine-shift"


def test_other_pages_are_left_and_come_back_to(qtbot, window, page):
    page.document.replace(TEXT + "// mine\n")
    qtbot.mouseClick(window.sidebar.buttons["convolution"], Qt.MouseButton.LeftButton)
    wait_until_idle(qtbot, window)
    assert window.user_file.visible_page is None
    assert window.stack.currentWidget() is window.page
    assert window.header.variant.isVisible()
    qtbot.mouseClick(window.sidebar.own, Qt.MouseButton.LeftButton)
    assert window.user_file.visible_page is page
    assert page.document.text.endswith("// mine\n")


def test_another_file_takes_its_place_and_its_edits_are_kept(qtbot, window, page, file, tmp_path):
    page.document.replace(TEXT + "// mine\n")
    other = tmp_path / "other.cu"
    other.write_text("__global__ void k(int *out) { out[threadIdx.x] = 1; }\n")
    window.files.open_file(other)
    qtbot.waitUntil(lambda: len(window.user_file.visible_page.form.rows) == 1)
    window.files.open_file(file)
    assert window.user_file.visible_page.document.text.endswith("// mine\n")
    assert [document.path.name for document in window.bench.sources.unsaved] == ["mine.cu"]


@pytest.mark.parametrize(("content", "words"), [(None, "There is no file"), (b"\xff\xfe\x00", "is not a text file")])
def test_a_file_that_is_no_kernel_is_told_and_the_page_stays(qtbot, window, tmp_path, content, words):
    path = tmp_path / "bad.cu"
    if content is not None:
        path.write_bytes(content)
    window.files.open_file(path)
    assert words in window.banner.message.text()
    assert window.user_file.visible_page is None


def test_a_file_without_kernels_is_told(qtbot, window, tmp_path):
    path = tmp_path / "host.cu"
    path.write_text("int host() { return 0; }\n")
    window.files.open_file(path)
    qtbot.waitUntil(lambda: "has no __global__ function" in window.user_file.visible_page.form.error.text())


def test_stop_ends_a_launch(qtbot, window, page):
    page.side.answers_later = True
    qtbot.mouseClick(window.header.run, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: page.busy)
    assert window.header.stop.isEnabled()
    qtbot.mouseClick(window.header.stop, Qt.MouseButton.LeftButton)
    assert page.side.cancels == 1
    assert not page.busy
    assert not window.header.stop.isEnabled()
    page.side.answers_later = False
    run_kernel(qtbot, window, page)
    assert page.results.verdict.text() == "race in line 3"


def test_saving_in_its_own_file_ends_the_edit(qtbot, window, page, file, monkeypatch):
    page.document.replace(TEXT + "// mine\n")
    assert page.source.edited_badge.isVisible()
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda parent, title, name, kinds: (name, ""))
    press_key(qtbot, window, Qt.Key.Key_S, Qt.KeyboardModifier.ControlModifier)
    assert file.read_text().endswith("// mine\n")
    assert page.source.edited_badge.isHidden()
    assert not window.bench.sources.unsaved


SHAPED = """__constant__ float weights[4];
texture<float, 2> plane;
__global__ void blend(cudaTextureObject_t image, const char *letters, float *out) {
    out[threadIdx.x] = weights[threadIdx.x % 4] + tex2D(plane, threadIdx.x, 0) + letters[threadIdx.x];
    out[threadIdx.x] += tex2D<unsigned char>(image, threadIdx.x, 0);
}
__global__ void twice(int *out) { out[threadIdx.x] = 2; }
__global__ void twice(float *out) { out[threadIdx.x] = 2; }
int main() {
    const int n = 6;
    blend<<<dim3(1, 1), n, 2 * n * sizeof(float)>>>(0, 0, 0);
}
"""


def test_the_files_own_launch_variables_and_textures_are_in_the_form(qtbot, window, tmp_path):
    (tmp_path / "shaped.cu").write_text(SHAPED)
    np.save(tmp_path / "plane.npy", np.full((2, 3), 100, np.float32))
    np.save(tmp_path / "image.npy", np.array([[1, 2, 3]], np.uint8))
    assert drop_path(window, tmp_path / "shaped.cu")
    qtbot.waitUntil(lambda: window.user_file.visible_page is not None)
    qtbot.mouseClick(window.user_file.visible_page.single_kernel_button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(
        lambda: window.user_file.visible_page is not None and bool(window.user_file.visible_page.form.rows),
        timeout=60_000,
    )
    page = window.user_file.visible_page
    page.side = [host for host in FakeHost.instances if host.engine == "simulator"][-1]  # the first is for programs
    form = page.form
    assert (form.grid.text(), form.block.text(), form.shared.text()) == ("1,1", "6", "48")
    assert [row.parameter.name for row in form.variables] == ["weights", "plane"]
    assert [form.kernel.itemText(each) for each in range(3)] == ["blend", "twice@7", "twice@8"]
    image, letters, out = form.rows
    assert image.kind.currentText() == "texture"
    enter_text(qtbot, image.extra, str(tmp_path / "image.npy"))
    letters.kind.setCurrentText("text")
    enter_text(qtbot, letters.extra, "abcdef")
    out.kind.setCurrentText("list")
    enter_text(qtbot, out.extra, "0,0,0,0,0,7")
    weights, plane = form.variables
    enter_text(qtbot, weights.number, "10,20")
    enter_text(qtbot, plane.number, str(tmp_path / "plane.npy"))
    run_kernel(qtbot, window, page)
    assert form.error.text() == ""
    assert run_requests(page)[-1].constants == {"weights": "10,20"}
    assert "208. 220. 202. 203. 214. 225." in " ".join(page.results.arrays.toPlainText().split())
    enter_text(qtbot, weights.number, "many")
    run_kernel(qtbot, window, page)
    assert "The variable weights (float32 [4])" in form.error.text()
    enter_text(qtbot, form.block, "5")
    form.kernel.setCurrentText("twice@8")
    form.kernel_requested.emit()
    qtbot.waitUntil(lambda: form.signature.name == "twice@8", timeout=60_000)
    assert (form.grid.text(), form.block.text(), form.shared.text()) == ("1", "5", "0"), "what is typed stays"
