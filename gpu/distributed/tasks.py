"""A distributed program's tasks, handed to Dask as they are named; what is told of them while they run."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any
from weakref import WeakSet

import numpy as np

from gpu.declaration.distributed import Step
from gpu.declaration.pattern import Progress
from gpu.distributed.chunks import Chunk, ChunkInParts
from gpu.distributed.cluster import Cluster
from gpu.distributed.resident import Resident
from gpu.distributed.watch import Watch
from gpu.distributed.worker import TaskCall, carry_out, pick
from gpu.engines.base import Array
from gpu.errors import EngineUnavailableError, KernelError, LockstepError
from gpu.messages.distributed import LostWorker, Taken, TaskRecord
from gpu.run.drive import Tell

_LOOK_S = 0.2
_NOBODY_S = 30.0
_LATE_S = 2.0
_UNMOVED_S = 20.0
"""Seconds that Dask has to bring something to a worker after it has failed, while no worker does anything."""


class Named:
    """What a task makes, under what name, after how many tasks; Dask has the task if somebody takes it.

    Parameters
    ----------
    tasks : RunTasks
    submit : callable
        Takes the task down for Dask, with a step that is to follow at once, if any; returns what stands for the result.
    taken : Taken or None
        None for a chunk, which no task makes.
    depth : int
    home : str
        The address of the worker that best does it; "" for a chunk.
    elsewhere : set of str
        The parts of what the task makes that other workers take, as far as is known.
    whole : Named or None
        What this is one of several things of.
    """

    def __init__(
        self,
        tasks: RunTasks,
        submit: Callable[[Then | None], Any],
        taken: Taken | None,
        depth: int,
        home: str = "",
        elsewhere: set[str] | None = None,
        whole: Named | None = None,
    ) -> None:
        self._tasks = tasks
        self._submit: Callable[[Then | None], Any] | None = submit
        self._value: Any = None
        self._home = home
        self._elsewhere: set[str] = set() if elsewhere is None else elsewhere
        self._whole = whole
        self._kept = False
        self.taken = taken
        self.depth = depth

    @property
    def value(self) -> Any:
        """What stands for it in a task of Dask's that takes it."""
        if self._submit is not None:
            submit, self._submit = self._submit, None
            self._value = submit(None)
        return self._value

    def value_at(self, home: str) -> Any:
        """What stands for it where it is taken by who has what it is one of: to pick it is no task of its own there.

        Elsewhere it is one, so that nothing else goes along.
        """
        if self.taken is not None and home != self._home:
            self._elsewhere.add(self.taken.part)
        elif self.taken is not None and self._whole is not None:
            return picked(self._whole.value, self.taken.part)
        return self.value

    @property
    def is_kept(self) -> bool:
        """Whether it stays on a worker for tasks that are named later."""
        return self._kept

    def goes_elsewhere(self) -> None:
        """Say that other workers take it, whatever is named by now."""
        if self.taken is not None:
            self._elsewhere.add(self.taken.part)

    def keep(self, found: Mapping[str, Any]) -> None:
        """Have what Dask has made of it, by keys, stand for it from now on."""
        if not self._kept:
            self._value, self._whole, self._kept = found[self.value.key], None, True

    def followed(self, step: Step, *taken: Any) -> Named:
        """Have a step take this where it is made, in the same task; what it returns has this name from now on.

        Nobody has what was made before then. Of several things that a task makes one can be followed.
        """
        assert self.taken is not None, "no task makes a chunk"
        (self._whole or self).lead_to(Then(step, taken, self.taken.part))
        return self

    def lead_to(self, then: Then) -> None:
        """Take down what follows this, or one of the things that it is."""
        submit = self._submit
        assert submit is not None, "somebody has it already"
        self._submit = lambda nothing: submit(then)

    def __getitem__(self, name: str) -> Named:
        assert self.taken is not None, "a chunk is one thing"
        key = f"{self._tasks.run}-{self.taken.task}-{name}"

        def submit(then: Then | None) -> Any:
            return self._tasks.take_down(key, picked(self.value, name, key), self.depth)

        taken = Taken(self.taken.task, name)
        return Named(self._tasks, submit, taken, self.depth, self._home, self._elsewhere, self)


@dataclass(frozen=True)
class Then:
    """A step that takes what another has just made, or one of several things, `part`, and more."""

    step: Step
    taken: tuple[Any, ...]
    part: str = ""


@dataclass
class News:
    """What workers and scheduler have told of a run so far; written in Dask's thread, read in ours.

    `results` are small ones that were waited for, by the names of their tasks.
    `unmoved` says why something could not be brought from one worker to another, `unmoved_since` since when no task has
    ended after that which had not before.
    """

    records: list[TaskRecord] = field(default_factory=list)
    lost: list[LostWorker] = field(default_factory=list)
    results: dict[str, Array] = field(default_factory=dict)
    why: str = ""
    unmoved: str = ""
    unmoved_since: float | None = None
    changed: threading.Event = field(default_factory=threading.Event)

    @property
    def done(self) -> set[str]:
        """The names of tasks that ended."""
        return {record.task for record in tuple(self.records)}

    def begin_anew(self) -> None:
        """Forget what was told."""
        self.records.clear()
        self.lost.clear()
        self.results.clear()
        self.why, self.unmoved_since = "", None

    def of_run(self, told: Mapping[str, Any]) -> None:
        """Take what a worker tells of a task."""
        if "lost" in told:
            self.why = str(told["why"])
        elif "unmoved" in told:
            self.unmoved = str(told["unmoved"])
            self.unmoved_since = self.unmoved_since or time.monotonic()
        else:
            record = TaskRecord.of_data(told["record"])
            if (result := told["result"]) is not None:
                dtype, shape, data = result
                self.results[record.task] = np.ndarray(shape, dtype, data).copy()
            if record.task not in self.done:
                self.unmoved_since = None
            self.records.append(record)
        self.changed.set()

    def of_cluster(self, told: Mapping[str, Any]) -> None:
        """Take what the scheduler tells of its workers."""
        if told.get("action") == "remove-worker" and not told.get("expected"):
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
    chunks : sequence of Chunk or ChunkInParts
    beside : mapping of str to sequence of Chunk
        Of inputs that are divided by themselves.
    accept : bool
        Whether each chunk is still to be looked at for what the pattern does not take.

    Attributes
    ----------
    count : int
        How many tasks Dask has so far; what is named and taken by nobody is none.
    """

    def __init__(
        self,
        cluster: Cluster,
        pattern: str,
        variant: str,
        params: Mapping[str, Any],
        sources: Mapping[str, str],
        chunks: Sequence[Chunk | ChunkInParts],
        beside: Mapping[str, Sequence[Chunk]],
        accept: bool = False,
    ) -> None:
        self.cluster = cluster
        self.run = f"lockstep-{secrets.token_hex(8)}"
        self.news = News()
        self._futures: WeakSet[Any] = WeakSet()
        self._graph: dict[str, Any] = {}
        self._priorities: dict[str, int] = {}
        self._homes: dict[str, list[str]] = {}
        self._wanted: set[str] = set()
        self.count = 0
        self._named = 0
        self.pattern = pattern
        self.variant = variant
        self.params = dict(params)
        self._accept = accept
        self._call = (pattern, variant, self.params, dict(sources))
        self.chunks = tuple(self._chunk(each) for each in chunks)
        self.beside = {name: tuple(map(self._chunk, each)) for name, each in beside.items()}
        self.begun = time.perf_counter()
        cluster.told.listen(self.run, self.news.of_run, self.news.of_cluster)
        self._watch = Watch(cluster.client)

    def go_on(self, variant: str, params: Mapping[str, Any], sources: Mapping[str, str]) -> None:
        """Go on after a `wait` with other settings; what is told begins anew."""
        self.news.begin_anew()
        self.count = 0
        for each in (self._graph, self._priorities, self._homes):
            each.clear()
        self.variant, self.params = variant, dict(params)
        self._call = (self.pattern, variant, self.params, dict(sources))

    @property
    def shares(self) -> tuple[tuple[int, ...], ...]:
        """The places of each worker's chunks."""
        count = len(self.chunks)
        by_home = groupby(range(count), key=lambda place: home_of(self.cluster, place, count))
        return tuple(tuple(places) for _, places in by_home)

    def divide(self, chunks: Sequence[Chunk]) -> None:
        """Take other chunks, for the tasks that are named from now on."""
        self.chunks = tuple(map(self._chunk, chunks))

    def _chunk(self, chunk: Chunk | ChunkInParts) -> Named:
        return Named(self, lambda then: chunk, None, 0)

    def make(self, step: Step, *taken: Any, place: int = 0) -> Named:
        """Name a task; Dask has it as soon as somebody takes what it makes, and begins when what it takes is there."""
        name = f"{step.__name__.strip('_')}-{self._named}"
        self._named += 1
        depth = 1 + max((each.depth for each in _named(taken)), default=0)
        home = home_of(self.cluster, min(place, len(self.chunks) - 1), len(self.chunks))
        elsewhere: set[str] = set()

        def submit(then: Then | None) -> Any:
            self.count += 1
            more = then.taken if then is not None else ()
            following = (then.step, len(more), then.part) if then is not None else None
            every = (*taken, *more)
            call = TaskCall(
                self.run,
                name,
                step,
                *self._call,
                place,
                _taken(every),
                self._accept,
                following,
                elsewhere,
                name in self._wanted,
            )
            # What uses something up comes before what reads the next chunk.
            key = f"{self.run}-{name}"
            return self.take_down(key, task_of(key, carry_out, call, *(_at(home, each) for each in every)), depth, home)

        return Named(self, submit, Taken(name), depth, home, elsewhere)

    def wait(self, made: Sequence[Named], tell: Tell, kept: Sequence[Named] = ()) -> list[Any]:
        """Wait for things, telling how far the run is, and return them as arrays.

        What is `kept` stays where it is, for tasks that are named later; then nothing else does.

        Raises
        ------
        LockstepError
            That of a task, as it is; EngineUnavailableError where the scheduler, or every worker, is gone, or what one
            worker has made does not come to another.
        """
        import distributed

        self._wanted = {each.taken.task for each in made if each.taken is not None}
        futures = self._submitted([each.value.key for each in (*made, *(each for each in kept if not each.is_kept))])
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
            self._refuse_unmoved()
            alone_since = self._alone_since(alone_since)
        told = self._tell(tell, told)
        try:
            found = self._told_of(made)
            if found is None:
                # Workers of this machine are asked themselves.
                gathered = self.cluster.client.gather(futures[: len(made)], direct=bool(self.cluster.shared))
                found = [_array(each) for each in gathered]
            self._hear_of_all()
            self._tell(tell, told)
            if kept:
                of_keys = {each.key: each for each in futures}
                for each in kept:
                    each.keep(of_keys)
                self.keep_only(kept)
            return found
        except LockstepError:
            raise
        except distributed.scheduler.KilledWorker as error:
            raise KernelError(
                self.news.why or "A task ended every worker that tried it.",
                advice="Take smaller chunks, or see what `python main.py devices` says of the workers.",
                detail=str(error),
            ) from None
        except (CancelledError, OSError) as error:
            if isinstance(error, OSError) and self.cluster.client.status == "running":
                raise EngineUnavailableError(f"A worker cannot go on: {error}.") from error
            raise EngineUnavailableError(
                "The scheduler is gone.", advice="Start it again, with its workers; nothing was written."
            ) from error

    def _told_of(self, made: Sequence[Named]) -> list[Any] | None:
        """Return what was waited for, where workers have told all of it: to ask them takes as long as a task."""
        told = self.news.results
        names = ["" if each.taken is None or each.taken.part else each.taken.task for each in made]
        return [told[name] for name in names] if told.keys() >= {*names} else None

    def keep_only(self, kept: Sequence[Named]) -> None:
        """Have workers forget, and leave, all but what stays for tasks that are named later."""
        stays = {each.value.key for each in kept if each.is_kept}
        for future in list(self._futures):
            if future.key not in stays:
                future.release()
                self._futures.discard(future)

    def _hear_of_all(self) -> None:
        """Wait until workers have told of the last tasks too: a result may be here before what is told of it."""
        end = time.monotonic() + _LATE_S
        while len(self.news.done) < self.count and (left := end - time.monotonic()) > 0:
            self.news.changed.wait(left)
            self.news.changed.clear()

    def take_down(self, key: str, task: Any, priority: int, home: str = "") -> Any:
        """Take down a task of Dask's, which best runs on the worker at `home`; return what stands for its result."""
        from dask._task_spec import TaskRef

        self._graph[key] = task
        self._priorities[key] = priority
        if home:
            self._homes[key] = [home]
        return TaskRef(key)

    def _submitted(self, keys: list[str]) -> list[Any]:
        """Hand all tasks to Dask at once, which takes it as long for dozens as for one; return futures.

        We hold nothing but the last ones: the scheduler keeps what they need for as long as they do.
        """
        from dask.highlevelgraph import HighLevelGraph, MaterializedLayer

        annotations = {"priority": self._priorities.get, "workers": self._homes.get, "allow_other_workers": True}
        layer = MaterializedLayer(self._graph, annotations)
        futures: list[Any] = self.cluster.client.get(HighLevelGraph({self.run: layer}, {}), keys, sync=False)
        self._futures.update(futures)
        return futures

    def close(self) -> None:
        """Keep nothing of the run, and hear no more of it."""
        self._watch.close()
        # Dask's own tasks still refer to some, in circles that Python finds late.
        for future in list(self._futures):
            future.release()
        self.cluster.told.leave(self.run)

    def _tell(self, tell: Tell, told: int) -> int:
        """Tell how far the run is and whom it lost since; return of how many losses was told."""
        for each in self.news.lost[told:]:
            tell(Progress(None, f"worker {each.address} is gone; others do its {each.again} tasks again"))
        done = min(len(self.news.done), self.count)  # of what was stopped somebody may tell late
        tell(Progress(done / max(self.count, 1), f"{done} of {self.count} tasks"))
        return len(self.news.lost)

    def _refuse_unmoved(self) -> None:
        """Raise EngineUnavailableError where all wait for what did not come from one worker to another."""
        since = self.news.unmoved_since
        if since is not None and time.monotonic() - since > _UNMOVED_S and not self._executing:
            raise EngineUnavailableError(
                f"What one worker has made does not come to another: {self.news.unmoved.rstrip('.')}.",
                advice="Take other workers, or one.",
            )

    @property
    def _executing(self) -> bool:
        """Whether a worker is at a task, as they told last."""
        workers = self.cluster.client.scheduler_info(n_workers=-1)["workers"].values()
        return any(each["metrics"].get("task_counts", {}).get("executing") for each in workers)

    def _alone_since(self, since: float | None) -> float | None:
        """Return since when there is no worker; EngineUnavailableError where none comes back."""
        if not self.news.lost or self.cluster.client.scheduler_info(n_workers=-1)["workers"]:
            return None
        now = time.monotonic()
        if since is not None and now - since > _NOBODY_S:
            raise EngineUnavailableError("No worker is left.", advice="Start workers again.")
        return since or now


def home_of(cluster: Cluster, place: int, chunks: int) -> str:
    """Return the address of the worker that has a chunk, of so many."""
    return cluster.workers[place * len(cluster.workers) // chunks].address


def _array(value: Any) -> Any:
    return value.array() if isinstance(value, Resident) else value


def _at(home: str, taken: Any) -> Any:
    """Return what a task of Dask's at a worker is given for something that a step takes."""
    from dask._task_spec import List

    if isinstance(taken, Named):
        return taken.value_at(home)
    return List(*(_at(home, each) for each in taken)) if isinstance(taken, list | tuple) else taken


def task_of(key: str | None, function: Callable[..., Any], *values: Any) -> Any:
    """Return a task of Dask's; without a key it is part of another one."""
    from dask._task_spec import Task

    return Task(key, function, *values)


def picked(made: Any, name: str, key: str | None = None) -> Any:
    """Return the task that picks one of several things, by itself or as part of another one."""
    return task_of(key, pick, made, name)


def _taken(taken: Any) -> tuple[Taken, ...]:
    return tuple(each.taken for each in _named(taken) if each.taken is not None)


def _named(taken: Any) -> list[Named]:
    """Return all that tasks make of what a step takes."""
    if isinstance(taken, Named):
        return [taken]
    return [name for each in taken for name in _named(each)] if isinstance(taken, list | tuple) else []
