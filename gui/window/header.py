"""The bar at the top: title, engine, GPU and variant lists, Run and Stop."""

from __future__ import annotations

from PyQt6.QtCore import Qt, pyqtSignal
from PyQt6.QtGui import QColor, QPainter, QPaintEvent, QResizeEvent
from PyQt6.QtWidgets import (
    QComboBox,
    QFrame,
    QHBoxLayout,
    QMenu,
    QToolButton,
    QWidget,
)

from gpu.declaration.pattern import Pattern
from gpu.engines.base import Device
from gpu.messages.modeled_time import short_name
from gpu.timing.gpus import find_gpu
from gui.model.time_modeler import list_gpus
from gui.painting.theme import look
from gui.widgets.basic import ElidedLabel, button, column, label, set_role
from gui.widgets.elided_box import BRIEF_TEXT_ROLE, ElidedBox
from gui.window.ladder import LadderBox

CLUSTER = "dask"
"""The engine that needs a cluster dialog."""
ENGINES = {
    "auto": ("Automatic", "The GPU where there is one, else the simulator"),
    "cuda": ("NVIDIA GPU", "The kernels compiled by nvcc, run on the GPU"),
    "simulator": ("CPU simulator", "The same kernels, run by a SIMT simulator"),
    CLUSTER: ("Dask cluster", "The same patterns on several GPUs or machines, through Dask"),
}

_VALIDATED, _NOT_VALIDATED = ", modeled", ", not validated"
_VALIDATED_TITLE = "the timing model was compared with measurements on one"
_NOT_VALIDATED_TITLE = "described from data sheets and papers; never compared with measurements"

_ENGINE_WIDTHS, _GPU_WIDTHS, _VARIANT_WIDTHS = (116, 140), (82, 150), (140, 290)
"""Minimum and maximum width of each list in pixels, at the normal text size."""


class ProgressLine(QWidget):
    """A thin progress bar. QProgressBar repaints synchronously on every change, which blocks the window."""

    def __init__(self) -> None:
        super().__init__()
        self.setFixedHeight(3)
        self.setAccessibleName("Progress")
        self.fraction: float | None = 0.0

    def show_fraction(self, fraction: float | None) -> None:
        """Fill this fraction of the line; None means unknown and fills all of it faintly."""
        self.fraction = fraction
        self.setAccessibleDescription("" if not fraction else f"{fraction:.0%}")
        self.update()

    def paintEvent(self, event: QPaintEvent | None) -> None:
        painter = QPainter(self)
        color = QColor(look().theme.accent if self.fraction is not None else look().theme.accent_soft)
        share = 1.0 if self.fraction is None else self.fraction
        painter.fillRect(0, 0, round(share * self.width()), self.height(), color)
        painter.end()


class WindowHeader(QFrame):
    """Brand, title, engine and variant lists, Run and Stop."""

    engine_chosen = pyqtSignal(str)
    variant_chosen = pyqtSignal(str)
    gpu_chosen = pyqtSignal(str)
    run_requested = pyqtSignal()
    stop_requested = pyqtSignal()

    def __init__(self, menu: QMenu) -> None:
        super().__init__()
        set_role(self, "bar")
        self.menu = QToolButton()
        set_role(self.menu, "flat")
        self.menu.setText("☰")
        self.menu.setToolTip("Menu (F10)")
        self.menu.setAccessibleName("Menu")
        self.menu.setMenu(menu)
        self.menu.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.menu.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.title = label("", "title", name="Pattern")
        self.summary = ElidedLabel("caption", "Summary of the pattern")
        self.brand = label("Lockstep", "brand")
        self.engine = ElidedBox("Engine", "Where the kernels run")
        for name, (text, tip) in ENGINES.items():
            self.engine.addItem(text, name)
            self.engine.setItemData(self.engine.count() - 1, tip, Qt.ItemDataRole.ToolTipRole)
        self.gpu = ElidedBox("Modeled GPU", "GPU for modeled times")
        for key in list_gpus():
            gpu = find_gpu(key)
            name = short_name(gpu.name)
            self.gpu.addItem(name + (_VALIDATED if gpu.validated else _NOT_VALIDATED), key)
            self.gpu.setItemData(self.gpu.count() - 1, name, BRIEF_TEXT_ROLE)
            tip = f"{gpu.name}: {_VALIDATED_TITLE if gpu.validated else _NOT_VALIDATED_TITLE}"
            self.gpu.setItemData(self.gpu.count() - 1, tip, Qt.ItemDataRole.ToolTipRole)
        ladder = "Variant (keys 1 to 9, 0 for the tenth, Ctrl+1 for the eleventh)"
        self.variant = LadderBox("Variant", ladder)
        self.run = button("Run", "primary", tip="Run again (F5)")
        self.stop = button("Stop", tip="Stop at once (Esc)")
        self.stop.setEnabled(False)
        self._shows_pattern = True
        self.progress = ProgressLine()

        line = QHBoxLayout()
        line.setContentsMargins(8, 6, 12, 4)
        line.setSpacing(8)
        line.addWidget(self.menu)
        line.addWidget(self.brand)
        words = QWidget()
        words.setLayout(column(0, self.title, self.summary, 0, spacing=0))
        line.addSpacing(8)
        line.addWidget(words, 2)
        line.addWidget(self.engine, 3)
        line.addWidget(self.gpu, 2)
        line.addWidget(self.variant, 5)
        for widget in (self.run, self.stop):
            line.addWidget(widget)
        self.setLayout(column(line, self.progress, spacing=0))
        self.engine.activated.connect(lambda: self.engine_chosen.emit(self.engine.currentData()))
        self.variant.activated.connect(lambda: self.variant_chosen.emit(self.variant.currentData()))
        self.gpu.activated.connect(lambda: self.gpu_chosen.emit(self.gpu.currentData()))
        self.run.clicked.connect(self.run_requested)
        self.stop.clicked.connect(self.stop_requested)
        self.resize_with_text()

    def resize_with_text(self) -> None:
        """Set widths in proportion to the text size."""
        widths = (self.engine, *_ENGINE_WIDTHS), (self.gpu, *_GPU_WIDTHS), (self.variant, *_VARIANT_WIDTHS)
        for box, least, most in widths:
            box.setMinimumWidth(look().px(least))
            box.setMaximumWidth(look().px(most))
            box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
            box.setMinimumContentsLength(8)
        self._reserve_widths()

    def _reserve_widths(self) -> None:
        """Reserve room for the summary and the lists.

        In a narrow header the program's name is hidden first, then the engine list, which Preferences offers too.
        """
        self.summary.ensurePolished()
        self.engine.setMinimumWidth(look().px(_ENGINE_WIDTHS[0]))
        summary_width = self.summary.fontMetrics().horizontalAdvance(self.summary.toolTip()) + 2
        lists = [self.gpu, *((self.engine, self.variant) if self._shows_pattern else ())]
        fixed = (self.menu, self.run, self.stop)
        used = sum(each.sizeHint().width() for each in fixed) + sum(each.minimumWidth() for each in lists)
        room = self.width() - used - 8 * (len(fixed) + len(lists) + 2) - 20
        self.engine.setVisible(self._shows_pattern and room >= summary_width)
        if self.engine.isHidden() and self._shows_pattern:
            room += self.engine.minimumWidth() + 8
        brand = self.brand.sizeHint().width() + 8
        # The program's name is shown only if the lists can be wider than their minimum.
        spare = sum(box.maximumWidth() - box.minimumWidth() for box in lists) // 3
        self.brand.setVisible(room - brand >= summary_width + spare)
        self.summary.setMinimumWidth(max(0, min(summary_width, room)))
        # The engine's name is whole before the list of variants becomes wider than its minimum.
        rest = room - summary_width + (8 if self.brand.isHidden() else -brand)
        missing = self.engine.width_of_text() - self.engine.minimumWidth()
        if self.engine.isVisibleTo(self) and 0 < missing <= rest:
            self.engine.setMaximumWidth(max(look().px(_ENGINE_WIDTHS[1]), self.engine.width_of_text()))
            self.engine.setMinimumWidth(self.engine.width_of_text())

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._reserve_widths()

    def show_pattern(self, pattern: Pattern, variant: str, device: Device | None = None) -> None:
        """Show a pattern's name and its ladder, for the device if that is known."""
        self.title.setText(pattern.title)
        self.summary.show_text(pattern.summary)
        self._shows_pattern = True
        self.run.setEnabled(True)
        self.variant.show()
        self.variant.show_ladder(pattern, device)
        self.show_variant(variant)
        self._reserve_widths()

    def show_device(self, device: Device) -> None:
        """Enable the variants that the device can run, and show why the others cannot run."""
        self.variant.show_device(device)

    def show_user_file(self, title: str, name: str) -> None:
        """Show a user's file, which has no ladder."""
        self.title.setText(title)
        self.summary.show_text(name)
        self._shows_pattern = False
        self.run.setEnabled(True)
        self.variant.hide()
        self._reserve_widths()

    def show_variant(self, name: str) -> None:
        """Select a variant in the list."""
        self.variant.setCurrentIndex(self.variant.findData(name))

    def show_engine(self, name: str) -> None:
        """Select an engine in the list."""
        if self.engine.findData(name) < 0:
            self.engine.addItem(name.capitalize(), name)
        self.engine.setCurrentIndex(self.engine.findData(name))
        self._reserve_widths()

    def show_gpu(self, key: str) -> None:
        """Select the GPU for modeled times."""
        self.gpu.setCurrentIndex(self.gpu.findData(key))

    def show_busy(self, busy: bool) -> None:
        """Enable Stop while something can be stopped."""
        self.stop.setEnabled(busy)
        if not busy:
            self.progress.show_fraction(0.0)

    def show_progress(self, fraction: float | None) -> None:
        """Show the progress of a run as a fraction; None means unknown."""
        self.progress.show_fraction(fraction)
