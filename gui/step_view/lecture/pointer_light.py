"""The presenter's pointer: it highlights the cell, line or lane under the mouse for the audience."""

from __future__ import annotations

from typing import Protocol

from PyQt6.QtCore import QEvent, QObject, QPointF, QRectF, Qt
from PyQt6.QtGui import QColor, QMouseEvent, QPaintEvent, QPen
from PyQt6.QtWidgets import QWidget

from gui.painting.painters import create_smooth_painter
from gui.painting.theme import look

_GLOW = 7
"""Width of the glow in pixels, at the normal text size."""


class Highlightable(Protocol):
    """A widget with parts that can be highlighted."""

    def box_at(self, point: QPointF) -> QRectF | None:
        """Return the box of the cell, line or lane under a point, or None."""


class PointerLight(QWidget):
    """An overlay that highlights the parts of watched widgets under the mouse.

    Parameters
    ----------
    covered_widget : QWidget
        The widget to cover, which contains the watched ones.
    """

    def __init__(self, covered_widget: QWidget) -> None:
        super().__init__(covered_widget)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setAccessibleName("Pointer")
        self.enabled = True
        self.highlighted_box: QRectF | None = None
        """The highlighted box in this widget's coordinates, or None."""
        self._pointer_position: tuple[QWidget, QPointF] | None = None
        self._watched: list[QWidget] = []

    def watch(self, *widgets: QWidget) -> None:
        """Highlight the parts of these widgets too."""
        for widget in widgets:
            widget.installEventFilter(self)
            self._watched.append(widget)

    def stop_watching(self) -> None:
        """Stop watching all widgets."""
        for widget in self._watched:
            widget.removeEventFilter(self)
        self._watched.clear()
        self._highlight_at(None)

    def set_enabled(self, enabled: bool) -> None:
        """Switch the highlight on or off."""
        self.enabled = enabled
        self.update_highlight()

    def update_highlight(self) -> None:
        """Update the highlight, since the part under the mouse may have changed."""
        self._highlight_at(self._pointer_position)

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:
        if isinstance(watched, QWidget) and event is not None:
            if isinstance(event, QMouseEvent) and event.type() == QEvent.Type.MouseMove:
                self._highlight_at((watched, event.position()))
                # No tooltips while the pointer is on: they would cover neighboring parts.
                return self.enabled and not event.buttons()
            if event.type() in (QEvent.Type.Leave, QEvent.Type.Hide) and self._pointer_position is not None:
                # The next widget's enter event may come before this widget's leave event.
                self._highlight_at(None if self._pointer_position[0] is watched else self._pointer_position)
            elif event.type() == QEvent.Type.ToolTip:
                return self.enabled
        return super().eventFilter(watched, event)

    def _highlight_at(self, at: tuple[QWidget, QPointF] | None) -> None:
        self._pointer_position = at
        box: QRectF | None = None
        if at is not None and self.enabled:
            pointed: Highlightable = at[0]  # type: ignore[assignment]
            box = pointed.box_at(at[1])
            if box is not None:
                box = box.intersected(QRectF(at[0].rect()))
                box.translate(QPointF(at[0].mapTo(self.parentWidget(), at[0].rect().topLeft())))
        if box != self.highlighted_box:
            around = look().px(_GLOW) + 4
            for each in (self.highlighted_box, box):
                if each is not None:
                    self.update(each.adjusted(-around, -around, around, around).toAlignedRect())
            self.highlighted_box = box

    def paintEvent(self, event: QPaintEvent | None) -> None:
        if self.highlighted_box is None:
            return
        painter = create_smooth_painter(self)
        color = QColor(look().theme.warn)
        glow = look().px(_GLOW)
        for width, opacity in ((glow, 0.28), (glow / 2, 0.4)):
            painter.setOpacity(opacity)
            painter.setPen(QPen(color, width))
            painter.drawRoundedRect(self.highlighted_box, 5, 5)
        painter.setOpacity(1.0)
        painter.setPen(QPen(color, 3))
        painter.drawRoundedRect(self.highlighted_box, 5, 5)
        painter.end()
