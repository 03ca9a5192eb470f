"""Summary of a run on several devices: busy workers, exchanged bytes, lost workers."""

from __future__ import annotations

from PyQt6.QtCore import QUrl, pyqtSignal
from PyQt6.QtGui import QDesktopServices

from gpu.messages.distributed import DistributedRun, LostWorker
from gpu.messages.modeled import as_bytes
from gui.widgets.basic import Badge, Card, ElidedLabel, button, label

_BUSY = "Averaged from the first task's submission to the last result."
_SHARED = "Simulators share this machine's cores: their speed is not a GPU's."


class DevicesCard(Card):
    """The summary of the newest run on several devices."""

    workers_wanted = pyqtSignal()
    """The tab with the workers' tasks is requested."""

    def __init__(self) -> None:
        super().__init__("Several devices", margins=(12, 4, 12, 6))
        self.body.setSpacing(2)
        self.workers = Badge()
        self.head.addWidget(self.workers)
        self.head.addStretch(1)
        self.dashboard = button("Dashboard", "link", tip="Open this cluster's Dask dashboard in a browser")
        self.dashboard.clicked.connect(lambda: QDesktopServices.openUrl(QUrl(self._address)))
        self._address = ""
        self.see = button("Workers", "link", tip="Show each worker's tasks and data over time", name="Show the workers")
        self.see.clicked.connect(self.workers_wanted)
        for link in (self.dashboard, self.see):
            self.head.addWidget(link)
        self.busy = ElidedLabel("", "Busy workers")
        self.exchanged = ElidedLabel("caption", "Bytes exchanged")
        self.lost = label("", wrap=True, name="Lost workers")
        self.shared = ElidedLabel("caption", "Note on simulators")
        self.shared.say(_SHARED)
        for each in (self.busy, self.exchanged, self.lost, self.shared):
            self.body.addWidget(each)

    def show_run(self, done: DistributedRun, dashboard: str) -> None:
        """Show a run; `dashboard` is the address of Dask's dashboard, or ""."""
        count = done.ideal
        lost = f", {len(done.lost)} lost" if done.lost else ""
        self.workers.say(_with_number(count, "worker") + lost, "warn" if lost else "neutral", _devices(done))
        self.busy.say(f"{done.scaling:.2g} of {count} busy on average")
        self.busy.setToolTip(f"{self.busy.toolTip()}\n{_BUSY}")
        chunks = len({record.elements for record in done.tasks if record.elements is not None})
        self.exchanged.say(
            f"{as_bytes(done.exchanged_bytes)} exchanged, {as_bytes(done.gathered_bytes)} gathered; "
            f"{_with_number(chunks, 'chunk')}, {_with_number(len(done.tasks), 'task')}"
        )
        self.lost.setText(" ".join(map(_describe_loss, done.lost)))
        self.lost.setVisible(bool(done.lost))
        self.shared.setVisible(all(each.device.engine == "simulator" for each in done.workers))
        self._address = dashboard
        self.dashboard.setVisible(bool(dashboard))


def _describe_loss(worker: LostWorker) -> str:
    again = f"others repeated its {_with_number(worker.again, 'task')}" if worker.again else "it had no tasks"
    return f"Worker {worker.address} was lost: {again}."


def _with_number(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _devices(run: DistributedRun) -> str:
    return "\n".join(f"{each.name}: {each.device.name}, {each.host}" for each in run.workers)
