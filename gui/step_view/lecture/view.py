"""Lecture mode: the Step tab's picture, current lines and one sentence fill the window; keys show the rest."""

from __future__ import annotations

from typing import NamedTuple

from PyQt6.QtCore import QEvent, QObject, Qt, pyqtSignal
from PyQt6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QResizeEvent
from PyQt6.QtWidgets import QApplication, QBoxLayout, QHBoxLayout, QVBoxLayout, QWidget

from gui.painting.theme import look
from gui.step_view.lecture.pointer_light import PointerLight
from gui.step_view.lecture.texts import CodeLines, Sentence
from gui.step_view.tab import StepTab
from gui.widgets.view_keys import ViewKeys

HINT = "F11 exit  ·  B blank  ·  C code  ·  T time  ·  L lanes  ·  P pointer"
MAX_COLUMN_WIDTH = 120
"""Maximum column width in pixels, at the normal text size."""


class BorrowedWidget(NamedTuple):
    """A widget taken from a layout, and its position there."""

    widget: QWidget
    layout: QBoxLayout
    layout_index: int
    stretch: int
    parent: QWidget

    def restore(self) -> None:
        """Return the widget to its layout."""
        self.widget.setParent(self.parent)
        self.layout.insertWidget(self.layout_index, self.widget, self.stretch)
        self.widget.show()


def borrow_widget(widget: QWidget, layout: QBoxLayout) -> BorrowedWidget:
    """Remove a widget from its layout, and remember its position."""
    parent, index = widget.parentWidget(), layout.indexOf(widget)
    assert parent is not None
    loan = BorrowedWidget(widget, layout, index, layout.stretch(index), parent)
    layout.removeWidget(widget)
    return loan


class BlackScreen(QWidget):
    """A black screen, so that the audience looks at the speaker."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAccessibleName("Blank")
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._previous_focus: QWidget | None = None
        self.hide()

    def cover(self) -> None:
        """Cover everything until the next key or mouse press."""
        self._previous_focus = QApplication.focusWidget()
        self.show()
        self.raise_()
        self.setFocus()

    def _uncover(self) -> None:
        self.hide()
        if self._previous_focus is not None:
            self._previous_focus.setFocus()

    def event(self, event: QEvent | None) -> bool:
        if event is not None and event.type() == QEvent.Type.ShortcutOverride:
            event.accept()  # no shortcut acts on hidden content
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent | None) -> None:
        self._uncover()

    def paintEvent(self, event: QPaintEvent | None) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor("black"))
        painter.end()

    def mousePressEvent(self, event: QMouseEvent | None) -> None:
        self._uncover()


class LectureView(QWidget):
    """A view that covers a widget and shows the Step tab's picture, lines and sentence.

    Parameters
    ----------
    tab : StepTab
        The tab that lends its picture, timeline and cards; its player moves the view.
    covered_widget : QWidget
        The widget to cover.
    side_pane : QWidget or None
        A widget from a box layout, shown at the left of the picture.
    """

    ended = pyqtSignal()
    """The lecture ends. The borrowed widgets return afterwards, so that they are laid out in the window's look."""
    resized = pyqtSignal(int)
    """The view's height in pixels."""

    def __init__(self, tab: StepTab, covered_widget: QWidget, side_pane: QWidget | None = None) -> None:
        super().__init__(covered_widget)
        self.setAccessibleName("Lecture")
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.tab = tab
        self._covered_widget = covered_widget
        panes = tab.panes
        right = panes.right.layout()
        assert isinstance(right, QBoxLayout)
        self._borrowed_widgets = [
            borrow_widget(panes.pictures, panes.picture.body),
            borrow_widget(panes.lanes, right),
            borrow_widget(panes.counters, right),
            borrow_widget(panes.timeline, panes.time.body),
        ]
        self.code, self.sentence = CodeLines(), Sentence()
        self.cards = QWidget()
        cards = QVBoxLayout(self.cards)
        cards.addWidget(panes.lanes)
        cards.addWidget(panes.counters)
        cards.addStretch(1)
        self.cards.hide()
        above = QHBoxLayout()
        above.setSpacing(0)
        above.addWidget(panes.pictures, 5)
        above.addWidget(self.cards, 3)
        page = QVBoxLayout()
        page.setContentsMargins(0, look().px(6), 0, 0)
        page.setSpacing(0)
        whole = QHBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(0)
        if side_pane is not None:
            side_parent = side_pane.parentWidget()
            assert side_parent is not None
            side_layout = side_parent.layout()
            assert isinstance(side_layout, QBoxLayout)
            self._borrowed_widgets.append(borrow_widget(side_pane, side_layout))
            whole.addWidget(side_pane)
        whole.addLayout(page, 1)
        page.addLayout(above, 1)
        page.addWidget(self.code)
        page.addWidget(self.sentence)
        page.addWidget(panes.timeline)
        panes.timeline.hide()
        self._previous_column_width = panes.flow.viewport.max_column_width
        self.light = PointerLight(self)
        self.light.watch(panes.flow, panes.arrays, panes.lanes.grid, self.code)
        self.blank = BlackScreen(self)
        self._first_moment = tab.player.moment
        self._keys = ViewKeys(
            self,
            {
                "B": self.blank.cover,
                ".": self.blank.cover,
                "C": lambda: self._toggle_visibility(self.code),
                "T": lambda: self._toggle_visibility(panes.timeline),
                "L": lambda: self._toggle_visibility(self.cards),
                "P": lambda: self.light.set_enabled(not self.light.enabled),
            },
        )
        tab.player.moved.connect(self._show_moment)
        panes.warps.lines_changed.connect(self._show_lines)
        for each in (covered_widget, tab):
            each.installEventFilter(self)

    def begin(self) -> None:
        """Show the view."""
        flow = self.tab.panes.flow
        flow.viewport.max_column_width = MAX_COLUMN_WIDTH
        self.setGeometry(self._covered_widget.rect())
        self.show()
        self.raise_()
        flow.fit()
        self.tab.panes.pictures.currentWidget().setFocus()  # type: ignore[union-attr]
        self._show_moment(self.tab.player.moment)

    def end(self) -> None:
        """Return all borrowed widgets, and close the view."""
        panes = self.tab.panes
        self.light.stop_watching()
        self.tab.player.moved.disconnect(self._show_moment)
        panes.warps.lines_changed.disconnect(self._show_lines)
        for each in (self._covered_widget, self.tab):
            each.removeEventFilter(self)
        panes.flow.viewport.max_column_width = self._previous_column_width
        self.ended.emit()
        for loan in reversed(self._borrowed_widgets):
            loan.restore()
        panes.show_cycles(self.tab.shows_warps)
        self.hide()
        panes.flow.fit()
        (panes.warps if self.tab.shows_warps else panes.flow).setFocus()
        self.deleteLater()

    def _show_moment(self, moment: int) -> None:
        tab = self.tab
        models = tab.models
        if tab.shows_warps:
            tab.panes.warps.show_states()
            return
        if models is None or tab.snapshots is None:
            self.code.show_line("", 0)
            self.sentence.show_sentence("", tab.panes.message.text().partition("\n")[0])
            return
        now = tab.snapshot(moment)
        event = moment - 1
        if moment and models.recording.text(models.files[event]):
            self.code.show_line(models.recording.text(models.files[event]), int(models.lines[event]))
        else:
            self.code.show_line("", 0)
        self.sentence.show_sentence(now.phase, now.effect, HINT if moment == self._first_moment else "")
        self.light.update_highlight()

    def _show_lines(self, issuing: frozenset[int], waiting: frozenset[int], picked: int | None) -> None:
        """Show the source line of the selected warp of the timeline, or else of a warp that issues."""
        if self.tab.shows_warps:
            line = picked or min(issuing or waiting, default=0)
            self.code.show_line(self.tab.source.document.text, line)
            self.sentence.show_sentence("", self.tab.panes.warps.summary)

    def _toggle_visibility(self, widget: QWidget) -> None:
        widget.setVisible(widget.isHidden())

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:
        if event is not None and watched is self._covered_widget and event.type() == QEvent.Type.Resize:
            self.setGeometry(self._covered_widget.rect())
        elif event is not None and watched is self.tab and event.type() == QEvent.Type.Hide:
            self.end()
        return super().eventFilter(watched, event)

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        for each in (self.light, self.blank):
            each.setGeometry(self.rect())
            each.raise_()
        self.resized.emit(self.height())

    def paintEvent(self, event: QPaintEvent | None) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(look().theme.surface))
        painter.end()
