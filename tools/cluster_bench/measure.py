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

from gpu.base.errors import LockstepError
from gpu.declaration.distributed_program import Step, WorkerContext, split_evenly
from gpu.distributed.cluster.dask_cluster import Cluster
from gpu.distributed.cluster.worker import call_with_engine, replace_engine
from gpu.distributed.data.chunks import Chunk
from gpu.distributed.data.sources import Excerpt, write_source
from gpu.distributed.distributed_run import compute_chunk_lengths
from gpu.distributed.tasks import RunTasks, find_home, to_named_result
from gpu.engines.base import Array, Engine
from gpu.messages.runs.distributed_run import DistributedRun
from gpu.patterns import find_pattern
from gpu.run.workload import Workload
from tools.cluster_bench.cases import WINDOW, CaseResult, ClusterCase, GeneratedInput, are_results_equal
from tools.cluster_bench.resident_engine import (
    BlankSource,
    DeviceCopies,
    GeneratedSource,
    PartProperties,
    ResidentEngine,
    unwrap_engine,
    wrap_engine,
)

_MIN_REPETITIONS = 3
_LONG_RUN_S = 4.0


@dataclass(frozen=True)
class ClusterRow:
    """Times of a case on a number of workers.

    Parameters
    ----------
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
    correct : bool
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
    correct: bool
    time_steps: int = 0

    @property
    def median_wall_ms(self) -> float:
        """The median by the clock, in ms."""
        return statistics.median(self.wall_ms)

    @property
    def median_device_ms(self) -> float:
        """The median on the devices, in ms."""
        return statistics.median(self.device_ms)


def measure(
    cluster: Cluster,
    cases: Sequence[ClusterCase],
    repetitions: int,
    fail: Callable[[ClusterCase, LockstepError], None],
) -> Iterator[ClusterRow]:
    """Measure cases on the first worker, and on all; yield their rows, case by case.

    Parameters
    ----------
    cluster : Cluster
        The cluster; with a single worker, each case has one row.
    cases : sequence of ClusterCase
        The cases, in the order of their rows.
    repetitions : int
        Timed runs per case and number of workers.
    fail : callable
        Called with a case that cannot run, for example because a device has too little memory, and its error.

    Yields
    ------
    ClusterRow
        `correct` also requires that the results of one worker and of all agree.
    """
    counts = dict.fromkeys((1, len(cluster.workers)))
    with (
        _resident_data(cluster),
        TemporaryDirectory(dir=cluster.shared_folder or None, ignore_cleanup_errors=True) as folder,
    ):
        for case in cases:
            try:
                runs = [_measure_on(cluster.limit_workers(count), case, repetitions, Path(folder)) for count in counts]
            except LockstepError as error:
                fail(case, error)
                continue
            results_agree = are_results_equal([result for _, result in runs])
            for row, result in runs:
                yield replace(row, correct=results_agree and case.is_correct(result))


@contextmanager
def _resident_data(cluster: Cluster) -> Iterator[None]:
    """Wrap the workers' engines so that inputs are on the devices before they are used, and results stay there."""
    cluster.call_on_each_worker(replace_engine, wrap_engine)
    try:
        yield
    finally:
        cluster.call_on_each_worker(replace_engine, unwrap_engine)


@dataclass(frozen=True)
class _TimedRun:
    """A repetition, and each worker's copies from other devices during it."""

    run: DistributedRun
    copies: Sequence[DeviceCopies]

    @property
    def device_ms(self) -> float:
        kernels = dict.fromkeys((worker.address for worker in self.run.workers), 0.0)
        for record in self.run.tasks:
            kernels[record.worker] += record.times.kernel
        return max(ms + moved.ms for ms, moved in zip(kernels.values(), self.copies, strict=True))


def _measure_on(cluster: Cluster, case: ClusterCase, repetitions: int, folder: Path) -> tuple[ClusterRow, CaseResult]:
    count = len(cluster.workers)
    cluster.call_on_each_worker(call_with_engine, _activate_engine)
    try:
        prepared = _PreparedCase(cluster, case, -(-case.min_chunks // count) * count, folder)
        result = prepared.run_checked()  # also the warm-up
        runs: list[_TimedRun] = []
        start = time.monotonic()
        while len(runs) < repetitions and (len(runs) < _MIN_REPETITIONS or time.monotonic() - start < _LONG_RUN_S):
            runs.append(prepared.run_timed())
    finally:
        cluster.call_on_each_worker(call_with_engine, _free_generated)
    # The details are those of the median repetition.
    median = sorted(runs, key=lambda each: each.run.wall_s)[len(runs) // 2]
    run, by_device = median.run, sum(copy.nbytes for copy in median.copies)
    row = ClusterRow(
        case.work,
        count,
        tuple(1e3 * each.run.wall_s for each in runs),
        tuple(each.device_ms for each in runs),
        {step: run.phase_times(step).kernel for step in dict.fromkeys(task.step for task in run.tasks)},
        run.times.upload + run.times.download,
        by_device,
        run.exchanged_bytes - by_device,
        False,
        case.steps,
    )
    return row, result


class _PreparedCase:
    """A case with its input on the devices of its workers."""

    def __init__(self, cluster: Cluster, case: ClusterCase, chunks: int, folder: Path) -> None:
        self._cluster = cluster
        self._case = case
        pattern = find_pattern(case.pattern)
        self._params, self._program = pattern.check(case.params), pattern.require_distributed()
        self._sums: list[Any] = []
        files = {name: write_source(values, folder, name) for name, values in case.host_inputs.items()}
        lengths = compute_chunk_lengths(case.rows, (chunks,), chunks, self._program.granularity(self._params))
        halo, stop = self._program.halo(self._params), 0
        self._chunks = []
        for index, length in enumerate(lengths):
            start, stop = stop, stop + length
            before, after = min(halo, start), min(halo, case.rows - stop)
            rows, home = (start - before, stop + after), find_home(cluster, index, len(lengths))
            sources = {
                **{
                    name: self._generate(home, f"{name} {index}", made, *rows)
                    for name, made in case.divided_inputs.items()
                },
                **{name: Excerpt(BlankSource(row, dtype), *rows) for name, (row, dtype) in case.blank_inputs.items()},
                **{name: Excerpt(file, *rows) for name, file in files.items()},
            }
            self._chunks.append(Chunk(sources, case.common_inputs, index, start, stop, before, after))
        self._second_inputs = {
            name: self._second_chunks(name, made, len(lengths)) for name, made in case.second_inputs.items()
        }
        self._total = sum(cluster.client.gather(self._sums))
        self._smallest = min(lengths) * max((4 * made.row_elements for made in case.divided_inputs.values()), default=0)

    def _second_chunks(self, name: str, source: GeneratedInput, chunks: int) -> list[Chunk]:
        parts, stop = [], 0
        for index, length in enumerate(split_evenly(source.rows, chunks)):
            start, stop = stop, stop + length
            home = find_home(self._cluster, index, chunks)
            sources = {name: self._generate(home, f"{name} {index}", source, start, stop)}
            parts.append(Chunk(sources, {}, index, start, stop))
        return parts

    def _generate(self, home: str, key: str, generated_input: GeneratedInput, start: int, stop: int) -> Excerpt:
        """Generate rows on a worker's device; return the source where its Dask tasks find them."""
        values = (
            (stop - start, *generated_input.row_shape),
            generated_input.dtype,
            generated_input.bits,
            generated_input.salt + start * generated_input.row_elements,
        )
        submit = self._cluster.client.submit
        self._sums.append(submit(call_with_engine, _generate_on_engine, key, *values, workers=[home], pure=False))
        return Excerpt(GeneratedSource(key), start, stop)

    def run_checked(self) -> CaseResult:
        """Run the case; return the properties of its result."""
        stays = inspect_part if self._case.divided_inputs else free_part
        _, results = self._run(stays)
        parts = (
            [each for name in self._case.resident_outputs for each in results[name]]
            if self._case.divided_inputs
            else []
        )
        return CaseResult(
            parts=tuple(_to_part_properties(part) for part in parts),
            arrays={name: np.concatenate(results[name]) for name in self._case.gathered_outputs},
            total=self._total,
        )

    def run_timed(self) -> _TimedRun:
        """Run the case without examining its result; return the times."""
        self._cluster.call_on_each_worker(call_with_engine, _take_copies)
        run, _ = self._run(free_part)
        return _TimedRun(run, self._cluster.call_on_each_worker(call_with_engine, _take_copies))

    def _run(self, final_step: Step) -> tuple[DistributedRun, dict[str, list[Any]]]:
        case, cluster = self._case, self._cluster
        cluster.call_on_each_worker(
            call_with_engine,
            _set_min_resident_bytes,
            self._smallest // 2 if case.divided_inputs and case.resident_outputs else 2**62,
        )
        pattern = find_pattern(case.pattern)
        workload = Workload(pattern, pattern.variant(case.variant), {}, self._params)
        tasks = RunTasks(cluster, workload, self._chunks, self._second_inputs)
        try:
            start = time.perf_counter()
            plan = self._program.plan(tasks)
            outputs = {
                name: [to_named_result(part) for part in plan[name].parts]
                for name in (*case.resident_outputs, *case.gathered_outputs)
            }
            for name in case.resident_outputs:
                outputs[name] = [part.apply_step(final_step) for part in outputs[name]]
            results = iter(
                tasks.wait_for_results([part for parts in outputs.values() for part in parts], lambda progress: None)
            )
            wall_s = time.perf_counter() - start
        finally:
            tasks.close()
        run = DistributedRun(
            cluster.workers, tuple(tasks.event_log.records), tuple(tasks.event_log.lost_workers), wall_s, 0
        )
        return run, {name: [next(results) for _ in parts] for name, parts in outputs.items()}


def inspect_part(worker: WorkerContext, part: Array) -> dict[str, Array]:
    """Return the properties of a part of a result on its device, and free it."""
    engine = _require_resident_engine(worker.engine)
    facts = engine.compute_properties(part, WINDOW)
    engine.free_results()
    # float64 cannot represent a 64-bit sum, so each property is an array.
    return {name: np.array(value) for name, value in vars(facts).items()}


def free_part(worker: WorkerContext, part: Array) -> Array:
    """Free a part of a result on its device."""
    _require_resident_engine(worker.engine).free_results()
    return np.zeros(1)


def _to_part_properties(properties: Mapping[str, Any]) -> PartProperties:
    numbers = {name: int(value) for name, value in properties.items() if not value.ndim}
    return PartProperties(**numbers, head=properties["head"], tail=properties["tail"])


def _require_resident_engine(engine: Engine) -> ResidentEngine:
    assert isinstance(engine, ResidentEngine)
    return engine


def _activate_engine(engine: Engine) -> None:
    _require_resident_engine(engine).activate()


def _free_generated(engine: Engine) -> None:
    _require_resident_engine(engine).free_generated()


def _set_min_resident_bytes(engine: Engine, size: int) -> None:
    _require_resident_engine(engine).min_resident_bytes = size


def _generate_on_engine(engine: Engine, key: str, shape: tuple[int, ...], dtype: str, bits: int, first: int) -> int:
    return _require_resident_engine(engine).generate(key, shape, dtype, bits, first)


def _take_copies(engine: Engine) -> DeviceCopies:
    return _require_resident_engine(engine).take_copies()
