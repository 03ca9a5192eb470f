"""The status line: engine and device, the latest message, and the state of the GPU."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from PyQt6.QtCore import Qt, pyqtSignal
from PyQt6.QtWidgets import QFrame, QHBoxLayout

from gpu.engines.base import Device
from gui.qt.timers import connect_queued, create_single_shot_timer
from gui.widgets.basic import ElidedLabel, button, label, set_role

_FADE_MS = 6000
"""How long a message stays."""
Survey = Callable[[], list[Any]]
_GPU_EXECUTOR = "gpu"
"""The executor's name for kernels that run on a GPU."""
_ENGINE_NAMES = {"cuda": "NVIDIA GPU", "simulator": "CPU simulator", "null": "Null engine"}


def survey_devices() -> list[Any]:
    """Return the state of every engine on this machine; takes up to a second."""
    from gpu.base.devices.survey import list_device_statuses

    return list_device_statuses()


def describe_engines(statuses: list[Any]) -> tuple[str, str, str]:
    """Return a sentence about the GPU, the remedy, and a line or two per engine."""
    lines = []
    for status in statuses:
        lines.append(f"{status.engine}, {status.name}:" if status.name else f"{status.engine}:")
        lines[-1] += " ready" if status.usable else f" {status.reason}"
        if not status.usable and status.remedy:
            lines.append(f"    {status.remedy}")
    gpu = next((status for status in statuses if status.engine == "cuda"), None)
    if gpu is None:
        return "The state of the GPU is unknown.", "", "\n".join(lines)
    if gpu.usable:
        return f"The GPU is available: {gpu.name}.", "", "\n".join(lines)
    return f"The GPU is not available. {gpu.reason}", gpu.remedy, "\n".join(lines)


class StatusLine(QFrame):
    """Engine, device and executor; the latest message; the GPU."""

    surveyed = pyqtSignal(object)
    explanation_requested = pyqtSignal(object)

    def __init__(self, survey: Survey = survey_devices) -> None:
        super().__init__()
        set_role(self, "foot")
        self.device = ElidedLabel("caption", "Engine and device")
        self.device.show_text("Starting the engine…")
        self.message_label = label("", "caption", name="Latest message")
        self.gpu = button("", "link", tip="Why the GPU is not used")
        self.gpu.hide()
        self._survey = survey
        self._engine_statuses: list[Any] = []
        self._device: Device | None = None
        self._workers = 0
        self._fade_timer = create_single_shot_timer(_FADE_MS, self.message_label.clear, self)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(16, 3, 12, 3)
        layout.setSpacing(16)
        layout.addWidget(self.device, 2)
        layout.addWidget(self.message_label, 1, Qt.AlignmentFlag.AlignHCenter)
        layout.addWidget(self.gpu)
        connect_queued(self.surveyed, self._show_survey)
        self.gpu.clicked.connect(lambda: self.explanation_requested.emit(self._engine_statuses))

    def show_start(self, activity: str) -> None:
        """Show that something is starting."""
        self._device = None
        self.device.show_text(f"{activity}…")

    def show_device(self, device: Device, workers: int = 0) -> None:
        """Show the engine's device, or the number of workers of a cluster."""
        self._device, self._workers = device, workers
        self.show_executor(device.executor, "")

    def show_executor(self, executor: str, reason: str) -> None:
        """Show the executor of the newest launches, and the reason if it was not the engine's fastest."""
        if self._device is not None:
            engine = _ENGINE_NAMES.get(self._device.engine, self._device.engine)
            ran = f"{executor} executor" if executor != _GPU_EXECUTOR else ""
            # A GPU's name identifies both the engine and the executor.
            parts = (f"{self._workers} workers" if self._workers else "", engine if ran else "", self._device.name, ran)
            self.device.show_text("  ·  ".join(filter(None, parts)) + (f": {reason}" if reason else ""))

    def show_no_device(self) -> None:
        """Show that no engine is available."""
        self._device = None
        self.device.show_text("No engine: choose another one above")

    def show_message(self, text: str) -> None:
        """Show a message for a few seconds."""
        self.message_label.setText(text)
        self._fade_timer.start()

    def clear_message(self, text: str) -> None:
        """Clear a message if it is still shown."""
        if self.message_label.text() == text:
            self.message_label.clear()

    def clear_progress_message(self) -> None:
        """Clear a message about work in progress (it ends with an ellipsis)."""
        if self.message_label.text().endswith("…"):
            self.message_label.clear()

    def look_for_gpu(self) -> None:
        """Look for a GPU in the background."""
        threading.Thread(target=self._run_survey, name="device-survey", daemon=True).start()

    def _run_survey(self) -> None:
        try:
            found = self._survey()
        except ImportError:
            return
        # The window may have been destroyed in the meantime.
        try:
            self.surveyed.emit(found)
        except RuntimeError:
            return

    def _show_survey(self, statuses: list[Any]) -> None:
        self._engine_statuses = statuses
        gpu = next((status for status in statuses if status.engine == "cuda" and status.usable), None)
        usable = gpu is not None
        self.gpu.setText(f"GPU: {gpu.name}" if gpu is not None else "GPU: none found (why?)")
        self.gpu.setToolTip("Available engines" if usable else "Why there is no GPU, and how to fix it")
        self.gpu.show()
