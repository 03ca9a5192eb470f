"""The presenter's window: notes, the current and the next moment, and the time, for the lecturer's own screen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from PyQt6.QtCore import QDateTime, QElapsedTimer, QLocale, QRect, QRegularExpression, Qt
from PyQt6.QtGui import (
    QCloseEvent,
    QGuiApplication,
    QHideEvent,
    QShowEvent,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
)
from PyQt6.QtWidgets import QLineEdit, QListWidget, QTextEdit, QVBoxLayout, QWidget

from gui.model.sequences import Moment, clean_note
from gui.painting.theme import code_font, look
from gui.qt.timers import create_repeating_timer
from gui.widgets.basic import Card, ElidedLabel, Ground, button, column, label, restyle, row, set_role
from gui.widgets.view_keys import ViewKeys
from gui.window.sequences.player import SequencePlayer

FORWARDED_KEYS = (
    *("Space", "Right", "Left", "Shift+Right", "Shift+Left", "PgDown", "PgUp", "Home", "End"),
    *("B", ".", "C", "T", "L", "P", "S", "U"),
)
"""Keys that act on the lecture's window."""
_CLOCK_MS = 500
_CODE = QRegularExpression("`[^`]+`")


def choose_screen(screens: Sequence[QRect], occupied: int) -> int:
    """Return the index of the screen for the presenter's window: the first that the lecture does not occupy.

    Parameters
    ----------
    occupied : int
        Index of the screen of the main window, which is also the result if there is no other.
    """
    return next((index for index in range(len(screens)) if index != occupied), occupied)


def format_elapsed(milliseconds: int) -> str:
    """Return a duration as minutes and seconds, or hours, minutes and seconds."""
    minutes, seconds = divmod(milliseconds // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def describe_moment(moment: Moment) -> str:
    """Return what a moment shows, in one line."""
    parts = [moment.pattern, moment.variant, moment.tab if moment.tab != "Step" else moment.picture]
    if moment.tab == "Step" and moment.picture != "Timeline":
        parts.append(f"step {moment.step}")
    return "  ·  ".join(part for part in parts if part)


class PresenterWindow(Ground):
    """A window with the notes of the open sequence; the main window shows the moments.

    Parameters
    ----------
    window : QWidget
        The main window.
    press_key : callable
        Runs the action of a key in the main window.
    """

    def __init__(self, window: QWidget, player: SequencePlayer, press_key: Callable[[str], object]) -> None:
        super().__init__()
        # A parent gives the style sheet, and closes this window with the main window.
        self.setParent(window, Qt.WindowType.Window)
        self.setAttribute(Qt.WidgetAttribute.WA_WindowPropagation)
        self.setWindowTitle("Presenter – Lockstep")
        self.setAccessibleName("Presenter")
        self.setMinimumSize(640, 420)
        self.resize(960, 600)
        self._window, self._player = window, player
        self._was_placed = False
        self._elapsed = QElapsedTimer()
        self._elapsed.start()
        self._clock_timer = create_repeating_timer(_CLOCK_MS, self._show_time, self)
        page = QVBoxLayout(self)
        page.setContentsMargins(16, 12, 16, 12)
        page.setSpacing(12)
        page.addLayout(self._make_head())
        body = row(self._make_current(), self._make_side(), spacing=12)
        body.setStretch(0, 8)
        body.setStretch(1, 5)
        page.addLayout(body, 1)
        self.message = ElidedLabel("muted", "Message")
        page.addWidget(self.message)
        page.addLayout(self._make_foot())
        self._keys = ViewKeys(self, {key: partial(press_key, key) for key in FORWARDED_KEYS})
        player.changed.connect(self._show_sequence)
        player.message_changed.connect(self.message.show_text)
        self._show_sequence()

    # --- parts

    def _make_head(self) -> QVBoxLayout:
        self.title = ElidedLabel("title", "Sequence")
        self.elapsed = label("0:00", "figure", name="Elapsed time")
        self.clock = label("", "muted", name="Time of day")
        restart = button("Restart", "flat", tip="Count the elapsed time from now", name="Restart the elapsed time")
        restart.setObjectName("restart")
        restart.clicked.connect(self._restart_clock)
        line = row(self.title, self.elapsed, restart, 12, self.clock, stretch=0)
        head = QVBoxLayout()
        head.addLayout(line)
        return head

    def _make_current(self) -> QWidget:
        card = Card("Now", margins=(16, 12, 16, 12))
        self.position = label("", "section", name="Number of the moment")
        self.current_title = label("", "title", wrap=True, name="Current moment")
        self.title_field = QLineEdit()
        self.title_field.setAccessibleName("Title of the moment")
        self.title_field.textEdited.connect(self._player.set_title)
        self.title_field.hide()
        self.details = ElidedLabel("caption", "What it shows")
        self._note_text = ""
        self.note = QTextEdit()
        self.note.setAcceptRichText(False)
        set_role(self.note, "notes")
        self.note.setAccessibleName("Notes")
        self.note.setPlaceholderText("No notes. Press Edit to write some.")
        self.note.setTabChangesFocus(True)
        self.note.setReadOnly(True)
        self.note.textChanged.connect(self._store_note)
        card.title.hide()
        card.body.removeItem(card.head)
        for each in (self.position, self.current_title, self.title_field, self.details):
            card.body.addWidget(each)
        card.body.addSpacing(4)
        card.body.addWidget(self.note, 1)
        return card

    def _make_side(self) -> QWidget:
        following = Card("Next", margins=(16, 12, 16, 12))
        following.title.hide()
        following.body.removeItem(following.head)
        self.next_title = label("", "card-title", wrap=True, name="Next moment")
        self.next_details = ElidedLabel("caption", "What it will show")
        for each in (label("Next", "section"), self.next_title, self.next_details):
            following.body.addWidget(each)
        moments = Card("Moments", margins=(8, 8, 8, 8))
        moments.title.hide()
        moments.body.removeItem(moments.head)
        self.list = QListWidget()
        self.list.setAccessibleName("Moments")
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setTextElideMode(Qt.TextElideMode.ElideRight)
        # Arrow keys step the recording: only the mouse chooses a moment here.
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.list.itemClicked.connect(lambda _: self._player.go_to(self.list.currentRow()))
        moments.body.addWidget(self.list)
        side = QWidget()
        side.setLayout(column(following, moments, spacing=12, stretch=1))
        return side

    def _make_foot(self) -> QVBoxLayout:
        player = self._player
        self.previous_button = button("Previous", tip="Previous moment  (Shift+N)")
        self.next_button = button("Next", "primary", tip="Next moment  (N)")
        self.edit_button = button("Edit", tip="Change titles, notes and the order")
        self.edit_button.setCheckable(True)
        self.add_button = button("Add", tip="Add what the window shows after this moment  (Ctrl+M)")
        self.up_button = button("Move up", tip="Show this moment earlier")
        self.down_button = button("Move down", tip="Show this moment later")
        self.delete_button = button("Delete", tip="Delete this moment from the sequence")
        self.copy_button = button("Save a copy…", tip="Save the sequence under another name, and edit the copy")
        for each, do in (
            (self.previous_button, player.go_to_previous),
            (self.next_button, player.go_to_next),
            (self.add_button, player.add_moment),
            (self.up_button, lambda: player.move_moment(-1)),
            (self.down_button, lambda: player.move_moment(1)),
            (self.delete_button, player.delete_moment),
            (self.copy_button, player.save_copy),
        ):
            each.clicked.connect(lambda _, do=do: do())
        self.edit_button.toggled.connect(lambda _: self._show_editing())
        self._editing_buttons = (self.add_button, self.up_button, self.down_button, self.delete_button)
        foot = QVBoxLayout()
        foot.addLayout(
            row(self.edit_button, *self._editing_buttons, self.copy_button, 0, self.previous_button, self.next_button)
        )
        return foot

    # --- contents

    def _show_sequence(self) -> None:
        player = self._player
        sequence, moment, following = player.sequence, player.moment, player.next_moment
        count = len(sequence.moments)
        self.title.show_text(sequence.title if player.path is not None else "No sequence is open")
        self.position.setText(f"Now  ·  {player.index + 1} of {count}" if moment is not None else "Now")
        self.current_title.setText(moment.title if moment is not None else "")
        self.details.show_text(describe_moment(moment) if moment is not None else "")
        self.next_title.setText(following.title if following is not None else "The end")
        self.next_details.show_text(describe_moment(following) if following is not None else "")
        self._fill_list(player.index)
        self.previous_button.setEnabled(player.index > 0)
        self.next_button.setEnabled(following is not None)
        self._show_editing()

    def _fill_list(self, index: int) -> None:
        titles = [f"{number}  {each.title}" for number, each in enumerate(self._player.sequence.moments, 1)]
        if titles != [self.list.item(number).text() for number in range(self.list.count())]:  # type: ignore[union-attr]
            self.list.clear()
            self.list.addItems(titles)
        self.list.setCurrentRow(index)

    def _show_editing(self) -> None:
        """Show the fields and buttons that change the sequence while Edit is on, if its file can be changed."""
        player, editing = self._player, self.edit_button.isChecked()
        changes = editing and player.is_editable and player.moment is not None
        self.edit_button.setText("Done" if editing else "Edit")
        for each in self._editing_buttons:
            each.setVisible(editing)
            each.setEnabled(changes or (each is self.add_button and not player.sequence.errors))
        self.up_button.setEnabled(changes and player.index > 0)
        self.down_button.setEnabled(changes and player.next_moment is not None)
        self.copy_button.setVisible(editing)
        self.copy_button.setEnabled(player.path is not None and not player.sequence.errors)
        self.current_title.setVisible(not changes)
        self.title_field.setVisible(changes)
        mode_changes = self.note.isReadOnly() == changes
        self.note.setReadOnly(not changes)
        restyle(self.note, "editing", changes)
        moment = player.moment
        if moment is not None and not self.title_field.hasFocus():
            self.title_field.setText(moment.title)
        text = moment.note if moment is not None else ""
        if mode_changes or text != (clean_note(self.note.toPlainText()) if changes else self._note_text):
            self._note_text = text
            self.note.setPlainText(text)
            self._separate_paragraphs()
            if not changes:
                self._format_code()
        if editing and player.path is not None and not player.is_editable and not player.sequence.errors:
            self.message.show_text("This sequence belongs to Lockstep. Save a copy to change it.")

    def _separate_paragraphs(self) -> None:
        """Leave a gap after each line of the note, so that a glance finds the next one."""
        space = QTextBlockFormat()
        space.setBottomMargin(look().px(8))
        cursor = self.note.textCursor()
        cursor.select(QTextCursor.SelectionType.Document)
        cursor.mergeBlockFormat(space)

    def _format_code(self) -> None:
        """Show code in the font of kernel sources instead of backticks."""
        style = QTextCharFormat()
        style.setFontFamilies(code_font().families())
        document = self.note.document()
        assert document is not None
        cursor = document.find(_CODE)
        while not cursor.isNull():
            cursor.insertText(cursor.selectedText()[1:-1], style)
            cursor = document.find(_CODE, cursor)

    def _store_note(self) -> None:
        if not self.note.isReadOnly():
            self._player.set_note(self.note.toPlainText())

    # --- time

    def _restart_clock(self) -> None:
        self._elapsed.restart()
        self._show_time()

    def _show_time(self) -> None:
        self.elapsed.setText(format_elapsed(self._elapsed.elapsed()))
        now = QDateTime.currentDateTime().time()
        self.clock.setText(QLocale().toString(now, QLocale.FormatType.ShortFormat))

    # --- the window

    def open(self) -> None:
        """Show the window, the first time on a screen that the lecture does not occupy, or hide it."""
        if self.isVisible():
            self.hide()
            return
        if not self._was_placed:
            self._was_placed = True
            self._place()
        self.show()

    def _place(self) -> None:
        screens = QGuiApplication.screens()
        own = self._window.screen()
        occupied = screens.index(own) if own in screens else 0
        chosen = choose_screen([screen.geometry() for screen in screens], occupied)
        if chosen != occupied:
            self.setGeometry(screens[chosen].availableGeometry().adjusted(40, 40, -40, -40))
            self.setWindowState(Qt.WindowState.WindowMaximized)

    def showEvent(self, event: QShowEvent | None) -> None:
        super().showEvent(event)
        self._show_time()
        self._clock_timer.start()
        self.next_button.setFocus()

    def hideEvent(self, event: QHideEvent | None) -> None:
        super().hideEvent(event)
        self._clock_timer.stop()

    def closeEvent(self, event: QCloseEvent | None) -> None:
        self._player.finish_editing()
        super().closeEvent(event)
