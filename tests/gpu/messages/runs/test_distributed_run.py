"""Figures of a run over several devices, derived from its task records."""

from __future__ import annotations

from gpu.engines.base import Device, PhaseTimes
from gpu.messages.runs.distributed_run import DistributedRun, LostWorker, TaskRecord, WorkerStatus

DEVICE = Device("simulator", "a CPU", "compiled", 1024, 49152, 4)


def task(name, worker, begin, end, kernel=0.0):
    times = PhaseTimes(kernel=kernel)
    return TaskRecord(f"{name}-{begin}", name, 0, worker, begin, end, times, (("", 4),), ())


def run(*tasks, wall_s=4.0, lost=()):
    workers = tuple(WorkerStatus(each, each, "here", DEVICE) for each in ("a", "b", "c"))
    return DistributedRun(workers, tasks, lost, wall_s, 0)


def test_mean_busy_workers_is_task_time_divided_by_run_time():
    done = run(task("half", "a", 10.0, 12.0), task("half", "b", 10.0, 13.0), task("sum", "a", 13.0, 14.0))
    assert (done.busy_s, done.mean_busy_workers) == (6.0, 1.5)
    scaling = done.data()["scaling"]
    assert scaling == {"busy_workers": 1.5, "ideal": 3, "busy_s": 6.0, "wall_s": 4.0}
    assert run(lost=(LostWorker("b", 1),)).concurrent_workers == 2
    assert run(wall_s=0.0).mean_busy_workers == 0.0


def test_phase_times_are_those_of_the_busiest_worker():
    tasks = task("move", "a", 0, 1, 5.0), task("look", "a", 1, 2, 90.0), task("move", "b", 0, 1, 7.0)
    assert run(*tasks).times.kernel == 95.0
    assert run(*tasks).phase_times("move").kernel == 7.0
    assert run().times == PhaseTimes()
