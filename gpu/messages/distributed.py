"""What a run over several devices did: its tasks, which worker each ran on and when, and what was made from what."""

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
        As Dask calls it, and where it listens.
    host : str
        The machine that it runs on.
    device : Device
        What its engine runs on.
    """

    name: str
    address: str
    host: str
    device: Device


@dataclass(frozen=True)
class Taken:
    """What a task took: what another task made, or of several things that it made the one of that name."""

    task: str
    part: str = ""


@dataclass(frozen=True)
class Fetch:
    """That a task's worker brought something from another: that one's address, and from when to when."""

    source: str
    begin: float
    end: float


@dataclass(frozen=True)
class TaskRecord:
    """One time that a task ran; one whose result was lost with its worker runs again.

    Parameters
    ----------
    task, step : str
        The task's own name in its run, and what it does.
    place : int
        Which chunk it belongs to.
    worker : str
        The address of the worker.
    begin, end : float
        Seconds since 1970, by the clock of the worker's machine.
    times : PhaseTimes
        What of that its engine spent, in milliseconds.
    made : tuple of (str, int)
        Names and bytes of what it made; the name is "" where that is one thing.
    taken : tuple of Taken
        In order; the chunks of the input are not among them.
    elements : tuple of (int, int) or None
        The first element, or row, of the chunk that it read, and the one behind its last; None where it read none.
    held_bytes : int
        What the worker had in memory when it ended: what it read, what it made, and what it keeps for other tasks.
    fetched : tuple of Fetch
        How what it took of other workers came, before it began; not what it copied from device to device itself.
    """

    task: str
    step: str
    place: int
    worker: str
    begin: float
    end: float
    times: PhaseTimes
    made: tuple[tuple[str, int], ...]
    taken: tuple[Taken, ...]
    elements: tuple[int, int] | None = None
    held_bytes: int = 0
    fetched: tuple[Fetch, ...] = ()

    def data(self) -> dict[str, Any]:
        """Return it as what any transport takes."""
        return asdict(self)

    @classmethod
    def of_data(cls, data: Mapping[str, Any]) -> TaskRecord:
        """Undo `data`."""
        elements = data["elements"]
        changed = {
            "times": PhaseTimes(**data["times"]),
            "made": tuple((name, size) for name, size in data["made"]),
            "taken": tuple(Taken(**each) for each in data["taken"]),
            "fetched": tuple(Fetch(**each) for each in data["fetched"]),
            "elements": None if elements is None else (elements[0], elements[1]),
        }
        return cls(**{**data, **changed})


@dataclass(frozen=True)
class LostWorker:
    """A worker that ended in the middle of a run: its address, and how many tasks had to be done again for it."""

    address: str
    again: int


def is_loss(progress: Progress) -> bool:
    """Whether what a run tells is that it has lost a worker."""
    return progress.fraction is None and "gone" in progress.message


@dataclass(frozen=True)
class DistributedRun:
    """What a run over several devices did.

    Parameters
    ----------
    workers : tuple of WorkerStatus
        Those that there were when it began, and those that came for lost ones.
    tasks : tuple of TaskRecord
        As they ended.
    lost : tuple of LostWorker
    wall_s : float
        Seconds from the first task's submission until the last one's result was there.
    gathered_bytes : int
        What was brought to who asked for the run.
    """

    workers: tuple[WorkerStatus, ...]
    tasks: tuple[TaskRecord, ...]
    lost: tuple[LostWorker, ...]
    wall_s: float
    gathered_bytes: int

    @property
    def exchanged_bytes(self) -> int:
        """Bytes that workers took of other workers: what a task takes, once on each worker that had not made it."""
        last = {record.task: record for record in self.tasks}
        moved = {
            (taken, record.worker)
            for record in self.tasks
            for taken in record.taken
            if taken.task in last and last[taken.task].worker != record.worker
        }
        return sum(dict(last[taken.task].made)[taken.part] for taken, _ in moved)

    @property
    def busy_s(self) -> float:
        """Seconds that all tasks took, added up.

        One worker alone would take as long only if none kept another waiting: workers that share processors, a disk or
        memory's bandwidth take longer for a task than one alone.
        """
        return sum(record.end - record.begin for record in self.tasks)

    @property
    def scaling(self) -> float:
        """How many workers were busy on the average while it ran: `busy_s` over `wall_s`, at most as many as there are.

        It says what was lost by waiting for others. It is no speed-up, only the most that one can be: that is the wall
        time of a run with one worker over that of this one.
        """
        return self.busy_s / self.wall_s if self.wall_s > 0 else 0.0

    @property
    def ideal(self) -> int:
        """How many workers there were at a time."""
        return len(self.workers) - len({each.address for each in self.workers} & {each.address for each in self.lost})

    @property
    def times(self) -> PhaseTimes:
        """Milliseconds in each phase, of the worker that was busy with its engine for longest."""
        return self.times_of()

    def times_of(self, *steps: str) -> PhaseTimes:
        """Return the same for tasks of these steps alone; without any, for all."""
        of_worker: dict[str, PhaseTimes] = defaultdict(PhaseTimes)
        for record in self.tasks:
            if not steps or record.step in steps:
                of_worker[record.worker] += record.times
        return max(of_worker.values(), key=lambda each: each.upload + each.kernel + each.download, default=PhaseTimes())

    def data(self) -> dict[str, Any]:
        """Return what JSON takes of it."""
        tasks_of: dict[str, int] = defaultdict(int)
        for record in self.tasks:
            tasks_of[record.worker] += 1
        return {
            "workers": [
                {
                    "name": each.name,
                    "address": each.address,
                    "host": each.host,
                    "engine": each.device.engine,
                    "device": each.device.name,
                    "tasks": tasks_of[each.address],
                }
                for each in self.workers
            ],
            "scaling": {
                "busy_workers": self.scaling,
                "ideal": self.ideal,
                "busy_s": self.busy_s,
                "wall_s": self.wall_s,
            },
            "exchanged_bytes": self.exchanged_bytes,
            "gathered_bytes": self.gathered_bytes,
            "lost_workers": [asdict(each) for each in self.lost],
        }
