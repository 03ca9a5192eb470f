"""A distributed program's tasks, handed to Dask as they are named; what is told of them while they run."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from typing import Any

from gpu.declaration.distributed import Step
from gpu.declaration.pattern import Progress
from gpu.distributed.cluster import Cluster
from gpu.distributed.resident import Resident
from gpu.distributed.worker import Chunk, TaskCall, carry_out, pick
from gpu.errors import EngineUnavailableError, KernelError, LockstepError
from gpu.messages.distributed import LostWorker, Taken, TaskRecord
from gpu.run.drive import Tell

_LOOK_S = 0.2
_NOBODY_S = 30.0


@dataclass(frozen=True)
class Named:
    """What a task makes: who will have it, under what name; of a chunk, where it is read."""

    tasks: RunTasks
    value: Any
    taken: Taken | None = None

    def __getitem__(self, name: str) -> Named:
        assert self.taken is not None, "a chunk is one thing"
        part = Taken(self.taken.task, name)
        future = self.tasks.cluster.client.submit(
            pick, self.value, name, key=f"{self.tasks.topic}-{self.taken.task}-{name}", pure=False
        )
        return Named(self.tasks, future, part)


@dataclass
class News:
    """What workers and scheduler have told of a run so far; written in Dask's thread, read in ours."""

    records: list[TaskRecord] = field(default_factory=list)
    lost: list[LostWorker] = field(default_factory=list)
    why: str = ""
    changed: threading.Event = field(default_factory=threading.Event)

    def of_run(self, event: tuple[float, Any]) -> None:
        """Take what a worker tells of a task."""
        told = event[1]
        if "lost" in told:
            self.why = str(told["why"])
        else:
            self.records.append(TaskRecord.of_data(told))
        self.changed.set()

    def of_cluster(self, event: tuple[float, Any]) -> None:
        """Take what the scheduler tells of its workers."""
        told = event[1]
        if isinstance(told, Mapping) and told.get("action") == "remove-worker" and not told.get("expected"):
            again = len(told["processing-tasks"]) + len(told["lost-computed-tasks"])
            self.lost.append(LostWorker(told["worker"], again))
            self.changed.set()


class RunTasks:
    """The tasks of one run.

    Parameters
    ----------
    cluster : Cluster
    pattern, variant : str
    params : mapping
    sources : mapping of str to str
        Texts for kernel files, where they are edited.
    chunks : sequence of Chunk
    beside : mapping of str to sequence of Chunk
        Of inputs that are divided by themselves.
    """

    def __init__(
        self,
        cluster: Cluster,
        pattern: str,
        variant: str,
        params: Mapping[str, Any],
        sources: Mapping[str, str],
        chunks: Sequence[Chunk],
        beside: Mapping[str, Sequence[Chunk]],
    ) -> None:
        self.cluster = cluster
        self.topic = f"lockstep-{secrets.token_hex(8)}"
        self.news = News()
        self.count = 0
        self._call = (pattern, variant, dict(params), dict(sources))
        self.chunks = tuple(Named(self, chunk) for chunk in chunks)
        self.beside = {name: tuple(Named(self, chunk) for chunk in each) for name, each in beside.items()}
        self.begun = time.perf_counter()
        cluster.client.subscribe_topic(self.topic, self.news.of_run)
        cluster.client.subscribe_topic("all", self.news.of_cluster)

    def make(self, step: Step, *taken: Any, place: int = 0) -> Named:
        """Hand a task to Dask; it begins as soon as what it takes is there."""
        name = f"{step.__name__.strip('_')}-{self.count}"
        self.count += 1
        call = TaskCall(self.topic, name, step, *self._call, place, tuple(_taken(taken)))
        workers = self.cluster.workers
        home = workers[min(place, len(self.chunks) - 1) * len(workers) // len(self.chunks)].address
        future = self.cluster.client.submit(
            carry_out,
            call,
            *(_values(each) for each in taken),
            key=f"{self.topic}-{name}",
            workers=[home],
            allow_other_workers=True,
            pure=False,
        )
        return Named(self, future, Taken(name))

    def wait(self, made: Sequence[Named], tell: Tell) -> list[Any]:
        """Wait for things, telling how far the run is, and return them as arrays.

        Raises
        ------
        LockstepError
            That of a task, as it is; EngineUnavailableError where the scheduler, or every worker, is gone.
        """
        import distributed

        futures = [each.value for each in made]
        told, alone_since = 0, None
        while True:
            try:
                with self.cluster.client.as_current():
                    distributed.wait(futures, timeout=_LOOK_S)
                break
            except TimeoutError:
                pass
            except CancelledError:
                break
            if self.cluster.client.status not in ("running", "connecting"):
                break
            told = self._tell(tell, told)
            alone_since = self._alone_since(alone_since)
        self._tell(tell, told)
        try:
            return [_array(each) for each in self.cluster.client.gather(futures)]
        except LockstepError:
            raise
        except distributed.scheduler.KilledWorker as error:
            raise KernelError(
                self.news.why or "A task ended every worker that tried it.",
                advice="Take smaller chunks, or see what `python main.py devices` says of the workers.",
                detail=str(error),
            ) from None
        except (CancelledError, OSError) as error:
            raise EngineUnavailableError(
                "The scheduler is gone.", advice="Start it again, with its workers; nothing was written."
            ) from error

    def close(self) -> None:
        """Hear no more of the run."""
        for topic in (self.topic, "all"):
            self.cluster.client.unsubscribe_topic(topic)

    def _tell(self, tell: Tell, told: int) -> int:
        """Tell how far the run is and whom it lost since; return of how many losses was told."""
        for each in self.news.lost[told:]:
            tell(Progress(None, f"worker {each.address} is gone; others do its {each.again} tasks again"))
        done = len({record.task for record in self.news.records})
        tell(Progress(done / max(self.count, 1), f"{done} of {self.count} tasks"))
        return len(self.news.lost)

    def _alone_since(self, since: float | None) -> float | None:
        """Return since when there is no worker; EngineUnavailableError where none comes back."""
        if not self.news.lost or self.cluster.client.scheduler_info(n_workers=-1)["workers"]:
            return None
        now = time.monotonic()
        if since is not None and now - since > _NOBODY_S:
            raise EngineUnavailableError("No worker is left.", advice="Start workers again.")
        return since or now


def _array(value: Any) -> Any:
    return value.array() if isinstance(value, Resident) else value


def _values(taken: Any) -> Any:
    """Return what Dask is given for something that a step takes."""
    if isinstance(taken, Named):
        return taken.value
    return [_values(each) for each in taken] if isinstance(taken, list | tuple) else taken


def _taken(taken: Any) -> list[Taken]:
    if isinstance(taken, Named):
        return [taken.taken] if taken.taken is not None else []
    return [name for each in taken for name in _taken(each)] if isinstance(taken, list | tuple) else []
