"""Engines that run kernels: the CUDA engine and the simulator, with one protocol for host programs."""

from __future__ import annotations

import importlib

from gpu.base.errors import EngineUnavailableError, InputError
from gpu.base.installation import COMMAND
from gpu.base.schedules import ROUND_ROBIN, Schedule
from gpu.engines.base import Engine

ENGINES = {
    "cuda": "gpu.engines.cuda.engine:CudaEngine",
    "simulator": "gpu.engines.simulator:SimulatorEngine",
    "null": "gpu.engines.null:NullEngine",
}
NAMES = ("auto", "cuda", "simulator")
"""The engines that a user can choose."""


EXECUTORS = ("auto", "lockstep", "compiled")
"""The executors of the simulator that a user can choose."""


def create_engine(name: str, executor: str = "auto", schedule: str = ROUND_ROBIN) -> Engine:
    """Return a new engine.

    Parameters
    ----------
    name : str
        "cuda", "simulator", "null"; "auto" for "cuda" if it works, else "simulator"; or "module:Class" for any other
        class that implements the protocol, which tests use.
    executor : str
        The simulator's executor: "compiled", "lockstep", which checks every access, or "auto" for "compiled" except for
        edited kernels.
    schedule : str
        The schedule of the lockstep executor, one of `gpu.base.schedules.NAMES`; any except the first selects that
        executor.

    Raises
    ------
    InputError
        There is no such schedule, or the engine or executor does not support it.
    EngineUnavailableError
        The engine cannot run on this machine; the error contains the reason and the remedy.
    """
    if Schedule.parse(schedule).kind.seeded:
        if name not in ("auto", "simulator") or executor == "compiled":
            raise InputError(
                f"The schedule {schedule} runs only on the simulator's lockstep executor: "
                "leave out --engine and --executor."
            )
        name, executor = "simulator", "lockstep"
    if name == "auto":
        try:
            return create_engine("cuda")
        except EngineUnavailableError:
            return create_engine("simulator", executor)
    target = ENGINES.get(name, name)
    if ":" not in target:
        raise EngineUnavailableError(f"There is no engine {name!r}.", advice=f"Choose one of {', '.join(NAMES)}.")
    module_name, _, class_name = target.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise EngineUnavailableError(
            f"The engine {name} is not installed: {error}.",
            advice=f"`{COMMAND} devices` lists the missing packages.",
        ) from error
    options = {"executor": executor} if executor != "auto" and name == "simulator" else {}
    if schedule != ROUND_ROBIN:
        options["schedule"] = schedule
    engine: Engine = getattr(module, class_name)(**options)
    return engine
