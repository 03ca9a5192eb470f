"""Handlers of requests about bodies; each engine keeps its current simulation between requests."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Protocol
from weakref import WeakKeyDictionary

from gpu.base.errors import InputError, KernelError
from gpu.declaration.pattern import Array, Inputs, Params, Progress, Variant, compiling_progress
from gpu.engines.base import Engine
from gpu.messages.bodies import AdvanceBodies, BodiesResult, LoadBodies, PickBody, PickedBody, SaveBodies
from gpu.messages.requests import Acknowledgment, ArrayResult
from gpu.messages.shared_arrays import SharedFolder
from gpu.patterns.nbody import files as nbody_files
from gpu.patterns.nbody.forces import motion_from_params
from gpu.patterns.nbody.pattern import PATTERN
from gpu.patterns.nbody.picture import BodyPicture, nearest_body
from gpu.patterns.nbody.simulation import BodySimulation
from gpu.run.handlers.registry import RequestContext, handles

_MAX_STEPS = 1_000_000


@dataclass(frozen=True)
class _CurrentSimulation:
    number: int
    simulation: BodySimulation


_CURRENT_SIMULATIONS: WeakKeyDictionary[Engine, _CurrentSimulation] = WeakKeyDictionary()


class CurrentBodies(Protocol):
    """The current state of a simulation."""

    @property
    def time(self) -> float: ...

    def download_bodies(self) -> Array: ...


@handles(LoadBodies)
def _load_bodies(context: RequestContext, request: LoadBodies) -> ArrayResult:
    return ArrayResult({"bodies": context.folder.put(nbody_files.read_bodies(request.path))})


@handles(SaveBodies)
def _save_bodies(context: RequestContext, request: SaveBodies) -> Acknowledgment:
    return write_simulation(_find_current(context.engine, request.simulation), request)


@handles(PickBody)
def _pick_body(context: RequestContext, request: PickBody) -> PickedBody:
    return pick_from_simulation(_find_current(context.engine, request.simulation), request, context.folder)


def write_simulation(simulation: CurrentBodies | None, request: SaveBodies) -> Acknowledgment:
    """Write the bodies of a simulation to a file; raise InputError if there is no simulation."""
    simulation = _require_simulation(simulation)
    nbody_files.write_bodies(request.path, simulation.download_bodies(), simulation.time)
    return Acknowledgment()


def pick_from_simulation(simulation: CurrentBodies | None, request: PickBody, folder: SharedFolder) -> PickedBody:
    """Find a body of a simulation; raise InputError if there is no simulation."""
    bodies = _require_simulation(simulation).download_bodies()
    picked = nearest_body(bodies, request.camera, request.width, request.height, request.x, request.y)
    return PickedBody({"bodies": folder.put(bodies)}, picked)


def _require_simulation(simulation: CurrentBodies | None) -> CurrentBodies:
    if simulation is None:
        raise InputError("This simulation has ended, and its bodies were deleted.", advice="Start it again.")
    return simulation


def _find_current(engine: Engine, number: int) -> BodySimulation | None:
    current = _CURRENT_SIMULATIONS.get(engine)
    return current.simulation if current is not None and current.number == number else None


def check_advance_request(request: AdvanceBodies) -> tuple[Variant, Params, BodyPicture | None]:
    """Return the variant, all parameters and the requested picture, if any; raise InputError if a value is invalid."""
    if not 0 <= request.steps <= _MAX_STEPS:
        raise InputError(f"A request advances by 0 to {_MAX_STEPS} steps, not {request.steps}.")
    settings = None
    if request.width and request.height:
        settings = BodyPicture(request.camera, request.width, request.height, request.color, request.exposure)
        settings.check()
    return PATTERN.variant(request.variant), PATTERN.check(request.params), settings


def build_initial_inputs(request: AdvanceBodies, params: Params) -> Inputs:
    """Return the initial state of a simulation; raise InputError if it is not valid for the pattern."""
    arrays = {} if request.bodies is None else {"bodies": request.bodies.open()}
    inputs = PATTERN.prepare_inputs(arrays, params, request.seed)
    PATTERN.accept(inputs, params)
    return inputs


def discard_simulation(engine: Engine) -> None:
    """Free the memory of the engine's simulation."""
    current = _CURRENT_SIMULATIONS.pop(engine, None)
    if current is not None:
        current.simulation.close()


@handles(AdvanceBodies)
def _advance_bodies(context: RequestContext, request: AdvanceBodies) -> BodiesResult:
    engine, report_progress = context.engine, context.report_progress
    variant, params, settings = check_advance_request(request)
    motion = motion_from_params(params)
    engine.sources = dict(request.sources)
    previous_callback, engine.on_compiling = engine.on_compiling, lambda name: report_progress(compiling_progress(name))
    try:
        simulation = _find_simulation(engine, request, params)
        conserved = picture = None
        measuring_ms = 0.0
        if request.measure and not simulation.steps:
            simulation.measure_conserved(motion.softening)  # reference for the drift
        engine.take_times()
        for step in simulation.advance(variant.name, request.steps, motion):
            report_progress(Progress(step / request.steps, f"step {step} of {request.steps}"))
        executed = engine.executor_choice
        kernel_ms = engine.take_times().kernel
        if request.measure:
            start = time.perf_counter()
            conserved = simulation.measure_conserved(motion.softening)
            measuring_ms = 1e3 * (time.perf_counter() - start)
        if settings is not None:
            picture = simulation.draw(settings)
        engine.take_times()
    except KernelError:
        # Half a step may remain, and an engine that is lost cannot even free its memory.
        _CURRENT_SIMULATIONS.pop(engine, None)
        raise
    finally:
        engine.sources = {}
        engine.on_compiling = previous_callback
    arrays = {} if picture is None else {"picture": context.folder.put(picture)}
    return BodiesResult(arrays, simulation.figures(request.steps, kernel_ms, executed, conserved, measuring_ms))


def _find_simulation(engine: Engine, request: AdvanceBodies, params: Params) -> BodySimulation:
    current = _find_current(engine, request.simulation)
    if current is not None:
        return current
    inputs = build_initial_inputs(request, params)
    discard_simulation(engine)
    simulation = BodySimulation(engine, inputs["bodies"], inputs.get("origins"))
    _CURRENT_SIMULATIONS[engine] = _CurrentSimulation(request.simulation, simulation)
    return simulation
