"""Run of a pattern on a cluster: divide the input, run the tasks, gather and verify the result."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from gpu.base.errors import InputError
from gpu.declaration.distributed_program import DistributedProgram, Parts, split_evenly
from gpu.declaration.pattern import Array, Inputs, Outputs, Params, Pattern, Progress, Variant
from gpu.distributed.cluster.dask_cluster import Cluster
from gpu.distributed.data.chunks import Chunk
from gpu.distributed.data.sources import EmbeddedSource, Excerpt, write_source
from gpu.distributed.tasks import NamedResult, RunTasks, to_named_result
from gpu.files.scratch import MEMORY_FOLDER, ScratchFolder
from gpu.messages.runs.distributed_run import DistributedRun, WorkerStatus
from gpu.run.host_program import OTHER_VARIANT_ADVICE, ProgressCallback, refuse_missing_features
from gpu.run.pattern_run import Outcome, build_outcome, create_report
from gpu.run.workload import Workload

_FREE_BYTES = 2**31
"""Bytes of the in-memory file system that are left for other programs."""


def run_distributed(
    cluster: Cluster,
    workload: Workload,
    report_progress: ProgressCallback,
    *,
    chunks: Sequence[int] = (),
    extra_outputs: Collection[str] = (),
) -> tuple[Outcome, DistributedRun]:
    """Run one variant on all workers of a cluster and compare its result with the reference result.

    Parameters
    ----------
    chunks : sequence of int
        One number: how many chunks to divide the input into. Several: the elements, or rows, of each chunk. Empty: one
        chunk per worker.
    extra_outputs : collection of str
        On-demand outputs to compute too.

    Raises
    ------
    InputError
        If the pattern does not accept the inputs, parameters or chunks; nothing was run.
    KernelError
        If a kernel does not compile, or fails.
    EngineUnavailableError
        If the scheduler or every worker is lost.
    """
    program = find_distributed_program(workload.pattern, workload.variant)
    workload = workload.prepare()
    inputs, params = workload.inputs, workload.params
    divided = {name: inputs[name] for name in program.divided_inputs if name in inputs}
    begins = {name: inputs[rows] for name, rows in program.ragged_inputs.items()}
    total = len(next(iter(begins.values()))) - 1 if begins else len(next(iter(divided.values())))
    workers = find_capable_workers(cluster, workload.variant)
    lengths = compute_chunk_lengths(total, chunks, len(workers), program.granularity(params))
    with closing(ScratchFolder(_choose_scratch_location(sum(each.nbytes for each in inputs.values())))) as folder:
        here = Path(folder.path) if cluster.shared_folder else None
        cut = divide_input(program, inputs, params, divided, begins, lengths, here)
        separate_chunks = {
            name: _divide_separately(name, inputs[name], len(cut), here) for name in program.separately_divided_inputs
        }
        with closing(RunTasks(cluster, workload, cut, separate_chunks)) as tasks:
            begun = time.perf_counter()
            omitted = set(program.on_demand) - set(extra_outputs)
            planned = {name: parts for name, parts in program.plan(tasks).items() if name not in omitted}
            outputs = _gather_outputs(tasks, planned, report_progress)
            wall_s = time.perf_counter() - begun
    done = build_distributed_run(cluster, workers, tasks, wall_s, outputs)
    report_progress(Progress(None, "comparing with the reference result"))
    devices = replace(cluster.workers[0].device, name=describe_devices(cluster))
    return build_outcome(workload, outputs, create_report(workload, devices, done.times)), done


def build_distributed_run(
    cluster: Cluster, workers: Sequence[WorkerStatus], tasks: RunTasks, wall_s: float, outputs: Mapping[str, Array]
) -> DistributedRun:
    """Return the record of a run that has ended, with workers that joined or were lost during it.

    Parameters
    ----------
    cluster : Cluster
        Its workers are updated if some were lost.
    workers : sequence of WorkerStatus
        The workers at the start of the run.
    wall_s : float
        Seconds.
    outputs : mapping of str to array
        The outputs in this process; an array with several names counts once.
    """
    if tasks.event_log.lost_workers:
        cluster.update_workers()
    all_workers = tuple({each.address: each for each in (*workers, *cluster.workers)}.values())
    gathered = sum({id(output): output.nbytes for output in outputs.values()}.values())
    return DistributedRun(
        all_workers, tuple(tasks.event_log.records), tuple(tasks.event_log.lost_workers), wall_s, gathered
    )


def _choose_scratch_location(nbytes: int) -> str | None:
    """Return where to write inputs for this machine's workers: in memory if there is ample room, else on disk."""
    try:
        roomy = os.access(MEMORY_FOLDER, os.W_OK) and shutil.disk_usage(MEMORY_FOLDER).free > 2 * nbytes + _FREE_BYTES
    except OSError:
        return None
    return MEMORY_FOLDER if roomy else None


def describe_devices(cluster: Cluster) -> str:
    """Describe a cluster's devices: "4 x NVIDIA H100", or "4 workers on 1 x NVIDIA H100"."""
    by_device: dict[str, list[WorkerStatus]] = {}
    for worker in cluster.workers:
        by_device.setdefault(worker.device.name, []).append(worker)
    parts = []
    for name, workers in by_device.items():
        devices = count_devices(workers)
        shared = "" if devices == len(workers) else f"{len(workers)} workers on "
        parts.append(f"{shared}{devices} x {name}")
    return ", ".join(parts)


def count_devices(workers: Sequence[WorkerStatus]) -> int:
    """Return the number of devices of some workers: workers of one machine may share a GPU."""
    return len({(worker.host, worker.device.place or worker.address) for worker in workers})


def find_distributed_program(pattern: Pattern, variant: Variant) -> DistributedProgram:
    """Return the distributed program of a pattern's variant; raise InputError if it has none."""
    program = pattern.require_distributed()
    if variant.library:
        raise InputError(f"{variant.library} runs on one device only.", advice=OTHER_VARIANT_ADVICE)
    return program


def find_capable_workers(cluster: Cluster, variant: Variant) -> tuple[WorkerStatus, ...]:
    """Update and return a cluster's workers; raise InputError if one of them cannot run the variant."""
    cluster.update_workers()
    for worker in cluster.workers:
        refuse_missing_features(variant, worker.device, f"on the worker {worker.name}")
    return cluster.workers


def compute_chunk_lengths(total: int, chunks: Sequence[int], workers: int, granularity: int = 1) -> tuple[int, ...]:
    """Return the number of elements, or rows, of each chunk, in multiples of `granularity`.

    Parameters
    ----------
    total : int
        Elements, or rows, of the complete input.
    chunks : sequence of int
        One number: how many chunks. Several numbers: their lengths. Empty: one chunk per worker.
    granularity : int
        A chunk has a multiple of this number of elements, or rows.

    Raises
    ------
    InputError
        If the chunks do not add up to `total`, or `total` or a chunk is not a multiple of `granularity`.
    """
    if len(chunks) <= 1:
        if total % granularity:
            raise InputError(f"The input has {total} elements or rows, which is not a multiple of {granularity}.")
        return tuple(
            granularity * each for each in split_evenly(total // granularity, chunks[0] if chunks else workers)
        )
    if min(chunks) < 1 or sum(chunks) != total:
        raise InputError(f"--chunks add up to {sum(chunks)}, not {total}, or one is empty.")
    if divided := [chunk for chunk in chunks if chunk % granularity]:
        raise InputError(f"--chunks must be multiples of {granularity}; {divided[0]} is not.")
    return tuple(chunks)


def divide_input(
    program: DistributedProgram,
    inputs: Inputs,
    params: Params,
    divided_inputs: Mapping[str, Array],
    row_starts: Mapping[str, Array],
    lengths: Sequence[int],
    folder: Path | None,
) -> list[Chunk]:
    """Divide the input into chunks.

    Parameters
    ----------
    divided_inputs : mapping of str to array
        Inputs that are divided by elements or rows.
    row_starts : mapping of str to array
        For each ragged input, the index at which each row begins.
    lengths : sequence of int
        Elements, or rows, of each chunk.
    folder : Path or None
        Where inputs are written for workers to read; None sends them with the tasks.
    """
    rows = {name: inputs[name] for name in program.ragged_inputs.values()}
    not_common = {*divided_inputs, *row_starts, *rows, *program.separately_divided_inputs}
    common = {name: values for name, values in inputs.items() if name not in not_common}
    excerpt = {name: _excerpt_function(name, inputs[name], folder) for name in (*divided_inputs, *row_starts, *rows)}
    halo, total, start, cut = program.halo(params), sum(lengths), 0, []
    for index, length in enumerate(lengths):
        stop = start + length
        before, after = min(halo, start), min(halo, total - stop)
        read = {
            **{name: excerpt[name](start - before, stop + after) for name in divided_inputs},
            **{name: excerpt[name](int(begin[start]), int(begin[stop])) for name, begin in row_starts.items()},
            **{name: excerpt[name](start, stop + 1) for name in rows},
        }
        cut.append(Chunk(read, common, index, start, stop, before, after))
        start = stop
    return cut


def _divide_separately(name: str, values: Array, count: int, folder: Path | None) -> list[Chunk]:
    """Divide an input independently of the main input."""
    take, bounds = _excerpt_function(name, values, folder), np.cumsum([0, *split_evenly(len(values), count)]).tolist()
    return [Chunk({name: take(*ends)}, {}, index, *ends) for index, ends in enumerate(pairwise(bounds))]


def _excerpt_function(name: str, values: Array, folder: Path | None) -> Callable[[int, int], Excerpt]:
    """Return a function that excerpts an array by range: from a file, if workers share a folder, or as a copy."""
    if folder is not None:
        file = write_source(values, folder, name)
        return lambda first, last: Excerpt(file, first, last)
    return lambda first, last: Excerpt(EmbeddedSource(np.array(values[first:last]), first), first, last)


def _gather_outputs(tasks: RunTasks, outputs: Mapping[str, Parts], report_progress: ProgressCallback) -> Outputs:
    """Gather outputs; those with the same parts share one array."""
    distinct = {id(parts): parts for parts in outputs.values()}
    named: list[NamedResult] = [to_named_result(part) for parts in distinct.values() for part in parts.parts]
    arrays: list[Any] = tasks.wait_for_results(named, report_progress)
    gathered: dict[int, Array] = {}
    for number, parts in distinct.items():
        part_arrays, arrays = arrays[: len(parts.parts)], arrays[len(parts.parts) :]
        gathered[number] = part_arrays[0] if len(part_arrays) == 1 else np.concatenate(part_arrays)
    return {name: gathered[id(parts)] for name, parts in outputs.items()}
