"""What belongs to the image before is gone when another one is seen, and what comes late is not shown."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.gui.conftest import wait_until_idle


@pytest.fixture
def open_other_image(qtbot, window, color):
    """Return a function that opens another image on a page, and waits until it is seen while its run is under way."""

    def open_at(pattern):
        window.choose_pattern(pattern)
        wait_until_idle(qtbot, window)
        window.host.answers_later = True
        before = window.bench.image
        window.bench.open_image(color)
        window.host.answer()
        qtbot.waitUntil(lambda: window.bench.image is not before)
        assert window.bench.image.path == color
        return window

    return open_at


def test_a_filtered_image_goes_with_the_image_it_was_made_of(qtbot, open_other_image):
    window = open_other_image("convolution")
    view = window.page.view
    np.testing.assert_array_equal(view.after.item.pyramid._arrays[0], window.bench.image.picture)
    assert view._outcome is None
    assert view._after_text._full_text == ""
    view._show_pixel((3, 4))
    assert view._after_text._full_text == "", "the value of a pixel that was filtered before"
    assert view.levels.plot.counts is None
    assert window.page.numbers.verdict.text() == ""
    window.host.answers_later = False
    window.host.answer_all()
    wait_until_idle(qtbot, window)
    assert window.bench.outcomes["convolution"].image is window.bench.image
    assert "verified" in window.page.numbers.verdict.text()
    qtbot.waitUntil(lambda: view.levels.plot.reference is not None)
    assert view.levels.plot.counts.shape[0] == 3


def test_the_counts_of_an_image_go_with_it(qtbot, open_other_image):
    window = open_other_image("histogram")
    view = window.page.view
    assert view.levels.plot.counts is None
    assert {fact.text() for fact in view.facts.values()} == {"–"}
    assert window.page.numbers.verdict.text() == ""
    window.host.answers_later = False
    window.host.answer_all()
    wait_until_idle(qtbot, window)
    assert view.facts["pixels"].text() == "1\u202f200 × 3"


def test_no_other_page_keeps_what_came_of_the_image_before(qtbot, window, color):
    view = window.page.view
    assert view._outcome is not None
    window.choose_pattern("histogram")
    wait_until_idle(qtbot, window)
    window.bench.open_image(color)
    qtbot.waitUntil(lambda: window.bench.image.path == color)
    assert "convolution" not in window.bench.outcomes
    assert view._outcome is None
    wait_until_idle(qtbot, window)
    window.choose_pattern("convolution")
    wait_until_idle(qtbot, window)
    assert window.bench.outcomes["convolution"].image.path == color


def test_a_result_of_arrays_has_nothing_to_do_with_images(qtbot, window, color):
    window.choose_pattern("scan")
    wait_until_idle(qtbot, window)
    outcome = window.bench.outcomes["scan"]
    window.bench.open_image(color)
    qtbot.waitUntil(lambda: window.bench.image.path == color)
    assert window.bench.outcomes["scan"] is outcome
    assert "verified" in window.page.numbers.verdict.text()


def test_a_run_of_the_image_before_that_ends_late_is_not_shown(qtbot, window, color):
    """An image that is read in this very moment cannot overtake a run in one queue; one that comes otherwise can."""
    bench, host = window.bench, window.host
    old = bench.image
    host.answers_later = True
    bench.run()
    (late,) = host.pending.values()
    assert late.pattern == "convolution"
    finished, counted = [], []
    bench.run_finished.connect(finished.append)
    bench.levels_counted.connect(counted.append)
    bench._on_image(replace(old, path=color))
    host.answer()
    qtbot.wait(20)
    assert finished == []
    assert "convolution" not in bench.outcomes
    assert window.page.view._outcome is None
    host.answer_all()
    host.answers_later = False
    wait_until_idle(qtbot, window)
    assert {outcome.image.path for outcome in finished} == {color}


def test_counts_of_the_image_before_that_come_late_are_not_shown(qtbot, window, color):
    bench, host = window.bench, window.host
    qtbot.waitUntil(lambda: not window.jobs.busy)
    old = bench.image
    host.answers_later = True
    bench._count_levels("before", old.inputs, old)
    counted = []
    bench.levels_counted.connect(counted.append)
    new = replace(old, path=color)
    bench._on_image(new)
    assert not window.jobs._queued.keys() & {"count after"}
    host.answer()
    qtbot.wait(20)
    assert counted == []
