"""Edited kernels with a real GPU and the real checkers: what passes runs there, what does not never reaches it."""

from __future__ import annotations

import pytest
from PyQt6.QtCore import Qt

from gui.window.main_window import MainWindow
from tests.gui.conftest import wait_until_idle

pytestmark = [pytest.mark.gpu, pytest.mark.hardware]

BARRIER = "__syncthreads();"


@pytest.fixture
def on_gpu(qtbot, saved_settings):
    window = MainWindow(saved_settings, "cuda", survey=list)
    window.resize(1280, 720)
    with qtbot.waitExposed(window):
        window.show()
    window.load_first_input()
    qtbot.waitUntil(lambda: window.jobs.device is not None, timeout=60_000)
    window.choose_pattern("reduction")
    window.choose_variant("interleaved")
    qtbot.waitUntil(lambda: window.is_idle and "reduction" in window.bench.outcomes, timeout=60_000)
    wait_until_idle(qtbot, window)
    yield window
    window.close()


def insert_text(window, before, words):
    source = window.page.source
    cursor = source.code.textCursor()
    kernel = source.document.text.index("reduce_interleaved(")
    cursor.setPosition(source.document.text.index(before, kernel))
    cursor.insertText(words)


def start_run(qtbot, window):
    shown = window.bench.outcomes["reduction"]
    qtbot.mouseClick(window.header.run, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(
        lambda: window.banner.isVisible() or window.bench.outcomes["reduction"] is not shown, timeout=60_000
    )
    return window.bench.outcomes["reduction"] is not shown


def test_a_kernel_that_passes_runs_there_and_one_without_a_barrier_does_not(qtbot, on_gpu):
    insert_text(on_gpu, BARRIER, "/* mine */ ")
    assert start_run(qtbot, on_gpu), on_gpu.banner.message.text()
    report = on_gpu.bench.outcomes["reduction"].report
    assert (report.engine, report.verified) == ("cuda", True)

    insert_text(on_gpu, BARRIER, "// ")
    assert not start_run(qtbot, on_gpu)
    assert "did not run on the GPU" in on_gpu.banner.message.text()
    assert "race" in on_gpu.banner.detail.toPlainText().lower()
