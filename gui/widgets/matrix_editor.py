"""Matrix editor: a grid of numbers, colored by sign and magnitude."""

from __future__ import annotations

from typing import Any

import numpy as np
from PyQt6.QtCore import QAbstractTableModel, QEvent, QModelIndex, QRect, Qt, pyqtSignal
from PyQt6.QtGui import QColor, QKeyEvent, QPainter, QPen, QResizeEvent
from PyQt6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QLineEdit,
    QSizePolicy,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)

from gpu.declaration.pattern import Array
from gui.painting.colors import mix_colors
from gui.painting.theme import code_font, look
from gui.qt.events import is_event_type

_MIN_LEGIBLE_CELL = 30
"""Minimum width of a cell that shows its number, in pixels at the normal text size."""


class _MatrixModel(QAbstractTableModel):
    edited = pyqtSignal()
    refused = pyqtSignal(str)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.values: Array = np.zeros((1, 1), np.float32)
        self.largest = 1.0
        """The largest magnitude, to which colors are scaled; 1 if all values are 0."""
        self.read_only = False

    def rowCount(self, parent: QModelIndex | None = None) -> int:
        return int(self.values.shape[0])

    def columnCount(self, parent: QModelIndex | None = None) -> int:
        return int(self.values.shape[1])

    def data(self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        value = float(self.values[index.row(), index.column()])
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.EditRole):
            return format_short_number(value) if role == Qt.ItemDataRole.DisplayRole else f"{value:.7g}"
        if role in (Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleTextRole):
            return f"row {index.row()}, column {index.column()}: {value:.7g}"
        return None

    def flags(self, index: QModelIndex) -> Qt.ItemFlag:
        usual = Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemIsEnabled
        return usual if self.read_only else usual | Qt.ItemFlag.ItemIsEditable

    def setData(self, index: QModelIndex, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        text = str(value).strip().replace(",", ".")
        try:
            number = _parse_number(text)
        except ValueError:
            self.refused.emit(f"{text!r} is not a number. Enter for example 0.25, -1 or 1/9.")
            return False
        if self.values[index.row(), index.column()] != number:
            self.values = self.values.copy()
            self.values[index.row(), index.column()] = number
            self._compute_magnitude()
            self.dataChanged.emit(self.index(0, 0), self.index(self.rowCount() - 1, self.columnCount() - 1))
        self.edited.emit()
        return True

    def set_values(self, values: Array, *, read_only: bool) -> None:
        self.beginResetModel()
        self.values, self.read_only = np.array(values, np.float32), read_only
        self._compute_magnitude()
        self.endResetModel()

    def _compute_magnitude(self) -> None:
        self.largest = float(np.abs(self.values).max(initial=0.0)) or 1.0


def _parse_number(text: str) -> np.float32:
    above, _, below = text.partition("/")
    try:
        with np.errstate(over="ignore"):
            number = np.float32(float(above) / float(below)) if below else np.float32(text)
    except ZeroDivisionError:
        raise ValueError(text) from None
    if not np.isfinite(number):
        raise ValueError(text)
    return number


def format_short_number(value: float) -> str:
    """Return a coefficient in about five characters."""
    if value == int(value) and abs(value) < 1000:
        return str(int(value))
    if 0.001 <= abs(value) < 100:
        text = f"{value:.3f}".rstrip("0").rstrip(".")
        return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text
    return f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e")


class _CellDelegate(QStyledItemDelegate):
    def __init__(self, model: _MatrixModel, parent: QWidget) -> None:
        super().__init__(parent)
        self._model = model

    def paint(self, painter: QPainter | None, option: QStyleOptionViewItem, index: QModelIndex) -> None:
        assert painter is not None
        theme, model = look().theme, self._model
        value = float(model.values[index.row(), index.column()])
        strength = (abs(value) / model.largest) ** 0.7
        ground = mix_colors(theme.accent if value >= 0 else theme.bad, theme.raised, 0.75 * strength)
        area = QRect(option.rect).adjusted(0, 0, -1, -1) if option.rect.width() > 6 else QRect(option.rect)
        painter.fillRect(area, ground)
        if option.rect.width() >= look().px(_MIN_LEGIBLE_CELL) and option.rect.height() >= look().px(14):
            is_bright = 0.299 * ground.red() + 0.587 * ground.green() + 0.114 * ground.blue() > 140
            painter.setPen(QColor("#0b1118" if is_bright else "#f2f6fb"))
            size = min(look().small_px, round(option.rect.width() / 3.2), option.rect.height() - 2)
            painter.setFont(code_font(max(8, size)))
            painter.drawText(area, Qt.AlignmentFlag.AlignCenter, format_short_number(value))
        if option.state & QStyle.StateFlag.State_HasFocus:
            painter.setPen(QPen(QColor(theme.text), 2))
            painter.drawRect(area.adjusted(1, 1, -1, -1))

    def createEditor(self, parent: QWidget | None, option: QStyleOptionViewItem, index: QModelIndex) -> QWidget:
        editor = QLineEdit(parent)
        editor.setAccessibleName(f"Coefficient in row {index.row()}, column {index.column()}")
        editor.setStyleSheet("padding: 0 2px; border-radius: 0; min-height: 0;")
        editor.setMinimumWidth(look().px(64))
        return editor


class MatrixEditor(QTableView):
    """A table to view and edit a matrix. Enter, F2 or typing edits a cell; arrow keys move."""

    changed = pyqtSignal()
    refused = pyqtSignal(str)
    exited = pyqtSignal()

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self._model = _MatrixModel(self)
        self._model.edited.connect(self.changed)
        self._model.refused.connect(self.refused)
        self.setModel(self._model)
        self.setItemDelegate(_CellDelegate(self._model, self))
        for header in (self.horizontalHeader(), self.verticalHeader()):
            assert header is not None
            header.hide()
            header.setMinimumSectionSize(2)
            header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.setShowGrid(False)
        self.setTabKeyNavigation(False)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setEditTriggers(
            QAbstractItemView.EditTrigger.DoubleClicked
            | QAbstractItemView.EditTrigger.EditKeyPressed
            | QAbstractItemView.EditTrigger.AnyKeyPressed
            | QAbstractItemView.EditTrigger.SelectedClicked
        )
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMinimumSize(90, 90)

    @property
    def values(self) -> Array:
        """Return the matrix: square, float32."""
        return self._model.values

    @property
    def read_only(self) -> bool:
        """Return whether editing is disabled."""
        return self._model.read_only

    def show_values(self, values: Array, *, read_only: bool) -> None:
        """Show another matrix; the focused cell keeps the focus if the size is the same."""
        if self._model.read_only == read_only and np.array_equal(self._model.values, values):
            return
        current = self.currentIndex()
        row, column = current.row(), current.column()
        is_same_size = self._model.values.shape == np.shape(values)
        self._model.set_values(values, read_only=read_only)
        self._fit_cells()
        if is_same_size and current.isValid():
            self.setCurrentIndex(self._model.index(row, column))

    def _fit_cells(self) -> None:
        """Make the cells as large as fit, square or up to 1.45 times as wide as high, and center the grid."""
        rows = self._model.rowCount()
        side = max(2, min(self.width(), self.height()) // rows)
        width = max(side, min(self.width() // rows, round(side * 1.45)))
        for index in range(rows):
            self.setColumnWidth(index, width)
            self.setRowHeight(index, side)
        spare_x, spare_y = self.width() - width * rows, self.height() - side * rows
        self.setViewportMargins(max(0, spare_x // 2), max(0, spare_y // 2), 0, 0)

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._fit_cells()

    def leaveEvent(self, event: QEvent | None) -> None:
        super().leaveEvent(event)
        self.exited.emit()

    def event(self, event: QEvent | None) -> bool:
        # A digit starts a number here: it must not trigger the shortcut that selects a variant.
        override = is_event_type(event, QEvent.Type.ShortcutOverride)
        if override and isinstance(event, QKeyEvent) and not self.read_only:
            plain = not event.modifiers() & Qt.KeyboardModifier.ControlModifier
            if plain and event.text() and event.text().isprintable():
                event.accept()
                return True
        return bool(super().event(event))

    def keyPressEvent(self, event: QKeyEvent | None) -> None:
        assert event is not None
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.state() != self.State.EditingState:
            self.edit(self.currentIndex())
            return
        super().keyPressEvent(event)
