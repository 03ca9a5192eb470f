"""Layout of a run's task graph: one row per step, from the input down, with an edge for each dependency."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from gpu.messages.runs.distributed_run import TaskRecord

_KILO = 1000


@dataclass(frozen=True)
class TaskCell:
    """Position of a task, or of a chunk of the input.

    Parameters
    ----------
    record : TaskRecord
        For a chunk, the record of the task that read it.
    row : int
        0 for the input.
    column : float
        The chunk's index; a row's only task is centered unless it reads a chunk.
    """

    record: TaskRecord
    row: int
    column: float


@dataclass(frozen=True)
class TaskEdge:
    """Dependency of a task on another's result; `crosses_workers` if it was computed on another worker."""

    source: str
    target: str
    crosses_workers: bool


@dataclass(frozen=True)
class TaskLayout:
    """Rows of the tasks of a run.

    Parameters
    ----------
    steps : tuple of str
        Name of the step in each row, without the input's.
    transferred_bytes : tuple of int
        Bytes that each of those rows received from other workers.
    tasks, inputs : dict of str to TaskCell
        By task name: the tasks' cells, and those of the chunks that they read.
    edges : tuple of TaskEdge
        Transfers to another worker come last.
    """

    steps: tuple[str, ...] = ()
    transferred_bytes: tuple[int, ...] = ()
    columns: int = 1
    tasks: dict[str, TaskCell] = field(default_factory=dict)
    inputs: dict[str, TaskCell] = field(default_factory=dict)
    edges: tuple[TaskEdge, ...] = ()


def lay_out_tasks(records: Sequence[TaskRecord]) -> TaskLayout:
    """Assign tasks to rows by step and by the number of tasks on the longest path to them.

    Of a task that ran again only the last record counts.
    """
    last_records = {record.task: record for record in records}
    if not last_records:
        return TaskLayout()
    steps, row_of = _assign_rows(last_records)
    row_counts = Counter(row_of.values())
    columns = 1 + max(record.chunk_index for record in last_records.values())
    middle = (columns - 1) / 2

    def find_column(name: str, record: TaskRecord) -> float:
        combines_chunks = row_counts[row_of[name]] == 1 and record.elements is None
        return middle if combines_chunks else record.chunk_index

    tasks = {
        name: TaskCell(record, row_of[name] + 1, find_column(name, record)) for name, record in last_records.items()
    }
    inputs = {
        name: TaskCell(cell.record, 0, cell.column) for name, cell in tasks.items() if cell.record.elements is not None
    }
    edges = {
        TaskEdge(taken.task, name, last_records[taken.task].worker != record.worker)
        for name, record in last_records.items()
        for taken in record.dependencies
        if taken.task in last_records
    }
    ordered = sorted(edges, key=lambda each: (each.crosses_workers, each.source, each.target))
    return TaskLayout(
        steps, _count_received_bytes(last_records, row_of, len(steps)), columns, tasks, inputs, tuple(ordered)
    )


def _assign_rows(records: dict[str, TaskRecord]) -> tuple[tuple[str, ...], dict[str, int]]:
    depths: dict[str, int] = {}

    def find_depth(task: str) -> int:
        if task not in depths:
            dependencies = [taken.task for taken in records[task].dependencies if taken.task in records]
            depths[task] = 1 + max(map(find_depth, dependencies), default=0)
        return depths[task]

    begins: dict[tuple[int, str], float] = {}
    for task, record in records.items():
        row = find_depth(task), record.step
        begins[row] = min(begins.get(row, record.begin), record.begin)
    rows = sorted(begins, key=lambda row: (row[0], begins[row]))
    number = {row: index for index, row in enumerate(rows)}
    row_of = {task: number[find_depth(task), record.step] for task, record in records.items()}
    return tuple(step for _, step in rows), row_of


def _count_received_bytes(records: dict[str, TaskRecord], row_of: dict[str, int], rows: int) -> tuple[int, ...]:
    received: dict[int, int] = defaultdict(int)
    seen = set()
    for task, record in records.items():
        for taken in record.dependencies:
            source = records.get(taken.task)
            if source is None or source.worker == record.worker or (taken, record.worker) in seen:
                continue
            seen.add((taken, record.worker))
            received[row_of[task]] += dict(source.result_parts)[taken.part]
    return tuple(received[row] for row in range(rows))


def worker_name(worker: int | None) -> str:
    """Return the label of a worker by its number."""
    return "a lost worker" if worker is None else f"worker {worker}"


def format_short_time(seconds: float) -> str:
    """Format a time briefly."""
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def format_short_bytes(count: int) -> str:
    """Format a number of bytes briefly."""
    size = float(count)
    for unit in ("B", "KB", "MB"):
        if size < _KILO:
            return f"{size:.3g} {unit}"
        size /= _KILO
    return f"{size:.3g} GB"
