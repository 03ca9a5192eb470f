"""Several devices in the window: how they are chosen, what is told of a run, and what is not asked of anybody."""

from __future__ import annotations

import pytest

from gpu.declaration.pattern import Progress
from gpu.distributed.cluster.settings import ClusterSettings, Tls
from gpu.messages.events import Failure, Ready
from gpu.messages.runs.distributed_run import LostWorker
from gui.window.cluster_dialog import REMOTE_SCHEDULER, THIS_MACHINE, ClusterDialog
from tests import needs
from tests.gui.conftest import DEVICE, FakeHost
from tests.gui.step_view.machines.sample_run import WORKERS, make_run

needs.module("distributed", needs.DASK)


@pytest.fixture
def window(make_window, qtbot):
    made = make_window()
    made.choose_pattern("scan")
    qtbot.waitUntil(lambda: "scan" in made.bench.outcomes)
    return made


@pytest.fixture
def dialog(window):
    window.set_engine("dask")
    return window.findChild(ClusterDialog)


def answer_run(host, request, done):
    """Answer a run as a cluster does."""
    from dataclasses import replace

    host.answer(replace(host.result_of(request), distributed=done))


def show_cluster_run(window, qtbot, done):
    """Show a run on two workers."""
    window.set_cluster(ClusterSettings(workers=2))
    host = FakeHost.instances[-1]
    host.deliver(0, Ready(DEVICE, workers=WORKERS, dashboard="http://127.0.0.1:8787/status"))
    host.answers_later = True
    window.run()
    qtbot.waitUntil(lambda: any(each.pattern == "scan" for each in host.pending.values() if hasattr(each, "verify")))
    while host.pending:
        request = next(iter(host.pending.values()))
        answer_run(host, request, done) if getattr(request, "pattern", "") == "scan" else host.answer()
    qtbot.waitUntil(lambda: window.bench.outcomes.get("scan") is not None)
    return host


def test_a_cluster_of_this_machine_is_started_and_remembered_but_not_begun_with(window, dialog, saved_settings):
    assert window.header.engine.currentData() == "null", "nothing is chosen yet"
    dialog.workers.setValue(3)
    dialog.start.click()
    assert FakeHost.instances[-1].engine == ClusterSettings(workers=3)
    assert (window.engine, window.header.engine.currentData()) == ("dask", "dask")
    assert saved_settings.cluster == ClusterSettings(workers=3)
    assert saved_settings.engine != "dask"


def test_an_address_is_taken_from_the_user_and_what_is_not_protected_is_said(dialog):
    dialog.location.choose(REMOTE_SCHEDULER)
    assert not dialog.start.isEnabled()
    dialog.address.setText("nowhere")
    dialog.start.click()
    assert dialog.isVisible()
    assert "'nowhere' is not a scheduler's address." in dialog.warning.text()
    dialog.address.setText("tcp://10.0.0.2:8786")
    assert "can run programs" in dialog.warning.text()
    dialog.address.setText("tcp://127.0.0.1:8786")
    assert not dialog.warning.text()
    dialog.start.click()
    assert FakeHost.instances[-1].engine == ClusterSettings("tcp://127.0.0.1:8786")


def test_certificates_go_together_and_must_be_there(dialog, tmp_path, saved_settings):
    dialog.location.choose(REMOTE_SCHEDULER)
    dialog.address.setText("tls://10.0.0.2:8786")
    paths = [tmp_path / name for name in ("ca.pem", "cert.pem", "key.pem")]
    for field, path in zip(dialog.files, paths, strict=True):
        dialog.start.click()
        assert dialog.isVisible()
        path.touch()
        field.setText(str(path))
    dialog.start.click()
    asked = ClusterSettings("tls://10.0.0.2:8786", tls=Tls(*map(str, paths)))
    assert FakeHost.instances[-1].engine == saved_settings.cluster == asked


def test_without_dask_one_sentence_says_how_to_install_it(window, monkeypatch):
    monkeypatch.setattr("gui.window.main_window.is_installed", lambda: False)
    window.set_engine("dask")
    assert window.findChild(ClusterDialog) is None
    assert "requirements-dask.txt" in window.banner.advice.text()
    assert window.header.engine.currentData() == "null"


def test_a_run_says_who_was_busy_and_what_was_exchanged(window, qtbot):
    show_cluster_run(window, qtbot, make_run(lost=[LostWorker("tcp://127.0.0.1:3", 2)]))
    card = window.page.devices
    assert card.workers.text() == "2 workers, 1 lost"
    # 4.4 s of work in 3.4; a chunk's 4000 bytes to the totals, and these to the other worker.
    assert card.busy.toolTip().startswith("1.3 of 2 busy")
    assert card.exchanged.toolTip() == "4.01 kB exchanged, 8 kB gathered; 2 chunks, 5 tasks"
    assert card.lost_label.text() == "Worker tcp://127.0.0.1:3 was lost: other workers repeated its 2 tasks."
    assert not card.dashboard.isHidden()
    card.workers_button.click()
    assert window.page.tabs.tabText(window.page.tabs.currentIndex()) == "Workers"
    window.bench.outcomes.clear()
    window.set_engine("simulator")
    window.run()
    qtbot.waitUntil(lambda: "scan" in window.bench.outcomes)
    assert card.isHidden()
    assert not window.page.tabs.isTabVisible(window.page.stack.indexOf(window.page.machines))


def test_a_lost_worker_and_a_lost_scheduler_are_told(window, qtbot):
    host = show_cluster_run(window, qtbot, make_run())
    window.run()
    qtbot.waitUntil(lambda: bool(host.pending))
    number = next(iter(host.pending))
    host.deliver(number, Progress(None, "worker tcp://127.0.0.1:2 was lost: other workers repeat its 3 tasks"))
    qtbot.waitUntil(window.banner.isVisible)
    assert window.banner.message.text() == "Worker tcp://127.0.0.1:2 was lost: other workers repeat its 3 tasks."
    host.deliver(number, Progress(0.4, "2 of 5 tasks"))
    qtbot.waitUntil(lambda: window.status.message_label.text() == "2 of 5 tasks…")
    assert window.header.progress.fraction == 0.4
    host.answer(Failure("engine", "The scheduler is gone.", "Start it again."))
    qtbot.waitUntil(lambda: window.banner.message.text() == "The scheduler is gone.")


def test_preferences_lead_to_the_same_question(window):
    window._show_preferences()
    from gui.window.preferences import Preferences

    asked = window.findChild(Preferences)
    asked.engine.choose("Dask cluster")
    assert not asked.isVisible()
    assert window.findChild(ClusterDialog).location.chosen == THIS_MACHINE
