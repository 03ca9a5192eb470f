"""The bar on top: what is shown, on which engine, by which variant; run and stop."""

from __future__ import annotations

from PyQt6.QtCore import Qt, pyqtSignal
from PyQt6.QtGui import QColor, QPainter, QPaintEvent, QStandardItemModel
from PyQt6.QtWidgets import (
    QComboBox,
    QFrame,
    QHBoxLayout,
    QMenu,
    QStyle,
    QStyleOptionComboBox,
    QStylePainter,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from gpu.declaration.pattern import Pattern
from gpu.engines.base import Device
from gui.painting.theme import look
from gui.widgets.basic import ElidedLabel, button, label, role

ENGINES = {
    "auto": ("Automatic", "The GPU where there is one, else the simulator"),
    "cuda": ("NVIDIA GPU", "The kernels compiled by nvcc, run on the GPU"),
    "simulator": ("CPU simulator", "The same kernels, run by a SIMT simulator"),
}


class ProgressLine(QWidget):
    """A thin line that fills. Qt's own bar paints at once whenever it changes, which holds the window up."""

    def __init__(self) -> None:
        super().__init__()
        self.setFixedHeight(3)
        self.setAccessibleName("Progress")
        self.fraction: float | None = 0.0

    def show_fraction(self, fraction: float | None) -> None:
        """Fill the line so far; None, not known, is all of it, faintly."""
        self.fraction = fraction
        self.setAccessibleDescription("" if not fraction else f"{fraction:.0%}")
        self.update()

    def paintEvent(self, event: QPaintEvent | None) -> None:
        painter = QPainter(self)
        color = QColor(look().theme.accent if self.fraction is not None else look().theme.accent_soft)
        share = 1.0 if self.fraction is None else self.fraction
        painter.fillRect(0, 0, round(share * self.width()), self.height(), color)
        painter.end()


class ElidedBox(QComboBox):
    """A list whose choice ends in an ellipsis where there is not enough room; its tool tip says all of it."""

    def __init__(self, name: str, tip: str) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self._tip = tip
        self.currentTextChanged.connect(self._show_tip)
        self._show_tip("")

    def shown_text(self) -> str:
        """Return the choice as far as there is room."""
        option = QStyleOptionComboBox()
        self.initStyleOption(option)
        style = self.style()
        assert style is not None
        box, field = QStyle.ComplexControl.CC_ComboBox, QStyle.SubControl.SC_ComboBoxEditField
        room = style.subControlRect(box, option, field, self).width()
        return self.fontMetrics().elidedText(self.currentText(), Qt.TextElideMode.ElideRight, room)

    def paintEvent(self, event: QPaintEvent | None) -> None:
        painter, option = QStylePainter(self), QStyleOptionComboBox()
        self.initStyleOption(option)
        painter.drawComplexControl(QStyle.ComplexControl.CC_ComboBox, option)
        option.currentText = self.shown_text()
        painter.drawControl(QStyle.ControlElement.CE_ComboBoxLabel, option)

    def _show_tip(self, text: str) -> None:
        self.setToolTip(f"{text}\n{self._tip}".strip())


class WindowHeader(QFrame):
    """Brand, title, engine and variant lists, Run and Stop."""

    engine_chosen = pyqtSignal(str)
    variant_chosen = pyqtSignal(str)
    run_wanted = pyqtSignal()
    stop_wanted = pyqtSignal()

    def __init__(self, menu: QMenu) -> None:
        super().__init__()
        role(self, "bar")
        self.menu = QToolButton()
        role(self.menu, "flat")
        self.menu.setText("☰")
        self.menu.setToolTip("Menu (F10)")
        self.menu.setAccessibleName("Menu")
        self.menu.setMenu(menu)
        self.menu.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.menu.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.title = label("", "title", name="Pattern")
        self.summary = ElidedLabel("muted", "What the pattern does")
        self.engine = ElidedBox("Engine", "What runs the kernels")
        for name, (text, tip) in ENGINES.items():
            self.engine.addItem(text, name)
            self.engine.setItemData(self.engine.count() - 1, tip, Qt.ItemDataRole.ToolTipRole)
        ladder = "Rung of the ladder (keys 1 to 9, 0 for the tenth, Ctrl+1 for the eleventh)"
        self.variant = ElidedBox("Variant", ladder)
        self.run = button("Run", "primary", tip="Run again (F5)")
        self.stop = button("Stop", tip="Stop at once (Esc)")
        self.stop.setEnabled(False)
        self.progress = ProgressLine()

        line = QHBoxLayout()
        line.setContentsMargins(8, 8, 12, 5)
        line.setSpacing(8)
        line.addWidget(self.menu)
        line.addWidget(label("Lockstep", "brand"))
        line.addSpacing(20)
        line.addWidget(self.title)
        line.addSpacing(4)
        line.addWidget(self.summary, 2)
        line.addWidget(self.engine, 3)
        line.addWidget(self.variant, 5)
        for widget in (self.run, self.stop):
            line.addWidget(widget)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(line)
        layout.addWidget(self.progress)
        self.engine.activated.connect(lambda: self.engine_chosen.emit(self.engine.currentData()))
        self.variant.activated.connect(lambda: self.variant_chosen.emit(self.variant.currentData()))
        self.run.clicked.connect(self.run_wanted)
        self.stop.clicked.connect(self.stop_wanted)
        self.resize_with_text()

    def resize_with_text(self) -> None:
        """Take widths that go with the text's size."""
        for box, least, most in ((self.engine, 140, 140), (self.variant, 230, 290)):
            box.setMinimumWidth(least)
            box.setMaximumWidth(look().px(most))
            box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
            box.setMinimumContentsLength(8)

    def show_pattern(self, pattern: Pattern, variant: str, device: Device | None = None) -> None:
        """Show a pattern's name and its ladder, on a device where that is known."""
        self.title.setText(pattern.title)
        self.summary.say(pattern.summary)
        self.variant.show()
        self.engine.show()
        self.variant.clear()
        for number, each in enumerate(pattern.variants, 1):
            mark = "  ⚠" if each.cautionary else ""
            self.variant.addItem(f"{number}  {each.title}{mark}", each.name)
            self.variant.setItemData(number - 1, each.cautionary or each.idea, Qt.ItemDataRole.ToolTipRole)
        self.show_libraries(pattern, device.no_library if device is not None else "")
        self.show_variant(variant)

    def show_libraries(self, pattern: Pattern, no_library: str) -> None:
        """Let a pattern's libraries be chosen, or show why they cannot be."""
        model = self.variant.model()
        assert isinstance(model, QStandardItemModel)
        for number, each in enumerate(pattern.variants):
            if each.library and (item := model.item(number)) is not None:
                item.setEnabled(not no_library)
                item.setToolTip(no_library or each.idea)
                item.setText(f"{number + 1}  {each.title}" + (" · not here" if no_library else ""))

    def show_own(self, title: str, name: str) -> None:
        """Show that a file of the user's is open, which has no ladder and runs on the simulator, or not at all."""
        self.title.setText(title)
        self.summary.say(name)
        self.variant.hide()
        self.engine.hide()

    def show_variant(self, name: str) -> None:
        """Show which variant is chosen."""
        self.variant.setCurrentIndex(self.variant.findData(name))

    def show_engine(self, name: str) -> None:
        """Show which engine is asked for."""
        if self.engine.findData(name) < 0:
            self.engine.addItem(name.capitalize(), name)
        self.engine.setCurrentIndex(self.engine.findData(name))

    def show_busy(self, busy: bool) -> None:
        """Let Stop be pressed while there is something to stop."""
        self.stop.setEnabled(busy)
        if not busy:
            self.progress.show_fraction(0.0)

    def show_progress(self, fraction: float | None) -> None:
        """Show how far a run is; None is not known."""
        self.progress.show_fraction(fraction)
