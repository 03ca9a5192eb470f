"""Find clipped texts, widgets outside their parents, and overlapping widgets in a window."""

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

_MAX_EVENT_LOOP_TURNS = 100


def find_clipped_when_settled(window):
    """Return the clipped widgets once the layout is stable, which takes some turns of the event loop."""
    for _ in range(_MAX_EVENT_LOOP_TURNS):
        if not find_clipped(window):
            return []
        QTest.qWait(20)
    return find_clipped(window)


def find_clipped(window):
    """Return clipped texts, widgets outside their parents, and overlapping widgets."""
    widgets = list(_iterate_visible_widgets(window))
    found = _find_overlaps(widgets)
    for widget in widgets:
        if text := _find_clipped_text(widget):
            found.append((type(widget).__name__, widget.accessibleName(), text))
        elif isinstance(widget, QLabel | QPushButton | QComboBox) and _is_outside_parent(widget, window):
            found.append(("outside its parent", widget.accessibleName(), getattr(widget, "text", str)()))
    return found


def _iterate_visible_widgets(parent):
    """Yield the visible widgets inside a widget: most of a window's are on pages that are hidden."""
    for child in parent.children():
        if isinstance(child, QWidget) and child.isVisible():
            yield child
            yield from _iterate_visible_widgets(child)


def _find_clipped_text(widget):
    metrics = widget.fontMetrics()
    if isinstance(widget, ElidedLabel | ElidedButton | ElidedBox):
        return ""  # the text ends in an ellipsis, and the tooltip has all of it
    if isinstance(widget, QLabel) and widget.textFormat() == Qt.TextFormat.PlainText and widget.text():
        if widget.wordWrap():
            fits = widget.heightForWidth(widget.width()) <= widget.height() + 1
        else:
            longest = max(map(metrics.horizontalAdvance, widget.text().split("\n")))
            fits = longest <= widget.contentsRect().width() + 1 and metrics.height() <= widget.height() + 1
        return "" if fits else widget.text()
    if isinstance(widget, QPushButton):
        return widget.text() if metrics.horizontalAdvance(widget.text()) > widget.width() else ""
    if isinstance(widget, QComboBox):
        option = QStyleOptionComboBox()
        widget.initStyleOption(option)
        field = QStyle.SubControl.SC_ComboBoxEditField
        available_width = (
            widget.style().subControlRect(QStyle.ComplexControl.CC_ComboBox, option, field, widget).width()
        )
        return widget.currentText() if metrics.horizontalAdvance(widget.currentText()) > available_width else ""
    return ""


def _is_outside_parent(widget, window):
    """Return whether a widget extends beyond a parent that does not scroll."""
    box, parent = QRect(widget.pos(), widget.size()), widget.parentWidget()
    while parent is not None and parent is not window:
        if isinstance(parent, QAbstractScrollArea) or isinstance(parent.parentWidget(), QAbstractScrollArea):
            return False
        if not parent.rect().adjusted(-1, -1, 1, 1).contains(box):
            return True
        box.translate(parent.pos())
        parent = parent.parentWidget()
    return False


def _find_overlaps(widgets):
    """Return pairs of overlapping buttons or lists."""
    siblings = {}
    for widget in widgets:
        if isinstance(widget, QAbstractButton | QComboBox):
            siblings.setdefault(widget.parentWidget(), []).append(widget)
    return [
        ("overlap", one.accessibleName(), other.accessibleName())
        for widgets in siblings.values()
        for one, other in combinations(widgets, 2)
        if one.geometry().intersects(other.geometry())
    ]
