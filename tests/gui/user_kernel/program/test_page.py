"""Whole programs in the window, by clicks and keys: opened, run, their launches stepped, their mistakes mended."""

from __future__ import annotations

from pathlib import Path

import pytest
from PyQt6.QtCore import Qt
from PyQt6.QtGui import QFontMetricsF
from PyQt6.QtTest import QTest
from PyQt6.QtWidgets import QFileDialog

from gui.model.settings import SavedSettings
from gui.painting.theme import look
from gui.user_kernel.counts_table import FINDINGS, LINES
from gui.user_kernel.program.page import ProgramPage
from tests.gui.window.test_main_window import drop_path, press_key
from tests.gui.window.test_responsive import LONGEST_GAP_S, Pulse, best_of_attempts

KERNELS = r"""
__global__ void scale(float *data, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] *= factor;
}
__global__ void rotate(float *data, int n) {
    __shared__ float tile[64];
    int i = threadIdx.x;
    tile[i] = data[i];
    data[i] = tile[(i + 1) % n];
}
__global__ void sum(const float *data, float *total) {
    atomicAdd(total, data[threadIdx.x]);
}
"""
SCRIPT = f"""import sys
import numpy as np
import pycuda.autoinit
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

module = SourceModule('''{KERNELS}''')
data, total = (cuda.to_device(np.arange(n, dtype=np.float32)) for n in (64, 1))
module.get_function("scale")(data, np.float32(2), np.int32(64), grid=(2, 1), block=(32, 1, 1))
module.get_function("rotate")(data, np.int32(64), block=(64, 1, 1))
module.get_function("sum")(data, total, block=(64, 1, 1))
print("sum", cuda.from_device(total, (1,), np.float32)[0], *sys.argv[1:])
"""
PROGRAM = f"""#include <cstdio>
#include <numeric>
#include <vector>
{KERNELS}
int main(int argc, char **argv) {{
    std::vector<float> host(64);
    std::iota(host.begin(), host.end(), 0.0f);
    float *data, *total, result;
    cudaMalloc(&data, 64 * sizeof(float));
    cudaMalloc(&total, sizeof(float));
    cudaMemset(total, 0, sizeof(float));
    cudaMemcpy(data, host.data(), 64 * sizeof(float), cudaMemcpyHostToDevice);
    scale<<<2, 32>>>(data, 2.0f, 64);
    rotate<<<1, 64>>>(data, 64);
    sum<<<1, 64>>>(data, total);
    cudaMemcpy(&result, total, sizeof(float), cudaMemcpyDeviceToHost);
    printf("sum %.1f %s\\n", result, argc > 1 ? argv[1] : "");
    return 0;
}}
"""
BOTH = pytest.mark.parametrize(
    ("name", "text"), [("three.py", SCRIPT), ("three.cu", PROGRAM)], ids=["script", "program"]
)


def line_of(text, words):
    return next(number for number, line in enumerate(text.split("\n"), 1) if words in line)


def click_row(opened, row, click):
    table = opened.page.launches
    place = table.visualRect(table.table_model.index(row, 1)).center()
    click(table.viewport(), Qt.MouseButton.LeftButton, pos=place)


@BOTH
def test_three_launches_are_listed_stepped_and_the_race_is_mended(qtbot, program_window, program, name, text):
    opened = program(text, name)
    page = opened.page
    opened.bot.keyClicks(page.arguments, "'two words'")
    opened.run()
    assert opened.output == "sum 4032.0 two words\n"
    assert opened.end == "Finished."
    first, second = line_of(text, "tile[i] = data"), line_of(text, "data[i] = tile")
    assert [(row[1], row[2], row[3], row[8]) for row in opened.rows] == [
        ("scale", "2", "32", "none"),
        ("rotate", "1", "64", f"race in lines {first} and {second}"),
        ("sum", "1", "64", "none"),
    ]
    assert [(row[6], row[7]) for row in opened.rows] == [("4.0", "32.0"), ("4.0", "32.0"), ("18.0", "32.0")]
    opened.wait_until(lambda: all(row[5] for row in opened.rows))
    assert all(2 < float(row[5]) < 10 for row in opened.rows), "modeled: little more than a launch takes"
    assert opened.verdict == f"race in lines {first} and {second}"
    assert [problem.line for problem in page.source.code.problems] == [first, second]
    qtbot.mouseClick(page.results.kinds.buttons["Findings"], Qt.MouseButton.LeftButton)
    item = page.results.findings.item(0)
    assert item.text().startswith(f"rotate, launch 2, lines {first} and {second}: Race reported between")
    assert f"{name}:{first}" in item.text()
    place = page.results.findings.visualItemRect(item).center()
    qtbot.mouseClick(page.results.findings.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert page.source.code.textCursor().blockNumber() + 1 == first

    qtbot.mouseClick(page.results.kinds.buttons["Counts"], Qt.MouseButton.LeftButton)
    for theme in ("light", "dark"):
        program_window.appearance.set_theme(theme)
        cell = page.results.counts.item(LINES.index(FINDINGS), 0)
        assert cell.foreground().color().name() == look().theme.good
    assert page.results.counts.horizontalHeaderItem(0).text() == "1: scale"

    # Each is stepped, by keys and by a double click; its source is what was compiled.
    page.launches.setFocus()
    page.launches.selectRow(0)
    qtbot.keyClick(page.launches, Qt.Key.Key_Return)
    opened.wait_until(lambda: page.stepping and page.step.is_up_to_date)
    assert page.step.models.recording.launches[0].trace.kernel == "scale"
    assert "if (i < n) data[i] *= factor;" in page.step.source.code.toPlainText()
    page.step.setFocus()
    qtbot.keyClick(page.step, Qt.Key.Key_End)
    assert "data[0] = 0 * 2 = 0" in page.step.panes.statement.text()
    qtbot.mouseClick(page.next_button, Qt.MouseButton.LeftButton)
    opened.wait_until(lambda: page.stepping and page.step.models and page.launch_label.text().startswith("Launch 2"))
    assert page.step.panes.verdict.text().startswith("race in lines ")
    press_key(qtbot, program_window, Qt.Key.Key_F2)
    click_row(opened, 2, qtbot.mouseClick)
    click_row(opened, 2, qtbot.mouseDClick)
    opened.wait_until(lambda: page.stepping and page.step.models and page.launch_label.text().startswith("Launch 3"))
    assert page.step.models.recording.launches[0].trace.kernel == "sum"

    # Mended: a barrier is typed between the two lines.
    press_key(qtbot, program_window, Qt.Key.Key_F2)
    code = page.source.code
    code.setFocus()
    code.go_to_line(first)
    qtbot.keyClick(code, Qt.Key.Key_End)
    qtbot.keyClick(code, Qt.Key.Key_Return)
    qtbot.keyClicks(code, "__syncthreads();")
    opened.run()
    assert [row[8] for row in opened.rows] == ["none"] * 3
    assert opened.verdict == "✓ no findings"
    assert not page.source.code.problems
    assert page.source.edited_badge.isVisible()
    assert opened.path.read_text() == text, "the file is as it was"
    assert program_window.bench.sources.unsaved


def test_the_table_of_launches_fits_into_a_small_window(program_window, program):
    program_window.resize(1024, 700)
    opened = program(PROGRAM, "three.cu")
    opened.run()
    table = opened.page.launches
    assert table.isVisible()
    assert table.horizontalScrollBar().maximum() == 0
    header, model = table.horizontalHeader(), table.model()
    findings = model.columnCount() - 1
    font = model.index(0, findings).data(Qt.ItemDataRole.FontRole)
    assert QFontMetricsF(font).horizontalAdvance("out-of-bounds access in line 12") + 6 < table.columnWidth(findings)
    shown = [place for place in range(model.columnCount()) if not table.isColumnHidden(place)]
    assert {model.headerData(place, Qt.Orientation.Horizontal) for place in shown} >= {"Kernel", "CPU ms", "Findings"}
    for place in shown:
        title = model.headerData(place, Qt.Orientation.Horizontal)
        assert header.fontMetrics().horizontalAdvance(title) + 6 <= header.sectionSize(place), title


def test_output_comes_while_the_program_runs_and_stop_ends_it(qtbot, program_window, program, tmp_path):
    opened = program("import os, time\nprint(os.getpid())\nwhile True: time.sleep(0.01)\n", "endless.py")
    opened.run(wait=False)
    opened.wait_until(lambda: opened.output.endswith("\n"))
    process = int(opened.output)
    assert program_window.header.stop.isEnabled()
    opened.stop()
    assert not opened.page.busy
    assert opened.end == "Stopped."
    opened.wait_until(lambda: not _is_running(process))
    opened.page.document.replace("print(1)\n")
    opened.run()
    assert opened.output == "1\n"


def test_a_program_ends_with_its_page(program):
    opened = program("import os, time\nprint(os.getpid())\nwhile True: time.sleep(0.01)\n", "endless.py")
    opened.run(wait=False)
    opened.wait_until(lambda: opened.output.endswith("\n"))
    process = int(opened.output)
    program("print(1)\n", "next.py")
    opened.wait_until(lambda: not _is_running(process))


def test_a_kernel_that_never_ends_is_named_and_stopped(program_window, program):
    head, _, _ = SCRIPT.partition("module =")
    endless = "__global__ void wait(volatile int *x) {\\n    while (x[0] == 0) x[1] += 1;\\n}"
    opened = program(
        f"{head}x = cuda.to_device(np.zeros(32, np.int32))\n"
        f"SourceModule('{endless}').get_function('wait')(x, block=(32, 1, 1))\n"
    )
    opened.run(wait=False)
    opened.wait_until(lambda: opened.end == "Running: launch 1: wait, at script.py:8")
    opened.stop()
    assert opened.end == "Stopped."


def _is_running(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("print(1)\n", "Finished. It launched no kernel; only PyCUDA and CuPy scripts are run here."),
        ("import sys\nsys.exit(3)\n", "Finished with exit code 3."),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n", "It crashed: SIGSEGV."),
        ("1 / 0\n", "Finished with exit code 1."),
    ],
)
def test_how_a_script_ended_is_a_sentence(program, text, end):
    opened = program(text)
    opened.run()
    assert opened.end.startswith(end)
    assert opened.end.endswith("run here.")
    if "/" in text:
        assert 'script.py", line 1' in opened.output
        assert "ZeroDivisionError" in opened.output


def test_how_a_program_crashed_is_a_sentence(program):
    opened = program('#include <cstdio>\nint main() { puts("here"); int *p = nullptr; *p = 1; }\n', "crash.cu")
    opened.run()
    assert opened.output == "here\n"
    assert opened.end == "It crashed: SIGSEGV. It launched no kernel."
    assert opened.page.hint.text() == "The program launched no kernel."


def test_host_code_that_does_not_compile_is_told_at_its_line(program_window, program):
    opened = program("int main() {\n    return nothing;\n}\n", "wrong.cu")
    opened.run()
    assert "nothing" in program_window.banner.message.text()
    assert [problem.line for problem in opened.page.source.code.problems] == [2]


def test_a_script_that_python_cannot_read_is_told_while_it_is_typed(program):
    opened = program("print(1)\n")
    opened.page.document.replace("print(1\n")
    opened.wait_until(lambda: bool(opened.page.source.code.problems))
    (problem,) = opened.page.source.code.problems
    assert problem.line == 1
    assert "never closed" in problem.diagnostic.message


def test_arguments_that_no_command_line_takes_are_told(program_window, program):
    opened = program("print(1)\n")
    opened.page.arguments.setText("one 'two")
    press_key(opened.bot, program_window, Qt.Key.Key_F5)
    assert "unmatched quotation mark" in program_window.banner.message.text()
    assert not opened.page.busy


LARGE = SCRIPT.replace("64, 1)", "5120, 1)").replace("(2, 1), block=(32", "(processors // 20, 1), block=(1024")
LARGE = LARGE.replace("np.int32(64), grid", "np.int32(5120), grid")
LARGE = LARGE.replace("module =", "processors = cuda.Device(0).multiprocessor_count\nprint(processors)\nmodule =")


def test_a_large_launch_is_recorded_when_it_is_to_be_stepped_on_the_gpu_that_it_ran_on(qtbot, program_window, program):
    opened = program(LARGE)
    page = opened.page
    program_window.bench.modeling.select_gpu("a100")
    opened.run()
    assert [bool(each.recording) for each in page.launches.sorted_launches] == [False, True, True]
    said = opened.output
    assert said.startswith("108\n"), "what the program asks of its device is answered as that GPU would"
    assert page.device.toolTip().startswith("The program's queries of its device are answered as for an A100: ")
    program_window.bench.modeling.select_gpu("h200")
    page.launches.setFocus()
    page.launches.selectRow(0)
    qtbot.keyClick(page.launches, Qt.Key.Key_Return)
    assert page.busy
    opened.wait_until(lambda: page.stepping and page.step.is_up_to_date)
    assert page.step.models.recording.launches[0].trace.kernel == "scale"
    assert page.step.models.recording.launches[0].trace.grid == (5, 1, 1)
    assert opened.output == said, "what it writes then is known"
    assert len(opened.rows) == 3


@pytest.mark.alone
def test_a_program_that_floods_its_output_never_holds_the_window_up(qtbot, program_window, program):
    opened = program("while True: print('x' * 200)\n", "flood.py")

    def attempt():
        opened.run(wait=False)
        opened.wait_until(lambda: "x" in opened.output)
        pulse = Pulse()
        qtbot.wait(1500)
        gap = pulse.longest_gap()
        assert opened.page.busy
        opened.stop()
        return gap

    assert best_of_attempts(attempt) < LONGEST_GAP_S
    assert "characters omitted here" in opened.output
    assert opened.page.results.output.document().blockCount() <= 10_000


def test_a_cuda_file_with_main_is_a_program_and_its_kernels_can_be_had_alone(qtbot, program_window, program):
    opened = program(PROGRAM, "three.cu")
    assert program_window.header.title.text() == "Program"
    qtbot.mouseClick(opened.page.single_kernel_button, Qt.MouseButton.LeftButton)
    assert program_window.header.title.text() == "Your kernel"
    qtbot.mouseClick(program_window.user_file.page.program_button, Qt.MouseButton.LeftButton)
    assert program_window.header.title.text() == "Program"


WITH_OPTIONS = """
#include <cstdio>
#include <wanted.h>
__global__ void fill(int *out) { out[0] = WANTED * TIMES; }
int main() {
    int *out, found;
    cudaMalloc(&out, 4);
    fill<<<1, 1>>>(out);
    cudaMemcpy(&found, out, 4, cudaMemcpyDeviceToHost);
    printf("%d\\n", found);
}
"""


def test_folders_of_includes_and_macros_are_typed_and_remembered_for_the_file(qtbot, program_window, program, tmp_path):
    """For the program and for one of its kernels alone: both are compiled with them."""
    (tmp_path / "headers").mkdir()
    (tmp_path / "headers" / "wanted.h").write_text("#define WANTED 7\n")
    opened = program(WITH_OPTIONS, "options.cu")
    field = opened.page.options
    qtbot.mouseClick(field, Qt.MouseButton.LeftButton)
    qtbot.keyClicks(field, "-I nowhere")
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert "There is no folder" in program_window.banner.message.text()
    assert not opened.page.busy
    field.selectAll()
    qtbot.keyClicks(field, "-I headers -D TIMES=3")
    qtbot.keyClick(field, Qt.Key.Key_Return)
    opened.confirm()
    opened.wait_until(lambda: not opened.page.busy)
    assert opened.output == "21\n"
    program("print(1)\n")  # another file takes its place
    again = program(WITH_OPTIONS, "options.cu")
    assert again.page.options.text() == "-I headers -D TIMES=3"
    qtbot.mouseClick(again.page.single_kernel_button, Qt.MouseButton.LeftButton)
    form = program_window.user_file.visible_page.form
    assert form.options.text() == "-I headers -D TIMES=3"
    assert form.parse_compiler_options().include_dirs == (str(tmp_path / "headers"),)


def test_the_step_tab_says_what_to_do_before_there_is_a_launch(qtbot, program_window, program):
    opened = program(SCRIPT)
    press_key(qtbot, program_window, Qt.Key.Key_F3)
    assert opened.page._no_step.isVisible()
    assert not opened.page.stepping
    press_key(qtbot, program_window, Qt.Key.Key_Escape)
    press_key(qtbot, program_window, Qt.Key.Key_F2)


def test_without_pycudas_files_the_window_says_what_to_do(qtbot, make_window, tmp_path, monkeypatch):
    monkeypatch.setattr("gpu.hosts.pycuda.driver.python_layer", lambda: tmp_path)
    monkeypatch.setattr("gpu.hosts.pycuda.python_files.fetch", lambda python, target: "no connection")
    path = tmp_path / "script.py"
    path.write_text("import pycuda.autoinit\n")
    window = make_window()
    assert drop_path(window, path)
    qtbot.waitUntil(lambda: window.user_file.visible_page is not None)
    window.user_file.visible_page.is_trusted = True
    press_key(qtbot, window, Qt.Key.Key_F5)
    said = "PyCUDA's Python files cannot be fetched: no connection."
    qtbot.waitUntil(lambda: window.banner.message.text() == said)
    assert "network" in window.banner.advice.text()
    assert window.user_file.visible_page.results.end_label.accessibleDescription() == said
    assert not window.user_file.visible_page.busy


def test_a_script_that_is_no_text_is_not_opened(make_window, tmp_path):
    path = tmp_path / "script.py"
    path.write_bytes(b"\xff\x00")
    window = make_window()
    window.files.open_file(path)
    assert window.banner.message.text() == "script.py is not a text file."
    assert window.user_file.visible_page is None


def test_edits_of_a_script_outlive_the_window(qtbot, make_window, drafts, tmp_path):
    path = tmp_path / "script.py"
    path.write_text("print(1)\n")
    window = make_window()
    window.files.open_file(path)
    window.user_file.visible_page.document.replace("print(2)\n")
    assert window.close_without_question() == ""
    assert [draft.text for draft in drafts.read_drafts()] == ["print(2)\n"]
    again = make_window()
    again.load_first_input()
    assert "script.py" in again.draft_recovery.banner.message.text()
    again.draft_recovery.banner.action.click()
    assert isinstance(again.user_file.visible_page, ProgramPage)
    assert again.user_file.visible_page.source.code.toPlainText() == "print(2)\n"


def test_a_script_is_saved_as_one(qtbot, make_window, tmp_path, monkeypatch):
    path = tmp_path / "script.py"
    path.write_text("print(1)\n")
    window = make_window()
    window.files.open_file(path)
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path / "copy"), ""))
    window.user_file.visible_page.source.save_as()
    assert (tmp_path / "copy.py").read_text() == "print(1)\n"


def test_a_script_is_opened_by_keys(qtbot, make_window, tmp_path, monkeypatch):
    path = tmp_path / "script.py"
    path.write_text("print(1)\n")
    window = make_window()
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(path), ""))
    press_key(qtbot, window, Qt.Key.Key_O, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(lambda: window.user_file.visible_page is not None)
    assert window.header.title.text() == "Script"


@pytest.mark.parametrize("name", ["script.py", "program.cu"])
def test_host_code_runs_only_after_a_warning(qtbot, program, program_window, tmp_path, name):
    written = tmp_path / "written"
    text = f"open({str(written)!r}, 'w')\n"
    if name.endswith(".cu"):
        text = f'#include <cstdio>\nint main() {{ fclose(fopen("{written}", "w")); }}\n'
    opened = program(text, name)
    banner = program_window.banner
    for start in (
        lambda: press_key(qtbot, program_window, Qt.Key.Key_F5),
        lambda: QTest.keyClick(opened.page.arguments, Qt.Key.Key_Return),
    ):
        start()
        assert banner.message.text() == f"Run the {opened.kind} {name}?"
        assert "can read, change and delete your files" in banner.advice.text()
        assert banner.dismiss_button.text() == "Do not run"
        assert not opened.page.busy
        qtbot.mouseClick(banner.dismiss_button, Qt.MouseButton.LeftButton)
        assert not opened.page.busy
    assert not written.exists()
    opened.run()
    assert written.exists()
    assert program_window.saved_settings.is_trusted(opened.path)
    written.unlink()
    opened.run()  # without a question
    assert written.exists()


def test_a_trusted_file_stays_trusted_and_others_do_not(tmp_path):
    settings = SavedSettings(tmp_path / "settings.json")
    settings.add_trusted_file(tmp_path / "a.py")
    again = SavedSettings(tmp_path / "settings.json")
    assert again.is_trusted(tmp_path / "a.py")
    assert not again.is_trusted(tmp_path / "b.py")
    (tmp_path / "settings.json").write_text('{"programs/trusted": "' + str(tmp_path / "b.py") + '"}')
    assert not SavedSettings(tmp_path / "settings.json").is_trusted(tmp_path / "b.py")
