"""Edited kernels with a real GPU and the real checkers: what passes runs there, what does not never reaches it."""

from __future__ import annotations

import pytest
from PyQt6.QtCore import Qt

from gui.window.main_window import MainWindow
from tests.gui.conftest import settle

pytestmark = [pytest.mark.gpu, pytest.mark.hardware]

BARRIER = "__syncthreads();"


@pytest.fixture
def on_gpu(qtbot, memory):
    window = MainWindow(memory, "cuda", survey=list)
    window.resize(1280, 720)
    with qtbot.waitExposed(window):
        window.show()
    window.begin()
    qtbot.waitUntil(lambda: window.jobs.device is not None, timeout=60_000)
    window.choose_pattern("reduction")
    window.choose_variant("interleaved")
    qtbot.waitUntil(lambda: window.at_rest and "reduction" in window.bench.outcomes, timeout=60_000)
    settle(qtbot, window)
    yield window
    window.close()


def insert(window, before, words):
    source = window.page.source
    cursor = source.code.textCursor()
    kernel = source.document.text.index("reduce_interleaved(")
    cursor.setPosition(source.document.text.index(before, kernel))
    cursor.insertText(words)


def run(qtbot, window):
    shown = window.bench.outcomes["reduction"]
    qtbot.mouseClick(window.header.run, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(
        lambda: window.banner.isVisible() or window.bench.outcomes["reduction"] is not shown, timeout=60_000
    )
    return window.bench.outcomes["reduction"] is not shown


def test_a_kernel_that_passes_runs_there_and_one_without_a_barrier_does_not(qtbot, on_gpu):
    insert(on_gpu, BARRIER, "/* mine */ ")
    assert run(qtbot, on_gpu), on_gpu.banner.message.text()
    report = on_gpu.bench.outcomes["reduction"].report
    assert (report.engine, report.verified) == ("cuda", True)

    insert(on_gpu, BARRIER, "// ")
    assert not run(qtbot, on_gpu)
    assert "It did not run on the GPU." in on_gpu.banner.message.text()
    assert "race" in on_gpu.banner.detail.toPlainText().lower()
