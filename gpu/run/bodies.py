"""Carry out requests that concern bodies; of simulations each engine keeps the one that goes on."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol
from weakref import WeakKeyDictionary

import numpy as np

from gpu.declaration.pattern import Array, Inputs, Params, Progress, Variant, compiling
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
        case SaveBodies() | PickBody():
            kept = _KEPT.get(engine)
            return look_at(kept.simulation if kept and kept.number == request.simulation else None, request, folder)
    return _advance(engine, request, folder, tell)


class BodiesNow(Protocol):
    """A simulation as it is now."""

    @property
    def time(self) -> float: ...

    def bodies(self) -> Array: ...


def look_at(simulation: BodiesNow | None, request: SaveBodies | PickBody, folder: SharedFolder) -> Result:
    """Save the bodies of a simulation, or find one of them; InputError where there is none of the request's number."""
    if simulation is None:
        raise InputError("This simulation has ended, and its bodies are gone.", advice="Start it again.")
    bodies = simulation.bodies()
    if isinstance(request, SaveBodies):
        nbody_files.write_bodies(request.path, bodies, simulation.time)
        return Result({})
    picked = nbody_picture.nearest_body(bodies, request.camera, request.width, request.height, request.x, request.y)
    return Result({"picked": folder.put(np.array(picked)), "bodies": folder.put(bodies)})


def checked(request: AdvanceBodies) -> tuple[Variant, Params, bool]:
    """Return the rung, all parameters, and whether a picture is wanted; InputError where there is no such request."""
    if not 0 <= request.steps <= _LARGEST_CHUNK:
        raise InputError(f"A request does 0 to {_LARGEST_CHUNK} steps, not {request.steps}.")
    drawn = bool(request.width and request.height)
    if drawn:
        nbody_picture.check(request.camera, request.width, request.height, request.color, request.exposure)
    return PATTERN.variant(request.variant), PATTERN.check(request.params), drawn


def inputs_of(request: AdvanceBodies, params: Params) -> Inputs:
    """Return what a simulation begins with; InputError where that is none that the pattern takes."""
    given = {} if request.bodies is None else {"bodies": request.bodies.open()}
    inputs = PATTERN.inputs(given, params, request.seed)
    PATTERN.accept(inputs, params)
    return inputs


def forget(engine: Engine) -> None:
    """Give back what the engine's simulation holds."""
    kept = _KEPT.pop(engine, None)
    if kept is not None:
        kept.simulation.close()


def _advance(engine: Engine, request: AdvanceBodies, folder: SharedFolder, tell: Callable[[Progress], None]) -> Result:
    """Begin or go on with a simulation, and draw it."""
    variant, params, drawn = checked(request)
    motion = motion_of(params)
    engine.sources = dict(request.sources)
    silent, engine.on_compiling = engine.on_compiling, lambda name: tell(compiling(name))
    try:
        simulation = _simulation(engine, request, params)
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


def _simulation(engine: Engine, request: AdvanceBodies, params: Params) -> BodySimulation:
    kept = _KEPT.get(engine)
    if kept is not None and kept.number == request.simulation:
        return kept.simulation
    inputs = inputs_of(request, params)
    forget(engine)
    simulation = BodySimulation(engine, inputs["bodies"], inputs.get("origins"))
    _KEPT[engine] = _Kept(request.simulation, simulation)
    return simulation
