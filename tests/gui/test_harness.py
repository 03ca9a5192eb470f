"""What the tests of the window share: the process that forks engines, and recordings."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from gpu.messages.runs.recordings import StepPattern
from gpu.messages.shared_arrays import SharedFolder
from gpu.process import engine_host
from gui.step_view.recording.models import load_models
from tests.gui.recordings import record


def send_start_state(connection):
    """Send what a process starts with."""
    connection.send((os.environ.get("LOCKSTEP_STARTED"), str(Path.cwd()), "gpu.engines.simulator" in sys.modules))


def test_a_forked_engine_starts_with_its_modules_and_the_present_environment(monkeypatch, tmp_path):
    for number in range(2):
        monkeypatch.setenv("LOCKSTEP_STARTED", str(number))
        monkeypatch.chdir(tmp_path)
        ours, theirs = engine_host._SPAWN.Pipe()
        process = engine_host._SPAWN.Process(target=send_start_state, args=(theirs,))
        process.start()
        assert ours.recv() == (str(number), str(tmp_path), sys.platform.startswith("linux"))
        process.join()
        assert process.exitcode == 0


@pytest.fixture
def folder():
    folder = SharedFolder()
    yield folder
    folder.close()


def record_reduction(folder, values=None, **options):
    """Return a recording's file of 32 elements, or of some values."""
    inputs = {} if values is None else {"values": folder.put(np.array(values, np.float32))}
    params = {"n": 32, "block": "16", "input": "random" if values is None else "file"}
    return record(StepPattern("reduction", "neighbored", params, inputs, **options), folder)


def test_equal_requests_get_equal_recordings_in_files_of_their_own(folder):
    first, second = (record_reduction(folder) for _ in range(2))
    assert first.path != second.path
    folder.discard(first.arrays["recording"])
    assert load_models(second.path).recording.event_count > 20


def test_what_differs_in_seed_schedule_or_input_is_another_recording(folder):
    made = [
        record_reduction(folder),
        record_reduction(folder, seed=1),
        record_reduction(folder, schedule="shuffle:1"),
        record_reduction(folder, np.arange(32)),
        record_reduction(folder, np.arange(32)[::-1]),
    ]
    assert len({each.arrays["recording"].open().tobytes() for each in made}) == len(made)
