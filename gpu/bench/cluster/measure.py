"""Measure each pattern on one worker of a cluster and on all: only its steps and their exchanges."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from gpu.bench.cluster.cases import WINDOW, CaseResult, ClusterCase, MadeInput, same
from gpu.bench.cluster.held import BlankRows, HeldEngine, Moved, OnDevice, PartFacts, stand_before, step_aside
from gpu.declaration.distributed import OnWorker, Step, equal_lengths
from gpu.declaration.pattern import Progress
from gpu.distributed.chunks import Chunk
from gpu.distributed.cluster import Cluster
from gpu.distributed.run import lengths_of
from gpu.distributed.sources import Excerpt, written
from gpu.distributed.tasks import Named, RunTasks, home_of
from gpu.distributed.worker import exchange_engine, with_engine
from gpu.engines.base import Array, Engine
from gpu.errors import LockstepError
from gpu.messages.distributed import DistributedRun
from gpu.patterns import find_pattern

_FEWEST = 3
_LONG_S = 4.0


@dataclass(frozen=True)
class ClusterRow:
    """Times of a case on a number of workers.

    Parameters
    ----------
    work : str
    workers : int
    wall_ms : tuple of float
        Of each repetition, from the submission of the first Dask task to the result of the last one.
    device_ms : tuple of float
        Of each repetition, for the busiest device: its kernels, and its copies from other devices.
    steps : mapping of str to float
        Milliseconds of the kernels of each step, for the worker that spent the most on it.
    transfer_ms : float
        Transfers to and from the host.
    device_bytes, socket_bytes : int
        Exchanged between workers from device to device, and through Dask's connections.
    right : bool
        Whether the result is correct.
    time_steps : int
        Time steps of a simulation of bodies; 0 for other patterns.
    """

    work: str
    workers: int
    wall_ms: tuple[float, ...]
    device_ms: tuple[float, ...]
    steps: Mapping[str, float]
    transfer_ms: float
    device_bytes: int
    socket_bytes: int
    right: bool
    time_steps: int = 0

    @property
    def wall(self) -> float:
        """The median by the clock, in ms."""
        return statistics.median(self.wall_ms)

    @property
    def device(self) -> float:
        """The median on the devices, in ms."""
        return statistics.median(self.device_ms)


def measure(
    cluster: Cluster,
    cases: Sequence[ClusterCase],
    repetitions: int,
    fail: Callable[[ClusterCase, LockstepError], None],
) -> Iterator[ClusterRow]:
    """Measure cases on the first worker, and on all; yield their rows, case by case.

    A case that cannot run, for example because a device has too little memory, is passed to `fail`.
    """
    counts = dict.fromkeys((1, len(cluster.workers)))
    with _resident_data(cluster), TemporaryDirectory(dir=cluster.shared or None, ignore_cleanup_errors=True) as folder:
        for case in cases:
            try:
                runs = [_measure_on(cluster.first(count), case, repetitions, Path(folder)) for count in counts]
            except LockstepError as error:
                fail(case, error)
                continue
            results_agree = same([result for _, result in runs])
            for row, result in runs:
                yield replace(row, right=results_agree and case.right(result))


@contextmanager
def _resident_data(cluster: Cluster) -> Iterator[None]:
    """Wrap the workers' engines so that inputs are on the devices before they are used, and results stay there."""
    cluster.on_each(exchange_engine, stand_before)
    try:
        yield
    finally:
        cluster.on_each(exchange_engine, step_aside)


@dataclass(frozen=True)
class _Timed:
    """A repetition, and what each worker copied from other devices during it."""

    done: DistributedRun
    moved: Sequence[Moved]

    @property
    def device_ms(self) -> float:
        kernels = dict.fromkeys((each.address for each in self.done.workers), 0.0)
        for record in self.done.tasks:
            kernels[record.worker] += record.times.kernel
        return max(ms + moved.ms for ms, moved in zip(kernels.values(), self.moved, strict=True))


def _measure_on(cluster: Cluster, case: ClusterCase, repetitions: int, folder: Path) -> tuple[ClusterRow, CaseResult]:
    count = len(cluster.workers)
    cluster.on_each(with_engine, _begin)
    try:
        prepared = _Prepared(cluster, case, -(-case.chunks // count) * count, folder)
        result = prepared.checked()  # also the warm-up
        runs: list[_Timed] = []
        start = time.monotonic()
        while len(runs) < repetitions and (len(runs) < _FEWEST or time.monotonic() - start < _LONG_S):
            runs.append(prepared.timed())
    finally:
        cluster.on_each(with_engine, _end)
    # The details are those of the median repetition.
    median = sorted(runs, key=lambda each: each.done.wall_s)[len(runs) // 2]
    run, by_device = median.done, sum(each.nbytes for each in median.moved)
    row = ClusterRow(
        case.work,
        count,
        tuple(1e3 * each.done.wall_s for each in runs),
        tuple(each.device_ms for each in runs),
        {step: run.times_of(step).kernel for step in dict.fromkeys(each.step for each in run.tasks)},
        run.times.upload + run.times.download,
        by_device,
        run.exchanged_bytes - by_device,
        False,
        case.steps,
    )
    return row, result


class _Prepared:
    """A case whose input is on the devices of its workers."""

    def __init__(self, cluster: Cluster, case: ClusterCase, chunks: int, folder: Path) -> None:
        self._cluster = cluster
        self._case = case
        pattern = find_pattern(case.pattern)
        self._params, self._program = pattern.check(case.params), pattern.over_devices()
        self._sums: list[Any] = []
        files = {name: written(values, folder, name) for name, values in case.given.items()}
        lengths = lengths_of(case.rows, (chunks,), chunks, self._program.together(self._params))
        halo, stop = self._program.halo(self._params), 0
        self._chunks = []
        for place, length in enumerate(lengths):
            start, stop = stop, stop + length
            before, after = min(halo, start), min(halo, case.rows - stop)
            rows, home = (start - before, stop + after), home_of(cluster, place, len(lengths))
            sources = {
                **{name: self._generate(home, f"{name} {place}", made, *rows) for name, made in case.divided.items()},
                **{name: Excerpt(BlankRows(row, dtype), *rows) for name, (row, dtype) in case.blank.items()},
                **{name: Excerpt(file, *rows) for name, file in files.items()},
            }
            self._chunks.append(Chunk(sources, case.whole, place, start, stop, before, after))
        self._second_inputs = {
            name: self._second_chunks(name, made, len(lengths)) for name, made in case.beside.items()
        }
        self._total = sum(cluster.client.gather(self._sums))
        self._smallest = min(lengths) * max((4 * made.each for made in case.divided.values()), default=0)

    def _second_chunks(self, name: str, made: MadeInput, chunks: int) -> list[Chunk]:
        parts, stop = [], 0
        for place, length in enumerate(equal_lengths(made.rows, chunks)):
            start, stop = stop, stop + length
            home = home_of(self._cluster, place, chunks)
            sources = {name: self._generate(home, f"{name} {place}", made, start, stop)}
            parts.append(Chunk(sources, {}, place, start, stop))
        return parts

    def _generate(self, home: str, key: str, made: MadeInput, start: int, stop: int) -> Excerpt:
        """Generate rows on a worker's device; return the source where its Dask tasks find them."""
        values = (stop - start, *made.row), made.dtype, made.bits, made.salt + start * made.each
        submit = self._cluster.client.submit
        self._sums.append(submit(with_engine, _make, key, *values, workers=[home], pure=False))
        return Excerpt(OnDevice(key), start, stop)

    def checked(self) -> CaseResult:
        """Run the case; return the properties of its result."""
        stays = look_at if self._case.divided else let_go
        _, results = self._run(stays)
        parts = [each for name in self._case.stays for each in results[name]] if self._case.divided else []
        return CaseResult(
            parts=tuple(_facts(each) for each in parts),
            arrays={name: np.concatenate(results[name]) for name in self._case.comes},
            total=self._total,
        )

    def timed(self) -> _Timed:
        """Run the case without examining its result; return the times."""
        self._cluster.on_each(with_engine, _moved)
        run, _ = self._run(let_go)
        return _Timed(run, self._cluster.on_each(with_engine, _moved))

    def _run(self, stays: Step) -> tuple[DistributedRun, dict[str, list[Any]]]:
        case, cluster = self._case, self._cluster
        cluster.on_each(with_engine, _stays_from, self._smallest // 2 if case.divided and case.stays else 2**62)
        tasks = RunTasks(cluster, case.pattern, case.variant, self._params, {}, self._chunks, self._second_inputs)
        try:
            start = time.perf_counter()
            plan = self._program.plan(tasks)
            outputs = {name: [_named(part) for part in plan[name].parts] for name in (*case.stays, *case.comes)}
            for name in case.stays:
                outputs[name] = [part.followed(stays) for part in outputs[name]]
            results = iter(tasks.wait([part for parts in outputs.values() for part in parts], _quiet))
            wall_s = time.perf_counter() - start
        finally:
            tasks.close()
        run = DistributedRun(cluster.workers, tuple(tasks.news.records), tuple(tasks.news.lost), wall_s, 0)
        return run, {name: [next(results) for _ in parts] for name, parts in outputs.items()}


def look_at(worker: OnWorker, part: Array) -> dict[str, Array]:
    """Return the properties of a part of a result on its device, and free it."""
    engine = _held_engine(worker.engine)
    facts = engine.facts_of(part, WINDOW)
    engine.let_go()
    # float64 cannot represent a 64-bit sum, so each property is an array.
    return {name: np.array(value) for name, value in vars(facts).items()}


def let_go(worker: OnWorker, part: Array) -> Array:
    """Free a part of a result on its device."""
    _held_engine(worker.engine).let_go()
    return np.zeros(1)


def _facts(properties: Mapping[str, Any]) -> PartFacts:
    numbers = {name: int(value) for name, value in properties.items() if not value.ndim}
    return PartFacts(**numbers, head=properties["head"], tail=properties["tail"])


def _held_engine(engine: Engine) -> HeldEngine:
    assert isinstance(engine, HeldEngine)
    return engine


def _begin(engine: Engine) -> None:
    _held_engine(engine).begin()


def _end(engine: Engine) -> None:
    _held_engine(engine).forget()


def _stays_from(engine: Engine, size: int) -> None:
    _held_engine(engine).stays_from = size


def _make(engine: Engine, key: str, shape: tuple[int, ...], dtype: str, bits: int, first: int) -> int:
    return _held_engine(engine).make(key, shape, dtype, bits, first)


def _moved(engine: Engine) -> Moved:
    return _held_engine(engine).take_moved()


def _quiet(progress: Progress) -> None:
    pass


def _named(part: Any) -> Named:
    assert isinstance(part, Named)
    return part
