"""The window beside a real engine's process: it never waits, and it leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PyQt6.QtCore import QPoint, Qt, QTimer

from gpu.base.paths import KERNELS
from gui.app import handle_signals
from gui.window.main_window import MainWindow
from tests import needs
from tests.gpu.process.host_listener import wait_until
from tests.gui.conftest import close_window, wait_until_idle
from tests.leftovers import find_marked_processes

ROOT = KERNELS.parent
LONGEST_GAP_S = 0.1
ATTEMPTS = 5


@pytest.fixture
def real_window(qtbot, saved_settings):
    windows = []

    def make(engine):
        window = MainWindow(saved_settings, engine, survey=list)
        windows.append(window)
        window.resize(1280, 720)
        with qtbot.waitExposed(window):
            window.show()
        return window

    yield make
    for window in windows:
        close_window(window)


def undisturbed_time():
    """Return a clock's seconds less those for which this thread was ready to run and other processes ran instead."""
    try:
        waited_ns = int(Path("/proc/thread-self/schedstat").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        waited_ns = 0
    return time.perf_counter() - waited_ns * 1e-9


class Pulse:
    """A 10 ms timer that notes when it fired."""

    def __init__(self):
        self.times = [undisturbed_time()]
        self._timer = QTimer(interval=10)
        self._timer.timeout.connect(lambda: self.times.append(undisturbed_time()))
        self._timer.start()

    def longest_gap(self):
        self._timer.stop()
        return max(later - sooner for sooner, later in pairwise(self.times))


def write_pgm(path, side):
    rng = np.random.default_rng(0)
    with open(path, "wb") as file:
        file.write(b"P5\n%d %d\n255\n" % (side, side))
        file.write(rng.integers(0, 256, (side, side), np.uint8).tobytes())


def best_of_attempts(attempt):
    """Return the best of a few attempts' longest gaps: another process's load is not the window's doing."""
    gaps = []
    for _ in range(ATTEMPTS):
        gaps.append(attempt())
        if gaps[-1] < LONGEST_GAP_S:
            break
    return min(gaps)


@pytest.mark.alone
def test_a_16_megapixel_image_never_holds_the_window_up(qtbot, real_window, tmp_path):
    window = real_window("null")
    small, large = tmp_path / "small.pgm", tmp_path / "large.pgm"
    write_pgm(small, 64)
    write_pgm(large, 4096)
    window.bench.open_image(small)
    wait_until_idle(qtbot, window)

    def attempt():
        pulse = Pulse()
        window.files.open_file(large)
        qtbot.waitUntil(lambda: window.bench.image.path == large, timeout=30_000)
        wait_until_idle(qtbot, window)
        window.page.view.before.box.scaleBy((0.5, 0.5))
        qtbot.wait(100)
        window.page.view.before.show_whole_image()
        qtbot.wait(100)
        gap = pulse.longest_gap()
        window.files.open_file(small)
        qtbot.waitUntil(lambda: window.bench.image.path == small, timeout=30_000)
        wait_until_idle(qtbot, window)
        return gap

    assert best_of_attempts(attempt) < LONGEST_GAP_S


def test_compiling_and_what_is_left_to_lockstep_are_told(qtbot, real_window, tmp_path, monkeypatch):
    monkeypatch.setenv("LOCKSTEP_CACHE", str(tmp_path))
    window = real_window("simulator")
    window.load_first_input()
    view = window.page.view
    qtbot.waitUntil(lambda: view.note is not None and view.note.isVisible(), timeout=60_000)
    assert view.note.text() == "Compiling convolve_naive for this processor…"
    qtbot.waitUntil(lambda: window.is_idle, timeout=60_000)
    assert not view.note.isVisible()
    assert window.status.device.text().endswith("compiled executor")
    document = window.bench.sources.document("convolution.cu")
    head = "void convolve_tiled(const float *image, float *out, int width, int height, int border) {"
    assert head in document.text
    document.setPlainText(document.text.replace(head, head + '\n    if (width < 0) printf("%d", width);'))
    qtbot.waitUntil(lambda: window.is_idle, timeout=60_000)
    window.bench.run()
    told = "lockstep executor: every access of an edited kernel is checked"
    qtbot.waitUntil(lambda: window.status.device.text().endswith(told), timeout=60_000)


@pytest.mark.alone
def test_real_kernels_never_hold_the_window_up(qtbot, real_window):
    window = real_window("simulator")
    window.load_first_input()
    qtbot.waitUntil(lambda: window.is_idle, timeout=60_000)

    def attempt():
        pulse = Pulse()
        slider = window.page.form.fields["size"].slider
        for value in (2, 5, 1, 4, 3):
            slider.setValue(value)
            qtbot.wait(60)
        qtbot.waitUntil(lambda: window.is_idle, timeout=60_000)
        window.choose_pattern("histogram")
        qtbot.waitUntil(lambda: window.is_idle, timeout=60_000)
        window.choose_variant("racy")
        qtbot.waitUntil(lambda: window.is_idle, timeout=60_000)
        window.choose_variant("privatized")
        qtbot.waitUntil(lambda: window.is_idle, timeout=60_000)
        window.choose_pattern("convolution")
        qtbot.waitUntil(lambda: window.is_idle, timeout=60_000)
        return pulse.longest_gap()

    # Building a page for the first time is not what is measured here.
    attempt()
    assert best_of_attempts(attempt) < LONGEST_GAP_S
    assert window.bench.outcomes["convolution"].report.verified
    assert window.bench.outcomes["histogram"].report.verified


@pytest.mark.alone
def test_stepping_never_holds_the_window_up(qtbot, real_window):
    window = real_window("null")
    window.choose_pattern("scan")
    tab = window.page.step

    def is_settled():
        return tab.models is not None and not tab.stepper.busy and not tab._record_timer.isActive() and not tab._stale

    def attempt():
        pulse = Pulse()
        window.page.tabs.setCurrentIndex(1)
        for variant, n, block in (("kogge-stone", 256, "256"), ("brent-kung", 64, "64"), ("kogge-stone", 16, "16")):
            window.choose_variant(variant)
            tab.settings.form.change_values(n=n, block=block)
            qtbot.waitUntil(is_settled, timeout=60_000)
            tab.player.go_to_end(last=True)
            qtbot.wait(50)
            tab.player.set_speed(16)
            tab.player.play()
            qtbot.wait(300)
            tab.player.pause()
            for share in (0.2, 0.9, 0.5):
                tab.panes.timeline.moment_requested.emit(int(share * tab.player.end))
                qtbot.wait(30)
        window.page.tabs.setCurrentIndex(0)
        return pulse.longest_gap()

    attempt()
    assert best_of_attempts(attempt) < LONGEST_GAP_S
    assert tab.models.recording.event_count == tab.player.end


@pytest.mark.alone
def test_measuring_never_holds_the_window_up(qtbot, real_window):
    window = real_window("simulator")
    window.choose_pattern("compaction")
    qtbot.waitUntil(lambda: window.is_idle, timeout=60_000)
    window.page.tabs.setCurrentIndex(2)
    tab = window.page.compare
    tab.largest.setCurrentIndex(tab.largest.findData(14))
    qtbot.wait(100)

    def attempt():
        pulse = Pulse()
        tab.measure_button.click()
        qtbot.waitUntil(lambda: not tab.sweep.running, timeout=100_000)
        window.page.tabs.setCurrentIndex(0)
        for n in (10, 100, 5000, 2**16, 2**20):
            window.page.form.change_values(n=n)
            qtbot.waitUntil(lambda: window.is_idle, timeout=60_000)
            qtbot.wait(30)
        window.page.tabs.setCurrentIndex(2)
        return pulse.longest_gap()

    assert best_of_attempts(attempt) < LONGEST_GAP_S
    assert {point.variant for point in tab.points} == {variant.name for variant in tab._pattern.variants}


@pytest.mark.alone
def test_stop_ends_a_long_run_within_two_seconds_and_the_next_works(qtbot, real_window, tmp_path):
    window = real_window("simulator")
    small, large = tmp_path / "small.pgm", tmp_path / "large.pgm"
    write_pgm(small, 64)
    write_pgm(large, 4096)
    window.bench.open_image(small)
    qtbot.waitUntil(lambda: window.is_idle, timeout=60_000)
    window.page.form.change_values(size=31)
    window.files.open_file(large)
    qtbot.waitUntil(lambda: window.bench.image.path == large and window.header.stop.isEnabled(), timeout=60_000)
    qtbot.wait(300)
    assert window.header.stop.isEnabled()
    start = time.perf_counter()
    with qtbot.waitSignal(window.jobs.ready, timeout=10_000):
        window.header.stop.click()
    assert time.perf_counter() - start < 2
    assert window.bench.image.path == large
    window.files.open_file(small)
    qtbot.waitUntil(lambda: window.bench.image.path == small and window.is_idle, timeout=60_000)
    assert window.bench.outcomes["convolution"].report.verified


OPEN_AND_CLOSE = """
import sys
from PyQt6.QtCore import QPoint, Qt, QTimer
from gui.app import application
if __name__ == "__main__":
    app = application()
    from gui.window.main_window import MainWindow
    window = MainWindow(engine=sys.argv[1])
    window.show()
    window.load_first_input()
    folder = window.jobs.folder.path
    timer = QTimer()
    timer.timeout.connect(lambda: window.close() if window.bench.outcomes else None)
    timer.start(50)
    status = app.exec()
    heavy = {"scipy", "clang", "pycuda", "gpu.simulator", "gpu.engines.simulator"} & set(sys.modules)
    assert not heavy, heavy
    print(folder)
    sys.exit(status)
"""


@needs.proc
def test_closing_the_window_leaves_no_process_and_no_file_behind(tmp_path):
    script = tmp_path / "open_and_close.py"
    script.write_text(OPEN_AND_CLOSE)
    mark = f"LOCKSTEP_TEST={uuid.uuid4().hex}"
    name, value = mark.split("=")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    environment = {**os.environ, name: value, "PYTHONPATH": str(ROOT), "TMPDIR": str(scratch)}
    done = subprocess.run(
        [sys.executable, str(script), "simulator"], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr

    assert wait_until(lambda: not find_marked_processes(mark))
    assert Path(done.stdout.strip()).name.startswith("lockstep-")
    assert not Path(done.stdout.strip()).exists()
    assert not list(scratch.glob("lockstep-*"))


def catches_sigterm(process):
    status = Path(f"/proc/{process}/status").read_text()
    caught = int(next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt")), 16)
    return bool(caught >> (signal.SIGTERM - 1) & 1)


@needs.proc
def test_an_interrupt_closes_the_window_and_its_engine():
    name, value = "LOCKSTEP_TEST", uuid.uuid4().hex
    environment = {**os.environ, name: value}
    command = [sys.executable, str(ROOT / "main.py")]
    process = subprocess.Popen(command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert wait_until(lambda: catches_sigterm(process.pid) and len(find_marked_processes(f"{name}={value}")) >= 2)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 0, errors
    assert b"Traceback" not in errors
    assert wait_until(lambda: not find_marked_processes(f"{name}={value}"))


def test_a_signal_waits_for_the_event_loop(qtbot):
    numbers = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name)]
    previous = {number: signal.getsignal(number) for number in numbers}
    lock, closed = threading.Lock(), []
    try:
        handle_signals(lambda: closed.append(lock.acquire(timeout=1)))
        with lock:  # such as the lock of the engine's host, while a request is sent
            signal.raise_signal(signal.SIGINT)
        qtbot.waitUntil(lambda: bool(closed))
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    assert closed == [True]


@pytest.mark.alone
def test_bodies_that_play_never_hold_the_window_up(qtbot, real_window, tmp_path):
    window = real_window("simulator")
    window.choose_pattern("nbody")
    window.page.form.change_values(bodies=1024)
    view = window.page.view
    qtbot.waitUntil(lambda: view.frame is not None and not window.jobs.busy, timeout=60_000)

    def attempt():
        pulse = Pulse()
        view.controls.buttons["play"].click()
        qtbot.waitUntil(lambda: view.frame is not None and view.frame.figures.steps > 10, timeout=60_000)
        for turned in range(10):
            qtbot.mousePress(view.canvas, Qt.MouseButton.LeftButton, pos=view.canvas.rect().center())
            qtbot.mouseMove(view.canvas, view.canvas.rect().center() + QPoint(9 * turned, turned))
            qtbot.mouseRelease(view.canvas, Qt.MouseButton.LeftButton)
            qtbot.wait(20)
        window.page.form.change_values(dt=0.01, softening=0.1)
        window.choose_variant("naive")
        view.film_export.begin_film(tmp_path / "film.gif")
        steps = view.frame.figures.steps
        qtbot.waitUntil(lambda: view.frame.figures.steps > steps + 10, timeout=60_000)
        view.film_export.end_film()
        window.page.form.change_values(preset="plummer")
        qtbot.waitUntil(lambda: view.frame is not None and view.frame.figures.steps > 3, timeout=60_000)
        view.controls.buttons["play"].click()
        gap = pulse.longest_gap()
        qtbot.waitUntil(lambda: not view.film_export.writing, timeout=60_000)
        window.page.form.change_values(preset="galaxies")
        return gap

    assert best_of_attempts(attempt) < LONGEST_GAP_S


def test_stop_ends_a_step_of_too_many_bodies_and_it_begins_again(qtbot, real_window):
    window = real_window("simulator")
    window.choose_pattern("nbody")
    view = window.page.view
    qtbot.waitUntil(lambda: view.frame is not None and not window.jobs.busy, timeout=60_000)
    window.page.form.change_values(bodies=2**18)
    qtbot.waitUntil(lambda: view.frame is not None and view.frame.figures.bodies == 2**18, timeout=60_000)
    view.controls.buttons["play"].click()
    qtbot.waitUntil(lambda: window.jobs.age("bodies") > 1.2, timeout=60_000)
    with qtbot.waitSignal(window.jobs.ready, timeout=20_000):
        window.header.stop.click()
    window.page.form.change_values(bodies=300)
    view.controls.buttons["play"].click()
    qtbot.waitUntil(lambda: view.frame is not None and view.frame.figures.steps > 3, timeout=60_000)
    assert view.frame.figures.bodies == 300
    view.controls.buttons["play"].click()
