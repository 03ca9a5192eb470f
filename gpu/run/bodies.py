"""Carry out requests that concern bodies; of simulations each engine keeps the one that goes on."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from gpu.declaration.pattern import Progress, compiling
from gpu.engines.base import Engine
from gpu.errors import InputError, KernelError
from gpu.messages.requests import AdvanceBodies, LoadBodies, PickBody, Result, SaveBodies
from gpu.messages.shared_arrays import SharedFolder
from gpu.patterns.nbody import files as nbody_files
from gpu.patterns.nbody import picture as nbody_picture
from gpu.patterns.nbody.forces import motion_of
from gpu.patterns.nbody.pattern import PATTERN
from gpu.patterns.nbody.simulation import BodySimulation

_LARGEST_CHUNK = 1_000_000


@dataclass(frozen=True)
class _Kept:
    number: int
    simulation: BodySimulation


_KEPT: WeakKeyDictionary[Engine, _Kept] = WeakKeyDictionary()


def execute(
    engine: Engine,
    request: LoadBodies | SaveBodies | AdvanceBodies | PickBody,
    folder: SharedFolder,
    tell: Callable[[Progress], None],
) -> Result:
    """Carry out a request; the result's arrays are new ones in `folder`."""
    match request:
        case LoadBodies(path):
            return Result({"bodies": folder.put(nbody_files.read_bodies(path))})
        case SaveBodies(path, number):
            simulation = _kept(engine, number)
            nbody_files.write_bodies(path, simulation.bodies(), simulation.time)
            return Result({})
        case PickBody(number, camera, width, height, x, y):
            bodies = _kept(engine, number).bodies()
            picked = nbody_picture.nearest_body(bodies, camera, width, height, x, y)
            return Result({"picked": folder.put(np.array(picked)), "bodies": folder.put(bodies)})
    return _advance(engine, request, folder, tell)


def _kept(engine: Engine, number: int) -> BodySimulation:
    kept = _KEPT.get(engine)
    if kept is None or kept.number != number:
        raise InputError("This simulation has ended, and its bodies are gone.", advice="Start it again.")
    return kept.simulation


def forget(engine: Engine) -> None:
    """Give back what the engine's simulation holds."""
    kept = _KEPT.pop(engine, None)
    if kept is not None:
        kept.simulation.close()


def _advance(engine: Engine, request: AdvanceBodies, folder: SharedFolder, tell: Callable[[Progress], None]) -> Result:
    """Begin or go on with a simulation, and draw it."""
    variant = PATTERN.variant(request.variant)
    motion = motion_of(PATTERN.check(request.params))
    if not 0 <= request.steps <= _LARGEST_CHUNK:
        raise InputError(f"A request does 0 to {_LARGEST_CHUNK} steps, not {request.steps}.")
    drawn = bool(request.width and request.height)
    if drawn:
        nbody_picture.check(request.camera, request.width, request.height, request.color, request.exposure)
    engine.sources = dict(request.sources)
    silent, engine.on_compiling = engine.on_compiling, lambda name: tell(compiling(name))
    try:
        simulation = _simulation(engine, request)
        conserved = picture = None
        measuring_ms = 0.0
        if request.measure and not simulation.steps:
            simulation.conserved(motion.softening)  # what the drift is compared with
        engine.take_times()
        for done in simulation.advance(variant.name, request.steps, motion):
            tell(Progress(done / request.steps, f"step {done} of {request.steps}"))
        executed = engine.executed
        kernel_ms = engine.take_times().kernel
        if request.measure:
            began = time.perf_counter()
            conserved = simulation.conserved(motion.softening)
            measuring_ms = 1e3 * (time.perf_counter() - began)
        if drawn:
            picture = simulation.draw(
                request.camera, request.width, request.height, color=request.color, exposure=request.exposure
            )
        engine.take_times()
    except KernelError:
        # Half a step may be left behind, and an engine that is lost cannot even give its memory back.
        _KEPT.pop(engine, None)
        raise
    finally:
        engine.sources = {}
        engine.on_compiling = silent
    arrays = {} if picture is None else {"picture": folder.put(picture)}
    return Result(arrays, bodies=simulation.figures(request.steps, kernel_ms, executed, conserved, measuring_ms))


def _simulation(engine: Engine, request: AdvanceBodies) -> BodySimulation:
    kept = _KEPT.get(engine)
    if kept is not None and kept.number == request.simulation:
        return kept.simulation
    params = PATTERN.check(request.params)
    given = {} if request.bodies is None else {"bodies": request.bodies.open()}
    inputs = PATTERN.inputs(given, params, request.seed)
    PATTERN.accept(inputs, params)
    forget(engine)
    simulation = BodySimulation(engine, inputs["bodies"], inputs.get("origins"))
    _KEPT[engine] = _Kept(request.simulation, simulation)
    return simulation
