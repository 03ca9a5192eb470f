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

from gpu.base.errors import EngineUnavailableError, KernelError, LockstepError
from gpu.base.installation import COMMAND
from gpu.declaration.distributed_program import Step
from gpu.declaration.pattern import Progress
from gpu.distributed.cluster.dask_cluster import Cluster
from gpu.distributed.cluster.resident_arrays import ResidentArray
from gpu.distributed.cluster.watchdog import WorkerWatchdog
from gpu.distributed.cluster.worker import TaskCall, pick_part, run_task
from gpu.distributed.data.chunks import Chunk, ChunkInParts
from gpu.engines.base import Array
from gpu.messages.runs.distributed_run import LostWorker, TaskDependency, TaskRecord
from gpu.run.host_program import ProgressCallback
from gpu.run.workload import Workload

_POLL_S = 0.2
_NO_WORKER_S = 30.0
_LATE_EVENTS_S = 2.0
_TRANSFER_S = 20.0
"""Seconds in which Dask has to complete a transfer that failed, while no worker executes a task."""


class NamedResult:
    """Result of a task, by name; Dask receives the task only if its result is used.

    Parameters
    ----------
    submit : callable
        Adds the task to Dask's graph, with a step to run right after it, if any; returns a reference to the result.
    dependency : TaskDependency or None
        None for a chunk, which is not computed by a task.
    Number of tasks on the longest path to this one.
        The address of the preferred worker; "" for a chunk.
    remote_parts : set of str
        Known parts of the task's result that other workers use.
    parent : NamedResult or None
        The result of which this is a part.
    """

    def __init__(
        self,
        tasks: RunTasks,
        submit: Callable[[FollowingStep | None], Any],
        dependency: TaskDependency | None,
        depth: int,
        home: str = "",
        remote_parts: set[str] | None = None,
        parent: NamedResult | None = None,
    ) -> None:
        self._tasks = tasks
        self._submit: Callable[[FollowingStep | None], Any] | None = submit
        self._value: Any = None
        self._home = home
        self._remote_parts: set[str] = set() if remote_parts is None else remote_parts
        self._parent = parent
        self._persistent = False
        self.dependency = dependency
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
        is a separate task, so that only the part is transferred.
        """
        if self.dependency is not None and home != self._home:
            self._remote_parts.add(self.dependency.part)
        elif self.dependency is not None and self._parent is not None:
            return create_pick_task(self._parent.value, self.dependency.part)
        return self.value

    @property
    def is_persistent(self) -> bool:
        """Whether it stays on a worker for tasks that are named later."""
        return self._persistent

    def mark_used_remotely(self) -> None:
        """Mark the result as used by other workers, whatever tasks are named so far."""
        if self.dependency is not None:
            self._remote_parts.add(self.dependency.part)

    def persist(self, futures: Mapping[str, Any]) -> None:
        """Refer to the future with this result from now on."""
        if not self._persistent:
            self._value, self._parent, self._persistent = futures[self.value.key], None, True

    def apply_step(self, step: Step, *step_arguments: Any) -> NamedResult:
        """Apply a step to this result in the same task; its return value then has this name.

        The earlier value is not available to other tasks. Only one part of a task's result can have a following step.
        """
        assert self.dependency is not None, "a chunk is not the result of a task"
        (self._parent or self).set_following_step(FollowingStep(step, step_arguments, self.dependency.part))
        return self

    def set_following_step(self, following_step: FollowingStep) -> None:
        """Set the step that follows this task, for its result or a part."""
        submit = self._submit
        assert submit is not None, "the task was already submitted"
        self._submit = lambda nothing: submit(following_step)

    def __getitem__(self, name: str) -> NamedResult:
        assert self.dependency is not None, "a chunk has no parts"
        key = f"{self._tasks.run_id}-{self.dependency.task}-{name}"

        def submit_pick(following_step: FollowingStep | None) -> Any:
            return self._tasks.add_to_graph(key, create_pick_task(self.value, name, key), self.depth)

        taken = TaskDependency(self.dependency.task, name)
        return NamedResult(self._tasks, submit_pick, taken, self.depth, self._home, self._remote_parts, self)


def to_named_result(part: Any) -> NamedResult:
    """Return a part of a plan as the result that this module made it."""
    assert isinstance(part, NamedResult)
    return part


@dataclass(frozen=True)
class FollowingStep:
    """A step that runs right after another in the same task, on its result or the named `part`, with more arguments."""

    step: Step
    arguments: tuple[Any, ...]
    part: str = ""


@dataclass
class RunEventLog:
    """Events of a run received so far; written in Dask's thread, read in the caller's.

    `results` has small results that were waited for, by task name. `transfer_error` is the error of the last failed
    transfer between workers; `transfers_failing_since` is when transfers began to fail, None if a task has ended for
    the first time since.
    """

    records: list[TaskRecord] = field(default_factory=list)
    lost_workers: list[LostWorker] = field(default_factory=list)
    results: dict[str, Array] = field(default_factory=dict)
    loss_reason: str = ""
    transfer_error: str = ""
    transfers_failing_since: float | None = None
    changed: threading.Event = field(default_factory=threading.Event)

    @property
    def ended_tasks(self) -> set[str]:
        """The names of tasks that have ended."""
        return {record.task for record in tuple(self.records)}

    def clear(self) -> None:
        """Forget all events."""
        self.records.clear()
        self.lost_workers.clear()
        self.results.clear()
        self.loss_reason, self.transfers_failing_since = "", None

    def on_run_event(self, event: Mapping[str, Any]) -> None:
        """Handle a worker's event."""
        if "lost" in event:
            self.loss_reason = str(event["why"])
        elif "unmoved" in event:
            self.transfer_error = str(event["unmoved"])
            self.transfers_failing_since = self.transfers_failing_since or time.monotonic()
        else:
            record = TaskRecord.from_data(event["record"])
            if (result := event["result"]) is not None:
                dtype, shape, data = result
                self.results[record.task] = np.ndarray(shape, dtype, data).copy()
            if record.task not in self.ended_tasks:
                self.transfers_failing_since = None
            self.records.append(record)
        self.changed.set()

    def on_scheduler_event(self, event: Mapping[str, Any]) -> None:
        """Handle the scheduler's event about a worker."""
        if event.get("action") == "remove-worker" and not event.get("expected"):
            again = len(event["processing-tasks"]) + len(event["lost-computed-tasks"])
            self.lost_workers.append(LostWorker(event["worker"], again))
            self.changed.set()


class RunTasks:
    """The tasks of one run.

    Parameters
    ----------
    workload : Workload
        With all parameters; its inputs are in the chunks.
    separate_chunks : mapping of str to sequence of Chunk
        Chunks of inputs that are divided independently of the main input.
    check_input : bool
        Whether workers still have to check each chunk for input that the pattern refuses.

    Attributes
    ----------
    task_count : int
        Number of tasks that Dask has; a named task does not count if nothing uses its result.
    """

    def __init__(
        self,
        cluster: Cluster,
        workload: Workload,
        chunks: Sequence[Chunk | ChunkInParts],
        separate_chunks: Mapping[str, Sequence[Chunk]],
        check_input: bool = False,
    ) -> None:
        self.cluster = cluster
        self.run_id = f"lockstep-{secrets.token_hex(8)}"
        self.event_log = RunEventLog()
        self._futures: WeakSet[Any] = WeakSet()
        self._graph: dict[str, Any] = {}
        self._priorities: dict[str, int] = {}
        self._homes: dict[str, list[str]] = {}
        self._awaited_tasks: set[str] = set()
        self.task_count = 0
        self._name_count = 0
        self.pattern = workload.pattern.name
        self.variant = workload.variant.name
        self.params = dict(workload.params)
        self._check_input = check_input
        self._call_arguments = (self.pattern, self.variant, self.params, dict(workload.sources))
        self.chunks = tuple(self._wrap_chunk(chunk) for chunk in chunks)
        self.separate_chunks = {
            name: tuple(map(self._wrap_chunk, separate_chunk)) for name, separate_chunk in separate_chunks.items()
        }
        cluster.run_event_listener.add_listeners(
            self.run_id, self.event_log.on_run_event, self.event_log.on_scheduler_event
        )
        self._watchdog = WorkerWatchdog(cluster.client)

    def restart(self, variant: str, params: Mapping[str, Any], sources: Mapping[str, str]) -> None:
        """Continue after a `wait_for_results` with other settings; earlier events are forgotten."""
        self.event_log.clear()
        self.task_count = 0
        for mapping in (self._graph, self._priorities, self._homes):
            mapping.clear()
        self.variant, self.params = variant, dict(params)
        self._call_arguments = (self.pattern, variant, self.params, dict(sources))

    @property
    def chunks_by_device(self) -> tuple[tuple[int, ...], ...]:
        """Indices of each worker's chunks."""
        count = len(self.chunks)
        by_home = groupby(range(count), key=lambda index: find_home(self.cluster, index, count))
        return tuple(tuple(places) for _, places in by_home)

    def replace_chunks(self, chunks: Sequence[Chunk]) -> None:
        """Replace the chunks for tasks named from now on."""
        self.chunks = tuple(map(self._wrap_chunk, chunks))

    def _wrap_chunk(self, chunk: Chunk | ChunkInParts) -> NamedResult:
        return NamedResult(self, lambda then: chunk, None, 0)

    def add_task(self, step: Step, *step_arguments: Any, chunk_index: int = 0) -> NamedResult:
        """Name a task; Dask receives it when something uses its result, and starts it when all arguments exist."""
        name = f"{step.__name__.strip('_')}-{self._name_count}"
        self._name_count += 1
        depth = 1 + max((named_result.depth for named_result in _list_named_results(step_arguments)), default=0)
        home = find_home(self.cluster, min(chunk_index, len(self.chunks) - 1), len(self.chunks))
        elsewhere: set[str] = set()

        def submit_step(following_step: FollowingStep | None) -> Any:
            self.task_count += 1
            more = following_step.arguments if following_step is not None else ()
            following = (following_step.step, len(more), following_step.part) if following_step is not None else None
            all_arguments = (*step_arguments, *more)
            call = TaskCall(
                self.run_id,
                name,
                step,
                *self._call_arguments,
                chunk_index,
                _list_dependencies(all_arguments),
                self._check_input,
                following,
                elsewhere,
                name in self._awaited_tasks,
            )
            # Deeper tasks first: they free memory, while reading the next chunk needs more.
            key = f"{self.run_id}-{name}"
            arguments = [_resolve_argument(home, argument) for argument in all_arguments]
            return self.add_to_graph(key, create_dask_task(key, run_task, call, *arguments), depth, home)

        return NamedResult(self, submit_step, TaskDependency(name), depth, home, elsewhere)

    def wait_for_results(
        self,
        requested_results: Sequence[NamedResult],
        report_progress: ProgressCallback,
        persistent_results: Sequence[NamedResult] = (),
    ) -> list[Any]:
        """Wait for results, report the run's progress, and return them as arrays.

        `persistent_results` stay on their workers for tasks named later; all others are released if there are any.

        Raises
        ------
        LockstepError
            A task's error, unchanged; EngineUnavailableError if the scheduler or every worker is lost, or a result
            cannot be transferred between workers.
        """
        import distributed

        self._awaited_tasks = {each.dependency.task for each in requested_results if each.dependency is not None}
        new_results = [each for each in persistent_results if not each.is_persistent]
        futures = self._submit_graph([each.value.key for each in (*requested_results, *new_results)])
        reported = self._wait_for_futures(futures, report_progress)
        try:
            results = self._find_published_results(requested_results)
            if results is None:
                # Workers on this machine are reached directly, without the scheduler.
                gathered = self.cluster.client.gather(
                    futures[: len(requested_results)], direct=bool(self.cluster.shared_folder)
                )
                results = [each.to_array() if isinstance(each, ResidentArray) else each for each in gathered]
            self._wait_for_events()
            self._report_events(report_progress, reported)
            if persistent_results:
                by_key = {future.key: future for future in futures}
                for persistent_result in persistent_results:
                    persistent_result.persist(by_key)
                self.release_other_results(persistent_results)
            return results
        except LockstepError:
            raise
        except distributed.scheduler.KilledWorker as error:
            raise KernelError(
                self.event_log.loss_reason or "A task ended every worker that tried it.",
                advice=f"Use smaller chunks, or check the workers with `{COMMAND} devices`.",
                detail=str(error),
            ) from None
        except (CancelledError, OSError) as error:
            if isinstance(error, OSError) and self.cluster.client.status == "running":
                raise EngineUnavailableError(f"A worker cannot continue: {error}.") from error
            raise EngineUnavailableError(
                "The scheduler is gone.", advice="Restart it and its workers; nothing was written."
            ) from error

    def _wait_for_futures(self, futures: Sequence[Any], report_progress: ProgressCallback) -> int:
        """Wait until the futures end or the scheduler is lost; return the number of reported events."""
        import distributed

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
            reported = self._report_events(report_progress, reported)
            self._check_transfers()
            no_worker_since = self._check_workers(no_worker_since)
        return self._report_events(report_progress, reported)

    def _find_published_results(self, requested_results: Sequence[NamedResult]) -> list[Any] | None:
        """Return the results if workers' events contained all of them; fetching them takes about as long as a task."""
        results = self.event_log.results
        names = [
            ""
            if requested_result.dependency is None or requested_result.dependency.part
            else requested_result.dependency.task
            for requested_result in requested_results
        ]
        return [results[name] for name in names] if results.keys() >= {*names} else None

    def release_other_results(self, persistent_results: Sequence[NamedResult]) -> None:
        """Release all results but these, for tasks that are named later."""
        stays = {
            persistent_result.value.key for persistent_result in persistent_results if persistent_result.is_persistent
        }
        for future in list(self._futures):
            if future.key not in stays:
                future.release()
                self._futures.discard(future)

    def _wait_for_events(self) -> None:
        """Wait for the last tasks' events: a result may arrive before the event about it."""
        end = time.monotonic() + _LATE_EVENTS_S
        while len(self.event_log.ended_tasks) < self.task_count and (left := end - time.monotonic()) > 0:
            self.event_log.changed.wait(left)
            self.event_log.changed.clear()

    def add_to_graph(self, key: str, task: Any, priority: int, home: str = "") -> Any:
        """Add a task to Dask's graph; return a reference to its result.

        Parameters
        ----------
        key : str
            The task's key in Dask, unique among all runs of the cluster.
        task : Task
            Dask's task.
        priority : int
            Dask runs tasks of higher priority first.
        home : str
            The address of the preferred worker; "" for any.
        """
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
        futures: list[Any] = self.cluster.client.get(HighLevelGraph({self.run_id: layer}, {}), keys, sync=False)
        self._futures.update(futures)
        return futures

    def close(self) -> None:
        """Release all results and stop listening to the run's events."""
        self._watchdog.close()
        # Dask's task objects refer to some futures in cycles, which Python collects late.
        for future in list(self._futures):
            future.release()
        self.cluster.run_event_listener.remove_listeners(self.run_id)

    def _report_events(self, report_progress: ProgressCallback, reported: int) -> int:
        """Report progress and workers lost since the last report; return how many losses have been reported."""
        for lost_worker in self.event_log.lost_workers[reported:]:
            report_progress(
                Progress(
                    None, f"worker {lost_worker.address} was lost: other workers repeat its {lost_worker.again} tasks"
                )
            )
        done = min(len(self.event_log.ended_tasks), self.task_count)  # events of canceled tasks may arrive late
        report_progress(Progress(done / max(self.task_count, 1), f"{done} of {self.task_count} tasks"))
        return len(self.event_log.lost_workers)

    def _check_transfers(self) -> None:
        """Raise EngineUnavailableError if all tasks wait for a failed transfer between workers."""
        since = self.event_log.transfers_failing_since
        if since is not None and time.monotonic() - since > _TRANSFER_S and not self._is_executing:
            raise EngineUnavailableError(
                f"A result cannot be transferred between workers: {self.event_log.transfer_error.rstrip('.')}.",
                advice="Use other workers, or one.",
            )

    @property
    def _is_executing(self) -> bool:
        """Whether any worker executes a task, by its last heartbeat."""
        workers = self.cluster.client.scheduler_info(n_workers=-1)["workers"].values()
        return any(worker["metrics"].get("task_counts", {}).get("executing") for worker in workers)

    def _check_workers(self, since: float | None) -> float | None:
        """Return the time since when there is no worker; raise EngineUnavailableError if none returns."""
        if not self.event_log.lost_workers or self.cluster.client.scheduler_info(n_workers=-1)["workers"]:
            return None
        now = time.monotonic()
        if since is not None and now - since > _NO_WORKER_S:
            raise EngineUnavailableError("No worker is left.", advice="Start workers again.")
        return since or now


def find_home(cluster: Cluster, chunk_index: int, chunks: int) -> str:
    """Return the address of the worker that processes a chunk, of `chunks` in all."""
    return cluster.workers[chunk_index * len(cluster.workers) // chunks].address


def _resolve_argument(home: str, argument: Any) -> Any:
    """Replace named results in a step's argument by references for a Dask task on the worker at `home`."""
    from dask._task_spec import List

    if isinstance(argument, NamedResult):
        return argument.value_at(home)
    if isinstance(argument, list | tuple):
        return List(*(_resolve_argument(home, each) for each in argument))
    return argument


def create_dask_task(key: str | None, function: Callable[..., Any], *values: Any) -> Any:
    """Return a Dask task; without a key it can be nested in another one."""
    from dask._task_spec import Task

    return Task(key, function, *values)


def create_pick_task(result: Any, name: str, key: str | None = None) -> Any:
    """Return a Dask task that picks a part of a result; without a key it can be nested in another one."""
    return create_dask_task(key, pick_part, result, name)


def _list_dependencies(arguments: Any) -> tuple[TaskDependency, ...]:
    return tuple(
        named_result.dependency
        for named_result in _list_named_results(arguments)
        if named_result.dependency is not None
    )


def _list_named_results(arguments: Any) -> list[NamedResult]:
    """Return all task results in a step's arguments."""
    if isinstance(arguments, NamedResult):
        return [arguments]
    return (
        [name for argument in arguments for name in _list_named_results(argument)]
        if isinstance(arguments, list | tuple)
        else []
    )
