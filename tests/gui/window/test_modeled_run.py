"""Run's modeled time: of the GPU in the bar, of what is seen, titled apart from what is measured and counted."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import QLabel

from gpu.declaration.pattern import Progress
from gpu.engines.base import Device
from gpu.messages.events import Failure, Ready
from gpu.messages.modeled_time import ModelKernel, ModelPattern, format_duration
from gui.painting.theme import look
from tests.gui import conftest
from tests.gui.conftest import FakeHost, wait_until_idle


@pytest.fixture
def model_delay_ms():
    return 1


@pytest.fixture
def scan(qtbot, window):
    """A window that shows the scan, modeled."""
    window.choose_pattern("scan")
    wait_until_idle(qtbot, window)
    qtbot.waitUntil(lambda: window.page.modeled_card.model is not None)
    window.modeling_host = next(
        host for host in FakeHost.instances if any(isinstance(r, ModelPattern) for r in host.requests)
    )
    return window


def model_requests(window):
    return [request for request in window.modeling_host.requests if isinstance(request, ModelPattern)]


def test_a_run_says_how_long_it_would_take_on_the_gpu_of_the_bar(scan) -> None:
    card = scan.page.modeled_card
    assert card.title.text() == "On an H200"
    assert card.figure.text().endswith("µs") or card.figure.text().endswith("ms")
    assert card.badge.text() == "modeled"
    assert card.uncertainty_label.text() == "within 25% for 9 of 10 kernels tried"
    assert "40 cases of other kernels were measured on an H200" in card.uncertainty_label.toolTip()
    assert card.reason.text() == "Waits for memory"
    assert card.figure.toolTip().startswith("kernel: a multiprocessor holds up to 8 blocks of 256 threads")
    # The limits overlap: each bar begins at 0, and the full width is the figure.
    limits = sorted(card.model.limits.values(), reverse=True)[: len(card.bars.shares)]
    assert [share * card.model.time_us for share in card.bars.shares.values()] == pytest.approx(limits)
    image, theme = card.bars.grab().toImage(), look().theme
    pitch = image.height() / len(limits)
    for number, share in enumerate(card.bars.shares.values()):
        line = [image.pixelColor(x, int((number + 0.4) * pitch)).name() for x in range(image.width())]
        assert theme.raised not in line[: int(share * image.width())]
        assert set(line[int(share * image.width()) + 1 :]) <= {theme.raised}
    assert "DRAM" in card.bars.toolTip()
    assert "each alone:" in [each.text() for each in card.findChildren(QLabel) if each.isVisible()]
    assert "do not add up" in card.bars.toolTip()


def test_a_bound_is_shown_until_the_time_is_modeled(qtbot, scan) -> None:
    card, host = scan.page.modeled_card, scan.modeling_host
    host.answers_later = True
    scan.bench.modeling.select_gpu("t4")
    qtbot.waitUntil(lambda: len(host.pending) == 1)
    (number,) = host.pending
    host.deliver(number, Progress(None, "at least 3 µs, because of the launch"))
    qtbot.waitUntil(lambda: card.reason.text() == "At least 3 µs, because of the launch")
    assert card.badge.text() == "modeling…"
    host.deliver(number, Progress(None, f"at least 3 µs, because of {'very ' * 50}much DRAM traffic"))
    qtbot.waitUntil(lambda: card.reason.text() == "At least 3 µs")  # instead of a cut clause
    host.answer()
    qtbot.waitUntil(lambda: card.model is not None)
    assert card.reason.text() == "Waits for memory"


def test_lines_say_what_they_became_while_they_are_what_was_modeled(qtbot, scan) -> None:
    code = scan.page.source.code
    plain = code.number_width()
    assert code._costs == {50: ("12", "12 machine instructions: 9 IADD3, 3 LDL; 3 access local memory")}
    name = scan.page.source.costs_label
    assert name.isVisible()
    assert name.text() == "machine instructions · line"
    qtbot.keyClick(code, Qt.Key.Key_Space)
    assert code._costs == {}
    assert not name.isVisible()
    assert code.number_width() < plain


def test_neither_the_engine_nor_the_simulator_beside_it_has_anything_to_do_with_it(scan) -> None:
    assert scan.modeling_host is not scan.host
    assert not any(isinstance(r, ModelPattern) for r in scan.host.requests)
    assert not scan.jobs.busy


def test_another_gpu_is_modeled_marked_and_remembered(qtbot, scan) -> None:
    box = scan.header.gpu
    assert [box.itemText(place) for place in range(2)] == ["H200, modeled", "H100, modeled"]
    assert all("not validated" in box.itemText(place) for place in range(2, box.count()))
    box.setCurrentIndex(box.findData("t4"))
    box.activated.emit(box.currentIndex())
    card = scan.page.modeled_card
    assert (card.model, card.title.text(), card.badge.text()) == (None, "On a T4", "modeling…")
    qtbot.waitUntil(lambda: card.model is not None)
    assert card.uncertainty_label.text() == "never compared with measurements"
    assert card.badge.property("badge") == "warn"
    assert scan.saved_settings.gpu == "t4"
    assert model_requests(scan)[-1].gpu == "t4"


def test_the_gpu_that_is_here_is_the_default(qtbot, scan) -> None:
    scan.host.deliver(0, Ready(Device("cuda", "NVIDIA H100 80GB HBM3", "gpu", 1024, 49152, 132)))
    qtbot.waitUntil(lambda: scan.header.gpu.currentData() == "h100")
    assert scan.page.modeled_card.title.text() == "On an H100"


def test_a_measured_time_of_the_same_gpu_is_compared(qtbot, scan, monkeypatch) -> None:
    label = scan.page.modeled_card.uncertainty_label
    monkeypatch.setattr(
        conftest,
        "DEVICE",
        replace(conftest.DEVICE, name="NVIDIA H200", engine="cuda", executor="gpu", multiprocessors=1),
    )
    scan.host.deliver(0, Ready(conftest.DEVICE))
    qtbot.waitUntil(lambda: "the measured" in label.toolTip())
    modeled, measured = scan.page.modeled_card.model.time_us, scan.bench.outcomes["scan"].report.time_ms.kernel * 1e3
    percent = round(100 * (modeled / measured - 1))
    side = f"{abs(percent)}% {'above' if percent > 0 else 'below'}" if percent else "equal to"
    assert label.toolTip().startswith(f"{side} the measured {format_duration(measured)}; within 25%")
    scan.bench.modeling.select_gpu("t4")
    qtbot.waitUntil(lambda: label.toolTip().startswith("never compared"))


def test_what_a_time_lacks_is_in_its_badge(scan) -> None:
    card = scan.page.modeled_card
    model = card.model
    assert "much too low" not in card.badge.toolTip()
    card.show_model(replace(model, all_executed=False))
    assert "later launches lack their results" in card.badge.toolTip()
    card.show_model(replace(model, is_complete=False))
    assert "the time may be much too low" in card.badge.toolTip()
    assert "lack their results" not in card.badge.toolTip()


def test_the_gpu_of_the_last_time_comes_back(make_window, saved_settings) -> None:
    saved_settings.gpu = "l4"
    assert make_window().header.gpu.currentData() == "l4"


def test_a_time_never_stands_beside_another_text(qtbot, scan) -> None:
    card, document = scan.page.modeled_card, scan.bench.sources.document("scan.cu")
    before = card.model
    scan.modeling_host.answers_later = True
    qtbot.keyClick(scan.page.source.code, Qt.Key.Key_Space)
    assert (card.model, card.figure.text()) == (None, "")
    qtbot.waitUntil(lambda: len(scan.modeling_host.pending) == 1)
    assert model_requests(scan)[-1].sources == {"scan.cu": document.text}
    document.replace(document.original)
    assert card.model == before
    scan.modeling_host.answer_all()
    qtbot.wait(20)
    assert card.model == before


def test_another_rung_or_size_takes_the_time_back_until_its_own_is_there(qtbot, scan) -> None:
    card = scan.page.modeled_card
    first = card.model
    scan.choose_variant("kogge-stone")
    assert card.model is None
    qtbot.waitUntil(lambda: card.model is not None)
    assert model_requests(scan)[-1].variant == "kogge-stone"
    scan.choose_variant("naive")
    qtbot.waitUntil(lambda: card.model == first or card.model is None)


def test_why_there_is_no_time_is_said(qtbot, scan) -> None:
    card = scan.page.modeled_card
    scan.modeling_host.answers_later = True
    scan.choose_variant("brent-kung")
    qtbot.waitUntil(lambda: len(scan.modeling_host.pending) == 1)
    scan.modeling_host.answer(Failure("launch", "It calls what the model does not follow."))
    qtbot.waitUntil(lambda: card.badge.text() == "not modeled")
    assert card.reason.toolTip() == "It calls what the model does not follow."
    assert card.figure.text() == ""


def test_nothing_is_modeled_where_it_is_not_seen(qtbot, scan) -> None:
    scan.page.select_tab("Compare")
    before = len(model_requests(scan))
    scan.choose_variant("brent-kung")
    wait_until_idle(qtbot, scan)
    qtbot.wait(30)
    assert len(model_requests(scan)) == before
    scan.page.select_tab("Run")
    qtbot.waitUntil(lambda: len(model_requests(scan)) == before + 1)


def test_a_kernel_of_the_users_is_modeled_as_it_is_launched(qtbot, scan, tmp_path) -> None:
    path = tmp_path / "own.cu"
    path.write_text("__global__ void twice(float *x, int n) { int i = threadIdx.x; if (i < n) x[i] *= 2; }")
    scan.user_file.open(path)
    page = scan.user_file.page
    qtbot.waitUntil(lambda: page.modeled_card.model is not None)
    asked = [request for request in scan.modeling_host.requests if isinstance(request, ModelKernel)]
    assert (asked[-1].launch.kernel, asked[-1].gpu) == ("twice", "h200")
    page.form.block.setText("128")
    assert page.modeled_card.model is None
    qtbot.waitUntil(lambda: page.modeled_card.model is not None)
    asked = [request for request in scan.modeling_host.requests if isinstance(request, ModelKernel)]
    assert asked[-1].launch.block == (128,)
    page.form.block.setText("0,")
    assert page.modeled_card.model is None
