"""Vertically scrollable column of widgets."""

from __future__ import annotations

from PyQt6.QtCore import QEvent, QObject, QSize, Qt
from PyQt6.QtGui import QResizeEvent
from PyQt6.QtWidgets import QFrame, QScrollArea, QVBoxLayout

from gui.widgets.basic import Ground


class _Column(Ground):
    """A column that asks only for its minimum height; Qt would scroll as soon as the preferred height does not fit."""

    def heightForWidth(self, width: int) -> int:
        layout = self.layout()
        assert layout is not None
        return layout.minimumHeightForWidth(width)


class ScrollColumn(QScrollArea):
    """A scroll area with a column as wide as the area; no widget in it gets less than its minimum height."""

    def __init__(self) -> None:
        super().__init__()
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.content = _Column()
        self.column = QVBoxLayout(self.content)
        self.column.setContentsMargins(0, 0, 0, 0)
        self.column.setSpacing(8)
        self.setWidget(self.content)

    def minimumSizeHint(self) -> QSize:
        bar = self.verticalScrollBar()
        bar_width = bar.sizeHint().width() if bar is not None and bar.maximum() > 0 else 0
        return QSize(self.content.minimumSizeHint().width() + bar_width, super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        if (viewport := self.viewport()) is not None:
            self.content.setMaximumWidth(viewport.width())
        super().resizeEvent(event)

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:
        if event is not None and event.type() == QEvent.Type.LayoutRequest:
            self.updateGeometry()  # Qt assumes that scrolled content may have any width
        return super().eventFilter(watched, event)
