"""Painters of widgets."""

from __future__ import annotations

from PyQt6.QtGui import QPainter
from PyQt6.QtWidgets import QWidget


def create_smooth_painter(widget: QWidget) -> QPainter:
    """Return a painter for a paint event of a widget, which smooths edges."""
    painter = QPainter(widget)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    return painter
