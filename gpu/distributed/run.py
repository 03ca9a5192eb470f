"""A pattern, run over a cluster's workers: its input divided, its tasks done, the result verified as any other's is."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gpu.declaration.distributed import Parts, equal_lengths
from gpu.declaration.pattern import Array, Inputs, Outputs, Params, Pattern, Progress, Variant
from gpu.distributed.cluster import Cluster
from gpu.distributed.sources import Carried, Source, written
from gpu.distributed.tasks import Named, RunTasks
from gpu.distributed.worker import Chunk
from gpu.errors import InputError
from gpu.messages.distributed import DistributedRun
from gpu.messages.requests import Report
from gpu.run import verify
from gpu.run.drive import ANOTHER, Tell, accept
from gpu.run.execute import Outcome, throughput


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

    Raises
    ------
    InputError
        Where inputs, parameters and chunks are not ones that the pattern takes; nothing was run.
    KernelError
        Where a kernel does not compile or fails while it runs.
    EngineUnavailableError
        Where the scheduler, or every worker, is gone.
    """
    program = pattern.over_devices()
    accept(pattern, variant, inputs, params)
    if variant.library:
        raise InputError(f"{variant.library} runs on one device only.", advice=ANOTHER)
    divided = {name: inputs[name] for name in program.divided if name in inputs}
    total = len(next(iter(divided.values())))
    cluster.look()
    workers = cluster.workers
    lengths = lengths_of(total, chunks, len(cluster.workers))
    with tempfile.TemporaryDirectory(dir=cluster.shared or None, ignore_cleanup_errors=True) as folder:
        here = Path(folder) if cluster.shared else None
        whole = {name: values for name, values in inputs.items() if name not in (*divided, *program.beside)}
        cut = _chunks(divided, whole, lengths, program.halo(params), here)
        beside = {
            name: _chunks({name: inputs[name]}, {}, equal_lengths(len(inputs[name]), len(cut)), 0, here)
            for name in program.beside
        }
        tasks = RunTasks(cluster, pattern.name, variant.name, params, sources or {}, cut, beside)
        try:
            begun = time.perf_counter()
            outputs = _assembled(tasks, program.plan(tasks), tell)
            wall_s = time.perf_counter() - begun
        finally:
            tasks.close()
    if tasks.news.lost:
        cluster.look()
    workers = tuple({each.address: each for each in (*workers, *cluster.workers)}.values())
    gathered = sum({id(each): each.nbytes for each in outputs.values()}.values())
    done = DistributedRun(workers, tuple(tasks.news.records), tuple(tasks.news.lost), wall_s, gathered)
    tell(Progress(None, "comparing with the reference"))
    ours, right = verify.comparable(pattern, variant, inputs, params, outputs)
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
    return Outcome(outputs, dict(pattern.present(inputs, params, outputs)), report), done


def devices_text(cluster: Cluster) -> str:
    """Return what a cluster's workers run on, such as "4 x NVIDIA H100"."""
    names = [each.device.name for each in cluster.workers]
    return ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names))


def lengths_of(total: int, chunks: Sequence[int], workers: int) -> tuple[int, ...]:
    """Return how many elements, or rows, each chunk has; InputError where they do not come to all that there are."""
    if len(chunks) <= 1:
        return equal_lengths(total, chunks[0] if chunks else workers)
    if min(chunks) < 1 or sum(chunks) != total:
        raise InputError(f"--chunks come to {sum(chunks)}, and there are {total} to divide; each has at least one.")
    return tuple(chunks)


def _chunks(
    divided: Mapping[str, Array], whole: Mapping[str, Array], lengths: Sequence[int], halo: int, folder: Path | None
) -> list[Chunk]:
    files = {name: written(values, folder, name) for name, values in divided.items()} if folder is not None else {}
    total, start, cut = sum(lengths), 0, []
    for place, length in enumerate(lengths):
        stop = start + length
        before, after = min(halo, start), min(halo, total - stop)
        first, last = start - before, stop + after
        read: dict[str, Source] = {
            name: files[name] if name in files else Carried(np.array(values[first:last]), first)
            for name, values in divided.items()
        }
        cut.append(Chunk(read, whole, place, start, stop, before, after))
        start = stop
    return cut


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
