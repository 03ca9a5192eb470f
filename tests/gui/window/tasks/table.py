"""The tasks of a lecturer, a student and a programmer: their actions, and what must be on screen."""

from __future__ import annotations

import re

import psutil
from PyQt6.QtCore import QPoint, Qt
from PyQt6.QtTest import QTest
from PyQt6.QtWidgets import QWidget

from gpu.files.images import sample_images
from gpu.messages.modeled_time import ModeledTime, short_name
from gpu.patterns import all_patterns
from gpu.timing.gpus import find_gpu
from gui.model.sequences import list_builtin_sequences
from gui.model.time_modeler import list_gpus
from tests.gui.window.tasks.actions import (
    answer_dialog,
    begin_lecture,
    choose,
    click,
    close_list,
    comment_out,
    drag,
    enter,
    example,
    expect,
    open_file,
    open_list,
    pattern,
    picture,
    press,
    record,
    sees,
    step_until,
    tab,
    write,
)  # fmt: skip
from tests.gui.window.walker import Key

ALT, CTRL, SHIFT = (
    Qt.KeyboardModifier.AltModifier,
    Qt.KeyboardModifier.ControlModifier,
    Qt.KeyboardModifier.ShiftModifier,
)
SHIPPED_LECTURE = "Open a lecture on reduction"

ALL_PATTERNS = tuple(all_patterns())
NEW_LESSONS = ("07-warp-primitives", "11-memory-order", "14-occupancy", "22-float-sums")

# --- files of the user

OWN = """__global__ void shift(const float *a, float *b) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
{}
}}
"""
FINDINGS = {
    "out-of-bounds": ("    b[i] = a[i + 1];", "by thread 63: element 64", "thread 63: b[63] = a[64]"),
    "race": ("    __shared__ float s[64];\n    s[i] = a[i];\n    b[i] = s[63 - i];", "Race between", "b[0] = s[63]"),
    "uninitialized": (
        "    __shared__ float s[64];\n    if (i < 40) s[i] = a[i];\n    __syncthreads();\n    b[i] = s[(i + 20) & 63];",
        "uninitialized",
        "thread 20 at s[40]",
    ),
    "divergent-barrier": ("    b[i] = a[i] * 2;\n    if (i < 40)\n        __syncthreads();", "barrier", ""),
    "misaligned": ("    float2 p = *(const float2 *)(a + i);\n    b[i] = p.x;", "misaligned", ""),
}
FIRST_STATEMENTS = {
    "out-of-bounds": ("b[threadIdx.x + 8] = 2;", "out-of-bounds access in line 2: thread 56 at b[64]"),
    "race": ("b[0] = threadIdx.x;", "race in line 2: thread 0 and thread 1 at b[0]"),
    "uninitialized": ("__shared__ float s[64];\n    b[threadIdx.x] = s[threadIdx.x];",
                      "uninitialized read in line 3: thread 0 at s[0]"),
    "divergent-barrier": ("if (threadIdx.x < 40)\n        __syncthreads();",
                          "barrier not reached by all threads in line 3: thread 40"),
    "misaligned": ("float2 p = *(const float2 *)(a + threadIdx.x);\n    b[threadIdx.x] = p.x;",
                   "misaligned access in line 2: thread 1 at a[1]"),
}  # fmt: skip
"""Kernels whose first statement is wrong, and the caption of Flow's picture."""
PROGRAM = r"""#include <cstdio>
#include <vector>

__global__ void twice(float *data, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    data[i] = 2 * data[i];
}

int main() {
    std::vector<float> host(50, 1.0f);
    float *data;
    cudaMalloc(&data, 50 * sizeof(float));
    cudaMemcpy(data, host.data(), 50 * sizeof(float), cudaMemcpyHostToDevice);
    twice<<<2, 32>>>(data, 50);
    cudaMemcpy(host.data(), data, 50 * sizeof(float), cudaMemcpyDeviceToHost);
    printf("last %.1f\n", host[49]);
    return 0;
}
"""
SCRIPT = """import numpy as np
import pycuda.autoinit
import pycuda.driver as cuda
from pycuda.compiler import SourceModule

module = SourceModule('''__global__ void twice(float *data) { data[threadIdx.x] *= 2; }''')
data = cuda.to_device(np.arange(64, dtype=np.float32))
module.get_function("twice")(data, block=(64, 1, 1))
print("last", cuda.from_device(data, (64,), np.float32)[-1])
"""

FIRST_ROW_CPU_S = 4
"""Limit of the CPU time for the first row of a view of Compare: 2 s, and twice that for hosts of half the speed."""

# --- what is read


def verdict(desk):
    return desk.verdict()


def is_at_end(desk):
    return desk.step_tab.player.moment == desk.step_tab.player.end


def settings(desk):
    return desk.step_tab.settings_button.text()


def idle_lanes(desk):
    return desk.step_tab.panes.counters.text("this step", "idle lanes")


def array_result(desk):
    return next(iter(desk.window.bench.outcomes[desk.page.pattern.name].arrays.values())).ravel().tolist()


def click_flow_cell(row, cell, modifier=Qt.KeyboardModifier.NoModifier):
    def act(desk):
        flow = desk.step_tab.panes.flow
        at = flow.canvas.flow.cell_rect(row, cell).translated(flow.viewport.origin()).center().toPoint()
        QTest.mouseClick(flow, Qt.MouseButton.LeftButton, modifier, at)

    return act


def modeled_times(desk):
    """Return the modeled times of a program's launches as the table shows them."""
    table = desk.window.user_file.visible_page.launches
    column = next(
        at
        for at in range(table.model().columnCount())
        if table.model().headerData(at, Qt.Orientation.Horizontal).startswith("µs")
    )
    return [table.model().index(row, column).data() for row in range(table.model().rowCount())]


def is_question_whole(desk):
    """Return whether all of the question is in view, from its text to its last button."""
    return desk.question.visibleRegion().boundingRect() == desk.question.rect()


def highlighted(desk):
    return bool(desk.step_tab.panes.flow.marks.highlighted)


# --- actions of these tasks


def wait_until_idle(desk):
    desk.wait_until_idle()


def wait_for_moment(desk):
    desk.wait_until(lambda: not desk.window.sequences.is_opening)


def wait_for_step(desk):
    desk.wait_for_step()


def wait_for_recording(desk):
    desk.wait_until(lambda: desk.step_tab.is_up_to_date)


def wait_for_own_run(desk):
    desk.wait_until(lambda: not desk.window.user_file.visible_page.busy)


def wait_for_no_model(desk):
    """Wait until the card of the modeled time has a time or the reason why there is none."""
    desk.wait_until(lambda: "modeling…" not in desk.painted_text())


def restore_size(desk):
    desk.restore_size()


def maximize(desk):
    desk.window.showMaximized()


def lead_to_and_from_lecture(desk):
    """Press F11 twice, in a window that keeps its size."""
    for _ in range(2):
        desk.press(Key.Key_F11)
        desk.settle()


def grade_at_caret(desk):
    """Grade a task while the caret is at the end of the text, and check that it stays there."""
    code = desk.lesson_page.writing.source.code
    code.setFocus()
    desk.press(Key.Key_End, modifier=CTRL)
    place = code.textCursor().position()
    desk.grade()
    assert code.textCursor().position() == place


def figure_fills_panel(desk):
    flow = desk.step_tab.panes.flow
    port = flow.viewport
    return port.layout.width(port.sizes) > 0.75 * (flow.width() - port.sizes.label)


def open_step_settings(desk):
    desk.click(desk.step_tab.settings_button)


def toggle_for_class(desk):
    box = desk.pane.for_class
    desk.click(box, QPoint(8, box.height() // 2))


def open_camera(desk):
    (desk.files / "camera.pgm").write_bytes(
        next(path for path in sample_images() if path.name == "camera.pgm").read_bytes()
    )
    open_file("camera.pgm")(desk)


def first_row_appears(desk):
    """Check that a view of modeled figures answers soon, whatever its slowest variants take."""
    views = desk.page.compare.modeled_views
    before = measure_cpu_time()
    desk.wait_until(lambda: any(isinstance(each, ModeledTime) for each in views.results.values()))
    assert measure_cpu_time() - before < FIRST_ROW_CPU_S


def measure_cpu_time():
    """Return the CPU time of the window and its processes in seconds."""
    window = psutil.Process()
    return sum(sum(each.cpu_times()[:2]) for each in (window, *window.children(recursive=True)))


WAIT_FOR_MODELS = (
    first_row_appears,
    lambda desk: desk.wait_until(lambda: not desk.page.compare.modeled_views.busy),
)
RUN_TRUSTED = (
    lambda desk: desk.click(desk.window.banner.action),
    lambda desk: desk.wait_until(lambda: desk.window.user_file.visible_page.busy),
    wait_for_own_run,
)
"""Confirm that a program of the user may run, and wait for its end."""


def go_to_first(is_wanted):
    def act(desk):
        while not is_wanted(desk.lessons.step):
            desk.press(Key.Key_Right, modifier=ALT)
            desk.wait_for_step()

    return act


go_to_first_question = go_to_first(lambda step: step.question_kind)
go_to_first_task = go_to_first(lambda step: step.task is not None)


def write_solution(desk):
    if desk.lessons.task.frame is not None:
        desk.order_lines()
    else:
        desk.write_text(desk.solution())


def sees_index_after(first, second):
    """Wait until a row's index is painted right of another, with some between them where the figure is wide."""
    indices = re.compile(rf"\b{first} (?:\d+ )*{second}\b")
    return expect(lambda desk: bool(indices.search(desk.painted_text())), True)


def close_dialogs(desk):
    for dialog in desk.dialogs:
        dialog.close()


def enter_values(text):
    """Type an array's values."""

    def act(desk):
        choose("Input", "Typed")(desk)
        values = next(
            each
            for each in desk.page.form.findChildren(QWidget)
            if each.accessibleName() == "Values" and each.isVisible() and hasattr(each, "selectAll")
        )
        values.setFocus()
        values.selectAll()
        QTest.keyClicks(values, text)
        desk.press(Key.Key_Return)
        desk.wait_until_idle()

    return act


def zoom_until_values(desk):
    """Zoom into a pixel of the result by keys, until its value is written in it."""
    after = desk.page.view.after
    after.setFocus()
    desk.press(Key.Key_Right)
    for _ in range(40):
        desk.press(Key.Key_Plus)
    desk.settle()


TASKS = {
    "01-first-start": (
        lambda desk: desk.window.show_start(),
        sees("Where would you like to begin?", "New to GPUs", "Giving a lecture", "Open a file…"),
        picture("01-first-start"),
        click(SHIPPED_LECTURE),
        wait_for_moment,
        expect(lambda desk: (desk.page.pattern.name, desk.page.stepping), ("reduction", True)),
        picture("01-first-moment"),
    ),
    "01-first-lesson": (
        lambda desk: desk.window.show_start(),
        click("Open lesson 1"),
        lambda desk: desk.wait_until(lambda: desk.pane.isVisible() and desk.lessons.lesson is not None),
        sees("Threads and indices", "1 of "),
        picture("01-first-lesson"),
    ),
    "01-first-file": (
        write("script.py", SCRIPT),
        lambda desk: desk.window.show_start(),
        answer_dialog("script.py"),
        click("Open a file…"),
        sees("Script", "import pycuda.autoinit"),
        picture("01-first-file"),
    ),
    "02-image": (
        pattern("convolution"),
        open_camera,
        choose("Filter", "Gradient"),
        wait_until_idle,
        expect(lambda desk: desk.page.form.values["size"], 3),
        expect(verdict, "✓ verified"),
        click("Scale: log"),
        picture("02-gradient"),
        zoom_until_values,
        picture("02-pixels"),
        press(Key.Key_Return),
        sees("sobel x 3 × 3", "sobel y 3 × 3", "thread (", "convolution.cu:"),
        picture("02-writer"),
        click("Scale: linear"),
    ),
    "03-reduction": (
        pattern("reduction"),
        example("Idle lanes of a whole warp"),
        sees("2 Neighbored pairs", "1/2, then 3/4, then 7/8"),
        picture("03-limit"),
        record,
        press(Key.Key_Home),
        step_until(idle_lanes, "3/4"),
        picture("03-idle-lanes"),
        press(Key.Key_F2),
        example("3 1 7 0 4 1 6 3"),
        expect(array_result, [25]),
        record,
        click("Side by side"),
        choose("Other variant", "Neighbored pairs, less"),
        lambda desk: desk.wait_until(lambda: desk.step_tab.variants_view.models[1] is not None),
        press(Key.Key_End),
        picture("03-side-by-side"),
        click("Flow"),
    ),
    "04-scan": (
        pattern("scan", 3),
        record,
        press(Key.Key_PageDown, Key.Key_PageDown),
        press(Key.Key_F2),
        pattern("scan", 5),
        record,
        *(
            action
            for size in ("16", "32", "64")
            for action in (
                open_step_settings,
                enter("n", size),
                expect(lambda desk, size=size: f"{size} elements" in settings(desk), True),
                wait_for_recording,
                press(Key.Key_Escape, Key.Key_End),
                expect(is_at_end, True),
                press(Key.Key_Left, Key.Key_Right),
                expect(is_at_end, True),
                picture(f"04-brent-kung-{size}"),
            )
        ),
        sees_index_after(48, 56),  # rows of 64 elements have indices
        open_step_settings,
        enter("n", "16"),
        wait_for_recording,
        press(Key.Key_Escape, Key.Key_End),
        click_flow_cell(2, 3),
        expect(highlighted, True),
        picture("04-provenance"),
        press(Key.Key_U),
        expect(lambda desk: desk.step_tab.panes.flow.marks.forward, True),
        picture("04-uses"),
        press(Key.Key_Escape),
    ),
    "05-barrier": (
        pattern("scan", 3),
        comment_out("void scan_kogge_stone(", "__syncthreads();"),
        press(Key.Key_F5),
        wait_until_idle,
        expect(lambda desk: desk.verdict().startswith("right by chance: race in line"), True),
        sees("Insert __syncthreads(); before line"),
        picture("05-race-run"),
        record,
        sees("race in line"),
        picture("05-race-step"),
        click("Two schedules"),
        lambda desk: desk.wait_until(lambda: "Recording another" not in desk.painted_text()),
        sees("Independent lanes", "distance = 8"),
        picture("05-two-schedules"),
        click("Flow"),
        press(Key.Key_F2),
        lambda desk: desk.click(desk.page.source.strip.remedy),
        press(Key.Key_Escape, Key.Key_F5),
        wait_until_idle,
        expect(verdict, "✓ verified"),
    ),
    "06-histogram": (
        pattern("histogram"),
        example("24 letters, 4 threads: sections"),
        expect(array_result, [3, 3, 3, 7, 4, 1, 1, 2]),
        picture("06-sections"),
        record,
        press(Key.Key_PageDown),
        picture("06-sections-step"),
        press(Key.Key_F6),
        sees("24 characters", "Textbook example"),
        lambda desk: desk.wait_until(lambda: len(desk.page.studying.times) > 4),
        picture("06-atomics"),
        press(Key.Key_F2),
        example("24 letters, 4 threads: interleaved"),
        expect(array_result, [3, 3, 3, 7, 4, 1, 1, 2]),
        record,
        press(Key.Key_End),
        picture("06-interleaved-step"),
    ),
    "06-default-queue": (
        pattern("histogram"),
        choose("Count", "Letters"),
        record,
        press(Key.Key_End),
        sees("turn 2"),
        picture("06-default-queue"),
    ),
    "06-overflow": (
        pattern("reduction"),
        enter_values("2147483647 1"),
        expect(array_result, [-(2**31)]),
        sees("wrapped around modulo 2³²"),
        picture("06-overflow"),
        choose("Input", "Random"),
    ),
    "07-galaxies": (
        pattern("nbody"),
        example("Two galaxies"),
        click("Play"),
        expect(lambda desk: desk.page.view.playing, True),
        drag("Bodies", (80, 40)),
        press(Key.Key_2),
        expect(lambda desk: (desk.page.view.playing, desk.page.variant.name), (True, "tiled")),
        expect(lambda desk: desk.page.view.frame.figures.steps > 2, True),
        press(Key.Key_Space),
        expect(lambda desk: desk.page.view.playing, False),
        picture("07-galaxies"),
        press(Key.Key_F4),
        sees("NVIDIA H200"),
        picture("07-compare"),
    ),
    "08-sort": (
        pattern("sort", 3),
        sees("Bitonic network"),
        picture("08-passes"),
        record,
        press(Key.Key_End),
        expect(is_at_end, True),
        picture("08-network"),
        click_flow_cell(0, 2),
        press(Key.Key_U),
        expect(lambda desk: (highlighted(desk), desk.step_tab.panes.flow.marks.forward), (True, True)),
        picture("08-key-followed"),
        press(Key.Key_Escape, Key.Key_F4),
        sees("NVIDIA H200"),
        picture("08-recorded"),
        click("Limits"),
        first_row_appears,
        sees("skipped above", "quadratic"),
        picture("08-limits"),
        click("Roofline"),
        picture("08-roofline"),
        click("Occupancy"),
        first_row_appears,
        picture("08-occupancy"),
        click("Curves"),
    ),
    **{
        f"08-compare-{name}": (
            pattern(name),
            press(Key.Key_F4),
            click("Limits"),
            first_row_appears,
            click("Occupancy"),
            first_row_appears,
            click("Roofline"),
            picture(f"08-compare-{name}"),
            click("Curves"),
            press(Key.Key_F2),
        )
        for name in ALL_PATTERNS
    },
    "09-why-fast": (
        pattern("reduction", 7),
        sees("Grid stride"),
        lambda desk: desk.wait_until(
            lambda: "modeled" in desk.painted_text() and "modeling…" not in desk.painted_text()
        ),
        picture("09-modeled"),
        record,
        click("Timeline"),
        lambda desk: desk.wait_until(lambda: desk.step_tab.panes.warps.run is not None),
        sees("machine instructions · line"),
        picture("09-timeline"),
        click("Flow"),
        press(Key.Key_F4),
        click("Limits"),
        *WAIT_FOR_MODELS,
        expect(lambda desk: desk.page.compare.modeled_views.limits.horizontalScrollBar().maximum(), 0),
        picture("09-limits"),
        click("Roofline"),
        picture("09-roofline"),
        click("Curves"),
        press(Key.Key_F2),
    ),
    **{
        f"10-{kind}": (
            write("own.cu", OWN.format(text)),
            open_file("own.cu"),
            sees("own.cu", "shift"),
            click("Run"),
            wait_for_own_run,
            sees(word),
            wait_for_no_model,
            picture(f"10-{kind}-run"),
            click("Line by line"),
            sees("Line", "Lanes", "Sectors"),
            click("Findings"),
            tab("Step"),
            lambda desk: desk.wait_until(lambda: desk.own_step.is_up_to_date and desk.own_step.models is not None),
            expect(lambda desk: bool(desk.own_step.followed), True),
            picture(f"10-{kind}-step"),
            lambda desk: desk.click(desk.own_step.panes.kinds.buttons["Flow"]),
            sees(told),
            picture(f"10-{kind}-flow"),
            lambda desk: desk.click(desk.own_step.panes.kinds.buttons["Arrays"]),
            *((sees("warp 1"),) if kind == "divergent-barrier" else ()),
            picture(f"10-{kind}-arrays"),
        )
        for kind, (text, word, told) in FINDINGS.items()
    },
    **{
        f"10-first-{kind}": (
            write("own.cu", f"__global__ void own(const float *a, float *b) {{\n    {text}\n}}\n"),
            open_file("own.cu"),
            tab("Step"),
            lambda desk: desk.wait_until(lambda: desk.own_step.is_up_to_date and desk.own_step.models is not None),
            lambda desk: desk.click(desk.own_step.panes.kinds.buttons["Flow"]),
            sees(caption),
            picture(f"10-first-{kind}"),
        )
        for kind, (text, caption) in FIRST_STATEMENTS.items()
    },
    "10-program": (
        write("program.cu", PROGRAM),
        open_file("program.cu"),
        press(Key.Key_F5),
        sees("Run the program program.cu?", "can read, change and delete your files"),
        picture("10-program-question"),
        *RUN_TRUSTED,
        sees("last 1.0", "Line 6: Invalid __global__ read", "element 50 of data", "CPU ms", "µs H200"),
        expect(modeled_times, [""]),  # the launch failed
        expect(lambda desk: desk.painted_text().count("out-of-bounds access in line 6"), 2),  # verdict and table
        picture("10-program"),
    ),
    "10-script": (
        write("script.py", SCRIPT),
        open_file("script.py"),
        press(Key.Key_F5),
        sees("Run the script script.py?"),
        *RUN_TRUSTED,
        sees("last 126.0"),
        expect(lambda desk: [bool(time) for time in modeled_times(desk)], [True]),
        picture("10-script"),
    ),
    "14-gpus": (
        pattern("scan"),
        open_list("Modeled GPU"),
        sees(*(short_name(find_gpu(key).name) for key in list_gpus())),
        picture("14-gpus"),
        close_list,
    ),
    **{
        f"16-defaults-{variant.name}": (
            pattern("sort"),
            choose("Variant", f"{number}  {variant.title}"),
            press(Key.Key_F5),
            wait_until_idle,
            expect(verdict, "✓ verified"),
        )
        for number, variant in enumerate(all_patterns()["sort"].variants, 1)
        if not variant.library
    },
    "17-atomics": (
        pattern("histogram"),
        choose("Count", "Letters"),
        press(Key.Key_F6),
        sees("Textbook example: atomics in DRAM, unlike on present GPUs"),
        expect(lambda desk: "modeled" in desk.painted_text().split("Textbook")[1], False),
        picture("17-atomics"),
        press(Key.Key_F2),
    ),
    "17-occupancy": (
        pattern("scan", 3),
        press(Key.Key_F4),
        click("Occupancy"),
        press(Key.Key_Escape),  # stops modeling the default size
        choose("Largest size", "2¹⁴"),
        click("Model"),
        first_row_appears,
        sees("; this launch reaches 1 block and 8 warps: it has 64 blocks for 132 multiprocessors"),
        picture("17-occupancy"),
        click("Curves"),
        press(Key.Key_F2),
    ),
    "11-lesson": (
        lambda desk: desk.begin_lesson("08-reduction"),
        picture("11-lesson"),
        go_to_first_question,
        lambda desk: desk.answer_wrong(),
        expect(lambda desk: desk.question.verdict.property("verdict"), "bad"),
        expect(is_question_whole, True),
        picture("11-wrong"),
        lambda desk: desk.click(desk.question.retry_button),
        wait_for_step,
        lambda desk: desk.wait_until(lambda: desk.question.scene is not None),
        lambda desk: desk.give_answer(desk.current_question.answer),
        lambda desk: desk.press_check(),
        expect(lambda desk: desk.question.verdict.property("verdict"), "good"),
        picture("11-right"),
        toggle_for_class,
        wait_for_step,
        begin_lecture,
        picture("11-lecture"),
        press(Key.Key_F5),
        expect(lambda desk: desk.question.verdict.isVisible(), True),
        picture("11-lecture-answer"),
        press(Key.Key_Right, modifier=ALT),
        wait_for_step,
        press(Key.Key_F11),
        restore_size,
        toggle_for_class,
        wait_for_step,
    ),
    "11-task": (
        lambda desk: desk.begin_lesson("01-threads-and-indices"),
        go_to_first_task,
        grade_at_caret,
        expect(lambda desk: desk.task.verdict.property("verdict"), "bad"),
        picture("11-task-wrong"),
        write_solution,
        lambda desk: desk.grade(),
        expect(lambda desk: desk.task.verdict.property("verdict"), "good"),
        picture("11-task-right"),
    ),
    "12-keys": (
        pattern("scan"),
        press(Key.Key_F1),
        sees("F11", "Ctrl+M"),
        picture("12-keys"),
        lambda desk: QTest.keyClick(desk.dialogs[0], Key.Key_Escape),
        expect(lambda desk: desk.dialogs, []),
    ),
    "12-keys-after-number": (
        pattern("scan"),
        record,
        open_step_settings,
        enter("n", "8"),
        wait_for_recording,
        press(Key.Key_Home, Key.Key_Right),
        expect(lambda desk: desk.step_tab.player.moment, 1),
        press(Key.Key_Right, modifier=SHIFT),
        expect(lambda desk: desk.step_tab.player.moment > 1, True),
        press(Key.Key_Space),
        expect(lambda desk: desk.step_tab.player.playing, True),
        press(Key.Key_Space, Key.Key_Escape),
    ),
    "12-maximized": (
        pattern("scan"),
        record,
        maximize,
        lead_to_and_from_lecture,
        expect(lambda desk: desk.window.isMaximized(), True),
        restore_size,
    ),
    **{
        f"lesson-{name}": (
            lambda desk, name=name: desk.begin_lesson(name),
            picture(f"lesson-{name}"),
            go_to_first_question,
            picture(f"lesson-{name}-question"),
        )
        for name in NEW_LESSONS
    },
    "lecture": (
        pattern("scan", 5),
        lambda desk: desk.window.sequences.open(list_builtin_sequences()[1][1]),
        wait_for_moment,
        press(Key.Key_F12),
        sees("Next", "min"),
        picture("lecture-presenter"),
        close_dialogs,
        begin_lecture,
        picture("lecture-1"),
        press(Key.Key_N),
        wait_for_moment,
        picture("lecture-2"),
        press(Key.Key_N),
        wait_for_moment,
        press(Key.Key_L),
        picture("lecture-3-lanes"),
        press(Key.Key_F11),
    ),
    **{
        f"messages-{name}": (
            write(f"{name}.cu", text),
            open_file(f"{name}.cu"),
            press(Key.Key_F5),
            wait_for_own_run,
            wait_for_no_model,
            picture(f"messages-{name}"),
        )
        for name, text in {"broken-kernel": "__global__ void own(float *a) { a[0] = ; }", "empty": ""}.items()
    },
    "messages": (
        write("broken.cu", "__global__ void own(float *a) { a[threadIdx.x] = ; }"),
        open_file("broken.cu"),
        press(Key.Key_F5),
        wait_for_own_run,
        picture("messages-own"),
        pattern("reduction"),
        expect(lambda desk: desk.window.banner.isVisible(), False),
        write("broken.png", "no image"),
        open_file("broken.png"),
        sees("broken.png is not a supported image"),
        expect(lambda desk: desk.page.pattern.name, "reduction"),
        picture("messages-image"),
        lambda desk: desk.open_shelf(),
        expect(lambda desk: (desk.window.header.run.isEnabled(), desk.window.banner.isVisible()), (False, False)),
        picture("messages-lessons"),
    ),
    "values": (
        pattern("scan", 3),
        enter_values("-103 17 99999 -1 2000000000 5 -42 100000"),
        expect(lambda desk: array_result(desk)[:3], [-103, -86, 99913]),
        record,
        press(Key.Key_End),
        press(Key.Key_F),
        expect(figure_fills_panel, True),
        picture("values-flow"),
        click("Arrays"),
        sees("-103"),
        picture("values-arrays"),
        click("Flow"),
        press(Key.Key_F2),
        choose("Input", "Random"),
    ),
    "large-text": (
        lambda desk: desk.window.appearance.set_text_size("lecture hall"),
        pattern("scan", 5),
        picture("large-run"),
        record,
        press(Key.Key_End),
        picture("large-flow"),
        click("Arrays"),
        picture("large-arrays"),
        click("Flow"),
        press(Key.Key_F4),
        click("Limits"),
        *WAIT_FOR_MODELS,
        picture("large-limits"),
        click("Curves"),
        pattern("histogram"),
        picture("large-histogram"),
        example("24 letters, 4 threads: sections"),
        record,
        press(Key.Key_End),
        picture("large-bins"),
        begin_lecture,
        picture("large-bins-lecture"),
    ),
}
