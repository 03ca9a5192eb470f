from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from gpu.declaration.pattern import Progress
from gpu.messages.events import EngineHalt, Failure, Ready
from gpu.messages.files import LoadImage
from gpu.messages.runs.pattern_runs import RunPattern, RunResult
from gpu.process import engine_host, engine_process
from gpu.process.engine_host import MAX_FUTILE_STARTS, EngineHost
from tests import needs
from tests.gpu.process.host_listener import Listener, children, is_alive, list_guards, listening, wait_until

posix = needs.posix

FAKE = "tests.gpu.fake_engines:FakeEngine"
LOOK_S = 0.1


@pytest.fixture
def fake(request: pytest.FixtureRequest):
    """A host whose process has started: as the product starts it where time is measured, else quickly."""
    if request.node.get_closest_marker("alone") is None:
        request.getfixturevalue("engine_forks")
    with listening(FAKE) as listener:
        listener.host.start()
        assert isinstance(listener.next_event()[1], Ready)
        yield listener


@pytest.fixture
def starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in which some fake engines count their starts."""
    path = tmp_path / "starts"
    monkeypatch.setenv("LOCKSTEP_TEST_STARTS", str(path))
    return path


def files(listener: Listener) -> set[Path]:
    return set(Path(listener.host.folder.path).iterdir())


def assert_engine_works(listener: Listener) -> None:
    number = listener.run_action("copy")
    while True:
        answered, event = listener.next_event()
        if not isinstance(event, Ready):
            break
    assert answered == number
    assert isinstance(event, RunResult), event
    assert np.array_equal(event.arrays["result"].open(), np.arange(12).reshape(3, 4))


def test_start_answers_with_the_device():
    with listening("null") as listener:
        listener.host.start()
        number, event = listener.next_event()
        assert number == 0
        assert isinstance(event, Ready)
        assert event.device.engine == "null"


def test_start_twice_starts_one_process(fake: Listener):
    fake.host.start()
    assert fake.is_silent()
    assert len(children()) == 1


def test_submit_starts_the_process_by_itself():
    with listening(FAKE) as listener:
        assert_engine_works(listener)


def test_jobs_are_served_in_order_and_numbered(fake: Listener):
    numbers = [fake.run_action("copy") for _ in range(5)]
    assert numbers == [1, 2, 3, 4, 5]
    assert [fake.next_event()[0] for _ in numbers] == numbers


def test_a_run_reports_progress_then_the_result(fake: Listener):
    number = fake.run_action("copy")
    first = fake.next_event(progress=True)
    assert first == (number, Progress(0.0, "copy"))
    _, event = fake.next_event()
    assert isinstance(event, RunResult)
    assert event.report.verified is True
    assert event.report.time_ms.kernel == 2.0
    assert event.report.throughput.value == pytest.approx(12 / 0.002 / 1e6)
    assert event.report.throughput.unit == "Mpixel/s"


@pytest.mark.alone
def test_progress_is_not_sent_more_often_than_a_screen_needs(fake: Listener):
    fake.run_action("endless-but-telling")
    fake.wait_for_progress("endless-but-telling")
    until_then = time.monotonic() + 0.5
    count = 0
    while time.monotonic() < until_then:
        fake.next_event(progress=True)
        count += 1
    assert 3 <= count <= 13


def test_result_files_go_with_their_handles(fake: Listener):
    image = fake.host.folder.adopt(fake.image())
    fake.run_action("copy", image)
    _, event = fake.next_event()
    assert isinstance(event, RunResult)
    array = event.arrays["result"].open()
    # Input, result (which is the picture as well); and the places for temporary files and for a crash's stack.
    assert len(files(fake)) == 2 + 2
    del event, image
    assert wait_until(lambda: len(files(fake)) == 2)
    assert array[2, 3] == 11


def test_a_request_keeps_its_arrays_until_the_job_ends(fake: Listener):
    fake.run_action("endless")
    fake.run_action("copy", fake.host.folder.adopt(fake.image()))
    fake.wait_for_progress("endless")
    path = next(Path(fake.host.folder.path).glob("host-1"))
    assert path.exists()
    fake.host.cancel()
    assert wait_until(lambda: not path.exists())


def test_input_that_is_refused_is_a_failure(fake: Listener, tmp_path: Path):
    missing = tmp_path / "missing.png"
    number = fake.host.submit(LoadImage(str(missing)))
    assert fake.failure() == (number, Failure("input", f"There is no file {missing}."))
    fake.host.submit(RunPattern("fake", "only", {"deed": "nap"}))
    assert fake.failure()[1].message.startswith("--deed is one of copy, ")
    fake.host.submit(RunPattern("fake", "best"))
    assert fake.failure()[1].message == "Fake has no variant 'best'; there are only."
    assert_engine_works(fake)


def test_a_failed_run_is_told_and_the_next_one_works_in_the_same_process(fake: Listener):
    process = children()
    fake.run_action("launch-fails")
    _, failure = fake.failure()
    assert (failure.kind, failure.message) == ("launch", "Index 9 is out of bounds.")
    assert str(failure.position) == "fake.cu:4"
    assert_engine_works(fake)
    assert children() == process


@posix
@pytest.mark.parametrize(
    ("deed", "message"),
    [
        ("abort", "The engine's process aborted after an error (SIGABRT)."),
        ("bad-address", "The engine's process accessed invalid memory (SIGSEGV)."),
        ("killed", "The engine's process was killed by the system, most likely because memory ran out."),
        ("exit", "The engine's process exited unexpectedly with code 7."),
    ],
)
def test_a_crash_is_told_and_the_next_run_works(fake: Listener, deed: str, message: str):
    crashing, waiting = fake.run_action(deed), fake.run_action("copy")
    number, failure = fake.failure()
    assert (number, failure.kind, failure.message) == (crashing, "crash", message)
    assert failure.advice
    assert isinstance(fake.next_event()[1], Ready)
    number, event = fake.next_event()
    assert number == waiting
    assert isinstance(event, RunResult)
    assert_engine_works(fake)


@posix
def test_a_crash_carries_the_stack_of_the_crash(fake: Listener):
    fake.run_action("bad-address")
    _, failure = fake.failure()
    assert "Segmentation fault" in failure.detail
    assert "fake_engines.py" in failure.detail


def test_after_a_mistake_of_ours_the_engine_is_replaced(fake: Listener):
    process = children()
    fake.run_action("bug")
    assert fake.failure()[1].kind == "bug"
    assert isinstance(fake.next_event()[1], Ready)
    assert_engine_works(fake)
    assert children() != process


def test_a_lost_engine_is_told_and_replaced(fake: Listener):
    process = children()
    lost, waiting = fake.run_action("lost"), fake.run_action("copy")
    number, failure = fake.failure()
    assert number == lost
    assert (failure.kind, failure.message) == ("launch", "The kernel read an illegal address.")
    assert failure.advice == "Check the index."
    assert isinstance(fake.next_event()[1], Ready)
    assert fake.next_event()[0] == waiting
    assert children() != process


@pytest.mark.alone
@pytest.mark.parametrize(
    "deed",
    [
        "endless",
        "endless-but-telling",
        pytest.param("endless-outside-python", marks=posix),
        pytest.param("endless-with-python-locked", marks=posix),
    ],
)
def test_cancel_stops_anything_within_two_seconds(fake: Listener, deed: str):
    process = children()
    running, waiting = fake.run_action(deed), fake.run_action("copy")
    fake.wait_for_progress(deed)
    began = time.monotonic()
    fake.host.cancel()
    cancelled = [fake.failure(), fake.failure()]
    _, event = fake.next_event()
    assert time.monotonic() - began < 2.0
    assert [number for number, _ in cancelled] == [running, waiting]
    assert all(failure.kind == "cancelled" for _, failure in cancelled)
    assert isinstance(event, Ready)
    assert not any(map(is_alive, process))
    assert_engine_works(fake)


def test_cancel_with_nothing_to_do_restarts_too(fake: Listener):
    process = children()
    fake.host.cancel()
    assert isinstance(fake.next_event()[1], Ready)
    assert children() != process
    assert_engine_works(fake)


def test_a_job_submitted_right_after_cancel_is_served(fake: Listener):
    for _ in range(2):
        running = fake.run_action("endless")
        fake.host.cancel()
        after = fake.run_action("copy")
        assert fake.failure()[0] == running
        events = [fake.next_event()]
        while isinstance(events[-1][1], Ready):
            events.append(fake.next_event())
        assert events[-1][0] == after
        assert isinstance(events[-1][1], RunResult)


@posix
@pytest.mark.parametrize("goes_on", [True, False])
def test_a_process_that_is_stopped_from_outside_is_told(fake: Listener, goes_on: bool, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(engine_host, "HALT_CHECK_INTERVAL_S", LOOK_S)
    (process,) = children()
    os.kill(process, signal.SIGSTOP)
    assert fake.is_silent(1.5 * LOOK_S), "it has nothing to do"
    number = fake.run_action("copy")
    assert fake.next_event() == (0, EngineHalt(process))
    assert fake.is_silent(2 * LOOK_S), "it is told once"
    if goes_on:
        os.kill(process, signal.SIGCONT)
        assert fake.next_event() == (0, EngineHalt(None))
        assert isinstance(fake.next_event()[1], RunResult)
        number = fake.run_action("endless")
    fake.host.cancel()
    events = [fake.next_event() for _ in range(2 + (not goes_on))]
    assert (number, Failure("cancelled", "Stopped.")) in events
    assert isinstance(events[-1][1], Ready)
    assert goes_on or (0, EngineHalt(None)) in events
    assert_engine_works(fake)


@posix
@pytest.mark.parametrize("deed", ["endless", "endless-with-python-locked"])
def test_a_process_that_works_and_says_nothing_is_not_taken_for_a_stopped_one(
    fake: Listener, deed: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(engine_host, "HALT_CHECK_INTERVAL_S", LOOK_S)
    fake.run_action(deed)
    fake.wait_for_progress(deed)
    assert fake.is_silent(2.5 * LOOK_S)


def test_cancel_gets_out_of_a_start_that_hangs():
    with listening("tests.gpu.fake_engines:NeverReadyEngine") as listener:
        listener.host.start()
        waiting = listener.host.submit(LoadImage("x"))
        assert listener.is_silent()
        listener.host.cancel()
        number, failure = listener.failure()
        assert (number, failure.kind) == (waiting, "cancelled")


def test_cancel_before_the_start_does_nothing():
    with listening("null") as listener:
        listener.host.cancel()
        assert listener.is_silent(0.1)


@pytest.mark.alone
@posix
def test_cancel_ends_the_compilers_of_the_process_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pid_file = tmp_path / "pid"
    monkeypatch.setenv("LOCKSTEP_TEST_PID_FILE", str(pid_file))
    with listening(FAKE) as listener:
        listener.run_action("endless-with-a-compiler")
        assert wait_until(lambda: pid_file.exists() and pid_file.read_text() != "")
        compiler = int(pid_file.read_text())
        assert is_alive(compiler)
        listener.host.cancel()
        assert listener.next_event()
        assert wait_until(lambda: not is_alive(compiler), 2)


def test_what_a_killed_process_left_is_removed_and_results_stay(fake: Listener):
    fake.run_action("copy")
    _, event = fake.next_event()
    assert isinstance(event, RunResult)
    left = Path(fake.host.folder.path, "engine1-99")
    left.write_bytes(b"half a result")
    fake.host.cancel()
    assert isinstance(fake.next_event()[1], Ready)
    assert not left.exists()
    assert event.arrays["result"].open()[2, 3] == 11


@pytest.mark.usefixtures("engine_forks")
def test_an_engine_that_is_not_there_is_told_with_its_remedy():
    with listening("tests.gpu.fake_engines:UnavailableEngine") as listener:
        listener.host.start()
        assert listener.next_event() == (0, Failure("engine", "There is no GPU.", "Buy one.", "evidence"))
        assert wait_until(lambda: not children())
        number = listener.host.submit(LoadImage("x"))  # tries again
        assert [listener.failure()[0], listener.failure()[0]] == [0, number]
        assert listener.is_silent()


def test_an_engine_that_fails_at_start_is_told_with_the_traceback():
    with listening("tests.gpu.fake_engines:BrokenEngine") as listener:
        listener.host.start()
        _, failure = listener.failure()
        assert failure.kind == "engine"
        assert failure.message == "The engine did not start: ZeroDivisionError: at start"
        assert "Traceback" in failure.detail


@posix
@pytest.mark.usefixtures("engine_forks")
def test_an_engine_that_dies_at_every_start_is_given_up(starts: Path):
    with listening("tests.gpu.fake_engines:EngineDyingAtStart") as listener:
        number = listener.host.submit(LoadImage("x"))
        (first, failure), (second, same) = listener.failure(), listener.failure()
        assert (first, second) == (0, number)
        assert failure == same
        assert failure.kind == "engine"
        assert failure.message.startswith("The engine does not start: ")
        assert failure.advice
        assert len(starts.read_text()) == MAX_FUTILE_STARTS
        listener.host.start()
        assert listener.failure()[0] == 0
        assert len(starts.read_text()) == 2 * MAX_FUTILE_STARTS


@posix
@pytest.mark.usefixtures("engine_forks")
def test_an_engine_that_dies_at_its_first_start_gets_another(starts: Path):
    with listening("tests.gpu.fake_engines:EngineDyingAtFirstStart") as listener:
        assert_engine_works(listener)


@pytest.mark.usefixtures("engine_forks")
def test_an_engine_that_dies_idle_again_and_again_is_given_up(starts: Path):
    with listening("tests.gpu.fake_engines:EngineDyingWhenReady") as listener:
        listener.host.start()
        events = [listener.next_event()[1] for _ in range(MAX_FUTILE_STARTS + 1)]
        assert all(isinstance(event, Ready) for event in events[:-1])
        assert isinstance(events[-1], Failure)
        assert listener.is_silent()
        assert len(starts.read_text()) == MAX_FUTILE_STARTS


@pytest.mark.alone
def test_close_leaves_nothing_behind_and_can_be_called_again():
    listener = Listener(FAKE)
    listener.run_action("endless")
    listener.wait_for_progress("endless")
    process = children()
    threads = threading.active_count()
    assert len(list_guards(listener.host.folder.path)) == Path("/proc/self").exists()
    began = time.monotonic()
    listener.host.close()
    listener.host.close()
    assert not list_guards(listener.host.folder.path)
    assert time.monotonic() - began < 2
    assert not any(map(is_alive, process))
    assert not children()
    assert threading.active_count() == threads - 1
    assert not Path(listener.host.folder.path).exists()
    assert listener.is_silent(0.1)


def test_close_without_start_leaves_nothing_behind():
    listener = Listener("null")
    listener.host.close()
    assert not Path(listener.host.folder.path).exists()


def test_a_closed_host_says_so():
    listener = Listener("null")
    listener.host.close()
    with pytest.raises(RuntimeError, match="closed"):
        listener.host.start()
    with pytest.raises(RuntimeError, match="closed"):
        listener.host.submit(LoadImage("x"))


def test_close_from_within_deliver_does_not_hang():
    closed = threading.Event()
    hosts: list[EngineHost] = []

    def deliver(number: int, event: object) -> None:
        hosts[0].close()
        closed.set()

    hosts.append(EngineHost("null", deliver=deliver))
    hosts[0].start()
    assert closed.wait(30)
    assert wait_until(lambda: not children())


def test_a_receiver_that_raises_does_not_stop_the_host(caplog: pytest.LogCaptureFixture):
    came = threading.Semaphore(0)

    def deliver(number: int, event: object) -> None:
        came.release()
        raise ValueError("the window is gone")

    with closing(EngineHost("null", deliver=deliver)) as host:
        host.start()
        assert came.acquire(timeout=30)
        host.submit(LoadImage("x"))
        assert came.acquire(timeout=30)
    assert "the window is gone" in caplog.text
    caplog.clear()


def test_a_window_that_goes_while_its_engine_starts_leaves_no_traceback(tmp_path, capfd):
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=engine_process.main, args=(theirs, str(tmp_path / "gone"), "engine1", "null")
    )
    process.start()
    process.join(60)
    ours.close()
    assert process.exitcode == 0
    assert capfd.readouterr().err == ""
