"""Speedup over the number of workers: requests to the cluster, the plot, and the label of simulators."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpu.messages.events import Failure, Ready
from gpu.messages.runs.pattern_runs import RunPattern
from gui.compare_view.tab import CURVES, WORKERS
from gui.compare_view.workers import REPEATS, list_worker_counts
from tests.gui.conftest import DEVICE, FakeHost
from tests.gui.step_view.machines.sample_run import WORKERS as TWO
from tests.gui.step_view.machines.sample_run import make_run

SIMULATOR = replace(DEVICE, engine="simulator", name="2 x a CPU")


@pytest.fixture
def two_workers(make_window, saved_settings, qtbot):
    """The window, its Compare tab of a scan, and the host of two simulators."""
    saved_settings.pattern = "scan"
    window = make_window()
    window.bench.choose_pattern("scan")
    host = FakeHost.instances[0]
    host.deliver(0, Ready(SIMULATOR, workers=TWO))
    tab = window.page.compare
    qtbot.waitUntil(lambda: not tab.views.buttons[WORKERS].isHidden())
    window.page.select_tab("Compare")
    tab.views.choose(WORKERS)
    return window, tab, host


def answer_pending(host, seconds, *, verified=True):
    """Answer the pending requests, with the seconds for each number of workers."""
    while any(isinstance(each, RunPattern) and each.chunks for each in host.pending.values()):
        request = next(iter(host.pending.values()))
        result = host.result_of(request)
        if isinstance(request, RunPattern) and request.chunks:
            report = replace(result.report, engine="simulator", verified=verified)
            result = replace(result, report=report, distributed=make_run(wall_s=seconds[request.chunks[0]]))
        host.answer(result)


def measure_workers(window, tab, host, qtbot, seconds, **options):
    host.answers_later = True
    tab.measure()
    chunk_counts = []
    while tab.busy:
        qtbot.waitUntil(lambda: bool(host.pending) or not tab.busy)
        chunk_counts += [each.chunks for each in host.pending.values() if isinstance(each, RunPattern)]
        answer_pending(host, seconds, **options)
        qtbot.wait(1)
    host.answers_later = False
    return chunk_counts


def test_each_number_of_workers_runs_after_one_uncounted_run(two_workers, qtbot):
    window, tab, host = two_workers
    assert measure_workers(window, tab, host, qtbot, {1: 3.0, 2: 2.0}) == [(2,), *[(1,)] * REPEATS, *[(2,)] * REPEATS]
    assert tab.workers.plot.speedups == {1: 1.0, 2: 1.5}
    assert tab.workers.speedup_label.text().startswith("2 workers: speedup 1.50; 2\u202f000 ms, median of 3")


def test_times_of_simulators_are_labeled(two_workers, qtbot):
    window, tab, host = two_workers
    measure_workers(window, tab, host, qtbot, {1: 3.0, 2: 2.0})
    assert tab.workers.badge.text() == "simulated"
    assert tab.workers.speedup_label.text().endswith("this does not predict GPUs.")


def test_a_wrong_result_and_a_failure_end_the_measurement(two_workers, qtbot):
    window, tab, host = two_workers
    measure_workers(window, tab, host, qtbot, {1: 3.0, 2: 2.0}, verified=False)
    assert window.banner.message.text() == "The result is wrong, so its time is not shown."
    host.answers_later = True
    tab.measure()
    qtbot.waitUntil(lambda: bool(host.pending))
    host.answer(Failure("engine", "The scheduler is gone.", "Start it again."))
    qtbot.waitUntil(lambda: not tab.busy)
    assert window.banner.message.text() == "The scheduler is gone."
    assert tab.workers.plot.speedups == {}


def test_the_workers_view_disappears_with_the_cluster(two_workers, qtbot):
    window, tab, host = two_workers
    assert tab.listed.isHidden(), "nothing to tick: the chosen variant is measured"
    measure_workers(window, tab, host, qtbot, {1: 3.0, 2: 2.0})
    window.set_engine("simulator")
    qtbot.waitUntil(lambda: tab.views.buttons[WORKERS].isHidden())
    assert (tab.views.chosen, tab.workers.plot.speedups) == (CURVES, {})
    assert not tab.listed.isHidden()


@pytest.mark.parametrize(("workers", "counts"), [(1, [1]), (4, [1, 2, 3, 4]), (12, [1, 2, 4, 8, 12])])
def test_many_workers_are_measured_at_powers_of_two(workers, counts):
    assert list_worker_counts(workers) == counts


def test_figures_next_to_the_plot_replace_the_variants(two_workers, qtbot):
    window, tab, host = two_workers
    figures = tab.workers.figures
    assert (tab.variants_card.title.text(), figures.isHidden(), tab.listed.isHidden()) == ("Over workers", False, True)
    assert {*figures.texts} >= {"1 worker", "2 workers", "–"}, "nothing is measured yet"
    measure_workers(window, tab, host, qtbot, {1: 3.0, 2: 2.0})
    assert figures.texts[:6] == ["1 worker", "3\u202f000", "1.00 ×", "2 workers", "2\u202f000", "1.50 ×"]
    tab.views.choose(CURVES)
    assert (tab.variants_card.title.text(), figures.isHidden(), tab.listed.isHidden()) == ("Variants", True, False)
