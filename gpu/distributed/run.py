"""A pattern, run over a cluster's workers: its input divided, its tasks done, the result verified as any other's is."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from gpu.declaration.arrays import present_error
from gpu.declaration.distributed import DistributedProgram, Parts, equal_lengths
from gpu.declaration.pattern import Array, Inputs, Outputs, Params, Pattern, Progress, Variant
from gpu.declaration.presentation import ArrayPresentation
from gpu.distributed.chunks import Chunk
from gpu.distributed.cluster import Cluster
from gpu.distributed.sources import Carried, Excerpt, written
from gpu.distributed.tasks import Named, RunTasks
from gpu.errors import InputError
from gpu.files.scratch import MEMORY, ScratchFolder
from gpu.messages.distributed import DistributedRun, WorkerStatus
from gpu.messages.requests import Report
from gpu.run import verify
from gpu.run.drive import ANOTHER, Tell, accept, refuse_missing
from gpu.run.execute import Outcome, throughput

_ROOM = 2**31
"""Bytes that are left to others in memory that files lie in."""


def run_distributed(
    cluster: Cluster,
    pattern: Pattern,
    variant: Variant,
    inputs: Inputs,
    params: Params,
    tell: Tell,
    *,
    chunks: Sequence[int] = (),
    sources: Mapping[str, str] | None = None,
    also: Collection[str] = (),
) -> tuple[Outcome, DistributedRun]:
    """Run one variant on all of a cluster, and compare its result with the reference.

    Parameters
    ----------
    cluster : Cluster
    pattern : Pattern
    variant : Variant
    inputs, params : mapping
        As the pattern takes them.
    tell : callable
    chunks : sequence of int
        One number: how many chunks the input is divided into. Several: how many elements, or rows, each has. None: a
        chunk for each worker.
    sources : mapping of str to str
        Texts for kernel files, where they are edited.
    also : collection of str
        Which of the outputs on demand are wanted.

    Raises
    ------
    InputError
        Where inputs, parameters and chunks are not ones that the pattern takes; nothing was run.
    KernelError
        Where a kernel does not compile or fails while it runs.
    EngineUnavailableError
        Where the scheduler, or every worker, is gone.
    """
    program = program_of(pattern, variant)
    accept(pattern, variant, inputs, params)
    divided = {name: inputs[name] for name in program.divided if name in inputs}
    begins = {name: inputs[rows] for name, rows in program.ragged.items()}
    total = len(next(iter(begins.values()))) - 1 if begins else len(next(iter(divided.values())))
    workers = workers_for(cluster, variant)
    lengths = lengths_of(total, chunks, len(workers), program.together(params))
    with closing(ScratchFolder(_place_for(sum(each.nbytes for each in inputs.values())))) as folder:
        here = Path(folder.path) if cluster.shared else None
        cut = chunks_of(program, inputs, params, divided, begins, lengths, here)
        beside = {name: _beside(name, inputs[name], len(cut), here) for name in program.beside}
        tasks = RunTasks(cluster, pattern.name, variant.name, params, sources or {}, cut, beside)
        try:
            begun = time.perf_counter()
            planned = program.plan(tasks)
            wanted = {name: planned[name] for name in planned if name in also or name not in program.on_demand}
            outputs = _assembled(tasks, wanted, tell)
            wall_s = time.perf_counter() - begun
        finally:
            tasks.close()
    if tasks.news.lost:
        cluster.look()
    workers = tuple({each.address: each for each in (*workers, *cluster.workers)}.values())
    gathered = sum({id(each): each.nbytes for each in outputs.values()}.values())
    done = DistributedRun(workers, tuple(tasks.news.records), tuple(tasks.news.lost), wall_s, gathered)
    tell(Progress(None, "comparing with the reference"))
    presented = dict(pattern.present(inputs, params, outputs))
    ours, right = verify.comparable(pattern, variant, inputs, params, outputs)
    if isinstance(pattern.presentation, ArrayPresentation) and ours.shape == right.shape:
        presented |= present_error(ours, right)
    deviation, verified = verify.compare(ours, right, pattern.tolerance(inputs, params))
    device, cost = cluster.workers[0].device, pattern.cost(inputs, params)
    report = Report(
        pattern=pattern.name,
        engine=device.engine,
        executor=device.executor,
        device=devices_text(cluster),
        variant=variant.name,
        time_ms=done.times,
        throughput=throughput(pattern.work(inputs, params), done.times),
        deviation=deviation,
        verified=verified,
        least_bytes=cost.bytes_read + cost.bytes_written,
    )
    return Outcome(outputs, presented, report), done


def _place_for(nbytes: int) -> str | None:
    """Return where inputs are written for workers of this machine: in memory if there is ample room, else on a disk."""
    try:
        roomy = os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 2 * nbytes + _ROOM
    except OSError:
        return None
    return MEMORY if roomy else None


def devices_text(cluster: Cluster) -> str:
    """Return what a cluster's workers run on: "4 x NVIDIA H100", or "4 workers on 1 x NVIDIA H100"."""
    on: dict[str, list[WorkerStatus]] = {}
    for each in cluster.workers:
        on.setdefault(each.device.name, []).append(each)
    parts = []
    for name, workers in on.items():
        devices = devices_of(workers)
        shared = "" if devices == len(workers) else f"{len(workers)} workers on "
        parts.append(f"{shared}{devices} x {name}")
    return ", ".join(parts)


def devices_of(workers: Sequence[WorkerStatus]) -> int:
    """Return how many devices workers have: those of one machine may take turns on a GPU."""
    return len({(each.host, each.device.place or each.address) for each in workers})


def program_of(pattern: Pattern, variant: Variant) -> DistributedProgram:
    """Return how a pattern's variant runs over several devices; InputError where it does not."""
    program = pattern.over_devices()
    if variant.library:
        raise InputError(f"{variant.library} runs on one device only.", advice=ANOTHER)
    return program


def workers_for(cluster: Cluster, variant: Variant) -> tuple[WorkerStatus, ...]:
    """Return a cluster's workers as they are now; InputError where a variant cannot run on one of them."""
    cluster.look()
    for each in cluster.workers:
        refuse_missing(variant, each.device, f"on the worker {each.name}")
    return cluster.workers


def lengths_of(total: int, chunks: Sequence[int], workers: int, together: int = 1) -> tuple[int, ...]:
    """Return how many elements, or rows, each chunk has; `together` of them are never divided.

    Raises
    ------
    InputError
        Where chunks do not come to all that there are, or divide what belongs together.
    """
    if len(chunks) <= 1:
        return tuple(together * each for each in equal_lengths(total // together, chunks[0] if chunks else workers))
    if min(chunks) < 1 or sum(chunks) != total:
        raise InputError(f"--chunks come to {sum(chunks)}, and there are {total} to divide; each has at least one.")
    if divided := [each for each in chunks if each % together]:
        raise InputError(f"--chunks are multiples of {together}, which belong together, and {divided[0]} is none.")
    return tuple(chunks)


def chunks_of(
    program: DistributedProgram,
    inputs: Inputs,
    params: Params,
    divided: Mapping[str, Array],
    begins: Mapping[str, Array],
    lengths: Sequence[int],
    folder: Path | None,
) -> list[Chunk]:
    """Divide the input; `begins` says of what is ragged where each row begins in it.

    Where there is a folder, inputs are written there, for workers to read what is theirs; otherwise they travel.
    """
    rows = {name: inputs[name] for name in program.ragged.values()}
    apart = {*divided, *begins, *rows, *program.beside}
    whole = {name: values for name, values in inputs.items() if name not in apart}
    taken = {name: _taking(name, inputs[name], folder) for name in (*divided, *begins, *rows)}
    halo, total, start, cut = program.halo(params), sum(lengths), 0, []
    for place, length in enumerate(lengths):
        stop = start + length
        before, after = min(halo, start), min(halo, total - stop)
        read = {
            **{name: taken[name](start - before, stop + after) for name in divided},
            **{name: taken[name](int(begin[start]), int(begin[stop])) for name, begin in begins.items()},
            **{name: taken[name](start, stop + 1) for name in rows},
        }
        cut.append(Chunk(read, whole, place, start, stop, before, after))
        start = stop
    return cut


def _beside(name: str, values: Array, count: int, folder: Path | None) -> list[Chunk]:
    """Divide what is divided by itself."""
    take, bounds = _taking(name, values, folder), np.cumsum([0, *equal_lengths(len(values), count)]).tolist()
    return [Chunk({name: take(*ends)}, {}, place, *ends) for place, ends in enumerate(pairwise(bounds))]


def _taking(name: str, values: Array, folder: Path | None) -> Callable[[int, int], Excerpt]:
    """Return by what a stretch of an array is taken: out of a file, where there is a folder that all workers see."""
    if folder is not None:
        file = written(values, folder, name)
        return lambda first, last: Excerpt(file, first, last)
    return lambda first, last: Excerpt(Carried(np.array(values[first:last]), first), first, last)


def _assembled(tasks: RunTasks, outputs: Mapping[str, Parts], tell: Tell) -> Outputs:
    """Gather outputs; those that are the same parts are one array."""
    distinct = {id(parts): parts for parts in outputs.values()}
    named: list[Named] = [_named(part) for parts in distinct.values() for part in parts.parts]
    arrays: list[Any] = tasks.wait(named, tell)
    whole: dict[int, Array] = {}
    for number, parts in distinct.items():
        own, arrays = arrays[: len(parts.parts)], arrays[len(parts.parts) :]
        whole[number] = own[0] if len(own) == 1 else np.concatenate(own)
    return {name: whole[id(parts)] for name, parts in outputs.items()}


def _named(made: Any) -> Named:
    assert isinstance(made, Named)
    return made
