"""Flow shows each kind of finding, even if the first statement fails, so that the dataflow has no cell."""

from __future__ import annotations

import numpy as np
import pytest
from PyQt6.QtCore import QPoint, Qt
from PyQt6.QtGui import QImage
from PyQt6.QtTest import QSignalSpy

from gui.painting.theme import look
from gui.step_view.arrays.view import MemoryView
from gui.step_view.dataflow.view import FlowView
from gui.step_view.recording.finding_pictures import build_finding_pictures
from gui.step_view.recording.models import build_models
from tests.gpu.stepping.recordings import record_launch

SHARED = "__shared__ float s[32];\n"
FIRST_STATEMENTS = [
    ("b[threadIdx.x + 8] = 2.0f;", "out-of-bounds access in line 2: thread 56 at b[64]", (60, 70), (0, 56)),
    ("b[threadIdx.x] = a[(int)threadIdx.x - 3];", "out-of-bounds access in line 2: thread 0 at a[-3]", (-3, 4), (0, 0)),
    (f"{SHARED}s[threadIdx.x + 8] = a[threadIdx.x];", "out-of-bounds access in line 3: thread 24 at s[32]", (28, 38),
     (0, 24)),
    ("b[0] = threadIdx.x;", "race in line 2: thread 0 and thread 1 at b[0]", (0, 8), (0, 1)),
    (f"{SHARED}b[threadIdx.x] = s[threadIdx.x % 32];", "uninitialized read in line 3: thread 0 at s[0]", (0, 6),
     (0, 0)),
    ("float2 p = *(const float2 *)(a + threadIdx.x);\nb[threadIdx.x] = p.x;",
     "misaligned access in line 2: thread 1 at a[1]", (0, 7), (0, 1)),
    ("if (threadIdx.x < 40)\n__syncthreads();", "barrier not reached by all threads in line 3: thread 40", None,
     (0, 40)),
]  # fmt: skip


def build_own_models(body):
    arrays = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    source = f'extern "C" __global__ void own(const float *a, float *b) {{\n{body}\n}}\n'
    return build_models(record_launch(source, arrays, kernel="own", block=64))


@pytest.fixture
def show(qtbot):
    def show(models, size=(410, 260)):
        view = FlowView()
        qtbot.addWidget(view)
        view.resize(*size)
        view.open(models.layout)
        view.show_findings(models.finding_cells, build_finding_pictures(models))
        return view

    return show


def find_red_pixels(view):
    image = view.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    pixels = np.frombuffer(image.constBits().asarray(image.sizeInBytes()), np.uint32)
    return np.argwhere((pixels & 0xFFFFFF == int(look().theme.bad[1:], 16)).reshape(image.height(), -1))


@pytest.mark.parametrize(("body", "caption", "elements", "thread"), FIRST_STATEMENTS)
def test_a_first_statement_that_fails_has_a_picture(qtbot, show, body, caption, elements, thread):
    models = build_own_models(body)
    (picture,) = build_finding_pictures(models)[:1]
    assert (picture.caption, picture.thread) == (caption, thread)
    if elements is not None:
        assert [element.index for element in picture.elements] == list(range(*elements))
        for element in picture.elements:
            assert element.is_outside == (not 0 <= element.index < (32 if "s[" in caption else 64))
            if "a[" in caption and not element.is_outside:
                assert float(element.text) == element.index
    view = show(models)
    assert not find_red_pixels(view).size, "before the event"
    view.show_moment(models.data.findings[0].moment + 1)
    red = find_red_pixels(view)
    assert red.size
    assert red.max(axis=0)[0] < view.height() - 2
    assert red.max(axis=0)[1] < view.width() - 2
    clicked = QSignalSpy(view.thread_clicked)
    for y in range(0, view.height(), 8):
        for x in range(0, view.width(), 6):
            qtbot.mouseClick(view, Qt.MouseButton.LeftButton, pos=QPoint(x, y))
    assert list(thread) in list(clicked)


def test_arrays_show_a_finding_about_lanes_below_them(qtbot):
    (body, _, _, thread) = FIRST_STATEMENTS[-1]
    models = build_own_models(body)
    view = MemoryView()
    qtbot.addWidget(view)
    view.resize(410, 400)
    view.show()
    view.open(models)
    view.show_findings(build_finding_pictures(models))
    view.show_moment(models.data.findings[0].moment + 1, 0, None)
    red = find_red_pixels(view)
    assert red.size
    cells, places = view._arrange_grids()
    assert red[:, 0].min() > max(y + cells for _, y in places), "below the arrays"
    clicked = QSignalSpy(view.thread_clicked)
    for y in range(red[:, 0].min(), view.height(), 8):
        for x in range(0, view.width(), 6):
            qtbot.mouseClick(view, Qt.MouseButton.LeftButton, pos=QPoint(x, y))
    assert list(thread) in list(clicked)


REVERSED = "__shared__ float s[64];\ns[threadIdx.x] = a[threadIdx.x];\nb[threadIdx.x] = s[63 - threadIdx.x];"


@pytest.mark.parametrize(
    ("body", "thread"), [(FIRST_STATEMENTS[number][0], FIRST_STATEMENTS[number][3]) for number in (0, 3, 6)]
    + [(REVERSED, (0, 0))]
)  # fmt: skip
def test_the_picture_of_a_finding_fills_a_large_panel(qtbot, show, body, thread):
    models = build_own_models(body)
    view = show(models, (1500, 840))
    view.show_moment(models.data.findings[0].moment + 1)
    red = find_red_pixels(view)
    if models.layout.rows:
        red = red[red[:, 0] > view.height() / 2]
    height, width = np.ptp(red, axis=0)
    assert height > 0.25 * view.height() or width > 0.6 * view.width()
    assert red.max(axis=0)[1] < view.width() - 2
    clicked = QSignalSpy(view.thread_clicked)
    for y in range(0, view.height(), 20):
        for x in range(0, view.width(), 20):
            qtbot.mouseClick(view, Qt.MouseButton.LeftButton, pos=QPoint(x, y))
    assert list(thread) in list(clicked)


def test_rows_above_the_picture_of_a_finding_are_whole(show):
    models = build_own_models("b[threadIdx.x] = a[threadIdx.x] * 2;\nb[threadIdx.x + 8] = a[threadIdx.x] * 3;")
    view = show(models)
    height = view.viewport.height
    assert 0 < height < view.height()
    assert len(view.viewport.rows_in_view(view.viewport.offset)) == len(models.layout.rows) > 1
    view.show_moment(models.data.findings[0].moment + 1)
    assert view.viewport.height == height, "no step moves the rows"
    assert find_red_pixels(view).min(axis=0)[0] >= height


def test_a_kind_of_finding_with_cells_has_no_picture_of_its_own(show):
    models = build_own_models("b[threadIdx.x] = a[threadIdx.x] * 2;\nb[0] = ((const float2 *)(a + threadIdx.x))->x;")
    assert models.finding_cells
    assert len(models.data.findings) == 2
    assert not build_finding_pictures(models)
    assert show(models).viewport.height == 260


def test_the_first_race_has_a_picture_where_only_a_later_one_has_a_cell(show):
    models = build_own_models(
        "__shared__ float s[64];\nint t = threadIdx.x;\ns[t] = a[t];\nfloat left = t ? s[t - 1] : 0.0f;\n"
        "s[t] = left + 1.0f;\n__syncthreads();\nb[t] = s[t] * 2.0f;"
    )
    first = models.data.findings[0]
    assert not models.has_cell(first)
    assert any(map(models.has_cell, models.data.findings))
    (picture,) = build_finding_pictures(models)
    assert picture.caption == "race in lines 4 and 5: thread 31 and thread 32 at s[31]"
    view = show(models)
    view.show_moment(first.moment + 1)
    assert find_red_pixels(view).size
