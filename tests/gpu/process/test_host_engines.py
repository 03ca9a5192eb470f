"""The engine's process with each of the real engines in it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from gpu.base.paths import KERNELS
from gpu.declaration.pattern import Progress
from gpu.files import images
from gpu.messages.events import Failure, Ready
from gpu.messages.files import LoadImage
from gpu.messages.requests import ArrayResult
from gpu.messages.runs.pattern_runs import RunPattern, RunResult
from gpu.messages.shared_arrays import SharedArray
from tests.gpu.process.host_listener import Listener, listening

LONG = 4096


@pytest.fixture(
    scope="module", params=["simulator", pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.hardware])]
)
def engine(request: pytest.FixtureRequest) -> Iterator[Listener]:
    with listening(request.param) as listener:
        listener.host.start()
        _, event = listener.next_event()
        assert isinstance(event, Ready), event
        assert event.device.engine == request.param
        yield listener


@pytest.fixture
def simulator() -> Iterator[Listener]:
    with listening("simulator") as listener:
        listener.host.start()
        assert isinstance(listener.next_event()[1], Ready)
        yield listener


def submit_image(listener: Listener, pixels: np.ndarray) -> dict[str, SharedArray]:
    folder = listener.host.folder
    return {
        "image": folder.adopt(folder.put(pixels)),
        "maxval": folder.adopt(folder.put(np.array(255, np.uint8))),
    }


def edit_kernel(old: str, new: str) -> dict[str, str]:
    text = (KERNELS / "convolution.cu").read_text()
    assert text.count(old) >= 1
    return {"convolution.cu": text.replace(old, new)}


def noise(size: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 256, (size, size), np.uint8)


def test_a_file_is_loaded_run_and_verified(engine: Listener, tmp_path: Path):
    path = tmp_path / "a.pgm"
    images.write_image(path, noise(40))
    engine.host.submit(LoadImage(str(path)))
    _, loaded = engine.next_event()
    assert isinstance(loaded, ArrayResult)
    inputs = {name: loaded.arrays[name] for name in ("image", "maxval")}
    for pattern, variant in (("convolution", "tiled"), ("histogram", "privatized")):
        engine.host.submit(RunPattern(pattern, variant, inputs=inputs))
        _, event = engine.next_event()
        assert isinstance(event, RunResult), event
        assert event.report.verified is True
        assert event.report.time_ms.kernel > 0
        assert event.arrays["picture"].open().shape == (40, 40)


@pytest.mark.alone
def test_an_endless_kernel_is_cancelled_within_two_seconds(engine: Listener):
    sources = edit_kernel("float sum = 0.0f", "while (true) { atomicAdd(out, 1.0f); } float sum = 0.0f")
    request = RunPattern("convolution", "naive", inputs=submit_image(engine, noise(64)), sources=sources)
    number = engine.host.submit(request)
    engine.wait_for_progress("uploaded")
    time.sleep(0.3)
    began = time.monotonic()
    engine.host.cancel()
    answered, failure = engine.failure()
    assert (answered, failure.kind) == (number, "cancelled"), failure
    assert isinstance(engine.next_event()[1], Ready)
    assert time.monotonic() - began < 2.0
    engine.host.submit(RunPattern("convolution", "tiled", inputs=submit_image(engine, noise(8))))
    assert isinstance(engine.next_event()[1], RunResult)


@pytest.fixture
def machine_code() -> Iterator[Listener]:
    with listening("tests.gpu.fake_engines:CompilingEngine") as listener:
        listener.host.start()
        assert isinstance(listener.next_event()[1], Ready)
        yield listener


@pytest.mark.alone
def test_an_endless_loop_of_machine_code_ends_with_its_process(machine_code: Listener):
    sources = edit_kernel("float sum = 0.0f", "while (true) { atomicAdd(out, 1.0f); } float sum = 0.0f")
    request = RunPattern("convolution", "naive", inputs=submit_image(machine_code, noise(64)), sources=sources)
    number = machine_code.host.submit(request)
    machine_code.wait_for_progress("uploaded")
    time.sleep(0.5)
    began = time.monotonic()
    machine_code.host.cancel()
    answered, failure = machine_code.failure()
    assert (answered, failure.kind) == (number, "cancelled"), failure
    assert time.monotonic() - began < 2.0
    assert isinstance(machine_code.next_event()[1], Ready)
    assert_runs_as_machine_code(machine_code)


def test_machine_code_that_writes_anywhere_harms_its_own_process_alone(machine_code: Listener):
    inputs = submit_image(machine_code, noise(64))
    sources = edit_kernel("float sum = 0.0f", "out[1LL << 45] = 1.0f; float sum = 0.0f")
    number = machine_code.host.submit(RunPattern("convolution", "naive", inputs=inputs, sources=sources))
    answered, failure = machine_code.failure()
    assert (answered, failure.kind) == (number, "crash"), failure
    assert isinstance(machine_code.next_event()[1], Ready)
    np.testing.assert_array_equal(inputs["image"].open(), noise(64))
    assert_runs_as_machine_code(machine_code)


def assert_runs_as_machine_code(listener: Listener) -> None:
    listener.host.submit(RunPattern("convolution", "naive", inputs=submit_image(listener, noise(8))))
    _, event = listener.next_event()
    assert isinstance(event, RunResult)
    assert (event.report.executor, event.report.verified) == ("compiled", True)


def test_an_edit_that_does_not_compile_is_told_with_its_place(engine: Listener):
    sources = edit_kernel("float sum = 0.0f", "float sum = nought")
    engine.host.submit(RunPattern("convolution", "naive", inputs=submit_image(engine, noise(8)), sources=sources))
    _, event = engine.next_event()
    assert isinstance(event, Failure)
    assert event.kind == "compile"
    assert "nought" in event.message
    assert event.position is not None
    assert event.position.file == "convolution.cu"
    engine.host.submit(RunPattern("convolution", "naive", inputs=submit_image(engine, noise(8))))
    assert isinstance(engine.next_event()[1], RunResult), "the edit was for one run"


def test_an_edit_that_reads_out_of_bounds_is_told_and_the_next_run_works(engine: Listener):
    sources = edit_kernel("float sum = 0.0f", "float sum = image[2000000000]")
    engine.host.submit(RunPattern("convolution", "naive", inputs=submit_image(engine, noise(8)), sources=sources))
    number, event = engine.next_event()
    assert isinstance(event, Failure)
    assert event.kind == "launch"
    assert event.message
    if event.position is not None:  # the simulator's; a GPU does not tell
        assert "2000000000" in event.message + event.detail
    engine.host.submit(RunPattern("convolution", "naive", inputs=submit_image(engine, noise(8))))
    _, event = engine.next_event()
    if isinstance(event, Ready):  # the GPU's context was lost, and with it the process
        answered, event = engine.next_event()
        assert answered == number + 1
    assert isinstance(event, RunResult)
    assert event.report.verified is True


@pytest.mark.alone
def test_a_long_run_tells_how_far_it_is_and_is_cancelled_within_two_seconds(simulator: Listener):
    request = RunPattern("convolution", "naive", {"filter": "box", "size": 31}, submit_image(simulator, noise(LONG)))
    number = simulator.host.submit(request)
    told: list[float] = []
    while len(told) < 5:
        _, event = simulator.next_event(progress=True)
        assert isinstance(event, Progress), event
        told += [event.fraction] if event.fraction is not None else []
    assert told == sorted(told)
    assert told[-1] < 0.9
    began = time.monotonic()
    simulator.host.cancel()
    cancelled, failure = simulator.failure()
    assert (cancelled, failure.kind) == (number, "cancelled")
    assert isinstance(simulator.next_event()[1], Ready)
    assert time.monotonic() - began < 2.0
