"""Moments of a run on several devices: one task ends at each moment."""

from __future__ import annotations

from gpu.distributed.task_layout import TaskLayout, format_short_bytes, format_short_time, lay_out_tasks, worker_name
from gpu.messages.runs.distributed_run import DistributedRun, TaskRecord
from gui.widgets.basic import format_count


class MachineMoments:
    """The moments of a run, from 0, before the first task, to `end`; one task ends at each."""

    def __init__(self, run: DistributedRun) -> None:
        self.run = run
        self.layout: TaskLayout = lay_out_tasks(run.tasks)
        self.workers = {worker.address: number for number, worker in enumerate(run.workers)}
        """Number of each worker by its address."""
        ended = sorted((cell.record for cell in self.layout.tasks.values()), key=lambda each: (each.end, each.begin))
        self.tasks_by_end: tuple[TaskRecord, ...] = tuple(ended)
        self.end_moments = {record.task: number for number, record in enumerate(self.tasks_by_end, 1)}
        """The moment at which each task ends, by its name."""
        self.begin_time = min((task.begin for task in run.tasks), default=0.0)
        self.end_time = max((task.end for task in run.tasks), default=0.0)
        """End of the last task; `begin_time` is the start of the first one, both in seconds since 1970."""

    @property
    def end(self) -> int:
        """Return the last moment."""
        return len(self.tasks_by_end)

    @property
    def borders(self) -> tuple[int, ...]:
        """Return, for each step, the moment at which all tasks of it and of earlier steps have ended."""
        last = [0] * len(self.layout.steps)
        for name, cell in self.layout.tasks.items():
            last[cell.row - 1] = max(last[cell.row - 1], self.end_moments[name])
        return tuple(max(last[: row + 1]) for row in range(len(last)))

    def task_ending_at(self, moment: int) -> TaskRecord | None:
        """Return the task that ends at a moment, or None for moment 0."""
        return self.tasks_by_end[moment - 1] if moment else None

    def elapsed_time(self, moment: int) -> float:
        """Return the time of a moment, in seconds since the start of the first task."""
        now = self.task_ending_at(moment)
        return 0.0 if now is None else now.end - self.begin_time

    def name_worker(self, address: str) -> str:
        """Return a worker's name."""
        return worker_name(self.workers.get(address))

    def describe_task(self, record: TaskRecord) -> str:
        """Return a description of a task: worker, input, output, times and transfers."""
        produced = format_short_bytes(sum(size for _, size in record.result_parts))
        duration = format_short_time(record.end - record.begin)
        lines = [f"{record.step}, {self.name_worker(record.worker)}: produced {produced} in {duration}"]
        if record.elements is not None:
            first, behind = record.elements
            lines.append(f"from {format_count(behind - first)} elements, starting at {format_count(first)}")
        input_bytes: dict[str, int] = {}
        for part in record.dependencies:
            source = self.layout.tasks.get(part.task)
            if source is not None:
                worker = self.name_worker(source.record.worker)
                input_bytes[worker] = input_bytes.get(worker, 0) + dict(source.record.result_parts)[part.part]
        if input_bytes:
            same_worker = self.name_worker(record.worker)
            parts = [
                f"{format_short_bytes(size)} from {'itself' if worker == same_worker else worker}"
                for worker, size in input_bytes.items()
            ]
            lines.append("input: " + ", ".join(parts))
        times = record.times
        shares = (("upload", times.upload), ("kernels", times.kernel), ("download", times.download))
        lines.append(", ".join(f"{name} {format_short_time(each / 1e3)}" for name, each in shares if each))
        if record.transfers:
            waited = max(transfer.end for transfer in record.transfers) - min(
                transfer.begin for transfer in record.transfers
            )
            lines.append(f"{format_short_time(waited)} of transfers from other workers before it began")
        lines = [line for line in lines if line]
        return "\n".join(lines)
