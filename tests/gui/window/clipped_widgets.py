"""Finds in a window what is not seen as a whole."""

from __future__ import annotations

from itertools import combinations

from PyQt6.QtCore import QRect, Qt
from PyQt6.QtTest import QTest
from PyQt6.QtWidgets import (
    QAbstractButton,
    QAbstractScrollArea,
    QComboBox,
    QLabel,
    QPushButton,
    QStyle,
    QStyleOptionComboBox,
    QWidget,
)

from gui.widgets.basic import ElidedButton, ElidedLabel
from gui.widgets.elided_box import ElidedBox

_TURNS = 100


def find_clipped_when_settled(window):
    """Return what is cut when the layout, which takes some turns of the event loop, stands."""
    for _ in range(_TURNS):
        if not find_clipped(window):
            return []
        QTest.qWait(20)
    return find_clipped(window)


def find_clipped(window):
    """Return what is not shown as a whole: texts without room, parts beyond what they are in, or upon each other."""
    found = _find_overlaps(window)
    for widget in window.findChildren(QWidget):
        if widget.isVisible() and (text := _find_clipped_text(widget)):
            found.append((type(widget).__name__, widget.accessibleName(), text))
        elif isinstance(widget, QLabel | QPushButton | QComboBox) and widget.isVisible() and _is_beyond(widget, window):
            found.append(("beyond its parent", widget.accessibleName(), getattr(widget, "text", str)()))
    return found


def _find_clipped_text(widget):
    metrics = widget.fontMetrics()
    if isinstance(widget, ElidedLabel | ElidedButton | ElidedBox):
        return ""  # it ends in an ellipsis, and says all in its tool tip
    if isinstance(widget, QLabel) and widget.textFormat() == Qt.TextFormat.PlainText and widget.text():
        if widget.wordWrap():
            whole = widget.heightForWidth(widget.width()) <= widget.height() + 1
        else:
            longest = max(map(metrics.horizontalAdvance, widget.text().split("\n")))
            whole = longest <= widget.contentsRect().width() + 1 and metrics.height() <= widget.height() + 1
        return "" if whole else widget.text()
    if isinstance(widget, QPushButton):
        return widget.text() if metrics.horizontalAdvance(widget.text()) > widget.width() else ""
    if isinstance(widget, QComboBox):
        option = QStyleOptionComboBox()
        widget.initStyleOption(option)
        part = QStyle.SubControl.SC_ComboBoxEditField
        room = widget.style().subControlRect(QStyle.ComplexControl.CC_ComboBox, option, part, widget).width()
        return widget.currentText() if metrics.horizontalAdvance(widget.currentText()) > room else ""
    return ""


def _is_beyond(widget, window):
    """Whether a part of a widget lies outside of what it stands in; what is scrolled may."""
    at, parent = QRect(widget.pos(), widget.size()), widget.parentWidget()
    while parent is not None and parent is not window:
        if isinstance(parent, QAbstractScrollArea) or isinstance(parent.parentWidget(), QAbstractScrollArea):
            return False
        if not parent.rect().adjusted(-1, -1, 1, 1).contains(at):
            return True
        at.translate(parent.pos())
        parent = parent.parentWidget()
    return False


def _find_overlaps(window):
    """Return buttons and lists of which one stands upon its neighbor."""
    of_parent = {}
    for widget in window.findChildren(QWidget):
        if isinstance(widget, QAbstractButton | QComboBox) and widget.isVisible():
            of_parent.setdefault(widget.parentWidget(), []).append(widget)
    return [
        ("upon each other", one.accessibleName(), other.accessibleName())
        for together in of_parent.values()
        for one, other in combinations(together, 2)
        if one.geometry().intersects(other.geometry())
    ]
