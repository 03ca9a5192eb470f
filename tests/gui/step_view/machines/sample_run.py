"""A scan on two workers, as it is recorded."""

from __future__ import annotations

from gpu.engines.base import Device, PhaseTimes
from gpu.messages.runs.distributed_run import DistributedRun, TaskDependency, TaskRecord, Transfer, WorkerStatus

DEVICE = Device("simulator", "a CPU", "compiled", 1024, 49152, 4)
WORKERS = tuple(WorkerStatus(str(each), f"tcp://127.0.0.1:{each}", "127.0.0.1", DEVICE) for each in (1, 2))


def make_task(name, place, worker, begin, end, taken=(), elements=None, made=4000, fetched=()):
    step = name.rpartition("-")[0].replace("_", " ")
    address = WORKERS[worker].address
    times = PhaseTimes(100.0, 250.0, 0.0)
    return TaskRecord(
        name, step, place, address, begin, end, times, (("", made),), tuple(taken), elements, transfers=tuple(fetched)
    )


SCAN = (
    make_task("chunk-0", 0, 0, 10.0, 11.0, elements=(0, 1000)),
    make_task("chunk-1", 1, 1, 10.0, 12.0, elements=(1000, 2000)),
    make_task("totals-2", 0, 0, 12.4, 12.5, [TaskDependency("chunk-0"), TaskDependency("chunk-1")], made=8,
         fetched=[Transfer(WORKERS[1].address, 12.0, 12.4)]),
    make_task("carry-3", 0, 0, 12.5, 13.0, [TaskDependency("chunk-0"), TaskDependency("totals-2")]),
    make_task("carry-4", 1, 1, 12.6, 13.4, [TaskDependency("chunk-1"), TaskDependency("totals-2")]),
)  # fmt: skip


def make_run(*tasks, lost=(), wall_s=3.4):
    return DistributedRun(WORKERS, tasks or SCAN, tuple(lost), wall_s, 8000)
