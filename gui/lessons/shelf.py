"""The list of lessons, with the progress in each, errors of lessons that cannot be read, and the lectures."""

from __future__ import annotations

from PyQt6.QtCore import pyqtSignal
from PyQt6.QtGui import QShowEvent
from PyQt6.QtWidgets import QGridLayout, QProgressBar, QWidget

from gpu.messages.lessons import LessonOutline
from gui.model.lessons import Lessons
from gui.model.sequences import list_builtin_sequences
from gui.painting.theme import look
from gui.widgets.basic import Card, ElidedLabel, Ground, button, column, label, restyle, row
from gui.widgets.scroll_column import ScrollColumn
from gui.widgets.wrapping import WrappingLayout

_COLUMNS = 3


class LessonTile(Card):
    """A lesson's card: title, length, progress, and a button that starts or continues it."""

    def __init__(self, lesson: LessonOutline, number: int, completed_count: int) -> None:
        super().__init__(lesson.title, margins=(12, 8, 12, 10))
        self.lesson = lesson
        self.body.removeItem(self.head)
        self.title.hide()
        heading = label(f"{number}  {lesson.title}", "card-title", wrap=True, name="Lesson")
        asks, tasks = (sum(bool(part) for part in parts) for parts in _describe_contents(lesson))
        about = f"{lesson.minutes} min  ·  {_format_count(asks, 'question')}  ·  {_format_count(tasks, 'task')}"
        words = ElidedLabel("caption", "Length")
        words.show_text(about)
        bar = QProgressBar()
        bar.setRange(0, len(lesson.steps))
        bar.setValue(completed_count)
        bar.setTextVisible(False)
        bar.setFixedHeight(look().px(5))
        bar.setAccessibleName(f"{completed_count} of {len(lesson.steps)} steps done")
        is_complete = completed_count == len(lesson.steps)
        restyle(bar, "whole", is_complete)
        text = "Again" if is_complete else "Continue" if completed_count else "Start"
        self.open = button(text, "" if is_complete else "primary", name=f"{text}: {lesson.title}")
        self.count = label(f"{completed_count} of {len(lesson.steps)}", "caption")
        self.body.setSpacing(look().px(6))
        self.body.addWidget(heading)
        self.body.addStretch()  # where a neighbor's title has two lines
        for each in (words, bar):
            self.body.addWidget(each)
        self.body.addLayout(row(self.count, 0, self.open))


class ShelfView(Ground):
    """The list of all lessons."""

    lesson_requested = pyqtSignal(object)
    """LessonOutline"""
    folder_requested = pyqtSignal()
    sequence_requested = pyqtSignal(object)
    """Path of a sequence for a lecture."""

    def __init__(self, lessons: Lessons) -> None:
        super().__init__()
        self.setAccessibleName("Lessons")
        self._lessons = lessons
        self.tiles: dict[str, LessonTile] = {}
        self.summary = label("", "muted", wrap=True, name="About the lessons")
        self.open = button("Open lessons…", tip="Open your own folder of lessons, or drop it on the window")
        self.open.clicked.connect(self.folder_requested)
        self.errors_label = label("", "error", wrap=True, name="Errors in lessons")
        self.scroll_area = ScrollColumn()
        self._grid: QWidget | None = None
        head = row(self.summary, self.open, stretch=0)
        parts = (head, self._make_lectures(), self.errors_label, self.scroll_area)
        self.setLayout(column(*parts, spacing=10, margins=(16, 12, 8, 8), stretch=3))
        self._is_outdated = True
        lessons.shelf_changed.connect(self.refresh)
        self.refresh()

    def _make_lectures(self) -> WrappingLayout:
        """Return a line that offers Lockstep's own sequences."""
        line = WrappingLayout(across=8, down=2)
        line.addWidget(label("Lectures of an hour, with notes:", "muted"))
        self.lectures = {title: button(title, "link") for title, _ in list_builtin_sequences()}
        for title, path in list_builtin_sequences():
            self.lectures[title].clicked.connect(lambda _, path=path: self.sequence_requested.emit(path))
            line.addWidget(self.lectures[title])
        return line

    def refresh(self) -> None:
        """Update the list, at once if it is visible."""
        self._is_outdated = True
        if self.isVisible():
            self._update_tiles()

    def showEvent(self, event: QShowEvent | None) -> None:
        super().showEvent(event)
        if self._is_outdated:
            self._update_tiles()

    def _update_tiles(self) -> None:
        self._is_outdated = False
        lessons = self._lessons
        done, total = lessons.progress
        self.summary.setText(
            f"Answer questions, and solve tasks that the simulator tests. {done} of {total} steps done."
            if lessons.lessons
            else "Reading the lessons…"
        )
        self.errors_label.setText("\n".join(lessons.faults))
        self.errors_label.setVisible(bool(lessons.faults))
        if self._grid is not None:
            self.scroll_area.column.removeWidget(self._grid)
            self._grid.deleteLater()
        self._grid = QWidget()
        grid = QGridLayout(self._grid)
        grid.setContentsMargins(0, 0, 8, 8)
        grid.setSpacing(8)
        self.tiles.clear()
        position = 0
        # The user's own lessons come first.
        for folder, shelf in sorted(lessons.shelves.items(), key=lambda each: not each[0]):
            if len(lessons.shelves) > 1:
                position = -(-position // _COLUMNS) * _COLUMNS
                heading = label(folder or "Lockstep's lessons", "section")
                grid.addWidget(heading, position // _COLUMNS, 0, 1, _COLUMNS)
                position += _COLUMNS
            for number, lesson in enumerate(shelf.lessons, 1):
                tile = LessonTile(lesson, number, len(lessons.find_completed_steps(lesson)))
                tile.open.clicked.connect(lambda _, lesson=lesson: self.lesson_requested.emit(lesson))
                grid.addWidget(tile, position // _COLUMNS, position % _COLUMNS)
                self.tiles[lesson.folder] = tile
                position += 1
        for number in range(_COLUMNS):
            grid.setColumnStretch(number, 1)
        grid.setRowStretch(grid.rowCount(), 1)
        self.scroll_area.column.addWidget(self._grid, 1)


def _describe_contents(lesson: LessonOutline) -> tuple[list[str], list[object]]:
    return [step.question_kind for step in lesson.steps], [step.task for step in lesson.steps]


def _format_count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
