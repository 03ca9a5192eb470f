"""The sidebar: patterns and sample images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PyQt6.QtCore import QSize, Qt, pyqtSignal
from PyQt6.QtGui import QColor, QIcon, QKeyEvent, QPainter, QPainterPath, QPaintEvent, QPen, QPixmap
from PyQt6.QtWidgets import (
    QButtonGroup,
    QFrame,
    QGridLayout,
    QPushButton,
    QScrollArea,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from gpu.declaration.pattern import Array, Pattern
from gui.painting.painters import create_smooth_painter
from gui.painting.pyramid import to_qimage
from gui.painting.theme import FONT_SIZES, look
from gui.widgets.basic import button, label, row, set_role

_THUMBNAIL_COLUMNS = 2
"""Samples per row."""


def _thumbnail_px() -> int:
    return round(50 * look().side_px / FONT_SIZES["normal"])


class Thumbnail(QToolButton):
    """A sample image's button, with a small picture."""

    move_requested = pyqtSignal(int, int)
    """An arrow key was pressed: columns to the right, rows down."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.setToolTip(path.stem.replace("-", " ").replace("_", " "))
        self.setAccessibleName(f"Sample image {path.stem}")
        self.setCheckable(True)
        self.set_tab_focus(enabled=False)
        self._pixmap = QPixmap()
        self.resize_with_text()

    def resize_with_text(self) -> None:
        """Set the size in proportion to the text size."""
        side = _thumbnail_px()
        self.setFixedSize(side, side)

    def set_tab_focus(self, *, enabled: bool) -> None:
        """Accept focus by Tab, or only by arrow keys and clicks."""
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus if enabled else Qt.FocusPolicy.ClickFocus)

    def keyPressEvent(self, event: QKeyEvent | None) -> None:
        directions = {
            Qt.Key.Key_Left: (-1, 0), Qt.Key.Key_Right: (1, 0), Qt.Key.Key_Up: (0, -1), Qt.Key.Key_Down: (0, 1),
        }  # fmt: skip
        if event is None:
            return
        if event.key() in directions:
            self.move_requested.emit(*directions[Qt.Key(event.key())])
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.click()
        else:
            super().keyPressEvent(event)

    @property
    def has_picture(self) -> bool:
        """Whether the picture has been loaded."""
        return not self._pixmap.isNull()

    def show_picture(self, picture: Array) -> None:
        """Show the central square of a picture."""
        side = min(picture.shape[:2])
        top, left = (picture.shape[0] - side) // 2, (picture.shape[1] - side) // 2
        step = max(1, side // 300)
        square = picture[top : top + side : step, left : left + side : step].copy()
        # QImage aligns rows to 4 bytes only in its own memory; for this array the stride is passed.
        self._pixmap = QPixmap.fromImage(to_qimage(square)).scaled(
            QSize(144, 144), Qt.AspectRatioMode.IgnoreAspectRatio, Qt.TransformationMode.SmoothTransformation
        )
        self.setIcon(QIcon(self._pixmap))
        self.update()

    def paintEvent(self, event: QPaintEvent | None) -> None:
        theme = look().theme
        painter = create_smooth_painter(self)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        area = self.rect().adjusted(1, 1, -1, -1)
        shape = QPainterPath()
        shape.addRoundedRect(area.x(), area.y(), area.width(), area.height(), 6, 6)
        painter.fillPath(shape, QColor(theme.raised))
        painter.setClipPath(shape)
        if not self._pixmap.isNull():
            painter.drawPixmap(area, self._pixmap)
        painter.setClipping(False)
        strong = self.isChecked() or self.hasFocus()
        edge = theme.accent if strong else theme.faint if self.underMouse() else theme.border
        painter.strokePath(shape, QPen(QColor(edge), 2 if strong else 1))
        painter.end()


class SampleScroll(QScrollArea):
    """A scroll area as high as the samples if there is room."""

    def __init__(self) -> None:
        super().__init__()
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        # In a low window the samples shrink, not the entries above and below.
        self.setMinimumHeight(1)

    def set_sample_count(self, samples: int) -> None:
        """Set the maximum height for a number of samples."""
        self.setMaximumHeight(-(-samples // _THUMBNAIL_COLUMNS) * (_thumbnail_px() + 6) + 8)


class Sidebar(QFrame):
    """Patterns above, sample images below."""

    pattern_chosen = pyqtSignal(str)
    image_chosen = pyqtSignal(object)
    open_requested = pyqtSignal()
    open_kernel_requested = pyqtSignal()
    user_file_requested = pyqtSignal()
    lessons_requested = pyqtSignal()
    preferences_requested = pyqtSignal()

    def __init__(self, patterns: dict[str, Pattern]) -> None:
        super().__init__()
        set_role(self, "side")
        self.setAccessibleName("Patterns and images")
        self.buttons: dict[str, QPushButton] = {}
        self.thumbnails: dict[Path, Thumbnail] = {}
        group = QButtonGroup(self)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 14, 0, 10)
        layout.setSpacing(2)
        self.lessons = button("Lessons", "nav", tip="Questions and tasks about the patterns (F7)", name="Lessons")
        self.lessons.setCheckable(True)
        self.lessons.clicked.connect(self.lessons_requested)
        group.addButton(self.lessons)
        layout.addWidget(self.lessons)
        layout.addSpacing(6)
        layout.addLayout(self._create_heading("Patterns"))
        for name, pattern in patterns.items():
            entry = button(pattern.title, "nav", tip=pattern.summary, name=f"Pattern {pattern.title}")
            entry.setCheckable(True)
            entry.clicked.connect(lambda _, name=name: self.pattern_chosen.emit(name))
            group.addButton(entry)
            layout.addWidget(entry)
            self.buttons[name] = entry
        self.own = button("Your kernel", "nav", tip="The file you opened")
        self.own.setCheckable(True)
        self.own.clicked.connect(self.user_file_requested)
        self.own.hide()
        group.addButton(self.own)
        layout.addWidget(self.own)
        layout.addStretch(1)
        layout.addSpacing(12)
        self._images = QWidget()
        self._images.setLayout(self._create_heading("Images"))
        layout.addWidget(self._images)
        samples = QWidget()
        self._grid = QGridLayout(samples)
        self._grid.setContentsMargins(14, 4, 4, 6)
        self._grid.setSpacing(6)
        self._grid.setColumnStretch(2, 1)
        self._scroll = SampleScroll()
        self._scroll.setWidget(samples)
        layout.addWidget(self._scroll, 1000)
        for text, tip, signal in (
            (
                "Open…",
                "Open an image, or numbers for arrays (Ctrl+O), or drop a file on the window",
                self.open_requested,
            ),
            (
                "Open kernel…",
                "Open your own .cu file, a Python script, or a recording (Ctrl+Shift+O), or drop one on the window",
                self.open_kernel_requested,
            ),
            ("Preferences", "Theme, text size, engine (Ctrl+,)", self.preferences_requested),
        ):
            entry = button(text, "nav", tip=tip)
            entry.clicked.connect(signal)
            layout.addWidget(entry)
        self.resize_with_text()

    @staticmethod
    def _create_heading(text: str) -> Any:
        line = row(label(text, "section"), 0)
        line.setContentsMargins(16, 0, 0, 4)
        return line

    def resize_with_text(self) -> None:
        """Set the width in proportion to the text size."""
        self.setFixedWidth(round(134 * look().side_px / FONT_SIZES["normal"]) + 8)
        for thumbnail in self.thumbnails.values():
            thumbnail.resize_with_text()
        self._scroll.set_sample_count(len(self.thumbnails))

    def add_samples(self, paths: list[Path]) -> None:
        """Add sample images; their pictures load later."""
        for path in paths:
            thumbnail = Thumbnail(path)
            thumbnail.clicked.connect(lambda _, path=path: self.image_chosen.emit(path))
            index = len(self.thumbnails)
            thumbnail.move_requested.connect(lambda right, down, index=index: self._focus_neighbor(index, right, down))
            self._grid.addWidget(thumbnail, index // _THUMBNAIL_COLUMNS, index % _THUMBNAIL_COLUMNS)
            self.thumbnails[path] = thumbnail
        self._update_tab_stop()
        self._scroll.set_sample_count(len(self.thumbnails))

    def _focus_neighbor(self, place: int, right: int, down: int) -> None:
        """Move the focus to a neighboring sample, if there is one; all samples are one tab stop."""
        thumbnails = list(self.thumbnails.values())
        target = place + right + _THUMBNAIL_COLUMNS * down
        if 0 <= target < len(thumbnails):
            thumbnails[target].setFocus(Qt.FocusReason.TabFocusReason)
            self._scroll.ensureWidgetVisible(thumbnails[target])

    def _update_tab_stop(self) -> None:
        """Make the open sample, or else the first, the tab stop."""
        thumbnails = list(self.thumbnails.values())
        stop = next(
            (thumbnail for thumbnail in thumbnails if thumbnail.isChecked()), thumbnails[0] if thumbnails else None
        )
        for thumbnail in thumbnails:
            thumbnail.set_tab_focus(enabled=thumbnail is stop)

    def mark_pattern(self, name: str) -> None:
        """Mark the current pattern."""
        self.buttons[name].setChecked(True)

    def mark_lessons(self) -> None:
        """Mark the lessons as shown."""
        self.lessons.setChecked(True)

    def show_progress(self, completed: int, total: int) -> None:
        """Show the number of completed lesson steps."""
        self.lessons.setText(f"Lessons  {completed}/{total}" if completed else "Lessons")
        self.lessons.setAccessibleDescription(f"{completed} of {total} steps done" if total else "")

    def show_images(self, visible: bool) -> None:
        """Show or hide the sample images: patterns of arrays do not use them."""
        self._images.setVisible(visible)
        self._scroll.setVisible(visible)

    def mark_user_file(self, title: str, name: str) -> None:
        """Show and mark the entry for the user's file, a kernel or a recording."""
        self.own.setText(title)
        self.own.setToolTip(name)
        self.own.show()
        self.own.setChecked(True)

    def mark_image(self, path: Path) -> None:
        """Mark the sample that is open, if the image is a sample."""
        for each, thumbnail in self.thumbnails.items():
            thumbnail.setChecked(each == path)
        self._update_tab_stop()
