"""The moments of a run on several devices: a task ends at each, in the order in which they ended."""

from __future__ import annotations

from gpu.distributed.layout import TaskLayout, lay_out, short_bytes, short_time, worker_name
from gpu.messages.distributed import DistributedRun, TaskRecord
from gui.widgets.basic import as_count


class MachineMoments:
    """A run, and what of it there is at each moment from 0, before the first task, to `end`.

    Parameters
    ----------
    run : DistributedRun
    """

    def __init__(self, run: DistributedRun) -> None:
        self.run = run
        self.layout: TaskLayout = lay_out(run.tasks)
        self.workers = {each.address: number for number, each in enumerate(run.workers)}
        """The numbers of workers by address."""
        ended = sorted((cell.record for cell in self.layout.tasks.values()), key=lambda each: (each.end, each.begin))
        self.order: tuple[TaskRecord, ...] = tuple(ended)
        self.place = {record.task: number for number, record in enumerate(self.order, 1)}
        """The moment at which a task has ended."""
        self.begin = min((each.begin for each in run.tasks), default=0.0)
        self.until = max((each.end for each in run.tasks), default=0.0)
        """When the first task began and the last one ended, in seconds since 1970."""

    @property
    def end(self) -> int:
        """The last moment."""
        return len(self.order)

    @property
    def borders(self) -> tuple[int, ...]:
        """The moments at which all tasks of a step, and of those before, have ended."""
        last = [0] * len(self.layout.steps)
        for name, cell in self.layout.tasks.items():
            last[cell.row - 1] = max(last[cell.row - 1], self.place[name])
        return tuple(max(last[: row + 1]) for row in range(len(last)))

    def now(self, moment: int) -> TaskRecord | None:
        """Return the task that has just ended; None before the first."""
        return self.order[moment - 1] if moment else None

    def clock(self, moment: int) -> float:
        """Return when that was, in seconds since the first task began."""
        now = self.now(moment)
        return 0.0 if now is None else now.end - self.begin

    def who(self, address: str) -> str:
        """Return what a worker is called."""
        return worker_name(self.workers.get(address))

    def words(self, record: TaskRecord) -> str:
        """Return what there is to say of a task: who did what with what, and what came of it."""
        made = short_bytes(sum(size for _, size in record.made))
        lines = [f"{record.step}, {self.who(record.worker)}: made {made} in {short_time(record.end - record.begin)}"]
        if record.elements is not None:
            first, behind = record.elements
            lines.append(f"of {as_count(behind - first)} elements from {as_count(first)} on")
        takes: dict[str, int] = {}
        for taken in record.taken:
            source = self.layout.tasks.get(taken.task)
            if source is not None:
                who = self.who(source.record.worker)
                takes[who] = takes.get(who, 0) + dict(source.record.made)[taken.part]
        if takes:
            own = self.who(record.worker)
            parts = [f"{short_bytes(size)} of {'its own' if who == own else who}" for who, size in takes.items()]
            lines.append("took " + ", ".join(parts))
        times = record.times
        shares = (("upload", times.upload), ("kernels", times.kernel), ("download", times.download))
        lines.append(", ".join(f"{name} {short_time(each / 1e3)}" for name, each in shares if each))
        if record.fetched:
            waited = max(each.end for each in record.fetched) - min(each.begin for each in record.fetched)
            lines.append(f"before it began, {short_time(waited)} for what came from others")
        lines = [line for line in lines if line]
        return "\n".join(lines)
