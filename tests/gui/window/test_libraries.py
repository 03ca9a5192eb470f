"""A rung that is a library's: chosen where it can be called, explained where not, and never stepped."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PyQt6.QtCore import Qt

from gpu.messages.runs.recordings import StepPattern
from tests.gui import conftest
from tests.gui.conftest import FakeHost, wait_until_idle

REASON = "There is no library here."


@pytest.fixture
def without_library(monkeypatch):
    monkeypatch.setattr(conftest, "DEVICE", replace(conftest.DEVICE, no_library=REASON))


def show_library_variant(qtbot, make_window):
    window = make_window()
    window.choose_pattern("matmul")
    wait_until_idle(qtbot, window)
    index = window.header.variant.findData("cublas")
    return window, window.header.variant.model().item(index), window.page.compare.rows[index].box


def test_where_a_library_can_be_called_it_is_a_variant_like_others(qtbot, make_window):
    window, item, box = show_library_variant(qtbot, make_window)
    assert item.isEnabled()
    assert item.text() == "12  cuBLAS (CuPy)"
    assert box.isEnabled()
    assert box.isChecked()
    window.choose_variant("cublas")
    wait_until_idle(qtbot, window)
    assert FakeHost.instances[0].runs("matmul")[-1].variant == "cublas"


def test_where_none_can_be_called_it_cannot_be_chosen_and_says_why(qtbot, make_window, without_library):
    window, item, box = show_library_variant(qtbot, make_window)
    assert not item.isEnabled()
    assert item.text() == "12  cuBLAS (CuPy) · unavailable"
    assert item.toolTip() == REASON
    assert not box.isEnabled()
    assert not box.isChecked()
    assert box.toolTip() == REASON
    assert window.header.variant.model().item(0).isEnabled()


def test_another_engine_may_have_one(qtbot, make_window, without_library, monkeypatch):
    window, item, box = show_library_variant(qtbot, make_window)
    monkeypatch.setattr(conftest, "DEVICE", replace(conftest.DEVICE, no_library=""))
    window.set_engine("cuda")
    qtbot.waitUntil(item.isEnabled)
    assert box.isEnabled()
    assert box.isChecked()
    box.click()
    window.jobs.ready.emit(conftest.DEVICE)
    assert not box.isChecked(), "what was chosen stays"
    window.choose_pattern("compaction")
    window.choose_pattern("matmul")
    assert window.header.variant.model().item(window.header.variant.findData("cublas")).isEnabled()


def test_a_library_shows_no_kernel_of_another_variant_and_is_not_stepped(qtbot, make_window):
    window, _, _ = show_library_variant(qtbot, make_window)
    window.choose_variant("cublas")
    wait_until_idle(qtbot, window)
    for pane in (window.page.source, window.page.step.source):
        assert pane.note.text() == "cuBLAS is a library: the source of its kernels is not available."
        assert pane.note.isVisibleTo(pane)
        assert not pane.code.isVisibleTo(pane)
        assert not pane.save.isVisibleTo(pane)
    asked = len([each for host in FakeHost.instances for each in host.requests if isinstance(each, StepPattern)])
    window.page.tabs.setCurrentIndex(1)
    step = window.page.step
    qtbot.waitUntil(lambda: step.is_up_to_date)
    qtbot.keyClick(window, Qt.Key.Key_F5)
    assert step.panes.message.text() == "cuBLAS is a library: it has no source to step through. Choose another variant."
    assert step.panes.pictures.currentWidget() is step.panes.message
    assert asked == len(
        [each for host in FakeHost.instances for each in host.requests if isinstance(each, StepPattern)]
    )
    window.choose_variant("tiled")
    wait_until_idle(qtbot, window)
    for pane in (window.page.source, step.source):
        assert not pane.note.isVisibleTo(pane)
        assert pane.code.isVisibleTo(pane)
        assert pane.code.kernel == "matmul_tiled"
    qtbot.waitUntil(lambda: any(isinstance(each, StepPattern) for each in FakeHost.instances[-1].requests))
