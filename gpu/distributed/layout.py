"""Where the tasks of a run stand beside and below each other: who made what from what, step by step, from above."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from gpu.messages.distributed import TaskRecord

_KILO = 1000


@dataclass(frozen=True)
class TaskCell:
    """A task, or a chunk of the input, in its place.

    Parameters
    ----------
    record : TaskRecord
        Of a chunk that of the task which read it.
    row : int
        0 is the input.
    column : float
        Which chunk's; what is alone in its row stands in the middle.
    """

    record: TaskRecord
    row: int
    column: float


@dataclass(frozen=True)
class TaskEdge:
    """That a task took what another made; `moved` where another worker had made it."""

    source: str
    to: str
    moved: bool


@dataclass(frozen=True)
class TaskLayout:
    """The tasks of a run in rows.

    Parameters
    ----------
    steps : tuple of str
        What is done in each row but the input's.
    moved : tuple of int
        Bytes that each of those rows took of other workers.
    columns : int
    tasks, inputs : dict of str to TaskCell
        By tasks: their cells, and those of the chunks that they read.
    edges : tuple of TaskEdge
        Those that go to another worker last.
    """

    steps: tuple[str, ...] = ()
    moved: tuple[int, ...] = ()
    columns: int = 1
    tasks: dict[str, TaskCell] = field(default_factory=dict)
    inputs: dict[str, TaskCell] = field(default_factory=dict)
    edges: tuple[TaskEdge, ...] = ()


def lay_out(records: Sequence[TaskRecord]) -> TaskLayout:
    """Give each step a row of its own wherever as many tasks lead to it one after the other.

    Of a task that was done again the last time counts.
    """
    last = {record.task: record for record in records}
    if not last:
        return TaskLayout()
    steps, row_of = _rows(last)
    alone = Counter(row_of.values())
    columns = 1 + max(record.place for record in last.values())
    middle = (columns - 1) / 2
    tasks = {
        name: TaskCell(record, row_of[name] + 1, record.place if alone[row_of[name]] > 1 else middle)
        for name, record in last.items()
    }
    inputs = {
        name: TaskCell(cell.record, 0, cell.column) for name, cell in tasks.items() if cell.record.elements is not None
    }
    edges = {
        TaskEdge(taken.task, name, last[taken.task].worker != record.worker)
        for name, record in last.items()
        for taken in record.taken
        if taken.task in last
    }
    ordered = sorted(edges, key=lambda each: (each.moved, each.source, each.to))
    return TaskLayout(steps, _moved(last, row_of, len(steps)), columns, tasks, inputs, tuple(ordered))


def _rows(last: dict[str, TaskRecord]) -> tuple[tuple[str, ...], dict[str, int]]:
    depths: dict[str, int] = {}

    def depth(task: str) -> int:
        if task not in depths:
            depths[task] = 1 + max((depth(taken.task) for taken in last[task].taken if taken.task in last), default=0)
        return depths[task]

    begun: dict[tuple[int, str], float] = {}
    for task, record in last.items():
        row = depth(task), record.step
        begun[row] = min(begun.get(row, record.begin), record.begin)
    rows = sorted(begun, key=lambda row: (row[0], begun[row]))
    number = {row: index for index, row in enumerate(rows)}
    of = {task: number[depth(task), record.step] for task, record in last.items()}
    return tuple(step for _, step in rows), of


def _moved(last: dict[str, TaskRecord], row_of: dict[str, int], rows: int) -> tuple[int, ...]:
    moved: dict[int, int] = defaultdict(int)
    seen = set()
    for task, record in last.items():
        for taken in record.taken:
            source = last.get(taken.task)
            if source is None or source.worker == record.worker or (taken, record.worker) in seen:
                continue
            seen.add((taken, record.worker))
            moved[row_of[task]] += dict(source.made)[taken.part]
    return tuple(moved[row] for row in range(rows))


def worker_name(worker: int | None) -> str:
    """Return what a worker of that number is called."""
    return "a worker that is gone" if worker is None else f"worker {worker}"


def short_time(seconds: float) -> str:
    """Return a time in few letters."""
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def short_bytes(count: int) -> str:
    """Return bytes in few letters."""
    size = float(count)
    for unit in ("B", "KB", "MB"):
        if size < _KILO:
            return f"{size:.3g} {unit}"
        size /= _KILO
    return f"{size:.3g} GB"
