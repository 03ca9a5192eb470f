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


def _release_focus() -> None:
    """Clear the focus: a focused widget that changes its parent would pass it on, perhaps to the code."""
    if (focused := QApplication.focusWidget()) is not None:
        focused.clearFocus()


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

    def uncover(self) -> None:
        """Show what is covered."""
        self.hide()
        if self._previous_focus is not None:
            self._previous_focus.setFocus()

    def event(self, event: QEvent | None) -> bool:
        if event is not None and event.type() == QEvent.Type.ShortcutOverride:
            event.accept()  # no shortcut acts on hidden content
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent | None) -> None:
        self.uncover()

    def paintEvent(self, event: QPaintEvent | None) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor("black"))
        painter.end()

    def mousePressEvent(self, event: QMouseEvent | None) -> None:
        self.uncover()


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
    styles : str
        The style sheet of the view.
    """

    ended = pyqtSignal()
    """The lecture ends. The borrowed widgets return afterwards, so that they are laid out in the window's look."""
    resized = pyqtSignal(int)
    """The view's height in pixels."""

    def __init__(self, tab: StepTab, covered_widget: QWidget, side_pane: QWidget | None, styles: str) -> None:
        super().__init__(covered_widget)
        self.setStyleSheet(styles)
        self.setAccessibleName("Lecture")
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.tab = tab
        self.keeps_open = False
        """Whether the view stays when its tab is hidden, because `show_tab` follows."""
        self._covered_widget = covered_widget
        self._borrowed_widgets: list[BorrowedWidget] = []
        self._side_loan: BorrowedWidget | None = None
        self.code, self.sentence = CodeLines(), Sentence()
        self.cards = QWidget()
        self._cards_column = QVBoxLayout(self.cards)
        self._cards_column.addStretch(1)
        self.cards.hide()
        self._above = QHBoxLayout()
        self._above.setSpacing(0)
        self._above.addWidget(self.cards, 3)
        self._page = QVBoxLayout()
        self._page.setContentsMargins(0, look().px(6), 0, 0)
        self._page.setSpacing(0)
        self._page.addLayout(self._above, 1)
        self._page.addWidget(self.code)
        self._page.addWidget(self.sentence)
        whole = QHBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(0)
        if side_pane is not None:
            side_parent = side_pane.parentWidget()
            assert side_parent is not None
            side_layout = side_parent.layout()
            assert isinstance(side_layout, QBoxLayout)
            self._side_loan = borrow_widget(side_pane, side_layout)
            whole.addWidget(side_pane)
        whole.addLayout(self._page, 1)
        self._shows_timeline = False
        self.light = PointerLight(self)
        self.blank = BlackScreen(self)
        self._hint, self._hint_moment = HINT, tab.player.moment
        self.keys = ViewKeys(
            self,
            {
                "B": self.blank.cover,
                ".": self.blank.cover,
                "C": lambda: self.code.setVisible(self.code.isHidden()),
                "T": self._toggle_timeline,
                "L": lambda: self.cards.setVisible(self.cards.isHidden()),
                "P": lambda: self.light.set_enabled(not self.light.enabled),
            },
        )
        covered_widget.installEventFilter(self)
        self._borrow_from_tab()

    def _borrow_from_tab(self) -> None:
        """Borrow the tab's widgets, and follow its player."""
        _release_focus()
        tab, panes = self.tab, self.tab.panes
        right = panes.right.layout()
        assert isinstance(right, QBoxLayout)
        self._borrowed_widgets = [
            borrow_widget(panes.pictures, panes.picture.body),
            borrow_widget(panes.lanes, right),
            borrow_widget(panes.counters, right),
            borrow_widget(panes.timeline, panes.time.body),
        ]
        self._above.insertWidget(0, panes.pictures, 5)
        self._cards_column.insertWidget(0, panes.lanes)
        self._cards_column.insertWidget(1, panes.counters)
        self._page.addWidget(panes.timeline)
        panes.timeline.setVisible(self._shows_timeline)
        self._previous_column_width = panes.flow.viewport.max_column_width
        self.light.watch(panes.flow, panes.arrays, panes.lanes.grid, self.code)
        tab.player.moved.connect(self._show_moment)
        panes.warps.lines_changed.connect(self._show_lines)
        tab.installEventFilter(self)

    def _stop_following_tab(self) -> None:
        panes = self.tab.panes
        self.light.stop_watching()
        self.tab.player.moved.disconnect(self._show_moment)
        panes.warps.lines_changed.disconnect(self._show_lines)
        self.tab.removeEventFilter(self)
        panes.flow.viewport.max_column_width = self._previous_column_width

    def _return_to_tab(self) -> None:
        """Return the borrowed widgets to the tab."""
        _release_focus()
        for loan in reversed(self._borrowed_widgets):
            loan.restore()
        self.tab.panes.show_cycles(self.tab.shows_warps)

    def show_tab(self, tab: StepTab, hint: str) -> None:
        """Show another tab, or the same one; the hint stays until its next step."""
        self.keeps_open = False
        self._hint, self._hint_moment = hint, tab.player.moment
        if tab is not self.tab:
            self._stop_following_tab()
            self._return_to_tab()
            self.tab = tab
            tab.settings.hide()
            self._borrow_from_tab()
            self._fit()
        self._show_moment(tab.player.moment)

    def begin(self) -> None:
        """Show the view."""
        self.setGeometry(self._covered_widget.rect())
        self.show()
        self.raise_()
        self._fit()
        self._show_moment(self.tab.player.moment)

    def _fit(self) -> None:
        """Let the picture fill the view, and direct the keys to it."""
        flow = self.tab.panes.flow
        flow.viewport.max_column_width = MAX_COLUMN_WIDTH
        flow.fit()
        if not self.blank.isVisible():
            self.tab.panes.pictures.currentWidget().setFocus()  # type: ignore[union-attr]

    def end(self) -> None:
        """Return all borrowed widgets, and close the view."""
        panes = self.tab.panes
        self._stop_following_tab()
        self._covered_widget.removeEventFilter(self)
        self.ended.emit()
        if self._side_loan is not None:
            self._side_loan.restore()
        self._return_to_tab()
        (panes.warps if self.tab.shows_warps else panes.flow).setFocus()
        self.hide()
        panes.flow.fit()
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
        self.sentence.show_sentence(now.phase, now.effect, self._hint if moment == self._hint_moment else "")
        self.light.update_highlight()

    def show_message(self, text: str) -> None:
        """Show a message instead of the sentence, until the next step."""
        self.sentence.show_sentence("", text)

    def _show_lines(self, issuing: frozenset[int], waiting: frozenset[int], picked: int | None) -> None:
        """Show the source line of the selected warp of the timeline, or else of a warp that issues."""
        if self.tab.shows_warps:
            line = picked or min(issuing or waiting, default=0)
            self.code.show_line(self.tab.source.document.text, line)
            self.sentence.show_sentence("", self.tab.panes.warps.summary)

    def _toggle_timeline(self) -> None:
        self._shows_timeline = not self._shows_timeline
        self.tab.panes.timeline.setVisible(self._shows_timeline)

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:
        if event is not None and watched is self._covered_widget and event.type() == QEvent.Type.Resize:
            self.setGeometry(self._covered_widget.rect())
        elif event is not None and watched is self.tab and event.type() == QEvent.Type.Hide and not self.keeps_open:
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
