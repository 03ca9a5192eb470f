"""Basic widgets of the window: labels, buttons, cards, segments; and number formatting."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from textwrap import fill

from PyQt6.QtCore import QSize, Qt, pyqtSignal
from PyQt6.QtGui import QColor, QPainter, QPaintEvent
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
    QTabBar,
    QVBoxLayout,
    QWidget,
)

from gui.painting.theme import look


def set_role(widget: QWidget, name: str) -> None:
    """Set the role by which the style sheet styles `widget`."""
    widget.setProperty("role", name)


def restyle(widget: QWidget, name: str, value: object) -> None:
    """Set a property that the style sheet selects by, and apply the style sheet again."""
    if widget.property(name) == value:
        return
    widget.setProperty(name, value)
    if style := widget.style():
        style.unpolish(widget)
        style.polish(widget)


class Ground(QWidget):
    """The background of cards; it is opaque, so that repainting a card does not repaint widgets behind it."""

    def __init__(self) -> None:
        super().__init__()
        # Qt treats a background from a style sheet as transparent, and repaints everything behind it.
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)

    def paintEvent(self, event: QPaintEvent | None) -> None:
        assert event is not None
        painter = QPainter(self)
        painter.fillRect(event.rect(), QColor(look().theme.canvas))
        painter.end()


_TIP_COLUMNS = 100


@lru_cache(maxsize=1000)
def wrap_tip(text: str) -> str:
    """Return the text of a tooltip in lines of at most 100 characters: Qt does not wrap plain text in tooltips."""
    lines = text.split("\n")
    return "\n".join(
        fill(line, _TIP_COLUMNS, break_long_words=False, break_on_hyphens=False) if len(line) > _TIP_COLUMNS else line
        for line in lines
    )


def label(text: str = "", look: str = "", *, wrap: bool = False, name: str = "") -> QLabel:
    """Return a label with plain text.

    Parameters
    ----------
    text : str
        The text, in which HTML is not interpreted.
    look : str
        The label's role in the style sheet; "" for none.
    wrap : bool
        Whether to wrap lines.
    name : str
        The accessible name; "" for the text.
    """
    widget = QLabel(text)
    widget.setTextFormat(Qt.TextFormat.PlainText)
    widget.setWordWrap(wrap)
    if look:
        set_role(widget, look)
    if name:
        widget.setAccessibleName(name)
    return widget


def button(text: str, look: str = "", *, tip: str = "", name: str = "") -> QPushButton:
    """Return a push button that can be focused with Tab.

    Parameters
    ----------
    look : str
        The button's role in the style sheet; "" for none.
    tip : str
        The tooltip; "" for none.
    name : str
        The accessible name; "" for the text.
    """
    widget = QPushButton(text)
    if look:
        set_role(widget, look)
    widget.setToolTip(tip)
    widget.setAccessibleName(name or text)
    widget.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    return widget


_NO_MARGINS = (0, 0, 0, 0)


def row(
    *items: QWidget | QLayout | int,
    spacing: int = 8,
    margins: tuple[int, int, int, int] = _NO_MARGINS,
    stretch: int | None = None,
) -> QHBoxLayout:
    """Return a row of widgets and layouts.

    Parameters
    ----------
    *items : QWidget, QLayout or int
        A number is a gap in pixels, 0 a stretchable gap.
    spacing : int
        Pixels between items.
    margins : tuple of int
        Pixels at the left, top, right and bottom.
    stretch : int or None
        The index of the item that takes additional space; None for each by its size policy.
    """
    layout = QHBoxLayout()
    _fill(layout, items, spacing, margins, stretch)
    return layout


def column(
    *items: QWidget | QLayout | int,
    spacing: int = 8,
    margins: tuple[int, int, int, int] = _NO_MARGINS,
    stretch: int | None = None,
) -> QVBoxLayout:
    """Return a column of widgets and layouts; parameters as for `row`."""
    layout = QVBoxLayout()
    _fill(layout, items, spacing, margins, stretch)
    return layout


def dialog_column(title: str, *items: QWidget | QLayout | int) -> QVBoxLayout:
    """Return the column of a dialog: its title, and items as for `row`."""
    return column(label(title, "title"), *items, spacing=16, margins=(24, 20, 24, 16))


def _fill(
    layout: QBoxLayout,
    items: tuple[QWidget | QLayout | int, ...],
    spacing: int,
    margins: tuple[int, int, int, int],
    stretch: int | None,
) -> None:
    layout.setContentsMargins(*margins)
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
    if stretch is not None:
        layout.setStretch(stretch, 1)


def create_tab_bar() -> QTabBar:
    """Return a tab bar of a page, as wide as its tabs."""
    tabs = QTabBar()
    tabs.setExpanding(False)
    tabs.setDrawBase(False)
    tabs.setUsesScrollButtons(False)
    tabs.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
    return tabs


def split(
    orientation: Qt.Orientation, *parts: QWidget, sizes: Sequence[int] = (), stretch: Sequence[int] = ()
) -> QSplitter:
    """Return a splitter with parts that do not collapse.

    Parameters
    ----------
    orientation : Qt.Orientation
        Whether the parts are side by side or stacked.
    *parts : QWidget
        The parts in order.
    sizes : sequence of int
        Initial sizes in pixels, one per part; empty for the parts' own.
    stretch : sequence of int
        Factors by which the first parts share additional space.
    """
    splitter = QSplitter(orientation)
    splitter.setChildrenCollapsible(False)
    splitter.setHandleWidth(8)
    for part in parts:
        splitter.addWidget(part)
    for index, share in enumerate(stretch):
        splitter.setStretchFactor(index, share)
    if sizes:
        splitter.setSizes(list(sizes))
    return splitter


class ElidedLabel(QLabel):
    """A label that is elided where space is short, with the full text as tooltip.

    Its size does not depend on its text, so updates, perhaps twenty per second, never trigger a new layout.
    """

    def __init__(self, look: str, name: str, *, right: bool = False) -> None:
        super().__init__()
        set_role(self, look)
        side = Qt.AlignmentFlag.AlignRight if right else Qt.AlignmentFlag.AlignLeft
        self.setAlignment(side | Qt.AlignmentFlag.AlignVCenter)
        self.setAccessibleName(name)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self._full_text = ""
        self._forms: tuple[str, ...] = ("",)

    def show_text(self, text: str, *shorter: str) -> None:
        """Set the text, and shorter forms of it: the first form that fits is painted, and elided is only the last."""
        if (text, *shorter) == self._forms:
            return
        self._full_text, self._forms = text, (text, *shorter)
        self.setToolTip(wrap_tip(text))
        self.setAccessibleDescription(text)
        self.update()

    def text(self) -> str:
        # When it is read or painted, rather than in `changeEvent`, which Qt calls several times for each new label.
        room, metrics = self.contentsRect().width(), self.fontMetrics()
        fitting = next((form for form in self._forms if metrics.horizontalAdvance(form) <= room), None)
        if fitting is not None:
            return fitting
        elided = metrics.elidedText(self._forms[-1], Qt.TextElideMode.ElideRight, room)
        return elided if len(elided) > 1 else ""  # no ellipsis alone

    def sizeHint(self) -> QSize:
        margins = self.contentsMargins()
        return QSize(0, self.fontMetrics().height() + margins.top() + margins.bottom())

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent | None) -> None:
        painter, style = QPainter(self), self.style()
        assert style is not None
        style.drawItemText(painter, self.contentsRect(), int(self.alignment()), self.palette(), self.isEnabled(),
                           self.text(), self.foregroundRole())  # fmt: skip
        painter.end()


class ElidedButton(QPushButton):
    """A flat button that elides its text where space is short, with the full text in its tooltip."""

    def __init__(self, name: str, tip: str) -> None:
        super().__init__()
        set_role(self, "flat")
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._tip, self._suffix = tip, ""
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)

    def show_text(self, text: str, suffix: str = "") -> None:
        """Set the text, and an `suffix` that is never elided."""
        self._suffix = suffix
        self.setText(text + suffix)
        self.setToolTip(f"{text}\n{self._tip}")
        self.setAccessibleDescription(text)

    def minimumSizeHint(self) -> QSize:
        return QSize(self.fontMetrics().height() * 4, super().minimumSizeHint().height())

    def initStyleOption(self, option: QStyleOptionButton | None) -> None:
        super().initStyleOption(option)
        style = self.style()
        if option is not None and style is not None:
            room = style.subElementRect(QStyle.SubElement.SE_PushButtonContents, option, self).width()
            metrics, text = self.fontMetrics(), (option.text or "").removesuffix(self._suffix)
            room -= metrics.horizontalAdvance(self._suffix)
            option.text = metrics.elidedText(text, Qt.TextElideMode.ElideRight, room) + self._suffix


class Badge(QLabel):
    """A word in a rounded box, such as "measured" or "verified"."""

    def __init__(self, text: str = "", tone: str = "neutral") -> None:
        super().__init__(text)
        self.setProperty("badge", tone)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)

    def show_text(self, text: str, tone: str, tip: str = "") -> None:
        """Show `text` in `tone`: neutral, good, warn or bad. No text hides the badge."""
        self.setText(text)
        self.setToolTip(wrap_tip(tip))
        self.setAccessibleName(text)
        restyle(self, "badge", tone)
        self.setVisible(bool(text))


HEAD_HEIGHT = 24
"""Minimum height in pixels of a card's title line."""


class Card(QFrame):
    """A panel with a title line; `head` is the layout of that line, `body` that of the whole card."""

    def __init__(self, title: str, *, margins: tuple[int, int, int, int] = (12, 10, 12, 12)) -> None:
        super().__init__()
        set_role(self, "card")
        self.setAccessibleName(title)
        self.title = label(title, "card-title")
        self.head = row(self.title)
        self.body = QVBoxLayout(self)
        self.body.setContentsMargins(*margins)
        self.body.setSpacing(8)
        self.body.addLayout(self.head)
        # The titles of neighboring cards align, whatever else their title lines contain.
        self.title.setMinimumHeight(HEAD_HEIGHT)


class Segments(QWidget):
    """A row of buttons for a few exclusive choices."""

    picked = pyqtSignal(str)
    """The name of the new choice."""

    def __init__(self, names: tuple[str, ...], accessible: str) -> None:
        super().__init__()
        self.setAccessibleName(accessible)
        self.group = QButtonGroup(self)
        self.buttons = {}
        layout = self._line(self)
        for name in names:
            segment = button(name, "segment", name=f"{accessible}: {name}")
            segment.setCheckable(True)
            self.group.addButton(segment)
            self.buttons[name] = segment
            layout.addWidget(segment)
        self.buttons[names[0]].setChecked(True)
        self.group.buttonToggled.connect(lambda _, on: self.picked.emit(self.chosen) if on else None)

    @staticmethod
    def _line(widget: QWidget) -> QHBoxLayout:
        layout = QHBoxLayout(widget)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2)
        layout.setSizeConstraint(QHBoxLayout.SizeConstraint.SetFixedSize)
        return layout

    def move_buttons_to_widget(self, *names: str) -> QWidget:
        """Move some of the buttons to a separate widget, which can be placed on another line."""
        part = QWidget()
        layout = self._line(part)
        for name in names:
            layout.addWidget(self.buttons[name])
        return part

    def choose(self, name: str) -> None:
        """Select a choice, as a click would."""
        self.buttons[name].setChecked(True)

    @property
    def chosen(self) -> str:
        """Return the name of the selected choice."""
        return next(name for name, segment in self.buttons.items() if segment.isChecked())


def format_count(number: float) -> str:
    """Return a whole number with thin spaces between thousands: 1 048 576."""
    return f"{int(number):,}".replace(",", "\u202f")


def format_figure(value: float) -> str:
    """Return a number with three or four significant digits."""
    size = abs(value)
    if size == 0:
        return "0"
    if size == math.inf:
        return "∞"
    if size >= 1000:
        return format_count(round(value))
    if size >= 100:
        return f"{value:.0f}"
    if size >= 10:
        return f"{value:.1f}"
    if size >= 0.01:
        return f"{value:.2f}" if size >= 1 else f"{value:.3f}"
    return f"{value:.1e}"
