"""The left side: patterns to choose from, and pictures to run them on."""

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
from gui.painting.pyramid import as_qimage
from gui.painting.theme import FONT_SIZES, look
from gui.widgets.basic import button, label, role, row

_ABREAST = 2
"""Samples side by side."""


def _thumbnail_px() -> int:
    return round(50 * look().side_px / FONT_SIZES["normal"])


class Thumbnail(QToolButton):
    """A small picture that opens a large one."""

    way_wanted = pyqtSignal(int, int)
    """An arrow was pressed: so many to the right, so many down."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.setToolTip(path.stem.replace("-", " ").replace("_", " "))
        self.setAccessibleName(f"Sample image {path.stem}")
        self.setCheckable(True)
        self.reach(by_tab=False)
        self._pixmap = QPixmap()
        self.resize_with_text()

    def resize_with_text(self) -> None:
        """Take the size that goes with the text's."""
        side = _thumbnail_px()
        self.setFixedSize(side, side)

    def reach(self, *, by_tab: bool) -> None:
        """Let Tab come here, or only arrows and clicks."""
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus if by_tab else Qt.FocusPolicy.ClickFocus)

    def keyPressEvent(self, event: QKeyEvent | None) -> None:
        ways = {
            Qt.Key.Key_Left: (-1, 0), Qt.Key.Key_Right: (1, 0), Qt.Key.Key_Up: (0, -1), Qt.Key.Key_Down: (0, 1),
        }  # fmt: skip
        if event is None:
            return
        if event.key() in ways:
            self.way_wanted.emit(*ways[Qt.Key(event.key())])
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.click()
        else:
            super().keyPressEvent(event)

    @property
    def has_picture(self) -> bool:
        """Whether the picture has come."""
        return not self._pixmap.isNull()

    def show_picture(self, picture: Array) -> None:
        """Show the middle square of a picture."""
        side = min(picture.shape[:2])
        top, left = (picture.shape[0] - side) // 2, (picture.shape[1] - side) // 2
        step = max(1, side // 300)
        square = picture[top : top + side : step, left : left + side : step].copy()
        # 4 bytes a row's alignment is QImage's own concern only for its own memory; ours says its stride.
        self._pixmap = QPixmap.fromImage(as_qimage(square)).scaled(
            QSize(144, 144), Qt.AspectRatioMode.IgnoreAspectRatio, Qt.TransformationMode.SmoothTransformation
        )
        self.setIcon(QIcon(self._pixmap))
        self.update()

    def paintEvent(self, event: QPaintEvent | None) -> None:
        theme = look().theme
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
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
    """As high as the samples where there is room, and scrolled where there is not."""

    def __init__(self) -> None:
        super().__init__()
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        # Where height is short it is the samples that give way, not the words above and below.
        self.setMinimumHeight(1)

    def fit(self, samples: int) -> None:
        """Learn how many samples there are."""
        self.setMaximumHeight(-(-samples // _ABREAST) * (_thumbnail_px() + 6) + 8)


class Sidebar(QFrame):
    """Patterns above, sample images below."""

    pattern_chosen = pyqtSignal(str)
    image_chosen = pyqtSignal(object)
    open_wanted = pyqtSignal()
    open_kernel_wanted = pyqtSignal()
    own_wanted = pyqtSignal()
    lessons_wanted = pyqtSignal()
    preferences_wanted = pyqtSignal()

    def __init__(self, patterns: dict[str, Pattern]) -> None:
        super().__init__()
        role(self, "side")
        self.setAccessibleName("Patterns and images")
        self.buttons: dict[str, QPushButton] = {}
        self.thumbnails: dict[Path, Thumbnail] = {}
        group = QButtonGroup(self)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 14, 0, 10)
        layout.setSpacing(2)
        self.lessons = button("Lessons", "nav", tip="Predict, then see; write, then be judged (F7)", name="Lessons")
        self.lessons.setCheckable(True)
        self.lessons.clicked.connect(self.lessons_wanted)
        group.addButton(self.lessons)
        layout.addWidget(self.lessons)
        layout.addSpacing(6)
        layout.addLayout(self._heading("Patterns"))
        for name, pattern in patterns.items():
            made = button(pattern.title, "nav", tip=pattern.summary, name=f"Pattern {pattern.title}")
            made.setCheckable(True)
            made.clicked.connect(lambda _, name=name: self.pattern_chosen.emit(name))
            group.addButton(made)
            layout.addWidget(made)
            self.buttons[name] = made
        self.own = button("Own kernel", "nav", tip="The file that you opened")
        self.own.setCheckable(True)
        self.own.clicked.connect(self.own_wanted)
        self.own.hide()
        group.addButton(self.own)
        layout.addWidget(self.own)
        layout.addStretch(1)
        layout.addSpacing(12)
        self._images = QWidget()
        self._images.setLayout(self._heading("Images"))
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
            ("Open…", "Open an image, or numbers for arrays (Ctrl+O), or drop a file on the window", self.open_wanted),
            (
                "Open kernel…",
                "Open a .cu file of yours, a PyCUDA script, or a recording (Ctrl+Shift+O), or drop one on the window",
                self.open_kernel_wanted,
            ),
            ("Preferences", "Theme, text size, engine (Ctrl+,)", self.preferences_wanted),
        ):
            made = button(text, "nav", tip=tip)
            made.clicked.connect(signal)
            layout.addWidget(made)
        self.resize_with_text()

    @staticmethod
    def _heading(text: str) -> Any:
        line = row(label(text, "section"), 0)
        line.setContentsMargins(16, 0, 0, 4)
        return line

    def resize_with_text(self) -> None:
        """Take the width that goes with the text's size."""
        self.setFixedWidth(round(134 * look().side_px / FONT_SIZES["normal"]) + 8)
        for thumbnail in self.thumbnails.values():
            thumbnail.resize_with_text()
        self._scroll.fit(len(self.thumbnails))

    def add_samples(self, paths: list[Path]) -> None:
        """Offer sample images; their pictures come later."""
        for path in paths:
            thumbnail = Thumbnail(path)
            thumbnail.clicked.connect(lambda _, path=path: self.image_chosen.emit(path))
            place = len(self.thumbnails)
            thumbnail.way_wanted.connect(lambda right, down, place=place: self._go(place, right, down))
            self._grid.addWidget(thumbnail, place // _ABREAST, place % _ABREAST)
            self.thumbnails[path] = thumbnail
        self._let_tab_come()
        self._scroll.fit(len(self.thumbnails))

    def _go(self, place: int, right: int, down: int) -> None:
        """Go from a sample to one beside it, if one is there: they are one stop of Tab."""
        there = list(self.thumbnails.values())
        to = place + right + _ABREAST * down
        if 0 <= to < len(there):
            there[to].setFocus(Qt.FocusReason.TabFocusReason)
            self._scroll.ensureWidgetVisible(there[to])

    def _let_tab_come(self) -> None:
        """Let Tab come to the sample that is open, or else to the first."""
        there = list(self.thumbnails.values())
        stop = next((each for each in there if each.isChecked()), there[0] if there else None)
        for each in there:
            each.reach(by_tab=each is stop)

    def mark_pattern(self, name: str) -> None:
        """Show which pattern is chosen."""
        self.buttons[name].setChecked(True)

    def mark_lessons(self) -> None:
        """Show that lessons are shown."""
        self.lessons.setChecked(True)

    def show_progress(self, done: int, whole: int) -> None:
        """Say how many steps of the lessons have been done of how many."""
        self.lessons.setText(f"Lessons  {done}/{whole}" if done else "Lessons")
        self.lessons.setAccessibleDescription(f"{done} of {whole} steps done" if whole else "")

    def show_images(self, shown: bool) -> None:
        """Offer the sample images, or not: a pattern of arrays has no use for them."""
        self._images.setVisible(shown)
        self._scroll.setVisible(shown)

    def mark_own(self, title: str, name: str) -> None:
        """Show that the user's file of that name is shown, a kernel or a recording."""
        self.own.setText(title)
        self.own.setToolTip(name)
        self.own.show()
        self.own.setChecked(True)

    def mark_image(self, path: Path) -> None:
        """Show which sample is open, if it is one."""
        for each, thumbnail in self.thumbnails.items():
            thumbnail.setChecked(each == path)
        self._let_tab_come()
