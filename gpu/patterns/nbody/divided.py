"""N-body on several devices: each device moves its own bodies, and gathers all positions in each step."""

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
"""The variant that computes each pair once, which is not possible for bodies on different devices."""

CONSERVED = "conserved"
"""An output on demand: the `moments` of all bodies, before the first step and after the last one."""

MOVING = ("kick drift", "pulls and kick")
"""Names of the steps that make up a time step, in run events."""

MEASURING = ("chunk moments", "add moments")
"""Names of the steps of `measured`, in run events."""

_BLOCK = 256
_MOST_TASKS = 2**17


@dataclass(frozen=True)
class BodyPicture:
    """The settings of a picture of bodies, for `Painter.draw`."""

    camera: Camera
    width: int
    height: int
    color: str
    exposure: float
    speed_scale: float


def plan(tasks: Tasks) -> dict[str, Parts]:
    """Add the Dask tasks: the initial forces, and per time step a move of every chunk and the new forces."""
    steps, chunks = tasks.params["steps"], len(tasks.chunks)
    refuse(tasks.variant, steps, chunks)
    places, velocities = taken(tasks)
    first = pulled(tasks, places)
    pulls = [each["pulls"] for each in first]
    before = measured(tasks, places, velocities)
    for _ in range(steps):
        places, velocities, pulls = moved(tasks, places, velocities, pulls)
    verified = tuple(each["verified"] for each in first)
    return {
        "accelerations": Parts(verified, tasks.make(starts_of, list(verified))),
        "all accelerations": Parts(tuple(each["accelerations"] for each in first)),
        "bodies": Parts(tuple(_each(tasks, bodies_of, places, velocities))),
        CONSERVED: Parts((before, measured(tasks, places, velocities) if steps else before)),
    }


def refuse(variant: str, steps: int, chunks: int) -> None:
    """Raise InputError for a variant that runs on one device only, and for too many time steps."""
    if variant == ALONE:
        raise InputError("Each pair once runs on one device only, as the bodies of a pair may be on two devices.")
    if 2 * steps * chunks > _MOST_TASKS:
        limit = _MOST_TASKS // (2 * chunks)
        raise InputError(
            f"{steps} steps of {chunks} chunks are too many Dask tasks.", advice=f"Choose at most {limit} steps."
        )


def taken(tasks: Tasks) -> tuple[list[Made], list[Made]]:
    """Add the Dask tasks that upload each chunk's bodies; return their positions and velocities."""
    states = [tasks.make(take_bodies, chunk, place=place) for place, chunk in enumerate(tasks.chunks)]
    return [each["places"] for each in states], [each["velocities"] for each in states]


def pulled(tasks: Tasks, places: list[Made]) -> list[Made]:
    """Add the Dask tasks that compute the accelerations of each chunk's bodies, as `first_pulls` returns them."""
    numbers = range(len(places))
    return _each(tasks, first_pulls, [_rotated(places, place) for place in numbers], [*numbers])


def moved(
    tasks: Tasks, places: list[Made], velocities: list[Made], pulls: list[Made]
) -> tuple[list[Made], list[Made], list[Made]]:
    """Add the Dask tasks of a time step; return the positions, velocities and accelerations after it."""
    drifted = _each(tasks, kick_drift, places, velocities, pulls)
    new_places = [each["places"] for each in drifted]
    half_kicked = [each["velocities"] for each in drifted]
    kicked = _each(
        tasks, pulls_and_kick, [_rotated(new_places, place) for place in range(len(new_places))], half_kicked
    )
    return new_places, [each["velocities"] for each in kicked], [each["pulls"] for each in kicked]


def measured(tasks: Tasks, places: list[Made], velocities: list[Made]) -> Made:
    """Add the Dask tasks that measure the conserved quantities of all bodies."""
    moments_by_chunk = _each(
        tasks, chunk_moments, [_rotated(places, place) for place in range(len(places))], velocities
    )
    return tasks.make(add_moments, moments_by_chunk)


def _each(tasks: Tasks, step: Any, *arguments: list[Any]) -> list[Made]:
    """Add a step's Dask task for each chunk; the arguments are lists with an item per chunk."""
    return [tasks.make(step, *items, place=place) for place, items in enumerate(zip(*arguments, strict=True))]


def _rotated(values: list[Made], place: int) -> list[Made]:
    """Return the values rotated so that those of the chunk `place` come first."""
    return values[place:] + values[:place]


def take_bodies(worker: OnWorker, piece: Piece) -> dict[str, Buffer]:
    """Upload a chunk's bodies: positions with masses, and velocities."""
    places, velocities = places_and_velocities(piece.inputs["bodies"])
    return {"places": worker.engine.upload(places), "velocities": worker.engine.upload(velocities)}


def first_pulls(worker: OnWorker, places: list[Buffer], place: int) -> dict[str, Any]:
    """Compute the initial accelerations of a chunk's bodies; some of them are verified."""
    pulls = _pulls(worker, places)
    accelerations = worker.engine.download(pulls)[:, :3]
    lengths = [each.shape[0] for each in places]
    start, numbers = sum(lengths[len(lengths) - place :]), probes(sum(lengths))
    own = numbers[(numbers >= start) & (numbers < start + len(accelerations))] - start
    return {"pulls": pulls, "accelerations": accelerations, "verified": accelerations[own]}


def kick_drift(worker: OnWorker, places: Buffer, velocities: Buffer, pulls: Buffer) -> dict[str, Buffer]:
    """Accelerate a chunk's bodies for half a time step, then move them for a whole one."""
    engine, motion = worker.engine, motion_of(worker.params)
    moved_places, kicked = _copy(engine, places), _copy(engine, velocities)
    times = np.float32(motion.time_step / 2), np.float32(motion.time_step)
    _launch(
        engine,
        FILE,
        "leapfrog_kick_drift",
        moved_places.shape[0],
        moved_places,
        kicked,
        pulls,
        *times,
        np.int32(moved_places.shape[0]),
    )
    return {"places": moved_places, "velocities": kicked}


def pulls_and_kick(worker: OnWorker, places: list[Buffer], velocities: Buffer) -> dict[str, Buffer]:
    """Compute the accelerations of a chunk's bodies, and accelerate them for the second half of a time step."""
    engine, motion = worker.engine, motion_of(worker.params)
    pulls, kicked = _pulls(worker, places), _copy(engine, velocities)
    count = np.int32(kicked.shape[0])
    _launch(engine, FILE, "leapfrog_kick", kicked.shape[0], kicked, pulls, np.float32(motion.time_step / 2), count)
    return {"pulls": pulls, "velocities": kicked}


def chunk_moments(worker: OnWorker, places: list[Buffer], velocities: Buffer) -> Array:
    """Measure a chunk's share of the conserved quantities of all bodies."""
    engine, own = worker.engine, velocities.shape[0]
    # Padding with bodies of no mass, so that the last block does not count another chunk's bodies.
    together = _gather(engine, places, room=-own % MOMENTS_BLOCK)
    sums = allocate_moments(engine, own)
    result = moments(engine, together, velocities, sums, softening_squared(motion_of(worker.params).softening))
    for buffer in (together, sums):
        engine.free(buffer)
    return result[np.newaxis]


def add_moments(worker: OnWorker, of_chunks: list[Array]) -> Array:
    """Add the moments of all chunks."""
    total: Array = np.sum(of_chunks, axis=0)
    return total


def bodies_of(worker: OnWorker, places: Buffer, velocities: Buffer) -> Array:
    """Return a chunk's final bodies: columns x y z vx vy vz m."""
    positions, speeds = worker.engine.download(places), worker.engine.download(velocities)
    return np.concatenate([positions[:, :3], speeds[:, :3], positions[:, 3:]], axis=1)


def origins_of(worker: OnWorker, piece: Piece) -> Array:
    """Return the origins of a chunk's bodies, by which they are colored."""
    return piece.inputs["origins"]


def draw_bodies(
    worker: OnWorker, places: list[Buffer], velocities: list[Buffer], origins: list[Array], picture: BodyPicture
) -> Array:
    """Draw the bodies of all chunks on one device: uint8, shape (height, width, 3)."""
    engine, painter = worker.engine, Painter(worker.engine)
    all_places, all_velocities = _gather(engine, places), _gather(engine, velocities)
    all_origins = engine.upload(np.concatenate(origins))
    image = painter.draw(
        all_places,
        all_velocities,
        all_origins,
        picture.camera,
        picture.width,
        picture.height,
        color=picture.color,
        exposure=picture.exposure,
        speed_scale=picture.speed_scale,
    )
    painter.close()
    for buffer in (all_places, all_velocities, all_origins):
        engine.free(buffer)
    return image


def all_are_there(worker: OnWorker, velocities: list[Buffer]) -> Array:
    """Depend on all chunks and return an empty array, to wait for a time step without transferring data."""
    return np.zeros(0, np.int64)


def starts_of(worker: OnWorker, parts: list[Array]) -> Array:
    """Return the start of each part in the concatenation of all parts."""
    lengths = np.array([len(each) for each in parts], np.int64)
    return np.asarray(lengths.cumsum() - lengths)


def _pulls(worker: OnWorker, places: list[Buffer]) -> Buffer:
    """Return the accelerations of the first chunk's bodies by the bodies of all chunks."""
    engine, motion, own = worker.engine, motion_of(worker.params), places[0].shape[0]
    together = _gather(engine, places)
    total = together.shape[0]
    # The last block also computes accelerations of other chunks' bodies, which are not used.
    all_pulls = engine.allocate((total, 4), np.float32)
    forces = Forces(engine, worker.variant, own, motion.block, among=total)
    forces.launch(together, all_pulls, softening_squared(motion.softening))
    pulls = engine.allocate((own, 4), np.float32)
    _launch(engine, CHUNKS_FILE, "nbody_gather", own, all_pulls, pulls, np.int32(0), np.int32(own))
    for buffer in (together, all_pulls):
        engine.free(buffer)
    return pulls


def _gather(engine: Engine, places: list[Buffer], room: int = 0) -> Buffer:
    """Concatenate the bodies of all chunks, with `room` bodies of no mass after the first chunk's."""
    together, first = engine.allocate((room + sum(each.shape[0] for each in places), 4), np.float32), 0
    if room:
        engine.fill(together, 0)
    for each in places:
        count = each.shape[0]
        _launch(engine, CHUNKS_FILE, "nbody_gather", count, each, together, np.int32(first), np.int32(count))
        first += count + (0 if first else room)
    return together


def _copy(engine: Engine, values: Buffer) -> Buffer:
    """Copy an argument of a Dask task: others use it too, and lost Dask tasks are computed again from it."""
    copy, count = engine.allocate(values.shape, values.dtype), values.shape[0]
    _launch(engine, CHUNKS_FILE, "nbody_gather", count, values, copy, np.int32(0), np.int32(count))
    return copy


def _launch(engine: Engine, file: str, kernel: str, threads: int, *arguments: Argument) -> None:
    module = engine.build(file, {"BLOCK_SIZE": _BLOCK})
    engine.launch(module.kernel(kernel), (-(-threads // _BLOCK), 1, 1), (_BLOCK, 1, 1), *arguments)
