"""Dask tasks of a distributed program: their graph, submission and results, and the events of their run."""

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

_POLL_S = 0.2
_NO_WORKER_S = 30.0
_LATE_EVENTS_S = 2.0
_TRANSFER_S = 20.0
"""Seconds in which Dask has to complete a transfer that failed, while no worker executes a task."""


class Named:
    """Result of a task, by name; Dask receives the task only if its result is used.

    Parameters
    ----------
    tasks : RunTasks
    submit : callable
        Adds the task to Dask's graph, with a step to run right after it, if any; returns a reference to the result.
    taken : Taken or None
        None for a chunk, which is not computed by a task.
    depth : int
    Number of tasks on the longest path to this one.
        The address of the preferred worker; "" for a chunk.
    elsewhere : set of str
        Known parts of the task's result that other workers use.
    whole : Named or None
        The result of which this is a part.
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
        """Reference to the result for a Dask task that uses it."""
        if self._submit is not None:
            submit, self._submit = self._submit, None
            self._value = submit(None)
        return self._value

    def value_at(self, home: str) -> Any:
        """Reference to the result for a Dask task on the worker at `home`.

        On the worker that has the whole result, the task that uses the part also picks it. For another worker, picking
        is a task of its own, so that only the part is transferred.
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
        """Mark the result as used by other workers, whatever tasks are named so far."""
        if self.taken is not None:
            self._elsewhere.add(self.taken.part)

    def keep(self, found: Mapping[str, Any]) -> None:
        """Refer to the future with this result from now on."""
        if not self._kept:
            self._value, self._whole, self._kept = found[self.value.key], None, True

    def followed(self, step: Step, *taken: Any) -> Named:
        """Apply a step to this result in the same task; its return value then has this name.

        The earlier value is not available to other tasks. Only one part of a task's result can have a following step.
        """
        assert self.taken is not None, "a chunk is not the result of a task"
        (self._whole or self).lead_to(Then(step, taken, self.taken.part))
        return self

    def lead_to(self, then: Then) -> None:
        """Set the step that follows this task, for its result or a part."""
        submit = self._submit
        assert submit is not None, "the task was already submitted"
        self._submit = lambda nothing: submit(then)

    def __getitem__(self, name: str) -> Named:
        assert self.taken is not None, "a chunk has no parts"
        key = f"{self._tasks.run}-{self.taken.task}-{name}"

        def submit(then: Then | None) -> Any:
            return self._tasks.take_down(key, picked(self.value, name, key), self.depth)

        taken = Taken(self.taken.task, name)
        return Named(self._tasks, submit, taken, self.depth, self._home, self._elsewhere, self)


@dataclass(frozen=True)
class Then:
    """A step that runs right after another in the same task, on its result or the named `part`, with more arguments."""

    step: Step
    taken: tuple[Any, ...]
    part: str = ""


@dataclass
class News:
    """Events of a run received so far; written in Dask's thread, read in the caller's.

    `results` has small results that were waited for, by task name. `unmoved` is the error of the last failed transfer
    between workers; `unmoved_since` is when transfers began to fail, None if a task has ended for the first time since.
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
        """The names of tasks that have ended."""
        return {record.task for record in tuple(self.records)}

    def begin_anew(self) -> None:
        """Forget all events."""
        self.records.clear()
        self.lost.clear()
        self.results.clear()
        self.why, self.unmoved_since = "", None

    def of_run(self, told: Mapping[str, Any]) -> None:
        """Handle a worker's event."""
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
        """Handle the scheduler's event about a worker."""
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
        Text of edited kernel files, by file name.
    chunks : sequence of Chunk or ChunkInParts
    beside : mapping of str to sequence of Chunk
        Chunks of inputs that are divided independently of the main input.
    accept : bool
        Whether workers still have to check each chunk for input that the pattern refuses.

    Attributes
    ----------
    count : int
        Number of tasks that Dask has; a named task whose result nothing uses is not counted.
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
        self._name_count = 0
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
        """Continue after a `wait` with other settings; earlier events are forgotten."""
        self.news.begin_anew()
        self.count = 0
        for mapping in (self._graph, self._priorities, self._homes):
            mapping.clear()
        self.variant, self.params = variant, dict(params)
        self._call = (self.pattern, variant, self.params, dict(sources))

    @property
    def shares(self) -> tuple[tuple[int, ...], ...]:
        """Indices of each worker's chunks."""
        count = len(self.chunks)
        by_home = groupby(range(count), key=lambda place: home_of(self.cluster, place, count))
        return tuple(tuple(places) for _, places in by_home)

    def divide(self, chunks: Sequence[Chunk]) -> None:
        """Replace the chunks for tasks named from now on."""
        self.chunks = tuple(map(self._chunk, chunks))

    def _chunk(self, chunk: Chunk | ChunkInParts) -> Named:
        return Named(self, lambda then: chunk, None, 0)

    def make(self, step: Step, *taken: Any, place: int = 0) -> Named:
        """Name a task; Dask receives it when something uses its result, and starts it when all arguments exist."""
        name = f"{step.__name__.strip('_')}-{self._name_count}"
        self._name_count += 1
        depth = 1 + max((each.depth for each in _task_results(taken)), default=0)
        home = home_of(self.cluster, min(place, len(self.chunks) - 1), len(self.chunks))
        elsewhere: set[str] = set()

        def submit(then: Then | None) -> Any:
            self.count += 1
            more = then.taken if then is not None else ()
            following = (then.step, len(more), then.part) if then is not None else None
            all_arguments = (*taken, *more)
            call = TaskCall(
                self.run,
                name,
                step,
                *self._call,
                place,
                _dependencies(all_arguments),
                self._accept,
                following,
                elsewhere,
                name in self._wanted,
            )
            # Deeper tasks first: they free memory, while reading the next chunk needs more.
            key = f"{self.run}-{name}"
            arguments = [_resolve_argument(home, argument) for argument in all_arguments]
            return self.take_down(key, task_of(key, carry_out, call, *arguments), depth, home)

        return Named(self, submit, Taken(name), depth, home, elsewhere)

    def wait(self, made: Sequence[Named], tell: Tell, kept: Sequence[Named] = ()) -> list[Any]:
        """Wait for results, report the run's progress, and return them as arrays.

        `kept` results stay on their workers for tasks that are named later; all others are released if there are any.

        Raises
        ------
        LockstepError
            A task's error, unchanged; EngineUnavailableError if the scheduler or every worker is lost, or a result
            cannot be transferred between workers.
        """
        import distributed

        self._wanted = {each.taken.task for each in made if each.taken is not None}
        futures = self._submit_graph([each.value.key for each in (*made, *(each for each in kept if not each.is_kept))])
        reported, no_worker_since = 0, None
        while True:
            try:
                with self.cluster.client.as_current():
                    distributed.wait(futures, timeout=_POLL_S)
                break
            except TimeoutError:
                pass
            except CancelledError:
                break
            if self.cluster.client.status not in ("running", "connecting"):
                break
            reported = self._report(tell, reported)
            self._check_transfers()
            no_worker_since = self._check_workers(no_worker_since)
        reported = self._report(tell, reported)
        try:
            results = self._published_results(made)
            if results is None:
                # Workers on this machine are reached directly, without the scheduler.
                gathered = self.cluster.client.gather(futures[: len(made)], direct=bool(self.cluster.shared))
                results = [_array(each) for each in gathered]
            self._wait_for_events()
            self._report(tell, reported)
            if kept:
                by_key = {future.key: future for future in futures}
                for each in kept:
                    each.keep(by_key)
                self.keep_only(kept)
            return results
        except LockstepError:
            raise
        except distributed.scheduler.KilledWorker as error:
            raise KernelError(
                self.news.why or "A task ended every worker that tried it.",
                advice="Use smaller chunks, or check the workers with `python main.py devices`.",
                detail=str(error),
            ) from None
        except (CancelledError, OSError) as error:
            if isinstance(error, OSError) and self.cluster.client.status == "running":
                raise EngineUnavailableError(f"A worker cannot continue: {error}.") from error
            raise EngineUnavailableError(
                "The scheduler is gone.", advice="Restart it and its workers; nothing was written."
            ) from error

    def _published_results(self, made: Sequence[Named]) -> list[Any] | None:
        """Return the results if workers' events had all of them: fetching them would take as long as a task."""
        results = self.news.results
        names = ["" if each.taken is None or each.taken.part else each.taken.task for each in made]
        return [results[name] for name in names] if results.keys() >= {*names} else None

    def keep_only(self, kept: Sequence[Named]) -> None:
        """Release all results but these, for tasks that are named later."""
        stays = {each.value.key for each in kept if each.is_kept}
        for future in list(self._futures):
            if future.key not in stays:
                future.release()
                self._futures.discard(future)

    def _wait_for_events(self) -> None:
        """Wait for the last tasks' events: a result may arrive before the event about it."""
        end = time.monotonic() + _LATE_EVENTS_S
        while len(self.news.done) < self.count and (left := end - time.monotonic()) > 0:
            self.news.changed.wait(left)
            self.news.changed.clear()

    def take_down(self, key: str, task: Any, priority: int, home: str = "") -> Any:
        """Add a task to Dask's graph, with a preferred worker at `home`; return a reference to its result."""
        from dask._task_spec import TaskRef

        self._graph[key] = task
        self._priorities[key] = priority
        if home:
            self._homes[key] = [home]
        return TaskRef(key)

    def _submit_graph(self, keys: list[str]) -> list[Any]:
        """Submit all tasks to Dask at once, which takes as long for dozens as for one; return futures.

        Only the last tasks' futures are kept: the scheduler keeps what these need.
        """
        from dask.highlevelgraph import HighLevelGraph, MaterializedLayer

        annotations = {"priority": self._priorities.get, "workers": self._homes.get, "allow_other_workers": True}
        layer = MaterializedLayer(self._graph, annotations)
        futures: list[Any] = self.cluster.client.get(HighLevelGraph({self.run: layer}, {}), keys, sync=False)
        self._futures.update(futures)
        return futures

    def close(self) -> None:
        """Release all results and stop listening to the run's events."""
        self._watch.close()
        # Dask's task objects refer to some futures in cycles, which Python collects late.
        for future in list(self._futures):
            future.release()
        self.cluster.told.leave(self.run)

    def _report(self, tell: Tell, reported: int) -> int:
        """Report progress and workers lost since the last report; return how many losses have been reported."""
        for each in self.news.lost[reported:]:
            tell(Progress(None, f"worker {each.address} was lost: other workers repeat its {each.again} tasks"))
        done = min(len(self.news.done), self.count)  # events of canceled tasks may arrive late
        tell(Progress(done / max(self.count, 1), f"{done} of {self.count} tasks"))
        return len(self.news.lost)

    def _check_transfers(self) -> None:
        """Raise EngineUnavailableError if all tasks wait for a failed transfer between workers."""
        since = self.news.unmoved_since
        if since is not None and time.monotonic() - since > _TRANSFER_S and not self._is_executing:
            raise EngineUnavailableError(
                f"A result cannot be transferred between workers: {self.news.unmoved.rstrip('.')}.",
                advice="Use other workers, or one.",
            )

    @property
    def _is_executing(self) -> bool:
        """Whether any worker executes a task, by its last heartbeat."""
        workers = self.cluster.client.scheduler_info(n_workers=-1)["workers"].values()
        return any(each["metrics"].get("task_counts", {}).get("executing") for each in workers)

    def _check_workers(self, since: float | None) -> float | None:
        """Return the time since when there is no worker; raise EngineUnavailableError if none returns."""
        if not self.news.lost or self.cluster.client.scheduler_info(n_workers=-1)["workers"]:
            return None
        now = time.monotonic()
        if since is not None and now - since > _NO_WORKER_S:
            raise EngineUnavailableError("No worker is left.", advice="Start workers again.")
        return since or now


def home_of(cluster: Cluster, place: int, chunks: int) -> str:
    """Return the address of the worker that processes a chunk, of `chunks` in all."""
    return cluster.workers[place * len(cluster.workers) // chunks].address


def _array(value: Any) -> Any:
    return value.array() if isinstance(value, Resident) else value


def _resolve_argument(home: str, argument: Any) -> Any:
    """Replace named results in a step's argument by references for a Dask task on the worker at `home`."""
    from dask._task_spec import List

    if isinstance(argument, Named):
        return argument.value_at(home)
    if isinstance(argument, list | tuple):
        return List(*(_resolve_argument(home, each) for each in argument))
    return argument


def task_of(key: str | None, function: Callable[..., Any], *values: Any) -> Any:
    """Return a Dask task; without a key it can be nested in another one."""
    from dask._task_spec import Task

    return Task(key, function, *values)


def picked(made: Any, name: str, key: str | None = None) -> Any:
    """Return a Dask task that picks a part of a result; without a key it can be nested in another one."""
    return task_of(key, pick, made, name)


def _dependencies(arguments: Any) -> tuple[Taken, ...]:
    return tuple(each.taken for each in _task_results(arguments) if each.taken is not None)


def _task_results(arguments: Any) -> list[Named]:
    """Return all task results in a step's arguments."""
    if isinstance(arguments, Named):
        return [arguments]
    return [name for each in arguments for name in _task_results(each)] if isinstance(arguments, list | tuple) else []
