"""Dialog that selects several devices: local workers, or the workers of a named Dask scheduler."""

from __future__ import annotations

from pathlib import Path

from PyQt6.QtCore import Qt, pyqtSignal
from PyQt6.QtWidgets import QDialog, QFrame, QGridLayout, QLineEdit, QVBoxLayout, QWidget

from gpu.base.errors import InputError
from gpu.distributed.cluster.settings import MAX_SIMULATORS, ClusterSettings, Tls, format_scheduler_address
from gui.painting.theme import look
from gui.widgets.basic import Segments, button, column, label, row
from gui.widgets.file_dialogs import choose_existing_file
from gui.widgets.number_box import NumberBox

THIS_MACHINE, REMOTE_SCHEDULER = "This machine", "Dask scheduler"
_MAX_WORKERS = 64
_AUTOMATIC = "automatic"
_CERTIFICATES = (("CA certificate", "ca.pem"), ("Certificate", "cert.pem"), ("Private key", "key.pem"))
_UNPROTECTED_WARNING = (
    "Not protected: anyone who reaches this address on the network can run programs on its workers and read and change "
    "their data. Certificates protect it."
)


class ClusterDialog(QDialog):
    """Ask which devices to use; modeless, so that the window stays usable.

    Parameters
    ----------
    request : ClusterSettings
        The previous choice.
    """

    accepted_request = pyqtSignal(object)
    """ClusterSettings"""

    def __init__(self, parent: QWidget, request: ClusterSettings) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Several devices")
        self.location = Segments((THIS_MACHINE, REMOTE_SCHEDULER), "Cluster")
        self.workers = NumberBox(0, _MAX_WORKERS, low_text=_AUTOMATIC)
        self.workers.setAccessibleName("Workers")
        self.workers.setValue(request.workers)
        self.address = QLineEdit(request.scheduler)
        self.address.setAccessibleName("Scheduler's address")
        self.address.setPlaceholderText("tcp://HOST:8786")
        self.files = []
        paths = (request.tls.ca, request.tls.cert, request.tls.key) if request.tls is not None else ("", "", "")
        for (name, example), path in zip(_CERTIFICATES, paths, strict=True):
            field = QLineEdit(path)
            field.setAccessibleName(name)
            field.setPlaceholderText(example)
            self.files.append(field)
        self.warning = label("", wrap=True, name="Security warning")
        self._warning_frame = QFrame()
        self._warning_frame.setProperty("banner", "warn")
        inside = column(self.warning)
        inside.setContentsMargins(12, 8, 12, 8)
        self._warning_frame.setLayout(inside)
        self.start = button("Start", "primary")
        self.start.setDefault(True)
        self.cancel = button("Cancel")
        self._lay_out()
        self.location.picked.connect(lambda _: self._update_fields())
        for edited in (self.address, *self.files):
            edited.textChanged.connect(lambda _: self._update_fields())
        self.start.clicked.connect(self._accept_choice)
        self.cancel.clicked.connect(self.reject)
        if request.scheduler:
            self.location.choose(REMOTE_SCHEDULER)
        self._update_fields()

    def _lay_out(self) -> None:
        here = QGridLayout()
        here.setContentsMargins(0, 0, 0, 0)
        here.addWidget(label("Workers", "muted"), 0, 0)
        here.addWidget(self.workers, 0, 1)
        automatic = label(
            f"Each worker has its own GPU, or simulates one where there is none. Automatic: one worker per GPU, or up "
            f"to {MAX_SIMULATORS} simulating workers, which share this machine's cores.",
            "caption", wrap=True,
        )  # fmt: skip
        here.addWidget(automatic, 1, 0, 1, 3)
        here.setColumnStretch(2, 1)
        there = QGridLayout()
        there.setContentsMargins(0, 0, 0, 0)
        there.addWidget(label("Address", "muted"), 0, 0)
        there.addWidget(self.address, 0, 1, 1, 2)
        for line, field in enumerate(self.files, 1):
            name = field.accessibleName()
            browse = button("…", "flat", tip=f"Choose the file: {name}", name=f"Choose: {name}")
            browse.clicked.connect(lambda _=False, field=field: self._browse(field))
            browse.setAutoDefault(False)
            there.addWidget(label(name, "muted"), line, 0)
            there.addWidget(field, line, 1)
            there.addWidget(browse, line, 2)
        there.setColumnStretch(1, 1)
        self._here, self._there = QWidget(), QWidget()
        for page, grid in ((self._here, here), (self._there, there)):
            grid.setHorizontalSpacing(12)
            grid.setVerticalSpacing(8)
            page.setLayout(grid)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(24, 20, 24, 16)
        layout.setSpacing(14)
        layout.addWidget(label("Several devices", "title"))
        about = "The input is split into chunks, one per device. The devices exchange data through Dask."
        layout.addWidget(label(about, "muted", wrap=True))
        layout.addLayout(row(self.location, 0))
        layout.addWidget(self._here)
        layout.addWidget(self._there)
        layout.addWidget(self._warning_frame)
        layout.addStretch(1)
        layout.addLayout(row(0, self.cancel, self.start))
        self.setMinimumWidth(look().px(460))

    @property
    def requested_cluster(self) -> ClusterSettings:
        """The devices currently selected in the dialog."""
        if self.location.chosen == THIS_MACHINE:
            return ClusterSettings(workers=self.workers.value() if self.workers.is_valid else 0)
        ca, cert, key = (field.text().strip() for field in self.files)
        return ClusterSettings(self.address.text().strip(), tls=Tls(ca, cert, key) if ca or cert or key else None)

    def _update_fields(self) -> None:
        """Show the fields and the warning that belong to the current choice."""
        here = self.location.chosen == THIS_MACHINE
        self._here.setVisible(here)
        self._there.setVisible(not here)
        self.start.setText("Start" if here else "Connect")
        self.start.setEnabled(here or bool(self.address.text().strip()))
        self._show_warning(_UNPROTECTED_WARNING if self.requested_cluster.is_exposed else "")

    def _show_warning(self, text: str) -> None:
        self.warning.setText(text)
        self._warning_frame.setVisible(bool(text))
        self.adjustSize()

    def _browse(self, field: QLineEdit) -> None:
        path = choose_existing_file(
            self, field.accessibleName(), "Certificates (*.pem *.crt *.key);;All files (*)", "certificates"
        )
        if path is not None:
            field.setText(str(path))

    def _accept_choice(self) -> None:
        requested = self.requested_cluster
        try:
            format_scheduler_address(requested)
        except InputError as error:
            self._show_warning(f"{error.message} {error.advice}".strip())
            return
        for path in (requested.tls.ca, requested.tls.cert, requested.tls.key) if requested.tls is not None else ():
            if not Path(path).is_file():
                self._show_warning(f"There is no file {path}." if path else "All three certificate files are required.")
                return
        self.accept()
        self.accepted_request.emit(requested)


def describe_cluster_start(request: ClusterSettings) -> str:
    """Return the status text shown while a cluster starts."""
    if request.scheduler:
        return f"Connecting to {request.scheduler}"
    return f"Starting {request.workers} workers" if request.workers else "Starting workers"
