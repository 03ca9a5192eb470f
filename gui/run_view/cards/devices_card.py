"""Summary of a run on several devices: busy workers, exchanged bytes, lost workers."""

from __future__ import annotations

from PyQt6.QtCore import QUrl, pyqtSignal
from PyQt6.QtGui import QDesktopServices

from gpu.messages.modeled_time import format_bytes
from gpu.messages.runs.distributed_run import DistributedRun, LostWorker
from gui.widgets.basic import Badge, Card, ElidedLabel, button, label

_BUSY_TIP = "Averaged from the first task's submission to the last result."
_SHARED_CORES_NOTE = "Simulators share this machine's cores: their speed is not a GPU's."


class DevicesCard(Card):
    """The summary of the newest run on several devices."""

    workers_requested = pyqtSignal()
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
        self.workers_button = button(
            "Workers", "link", tip="Show each worker's tasks and data over time", name="Show the workers"
        )
        self.workers_button.clicked.connect(self.workers_requested)
        for link in (self.dashboard, self.workers_button):
            self.head.addWidget(link)
        self.busy = ElidedLabel("", "Busy workers")
        self.exchanged = ElidedLabel("caption", "Bytes exchanged")
        self.lost_label = label("", wrap=True, name="Lost workers")
        self.shared = ElidedLabel("caption", "Note on simulators")
        self.shared.show_text(_SHARED_CORES_NOTE)
        for each in (self.busy, self.exchanged, self.lost_label, self.shared):
            self.body.addWidget(each)

    def show_run(self, run: DistributedRun, dashboard: str) -> None:
        """Show a run; `dashboard` is the address of Dask's dashboard, or ""."""
        count = run.concurrent_workers
        lost = f", {len(run.lost_workers)} lost" if run.lost_workers else ""
        self.workers.show_text(_format_count(count, "worker") + lost, "warn" if lost else "neutral", _list_devices(run))
        self.busy.show_text(f"{run.mean_busy_workers:.2g} of {count} busy on average")
        self.busy.setToolTip(f"{self.busy.toolTip()}\n{_BUSY_TIP}")
        chunks = len({record.elements for record in run.tasks if record.elements is not None})
        self.exchanged.show_text(
            f"{format_bytes(run.exchanged_bytes)} exchanged, {format_bytes(run.gathered_bytes)} gathered; "
            f"{_format_count(chunks, 'chunk')}, {_format_count(len(run.tasks), 'task')}"
        )
        self.lost_label.setText(" ".join(map(_describe_loss, run.lost_workers)))
        self.lost_label.setVisible(bool(run.lost_workers))
        self.shared.setVisible(all(worker.device.engine == "simulator" for worker in run.workers))
        self._address = dashboard
        self.dashboard.setVisible(bool(dashboard))


def _describe_loss(worker: LostWorker) -> str:
    again = f"other workers repeated its {_format_count(worker.again, 'task')}" if worker.again else "it had no tasks"
    return f"Worker {worker.address} was lost: {again}."


def _format_count(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _list_devices(run: DistributedRun) -> str:
    return "\n".join(f"{worker.name}: {worker.device.name}, {worker.host}" for worker in run.workers)
