"""Record of a run on several devices: its tasks with their workers, times, results and dependencies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from gpu.declaration.pattern import Progress
from gpu.engines.base import Device, PhaseTimes


@dataclass(frozen=True)
class WorkerStatus:
    """A worker of a cluster.

    Parameters
    ----------
    name, address : str
        Name in Dask, and the address at which it listens.
    host : str
        Its machine.
    device : Device
        The engine's device.
    """

    name: str
    address: str
    host: str
    device: Device


@dataclass(frozen=True)
class TaskDependency:
    """Dependency on another task's result, or on the part of it with this name."""

    task: str
    part: str = ""


@dataclass(frozen=True)
class Transfer:
    """Transfer of a dependency from another worker: its address, begin and end."""

    source: str
    begin: float
    end: float


@dataclass(frozen=True)
class TaskRecord:
    """Record of one execution of a task; a task runs again if its result was lost with its worker.

    Parameters
    ----------
    task, step : str
        The task's name, unique in its run, and the step that it executes.
    worker : str
        The address of the worker.
    begin, end : float
        Seconds since 1970, by the clock of the worker's machine.
    times : PhaseTimes
        Milliseconds that its engine used in each phase.
    result_parts : tuple of (str, int)
        Names and bytes of the parts of its result; the name is "" if there is only one.
    dependencies : tuple of TaskDependency
        Its dependencies in order, without chunks of the input.
    elements : tuple of (int, int) or None
        First and one past the last element, or row, of the chunk that it read; None if it read none.
    memory_bytes : int
        The worker's memory at the end: the task's input and result, and results kept for other tasks.
    transfers : tuple of Transfer
        Transfers before it began; device-to-device copies are not included.
    """

    task: str
    step: str
    chunk_index: int
    worker: str
    begin: float
    end: float
    times: PhaseTimes
    result_parts: tuple[tuple[str, int], ...]
    dependencies: tuple[TaskDependency, ...]
    elements: tuple[int, int] | None = None
    memory_bytes: int = 0
    transfers: tuple[Transfer, ...] = ()

    def data(self) -> dict[str, Any]:
        """Return the record as basic types that Dask can transport."""
        return asdict(self)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> TaskRecord:
        """Create a record from the return value of `data`."""
        elements = data["elements"]
        changed = {
            "times": PhaseTimes(**data["times"]),
            "result_parts": tuple((name, size) for name, size in data["result_parts"]),
            "dependencies": tuple(TaskDependency(**each) for each in data["dependencies"]),
            "transfers": tuple(Transfer(**each) for each in data["transfers"]),
            "elements": None if elements is None else (elements[0], elements[1]),
        }
        return cls(**{**data, **changed})


@dataclass(frozen=True)
class LostWorker:
    """A worker that ended during a run: its address, and how many tasks were repeated because of it."""

    address: str
    again: int


def is_loss(progress: Progress) -> bool:
    """Return whether a progress message reports the loss of a worker."""
    return progress.fraction is None and " was lost" in progress.message


@dataclass(frozen=True)
class DistributedRun:
    """Record of a run on several devices.

    Parameters
    ----------
    workers : tuple of WorkerStatus
        Workers at the beginning, and those that replaced lost ones.
    tasks : tuple of TaskRecord
        In the order in which they ended.
    wall_s : float
        Seconds from the submission of the first task to the arrival of the last result.
    gathered_bytes : int
        Bytes transferred to the client.
    """

    workers: tuple[WorkerStatus, ...]
    tasks: tuple[TaskRecord, ...]
    lost_workers: tuple[LostWorker, ...]
    wall_s: float
    gathered_bytes: int

    @property
    def exchanged_bytes(self) -> int:
        """Bytes transferred between workers: each dependency once per worker that did not compute it."""
        last = {record.task: record for record in self.tasks}
        moved = {
            (taken, record.worker)
            for record in self.tasks
            for taken in record.dependencies
            if taken.task in last and last[taken.task].worker != record.worker
        }
        return sum(dict(last[taken.task].result_parts)[taken.part] for taken, _ in moved)

    @property
    def busy_s(self) -> float:
        """Total duration of all tasks in seconds.

        One worker alone may need less time: workers that share processors, a disk or memory bandwidth slow each other
        down.
        """
        return sum(record.end - record.begin for record in self.tasks)

    @property
    def mean_busy_workers(self) -> float:
        """Average number of busy workers: `busy_s` / `wall_s`, at most the number of workers.
        It shows the time lost by waiting. It is an upper bound of the speedup, which is the wall time with one worker
        divided by this run's.
        """
        return self.busy_s / self.wall_s if self.wall_s > 0 else 0.0

    @property
    def concurrent_workers(self) -> int:
        """Number of workers at a time."""
        return len(self.workers) - len(
            {worker.address for worker in self.workers} & {lost_worker.address for lost_worker in self.lost_workers}
        )

    @property
    def times(self) -> PhaseTimes:
        """Milliseconds in each phase, of the worker with the longest busy time."""
        return self.phase_times()

    def phase_times(self, *steps: str) -> PhaseTimes:
        """Return `times` restricted to these steps; with none, of all steps."""
        by_worker: dict[str, PhaseTimes] = defaultdict(PhaseTimes)
        for record in self.tasks:
            if not steps or record.step in steps:
                by_worker[record.worker] += record.times
        return max(by_worker.values(), key=lambda each: each.upload + each.kernel + each.download, default=PhaseTimes())

    def data(self) -> dict[str, Any]:
        """Return the record as JSON types."""
        task_counts: dict[str, int] = defaultdict(int)
        for record in self.tasks:
            task_counts[record.worker] += 1
        return {
            "workers": [
                {
                    "name": worker.name,
                    "address": worker.address,
                    "host": worker.host,
                    "engine": worker.device.engine,
                    "device": worker.device.name,
                    "tasks": task_counts[worker.address],
                }
                for worker in self.workers
            ],
            "scaling": {
                "busy_workers": self.mean_busy_workers,
                "ideal": self.concurrent_workers,
                "busy_s": self.busy_s,
                "wall_s": self.wall_s,
            },
            "exchanged_bytes": self.exchanged_bytes,
            "gathered_bytes": self.gathered_bytes,
            "lost_workers": [asdict(lost_worker) for lost_worker in self.lost_workers],
        }
