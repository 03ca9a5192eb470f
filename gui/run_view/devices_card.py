"""What a run on several devices came to: who was busy, what they exchanged, whom it lost."""

from __future__ import annotations

from PyQt6.QtCore import QUrl, pyqtSignal
from PyQt6.QtGui import QDesktopServices

from gpu.messages.distributed import DistributedRun, LostWorker
from gpu.messages.modeled import as_bytes
from gui.widgets.basic import Badge, Card, ElidedLabel, button, label

_BUSY = "From the first task's submission to the last result."
_SHARED = "Simulators share this machine's cores: their speed is no GPU's."


class DevicesCard(Card):
    """The newest run on several devices."""

    workers_wanted = pyqtSignal()
    """Somebody wants to see which worker did what."""

    def __init__(self) -> None:
        super().__init__("Several devices", margins=(12, 4, 12, 6))
        self.body.setSpacing(2)
        self.workers = Badge()
        self.head.addWidget(self.workers)
        self.head.addStretch(1)
        self.dashboard = button("Dashboard", "link", tip="Open Dask's own page on this cluster in a browser")
        self.dashboard.clicked.connect(lambda: QDesktopServices.openUrl(QUrl(self._address)))
        self._address = ""
        self.see = button("See them", "link", tip="Which worker made what from what, and when", name="See the workers")
        self.see.clicked.connect(self.workers_wanted)
        for link in (self.dashboard, self.see):
            self.head.addWidget(link)
        self.busy = ElidedLabel("", "Busy workers")
        self.exchanged = ElidedLabel("caption", "Bytes exchanged")
        self.lost = label("", wrap=True, name="Lost workers")
        self.shared = ElidedLabel("caption", "What simulators say of GPUs")
        self.shared.say(_SHARED)
        for each in (self.busy, self.exchanged, self.lost, self.shared):
            self.body.addWidget(each)

    def show_run(self, done: DistributedRun, dashboard: str) -> None:
        """Show what a run did; `dashboard` is where Dask's page is, "" where it has none."""
        count = done.ideal
        lost = f", {len(done.lost)} lost" if done.lost else ""
        self.workers.say(_counted(count, "worker") + lost, "warn" if lost else "neutral", _devices(done))
        self.busy.say(f"{done.scaling:.2g} of {count} busy on the average")
        self.busy.setToolTip(f"{self.busy.toolTip()}\n{_BUSY}")
        chunks = len({record.elements for record in done.tasks if record.elements is not None})
        self.exchanged.say(
            f"{as_bytes(done.exchanged_bytes)} exchanged, {as_bytes(done.gathered_bytes)} gathered; "
            f"{_counted(chunks, 'chunk')}, {_counted(len(done.tasks), 'task')}"
        )
        self.lost.setText(" ".join(map(_lost, done.lost)))
        self.lost.setVisible(bool(done.lost))
        self.shared.setVisible(all(each.device.engine == "simulator" for each in done.workers))
        self._address = dashboard
        self.dashboard.setVisible(bool(dashboard))


def _lost(worker: LostWorker) -> str:
    again = f"others did its {_counted(worker.again, 'task')} again" if worker.again else "it had nothing to do"
    return f"Worker {worker.address} was lost: {again}."


def _counted(count: int, of: str) -> str:
    return f"{count} {of}{'' if count == 1 else 's'}"


def _devices(done: DistributedRun) -> str:
    return "\n".join(f"{each.name}: {each.device.name}, {each.host}" for each in done.workers)
