"""N-body over several devices: bodies divided, their places gathered in each step, each device's own bodies moved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu.declaration.distributed import Made, OnWorker, Parts, Piece, Tasks
from gpu.declaration.pattern import Array
from gpu.engines.base import Argument, Buffer, Engine
from gpu.errors import InputError
from gpu.messages.bodies import Camera
from gpu.patterns.nbody.forces import FILE, Forces, motion_of
from gpu.patterns.nbody.physics import probes, softening_squared
from gpu.patterns.nbody.picture import Painter
from gpu.patterns.nbody.simulation import MOMENTS_BLOCK, allocate_moments, moments, places_and_velocities

CHUNKS_FILE = "nbody_chunks.cu"
ALONE = "pairs"
"""The rung that takes each pair once: two bodies of different devices would be met by neither, or by both."""

CONSERVED = "conserved"
"""An output on demand: what `moments` measures of all bodies, before the first step and after the last one."""

MOVING = ("kick drift", "pulls and kick")
"""What steps of time are made of, as records call it."""

MEASURING = ("chunk moments", "add moments")
"""What `measured` is made of, as records call it."""

_BLOCK = 256
_MOST_TASKS = 2**17


@dataclass(frozen=True)
class BodyPicture:
    """What a picture of bodies is to be, as `Painter.draw` takes it."""

    camera: Camera
    width: int
    height: int
    color: str
    exposure: float
    speed_scale: float


def plan(tasks: Tasks) -> dict[str, Parts]:
    """Name the tasks: the first forces, and in each step a move of every chunk and the forces where bodies then are."""
    steps, chunks = tasks.params["steps"], len(tasks.chunks)
    refuse(tasks.variant, steps, chunks)
    places, velocities = taken(tasks)
    first = pulled(tasks, places)
    pulls = [each["pulls"] for each in first]
    begun = measured(tasks, places, velocities)
    for _ in range(steps):
        places, velocities, pulls = moved(tasks, places, velocities, pulls)
    verified = tuple(each["verified"] for each in first)
    return {
        "accelerations": Parts(verified, tasks.make(starts_of, list(verified))),
        "all accelerations": Parts(tuple(each["accelerations"] for each in first)),
        "bodies": Parts(tuple(_each(tasks, bodies_of, places, velocities))),
        CONSERVED: Parts((begun, measured(tasks, places, velocities) if steps else begun)),
    }


def refuse(variant: str, steps: int, chunks: int) -> None:
    """Raise InputError for a rung that runs on one device only, and for too many steps at a time."""
    if variant == ALONE:
        raise InputError("Each pair once runs on one device only: the bodies of a pair lie on two.")
    if 2 * steps * chunks > _MOST_TASKS:
        most = _MOST_TASKS // (2 * chunks)
        raise InputError(f"{steps} steps of {chunks} chunks are too many tasks.", advice=f"Take up to {most} steps.")


def taken(tasks: Tasks) -> tuple[list[Made], list[Made]]:
    """Name the tasks that bring each chunk's bodies to a device; return their places and their velocities."""
    states = [tasks.make(take_bodies, chunk, place=place) for place, chunk in enumerate(tasks.chunks)]
    return [each["places"] for each in states], [each["velocities"] for each in states]


def pulled(tasks: Tasks, places: list[Made]) -> list[Made]:
    """Name the tasks that compute what pulls each chunk's bodies, as `first_pulls` returns it."""
    numbers = range(len(places))
    return _each(tasks, first_pulls, [_rotated(places, place) for place in numbers], [*numbers])


def moved(
    tasks: Tasks, places: list[Made], velocities: list[Made], pulls: list[Made]
) -> tuple[list[Made], list[Made], list[Made]]:
    """Name the tasks of a step of time; return places, velocities, and what pulls the bodies after it."""
    drifted = _each(tasks, kick_drift, places, velocities, pulls)
    there = [each["places"] for each in drifted]
    drifting = [each["velocities"] for each in drifted]
    kicked = _each(tasks, pulls_and_kick, [_rotated(there, place) for place in range(len(there))], drifting)
    return there, [each["velocities"] for each in kicked], [each["pulls"] for each in kicked]


def measured(tasks: Tasks, places: list[Made], velocities: list[Made]) -> Made:
    """Name the tasks that measure what gravity keeps of all bodies."""
    of_chunks = _each(tasks, chunk_moments, [_rotated(places, place) for place in range(len(places))], velocities)
    return tasks.make(add_moments, of_chunks)


def _each(tasks: Tasks, step: Any, *taken: list[Any]) -> list[Made]:
    """Make a step's task for each chunk."""
    return [tasks.make(step, *of_chunk, place=place) for place, of_chunk in enumerate(zip(*taken, strict=True))]


def _rotated(values: list[Made], place: int) -> list[Made]:
    """Return a chunk's own first, and then those that follow it around the circle."""
    return values[place:] + values[:place]


def take_bodies(worker: OnWorker, piece: Piece) -> dict[str, Buffer]:
    """Bring a chunk's bodies to the device: places with masses, and velocities."""
    places, velocities = places_and_velocities(piece.inputs["bodies"])
    return {"places": worker.engine.upload(places), "velocities": worker.engine.upload(velocities)}


def first_pulls(worker: OnWorker, places: list[Buffer], place: int) -> dict[str, Any]:
    """Compute what pulls a chunk's bodies where they begin; of some of them it is verified."""
    pulls = _pulls(worker, places)
    found = worker.engine.download(pulls)[:, :3]
    lengths = [each.shape[0] for each in places]
    start, numbers = sum(lengths[len(lengths) - place :]), probes(sum(lengths))
    own = numbers[(numbers >= start) & (numbers < start + len(found))] - start
    return {"pulls": pulls, "accelerations": found, "verified": found[own]}


def kick_drift(worker: OnWorker, places: Buffer, velocities: Buffer, pulls: Buffer) -> dict[str, Buffer]:
    """Move a chunk's bodies by a step, with the velocities that half a step of acceleration gives."""
    engine, motion = worker.engine, motion_of(worker.params)
    to, kicked = _copy(engine, places), _copy(engine, velocities)
    times = np.float32(motion.time_step / 2), np.float32(motion.time_step)
    _launch(engine, FILE, "leapfrog_kick_drift", to.shape[0], to, kicked, pulls, *times, np.int32(to.shape[0]))
    return {"places": to, "velocities": kicked}


def pulls_and_kick(worker: OnWorker, places: list[Buffer], velocities: Buffer) -> dict[str, Buffer]:
    """Compute what pulls a chunk's bodies where they are now, and give them the other half of the step's velocity."""
    engine, motion = worker.engine, motion_of(worker.params)
    pulls, kicked = _pulls(worker, places), _copy(engine, velocities)
    count = np.int32(kicked.shape[0])
    _launch(engine, FILE, "leapfrog_kick", kicked.shape[0], kicked, pulls, np.float32(motion.time_step / 2), count)
    return {"pulls": pulls, "velocities": kicked}


def chunk_moments(worker: OnWorker, places: list[Buffer], velocities: Buffer) -> Array:
    """Measure what gravity keeps of a chunk's bodies among all."""
    engine, own = worker.engine, velocities.shape[0]
    # A last block goes on to bodies that weigh nothing, rather than to others'.
    together = _gathered(engine, places, room=-own % MOMENTS_BLOCK)
    sums = allocate_moments(engine, own)
    measured = moments(engine, together, velocities, sums, softening_squared(motion_of(worker.params).softening))
    for buffer in (together, sums):
        engine.free(buffer)
    return measured[np.newaxis]


def add_moments(worker: OnWorker, of_chunks: list[Array]) -> Array:
    """Add up what was measured of all chunks."""
    total: Array = np.sum(of_chunks, axis=0)
    return total


def bodies_of(worker: OnWorker, places: Buffer, velocities: Buffer) -> Array:
    """Return a chunk's bodies as they are in the end: columns x y z vx vy vz m."""
    where, moving = worker.engine.download(places), worker.engine.download(velocities)
    return np.concatenate([where[:, :3], moving[:, :3], where[:, 3:]], axis=1)


def origins_of(worker: OnWorker, piece: Piece) -> Array:
    """Return what a chunk's bodies are colored by."""
    return piece.inputs["origins"]


def draw_bodies(
    worker: OnWorker, places: list[Buffer], velocities: list[Buffer], origins: list[Array], picture: BodyPicture
) -> Array:
    """Draw the bodies of all chunks on one device: uint8, shape (height, width, 3)."""
    engine, painter = worker.engine, Painter(worker.engine)
    where, moving = _gathered(engine, places), _gathered(engine, velocities)
    colored = engine.upload(np.concatenate(origins))
    drawn = painter.draw(
        where,
        moving,
        colored,
        picture.camera,
        picture.width,
        picture.height,
        color=picture.color,
        exposure=picture.exposure,
        speed_scale=picture.speed_scale,
    )
    painter.close()
    for buffer in (where, moving, colored):
        engine.free(buffer)
    return drawn


def all_are_there(worker: OnWorker, velocities: list[Buffer]) -> Array:
    """Take what all chunks come to, and return nothing of it: for who waits for a step, and wants nothing brought."""
    return np.zeros(0, np.int64)


def starts_of(worker: OnWorker, parts: list[Array]) -> Array:
    """Return where each part begins among all."""
    lengths = np.array([len(each) for each in parts], np.int64)
    return np.asarray(lengths.cumsum() - lengths)


def _pulls(worker: OnWorker, places: list[Buffer]) -> Buffer:
    """Return what pulls the bodies of the first chunk, by those of all."""
    engine, motion, own = worker.engine, motion_of(worker.params), places[0].shape[0]
    together = _gathered(engine, places)
    total = together.shape[0]
    # A last block goes on to bodies of others, which is all the same to it.
    every = engine.allocate((total, 4), np.float32)
    forces = Forces(engine, worker.variant, own, motion.block, among=total)
    forces.launch(together, every, softening_squared(motion.softening))
    pulls = engine.allocate((own, 4), np.float32)
    _launch(engine, CHUNKS_FILE, "nbody_gather", own, every, pulls, np.int32(0), np.int32(own))
    for buffer in (together, every):
        engine.free(buffer)
    return pulls


def _gathered(engine: Engine, places: list[Buffer], room: int = 0) -> Buffer:
    """Return the bodies of all chunks, with bodies of no mass between the first chunk's and the others'."""
    together, first = engine.allocate((room + sum(each.shape[0] for each in places), 4), np.float32), 0
    if room:
        engine.fill(together, 0)
    for each in places:
        count = each.shape[0]
        _launch(engine, CHUNKS_FILE, "nbody_gather", count, each, together, np.int32(first), np.int32(count))
        first += count + (0 if first else room)
    return together


def _copy(engine: Engine, values: Buffer) -> Buffer:
    """Copy what a task takes: others take it too, and a lost worker's tasks are done again with it."""
    copy, count = engine.allocate(values.shape, values.dtype), values.shape[0]
    _launch(engine, CHUNKS_FILE, "nbody_gather", count, values, copy, np.int32(0), np.int32(count))
    return copy


def _launch(engine: Engine, file: str, kernel: str, threads: int, *arguments: Argument) -> None:
    module = engine.build(file, {"BLOCK_SIZE": _BLOCK})
    engine.launch(module.kernel(kernel), (-(-threads // _BLOCK), 1, 1), (_BLOCK, 1, 1), *arguments)
