"""The engines that run kernels: a GPU through PyCUDA, or the simulator; one protocol, so a host program drives both."""

from __future__ import annotations

import importlib

from gpu.engines.base import Engine
from gpu.errors import EngineUnavailableError, InputError
from gpu.schedules import ROUND_ROBIN, Schedule

ENGINES = {
    "cuda": "gpu.engines.cuda:CudaEngine",
    "simulator": "gpu.engines.simulator:SimulatorEngine",
    "null": "gpu.engines.null:NullEngine",
}
NAMES = ("auto", "cuda", "simulator")
"""What a user may ask for."""


EXECUTORS = ("auto", "lockstep", "compiled")
"""How the simulator may run kernels."""


def create(name: str, executor: str = "auto", schedule: str = ROUND_ROBIN) -> Engine:
    """Return a new engine.

    Parameters
    ----------
    name : str
        "cuda", "simulator", "null"; "auto" for cuda where that works and the simulator elsewhere; or "module:Class" for
        any other class that implements the protocol, which tests use.
    executor : str
        Of the simulator: "compiled" for machine code, "lockstep" for one that checks every access; "auto" for compiled
        code, but for edited kernels.
    schedule : str
        In which order warps and lanes run on the simulator in lockstep, one of `gpu.schedules.NAMES`; any but the first
        takes that engine and that executor.

    Raises
    ------
    InputError
        There is no such schedule, or it is none of that engine or executor.
    EngineUnavailableError
        Where it cannot work here; the reason and the remedy are in it.
    """
    if Schedule.of(schedule).kind.seeded:
        if name not in ("auto", "simulator") or executor == "compiled":
            raise InputError(
                f"The schedule {schedule} is the simulator's, which does not run compiled code in it: "
                "leave out --engine and --executor."
            )
        name, executor = "simulator", "lockstep"
    if name == "auto":
        try:
            return create("cuda")
        except EngineUnavailableError:
            return create("simulator", executor)
    target = ENGINES.get(name, name)
    if ":" not in target:
        raise EngineUnavailableError(f"There is no engine {name!r}.", advice=f"Choose one of {', '.join(NAMES)}.")
    module_name, _, class_name = target.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise EngineUnavailableError(
            f"The engine {name} is not installed here: {error}.",
            advice="`python main.py devices` says what is missing.",
        ) from error
    options = {"executor": executor} if executor != "auto" and name == "simulator" else {}
    if schedule != ROUND_ROBIN:
        options["schedule"] = schedule
    engine: Engine = getattr(module, class_name)(**options)
    return engine
