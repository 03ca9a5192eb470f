"""The engine's process, driven through a bare connection. What the host makes of it is in test_host.py."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu.declaration.pattern import Progress
from gpu.messages.events import Failure, Ready
from gpu.messages.files import LoadImage
from gpu.messages.programs import ProgramProgress
from gpu.messages.requests import Request
from gpu.messages.runs.pattern_runs import RunPattern, RunResult
from gpu.messages.shared_arrays import SharedFolder
from gpu.process import engine_process
from tests import needs

FAKE = "tests.gpu.fake_engines:FakeEngine"


class HostConnection:
    """The host's end of the connection."""

    def __init__(self, connection: Any, process: Any, folder: SharedFolder) -> None:
        self.connection, self.process, self.folder = connection, process, folder

    def send(self, job: int, request: Request) -> None:
        self.connection.send((job, pickle.dumps(request)))

    def run_action(self, job: int, deed: str) -> None:
        image = self.folder.put(np.arange(12, dtype=np.uint8).reshape(3, 4))
        self.send(job, RunPattern("fake", "only", {"deed": deed}, {"image": image}))

    def receive(self, *, progress: bool = False) -> tuple[int, Any, bool]:
        while True:
            assert self.connection.poll(30)
            message: tuple[int, Any, bool] = self.connection.recv()
            if progress or not isinstance(message[1], Progress):
                return message


@pytest.fixture
def start_worker(engine_context):
    """Return a context manager that starts the process of an engine, forked where the system can."""
    context = engine_context or multiprocessing.get_context("spawn")

    @contextmanager
    def start(engine: str) -> Iterator[HostConnection]:
        folder = SharedFolder()
        ours, theirs = context.Pipe()
        arguments = (theirs, folder.path, "engine1", engine)
        process = context.Process(target=engine_process.main, args=arguments, daemon=True)
        process.start()
        theirs.close()
        try:
            yield HostConnection(ours, process, folder)
        finally:
            ours.close()
            process.join(10)
            process.kill()
            process.join()
            folder.close()

    return start


def test_it_is_ready_then_serves_until_the_connection_closes(start_worker):
    with start_worker(FAKE) as line:
        job, event, leaving = line.receive()
        assert (job, leaving) == (0, False)
        assert isinstance(event, Ready)
        line.run_action(5, "copy")
        job, event, leaving = line.receive()
        assert (job, leaving) == (5, False)
        assert isinstance(event, RunResult)
        assert Path(event.arrays["result"].path).name.startswith("engine1-")
        line.connection.close()
        line.process.join(10)
        assert line.process.exitcode == 0


def test_a_reference_is_announced_however_soon_it_follows(start_worker):
    with start_worker(FAKE) as line:
        line.receive()
        line.run_action(1, "copy")
        messages = [line.receive(progress=True)[1] for _ in range(3)]
        assert messages[:2] == [Progress(0.0, "copy"), Progress(None, "comparing with the reference result")]


@pytest.mark.parametrize(
    ("deed", "kind", "message"),
    [
        ("does-not-compile", "compile", "';' is missing."),
        ("launch-fails", "launch", "Index 9 is out of bounds."),
        ("no-memory", "input", "There is not enough memory for this."),
    ],
)
def test_a_failure_is_told_and_the_process_stays(start_worker, deed: str, kind: str, message: str):
    with start_worker(FAKE) as line:
        line.receive()
        line.run_action(1, deed)
        job, event, leaving = line.receive()
        assert (job, leaving) == (1, False)
        assert isinstance(event, Failure)
        assert (event.kind, event.message) == (kind, message)
        line.run_action(2, "copy")
        assert isinstance(line.receive()[1], RunResult)


def test_a_lost_engine_is_told_and_the_process_ends(start_worker):
    with start_worker(FAKE) as line:
        line.receive()
        line.run_action(1, "lost")
        job, event, leaving = line.receive()
        assert (job, leaving) == (1, True)
        assert isinstance(event, Failure)
        assert event.message == "The kernel read an illegal address."
        line.process.join(10)
        assert line.process.exitcode == 0


def test_what_nobody_thought_of_is_told_and_the_process_ends(start_worker):
    with start_worker(FAKE) as line:
        line.receive()
        line.run_action(1, "bug")
        job, event, leaving = line.receive()
        assert (job, leaving) == (1, True)
        assert isinstance(event, Failure)
        assert event.kind == "bug"
        assert event.message == "Internal error in Lockstep: ZeroDivisionError: nobody thought of this"
        assert "fake_engines.py" in event.detail


def test_a_name_that_no_engine_has_is_told(start_worker):
    with start_worker("abacus") as line:
        job, event, leaving = line.receive()
        assert (job, leaving) == (0, True)
        assert event == Failure("engine", "There is no engine 'abacus'.", "Choose one of auto, cuda, simulator.")


def test_an_engine_whose_module_is_missing_is_told(start_worker):
    with start_worker("gpu.engines.abacus:Abacus") as line:
        _, event, leaving = line.receive()
        assert leaving
        assert isinstance(event, Failure)
        assert event.message.startswith("The engine gpu.engines.abacus:Abacus is not installed: No module named")


@pytest.mark.alone
def test_the_time_between_two_progress_events_is_kept(start_worker):
    with start_worker(FAKE) as line:
        line.receive()
        line.run_action(1, "endless-but-telling")
        line.receive(progress=True)
        times = []
        for _ in range(6):
            line.receive(progress=True)
            times.append(time.monotonic())
        assert times[-1] - times[0] >= 0.8 * 5 * engine_process.PROGRESS_INTERVAL_S
        line.process.kill()


@needs.posix
def test_it_leaves_the_terminal_s_group(start_worker):
    with start_worker("null") as line:
        line.receive()
        assert os.getpgid(line.process.pid) == line.process.pid


def test_a_file_that_is_no_image_is_told(start_worker, tmp_path: Path):
    path = tmp_path / "a.png"
    path.write_text("not an image")
    with start_worker("null") as line:
        line.receive()
        line.send(1, LoadImage(str(path)))
        _, event, _ = line.receive()
        assert isinstance(event, Failure)
        assert event.kind == "input"
        assert event.message.count(".") >= 1
        assert "Traceback" not in event.detail


def test_news_of_a_program_are_never_left_out():
    class FakeConnection:
        def __init__(self):
            self.sent = []

        def send(self, message):
            self.sent.append(message)

    kept = FakeConnection()
    tell = engine_process._Throttle(kept, 7)
    for number in range(5):
        tell(ProgramProgress(output=str(number)))
    assert [progress.output for _, progress, _ in kept.sent] == ["0", "1", "2", "3", "4"]
