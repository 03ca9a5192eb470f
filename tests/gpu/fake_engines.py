"""Engines, and a pattern, that misbehave on request in the engine's process."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from pathlib import Path

import numpy as np

from gpu.base.errors import CompileError, EngineLostError, EngineUnavailableError, LaunchError, SourcePosition
from gpu.declaration.pattern import Choice, Cost, Inputs, Outputs, Params, Pattern, Progress, Variant, Work
from gpu.declaration.presentation import ImagePresentation
from gpu.engines.base import Engine, PhaseTimes
from gpu.engines.null import NullEngine
from gpu.engines.simulator import SimulatorEngine
from gpu.patterns import all_patterns

DEEDS = (
    "copy",
    "abort",
    "bad-address",
    "killed",
    "exit",
    "lost",
    "does-not-compile",
    "launch-fails",
    "bug",
    "no-memory",
    "endless",
    "endless-outside-python",
    "endless-with-python-locked",
    "endless-with-a-compiler",
    "endless-but-telling",
)


def _run(engine: Engine, inputs: Inputs, params: Params) -> Generator[Progress, None, Outputs]:
    yield Progress(0.0, params["deed"])
    match params["deed"]:
        case "abort":
            os.abort()
        case "bad-address":
            ctypes.string_at(8)
        case "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        case "exit":
            os._exit(7)
        case "lost":
            raise EngineLostError("The kernel read an illegal address.", advice="Check the index.")
        case "does-not-compile":
            raise CompileError("';' is missing.", position=SourcePosition("fake.cu", 3, 7), detail="the log")
        case "launch-fails":
            raise LaunchError("Index 9 is out of bounds.", position=SourcePosition("fake.cu", 4))
        case "bug":
            raise ZeroDivisionError("nobody thought of this")
        case "no-memory":
            raise MemoryError
        case "endless":
            while True:
                time.sleep(0.001)
        case "endless-outside-python":
            lock = ctypes.create_string_buffer(64)
            while True:  # a lock taken twice waits for ever, and no signal handler ends that
                ctypes.CDLL(None).pthread_mutex_lock(lock)
        case "endless-with-python-locked":
            ctypes.PyDLL(None).sleep(600)  # as a driver does that waits for a kernel in the wrong call
        case "endless-with-a-compiler":
            compiler = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
            Path(os.environ["LOCKSTEP_TEST_PID_FILE"]).write_text(str(compiler.pid))
            compiler.wait()
        case "endless-but-telling":
            while True:
                engine.on_progress(0.5)
    yield Progress(1.0, "done")
    return {"result": np.array(inputs["image"])}


FAKE = Pattern(
    name="fake",
    title="Fake",
    summary="Does as it is told.",
    kernel_file="fake.cu",
    presentation=ImagePresentation(),
    order=0,
    parameters=(Choice(name="deed", label="Deed", options=DEEDS, default="copy"),),
    variants=(Variant("only", "Only", run=_run, idea="", limit="", kernels=("fake",)),),
    default_variant="only",
    result="result",
    reference=lambda inputs, params: inputs["image"],
    tolerance=lambda inputs, params: 0.0,
    cost=lambda inputs, params: Cost(0, 0, 0),
    work=lambda inputs, params: Work(inputs["image"].size, "pixel"),
    present=lambda inputs, params, outputs: {"picture": outputs["result"]},
)


class FakeEngine(NullEngine):
    """Knows the fake pattern; every run takes 2 ms."""

    def __init__(self) -> None:
        super().__init__()
        all_patterns()[FAKE.name] = FAKE  # in the engine's process: the tests' own never makes one of these

    def take_times(self) -> PhaseTimes:
        return PhaseTimes(1.0, 2.0, 3.0)


class CompilingEngine(SimulatorEngine):
    """Runs edited kernels as machine code at once, where `auto` has them checked first."""

    def __init__(self) -> None:
        super().__init__("compiled")


class UnavailableEngine(NullEngine):
    def __init__(self) -> None:
        raise EngineUnavailableError("There is no GPU.", advice="Buy one.", detail="evidence")


class BrokenEngine(NullEngine):
    def __init__(self) -> None:
        raise ZeroDivisionError("at start")


class EngineDyingAtStart(NullEngine):
    """Dies before it is ready, and counts how often."""

    def __init__(self) -> None:
        with open(os.environ["LOCKSTEP_TEST_STARTS"], "a") as starts:
            starts.write("x")
        os.abort()


class EngineDyingAtFirstStart(FakeEngine):
    def __init__(self) -> None:
        super().__init__()
        starts = Path(os.environ["LOCKSTEP_TEST_STARTS"])
        if not starts.exists():
            starts.write_text("x")
            os.abort()


class EngineDyingWhenReady(FakeEngine):
    """Is ready, then dies with nothing to do."""

    def __init__(self) -> None:
        super().__init__()
        with open(os.environ["LOCKSTEP_TEST_STARTS"], "a") as starts:
            starts.write("x")
        threading.Timer(0.1, os._exit, (3,)).start()


class NeverReadyEngine(NullEngine):
    def __init__(self) -> None:
        time.sleep(600)
