"""The Atomics tab: counted, modeled, measured, and the orders of a race."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpu.messages.runs.atomics import StudyAtomics
from gui.compare_view.lost_updates import KINDS
from gui.widgets.basic import Badge
from tests.gui import conftest
from tests.gui.conftest import wait_until_idle


@pytest.fixture
def first_pattern():
    return "histogram"


@pytest.fixture
def tab(qtbot, window):
    window.page.form.change_values(of="letters", text="aaaa, bbzz")
    wait_until_idle(qtbot, window)
    window.page.tabs.setCurrentIndex(2)
    found = window.page.studying
    qtbot.waitUntil(lambda: found.study is not None and len(found.times) == 5, timeout=20_000)
    return found


def test_counts_stand_beside_textbook_and_measured_times(tab):
    assert tab.input_label._full_text == "10 characters"
    assert tab.count_labels["interleaved", "global", "atomics"].text() == "10"
    assert tab.count_labels["interleaved", "global", "hottest"].text() == "6"
    assert tab.count_labels["interleaved", "global", "warp queue"].text() == "6"
    assert tab.count_labels["interleaved", "shared", "atomics"].text() == "–"
    assert tab.count_labels["privatized", "shared", "block queue"].text() == "6"
    assert tab.time_labels["interleaved", "textbook"].text() == "2.4 µs"
    assert tab.time_labels["interleaved", "limited by"].text() == "global memory"
    assert tab.time_labels["interleaved", "measured"].text() == "20.0 ms"


def test_the_model_follows_its_cycles(tab):
    tab.global_latency.setValue(100)
    assert tab.time_labels["interleaved", "textbook"].text() == "1.2 µs"
    tab.clock.setValue(2)
    assert tab.time_labels["interleaved", "textbook"].text() == "0.6 µs"
    assert "10.0 million per second in global memory" in tab.rate.text()


def test_every_order_has_its_verdict(tab):
    lost = tab.lost_updates
    words = [badge.text() for badge in lost.list_area.widget().findChildren(Badge)]
    assert len(words) == 20 * 7
    assert words.count("2  right") == 2
    assert words.count("1  lost") == 18
    assert "2 of 20 orders are correct" in lost.summary.text()
    lost.kind.choose(KINDS[1])
    assert "2 of 2 orders are correct" in lost.summary.text()
    assert len(lost.list_area.widget().findChildren(Badge)) == 2 * 3


def test_a_window_too_small_for_it_cuts_nothing_off(qtbot, window, tab):
    for width, size in ((1280, "normal"), (1024, "normal"), (1280, "lecture hall")):
        _check_arrangement(qtbot, window, tab, width, size)


def _check_arrangement(qtbot, window, tab, width, size):
    window.appearance.set_text_size(size)
    window.resize(width, 640)
    qtbot.waitUntil(lambda: window.width() == width)
    qtbot.wait(50)
    bar, words = tab.area.horizontalScrollBar(), [*tab.count_labels.values(), *tab.time_labels.values()]
    assert not bar.maximum(), "what has no room beside the tables stands below them"
    below = tab.lost_updates.y() > 0
    assert below == ((width, size) != (1280, "normal"))
    assert all(word.width() >= word.sizeHint().width() for word in words)
    verdicts = [
        each
        for each in tab.lost_updates.list_area.widget().findChildren(Badge)
        if each.text().endswith(("right", "lost"))
    ]
    right = max(each.mapTo(tab, each.rect().bottomRight()).x() for each in verdicts)
    assert right < tab.width(), "the verdicts can be scrolled to"


def test_other_settings_are_studied_when_the_tab_is_seen(qtbot, window, tab):
    studies = [each for host in window.host.instances for each in host.requests if isinstance(each, StudyAtomics)]
    window.page.tabs.setCurrentIndex(0)
    window.page.form.change_values(text="q")
    wait_until_idle(qtbot, window)
    assert tab.input_label._full_text == "10 characters"
    window.page.tabs.setCurrentIndex(2)
    qtbot.waitUntil(lambda: tab.input_label.text() == "1 characters", timeout=20_000)
    now = [each for host in window.host.instances for each in host.requests if isinstance(each, StudyAtomics)]
    assert len(now) == len(studies) + 1


def test_an_image_is_cut_to_what_is_counted(qtbot, window, tab, color, monkeypatch):
    monkeypatch.setattr("gui.compare_view.atomics_tab.MAX_ELEMENTS", 500)
    window.page.tabs.setCurrentIndex(0)
    window.files.open_file(color)
    wait_until_idle(qtbot, window)
    window.page.tabs.setCurrentIndex(2)
    qtbot.waitUntil(lambda: "pixel values" in tab.input_label._full_text and len(tab.times) == 5, timeout=20_000)
    assert tab.input_label._full_text == f"480 of 3\u202f600 pixel values of {color.name}"
    assert tab.study.elements == 480
    assert tab.time_labels["peak", "measured"].text() == "20.0 ms"


def test_f5_measures_again(qtbot, window, tab):
    before = tab.study
    tab.study = None
    window.run()
    qtbot.waitUntil(lambda: tab.study is not None)
    assert tab.study == before


def test_what_is_said_of_a_count_that_failed_goes_when_one_succeeds(qtbot, window, tab):
    tab.failed.emit("The text is too long.", "")
    assert window.banner.isVisible()
    window.run()
    qtbot.waitUntil(window.banner.isHidden)


def test_another_engine_measures_its_own_copy_of_the_image(qtbot, window, tab, color):
    window.page.tabs.setCurrentIndex(0)
    window.files.open_file(color)
    wait_until_idle(qtbot, window)
    window.page.tabs.setCurrentIndex(2)
    qtbot.waitUntil(lambda: "pixel values" in tab.input_label._full_text and len(tab.times) == 5, timeout=20_000)
    tab.times.clear()
    window.set_engine("simulator")
    wait_until_idle(qtbot, window)
    qtbot.waitUntil(lambda: len(tab.times) == 5, timeout=20_000)
    new = window.host.instances[-1]
    assert new is not window.host
    asked = new.runs("histogram")[-1].inputs["image"]
    assert asked == window.bench.image.inputs["image"]


def test_a_time_of_the_simulator_says_so(qtbot, tab, monkeypatch):
    assert tab.time_kind_label.text() == "measured"
    monkeypatch.setattr(conftest, "DEVICE", replace(conftest.DEVICE, engine="simulator"))
    tab.measure()
    qtbot.waitUntil(lambda: len(tab.times) == 5)
    assert tab.time_kind_label.text() == "to simulate on this CPU"
    assert tab.device.toolTip() == "simulated on no device, kernel time"


def test_the_chapter_s_chain_follows_from_the_phrase(qtbot, window, tab):
    window.page.tabs.setCurrentIndex(0)
    window.page.form.change_values(text="programming massively parallel processors")
    wait_until_idle(qtbot, window)
    window.page.tabs.setCurrentIndex(2)
    qtbot.waitUntil(lambda: "41 characters" in tab.input_label._full_text, timeout=20_000)
    assert [figure.text() for figure, _ in tab.chain] == [
        "2.5 M atomics/s", "17.5 M atomics/s", "9.5 M atomics/s", "25 M atomics/s", "105 M operations/s", "128 GB/s",
    ]  # fmt: skip
    assert [about.text() for _, about in tab.chain][2::3] == ["this input, 10 on one", "32 G elements/s"]
    tab.global_latency.setValue(100)
    assert tab.chain[0][0].text() == "5 M atomics/s"
