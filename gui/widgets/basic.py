"""Small pieces that the window is put together from."""

from __future__ import annotations

import math
from collections.abc import Sequence

from PyQt6.QtCore import QEvent, QSize, Qt, pyqtSignal
from PyQt6.QtGui import QColor, QPainter, QPaintEvent, QResizeEvent
from PyQt6.QtWidgets import (
    QBoxLayout,
    QButtonGroup,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLayout,
    QPushButton,
    QSizePolicy,
    QSplitter,
    QStyle,
    QStyleOptionButton,
    QVBoxLayout,
    QWidget,
)

from gui.painting.theme import look
from gui.qt.events import is_of


def role(widget: QWidget, name: str) -> None:
    """Give `widget` the look that the style sheet has for `name`."""
    widget.setProperty("role", name)


def restyle(widget: QWidget, name: str, value: object) -> None:
    """Set a property that the style sheet looks at, and let it look again."""
    if widget.property(name) == value:
        return
    widget.setProperty(name, value)
    if style := widget.style():
        style.unpolish(widget)
        style.polish(widget)


class Ground(QWidget):
    """What cards stand on. It covers what is behind it: that need not be painted again whenever a card is."""

    def __init__(self) -> None:
        super().__init__()
        # Qt takes a ground that a style sheet paints to let everything through, and paints all that is below it.
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)

    def paintEvent(self, event: QPaintEvent | None) -> None:
        assert event is not None
        painter = QPainter(self)
        painter.fillRect(event.rect(), QColor(look().theme.canvas))
        painter.end()


def label(text: str = "", look: str = "", *, wrap: bool = False, name: str = "") -> QLabel:
    """Return a label with plain text."""
    made = QLabel(text)
    made.setTextFormat(Qt.TextFormat.PlainText)
    made.setWordWrap(wrap)
    if look:
        role(made, look)
    if name:
        made.setAccessibleName(name)
    return made


def button(text: str, look: str = "", *, tip: str = "", name: str = "") -> QPushButton:
    """Return a push button that Tab reaches."""
    made = QPushButton(text)
    if look:
        role(made, look)
    made.setToolTip(tip)
    made.setAccessibleName(name or text)
    made.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    return made


def row(*items: QWidget | int, spacing: int = 8) -> QHBoxLayout:
    """Return a row of widgets; a number is a gap, and 0 one that stretches."""
    layout = QHBoxLayout()
    _fill(layout, items, spacing)
    return layout


def column(*items: QWidget | QLayout | int, spacing: int = 8) -> QVBoxLayout:
    """Return a column of widgets; a number is a gap, and 0 one that stretches."""
    layout = QVBoxLayout()
    _fill(layout, items, spacing)
    return layout


def _fill(layout: QBoxLayout, items: tuple[QWidget | QLayout | int, ...], spacing: int) -> None:
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(spacing)
    for item in items:
        if isinstance(item, QWidget):
            layout.addWidget(item)
        elif isinstance(item, QLayout):
            layout.addLayout(item)
        elif item:
            layout.addSpacing(item)
        else:
            layout.addStretch(1)


def split(
    orientation: Qt.Orientation, *parts: QWidget, sizes: Sequence[int] = (), stretch: Sequence[int] = ()
) -> QSplitter:
    """Return parts in a line with handles between them; what room comes or goes they share as `stretch` says."""
    made = QSplitter(orientation)
    made.setChildrenCollapsible(False)
    made.setHandleWidth(8)
    for part in parts:
        made.addWidget(part)
    for place, share in enumerate(stretch):
        made.setStretchFactor(place, share)
    if sizes:
        made.setSizes(list(sizes))
    return made


class ElidedLabel(QLabel):
    """A label that ends in an ellipsis where there is not enough room, and says all of it in its tool tip.

    Its size does not depend on its text: another one lays out nothing anew, which it may be twenty times a second.
    """

    def __init__(self, look: str, name: str, *, right: bool = False) -> None:
        super().__init__()
        role(self, look)
        side = Qt.AlignmentFlag.AlignRight if right else Qt.AlignmentFlag.AlignLeft
        self.setAlignment(side | Qt.AlignmentFlag.AlignVCenter)
        self.setAccessibleName(name)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self._whole = self._shown = ""

    def say(self, text: str) -> None:
        """Show another text."""
        if text == self._whole:
            return
        self._whole = text
        self.setToolTip(text)
        self.setAccessibleDescription(text)
        self._elide()

    def text(self) -> str:
        return self._shown

    def sizeHint(self) -> QSize:
        margins = self.contentsMargins()
        return QSize(0, self.fontMetrics().height() + margins.top() + margins.bottom())

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent | None) -> None:
        painter, style = QPainter(self), self.style()
        assert style is not None
        style.drawItemText(painter, self.contentsRect(), int(self.alignment()), self.palette(), self.isEnabled(),
                           self._shown, self.foregroundRole())  # fmt: skip
        painter.end()

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._elide()

    def changeEvent(self, event: QEvent | None) -> None:
        super().changeEvent(event)
        if is_of(event, QEvent.Type.FontChange):
            self._elide()
            self.updateGeometry()

    def _elide(self) -> None:
        room = self.contentsRect().width()
        self._shown = self.fontMetrics().elidedText(self._whole, Qt.TextElideMode.ElideRight, room)
        self.update()


class ElidedButton(QPushButton):
    """A flat button that ends in an ellipsis where there is not enough room, and says all of it in its tool tip."""

    def __init__(self, name: str, tip: str) -> None:
        super().__init__()
        role(self, "flat")
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._tip, self._end = tip, ""
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)

    def say(self, text: str, end: str = "") -> None:
        """Show another text, and at its `end` what is never left out."""
        self._end = end
        self.setText(text + end)
        self.setToolTip(f"{text}\n{self._tip}")
        self.setAccessibleDescription(text)

    def minimumSizeHint(self) -> QSize:
        return QSize(self.fontMetrics().height() * 4, super().minimumSizeHint().height())

    def initStyleOption(self, option: QStyleOptionButton | None) -> None:
        super().initStyleOption(option)
        style = self.style()
        if option is not None and style is not None:
            room = style.subElementRect(QStyle.SubElement.SE_PushButtonContents, option, self).width()
            metrics, text = self.fontMetrics(), (option.text or "").removesuffix(self._end)
            room -= metrics.horizontalAdvance(self._end)
            option.text = metrics.elidedText(text, Qt.TextElideMode.ElideRight, room) + self._end


class Badge(QLabel):
    """A word in a pill: "measured", "verified"."""

    def __init__(self, text: str = "", tone: str = "neutral") -> None:
        super().__init__(text)
        self.setProperty("badge", tone)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)

    def say(self, text: str, tone: str, tip: str = "") -> None:
        """Show `text` in `tone`: neutral, good, warn or bad. No text hides the badge."""
        self.setText(text)
        self.setToolTip(tip)
        self.setAccessibleName(text)
        restyle(self, "badge", tone)
        self.setVisible(bool(text))


HEAD_HEIGHT = 24
"""Pixels of a card's title line."""


class Card(QFrame):
    """A surface with a title line; `head` takes more for that line, `body` the rest."""

    def __init__(self, title: str, *, margins: tuple[int, int, int, int] = (12, 10, 12, 12)) -> None:
        super().__init__()
        role(self, "card")
        self.setAccessibleName(title)
        self.title = label(title, "card-title")
        self.head = row(self.title)
        self.body = QVBoxLayout(self)
        self.body.setContentsMargins(*margins)
        self.body.setSpacing(8)
        self.body.addLayout(self.head)
        # Titles of cards side by side stand on one line, whatever else their heads hold.
        self.title.setMinimumHeight(HEAD_HEIGHT)


class Segments(QWidget):
    """A few exclusive choices side by side."""

    picked = pyqtSignal(str)
    """The name that is chosen now."""

    def __init__(self, names: tuple[str, ...], accessible: str) -> None:
        super().__init__()
        self.setAccessibleName(accessible)
        self.group = QButtonGroup(self)
        self.buttons = {}
        layout = self._line(self)
        for name in names:
            made = button(name, "segment", name=f"{accessible}: {name}")
            made.setCheckable(True)
            self.group.addButton(made)
            self.buttons[name] = made
            layout.addWidget(made)
        self.buttons[names[0]].setChecked(True)
        self.group.buttonToggled.connect(lambda _, on: self.picked.emit(self.chosen) if on else None)

    @staticmethod
    def _line(widget: QWidget) -> QHBoxLayout:
        layout = QHBoxLayout(widget)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2)
        layout.setSizeConstraint(QHBoxLayout.SizeConstraint.SetFixedSize)
        return layout

    def take_out(self, *names: str) -> QWidget:
        """Return some of the choices as a part of their own, which may stand on another line."""
        part = QWidget()
        layout = self._line(part)
        for name in names:
            layout.addWidget(self.buttons[name])
        return part

    def choose(self, name: str) -> None:
        """Choose `name` as a click would."""
        self.buttons[name].setChecked(True)

    @property
    def chosen(self) -> str:
        """Return the name that is chosen."""
        return next(name for name, made in self.buttons.items() if made.isChecked())


def as_count(number: float) -> str:
    """Return a whole number with thin spaces between thousands: 1 048 576."""
    return f"{int(number):,}".replace(",", "\u2009")


def as_figure(value: float) -> str:
    """Return a number to three or four digits, as people read it."""
    size = abs(value)
    if size == 0:
        return "0"
    if size == math.inf:
        return "∞"
    if size >= 1000:
        return as_count(round(value))
    if size >= 100:
        return f"{value:.0f}"
    if size >= 10:
        return f"{value:.1f}"
    if size >= 0.01:
        return f"{value:.2f}" if size >= 1 else f"{value:.3f}"
    return f"{value:.1e}"
