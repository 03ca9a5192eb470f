"""N-body on several devices: each device moves its own bodies, and gathers all positions in each step."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu.base.errors import InputError
from gpu.declaration.distributed_program import ChunkInput, FutureResult, Parts, TaskCollector, WorkerContext
from gpu.declaration.pattern import Array
from gpu.engines.base import Argument, Buffer, Engine
from gpu.patterns.nbody.forces import FILE, ForceKernel, motion_from_params
from gpu.patterns.nbody.physics import square_softening, verified_bodies
from gpu.patterns.nbody.picture import BodyPicture, Painter
from gpu.patterns.nbody.simulation import MOMENTS_BLOCK, allocate_moments, measure_moments, split_bodies

CHUNKS_FILE = "nbody_chunks.cu"
SINGLE_DEVICE_VARIANT = "pairs"
"""The variant that computes each pair once, which is not possible for bodies on different devices."""

CONSERVED = "conserved"
"""An output on demand: the `measure_moments` of all bodies, before the first step and after the last one."""

TIME_STEP_NAMES = ("kick drift", "accelerate and kick")
"""Names of the steps that make up a time step, in run events."""

MEASURING_STEP_NAMES = ("chunk moments", "add moments")
"""Names of the steps of `add_measuring_tasks`, in run events."""

_BLOCK = 256
_MAX_TASKS = 2**17


def plan(tasks: TaskCollector) -> dict[str, Parts]:
    """Add the Dask tasks: the initial forces, and per time step a move of every chunk and the new forces."""
    steps, chunks = tasks.params["steps"], len(tasks.chunks)
    check_run(tasks.variant, steps, chunks)
    positions, velocities = add_upload_tasks(tasks)
    initial_forces = add_force_tasks(tasks, positions)
    accelerations = [result["acceleration buffer"] for result in initial_forces]
    moments_before = add_measuring_tasks(tasks, positions, velocities)
    for _ in range(steps):
        positions, velocities, accelerations = add_time_step_tasks(tasks, positions, velocities, accelerations)
    verified = tuple(result["verified"] for result in initial_forces)
    return {
        "accelerations": Parts(verified, tasks.add_task(compute_part_starts, list(verified))),
        "all accelerations": Parts(tuple(result["accelerations"] for result in initial_forces)),
        "bodies": Parts(tuple(_add_chunk_tasks(tasks, download_bodies, positions, velocities))),
        CONSERVED: Parts(
            (moments_before, add_measuring_tasks(tasks, positions, velocities) if steps else moments_before)
        ),
    }


def check_run(variant: str, steps: int, chunks: int) -> None:
    """Raise InputError for a variant that runs on one device only, and for too many time steps."""
    if variant == SINGLE_DEVICE_VARIANT:
        raise InputError("Each pair once runs on one device only, as the bodies of a pair may be on two devices.")
    if 2 * steps * chunks > _MAX_TASKS:
        limit = _MAX_TASKS // (2 * chunks)
        raise InputError(
            f"{steps} steps of {chunks} chunks are too many Dask tasks.", advice=f"Choose at most {limit} steps."
        )


def add_upload_tasks(tasks: TaskCollector) -> tuple[list[FutureResult], list[FutureResult]]:
    """Add the Dask tasks that upload each chunk's bodies; return their positions and velocities."""
    states = [tasks.add_task(upload_bodies, chunk, chunk_index=index) for index, chunk in enumerate(tasks.chunks)]
    return [state["positions"] for state in states], [state["velocities"] for state in states]


def add_force_tasks(tasks: TaskCollector, positions: list[FutureResult]) -> list[FutureResult]:
    """Add the Dask tasks that compute each chunk's accelerations, as `compute_initial_accelerations` returns them."""
    numbers = range(len(positions))
    return _add_chunk_tasks(
        tasks, compute_initial_accelerations, [_rotate_to_front(positions, number) for number in numbers], [*numbers]
    )


def add_time_step_tasks(
    tasks: TaskCollector,
    positions: list[FutureResult],
    velocities: list[FutureResult],
    accelerations: list[FutureResult],
) -> tuple[list[FutureResult], list[FutureResult], list[FutureResult]]:
    """Add the Dask tasks of a time step; return the positions, velocities and accelerations after it.

    Parameters
    ----------
    tasks : TaskCollector
        Receives the Dask tasks.
    positions, velocities, accelerations : list of FutureResult
        The buffers of each chunk's bodies before the time step, all on the chunk's worker.
    """
    drifted = _add_chunk_tasks(tasks, kick_drift, positions, velocities, accelerations)
    new_positions = [result["positions"] for result in drifted]
    half_kicked = [result["velocities"] for result in drifted]
    kicked = _add_chunk_tasks(
        tasks,
        accelerate_and_kick,
        [_rotate_to_front(new_positions, index) for index in range(len(new_positions))],
        half_kicked,
    )
    return (
        new_positions,
        [result["velocities"] for result in kicked],
        [result["acceleration buffer"] for result in kicked],
    )


def add_measuring_tasks(
    tasks: TaskCollector, positions: list[FutureResult], velocities: list[FutureResult]
) -> FutureResult:
    """Add the Dask tasks that measure the conserved quantities of all bodies."""
    moments_by_chunk = _add_chunk_tasks(
        tasks, chunk_moments, [_rotate_to_front(positions, index) for index in range(len(positions))], velocities
    )
    return tasks.add_task(add_moments, moments_by_chunk)


def _add_chunk_tasks(tasks: TaskCollector, step: Any, *arguments: list[Any]) -> list[FutureResult]:
    """Add a step's Dask task for each chunk; the arguments are lists with an item per chunk."""
    return [tasks.add_task(step, *items, chunk_index=index) for index, items in enumerate(zip(*arguments, strict=True))]


def _rotate_to_front(values: list[FutureResult], chunk_index: int) -> list[FutureResult]:
    """Return the values rotated so that those of the chunk `chunk_index` come first."""
    return values[chunk_index:] + values[:chunk_index]


def upload_bodies(worker: WorkerContext, piece: ChunkInput) -> dict[str, Buffer]:
    """Upload a chunk's bodies: positions with masses, and velocities."""
    positions, velocities = split_bodies(piece.inputs["bodies"])
    return {"positions": worker.engine.upload(positions), "velocities": worker.engine.upload(velocities)}


def compute_initial_accelerations(worker: WorkerContext, positions: list[Buffer], chunk_index: int) -> dict[str, Any]:
    """Compute the initial accelerations of a chunk's bodies; some of them are verified."""
    acceleration_buffer = _compute_accelerations(worker, positions)
    accelerations = worker.engine.download(acceleration_buffer)[:, :3]
    lengths = [position.shape[0] for position in positions]
    start, numbers = sum(lengths[len(lengths) - chunk_index :]), verified_bodies(sum(lengths))
    verified = numbers[(numbers >= start) & (numbers < start + len(accelerations))] - start
    return {
        "acceleration buffer": acceleration_buffer,
        "accelerations": accelerations,
        "verified": accelerations[verified],
    }


def kick_drift(
    worker: WorkerContext, positions: Buffer, velocities: Buffer, accelerations: Buffer
) -> dict[str, Buffer]:
    """Accelerate a chunk's bodies for half a time step, then move them for a whole one.

    Parameters
    ----------
    worker : WorkerContext
        The worker's engine and parameters.
    positions, velocities, accelerations : Buffer
        The state of the bodies, each float32 of shape (n, 4); it is not modified.

    Returns
    -------
    dict of str to Buffer
        The new "positions" and "velocities".
    """
    engine, motion = worker.engine, motion_from_params(worker.params)
    moved_positions, kicked_velocities = _copy(engine, positions), _copy(engine, velocities)
    times = np.float32(motion.time_step / 2), np.float32(motion.time_step)
    _launch(
        engine,
        FILE,
        "leapfrog_kick_drift",
        moved_positions.shape[0],
        moved_positions,
        kicked_velocities,
        accelerations,
        *times,
        np.int32(moved_positions.shape[0]),
    )
    return {"positions": moved_positions, "velocities": kicked_velocities}


def accelerate_and_kick(worker: WorkerContext, positions: list[Buffer], velocities: Buffer) -> dict[str, Buffer]:
    """Compute the accelerations of a chunk's bodies, and accelerate them for the second half of a time step."""
    engine, motion = worker.engine, motion_from_params(worker.params)
    accelerations, kicked_velocities = _compute_accelerations(worker, positions), _copy(engine, velocities)
    count = np.int32(kicked_velocities.shape[0])
    _launch(
        engine,
        FILE,
        "leapfrog_kick",
        kicked_velocities.shape[0],
        kicked_velocities,
        accelerations,
        np.float32(motion.time_step / 2),
        count,
    )
    return {"acceleration buffer": accelerations, "velocities": kicked_velocities}


def chunk_moments(worker: WorkerContext, positions: list[Buffer], velocities: Buffer) -> Array:
    """Measure a chunk's share of the conserved quantities of all bodies."""
    engine, own_count = worker.engine, velocities.shape[0]
    # Padding with bodies of no mass, so that the last block does not count another chunk's bodies.
    all_positions = _gather(engine, positions, padding=-own_count % MOMENTS_BLOCK)
    sums = allocate_moments(engine, own_count)
    result = measure_moments(
        engine, all_positions, velocities, sums, square_softening(motion_from_params(worker.params).softening)
    )
    engine.free(all_positions, sums)
    return result[np.newaxis]


def add_moments(worker: WorkerContext, chunk_results: list[Array]) -> Array:
    """Add the moments of all chunks."""
    total: Array = np.sum(chunk_results, axis=0)
    return total


def download_bodies(worker: WorkerContext, position_buffer: Buffer, velocities: Buffer) -> Array:
    """Return a chunk's final bodies: columns x y z vx vy vz m."""
    positions, speeds = worker.engine.download(position_buffer), worker.engine.download(velocities)
    return np.concatenate([positions[:, :3], speeds[:, :3], positions[:, 3:]], axis=1)


def select_origins(worker: WorkerContext, piece: ChunkInput) -> Array:
    """Return the origins of a chunk's bodies, by which they are colored."""
    return piece.inputs["origins"]


def draw_bodies(
    worker: WorkerContext,
    positions: list[Buffer],
    velocities: list[Buffer],
    origins: list[Array],
    settings: BodyPicture,
    speed_scale: float,
) -> Array:
    """Draw the bodies of all chunks on one device.

    Parameters
    ----------
    worker : WorkerContext
        The worker's engine.
    positions, velocities : list of Buffer
        The state of each chunk's bodies, float32 of shape (n, 4).
    origins : list of array
        For each chunk the group of each body, by which it can be colored.
    speed_scale : float
        As of `Painter.draw`.

    Returns
    -------
    uint8 array of shape (height, width, 3)
        The image.
    """
    engine, painter = worker.engine, Painter(worker.engine)
    all_positions, all_velocities = _gather(engine, positions), _gather(engine, velocities)
    all_origins = engine.upload(np.concatenate(origins))
    image = painter.draw(all_positions, all_velocities, all_origins, settings, speed_scale)
    painter.close()
    engine.free(all_positions, all_velocities, all_origins)
    return image


def wait_for_chunks(worker: WorkerContext, velocities: list[Buffer]) -> Array:
    """Depend on all chunks and return an empty array, to wait for a time step without transferring data."""
    return np.zeros(0, np.int64)


def compute_part_starts(worker: WorkerContext, parts: list[Array]) -> Array:
    """Return the start of each part in the concatenation of all parts."""
    lengths = np.array([len(part) for part in parts], np.int64)
    return np.asarray(lengths.cumsum() - lengths)


def _compute_accelerations(worker: WorkerContext, positions: list[Buffer]) -> Buffer:
    """Return the accelerations of the first chunk's bodies by the bodies of all chunks."""
    engine, motion, own_count = worker.engine, motion_from_params(worker.params), positions[0].shape[0]
    all_positions = _gather(engine, positions)
    total = all_positions.shape[0]
    # The last block also computes accelerations of other chunks' bodies, which are not used.
    all_accelerations = engine.allocate((total, 4), np.float32)
    forces = ForceKernel(engine, worker.variant, own_count, motion.block, total=total)
    forces.launch(all_positions, all_accelerations, square_softening(motion.softening))
    accelerations = engine.allocate((own_count, 4), np.float32)
    _launch(
        engine,
        CHUNKS_FILE,
        "nbody_gather",
        own_count,
        all_accelerations,
        accelerations,
        np.int32(0),
        np.int32(own_count),
    )
    engine.free(all_positions, all_accelerations)
    return accelerations


def _gather(engine: Engine, positions: list[Buffer], padding: int = 0) -> Buffer:
    """Concatenate the bodies of all chunks, with `padding` bodies of no mass after the first chunk's."""
    first = 0
    all_positions = engine.allocate((padding + sum(position.shape[0] for position in positions), 4), np.float32)
    if padding:
        engine.fill(all_positions, 0)
    for position in positions:
        count = position.shape[0]
        _launch(engine, CHUNKS_FILE, "nbody_gather", count, position, all_positions, np.int32(first), np.int32(count))
        first += count + (0 if first else padding)
    return all_positions


def _copy(engine: Engine, values: Buffer) -> Buffer:
    """Copy an argument of a Dask task: others use it too, and lost Dask tasks are computed again from it."""
    copy, count = engine.allocate(values.shape, values.dtype), values.shape[0]
    _launch(engine, CHUNKS_FILE, "nbody_gather", count, values, copy, np.int32(0), np.int32(count))
    return copy


def _launch(engine: Engine, file: str, kernel: str, threads: int, *arguments: Argument) -> None:
    module = engine.build(file, {"BLOCK_SIZE": _BLOCK})
    engine.launch(module.kernel(kernel), (-(-threads // _BLOCK), 1, 1), (_BLOCK, 1, 1), *arguments)
